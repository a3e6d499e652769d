#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What comes without an operator that knows of PodGroups: pods and workloads of Kubernetes that only
# name Volcano's scheduler, and programs that make Volcano Jobs. Nodes are simulated.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/operators.sh

min_member=scheduling.volcano.sh/group-min-member
queue_name=scheduling.volcano.sh/queue-name

# of TYPE/NAME: the name of the group that is made for the pods of a workload, or for a pod.
of() {
    echo "podgroup-$(kubectl get "$1" -o 'jsonpath={.metadata.uid}')"
}

# template APP CPU [ANNOTATION]: of pods for Volcano's scheduler, as a flow mapping.
template() {
    echo "{metadata: {labels: {app: $1}, annotations: {$3}}, spec: {schedulerName: volcano," \
        "terminationGracePeriodSeconds: 0, ${restart:+restartPolicy: $restart,}" \
        "containers: [{name: main, image: none, resources: {requests: {cpu: \"$2\"}}}]}}"
}

# workload KIND NAME ANNOTATIONS TEMPLATE LINE...: of apps/v1; the lines go into its spec.
workload() {
    cat <<YAML
apiVersion: apps/v1
kind: $1
metadata: {name: $2, annotations: {$3}}
spec:
  selector: {matchLabels: {app: $2}}
  template: $4
$(shift 4 && for line; do echo "  $line"; done)
YAML
}

# grouped LABEL GROUP COUNT: so many of these pods are in the group.
grouped() {
    found=$(pods "$1" '.metadata.annotations.scheduling\.k8s\.io/group-name' | tr ' ' '\n' | grep -cxF "$2")
    echo "$found of $1 are in $2, expected $3" && [ "$found" -eq "$3" ]
}

# tidy: everything of the namespace goes, groups by themselves.
tidy() {
    kubectl delete deployments,statefulsets,daemonsets,replicasets,jobs.batch,pods --all && within 60 empty
}

start
kind argoproj.io/v1alpha1 Workflow workflows >/dev/null # early: garbage collectors look for new kinds now and then

# ---- pods ----

step 'a bare pod gets a group of one, in the queue it names' '
    enter pods && queue side 16 && kubectl create priorityclass steep --value=100 &&
        pod one 1 "" "labels: {app: one}" \
            "annotations: {$queue_name: side, volcano.sh/preemptable: \"true\", volcano.sh/network-topology-mode: soft}" |
        sed "s/^spec:/spec:\n  priorityClassName: steep/" | kubectl create -f - &&
        within 30 are app=one Running 1 &&
        group=podgroup/$(of pod/one) && within 30 is "$group" .status.phase Running &&
        field "$group" .spec.minMember 1 &&
        field "$group" .spec.minResources.cpu 1 && field "$group" .spec.queue side &&
        field "$group" .spec.priorityClassName steep && field "$group" .spec.networkTopology.mode soft &&
        field "$group" ".metadata.annotations.volcano\.sh/preemptable" true &&
        within 30 is queue/side .status.allocated.cpu 1
'
step 'a pod for another scheduler gets no group; the old annotation has no effect' '
    scheduler=nobody pod other 1 "" "labels: {app: other}" | kubectl create -f - &&
        pod two 1 "" "labels: {app: two}" "annotations: {scheduling.volcano.sh/group-name: mine}" |
        kubectl create -f - && within 30 are app=two Running 1 && only "$(of pod/one)" "$(of pod/two)" &&
        placed app=other 0
'
step 'a pod without a queue uses that of its namespace' '
    kubectl annotate namespace pods "$queue_name=side" && pod three 1 "" "labels: {app: three}" |
        kubectl create -f - &&
        within 30 are app=three Running 1 && field "podgroup/$(of pod/three)" .spec.queue side
'
step 'a pod with a missing queue says so, and runs once the queue exists' '
    pod four 1 "" "labels: {app: four}" "annotations: {$queue_name: late}" | kubectl create -f - &&
        within 30 told pods pod/four "unable to find queue" && queue late 2 && within 60 are app=four Running 1
'
step 'groups are deleted with their pods' '
    tidy
