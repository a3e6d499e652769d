#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 under load, again and again: what was acknowledged stays, and watches go on.

    kill.py [--kills N | --seconds S] [--seed N]

Each round starts the server on the same directory, compares it with what writers were told, lets
watchers catch up from where they were, puts it under load and kills it at a random moment; now and
then while it is still starting. Every writer has objects of its own, so of each object at most one
write can be in doubt: the one on its way when the server died.
"""

import argparse
import random
import threading

from harness import MAPS, OURS, Server, Tap, await_true, config_map, expect, scratch, time

WRITERS, KEYS, WATCHERS = 6, 8, 2
LOAD_S = 0.045     # at most, before the kill
STARTING_S = 0.04  # the same for a server that is not ready
BLOCK = 35         # kills for each point
SENTINEL = "sentinel"


class Key:
    """An object as its writer knows it: (value, revision), or None when there is none."""

    def __init__(self, name):
        self.name = name
        self.known = None
        self.doubt = False # a write is under way, to
        self.maybe = None  # this value, None for a deletion


class Book:
    """What the server has said so far, over all its lives."""

    def __init__(self):
        self.lock = threading.Lock()
        self.told = {}   # revision: (name, value), of every acknowledged create and update
        self.highest = 0 # revision anybody has seen
        self.survivors = self.gone = 0

    def add(self, name, value, rv):
        with self.lock:
            if rv in self.told:
                raise AssertionError(f"revision {rv} of {name} was given to {self.told[rv]} before")
            self.told[rv] = (name, value)
            self.highest = max(self.highest, rv)

    def saw(self, rv):
        with self.lock:
            self.highest = max(self.highest, rv)


def value_of(item):
    return item["data"]["k"]


def rv_of(item):
    return int(item["metadata"]["resourceVersion"])


class Task(threading.Thread):
    """A client: ends when the connection breaks, and keeps what else went wrong."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.error = server, None
        self.start()

    def run(self):
        try:
            with self.server.client() as client:
                self.work(client)
        except OSError:
            pass # killed
        except Exception as error: # whatever it is, the main thread raises it
            self.error = error

    def finish(self):
        self.join()
        if self.error:
            raise self.error


class Writer(Task):
    def __init__(self, server, book, keys, seed):
        self.book, self.keys, self.random, self.serial = book, keys, random.Random(seed), 0
        super().__init__(server)

    def work(self, client):
        while True:
            self.write(client, self.random.choice(self.keys))

    def write(self, client, key):
        chance = self.random.random()
        if key.known and chance < 0.15:
            self.submit(client, key, None, "DELETE", f"{MAPS}/{key.name}", None)
            return
        self.serial += 1
        value = f"{id(self):x}.{self.serial}." + "x" * self.random.choice((10, 100, 1000, 8000))
        body = config_map(key.name, value)
        if not key.known:
            self.submit(client, key, value, "POST", MAPS, body)
        elif chance < 0.3:
            self.submit(client, key, value, "PATCH", f"{MAPS}/{key.name}", {"data": {"k": value}})
        else:
            self.submit(client, key, value, "PUT", f"{MAPS}/{key.name}", body)

    def submit(self, client, key, value, method, path, body):
        key.doubt, key.maybe = True, value
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = client.request(method, path, body, content_type=media)
        if answer.code not in (200, 201):
            raise AssertionError(f"{method} {path}: {answer}")
        if value is None:
            key.known = None
        else:
            item = answer.json()
            expect(f"value answered to {method} {path}", value_of(item), value)
            key.known = (value, rv_of(item))
            self.book.add(key.name, value, rv_of(item))
        key.doubt = False


class Watcher:
    """Follows all objects over all lives of the server, as an informer does."""

    def __init__(self, book):
        self.book, self.rv, self.state, self.seen, self.listed = book, None, {}, [], 0

    def relist(self, items, rv):
        self.state = {item["metadata"]["name"]: (value_of(item), rv_of(item)) for item in items}
        self.rv = self.listed = rv

    def apply(self, event):
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            expect("code of a watch that ends", item["code"], 410)
            self.rv = None
            return
        name, rv = item["metadata"]["name"], rv_of(item)
        if rv <= self.rv:
            raise AssertionError(f"event at revision {rv} after {self.rv}: {kind} {name}")
        if (kind == "ADDED") == (name in self.state):
            raise AssertionError(f"{kind} {name} at {rv} does not follow {self.state.get(name)}")
        if kind == "DELETED":
            del self.state[name]
        else:
            self.state[name] = (value_of(item), rv)
            self.seen.append((rv, name, value_of(item)))
        self.rv = rv
        self.book.saw(rv)


class Watch(Task):
    def __init__(self, server, watcher):
        self.watcher = watcher
        super().__init__(server)

    def work(self, client):
        path = f"{OURS}&watch=true&resourceVersion={self.watcher.rv}"
        for event in client.events(path):
            self.watcher.apply(event)


