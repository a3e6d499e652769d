#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real control plane on the loopback interface: etcd, kube-apiserver, kube-controller-manager.

    tests/kube/cluster.py apiserver --data-dir DIR     Volcano's kinds installed, nobody at work
    tests/kube/cluster.py up --data-dir DIR [OPTION]   and Hekla's programs, each a process with the
                                                       rights that `hekla manifests` gives it

Takes the place of `hekla apiserver` and `hekla up` in the e2e suite: the same ready line, the same
files in DIR (kubeconfig, tokens.csv, ca.crt, server.crt, server.key), the same end on SIGTERM, and
what was there is there again when it is started anew. With `up`, --conf goes to the scheduler, all
else to the agent. Where no agent runs nodes are mere objects, and stay as they were made.

RBAC and TLS are on. DIR/ACCOUNT.kubeconfig is for a program with that account's rights.
DIR/audit.log has a line per request, or with HEKLA_AUDIT a file in that directory. The programs are
those that scripts/kube-peers finds or builds; HEKLA names ours. Whatever runs ends with this process.
"""

import argparse
import ctypes
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEKLA = str(Path(os.environ.get("HEKLA", ROOT / "build/hekla")).resolve())
NAMESPACE = "volcano-system"
ACCOUNTS = ("volcano-scheduler", "volcano-controllers", "volcano-admission", "hekla-agent")
READY_S = 120
PR_SET_PDEATHSIG = 1
CONTROLLERS = "*,-nodeipam,-cloud-node-lifecycle"
# Of a node whose lease nobody renews, nothing is thought for the length of a test.
PATIENT = ("--node-monitor-grace-period=1h", "--node-startup-grace-period=1h")

AUDIT = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


def peers(*more):
    """The directory of the control plane's programs, or None; why not is said on stderr."""
    found = subprocess.run([ROOT / "scripts/kube-peers", *more], stdout=subprocess.PIPE, text=True)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def volcano_peers(*args):
    """The directory of Volcano's own programs, or None; why not is said on stderr."""
    found = subprocess.run([ROOT / "scripts/volcano-peers", *args], stdout=subprocess.PIPE, text=True)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_taken(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Failed(Exception):
    pass


class Process:
    """A program whose output goes to a file, and which ends with us."""

    def __init__(self, name, command, log, env=None):
        self.name, self.command, self.log = name, [str(c) for c in command], Path(log)
        self.env = dict(os.environ, **(env or {}))
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            # A session of its own: what is typed at ours is for us, and they end in order.
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.env, start_new_session=True,
                                            preexec_fn=die_with_parent)
        self.log.with_suffix(".pid").write_text(f"{self.process.pid}\n")
        return self

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def end(self, signo=signal.SIGTERM, seconds=30):
        """The exit status; killed when it does not end in time."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signo)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def last_words(self, n=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-n:])


class Certificates:
    """An authority in DIR and what it signs; made once."""

    def __init__(self, dir):
        self.dir = Path(dir)
        self.dir.mkdir(parents=True, exist_ok=True)

    def path(self, name):
        return self.dir / name

    def run(self, *args):
        done = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"openssl {args[0]}: {done.stderr}")

    def authority(self):
        if not self.path("ca.crt").exists():
            self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", self.path("ca.key"), "-out", self.path("ca.crt"), "-days", "3650",
                     "-subj", "/CN=hekla-test-authority")
        return self.path("ca.crt")

    def signed(self, name, subject, alternatives="", use="serverAuth,clientAuth"):
        """NAME.crt and NAME.key."""
        crt, key, csr = (self.path(f"{name}.{end}") for end in ("crt", "key", "csr"))
        if not crt.exists():
            self.authority()
            extensions = self.path(f"{name}.ext")
            extensions.write_text(f"extendedKeyUsage={use}\n" +
                                  (f"subjectAltName={alternatives}\n" if alternatives else ""))
            self.run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", key, "-out", csr, "-subj", subject)
            self.run("x509", "-req", "-in", csr, "-CA", self.path("ca.crt"), "-CAkey",
                     self.path("ca.key"), "-CAcreateserial", "-days", "365", "-extfile", extensions,
                     "-out", crt)
        return crt, key

    def signing_key(self):
        if not self.path("sa.key").exists():
            self.run("genrsa", "-out", self.path("sa.key"), "2048")
        return self.path("sa.key")


def kubeconfig(path, url, authority, token=None, namespace="default", token_file=None):
    """Written for its owner alone, in the order and layout of hekla's."""
    proof = f"tokenFile: {token_file}" if token_file else f"token: {token}"
    path.touch(mode=0o600)
    path.write_text(f"""apiVersion: v1
kind: Config
current-context: hekla
clusters:
- name: hekla
  cluster:
    server: {url}
    certificate-authority: {authority}
contexts:
- name: hekla
  context:
    cluster: hekla
    user: user
    namespace: {namespace}
users:
- name: user
  user:
    {proof}
""")
    return path


