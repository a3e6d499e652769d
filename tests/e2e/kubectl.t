#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every kubectl command that users of a batch system need, against hekla apiserver: once with
# Debian's kubectl 1.20 and once with a current one, each with a server of its own. No controllers
# run: what happens is the server's own doing.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs_kubectls
# Of a real control plane only the controllers whose work our server does by itself.
kube_options=--controllers=namespace-controller,garbage-collector-controller
kube_options=$kube_options,resourcequota-controller,serviceaccount-controller
kube_options=$kube_options,root-ca-certificate-publisher-controller,node-lifecycle-controller
if on_kube; then
    sed -i '/^1.20 /d' "$top/kubectls" # speaks versions that Kubernetes has dropped
fi

# watched: returns when somebody watches. A real server does not tell; there kubectl lists or watches.
watched() {
    export kubectl
    on_kube || timeout 20 sh -c \
        "until \"\$kubectl\" get --raw /metrics | grep -q \"^hekla_apiserver_watches [1-9]\"
        do sleep 0.05; done"
}

# owned NAME: a replica set and a pod it owns, both of this name.
owned() {
    sed "s/NAME/$1/" "$dir/rs.yaml" | "$kubectl" create -f - &&
        uid=$("$kubectl" get rs "$1" -o jsonpath='{.metadata.uid}') &&
        sed "s/NAME/$1/; s/UID/$uid/" "$dir/owned.yaml" | "$kubectl" create -f -
}

write_files() {
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

cat >"$dir/typo.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: typo}
spec: {containers: [{name: main, image: busybox}], nodSelector: {zone: a}}
YAML
cat >"$dir/deployment.yaml" <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: deployed}}
  template:
    metadata: {labels: {app: deployed}}
    spec: {containers: [{name: main, image: busybox}]}
YAML
cat >"$dir/rolled.json" <<'JSON'
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
 "status": {"observedGeneration": GENERATION, "replicas": 5, "updatedReplicas": 5,
            "readyReplicas": 5, "availableReplicas": 5}}
JSON
cat >"$dir/running.json" <<'JSON'
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "evicted", "namespace": "default", "labels": {"app": "keep"}},
 "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
JSON
cat >"$dir/budget.json" <<'JSON'
{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
 "metadata": {"name": "keep", "namespace": "default", "resourceVersion": "RV"},
 "status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1}}
JSON
cat >"$dir/shared.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {colour: red}
YAML
cat >"$dir/editor" <<'SH'
#!/bin/sh
sed -i 's/colour: .*/colour: green/' "$1"
SH
chmod +x "$dir/editor"
}

