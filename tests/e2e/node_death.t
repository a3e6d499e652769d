#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Machines that die, stop, come back and are taken away: hekla up and agents beside it, which are
# killed and stopped. The server waits two seconds for nodes instead of forty, and pods tolerate a
# dead node for one second instead of 300.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl flock
needs_embedded 'kube-controller-manager looks after the nodes of a real cluster'
verb=up
options='--no-node --node-monitor-grace-period 3s --default-unreachable-toleration-seconds 1
    --default-not-ready-toleration-seconds 1 --pod-gc-quarantine 1s'
one= two= three=

clean_up() {
    for name in one two three; do
        eval "[ -n \"\$$name\" ] && kill -s CONT \$$name 2>/dev/null"
        halt $name KILL
        "$HEKLA" down --data-dir "$dir/$name-data" --pods >/dev/null 2>&1
    done
    stop KILL
    for name in g-w-0 g-w-1 h-w-0 h-w-1; do
        power_off $name >/dev/null 2>&1
    done
    rm -rf "$dir"
}

# join NAME: an agent whose node has that name.
join() {
    launch agent "$1" --data-dir "$dir/$1-data" --listen 127.0.0.1:0 --node "$1" \
        --node-lease-duration 1s --client-ca-file "$data/ca.crt"
}

# is NODE STATUS: of its condition Ready.
is() {
    field "node/$1" '.status.conditions[?(@.type=="Ready")].status' "$2"
}

# ready NODE: and may be used.
ready() {
    is "$1" True && field "node/$1" '.spec.taints[*].key' ''
}

# gang NAME [LINE]: a job of two pods on two nodes, with a line of its spec. Each pod holds a lock
# while it runs, and writes down when it finds it held.
gang() {
    k apply -f - <<YAML
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: $1}
spec:
  minAvailable: 2
  schedulerName: volcano
  queue: default
  ${2:-}
  tasks:
  - name: w
    replicas: 2
    template:
      metadata: {labels: {gang: $1}}
      spec:
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        affinity:
          podAntiAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector: {matchLabels: {gang: $1}}
        volumes: [{name: marks, hostPath: {path: $dir/marks}}]
        containers:
        - name: main
          image: none
          volumeMounts: [{name: marks, mountPath: $dir/marks}]
          command:
          - sh
          - -c
          - >-
            exec 9>$dir/marks/\$HOSTNAME; flock -n 9 || echo \$HOSTNAME >>$dir/marks/twice;
            echo \$HOSTNAME >>$dir/marks/starts; exec sleep 36044
          resources: {requests: {cpu: 100m}}
YAML
}

# running JOB N: so many of its pods run, and are ready.
running() {
    k get pods -l "volcano.sh/job-name=$1" -o jsonpath='{range .items[*]}{.status.phase}
{.metadata.deletionTimestamp}{.status.conditions[?(@.type=="Ready")].status}
{end}' && [ "$(grep -c '^True$' "$dir/out")" -eq "$2" ] && [ "$(grep -c '^Running$' "$dir/out")" -eq "$2" ]
}

# on NODE GANG: its pod that is there.
on() {
    k get pods -l "gang=$2" -o jsonpath="{.items[?(@.spec.nodeName==\"$1\")].metadata.name}" >&2 &&
        cat "$dir/out"
}

# held POD: a process has its lock.
held() {
    ! flock -n "$dir/marks/$1" true
}

# pid_of POD: its process on this machine.
pid_of() {
    grep -lzx "HOSTNAME=$1" /proc/[0-9]*/environ 2>/dev/null | sed -n '1s/[^0-9]//gp'
}

# power_off POD: what an agent that was killed left running is not there on a machine that is off.
power_off() {
    for process in $(grep -lzx "HOSTNAME=$1" /proc/[0-9]*/environ 2>/dev/null | sed 's/[^0-9]//g'); do
        kill -s KILL "$process" 2>/dev/null
    done
    within 20 sh -c "flock -n $dir/marks/$1 true"
}

# left PID: the process has ended.
left() {
    ! kill -0 "$1" 2>/dev/null
}

terminating() {
    k get pod "$1" -o jsonpath='{.metadata.deletionTimestamp}' && ! prints ''
}

# replaced POD NODE: there is another of that name, which is not on that node.
replaced() {
    k get pod "$1" -o jsonpath='{.spec.nodeName}{.metadata.deletionTimestamp}' && ! prints "$2" &&
        ! grep -q T "$dir/out"
}

