#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Ports of pods, forwarded by kubectl over WebSockets and SPDY, current and of 1.20, and by a client
# that speaks the channels of other clients; on the node of hekla up and on an agent of its own.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs curl python3
needs_mounts
scripts/kubectls >"$dir/kubectls" 2>"$dir/missing"
kubectl=$(sed -n 's/^current //p' "$dir/kubectls")
old=$(sed -n 's/^1.20 //p' "$dir/kubectls")
[ -n "$kubectl" ] || skip_all 'no current kubectl'
verb=up
sockets=$PWD/tests/e2e/sockets.py
websocket=$PWD/tests/e2e/websocket_forward.py
forwarder=

end_others() {
    [ -z "$forwarder" ] || kill "$forwarder" 2>/dev/null
}

# pod NAME [LINE...]: prints a pod that runs containers; each LINE is "NAME ADDRESS PORT DEED [FILE]".
# ADDRESS may be $IP, the pod's own.
pod() {
    printf '%s\n' --- 'apiVersion: v1' 'kind: Pod' "metadata: {name: $1, labels: {app: $1}}" 'spec:' \
        '  schedulerName: volcano' '  restartPolicy: Never' '  terminationGracePeriodSeconds: 1' '  containers:'
    shift
    for line; do
        printf '  - {name: %s, image: none, env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}],\n' \
            "${line%% *}"
        printf "     command: [sh, -c, 'exec python3 %s serve %s']}\n" "$sockets" "${line#* }"
    done
}

# listening POD CONTAINER: the program listens; its port goes to $dir/out.
listening() {
    k logs "$1" -c "$2" && says "listens on" && sed -i 's/listens on //' "$dir/out"
}

# forward KUBECTL ARG...: starts a port-forward, and waits until it listens on all its ports.
forward() {
    : >"$dir/forward" # what an earlier one printed must not count
    timeout 120 "$@" >>"$dir/forward" 2>&1 &
    forwarder=$!
    shift
    want=0
    for arg; do
        case $arg in :*) want=$((want + 1)) ;; esac
    done
    within 30 forwards "$want"
}

forwards() {
    [ "$(grep -c '^Forwarding from 127' "$dir/forward")" -eq "$1" ] && return 0
    cat "$dir/forward"
    return 1
}

# local_port PORT: prints the local port that leads to it.
local_port() {
    sed -n "s/^Forwarding from 127.0.0.1:\([0-9]*\) -> $1\$/\1/p" "$dir/forward"
}

# hang_up: ends the port-forward.
hang_up() {
    kill "$forwarder"
    wait "$forwarder" 2>/dev/null
    forwarder=
}

# reports TEXT: the port-forward printed the text.
reports() {
    grep -qF -- "$1" "$dir/forward" && return 0
    echo "expected: $1"
    cat "$dir/forward"
    return 1
}

# over: the port-forward has ended.
over() {
    ! kill -0 "$forwarder" 2>/dev/null
}

# transfers KUBECTL ARG...: the port-forward of pod p carries everything, both ways.
transfers() {
    forward "$@" port-forward p :8080 ":$loopback" :8081 &&
    [ "$(echo hello | "$sockets" ask "$(local_port 8080)")" = hello ] &&
    "$sockets" ask "$(local_port 8080)" <"$dir/big" | cmp - "$dir/big" &&
    "$sockets" ask "$(local_port "$loopback")" <"$dir/big" >"$dir/out" && prints "$sum" &&
    "$sockets" ask "$(local_port 8081)" </dev/null | cmp - "$dir/big" &&
    { "$sockets" ask "$(local_port 8081)" </dev/null | { sleep 1; cmp - "$dir/big"; }; } &&
    "$sockets" hold "$(local_port 8080)" 64 && hang_up
}

# refuses KUBECTL...: a port on which nothing listens is refused with a message.
refuses() {
    forward "$@" port-forward p :7 && { echo | "$sockets" ask "$(local_port 7)" || :; } &&
    within 20 reports "an error occurred forwarding $(local_port 7) -> 7: error forwarding port 7 to pod p, uid " &&
    within 20 reports ":7: connect: connection refused" && { over || hang_up; }
}

start
head -c 20000000 /dev/urandom >"$dir/big"
sum=$(sha256sum <"$dir/big" | cut -d' ' -f1)
{
    pod p "echo \$IP 8080 echo" "loopback 127.0.0.1 0 digest" "file \$IP 8081 file $dir/big" \
        "six ::1 0 echo" "any 0.0.0.0 0 echo" "deaf \$IP 8082 deaf"
    pod other "echo 127.0.0.1 0 echo"
    pod short "once \$IP 8080 once"
} >"$dir/pods.yaml"

