#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes images for the tests of 'hekla image', good and hostile ones.

    tests/e2e/images.py KIND FILE [NAME]

The good ones have Debian's static busybox (at $BUSYBOX, default /bin/busybox) in two layers, the
second with whiteouts:

    docker      an archive as of "docker save", NAME:1.0
    hybrid      the same as newer Dockers write it: an OCI archive with a manifest.json
    oci         an OCI archive with one layer compressed by gzip, without a name
    zstd        the same with zstd (by the program zstd)
    multi       an OCI archive with an index for several platforms; only that of this machine works
    dir         an OCI directory
    foreign     an image for another platform only

Every other KIND is hostile or damaged; see HOSTILE.
"""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
BUSYBOX = Path(os.environ.get("BUSYBOX", "/bin/busybox"))
APPLETS = "cat echo env false grep hostname id ls mkdir pwd rm sh sleep stat tar test touch true wc".split()


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Layer:
    """A tar archive in memory."""

    def __init__(self):
        self.buffer = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.buffer, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name, data=None, kind=tarfile.REGTYPE, mode=0o644, link="", uid=0, pax=None):
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.linkname, info.uid, info.gid = kind, mode, link, uid, uid
        info.mtime = 1700000000
        info.pax_headers = pax or {}
        info.devmajor, info.devminor = 1, 3
        info.size = len(data) if data is not None else 0
        self.tar.addfile(info, io.BytesIO(data) if data is not None else None)
        return self

    def dir(self, name, mode=0o755, uid=0):
        return self.add(name, kind=tarfile.DIRTYPE, mode=mode, uid=uid)

    def link(self, name, to):
        return self.add(name, kind=tarfile.SYMTYPE, mode=0o777, link=to)

    def hard(self, name, to):
        return self.add(name, kind=tarfile.LNKTYPE, link=to)

    def bytes(self):
        self.tar.close()
        return self.buffer.getvalue()


def base():
    """The first layer: busybox, users, and files that the second layer removes."""
    layer = Layer().dir("./").dir("bin").dir("etc").dir("tmp", 0o1777).dir("home").dir("home/app", uid=1000)
    layer.add("bin/busybox", BUSYBOX.read_bytes(), mode=0o755)
    for name in APPLETS:
        layer.hard(f"bin/{name}", "bin/busybox")
    layer.add("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n")
    layer.add("etc/group", b"root:x:0:\napp:x:1000:\nextra:x:2000:app\n")
    layer.add("etc/release", b"base\n")
    layer.add("etc/removed", b"by a whiteout\n")
    layer.dir("opt").dir("opt/old").add("opt/old/a", b"hidden\n").add("opt/old/b", b"hidden\n")
    layer.dir("gone").add("gone/x", b"removed with its directory\n")
    layer.dir("usr").dir("usr/lib").link("lib", "usr/lib")
    layer.link("etc/outside", "/etc/hostname")
    return layer.bytes()


def top():
    """The second layer: whiteouts, a replaced file, a file below a link of the first layer."""
    layer = Layer().dir("etc").dir("opt").dir("opt/old")
    layer.add("etc/.wh.removed", b"").add("opt/old/.wh..wh..opq", b"").add(".wh.gone", b"")
    layer.add("opt/old/new", b"visible\n").add("etc/release", b"top\n")
    layer.add("lib/through-link", b"below usr/lib\n")  # without an entry for "lib"
    layer.dir("srv").add("srv/entry", b"#!/bin/sh\necho entry \"$@\" in $(pwd) as $(id -u):$(id -g) with $GREETING\n",
                         mode=0o755)
    return layer.bytes()


def config(layers, arch=MACHINE, **more):
    settings = {"Env": ["PATH=/srv:/bin", "GREETING=hello"], "Entrypoint": ["/srv/entry"], "Cmd": ["one", "two"],
                "WorkingDir": "/srv/work", "User": "app"}
    settings.update(more)
    return json.dumps({"architecture": arch, "os": "linux", "config": settings,
                       "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(x) for x in layers]}}).encode()


def compress(data, how):
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return gzip.compress(data, mtime=0) if how == "gzip" else data


class Archive:
    """The files of an image."""

    def __init__(self):
        self.files = {}

    def put(self, name, data):
        self.files[name] = data if isinstance(data, bytes) else json.dumps(data).encode()

    def blob(self, data, media):
        self.put("blobs/sha256/" + sha(data), data)
        return {"mediaType": media, "digest": "sha256:" + sha(data), "size": len(data)}

    def manifest(self, layers, conf, how):
        suffix = "+" + how if how else ""
        return self.blob(json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.blob(conf, "application/vnd.oci.image.config.v1+json"),
            "layers": [self.blob(compress(x, how), "application/vnd.oci.image.layer.v1.tar" + suffix)
                       for x in layers]}).encode(), "application/vnd.oci.image.manifest.v1+json")

    def index(self, manifests, name="index.json"):
        self.put("oci-layout", {"imageLayoutVersion": "1.0.0"})
        self.put(name, {"schemaVersion": 2, "manifests": manifests})

    def write(self, path):
        with tarfile.open(path, "w") as tar:
            for name, data in self.files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

    def write_dir(self, path):
        for name, data in self.files.items():
            file = Path(path) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def docker(layers, conf, name):
    archive = Archive()
    archive.put(sha(conf) + ".json", conf)
    for layer in layers:
        archive.put(sha(layer) + "/layer.tar", layer)
    archive.put("manifest.json", [{"Config": sha(conf) + ".json", "RepoTags": [name + ":1.0"] if name else None,
                                   "Layers": [sha(x) + "/layer.tar" for x in layers]}])
    return archive


def oci(layers, how="gzip", conf=None):
    archive = Archive()
    archive.index([archive.manifest(layers, conf or config(layers), how)])
    return archive


def hybrid(layers, name):
    archive = Archive()
    conf = config(layers)
    one = archive.manifest(layers, conf, "")
    one["annotations"] = {"io.containerd.image.name": f"docker.io/library/{name}:1.0",
                          "org.opencontainers.image.ref.name": "1.0"}
    archive.index([one])
    archive.put("manifest.json", [{"Config": "blobs/sha256/" + sha(conf), "RepoTags": [name + ":1.0"],
                                   "Layers": ["blobs/sha256/" + sha(x) for x in layers]}])
    return archive


def multi(layers):
    archive = Archive()
    one = archive.manifest(layers, config(layers), "gzip")
    other = {"mediaType": one["mediaType"], "digest": "sha256:" + "1" * 64, "size": 10}
    listed = json.dumps({"schemaVersion": 2, "manifests": [
        {**other, "platform": {"os": "linux", "architecture": "sparc"}},
        {**one, "platform": {"os": "linux", "architecture": MACHINE}},
        {**other, "platform": {"os": "unknown", "architecture": "unknown"}}]}).encode()
    archive.index([archive.blob(listed, "application/vnd.oci.image.index.v1+json")])
    return archive


def one_layer(fill):
    layer = Layer()
    fill(layer)
    return oci([layer.bytes()], "")


def damaged(archive, find):
    """Changes one byte of the largest file whose name has the text."""
    name = max((n for n in archive.files if find in n), key=lambda n: len(archive.files[n]))
    data = bytearray(archive.files[name])
    data[len(data) // 2] ^= 1
    archive.files[name] = bytes(data)
    return archive


def bomb():
    """Two gigabytes of zeros in two megabytes."""
    layer = Layer()
    data = bytes(1 << 20)
    info = tarfile.TarInfo("zeros")
    info.size = 2 << 30
    squeezed = io.BytesIO()
    diff = hashlib.sha256()
    with gzip.GzipFile(fileobj=squeezed, mode="wb", mtime=0) as out:
        for part in [info.tobuf()] + [data] * 2048 + [bytes(1024)]:
            diff.update(part)
            out.write(part)
    archive = Archive()
    conf = json.loads(config([]))
    conf["rootfs"]["diff_ids"] = ["sha256:" + diff.hexdigest()]
    manifest = {"schemaVersion": 2,
                "config": archive.blob(json.dumps(conf).encode(), "application/vnd.oci.image.config.v1+json"),
                "layers": [archive.blob(squeezed.getvalue(), "application/vnd.oci.image.layer.v1.tar+gzip")]}
    archive.index([archive.blob(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")])
    layer.bytes()
    return archive


def deep_json():
    archive = oci([base()])
    archive.put("index.json", b'{"manifests":' + b"[" * 150 + b"]" * 150 + b"}")
    return archive


def sparse_claim():
    layer = Layer()
    return layer.add("huge", b"x", pax={"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                                        "GNU.sparse.name": "huge", "GNU.sparse.realsize": str(1 << 50)})


HOSTILE = {
    "dotdot": lambda: one_layer(lambda x: x.add("a/../../escaped", b"x")),
    "hard-outside": lambda: one_layer(lambda x: x.hard("a", "../../../../etc/passwd")),
    "hard-missing": lambda: one_layer(lambda x: x.hard("a", "no/such/file")),
    "hard-through-link": lambda: one_layer(lambda x: x.link("d", "/etc").hard("a", "d/passwd")),
    "below-file": lambda: one_layer(lambda x: x.add("a", b"x").add("a/b", b"x")),
    "whiteout-dots": lambda: one_layer(lambda x: x.add(".wh...", b"")),
    "deep": lambda: one_layer(lambda x: x.add("d/" * 300 + "x", b"x")),
    "bad-layer": lambda: damaged(oci([base(), top()]), "blobs"),
    "bad-content": lambda: oci([base()], "gzip", config([top()])),
    "few-layers": lambda: oci([base()], "gzip", config([base(), top()])),
    "deep-json": deep_json,
    "bomb": bomb,
}

# These are odd, but are imported, and stay inside of the image.
ODD = {
    "links-out": lambda: one_layer(
        lambda x: x.link("etc", "/etc").add("etc/hekla-escaped", b"x").link("up", "../../../..").add("up/tmp/x", b"x")),
    "absolute": lambda: one_layer(lambda x: x.add("/abs/file", b"x").add("//abs/./two", b"x")),
    "devices": lambda: one_layer(
        lambda x: x.add("dev/null", kind=tarfile.CHRTYPE).add("dev/sda", kind=tarfile.BLKTYPE).add("pipe", kind=tarfile.FIFOTYPE)),
    "setuid": lambda: one_layer(lambda x: x.add("su", b"x", mode=0o4755)),
    "names": lambda: one_layer(lambda x: x.add("grüße", b"x").add("a\nb", b"x").add(" ", b"x")),
    "attributes": lambda: one_layer(
        lambda x: x.add("a", b"x", pax={"SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.user.overlay.opaque": "y",
                                        "SCHILY.xattr.user.note": "kept"})),
    "markers": lambda: one_layer(lambda x: x.dir("a").add("a/.wh..wh.hekla", b"x").add(".wh..wh.plnk", b"")),
    "modes": lambda: one_layer(lambda x: x.dir("closed", 0o000).add("closed/x", b"x", mode=0o000).dir("fixed", 0o555).add("fixed/x", b"x")),
}


def main():
    kind, path = sys.argv[1:3]
    name = sys.argv[3] if len(sys.argv) > 3 else "app"
    if kind in HOSTILE or kind in ODD:
        (HOSTILE.get(kind) or ODD[kind])().write(path)
        return
    layers = [base(), top()]
    if kind == "docker":
        docker(layers, config(layers), name).write(path)
    elif kind == "hybrid":
        hybrid(layers, name).write(path)
    elif kind in ("oci", "zstd"):
        oci(layers, "gzip" if kind == "oci" else "zstd").write(path)
    elif kind == "multi":
        multi(layers).write(path)
    elif kind == "dir":
        oci(layers).write_dir(path)
    elif kind == "plain":  # no entrypoint, root
        conf = config(layers, User="", Entrypoint=None, Cmd=["/bin/sh"], WorkingDir="")
        docker(layers, conf, name).write(path)
    elif kind == "foreign":
        docker(layers, config(layers, arch="sparc"), name).write(path)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
