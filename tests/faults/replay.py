# SPDX-License-Identifier: Apache-2.0
"""Requests that led to a failure, in a file: written by sequences.py as it sends them, sent again, and
reduced to those that matter.

A line is a list of requests that were sent at the same time, or how the server was ended. Uids differ
from one server to the next: with each answer its uid is kept, and a later mention of it becomes the
one that the same request got from the new server.
"""

import json
import os
import re
import subprocess
import sys
import time

from harness import DEADLINE_S

SETTLE_S = 3       # for controllers and scheduler to come across what was written
SHRINK_S = 600
UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PLACE = re.compile(r"src/[a-z_/]+\.c:\d+")


def uid_of(answer):
    if answer is None or answer.code >= 300:
        return None
    try:
        return answer.json()["metadata"].get("uid")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class Recorder:
    def __init__(self, path):
        self.path, self.file = path, open(path, "w", encoding="utf-8")

    def _write(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def volley(self, requests):
        self._write([{"what": r.what, "method": r.method, "path": r.path, "body": r.body,
                      "media": r.media, "uid": uid_of(r.answer)} for r in requests])

    def restart(self, kind):
        self._write(kind)

    def close(self, keep):
        self.file.close()
        if not keep:
            os.unlink(self.path)


class Replay:
    """One life of a fresh server with those lines; failure is its text, or None."""

    def __init__(self, make_driver, make_request, lines):
        self.driver, self.make_request, self.uids = make_driver(), make_request, {}
        self.failure = None
        try:
            self.driver.start()
            for line in lines:
                self._send(line)
            self._settle()
            self.driver.stop()
        except (AssertionError, OSError) as error:
            self.failure = self._describe(error)
        finally:
            self.driver.server.kill()

    def _describe(self, error):
        """A report of the server says more than what the client saw of its end."""
        process = self.driver.server.process
        if process is None: # it was told to end
            return str(error)
        try:
            if isinstance(error, OSError):
                process.wait(DEADLINE_S)
            self.driver.check_alive()
        except AssertionError as report:
            return f"{report}\n{error}"
        except subprocess.TimeoutExpired:
            pass
        return str(error)

    def _send(self, line):
        if isinstance(line, str):
            self.driver.end(line)
            self.driver.start()
            return
        requests = [self.make_request(r["what"], r["method"], self._renew(r["path"]),
                                      json.loads(self._renew(json.dumps(r["body"]))), r["media"])
                    for r in line]
        self.driver.send(requests)
        for old, request in zip(line, requests):
            self.driver.check_answer(request)
            if old["uid"] and uid_of(request.answer):
                self.uids[old["uid"]] = uid_of(request.answer)

    def _renew(self, text):
        return UID.sub(lambda found: self.uids.get(found[0], found[0]), text)

    def _settle(self):
        """Some failures follow the last request by seconds; that none does is known only at the end."""
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            self.driver.check_alive()
            time.sleep(0.1)
        self.driver.check()


def signature(failure):
    """What two failures have in common when they are the same: the first place in the source that a
    report names, else the first words."""
    place = PLACE.search(failure)
    return place[0] if place else re.sub(r"\d+", "N", failure.splitlines()[0])[:60]


def load(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def count(lines):
    return sum(len(line) for line in lines if isinstance(line, list))


def shrink(lines, fails, seconds):
    """Leaves out parts, halves at first, while fails(lines) stays true; at the end single requests."""
    end, size = time.monotonic() + seconds, max(len(lines) // 2, 1)
    while size >= 1 and time.monotonic() < end:
        at = 0
        while at < len(lines) and time.monotonic() < end:
            fewer = lines[:at] + lines[at + size:]
            if fewer and fails(fewer):
                lines = fewer
                print(f"# {count(lines)} requests left", flush=True)
            else:
                at += size
        size //= 2
    singles = [[r] if isinstance(r, dict) else r for line in lines
               for r in (line if isinstance(line, list) else [line])]
    if len(singles) > len(lines) and time.monotonic() < end and fails(singles):
        return shrink(singles, fails, end - time.monotonic())
    return lines


def main(args, make_driver, make_request):
    path = args.replay or args.shrink
    lines = load(path)
    first = Replay(make_driver, make_request, lines).failure
    if not first:
        print(f"no failure with the {count(lines)} requests of {path}")
        sys.exit(1 if args.shrink else 0)
    print(first, flush=True)
    if args.shrink:
        wanted = signature(first)

        def fails(some):
            failure = Replay(make_driver, make_request, some).failure
            return failure is not None and signature(failure) == wanted

        lines = shrink(lines, fails, args.seconds or SHRINK_S)
        with open(f"{path}.min", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        print(f"{count(lines)} requests are left, in {path}.min; it fails at {wanted}")
    sys.exit(1)
