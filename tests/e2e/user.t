#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up for somebody without privileges, in the directory nobody names: it works, says what is
# not enforced, and commands find it by themselves.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
[ "$(id -u)" -ne 0 ] || needs setpriv
home=$dir/home

end_others() {
    h down --pods >/dev/null 2>&1
    h down --pods --data-dir "$home/bare" >/dev/null 2>&1
}

# as_user COMMAND...: as a user who is not root, at home.
as_user() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd "$home" && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@")
    else
        (cd "$home" && exec "$@")
    fi
}

# h ARG...: hekla as that user.
h() {
    as_user timeout 60 "$dir/bin/hekla" "$@"
}

# k ARG...: kubectl as that user, at that server; what it prints is in $dir/out.
k() {
    as_user env KUBECONFIG="$state/kubeconfig" timeout 30 "$kubectl" "$@" >"$dir/out" 2>"$dir/err" && return 0
    cat "$dir/out" "$dir/err"
    return 1
}

# is TYPE/NAME PATH VALUE
is() {
    k get "$1" -o "jsonpath={$2}" && [ "$(cat "$dir/out")" = "$3" ]
}

# logged POD TEXT
logged() {
    k logs "$1" && grep -F -- "$2" "$dir/out"
}

# The program may be where others cannot go.
mkdir "$dir/bin" "$home" "$home/.kube" && cp "$HEKLA" "$dir/bin/hekla" && chmod 755 "$dir" "$dir/bin" || exit 1
cat >"$home/.kube/config" <<YAML
apiVersion: v1
kind: Config
current-context: far
clusters: [{name: far, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: far, context: {cluster: far, user: me}}]
users: [{name: me, user: {token: none}}]
YAML
if [ "$(id -u)" -eq 0 ]; then
    chown -R 65534:65534 "$home"
fi
unset KUBECONFIG XDG_STATE_HOME
HOME=$home
export HOME
state=$home/.local/state/hekla

step 'without a server of ours, commands go where ~/.kube/config says' '
    h status >"$dir/out"
    [ $? -eq 3 ] && says "no server runs in '"'$state'"'" || exit 1
    h vcctl job list >"$dir/out" && exit 1
    says "127.0.0.1 port 1 "
'
step 'up uses the default directory, and creates its parents' '
    h up --detach --listen 127.0.0.1:0 >"$dir/out" && says "kubeconfig $state/kubeconfig" &&
        [ "$(stat -c %a "$state")" = 700 ]
'
step 'commands find the server in the default directory, unless given another' '
    h vcctl queue list >"$dir/out" && says "default 1 Open" && h status >"$dir/out" && says "is running" || exit 1
    KUBECONFIG=$home/.kube/config h vcctl queue list >"$dir/out" && exit 1
    says "127.0.0.1 port 1 " || exit 1
    h vcctl queue list -k "$home/.kube/config" >"$dir/out" && exit 1
    says "127.0.0.1 port 1 " || exit 1
    h vcctl queue list -s https://127.0.0.1:2 >"$dir/out" && exit 1
    says "127.0.0.1 port 2 "
'
cat >"$home/job.yaml" <<'YAML'
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mine}
spec:
  minAvailable: 2
  tasks:
  - name: w
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        volumes: [{name: room, emptyDir: {}}]
        containers:
        - name: main
          image: none
          command: [sh, -c, 'echo user $(id -u); while [ ! -e "$GO" ]; do sleep 0.1; done; echo done']
          env: [{name: GO, value: "GO_FILE"}]
          resources: {requests: {cpu: 10m}, limits: {cpu: 100m, memory: 256Mi}}
YAML
sed -i "s|GO_FILE|$home/go|" "$home/job.yaml"
user=$(as_user id -u)
step 'a job runs as the user, and its output is kept' '
    k create -f "$home/job.yaml" && within 20 logged mine-w-1 "user $user" &&
        within 20 is job.batch.volcano.sh/mine .status.running 2
'
step 'the status of the pod says what is not enforced' '
    [ "$(id -u)" -ne 0 ] || { within 20 k get pod mine-w-0 -o "jsonpath={.status.message}" && says "not enforced"; }
'
step 'the job continues after down and up, and completes' '
    h down >"$dir/out" && says "2 pods continue to run" && h up --detach --listen 127.0.0.1:0 &&
        within 20 is job.batch.volcano.sh/mine .status.running 2 && as_user touch "$home/go" &&
        within 20 is job.batch.volcano.sh/mine .status.state.phase Completed && logged mine-w-0 done
'
step 'down --pods ends the server and all processes' '
    h down --pods && quiet_log "$state/hekla.log" && [ -z "$(ls "$state/node/run")" ]
'
# bare COMMAND...: as a user for whom nobody may make namespaces.
bare() {
    as_user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces &&
        exec setpriv --bounding-set=-all --inh-caps=-all "$@"' sh "$@"
}

if bare true 2>"$dir/err"; then
    step 'the server works without namespaces, and says so' '
        bare "$dir/bin/hekla" up --detach --data-dir "$home/bare" --listen 127.0.0.1:0 && state=$home/bare &&
            sed "s/mine/bare/; /volumes:/d" "$home/job.yaml" | as_user tee "$home/bare.yaml" &&
            k create -f "$home/bare.yaml" && within 20 is job.batch.volcano.sh/bare .status.state.phase Completed &&
            logged bare-w-1 done && k get pod bare-w-0 -o "jsonpath={.status.message}" && says "no namespaces: " &&
            h down --data-dir "$home/bare" && quiet_log "$home/bare/hekla.log"
    '
else
    step 'the server works without namespaces, and says so # skip user namespaces are not permitted' true
fi
step 'XDG_STATE_HOME is used, and a directory that cannot be written to is reported in one line' '
    XDG_STATE_HOME=$home/other h up --detach --no-node --listen 127.0.0.1:0 >"$dir/out" &&
        says "kubeconfig $home/other/hekla/kubeconfig" && XDG_STATE_HOME=$home/other h down || exit 1
    h up --data-dir /proc/1/x 2>"$dir/out" && exit 1
    says "cannot create the directory" && [ "$(wc -l <"$dir/out")" -eq 1 ] || exit 1
    mkdir -m 755 "$dir/closed" && if [ "$(id -u)" -eq 0 ]; then
        h up --data-dir "$dir/closed" 2>"$dir/out" && exit 1
        says "cannot write to the directory" && [ "$(wc -l <"$dir/out")" -eq 1 ]
    fi
'
finish
