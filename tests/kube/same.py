#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends the same requests to `hekla apiserver` and to a real kube-apiserver, and compares the answers.

    tests/kube/same.py                   prints TAP, one point per request
    tests/kube/same.py --show TEXT       also prints both answers of requests whose title holds TEXT

same_requests.py has the table of requests; same_differences.py has the differences that are known, each
with its reason. A difference that is not listed fails, and so does a listed one that no request shows.

Compared are the status, the headers of HEADERS and the decoded body. Values that must differ are replaced
first (class Normal): uids, times, versions, addresses, tokens and generated names. HEKLA names our
program.
"""

import argparse
import http.client
import json
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))

import cluster
import harness
from same_differences import DIFFERENCES
from same_requests import REQUESTS, USERS

HEADERS = ("content-type", "allow", "retry-after", "warning", "www-authenticate", "cache-control",
           "location", "upgrade", "sec-websocket-protocol", "x-stream-protocol-version", "vary",
           "content-encoding", "x-content-type-options")
DEADLINE_S = 20
SHOWN_DIFFERENCES = 12
SHOWN_BYTES = 400
MISSING = "(missing)"

UID = re.compile(r"(?!1{8})[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
HOST = re.compile(r"(?:127\.0\.0\.1|localhost):\d+")
AGE = re.compile(r"(?:\d+[smhdy])+|<invalid>")
REFERENCE = re.compile(r"\$\{(\w+)\}")
ADDRESSES = ("clusterIP", "clusterIPs")
SECRETS = ("token", "continue")


class Endpoint:
    """One of the two servers, on one connection; keeps what later requests refer to."""

    def __init__(self, name, port, context, tokens):
        self.name, self.port, self.context, self.tokens = name, port, context, tokens
        self.connection, self.values, self.normal = None, {}, Normal()

    def fill(self, text):
        """Replaces ${NAME} by a value that an earlier answer had."""
        return REFERENCE.sub(lambda match: str(self.values.get(match[1], match[0])), text)

    def connect(self):
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=DEADLINE_S, context=self.context)
        return self.connection

    def disconnect(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def send(self, request):
        headers = {"User-Agent": "same/1.0", **request.headers}
        if request.user:
            headers["Authorization"] = f"Bearer {self.tokens.get(request.user, request.user)}"
        if request.accept:
            headers["Accept"] = request.accept
        body = request.body
        if body is not None:
            body = self.fill(json.dumps(body)).encode() if isinstance(body, (dict, list)) else body
            body = body.encode() if isinstance(body, str) else body
            if request.type:
                headers["Content-Type"] = request.type
        connection = self.connect()
        connection.request(request.method, self.fill(request.path), body, headers)
        return connection.getresponse()

    def answer(self, request):
        """Status, headers and body; a failed exchange is an answer with status 0."""
        try:
            response = self.send(request)
            headers = {name: ", ".join(response.headers.get_all(name)) for name in HEADERS
                       if response.headers.get_all(name)}
            body = self.read(request, response)
            if request.events or response.will_close or response.status == 101:
                self.disconnect()
            return response.status, headers, body
        except (OSError, http.client.HTTPException) as error:
            self.disconnect()
            return 0, {}, f"{type(error).__name__}: {error}"

    @staticmethod
    def read(request, response):
        if not request.events or response.status != 200:
            return decoded(response.read())
        events = []
        while len(events) < request.events:
            line = response.readline()
            if not line:
                break
            events.append(json.loads(line))
        return events

    def save(self, request, body):
        for name, path in request.save.items():
            value = body
            for part in path.split("."):
                value = value[int(part)] if isinstance(value, list) else (value or {}).get(part, "")
            self.values[name] = value

    def settled_answer(self, request):
        """The answer once the server is ready for it: kube-apiserver takes a moment for a new kind."""
        end = time.monotonic() + DEADLINE_S
        while True:
            status, headers, body = self.answer(request)
            waits = status == 429 or not holds(request.until, body)
            if not waits or time.monotonic() > end:
                return status, headers, body
            time.sleep(0.05)

    def ask(self, request):
        """The normal form of the answer: a dictionary of status, headers and body."""
        status, headers, body = self.settled_answer(request)
        if isinstance(body, (dict, list)):
            self.save(request, body)
        if request.pick:
            body = picked(request.pick, body)
        return {"status": status, "header": self.normal.of(headers, request),
                "body": self.normal.of(body, request)}


def holds(until, body):
    return until is None or (isinstance(body, dict) and until(body))


def picked(pick, body):
    """The part that is compared; the whole body when it has another form."""
    try:
        return pick(body)
    except (AttributeError, KeyError, TypeError):
        return body


def decoded(data):
    """JSON as a value, other text as it is, other bytes by their length."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"bytes": data[:8].hex()}
    try:
        return json.loads(text) if text[:1] in "{[" else text
    except ValueError:
        return text