# transition NODE: since when it is as ready as it is.
transition() {
    k get node "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].lastTransitionTime}'
    cat "$dir/out"
}

# renewal NODE
renewal() {
    k -n kube-node-lease get lease "$1" -o jsonpath='{.spec.renewTime}'
    cat "$dir/out"
}

renewed() {
    [ "$(renewal "$1")" != "$2" ]
}

# pod NAME NODE LINE: a pod for that node, with a line of its spec.
pod() {
    k apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeName: $2
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  $3
YAML
}

mkdir "$dir/marks"
start
join one
join two

step 'two agents are two nodes' '
    within 30 ready one && within 30 ready two
'
step 'gangs have a pod on each node' '
    gang g && gang h "policies: [{event: PodEvicted, action: RestartJob}]" &&
    within 30 running g 2 && within 30 running h 2
'
lost=$(on two g) stays=$(on one g) lost_h=$(on two h)

# ---- a machine dies ----

halt two KILL
step 'a silent node is not ready, with the reason' '
    within 30 is two Unknown &&
    field node/two ".status.conditions[?(@.type==\"Ready\")].reason" NodeStatusUnknown &&
    field node/two ".status.conditions[?(@.type==\"Ready\")].message" "Kubelet stopped posting node status." &&
    within 20 field node/two ".spec.taints[*].key" \
        "node.kubernetes.io/unreachable node.kubernetes.io/unreachable" &&
    field node/two ".spec.taints[*].effect" "NoSchedule NoExecute" && is one True
'
step 'pods of a silent node are not ready, and are evicted after their toleration' '
    within 20 field "pod/$lost" ".status.conditions[?(@.type==\"Ready\")].status" False &&
    within 20 field "pod/$lost" ".status.conditions[?(@.type==\"DisruptionTarget\")].reason" \
        DeletionByTaintManager &&
    within 20 k get pod "$lost" -o jsonpath="{.metadata.deletionTimestamp}" && ! prints ""
'
step 'a pod whose process may still run is not started again: it stays Terminating' '
    held "$lost" && field "pod/$lost" .spec.nodeName two && field "pod/$stays" .status.phase Running
'
step 'new pods are placed on live nodes' '
    k apply -f - <<YAML
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: fresh}
spec:
  minAvailable: 4
  schedulerName: volcano
  queue: default
  tasks:
  - name: w
    replicas: 4
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: none, command: ["true"], resources: {requests: {cpu: 10m}}}]
YAML
    within 60 field vcjob/fresh .status.state.phase Completed &&
    k get pods -l volcano.sh/job-name=fresh -o jsonpath="{.items[*].spec.nodeName}" &&
    prints "one one one one"
'
step 'explain, nodes and status show the lost node' '
    "$HEKLA" explain vcjob/g >"$dir/out" 2>&1
    says "$lost" "node two" "not reachable since" && silent "as soon as pods that are ending are gone" &&
    "$HEKLA" nodes >"$dir/out" && says "two NotReady" && "$HEKLA" status --data-dir "$data" >"$dir/out" &&
    says "1 node is not ready: two"
'

# ---- and is taken away ----

step 'after its node is deleted the pod is removed, and the gang waits for another node' '
    power_off "$lost"
    power_off "$lost_h"
    k delete node two && within 30 replaced "$lost" two && within 30 running g 1 &&
    field "pod/$lost" .status.phase Pending
'
step 'a job with a policy for lost pods is restarted as a whole' '
    within 30 field vcjob/h .status.version 1 && within 30 running h 0
'
join three
step 'one gang continues on the new node, the other restarts' '
    within 30 ready three && within 30 running g 2 && field "pod/$lost" .spec.nodeName three &&
    within 30 running h 2
'
lost_h=$(on three h)

# ---- a machine that is cut off ----

first=$(pid_of "$lost")
kill -s STOP "$three"
step 'pods of a machine without network continue, and are not started elsewhere' '
    within 30 is three Unknown && within 20 terminating "$lost" && held "$lost" &&
    field "pod/$lost" .spec.nodeName three && kill -0 "$first"
'
kill -s CONT "$three"
step 'a machine that is back ends evicted pods before it is ready' '
    within 30 ready three && left "$first"
'
step 'the gangs are complete again' '
    within 30 running g 2 && ! terminating "$lost" && within 30 running h 2
