# SPDX-License-Identifier: Apache-2.0
"""What the API server's audit log says: who asked for what, how often and when."""

import json
from collections import namedtuple
from datetime import datetime, timezone

WRITES = {"create", "update", "patch", "delete", "deletecollection"}

# Programs by how their account or their user agent begins.
ACCOUNT = "system:serviceaccount:volcano-system:"
PROGRAMS = (
    (ACCOUNT + "volcano-scheduler", "scheduler"),
    (ACCOUNT + "volcano-controllers", "controllers"),
    (ACCOUNT + "volcano-admission", "admission"),
    (ACCOUNT + "hekla-agent", "agent"),
    ("hekla-bench", "driver"),
    ("kube-apiserver", "kube-apiserver"),
    ("kube-controller-manager", "kube-controller-manager"),
    ("kube-scheduler", "kube-scheduler"),
    ("vc-scheduler", "vc-scheduler"),
)

# verb is the API's; what is "pods/binding" and the like; times are seconds since 1970.
Request = namedtuple("Request", "program verb what ns name code received done")


def seconds(stamp):
    """Of "2026-01-02T03:04:05.678901Z"."""
    when = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%fZ")
    return when.replace(tzinfo=timezone.utc).timestamp()


def program_of(event):
    for word in (event["user"]["username"], event.get("userAgent", "")):
        for start, name in PROGRAMS:
            if word.startswith(start):
                return name
    return event["user"]["username"]


def read(line):
    """A Request, or None for a line that tells of one that has only begun."""
    event = json.loads(line)
    if event["stage"] != "ResponseComplete":
        return None
    about = event.get("objectRef", {})
    what = about.get("resource", event["requestURI"].split("?")[0])
    if "subresource" in about:
        what += "/" + about["subresource"]
    return Request(program_of(event), event["verb"], what, about.get("namespace", ""),
                   about.get("name", ""), event.get("responseStatus", {}).get("code", 0),
                   seconds(event["requestReceivedTimestamp"]), seconds(event["stageTimestamp"]))


class Audit:
    """The log from where it ends now. A file that the server has put aside is not followed: see
    --audit-log-maxsize."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "rb")
        self.file.seek(0, 2)
        self.part = b""
        self.lines = []

    def poll(self):
        """The lines that have come since the last time; all are kept for requests()."""
        pieces = (self.part + self.file.read()).split(b"\n")
        self.part = pieces.pop()
        self.lines += pieces
        return pieces

    def requests(self):
        self.poll()
        return [r for r in map(read, self.lines) if r]

    def close(self):
        self.file.close()


def is_bind(line):
    """Cheaper than read()."""
    return b'"subresource":"binding"' in line and b'"code":201' in line


def is_write(request):
    return request.verb in WRITES


def is_heartbeat(request):
    """What tells that somebody lives, and nothing else."""
    return request.what == "leases" or (request.program == "agent" and
                                        request.what == "nodes/status")
