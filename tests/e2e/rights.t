#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a tenant may not do: have controllers do what they may not do themselves, choose a node past
# the scheduler, widen their own rights, ask about others, use what is the system's, or run pods
# that a namespace forbids. Everything is tried through every way in. No node runs.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
needs_embedded 'these are rules of the embedded server'
verb=up options=--no-node

# send USER METHOD PATH TYPE BODY: a request for the user ("" is the administrator); the answer is in
# $dir/out, its code in $code.
send() {
    set -- "$@" "${1:+Impersonate-User: $1}"
    code=$(curl -sS --max-time 20 --cacert "$data/ca.crt" -o "$dir/out" -w '%{http_code}' -X "$2" \
        -A test -H "Authorization: Bearer $token" -H "Content-Type: application/$4" \
        ${6:+-H "$6"} -D "$dir/headers" --data-binary "$5" "$url$3")
}

# answers CODE TEXT USER METHOD PATH TYPE BODY: the request is answered so; the text is part of it.
answers() {
    want=$1 text=$2
    shift 2
    send "$@"
    [ "$code" = "$want" ] && grep -qF -- "$text" "$dir/out" && return 0
    echo "expected: $want $text"
    echo "got:      $code $(cat "$dir/out")"
    echo "of:       $*"
    return 1
}

APPLY=apply-patch+yaml
MERGE=merge-patch+json
STRATEGIC=strategic-merge-patch+json
STEPS=json-patch+json

start

# Two tenants: ann may edit in ta, adam is the administrator of ta; both know nothing of tb.
step 'the tenants exist, with their rights' '
    k create namespace ta && k create namespace tb &&
    k create rolebinding ann -n ta --clusterrole=edit --user=ann &&
    k create rolebinding adam -n ta --clusterrole=admin --user=adam &&
    within 10 field queue/default .status.state Open
'

# ---- commands ----

COMMANDS=/apis/bus.volcano.sh/v1alpha1/namespaces/ta/commands
# command NAME ACTION KIND TARGET
command_of() {
    case $3 in
        Queue) version=scheduling.volcano.sh/v1beta1 ;;
        *) version=batch.volcano.sh/v1alpha1 ;;
    esac
    printf '{"apiVersion":"bus.volcano.sh/v1alpha1","kind":"Command","metadata":{"name":"%s"},
        "action":"%s","target":{"apiVersion":"%s","kind":"%s","name":"%s","uid":"made-up"}}' \
        "$1" "$2" "$version" "$3" "$4"
}

# ended_job: the job of ta was terminated.
ended_job() {
    k get vcjob web -n ta -o "jsonpath={.status.state.phase}" && prints Terminated
}
# tells TEXT: an event of ta says it.
tells() {
    k get events -n ta -o "jsonpath={.items[*].message}" && says "$1"
}
step 'a Command for a queue requires the right to update the queue' '
    for action in CloseQueue OpenQueue; do
        answers 403 "cannot update resource \\\"queues\\\" in API group \\\"scheduling.volcano.sh\\\"" \
            ann POST $COMMANDS json "$(command_of c $action Queue default)" &&
        answers 403 "requires the right to update it" \
            ann PATCH "$COMMANDS/c?fieldManager=m" $APPLY "$(command_of c $action Queue default)" ||
            return 1
    done
    answers 403 "is forbidden" adam POST $COMMANDS json "$(command_of c CloseQueue Queue default)" &&
    field queue/default .status.state Open
