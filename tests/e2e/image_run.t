#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up runs containers in the images of its store: as root, as an ordinary user, and where the
# kernel permits no overlay.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3
[ -x "${BUSYBOX:=/bin/busybox}" ] || skip_all 'no static busybox'
unshare -Urm true 2>/dev/null || skip_all 'user namespaces are not permitted'
export BUSYBOX
verb=up
program=$HEKLA
overlay=

end_others() {
    [ -z "$overlay" ] || umount -l "$overlay"
}

# pod NAME SPEC [LINE...]: SPEC is the rest of the container in one line; the lines go into the spec.
pod() {
    name=$1 spec=$2
    shift 2
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $name}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  volumes: [{name: room, emptyDir: {}}]
$(for line in "$@"; do echo "  $line"; done)
  containers: [{name: main, $spec}]
YAML
}

# is TYPE/NAME PATH VALUE
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ]
}

# ran POD: it has succeeded; its log is in $dir/out.
ran() {
    within 20 is "pod/$1" .status.phase Succeeded && k logs "$1"
}

# waits POD TEXT...: the container waits, and says why.
waits() {
    name=$1
    shift
    kubectl get pod "$name" -o "jsonpath={.status.containerStatuses[0].state.waiting}" >"$dir/out"
    says "$@"
}

# described POD TEXT
described() {
    kubectl describe pod "$1" | tr -s ' ' | grep -F -- "$2"
}

# image ARG...: runs the verb as the user of the server.
image() {
    "$HEKLA" image "$@" --data-dir "$dir/data" >"$dir/out" 2>"$dir/err" && return 0
    cat "$dir/err"
    return 1
}

