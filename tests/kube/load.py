# SPDX-License-Identifier: Apache-2.0
"""Work for a cluster: objects, and clients that create them over connections they keep."""

import http.client
import json
import threading
import time

from cluster import Failed

CLIENTS = 8
USER_AGENT = "hekla-bench"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"
GROUP_OF = "scheduling.k8s.io/group-name"
# Of pods whose simulated nodes are for ever about to start them.
NEVER_STARTS = {"sim.hekla.sh/delay": "forever"}


def pod_spec(scheduler="volcano", cpu="100m", select=None):
    return {"schedulerName": scheduler, "restartPolicy": "Never", "nodeSelector": select or {},
            "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "busybox", "resources": {
                "requests": {"cpu": cpu, "memory": "64Mi"}}}]}


def pod(name, group=None, annotations=None, **spec):
    annotations = dict(annotations or {}, **({GROUP_OF: group} if group else {}))
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations}, "spec": pod_spec(**spec)}


def group(name, members):
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name}, "spec": {"minMember": members, "queue": "default"}}


def job(name, members, annotations=None, **spec):
    template = {"metadata": {"annotations": annotations or {}}, "spec": pod_spec(**spec)}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
            "spec": {"minAvailable": members, "queue": "default", "schedulerName": "volcano",
                     "tasks": [{"name": "w", "replicas": members, "template": template}]}}


class Client:
    """One connection of the administrator."""

    def __init__(self, plane):
        self.connection = http.client.HTTPSConnection("127.0.0.1", plane.ports["api"], timeout=120,
                                                      context=plane.context)
        self.headers = {"Authorization": f"Bearer {plane.token}", "User-Agent": USER_AGENT,
                        "Content-Type": "application/json"}

    def send(self, method, path, body=None):
        self.connection.request(method, path, body, self.headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def close(self):
        self.connection.close()


def create(plane, requests, rate=None):
    """Creates all of (path, object), in order as far as clients at work at a time allow; with a
    rate, so many a second."""
    requests = [(path, json.dumps(body).encode()) for path, body in requests]
    start, lock, failures, numbers = time.monotonic(), threading.Lock(), [], iter(range(len(requests)))

    def work():
        client = Client(plane)
        while not failures:
            with lock:
                i = next(numbers, None)
            if i is None:
                break
            if rate:
                time.sleep(max(0, start + i / rate - time.monotonic()))
            status, answer = client.send("POST", *requests[i])
            if status != 201:
                failures.append(f"POST {requests[i][0]}: {status} {answer.decode(errors='replace')}")
        client.close()

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Failed(failures[0])
