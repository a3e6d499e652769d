# SPDX-License-Identifier: Apache-2.0
"""Shared code of the tests with programs of others: `hekla up`, and those programs, cached.

A test names its client, its version, and what it does with it; scripts/clients makes the table of
docs/clients.md from these. Programs come from the language registries through their ordinary clients
and are kept outside the tree, in HEKLA_PEERS; later runs need no network. A program that cannot be
had is a skipped test.
"""

import atexit
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/faults"))
from harness import Server, Tap, expect, expect_in, scratch  # noqa: E402,F401

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
PEERS = Path(os.environ.get("HEKLA_PEERS", CACHE / "hekla/peers")) / "clients"
OWN = Path(__file__).resolve().parent / "go"
BUILD_S = 1800
GO_CACHE = {name: os.environ.get(name) or subprocess.run(
    ["go", "env", name], stdout=subprocess.PIPE, text=True).stdout.strip()
    for name in ("GOCACHE", "GOMODCACHE", "GOPROXY", "GONOSUMDB", "GOFLAGS")} \
    if shutil.which("go") else {}


class Missing(Exception):
    """A program that cannot be had here."""


def about(client, version, does, replaced="-"):
    """Prints what scripts/clients puts into the table. replaced: what is not the program's own."""
    print("# client " + json.dumps({"client": client, "version": version, "does": does,
                                    "replaced": replaced}), flush=True)


def skip_all(why):
    print(f"1..0 # skip {why}", flush=True)
    sys.exit(0)


def needs(*programs):
    """Skips the test unless all programs are installed."""
    for program in programs:
        if not shutil.which(program):
            skip_all(f"no {program}")


def fetched(name, make):
    """Directory NAME of the cache, which make(directory) fills once; skips the test if it cannot."""
    place = PEERS / name
    if place.exists():
        return place
    work = PEERS / f".{name}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    print(f"# {name}: not in the cache, which takes some minutes", flush=True)
    try:
        make(work)
        work.rename(place)
    except (Missing, subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(work, ignore_errors=True)
        skip_all(f"{name} cannot be had: {str(error).strip().splitlines()[-1]}")
    return place


def build(*command, **options):
    """A step of make: its last line of errors is the reason if it fails."""
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=BUILD_S, **options)
    if ended.returncode:
        lines = [line for line in ended.stdout.splitlines() if line.strip()]
        raise Missing(f"{Path(command[0]).name}: {lines[-1] if lines else ended.returncode}")
    return ended.stdout


def inside(name, *packages):
    """Goes on in a virtual environment that has these packages of the Python registry."""
    place = PEERS / f"python-{name}"
    if sys.prefix == str(place):
        return
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True) # its paths are absolute: it is made where it stays
        print(f"# {name}: not in the cache, which takes some minutes", flush=True)
        try:
            build(sys.executable, "-m", "venv", str(place))
            build(str(place / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *packages)
            (place / "complete").write_text("\n".join(packages))
        except (Missing, subprocess.SubprocessError, OSError) as error:
            skip_all(f"{name} cannot be had: {str(error).strip().splitlines()[-1]}")
    python = str(place / "bin/python")
    os.execv(python, [python, *sys.argv])


def go_source(module, version, checksum):
    """The published source of a Go module: where its manifests are, too."""
    needs("go")
    found = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], cwd="/",
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           timeout=BUILD_S, env=dict(os.environ, **GO_CACHE, GO111MODULE="on"))
    answer = json.loads(found.stdout or "{}")
    if "Dir" not in answer:
        skip_all(f"{module} {version} cannot be had: {answer.get('Error', 'no answer')}")
    if answer["Sum"] != checksum:
        raise SystemExit(f"{module} {version}: checksum {answer['Sum']}, expected {checksum}")
    return Path(answer["Dir"])


def go_program(name, module, version, checksum, package, prepare=None, flags=""):
    """A program of a published Go module, built as its authors do: with the module's own go.mod.
    prepare(directory) may complete a source whose generated files are not published."""
    source = go_source(module, version, checksum)

    def make(place):
        copy = place / "source"
        shutil.copytree(source, copy, symlinks=True)
        for directory, _, files in os.walk(copy):
            os.chmod(directory, 0o755)
            for file in files:
                os.chmod(os.path.join(directory, file), 0o644)
        if prepare:
            prepare(copy)
        build("go", "build", "-trimpath", "-buildvcs=false", "-mod=mod", "-ldflags", f"-s -w {flags}",
              "-o", str(place / name), package, cwd=copy, env=dict(os.environ, **GO_CACHE))
        shutil.rmtree(copy)
    return str(fetched(f"{name}-{version}", make) / name)


