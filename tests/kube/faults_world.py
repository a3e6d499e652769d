# SPDX-License-Identifier: Apache-2.0
"""A cluster that faults are done to: a real control plane, our programs behind a proxy, simulated
nodes, and somebody who watches that nothing goes wrong that must not, whatever happens."""

import http.client
import json
import sys
import threading
import time
from pathlib import Path

from cluster import HEKLA, NAMESPACE, ControlPlane, Hekla, Process, holds, kubeconfig, kubectl
from proxy import Proxy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from harness import Tap, await_true, expect, expect_in, scratch  # noqa: E402,F401

DEADLINE_S = 90
NODES, CORES = 4, 4 # of each
GROUPS = {"Job": "/apis/batch.volcano.sh/v1alpha1", "Queue": "/apis/scheduling.volcano.sh/v1beta1",
          "PodGroup": "/apis/scheduling.volcano.sh/v1beta1"}
AT_ONCE = 400 # requests, when everything is listed anew
SICK = ("Sanitizer", "runtime error:", "assertion", "stack smashing")


class Kept(Process):
    """A program that is started again when it ends, as a kubelet would do it."""

    PAUSE_S = 0.5

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.wanted, self.exits, self.guard, self.crashes = False, [], None, 0

    def start(self):
        self.wanted = True
        super().start()
        self.guard = threading.Thread(target=self._guard, daemon=True)
        self.guard.start()
        return self

    def _guard(self):
        while True:
            status = self.process.wait()
            if not self.wanted:
                return
            if self.crashes > 0:
                self.crashes -= 1
            else:
                self.exits.append((status, self.last_words(3)))
            time.sleep(self.PAUSE_S)
            if not self.wanted:
                return
            super().start()

    def end(self, *args, **more):
        if self.wanted:
            self.wanted = False
            status = super().end(*args, **more)
            self.guard.join()
            if status != 0:
                self.exits.append((status, self.last_words(3)))

    def crash(self):
        """It will be started again."""
        self.crashes += 1
        self.process.kill()

    def kill(self):
        """For good."""
        self.wanted = False
        self.process.kill()
        self.guard.join()

    def expect_well(self):
        """It has never ended but for a lost lease, and runs if it should."""
        text = self.text()
        for word in SICK:
            if word in text:
                raise AssertionError(f"{self.name}: {text[-3000:]}")
        for status, words in self.exits:
            if "lost the lease" not in words:
                raise AssertionError(f"{self.name} ended with status {status}: {words}")
        if self.wanted:
            await_true(f"{self.name} runs", self.runs)

    def text(self, since=0):
        return self.log.read_text(errors="replace")[since:]

    def mark(self):
        """Where its log has come to."""
        return len(self.text())

    def cpu_s(self):
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / 100
        except OSError:
            return 0.0


