# SPDX-License-Identifier: Apache-2.0
"""Programs that die, come in pairs, live by another clock or lose their credentials."""

import base64
import subprocess
import time
import urllib.request
from pathlib import Path

import proxy as faults
from cluster import HEKLA, NAMESPACE, holds, kubeconfig, kubectl
from faults_world import CORES, DEADLINE_S, Calm, await_true, expect, expect_in, scratch

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/volcano-admission-secret"
HOUR_S = 3600


def metric(process, name):
    """Of a program that serves metrics on a port it has told."""
    port = process.text().rsplit("metrics on port ", 1)[1].split()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def is_bind(entry):
    return entry[1] == "POST" and "/binding" in entry[2]


def schedulers(tap, world):
    hekla = world.hekla
    beside = world.new_proxy()

    def one_works():
        hekla.scheduler("second", proxy=beside)
        await_true("the second one stands for election",
                   lambda: "msg=\"lease\"" in hekla.processes["second"].text())
        world.submit("one-works")
        world.await_phase("one-works")
        expect("what the second one wrote",
               [e for e in beside.requests() if e[1] != "GET"], [])
        world.check()

    def torn_gang():
        """Two of six binds pass, then the leader is killed; there is room for this gang, or for
        the one that comes after it."""
        hold, next_hold = faults.Hold(), faults.Hold()
        with world.proxy.rule(hold, method="POST", path="/binding", after=2), \
                beside.rule(next_hold, method="POST", path="/binding"):
            world.submit("torn", replicas=6, cpu="2", runs="2s")
            await_true("four binds wait", lambda: hold.waiting == 4)
            hekla.processes["scheduler"].kill()
            world.submit("fresh", replicas=4, cpu="2", runs="1s")
            await_true("the successor binds the rest", lambda: next_hold.waiting == 4, 60)
            sessions = metric(hekla.processes["second"], "hekla_scheduler_sessions_total")
            expect("pods of the torn gang that are bound", len(world.bound("torn")), 2)
            expect("pods of the fresh one that are bound", len(world.bound("fresh")), 0)
            next_hold.open.set()
            world.await_bound("torn", 6)
        if sessions > 2:
            raise AssertionError(f"the gang was completed in session {sessions}, want 2 or fewer")
        for name, count in (("torn", 6), ("fresh", 4)):
            world.await_phase(name)
            world.made_once(name, count)
        world.check()

    def late_binds():
        """Of a leader that was killed, and that arrive when another has bound the same pods."""
        hold = faults.Hold(late=True)
        with beside.rule(hold, method="POST", path="/binding", after=1):
            world.submit("late", replicas=5, runs="2s")
            await_true("four binds wait", lambda: hold.waiting == 4)
            hekla.processes["second"].kill()
            hekla.scheduler()
            world.await_bound("late", 5)
            hold.open.set()
            world.await_phase("late")
        world.made_once("late", 5)
        world.check()

    def without_election():
        """Two that both think they are alone, as after a mistake."""
        hekla.processes["scheduler"].end()
        hekla.scheduler("scheduler", "--leader-elect=false")
        hekla.scheduler("second", "--leader-elect=false", proxy=beside)
        hekla.await_works("scheduler", "second")
        world.overseer.may_exceed = 2 # each of them knows what it places itself: docs/faults.md
        since, names = time.monotonic(), [f"both-{k}" for k in range(6)]
        with Calm(world, requests_s=150, names=("scheduler", "second")):
            for name in names:
                world.submit(name, runs="1s")
            for name in names:
                world.await_phase(name)
        for proxy in (world.proxy, beside):
            expect("this one binds, too", any(map(is_bind, proxy.requests(since))), True)
        for name in names:
            world.made_once(name, CORES)
        world.check()
        world.overseer.may_exceed = 1

    def quarrel():
        """What cannot be placed is said by both, once."""
        world.submit("nowhere", replicas=2, node={"no-such": "label"})
        group = world.path("PodGroup", world.group("nowhere"))
        await_true("its group says why",
                   lambda: "Unschedulable" in str(world.request(group)[1].get("status")))
        since = time.monotonic()
        time.sleep(4)
        said = [e for p in (world.proxy, beside) for e in p.requests(since)
                if e[1] in ("PATCH", "PUT") and "leases" not in e[2]]
        if len(said) > 8:
            raise AssertionError(f"{len(said)} writes in 4 s though nothing happened: {said[-4:]}")
        world.delete("nowhere")

    def back():
        hekla.processes["second"].end()
        hekla.processes["scheduler"].end()
        hekla.scheduler()
        hekla.await_works("scheduler")
        world.check()

    tap.step("two schedulers: one schedules, the other waits", one_works)
    tap.step("the leader is killed between two binds of a gang: the next one completes it first",
             torn_gang)
    tap.step("binds of a dead leader arrive late: no pod is bound twice", late_binds)
    tap.step("two schedulers without election: no pod is bound twice, jobs complete",
             without_election)
    tap.step("two schedulers without election do not overwrite each other's conditions", quarrel)
    tap.step("one scheduler is left", back)
    beside.end()


