# SPDX-License-Identifier: Apache-2.0
"""A TLS-terminating proxy before an API server that does harm by rule.

    proxy = Proxy(address, authority, crt, key).start()
    rule = proxy.rule(answer(503), method="POST", path="/binding", times=2)
    ...
    rule.seen, rule.remove()

A rule names a method, a part of the path (or "watch", "list"), a part of the user agent, how many
matching requests pass first (after) and how many are hit then (times; None: all). The newest rule
that matches is asked first. What it does is a function of the exchange: those below, or the test's
own. Without a rule the proxy is a pipe: one thread for each connection, one connection behind each,
and streams are passed on as they come.
"""

import json
import os
import re
import select
import socket
import ssl
import struct
import threading
import time

WAIT_S = 60  # for a peer that does not answer
PIECE = 65536


class Closed(Exception):
    """A peer went away."""


class Reader:
    """Bytes of one peer, cut by HTTP's rules."""

    def __init__(self, sock):
        self.socket, self.buffer = sock, b""

    def more(self):
        try:
            data = self.socket.recv(PIECE)
        except (OSError, ssl.SSLError) as error:
            raise Closed from error
        if not data:
            raise Closed
        self.buffer += data

    def has_some(self):
        return bool(self.buffer) or self.socket.pending() > 0

    def until(self, mark):
        while mark not in self.buffer:
            self.more()
        end = self.buffer.index(mark) + len(mark)
        part, self.buffer = self.buffer[:end], self.buffer[end:]
        return part

    def exactly(self, n):
        while len(self.buffer) < n:
            self.more()
        part, self.buffer = self.buffer[:n], self.buffer[n:]
        return part

    def head(self):
        """The first line's words, and headers by lower-case names; the text as it came."""
        text = self.until(b"\r\n\r\n")
        lines = text.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return lines[0].split(" ", 2), headers, text

    def chunk(self):
        """One chunk as it came, and its data; no data at the end."""
        line = self.until(b"\r\n")
        data = self.exactly(int(line.split(b";")[0], 16) + 2)
        return line + data, data[:-2]

    def body(self, headers):
        if "chunked" in headers.get("transfer-encoding", ""):
            whole = b""
            while (chunk := self.chunk())[1]:
                whole += chunk[1]
            return whole
        return self.exactly(int(headers.get("content-length", 0)))


def send(sock, data):
    try:
        sock.sendall(data)
    except (OSError, ssl.SSLError) as error:
        raise Closed from error


