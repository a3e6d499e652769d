#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kubeflow's training-operator with gang scheduling by Volcano: a PyTorchJob of a master and a worker
that train one model together (train.py)."""

from pathlib import Path

import operators
from clients import Site, Tap, about, expect, go_program, go_source, needs, skip_all

MODULE = ("github.com/kubeflow/training-operator", "v1.9.3",
          "h1:aaSHqskOtCY8Dn8sVd+l9p5XAczW6O0nYMPjVLAw/lc=")
needs("go", "kubectl", "nslookup")
about("Kubeflow training-operator", MODULE[1][1:],
      "`--gang-scheduler-name=volcano`; a PyTorchJob of 2 processes that train one model",
      "the command of the operator's container")
program = go_program("training-operator", *MODULE, "./cmd/training-operator.v1")
source = go_source(*MODULE)
PYTHON = "/usr/bin/python3" # that of Debian's python3-torch
TRAIN = Path(__file__).resolve().parent / "train.py"
tap, site = Tap(), Site()
if site.run(PYTHON, "-c", "import torch", check=False):
    skip_all("no PyTorch: make deps-examples")
JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master: &replica
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: pytorch
            image: pytorch
            command: [COMMAND]
            env: [{name: GLOO_SOCKET_IFNAME, value: lo}]
    Worker: *replica
"""


def start():
    objects = operators.manifests(site, source / "manifests/overlays/standalone")
    copy = operators.open_to_all(site, program)
    operators.install(site, operators.replace_images(objects, copy, ["--gang-scheduler-name=volcano"]))
    operators.available(site, "kubeflow", "training-operator")


def train():
    script = operators.open_to_all(site, TRAIN)
    site.apply(JOB.replace("COMMAND", f"{PYTHON}, {script}"))

    def succeeded():
        return operators.condition(site.get("pytorchjob", "train"), "Succeeded") == "True"
    site.wait("the PyTorchJob succeeds", succeeded, 240)


def learned():
    said = [site.kubectl("logs", f"train-{name}-0").splitlines()[-1] for name in ("master", "worker")]
    expect("last lines of the logs", said, ["rank 0 of 2: weights 2.0 -3.0",
                                            "rank 1 of 2: weights 2.0 -3.0"])


def grouped():
    site.kubectl("delete", "pytorchjob", "train")
    site.apply(JOB.replace("COMMAND", "sleep, '1000'"))

    def running():
        group = site.get("podgroup", "train")
        return group["spec"]["minMember"] == 2 and group["status"].get("phase") == "Running"
    site.wait("its PodGroup of 2 runs", running)


tap.step("the operator's manifests are applied, and it becomes available", start)
tap.step("a PyTorchJob of 2 processes succeeds", train)
tap.step("both processes learned the same weights", learned)
tap.step("its pods are one gang", grouped)
tap.done()
