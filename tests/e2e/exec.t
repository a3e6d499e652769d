#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Commands, terminals and copies in pods of hekla up: with kubectl, current and of 1.20, with hekla
# exec and hekla cp.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs_mounts
scripts/kubectls >"$dir/kubectls" 2>"$dir/missing"
kubectl=$(sed -n 's/^current //p' "$dir/kubectls")
old=$(sed -n 's/^1.20 //p' "$dir/kubectls")
[ -n "$kubectl" ] || skip_all 'no current kubectl'
verb=up
forever=36017$$ # seconds that nobody else on this machine sleeps
talk=$PWD/tests/e2e/terminal.py

cat >"$dir/pods.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  schedulerName: volcano
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: none, command: [sleep, '$forever'], env: [{name: WHO, value: main}]}
  - {name: side, image: none, stdin: true, command: [sh, -c, 'while read -r x; do echo "got \$x"; done'],
     env: [{name: WHO, value: side}]}
  - {name: tick, image: none, command: [sh, -c, 'while sleep 0.1; do echo tick; done']}
  - {name: once, image: none, stdin: true, stdinOnce: true, command: [sh, -c, 'cksum; sleep $forever']}
  - {name: term, image: none, stdin: true, tty: true, command: [env, PS1=ready>, sh]}
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec:
  schedulerName: volcano
  restartPolicy: Never
  containers:
  - {name: main, image: none, command: ['true']}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 3
  tasks:
  - name: ps
    replicas: 1
    template:
      spec:
        containers: [{name: c, image: none, command: [sleep, '$forever']}]
  - name: worker
    replicas: 2
    template:
      spec:
        containers: [{name: c, image: none, command: [sleep, '$forever']}]
YAML

# exits STATUS COMMAND...: the command ends with it; what it says is kept as of k.
exits() {
    want=$1
    shift
    timeout 60 "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ "$got" -eq "$want" ] && return 0
    echo "$*: exit status $got, expected $want"
    cat "$dir/out" "$dir/err"
    return 1
}

# complains TEXT: the last command said so on stderr.
complains() {
    grep -qF -- "$1" "$dir/err" && return 0
    echo "expected: $1"
    cat "$dir/err"
    return 1
}

# sleeps SECONDS: somebody does, so long.
sleeps() {
    for process in $(grep -lzx -- "$1" /proc/[0-9]*/cmdline 2>/dev/null); do
        [ "$(tr "\0" " " <"$process" 2>/dev/null)" = "sleep $1 " ] && return 0
    done
    return 1
}

nobody_sleeps() {
    ! sleeps "$1"
}

start
export kubectl HEKLA
head -c 20000000 /dev/urandom >"$dir/big"

step 'the pods run' '
    k apply -f "$dir/pods.yaml" &&
    k wait --for=condition=Ready pod/p --timeout=20s &&
    k wait --for=condition=Ready pod -l volcano.sh/job-name=train --timeout=20s &&
    k wait --for=jsonpath={.status.phase}=Succeeded pod/done --timeout=20s
'
step 'stdout, stderr and exit code of a command are those of kubectl' '
    exits 3 "$kubectl" exec p -c main -- sh -c "echo out \$WHO; echo err >&2; exit 3" &&
    prints "out main" && complains err
'
step 'the first container is the default, and -c chooses another' '
    k exec p -- printenv WHO && prints main &&
    k exec p -c side -- printenv WHO && prints side
'
step 'standard input is passed on byte for byte' '
    timeout 60 "$kubectl" exec -i p -c main -- cat <"$dir/big" | cmp - "$dir/big"
'
step 'a command that reads late gets everything' '
    { cat "$dir/big"; sleep 1; } | timeout 60 "$kubectl" exec -i p -c main -- sh -c "sleep 1; cksum" \
        >"$dir/out"
    prints "$(cksum <"$dir/big")"
'
step 'a reader that is slow gets everything' '
    timeout 60 "$kubectl" exec p -c main -- cat "$dir/big" | { sleep 1; cksum; } >"$dir/out"
    prints "$(cksum <"$dir/big")"
'
step 'a command that stops reading does not block its output' '
    timeout 60 "$kubectl" exec -i p -c main -- head -c 10 <"$dir/big" | wc -c >"$dir/out"
    prints 10
'
step 'a missing command exits with 127, one that cannot run with 126' '
    exits 127 "$kubectl" exec p -c main -- nope &&
    complains "exec: \"nope\": executable file not found in \$PATH" &&
    exits 127 "$kubectl" exec p -c main -- /no/such &&
    complains "no such file or directory" &&
    exits 126 "$kubectl" exec p -c main -- /etc/passwd &&
    complains "permission denied"
