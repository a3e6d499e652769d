#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with this machine as its node, and pods that look for the server's keys, tokens and the
# files of other pods: by its path, through volumes, mounts, links, other processes and commands
# beside the container. Once as root and once as a user without privileges.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
needs_root && needs_mounts && needs setpriv
agent=

end_others() {
    [ -z "$agent" ] || kill -KILL "$agent" 2>/dev/null
    stop KILL
    umount "$dir/other" 2>/dev/null
}

verb=up

# pod NAME VOLUMES MOUNTS SCRIPT [INIT]: runs the script in a shell; volumes and mounts are items of
# lists.
pod() {
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  schedulerName: volcano
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [{name: room, emptyDir: {}}${2:+, $2}]
  ${5:+initContainers: [{name: first, image: none, command: [sh, -c, "$5"], volumeMounts: [{name: room, mountPath: /room\}]\}]}
  containers:
  - name: main
    image: none
    command: [sh, -c, '$4']
    volumeMounts: [{name: room, mountPath: /room}${3:+, $3}]
YAML
}

# is TYPE/NAME PATH VALUE
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ]
}

# found_nothing POD: it looked everywhere and found nothing.
found_nothing() {
    within 30 is "pod/$1" .status.phase Succeeded && k logs "$1" && cat "$dir/out" &&
        [ "$(cat "$dir/out")" = "looked" ]
}

# waits POD TEXT: the container is not started, and says why.
waits() {
    kubectl get pod "$1" -o "jsonpath={.status.containerStatuses[0].state.waiting}" | grep -F -- "$2"
}

# The files an attacker wants. Found ones are named.
look='look() { for f in tokens.csv ca.key sa.key store.db kubeconfig node/pods; do [ -e "$1/$f" ] && echo "found $1/$f"; done; }'

