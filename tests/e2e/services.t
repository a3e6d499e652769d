#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Services on hekla up, with this machine as the node: their addresses and names lead from one pod to
# others, in front of a Deployment, headless, and for the API itself. HEKLA names the program; needs
# kubectl, python3 and the right to make mount namespaces.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3
needs_embedded 'a real control plane has Services of its own'
unshare -rm true 2>/dev/null || needs_mounts
# A network that no other test uses.
net=127.$((129 + $$ % 100)).$(($$ / 100 % 250))
verb=up options="--service-cluster-ip-range $net.0/24"

# may_listen PORT: whether this user may listen there.
may_listen() {
    python3 -c "import socket; socket.socket().bind(('$net.254', $1))" 2>/dev/null
}

# in_pod COMMAND...: runs it in the pod "client".
in_pod() {
    k exec client -- "$@"
}

# fetch URL: what the pod "client" gets from there.
fetch() {
    in_pod python3 -c "
import urllib.request
print(urllib.request.urlopen('$1', timeout=5).read().decode())"
}

# answers URL: a pod of the Deployment answers.
answers() {
    fetch "$1" && says "I am web-"
}

# resolves NAME COUNT: to so many addresses.
resolves() {
    in_pod getent ahostsv4 "$1" &&
        [ "$(awk '$2 == "STREAM" { print $1 }' "$dir/out" | sort -u | wc -l)" -eq "$2" ]
}

# endpoints SERVICE COUNT: its EndpointSlices have so many that are ready.
endpoints() {
    k get endpointslices -l "kubernetes.io/service-name=$1" \
        -o 'jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}' &&
        [ "$(wc -w <"$dir/out")" -eq "$2" ]
}

# write_web: an HTTP server that says its name, two replicas of it, and Services in front of them.
write_web() {
    cat >"$dir/web.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  server.py: |
    import http.server, os, socket
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"I am " + socket.gethostname().encode())
        def log_message(self, *args):
            pass
    http.server.ThreadingHTTPServer((os.environ["POD_IP"], 9376), Handler).serve_forever()
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: python:3
        command: [python3, /srv/server.py]
        env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ports: [{name: http, containerPort: 9376}]
        readinessProbe: {httpGet: {port: http}, periodSeconds: 1}
        volumeMounts: [{name: srv, mountPath: /srv}]
      volumes: [{name: srv, configMap: {name: web}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: web-headless}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 9376}]}
---
apiVersion: v1
kind: Service
metadata: {name: web-node}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 8080, targetPort: 9376}]}
YAML
}

# write_set: a StatefulSet with a headless Service.
write_set() {
    cat >"$dir/set.yaml" <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: db, image: x, command: [sleep, "1000"]}]
YAML
}

# address SERVICE: prints its cluster IP.
address() {
    kubectl get service "$1" -o 'jsonpath={.spec.clusterIP}'
}

start
write_web
write_set

step 'a Service gets an address of the range, and a slice with the pods behind it' '
    k run client --image=x --command -- sleep 1000 && k apply -f "$dir/web.yaml" &&
        k rollout status deployment/web --timeout=60s &&
        k get service web -o jsonpath="{.spec.clusterIP}" && grep -q "^$net\\." "$dir/out" &&
        within 20 endpoints web 2 && k get endpoints web && says ":9376,"
'
step 'it answers in a pod, under its address and all of its names, at the named target port' '
    k wait --for=condition=Ready pod/client --timeout=30s &&
        within 20 answers "http://$(address web):8080/" &&
        for name in web web.default web.default.svc web.default.svc.cluster.local; do
            within 20 answers "http://$name:8080/" || exit 1
        done
'
step 'both pods of the Service get connections' '
    for i in 1 2 3 4; do fetch http://web:8080/ && cat "$dir/out"; done >"$dir/turns" &&
        [ "$(sort -u "$dir/turns" | wc -l)" -eq 2 ]
