#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The life of jobs between a real server and a real controller-manager. kubectl plays everybody
# else: the user, the scheduler that lets PodGroups in, the nodes whose pods run and end.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
first= second=

# ---- managers ----

# manage NAME ARG...: a controller-manager of this name (first or second); returns when it has
# started.
manage() {
    launch controller-manager "$@"
}

# complains TEXT ARG...: does not start with these options, and says so in one line.
complains() {
    stumbles controller-manager "$@"
}

# ---- everybody else ----

# job NAME REPLICAS [LINE...]: applies a job with one task, w, and further lines of its spec.
job() {
    name=$1 replicas=$2
    shift 2
    print_job "$name" "$replicas" \
        'containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m}}}]' \
        'schedulerName: volcano' "$@" | k apply -f -
}

# reaches JOB PHASE
reaches() {
    within 20 field "vcjob/$1" .status.state.phase "$2"
}

# grouped JOB N: it has a PodGroup, $group, of so many members.
grouped() {
    group=podgroup/$1-$("$kubectl" get vcjob "$1" -o jsonpath='{.metadata.uid}') &&
        within 20 field "$group" .spec.minMember "$2"
}

# enqueue JOB N: the scheduler lets its PodGroup in.
enqueue() {
    grouped "$1" "$2" && k patch "$group" --type=merge -p '{"status":{"phase":"Inqueue"}}'
}