class ControlPlane:
    """etcd, kube-apiserver and kube-controller-manager around one directory."""

    def __init__(self, dir, programs, api_args=(), manager_args=(), controllers=CONTROLLERS):
        self.dir, self.programs = Path(dir).resolve(), Path(programs)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.certificates = Certificates(self.dir / "pki")
        self.api_args, self.manager_args = api_args, manager_args
        self.controllers = controllers
        self.ports = self._ports()
        self.url = f"https://127.0.0.1:{self.ports['api']}"
        self.token = self._token()
        self.authority = self.certificates.authority()
        self.config = kubeconfig(self.dir / "kubeconfig", self.url, self.authority, self.token)
        self._link("ca.crt", self.authority)
        self.audit = self._audit_log()
        self.context = ssl.create_default_context(cafile=str(self.authority))
        self.etcd, self.api, self.manager = (self._process(n) for n in ("etcd", "api", "manager"))

    def _ports(self):
        """The same ones each time."""
        path = self.dir / "ports.json"
        if not path.exists():
            path.write_text(json.dumps({name: free_port() for name in
                                        ("etcd", "peer", "api", "manager", "webhook")}))
        return json.loads(path.read_text())

    def _link(self, name, path):
        """Where hekla has it."""
        if not (self.dir / name).exists():
            (self.dir / name).symlink_to(path)

    def _audit_log(self):
        """HEKLA_AUDIT names a directory where it outlives ours."""
        kept = os.environ.get("HEKLA_AUDIT")
        return Path(kept) / f"{os.getpid()}.log" if kept else self.dir / "audit.log"

    def _token(self):
        path = self.dir / "tokens.csv"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(f'{secrets.token_hex(16)},admin,admin,"system:masters"\n')
        return path.read_text().split(",")[0]

    def _process(self, which):
        name, command = getattr(self, f"_{which}")()
        return Process(name, [self.programs / name, *command], self.dir / f"{name}.log")

    def _etcd(self):
        client, peer = (f"http://127.0.0.1:{self.ports[n]}" for n in ("etcd", "peer"))
        return "etcd", ["--data-dir", self.dir / "etcd", "--listen-client-urls", client,
                        "--advertise-client-urls", client, "--listen-peer-urls", peer,
                        "--initial-advertise-peer-urls", peer, "--initial-cluster",
                        f"default={peer}", "--log-level", "error", "--unsafe-no-fsync"]

    def _api(self):
        crt, key = self.certificates.signed("apiserver", "/CN=kube-apiserver",
                                            "IP:127.0.0.1,DNS:localhost")
        self._link("server.crt", crt)
        self._link("server.key", key)
        node_crt, node_key = self.certificates.signed("kubelet-client", "/O=system:masters/CN=api")
        policy = self.dir / "audit.yaml"
        policy.write_text(AUDIT)
        return "kube-apiserver", [
            f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", f"--secure-port={self.ports['api']}",
            f"--tls-cert-file={crt}", f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self.certificates.signing_key()}",
            f"--service-account-signing-key-file={self.certificates.signing_key()}",
            "--authorization-mode=Node,RBAC", f"--token-auth-file={self.dir / 'tokens.csv'}",
            "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true",
            f"--kubelet-client-certificate={node_crt}", f"--kubelet-client-key={node_key}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={policy}", f"--audit-log-path={self.audit}", *self.api_args]

    def _manager(self):
        key = self.certificates.signing_key()
        return "kube-controller-manager", [
            f"--kubeconfig={self.config}", f"--authentication-kubeconfig={self.config}",
            f"--authorization-kubeconfig={self.config}",
            f"--service-account-private-key-file={key}", f"--root-ca-file={self.authority}",
            "--leader-elect=false", "--bind-address=127.0.0.1",
            f"--secure-port={self.ports['manager']}", "--kube-api-qps=1000", "--kube-api-burst=1000",
            f"--controllers={self.controllers}", *self.manager_args]

    def request(self, path, method="GET", body=None, content_type="application/json"):
        """The administrator's request: status and decoded answer."""
        request = urllib.request.Request(
            self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
                return answer.status, self._decoded(answer)
        except urllib.error.HTTPError as error:
            return error.code, self._decoded(error)

    @staticmethod
    def _decoded(answer):
        text = answer.read().decode(errors="replace")
        return json.loads(text) if text.startswith("{") else text

    def await_true(self, what, fn, process=None):
        end = time.monotonic() + READY_S
        while True:
            try:
                if fn():
                    return
            except (OSError, urllib.error.URLError):
                pass
            if process and not process.runs():
                raise Failed(f"{process.name} ended:\n{process.last_words()}")
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {READY_S} s\n"
                             f"{process.last_words() if process else ''}")
            time.sleep(0.1)

    def start_api(self):
        self.api.start()
        self.await_true("the API server is ready", lambda: self.request("/readyz")[0] == 200,
                        self.api)

    def start(self):
        # A port that was free when it was chosen may be another's by now; if it is another etcd's,
        # the API server would work on that one's objects.
        if is_taken(self.ports["etcd"]):
            raise Failed(f"port {self.ports['etcd']} of etcd is taken: remove {self.dir}")
        self.etcd.start()
        self.start_api()
        self.start_manager()
        return self

    def start_manager(self):
        self.manager.start()
        # Pods are refused before there is an account for them.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.await_true("the default account", lambda: self.request(account)[0] == 200,
                        self.manager)

    def end(self):
        for process in (self.manager, self.api, self.etcd):
            process.end()


