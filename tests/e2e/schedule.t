#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla schedule and its sister verbs, as users run them.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
NOW=2026-01-02T10:00:00Z

# says FILE TEXT: the file holds the text.
says() {
    grep -qF -- "$2" "$dir/$1" && return 0
    echo "expected in $1: $2"
    cat "$dir/$1"
    return 1
}

# one_line: the complaint is a single line.
one_line() {
    [ "$(wc -l <"$dir/err")" -eq 1 ] && return 0
    echo "expected one line on stderr:"
    cat "$dir/err"
    return 1
}

cat >"$dir/node.yaml" <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
YAML

pod() { # NAME CPU
    printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n' "$1"
    printf '  schedulerName: volcano\n  containers:\n  - name: c\n'
    printf '    resources: {requests: {cpu: "%s"}}\n' "$2"
}

step 'the JSON report has every list' '
    gives 0 schedule -f examples/cluster.yaml --now $NOW -o json &&
    json "all(isinstance(d[k], list) for k in (
        \"binds\", \"evictions\", \"pipelined\", \"podGroups\", \"queues\", \"pending\", \"problems\"))"
'
step 'a gang that fits is bound as a whole' '
    gives 0 schedule -f examples/cluster.yaml --now $NOW -o json &&
    json "sorted(b[\"pod\"] for b in d[\"binds\"] if \"training\" in b[\"pod\"]) ==
        [\"research/training-worker-%d\" % i for i in range(3)]" &&
    json "all(b[\"node\"] == \"gpu-1\" and b[\"cycle\"] == 1
        for b in d[\"binds\"] if \"training\" in b[\"pod\"])"
'
step 'a gang that does not fit waits, with the reason' '
    gives 0 schedule -f examples/cluster.yaml --now $NOW -o json &&
    json "not any(\"simulation\" in b[\"pod\"] for b in d[\"binds\"])" &&
    json "any(p[\"pod\"] == \"research/simulation-0\" and \"nvidia.com/gpu\" in p[\"message\"]
        for p in d[\"pending\"])" &&
    json "[c[\"type\"] for g in d[\"podGroups\"] if g[\"name\"] == \"research/simulation\"
        for c in g[\"conditions\"]] == [\"Unschedulable\"]"
'
step 'queues show allocated and deserved amounts' '
    gives 0 schedule -f examples/cluster.yaml --now $NOW -o json &&
    json "[q[\"allocated\"][\"cpu\"] for q in d[\"queues\"] if q[\"name\"] == \"research\"] == [\"9\"]" &&
    json "all(\"cpu\" in q[\"deserved\"] and \"memory\" in q[\"deserved\"] for q in d[\"queues\"])"
'
step 'preemption evicts in the first cycle and binds in a later one' '
    gives 0 schedule -f examples/cluster.yaml --conf examples/scheduler.yaml --cycles 3 --now $NOW \
        -o json &&
    json "all(e[\"action\"] == \"preempt\" and e[\"for\"] == \"platform/hotfix\" and e[\"cycle\"] == 1
        for e in d[\"evictions\"]) and len(d[\"evictions\"]) == 2" &&
    json "[b[\"cycle\"] for b in d[\"binds\"] if b[\"pod\"] == \"platform/hotfix-0\"] == [2]"
'
step 'a pod waits on the node that is being freed for it' '
    gives 0 schedule -f examples/cluster.yaml --conf examples/scheduler.yaml --now $NOW -o json &&
    json "[p[\"pod\"] for p in d[\"pipelined\"]] == [\"platform/hotfix-0\"]"
'
step 'reclaim gives a queue its share back' '
    gives 0 schedule -f examples/fair-share.yaml --conf examples/scheduler.yaml --cycles 3 --now $NOW \
        -o json &&
    json "len(d[\"evictions\"]) == 2 and all(e[\"action\"] == \"reclaim\" for e in d[\"evictions\"])" &&
    json "sum(b[\"pod\"].startswith(\"beta/\") for b in d[\"binds\"]) == 2"
'
step 'two runs give the same report' '
    gives 0 schedule -f examples/cluster.yaml --conf examples/scheduler.yaml --cycles 5 --now $NOW &&
    cp "$dir/out" "$dir/first" &&
    gives 0 schedule -f examples/cluster.yaml --conf examples/scheduler.yaml --cycles 5 --now $NOW &&
    cmp "$dir/first" "$dir/out"
'
step 'standard input and several files together' '
    pod p 1 | gives 0 schedule -f "$dir/node.yaml" -f - --now $NOW -o json &&
    json "[(b[\"pod\"], b[\"node\"]) for b in d[\"binds\"]] == [(\"default/p\", \"n1\")]"
'
step 'a pod without a group gets one, as from the controller' '
    pod p 1 | gives 0 schedule -f "$dir/node.yaml" -f - --now $NOW -o json &&
    json "[g[\"name\"] for g in d[\"podGroups\"]] == [\"default/podgroup-p\"]"
'
step 'lists and typed lists, in JSON too' '
    printf "%s" "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",
        \"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{\"allocatable\":{\"cpu\":\"2\",
        \"memory\":\"1Gi\",\"pods\":\"10\"}}}]}
        {\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"p\"},
        \"spec\":{\"schedulerName\":\"volcano\",\"containers\":[{\"name\":\"c\",
        \"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}]}" >"$dir/list.json" &&
    gives 0 schedule -f "$dir/list.json" --now $NOW -o json &&
    json "[(b[\"pod\"], b[\"node\"]) for b in d[\"binds\"]] == [(\"default/p\", \"a\")]"
'
step 'a bad quantity is a problem with its line, and others are scheduled' '
    { cat "$dir/node.yaml"; echo ---; pod bad 1x; echo ---; pod good 1; } >"$dir/mixed.yaml" &&
    gives 2 schedule -f "$dir/mixed.yaml" --now $NOW -o json &&
    json "[b[\"pod\"] for b in d[\"binds\"]] == [\"default/good\"]" &&
    json "[(p[\"object\"], p[\"line\"]) for p in d[\"problems\"]] == [(\"Pod default/bad\", 13)]" &&
    json "\"1x\" in d[\"problems\"][0][\"message\"]"
'
step 'a document that is not an object is a problem, and others are scheduled' '
    { cat "$dir/node.yaml"; printf -- "---\nfoo: bar\n---\n"; pod good 1; } >"$dir/stray.yaml" &&
    gives 2 schedule -f "$dir/stray.yaml" --now $NOW &&
    says out "stray.yaml:6: object has no apiVersion" && says out "good on n1"
'
step 'text that is not YAML is refused with the line' '
    printf "a: 1\nb: [1\nc: }\n" >"$dir/bad.yaml" &&
    gives 1 schedule -f "$dir/bad.yaml" && one_line && says err "bad.yaml: line 3"
'
step 'Volcano Jobs and unknown kinds are named as ignored' '
    printf "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\n---
apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n" >"$dir/other.yaml" &&
    gives 0 schedule -f "$dir/other.yaml" &&
    says out "Job j: Volcano Jobs are not expanded into pods" && says out "Widget w: unknown kind"
'
step 'a pod whose queue or group does not exist gets that reason' '
    { cat "$dir/node.yaml"; printf -- "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup
metadata: {name: g}\nspec: {queue: nowhere, minMember: 1}\n---\n"
      pod p 1 | sed "s|{name: p}|{name: p, annotations: {scheduling.k8s.io/group-name: g}}|"
      echo ---
      pod q 1 | sed "s|{name: q}|{name: q, annotations: {scheduling.k8s.io/group-name: h}}|"
    } >"$dir/lost.yaml" &&
    gives 0 schedule -f "$dir/lost.yaml" --now $NOW -o json &&
    json "sorted(p[\"message\"] for p in d[\"pending\"]) ==
        [\"PodGroup '"'default/h'"' does not exist\", \"queue '"'nowhere'"' does not exist\"]"
'
step 'a missing file is one line and status 1' '
    gives 1 schedule -f "$dir/none.yaml" && one_line && says err "none.yaml"
'
step 'no input is one line and status 1' '
    gives 1 schedule && one_line && says err "-f FILE"
'
step 'unknown options and bad values are one line and status 1' '
    gives 1 schedule --bogus && one_line && says err "--bogus" &&
    gives 1 schedule -f x -o yaml && one_line && says err "one of: text, json" &&
    gives 1 schedule -f x --cycles 0 && one_line && says err "--cycles" &&
    gives 1 schedule -f x --now yesterday && one_line && says err "--now" &&
    gives 1 schedule -f && one_line && says err "FILE"
'
step 'a broken configuration is refused with its line' '
    printf "actions: \"enqueue, allocat\"\n" >"$dir/conf.yaml" &&
    gives 1 schedule -f "$dir/node.yaml" --conf "$dir/conf.yaml" && one_line &&
    says err "line 1" && says err "allocat"
'
step 'an unknown plugin is only a warning' '
    printf "actions: allocate\ntiers:\n- plugins:\n  - name: nonsense\n" >"$dir/conf.yaml" &&
    gives 0 schedule -f "$dir/node.yaml" --conf "$dir/conf.yaml" && one_line &&
    says err "unknown plugin '"'nonsense'"'"
'
step 'text output has no colours in a pipe' '
    gives 0 schedule -f examples/cluster.yaml --now $NOW &&
    ! grep -q "$(printf "\033")" "$dir/out"
'
step 'every verb has a manual page' '
    for verb in schedule scn plugins help version completion; do
        gives 0 help $verb && says out "hekla $verb - " && says out SYNOPSIS || exit 1
        cp "$dir/out" "$dir/page"
        gives 0 $verb --help && cmp "$dir/page" "$dir/out" || exit 1
    done
'
step 'the overview lists the verbs; without arguments it goes to stderr' '
    gives 0 --help && says out schedule && says out completion && gives 1 && says err schedule
'
step 'an unknown verb suggests the nearest' '
    gives 1 schedul && one_line && says err "did you mean '"'schedule'"'" &&
    gives 1 frobnicate && one_line && says err "hekla help"
'
step 'version prints one line' '
    gives 0 version && grep -Eqx "hekla [0-9]+\.[0-9]+\.[0-9]+" "$dir/out"
'
step 'plugins lists actions, plugins, hooks and arguments' '
    gives 0 plugins && says out gang && says out JobReady && says out binpack.weight &&
    gives 0 plugins -o json &&
    json "{\"gang\", \"drf\", \"predicates\"} <= {p[\"name\"] for p in d[\"plugins\"]}" &&
    json "{\"enqueue\", \"allocate\", \"backfill\"} <= {a[\"name\"] for a in d[\"actions\"]}"
'
step 'the bash completion script loads and completes' '
    gives 0 completion bash && command -v bash >/dev/null &&
    bash -c ". \"$dir/out\"; COMP_WORDS=(\"$HEKLA\" plug); COMP_CWORD=1; _hekla;
        [ \"\${COMPREPLY[*]}\" = plugins ]" &&
    gives 0 completion zsh && gives 0 completion fish && gives 1 completion tcsh && one_line
'
step 'a failing scenario shows what was found' '
    printf "node n1 cpu=1 mem=1Gi\njob j min=1\ntask j/0 cpu=2\ncycle\nexpect bound j/0=n1\n" \
        >"$dir/fails.scn" &&
    gives 1 scn "$dir/fails.scn" && says out "not ok 1" && says out "fails.scn:5: expected j/0 bound" &&
    says out "Journal of the last cycle"
'
step 'a scenario that cannot be read fails with its line' '
    printf "node n1\nfrob x\n" >"$dir/word.scn" &&
    gives 1 scn "$dir/word.scn" && says out "word.scn:2: unknown statement"
'
step 'the demo runs' '
    HEKLA="$HEKLA" scripts/demo >"$dir/out"
'
finish
