#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Nodes as processes of their own, with scheduler and controllers as others, over TLS: this machine,
# and a fleet of simulated ones.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl curl
node= fleet= scheduler= manager=

end_others() {
    halt fleet KILL
    halt node KILL
    "$HEKLA" down --data-dir "$dir/node-data" --pods >/dev/null 2>&1
}

# join ARG...: this machine joins as node n1.
join() {
    launch agent node --data-dir "$dir/node-data" --listen 127.0.0.1:0 --node n1 \
        --client-ca-file "$authority" "$@"
}

# ready NODE: it is, and may be used.
ready() {
    k get node "$1" -o \
        jsonpath='{.status.conditions[?(@.type=="Ready")].status},{.spec.taints[*].key}' &&
        prints True,
}

# serves PATH CODE [TOKEN]: what the node's own server answers to a user.
serves() {
    code=$(curl -sk --max-time 20 -o "$dir/out" -w '%{http_code}' \
        ${3:+-H "Authorization: Bearer $3"} "https://127.0.0.1:$(port node pods)$1")
    [ "$code" = "$2" ] && return 0
    echo "expected $2, got $code: $(cat "$dir/out")"
    return 1
}

# pod NAME SCRIPT [LINES]: a shell script on this node; further lines of its spec.
pod() {
    k apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeName: n1
  restartPolicy: Never
${3:-}
  containers:
  - name: main
    image: busybox
    command: [sh, -c, '$2']
YAML
}

# phase POD PHASE: within a while.
phase() {
    within 60 field "pod/$1" .status.phase "$2"
}

# job NAME REPLICAS SCRIPT [MEMBERS]: applies a job; all its pods are needed. MEMBERS are of their spec.
job() {
    print_job "$1" "$2" "containers: [{name: main, image: busybox, command: [sh, -c, '$3']}]${4:+, $4}" \
        'queue: default' 'schedulerName: volcano' 'maxRetry: 3' | k apply -f -
}

completes() {
    within 90 field "vcjob/$1" .status.state.phase Completed
}

# runs WORDS: some process has them as its command line.
runs() {
    pgrep -f -- "$1" >/dev/null
}

ends() {
    ! runs "$1"
}

# left PID: the process has ended.
left() {
    ! kill -0 "$1" 2>/dev/null
}

start
authority=$data/ca.crt
[ -e "$authority" ] || authority=$data/pki/ca.crt
launch scheduler scheduler --leader-elect=false
launch controller-manager manager --leader-elect=false

# ---- mistakes ----

step 'invalid options are refused in one line' '
    stumbles agent "--no-node needs --sim-nodes: else there is no node to run" \
        --kubeconfig "$KUBECONFIG" --no-node &&
    stumbles agent "option --address is '"'here'"', want an IP address" \
        --kubeconfig "$KUBECONFIG" --address here &&
    stumbles agent "--tls-cert-file and --tls-private-key-file must be given together" \
        --kubeconfig "$KUBECONFIG" --tls-cert-file x &&
    stumbles agent "option --node is '"'N_1'"'" --kubeconfig "$KUBECONFIG" --node N_1 &&
    stumbles agent "no certificate in '"'/etc/passwd'"'" --kubeconfig "$KUBECONFIG" \
        --data-dir "$dir/none" --listen 127.0.0.1:0 --client-ca-file /etc/passwd &&
    stumbles agent "no API server: outside of a pod --kubeconfig or --master is required" --data-dir "$dir/none" \
        --listen 127.0.0.1:0
'

# ---- the node ----

join
step 'this machine registers as a ready node' '
    within 60 ready n1 && field node/n1 .metadata.labels.kubernetes\\.io/hostname n1 &&
    field node/n1 ".status.addresses[*].address" "127.0.0.1 n1" &&
    field node/n1 .status.daemonEndpoints.kubeletEndpoint.Port "$(port node pods)"
'
step 'hekla status finds the agent by its directory' '
    "$HEKLA" status --data-dir "$dir/node-data" >"$dir/out" && says "hekla agent" "is running"
'
step 'the agent creates its lease' '
    lease=lease/n1
    within 20 k -n kube-node-lease get $lease &&
    k -n kube-node-lease get $lease -o jsonpath="{.spec.holderIdentity} {.spec.leaseDurationSeconds} \
{.metadata.ownerReferences[0].kind}" && prints "n1 40 Node"
'
step 'the agent renews its lease' '
    renewed() {
        k -n kube-node-lease get lease n1 -o jsonpath="{.spec.renewTime}" && ! prints "$1"
    }
    k -n kube-node-lease get lease n1 -o jsonpath="{.spec.renewTime}" &&
    first=$(cat "$dir/out") && within 30 renewed "$first"