'
step 'pods of another namespace know the Service by its longer names only' '
    k create namespace other && k run -n other guest --image=x --command -- sleep 1000 &&
        k wait -n other --for=condition=Ready pod/guest --timeout=30s &&
        within 10 k exec -n other guest -- getent hosts web.default.svc && says "$(address web)" &&
        for name in kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local; do
            k exec -n other guest -- getent hosts "$name" && says "$net.1" || exit 1
        done &&
        refused "" exec -n other guest -- getent hosts web
'
step 'a headless Service resolves to all pods' '
    within 20 resolves web-headless.default.svc.cluster.local 2
'
step 'a node port of the machine leads to the Service' '
    port=$(kubectl get service web-node -o "jsonpath={.spec.ports[0].nodePort}") &&
        within 20 curl -sS --max-time 5 "http://127.0.0.1:$port/" && grep -q "I am web-" "$dir/said"
'
step 'a pod of a StatefulSet is found by its name' '
    k apply -f "$dir/set.yaml" && k rollout status statefulset/db --timeout=60s &&
        ip=$(kubectl get pod db-1 -o "jsonpath={.status.podIP}") &&
        within 20 in_pod getent hosts db-1.db.default.svc.cluster.local && says "$ip" &&
        resolves db 2
'
step 'a deleted pod is removed from the endpoints' '
    k scale deployment web --replicas=1 && within 30 endpoints web 1 &&
        within 20 resolves web-headless 1 &&
        for i in 1 2 3 4; do fetch http://web:8080/ && cat "$dir/out"; done >"$dir/turns" &&
        [ "$(sort -u "$dir/turns" | wc -l)" -eq 1 ]
'
step 'without a pod the connection is refused' '
    k scale deployment web --replicas=0 && within 30 endpoints web 0 &&
        within 10 refused "Connection refused" exec client -- python3 -c "
import socket
socket.create_connection((\"web\", 8080), 5)" &&
        k scale deployment web --replicas=2 && within 30 endpoints web 2
'
if may_listen 443; then
    step 'the API is a Service: the account of a pod is known there, and its name certified' '
        k get service kubernetes -o jsonpath="{.spec.clusterIP}" && prints "$net.1" &&
            k create serviceaccount bot && k create clusterrolebinding bot --clusterrole=view \
                --serviceaccount=default:bot &&
            k run caller --image=x --overrides="{\"spec\":{\"serviceAccountName\":\"bot\"}}" \
                --command -- sleep 1000 &&
            k wait --for=condition=Ready pod/caller --timeout=30s &&
            k exec caller -- python3 -c "
import ssl, urllib.request
d = \"/var/run/secrets/kubernetes.io/serviceaccount/\"
for host in (\"kubernetes.default.svc\", \"kubernetes.default.svc.cluster.local\", \"kubernetes\", \"$net.1\"):
    r = urllib.request.Request(\"https://\" + host + \"/api/v1/namespaces/default/services/web\",
                               headers={\"Authorization\": \"Bearer \" + open(d + \"token\").read()})
    print(host, urllib.request.urlopen(r, context=ssl.create_default_context(cafile=d + \"ca.crt\")).status)
" && says "kubernetes.default.svc 200" "kubernetes.default.svc.cluster.local 200" "kubernetes 200" \
            "$net.1 200"
    '
    step 'the Service kubernetes is created again after its deletion' '
        k delete service kubernetes && within 10 k get service kubernetes && says "$net.1"
    '
fi
before=$(address web)
stop TERM
start
step 'after a restart the addresses are the same, and lead to the same pods' '
    [ "$(address web)" = "$before" ] && within 20 answers http://web:8080/ &&
        refused "provided IP is already allocated" create service clusterip thief --tcp=80 \
            --clusterip="$before"
'
step 'the name of a deleted Service is forgotten' '
    k delete service web && within 20 refused "" exec client -- getent hosts web
'
stop USR1 # ends the pods, too
finish
