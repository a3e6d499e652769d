#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Operators of jobs that bring PodGroups of their own: the objects each of them makes, in its order,
# and what it relies on. The operators are not here: kubectl makes what they make, and their kinds
# take anything. Nodes are simulated.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/operators.sh

start
follow

step 'kinds and versions that operators look for are served' '
    k get crd podgroups.scheduling.volcano.sh && k api-resources --api-group=scheduling.volcano.sh -o name &&
        says podgroups.scheduling.volcano.sh queues.scheduling.volcano.sh &&
        k get --raw /apis/scheduling.volcano.sh/v1beta1 && k get --raw /apis/batch.volcano.sh/v1alpha1
'
step 'the kinds of the operators can be installed' '
    kind sparkoperator.k8s.io/v1beta2 SparkApplication sparkapplications &&
        kind kubeflow.org/v1 TFJob tfjobs && kind kubeflow.org/v2beta1 MPIJob mpijobs &&
        kind trainer.kubeflow.org/v1alpha1 TrainJob trainjobs && kind jobset.x-k8s.io/v1alpha2 JobSet jobsets &&
        kind batch.paddlepaddle.org/v1 PaddleJob paddlejobs
'

# ---- Spark itself ----
# spark-submit applies the group, makes the driver, and applies the group again, now owned by the driver.
# The driver makes the executors.

# spark_group [OWNER]: from the template of the user, under the name of the application.
spark_group() {
    kubectl apply --server-side --force-conflicts --field-manager=fabric8 -f - <<YAML
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: spark-7f3c-podgroup
  namespace: spark
  ownerReferences: [$1]
spec: {minMember: 1, minResources: {cpu: "5", memory: 4Gi}, queue: spark}
YAML
}

# spark_pod NAME CPU OWNER ROLE
spark_pod() {
    pod "$1" "$2" "$3" "annotations: {$in_group: spark-7f3c-podgroup}" \
        "labels: {spark-app-selector: spark-7f3c, spark-role: $4}"
}

step 'Spark: a driver waits if its application exceeds the queue' '
    enter spark && queue spark 4 && spark_group && spark_pod pi-driver 1 "" driver | kubectl create -f - &&
        spark_group "$(ref v1 Pod pi-driver)" &&
        within 30 is podgroup/spark-7f3c-podgroup .status.phase Pending &&
        placed spark-role=driver 0
'
step 'Spark: the driver starts when there is room, before any executor exists' '
    raise spark 8 && within 30 is pod/pi-driver .status.phase Running &&
        within 30 runs spark-7f3c-podgroup 1 && within 30 went spark-7f3c-podgroup "Pending Inqueue Running"
'
step 'Spark: the executors that the driver makes join its group and its queue' '
    for i in 1 2; do spark_pod "pi-exec-$i" 2 "$(ref v1 Pod pi-driver)" executor; done | kubectl create -f - &&
        within 30 are spark-role=executor Running 2 && within 30 runs spark-7f3c-podgroup 3 &&
        within 30 is queue/spark .status.allocated.cpu 5 && only spark-7f3c-podgroup
'
step 'Spark: executors without annotations get a group that is deleted with the driver' '
    driver=$(kubectl get pod pi-driver -o "jsonpath={.metadata.uid}") &&
        pod pi-exec-3 1 "$(ref v1 Pod pi-driver)" "labels: {spark-role: stray}" | kubectl create -f - &&
        within 30 are spark-role=stray Running 1 && only spark-7f3c-podgroup "podgroup-$driver" &&
        is "podgroup/podgroup-$driver" ".metadata.ownerReferences[0].uid" "$driver"
'
step 'Spark: an application without a template has a group that asks for nothing' '
    kubectl apply --server-side --force-conflicts --field-manager=fabric8 -f - <<YAML &&
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: spark-9b1e-podgroup}
spec: {}
YAML
        pod plain-driver 1 "" "annotations: {$in_group: spark-9b1e-podgroup}" | kubectl create -f - &&
        within 30 runs spark-9b1e-podgroup 1 && field podgroup/spark-9b1e-podgroup .spec.queue default &&
        kubectl delete pod/plain-driver podgroup/spark-9b1e-podgroup
'
step 'Spark: all objects are deleted with the driver' '
    kubectl delete pod pi-driver && within 60 empty && within 30 is queue/spark .status.allocated.cpu 0
'

# ---- the operator of Spark ----
# It makes the group, says that it is Pending, and runs spark-submit with the name of the group.

