#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LeaderWorkerSet: groups of a leader and workers that find their leader, rolling updates, scaling."""

import operators
from clients import Site, Tap, about, expect, go_program, go_source, needs

MODULE = ("sigs.k8s.io/lws", "v0.7.0", "h1:qWfzX8+UBak+Hq0+m/PuE3uO0mp/3dmm5q/h/7z31A8=")
needs("go", "kubectl", "getent")
about("LeaderWorkerSet", MODULE[1][1:], "its webhooks, 2 groups of 2 pods, a rolling update, scaling",
      "the command of the operator's container")
program = go_program("lws", *MODULE, "./cmd")
source = go_source(*MODULE)
tap, site = Tap(), Site()
SET = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    leaderTemplate: &pod
      spec:
        terminationGracePeriodSeconds: 1
        containers:
        - name: c
          image: x
          command: [sh, -c, "until getent hosts $LWS_LEADER_ADDRESS; do sleep 0.2; done; echo edition 1; exec sleep 1000"]
    workerTemplate: *pod
"""


def pods():
    return {pod["metadata"]["name"]: pod for pod in site.get("pods", "", "-l",
            "leaderworkerset.sigs.k8s.io/name=serve")["items"]}


def available():
    return operators.condition(site.get("leaderworkerset", "serve"), "Available") == "True"


def start():
    objects = operators.manifests(site, source / "config/default")
    operators.install(site, operators.replace_images(objects, operators.open_to_all(site, program)))
    operators.available(site, "lws-system", "lws-controller-manager")


def groups():
    site.wait("the webhooks answer", lambda: site.apply(SET))
    site.wait("two groups are available", available, 180)
    expect("pods", sorted(pods()), ["serve-0", "serve-0-1", "serve-1", "serve-1-1"])
    for name in pods():
        site.wait(f"{name} found its leader",
                  lambda name=name: "edition 1" in site.kubectl("logs", name))


def update():
    site.apply(SET.replace("edition 1", "edition 2"))

    def updated():
        said = [site.kubectl("logs", name) for name in pods()]
        return len(said) == 4 and all("edition 2" in text for text in said) and available()
    site.wait("all pods have the second edition", updated, 180)


def scale():
    site.kubectl("scale", "leaderworkerset/serve", "--replicas=1")
    site.wait("one group is left", lambda: sorted(pods()) == ["serve-0", "serve-0-1"])


tap.step("the operator's manifests are applied, and it becomes available", start)
tap.step("two groups start, and each pod finds its leader", groups)
tap.step("an update replaces group after group", update)
tap.step("scaling down removes a group", scale)
tap.done()
