# SPDX-License-Identifier: Apache-2.0
"""A whole hekla up for the fault tests, its pods, and what pods must not leave behind."""

import atexit
import os
import signal
import uuid

from harness import DEADLINE_S, Path, Server, await_true, expect, scratch, subprocess

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
TABLE = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"


def may_isolate():
    """Mount namespaces are ours to make; most of what a pod does needs them."""
    probe = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    return probe.returncode == 0


def controllers():
    """Cgroup controllers in which groups can be made."""
    found = set()
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in filter(None, names.split(",")):
            if os.access(f"/sys/fs/cgroup/{name}{path}", os.W_OK):
                found.add(name)
        if not names and os.access(f"/sys/fs/cgroup{path}", os.W_OK):
            kinds = Path(f"/sys/fs/cgroup{path}/cgroup.controllers")
            found |= set(kinds.read_text().split()) if kinds.exists() else set()
    return found


def sh(script, **more):
    """A container that runs a script."""
    return {"name": "main", "image": "none", "command": ["sh", "-c", script], **more}


def comm(pid):
    """What the process calls itself; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Node:
    """hekla up, known among other processes by a mark in its environment and its pods'."""

    def __init__(self, server=None, mark=None, options=()):
        self.mark = mark or f"hekla-test-{uuid.uuid4()}"
        self.home = scratch()
        self.server = server or Server(self.home / "data", *options, verb="up",
                                       env={"HEKLA_MARK": self.mark})
        self.uids = set()
        self.client = None # the one connection to use, when there is to be only one
        atexit.register(self.clear)

    def api(self, *args, **more):
        return (self.client.request if self.client else self.server.api)(*args, **more)

    def start(self):
        self.server.start()
        await_true("a node that is ready", self.ready)
        return self

    def ready(self):
        nodes = self.api("GET", "/api/v1/nodes").json()["items"]
        return any(c["type"] == "Ready" and c["status"] == "True"
                   for n in nodes for c in n.get("status", {}).get("conditions", []))

    def create(self, name, container, **spec):
        container.setdefault("env", []).append({"name": "HEKLA_POD_MARK", "value": self.mark})
        answer = self.api("POST", PODS, {
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name},
            "spec": {"schedulerName": "volcano", "restartPolicy": "Never",
                     "terminationGracePeriodSeconds": 1, "containers": [container], **spec}})
        expect(f"answer to pod {name} ({answer})", answer.code, 201)
        self.uids.add(answer.json()["metadata"]["uid"])

    def get(self, name):
        answer = self.api("GET", f"{PODS}/{name}")
        return answer.json() if answer.code == 200 else None

    def phase(self, name):
        pod = self.get(name)
        return pod["status"].get("phase") if pod else None

    def state(self, name):
        """waiting, running or terminated, and what is said about it."""
        pod = self.get(name)
        for status in (pod or {}).get("status", {}).get("containerStatuses", []):
            for kind, about in status["state"].items():
                return kind, about
        return None, {}

    def await_state(self, name, kind, **wanted):
        """Until the container is in that state, with those fields; texts are looked for."""
        seen = [None]

        def matches():
            seen[0] = self.state(name)
            about = seen[0][1]
            return seen[0][0] == kind and all(
                value in about.get(key, "") if key == "message" else about.get(key) == value
                for key, value in wanted.items())

        try:
            await_true(f"{name} {kind} {wanted}", matches)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen[0]}") from None
        return seen[0][1]

    def column(self, name):
        """STATUS, as kubectl get shows it."""
        table = self.api("GET", f"{PODS}/{name}", headers=[TABLE]).json()
        at = [c["name"] for c in table["columnDefinitions"]].index("Status")
        return table["rows"][0]["cells"][at]

    def log(self, name, query=""):
        answer = self.api("GET", f"{PODS}/{name}/log{query}")
        return answer.body.decode(errors="replace") if answer.code == 200 else ""

    def events(self, name):
        items = self.api("GET", EVENTS).json()["items"]
        return [e["message"] for e in items if e["involvedObject"]["name"] == name]

    def delete(self, name, seconds=DEADLINE_S):
        self.api("DELETE", f"{PODS}/{name}")
        await_true(f"pod {name} to be gone", lambda: not self.get(name), seconds)

    def delete_all(self):
        self.api("DELETE", PODS)
        await_true("all pods to be gone",
                   lambda: not self.api("GET", PODS).json()["items"])

    # ---- what is left ----

    def processes(self, variable, word=b""):
        """Those whose environment at their start had our mark under that name, and which have the
        word among their arguments."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                text = Path(f"/proc/{pid}/environ").read_bytes()
                arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            marked = f"{variable}={self.mark}".encode() in text.split(b"\0")
            if marked and word in arguments and state != "Z":
                found.append(int(pid))
        return found

    def nurseries(self):
        """The process that forks for the server, as a list."""
        return [pid for pid in self.processes("HEKLA_MARK") if comm(pid) == "hekla-spawner"]

    def shims(self):
        return [pid for pid in self.processes("HEKLA_MARK")
                if comm(pid) != "hekla-spawner" and
                (not self.server.process or pid != self.server.process.pid)]

    def groups(self):
        """The control groups of our pods, the inner ones first."""
        return [f"{top}/{d}" for top, dirs, _ in os.walk("/sys/fs/cgroup", topdown=False)
                for d in dirs if any(uid in f"{top}/{d}" for uid in self.uids)]

    def clear(self):
        """Pods outlive their server; what a failed test has left must not outlive the test."""
        self.server.kill()
        for pid in self.processes("HEKLA_POD_MARK") + self.shims():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        await_true("processes to be gone",
                   lambda: not self.processes("HEKLA_POD_MARK") + self.shims())
        for group in self.groups():
            os.rmdir(group)

    def left(self):
        """Everything of our pods that is still there."""
        node = self.server.seen / "node"
        found = [f"process {pid}" for pid in self.processes("HEKLA_POD_MARK")]
        found += [f"shim {pid}" for pid in self.shims()]
        found += [str(p) for part in ("pods", "run") if (node / part).exists()
                  for p in (node / part).iterdir() if p.name[0] != "."] # of the node itself
        found += [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()
                  if line.split()[4].startswith(str(self.server.data) + "/")]
        found += self.groups()
        loops = subprocess.run(["losetup", "-l", "-n", "-O", "BACK-FILE"], check=False,
                               capture_output=True, text=True).stdout.splitlines()
        return found + [f"loop {f}" for f in loops if f.startswith(str(self.server.data))]

    def expect_nothing_left(self):
        seen = [None]

        def nothing():
            seen[0] = self.left()
            return not seen[0]

        try:
            await_true("nothing to be left", nothing)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen[0]}") from None


class Neighbour:
    """A pod that counts, and must go on doing so whatever happens beside it."""

    def __init__(self, node):
        self.node, self.last = node, 0
        node.create("neighbour", sh("i=0; while :; do i=$((i + 1)); echo $i; sleep 0.1; done"))
        node.await_state("neighbour", "running")

    def count(self):
        lines = self.node.log("neighbour", "?tailLines=1").split() # more when it is just writing
        return int(lines[-1]) if lines else 0

    def goes_on(self):
        """It has counted on since we last asked, and was never started anew."""
        before = self.count()
        expect("the count went on", before >= self.last, True)
        await_true("the neighbour to count on", lambda: self.count() > before)
        self.last = self.count()
        status = self.node.get("neighbour")["status"]["containerStatuses"][0]
        expect("restarts of the neighbour", status["restartCount"], 0)