'
step 'a Command for a job is not turned into one for a queue' '
    send ann POST $COMMANDS json "$(command_of mine AbortJob PodGroup none)" &&
    [ "$code" = 201 ] &&
    answers 403 "update it" ann PATCH $COMMANDS/mine $MERGE \
        "{\"action\":\"CloseQueue\",\"target\":{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",
            \"kind\":\"Queue\",\"name\":\"default\"}}" &&
    answers 403 "update it" ann PATCH $COMMANDS/mine $STEPS \
        "[{\"op\":\"replace\",\"path\":\"/target/kind\",\"value\":\"Queue\"},
          {\"op\":\"replace\",\"path\":\"/target/name\",\"value\":\"default\"}]" &&
    k get command mine -n ta -o json && sed "s/\"PodGroup\"/\"Queue\"/" "$dir/out" >"$dir/put" &&
    answers 403 "update it" ann PUT $COMMANDS/mine json @"$dir/put" &&
    field queue/default .status.state Open
'
step 'a Command for a job requires the right to update that job' '
    k create role commander -n tb --verb=create --resource=commands.bus.volcano.sh &&
    k create rolebinding bob -n tb --role=commander --user=bob &&
    answers 403 "cannot update resource \\\"jobs\\\" in API group \\\"batch.volcano.sh\\\"" \
        bob POST /apis/bus.volcano.sh/v1alpha1/namespaces/tb/commands json \
        "$(command_of c TerminateJob Job j)" &&
    answers 201 c ann POST $COMMANDS json "$(command_of c TerminateJob Job j)"
'
step 'a user with the right and the administrator may command a queue' '
    k create clusterrole closer --verb=update --resource=queues.scheduling.volcano.sh \
        --resource-name=qt &&
    k create clusterrolebinding closer --clusterrole=closer --user=ann &&
    "$HEKLA" vcctl queue create -n qt && within 10 field queue/qt .status.state Open &&
    answers 201 c2 ann POST $COMMANDS json "$(command_of c2 CloseQueue Queue qt)" &&
    within 10 field queue/qt .status.state Closed &&
    "$HEKLA" vcctl queue operate -n qt -a open && within 10 field queue/qt .status.state Open &&
    answers 403 "is forbidden" ann POST $COMMANDS json "$(command_of c3 CloseQueue Queue default)"
'

# ---- what controllers make and delete ----

step 'a job neither adopts nor deletes objects of another owner' '
    k create configmap web-svc -n ta --from-literal=precious=yes &&
    k create secret generic web-ssh -n ta --from-literal=precious=yes &&
    k create service clusterip web -n ta --tcp=80 &&
    answers 201 "" ann POST /apis/batch.volcano.sh/v1alpha1/namespaces/ta/jobs json \
        "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"plugins\":{\"svc\":[],\"ssh\":[]},\"tasks\":[{\"replicas\":1,
          \"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}]}}" &&
    within 20 tells "secret \"web-ssh\" exists and has another owner" &&
    answers 201 "" ann POST $COMMANDS json "$(command_of stop TerminateJob Job web)" &&
    within 20 ended_job &&
    k get configmap web-svc -n ta -o "jsonpath={.data}" && prints "{\"precious\":\"yes\"}" &&
    k get secret web-ssh -n ta -o "jsonpath={.data}" && prints "{\"precious\":\"eWVz\"}" &&
    k get service web -n ta && k delete vcjob web -n ta && k get service web -n ta
'
step 'an object of another namespace does not hold up a deletion' '
    k create configmap owner -n tb && k get configmap owner -n tb -o "jsonpath={.metadata.uid}" &&
    answers 201 "" ann POST /api/v1/namespaces/ta/configmaps json \
        "{\"metadata\":{\"name\":\"grip\",\"finalizers\":[\"a.b/c\"],\"ownerReferences\":[{\"apiVersion\":\"no.such/v1\",
          \"kind\":\"Thing\",\"name\":\"owner\",\"uid\":\"$(cat "$dir/out")\",\"blockOwnerDeletion\":true}]}}" &&
    answers 200 "" "" DELETE /api/v1/namespaces/tb/configmaps/owner json "{\"propagationPolicy\":\"Foreground\"}" &&
    within 10 refused NotFound get configmap owner -n tb &&
    answers 200 "" ann PATCH /api/v1/namespaces/ta/configmaps/grip $MERGE "{\"metadata\":{\"finalizers\":null}}"
'

# ---- the node of a pod ----

POD='{"containers":[{"name":"c","image":"i"}],"nodeName":"n1"}'
TASK='[{"name":"t","replicas":1,"template":{"spec":'$POD'}}]'
# fixed_template KIND: an object of the kind whose template names a node, in one line.
fixed_template() {
    meta='"metadata":{"name":"fixed"}'
    plain='"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":'$POD'}'
    once=$(echo "$POD" | sed 's/{/{"restartPolicy":"Never",/')
    case $1 in
        pods) echo "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",$meta,\"spec\":$POD}" ;;
        replicationcontrollers) echo "{\"apiVersion\":\"v1\",\"kind\":\"ReplicationController\",$meta,
            \"spec\":{\"selector\":{\"a\":\"b\"},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":$POD}}}" ;;
        deployments) echo "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",$meta,\"spec\":{$plain}}" ;;
        replicasets) echo "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",$meta,\"spec\":{$plain}}" ;;
        statefulsets) echo "{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",$meta,\"spec\":{\"serviceName\":\"s\",$plain}}" ;;
        daemonsets) echo "{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",$meta,\"spec\":{$plain}}" ;;
        batch/v1/jobs) echo "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",$meta,\"spec\":{\"template\":{\"spec\":$once}}}" ;;
        batch/v1/cronjobs) echo "{\"apiVersion\":\"batch/v1\",\"kind\":\"CronJob\",$meta,\"spec\":{\"schedule\":\"0 0 * * *\",
            \"jobTemplate\":{\"spec\":{\"template\":{\"spec\":$once}}}}}" ;;
        jobs) echo "{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",$meta,\"spec\":{\"tasks\":$TASK}}" ;;
        cronjobs) echo "{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"CronJob\",$meta,\"spec\":{\"schedule\":\"0 0 * * *\",
            \"jobTemplate\":{\"spec\":{\"tasks\":$TASK}}}}" ;;
        jobtemplates) echo "{\"apiVersion\":\"flow.volcano.sh/v1alpha1\",\"kind\":\"JobTemplate\",$meta,\"spec\":{\"tasks\":$TASK}}" ;;
        jobflows) echo "{\"apiVersion\":\"flow.volcano.sh/v1alpha1\",\"kind\":\"JobFlow\",$meta,\"spec\":{\"jobRetainPolicy\":\"retain\",
            \"flows\":[{\"name\":\"a\",\"patch\":{\"jobSpec\":{\"tasks\":$TASK}}}]}}" ;;
    esac
}
# path_of KIND: of its collection in ta.
path_of() {
    case $1 in
        pods | replicationcontrollers) echo "/api/v1/namespaces/ta/$1" ;;
        batch/v1/*) echo "/apis/batch/v1/namespaces/ta/${1##*/}" ;;
        jobs | cronjobs) echo "/apis/batch.volcano.sh/v1alpha1/namespaces/ta/$1" ;;
        job*) echo "/apis/flow.volcano.sh/v1alpha1/namespaces/ta/$1" ;;
        *) echo "/apis/apps/v1/namespaces/ta/$1" ;;
    esac
}
KINDS='pods replicationcontrollers deployments replicasets statefulsets daemonsets batch/v1/jobs
    batch/v1/cronjobs jobs cronjobs jobtemplates jobflows'