'
step 'the node server answers only users whom the API server authenticates and authorizes' '
    k create serviceaccount nobody && k create token nobody && nobody=$(cat "$dir/out") &&
    serves /healthz 401 && serves /healthz 401 wrong && serves /healthz 403 "$nobody" &&
    serves /healthz 200 "$token" && says ok && serves /nothing 404 "$token" &&
    serves /pods 200 "$token" && says PodList
'
step 'labels and taints that others set on the node stay' '
    k label node n1 rack=r1 && k annotate node n1 note=x && k taint node n1 mine=x:PreferNoSchedule
'
step 'a node marked as lost reports that it is ready' '
    k taint node n1 node.kubernetes.io/unreachable=:NoSchedule --overwrite &&
    k patch node n1 --subresource=status -p "{\"status\":{\"conditions\":[
        {\"type\":\"Ready\",\"status\":\"Unknown\",\"reason\":\"NodeStatusUnknown\"}]}}" &&
    within 30 field node/n1 ".status.conditions[?(@.type==\"Ready\")].status" True &&
    within 30 field node/n1 ".spec.taints[*].key" mine &&
    field node/n1 .metadata.labels.rack r1 && field node/n1 .metadata.annotations.note x
'
k taint node n1 mine- >"$dir/log" 2>&1

# ---- pods ----

step 'a job runs as processes, to its end' '
    job hello 3 "echo hello from \$VC_TASK_INDEX; hostname" "schedulerName: volcano" &&
    completes hello && field pod/hello-w-1 .spec.nodeName n1 &&
    field pod/hello-w-1 ".status.containerStatuses[0].state.terminated.exitCode" 0
'
step 'the API server returns the output of a pod' '
    k logs hello-w-2 && says "hello from" && k logs --tail 1 hello-w-2 && prints hello-w-2 &&
    k logs --timestamps --limit-bytes 4 hello-w-2 && prints "$(date +%Y)"
'
step 'the API server refuses logs of containers that do not exist' '
    refused "previous terminated container \"main\" in pod \"hello-w-0\" not found" \
        logs --previous hello-w-0 &&
    refused "container other is not valid for pod hello-w-0" logs hello-w-0 -c other
'
step 'following a log shows every line as it is written' '
    pod slow "echo first; sleep 2; echo last" && within 30 k logs slow &&
    k logs -f slow && prints "first
last"
'
step 'commands run with their input, output and exit code' '
    head -c 5000000 /dev/urandom >"$dir/big" && truncate -s 64M "$dir/huge" &&
    pod shell "while sleep 0.1; do echo tick; done" "  terminationGracePeriodSeconds: 0" && phase shell Running &&
    k exec shell -- printenv HOSTNAME && prints shell && "$HEKLA" exec shell -- hostname >"$dir/out" && prints shell &&
    { "$HEKLA" exec shell -- sh -c "echo no >&2; exit 5" 2>"$dir/out"; [ $? -eq 5 ]; } && prints no &&
    timeout 60 "$kubectl" exec -i shell -- cat <"$dir/big" | cmp - "$dir/big" &&
    timeout 60 "$HEKLA" exec -i shell -- cat <"$dir/big" | cmp - "$dir/big" &&
    timeout 60 "$kubectl" exec shell -- cat "$dir/huge" | { within 20 runs "^cat $dir/huge" && cmp - "$dir/huge"; }
'
step 'many commands run at a time' '
    for i in 1 2 3 4 5 6 7 8; do
        timeout 60 "$HEKLA" exec -i shell -- cksum <"$dir/big" >"$dir/sum$i" &
        timeout 60 "$kubectl" exec -i shell -- cksum <"$dir/big" >"$dir/mus$i" &
    done
    wait
    [ "$(cat "$dir"/sum? "$dir"/mus? | sort | uniq -c | tr -s " ")" = " 16 $(cksum <"$dir/big")" ]
'
step 'a command runs on a terminal' '
    timeout 60 tests/e2e/terminal.py "$HEKLA" exec -it shell -- env "PS1=ready>" sh <<SAY
size 33 99
expect ready>
send while [ "\$(stty size)" != "33 99" ]; do :; done; echo fits\n
expect fits\r
expect ready>
send exit 6\n
SAY
    [ $? -eq 6 ]
'
step 'attach shows the output, and a command ends with its client' '
    timeout 60 "$kubectl" attach shell 2>"$dir/err" | head -n 2 >"$dir/out"
    prints "tick
tick" &&
    { "$HEKLA" exec shell -- sleep "36043$$" & } && client=$! &&
    within 20 runs "^sleep 36043$$" && kill -9 $client && within 20 ends "^sleep 36043$$"
'
step 'ports are forwarded over SPDY, WebSockets and channels' '
    sockets=$PWD/tests/e2e/sockets.py
    pod listens "exec python3 $sockets serve 127.0.0.1 0 echo" && phase listens Running &&
    within 20 k logs listens && within 20 says "listens on" && listened=$(sed "s/listens on //" "$dir/out") &&
    for websockets in true false; do
        : >"$dir/forward"
        KUBECTL_PORT_FORWARD_WEBSOCKETS=$websockets timeout 60 "$kubectl" port-forward listens ":$listened" \
            >"$dir/forward" 2>&1 &
        forwarder=$!
        within 20 grep -q "^Forwarding from 127" "$dir/forward" &&
        local=$(sed -n "s/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p" "$dir/forward") &&
        "$sockets" ask "$local" <"$dir/big" | cmp - "$dir/big" || exit 1
        kill $forwarder
    done
    timeout 60 tests/e2e/websocket_forward.py "$url" "$token" default listens "$listened" --bytes 1000000 >"$dir/out" &&
    prints "$listened echoed" && k delete pod listens --wait
'
step 'mistakes are reported' '
    refused "container other is not valid for pod shell" exec shell -c other -- true &&
    refused "cannot exec into a container in a completed pod" exec hello-w-0 -- true &&
    k delete pod shell --wait
'
step 'a pod that ends by itself reports its exit code' '
    pod bad "exit 7" && phase bad Failed &&
    field pod/bad ".status.containerStatuses[0].state.terminated.exitCode" 7
'
step 'ConfigMaps, Secrets, the pod itself and a token of its account are its files' '
    k create configmap words --from-literal=a=one && k create secret generic dark --from-literal=b=two &&
    k create serviceaccount worker &&
    k apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: files, labels: {color: red}}
