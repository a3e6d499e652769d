#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every kubectl command that users of a batch system need, against hekla apiserver. HEKLA names the
# program; without kubectl there is nothing to test. No controllers run: what happens is the
# server's own doing.
cd "$(dirname "$0")/../.." || exit 1
HEKLA=${HEKLA:-build/hekla}
if ! command -v kubectl >/dev/null; then
    echo '1..0 # skip no kubectl'
    exit 0
fi
dir=$(mktemp -d) || exit 1
data=$dir/data
pid=
trap 'stop KILL; rm -rf "$dir"' EXIT
count=0 failed=0

# step NAME SCRIPT: one point; the script must succeed.
step() {
    count=$((count + 1))
    if (eval "$2") >"$dir/log" 2>&1; then
        echo "ok $count - $1"
    else
        failed=$((failed + 1))
        echo "not ok $count - $1"
        sed 's/^/# /' "$dir/log"
    fi
}

# start: a server on a free port; returns when it says that it is ready. HOME keeps kubectl's caches
# of other servers out.
start() {
    mkfifo "$dir/ready"
    "$HEKLA" apiserver --data-dir "$data" --listen 127.0.0.1:0 >"$dir/ready" 2>"$dir/server" &
    pid=$!
    timeout 30 head -n 1 "$dir/ready" >"$dir/line"
    url=$(sed -n 's/^hekla apiserver ready at \(.*\), kubeconfig .*/\1/p' "$dir/line")
    if [ -z "$url" ]; then
        echo "Bail out! no server: $(cat "$dir/server")"
        exit 1
    fi
    KUBECONFIG=$data/kubeconfig HOME=$dir
    export KUBECONFIG HOME
}

stop() {
    [ -n "$pid" ] || return 0
    kill -s "$1" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    status=$?
    pid=
}

# k ARG...: kubectl within a deadline; what it prints is kept in $dir/out and $dir/err.
k() {
    timeout 30 kubectl "$@" >"$dir/out" 2>"$dir/err" && return 0
    echo "kubectl $*: exit status $?"
    cat "$dir/out" "$dir/err"
    return 1
}

# refused TEXT ARG...: kubectl must fail and say the text.
refused() {
    text=$1
    shift
    if k "$@" >/dev/null; then
        echo "kubectl $*: expected to fail"
        return 1
    fi
    grep -qF -- "$text" "$dir/err" && return 0
    echo "expected: $text"
    cat "$dir/err"
    return 1
}

# says TEXT: the last command printed the text; columns are one space apart.
says() {
    tr -s ' ' <"$dir/out" | grep -qF -- "$1" && return 0
    echo "expected: $1"
    cat "$dir/out"
    return 1
}

# silent TEXT: the last command did not print the text.
silent() {
    grep -qF -- "$1" "$dir/out" || return 0
    echo "not expected: $1"
    cat "$dir/out"
    return 1
}

# prints TEXT: the last command printed exactly the text.
prints() {
    [ "$(cat "$dir/out")" = "$1" ] && return 0
    echo "expected: $1"
    echo "got:      $(cat "$dir/out")"
    return 1
}

# field TYPE/NAME PATH VALUE: the object's field, read again from the server.
field() {
    k get "$1" -o jsonpath="{$2}" && prints "$3"
}

# gone TYPE/NAME
gone() {
    refused NotFound get "$1"
}

# owned NAME: a replica set and a pod it owns, both of this name.
owned() {
    sed "s/NAME/$1/" "$dir/rs.yaml" | kubectl create -f - &&
        uid=$(kubectl get rs "$1" -o jsonpath='{.metadata.uid}') &&
        sed "s/NAME/$1/; s/UID/$uid/" "$dir/owned.yaml" | kubectl create -f -
}

cat >"$dir/node.yaml" <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "10"}
  capacity: {cpu: "4", memory: 8Gi, pods: "10"}
YAML
cat >"$dir/ready.json" <<'JSON'
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
 "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}]}}
