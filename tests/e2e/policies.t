#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Admission policies as their authors meet them: validating ones that refuse, warn and take
# parameters, mutating ones that add what is missing, conditions of webhooks, and streams to pods.
# HEKLA names the program; without kubectl there is nothing to do.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
needs_mounts
verb=up

# policy NAME SPEC: creates a ValidatingAdmissionPolicy for Deployments and waits until it is in force.
policy() {
    cat >"$dir/policy.yaml" <<-END
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicy
	metadata: {name: $1}
	spec:
	  matchConstraints:
	    resourceRules:
	    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
	$(echo "$2" | sed 's/^/  /')
	END
    k apply -f "$dir/policy.yaml"
}

# mutation NAME SPEC: creates a MutatingAdmissionPolicy for pods and ConfigMaps.
mutation() {
    cat >"$dir/policy.yaml" <<-END
	apiVersion: admissionregistration.k8s.io/v1
	kind: MutatingAdmissionPolicy
	metadata: {name: $1}
	spec:
	  matchConstraints:
	    resourceRules:
	    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, configmaps]}
	$(echo "$2" | sed 's/^/  /')
	END
    k apply -f "$dir/policy.yaml"
}

# bind KIND POLICY SPEC: binds the policy, for namespaces with the label policies=on.
bind() {
    cat >"$dir/binding.yaml" <<-END
	apiVersion: admissionregistration.k8s.io/v1
	kind: $1AdmissionPolicyBinding
	metadata: {name: $2-binding}
	spec:
	  policyName: $2
	  matchResources: {namespaceSelector: {matchLabels: {policies: 'on'}}}
	$(echo "$3" | sed 's/^/  /')
	END
    k apply -f "$dir/binding.yaml"
}

# deploy NAME REPLICAS [NAMESPACE]: writes a Deployment to $dir/deployment.yaml.
deploy() {
    cat >"$dir/deployment.yaml" <<-END
	apiVersion: apps/v1
	kind: Deployment
	metadata: {name: $1, namespace: ${3:-guarded}, labels: {team: blue}}
	spec:
	  replicas: $2
	  selector: {matchLabels: {app: $1}}
	  template:
	    metadata: {labels: {app: $1}}
	    spec: {containers: [{name: c, image: none, command: [sleep, '1']}]}
	END
}

# creates NAME REPLICAS: the Deployment is accepted (on trial: nothing is stored).
creates() {
    deploy "$@" && k create --dry-run=server -f "$dir/deployment.yaml"
}

# refuses TEXT NAME REPLICAS [OPTION...]: the Deployment is refused with the text.
refuses() {
    words=$1
    deploy "$2" "$3"
    shift 3
    refused "$words" create --dry-run=server -f "$dir/deployment.yaml" "$@"
}

# warned TEXT: the last command printed the warning.
warned() {
    grep -qF -- "$1" "$dir/err" && return 0
    echo "expected: $1"
    cat "$dir/err"
    return 1
}

# lift: deletes all policies and bindings.
lift() {
    k delete validatingadmissionpolicies,validatingadmissionpolicybindings --all &&
        k delete mutatingadmissionpolicies,mutatingadmissionpolicybindings --all
}

# never: writes a policy that refuses everything, and its binding, to $dir/never.yaml.
never() {
    cat >"$dir/never.yaml" <<-END
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicy
	metadata: {name: never}
	spec:
	  matchConstraints:
	    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]
	  validations: [{expression: "false", message: never}]
	---
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicyBinding
	metadata: {name: never}
	spec: {policyName: never, validationActions: [Deny]}
	END
}

start
k create namespace guarded && k label namespace guarded policies=on tier=gold &&
    k create namespace free || exit 1

step 'a policy without a binding does nothing, and draws no warning' '
    policy replicas "
