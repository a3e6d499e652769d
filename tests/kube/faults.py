#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults between our programs and a real API server, and around them.

    tests/kube/faults.py [STORY...]    all stories, or these

Whatever happens, jobs reach their end, no pod is bound twice or made twice, no node gets more than
it has, nobody spins, and the log says what happened.
"""

import sys

import cluster
import faults_behind
import faults_life
import faults_wire
from faults_world import Tap, World

STORIES = {story.__name__: story for story in (*faults_wire.STORIES, *faults_life.STORIES,
                                               *faults_behind.STORIES, *faults_life.LAST)}


def main():
    programs = cluster.peers()
    if programs is None:
        print("1..0 # skip no control plane: scripts/kube-peers")
        return
    chosen = sys.argv[1:] or list(STORIES)
    for name in chosen:
        if name not in STORIES:
            sys.exit(f"faults: no story '{name}', want some of {' '.join(STORIES)}")
    tap = Tap()
    world = World(programs, manager_args=(
        f"--node-monitor-grace-period={faults_life.GONE_S}s", "--node-monitor-period=2s"))
    try:
        world.start()
        for name in chosen:
            STORIES[name](tap, world)
    finally:
        world.end()
    tap.step("all programs end well", lambda: [p.expect_well() for p in world.hekla.all])
    tap.done()


if __name__ == "__main__":
    main()
