# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Functions for tests with a server and kubectl. A test changes to the root of the repository,
# sources this file, names what it needs (needs and its siblings), and calls start before the first
# step. Before start it may set: kubectl (default: the installed one), verb (the server; default:
# apiserver), options (of the server), kube_options (of a real control plane), and label (a prefix
# for the names of points).
#
# The test gets HEKLA, the program as an absolute path (default: build/hekla), and dir, a directory of
# its own. It defines end_others if it starts more than the server and the daemons of launch.
#
# HEKLA_BACKEND=kube uses a real control plane instead: kube-apiserver in place of hekla apiserver;
# in place of hekla up also Hekla's programs as separate processes.
HEKLA=$(realpath "${HEKLA:-build/hekla}")
kubectl=kubectl
verb=apiserver
options=
kube_options=
label=
pid=
launched=
count=0 failed=0
real_home=$HOME
top=$(mktemp -d) || exit 1
dir=$top

# end_others: ends what only this test starts.
end_others() {
    :
}

# clean_up: runs when the test ends.
clean_up() {
    end_others
    for name in $launched; do
        halt "$name" KILL
    done
    stop KILL
    rm -rf "$top"
}
trap 'clean_up' EXIT

# skip_all REASON: ends the test as skipped.
skip_all() {
    echo "1..0 # skip $1"
    exit 0
}

# on_kube: succeeds if the test runs on a real control plane.
on_kube() {
    [ "${HEKLA_BACKEND:-}" = kube ]
}

# needs COMMAND...: skips the test unless all commands are installed.
needs() {
    for program; do
        command -v "$program" >/dev/null || skip_all "no $program"
    done
}

# needs_mounts: skips the test unless it may create mount namespaces.
needs_mounts() {
    unshare -m true 2>/dev/null || skip_all 'mount namespaces are not permitted'
}

# needs_root: skips the test unless it runs as root.
needs_root() {
    [ "$(id -u)" -eq 0 ] || skip_all 'not root'
}

# needs_embedded REASON: skips the test on a real control plane.
needs_embedded() {
    on_kube && skip_all "$1"
    return 0
}

# needs_kubectls: finds several versions of kubectl for with_each_kubectl; skips the test if there
# is none.
needs_kubectls() {
    scripts/kubectls >"$top/kubectls" 2>"$top/missing"
    [ -s "$top/kubectls" ] || skip_all "$(tr '\n' ' ' <"$top/missing")"
}

# step NAME SCRIPT: one TAP point; passes if the script succeeds.
step() {
    count=$((count + 1))
    if (eval "$2") >"$dir/log" 2>&1; then
        echo "ok $count - ${label:+$label: }$1"
    else
        failed=$((failed + 1))
        echo "not ok $count - ${label:+$label: }$1"
        sed 's/^/# /' "$dir/log"
    fi
}

# start: starts a server on a free port, waits until it is ready, and sets $data, $url and the
# administrator's $token. Sets HOME, so that kubectl does not use caches of other servers.
start() {
    data=$dir/data
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    case ${HEKLA_BACKEND:-} in
        kube) server=tests/kube/cluster.py further=$kube_options ready_s=180 ;;
        *) server=$HEKLA further='' ready_s=30 ;;
    esac
    # shellcheck disable=SC2086 # options must be split into words
    HOME=$real_home "$server" "$verb" --data-dir "$data" --listen 127.0.0.1:0 $options $further \
        >"$dir/ready" 2>"$dir/server" &
    pid=$!
    timeout $ready_s head -n 1 "$dir/ready" >"$dir/line"
    url=$(sed -n "s/^hekla $verb ready at \(.*\), kubeconfig .*/\1/p" "$dir/line")
    if [ -z "$url" ]; then
        echo "Bail out! no server: $(cat "$dir/server")"
        exit 1
    fi
    token=$(cut -d, -f1 "$data/tokens.csv")
    KUBECONFIG=$data/kubeconfig HOME=$dir
    export KUBECONFIG HOME
}

