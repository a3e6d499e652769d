#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Admission webhooks that a user configures: one over loopback that changes, refuses, warns, stalls
# and answers nonsense. HEKLA names the program; needs kubectl, python3 and openssl.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl openssl python3
hook=

end_others() {
    [ -z "$hook" ] || kill "$hook"
}

# start_hook: starts the webhook, and sets $hook and $hook_port.
start_hook() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=hook \
        -addext subjectAltName=IP:127.0.0.1,DNS:hook.default.svc \
        -keyout "$dir/hook.key" -out "$dir/hook.crt" 2>"$dir/openssl" || return 1
    rm -f "$dir/port"
    mkfifo "$dir/port"
    tests/e2e/webhooks_of_others.py "$dir/hook.crt" "$dir/hook.key" "$dir/asked" >"$dir/port" \
        2>"$dir/hook.err" &
    hook=$!
    hook_port=$(timeout 20 head -n 1 "$dir/port")
    [ -n "$hook_port" ]
}

# configure KIND NAME CLIENT [FIELDS]: creates a Validating or Mutating configuration for ConfigMaps.
configure() {
    cat >"$dir/hook.yaml" <<-END
	apiVersion: admissionregistration.k8s.io/v1
	kind: $1WebhookConfiguration
	metadata: {name: $2}
	webhooks:
	- name: $2.example.com
	  clientConfig: {$3, caBundle: $(base64 -w 0 "$dir/hook.crt")}
	  rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
	  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
	  sideEffects: None
	  admissionReviewVersions: [v1]
	  ${4:-timeoutSeconds: 10}
	END
    k apply -f "$dir/hook.yaml"
}

# at PATH: the clientConfig for the webhook's URL.
at() {
    echo "url: 'https://127.0.0.1:$hook_port$1'"
}

# forget: deletes all configurations.
forget() {
    k delete validatingwebhookconfigurations,mutatingwebhookconfigurations --all
}

# asked LINE: the webhook has received this request.
asked() {
    grep -qxF -- "$1" "$dir/asked" && return 0
    echo "expected: $1"
    cat "$dir/asked"
    return 1
}

start
start_hook || { echo "Bail out! no webhook: $(cat "$dir/openssl" "$dir/hook.err")"; exit 1; }

step 'a mutating webhook changes what is created' '
    configure Mutating label "$(at /label)" && k create configmap one &&
        k get configmap one -o jsonpath={.metadata.labels.hooked} && says yes &&
        asked "/label CREATE ConfigMap default/one admin"
'
step 'and what is patched' '
    k patch configmap one --type=merge -p "{\"data\":{\"a\":\"b\"}}" &&
        asked "/label UPDATE ConfigMap default/one admin"
'
step 'a dry run asks as well and stores nothing' '
    k create configmap dry --dry-run=server -o yaml && says "hooked: \"yes\"" &&
        refused NotFound get configmap dry
'
step 'a validating webhook refuses creation, update and deletion with its own words' '
    forget && configure Validating guard "$(at /deny)" &&
        words="admission webhook \"guard.example.com\" denied the request: not on my watch" &&
        refused "$words" create configmap two &&
        refused "$words" label configmap one x=y &&
        refused "$words" delete configmap one &&
        asked "/deny DELETE ConfigMap default/one admin"
'
step 'other namespaces and kinds are not its concern' '
    k create namespace other && k create configmap two -n other && k create secret generic two
'
step 'a webhook can be deleted while it refuses everything' '
    forget && k create configmap two
'
step 'its warnings are shown' '
    configure Validating warn "$(at /warn)" && k label configmap one doubt=yes &&
        grep -qF "Warning: the webhook has doubts" "$dir/err"
'
step 'an answer that is none refuses, unless failures are ignored' '
    forget && configure Validating garbage "$(at /garbage)" &&
        refused "failed calling webhook \"garbage.example.com\": received invalid webhook response" \
            create configmap three && forget &&
        configure Validating garbage "$(at /garbage)" "failurePolicy: Ignore" &&
        k create configmap three
'
step 'a body without end is cut off' '
    forget && configure Validating endless "$(at /endless)" &&
        refused "the answer is longer than 1048576 bytes" create configmap four
'
step 'a webhook that does not listen refuses' '
    forget && configure Validating dead "url: \"https://127.0.0.1:1/\"" &&
        refused "failed calling webhook \"dead.example.com\": failed to call webhook: Post" \
            create configmap four
'
step 'so does one that nobody vouches for' '
    forget && configure Validating stranger "url: \"https://localhost:$hook_port/allow\"" &&
        refused "failed calling webhook \"stranger.example.com\"" create configmap four
'
step 'one that never answers delays nobody else' '
    forget && configure Validating slow "$(at /slow)" "timeoutSeconds: 5" && {
        began=$(date +%s)
        kubectl create configmap four >"$dir/slow" 2>&1 &
        waiting=$!
        within 10 asked "/slow CREATE ConfigMap default/four admin" || return 1
        k create secret generic quick && k create configmap quick -n other || return 1
        [ $(($(date +%s) - began)) -lt 5 ] || echo "the others took as long as the slow one"
        wait $waiting
        [ $(($(date +%s) - began)) -ge 5 ] && grep -F "context deadline exceeded" "$dir/slow"
    }
'
step 'a Service leads to the webhook' '
    forget && configure Validating service \
        "service: {namespace: default, name: hook, path: /deny}" &&
        refused "service \"hook\" not found" create configmap five &&
        k create service clusterip hook --clusterip=None --tcp=443:$hook_port &&
        refused "no endpoints available for service \"hook\"" create configmap five &&
        printf "%s\n" "apiVersion: v1" "kind: Endpoints" "metadata: {name: hook}" "subsets:" \
            "- addresses: [{ip: 127.0.0.1}]" \
            "  ports: [{name: \"443-$hook_port\", port: $hook_port}]" >"$dir/ep.yaml" &&
        k apply -f "$dir/ep.yaml" && refused "not on my watch" create configmap five
'
step 'a configuration with a URL and a Service is refused' '
    refused "exactly one of url or service is required" apply -f - <<-END
	apiVersion: admissionregistration.k8s.io/v1
	kind: ValidatingWebhookConfiguration
	metadata: {name: both}
	webhooks:
	- name: both.example.com
	  clientConfig: {url: "https://h/", service: {namespace: other, name: s}}
	  sideEffects: None
	  admissionReviewVersions: [v1]
	END
'
step 'what has no effect here says so' '
    k create -f - <<-END &&
	apiVersion: networking.k8s.io/v1
	kind: NetworkPolicy
	metadata: {name: closed}
	spec: {podSelector: {}}
	END
        grep -qF "Warning: this server does not enforce NetworkPolicies" "$dir/err"
'
stop TERM
step 'the server ends as it should' '[ "$status" -eq 0 ]'

finish