'
lost_h=$(on three h)
second=$(pid_of "$lost")
kill -s STOP "$three"
step 'a pod that was deleted by force meanwhile has ended before the node is ready' '
    within 30 is three Unknown && k delete pod "$lost" --force --grace-period=0 &&
    kill -0 "$second" && kill -s CONT "$three" && within 30 ready three && left "$second" &&
    within 30 running g 2 && within 30 running h 2
'
lost_h=$(on three h)
step 'no pod ran twice at a time' '
    ! cat "$dir/marks/twice"
'

# ---- the administrator says that a machine is off ----

halt three KILL
step 'with the taint out-of-service its pods are removed, though the node stays' '
    within 30 is three Unknown && within 20 terminating "$lost" && power_off "$lost" &&
    power_off "$lost_h" &&
    k taint node three node.kubernetes.io/out-of-service=nodeshutdown:NoExecute &&
    within 30 replaced "$lost" three && is three Unknown
'

# ---- what is not a death ----

pid_before=$(pid_of "$stays")
k get pod "$stays" -o 'jsonpath={.metadata.uid}' && uid=$(cat "$dir/out")
halt one KILL
join one
step 'an agent that is killed and started again finds its pods, and nothing is evicted' '
    within 30 ready one && field "pod/$stays" .metadata.uid "$uid" && kill -0 "$pid_before" &&
    ! terminating "$stays"
'
since=$(transition one)
kill -s STOP "$pid"
sleep 6 # twice as long as it waits for nodes
kill -s CONT "$pid"
renewed_at=$(renewal one)
step 'a server that was stopped itself declares no node lost' '
    within 30 renewed one "$renewed_at" && [ "$(transition one)" = "$since" ] && ready one &&
    ! terminating "$stays"
'

# ---- pods that do not fit ----

# churn N: so many jobs that fill the node and end at once.
churn() {
    for i in $(seq "$1"); do
        cat <<YAML
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: churn-$i, labels: {test: churn}}
spec:
  minAvailable: 2
  schedulerName: volcano
  queue: default
  tasks:
  - name: w
    replicas: 2
    template:
      metadata: {labels: {test: churn}}
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: none, command: [sleep, "0.2"], resources: {requests: {cpu: 400m}}}
YAML
    done | kubectl apply -f - >/dev/null
}

finished() {
    k get vcjob -l test=churn -o jsonpath='{.items[*].status.state.phase}' &&
        [ "$(tr ' ' '\n' <"$dir/out" | grep -vc Completed)" -eq 0 ]
}

step 'the node accepts every pod that the scheduler placed, also after forced deletions' '
    churn 20 && for i in 1 2 3 4 5 6; do
        kubectl delete pod -l test=churn,volcano.sh/task-index=0 --field-selector status.phase=Running --force \
            --grace-period=0 >/dev/null 2>&1
    done
    within 60 finished && k get events -o jsonpath="{.items[*].reason}" && silent OutOf
'

big='containers: [{name: main, image: none, command: [sleep, "36045"], resources: {requests: {cpu: 100000}}}]'
step 'a pod that was put on a node by name, and does not fit there, fails' '
    pod big one "$big" && within 30 field pod/big .status.phase Failed &&
    field pod/big .status.reason OutOfcpu && k get pod big -o jsonpath="{.status.message}" &&
    says "Node didn'"'t"' have enough resource: cpu, requested: 100000000, used: 100, capacity:" &&
    pod picky one "nodeSelector: {no: where}
  containers: [{name: main, image: none, command: [sleep, \"36045\"]}]" &&
    within 30 field pod/picky .status.reason NodeAffinity
'
step 'pods bound to nodes that never existed are deleted with their namespace' '
    k create namespace brief && k -n brief apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: lost}
spec: {nodeName: nowhere, containers: [{name: main, image: none}]}
YAML
    k delete namespace brief --wait=false && within 30 gone namespace/brief
'
launch agent two --data-dir "$dir/stranger-data" --listen 127.0.0.1:0 --node stranger
step 'an agent that cannot verify the server says what to do' '
    within 30 ready stranger && pod quiet stranger \
        "containers: [{name: main, image: none, command: [sleep, \"36046\"]}]" &&
    within 30 field pod/quiet .status.phase Running &&
    refused "cannot read the log of pod quiet: its node answered 401 Unauthorized; start the agent \
there with --client-ca-file FILE" logs quiet && k delete pod quiet --wait
'
halt two TERM
halt one TERM
stop TERM
step 'the server ends on SIGTERM' '
    cat "$dir/server" && [ "$status" -eq 0 ]
'
finish