'
step 'a group starts when it has enough of every role' '
    enter roles && group trio "" 3 "minTaskMember: {ps: 1, worker: 2}" "minResources: {cpu: \"3\"}" |
        kubectl create -f - &&
        for i in 0 1 2; do
            pod "worker-$i" 1 "" "labels: {app: trio}" "annotations: {$in_group: trio, $as_task: worker}"
        done | kubectl create -f - && within 30 waits trio && placed app=trio 0 &&
        pod ps-0 1 "" "labels: {app: trio}" "annotations: {$in_group: trio, $as_task: ps}" |
        kubectl create -f - &&
        within 30 runs trio 4 && only trio
'
step 'a status overwritten by a client is corrected' '
    kubectl patch podgroup trio --type=json -p "[{\"op\":\"replace\",\"path\":\"/status\",\"value\":{}}]" &&
        within 30 runs trio 4 &&
        kubectl patch podgroup trio --type=merge -p "{\"status\":{\"phase\":\"Pending\",\"running\":1}}" &&
        within 30 runs trio 4
'
step 'pods continue when their group is deleted and keep their room; a new group of that name includes them' '
    free=$((4 - $(pods app=trio .spec.nodeName | tr " " "\n" | sort -u | wc -l))) &&
        kubectl delete podgroup trio && for i in 1 2 3 4; do pod "full-$i" 8 "" "labels: {app: full}"; done |
        kubectl create -f - && within 30 placed app=full "$free" && are app=trio Running 4 &&
        group trio "" 3 "minResources: {cpu: \"3\"}" | kubectl create -f - && within 30 runs trio 4 &&
        placed app=full "$free" && kubectl delete podgroup trio && tidy
'
step 'a finished group accepts later pods' '
    group again "" 1 "minResources: {cpu: \"1\"}" | kubectl create -f - &&
        pod first 1 "" "labels: {app: again}" "annotations: {$in_group: again, $brief}" | kubectl create -f - &&
        within 30 is podgroup/again .status.phase Completed &&
        pod second 1 "" "labels: {app: again}" "annotations: {$in_group: again}" | kubectl create -f - &&
        within 30 runs again 1 && kubectl delete podgroup again && tidy
'

# ---- workloads ----

step 'a Deployment has one group per revision, with the minimum it asks for' '
    enter workloads &&
        workload Deployment web "$min_member: \"2\", volcano.sh/color: blue" "$(template web 1 "$queue_name: side")" \
        "replicas: 3" "strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}" | kubectl create -f - &&
        within 30 are app=web Running 3 && group=$(of "$(kubectl get replicaset -l app=web -o name)") &&
        within 30 runs "$group" 3 &&
        grouped app=web "$group" 3 && only "$group" && field "podgroup/$group" .spec.minMember 2 &&
        field "podgroup/$group" .spec.minResources.cpu 2 && field "podgroup/$group" .spec.queue side &&
        field "podgroup/$group" ".metadata.annotations.volcano\.sh/color" blue
'
step 'a new revision gets its own group, and the old group is deleted' '
    old=$(kubectl get podgroups -o name) && kubectl set env deployment/web A=b &&
        kubectl rollout status deployment/web --timeout=60s && within 60 gone "$old" &&
        new=$(kubectl get podgroups -o "jsonpath={.items[*].metadata.name}") && grouped app=web "$new" 3 &&
        within 30 runs "$new" 3
'
step 'a Deployment scaled to 0 has no group, scaled up it has one again' '
    kubectl scale deployment web --replicas=0 && within 60 empty && kubectl scale deployment web --replicas=1 &&
        within 30 kubectl get pods -l app=web -o name &&
        within 30 waits "$(of "$(kubectl get pods -l app=web -o "jsonpath=replicaset/{.items[0].metadata.ownerReferences[0].name}")")" &&
        placed app=web 0 &&
        kubectl scale deployment web --replicas=2 && within 30 are app=web Running 2 && tidy
