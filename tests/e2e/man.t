#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Manual pages and completions: made from the same tables as --help, so every verb, command and
# option is in them.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
mkfifo "$dir/never"

verbs=$("$HEKLA" help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
programs='vcctl vsub vjobs vqueues vcancel vsuspend vresume'

# plain PAGE: as a reader sees it, without the marks of roff.
plain() {
    sed 's/\\f[BIR]//g; s/\\-/-/g; s/\\e/\\/g; s/\\&//g' "$dir/man1/$1.1"
}

# has PAGE TEXT: the page says it.
has() {
    plain "$1" | grep -qF -- "$2" && return 0
    echo "$1.1 does not say: $2"
    return 1
}

# options: the long options that a help text lists; what is said about them stands further right.
options() {
    sed -n 's/^ \{2,7\}\(-[A-Za-z], \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p'
}

step 'every verb and every program has a page' '
    "$HEKLA" help --man-dir "$dir/man1" || exit 1
    for page in hekla $programs $(for v in $verbs; do echo "hekla-$v"; done); do
        [ -s "$dir/man1/$page.1" ] || { echo "no $page.1"; exit 1; }
    done
    [ "$(ls "$dir/man1" | wc -l)" -eq $(($(echo $verbs $programs | wc -w) + 1)) ]
'
step 'pages have every option with its help' '
    for v in $verbs; do
        [ "$v" = vcctl ] || for o in $("$HEKLA" "$v" --help | options); do has "hekla-$v" "$o" || exit 1; done
        "$HEKLA" help "$v" | tr -s " \n" "\n" | grep -v "^ *$" >"$dir/help"
        plain "hekla-$v" | tr -s " \n" "\n" >"$dir/page"
        missing=$(grep -vxFf "$dir/page" "$dir/help" | head -5)
        [ -z "$missing" ] || { echo "hekla-$v.1 lacks: $missing"; exit 1; }
    done
'
step 'the pages of vcctl have every command and flag' '
    for group in job queue jobflow jobtemplate pod; do
        for c in $("$HEKLA" vcctl $group --help | sed -n "/^Available/,/^$/s/^  \([a-z]*\) .*/\1/p"); do
            has vcctl "vcctl $group $c" || exit 1
            for o in $("$HEKLA" vcctl $group $c --help | options); do has vcctl "$o" || exit 1; done
        done
    done
    has vcctl "vcctl job run" && ln -s "$(realpath "$HEKLA")" "$dir/vsub" &&
        for o in $("$dir/vsub" --help | options); do has vsub "$o" || exit 1; done
'
step 'hekla man prints one page, by verb or by name' '
    "$HEKLA" help --man up | cmp - "$dir/man1/hekla-up.1" && "$HEKLA" help --man | cmp - "$dir/man1/hekla.1" &&
        "$HEKLA" help --man vsub | cmp - "$dir/man1/vsub.1" &&
        "$HEKLA" help --man hekla-vcctl | cmp - "$dir/man1/hekla-vcctl.1" || exit 1
    "$HEKLA" help --man nothing 2>"$dir/out" && exit 1
    says "unknown verb" && [ "$(wc -l <"$dir/out")" -eq 1 ]
'
if command -v mandoc >/dev/null; then
    step 'mandoc finds no error in the pages' 'mandoc -Tlint -Werror "$dir"/man1/*.1'
elif command -v groff >/dev/null; then
    step 'groff finds no error in the pages' '
        groff -man -Tutf8 -wall -Wbreak "$dir"/man1/*.1 2>"$dir/out" >/dev/null && prints ""
    '
else
    step 'a formatter finds no error in the pages # skip neither mandoc nor groff' true
fi

# completes WORDS...: what bash offers for the last of them.
completes() {
    PATH=$dir/bin:$PATH bash -c '. "$1"
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _hekla && echo "${COMPREPLY[@]}"' bash "$dir/bash" "$@" >"$dir/out"
}

mkdir "$dir/bin"
for name in hekla $programs vc-scheduler; do
    ln -s "$(realpath "$HEKLA")" "$dir/bin/$name"
done
for shell in bash zsh fish; do
    "$HEKLA" completion $shell >"$dir/$shell"
done
step 'bash completes verbs, options and their values' '
    completes hekla stat && prints status && completes hekla status --out && prints --output &&
        completes hekla status -o "" && prints "text json yaml" && completes hekla status --output = j && prints json &&
        completes hekla status --output = && prints "text json yaml" &&
        completes hekla help dow && prints down && completes hekla completion f && prints fish &&
        completes hekla up --data-dir /et && prints /etc && completes hekla up --no && says "--no-node" &&
        completes hekla up --no-node --image-roots /etc/passw && says /etc/passwd &&
        completes hekla top --sort = a && prints age && completes hekla scheduler --leader-elect = f && prints false &&
        completes hekla run -n 2 --outp && prints --output && completes vc-scheduler --scheduler-c && prints --scheduler-conf
'
step 'bash completes vcctl and its short forms' '
    completes vcctl job r && prints "resume run" && completes hekla vcctl job r && prints "resume run" &&
        completes vcctl jobflow describe -o "" && prints "yaml json" && completes vsub --im && prints --image &&
        completes hekla vcctl queue operate --action o && prints open && completes "$dir/bin/vcctl" queue op && prints operate &&
        completes vcctl job run --filename /etc/passw && says /etc/passwd
'
# What stands behind -- or begins a command is no option of ours.
step 'words that are not options of a verb get no options' '
    completes hekla exec pod -- --no && prints "" && completes hekla run make --ga && silent --gang &&
        completes hekla version "" && prints "" && completes hekla nonsense --o && prints ""
'
# A shell other than bash gets the word as it is typed, and what each answer is about.
step '--option=VALUE is completed as a whole word' '
    "$HEKLA" __complete hekla status --output=j >"$dir/out" && prints --output=json &&
        "$HEKLA" __complete hekla status --data-dir=/et >"$dir/out" && prints :dirs &&
        "$HEKLA" __complete hekla dow >"$dir/out" && says "down end"
'
step 'completion offers every option except those without effect' '
    for v in $verbs; do
        [ "$v" != vcctl ] || continue
        "$HEKLA" "$v" --help | sed -n "/^OPTIONS/,/^$/p" | options | sort >"$dir/want"
        "$HEKLA" __complete hekla "$v" -- | cut -f1 | sort >"$dir/got"
        "$HEKLA" "$v" --help | sed -n "s/^ *\(-[A-Za-z]\), --.*/\1/p" | sort >"$dir/letters"
        diff "$dir/want" "$dir/got" && [ -z "$(uniq -d "$dir/want")$(uniq -d "$dir/letters")" ] ||
            { echo "hekla $v"; exit 1; }
    done
    "$HEKLA" __complete hekla scheduler --sched >"$dir/out" && says --scheduler-conf && silent schedule-period
'
# The listener accepts the connection and never says anything.
step 'completion does not wait for a server that does not answer' '
    python3 -c "
import socket, sys, time
s = socket.socket()
s.bind((\"127.0.0.1\", 0))
s.listen()
print(s.getsockname()[1], flush=True)
sys.stdin.read()" <"$dir/never" >"$dir/port" &
    listener=$!
    exec 9>"$dir/never"
    within 20 test -s "$dir/port"
    code=0
    timeout 60 "$HEKLA" __complete hekla logs --server "https://127.0.0.1:$(cat "$dir/port")" "" \
        >"$dir/out" 2>&1 || code=$?
    exec 9>&-
    wait $listener
    [ $code -eq 0 ] && prints "" &&
        "$HEKLA" __complete hekla logs --kubeconfig /no/such/file "" >"$dir/out" 2>&1 && prints ""
'
step 'options without effect are listed once, by name' '
    "$HEKLA" help scheduler | sed -n "/^ *Accepted for compatibility, no effect:/,/^$/p" >"$dir/out" &&
        says --schedule-period --resync-period --logtostderr --one-output &&
        has hekla-scheduler "Accepted for compatibility, no effect:" && has hekla-agent "--vmodule" &&
        "$HEKLA" help controller-manager >"$dir/out" && says --worker-threads, && silent "As above"
'
step 'choices and defaults are named' '
    "$HEKLA" help jobs >"$dir/out" && says "-o, --output table|wide|json|yaml|name" "Default: table." &&
        "$HEKLA" help scheduler >"$dir/out" && says "--scheduler-sharding-mode none|hard|soft" &&
        has hekla-status "text|json|yaml" && has hekla-scheduler "second choice. Default: none." &&
        has hekla-scheduler "Default: 15s." && has hekla-scheduler "Default: :11251." && has hekla-scheduler "Default: 2000."
'
for shell in zsh fish; do
    if command -v $shell >/dev/null; then
        step "$shell can read its script" "$shell -n \"$dir/$shell\""
    else
        step "$shell can read its script # skip no $shell" true
    fi
done
finish
