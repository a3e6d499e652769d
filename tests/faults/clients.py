#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that are slow, silent or too many, through the real server.

They are cut or turned away; everybody else is served meanwhile, and memory and descriptors are
what they were when they have gone.
"""

import resource
import threading

from harness import (DEADLINE_S, MAPS, OURS, Server, Tap, await_true, config_map, expect,
                     raise_files, scratch, socket)

LIMIT = 3 * 1024 * 1024
BODIES = 128 * 1024 * 1024
DRIP_S = 0.05
CONNECTIONS = 3000 # wished for; half of them finish the handshake
SMALL = 4096       # a receive buffer that is full at once


def metric(server, name):
    text = server.api("GET", "/metrics").body.decode()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


def served(server):
    expect("code of somebody else's request", server.api("GET", MAPS).code, 200)


def await_alone(server):
    """Until the connection that asks is the only one."""
    await_true("all other connections closed",
               lambda: metric(server, "hekla_apiserver_connections") == 1)


def fill(server, count, size, name="large"):
    with server.client() as client:
        for k in range(count):
            answer = client.request("POST", MAPS, config_map(f"{name}-{k}", "x" * size))
            expect(f"code of {answer}", answer.code, 201)


def grown(server, before_kib, most_kib):
    now = server.rss_kib()
    if now - before_kib > most_kib:
        raise AssertionError(f"memory grew from {before_kib} to {now} KiB, "
                             f"want at most {most_kib} more")


# ---- slow and silent ones ----


class Dripper(threading.Thread):
    """Sends its bytes one at a time until it is cut."""

    def __init__(self, connection, text):
        super().__init__(daemon=True)
        self.connection, self.text, self.sent, self.cut = connection, text, 0, False
        self.start()

    def run(self):
        try:
            for k in range(len(self.text)):
                self.connection.sendall(self.text[k:k + 1])
                self.sent += 1
                self.connection.settimeout(DRIP_S)
                try:
                    if self.connection.recv(1) == b"":
                        raise ConnectionError
                except TimeoutError:
                    pass
        except OSError:
            self.cut = True
        finally:
            self.connection.close()


def drippers(server):
    """What each of them sends would take a minute or more."""
    slow = server.client().head("POST", MAPS, ["Content-Length: 4000"])
    long_line = b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\n\r\n"
    long_headers = b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % k for k in range(300))
    body = server.client()
    body.send(slow)
    return {
        "a TLS handshake": Dripper(server.connect(), b"\x16\x03\x01\x0f\xa0" + b"\0" * 2000),
        "a request line": Dripper(server.client().socket, long_line),
        "headers": Dripper(server.client().socket, long_headers),
        "a body": Dripper(body.socket, b" " * 4000),
    }


def drips_are_cut(server):
    for name, dripper in drippers(server).items():
        served(server)
        dripper.join(DEADLINE_S)
        expect(f"{name} that drips is cut", dripper.cut, True)
    await_alone(server)


def silence_is_cut(server):
    silent = {
        "nothing at all": server.connect(),
        "half a handshake": server.connect(),
        "no request": server.client().socket,
        "half a request": server.client().socket,
        "half a body": server.client().socket,
        "no second request": server.client().socket,
    }
    silent["half a handshake"].sendall(b"\x16\x03\x01\x02\x00\x01\x00")
    silent["half a request"].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
    silent["half a body"].sendall(server.client().head("POST", MAPS, ["Content-Length: 10"]) + b"x")
    with server.client() as client:
        silent["no second request"].sendall(client.head("GET", MAPS))
    served(server)
    for name, connection in silent.items():
        try:
            while connection.recv(65536):
                pass
        except TimeoutError as error:
            raise AssertionError(f"{name}: not cut within {DEADLINE_S} s") from error
        except OSError:
            pass # cut, if not politely
        connection.close()
    await_alone(server)


def unread_answers_are_cut(server):
    """Each asks for more than fits the buffers between us, and reads none of it. Lists, indented or
    not, are written as they are read, single objects at once."""
    fill(server, 24, 400 * 1024)
    fill(server, 1, 900 * 1024, "single")
    paths = [MAPS, MAPS + "?pretty=true", f"{MAPS}/single-0"]
    before = server.rss_kib()
    clients = [server.client(receive_bytes=SMALL) for _ in range(10)]
    for number, client in enumerate(clients):
        client.send(10 * client.head("GET", paths[number % len(paths)]))
    await_true("answers that wait to be read",
               lambda: metric(server, "hekla_apiserver_unread_bytes") > 0)
    served(server)
    await_alone(server)
    expect("bytes unread", metric(server, "hekla_apiserver_unread_bytes"), 0.0)
    grown(server, before, 64 * 1024)
    for client in clients:
        client.close()


# ---- watchers that do not read ----


def follow(server, rv, count, result):
    """A watcher as it should be."""
    with server.client() as client:
        for event in client.events(f"{OURS}&watch=true&resourceVersion={rv}"):
            result.append(event["object"]["metadata"]["name"])
            if len(result) == count:
                return


def stalled_watchers_cost_nothing(server):
    count, size = 1000, 16 * 1024
    rv, before = server.list_rv(), server.rss_kib()
    stalled = [server.client(receive_bytes=SMALL) for _ in range(50)]
    for client in stalled:
        client.send(client.head("GET", f"{OURS}&watch=true&resourceVersion={rv}"))
    await_true("all watches open", lambda: metric(server, "hekla_apiserver_watches") == 50)
    names = []
    reader = threading.Thread(target=follow, args=(server, rv, count, names), daemon=True)
    reader.start()
    fill(server, count, size, "event")
    reader.join(DEADLINE_S)
    expect("events the reader got", names, [f"event-{k}" for k in range(count)])
    await_true("stalled watches closed", lambda: metric(server, "hekla_apiserver_watches") == 0)
    # The objects and their history, once, whoever watches.
    grown(server, before, 2 * count * size // 1024 + 48 * 1024)
    for client in stalled:
        client.close()
    await_alone(server)


def late_watchers_are_told(server):
    """One that begins to read when the history has moved on: a gapless part, then 410."""
    count = 1500
    rv = server.list_rv()
    late = server.client(receive_bytes=SMALL)
    stream = late.events(f"{OURS}&watch=true&resourceVersion={rv}")
    fill(server, 1, 16 * 1024, "late")
    expect("the first event", next(stream)["object"]["metadata"]["name"], "late-0")
    fill(server, count, 16 * 1024, "later")
    late.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    events = list(stream)
    last = events.pop()
    expect("the last event", (last["type"], last["object"]["code"], last["object"]["reason"]),
           ("ERROR", 410, "Expired"))
    names = [event["object"]["metadata"]["name"] for event in events]
    expect("events before it", names, [f"later-{k}" for k in range(len(names))])
    if len(names) >= count:
        raise AssertionError("the watch had everything, it was not late")
    late.close()
    served(server)


# ---- memory for bodies ----


def bodies_are_bounded(server):
    """More bytes of unfinished bodies than the server keeps for one user: later ones are told to come
    again."""
    before = server.rss_kib()
    clients = [server.client() for _ in range(60)]
    for client in clients:
        client.send(client.head("POST", MAPS, [f"Content-Length: {LIMIT}",
                                               "Content-Type: application/json"]))
        client.send(b" " * (LIMIT - 1))
    await_true("bodies up to the bound",
               lambda: metric(server, "hekla_apiserver_body_bytes") > BODIES // 2 - LIMIT)
    with server.client() as client:
        answer = client.request("POST", MAPS, " " * (LIMIT - 1))
        status = answer.json()
        expect("code and reason", (answer.code, status["kind"], status["reason"]),
               (429, "Status", "TooManyRequests"))
        expect("Retry-After", answer.headers.get("retry-after"), "1")
    served(server)
    grown(server, before, 2 * BODIES // 1024) # what was dropped may not be given back yet
    for client in clients:
        client.close()
    await_alone(server)
    fill(server, 1, LIMIT // 4, "after")


# ---- too many ----


def many_connections(tap):
    """The server starts with few descriptors and takes what it may have."""
    allowed = raise_files(CONNECTIONS + 200) - 200
    count = min(CONNECTIONS, allowed)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    server = Server(scratch() / "data", prefix=["prlimit", f"--nofile=256:{hard}"]).start()
    served(server)
    await_alone(server)
    fds, rss = server.fds(), server.rss_kib()
    crowd = []

    def opened():
        for k in range(count):
            crowd.append(server.client().socket if k % 2 else server.connect())
        await_true(f"{count} connections",
                   lambda: metric(server, "hekla_apiserver_connections") == count + 1)
        served(server)
        grown(server, rss, count * 100)

    def returned():
        for connection in crowd:
            connection.close()
        await_alone(server)
        await_true(f"descriptors back to {fds}", lambda: server.fds() <= fds)
        served(server)

    tap.step(f"{count} connections are held open, and others are served", opened)
    tap.step("descriptors are released when the connections close", returned)
    tap.step("the server ends with an empty log", ends_clean, server)


def refused(server):
    try:
        server.client().close()
    except TimeoutError as error:
        raise AssertionError("neither taken nor refused") from error
    except OSError:
        return True
    return False


def limit_is_kept(server, limit):
    """Those who are served stay, those outside hear so at once, and get in when there is room. One
    user has at most half, so there are two."""
    account = "/api/v1/namespaces/default/serviceaccounts"
    server.api("POST", account, {"metadata": {"name": "other"}})
    token = server.api("POST", account + "/other/token", {"spec": {}}).json()["status"]["token"]
    answer = server.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "other"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "other", "namespace": "default"}]})
    expect(f"code of {answer}", answer.code, 201)
    await_alone(server)
    inside = []
    for k in range(limit):
        client = server.client()
        client.token = token if k % 2 else client.token
        events = client.events(MAPS + "?watch=1")
        next(events)
        inside.append((client, events))
    for _ in range(5):
        expect("a connection too many is refused", refused(server), True)
    server.await_log('msg="too many connections, refusing new ones"')
    expect("log lines about it", len(server.log), 1)
    for client, _ in inside[:limit // 2]:
        client.close()
    await_true("room for new ones", lambda: not refused(server))
    fill(server, 1, 10, "seen")
    for client, events in inside[limit // 2:]:
        while next(events)["object"]["metadata"]["name"] != "seen-0":
            pass
        client.close()
    await_alone(server)


def ends_clean(server):
    expect("exit status", server.stop(), 0)
    expect("log", server.log, [])


def ends_in_spite_of_them(server):
    stalled = [server.client(receive_bytes=SMALL) for _ in range(4)]
    stalled[0].send(stalled[0].head("GET", MAPS)) # reads nothing of a large answer
    stalled[1].send(stalled[1].head("GET", MAPS + "?watch=true"))
    stalled[2].send(stalled[2].head("POST", MAPS, ["Content-Length: 10"]) + b"x")
    stalled[3].send(b"GET /")
    raw = server.connect()
    await_true("all of them known",
               lambda: metric(server, "hekla_apiserver_connections") == len(stalled) + 2)
    ends_clean(server)
    for connection in (raw, *stalled):
        connection.close()


def options_are_checked():
    for args, text in ((("--idle-timeout", "0"), "option --idle-timeout is '0', want a number"),
                       (("--header-timeout", "x"), "option --header-timeout is 'x', want a number"),
                       (("--max-connections", "-1"), "option --max-connections is '-1'"),
                       (("--history", "1e9"), "option --history is '1e9'")):
        server = Server(scratch() / "data", *args).launch()
        expect(f"exit status with {args}", server.process.wait(DEADLINE_S), 1)
        server.await_log(text)


def main():
    tap = Tap()
    hasty = Server(scratch() / "data", "--header-timeout", "2", "--idle-timeout", "2").start()
    tap.step("a slow sender is disconnected: handshake, request line, headers, body",
             drips_are_cut, hasty)
    tap.step("a silent client is disconnected: before, in and between requests",
             silence_is_cut, hasty)
    tap.step("a client that reads no answer is disconnected", unread_answers_are_cut, hasty)
    tap.step("watchers that do not read slow down no other client",
             stalled_watchers_cost_nothing, hasty)
    tap.step("the server ends with an empty log", ends_clean, hasty)

    patient = Server(scratch() / "data", "--history", "200").start()
    tap.step("a watcher that is too late gets 410", late_watchers_are_told, patient)
    tap.step("the memory of waiting bodies is bounded", bodies_are_bounded, patient)
    tap.step("stalled clients do not delay the end of the server", ends_in_spite_of_them, patient)

    many_connections(tap)

    small = Server(scratch() / "data", "--max-connections", "50").start()
    tap.step("--max-connections is kept", limit_is_kept, small, 50)
    small.kill()
    poor = Server(scratch() / "data", prefix=["prlimit", "--nofile=160:160"]).start()
    tap.step("a server with few descriptors reserves some for itself", limit_is_kept, poor, 96)
    poor.kill()
    tap.step("invalid limits are refused", options_are_checked)
    tap.done()


if __name__ == "__main__":
    main()