# attack: the points for one kind of server.
attack() {
step 'the test finds the files of the server from outside' '
    sh -c "$look; look $data" | grep -c found | grep -qx 6
'
step 'no container can read the servers files' '
    records=$(dirname "$(realpath "$data/node/run")") &&
    pod direct "" "" "$look; look $data; umount -l $data 2>/dev/null; look $data;
        mkdir -p /room/m; mount --rbind / /room/m 2>/dev/null; look /room/m$data;
        unshare -Urm sh -c \"umount -l $data; mount --rbind / /room/m; ls /room/m$data $data\" 2>/dev/null | grep tokens;
        unshare -m umount $data 2>/dev/null; look $data;
        [ -z \"\$(ls -A $data)\" ] || echo listed;
        (: >$data/made) 2>/dev/null && echo written;
        ls -A $records 2>/dev/null | grep . && echo records;
        echo looked" | kubectl create -f - && found_nothing direct
'
step 'no container can read them through other processes or devices' '
    pid_of=$(pgrep -f "up --data-dir $data" | head -n 1) &&
    pod proc "{name: p, hostPath: {path: /proc}}" "{name: p, mountPath: /hostproc}" "$look;
        for r in /proc/[0-9]*/root /hostproc/$pid_of/root /hostproc/$pid_of/cwd /hostproc/1/root; do look \$r$data; done;
        for fd in /proc/[0-9]*/fd/* /hostproc/$pid_of/fd/*; do
            for up in . .. ../.. ../../.. ../../../.. ../../../../..; do look \$fd/\$up; done; done;
        d=\$(stat -c \"%Hd %Ld\" /room); mknod /room/disk b \$d 2>/dev/null && echo device;
        echo looked" | kubectl create -f - && found_nothing proc
'
step 'no container can read them through a hostPath of a parent directory' '
    pod above "{name: root, hostPath: {path: /}}, {name: up, hostPath: {path: $dir}}" \
        "{name: root, mountPath: /host}, {name: up, mountPath: /up}, {name: up, mountPath: /sub, subPath: deep}" \
        "$look; look /host$data; look /up/data; look /sub/data; (: >/host$data/made) 2>/dev/null && echo written;
        echo looked" | kubectl create -f - && found_nothing above
'
step 'a hostPath into the directory is refused, also through a link, and nothing is created there' '
    pod into "{name: x, hostPath: {path: $data}}" "{name: x, mountPath: /x}" "ls /x" | kubectl create -f - &&
    pod link "{name: x, hostPath: {path: $dir/link/node}}" "{name: x, mountPath: /x}" "ls /x" | kubectl create -f - &&
    pod file "{name: x, hostPath: {path: $data/tokens.csv, type: File}}" "{name: x, mountPath: /x}" "cat /x" | kubectl create -f - &&
    pod made "{name: x, hostPath: {path: $data/a/b, type: DirectoryOrCreate}}" "{name: x, mountPath: /x}" "ls /x" | kubectl create -f - &&
    for p in into link file made; do
        within 20 waits $p "is in the data directory of the server" || exit 1
    done
    [ ! -e "$data/a" ] && kubectl delete pod into link file made --wait=false
'
step 'a link in a volume does not lead there, not even as a subPath' '
    pod links "" "" "ln -s $data /room/l; $look; look /room/l; echo looked" | kubectl create -f - && found_nothing links &&
    pod linked "" "{name: room, mountPath: /s, subPath: l}" "ls /s" "ln -s $data /room/l" | kubectl create -f - &&
    pod nested "" "{name: room, mountPath: /s, subPath: l/new/deeper}" "ls /s" "ln -s $dir/open /room/l" | kubectl create -f - &&
    within 20 waits linked "leaves the volume" && within 20 waits nested "leaves the volume" &&
    [ ! -e "$dir/open/new" ] && kubectl delete pod linked nested --wait=false
'
step 'a pod sees its own volumes and none of another pod' '
    pod other "" "" "echo secret >/room/s; sleep 600" | kubectl create -f - &&
    within 20 is pod/other .status.phase Running &&
    uid=$(kubectl get pod other -o "jsonpath={.metadata.uid}") && within 20 test -e "$data/node/pods/$uid/.volumes/room/s" &&
    pod own "{name: c, configMap: {name: kube-root-ca.crt}}" "{name: c, mountPath: /c}, {name: c, mountPath: /one, subPath: ca.crt}, {name: room, mountPath: /part, subPath: a/b}" \
        "cat $data/node/pods/$uid/.volumes/room/s 2>/dev/null; echo x >/room/a/b/y; cat /part/y; cmp /c/ca.crt /one && echo looked" | kubectl create -f - &&
    within 20 is pod/own .status.phase Succeeded && k logs own && [ "$(xargs <"$dir/out")" = "x looked" ]
'
step 'exec and cp see no more than the container' '
    kubectl exec other -- sh -c "$look; look $data; umount $data 2>/dev/null; look $data; echo looked" >"$dir/out" &&
    cat "$dir/out" && [ "$(cat "$dir/out")" = looked ] || exit 1
    kubectl cp "other:$data/tokens.csv" "$dir/stolen"
    [ ! -s "$dir/stolen" ] && kubectl delete pod other --wait=false
'
step 'shared memory and IPC objects are the pods own, and its containers share them' '
    : >"/dev/shm/of-the-machine-$$" && queue=$(ipcmk -Q | sed "s/.*: //") || exit 1
    pod shm "" "" "ls -A /dev/shm; ipcs -q | grep -c \"^0x\"; echo a >/dev/shm/x-$$; cat /dev/shm/x-$$;
        [ \$(df --output=size /dev/shm | tail -n 1) -gt 65536 ] && echo large" | kubectl create -f - &&
        within 20 is pod/shm .status.phase Succeeded && k logs shm
    rm -f "/dev/shm/of-the-machine-$$"; ipcrm -q "$queue"
    [ "$(xargs <"$dir/out")" = "0 a large" ] || { cat "$dir/out"; exit 1; }
    [ ! -e /dev/shm/x-$$ ] && kubectl create -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  schedulerName: volcano
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - {name: one, image: none, command: [sh, -c, "echo here >/dev/shm/x-$$; ipcmk -Q; sleep 600"]}
  - {name: two, image: none, command: [sh, -c, "until [ -e /dev/shm/x-$$ ]; do sleep 0.05; done; cat /dev/shm/x-$$; readlink /proc/self/ns/ipc; sleep 600"]}
YAML
    within 20 is pod/two .status.phase Running && shown() { kubectl logs two -c two | grep -q ipc: && kubectl logs two -c two | grep -q here; } &&
        within 20 shown && first=$(kubectl exec two -c one -- readlink /proc/self/ns/ipc) &&
        [ "$first" != "$(readlink /proc/self/ns/ipc)" ] &&
        if [ "$label" = root ]; then kubectl logs two -c two | grep -qF "$first"; fi
'
step 'hostIPC shares the IPC of the machine' '
    : >"/dev/shm/of-the-machine-$$"
    pod host "" "" "ls -A /dev/shm; readlink /proc/self/ns/ipc" |
        sed "s/^spec:/spec:\n  hostIPC: true/" | kubectl create -f - &&
        within 20 is pod/host .status.phase Succeeded && k logs host
    rm -f "/dev/shm/of-the-machine-$$"
    says "of-the-machine-$$" "$(readlink /proc/self/ns/ipc)"
'
step 'a removed pod leaves no shared memory behind' '
    kubectl delete pod two --wait=false &&
        within 20 sh -c "[ -z \"\$(ls -A /dev/shm/hekla-$1/*.shm 2>/dev/null)\" ]"
'
}

dir=$top/root label=root
mkdir -p "$dir/deep" "$dir/open" "$dir/other" && ln -s data "$dir/link"
start
attack 0
step 'the directory is covered at every mount point' '
    mount --bind "$dir" "$dir/other" && ls "$dir/other/data/tokens.csv" &&
    pod twice "" "" "$look; look $dir/other/data; look $data; echo looked" | kubectl create -f - && found_nothing twice
'
umount "$dir/other" 2>/dev/null
step 'a privileged container has all capabilities of the server' '
    pod trusted "" "" "grep CapEff /proc/self/status" | sed "s/    image: none/    image: none\n    securityContext: {privileged: true}/" |
        kubectl create -f - && within 20 is pod/trusted .status.phase Succeeded && k logs trusted &&
        [ "$(xargs <"$dir/out")" = "$(grep CapEff /proc/self/status | xargs)" ]
'
cp "$data/kubeconfig" "$dir/credentials" && chmod 600 "$dir/credentials"
"$HEKLA" agent --kubeconfig "$dir/credentials" --data-dir "$dir/agent" --listen 127.0.0.1:0 --node other --client-ca-file "$data/ca.crt" >"$dir/agent.out" 2>"$dir/agent.err" &
agent=$!
step 'an agent covers its directory and credentials, too' '
    within 20 is node/other ".status.conditions[?(@.type==\"Ready\")].status" True &&
        pod remote "{name: up, hostPath: {path: $dir}}" "{name: up, mountPath: /up}" "for f in $dir/credentials /up/credentials; do [ -e \$f ] || echo missing; grep server \$f; done 2>/dev/null;
            ls -A $dir/agent; echo looked" | sed "s/^spec:/spec:\n  nodeName: other/" | kubectl create -f - && found_nothing remote &&
        pod asks "{name: x, hostPath: {path: $dir/credentials}}" "{name: x, mountPath: /x}" "cat /x" | sed "s/^spec:/spec:\n  nodeName: other/" | kubectl create -f - &&
        within 20 waits asks "is in the data directory of the server" && kubectl delete pod asks --wait=false
'
kill "$agent" 2>/dev/null
wait "$agent" 2>/dev/null
stop TERM
content

dir=$top/user label=user
mkdir -p "$dir/deep" "$dir/open" "$dir/bin" && cp "$HEKLA" "$dir/bin/hekla" && ln -s data "$dir/link" || exit 1
cat >"$dir/bin/as-user" <<SH
#!/bin/sh
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/bin/hekla" "\$@"
SH
chmod 755 "$top" "$dir/bin/as-user" && chown -R 65534:65534 "$dir" && HEKLA=$dir/bin/as-user
if setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm true 2>/dev/null; then
    unset XDG_RUNTIME_DIR
    real_home=$dir
    start
    attack 65534
    stop TERM
    content
else
    count=$((count + 1))
    echo "ok $count - # skip user namespaces are not permitted"
fi

dir=$top/plain label=plain HEKLA=$top/user/bin/hekla options=--no-isolation
mkdir "$dir"
start
step 'without namespaces, the pod reports that the directory is not covered' '
    pod bare "" "" true | sed "/volumes\|volumeMounts/d; s/    image: none/    image: none\n    resources: {limits: {memory: 64Mi}}/" |
        kubectl create -f - && within 20 is pod/bare .status.phase Succeeded &&
        kubectl get pod bare -o "jsonpath={.status.message}" | grep "containers can read the data directory of the server"
'
stop TERM

finish
