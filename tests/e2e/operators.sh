# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# How tests of operators begin, and the words they are written in, on top of lib.sh: the objects an
# operator makes, and what it reads. Every operator gets a namespace of its own, so that what is in it is all there is.

. tests/e2e/lib.sh
needs kubectl
follower=

end_others() {
    [ -z "$follower" ] || kill "$follower" 2>/dev/null
}

verb=up options='--no-node --sim-nodes 4 --sim-cpu 8 --sim-memory 32Gi --sim-model duration=forever'

# Annotations of pods: the group, the role in it, and how long a simulated container is to run.
# shellcheck disable=SC2034 # used by the tests
in_group=scheduling.k8s.io/group-name as_task=volcano.sh/task-spec brief='sim.hekla.sh/duration: 500ms'
# Long enough for a phase that people read to be written, which takes its time.
awhile='sim.hekla.sh/duration: 8s'

# enter NAMESPACE: makes it; everything that follows happens in it.
enter() {
    kubectl create namespace "$1" && within 20 kubectl get -n "$1" serviceaccount default &&
        kubectl config set-context --current --namespace "$1"
}

# kind API KIND PLURAL: a kind that some operator brings, with any content.
kind() {
    kubectl create -f - <<YAML && kubectl wait --for=condition=Established --timeout=20s "crd/$3.${1%/*}"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: $3.${1%/*}
  annotations: {api-approved.kubernetes.io: "unapproved, a stand-in for tests"}
spec:
  group: ${1%/*}
  scope: Namespaced
  names: {kind: $2, plural: $3, singular: $(echo "$2" | tr A-Z a-z)}
  versions:
  - name: ${1#*/}
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
}

# object API KIND NAME: what a user makes, and the operator acts on.
object() {
    kubectl create -f - <<YAML
apiVersion: $1
kind: $2
metadata: {name: $3}
YAML
}

# ref API KIND NAME: how its parts name it as their owner.
ref() {
    case $1 in
        */*) type=$2.${1#*/}.${1%/*} ;;
        *) type=$2 ;;
    esac
    uid=$(kubectl get "$type" "$3" -o 'jsonpath={.metadata.uid}') || return 1
    echo "{apiVersion: $1, kind: $2, name: $3, uid: $uid, controller: true, blockOwnerDeletion: true}"
}

# group NAME OWNER MIN LINE...: a PodGroup as typed clients send it, empty fields and all. OWNER is a
# ref, or nothing; the lines go into the spec. Some clients set the phase at once: $state.
group() {
    cat <<YAML
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: $1
  creationTimestamp: null
  ownerReferences: [$2]
spec:
  minMember: $3
$(shift 3 && for line; do echo "  $line"; done)
status: {${state:+phase: $state}}
YAML
}

# pod NAME CPU OWNER LINE...: a pod for Volcano's scheduler; the lines go into its metadata.
pod() {
    cat <<YAML
---
apiVersion: v1
kind: Pod
metadata:
  name: $1
  creationTimestamp: null
  ownerReferences: [$3]
$(cpu=$2 && shift 3 && for line; do echo "  $line"; done)
spec:
  schedulerName: ${scheduler:-volcano}
  restartPolicy: Never
  containers: [{name: main, image: none, resources: {requests: {cpu: "$2"}}}]
status: {}
YAML
}

# queue NAME CPU: with so much at most; it is open when this returns.
queue() {
    kubectl create -f - <<YAML && within 20 is "queue/$1" .status.state Open
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: $1}
spec: {weight: 1, capability: {cpu: "$2"}}
YAML
}

# raise QUEUE CPU: its limit.
raise() {
    kubectl patch queue "$1" --type=merge -p '{"spec":{"capability":{"cpu":"'"$2"'"}}}'
}

# is TYPE/NAME PATH VALUE: as field, but for within.
is() {
    value=$(kubectl get "$1" -o "jsonpath={$2}") && echo "$1 $2: $value, expected $3" && [ "$value" = "$3" ]
}

# pods LABEL PATH: that field of each pod that has the label, in a line.
pods() {
    kubectl get pods -l "$1" -o "jsonpath={.items[*]$2}"
}

# placed LABEL COUNT: so many of these pods have a node.
placed() {
    found=$(pods "$1" .spec.nodeName | wc -w) && echo "$found of $1 have a node, expected $2" &&
        [ "$found" -eq "$2" ]
}

# are LABEL PHASE COUNT: so many of these pods are in the phase.
are() {
    found=$(pods "$1" .status.phase | tr ' ' '\n' | grep -c "^$2\$")
    echo "$found of $1 are $2, expected $3" && [ "$found" -eq "$3" ]
}

# runs GROUP COUNT: the group is Running, and so many pods of it are.
runs() {
    is "podgroup/$1" .status.phase Running && is "podgroup/$1" .status.running "$2"
}

# waits GROUP: the scheduler has looked at it, and had no room for all that it needs.
waits() {
    is "podgroup/$1" '.status.conditions[?(@.type=="Unschedulable")].status' True
}

# only NAME...: these are all the PodGroups of the namespace.
only() {
    want=$(for name; do echo "podgroup.scheduling.volcano.sh/$name"; done | sort)
    have=$(kubectl get podgroups -o name | sort) && echo "$have, expected $want" && [ "$have" = "$want" ]
}

# no TYPE: there are none in the namespace.
no() {
    [ -z "$(kubectl get "$1" -o name)" ]
}

# empty: there are no pods and no PodGroups in the namespace.
empty() {
    left=$(kubectl get pods,podgroups -o name) && echo "left: $left" && [ -z "$left" ]
}

# told NAMESPACE TYPE/NAME TEXT: an event of that object says so.
told() {
    kubectl get events -n "$1" --field-selector "involvedObject.name=${2#*/}" -o 'jsonpath={.items[*].message}' |
        grep -F -- "$3"
}

# follow: from here on the phases of all PodGroups are written down.
follow() {
    kubectl get podgroups -A --watch -o 'jsonpath={.metadata.namespace}/{.metadata.name} {.status.phase}{"\n"}' \
        >"$dir/phases" 2>"$dir/follower" &
    follower=$!
}

# went GROUP PHASES: through these phases, in this order, and no others.
went() {
    ways=$(awk -v name="$(kubectl config view --minify -o 'jsonpath={..namespace}')/$1" \
        '$1 == name && $2 != "" && $2 != last { last = $2; line = line sep $2; sep = " " } END { print line }' \
        "$dir/phases") && echo "$1 went through $ways, expected $2" && [ "$ways" = "$2" ]
}
