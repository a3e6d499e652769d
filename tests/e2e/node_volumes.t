#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# hekla up with this machine as its node: what pods keep, what they are shown, and their last words.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl
needs_mounts
verb=up

# pod NAME SCRIPT [LINE...]: runs the script in a shell; the lines go into the container.
pod() {
    name=$1 script=$2
    shift 2
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $name}
spec:
  schedulerName: volcano
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  volumes: ${volumes:-[]}
  containers:
  - name: main
    image: none
    command: [sh, -c, '$script']
$(for line in "$@"; do echo "    $line"; done)
YAML
}

# is TYPE/NAME PATH VALUE, without the words of field.
is() {
    [ "$(kubectl get "$1" -o "jsonpath={$2}")" = "$3" ]
}

# logged POD TEXT
logged() {
    kubectl logs "$1" | grep -Fx -- "$2"
}

# empty DIRECTORY
empty() {
    [ -z "$(ls -A "$1")" ]
}

message='.status.containerStatuses[0].state.terminated.message'
start

step 'text written to /dev/termination-log is in the status' '
    pod words "echo -n goodbye >/dev/termination-log; test -c /dev/null" | kubectl create -f - &&
        within 20 is pod/words .status.phase Succeeded && field pod/words "$message" goodbye
'
step 'terminationMessagePath may be another path' '
    pod path "echo -n elsewhere >/tmp/last; exit 1" "terminationMessagePath: /tmp/last" |
        kubectl create -f - && within 20 is pod/path .status.phase Failed &&
        field pod/path "$message" elsewhere && [ ! -e /tmp/last ]
'
step 'FallbackToLogsOnError uses the end of the log' '
    pod log "echo no spoon; exit 1" "terminationMessagePolicy: FallbackToLogsOnError" |
        kubectl create -f - && within 20 is pod/log .status.phase Failed && k get pod log -o yaml &&
        says "no spoon"
'
step 'a change of a ConfigMap and of labels reaches a pod that runs, but not through a subPath' '
    kubectl create configmap conf --from-literal=word=old &&
        volumes="[{name: conf, configMap: {name: conf}}, {name: me, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]" &&
        pod watcher "until grep -q new /conf/word && grep -q blue /me/labels; do sleep 0.1; done; cat /one /conf/word; ls /conf" \
        "volumeMounts: [{name: conf, mountPath: /conf}, {name: conf, mountPath: /one, subPath: word}, {name: me, mountPath: /me}]" |
        kubectl create -f - && within 20 is pod/watcher .status.phase Running &&
        kubectl create configmap conf --from-literal=word=new --from-literal=more=1 \
            --dry-run=client -o yaml | kubectl replace -f - && kubectl label pod watcher color=blue &&
        within 20 is pod/watcher .status.phase Succeeded &&
        k logs watcher && [ "$(xargs <"$dir/out")" = "oldnewmore word" ]
'
step 'mounted ConfigMaps and Secrets are read-only' '
    volumes="[{name: conf, configMap: {name: conf}}]" &&
        pod writer "touch /conf/x || echo refused" "volumeMounts: [{name: conf, mountPath: /conf}]" |
        kubectl create -f - && within 20 is pod/writer .status.phase Succeeded && logged writer refused
'
# In a cluster the classes of volumes, and who makes volumes of them, are the cluster's.
on_kube || step 'a default storage class exists' '
    k get storageclass && says "standard (default) hekla.io/local Delete WaitForFirstConsumer"
'
on_kube || step 'a claim gets a directory when a pod needs it, and the next pod finds its content' '
    kubectl create -f - <<YAML &&
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: keep}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
YAML
        field pvc/keep .status.phase Pending && volumes="[{name: v, persistentVolumeClaim: {claimName: keep}}]" &&
        pod first "echo kept >/v/file" "volumeMounts: [{name: v, mountPath: /v}]" |
        kubectl create -f - && within 20 is pod/first .status.phase Succeeded &&
        field pvc/keep .status.phase Bound && volumes="[{name: v, persistentVolumeClaim: {claimName: keep, readOnly: true}}]" &&
        pod second "cat /v/file; touch /v/x || exit 0" "volumeMounts: [{name: v, mountPath: /v}]" |
        kubectl create -f - && within 20 is pod/second .status.phase Succeeded && logged second kept
'
on_kube || step 'a job claims volumes for its pods' '
    kubectl create -f - <<YAML &&
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: share}
spec:
  minAvailable: 2
  volumes: [{mountPath: /data, volumeClaim: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Mi}}}}]
  tasks:
  - name: w
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: none
          command: [sh, -c, "touch /data/\$HOSTNAME; until [ -e /data/share-w-0 ] && [ -e /data/share-w-1 ]; do sleep 0.1; done"]
YAML
        within 20 is job.batch.volcano.sh/share .status.state.phase Completed
'
step 'an existing volume is bound and mounted' '
    mkdir "$dir/old" && echo treasure >"$dir/old/chest" && kubectl create -f - <<YAML &&
apiVersion: v1
kind: PersistentVolume
metadata: {name: old}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadOnlyMany]
  storageClassName: ""
  hostPath: {path: $dir/old}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: old}
spec: {accessModes: [ReadOnlyMany], storageClassName: "", resources: {requests: {storage: 1Mi}}}
YAML
        within 20 is pvc/old .status.phase Bound && volumes="[{name: v, persistentVolumeClaim: {claimName: old}}]" &&
        pod reader "cat /v/chest" "volumeMounts: [{name: v, mountPath: /v}]" | kubectl create -f - &&
        within 20 is pod/reader .status.phase Succeeded && logged reader treasure
'
on_kube || step 'the directory of a deleted claim is removed once no pod uses it' '
    volumes="[{name: v, persistentVolumeClaim: {claimName: keep}}]" &&
        pod holder "exec sleep 100" "volumeMounts: [{name: v, mountPath: /v}]" | kubectl create -f - &&
        within 20 is pod/holder .status.phase Running && kubectl delete pvc keep &&
        within 20 is pv ".items[?(@.spec.claimRef.name==\"keep\")].status.phase" Released &&
        [ "$(cat "$data"/node/volumes/*/file)" = kept ] && kubectl delete pod holder &&
        kubectl delete job.batch.volcano.sh share && within 20 empty "$data/node/volumes" &&
        k get pv -o name && prints persistentvolume/old && [ -e "$dir/old/chest" ]
'
stop TERM
content
finish