step 'choosing a node requires the right to bind, in every template and with every verb' '
    for kind in $KINDS; do
        echo "$kind"
        body=$(fixed_template $kind) path=$(path_of $kind)
        deny="choosing the node of a pod requires the right to bind it: User \\\"ann\\\" cannot create resource \\\"pods/binding\\\""
        answers 403 "$deny" ann POST $path json "$body" &&
        answers 403 "$deny" ann PATCH "$path/fixed?fieldManager=m" $APPLY "$body" || return 1
    done
'
step 'an update cannot choose a node without that right either' '
    for kind in $KINDS; do
        [ $kind = pods ] || [ $kind = batch/v1/jobs ] && continue
        echo "$kind"
        path=$(path_of $kind)
        free=$(fixed_template $kind | sed "s/,\"nodeName\":\"n1\"//")
        answers 201 "" ann POST $path json "$free" &&
        k get --raw $path/fixed && sed "s/\"containers\":/\"nodeName\":\"n1\",\"containers\":/" "$dir/out" >"$dir/put" &&
        send ann PUT $path/fixed json @"$dir/put" &&
        { [ "$code" = 403 ] && grep -q "pods/binding" "$dir/out" ||
          { [ $kind = jobs ] && [ "$code" = 400 ]; }; } || { echo "$code"; cat "$dir/out"; return 1; }
        case $kind in
            replicationcontrollers | *sets | deployments)
                answers 403 pods/binding ann PATCH $path/fixed $MERGE \
                    "{\"spec\":{\"template\":{\"spec\":{\"nodeName\":\"n1\"}}}}" &&
                answers 403 pods/binding ann PATCH $path/fixed $STEPS \
                    "[{\"op\":\"add\",\"path\":\"/spec/template/spec/nodeName\",\"value\":\"n1\"}]" &&
                answers 403 pods/binding ann PATCH $path/fixed $STRATEGIC \
                    "{\"spec\":{\"template\":{\"spec\":{\"nodeName\":\"n1\"}}}}" || return 1 ;;
        esac
        answers 200 "" ann DELETE $path/fixed json "" || return 1
    done
'
step 'a user with the right to bind may choose a node' '
    k create role binder -n ta --verb=create --resource=pods/binding &&
    k create rolebinding binder -n ta --role=binder --user=ann &&
    answers 201 n1 ann POST $(path_of pods) json "$(fixed_template pods)" &&
    answers 201 n1 ann POST $(path_of deployments) json "$(fixed_template deployments)" &&
    k delete rolebinding binder -n ta &&
    answers 200 "" ann PATCH $(path_of deployments)/fixed $MERGE "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}" &&
    answers 200 "" ann DELETE $(path_of deployments)/fixed json "" &&
    k delete pods --all -n ta --force --grace-period=0
'

# ---- roles and bindings ----

