#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dask on Kubernetes: the operator of dask-kubernetes, a KubeCluster, and a computation on it."""

import subprocess
import sys
from pathlib import Path

from clients import ROOT, Site, Tap, about, expect, inside, needs

DASK, DISTRIBUTED = "2026.3.0", "2026.8.0"
inside(f"dask-{DASK}", f"dask-kubernetes=={DASK}", f"distributed=={DISTRIBUTED}", "pyyaml")

import dask_kubernetes.operator # noqa: E402
import yaml # noqa: E402

import operators # noqa: E402

needs("kubectl")
about("Dask (`dask-kubernetes`)", f"{DASK}, distributed {DISTRIBUTED}",
      "its operator and chart, a `KubeCluster` with 2 workers, a computation, scaling",
      "the commands that start the containers, `PATH`; the operator runs as root, its health is on its pod's address")
CHART = Path(dask_kubernetes.operator.__file__).parent / "deployment/helm/dask-kubernetes-operator"
BIN = f"{sys.prefix}/bin"
tap, site = Tap(), Site()
SCRIPT = f"""
from dask_kubernetes.operator import KubeCluster, make_cluster_spec
from dask.distributed import Client

if __name__ == "__main__":
    spec = make_cluster_spec(name="dk", image="dask", n_workers=2, env={{"PATH": "{BIN}:/usr/bin:/bin"}})
    for role in ("worker", "scheduler"): # an entrypoint is part of the image
        container = spec["spec"][role]["spec"]["containers"][0]
        container["command"], container["args"][0] = ["dask"], role
    with KubeCluster(custom_cluster_spec=spec, namespace="default", quiet=True) as cluster:
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=120)
            total = client.submit(sum, client.map(lambda x: x * x, range(100))).result(timeout=120)
            print("sum", total, flush=True)
            cluster.scale(3)
            client.wait_for_workers(3, timeout=120)
            print("workers", len(client.scheduler_info(n_workers=-1)["workers"]), flush=True)
"""


def helm():
    found = subprocess.run([ROOT / "scripts/helm"], stdout=subprocess.PIPE, text=True, check=True)
    return found.stdout.strip()


def start():
    text = site.run(helm(), "template", "dask", CHART, "--include-crds", "--set", "securityContext=null")
    objects = [d for d in yaml.safe_load_all(text) if d]
    for d in objects:
        if d["kind"] == "Deployment":
            container = d["spec"]["template"]["spec"]["containers"][0]
            container["command"] = [f"{BIN}/kopf", "run", "-m", "dask_kubernetes.operator.controller",
                                    "--all-namespaces"]
            container["args"][0] = "--liveness=http://$(IP):8080/healthz"
            container["env"] = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    operators.install(site, objects)
    operators.available(site, "default", "dask-dask-kubernetes-operator")


def compute():
    script = site.dir / "story.py"
    script.write_text(SCRIPT)
    said = site.run(f"{BIN}/python", script, seconds=400)
    lines = [line for line in said.splitlines() if line.startswith(("sum ", "workers "))]
    expect("lines of the program", lines, ["sum 328350", "workers 3"])


def gone():
    site.wait("the pods of the cluster are gone", lambda: site.get(
        "pods", "", "-l", "dask.org/cluster-name=dk")["items"] == [])


tap.step("the operator's chart is applied, and it becomes available", start)
tap.step("a computation runs on two workers, and then there are three", compute)
tap.step("closing the cluster removes its pods", gone)
tap.done()