# ---- nodes ----

GONE_S = 20 # without a renewed lease a node is given up then, see faults.py


def nodes(tap, world):
    hekla = world.hekla
    lost = "/api/v1/nodes/lost"
    fleeting = [{"key": f"node.kubernetes.io/{why}", "operator": "Exists",
                 "effect": "NoExecute", "tolerationSeconds": 1}
                for why in ("not-ready", "unreachable")]

    def taints():
        return {t["key"] for t in world.must(lost)["spec"].get("taints", [])}

    def mark(node, value):
        world.merge(node, {"metadata": {"labels": {"example.com/at": value}}})

    def agent():
        hekla.agent("lost", "--node=lost", "--address=127.0.0.1")
        await_true("the node is ready", lambda: world.request(lost)[0] == 200 and
                   holds(world.must(lost), "Ready") and not taints(), DEADLINE_S)

    def gone():
        """Its pods are evicted by others, which they cannot confirm; whoever looks after the
        cluster says that the machine is off, and the job begins anew elsewhere."""
        agent()
        mark(lost, "here")
        world.submit("stranded", replicas=2, cpu="500m", node={"example.com/at": "here"},
                     policies=[{"event": "PodEvicted", "action": "RestartJob"},
                               {"event": "PodFailed", "action": "RestartJob"}],
                     pod={"tolerations": fleeting})
        world.await_phase("stranded", "Running")
        hekla.processes["lost"].kill()
        mark(lost, None)
        mark("/api/v1/nodes/sim-00001", "here")
        await_true("the node is given up", lambda: "node.kubernetes.io/unreachable" in taints(),
                   GONE_S + DEADLINE_S)
        await_true("its pods are evicted", lambda: all(
            p["metadata"].get("deletionTimestamp") for p in world.pods("stranded")), DEADLINE_S)
        world.must(lost, "PATCH", [{"op": "add", "path": "/spec/taints/-", "value": {
            "key": "node.kubernetes.io/out-of-service", "value": "off",
            "effect": "NoExecute"}}], "application/json-patch+json")
        world.await_phase("stranded")
        expect("times it began anew", world.job("stranded")["status"].get("version"), 1)
        expect("where it ended", {p["spec"]["nodeName"] for p in world.pods("stranded")},
               {"sim-00001"})
        mark("/api/v1/nodes/sim-00001", None)
        world.check()

    def back():
        """What was evicted meanwhile ends there, too."""
        world.must(lost, "PATCH", [{"op": "test", "path": "/metadata/name", "value": "lost"},
                                   {"op": "remove", "path": "/spec/taints"}],
                   "application/json-patch+json")
        agent()
        await_true("its processes are gone", lambda: not list(
            (world.dir / "lost/node/pods").iterdir()), DEADLINE_S)
        world.check()

    def deleted():
        """The node goes while binds to it are under way: the API server takes them."""
        mark(lost, "here")
        hold = faults.Hold()
        with world.proxy.rule(hold, method="POST", path="/binding"):
            world.submit("homeless", replicas=2, cpu="500m", node={"example.com/at": "here"},
                         policies=[{"event": "PodEvicted", "action": "RestartJob"}])
            await_true("binds are under way", lambda: hold.waiting == 2, DEADLINE_S)
            hekla.processes["lost"].end()
            world.must(lost, "DELETE")
            mark("/api/v1/nodes/sim-00001", "here")
            hold.open.set()
        world.await_bound("homeless", 2)
        # kube-controller-manager would do it in a minute.
        for pod in world.bound("homeless"):
            world.request(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
                          "?gracePeriodSeconds=0", "DELETE")
        world.await_phase("homeless")
        mark("/api/v1/nodes/sim-00001", None)
        world.check()

    tap.step("a node is lost: its job restarts on another one", gone)
    tap.step("the node is back: it is ready, and evicted pods have ended", back)
    tap.step("a node is deleted while binds to it are in progress: the job restarts elsewhere",
             deleted)


