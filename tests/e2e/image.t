#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The container image: the same bytes twice, digests that hold, and programs that work with nothing
# around them but what is inside.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
if [ "$(id -u)" -eq 0 ]; then
    apart='unshare -m' as='--userspec=65532:65532'
else
    apart='unshare -rm' as=
fi
$apart chroot / true 2>/dev/null || skip_all 'neither root nor user namespaces'
chmod 755 "$dir"
sched=
root=$dir/root
mkdir "$root"

# inside ARG...: the command as in a container: with that root, its user, /proc and no environment.
# The mount is seen by the command alone.
inside() {
    # shellcheck disable=SC2016,SC2086 # the inner shell's; words
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin $apart sh -c \
        'mount --rbind /proc "$0/proc" && exec chroot '"$as"' "$0" "$@"' "$root" "$@"
}

# run TEXT ARG...: the command inside the image prints the text, to whichever stream.
run() {
    text=$1
    shift
    (inside "$@") >"$dir/out" 2>&1
    grep -qF -- "$text" "$dir/out" && return 0
    echo "expected: $text"
    cat "$dir/out"
    return 1
}

step 'an image is built without an engine' '
    scripts/image "$HEKLA" "$dir/image.tar"
'

step 'the same build gives the same image' '
    scripts/image "$HEKLA" "$dir/again.tar" && cmp "$dir/image.tar" "$dir/again.tar"
'

step 'the image contains four tags with their entry points and users' '
    scripts/image --unpack "$dir/image.tar" "$root" >"$dir/out"
    version=$("$HEKLA" version | cut -d " " -f 2)
    says "hekla:$version /hekla 65532:65532" "vc-scheduler:$version /vc-scheduler 65532:65532" \
        "vc-controller-manager:$version /vc-controller-manager 65532:65532" \
        "vc-webhook-manager:$version /vc-webhook-manager 65532:65532"
'

step 'a changed byte is noticed' '
    python3 - "$dir/image.tar" "$dir/bad.tar" <<EOF
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 1
open(sys.argv[2], "wb").write(data)
EOF
    mkdir "$dir/bad" && ! scripts/image --unpack "$dir/bad.tar" "$dir/bad"
'

step 'no process in the image can gain privileges' '
    [ -z "$(find "$root" -perm /6000)" ] &&
        [ -z "$(find "$root" -type f -perm /0022)" ] && [ ! -e "$root/bin/sh" ]
'

step 'the program runs with its own libraries' '
    run "hekla " /hekla version && run "hekla scheduler" /hekla scheduler --help
'

step 'Volcanos program names run the same program' '
    run "hekla scheduler" /vc-scheduler --help &&
        run "hekla controller-manager" /vc-controller-manager --help &&
        run "hekla webhook-manager" /usr/bin/vc-webhook-manager --help &&
        run "API Version" /usr/bin/vcctl version
'

step 'time zones and authorities are there' '
    [ -s "$root/usr/share/zoneinfo/Europe/Berlin" ] &&
        [ -s "$root/etc/ssl/certs/ca-certificates.crt" ] && grep -q 65532 "$root/etc/passwd"
'

start
cp "$data/kubeconfig" "$root/tmp/kubeconfig"
chmod 644 "$root/tmp/kubeconfig"
inside /vc-scheduler --kubeconfig /tmp/kubeconfig --leader-elect=true \
    --leader-elect-resource-namespace default --enable-healthz --healthz-address 127.0.0.1:0 \
    >"$dir/sched.out" 2>"$dir/sched.err" &
sched=$!

step 'the scheduler of the image works over TLS' '
    within 30 grep -q "msg=\"working\"" "$dir/sched.err" || { cat "$dir/sched.err"; exit 1; }
'

halt sched TERM
step 'the scheduler of the image ends on SIGTERM' '
    cat "$dir/sched.err"
    [ "$status" -eq 0 ]
'

stop TERM
content
echo "1..$count"
[ "$failed" -eq 0 ]