validations: [{expression: \"object.spec.replicas <= 5\"}]" && [ ! -s "$dir/err" ] &&
        creates a 6
'
step 'with a binding it refuses, in the words of Kubernetes' '
    bind Validating replicas "validationActions: [Deny]" && [ ! -s "$dir/err" ] &&
        refuses "The deployments \"a\" is invalid: : ValidatingAdmissionPolicy '\''replicas'\'' with binding '\''replicas-binding'\'' denied request: failed expression: object.spec.replicas <= 5" a 6 &&
        creates a 5
'
step 'the status says which generation is in force' '
    field validatingadmissionpolicy/replicas .status.observedGeneration 1
'
step 'other namespaces and resources are not its concern' '
    creates a 6 free && k create configmap a -n guarded
'
step 'updates of a stored object are checked, its scale only if a rule names it' '
    deploy kept 2 && k create -f "$dir/deployment.yaml" &&
        refused "failed expression" patch deployment kept -n guarded --type=merge \
            -p "{\"spec\":{\"replicas\":7}}" &&
        k scale deployment kept -n guarded --replicas=7
'
step 'a change of the policy is in force at once' '
    policy replicas "
validations: [{expression: \"object.spec.replicas <= 8\"}]" &&
        field validatingadmissionpolicy/replicas .status.observedGeneration 2 &&
        creates a 8 && refuses "failed expression: object.spec.replicas <= 8" a 9
'
step 'a policy can say why, compute it, and give a reason' '
    policy replicas "
validations:
- {expression: \"object.spec.replicas > 1\", message: too few}
- expression: \"object.spec.replicas <= 5\"
  messageExpression: \"'\''want at most 5, not '\'' + string(object.spec.replicas)\"
  reason: Forbidden" &&
        refuses "denied request: too few" a 1 &&
        refuses "Error from server (Forbidden): error when creating" a 9 &&
        refuses "deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy '\''replicas'\'' with binding '\''replicas-binding'\'' denied request: want at most 5, not 9" a 9
'
step 'a message that cannot be computed is replaced by the expression' '
    policy replicas "
validations:
- {expression: \"object.spec.replicas <= 5\", messageExpression: \"object.spec.missing + '\'''\''\"}" &&
        refuses "failed expression: object.spec.replicas <= 5" a 9
'
step 'variables build upon each other' '
    policy replicas "
variables:
- {name: team, expression: \"object.metadata.?labels.team.orValue('\''none'\'')\"}
- {name: most, expression: \"variables.team == '\''blue'\'' ? 3 : 100\"}
- {name: unused, expression: \"object.spec.never.used\"}
validations:
- {expression: \"object.spec.replicas <= variables.most\", messageExpression: \"'\''most for '\'' + string(variables.team) + '\'' is '\'' + string(variables.most)\"}" &&
        creates a 3 && refuses "denied request: most for blue is 3" a 4
'
step 'the namespace, the request and the rights of the user are visible' '
    policy replicas "
validations:
- expression: \"namespaceObject.metadata.labels.tier == '\''gold'\'' && request.operation == '\''CREATE'\'' && request.userInfo.username == '\''admin'\'' && request.namespace == '\''guarded'\'' && request.dryRun && request.kind.kind == '\''Deployment'\'' && request.requestResource.resource == '\''deployments'\'' && oldObject == null\"
- expression: \"authorizer.group('\''apps'\'').resource('\''deployments'\'').namespace('\''x'\'').check('\''delete'\'').allowed() && authorizer.requestResource.check('\''create'\'').allowed()\"
- expression: \"!authorizer.serviceAccount('\''guarded'\'', '\''default'\'').group('\'''\'').resource('\''secrets'\'').namespace('\''guarded'\'').check('\''get'\'').allowed()\"" &&
        creates a 1
'
step 'a policy can ask for rights that RBAC alone does not' '
    k create role writer -n guarded --verb=create,get --resource=deployments.apps &&
        k create rolebinding writer -n guarded --role=writer --user=ann &&
        policy replicas "
validations:
- {expression: \"object.spec.replicas <= 5 || authorizer.requestResource.check('\''delete'\'').allowed()\", message: only who may delete may have many}" &&
        creates a 9 && creates a 5 &&
        k create --as ann --dry-run=server -f "$dir/deployment.yaml" &&
        refuses "only who may delete may have many" a 9 --as ann
'
step 'conditions choose the requests that a policy looks at' '
    policy replicas "
matchConditions:
- {name: not-the-exempt, expression: \"!object.metadata.name.startsWith('\''exempt'\'')\"}
validations: [{expression: \"object.spec.replicas <= 5\"}]" &&
        creates exempt 9 && refuses "failed expression" a 9
'
step 'an expression that fails refuses with failurePolicy Fail' '
    policy replicas "
validations: [{expression: \"object.spec.missing > 5\"}]" &&
        refuses "denied request: expression '\''object.spec.missing > 5'\'' resulted in error: no such key: missing" a 9
'
step 'and is ignored with failurePolicy Ignore' '
    policy replicas "
failurePolicy: Ignore
validations: [{expression: \"object.spec.missing > 5\"}]" && creates a 9
'
step 'a policy cannot cost more than Kubernetes allows' '
    policy replicas "
validations: [{expression: \"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f >= 0))))))\"}]" &&
        refuses "operation cancelled: actual cost limit exceeded" a 1
'
step 'expressions that do not compile are refused with their place' '
    refused "spec.validations[0].expression: Invalid value: \"object.spec.\": compilation failed: ERROR: <input>:1:" \
        patch validatingadmissionpolicy replicas --type=merge \
        -p "{\"spec\":{\"validations\":[{\"expression\":\"object.spec.\"}]}}" &&
        refused "spec.validations[0].expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to '\''params'\''" \
            patch validatingadmissionpolicy replicas --type=merge \
            -p "{\"spec\":{\"validations\":[{\"expression\":\"params.x == 1\"}]}}" &&
        refused "must evaluate to bool" patch validatingadmissionpolicy replicas --type=merge \
            -p "{\"spec\":{\"validations\":[{\"expression\":\"object.spec.replicas\"}]}}" &&
        refused "spec.variables[0].expression: Invalid value: \"1 +\": compilation failed" \
            patch validatingadmissionpolicy replicas --type=merge \
            -p "{\"spec\":{\"variables\":[{\"name\":\"v\",\"expression\":\"1 +\"}]}}" &&
        refused "spec.matchConditions[0].expression: Invalid value: \"request.nothing\"" \
            patch validatingadmissionpolicy replicas --type=merge \
            -p "{\"spec\":{\"matchConditions\":[{\"name\":\"c\",\"expression\":\"request.nothing\"}]}}"
'
step 'a binding can warn instead, and leave notes in the log' '
    policy replicas "
auditAnnotations: [{key: high, valueExpression: \"'\''wants '\'' + string(object.spec.replicas)\"}]
validations: [{expression: \"object.spec.replicas <= 5\"}]" &&
        bind Validating replicas "validationActions: [Warn, Audit]" && creates a 9 &&
        warned "Warning: Validation failed for ValidatingAdmissionPolicy '\''replicas'\'' with binding '\''replicas-binding'\'': failed expression: object.spec.replicas <= 5" &&
        within 10 grep -qF "annotation=\"replicas/high\" value=\"wants 9\"" "$dir/server" &&
        grep -qF "annotation=\"validation.policy.admission.k8s.io/validation_failure\"" "$dir/server"
'
step 'a binding that both denies and warns is refused' '
    refused "spec.validationActions: Invalid value" patch validatingadmissionpolicybinding \
        replicas-binding --type=merge -p "{\"spec\":{\"validationActions\":[\"Deny\",\"Warn\"]}}"
'

step 'parameters come from an object of any kind, here a custom one' '
    lift && k create -f - <<-END &&
	apiVersion: apiextensions.k8s.io/v1
	kind: CustomResourceDefinition
	metadata: {name: replicalimits.rules.example.com}
	spec:
	  group: rules.example.com
	  scope: Namespaced
	  names: {plural: replicalimits, singular: replicalimit, kind: ReplicaLimit}
	  versions:
	  - name: v1
	    served: true
	    storage: true
	    schema: {openAPIV3Schema: {type: object, properties: {maxReplicas: {type: integer}}}}
	END
        k wait --for=condition=Established crd/replicalimits.rules.example.com &&
        k create -f - <<-END &&
	apiVersion: rules.example.com/v1
	kind: ReplicaLimit
	metadata: {name: small, namespace: free, labels: {use: tests}}
	maxReplicas: 3
	END
        policy limit "
paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
validations:
- {expression: \"object.spec.replicas <= params.maxReplicas\", messageExpression: \"'\''most is '\'' + string(params.maxReplicas)\"}" &&
        bind Validating limit "
validationActions: [Deny]
paramRef: {name: small, namespace: free, parameterNotFoundAction: Deny}" &&
        creates a 3 && refuses "denied request: most is 3" a 4
'
step 'a change of the parameters is in force at once' '
    k patch replicalimit small -n free --type=merge -p "{\"maxReplicas\":10}" && creates a 4
'
step 'a missing parameter refuses, or is allowed' '
    k delete replicalimit small -n free &&
        refuses "denied request: failed to configure binding: no params found for policy binding with \`Deny\` parameterNotFoundAction" a 1 &&
        bind Validating limit "
validationActions: [Deny]
paramRef: {name: small, namespace: free, parameterNotFoundAction: Allow}" && creates a 100
'
step 'a selector chooses all parameters in the namespace of the request' '
    bind Validating limit "
validationActions: [Deny]
paramRef: {selector: {matchLabels: {use: tests}}, parameterNotFoundAction: Deny}" &&
        for most in 5 7; do
            k create -f - <<-END || return 1
	apiVersion: rules.example.com/v1
	kind: ReplicaLimit
	metadata: {name: most-$most, namespace: guarded, labels: {use: tests}}
	maxReplicas: $most
	END
        done
    creates a 5 && refuses "denied request: most is 5" a 6
'
step 'a policy whose parameters have no kind refuses' '
    policy limit "
paramKind: {apiVersion: rules.example.com/v1, kind: Nothing}
validations: [{expression: \"params.x == 1\"}]" &&
        refuses "ValidatingAdmissionPolicy '\''limit'\'' denied request: failed to configure policy: failed to find resource referenced by paramKind: '\''rules.example.com/v1, Kind=Nothing'\''" a 1
'
step 'a policy for everything cannot guard itself' '
    lift && never && k apply -f "$dir/never.yaml" &&
        refused "denied request: never" create configmap no -n free &&
        refused "denied request: never" delete configmap a -n guarded &&
        k label validatingadmissionpolicy never x=y &&
        k delete validatingadmissionpolicybinding never && k create configmap no -n free &&
        k delete validatingadmissionpolicy never
'

step 'a mutating policy adds a label by a JSON patch' '
    mutation label "
reinvocationPolicy: Never
matchConditions: [{name: configmaps, expression: \"request.kind.kind == '\''ConfigMap'\''\"}]
mutations:
- patchType: JSONPatch
  jsonPatch:
    expression: >-
      [
        JSONPatch{op: '\''test'\'', path: '\''/kind'\'', value: '\''ConfigMap'\''},
        JSONPatch{op: '\''add'\'', path: '\''/metadata/labels'\'', value: {}},
        JSONPatch{op: '\''add'\'', path: '\''/metadata/labels/'\'' + jsonpatch.escapeKey('\''example.com/by'\''),
                  value: request.userInfo.username}
      ]" && bind Mutating label "" && [ ! -s "$dir/err" ] && k create configmap marked -n guarded &&
        k get configmap marked -n guarded -o "jsonpath={.metadata.labels.example\\.com/by}" &&
        prints admin && k create configmap plain -n free &&
        k get configmap plain -n free -o "jsonpath={.metadata.labels}" && prints ""
'
step 'a mutating policy adds a container by an apply configuration' '
    mutation sidecar "
reinvocationPolicy: IfNeeded
matchConditions:
- {name: lacks-it, expression: \"request.kind.kind == '\''Pod'\'' && !object.spec.containers.exists(c, c.name == '\''mesh'\'')\"}
variables: [{name: image, expression: \"'\''mesh:v1'\''\"}]
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: >-
      Object{
        metadata: Object.metadata{annotations: {'\''mesh'\'': '\''yes'\''}},
        spec: Object.spec{
          containers: [Object.spec.containers{name: '\''mesh'\'', image: variables.image}]
        }
      }" && bind Mutating sidecar "" &&
        k run app -n guarded --image=none --dry-run=server \
            -o "jsonpath={.spec.containers[*].name} {.spec.containers[*].image} {.metadata.annotations.mesh}" &&
        prints "app mesh none mesh:v1 yes"
'
step 'mutations come before validations' '
    policy unused "
validations: [{expression: \"true\"}]" && k apply -f - <<-END &&
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicy
	metadata: {name: meshed}
	spec:
	  matchConstraints:
	    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
	  validations: [{expression: "object.spec.containers.exists(c, c.name == '\''mesh'\'')"}]
	END
        bind Validating meshed "validationActions: [Deny]" &&
        k run app -n guarded --image=none --dry-run=server &&
        k delete mutatingadmissionpolicybinding sidecar-binding &&
        refused "denied request: failed expression" run app -n guarded --image=none --dry-run=server
'
step 'a policy sees again what a later one has changed, if it asks for that' '
    lift && mutation a-count "
reinvocationPolicy: IfNeeded
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: \"Object{metadata: Object.metadata{annotations: {'\''labels'\'': string(object.metadata.?labels.orValue({}).size())}}}\"" &&
        mutation b-label "
reinvocationPolicy: Never
mutations:
- patchType: ApplyConfiguration
  applyConfiguration:
    expression: \"Object{metadata: Object.metadata{labels: {'\''late'\'': '\''yes'\''}}}\"" &&
        bind Mutating a-count "" && bind Mutating b-label "" &&
        k create configmap counted -n guarded --dry-run=server \
            -o "jsonpath={.metadata.annotations.labels}" && prints 1
'
step 'what a mutating policy cannot do refuses, with the names of policy and binding' '
    lift && mutation wrong "
reinvocationPolicy: Never
mutations:
- patchType: ApplyConfiguration
  applyConfiguration: {expression: \"Object{spec: Object.spec{containers: [Object.spec.containers{name: object.spec.containers[0].name, command: ['\''x'\'']}]}}\"}" &&
        bind Mutating wrong "" &&
        refused "policy '\''wrong'\'' with binding '\''wrong-binding'\'' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].command" \
            run app -n guarded --image=none &&
        mutation wrong "
reinvocationPolicy: Never
mutations:
- patchType: ApplyConfiguration
  applyConfiguration: {expression: \"Object{spec: Object.wrong{}}\"}" &&
        refused "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\"" \
            run app -n guarded --image=none &&
        mutation wrong "
reinvocationPolicy: Never
failurePolicy: Ignore
mutations:
- patchType: JSONPatch
  jsonPatch: {expression: \"[JSONPatch{op: '\''remove'\'', path: '\''/no/such/path'\''}]\"}" &&
        k run app -n guarded --image=none --dry-run=server
'
step 'mutations of the wrong type are refused' '
    refused "spec.mutations[0].applyConfiguration.expression: Invalid value: \"{}\": must evaluate to Object" \
        patch mutatingadmissionpolicy wrong --type=merge \
        -p "{\"spec\":{\"mutations\":[{\"patchType\":\"ApplyConfiguration\",\"applyConfiguration\":{\"expression\":\"{}\"}}]}}" &&
        refused "spec.mutations[0].jsonPatch.expression: Invalid value: \"['\''x'\'']\": must evaluate to list(JSONPatch)" \
            patch mutatingadmissionpolicy wrong --type=merge \
            -p "{\"spec\":{\"mutations\":[{\"patchType\":\"JSONPatch\",\"jsonPatch\":{\"expression\":\"['\''x'\'']\"}}]}}"
'

step 'commands in pods can be refused' '
    lift && k apply -f - <<-END && k apply -f - <<-END &&
	apiVersion: v1
	kind: Pod
	metadata: {name: shell, namespace: guarded}
	spec:
	  schedulerName: volcano
	  terminationGracePeriodSeconds: 1
	  containers: [{name: main, image: none, command: [sleep, "600"]}]
	END
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicy
	metadata: {name: no-shell}
	spec:
	  matchConstraints:
	    resourceRules:
	    - {apiGroups: [""], apiVersions: [v1], operations: [CONNECT], resources: [pods/exec, pods/attach]}
	  validations:
	  - expression: "request.subResource == '\''exec'\'' && object.command[0] != '\''sh'\''"
	    messageExpression: "'\''no '\'' + request.subResource + '\'' in '\'' + request.name"
	    reason: Forbidden
	END
        bind Validating no-shell "validationActions: [Deny]" &&
        k wait --for=jsonpath={.status.phase}=Running pod/shell -n guarded &&
        k exec shell -n guarded -- echo hello && prints hello &&
        refused "ValidatingAdmissionPolicy '\''no-shell'\'' with binding '\''no-shell-binding'\'' denied request: no exec in shell" \
            exec shell -n guarded -- sh -c true &&
        refused "no attach in shell" attach shell -n guarded
'
step 'a policy decides about proxies and forwarded ports of a pod' '
    k apply -f - <<-END &&
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingAdmissionPolicy
	metadata: {name: no-ports}
	spec:
	  matchConstraints:
	    resourceRules:
	    - {apiGroups: [""], apiVersions: [v1], operations: [CONNECT], resources: [pods/proxy, pods/portforward]}
	  validations:
	  - expression: "request.subResource == '\''proxy'\'' && object.path == '\''/open'\''"
	    messageExpression: "'\''no '\'' + request.subResource + '\'' of '\'' + request.name"
	    reason: Forbidden
	END
        bind Validating no-ports "validationActions: [Deny]" &&
        refused "no portforward of shell" port-forward pod/shell -n guarded :9 &&
        refused "no proxy of shell:9" get --raw /api/v1/namespaces/guarded/pods/shell:9/proxy/closed &&
        refused "no proxy of shell:9" create --raw /api/v1/namespaces/guarded/pods/shell:9/proxy/closed -f /dev/null &&
        refused "error trying to reach service" get --raw /api/v1/namespaces/guarded/pods/shell:9/proxy/open
'
step 'a mutating policy can change a command' '
    k apply -f - <<-END &&
	apiVersion: admissionregistration.k8s.io/v1
	kind: MutatingAdmissionPolicy
	metadata: {name: prefix}
	spec:
	  matchConstraints:
	    resourceRules:
	    - {apiGroups: [""], apiVersions: [v1], operations: [CONNECT], resources: [pods/exec]}
	  reinvocationPolicy: Never
	  mutations:
	  - patchType: JSONPatch
	    jsonPatch:
	      expression: >-
	        [JSONPatch{op: "add", path: "/command/0", value: "echo"},
	         JSONPatch{op: "add", path: "/command/-", value: "a & b=%c"}]
	END
        bind Mutating prefix "" && k exec shell -n guarded -- hello && prints "hello a & b=%c"
'
step 'conditions of a webhook decide whether it is called' '
    lift && k apply -f - <<-END &&
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingWebhookConfiguration
	metadata: {name: dead}
	webhooks:
	- name: dead.example.com
	  clientConfig: {url: "https://127.0.0.1:1/"}
	  rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
	  namespaceSelector: {matchLabels: {policies: "on"}}
	  sideEffects: None
	  admissionReviewVersions: [v1]
	  matchConditions:
	  - {name: asked, expression: "has(object.metadata.annotations) && object.metadata.annotations.ask == '\''yes'\''"}
	END
        [ ! -s "$dir/err" ] && k create configmap quiet -n guarded &&
        refused "failed calling webhook \"dead.example.com\"" annotate configmap quiet -n guarded ask=yes &&
        refused "configmaps \"quiet\" is forbidden: expression '\''has(object.metadata.annotations)" \
            annotate configmap quiet -n guarded tell=yes &&
        refused "webhooks[0].matchConditions[0].expression: Invalid value: \"variables.x\": compilation failed: ERROR: <input>:1:1: undeclared reference" \
            patch validatingwebhookconfiguration dead --type=json \
            -p "[{\"op\":\"replace\",\"path\":\"/webhooks/0/matchConditions/0/expression\",\"value\":\"variables.x\"}]" &&
        k delete validatingwebhookconfiguration dead
'
step 'policies outlive a restart of the server' '
    policy replicas "
validations: [{expression: \"object.spec.replicas <= 5\"}]" &&
        bind Validating replicas "validationActions: [Deny]" && refuses "failed expression" a 6
'
stop TERM
start
step 'and hold after it' 'refuses "failed expression: object.spec.replicas <= 5" a 6 && creates a 5'
step 'a server starts whose policies refuse everything' '
    lift && never && k apply -f "$dir/never.yaml"
'
stop TERM
start
step 'and they can be removed' '
    refused "denied request: never" create configmap later -n free &&
        k delete validatingadmissionpolicybinding never && k create configmap later -n free
'
step 'pods and workloads are removed at the end' '
    k delete deployments,pods --all -n guarded --wait --timeout=20s
'
stop TERM
step 'the server ends as it should' '[ "$status" -eq 0 ]'

finish
