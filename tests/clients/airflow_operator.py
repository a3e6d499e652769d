#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Airflow's KubernetesPodOperator: a DAG of two tasks, each a pod; the second gets the result of the
first."""

import sys

from clients import Site, Tap, about, expect, expect_in, inside

AIRFLOW, PROVIDER = "3.3.2", "10.25.0"
inside(f"airflow-{AIRFLOW}", f"apache-airflow=={AIRFLOW}",
       f"apache-airflow-providers-cncf-kubernetes=={PROVIDER}")
about("Airflow, KubernetesPodOperator", f"{AIRFLOW}, provider {PROVIDER}",
      "a DAG of two pods with logs, a pod that fails", "-")
BIN = f"{sys.prefix}/bin"
tap, site = Tap(), Site()
DAG = """
import os
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG

def task(name, command):
    return KubernetesPodOperator(task_id=name, name=name, namespace="default", image="x",
                                 cmds=["sh", "-c", command], config_file=os.environ["KUBECONFIG"],
                                 in_cluster=False, get_logs=True, on_finish_action="keep_pod")

with DAG("story", schedule=None) as dag:
    task("first", "echo first speaks") >> task("second", os.environ["SECOND"])
"""


def airflow(*args, **options):
    home = site.dir / "airflow"
    return site.run(f"{BIN}/airflow", *args, seconds=300,
                    env={"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                         "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"), "PYTHONUNBUFFERED": "1",
                         "SECOND": options.pop("second", "true")}, **options)


def prepare():
    (site.dir / "airflow/dags").mkdir(parents=True)
    (site.dir / "airflow/dags/story.py").write_text(DAG)
    airflow("db", "migrate")
    airflow("dags", "reserialize")


def complete():
    said = airflow("dags", "test", "story", second="echo second answers")
    expect_in("output", said, "first speaks")
    expect_in("output", said, "second answers")


def pods_kept():
    phases = [pod["status"]["phase"] for pod in site.get("pods", "", "-l", "dag_id=story")["items"]]
    expect("phases of the pods", phases, ["Succeeded", "Succeeded"])


def fail():
    said = airflow("dags", "test", "story", second="echo no use; exit 3", check=False)
    expect_in("output", said, "no use")
    expect_in("output", said, "returned a failure")


tap.step("Airflow makes its database", prepare)
tap.step("two tasks run as pods, and their logs are read", complete)
tap.step("their pods have succeeded", pods_kept)
tap.step("a pod that fails fails its task", fail)
tap.done()
