#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabric8's Java client, on which Spark, Flink, Strimzi and the operators of Quarkus are built: it
watches over WebSockets. The story is fabric8/src/main/java/Story.java."""

import re
import shutil
from pathlib import Path

from clients import Site, about, build, digest, fetched, needs

HERE = Path(__file__).resolve().parent / "fabric8"
VERSION = re.search("kubernetes-client</artifactId>\\s*<version>(.*)</version>",
                    (HERE / "pom.xml").read_text())[1]
needs("java", "mvn")


def make(place):
    shutil.copytree(HERE, place / "source")
    build("mvn", "-q", "-B", "package", cwd=place / "source")


about("Java fabric8 `kubernetes-client`", VERSION,
      "watch and informer over WebSockets, pods, logs, exec, port-forward, Volcano Jobs")
edition = digest(*(path for path in HERE.rglob("*") if path.is_file()))
target = fetched(f"fabric8-{edition}", make) / "source/target"
Site().tap("java", "-cp", f"{target}/story-1.jar:{target}/dependency/*", "Story")
