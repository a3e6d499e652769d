#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that comes to the end of its memory: limited by ulimit -v, by a control group, or by its
own option.

A tenant fills the store until writes are refused. The server lives, says so once, and goes on with
reads, deletions and everything that takes no more memory; when objects are deleted there is room
again. What was acknowledged is there after a restart, under the same limit.
"""

import os
import subprocess
import threading

from harness import (DEADLINE_S, HEKLA, MAPS, OURS, Path, Server, Tap, await_true, config_map, expect,
                     expect_in, json, scratch)

MIB = 1 << 20
SHORT = 'msg="memory is short, refusing to create or enlarge objects"'
ENOUGH = 'msg="there is enough memory again, accepting all writes"'
NAMESPACES = "/api/v1/namespaces"
TENANT = NAMESPACES + "/tenant"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
TENANTS = TENANT + "/configmaps"
GROUPS = Path("/sys/fs/cgroup")
METRIC = "hekla_memory_short"
WRITERS = 16


def is_sanitized():
    """Address space cannot be limited where sanitizers keep their books."""
    return subprocess.run(["prlimit", f"--as={400 * MIB}", HEKLA, "help"], check=False,
                          capture_output=True).returncode != 0


class Group:
    """A control group with a limit, of whichever version the machine has; made by its owner."""

    def __init__(self, limit):
        self.path = self.why = None
        for base, name in ((GROUPS / "memory", "memory.limit_in_bytes"), (GROUPS, "memory.max")):
            path = base / f"hekla-memory-{os.getpid()}"
            try:
                path.mkdir()
                self.path = path
                (path / name).write_text(str(limit))
                return
            except OSError as error:
                self.why = f"no control group: {error}"
                self.remove()

    def prefix(self):
        return ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh"]

    def remove(self):
        if self.path:
            self.path.rmdir()
            self.path = None


class Suite:
    """The same story for every kind of limit."""

    def __init__(self, server, size):
        self.server, self.size, self.kept, self.serial = server, size, {}, 0
        self.lock = threading.Lock()

    def starts(self):
        self.server.start()
        expect("code of the namespace", self.server.api("POST", NAMESPACES, {
            "metadata": {"name": "tenant"}}).code, 201)
        expect("code of the lease", self.server.api("POST", LEASES, {
            "metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime":
                                                "2026-01-01T00:00:00.000000Z"}}).code, 201)
        expect("readiness", self.server.api("GET", "/readyz").code, 200)
        self.metric_is("0")

    def metric_is(self, value):
        text = self.server.api("GET", "/metrics").body.decode()
        expect(METRIC, [line.split()[1] for line in text.splitlines() if line.startswith(METRIC)],
               [value])

    def write(self, client):
        with self.lock:
            self.serial += 1
            name = f"o-{self.serial:06}"
        answer = client.request("POST", TENANTS, config_map(name, name[-1] * self.size))
        if answer.code == 201:
            self.kept[name] = name[-1]
        return answer

    def fill(self):
        """Until it is refused, from many connections, so that writes share commits; an answer that
        refuses, and how many objects were accepted before."""
        answers, before = [], len(self.kept)

        def fill_one():
            with self.server.client() as client:
                while (answer := self.write(client)).code == 201 and not answers:
                    pass
                answers.append(answer)

        threads = [threading.Thread(target=fill_one) for _ in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refusals = [answer for answer in answers if answer.code != 201]
        expect(f"alive, and each of {WRITERS} writers answered, {self.server.log[-3:]}",
               (self.server.alive(), len(answers)), (True, WRITERS))
        return refusals[0], len(self.kept) - before

    def refuses(self):
        answer, self.first = self.fill()
        status = answer.json()
        expect(f"kind, code and reason of {status}",
               (status["kind"], status["code"], status["reason"]),
               ("Status", 507, "InsufficientStorage"))
        expect_in("message", status["message"], "the server is short of memory: ")
        expect_in("message", status["message"], "until objects are deleted or the limit is raised")
        self.server.await_log(SHORT)
        for _ in range(5):
            with self.server.client() as client:
                expect("code of a further creation", self.write(client).code, 507)
        expect("log lines about it", sum(SHORT in line for line in self.server.log), 1)
        expect("alive", self.server.alive(), True)

    def goes_on(self):
        """All that needs no more memory."""
        server, name = self.server, next(iter(self.kept))
        expect("code of a read", server.api("GET", f"{TENANTS}/{name}").code, 200)
        self.check_all()
        lease = server.api("GET", LEASES + "/l").json()
        lease["spec"]["renewTime"] = "2026-01-01T00:00:10.000000Z"
        expect("code of a renewal", server.api("PUT", LEASES + "/l", lease).code, 200)
        same = config_map(name, "z" * self.size)
        expect("code of an update of the same size",
               server.api("PUT", f"{TENANTS}/{name}", same).code, 200)
        self.kept[name] = "z"
        larger = config_map(name, "z" * (self.size + 100))
        expect("code of one that is larger", server.api("PUT", f"{TENANTS}/{name}", larger).code,
               507)
        patch = json.dumps({"metadata": {"annotations": {"a": "x" * 1000}}})
        answer = server.api("PATCH", f"{TENANTS}/{name}", patch,
                            content_type="application/merge-patch+json")
        expect("code of a patch that enlarges", answer.code, 507)
        ready = server.api("GET", "/readyz")
        expect("readiness", ready.code, 500)
        expect("liveness", server.api("GET", "/livez").code, 200)
        self.metric_is("1")
        self.status_is(4, "refused: the server is short of memory: ")

    def status_is(self, code, text):
        done = subprocess.run([HEKLA, "status", "--data-dir", str(self.server.data)],
                              capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        expect(f"exit status of hekla status, {done.stdout} {done.stderr}", done.returncode, code)
        expect_in("what it says", done.stdout, text)

    def check_all(self):
        """Everything that was acknowledged, page by page."""
        found, more, limit = set(), "", max(2, 3000000 // self.size)
        while True:
            answer = self.server.api("GET", f"{TENANTS}?limit={limit}{more}")
            expect(f"code of {answer}", answer.code, 200)
            page = answer.json()
            for item in page["items"]:
                name = item["metadata"]["name"]
                if name in self.kept and item["data"]["k"] != self.kept[name] * self.size:
                    raise AssertionError(f"{name} is not what was written")
                if name.startswith("o-"):
                    found.add(name)
            token = page["metadata"].get("continue")
            if not token:
                break
            more = "&continue=" + token
        expect("objects that are missing", sorted(self.kept.keys() - found), [])
        expect("objects that were refused", sorted(found - self.kept.keys()), [])

    def survives(self):
        """A crash, and a start under the same limit; it is as full as before."""
        self.server.kill()
        self.server.start()
        self.check_all()
        self.fill() # a start uses memory better: there may be room for some more

    def recovers(self):
        names = sorted(self.kept)
        with self.server.client() as client:
            for name in names[:len(names) // 8]:
                expect("code of a deletion", client.request("DELETE", f"{TENANTS}/{name}").code,
                       200)
                del self.kept[name]
        answer = self.server.api("DELETE", OURS.replace("/default/", "/tenant/"))
        expect(f"code of deletecollection {answer}", answer.code, 200)
        self.kept = {}
        self.server.await_log(ENOUGH)
        with self.server.client() as client:
            expect("code of a creation", self.write(client).code, 201)
        expect("readiness", self.server.api("GET", "/readyz").code, 200)
        self.check_all()

    def again(self):
        """There is as much room as there was, not a little."""
        _, count = self.fill()
        if count < self.first / 2:
            raise AssertionError(f"{self.first} objects fit the first time, then {count}")
        self.check_all()
        expect("exit status", self.server.stop(), 0)

    def run(self, tap, name):
        tap.step(f"{name}: the server works before", self.starts)
        tap.step(f"{name}: creations are refused, and the log says so once", self.refuses)
        tap.step(f"{name}: reads, leases and writes that need no memory work", self.goes_on)
        tap.step(f"{name}: acknowledged writes survive a crash", self.survives)
        tap.step(f"{name}: after deletions creations are accepted again", self.recovers)
        tap.step(f"{name}: as many objects fit as before", self.again)
        self.server.kill()


def main():
    tap = Tap()
    if is_sanitized():
        tap.skip("memory", "sanitizers keep what was freed")
        tap.done()
    prefix = ["prlimit", f"--as={160 * MIB}"]
    Suite(Server(scratch() / "data", prefix=prefix), 200000).run(tap, "ulimit -v")
    group = Group(128 * MIB)
    if group.path:
        Suite(Server(scratch() / "data", prefix=group.prefix()), 200000).run(tap, "control group")
        group.remove()
    else:
        tap.skip("control group", group.why)
    # Smaller objects, which leave holes in the heap and not whole pages.
    Suite(Server(scratch() / "data", "--memory-limit", "64Mi"), 20000).run(tap, "--memory-limit")
    tap.done()


if __name__ == "__main__":
    main()