JSON
cat >"$dir/queue.yaml" <<'YAML'
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 2}
YAML
cat >"$dir/job.yaml" <<'YAML'
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 1
  queue: research
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        containers: [{name: main, image: busybox}]
YAML
cat >"$dir/bound.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: bound, labels: {app: web}}
spec:
  nodeName: n1
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m}}}]
YAML
cat >"$dir/event.yaml" <<'YAML'
apiVersion: v1
kind: Event
metadata: {name: bound.1}
involvedObject: {apiVersion: v1, kind: Pod, name: bound, namespace: default, uid: UID}
type: Normal
reason: Pulled
message: image was there
YAML
cat >"$dir/map.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red, size: small}
YAML
cat >"$dir/map2.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
YAML
cat >"$dir/rs.yaml" <<'YAML'
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: owned}}
  template:
    metadata: {labels: {app: owned}}
    spec: {containers: [{name: main, image: busybox}]}
YAML
cat >"$dir/owned.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  labels: {app: owned}
  ownerReferences:
  - {apiVersion: apps/v1, kind: ReplicaSet, name: NAME, uid: UID, controller: true,
     blockOwnerDeletion: true}
spec: {containers: [{name: main, image: busybox}]}
YAML

minor=$(kubectl version --client -o json | sed -n 's/.*"minor": "\([0-9]*\).*/\1/p')
start

# ---- about the server ----

step 'version' '
    k version && says "Server Version:"
'
step 'api-versions' '
    k api-versions &&
    grep -qx v1 "$dir/out" && grep -qx batch.volcano.sh/v1alpha1 "$dir/out" &&
    grep -qx scheduling.volcano.sh/v1beta1 "$dir/out"
'
step 'api-resources' '
    k api-resources && says "pods po v1 true Pod" &&
    says "jobs vcjob,vj batch.volcano.sh/v1alpha1 true Job" &&
    k api-resources --api-group=scheduling.volcano.sh --namespaced=false -o name &&
    prints queues.scheduling.volcano.sh
'
step 'cluster-info' '
    k cluster-info && says "$url"
'
if [ "$minor" -ge 27 ]; then # older ones read version 2 of OpenAPI, which has no schemas here
    step 'explain vcjob' '
        k explain vcjob && says "spec" && says "status" &&
        k explain vcjob.spec.tasks && says "replicas" && says "minAvailable" &&
        refused "does not exist" explain vcjob.spec.nothing
    '
fi
step 'auth can-i' '
    k auth can-i create vcjob && prints yes && k auth can-i "*" "*" && says yes &&
    k auth can-i --list && says "*.* [] [] [*]"
'

# ---- making things ----

step 'create -f' '
    k create -f "$dir/node.yaml" && prints "node/n1 created" &&
    k create -f "$dir/queue.yaml" -f "$dir/job.yaml" &&
    says "queue.scheduling.volcano.sh/research created" &&
    says "job.batch.volcano.sh/train created" &&
    refused AlreadyExists create -f "$dir/queue.yaml"
'
step 'run' '
    k run plain --image=busybox --labels=app=batch -- sleep 5 && prints "pod/plain created" &&
    field pod/plain .spec.containers[0].args[1] 5
'
step 'create namespace' '
    k create namespace team && field namespace/team .status.phase Active
'
step 'create quota' '
    k create quota small --hard=cpu=1,pods=2 -n team &&
    k get quota small -n team -o jsonpath="{.spec.hard.pods}" && prints 2
'
step 'create priorityclass' '
    k create priorityclass high --value=1000 && field priorityclass/high .value 1000
'
step 'create configmap' '
    k create configmap tool --from-literal=a=b && field configmap/tool .data.a b
'
step 'create secret' '
    k create secret generic key --from-literal=a=b && field secret/key .data.a Yg==
'
step 'create serviceaccount' '
    k create serviceaccount robot -n team && k get serviceaccount robot -n team -o name &&
    prints serviceaccount/robot
'
step 'a namespace that is not there' '
    refused "namespaces \"nowhere\" not found" create configmap lost -n nowhere
'

# ---- looking at them ----

step 'get' '
    k create -f "$dir/bound.yaml" && k get pods &&
    says "NAME READY STATUS RESTARTS AGE" && says "bound 0/1 Pending 0" && says "plain 0/1" &&
    k get vcjob train && says "NAME STATUS MINAVAILABLE RUNNINGS AGE" &&
    gone pod/nobody
