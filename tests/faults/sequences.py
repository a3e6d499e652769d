#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random sequences of requests over every kind and verb, with restarts in between.

    sequences.py [--requests N | --seconds S] [--seed N] [--record FILE]
    sequences.py --replay FILE
    sequences.py --shrink FILE [--seconds S]

What one request stores is read later by other code: admission of the next request, controllers, the
scheduler, nodes, printers. So the objects here refer to each other, optional fields are left out,
null, empty and of the wrong type, field by field as the server's own OpenAPI documents list them,
and things are deleted while work is under way. A kind that the server learns later is covered
without a change here; bodies.py only says what its fields cannot.

After each batch the server must be alive and ready, without a report of a sanitizer, every list must
decode, in both forms, and the program's own commands must print them. Between batches the server is
killed or stopped, and started again.

The seed (HEKLA_SEED, or --seed; else 1, and a new one with --seconds) gives the same requests again
as far as the server gives the same answers. A failure prints the last requests, and keeps all of them
in a file, one volley or restart a line: sequences-SEED.jsonl in the directory for temporary files, or
what --record names. --replay sends them again to a fresh server and says whether that fails, too.
--shrink leaves out ever smaller parts of them as long as a fresh server still fails in the same way,
for at most 10 minutes or --seconds, and writes what is left to FILE.min.
"""

import argparse
import collections
import copy
import json
import os
import random
import subprocess
import tempfile
import threading
import time

import replay
from bodies import Bodies, Schemas, TRICKY_KEYS
from harness import HEKLA, Server, Tap, expect, scratch

LANES = 8            # connections that a volley of requests goes over
BATCH = 5000         # requests between two looks at the whole
SHOWN = 30           # requests that a failure prints
NODES = 4
NAMESPACES = 4       # that the driver works in
NAMES = ["a", "b", "c", "d"]
OBJECTS_MAX = 40     # of a kind and namespace, then the driver deletes
ACCEPTED_FLOOR = 0.5 # of all requests
TRIED_FLOOR = 30     # fields of a kind, before none accepted is a failure
CREATED_ONLY = {"core/Pod", "batch.volcano.sh/Job"} # an update may change next to nothing of them
KEPT_KINDS = {"CustomResourceDefinition", "Namespace", "APIService"}
KEPT_NAMES = {"default", "kube-system", "kube-public", "kube-node-lease", "volcano-system", "root"}
SANITIZERS = ("ERROR: AddressSanitizer", "runtime error:", "ERROR: LeakSanitizer", "DEADLYSIGNAL",
              "assertion failed")
PATCHES = {"json": "application/json-patch+json", "merge": "application/merge-patch+json",
           "strategic": "application/strategic-merge-patch+json",
           "apply": "application/apply-patch+yaml"}
COMMANDS = [["jobs"], ["queues"], ["nodes"], ["pods"], ["history"], ["status"], ["explain"]]


class Kind:
    """A resource as discovery describes it."""

    def __init__(self, group_version, resource):
        self.group, _, self.version = group_version.rpartition("/")
        self.kind, self.plural = resource["kind"], resource["name"]
        self.namespaced, self.verbs = resource["namespaced"], set(resource["verbs"])
        self.subresources = {}
        self.root = f"/apis/{group_version}" if self.group else f"/api/{group_version}"
        self.api_version = group_version

    def __eq__(self, other):
        return (self.api_version, self.plural) == (other.api_version, other.plural)

    def __hash__(self):
        return hash((self.api_version, self.plural))

    def __str__(self):
        return f"{self.group or 'core'}/{self.kind}"

    def path(self, ns=None, name=None, sub=None):
        path = self.root
        if self.namespaced and ns:
            path += f"/namespaces/{ns}"
        path += f"/{self.plural}"
        if name:
            path += f"/{name}"
        return path + (f"/{sub}" if sub else "")


class Request:
    def __init__(self, what, method, path, body=None, media="application/json", kind=None, items=(),
                 key=None):
        """items: the mutations in the body; key: (namespace, name) of the object it is about."""
        self.what, self.method, self.path, self.body, self.media = what, method, path, body, media
        self.kind, self.items, self.key = kind, items, key
        self.code, self.answer = None, None

    def __str__(self):
        body = "" if self.body is None else json.dumps(self.body)
        return f"{self.code or '...'} {self.method} {self.path} ({self.what}, {self.media}) {body[:1500]}"


class Coverage:
    """Every field of every kind with every mutation, in random order. Several go into one body; what
    was refused in company is tried again in halves, so that in the end each was stored, or refused
    alone."""

    # Extremes: numbers, quantities and times once more, with another value.
    MUTATIONS = ("absent", "null", "empty", "wrong", "edge", "extreme")
    # Wrong types are refused: two of them in one body would show one refusal.
    COMPANY = {"absent": 6, "null": 6, "empty": 6, "wrong": 1, "edge": 3, "extreme": 2}

    def __init__(self, rand, kinds, paths_of, is_numeric):
        self.todo, self.done, self.accepted, self.total = {}, {}, {}, {}
        self.todo_created = {} # what an update refused: some fields can be given at creation alone
        for kind in kinds:
            paths = paths_of(kind)
            groups = []
            self.total[kind] = 0
            for mutation in self.MUTATIONS:
                items = [(path, mutation) for path in paths
                         if mutation != "extreme" or is_numeric(kind, path)]
                rand.shuffle(items)
                size = self.COMPANY[mutation]
                groups += [items[k:k + size] for k in range(0, len(items), size)]
                self.total[kind] += len(items)
            rand.shuffle(groups)
            groups.sort(key=lambda group: group[0][1] != "extreme") # they come first
            self.todo[kind] = collections.deque(self.thin_out(groups))
            self.todo_created[kind] = collections.deque()
            self.done[kind], self.accepted[kind] = set(), set()

    @classmethod
    def thin_out(cls, groups):
        """Wrong types are refused before anything is stored: few of them among the others."""
        wrong = [group for group in groups if group[0][1] == "wrong"]
        others = [group for group in groups if group[0][1] != "wrong"]
        out = []
        for k in range(0, len(others), 4):
            out += others[k:k + 4] + wrong[k // 4:k // 4 + 1]
        return out + wrong[(len(others) + 3) // 4:]

    def left(self, kind):
        return len(self.todo.get(kind, ())) + len(self.todo_created.get(kind, ()))

    def next(self, kind, creates=False):
        queue = creates and self.todo_created.get(kind) or self.todo.get(kind)
        return queue.popleft() if queue else []

    def told(self, kind, items, code, updates):
        half = len(items) // 2
        if code < 300:
            self.accepted[kind].update(items)
        elif half and code in (400, 422):
            self.todo[kind].extend([items[:half], items[half:]])
            return
        elif code not in (400, 422): # not about the body
            self.todo[kind].append(items)
            return
        elif updates and items[0][1] != "wrong":
            self.todo_created[kind].append(items)
            return
        self.done[kind].update(items)

    def report(self, title):
        done = sum(len(s) for s in self.done.values())
        stored = sum(len(s) for s in self.accepted.values())
        yield (f"{title}: {done} of {sum(self.total.values())} tried, {stored} accepted, "
               f"{sum(1 for k in self.total if self.total[k] and len(self.done[k]) == self.total[k])}"
               f" of {sum(1 for k in self.total if self.total[k])} kinds complete")
        for mutation in self.MUTATIONS:
            tried = sum(1 for s in self.done.values() for item in s if item[1] == mutation)
            kept = sum(1 for s in self.accepted.values() for item in s if item[1] == mutation)
            yield f"{title}, {mutation}: {tried} tried, {kept} accepted"
        for kind in sorted(self.total, key=str):
            if self.total[kind]:
                yield (f"{title} of {kind}: {len(self.done[kind])} of {self.total[kind]} tried, "
                       f"{len(self.accepted[kind])} accepted")


class World:
    """What the server is known to hold."""

    def __init__(self):
        self.objects = {} # kind: {(ns, name): object}

    def of(self, kind):
        return self.objects.setdefault(kind, {})

    def pick(self, rand, kind):
        """An object to change. The kinds that the server brings along stay as they are: with one of
        them gone nothing of that kind could be tried any more."""
        known = [key for key in self.of(kind) if kind.kind != "CustomResourceDefinition" or
                 key[1].endswith(".example.com")]
        return rand.choice(sorted(known)) if known else None

    def keep(self, kind, obj):
        meta = obj.get("metadata")
        if isinstance(meta, dict) and isinstance(meta.get("name"), str):
            self.of(kind)[(meta.get("namespace") or "", meta["name"])] = obj

    def names(self, kind_name, ns=None):
        """Names of objects of a kind, for references."""
        for kind, known in self.objects.items():
            if kind.kind == kind_name:
                return sorted({name for (n, name) in known if ns is None or n in ("", ns)})
        return []


class Watches:
    """Threads that read watches of a few kinds and check that every event decodes."""

    def __init__(self, server, paths):
        self.error, self.ended, self.events = None, False, 0
        self.threads = [threading.Thread(target=self._read, args=(server, path), daemon=True)
                        for path in paths]
        for thread in self.threads:
            thread.start()

    def _read(self, server, path):
        while not self.ended:
            try:
                with server.client() as client:
                    for event in client.events(f"{path}?watch=true&timeoutSeconds=20"):
                        self.events += 1
                        if event["type"] not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"):
                            raise AssertionError(f"watch {path}: event {event['type']}")
                        if self.ended:
                            return
            except OSError:
                return # the server ended
            except (AssertionError, ValueError, KeyError) as error:
                self.error = error
                return


class Driver:
    def __init__(self, seed, record=None):
        """record: a replay.Recorder"""
        self.seed, self.random, self.record = seed, random.Random(seed), record
        env = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0") + ":handle_abort=1",
               "UBSAN_OPTIONS": os.environ.get("UBSAN_OPTIONS",
                                               "print_stacktrace=1:halt_on_error=1")}
        self.env = env
        self.server = Server(scratch() / "data", "--no-node", "--sim-nodes", str(NODES),
                             "--sim-model", "duration=uniform:0s-3s,fail=0.1", verb="up", env=env)
        self.world, self.recent = World(), collections.deque(maxlen=SHOWN)
        self.clients, self.watches = [], None
        self.verbs, self.codes = collections.Counter(), collections.Counter()
        self.writes, self.refusals = collections.Counter(), collections.Counter()
        self.count = self.accepted = self.starts = 0
        self.coverage, self.no_strategic = None, set()
        self.versioned = set() # kinds whose updates must name the version
        self.namespaces = [f"t{k}" for k in range(NAMESPACES)]
        self.ended = 0 # namespaces

    # ---- the server's life ----

    def start(self):
        self.server.start()
        self.starts += 1
        self.clients = [self.server.client() for _ in range(LANES)]
        self.learn()
        for ns in self.namespaces:
            self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
        self.refresh()
        pods = next(k for k in self.kinds if str(k) == "core/Pod")
        jobs = next(k for k in self.kinds if str(k) == "batch.volcano.sh/Job")
        self.watches = Watches(self.server, [pods.path(), jobs.path(), "/api/v1/events"])

    def learn(self):
        """Kinds from discovery, fields from OpenAPI."""
        groups = ["v1"] + [g["preferredVersion"]["groupVersion"]
                           for g in self.ask("GET", "/apis").json()["groups"]]
        found = {}
        for group_version in groups:
            root = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
            for resource in self.ask("GET", root).json()["resources"]:
                name, _, sub = resource["name"].partition("/")
                if sub:
                    found[group_version, name].subresources[sub] = set(resource["verbs"])
                else:
                    found[group_version, name] = Kind(group_version, resource)
        self.kinds = [kind for _, kind in sorted(found.items())]
        if self.coverage:
            return
        self.schemas = Schemas()
        for path in self.ask("GET", "/openapi/v3").json()["paths"].values():
            self.schemas.add(self.ask("GET", path["serverRelativeURL"]).json())
        self.bodies = Bodies(self.random, self.schemas, self.world)
        self.coverage = Coverage(self.random, self.kinds, self.schemas.paths,
                                 self.schemas.is_numeric)
        self.status_coverage = Coverage(self.random, [k for k in self.kinds if "status" in
                                                      k.subresources], self.schemas.status_paths,
                                        self.schemas.is_numeric)

    def disconnect(self):
        self.watches.ended = True
        for client in self.clients:
            client.close()
        self.clients = []

    def stop(self):
        """A clean end tells of leaks as well."""
        self.disconnect()
        status = self.server.stop()
        self.check_log()
        expect("exit status of a server that was told to end", status, 0)

    def kill(self):
        self.disconnect()
        self.server.kill()

    def end(self, kind):
        if kind == "kill -9":
            self.kill()
        else:
            self.stop()

    # ---- checks ----

    def check_log(self):
        for k, line in enumerate(self.server.log):
            if any(mark in line for mark in SANITIZERS):
                report = "\n".join(self.server.log[max(0, k - 2):k + 40])
                raise AssertionError(f"the server reports:\n{report}")

    def check_alive(self):
        if self.server.alive():
            self.check_log()
            return
        self.server.reader.join()
        self.check_log()
        raise AssertionError(f"the server ended with {self.server.process.returncode}: "
                             f"{self.server.log[-20:]}")

    def ask(self, method, path, body=None, headers=()):
        return self.clients[0].request(method, path, body, headers=headers)

    def check_lists(self):
        """All objects, as they are and as a table."""
        self.refresh()
        table = ["Accept: application/json;as=Table;v=v1;g=meta.k8s.io"]
        for kind in self.kinds:
            if "list" in kind.verbs:
                answer = self.ask("GET", kind.path(), headers=table)
                expect(f"table of {kind}: {answer}", answer.code, 200)
                answer.json()

    def check_watches(self):
        """From the beginning of the history, of every kind, all at the same time for a second."""
        kinds = [kind for kind in self.kinds if "watch" in kind.verbs]
        clients = [self.server.client() for _ in kinds]
        for kind, client in zip(kinds, clients):
            client.send(client.head("GET", kind.path() + "?watch=true&timeoutSeconds=1"))
        for kind, client in zip(kinds, clients):
            answer = client.answer()
            client.close()
            expect(f"code of a watch of {kind}", answer.code, 200)
            for line in answer.body.splitlines():
                json.loads(line)
            self.verbs["watch"] += 1

    def check_commands(self):
        env = dict(os.environ, **self.env, KUBECONFIG=str(self.server.data / "kubeconfig"))
        for command in COMMANDS:
            done = subprocess.run([HEKLA, *command, "--data-dir", str(self.server.data)], env=env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, errors="replace", timeout=60)
            if done.returncode < 0 or any(mark in done.stderr for mark in SANITIZERS):
                raise AssertionError(f"hekla {command}: {done.returncode} {done.stderr[-4000:]}")

    def check(self):
        self.check_alive()
        expect("code of /readyz", self.ask("GET", "/readyz").code, 200)
        self.check_lists()
        self.check_watches()
        for path in ("/metrics", "/openapi/v2", "/openapi/v3"):
            expect(f"code of {path}", self.ask("GET", path).code, 200)
        self.check_commands()
        if self.watches.error:
            raise self.watches.error
        self.check_alive()

    def refresh(self):
        """Kinds too: definitions have come and gone."""
        self.learn()
        for kind in self.kinds:
            if "list" not in kind.verbs:
                continue
            answer = self.ask("GET", kind.path())
            expect(f"list of {kind}: {answer}", answer.code, 200)
            self.world.objects[kind] = {}
            for item in answer.json()["items"]:
                self.world.keep(kind, item)

    # ---- making requests ----

    def pick_kind(self):
        """Those that other code reads come more often, and those with much left to try."""
        if self.random.random() < 0.5:
            left = [self.coverage.left(kind) + self.status_coverage.left(kind)
                    for kind in self.kinds]
            if sum(left):
                return self.random.choices(self.kinds, left)[0]
        return self.bodies.pick_kind(self.kinds)

    def namespace(self, kind):
        return self.random.choice(self.namespaces) if kind.namespaced else ""

    def mutate(self, kind, body, creates=False):
        """The next fields of the kind, each in its next shape; body changes in place."""
        if not creates and str(kind) in CREATED_ONLY:
            return []
        items = self.coverage.next(kind, creates)
        for path, mutation in items:
            self.bodies.apply(kind, body, path, mutation)
        return items

    def prefers_creation(self, kind):
        return str(kind) in CREATED_ONLY and self.random.random() < 0.7

    def make_create(self, kind):
        ns = self.namespace(kind)
        body = self.bodies.make(kind, ns, self.random.choice(NAMES))
        items = self.mutate(kind, body, creates=True) if self.random.random() < 0.5 else []
        path = kind.path(ns)
        if self.random.random() < 0.05:
            path += "?dryRun=All"
        return Request("create", "POST", path, body, kind=kind, items=items)

    def make_update(self, kind):
        key = self.world.pick(self.random, kind)
        if not key or self.prefers_creation(kind):
            return self.make_create(kind)
        body = copy.deepcopy(self.world.of(kind)[key])
        meta = body.setdefault("metadata", {})
        if kind not in self.versioned and self.random.random() < 0.8:
            meta.pop("resourceVersion", None)
        meta.pop("managedFields", None)
        items = self.mutate(kind, body) if self.random.random() < 0.5 else []
        if not items:
            self.bodies.vary(kind, body)
        return Request("update", "PUT", kind.path(*key), body, kind=kind, items=items,
                       key=key)

    def make_status(self, kind):
        key = self.world.pick(self.random, kind)
        if not key or "status" not in kind.subresources:
            return self.make_update(kind)
        body = copy.deepcopy(self.world.of(kind)[key])
        if kind not in self.versioned:
            body.get("metadata", {}).pop("resourceVersion", None)
        items = self.status_coverage.next(kind)
        for path, mutation in items:
            self.bodies.apply(kind, body, path, mutation)
        if self.random.random() < 0.5:
            return Request("status", "PUT", kind.path(*key, "status"), body, kind=kind, items=items,
                           key=key)
        return Request("status", "PATCH", kind.path(*key, "status"), {"status": body.get("status")},
                       PATCHES["merge"], kind=kind, items=items)

    def make_patch(self, kind):
        key = self.world.pick(self.random, kind)
        if not key or self.prefers_creation(kind):
            return self.make_create(kind)
        old = self.world.of(kind)[key]
        new = copy.deepcopy(old)
        items = self.mutate(kind, new) if self.random.random() < 0.5 else []
        if not items:
            self.bodies.vary(kind, new)
        hows = ["json", "merge", "apply"] + ([] if kind in self.no_strategic else ["strategic"])
        how = self.random.choice(hows)
        path = kind.path(*key)
        if how == "json":
            body = self.bodies.json_patch(old, new)
        elif how == "apply":
            path += f"?fieldManager={self.random.choice(['one', 'two'])}&force=true"
            body = self.bodies.applied(kind, new)
        else:
            body = self.bodies.merge_patch(old, new)
        return Request(f"patch {how}", "PATCH", path, body, PATCHES[how], kind=kind, items=items,
                       key=key)

    def make_delete(self, kind):
        key = self.world.pick(self.random, kind)
        if not key or kind.kind in KEPT_KINDS or key[1] in KEPT_NAMES:
            return self.make_read(kind)
        body = self.random.choice([
            None, {"gracePeriodSeconds": 0}, {"propagationPolicy": "Foreground"},
            {"propagationPolicy": "Orphan"}, {"propagationPolicy": "Background"},
            {"gracePeriodSeconds": None, "preconditions": {}}, {"preconditions": {"uid": "other"}}])
        self.world.of(kind).pop(key)
        return Request("delete", "DELETE", kind.path(*key), body, kind=kind)

    def make_delete_collection(self, kind):
        if not kind.namespaced or "deletecollection" not in kind.verbs:
            return self.make_delete(kind)
        path = kind.path(self.random.choice(self.namespaces))
        if self.random.random() < 0.7:
            path += "?labelSelector=" + self.random.choice(["app%3Da", "app%20in%20(a,b)", "!app"])
        return Request("deletecollection", "DELETE", path, kind=kind)

    def make_read(self, kind):
        key = self.world.pick(self.random, kind)
        chance = self.random.random()
        if key and chance < 0.5 and "get" in kind.verbs:
            return Request("get", "GET", kind.path(*key), kind=kind, key=key)
        if "list" not in kind.verbs:
            return self.make_create(kind)
        path = kind.path(self.namespace(kind)) + "?" + self.random.choice([
            "limit=2", "labelSelector=app%3Da", "fieldSelector=metadata.name%3Da",
            "labelSelector=app%20notin%20(b)", "resourceVersion=0", "limit=500"])
        return Request("list", "GET", path, kind=kind)

    def make_subresource(self, kind):
        key = self.world.pick(self.random, kind)
        if not key:
            return self.make_create(kind)
        choices = [sub for sub in ("scale", "binding", "eviction", "token", "approval", "log",
                                   "finalize", "ephemeralcontainers", "resize")
                   if sub in kind.subresources]
        if not choices:
            return self.make_status(kind)
        sub = self.random.choice(choices)
        return self.bodies.subresource(Request, kind, key, sub, self.world.of(kind)[key])

    def make_namespace_end(self, kind):
        """Everything in it goes while it is worked on; the driver makes it anew later."""
        ns = self.random.choice(self.namespaces)
        return Request("delete namespace", "DELETE", f"/api/v1/namespaces/{ns}", kind=kind)

    def make_namespace(self, kind):
        return Request("create namespace", "POST", "/api/v1/namespaces",
                       {"metadata": {"name": self.random.choice(self.namespaces)}}, kind=kind)

    def make_annotation(self, kind):
        """Keys that the programs read, with values they may not expect."""
        key = self.world.pick(self.random, kind)
        if not key:
            return self.make_create(kind)
        where = self.random.choice(["annotations", "labels", "annotations"])
        value = self.bodies.tricky_value(where)
        body = {"metadata": {where: {self.random.choice(TRICKY_KEYS): value}}}
        return Request(f"patch {where}", "PATCH", kind.path(*key), body, PATCHES["merge"], kind=kind,
                       key=key)

    def make_owner(self, kind):
        """An owner that exists, in another namespace, or does not."""
        key = self.world.pick(self.random, kind)
        if not key:
            return self.make_create(kind)
        refs = self.bodies.owners()
        return Request("patch owners", "PATCH", kind.path(*key),
                       {"metadata": {"ownerReferences": refs}}, PATCHES["merge"], kind=kind)

    MAKERS = [("make_create", 26), ("make_update", 14), ("make_patch", 20), ("make_status", 9),
              ("make_delete", 5), ("make_delete_collection", 1), ("make_read", 14),
              ("make_subresource", 8), ("make_annotation", 5), ("make_owner", 2),
              ("make_namespace", 1)]

    def make(self):
        kind = self.pick_kind()
        if self.random.random() < 0.001:
            return self.make_namespace_end(kind)
        if len(self.world.of(kind)) > OBJECTS_MAX * (NAMESPACES if kind.namespaced else 1):
            return self.make_delete(kind)
        names, weights = zip(*self.MAKERS)
        maker = self.random.choices(names, weights)[0]
        if maker == "make_create" and "create" not in kind.verbs:
            maker = "make_read"
        return getattr(self, maker)(kind)

    # ---- sending them ----

    def learn_from(self, request):
        """What is known of the world afterwards, and what should be put right."""
        kind, answer = request.kind, request.answer
        ns = request.path.split("/namespaces/")[-1].split("/")[0]
        if request.code == 403 and b"being terminated" in answer.body:
            self.leave_namespace(ns)
        elif request.code == 403 and ns in self.namespaces:
            self.relax.append((ns, "resourcequotas" if b"quota" in answer.body else "limitranges"))
        elif request.code == 404 and b"namespaces" in answer.body and ns in self.namespaces:
            self.missing.append(ns)
        elif request.code == 404 and request.key:
            self.world.of(kind).pop(request.key, None)
        elif request.code == 415:
            self.no_strategic.add(kind)
        elif request.code == 422 and b"must be specified for an update" in answer.body:
            self.versioned.add(kind)
        if request.code >= 300:
            return
        if request.method in ("POST", "PUT", "PATCH") and "/status" not in request.path:
            obj = answer.json()
            if obj.get("kind") == kind.kind and "get" in kind.verbs and "dryRun" not in request.path:
                self.world.keep(kind, obj)

    def leave_namespace(self, ns):
        """It may take long to go, held by finalizers that the driver wrote. Another takes its place."""
        if ns in self.namespaces:
            self.ended += 1
            fresh = f"t{NAMESPACES + self.ended}"
            self.namespaces[self.namespaces.index(ns)] = fresh
            self.missing.append(fresh)

    def volley(self):
        """One request on each connection at the same time, so that they are staged together."""
        requests = [self.make() for _ in range(LANES)]
        for ns, plural in self.relax[:1]:
            requests[0] = Request(f"deletecollection of {plural}", "DELETE",
                                  f"/api/v1/namespaces/{ns}/{plural}", kind=requests[0].kind)
        for ns in self.missing[:1]:
            requests[1] = Request("create namespace", "POST", "/api/v1/namespaces",
                                  {"metadata": {"name": ns}}, kind=requests[1].kind)
        self.relax, self.missing = [], []
        try:
            self.send(requests)
        finally:
            if self.record:
                self.record.volley(requests)
        for request in requests:
            self.tally(request)
            self.learn_from(request)

    def send(self, requests):
        for client, request in zip(self.clients, requests):
            self.recent.append(request)
            head = []
            body = None
            if request.body is not None:
                body = json.dumps(request.body).encode()
                head = [f"Content-Type: {request.media}", f"Content-Length: {len(body)}"]
            client.send(client.head(request.method, request.path, head) + (body or b""))
        for client, request in zip(self.clients, requests):
            request.answer = client.answer()
            request.code = request.answer.code

    def tally(self, request):
        self.count += 1
        fine = request.code < 300
        self.accepted += fine
        self.verbs[request.what.split(" ")[0]] += 1
        self.codes[request.code] += 1
        if request.method != "GET":
            self.writes["accepted" if fine else "refused"] += 1
        if not fine:
            self.refusals[f"{request.code} {request.what} {request.kind}"] += 1
        if request.items:
            book = self.status_coverage if request.what == "status" else self.coverage
            book.told(request.kind, request.items, request.code,
                      updates=request.what not in ("create", "status"))
        self.check_answer(request)

    @staticmethod
    def check_answer(request):
        # Kubernetes too has no other answer to the eviction of a pod with two budgets, or to a
        # request for the log of a pod on a node without an address.
        if request.code >= 500 and request.code not in (503, 504) and \
                request.what not in ("eviction", "log"):
            raise AssertionError(f"the server answered {request.answer} to {request}")

    def batch(self, count):
        end, self.relax, self.missing = self.count + count, [], []
        try:
            while self.count < end:
                self.volley()
            self.check()
        except (OSError, ConnectionError) as error:
            self.fail_with_requests(f"the connection broke: {error}")
        except AssertionError as error:
            self.fail_with_requests(str(error))

    def fail_with_requests(self, text):
        last = "\n".join(str(request) for request in self.recent)
        try:
            if self.server.process: # else it was told to end, and its log has been read
                self.check_alive()
        except AssertionError as error:
            text = f"{text}\n{error}"
        kept = f"; all are in {self.record.path}" if self.record else ""
        raise AssertionError(f"{text}\nseed {self.seed}, after {self.count} requests{kept}; the last "
                             f"{len(self.recent)}:\n{last}")

    # ---- report ----

    def report(self):
        yield f"seed {self.seed}, {self.count} requests, {self.starts} starts"
        yield (f"accepted {self.accepted / max(self.count, 1):.0%} of all, "
               f"{self.writes['accepted'] / max(sum(self.writes.values()), 1):.0%} of "
               f"{sum(self.writes.values())} writes")
        yield "verbs " + ", ".join(f"{verb} {n}" for verb, n in sorted(self.verbs.items()))
        yield "codes " + ", ".join(f"{code} {n}" for code, n in sorted(self.codes.items()))
        yield from self.coverage.report("fields")
        yield from self.status_coverage.report("status fields")
        for what, n in self.refusals.most_common(12):
            yield f"often refused: {n} x {what}"


def restart(driver, kind):
    """kind is how the server ends."""
    if driver.record:
        driver.record.restart(kind)
    try:
        driver.end(kind)
        driver.start()
        driver.check()
    except (OSError, AssertionError) as error:
        driver.fail_with_requests(str(error))


def play(tap, driver, more):
    """Batches with a restart behind each, while more() says so."""
    ends = ["kill -9", "clean stop"]
    tap.step("the server starts", driver.start)
    rounds = 0
    while tap.failed == 0 and more():
        first = driver.count + 1
        tap.step(f"requests from {first} on: the server lives and is ready, every list decodes",
                 driver.batch, BATCH)
        if tap.failed == 0 and more():
            how = ends[rounds % len(ends)]
            tap.step(f"after a {how} it starts again with all objects", restart, driver, how)
        rounds += 1


def check_depth(driver):
    share = driver.accepted / max(driver.count, 1)
    if share < ACCEPTED_FLOOR:
        raise AssertionError(f"{share:.0%} of the requests were accepted, "
                             f"expected at least {ACCEPTED_FLOOR:.0%}")


def check_breadth(driver):
    """What is always refused says nothing about what later reads it."""
    done, accepted = driver.coverage.done, driver.coverage.accepted
    refused = sorted(f"{kind}: 0 of {len(done[kind])}" for kind in done
                     if len(done[kind]) >= TRIED_FLOOR and not accepted[kind])
    if refused:
        raise AssertionError(f"no field of a kind was accepted in another shape: {refused}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=20000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=os.environ.get("HEKLA_SEED"))
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--shrink", metavar="FILE")
    args = parser.parse_args()
    if args.replay or args.shrink:
        replay.main(args, lambda: Driver(0), Request)
    if args.seed is None:
        args.seed = 1 if args.seconds is None else random.SystemRandom().randrange(1 << 32)
    path = args.record or f"{tempfile.gettempdir()}/sequences-{args.seed}.jsonl"
    tap, driver = Tap(), Driver(args.seed, replay.Recorder(path))
    begin = time.monotonic()
    print(f"# seed {args.seed}", flush=True)
    if args.seconds is None:
        play(tap, driver, lambda: driver.count < args.requests)
    else:
        play(tap, driver, lambda: time.monotonic() - begin < args.seconds)
    if tap.failed == 0:
        tap.step("a clean end, without leaks", driver.stop)
        driver.record.close(keep=tap.failed > 0 or args.record)
        tap.step("at least half of the requests were accepted", check_depth, driver)
        tap.step("of every kind some fields were accepted in another shape", check_breadth, driver)
    if driver.coverage:
        for line in driver.report():
            print(f"# {line}")
    print(f"# {time.monotonic() - begin:.0f} s")
    tap.done()


if __name__ == "__main__":
    main()
