#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla image: archives of several kinds come into the store as they should be, hostile ones do not
# get out of it, and images are listed and removed. No server runs.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs python3
[ -x "${BUSYBOX:=/bin/busybox}" ] || skip_all 'no static busybox'
export BUSYBOX
store=$dir/data

# makes KIND FILE [NAME]
makes() {
    python3 tests/e2e/images.py "$@"
}

# image ARG...: runs the verb; its output goes to $dir/out and $dir/err.
image() {
    "$HEKLA" image "$@" --data-dir "$store" >"$dir/out" 2>"$dir/err" && return 0
    cat "$dir/err"
    return 1
}

# refuses TEXT ARG...: the verb fails with one line that has the text.
refuses() {
    text=$1
    shift
    image "$@" && { echo "expected to fail: image $*"; return 1; }
    [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -qF -- "$text" "$dir/err" && return 0
    echo "expected: $text"
    return 1
}

# root_of NAME: prints the root file system of the image.
root_of() {
    root=$(cat "$store"/images/names/* | sed -n "s|^{\"name\":\"$1\".*\"root\":\"\([0-9a-f]*\)\".*|\1|p")
    echo "$store/images/roots/$root/tree"
}

# has_files NAME: the root is that of the test images: whiteouts have taken effect.
has_files() {
    root=$(root_of "$1")
    cat "$root/etc/release" "$root/opt/old/new" "$root/usr/lib/through-link" | xargs >"$dir/files"
    grep -qx 'top visible below usr/lib' "$dir/files" && [ -x "$root/bin/busybox" ] &&
        [ "$root/bin/sh" -ef "$root/bin/busybox" ] && [ ! -e "$root/etc/removed" ] &&
        [ ! -e "$root/gone" ] && [ ! -e "$root/opt/old/a" ] && [ -L "$root/lib" ] && return 0
    cat "$dir/files"
    ls -laR "$root"
    return 1
}

# is_clean: nothing temporary is left.
is_clean() {
    [ -z "$(ls -A "$store/images/tmp")" ]
}

step 'an archive of docker save is imported under its name' '
    makes docker "$dir/a" app && image import "$dir/a" && says "docker.io/library/app:1.0 sha256:" &&
        has_files docker.io/library/app:1.0 && is_clean
'
step 'so is one that is OCI as well, from standard input' '
    makes hybrid "$dir/a" hybrid && image import - <"$dir/a" && has_files docker.io/library/hybrid:1.0
'
step 'an OCI archive without a name needs --name' '
    makes oci "$dir/a" && refuses "does not name its image: give --name" import "$dir/a" &&
        image import --name example.org:5000/team/oci "$dir/a" &&
        says "example.org:5000/team/oci:latest" && has_files example.org:5000/team/oci:latest
'
if command -v zstd >/dev/null; then
    step 'layers compressed by zstd are read' '
        store=$dir/zstd && mkdir "$store" && makes zstd "$dir/a" && image import --name zstd "$dir/a" &&
            has_files docker.io/library/zstd:latest
    '
fi
step 'of an image for several platforms, that for this machine is taken' '
    store=$dir/multi && mkdir "$store" && makes multi "$dir/a" && image import --name multi "$dir/a" &&
        has_files docker.io/library/multi:latest
'
step 'an OCI directory is read in place' '
    makes dir "$dir/oci" && image import --name dir:2 "$dir/oci" && has_files docker.io/library/dir:2
'
step 'an image for another platform is refused' '
    makes foreign "$dir/a" foreign && refuses "this machine runs linux/" import "$dir/a" && is_clean
'
step 'list shows names, digests and sizes' '
    image list && says "docker.io/library/app:1.0" "example.org:5000/team/oci:latest" && image list -o json &&
        python3 -c "
import json, sys
items = {i[\"name\"]: i for i in json.load(open(sys.argv[1]))[\"items\"]}
assert items[\"docker.io/library/dir:2\"][\"digest\"].startswith(\"sha256:\"), items
assert items[\"docker.io/library/app:1.0\"][\"layers\"] == 2 and \"digest\" not in items[\"docker.io/library/app:1.0\"]
" "$dir/out"
'
step 'equal layers are stored once' '
    [ "$(ls "$store/images/layers" | wc -l)" -eq 2 ] && [ "$(ls "$store/images/roots" | wc -l)" -eq 1 ]
'
step 'imports at the same time do not disturb each other' '
    store=$dir/many && mkdir "$store" && makes docker "$dir/a" app && pids= &&
        for n in 1 2 3 4; do
            "$HEKLA" image import --data-dir "$store" --name "many:$n" "$dir/a" >"$dir/out$n" 2>&1 & pids="$pids $!"
        done && for pid in $pids; do wait "$pid" || { cat "$dir"/out?; exit 1; }; done &&
        image list && says many:1 many:2 many:3 many:4 && has_files docker.io/library/many:3 && is_clean
'
step 'a killed import leaves nothing that is listed, and prune removes its files' '
    store=$dir/killed && mkdir -p "$store" && mkfifo "$dir/pipe" &&
        "$HEKLA" image import --data-dir "$store" --name killed - <"$dir/pipe" >"$dir/k" 2>&1 & victim=$!
    { head -c 300000 "$dir/a"; within 10 test -n "$(ls -A "$dir/killed/images/tmp" 2>/dev/null)"; kill -9 $victim; } >"$dir/pipe"
    wait $victim
    store=$dir/killed
    image list && silent killed && image prune && is_clean
'
step 'names that are not references are refused' '
    for name in Upper a//b "a b" :tag a@sha256:12 -a a..b "a:$(printf %0200d 0)"; do
        refuses "invalid reference format" import "--name=$name" "$dir/a" || exit 1
    done
'

store=$dir/hostile
mkdir "$store"
escapes=$dir/hostile/escaped

# hostile KIND TEXT
hostile() {
    makes "$1" "$dir/h" && refuses "$2" import --name "h-$1" --max-size 1Gi "$dir/h" && is_clean &&
        [ ! -e "$escapes" ] && [ -z "$(ls "$store/images/names")" ]
}
step 'paths with .. are refused' '
    hostile dotdot "has \"..\"" && hostile hard-outside "has \"..\""
'
step 'hard links must lead to files of the archive' '
    hostile hard-missing "not in the archive" && hostile hard-through-link "not in the archive"
'
step 'a file is no directory, a whiteout names something, and depth has an end' '
    hostile below-file "not a directory" && hostile whiteout-dots "names nothing" && hostile deep "too deep"
'
step 'damage is found: in a blob, in a layer, in the number of layers' '
    hostile bad-layer damaged && hostile bad-content damaged && hostile few-layers "numbers of layers differ"
'
step 'JSON that is nested too deep is refused' '
    hostile deep-json "levels deep"
'
step 'an image that is larger than permitted is refused' '
    hostile bomb "--max-size"
'
step 'links to elsewhere are followed inside of the image only' '
    makes links-out "$dir/h" && { image import --name links "$dir/h"; [ ! -e /etc/hekla-escaped ]; } &&
        [ ! -e /tmp/x/hekla-escaped ] && is_clean
'
step 'absolute paths are those of the image' '
    makes absolute "$dir/h" && image import --name absolute "$dir/h" &&
        root=$(root_of docker.io/library/absolute:latest) && [ -f "$root/abs/file" ] && [ -f "$root/abs/two" ]
'
step 'devices are left out, pipes and setuid programs are kept' '
    makes devices "$dir/h" && image import --name devices "$dir/h" && says "2 devices and sockets left out" &&
        root=$(root_of docker.io/library/devices:latest) && [ -p "$root/pipe" ] && [ ! -e "$root/dev/sda" ] &&
        makes setuid "$dir/h" && image import --name setuid "$dir/h" &&
        [ -u "$(root_of docker.io/library/setuid:latest)/su" ]
'
step 'names of any bytes are kept' '
    makes names "$dir/h" && image import --name names "$dir/h" &&
        root=$(root_of docker.io/library/names:latest) && [ -f "$root/grüße" ] && [ -f "$root/ " ] &&
        [ "$(find "$root" -type f | tr "\n" x | grep -o "a.b" | wc -l)" -ge 1 ]
'
step 'attributes that steer an overlay are dropped, and so are marks of the importer' '
    makes attributes "$dir/h" && image import --name attributes "$dir/h" && makes markers "$dir/h" &&
        image import --name markers "$dir/h" && [ -z "$(find "$store/images/roots" -name ".wh.*")" ] &&
        python3 -c "
import os, sys
names = os.listxattr(sys.argv[1])
assert not [n for n in names if \"overlay\" in n], names
" "$(root_of docker.io/library/attributes:latest)/a"
'
step 'closed directories do not stop import and removal' '
    makes modes "$dir/h" && image import --name modes "$dir/h" && image remove modes && image list && silent modes
'
step 'the store is closed to other users' '
    [ "$(stat -c %a "$store/images")" = 700 ]
'
step 'remove frees what no other image needs, and prune --all the rest' '
    store=$dir/data && image remove app:1.0 hybrid:1.0 && image list && silent app:1.0 &&
        has_files docker.io/library/dir:2 && refuses "there is no image" remove app:1.0 &&
        image prune --all && says "2 images, 2 layers" && [ -z "$(ls "$store/images/roots")" ] &&
        [ -z "$(ls "$store/images/blobs/sha256")" ]
'
step 'mistakes are explained' '
    refuses "COMMAND is one of import" nonsense && refuses "the FILE or directory is missing" import &&
        refuses "cannot open" import /no/such/file && refuses "takes no argument" list x &&
        echo nothing >"$dir/h" && refuses "cannot be unpacked" import --name x "$dir/h" &&
        mkdir "$dir/empty" && refuses "neither an OCI image nor" import --name x "$dir/empty"
'
finish