spec:
  nodeName: n1
  serviceAccountName: worker
  automountServiceAccountToken: false
  restartPolicy: Never
  volumes:
  - name: all
    projected:
      sources:
      - configMap: {name: words}
      - secret: {name: dark}
      - configMap: {name: kube-root-ca.crt}
      - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
      - serviceAccountToken: {path: token}
  containers:
  - name: main
    image: busybox
    env:
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: WORD, valueFrom: {configMapKeyRef: {name: words, key: a}}}
    volumeMounts: [{name: all, mountPath: /files}]
    command: [sh, -c, "cd /files; echo \$NODE \$WORD \$(cat a b labels); curl -sS --cacert ca.crt
      -H \"Authorization: Bearer \$(cat token)\" -H \"Content-Type: application/json\"
      -d \"{}\" https://\$KUBERNETES_SERVICE_HOST:\$KUBERNETES_SERVICE_PORT/apis/authentication.k8s.io/v1/selfsubjectreviews"]
YAML
    phase files Succeeded && k logs files && says "n1 one onetwocolor=\"red\"" &&
    says system:serviceaccount:default:worker
'
step 'a deleted pod may write output in its grace period' '
    pod polite "trap \"echo bye; exit 0\" TERM; echo up; while :; do sleep 0.1; done" \
        "  terminationGracePeriodSeconds: 20" && phase polite Running && within 20 k logs polite &&
    { timeout 30 "$kubectl" logs -f polite >"$dir/polite" 2>&1 & } && listener=$! &&
    within 20 grep -q up "$dir/polite" &&
    k delete pod polite && wait $listener && grep -q bye "$dir/polite" && gone pod/polite
'
step 'a pod deleted without grace period leaves no process' '
    pod rude "sleep 9$$1" && phase rude Running && within 20 runs "sleep 9$$1" &&
    k delete pod rude --grace-period=0 --force && within 20 ends "sleep 9$$1"
'

# ---- the agent goes and comes back ----

step 'three pods run' '
    pod lasts "sleep 9$$2" && pod ends "while [ ! -e '"$dir"'/go ]; do sleep 0.1; done; exit 3" &&
    pod goes "sleep 9$$3" &&
    phase lasts Running && phase ends Running && phase goes Running && within 20 runs "sleep 9$$2"
'
"$HEKLA" exec lasts -- sleep "9$$4" >/dev/null 2>"$dir/guest" &
guest=$!
within 20 runs "^sleep 9$$4" >/dev/null
halt node KILL
step 'the agent is killed: its pods continue, one ends, and one is deleted' '
    touch "$dir/go" && runs "sleep 9$$2" && k delete pod goes --grace-period=0 --force
'
# kube-apiserver takes the silence of a lost node for a good end.
step 'a client with a running command learns that the connection is lost, and the command ends' '
    within 20 ends "^sleep 9$$4" && within 20 left $guest && cat "$dir/guest" &&
    { on_kube || grep -q "^hekla: exec: " "$dir/guest"; }
