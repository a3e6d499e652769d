#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The subresource proxy of pods, Services and nodes on hekla up, with an HTTP server in a pod. HEKLA
# names the program; needs kubectl, curl, python3 and openssl.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl curl python3 openssl
needs_embedded 'the nodes of the real control plane have no addresses of pods'
verb=up options="--service-cluster-ip-range 127.$((129 + $$ % 100)).$(($$ / 100 % 250)).0/24"
here=$PWD/tests/e2e

end_others() {
    halt node KILL
    "$HEKLA" down --data-dir "$dir/node-data" --pods >/dev/null 2>&1
}

# write_files: a pod whose server says what it was sent, Services in front of it, and a user with few
# rights.
write_files() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=pod \
        -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
    cat >"$dir/pods.yaml" <<YAML
apiVersion: v1
kind: ConfigMap
metadata: {name: server}
data:
  proxy.py: |
$(sed 's/^/    /' "$here/proxy.py")
  cert.pem: |
$(sed 's/^/    /' "$dir/cert.pem")
  key.pem: |
$(sed 's/^/    /' "$dir/key.pem")
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: web
    image: python:3
    command: [python3, /srv/proxy.py, serve, \$(IP), "9376"]
    env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    ports: [{name: http, containerPort: 9376}]
    readinessProbe: {tcpSocket: {port: 9376}, periodSeconds: 1}
    volumeMounts: [{name: srv, mountPath: /srv}]
  - name: tls
    image: python:3
    command: [python3, /srv/proxy.py, serve, \$(IP), "9443", /srv/cert.pem, /srv/key.pem]
    env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    readinessProbe: {tcpSocket: {port: 9443}, periodSeconds: 1}
    volumeMounts: [{name: srv, mountPath: /srv}]
  volumes: [{name: srv, configMap: {name: server}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}, {name: https, port: 443, targetPort: 9443}]
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec: {selector: {app: nothing}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: forged}
subsets: [{addresses: [{ip: 127.0.0.1}], ports: [{port: ${url##*:}}]}]
---
apiVersion: v1
kind: Service
metadata: {name: forged}
spec: {ports: [{port: ${url##*:}}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods/proxy], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
YAML
}

# c PATH ARG...: what curl gets from below /api/v1/namespaces/default, in $dir/out and its head in
# $dir/head; sets $code in this shell.
c() {
    path=$1
    shift
    code=$(timeout 60 curl -skS --path-as-is -H "Authorization: Bearer $token" -o "$dir/out" \
        -D "$dir/head" -w '%{http_code}' "$@" "$url/api/v1/namespaces/default/$path" 2>"$dir/err")
}

# answers CODE PATH ARG...: curl gets that code.
answers() {
    want=$1
    shift
    c "$@"
    [ "$code" = "$want" ] && return 0
    echo "expected: $want"
    echo "got: $code"
    cat "$dir/head" "$dir/out" "$dir/err"
    return 1
}

# header TEXT: the head of the answer has the line.
header() {
    tr -d '\r' <"$dir/head" | grep -qixF -- "$1" && return 0
    echo "expected: $1"
    cat "$dir/head"
    return 1
}

no_header() {
    grep -qi "^$1:" "$dir/head" || return 0
    cat "$dir/head"
    return 1
}

pod=pods/web:9376/proxy
start
write_files

step 'a pod with an HTTP server becomes ready' '
    k apply -f "$dir/pods.yaml" &&
    k wait --for=condition=Ready pod/web --timeout=25s
'
step 'kubectl get --raw reads from a pod, with and without its port' '
    k get --raw "/api/v1/namespaces/default/$pod/a/b?c=d&c=e%2Ff" &&
    json "d[\"method\"] == \"GET\" and d[\"path\"] == \"/a/b?c=d&c=e%2Ff\"" &&
    k get --raw /api/v1/namespaces/default/pods/web/proxy/ && json "d[\"path\"] == \"/\""
'
step 'every method reaches the pod with its body' '
    for method in POST PUT PATCH DELETE OPTIONS; do
        answers 200 $pod/x -X $method -d "some body" &&
        json "d[\"method\"] == \"$method\" and d[\"bytes\"] == 9" || exit 1
    done
    answers 200 $pod/x --head && header "Content-Type: application/json" && [ ! -s "$dir/body" ]
'
step 'the path behind proxy is passed as it is' '
    answers 200 "$pod/x//a%2Fb/../c;d=e/?%zz" && json "d[\"path\"] == \"/x//a%2Fb/../c;d=e/?%zz\"" &&
    answers 200 "$pod/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18" &&
    json "d[\"path\"].endswith(\"/17/18\")"
'
step 'a path without the last slash is redirected, with its query' '
    answers 301 "$pod?a=b" && header "Location: /api/v1/namespaces/default/$pod/?a=b" &&
    answers 200 "$pod" -d x && json "d[\"path\"] == \"/\""
'
step 'the pod sees who asks from where, and no credentials' '
    answers 200 $pod/h -H "X-Remote-User: admin" -H "Impersonate-Group: system:masters" \
        -H "Impersonate-User: admin" -H "Connection: x-hop" -H "X-Hop: 1" -H "X-End: 2" \
        -H "X-Forwarded-For: 9.9.9.9" &&
    json "d[\"headers\"][\"x-forwarded-for\"] == \"9.9.9.9, 127.0.0.1\"
          and d[\"headers\"][\"x-forwarded-uri\"] == \"/api/v1/namespaces/default/$pod/h\"
          and d[\"headers\"][\"x-end\"] == \"2\" and d[\"headers\"][\"host\"] == \"${url#https://}\"
          and not {\"authorization\", \"x-remote-user\", \"impersonate-group\", \"x-hop\"} & set(d[\"headers\"])"
'
step 'the client gets the headers of the pod, without those of its connection' '
    answers 200 $pod/headers && header "X-Pod: 1" && header "X-Pod: 2" && header "Set-Cookie: a=b" &&
    no_header Keep-Alive && no_header Access-Control-Allow-Origin
'
step 'a redirect to the pod itself leads through the proxy, another one away' '
    answers 302 $pod/redirect && header "Location: /api/v1/namespaces/default/$pod/target?a=b" &&
    answers 302 $pod/elsewhere && header "Location: http://other.example/x"
'
step 'an answer in chunks arrives whole' '
    answers 200 $pod/chunks && [ "$(grep -c chunk "$dir/out")" -eq 20 ]
'
step 'an answer arrives while the pod still writes it' '
    curl -skSN -H "Authorization: Bearer $token" "$url/api/v1/namespaces/default/$pod/slow" \
        >"$dir/slow" & slow=$!
    within 10 grep -q "chunk 0" "$dir/slow" && ! grep -q "chunk 4" "$dir/slow" && wait $slow &&
    grep -q "chunk 4" "$dir/slow"
'
step '50 MB pass in both directions, with and without a length' '
    head -c 52428800 /dev/urandom >"$dir/blob" && sum=$(sha256sum <"$dir/blob" | cut -d" " -f1) &&
    answers 200 $pod/put -T "$dir/blob" &&
    json "d[\"sha256\"] == \"$sum\" and d[\"framing\"] == \"length\"" &&
    answers 200 $pod/put -T "$dir/blob" -H "Transfer-Encoding: chunked" &&
    json "d[\"sha256\"] == \"$sum\" and d[\"framing\"] == \"chunked\"" &&
    answers 200 $pod/large && header "Content-Length: 52428800" &&
    [ "$(stat -c %s "$dir/out")" -eq 52428800 ]
'
step 'a pod that answers before the end of the body is heard' '
    head -c 10485760 "$dir/blob" >"$dir/part" &&
    answers 403 $pod/refuse -T "$dir/part" -H "Expect:" && prints no
'
step 'an answer that the pod cuts off is seen to be incomplete' '
    c $pod/cut
    cat "$dir/err"
    grep -q "curl: (18)\|curl: (56)" "$dir/err" && grep -q hello "$dir/out"
'
step 'a WebSocket goes through, both ways' '
    python3 "$here/proxy.py" echo "$url/api/v1/namespaces/default/$pod/echo" "$token" &&
    python3 "$here/proxy.py" echo "$url/api/v1/namespaces/default/services/web:http/proxy/echo" \
        "$token"
'
# policy EXPRESSION: it must hold for proxies of pods.
policy() {
    kubectl apply -f - <<YAML
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: proxies}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CONNECT], resources: [pods/proxy]}
  validations:
  - expression: '$1'
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: proxies}
spec: {policyName: proxies, validationActions: [Deny]}
YAML
}

# has_left: the pod saw a client hang up.
has_left() {
    answers 200 $pod/left && json 'd == ["/wait"]'
}
step 'the pod is told when a client leaves before the answer' '
    python3 "$here/proxy.py" leave "$url/api/v1/namespaces/default/$pod/wait" "$token" &&
    within 10 has_left
'
step 'a pod over TLS is reached without checking its certificate' '
    answers 200 pods/https:web:9443/proxy/x && json "d[\"path\"] == \"/x\""
'
step 'a dead port, a wrong port and a wrong scheme are told as in Kubernetes' '
    ip=$(kubectl get pod web -o "jsonpath={.status.podIP}")
    answers 503 pods/web:1/proxy/ &&
    json "d[\"reason\"] == \"ServiceUnavailable\" and d[\"message\"] ==
        \"error trying to reach service: dial tcp $ip:1: connect: connection refused\"" &&
    answers 503 pods/web:zz/proxy/ && says "unknown port" &&
    answers 503 pods/web:99999/proxy/ && says "invalid port" &&
    answers 400 pods/ftp:web:1/proxy/ && says "invalid pod request \\\"ftp:web:1\\\"" &&
    answers 404 pods/nobody:1/proxy/ && says "pods \\\"nobody\\\" not found" &&
    answers 503 pods/https:web:9376/proxy/ && says "error trying to reach service" &&
    answers 503 pods/web:9443/proxy/ && says "error trying to reach service"
'
step 'a pod that talks nonsense is a 503' '
    answers 503 $pod/nonsense && says "error trying to reach service: malformed HTTP response"
'
step 'a Service is reached by port name, by number, and over TLS' '
    for id in web:http web:80 https:web:https https:web:443; do
        answers 200 services/$id/proxy/s?t=u && json "d[\"path\"] == \"/s?t=u\"" || exit 1
    done
'
step 'a Service without endpoints or without the port is a 503' '
    answers 503 services/empty:80/proxy/ &&
    json "d[\"message\"] == \"no endpoints available for service \\\"empty\\\"\"" &&
    refused "no endpoints available for service \"empty\"" \
        get --raw /api/v1/namespaces/default/services/empty/proxy/ &&
    answers 503 services/web:81/proxy/ &&
    says "no service port 81 found for service \\\"web\\\"" &&
    answers 503 services/web:nope/proxy/ && says "no endpoints available" &&
    answers 404 services/nothing/proxy/ && says "services \\\"nothing\\\" not found"
'
step 'Endpoints that no pod stands behind lead nowhere' '
    answers 503 "services/https:forged:${url##*:}/proxy/version" && says "no endpoints available"
'
step 'a node shows its pods and its health' '
    node=$(kubectl get nodes -o "jsonpath={.items[0].metadata.name}")
    k get --raw "/api/v1/nodes/$node/proxy/healthz" && prints ok &&
    k get --raw "/api/v1/nodes/$node/proxy/pods" && says "\"name\":\"web\"" &&
    k get --raw "/api/v1/nodes/$node/proxy/containerLogs/default/web/web" &&
    refused "nodes \"n\" not found" get --raw /api/v1/nodes/n/proxy/healthz
'
step 'a node of another agent is asked over the network' '
    launch agent node --data-dir "$dir/node-data" --listen 127.0.0.1:0 --node far \
        --client-ca-file "$data/ca.crt" && echo "$node" >"$dir/node.pid" &&
    k wait --for=condition=Ready node/far --timeout=20s &&
    k get --raw /api/v1/nodes/far/proxy/healthz && prints ok &&
    k get --raw "/api/v1/nodes/far:$(port node pods)/proxy/pods" && says PodList &&
    refused "could not find the requested resource" get --raw /api/v1/nodes/far/proxy/nothing
    result=$?
    kill "$(cat "$dir/node.pid")"
    exit $result
'
step 'bodies and upgrades wait until policies have answered' '
    policy "!has(object.path) || object.path != \"/no\"" && sum=$(sha256sum <"$dir/part" | cut -d" " -f1) &&
    answers 200 $pod/put -T "$dir/part" -H "Transfer-Encoding: chunked" && json "d[\"sha256\"] == \"$sum\"" &&
    answers 200 $pod/put -T "$dir/part" && json "d[\"sha256\"] == \"$sum\"" &&
    python3 "$here/proxy.py" echo "$url/api/v1/namespaces/default/$pod/echo" "$token" &&
    answers 422 $pod/no -T "$dir/part" -H "Expect:" && kubectl delete validatingadmissionpolicy proxies
'
step 'rights are those of the subresource, with the verb of the method' '
    token=$(kubectl create token reader) &&
    answers 200 $pod/ && answers 403 $pod/ -d x &&
    says "cannot create resource \\\"pods/proxy\\\"" &&
    answers 403 services/web:http/proxy/ && says "cannot get resource \\\"services/proxy\\\"" &&
    answers 403 ../../nodes/n/proxy/pods --no-path-as-is
    [ "$code" = 403 ]
'
step 'a body for the proxy without rights is refused' '
    token=wrong && answers 401 $pod/put -T "$dir/blob" -H "Expect: 100-continue" &&
    says Unauthorized && answers 401 $pod/put -T "$dir/part" -H "Expect:"
'
step 'kubectl proxy serves the pod to a browser' '
    mkfifo "$dir/said_proxy"
    kubectl proxy --port=0 >"$dir/proxy.out" 2>&1 & echo $! >"$dir/proxy.pid"
    within 10 grep -q "Starting to serve on" "$dir/proxy.out" &&
    at=$(sed -n "s/Starting to serve on //p" "$dir/proxy.out") &&
    curl -sSL "http://$at/api/v1/namespaces/default/$pod" >"$dir/out" && json "d[\"path\"] == \"/\""
    result=$?
    kill "$(cat "$dir/proxy.pid")"
    exit $result
'
step 'discovery lists the three subresources' '
    k get --raw /api/v1 &&
    json "{r[\"name\"]: r[\"kind\"] for r in d[\"resources\"] if r[\"name\"].endswith(\"/proxy\")} ==
        {\"pods/proxy\": \"PodProxyOptions\", \"services/proxy\": \"ServiceProxyOptions\",
         \"nodes/proxy\": \"NodeProxyOptions\"}"
'
stop USR1
step 'the server exits with 0' '[ "$status" -eq 0 ]'
finish