BINDINGS=/apis/rbac.authorization.k8s.io/v1/namespaces/ta/rolebindings
GIVEN='"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b"}'
WHO='"subjects":[{"kind":"User","name":"eve"}]'
step 'the role of a binding cannot change, with any verb' '
    answers 201 "" adam POST $BINDINGS json \
        "{$GIVEN,$WHO,\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"view\"}}" &&
    for user in "" adam; do
        answers 422 "cannot change roleRef" "$user" PUT $BINDINGS/b json \
            "{$GIVEN,$WHO,\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"edit\"}}" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $MERGE "{\"roleRef\":{\"name\":\"edit\"}}" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $MERGE "{\"roleRef\":{\"kind\":\"Role\"}}" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $MERGE "{\"roleRef\":null}" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $STRATEGIC "{\"roleRef\":{\"name\":\"edit\"}}" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $STRATEGIC \
            "{\"roleRef\":{\"name\":\"view\",\"\$patch\":\"delete\"}}" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $STRATEGIC \
            "{\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"edit\",\"\$patch\":\"replace\"}}" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $STEPS \
            "[{\"op\":\"replace\",\"path\":\"/roleRef/name\",\"value\":\"edit\"}]" &&
        answers 422 "cannot change roleRef" "$user" PATCH $BINDINGS/b $STEPS \
            "[{\"op\":\"remove\",\"path\":\"/roleRef\"}]" &&
        answers 422 "cannot change roleRef" "$user" PATCH "$BINDINGS/b?fieldManager=m&force=true" $APPLY \
            "{$GIVEN,$WHO,\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"edit\"}}" ||
            return 1
    done
    k get rolebinding b -n ta -o jsonpath="{.roleRef.name}" && prints view
'
step 'a role must be named by its kind' '
    for kind in clusterrole role User ""; do
        answers 422 "roleRef.kind: Unsupported value" "" POST $BINDINGS json \
            "{$GIVEN,\"roleRef\":{\"kind\":\"$kind\",\"name\":\"view\"}}" || return 1
    done
    answers 422 "roleRef.name: Required value" "" POST $BINDINGS json \
        "{$GIVEN,\"roleRef\":{\"kind\":\"ClusterRole\"}}" &&
    answers 422 "subjects[0].kind: Unsupported value" "" POST $BINDINGS json \
        "{$GIVEN,\"subjects\":[{\"kind\":\"Robot\",\"name\":\"r\"}],\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"view\"}}"
'
ROLES=/apis/rbac.authorization.k8s.io/v1/namespaces/ta/roles
step 'rights are checked on the result of a patch, not on its text' '
    k create role strong -n ta --verb=get --resource=persistentvolumes &&
    answers 403 "not currently held" adam POST $BINDINGS json \
        "{\"metadata\":{\"name\":\"s\"},$WHO,\"roleRef\":{\"kind\":\"Role\",\"name\":\"strong\"}}" &&
    answers 403 "not currently held" adam POST $BINDINGS json \
        "{\"metadata\":{\"name\":\"s\"},$WHO,\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"cluster-admin\"}}" &&
    k create rolebinding s -n ta --role=strong --user=zoe &&
    answers 403 "not currently held" adam PATCH $BINDINGS/s $MERGE \
        "{\"roleRef\":{\"kind\":\"Role\",\"name\":\"strong\"},$WHO}" &&
    answers 403 "not currently held" adam PATCH $BINDINGS/s $MERGE "{$WHO}" &&
    answers 403 "not currently held" adam PATCH $BINDINGS/s $STEPS \
        "[{\"op\":\"add\",\"path\":\"/subjects/-\",\"value\":{\"kind\":\"User\",\"name\":\"eve\"}}]" &&
    answers 403 "not currently held" adam PATCH $ROLES/strong $MERGE "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}" &&
    k create role weak -n ta --verb=get --resource=pods &&
    answers 403 "not currently held" adam PATCH $ROLES/weak $STEPS \
        "[{\"op\":\"add\",\"path\":\"/rules/0/resources/-\",\"value\":\"persistentvolumes\"}]"
'
step 'a user may grant by a patch the rights that the user has' '
    answers 200 secrets adam PATCH $ROLES/weak $STEPS \
        "[{\"op\":\"add\",\"path\":\"/rules/0/resources/-\",\"value\":\"secrets\"}]" &&
    answers 200 eva adam PATCH $BINDINGS/b $MERGE \
        "{\"subjects\":[{\"kind\":\"User\",\"name\":\"eva\"}]}"
