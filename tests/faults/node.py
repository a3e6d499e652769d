#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad pods on a real node: hekla up runs what cannot be run, does not end, or wants too much.

Each gets a reason that its owner can act on, a pod beside it goes on unharmed, and once it is
deleted nothing of it is left: no process, mount, control group, loop device or file.
"""

import os
import shutil
import signal
import time
import uuid
from datetime import datetime

from harness import (DEADLINE_S, HEKLA, Path, Server, SmallDisk, Tap, await_true, expect, expect_in,
                     resource, scratch, shutil, subprocess)
from pods import PODS, Neighbour, Node, controllers, may_isolate, sh

LINES = 200000
MAX_PIDS, FEW_PIDS = 300, 100
FOLLOW_GROWTH_KIB = 64 << 10


def run(command, **more):
    return {"name": "main", "image": "none", "command": command, **more}


class Files:
    """Things on disk that are not what a pod takes them for."""

    def __init__(self):
        self.dir = scratch()
        self.dir.chmod(0o755)
        self.bare = self.put("bare", "echo hello\n", 0o755)
        self.lost = self.put("lost", "#!/no/such/interpreter\n", 0o755)
        self.private = self.put("private", "#!/bin/sh\n", 0o700)
        self.plain = self.put("plain", "x\n", 0o644)

    def put(self, name, text, mode):
        path = self.dir / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)


def cannot_run(node, files):
    """What ends at once, with the exit code and the message it has to have."""
    user = {"securityContext": {"runAsUser": 65534}}
    for name, container, code, message in (
            ("missing", run(["no-such-program"]), 127, "executable file not found in $PATH"),
            ("nowhere", run(["/no/such/file"]), 127, "no such file or directory"),
            ("no-mode", run([files.plain]), 126, "permission denied"),
            ("directory", run(["/etc"]), 126, "is a directory"),
            ("no-line", run([files.bare]), 126, "begin with a line like #!/bin/sh"),
            ("no-interpreter", run([files.lost]), 127,
             '"/no/such/interpreter" does not exist'),
            ("unreadable", run([files.private], **user), 126, "permission denied"),
            ("no-directory", run(["true"], workingDir="/no/such/place"), 128,
             'cannot change to working directory "/no/such/place": no such file or directory')):
        node.create(name, container)
        ended = node.await_state(name, "terminated", reason="ContainerCannotRun", message=message)
        expect(f"exit code of {name}", ended["exitCode"], code)
        await_true(f"{name} to have failed", lambda n=name: node.phase(n) == "Failed")
        expect(f"status of {name}", node.column(name), "ContainerCannotRun")
    node.create("no-command", {"name": "main", "image": "busybox"})
    node.await_state("no-command", "waiting", reason="ErrImageNeverPull", message="'hekla image import FILE'")


def mounted(at, **volume):
    return {"container": run(["true"], volumeMounts=[{"name": "v", "mountPath": at}]),
            "volumes": [{"name": "v", **volume}]}


def wrong_mounts(node, files):
    """What may become right waits and says what for; what cannot fails."""
    gone = str(files.dir / "not-there")
    waiting = {
        "host-missing": (mounted("/mnt/x", hostPath={"path": gone, "type": "Directory"}),
                         f"'{gone}': No such file or directory"),
        "host-kind": (mounted("/mnt/x", hostPath={"path": files.plain, "type": "Directory"}),
                      "is not a Directory"),
        "host-file": (mounted("/mnt/x", hostPath={"path": str(files.dir), "type": "File"}),
                      "is not a File"),
        "no-map": (mounted("/mnt/x", configMap={"name": "nobody-made-it"}),
                   'configmap "nobody-made-it" not found'),
        "no-secret": (mounted("/mnt/x", secret={"secretName": "nor-this"}),
                      'secret "nor-this" not found'),
    }
    for name, (what, message) in waiting.items():
        node.create(name, what["container"], volumes=what["volumes"])
        node.await_state(name, "waiting", reason="CreateContainerConfigError", message=message)
        expect(f"phase of {name}", node.phase(name), "Pending")
        expect(f"status of {name}", node.column(name), "CreateContainerConfigError")
    env = run(["true"], env=[{"name": "X", "valueFrom": {
        "configMapKeyRef": {"name": "nobody-made-it", "key": "k"}}}])
    node.create("no-env", env)
    node.await_state("no-env", "waiting", reason="CreateContainerConfigError",
                     message='configmap "nobody-made-it" not found')
    over = mounted("/etc/passwd", emptyDir={})
    node.create("over-file", over["container"], volumes=over["volumes"])
    ended = node.await_state("over-file", "terminated", reason="ContainerCannotRun",
                             message='a directory, at "/etc/passwd", which is a file')
    expect("exit code", ended["exitCode"], 128)
    made = mounted("/mnt/x", hostPath={"path": gone, "type": "DirectoryOrCreate"})
    node.create("host-made", made["container"], volumes=made["volumes"])
    await_true("host-made to succeed", lambda: node.phase("host-made") == "Succeeded")
    await_true("host-missing to succeed, since its directory is there now",
               lambda: node.phase("host-missing") == "Succeeded")


def wrong_user(node):
    """One that nobody has is as good as any; numbers that are none are refused."""
    node.create("unknown-user", run(["id", "-u"], securityContext={"runAsUser": 2147483647}))
    node.await_state("unknown-user", "terminated", exitCode=0)
    expect("what it is", node.log("unknown-user"), "2147483647\n")
    for number in (-5, 2147483648):
        answer = node.server.api("POST", PODS, {
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "worse-user"},
            "spec": {"containers": [run(["true"], securityContext={"runAsUser": number})]}})
        expect(f"answer to user {number}", answer.code, 422)
        expect_in("why", answer.body.decode(), "must be between 0 and 2147483647")


def ignores_term(node):
    node.create("deaf", sh("trap '' TERM INT HUP; while :; do sleep 0.1; done"))
    node.await_state("deaf", "running")
    node.delete("deaf")


def double_forks(node):
    """Children that left their parents, their group and their session, of a pod that runs and of
    one that has ended by itself."""
    daemon = "(setsid sh -c 'trap \"\" TERM HUP; (setsid sleep 4713 &); sleep 4713' &)"
    node.create("forker", sh(f"{daemon}; sleep 4713"))
    node.create("leaver", sh(f"{daemon}; sleep 0.2; exit 7"))
    node.await_state("forker", "running")
    ended = node.await_state("leaver", "terminated")
    expect("exit code", ended["exitCode"], 7)
    await_true("daemons", lambda: len(node.processes("HEKLA_POD_MARK", b"4713")) >= 3)
    node.delete("forker")
    node.delete("leaver")
    await_true("no daemon", lambda: not node.processes("HEKLA_POD_MARK", b"4713"))


def fork_bomb(node):
    """Bounded by what a pod may have, so that everybody else can fork. Who gives up is told why."""
    node.create("bomb", sh("b() { b & b & wait; }; b 2>/dev/null; sleep 4714"),
                terminationGracePeriodSeconds=0)
    node.create("forks", sh(f"for i in $(seq {2 * MAX_PIDS}); do sleep 4714 & done; wait"))
    ended = node.await_state("forks", "terminated", message="reached its limit of processes")
    expect("exit code", ended["exitCode"] > 0, True)
    uid = node.get("bomb")["metadata"]["uid"]
    group = next(Path(top) / d for top, dirs, files in os.walk("/sys/fs/cgroup") for d in dirs
                 if uid in d and (Path(top) / d / "pids.max").exists())
    expect("the limit of the pod", int((group / "pids.max").read_text()), MAX_PIDS)
    await_true("a bomb that has gone off",
               lambda: int((group / "pids.current").read_text()) > MAX_PIDS // 2)
    node.create("forker-beside", sh("true; sleep 0; exit 0"))
    await_true("others to fork", lambda: node.phase("forker-beside") == "Succeeded")
    node.delete("bomb")


def out_of_processes(node):
    """The spawner cannot fork, and then the shim cannot: pods wait and say so, then start."""
    top = pids_hierarchy()
    group = top / node.mark
    group.mkdir()
    pid = str(node.nurseries()[0])
    try:
        (group / "cgroup.procs").write_text(pid)
        for spare in (0, 1):
            name = f"forked-{spare}"
            (group / "pids.max").write_text(
                str(int((group / "pids.current").read_text()) + spare))
            node.create(name, run(["true"]))
            node.await_state(name, "waiting", reason="CreateContainerError",
                             message="esource temporarily unavailable")
            expect("phase", node.phase(name), "Pending")
            (group / "pids.max").write_text("max")
            await_true("the pod to succeed", lambda n=name: node.phase(n) == "Succeeded")
            status = node.get(name)["status"]["containerStatuses"][0]
            expect("restarts", status["restartCount"], 0)
    finally:
        (top / "cgroup.procs").write_text(pid)
        await_true("an empty group", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def pids_hierarchy():
    """Where our own group for pids is, on machines with either version of cgroups."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if "pids" in names.split(","):
            return Path(f"/sys/fs/cgroup/pids{path}")
    return Path("/sys/fs/cgroup" + path)


