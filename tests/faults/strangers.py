#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers at the door of the real server: requests that are not HTTP as it should be, more
connections than there are descriptors, bodies that are announced and never come.

Whatever they do, they are answered or cut, what they used comes back, and those who have
credentials are served meanwhile.
"""

import os
import resource
import select
import subprocess

from harness import (DEADLINE_S, HEKLA, MAPS, Server, Tap, await_true, config_map, expect, expect_in,
                     json, scratch)

LIMIT = 3 * 1024 * 1024
HOST = b"Host: x\r\n"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
NEXT = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


def stranger(server):
    """A connection over TLS on which nobody authenticates."""
    return server.client()


def read_all(client):
    """Everything up to the end of the connection."""
    text = client.buffer
    try:
        while data := client.socket.recv(65536):
            text += data
    except TimeoutError as error:
        raise AssertionError(f"not closed within {DEADLINE_S} s, after {text[:300]!r}") from error
    except OSError:
        pass # cut, if not politely
    return text


def served(server):
    expect("code of a good request", server.api("GET", MAPS).code, 200)


# ---- requests that are none ----

# What is wrong, and the bytes; a good request follows each of them and must not be answered.
BROKEN = [
    ("two lengths that differ", b"POST /api HTTP/1.1\r\n" + HOST +
     b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n"),
    ("two lengths that agree", b"POST /api HTTP/1.1\r\n" + HOST +
     b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n"),
    ("a length and an encoding", b"POST /api HTTP/1.1\r\n" + HOST +
     b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("an encoding and a length", b"POST /api HTTP/1.1\r\n" + HOST +
     b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
    ("an encoding nobody knows", b"POST /api HTTP/1.1\r\n" + HOST +
     b"Transfer-Encoding: identity\r\n\r\n"),
    ("a NUL in the path", b"GET /version\0/configmaps HTTP/1.1\r\n" + HOST + b"\r\n"),
    ("a NUL in a header", b"GET /version HTTP/1.1\r\n" + HOST + b"A: b\0c\r\n\r\n"),
    ("bare LFs", b"GET /version HTTP/1.1\nHost: x\n\n"),
    ("one bare LF", b"GET /version HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"),
    ("a bare LF at the end", b"GET /version HTTP/1.1\r\n" + HOST + b"\n"),
    ("a folded header", b"GET /version HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n"),
]


def check_refusal(text, code, reason):
    head, _, body = text.partition(b"\r\n\r\n")
    expect(f"the answer's first line in {text[:300]!r}", head.split(b" ")[:2],
           [b"HTTP/1.1", str(code).encode()])
    status = json.loads(body)
    expect("kind, reason, code", (status["kind"], status["reason"], status["code"]),
           ("Status", reason, code))


def refused(server, text):
    with stranger(server) as client:
        client.send(text + NEXT)
        check_refusal(read_all(client), 400, "BadRequest")
    served(server)


def escaped_nul(server):
    answer = server.api("GET", MAPS + "%00x")
    expect("code of a path with %00", answer.code, 400)


def too_long(server):
    for target in (b"/api?" + b"a=b&" * 5000, b"/" + b"a" * 28000, b"/api?" + b"a=b&" * 7000,
                   b"/api?a=" + b"b" * 30000):
        with stranger(server) as client:
            client.send(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
            check_refusal(read_all(client), 414, "RequestURITooLong")
    with stranger(server) as client: # more than the library keeps of a line
        client.send(b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        expect_in("answer to a line that never ends", read_all(client), b"HTTP/1.1 414 ")
    with stranger(server) as client:
        client.send(b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 3000 + b"\r\n")
        expect_in("answer to too many headers", read_all(client), b"HTTP/1.1 431 ")
    served(server)


def head_has_no_body(server):
    for n in range(30): # a list that is sent while it is written
        answer = server.api("POST", MAPS, config_map(f"head-{n}", "x" * 8192))
        expect("code of a creation", answer.code, 201)
    for path, code in ((MAPS + "?watch=1", 405), (MAPS, 200), (MAPS + "/head-0", 200),
                       ("/version", 200), (MAPS + "/none", 404)):
        with server.client() as client:
            client.send(client.head("HEAD", path) + client.head("GET", "/version"))
            expect(f"code of HEAD {path}", client.answer_head()[0], code)
            expect("the answer behind it", client.answer().code, 200)


# ---- requests the library ends by itself ----


def half(server, text, wait=b""):
    """Sends it and hangs up, in the middle of a request or behind it."""
    with stranger(server) as client:
        client.send(text)
        if wait:
            client._until(wait)


def reset(server, text):
    """Hangs up without the words TLS has for that."""
    client = stranger(server)
    client.send(text)
    os.close(client.socket.detach())


ENDINGS = [
    b"GET /api?" + b"a=b&" * 5000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 3000 + b"\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"A: " + b"b" * 40000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n",
    b"GET  /  HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHos",
    b"POST /api HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\nabc",
    b"POST /api HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    b"POST /api HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nno number\r\n",
    b"POST /api HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
    b"POST /api HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    b"POST /api HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    NEXT * 20,
    NEXT + b"GET /api?" + b"a=b&" * 5000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    NEXT * 3 + b"POST /api HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\nabc",
    *(text for _, text in BROKEN),
]


def nothing_is_left_behind(tap):
    """The sanitizers of a debug build count what was not freed; of others memory is measured."""
    server = Server(scratch() / "data", "--header-timeout", "2", "--idle-timeout", "2").start()

    def all_of_them():
        for text in ENDINGS:
            half(server, text)
            reset(server, text)
        with server.connect() as plain:
            plain.sendall(NEXT)
        with server.connect() as plain:
            plain.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        waiting = [stranger(server) for _ in ENDINGS] # these run out of time
        for client, text in zip(waiting, ENDINGS):
            client.send(text)
        for client in waiting:
            read_all(client)
            client.close()
        served(server)

    def flood():
        before = server.rss_kib()
        for _ in range(600):
            half(server, ENDINGS[0], b"\r\n\r\n")
        grown = server.rss_kib() - before
        if grown > 6 * 1024: # 13 MB before requests without an end were freed
            raise AssertionError(f"memory grew by {grown} KiB, want at most 6144")

    def ends_clean():
        expect("exit status", server.stop(), 0)
        expect("log", server.log, [])

    tap.step("requests that the HTTP library ends do no harm", all_of_them)
    if is_sanitized():
        tap.skip("nor do they leave memory behind", "sanitizers keep what was freed")
    else:
        tap.step("requests that the HTTP library ends leak no memory", flood)
    tap.step("the server ends without reported leaks", ends_clean)


# ---- connections ----


def strangers_do_not_lock_out(server):
    """Far more of them than there is room for, all silent, and all of the same address."""
    watcher = server.client()
    events = watcher.events(MAPS + "?watch=1")
    next(events)
    crowd = [server.connect() for _ in range(100)]
    crowd += [stranger(server).socket for _ in range(50)]
    for n in range(20):
        served(server)
        crowd.append(server.connect())
    answer = server.api("POST", MAPS, config_map("seen"))
    expect("code of a creation", answer.code, 201)
    names = iter(event["object"]["metadata"]["name"] for event in events)
    await_true("the watch goes on", lambda: next(names) == "seen")
    server.await_log("too many connections, closing idle ones")
    for connection in (*crowd, watcher):
        connection.close()


def one_user_does_not_lock_out(server):
    """Watches of one user up to the bound; the next is told so, somebody else is served."""
    account = "/api/v1/namespaces/default/serviceaccounts"
    answer = server.api("POST", account, {"metadata": {"name": "greedy"}})
    expect("code of the account", answer.code, 201)
    answer = server.api("POST", account + "/greedy/token", {"spec": {}})
    token = answer.json()["status"]["token"]
    answer = server.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "greedy"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "greedy", "namespace": "default"}]})
    expect("code of the binding", answer.code, 201)
    watchers, codes = [], []
    for _ in range(40):
        client = server.client()
        client.token = token
        client.send(client.head("GET", MAPS + "?watch=1"))
        codes.append(client.answer_head()[0])
        watchers.append(client)
    expect("codes of its watches", codes, [200] * 32 + [429] * 8)
    served(server)
    for client in watchers:
        client.close()


def set_files(server, count):
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (count, hard))


def descriptors_run_out(server):
    """The limit falls below what is open, as if others had taken the rest, and rises again."""
    served(server)
    before = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[0]
    with server.client() as client:
        expect("code", client.request("GET", MAPS).code, 200)
        set_files(server, 3)
        crowd = [server.connect() for _ in range(30)]
        server.await_log("cannot accept connections, waiting until there is room")
        set_files(server, before)
        served(server)
    for connection in crowd:
        connection.close()
    server.await_log("accepting connections again")
    served(server)


def pods_take_descriptors():
    """Each pod that runs takes one: connections leave them some, and come back when it is over."""
    server = Server(scratch() / "data", verb="up", prefix=["prlimit", "--nofile=192:192"]).start()
    task = {"name": "t", "replicas": 60, "template": {"spec": {
        "restartPolicy": "Never", "containers": [
            {"name": "c", "image": "none", "command": ["sleep", "600"],
             "resources": {"requests": {"cpu": "1m"}}}]}}}
    answer = server.api("POST", JOBS, {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1",
                                       "metadata": {"name": "many"},
                                       "spec": {"minAvailable": 1, "tasks": [task]}})
    expect(f"code of {answer}", answer.code, 201)

    def running():
        pods = server.api("GET", PODS).json()["items"]
        return sum(pod.get("status", {}).get("phase") == "Running" for pod in pods) == 60

    await_true("60 pods running", running, 60)
    crowd = []
    for _ in range(300):
        crowd.append(server.connect())
    served(server)
    for connection in crowd:
        connection.close()
    served(server)
    for line in server.log:
        if "cannot accept" in line:
            raise AssertionError(f"descriptors ran out in spite of what is left to pods: {line}")
    expect("code of the deletion", server.api("DELETE", JOBS + "/many").code, 200)
    await_true("no pods left", lambda: not server.api("GET", PODS).json()["items"], 60)
    expect("exit status", server.stop(), 0)


# ---- lists ----


def lists_give_others_their_turn(server):
    """One that has much to look at is not complete when a request behind it is answered, and shows
    what there was when it began."""
    count, labels = 12, {f"label-{k}": "x" for k in range(40000)}
    with server.client() as client:
        for k in range(count):
            body = config_map(f"wide-{k:02}")
            body["metadata"]["labels"] = dict(labels, wide="yes")
            expect("code of a creation", client.request("POST", MAPS, body).code, 201)
        terms = "%2C".join(["wide%3Dyes", *(f"!none-{k}" for k in range(250))])
        slow = server.client()
        slow.send(slow.head("GET", f"{MAPS}?labelSelector={terms}"))
        answer = client.request("DELETE", MAPS + f"/wide-{count - 1:02}")
        expect("code of a deletion meanwhile", answer.code, 200)
        ready, _, _ = select.select([slow.socket], [], [], 0)
        expect("the list is still being made", ready, [])
        listed = [item["metadata"]["name"] for item in slow.answer().json()["items"]]
        expect("the list", listed, [f"wide-{k:02}" for k in range(count)])
        slow.close()
        for k in range(count - 1):
            client.request("DELETE", MAPS + f"/wide-{k:02}")


def selectors_are_bounded(server):
    terms = "%2C".join(f"!k{k}" for k in range(257))
    for path in (MAPS + "?labelSelector=" + terms, MAPS + "?watch=1&labelSelector=" + terms):
        answer = server.api("GET", path)
        expect(f"code of {answer}", answer.code, 400)
        expect_in("message", answer.json()["message"],
                  "a selector of 257 requirements: at most 256 are allowed")


# ---- memory ----


def is_sanitized():
    """Address space cannot be limited where sanitizers keep their books."""
    return subprocess.run(["prlimit", f"--as={400 << 20}", HEKLA, "help"], check=False,
                          capture_output=True).returncode != 0


def announced_bodies(server, count):
    """Nothing is kept for a body of somebody unknown, and little for one that does not come."""
    crowd = []
    for _ in range(count):
        client = stranger(server)
        client.send(b"POST " + MAPS.encode() + b" HTTP/1.1\r\n" + HOST +
                    b"Content-Type: application/json\r\nContent-Length: 3000000\r\n\r\n{")
        crowd.append(client)
    text = server.api("GET", "/metrics").body.decode()
    expect_in("metrics", text, "hekla_apiserver_body_bytes 0\n")
    for _ in range(60): # and known ones: some of them are told to come again
        client = server.client()
        client.send(client.head("POST", MAPS, ["Content-Type: application/json",
                                               "Content-Length: 3000000"]) + b"{")
        crowd.append(client)
    served(server)
    expect("alive", server.alive(), True)
    for client in crowd:
        client.close()
    answer = server.api("POST", MAPS, config_map("after"))
    expect(f"code of {answer}", answer.code, 201)


def main():
    tap = Tap()
    server = Server(scratch() / "data").start()
    for name, text in BROKEN:
        tap.step(f"refused: {name}", refused, server, text)
    tap.step("refused: an escaped NUL", escaped_nul, server)
    tap.step("a target that is too long gets 414", too_long, server)
    tap.step("the answer to HEAD has no body", head_has_no_body, server)
    tap.step("announced bodies hold no memory", announced_bodies, server, 130)
    tap.step("other requests are served during a large list", lists_give_others_their_turn, server)
    tap.step("the requirements of a selector are limited", selectors_are_bounded, server)
    tap.step("accepting continues when descriptors are free again", descriptors_run_out, server)
    server.kill()
    nothing_is_left_behind(tap)

    small = Server(scratch() / "data", "--max-connections", "64").start()
    tap.step("anonymous clients do not lock out authenticated users",
             strangers_do_not_lock_out, small)
    tap.step("one user does not lock out the others", one_user_does_not_lock_out, small)
    small.kill()
    tap.step("connections leave descriptors to pods", pods_take_descriptors)
    name = "announced bodies in 400 MB of address space"
    if is_sanitized():
        tap.skip(name, "sanitizers need more")
    else:
        poor = Server(scratch() / "data", prefix=["prlimit", f"--as={400 << 20}"]).start()
        tap.step(name, announced_bodies, poor, 130)
        poor.kill()
    tap.done()


if __name__ == "__main__":
    main()
