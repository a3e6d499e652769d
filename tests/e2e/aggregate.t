#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# APIServices on hekla up: those of the server itself, and an extension API server in a pod, which is
# called, discovered, watched, and lost. HEKLA names the program; needs kubectl, curl, python3, openssl.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl curl python3 openssl
needs_embedded 'the real control plane has an aggregator of its own'
verb=up options="--service-cluster-ip-range 127.$((129 + $$ % 100)).$(($$ / 100 % 250)).0/24"
here=$PWD/tests/e2e
silent=

end_others() {
    [ -z "$silent" ] || kill "$silent" 2>/dev/null
}

# make_certs: an authority, a certificate for the Service, and another authority.
make_certs() {
    ec='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
    for name in ca other; do
        # shellcheck disable=SC2086 # options must be split into words
        openssl req -x509 $ec -days 2 -subj /CN=$name -keyout "$dir/$name.key" -out "$dir/$name.crt"
    done
    # shellcheck disable=SC2086
    openssl req $ec -subj /CN=fish -keyout "$dir/key.pem" -out "$dir/fish.csr"
    printf 'subjectAltName=DNS:fish.ocean.svc\nextendedKeyUsage=serverAuth\n' >"$dir/ext"
    openssl x509 -req -days 2 -in "$dir/fish.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" \
        -CAcreateserial -extfile "$dir/ext" -out "$dir/cert.pem"
}

# print_service VERSION MEMBER...: an APIService of the group.
print_service() {
    version=$1
    shift
    cat <<YAML
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: $version.fish.example.com}
spec:
  group: fish.example.com
  version: $version
  groupPriorityMinimum: 1000
  versionPriority: 10
$(for line; do echo "  $line"; done)
YAML
}

write_files() {
    make_certs >"$dir/openssl" 2>&1
    cat >"$dir/server.yaml" <<YAML
apiVersion: v1
kind: Namespace
metadata: {name: ocean}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: fish, namespace: ocean}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: fish-delegates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: fish, namespace: ocean}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: fish-trusts, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: fish, namespace: ocean}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: server, namespace: ocean}
data:
  aggregate.py: |
$(sed 's/^/    /' "$here/aggregate.py")
  cert.pem: |
$(sed 's/^/    /' "$dir/cert.pem")
  key.pem: |
$(sed 's/^/    /' "$dir/key.pem")
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: fish, namespace: ocean}
spec:
  replicas: 1
  selector: {matchLabels: {app: fish}}
  template:
    metadata: {labels: {app: fish}}
    spec:
      serviceAccountName: fish
      terminationGracePeriodSeconds: 0
      containers:
      - name: fish
        image: python:3
        command: [python3, /srv/aggregate.py, serve, \$(IP), "8443", /srv/cert.pem, /srv/key.pem]
        env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
        volumeMounts: [{name: srv, mountPath: /srv}]
      volumes: [{name: srv, configMap: {name: server}}]
---
apiVersion: v1
kind: Service
metadata: {name: fish, namespace: ocean}
spec: {selector: {app: fish}, ports: [{port: 443, targetPort: 8443}]}
YAML
    to='service: {name: fish, namespace: ocean}'
    print_service v1 "$to" "caBundle: $(base64 -w0 "$dir/ca.crt")" >"$dir/v1.yaml"
    print_service v2 "$to" "insecureSkipTLSVerify: true" >"$dir/v2.yaml"
    print_service v3 "$to" "caBundle: $(base64 -w0 "$dir/other.crt")" >"$dir/v3.yaml"
    cat >"$dir/salmon.yaml" <<'YAML'
apiVersion: fish.example.com/v1
kind: Salmon
metadata: {name: red}
YAML
}

# c PATH ARG...: what curl gets, in $dir/out; sets $code in this shell.
c() {
    path=$1
    shift
    code=$(timeout 60 curl -skS -H "Authorization: Bearer $token" -o "$dir/out" -w '%{http_code}' \
        "$@" "$url$path" 2>"$dir/err")
}