def hog(node):
    node.create("hog", run(["dd", "if=/dev/zero", "of=/dev/null", "bs=300M", "count=1"],
                           resources={"limits": {"memory": "32Mi"}}))
    ended = node.await_state("hog", "terminated", reason="OOMKilled")
    expect("exit code", ended["exitCode"], 137)
    expect("status", node.column("hog"), "OOMKilled")


def answers_quickly(node):
    begin = time.monotonic()
    expect("code", node.server.api("GET", PODS).code, 200)
    return time.monotonic() - begin


def many_lines(node):
    """As fast as a pipe gives them; all arrive in order, and the server answers meanwhile."""
    node.create("chatty", sh(f"exec seq 1 {LINES}"))
    while node.state("chatty")[0] != "terminated":
        answers_quickly(node)
    expect("exit code", node.state("chatty")[1]["exitCode"], 0)
    expect("lines", node.log("chatty").split() == [str(k + 1) for k in range(LINES)], True)


def odd_output(node):
    """One line of a megabyte, one without an end, and bytes that are no text."""
    node.create("odd", sh(r"head -c 1048576 /dev/zero | tr '\0' x; echo; "
                          r"printf '\000\377\001\r bin\n'; printf unfinished"))
    node.await_state("odd", "terminated", exitCode=0)
    raw = node.server.api("GET", f"{PODS}/odd/log").body
    expect("the output, byte by byte",
           raw == b"x" * 1048576 + b"\n\0\377\1\r bin\nunfinished", True)


