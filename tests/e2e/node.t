#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with this machine as its node: jobs whose pods are real processes.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
needs_mounts
verb=up

# job NAME REPLICAS SCRIPT [LINE...]: a gang that runs the script in a shell; the lines go into its
# spec.
job() {
    name=$1 replicas=$2 script=$3
    shift 3
    print_job "$name" "$replicas" "containers: [{name: main, image: none,
        command: [sh, -c, '$script'], resources: {requests: {cpu: 10m}}}]" "$@"
}

# phase JOB PHASE
phase() {
    [ "$(kubectl get job.batch.volcano.sh "$1" -o 'jsonpath={.status.state.phase}')" = "$2" ]
}

# logged POD TEXT
logged() {
    kubectl logs "$1" | grep -F -- "$2"
}

# processes PATTERN: how many have such an argument; it must not match itself.
processes() {
    grep -lzx -- "$1" /proc/[0-9]*/cmdline 2>/dev/null | wc -l
}

# idle: no pod has anything left on the node.
idle() {
    [ -z "$(ls "$data/node/pods")" ] && [ -z "$(ls "$data/node/run")" ]
}

node_is_ready() {
    kubectl get nodes | grep -w Ready
}

# ended POD
ended() {
    [ "$(kubectl get pod "$1" -o 'jsonpath={.status.phase}')" = Succeeded ]
}

# told TEXT: an event says so.
told() {
    kubectl get events | grep -F -- "$1"
}

# running JOB COUNT
running() {
    [ "$(kubectl get job.batch.volcano.sh "$1" -o 'jsonpath={.status.running}')" = "$2" ]
}

# dead PATTERN: no process has such an argument any more.
dead() {
    [ "$(processes "$1")" = 0 ]
}

start

step 'this machine is a node, and ready' '
    within 10 node_is_ready
'
step 'a gang runs as processes that find each other by name' '
    job gang 2 "echo I am \$VC_TASK_INDEX of \$VC_W_NUM on \$(hostname); getent hosts gang-w-1.gang" \
        "plugins: {svc: [], env: []}" | kubectl create -f - &&
        within 20 phase gang Completed && logged gang-w-0 "I am 0 of 2 on gang-w-0" &&
        logged gang-w-1 "I am 1 of 2 on gang-w-1" && logged gang-w-0 " gang-w-1.gang"
'
step 'each attempt of a failing job is recorded' '
    job flaky 1 "echo try; exit 3" "maxRetry: 2" \
        "policies: [{event: PodFailed, action: RestartJob}]" | kubectl create -f - &&
        within 20 phase flaky Failed && field job.batch.volcano.sh/flaky .status.retryCount 2 &&
        field job.batch.volcano.sh/flaky ".status.attempts[*].exitCode" "3 3"
'
step 'a command that does not exist is reported' '
    job lost 1 true | sed "s/command: \[[^]]*\]/command: [no-such-program]/" | kubectl create -f - &&
        within 20 phase lost Failed && k get pod lost-w-0 -o yaml && says no-such-program
'
step 'configuration and secrets appear where they are mounted' '
    kubectl create configmap conf --from-literal=word=hello && kubectl create secret generic key \
        --from-literal=pass=sesame && kubectl create -f - <<YAML &&
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  schedulerName: volcano
  restartPolicy: Never
  volumes:
  - {name: conf, configMap: {name: conf}}
  - {name: key, secret: {secretName: key, defaultMode: 256}}
  - {name: room, emptyDir: {}}
  containers:
  - name: main
    image: none
    command: [sh, -c, "cat /etc/conf/word; stat -Lc %a /etc/key/pass; cat /etc/key/pass; echo; touch /room/here && ls /room"]
    volumeMounts:
    - {name: conf, mountPath: /etc/conf}
    - {name: key, mountPath: /etc/key, readOnly: true}
    - {name: room, mountPath: /room}
YAML
        within 20 ended reader && k logs reader && says hello && says 400 && says sesame && says here
'
step 'a pod that does not fit waits, with the reason' '
    job huge 1 true | sed "s/cpu: 10m/cpu: 1000/" | kubectl create -f - &&
        within 20 told "overused cpu" && phase huge Pending
'
step 'a job that was deleted leaves nothing behind' '
    job marked 2 "exec sleep 4711" | kubectl create -f - && within 20 running marked 2 &&
        [ "$(processes "471[1]")" -ge 2 ] && kubectl delete job.batch.volcano.sh marked --wait=false &&
        within 40 dead "471[1]"
'
job steady 1 'for i in 1 2 3 4; do echo $i; sleep 1; done; exit 0' >"$dir/steady.yaml"
step 'a job is running' '
    kubectl create -f "$dir/steady.yaml" && within 20 logged steady-w-0 1
'
stop KILL
start
step 'after kill -9 of the server the process has continued, and no output is lost' '
    within 30 phase steady Completed && [ "$(kubectl logs steady-w-0 | xargs)" = "1 2 3 4" ] &&
        field pod/steady-w-0 ".status.containerStatuses[0].state.terminated.exitCode" 0 &&
        field pod/steady-w-0 ".status.containerStatuses[0].restartCount" 0
'
step 'when all is deleted the node is as it was' '
    kubectl delete job.batch.volcano.sh --all && kubectl delete pod --all && within 40 idle
'
stop TERM
step 'the server ends cleanly' '
    [ "$status" = 0 ] && [ ! -s "$dir/server" ] || { echo "exit status $status"; cat "$dir/server"; exit 1; }
'
finish
