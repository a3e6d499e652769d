#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# vcctl and its short forms against hekla up without a node; kubectl looks at what they did, and
# plays the node.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
verb=up options=--no-node
# Nodes are made by hand here, and nobody renews their leases.
[ "${HEKLA_BACKEND:-}" = kube ] || options="$options --node-monitor-grace-period 1h"
TZ=UTC
export TZ
mkdir "$dir/bin"
for name in vcctl vsub vjobs vqueues vcancel vsuspend vresume; do
    ln -s "$(realpath "$HEKLA")" "$dir/bin/$name"
done

# gives STATUS PROGRAM ARG...: what one of the programs prints is kept in $dir/out and $dir/err.
gives() {
    want=$1 program=$2
    shift 2
    timeout 30 "$dir/bin/$program" "$@" >"$dir/out" 2>"$dir/err"
    have=$?
    [ "$have" = "$want" ] && return 0
    echo "$program $*: exit status $have, expected $want"
    cat "$dir/out" "$dir/err"
    return 1
}

# fails TEXT PROGRAM ARG...: with the status and on the stream of commands that failed.
fails() {
    said=$1
    shift
    gives 255 "$@" && prints "$said" && [ ! -s "$dir/err" ]
}

# misread TEXT PROGRAM ARG...: what was typed is refused, at the end of standard error.
misread() {
    said=$1
    shift
    gives 1 "$@" && [ ! -s "$dir/out" ] || return 1
    [ "$(tail -n 1 "$dir/err")" = "$said" ] && return 0
    echo "expected: $said"
    cat "$dir/err"
    return 1
}

# quiet PROGRAM ARG...: succeeds without a word.
quiet() {
    gives 0 "$@" && prints '' && [ ! -s "$dir/err" ]
}

# is TYPE/NAME PATH VALUE: as field, but for within.
is() {
    [ "$(kubectl get "$1" -o jsonpath="{$2}")" = "$3" ]
}

# lines: the last output with dates made alike, and a bar where each line ends.
lines() {
    sed -e 's/20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]/YYYY-MM-DD/' -e 's/$/|/' "$dir/out"
}

# shows TEXT: these are the lines.
shows() {
    [ "$(lines)" = "$1" ] && return 0
    echo "expected:"
    echo "$1"
    echo "got:"
    lines
    return 1
}

start
within 10 is queue/default .status.state Open
within 10 is queue/root .status.state Open

# ---- jobs ----

step 'an empty list of jobs is printed' '
    gives 0 vcctl job list && prints "No resources found" && gives 0 vjobs && prints "No resources found"
'
step 'a job is created from flags' '
    gives 0 vcctl job run -N a -r 3 -m 2 -i none -R cpu=500m -L cpu=1,memory=1Gi &&
        prints "run job a successfully" &&
        field job.batch.volcano.sh/a .spec.minAvailable 2 &&
        field job.batch.volcano.sh/a ".spec.tasks[0].name" default0 &&
        field job.batch.volcano.sh/a ".spec.tasks[0].replicas" 3 &&
        field job.batch.volcano.sh/a ".spec.tasks[0].template.spec.containers[0].image" none &&
        field job.batch.volcano.sh/a ".spec.tasks[0].template.spec.containers[0].resources.limits.memory" 1Gi &&
        field job.batch.volcano.sh/a ".spec.queue" default
'
step 'a job is created from a file' '
    cat >"$dir/job.yaml" <<YAML
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: from-file}
spec:
  minAvailable: 1
  schedulerName: volcano
  tasks:
  - name: w
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers: [{name: c, image: none, resources: {requests: {cpu: "1"}}}]
YAML
    gives 0 vcctl job run -f "$dir/job.yaml" && prints "run job from-file successfully" &&
        field job.batch.volcano.sh/from-file ".spec.tasks[0].name" w