# pods JOB NAMES: it has exactly these pods.
pods() {
    k get pods -l "volcano.sh/job-name=$1" -o jsonpath='{range .items[*]}{.metadata.name} {end}' &&
        prints "$2"
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

# runs JOB POD...: from the queue to running.
runs() {
    name=$1
    shift
    enqueue "$name" $# && within 20 pods "$name" "$* " && become Running "$@" &&
        reaches "$name" Running
}

# order JOB ACTION: the Command that vcctl would create.
order() {
    k create -f - <<YAML
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {generateName: $1-}
action: $2
target:
  apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  name: $1
  uid: $("$kubectl" get vcjob "$1" -o jsonpath='{.metadata.uid}')
  controller: true
YAML
}

# nothing TYPE NAME...: none of these objects is there.
nothing() {
    type=$1
    shift
    for name in "$@"; do
        gone "$type/$name" || return 1
    done
}

# at_least N JOB: so many pods.
at_least() {
    k get pods -l "volcano.sh/job-name=$2" -o name && [ "$(wc -l <"$dir/out")" -ge "$1" ]
}

# told FILE N TEXT: the file has N lines with the text.
told() {
    [ "$(grep -c -- "$3" "$1")" -eq "$2" ] && return 0
    echo "expected $2 lines with '$3', got:"
    cat "$1"
    return 1
}

start
any=127.0.0.1:0

# ---- options ----

step 'an option that does not exist is named' '
    complains "unknown option '\''--nonsense'\''" --nonsense
'
step 'bad values are reported with their option' '
    complains "option --leader-elect is '\''perhaps'\'', want true or false" --leader-elect=perhaps &&
    complains "option --kube-api-qps is '\''0'\''" --kube-api-qps=0 &&
    complains "option --watch-stall is '\''10ms'\'', want 1s or more" --watch-stall=10ms &&
    complains "option --healthz-address is '\''here'\'', want ADDR:PORT" --healthz-address=here &&
    complains "option --worker-threads is '\''none'\''" --worker-threads=none
'
step 'a controller cannot be both enabled and disabled' '
    complains "controllers option -gc-controller cannot have both '\''-'\'' and '\''+'\'' prefixes" \
        "--controllers=*,gc-controller,-gc-controller"
'
step 'feature gates must be known and have a value' '
    complains "unrecognized feature gate: Magic" --feature-gates=Magic=true &&
    complains "missing bool value for PriorityClass" --feature-gates=PriorityClass &&
    complains "invalid value of PriorityClass=maybe" --feature-gates=PriorityClass=maybe
'
step 'times of the election must be consistent' '
    complains "leaseDuration must be greater than renewDeadline" --kubeconfig "$KUBECONFIG" \
        --leader-elect-lease-duration=5s &&
    complains "want one of: leases" --leader-elect-resource-lock=configmaps
'
step 'without a server the controller-manager does not start' '
    complains "cannot open" --kubeconfig "$dir/absent" &&
    complains "--kubeconfig or --master is required"
'
step '--version and --help' '
    "$HEKLA" controller-manager --version >"$dir/out" && says "hekla " &&
    "$HEKLA" controller-manager --help >"$dir/out" && says "--leader-elect[=BOOL]"
'

# ---- ordinary life ----

manage first --leader-elect=false --enable-healthz --healthz-address=$any --enable-metrics \
    --listen-address $any --logtostderr --log_dir=/nowhere -v=3 --worker-threads=8 --kube-api-qps=-1

step 'health is served' '
    health=http://127.0.0.1:$(port first health) &&
    [ "$(curl -sS "$health/healthz") $(curl -sS "$health/healthz/ping")" = "ok ok" ] &&
    [ "$(curl -sS -o /dev/null -w "%{http_code}" "$health/other")" = 404 ]
'
step 'a job gets a PodGroup, and no pods before the group is Inqueue' '
    job plain 2 && grouped plain 2 && reaches plain Pending && pods plain ""
'
step 'a job whose group is Inqueue gets its pods' '
    enqueue plain 2 && within 20 pods plain "plain-w-0 plain-w-1 " &&
    field pod/plain-w-1 ".metadata.annotations.volcano\.sh/task-index" 1
'
step 'a job is Running when minAvailable pods run' '
    become Running plain-w-0 && within 20 field vcjob/plain .status.running 1 &&
    field vcjob/plain .status.state.phase Pending &&
    become Running plain-w-1 && reaches plain Running &&
    within 20 field vcjob/plain .status.running 2
'
step 'a job completes when all pods have succeeded' '
    become Succeeded plain-w-0 plain-w-1 && reaches plain Completed &&
    within 20 field vcjob/plain .status.succeeded 2 &&
    field vcjob/plain ".status.attempts[*].pod" "plain-w-0 plain-w-1" &&
    k get vcjob plain && says "plain Completed 2"
'
step 'the metrics count the job' '
    metric first "volcano_job_completed_phase_count{job_name=\"default/plain\",queue_name=\"default\"} 1" &&
    metric first "volcano_controller_job_to_pod_creation_latency_milliseconds_count 2" &&
    metric first "volcano_queue_pod_group_running_count{queue_name=\"default\"} 0"
'
step 'a job deleted while it runs leaves no objects' '
    job brief 2 && runs brief brief-w-0 brief-w-1 && k delete vcjob brief &&
    within 20 pods brief "" && within 20 sh -c "! $kubectl get podgroup -o name | grep -q brief"
'

# ---- failures ----

step 'a failed pod restarts the job' '
    job weak 2 "maxRetry: 2" "policies: [{event: PodFailed, action: RestartJob}]" &&
    runs weak weak-w-0 weak-w-1 && old=$("$kubectl" get pod weak-w-1 -o jsonpath="{.metadata.uid}") &&
    become Failed weak-w-0 && within 20 field vcjob/weak .status.retryCount 1 &&
    reaches weak Pending && runs weak weak-w-0 weak-w-1 &&
    ! field pod/weak-w-1 .metadata.uid "$old"
'
step 'after the last retry the job fails, and the failed pod stays readable' '
    become Failed weak-w-0 && reaches weak Failed && field vcjob/weak .status.retryCount 2 &&
    within 20 pods weak "weak-w-0 " && k get events && says "Start to execute action RestartJob" &&
    metric first "volcano_job_failed_phase_count{job_name=\"default/weak\",queue_name=\"default\"} 1"
'

# ---- commands and changes ----

step 'a command suspends a job' '
    job pausing 2 && runs pausing pausing-w-0 pausing-w-1 && order pausing AbortJob &&
    reaches pausing Aborted && within 20 pods pausing "" &&
    k get commands.bus.volcano.sh -o name && prints ""
'
step 'a command resumes a job' '
    order pausing ResumeJob && reaches pausing Pending &&
    runs pausing pausing-w-0 pausing-w-1 && k get commands.bus.volcano.sh -o name && prints ""
'
step 'a running job grows' '
    job growing 2 && runs growing growing-w-0 growing-w-1 &&
    k patch vcjob growing --type=json -p "[{\"op\":\"replace\",\"path\":\"/spec/tasks/0/replicas\",
        \"value\":3},{\"op\":\"replace\",\"path\":\"/spec/minAvailable\",\"value\":3}]" &&
    within 20 pods growing "growing-w-0 growing-w-1 growing-w-2 " && grouped growing 3
'
step 'a running job shrinks, the last pods first' '
    k patch vcjob growing --type=json -p "[{\"op\":\"replace\",\"path\":\"/spec/tasks/0/replicas\",
        \"value\":1},{\"op\":\"replace\",\"path\":\"/spec/tasks/0/minAvailable\",\"value\":1},
        {\"op\":\"replace\",\"path\":\"/spec/minAvailable\",\"value\":1}]" &&
    within 20 pods growing "growing-w-0 " && field vcjob/growing .status.state.phase Running
'
step 'plugins create the objects that pods need' '
    job wired 2 "plugins: {svc: [], ssh: [], env: []}" && runs wired wired-w-0 wired-w-1 &&
    field configmap/wired-svc ".data.w\.host" "wired-w-0.wired
wired-w-1.wired" &&
    field service/wired .spec.clusterIP None && field networkpolicy/wired .metadata.name wired &&
    k get secret wired-ssh -o jsonpath="{.data}" && says id_rsa && says authorized_keys &&
    field pod/wired-w-1 ".spec.containers[0].env[?(@.name==\"VC_TASK_INDEX\")].value" 1 &&
    field pod/wired-w-1 .spec.hostname wired-w-1
'
step 'objects of plugins are deleted when the job has ended' '
    become Succeeded wired-w-0 wired-w-1 && reaches wired Completed &&
    within 20 nothing configmap wired-svc && within 20 nothing service wired &&
    within 20 nothing networkpolicy wired && within 20 nothing secret wired-ssh
'
step 'claims are created and named in the job, and an existing claim must exist' '
    claim="accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}" &&
    job claiming 1 "volumes: [{mountPath: /new, volumeClaim: {$claim}},
    {mountPath: /old, volumeClaimName: old}]" &&
    within 20 k get vcjob claiming -o jsonpath="{.spec.volumes[0].volumeClaimName}" &&
    within 20 eval "k get pvc && says claiming-pvc-" &&
    within 20 eval "k get events && says \"pvc old is not found\"" && k create -f - <<YAML &&
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: old}
spec: {$claim}
YAML
    grouped claiming 1
