#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# HyperNodes from labels of nodes, and a gang that stays within one of them. Nodes are simulated.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/operators.sh
cat >"$dir/scheduler.conf" <<'YAML'
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}, {name: network-topology-aware}]
YAML
options="--conf $dir/scheduler.conf $options"

# config ENABLED: what is to be discovered.
config() {
    kubectl apply -f - <<YAML
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-controller-configmap, namespace: volcano-system}
data:
  volcano-controller.conf: |
    networkTopologyDiscovery:
    - source: label
      enabled: $1
      config:
        networkTopologyTypes:
          ib:
          - nodeLabel: example.com/spine
          - nodeLabel: example.com/leaf
          - nodeLabel: kubernetes.io/hostname
YAML
}

# leaf NODE LEAF: the switch it is at.
leaf() {
    kubectl label --overwrite node "$1" example.com/spine=s0 "example.com/leaf=$2"
}

# domains COUNT
domains() {
    found=$(kubectl get hypernodes -o name | wc -l) && echo "$found HyperNodes, expected $1" && [ "$found" -eq "$1" ]
}

# holds LABEL=VALUE TIER COUNT: the HyperNode that stands for it is of the tier and has so many nodes.
holds() {
    found=$(kubectl get hypernodes -l "$1" -o 'jsonpath={.items[*].spec.tier} {.items[*].status.nodeCount}') &&
        echo "$1: tier and nodes $found, expected $2 $3" && [ "$found" = "$2 $3" ]
}

# member NAME: a pod of the gang, which fills a node.
member() {
    pod "$1" 8 "" "labels: {app: near}" "annotations: {$in_group: near}"
}

start
kubectl get namespace volcano-system >/dev/null 2>&1 || kubectl create namespace volcano-system >/dev/null

step 'discovery is off by default' '
    leaf sim-00001 a && leaf sim-00002 b && leaf sim-00003 b && config false && config true && within 30 domains 3
'
step 'leaves contain nodes, the spine contains leaves, and each status has its number of nodes' '
    within 30 holds example.com/leaf=a 1 1 && within 30 holds example.com/leaf=b 1 2 &&
        within 30 holds example.com/spine=s0 2 3 &&
        k get hypernodes -l volcano.sh/network-topology-source=label -o name && says hypernode-ib-tier1- hypernode-ib-tier2-
'
step 'a gang that is to stay within a leaf waits while no leaf has room for it' '
    enter near && group near "" 3 "minResources: {cpu: \"24\"}" "networkTopology: {mode: hard, highestTierAllowed: 1}" |
        kubectl create -f - && for i in 1 2 3; do member "near-$i"; done | kubectl create -f - &&
        within 30 waits near && placed app=near 0
'
step 'the gang starts when a node has moved to that leaf' '
    leaf sim-00004 b && within 30 holds example.com/leaf=b 1 3 && within 30 runs near 3 &&
        pods app=near .spec.nodeName | tr " " "\n" | sort | tr "\n" " " >"$dir/out" &&
        prints "sim-00002 sim-00003 sim-00004 "
'
step 'a leaf without nodes is deleted' '
    leaf sim-00001 b && within 30 domains 2 && within 30 holds example.com/leaf=b 1 4
'
step 'a mistake in the configuration is reported, and nothing is deleted' '
    kubectl patch -n volcano-system configmap volcano-controller-configmap --type=merge \
        -p "{\"data\":{\"volcano-controller.conf\":\"networkTopologyDiscovery: [\"}}" &&
        within 30 told volcano-system configmap/volcano-controller-configmap "volcano-controller.conf: line" && domains 2
'
stop TERM
content
finish
