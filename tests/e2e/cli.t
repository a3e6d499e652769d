#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The command line of everyday over hekla up: commands become jobs whose tasks are real processes,
# are followed, waited for, listed and looked back at. Terminals are tested only with script(1).
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs_mounts
verb=up
exec </dev/null # no command may wait for a terminal

# complains_without TEXT: the same, and the line does not have the text.
complains_without() {
    complains "" && ! grep -qF -- "$1" "$dir/err"
}

# terminal COMMAND: in a terminal of 30 rows and 120 columns; what it shows is kept in $dir/out.
terminal() {
    env -u NO_COLOR TERM=xterm timeout 60 script -qfec "stty rows 30 cols 120; $1" "$dir/out" </dev/null >/dev/null
}

# lines N: the last command printed so many.
lines() {
    [ "$(wc -l <"$dir/out")" -eq "$1" ] && return 0
    echo "expected $1 lines"
    cat "$dir/out"
    return 1
}

# listed TEXT ARG...: a list of hekla has a line with the text, words one blank apart.
listed() {
    text=$1
    shift
    "$HEKLA" "$@" | tr -s ' ' | grep -F -- "$text"
}

small='--cpu 10m'
start
mkdir "$dir/work"
printf '#!/bin/sh\necho "$2 has $1 of $3 in $PWD"\n' >"$dir/work/part"
chmod +x "$dir/work/part"

# ---- run ----

step 'a command becomes a job, and its name is all that is printed' '
    gives 0 run --name first $small -- true && prints first &&
    gives 0 wait first && prints "first Completed"
'

step 'tasks know their index, their number and their job, and run in the working directory' '
    cd "$dir/work" &&
    gives 0 run --name parts -n 3 $small --follow -- ./part {index} {job} {count} &&
    lines 3 &&
    for i in 0 1 2; do says "[task-$i] parts has $i of 3 in $dir/work" || exit 1; done
'

step 'dollars, blanks and quotes reach the command as they were typed' '
    gives 0 run $small --env GREETING="a  \$(b) \$c" --follow -- sh -c "echo \"\$GREETING\" \$((1 + 1)) \$(echo sub)" &&
    prints "a  \$(b) \$c 2 sub"
'

step 'the environment is passed on only on request' '
    SECRET=hidden GIVEN=given gives 0 run $small --env GIVEN --follow -- sh -c "echo \${SECRET:-none} \$GIVEN" &&
    prints "none given" &&
    SECRET=shown gives 0 run $small --export-env --follow -- sh -c "echo \$SECRET" && prints shown
'

step 'the exit code is that of all failed tasks, if they agree' '
    gives 7 run -n 2 $small --follow -- sh -c "exit 7" &&
    gives 1 run -n 2 $small --wait -- sh -c "exit \$(({index} + 3))" &&
    gives 0 run -n 2 $small --wait -- true
'

step 'one task that fails fails the job' '
    gives 5 run -n 3 $small --wait -- sh -c "[ {index} != 1 ] || exit 5"
'

step 'a command that cannot start is reported' '
    gives 127 run --name absent $small --wait -- no-such-program &&
    grep -qF "no-such-program" "$dir/err"
'

step 'a task is started again as often as was asked for' '
    gives 3 run --name stubborn $small --retries 2 --wait -- sh -c "exit 3" &&
    gives 0 history stubborn -o json && [ "$(grep -c "\"retry\":" "$dir/out")" -eq 3 ] &&
    rm -f "$dir/tried" &&
    gives 0 run $small --retries 3 --wait -- sh -c "[ -e $dir/tried ] || { touch $dir/tried; exit 1; }"
'

step 'a gang is started again as a whole' '
    gives 4 run --name together -n 2 --gang $small --retries 1 --wait -- sh -c "exit 4" &&
    gives 0 history together -o json && [ "$(grep -c "\"retry\": 1" "$dir/out")" -eq 2 ]
'

step 'a task that runs for too long is ended' '
    gives 143 run --name endless $small --time 1s --wait -- sleep 1000 && gives 0 jobs endless && says "endless default Failed"