'
halt first TERM
step 'SIGTERM ends the controller-manager with status 0' '
    echo "exit status $status"
    cat "$dir/first.err"
    [ "$status" -eq 0 ]
'

# ---- crashes ----

timeout 120 kubectl get pods -l volcano.sh/job-name=large --watch --output-watch-events \
    --no-headers >"$dir/seen.pods" 2>&1 &
pods_watcher=$!
timeout 120 kubectl get podgroups --watch --output-watch-events --no-headers \
    >"$dir/seen.groups" 2>&1 &
groups_watcher=$!
manage first --leader-elect=false --kube-api-qps=10 --kube-api-burst=15
step 'the controller-manager is killed while it creates pods' '
    job large 40 && enqueue large 40 && within 20 at_least 3 large
'
halt first KILL
step 'some pods are missing after the kill' '
    k get pods -l volcano.sh/job-name=large -o name && made=$(wc -l <"$dir/out") &&
    echo "made: $made" && [ "$made" -lt 40 ]
'
manage first --leader-elect=false
step 'the next process creates the missing pods, and no pod twice' '
    within 40 at_least 40 large && within 20 field vcjob/large .status.pending 40 &&
    within 20 told "$dir/seen.pods" 40 "^ADDED" && told "$dir/seen.pods" 0 "^DELETED" &&
    told "$dir/seen.groups" 1 "^ADDED *large-" && field vcjob/large .status.retryCount ""
'
kill $pods_watcher $groups_watcher
wait $pods_watcher $groups_watcher 2>/dev/null
step 'a restart with nothing to do writes nothing' '
    k get vcjob,podgroup,pods -A -o jsonpath="{.items[*].metadata.resourceVersion}" &&
    cp "$dir/out" "$dir/before"
'
halt first KILL
manage first --leader-elect=false --enable-metrics --listen-address=$any
step 'metrics and revisions confirm that nothing was written' '
    within 20 metric first "volcano_queue_pod_group_inqueue_count{queue_name=\"default\"} 3" &&
    ! grep "requests_total{verb=\"\(create\|update\|patch\|delete\)\"}" "$dir/scrape" &&
    k get vcjob,podgroup,pods -A -o jsonpath="{.items[*].metadata.resourceVersion}" &&
    cmp "$dir/out" "$dir/before"
