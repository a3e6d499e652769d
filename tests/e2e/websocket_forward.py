#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of pods/portforward that speaks WebSocket channels, as Kubernetes' Python client and fabric8 do.

    websocket_forward.py URL TOKEN NAMESPACE POD PORT... [--bytes N] [--protocol NAME]

Sends N bytes (default 6) to each port, which must echo them, and prints a line for each port in order:
"PORT echoed", or "PORT error: TEXT". --protocol "": names none."""

import argparse
import base64
import hashlib
import os
import select
import socket
import ssl
import struct
import sys
import urllib.parse

BINARY, CLOSE = 2, 8
PART = 60000


def connect(options):
    """Returns the connection after the handshake, and what arrived behind it."""
    url = urllib.parse.urlsplit(options.url)
    context = ssl._create_unverified_context()
    conn = context.wrap_socket(socket.create_connection((url.hostname, url.port), timeout=60))
    key = base64.b64encode(os.urandom(16)).decode()
    query = urllib.parse.urlencode([("ports", port) for port in options.ports])
    protocol = f"Sec-WebSocket-Protocol: {options.protocol}\r\n" if options.protocol else ""
    conn.sendall(
        f"GET /api/v1/namespaces/{options.namespace}/pods/{options.pod}/portforward?{query} HTTP/1.1\r\n"
        f"Host: {url.netloc}\r\nAuthorization: Bearer {options.token}\r\nConnection: Upgrade\r\n"
        f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{protocol}\r\n".encode()
    )
    answer = b""
    while b"\r\n\r\n" not in answer:
        if not (part := conn.recv(4096)):
            break
        answer += part
    head, _, rest = answer.partition(b"\r\n\r\n")
    if b" 101 " not in head.split(b"\r\n")[0]:
        sys.exit(f"no upgrade: {answer.decode()}")
    accept = base64.b64encode(hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    assert accept in head, head
    assert not options.protocol or f"Sec-WebSocket-Protocol: {options.protocol}".encode() in head, head
    return conn, rest


class Frames:
    """Sends what is to be sent while it waits for frames: a TLS connection is used by one thread at a time."""

    def __init__(self, conn, rest, output):
        self.conn, self.rest, self.output, self.unsent = conn, rest, output, b""
        conn.setblocking(False)

    def send_some(self):
        """Returns whether more could be sent later."""
        self.unsent = self.unsent or next(self.output, b"")
        if not self.unsent:
            return False
        try:
            self.unsent = self.unsent[self.conn.send(self.unsent) :]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        return True

    def take(self, count):
        while len(self.rest) < count:
            try:
                part = self.conn.recv(1 << 16)
                if not part:
                    raise EOFError
                self.rest += part
            except ssl.SSLWantReadError:
                sends = self.send_some()
                select.select([self.conn], [self.conn] if sends else [], [], 60)
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def read(self):
        first, length = self.take(2)
        if length == 126:
            (length,) = struct.unpack(">H", self.take(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.take(8))
        return first & 15, self.take(length)


def frame(payload):
    length = len(payload)
    mask = os.urandom(4)
    key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
    masked = (int.from_bytes(payload, "big") ^ key).to_bytes(length, "big")
    head = struct.pack(">BB", 128 | BINARY, 128 | length) if length < 126 else struct.pack(">BBH", 130, 254, length)
    return head + mask + masked


def messages(ports, total):
    for start in range(0, total, PART):
        for number in range(len(ports)):
            part = bytes((number + k) & 255 for k in range(start, min(start + PART, total)))
            yield frame(bytes([2 * number]) + part)


def finished(data, errors, total):
    return all(len(d) >= 2 + total or len(e) > 2 for d, e in zip(data, errors))


def main():
    parser = argparse.ArgumentParser()
    for name in ("url", "token", "namespace", "pod"):
        parser.add_argument(name)
    parser.add_argument("ports", nargs="+")
    parser.add_argument("--bytes", type=int, default=6)
    parser.add_argument("--protocol", default="v4.channel.k8s.io")
    options = parser.parse_args()
    ports = [int(port) for text in options.ports for port in text.split(",")]
    frames = Frames(*connect(options), messages(ports, options.bytes))
    data, errors = [bytearray() for _ in ports], [bytearray() for _ in ports]
    while not finished(data, errors, options.bytes):
        kind, payload = frames.read()
        if kind == CLOSE:
            break
        if kind == BINARY:
            (errors if payload[0] & 1 else data)[payload[0] // 2].extend(payload[1:])
    for number, port in enumerate(ports):
        want = bytes((number + k) & 255 for k in range(options.bytes))
        assert struct.unpack("<H", data[number][:2]) == struct.unpack("<H", errors[number][:2]) == (port,)
        if len(errors[number]) > 2:
            print(port, "error:", errors[number][2:].decode())
        else:
            print(port, "echoed" if data[number][2:] == want else "garbled")


main()