'
step 'a StatefulSet that needs three pods starts only with all three' '
    workload StatefulSet db "$min_member: \"3\"" "$(template db 7)" "replicas: 3" "serviceName: db" "podManagementPolicy: Parallel" \
        >"$dir/db.yaml" && for i in 1 2; do pod "full-$i" 8 "" "labels: {app: full}"; done |
        kubectl create -f - &&
        within 30 are app=full Running 2 && kubectl create -f "$dir/db.yaml" &&
        within 30 waits "$(of statefulset/db)" &&
        placed app=db 0 && kubectl delete pod full-1 && within 30 are app=db Running 3 &&
        grouped app=db "$(of statefulset/db)" 3
'
step 'a lost member is replaced, and the others stay' '
    stays=$(kubectl get pod db-0 -o "jsonpath={.metadata.uid}") && kubectl delete pod db-1 &&
        within 30 runs "$(of statefulset/db)" 3 && field pod/db-0 .metadata.uid "$stays"
'
step 'an ordered StatefulSet starts pod by pod' '
    tidy && workload StatefulSet row "" "$(template row 1)" "replicas: 2" "serviceName: row" |
        kubectl create -f - &&
        within 30 are app=row Running 2 && only "$(of statefulset/row)" &&
        within 30 runs "$(of statefulset/row)" 2 && tidy
'
step 'a ReplicaSet gets a group' '
    workload ReplicaSet bare "$min_member: \"2\"" "$(template bare 1)" "replicas: 2" | kubectl create -f - &&
        within 30 are app=bare Running 2 && only "$(of replicaset/bare)" &&
        within 30 runs "$(of replicaset/bare)" 2 && tidy
'
step 'a ReplicationController gets a group' '
    kubectl create -f - <<YAML && within 30 are app=old Running 2 && only "$(of replicationcontroller/old)" &&
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec: {replicas: 2, selector: {app: old}, template: $(template old 1)}
YAML
        within 30 runs "$(of replicationcontroller/old)" 2 && kubectl delete replicationcontroller old &&
        within 60 empty
'
step 'a DaemonSet has a pod on every node' '
    workload DaemonSet each "" "$(template each 1)" | kubectl create -f - && within 30 are app=each Running 4 &&
        [ "$(pods app=each .spec.nodeName | tr " " "\n" | sort -u | wc -l)" -eq 4 ] &&
        only "$(of daemonset/each)" && tidy
'
step 'a batch Job is a gang of the size it asks for, and completes' '
    kubectl create -f - <<YAML && within 30 waits "$(of job.batch/sums)" && placed app=sums 0 &&
apiVersion: batch/v1
kind: Job
metadata: {name: sums, annotations: {$min_member: "4"}}
spec:
  completions: 4
  parallelism: 3
  template: $(restart=Never template sums 1 "$brief")
YAML
        kubectl patch job.batch sums --type=merge -p "{\"spec\":{\"parallelism\":4}}" &&
        within 30 is job.batch/sums .status.succeeded 4 && only "$(of job.batch/sums)" &&
        within 30 is "podgroup/$(of job.batch/sums)" .status.phase Completed &&
        kubectl delete job.batch sums && within 60 empty
'

step 'a batch Job with one pod at a time keeps its group' '
    kubectl create -f - <<YAML && within 60 is job.batch/series .status.succeeded 3 &&
apiVersion: batch/v1
kind: Job
metadata: {name: series}
spec: {completions: 3, parallelism: 1, template: $(restart=Never template series 1 "$brief")}
YAML
        only "$(of job.batch/series)" && kubectl delete job.batch series && within 60 empty
'

# ---- programs that make Volcano Jobs ----

# vcjob NAME OWNER POLICIES TASK...: a Job; a task is NAME REPLICAS ANNOTATIONS POLICIES with | between.
vcjob() {
    cat <<YAML
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: "$1", ownerReferences: [$2]}
spec:
  schedulerName: volcano
  policies: [$3]
  ${plugins:+plugins: $plugins}
  tasks:
YAML
    shift 3
    for task; do
        IFS='|' read -r name replicas notes policies <<TASK
$task
TASK
        cat <<YAML
  - name: $name
    replicas: $replicas
    policies: [$policies]
    template:
      metadata: {annotations: {$notes}}
      spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