def slow_follower(node):
    """Who follows endless output and does not read costs the server no memory."""
    node.create("endless", sh("exec yes 'a line of the endless output of a pod that never stops'"))
    node.await_state("endless", "running")
    with node.server.client(receive_bytes=4096) as client:
        client.send(client.head("GET", f"{PODS}/endless/log?follow=true"))
        expect("code", client.answer_head()[0], 200)
        before = node.server.rss_kib()
        size = lambda: sum(p.stat().st_size for p in
                           (node.server.seen / "node/pods").glob("*/main.0.log.1"))
        await_true("a log that was put aside when it was full", lambda: size() > 10 << 20, 60)
        for _ in range(20):
            answers_quickly(node)
        grown = node.server.rss_kib() - before
        expect(f"growth of {grown} KiB in bounds", grown < FOLLOW_GROWTH_KIB, True)
    node.delete("endless", 60)


def record_of(node, name):
    """Where the shim says who it is, once it has."""
    uid = node.get(name)["metadata"]["uid"]
    path = node.server.seen / f"node/run/{uid}/main.0/shim"
    await_true("a record of the shim", path.exists)
    return path


def shim_of(node, name):
    return int(record_of(node, name).read_text().split()[0])


def shim_killed(node):
    node.create("orphan", sh("exec sleep 4715"))
    node.await_state("orphan", "running")
    os.kill(shim_of(node, "orphan"), signal.SIGKILL)
    ended = node.await_state("orphan", "terminated", reason="Error",
                             message="the process that looked after the container was killed")
    expect("exit code", ended["exitCode"], 137)


