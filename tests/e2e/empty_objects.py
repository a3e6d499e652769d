#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the bookmarks of every built-in kind with what Go writes for an empty object of that kind.

    empty_objects.py URL TOKEN CA TABLE

TABLE has lines "APIVERSION KIND JSON": the JSON is encoding/json's of an empty struct of k8s.io/api, without
kind, apiVersion and the contents of metadata. Prints a line for each difference and the number of kinds.
"""

import json
import ssl
import sys
import urllib.request

UNTYPED = "scheduling.k8s.io/v1alpha" # only stored: the server knows no fields of these kinds
URL, TOKEN, CA, TABLE = sys.argv[1:]
CONTEXT = ssl.create_default_context(cafile=CA)
WATCH = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=5"


def fetch(path):
    request = urllib.request.Request(URL + path, headers={"Authorization": "Bearer " + TOKEN})
    return urllib.request.urlopen(request, context=CONTEXT, timeout=30)


def get(path):
    with fetch(path) as answer:
        return json.load(answer)


def bookmark(path):
    with fetch(f"{path}?{WATCH}") as events:
        for line in events:
            event = json.loads(line)
            if event["type"] == "BOOKMARK":
                return event["object"]
    return None


def versions():
    """Paths of the served group versions."""
    yield "v1", "/api/v1"
    for group in get("/apis")["groups"]:
        for version in group["versions"]:
            yield version["groupVersion"], "/apis/" + version["groupVersion"]


def main():
    table = {}
    for line in open(TABLE):
        if not line.startswith("#"):
            version, kind, text = line.split(" ", 2)
            table[version, kind] = json.loads(text)
    compared = 0
    for version, path in versions():
        for resource in get(path)["resources"]:
            known = table.get((version, resource["kind"]))
            if "watch" not in resource["verbs"]:
                continue
            if known is None:
                if not version.startswith(UNTYPED) and not version.split("/")[0].endswith("volcano.sh"):
                    print("not in the table:", version, resource["kind"])
                continue
            got = bookmark(f"{path}/{resource['name']}")
            if not got or got.pop("kind") != resource["kind"] or got.pop("apiVersion") != version:
                print("no bookmark:", version, resource["kind"])
                continue
            got["metadata"] = {}
            compared += 1
            if got != known:
                print(f"{version} {resource['kind']}: expected {json.dumps(known)}, got {json.dumps(got)}")
    print(compared, "kinds")


main()
