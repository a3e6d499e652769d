#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Backup, restore and check as operators use them.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
data=$dir/data

end_others() {
    "$HEKLA" down --pods --data-dir "$data" >/dev/null 2>&1
    "$HEKLA" down --pods --data-dir "$dir/other" >/dev/null 2>&1
}

KUBECONFIG=$data/kubeconfig HOME=$dir
export KUBECONFIG HOME

# up DIR [OPTION...]: in the background, on a free port.
up() {
    where=$1
    shift
    timeout 60 "$HEKLA" up --detach --data-dir "$where" --listen 127.0.0.1:0 "$@" >"$dir/out" 2>"$dir/err"
}

# value NAME: what the config map holds.
value() {
    kubectl get configmap "$1" -o 'jsonpath={.data.k}'
}

# revision NAME
revision() {
    kubectl get configmap "$1" -o 'jsonpath={.metadata.resourceVersion}'
}

# worker: the process of the pod.
worker() {
    pgrep -f "^sleep $mark\$"
}

no_worker() {
    ! worker
}

mark=$((86400000 + $$))
up "$data" || { echo "Bail out! no server: $(cat "$dir/err")"; exit 1; }
token=$(cut -d, -f1 "$data/tokens.csv")

step 'a running server is backed up into a file that only the owner can read' '
    kubectl create configmap first --from-literal=k=1 &&
    kubectl create secret generic hidden --from-literal=k=topsecret &&
    gives 0 backup --data-dir "$data" "$dir/full" && says "6 files of credentials" &&
    [ "$(stat -c %a "$dir/full")" = 600 ] && [ ! -e "$dir/full.part" ] &&
    grep -q "^object .* configmaps default first " "$dir/full" && tail -n 1 "$dir/full" | grep -q "^end "
'
step 'only administrators may request a backup' '
    kubectl create serviceaccount all &&
    kubectl create clusterrole all --verb="*" --resource="*.*" &&
    kubectl create clusterrole paths --verb=get --non-resource-url="/*" &&
    kubectl create clusterrolebinding all --clusterrole=all --serviceaccount=default:all &&
    kubectl create clusterrolebinding paths --clusterrole=paths --serviceaccount=default:all &&
    account=$(curl -sS --cacert "$data/ca.crt" -H "Authorization: Bearer $token" -X POST \
        -H "Content-Type: application/json" --data "{}" \
        "$(kubectl config view -o "jsonpath={.clusters[0].cluster.server}")/api/v1/namespaces/default/serviceaccounts/all/token" |
        python3 -c "import json, sys; print(json.load(sys.stdin)[\"status\"][\"token\"])") &&
    url=$(kubectl config view -o "jsonpath={.clusters[0].cluster.server}") &&
    [ "$(curl -sS --cacert "$data/ca.crt" -H "Authorization: Bearer $account" -o "$dir/out" -w "%{http_code}" "$url/backup")" = 403 ] &&
    says "system:masters" &&
    [ "$(curl -sS --cacert "$data/ca.crt" -o "$dir/out" -w "%{http_code}" "$url/backup")" = 401 ] &&
    [ "$(curl -sS --cacert "$data/ca.crt" -H "Authorization: Bearer $token" -o "$dir/out" -w "%{http_code}" "$url/backup")" = 200 ]
'
step 'writes during a backup do not disturb it' '
    for n in 1 2 3 4 5 6 7 8; do
        kubectl create configmap "busy-$n" --from-literal=k=1 >/dev/null &
    done
    gives 0 backup --data-dir "$data" "$dir/busy"
    wait
    gives 0 restore --data-dir "$dir/trial" "$dir/busy" && gives 0 check --data-dir "$dir/trial" && says "sound: "
'
step 'check and restore refuse a directory that a server uses' '
    gives 1 check --data-dir "$data" && complains "in use by another server" &&
    gives 1 restore --data-dir "$data" "$dir/full" && complains "in use by another server"
'
step 'without a server the files are backed up, and the backup is intact' '
    gives 0 down --data-dir "$data" && gives 0 check --data-dir "$data" && says "sound: " &&
    gives 0 backup --data-dir "$data" "$dir/cold" && grep -q " configmaps default busy-8 " "$dir/cold"