'
step 'a PUT or an apply that creates requires the right to create' '
    k create role patcher -n ta --verb=get,patch,update --resource=configmaps,leases.coordination.k8s.io &&
    k create rolebinding patcher -n ta --role=patcher --user=pat &&
    answers 403 "cannot create resource" pat PATCH "/api/v1/namespaces/ta/configmaps/x?fieldManager=m" $APPLY \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"}}" &&
    answers 403 "cannot create resource" pat PUT /apis/coordination.k8s.io/v1/namespaces/ta/leases/x json \
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"x\"}}"
'
step 'a field selector in the URL grants no creation' '
    k create role mine -n tb --verb=create,list,deletecollection --resource=configmaps --resource-name=mine &&
    k create rolebinding mine -n tb --role=mine --user=ann &&
    answers 403 "cannot create" ann POST \
        "/api/v1/namespaces/tb/configmaps?fieldSelector=metadata.name%3Dmine" json \
        "{\"metadata\":{\"name\":\"other\"}}" &&
    answers 200 ConfigMapList ann GET "/api/v1/namespaces/tb/configmaps?fieldSelector=metadata.name%3Dmine" json "" &&
    answers 403 "cannot list" ann GET "/api/v1/namespaces/tb/configmaps?fieldSelector=metadata.name%21%3Dmine" json "" &&
    answers 403 "cannot deletecollection" ann DELETE /api/v1/namespaces/tb/configmaps json ""
'

# ---- questions ----

LOCAL=/apis/authorization.k8s.io/v1/namespaces/ta/localsubjectaccessreviews
# about NS: may adam get pods there?
about() {
    printf '{"spec":{"user":"adam","resourceAttributes":{"verb":"get","resource":"pods"%s}}}' \
        "${1:+,\"namespace\":\"$1\"}"
}
step 'a local review answers for its own namespace' '
    answers 201 "\"allowed\":true" adam POST $LOCAL json "$(about ta)" &&
    answers 422 "must match metadata.namespace" adam POST $LOCAL json "$(about tb)" &&
    answers 422 "must match metadata.namespace" adam POST $LOCAL json "$(about)" &&
    answers 422 nonResourceAttributes adam POST $LOCAL json \
        "{\"spec\":{\"user\":\"adam\",\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/metrics\"}}}" &&
    k create role asker -n ta --verb=create --resource=subjectaccessreviews.authorization.k8s.io &&
    k create rolebinding asker -n ta --role=asker --user=adam &&
    answers 404 "" adam POST /apis/authorization.k8s.io/v1/namespaces/ta/subjectaccessreviews json "$(about tb)" &&
    answers 403 "" adam POST /apis/authorization.k8s.io/v1/subjectaccessreviews json "$(about tb)" &&
    answers 404 "" "" POST /apis/authorization.k8s.io/v1/localsubjectaccessreviews json "$(about)"
'

# ---- numbers that are none ----

TOKENS=/api/v1/namespaces/ta/serviceaccounts/default/token
step 'an invalid number is an error, not the default' '
    within 10 k get serviceaccount default -n ta &&
    for bad in 600.5 "\"600\"" true "{}" "[600]"; do
        answers 400 "spec.expirationSeconds of type int64" ann POST $TOKENS json \
            "{\"spec\":{\"expirationSeconds\":$bad}}" || return 1
    done
    answers 422 "10 minutes" ann POST $TOKENS json "{\"spec\":{\"expirationSeconds\":599}}" &&
    answers 201 "\"expirationSeconds\":600" ann POST $TOKENS json "{\"spec\":{\"expirationSeconds\":600}}" &&
    answers 201 "\"expirationSeconds\":3600" ann POST $TOKENS json "{\"spec\":{\"expirationSeconds\":null}}" &&
    answers 400 "of type []string" ann POST $TOKENS json "{\"spec\":{\"audiences\":\"api\"}}"
'
has_pod() {
    k get pods -n ta -l a=b -o jsonpath='{.items[0].metadata.name}' && [ -s "$dir/out" ]
}

step 'an invalid scale or eviction is refused, not guessed' '
    free=$(fixed_template deployments | sed "s/,\"nodeName\":\"n1\"//") path=$(path_of deployments) &&
    answers 201 "" ann POST $path json "$free" &&
    for bad in 1.5 "\"3\"" true; do
        answers 400 "spec.replicas of type int32" ann PATCH $path/fixed/scale $MERGE "{\"spec\":{\"replicas\":$bad}}" &&
        answers 400 "spec.replicas of type int32" ann PUT $path/fixed/scale json \
            "{\"metadata\":{\"name\":\"fixed\"},\"spec\":{\"replicas\":$bad}}" || return 1
    done
    k get deployment fixed -n ta -o jsonpath="{.spec.replicas}" && prints 1 &&
    within 10 has_pod && pod=$(cat "$dir/out") &&
    answers 400 "deleteOptions.gracePeriodSeconds of type int64" ann POST \
        /api/v1/namespaces/ta/pods/$pod/eviction json \
        "{\"metadata\":{\"name\":\"$pod\"},\"deleteOptions\":{\"gracePeriodSeconds\":\"0\"}}" &&
    answers 400 "invalid timeoutSeconds" ann GET "/api/v1/namespaces/ta/pods?watch=1&timeoutSeconds=soon" json "" &&
    k delete deployment fixed -n ta