class Normal:
    """Replaces the values that must differ between two servers. The n-th uid that a server shows for a
    name is "uid n of NAME", and the n-th version of an object "version n", so a write that must change
    nothing, or a watch event of another version, is noticed."""

    def __init__(self):
        self.uids, self.names, self.versions = {}, {}, {}

    def own_uid(self, name, uid):
        """The uid of an object of this name."""
        if uid not in self.uids:
            self.names[name] = self.names.get(name, 0) + 1
            self.uids[uid] = f"uid {self.names[name]} of {name}"
        return self.uids[uid]

    def uid(self, text):
        return self.uids.get(text, "uid")

    def version(self, owner, text):
        if not text.isdigit() or text == "0":
            return text
        seen = self.versions.setdefault(owner, {})
        return f"version {seen.setdefault(text, len(seen) + 1)}" if owner else "version"

    def text(self, text):
        text = UID.sub(lambda match: self.uid(match[0]), text)
        text = HOST.sub("SERVER", text)
        return TIME.sub(lambda match: "TIME" + ("." + "0" * len(match[1][1:]) if match[1] else ""),
                        text)

    def member(self, owner, key, value, request):
        if key == "uid" and isinstance(value, str) and UID.fullmatch(value):
            name = owner.get("generateName") or owner.get("name")
            return self.own_uid(name, value) if name else self.uid(value)
        if key == "resourceVersion" and isinstance(value, str):
            return self.version(owner.get("uid"), value)
        if key == "name" and owner.get("generateName") and isinstance(value, str):
            return owner["generateName"] + "SUFFIX"
        if key in SECRETS and value and isinstance(value, str):
            return key.upper()
        if key in ADDRESSES and value not in (None, "", "None", ["None"]):
            return "ADDRESS"
        return self.of(value, request)

    def cells(self, values, request):
        return ["AGE" if isinstance(v, str) and AGE.fullmatch(v) else self.of(v, request)
                for v in values]

    @staticmethod
    def sort_causes(status):
        """Causes in one order, and each once: kube-apiserver names some twice. The message repeats
        them."""
        causes = (status.get("details") or {}).get("causes") or []
        if len(causes) < 2 or status.get("reason") != "Invalid":
            return status
        once = {json.dumps(cause, sort_keys=True): cause for cause in causes}
        head = (status.get("message") or "").split(": ")[0]
        return {**status, "message": f"{head}: CAUSES",
                "details": {**status["details"], "causes": [once[key] for key in sorted(once)]}}

    def of(self, value, request):
        if isinstance(value, dict):
            value = self.sort_causes(value) if value.get("kind") == "Status" else value
            return {key: self.cells(member, request) if key == "cells" else
                    self.member(value, key, member, request)
                    for key, member in value.items()
                    if key != "managedFields" or request.managed}
        if isinstance(value, list):
            return [self.of(item, request) for item in value]
        return self.text(value) if isinstance(value, str) else value