def shim_stopped(node):
    """It hears nothing, not that it has to kill its container."""
    node.create("frozen", sh("exec sleep 4718"))
    node.await_state("frozen", "running")
    os.kill(shim_of(node, "frozen"), signal.SIGSTOP)
    node.delete("frozen")


def within_limit(node, kind, value, fn):
    """Calls fn while the running server has that limit."""
    pid = node.server.process.pid
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (value, before[1]))
    try:
        fn()
    finally:
        resource.prlimit(pid, kind, before)


def out_of_descriptors(node):
    """Nothing can be opened: pods wait and say so, then start."""
    with node.server.client() as client:
        client.request("GET", PODS)
        node.client = client # there will be no other
        top = max(int(fd) for fd in os.listdir(f"/proc/{node.server.process.pid}/fd"))

        def waits():
            node.create("opener", run(["true"]))
            node.await_state("opener", "waiting", message="Too many open files")
            expect("phase", node.phase("opener"), "Pending")

        try:
            within_limit(node, resource.RLIMIT_NOFILE, top + 1, waits)
        finally:
            node.client = None
    await_true("the pod to succeed", lambda: node.phase("opener") == "Succeeded")


def stopped_machine(node):
    """SIGSTOP for a while, as a machine that is suspended: ends are noticed, nothing is evicted,
    and the lease is renewed."""
    node.create("sleeper", sh("sleep 1; exit 9"))
    node.await_state("sleeper", "running")
    uid = node.get("sleeper")["metadata"]["uid"]
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    name = node.server.api("GET", lease).json()["items"][0]["metadata"]["name"]
    renewed = lambda: node.server.api("GET", f"{lease}/{name}").json()["spec"]["renewTime"]
    before = renewed()
    os.kill(node.server.process.pid, signal.SIGSTOP)
    try:
        await_true("the end on record", (node.server.seen / f"node/run/{uid}/main.0/end").exists)
    finally:
        os.kill(node.server.process.pid, signal.SIGCONT)
    ended = node.await_state("sleeper", "terminated")
    expect("exit code", ended["exitCode"], 9)
    await_true("the lease to be renewed", lambda: renewed() > before)
    expect("readiness of the node", node.ready(), True)


def foreign_files(node):
    """Things in the node's directories that are not ours, and records that are broken."""
    node.create("kept", sh("exec sleep 4716"))
    node.create("broken", sh("exec sleep 4716"))
    for name in ("kept", "broken"):
        node.await_state(name, "running")
    runs = node.server.seen / "node/run"
    record = record_of(node, "broken")
    node.server.kill()
    record.write_text("12")
    (runs / "a-file").write_text("what is this")
    (runs / "a-directory").mkdir()
    (runs / "a-directory/thing").write_text("")
    (node.server.seen / "node/pods/another").write_text("")
    node.start()
    ended = node.await_state("broken", "terminated", reason="ContainerStatusUnknown",
                             message="does not name a process")
    expect("exit code", ended["exitCode"], 137)
    node.await_state("kept", "running")


