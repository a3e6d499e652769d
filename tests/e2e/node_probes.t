#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with this machine as its node: probes and hooks of real processes.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3
needs_mounts
verb=up

# pod NAME SCRIPT LINE...: runs the script in a shell; the lines go into the container.
pod() {
    name=$1 script=$2
    shift 2
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $name}
spec:
  schedulerName: volcano
  restartPolicy: ${policy:-Always}
  terminationGracePeriodSeconds: 5
  volumes: [{name: room, hostPath: {path: $dir}}]
  containers:
  - name: main
    image: none
    command: [sh, -c, '$script']
    env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    volumeMounts: [{name: room, mountPath: /room}]
$(for line in "$@"; do echo "    $line"; done)
YAML
}

# is TYPE/NAME PATH VALUE
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ]
}

# told POD TEXT: an event about it says so.
told() {
    kubectl get events --field-selector "involvedObject.name=$1" | grep -F -- "$2"
}

# exists FILE
exists() {
    [ -e "$1" ]
}

# shellcheck disable=SC2016 # the variable is the container's
# One that serves by HTTP, and one that answers every connection with the frames of a gRPC server
# that serves.
web='cd /tmp && exec python3 -m http.server --bind $IP 8080'
cat >"$dir/grpc.py" <<'PYTHON'
import os, socket
server = socket.create_server((os.environ["IP"], 50051))
while True:
    peer, _ = server.accept()
    peer.recv(1000)
    peer.sendall(bytes.fromhex("000000040000000000" "00000101040000000188" "000007000000000001" "00000000020801"))
    peer.close()
PYTHON
ready='.status.containerStatuses[0].ready'
restarts='.status.containerStatuses[0].restartCount'
start
api_port=${url##*:}

step 'a pod is ready when its GET is answered' '
    pod web "$web" "readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1}" |
        kubectl create -f - && within 30 is pod/web "$ready" true
'
step 'probes over TLS accept any certificate' '
    pod tls "exec sleep 1000" "readinessProbe: {httpGet: {host: 127.0.0.1, port: $api_port, path: /livez, scheme: HTTPS}, periodSeconds: 1}" |
        kubectl create -f - && within 30 is pod/tls "$ready" true
'
step 'a gRPC health service is asked' '
    pod grpc "exec python3 /room/grpc.py" "readinessProbe: {grpc: {port: 50051}, periodSeconds: 1}" |
        kubectl create -f - && within 30 is pod/grpc "$ready" true
'
step 'a pod that does not answer is not ready, with the reason' '
    pod deaf "exec sleep 1000" "readinessProbe: {tcpSocket: {port: 9}, periodSeconds: 1, failureThreshold: 1}" |
        kubectl create -f - && within 30 told deaf "Readiness probe of container main failed" &&
        field pod/deaf "$ready" false
'
step 'a container that fails its liveness probe is restarted' '
    pod frozen "exec sleep 1000" "livenessProbe: {exec: {command: [\"false\"]}, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 1}" |
        kubectl create -f - && within 30 is pod/frozen "$restarts" 1
'
step 'hooks run when a container has started and before it ends' '
    pod hooked "trap \"touch /room/term; exit 0\" TERM; while :; do sleep 0.1; done" \
        "lifecycle: {postStart: {exec: {command: [touch, /room/started]}}, preStop: {exec: {command: [sh, -c, \"test ! -e /room/term && touch /room/stopping\"]}}}" |
        kubectl create -f - && within 30 exists "$dir/started" && kubectl delete pod hooked &&
        [ -e "$dir/stopping" ] && [ -e "$dir/term" ]
'
step 'a postStart hook whose request fails ends its container' '
    policy=Never && pod alone "exec sleep 1000" "lifecycle: {postStart: {httpGet: {port: 9}}}" |
        kubectl create -f - && within 30 is pod/alone .status.phase Failed &&
        within 30 told alone FailedPostStartHook
'
kubectl delete pod --all --grace-period=1 >/dev/null 2>&1
stop TERM
content
finish
