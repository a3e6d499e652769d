#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla cordon, uncordon and drain: pods move to other nodes, finished ones and those of DaemonSets
# stay, and disruption budgets are kept.
cd "$(dirname "$0")/../.." || exit 1
HEKLA_BACKEND= # always the embedded server
. tests/e2e/lib.sh
needs kubectl
verb=up options='--no-node --sim-nodes 3 --sim-model duration=forever'

# pods_of NODE SELECTOR PHASE: how many there are.
pods_of() {
    kubectl get pods -A -l "$2" --field-selector "spec.nodeName=$1,status.phase=$3" -o name | wc -l
}

# workload KIND NAME [LINE]: three pods that run until they are ended.
workload() {
    cat <<YAML
apiVersion: apps/v1
kind: $1
metadata: {name: $2}
spec:
  $3
  selector: {matchLabels: {app: $2}}
  template:
    metadata: {labels: {app: $2}}
    spec:
      schedulerName: volcano
      terminationGracePeriodSeconds: 1
      $4
      containers: [{name: main, image: none, command: [sleep, infinity], resources: {requests: {cpu: 10m}}}]
YAML
}

# permits N: the budget of that many disruptions, as a disruption controller would count it.
permits() {
    curl -sS --fail --cacert "$data/ca.crt" -H "Authorization: Bearer $token" -X PATCH -H "Content-Type: application/merge-patch+json" \
        -d "{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":$1,\"currentHealthy\":2,\"desiredHealthy\":$((2 - $1)),\"expectedPods\":2}}" \
        "$url/apis/policy/v1/namespaces/default/poddisruptionbudgets/guard/status"
}

running() {
    [ "$(kubectl get pods -l "app=$1" --field-selector status.phase=Running -o name | wc -l)" -eq "$2" ]
}

start
within 20 sh -c '[ "$(kubectl get nodes | grep -cw Ready)" -eq 3 ]'
node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')

step 'a node that is cordoned takes no pods until it is uncordoned' '
    gives 0 cordon "$node" && prints "$node cordoned" && field "node/$node" .spec.unschedulable true &&
        gives 0 cordon "$node" && prints "$node already cordoned" &&
        gives 0 uncordon "$node" && prints "$node uncordoned" && field "node/$node" .spec.unschedulable "" &&
        gives 0 uncordon "$node" && prints "$node already uncordoned"
'
step 'mistakes are reported' '
    gives 2 cordon && grep -qF "the name of a node is missing" "$dir/err" && gives 2 drain nowhere && grep -qF "no node" "$dir/err" &&
        ! grep -q namespace "$dir/err" && gives 2 drain && gives 2 drain a b && gives 2 drain a --timeout soon
'
kubectl cordon -l 'kubernetes.io/hostname!='"$node" >/dev/null
workload Deployment web 'replicas: 3' | kubectl create -f - >/dev/null
workload DaemonSet each '' 'tolerations: [{operator: Exists}]' | kubectl create -f - >/dev/null
cat >"$dir/done.yaml" <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: finished}
spec:
  completions: 20
  parallelism: 20
  template:
    metadata: {annotations: {sim.hekla.sh/duration: 10ms}}
    spec:
      schedulerName: volcano
      restartPolicy: Never
      containers: [{name: main, image: none, command: ["true"], resources: {requests: {cpu: 10m}}}]
YAML
kubectl create -f "$dir/done.yaml" >/dev/null
step 'the pods are where they should be' '
    within 20 running web 3 && within 20 sh -c "[ \"\$(kubectl get pods -l job-name=finished --field-selector status.phase=Succeeded -o name | wc -l)\" -eq 20 ]" &&
        [ "$(pods_of "$node" app=web Running)" -eq 3 ]
'
kubectl uncordon -l 'kubernetes.io/hostname' >/dev/null
step 'a dry run says what would happen and changes nothing' '
    gives 0 drain "$node" --dry-run && says "would be evicted (dry run)" "leaving 20 finished" && field "node/$node" .spec.unschedulable "" &&
        [ "$(pods_of "$node" app=web Running)" -eq 3 ]
'
step 'drain moves the pods that run and leaves those that have finished' '
    gives 0 drain "$node" --timeout 30s && says "$node cordoned" "leaving 20 finished" "$node drained: 3 pods have left it" &&
        [ "$(grep -c evicted "$dir/out")" -eq 3 ] && [ "$(pods_of "$node" app=web Running)" -eq 0 ] &&
        [ "$(pods_of "$node" job-name=finished Succeeded)" -eq 20 ] && within 20 running web 3
'
step 'a node that is empty is drained at once' '
    gives 0 drain "$node" && says "$node already cordoned" "$node drained: 0 pods have left it"
'
step 'pods without a controller are named, and evicted only with --force' '
    gives 0 uncordon "$node" && kubectl run bare --image=none --overrides="{\"spec\":{\"schedulerName\":\"volcano\",\"terminationGracePeriodSeconds\":1,\"nodeName\":\"$node\"}}" -- sleep infinity &&
        within 20 sh -c "kubectl get pod bare | grep -w Running" && gives 2 drain "$node" &&
        grep -qF "1 pod has no controller that would create it again (default/bare); --force deletes it" "$dir/err" && k get pod bare &&
        gives 0 drain "$node" --force --grace-period 0 --timeout 30s && says "default/bare evicted" && gone pod/bare
'
step 'a disruption budget holds: the eviction is repeated until it is allowed' '
    gives 0 uncordon "$node" && kubectl cordon -l "kubernetes.io/hostname!=$node" &&
        workload Deployment guarded "replicas: 2" | kubectl create -f - && within 20 running guarded 2 && [ "$(pods_of "$node" app=guarded Running)" -eq 2 ] &&
        printf "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: guard}\nspec: {minAvailable: 2, selector: {matchLabels: {app: guarded}}}\n" |
            kubectl create -f - && kubectl uncordon -l kubernetes.io/hostname &&
        permits 0 &&
        gives 124 drain "$node" --timeout 2s && says "waits for its disruption budget" && grep -qF "2 of 2 pods of" "$dir/err" &&
        [ "$(pods_of "$node" app=guarded Running)" -eq 2 ] &&
        permits 2 &&
        gives 0 drain "$node" --timeout 40s && says "drained: 2 pods have left it" && within 20 running guarded 2
'
stop TERM
content
finish
