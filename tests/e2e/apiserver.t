#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla apiserver as users meet it: its start, curl, kubectl, restarts and crashes.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh

# api METHOD PATH [BODY]: a request of the administrator; the answer is in $dir/out, its code printed.
api() {
    curl -sS --max-time 20 --cacert "$data/ca.crt" -o "$dir/out" -w '%{http_code}' -X "$1" \
        -A test -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
        ${3:+--data "$3"} "$url$2"
}

# answers CODE METHOD PATH [BODY]
answers() {
    want=$1
    shift
    got=$(api "$@")
    [ "$got" = "$want" ] && return 0
    echo "$1 $2: expected $want, got $got"
    cat "$dir/out"
    return 1
}

# body NAME VALUE: a config map.
body() {
    printf '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%s"},"data":{"k":"%s"}}' "$1" "$2"
}

octal() {
    printf '\\%03o' "$1"
}

# proto VERSION KIND: an object x without a spec, in protobuf.
proto() {
    # shellcheck disable=SC2059 # the text is the format
    printf "k8s\\000\\012$(octal $((4 + ${#1} + ${#2})))\\012$(octal ${#1})$1\\022$(octal ${#2})$2"
    printf '\022\005\012\003\012\001x'
}

# proto_code VERSION KIND PATH: creates it under PATH and prints the code.
proto_code() {
    proto "$1" "$2" >"$dir/proto"
    curl -sS --max-time 20 --cacert "$data/ca.crt" -o "$dir/out" -w '%{http_code}' -A test \
        -H "Authorization: Bearer $token" -H 'Content-Type: application/vnd.kubernetes.protobuf' \
        --data-binary "@$dir/proto" "$url/apis/$1/$3"
}

maps=/api/v1/namespaces/default/configmaps

start
step 'the server prints its address and its kubeconfig' '
    grep -qx "hekla apiserver ready at https://127.0.0.1:[0-9]*, kubeconfig $data/kubeconfig" "$dir/line"
'
step 'only the owner can read the data directory' '
    [ -z "$(find "$data" -perm /077)" ]
'
step 'a request without credentials is refused' '
    [ "$(curl -sS --cacert "$data/ca.crt" -o /dev/null -w "%{http_code}" "$url$maps")" = 401 ]
'
step 'health and version need no credentials' '
    [ "$(curl -sS --cacert "$data/ca.crt" "$url/readyz")" = ok ] &&
    curl -sS --cacert "$data/ca.crt" "$url/version" | grep -q gitVersion
'
step 'the certificate is valid for localhost, too' '
    curl -sS --cacert "$data/ca.crt" "https://localhost:${url##*:}/healthz"
'
step 'a config map is created, read, listed and changed' '
    answers 201 POST $maps "$(body a 1)" && says "\"uid\":" &&
    answers 200 GET $maps/a && says "\"k\":\"1\"" &&
    answers 200 GET $maps && says "\"kind\":\"ConfigMapList\"" &&
    answers 200 PUT $maps/a "$(body a 2)" && says "\"k\":\"2\""
'
step 'creating an existing config map is a conflict' '
    answers 409 POST $maps "$(body a 1)" && says "configmaps \\\"a\\\" already exists"
'
step 'a request whose body means something else than its path changes nothing' '
    apps=/apis/apps/v1/namespaces/default/deployments
    container="{\"name\":\"c\",\"image\":\"i\"}"
    labels="{\"app\":\"x\"}"
    answers 201 POST $apps "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2,\"selector\":{
        \"matchLabels\":$labels},\"template\":{\"metadata\":{\"labels\":$labels},\"spec\":{
        \"containers\":[$container]}}}}" &&
    answers 400 PUT $apps/d/scale "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\"}" &&
    answers 200 GET $apps/d && says "\"replicas\":2" &&
    answers 201 POST "/api/v1/namespaces/default/pods" "{\"metadata\":{\"name\":\"p\"},\"spec\":{
        \"containers\":[$container]}}" &&
    answers 400 POST /api/v1/namespaces/default/pods/p/eviction "{\"metadata\":{\"name\":\"q\"}}" &&
    answers 400 POST /api/v1/namespaces/default/pods/p/binding "{\"metadata\":{\"name\":\"q\"},
        \"target\":{\"name\":\"n\"}}" &&
    answers 200 GET /api/v1/namespaces/default/pods/p && ! grep -q nodeName "$dir/out" &&
    answers 422 DELETE $maps/a "{\"dryRun\":[\"Some\"]}" && says "DeleteOptions.meta.k8s.io" &&
    answers 400 DELETE $maps/a "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}" &&
    answers 200 DELETE $maps/a "{\"dryRun\":[\"All\"]}" && says "\"status\":\"Success\"" &&
    answers 200 GET $maps/a &&
    answers 200 DELETE /api/v1/namespaces/default/pods/p && answers 200 DELETE $apps/d
