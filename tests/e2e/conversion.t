#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Versions of custom resources: the strategy None, and a conversion webhook over loopback that
# converts, fails, lies, stalls and dies. HEKLA names the program; needs kubectl, python3, openssl
# and curl.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl openssl python3 curl
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
    tests/e2e/conversion_webhook.py "$dir/hook.crt" "$dir/hook.key" "$dir/asked" >"$dir/port" \
        2>"$dir/hook.err" &
    hook=$!
    hook_port=$(timeout 20 head -n 1 "$dir/port")
    [ -n "$hook_port" ]
}

# define STORED CONVERSION: the CRD of places with v1 and v2; STORED is the storage version.
define() {
    cat >"$dir/crd.yaml" <<-END
	apiVersion: apiextensions.k8s.io/v1
	kind: CustomResourceDefinition
	metadata: {name: places.example.com}
	spec:
	  group: example.com
	  scope: Namespaced
	  names: {plural: places, kind: Place}
	  conversion: $2
	  versions:
	  - name: v1
	    served: true
	    storage: $([ "$1" = v1 ] && echo true || echo false)
	    subresources: {status: {}}
	    schema:
	      openAPIV3Schema:
	        type: object
	        properties:
	          spec: {type: object, properties: {hostPort: {type: string}, color: {type: string}}}
	          status: {type: object, properties: {note: {type: string}}}
	  - name: v2
	    served: true
	    storage: $([ "$1" = v2 ] && echo true || echo false)
	    subresources: {status: {}, scale: {specReplicasPath: .spec.port, statusReplicasPath: .spec.port}}
	    schema:
	      openAPIV3Schema:
	        type: object
	        properties:
	          spec:
	            type: object
	            properties:
	              host: {type: string}
	              port: {type: integer, maximum: 65535}
	              color: {type: string, default: grey}
	          status: {type: object, properties: {note: {type: string}}}
	END
    k apply -f "$dir/crd.yaml"
}

# by PATH: the conversion by the webhook's URL.
by() {
    echo "{strategy: Webhook, webhook: {conversionReviewVersions: [${2:-v1}],
        clientConfig: {url: 'https://127.0.0.1:$hook_port$1', caBundle: $(base64 -w 0 "$dir/hook.crt")}}}"
}

# place VERSION NAME SPEC: prints a Place.
place() {
    cat <<-END
	apiVersion: example.com/$1
	kind: Place
	metadata: {name: $2, namespace: default}
	spec: {$3}
	END
}

# make VERSION NAME SPEC: creates a Place.
make() {
    place "$@" >"$dir/place.yaml"
    k create -f "$dir/place.yaml"
}

# v VERSION: the name of the kind in that version.
v() {
    echo "places.$1.example.com"
}

# asked LINE: the webhook has received this request.
asked() {
    grep -qxF -- "$1" "$dir/asked" && return 0
    echo "expected: $1"
    cat "$dir/asked"
    return 1
}

# raw METHOD PATH TYPE BODY: sends a request; the answer is in $dir/out.
raw() {
    curl -sS --max-time 20 --cacert "$data/ca.crt" -o "$dir/out" -X "$1" -A test \
        -H "Authorization: Bearer $token" -H "Content-Type: $3" --data-binary "$4" "$url$2"
}

start
PLACES=/apis/example.com/v1/namespaces/default/places

# ---- the strategy None ----

step 'without a webhook, versions differ in apiVersion only' '
    define v1 "{strategy: None}" && within 10 make v1 plain "hostPort: \"a:1\"" &&
    k get "$(v v2)" plain -o json && json "d[\"apiVersion\"] == \"example.com/v2\"" &&
    json "d[\"spec\"] == {\"color\": \"grey\"}"
'

step 'an object that was stored in the former storage version is shown in the new one' '
    define v2 "{strategy: None}" &&
    k get "$(v v2)" plain -o json && json "d[\"apiVersion\"] == \"example.com/v2\"" &&
    k get "$(v v1)" plain -o json && json "d[\"apiVersion\"] == \"example.com/v1\"" &&
    k get "$(v v2)" -o json && json "d[\"items\"][0][\"apiVersion\"] == \"example.com/v2\""
'

step 'every version that was ever stored is listed in status.storedVersions' '
    field crd/places.example.com .status.storedVersions "[\"v1\",\"v2\"]"
'

step 'a version that may still be stored cannot be dropped' '
    refused "must remain in spec.versions until a storage migration ensures" patch crd \
        places.example.com --type json -p "[{\"op\":\"remove\",\"path\":\"/spec/versions/0\"}]"
'