# answers CODE PATH ARG...: curl gets that code.
answers() {
    want=$1
    shift
    c "$@"
    [ "$code" = "$want" ] && return 0
    echo "expected: $want"
    echo "got: $code"
    cat "$dir/out" "$dir/err"
    return 1
}

# condition VERSION MEMBER VALUE: of the APIService's condition Available.
condition() {
    field "apiservice/$1.fish.example.com" ".status.conditions[?(@.type==\"Available\")].$2" "$3"
}

fish=/apis/fish.example.com
start
write_files

step 'every group version of the server itself has a local APIService that is available' '
    within 10 field apiservice/v1.apps ".status.conditions[0].reason" Local &&
    within 10 field apiservice/v1alpha1.batch.volcano.sh ".status.conditions[0].reason" Local &&
    k get apiservice v1. -o json &&
    json "d[\"spec\"] == {\"version\": \"v1\", \"groupPriorityMinimum\": 18000, \"versionPriority\": 1}
          and d[\"metadata\"][\"labels\"][\"kube-aggregator.kubernetes.io/automanaged\"] == \"onstart\"
          and d[\"status\"][\"conditions\"][0][\"status\"] == \"True\"
          and d[\"status\"][\"conditions\"][0][\"message\"] ==
              \"Local APIServices are always available\"" &&
    k get apiservices && says "v1. Local True" "v1alpha1.batch.volcano.sh Local True"
'
step 'the ConfigMap for other API servers has both authorities' '
    k get configmap -n kube-system extension-apiserver-authentication -o json &&
    json "d[\"data\"][\"client-ca-file\"].startswith(\"-----BEGIN\")
          and d[\"data\"][\"requestheader-client-ca-file\"].startswith(\"-----BEGIN\")
          and d[\"data\"][\"client-ca-file\"] != d[\"data\"][\"requestheader-client-ca-file\"]
          and d[\"data\"][\"requestheader-allowed-names\"] == \"[\\\"front-proxy-client\\\"]\"
          and d[\"data\"][\"requestheader-username-headers\"] == \"[\\\"X-Remote-User\\\"]\""
'
step 'the ConfigMap comes back when it is deleted' '
    k delete configmap -n kube-system extension-apiserver-authentication &&
    within 10 k get configmap -n kube-system extension-apiserver-authentication
'
step 'a wrong APIService is refused with the words of Kubernetes' '
    sed "s/^metadata: .*/metadata: {name: v9.fish.example.com}/; s/versionPriority: 10/versionPriority: 0/" \
        "$dir/v1.yaml" >"$dir/wrong.yaml" &&
    refused "must be \`spec.version+\".\"+spec.group\`: \"v1.fish.example.com\"" \
        create -f "$dir/wrong.yaml" &&
    refused "spec.versionPriority: Invalid value: 0: must be positive and less than 1000" \
        create -f "$dir/wrong.yaml" &&
    { cat "$dir/v1.yaml"; echo "  insecureSkipTLSVerify: true"; } >"$dir/wrong.yaml" &&
    refused "may not be true if caBundle is present" create -f "$dir/wrong.yaml"
'
step 'without its Service an APIService is not available, with Kubernetes'"'"' reason' '
    k apply -f "$dir/v1.yaml" && [ ! -s "$dir/err" ] &&
    within 10 condition v1 reason ServiceNotFound && condition v1 status False &&
    condition v1 message "service/fish in \"ocean\" is not present" &&
    k get apiservice v1.fish.example.com && says "ocean/fish False (ServiceNotFound)" &&
    answers 503 $fish/v1/namespaces/default/salmons && prints "service unavailable"
'
step 'without a pod the Service has no endpoints' '
    k create namespace ocean &&
    k create service clusterip fish -n ocean --tcp=444:8443 &&
    within 10 condition v1 reason ServicePortError &&
    condition v1 message "service/fish in \"ocean\" is not listening on port 443" &&
    k delete service fish -n ocean &&
    k create service clusterip fish -n ocean --tcp=443:8443 &&
    within 10 condition v1 reason MissingEndpoints
'
step 'when the server runs, the APIService becomes available' '
    k apply -f "$dir/server.yaml" &&
    k wait --for=condition=Available apiservice/v1.fish.example.com --timeout=25s &&
    condition v1 reason Passed && condition v1 message "all checks passed"
'
step 'discovery has the group in all its forms' '
    k api-resources --api-group=fish.example.com && says "salmons sal fish.example.com/v1 true Salmon" &&
    k api-versions && says fish.example.com/v1 &&
    answers 200 /apis -H "Accept: application/json" &&
    json "[g[\"preferredVersion\"][\"groupVersion\"] for g in d[\"groups\"] if g[\"name\"] ==
        \"fish.example.com\"] == [\"fish.example.com/v1\"]" &&
    answers 200 $fish && json "d[\"kind\"] == \"APIGroup\" and len(d[\"versions\"]) == 1" &&
    answers 200 $fish/v1 && json "d[\"resources\"][0][\"kind\"] == \"Salmon\"" &&
    answers 200 /apis -H \
        "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" &&
    json "[(v[\"freshness\"], r[\"resource\"], r[\"scope\"], r[\"subresources\"][0][\"subresource\"])
        for g in d[\"items\"] if g[\"metadata\"][\"name\"] == \"fish.example.com\"
        for v in g[\"versions\"] for r in v[\"resources\"]] ==
        [(\"Current\", \"salmons\", \"Namespaced\", \"status\")]"
'
step 'objects are created, listed, read and deleted through the server' '
    k create -f "$dir/salmon.yaml" && says "salmon.fish.example.com/red created" &&
    k get salmons && says "red" && k get sal red -o name && prints salmon.fish.example.com/red &&
    k delete salmon red && refused "salmons.fish.example.com \"red\" not found" get salmon red
'
step 'a watch streams events as they happen' '
    curl -skSN -H "Authorization: Bearer $token" \
        "$url$fish/v1/namespaces/default/salmons?watch=true" >"$dir/events" & watcher=$!
    sed s/red/blue/ "$dir/salmon.yaml" >"$dir/blue.yaml" && k create -f "$dir/blue.yaml" &&
    within 10 grep -q "\"name\": \"blue\"" "$dir/events"
    result=$?
    kill $watcher
    exit $result
'
step 'a WebSocket goes through to the server' '
    python3 "$here/proxy.py" echo "$url$fish/v1/echo" "$token"
'
step 'the server learns who asks, and nobody can pretend to be another' '
    answers 200 "$fish/v1/whoami?a=b%2Fc" -H "X-Remote-User: root" -H "X-Remote-Group: fake" &&
    json "d[\"user\"] == \"admin\" and d[\"groups\"] == [\"system:masters\", \"system:authenticated\"]
          and d[\"path\"] == \"$fish/v1/whoami?a=b%2Fc\" and d[\"host\"].endswith(\":8443\")" &&
    answers 200 $fish/v1/whoami -H "Impersonate-User: ann" -H "Impersonate-Group: staff" \
        -H "Impersonate-Uid: 7"
    [ "$code" = 403 ] || json "d[\"user\"] == \"ann\" and d[\"uid\"] == \"7\""
'
step 'the rights of a user are checked here first, and by the server through reviews' '
    k create serviceaccount angler && k create clusterrole angler --verb=get,list \
        --resource=salmons.fish.example.com &&
    token=$(kubectl create token angler) &&
    answers 403 $fish/v1/namespaces/default/salmons &&
    says "cannot list resource \\\"salmons\\\" in API group \\\"fish.example.com\\\"" &&
    k create rolebinding angler --clusterrole=angler --serviceaccount=default:angler &&
    answers 200 $fish/v1/namespaces/default/salmons && says blue &&
    answers 403 $fish/v1/namespaces/default/salmons -d "{}" && silent "extension server"
'
step 'a caller without the certificate is not believed by the server' '
    ip=$(kubectl get pod -n ocean -o "jsonpath={.items[0].status.podIP}") &&
    curl -skS -H "X-Remote-User: admin" -H "X-Remote-Group: system:masters" \
        "https://$ip:8443$fish/v1" >"$dir/out" && says Unauthorized
'
step 'a version that skips the check of the certificate works' '
    k apply -f "$dir/v2.yaml" &&
    k wait --for=condition=Available apiservice/v2.fish.example.com --timeout=25s &&
    answers 200 $fish/v2/namespaces/default/salmons && says blue &&
    answers 200 $fish && json "len(d[\"versions\"]) == 2"
'
step 'a certificate of another authority makes requests fail with the reason' '
    k apply -f "$dir/v3.yaml" &&
    k wait --for=condition=Available apiservice/v3.fish.example.com --timeout=25s &&
    answers 503 $fish/v3/namespaces/default/salmons &&
    says "error trying to reach service: tls: failed to verify certificate: x509: certificate signed by unknown authority" &&
    answers 200 $fish/v1/namespaces/default/salmons
'
step 'a redirect of the server is not followed or passed on' '
    answers 502 $fish/v1/away && says "the backend attempted to redirect this request"
'
step 'a server that never answers stops nothing' '
    python3 "$here/aggregate.py" silence >"$dir/silent.port" & echo $! >"$dir/silent.pid"
    within 10 test -s "$dir/silent.port" && port=$(cat "$dir/silent.port") &&
    printf "%s\n" "apiVersion: v1" "kind: Service" "metadata: {name: silent, namespace: ocean}" \
        "spec: {ports: [{port: 443}]}" "---" "apiVersion: v1" "kind: Endpoints" \
        "metadata: {name: silent, namespace: ocean}" \
        "subsets: [{addresses: [{ip: 127.0.0.1}], ports: [{port: $port}]}]" >"$dir/silent.yaml" &&
    k apply -f "$dir/silent.yaml" &&
    print_service v4 "service: {name: silent, namespace: ocean}" "insecureSkipTLSVerify: true" \
        >"$dir/v4.yaml" && k apply -f "$dir/v4.yaml" &&
    within 20 condition v4 reason FailedDiscoveryCheck &&
    k get apiservice v4.fish.example.com -o yaml && says "failing or missing response from" &&
    answers 503 $fish/v4/namespaces/default/salmons &&
    answers 200 $fish/v1/namespaces/default/salmons && k get pods -A && k api-resources
    result=$?
    kill "$(cat "$dir/silent.pid")"
    exit $result
'
step 'when the server is gone, requests get a 503 and the rest works' '
    k delete apiservice v2.fish.example.com v3.fish.example.com v4.fish.example.com &&
    k scale deployment fish -n ocean --replicas=0 &&
    within 15 condition v1 reason MissingEndpoints &&
    answers 503 $fish/v1/namespaces/default/salmons && k get pods &&
    k get --raw /apis && says fish.example.com
'
step 'when it is back, it is available again' '
    k scale deployment fish -n ocean --replicas=1 &&
    k wait --for=condition=Available apiservice/v1.fish.example.com --timeout=25s &&
    within 10 answers 200 $fish/v1/namespaces/default/salmons
'
step 'a deleted APIService takes its group with it' '
    k delete apiservice v1.fish.example.com &&
    answers 404 $fish/v1/namespaces/default/salmons && answers 404 $fish &&
    k get --raw /apis && silent fish.example.com
'
step 'a custom resource has an APIService as long as it is served' '
    cat >"$dir/crd.yaml" <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: birds.air.example.com}
spec:
  group: air.example.com
  names: {kind: Bird, plural: birds}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
YAML
    k apply -f "$dir/crd.yaml" &&
    within 10 field apiservice/v1.air.example.com ".spec.groupPriorityMinimum" 1000 &&
    k delete apiservice v1.air.example.com && within 10 k get apiservice v1.air.example.com &&
    k delete crd birds.air.example.com && within 10 gone apiservice/v1.air.example.com
'
stop USR1
step 'the server exits with 0' '[ "$status" -eq 0 ]'
finish
