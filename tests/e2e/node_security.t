#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with this machine as its node: who containers run as, what they may do, and how they
# resolve names. HEKLA names the program; without kubectl, or without being root, there is nothing to
# test.
cd "$(dirname "$0")/../.." || exit 1
HEKLA=${HEKLA:-build/hekla}
if ! command -v kubectl >/dev/null; then
    echo '1..0 # skip no kubectl'
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
    echo '1..0 # skip not root, or mount namespaces are not permitted'
    exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'stop KILL; rm -rf "$dir"' EXIT
verb=up
. tests/e2e/lib.sh

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
step 'whoever it runs as can read its hosts and its resolver, and makes files others can read' '
    pod reads "umask; cat /etc/hosts /etc/resolv.conf" "runAsUser: 65534" \
        "dnsConfig: {searches: [x.example]}" | kubectl create -f - && ran reads &&
        says 0022 localhost x.example
'
step 'who must not be root is not run as root' '
    pod root true "runAsNonRoot: true" | kubectl create -f - &&
        within 20 waits root "container has runAsNonRoot and image will run as root" &&
        pod zero true "runAsUser: 0" "securityContext: {runAsNonRoot: true}" | kubectl create -f - &&
        within 20 waits zero "breaks non-root policy"
'
step 'capabilities that are dropped are gone, also for commands beside the container' '
    probe="grep CapEff /proc/self/status >/room/probe" &&
        pod caps "grep CapEff /proc/self/status; exec sleep 1000" "capabilities: {drop: [ALL], add: [NET_RAW, CAP_KILL]}" |
        kubectl create -f - && within 20 is pod/caps .status.containerStatuses[0].ready true &&
        k logs caps && says 0000000000002020 &&
        grep "CapEff:.0000000000002020" "$data"/node/pods/*/.volumes/room/probe
'
step 'no privileges are gained where that is forbidden' '
    pod more "grep NoNewPrivs /proc/self/status" "allowPrivilegeEscalation: false" |
        kubectl create -f - && ran more && says "NoNewPrivs: 1"
'
step 'a root that is read-only is, but not the volumes in it' '
    pod fixed "touch /room/x /dev/shm/hekla-e2e && echo >/dev/null && rm /dev/shm/hekla-e2e && ! touch /etc/hekla-e2e && ! touch /tmp/hekla-e2e && echo bye >/dev/termination-log" \
        "readOnlyRootFilesystem: true" | kubectl create -f - && ran fixed &&
        [ ! -e /etc/hekla-e2e ] && [ ! -e /tmp/hekla-e2e ]
'
step 'a capability nobody knows is told' '
    pod odd true "capabilities: {add: [FLY]}" | kubectl create -f - &&
        within 20 waits odd "unknown capability"
'
step 'names are resolved as the pod says' '
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