'
step 'jobs are listed' '
    within 10 is job.batch.volcano.sh/a .status.state.phase Pending &&
        within 10 is job.batch.volcano.sh/from-file .status.state.phase Pending &&
        gives 0 vcctl job list && shows "\
Name        Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     RetryCount|
a           YYYY-MM-DD     Pending     Batch       3           2     0         0         0           0         0           0         |
from-file   YYYY-MM-DD     Pending     Batch       1           1     0         0         0           0         0           0         |" &&
        gives 0 vcctl job list --all_namespaces --selector file -q default -S volcano && shows "\
Namespace   Name        Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     RetryCount|
default     from-file   YYYY-MM-DD     Pending     Batch       1           1     0         0         0           0         0           0         |"
'
step 'filters without a match print an empty list' '
    gives 0 vcctl job list -q other && prints "No resources found" && gives 0 vjobs -S other && shows "\
Name        Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    Unknown     RetryCount|"
'
step 'one job is shown' '
    gives 0 vcctl job view -N a && says "Name: a" "Min Available: 2" "Name: default0" "Phase: Pending" \
        "Cpu: 500m" "Conditions:" "Events:" && gives 0 vjobs -n a && says "Name: a" && silent "Conditions:"
'
step 'a job is suspended and resumed' '
    quiet vcctl job suspend -N a && within 10 is job.batch.volcano.sh/a .status.state.phase Aborted &&
        gives 0 vcctl job view -N a && says "ExecuteAction" "Start to execute action AbortJob" &&
        quiet vcctl job resume -N a && within 10 is job.batch.volcano.sh/a .status.state.phase Pending &&
        quiet vsuspend -n a && within 10 is job.batch.volcano.sh/a .status.state.phase Aborted &&
        quiet vresume -n a && within 10 is job.batch.volcano.sh/a .status.state.phase Pending
'
step 'a job is deleted' '
    gives 0 vcctl job delete -N from-file && prints "delete job from-file successfully" &&
        within 10 gone job.batch.volcano.sh/from-file
'
step 'invalid jobs are refused' '
    fails "Failed to run job: job name cannot be left blank" vcctl job run &&
        fails "Failed to run job: jobs.batch.volcano.sh \"a\" already exists" vcctl job run -N a &&
        fails "Failed to run job: invalid argument syntax cpu, expected <resource>=<value>" \
            vcctl job run -N b -R cpu &&
        fails "Failed to run job: quantities must match the regular expression '\''^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)\$'\''" \
            vcctl job run -N b -L cpu=x &&
        fails "Failed to run job: only support yaml file" vcctl job run -f job.json &&
        fails "Failed to run job: failed to read file, err: open none.yaml: no such file or directory" \
            vcctl job run -f none.yaml &&
        gives 255 vcctl job run -N b -m 2 && says "Failed to run job: admission webhook \"validatejob.volcano.sh\" denied the request: "
'
step 'missing jobs and missing names are reported' '
    fails "Failed to view job: jobs.batch.volcano.sh \"x\" not found" vcctl job view -N x &&
        fails "Failed to suspend job: jobs.batch.volcano.sh \"x\" not found" vcctl job suspend -N x &&
        fails "Failed to delete job: jobs.batch.volcano.sh \"x\" not found" vcctl job delete -N x &&
        fails "Failed to view job: job name (specified by --name or -N) is mandatory to view a particular job" \
            vcctl job view &&
        fails "Failed to suspend job: job name is mandatory to suspend a particular job" vcctl job suspend &&
        fails "Failed to resume job: job name is mandatory to resume a particular job" vcctl job resume &&
        fails "Failed to delete job: job name is mandatory to delete a particular job" vcctl job delete
'

# ---- queues ----

step 'a queue is created, gets a weight, is closed and opened' '
    quiet vcctl queue create -n q -w 3 && within 10 is queue/q .status.state Open &&
        quiet vcctl queue operate -n q -a update -w 5 && field queue/q .spec.weight 5 &&
        quiet vcctl queue operate -n q -a close && within 10 is queue/q .status.state Closed &&
        gives 0 vcctl queue get -n q && shows "\
Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed|
q                        5       Closed  root    0       0       0       0       0       |" &&
        quiet vcctl queue operate -n q -a open && within 10 is queue/q .status.state Open
'
# listed: the queues there are, with the group of the one job that waits.
listed() {
    gives 0 vcctl queue list && shows "\
Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed|
default                  1       Open    root    0       1       0       0       0       |
q                        5       Open    root    0       0       0       0       0       |
root                     1       Open            0       0       0       0       0       |"
}

