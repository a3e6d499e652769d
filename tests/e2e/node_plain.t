#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up where containers are plain processes, as on machines that permit neither namespaces nor
# control groups: what cannot be held to is said.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
verb=up options=--no-isolation

# pod NAME LINE...: a container that runs true; the lines go into the spec.
pod() {
    name=$1
    shift
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $name}
spec:
  schedulerName: volcano
  automountServiceAccountToken: false
  restartPolicy: Never
$(for line in "$@"; do echo "  $line"; done)
YAML
}

# is TYPE/NAME PATH VALUE
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ]
}

# described POD TEXT
described() {
    kubectl describe pod "$1" | grep -F -- "$2"
}

start

step 'a pod with limits runs' '
    pod limited "containers: [{name: main, image: none, command: [\"true\"], resources: {limits: {cpu: 100m, memory: 64Mi}}}]" |
        kubectl create -f - && within 20 is pod/limited .status.phase Succeeded
'
step 'status and an event say that the limits are not enforced' '
    k get pod limited -o "jsonpath={.status.message}" &&
        says "cpu limits are not enforced: no cgroup controller" &&
        says "memory limits hold for each process alone" &&
        within 20 described limited "Message:" && within 20 described limited LimitsNotEnforced
'
step 'a pod without limits gets no such message' '
    pod free "containers: [{name: main, image: none, command: [\"true\"]}]" | kubectl create -f - &&
        within 20 is pod/free .status.phase Succeeded && field pod/free .status.message ""
'
step 'a pod whose mounts are impossible is not started' '
    pod mounts "volumes: [{name: v, emptyDir: {}}]" \
        "containers: [{name: main, image: none, command: [\"true\"], volumeMounts: [{name: v, mountPath: /v}]}]" |
        kubectl create -f - && within 20 is pod/mounts .status.phase Failed && k get pod mounts -o yaml &&
        says "a mount needs mount namespaces"
'
stop TERM
content
finish
