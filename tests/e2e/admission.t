#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The mistakes people make most in Volcano's manifests, and what kubectl tells them; and what a
# plain job looks like once it is stored. No node runs.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
verb=up options=--no-node

# job SPEC: a manifest of the job "mine" in $dir/job.yaml; POD in the spec is a template.
job() {
    template='{spec: {containers: [{name: main, image: busybox}]}}'
    printf 'apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: mine}\nspec: %s\n' \
        "$(echo "$1" | sed "s/POD/$template/g")" >"$dir/job.yaml"
}

# bad_job SPEC TEXT: the job is refused by the webhook of jobs with the text.
bad_job() {
    job "$1"
    refused "admission webhook \"validatejob.volcano.sh\" denied the request: $2" \
        apply -f "$dir/job.yaml"
}

# queue NAME SPEC: a manifest in $dir/queue.yaml.
queue() {
    printf 'apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\n' "$1" \
        >"$dir/queue.yaml"
    printf 'spec: %s\n' "$2" >>"$dir/queue.yaml"
}

# opened NAME: the queue of $dir/queue.yaml is applied, and opened by its controller.
opened() {
    k apply -f "$dir/queue.yaml" && within 10 field "queue/$1" .status.state Open
}

start

# ---- what is filled in ----

step 'the queues that every cluster has' '
    field queue/root .spec.reclaimable false && field queue/default .spec.reclaimable true
'
step 'a plain job gets its defaults' '
    job "{tasks: [{replicas: 2, template: POD}, {name: extra, replicas: 3, minAvailable: 1,
        template: POD}]}" &&
    k apply -f "$dir/job.yaml" &&
    field vcjob/mine .spec.queue default && field vcjob/mine .spec.schedulerName volcano &&
    field vcjob/mine .spec.maxRetry 3 && field vcjob/mine .spec.minAvailable 3 &&
    field vcjob/mine ".spec.tasks[*].name" "default0 extra" &&
    field vcjob/mine ".spec.tasks[*].minAvailable" "2 1" &&
    field vcjob/mine ".spec.tasks[*].maxRetry" "3 3"
'
step 'the same manifest can be applied again and changes nothing' '
    k get vcjob mine -o jsonpath="{.metadata.generation}" && was=$(cat "$dir/out") &&
    k apply -f "$dir/job.yaml" && field vcjob/mine .metadata.generation "$was"
'
step 'a plugin is added with the plugins it depends on' '
    job "{plugins: {mpi: []}, tasks: [{name: master, replicas: 1, template: POD}]}" &&
    sed -i s/mine/mpi/ "$dir/job.yaml" && k apply -f "$dir/job.yaml" &&
    field vcjob/mpi .spec.plugins.svc "[]" && field vcjob/mpi .spec.plugins.ssh "[]"
'
step 'a plain queue gets its defaults' '
    queue plain "{}" && k apply -f "$dir/queue.yaml" && field queue/plain .spec.weight 1 &&
    field queue/plain .spec.reclaimable true
'
# The webhook server wants the state that the controller writes, as Volcano's does.
step 'a queue and a job for it in one file' '
    queue fresh "{}" && { ! on_kube || opened fresh; } && job "{queue: fresh, tasks: [{replicas: 1, template: POD}]}" &&
    sed -i s/mine/first/ "$dir/job.yaml" &&
    { cat "$dir/queue.yaml"; echo ---; cat "$dir/job.yaml"; } >"$dir/both.yaml" &&
    k apply -f "$dir/both.yaml" && field vcjob/first .spec.queue fresh
'
k delete vcjob mine >"$dir/log"

# ---- jobs ----

step 'a job without tasks is refused' '
    bad_job "{}" "No task specified in job spec"
'
step 'a refusal has the form of a webhook refusal, without reason and kind' '
    job "{}" && refused "Error from server: error when creating \"$dir/job.yaml\": admission webhook" \
        apply -f "$dir/job.yaml"
'
step 'a job in a queue that does not exist is refused' '
    bad_job "{queue: nope, tasks: [{name: w, replicas: 1, template: POD}]}" \
        "unable to find job queue: queue.scheduling.volcano.sh \"nope\" not found;"
'
step 'a job in a closed queue is refused' '
    queue closed "{}" && opened closed && "$HEKLA" vcctl queue operate -n closed -a close &&
    within 10 field queue/closed .status.state Closed &&
    bad_job "{queue: closed, tasks: [{name: w, replicas: 1, template: POD}]}" \
        "can only submit job to queue with state \`Open\`, queue \`closed\` status is \`Closed\`;"
'
step 'minAvailable above the number of replicas is refused' '
    bad_job "{minAvailable: 5, tasks: [{name: w, replicas: 4, template: POD}]}" \
        "job '\''minAvailable'\'' should not be greater than total replicas in tasks;"
'
step 'two tasks with the same name are refused' '
    bad_job "{tasks: [{name: w, replicas: 1, template: POD}, {name: w, replicas: 1, template: POD}]}" \
        "duplicated task name w;"