# ---- clocks and credentials ----


class Clock:
    """The wall clock of a program, off by so many seconds."""

    def __init__(self, seconds):
        self.dir = scratch()
        library = self.dir / "clock_step.so"
        source = Path(__file__).resolve().parent.parent / "faults/clock_step.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        self.set(seconds)
        self.env = {"LD_PRELOAD": str(library), "CLOCK_STEP": str(self.dir / "step")}

    def set(self, seconds):
        (self.dir / "new").write_text(str(seconds))
        (self.dir / "new").rename(self.dir / "step")


def is_sanitized():
    """Its runtime wants to be loaded first."""
    return b"__asan_init" in Path(HEKLA).read_bytes()


def clocks(tap, world):
    if is_sanitized():
        tap.skip("clocks that differ", "a sanitizer's runtime has to be loaded first")
        return
    hekla = world.hekla
    ahead, behind = Clock(HOUR_S), Clock(-HOUR_S)
    hekla.processes["scheduler"].end()
    hekla.processes["controllers"].end()
    hekla.scheduler(env=ahead.env)
    hekla.controllers(env=behind.env)
    hekla.await_works("scheduler", "controllers")

    def holders(name):
        return hekla.processes[name].text().count('msg="lease"')

    def no_quarrel():
        """Who waits counts from when he saw the last renewal, not from what it says."""
        hekla.scheduler("second", env=behind.env)
        await_true("the second one has seen the lease", lambda: holders("second") == 1)
        renewals = lambda: sum(e[1] == "PUT" and "leases/volcano" in e[2]
                               for e in world.proxy.requests())
        before = renewals()
        await_true("the lease is renewed many times", lambda: renewals() >= before + 12)
        expect("holders the second one saw", holders("second"), 1)
        world.submit("apart")
        world.await_phase("apart")
        world.made_once("apart", CORES)
        world.check()

    def step():
        """While they work, in both directions."""
        world.submit("stepped", runs="3s")
        world.await_bound("stepped", CORES)
        ahead.set(-24 * HOUR_S)
        behind.set(24 * HOUR_S)
        world.submit("stepped-on")
        for name in ("stepped", "stepped-on"):
            world.await_phase(name)
            world.made_once(name, CORES)
        expect("holders the second one saw", holders("second"), 1)
        expect("exits", hekla.processes["scheduler"].exits, [])
        world.check()

    def take_over():
        hekla.processes["scheduler"].kill()
        world.submit("taken-over")
        world.await_phase("taken-over")
        world.made_once("taken-over", CORES)
        hekla.processes["second"].end()
        world.check()

    def webhooks_ahead():
        """Minutes ahead: what it signs now is good for the API server already."""
        minutes = Clock(240)
        hekla.processes["admission"].end()
        world.must(SECRET, "DELETE")
        hekla.admission(env=minutes.env)
        await_true("the webhooks answer", hekla.webhooks_answer)
        hekla.processes["admission"].end()
        hekla.admission()
        world.check()

    tap.step("clocks two hours apart: one leads, and keeps the lease", no_quarrel)
    tap.step("clocks that step by days: jobs complete, and the leader stays", step)
    tap.step("clocks two hours apart: a dead leader is replaced", take_over)
    tap.step("an admission server minutes ahead is trusted", webhooks_ahead)
    hekla.processes["controllers"].end()
    hekla.scheduler()
    hekla.controllers()
    hekla.await_works("scheduler", "controllers")


