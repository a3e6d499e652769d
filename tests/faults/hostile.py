#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of a cluster at an API server that never stops talking: lists without end, one string
without end, bytes that trickle.

Each program says so, holds no more than it may, and goes on asking.
"""

import http.server
import subprocess
import threading

from harness import DEADLINE_S, HEKLA, Path, Server, Tap, atexit, await_true, expect, json, scratch

MIB = 1 << 20
CHUNK = 256 * 1024
ITEM = b'{"metadata":{"name":"a","namespace":"b","labels":{"c":"d"}}},'

# What comes behind the head of a list, again and again, and what the program says about it.
ENDLESS = {
    "items": (b'"items":[', ITEM * (CHUNK // len(ITEM)),
              "items take more than 268435456 bytes of memory"),
    "a string": (b'"items":[{"a":"', b"x" * CHUNK, "items[0] is larger than 16777216 bytes"),
    "brackets": (b'"items":[{"a":', b"[" * CHUNK, "items[0] is larger than 16777216 bytes"),
    "members": (b"", b'"a":"b",' * (CHUNK // 8),
                "the list without its items is larger than 1048576 bytes"),
}


class Hostile(http.server.ThreadingHTTPServer):
    """Answers every LIST of one kind with what has no end, and all others with an empty one."""

    daemon_threads = True

    def __init__(self, plural, head, again):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plural, self.head, self.again = plural, head, again
        self.lists = self.writes = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass # who was hung up on


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if "watch=" in query:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            threading.Event().wait() # silent
        if path.rsplit("/", 1)[-1] == self.server.plural:
            self.server.lists += 1
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b'{"kind":"List","apiVersion":"v1","metadata":'
                             b'{"resourceVersion":"1"},' + self.server.head)
            while True:
                self.wfile.write(self.server.again)
        self.answer(200, {"kind": "List", "apiVersion": "v1",
                          "metadata": {"resourceVersion": "1"}, "items": []})

    def answer_body(self):
        """What was sent, as if it were stored; every second time without the metadata that each
        stored object has."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        meta = body.setdefault("metadata", {})
        meta.setdefault("name", self.path.partition("?")[0].rsplit("/", 1)[-1])
        meta.update(uid="u", resourceVersion="1")
        self.server.writes += 1
        if self.server.writes % 2 == 0:
            del body["metadata"]
        self.answer(200 if self.command != "POST" else 201, body)

    do_POST = do_PUT = do_PATCH = do_DELETE = answer_body

    def answer(self, code, body):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Program:
    """One of ours, pointed at a server."""

    def __init__(self, verb, server, *args):
        config = scratch() / "config"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {
                "server": f"http://127.0.0.1:{server.server_address[1]}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        self.log = []
        self.process = subprocess.Popen([HEKLA, verb, "--kubeconfig", str(config), *args],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        atexit.register(self.process.kill)
        threading.Thread(target=self.read_log, daemon=True).start()

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace").rstrip("\n"))

    def most_kib(self):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0])

    def end(self):
        self.process.kill()
        self.process.wait()


def endless(verb, plural, name, args, most_mib):
    head, again, words = ENDLESS[name]
    server = Hostile(plural, head, again)
    program = Program(verb, server, *args)
    try:
        await_true(f"a log line with {words!r}",
                   lambda: any(words in line for line in program.log), 2 * DEADLINE_S)
        await_true("another try", lambda: server.lists > 1)
        expect("it runs", program.process.poll(), None)
        if program.most_kib() > most_mib * 1024:
            raise AssertionError(f"{program.most_kib()} KiB were resident, "
                                 f"want at most {most_mib} MiB")
    except AssertionError as error:
        raise AssertionError(f"{error}; log {program.log[-5:]}") from None
    finally:
        program.end()
        server.shutdown()
        server.server_close()


def main():
    tap = Tap()
    data = scratch() / "data"
    Server(data).start().kill() # makes certificates
    quiet = ("--enable-healthz=false",)
    alone = (*quiet, "--leader-elect=false", "--enable-metrics=false")
    programs = (("scheduler", "pods", alone), ("controller-manager", "jobs", alone),
                ("webhook-manager", "queues", (*quiet, "--listen-address", "127.0.0.1", "--port", "0",
                                               "--webhook-url", "https://127.0.0.1:1",
                                               "--tls-cert-file", str(data / "server.crt"),
                                               "--tls-private-key-file",
                                               str(data / "server.key"))),
                ("agent", "pods", ("--sim-nodes", "1", "--address", "127.0.0.1")))
    for verb, plural, args in programs:
        for name in ENDLESS if verb == "scheduler" else ("items", "a string"):
            most_mib = 700 if name == "items" else 150
            tap.step(f"{verb}: {name} that never ends", endless, verb, plural, name, args, most_mib)
    tap.done()


if __name__ == "__main__":
    main()
