#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast and how quiet Hekla is on a real control plane.

    tests/kube/bench.py [--only CASE,...] [--runs N] [--nodes N] [--pods N] [--alone] [--json FILE]

Each run has a control plane of its own, with simulated nodes behind `hekla agent`. The cases:

  groups-G   PodGroups of G pods that were there before the scheduler is started: the scheduler
             alone, since the nodes are there but nobody speaks for them.
  jobs-G     Jobs of G pods: webhooks, controllers, scheduler and nodes together.
  arrive     pods that come one by one to a cluster that has room: from event to bind.
  idle       a minute with unschedulable pods, in which nobody has anything to write.

Rates, latencies and requests are read from the API server's audit log, so nobody watches beside
those at work. Peers are given the same objects in turn: kube-scheduler where pods stand alone, and
Volcano's scheduler everywhere: the one that VC_SCHEDULER names, or that scripts/volcano-peers finds
or builds. Times are printed only. What fails are writes in the idle minute. The programs are those
of scripts/kube-peers; HEKLA names ours.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import load
from audit import WRITES, is_heartbeat, is_write
from cluster import Failed, peers, volcano_peers
from world import Use, World

GANGS = (1, 8, 64)
IDLE_S = 60
ARRIVE_PER_S, ARRIVE_S = 50, 20
OURS = ("scheduler", "controllers", "admission", "agent")
SCHEDULERS = ("scheduler", "kube-scheduler", "vc-scheduler")


# ---- what a run found ----

def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))] if values else 0


class Found:
    """The numbers of one run: requests of the log, and what the processes used."""

    def __init__(self, requests, use, pods, since=None):
        self.requests, self.use, self.pods = requests, use, pods
        binds = [r for r in requests if r.what == "pods/binding" and r.code == 201]
        made = {(r.ns, r.name): r for r in requests
                if (r.what, r.verb, r.code) == ("pods", "create", 201)}
        known = [(made[r.ns, r.name], r) for r in binds if (r.ns, r.name) in made]
        if since is None:
            since = min(r.received for r in requests if r.program == "driver")
        last = max(r.done for r in binds)
        self.total_s = last - since
        self.bind_s = last - min(r.received for r in binds)
        self.asked_ms = [(bind.received - pod.done) * 1e3 for pod, bind in known]
        self.bound_ms = [(bind.done - pod.done) * 1e3 for pod, bind in known]

    def table(self):
        """program -> (verb, what) -> how many, without heartbeats, watches and the driver's."""
        rows = defaultdict(lambda: defaultdict(int))
        for r in self.requests:
            if r.program != "driver" and r.verb != "watch" and not is_heartbeat(r):
                rows[r.program][r.verb, r.what] += 1
        return rows

    def writes_per_pod(self, programs):
        return sum(n for program, row in self.table().items() if program in programs
                   for (verb, _), n in row.items() if verb in WRITES) / self.pods

    def our_share(self):
        total = sum(u["cpu_s"] for u in self.use.values())
        return sum(u["cpu_s"] for name, u in self.use.items() if name in OURS) / total

    def numbers(self):
        scheduler = next(self.use[name] for name in SCHEDULERS if name in self.use)
        return {
            "pods_per_s": self.pods / self.total_s,
            "binds_per_s": self.pods / max(self.bind_s, 1e-6),
            "asked_ms_p50": percentile(self.asked_ms, 0.5),
            "asked_ms_p99": percentile(self.asked_ms, 0.99),
            "bound_ms_p50": percentile(self.bound_ms, 0.5),
            "bound_ms_p99": percentile(self.bound_ms, 0.99),
            "scheduler_writes_per_pod": self.writes_per_pod(SCHEDULERS),
            "all_writes_per_pod": self.writes_per_pod((*OURS, *SCHEDULERS)),
            "scheduler_cpu_us_per_pod": scheduler["cpu_s"] / self.pods * 1e6,
            "scheduler_peak_mb": scheduler["peak_mb"],
            "hekla_cpu_share": self.our_share(),
        }


def show_requests(found):
    refused = defaultdict(int)
    for r in found.requests:
        refused[r.program] += r.code >= 400
    table = found.table()
    for program in sorted(table, key=lambda p: -sum(table[p].values())):
        row = table[program]
        writes = sum(n for (verb, _), n in row.items() if verb in WRITES)
        tail = f", {refused[program]} refused" if refused[program] else ""
        print(f"    {program:24} {sum(row.values()) / found.pods:7.3f} requests, "
              f"{writes / found.pods:6.3f} writes per pod{tail}")
        for (verb, what), n in sorted(row.items(), key=lambda kv: -kv[1]):
            if n / found.pods >= 0.001:
                print(f"        {n / found.pods:7.3f}  {verb} {what}")


