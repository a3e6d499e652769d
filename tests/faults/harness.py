# SPDX-License-Identifier: Apache-2.0
"""Shared code of the fault tests: TAP points, a server, and a client that can misbehave.

Standard library only. HEKLA is the program. Every wait is for a condition and has a deadline;
processes that a test starts end with the test.
"""

import atexit
import json
import os
import resource
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEKLA = str(Path(os.environ.get("HEKLA", ROOT / "build/hekla")).resolve())
DEADLINE_S = 30
MAPS = "/api/v1/namespaces/default/configmaps"
OURS = MAPS + "?labelSelector=made-by%3Dtest" # the server makes some too


class Tap:
    """Numbered TAP points; a step that raises is a failed point."""

    def __init__(self):
        self.count = self.failed = 0

    def step(self, name, fn, *args):
        self.count += 1
        try:
            fn(*args)
            print(f"ok {self.count} - {name}", flush=True)
        except Exception as error:
            self.failed += 1
            print(f"not ok {self.count} - {name}", flush=True)
            text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            for line in text.splitlines():
                print(f"# {line}", flush=True)

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # skip {why}", flush=True)

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def expect(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: expected {want!r}, got {got!r}")


def expect_in(what, got, want):
    if want not in got:
        raise AssertionError(f"{what}: expected to find {want!r} in {got!r}")


def await_true(what, fn, seconds=DEADLINE_S):
    """Polls fn until it returns a true value."""
    end = time.monotonic() + seconds
    while not fn():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def scratch():
    """A directory that is removed when the test ends."""
    path = Path(tempfile.mkdtemp(prefix="hekla-faults-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class Server:
    """hekla apiserver, or another verb, on a free port of the loopback interface."""

    def __init__(self, data, *args, verb="apiserver", program=HEKLA, env=None, prefix=(),
                 seen=None):
        """seen: the path of data for the test, if the server has another mount namespace."""
        self.data, self.args, self.prefix = Path(data), args, list(prefix)
        self.verb, self.program = verb, str(program)
        self.seen = Path(seen or data)
        self.env = dict(os.environ, **(env or {}))
        self.process, self.log, self.context = None, [], None
        atexit.register(self.kill)

    def launch(self):
        command = [*self.prefix, self.program, self.verb, "--data-dir", str(self.data),
                   "--listen", "127.0.0.1:0", *self.args]
        self.process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.log = []
        self.reader = threading.Thread(target=self._read_log, args=(self.process, self.log),
                                       daemon=True)
        self.reader.start()
        return self

    @staticmethod
    def _read_log(process, log):
        for line in process.stderr:
            log.append(line.decode(errors="replace").rstrip("\n"))

    def await_ready(self):
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        line = self.process.stdout.readline().decode() if ready else ""
        if "ready at https://" not in line:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"no server: {line!r} {self.log}")
        self.port = int(line.split("ready at https://127.0.0.1:")[1].split(",")[0])
        self.token = (self.seen / "tokens.csv").read_text().split(",")[0]
        if not self.context: # the CA of a data directory never changes
            self.context = ssl.create_default_context(cafile=self.seen / "ca.crt")
        return self

    def start(self):
        return self.launch().await_ready()

    def kill(self):
        """Sends SIGKILL if the server runs."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def stop(self):
        """Sends SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(DEADLINE_S)
        self.process.stdout.close()
        self.process = None
        return status

    def alive(self):
        return self.process.poll() is None

    def rss_kib(self):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0])

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def logged(self, text):
        return any(text in line for line in self.log)

    def await_log(self, text):
        try:
            await_true(f"a log line with {text!r}", lambda: self.logged(text))
        except AssertionError as error:
            raise AssertionError(f"{error}, in {self.log}") from None

    def connect(self):
        """A bare TCP connection."""
        return socket.create_connection(("127.0.0.1", self.port), DEADLINE_S)

    def client(self, **options):
        return Client(self, **options)

    def api(self, method, path, body=None, **options):
        """One request on a new connection."""
        with self.client() as client:
            return client.request(method, path, body, **options)

    def list_rv(self):
        return int(self.api("GET", MAPS + "?limit=1").json()["metadata"]["resourceVersion"])