'
step 'a watch shows the change' '
    curl -sSN --max-time 20 --cacert "$data/ca.crt" -H "Authorization: Bearer $token" -A test \
        "$url$maps?watch=true&fieldSelector=metadata.name%3Da" | head -n 1 >"$dir/out"
    says "{\"type\":\"ADDED\"" && says "\"k\":\"2\""
'
step 'kinds that are only stored are taken in protobuf, as Go clients send them' '
    bad=
    while read -r version kind path; do
        got=$(proto_code "$version" "$kind" "$path")
        [ "$got" = 201 ] || bad="$bad $kind: expected 201, got $got $(cat "$dir/out");"
    done <<END
apps/v1 ControllerRevision namespaces/default/controllerrevisions
discovery.k8s.io/v1 EndpointSlice namespaces/default/endpointslices
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations
storage.k8s.io/v1 CSIDriver csidrivers
storage.k8s.io/v1 CSIStorageCapacity namespaces/default/csistoragecapacities
storage.k8s.io/v1 VolumeAttachment volumeattachments
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration prioritylevelconfigurations
networking.k8s.io/v1 ServiceCIDR servicecidrs
networking.k8s.io/v1 IPAddress ipaddresses
END
    [ -z "$bad" ] || { echo "$bad"; false; }
'
step 'policies in protobuf are read and checked' '
    bad=
    while read -r version kind path; do
        got=$(proto_code "$version" "$kind" "$path")
        [ "$got" = 422 ] && grep -qF "\"x\\\" is invalid: " "$dir/out" ||
            bad="$bad $kind: expected 422, got $got $(cat "$dir/out");"
    done <<END
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings
END
    [ -z "$bad" ] || { echo "$bad"; false; }
'
# patched TYPE BODY TEXT CODE: the patch of the config map a is refused with that code and text.
patched() {
    code=$(curl -sS --max-time 20 --cacert "$data/ca.crt" -o "$dir/out" -w '%{http_code}' -A test \
        -X PATCH -H "Authorization: Bearer $token" -H "Content-Type: application/$1" \
        --data-binary "$2" "$url$maps/a?fieldManager=t")
    [ "$code" = "$4" ] && says "$3" && return 0
    echo "expected: $4 $3"
    echo "got:      $code $(cat "$dir/out")"
    return 1
}
step 'a patch cannot change what an object is' '
    for type in merge-patch+json strategic-merge-patch+json; do
        patched $type "{\"kind\":7}" "cannot unmarshal number into Go struct field .kind of type string" 422 &&
        patched $type "{\"apiVersion\":[]}" "array into Go struct field .apiVersion" 422 &&
        patched $type "{\"metadata\":\"x\"}" "string into Go struct field ConfigMap.metadata" 422 || exit 1
    done
    patched json-patch+json "[{\"op\":\"add\",\"path\":\"/kind\",\"value\":7}]" \
        "number into Go struct field .kind" 422 &&
    patched json-patch+json "[{\"op\":\"add\",\"path\":\"/metadata\",\"value\":[]}]" \
        "array into Go struct field ConfigMap.metadata" 422 &&
    patched json-patch+json "[{\"op\":\"replace\",\"path\":\"\",\"value\":7}]" \
        "number into Go value" 422 &&
    patched apply-patch+yaml "{kind: ConfigMap, metadata: {name: a}}" \
        "invalid object type: /, Kind=ConfigMap" 400 &&
    answers 200 GET $maps/a && says "\"kind\":\"ConfigMap\"" "\"k\":\"2\""
'
step 'a body of more than three megabytes is refused' '
    head -c 3200000 /dev/zero | tr "\0" x >"$dir/large"
    [ "$(api POST $maps "@$dir/large")" = 413 ] && says "limit is 3145728"