steps() {
# ---- about the server ----

step 'version' '
    k version && says "Server Version:" &&
    k version -o json && says "\"platform\": \"linux/"
'
step 'api-versions' '
    k api-versions && { on_kube || grep -qx policy/v1beta1 "$dir/out"; } &&
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
step 'auth can-i' '
    k auth can-i create vcjob && prints yes && k auth can-i "*" "*" && says yes &&
    k auth can-i --list && says "*.* [] [] [*]"
'
step 'auth can-i answers no' '
    ! k auth can-i create vcjob --as=stranger && prints no &&
    ! k auth can-i --quiet delete nodes --as=stranger && prints ""
'

# ---- making things ----

step 'create -f' '
    k create -f "$dir/node.yaml" && prints "node/n1 created" &&
    k create -f "$dir/queue.yaml" -f "$dir/job.yaml" &&
    says "queue.scheduling.volcano.sh/research created" &&
    says "job.batch.volcano.sh/train created" &&
    refused AlreadyExists create -f "$dir/queue.yaml"
'
step 'create --dry-run=server stores nothing' '
    k create -f "$dir/map.yaml" --dry-run=server &&
    prints "configmap/settings created (server dry run)" &&
    gone configmap/settings &&
    refused "is invalid" create configmap Upper --dry-run=server
'
step 'create --validate' '
    refused "unknown field" create -f "$dir/typo.yaml" && gone pod/typo &&
    k create -f "$dir/typo.yaml" --validate=false && k get pod typo -o json && silent nodSelector &&
    k delete pod typo
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
    k get quota small -n team -o jsonpath="{.spec.hard.pods}" && prints 2 &&
    k get quota -n team && says "NAME REQUEST LIMIT AGE" && says "small cpu: 0/1, pods: 0/2"
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
step 'create cronjob, pdb, role and autoscale, each in the version this kubectl speaks' '
    k create cronjob nightly --image=busybox --schedule="0 3 * * *" &&
    k get cronjob nightly && says "nightly 0 3 * * *" &&
    k create pdb keep --selector=app=keep --min-available=1 && k get pdb && says "keep 1 N/A 0" &&
    k create role reader --verb=get --resource=pods && k get roles && says "NAME CREATED AT" &&
    k create -f "$dir/deployment.yaml" &&
    k autoscale deployment web --min=1 --max=4 --cpu-percent=80 &&
    k get hpa && says "web Deployment/web cpu: <unknown>/80% 1 4 0" &&
    k delete hpa web && k delete pdb keep
'
step 'a namespace that does not exist is reported' '
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
pod/plain" &&
    k get pods --sort-by=.metadata.name && says "NAME READY STATUS RESTARTS AGE"
'
step 'get -w' '
    mkfifo "$dir/watch"
    timeout 30 "$kubectl" get configmap tool -w -o jsonpath="{.data.a}{\"\n\"}" >"$dir/watch" &
    watcher=$!
    exec 3<"$dir/watch"
    read -r before <&3
    watched && k patch configmap tool --type=merge -p "{\"data\":{\"a\":\"c\"}}"
    read -r after <&3
    kill "$watcher"
    wait "$watcher"
    echo "expected b then c, got $before then $after"
    [ "$before" = b ] && [ "$after" = c ]
'
step 'get -w of a list, as a table' '
    mkfifo "$dir/rows"
    timeout 30 "$kubectl" get configmaps -w >"$dir/rows" &
    watcher=$!
    exec 3<"$dir/rows"
    read -r header <&3
    watched && k create configmap watched
    while read -r row <&3; do
        case $row in watched*) break ;; esac
    done
    kill "$watcher"
    wait "$watcher"
    echo "header: $header, last row: $row"
    [ "${header%% *}" = NAME ] && [ "${row%% *}" = watched ]
'
step 'get events' '
    uid=$("$kubectl" get pod bound -o jsonpath="{.metadata.uid}") &&
    sed -i "s/UID/$uid/" "$dir/event.yaml" && k create -f "$dir/event.yaml" &&
    k get events && says "LAST SEEN TYPE REASON OBJECT MESSAGE" &&
    says "Normal Pulled pod/bound image was there" &&
    k get events --field-selector involvedObject.name=bound,type=Normal -o name &&
    prints event/bound.1 &&
    k get events.v1.events.k8s.io bound.1 -o jsonpath="{.regarding.name}: {.note}" &&
    prints "bound: image was there"
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
step 'apply of a changed object removes fields that are no longer given' '
    k apply -f "$dir/map2.yaml" && prints "configmap/settings configured" &&
    field configmap/settings .data.colour blue && field configmap/settings .data.size ""
'
step 'apply of a custom resource' '
    sed "s/weight: 2/weight: 5/" "$dir/queue.yaml" >"$dir/queue5.yaml"
    k apply -f "$dir/queue5.yaml" && says configured && field queue/research .spec.weight 5 &&
    k apply -f "$dir/queue5.yaml" && says unchanged
'
step 'apply --server-side' '
    k apply --server-side -f "$dir/shared.yaml" && prints "configmap/shared serverside-applied" &&
    sed "s/: red/: blue/" "$dir/shared.yaml" >"$dir/shared2.yaml" &&
    refused "conflict with \"kubectl\": .data.colour" \
        apply --server-side --field-manager=other -f "$dir/shared2.yaml" &&
    k apply --server-side --field-manager=other --force-conflicts -f "$dir/shared2.yaml" &&
    field configmap/shared .data.colour blue
