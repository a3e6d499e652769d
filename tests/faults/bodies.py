# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests for sequences.py: valid objects of every kind, and the same with one field in
another shape. What schemas tell comes from the server's OpenAPI documents; what they cannot tell
(which text is a cron schedule, which name is one of a queue) is in SPECS and BY_NAME."""

import copy
import re

from harness import ROOT

DEPTH = 6 # how far into an object fields are mutated one by one
KEPT = ("apiVersion", "kind", "metadata", "status")
META_PATHS = [("metadata", field) for field in
              ("labels", "annotations", "finalizers", "ownerReferences", "generateName")]

# Annotations and labels that the programs read, as their own list has them.
TRICKY_KEYS = sorted(set(re.findall(r'"([a-z0-9.-]+/[A-Za-z0-9.-]+|sla-waiting-time)"',
                                    (ROOT / "src/api/names.h").read_text())))
TRICKY_VALUES = ["", "true", "false", "0", "1", "-1", "3", "99999999999999999999", "50%", "x", "1h",
                 "2147483647", "-2147483648", "9223372036854775807", "-9223372036854775808",
                 "2562047h47m16.854775807s", "1/9223372036854775807", "9999-12-31T23:59:59Z",
                 "10s", "-5s", "[]", "{}", "null", "a,b;c", '{"a":1}', "sim-00001", "a", "t0/a",
                 "0=1,1=2", "root/a", "1/2", "2026-01-02T15:04:05Z"]
LABEL_VALUES = ["", "true", "false", "0", "1", "-", "a", "99999999999999999999", "x.y"]

WEIGHTS = {"core/Pod": 8, "batch.volcano.sh/Job": 10, "scheduling.volcano.sh/PodGroup": 6,
           "scheduling.volcano.sh/Queue": 5, "core/ResourceQuota": 3, "core/LimitRange": 2,
           "core/Node": 3, "core/PersistentVolumeClaim": 4, "core/PersistentVolume": 3,
           "storage.k8s.io/StorageClass": 2, "apps/Deployment": 4, "apps/ReplicaSet": 3,
           "apps/StatefulSet": 4, "apps/DaemonSet": 3, "batch/Job": 5, "batch/CronJob": 3,
           "core/ReplicationController": 2, "batch.volcano.sh/CronJob": 4,
           "flow.volcano.sh/JobFlow": 5, "flow.volcano.sh/JobTemplate": 4,
           "bus.volcano.sh/Command": 3, "topology.volcano.sh/HyperNode": 3,
           "nodeinfo.volcano.sh/Numatopology": 2, "scheduling.k8s.io/PriorityClass": 2,
           "policy/PodDisruptionBudget": 2, "resource.k8s.io/ResourceClaim": 2,
           "resource.k8s.io/ResourceSlice": 2, "training.volcano.sh/HyperJob": 2}

BY_NAME = {
    "image": "busybox", "schedule": "* * * * *", "schedulerName": "volcano",
    "restartPolicy": "Never", "queue": "default", "operator": "Exists", "effect": "NoSchedule",
    "timeZone": "Etc/UTC", "concurrencyPolicy": "Allow", "protocol": "TCP", "ip": "127.0.0.1",
    "action": "RestartJob", "event": "PodFailed", "mountPath": "/mnt", "path": "/x", "port": 80,
    "containerPort": 80, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
    "storageClassName": "standard", "volumeMode": "Filesystem", "command": ["true"],
    "accessModes": ["ReadWriteOnce"], "dnsPolicy": "ClusterFirst", "hostname": "h",
    "priorityClassName": "a", "serviceAccountName": "default", "nodeName": "sim-00001",
    "persistentVolumeReclaimPolicy": "Delete", "apiGroup": "", "type": "", "unit": "",
    "policies": [{"event": "PodFailed", "action": "RestartJob"}],
    "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
    "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"},
}
# What else an object must have, when a field below it is tried. Pods are refused without.
ELEMENTS = {
    "initContainers": {"name": "init", "image": "busybox", "command": ["true"]},
    "volumes": {"name": "v1", "emptyDir": {}},
    "env": {"name": "A", "value": "b"},
    "envFrom": {"configMapRef": {"name": "a", "optional": True}},
    "volumeMounts": {"name": "v1", "mountPath": "/m"},
    "topologySpreadConstraints": {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                                  "whenUnsatisfiable": "ScheduleAnyway"},
    "ports": {"containerPort": 80},
    "hostAliases": {"ip": "127.0.0.1", "hostnames": ["x"]},
}
COMMAND = {"exec": {"command": ["true"]}}
FORMS = {"livenessProbe": COMMAND, "readinessProbe": COMMAND, "startupProbe": COMMAND,
         "postStart": COMMAND, "preStop": COMMAND,
         "partitionPolicy": {"totalPartitions": 1, "partitionSize": 1}}
# Of these an object has one: the one below which a field is tried.
HANDLERS = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}
CHOICES = {
    "volumes": {"emptyDir", "configMap", "secret", "persistentVolumeClaim", "hostPath", "projected",
                "downwardAPI", "csi", "ephemeral", "nfs", "iscsi", "image"},
    "clientConfig": {"url", "service"},
    "selector": {"exactMatch", "regexMatch", "labelMatch"},
    **{name: HANDLERS for name in FORMS if FORMS[name] is COMMAND},
}
RESOURCES = {"limits", "requests", "overhead"} # maps with names of resources as keys
QUANTITIES = ["0", "1", "100m", "64Mi", "2", "1Gi", "1500m", "1e3"]
# The ends of the ranges that the programs compute in.
EXTREME_NUMBERS = [-1, 0, 1, 50, (1 << 31) - 2, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1,
                   (1 << 63) - 1, (1 << 63) - 2, -(1 << 63), 1 << 62]
EXTREME_QUANTITIES = ["9223372036854775807", "-9223372036854775808", "9223372036854775807m", "8Ei",
                      "7Ei", "1e18", "1e30", "1n", "-1", "0", "100%", "2147483647%", "-1%"]
TIMES = ["0001-01-01T00:00:00Z", "1677-09-21T00:12:43Z", "1970-01-01T00:00:00Z",
         "2262-04-11T23:47:16Z", "9999-12-31T23:59:59Z", "2026-01-02T15:04:05Z"]
DURATIONS = ["2562047h47m16.854775807s", "-2562047h47m16.854775808s", "1ns"]


class Schemas:
    """Definitions by name, and the one of each kind."""

    def __init__(self):
        self.defs, self.kinds = {}, {}

    def add(self, doc):
        for name, schema in doc.get("components", {}).get("schemas", {}).items():
            self.defs[name] = schema
            for gvk in schema.get("x-kubernetes-group-version-kind", []):
                self.kinds[gvk["group"], gvk["version"], gvk["kind"]] = schema

    def resolve(self, schema):
        while True:
            if "$ref" in schema:
                schema = self.defs.get(schema["$ref"].rsplit("/", 1)[1], {})
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                return schema

    def of(self, kind):
        return self.kinds.get((kind.group, kind.version, kind.kind), {})

    def child(self, schema, step):
        schema = self.resolve(schema)
        if step == 0:
            return self.resolve(schema.get("items", {}))
        props = schema.get("properties", {})
        if step in props:
            return self.resolve(props[step])
        more = schema.get("additionalProperties")
        return self.resolve(more) if isinstance(more, dict) else {}

    def walk(self, schema, path, out):
        schema = self.resolve(schema)
        if path:
            out.append(path)
        if len(path) >= DEPTH:
            return
        for name, prop in sorted(schema.get("properties", {}).items()):
            if path or name not in KEPT:
                self.walk(prop, path + (name,), out)
        if "items" in schema:
            self.walk(schema["items"], path + (0,), out)
        if isinstance(schema.get("additionalProperties"), dict):
            self.walk(schema["additionalProperties"], path + ("k",), out)

    def paths(self, kind):
        out = []
        self.walk(self.of(kind), (), out)
        if not out: # a kind whose fields the document does not list: those that its body has
            walk_body(Bodies.spec_of(kind, None), (), out)
        if str(kind) == "core/Pod": # they have a subresource of their own
            out = [path for path in out if path[:2] != ("spec", "ephemeralContainers")]
        if "status" not in kind.subresources: # it is written with the rest
            out += self.status_paths(kind)
        return out + META_PATHS

    def at(self, kind, path):
        schema = self.of(kind)
        for step in path:
            schema = self.child(schema, step)
        return schema

    def is_numeric(self, kind, path):
        """Whether the field holds a number, a quantity or a time."""
        schema = self.at(kind, path)
        return "oneOf" in schema or "anyOf" in schema or schema.get("format") == "date-time" or \
            schema.get("type") in ("integer", "number")

    def status_paths(self, kind):
        out = []
        status = self.resolve(self.of(kind)).get("properties", {}).get("status")
        if status:
            self.walk(status, ("status",), out)
        return out


def walk_body(value, path, out):
    if path:
        out.append(path)
    if len(path) >= DEPTH:
        return
    if isinstance(value, dict):
        for key in sorted(value):
            walk_body(value[key], path + (key,), out)
    elif isinstance(value, list) and value:
        walk_body(value[0], path + (0,), out)


def pod_spec(b, **more):
    spec = {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["true"],
         "resources": {"requests": {"cpu": b.pick("0", "100m", "1", "40"),
                                    "memory": b.pick("64Mi", "1Gi")}}}], **more}
    if b.chance(0.15):
        spec["volumes"] = [{"name": "v", **b.pick(
            {"emptyDir": {}}, {"configMap": {"name": b.name()}},
            {"persistentVolumeClaim": {"claimName": b.name()}}, {"secret": {"secretName": b.name()}})}]
        spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    if b.chance(0.1):
        spec["priorityClassName"] = b.name()
    if b.chance(0.1):
        spec["tolerations"] = [{"operator": "Exists"}]
    if b.chance(0.1):
        spec["resourceClaims"] = [{"name": "c", "resourceClaimName": b.name()}]
    if b.chance(0.1):
        term = {"topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": b.name()}}}
        spec["affinity"] = {b.pick("podAffinity", "podAntiAffinity"): {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return spec


def template(b, app="a", **more):
    return {"metadata": {"labels": {"app": app}}, "spec": pod_spec(b, **more)}


def workload(b, **more):
    return {"spec": {"replicas": b.pick(0, 1, 2, 3), "selector": {"matchLabels": {"app": "a"}},
                     "template": template(b, restartPolicy="Always"), **more}}


def task(b, name="t"):
    return {"name": name, "replicas": b.pick(0, 1, 2, 3), "template": template(b)}


def job_spec(b):
    spec = {"schedulerName": "volcano", "queue": b.queue(), "tasks": [task(b)]}
    plugins = [{name: []} for name in ("env", "svc", "ssh", "pytorch", "tensorflow", "ray")]
    if b.chance(0.3):
        spec["tasks"].append(task(b, "u"))
        plugins.append({"mpi": ["--master=t", "--worker=u"]})
        if b.chance(0.5):
            spec["tasks"][1]["dependsOn"] = {"name": ["t"]}
    spec["minAvailable"] = min(b.pick(0, 1, 2), sum(t["replicas"] for t in spec["tasks"]))
    if b.chance(0.4):
        spec["plugins"] = b.pick(*plugins)
    if b.chance(0.4):
        spec["policies"] = [{"event": b.pick("PodFailed", "PodEvicted", "*", "TaskCompleted"),
                             "action": b.pick("RestartJob", "AbortJob", "CompleteJob",
                                              "RestartTask", "TerminateJob")}]
    if b.chance(0.15):
        spec["volumes"] = [{"mountPath": "/v", **b.pick(
            {"volumeClaimName": b.name()},
            {"volumeClaim": {"accessModes": ["ReadWriteOnce"],
                             "resources": {"requests": {"storage": "1Mi"}}}})}]
    if b.chance(0.2):
        spec["ttlSecondsAfterFinished"] = b.pick(0, 1, 30)
    if b.chance(0.1):
        spec["priorityClassName"] = b.name()
    if b.chance(0.1):
        spec["networkTopology"] = {"mode": b.pick("hard", "soft"), "highestTierAllowed": 1}
    return spec


def metric_target(kind, name):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name}


def rule():
    return {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def binding(b, kind):
    return {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": b.name()},
            "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]}


def webhook():
    return {"webhooks": [{"name": "a.example.com", "sideEffects": "None",
                          "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                          "rules": [{"operations": ["CREATE"], "apiGroups": ["example.com"],
                                     "apiVersions": ["v1"], "resources": ["nothings"]}],
                          "clientConfig": {"url": "https://127.0.0.1:1/x"}}]}


def crd(b, name):
    plural = f"{name}things"
    return {"spec": {"group": "example.com", "scope": b.pick("Namespaced", "Cluster"),
                     "names": {"plural": plural, "kind": plural.capitalize()},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                         "openAPIV3Schema": {"type": "object", "properties": {
                             "spec": {"type": "object", "properties": {
                                 "n": {"type": "integer", "default": 1},
                                 "x": {"type": "string", "nullable": True},
                                 "free": {"type": "object",
                                          "x-kubernetes-preserve-unknown-fields": True}}}}}}}]}}


CSR = ("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISE1HNENBUUF3RERFS01BZ0dBMVVFQXd3QllU"
       "QlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCS3g3WFpvc3JiOHZteXFZalB6eThNcDdLMDIyTS9h"
       "QkZwSHVTTGNpUUNkemdybi9kWUYwalM5L1kvL3QrUW1QCm4yT2pjU3E0MS9GRHVqVTVHMUQ3Y0dHZ0FEQUtCZ2dx"
       "aGtqT1BRUURBZ05KQURCR0FpRUFoS1FZYjdnZUliUXkKT0tubzBFNU1lR1NKUzEzY1RZem9OTXFVWU9RdFcwOENJ"
       "UUR5WGgvcGoyREJTK0pjdmpTdFNGUjBmaUdrQlF0TgpiZ2hKY0xVY1lwTVY4QT09Ci0tLS0tRU5EIENFUlRJRklD"
       "QVRFIFJFUVVFU1QtLS0tLQo=")

# What makes an object of a kind acceptable, beside its metadata. b offers choices.
SPECS = {
    "core/ConfigMap": lambda b: {"data": {"k": "v"}},
    "core/Secret": lambda b: {"data": {"k": "dg=="}},
    "core/Service": lambda b: {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}},
    "core/Endpoints": lambda b: {"subsets": [{"addresses": [{"ip": "10.0.0.1"}],
                                              "ports": [{"port": 80}]}]},
    "core/Event": lambda b: {"involvedObject": {"kind": "Pod", "name": b.name(), "namespace": b.ns},
                             "reason": "Test", "message": "m", "type": "Normal"},
    "core/LimitRange": lambda b: {"spec": {"limits": [
        {"type": b.pick("Container", "Pod", "PersistentVolumeClaim"),
         "max": {"cpu": "100", "storage": "1Ti"}}]}},
    "core/ResourceQuota": lambda b: {"spec": {"hard": b.pick(
        {"pods": "1000"}, {"requests.cpu": "1000", "count/configmaps": "500"},
        {"count/jobs.batch.volcano.sh": "200"}, {"requests.storage": "1Ti"}, {})}},
    "core/Namespace": lambda b: {},
    "core/Node": lambda b: {"spec": {}},
    "core/PersistentVolumeClaim": lambda b: {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}},
        **b.pick({}, {"storageClassName": b.name()}, {"storageClassName": ""})}},
    "core/PersistentVolume": lambda b: {"spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"}, **b.pick({}, {"storageClassName": b.name()})}},
    "core/Pod": lambda b: {"spec": pod_spec(b)},
    "core/PodTemplate": lambda b: {"template": template(b)},
    "core/ReplicationController": lambda b: {"spec": {
        "replicas": 1, "selector": {"app": "a"}, "template": template(b, restartPolicy="Always")}},
    "core/ServiceAccount": lambda b: b.pick({}, {"imagePullSecrets": [{"name": "a"}]}),
    "apps/ControllerRevision": lambda b: {"revision": 1, "data": {}},
    "apps/Deployment": workload,
    "apps/ReplicaSet": workload,
    "apps/StatefulSet": lambda b: workload(b, serviceName="a", **b.pick({}, {
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Mi"}}}}]})),
    "apps/DaemonSet": lambda b: {"spec": {"selector": {"matchLabels": {"app": "a"}},
                                          "template": template(b, restartPolicy="Always")}},
    "autoscaling/HorizontalPodAutoscaler": lambda b: {"spec": {
        "scaleTargetRef": metric_target("Deployment", b.name()), "maxReplicas": 3}},
    "batch/Job": lambda b: {"spec": {"parallelism": b.pick(0, 1, 2), "completions": b.pick(1, 2),
                                     "template": template(b)}},
    "batch/CronJob": lambda b: {"spec": {"schedule": "* * * * *",
                                         "jobTemplate": {"spec": {"template": template(b)}}}},
    "batch.volcano.sh/Job": lambda b: {"spec": job_spec(b)},
    "batch.volcano.sh/CronJob": lambda b: {"spec": {"schedule": b.pick("* * * * *", "@every 2s"),
                                                    "jobTemplate": {"spec": job_spec(b)}}},
    "bus.volcano.sh/Command": lambda b: b.command(),
    "flow.volcano.sh/JobTemplate": lambda b: {"spec": job_spec(b)},
    "flow.volcano.sh/JobFlow": lambda b: {"spec": {
        "jobRetainPolicy": b.pick("retain", "delete"),
        "flows": [{"name": "a"}, {"name": "b", **b.pick({}, {"dependsOn": {"targets": ["a"]}})}]}},
    "scheduling.volcano.sh/PodGroup": lambda b: {"spec": {"minMember": b.pick(0, 1, 2),
                                                          "queue": b.queue()}},
    "scheduling.volcano.sh/Queue": lambda b: {"spec": {
        "weight": b.pick(1, 2, 8), "reclaimable": b.pick(True, False),
        **b.pick({}, {"capability": {"cpu": "100"}}, {"parent": b.name()}, {"parent": "root"},
                 {"guarantee": {"resource": {"cpu": "1"}}}, {"deserved": {"cpu": "4"}})}},
    "topology.volcano.sh/HyperNode": lambda b: {"spec": {"tier": b.pick(1, 2), "members": [
        b.pick({"type": "Node", "selector": {"exactMatch": {"name": "sim-00001"}}},
               {"type": "Node", "selector": {"regexMatch": {"pattern": "sim-.*"}}},
               {"type": "HyperNode", "selector": {"exactMatch": {"name": b.name()}}},
               {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"app": "a"}}}})]}},
    "nodeinfo.volcano.sh/Numatopology": lambda b: {"spec": {
        "policies": {"TopologyManagerPolicy": "single-numa-node"},
        "numares": {"cpu": {"allocatable": "0-3", "capacity": 4}},
        "cpuDetail": {"0": {"numa": 0, "socket": 0, "core": 0}}}},
    "shard.volcano.sh/NodeShard": lambda b: {"spec": {"nodesDesired": ["sim-00001"]}},
    "config.volcano.sh/ColocationConfiguration": lambda b: {"spec": {}},
    "training.volcano.sh/HyperJob": lambda b: {"spec": {
        "minAvailable": 1, "replicatedJobs": [{"name": "r", "replicas": 1,
                                               "templateSpec": job_spec(b)}]}},
    "datadependency.volcano.sh/DataSource": lambda b: {"spec": {
        "system": "s", "type": "t", "name": "n", "locality": {"clusterNames": ["c"]}}},
    "datadependency.volcano.sh/DataSourceClaim": lambda b: {"spec": {
        "system": "s", "dataSourceType": "t", "dataSourceName": "n",
        "workload": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": b.name()}}},
    "scheduling.k8s.io/PriorityClass": lambda b: {"value": b.pick(0, 10, 1000),
                                                  "globalDefault": False},
    "policy/PodDisruptionBudget": lambda b: {"spec": {
        "selector": {"matchLabels": {"app": "a"}}, **b.pick({"minAvailable": 1},
                                                            {"maxUnavailable": "50%"})}},
    "storage.k8s.io/StorageClass": lambda b: {
        "provisioner": b.pick("hekla.io/local", "kubernetes.io/no-provisioner", "x.example.com/y"),
        "volumeBindingMode": b.pick("Immediate", "WaitForFirstConsumer")},
    "storage.k8s.io/CSINode": lambda b: {"spec": {"drivers": []}},
    "storage.k8s.io/CSIDriver": lambda b: {"spec": {}},
    "storage.k8s.io/CSIStorageCapacity": lambda b: {"storageClassName": "a"},
    "storage.k8s.io/VolumeAttachment": lambda b: {"spec": {
        "attacher": "x", "nodeName": "sim-00001", "source": {"persistentVolumeName": "a"}}},
    "node.k8s.io/RuntimeClass": lambda b: {"handler": "h"},
    "networking.k8s.io/Ingress": lambda b: {"spec": {"defaultBackend": {"service": {
        "name": "a", "port": {"number": 80}}}}},
    "networking.k8s.io/NetworkPolicy": lambda b: {"spec": {"podSelector": {}}},
    "networking.k8s.io/IngressClass": lambda b: {"spec": {"controller": "example.com/c"}},
    "discovery.k8s.io/EndpointSlice": lambda b: {"addressType": "IPv4", "endpoints": []},
    "rbac.authorization.k8s.io/Role": lambda b: {"rules": [rule()]},
    "rbac.authorization.k8s.io/ClusterRole": lambda b: {"rules": [rule()]},
    "rbac.authorization.k8s.io/RoleBinding": lambda b: binding(b, b.pick("Role", "ClusterRole")),
    "rbac.authorization.k8s.io/ClusterRoleBinding": lambda b: binding(b, "ClusterRole"),
    "admissionregistration.k8s.io/MutatingWebhookConfiguration": lambda b: webhook(),
    "admissionregistration.k8s.io/ValidatingWebhookConfiguration": lambda b: webhook(),
    "apiextensions.k8s.io/CustomResourceDefinition": lambda b: crd(b, b.name()),
    "certificates.k8s.io/CertificateSigningRequest": lambda b: {"spec": {
        "request": CSR, "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"]}},
    "coordination.k8s.io/Lease": lambda b: {"spec": {"holderIdentity": "h",
                                                     "leaseDurationSeconds": 15}},
    "resource.k8s.io/DeviceClass": lambda b: {"spec": {}},
    "resource.k8s.io/ResourceClaim": lambda b: {"spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": b.name()}}]}}},
    "resource.k8s.io/ResourceClaimTemplate": lambda b: {"spec": {"spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": b.name()}}]}}}},
    "resource.k8s.io/ResourceSlice": lambda b: {"spec": {
        "driver": "d.example.com", "nodeName": "sim-00001",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}]}},
    "authentication.k8s.io/TokenReview": lambda b: {"spec": {"token": "x"}},
    "authorization.k8s.io/SubjectAccessReview": lambda b: {"spec": {
        "user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}},
    "authorization.k8s.io/LocalSubjectAccessReview": lambda b: {"spec": {
        "user": "u", "resourceAttributes": {"verb": "get", "resource": "pods",
                                            "namespace": b.ns}}},
    "authorization.k8s.io/SelfSubjectAccessReview": lambda b: {"spec": {
        "resourceAttributes": {"verb": "get", "resource": "pods"}}},
    "authorization.k8s.io/SelfSubjectRulesReview": lambda b: {"spec": {"namespace": b.ns}},
    "core/Binding": lambda b: {"target": {"kind": "Node", "name": "sim-00001"}},
}

SHARED_SPECS = {"events.k8s.io/Event": lambda b: {
    "regarding": {"kind": "Pod", "name": b.name(), "namespace": b.ns}, "reason": "Test",
    "action": "x", "eventTime": "2026-01-02T15:04:05.000000Z", "reportingController": "a.example.com/b",
    "reportingInstance": "i", "type": "Normal"}}


class FirstChoice:
    """The choices of a body when only its fields are wanted."""

    ns = "t0"

    def pick(self, *values):
        return copy.deepcopy(values[0])

    def chance(self, _):
        return True

    def name(self):
        return "a"

    def queue(self):
        return "default"

    def command(self):
        return {"action": "AbortJob", "target": {"kind": "Job", "name": "a"}}


class Bodies:
    NAMES = ["a", "b", "c", "d"]

    def __init__(self, rand, schemas, world):
        self.random, self.schemas, self.world, self.ns = rand, schemas, world, ""

    # ---- choices, as SPECS asks for them ----

    def pick(self, *values):
        return copy.deepcopy(self.random.choice(values))

    def chance(self, share):
        return self.random.random() < share

    def name(self):
        return self.random.choice(self.NAMES)

    def queue(self):
        """One that exists, nearly always."""
        known = [q for q in self.world.names("Queue") if q != "root"] if self.chance(0.3) else []
        return self.name() if self.chance(0.03) else self.random.choice(["default", *known])

    def command(self):
        """For a Job or a Queue that exists, most of the time."""
        target = self.random.choice(["Job", "Queue"])
        for kind, known in sorted(self.world.objects.items(), key=lambda item: str(item[0])):
            if kind.kind == target and "volcano" in kind.group and known:
                key = self.random.choice(sorted(known))
                return {"action": self.pick("AbortJob", "ResumeJob", "RestartJob", "TerminateJob",
                                            "CompleteJob") if target == "Job" else
                        self.pick("OpenQueue", "CloseQueue"),
                        "target": {"apiVersion": kind.api_version, "kind": target, "name": key[1],
                                   "uid": known[key].get("metadata", {}).get("uid", "u"),
                                   "controller": True}}
        return {"action": "AbortJob", "target": {"kind": "Job", "name": "a"}}

    def pick_kind(self, kinds):
        return self.random.choices(kinds, [WEIGHTS.get(str(k), 1) for k in kinds])[0]

    def tricky_value(self, where):
        return self.random.choice([None, *(LABEL_VALUES if where == "labels" else TRICKY_VALUES)])

    # ---- whole objects ----

    @staticmethod
    def spec_of(kind, choices):
        known = SPECS.get(str(kind)) or SHARED_SPECS.get(str(kind))
        return known(choices or FirstChoice()) if known else {}

    def make(self, kind, ns, name):
        self.ns = ns
        meta = {"name": f"{name}things.example.com" if kind.kind == "CustomResourceDefinition"
                else name, "labels": {"app": self.name()}}
        if ns:
            meta["namespace"] = ns
        if self.chance(0.15):
            meta["annotations"] = {self.random.choice(TRICKY_KEYS): self.random.choice(TRICKY_VALUES)}
        if self.chance(0.4): # objects that nobody names, as many as there are creations
            meta["name"] = f"{meta['name']}-{self.random.randrange(1000)}" \
                if kind.kind != "CustomResourceDefinition" else meta["name"]
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
        if kind.kind == "CustomResourceDefinition":
            body.update(crd(self, name))
        elif str(kind) in SPECS or str(kind) in SHARED_SPECS:
            body.update(self.spec_of(kind, self))
        else:
            body.update(self.required(self.schemas.of(kind), 0))
        return body

    def required(self, schema, depth):
        """The fields that a schema asks for, and now and then others."""
        schema = self.schemas.resolve(schema)
        want = set(schema.get("required", ())) | ({"spec"} if depth == 0 else set())
        return {name: self.value(prop, name, depth + 1)
                for name, prop in sorted(schema.get("properties", {}).items())
                if name not in KEPT and (name in want or (depth and self.chance(0.1)))}

    def value(self, schema, name, depth=0):
        schema = self.schemas.resolve(schema)
        if schema.get("enum"):
            return self.random.choice(schema["enum"])
        kind = schema.get("type")
        if name in BY_NAME and (BY_NAME[name] != "" or kind == "string"):
            return copy.deepcopy(BY_NAME[name])
        if "oneOf" in schema or "anyOf" in schema:
            options = [o.get("type") for o in schema.get("oneOf", schema.get("anyOf"))]
            return self.random.choice(QUANTITIES) if "number" in options else self.pick(1, "50%")
        if kind == "integer":
            return self.pick(0, 1, 2, 3)
        if kind == "number":
            return self.pick(0, 0.5, 2)
        if kind == "boolean":
            return self.pick(True, False)
        if kind == "array":
            return [self.value(schema.get("items", {}), name, depth + 1)] if depth < DEPTH else []
        if kind == "object" or "properties" in schema:
            if isinstance(schema.get("additionalProperties"), dict):
                return {"k": self.value(schema["additionalProperties"], "k", depth + 1)}
            return self.required(schema, depth + 1) if depth < DEPTH else {}
        if schema.get("format") == "date-time":
            return "2026-01-02T15:04:05Z"
        if schema.get("format") == "byte":
            return "dg=="
        return self.name()

    # ---- one field in another shape ----

    def apply(self, kind, body, path, mutation):
        """Makes sure that the field's parents are there, and gives the field its shape."""
        schema, at, above = self.schemas.of(kind), body, None
        for step, following in zip(path[:-1], path[1:]):
            schema = self.schemas.child(schema, step)
            empty = [] if following == 0 else {}
            if step == 0:
                if not at:
                    at.append(None)
                if type(at[0]) is not type(empty):
                    at[0] = self.fresh(schema, "k", empty)
                at = at[0]
            else:
                step = self.key(above, step)
                self.choose(at, above, step)
                if type(at.get(step)) is not type(empty):
                    at[step] = self.fresh(schema, step, empty, FORMS.get(step))
                    if following == 0:
                        at[step] = self.elements(schema, step) or at[step]
                at, above = at[step], step
        last = self.key(above, path[-1])
        self.shape(at, last, self.schemas.child(schema, path[-1]), mutation)
        self.complete(kind, body)

    def elements(self, schema, name):
        """A list of one acceptable element, if one is known that the schema has the fields of."""
        element = ELEMENTS.get(name, {})
        known = self.schemas.child(schema, 0).get("properties", {})
        return [copy.deepcopy(element)] if element and element.keys() <= known.keys() else None

    @staticmethod
    def key(above, step):
        return "cpu" if step == "k" and above in RESOURCES else step

    @staticmethod
    def choose(at, above, step):
        """Removes the alternatives of a field."""
        group = CHOICES.get(above, set())
        if step in group:
            for other in group - {step}:
                at.pop(other, None)

    @staticmethod
    def complete(kind, body):
        """The volumes that mounts of a pod name."""
        spec = body.get("spec")
        if str(kind) != "core/Pod" or not isinstance(spec, dict):
            return
        lists = [spec.get(name) for name in ("containers", "initContainers")]
        mounts = [m.get("name") for c in lists if isinstance(c, list) for one in c
                  if isinstance(one, dict) and isinstance(one.get("volumeMounts"), list)
                  for m in one["volumeMounts"] if isinstance(m, dict)]
        volumes = spec.get("volumes") or []
        if "v1" in mounts and isinstance(volumes, list) and \
                not any(isinstance(v, dict) and v.get("name") == "v1" for v in volumes):
            spec["volumes"] = [*volumes, copy.deepcopy(ELEMENTS["volumes"])]

    def fresh(self, schema, step, empty, form=None):
        value = copy.deepcopy(form) or (self.value(schema, step) if schema else empty)
        return value if type(value) is type(empty) else empty

    def shape(self, at, step, schema, mutation):
        if mutation == "absent":
            if isinstance(at, dict):
                at.pop(step, None)
            elif at:
                at.pop(0)
            return
        value = {"null": lambda: None, "empty": lambda: self.empty(schema),
                 "wrong": lambda: self.wrong(schema), "edge": lambda: self.edge(schema, step),
                 "extreme": lambda: self.edge(schema, step)}
        if isinstance(at, list):
            at[0:1] = [value[mutation]()]
        else:
            at[step] = value[mutation]()

    @staticmethod
    def type_of(schema):
        if "oneOf" in schema or "anyOf" in schema:
            return "string"
        return schema.get("type", "object")

    def empty(self, schema):
        return {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [],
                "object": {}}[self.type_of(schema)]

    def wrong(self, schema):
        return {"string": self.pick(7, ["x"], {}, True), "integer": self.pick("x", [1], {}, 1.5),
                "number": self.pick("x", []), "boolean": self.pick("true", 1, []),
                "array": self.pick({}, "x", 1), "object": self.pick([], "x", 1, [{}])
                }[self.type_of(schema)]

    def edge(self, schema, step):
        kind = self.type_of(schema)
        if schema.get("format") == "date-time":
            return self.random.choice(TIMES)
        if "oneOf" in schema or "anyOf" in schema: # a quantity, or a number of percent
            return self.random.choice(EXTREME_QUANTITIES + EXTREME_NUMBERS)
        if kind == "string":
            return self.pick("x" * 300, "a/b", "-", " ", "0", "é", "a.b", "1", "NONE", "-1", "1e9",
                             *DURATIONS)
        if kind in ("integer", "number"):
            return self.random.choice(EXTREME_NUMBERS)
        if kind == "boolean":
            return self.pick(True, False)
        if kind == "array":
            return self.pick([None], [{}], ["a", "a"], [None, None])
        return self.pick({"k": None}, {"": ""}, {"a": {}}, {"k": []})

    # ---- changes of what is there ----

    def vary(self, kind, body):
        """A change that a user would make."""
        meta = body.setdefault("metadata", {})
        if not isinstance(meta.get("labels"), dict):
            meta["labels"] = {}
        meta["labels"]["app"] = self.name()
        spec = body.get("spec")
        if not isinstance(spec, dict):
            return
        for field in ("replicas", "parallelism"):
            if isinstance(spec.get(field), int):
                spec[field] = self.pick(0, 1, 2, 3, 4)
        for field in ("suspend", "unschedulable", "reclaimable", "paused"):
            if field in self.schemas.child(self.schemas.of(kind), "spec").get("properties", {}):
                if self.chance(0.3):
                    spec[field] = self.pick(True, False)
        tasks = spec.get("tasks")
        if isinstance(tasks, list) and tasks and isinstance(tasks[0], dict):
            tasks[0].update(replicas=self.pick(0, 1, 2, 3, 5), minAvailable=0)
            spec["minAvailable"] = 0

    def merge_patch(self, old, new):
        patch = {}
        for key in old.keys() | new.keys():
            if key not in new:
                patch[key] = None
            elif key not in old:
                patch[key] = new[key]
            elif isinstance(old[key], dict) and isinstance(new[key], dict):
                below = self.merge_patch(old[key], new[key])
                if below:
                    patch[key] = below
            elif old[key] != new[key]:
                patch[key] = new[key]
        return {key: patch[key] for key in sorted(patch)}

    def json_patch(self, old, new, at=""):
        ops = []
        for key in sorted(old.keys() | new.keys()):
            path = f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in new:
                ops.append({"op": "remove", "path": path})
            elif key not in old:
                ops.append({"op": "add", "path": path, "value": new[key]})
            elif isinstance(old[key], dict) and isinstance(new[key], dict):
                ops += self.json_patch(old[key], new[key], path)
            elif old[key] != new[key]:
                ops.append({"op": "replace", "path": path, "value": new[key]})
        return ops

    def applied(self, kind, obj):
        body = {key: value for key, value in obj.items() if key not in ("status", "metadata")}
        meta = obj.get("metadata", {})
        body["apiVersion"], body["kind"] = kind.api_version, kind.kind
        body["metadata"] = {key: meta[key] for key in ("name", "namespace", "labels", "annotations",
                                                       "ownerReferences") if meta.get(key)}
        return body

    def owners(self):
        kinds = [k for k, known in sorted(self.world.objects.items(), key=lambda item: str(item[0]))
                 if known]
        kind = self.random.choice(kinds)
        key = self.random.choice(sorted(self.world.of(kind)))
        uid = self.world.of(kind)[key].get("metadata", {}).get("uid", "u")
        ref = {"apiVersion": kind.api_version, "kind": kind.kind, "name": key[1],
               "uid": self.random.choice([uid, uid, uid, "0", "x"])}
        for field in ("controller", "blockOwnerDeletion"):
            ref.update(self.pick({}, {field: True}, {field: None}, {field: False}))
        return self.random.choice([[ref], [ref], [], [ref, dict(ref, uid="y", controller=False)], None])

    # ---- subresources ----

    def subresource(self, request, kind, key, sub, obj):
        path = kind.path(*key, sub)
        name = key[1]
        if sub == "scale":
            body = {"apiVersion": "autoscaling/v1", "kind": "Scale",
                    "metadata": {"name": name, "namespace": key[0]},
                    "spec": self.random.choice([{"replicas": self.pick(0, 1, 2, 3)}, {}, None,
                                                {"replicas": None}, {"replicas": -1}])}
            if self.chance(0.4):
                return request(sub, "GET", path, kind=kind)
            if self.chance(0.5):
                return request(sub, "PATCH", path, {"spec": body["spec"]},
                               "application/merge-patch+json", kind=kind)
            return request(sub, "PUT", path, body, kind=kind)
        if sub == "binding":
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": self.random.choice([{"kind": "Node", "name": "sim-00002"}, {}, None,
                                                  {"name": "sim-00001"}, {"name": "gone"}])}
        elif sub == "eviction":
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
                    **self.random.choice([{}, {"deleteOptions": None}, {"deleteOptions": {}},
                                          {"deleteOptions": {"gracePeriodSeconds": 0}}])}
        elif sub == "token":
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                    **self.random.choice([{}, {"spec": None}, {"spec": {"expirationSeconds": 600}},
                                          {"spec": {"audiences": []}},
                                          {"spec": {"boundObjectRef": {}}}])}
        elif sub == "log":
            return request(sub, "GET", path + self.random.choice(["", "?tailLines=1", "?previous=true"]),
                           kind=kind)
        elif sub == "approval":
            body = copy.deepcopy(obj)
            body["status"] = {"conditions": [self.random.choice([
                {"type": "Approved", "status": "True"}, {"type": "Denied"}, {}])]}
            return request(sub, "PUT", path, body, kind=kind)
        else: # a write of the whole object through another door
            body = copy.deepcopy(obj)
            body.get("metadata", {}).pop("resourceVersion", None)
            return request(sub, "PUT", path, body, kind=kind)
        return request(sub, "POST", path, body, kind=kind)
