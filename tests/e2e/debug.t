#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# kubectl debug on hekla up: ephemeral containers, copies of pods, and pods on a node.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs curl ps
needs_mounts
scripts/kubectls >"$dir/kubectls" 2>"$dir/missing"
kubectl=$(sed -n 's/^current //p' "$dir/kubectls")
old=$(sed -n 's/^1.20 //p' "$dir/kubectls")
[ -n "$kubectl" ] || skip_all 'no current kubectl'
verb=up
forever=36019$$ # seconds that nobody else on this machine sleeps
talk=$PWD/tests/e2e/terminal.py

cat >"$dir/pods.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: none, command: [sleep, '$forever']}
  - {name: side, image: none, command: [sleep, '2$forever']}
---
apiVersion: v1
kind: Pod
metadata: {name: short}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: none, command: [sh, -c, 'while [ ! -e $dir/go ]; do sleep 0.1; done']}
YAML

# debug ARG...: kubectl debug, with the debug container's output in $dir/out; input from stdin.
debug() {
    timeout 60 "$kubectl" debug --profile=general "$@" >"$dir/out" 2>"$dir/err" && return 0
    echo "kubectl debug $*: exit status $?"
    cat "$dir/out" "$dir/err"
    return 1
}

# debugs POD CONTAINER PATH VALUE: the status of the ephemeral container has that value.
debugs() {
    field "pod/$1" ".status.ephemeralContainerStatuses[?(@.name==\"$2\")]$3" "$4"
}

# patch_pod POD CONTAINERS: the answer to a patch of its ephemeral containers, as JSON.
patch_pod() {
    curl -sk --max-time 20 -X PATCH -H "Authorization: Bearer $token" \
        -H "Content-Type: application/strategic-merge-patch+json" \
        "$url/api/v1/namespaces/default/pods/$1/ephemeralcontainers" \
        -d "{\"spec\":{\"ephemeralContainers\":[$2]}}" >"$dir/out"
}

sleeps() {
    for process in $(grep -lzx -- "$1" /proc/[0-9]*/cmdline 2>/dev/null); do
        [ "$(tr "\0" " " <"$process" 2>/dev/null)" = "sleep $1 " ] && return 0
    done
    return 1
}

nobody_sleeps() {
    ! sleeps "$1"
}

start

step 'the pods run' '
    k apply -f "$dir/pods.yaml" && k wait --for=condition=Ready pod/p pod/short --timeout=20s
'
step 'a debug container takes input and prints output' '
    echo "echo out \$((6 * 7)); hostname; exit 3" | debug p -i --image=busybox -c one -- sh &&
    says "out 42" && says p && debugs p one .state.terminated.exitCode 3 &&
    debugs p one .restartCount 0 && debugs p one .ready false
'
step 'its log stays, and the pod runs on' '
    k logs p -c one && says "out 42" && field pod/p .status.phase Running &&
    field pod/p ".status.conditions[?(@.type==\"Ready\")].status" True &&
    field pod/p ".status.containerStatuses[*].restartCount" "0 0"
'
step 'a debug container has a terminal' '
    timeout 60 "$talk" "$kubectl" debug --profile=general p -it --image=busybox -c term -- env "PS1=ready>" sh <<SAY
size 33 99
send \n
expect ready>
send while [ "\$(stty size)" != "33 99" ]; do :; done; echo fits\n
expect fits\r
send exit\n
SAY
'
step 'a debug container that runs can be attached to, logged and entered' '
    debug p --image=busybox -c runs -- sh -c "echo begun; exec sleep 3$forever" &&
    within 20 debugs p runs .ready false && within 20 sleeps "3$forever" && k logs p -c runs && prints begun &&
    k exec p -c runs -- printenv HOSTNAME && prints p &&
    debug p -i --image=busybox -c reads -- sh -c "read -r x; echo got \$x" <<INPUT && says "got it"
it
INPUT
'
step 'with --target it sees the processes of that container, and of no other one' '
    debug p -i --image=busybox --target=main -c aim -- ps -eo args </dev/null &&
    says "sleep $forever" && silent "sleep 2$forever" &&
    debug p --image=busybox --target=side -c stays -- sleep "4$forever" && within 20 sleeps "4$forever" &&
    k exec p -c stays -- ps -eo args && says "sleep 2$forever" "sleep 4$forever" && silent "sleep $forever"
'
step 'a debug container without a command says what to do' '
    debug p --image=busybox -c none && within 20 debugs p none .state.waiting.reason ErrImageNeverPull &&
        field pod/p ".status.ephemeralContainerStatuses[?(@.name==\"none\")].state.waiting.message" \
            "Container image \"busybox\" is not present with pull policy of Never: bring it to this node with '\''hekla image import FILE'\'' or '\''hekla image pull busybox'\'', or give the container a command to run on this machine" &&
    debug p -i --image=busybox -c nope -- /no/such </dev/null && says "no such file or directory" &&
    debugs p nope .state.terminated.exitCode 127 && field pod/p .status.phase Running
