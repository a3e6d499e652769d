#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Operators of clusters and servers that bring PodGroups of their own; see operators_jobs.t.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/operators.sh

start
follow

step 'the kinds of the operators can be installed' '
    kind ray.io/v1 RayCluster rayclusters && kind flinkoperator.k8s.io/v1beta1 FlinkCluster flinkclusters &&
        kind leaderworkerset.x-k8s.io/v1 LeaderWorkerSet leaderworkersets
'

# ---- KubeRay ----
# It makes the group, then head and workers. When the cluster is resized it reads the group and updates minMember and
# minResources.

# ray_pod NAME CPU GROUP
ray_pod() {
    pod "$1" "$2" "$(ref ray.io/v1 RayCluster sky)" "annotations: {$in_group: ray-sky-pg, $as_task: $3}" \
        "labels: {ray.io/cluster: sky, ray.io/group: $3, volcano.sh/queue-name: ray}"
}

# ray_size MEMBERS CPU: the update that a resize is.
ray_size() {
    kubectl get podgroup ray-sky-pg -o json |
        sed "s/\"minMember\": [0-9]*/\"minMember\": $1/; s/\"cpu\": \"[0-9]*\"/\"cpu\": \"$2\"/" |
        kubectl replace -f -
}

step 'KubeRay: a cluster larger than the machines waits, head included' '
    enter ray && queue ray 64 && object ray.io/v1 RayCluster sky &&
        state=Pending group ray-sky-pg "$(ref ray.io/v1 RayCluster sky)" 5 "minResources: {cpu: \"30\"}" "queue: ray" |
            kubectl create -f - &&
        { ray_pod sky-head 2 headgroup && for i in 1 2 3 4; do ray_pod "sky-small-$i" 7 small; done; } |
            kubectl create -f - &&
        within 30 waits ray-sky-pg && placed ray.io/cluster=sky 0
'
step 'KubeRay: a smaller cluster starts with its new minimum' '
    ray_size 4 23 && within 30 is podgroup/ray-sky-pg .status.phase Running && placed ray.io/cluster=sky 4 &&
        field podgroup/ray-sky-pg .spec.minMember 4
'
step 'KubeRay: workers that the autoscaler adds need no gang' '
    ray_pod sky-tiny-1 1 tiny | kubectl create -f - && within 30 are ray.io/group=tiny Running 1 &&
        within 30 runs ray-sky-pg 5
'
step 'KubeRay: a cluster enlarged while it runs continues and gets the rest' '
    ray_size 6 25 && ray_pod sky-tiny-2 1 tiny | kubectl create -f - && within 30 runs ray-sky-pg 6 &&
        field podgroup/ray-sky-pg .spec.minMember 6 && only ray-sky-pg
'
step 'KubeRay: without workers the queue holds only the group, which is deleted with the cluster' '
    kubectl delete pods -l ray.io/cluster=sky && within 30 is queue/ray .status.allocated.cpu 0 &&
        only ray-sky-pg &&
        kubectl delete raycluster sky && within 60 empty
'

# ---- LeaderWorkerSet ----
# A StatefulSet of leaders, whose pods carry the name of a group that does not exist yet. The group is owned by the
# leader, as is the StatefulSet of its workers. When one pod is lost, the leader is deleted, and all begins anew.

# lws_set NAME OWNER REPLICAS CPU FIRST
lws_set() {
    kubectl create -f - <<YAML
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: $1, ownerReferences: [$2]}
spec:
  serviceName: llm
  podManagementPolicy: Parallel
  replicas: $3
  ordinals: {start: $5}
  selector: {matchLabels: {part: $1}}
  template:
    metadata:
      labels: {part: $1, leaderworkerset.sigs.k8s.io/name: llm, leaderworkerset.sigs.k8s.io/group-index: "0"}
      annotations: {$in_group: llm-0-6d8f}
    spec:
      schedulerName: volcano
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: none, resources: {requests: {cpu: "$4"}}}]
YAML
}

# lws_begin: what the controller makes when it sees the leader.
lws_begin() {
    leader=$(ref v1 Pod llm-0) && group llm-0-6d8f "$leader" 3 "minResources: {cpu: \"9\"}" "queue: serve" |
        kubectl create -f - && lws_set llm-0 "$leader" 2 4 1
}

