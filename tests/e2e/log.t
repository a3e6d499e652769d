#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The log of a server: every line has a time and a level and can be read by programs, the file can
# be moved away while the server runs, and no program ends because it is told to open its log anew.
cd "$(dirname "$0")/../.." || exit 1
HEKLA_BACKEND= # always the embedded server
. tests/e2e/lib.sh
needs kubectl python3
one='' two='' three='' four=''

end_others() {
    "$HEKLA" down --data-dir "$dir/back" >/dev/null 2>&1
    for n in one two three four; do
        halt $n KILL
    done
}

# is_logfmt FILE: every line is made of pairs, time and level first, and there is one at least.
is_logfmt() {
    python3 - "$1" <<'PY'
import re, sys
value = r'(?:"(?:[^"\\\x00-\x1f]|\\[nt"\\]|\\u[0-9a-f]{4})*"|[^\s"=\\]+)'
line = re.compile(r'time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=(?:error|warn|info|debug) msg=%s(?: [a-z_]+=%s)*' % (value, value))
lines = open(sys.argv[1]).read().splitlines()
bad = [l for l in lines if not line.fullmatch(l)]
print(*bad, sep="\n")
sys.exit(1 if bad or not lines else 0)
PY
}

# refuses FILE NAME: the server is given a configuration with an action of that name, refuses it, and
# says so in the file.
refuses() {
    printf 'actions: "allocate, %s"\ntiers: [{plugins: [{name: gang}]}]\n' "$2" >"$dir/conf.new" && mv "$dir/conf.new" "$dir/conf" &&
        within 20 grep -q "configuration not changed.*$2" "$1"
}

printf 'actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]\n' >"$dir/conf"
log=$dir/back/hekla.log
step 'lines have a time and a level, and their values are quoted where needed' '
    "$HEKLA" up --data-dir "$dir/back" --listen 127.0.0.1:0 --no-node --conf "$dir/conf" --detach &&
        refuses "$log" juggle && refuses "$log" wobble && grep -q "err=.*juggle" "$log" && cat "$log" && is_logfmt "$log"
'
step 'after SIGHUP a moved log continues in a new file, and so does the server' '
    pid_of=$("$HEKLA" status --data-dir "$dir/back" -o json | python3 -c "import json,sys; print(json.load(sys.stdin)[\"pid\"])") &&
        mv "$log" "$log.old" && before=$(wc -l <"$log.old") && kill -HUP "$pid_of" && within 20 test -e "$log" &&
        refuses "$log" stumble && is_logfmt "$log" && [ "$(stat -c %a "$log")" = 600 ] &&
        [ "$(wc -l <"$log.old")" -eq "$before" ] && [ "$(wc -l <"$log")" -ge 1 ] &&
        "$HEKLA" status --data-dir "$dir/back" && "$HEKLA" down --data-dir "$dir/back"
'
step 'a server in the foreground does not end by SIGHUP' '
    start && kill -HUP "$pid" && k get namespaces && stop TERM && [ "$status" -eq 0 ] && [ ! -s "$dir/server" ]
'
options='' verb=up
start
any=127.0.0.1:0
launch scheduler one --log-file "$dir/one.log" --healthz-address $any --listen-address $any
launch controller-manager two --log-file "$dir/two.log" --healthz-address $any --listen-address $any --leader-elect=false
launch agent three --data-dir "$dir/agent" --node other
launch webhook-manager four --webhook-namespace volcano-system --webhook-url https://127.0.0.1 --port 0 \
    --enabled-admission /jobs/mutate
step 'no other program ends by SIGHUP, and those with a log file reopen it' '
    kill -0 "$one" && kill -0 "$two" && kill -0 "$three" && kill -0 "$four" || { cat "$dir"/*.err; exit 1; }
    for n in one two; do
        within 20 grep -q "msg=\"working\"" "$dir/$n.log" && is_logfmt "$dir/$n.log" && mv "$dir/$n.log" "$dir/$n.old" || exit 1
    done
    for n in "$one" "$two" "$three" "$four" "$pid"; do kill -HUP "$n"; done
    within 20 test -e "$dir/one.log" && within 20 test -e "$dir/two.log" &&
        kill -0 "$one" && kill -0 "$two" && kill -0 "$three" && kill -0 "$four" && k get nodes
'
for n in one two three four; do
    halt $n TERM
    stopped="$stopped $status"
done
step 'all programs end with status 0 on SIGTERM' '
    [ "$stopped" = " 0 0 0 0" ] || { echo "$stopped"; cat "$dir"/*.err; exit 1; }
'
stop TERM
finish