'
step 'a command ended by a signal exits with 128 plus its number' '
    exits 137 "$kubectl" exec p -c main -- sh -c "kill -9 \$\$"
'
step 'a wrong container, an ended pod and a missing pod get different messages' '
    refused "container zz is not valid for pod p" exec p -c zz -- true &&
    refused "cannot exec into a container in a completed pod" exec done -- true &&
    refused "pods \"nobody\" not found" exec nobody -- true
'
step 'a terminal has our size, follows its changes, and passes on keys unchanged' '
    timeout 60 "$talk" "$kubectl" exec -it p -c main -- env "PS1=ready>" sh <<SAY >"$dir/out" 2>&1
size 33 99
expect ready>
send stty size; tty\n
expect 33 99
expect /dev/pts/
expect ready>
size 44 111
send while [ "\$(stty size)" != "44 111" ]; do :; done; echo it is\n
expect it is\r
expect ready>
send sh -c "echo go; exec sleep 4001"\n
expect go\r
send \x03
expect ^C
expect ready>
send exit 5\n
SAY
    status=$?
    cat "$dir/out"
    [ "$status" -eq 5 ]
'
step 'the command ends when its client disconnects' '
    "$kubectl" exec p -c main -- sleep "1$forever" &
    client=$!
    within 10 sleeps "1$forever" && kill -9 $client && within 10 nobody_sleeps "1$forever"
'
step 'many commands run at a time' '
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        timeout 60 "$kubectl" exec -i p -c main -- cksum <"$dir/big" >"$dir/sum$i" &
    done
    wait
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        [ "$(cat "$dir/sum$i")" = "$(cksum <"$dir/big")" ] || exit 1
    done
'
step 'attach shows the output of a container' '
    timeout 60 "$kubectl" attach p -c tick 2>"$dir/err" | head -n 2 >"$dir/out"
    prints "tick
tick"
'
step 'attach passes on input, and the container continues after it' '
    timeout 60 "$talk" "$kubectl" attach -i p -c side <<SAY
expect If you
send one\n
expect got one
send two\n
expect got two
send \x03
SAY
    k logs p -c side && says "got one" "got two" &&
    k exec p -c side -- true
'
step 'an input with stdinOnce ends with the first client' '
    timeout 60 "$talk" sh -c "\"$kubectl\" attach -i p -c once <$dir/big" <<SAY
expect $(cksum <"$dir/big")
send \x03
SAY
    k logs p -c once && prints "$(cksum <"$dir/big")"
'
step 'a container with a terminal can be attached to' '
    timeout 60 "$talk" "$kubectl" attach -it p -c term <<SAY
size 30 90
expect If you
send \n
expect ready>
send while [ "\$(stty size)" != "30 90" ]; do :; done; echo fits\n
expect fits\r
send exit\n
SAY
'
step 'a container without stdin accepts no input' '
    refused "was not given a standard input" attach -i p -c main
'
step 'kubectl cp copies in both directions' '
    mkdir -p "$dir/tree/sub" && echo leaf >"$dir/tree/sub/leaf" &&
    k cp "$dir/tree" "p:$dir/there" -c main && [ "$(cat "$dir/there/sub/leaf")" = leaf ] &&
    k cp "p:$dir/there" "$dir/back" -c main && [ "$(cat "$dir/back/sub/leaf")" = leaf ] &&
    k cp "$dir/big" "p:$dir/big2" -c main && cmp "$dir/big" "$dir/big2"
'
# kube-apiserver 1.34 lets those who may get pods/exec, for WebSockets.
on_kube || step 'a user who may only read pods cannot run commands in them' '
    k create serviceaccount reader &&
    k create role reader --verb=get --resource=pods,pods/exec &&
    k create rolebinding reader --role=reader --serviceaccount=default:reader &&
    refused "cannot create resource \"pods/exec\"" --as=system:serviceaccount:default:reader \
        exec p -c main -- true &&
    k create role runner --verb=create --resource=pods/exec &&
    k create rolebinding runner --role=runner --serviceaccount=default:reader &&
    k --as=system:serviceaccount:default:reader exec p -c main -- true
'
if [ -n "$old" ]; then
    step 'an old kubectl, which speaks SPDY, runs commands too' '
        exits 3 "$old" exec p -c main -- sh -c "echo out; echo err >&2; exit 3" &&
        prints out && complains err &&
        timeout 60 "$old" exec -i p -c main -- cat <"$dir/big" | cmp - "$dir/big" &&
        timeout 60 "$old" exec p -c main -- cat "$dir/big" | { sleep 1; cmp - "$dir/big"; }
    '
else
    count=$((count + 1))
    echo "ok $count - # skip no kubectl 1.20"
fi

