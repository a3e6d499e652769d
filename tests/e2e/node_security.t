#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with this machine as its node: who containers run as, what they may do, and how they
# resolve names.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
needs_root && needs_mounts
verb=up

# pod NAME SCRIPT CONTEXT [LINE...]: runs the script in a shell, with the container's securityContext;
# the lines go into the spec.
pod() {
    name=$1 script=$2 context=$3
    shift 3
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $name}
spec:
  schedulerName: volcano
  restartPolicy: Never
  volumes: [{name: room, emptyDir: {}}]
$(for line in "$@"; do echo "  $line"; done)
  containers:
  - name: main
    image: none
    command: [sh, -c, '$script']
    securityContext: {$context}
    ${probe:+readinessProbe: {exec: {command: [sh, -c, "$probe"]\}\}}
    volumeMounts: [{name: room, mountPath: /room}]
YAML
}

# is TYPE/NAME PATH VALUE
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ]
}

# ran POD: it has succeeded; its log is in $dir/out.
ran() {
    within 20 is "pod/$1" .status.phase Succeeded && k logs "$1"
}

# waits POD TEXT: the container is not started, and says why.
waits() {
    kubectl get pod "$1" -o "jsonpath={.status.containerStatuses[0].state.waiting}" | grep -F -- "$2"
}

start

step 'a container runs as the user and the groups it names, and can write where its group may' '
    pod user "id -u; id -G; touch /room/x; stat -c %g /room/x" "runAsUser: 65534, runAsGroup: 65534" \
        "securityContext: {supplementalGroups: [4242], fsGroup: 4343}" | kubectl create -f - &&
        ran user && [ "$(xargs <"$dir/out")" = "65534 65534 4242 4343 4343" ]
'
step 'any user can read hosts and resolv.conf, and creates files that others can read' '
    pod reads "umask; cat /etc/hosts /etc/resolv.conf" "runAsUser: 65534" \
        "dnsConfig: {searches: [x.example]}" | kubectl create -f - && ran reads &&
        says 0022 localhost x.example
'
step 'runAsNonRoot refuses root' '
    pod root true "runAsNonRoot: true" | kubectl create -f - &&
        within 20 waits root "container has runAsNonRoot and image will run as root" &&
        pod zero true "runAsUser: 0" "securityContext: {runAsNonRoot: true}" | kubectl create -f - &&
        within 20 waits zero "breaks non-root policy"
'
step 'dropped capabilities are dropped for exec, too' '
    probe="grep CapEff /proc/self/status >/room/probe" &&
        pod caps "grep CapEff /proc/self/status; exec sleep 1000" "capabilities: {drop: [ALL], add: [NET_RAW, CAP_KILL]}" |
        kubectl create -f - && within 20 is pod/caps .status.containerStatuses[0].ready true &&
        k logs caps && says 0000000000002020 &&
        grep "CapEff:.0000000000002020" "$data"/node/pods/*/.volumes/room/probe
'
step 'allowPrivilegeEscalation false prevents gaining privileges' '
    pod more "grep NoNewPrivs /proc/self/status" "allowPrivilegeEscalation: false" |
        kubectl create -f - && ran more && says "NoNewPrivs: 1"
'
step 'a read-only root is read-only, its volumes are not' '
    pod fixed "touch /room/x /dev/shm/hekla-e2e && echo >/dev/null && rm /dev/shm/hekla-e2e && ! touch /etc/hekla-e2e && ! touch /tmp/hekla-e2e && echo bye >/dev/termination-log" \
        "readOnlyRootFilesystem: true" | kubectl create -f - && ran fixed &&
        [ ! -e /etc/hekla-e2e ] && [ ! -e /tmp/hekla-e2e ]
'
step 'an unknown capability is reported' '
    pod odd true "capabilities: {add: [FLY]}" | kubectl create -f - &&
        within 20 waits odd "unknown capability"
'
step 'dnsPolicy and dnsConfig decide how names are resolved' '
    pod names "cat /etc/resolv.conf; getent hosts far.example" "" \
        "hostAliases: [{ip: 192.0.2.7, hostnames: [far.example]}]" "dnsPolicy: None" \
        "dnsConfig: {nameservers: [192.0.2.1], searches: [a.example, b.example], options: [{name: ndots, value: \"2\"}, {name: edns0}]}" |
        kubectl create -f - && ran names && says "search a.example b.example" &&
        says "nameserver 192.0.2.1" "options ndots:2 edns0" "192.0.2.7 far.example"
'
kubectl delete pod --all --grace-period=1 >/dev/null 2>&1
stop TERM
content
finish