'
step 'a backup goes into an empty directory elsewhere, with its credentials' '
    gives 0 restore --data-dir "$dir/other" "$dir/full" && [ -z "$(find "$dir/other" -perm /077)" ] &&
    cmp "$data/tokens.csv" "$dir/other/tokens.csv" && cmp "$data/ca.key" "$dir/other/ca.key" &&
    up "$dir/other" --no-node &&
    KUBECONFIG=$dir/other/kubeconfig && [ "$(value first)" = 1 ] &&
    [ "$(kubectl get secret hidden -o "jsonpath={.data.k}" | base64 -d)" = topsecret ] &&
    ! kubectl get configmap busy-1 2>/dev/null && gives 0 down --data-dir "$dir/other"
'
step 'a newer intact store is overwritten only on request' '
    gives 1 restore --data-dir "$data" "$dir/full" && complains "is sound and has revisions up to" && complains "--overwrite" &&
    gives 0 check --data-dir "$data"
'
step 'a damaged backup is refused whole, and changes nothing' '
    sed "s/topsecret/topsecreT/; s/default first/default fursT/" "$dir/full" >"$dir/bad" &&
    gives 1 restore --overwrite --data-dir "$data" "$dir/bad" && complains "its checksum differs" &&
    head -n -1 "$dir/full" >"$dir/bad" &&
    gives 1 restore --overwrite --data-dir "$data" "$dir/bad" && complains "its end is missing" &&
    head -c 1000 /dev/urandom >"$dir/bad" &&
    gives 1 restore --overwrite --data-dir "$data" "$dir/bad" && complains "not a backup" &&
    gives 1 restore --overwrite --data-dir "$data" "$dir/none" && complains "No such file" &&
    gives 0 check --data-dir "$data"
'
step 'a pod starts after the backup' '
    up "$data" && kubectl apply -f - <<JSON &&
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker"}, "spec": {"schedulerName": "volcano",
 "containers": [{"name": "main", "image": "none", "command": ["sleep", "$mark"]}]}}
JSON
    within 20 worker && kubectl create configmap last --from-literal=k=1 && revision last >"$dir/last"
'
step 'a missing database is reported, and restored from the backup' '
    kill -9 "$("$HEKLA" status --data-dir "$data" -o json | sed -n "s/.*\"pid\": \([0-9]*\).*/\1/p")" &&
    within 20 gives 3 status --data-dir "$data" && rm "$data/store.db" &&
    ! up "$data" && complains "missing or empty, but revision" && complains "hekla restore" &&
    gives 2 check --data-dir "$data" && says "missing or empty" &&
    gives 0 restore --data-dir "$data" "$dir/full" && gives 0 check --data-dir "$data" && up "$data" &&
    [ "$(value first)" = 1 ] && ! kubectl get configmap last 2>/dev/null
'
step 'revisions continue after all earlier ones, and old watches list again' '
    kubectl create configmap next --from-literal=k=1 && [ "$(revision next)" -gt "$(cat "$dir/last")" ] &&
    [ "$(kubectl get --raw "/api/v1/configmaps?watch=1&resourceVersion=$(cat "$dir/last")" 2>&1 | grep -c "too old")" = 1 ]
'
step 'the pod continues, and status shows it, until it is ended' '
    within 20 gives 0 status --data-dir "$data" && within 20 sh -c "
        \"\$0\" status --data-dir \"\$1\" | grep -q \"^Unknown *1 pod runs here\"" "$HEKLA" "$data" && worker &&
    gives 0 down --data-dir "$data" && up "$data" --end-unknown-pods && within 20 no_worker
'
step 'wrong usage is reported in one line' '
    gives 1 backup && complains "FILE to write is missing" && gives 1 restore && complains "backup FILE is missing" &&
    gives 1 check --older && complains "needs --salvage" &&
    gives 1 check --data-dir "$dir/nowhere" && complains "there is no store in" &&
    gives 1 backup --data-dir "$dir/nowhere" "$dir/x" && complains "there is no store in" && [ ! -e "$dir/x.part" ]
'
finish
