# SPDX-License-Identifier: Apache-2.0
"""Between our programs and the API server: requests that fail, answers that do not come, watches
that end or fall silent, a server that goes away."""

import os
import random
import time
from signal import SIGCONT, SIGKILL, SIGSTOP

import proxy as faults
from faults_world import CORES, Calm, await_true, expect, expect_in

SCHEDULER_AGENT = "volcano/"


# ---- every request ----


def shape(x):
    """What is asked of which kind: ("POST", "pods/binding")."""
    path = x.path.split("?")[0].split("/")
    path = path[path.index("v1") + 1:] if path[1] == "api" else path[4:]
    if path[0] == "namespaces" and len(path) > 2:
        path = path[2:]
    return x.method, "/".join(path[0:1] + path[2:3])


class Everywhere:
    """The first requests of every kind, by every program, meet the fault."""

    def __init__(self, fault, times=2):
        self.fault, self.times, self.hit = fault, times, {}

    def __call__(self, x):
        key = (x.agent, *shape(x))
        self.hit[key] = self.hit.get(key, 0) + 1
        if self.hit[key] <= self.times:
            self.fault(x)
        else:
            x.carry()

    def count(self, agent, method, what):
        """How many of these there were."""
        return sum(n for key, n in self.hit.items()
                   if key[0].startswith(agent) and key[1:] == (method, what))

    def kinds(self):
        return {key[1:] for key in self.hit}




def writes(tap, world):
    """Every kind of write, from the making of a pod to its bind and the job's last status."""
    faults_of_writes = (
        ("is reset before it was heard", faults.reset, "may have taken effect: "),
        ("was carried out, and its answer is lost", faults.lost_answer, "may have taken effect: "),
        ("was carried out, and its answer breaks off", faults.cut_answer,
         "may have taken effect: "),
        ("was carried out, and its answer is not whole", faults.truncated,
         "cannot read the answer to create of pods: "),
        ("is put off for a second (429)", faults.answer(429, 1), None),
        ("is put off (429)", faults.answer(429), None),
        ("meets a conflict (409)", faults.answer(409), "injected 409"),
        ("fails (500)", faults.answer(500), "injected 500"),
        ("fails (500) though it was carried out", faults.answer(500, carried_out=True),
         "injected 500"),
        ("times out (504) though it was carried out", faults.answer(504, carried_out=True),
         "injected 504"),
        ("finds the server unavailable (503)", faults.answer(503), "injected 503"),
        ("finds the server unavailable for a second (503)", faults.answer(503, 1), None),
    )
    wanted = {("POST", "pods"), ("POST", "pods/binding"), ("POST", "podgroups"),
              ("PUT", "jobs/status"), ("PUT", "leases")}

    def suffers(name, fault, words):
        """Requests that are put off are sent again without a word."""
        scheduler = world.hekla.processes["scheduler"]
        everywhere, since = Everywhere(fault, 2 if words else 1), scheduler.mark()
        with Calm(world, requests_s=60):
            with world.proxy.rule(lambda x: x.carry() if x.method == "GET" else everywhere(x)):
                world.submit(name)
                world.await_phase(name)
            expect("kinds of writes that were hit", wanted - everywhere.kinds(), set())
        if words:
            expect("the log tells of a bind that failed", True, any(
                'msg="bind failed"' in line and words in line
                for line in scheduler.text(since).splitlines()))
        world.made_once(name, CORES)
        world.check()

    for k, (what, fault, words) in enumerate(faults_of_writes):
        tap.step(f"every write {what}: the job completes", suffers, f"writes-{k}", fault, words)

    def outage(name, wants):
        """Nothing of it works for seconds."""
        with Calm(world, requests_s=25):
            fails = faults.answer(500)
            with world.proxy.rule(lambda x: fails(x) if wants(x) else x.carry()) as rule:
                world.submit(name)
                world.proxy.cut()
                time.sleep(6)
            expect("some were refused", rule.seen > 10, True)
        world.await_phase(name)
        world.made_once(name, CORES)
        world.check()

    tap.step("all writes fail for seconds: few are tried, and the job completes", outage,
             "no-writes", lambda x: x.method != "GET" and "/leases/" not in x.path)
    tap.step("all reads fail for seconds: few are tried, and the job completes", outage,
             "no-reads", lambda x: x.method == "GET" and "/leases/" not in x.path)


