#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The life of hekla up as a service: in the background, found, asked, ended and started again, and
# what it says when it cannot start.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
data=$dir/state/of/hekla

end_others() {
    "$HEKLA" down --pods --data-dir "$data" >/dev/null 2>&1
}

KUBECONFIG=$data/kubeconfig HOME=$dir
export KUBECONFIG HOME

# up [OPTION...]: in the background, on a free port.
up() {
    timeout 60 "$HEKLA" up --detach --data-dir "$data" --listen 127.0.0.1:0 "$@" >"$dir/out"
}

# job NAME SCRIPT: two pods that run the script in a shell.
job() {
    print_job "$1" 2 \
        "containers: [{name: main, image: none, command: [sh, -c, '$2'], resources: {requests: {cpu: 10m}}}]"
}

# phase JOB PHASE
phase() {
    [ "$(kubectl get job.batch.volcano.sh "$1" -o 'jsonpath={.status.state.phase}')" = "$2" ]
}

# running COUNT: so many pods run.
running() {
    [ "$(kubectl get pods --field-selector=status.phase=Running -o name | wc -l)" -eq "$1" ]
}

# processes COUNT: so many have the mark as an argument; the pattern does not match itself.
processes() {
    [ "$(grep -lzx -- "[${mark%"${mark#?}"}]${mark#?}" /proc/[0-9]*/cmdline 2>/dev/null | wc -l)" -eq "$1" ]
}

# tells TEXT: status does.
tells() {
    gives 0 status --data-dir "$data" && says "$1"
}

# uids: of the pods.
uids() {
    kubectl get pods -o 'jsonpath={.items[*].metadata.uid}'
}

# traces UID...: what these pods have on the machine.
traces() {
    ls "$data/node/run" "$data/node/pods" | grep -v :
    grep -F "$data/node/" /proc/self/mounts
    for uid; do
        find /sys/fs/cgroup -name "*$uid*" 2>/dev/null
    done
}

mark=$((100000 + $$))

step 'where no server runs, status and down say so' '
    gives 3 status --data-dir "$data" && says "no server runs in" &&
        gives 3 status --data-dir "$data" -o json && json "d[\"running\"] is False" &&
        gives 3 down --data-dir "$data" && complains "no server runs in"
'
step 'up --detach creates the directory and returns when the server is ready' '
    up && says "hekla up ready at https://127.0.0.1:" && k get --raw /readyz &&
        [ "$(stat -c %a "$dir/state/of" "$data" "$data/hekla.log" | xargs)" = "700 700 600" ]
'
step 'a second server cannot use the directory' '
    gives 1 up --data-dir "$data" && complains "is in use by another server, process" &&
        gives 1 apiserver --data-dir "$data" && complains "is in use by another server" &&
        gives 1 up --detach --data-dir "$data" && complains "is in use by another server"
'
step 'status shows the process, the node and the queues' '
    within 20 sh -c "kubectl get nodes | grep -w Ready" && within 20 tells "default Open 1 0" &&
        says "hekla up " "is running" "Directory $data" "URL https://127.0.0.1:" "Jobs none" &&
        gives 0 status --data-dir "$data" -o json && json "d[\"running\"] and d[\"verb\"] == \"up\"" &&
        json "d[\"memoryBytes\"] > 0 and d[\"nodes\"][0][\"status\"] == \"Ready\"" &&
        kill -0 "$(python3 -c "import json; print(json.load(open(\"$dir/out\"))[\"pid\"])")"
'
step 'status shows running jobs' '
    job long "exec sleep $mark" | kubectl create -f - && within 20 running 2 && within 20 phase long Running &&
        gives 0 status --data-dir "$data" && says "Jobs 1 Running" "Pods 2 Running" "Ready 20m/"
'
before=$(uids)
step 'down ends the server, and pods continue' '
    gives 0 down --data-dir "$data" && says "hekla up has ended" "2 pods continue to run" &&
        gives 3 status --data-dir "$data" && within 20 processes 2
'
step 'the next server finds them again' '
    up && within 20 running 2 && [ "$(uids)" = "$before" ] && within 20 processes 2 &&
        k get pods -o "jsonpath={.items[*].status.containerStatuses[*].restartCount}" && prints "0 0"
'
step 'down --pods ends the pods first, and leaves no process' '
    gives 0 down --pods --data-dir "$data" && silent "continue" && processes 0 &&
        left=$(traces $before) || exit 1
    [ -z "$left" ] || { echo "$left"; exit 1; }
'
step 'the job continues with new pods' '
    up && within 20 running 2 && within 20 phase long Running && [ "$(uids)" != "$before" ] &&
        within 20 processes 2
'
step 'pods without a server can be ended too' '
    gives 0 down --data-dir "$data" && within 20 processes 2 &&
        gives 0 down --pods --data-dir "$data" && says "2 pods of an earlier server have ended" &&
        processes 0 && [ -z "$(ls "$data/node/run")" ]
'
step 'after a kill the directory can be used again' '
    up && gives 0 status --data-dir "$data" -o json &&
        kill -KILL "$(python3 -c "import json; print(json.load(open(\"$dir/out\"))[\"pid\"])")" &&
        within 20 gives 3 status --data-dir "$data" && up && gives 0 down --pods --data-dir "$data"
'
step 'the log of the server is empty' '
    cat "$data/hekla.log" && [ ! -s "$data/hekla.log" ]
'

step 'root may listen for others if all users are trusted or no pods run' '
    gives 0 up --detach --data-dir "$dir/wide" --listen 0.0.0.0:0 --trust-all-users && gives 0 down --data-dir "$dir/wide" &&
        gives 0 up --detach --data-dir "$dir/wide" --listen 0.0.0.0:0 --no-node && gives 0 down --data-dir "$dir/wide" &&
        for address in 127.0.0.1 127.9.9.9 "[::ffff:127.0.0.1]"; do
            gives 0 up --detach --data-dir "$dir/wide" --listen "$address:0" && gives 0 down --data-dir "$dir/wide" || exit 1
        done
'
step 'a server that was killed, and its directory removed, leaves nothing in memory' '
    "$HEKLA" up --detach --data-dir "$dir/lost" --listen 127.0.0.1:0 && memory=$(readlink "$dir/lost/node/run") || exit 1
    [ -e "$memory.net/.of" ] && kill -9 "$("$HEKLA" status --data-dir "$dir/lost" -o json | sed -n "s/.*\"pid\": \([0-9]*\).*/\1/p")" || exit 1
    within 10 gives 3 status --data-dir "$dir/lost" && [ -e "$memory" ] && rm -rf "$dir/lost" &&
        "$HEKLA" up --detach --data-dir "$dir/next" --listen 127.0.0.1:0 && gives 0 down --data-dir "$dir/next" &&
        [ ! -e "$memory" ] && [ ! -e "$memory.net" ]
'
step 'the service manager is notified' '
    cat >"$dir/listen.py" <<PYTHON
import os, signal, socket, subprocess, sys

hekla, data, name = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(name.replace("@", "\0"))
s.settimeout(30)
p = subprocess.Popen([hekla, "up", "--no-node", "--data-dir", data, "--listen", "127.0.0.1:0"],
                     stdout=subprocess.PIPE, env=dict(os.environ, NOTIFY_SOCKET=name))
try:
    assert s.recv(100) == b"READY=1"
    assert b" ready at " in p.stdout.readline()
    p.send_signal(signal.SIGTERM)
    assert s.recv(100) == b"STOPPING=1"
    assert p.wait(30) == 0
finally:
    p.kill()
PYTHON
    python3 "$dir/listen.py" "$HEKLA" "$dir/notify" "$dir/socket" &&
        python3 "$dir/listen.py" "$HEKLA" "$dir/notify" "@hekla-$mark"
'

if command -v systemd-analyze >/dev/null; then
    step 'systemd accepts the service files' '
        for unit in hekla hekla-user; do
            sed "s|@bindir@|/bin/true \#|" "packaging/$unit.service.in" >"$dir/$unit.service" &&
                systemd-analyze verify --man=no "$dir/$unit.service" 2>"$dir/err" || exit 1
            grep -v DelegateSubgroup "$dir/err" && exit 1
        done
        true
    '
else
    step 'systemd accepts the service files # skip no systemd-analyze' true
fi

step 'a port in use is reported in one line' '
    cat >"$dir/taken.py" <<PYTHON
import socket, subprocess, sys

s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
address = "127.0.0.1:%d" % s.getsockname()[1]
sys.exit(subprocess.run([*sys.argv[1:], "--listen", address]).returncode)
PYTHON
    for how in --no-node --detach; do
        timeout 60 python3 "$dir/taken.py" "$HEKLA" up --data-dir "$dir/taken" "$how" >"$dir/out" 2>"$dir/err"
        [ $? -eq 1 ] && complains "Address already in use" || exit 1
    done
'
step 'a directory that cannot be created is reported in one line' '
    gives 1 up --data-dir /dev/null/x && complains "cannot create the directory" &&
        gives 1 up --data-dir "" && complains "is empty"
'
step 'a file that is not a database is reported in one line' '
    mkdir "$dir/broken" && echo nonsense >"$dir/broken/store.db" && gives 1 up --data-dir "$dir/broken" &&
        complains "not a database"
'
step 'broken credentials are reported with the name of their file' '
    mkdir "$dir/creds" && echo nonsense >"$dir/creds/ca.crt" && echo nonsense >"$dir/creds/ca.key" &&
        gives 1 up --data-dir "$dir/creds" --listen 127.0.0.1:0 && complains "creds/ca.crt: "
'
if unshare -m true 2>/dev/null; then
    step 'a full disk is reported in one line' '
        mkdir "$dir/full" && unshare -m sh -c "mount -t tmpfs -o size=64k none \"$dir/full\" &&
            exec timeout 60 \"$HEKLA\" up --data-dir \"$dir/full/hekla\" --listen 127.0.0.1:0" 2>"$dir/err"
        [ $? -eq 1 ] && complains full
    '
else
    step 'a full disk is reported in one line # skip mounting is not permitted' true
fi
finish