'
step 'a misspelt policy is refused' '
    bad_job "{policies: [{event: PodFailed, action: RestartPods}],
        tasks: [{name: w, replicas: 1, template: POD}]}" \
        "1 error occurred: 	* spec.policies: Invalid value: \"RestartPods\": invalid policy action"
'
step 'a misspelt plugin is refused' '
    bad_job "{plugins: {pytroch: []}, tasks: [{name: w, replicas: 1, template: POD}]}" \
        "unable to find job plugin: pytroch;"
'
step 'a container without an image is refused' '
    bad_job "{tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: main}]}}}]}" \
        "spec.task[0].template.spec.containers[0].image: Required value."
'
step 'tasks that wait for each other are refused' '
    bad_job "{tasks: [{name: a, replicas: 1, dependsOn: {name: [b]}, template: POD},
        {name: b, replicas: 1, dependsOn: {name: [a]}, template: POD}]}" \
        "job has dependencies between tasks, but doesn'\''t form a directed acyclic graph(DAG);"
'
step 'a task name in capitals is refused by the schema'\''s to refuse' '
    job "{tasks: [{name: Worker, replicas: 1, template: POD}]}" &&
    refused "The Job \"mine\" is invalid: spec.tasks[0].name: Invalid value: \"Worker\"" \
        apply -f "$dir/job.yaml"
'
step 'the image of an existing job cannot change' '
    refused "job updates may not change fields other than \`minAvailable\`, \`tasks[*].replicas under spec\` and \`PriorityClassName\`" \
        patch vcjob first --type=json \
        -p "[{\"op\":\"replace\",\"path\":\"/spec/tasks/0/template/spec/containers/0/image\",\"value\":\"x\"}]" &&
    field vcjob/first ".spec.tasks[0].template.spec.containers[0].image" busybox
'
step 'an existing job may grow' '
    k patch vcjob first --type=json \
        -p "[{\"op\":\"replace\",\"path\":\"/spec/tasks/0/replicas\",\"value\":4}]" &&
    field vcjob/first ".spec.tasks[0].replicas" 4
'

# ---- queues and the rest ----

step 'a guarantee without a deserved amount is refused' '
    queue promise "{guarantee: {resource: {cpu: 1}}}" &&
    refused "admission webhook \"validatequeue.volcano.sh\" denied the request: requestBody.spec.deserved.cpu: Invalid value: \"<nil>\": deserved[cpu] must be >= guarantee[cpu]=1" \
        apply -f "$dir/queue.yaml"
'
step 'a child queue larger than its parent is refused' '
    queue small "{capability: {cpu: 10}}" && k apply -f "$dir/queue.yaml" &&
    queue large "{parent: small, capability: {cpu: 20}}" &&
    refused "queue large capability[cpu]=20 exceeds its ancestor'\''s capability=10" \
        apply -f "$dir/queue.yaml"
'
step 'the default queue cannot be deleted' '
    refused "admission webhook \"validatequeue.volcano.sh\" denied the request: \`default\` queue can not be deleted" \
        delete queue default &&
    field queue/default .metadata.name default
'
step 'an invalid value in a budget annotation is refused' '
    printf "%s\n" "apiVersion: v1" "kind: Pod" "metadata: {name: p, annotations: {volcano.sh/jdb-min-available: \"0\"}}" \
        "spec: {schedulerName: volcano, containers: [{name: c, image: i}]}" >"$dir/pod.yaml" &&
    refused "admission webhook \"validatepod.volcano.sh\" denied the request: invalid value <\"0\"> for volcano.sh/jdb-min-available" \
        apply -f "$dir/pod.yaml" &&
    sed s/min-available/max-unavailable/ "$dir/pod.yaml" >"$dir/other.yaml" &&
    refused "for volcano.sh/jdb-max-unavailable" apply -f "$dir/other.yaml"
'
step 'an invalid schedule is refused' '
    printf "%s\n" "apiVersion: batch.volcano.sh/v1alpha1" "kind: CronJob" "metadata: {name: c}" \
        "spec: {schedule: \"0 0 * * * *\", jobTemplate: {spec: {}}}" >"$dir/cron.yaml" &&
    refused "admission webhook \"validatecronjob.volcano.sh\" denied the request: schedule is not a valid cron expression" \
        apply -f "$dir/cron.yaml"
'
step 'a flow whose steps form a cycle is refused' '
    printf "%s\n" "apiVersion: flow.volcano.sh/v1alpha1" "kind: JobFlow" "metadata: {name: f}" \
        "spec: {flows: [{name: a, dependsOn: {targets: [a]}}]}" >"$dir/flow.yaml" &&
    refused "admission webhook \"validatejobflow.volcano.sh\" denied the request: jobflow Flow is not DAG" \
        apply -f "$dir/flow.yaml"
'

stop TERM
content
finish