def pinned(module):
    """The version of a module in go/go.mod."""
    return re.search(rf"^\s*{re.escape(module)} v(\S+)", (OWN / "go.mod").read_text(), re.M)[1]


def digest(*paths):
    """Short name for the contents of files, so that an edited program is built again."""
    sum_of = hashlib.sha256()
    for path in sorted(paths):
        sum_of.update(path.read_bytes())
    return sum_of.hexdigest()[:12]


def go_own(name):
    """A program of our own below go/, with the clients that go/go.mod pins."""
    needs("go")

    def make(place):
        build("go", "build", "-trimpath", "-buildvcs=false", "-o", str(place / name), f"./{name}",
              cwd=OWN, env=dict(os.environ, **GO_CACHE))
    return str(fetched(f"{name}-{digest(OWN / 'go.mod', OWN / name / 'main.go')}", make) / name)


class Site:
    """`hekla up` in a directory of its own, and its kubeconfig."""

    def __init__(self, *args):
        self.dir = scratch()
        self.programs = []
        self.server = Server(self.dir / "data", *args, verb="up").start()
        atexit.register(self.end) # before the server is killed, whose pods would stay
        self.url = f"https://127.0.0.1:{self.server.port}"
        self.kubeconfig = str(self.dir / "data/kubeconfig")
        self.env = dict(os.environ, KUBECONFIG=self.kubeconfig, HOME=str(self.dir), **GO_CACHE)

    def run(self, *command, seconds=120, check=True, stdin=None, env=None, cwd=None):
        """Runs a program that ends; returns its output, errors included."""
        ended = subprocess.run([str(word) for word in command], env=dict(self.env, **(env or {})),
                               cwd=cwd, input=stdin, stdin=None if stdin else subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               timeout=seconds)
        if check and ended.returncode:
            raise AssertionError(f"{command[0]} ended with {ended.returncode}:\n{ended.stdout}")
        return ended.stdout

    def kubectl(self, *args, **options):
        return self.run("kubectl", *args, **options)

    def apply(self, text, *args):
        return self.kubectl("apply", *args, "-f", "-", stdin=text)

    def get(self, kind, name="", *args):
        """An object, or a list, as a dictionary."""
        return json.loads(self.kubectl("get", kind, *([name] if name else []), *args, "-o", "json"))

    def start(self, name, *command, env=None, cwd=None):
        """Starts a program that stays, with its output in a file; returns the file."""
        log = self.dir / f"{name}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen([str(word) for word in command], cwd=cwd,
                                       env=dict(self.env, **(env or {})), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        self.programs.append((name, process, log))
        return log

    def stop(self, name):
        """Ends a program that was started."""
        for entry in [entry for entry in self.programs if entry[0] == name]:
            self.programs.remove(entry)
            end_group(entry[1])

    def wait(self, what, fn, seconds=120):
        """Polls fn until it returns a true value, which is returned. Errors count as false."""
        end, last = time.monotonic() + seconds, None
        while time.monotonic() < end:
            for name, process, log in self.programs:
                if process.poll() is not None:
                    raise AssertionError(f"{what}: {name} ended with {process.returncode}: "
                                         f"{tail(log)}")
            try:
                value = fn()
                if value:
                    return value
                last = value
            except (AssertionError, LookupError, OSError, TypeError, ValueError) as error:
                last = error
            time.sleep(0.1)
        logs = "".join(f"\n{name}: {tail(log)}" for name, _, log in self.programs)
        pods = self.kubectl("get", "pods", "-A", "-o", "wide", check=False)
        raise AssertionError(f"{what}: not within {seconds} s; last {last}\n{pods}{logs}")

    def tap(self, *command, seconds=400):
        """Runs a program that prints TAP, prints its output, and exits with its status."""
        ended = subprocess.run([str(word) for word in command], env=self.env, timeout=seconds,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        print(ended.stdout, end="", flush=True)
        sys.exit(ended.returncode)

    def end(self):
        for _, process, _ in self.programs:
            end_group(process)
        self.programs = []
        if self.server.process:
            subprocess.run([self.server.program, "down", "--pods", "--data-dir",
                            str(self.dir / "data")], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=60, check=False)


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def tail(log, lines=15):
    return "\n".join(Path(log).read_text(errors="replace").splitlines()[-lines:])