'

step 'a dry run needs no server and prints a manifest' '
    KUBECONFIG=/nowhere gives 0 run --dry-run --name dry -n 4 --gang -q research --memory 1Gi --gpu 1 --time 1-00:00:00 \
        --priority high --plugin svc,ssh -- ./train {index} &&
    says "minAvailable: 4" "queue: research" "memory: 1Gi" "nvidia.com/gpu: \"1\"" "activeDeadlineSeconds: 86400" \
        "priorityClassName: high" "svc: []" "ssh: []" "- \$(VC_TASK_INDEX)" &&
    says "workingDir: $PWD" && gives 0 run --dry-run --workdir "" -- true && silent workingDir
'

step 'the created job is printed when it is asked for' '
    gives 0 run --name printed $small -o json -- true && says "\"name\": \"printed\"" "\"uid\"" &&
    gives 0 run --name named $small -o name -- true && prints job.batch.volcano.sh/named
'

step 'mistakes are reported in one line' '
    gives 2 run && complains "the command is missing" &&
    gives 2 run -n 0 -- true && complains "--count is" &&
    gives 2 run --cpu much -- true && complains "--cpu is" &&
    gives 2 run --time 5 -- true && complains "1-12:00:00" &&
    gives 2 run -n 2 --min 3 -- true && complains "--min is 3" &&
    gives 2 run --env NOT_SET_ANYWHERE -- true && complains "no such variable" &&
    gives 2 run --queue absent $small -- true && complains "absent" &&
    gives 2 run --name "Not A Name" -- true && complains "Not A Name"
'

step 'a missing server is reported with what to do' '
    gives 2 jobs --server https://127.0.0.1:1 && complains "hekla up" &&
    gives 2 run --server https://127.0.0.1:1 -- true && complains "hekla up"
'

# ---- logs ----

step 'logs of all tasks come in order of time, each with its task' '
    rm -f "$dir"/turn.* &&
    gives 0 run --name talk -n 2 $small --wait -- sh -c "
        for n in 1 2 3; do
            while [ \$n -gt 1 -o {index} = 1 ] && [ ! -e $dir/turn.\$n.{index} ]; do sleep 0.01; done
            echo say \$n; sleep 0.01
            touch $dir/turn.\$(( {index} == 1 ? n + 1 : n )).\$(( 1 - {index} ))
        done" &&
    gives 0 logs talk &&
    prints "[task-0] say 1
[task-1] say 1
[task-0] say 2
[task-1] say 2
[task-0] say 3
[task-1] say 3"
'

step 'logs can be narrowed to a task, an index and the last lines' '
    gives 0 logs talk --index 1 --tail 1 && prints "[task-1] say 3" &&
    gives 0 logs talk --task none && complains "has started yet" &&
    gives 0 logs talk --no-prefix --tail 1 && lines 2 && says "say 3" && silent "[" &&
    gives 0 logs talk-task-0 --tail 1 && prints "say 3" && gives 2 logs talk-task-0 --previous && complains "previous" &&
    gives 0 logs talk --timestamps --index 0 --tail 1 && grep -Eq "^\[task-0\] [0-9]{4}-[0-9-]+T[0-9:.]+Z say 3$" "$dir/out"
'

step 'following shows all later output, of later pods too, and ends with the job' '
    rm -f "$dir/go" &&
    gives 0 run --name later -n 3 --cpu 1 -- sh -c "echo began; while [ ! -e $dir/go ]; do sleep 0.02; done; echo ended" &&
    { timeout 60 "$HEKLA" logs -f later >"$dir/followed" & follower=$!; } &&
    within 20 grep -q began "$dir/followed" && touch "$dir/go" && wait "$follower" &&
    [ "$(grep -c began "$dir/followed")" -eq 3 ] && [ "$(grep -c ended "$dir/followed")" -eq 3 ]
'

step 'forty tasks are followed at once' '
    gives 0 run --name crowd -n 40 $small --follow -- echo one of many && lines 40 && [ "$(sort -u "$dir/out" | wc -l)" -eq 40 ]
'