# app_group: for driver and executors together; only the driver has to fit.
app_group() {
    state=Pending group spark-pi-pg "$(ref sparkoperator.k8s.io/v1beta2 SparkApplication pi)" 1 \
        "minResources: {cpu: \"3\", memory: 3Gi}" "queue: spark" | kubectl create -f -
}

# app_pod NAME OWNER ROLE [ANNOTATION]
app_pod() {
    pod "$1" 1 "$2" "annotations: {$in_group: spark-pi-pg${4:+, $4}}" \
        "labels: {sparkoperator.k8s.io/app-name: pi, spark-role: $3}" | kubectl create -f -
}

step 'Spark operator: the driver starts alone, the executors follow' '
    enter spark-operator && object sparkoperator.k8s.io/v1beta2 SparkApplication pi && app_group &&
        app_pod pi-driver "" driver "$awhile" && within 30 runs spark-pi-pg 1 &&
        within 30 went spark-pi-pg "Pending Inqueue Running" && app_pod pi-exec-1 "$(ref v1 Pod pi-driver)" executor &&
        app_pod pi-exec-2 "$(ref v1 Pod pi-driver)" executor && within 30 are spark-role=executor Running 2 &&
        only spark-pi-pg
'
step 'Spark operator: the group of a finished application is removed, and the queue is free' '
    within 30 are spark-role=driver Succeeded 1 && kubectl delete pods -l spark-role=executor &&
        within 30 is podgroup/spark-pi-pg .status.phase Completed && kubectl delete podgroup spark-pi-pg &&
        within 30 is queue/spark .status.allocated.cpu 0 &&
        is pod/pi-driver .status.phase Succeeded && within 60 only
'
step 'Spark operator: a second run has a new group of the same name' '
    kubectl delete pod pi-driver && app_group && app_pod pi-driver "" driver && within 30 runs spark-pi-pg 1 &&
        within 30 went spark-pi-pg "Pending Inqueue Running Completed Pending Inqueue Running"
'
step 'Spark operator: in client mode there are only executors' '
    object sparkoperator.k8s.io/v1beta2 SparkApplication shell &&
        owner=$(ref sparkoperator.k8s.io/v1beta2 SparkApplication shell) &&
        state=Pending group spark-shell-pg "$owner" 1 "minResources: {cpu: \"2\"}" | kubectl create -f - &&
        for i in 1 2; do
            pod "shell-exec-$i" 1 "$owner" "annotations: {$in_group: spark-shell-pg}" "labels: {spark-role: shell}"
        done | kubectl create -f - && within 30 runs spark-shell-pg 2 &&
        is podgroup/spark-shell-pg .spec.queue default
'
step 'Spark operator: all objects are deleted with the application' '
    kubectl delete sparkapplication pi shell && within 60 only && kubectl delete pods --all && within 60 empty
'

# ---- Kubeflow training operator, v1 ----
# It makes pods when the group has left Pending, writes the spec of the group at every turn, and deletes
# the group when the job is through.

# tf_group: what it sends for the job mnist.
tf_group() {
    group mnist "$(ref kubeflow.org/v1 TFJob mnist)" 3 "queue: train" "minResources: {cpu: \"6\"}"
}

# tf_turn: the group is read, its spec written anew and the rest sent back as it was.
tf_turn() {
    kubectl get podgroup mnist -o json >"$dir/mnist.json" && kubectl replace -f "$dir/mnist.json"
}

# tf_pod TYPE INDEX [ANNOTATION]
tf_pod() {
    pod "mnist-$1-$2" 2 "$(ref kubeflow.org/v1 TFJob mnist)" "annotations: {$in_group: mnist, $as_task: $1${3:+, $3}}" \
        "labels: {training.kubeflow.org/job-name: mnist, training.kubeflow.org/replica-type: $1}"
}

step 'training operator: a group beyond the limit of its queue stays Pending, and so no pods are made' '
    enter training && queue train 4 && object kubeflow.org/v1 TFJob mnist && tf_group | kubectl create -f - &&
        within 30 is podgroup/mnist .status.phase Pending && tf_turn
'
step 'training operator: a group becomes Inqueue without pods' '
    raise train 6 && within 30 is podgroup/mnist .status.phase Inqueue && is podgroup/mnist .status.running ""
