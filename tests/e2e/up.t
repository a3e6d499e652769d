#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up without a node: API, controllers and scheduler in one process, with kubectl as user and
# as the nodes, whose work it is to run pods.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
verb=up options=--no-node
# Nodes are made by hand here, and nobody renews their leases.
[ "${HEKLA_BACKEND:-}" = kube ] || options="$options --node-monitor-grace-period 1h"

# node NAME CPU: a node that is ready.
node() {
    kubectl create -f - <<YAML
apiVersion: v1
kind: Node
metadata: {name: $1}
status:
  capacity: {cpu: "$2", memory: 16Gi, pods: "110"}
  allocatable: {cpu: "$2", memory: 16Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
YAML
}

# job NAME REPLICAS [LINE...]: a gang; the lines go into its spec.
job() {
    name=$1 replicas=$2
    shift 2
    print_job "$name" "$replicas" \
        'containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]' "$@"
}

# play POD PHASE: what a node would report.
play() {
    k patch pod "$1" --subresource=status --type=merge -p '{"status":{"phase":"'"$2"'",
        "containerStatuses":[{"name":"main","image":"none","imageID":"","ready":true,"restartCount":0}]}}'
}

# is TYPE/NAME PATH VALUE: as field, but for within.
is() {
    [ "$(kubectl get "$1" -o jsonpath="{$2}")" = "$3" ]
}

# told TEXT: an event says so.
told() {
    kubectl get events | grep -F -- "$1"
}

# readme: runs the kubectl commands that stand on lines of their own in the README.
readme() {
    grep "^kubectl " README.md >"$dir/readme" || return 1
    while read -r _ words; do
        # shellcheck disable=SC2086 # several words
        k $words </dev/null || return 1
    done <"$dir/readme"
}

# placed LABEL COUNT: so many pods have a node.
placed() {
    [ "$(kubectl get pods -l "$1" -o jsonpath='{.items[*].spec.nodeName}' | wc -w)" = "$2" ]
}

# bound NAME COUNT: the same for the pods of a job.
bound() {
    placed "volcano.sh/job-name=$1" "$2"
}

start

step 'the default queues are open' '
    within 10 is queue/default .status.state Open && within 10 is queue/root .status.state Open
'
step 'a gang that does not fit waits, with the reason' '
    node n1 2 && job gang 3 | kubectl create -f - && within 10 told "overused cpu" && bound gang 0
'
step 'the whole gang is bound once there is room' '
    node n2 2 && within 10 bound gang 3 && within 10 told "pod group is ready"
'
step 'the job runs and completes as its pods do' '
    for i in 0 1 2; do play "gang-w-$i" Running || exit 1; done
    within 10 is job.batch.volcano.sh/gang .status.state.phase Running || exit 1
    for i in 0 1 2; do play "gang-w-$i" Succeeded || exit 1; done
    within 10 is job.batch.volcano.sh/gang .status.state.phase Completed &&
        field job.batch.volcano.sh/gang .status.succeeded 3
'
step 'a failed pod restarts the job and stays on record' '
    job retry 1 "policies: [{event: PodFailed, action: RestartJob}]" | kubectl create -f - &&
        within 10 bound retry 1 && play retry-w-0 Running && play retry-w-0 Failed &&
        within 10 is job.batch.volcano.sh/retry .status.retryCount 1 && within 10 bound retry 1 &&
        field job.batch.volcano.sh/retry ".status.attempts[0].pod" retry-w-0
'
stop KILL
start
step 'after kill -9 everything continues where it was' '
    within 10 bound retry 1 && play retry-w-0 Running &&
        within 10 is job.batch.volcano.sh/retry .status.state.phase Running &&
        field job.batch.volcano.sh/retry .status.retryCount 1
'
step 'a deployment for volcano gets a group and a node' '
    kubectl create deployment web --image=none --replicas=1 --dry-run=client -o yaml |
        sed "s/^    spec:/    spec:\n      schedulerName: volcano/" | kubectl create -f - &&
        within 10 placed app=web 1
'
step 'the PodGroup follows the annotations of its owner' '
    set_by=$(kubectl get rs -l app=web -o name) &&
        k annotate "$set_by" scheduling.volcano.sh/group-min-member=2 &&
        k scale deployment web --replicas=2 &&
        within 10 is "podgroup" ".items[?(@.metadata.ownerReferences[0].kind==\"ReplicaSet\")].spec.minMember" 2
'
step 'a closed queue refuses jobs' '
    kubectl create -f - <<YAML
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: side}
spec: {weight: 1}
YAML
    within 10 is queue/side .status.state Open && kubectl create -f - <<YAML &&
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {name: close, namespace: default}
action: CloseQueue
target:
  apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  name: side
  uid: $(kubectl get queue side -o jsonpath="{.metadata.uid}")
YAML
        within 10 is queue/side .status.state Closed && job late 1 "queue: side" >"$dir/late.yaml" &&
        refused "Closed" create -f "$dir/late.yaml"
'
step 'a flow runs its steps in order' '
    for step in a b; do
        kubectl create -f - <<YAML || exit 1
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: $step}
spec:
  minAvailable: 1
  queue: default
  tasks: [{name: w, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: none}]}}}]
YAML
    done
    kubectl create -f - <<YAML
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: flow}
spec: {jobRetainPolicy: retain, flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]}
YAML
    within 10 bound flow-a 1 && gone job.batch.volcano.sh/flow-b && play flow-a-w-0 Running &&
        play flow-a-w-0 Succeeded && within 10 bound flow-b 1 && play flow-b-w-0 Running &&
        play flow-b-w-0 Succeeded && within 10 is jobflow/flow .status.state.phase Succeed
'
step 'a finished job is deleted after its time to live' '
    job brief 1 "ttlSecondsAfterFinished: 0" | kubectl create -f - && within 10 bound brief 1 &&
        play brief-w-0 Running && play brief-w-0 Succeeded && within 10 gone job.batch.volcano.sh/brief
'
# Elsewhere each program has its own.
on_kube || step 'one endpoint has the metrics of all parts, each once' '
    k get --raw /metrics && says "volcano_queue_weight{queue_name=\"default\"} 1" \
        "volcano_schedule_attempts_total{result=\"scheduled\"}" \
        "volcano_queue_pod_group_running_count{queue_name=\"default\"}" "hekla_store_objects" &&
    [ -z "$(grep -v "^#" "$dir/out" | sed "s/ [^ ]*$//" | sort | uniq -d)" ] &&
    [ -z "$(grep "^# TYPE" "$dir/out" | sort | uniq -d)" ]
'
step 'the kubectl commands of the README work' '
    readme && k delete -f examples/job.yaml -f examples/queue.yaml
'
stop TERM
step 'the server ends cleanly' '
    [ "$status" = 0 ] && [ ! -s "$dir/server" ] || { echo "exit status $status"; cat "$dir/server"; exit 1; }
'
finish