# server_pid: prints the process that serves requests; stop sends its signal to $pid instead.
server_pid() {
    if on_kube; then
        cat "$data/kube-apiserver.pid"
    else
        echo "$pid"
    fi
}

# audit_log: prints the path of the audit log of a real API server.
audit_log() {
    if [ -n "${HEKLA_AUDIT:-}" ]; then
        echo "$HEKLA_AUDIT/$pid.log"
    else
        echo "$data/audit.log"
    fi
}

# stop SIGNAL: ends the server, and sets $status.
stop() {
    [ -n "$pid" ] || return 0
    kill -s "$1" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    status=$?
    pid=
}

# config_of VERB: prints the kubeconfig for a daemon; on a real API server, with only the rights of
# the daemon's service account.
config_of() {
    on_kube || { echo "$KUBECONFIG"; return; }
    case $1 in
        scheduler) echo "$data/volcano-scheduler.kubeconfig" ;;
        controller-manager) echo "$data/volcano-controllers.kubeconfig" ;;
        webhook-manager) echo "$data/volcano-admission.kubeconfig" ;;
        agent) echo "$data/hekla-agent.kubeconfig" ;;
    esac
}

# launch VERB NAME ARG...: starts a daemon, waits until it is up, and sets $NAME to its pid. The test
# chooses NAME.
launch() {
    daemon=$1 name=$2
    shift 2
    "$HEKLA" "$daemon" --kubeconfig "$(config_of "$daemon")" "$@" >"$dir/$name.out" \
        2>"$dir/$name.err" &
    eval "$name=$!"
    launched="$launched $name"
    within 20 grep -q ' started' "$dir/$name.out"
}

# ended NAME: waits for the daemon to end, and sets $status.
ended() {
    eval "ends=\$$1 $1="
    wait "$ends" 2>/dev/null
    status=$?
}

# halt NAME SIGNAL: ends the daemon, and sets $status.
halt() {
    eval "ends=\${$1:-}"
    [ -n "$ends" ] || return 0
    kill -s "$2" "$ends" 2>/dev/null
    ended "$1"
}

# port NAME WORD: prints the port of the daemon's health or metrics endpoint.
port() {
    sed -n "s/.*$2 on port \([0-9]*\).*/\1/p" "$dir/$1.out"
}

# scrape NAME: writes the daemon's metrics to $dir/scrape.
scrape() {
    curl -sS --max-time 10 "http://127.0.0.1:$(port "$1" metrics)/metrics" >"$dir/scrape"
}

# metric NAME LINE: the daemon's metrics contain the line.
metric() {
    scrape "$1"
    grep -qxF -- "$2" "$dir/scrape" && return 0
    echo "expected: $2"
    cat "$dir/scrape"
    return 1
}