def show_use(found):
    for name, u in sorted(found.use.items(), key=lambda kv: -kv[1]["cpu_s"]):
        print(f"    {name:24} {u['cpu_s']:7.2f} s of processor, {u['cpu_s'] / found.pods * 1e6:6.0f} us "
              f"per pod, at most {u['peak_mb']:5.0f} MB")
    print(f"    of this time Hekla's programs took {100 * found.our_share():.0f} %")


def show(name, run, scheduler, found):
    n = found.numbers()
    print(f"{name}, {scheduler}, run {run + 1}: {n['pods_per_s']:.0f} pods/s, "
          f"{n['binds_per_s']:.0f} from the first bind to the last")
    if found.bound_ms:
        print(f"    from pod created to bind asked for {n['asked_ms_p50']:.1f} / "
              f"{n['asked_ms_p99']:.1f} ms (p50 / p99), to bound {n['bound_ms_p50']:.1f} / "
              f"{n['bound_ms_p99']:.1f} ms")
    show_requests(found)
    show_use(found)
    sys.stdout.flush()


# ---- cases ----

def gangs(pods, gang):
    return [gang] * (pods // gang) + ([pods % gang] if pods % gang else [])


def pods_of(g, members, scheduler="hekla", **more):
    """A gang's objects, with a group unless the scheduler knows none."""
    name = f"g{g}"
    alone = scheduler == "kube-scheduler"
    spec = {"scheduler": "default-scheduler"} if alone else {}
    objects = [] if alone else [(load.GROUPS, load.group(name, members))]
    return objects + [(load.PODS, load.pod(f"{name}-{i}", None if alone else name, **spec, **more))
                      for i in range(members)]


def case_groups(o, gang, scheduler):
    with World(o.programs, o.nodes) as w:
        load.create(w.plane, [x for g, n in enumerate(gangs(o.pods, gang))
                              for x in pods_of(g, n, scheduler)])
        w.freeze_nodes()
        w.await_quiet()
        audit, since = w.audit(), time.time()
        w.start_scheduler(scheduler)
        use = Use(w.processes())
        w.await_bound(audit, o.pods)
        used = use.read()
        w.await_quiet()
        return Found(audit.requests(), used, o.pods, since)


def created_and_bound(w, objects, pods, rate=None):
    """What it took until all are bound, and all there was to say about it."""
    w.await_quiet()
    audit, use = w.audit(), Use(w.processes())
    load.create(w.plane, objects, rate)
    w.await_bound(audit, pods)
    used = use.read()
    w.await_quiet()
    return Found(audit.requests(), used, pods)


def case_jobs(o, gang, scheduler):
    with World(o.programs, o.nodes) as w:
        w.start_scheduler(scheduler)
        return created_and_bound(w, [(load.JOBS, load.job(f"j{g}", n))
                                     for g, n in enumerate(gangs(o.pods, gang))], o.pods)


def case_arrive(o, _, scheduler):
    with World(o.programs, o.nodes) as w:
        audit = w.audit()
        w.start_scheduler(scheduler)
        load.create(w.plane, pods_of("first", 1, scheduler))
        w.await_bound(audit, 1)
        pods = ARRIVE_PER_S * ARRIVE_S
        objects = [x for g in range(pods) for x in pods_of(g, 1, scheduler)]
        return created_and_bound(w, objects, pods, ARRIVE_PER_S * len(objects) / pods)


def unschedulable(pods):
    """Pods that want a label no node has: a quarter each of Jobs of 8, groups of 8, groups of one
    and pods without a group."""
    nowhere = {"select": {"bench.hekla.sh/nowhere": "true"}}
    quarter = pods // 4
    objects = [(load.JOBS, load.job(f"nowhere-{g}", n, **nowhere))
               for g, n in enumerate(gangs(quarter, 8))]
    for gang in (8, 1):
        for g, n in enumerate(gangs(quarter, gang)):
            objects += pods_of(f"nowhere-{gang}-{g}", n, **nowhere)
    return objects + [(load.PODS, load.pod(f"nowhere-{g}", **nowhere))
                      for g in range(pods - 3 * quarter)]


def idle_writes(w, seconds):
    """The writes of a while in which nobody has a reason to write, heartbeats among them."""
    audit = w.audit()
    time.sleep(seconds)
    w.check()
    return [r for r in audit.requests() if is_write(r)]


def case_idle(o):
    """The number of writes that should not have been."""
    with World(o.programs, o.nodes) as w:
        w.start_scheduler("hekla")
        load.create(w.plane, unschedulable(o.idle_pods))
        w.await_quiet()
        use = Use(w.processes())
        writes = idle_writes(w, IDLE_S)
        used = use.read()
    rows = defaultdict(int)
    for r in writes:
        rows[is_heartbeat(r), r.program, r.verb, r.what] += 1
    wrong = sum(n for (beat, program, *_), n in rows.items() if not beat and program in OURS)
    print(f"idle, {o.idle_pods} unschedulable pods, {IDLE_S} s: {wrong} writes, want 0")
    for (beat, program, verb, what), n in sorted(rows.items()):
        print(f"    {'heartbeats' if beat else 'writes':10} {n:6}  {program} {verb} {what}")
    for name, u in sorted(used.items()):
        print(f"    {name:24} {100 * u['cpu_s'] / IDLE_S:6.2f} % of a core, at most {u['peak_mb']:.0f} MB")
    return wrong


# ---- all of it ----

def plan(o):
    """(name, case, gang, schedulers)"""
    volcano = ["vc-scheduler"] if os.environ.get("VC_SCHEDULER") and not o.alone else []
    kube = ["kube-scheduler"] if (o.programs / "kube-scheduler").exists() and not o.alone else []
    for gang in GANGS:
        yield f"groups-{gang}", case_groups, gang, ["hekla", *volcano, *(kube if gang == 1 else [])]
    for gang in GANGS:
        yield f"jobs-{gang}", case_jobs, gang, ["hekla", *volcano]
    yield "arrive", case_arrive, 1, ["hekla", *volcano, *kube]


def is_wanted(o, name):
    return not o.only or any(name == word or name.startswith(word + "-") for word in o.only)


def medians(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def show_summary(results):
    print(f"\n{'case':10} {'scheduler':15} {'pods/s':>7} {'binds/s':>8} {'asked p50/p99 ms':>17} "
          f"{'writes/pod':>11} {'of them its':>11} {'its us/pod':>10} {'its MB':>7} {'ours':>5}")
    for (name, scheduler), runs in results.items():
        n, first = medians(runs), results[name, "hekla"]
        latency = f"{n['asked_ms_p50']:.1f} / {n['asked_ms_p99']:.1f}" if n["asked_ms_p99"] else "-"
        print(f"{name:10} {scheduler:15} {n['pods_per_s']:7.0f} {n['binds_per_s']:8.0f} {latency:>17} "
              f"{n['all_writes_per_pod']:11.2f} {n['scheduler_writes_per_pod']:11.2f} "
              f"{n['scheduler_cpu_us_per_pod']:10.0f} {n['scheduler_peak_mb']:7.0f} "
              f"{100 * n['hekla_cpu_share']:4.0f}%")
        if scheduler != "hekla":
            ours = medians(first)
            print(f"{'':10} Hekla in times of {scheduler}: {ours['pods_per_s'] / n['pods_per_s']:.1f} "
                  f"pods/s, {ours['binds_per_s'] / n['binds_per_s']:.1f} binds/s, "
                  f"{ours['scheduler_cpu_us_per_pod'] / n['scheduler_cpu_us_per_pod']:.2f} processor time")


def bench(o):
    results = defaultdict(list)
    for name, case, gang, schedulers in plan(o):
        for run in range(o.runs if is_wanted(o, name) else 0):
            for scheduler in schedulers:
                found = case(o, gang, scheduler)
                show(name, run, scheduler, found)
                results[name, scheduler].append(found.numbers())
    wrong = case_idle(o) if is_wanted(o, "idle") else 0
    if results:
        show_summary(results)
    if o.json:
        o.json.write_text(json.dumps([{"case": name, "scheduler": scheduler, "runs": runs}
                                      for (name, scheduler), runs in results.items()], indent=1))
    return 1 if wrong else 0


def find_volcano():
    """Leaves its scheduler in VC_SCHEDULER, or says that there is none."""
    found = None if os.environ.get("VC_SCHEDULER") else volcano_peers()
    if found:
        os.environ["VC_SCHEDULER"] = str(found / "vc-scheduler")
    elif not os.environ.get("VC_SCHEDULER"):
        print("not compared with Volcano's scheduler, which could not be built: run with "
              "VC_SCHEDULER=/path/to/vc-scheduler where there is one")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda s: s.split(","), help="cases, or their first words")
    parser.add_argument("--runs", type=int, default=1, help="medians are of so many (default 1)")
    parser.add_argument("--nodes", type=int, default=1000, help="simulated nodes (default 1000)")
    parser.add_argument("--pods", type=int, default=10000, help="of each case (default 10000)")
    parser.add_argument("--idle-pods", type=int, default=1000, help="of idle (default 1000)")
    parser.add_argument("--alone", action="store_true", help="Hekla only, without its peers")
    parser.add_argument("--json", type=Path, help="write the numbers of all runs there")
    o = parser.parse_args()
    o.programs = peers("kube-scheduler") or peers()
    if o.programs is None:
        return 1
    if not o.alone:
        find_volcano()
    try:
        return bench(o)
    except Failed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
