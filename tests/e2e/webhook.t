#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The admission server beside an API server: certificates of its own and from files, reviews over
# TLS, files that change while it runs.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl curl
hooks=

end_others() {
    stop_hooks KILL
}

service=volcano-admission-service.volcano-system.svc

# start_hooks ARG...: the admission server on a free port, which is left in $port; returns when it
# says that it is ready.
start_hooks() {
    rm -f "$dir/hooks.ready"
    mkfifo "$dir/hooks.ready"
    "$HEKLA" webhook-manager --kubeconfig "$(config_of webhook-manager)" \
        --webhook-namespace volcano-system --webhook-url https://127.0.0.1 \
        --listen-address 127.0.0.1 --port 0 "$@" >"$dir/hooks.ready" 2>"$dir/hooks.log" &
    hooks=$!
    timeout 30 grep -m 1 ' ready at ' "$dir/hooks.ready" >"$dir/hooks.line"
    port=$(sed -n 's/^.* ready at https:..127.0.0.1:\([0-9]*\).*$/\1/p' "$dir/hooks.line")
    [ -n "$port" ] && return 0
    echo "Bail out! no admission server: $(cat "$dir/hooks.log")"
    exit 1
}

# stop_hooks SIGNAL: ends it, and leaves its $status.
stop_hooks() {
    [ -n "$hooks" ] || return 0
    kill -s "$1" "$hooks" 2>/dev/null
    wait "$hooks" 2>/dev/null
    status=$?
    hooks=
}

# ask CA HOST PATH ARG...: curl's request; the answer is in $dir/answer, its status printed.
ask() {
    ca=$1 host=$2 path=$3
    shift 3
    curl -sS --max-time 20 --cacert "$ca" --resolve "$host:$port:127.0.0.1" -o "$dir/answer" \
        -w '%{http_code}' -H "Content-Type: ${media:-application/json}" "$@" \
        "https://$host:$port$path"
}

# review GROUP VERSION RESOURCE OBJECT: a review of its creation, in $dir/body.
review() {
    printf '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",
        "resource":{"group":"%s","version":"%s","resource":"%s"},"operation":"CREATE",
        "name":"n","namespace":"infra","object":%s}}' "$1" "$2" "$3" "$4" >"$dir/body"
}

job() {
    printf '{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"n",
        "namespace":"infra"},"spec":%s}' "$1"
}

# answers TEXT: the last answer holds the text.
answers() {
    grep -qF -- "$1" "$dir/answer" && return 0
    echo "expected: $1"
    echo "  actual: $(head -c 2000 "$dir/answer")"
    return 1
}

# is GOT WANT
is() {
    [ "$1" = "$2" ] && return 0
    printf 'expected: %s\n  actual: %s\n' "$2" "$1"
    return 1
}

# patch: the patch of the last answer.
patch() {
    sed -n 's/.*"patch":"\([^"]*\)".*/\1/p' "$dir/answer" | base64 -d
}

configuration() {
    printf 'apiVersion: admissionregistration.k8s.io/v1\nkind: %sWebhookConfiguration
metadata: {name: %s}\nwebhooks:\n- name: %s\n  admissionReviewVersions: [v1]\n  sideEffects: None
  clientConfig: {service: {name: volcano-admission-service, namespace: volcano-system, path: %s}}\n' \
        "$@" | k apply -f -
}

bundle() {
    kubectl get "$1webhookconfiguration" "$2" \
        -o 'jsonpath={.webhooks[0].clientConfig.caBundle}' | base64 -d
}

# unasked: nobody asks for the defaults of jobs.
unasked() {
    k delete mutatingwebhookconfiguration volcano-admission-service-jobs-mutate
}

# asked: from here on a real API server does; ours has them in itself.
asked() {
    unasked && "$HEKLA" manifests --only webhooks --enabled-admission /jobs/mutate \
        --webhook-url "https://127.0.0.1:$port" >"$dir/hook.yaml" && k create -f "$dir/hook.yaml" &&
        job "{\"tasks\":[{\"replicas\":1,$template}]}" >"$dir/probe" && within 10 completed "$dir/probe"
}
completed() {
    k create -f "$1" --dry-run=server -o jsonpath="{.spec.queue}" && prints default
}

start

