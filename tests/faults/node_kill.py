#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of hekla up, whatever its pods are about to do: each task runs exactly once, exit codes
and output are kept, what was to be stopped is, and nothing is left behind.

    node_kill.py [--seed N] [--rounds N]
"""

import argparse
import random
import signal
import time

from harness import Tap, await_true, expect
from pods import PODS, Node, may_isolate, sh

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
ROUNDS = 12


class Work:
    """Tasks that leave one line each when they run, and end with a code of their own."""

    def __init__(self, node):
        self.node, self.record = node, node.home / "record"
        self.clear_record()

    def clear_record(self):
        self.record.write_text("")
        self.codes, self.runs = {}, {} # exit codes of pods, and how often each line is to be there

    def script(self, name, code, seconds):
        return (f"echo {name} >> {self.record}; echo said by {name}; sleep {seconds}; exit {code}")

    def add(self, name, code, seconds=0.0):
        self.codes[name], self.runs[name] = code, 1
        self.node.create(name, sh(self.script(name, code, seconds)))

    def add_prepared(self, name, code, seconds):
        """With an init container, which runs once as well."""
        before = sh(self.script(f"{name}-init", 0, seconds))
        self.codes[name], self.runs[name], self.runs[f"{name}-init"] = code, 1, 1
        self.node.create(name, sh(self.script(name, code, seconds)),
                         initContainers=[dict(before, name="init")])

    def add_retried(self, name, seconds):
        """Fails at first, and then does not."""
        self.codes[name], self.runs[name] = 0, 2
        self.node.create(name, sh(f"echo {name} >> {self.record}; echo said by {name}; "
                                  f"sleep {seconds}; [ $(grep -cx {name} {self.record}) = 2 ]"),
                         restartPolicy="OnFailure")

    def add_job(self, name, replicas):
        for k in range(replicas):
            self.codes[f"{name}-w-{k}"], self.runs[f"{name}-w-{k}"] = 0, 1
        container = sh(f"echo $HOSTNAME_OF_POD >> {self.record}; echo said by $HOSTNAME_OF_POD",
                       env=[{"name": "HOSTNAME_OF_POD",
                             "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                            {"name": "HEKLA_POD_MARK", "value": self.node.mark}])
        answer = self.node.api("POST", JOBS, {
            "kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": name},
            "spec": {"minAvailable": replicas, "tasks": [{
                "name": "w", "replicas": replicas,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}]}})
        expect(f"answer to job {name} ({answer})", answer.code, 201)

    def ended(self):
        return all(self.node.state(name)[0] == "terminated" for name in self.codes)

    def check(self):
        try:
            await_true("all tasks to have ended", self.ended, 60)
        except AssertionError as error:
            states = {n: self.node.state(n) for n in self.codes}
            late = {n: s for n, s in states.items() if s[0] != "terminated"}
            raise AssertionError(f"{error}: {late}") from None
        lines = self.record.read_text().split()
        expect("how often tasks ran", {n: lines.count(n) for n in set(lines) | self.runs.keys()},
               self.runs)
        for name, code in self.codes.items():
            pod = self.node.get(name)
            self.node.uids.add(pod["metadata"]["uid"])
            status = pod["status"]["containerStatuses"][0]
            expect(f"end of {name} ({status['state']})",
                   (status["state"]["terminated"]["exitCode"], status["restartCount"]),
                   (code, self.runs[name] - 1))
            expect(f"phase of {name}", pod["status"]["phase"],
                   "Failed" if code else "Succeeded")
            expect(f"output of {name}", self.node.log(name), f"said by {name}\n")

    def clear(self):
        self.node.api("DELETE", JOBS)
        self.node.delete_all()
        self.node.expect_nothing_left()
        self.clear_record()


def restart(node):
    node.server.kill()
    node.start()


def before_the_start(node, work):
    """Told to the API, and at best seen by somebody."""
    work.add("early", 3)
    restart(node)
    work.check()
    work.clear()


def between_end_and_report(node, work):
    work.add("ender", 4, 0.5)
    node.await_state("ender", "running")
    uid = node.get("ender")["metadata"]["uid"]
    node.server.process.send_signal(signal.SIGSTOP)
    await_true("the end on record", (node.server.seen / f"node/run/{uid}/main.0/end").exists)
    restart(node)
    work.check()
    work.clear()


def while_it_ran(node, work):
    """It ends, and talks, while nobody looks after the node."""
    work.add("runner", 5, 0.5)
    node.await_state("runner", "running")
    uid = node.get("runner")["metadata"]["uid"]
    node.server.kill()
    await_true("the end on record", (node.server.seen / f"node/run/{uid}/main.0/end").exists)
    node.start()
    work.check()
    work.clear()


def while_stopping(node, _):
    node.create("deaf", sh("trap '' TERM; while :; do sleep 0.1; done"),
                terminationGracePeriodSeconds=2)
    node.await_state("deaf", "running")
    node.api("DELETE", f"{PODS}/deaf")
    restart(node)
    await_true("the pod to be gone", lambda: not node.get("deaf"))
    node.expect_nothing_left()


def deleted_at_the_last_moment(node, _):
    """Forced out of the API; the agent dies before it can act."""
    node.create("forced", sh("exec sleep 4717"))
    node.await_state("forced", "running")
    node.api("DELETE", f"{PODS}/forced?gracePeriodSeconds=0")
    restart(node)
    await_true("the pod to be gone", lambda: not node.get("forced"))
    node.expect_nothing_left()


def at_random(node, work, seed, rounds):
    """Tasks come, start and end under it all the time."""
    dice = random.Random(seed)
    for k in range(rounds):
        pause = lambda: dice.choice((0, 0, 0.05, 0.3))
        work.add(f"plain{k}", dice.choice((0, 0, 1, 7, 42)), pause())
        work.add(f"more{k}", dice.choice((0, 0, 1, 7, 42)), pause())
        work.add_prepared(f"prepared{k}", dice.choice((0, 3)), pause())
        work.add_retried(f"retried{k}", pause())
        if k % 4 == 0:
            work.add_job(f"job{k}", 3)
        time.sleep(dice.random() * 0.4) # when it dies is the dice's to say
        restart_in_the_middle(node, dice)
    work.check()
    for _ in range(3):
        for name in dice.sample(sorted(work.codes), 5):
            node.api("DELETE", f"{PODS}/{name}")
        restart_in_the_middle(node, dice)
    work.clear()


def restart_in_the_middle(node, dice):
    """Also while it comes up."""
    node.server.kill()
    if dice.random() < 0.3:
        node.server.launch()
        time.sleep(dice.random() * 0.1)
        node.server.kill()
    node.server.start()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--rounds", type=int, default=ROUNDS)
    o = options.parse_args()
    if not may_isolate():
        print("1..0 # skip mount namespaces are not permitted")
        return
    tap, node = Tap(), Node().start()
    work = Work(node)
    tap.step("killed before the start", before_the_start, node, work)
    tap.step("killed while it runs", while_it_ran, node, work)
    tap.step("killed between end and report", between_end_and_report, node, work)
    tap.step("killed while stopping", while_stopping, node, work)
    tap.step("killed after a forced deletion", deleted_at_the_last_moment, node, work)
    tap.step(f"killed at random under load, seed {o.seed}", at_random, node, work, o.seed, o.rounds)
    tap.step("the server exits with 0", lambda: expect("status", node.server.stop(), 0))
    tap.step("no process or file is left", node.expect_nothing_left)
    tap.done()


main()
