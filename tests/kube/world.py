# SPDX-License-Identifier: Apache-2.0
"""A control plane with simulated nodes and Hekla's programs, and what its processes use."""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from audit import WRITES, Audit, is_bind, is_heartbeat, read
from cluster import ControlPlane, Failed, Hekla, Process, free_port, holds

QUIET_S, WAIT_S = 3, 900
TICKS = os.sysconf("SC_CLK_TCK")
# As the programs are installed.
QPS = ["--kube-api-qps=2000", "--kube-api-burst=2000"]


class Use:
    """Processor time since it was made, and the most memory a process had."""

    def __init__(self, processes):
        self.processes = {p.name: p for p in processes if p.runs()}
        self.before = {name: self.cpu(p) for name, p in self.processes.items()}

    @staticmethod
    def cpu(process):
        try:
            fields = Path(f"/proc/{process.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError as gone:
            raise Failed(f"{process.name} ended:\n{process.last_words()}") from gone
        return (int(fields[11]) + int(fields[12])) / TICKS

    @staticmethod
    def peak_mb(process):
        for line in Path(f"/proc/{process.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0

    def read(self):
        return {name: {"cpu_s": self.cpu(p) - self.before[name], "peak_mb": self.peak_mb(p)}
                for name, p in self.processes.items()}


class World:
    """A control plane with nodes, where everybody but the scheduler is at work."""

    def __init__(self, programs, nodes):
        self.dir = Path(tempfile.mkdtemp(prefix="hekla-bench-"))
        self.nodes = nodes
        # Nodes neither wait for their taints nor are given up, and the log is not put aside.
        self.plane = ControlPlane(self.dir, programs, api_args=("--audit-log-maxsize=8000",),
                                  manager_args=[*QPS, "--node-monitor-grace-period=24h"])
        self.hekla = Hekla(self.plane)
        self.peer = None

    def __enter__(self):
        try:
            self.plane.start()
            self.hekla.install()
            self.start_others()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.peer:
            self.peer.end()
        self.hekla.end()
        self.plane.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start_others(self):
        h = self.hekla
        h.launch("admission", "webhook-manager", "volcano-admission", "--listen-address=127.0.0.1",
                 f"--port={self.plane.ports['webhook']}", "--webhook-namespace=volcano-system",
                 f"--webhook-url={h.webhook_url}", "--enabled-admission=" + ",".join(h.admissions()))
        self.plane.await_true("the queues", self.make_queues, h.processes["admission"])
        h.launch("controllers", "controller-manager", "volcano-controllers", *QPS)
        h.launch("agent", "agent", "hekla-agent", f"--data-dir={self.dir / 'agent'}", "--no-node",
                 "--listen=127.0.0.1:0", f"--client-ca-file={self.plane.authority}",
                 f"--sim-nodes={self.nodes}", "--sim-model=duration=forever", *QPS)
        self.plane.await_true("the webhooks are known", h.webhooks_answer)
        self.plane.await_true("the default queue is open", h.queue_is_open)
        self.await_nodes()

    def make_queues(self):
        """The scheduler makes them else, and it comes last."""
        queues = json.loads(self.hekla.manifests("--only", "queues", "-o", "json"))["items"]
        return all(self.plane.request("/apis/scheduling.volcano.sh/v1beta1/queues", "POST",
                                      queue)[0] in (201, 409) for queue in queues)

    def await_nodes(self):
        """Until all are ready and nothing keeps pods away. The list is long: it is not asked for
        often."""
        end = time.monotonic() + WAIT_S
        while (ready := self.ready_nodes()) < self.nodes:
            self.check()
            if time.monotonic() > end:
                raise Failed(f"{ready} of {self.nodes} nodes are ready after {WAIT_S} s")
            time.sleep(1)

    def ready_nodes(self):
        nodes = self.plane.request("/api/v1/nodes")[1]["items"]
        return sum(holds(node, "Ready") and not node["spec"].get("taints") for node in nodes)

    def freeze_nodes(self):
        """They stay as they are: no more heartbeats, and nobody looks at the pods they get."""
        self.hekla.processes.pop("agent").end()

    def start_scheduler(self, which):
        if which == "hekla":
            return self.hekla.launch("scheduler", "scheduler", "volcano-scheduler")
        admin = f"--kubeconfig={self.plane.config}"
        alone = ["--leader-elect=false", *QPS]
        if which == "kube-scheduler":
            command = [self.plane.programs / which, admin, "--bind-address=127.0.0.1",
                       f"--secure-port={free_port()}"]
        else:
            command = [os.environ["VC_SCHEDULER"], admin, "--enable-healthz=false",
                       "--enable-metrics=false"]
        self.peer = Process(which, [*command, *alone], self.dir / f"{which}.log",
                            {"DEBUG_SOCKET_DIR": str(self.dir)}).start()
        return self.peer

    def processes(self):
        some = [self.plane.etcd, self.plane.api, self.plane.manager, *self.hekla.processes.values()]
        return some + [self.peer] if self.peer else some

    def check(self):
        for process in self.processes():
            if not process.runs():
                raise Failed(f"{process.name} ended:\n{process.last_words()}")

    def audit(self):
        return Audit(self.plane.audit)

    def await_bound(self, audit, pods):
        """Until so many binds are in the log."""
        end, seen = time.monotonic() + WAIT_S, 0
        while seen < pods:
            seen += sum(map(is_bind, audit.poll()))
            self.check()
            if time.monotonic() > end:
                raise Failed(f"{seen} of {pods} pods are bound after {WAIT_S} s")
            time.sleep(0.05)

    def await_quiet(self):
        """Until nobody has written anything but heartbeats for a while."""
        audit = self.audit()
        verbs = [f'"verb":"{verb}"'.encode() for verb in WRITES]
        now = last = time.monotonic()
        while now - last < QUIET_S:
            time.sleep(0.1)
            now = time.monotonic()
            if any(any(v in line for v in verbs) and not is_heartbeat(read(line))
                   for line in audit.poll()):
                last = now
            self.check()
