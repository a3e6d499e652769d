#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with a thousand simulated nodes: gangs on them, fates by annotations and by a model, a
# crash in between.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
verb=up
options='--no-node --sim-nodes 1000 --sim-cpu 8 --sim-zones 4 --sim-model duration=forever'

# job NAME REPLICAS ANNOTATIONS [LINE...]: a gang whose pods have the annotations; the lines go into
# its spec.
job() {
    name=$1 replicas=$2 notes=$3
    shift 3
    print_job "$name" "$replicas" \
        'containers: [{name: main, image: none, resources: {requests: {cpu: "4"}}}]' "$@"
}

# nodes COUNT: so many are ready.
nodes() {
    [ "$(kubectl get nodes --no-headers | grep -cw Ready)" = "$1" ]
}

# is TYPE/NAME PATH VALUE: as field, but for within.
is() {
    [ "$(kubectl get "$1" -o jsonpath="{$2}")" = "$3" ]
}

# revision: moves with every write; of a real server it is how many there were but for heartbeats.
revision() {
    if on_kube; then
        grep '"verb":"\(create\|update\|patch\|delete\)".*system:serviceaccount:volcano-system:' "$(audit_log)" |
            grep -vc '"resource":"leases"'
    else
        kubectl get --raw /metrics | grep ^hekla_store_revision
    fi
}

# still SECONDS: nothing is written for so long.
still() {
    before=$(revision) && [ "$before" != 0 ] && sleep "$1" && [ "$(revision)" = "$before" ]
}

# phase JOB PHASE
phase() {
    is "job.batch.volcano.sh/$1" .status.state.phase "$2"
}

# in_phase JOB PHASE COUNT: so many of its pods are in that phase.
in_phase() {
    [ "$(kubectl get pods -l "volcano.sh/job-name=$1" --field-selector "status.phase=$2" -o name | wc -l)" = "$3" ]
}

# pods JOB COUNT
pods() {
    [ "$(kubectl get pods -l "volcano.sh/job-name=$1" -o name | wc -l)" = "$2" ]
}

start

step 'a thousand nodes exist, in their zones, with the requested resources' '
    within 60 nodes 1000 && field node/sim-01000 .status.allocatable.cpu 8 &&
        field node/sim-00001 ".metadata.labels.topology\.kubernetes\.io/zone" zone-1 &&
        [ "$(kubectl get nodes -l topology.kubernetes.io/zone=zone-4,type=simulated -o name | wc -l)" = 250 ]
'
step 'after the registration nothing is written any more' '
    within 30 still 2
'
step 'gangs run for the time of their annotation' '
    job short 64 "sim.hekla.sh/duration: 1s" | kubectl create -f - &&
        job long 500 "sim.hekla.sh/duration: 1h" | kubectl create -f - &&
        within 60 phase short Completed && within 120 phase long Running && within 60 in_phase long Running 500
'
step 'annotations decide how a pod fails' '
    job bad 1 "sim.hekla.sh/duration: 10ms, sim.hekla.sh/exit-code: \"3\"" | kubectl create -f - &&
        within 30 phase bad Failed && field pod/bad-w-0 .status.containerStatuses[0].state.terminated.exitCode 3 &&
        job oom 1 "sim.hekla.sh/duration: 10ms, sim.hekla.sh/oom: \"true\"" | kubectl create -f - &&
        within 30 phase oom Failed && field pod/oom-w-0 .status.containerStatuses[0].state.terminated.reason OOMKilled
'
step 'a job that fails twice succeeds at the third try' '
    job flaky 2 "sim.hekla.sh/duration: 10ms, sim.hekla.sh/exit-code: \"1\", sim.hekla.sh/failures: \"2\"" \
        "maxRetry: 5" "policies: [{event: PodFailed, action: RestartJob}]" | kubectl create -f - &&
        within 60 phase flaky Completed && field job.batch.volcano.sh/flaky .status.retryCount 2
'
step 'a simulated pod has no output, and says so' '
    refused "nothing is run on a simulated node" logs long-w-0
'
step 'a deleted node is registered again' '
    k delete node sim-00777 && within 30 nodes 1000
'

job soon 8 'sim.hekla.sh/duration: 4s' | kubectl create -f - >/dev/null
within 30 in_phase soon Running 8
begun=$(kubectl get pod soon-w-0 -o 'jsonpath={.status.containerStatuses[0].state.running.startedAt}')
stop KILL
start

step 'after a crash nodes are unchanged, and pods continue where they were' '
    within 60 nodes 1000 && in_phase long Running 500 && within 30 phase soon Completed &&
        field pod/soon-w-0 ".status.containerStatuses[0].state.terminated.startedAt" "$begun" &&
        field pod/soon-w-0 ".status.containerStatuses[0].restartCount" 0
'
step 'a gang that does not fit waits as a whole, and runs once there is room' '
    job huge 1700 "sim.hekla.sh/duration: 1h" | kubectl create -f - && within 30 phase huge Pending &&
        in_phase huge Running 0 && k delete job.batch.volcano.sh long && within 60 pods long 0 &&
        within 120 in_phase huge Running 1700
'
step 'deleted jobs leave no pods' '
    k delete job.batch.volcano.sh huge && within 120 pods huge 0
'

stop TERM
options='--no-node --sim-nodes 10 --sim-model duration=exp:20ms,fail=0.3 --sim-seed 7'
start

step 'a smaller fleet replaces the larger one' '
    within 60 nodes 10
'
step 'the model decides which pods fail, the same ones for the same seed' '
    for round in 1 2; do
        job chance 20 "" | sed "s/minAvailable: 20/minAvailable: 1/" | kubectl create -f - &&
            within 30 pods chance 20 && within 30 in_phase chance Running 0 && within 30 in_phase chance Pending 0 &&
            kubectl get pods -l volcano.sh/job-name=chance -o name --field-selector status.phase=Failed |
            sort >"$dir/failed.$round" && k delete job.batch.volcano.sh chance && within 30 pods chance 0 || exit 1
    done
    cat "$dir/failed.1"
    [ -s "$dir/failed.1" ] && cmp "$dir/failed.1" "$dir/failed.2"
'
stop TERM
content
finish