class Chaos:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.server = Server(scratch() / "data")
        self.book = Book()
        self.keys = [[Key(f"w{w}-{k}") for k in range(KEYS)] for w in range(WRITERS)]
        self.watchers = [Watcher(self.book) for _ in range(WATCHERS)]
        self.kills = 0

    # ---- one life ----

    def start(self):
        """Starts it for good, after killing it on the way up now and then."""
        while self.random.random() < 0.2:
            self.server.launch()
            time.sleep(self.random.random() * STARTING_S)
            self.server.kill()
            self.kills += 1
        self.server.start()

    def list_all(self, client):
        answer = client.request("GET", OURS)
        expect(f"code of {answer}", answer.code, 200)
        tree = answer.json()
        return tree["items"], rv_of(tree)

    def settle(self, key, found):
        """The state the server has is the one last told, or the one in doubt."""
        if found == key.known:
            pass
        elif key.doubt and (found[0] if found else None) == key.maybe:
            self.book.survivors += 1
            if found:
                self.book.add(key.name, *found)
        else:
            raise AssertionError(f"{key.name}: told {key.known}, in doubt {key.doubt} "
                                 f"{key.maybe}, found {found}")
        key.known, key.doubt = found, False

    def compare(self, items, rv):
        if rv < self.book.highest:
            raise AssertionError(f"revision {rv} after {self.book.highest} was seen")
        found = {item["metadata"]["name"]: (value_of(item), rv_of(item)) for item in items}
        found.pop(SENTINEL, None)
        for keys in self.keys:
            for key in keys:
                self.settle(key, found.pop(key.name, None))
        expect("objects nobody made", found, {})

    def touch_sentinel(self, client, exists):
        """A write of ours: its revision is newer than all, and where watchers must arrive."""
        highest = self.book.highest
        answer = client.request("PUT" if exists else "POST",
                                f"{MAPS}/{SENTINEL}" if exists else MAPS,
                                config_map(SENTINEL, str(self.kills)))
        expect(f"code of {answer}", answer.code, 200 if exists else 201)
        rv = rv_of(answer.json())
        if rv <= highest:
            raise AssertionError(f"new revision {rv}, {highest} was seen before")
        self.book.add(SENTINEL, str(self.kills), rv)
        return rv

    def check_watcher(self, watcher, items):
        """Nothing told is missing in between, and the sum of all events is what is there."""
        told = sorted((rv, *what) for rv, what in self.book.told.items() if rv > watcher.listed)
        expect("changes that a watch showed", watcher.seen, told)
        want = {item["metadata"]["name"]: (value_of(item), rv_of(item)) for item in items}
        expect("state that a watch adds up to", watcher.state, want)
        watcher.seen = []
        watcher.listed = watcher.rv

    def catch_up(self, client, rv, watches):
        for watch in watches:
            await_true(f"watch at {watch.watcher.rv} to reach {rv}",
                       lambda w=watch: w.error or (w.watcher.rv or rv) >= rv)
            if watch.error:
                raise watch.error
        items, list_rv = self.list_all(client)
        for watcher in self.watchers:
            if watcher.rv is None: # its place was compacted away
                self.book.gone += 1
                watcher.relist(items, list_rv)
                watcher.seen = []
            else:
                self.check_watcher(watcher, items)
        self.book.told = {}

    def round(self):
        self.start()
        with self.server.client() as client:
            items, rv = self.list_all(client)
            self.compare(items, rv)
            for watcher in self.watchers:
                if watcher.rv is None:
                    watcher.relist(items, rv)
            watches = [Watch(self.server, w) for w in self.watchers]
            rv = self.touch_sentinel(client, any(i["metadata"]["name"] == SENTINEL for i in items))
            self.catch_up(client, rv, watches)
            writers = [Writer(self.server, self.book, keys, self.random.random())
                       for keys in self.keys]
            time.sleep(self.random.random() * LOAD_S)
            self.server.kill()
            self.kills += 1
            for task in writers + watches:
                task.finish()


def run(tap, chaos, more):
    """Points of a block of kills each, while more() says so."""
    while more() and tap.failed == 0:
        first = chaos.kills + 1

        def block():
            while chaos.kills < first + BLOCK - 1:
                chaos.round()

        tap.step(f"from kill {first} on: acknowledged writes exist, revisions and watches continue",
                 block)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=210)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    args = parser.parse_args()
    tap, chaos = Tap(), Chaos(args.seed)
    begin = time.monotonic()
    print(f"# seed {args.seed}", flush=True)
    if args.seconds is None:
        run(tap, chaos, lambda: chaos.kills < args.kills)
    else:
        run(tap, chaos, lambda: time.monotonic() - begin < args.seconds)
    print(f"# {chaos.kills} kills in {time.monotonic() - begin:.0f} s, highest revision "
          f"{chaos.book.highest}, {chaos.book.survivors} writes in doubt were there, "
          f"{chaos.book.gone} watches got 410")
    tap.done()


if __name__ == "__main__":
    main()
