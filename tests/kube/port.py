#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The port's story, which every port tells alike, told by the client to a real kube-apiserver.

BUILD names the directory of the built tests.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cluster

BUILD = Path(os.environ.get("BUILD", cluster.ROOT / "build"))


def main():
    programs = cluster.peers()
    if programs is None:
        print("1..0 # skip no control plane")
        return 0
    with tempfile.TemporaryDirectory() as dir:
        plane = cluster.ControlPlane(dir, programs)
        try:
            plane.start()
            env = dict(os.environ, HEKLA_TEST_KUBECONFIG=str(plane.config))
            return subprocess.run([BUILD / "tests/client_port_conformance_test"], env=env).returncode
        finally:
            plane.end()


if __name__ == "__main__":
    sys.exit(main())