step '40,000 lines arrive whole and in order' '
    gives 0 run --name many -n 2 $small --wait -- seq 1 20000 &&
    gives 0 logs many && lines 40000 &&
    grep -F "[task-1]" "$dir/out" | sed "s/.* //" | cmp - "$(seq 1 20000 >"$dir/seq"; echo "$dir/seq")"
'

step 'Ctrl-C ends only the following, and the job continues' '
    timeout -s INT 60 "$HEKLA" run --name held $small --follow -- sh -c "echo up; sleep 1000" >"$dir/out" 2>"$dir/err" &
    outer=$!
    within 20 grep -q up "$dir/out" && kill -s INT "$(cat /proc/$outer/task/$outer/children)" &&
    { wait "$outer"; [ $? -eq 130 ]; } && grep -qF "hekla logs -f held" "$dir/err" &&
    gives 0 jobs held && says "held default Running" && gives 0 cancel held && prints "held cancelled"
'

# ---- wait ----

step 'waiting ends when the goal is reached, missed, or late' '
    gives 0 run --name brief $small -- true && gives 0 wait brief && prints "brief Completed" &&
    gives 1 wait brief --for failed && gives 0 wait brief --for condition=running && gives 0 wait brief --for running &&
    gives 0 run --name slow $small -- sleep 1000 && gives 0 wait slow --for running &&
    gives 124 wait slow --timeout 200ms && complains "time is up" &&
    gives 0 wait slow brief --any && prints "brief Completed"
'

step 'waiting for a failure, for several jobs and for a removal' '
    gives 0 run --name wrong $small -- false && gives 1 wait wrong && prints "wrong Failed" &&
    gives 1 wait brief wrong && lines 2 && gives 0 wait brief wrong --for ended &&
    gives 0 cancel slow && gives 0 wait slow --for deleted
'

step 'a wrong name is reported with the nearest one' '
    gives 2 wait breif && complains "did you mean" && gives 2 logs breif && complains "did you mean" &&
    gives 2 wait br && complains_without "did you mean" && gives 2 wait zz && complains_without "did you mean" &&
    gives 2 cancel breif && complains "no job" && complains_without "did you mean" && gives 2 wait brief --for lunch && complains "want completed"
'

# ---- lists ----

step 'jobs are listed with their tasks, and why they failed or wait' '
    gives 0 run --name huge -n 100 --gang --cpu 64 -- true && within 20 listed "huge default Pending 0 0 0 100" jobs &&
    within 20 listed "waits to be admitted to queue" jobs huge &&
    gives 0 jobs && says "NAME QUEUE PHASE RUN DONE FAIL ALL AGE WHY" "parts default Completed 0 3 0 3" "exit code 7"
'

step 'lists come as objects and as names too' '
    gives 0 jobs parts -o yaml && says "name: parts" && silent managedFields &&
    gives 0 jobs -o json && says "\"kind\": \"List\"" &&
    gives 0 jobs parts -o name && prints job.batch.volcano.sh/parts &&
    gives 0 jobs -o wide && says "MIN RETRIES PRIORITY RAN" && gives 2 jobs -o xml && complains "want one of"
'

step 'pods are listed by job, task and index, with exit codes' '
    gives 0 pods -j parts && says "parts-task-0 parts 0/1 Completed 0 0" &&
    [ "$(sed 1d "$dir/out" | cut -d" " -f1 | tr "\n" " ")" = "parts-task-0 parts-task-1 parts-task-2 " ] &&
    gives 0 pods -l volcano.sh/job-name=wrong && says "wrong-task-0 wrong 0/1 Error 1"
'

step 'queues are listed below their parents, nodes with the requests on them' '
    "$HEKLA" vcctl queue create -n research -w 3 && gives 0 queues &&
    says "NAME STATE WEIGHT CPU MEMORY PENDING INQUEUE RUNNING UNKNOWN COMPLETED" " default Open 1" " research Open 3" &&
    gives 0 nodes && says "Ready" && gives 0 flows && complains "no flows in namespace" &&
    gives 0 jobs -q research && complains "no jobs" && gives 0 jobs -A && says "NAMESPACE NAME"