template='"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}'
good='{"minAvailable":1,"queue":"default","tasks":[{"name":"t","replicas":1,"minAvailable":1,'$template'}]}'

# ---- certificates of its own ----

configuration Validating volcano-admission-service-jobs-validate validatejob.volcano.sh \
    /jobs/validate >/dev/null
start_hooks --enable-healthz=true --healthz-address 127.0.0.1:0 -v=4

step 'the authority is published in an existing configuration' '
    within 10 eval "bundle validating volcano-admission-service-jobs-validate | grep -q BEGIN"
'
bundle validating volcano-admission-service-jobs-validate >"$dir/own.crt"

step 'the authority is published in a later configuration' '
    configuration Mutating volcano-admission-service-jobs-mutate mutatejob.volcano.sh \
        /jobs/mutate &&
    within 10 eval "bundle mutating volcano-admission-service-jobs-mutate | cmp - $dir/own.crt"
'

step 'a configuration that is applied again gets the authority again' '
    k patch validatingwebhookconfiguration volcano-admission-service-jobs-validate --type=json \
        -p "[{\"op\":\"remove\",\"path\":\"/webhooks/0/clientConfig/caBundle\"}]" &&
    within 10 eval "bundle validating volcano-admission-service-jobs-validate | cmp - $dir/own.crt"
'

step 'the Secret holds the served certificate' '
    k get secret -n volcano-system volcano-admission-secret -o "jsonpath={.data.ca\.crt}" &&
    base64 -d "$dir/out" | cmp - "$dir/own.crt"
'

step 'a queue that no controller has opened refuses jobs' '
    review batch.volcano.sh v1alpha1 jobs "$(job "$good")" &&
    is "$(ask "$dir/own.crt" "$service" /jobs/validate --data "@$dir/body")" 200 &&
    answers "can only submit job to queue with state"
'

step 'a good job for an open queue is allowed' '
    k patch queue default --subresource=status --type=merge -p "{\"status\":{\"state\":\"Open\"}}" &&
    review batch.volcano.sh v1alpha1 jobs "$(job "$good")" &&
    within 10 eval "ask $dir/own.crt $service /jobs/validate --data @$dir/body &&
        answers \"response\\\":{\\\"uid\\\":\\\"u-1\\\",\\\"allowed\\\":true}\""
'

step 'an invalid job is refused with a message' '
    review batch.volcano.sh v1alpha1 jobs "$(job "{}")" &&
    is "$(ask "$dir/own.crt" "$service" "/jobs/validate?timeout=10s" --data "@$dir/body")" 200 &&
    answers "\"allowed\":false" && answers "\"message\":\"No task specified in job spec\""
'