step 'programs listen in pods: on the address of the pod, on loopback, on all addresses' '
    k apply -f "$dir/pods.yaml" && k wait --for=condition=Ready pod/p pod/other pod/short --timeout=30s &&
    for name in echo loopback file six any deaf; do within 20 listening p $name || exit 1; done
    within 20 listening other echo && within 20 listening short once
'
listening p loopback && loopback=$(cat "$dir/out")
listening p six && six=$(cat "$dir/out")
listening p any && any=$(cat "$dir/out")
listening other echo && other=$(cat "$dir/out")

step 'kubectl forwards ports over a WebSocket: much data both ways, slow readers, many connections' '
    transfers "$kubectl"
'
step 'kubectl forwards ports over SPDY' '
    transfers env KUBECTL_PORT_FORWARD_WEBSOCKETS=false "$kubectl"
'
if [ -n "$old" ]; then
    step 'an old kubectl forwards ports' '
        transfers "$old" && refuses "$old"
    '
else
    count=$((count + 1))
    echo "ok $count - # skip no kubectl 1.20"
fi
step 'programs that listen on ::1 or on all addresses are reached' '
    forward "$kubectl" port-forward p ":$six" ":$any" &&
    [ "$(echo six | "$sockets" ask "$(local_port "$six")")" = six ] &&
    [ "$(echo any | "$sockets" ask "$(local_port "$any")")" = any ] && hang_up
'
step 'curl fetches a file through a forwarded port' '
    k exec p -c echo -- sh -c "printf \"HTTP/1.0 200 OK\\r\\n\\r\\nit is me\\n\" >$dir/answer" &&
    pod web "http \$IP 80 file $dir/answer" | k apply -f - && k wait --for=condition=Ready pod/web --timeout=30s &&
    within 20 listening web http && forward "$kubectl" port-forward pod/web :80 &&
    curl -sS --max-time 20 "http://127.0.0.1:$(local_port 80)/" >"$dir/out" && prints "it is me" && hang_up
'
step 'a Service leads to its pod and its port' '
    k create service clusterip p --tcp=81:8080 && forward "$kubectl" port-forward service/p :81 &&
    reports " -> 8080" && [ "$(echo hi | "$sockets" ask "$(local_port 8080)")" = hi ] && hang_up
'
step 'a port on which no program of the pod listens is refused' '
    refuses "$kubectl" && refuses env KUBECTL_PORT_FORWARD_WEBSOCKETS=false "$kubectl"