class Answer:
    def __init__(self, code, headers, body):
        self.code, self.headers, self.body = code, headers, body

    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"{self.code} {self.body[:600]!r}"


class Client:
    """HTTP over TLS on one connection, byte by byte under the test's control."""

    def __init__(self, server, receive_bytes=None):
        raw = socket.socket()
        if receive_bytes: # before connecting, to keep the window small
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        raw.settimeout(DEADLINE_S)
        raw.connect(("127.0.0.1", server.port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = server.context.wrap_socket(raw, server_hostname="127.0.0.1")
        self.token, self.buffer = server.token, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def head(self, method, path, headers=()):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "User-Agent: test",
                 f"Authorization: Bearer {self.token}", *headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def send(self, data):
        self.socket.sendall(data)

    def request(self, method, path, body=None, content_type="application/json", chunked=False,
                headers=()):
        headers = list(headers)
        if isinstance(body, dict):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        if body is not None:
            headers.append(f"Content-Type: {content_type}")
            headers.append("Transfer-Encoding: chunked" if chunked else
                           f"Content-Length: {len(body)}")
        if chunked:
            body = b"".join(b"%x\r\n%s\r\n" % (len(body[k:k + 65536]), body[k:k + 65536])
                            for k in range(0, len(body), 65536)) + b"0\r\n\r\n"
        self.send(self.head(method, path, headers) + (body or b""))
        return self.answer()

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed by the server")
        self.buffer += data

    def _until(self, mark):
        while mark not in self.buffer:
            self._more()
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def _exactly(self, n):
        while len(self.buffer) < n:
            self._more()
        part, self.buffer = self.buffer[:n], self.buffer[n:]
        return part

    def _chunk(self):
        """The next chunk; empty at the end."""
        size = int(self._until(b"\r\n"), 16)
        data = self._exactly(size)
        self._exactly(2)
        return data

    def answer_head(self):
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(lines[0].split()[1]), headers

    def answer(self):
        code, headers = self.answer_head()
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self._exactly(int(headers.get("content-length", 0)))
        return Answer(code, headers, body)

    def events(self, path):
        """A watch: yields its events until the server ends it."""
        self.send(self.head("GET", path))
        code, headers = self.answer_head()
        if code != 200:
            body = self._exactly(int(headers.get("content-length", 0)))
            raise AssertionError(f"watch {path}: {code} {body[:600]!r}")
        text = b""
        while chunk := self._chunk():
            text += chunk
            *lines, text = text.split(b"\n")
            for line in lines:
                yield json.loads(line)


class SmallDisk:
    """A server with its data on a file system of a few megabytes, in its own mount namespace. With
    part, only that part of the data directory is on the small file system."""

    def __init__(self, part=None, args=(), size=16 << 20, **options):
        top = scratch()
        path = top / "data" / part if part else top / "disk"
        path.mkdir(parents=True)
        self.holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c",
             f"mount -t tmpfs -o size={size} tmpfs '{path}' && echo mounted && exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.mounted = self.holder.stdout.readline() == b"mounted\n"
        self.seen = Path(f"/proc/{self.holder.pid}/root{path}")
        self.server = Server(top / "data" if part else path / "data", *args,
                             seen=self.seen.parent if part else self.seen / "data",
                             prefix=["nsenter", "-m", "-t", str(self.holder.pid)], **options)

    def fill(self):
        """Writes until the file system is full."""
        with open(self.seen / "filler", "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def work(self):
        (self.seen / "filler").unlink()

    def end(self):
        self.server.kill()
        self.holder.stdin.close()
        self.holder.wait()


def config_map(name, value="1", **more):
    return {"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"made-by": "test"}},
            "data": {"k": value}, **more}


def raise_files(want):
    """Raises the limit of descriptors to want, or to the hard limit; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = want if hard == resource.RLIM_INFINITY else min(want, hard)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(soft, allowed)
