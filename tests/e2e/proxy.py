#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/e2e/proxy.t runs in pods and calls from outside.

    proxy.py serve ADDRESS PORT [CERT KEY]  an HTTP server that shows what it was sent
    proxy.py echo URL TOKEN                 opens a WebSocket and says "hello" and 1 MB through it
    proxy.py leave URL TOKEN                asks and hangs up before the answer
"""

import base64
import hashlib
import http.server
import json
import os
import select
import socket
import ssl
import sys
import time
import urllib.parse

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PIECE = b"0123456789abcdef" * 4096
left = []  # requests whose client hung up


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, body, status=200, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def read_body(self):
        """The bytes of the body, their digest, and how they were framed."""
        digest, total = hashlib.sha256(), 0
        if self.headers.get("Transfer-Encoding") == "chunked":
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                data = self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
                digest.update(data)
                total += size
            return total, digest.hexdigest(), "chunked"
        todo = int(self.headers.get("Content-Length") or 0)
        while todo > 0:
            data = self.rfile.read(min(todo, 65536))
            digest.update(data)
            total += len(data)
            todo -= len(data)
        return total, digest.hexdigest(), "length"

    def chunks(self, count, pause_s=0.0):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for k in range(count):
            data = b"chunk %d\n" % k
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            time.sleep(pause_s)
        self.wfile.write(b"0\r\n\r\n")

    def echo(self):
        accept = base64.b64encode(
            hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + MAGIC).digest())
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                         b"Connection: Upgrade\r\nX-Pod: yes\r\nSec-WebSocket-Accept: " + accept +
                         b"\r\n\r\n")
        while True:
            data = self.connection.recv(65536)
            if not data:
                break
            self.connection.sendall(data)
        self.close_connection = True

    def wait(self):
        """Waits until the client hangs up."""
        self.connection.settimeout(60)
        self.close_connection = True
        if not self.connection.recv(1):
            left.append(self.path)

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/echo" and "websocket" in self.headers.get("Upgrade", ""):
            return self.echo()
        if url.path == "/chunks":
            return self.chunks(20)
        if url.path == "/slow":
            return self.chunks(5, 0.2)
        if url.path == "/wait":
            return self.wait()
        if url.path == "/left":
            return self.reply(json.dumps(left).encode())
        if url.path == "/large":
            self.send_response(200)
            self.send_header("Content-Length", str(50 << 20))
            self.end_headers()
            for _ in range((50 << 20) // len(PIECE)):
                self.wfile.write(PIECE)
            return None
        if url.path == "/cut":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nhello\r\n")
            self.close_connection = True
            return None
        if url.path == "/refuse":
            self.close_connection = True
            return self.reply(b"no\n", 403)
        if url.path == "/elsewhere":
            return self.reply(b"", 302, [("Location", "http://other.example/x")])
        if url.path == "/redirect":
            return self.reply(b"", 302, [("Location", "/target?a=b")])
        if url.path == "/nonsense":
            self.wfile.write(b"this is not HTTP\r\n\r\n")
            self.close_connection = True
            return None
        if url.path == "/headers":
            return self.reply(b"{}", 200, [("X-Pod", "1"), ("X-Pod", "2"), ("Keep-Alive", "timeout=5"),
                                           ("Access-Control-Allow-Origin", "*"),
                                           ("Set-Cookie", "a=b")])
        total, digest, framing = self.read_body()
        return self.reply(json.dumps({
            "method": self.command, "path": self.path, "bytes": total, "sha256": digest,
            "framing": framing, "headers": {k.lower(): v for k, v in self.headers.items()},
        }).encode() + b"\n", 200, [("Content-Type", "application/json")])

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer


def serve(address, port, cert=None, key=None):
    server = http.server.ThreadingHTTPServer((address, int(port)), Handler)
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def connect(url, token, more=()):
    """Sends a request to the API server and returns the connection."""
    to = urllib.parse.urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    raw = socket.create_connection((to.hostname, to.port), timeout=60)
    sock = context.wrap_socket(raw)
    lines = ["GET %s HTTP/1.1" % to.path, "Host: " + to.netloc, "Authorization: Bearer " + token]
    sock.sendall("\r\n".join([*lines, *more, "", ""]).encode())
    return sock


def exchange(sock, message, want):
    """Sends the message and receives as many bytes as wanted at the same time, in one thread: no two may
    use a TLS connection."""
    busy = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
    sock.setblocking(False)
    sent, got = 0, b""
    while len(got) < want:
        moved = False
        try:
            sent += sock.send(message[sent:sent + 16384]) if sent < len(message) else 0
            moved = sent < len(message)
        except busy:
            pass
        try:
            data = sock.recv(65536)
            assert data, "the tunnel ended early"
            got, moved = got + data, True
        except busy:
            pass
        if not moved:
            ready = select.select([sock], [sock] if sent < len(message) else [], [], 60)
            assert any(ready), "the tunnel stands still"
    return got


def echo(url, token):
    key = base64.b64encode(os.urandom(16))
    sock = connect(url, token, ["Connection: Upgrade", "Upgrade: websocket",
                                "Sec-WebSocket-Version: 13",
                                "Sec-WebSocket-Key: " + key.decode()])
    answer = b""
    while b"\r\n\r\n" not in answer:
        data = sock.recv(4096)
        assert data, answer
        answer += data
    head, rest = answer.split(b"\r\n\r\n", 1)
    want = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
    assert head.startswith(b"HTTP/1.1 101 "), head
    assert want in head and b"X-Pod: yes" in head, head
    message = b"hello" + os.urandom(1 << 20)
    rest += exchange(sock, message, len(message) - len(rest))
    assert rest == message
    sock.close()
    print("echoed %d bytes" % len(rest))


def leave(url, token):
    sock = connect(url, token)
    time.sleep(0.5)
    sock.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
