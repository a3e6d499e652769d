#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The server's own rules as users meet them: quotas that count, rights that hold, accounts and their
# tokens, definitions and what becomes of their objects, namespaces that end.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl

# as TOKEN COMMAND...: the command, of kubectl, with that token and nothing else.
as() {
    bearer=$1
    shift
    "$@" --kubeconfig=/dev/null --server="$url" --certificate-authority="$data/ca.crt" \
        --token="$bearer"
}

# shows WANT ARG...: "kubectl get ARG..." prints WANT.
shows() {
    want=$1
    shift
    k get "$@" && prints "$want"
}

# becomes WANT ARG...: the same, within ten seconds.
becomes() {
    within 10 shows "$@"
}

# patch TYPE PATH BODY: the answer is in $dir/out, its code printed.
patch() {
    curl -sS --max-time 20 --cacert "$data/ca.crt" -o "$dir/out" -w '%{http_code}' -X PATCH -A test \
        -H "Authorization: Bearer $token" -H "Content-Type: application/$1" --data "$3" "$url$2"
}

# pod NAME CPU: a manifest in $dir/pod.json.
pod() {
    printf '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s"},"spec":{"nodeName":"n1",
        "containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"%s"}}}]}}' "$1" "$2" \
        >"$dir/pod.json"
}

start

# ---- quotas ----

step 'a quota shows what is used from the start' '
    pod early 500m && k create -f "$dir/pod.json" && k create quota q --hard=pods=3,cpu=2 &&
    becomes "1 500m" quota q -o "jsonpath={.status.used.pods} {.status.used.cpu}"
'
step 'usage grows with every pod' '
    pod p1 1 && k create -f "$dir/pod.json" &&
    becomes "2 1500m" quota q -o "jsonpath={.status.used.pods} {.status.used.cpu}" &&
    k describe quota q && grep -q "^cpu  *1500m  *2$" "$dir/out"
'
step 'a pod that does not fit is refused with the numbers' '
    pod large 1 &&
    refused "exceeded quota: q, requested: cpu=1, used: cpu=1500m, limited: cpu=2" \
        create -f "$dir/pod.json"
'
step 'a pod that has ended does not count' '
    k patch pod p1 --subresource=status --type=merge -p "{\"status\":{\"phase\":\"Succeeded\"}}" &&
    becomes "1 500m" quota q -o "jsonpath={.status.used.pods} {.status.used.cpu}"
'
stop KILL
start
step 'after a crash the numbers are the same' '
    becomes "1 500m" quota q -o "jsonpath={.status.used.pods} {.status.used.cpu}" &&
    pod large 1600m && refused "used: cpu=500m" create -f "$dir/pod.json" &&
    k delete quota q && k delete pods --all --force --grace-period=0
'

# ---- definitions ----

crd() {
    printf '{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":
        {"name":"boxes.x.io"},"spec":{"group":"x.io","scope":"Namespaced","names":{"plural":"boxes",
        "kind":"Box"},"versions":[{"name":"v1","served":true,"storage":true,"schema":
        {"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":
        {%s}}}}}}]}}' "$1"
}

step 'a definition with a rule is accepted without a warning' '
    crd "\"a\":{\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":\"self > 1\"}]},
         \"b\":{\"type\":\"integer\"}" | k create -f - &&
    ! grep -F Warning "$dir/err" &&
    k wait --for=condition=Established crd/boxes.x.io &&
    becomes True crd boxes.x.io -o "jsonpath={.status.conditions[?(@.type==\"NamesAccepted\")].status}"