def small_disk(tap):
    """No room for logs, then for anything: containers go on, and so does the rest in the end."""
    mark = Node().mark
    # Room for the server's reserve, and for two logs as large as they may be.
    disk = SmallDisk(size=64 << 20, verb="up", env={"HEKLA_MARK": mark})
    if not disk.mounted:
        tap.skip("a full disk", "no mounts are permitted here")
        return
    node = Node(disk.server, mark)
    calmer = Path(f"/tmp/{mark}-calmer") # so that the log is not rotated before it was looked at

    def output_is_lost():
        node.start()
        node.create("writer", sh("i=0; while [ ! -e /tmp/%s ]; do i=$((i + 1)); echo line $i; "
                                 "[ ! -e %s ] || sleep 0.1; done; echo last; exit 5"
                                 % (mark, calmer)))
        await_true("a first line", lambda: "line 1" in node.log("writer"))
        disk.fill()
        shim = Path(f"/proc/{shim_of(node, 'writer')}/io")
        written = lambda: int(shim.read_text().split("rchar: ")[1].split()[0])
        before = written()
        await_true("the container to talk on", lambda: written() > before + (1 << 20))

    def the_server_stays():
        expect("liveness", disk.server.api("GET", "/livez").code, 200)
        refused = lambda: disk.server.api("POST", PODS, {
            "kind": "Pod", "apiVersion": "v1", "metadata": {"generateName": "refused-"},
            "spec": {"schedulerName": "nobody", "containers": [sh("true")]}})
        await_true("a write to be refused", lambda: refused().code == 507)
        expect_in("why", refused().body.decode(), "only deletions are accepted")
        node.await_state("writer", "running")

    def it_starts_or_says_why():
        """Killed, and started again on a full disk: the reserve is for that, but the container
        wants it too. Without room one line says why, and the container goes on."""
        shim = shim_of(node, "writer")
        disk.server.kill()
        disk.server.launch()
        calmer.touch()
        try:
            disk.server.await_ready()
            disk.work()
        except AssertionError:
            expect("lines on standard error", len(disk.server.log), 1)
            expect("the reason", "full" in disk.server.log[0] or "space" in disk.server.log[0], True)
            disk.work()
            node.start()
        node.await_state("writer", "running")
        expect("the shim", shim_of(node, "writer"), shim)

    def logging_goes_on():
        await_true("the mark of what is missing",
                   lambda: "missing here: no space left on device" in node.log("writer"))
        Path(f"/tmp/{mark}").touch()
        ended = node.await_state("writer", "terminated")
        expect("exit code", ended["exitCode"], 5)
        expect("the last line", node.log("writer").splitlines()[-1], "last")
        node.create("after", sh("exit 0"))
        await_true("a new pod to succeed", lambda: node.phase("after") == "Succeeded")

    tap.step("a full disk: the container neither blocks nor ends", output_is_lost)
    tap.step("a full disk: the server lives and says why it refuses writes", the_server_stays)
    tap.step("a full disk: the server starts or reports the reason, and later finds its pods",
             it_starts_or_says_why)
    tap.step("a full disk: with room again the log continues, and says what is missing",
             logging_goes_on)
    tap.step("a full disk: no process or file is left",
             lambda: (node.delete_all(), node.expect_nothing_left()))
    Path(f"/tmp/{mark}").unlink(missing_ok=True)
    calmer.unlink(missing_ok=True)
    disk.end()


def reused_number(tap):
    """Records in memory are named by the number of the node's directory. When a directory is
    removed, another may get its number: what is left of the first is not the second's."""
    first, node = Node(), Node()
    first.start()
    link = first.server.seen / "node/run"
    if not link.is_symlink():
        tap.skip("records of a deleted directory", "there is no place in memory")
        return
    memory = Path(os.readlink(link)).parent
    expect("status", first.server.stop(), 0)
    own = node.server.seen / "node"
    own.mkdir(parents=True)
    stat = own.stat()
    old = memory / f"{stat.st_dev:x}-{stat.st_ino:x}"
    (old / str(uuid.uuid4())).mkdir(parents=True)
    (old / ".revision").write_text("00000000000000999999\n")

    def not_ours():
        node.start()
        node.create("runs", sh("exec sleep 4716"))
        node.await_state("runs", "running")
        expect("lines about pods that are kept", [x for x in node.server.log if "kept" in x], [])
        node.delete_all()
        node.expect_nothing_left()
        expect("status", node.server.stop(), 0)

    tap.step("records of a deleted directory are not adopted", not_ours)
    shutil.rmtree(old, ignore_errors=True)


