#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# CertificateSigningRequests: who may approve and sign them, which ones Kubernetes' signers take, and
# that the certificates are credentials of this server. HEKLA names the program; needs kubectl,
# openssl and curl.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl openssl curl
needs_embedded 'a cluster of the tests has no kube-controller-manager'

# request NAME SUBJECT [EXTENSION]: makes the key NAME.key and the request NAME.csr.
request() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" \
        ${3:+-addext "$3"} -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>"$dir/openssl"
}

# ask NAME SIGNER USAGES [ARG...]: prints the object for the request; further lines go into the spec.
ask() {
    name=$1 signer=$2 usages=$3
    shift 3
    cat <<-END
	apiVersion: certificates.k8s.io/v1
	kind: CertificateSigningRequest
	metadata: {name: $name}
	spec:
	  request: $(base64 -w 0 "$dir/$name.csr")
	  signerName: $signer
	  usages: [$usages]
	END
    for line; do echo "  $line"; done
}

# file ARG...: creates what ask prints; kubectl's further options are in $as.
file() {
    ask "$@" >"$dir/csr.yaml"
    # shellcheck disable=SC2086 # options must be split into words
    k create -f "$dir/csr.yaml" ${as:-}
}

# file_refused TEXT ARG...: creating what ask prints is refused with the text.
file_refused() {
    text=$1
    shift
    ask "$@" >"$dir/csr.yaml"
    refused "$text" create -f "$dir/csr.yaml"
}

# issued NAME: the request has a certificate, which goes to NAME.crt.
issued() {
    k get csr "$1" -o 'jsonpath={.status.certificate}' && [ -s "$dir/out" ] &&
        base64 -d "$dir/out" >"$dir/$1.crt"
}

# condition NAME TYPE REASON: the request has a condition like that.
condition() {
    k get csr "$1" -o "jsonpath={.status.conditions[?(@.type=='$2')].reason}" && prints "$3"
}

# allow VERB SIGNER: bob may do that with requests for the signer.
allow() {
    cat >"$dir/role.yaml" <<-END
	apiVersion: rbac.authorization.k8s.io/v1
	kind: ClusterRole
	metadata: {name: bob-$1}
	rules:
	- {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: ["$2"], verbs: [$1]}
	END
    k apply -f "$dir/role.yaml" &&
        k create clusterrolebinding "bob-$1" "--clusterrole=bob-$1" --user=bob
}

CLIENT=kubernetes.io/kube-apiserver-client
KUBELET=kubernetes.io/kube-apiserver-client-kubelet
SERVING=kubernetes.io/kubelet-serving

start

step 'a request is pending, and says who made it' '
    request jane "/O=dev/O=ops/CN=jane" &&
    file jane $CLIENT "client auth" "expirationSeconds: 3600" "username: somebody-else" &&
    field csr/jane .spec.username admin && field csr/jane .spec.groups[0] system:masters &&
    k get csr jane --no-headers && says "$CLIENT admin 60m Pending"
'

step 'kubectl certificate approve has it signed' '
    k certificate approve jane && within 20 issued jane &&
    condition jane Approved KubectlApprove &&
    k get csr jane --no-headers && says Approved,Issued &&
    openssl verify -CAfile "$data/ca.crt" "$dir/jane.crt" &&
    openssl x509 -in "$dir/jane.crt" -noout -subject -ext extendedKeyUsage,keyUsage \
        >"$dir/out" && says "CN = jane" "O = dev" "TLS Web Client Authentication"
'

step 'the certificate lasts as long as was asked for' '
    openssl x509 -in "$dir/jane.crt" -noout -checkend 3000 &&
    ! openssl x509 -in "$dir/jane.crt" -noout -checkend 3700
'

# with NAME ARG...: kubectl with that certificate instead of the administrator'"'"'s token.
with() {
    who=$1
    shift
    k --kubeconfig /dev/null --server "$url" --certificate-authority "$data/ca.crt" \
        --client-certificate "$dir/$who.crt" --client-key "$dir/$who.key" "$@"
}