'
step 'an object of the new kind is created' '
    echo "{\"kind\":\"Box\",\"apiVersion\":\"x.io/v1\",\"metadata\":{\"name\":\"one\"},\"spec\":
        {\"a\":3,\"b\":2}}" | k create -f -
'
step 'an object that breaks the rule is refused' '
    printf "{\"kind\":\"Box\",\"apiVersion\":\"x.io/v1\",\"metadata\":{\"name\":\"low\"},\"spec\":
        {\"a\":1}}" >"$dir/box.json" && refused "failed rule: self > 1" create -f "$dir/box.json"
'
step 'a strategic merge patch of a custom resource is refused' '
    [ "$(patch strategic-merge-patch+json /apis/x.io/v1/namespaces/default/boxes/one "{}")" = 415 ] &&
    says "accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
'
step 'an older object is read by the new schema' '
    crd "\"a\":{\"type\":\"integer\"},\"c\":{\"type\":\"string\",\"default\":\"new\"}" |
        k apply --server-side --force-conflicts -f - &&
    becomes "{\"a\":3,\"c\":\"new\"}" box one -o "jsonpath={.spec}"
'
step 'deleting a definition deletes its objects and removes it from discovery' '
    k delete crd boxes.x.io --timeout=20s && k api-resources --api-group=x.io &&
    silent boxes && refused "have a resource type \"boxes\"" get boxes
'

# ---- rights ----

step 'a new account may only use discovery' '
    refused no auth can-i create pods --as=system:serviceaccount:default:default && prints no &&
    k auth can-i get /apis --as=system:serviceaccount:default:default && says yes
'
step 'a token of the account authenticates as the account' '
    k create token default && cp "$dir/out" "$dir/token" &&
    as "$(cat "$dir/token")" k auth whoami &&
    says system:serviceaccount:default:default system:serviceaccounts:default
'
step 'a request without the right is refused with the message of Kubernetes' '
    as "$(cat "$dir/token")" refused \
        "pods is forbidden: User \"system:serviceaccount:default:default\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"" \
        get pods
'
step 'a binding in a namespace opens that namespace' '
    k create rolebinding works --clusterrole=edit --serviceaccount=default:default &&
    as "$(cat "$dir/token")" k create configmap mine --from-literal=a=b &&
    as "$(cat "$dir/token")" k get configmap mine &&
    as "$(cat "$dir/token")" refused "in the namespace \"kube-system\"" get configmaps -n kube-system &&
    as "$(cat "$dir/token")" refused "at the cluster scope" get persistentvolumes &&
    k auth can-i create jobs.batch.volcano.sh --as=system:serviceaccount:default:default && says yes
'
step 'a role reaches the subresources and names it lists' '
    k create role logs --verb=get --resource=pods/log &&
    k create role one --verb=get --resource=configmaps --resource-name=mine &&
    k create rolebinding l --role=logs --user=ann && k create rolebinding o --role=one --user=ann &&
    k auth can-i get pods --subresource=log --as=ann &&
    refused no auth can-i get pods --as=ann && prints no &&
    k get configmap mine --as=ann &&
    refused "cannot list resource \"configmaps\"" get configmaps --as=ann &&
    refused "cannot get resource \"configmaps\"" get configmap kube-root-ca.crt --as=ann
'
step 'a user cannot grant rights that the user does not have' '
    k create rolebinding boss --clusterrole=admin --user=zoe &&
    k create rolebinding more --clusterrole=view --user=eve --as=zoe &&
    refused "is attempting to grant RBAC permissions not currently held" \
        create rolebinding most --clusterrole=cluster-admin --user=eve --as=zoe
'
step 'impersonation requires the right to impersonate' '
    refused "cannot list resource \"configmaps\"" get configmaps --as=bob &&
    as "$(cat "$dir/token")" refused \
        "cannot impersonate resource \"users\" in API group \"\" at the cluster scope" \
        get configmaps --as=admin &&
    k get configmaps --as=ann --as-group=system:masters
'
step 'a token ends with its account' '
    k create serviceaccount temp && k create token temp && cp "$dir/out" "$dir/token" &&
    as "$(cat "$dir/token")" k auth whoami && k delete serviceaccount temp &&
    within 30 as "$(cat "$dir/token")" refused Unauthorized auth whoami
'
step 'a token needs an existing account and at least ten minutes' '
    refused "may not specify a duration less than 10 minutes" \
        create token default --duration=1m &&
    refused "serviceaccounts \"nobody\" not found" create token nobody
'
step 'every namespace has an account and the authority' '
    k create namespace fresh && becomes default -n fresh serviceaccounts -o "jsonpath={.items[*].metadata.name}" &&
    becomes "$(cat "$data/ca.crt")" -n fresh configmap kube-root-ca.crt -o "jsonpath={.data.ca\.crt}" &&
    k delete configmap -n fresh kube-root-ca.crt &&
    becomes "$(cat "$data/ca.crt")" -n fresh configmap kube-root-ca.crt -o "jsonpath={.data.ca\.crt}"
'

# ---- pods, lists, ends ----

step 'a container can be added to a pod, and its size changed' '
    pod p 1 && k create -f "$dir/pod.json" &&
    [ "$(patch strategic-merge-patch+json /api/v1/namespaces/default/pods/p/ephemeralcontainers \
        "{\"spec\":{\"ephemeralContainers\":[{\"name\":\"look\",\"image\":\"tools\"}]}}")" = 200 ] &&
    [ "$(patch strategic-merge-patch+json /api/v1/namespaces/default/pods/p/resize \
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]}}")" = 200 ] &&
    becomes "look 2" pod p -o "jsonpath={.spec.ephemeralContainers[0].name} {.spec.containers[0].resources.requests.cpu}"
'
step 'a page of a list says how many objects remain' '
    curl -sS --max-time 20 --cacert "$data/ca.crt" -H "Authorization: Bearer $token" -A test \
        "$url/api/v1/namespaces?limit=2" >"$dir/out" && says "\"remainingItemCount\":4" &&
    curl -sS --max-time 20 --cacert "$data/ca.crt" -H "Authorization: Bearer $token" -A test \
        -H "Accept: application/json;as=Table;v=v1;g=meta.k8s.io" "$url/api/v1/namespaces?limit=2" \
        >"$dir/out" && says "\"remainingItemCount\":4"
'
step 'an invalid schedule is refused' '
    refused "spec.schedule: Invalid value" create cronjob c --image=i --schedule="61 * * * *" &&
    refused "cannot use TZ or CRON_TZ" \
        create cronjob c --image=i --schedule="CRON_TZ=UTC 0 * * * *"
'
step 'unknown and duplicate fields are reported' '
    curl -sS --max-time 20 --cacert "$data/ca.crt" -H "Authorization: Bearer $token" -A test -D "$dir/out" -o /dev/null \
        -H "Content-Type: application/json" "$url/api/v1/namespaces/default/configmaps" \
        --data "{\"metadata\":{\"name\":\"odd\"},\"bogus\":1,\"data\":{\"a\":\"1\",\"a\":\"2\"}}" &&
    says "unknown field" "duplicate field"
'
step 'a namespace that cannot be removed says what it waits for' '
    k create configmap held -n fresh && k patch configmap held -n fresh --type=merge \
        -p "{\"metadata\":{\"finalizers\":[\"x.io/hold\"]}}" && k delete namespace fresh --wait=false &&
    becomes "Some content in the namespace has finalizers remaining: x.io/hold in 1 resource instances" \
        namespace fresh -o "jsonpath={.status.conditions[?(@.type==\"NamespaceFinalizersRemaining\")].message}" &&
    refused "because it is being terminated" create configmap late -n fresh &&
    k patch configmap held -n fresh --type=merge -p "{\"metadata\":{\"finalizers\":null}}" &&
    k wait --for=delete namespace/fresh --timeout=20s
'
stop TERM
content
finish