step 'a migration writes each object once, and then the version may go' '
    old=$(k get "$(v v2)" plain -o "jsonpath={.metadata.resourceVersion}" && cat "$dir/out") &&
    k get "$(v v2)" plain -o json && cp "$dir/out" "$dir/same.json" &&
    k replace -f "$dir/same.json" &&
    new=$(k get "$(v v2)" plain -o "jsonpath={.metadata.resourceVersion}" && cat "$dir/out") &&
    [ "$old" != "$new" ] &&
    k get "$(v v2)" plain -o json && cp "$dir/out" "$dir/same.json" &&
    k replace -f "$dir/same.json" && field "$(v v2)/plain" .metadata.resourceVersion "$new" &&
    k patch crd places.example.com --subresource status --type merge \
        -p "{\"status\":{\"storedVersions\":[\"v2\"]}}" &&
    field crd/places.example.com .status.storedVersions "[\"v2\"]"
'

step 'status.storedVersions always names the storage version' '
    refused "must have the storage version v2" patch crd places.example.com --subresource status \
        --type merge -p "{\"status\":{\"storedVersions\":[\"v1\"]}}" &&
    k delete "$(v v2)" plain
'

# ---- the definition ----

step 'a conversion webhook has a url or a service, and not both' '
    refused "exactly one of url or service is required" patch crd places.example.com --type merge \
        -p "{\"spec\":{\"conversion\":{\"strategy\":\"Webhook\",\"webhook\":{
            \"conversionReviewVersions\":[\"v1\"],\"clientConfig\":{\"url\":\"https://a.example\",
            \"service\":{\"name\":\"a\",\"namespace\":\"b\"}}}}}}" &&
    refused "exactly one of url or service is required" patch crd places.example.com --type merge \
        -p "{\"spec\":{\"conversion\":{\"strategy\":\"Webhook\",\"webhook\":{
            \"conversionReviewVersions\":[\"v1\"],\"clientConfig\":{}}}}}"
'

step 'a conversion that cannot work is refused' '
    refused "required when strategy is set to Webhook" patch crd places.example.com --type merge \
        -p "{\"spec\":{\"conversion\":{\"strategy\":\"Webhook\"}}}" &&
    refused "should not be set when strategy is not set to Webhook" patch crd places.example.com \
        --type merge -p "{\"spec\":{\"conversion\":{\"strategy\":\"None\",\"webhook\":{
            \"conversionReviewVersions\":[\"v1\"],\"clientConfig\":{\"url\":\"https://a.example\"}}}}}" &&
    refused "must include at least one of v1, v1beta1" patch crd places.example.com --type merge \
        -p "{\"spec\":{\"conversion\":{\"strategy\":\"Webhook\",\"webhook\":{
            \"conversionReviewVersions\":[\"v7\"],\"clientConfig\":{\"url\":\"https://a.example\"}}}}}" &&
    refused "Unsupported value: \"Magic\"" patch crd places.example.com --type merge \
        -p "{\"spec\":{\"conversion\":{\"strategy\":\"Magic\"}}}"
'

# ---- a webhook ----

start_hook || echo "Bail out! no webhook: $(cat "$dir/hook.err")"

step 'a create is answered in its own version and stored in the storage version' '
    define v2 "$(by /convert)" &&
    raw POST "$PLACES" application/yaml "$(place v1 one "hostPort: \"a:80\"")" &&
    json "(d[\"apiVersion\"], d[\"spec\"]) == (\"example.com/v1\", {\"hostPort\": \"a:80\", \"color\": \"grey\"})" &&
    json "d[\"metadata\"][\"resourceVersion\"] != \"\"" &&
    asked "/convert example.com/v2 1 apiextensions.k8s.io/v1" && : >"$dir/asked" &&
    k get "$(v v2)" one -o json && json "d[\"spec\"] == {\"host\": \"a\", \"port\": 80, \"color\": \"grey\"}" &&
    [ ! -s "$dir/asked" ]
'

step 'a get in another version converts' '
    make v2 two "host: b, port: 81" && k get "$(v v1)" two -o json &&
    json "(d[\"apiVersion\"], d[\"spec\"][\"hostPort\"]) == (\"example.com/v1\", \"b:81\")"
'

step 'the schema of the version that a request names applies' '
    place v2 bad "host: b, port: 99999" >"$dir/bad.yaml" &&
    refused "less than or equal to 65535" create -f "$dir/bad.yaml"
'

