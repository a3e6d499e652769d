#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From Volcano to Hekla and back on a real control plane, in the steps of docs/migration.md.

    tests/kube/migration.py     prints TAP

Volcano's own scheduler and controllers begin (scripts/volcano-peers builds them), ours take
over what they left, and they take it back: pods must not notice. Nodes are simulated ones. HEKLA names
our program.
"""

import shutil
import sys
import tempfile

import cluster
from cluster import HEKLA, ControlPlane, Failed, Hekla, Process, kubectl

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
LONG = {"sim.hekla.sh/duration": "3h"}


class Volcano:
    """Its scheduler and controllers, with the rights of its own installer."""

    def __init__(self, plane, hekla, programs):
        self.plane, self.hekla, self.programs, self.processes = plane, hekla, programs, []

    def apply(self):
        apply(self.plane, (self.programs / "volcano-development.yaml").read_text())
        # Its admission server is not part of this.
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            kubectl(self.plane, "delete", kind, "--all")

    def start(self):
        for name, account in (("vc-scheduler", "volcano-scheduler"),
                              ("vc-controller-manager", "volcano-controllers")):
            log = self.plane.dir / f"{name}.log"
            command = [self.programs / name, "--kubeconfig", self.hekla.config_of(account),
                       "--leader-elect=false", "--logtostderr"]
            self.processes.append(Process(name, command, log).start())

    def end(self):
        for process in self.processes:
            process.end()
        self.processes = []


def apply(plane, text):
    kubectl(plane, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def job(name, members, cpu, scheduler="volcano"):
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"metadata": {"annotations": LONG},
                "spec": {"restartPolicy": "Never", "schedulerName": scheduler,
                         "containers": [container]}}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
            "spec": {"minAvailable": members, "queue": "default", "schedulerName": scheduler,
                     "tasks": [{"name": "t", "replicas": members, "template": template}]}}


class Story:
    """The steps, one point each; after one that fails the others have nothing to stand on."""

    def __init__(self, plane, programs):
        self.plane, self.hekla = plane, Hekla(plane, agent_args=["--no-node"])
        self.volcano = Volcano(plane, self.hekla, programs)
        self.agent = Process("agent", [
            HEKLA, "agent", "--kubeconfig", plane.config, "--no-node", "--sim-nodes=3",
            f"--data-dir={plane.dir / 'agent'}", "--listen=127.0.0.1:0"], plane.dir / "agent.log")
        self.canary = None
        self.seen = {}

    def phase(self, name):
        status, answer = self.plane.request(f"{JOBS}/{name}")
        return answer.get("status", {}).get("state", {}).get("phase") if status == 200 else None

    def submit(self, body):
        status, answer = self.plane.request(JOBS, "POST", body)
        if status != 201:
            raise Failed(f"job {body['metadata']['name']}: {answer}")

    def await_phase(self, name, phase):
        self.plane.await_true(f"job {name} is {phase}", lambda: self.phase(name) == phase)

    def queue_is_open(self):
        status, queue = self.plane.request("/apis/scheduling.volcano.sh/v1beta1/queues/default")
        return status == 200 and queue.get("status", {}).get("state") == "Open"

    def pods(self):
        """What must stay: which pods run where, and since when."""
        items = self.plane.request("/api/v1/namespaces/default/pods")[1]["items"]
        return {p["metadata"]["name"]: (p["metadata"]["uid"], p["spec"].get("nodeName"),
                                        p["status"]["phase"], p["status"].get("startTime"))
                for p in items}

    def keeps(self):
        now = self.pods()
        for name, before in self.seen.items():
            if now.get(name) != before:
                raise Failed(f"pod {name} was {before} and is {now.get(name)}")
        if (self.phase("runs"), self.phase("waits")) != ("Running", "Pending"):
            raise Failed(f"jobs are {self.phase('runs')} and {self.phase('waits')}")

    def begin(self):
        self.volcano.apply()
        self.agent.start()
        self.volcano.start()
        self.plane.await_true("a node is ready", self.hekla.node_is_ready, self.agent)
        self.plane.await_true("the default queue is open", self.queue_is_open)
        self.submit(job("runs", 3, 1))
        self.submit(job("waits", 2, 900))
        self.await_phase("runs", "Running")
        self.await_phase("waits", "Pending")

    def place_beside(self):
        text = self.hekla.manifests("--namespace", "canary", "--only", "namespace,accounts,rbac")
        apply(self.plane, text.replace("name: volcano-", "name: canary-"))
        token = kubectl(self.plane, "create", "token", "canary-scheduler", "-n", "canary").strip()
        config = cluster.kubeconfig(self.plane.dir / "canary.kubeconfig", self.plane.url,
                                    self.plane.authority, token)
        kubectl(self.plane, "label", "node", "sim-00003", "pool=hekla")
        self.canary = Process("canary", [
            HEKLA, "scheduler", "--kubeconfig", config, "--scheduler-name=hekla",
            "--node-selector=pool:hekla", "--leader-elect=false"], self.plane.dir / "canary.log")
        self.canary.start()
        self.submit(job("canary", 2, 1, "hekla"))
        self.await_phase("canary", "Running")
        nodes = {node for name, (_, node, _, _) in self.pods().items() if name.startswith("canary")}
        self.canary.end()
        if nodes != {"sim-00003"}:
            raise Failed(f"pods are on {nodes}")
        self.seen = self.pods()

    def change(self):
        self.volcano.end()
        self.hekla.install()

    def take_over(self):
        self.hekla.start()
        self.keeps()
        self.submit(job("ours", 2, 1))
        self.await_phase("ours", "Running")
        self.keeps()

    def change_back(self):
        self.hekla.end()
        text = self.hekla.manifests("--only", "webhooks")
        kubectl(self.plane, "delete", "--ignore-not-found", "-f", "-", stdin=text)
        self.seen = self.pods()
        self.volcano.apply()

    def take_back(self):
        self.volcano.start()
        self.submit(job("theirs", 2, 1))
        self.await_phase("theirs", "Running")
        self.await_phase("ours", "Running")
        self.keeps()

    def end(self):
        for process in filter(None, (self.canary, self.agent)):
            process.end()
        self.volcano.end()
        self.hekla.end()


def main():
    programs, volcano = cluster.peers(), cluster.volcano_peers("--built")
    if programs is None or volcano is None or shutil.which("kubectl") is None:
        print("1..0 # skip no control plane, no kubectl, or no Volcano: scripts/volcano-peers builds it")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as dir:
        plane = ControlPlane(dir, programs)
        story = Story(plane, volcano)
        steps = [
            ("Volcano runs a job, and another waits", story.begin),
            ("a scheduler of ours places jobs of its own name beside it", story.place_beside),
            ("our manifests are applied over Volcano's", story.change),
            ("we go on with its jobs, and no pod notices", story.take_over),
            ("Volcano's manifests are applied over ours", story.change_back),
            ("Volcano goes on with them, and no pod notices", story.take_back),
        ]
        try:
            plane.start()
            for number, (name, step) in enumerate(steps, 1):
                try:
                    if not failed:
                        step()
                except Failed as failure:
                    failed = number
                    print("\n".join(f"# {line}" for line in str(failure).splitlines()))
                print(f"{'not ok' if failed else 'ok'} {number} - {name}", flush=True)
        finally:
            story.end()
            plane.end()
    print(f"1..{len(steps)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
