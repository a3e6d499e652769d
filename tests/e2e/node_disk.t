#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with this machine as its node, and pods that use more disk than they may, or write more
# output than is kept.
cd "$(dirname "$0")/../.." || exit 1
HEKLA_BACKEND= # always the embedded server
. tests/e2e/lib.sh
needs kubectl
needs_root && needs_mounts

end_others() {
    kubectl delete pods --all --grace-period=0 --timeout=20s >/dev/null 2>&1
}

verb=up options='--container-log-max-size 256Ki'

# pod NAME VOLUME LIMITS SCRIPT [CONTAINER]: runs the script in a shell, with the volume at /room.
pod() {
    cat <<YAML | kubectl create -f - >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  schedulerName: volcano
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  volumes: [{name: room, emptyDir: {$2}}]
  containers:
  - name: main
    image: none
    command: [sh, -c, '$4']
    resources: {limits: {$3}}
    volumeMounts: [{name: room, mountPath: /room}]
  $5
YAML
}

# is TYPE/NAME PATH VALUE
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ] && return 0
    kubectl get "$1" -o "jsonpath={$2}"
    return 1
}

# evicted POD MESSAGE: it has failed, and says that.
evicted() {
    within 30 is "pod/$1" .status.phase Failed && is "pod/$1" .status.reason Evicted && is "pod/$1" .status.message "$2" &&
        kubectl get events --field-selector "involvedObject.name=$1,reason=Evicted" -o "jsonpath={.items[*].message}" | grep -qF "$2"
}

start
pod modest 'sizeLimit: 10Mi' 'ephemeral-storage: 20Mi' 'head -c 5M /dev/zero >/room/x; sleep infinity'
step 'a pod that fills its volume above its limit is evicted' '
    pod wide "sizeLimit: 10Mi" "" "head -c 50M /dev/zero >/room/x; sleep infinity" &&
        evicted wide "Usage of EmptyDir volume \"room\" exceeds the limit \"10Mi\"."
'
step 'files count wherever they are in the volume, links only once' '
    pod deep "sizeLimit: 1Mi" "" "mkdir -p /room/a/b/c; head -c 3M /dev/zero >/room/a/b/c/x; ln -s / /room/link; sleep infinity" &&
        evicted deep "Usage of EmptyDir volume \"room\" exceeds the limit \"1Mi\"." &&
        pod names "sizeLimit: 4Mi" "" "head -c 3M /dev/zero >/room/1; ln /room/1 /room/2; ln /room/1 /room/3; : >/room/ready; sleep infinity" &&
        within 20 is pod/names .status.phase Running
'
step 'a pod that uses more than its containers may is evicted' '
    pod total "" "ephemeral-storage: 10Mi" "head -c 30M /dev/zero >/room/x; sleep infinity" &&
        evicted total "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi."
'
step 'a container that writes more output than it may store is evicted' '
    pod loud "" "ephemeral-storage: 100Ki" "seq 100000; sleep infinity" \
        "- {name: quiet, image: none, command: [sleep, infinity], resources: {limits: {ephemeral-storage: 1Gi}}}" &&
        evicted loud "Container main exceeded its local ephemeral storage limit \"100Ki\"."
'
step 'the kernel limits the size of a volume in memory' '
    pod memory "medium: Memory, sizeLimit: 2Mi" "" "stat -f -c %T /room; head -c 5M /dev/zero >/room/x || echo full; stat -c %s /room/x; sleep infinity" &&
        shown() { [ "$(kubectl logs memory | grep -v writing | xargs)" = "tmpfs full 2097152" ] || { kubectl logs memory; return 1; }; } && within 20 shown &&
        is pod/memory .status.phase Running && grep -q "$data/node/pods/.*/room tmpfs" /proc/self/mounts &&
        kubectl delete pod memory && within 20 sh -c "! grep -q $data/node/pods /proc/self/mounts"
'
step 'a pod within its limits continues' '
    is pod/modest .status.phase Running && is pod/names .status.phase Running
'
lines=60000
step 'a log that lost its beginning to rotation says so' '
    pod chatty "" "" "seq $lines; echo done; sleep infinity" && said() { kubectl logs chatty --tail=1 | grep -qx done; } && within 30 said &&
        k logs chatty && first=$(sed -n 1p "$dir/out") && echo "$first" &&
        echo "$first" | grep -qE "^hekla: [0-9]+ lines \([0-9]+ bytes\) before this were removed by rotation$" &&
        gone=$(echo "$first" | sed "s/hekla: \([0-9]*\) .*/\1/") && kept=$(($(wc -l <"$dir/out") - 1)) &&
        [ $((gone + kept)) -eq $((lines + 1)) ] && [ "$(sed -n 2p "$dir/out")" -eq $((gone + 1)) ] &&
        bytes=$(seq "$gone" | wc -c) && [ "$first" = "hekla: $gone lines ($bytes bytes) before this were removed by rotation" ]
'
step 'a request for lines that still exist gets no such notice' '
    k logs chatty --tail=10 && [ "$(wc -l <"$dir/out")" -eq 10 ] && silent rotation &&
        k logs chatty --since=1h --limit-bytes=200 && says "removed by rotation" && k logs chatty --timestamps && sed -n 1p "$dir/out" | grep -qE "^20[0-9-]*T[^ ]*Z hekla: " &&
        k logs modest && silent rotation
'
step 'hekla logs prints the notice on stderr' '
    timeout 30 "$HEKLA" logs chatty >"$dir/out" 2>"$dir/err" && silent rotation &&
        grep -qE "hekla: pod .chatty.: [0-9]+ lines \([0-9]+ bytes\) before this were removed by rotation" "$dir/err" && [ "$(sed -n "\$p" "$dir/out")" = done ]
'
stop TERM
content
finish