YAML
    done
}

# phase NAME PHASE
phase() {
    is "job.batch.volcano.sh/$1" .status.state.phase "$2"
}

step 'Argo: a step succeeds or fails as the phase of its Job says, and the Job goes with the workflow' '
    enter argo && object argoproj.io/v1alpha1 Workflow flow &&
        owner=$(ref argoproj.io/v1alpha1 Workflow flow) && vcjob good "$owner" "" "w|2|$brief" |
        kubectl create -f - &&
        vcjob bad "$owner" "" "w|2|$brief, sim.hekla.sh/exit-code: \"1\"" | kubectl create -f - &&
        within 30 phase good Completed && within 30 phase bad Failed && kubectl delete workflow flow &&
        within 60 gone job.batch.volcano.sh/good && within 60 gone job.batch.volcano.sh/bad && within 60 empty
'
ln -s "$(realpath "$HEKLA")" "$dir/vcctl"
step 'Cromwell: a job is run, found alive, and killed with vcctl alone' '
    enter cromwell && vcjob 1234567 "" "" "w|1" >"$dir/script.yaml" &&
        "$dir/vcctl" job run -n cromwell -f "$dir/script.yaml" >"$dir/out" &&
        [ "$(grep -o "[0-9][0-9]*" "$dir/out")" = 1234567 ] && within 30 phase 1234567 Running &&
        "$dir/vcctl" job view -n cromwell -N 1234567 && "$dir/vcctl" job delete -n cromwell -N 1234567 &&
        within 60 empty &&
        ! "$dir/vcctl" job view -n cromwell -N 1234567
'
step 'Paddle, as a Job: it is complete when the trainers are, and the servers go' '
    enter paddle &&
        vcjob ctr "" "{event: PodEvicted, action: RestartJob}, {event: PodFailed, action: RestartJob}" \
        "pserver|2" "trainer|2|sim.hekla.sh/duration: 1s|{event: TaskCompleted, action: CompleteJob}" |
        kubectl create -f - &&
        within 30 phase ctr Completed && field job.batch.volcano.sh/ctr .status.succeeded 2 &&
        within 60 gone pod/ctr-pserver-0 &&
        kubectl delete job.batch.volcano.sh ctr && within 60 empty
'
step 'Horovod: the launcher finds its workers in files and variables, and ssh keys' '
    enter horovod && plugins="{ssh: [], svc: []}" vcjob hvd "" "" \
        "master|1||{event: TaskCompleted, action: CompleteJob}" "mpi-worker|2" | kubectl create -f - &&
        within 30 phase hvd Running && k get configmap hvd-svc -o jsonpath="{.data.mpi_worker\.host}" &&
        prints "$(printf "hvd-mpi-worker-0.hvd\nhvd-mpi-worker-1.hvd")" &&
        k get pod hvd-master-0 -o "jsonpath={.spec.containers[0].volumeMounts[*].mountPath} {.spec.containers[0].env[*].name}" &&
        says /etc/volcano /root/.ssh VC_MPI_WORKER_HOSTS VC_MPI_WORKER_NUM &&
        kubectl delete job.batch.volcano.sh hvd && within 60 empty
'
step 'a user who may create Commands suspends and resumes' '
    enter commands && vcjob slow "" "" "w|1" | kubectl create -f - && within 30 phase slow Running &&
        owner=$(ref batch.volcano.sh/v1alpha1 Job slow) && for verb in AbortJob/Aborted ResumeJob/Running; do
            kubectl create -f - <<YAML && within 30 phase slow "${verb#*/}" || exit 1
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {generateName: slow-command-, ownerReferences: [$owner]}
action: ${verb%/*}
target: $owner
YAML
        done
        within 30 no commands && kubectl delete job.batch.volcano.sh slow && within 60 empty
'
stop TERM
step 'the server logged only the missing queue' '
    echo "exit status $status"
    ! grep -v "queue.scheduling.volcano.sh .*late.* not found\|recovered" "$dir/server" && [ "$status" -eq 0 ]
'
finish
