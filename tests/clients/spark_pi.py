#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spark on Kubernetes, scheduled by Volcano: pi is computed by two executors, with the driver on this
machine (client mode) and with the driver as a pod (cluster mode)."""

import sys
from pathlib import Path

from clients import Site, Tap, about, expect, expect_in, inside, needs

SPARK = "4.3.0"
inside(f"spark-{SPARK}", f"pyspark=={SPARK}")
needs("java")
about("Spark", SPARK, "pi on two executors, in client and in cluster mode, `schedulerName: volcano`",
      "the entrypoint of the image: `spark_entrypoint.sh`")
HERE = Path(__file__).resolve().parent
HOME = next(Path(sys.prefix).glob("lib/python*/site-packages/pyspark"))
tap, site = Tap(), Site()


def template(role):
    path = site.dir / f"{role}.yaml"
    path.write_text(f"""
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: spark-kubernetes-{role}
    command: [sh, {HERE / "spark_entrypoint.sh"}]
    env:
    - {{name: SPARK_HOME, value: "{HOME}"}}
    - {{name: PYSPARK_PYTHON, value: "{sys.executable}"}}
""")
    return path


def submit(mode, program, **options):
    conf = {"spark.executor.instances": 2, "spark.kubernetes.container.image": "spark",
            "spark.kubernetes.scheduler.name": "volcano",
            "spark.kubernetes.executor.podTemplateFile": template("executor"),
            "spark.kubernetes.executor.request.cores": "100m", "spark.executor.memory": "512m",
            "spark.driver.memory": "512m", "spark.ui.enabled": "false", **options}
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    return site.run(HOME / "bin/spark-submit", "--master", f"k8s://{site.url}", "--deploy-mode", mode,
                    "--name", "pi", *words, program, "4", seconds=400,
                    env={"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(HOME)})


def client_mode():
    said = submit("client", HOME / "examples/src/main/python/pi.py",
                  **{"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"})
    expect_in("output", said, "Pi is roughly 3.1")


def executors_end():
    site.wait("the executors are gone", lambda: site.get(
        "pods", "", "-l", "spark-role=executor")["items"] == [])


def cluster_mode():
    site.kubectl("create", "serviceaccount", "spark")
    site.kubectl("create", "rolebinding", "spark", "--clusterrole=edit",
                 "--serviceaccount=default:spark")
    submit("cluster", f"local://{HOME}/examples/src/main/python/pi.py",
           **{"spark.kubernetes.driver.podTemplateFile": template("driver"),
              "spark.kubernetes.driver.request.cores": "100m",
              "spark.kubernetes.authenticate.driver.serviceAccountName": "spark"})
    driver = site.get("pods", "", "-l", "spark-role=driver")["items"][0]
    expect("phase of the driver", driver["status"]["phase"], "Succeeded")
    expect_in("log of the driver", site.kubectl("logs", driver["metadata"]["name"]), "Pi is roughly 3.1")


tap.step("client mode: two executors compute pi", client_mode)
tap.step("the executors end with the driver", executors_end)
tap.step("cluster mode: the driver is a pod, and its executors find it by name", cluster_mode)
tap.step("the executors end with the driver, again", executors_end)
tap.done()