step 'the certificate authenticates as that user in those groups' '
    with jane auth whoami -o json &&
    json "d[\"status\"][\"userInfo\"][\"username\"] == \"jane\"" &&
    json "set(d[\"status\"][\"userInfo\"][\"groups\"]) == {\"dev\", \"ops\", \"system:authenticated\"}"
'

step 'its rights are those of the user and the groups' '
    refused Forbidden get pods --as jane --as-group ops &&
    k create rolebinding ops --clusterrole=view --group=ops && with jane get pods
'

step 'kubectl certificate deny ends it, and a verdict stays' '
    request denied "/CN=denied" && file denied $CLIENT "client auth" &&
    k certificate deny denied && condition denied Denied KubectlDeny &&
    refused "conditions are mutually exclusive" patch csr denied --subresource approval \
        --type json -p "[{\"op\":\"add\",\"path\":\"/status/conditions/-\",
            \"value\":{\"type\":\"Approved\",\"status\":\"True\"}}]" &&
    refused "updates may not remove a condition of type \"Denied\"" patch csr denied \
        --subresource approval --type json -p "[{\"op\":\"remove\",\"path\":\"/status/conditions\"}]" &&
    k get csr denied --no-headers && says Denied && silent Issued
'

step 'a verdict comes only through the approval subresource' '
    request sly "/CN=sly" && file sly $CLIENT "client auth" &&
    k patch csr sly --type merge -p "{\"status\":{\"conditions\":[
        {\"type\":\"Approved\",\"status\":\"True\"}]}}" &&
    field csr/sly .status.conditions "" &&
    refused "updates may not add a condition of type \"Approved\"" patch csr sly \
        --subresource status --type merge \
        -p "{\"status\":{\"conditions\":[{\"type\":\"Approved\",\"status\":\"True\"}]}}"
'

step 'the spec of a request never changes' '
    k patch csr sly --type merge -p "{\"spec\":{\"signerName\":\"a.example/b\",\"username\":\"x\"}}" &&
    field csr/sly .spec.signerName $CLIENT && field csr/sly .spec.username admin
'

step 'approving needs the verb approve on the signer' '
    k create clusterrole csr --verb=get,list,update,patch \
        --resource=certificatesigningrequests,certificatesigningrequests/approval,certificatesigningrequests/status &&
    k create clusterrolebinding csr --clusterrole=csr --user=bob &&
    refused "user not permitted to approve requests with signerName \"$CLIENT\"" \
        certificate approve sly --as bob &&
    allow approve "kubernetes.io/*" && k certificate approve sly --as bob && within 20 issued sly
'

step 'signing needs the verb sign, and a certificate is set once' '
    request own "/CN=own" && file own example.com/signer "server auth" &&
    cert=$(base64 -w 0 "$dir/sly.crt") &&
    patch="{\"status\":{\"certificate\":\"$cert\"}}" &&
    refused "user not permitted to sign requests with signerName \"example.com/signer\"" \
        patch csr own --subresource status --type merge -p "$patch" --as bob &&
    allow sign example.com/signer &&
    k patch csr own --subresource status --type merge -p "$patch" --as bob &&
    refused "updates may not modify existing certificate content" \
        patch csr own --subresource status --type merge -p "{\"status\":{\"certificate\":\"TUlJ\"}}"
'

step 'a certificate in the wrong format is refused' '
    request other "/CN=other" && file other example.com/signer "server auth" &&
    refused "must contain at least one CERTIFICATE PEM block" \
        patch csr other --subresource status --type merge -p "{\"status\":{\"certificate\":\"TUlJ\"}}"
'

step 'a signer refuses usages and subjects that are not its own' '
    request server "/CN=server" && file server $CLIENT "server auth" &&
    k certificate approve server && within 20 condition server Failed SignerValidationFailure &&
    k get csr server --no-headers && says Approved,Failed &&
    request node "/CN=n1" && file node $SERVING "digital signature, server auth" &&
    k certificate approve node && within 20 condition node Failed SignerValidationFailure &&
    k get csr node -o jsonpath="{.status.conditions[1].message}" &&
    prints "subject organization is not system:nodes"
'

step 'the request of a kubelet server is signed when somebody approves it' '
    request serving "/O=system:nodes/CN=system:node:n1" subjectAltName=DNS:n1,IP:10.0.0.1 &&
    file serving $SERVING "digital signature, key encipherment, server auth" &&
    k certificate approve serving && within 20 issued serving &&
    openssl x509 -in "$dir/serving.crt" -noout -checkhost n1 >"$dir/out" && says "does match" &&
    openssl x509 -in "$dir/serving.crt" -noout -checkip 10.0.0.1 >"$dir/out" && says "does match"
'

NODE="/O=system:nodes/CN=system:node:n1"

step 'a bootstrapping node gets its certificate at once, if its user has the right' '
    k create clusterrolebinding bootstrap --clusterrole=system:node-bootstrapper \
        --group=system:bootstrappers &&
    k create clusterrolebinding nodes --group=system:bootstrappers \
        --clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient &&
    request boot "$NODE" &&
    as="--as system:bootstrap:abc --as-group system:bootstrappers" &&
    file boot $KUBELET "digital signature, client auth" && as= &&
    within 20 issued boot && condition boot Approved AutoApproved &&
    field csr/boot .spec.username system:bootstrap:abc &&
    field csr/boot .status.conditions[0].message \
        "Auto approving kubelet client certificate after SubjectAccessReview."
'

step 'a node renews its own certificate, and not that of another node' '
    k create clusterrolebinding renew --group=system:nodes \
        --clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient &&
    k create clusterrolebinding files --clusterrole=system:node-bootstrapper --group=system:nodes &&
    request renewal "$NODE" && ask renewal $KUBELET "digital signature, client auth" >"$dir/r.yaml" &&
    with boot create -f "$dir/r.yaml" && within 20 issued renewal &&
    field csr/renewal .status.conditions[0].message \
        "Auto approving self kubelet client certificate after SubjectAccessReview." &&
    request theft "/O=system:nodes/CN=system:node:n2" &&
    ask theft $KUBELET "digital signature, client auth" >"$dir/r.yaml" &&
    with boot create -f "$dir/r.yaml" &&
    request later "$NODE" && ask later $KUBELET "digital signature, client auth" >"$dir/r.yaml" &&
    with boot create -f "$dir/r.yaml" && within 20 issued later &&
    field csr/theft .status.conditions ""
'

step 'nobody becomes an administrator by a certificate' '
    request root "/O=system:masters/CN=root" &&
    file_refused "use of $CLIENT signer with system:masters group is not allowed" \
        root $CLIENT "client auth"
'

step 'what cannot be signed is refused' '
    request bad "/CN=bad" &&
    file_refused "the legacy signerName is not allowed via this API version" \
        bad kubernetes.io/legacy-unknown "client auth" &&
    file_refused "must be a fully qualified domain and path of the form" bad signer "client auth" &&
    file_refused "Unsupported value: \"flying\"" bad $CLIENT flying &&
    file_refused "Duplicate value: \"client auth\"" bad $CLIENT "client auth, client auth" &&
    file_refused "may not specify a duration less than 600 seconds (10 minutes)" \
        bad $CLIENT "client auth" "expirationSeconds: 599" &&
    echo hello >"$dir/bad.csr" &&
    file_refused "PEM block type must be CERTIFICATE REQUEST" bad $CLIENT "client auth"
'

step 'the subresources are listed' '
    k get --raw /apis/certificates.k8s.io/v1 &&
    json "{\"certificatesigningrequests\", \"certificatesigningrequests/approval\",
        \"certificatesigningrequests/status\"} == {r[\"name\"] for r in d[\"resources\"]}"
'

stop TERM
content

finish