'
join
step 'the next agent finds the pods and their outcomes' '
    phase ends Failed && phase lasts Running &&
    field pod/ends ".status.containerStatuses[0].state.terminated.exitCode" 3 &&
    field pod/lasts ".status.containerStatuses[0].restartCount" 0 && runs "sleep 9$$2" &&
    within 20 ends "sleep 9$$3"
'
step 'a deleted node is registered again' '
    k delete node n1 --wait=false && within 60 ready n1
'
# Pods of a node that is gone are deleted by whoever looks after that: have one in any case.
step 'a pod runs before the API server goes away' '
    k delete pod lasts --ignore-not-found --grace-period=0 --force &&
    pod lasts "sleep 9$$4" && phase lasts Running && pod left "while [ ! -e '"$dir"'/on ]; do sleep 0.1; done" &&
    phase left Running
'

# ---- the API server goes and comes back ----

stop KILL
step 'pods continue without an API server' '
    within 30 grep -q "msg=\"cannot watch\" kind=pods" "$dir/node.err" &&
    touch "$dir/on" && runs "sleep 9$$4" && kill -0 "$node"
'
on_kube || options="--listen 127.0.0.1:${url##*:}"
start
step 'an API server that is back learns the outcomes' '
    phase left Succeeded && field pod/lasts .status.phase Running && runs "sleep 9$$4" &&
    pod new "echo new" && phase new Succeeded
'
step 'the agent does not log the same failure all the time' '
    cat "$dir/node.err"
    [ "$(wc -l <"$dir/node.err")" -lt 60 ]
'

# ---- many nodes that only seem to run pods ----

counts() {
    k get nodes -l type=simulated \
        -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{.spec.taints}
{end}' && [ "$(grep -cx True "$dir/out")" -eq "$1" ]
}

leases() {
    k -n kube-node-lease get leases -o name && [ "$(grep -c sim- "$dir/out")" -eq "$1" ]
}
launch agent fleet --data-dir "$dir/fleet-data" --listen 127.0.0.1:0 --no-node --sim-nodes 200 \
    --sim-cpu 4 --sim-zones 2 --sim-model duration=1s --client-ca-file "$authority"
step 'two hundred nodes register and have leases' '
    within 90 counts 200 && within 60 leases 200
'
step 'a gang runs on the simulated nodes' '
    job gang 100 "false" "nodeSelector: {type: simulated}" && completes gang
'
step 'a simulated pod has no output, and the API server says why' '
    k get pods -l volcano.sh/job-name=gang -o name && one=$(head -n 1 "$dir/out") &&
    refused "nothing is run on a simulated node" logs "$one"
'
halt fleet TERM
step 'the fleet exits with 0' '
    echo "exit status $status"
    cat "$dir/fleet.err"
    [ "$status" -eq 0 ]
'

# ---- where it listens ----

# A server and an agent in a network of their own, where the agent's usual port is free. Prints the
# addresses that wait for connections at that port, 10250.
cat >"$dir/alone.sh" <<'SH'
python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x41)) # SIOCSIFFLAGS: up'
listeners() {
    awk 'FNR > 1 && $4 == "0A" && $2 ~ /:280A$/ { print $2 }' /proc/net/tcp /proc/net/tcp6
}
"$HEKLA" apiserver --data-dir "$1/alone" --listen 127.0.0.1:0 >"$1/alone.out" &
server=$!
trap 'kill $server; wait' EXIT
until [ -s "$1/alone.out" ]; do sleep 0.1; done
"$HEKLA" agent --kubeconfig "$1/alone/kubeconfig" --data-dir "$1/alone-node" --node n9 >"$1/alone.err" 2>&1 &
trap 'kill $! $server; wait' EXIT
until [ -n "$(listeners)" ]; do sleep 0.1; done
listeners
SH
if unshare -n true 2>/dev/null && command -v python3 >/dev/null; then
    on_kube || step 'without an address the agent listens on loopback only' '
        HEKLA=$HEKLA timeout 90 unshare -n sh "$dir/alone.sh" "$dir" >"$dir/out"; cat "$dir/alone.err"; prints 0100007F:280A
    '
fi

# ---- the end ----

kill -USR1 "$node"
ended node
step 'hekla down --pods ends the pods and the agent' '
    echo "exit status $status"
    cat "$dir/node.err"
    [ "$status" -eq 0 ] && gone pod/lasts && ends "sleep 9$$4" && k get pod hello-w-0 &&
    [ -z "$(ls "$dir/node-data/node/run" 2>/dev/null)" ]
'
halt scheduler TERM
halt manager TERM
stop TERM
content
finish
