#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damage to the files of a store, under a pod that goes on running.

Each start either serves everything that was acknowledged or refuses with one line. After a refusal
hekla check names what is damaged or missing, hekla check --salvage makes a store of the rest, and
the server goes on with revisions that nobody has seen before. Whatever happens, the pod's process
is left alone until its end is asked for.

    damage.py [--seed N] [--count N] [--seconds N]
"""

import argparse
import itertools
import json
import random
import re
import shutil
import sqlite3
import time

from harness import (DEADLINE_S, HEKLA, MAPS, OURS, Server, Tap, await_true, config_map, expect,
                     expect_in, scratch, subprocess)
from pods import Node, may_isolate, sh

FILES = ("store.db", "store.db-wal", "store.db-witness")
OBJECTS = 60
COUNT = 10


def hekla(*args):
    """A verb: exit status and what it said."""
    done = subprocess.run([HEKLA, *map(str, args)], check=False, capture_output=True, text=True,
                          timeout=DEADLINE_S)
    return done.returncode, done.stdout, done.stderr


class World:
    """hekla up with a running pod and objects, killed in the middle; its files can be put back."""

    def __init__(self):
        self.node = Node(options=() if may_isolate() else ("--no-isolation",))
        self.server, self.data = self.node.server, self.node.server.data
        self.kept = self.node.home / "kept"
        self.acked, self.end = {}, 0 # name to value and revision; the highest one

    def make(self):
        self.node.start()
        self.node.create("worker", sh("exec sleep 7654321"))
        self.node.await_state("worker", "running")
        for k in range(OBJECTS):
            self.write("POST", MAPS, f"o-{k}", "1" * (k * 37 % 2000))
        expect("exit status", self.server.stop(), 0)
        self.node.start()
        self.save("early")
        for k in range(0, OBJECTS, 3):
            self.write("PUT", f"{MAPS}/o-{k}", f"o-{k}", "2" * (k * 31 % 3000))
        for k in range(1, OBJECTS, 10):
            answer = self.server.api("DELETE", f"{MAPS}/o-{k}")
            expect("code of a deletion", answer.code, 200)
            self.acked[f"o-{k}"] = (None, 0)
        self.end = self.server.list_rv()
        self.process = self.workers()
        expect("processes of the pod", len(self.process), 1)
        self.server.kill()
        self.save("last")
        self.seen = self.record().read_text() # by the node

    def write(self, method, path, name, value):
        answer = self.server.api(method, path, config_map(name, value))
        expect(f"code of {method} {path} ({answer})", answer.code, 201 if method == "POST" else 200)
        self.acked[name] = (value, int(answer.json()["metadata"]["resourceVersion"]))

    def workers(self):
        return self.node.processes("HEKLA_POD_MARK", b"7654321")

    def save(self, name):
        (self.kept / name).mkdir(parents=True)
        for file in FILES:
            shutil.copy(self.data / file, self.kept / name / file)

    def put_back(self, name="last", *files):
        for file in files or FILES:
            shutil.copy(self.kept / name / file, self.data / file)
        self.record().write_text(self.seen)

    def record(self):
        return self.data / "node/run/.revision"

    # ---- outcomes ----

    def launch(self, *options):
        """True: it serves. False: it refused, with one line."""
        self.server.args = (*(() if may_isolate() else ("--no-isolation",)), *options)
        self.server.launch()
        try:
            self.server.await_ready()
        except AssertionError:
            await_true("the reason of a refusal", lambda: self.server.log)
            expect(f"lines of a refusal in {self.server.log}", len(self.server.log), 1)
            self.refusal = self.server.log[0]
            self.server.kill()
            self.check_process()
            return False
        return True

    def refuses(self, words):
        expect(f"a start that is refused with {words!r}", self.launch(), False)
        expect_in("refusal", self.refusal, words)
        expect_in("refusal", self.refusal, "hekla check")

    def objects(self):
        items = self.server.api("GET", OURS).json()["items"]
        return {i["metadata"]["name"]: (i["data"]["k"], int(i["metadata"]["resourceVersion"]))
                for i in items}

    def check_process(self):
        expect("process of the pod", self.workers(), self.process)

    def serves_all(self):
        found = self.objects()
        for name, (value, rv) in self.acked.items():
            expect(f"object {name}", found.get(name, (None, 0)), (value, rv))
        expect("newest revision is not older", self.server.list_rv() >= self.end, True)
        self.goes_on()

    def goes_on(self, watch=False):
        """Revisions are new ones, and the process is still there."""
        before = self.server.list_rv()
        answer = self.server.api("POST", MAPS, config_map(f"new-{before}"))
        expect(f"code of a new object ({answer})", answer.code, 201)
        rv = int(answer.json()["metadata"]["resourceVersion"])
        expect(f"revision {rv} beyond {self.end}", rv > self.end, True)
        if watch: # from a revision that is only a memory
            answer = self.server.api("GET", f"{MAPS}?watch=1&resourceVersion={self.end}")
            expect(f"code of an old watch ({answer})", answer.code, 410)
        await_true("the node to have looked", self.node.ready)
        self.check_process()

    def salvages(self, *options):
        """After a refusal: what is not named is there."""
        code, out, _ = hekla("check", "--data-dir", self.data)
        expect(f"exit status of a check that said {out!r}", code, 2)
        code, out, error = hekla("check", "--data-dir", self.data, "--salvage", *options)
        expect(f"exit status of a salvage ({out} {error})", code, 0)
        expect("a start after the salvage", self.launch(), True)
        self.check_salvaged(out)
        self.goes_on(watch=True)
        self.server.kill()
        code, out, _ = hekla("check", "--data-dir", self.data)
        expect(f"exit status of a check afterwards ({out})", code, 0)

    def check_salvaged(self, out):
        named = set(re.findall(r"^damaged: revision \d+ of configmaps default/(\S+),", out, re.M))
        gaps = [(int(a), int(b)) for a, b in re.findall(r"revisions (\d+) to (\d+)", out)]
        gaps += [(int(a), int(a)) for a in re.findall(r"^damaged: revision (\d+) of .*may be", out, re.M)]
        gaps += [(int(a), self.end)
                 for a in re.findall(r"unreadable: rows after revision (\d+)", out)]
        found = self.objects()
        for name, (value, rv) in self.acked.items():
            lost = name in named or any(a <= rv <= b for a, b in gaps)
            if not lost and not (value is None and gaps):
                expect(f"object {name} after {out!r}", found.get(name, (None, 0)), (value, rv))


# ---- damage ----

def flip(path, rand, at=None):
    data = bytearray(path.read_bytes())
    at = rand.randrange(len(data)) if at is None else at
    data[at] ^= 1 << rand.randrange(8)
    path.write_bytes(data)
    return f"a bit in byte {at} of {len(data)} of {path.name}"


def scramble(path, rand):
    data = bytearray(path.read_bytes())
    at = rand.randrange(len(data) // 512) * 512
    data[at:at + 512] = rand.randbytes(512)
    path.write_bytes(data)
    return f"the sector at {at} of {len(data)} of {path.name}"


def cut(path, rand):
    size = rand.randrange(path.stat().st_size)
    with open(path, "r+b") as file:
        file.truncate(size)
    return f"{path.name} cut to {size}"


def some_damage(world, seed):
    rand = random.Random(seed)
    kind, name = rand.choice((flip, flip, flip, scramble, cut)), rand.choice(FILES[:2])
    return kind(world.data / name, rand)


def frames(wal):
    """Where the frames of this round of the WAL begin."""
    data, size = wal.read_bytes(), 24 + 16384
    starts = itertools.takewhile(lambda at: data[at + 8:at + 16] == data[16:24],
                                 range(32, len(data) - size + 1, size))
    return list(starts)


def random_damage(world, seed):
    """Served whole or refused; then salvaged, if anything can be."""
    world.put_back()
    what = some_damage(world, seed)
    try:
        if world.launch():
            world.serves_all()
        else:
            world.put_back() # a refusal changes nothing, but this must not depend on it
            some_damage(world, seed)
            world.salvages()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {what}: {error}") from None
    finally:
        world.server.kill()


# ---- cases ----

def middle_of_the_wal(world):
    """SQLite takes the bad frame for the end of the WAL."""
    world.put_back()
    wal = world.data / "store.db-wal"
    starts = frames(wal)
    flip(wal, random.Random(1), starts[len(starts) // 2] + 9000)
    world.refuses("missing: it ends at")
    expect_in("refusal", world.refusal, "its WAL is damaged at frame")
    world.salvages()


def refusals_change_nothing(world):
    world.put_back()
    flip(world.data / "store.db-wal", random.Random(1), frames(world.data / "store.db-wal")[2] + 99)
    before = [(world.data / file).read_bytes() for file in FILES]
    for _ in range(2):
        world.refuses("missing")
        hekla("check", "--data-dir", world.data)
    after = [(world.data / file).read_bytes() for file in FILES]
    expect("files are as before", [a == b for a, b in zip(before, after)], [True] * len(FILES))


def wal_removed(world):
    world.put_back()
    (world.data / "store.db-wal").unlink()
    world.refuses("missing: it ends at")
    world.salvages()


def wal_cut(world):
    world.put_back()
    with open(world.data / "store.db-wal", "r+b") as file:
        file.truncate(frames(world.data / "store.db-wal")[-1] - 5)
    world.refuses("was acknowledged")
    world.salvages()


def older_copy(world):
    """store.db brought back with cp from an hour ago."""
    world.put_back("last", "store.db-witness")
    world.put_back("early", "store.db", "store.db-wal")
    world.refuses("missing: it ends at")


def copy_from_elsewhere(world):
    other = Server(scratch() / "data").start()
    other.stop()
    world.put_back()
    (world.data / "store.db-wal").unlink()
    shutil.copy(other.data / "store.db", world.data / "store.db")
    world.refuses("does not match its witness")


def database_missing(world):
    world.put_back()
    for file in FILES[:2]:
        (world.data / file).unlink()
    world.refuses("missing or empty, but revision")
    expect("a database was made", (world.data / "store.db").exists(), False)
    (world.data / "store.db").touch()
    world.refuses("missing or empty, but revision")
    (world.data / "store.db-witness").unlink()
    world.refuses("missing or empty, but the directory has been used")
    code, _, error = hekla("check", "--data-dir", world.data, "--salvage")
    expect("exit status of a salvage of nothing", code, 1)
    expect_in("what it says", error, "nothing can be read")


def witness_missing(world):
    world.put_back()
    (world.data / "store.db-witness").unlink()
    world.refuses("its witness is missing")
    (world.data / "store.db-witness").write_bytes(b"x" * 5000)
    world.refuses("its witness is damaged")
    world.salvages()


def witness_torn(world):
    """A write of the witness that was cut short, and one that never reached the disk."""
    for slot in (0, 4096):
        world.put_back()
        rand = random.Random(slot)
        flip(world.data / "store.db-witness", rand, slot + rand.randrange(72))
        expect("a start with one good slot", world.launch(), True)
        world.serves_all()
        world.server.kill()
    world.put_back()
    world.put_back("early", "store.db-witness")
    expect("a start with an older witness", world.launch(), True)
    world.serves_all()
    world.server.kill()


def row_damaged(world):
    """The last state of an object, and one that was replaced."""
    world.put_back()
    expect("a start", world.launch(), True)
    expect("exit status", world.server.stop(), 0)
    for name, last in (("o-3", True), ("o-5", True), ("o-6", False)):
        with sqlite3.connect(world.data / "store.db") as db:
            order = "DESC" if last else "ASC"
            db.execute("UPDATE log SET text = replace(text, 'made-by', 'made-bx') WHERE rev = ("
                       f"SELECT rev FROM log WHERE name = ? ORDER BY rev {order} LIMIT 1)", (name,))
        db.close()
    world.refuses("of configmaps default/o-5 is damaged")
    code, out, _ = hekla("check", "--data-dir", world.data)
    expect("exit status of a check", code, 2)
    for words in ("configmaps default/o-3, its last; the object is lost",
                  "configmaps default/o-5, its last; the object is lost",
                  "configmaps default/o-6; a later one has replaced it"):
        expect_in("what the check says", out, words)
    code, out, _ = hekla("check", "--data-dir", world.data, "--salvage", "--older")
    expect("exit status of a salvage", code, 0)
    expect_in("what the salvage says", out, "is kept in its place")
    expect("a start after the salvage", world.launch(), True)
    found = world.objects()
    expect("o-3 is as it was before", found["o-3"][0], "1" * (3 * 37))
    expect("o-5 is lost", "o-5" in found, False)
    expect("o-6 is whole", found["o-6"], world.acked["o-6"])
    world.goes_on(watch=True)
    world.server.kill()


def old_row_damaged(world):
    """One that was replaced costs nothing."""
    world.put_back()
    expect("a start", world.launch(), True)
    expect("exit status", world.server.stop(), 0)
    with sqlite3.connect(world.data / "store.db") as db:
        db.execute("UPDATE log SET text = replace(text, 'made-by', 'made-bx') WHERE rev = ("
                   "SELECT min(rev) FROM log WHERE name = 'o-6')")
    db.close()
    expect("a start", world.launch(), True)
    world.server.await_log('msg="removing a damaged revision that a later one has replaced"')
    world.server.await_log('object="configmaps default/o-6"')
    world.serves_all()
    world.server.kill()
    expect("the next start", world.launch(), True)
    world.serves_all()
    expect("log lines about it", world.server.logged("removing a damaged"), False)
    world.server.kill()


def directory_of_before(world):
    """From a version without witnesses: starts, and has one then."""
    world.put_back()
    expect("a start", world.launch(), True)
    expect("exit status", world.server.stop(), 0)
    with sqlite3.connect(world.data / "store.db") as db:
        db.execute("DELETE FROM marks WHERE name NOT IN ('compacted', 'revision')")
        db.execute("PRAGMA user_version = 1")
    db.close()
    (world.data / "store.db-witness").unlink()
    expect("a start", world.launch(), True)
    world.serves_all()
    world.server.kill()
    (world.data / "store.db-wal").unlink()
    world.refuses("missing: it ends at")


def loss_accepted(world):
    """The store goes back to before the pod; the pod goes on until its end is asked for."""
    world.put_back()
    for file in FILES:
        (world.data / file).unlink()
    world.refuses("missing or empty")
    expect("a start that is told to", world.launch("--accept-data-loss"), True)
    expect("objects", world.objects(), {})
    world.server.await_log('msg="pods are kept"')
    for _ in range(2): # also when it is started as usual
        world.check_process()
        code, out, _ = hekla("status", "--data-dir", world.data, "-o", "json")
        expect(f"unknown pods in {out}", (code, len(json.loads(out)["unknownPods"])), (0, 1))
        expect_in("status", hekla("status", "--data-dir", world.data)[1], "1 pod runs here that")
        world.server.kill()
        expect("the next start", world.launch(), True)
        world.server.await_log('msg="pods are kept"')
    world.server.kill()
    expect("a start that ends it", world.launch("--end-unknown-pods"), True)
    await_true("the pod's process to be gone", lambda: not world.workers())
    code, out, _ = hekla("status", "--data-dir", world.data, "-o", "json")
    expect_in("status", out, '"running": true')
    expect("unknown pods are told of", "unknownPods" in out, False)
    world.server.kill()


CASES = (
    ("a flipped bit in the middle of the WAL is refused, then salvaged", middle_of_the_wal),
    ("a refused directory stays as it is", refusals_change_nothing),
    ("a WAL that was removed is missed", wal_removed),
    ("a WAL that was cut is missed", wal_cut),
    ("an older copy of the database is refused", older_copy),
    ("another directory's database is refused", copy_from_elsewhere),
    ("a missing or empty database is refused", database_missing),
    ("a missing or damaged witness is refused", witness_missing),
    ("a torn or late witness does no harm", witness_torn),
    ("a damaged object is named, and the rest salvaged", row_damaged),
    ("a damaged revision that was replaced costs nothing", old_row_damaged),
    ("a directory of the version before gets a witness", directory_of_before),
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seconds", type=int, default=0)
    options = parser.parse_args()

    tap, world = Tap(), World()
    tap.step("a server with a pod and objects is killed", world.make)
    for name, case in CASES:
        tap.step(name, case, world)
        world.server.kill()
    end = time.monotonic() + options.seconds
    for k in itertools.count():
        if k >= options.count and time.monotonic() > end:
            break
        tap.step(f"damage of seed {options.seed + k}: served whole, or refused and salvaged",
                 random_damage, world, options.seed + k)
    tap.step("after an accepted loss pods continue until they are ended", loss_accepted, world)
    tap.done()


if __name__ == "__main__":
    main()
