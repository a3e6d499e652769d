#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla explain against hekla up: why jobs wait, in the words and numbers of the scheduler that
# keeps them waiting, and whether what is said to help does.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
verb=up options="--node n1 --conf $dir/conf.yaml"

# conf PLUGIN...: the scheduler's configuration.
conf() {
    printf 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n' >"$dir/conf.new"
    for plugin in priority gang predicates "$@"; do
        echo "  - name: $plugin" >>"$dir/conf.new"
    done
    mv "$dir/conf.new" "$dir/conf.yaml"
    if on_kube && [ -n "$pid" ]; then
        publish
    fi
}

# publish: in a cluster the file comes out of a ConfigMap.
publish() {
    kubectl create configmap -n volcano-system volcano-scheduler-configmap --dry-run=client -o yaml \
        --from-file="volcano-scheduler.conf=$dir/conf.yaml" | kubectl apply --server-side --force-conflicts -f -
}

# job NAME REPLICAS CPU COMMAND [LINE...]: a gang; the lines go into its spec.
job() {
    name=$1 replicas=$2 cpu=$3 command=$4
    shift 4
    print_job "$name" "$replicas" "terminationGracePeriodSeconds: 0, containers: [{name: main,
        image: none, command: [sh, -c, \"$command\"], resources: {requests: {cpu: \"$cpu\"}}}]" "$@"
}

# e ARG...: hekla explain; what it prints is kept in $dir/out and $dir/err.
e() {
    timeout 60 "$HEKLA" explain "$@" >"$dir/out" 2>"$dir/err" && return 0
    echo "hekla explain $*: exit status $?"
    cat "$dir/out" "$dir/err"
    return 1
}

# explains JOB TEXT...: the answer has each text.
explains() {
    job=$1
    shift
    e "$job" && says "$@"
}

# fails TEXT ARG...: no answer, and one line that says why.
fails() {
    text=$1
    shift
    if e "$@" >/dev/null; then
        echo "expected to fail"
        return 1
    fi
    [ "$(cat "$dir/err")" = "$text" ] && return 0
    echo "expected: $text"
    cat "$dir/err"
    return 1
}

# phase JOB PHASE
phase() {
    [ "$(kubectl get job.batch.volcano.sh "$1" -o 'jsonpath={.status.state.phase}')" = "$2" ]
}

node_is_ready() {
    kubectl get nodes | grep -w Ready
}

# idle: no pod has anything left on the node.
idle() {
    [ -z "$(ls "$data/node/pods")" ] && [ -z "$(ls "$data/node/run")" ]
}

# follows TEXT: the ConfigMap says so.
follows() {
    kubectl get configmap -n volcano-system volcano-scheduler-configmap -o yaml | grep -F -- "$1"
}

conf
start

step 'this machine is a node' '
    within 20 node_is_ready
'
cpus=$(kubectl get node n1 -o 'jsonpath={.status.allocatable.cpu}')
case $cpus in
*m) cpus=${cpus%m} ;;
*) cpus=${cpus}000 ;;
esac
held=$((cpus - 300))m

step 'a gang that does not fit is told what is missing and what would help' '
    job busy 1 "$held" "sleep 1000" | kubectl create -f - && within 20 phase busy Running &&
        job train 3 250m "sleep 1000" | kubectl create -f - &&
        within 20 explains train "3 of its pods must have a place at once, 1 would find one" &&
        says "1 of 1 node: Insufficient cpu (a pod wants 250m, at most 300m is free now, on n1)" \
            "- job default/busy ends" "- minAvailable is 1 instead of 3" \
            "- task w asks for cpu 100m instead of 250m per pod" "- there is one more node like n1"
'
step 'the explanation is available as JSON and YAML' '
    e train -o json && says "\"state\": \"waiting\"" "\"minimum\": 3" "\"fit\": 1" \
        "\"mostFreeOn\": \"n1\"" "\"job\": \"default/busy\"" &&
        e train -o yaml && says "state: waiting" "change: minAvailable"
'
step 'an explanation changes nothing' '
    field job.batch.volcano.sh/train .spec.minAvailable 3 && phase train Pending