'

step 'watching in a pipe prints each row when it changes' '
    timeout 60 "$HEKLA" jobs --watch -l none=none >"$dir/none" & empty=$!
    timeout 60 "$HEKLA" jobs --watch >"$dir/watched" & watcher=$!
    within 20 grep -q brief "$dir/watched" && gives 0 run --name seen $small --wait -- true &&
    within 20 grep -Eq "^seen +default +Completed" "$dir/watched" && kill "$watcher" "$empty" &&
    [ "$(grep -c "^NAME" "$dir/watched")" -eq 1 ] && [ "$(grep -c ^brief "$dir/watched")" -eq 1 ]
'

step 'jobs are suspended and resumed' '
    gives 0 run --name paused $small -- sleep 1000 && gives 0 wait paused --for running &&
    gives 0 suspend paused && gives 0 wait paused --for aborted && gives 2 suspend paused && complains "nothing to suspend" &&
    gives 0 resume paused && within 20 listed "paused default Running" jobs paused && gives 2 resume paused &&
    gives 0 jobs -o name && grep paused "$dir/out" | xargs "$HEKLA" cancel
'

# ---- history and top ----

step 'history tells when and how jobs ended, and every attempt' '
    gives 0 history && says "NAME QUEUE PHASE QUEUED STARTED ENDED WAITED RAN TASKS RETRIES EVICTED EXIT" &&
    silent huge && gives 0 history stubborn && says "RETRIES 2" "EXIT 3" "ATTEMPTS" "2 task-0" &&
    gives 0 history absent && says "ContainerCannotRun" "no-such-program" &&
    gives 0 history parts -o yaml && says "exitCode: 0" && gives 0 history --since 1h -o json && says "\"name\": \"parts\"" &&
    gives 2 history breif && complains "did you mean"
'

step 'top prints one frame in a pipe' '
    gives 0 top && says "hekla top" "ASKED FOR" "QUEUE STATE CPU" "NODE STATE CPU" "huge default Pending" && silent "$(printf "\033")" &&
    gives 0 top --once --sort name -n default && says "JOB QUEUE"
'