'
step 'programs of other pods and of the machine cannot be reached' '
    forward "$kubectl" port-forward p ":$other" &&
    { echo | "$sockets" ask "$(local_port "$other")" || :; } &&
    within 20 reports "connect: connection refused" && { over || hang_up; } &&
    forward "$kubectl" port-forward p ":${url##*:}" &&
    { echo | "$sockets" ask "$(local_port "${url##*:}")" || :; } &&
    within 20 reports "connect: connection refused" && { over || hang_up; }
'
step 'a program that does not read delays only its own client' '
    forward "$kubectl" port-forward p :8082 &&
    deaf=$(local_port 8082) && { timeout 60 "$sockets" ask "$deaf" <"$dir/big" & asker=$!; } &&
    first=$forwarder && forward "$kubectl" port-forward p :8080 &&
    [ "$(echo hello | "$sockets" ask "$(local_port 8080)")" = hello ] && hang_up &&
    kill $asker && kill $first
'
step 'a connection ends with the program, and the next one fails' '
    forward "$kubectl" port-forward short :8080 &&
    [ "$(echo last | "$sockets" ask "$(local_port 8080)")" = last ] &&
    within 20 field pod/short .status.phase Succeeded && within 20 over && reports "lost connection to pod" &&
    refused "pod is not running" port-forward short :8080
'
step 'a client hears that its pod was deleted' '
    pod away "echo \$IP 8080 echo" | k apply -f - && k wait --for=condition=Ready pod/away --timeout=30s &&
    within 20 listening away echo && forward "$kubectl" port-forward away :8080 &&
    [ "$(echo on | "$sockets" ask "$(local_port 8080)")" = on ] && k delete pod away --wait=false &&
    within 20 over && reports "lost connection to pod"
'
step 'a client that speaks WebSocket channels is served' '
    timeout 60 "$websocket" "$url" "$token" default p 8080 "$any" --bytes 3000000 >"$dir/out" &&
    prints "8080 echoed
$any echoed" &&
    timeout 60 "$websocket" "$url" "$token" default p "8080,$six" --protocol "" >"$dir/out" &&
    prints "8080 echoed
$six echoed" &&
    timeout 60 "$websocket" "$url" "$token" default p 7 8080 >"$dir/out" &&
    says "7 error: error forwarding port 7 to pod p, uid " ":7: connect: connection refused" "8080 echoed"
'
step 'hekla port-forward forwards ports, with ends of the data in both directions' '
    : >"$dir/forward" && timeout 120 "$HEKLA" port-forward p :8080 ":$loopback" :8081 :7 >>"$dir/forward" 2>"$dir/err" &
    forwarder=$!
    within 30 forwards 4 && [ "$(echo hello | "$sockets" ask "$(local_port 8080)")" = hello ] &&
    "$sockets" ask "$(local_port 8080)" <"$dir/big" | cmp - "$dir/big" &&
    "$sockets" ask "$(local_port "$loopback")" <"$dir/big" >"$dir/out" && prints "$sum" &&
    { "$sockets" ask "$(local_port 8081)" </dev/null | { sleep 1; cmp - "$dir/big"; }; } &&
    "$sockets" hold "$(local_port 8080)" 64 && { echo | "$sockets" ask "$(local_port 7)" || :; } &&
    within 20 grep -q "error forwarding port 7 to pod p, uid .*: connect: connection refused" "$dir/err" &&
    [ "$(echo again | "$sockets" ask "$(local_port 8080)")" = again ] && hang_up
'
step 'hekla port-forward refuses wrong ports and pods in one line' '
    gives 2 port-forward && complains "a pod or job and a port are missing" &&
    gives 2 port-forward p && complains "a port is missing" &&
    gives 2 port-forward p 80:x && complains "want PORT, LOCAL:PORT or :PORT" &&
    gives 2 port-forward nobody 80 && complains "no pod" &&
    gives 2 port-forward short 80 && complains "has ended"
'
step 'wrong requests are refused with a reason' '
    api=$url/api/v1/namespaces/default/pods
    asks() {
        curl -sk --max-time 20 -H "Authorization: Bearer $token" "$@" >"$dir/out"
    }
    asks "$api/p/portforward" && says "Upgrade request required" "\"code\":400" &&
    asks "$api/nobody/portforward" && says "pods \\\"nobody\\\" not found" &&
    asks_for() {
        asks -H "Connection: Upgrade" -H "Upgrade: websocket" -H "Sec-WebSocket-Version: 13" \
            -H "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==" -H "Sec-WebSocket-Protocol: $1" "$api/p/portforward$2"
    }
    asks_for v4.channel.k8s.io "?ports=x" && says "unable to parse" "\"code\":400" &&
    asks_for v4.channel.k8s.io "?ports=65536" && says "unable to parse" &&
    asks_for v4.channel.k8s.io "" && says "is required" &&
    asks_for v9.channel.k8s.io "?ports=80" && says "unable to negotiate protocol"
'
# kube-apiserver 1.34 lets those who may get pods/portforward, for WebSockets.
on_kube || step 'forwarding ports needs the right to create pods/portforward' '
    k create serviceaccount reader &&
    k create role reader --verb=get --resource=pods,pods/portforward &&
    k create rolebinding reader --role=reader --serviceaccount=default:reader &&
    refused "cannot create resource \"pods/portforward\"" --as=system:serviceaccount:default:reader \
        port-forward p :8080 &&
    k create role forwarder --verb=create --resource=pods/portforward &&
    k create rolebinding forwarder --role=forwarder --serviceaccount=default:reader &&
    forward "$kubectl" --as=system:serviceaccount:default:reader port-forward p :8080 &&
    [ "$(echo may | "$sockets" ask "$(local_port 8080)")" = may ] && hang_up
'
step 'many clients come and go, and some are killed' '
    for i in 1 2 3 4 5 6; do
        forward "$kubectl" port-forward p :8080 :8082 || exit 1
        for port in $(local_port 8080) $(local_port 8082); do
            timeout 60 "$sockets" ask "$port" <"$dir/big" >/dev/null 2>&1 &
        done
        within 20 reports "Handling connection" && kill -9 "$forwarder"
    done
    forward "$kubectl" port-forward p :8080 &&
    [ "$(echo still | "$sockets" ask "$(local_port 8080)")" = still ] && hang_up
'
step 'no program is left when the pods are deleted' '
    nobody_listens() {
        ! pgrep -f "^python3 $sockets serve .* file $dir/big" >/dev/null
    }
    k delete pod --all --wait && within 20 nobody_listens
'
stop TERM
content
finish