def kubectl(plane, *args, stdin=None):
    done = subprocess.run(["kubectl", "--kubeconfig", plane.config, *args], input=stdin, text=True,
                          capture_output=True, env=dict(os.environ, HOME=str(plane.dir)))
    if done.returncode != 0:
        raise Failed(f"kubectl {' '.join(map(str, args))}: {done.stderr}")
    return done.stdout


def holds(item, condition):
    return any(c["type"] == condition and c["status"] == "True"
               for c in item.get("status", {}).get("conditions") or [])


def has_nodes(agent_args):
    return "--no-node" not in agent_args or \
        any(arg.startswith("--sim-nodes") for arg in agent_args)


class Hekla:
    """Our programs on a control plane, each with the token of its own account."""

    def __init__(self, plane, conf=None, agent_args=()):
        self.plane, self.dir = plane, plane.dir
        self.webhook_url = f"https://127.0.0.1:{plane.ports['webhook']}"
        self.conf, self.agent_args = conf, agent_args
        self.processes = {}

    def manifests(self, *args):
        done = subprocess.run([HEKLA, "manifests", *args], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"hekla manifests: {done.stderr}")
        return done.stdout

    def apply(self, *parts):
        kubectl(self.plane, "apply", "--server-side", "-f", "-", stdin=self.manifests(*parts))

    def install_kinds(self):
        """What `hekla apiserver` has from the start, and the accounts of those who come to work."""
        self.apply("--only", "crds,namespace,accounts,rbac,agent")
        self.plane.await_true("the kinds are served", self.kinds_are_served)
        self.apply("--only", "queues")
        for account in ACCOUNTS:
            self.config_of(account)

    def kinds_are_served(self):
        crds = self.plane.request("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")[1]
        return all(holds(crd, "Established") for crd in crds["items"])

    def install(self):
        """For programs that run beside the cluster."""
        conf = ["--with", "config", "--scheduler-conf", self.conf] if self.conf else []
        self.apply("--webhook-url", self.webhook_url, "--with", "agent", *conf)
        self.plane.await_true("the kinds are served", self.kinds_are_served)

    def config_of(self, account):
        """The kubeconfig of a program."""
        token = kubectl(self.plane, "create", "token", account, "-n", NAMESPACE, "--duration=24h")
        return kubeconfig(self.dir / f"{account}.kubeconfig", self.plane.url, self.plane.authority,
                          token.strip())

    def launch(self, name, verb, account, *args):
        log = self.dir / f"{name}.log"
        log.unlink(missing_ok=True)
        self.processes[name] = Process(name, [HEKLA, verb, "--kubeconfig", self.config_of(account),
                                              *args], log).start()
        return self.processes[name]

    def start(self):
        everywhere = ["--enable-healthz", "--healthz-address=127.0.0.1:0", "--enable-metrics",
                      "--listen-address=127.0.0.1:0"]
        conf = [f"--scheduler-conf={self.conf}"] if self.conf else []
        self.launch("scheduler", "scheduler", "volcano-scheduler", *everywhere, *conf)
        self.launch("controllers", "controller-manager", "volcano-controllers", *everywhere)
        self.launch("admission", "webhook-manager", "volcano-admission",
                    "--listen-address=127.0.0.1", f"--port={self.plane.ports['webhook']}",
                    f"--webhook-namespace={NAMESPACE}", f"--webhook-url={self.webhook_url}",
                    "--enabled-admission=" + ",".join(self.admissions()))
        if has_nodes(self.agent_args):
            self.launch("agent", "agent", "hekla-agent", f"--data-dir={self.dir}",
                        "--listen=127.0.0.1:0", f"--client-ca-file={self.plane.authority}",
                        *self.agent_args)
        self.await_work()

    def admissions(self):
        """The paths that the installed configurations call."""
        paths = []
        for kind in ("mutating", "validating"):
            listing = self.plane.request(
                f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations")[1]
            for item in listing["items"]:
                paths += [hook["clientConfig"]["url"].split("/", 3)[3] for hook in item["webhooks"]
                          if hook["clientConfig"].get("url", "").startswith(self.webhook_url)]
        return ["/" + path for path in paths]

    def await_work(self):
        """Everybody leads, answers or is ready."""
        plane = self.plane
        log = lambda name: self.processes[name].log.read_text(errors="replace")
        for name, word in (("scheduler", 'msg="working"'), ("controllers", 'msg="working"'),
                           ("admission", "ready at https://")):
            plane.await_true(name, lambda n=name, w=word: w in log(n), self.processes[name])
        plane.await_true("the webhooks are known", self.webhooks_answer)
        if has_nodes(self.agent_args):
            plane.await_true("a node is ready", self.node_is_ready, self.processes["agent"])
        plane.await_true("the default queue is open", self.queue_is_open)

    def webhooks_answer(self):
        """A dry run of a job that the defaults complete."""
        job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
               "metadata": {"name": "probe"},
               "spec": {"tasks": [{"name": "w", "replicas": 1, "template": {"spec": {
                   "containers": [{"name": "c", "image": "busybox"}]}}}]}}
        status, answer = self.plane.request(
            "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs?dryRun=All", "POST", job)
        return status == 201 and answer["spec"].get("queue") == "default"

    def node_is_ready(self):
        nodes = self.plane.request("/api/v1/nodes")[1]["items"]
        return any(holds(node, "Ready") for node in nodes)

    def queue_is_open(self):
        status, queue = self.plane.request("/apis/scheduling.volcano.sh/v1beta1/queues/default")
        return status == 200 and queue.get("status", {}).get("state") == "Open"

    def end(self):
        """Those who did not end well."""
        return [process for process in self.processes.values() if process.end() != 0]