'
step 'a second server on the same directory is refused' '
    "$HEKLA" apiserver --data-dir "$data" --listen 127.0.0.1:0 2>"$dir/out" && exit 1
    says "in use by another server" && [ "$(wc -l <"$dir/out")" -eq 1 ]
'

stop TERM
step 'SIGTERM ends it cleanly' '
    [ "$status" -eq 0 ] && [ ! -s "$dir/server" ]
'

first=$token
start
step 'a restart keeps objects and credentials' '
    [ "$first" = "$token" ] && answers 200 GET $maps/a && says "\"k\":\"2\""
'
step 'an acknowledged write survives a crash right after it' '
    answers 201 POST $maps "$(body crash 1)"
'
stop KILL
start
step 'the write survives a second start' '
    answers 200 GET $maps/crash
'
step 'a deleted object is gone' '
    answers 200 DELETE $maps/crash && says "\"status\":\"Success\"" && answers 404 GET $maps/crash
'

if command -v kubectl >/dev/null; then
    step 'kubectl sees the namespaces' '
        k get namespaces && says default kube-system
    '
    cat >"$dir/plain.yaml" <<END
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: w}
spec:
  controllerRef: {apiGroup: batch, kind: Job, name: j}
  podGroups: [{name: a, policy: {gang: {minCount: 3}}}]
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: g}
spec:
  podGroupTemplateRef: {workload: {workloadName: w, podGroupTemplateName: a}}
  schedulingPolicy: {gang: {minCount: 3}}
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: c}
spec: {cidrs: [10.0.0.0/24]}
---
apiVersion: networking.k8s.io/v1
kind: IPAddress
metadata: {name: 10.0.0.5}
spec: {parentRef: {resource: services, namespace: default, name: s}}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: v}
driverName: d.example.com
parameters: {a: b}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: m}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[]"}}]
END
    step 'kinds that are only stored are listed, created, read and deleted' '
        k api-resources && says "workloads scheduling.k8s.io/v1alpha2 true Workload" \
            "podgroups scheduling.k8s.io/v1alpha2 true PodGroup" "servicecidrs networking.k8s.io/v1" \
            "ipaddresses ip networking.k8s.io/v1" "volumeattributesclasses vac storage.k8s.io/v1" \
            "mutatingadmissionpolicies admissionregistration.k8s.io/v1" &&
        k create -f "$dir/plain.yaml" && k get -f "$dir/plain.yaml" && k delete -f "$dir/plain.yaml" &&
        refused NotFound get -f "$dir/plain.yaml"
    '
    step 'a Workload and a PodGroup of scheduling.k8s.io have no effect, and a warning says so' '
        k create -f "$dir/plain.yaml" && cat "$dir/err" >"$dir/out" &&
        says "does not act on Workloads of scheduling.k8s.io" \
            "does not act on PodGroups of scheduling.k8s.io" &&
        field workloads.v1alpha2.scheduling.k8s.io/w \
            ".spec.podGroupTemplates[0].schedulingPolicy.gang.minCount" 3 &&
        field workloads.v1alpha1.scheduling.k8s.io/w ".spec.podGroups[0].policy.gang.minCount" 3
    '
    step 'podgroups without a group are those of Volcano' '
        k get podgroups -o name && prints "" &&
        k get podgroups.scheduling.k8s.io -o name && says podgroup.scheduling.k8s.io/g
    '
    step 'a node without a spec reads back with an empty one' '
        k create -f - <<-END
	{"apiVersion":"v1","kind":"Node","metadata":{"name":"bare"},"spec":{},
	 "status":{"conditions":[{"type":"Ready","status":"True"}]}}
	END
        k get node bare -o json && json "d[\"spec\"] == {}" && k delete node bare
    '
    step 'kubectl creates, labels, applies and deletes' '
        k create configmap tool --from-literal=a=b && k label configmap tool colour=red &&
        field configmap/tool .metadata.labels.colour red && body tool 9 | k apply -f - &&
        k delete configmap tool --wait
    '
fi
stop TERM

step 'invalid options are reported in one line' '
    "$HEKLA" apiserver 2>"$dir/out" && exit 1
    says "--data-dir DIR is required" && [ "$(wc -l <"$dir/out")" -eq 1 ] || exit 1
    "$HEKLA" apiserver -d "$dir/x" --listen nowhere 2>"$dir/out" && exit 1
    says "want ADDR:PORT"
'

finish