'
step 'training operator: two of three pods do not start' '
    { tf_pod ps 0 "$awhile" && tf_pod worker 0 "$awhile"; } | kubectl create -f - &&
        within 30 waits mnist && placed training.kubeflow.org/job-name=mnist 0 && tf_turn &&
        is podgroup/mnist .status.phase Inqueue
'
step 'training operator: three pods start, and the job completes' '
    tf_pod worker 1 "$awhile" | kubectl create -f - &&
        within 30 are training.kubeflow.org/job-name=mnist Succeeded 3 &&
        within 30 went mnist "Pending Inqueue Running Completed" && only mnist
'
step 'training operator: pods outlive their group where the user wants to read their logs' '
    kubectl delete podgroup mnist && within 30 is queue/train .status.allocated.cpu 0 &&
        are training.kubeflow.org/job-name=mnist Succeeded 3 && within 60 only &&
        kubectl delete tfjob mnist && within 60 empty
'

# ---- Kubeflow MPI operator ----
# The launcher is a batch Job, the workers are pods; it makes all at once. Its group names no queue, so at
# every turn it finds the queue changed, and takes the name back out.

# mpi_group: three members; more than one of them on a node does not fit.
mpi_group() {
    group pi "$(ref kubeflow.org/v2beta1 MPIJob pi)" 3 "minResources: {cpu: \"15\"}"
}

mpi_parts() {
    owner=$(ref kubeflow.org/v2beta1 MPIJob pi) || return 1
    for i in 0 1; do
        pod "pi-worker-$i" 7 "$owner" "annotations: {$in_group: pi}" "labels: {training.kubeflow.org/job-name: pi}"
    done
    cat <<YAML
---
apiVersion: batch/v1
kind: Job
metadata: {name: pi-launcher, ownerReferences: [$owner]}
spec:
  template:
    metadata:
      annotations: {$in_group: pi, $brief}
      labels: {training.kubeflow.org/job-name: pi, training.kubeflow.org/job-role: launcher}
    spec:
      schedulerName: volcano
      restartPolicy: Never
      containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]
YAML
}

step 'MPI operator: while one worker does not fit, neither the other nor the launcher starts' '
    enter mpi && for i in 1 2 3; do pod "big-$i" 7 "" "labels: {app: big}"; done | kubectl create -f - &&
        within 30 are app=big Running 3 && object kubeflow.org/v2beta1 MPIJob pi &&
        mpi_group | kubectl create -f - && mpi_parts | kubectl create -f - && within 30 waits pi &&
        placed training.kubeflow.org/job-name=pi 0
'
step 'MPI operator: they start together, and the launcher completes' '
    mpi_group | kubectl apply -f - && is podgroup/pi .spec.queue default && kubectl delete pod big-2 &&
        within 30 is podgroup/pi .status.phase Running && placed training.kubeflow.org/job-name=pi 3 &&
        within 30 is job.batch/pi-launcher .status.succeeded 1
'
step 'MPI operator: launcher, workers and group are deleted with the job; no second group existed' '
    k get podgroups -o "jsonpath={.items[*].metadata.ownerReferences[0].kind}" && prints "MPIJob Pod Pod" &&
        kubectl delete mpijob pi && within 60 gone podgroup/pi &&
        within 30 placed training.kubeflow.org/job-name=pi 0 && kubectl delete pods --all && within 60 empty
'

# ---- Kubeflow trainer, v2 ----
# It applies the group, server side, and changes it only while the job is suspended. The pods are those of
# batch Jobs that a JobSet owns.

# tr_group MEMBERS CPU
tr_group() {
    kubectl apply --server-side --force-conflicts --field-manager=trainer -f - <<YAML
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: bert
  ownerReferences: [$(ref trainer.kubeflow.org/v1alpha1 TrainJob bert)]
spec:
  minMember: $1
  minResources: {cpu: "$2"}
  queue: train
  priorityClassName: steep
  networkTopology: {mode: soft, highestTierAllowed: 2}
YAML
}

# tr_job PODS: the Job of the JobSet, suspended.
tr_job() {
    kubectl apply -f - <<YAML
apiVersion: batch/v1
kind: Job
metadata:
  name: bert-node-0
  labels: {jobset.sigs.k8s.io/jobset-name: bert}
  ownerReferences: [$(ref jobset.x-k8s.io/v1alpha2 JobSet bert)]
spec:
  suspend: true
  completionMode: Indexed
  completions: $1
  parallelism: $1
  template:
    metadata:
      annotations: {$in_group: bert}
      labels: {jobset.sigs.k8s.io/jobset-name: bert}
    spec:
      schedulerName: volcano
      priorityClassName: steep
      restartPolicy: Never
      containers: [{name: node, image: none, resources: {requests: {cpu: "2"}}}]
YAML
}

