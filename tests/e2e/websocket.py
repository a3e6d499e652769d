#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Watches over a WebSocket until the ConfigMap "seen" is added; prints the status line of the answer
and each event. websocket.py URL CA TOKEN PATH"""

import base64
import json
import os
import socket
import ssl
import struct
import sys
from urllib.parse import urlsplit

TIMEOUT_S = 30


def open_socket(url, ca, token, path):
    at = urlsplit(url)
    context = ssl.create_default_context(cafile=ca)
    raw = socket.create_connection((at.hostname, at.port), timeout=TIMEOUT_S)
    connection = context.wrap_socket(raw, server_hostname=at.hostname)
    key = base64.b64encode(os.urandom(16)).decode()
    connection.sendall((f"GET {path} HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: Bearer {token}\r\n"
                        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        f"Sec-WebSocket-Key: {key}\r\n\r\n").encode())
    return connection.makefile("rb")


def frames(stream):
    """(opcode, payload) of each frame."""
    while True:
        first, n = stream.read(2)
        if n == 126:
            n, = struct.unpack(">H", stream.read(2))
        elif n == 127:
            n, = struct.unpack(">Q", stream.read(8))
        yield first & 15, stream.read(n)


def main():
    stream = open_socket(*sys.argv[1:5])
    print(stream.readline().decode().strip(), flush=True)
    while stream.readline().strip():
        pass
    for opcode, payload in frames(stream):
        if opcode != 1:
            sys.exit(f"expected a text frame, got opcode {opcode}")
        event = json.loads(payload)
        obj = event["object"]
        print(event["type"], obj["kind"], obj["metadata"]["name"], flush=True)
        if obj["metadata"]["name"] == "seen":
            return


if __name__ == "__main__":
    main()
