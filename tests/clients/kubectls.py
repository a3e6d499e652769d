#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oldest and the newest kubectl that are supported: the story that their users tell every day."""

import json
import subprocess

from clients import ROOT, Site, Tap, about, expect, expect_in, go_own, pinned

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: x
        command: [sh, -c, "echo started; exec python3 -m http.server --bind $IP 8094"]
        env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        readinessProbe: {tcpSocket: {port: 8094}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8094}]}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: gang}
spec:
  minAvailable: 2
  schedulerName: volcano
  tasks:
  - name: w
    replicas: 2
    template: {spec: {restartPolicy: Never, containers: [{name: c, image: x, command: [echo, done]}]}}
"""


def oldest():
    """The path and the version of the oldest one, Debian's."""
    found = subprocess.run([ROOT / "scripts/kubectls", "1.20"], stdout=subprocess.PIPE, text=True, check=True)
    path = found.stdout.split()[1]
    said = subprocess.run([path, "version", "--client", "-o", "json"], stdout=subprocess.PIPE, check=True)
    return path, json.loads(said.stdout)["clientVersion"]["gitVersion"].split("+")[0].lstrip("v")


def newest():
    """The path and the version of the newest one, of go/go.mod."""
    return go_own("kubectl"), "1" + pinned("k8s.io/kubectl")[1:]


class Story:
    def __init__(self, site, path, number):
        self.site, self.path, self.number = site, path, number
        self.ns = f"v{number.replace('.', '-')}"

    def k(self, *args, **options):
        return self.site.run(self.path, "-n", self.ns, *args, **options)

    def roll_out(self):
        self.k("create", "namespace", self.ns)
        self.k("apply", "-f", "-", stdin=WEB)
        expect_in("answer", self.k("rollout", "status", "deployment/web", "--timeout=90s"),
                  "successfully rolled out")
        expect_in("columns", self.k("get", "deployment", "web"), "2/2")

    def look(self):
        pod = self.k("get", "pods", "-l", "app=web", "-o", "name").split()[0]
        expect_in("log", self.k("logs", pod), "started")
        expect("output of exec", self.k("exec", pod, "--", "echo", "hello"), "hello\n")
        expect_in("description", self.k("describe", pod), "Readiness:")
        expect_in("explanation", self.k("explain", "--api-version=batch.volcano.sh/v1alpha1", "jobs"), "DESCRIPTION")
        expect_in("difference", self.k("diff", "-f", "-", stdin=WEB.replace("replicas: 2", "replicas: 3"),
                                       check=False), "replicas: 3")

    def forward(self):
        log = self.site.start(f"forward-{self.ns}", self.path, "-n", self.ns, "port-forward",
                              "service/web", ":80")

        def port():
            return log.read_text().split("127.0.0.1:")[1].split(" ")[0]
        url = f"http://127.0.0.1:{self.site.wait('the port is forwarded', port, 30)}/"
        expect_in("page", self.site.run("curl", "-sS", "--max-time", "20", url), "Directory listing")
        self.site.stop(f"forward-{self.ns}")

    def gang(self):
        self.k("apply", "-f", "-", stdin=JOB)

        def completed():
            return "Completed" == self.k("get", "vcjob", "gang", "-o", "jsonpath={.status.state.phase}")
        self.site.wait("the Volcano Job completes", completed)

    def remove(self):
        self.k("scale", "deployment/web", "--replicas=1")
        self.k("delete", "namespace", self.ns, "--timeout=90s")
        expect("the namespace", self.site.kubectl("get", "namespace", self.ns, "--ignore-not-found"), "")

    def tell(self, tap):
        tap.step(f"{self.number}: a Deployment rolls out", self.roll_out)
        tap.step(f"{self.number}: logs, exec, describe, explain and diff", self.look)
        tap.step(f"{self.number}: a port of a Service is forwarded", self.forward)
        tap.step(f"{self.number}: a Volcano Job completes", self.gang)
        tap.step(f"{self.number}: a namespace goes with what is in it", self.remove)


both = [oldest(), newest()]
about("kubectl, oldest and newest", ", ".join(number for _, number in both),
      "apply, rollout, logs, exec, describe, explain, diff, port-forward, scale, delete")
tap, site = Tap(), Site()
for path, number in both:
    Story(site, path, number).tell(tap)
tap.done()
