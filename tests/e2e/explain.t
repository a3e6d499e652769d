#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What kubectl learns from the server's OpenAPI documents: explain in full, checks before a write,
# server-side dry runs, and lists that apply merges by key. Debian's kubectl 1.20 reads version 2 as
# protobuf, a current one version 3; each gets a server of its own.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs_kubectls

# explains WHAT TEXT...: kubectl explain prints each text.
explains() {
    k explain "$1" && shift && says "$@"
}

# changed FILE FROM TO: the file with one text in place of another.
changed() {
    sed "s/$2/$3/" "$dir/$1" >"$dir/changed.yaml" && ! cmp -s "$dir/$1" "$dir/changed.yaml"
}

write_files() {
cat >"$dir/pod.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec:
  containers:
  - name: main
    image: busybox
    ports: [{containerPort: 80}]
    resources: {requests: {cpu: 1, memory: 64Mi}}
    livenessProbe: {httpGet: {port: 80}}
YAML
cat >"$dir/deployment.yaml" <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "busybox:1"}
YAML
cat >"$dir/side.json" <<'JSON'
{"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "sidecar:1"}]}}}}
JSON
cat >"$dir/queue.yaml" <<'YAML'
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 2, capability: {cpu: 4}}
YAML
cat >"$dir/job.yaml" <<'YAML'
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  queue: research
  minAvailable: 1
  tasks:
  - name: worker
    replicas: 1
    template:
      spec:
        containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
YAML
cat >"$dir/crontab.yaml" <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: A table of times.
        properties:
          spec:
            type: object
            required: [cronSpec]
            properties:
              cronSpec: {type: string, description: When it runs.}
              replicas: {type: integer, nullable: true}
              limit: {x-kubernetes-int-or-string: true}
YAML
cat >"$dir/tab.yaml" <<'YAML'
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: nightly}
spec: {cronSpec: "0 3 * * *", replicas: null, limit: 5}
YAML
}

steps() {
step 'explain pods' '
    explains pods "One or more containers that run together" "apiVersion <string>" "kind <string>" \
        "metadata <" "spec <" "status <" "What the pod runs, and where it may run."
'
step 'explain pods.spec.containers' '
    explains pods.spec.containers "containers <[]" "name <string> -required-" "image <string>" \
        "Image to run." "env <[]" "Environment variables."
'
step 'explain --recursive' '
    k explain pods.spec.containers.resources --recursive &&
    says "claims <[]" "name <string>" "limits <map[string]" "requests <map[string]"
'
step 'explain deployments.spec' '
    explains deployments.spec "Pods a deployment keeps running." "replicas <integer>" \
        "template <" "-required-"
'
step 'explain reaches the last field' '
    explains pod.spec.containers.livenessProbe.httpGet.port "Number or name of the port." &&
    explains job.spec.backoffLimit "backoffLimit <integer>" &&
    explains node.spec.taints.effect "NoSchedule" && explains pvc.spec.accessModes "ReadWriteOnce"
'
step 'explain vcjob' '
    explains vcjob "A batch job: tasks whose pods are scheduled together" "metadata <" &&
    explains vcjob.spec "minAvailable <integer>" "queue <string>" "Queue that pays for the job." &&
    explains vcjob.spec.tasks "replicas <integer>" "Number of pods." "template <Object>"
'
step 'explain describes the pods of a vcjob' '
    explains vcjob.spec.tasks.template.spec.containers "name <string> -required-" "Image to run."
'
step 'explain queue and podgroup' '
    explains queue.spec "weight <integer>" "Share of the cluster" "capability <map[string]" &&
    explains podgroup.status "phase <string>" "running <integer>" "Pods that run."
'
step 'explain knows every group version' '
    k api-resources --no-headers &&
    awk "!seen[\$(NF - 2)]++ {print \$1, \$(NF - 2)}" "$dir/out" >"$dir/names" &&
    [ -s "$dir/names" ] &&
    while read -r name version; do
        k explain "$name" --api-version="$version" </dev/null && says "DESCRIPTION:" || exit 1
    done <"$dir/names"
'
step 'explain refuses unknown fields' '
    refused "field \"nothing\" does not exist" explain pods.spec.nothing
'
step 'explain describes a custom resource' '
    k create -f "$dir/crontab.yaml" &&
    k wait --for=condition=Established crd/crontabs.stable.example.com --timeout=20s &&
    explains crontab "A table of times." "metadata <" "spec <Object>" &&
    explains ct.spec "cronSpec <string> -required-" "When it runs."
'
step 'explain follows changes of a definition' '
    changed crontab.yaml "When it runs." "At what time." && k apply -f "$dir/changed.yaml" &&
    explains crontab.spec.cronSpec "At what time."
'
step 'create accepts valid objects' '
    k create -f "$dir/pod.yaml" && k create -f "$dir/queue.yaml" && k create -f "$dir/job.yaml" &&
    k create -f "$dir/tab.yaml"
'
step 'create refuses unknown fields' '
    changed pod.yaml image: imagx: && refused "unknown field" create -f "$dir/changed.yaml" &&
    grep imagx "$dir/err" && changed job.yaml replicas: replicax: &&
    refused "unknown field" create -f "$dir/changed.yaml" && grep replicax "$dir/err"
'
step 'create refuses values of the wrong type' '
    changed pod.yaml "containerPort: 80" "containerPort: many" &&
    refused containerPort create -f "$dir/changed.yaml" &&
    changed queue.yaml "weight: 2" "weight: heavy" &&
    refused weight create -f "$dir/changed.yaml"
'
step 'create refuses objects without a required field' '
    k delete -f "$dir/tab.yaml" && changed tab.yaml "cronSpec: [^,]*," "" &&
    refused cronSpec create -f "$dir/changed.yaml"
'
step 'apply new, again and changed' '
    k apply -f "$dir/deployment.yaml" && says created &&
    k apply -f "$dir/deployment.yaml" && says unchanged &&
    changed deployment.yaml busybox:1 busybox:2 && k apply -f "$dir/changed.yaml" &&
    says configured
'
step 'apply merges containers by name' '
    k patch deployment web --patch "$(cat "$dir/side.json")" &&
    changed deployment.yaml busybox:1 busybox:3 && k apply -f "$dir/changed.yaml" &&
    k get deployment web -o "jsonpath={.spec.template.spec.containers[*].image}" &&
    says busybox:3 sidecar:1
'
step 'a server-side dry run stores nothing' '
    changed deployment.yaml busybox:1 busybox:4 &&
    k apply --dry-run=server -f "$dir/changed.yaml" && says "(server dry run)" &&
    k get deployment web -o "jsonpath={.spec.template.spec.containers[*].image}" && says busybox:3
'
step 'diff shows what apply would change' '
    changed deployment.yaml busybox:1 busybox:4 && ! k diff -f "$dir/changed.yaml" &&
    says "image: busybox:4"
'
}

with_each_kubectl
finish