'
step 'get -o wide' '
    k get pods -o wide && says "NODE NOMINATED NODE" && says "<none> n1 <none>"
'
step 'get -o yaml' '
    k get vcjob train -o yaml && says "kind: Job" && says " queue: research"
'
step 'get -o json' '
    k get queue research -o json &&
    python3 -c "import json, sys
assert json.load(sys.stdin)[\"spec\"][\"weight\"] == 2" <"$dir/out"
'
step 'get -o name' '
    k get pods,queues -o name && says pod/plain && says queue.scheduling.volcano.sh/research
'
step 'get -o jsonpath' '
    k get pods -o jsonpath="{range .items[*]}{.metadata.name} {end}" && prints "bound plain "
'
step 'get -o custom-columns' '
    k get pod bound -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName &&
    says "POD NODE" && says "bound n1"
'
step 'get -A' '
    k get serviceaccounts -A && says "NAMESPACE NAME" && says "team robot"
'
step 'get -l' '
    k get pods -l app=web -o name && prints pod/bound &&
    k get pods -l "app in (batch),app!=web" -o name && prints pod/plain
'
step 'get --field-selector' '
    k get pods --field-selector spec.nodeName=n1 -o name && prints pod/bound &&
    k get pods --field-selector metadata.name!=bound,status.phase=Pending -o name &&
    prints pod/plain
'
step 'get --sort-by' '
    k get pods --sort-by=.metadata.labels.app -o name &&
    prints "pod/plain
pod/bound" &&
    k get pods --sort-by=.metadata.name -o name &&
    prints "pod/bound
pod/plain"
'
step 'get -w' '
    mkfifo "$dir/watch"
    timeout 30 kubectl get configmap tool -w -o jsonpath="{.data.a}{\"\n\"}" >"$dir/watch" &
    watcher=$!
    exec 3<"$dir/watch"
    read -r before <&3
    k patch configmap tool --type=merge -p "{\"data\":{\"a\":\"c\"}}"
    read -r after <&3
    kill "$watcher"
    echo "expected b then c, got $before then $after"
    [ "$before" = b ] && [ "$after" = c ]
'
step 'get events' '
    uid=$(kubectl get pod bound -o jsonpath="{.metadata.uid}") &&
    sed -i "s/UID/$uid/" "$dir/event.yaml" && k create -f "$dir/event.yaml" &&
    k get events && says "Normal Pulled pod/bound image was there"
'
step 'describe pod' '
    k describe pod bound && says "Node: n1" && says "cpu: 500m" && says "image was there"
'
step 'describe node' '
    k describe node n1 && says "Labels: zone=a" && says "memory: 8Gi" && says "(1 in total)" &&
    says "default bound 500m (12%)"
'
step 'describe queue' '
    k describe queue research && says "Kind: Queue" && says "Weight: 2"
'
step 'describe vcjob' '
    k describe vcjob train && says "Kind: Job" && says "Min Available: 1" && says "Image: busybox"
'

# ---- changing them ----

step 'apply of a new object' '
    k apply -f "$dir/map.yaml" && prints "configmap/settings created"
'
step 'apply of the same object' '
    k get configmap settings -o jsonpath="{.metadata.resourceVersion}" && was=$(cat "$dir/out") &&
    k apply -f "$dir/map.yaml" && prints "configmap/settings unchanged" &&
    field configmap/settings .metadata.resourceVersion "$was"
'
step 'apply of a changed object drops what is no longer said' '
    k apply -f "$dir/map2.yaml" && prints "configmap/settings configured" &&
    field configmap/settings .data.colour blue && field configmap/settings .data.size ""
'
step 'apply of a custom resource' '
    sed "s/weight: 2/weight: 5/" "$dir/queue.yaml" >"$dir/queue5.yaml"
    k apply -f "$dir/queue5.yaml" && says configured && field queue/research .spec.weight 5 &&
    k apply -f "$dir/queue5.yaml" && says unchanged
'
step 'patch, strategic: lists merge by name' '
    k patch pod plain -p "{\"spec\":{\"containers\":[{\"name\":\"plain\",\"image\":\"other\"}]}}" &&
    field pod/plain .spec.containers[*].image other && field pod/plain .spec.containers[0].args[1] 5
'
step 'patch, merge' '
    k patch vcjob train --type=merge -p "{\"spec\":{\"minAvailable\":2}}" &&
    field vcjob/train .spec.minAvailable 2 && field vcjob/train .spec.queue research
'
step 'patch, json' '
    k patch configmap settings --type=json \
        -p "[{\"op\":\"test\",\"path\":\"/data/colour\",\"value\":\"blue\"},
             {\"op\":\"add\",\"path\":\"/data/shape\",\"value\":\"round\"}]" &&
    field configmap/settings .data.shape round
'
step 'replace' '
    k replace -f "$dir/map.yaml" && prints "configmap/settings replaced" &&
    field configmap/settings .data.size small && field configmap/settings .data.shape "" &&
    sed "s/settings/absent/" "$dir/map.yaml" >"$dir/absent.yaml" &&
    refused NotFound replace -f "$dir/absent.yaml"
'
step 'label' '
    k label pod plain tier=one && field pod/plain .metadata.labels.tier one &&
    refused "already has a value" label pod plain tier=two &&
    k label pod plain tier=two --overwrite && field pod/plain .metadata.labels.tier two &&
    k label pod plain tier- && field pod/plain .metadata.labels.tier ""
'
step 'annotate' '
    k annotate queue research note=kept && field queue/research .metadata.annotations.note kept &&
    k annotate queue research note- && field queue/research .metadata.annotations.note ""
'
step 'cordon and uncordon' '
    k cordon n1 && field node/n1 .spec.unschedulable true &&
    k get node n1 && says SchedulingDisabled &&
    k uncordon n1 && field node/n1 .spec.unschedulable ""
'
step 'taint' '
    k taint node n1 team=a:NoSchedule &&
    field node/n1 ".spec.taints[?(@.key==\"team\")].effect" NoSchedule &&
    k taint node n1 team:NoSchedule- && field node/n1 ".spec.taints[?(@.key==\"team\")].effect" ""
'
step 'wait for a condition' '
    refused "timed out" wait --for=condition=Ready node/n1 --timeout=1s || exit 1
    timeout 30 kubectl wait --for=condition=Ready node/n1 --timeout=20s >"$dir/waited" &
    k replace --raw /api/v1/nodes/n1/status -f "$dir/ready.json" && wait $! &&
    grep "node/n1 condition met" "$dir/waited"
'

# ---- ending them ----

step 'delete --cascade=orphan leaves the pods' '
    owned orphan && k delete rs orphan --cascade=orphan && gone rs/orphan &&
    field pod/orphan .metadata.ownerReferences ""
'
step 'delete --cascade=background takes the pods afterwards' '
    owned back && k delete rs back --cascade=background && gone rs/back &&
    { k wait --for=delete pod/back --timeout=20s || grep "no matching resources" "$dir/err"; } &&
    gone pod/back
'
step 'delete --cascade=foreground takes the pods first' '
    owned fore && k delete rs fore --cascade=foreground && gone pod/fore && gone rs/fore
'
step 'delete --grace-period leaves a pod on a node to its node' '
    k delete pod bound --grace-period=7 --wait=false &&
    field pod/bound .metadata.deletionGracePeriodSeconds 7 &&
    k get pod bound && says "bound 0/1 Terminating"
'
step 'delete --force ends it at once' '
    k delete pod bound --force --grace-period=0 && gone pod/bound
'
step 'delete -l' '
    k delete pods -l app=owned && says orphan && silent plain &&
    gone pod/orphan && field pod/plain .metadata.name plain
'
step 'delete --all' '
    k delete vcjob --all && says train && k get vcjob -o name && prints ""
'
step 'delete -f' '
    k delete -f "$dir/map.yaml" && gone configmap/settings &&
    refused NotFound delete -f "$dir/map.yaml" &&
    k delete -f "$dir/map.yaml" --ignore-not-found
'
step 'delete namespace takes what is in it' '
    k delete namespace team --timeout=20s && gone namespace/team &&
    k get serviceaccounts,quota -A && silent robot && silent small
'

stop TERM
step 'the server had nothing to complain about' '
    [ "$status" -eq 0 ] && cat "$dir/server" && [ ! -s "$dir/server" ]
'

echo "1..$count"
[ "$failed" -eq 0 ]