def small_node_disk(tap):
    """The server's own disk has room, but that of the node has not."""
    mark = Node().mark
    disk = SmallDisk("node", verb="up", env={"HEKLA_MARK": mark})
    if not disk.mounted:
        tap.skip("no disk space on the node", "no mounts are permitted here")
        return
    node = Node(disk.server, mark)

    def pods_wait():
        node.start()
        node.create("early", sh("while [ ! -e /tmp/%s ]; do sleep 0.05; done; exit 6" % mark))
        node.await_state("early", "running")
        disk.fill()
        volume = mounted("/mnt/x", downwardAPI={"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]})
        node.create("late", volume["container"], volumes=volume["volumes"])
        node.await_state("late", "waiting", message="No space left on device")
        expect("phase", node.phase("late"), "Pending")

    def ends_are_kept():
        Path(f"/tmp/{mark}").touch()
        ended = node.await_state("early", "terminated")
        expect("exit code", ended["exitCode"], 6)

    def pods_run():
        disk.work()
        await_true("the pod to succeed", lambda: node.phase("late") == "Succeeded")

    tap.step("no disk space on the node: pods wait, and say why", pods_wait)
    tap.step("no disk space on the node: the outcome of running pods is kept", ends_are_kept)
    tap.step("no disk space on the node: with space again pods run", pods_run)
    tap.step("no disk space on the node: no process or file is left",
             lambda: (node.delete_all(), node.expect_nothing_left()))
    Path(f"/tmp/{mark}").unlink(missing_ok=True)
    disk.end()


def stepping_clock(tap):
    """Somebody sets the machine's clock: nobody's time is up for that, or has begun anew."""
    home = scratch()
    library, step = home / "clock_step.so", home / "step"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library,
                    Path(__file__).with_name("clock_step.c")], check=True)
    node = Node()
    node.server.env.update(LD_PRELOAD=str(library), CLOCK_STEP=str(step))
    set_clock = lambda seconds: (home / "new").write_text(str(seconds)) and \
        (home / "new").rename(step)
    set_clock(0)
    node.start()
    beside = Neighbour(node)
    node.create("limited", sh("exec sleep 4719"), activeDeadlineSeconds=3600)
    node.await_state("limited", "running")

    def stepped(name, seconds):
        """Seen in what is written from now on; the limited pod has an hour, and keeps it."""
        set_clock(seconds)
        node.create(name, sh("exit 0"))
        ended = node.await_state(name, "terminated")
        at = datetime.strptime(ended["finishedAt"], "%Y-%m-%dT%H:%M:%SZ").timestamp()
        now = datetime.utcnow().timestamp()
        expect("the clock has stepped", abs(at - now - seconds) < 1800, True)
        beside.goes_on()
        node.await_state("limited", "running")

    tap.step("a clock that jumps ahead ends nothing", stepped, "ahead", 7200)
    tap.step("a clock that jumps back ends nothing", stepped, "back", -7200)
    tap.step("a short deadline holds after both jumps", lambda: (
        node.create("short", sh("exec sleep 4719"), activeDeadlineSeconds=1),
        await_true("the pod to be ended", lambda: node.phase("short") == "Failed"),
        expect("reason", node.get("short")["status"]["reason"], "DeadlineExceeded")))
    tap.step("stepping clocks: no process or file is left",
             lambda: (node.delete_all(), node.expect_nothing_left()))
    tap.step("stepping clocks: the server exits with 0",
             lambda: expect("status", node.server.stop(), 0))