'
step 'a job behind another is told which is first, and why' '
    kubectl create priorityclass high --value=100 && kubectl create priorityclass low --value=10 &&
        job second 3 250m true "priorityClassName: low" | kubectl create -f - &&
        job first 3 250m true "priorityClassName: high" | kubectl create -f - &&
        within 20 explains second "Ahead of it: 1 job, 1 in its queue" &&
        says "default/first priority 100 over 10; waits for cpu 750m" &&
        kubectl delete job.batch.volcano.sh first second
'
step 'a suggested change lets the job start, and explain --watch shows it' '
    timeout 60 "$HEKLA" explain train --watch >"$dir/watched" 2>&1 & watcher=$!
    within 20 grep -q "would find one" "$dir/watched" && kubectl delete job.batch.volcano.sh busy &&
        within 20 phase train Running && wait $watcher &&
        tail -n 5 "$dir/watched" | grep -F "default/train runs: 3 pods have a place." &&
        explains train "default/train runs: 3 pods have a place." waited ran &&
        silent "It starts if" && kubectl delete job.batch.volcano.sh train
'
step 'a node selector that matches nothing is named' '
    job picky 1 10m true | sed "s/restartPolicy: Never/&, nodeSelector: {disk: ssd}/" |
        kubectl create -f - && within 20 explains picky "1 of 1 node: node(s) didn" &&
        says "- its pods do not ask for node label disk=ssd" &&
        kubectl delete job.batch.volcano.sh picky
'
step 'a taint is named, and a cordon' '
    kubectl taint node n1 only=some:NoSchedule && job shy 1 10m true | kubectl create -f - &&
        within 20 explains shy "- its pods tolerate the taint only=some:NoSchedule" &&
        kubectl taint node n1 only- && within 20 phase shy Completed &&
        kubectl cordon n1 && job still 1 10m true | kubectl create -f - &&
        within 20 explains still "- node n1 is uncordoned" && kubectl uncordon n1 &&
        within 20 phase still Completed
'
step 'a job that has ended tells how' '
    explains shy "default/shy has completed: 1 pod succeeded, 0 failed" took &&
        job bad 1 10m "exit 3" "maxRetry: 1" "policies: [{event: PodFailed, action: RestartJob}]" |
        kubectl create -f - && within 20 phase bad Failed &&
        explains bad "default/bad has failed" "pod bad-w-0 of task w: exit code 3" &&
        kubectl delete job.batch.volcano.sh shy still bad
'
step 'a suspended job says so, and what would become of it' '
    job pause 1 10m "sleep 1000" | kubectl create -f - && within 20 phase pause Running &&
        "$HEKLA" vcctl job suspend -N pause && within 20 phase pause Aborted &&
        explains pause "is suspended, and would start if it were resumed" "- it is resumed" &&
        "$HEKLA" vcctl job resume -N pause && within 20 phase pause Running &&
        kubectl delete job.batch.volcano.sh pause
'
step 'a task that depends on another says which' '
    kubectl create -f - <<YAML &&
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: chain}
spec:
  minAvailable: 1
  tasks:
  - name: a
    replicas: 1
    minAvailable: 1
    template: {spec: {containers: [{name: main, image: none, command: [sleep, "1000"], resources: {requests: {cpu: "1000"}}}]}}
  - name: b
    replicas: 1
    dependsOn: {name: [a]}
    template: {spec: {containers: [{name: main, image: none, command: [sleep, "1000"]}]}}
YAML
        within 20 explains chain "task b has no pods yet: it depends on a" "task a: 1 pod" &&
        kubectl delete job.batch.volcano.sh chain
'
step 'explain uses the current configuration, and follows changes' '
    within 20 follows "name: predicates" && conf proportion && within 20 follows "name: proportion"
'
step 'a full queue shows its usage and the size it would need' '
    kubectl create -f - <<YAML &&
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: narrow}
spec: {weight: 1, capability: {cpu: 100m}}
YAML
        job one 1 80m "sleep 1000" "queue: narrow" | kubectl create -f - && within 20 phase one Running &&
        job two 1 80m "sleep 1000" "queue: narrow" | kubectl create -f - &&
        within 20 explains two "cpu: it wants 80m, and the queue holds 80m of at most 100m" &&
        says "- job default/one ends" "- queue narrow has capability cpu 160m instead of 100m" \
            "- it is in queue default" "- task w asks for cpu 20m instead of 80m per pod"
