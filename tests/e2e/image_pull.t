#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Images come from a registry: by hand with hekla image pull, and for pods with --images pull. The
# registry is Debian's docker-registry on loopback, with a password.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3 skopeo docker-registry
[ -x "${BUSYBOX:=/bin/busybox}" ] || skip_all 'no static busybox'
unshare -Urm true 2>/dev/null || skip_all 'user namespaces are not permitted'
export BUSYBOX
verb=up options='--images pull'
registry=
secret=s3cret-word

end_others() {
    [ -z "$registry" ] || kill "$registry" 2>/dev/null
}

# listens PID: sets $host to the address on which the process listens.
listens() {
    port=$(python3 - "$1" <<'PY'
import os, sys
pid = sys.argv[1]
inodes = set()
for fd in os.listdir(f"/proc/{pid}/fd"):
    try:
        link = os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        continue
    if link.startswith("socket:["):
        inodes.add(link[8:-1])
for line in open(f"/proc/{pid}/net/tcp"):
    f = line.split()
    if f[3] == "0A" and f[9] in inodes:
        print(int(f[1].split(":")[1], 16))
PY
)
    [ -n "$port" ] && host=127.0.0.1:$port
}

# start_registry: with the user "tester", and HTTP.
start_registry() {
    python3 -W ignore -c "
import crypt, sys
print('tester:' + crypt.crypt(sys.argv[1], crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)))" "$secret" >"$dir/htpasswd" || return 1
    cat >"$dir/registry.yml" <<YAML
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: $dir/registry}, delete: {enabled: true}}
auth: {htpasswd: {realm: test, path: $dir/htpasswd}}
http: {addr: "127.0.0.1:0"}
YAML
    docker-registry serve "$dir/registry.yml" >"$dir/registry.log" 2>&1 &
    registry=$!
    within 20 listens $registry && listens $registry || return 1
    # HTTP is permitted for this registry, in the settings of the user.
    mkdir -p "$dir/.config/containers" || return 1
    printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$host" >"$dir/.config/containers/registries.conf"
    real_home=$dir HOME=$dir
    export HOME
}

# push SRC NAME: SRC is an OCI directory or archive.
push() {
    skopeo --insecure-policy copy -q --dest-creds "tester:$secret" --dest-tls-verify=false "$1" "docker://$host/$2"
}

# image ARG...: runs the verb; its output goes to $dir/out and $dir/err.
image() {
    "$HEKLA" image "$@" --data-dir "$dir/data" >"$dir/out" 2>"$dir/err" && return 0
    cat "$dir/err"
    return 1
}

# refuses TEXT ARG...: the verb fails with one line that has the text.
refuses() {
    text=$1
    shift
    image "$@" && { echo "expected to fail: image $*"; return 1; }
    [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -qF -- "$text" "$dir/err" && return 0
    echo "expected: $text"
    return 1
}

# pod NAME IMAGE POLICY [LINE]: prints what the image says.
pod() {
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  ${4:-}
  containers: [{name: main, image: "$2", imagePullPolicy: $3}]
YAML
}

# is TYPE/NAME PATH VALUE
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ]
}

# ran POD: it has succeeded; its log is in $dir/out.
ran() {
    within 30 is "pod/$1" .status.phase Succeeded && k logs "$1"
}

# waits POD TEXT...: the container waits, and says why.
waits() {
    name=$1
    shift
    kubectl get pod "$name" -o "jsonpath={.status.containerStatuses[0].state.waiting}" >"$dir/out"
    says "$@"
}

# described POD TEXT
described() {
    kubectl describe pod "$1" | tr -s ' ' | grep -F -- "$2"
}

start_registry || skip_all "docker-registry does not start: $(tail -n 1 "$dir/registry.log")"
python3 tests/e2e/images.py dir "$dir/oci" && push "oci:$dir/oci" team/app:1 2>"$dir/push" ||
    skip_all "cannot fill the registry: $(tail -n 1 "$dir/push")"

step 'pull needs the password of the registry' '
    refuses "authentication required" pull "$host/team/app:1" &&
        refuses "option --creds: want USER:PASSWORD" pull --creds tester "$host/team/app:1"
