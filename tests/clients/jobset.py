#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JobSet: its webhooks complete and check JobSets, its Jobs find each other by name, and it follows
them to their end."""

import operators
from clients import Site, Tap, about, expect, expect_in, go_program, go_source, needs

MODULE = ("sigs.k8s.io/jobset", "v0.10.1", "h1:u8QKifNsrWVrlRFe6w2ofYTqFT9ma2DRHxfeB2m9xyU=")
needs("go", "kubectl", "getent")
about("JobSet", MODULE[1][1:], "its webhooks, a JobSet of two groups that find each other by name",
      "the command of the operator's container")
program = go_program("jobset", *MODULE, ".")
source = go_source(*MODULE)
tap, site = Tap(), Site()
SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: NAME}
spec:
  replicatedJobs:
  - name: lead
    replicas: 1
    template: &template
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          spec:
            terminationGracePeriodSeconds: 1
            restartPolicy: Never
            containers: [{name: c, image: x, command: [sh, -c, "COMMAND"]}]
  - name: help
    replicas: 1
    template: *template
"""
FIND = ("for peer in find-lead-0-1.find find-help-0-1.find; do until getent hosts $peer; do sleep 0.2; "
        "done; done; echo found; until [ -e GO ]; do sleep 0.2; done")


def start():
    objects = operators.manifests(site, source / "config/default")
    operators.install(site, operators.replace_images(objects, operators.open_to_all(site, program)))
    operators.available(site, "jobset-system", "jobset-controller-manager")


def complete():
    go = site.dir / "go"
    site.wait("the webhooks answer", lambda: site.apply(
        SET.replace("NAME", "find").replace("COMMAND", FIND.replace("GO", str(go)))))
    made = site.get("jobset", "find")
    expect("completion mode that the webhook chose",
           made["spec"]["replicatedJobs"][0]["template"]["spec"].get("completionMode"), "Indexed")

    def found():
        pods = site.get("pods", "", "-l", "jobset.sigs.k8s.io/jobset-name=find")["items"]
        return len(pods) == 4 and all("found" in site.kubectl("logs", pod["metadata"]["name"])
                                      for pod in pods)

    def completed():
        return operators.condition(site.get("jobset", "find"), "Completed") == "True"
    site.wait("all pods have found each other", found, 180)
    go.touch()
    site.wait("the JobSet completes", completed, 180)


def refuse():
    said = site.run("kubectl", "patch", "jobset", "find", "--type=merge", "-p",
                    '{"spec": {"network": {"subdomain": "other"}}}', check=False)
    expect_in("answer", said, "Value is immutable")


def fail():
    site.apply(SET.replace("NAME", "bad").replace("COMMAND", "exit 3"))

    def failed():
        return operators.condition(site.get("jobset", "bad"), "Failed") == "True"
    site.wait("the JobSet fails", failed, 180)


tap.step("the operator's manifests are applied, and it becomes available", start)
tap.step("a JobSet completes, whose pods find each other by name", complete)
tap.step("a forbidden change is refused", refuse)
tap.step("a JobSet whose pods fail is failed", fail)
tap.done()
