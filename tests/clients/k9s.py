#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""k9s in a terminal (tmux): its views of pods, Volcano Jobs, queues and logs."""

from clients import Site, Tap, about, go_program, needs

MODULE = ("github.com/derailed/k9s", "v0.50.9", "h1:6WAVVl0M/Xi0HhIScLJvrO8dXZds4n4wD7HAFOSFaf8=")
needs("go", "tmux")
about("k9s", MODULE[1][1:], "in a terminal: views of pods, Volcano Jobs and queues, a log")
program = go_program("k9s", *MODULE, ".")
tap, site = Tap(), Site()
SOCKET = str(site.dir / "tmux")
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: visible}
spec:
  minAvailable: 1
  schedulerName: volcano
  tasks:
  - name: w
    replicas: 1
    template:
      spec:
        terminationGracePeriodSeconds: 1
        containers: [{name: c, image: x, command: [sh, -c, "echo heard; exec sleep 1000"]}]
"""


def tmux(*args):
    return site.run("tmux", "-S", SOCKET, *args, env={"TERM": "xterm-256color"})


def shows(*words):
    """Waits until the terminal shows these words."""
    def seen():
        screen = tmux("capture-pane", "-p")
        return all(word in screen for word in words)
    try:
        site.wait(f"the terminal shows {words}", seen, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{tmux('capture-pane', '-p')}") from None


def go_to(view):
    tmux("send-keys", f":{view}", "Enter")


def starts():
    site.apply(JOB)
    site.wait("the pod runs", lambda: "Running" in site.kubectl("get", "pods"))
    tmux("new-session", "-d", "-x", "180", "-y", "40", f"{program} --all-namespaces --command pods")
    shows("visible-w-0", "Running")


def custom_views():
    go_to("jobs.batch.volcano.sh")
    shows("visible", "Running")
    go_to("queues")
    shows("default", "root")


def log():
    go_to("pods")
    shows("visible-w-0")
    tmux("send-keys", "/visible-w-0", "Enter")
    tmux("send-keys", "l")
    shows("heard")


def follows():
    tmux("send-keys", "Escape")
    shows("visible-w-0", "Running")
    site.kubectl("delete", "vcjob", "visible")

    def gone():
        rows = [line for line in tmux("capture-pane", "-p").splitlines() if "default" in line]
        return not any("visible-w-0" in row for row in rows)
    try:
        site.wait("the row of the deleted pod goes", gone, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{tmux('capture-pane', '-p')}") from None


tap.step("it starts with the pods of all namespaces", starts)
tap.step("Volcano Jobs and queues have rows", custom_views)
tap.step("a log is shown", log)
tap.step("a deleted pod leaves the view", follows)
tmux("kill-server")
tap.done()