def tokens(tap, world):
    """A token that is revoked, as those of pods are when they are replaced."""
    hekla, path = world.hekla, scratch() / "token"

    def new_token(name):
        world.must(f"/api/v1/namespaces/{NAMESPACE}/secrets", "POST",
                   {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
        return kubectl(world.plane, "create", "token", "volcano-scheduler", "-n", NAMESPACE,
                       "--bound-object-kind=Secret", f"--bound-object-name={name}").strip()

    def put_token(token):
        fresh = path.with_name("new")
        fresh.write_text(token)
        fresh.rename(path)

    def revoke(name):
        world.must(f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}", "DELETE")

    def config_of(*_):
        return kubeconfig(world.dir / "rotated.kubeconfig", world.proxy.url, world.plane.authority,
                          token_file=path)

    def refused():
        return [e for e in world.proxy.requests(agent="volcano/") if e[4] == 401]

    def rotated():
        put_token(new_token("first"))
        hekla.processes["scheduler"].end()
        usual, hekla.config_of = hekla.config_of, config_of
        hekla.scheduler()
        hekla.config_of = usual
        hekla.await_works("scheduler")
        put_token(new_token("second"))
        revoke("first")
        world.submit("rotated")
        world.await_phase("rotated")
        world.check()

    def revoked():
        """Nothing better is there for a while."""
        revoke("second")
        await_true("requests are refused", refused, 60)
        world.submit("revoked")
        with Calm(world, requests_s=40):
            await_true("who leads gives up", lambda: hekla.processes["scheduler"].exits, 60)
        expect_in("the log", hekla.processes["scheduler"].text(), "Unauthorized")
        put_token(new_token("third"))
        world.await_phase("revoked")
        world.made_once("revoked", CORES)
        world.check()

    tap.step("a token is replaced and the old one revoked: work continues without a pause",
             rotated)
    tap.step("a token is revoked before there is a new one: work continues with the new one",
             revoked)
    hekla.processes["scheduler"].end()
    hekla.scheduler()
    hekla.await_works("scheduler")


# ---- the admission server ----


def bare_pod(name, scheduler):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "none"}]}}


def volcano_objects():
    pod = {"spec": {"containers": [{"name": "c", "image": "none"}]}}
    return (
        ("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
         {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "probe"},
          "spec": {"tasks": [{"name": "w", "replicas": 1, "template": pod}]}}),
        ("/apis/scheduling.volcano.sh/v1beta1/queues",
         {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
          "metadata": {"name": "probe"}, "spec": {"weight": 1}}),
        ("/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
         {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
          "metadata": {"name": "probe"}, "spec": {"minMember": 1}}))


def expired_pair(world):
    """Signed by nobody the server trusts less than before, but out of date."""
    certificates = world.plane.certificates
    crt, key = (certificates.path(f"expired.{end}") for end in ("crt", "key"))
    csr, names = certificates.path("expired.csr"), certificates.path("expired.ext")
    service = f"volcano-admission-service.{NAMESPACE}.svc"
    names.write_text(f"subjectAltName=IP:127.0.0.1,DNS:{service}\n")
    certificates.run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-keyout", key, "-out", csr, "-subj", "/CN=expired")
    certificates.run("x509", "-req", "-in", csr, "-CA", certificates.path("ca.crt"), "-CAkey",
                     certificates.path("ca.key"), "-CAcreateserial", "-days", "-1",
                     "-extfile", names, "-out", crt)
    return crt, key


def plant(world):
    """Puts it into the Secret; its certificate there."""
    coded = lambda p: base64.b64encode(p.read_bytes()).decode()
    crt, key = expired_pair(world)
    world.merge(SECRET, {"data": {"tls.crt": coded(crt), "tls.key": coded(key),
                                  "ca.crt": coded(world.plane.authority)}})
    return coded(crt)