# begin: makes the images, and starts a server that has them.
begin() {
    python3 tests/e2e/images.py docker "$dir/app.tar" app && python3 tests/e2e/images.py plain "$dir/plain.tar" plain &&
        python3 tests/e2e/images.py dir "$dir/oci" && chmod -R a+rX "$dir"/*.tar "$dir/oci" &&
        image import "$dir/app.tar" "$dir/plain.tar" && image import --name oci:1 "$dir/oci"
    start
}

# steps: what works for every user.
steps() {
    step 'the image decides: entrypoint, arguments, directory, user, environment' '
        pod all "image: \"app:1.0\"" | kubectl create -f - && ran all &&
            prints "entry one two in /srv/work as 1000:1000 with hello"
    '
    step 'args replace cmd, command replaces both, env and workingDir win' '
        pod args "image: \"app:1.0\", args: [x], workingDir: /tmp, env: [{name: WHO, value: me}, {name: GREETING, value: \"\$(WHO) there\"}]" |
            kubectl create -f - && ran args && prints "entry x in /tmp as 1000:1000 with me there" &&
            pod command "image: \"app:1.0\", command: [sh, -c, \"pwd; echo \$HOME \$PATH \$HOSTNAME; cat /etc/release\"]" |
            kubectl create -f - && ran command && says /srv/work "/home/app /srv:/bin command" top
    '
    step 'the status has the digest of the image' '
        [ "$(kubectl get pod all -o "jsonpath={.status.containerStatuses[0].imageID}")" = \
            "$("$HEKLA" image list -o json --data-dir "$data" | sed -n "/app:1.0/,/id/s/.*\"id\": \"\(.*\)\",/\1/p")" ] &&
            pod oci "image: \"oci:1\"" | kubectl create -f - && ran oci &&
            field pod/oci .status.containerStatuses[0].imageID "docker.io/library/oci@$("$HEKLA" image list -o json \
                --data-dir "$data" | sed -n "s/.*\"digest\": \"\(.*\)\",/\1/p")" &&
            within 20 described oci "Container image \"oci:1\" already present on machine"
    '
    step 'runAsUser wins, by the passwd file of the image' '
        pod user "image: \"plain:1.0\", command: [sh, -c, \"id -u; id -g; echo \$HOME; touch /tmp/x; stat -c %u /tmp/x\"], securityContext: {runAsUser: 1000}" |
            kubectl create -f - && ran user && [ "$(xargs <"$dir/out")" = "1000 1000 /home/app 1000" ]
    '
    step 'runAsNonRoot refuses an image of root, and one whose user has only a name' '
        pod root "image: \"plain:1.0\", command: [\"true\"], securityContext: {runAsNonRoot: true}" | kubectl create -f - &&
            within 20 waits root "container has runAsNonRoot and image will run as root" &&
            pod named "image: \"app:1.0\", securityContext: {runAsNonRoot: true}" | kubectl create -f - &&
            within 20 waits named "image has non-numeric user (app), cannot verify user is non-root"
    '
    step 'the system is there: proc, sys, devices, hosts, resolv.conf, the host name' '
        pod system "image: \"plain:1.0\", command: [sh, -c, \"cat /etc/hosts /etc/resolv.conf /etc/hostname; hostname; ls /proc/1/ns /sys/kernel >/dev/null && echo kernel; echo x >/dev/null && wc -c </etc/hostname; ls /dev; test -e /dev/sda || test -e /dev/vda || echo no disks; echo 1 2>/dev/null >/proc/sys/kernel/sysrq || echo protected\"]" |
            kubectl create -f - && ran system &&
            says localhost nameserver system kernel urandom ptmx "no disks" protected
    '
    step 'the machine is not there, nor the data of the server' '
        pod alone "image: \"plain:1.0\", command: [sh, -c, \"ls / >/tmp/list; cat /tmp/list; ls $data $dir 2>&1 || true\"]" |
            kubectl create -f - && ran alone && says "No such file" && silent var && silent tokens
    '
    step 'volumes are mounted inside, also where the image has no directory' '
        pod volumes "image: \"plain:1.0\", command: [sh, -c, \"echo 1 >/new/deep/dir/f; echo 2 >/opt/old/f; ls /new/deep/dir /opt/old; cat /etc/one/key\"], volumeMounts: [{name: room, mountPath: /new/deep/dir}, {name: room, mountPath: /opt/old}, {name: map, mountPath: /etc/one}]" |
            sed "s/volumes: \[/volumes: [{name: map, configMap: {name: map}}, /" >"$dir/pod" &&
            kubectl create configmap map --from-literal=key=value && kubectl create -f "$dir/pod" && ran volumes &&
            [ "$(xargs <"$dir/out")" = "/new/deep/dir: f /opt/old: f value" ]
    '
    step 'what a container changes is seen by it alone, and gone after a restart' '
        pod changes "image: \"plain:1.0\", command: [sh, -c, \"cat /etc/release; test ! -e /etc/mine && echo fresh; echo x >/etc/release; echo >/etc/mine; rm /bin/wc; cat /etc/release; test -e /room/again || { touch /room/again; false; }\"], volumeMounts: [{name: room, mountPath: /room}]" |
            sed "s/restartPolicy: Never/restartPolicy: OnFailure/" | kubectl create -f - && ran changes &&
            [ "$(xargs <"$dir/out")" = "top fresh x" ] && field pod/changes .status.containerStatuses[0].restartCount 1 &&
            pod after "image: \"plain:1.0\", command: [sh, -c, \"cat /etc/release; echo a | wc -c\"]" | kubectl create -f - &&
            ran after && [ "$(xargs <"$dir/out")" = "top 2" ]
    '
    step 'a read-only root is read-only, its volumes are not' '
        pod fixed "image: \"plain:1.0\", command: [sh, -c, \"echo x >/room/x && ! touch /etc/x && ! touch /x && echo good\"], volumeMounts: [{name: room, mountPath: /room}], securityContext: {readOnlyRootFilesystem: true}" |
            kubectl create -f - && ran fixed && says good
    '
    step 'exec, probes and cp work inside' '
        pod long "image: \"app:1.0\", command: [sleep, \"1000\"], readinessProbe: {exec: {command: [grep, top, /etc/release]}, periodSeconds: 1}" |
            kubectl create -f - && within 20 is pod/long .status.containerStatuses[0].ready true &&
            k exec long -- sh -c "id -u; pwd; echo \$GREETING; cat /etc/release" &&
            [ "$(xargs <"$dir/out")" = "1000 /srv/work hello top" ] &&
            echo copied >"$dir/one" && k cp "$dir/one" long:/tmp/one && k exec long -- cat /tmp/one && prints copied &&
            "$program" cp long:/etc/release "$dir/back" && grep -qx top "$dir/back"
    '
    step 'containers of a pod start side by side, each in a root of its own, with a terminal or another user' '
        kubectl create -f - <<YAML &&
apiVersion: v1
kind: Pod
metadata: {name: many}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers: [{name: first, image: "plain:1.0", command: [sh, -c, "echo x >/tmp/x"]}]
  containers:
  - {name: terminal, image: "plain:1.0", stdin: true, tty: true}
  - {name: other, image: "plain:1.0", command: [sh, -c, "test -e /tmp/x || echo separate; id -u; id -g; sleep 1000"], securityContext: {runAsUser: 77, runAsGroup: 88}}
  - {name: more, image: "plain:1.0", command: [sh, -c, "hostname; sleep 1000"]}
  - {name: plain, image: none, command: [sh, -c, "test -d /usr/share && echo machine; sleep 1000"]}
YAML
            within 20 is pod/many ".status.containerStatuses[*].ready" "true true true true" &&
            within 20 k logs many -c other && [ "$(xargs <"$dir/out")" = "separate 77 88" ] && k logs many -c more && prints many &&
            k logs many -c plain && prints machine && kubectl delete pod many --grace-period=1
    '
    step 'an image in use stays' '
        ! image remove app:1.0 && grep -F "is used by a container: delete its pod first" "$dir/err" &&
            image prune --all && k exec long -- cat /etc/release && prints top
    '
    step 'the node lists the images of the store' '
        within 30 is node ".items[0].status.images[?(@.names[0]==\"docker.io/library/app:1.0\")].names[0]" \
            docker.io/library/app:1.0
    '
    before=$(kubectl get pod long -o "jsonpath={.status.containerStatuses[0]}")
    again # not in a step: those run in a subshell, which cannot set pid
    step 'a restart of the server keeps containers and their images' '
        within 20 k exec long -- cat /etc/release && prints top &&
            [ "$(kubectl get pod long -o "jsonpath={.status.containerStatuses[0]}")" = "$before" ]
    '
    step 'a missing image without a command says what to do, and starts when that is done' '
        pod late "image: \"late:1.0\"" | kubectl create -f - &&
            within 20 waits late ErrImageNeverPull "is not present with pull policy of Never" "hekla image import FILE" &&
            within 20 described late "Error: ErrImageNeverPull" && image import --name late:1.0 "$dir/oci" &&
            ran late && says "entry one two"
    '
    step 'a missing image with a command runs on the machine, as without images' '
        pod machine "image: \"missing:1.0\", command: [sh, -c, \"test -e $HEKLA && echo machine\"]" |
            kubectl create -f - && ran machine && prints machine && within 20 described machine ImageIgnored
    '
    [ "$label" = copies ] ||
        step 'what a container writes into its image counts as its ephemeral storage' '
            pod big "image: \"plain:1.0\", command: [sh, -c, \"cat /bin/busybox /bin/busybox /bin/busybox >/tmp/x; sleep 1000\"], resources: {limits: {ephemeral-storage: 3Mi}}" |
                kubectl create -f - && within 30 is pod/big .status.reason Evicted &&
                within 20 described big "Pod ephemeral local storage usage exceeds the total limit of containers 3Mi"
        '
    step 'a user that the image does not know is reported' '
        python3 -c "
import sys; sys.path.insert(0, \"tests/e2e\")
import images
layers = [images.base()]
images.docker(layers, images.config(layers, User=\"stranger\"), \"odd\").write(sys.argv[1])" "$dir/odd.tar" &&
            chmod a+r "$dir/odd.tar" && image import "$dir/odd.tar" && pod odd "image: \"odd:1.0\"" | kubectl create -f - &&
            within 20 waits odd "unable to find user stranger"
    '
    step 'nothing is left of pods that go, and their images can go' '
        kubectl delete pod --all --grace-period=1 --timeout=60s && within 20 test -z "$(ls "$data/node/pods")" &&
            image prune --all && says "5 images" && [ -z "$(ls "$data/images/roots")" ]
    '
}

# again: starts the server once more in its directory, on the same address.
again() {
    stop TERM
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    # shellcheck disable=SC2086 # options must be split into words
    HOME=$real_home "$HEKLA" up --data-dir "$data" --listen "${url#*://}" $options >"$dir/ready" 2>"$dir/server" &
    pid=$!
    timeout 30 head -n 1 "$dir/ready" >/dev/null
}

# leave: ends the server and its pods.
leave() {
    kubectl delete pod --all --grace-period=1 >/dev/null 2>&1
    stop TERM
}

# as_nobody: from here on the server and its images belong to an ordinary user.
as_nobody() {
    dir=$top/nobody label=nobody
    mkdir "$dir" && chmod 711 "$top" && chown 65534 "$dir" && chmod 777 "$dir"
    HEKLA=$dir/hekla
    printf '#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=%s %s "$@"\n' "$dir" "$program" >"$HEKLA"
    chmod 755 "$HEKLA"
}

begin
steps
leave
if [ "$(id -u)" -eq 0 ]; then
    label=copies dir=$top/copies
    mkdir "$dir" "$top/lower" "$top/upper" "$top/work"
    if mount -t overlay overlay -o "lowerdir=$top/lower,upperdir=$top/upper,workdir=$top/work" "$dir" 2>/dev/null; then
        overlay=$dir
        begin
        step 'an overlay cannot be on an overlay: the root is a copy' '
            pod copy "image: \"plain:1.0\", command: [sleep, \"1000\"]" | kubectl create -f - &&
                within 20 k exec copy -- grep " / " /proc/mounts && silent "hekla / overlay" &&
                [ "$(stat -c %h "$data"/node/pods/*/.roots/main.0/root/bin/sh)" -gt 10 ]
        '
        steps
        leave
    fi
    as_nobody
    if "$HEKLA" version >/dev/null 2>&1; then
        begin
        step 'another user, root included, does not write into the store' '
            ! "$program" image import --data-dir "$data" "$dir/app.tar" 2>"$dir/err" &&
                grep -F "belongs to another user, who has to run this command" "$dir/err"
        '
        steps
        leave
    fi
fi
finish
