#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that listen, for pods, and their clients.

    sockets.py serve ADDRESS PORT DEED [FILE]   listens until it is killed; port 0: any, printed
    sockets.py ask PORT [echo]                  sends stdin to 127.0.0.1:PORT, prints the answer
    sockets.py hold PORT N                      N connections at a time, each asked and checked
    sockets.py ports N                          prints N free ports

DEED is what a connection gets: echo (what it sends), digest (of all it sends, after its end), file
(FILE, then the end), deaf (nothing is read), once (one echo, then the program ends)."""

import hashlib
import os
import socket
import sys
import threading

PART = 1 << 16


def parts(conn):
    """Yields what arrives until the end."""
    while part := conn.recv(PART):
        yield part


def echo(conn, _):
    for part in parts(conn):
        conn.sendall(part)


def digest(conn, _):
    total = hashlib.sha256()
    for part in parts(conn):
        total.update(part)
    conn.sendall(total.hexdigest().encode() + b"\n")


def give_file(conn, path):
    with open(path, "rb") as file:
        conn.sendfile(file)


def deaf(_conn, _):
    threading.Event().wait()


def once(conn, _):
    conn.sendall(conn.recv(PART))
    conn.close()
    os._exit(0)


DEEDS = {"echo": echo, "digest": digest, "file": give_file, "deaf": deaf, "once": once}


def attend(conn, deed, path):
    try:
        with conn:
            DEEDS[deed](conn, path)
    except OSError:
        pass


def serve(address, port, deed, path=None):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, int(port)), family=family, backlog=512)
    print("listens on", listener.getsockname()[1], flush=True)
    while True:
        conn = listener.accept()[0]
        threading.Thread(target=attend, args=(conn, deed, path), daemon=True).start()


def dial(port):
    return socket.create_connection(("127.0.0.1", int(port)), timeout=60)


def send_all(conn, file):
    while part := file.read(PART):
        conn.sendall(part)
    conn.shutdown(socket.SHUT_WR)


def ask(port, *_):
    conn = dial(port)
    sender = threading.Thread(target=send_all, args=(conn, sys.stdin.buffer), daemon=True)
    sender.start()
    for part in parts(conn):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def hold(port, count):
    """All connections are open before the first is used."""
    conns = [dial(port) for _ in range(int(count))]
    for number, conn in enumerate(conns):
        conn.sendall(b"%d\n" % number)
    for number, conn in enumerate(conns):
        conn.shutdown(socket.SHUT_WR)
        answer = b"".join(parts(conn))
        if answer != b"%d\n" % number:
            sys.exit(f"connection {number}: {answer}")
    print("all answered")


def ports(count):
    open_sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(count))]
    print(*[one.getsockname()[1] for one in open_sockets])


COMMANDS = {"serve": serve, "ask": ask, "hold": hold, "ports": ports}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
