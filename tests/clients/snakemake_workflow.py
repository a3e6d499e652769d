#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snakemake with its Kubernetes executor: each step of a workflow is a Job of the cluster. Steps share
a directory of this machine, as they would share a file system of a cluster."""

import sys

from clients import Site, Tap, about, expect, expect_in, inside, needs

SNAKEMAKE, PLUGIN, STORAGE = "9.27.1", "0.5.1", "1.1.3"
inside(f"snakemake-{SNAKEMAKE}", f"snakemake=={SNAKEMAKE}",
       f"snakemake-executor-plugin-kubernetes=={PLUGIN}", f"snakemake-storage-plugin-fs=={STORAGE}")
needs("rsync")
about("Snakemake, Kubernetes executor", f"{SNAKEMAKE}, plugin {PLUGIN}",
      "a workflow of 4 steps, each a Job; a failing step", "`PATH` of the steps")
BIN = f"{sys.prefix}/bin"
tap, site = Tap(), Site()
WORKFLOW = """
rule all:
    input: "sum.txt"
rule number:
    output: "{n}.txt"
    shell: "echo {wildcards.n} >{output}"
rule sum:
    input: "1.txt", "2.txt", "3.txt"
    output: "sum.txt"
    shell: "cat {input} | paste -sd+ >{output}"
rule bad:
    output: "bad.txt"
    shell: "echo not so >&2; exit 3"
"""


def snakemake(*targets, check=True):
    shared = site.dir / "shared"
    shared.mkdir(exist_ok=True)
    place = site.dir / "workflow"
    place.mkdir(exist_ok=True)
    (place / "Snakefile").write_text(WORKFLOW)
    return site.run(f"{BIN}/snakemake", *targets, "--executor", "kubernetes", "--jobs", "3",
                    "--container-image", "x", "--envvars", "PATH", "--default-storage-provider", "fs",
                    "--default-storage-prefix", shared, "--shared-fs-usage", "none",
                    "--kubernetes-omit-job-cleanup", cwd=place, seconds=300,
                    check=check, env={"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin"})


def complete():
    snakemake()
    expect("sum", (site.dir / "shared/sum.txt").read_text(), "1+2+3\n")


def counted():
    jobs = site.get("jobs", "", "-l", "app=snakemake")["items"]
    expect("Jobs that succeeded", sum(job["status"].get("succeeded", 0) for job in jobs), 4)


def fail():
    said = snakemake("bad.txt", check=False)
    expect_in("what it prints", said, "At least one job did not complete successfully")


tap.step("a workflow completes, and its last step has the result", complete)
tap.step("each of its steps was a Job", counted)
tap.step("a step that fails is reported", fail)
tap.done()