# stumbles VERB TEXT ARG...: the daemon refuses these options with one line that has the text.
stumbles() {
    daemon=$1 text=$2
    shift 2
    timeout 20 "$HEKLA" "$daemon" "$@" >"$dir/out" 2>"$dir/err"
    code=$?
    [ "$code" -eq 1 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -qF -- "$text" "$dir/err" &&
        return 0
    echo "expected: status 1 and one line: $text"
    echo "got: status $code"
    cat "$dir/out" "$dir/err"
    return 1
}

# k ARG...: runs kubectl with a timeout; its output goes to $dir/out and $dir/err.
k() {
    timeout 30 "$kubectl" "$@" >"$dir/out" 2>"$dir/err" && return 0
    echo "kubectl $*: exit status $?"
    cat "$dir/out" "$dir/err"
    return 1
}

# refused TEXT ARG...: kubectl must fail and print the text, which may span lines.
refused() {
    text=$1
    shift
    if k "$@" >/dev/null; then
        echo "kubectl $*: expected to fail"
        return 1
    fi
    cat "$dir/out" "$dir/err" | tr '\n' ' ' | grep -qF -- "$text" && return 0
    echo "expected: $text"
    cat "$dir/out" "$dir/err"
    return 1
}

# says TEXT...: the last command printed each text; runs of white space count as one space.
says() {
    for text; do
        tr -s ' \t' ' ' <"$dir/out" | grep -qF -- "$text" && continue
        echo "expected: $text"
        cat "$dir/out"
        return 1
    done
}

# silent TEXT: the last command did not print the text.
silent() {
    grep -qF -- "$1" "$dir/out" || return 0
    echo "not expected: $1"
    cat "$dir/out"
    return 1
}

# prints TEXT: the last command printed exactly the text.
prints() {
    [ "$(cat "$dir/out")" = "$1" ] && return 0
    echo "expected: $1"
    echo "got:      $(cat "$dir/out")"
    return 1
}

# field TYPE/NAME PATH VALUE: the object's field on the server has the value.
field() {
    k get "$1" -o jsonpath="{$2}" && prints "$3"
}

# gone TYPE/NAME: the object does not exist.
gone() {
    refused NotFound get "$1"
}

# within SECONDS COMMAND...: retries until the command succeeds; prints its last output if it never does.
within() {
    end=$(($(date +%s) + $1))
    shift
    until "$@" >"$dir/said" 2>&1; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "never came true: $*"
            cat "$dir/said"
            return 1
        fi
        sleep 0.05
    done
}

# quiet_log LOG: it has nothing but that this user may not listen on ports of the system.
quiet_log() {
    ! grep -v -e "there is no DNS server" -e "leads nowhere\" service=default/kubernetes" "$1"
}

# content: one TAP point; the stopped server exited with 0 and logged nothing.
content() {
    step 'the server exits with 0 and logs nothing' '
        echo "exit status $status"
        quiet_log "$dir/server" && [ "$status" -eq 0 ]
    '
}

# with_each_kubectl: runs the test's write_files and steps for every line "LABEL KUBECTL" of
# $top/kubectls, each time with a new server and directory; lines of $top/missing become skipped
# points.
with_each_kubectl() {
    while read -r label kubectl; do
        dir=$top/$label
        mkdir "$dir"
        write_files
        start
        steps
        stop TERM
        content
    done <"$top/kubectls"
    while read -r missing; do
        count=$((count + 1))
        echo "ok $count - # skip $missing"
    done <"$top/missing"
}

# gives STATUS ARG...: hekla exits with that status; its output goes to $dir/out and $dir/err.
gives() {
    want=$1
    shift
    timeout 60 "$HEKLA" "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ "$got" -eq "$want" ] && return 0
    echo "hekla $*: exit status $got, expected $want"
    cat "$dir/out" "$dir/err"
    return 1
}

# complains TEXT: the last command printed exactly one line to stderr, with the text.
complains() {
    grep -qF -- "$1" "$dir/err" && [ "$(wc -l <"$dir/err")" -eq 1 ] && return 0
    echo "expected one line with: $1"
    cat "$dir/err"
    return 1
}

# json EXPRESSION: the last command printed a JSON document d for which the Python expression holds.
json() {
    python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
if not eval("(" + sys.argv[2] + ")"):
    print("expected:", sys.argv[2])
    print(json.dumps(d, indent=1))
    sys.exit(1)' "$dir/out" "$1"
}

# print_job NAME REPLICAS POD [LINE...]: prints a job with one task, w, that needs all its replicas.
# POD are further members of the pods' spec, in flow style; the lines go into the job's spec.
print_job() {
    name=$1 replicas=$2 pod=$3
    shift 3
    cat <<YAML
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: $name}
spec:
  minAvailable: $replicas
$(for line; do echo "  $line"; done)
  tasks:
  - name: w
    replicas: $replicas
    template:
      metadata: {annotations: {${notes:-}}}
      spec: {restartPolicy: Never, $pod}
YAML
}

# finish: prints the TAP plan; fails if a point failed.
finish() {
    echo "1..$count"
    [ "$failed" -eq 0 ]
}

if on_kube && ! scripts/kube-peers >/dev/null 2>"$dir/peers"; then
    skip_all "$(tail -n 1 "$dir/peers")"
fi
