#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What hekla manifests prints, applied to an API server, and the programs at work with the rights it
# gives them.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
daemons=

end_others() {
    for d in $daemons; do
        halt "$d" KILL
    done
}

ns=volcano-system

# m ARG...: the manifests, in $dir/out.
m() {
    "$HEKLA" manifests "$@" >"$dir/out"
}

# kinds: how many objects of which kinds the last manifests had.
kinds() {
    awk '/^kind: / { n[$2]++ } END { for (k in n) print k "=" n[k] }' "$dir/out" | sort | xargs
}

# kinds_are TEXT
kinds_are() {
    got=$(kinds)
    [ "$got" = "$1" ] && return 0
    printf 'expected: %s\n  actual: %s\n' "$1" "$got"
    return 1
}

# wrong TEXT ARG...: refused in one line.
wrong() {
    stumbles manifests "$@"
}

# may YES_OR_NO ACCOUNT VERB RESOURCE [ARG...]
may() {
    want=$1 account=$2
    shift 2
    got=$("$kubectl" auth can-i "$@" --as="system:serviceaccount:$ns:$account" 2>/dev/null)
    [ "$got" = "$want" ] && return 0
    echo "$account: $*: expected $want, got $got"
    return 1
}

# account NAME: its kubeconfig becomes $dir/NAME.
account() {
    secret=$("$kubectl" create token "$1" -n "$ns") || return 1
    user=$("$kubectl" config view -o jsonpath='{.users[0].name}')
    cp "$KUBECONFIG" "$dir/$1"
    KUBECONFIG="$dir/$1" "$kubectl" config set-credentials "$user" --token="$secret" >/dev/null
}

# employ NAME VERB ACCOUNT ARG...: a daemon that is who the account is.
employ() {
    name=$1 verb_=$2 who=$3
    shift 3
    account "$who" || return 1
    "$HEKLA" "$verb_" --kubeconfig "$dir/$who" "$@" >"$dir/$name.out" 2>"$dir/$name.err" &
    eval "$name=$!"
    daemons="$daemons $name"
    within 30 grep -q ' started' "$dir/$name.out"
}

# has_authority: the API server can trust the admission server.
has_authority() {
    [ -n "$("$kubectl" get mutatingwebhookconfiguration volcano-admission-service-jobs-mutate \
        -o jsonpath="{.webhooks[0].clientConfig.caBundle}")" ]
}

# allowed NAME: nobody refused anything to that daemon.
allowed() {
    ! grep -i 'forbidden\|cannot watch' "$dir/$1.err"
}

start

step 'without options, everything that runs inside a cluster is printed' '
    m
    kinds_are "ClusterRole=5 ClusterRoleBinding=3 ConfigMap=2 CustomResourceDefinition=14 Deployment=3 MutatingWebhookConfiguration=4 Namespace=1 Role=3 RoleBinding=3 Service=3 ServiceAccount=3 ValidatingWebhookConfiguration=8"
'

step '--webhook-url prints what programs outside the cluster need' '
    m --webhook-url https://10.0.0.5:8443 --with agent
    kinds_are "ClusterRole=6 ClusterRoleBinding=4 CustomResourceDefinition=14 MutatingWebhookConfiguration=4 Namespace=1 Role=4 RoleBinding=4 ServiceAccount=4 ValidatingWebhookConfiguration=8"
    says "url: https://10.0.0.5:8443/jobs/mutate"
'

step 'several replicas have budgets' '
    m --replicas 2
    kinds_are "ClusterRole=5 ClusterRoleBinding=3 ConfigMap=2 CustomResourceDefinition=14 Deployment=3 MutatingWebhookConfiguration=4 Namespace=1 PodDisruptionBudget=3 Role=3 RoleBinding=3 Service=3 ServiceAccount=3 ValidatingWebhookConfiguration=8"
'

step 'parts can be chosen, added and left out' '
    m --only accounts,queues --with namespace --without accounts
    kinds_are "Namespace=1 Queue=2"
'

step 'namespace, image and webhooks can be chosen' '
    m --namespace batch --image registry.example/hekla:9 --without crds \
        --enabled-admission /jobs/mutate,/queues/validate
    kinds_are "ClusterRole=5 ClusterRoleBinding=3 ConfigMap=2 Deployment=3 MutatingWebhookConfiguration=1 Namespace=1 Role=3 RoleBinding=3 Service=3 ServiceAccount=3 ValidatingWebhookConfiguration=1"
    says "image: registry.example/hekla:9" "enabled-admission=/jobs/mutate,/queues/validate" \
        "--leader-elect-resource-namespace=batch" && silent volcano-system
'

step 'configurations are read from files' '
    echo "actions: allocate" >"$dir/conf"
    m --only config --scheduler-conf "$dir/conf"
    says "actions: allocate" && silent enqueue
'

step 'JSON output is one list' '
    m -o json
    python3 -c "