def reads(tap, world):
    """Lists and single objects."""
    faults_of_reads = (
        ("is reset", faults.reset, None),
        ("breaks off", faults.cut_answer, None),
        ("is not whole", faults.truncated,
         'msg="list failed" kind=pods err="cannot read the answer'),
        ("is put off (429)", faults.answer(429, 1), None),
        ("fails (500)", faults.answer(500), 'msg="list failed" kind=pods err="injected 500"'),
        ("is unavailable (503)", faults.answer(503), None),
        ("comes slowly", faults.slow(2), None),
    )

    def suffers(name, fault, says):
        """New lists are asked for when watches are too old."""
        scheduler = world.hekla.processes["scheduler"]
        everywhere, since = Everywhere(fault), scheduler.mark()
        with Calm(world, requests_s=60):
            with world.proxy.rule(
                    lambda x: everywhere(x) if x.method == "GET" and not x.is_watch() else
                    x.carry()):
                world.proxy.expire()
                world.submit(name)
                world.await_phase(name)
            expect("pods were listed again", ("GET", "pods") in everywhere.kinds(), True)
        if says:
            expect_in("the scheduler's log", scheduler.text(since), says)
        world.made_once(name, CORES)
        world.check()

    for k, (what, fault, says) in enumerate(faults_of_reads):
        tap.step(f"every list {what}: the job completes", suffers, f"reads-{k}", fault, says)

    def pages(name):
        """Small pages; the second one of every list comes too late, twice."""
        def small(x):
            x.text = x.text.replace(b"limit=2000", b"limit=3")
            x.carry()

        late = Everywhere(faults.answer(410))
        world.submit(name, runs="forever")
        world.await_phase(name, "Running")
        with Calm(world, requests_s=80):
            with world.proxy.rule(small, path="limit=2000"), \
                    world.proxy.rule(late, path="continue=") as hit:
                world.proxy.expire()
                await_true("pages were asked for and came too late",
                           lambda: late.count(SCHEDULER_AGENT, "GET", "pods") > 2)
                world.submit(name + "-next")
                world.await_phase(name + "-next")
            expect("some pages were hit", hit.seen > 2, True)
        world.made_once(name, CORES)
        expect("phase of the job that runs", world.phase(name), "Running")
        world.delete(name)
        world.check()

    tap.step("a page of a list has expired (410): the list starts again, no object counts as "
             "deleted", pages,
             "pages")


# ---- watches ----


def watches(tap, world):
    def under_way(name, fault, runs="2s"):
        """Something happens to watches while jobs come and go."""
        with Calm(world, requests_s=100):
            for k in range(3):
                world.submit(f"{name}-{k}", replicas=2, runs=runs)
                fault()
            for k in range(3):
                world.await_phase(f"{name}-{k}")
        for k in range(3):
            world.made_once(f"{name}-{k}", 2)
        world.check()

    def refused(code):
        with world.proxy.rule(faults.answer(code), path="watch", times=40) as rule:
            world.proxy.cut()
            await_true(f"watches were refused with {code}", lambda: rule.seen >= 20)

    broken = b'{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"na'
    tap.step("watches end with ERROR 410: jobs complete", under_way, "error-410",
             world.proxy.expire)
    tap.step("watches are refused with 410: jobs complete", under_way, "http-410",
             lambda: refused(410))
    tap.step("watches are refused with 500: jobs complete", under_way, "http-500",
             lambda: refused(500))
    tap.step("watches are refused with 429: jobs complete", under_way, "http-429",
             lambda: refused(429))
    tap.step("all connections are reset: jobs complete", under_way, "cut", world.proxy.cut)
    tap.step("watches end in the middle of an event: jobs complete", under_way, "half",
             lambda: world.proxy.speak(broken))
    tap.step("watches send invalid data: jobs complete", under_way, "garbage",
             lambda: world.proxy.speak(b"no JSON at all\n"))

    def turned_away():
        """Connections are reset before TLS for a while."""
        world.proxy.refuses = True
        world.proxy.cut()
        time.sleep(1)
        world.proxy.refuses = False

    tap.step("connections are refused for a while: jobs complete", under_way, "refused",
             turned_away)


def stalls(tap, world):
    """Streams that are open and silent, as behind a router that forgot them."""
    hekla = world.hekla
    hekla.restart("--watch-stall=3s")

    def muted():
        world.submit("muted-0", runs="2s")
        world.await_bound("muted-0", CORES)
        for stream in world.proxy.some_streams():
            stream.mute = True
        world.submit("muted-1", runs="1s")
        for name in ("muted-0", "muted-1"):
            world.await_phase(name)
            world.made_once(name, CORES)
        expect_in("the scheduler's log", hekla.processes["scheduler"].text(),
                  'msg="no data from a watch, starting it again" kind=pods')
        world.check()

    tap.step("watches fall silent: they are started again, and jobs complete", muted)

    def silent_from_the_start():
        with world.proxy.rule(faults.silent, path="watch", times=30):
            world.proxy.cut()
            world.submit("silent")
            world.await_phase("silent")
        world.made_once("silent", CORES)
        world.check()

    tap.step("watches are silent from the start: they are started again, and jobs complete",
             silent_from_the_start)
    hekla.restart()


