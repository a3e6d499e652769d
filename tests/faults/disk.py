#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Disks that fail under the real server, and directories that it must not use.

While the disk fails writes are refused, reads go on, and one log line says why; when it works again
so do writes, without a restart. Whatever was acknowledged is there in the end. Faults come from a
library under the server, and from a file system that is really full where we may mount one.
"""

import os
import subprocess
import threading

from harness import (DEADLINE_S, HEKLA, MAPS, OURS, Path, Server, SmallDisk, Tap, await_true,
                     config_map, expect, expect_in, scratch)

LIBRARY = Path(HEKLA).resolve().parent / "tests/faults/faulty_disk.so"
FAILING = 'msg="the disk fails, refusing writes until it recovers"'
RECOVERED = 'msg="the disk has recovered, accepting writes again"'
TOGGLES = 20


class FaultyDisk:
    """A server over a disk that fails when told to."""

    def __init__(self):
        home = scratch()
        self.control = home / "control"
        self.control.write_text("-")
        self.server = Server(home / "data", env={"LD_PRELOAD": str(LIBRARY),
                                                 "FAULTY_DISK": str(self.control)})

    def set(self, fault):
        with open(self.control, "r+b") as file:
            file.write(fault.encode())

    def fail_sync(self):
        self.set("s")

    def fail_write(self):
        self.set("w")

    def work(self):
        self.set("-")


class Suite:
    """The same story for every way in which a disk can fail."""

    def __init__(self, disk, fail, words):
        self.disk, self.server, self.fail, self.words = disk, disk.server, fail, words
        self.kept, self.refused, self.serial = {}, set(), 0

    def write(self):
        """One object; the code of the answer."""
        self.serial += 1
        name, value = f"o-{self.serial}", "x" * 20000
        answer = self.server.api("POST", MAPS, config_map(name, value))
        if answer.code == 201:
            self.kept[name] = value
        else:
            self.refused.add(name)
            self.check_refusal(answer)
        return answer.code

    def check_refusal(self, answer):
        status = answer.json()
        expect(f"kind, code and reason of {status}",
               (status["kind"], status["code"], status["reason"]), ("Status", 500, "InternalError"))
        expect_in("message", status["message"], self.words)

    def check_objects(self, strictly=True):
        """What was told is there, what was refused is not."""
        items = self.server.api("GET", OURS).json()["items"]
        found = {item["metadata"]["name"]: item["data"]["k"] for item in items}
        for name, value in self.kept.items():
            expect(f"value of {name}", found.get(name), value)
        if strictly:
            expect("objects that were refused", self.refused & found.keys(), set())

    def starts(self):
        self.server.start()
        for _ in range(3):
            expect("code of a write", self.write(), 201)
        expect("readiness", self.server.api("GET", "/readyz").code, 200)

    def refuses_writes(self):
        self.fail()
        await_true("a write that is refused", lambda: self.write() == 500)
        self.server.await_log(FAILING)
        expect("code of the next write", self.write(), 500)
        expect("code of an update",
               self.server.api("PUT", f"{MAPS}/o-1", config_map("o-1", "new")).code, 500)
        expect("code of a deletion", self.server.api("DELETE", f"{MAPS}/o-1").code, 500)
        lines = [line for line in self.server.log if FAILING in line]
        expect("log lines about it", len(lines), 1)
        expect_in("the log line", lines[0], self.words)

    def status_is(self, code, *texts):
        """What hekla status says, of a directory that is the same for us."""
        if self.server.seen == self.server.data:
            done = subprocess.run([str(HEKLA), "status", "--data-dir", str(self.server.data)],
                                  capture_output=True, text=True, timeout=DEADLINE_S, check=False)
            expect("exit status of hekla status", done.returncode, code)
            for text in texts:
                expect_in("what it says", done.stdout, text)

    def reads_go_on(self):
        self.check_objects()
        expect("code of a read", self.server.api("GET", f"{MAPS}/o-1").code, 200)
        ready = self.server.api("GET", "/readyz")
        expect("readiness", ready.code, 500)
        expect_in("readiness", ready.body.decode(), "[-]store failed")
        expect("liveness", self.server.api("GET", "/livez").code, 200)
        expect_in("metrics", self.server.api("GET", "/metrics").body.decode(),
                  "\nhekla_store_writable 0\n")
        self.status_is(4, "refused: ", self.words)

    def recovers(self):
        rv = self.server.list_rv()
        self.disk.work()
        await_true("a write that works", lambda: self.write() == 201)
        self.server.await_log(RECOVERED)
        expect("readiness", self.server.api("GET", "/readyz").code, 200)
        expect("newer revision", self.server.list_rv() > rv, True)
        self.status_is(0, "is running")
        self.check_objects()

    def survives(self):
        """A crash after the recovery, and one in the middle of the failure."""
        self.server.kill()
        self.server.start()
        self.check_objects()
        rv = self.server.list_rv()
        self.fail()
        await_true("a write that is refused", lambda: self.write() == 500)
        self.server.kill()
        self.disk.work()
        self.server.start()
        self.check_objects(strictly=False) # what was in doubt may have reached the disk
        expect("code of a write", self.write(), 201)
        expect("newer revision", self.server.list_rv() > rv, True)

    def run(self, tap, name):
        tap.step(f"{name}: the server works before", self.starts)
        tap.step(f"{name}: writes are refused, and the log says why", self.refuses_writes)
        tap.step(f"{name}: reads continue, and the server is not ready", self.reads_go_on)
        tap.step(f"{name}: writes work again when the disk works", self.recovers)
        tap.step(f"{name}: acknowledged writes survive crashes", self.survives)


def flickers(disk):
    """Under load, with faults that come and go: what was told is there, what was refused is not."""
    server, lock = disk.server, threading.Lock()
    kept, refused, stop, wrong = set(), set(), threading.Event(), []

    def write(number):
        with server.client() as client:
            serial = 0
            while not stop.is_set():
                serial += 1
                name = f"f-{number}-{serial}"
                code = client.request("POST", MAPS, config_map(name)).code
                with lock:
                    (kept if code == 201 else refused).add(name)
                    if code not in (201, 500, 507): # the last: full, and just working again
                        wrong.append((name, code))

    disk.work()
    writers = [threading.Thread(target=write, args=(n,), daemon=True) for n in range(8)]
    for writer in writers:
        writer.start()
    for k in range(TOGGLES):
        for fault, outcome in ((disk.fail_sync if k % 2 else disk.fail_write, refused),
                               (disk.work, kept)):
            before = len(outcome)
            fault()
            await_true("outcomes of this kind", lambda o=outcome, b=before: len(o) > b + 10)
    stop.set()
    for writer in writers:
        writer.join(DEADLINE_S)
    expect("answers of another kind", wrong, [])
    for life in ("the same", "the next"):
        items = server.api("GET", OURS).json()["items"]
        found = {i["metadata"]["name"] for i in items if i["metadata"]["name"].startswith("f-")}
        expect(f"objects in {life} life", found, kept)
        server.kill()
        server.start()


class Full:
    """A disk that is really full: what the ballast is for."""

    def __init__(self):
        self.disk = SmallDisk()
        self.server = self.disk.server

    def starts(self):
        self.server.start()
        for k in range(60):
            answer = self.server.api("POST", MAPS, config_map(f"o-{k}", "x" * 20000))
            expect(f"code of a write ({answer})", answer.code, 201)
        expect("ballast", (self.disk.seen / "data/store.db-ballast").stat().st_blocks >= 16384, True)

    def fills(self):
        """Writes go on out of the ballast, and then only deletions do."""
        self.disk.fill()
        self.refused = self.until_refused()
        status = self.refused.json()
        expect("refusal", (status["code"], status["reason"]), (507, "InsufficientStorage"))
        expect_in("message", status["message"], "only deletions are accepted")
        self.server.await_log('msg="the disk is full, accepting only deletions until there is room"')
        expect("readiness", self.server.api("GET", "/readyz").code, 500)
        metrics = self.server.api("GET", "/metrics").body.decode()
        expect_in("metrics", metrics, "\nhekla_store_full 1\n")
        expect_in("metrics", metrics, "\nhekla_store_writable 0\n")

    def until_refused(self):
        for k in range(1000):
            answer = self.server.api("POST", MAPS, config_map(f"more-{k}", "x" * 20000))
            if answer.code != 201:
                return answer
        raise AssertionError("no write was refused")

    def deletes(self):
        code = self.server.api("PUT", f"{MAPS}/o-1", config_map("o-1", "new")).code
        expect("code of an update", code, 507)
        for k in range(40):
            answer = self.server.api("DELETE", f"{MAPS}/o-{k}")
            expect(f"code of a deletion ({answer})", answer.code, 200)

    def restarts(self):
        """Killed on the full disk, it starts there, and goes on as it was."""
        self.server.kill()
        self.disk.fill()
        self.server.start()
        expect("code of a write",
               self.server.api("POST", MAPS, config_map("none")).code, 507)
        for k in range(40, 60):
            answer = self.server.api("DELETE", f"{MAPS}/o-{k}")
            expect(f"code of a deletion ({answer})", answer.code, 200)
        expect("code of a read", self.server.api("GET", f"{MAPS}/o-59").code, 404)

    def recovers(self):
        self.disk.work()
        expect("code of a deletion of the rest", self.server.api("DELETE", OURS).code, 200)
        await_true("a write that works", lambda: self.server.api(
            "POST", MAPS, config_map("again")).code in (201, 409))
        self.server.await_log(RECOVERED)
        expect("readiness", self.server.api("GET", "/readyz").code, 200)
        expect("ballast", (self.disk.seen / "data/store.db-ballast").stat().st_blocks > 4096, True)
        self.disk.end()

    def run(self, tap):
        tap.step("ballast: the server reserves disk space", self.starts)
        tap.step("ballast: on a full disk only deletions are accepted, and the log says so",
                 self.fills)
        tap.step("ballast: deletions succeed", self.deletes)
        tap.step("ballast: a start on the full disk succeeds", self.restarts)
        tap.step("ballast: writes work again when there is room", self.recovers)


def full_from_the_start():
    disk = SmallDisk()
    disk.fill()
    (disk.seen / "data").mkdir()
    disk.server.launch()
    expect("exit status", disk.server.process.wait(DEADLINE_S), 1)
    disk.server.await_log("disk is full")
    expect("lines on standard error", len(disk.server.log), 1)
    disk.end()


def second_is_refused():
    first = Server(scratch() / "data").start()
    second = Server(first.data).launch()
    expect("exit status of the second", second.process.wait(DEADLINE_S), 1)
    second.await_log("in use by another server")
    expect("lines on standard error", len(second.log), 1)
    expect("code of a write to the first",
           first.api("POST", MAPS, config_map("first")).code, 201)
    first.kill()
    third = Server(first.data).start()
    expect("code of a read from the next", third.api("GET", MAPS + "/first").code, 200)
    third.kill()


def rubbish_is_refused():
    server = Server(scratch() / "data").start()
    server.stop()
    (server.data / "store.db").write_bytes(os.urandom(100000))
    server.launch()
    expect("exit status", server.process.wait(DEADLINE_S), 1)
    server.await_log("file is not a database")
    expect("lines on standard error", len(server.log), 1)


def main():
    tap = Tap()
    disk = FaultyDisk()
    Suite(disk, disk.fail_sync, "cannot sync: disk I/O error").run(tap, "no sync")
    tap.step("temporary disk faults under load", flickers, disk)
    disk.server.kill()
    disk = FaultyDisk()
    Suite(disk, disk.fail_write, "disk is full").run(tap, "no space")
    disk.server.kill()

    small = SmallDisk()
    if small.mounted:
        small.server.args = ("--ballast", "0")
        Suite(small, small.fill, "disk is full").run(tap, "a full file system")
        small.end()
        Full().run(tap)
        tap.step("a start with a full disk", full_from_the_start)
    else:
        tap.skip("a full file system, with and without ballast", "may not mount one")
    tap.step("a second server on the same directory is refused", second_is_refused)
    tap.step("a file that is not a database is refused", rubbish_is_refused)
    tap.done()


if __name__ == "__main__":
    main()