def serve(args, rest):
    programs = peers()
    if programs is None:
        return 1
    patience = () if args.verb == "up" and has_nodes(rest) else PATIENT
    plane = ControlPlane(args.data_dir, programs, (), patience, args.controllers)
    hekla = Hekla(plane, args.conf, rest)
    stop = []
    for signo in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signo, lambda *_: stop.append(1))
    try:
        # Kinds first: the garbage collector learns of later ones only by and by.
        plane.etcd.start()
        plane.start_api()
        (hekla.install if args.verb == "up" else hekla.install_kinds)()
        plane.start_manager()
        if args.verb == "up":
            hekla.start()
        print(f"hekla {args.verb} ready at {plane.url}, kubeconfig {plane.config}", flush=True)
        everybody = [plane.etcd, plane.api, plane.manager, *hekla.processes.values()]
        while not stop:
            time.sleep(0.2)
            ended = [process for process in everybody if not process.runs()]
            if ended and not stop:
                raise Failed(f"{ended[0].name} ended:\n{ended[0].last_words()}")
        for process in hekla.end():
            raise Failed(f"{process.name} ended badly:\n{process.last_words()}")
        return 0
    except Failed as failure:
        print(f"cluster: {failure}", file=sys.stderr)
        return 1
    finally:
        hekla.end()
        plane.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("verb", choices=("apiserver", "up"))
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--listen", help="taken for hekla's sake: the port is always a free one")
    parser.add_argument("--conf")
    parser.add_argument("--controllers", default=CONTROLLERS, help="of kube-controller-manager")
    args, rest = parser.parse_known_args()
    return serve(args, rest)


if __name__ == "__main__":
    sys.exit(main())
