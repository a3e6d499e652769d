#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A conversion webhook for tests, over TLS: tests/e2e/conversion_webhook.py CERT KEY LOG.

Prints its port. It knows one kind, whose v1 has spec.hostPort ("a:80") and whose v2 has spec.host and
spec.port. The path says what it does besides:
  /convert   nothing                       /rename    changes metadata.name
  /uid       changes metadata.uid          /label     adds a label that says the version
  /fail      fails with a message          /fewer     returns an object less
  /garbage   is no JSON                    /slow      answers after ten minutes
  /version   leaves apiVersion as it is    /poison    fails for reviews with an object called poison
Each request is a line of LOG: PATH DESIREDVERSION NUMBER-OF-OBJECTS REVIEWVERSION.
"""

import http.server
import json
import ssl
import sys
import threading
import time

lock = threading.Lock()


class Failure(Exception):
    pass


def convert(path, obj, desired):
    version = desired.split("/")[1]
    spec = obj.setdefault("spec", {})
    if "resourceVersion" in obj["metadata"]:
        raise Failure("the object has a revision")
    if obj["apiVersion"] == desired:
        raise Failure("the object has that version already")
    if path == "/fail" or (path == "/poison" and obj["metadata"]["name"] == "poison"):
        raise Failure("the webhook does not want to")
    if path != "/version":
        obj["apiVersion"] = desired
    if version == "v1":
        spec["hostPort"] = "{}:{}".format(spec.pop("host", ""), spec.pop("port", 0))
    else:
        spec["host"], port = spec.pop("hostPort", ":0").split(":")
        spec["port"] = int(port)
    if path == "/rename":
        obj["metadata"]["name"] += "-renamed"
    if path == "/uid":
        obj["metadata"]["uid"] = "made-up"
    if path == "/label":
        obj["metadata"].setdefault("labels", {})["shown-in"] = version
        obj["metadata"]["finalizers"] = ["example.com/sly"]
    return obj


def review(path, body):
    request = body["request"]
    response = {"uid": request["uid"], "result": {"status": "Success"}}
    try:
        objects = [convert(path, o, request["desiredAPIVersion"]) for o in request["objects"]]
        response["convertedObjects"] = objects[1:] if path == "/fewer" else objects
    except Failure as e:
        response["result"] = {"status": "Failure", "message": str(e)}
    return {"apiVersion": body["apiVersion"], "kind": "ConversionReview", "response": response}


class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        pass

    def do_POST(self):
        path = self.path.split("?")[0]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = body["request"]
        with lock, open(sys.argv[3], "a") as log:
            log.write("{} {} {} {}\n".format(path, request["desiredAPIVersion"],
                                             len(request["objects"]), body["apiVersion"]))
        if path == "/slow":
            time.sleep(600)
        answer = json.dumps(review(path, body)).encode()
        if path == "/garbage":
            answer = b"<html>sorry</html>"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
