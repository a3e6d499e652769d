#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Answers in protobuf, as typed Go clients ask for them, read by a decoder of the wire format. HEKLA
# names the program; needs kubectl and python3.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3
needs_embedded 'the kinds are those of the embedded server'

# proto WHAT: runs these checks of protobuf.py.
proto() {
    timeout 120 tests/e2e/protobuf.py "$url" "$data/ca.crt" "$token" "$1"
}

start

step 'objects of many kinds exist' '
    cat >"$dir/objects.yaml" <<-END
	apiVersion: apps/v1
	kind: Deployment
	metadata: {name: d}
	spec:
	  selector: {matchLabels: {a: b}}
	  template:
	    metadata: {labels: {a: b}}
	    spec:
	      containers:
	      - name: c
	        image: i
	        resources: {requests: {cpu: 100m, memory: 1Gi}}
	        readinessProbe: {httpGet: {port: web, path: /}}
	        env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
	---
	apiVersion: v1
	kind: Service
	metadata: {name: s}
	spec: {selector: {a: b}, ports: [{port: 80, targetPort: web}]}
	---
	apiVersion: v1
	kind: Secret
	metadata: {name: s}
	data: {k: dg==}
	---
	apiVersion: v1
	kind: Pod
	metadata: {name: p, labels: {z: "1", a: "2"}}
	spec:
	  containers: [{name: c, image: i}]
	  tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]
	---
	apiVersion: batch/v1
	kind: CronJob
	metadata: {name: c}
	spec:
	  schedule: "0 0 * * *"
	  jobTemplate:
	    spec:
	      template:
	        spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
	---
	apiVersion: networking.k8s.io/v1
	kind: NetworkPolicy
	metadata: {name: np}
	spec: {podSelector: {}, ingress: [{ports: [{port: 80}, {port: web}]}]}
	---
	apiVersion: apiextensions.k8s.io/v1
	kind: CustomResourceDefinition
	metadata: {name: cars.example.com}
	spec:
	  group: example.com
	  scope: Namespaced
	  names: {plural: cars, kind: Car}
	  versions:
	  - name: v1
	    served: true
	    storage: true
	    schema: {openAPIV3Schema: {type: object}}
	END
    k create -f "$dir/objects.yaml" && k create job j --image=i -- true &&
    within 10 k get cars &&
    k create -f - <<-END
	apiVersion: example.com/v1
	kind: Car
	metadata: {name: c}
	END
'
step 'every kind is listed and read in protobuf, and custom resources in JSON' 'proto kinds'
step 'refusals are Status objects in protobuf' 'proto errors'
step 'tables are JSON, metadata and scales are protobuf, the order of types counts' 'proto forms'
step 'a long list is complete' 'proto long'
step 'watches are framed events' 'proto watch'

stop TERM
content

finish