step 'a list converts many objects with few requests' '
    for i in 1 2 3 4 5 6 7 8 9; do place v2 "many-$i" "host: m, port: $i"; echo; echo ---; done \
        >"$dir/many.yaml" && k create -f "$dir/many.yaml" && : >"$dir/asked" &&
    k get "$(v v1)" -o json &&
    json "sorted(i[\"spec\"][\"hostPort\"] for i in d[\"items\"]) ==
        [\"a:80\", \"b:81\"] + [\"m:%d\" % i for i in range(1, 10)]" &&
    json "{i[\"apiVersion\"] for i in d[\"items\"]} == {\"example.com/v1\"}" &&
    asked "/convert example.com/v1 9 apiextensions.k8s.io/v1" &&
    [ "$(wc -l <"$dir/asked")" -eq 1 ]
'

step 'a list in pages gives each object once' '
    k get "$(v v1)" --chunk-size 3 -o name && [ "$(sort -u "$dir/out" | wc -l)" -eq 11 ] &&
    [ "$(wc -l <"$dir/out")" -eq 11 ]
'

step 'an update in one version is seen in the other' '
    k get "$(v v1)" one -o json &&
    sed "s/a:80/c:90/" "$dir/out" >"$dir/one.json" && k replace -f "$dir/one.json" &&
    field "$(v v2)/one" .spec.port 90 && field "$(v v2)/one" .metadata.generation 2
'

step 'patches of each type apply to the version they name' '
    k patch "$(v v1)" one --type merge -p "{\"spec\":{\"hostPort\":\"d:91\"}}" &&
    field "$(v v2)/one" .spec.host d &&
    k patch "$(v v1)" one --type json \
        -p "[{\"op\":\"replace\",\"path\":\"/spec/hostPort\",\"value\":\"e:92\"}]" &&
    field "$(v v2)/one" .spec.port 92 &&
    place v1 one "hostPort: \"f:93\"" >"$dir/one.yaml" &&
    k apply --server-side --force-conflicts -f "$dir/one.yaml" && field "$(v v2)/one" .spec.port 93
'

step 'a patch that changes nothing writes nothing' '
    k get "$(v v2)" one -o "jsonpath={.metadata.resourceVersion}" && rv=$(cat "$dir/out") &&
    k patch "$(v v1)" one --type merge -p "{\"spec\":{\"hostPort\":\"f:93\"}}" &&
    field "$(v v2)/one" .metadata.resourceVersion "$rv"
'

step 'the subresources status and scale convert, too' '
    k patch "$(v v1)" one --subresource status --type merge -p "{\"status\":{\"note\":\"fine\"}}" &&
    field "$(v v2)/one" .status.note fine && field "$(v v2)/one" .spec.port 93 &&
    k scale "$(v v2)" one --replicas 94 && field "$(v v1)/one" .spec.hostPort f:94
'

step 'a dry run converts nothing into the store' '
    place v1 dry "hostPort: \"a:1\"" >"$dir/dry.yaml" &&
    k create -f "$dir/dry.yaml" --dry-run=server -o json && json "d[\"spec\"][\"hostPort\"] == \"a:1\"" &&
    gone "$(v v2)/dry"
'

step 'a watch shows all changes in its version, made in any' '
    timeout 60 "$kubectl" get "$(v v1)" -w -o "jsonpath={.apiVersion} {.metadata.name} {.spec.hostPort}{\"\\n\"}" \
        >"$dir/watch" 2>"$dir/watch.err" &
    watch=$!
    within 20 grep -qx "example.com/v1 one f:94" "$dir/watch" &&
    k patch "$(v v2)" one --type merge -p "{\"spec\":{\"port\":95}}" &&
    within 20 grep -qx "example.com/v1 one f:95" "$dir/watch" &&
    make v1 seen "hostPort: \"s:1\"" && within 20 grep -qx "example.com/v1 seen s:1" "$dir/watch" &&
    k delete "$(v v2)" seen && within 20 [ "$(grep -cx "example.com/v1 seen s:1" "$dir/watch")" -ge 1 ]
    code=$?
    kill "$watch"
    [ "$code" -eq 0 ]
'

step 'a deletion in any version removes the object' '
    k delete "$(v v1)" many-1 && gone "$(v v2)/many-1" &&
    k patch "$(v v1)" many-2 --type merge -p "{\"metadata\":{\"finalizers\":[\"example.com/f\"]}}" &&
    k delete "$(v v1)" many-2 --wait=false && k get "$(v v2)" many-2 &&
    k patch "$(v v1)" many-2 --type merge -p "{\"metadata\":{\"finalizers\":null}}" &&
    gone "$(v v2)/many-2"
'

step 'a webhook that speaks v1beta1 only is asked in that form' '
    define v2 "$(by /convert v1beta1)" && : >"$dir/asked" && k get "$(v v1)" one &&
    asked "/convert example.com/v1 1 apiextensions.k8s.io/v1beta1"
'

step 'labels may change, other metadata may not' '
    define v2 "$(by /label)" && k get "$(v v1)" one -o json &&
    json "d[\"metadata\"][\"labels\"] == {\"shown-in\": \"v1\"}" &&
    json "\"finalizers\" not in d[\"metadata\"]" &&
    k get "$(v v1)" -l shown-in=v1 -o name && [ "$(wc -l <"$dir/out")" -gt 3 ] &&
    k get "$(v v1)" -l shown-in=v2 -o name && prints ""
'

WEBHOOK="conversion webhook for example.com/v2, Kind=Place"
step 'a webhook that changes the identity is refused' '
    define v2 "$(by /rename)" &&
    refused "$WEBHOOK returned invalid object: must have the same name: one != one-renamed" \
        get "$(v v1)" one &&
    define v2 "$(by /uid)" &&
    refused "$WEBHOOK returned invalid object: must have the same UID" get "$(v v1)" one &&
    define v2 "$(by /version)" &&
    refused "$WEBHOOK returned invalid object at index 0: invalid groupVersion (expected example.com/v1, received example.com/v2)" \
        get "$(v v1)" one
'

step 'a webhook that fails fails the request, in its words' '
    define v2 "$(by /fail)" &&
    refused "$WEBHOOK failed: the webhook does not want to" get "$(v v1)" one &&
    raw GET "$PLACES/one" application/json "" && json "(d[\"code\"], d.get(\"reason\")) == (500, None)" &&
    refused "$WEBHOOK failed: the webhook does not want to" get "$(v v1)" &&
    refused "conversion webhook for example.com/v1, Kind=Place failed: the webhook does not want to" \
        create -f "$dir/dry.yaml" &&
    refused "$WEBHOOK failed: the webhook does not want to" delete "$(v v1)" one &&
    define v2 "$(by /fewer)" &&
    refused "$WEBHOOK returned 0 objects, expected 1" get "$(v v1)" one &&
    define v2 "$(by /garbage)" && refused "$WEBHOOK failed: " get "$(v v1)" one &&
    k get "$(v v2)" one
'

step 'the storage version needs no webhook' '
    k get "$(v v2)" && k patch "$(v v2)" one --type merge -p "{\"spec\":{\"port\":96}}"
'

step 'one bad object does not spoil requests for others' '
    define v2 "$(by /poison)" && make v2 poison "host: p, port: 1" &&
    refused "$WEBHOOK failed: the webhook does not want to" get "$(v v1)" &&
    k get "$(v v1)" one && k delete "$(v v2)" poison && k get "$(v v1)"
'

step 'a webhook that does not answer holds up nobody else' '
    define v2 "$(by /slow)" &&
    { timeout 60 "$kubectl" get "$(v v1)" one >"$dir/slow" 2>&1 & slow=$!; } &&
    within 20 asked "/slow example.com/v1 1 apiextensions.k8s.io/v1" &&
    k get "$(v v2)" one && k get nodes && k create configmap meanwhile && kill "$slow"
'

step 'an object stored in the former version is converted, too' '
    define v1 "$(by /convert)" && make v1 late "hostPort: \"l:1\"" &&
    k get "$(v v1)" -o json &&
    json "sorted(i[\"spec\"][\"hostPort\"] for i in d[\"items\"])[:4] ==
        [\"b:81\", \"f:96\", \"l:1\", \"m:3\"]" &&
    k get "$(v v2)" late -o "jsonpath={.spec.port}" && prints 1 &&
    k delete "$(v v1)" late
'

step 'a service is called like a url' '
    cat >"$dir/service.yaml" <<-END
	apiVersion: v1
	kind: Service
	metadata: {name: hook, namespace: default}
	spec: {type: ExternalName, externalName: localhost}
	END
    k create -f "$dir/service.yaml" &&
    define v2 "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {
        service: {name: hook, namespace: default, path: /convert, port: $hook_port},
        caBundle: $(base64 -w 0 "$dir/hook.crt")}}}" &&
    : >"$dir/asked" && field "$(v v1)/one" .spec.hostPort f:96 &&
    asked "/convert example.com/v1 1 apiextensions.k8s.io/v1"
'

stop TERM
start
step 'a restart of the server changes nothing' '
    field "$(v v1)/one" .spec.hostPort f:96
'

kill "$hook" && wait "$hook"
hook=
step 'a dead webhook cannot take the server with it' '
    define v2 "$(by /convert)" &&
    refused "$WEBHOOK failed: Post \"https://127.0.0.1:$hook_port/convert?timeout=30s\"" \
        get "$(v v1)" one &&
    k get "$(v v2)" && k delete "$(v v2)" --all && k delete crd places.example.com
'

stop TERM
content

finish
