#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The scheduler as a process of its own, between a real server and a real controller-manager, over
# TLS. Nodes are objects, and kubectl plays their kubelets.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl curl
first= second= manager=

# schedule NAME ARG...: a scheduler of this name (first or second); returns when it has started.
schedule() {
    launch scheduler "$@"
}

# complains TEXT ARG...: does not start with these options, and says so in one line.
complains() {
    stumbles scheduler "$@"
}

# works NAME: it has begun.
works() {
    grep -q 'msg="working"' "$dir/$1.err"
}

# node NAME CPU [LABELS]: a ready node with so many cores.
node() {
    k apply -f - <<YAML
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {${3:-}}}
status:
  capacity: {cpu: "$2", memory: 64Gi, pods: "200"}
  allocatable: {cpu: "$2", memory: 64Gi, pods: "200"}
  conditions: [{type: Ready, status: "True"}]
YAML
}

# job NAME REPLICAS CPU [LINE...]: applies a job; all its pods are needed. The lines go into its spec.
job() {
    name=$1 replicas=$2 cpu=$3
    shift 3
    print_job "$name" "$replicas" "terminationGracePeriodSeconds: 0,
        containers: [{name: main, image: busybox, resources: {requests: {cpu: $cpu}}}]" \
        'schedulerName: volcano' "$@" | k apply -f -
}

# group JOB: the name of its PodGroup.
group() {
    echo "podgroup/$1-$("$kubectl" get vcjob "$1" -o jsonpath='{.metadata.uid}')"
}

# bound JOB: how many of its pods have a node.
bound() {
    "$kubectl" get pods -l "volcano.sh/job-name=$1" \
        -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .
}

# has_bound N JOB
has_bound() {
    n=$(bound "$2")
    [ "$n" -eq "$1" ] && return 0
    echo "expected $1 bound pods of $2, got $n"
    return 1
}

# places JOB N: within a while.
places() {
    within 30 has_bound "$2" "$1"
}

# on POD NODE: within a while.
on() {
    within 20 field "pod/$1" .spec.nodeName "$2"
}

# waits JOB TEXT: its PodGroup says why it cannot be scheduled.
waits() {
    k get "$(group "$1")" \
        -o jsonpath='{.status.conditions[?(@.type=="Unschedulable")].message}' && says "$2"
}

# waits_pod POD TEXT: it says why it has no node.
waits_pod() {
    k get pod "$1" -o jsonpath='{.spec.nodeName}{.status.conditions[*].message}' && says "$2"
}

# become PHASE POD...: the nodes tell how the pods fare.
become() {
    phase=$1
    shift
    for pod in "$@"; do
        k patch pod "$pod" --subresource=status --type=merge \
            -p "{\"status\":{\"phase\":\"$phase\"}}" || return 1
    done
}

# end_job JOB: it and all that belongs to it goes.
end_job() {
    k delete vcjob "$1" --cascade=foreground --wait=false &&
        within 30 no_pods "$1"
}
no_pods() {
    k get pods -l "volcano.sh/job-name=$1" -o name && prints ''
}

# conf TEXT: the configuration file, replaced as a whole, as a mounted ConfigMap is.
conf() {
    printf '%s\n' "$1" >"$dir/conf/new" && mv "$dir/conf/new" "$dir/conf/scheduler.conf"
}
plugins='tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]'
full="actions: \"enqueue, allocate, backfill\"
$plugins"
# Without limits of queues, so that nodes are what jobs run out of.
free='actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]'

start
any=127.0.0.1:0
mkdir "$dir/conf" "$dir/dumps"

# ---- options ----

step 'bad options are reported in one line' '
    complains "unknown option '\''--nonsense'\''" --nonsense &&
    complains "option --percentage-nodes-to-find is '\''all'\''" --percentage-nodes-to-find=all &&
    complains "want one of: none, hard, soft" --scheduler-sharding-mode=firm &&
    complains "option --schedule-period is '\''soon'\'', want a duration" --schedule-period=soon &&
    complains "unrecognized feature gate: Magic" --feature-gates=Magic=true &&
    complains "unexpected '\''please'\''" please &&
    complains "--kubeconfig or --master is required"
'
step '--version and --help' '
    "$HEKLA" scheduler --version >"$dir/out" && says "hekla " &&
    "$HEKLA" scheduler --help >"$dir/out" && says "--scheduler-conf FILE"
'
step 'with --disable-default-scheduler-config the configuration must be valid' '
    complains "--disable-default-scheduler-config needs --scheduler-conf FILE" --disable-default-scheduler-config &&
    complains "$dir/absent" --disable-default-scheduler-config --scheduler-conf "$dir/absent" &&
    echo "actions: \"juggle\"" >"$dir/bad.conf" &&
    complains "juggle" --disable-default-scheduler-config=true --scheduler-conf "$dir/bad.conf"
