#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Least privilege, measured: what the accounts of `hekla manifests` may do, and what they did.

    tests/kube/rbac.py AUDIT_LOG MANIFESTS [ACCOUNT...]
    tests/kube/rbac.py --granted MANIFESTS [ACCOUNT...]   what each may do, a line per right

AUDIT_LOG has the events of a kube-apiserver, level Metadata or more, a line each; several files may
be given with commas between them. MANIFESTS is what `hekla manifests -o json` prints, '-' standard
input. Prints TAP, a point for each account: rights that were granted and never used, and requests
that were refused or allowed by other roles than ours, make it fail. Rights of RARE are for what a
run of the tests does not bring about; they need not be used, and who adds one says when it is.
"""

import json
import sys
from collections import defaultdict

# account -> {(group, resource, verb): when it is used}
RARE = {
    "volcano-scheduler": {
        ("", "events", "patch"): "an event comes again",
        ("", "persistentvolumes", "patch"): "a claim is bound to a volume that waits for its first pod",
        ("", "persistentvolumeclaims", "patch"): "the node is chosen before the volume is made",
        ("", "pods", "get"): "a bind whose answer was lost is looked up before it is repeated",
        ("", "pods", "patch"): "scheduling gates are opened, with SchedulingGatesQueueAdmission",
        ("shard.volcano.sh", "nodeshards/status", "patch"): "with --scheduler-sharding-mode",
    },
    "volcano-controllers": {
        ("", "events", "patch"): "an event comes again",
        ("", "pods", "get"): "a flow probes a pod, or a pod to be made is there already",
        ("batch.volcano.sh", "jobs", "get"): "a job to be made is there already",
        ("batch.volcano.sh", "jobs", "patch"): "a job is marked as forwarded to another cluster",
        ("scheduling.volcano.sh", "podgroups", "get"): "a PodGroup to be made is there already",
        ("", "configmaps", "update"): "a job with svc is scaled",
        ("", "secrets", "update"): "the Secret of a job with ssh was changed by others",
        ("scheduling.volcano.sh", "queues", "patch"): "a queue without a parent is given one",
        ("topology.volcano.sh", "hypernodes", "create"): "HyperNodes are made from labels of nodes",
        ("topology.volcano.sh", "hypernodes", "update"): "a node moves to another of them",
        ("topology.volcano.sh", "hypernodes", "delete"): "the last node of one is gone",
        ("topology.volcano.sh", "hypernodes/status", "update"): "the number of nodes in one changes",
        # OwnerReferencesPermissionEnforcement asks for these, and makes no request of its own.
        ("", "pods/finalizers", "update"): "an owner reference to a pod",
        ("apps", "daemonsets/finalizers", "update"): "an owner reference to a daemon set",
        ("apps", "replicasets/finalizers", "update"): "an owner reference to a replica set",
        ("apps", "statefulsets/finalizers", "update"): "an owner reference to a stateful set",
        ("batch", "jobs/finalizers", "update"): "an owner reference to a batch/v1 Job",
        ("batch.volcano.sh", "cronjobs/finalizers", "update"): "an owner reference to a cron job",
        ("batch.volcano.sh", "jobs/finalizers", "update"): "an owner reference to a job",
        ("flow.volcano.sh", "jobflows/finalizers", "update"): "an owner reference to a flow",
    },
    "volcano-admission": {
        ("", "secrets", "update"): "certificates end within two months, or stand for other names",
    },
    "hekla-agent": {
        ("", "events", "patch"): "an event comes again",
        ("", "nodes", "get"): "the node is there already",
        ("", "nodes", "delete"): "there are fewer simulated nodes than before",
        ("", "persistentvolumes", "get"): "a pod uses a claim",
        ("", "persistentvolumeclaims", "get"): "a pod uses a claim",
        ("", "persistentvolumes", "patch"): "a volume of the machine's is emptied and given up",
        ("", "serviceaccounts/token", "create"): "a pod has the token of its account",
        ("nodeinfo.volcano.sh", "numatopologies", "patch"): "the machine's processors change",
        ("authentication.k8s.io", "tokenreviews", "create"): "logs are asked for with a token",
        ("authorization.k8s.io", "subjectaccessreviews", "create"): "logs are asked for by a user",
    },
}

# What every account may ask for by the roles of the cluster itself.
EVERYBODYS = {"selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews"}


class Right:
    """One verb on one resource, everywhere or in a namespace, of any name or of some."""

    def __init__(self, namespace, group, resource, verb, names):
        self.namespace, self.group, self.resource, self.verb = namespace, group, resource, verb
        self.names = frozenset(names)
        self.used = 0

    def key(self):
        return self.group, self.resource, self.verb

    def covers(self, request):
        namespace, group, resource, verb, name = request
        return (self.key() == (group, resource, verb) and
                self.namespace in (None, namespace) and
                (not self.names or name in self.names))

    def __str__(self):
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return (f"{self.verb} {resource}" +
                (f" in {self.namespace}" if self.namespace else "") +
                (f" named {', '.join(sorted(self.names))}" if self.names else ""))


def load(path):
    with sys.stdin if path == "-" else open(path) as file:
        items = json.load(file)["items"]
    return {(i["kind"], i["metadata"].get("namespace"), i["metadata"]["name"]): i for i in items}


def rights_of(objects):
    """'namespace:name' of each account that some binding names -> its rights."""
    rights = defaultdict(list)
    for (kind, namespace, _), binding in objects.items():
        if kind not in ("ClusterRoleBinding", "RoleBinding"):
            continue
        ref = binding["roleRef"]
        role = objects[ref["kind"], namespace if ref["kind"] == "Role" else None, ref["name"]]
        for subject in binding["subjects"]:
            account = f"{subject['namespace']}:{subject['name']}"
            rights[account] += expand(role["rules"], namespace)
    return rights


def expand(rules, namespace):
    return [Right(namespace, group, resource, verb, rule.get("resourceNames", ()))
            for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"]]


def requests_of(paths):
    """(account, request, whether it was allowed) of each event."""
    prefix = "system:serviceaccount:"
    for path in paths:
        with open(path) as log:
            for line in log:
                # A server that was killed leaves half a line.
                if prefix not in line or not line.endswith("\n"):
                    continue
                event = json.loads(line)
                user, ref = event["user"]["username"], event.get("objectRef")
                decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
                if not user.startswith(prefix) or ref is None or decision is None:
                    continue
                resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
                yield user[len(prefix):], (ref.get("namespace"), ref.get("apiGroup", ""), resource,
                                           event["verb"], ref.get("name")), decision == "allow"


def tell(request):
    namespace, group, resource, verb, name = request
    where = "/".join(filter(None, (namespace, name)))
    return f"{verb} {resource}{'.' + group if group else ''} {where}".rstrip()


def judge(account, rights, requests):
    """What is wrong, a line each."""
    rare = RARE.get(account.split(":")[1], {})
    found = []
    for request, allowed in sorted(requests.items(), key=str):
        covering = [r for r in rights if r.covers(request)]
        for right in covering:
            right.used += 1
        if not allowed:
            found.append(f"refused: {tell(request)}")
        elif not covering and request[2] not in EVERYBODYS:
            found.append(f"allowed by other roles: {tell(request)}")
    found += [f"never used: {r}" for r in rights if not r.used and r.key() not in rare]
    for key in rare:
        if not any(r.key() == key for r in rights):
            found.append(f"rare, but not granted: {key}")
    return found


def main():
    args = sys.argv[1:]
    granted = args[:1] == ["--granted"]
    if len(args) < 2 or (args[0].startswith("-") and not granted):
        print(__doc__, file=sys.stderr)
        return 2
    rights = rights_of(load(args[1]))
    accounts = [a for a in sorted(rights) if not args[2:] or a.split(":")[1] in args[2:]]
    if granted:
        for account in accounts:
            for right in rights[account]:
                print(f"{account.split(':')[1]}: {right}")
        return 0
    # Allowed once is allowed: roles and their bindings may come a moment after the first request.
    seen = defaultdict(dict)
    for account, request, allowed in requests_of(args[0].split(",")):
        seen[account][request] = seen[account].get(request, False) or allowed
    failed = 0
    for number, account in enumerate(accounts, 1):
        found = judge(account, rights[account], seen[account])
        failed += bool(found)
        print(f"{'not ok' if found else 'ok'} {number} - {account.split(':')[1]} may do what it "
              f"does: {len(rights[account])} rights, {sum(r.used > 0 for r in rights[account])} used")
        for line in found:
            print(f"# {line}")
    print(f"1..{len(accounts)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