# suspend YES: the Job of the JobSet, or not.
suspend() {
    kubectl patch job.batch bert-node-0 --type=merge -p '{"spec":{"suspend":'"$1"'}}'
}

step 'trainer: the group of a suspended job becomes Inqueue without pods' '
    enter trainer && kubectl create priorityclass steep --value=100 &&
        object trainer.kubeflow.org/v1alpha1 TrainJob bert && tr_group 2 4 &&
        owner=$(ref trainer.kubeflow.org/v1alpha1 TrainJob bert) && kubectl create -f - <<YAML && tr_job 2 &&
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: bert, ownerReferences: [$owner]}
YAML
        within 30 is podgroup/bert .status.phase Inqueue && no pods
'
step 'trainer: after resume all pods run, those of the JobSet in the group of the TrainJob' '
    suspend false && within 30 runs bert 2 && within 30 went bert "Inqueue Running" && only bert
'
step 'trainer: another apply keeps the requested spec and the status of the scheduler' '
    tr_group 2 4 && runs bert 2 && field podgroup/bert .spec.networkTopology.mode soft &&
        field podgroup/bert .spec.queue train && field podgroup/bert .spec.priorityClassName steep
'
step 'trainer: a job resized while suspended resumes with the new gang size' '
    suspend true && within 30 placed jobset.sigs.k8s.io/jobset-name=bert 0 && tr_group 3 6 &&
        kubectl patch job.batch bert-node-0 --type=merge -p "{\"spec\":{\"completions\":3,\"parallelism\":3}}" &&
        suspend false && within 30 runs bert 3 && within 30 is queue/train .status.allocated.cpu 6
'
step 'trainer: all objects are deleted with the TrainJob' '
    kubectl delete trainjob bert && within 60 empty && within 60 gone jobset/bert &&
        within 60 gone job.batch/bert-node-0
'

# ---- Paddle ----
# Its pods look like those of a Volcano Job of the same name, which they are not.

looks='volcano.sh/job-name: pd, volcano.sh/job-version: "0", volcano.sh/queue-name: ""'

# pd_pod ROLE INDEX [ANNOTATION]
pd_pod() {
    pod "pd-$1-$2" 1 "$(ref batch.paddlepaddle.org/v1 PaddleJob pd)" "labels: {paddle-res-name: pd}" \
        "annotations: {$in_group: pd, $as_task: $1, $looks${3:+, $3}}"
}

step 'Paddle: pods are created when the group is Inqueue, and run together' '
    enter paddle && kubectl create -f - <<YAML && within 30 is vcjob/pd .status.state.phase Running &&
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: pd}
spec:
  minAvailable: 1
  policies: [{event: "*", action: AbortJob}]
  tasks: [{name: ps, replicas: 1, template: {spec: {containers: [{name: main, image: none}]}}}]
YAML
        object batch.paddlepaddle.org/v1 PaddleJob pd &&
        group pd "$(ref batch.paddlepaddle.org/v1 PaddleJob pd)" 2 "minResources: {cpu: \"2\"}" |
        kubectl create -f - &&
        within 30 is podgroup/pd .status.phase Inqueue && pd_pod ps 1 | kubectl create -f - &&
        within 30 waits pd && placed paddle-res-name=pd 0 &&
        pd_pod worker 0 "$brief, sim.hekla.sh/exit-code: \"1\"" | kubectl create -f - &&
        within 30 placed paddle-res-name=pd 2
'
step 'Paddle: a failed pod does not affect a Volcano Job of that name' '
    within 30 are paddle-res-name=pd Failed 1 && kubectl delete pod pd-ps-1 && within 60 gone pod/pd-ps-1 &&
        field vcjob/pd .status.state.phase Running && field vcjob/pd .status.running 1 &&
        field vcjob/pd .status.failed "" && are paddle-res-name=pd Failed 1
'
step 'Paddle: group and pods are deleted with the job, others stay' '
    kubectl delete podgroup pd && kubectl delete paddlejob pd && within 30 placed paddle-res-name=pd 0 &&
        field vcjob/pd .status.state.phase Running && kubectl delete vcjob pd && within 60 empty
'

kill "$follower" && follower=
stop TERM
content
finish
