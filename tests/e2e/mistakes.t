#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Mistakes on the command line, of every verb: one line says what is wrong and what to do, and the
# exit status is the one that the manual page gives.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
other=

end_others() {
    [ -z "$other" ] || kill -9 "$other"
}

# says_so FILE STATUS TEXT: the line in the file is the only one, and has the text.
says_so() {
    [ "$code" -eq "$2" ] && [ "$(wc -l <"$1")" -eq 1 ] && grep -qF -- "$3" "$1" && return 0
    echo "exit status $code, expected $2; expected one line with: $3"
    cat "$dir/out" "$dir/err"
    return 1
}

# status_of VERB: of a mistake. Verbs for everyday keep 1 for what ended otherwise, exec has what ssh has.
status_of() {
    case $1 in
    exec) echo 255 ;;
    run | apply | logs | wait | explain | cp | port-forward | jobs | pods | queues | nodes | flows | cancel | suspend | resume | history | top | cordon | uncordon | drain) echo 2 ;;
    *) echo 1 ;;
    esac
}

# wrong TEXT ARG...: hekla refuses the arguments with one line on standard error, and the status of the
# verb. A quote in the text stands for an apostrophe.
wrong() {
    text=$1
    shift
    code=0
    timeout 20 "$HEKLA" "$@" >"$dir/out" 2>"$dir/err" </dev/null || code=$?
    echo "hekla $*"
    says_so "$dir/err" "$(status_of "$1")" "$(echo "$text" | tr \" \')" && [ ! -s "$dir/out" ] &&
        grep -q "^hekla: " "$dir/err"
}

# wrong_vcctl STATUS TEXT ARG...: the same of vcctl, which tells failures on standard output.
wrong_vcctl() {
    status=$1 text=$2
    shift 2
    code=0
    timeout 20 "$HEKLA" vcctl "$@" >"$dir/out" 2>"$dir/err" </dev/null || code=$?
    echo "hekla vcctl $*"
    cat "$dir/out" "$dir/err" >"$dir/both"
    says_so "$dir/both" "$status" "$text"
}

# with SED: a kubeconfig that differs from the good one.
with() {
    sed "$1" "$KUBECONFIG" >"$dir/bad"
    echo "$dir/bad"
}

step 'no server anywhere' '
    unset KUBECONFIG KUBERNETES_MASTER
    mkdir "$dir/empty"
    export HOME=$dir/empty XDG_STATE_HOME=$dir/empty
    [ -e /var/lib/hekla/server ] || wrong "no server: \"hekla up\" does not run in its default directory" jobs
'
step 'an unknown verb' '
    wrong "unknown verb \"upp\", did you mean \"up\"?" upp &&
        wrong "unknown verb \"nonsense\" (see \"hekla help\")" nonsense &&
        wrong "unknown option \"-x\", a verb comes first" -x &&
        wrong "unknown verb \"nonsense\"" help nonsense
'
step 'an unknown option' '
    for verb in $("$HEKLA" help | sed -n "s/^  \([a-z-]*\) .*/\1/p" | grep -vx vcctl); do
        wrong "$verb: unknown option \"--nonsense\" (see \"hekla help $verb\")" \
            "$verb" --nonsense || exit 1
    done
'
step 'an option without its value' '
    wrong "up: option --data-dir wants DIR" up --data-dir &&
        wrong "apiserver: option --listen wants ADDR:PORT" apiserver --listen &&
        wrong "schedule: option --filename wants FILE" schedule -f &&
        wrong "controller-manager: option --kubeconfig wants" controller-manager --kubeconfig
'
step 'invalid numbers and addresses' '
    wrong "want a number from 1 to" up --data-dir "$dir/x" --pod-max-pids 0 &&
        wrong "want a number from 1 to" up --data-dir "$dir/x" --pod-max-pids many &&
        wrong "want ADDR:PORT" up --data-dir "$dir/x" --listen nowhere &&
        wrong "option --node is \"Not_A_Node\", want" up --data-dir "$dir/x" --node Not_A_Node &&
        wrong "want ADDR:PORT" apiserver --data-dir "$dir/x" --listen 127.0.0.1:65536 &&
        [ ! -e "$dir/x" ]
