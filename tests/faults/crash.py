#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that dies says so, starts again, and skips what it dies of; one request cannot make it
work without bound.

The points about a crash on purpose need a build with sanitizers: only that one looks at
HEKLA_CRASH_AT, which names the worker and the object to die of.
"""

import os
import re
import signal
import subprocess

from harness import HEKLA, Server, Tap, await_true, expect, expect_in, scratch

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
SANITIZED = b"__asan_init" in open(HEKLA, "rb").read()
WINDOW = 1000 # pods without a node that a workload may have beyond its gang
NODES = 2
POISON = "job-controller default/poison"


def job(name, *replicas, **spec):
    template = {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]}}
    tasks = [{"name": f"t{k}", "replicas": n, "template": template}
             for k, n in enumerate(replicas)]
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
            "spec": {"minAvailable": 1, "schedulerName": "volcano", "tasks": tasks, **spec}}


def up(data, *args, env=None):
    return Server(data, "--no-node", "--sim-nodes", str(NODES), "--sim-model", "duration=forever",
                  *args, verb="up", env=env)


def status_of(server, name):
    return server.api("GET", f"{JOBS}/{name}").json().get("status", {})


# ---- last words ----

def last_words(number, name):
    """One line with all that a report needs, and the signal as the status."""
    server = up(scratch() / "data").start()
    process = server.process
    os.kill(process.pid, number)
    expect("end of the process", process.wait(30), -number)
    server.reader.join()
    lines = [line for line in server.log if 'msg="fatal signal"' in line]
    expect("lines about the signal", len(lines), 1)
    version = subprocess.run([HEKLA, "version"], capture_output=True, text=True).stdout.split()[1]
    for part in ("level=error", f"version={version} ", f"signal={name} ", "address=0x",
                 f"pid={process.pid} "):
        expect_in("line", lines[0], part)
    frames = lines[0].split("backtrace=")[1].split(",")
    if not any(re.fullmatch(r"hekla\+0x[0-9a-f]+", frame) for frame in frames):
        raise AssertionError(f"no frame of the program in {frames}")


def early_end_is_reported():
    """--detach waits for the work of the start."""
    data = scratch() / "data"
    server = up(data).start()
    expect("code", server.api("POST", JOBS, job("poison", 1)).code, 201)
    expect("status", server.stop(), 0)
    done = subprocess.run([HEKLA, "up", "-d", str(data), "--listen", "127.0.0.1:0", "--no-node",
                           "--detach"], env=dict(os.environ, HEKLA_CRASH_AT=POISON),
                          capture_output=True, text=True, timeout=60)
    expect(f"status of {done}", done.returncode, 1)
    expect_in("message", done.stderr, "ended by signal 6")
    expect_in("message", done.stderr, f"{data}/hekla.log")


def a_good_start_detaches():
    data = scratch() / "data"
    command = [HEKLA, "up", "-d", str(data), "--listen", "127.0.0.1:0", "--no-node", "--detach"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=60)
    expect("status", done.returncode, 0)
    done = subprocess.run([HEKLA, "down", "-d", str(data)], stdout=subprocess.DEVNULL, timeout=60)
    expect("status", done.returncode, 0)


# ---- objects ----

def a_quota_without_limits():
    """kubectl create quota q, and then anything in that namespace; also at every start."""
    server = up(scratch() / "data").start()
    maps = "/api/v1/namespaces/default/configmaps"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {}}
    made = server.api("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    expect(f"code of {made}", made.code, 201)
    expect("code", server.api("POST", maps, {"metadata": {"name": "x"}}).code, 201)
    expect("code", server.api("DELETE", f"{maps}/kube-root-ca.crt").code, 200)
    for _ in range(3):
        expect("status", server.stop(), 0)
        server.start()
        await_true("the authority's map", lambda: server.api(
            "GET", f"{maps}/kube-root-ca.crt").code == 200)
    expect("status", server.stop(), 0)


def poison_is_skipped():
    """Twice the server dies of the job. The third start serves it, says so, and runs the others."""
    data = scratch() / "data"
    server = up(data).start()
    for name in ("poison", "fine"):
        expect("code", server.api("POST", JOBS, job(name, 1)).code, 201)
    expect("status", server.stop(), 0)
    poisoned = {"HEKLA_CRASH_AT": POISON}
    for _ in range(2):
        dying = up(data, env=poisoned).launch()
        expect("end of the process", dying.process.wait(60), -signal.SIGABRT)
        dying.kill()
    server = up(data, env=poisoned).start()
    server.await_log('msg="skipping an object" controller=job-controller object=default/poison')
    expect("code", server.api("POST", JOBS, job("late", 1)).code, 201)
    await_true("another job runs", lambda: status_of(server, "late").get("running") == 1)
    shown = subprocess.run([HEKLA, "status", "-d", str(data)], capture_output=True, text=True)
    expect_in("hekla status", shown.stdout, POISON)
    await_true("an Event about it", lambda: any(
        e["reason"] == "Quarantined" and e["involvedObject"]["name"] == "poison" for e in
        server.api("GET", "/api/v1/namespaces/default/events").json()["items"]))
    expect("status", server.stop(), 0)
    server = up(data).start() # still skipped, and no longer deadly
    server.await_log('msg="skipping an object"')
    expect("code", server.api("DELETE", f"{JOBS}/poison").code, 200)
    await_true("it is gone", lambda: server.api("GET", f"{JOBS}/poison").code == 404)
    expect("status", server.stop(), 0)


def die_twice(data, where, act=None):
    """Two lives, each of which ends with the object; act, given the server, sets it off."""
    for _ in range(2):
        dying = up(data, env={"HEKLA_CRASH_AT": where})
        if act:
            dying.start()
            act(dying)
        else:
            dying.launch()
        expect(f"end of the process at {where}", dying.process.wait(60), -signal.SIGABRT)
        dying.kill()


def expect_skipped(server, what, data):
    """The log and hekla status name it, and others are served."""
    server.await_log('msg="skipping an object"')
    shown = subprocess.run([HEKLA, "status", "-d", str(data)], capture_output=True, text=True)
    expect_in("hekla status", shown.stdout, what)
    expect("code", server.api("POST", JOBS, job("late", 1)).code, 201)
    await_true("another job runs", lambda: status_of(server, "late").get("running") == 1)


def with_jobs(*names):
    data = scratch() / "data"
    server = up(data).start()
    for name in names:
        expect("code", server.api("POST", JOBS, job(name, 1)).code, 201)
        await_true(f"{name} runs", lambda: status_of(server, name).get("running") == 1)
    return data, server


def scheduler_skips_what_it_takes_in():
    """At the start every pod is taken in."""
    data, server = with_jobs("poison")
    expect("status", server.stop(), 0)
    what = "pods default/poison-t0-0"
    die_twice(data, what)
    server = up(data, env={"HEKLA_CRASH_AT": what}).start()
    expect_skipped(server, what, data)
    expect("status", server.stop(), 0)


def scheduler_skips_a_job_at_work():
    """A session dies with the job in its hands: its PodGroup is left out from then on."""
    data = scratch() / "data"
    server = up(data).start()
    too_large = job("poison", 1)
    too_large["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"][
        "requests"]["cpu"] = "1000"
    expect("code", server.api("POST", JOBS, too_large).code, 201)
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    await_true("its group", lambda: len(server.api("GET", groups).json()["items"]) == 1)
    name = server.api("GET", groups).json()["items"][0]["metadata"]["name"]
    expect("status", server.stop(), 0)
    what = f"podgroups default/{name}"
    die_twice(data, f"moved {what}")
    server = up(data, env={"HEKLA_CRASH_AT": f"moved {what}"}).start()
    expect_skipped(server, what, data)
    expect("status", server.stop(), 0)


def agent_skips_a_pod():
    data, server = with_jobs("poison")
    expect("status", server.stop(), 0)
    what = "agent default/poison-t0-0"
    die_twice(data, what)
    server = up(data, env={"HEKLA_CRASH_AT": what}).start()
    expect_skipped(server, what, data)
    expect("code", server.api("DELETE", f"{PODS}/poison-t0-0?gracePeriodSeconds=0").code, 200)
    expect("status", server.stop(), 0)


def furnisher_skips_a_namespace():
    data = scratch() / "data"
    server = up(data).start()
    body = {"metadata": {"name": "poison"}}
    expect("code", server.api("POST", "/api/v1/namespaces", body).code, 201)
    account = "/api/v1/namespaces/poison/serviceaccounts/default"
    await_true("its account", lambda: server.api("GET", account).code == 200)
    expect("status", server.stop(), 0)
    what = "namespace-defaults poison"
    die_twice(data, what)
    server = up(data, env={"HEKLA_CRASH_AT": what}).start()
    expect_skipped(server, what, data)
    expect("status", server.stop(), 0)


def admission_refuses_what_was_deadly():
    """A client that repeats its request gets an answer the third time; another body, and another
    object, are served."""
    data = scratch() / "data"
    maps = "/api/v1/namespaces/default/configmaps"
    poison = {"metadata": {"name": "poison"}, "data": {"k": "v"}}
    what = "admission of configmaps default/poison"

    def ask_in_vain(server):
        try:
            answer = server.api("POST", maps, poison)
        except OSError:
            return
        raise AssertionError(f"the server that was to die answered {answer}")

    die_twice(data, what, ask_in_vain)
    server = up(data, env={"HEKLA_CRASH_AT": what}).start()
    for _ in range(2):
        answer = server.api("POST", maps, poison)
        expect(f"code of {answer}", answer.code, 500)
        expect_in("message", answer.json()["message"], "the server died of this object twice")
    expect_skipped(server, what, data)
    expect("status", server.stop(), 0)
    server.env.pop("HEKLA_CRASH_AT") # mended meanwhile
    server.start()
    expect("code", server.api("POST", maps, poison).code, 500)
    answer = server.api("POST", maps, {**poison, "data": {"k": "w"}})
    expect(f"code of {answer}", answer.code, 201)
    expect("code", server.api("DELETE", f"{maps}/poison").code, 200)
    expect("code", server.api("POST", maps, poison).code, 201)
    expect("status", server.stop(), 0)


def a_change_is_another_chance():
    data = scratch() / "data"
    server = up(data).start()
    expect("code", server.api("POST", JOBS, job("poison", 1)).code, 201)
    expect("status", server.stop(), 0)
    for _ in range(2):
        dying = up(data, env={"HEKLA_CRASH_AT": POISON}).launch()
        expect("end of the process", dying.process.wait(60), -signal.SIGABRT)
        dying.kill()
    server.start()
    server.await_log('msg="skipping an object"')
    changed = server.api("PATCH", f"{JOBS}/poison", {"metadata": {"labels": {"a": "b"}}},
                         content_type="application/merge-patch+json")
    expect(f"code of {changed}", changed.code, 200)
    await_true("it runs", lambda: status_of(server, "poison").get("running") == 1)
    expect("status", server.stop(), 0)


# ---- how much one request can ask for ----

def sizes_are_refused():
    server = up(scratch() / "data", "--max-replicas", "5000").start()
    for body, field in ((job("j", 10**9), "spec.tasks[0].replicas: Invalid value: 1000000000"),
                        (job("j", 3000, 3000), "spec.tasks: Invalid value: 6000"),
                        (job("j", 2**31 - 1, 2**31 - 1, 2**31 - 1), "spec.tasks[0].replicas"),
                        (job("j", 5001), "must be less than or equal to 5000 (--max-replicas)")):
        answer = server.api("POST", JOBS, body)
        expect(f"code of {answer}", answer.code, 422)
        expect_in("message", answer.json()["message"], field)
    expect("code", server.api("POST", JOBS, job("j", 1)).code, 201)
    doors = (("application/merge-patch+json", {"spec": {"tasks": job("j", 10**6)["spec"]["tasks"]}}),
             ("application/json-patch+json",
              '[{"op":"replace","path":"/spec/tasks/0/replicas","value":1000000}]'),
             ("application/apply-patch+yaml", job("j", 10**6)))
    for media, body in doors:
        query = "?fieldManager=m&force=true" if "apply" in media else ""
        answer = server.api("PATCH", f"{JOBS}/j{query}", body, content_type=media)
        expect(f"code of {media} {answer}", answer.code, 422)
    sets = "/apis/apps/v1/namespaces/default/deployments"
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
                     "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                         "containers": [{"name": "c", "image": "i"}]}}}}
    expect("code", server.api("POST", sets, made).code, 201)
    answer = server.api("PATCH", f"{sets}/d/scale", {"spec": {"replicas": 10**6}},
                        content_type="application/merge-patch+json")
    expect(f"code of {answer}", answer.code, 422)
    expect("status", server.stop(), 0)


def a_large_job_waits_as_a_number():
    """100,000 replicas on two nodes of 32 cpus: what runs, the window, and no more."""
    server = up(scratch() / "data").start()
    before = server.rss_kib()
    expect("code", server.api("POST", JOBS, job("large", 100000)).code, 201)
    running = NODES * 32
    await_true("the nodes are full", lambda: status_of(server, "large").get("running") == running,
               120)
    await_true("the others wait", lambda: status_of(server, "large").get("pending") ==
               100000 - running, 120)
    expect("code", server.api("POST", JOBS, job("small", 1)).code, 201)
    await_true("another job is let in", lambda: status_of(server, "small").get("pending") == 1, 60)
    pods = len(server.api("GET", f"{PODS}?labelSelector=volcano.sh/job-name%3Dlarge").json()["items"])
    if pods > WINDOW + running:
        raise AssertionError(f"{pods} pods, expected at most {WINDOW + running}")
    grown = server.rss_kib() - before
    if not SANITIZED and grown > 200 * 1024:
        raise AssertionError(f"{grown} KiB more memory, expected at most {200 * 1024}")
    expect("status", server.stop(), 0)


REPLICAS = 50000
MERGE = "application/merge-patch+json"


def workload(version, kind, name, **spec):
    """For one of the nodes alone, so that others find room on the other."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {
        "schedulerName": "volcano", "nodeSelector": {"kubernetes.io/hostname": "sim-00001"},
        "containers": [{"name": "main", "image": "busybox",
                        "resources": {"requests": {"cpu": "1"}}}]}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name},
            "spec": {"template": template, **spec}}