def webhooks(tap, world):
    hekla = world.hekla

    def dry_run(path, body):
        return world.request(path + "?dryRun=All", "POST", body)

    def refused(words):
        for path, body in volcano_objects():
            code, answer = dry_run(path, body)
            expect(f"code of a new {body['kind']}", code, 500)
            expect_in("its words", answer["message"], words)

    def others_pass():
        for namespace, scheduler in (("default", "default-scheduler"), ("default", "volcano"),
                                     ("kube-system", "default-scheduler"),
                                     ("kube-system", "volcano"), (NAMESPACE, "volcano")):
            code, answer = dry_run(f"/api/v1/namespaces/{namespace}/pods",
                                   bare_pod("probe", scheduler))
            expect(f"code of a pod for {scheduler} in {namespace}, {answer}", code, 201)

    def accepted():
        for path, body in volcano_objects():
            code, answer = dry_run(path, body)
            expect(f"code of a new {body['kind']}, {answer}", code, 201)

    def down():
        world.submit("before", runs="2s")
        world.await_phase("before", "Running")
        with world.proxy.rule(faults.answer(503), method="POST", path="/podgroups"):
            world.submit("caught") # in the middle of it
            hekla.processes["admission"].kill()
        refused('failed calling webhook "')
        others_pass()
        world.await_phase("before")
        world.made_once("before", CORES)
        await_true("the controllers say what keeps them", lambda: 'object=default/caught err="' in
                   hekla.processes["controllers"].text())

    def up():
        hekla.admission()
        accepted()
        world.await_phase("caught")
        world.made_once("caught", CORES)
        expect_in("the controllers' log", hekla.processes["controllers"].text(),
                  'msg="recovered" controller=job-controller object=default/caught')
        world.check()

    def expired_files():
        crt, key = expired_pair(world)
        hekla.processes["admission"].end()
        hekla.admission(f"--tls-cert-file={crt}", f"--tls-private-key-file={key}",
                        f"--ca-cert-file={world.plane.authority}")
        await_true("the server sees that it is out of date",
                   lambda: "certificate has expired" in dry_run(*volcano_objects()[0])[1]
                   .get("message", ""))
        others_pass()
        good_crt, good_key = world.plane.certificates.signed("admission", "/CN=admission",
                                                             "IP:127.0.0.1")
        for old, good in ((crt, good_crt), (key, good_key)):
            fresh = old.with_name("fresh")
            fresh.write_bytes(good.read_bytes())
            fresh.rename(old)
        await_true("the new one is shown", hekla.webhooks_answer)
        expect_in("the log", hekla.processes["admission"].text(),
                  'msg="serving with a new certificate"')
        accepted()
        world.check()

    def expired_secret():
        """Found at the start."""
        hekla.processes["admission"].end()
        planted = plant(world)
        hekla.admission()
        expect_in("the log", hekla.processes["admission"].text(), 'msg="certificates stored"')
        expect("the Secret holds another one",
               world.must(SECRET)["data"]["tls.crt"] != planted, True)
        await_true("the webhooks answer", hekla.webhooks_answer)
        accepted()
        world.check()

    tap.step("the admission server is down: Volcano's kinds are refused, other pods are accepted, "
             "and jobs go on", down)
    tap.step("the admission server is back: Volcano's kinds are accepted, blocked work continues",
             up)
    tap.step("its certificate has expired: requests are refused with the reason, until the "
             "files change",
             expired_files)
    tap.step("its Secret has expired at the start: it is renewed", expired_secret)
    world.planted = plant(world) # and while it runs: see renewals


def renewals(tap, world):
    """What webhooks has left in the Secret is found within a minute."""
    planted = world.planted or plant(world)

    def renewed():
        await_true("the Secret holds another one",
                   lambda: world.must(SECRET)["data"]["tls.crt"] != planted, 90)
        admission = world.hekla.processes["admission"]
        await_true("it is shown", lambda: "serving with a new certificate" in admission.text())
        await_true("the webhooks answer", world.hekla.webhooks_answer)
        world.check()

    tap.step("its Secret expires while it runs: it is renewed", renewed)


STORIES = (schedulers, nodes, clocks, tokens, webhooks)
LAST = (renewals,)