step 'hekla exec runs commands too' '
    exits 3 "$HEKLA" exec p -- sh -c "echo out \$WHO; echo err >&2; exit 3" &&
    prints "out main" && complains err &&
    exits 0 "$HEKLA" exec -n default -c side p -- printenv WHO && prints side &&
    exits 127 "$HEKLA" exec p nope && complains "not found in \$PATH" &&
    timeout 60 "$HEKLA" exec -i p -- cat <"$dir/big" | cmp - "$dir/big" &&
    timeout 60 "$HEKLA" exec p -- cat "$dir/big" | { sleep 1; cmp - "$dir/big"; }
'
step 'a pod can be named by job, task and index' '
    exits 0 "$HEKLA" exec train -- hostname && prints train-ps-0 &&
    exits 0 "$HEKLA" exec train/worker -- hostname && prints train-worker-0 &&
    exits 0 "$HEKLA" exec train/worker/1 -- hostname && prints train-worker-1 &&
    exits 0 "$HEKLA" exec pod/train-ps-0 -- hostname && prints train-ps-0
'
step 'hekla exec has a terminal' '
    timeout 60 "$talk" "$HEKLA" exec -it p -- env "PS1=ready>" sh <<SAY
size 33 99
expect ready>
send while [ "\$(stty size)" != "33 99" ]; do :; done; echo fits\n
expect fits\r
expect ready>
send sh -c "echo go; exec sleep 4003"\n
expect go\r
send \x03
expect ^C
expect ready>
send exit 6\n
SAY
    [ $? -eq 6 ]
'
step 'mistakes get one line and 255' '
    exits 255 "$HEKLA" exec && complains "a pod or job and a command are missing" &&
    exits 255 "$HEKLA" exec p && complains "is missing" &&
    exits 255 "$HEKLA" exec nobody -- true && complains "no pod '\''nobody'\''" &&
    exits 255 "$HEKLA" exec train/worker/7 -- true && complains "no pod" &&
    exits 255 "$HEKLA" exec p -c zz -- true && complains "container zz is not valid" &&
    exits 255 "$HEKLA" exec done -- true && complains "has ended (Succeeded)" &&
    exits 255 "$HEKLA" exec --server https://127.0.0.1:1 p -- true &&
    [ "$(wc -l <"$dir/err")" -eq 1 ]
'
step 'hekla cp copies files and directories in both directions' '
    chmod 755 "$dir/tree/sub/leaf" &&
    exits 0 "$HEKLA" cp "$dir/tree" "p:$dir/h1" && [ "$(cat "$dir/h1/sub/leaf")" = leaf ] &&
    exits 0 "$HEKLA" cp "$dir/tree" "p:$dir/h1" && [ -x "$dir/h1/tree/sub/leaf" ] &&
    exits 0 "$HEKLA" cp "train/worker/1:$dir/h1" "$dir/h2" && [ -x "$dir/h2/tree/sub/leaf" ] &&
    exits 0 "$HEKLA" cp "p:$dir/h1/sub/leaf" "$dir/h2" && [ -x "$dir/h2/leaf" ] &&
    exits 0 "$HEKLA" cp "$dir/big" "p:$dir/h3" && cmp "$dir/big" "$dir/h3" &&
    exits 0 "$HEKLA" cp "p:$dir/h3" "$dir/h4" && cmp "$dir/big" "$dir/h4"
'
step 'links that lead out of the copied directory are skipped' '
    mkdir -p "$dir/links/sub" && ln -s sub "$dir/links/good" && ln -s /etc "$dir/links/bad" &&
    ln -s ../../x "$dir/links/sub/worse" && ln -s sub/../.. "$dir/links/worst" &&
    exits 0 "$HEKLA" cp "p:$dir/links" "$dir/h5" && complains "bad -> /etc" && complains "worse -> " &&
    [ -L "$dir/h5/good" ] && [ "$(find "$dir/h5" -type l | wc -l)" -eq 1 ]
'
step 'a copy that fails leaves nothing behind' '
    exits 2 "$HEKLA" cp "p:$dir/nothing" "$dir/h6" && complains "No such file" &&
    exits 2 "$HEKLA" cp "$dir/nothing" "p:$dir/h6" && complains "cannot read" &&
    exits 2 "$HEKLA" cp a b && complains "must be POD:PATH" &&
    exits 2 "$HEKLA" cp "p:$dir/big" /nowhere/x && complains "cannot create" &&
    ! ls -A "$dir" | grep -q "h6\|hekla-cp"
'
step 'no process is left when the pods are deleted' '
    k delete pod p done --wait && k delete job.batch.volcano.sh train --wait &&
    within 20 nobody_sleeps $forever
'
stop TERM
content
finish
