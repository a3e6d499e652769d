#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What users of hekla up meet on an ordinary day: jobs that restart, are scaled, evicted, or run out of
# memory; pods that a drain removes; an example applied alone; and messages that lead on. HEKLA names
# the program; needs kubectl and python3.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3
needs_embedded 'pods need a node of this machine'
verb=up

# phase_is NAME PHASE: of a Volcano Job.
phase_is() {
    k get vcjob "$1" -o 'jsonpath={.status.state.phase}' && prints "$2"
}

# explains NAME TEXT...: explain prints each text.
explains() {
    gives 0 explain "$1" && shift && says "$@"
}

# attempts_say NAME TEXT...: the history of the job has each text.
attempts_say() {
    gives 0 history "$1" && shift && says "$@"
}

start

step 'the example of a flow works when it is applied alone' '
    gives 0 apply -f examples/flow.yaml && within 60 phase_is study-learn Completed &&
        within 20 explains study "2 of 2 steps done"
'
step 'explain says why a step of a flow cannot begin' '
    sed "s/^  minAvailable: 1\$/  queue: nosuch\n&/; s/: study}/: stuck}/" examples/flow.yaml >"$dir/stuck.yaml" &&
        gives 0 apply -f "$dir/stuck.yaml" && within 20 explains stuck "starts next" \
            "retrying job '\''stuck-prepare'\''" "queue.scheduling.volcano.sh \"nosuch\" not found"
'
step 'run -p pytorch numbers the ranks and names their master' '
    gives 0 run -f -n 3 --cpu 10m --gang -p pytorch --name ddp -- sh -c \
        "echo RANK=\$RANK INDEX={index} WORLD=\$WORLD_SIZE MASTER=\$MASTER_ADDR" &&
        says "RANK=0 INDEX=0 WORLD=3 MASTER=ddp-master-0.ddp" "RANK=1 INDEX=1 WORLD=3" "RANK=2 INDEX=2 WORLD=3"
'
step 'run -p tensorflow tells every task of the others' '
    gives 0 run -f -n 2 --cpu 10m -p tensorflow --name tf -- sh -c "echo \$TF_CONFIG" &&
        says "{\"cluster\":{\"worker\":[\"tf-task-0.tf:2222\",\"tf-task-1.tf:2222\"]},\"task\":{\"type\":\"worker\",\"index\":1}}"
'
step 'run refuses a plugin whose tasks need different commands' '
    gives 2 run -p mpi -- true && complains "the plugin '\''mpi'\'' wants tasks with different commands"
'
step 'a job that starts with one task can be scaled down, and completes' '
    gives 0 run -n 4 --min 1 --cpu 10m --name elastic -- sleep 2 &&
        k patch vcjob elastic --type=json -p "[{\"op\":\"replace\",\"path\":\"/spec/tasks/0/replicas\",\"value\":2}]" &&
        gives 0 wait elastic --timeout 60s && phase_is elastic Completed
'
step 'the history of a restarted job begins with its first start' '
    gives 0 run --retries 3 --cpu 10m --name again -- sh -c "
        echo x >>$dir/tries; sleep 1; [ \$(wc -l <$dir/tries) -ge 3 ]" &&
        gives 0 wait again --timeout 60s && gives 0 history again &&
        sed -n "/^PHASES/,/^\$/p" "$dir/out" | awk "NF == 3 { print \$3 }" | xargs >"$dir/phases" &&
        grep -q "^Pending Running Restarting.* Running Restarting .*Running Completed\$" "$dir/phases" ||
        { cat "$dir/phases" "$dir/out"; false; }
'
step 'so does that of a job whose pod was evicted, and it says by whom' '
    gives 0 run --retries 1 --cpu 10m --name pushed -- sleep 1000 && within 20 phase_is pushed Running &&
        k create --raw /api/v1/namespaces/default/pods/pushed-task-0/eviction -f - <<EVICTION &&
{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"pushed-task-0","namespace":"default"}}
EVICTION
        within 20 attempts_say pushed Preempted "Eviction API: evicting" &&
        sed -n "/^PHASES/,/^\$/p" "$dir/out" | awk "NF == 3 { print \$3 }" | head -n 2 | xargs >"$dir/phases" &&
        grep -qx "Pending Running" "$dir/phases" && gives 0 cancel pushed
'
step 'a completed job keeps its count when its pods are deleted, and logs say where they went' '
    gives 0 run -n 3 --cpu 10m --name swept -- true && gives 0 wait swept --timeout 60s &&
        k delete pod -l volcano.sh/job-name=swept && gives 0 jobs &&
        says "swept default Completed 0 3 0 3" && gives 0 logs swept &&
        complains "the job has ended, and its pods are deleted with their output (see '\''hekla history swept'\'')"
'
step 'a task that runs out of memory is called OOMKilled by run, jobs, pods, explain and history' '
    if [ "$(id -u)" -eq 0 ]; then
        gives 137 run -f --memory 64Mi --name greedy -- python3 -c "x = b\"1\" * (400 << 20)" &&
            grep -qF "task-0: OOMKilled (exit code 137)" "$dir/err" && gives 0 jobs &&
            says "task-0: OOMKilled (exit code 137)" && gives 0 pods -j greedy && says OOMKilled &&
            gives 0 pods greedy && says greedy-task-0 && gives 0 explain greedy && says "OOMKilled (exit code 137)" && gives 0 history greedy &&
            says OOMKilled
    fi
'
step 'a queue that is not there is named with a command that exists' '
    gives 2 queues nosuch && complains "no queue '\''nosuch'\'' (see '\''hekla queues'\'')" &&
        gives 0 queues
'
step 'without a server every command says how to start one' '
    for command in jobs "run -- true" queues "explain x" "history x" "vcctl job list" "vcctl queue list"; do
        # shellcheck disable=SC2086 # options must be split into words
        HOME=$dir/nobody KUBECONFIG="" timeout 20 "$HEKLA" $command >"$dir/out" 2>&1 && exit 1
        says "no server:" "hekla up --detach" && silent "port 8080" || exit 1
    done
'
stop TERM
options='--no-node --sim-nodes 1'
start
step 'a simulated node has ephemeral storage, as a real one' '
    within 20 field node/sim-00001 .status.allocatable.ephemeral-storage 1Ti
'
stop TERM
finish