def other_user(tap):
    """Not root: user namespaces, and most likely no control groups. The program is copied, since
    that user may not get at it where it is."""
    who = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*who, "unshare", "-Ur", "true"], check=False,
                      capture_output=True).returncode != 0:
        tap.skip("not run by root", "user namespaces are not permitted here")
        return
    home = scratch()
    home.chmod(0o755)
    program = home / "hekla"
    shutil.copy(HEKLA, program)
    (home / "own").mkdir()
    os.chown(home / "own", 65534, 65534)
    node = Node(options=("--pod-max-pids", str(FEW_PIDS)))
    node.server = Server(home / "own/data", *node.server.args, verb="up", prefix=who,
                         program=program, env={"HEKLA_MARK": node.mark, "HOME": str(home)})

    def users():
        node.start()
        node.create("somebody", run(["true"], securityContext={"runAsUser": 1000}))
        node.await_state("somebody", "terminated", reason="ContainerCannotRun",
                         message="this node is not run by root")

    def bomb():
        """Each container has a namespace of its own, in which the kernel counts."""
        beside = Neighbour(node)
        node.create("bomb", sh("b() { b & b & wait; }; b; sleep 4714"))
        await_true("a fork that is refused", lambda: "fork" in node.log("bomb", "?tailLines=1"))
        beside.goes_on()
        expect("processes in bounds", len(node.processes("HEKLA_POD_MARK")) < 2 * FEW_PIDS, True)

    tap.step("not run by root: other users are refused", users)
    tap.step("not run by root: a fork bomb is bounded", bomb)
    tap.step("not run by root: daemons end with their pod", double_forks, node)
    tap.step("not run by root: a shim that is killed", shim_killed, node)
    tap.step("not run by root: no process or file is left",
             lambda: (node.delete_all(), node.expect_nothing_left()))
    tap.step("not run by root: the server exits with 0",
             lambda: expect("status", node.server.stop(), 0))


def main():
    tap = Tap()
    if not may_isolate():
        print("1..0 # skip mount namespaces are not permitted")
        return
    files, groups = Files(), controllers()
    node = Node(options=("--pod-max-pids", str(MAX_PIDS))).start()
    beside = Neighbour(node)

    def story(name, fn, *args):
        tap.step(name, fn, *args)
        tap.step(f"{name}: another pod continues", beside.goes_on)

    story("a command that cannot run: the status has the reason", cannot_run, node, files)
    story("an invalid mount is named in the status", wrong_mounts, node, files)
    story("a user that cannot be", wrong_user, node)
    story("a container that ignores SIGTERM is killed after the grace period", ignores_term, node)
    story("daemons end with their pod", double_forks, node)
    story("a shim that is killed", shim_killed, node)
    story("a shim that is stopped", shim_stopped, node)
    if "memory" in groups:
        story("a container that uses too much memory is killed", hog, node)
    else:
        tap.skip("a container that uses too much memory is killed", "no memory controller")
    if "pids" in groups:
        story("a fork bomb is bounded", fork_bomb, node)
        story("no process can be had", out_of_processes, node)
    else:
        tap.skip("a fork bomb is bounded", "no pids controller")
        tap.skip("no process can be had", "no pids controller")
    story("a lot of output", many_lines, node)
    story("long lines, unfinished lines and binary output", odd_output, node)
    story("a slow reader of endless output", slow_follower, node)
    story("no descriptors are left", out_of_descriptors, node)
    story("a machine that was suspended", stopped_machine, node)
    story("damaged records and foreign files are reported", foreign_files, node)
    tap.step("after all deletions no process or file is left",
             lambda: (node.delete_all(), node.expect_nothing_left()))
    tap.step("the server exits with 0", lambda: expect("status", node.server.stop(), 0))
    small_disk(tap)
    reused_number(tap)
    small_node_disk(tap)
    other_user(tap)
    stepping_clock(tap)
    tap.done()


main()