'
step 'pull brings an image, with the digest that the registry has' '
    image pull --creds "tester:$secret" "$host/team/app:1" && says "$host/team/app:1 sha256:" &&
        image list -o json && digest=$(sed -n "s/.*\"digest\": \"\(.*\)\",/\1/p" "$dir/out") &&
        [ "$digest" = "$(skopeo inspect --creds "tester:$secret" --tls-verify=false --format "{{.Digest}}" "docker://$host/team/app:1")" ]
'
step 'credentials come from a file, too, and are not left behind' '
    python3 -c "
import base64, json, sys
auth = base64.b64encode((\"tester:\" + sys.argv[2]).encode()).decode()
print(json.dumps({\"auths\": {sys.argv[1]: {\"auth\": auth}}}))" "$host" "$secret" >"$dir/auth.json" &&
        image pull --authfile "$dir/auth.json" "$host/team/app:1" && [ -z "$(ls "$dir/data/images/tmp")" ] &&
        ! grep -rq "$(sed -n "s/.*\"auth\": \"\(.*\)\"}.*/\1/p" "$dir/auth.json")" "$dir/data"
'
step 'a name with a digest gets that image and no other' '
    image list -o json && digest=$(sed -n "s/.*\"digest\": \"\(.*\)\",/\1/p" "$dir/out") &&
        image pull --authfile "$dir/auth.json" "$host/team/app@$digest" && says "$host/team/app@$digest" &&
        refuses "manifest unknown" pull --authfile "$dir/auth.json" \
            "$host/team/app@sha256:$(printf %064d 0)"
'
step 'the digest of an index for several platforms is checked against its manifest' '
    python3 tests/e2e/images.py multi "$dir/multi.tar" && mkdir "$dir/multi" && tar -xf "$dir/multi.tar" -C "$dir/multi" &&
        python3 - "$dir/multi" "$host" "$secret" "$dir/indexdigest" <<"PY"
import base64, hashlib, json, pathlib, sys, urllib.request
top, host, secret, out = sys.argv[1:]
auth = "Basic " + base64.b64encode(("tester:" + secret).encode()).decode()
blobs = pathlib.Path(top, "blobs/sha256")
def put(kind, name, data, media):
    if kind == "manifests":
        url, method = f"http://{host}/v2/team/multi/manifests/{name}", "PUT"
    else:
        r = urllib.request.Request(f"http://{host}/v2/team/multi/blobs/uploads/", method="POST", headers={"Authorization": auth}, data=b"")
        url, method = urllib.request.urlopen(r).headers["Location"] + "&digest=sha256:" + name, "PUT"
    r = urllib.request.Request(url, method=method, data=data, headers={"Authorization": auth, "Content-Type": media})
    return urllib.request.urlopen(r)
index = json.loads((blobs / json.loads(pathlib.Path(top, "index.json").read_text())["manifests"][0]["digest"][7:]).read_text())
one = index["manifests"][1]
manifest = json.loads((blobs / one["digest"][7:]).read_text())
for d in [manifest["config"], *manifest["layers"]]:
    put("blobs", d["digest"][7:], (blobs / d["digest"][7:]).read_bytes(), "application/octet-stream")
put("manifests", "single", (blobs / one["digest"][7:]).read_bytes(), one["mediaType"])
index["manifests"] = [one]
index["mediaType"] = "application/vnd.oci.image.index.v1+json"
data = json.dumps(index).encode()
put("manifests", "1", data, index["mediaType"])
pathlib.Path(out).write_text("sha256:" + hashlib.sha256(data).hexdigest())
PY
        image pull --authfile "$dir/auth.json" "$host/team/multi@$(cat "$dir/indexdigest")"
'
step 'a registry that does not answer is reported' '
    refuses "cannot pull" pull 127.0.0.1:1/team/app:1
'
step 'without skopeo, pull says what to do' '
    mkdir "$dir/none" && ! PATH=$dir/none "$HEKLA" image pull --data-dir "$dir/data" "$host/team/app:1" 2>"$dir/err" &&
        grep -F "skopeo is not installed" "$dir/err"
'
"$HEKLA" image prune --all --data-dir "$dir/data" >"$dir/log" 2>&1
start

step 'a pod whose image needs a password waits, and says so' '
    pod denied "$host/team/app:1" IfNotPresent | kubectl create -f - &&
        within 20 described denied "Failed to pull image \"$host/team/app:1\"" &&
        within 20 described denied "Error: ErrImagePull" && within 20 described denied "Error: ImagePullBackOff" &&
        within 20 waits denied ImagePullBackOff "Back-off pulling image" "authentication required"
'
step 'with the secret of imagePullSecrets it runs' '
    kubectl create secret docker-registry access --docker-server="$host" --docker-username=tester --docker-password="$secret" &&
        pod allowed "$host/team/app:1" IfNotPresent "imagePullSecrets: [{name: access}]" | kubectl create -f - &&
        ran allowed && prints "entry one two in /srv/work as 1000:1000 with hello" &&
        within 20 described allowed "Pulling image \"$host/team/app:1\"" &&
        within 20 described allowed "Successfully pulled image" &&
        ! grep -rq "$secret" "$data/node" && [ -z "$(find "$data/node" -name ".auth.*")" ]
'
step 'IfNotPresent takes the image that is there' '
    pod present "$host/team/app:1" IfNotPresent | kubectl create -f - && ran present &&
        within 20 described present "already present on machine" &&
        ! described present "Pulling image"
'
step 'Always asks the registry, and gets the new image' '
    python3 -c "
import sys; sys.path.insert(0, \"tests/e2e\")
import images
layers = [images.base(), images.top()]
images.oci(layers, \"gzip\", images.config(layers, Cmd=[\"changed\"])).write_dir(sys.argv[1])" "$dir/oci2" &&
        push "oci:$dir/oci2" team/app:1 &&
        pod always "$host/team/app:1" Always "imagePullSecrets: [{name: access}]" | kubectl create -f - &&
        ran always && says "entry changed"
'
step 'Never does not pull' '
    pod never "$host/team/other:1" Never "imagePullSecrets: [{name: access}]" | kubectl create -f - &&
        within 20 waits never ErrImageNeverPull "is not present with pull policy of Never"
'
step 'a pod that waits for an image starts when the registry has it' '
    pod late "$host/team/late:1" IfNotPresent "imagePullSecrets: [{name: access}]" | kubectl create -f - &&
        within 20 described late "Error: ErrImagePull" && push "oci:$dir/oci" team/late:1 && ran late
'
step 'the server ends while a pod waits' '
    kubectl delete pod --all --grace-period=1 --timeout=60s
'
stop TERM
content
finish