import json, sys
doc = json.load(open(sys.argv[1]))
assert doc[\"kind\"] == \"List\" and len(doc[\"items\"]) == 52, len(doc[\"items\"])" "$dir/out"
'

step 'every definition is small enough for the annotation of kubectl apply' '
    m --only crds -o json
    python3 -c "
import json, sys
for crd in json.load(open(sys.argv[1]))[\"items\"]:
    assert len(json.dumps(crd)) < 262144, crd[\"metadata\"][\"name\"]" "$dir/out"
'

step 'bad input is reported in one line' '
    wrong "option --namespace is '\''Batch'\''" --namespace Batch &&
        wrong "option --only has '\''pods'\''" --only pods &&
        wrong "option --replicas is '\''0'\''" --replicas 0 &&
        wrong "option --webhook-url is '\''http://x'\''" --webhook-url http://x &&
        wrong "option --image is '\'''\''" --image "" &&
        wrong "enabled admission /x not found" --enabled-admission /x &&
        wrong "cannot open '\''$dir/none'\''" --scheduler-conf "$dir/none" &&
        wrong "unexpected '\''x'\''" x
'

step 'kubectl applies all objects in one run' '
    m --replicas 2 --with agent && cp "$dir/out" "$dir/all"
    k apply -f "$dir/all"
    says "deployment.apps/volcano-scheduler created" \
        "validatingwebhookconfiguration.admissionregistration.k8s.io/volcano-admission-service-queues-validate created"
'

# kubectl 1.34 writes budgets each time, by the rules of their selectors.
step 'applying again changes nothing' '
    m --replicas 2 --with agent --without budgets && cp "$dir/out" "$dir/again"
    k apply -f "$dir/again"
    silent configured && silent created
'

step 'the server accepts the objects in a dry run' '
    k apply --dry-run=server -f "$dir/all"
'

step 'server-side apply accepts the objects, too' '
    k apply --server-side --force-conflicts -f "$dir/all"
'

step 'the scheduler may bind and evict pods, and no more than that' '
    may yes volcano-scheduler create pods --subresource=binding &&
        may yes volcano-scheduler delete pods &&
        may no volcano-scheduler create pods &&
        may no volcano-scheduler patch nodes &&
        may no volcano-scheduler get secrets &&
        may no volcano-scheduler delete queues
'

step 'each program can use only its own lease and certificates' '
    may yes volcano-scheduler update leases/volcano -n "$ns" &&
        may no volcano-scheduler update leases/vc-controller-manager -n "$ns" &&
        may no volcano-scheduler update leases/volcano -n default &&
        may yes volcano-controllers update leases/vc-controller-manager -n "$ns" &&
        may yes volcano-admission get secrets/volcano-admission-secret -n "$ns" &&
        may no volcano-admission get secrets/other -n "$ns" &&
        may no volcano-admission update mutatingwebhookconfigurations/other
'

step 'pods can be created while the webhooks do not answer' '
    k create -f - <<EOF
apiVersion: v1
kind: Pod
metadata: {name: lone}
spec: {schedulerName: volcano, containers: [{name: c, image: busybox}]}
EOF
    k delete pod lone --now
'
on_kube ||
step 'the server logs which webhook did not answer, and why' '
    ignored="an admission webhook failed and is ignored.*mutatepod.volcano.sh.*no endpoints available"
    grep -q "$ignored" "$dir/server" || { cat "$dir/server"; exit 1; }
    grep -v "an admission webhook failed and is ignored" "$dir/server" >"$dir/rest"
    cat "$dir/rest" >"$dir/server"
'

m --only webhooks && mv "$dir/out" "$dir/webhooks"
k delete -f "$dir/webhooks"
reviews=$("$HEKLA" manifests --only deployments | sed -n 's/.*- --enabled-admission=//p')
employ hooks webhook-manager volcano-admission --webhook-namespace "$ns" \
    --enabled-admission="$reviews" --listen-address 127.0.0.1 --port 0 \
    --webhook-url https://127.0.0.1
within 30 grep -q ' ready at ' "$dir/hooks.out"
address=$(sed -n 's/.* ready at \(https:[^ ]*\)$/\1/p' "$dir/hooks.out")
step 'webhooks can be registered by address' '
    m --only webhooks --webhook-url "$address" && cp "$dir/out" "$dir/webhooks"
    k apply --server-side -f "$dir/webhooks"
'

step 'the authority of the admission server is published' '
    within 30 has_authority
'

step 'queues are applied once their kind is there' '
    m --only queues && cp "$dir/out" "$dir/queues"
    k apply --dry-run=server -f "$dir/queues"
'

employ sched scheduler volcano-scheduler --feature-gates=SchedulingGatesQueueAdmission=true
employ ctrl controller-manager volcano-controllers
step 'the programs work with the rights of the manifests' '
    within 30 field queue/default .status.state Open
'

step 'a job becomes pods, a service and a PodGroup' '
    k create -f - <<EOF
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: work}
spec:
  minAvailable: 1
  plugins: {svc: [], ssh: []}
  tasks:
  - name: t
    replicas: 1
    template: {spec: {containers: [{name: c, image: busybox}]}}
EOF
    within 30 k get pod/work-t-0 service/work secret/work-ssh configmap/work-svc &&
        within 30 sh -c "$kubectl get podgroups -o jsonpath={.items[0].status.phase} | grep -qx Inqueue"
'

step 'after another apply the webhooks have their authority' '
    k apply --server-side --force-conflicts -f "$dir/webhooks"
    within 30 has_authority
'

step 'no request of the programs was refused' '
    allowed sched && allowed ctrl && allowed hooks
'

step 'the program works under Volcanos names and options' '
    ln -s "$HEKLA" "$dir/vc-scheduler"
    "$dir/vc-scheduler" --version | grep -q "^hekla "
    timeout 20 "$dir/vc-scheduler" --logtostderr --enable-healthz=true --leader-elect=false \
        --kube-api-qps=2000 --schedule-period=1s --node-worker-threads=20 -v=3 "2>&1" \
        --kubeconfig "$dir/none" 2>"$dir/err"
    grep -q "cannot open .*none" "$dir/err" && ! grep -q unexpected "$dir/err"
'

for d in $daemons; do
    halt "$d" TERM
done
stop TERM
content
echo "1..$count"
[ "$failed" -eq 0 ]
