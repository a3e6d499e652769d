#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An operator written with controller-runtime: go/runtime/main.go, whose webhooks are called."""

import base64
import socket

from clients import Site, Tap, about, expect, expect_in, go_own, needs, pinned

needs("openssl")
about("controller-runtime", pinned("sigs.k8s.io/controller-runtime"),
      "a manager with leader election and cache, a controller that owns what it makes, mutating and "
      "validating webhooks")
program = go_own("runtime")
tap, site = Tap(), Site()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start():
    place, port = site.dir / "certificate", free_port()
    place.mkdir()
    site.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=story",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", place / "tls.key", "-out",
             place / "tls.crt")
    bundle = base64.b64encode((place / "tls.crt").read_bytes()).decode()
    site.start("manager", program, place, port)
    site.wait("the webhooks answer", lambda: socket.create_connection(("127.0.0.1", port)).close() or 1)
    for kind, path in (("Mutating", "complete"), ("Validating", "refuse")):
        site.apply(f"""
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}WebhookConfiguration
metadata: {{name: story}}
webhooks:
- name: {path}.example.com
  clientConfig: {{url: "https://127.0.0.1:{port}/{path}", caBundle: {bundle}}}
  rules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}}]
  objectSelector: {{matchLabels: {{story: "yes"}}}}
  sideEffects: None
  admissionReviewVersions: [v1]
""")


def config_map(name, text):
    return (f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}", "labels": '
            f'{{"story": "yes"}}}}, "data": {text}}}')


def completed():
    expect_in("warning", site.apply(config_map("empty", "{}")), "Warning: looked at")
    expect("secret", site.get("configmap", "empty")["data"], {"secret": "by default"})


def refused():
    said = site.run("kubectl", "apply", "-f", "-", stdin=config_map("l", '{"secret": "loud"}'), check=False)
    expect_in("answer", said, 'admission webhook "refuse.example.com" denied the request: '
              'secrets are not loud')


def owned():
    made = site.wait("the controller makes a Secret", lambda: site.get("secret", "empty"))
    expect("its owner", made["metadata"]["ownerReferences"][0]["name"], "empty")
    site.kubectl("delete", "configmap", "empty")
    site.wait("the Secret goes with its owner",
              lambda: not site.kubectl("get", "secret", "empty", "--ignore-not-found"))


tap.step("a manager starts, and its webhooks are registered", start)
tap.step("a webhook completes an object, and its warning is shown", completed)
tap.step("a webhook refuses an object in its own words", refused)
tap.step("a controller's objects are collected with their owner", owned)
tap.done()