class Overseer(threading.Thread):
    """Follows all pods past the proxy: what was on which node when."""

    def __init__(self, plane):
        super().__init__(daemon=True)
        self.plane, self.pods, self.wrong, self.uids = plane, {}, [], {}
        self.room, self.over, self.may_exceed = {}, False, 1
        self.start()

    def run(self):
        while not self.over:
            try:
                self.follow(self.list())
            except (OSError, http.client.HTTPException, KeyError, ValueError):
                time.sleep(0.2)

    def get(self, path):
        connection = http.client.HTTPSConnection("127.0.0.1", self.plane.ports["api"],
                                                 context=self.plane.context)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.plane.token}"})
        return connection.getresponse()

    def list(self):
        listing = json.loads(self.get("/api/v1/pods").read())
        there = {pod["metadata"]["uid"] for pod in listing["items"]}
        for uid in set(self.pods) - there:
            del self.pods[uid]
        for pod in listing["items"]:
            self.put(pod)
        return listing["metadata"]["resourceVersion"]

    def follow(self, revision):
        answer = self.get(f"/api/v1/pods?watch=true&resourceVersion={revision}")
        while line := answer.readline():
            event = json.loads(line)
            if event["type"] == "DELETED":
                self.pods.pop(event["object"]["metadata"]["uid"], None)
            elif event["type"] in ("ADDED", "MODIFIED"):
                self.put(event["object"])
            else:
                return

    def put(self, pod):
        meta, node = pod["metadata"], pod["spec"].get("nodeName")
        before = self.pods.get(meta["uid"])
        self.pods[meta["uid"]] = pod
        self.uids.setdefault((meta["namespace"], meta["name"]), set()).add(meta["uid"])
        if before and before["spec"].get("nodeName") not in (None, node):
            self.wrong.append(f"pod {meta['name']} moved to {node}")
        if node and not (before and before["spec"].get("nodeName")):
            self.weigh(node)

    def weigh(self, node):
        """Whether what is bound to the node fits."""
        if node not in self.room:
            status, body = self.plane.request(f"/api/v1/nodes/{node}")
            if status != 200:
                return
            self.room[node] = cores(body["status"]["allocatable"]["cpu"])
        taken = sum(pod_cores(pod) for pod in list(self.pods.values())
                    if pod["spec"].get("nodeName") == node and
                    pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
        if taken > self.room[node] * self.may_exceed:
            self.wrong.append(f"node {node} has {self.room[node]} cores, {taken} are taken")


def cores(quantity):
    return int(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def pod_cores(pod):
    return sum(cores(c.get("resources", {}).get("requests", {}).get("cpu", "0"))
               for c in pod["spec"]["containers"])


class Programs(Hekla):
    """Ours, each started again when it ends, behind a proxy."""

    # Short enough to be waited for, long enough for a busy machine.
    ELECTION = ("--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s",
                "--leader-elect-retry-period=1s")

    def __init__(self, plane, proxy):
        super().__init__(plane)
        self.proxy = proxy
        self.all = []  # those that have been replaced, too

    def config_of(self, account, proxy=None, name=None):
        token = kubectl(self.plane, "create", "token", account, "-n", NAMESPACE, "--duration=24h")
        return kubeconfig(self.dir / f"{name or account}.kubeconfig", (proxy or self.proxy).url,
                          self.plane.authority, token.strip())

    def launch(self, name, verb, account, *args, proxy=None, env=None):
        config = self.config_of(account, proxy, name)
        process = Kept(name, [HEKLA, verb, "--kubeconfig", config, *args],
                       self.dir / f"{name}-{len(self.all)}.log", env)
        self.processes[name] = process.start()
        self.all.append(process)
        return process

    def scheduler(self, name="scheduler", *args, **more):
        return self.launch(name, "scheduler", "volcano-scheduler", *self.ELECTION,
                           "--enable-metrics", "--listen-address=127.0.0.1:0", *args, **more)

    def controllers(self, *args, **more):
        return self.launch("controllers", "controller-manager", "volcano-controllers",
                           *self.ELECTION, *args, **more)

    def admission(self, *args, **more):
        process = self.launch("admission", "webhook-manager", "volcano-admission",
                              "--listen-address=127.0.0.1",
                              f"--port={self.plane.ports['webhook']}",
                              f"--webhook-namespace={NAMESPACE}",
                              f"--webhook-url={self.webhook_url}",
                              "--enabled-admission=" + ",".join(self.admissions()), *args, **more)
        self.plane.await_true("admission", lambda: "ready at https://" in process.text(), process)
        return process

    def agent(self, name, *args, **more):
        """Nodes: this machine, or simulated ones."""
        return self.launch(name, "agent", "hekla-agent", f"--data-dir={self.dir / name}",
                           "--listen=127.0.0.1:0", f"--client-ca-file={self.plane.authority}",
                           *args, **more)

    def start(self, *args):
        """All of them, with these further arguments."""
        self.scheduler("scheduler", *args)
        self.controllers(*args)
        self.admission(*args)
        self.agent("agent", "--no-node", f"--sim-nodes={NODES}", f"--sim-cpu={CORES}", *args)
        self.await_works("scheduler", "controllers")

    def restart(self, *args):
        for name in ("scheduler", "controllers", "admission", "agent"):
            self.processes[name].end()
        self.start(*args)

    def await_works(self, *names):
        for name in names:
            process = self.processes[name]
            self.plane.await_true(name, lambda p=process: 'msg="working"' in p.text())


def label(name):
    return f"volcano.sh%2Fjob-name%3D{name}"


class World:
    """The cluster of a test; requests of the test itself go past the proxy."""

    def __init__(self, programs, manager_args=()):
        self.dir = scratch()
        self.plane = ControlPlane(self.dir, programs, manager_args=manager_args)
        self.crt, self.key = self.plane.certificates.signed("proxy", "/CN=proxy", "IP:127.0.0.1")
        self.proxy = self.new_proxy()
        self.hekla = Programs(self.plane, self.proxy)
        self.overseer = None
        self.planted = None # what one story leaves for another

    def new_proxy(self):
        return Proxy(("127.0.0.1", self.plane.ports["api"]), self.plane.authority, self.crt,
                     self.key).start()

    def start(self):
        self.plane.start()
        self.hekla.install()
        self.hekla.start()
        self.plane.await_true("the webhooks are known", self.hekla.webhooks_answer)
        self.plane.await_true("the nodes are ready", lambda: self.ready_nodes() == NODES)
        self.plane.await_true("the default queue is open", self.hekla.queue_is_open)
        self.overseer = Overseer(self.plane)
        return self

    def end(self):
        if self.overseer:
            self.overseer.over = True
        for process in self.hekla.all:
            process.end()
        self.proxy.end()
        self.plane.end()

    def ready_nodes(self):
        """Those that take pods."""
        return sum(holds(node, "Ready") and not node["spec"].get("taints")
                   for node in self.must("/api/v1/nodes")["items"])

    # Objects.

    def request(self, path, method="GET", body=None, content_type="application/json"):
        return self.plane.request(path, method, body, content_type)

    def must(self, path, method="GET", body=None, content_type="application/json"):
        code, answer = self.request(path, method, body, content_type)
        if code >= 300:
            raise AssertionError(f"{method} {path}: {code} {answer}")
        return answer

    def path(self, kind, name):
        return f"{GROUPS[kind]}/namespaces/default/{kind.lower()}s/{name}"

    def merge(self, path, patch):
        return self.must(path, "PATCH", patch, "application/merge-patch+json")

    def submit(self, name, replicas=CORES, cpu="1", runs="1s", minimum=None, policies=(),
               node=None, task=None, pod=None, **spec):
        """A gang whose pods run for a while, or until they are told to end ("forever"). task and
        pod: further members of these."""
        annotations = {"sim.hekla.sh/duration": runs}
        template = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                    "automountServiceAccountToken": False,
                    "containers": [{"name": "main", "image": "none",
                                    "command": ["sleep", "1000"], # where it is not simulated
                                    "resources": {"requests": {"cpu": cpu}}}],
                    "nodeSelector": node or {"type": "simulated"}, **(pod or {})}
        job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
               "metadata": {"name": name},
               "spec": {"schedulerName": "volcano", "queue": "default",
                        "minAvailable": replicas if minimum is None else minimum,
                        "policies": list(policies), "maxRetry": 5,
                        "tasks": [{"name": "w", "replicas": replicas, **(task or {}),
                                   "template": {"metadata": {"annotations": annotations},
                                                "spec": template}}], **spec}}
        return self.must(f"{GROUPS['Job']}/namespaces/default/jobs", "POST", job)

    def job(self, name):
        return self.must(self.path("Job", name))

    def phase(self, name):
        return self.job(name).get("status", {}).get("state", {}).get("phase")

    def pods(self, name):
        return self.must(f"/api/v1/namespaces/default/pods?labelSelector={label(name)}")["items"]

    def bound(self, name):
        return [pod for pod in self.pods(name) if pod["spec"].get("nodeName")]

    def group(self, name):
        return f"{name}-{self.job(name)['metadata']['uid']}"

    def await_phase(self, name, phase="Completed", seconds=DEADLINE_S):
        try:
            await_true(f"job {name} is {phase}", lambda: self.phase(name) == phase, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.state_of(name)}") from None

    def await_bound(self, name, count, seconds=DEADLINE_S):
        try:
            await_true(f"{count} pods of {name} are bound",
                       lambda: len(self.bound(name)) == count, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.state_of(name)}") from None

    def state_of(self, name):
        """What may help to see why."""
        pods = [(p["metadata"]["name"], p["spec"].get("nodeName"), p["status"].get("phase"))
                for p in self.pods(name)]
        logs = {n: p.last_words(5) for n, p in self.hekla.processes.items()}
        return f"status {self.job(name).get('status')}, pods {pods}, logs {logs}"

    def delete(self, name):
        self.must(self.path("Job", name) + "?propagationPolicy=Foreground", "DELETE")
        await_true(f"job {name} is gone",
                   lambda: self.request(self.path("Job", name))[0] == 404, DEADLINE_S)

    # What must hold.

    def audit(self):
        """Requests as the API server saw them."""
        with open(self.plane.audit, encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    yield json.loads(line)

    def binds(self):
        """How often each uid was bound, as far as the server said so."""
        counts = {}
        for event in self.audit():
            ref = event.get("objectRef", {})
            if ref.get("subresource") == "binding" and event["verb"] == "create" and \
                    event.get("responseStatus", {}).get("code") == 201:
                counts[ref["uid"]] = counts.get(ref["uid"], 0) + 1
        return counts

    def check(self):
        """After everything."""
        twice = {uid: n for uid, n in self.binds().items() if n > 1}
        expect("pods bound twice", twice, {})
        expect("what went wrong with pods", self.overseer.wrong, [])
        for process in self.hekla.all:
            process.expect_well()

    def made_once(self, name, replicas):
        """The job got each pod once."""
        for k in range(replicas):
            uids = self.overseer.uids.get(("default", f"{name}-w-{k}"), set())
            expect(f"times pod {name}-w-{k} was made", len(uids), 1)


class Calm:
    """Counts what programs do meanwhile: requests through the proxy, and processor time."""

    def __init__(self, world, requests_s, cpu_share=0.5, names=("scheduler", "controllers")):
        self.world, self.requests_s, self.cpu_share, self.names = \
            world, requests_s, cpu_share, names

    def __enter__(self):
        self.since = time.monotonic()
        self.pids = {n: self.process(n).process.pid for n in self.names}
        self.cpu = {n: self.process(n).cpu_s() for n in self.names}
        return self

    def process(self, name):
        return self.world.hekla.processes[name]

    def __exit__(self, kind, *_):
        if kind:
            return
        seconds = time.monotonic() - self.since
        made = len(self.world.proxy.requests(self.since))
        if made > self.requests_s * seconds + AT_ONCE:
            raise AssertionError(f"{made} requests in {seconds:.1f} s, want at most "
                                 f"{self.requests_s} each second")
        for name in self.names:
            if self.process(name).process.pid == self.pids[name]:
                cpu = self.process(name).cpu_s() - self.cpu[name]
                if cpu > self.cpu_share * seconds + 1:
                    raise AssertionError(f"{name} used {cpu:.1f} s of {seconds:.1f} s")