if command -v script >/dev/null; then
    step 'a terminal gets colours, and a pipe or NO_COLOR does not' '
        terminal "\"$HEKLA\" jobs" && grep -qF "$(printf "\033[32mCompleted")" "$dir/out" &&
        gives 0 jobs && silent "$(printf "\033")" &&
        terminal "NO_COLOR=1 \"$HEKLA\" jobs" && grep -q Completed "$dir/out" && silent "$(printf "\033[32m")"
    '
    step 'a terminal shows the progress of a job, and clears it at the end' '
        terminal "\"$HEKLA\" run --name bar -n 2 $small --wait -- sleep 0.3" &&
        grep -qF -- "-----$(printf "\033[0m")] 0/2" "$dir/out" && grep -qF "$(printf "\033[1F\033[J")" "$dir/out"
    '
    step 'a terminal gets a colour for each task' '
        terminal "\"$HEKLA\" logs parts" && grep -qF "$(printf "\033[36m[task-0]")" "$dir/out" &&
        grep -qF "$(printf "\033[33m[task-1]")" "$dir/out"
    '
    step 'top follows on a terminal until q, and leaves the screen as it was' '
        mkfifo "$dir/keys" && { env -u NO_COLOR TERM=xterm timeout 60 script -qfec "stty rows 40 cols 120; \"$HEKLA\" top" "$dir/screen" \
            <"$dir/keys" >/dev/null & viewer=$!; } && exec 3>"$dir/keys" &&
        within 20 grep -q "sort (state)" "$dir/screen" && printf s >&3 && within 20 grep -q "sort (age)" "$dir/screen" &&
        printf "?" >&3 && within 20 grep -q "this page, and back" "$dir/screen" && printf "?" >&3 &&
        gives 0 run --name onscreen $small -- true && within 20 grep -q onscreen "$dir/screen" &&
        printf q >&3 && wait "$viewer" && exec 3>&- &&
        grep -qF "$(printf "\033[?1049h")" "$dir/screen" && grep -qF "$(printf "\033[?25h\033[?1049l")" "$dir/screen"
    '
else
    count=$((count + 1))
    echo "ok $count - # skip no script(1)"
fi

step 'a job is followed while its server is killed and restarted' '
    gives 0 run --name lasting $small -- sh -c "echo one; while [ ! -e $dir/end ]; do sleep 0.02; done; echo two"
'
rm -f "$dir/end"
timeout 120 "$HEKLA" logs -f lasting >"$dir/lasting" 2>&1 &
follower=$!
step 'the first line of the job was shown' 'within 20 grep -q one "$dir/lasting"'
stop KILL
options="--listen ${url#https://}"
start
touch "$dir/end"
wait "$follower"
followed=$?
step 'the first and the last line were shown once' '
    cat "$dir/lasting"; [ "$followed" -eq 0 ] && [ "$(cat "$dir/lasting")" = "one
two" ]
'

step 'objects in files are applied, checked, and refused' '
    gives 0 apply -f examples/queue.yaml && says "queues.scheduling.volcano.sh/research applied" &&
    gives 0 apply --dry-run -f examples/job.yaml && says "jobs.batch.volcano.sh/train is good" && gives 2 jobs train &&
    gives 0 apply -f examples/queue.yaml && gives 2 apply -f /no/such/file && complains "cannot open" &&
    printf "apiVersion: v9\nkind: Nonsense\n" >"$dir/bad.yaml" && gives 2 apply -f "$dir/bad.yaml" && complains "is not supported here" &&
    sed "s/weight: 2/weight: heavy/" examples/queue.yaml >"$dir/bad.yaml" && gives 2 apply -f "$dir/bad.yaml" && complains "spec.weight"
'

step 'every verb has a page, and the shells complete its options' '
    for v in run apply logs wait jobs pods queues nodes flows cancel suspend resume history top; do
        gives 0 help $v && says "NAME" "SYNOPSIS" "EXIT STATUS" && gives 0 $v --help || exit 1
    done
    "$HEKLA" completion bash >"$dir/completion" && bash -c "
        . \"\$1\"; COMP_WORDS=(\"$HEKLA\" logs par) COMP_CWORD=2; _hekla; echo \"\${COMPREPLY[*]}\"" \
        bash "$dir/completion" >"$dir/out" && prints "parts parts-task-0 parts-task-1 parts-task-2" &&
    bash -c "
        . \"\$1\"; COMP_WORDS=(\"$HEKLA\" jobs -o y) COMP_CWORD=3; _hekla; echo \"\${COMPREPLY[*]}\"" \
        bash "$dir/completion" >"$dir/out" && prints yaml
'

# offers WORDS...: __complete has the answers in $dir/out, one per line.
offers() {
    "$HEKLA" __complete "$HEKLA" "$@" >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ]
}

step 'names of jobs, pods, queues, nodes and namespaces are completed while the server answers' '
    offers logs parts && says parts parts-task-0 && offers jobs par && prints parts && offers pods parts-task-1 && prints parts-task-1 &&
    offers run --queue def && prints default && offers queues ro && prints root &&
    offers jobs -n kube-sys && prints kube-system && offers jobs --namespace=kube-sys && prints --namespace=kube-system &&
    "$HEKLA" nodes -o name | sed "s,.*/,," >"$dir/nodes" && offers drain "" && cmp "$dir/nodes" "$dir/out" &&
    offers jobs -n kube-system "" && prints "" && offers jobs -n kube-system -A par && prints parts &&
    offers vcctl job view --name par && prints parts && offers vcctl queue get -n def && prints default
'

# idle: no pod has anything left on the node.
idle() {
    [ -z "$(ls "$data/node/pods")" ] && [ -z "$(ls "$data/node/run")" ]
}

step 'jobs that are cancelled leave nothing behind' '
    gives 0 jobs -o name && xargs "$HEKLA" cancel <"$dir/out" && within 60 idle && gives 0 jobs && complains "no jobs"
'
stop TERM
content
finish