'
# ---- classes of the system ----

step 'system priority classes are refused to users' '
    for class in system-node-critical system-cluster-critical; do
        deny="with $class priorityClass is not permitted in ta namespace" &&
        answers 403 "pods $deny" ann POST $(path_of pods) json \
            "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"priorityClassName\":\"$class\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}" &&
        answers 403 "jobs $deny" ann POST $(path_of jobs) json "$(fixed_template jobs |
            sed "s/,\"nodeName\":\"n1\"//; s/\"tasks\"/\"priorityClassName\":\"$class\",\"tasks\"/")" &&
        answers 403 "podgroups $deny" ann POST /apis/scheduling.volcano.sh/v1beta1/namespaces/ta/podgroups json \
            "{\"metadata\":{\"name\":\"g\"},\"spec\":{\"priorityClassName\":\"$class\"}}" || return 1
    done
    answers 201 "" ann POST /apis/scheduling.volcano.sh/v1beta1/namespaces/ta/podgroups json \
        "{\"metadata\":{\"name\":\"g\"},\"spec\":{\"minMember\":1}}" &&
    answers 403 "podgroups with" ann PATCH /apis/scheduling.volcano.sh/v1beta1/namespaces/ta/podgroups/g $MERGE \
        "{\"spec\":{\"priorityClassName\":\"system-node-critical\"}}" &&
    answers 201 "\"priority\":2000001000" "" POST /api/v1/namespaces/kube-system/pods json \
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"priorityClassName\":\"system-node-critical\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"
'

# ---- pod security ----

SAFE='"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"c","image":"i",
    "securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]'
# warned TEXT: the last answer carried that warning.
warned() {
    grep -i "^warning: 299" "$dir/headers" | grep -qF -- "$1" && return 0
    echo "expected a warning: $1"
    cat "$dir/headers"
    return 1
}
step 'an invalid pod security label is refused' '
    refused "must be one of privileged, baseline, restricted" label namespace tb pod-security.kubernetes.io/enforce=strict &&
    refused "must be \"latest\" or \"v1.x\"" label namespace tb pod-security.kubernetes.io/enforce-version=1.30 &&
    answers 422 "must be one of" "" POST /api/v1/namespaces json \
        "{\"metadata\":{\"name\":\"tc\",\"labels\":{\"pod-security.kubernetes.io/warn\":\"none\"}}}"
'
step 'a restricted namespace refuses unrestricted pods' '
    k label namespace tb pod-security.kubernetes.io/enforce=restricted &&
    answers 403 "pods \\\"p\\\" is forbidden: violates PodSecurity \\\"restricted:latest\\\": host namespaces (hostPID=true), privileged (container \\\"c\\\" must not set securityContext.privileged=true), allowPrivilegeEscalation != false (container \\\"c\\\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \\\"c\\\" must set securityContext.capabilities.drop=[\\\"ALL\\\"]), restricted volume types (volume \\\"v\\\" uses restricted volume type \\\"hostPath\\\"), runAsNonRoot != true (pod or container \\\"c\\\" must set securityContext.runAsNonRoot=true), runAsUser=0 (container \\\"c\\\" must not set runAsUser=0), seccompProfile (pod or container \\\"c\\\" must set securityContext.seccompProfile.type to \\\"RuntimeDefault\\\" or \\\"Localhost\\\")" \
        "" POST /api/v1/namespaces/tb/pods json \
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"hostPID\":true,\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/root\"}}],
          \"containers\":[{\"name\":\"c\",\"image\":\"i\",\"securityContext\":{\"privileged\":true,\"runAsUser\":0}}]}}" &&
    answers 201 "" "" POST /api/v1/namespaces/tb/pods json "{\"metadata\":{\"name\":\"p\"},\"spec\":{$SAFE}}"
'
step 'a restricted namespace refuses unrestricted debug containers' '
    answers 403 "violates PodSecurity" "" PATCH /api/v1/namespaces/tb/pods/p/ephemeralcontainers $STRATEGIC \
        "{\"spec\":{\"ephemeralContainers\":[{\"name\":\"e\",\"image\":\"i\"}]}}" &&
    answers 200 "" "" PATCH /api/v1/namespaces/tb/pods/p/ephemeralcontainers $STRATEGIC \
        "{\"spec\":{\"ephemeralContainers\":[{\"name\":\"e\",\"image\":\"i\",
          \"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}}]}}"
