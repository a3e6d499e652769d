#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The structs that Go always writes, such as "status": {}, of every built-in kind: in bookmarks, and in
# objects that are created. The table next to this file is what encoding/json writes. HEKLA names the
# program; needs kubectl and python3.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
needs kubectl python3
needs_embedded 'a real API server is written in Go'

# created VERSION KIND PLURAL MEMBERS: a new object of the kind, with these members, has all that the table
# has for the kind; null and what the members say count as present.
created() {
    case $1 in */*) path=/apis/$1 ;; *) path=/api/$1 ;; esac
    case $3 in */*) path=$path/namespaces/default/${3#*/} ;; *) path=$path/$3 ;; esac
    printf '{"apiVersion":"%s","kind":"%s","metadata":{"name":"x"}%s}' "$1" "$2" "${4:+,$4}" >"$dir/body"
    curl -sS --max-time 20 --cacert "$data/ca.crt" -H "Authorization: Bearer $token" \
        -H "Content-Type: application/json" --data "@$dir/body" "$url$path?dryRun=All" >"$dir/out" &&
        python3 - "$1" "$2" "$dir/out" <<'PYTHON'
import json, sys
version, kind, out = sys.argv[1:]
got = json.load(open(out))
table = [line.split(" ", 2) for line in open("tests/e2e/empty_objects.txt") if not line.startswith("#")]
want = next(json.loads(text) for v, k, text in table if (v, k) == (version, kind))
def missing(want, got, path):
    for key, value in want.items():
        if value is not None and key not in got:
            yield path + key
        elif isinstance(value, dict):
            yield from missing(value, got[key], path + key + ".")
lacks = ["the object: " + json.dumps(got)] if got.get("kind") != kind else list(missing(want, got, ""))
print(version, kind, *lacks)
sys.exit(1 if lacks else 0)
PYTHON
}

start

step 'bookmarks of every built-in kind are empty objects as Go writes them' '
    python3 tests/e2e/empty_objects.py "$url" "$token" "$data/ca.crt" tests/e2e/empty_objects.txt >"$dir/out" &&
        prints "$(grep -vc "^#" tests/e2e/empty_objects.txt) kinds"
'
pod='"containers":[{"name":"c","image":"i"}]'
selector='"selector":{"matchLabels":{"a":"b"}}'
template="\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{$pod}}"
step 'created objects carry the same structs' '
    while read -r version kind plural members; do
        created "$version" "$kind" "$plural" "$members" || bad=1
    done <<OBJECTS
v1 Pod ns/pods "spec":{$pod}
v1 Node nodes
v1 Namespace namespaces
v1 Service ns/services "spec":{"ports":[{"port":1}]}
v1 ConfigMap ns/configmaps
v1 Secret ns/secrets
v1 ServiceAccount ns/serviceaccounts
v1 LimitRange ns/limitranges
v1 ResourceQuota ns/resourcequotas
v1 PodTemplate ns/podtemplates $template
v1 ReplicationController ns/replicationcontrollers "spec":{"selector":{"a":"b"},$template}
v1 PersistentVolumeClaim ns/persistentvolumeclaims "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}}}
v1 PersistentVolume persistentvolumes "spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1"},"hostPath":{"path":"/x"}}
apps/v1 Deployment ns/deployments "spec":{$selector,$template}
apps/v1 ReplicaSet ns/replicasets "spec":{$selector,$template}
apps/v1 DaemonSet ns/daemonsets "spec":{$selector,$template}
apps/v1 StatefulSet ns/statefulsets "spec":{"serviceName":"s",$selector,$template}
apps/v1 ControllerRevision ns/controllerrevisions "revision":1
batch/v1 Job ns/jobs "spec":{"template":{"spec":{"restartPolicy":"Never",$pod}}}
batch/v1 CronJob ns/cronjobs "spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",$pod}}}}}
policy/v1 PodDisruptionBudget ns/poddisruptionbudgets "spec":{"minAvailable":1}
autoscaling/v1 HorizontalPodAutoscaler ns/horizontalpodautoscalers "spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}
autoscaling/v2 HorizontalPodAutoscaler ns/horizontalpodautoscalers "spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}
networking.k8s.io/v1 Ingress ns/ingresses "spec":{"defaultBackend":{"service":{"name":"s","port":{"number":1}}}}
networking.k8s.io/v1 NetworkPolicy ns/networkpolicies "spec":{"podSelector":{}}
networking.k8s.io/v1 IngressClass ingressclasses "spec":{"controller":"example.org/c"}
coordination.k8s.io/v1 Lease ns/leases
v1 Event ns/events "involvedObject":{"namespace":"default"}
events.k8s.io/v1 Event ns/events "regarding":{"namespace":"default"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"c","reportingInstance":"i","action":"a","reason":"r","type":"Normal"
batch/v1beta1 CronJob ns/cronjobs "spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",$pod}}}}}
policy/v1beta1 PodDisruptionBudget ns/poddisruptionbudgets "spec":{"minAvailable":1}
discovery.k8s.io/v1 EndpointSlice ns/endpointslices "addressType":"IPv4","endpoints":[]
scheduling.k8s.io/v1 PriorityClass priorityclasses "value":1
storage.k8s.io/v1 StorageClass storageclasses "provisioner":"example.org/p"
storage.k8s.io/v1 CSIDriver csidrivers "spec":{}
rbac.authorization.k8s.io/v1 Role ns/roles
rbac.authorization.k8s.io/v1 RoleBinding ns/rolebindings "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas "spec":{"priorityLevelConfiguration":{"name":"p"}}
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests "spec":{"request":"$(openssl req -new -nodes -newkey rsa:2048 -keyout /dev/null -subj /CN=x 2>/dev/null | base64 -w0)","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}
OBJECTS
    [ -z "${bad:-}" ]
'
stop TERM
content
finish