'
halt first TERM

# ---- leader election ----

lease=lease/vc-controller-manager
quick='--leader-elect-lease-duration=3s --leader-elect-renew-deadline=2s
    --leader-elect-retry-period=200ms'

# holder: who holds the lease; held: somebody does.
holder() {
    "$kubectl" get $lease -n volcano-system -o jsonpath='{.spec.holderIdentity}'
}
held() {
    [ -n "$(holder)" ]
}
# changed_hands N: so often.
changed_hands() {
    k get $lease -n volcano-system -o jsonpath='{.spec.leaseTransitions}' && prints "$1"
}

# Within a minute, and so meanwhile, a schedule makes a job.
k create -f - >"$dir/log" <<'YAML'
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      minAvailable: 1
      schedulerName: volcano
      tasks:
      - name: w
        replicas: 1
        template:
          spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
YAML
manage first $quick
step 'the first process takes the lease' '
    within 20 held && within 20 grep -q "msg=\"working\"" "$dir/first.err" && changed_hands 0
'
manage second $quick --enable-healthz --healthz-address=$any --enable-metrics \
    --listen-address=$any --ca-cert-file "$data/ca.crt" --tls-cert-file "$data/server.crt" \
    --tls-private-key-file "$data/server.key"
step 'the second process waits and is healthy, over TLS' '
    [ "$(curl -sS --cacert "$data/ca.crt" \
        "https://127.0.0.1:$(port second health)/healthz")" = ok ] &&
    within 20 grep -q "holder=" "$dir/second.err" &&
    metric second "leader_election_master_status{name=\"vc-controller-manager\"} 0" &&
    ! grep "msg=\"working\"" "$dir/second.err"
'
halt first KILL
step 'the second process takes over when the first is killed' '
    within 30 changed_hands 1 && within 20 grep -q "msg=\"working\"" "$dir/second.err" &&
    metric second "leader_election_master_status{name=\"vc-controller-manager\"} 1" &&
    job after 1 && runs after after-w-0
'
manage first $quick
halt second TERM
step 'a process releases the lease on SIGTERM, and the other one leads' '
    echo "exit status $status"
    [ "$status" -eq 0 ] && within 20 changed_hands 2 &&
    become Succeeded after-w-0 && reaches after Completed
'
manage second $quick
kill -STOP "$first"
step 'a stopped leader is replaced' '
    within 30 changed_hands 3 && job asleep 1 && runs asleep asleep-w-0
'
kill -CONT "$first"
ended first
step 'a stopped leader that continues exits without a write' '
    echo "exit status $status"
    cat "$dir/first.err"
    [ "$status" -eq 1 ] && grep -q "lost the lease" "$dir/first.err" && changed_hands 3 &&
    become Succeeded asleep-w-0 && reaches asleep Completed
'
kubectl patch $lease -n volcano-system --type=merge -p '{"spec":{"holderIdentity":"somebody"}}' \
    >"$dir/log"
ended second
step 'a leader whose lease was taken exits and does not take it back' '
    echo "exit status $status"
    cat "$dir/second.err"
    [ "$status" -eq 1 ] && grep -q "lost the lease" "$dir/second.err" && holder >"$dir/out" &&
    prints somebody
'

# ---- a server that does not answer ----

# ticked: the schedule has made a job, and knows it.
ticked() {
    k get vcjob -o name && says batch.volcano.sh/tick- && k get cronjobs.batch.volcano.sh tick \
        -o jsonpath='{.status.active[0].name} {.status.lastScheduleTime}' && says tick-
}

manage first $quick
within 20 grep -q 'msg="working"' "$dir/first.err"
step 'CronJobs create jobs on schedule' '
    within 90 ticked
'
kill -STOP "$(server_pid)"
halt first TERM
kill -CONT "$(server_pid)"
step 'SIGTERM works while the server hangs' '
    echo "exit status $status"
    [ "$status" -eq 0 ]
'
manage second
within 20 grep -q 'msg="working"' "$dir/second.err"
kill -STOP "$(server_pid)"
kill -TERM "$second"
within 20 grep -q 'msg="stopping"' "$dir/second.err"
halt second TERM
kill -CONT "$(server_pid)"
step 'a second SIGTERM ends the process at once' '
    echo "exit status $status"
    [ "$status" -eq 1 ]
'

stop TERM
content
finish