def framed(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Exchange:
    """One request on its way, and what can be done with it."""

    def __init__(self, proxy, connection, words, headers, text, body):
        self.proxy, self.connection = proxy, connection
        self.method, self.path = words[0], words[1]
        self.headers, self.text, self.body = headers, text, body
        self.agent = headers.get("user-agent", "")
        self.code = None  # of the answer, once there is one

    # What it asks for.

    def is_watch(self):
        return bool(re.search(r"[?&]watch=(true|1)", self.path))

    def is_list(self):
        """Of a whole kind: no name, no subresource."""
        return self.method == "GET" and not self.is_watch() and "?limit=" in self.path

    def is_like(self, pattern):
        if pattern in ("watch", "list"):
            return self.is_watch() if pattern == "watch" else self.is_list()
        return pattern in self.path

    # What can be done.

    def forward(self):
        """Head and body of the server's answer."""
        words, headers, _ = self.ask()
        return int(words[1]), headers, self.connection.upstream.body(headers)

    def ask(self):
        head = self.connection.call(self.text + self.raw_body())
        self.code = int(head[0][1])
        return head

    def raw_body(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            return (framed(self.body) if self.body else b"") + b"0\r\n\r\n"
        return self.body

    def reply(self, code, body, headers=()):
        self.code = code
        lines = [f"HTTP/1.1 {code} Injected", "Content-Type: application/json",
                 f"Content-Length: {len(body)}", *headers]
        send(self.connection.client.socket, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def reset(self):
        self.connection.aborted = True
        raise Closed

    def client_is_gone(self):
        return self.connection.client_is_gone()

    def carry(self):
        """As if nobody were in between."""
        words, headers, text = self.ask()
        code = int(words[1])
        if self.is_watch() and code == 200:
            self.connection.stream(self, text)
        elif self.method == "HEAD" or code in (204, 304):
            send(self.connection.client.socket, text)
        elif "chunked" in headers.get("transfer-encoding", ""):
            send(self.connection.client.socket, text)
            while (chunk := self.connection.upstream.chunk())[1]:
                send(self.connection.client.socket, chunk[0])
            send(self.connection.client.socket, chunk[0])
        else:
            send(self.connection.client.socket, text + self.connection.upstream.body(headers))


# ---- what a rule may do ----


def reset(x):
    """The connection breaks before the server has heard of it."""
    x.reset()


def lost_answer(x):
    """The server carries it out, and the connection breaks."""
    x.forward()
    x.reset()


def cut_answer(x):
    """The connection breaks in the middle of the answer."""
    code, _, body = x.forward()
    send(x.connection.client.socket,
         f"HTTP/1.1 {code} Cut\r\nContent-Length: {len(body)}\r\n\r\n".encode() +
         body[:len(body) // 2])
    x.reset()


def truncated(x):
    """A whole answer whose text is not."""
    code, _, body = x.forward()
    x.reply(code, body[:len(body) // 2])


def status_body(code, reason, message):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                       "message": message, "reason": reason, "code": code}).encode()


REASONS = {401: "Unauthorized", 403: "Forbidden", 409: "Conflict", 410: "Expired",
           429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
           504: "Timeout"}


def answer(code, retry_after_s=None, carried_out=False):
    """The server refuses; or says so after it has carried it out."""
    def fault(x):
        if carried_out:
            x.forward()
        headers = [] if retry_after_s is None else [f"Retry-After: {retry_after_s}"]
        x.reply(code, status_body(code, REASONS[code], f"injected {code}"), headers)
    return fault


def slow(seconds, pieces=4):
    """The answer comes in pieces."""
    def fault(x):
        code, _, body = x.forward()
        send(x.connection.client.socket,
             f"HTTP/1.1 {code} Slow\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        size = max(1, -(-len(body) // pieces))
        for at in range(0, len(body), size):
            time.sleep(seconds / pieces)
            send(x.connection.client.socket, body[at:at + size])
    return fault


def silent(x):
    """A watch that is accepted and never says anything."""
    x.code = 200
    x.connection.stream(x, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                        b"Transfer-Encoding: chunked\r\n\r\n", alone=True)


class Hold:
    """Requests wait here until they are let go; of clients that are gone meanwhile nothing is
    sent, or all the same (late)."""

    def __init__(self, late=False):
        self.late, self.open, self.waiting = late, threading.Event(), 0

    def __call__(self, x):
        self.waiting += 1
        while not self.open.wait(0.05):
            if not self.late and x.client_is_gone():
                raise Closed
        x.carry()


class Rule:
    def __init__(self, proxy, fault, method=None, path="", agent="", times=None, after=0):
        self.proxy, self.fault = proxy, fault
        self.method, self.path, self.agent = method, path, agent
        self.left, self.after = times, after
        self.seen = 0  # how many it has hit
        self.passed = 0

    def wants(self, x):
        return (self.method in (None, x.method) and x.is_like(self.path) and
                self.agent in x.agent)

    def take(self):
        """Counts a request that matches; whether it is hit."""
        if self.passed < self.after:
            self.passed += 1
            return False
        if self.left == 0:
            return False
        if self.left is not None:
            self.left -= 1
        self.seen += 1
        return True

    def remove(self):
        with self.proxy.lock:
            if self in self.proxy.rules:
                self.proxy.rules.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class Stream:
    """A watch that goes on. The thread of its connection and the test both write to it."""

    def __init__(self, x):
        self.path, self.agent, self.connection = x.path, x.agent, x.connection
        self.lock, self.over = threading.Lock(), False
        self.mute = False  # set: what the server says is lost

    def pass_on(self, chunk):
        with self.lock:
            if not self.mute and not self.over:
                send(self.connection.client.socket, chunk)

    def say(self, text, end=True):
        """An event of ours, and the end."""
        with self.lock:
            if self.over:
                return
            try:
                send(self.connection.client.socket,
                     framed(text) + (b"0\r\n\r\n" if end else b""))
            except Closed:
                pass
        if end:
            self.finish()

    def finish(self, abort=False):
        self.over = True
        self.connection.wake(abort)


class Connection(threading.Thread):
    """A client's connection and the one behind it."""

    def __init__(self, proxy, raw):
        super().__init__(daemon=True)
        self.proxy, self.raw = proxy, raw
        self.client = self.upstream = None
        self.aborted = False
        self.start()

    def run(self):
        try:
            self.raw.settimeout(WAIT_S)
            self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.client = Reader(self.proxy.context.wrap_socket(self.raw, server_side=True))
            while True:
                self.client.socket.settimeout(None)
                self.exchange()
        except (Closed, OSError, ssl.SSLError):
            pass
        finally:
            self.close()

    def exchange(self):
        words, headers, text = self.client.head()
        x = Exchange(self.proxy, self, words, headers, text, self.client.body(headers))
        rule = self.proxy.find(x)
        try:
            (rule.fault if rule else Exchange.carry)(x)
        finally:
            self.proxy.note(x, rule)

    # The server's side.

    def call(self, data):
        """Sends a request; the head of its answer."""
        if self.upstream is None:
            raw = socket.create_connection(self.proxy.address, WAIT_S)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.upstream = Reader(self.proxy.upstream_context.wrap_socket(
                raw, server_hostname=self.proxy.address[0]))
            self.upstream.socket.settimeout(None)
        send(self.upstream.socket, data)
        return self.upstream.head()

    # Streams.

    def stream(self, x, head, alone=False):
        """Until one of the two ends it; alone: there is nobody behind us."""
        stream = Stream(x)
        peers = [self.client.socket] + ([] if alone else [self.upstream.socket])
        send(self.client.socket, head)
        with self.proxy.lock:
            self.proxy.streams.append(stream)
        try:
            while self.has_more(stream, peers):
                chunk, data = self.upstream.chunk()
                stream.pass_on(chunk)
                if not data:
                    return
            raise Closed
        finally:
            stream.over = True
            with self.proxy.lock:
                self.proxy.streams.remove(stream)

    def has_more(self, stream, peers):
        """Waits for a chunk; False when it is over, or the client gone."""
        if len(peers) > 1 and self.upstream.has_some():
            return not stream.over
        ready, _, _ = select.select(peers, [], [])
        return not stream.over and self.client.socket not in ready

    def client_is_gone(self):
        ready, _, _ = select.select([self.client.socket], [], [], 0)
        return bool(ready)

    # The end.

    def wake(self, abort):
        """From another thread: it closes what it has."""
        sock = self.client.socket if self.client else self.raw
        self.aborted = self.aborted or abort
        try:  # on the descriptor: a TLS socket would forget that it is one
            with socket.socket(fileno=os.dup(sock.fileno())) as bare:
                bare.shutdown(socket.SHUT_RD)
        except OSError:
            pass

    def close(self):
        sock = self.client.socket if self.client else self.raw
        try:
            if self.aborted:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        except OSError:
            pass
        if self.upstream:
            self.upstream.socket.close()
        with self.proxy.lock:
            self.proxy.connections.discard(self)


class Proxy:
    """Between the programs of a test and one API server."""

    def __init__(self, address, authority, crt, key):
        """address: host and port of the API server; crt and key: who we say we are."""
        self.address = address
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(crt, key)
        self.context.set_alpn_protocols(["http/1.1"])
        self.upstream_context = ssl.create_default_context(cafile=str(authority))
        self.upstream_context.set_alpn_protocols(["http/1.1"])
        self.lock = threading.Lock()
        self.rules, self.streams, self.log = [], [], []
        self.connections = set()
        self.refuses = False  # every connection is reset at once
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"

    def start(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            if self.refuses:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raw.close()
                continue
            connection = Connection(self, raw)
            with self.lock:
                self.connections.add(connection)

    def find(self, x):
        with self.lock:
            for rule in self.rules:
                if rule.wants(x) and rule.take():
                    return rule
        return None

    def note(self, x, rule):
        with self.lock:
            self.log.append((time.monotonic(), x.method, x.path, x.agent, x.code, rule is not None))

    def rule(self, fault, **match):
        rule = Rule(self, fault, **match)
        with self.lock:
            self.rules.insert(0, rule)
        return rule

    def some_streams(self, path="", agent=""):
        with self.lock:
            return [s for s in self.streams if path in s.path and agent in s.agent]

    def expire(self, path="", agent=""):
        """An ERROR event of code 410 on each of these watches; how many there were."""
        event = {"type": "ERROR", "object": json.loads(
            status_body(410, "Expired", "too old resource version: 1 (2)"))}
        return self.speak(json.dumps(event).encode() + b"\n", path, agent)

    def speak(self, text, path="", agent=""):
        streams = self.some_streams(path, agent)
        for stream in streams:
            stream.say(text)
        return len(streams)

    def cut(self):
        """Every connection is reset."""
        with self.lock:
            connections = list(self.connections)
        for connection in connections:
            connection.wake(abort=True)
        return len(connections)

    def requests(self, since=0.0, agent=""):
        """Of the log: time, method, path, agent, code, whether a rule hit it."""
        with self.lock:
            return [entry for entry in self.log if entry[0] >= since and agent in entry[3]]

    def end(self):
        self.listener.close()
        self.cut()