'
step 'an existing pod continues, but its image cannot change' '
    k label namespace tb --overwrite pod-security.kubernetes.io/enforce=privileged &&
    answers 201 "" "" POST /api/v1/namespaces/tb/pods json \
        "{\"metadata\":{\"name\":\"loose\"},\"spec\":{\"hostPID\":true,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}" &&
    answers 200 "" "" PATCH /api/v1/namespaces/tb $MERGE \
        "{\"metadata\":{\"labels\":{\"pod-security.kubernetes.io/enforce\":\"baseline\"}}}" &&
    warned "existing pods in namespace \\\"tb\\\" violate the new PodSecurity enforce level \\\"baseline:latest\\\"" &&
    warned "loose: host namespaces" &&
    answers 200 "" "" PATCH /api/v1/namespaces/tb/pods/loose $MERGE "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}" &&
    answers 403 "violates PodSecurity" "" PATCH /api/v1/namespaces/tb/pods/loose $MERGE \
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"j\"}]}}"
'
# told TEXT: an event of tb says it.
told() {
    k get events -n tb -o "jsonpath={.items[*].message}" && says "$1"
}
step 'pods of controllers are checked, too, and workloads get warnings' '
    k label namespace tb --overwrite pod-security.kubernetes.io/enforce=restricted &&
    answers 201 "" "" POST /apis/batch.volcano.sh/v1alpha1/namespaces/tb/jobs json \
        "$(fixed_template jobs | sed "s/,\"nodeName\":\"n1\"//")" &&
    warned "would violate PodSecurity \\\"restricted:latest\\\": allowPrivilegeEscalation != false" &&
    answers 201 "" "" POST /apis/apps/v1/namespaces/tb/deployments json \
        "$(fixed_template deployments | sed "s/,\"nodeName\":\"n1\"//")" &&
    warned "would violate PodSecurity" &&
    within 20 told "violates PodSecurity" && k get pods -n tb -l a=b -o name && prints "" &&
    k get pods -n tb -l volcano.sh/job-name=fixed -o name && prints "" &&
    k delete deployment,vcjob fixed -n tb
'
step 'warn and audit accept pods and report violations' '
    k label namespace tb --overwrite pod-security.kubernetes.io/enforce- pod-security.kubernetes.io/warn=baseline \
        pod-security.kubernetes.io/audit=restricted &&
    answers 201 "" "" POST /api/v1/namespaces/tb/pods json \
        "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"hostPID\":true,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}" &&
    warned "would violate PodSecurity \\\"baseline:latest\\\": host namespaces (hostPID=true)" &&
    cat "$dir/server" && grep "msg=\"*audit.*namespace=tb name=w .*would violate PodSecurity .*restricted:latest" "$dir/server"
'

# ---- queues ----

QUEUES=/apis/scheduling.volcano.sh/v1beta1/queues
# queue NAME SPEC: made, and open.
queue() {
    answers 201 "" "" POST $QUEUES json \
        "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"metadata\":{\"name\":\"$1\"},\"spec\":$2}" &&
        within 10 field "queue/$1" .status.state Open
}
# moves ACTION FROM TO: a queue in the state FROM, with a PodGroup, is TO after the command.
moves() {
    answers 200 "" "" PATCH $QUEUES/qs/status $MERGE "{\"status\":{\"state\":\"$2\"}}" &&
    answers 201 "" "" POST $COMMANDS json "$(command_of "s$((serial += 1))" "$1" Queue qs)" &&
    within 10 no_commands && field queue/qs .status.state "$3"
}
no_commands() {
    k get commands -n ta -o name && ! grep -q "/s[0-9]*$" "$dir/out"
}
step 'a queue reaches the state of a command from every state' '
    serial=0
    queue qs "{\"weight\":1}" &&
    answers 201 "" "" POST /apis/scheduling.volcano.sh/v1beta1/namespaces/ta/podgroups json \
        "{\"metadata\":{\"name\":\"gs\"},\"spec\":{\"minMember\":1,\"queue\":\"qs\"}}" &&
    moves OpenQueue Open Open && moves CloseQueue Open Closing && moves OpenQueue Closing Open &&
    moves CloseQueue Closing Closing && moves OpenQueue Closed Open && moves CloseQueue Closed Closed &&
    moves OpenQueue Unknown Open && moves CloseQueue Unknown Closing
'
step 'a queue that closes can be changed, and opened again by vcctl' '
    field queue/qs .status.state Closing &&
    answers 200 "" "" PATCH $QUEUES/qs $MERGE "{\"spec\":{\"weight\":3}}" &&
    answers 200 "" "" PATCH $QUEUES/qs $STEPS "[{\"op\":\"replace\",\"path\":\"/spec/weight\",\"value\":4}]" &&
    answers 200 "" "" PATCH "$QUEUES/qs?fieldManager=m&force=true" $APPLY \
        "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"metadata\":{\"name\":\"qs\"},\"spec\":{\"weight\":5}}" &&
    field queue/qs .status.state Closing &&
    "$HEKLA" vcctl queue operate -n qs -a open && within 10 field queue/qs .status.state Open &&
    "$HEKLA" vcctl queue operate -n qs -a close && within 10 field queue/qs .status.state Closing &&
    k delete podgroup gs -n ta && within 10 field queue/qs .status.state Closed