# ---- the server ----


def server(tap, world):
    def burst(name, count=3):
        for k in range(count):
            world.submit(f"{name}-{k}", replicas=3, runs="1s")

    def completes(name, count=3):
        for k in range(count):
            world.await_phase(f"{name}-{k}")
            world.made_once(f"{name}-{k}", 3)
        world.check()

    def killed():
        burst("killed")
        world.plane.api.end(SIGKILL)
        with Calm(world, requests_s=40):
            world.plane.start_api()
        completes("killed")

    def away():
        """For longer than a leader may go on without renewing."""
        burst("away")
        world.plane.api.end(SIGKILL)
        with Calm(world, requests_s=40):
            for name in ("scheduler", "controllers"):
                await_true(f"{name} gave up its office",
                           lambda n=name: world.hekla.processes[n].exits, 60)
        world.plane.start_api()
        completes("away")
        for name in ("scheduler", "controllers"):
            expect_in("last words", world.hekla.processes[name].exits[-1][1], "lost the lease")

    def slow_disk():
        """etcd does not answer for seconds."""
        burst("disk")
        world.plane.etcd.process.send_signal(SIGSTOP)
        try:
            with Calm(world, requests_s=60):
                time.sleep(4)
        finally:
            world.plane.etcd.process.send_signal(SIGCONT)
        completes("disk")

    def slow_answers():
        with world.proxy.rule(lambda x: x.carry() if x.is_watch() else faults.slow(0.5)(x)):
            burst("slow")
            completes("slow")

    tap.step("the API server is killed and comes back: jobs complete", killed)
    tap.step("the API server is down for long: the leader exits and is started again", away)
    tap.step("etcd is stopped for seconds: jobs complete", slow_disk)
    tap.step("every answer is slow: jobs complete", slow_answers)


# ---- everything at once ----


class Storm:
    """Faults at random under load; programs, pods and connections that end at random."""

    REQUESTS = (faults.reset, faults.lost_answer, faults.cut_answer, faults.truncated,
                faults.answer(409), faults.answer(500), faults.answer(429), faults.answer(503),
                faults.answer(500, carried_out=True), faults.slow(0.3))
    STREAMS = (faults.reset, faults.answer(410), faults.answer(429), faults.answer(500))

    def __init__(self, world, seed):
        self.world, self.seed, self.chance = world, seed, random.Random(seed)
        self.jobs, self.struck = {}, set()

    def __call__(self, x):
        """One request in ten."""
        if self.chance.random() > 0.1:
            x.carry()
        else:
            self.chance.choice(self.STREAMS if x.is_watch() else self.REQUESTS)(x)

    def add_job(self):
        name, size = f"storm-{self.seed:x}-{len(self.jobs)}", self.chance.randrange(1, 7)
        self.jobs[name] = size
        self.world.submit(name, replicas=size, runs="1s",
                          policies=[{"event": "PodEvicted", "action": "RestartJob"}])

    def delete_pod(self):
        name = self.chance.choice(list(self.jobs))
        self.struck.add(name)
        self.world.request(f"/api/v1/namespaces/default/pods/{name}-w-0", "DELETE")

    def crash(self):
        self.world.hekla.processes[self.chance.choice(("scheduler", "controllers"))].crash()

    def pass_by(self):
        with self.world.proxy.rule(self):
            for _ in range(12):
                self.add_job()
                self.chance.choice((self.crash, self.delete_pod, self.world.proxy.cut,
                                    self.world.proxy.expire))()
                time.sleep(0.5)
            for name in self.jobs:
                self.world.await_phase(name)
        for name in set(self.jobs) - self.struck:
            self.world.made_once(name, self.jobs[name])
        self.world.check()


def storm(tap, world):
    """HEKLA_SEED repeats one, as far as it goes."""
    seed = int(os.environ.get("HEKLA_SEED", "0")) or random.randrange(1, 1 << 31)
    tap.step(f"a storm (seed {seed}): all jobs complete", Storm(world, seed).pass_by)


STORIES = (writes, reads, watches, stalls, server, storm)
