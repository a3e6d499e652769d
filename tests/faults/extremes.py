#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every number, quantity and time at the ends of its range, in every kind that the programs read.

    extremes.py [KIND...]

Fields come from the server's own OpenAPI documents, as in sequences.py, which meets some of them by
chance. Here each field takes each value: in an object that is created, in a change of one that is
there, and in a status. The server may refuse; it must not fail, at once or after a restart, when all
that it accepted is read again. Sanitizers tell of overflows. A KIND is a part of its name, such as
batch/Job; none means those that sequences.py prefers, since other code reads them.
"""

import sys

from bodies import WEIGHTS
from harness import Tap
from sequences import PATCHES, LANES, Driver, Request

NUMBERS = [-(1 << 63), -(1 << 31), -1, (1 << 31) - 1, 1 << 31, (1 << 63) - 1]
QUANTITIES = ["9223372036854775807", "-9223372036854775808", "9223372036854775807m", "8Ei", "1n",
              "9223372036854775807%"]
LIMITS = ("LimitRange", "ResourceQuota") # have a namespace of their own: others would be refused
TIMES = ["0001-01-01T00:00:00Z", "2262-04-11T23:47:16Z", "9999-12-31T23:59:59Z"]


def values_of(schema):
    if schema.get("format") == "date-time":
        return TIMES
    return QUANTITIES + NUMBERS if "oneOf" in schema or "anyOf" in schema else NUMBERS


class Extremes:
    """The requests about one kind."""

    def __init__(self, driver, kind):
        self.driver, self.kind = driver, kind
        self.ns = driver.namespaces[kind.kind in LIMITS] if kind.namespaced else ""
        self.made = self.accepted = 0

    def fields(self, paths):
        return [path for path in paths if self.driver.schemas.is_numeric(self.kind, path)]

    def set(self, body, path, value):
        self.driver.bodies.apply(self.kind, body, path, "null")
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = value

    def request(self, what, method, body, name=None, sub=None):
        media = PATCHES["merge"] if method == "PATCH" else "application/json"
        return Request(what, method, self.kind.path(self.ns, name, sub), body, media, self.kind)

    def body(self, name):
        body = self.driver.bodies.make(self.kind, self.ns, name)
        body["metadata"]["name"] = name
        return body

    def requests(self):
        kind, schemas = self.kind, self.driver.schemas
        yield self.request("create", "POST", self.body("base"))
        for path in self.fields(schemas.paths(kind)):
            for value in values_of(schemas.at(kind, path)):
                self.made += 1
                body = self.body(f"x{self.made}")
                self.set(body, path, value)
                yield self.request("create", "POST", body)
                part = {key: body[key] for key in body if key in ("spec", "status")}
                yield self.request("patch", "PATCH", part, "base")
        if "status" in kind.subresources:
            for path in self.fields(schemas.status_paths(kind)):
                for value in values_of(schemas.at(kind, path)):
                    body = {}
                    self.set(body, path, value)
                    yield self.request("status", "PATCH", body, "base", "status")

    def send(self):
        requests = list(self.requests())
        driver = self.driver
        try:
            for k in range(0, len(requests), LANES):
                volley = requests[k:k + LANES]
                driver.send(volley)
                for request in volley:
                    driver.tally(request)
                    self.accepted += request.code < 300
            driver.check_alive()
        except (OSError, AssertionError) as error:
            driver.fail_with_requests(str(error))
        print(f"# {self.kind}: {self.accepted} of {len(requests)} accepted", flush=True)


def live_with_limits(driver):
    """Whatever answer there is, each of the limits is looked at."""
    kinds = {str(kind): kind for kind in driver.kinds}
    ns = driver.namespaces[1]
    requests = [Request("create", "POST", kinds[name].path(ns), driver.bodies.make(kinds[name], ns, "y"),
                        kind=kinds[name])
                for name in ("core/Pod", "core/PersistentVolumeClaim", "core/ConfigMap",
                             "batch.volcano.sh/Job")]
    driver.send(requests)
    for request in requests:
        driver.check_answer(request)


def restart(driver):
    try:
        live_with_limits(driver)
        driver.check()
        driver.kill()
        driver.start()
        driver.check()
        driver.stop()
    except (OSError, AssertionError) as error:
        driver.fail_with_requests(str(error))


def main():
    wanted = sys.argv[1:]
    tap, driver = Tap(), Driver(1)
    tap.step("the server starts", driver.start)
    for kind in driver.kinds if tap.failed == 0 else []:
        chosen = any(part in str(kind) for part in wanted) if wanted else str(kind) in WEIGHTS
        if chosen and "create" in kind.verbs and tap.failed == 0:
            tap.step(f"numbers of {kind}: the server lives, and the sanitizers report nothing",
                     Extremes(driver, kind).send)
    if tap.failed == 0:
        tap.step("every list decodes, also after a kill -9, and the server exits with 0",
                 restart, driver)
    tap.done()


if __name__ == "__main__":
    main()
