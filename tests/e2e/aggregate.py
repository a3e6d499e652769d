#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An extension API server for tests/e2e/aggregate.t: the group fish.example.com with the kind Salmon.

    aggregate.py serve ADDRESS PORT CERT KEY   in a pod with a service account
    aggregate.py silence                       listens on a free port of loopback and never answers

It trusts user names only from callers whose certificate the request-header authority signed, which it
reads from the ConfigMap extension-apiserver-authentication, and asks the API server what they may do.
"""

import base64
import hashlib
import http.server
import json
import os
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import urllib.request

GROUP = "fish.example.com"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"
changed = threading.Condition()
objects, events = {}, []
trust = {}


def api(path, body=None):
    """Asks the API server as the pod's service account."""
    at = "https://%s:%s" % (os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
    request = urllib.request.Request(at + path, json.dumps(body).encode() if body else None)
    with open(ACCOUNT + "token") as token:
        request.add_header("Authorization", "Bearer " + token.read())
    request.add_header("Content-Type", "application/json")
    context = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, body, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, reason, message):
        self.reply({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "reason": reason, "message": message, "code": status}, status)

    def who(self):
        """The user, if the caller may name one."""
        cert = self.connection.getpeercert() or {}
        names = [v for part in cert.get("subject", ()) for k, v in part if k == "commonName"]
        if not set(names) & set(json.loads(trust["requestheader-allowed-names"])):
            return None
        return {"user": self.headers.get("X-Remote-User"),
                "groups": self.headers.get_all("X-Remote-Group") or [],
                "uid": self.headers.get("X-Remote-Uid")}

    def may(self, user, verb, ns, name):
        if "system:masters" in user["groups"]:
            return True
        review = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {
            "user": user["user"], "groups": user["groups"], "resourceAttributes": {
                "verb": verb, "group": GROUP, "resource": "salmons", "namespace": ns, "name": name}}}
        return api("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

    def discover(self, version):
        verbs = ["create", "delete", "get", "list", "watch"]
        self.reply({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP + "/" + version,
                    "resources": [
                        {"name": "salmons", "singularName": "salmon", "namespaced": True,
                         "kind": "Salmon", "verbs": verbs, "shortNames": ["sal"],
                         "categories": ["fish"]},
                        {"name": "salmons/status", "singularName": "", "namespaced": True,
                         "kind": "Salmon", "verbs": ["get"]}]})

    def watch(self, ns):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        at = 0
        while True:
            with changed:
                changed.wait_for(lambda: len(events) > at, 1)
                new, at = events[at:], len(events)
            for event in new:
                if event["object"]["metadata"]["namespace"] == ns:
                    data = json.dumps(event).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()

    def echo(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest())
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                         b"Connection: Upgrade\r\nX-Pod: yes\r\nSec-WebSocket-Accept: " + accept +
                         b"\r\n\r\n")
        while data := self.connection.recv(65536):
            self.connection.sendall(data)
        self.close_connection = True

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        query = urllib.parse.parse_qs(url.query)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        user = self.who()
        if not user:
            return self.refuse(401, "Unauthorized", "Unauthorized")
        if len(parts) == 3:
            return self.discover(parts[2])
        if parts[3] == "whoami":
            return self.reply({**user, "host": self.headers["Host"], "path": self.path})
        if parts[3] == "echo":
            return self.echo()
        if parts[3] == "away":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        ns, name = parts[4], parts[6] if len(parts) > 6 else ""
        verb = {"POST": "create", "DELETE": "delete"}.get(
            self.command, "get" if name else "watch" if "watch" in query else "list")
        if not self.may(user, verb, ns, name):
            return self.refuse(403, "Forbidden", "the extension server does not let %s %s" %
                               (user["user"], verb))
        return self.act(verb, ns, name, body, parts[2])

    def act(self, verb, ns, name, body, version):
        if verb == "watch":
            return self.watch(ns)
        if verb == "list":
            return self.reply({"kind": "SalmonList", "apiVersion": GROUP + "/" + version,
                               "metadata": {"resourceVersion": "1"},
                               "items": [o for key, o in sorted(objects.items()) if key[0] == ns]})
        if verb == "create":
            obj = json.loads(body)
            obj["metadata"].update(namespace=ns, uid=str(len(events)), resourceVersion="1",
                                   creationTimestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
            with changed:
                objects[ns, obj["metadata"]["name"]] = obj
                events.append({"type": "ADDED", "object": obj})
                changed.notify_all()
            return self.reply(obj, 201)
        if (ns, name) not in objects:
            return self.refuse(404, "NotFound", 'salmons.%s "%s" not found' % (GROUP, name))
        obj = objects[ns, name]
        if verb == "delete":
            del objects[ns, name]
        return self.reply(obj)

    do_GET = do_POST = do_DELETE = answer


def serve(address, port, cert, key):
    trust.update(api("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
                 ["data"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(cadata=trust["requestheader-client-ca-file"])
    context.verify_mode = ssl.CERT_OPTIONAL
    server = http.server.ThreadingHTTPServer((address, int(port)), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


def silence():
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(1024)
    print(sock.getsockname()[1], flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
