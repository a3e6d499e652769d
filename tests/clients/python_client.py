#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python client of Kubernetes, as its users write: typed calls, watches, streams, CRDs."""

from clients import Site, Tap, about, expect, expect_in, inside

VERSION = "37.0.2"
inside(f"kubernetes-{VERSION}", f"kubernetes=={VERSION}")

from kubernetes import client, config, dynamic, utils, watch  # noqa: E402
from kubernetes.client.rest import ApiException  # noqa: E402
from kubernetes.stream import portforward, stream  # noqa: E402

about("Python `kubernetes`", VERSION,
      "typed pods and Jobs, Volcano Jobs as custom objects, watches, exec, attach, port-forward, "
      "server-side apply, tokens, CRDs with rules")
tap, site = Tap(), Site()
config.load_kube_config(site.kubeconfig)
core, batch, custom = client.CoreV1Api(), client.BatchV1Api(), client.CustomObjectsApi()
VCJOBS = ("batch.volcano.sh", "v1alpha1", "default", "jobs")


def pod(name, *command, **spec):
    return {"metadata": {"name": name, "labels": {"app": name}},
            "spec": {"restartPolicy": "Never", **spec,
                     "containers": [{"name": "c", "image": "x", "command": list(command)}]}}


def phase(name):
    return core.read_namespaced_pod(name, "default").status.phase


def run_pod():
    core.create_namespaced_pod("default", pod("hello", "sh", "-c", "echo hello; sleep 1000"))
    site.wait("hello runs", lambda: phase("hello") == "Running")
    site.wait("its output", lambda: core.read_namespaced_pod_log("hello", "default") == "hello\n")


def run_batch_job():
    made = batch.create_namespaced_job("default", {
        "metadata": {"name": "once"},
        "spec": {"template": {"spec": pod("x", "true")["spec"]}}})
    expect("succeeded of a new Job", made.status.succeeded, None)
    site.wait("the Job succeeds",
              lambda: batch.read_namespaced_job("once", "default").status.succeeded == 1)


def run_vcjob():
    seen = []
    custom.create_namespaced_custom_object(*VCJOBS, {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "vc"},
        "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": [
            {"name": "w", "replicas": 2, "template": {"spec": pod("x", "sleep", "0.1")["spec"]}}]}})
    for event in watch.Watch().stream(custom.list_namespaced_custom_object, *VCJOBS,
                                      timeout_seconds=60):
        seen.append(event["object"].get("status", {}).get("state", {}).get("phase"))
        if seen[-1] == "Completed":
            break
    expect("last phase", seen[-1], "Completed")


def patches_and_conflicts():
    api = core
    api.create_namespaced_config_map("default", {"metadata": {"name": "m"}, "data": {"a": "1"}})
    old = api.read_namespaced_config_map("m", "default")
    api.patch_namespaced_config_map("m", "default", {"data": {"b": "2"}})
    old.data = {"a": "3"}
    try:
        api.replace_namespaced_config_map("m", "default", old)
        raise AssertionError("a stale replace was accepted")
    except ApiException as error:
        expect("status of a stale replace", error.status, 409)


def watch_resumes():
    first = core.list_namespaced_pod("default", limit=1)
    rv = core.list_namespaced_pod("default").metadata.resource_version
    expect("chunks", bool(first.metadata._continue), True)
    core.create_namespaced_pod("default", pod("seen", "true"))
    for event in watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=rv,
                                      timeout_seconds=30, allow_watch_bookmarks=True):
        if event["object"].metadata.name == "seen":
            expect("first event", event["type"], "ADDED")
            return
    raise AssertionError("no event of the new pod")


def exec_and_attach():
    said = stream(core.connect_get_namespaced_pod_exec, "hello", "default",
                  command=["sh", "-c", "echo out; echo err >&2"], stderr=True, stdin=False,
                  stdout=True, tty=False)
    expect("output of exec", sorted(said.split()), ["err", "out"])
    shell = stream(core.connect_post_namespaced_pod_exec, "hello", "default", command=["sh"],
                   stderr=True, stdin=True, stdout=True, tty=False, _preload_content=False)
    shell.write_stdin("echo $((6 * 7)); exit 3\n")
    shell.run_forever(timeout=30)
    expect("output of the shell", shell.read_stdout(), "42\n")
    expect("its exit code", shell.returncode, 3)


def forward():
    web = pod("web", "sh", "-c", "cd $(mktemp -d); echo seen >page; "
              "exec python3 -m http.server --bind $IP 8123")
    web["spec"]["containers"][0]["env"] = [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    core.create_namespaced_pod("default", web)
    site.wait("the server serves", lambda: "Serving" in core.read_namespaced_pod_log("web", "default")
              or core.read_namespaced_pod("web", "default").status.phase == "Running")
    ports = portforward(core.connect_get_namespaced_pod_portforward, "web", "default", ports="8123")
    tunnel = ports.socket(8123)
    tunnel.setblocking(True)
    tunnel.sendall(b"GET /page HTTP/1.0\r\n\r\n")
    answer = b"".join(iter(lambda: tunnel.recv(65536), b""))
    tunnel.close()
    expect("error of the port", ports.error(8123), None)
    expect("last line of the answer", answer.splitlines()[-1], b"seen")


def apply_dynamic():
    maps = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    maps.server_side_apply(body=body, namespace="default", field_manager="story")
    expect("applied", maps.get(name="applied", namespace="default").data.a, "1")


def custom_kinds_with_rules():
    site.apply("""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shirts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Shirt, plural: shirts}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer}}
            x-kubernetes-validations: [{rule: "self.size < 5", message: too large}]
""")
    site.kubectl("wait", "--for=condition=Established", "crd/shirts.example.com", "--timeout=20s")
    try:
        custom.create_namespaced_custom_object("example.com", "v1", "default", "shirts", {
            "apiVersion": "example.com/v1", "kind": "Shirt", "metadata": {"name": "s"},
            "spec": {"size": 9}})
        raise AssertionError("a shirt that breaks the rule was accepted")
    except ApiException as error:
        expect("status", error.status, 422)
        expect_in("message", error.body, "too large")


def create_from_yaml():
    made = utils.create_from_yaml(client.ApiClient(), yaml_objects=[
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"},
         "spec": {"selector": {"app": "hello"}, "ports": [{"port": 80}]}}], namespace="default")
    expect("address of the Service", bool(made[0][0].spec.cluster_ip), True)


def tokens_and_reviews():
    token = core.create_namespaced_service_account_token("default", "default", {"spec": {}})
    review = client.AuthenticationV1Api().create_token_review({"spec": {"token": token.status.token}})
    expect("user", review.status.user.username, "system:serviceaccount:default:default")


tap.step("a pod runs, and its log is read", run_pod)
tap.step("a batch Job succeeds, and has a status from the beginning", run_batch_job)
tap.step("a Volcano Job is followed to its end by a watch", run_vcjob)
tap.step("a stale replace conflicts", patches_and_conflicts)
tap.step("lists come in chunks, and a watch goes on where a list ended", watch_resumes)
tap.step("commands run in a pod, with input and an exit code", exec_and_attach)
tap.step("a port of a pod is forwarded", forward)
tap.step("the dynamic client applies on the server's side", apply_dynamic)
tap.step("rules of a custom kind are enforced", custom_kinds_with_rules)
tap.step("objects are created from YAML, and a Service gets an address", create_from_yaml)
tap.step("a token is issued and reviewed", tokens_and_reviews)
tap.done()