'

# ---- ordinary life ----

launch controller-manager manager --leader-elect=false
conf "$full"
schedule first --leader-elect=false --enable-healthz --healthz-address=$any --enable-metrics \
    --listen-address=$any --scheduler-conf "$dir/conf/scheduler.conf" --cache-dump-dir "$dir/dumps" \
    --schedule-period=1s --node-worker-threads=20 --logtostderr -v=3

step 'health and metrics are served' '
    health=http://127.0.0.1:$(port first health) &&
    [ "$(curl -sS "$health/healthz") $(curl -sS "$health/healthz/ping")" = "ok ok" ] &&
    within 20 metric first "volcano_unschedule_job_count 0"
'
step 'the default queue is created' '
    within 20 field queue/default .spec.weight 1 && field queue/root .spec.reclaimable false
'
step 'a job that no queue has room for gets no pods' '
    job a 3 1 && within 20 field "$(group a)" .status.phase Pending && no_pods a
'
step 'a gang waits for the last of its members, and says why' '
    node n1 1.5 && node n2 1.5 && within 20 field "$(group a)" .status.phase Inqueue &&
    within 20 waits a "1/3 tasks in gang unschedulable: pod group is not ready" &&
    waits a "0/2 nodes are unavailable: 2 Insufficient cpu" && has_bound 0 a &&
    within 20 field pod/a-w-0 ".status.conditions[0].type" PodScheduled &&
    metric first "volcano_unschedule_job_count 1"
'
step 'with room for all of them all are bound' '
    node n3 1.5 && places a 3 && metric first "volcano_unschedule_job_count 0"
'
step 'its PodGroup follows the pods' '
    become Running a-w-0 a-w-1 a-w-2 && within 20 field "$(group a)" .status.phase Running &&
    within 20 field "$(group a)" .status.running 3 &&
    within 20 field vcjob/a .status.state.phase Running &&
    k get "$(group a)" -o "jsonpath={.status.conditions[?(@.type==\"Scheduled\")].status}" &&
    prints True
'
step 'metrics show tasks, jobs and queues' '
    metric first "volcano_task_scheduling_latency_milliseconds_count{stage=\"Bound\"} 3" &&
    metric first "volcano_schedule_attempts_total{result=\"scheduled\"} 3" &&
    metric first "volcano_queue_weight{queue_name=\"default\"} 1" &&
    metric first "volcano_queue_allocated_milli_cpu{queue_name=\"default\"} 3000" &&
    metric first "volcano_queue_share{queue_name=\"default\"} 1" &&
    grep -q "^volcano_e2e_scheduling_latency_milliseconds_bucket{le=\"1\"} " "$dir/scrape" &&
    grep -q "^volcano_e2e_job_scheduling_duration{job_name=\"a-" "$dir/scrape"
'
step 'metrics show requests, under the names of Kubernetes, and the process' '
    scrape first && peer="127.0.0.1:[0-9]*" &&
    grep -q "^rest_client_requests_total{code=\"201\",host=\"$peer\",method=\"POST\"} [1-9]" \
        "$dir/scrape" &&
    grep -q "^rest_client_request_duration_seconds_count{host=\"$peer\",verb=\"GET\"} [1-9]" \
        "$dir/scrape" &&
    grep -q "^rest_client_rate_limiter_duration_seconds_bucket{host=\"$peer\",verb=\"POST\",le=" \
        "$dir/scrape" &&
    for name in cpu_seconds_total resident_memory_bytes open_fds max_fds start_time_seconds; do
        grep -q "^process_$name [0-9.]*$" "$dir/scrape" || return
    done
'
step 'the queue shows allocated amounts, and none after the job has ended' '
    within 20 field queue/default .status.allocated.cpu 3 &&
    become Succeeded a-w-0 a-w-1 a-w-2 && within 20 field vcjob/a .status.state.phase Completed &&
    within 20 field queue/default .status.allocated.cpu 0
'
step 'metrics of a job are removed with the job' '
    end_job a && within 20 eval "scrape first && ! grep -q job_name= $dir/scrape"
'
step 'pods of other schedulers are left alone' '
    k create -f - <<YAML &&
apiVersion: v1
kind: Pod
metadata: {name: alien}
spec: {containers: [{name: c, image: busybox}]}
YAML
    job b 1 1 && places b 1 && field pod/alien .spec.nodeName "" && end_job b
'
step 'the state of the scheduler is dumped on demand' '
    kill -USR2 "$first" && within 20 grep -q "msg=\"the cluster as seen\" nodes=3" "$dir/first.err" &&
    kill -USR1 "$first" && within 20 grep -q "msg=\"snapshot written\"" "$dir/first.err" &&
    cat "$dir"/dumps/snapshot-*.json >"$dir/out" && says "{\"nodes\":[{\"name\":\"n1\","
