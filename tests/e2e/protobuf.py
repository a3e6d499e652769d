#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a server for protobuf, and checks the answer: tests/e2e/protobuf.py URL CA TOKEN WHAT.

The decoder is written by hand from the wire format: it knows the envelope (k8s, NUL, runtime.Unknown),
lists, ObjectMeta's name, watch events and Status. Prints one line per failed check; exits with 1 then.
"""

import http.client
import json
import ssl
import sys
import urllib.parse

PROTO = "application/vnd.kubernetes.protobuf"
failures = []


def check(what, want, got):
    if want != got:
        failures.append("{}: expected {!r}, got {!r}".format(what, want, got))


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The fields of a message: a list of (number, value)."""
    at, ret = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, "wire type {}".format(tag & 7)
            n, at = varint(data, at)
            assert at + n <= len(data), "a field is cut short"
            value, at = data[at:at + n], at + n
        ret.append((tag >> 3, value))
    return ret


def field(data, number, default=None):
    for n, value in fields(data):
        if n == number:
            return value
    return default


def unwrap(data):
    """(apiVersion, kind, object) of an envelope."""
    assert data[:4] == b"k8s\0", "no envelope: {!r}".format(data[:40])
    meta = field(data[4:], 1)
    return field(meta, 1).decode(), field(meta, 2).decode(), field(data[4:], 2)


def name_of(obj):
    return field(field(obj, 1), 1).decode()


class Server:
    def __init__(self, url, ca, token):
        self.host = urllib.parse.urlparse(url).netloc
        self.context = ssl.create_default_context(cafile=ca)
        self.token = token

    def open(self, method, path, accept, body=None, kind="application/json"):
        connection = http.client.HTTPSConnection(self.host, context=self.context, timeout=30)
        headers = {"Accept": accept, "Authorization": "Bearer " + self.token}
        if body is not None:
            headers["Content-Type"] = kind
        connection.request(method, path, body=body, headers=headers)
        return connection.getresponse()

    def ask(self, *args, **kwargs):
        answer = self.open(*args, **kwargs)
        return answer.status, answer.getheader("Content-Type"), answer.read()


def listed_kinds(server):
    """(path of the list, apiVersion, kind, whether it is a custom resource) of every kind."""
    groups = json.loads(server.ask("GET", "/apis", "application/json")[2])["groups"]
    places = [("/api/v1", "v1")] + [("/apis/" + v["groupVersion"], v["groupVersion"])
                                    for g in groups for v in g["versions"]]
    for path, version in places:
        for r in json.loads(server.ask("GET", path, "application/json")[2])["resources"]:
            if "/" not in r["name"] and "list" in r["verbs"]:
                yield path + "/" + r["name"], version, r["kind"]


JSON_ONLY = {"CustomResourceDefinition"}


def is_custom(version):
    if version.startswith("scheduling.k8s.io/v1alpha"):
        return True  # only stored: their types are not known
    return ".volcano.sh/" in version or version == "example.com/v1"


def every_kind(server):
    seen = 0
    for path, version, kind in listed_kinds(server):
        status, media, body = server.ask("GET", path, PROTO + ", application/json")
        check(path, 200, status)
        if is_custom(version) or kind in JSON_ONLY:
            check(path + " as JSON", "application/json", media)
            check(path + " in protobuf only", 406, server.ask("GET", path, PROTO)[0])
            continue
        check(path, PROTO, media)
        check(path, (version, kind + "List"), unwrap(body)[:2])
        plain = json.loads(server.ask("GET", path, "application/json")[2])
        items = [v for n, v in fields(unwrap(body)[2]) if n == 2]
        check(path + " names", [i["metadata"]["name"] for i in plain["items"]],
              [name_of(i) for i in items])
        for item in plain["items"][:3]:
            one = path
            if item["metadata"].get("namespace"):
                at = path.rindex("/")
                one = "{}/namespaces/{}{}".format(path[:at], item["metadata"]["namespace"], path[at:])
            one += "/" + item["metadata"]["name"]
            status, media, body = server.ask("GET", one, PROTO)
            check(one, (200, PROTO), (status, media))
            check(one, (version, kind), unwrap(body)[:2])
            # What the server writes, it reads: an update without changes changes nothing.
            status, media, again = server.ask("PUT", one, "application/json", body, PROTO)
            check(one + " put back", 200, status)
            if status == 200:
                check(one + " put back", item["metadata"]["resourceVersion"],
                      json.loads(again)["metadata"]["resourceVersion"])
        seen += 1
    check("number of kinds", True, seen > 50)


