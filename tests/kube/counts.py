#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a pod costs a real API server, in writes, and that nothing is written when nothing happens.

Counters of the audit log only; how long anything takes is for tests/kube/bench.py. Prints TAP.
"""

import sys
from collections import Counter

import load
from audit import is_heartbeat, is_write
from bench import OURS, idle_writes, pods_of, unschedulable
from cluster import Failed, peers
from world import World

NODES, IDLE_S = 20, 15
GROUPS = [1] * 40 + [8] * 10 + [64]
JOBS = [1] * 40 + [8] * 10


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def point(self, what, wrong):
        """wrong is a list of words; none is a success."""
        self.n += 1
        self.failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {self.n} - {what}", flush=True)
        for line in wrong:
            print(f"# {line}", flush=True)

    def end(self):
        print(f"1..{self.n}")
        return 1 if self.failed else 0


def writes_of(program, requests):
    """(verb, what) -> how many, heartbeats apart."""
    return Counter((r.verb, r.what) for r in requests
                   if r.program == program and is_write(r) and not is_heartbeat(r))


def outside(counts, limits):
    """What lies outside of its (least, most); what has no limits must not be there at all."""
    return [f"{verb} {what}: {n}, want {' to '.join(map(str, limits.get((verb, what), (0, 0))))}"
            for (verb, what), n in sorted({**dict.fromkeys(limits, 0), **counts}.items())
            if not limits.get((verb, what), (0, 0))[0] <= n <= limits.get((verb, what), (0, 0))[1]]


def bound(w, objects, pods):
    """The requests until all are bound and everything is said."""
    w.await_quiet()
    audit = w.audit()
    load.create(w.plane, objects)
    w.await_bound(audit, pods)
    w.await_quiet()
    return audit.requests()


def scheduler_alone(tap, w):
    """Groups and pods that are there before the scheduler is: each group is written once."""
    load.create(w.plane, [x for g, n in enumerate(GROUPS)
                          for x in pods_of(f"a{g}", n, annotations=load.NEVER_STARTS)])
    w.await_quiet()
    audit = w.audit()
    w.start_scheduler("hekla")
    pods, groups = sum(GROUPS), len(GROUPS)
    w.await_bound(audit, pods)
    w.await_quiet()
    # A session may let some groups in before it has heard of their pods.
    tap.point("the scheduler writes a bind per pod and a status per transition",
              outside(writes_of("scheduler", audit.requests()), {
                  ("create", "pods/binding"): (pods, pods),
                  ("patch", "podgroups"): (groups, 2 * groups),
                  ("create", "events"): (0, pods + 2 * groups),
                  ("patch", "queues/status"): (1, pods)}))


def jobs_of_all(tap, w):
    """Each job is a group that is let in, runs, and has its pods counted. On a slow machine a gang
    waits for its own pods long enough to say so."""
    requests = bound(w, [(load.JOBS, load.job(f"j{g}", n)) for g, n in enumerate(JOBS)], sum(JOBS))
    pods, groups = sum(JOBS), len(JOBS)
    tap.point("controllers write a pod and a group once, a job at each of its transitions",
              outside(writes_of("controllers", requests), {
                  ("create", "pods"): (pods, pods),
                  ("create", "podgroups"): (groups, groups),
                  ("update", "jobs/status"): (2 * groups, 4 * groups),
                  ("create", "events"): (0, groups)}))
    tap.point("a node writes a pod when it runs",
              outside(writes_of("agent", requests), {("patch", "pods/status"): (pods, 2 * pods)}))
    binds = Counter((r.ns, r.name) for r in requests if r.what == "pods/binding")
    tap.point("no pod is bound twice",
              [f"{ns}/{name}: {n} binds" for (ns, name), n in binds.items() if n > 1])
    tap.point("nobody's write is refused, none is a conflict",
              [f"{r.program} {r.verb} {r.what} {r.name}: {r.code}" for r in requests
               if r.program in OURS and is_write(r) and r.code >= 400])


def nothing_happens(tap, w):
    load.create(w.plane, unschedulable(200))
    w.await_quiet()
    writes = [r for r in idle_writes(w, IDLE_S) if not is_heartbeat(r) and r.program in OURS]
    tap.point("nothing is written while pods cannot be placed and nothing changes",
              [f"{r.program} {r.verb} {r.what} {r.name}" for r in writes])


def main():
    programs = peers()
    if programs is None:
        print("1..0 # skip no control plane to try it on")
        return 0
    tap = Tap()
    try:
        with World(programs, NODES) as w:
            scheduler_alone(tap, w)
            jobs_of_all(tap, w)
            nothing_happens(tap, w)
    except Failed as failure:
        tap.point("the control plane and the programs work", str(failure).splitlines())
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