'

# ---- the configuration file ----

step 'a new configuration is used without a restart' '
    conf "actions: \"enqueue\"
$plugins" &&
    within 20 grep -q "msg=\"configuration changed\"" "$dir/first.err" &&
    job c 1 1 && within 20 field "$(group c)" .status.phase Inqueue &&
    within 20 field pod/c-w-0 .status.phase Pending && has_bound 0 c
'
step 'a new configuration affects waiting jobs at once' '
    conf "$full" && places c 1
'
step 'a bad configuration is rejected' '
    conf "actions: \"enqueue, juggle\"" &&
    within 20 grep -q "msg=\"configuration not changed\".*juggle" "$dir/first.err" &&
    job d 1 1 && places d 1
'
end_job c >"$dir/log" && end_job d >>"$dir/log" && conf "$full"
halt first TERM
step 'SIGTERM ends the scheduler with status 0' '
    echo "exit status $status"
    cat "$dir/first.err"
    [ "$status" -eq 0 ] && ! grep -q "level=warn" "$dir/first.err"
'

# ---- some of the nodes ----

conf "$free"
schedule first --leader-elect=false --node-selector "pool:batch,malformed" --scheduler-name other \
    --scheduler-name volcano --scheduler-conf "$dir/conf/scheduler.conf"
step 'only nodes with the label of --node-selector are used' '
    node n2 1.5 "pool: batch" && job e 1 1 && on e-w-0 n2 && job f 1 1 &&
    within 20 waits f "0/1 nodes are unavailable: 1 Insufficient cpu" &&
    node n1 1.5 "pool: batch" && on f-w-0 n1
'
end_job e >"$dir/log" && end_job f >>"$dir/log"
halt first TERM

# ---- eviction ----

conf 'actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]'
schedule first --leader-elect=false --scheduler-conf "$dir/conf/scheduler.conf"
step 'a job of higher priority evicts pods beyond the minimum of another job' '
    k create priorityclass urgent --value=1000 && job low 3 1 && k patch vcjob low --type=json \
        -p "[{\"op\":\"replace\",\"path\":\"/spec/minAvailable\",\"value\":1},
            {\"op\":\"add\",\"path\":\"/spec/tasks/0/minAvailable\",\"value\":1}]" &&
    places low 3 && become Running low-w-0 low-w-1 low-w-2 &&
    k annotate pod low-w-0 low-w-1 low-w-2 volcano.sh/preemptable=true &&
    job rush 1 1 "priorityClassName: urgent" && places rush 1 &&
    within 20 eval "k get events && says Evict"
'
end_job low >"$dir/log" && end_job rush >>"$dir/log"
halt first TERM

# ---- leader election ----

lease=lease/volcano
node n4 4 >"$dir/log"
quick='--leader-elect-lease-duration=3s --leader-elect-renew-deadline=2s
    --leader-elect-retry-period=200ms'
changed_hands() {
    k get $lease -n volcano-system -o jsonpath='{.spec.leaseTransitions}' && prints "$1"
}

# told TEXT: an Event about the lease says so.
told() {
    k get events -n volcano-system --field-selector reason=LeaderElection \
        -o jsonpath='{range .items[*]}{.involvedObject.kind}/{.involvedObject.name} {.message}
{end}' && says "$1"
}

# shellcheck disable=SC2086 # options are words
schedule first $quick
step 'the first scheduler takes the lease and schedules' '
    within 20 works first && changed_hands 0 && job g 1 1 && places g 1
'
step 'an Event names the leader' '
    within 20 told "Lease/volcano $("$kubectl" get $lease -n volcano-system \
        -o jsonpath="{.spec.holderIdentity}") became leader"
'
# shellcheck disable=SC2086
schedule second $quick --enable-healthz --healthz-address=$any --enable-metrics \
    --listen-address=$any --ca-cert-file "$data/ca.crt" --tls-cert-file "$data/server.crt" \
    --tls-private-key-file "$data/server.key"
step 'the second scheduler waits and is healthy, over TLS' '
    [ "$(curl -sS --cacert "$data/ca.crt" \
        "https://127.0.0.1:$(port second health)/healthz")" = ok ] &&
    within 20 grep -q "holder=" "$dir/second.err" &&
    metric second "leader_election_master_status{name=\"volcano\"} 0" &&
    scrape second && ! grep -q "^volcano_" "$dir/scrape" && ! works second
'
kill -USR1 "$second"
halt first KILL
step 'the second scheduler takes over when the first is killed, and binds' '
    job h 1 1 && within 30 changed_hands 1 && within 20 works second &&
    metric second "leader_election_master_status{name=\"volcano\"} 1" && places h 1 &&
    grep -q "msg=\"not the leader: nothing to show\"" "$dir/second.err"
'
# shellcheck disable=SC2086
schedule first $quick
halt second TERM
step 'a scheduler releases the lease on SIGTERM, and the other one leads' '
    echo "exit status $status"
    [ "$status" -eq 0 ] && within 20 changed_hands 2 && within 20 works first &&
    job i 1 1 && places i 1
'
step 'an Event says that it stopped leading' '
    told " stopped leading"
'
# shellcheck disable=SC2086
schedule second $quick
kill -STOP "$first"
step 'a stopped leader is replaced' '
    within 30 changed_hands 3 && within 20 works second && job j 1 1 && places j 1
'
kill -CONT "$first"
ended first
step 'a stopped leader that continues exits' '
    echo "exit status $status"
    [ "$status" -eq 1 ] && grep -q "lost the lease" "$dir/first.err" && changed_hands 3
'
halt second TERM
for name in g h i j; do
    end_job $name >"$dir/log"
done

# ---- a gang that was torn ----

# bound_some: a part of it, and not all.
bound_some() {
    n=$(bound torn)
    echo "bound: $n of 100"
    [ "$n" -gt 0 ] && [ "$n" -lt 100 ]
}
has_pods() {
    [ "$(pods_of_torn | wc -w)" -eq "$1" ]
}
pods_of_torn() {
    "$kubectl" get pods -l volcano.sh/job-name=torn -o jsonpath='{.items[*].metadata.uid}'
}

# One that was made earlier than the gang, and can run as soon as the node has its label.
k delete node n1 n2 n3 n4 >"$dir/log" && node wide 10 >>"$dir/log" && k apply -f - >>"$dir/log" <<'YAML'
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: rival}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: rival, annotations: {scheduling.k8s.io/group-name: rival}}
spec:
  schedulerName: volcano
  nodeSelector: {late: "yes"}
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 2}}}]
YAML
conf "actions: \"enqueue\"
$plugins"
schedule first --leader-elect=false --scheduler-conf "$dir/conf/scheduler.conf"
step 'a gang has all its pods' '
    job torn 100 100m && within 60 has_pods 100