step 'LeaderWorkerSet: a leader waits for the group it names, and no second group is created' '
    enter lws && queue serve 8 && object leaderworkerset.x-k8s.io/v1 LeaderWorkerSet llm &&
        lws_set llm "$(ref leaderworkerset.x-k8s.io/v1 LeaderWorkerSet llm)" 1 1 0 &&
        within 30 kubectl get pod llm-0 && pod other 1 "" "labels: {app: other}" | kubectl create -f - &&
        within 30 are app=other Running 1 && placed part=llm 0 && kubectl delete pod other && within 60 only
'
step 'LeaderWorkerSet: a group whose queue is too small starts neither leader nor workers' '
    lws_begin && within 30 is podgroup/llm-0-6d8f .status.phase Pending && within 30 kubectl get pod llm-0-2 &&
        placed leaderworkerset.sigs.k8s.io/name=llm 0
'
step 'LeaderWorkerSet: leader and workers start together' '
    raise serve 9 && within 30 runs llm-0-6d8f 3 && within 30 went llm-0-6d8f "Pending Inqueue Running" &&
        only llm-0-6d8f
'
step 'LeaderWorkerSet: group and workers are deleted with the leader, and the next leader gets a group of that name' '
    old=$(kubectl get podgroup llm-0-6d8f -o "jsonpath={.metadata.uid}") && kubectl delete pod llm-0 &&
        within 60 gone podgroup/llm-0-6d8f && within 60 gone statefulset/llm-0 &&
        within 30 placed part=llm-0 0 &&
        within 30 kubectl get pod llm-0 && lws_begin && within 30 runs llm-0-6d8f 3 && only llm-0-6d8f &&
        ! is podgroup/llm-0-6d8f .metadata.uid "$old"
'
step 'LeaderWorkerSet: where leaders are to be ready first, one member is enough' '
    kubectl patch podgroup llm-0-6d8f --type=merge -p "{\"spec\":{\"minMember\":1}}" &&
        kubectl delete statefulset llm-0 && within 30 placed part=llm-0 0 && within 30 runs llm-0-6d8f 1
'
step 'LeaderWorkerSet: all objects are deleted with the set' '
    kubectl delete leaderworkerset llm && within 60 empty
'

# ---- Flink ----

# flink_set NAME REPLICAS
flink_set() {
    cat <<YAML
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: $1, ownerReferences: [$(ref flinkoperator.k8s.io/v1beta1 FlinkCluster words)]}
spec:
  serviceName: $1
  podManagementPolicy: Parallel
  replicas: $2
  selector: {matchLabels: {component: $1}}
  template:
    metadata: {labels: {component: $1, cluster: words}, annotations: {$in_group: flink-words}}
    spec:
      schedulerName: volcano
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]
YAML
}

step 'Flink: job and task managers are one gang, the submitter has a group of its own' '
    enter flink && object flinkoperator.k8s.io/v1beta1 FlinkCluster words &&
        owner=$(ref flinkoperator.k8s.io/v1beta1 FlinkCluster words) &&
        group flink-words "$owner" 3 "minResources: {cpu: \"3\"}" | kubectl create -f - &&
        { flink_set words-jm 1 && flink_set words-tm 2; } | kubectl create -f - &&
        within 30 runs flink-words 3 &&
        kubectl create -f - <<YAML &&
apiVersion: batch/v1
kind: Job
metadata: {name: words-submitter, ownerReferences: [$owner]}
spec:
  template:
    metadata: {annotations: {$brief}}
    spec: {schedulerName: volcano, restartPolicy: Never, containers: [{name: main, image: none}]}
YAML
        within 30 is job.batch/words-submitter .status.succeeded 1 &&
        only flink-words "podgroup-$(kubectl get job.batch words-submitter -o "jsonpath={.metadata.uid}")"
'
step 'Flink: a rescaled cluster has another minimum, and all objects are deleted with the cluster' '
    kubectl patch podgroup flink-words --type=merge -p "{\"spec\":{\"minMember\":4}}" &&
        kubectl scale statefulset words-tm --replicas=3 && within 30 runs flink-words 4 &&
        kubectl delete flinkcluster words && within 60 empty
'

kill "$follower" && follower=
stop TERM
content
finish