step 'queues are listed, with the groups that wait in them' '
    within 10 listed && gives 0 vqueues && shows "\
Name                     Weight  State   Inqueue Pending Running Unknown |
default                  1       Open    0       0       0       0       |
q                        5       Open    0       0       0       0       |
root                     1       Open    0       0       0       0       |" &&
        gives 0 vqueues -n q && says "q 5 Open 0 0 0 0"
'
step 'a queue is deleted' '
    quiet vcctl queue operate -n q -a close && within 10 is queue/q .status.state Closed &&
        quiet vcctl queue delete -n q && within 10 gone queue/q
'
step 'invalid queues are refused' '
    fails "Failed to delete queue: admission webhook \"validatequeue.volcano.sh\" denied the request: \`default\` queue can not be deleted" \
            vcctl queue delete -n default &&
        fails "Failed to delete queue: queue name must be specified" vcctl queue delete &&
        fails "Failed to get queue: name is mandatory to get the particular queue details" vcctl queue get &&
        fails "Failed to get queue: queues.scheduling.volcano.sh \"x\" not found" vcctl queue get -n x &&
        fails "Failed to operate queue: queue name must be specified" vcctl queue operate &&
        fails "Failed to operate queue: action can not be null" vcctl queue operate -n q &&
        fails "Failed to operate queue: action stop invalid, valid actions are open, close and update" \
            vcctl queue operate -n q -a stop &&
        fails "Failed to operate queue: when update queue q, weight must be specified, the value must be greater than 0" \
            vcctl queue operate -n q -a update
'

# ---- pods ----

step 'the pods of a job are listed' '
    gives 0 vcctl pod list && prints "No resources found" && kubectl create -f - <<YAML &&
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  capacity: {cpu: "8", memory: 16Gi, pods: "110"}
  allocatable: {cpu: "8", memory: 16Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
YAML
        within 10 is pod/a-default0-2 .spec.nodeName n1 && gives 0 vcctl pod list -j a &&
        says "Name Ready Status Restart Age" "a-default0-0 0/1 Pending 0" "a-default0-2 0/1 Pending 0" &&
        gives 0 vcctl pod list --all-namespaces -q default && says "Namespace Name Ready" "default a-default0-1" &&
        fails "Failed to list pod: the input vcjob a does not match the queue b" vcctl pod list -j a -q b &&
        gives 0 vcctl pod list -j x && prints "No resources found"
'

# ---- flows and templates ----

step 'templates and flows are created, shown and deleted' '
    cat >"$dir/templates.yaml" <<YAML
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: extract}
spec:
  minAvailable: 1
  queue: default
  tasks: [{name: w, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: none}]}}}]
YAML
    sed "s/extract/load/" "$dir/templates.yaml" >"$dir/load.yaml"
    { echo ---; cat "$dir/load.yaml"; } >>"$dir/templates.yaml"
    cat >"$dir/flow.yaml" <<YAML
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: etl}
spec: {jobRetainPolicy: retain, flows: [{name: extract}, {name: load, dependsOn: {targets: [extract]}}]}
YAML
    gives 0 vcctl jobtemplate create -f "$dir/templates.yaml" && prints "\
Created JobTemplate: default/extract
Created JobTemplate: default/load" &&
        gives 0 vcctl jobtemplate create -f "$dir/load.yaml" &&
        prints "Failed to create JobTemplate: jobtemplates.flow.volcano.sh \"load\" already exists" &&
        gives 0 vcctl jobtemplate list && shows "\
Name       Namespace    |
extract    default      |
load       default      |" &&
        gives 0 vcctl jobflow create -f "$dir/flow.yaml" && prints "Created JobFlow: default/etl" &&
        within 10 is jobflow/etl .status.state.phase Pending && gives 0 vcctl jobflow get -N etl &&
        says "Name Namespace Phase Age" "etl default Pending" && gives 0 vcctl jobflow list --all-namespaces &&
        says "etl default Pending" && gives 0 vcctl jobflow describe -N etl && says "kind: JobFlow" "name: etl" &&
        silent managedFields && gives 0 vcctl jobflow describe -o json && says "\"kind\": \"JobFlow\"" &&
        gives 0 vcctl jobflow delete -N etl && prints "Deleted JobFlow: default/etl" &&
        gives 0 vcctl jobtemplate delete -f "$dir/templates.yaml" && prints "\
Deleted JobTemplate: default/extract
Deleted JobTemplate: default/load" && gives 0 vcctl jobtemplate describe && prints ""
'
step 'invalid flows and templates are refused' '
    fails "Failed to create jobflow: open : no such file or directory" vcctl jobflow create &&
        fails "Failed to delete jobflow: jobflow name must be specified" vcctl jobflow delete &&
        fails "Failed to delete jobtemplate: job template name must be specified" vcctl jobtemplate delete &&
        fails "Failed to get jobflow: name is mandatory to get the particular jobflow details" vcctl jobflow get &&
        fails "Failed to get jobtemplate: jobtemplates.flow.volcano.sh \"x\" not found" vcctl jobtemplate get -N x
