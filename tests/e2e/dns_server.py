#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small DNS server, as the resolver of a machine.

    dns_server.py ADDRESS LOG

Listens on port 53, UDP and TCP, and writes a line for each query to LOG: protocol, source port, id and name.
Any name below example has the address 192.0.2.7, but: nosuch.* does not exist, nor any other name below
corp.example than intranet, silent.* gets no answer,
big.* has 100 addresses, which do not fit into UDP, and liar.* gets answers with a wrong id and a wrong
question before the right one.
"""

import socket
import socketserver
import struct
import sys


def read_question(message):
    """The name, and the bytes of the question."""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels), message[12 : at + 5]


def reply(message, question, code=0, addresses=(), truncated=False, wrong_id=0):
    flags = 0x8180 | code | (0x0200 if truncated else 0)
    number = struct.unpack(">H", message[:2])[0] ^ wrong_id
    out = struct.pack(">6H", number, flags, 1, len(addresses), 0, 0) + question
    for address in addresses:
        out += struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(address)
    return out


def answer(message, udp):
    """The messages to send."""
    name, question = read_question(message)
    host = name.lower()
    kind = struct.unpack(">H", question[-4:-2])[0]
    if host.startswith("silent."):
        return []
    below_corp = host.endswith(".corp.example") and host != "intranet.corp.example"
    if host.startswith("nosuch.") or below_corp or not host.endswith("example"):
        return [reply(message, question, code=3)]
    if kind != 1:
        return [reply(message, question)]
    if host.startswith("big."):
        many = [f"192.0.2.{i + 1}" for i in range(100)]
        return [reply(message, question, addresses=[] if udp else many, truncated=udp)]
    right = reply(message, question, addresses=["192.0.2.7"])
    if host.startswith("liar."):
        other = b"\4evil\7example\0\0\1\0\1"
        return [reply(message, question, addresses=["192.0.2.66"], wrong_id=1),
                reply(message, other, addresses=["192.0.2.66"]), right]
    return [right]


def note(protocol, port, message):
    with open(sys.argv[2], "a") as log:
        print(protocol, port, struct.unpack(">H", message[:2])[0], read_question(message)[0], file=log)


class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        message, sock = self.request
        note("udp", self.client_address[1], message)
        for out in answer(message, True):
            sock.sendto(out, self.client_address)


class Tcp(socketserver.StreamRequestHandler):
    def handle(self):
        while len(length := self.rfile.read(2)) == 2:
            message = self.rfile.read(struct.unpack(">H", length)[0])
            note("tcp", self.client_address[1], message)
            for out in answer(message, False):
                self.wfile.write(struct.pack(">H", len(out)) + out)


class TcpServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    import threading

    tcp = TcpServer((sys.argv[1], 53), Tcp)
    udp = socketserver.ThreadingUDPServer((sys.argv[1], 53), Udp)
    udp.daemon_threads = True
    threading.Thread(target=tcp.serve_forever, daemon=True).start()
    print("ready", flush=True)
    udp.serve_forever()


main()
