#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Helm 3 and Helm 4: the chart that `helm create` writes is installed with --wait, upgraded, rolled
back and removed. Its image is replaced by a web server of this machine through the chart's values."""

import re
import subprocess

import yaml

from clients import OWN, ROOT, Site, Tap, about, expect, expect_in, go_program, needs

HELM4 = ("helm.sh/helm/v4", "v4.3.1", "h1:UndCoLe9UPmNoL7IvWzaUXveL7T5t/ijoorEmgJdI9g=")
needs("go", "python3")


def helm3():
    """The path of the helm that tests of our own chart use, and its version."""
    found = subprocess.run([ROOT / "scripts/helm"], stdout=subprocess.PIPE, text=True, check=True)
    path = found.stdout.strip()
    said = subprocess.run([path, "version", "--short"], stdout=subprocess.PIPE, text=True, check=True)
    return path, re.match(r"v([\d.]+)", said.stdout)[1]


def helm4():
    module, version, checksum = HELM4
    return go_program("helm", module, version, checksum, "./cmd/helm"), version[1:]


def serve_pages(chart):
    """Gives the container of the chart a command, since images do not bring one here."""
    path = chart / "templates/deployment.yaml"
    text = path.read_text()
    server = ('          command: ["python3", "-m", "http.server", "--bind", "$(IP)", "8093"]\n'
              '          env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]\n')
    image = "          imagePullPolicy:"
    expect_in("deployment of the chart", text, image)
    path.write_text(text.replace(image, server + image, 1).replace(
        "containerPort: {{ .Values.service.port }}", "containerPort: 8093"))


class Story:
    def __init__(self, site, name, path):
        self.site, self.name, self.path = site, name, path

    def helm(self, *args, **options):
        return self.site.run(self.path, *args, seconds=400, **options)

    def release(self):
        return yaml.safe_load(self.helm("status", self.name, "-o", "yaml"))

    def create(self):
        self.helm("create", self.name, cwd=self.site.dir)
        serve_pages(self.site.dir / self.name)
        said = self.helm("install", self.name, self.site.dir / self.name, "--wait", "--timeout", "3m")
        expect_in("answer", said, "STATUS: deployed")

    def ready(self):
        made = self.site.get("deployment", self.name)
        expect("available replicas", made["status"].get("availableReplicas"), 1)
        address = self.site.get("service", self.name)["spec"]["clusterIP"]
        page = self.site.run("curl", "-sS", "--max-time", "20", f"http://{address}/")
        expect_in("page behind the Service", page, "Directory listing")

    def upgrade(self):
        self.helm("upgrade", self.name, self.site.dir / self.name, "--wait", "--timeout", "3m",
                  "--set", "replicaCount=2")
        expect("available replicas", self.site.get("deployment", self.name)["status"]["availableReplicas"], 2)
        self.helm("rollback", self.name, "1", "--wait", "--timeout", "3m")
        expect("replicas after the rollback", self.site.get("deployment", self.name)["spec"]["replicas"], 1)
        expect("revision", self.release()["version"], 3)

    def remove(self):
        self.helm("uninstall", self.name, "--wait", "--timeout", "3m")
        expect("releases", self.helm("list", "-q").strip(), "")
        left = self.site.kubectl("get", "deployments,services", "-l",
                                 f"app.kubernetes.io/instance={self.name}", "-o", "name")
        expect("what is left of it", left.strip().replace("No resources found in default namespace.", ""), "")

    def tell(self, tap):
        tap.step(f"{self.name}: install --wait ends when the chart's pods are ready", self.create)
        tap.step(f"{self.name}: the chart's Service leads to its pod", self.ready)
        tap.step(f"{self.name}: upgrade and rollback wait as well", self.upgrade)
        tap.step(f"{self.name}: uninstall leaves nothing", self.remove)


three, four = helm3(), helm4()
about("Helm 3 and Helm 4", f"{three[1]}, {four[1]}",
      "`install --wait`, `upgrade --wait`, `rollback --wait`, `uninstall` of the chart of `helm create`",
      "the command of the chart's container")
tap, site = Tap(), Site()
Story(site, "three", three[0]).tell(tap)
Story(site, "four", four[0]).tell(tap)
tap.done()