'

# ---- the short forms ----

step 'vsub reads the environment, and vcancel ends the job' '
    export VOLCANO_DEFAULT_IMAGE=some:1
    gives 0 vsub -n b -c "sh -c '\''sleep 1'\''" && prints "run job b successfully" &&
        field job.batch.volcano.sh/b ".spec.tasks[0].template.spec.containers[0].image" some:1 &&
        field job.batch.volcano.sh/b ".spec.tasks[0].template.spec.containers[0].command[2]" "sleep 1" &&
        gives 0 vcancel -n b && prints "cancel job b successfully" && within 10 gone job.batch.volcano.sh/b &&
        fails "Failed to: job name cannot be left blank" vsub &&
        fails "Failed to: job name is mandatory to cancel a particular job" vcancel
'

# ---- what is typed, and where it goes ----

step 'invalid arguments are refused' '
    misread "Error: unknown command \"frobnicate\" for \"vcctl\"" vcctl frobnicate &&
        gives 1 vcctl queu && grep -qx "Error: unknown command \"queu\" for \"vcctl\"" "$dir/err" &&
        grep -qx "	queue" "$dir/err" &&
        misread "Error: unknown flag: --bogus" vcctl job list --bogus &&
        misread "Error: unknown shorthand flag: '\''z'\'' in -z" vcctl job list -z &&
        misread "Error: flag needs an argument: '\''N'\'' in -N" vcctl job view -N &&
        misread "Error: invalid argument \"x\" for \"-r, --replicas\" flag: strconv.ParseInt: parsing \"x\": invalid syntax" \
            vcctl job run -r x &&
        misread "Error: unknown flag: --bogus" vjobs --bogus && grep -q "^  vjobs \[flags\]$" "$dir/err"
'
step 'help and version need no cluster' '
    KUBECONFIG=/nope
    gives 0 vcctl && says "vcctl [command]" "Queue Operations" && gives 0 vcctl job foo &&
        says "vcctl job [command]" && gives 0 vcctl help job list && says "vcctl job list [flags]" &&
        gives 0 vcctl version && says "API Version: v1alpha1"
'
step 'hekla vcctl works like vcctl' '
    "$HEKLA" vcctl queue get -n root >"$dir/out" && says "root 1 Open"
'
step 'bash completes the commands of vcctl' '
    "$HEKLA" completion bash >"$dir/completion" && bash -c "
        . \"\$1\"
        COMP_WORDS=(\"$HEKLA\" vcctl queue o) COMP_CWORD=3 && _hekla && echo \"\${COMPREPLY[*]}\"
        COMP_WORDS=(\"$HEKLA\" vcctl job) COMP_CWORD=2 && _hekla && echo \"\${COMPREPLY[*]}\"
        " bash "$dir/completion" >"$dir/out" && prints "operate
job jobflow jobtemplate"
'
step '-k and -s choose the kubeconfig and the server' '
    fails "Failed to list job: stat /nope: no such file or directory" vcctl job list -k /nope &&
        gives 0 vcctl queue list -k "$KUBECONFIG" && gives 255 vcctl queue list -s https://127.0.0.1:1 &&
        says "Failed to list queue: "
'
stop TERM
content
finish
