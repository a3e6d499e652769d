# SPDX-License-Identifier: Apache-2.0
"""Shared code of the tests with operators: an operator is installed with its own manifests, as a
Deployment. Its image cannot be had without a registry, so the program, built from the same release,
is the command of its container; everything else is as published."""

import shutil
from pathlib import Path

import yaml

USER = 65532 # "nonroot" in the images that these operators have


def manifests(site, path):
    """The objects of a kustomization."""
    return [d for d in yaml.safe_load_all(site.kubectl("kustomize", path, seconds=300)) if d]


def replace_images(objects, program, args=()):
    """Gives the containers of Deployments a program of this machine; args: options in addition. One
    replica is enough: on one machine a second would find the ports in use."""
    for d in objects:
        if d["kind"] != "Deployment":
            continue
        spec = d["spec"]["template"]["spec"]
        d["spec"]["replicas"] = 1
        spec.setdefault("securityContext", {})["runAsUser"] = USER
        for container in spec["containers"]:
            container["command"] = [str(program)]
            container["args"] = [*container.get("args", []), *args]
    return objects


def open_to_all(site, program):
    """A copy of a program that the user of an image may run."""
    place = site.dir / "programs"
    place.mkdir(exist_ok=True)
    site.dir.chmod(0o711)
    place.chmod(0o755)
    copy = place / Path(program).name
    shutil.copyfile(program, copy)
    copy.chmod(0o755)
    return copy


def install(site, objects):
    """Applies the objects: kinds and namespaces first, as people do."""
    first = [d for d in objects if d["kind"] in ("Namespace", "CustomResourceDefinition")]
    rest = [d for d in objects if d not in first]
    for group in (first, rest):
        site.apply(yaml.safe_dump_all(group), "--server-side", "--force-conflicts")
    for d in first:
        if d["kind"] == "CustomResourceDefinition":
            site.kubectl("wait", "--for=condition=Established", f"crd/{d['metadata']['name']}",
                         "--timeout=60s")


def available(site, namespace, name, seconds=180):
    """Waits until a Deployment is available."""
    def ready():
        status = site.get("deployment", name, "-n", namespace).get("status", {})
        return status.get("availableReplicas", 0) >= 1
    try:
        site.wait(f"{name} is available", ready, seconds)
    except AssertionError as error:
        log = site.kubectl("logs", "-n", namespace, f"deployment/{name}", "--tail=20", check=False)
        raise AssertionError(f"{error}\n{log}") from None


def condition(d, name):
    """The status of a condition of an object, or None."""
    for entry in d.get("status", {}).get("conditions", []):
        if entry["type"] == name:
            return entry["status"]
    return None

