#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a terminal and talks to it, as lines of standard input say:

    size ROWS COLUMNS   the terminal has that size from now on
    send TEXT           types it; \\n, \\x03 and the like stand for the keys
    expect TEXT         waits until the command has printed the text, after what was expected before

The exit status is the command's; 1 with what was printed when a text does not come.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

PATIENCE_S = 20


class Terminal:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        self.seen = b""

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, deadline):
        """False when nothing more will come."""
        wait = max(0, deadline - time.monotonic())
        if not select.select([self.fd], [], [], wait)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data
        return data != b""

    def expect(self, text):
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            if not self.read(deadline):
                sys.exit(f"expected: {text!r}\ngot:      {self.seen!r}")
        self.seen = self.seen.split(text, 1)[1]

    def end(self):
        deadline = time.monotonic() + PATIENCE_S
        while self.read(deadline):
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main():
    terminal = Terminal(sys.argv[1:])
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        text = rest.encode().decode("unicode_escape").encode()
        if word == "size":
            terminal.size(*map(int, rest.split()))
        elif word == "send":
            os.write(terminal.fd, text)
        elif word == "expect":
            terminal.expect(text)
    sys.exit(terminal.end())


if __name__ == "__main__":
    main()