# What is made, where, and what takes all of it back.
LARGE = (
    ("/apis/apps/v1/namespaces/default/deployments",
     workload("apps/v1", "Deployment", "web", replicas=REPLICAS), {"replicas": 0}),
    ("/apis/apps/v1/namespaces/default/statefulsets",
     workload("apps/v1", "StatefulSet", "db", replicas=REPLICAS, podManagementPolicy="Parallel",
              serviceName="db"), {"replicas": 0}),
    ("/apis/batch/v1/namespaces/default/jobs",
     workload("batch/v1", "Job", "sum", parallelism=REPLICAS, completions=REPLICAS),
     {"parallelism": 0}),
)


def pods_of(server, app):
    pods = server.api("GET", f"{PODS}?labelSelector=app%3D{app}").json()["items"]
    placed = sum("nodeName" in pod["spec"] for pod in pods)
    return placed, len(pods) - placed


def check_window(server, app):
    placed, waiting = pods_of(server, app)
    if waiting > WINDOW or placed > 32:
        raise AssertionError(f"{app}: {waiting} pods wait and {placed} are placed, "
                             f"expected at most {WINDOW} and 32")
    return waiting


def large_workloads_wait_as_numbers():
    """50,000 replicas of a Deployment, a StatefulSet and a batch Job on one node of 32 cpus."""
    server = up(scratch() / "data").start()
    names = [body["metadata"]["name"] for _, body, _ in LARGE]
    for path, body, _ in LARGE:
        made = server.api("POST", path, body)
        expect(f"code of {made}", made.code, 201)
    expect("code", server.api("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}}).code,
           201)
    small = JOBS.replace("/default/", "/other/")
    expect("code", server.api("POST", small, job("small", 2)).code, 201)

    def small_runs():
        for name in names:
            check_window(server, name)
        return server.api("GET", f"{small}/small").json().get("status", {}).get("running") == 2

    await_true("a job of another namespace runs", small_runs, 60)
    await_true("the windows are full",
               lambda: all(check_window(server, name) > WINDOW * 3 // 4 for name in names), 120)
    await_true("the node is full", lambda: sum(pods_of(server, name)[0] for name in names) == 32,
               60)
    statuses = [server.api("GET", f"{path}/{body['metadata']['name']}").json()["status"]
                for path, body, _ in LARGE]
    for name, status, field in zip(names, statuses, ("replicas", "replicas", "active")):
        if not 0 < status[field] <= WINDOW + 32:
            raise AssertionError(f"status.{field} of {name}: {status[field]}")
    for path, body, spec in LARGE:
        answer = server.api("PATCH", f"{path}/{body['metadata']['name']}", {"spec": spec},
                            content_type=MERGE)
        expect(f"code of {answer}", answer.code, 200)
    await_true("no pod is left", lambda: all(pods_of(server, name) == (0, 0) for name in names),
               120)
    expect("status", server.stop(), 0)


def main():
    tap = Tap()
    for number, name in ((signal.SIGSEGV, "SIGSEGV"), (signal.SIGABRT, "SIGABRT"),
                         (signal.SIGFPE, "SIGFPE")):
        title = f"{name} leaves one line with version, address and backtrace"
        if SANITIZED:
            tap.skip(title, "sanitizers have handlers of their own")
        else:
            tap.step(title, last_words, number, name)
    tap.step("a working server in the background stays detached", a_good_start_detaches)
    tap.step("a quota without limits does no harm, also at a start", a_quota_without_limits)
    tap.step("replicas beyond the limit are refused on every path", sizes_are_refused)
    tap.step("waiting replicas of a large job are only counted", a_large_job_waits_as_a_number)
    tap.step("waiting replicas of large Kubernetes workloads are only counted",
             large_workloads_wait_as_numbers)
    for title, fn in (("--detach reports an end within the first moments", early_end_is_reported),
                      ("an object that is deadly twice is skipped", poison_is_skipped),
                      ("skipped by the scheduler that takes it in", scheduler_skips_what_it_takes_in),
                      ("skipped by the scheduler at work on a job", scheduler_skips_a_job_at_work),
                      ("skipped by the agent", agent_skips_a_pod),
                      ("skipped by the furnisher of namespaces", furnisher_skips_a_namespace),
                      ("refused by admission when it was deadly twice", admission_refuses_what_was_deadly),
                      ("a change gives it another chance", a_change_is_another_chance)):
        if SANITIZED:
            tap.step(title, fn)
        else:
            tap.skip(title, "only a build with sanitizers dies on purpose")
    tap.done()


if __name__ == "__main__":
    main()
