#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What programs written for Kubernetes rely on, one contract per step: pods that name no scheduler,
# the forms of answers that other clients ask for, and the names under which their writes are
# recorded. Two simulated nodes run the pods. HEKLA names the program; needs kubectl and python3.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl curl python3
verb=up options='--no-node --sim-nodes 2'

# get PATH HEADER...: an answer of the API with these request headers.
get() {
    path=$1
    shift
    for header in "$@"; do
        set -- "$@" -H "$header"
        shift
    done
    curl -sS -A client --cacert "$data/ca.crt" -H "Authorization: Bearer $token" "$@" "$url$path" \
        >"$dir/out"
}

# phase POD PHASE: as field, but for within.
phase() {
    field "pod/$1" .status.phase "$2"
}

# told POD TEXT: an event about the pod has the text.
told() {
    k get events --field-selector "involvedObject.name=$1" && says "$2"
}

start

step 'a pod that names no scheduler starts' '
    k run plain --image=x --command -- sleep 1000 && within 10 phase plain Running
'
step 'a Deployment and a batch Job that name no scheduler start as well' '
    k create deployment web --image=x --replicas=2 -- sleep 1000 &&
        k create job once --image=x -- true &&
        k rollout status deployment/web --timeout=20s &&
        k wait --for=jsonpath={.status.active}=1 job/once --timeout=20s
'
step 'explain works for a pod that names no scheduler' '
    "$HEKLA" explain pod/plain >"$dir/out" &&
        says "default/plain is Running on node"
'
step 'a pod whose scheduler does not run gets an event that says so' '
    k run stray --image=x --overrides="{\"spec\":{\"schedulerName\":\"nobody\"}}" --command -- true &&
        within 20 told stray "no scheduler has taken this pod: it names the scheduler '"'nobody'"'"
'
step 'a client that accepts only meta.k8s.io/v1beta1 gets such a Table' '
    get /api/v1/namespaces/default/pods \
        "Accept: application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json" &&
        says "\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1beta1\"" "\"rows\":[{\"cells\":[\"once-"
'
step 'a column may show the last of a list' '
    kubectl apply -f - <<YAML &&
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trains.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Train, plural: trains}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns:
    - {name: State, type: string, jsonPath: ".status.conditions[-1:].type"}
YAML
        k wait --for=condition=Established crd/trains.example.com --timeout=10s &&
        kubectl create -f - <<YAML &&
apiVersion: example.com/v1
kind: Train
metadata: {name: t}
status: {conditions: [{type: Created}, {type: Succeeded}]}
YAML
        k get trains && says "NAME STATE" "t Succeeded"
'
# shared VALUE: the manifest of a ConfigMap.
shared() {
    printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"a":"%s"}}' "$1"
}

step 'a client that names no field manager is recorded under its own name' '
    shared 1 | kubectl apply --server-side -f - &&
        curl -sS -A "myprog/1.2 (linux)" --cacert "$data/ca.crt" -H "Authorization: Bearer $token" \
            -X PATCH -H "Content-Type: application/merge-patch+json" -d "{\"data\":{\"a\":\"2\"}}" \
            "$url/api/v1/namespaces/default/configmaps/shared" >/dev/null &&
        shared 3 | refused "conflict with \"myprog\"" apply --server-side -f -
'
step 'a watch over a WebSocket sends a text frame per event' '
    python3 tests/e2e/websocket.py "$url" "$data/ca.crt" "$token" \
        /api/v1/namespaces/default/configmaps?watch=true >"$dir/out" &
    reader=$!
    k create configmap seen --from-literal=a=1 && wait "$reader" &&
        says "HTTP/1.1 101 Switching Protocols" "ADDED ConfigMap seen"
'
step 'every user may read nodes, queues and priority classes, and no pods of others' '
    k create serviceaccount guest &&
        k auth can-i list nodes --as=system:serviceaccount:default:guest \
            --as-group=system:authenticated && prints yes &&
        for kind in nodes queues.scheduling.volcano.sh priorityclasses.scheduling.k8s.io; do
            k get "$kind" --as=system:serviceaccount:default:guest --as-group=system:authenticated ||
                exit 1
        done &&
        refused "cannot list resource \"pods\"" get pods --as=system:serviceaccount:default:guest \
            --as-group=system:authenticated
'
step 'nodes, queues and top work for a user with rights in one namespace' '
    k create rolebinding guest --clusterrole=edit --serviceaccount=default:guest &&
        guest=$(kubectl create token guest) &&
        sed "s/token: .*/token: $guest/" "$data/kubeconfig" >"$dir/guest" &&
        for verb in nodes queues "top --once -n default"; do
            # shellcheck disable=SC2086 # options must be split into words
            "$HEKLA" $verb --kubeconfig "$dir/guest" >"$dir/out" 2>"$dir/err" ||
                { echo "$verb"; cat "$dir/err"; exit 1; }
        done
'
stop TERM
finish