'
step 'diff' '
    k diff -f "$dir/map2.yaml" && prints "" || exit 1
    sed "s/blue/black/" "$dir/map2.yaml" >"$dir/map3.yaml"
    timeout 30 "$kubectl" diff -f "$dir/map3.yaml" >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] && says "- colour: blue" && says "+ colour: black" &&
    field configmap/settings .data.colour blue
'
step 'edit' '
    export EDITOR="$dir/editor" &&
    k edit configmap settings && says edited && field configmap/settings .data.colour green &&
    k apply -f "$dir/map2.yaml" && field configmap/settings .data.colour blue
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
step 'scale' '
    k scale deployment web --replicas=3 && field deployment/web .spec.replicas 3 &&
    k scale deployment web --current-replicas=3 --replicas=5 &&
    field deployment/web .spec.replicas 5 &&
    refused "Expected replicas to be 3, was 5" \
        scale deployment web --current-replicas=3 --replicas=1 &&
    k get deployment web && says "web 0/5 0 0"
'
step 'rollout status' '
    k rollout status deployment web --watch=false && says "Waiting for deployment spec update" &&
    generation=$("$kubectl" get deployment web -o jsonpath="{.metadata.generation}") &&
    sed -i "s/GENERATION/$generation/" "$dir/rolled.json" &&
    k replace --raw /apis/apps/v1/namespaces/default/deployments/web/status -f "$dir/rolled.json" &&
    k rollout status deployment web && says "successfully rolled out" &&
    k delete deployment web
'
step 'drain asks the disruption budget' '
    sed "s/name: bound, labels: {app: web}/name: evicted, labels: {app: keep}/" "$dir/bound.yaml" |
        "$kubectl" create -f - &&
    k replace --raw /api/v1/namespaces/default/pods/evicted/status -f "$dir/running.json" &&
    k create pdb keep --selector=app=keep --min-available=1 &&
    rv=$("$kubectl" get pdb keep -o jsonpath="{.metadata.resourceVersion}") &&
    sed -i "s/RV/$rv/" "$dir/budget.json" &&
    k replace --raw /apis/policy/v1/namespaces/default/poddisruptionbudgets/keep/status \
        -f "$dir/budget.json" || exit 1
    timeout 30 "$kubectl" drain n1 --force --pod-selector=app=keep --timeout=1s >"$dir/out" 2>&1 &&
        exit 1
    says "Cannot evict pod as it would violate the pod" && field node/n1 .spec.unschedulable true &&
    field pod/evicted .metadata.deletionTimestamp "" &&
    k delete pdb keep &&
    k drain n1 --force --pod-selector=app=keep --grace-period=0 && says "pod/evicted evicted" &&
    gone pod/evicted && k uncordon n1
'
step 'wait for a condition' '
    refused "timed out" wait --for=condition=Ready node/n1 --timeout=1s || exit 1
    timeout 30 "$kubectl" wait --for=condition=Ready node/n1 --timeout=20s >"$dir/waited" &
    watched && k replace --raw /api/v1/nodes/n1/status -f "$dir/ready.json" && wait $! &&
    grep "node/n1 condition met" "$dir/waited"
'
step 'wait for a deletion' '
    k run brief --image=busybox || exit 1
    timeout 30 "$kubectl" wait --for=delete pod/brief --timeout=20s >"$dir/waited" &
    watched && k delete pod brief && wait $! && gone pod/brief
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
step 'delete --grace-period leaves a bound pod to its node' '
    k delete pod bound --grace-period=7 --wait=false &&
    field pod/bound .metadata.deletionGracePeriodSeconds 7 &&
    k get pod bound && says "bound 0/1 Terminating"
'
step 'delete --force removes a bound pod at once' '
    k delete pod bound --force --grace-period=0 && gone pod/bound
'
step 'delete -l' '
    k delete pods -l app=owned && says "\"orphan\" deleted" && silent plain &&
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
step 'delete namespace deletes its content' '
    k delete namespace team --timeout=20s && gone namespace/team &&
    k get serviceaccounts,quota -A && silent robot && silent small
'
}

with_each_kubectl
finish
