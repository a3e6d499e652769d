#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An admission webhook for tests, over TLS: tests/e2e/webhooks_of_others.py CERT KEY LOG.

Prints its port. The path says how it answers:
  /allow    allows                        /deny     refuses with 403 and a message
  /label    adds the label hooked=yes     /slow     answers after ten minutes
  /garbage  is no JSON                    /endless  sends a body without end
  /warn     allows with a warning
Each request is a line of LOG: PATH OPERATION KIND NAMESPACE/NAME USER.
"""

import base64
import http.server
import json
import ssl
import sys
import threading
import time

LABEL = [{"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}}]
lock = threading.Lock()


def answer(path, request):
    response = {"uid": request["uid"], "allowed": path != "/deny"}
    if path == "/deny":
        response["status"] = {"code": 403, "reason": "Forbidden", "message": "not on my watch"}
    if path == "/label" and request["object"]:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(LABEL).encode()).decode()
    if path == "/warn":
        response["warnings"] = ["the webhook has doubts"]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def note(self, path, request):
        line = "{} {} {} {}/{} {}\n".format(
            path,
            request["operation"],
            request["kind"]["kind"],
            request.get("namespace", ""),
            request.get("name", ""),
            request["userInfo"]["username"],
        )
        with lock, open(sys.argv[3], "a") as log:
            log.write(line)

    def do_POST(self):
        path = self.path.split("?")[0]
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.note(path, review["request"])
        if path == "/slow":
            time.sleep(600)
        body = json.dumps(answer(path, review["request"])).encode()
        if path == "/garbage":
            body = b"<html>sorry</html>"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if path == "/endless":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.send_forever()
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def send_forever(self):
        try:
            while True:
                self.wfile.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        except OSError:
            self.close_connection = True


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