def errors(server):
    status, media, body = server.ask("GET", "/api/v1/namespaces/default/pods/none", PROTO)
    check("a missing pod", (404, PROTO), (status, media))
    check("a missing pod", ("v1", "Status"), unwrap(body)[:2])
    obj = unwrap(body)[2]
    check("a missing pod", (b"Failure", b'pods "none" not found', b"NotFound", 404),
          tuple(field(obj, n) for n in (2, 3, 4, 6)))
    check("a missing pod", (b"none", b"pods"), (field(field(obj, 5), 1), field(field(obj, 5), 3)))
    server.token, token = "wrong", server.token
    status, media, body = server.ask("GET", "/api/v1/pods", PROTO)
    check("without credentials", (401, PROTO, 401), (status, media, field(unwrap(body)[2], 6)))
    server.token = token


def forms(server):
    path = "/api/v1/namespaces"
    table = ";as=Table;g=meta.k8s.io;v=v1"
    status, media, body = server.ask("GET", path, PROTO + table + ",application/json" + table)
    check("a table", (200, "application/json", "Table"), (status, media, json.loads(body)["kind"]))
    check("a table in protobuf only", 406, server.ask("GET", path, PROTO + table)[0])
    check("JSON first", "application/json", server.ask("GET", path, "application/json," + PROTO)[1])
    metas = PROTO + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    for place in (path, "/apis/example.com/v1/namespaces/default/cars"):
        status, media, body = server.ask("GET", place, metas)
        check("metadata of " + place, (200, PROTO), (status, media))
        check("metadata", ("meta.k8s.io/v1", "PartialObjectMetadataList"), unwrap(body)[:2])
        items = [v for n, v in fields(unwrap(body)[2]) if n == 2]
        check("metadata has nothing else", {1}, {n for i in items for n, _ in fields(i)})
    status, media, body = server.ask("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale",
                                     PROTO)
    check("a scale", ("autoscaling/v1", "Scale"), unwrap(body)[:2])
    pages, token = [], b""
    while token is not None:
        query = "?limit=2&continue=" + urllib.parse.quote(token or b"")
        obj = unwrap(server.ask("GET", path + query, PROTO)[2])[2]
        pages += [name_of(v) for n, v in fields(obj) if n == 2]
        token = field(field(obj, 1), 3) or None
    check("pages", True, len(pages) == len(set(pages)) and "kube-system" in pages)


def long_list(server):
    path = "/api/v1/namespaces/default/configmaps"
    for i in range(40):
        body = {"metadata": {"name": "long-{:02}".format(i)}, "data": {"k": "x" * 5000}}
        server.ask("POST", path, "application/json", json.dumps(body))
    obj = unwrap(server.ask("GET", path, PROTO)[2])[2]
    names = [name_of(v) for n, v in fields(obj) if n == 2]
    check("a long list", 40, len([n for n in names if n.startswith("long-")]))
    check("a long list ends properly", names, sorted(names))


def read_event(stream):
    n = int.from_bytes(stream.read(4), "big")
    event = stream.read(n)
    version, kind, obj = unwrap(field(field(event, 2), 1))
    return field(event, 1).decode(), kind, obj


def watch(server):
    path = "/api/v1/namespaces/default/configmaps"
    stream = server.open("GET", path + "?watch=1&fieldSelector=metadata.name%3Dwatched",
                         PROTO + ";stream=watch")
    check("a watch", PROTO + ";stream=watch", stream.getheader("Content-Type"))
    server.ask("POST", path, "application/json", json.dumps({"metadata": {"name": "watched"}}))
    event = read_event(stream)
    check("the first event", ("ADDED", "ConfigMap", "watched"),
          (event[0], event[1], name_of(event[2])))
    server.ask("DELETE", path + "/watched", PROTO)
    check("the second event", "DELETED", read_event(stream)[0])
    stream.close()
    stream = server.open(
        "GET", path + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true&labelSelector=none", PROTO)
    check("a bookmark", ("BOOKMARK", "ConfigMap"), read_event(stream)[:2])


def main():
    server = Server(*sys.argv[1:4])
    {"kinds": every_kind, "errors": errors, "forms": forms, "long": long_list,
     "watch": watch}[sys.argv[4]](server)
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


main()