'
step 'ephemeral containers can be added, not changed or removed' '
    patch_pod p "{\"name\":\"one\",\"image\":\"other\"}" &&
    says "existing ephemeral containers \\\"one\\\" may not be changed" &&
    patch_pod p "{\"\$patch\":\"delete\",\"name\":\"one\"}" &&
    says "existing ephemeral containers \\\"one\\\" may not be removed" &&
    patch_pod p "{\"name\":\"main\",\"image\":\"i\"}" && says "Duplicate value: \\\"main\\\"" &&
    patch_pod p "{\"name\":\"x\",\"image\":\"i\",\"ports\":[{\"containerPort\":1}]}" &&
    says "cannot be set for an Ephemeral Container" &&
    patch_pod p "{\"name\":\"x\",\"image\":\"i\",\"targetContainerName\":\"who\"}" && says "Not found: \\\"who\\\"" &&
    k get --raw /api/v1/namespaces/default/pods/p/ephemeralcontainers && says "\"kind\":\"Pod\"" "\"name\":\"one\""
'
step 'adding one needs the right to patch pods/ephemeralcontainers' '
    k create serviceaccount user && k create role look --verb=get,list,watch --resource=pods &&
    k create rolebinding look --role=look --serviceaccount=default:user &&
    refused "cannot patch resource \"pods/ephemeralcontainers\"" --as=system:serviceaccount:default:user \
        debug p --image=busybox -c denied -- true &&
    k create role help --verb=patch --resource=pods/ephemeralcontainers &&
    k create rolebinding help --role=help --serviceaccount=default:user &&
    k --as=system:serviceaccount:default:user debug p --image=busybox -c allowed -- true &&
    within 20 debugs p allowed .state.terminated.exitCode 0
'
step 'a pod that ends takes its debug containers along' '
    debug short --image=busybox -c stays -- sleep "5$forever" && within 20 sleeps "5$forever" &&
    touch "$dir/go" && within 20 field pod/short .status.phase Succeeded && within 20 nobody_sleeps "5$forever" &&
    debugs short stays .state.terminated.exitCode 143
'
stop TERM
start
step 'a restarted server finds them as they were' '
    sleeps "3$forever" && sleeps "4$forever" && within 20 k wait --for=condition=Ready pod/p --timeout=20s && debugs p one .state.terminated.exitCode 3 &&
    k exec p -c stays -- ps -eo args && says "sleep 2$forever" "sleep 4$forever" &&
    k logs p -c runs && prints begun &&
    k get pod p -o "jsonpath={.status.ephemeralContainerStatuses[?(@.name==\"runs\")].state.running.startedAt}" &&
    says 20
'
step 'a copy of a pod has a debug container beside the others' '
    debug p --copy-to=copy --image=busybox -c extra -- sleep "6$forever" &&
    k wait --for=condition=Ready pod/copy --timeout=20s && field pod/copy ".spec.containers[*].name" "main side extra" &&
    within 20 sleeps "6$forever" && k delete pod copy --wait && within 20 nobody_sleeps "6$forever"
'
step 'a copy of a pod can run another command' '
    debug p --copy-to=copy --container=main -- sleep "7$forever" && within 20 sleeps "7$forever" &&
    k delete pod copy --wait
'
step 'a pod on the node sees the files of the machine' '
    k get nodes -o "jsonpath={.items[0].metadata.name}" && node=$(cat "$dir/out") &&
    echo "cat /host$dir/word; exit" >"$dir/script" && echo found >"$dir/word" &&
    debug "node/$node" -i --image=busybox -- sh <"$dir/script" && says found &&
    k get pods -o "jsonpath={.items[?(@.spec.hostPID)].spec.nodeName}" && prints "$node"
'
if [ -n "$old" ]; then
    step 'an old kubectl copies pods and debugs nodes' '
        k get nodes -o "jsonpath={.items[0].metadata.name}" && node=$(cat "$dir/out") &&
        timeout 60 "$old" debug p --copy-to=older --image=busybox -- sleep "8$forever" &&
        within 20 sleeps "8$forever" && k delete pod older --wait &&
        timeout 60 "$old" debug "node/$node" -i --image=busybox -- sh <"$dir/script" >"$dir/out" && says found
    '
    # Kubernetes 1.22 has removed the kind EphemeralContainers, which it sends.
    step 'an old kubectl cannot add a container to a pod, as on current Kubernetes' '
        ! timeout 60 "$old" debug p --image=busybox -c old -- true >"$dir/out" 2>&1 &&
        says "error updating ephemeral containers"
    '
else
    for missing in 1 2; do
        count=$((count + 1))
        echo "ok $count - # skip no kubectl 1.20"
    done
fi
step 'nothing is left when the pods are deleted' '
    k delete pod --all --wait &&
    for seconds in "$forever" "2$forever" "3$forever" "4$forever"; do within 20 nobody_sleeps "$seconds" || exit 1; done
'
stop TERM
content
finish
