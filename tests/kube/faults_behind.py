# SPDX-License-Identifier: Apache-2.0
"""Objects that somebody else changes while we are at work on them."""

import proxy as faults
from faults_world import CORES, DEADLINE_S, GROUPS, await_true, expect

RESTART = ({"event": "PodEvicted", "action": "RestartJob"},
           {"event": "PodFailed", "action": "RestartJob"})
PODS = "/api/v1/namespaces/default/pods"
EXAMPLE = "example.com/kept"


class Held:
    """A job whose binds are on their way and do not arrive."""

    def __init__(self, world, name, **job):
        self.world, self.name, self.hold = world, name, faults.Hold()
        self.rule = world.proxy.rule(self.hold, method="POST", path="/binding")
        world.submit(name, **job)
        await_true("binds are under way",
                   lambda: self.hold.waiting == job.get("replicas", CORES), DEADLINE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.rule.remove()
        self.hold.open.set()


def completes(world, name):
    world.await_phase(name)
    world.check()


def pods(tap, world):
    def deleted():
        """One of a gang that runs."""
        world.submit("cut", runs="3s", policies=RESTART)
        world.await_phase("cut", "Running")
        world.must(f"{PODS}/cut-w-0", "DELETE")
        completes(world, "cut")
        expect("retries", world.job("cut")["status"].get("retryCount"), 1)

    def deleted_when_bound():
        """Others of the same names come in their place, and must not be bound for them."""
        with Held(world, "swapped", policies=RESTART):
            for k in range(CORES): # the job may be quicker with the others
                world.request(f"{PODS}/swapped-w-{k}?gracePeriodSeconds=0", "DELETE")
        completes(world, "swapped")

    def finalizer():
        """A pod that cannot go: the job waits for it, and makes no second one."""
        world.submit("kept", runs="forever", policies=RESTART)
        world.await_phase("kept", "Running")
        world.merge(f"{PODS}/kept-w-0", {"metadata": {"finalizers": [EXAMPLE]}})
        world.must(f"{PODS}/kept-w-1", "DELETE")
        await_true("the job begins anew", lambda: world.phase("kept") == "Restarting")
        await_true("three are gone", lambda: len(
            [p for p in world.pods("kept") if p["metadata"].get("deletionTimestamp")]) == 1)
        expect("the fourth is the old one",
               len(world.overseer.uids[("default", "kept-w-0")]), 1)
        world.merge(f"{PODS}/kept-w-0", {"metadata": {"finalizers": None}})
        world.await_phase("kept", "Running")
        await_true("all run again", lambda: world.job("kept")["status"].get("running") == CORES)
        world.delete("kept")
        world.check()

    def ended_by_others():
        """Somebody writes that a pod has failed."""
        world.submit("failed", runs="3s", policies=RESTART)
        world.await_phase("failed", "Running")
        world.merge(f"{PODS}/failed-w-2/status", {"status": {"phase": "Failed"}})
        completes(world, "failed")

    tap.step("a pod of a running gang is deleted: the job restarts and completes", deleted)
    tap.step("pods are deleted while binds are in progress: replacements are created and bound",
             deleted_when_bound)
    tap.step("a finalizer keeps a pod: the job waits for it", finalizer)
    tap.step("another client reports that a pod has failed: the job restarts and completes",
             ended_by_others)


def objects(tap, world):
    queue = f"{GROUPS['Queue']}/queues"

    def command(action, name):
        uid = world.must(f"{queue}/{name}")["metadata"]["uid"]
        world.must("/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands", "POST",
                   {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
                    "metadata": {"generateName": "do-"}, "action": action,
                    "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                               "name": name, "uid": uid}})

    def is_in(name, *states):
        return lambda: world.must(f"{queue}/{name}").get("status", {}).get("state") in states

    def closed_queue():
        world.must(queue, "POST", {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                                   "metadata": {"name": "side"},
                                   "spec": {"weight": 1, "reclaimable": True}})
        await_true("it is open", is_in("side", "Open"))
        with Held(world, "closing", queue="side"):
            command("CloseQueue", "side")
            await_true("it closes", is_in("side", "Closing"))
        completes(world, "closing")
        code, answer = world.request(
            f"{GROUPS['Job']}/namespaces/default/jobs?dryRun=All", "POST",
            {**world.job("closing"), "metadata": {"name": "refused"}})
        expect(f"code of a job for a closed queue, {answer.get('message')}", code >= 400, True)
        command("OpenQueue", "side")
        await_true("it is open again", is_in("side", "Open"))
        world.submit("opened", queue="side")
        completes(world, "opened")

    def edited_group():
        with Held(world, "edited"):
            group = world.path("PodGroup", world.group("edited"))
            world.merge(group, {"spec": {"minMember": 100}})
        world.await_bound("edited", CORES)
        completes(world, "edited")

    def forgotten_group():
        """Its status is wiped while pods wait for their binds."""
        with Held(world, "wiped"):
            group = world.path("PodGroup", world.group("wiped"))
            world.merge(group, {"status": None})
        completes(world, "wiped")

    def deleted_group():
        world.submit("groupless", runs="3s")
        world.await_phase("groupless", "Running")
        world.must(world.path("PodGroup", world.group("groupless")), "DELETE")
        completes(world, "groupless")

    def scaled():
        """Down while binds are under way, then up."""
        path = world.path("Job", "scaled")
        replicas = lambda n: [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": n}]
        change = lambda n: world.must(path, "PATCH", replicas(n), "application/json-patch+json")
        with Held(world, "scaled", replicas=4, minimum=1, runs="forever",
                  task={"minAvailable": 1}):
            change(2)
        await_true("two are left", lambda: len(world.bound("scaled")) == 2 ==
                   len(world.pods("scaled")), DEADLINE_S)
        change(6)
        world.await_bound("scaled", 6)
        world.delete("scaled")
        world.check()

    def finalizer_of_a_job():
        """It cannot go, but what belongs to it does, and is not made again."""
        world.submit("held", runs="forever")
        world.await_phase("held", "Running")
        path = world.path("Job", "held")
        world.merge(path, {"metadata": {"finalizers": [EXAMPLE]}})
        world.must(path + "?propagationPolicy=Foreground", "DELETE")
        await_true("its pods are gone", lambda: world.pods("held") == [], DEADLINE_S)
        expect("it is still there", world.request(path)[0], 200)
        world.merge(path, {"metadata": {"finalizers": None}})
        await_true("it is gone", lambda: world.request(path)[0] == 404)
        world.check()

    tap.step("a queue is closed while binds are in progress: the job in it completes, no other "
             "is taken, and it opens again", closed_queue)
    tap.step("a PodGroup asks for more than the cluster has: bound pods stay, the job completes",
             edited_group)
    tap.step("a PodGroup's status is wiped: the job completes", forgotten_group)
    tap.step("a PodGroup is deleted: the job completes", deleted_group)
    tap.step("a job is scaled down while binds are in progress, then up", scaled)
    tap.step("a finalizer keeps a deleted job: its pods end", finalizer_of_a_job)


def labels(tap, world):
    def changed():
        """The label that the pods ask for moves to another node while binds are under way."""
        first, second = (n["metadata"]["name"] for n in
                         world.must("/api/v1/nodes")["items"][:2])
        mark = lambda node, value: world.merge(f"/api/v1/nodes/{node}",
                                               {"metadata": {"labels": {"example.com/at": value}}})
        mark(first, "here")
        with Held(world, "moved", replicas=2, node={"example.com/at": "here"}):
            mark(first, None)
            mark(second, "here")
        world.submit("follows", replicas=2, runs="2s", node={"example.com/at": "here"})
        world.await_bound("follows", 2)
        expect("nodes of those that came after",
               {p["spec"]["nodeName"] for p in world.bound("follows")}, {second})
        for name in ("moved", "follows"):
            completes(world, name)
            world.made_once(name, 2)
        mark(second, None)

    tap.step("labels move to another node while binds are in progress", changed)


STORIES = (pods, objects, labels)
