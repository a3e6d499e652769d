#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""KubeRay with Volcano as its batch scheduler: a RayCluster whose worker joins the head, and a RayJob's
work on both. Ray itself comes from the Python registry."""

import sys

import operators
from clients import Site, Tap, about, expect, expect_in, go_program, go_source, inside, needs

RAY = "2.60.0"
inside(f"ray-{RAY}", f"ray[default]=={RAY}", "pyyaml")
MODULE = ("github.com/ray-project/kuberay/ray-operator", "v1.5.1",
          "h1:7FJYmB8oM+cnjv1VYCj/TfzRZG4XHvvt5Ayn5pZ5A1c=")
needs("go", "kubectl")
about("KubeRay", f"{MODULE[1][1:]}, Ray {RAY}",
      "`--batch-scheduler=volcano`; a RayCluster with a worker that joins, and work on both",
      "the command of the operator's container, `PATH` of Ray's containers, ports that two pods of "
      "one machine would share")
program = go_program("kuberay-operator", *MODULE, ".")
source = go_source(*MODULE)
tap, site = Tap(), Site()
BIN = f"{sys.prefix}/bin"
CLUSTER = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: rc}
spec:
  rayVersion: "RAY"
  headGroupSpec:
    rayStartParams: {num-cpus: "1", node-ip-address: $(IP), metrics-export-port: "8096"}
    template: &pod
      spec:
        terminationGracePeriodSeconds: 1
        containers:
        - name: ray
          image: ray
          env: &env
          - {name: PATH, value: "BIN:/usr/local/bin:/usr/bin:/bin"}
          - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          - {name: TMPDIR, value: /tmp}
          resources: {requests: {cpu: 100m}}
  workerGroupSpecs:
  - groupName: w
    replicas: 1
    minReplicas: 1
    maxReplicas: 1
    rayStartParams: {num-cpus: "1", node-ip-address: $(IP), metrics-export-port: "8097",
                     dashboard-agent-listen-port: "52366"}
    template: *pod
""".replace("RAY", RAY).replace("BIN", BIN)
WORK = """
import ray
ray.init("auto", log_to_driver=False)
@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def where():
    import time
    time.sleep(1)
    return ray.get_runtime_context().get_node_id()
print("nodes", len(set(ray.get([where.remote() for _ in range(4)]))))
"""


# What the operator's Helm chart adds for Volcano to the rights in its manifests.
RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kuberay-volcano}
rules:
- {apiGroups: [scheduling.volcano.sh], resources: [podgroups], verbs: ["*"]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kuberay-volcano}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuberay-volcano}
subjects: [{kind: ServiceAccount, name: kuberay-operator, namespace: default}]
"""


def start():
    site.apply(RIGHTS)
    objects = operators.manifests(site, source / "config/default")
    copy = operators.open_to_all(site, program)
    operators.install(site, operators.replace_images(objects, copy, ["--batch-scheduler=volcano"]))
    operators.available(site, "default", "kuberay-operator")


def join():
    site.apply(CLUSTER)

    def ready():
        status = site.get("raycluster", "rc").get("status", {})
        return status.get("state") == "ready" and status.get("readyWorkerReplicas") == 1
    site.wait("the cluster is ready", ready, 300)


def head():
    pods = site.get("pods", "", "-l", "ray.io/node-type=head")["items"]
    return pods[0]["metadata"]["name"]


def compute():
    said = site.kubectl("exec", head(), "-c", "ray", "--", f"{BIN}/python", "-c", WORK, seconds=180)
    expect_in("output", said, "nodes 2")


def grouped():
    group = site.get("podgroup", "ray-rc-pg")
    expect("members of the gang", group["spec"]["minMember"], 2)


tap.step("the operator's manifests are applied, and it becomes available", start)
tap.step("a RayCluster becomes ready with its worker", join)
tap.step("tasks run on head and worker", compute)
tap.step("its pods are one gang", grouped)
tap.done()