'
halt first TERM
# It has requests enough for lists, watches and some of the binds, and then none for minutes: so it
# is killed between two binds.
conf "$free"
schedule first --leader-elect=false --scheduler-conf "$dir/conf/scheduler.conf" \
    --kube-api-burst=100 --kube-api-qps=0.01
step 'a scheduler binds some of them' '
    within 60 bound_some
'
halt first KILL
pods_of_torn >"$dir/torn"
step 'the scheduler is killed between two binds' '
    bound_some && k label node wide late=yes
'
schedule first --leader-elect=false --scheduler-conf "$dir/conf/scheduler.conf"
step 'the next scheduler completes that gang first, with the same pods' '
    places torn 100 && [ "$(pods_of_torn)" = "$(cat "$dir/torn")" ] &&
    within 20 waits_pod rival "Insufficient cpu"
'
end_job torn >"$dir/log"

# ---- two at once ----

# bound_once N JOB: so many events tell of binds, each of another pod.
bound_once() {
    k get events --field-selector reason=Scheduled \
        -o jsonpath='{range .items[*]}{.involvedObject.name} {.count} {.source.component}{"\n"}{end}'
    grep "^$2-w-" "$dir/out" | sort >"$dir/binds"
    [ "$(wc -l <"$dir/binds")" -eq "$1" ] &&
        [ "$(cut -d" " -f1 "$dir/binds" | uniq | wc -l)" -eq "$1" ] && return 0
    cat "$dir/binds"
    return 1
}

schedule second --leader-elect=false --scheduler-conf "$dir/conf/scheduler.conf"
step 'two schedulers without election bind each pod once' '
    node other 10 && within 20 works second && job both 40 250m && places both 40 &&
    within 20 bound_once 40 both
'
halt first TERM
halt second TERM
step 'both schedulers end with status 0' '
    echo "exit status $status"
    [ "$status" -eq 0 ]
'
end_job both >"$dir/log"

# ---- the server goes and comes back ----

schedule first --leader-elect=false --scheduler-conf "$dir/conf/scheduler.conf"
step 'a job runs, and another one waits' '
    job k 2 1 && places k 2 && job l 2 12 && within 20 waits l "2/2 tasks in gang unschedulable"
'
stop KILL
step 'without a server the scheduler keeps trying' '
    within 20 grep -q "msg=\"cannot watch\" kind=pods" "$dir/first.err" && kill -0 "$first"
'
options="--listen 127.0.0.1:${url##*:}"
start
step 'when the server is back, the scheduler continues' '
    has_bound 2 k && node big 30 && places l 2 && job m 1 1 && places m 1
'
halt first TERM
step 'the scheduler ends with status 0' '
    echo "exit status $status"
    cat "$dir/first.err"
    [ "$status" -eq 0 ]
'
halt manager TERM
stop TERM
content
finish