'
step 'the larger queue lets it start' '
    kubectl patch queue narrow --type=merge -p "{\"spec\":{\"capability\":{\"cpu\":\"160m\"}}}" &&
        within 20 phase two Running && explains two "default/two runs" &&
        kubectl delete job.batch.volcano.sh two
'
step 'a closed queue is named' '
    job late 1 100m "sleep 1000" "queue: narrow" | kubectl create -f - &&
        within 20 explains late "waits" && "$HEKLA" vcctl queue operate -n narrow -a close &&
        kubectl delete job.batch.volcano.sh one &&
        within 20 explains late "not open" "- queue narrow is opened"
'
step 'queues, groups and pods are explained, too' '
    e queue/narrow && says "narrow takes no jobs, and 1 of its 1 job waits" &&
        group=$(kubectl get podgroup -o name | head -n 1) && e "podgroup/${group#*/}" &&
        says "waits" && kubectl delete job.batch.volcano.sh late &&
        job calm 1 10m "sleep 1000" | kubectl create -f - && within 20 phase calm Running &&
        e pod/calm-w-0 && says "is Running on node n1"
'
step 'a flow shows which step waits for what' '
    kubectl create -f - <<YAML &&
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: long}
spec:
  minAvailable: 1
  tasks:
  - {name: w, replicas: 1, template: {spec: {containers: [{name: main, image: none, command: [sleep, "1000"], resources: {requests: {cpu: 10m}}}]}}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: next}
spec:
  minAvailable: 1
  tasks:
  - {name: w, replicas: 1, template: {spec: {containers: [{name: main, image: none, command: ["true"]}]}}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: study}
spec:
  flows:
  - {name: long}
  - {name: next, dependsOn: {targets: [long], probe: {tcpSocketList: [{taskName: w, port: 9}]}}}
YAML
        within 20 phase study-long Running &&
        within 20 explains jobflow/study "0 of 2 steps done, job '\''study-long'\'' has not ended, the rest wait" &&
        says "long Running (job study-long)" "next waits for long (Running; until done or tcp w:9)" &&
        kubectl delete jobflow study
'
step 'a missing object is reported in one line, with the nearest name' '
    fails "hekla: explain: there is no job '\''clam'\'' in namespace '\''default'\''; did you mean '\''calm'\''?" clam &&
        fails "hekla: explain: there is no job '\''zebra'\'' in namespace '\''default'\''" zebra &&
        fails "hekla: explain: there is no queue '\''none'\''" queue/none &&
        fails "hekla: explain: '\''shoe/x'\'': want job, podgroup, pod, queue or jobflow before the /" shoe/x &&
        fails "hekla: explain: the name of a job is missing (see '\''hekla help explain'\'')"
'
step 'a user without permission is told which right is missing' '
    sed "s/^  user:.*/&/; s/^ *token: .*/    as: stranger\n&/" "$KUBECONFIG" >"$dir/stranger" &&
        ! e calm --kubeconfig "$dir/stranger" >/dev/null && grep -F "jobs.batch.volcano.sh is forbidden" "$dir/err" &&
        kubectl create clusterrole looks --verb=get,list --resource=nodes,pods,namespaces,podgroups,queues,jobs.batch.volcano.sh &&
        kubectl create clusterrolebinding looks --clusterrole=looks --user=stranger &&
        e calm --kubeconfig "$dir/stranger" && says "default/calm runs" "note: poddisruptionbudgets were left out" \
            "note: the built-in configuration was used"
'
step 'when all is deleted the node is as it was' '
    kubectl delete job.batch.volcano.sh --all && within 40 idle
'

stop TERM
step 'the server exits with 0 and logs nothing' '
    [ "$status" -eq 0 ] && ! grep -E "level=(warn|error)" "$dir/server"
'
finish