step 'the stored job has the defaults' '
    short="{\"tasks\":[{\"replicas\":2,$template}]}"
    review batch.volcano.sh v1alpha1 jobs "$(job "$short")" &&
    is "$(ask "$dir/own.crt" "$service" /jobs/mutate --data "@$dir/body")" 200 &&
    answers "\"patchType\":\"JSONPatch\"" && patch >"$dir/patch" &&
    k create namespace infra && asked && job "$good" >"$dir/job" && k create -f "$dir/job" &&
    k delete -f "$dir/job" && job "$short" >"$dir/job" && k create -f "$dir/job" &&
    for want in minAvailable:2 queue:\"default\" maxRetry:3 schedulerName:\"volcano\"; do
        k get jobs.batch.volcano.sh -n infra n -o "jsonpath={.spec.${want%%:*}}" &&
        is "$(cat "$dir/out")" "$(echo "${want#*:}" | tr -d \")" &&
        grep -qF "\"path\":\"/spec/${want%%:*}\",\"value\":${want#*:}}" "$dir/patch" ||
            { cat "$dir/patch"; exit 1; }
    done
'

unasked >/dev/null

step 'a new queue is known at once' '
    printf "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: below}
spec: {parent: default, weight: 1}\n" >"$dir/queue" && k create -f "$dir/queue" &&
    review batch.volcano.sh v1alpha1 jobs "$(job "$good")" &&
    within 10 eval "ask \"$dir/own.crt\" \"$service\" /jobs/validate --data \"@$dir/body\" &&
        answers \"has 1 child queues\"" &&
    k delete -f "$dir/queue" &&
    within 10 eval "ask \"$dir/own.crt\" \"$service\" /jobs/validate --data \"@$dir/body\" &&
        answers \"\\\"allowed\\\":true\""
'

step 'a body over 3 MiB is refused' '
    head -c 3145729 /dev/zero | tr "\0" " " >"$dir/large" &&
    is "$(ask "$dir/own.crt" "$service" /jobs/validate --data-binary "@$dir/large")" 413 &&
    answers "request body too large"
'

step 'a body of 3 MiB is read' '
    head -c 3145728 /dev/zero | tr "\0" " " >"$dir/large" &&
    is "$(ask "$dir/own.crt" "$service" /jobs/validate --data-binary "@$dir/large")" 200 &&
    answers "\"allowed\":false"
'

step 'GET is refused' '
    is "$(ask "$dir/own.crt" "$service" /jobs/validate)" 405
'

step 'paths that are unknown or not enabled do not exist' '
    is "$(ask "$dir/own.crt" "$service" /jobs/eat --data x)" 404 &&
    is "$(ask "$dir/own.crt" "$service" /cronjobs/validate --data x)" 404
'

step 'another content type is refused' '
    media=text/plain &&
    is "$(ask "$dir/own.crt" "$service" /jobs/validate --data x)" 200 &&
    is "$(wc -c <"$dir/answer" | tr -d " ")" 0
'

step 'an invalid body is answered' '
    is "$(ask "$dir/own.crt" "$service" /jobs/validate --data "{")" 200 && answers "json parse error"
'

step 'health is served over TLS' '
    port=$(sed -n "s/.*health on port \([0-9]*\)$/\1/p" "$dir/hooks.line") &&
    is "$(ask "$dir/own.crt" "$service" /healthz)" 200 && answers ok
'

stop_hooks TERM
step 'SIGTERM ends it cleanly' '
    is "$status" 0
'

start_hooks
step 'the next process uses the certificate of the first' '
    review batch.volcano.sh v1alpha1 jobs "$(job "$good")" &&
    is "$(ask "$dir/own.crt" "$service" /jobs/validate --data "@$dir/body")" 200
'
stop_hooks TERM

# ---- rights ----

# command_by USER: a review of a Command that closes a queue.
command_by() {
    review bus.volcano.sh v1alpha1 commands "{\"apiVersion\":\"bus.volcano.sh/v1alpha1\",\"kind\":\"Command\",
        \"metadata\":{\"name\":\"n\"},\"action\":\"CloseQueue\",\"target\":{\"apiVersion\":
        \"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"name\":\"default\"}}" &&
        sed -i "s/\"uid\":\"u-1\",/&\"userInfo\":{\"username\":\"$1\"},/" "$dir/body"
}
start_hooks --enabled-admission /commands/validate
step 'a user who may not update a queue cannot close it by a Command' '
    command_by eve &&
    is "$(ask "$dir/own.crt" "$service" /commands/validate --data "@$dir/body")" 200 &&
    answers "\"allowed\":false" && answers "CloseQueue of Queue \\\"default\\\" requires the right to update it: User \\\"eve\\\" cannot update resource \\\"queues\\\"" &&
    command_by "" &&
    is "$(ask "$dir/own.crt" "$service" /commands/validate --data "@$dir/body")" 200 &&
    answers "\"allowed\":false"
'
step 'a user who may update a queue can close it by a Command' '
    k create clusterrole closer --verb=update --resource=queues.scheduling.volcano.sh --resource-name=default &&
    k create clusterrolebinding closer --clusterrole=closer --user=carl && command_by carl &&
    within 10 eval "is \"\$(ask $dir/own.crt $service /commands/validate --data @$dir/body)\" 200 &&
        answers \"\\\"allowed\\\":true\""
'
stop_hooks TERM

# ---- files ----

cp "$data/server.crt" "$dir/tls.crt"
cp "$data/server.key" "$dir/tls.key"
for part in crt key; do
    kubectl get secret -n volcano-system volcano-admission-secret -o "jsonpath={.data.tls\\.$part}" |
        base64 -d >"$dir/next.$part"
done
groups() {
    printf 'resourceGroups:\n- resourceGroup: management\n  object: {key: namespace, value: [infra]}
  schedulerName: %s\n' "$1" >"$dir/groups.tmp"
    mv "$dir/groups.tmp" "$dir/groups.yaml"
}
groups first
start_hooks --tls-cert-file "$dir/tls.crt" --tls-private-key-file "$dir/tls.key" \
    --admission-conf "$dir/groups.yaml"

step 'certificates from files are served, and the configurations stay unchanged' '
    review batch.volcano.sh v1alpha1 jobs "$(job "$good")" &&
    is "$(ask "$data/ca.crt" 127.0.0.1 /jobs/validate --data "@$dir/body")" 200 &&
    bundle validating volcano-admission-service-jobs-validate | cmp - "$dir/own.crt"
'

# A request whose body is still to come holds its connection while the files change.
mkfifo "$dir/slow"
curl -sS -v --max-time 25 --cacert "$data/ca.crt" -o "$dir/slow.answer" -X POST -T - \
    -H 'Content-Type: application/json' -H 'Expect:' "https://127.0.0.1:$port/jobs/validate" \
    <"$dir/slow" 2>"$dir/slow.trace" &
slow=$!
exec 3>"$dir/slow"

step 'new connections get new certificate files' '
    within 10 eval "grep -q \"^> POST\" $dir/slow.trace" &&
    mv "$dir/next.crt" "$dir/tls.crt" && mv "$dir/next.key" "$dir/tls.key" &&
    review batch.volcano.sh v1alpha1 jobs "$(job "$good")" &&
    within 10 eval "is \"\$(ask $dir/own.crt $service /jobs/validate --data @$dir/body)\" 200"
'

review batch.volcano.sh v1alpha1 jobs "$(job "$good")"
cat "$dir/body" >&3
exec 3>&-
wait "$slow"
slow=$?
step 'an older connection is still answered' '
    is "$slow" 0 && grep -qF "\"allowed\":true" "$dir/slow.answer"
'

step 'a key that does not match the certificate changes nothing' '
    cp "$data/server.crt" "$dir/half" && mv "$dir/half" "$dir/tls.crt" &&
    within 10 eval "grep -q \"cannot use the certificate files\" $dir/hooks.log" &&
    review batch.volcano.sh v1alpha1 jobs "$(job "$good")" &&
    is "$(ask "$dir/own.crt" "$service" /jobs/validate --data "@$dir/body")" 200
'

pod='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"},"spec":{"containers":[]}}'
step 'the file decides where pods of a resource group run' '
    review "" v1 pods "$pod" &&
    is "$(ask "$dir/own.crt" "$service" /pods/mutate --data "@$dir/body")" 200 &&
    is "$(patch)" "[{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"first\"}]"
'

step 'a changed file is read again' '
    groups second && review "" v1 pods "$pod" &&
    within 10 eval "ask $dir/own.crt $service /pods/mutate --data @$dir/body && patch | grep second"
'

step 'an invalid file changes nothing' '
    printf "resourceGroups: 7\n" >"$dir/groups.yaml" &&
    within 10 eval "grep -q \"cannot use the admission configuration\" $dir/hooks.log" &&
    review "" v1 pods "$pod" &&
    is "$(ask "$dir/own.crt" "$service" /pods/mutate --data "@$dir/body")" 200 &&
    patch | grep second
'

stop_hooks INT
step 'SIGINT ends the server, too' '
    is "$status" 0
'

# ---- bad options ----

step 'invalid options are reported' '
    for row in \
        "--port=70000|the port should be in the range of 1 and 65535" \
        "--enabled-admission=/jobs/eat|enabled admission /jobs/eat not found" \
        "--tls-cert-file=x|--tls-cert-file and --tls-private-key-file must be given together" \
        "--feature-gates=Nope=true|unrecognized feature gate: Nope" \
        "--tls-cert-file=$dir/none --tls-private-key-file=$dir/none|$dir/none"; do
        "$HEKLA" webhook-manager --kubeconfig "$KUBECONFIG" --webhook-namespace volcano-system \
            ${row%%|*} >"$dir/answer" 2>&1 && { echo "${row%%|*}: expected a failure"; exit 1; }
        answers "${row#*|}" || exit 1
    done
    "$HEKLA" webhook-manager --kubeconfig "$KUBECONFIG" >"$dir/answer" 2>&1
    answers "failed to start webhooks as both"
'

finish