'
step 'queues cannot form a cycle, with any verb' '
    queue pa "{}" && queue pb "{\"parent\":\"pa\"}" && queue pl "{\"parent\":\"pb\"}" &&
    for pair in "pa pb" "pa pl" "pb pl" "pa pa"; do
        name=${pair% *} parent=${pair#* } deny="circle" &&
        [ "$name" = "$parent" ] && deny="itself as parent"
        answers 400 "$deny" "" PATCH $QUEUES/$name $MERGE "{\"spec\":{\"parent\":\"$parent\"}}" &&
        answers 400 "$deny" "" PATCH $QUEUES/$name $STEPS \
            "[{\"op\":\"add\",\"path\":\"/spec/parent\",\"value\":\"$parent\"}]" &&
        answers 400 "$deny" "" PATCH "$QUEUES/$name?fieldManager=m&force=true" $APPLY \
            "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"metadata\":{\"name\":\"$name\"},\"spec\":{\"parent\":\"$parent\"}}" &&
        k get queue $name -o json && sed "s/\"parent\": \"[a-z]*\"/\"parent\": \"$parent\"/" "$dir/out" >"$dir/put" &&
        answers 400 "$deny" "" PUT $QUEUES/$name json @"$dir/put" || return 1
    done
    answers 400 "above all queues" "" PATCH $QUEUES/root $MERGE "{\"spec\":{\"parent\":\"pa\"}}" &&
    send "" PATCH $QUEUES/pa/status $MERGE "{\"spec\":{\"parent\":\"pl\"},\"status\":{\"state\":\"Open\"}}" &&
    k get queue pa pb pl -o "jsonpath={.items[*].spec.parent}" && prints "root pa pb" &&
    k delete queue pl && k delete queue pb && k delete queue pa
'
step 'guarantees of children stay within the parent, whichever queue changes' '
    full="{\"capability\":{\"cpu\":\"8\"},\"deserved\":{\"cpu\":\"8\"},\"guarantee\":{\"resource\":{\"cpu\":\"4\"}}}" &&
    half="{\"parent\":\"gp\",\"capability\":{\"cpu\":\"6\"},\"deserved\":{\"cpu\":\"4\"},\"guarantee\":{\"resource\":{\"cpu\":\"2\"}}}" &&
    queue gp "$full" && queue gc "$half" && queue gd "$half" &&
    answers 400 "deserved[cpu]=8 must be <= capability[cpu]=1" "" PATCH $QUEUES/gp $MERGE "{\"spec\":{\"capability\":{\"cpu\":\"1\"}}}" &&
    answers 400 "exceeds parent" "" PATCH $QUEUES/gp $MERGE \
        "{\"spec\":{\"capability\":{\"cpu\":\"6\"},\"deserved\":{\"cpu\":\"6\"},\"guarantee\":{\"resource\":{\"cpu\":\"3\"}}}}" &&
    answers 400 "smaller than its descendants" "" PATCH $QUEUES/gp $STEPS \
        "[{\"op\":\"replace\",\"path\":\"/spec/capability/cpu\",\"value\":\"5\"},{\"op\":\"replace\",\"path\":\"/spec/deserved/cpu\",\"value\":\"5\"}]" &&
    answers 400 "sum of children" "" PATCH $QUEUES/gc $MERGE "{\"spec\":{\"guarantee\":{\"resource\":{\"cpu\":\"3\"}}}}" &&
    answers 400 "exceeds its ancestor" "" PATCH "$QUEUES/gc?fieldManager=m&force=true" $APPLY \
        "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"metadata\":{\"name\":\"gc\"},\"spec\":{\"capability\":{\"cpu\":\"9\"}}}" &&
    answers 400 "sum of children" "" POST $QUEUES json "{\"metadata\":{\"name\":\"ge\"},\"spec\":$half}" &&
    queue ge "$(echo "$half" | sed "s/\"parent\":\"gp\",//")" &&
    answers 400 "sum of children" "" PATCH $QUEUES/ge $MERGE "{\"spec\":{\"parent\":\"gp\"}}" &&
    k get queue gp gc -o "jsonpath={.items[*].spec.capability.cpu}" && prints "8 6"
'

stop TERM
# The controllers say in their log what this test makes them fail at; a sanitizer would speak, too.
step 'the server ended with status 0' '
    echo "exit status $status"
    cat "$dir/server"
    [ "$status" -eq 0 ] && ! grep -q "Sanitizer\|runtime error" "$dir/server"
'
finish