def differences(want, got, path=""):
    """Paths at which two values differ, with both."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted({*want, *got}):
            yield from differences(want.get(key, MISSING), got.get(key, MISSING), f"{path}.{key}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for k, (a, b) in enumerate(zip(want, got)):
            yield from differences(a, b, f"{path}.{k}")
    elif isinstance(want, list) and isinstance(got, list):
        yield (path.lstrip("."), [v for v in want if v not in got] or "(as many)",
               [v for v in got if v not in want] or "(fewer)")
    elif want != got or isinstance(want, bool) != isinstance(got, bool):
        yield path.lstrip("."), want, got


class Comparison:
    """Compares answers and counts which of the listed differences were seen."""

    def __init__(self):
        self.seen = set()

    def is_listed(self, request, path):
        found = False
        for k, known in enumerate(DIFFERENCES):
            if known.title_fits(request.title) and known.path_fits(path):
                self.seen.add(k)
                found = True
        return found

    def unlisted(self, request, want, got):
        return [d for d in differences(want, got) if not self.is_listed(request, d[0])]

    def unseen(self):
        return [known for k, known in enumerate(DIFFERENCES) if k not in self.seen]


def shorten(value):
    text = value if isinstance(value, str) and value == MISSING else json.dumps(value)
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}... ({len(text)} bytes)"


def comment(text):
    for line in text.splitlines():
        print(f"# {line}")


def report(number, request, unlisted):
    print(f"{'not ok' if unlisted else 'ok'} {number} - {request.title}", flush=True)
    if unlisted:
        comment(f"{request.method} {request.path}")
    for path, want, got in unlisted[:SHOWN_DIFFERENCES]:
        comment(f"{path}: expected {shorten(want)}, got {shorten(got)}")
    if len(unlisted) > SHOWN_DIFFERENCES:
        comment(f"and {len(unlisted) - SHOWN_DIFFERENCES} more differences")


def compare(real, ours, show):
    """Asks both servers at once, request by request; returns the number of failed points."""
    comparison, failed, number = Comparison(), 0, 0
    pool = ThreadPoolExecutor(2)
    for request in REQUESTS:
        asked = [(e.name, pool.submit(e.ask, request)) for e in (real, ours)]
        answers = {name: answer.result() for name, answer in asked}
        if show and show in request.title:
            for name, answer in answers.items():
                comment(f"{name}: {json.dumps(answer, indent=1)}")
        if request.setup:
            continue
        number += 1
        unlisted = comparison.unlisted(request, answers[real.name], answers[ours.name])
        report(number, request, unlisted)
        failed += bool(unlisted)
    for known in comparison.unseen():
        number, failed = number + 1, failed + 1
        print(f"not ok {number} - a listed difference is gone: {known.title}, {known.path}")
    print(f"1..{number}")
    return failed


def write_tokens(path):
    """The same users for both servers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text("".join(f'{u.token},{u.name},{u.name},"{u.groups}"\n' for u in USERS))


def start_real(dir, programs):
    """etcd and kube-apiserver, without the controllers, which would change objects meanwhile."""
    write_tokens(dir / "tokens.csv")
    plane = cluster.ControlPlane(dir, programs)
    plane.etcd.start()
    plane.start_api()
    return plane


def start_ours(dir):
    write_tokens(dir / "tokens.csv")
    return harness.Server(dir).start()


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", metavar="TEXT")
    return parser.parse_args()


def main():
    args = parse_args()
    tokens = {u.name: u.token for u in USERS}
    programs = cluster.peers()
    if programs is None:
        print("1..0 # skip no control plane")
        return 0
    plane = None
    with tempfile.TemporaryDirectory() as dir:
        try:
            plane = start_real(Path(dir) / "real", programs)
            server = start_ours(Path(dir) / "ours")
            real = Endpoint("kube-apiserver", plane.ports["api"], plane.context, tokens)
            ours = Endpoint("hekla", server.port, server.context, tokens)
            failed = compare(real, ours, args.show)
            server.stop()
        finally:
            if plane:
                plane.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