'
if [ "$(id -u)" -eq 0 ]; then
step 'root must confirm a server that others can reach' '
    for address in 0.0.0.0 "[::]" 192.0.2.1 "[2001:db8::1]"; do
        wrong "as root: pods run as root here, so whoever may create a pod through this address owns the machine" \
            up --data-dir "$dir/x" --listen "$address:0" || exit 1
        wrong "(--trust-all-users)" up --detach --data-dir "$dir/x" --listen "$address:0" || exit 1
    done
    [ ! -e "$dir/x" ]
'
fi
step 'a missing required option' '
    wrong "apiserver: --data-dir DIR is required" apiserver &&
        wrong "schedule: no input, give it with -f FILE" schedule && wrong "apply: no input, give it with -f FILE" apply && wrong "scn: no FILE is given" scn &&
        wrong "completion: the shell is missing: bash, zsh or fish" completion &&
        wrong "--webhook-url, or --webhook-namespace and --webhook-service-name are required" webhook-manager &&
        wrong "outside of a pod --kubeconfig or --master is required" controller-manager
'
step 'unexpected arguments' '
    wrong "up: unexpected \"more\"" up more && wrong "version: unexpected \"more\"" version more &&
        wrong "files are given with -f" schedule more
'
step 'missing files, and files of another kind' '
    touch "$dir/file" && wrong "cannot open \"/no/such/file\"" schedule -f /no/such/file &&
        wrong "cannot open \"/no/such/file\"" controller-manager --kubeconfig /no/such/file &&
        wrong "cannot read \"/no/such/file\"" up --data-dir "$dir/x" --image-roots /no/such/file &&
        wrong "\"$dir/file\" is not a directory" up --data-dir "$dir/file" &&
        wrong "cannot create the directory \"/proc/x\"" up --data-dir /proc/x &&
        wrong "Cannot assign requested address" up --no-node --data-dir "$dir/y" --listen 192.0.2.1:1
'

start
step 'a directory or a port in use' '
    wrong "in use by another server" apiserver --data-dir "$data" --listen 127.0.0.1:0 &&
        wrong "Address already in use" apiserver --data-dir "$dir/z" --listen "${url#https://}"
'
step 'vcctl: unknown commands and flags' '
    wrong_vcctl 1 "unknown command \"nonsense\"" nonsense &&
        wrong_vcctl 1 "unknown flag: --nonsense" job list --nonsense &&
        wrong_vcctl 1 "invalid argument \"x\" for \"-r, --replicas\"" job run -r x
'
step 'vcctl: objects that do not exist' '
    wrong_vcctl 255 "jobs.batch.volcano.sh \"nope\" not found" job view -N nope &&
        wrong_vcctl 255 "queues.scheduling.volcano.sh \"nope\" not found" queue get -n nope &&
        wrong_vcctl 255 "/no/such/file" job list --kubeconfig /no/such/file &&
        wrong_vcctl 255 "no such file" job run -f /no/such/file.yaml
'
step 'an invalid kubeconfig' '
    echo "a: [b" >"$dir/bad" &&
        wrong_vcctl 255 "$dir/bad: line 2" job list --kubeconfig "$dir/bad" &&
        wrong "$dir/bad: line 2" controller-manager --kubeconfig "$dir/bad"
'
step 'a server that does not answer' '
    wrong_vcctl 255 "connect to 127.0.0.1 port 1" job list \
        --kubeconfig "$(with "s,server:.*,server: https://127.0.0.1:1,")" &&
        wrong_vcctl 255 "resolve host: nowhere.invalid" job list \
            --kubeconfig "$(with "s,server:.*,server: https://nowhere.invalid,")"
'
step 'an invalid token' '
    wrong_vcctl 255 Unauthorized job list --kubeconfig "$(with "s,token:.*,token: wrong,")"
'
if command -v kubectl >/dev/null; then
    step 'a user without the right' '
        k create serviceaccount nobody && k create token nobody &&
            wrong_vcctl 255 "cannot list resource" job list \
                --kubeconfig "$(with "s,token:.*,token: $(cat "$dir/out"),")"
    '
fi
mine=$KUBECONFIG other=$pid pid=
mkdir "$dir/second"
first=$dir dir=$dir/second
start
dir=$first
step 'a certificate of another server' '
    sed "s,server:.*,server: $url," "$mine" >"$dir/bad" &&
        wrong_vcctl 255 "the kubeconfig may be of another server" job list --kubeconfig "$dir/bad"
'
finish
