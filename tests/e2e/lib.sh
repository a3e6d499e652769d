# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# The words in which tests with a server and kubectl are written. A test sets HEKLA (the program) and
# dir (a directory of its own), reads this file, and begins with start. It may set kubectl, when it
# is another than the installed one, verb, when the server is to be another than hekla apiserver,
# options for it, kube_options when it is a real one, and label, which then precedes the names of the
# points.
#
# HEKLA_BACKEND=kube puts a real control plane in the place of the server: kube-apiserver for
# hekla apiserver, and with Hekla's programs as processes of their own for hekla up.
kubectl=${kubectl:-kubectl}
verb=${verb:-apiserver}
options=${options:-}
kube_options=${kube_options:-}
label=
pid=
count=0 failed=0
real_home=$HOME

# on_kube: the server is a real one.
on_kube() {
    [ "${HEKLA_BACKEND:-}" = kube ]
}
if on_kube && ! scripts/kube-peers >/dev/null 2>"$dir/peers"; then
    echo "1..0 # skip $(tail -n 1 "$dir/peers")"
    exit 0
fi

# step NAME SCRIPT: one point; the script must succeed.
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

# start: a server on a free port; returns when it says that it is ready, and leaves $data, $url and
# the administrator's $token. HOME keeps kubectl's caches of other servers out.
start() {
    data=$dir/data
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    case ${HEKLA_BACKEND:-} in
        kube) server=tests/kube/cluster.py further=$kube_options ready_s=180 ;;
        *) server=$HEKLA further='' ready_s=30 ;;
    esac
    # shellcheck disable=SC2086 # options are words
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

# server_pid: the process that answers requests; $pid is the one that is stopped.
server_pid() {
    if on_kube; then
        cat "$data/kube-apiserver.pid"
    else
        echo "$pid"
    fi
}

# audit_log: where a real server has a line for each request.
audit_log() {
    if [ -n "${HEKLA_AUDIT:-}" ]; then
        echo "$HEKLA_AUDIT/$pid.log"
    else
        echo "$data/audit.log"
    fi
}

# stop SIGNAL: ends the server, and leaves its $status.
stop() {
    [ -n "$pid" ] || return 0
    kill -s "$1" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    status=$?
    pid=
}

# config_of VERB: the kubeconfig of a daemon: on a real server that of its account, with no more
# rights than the daemon needs.
config_of() {
    on_kube || { echo "$KUBECONFIG"; return; }
    case $1 in
        scheduler) echo "$data/volcano-scheduler.kubeconfig" ;;
        controller-manager) echo "$data/volcano-controllers.kubeconfig" ;;
        webhook-manager) echo "$data/volcano-admission.kubeconfig" ;;
        agent) echo "$data/hekla-agent.kubeconfig" ;;
    esac
}

# launch VERB NAME ARG...: a daemon beside the server, by a name of the test's, whose process is
# then $NAME; returns when it has started.
launch() {
    daemon=$1 name=$2
    shift 2
    "$HEKLA" "$daemon" --kubeconfig "$(config_of "$daemon")" "$@" >"$dir/$name.out" \
        2>"$dir/$name.err" &
    eval "$name=$!"
    within 20 grep -q ' started' "$dir/$name.out"
}

# ended NAME: waits for it, and leaves its $status.
ended() {
    eval "ends=\$$1 $1="
    wait "$ends" 2>/dev/null
    status=$?
}

# halt NAME SIGNAL: ends it, and leaves its $status.
halt() {
    eval "ends=\$$1"
    [ -n "$ends" ] || return 0
    kill -s "$2" "$ends" 2>/dev/null
    ended "$1"
}

# port NAME WORD: on which it serves health or metrics.
port() {
    sed -n "s/.*$2 on port \([0-9]*\).*/\1/p" "$dir/$1.out"
}

# scrape NAME: its metrics, in $dir/scrape.
scrape() {
    curl -sS --max-time 10 "http://127.0.0.1:$(port "$1" metrics)/metrics" >"$dir/scrape"
}

# metric NAME LINE: a line of its metrics.
metric() {
    scrape "$1"
    grep -qxF -- "$2" "$dir/scrape" && return 0
    echo "expected: $2"
    cat "$dir/scrape"
    return 1
}

# stumbles VERB TEXT ARG...: does not start with these options, and says so in one line.
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

# k ARG...: kubectl within a deadline; what it prints is kept in $dir/out and $dir/err.
k() {
    timeout 30 "$kubectl" "$@" >"$dir/out" 2>"$dir/err" && return 0
    echo "kubectl $*: exit status $?"
    cat "$dir/out" "$dir/err"
    return 1
}

# refused TEXT ARG...: kubectl must fail and say the text, on however many lines.
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

# says TEXT...: the last command printed each text; words are one space apart.
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

# field TYPE/NAME PATH VALUE: the object's field, read again from the server.
field() {
    k get "$1" -o jsonpath="{$2}" && prints "$3"
}

# gone TYPE/NAME
gone() {
    refused NotFound get "$1"
}

# within SECONDS COMMAND...: until the command succeeds; its last words are shown when it never does.
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

# content: one point; the server that was stopped had nothing to complain about.
content() {
    step 'the server had nothing to complain about' '
        echo "exit status $status"
        cat "$dir/server"
        [ "$status" -eq 0 ] && [ ! -s "$dir/server" ]
    '
}

# with_each_kubectl: the test's write_files and steps, once with every line "LABEL KUBECTL" of
# $top/kubectls, each time with a server and a directory of its own; lines of $top/missing are
# skipped points.
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

# finish: the plan; fails when a point did.
finish() {
    echo "1..$count"
    [ "$failed" -eq 0 ]
}
