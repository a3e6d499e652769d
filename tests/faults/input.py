#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input through the real server: each row is one request and the Status it must get.

After every row the server is alive and nothing is stored; at the end its memory is what it was.
"""

from harness import MAPS, OURS, Path, Server, Tap, config_map, expect, expect_in, json, scratch

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
JSON, YAML = "application/json", "application/yaml"
PROTO = "application/vnd.kubernetes.protobuf"
MERGE = "application/merge-patch+json"
STEPS = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
LIMIT = 3 * 1024 * 1024
GROWTH_KIB = 24 * 1024 # what allocator and caches may keep

UNREADABLE = "the object provided is unrecognized (must be of type ConfigMap): "
NOT_FOUND = "the server could not find the requested resource"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"


def raw_map(data="{}", meta='{"name":"bad"}', more=""):
    return f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{meta},"data":{data}{more}}}'


def pod(**container):
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "bad"},
            "spec": {"containers": [{"name": "c", "image": "i", **container}]}}


def job(**spec):
    return {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": "bad"},
            "spec": spec}


def many_aliases():
    """Ten levels of nine aliases each: some three thousand million nodes in 500 bytes."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for k in range(10):
        inner, outer = chr(ord("a") + k), chr(ord("b") + k)
        lines.append(f"{outer}: &{outer} [{','.join([f'*{inner}'] * 9)}]")
    return "\n".join(lines)


def number(text):
    """A pod whose port is a number no library of ours would write."""
    return json.dumps(pod(ports=[{"containerPort": 4711}])).replace("4711", text)


# What is wrong, method, path, body, its media type, code, reason, part of the message.
REQUESTS = [
    ("JSON cut short", "POST", MAPS, '{"kind":', JSON,
     400, "BadRequest", UNREADABLE + "line 1, column 9: want a value, have the end of the input"),
    ("an empty body", "POST", MAPS, "", JSON,
     400, "BadRequest", UNREADABLE + "line 1, column 1"),
    ("a list for an object", "POST", MAPS, "[]", JSON,
     400, "BadRequest", UNREADABLE + "it is a JSON array"),
    ("null for an object", "POST", MAPS, "null", JSON,
     400, "BadRequest", UNREADABLE + "it is a JSON null"),
    ("text behind the object", "POST", MAPS, raw_map() + " more", JSON,
     400, "BadRequest", "want the end of the input after the value, have 'm'"),
    ("YAML cut short", "POST", MAPS, "a: [1", YAML,
     400, "BadRequest", UNREADABLE + "line 2, column 1"),
    ("YAML with an alias to nothing", "POST", MAPS, "a: &a [1]\nb: *c\n", YAML,
     400, "BadRequest", "unknown anchor 'c' referenced"),
    ("YAML whose aliases multiply", "POST", MAPS, many_aliases(), YAML,
     400, "BadRequest", "document contains excessive aliasing"),
    ("two YAML documents", "POST", MAPS, "a: 1\n---\nb: 2\n", YAML,
     400, "BadRequest", "2 YAML documents, want one"),
    ("protobuf without its mark", "POST", MAPS, b"\x08\x96\x01", PROTO,
     400, "BadRequest", UNREADABLE + "protobuf: body does not begin with 'k8s'"),
    ("protobuf cut short", "POST", MAPS, b"k8s\0\xff\xff\xff", PROTO,
     400, "BadRequest", UNREADABLE + "protobuf: message is cut short"),
    ("a media type nobody knows", "POST", MAPS, "x", "text/plain",
     415, "UnsupportedMediaType", "accepted media types include: application/json"),

    ("a number for text", "POST", MAPS, raw_map('{"k":1}'), JSON,
     400, "BadRequest", "number into Go struct field ConfigMap.data of type string"),
    ("a list for a map", "POST", MAPS, raw_map("[1]"), JSON,
     400, "BadRequest", "cannot unmarshal array into Go struct field ConfigMap.data"),
    ("text for metadata", "POST", MAPS, raw_map(meta='"x"'), JSON,
     400, "BadRequest", "cannot unmarshal string into Go struct field ConfigMap.metadata"),
    ("a number for a name", "POST", MAPS, raw_map(meta='{"name":7}'), JSON,
     400, "BadRequest", "Go struct field ObjectMeta.metadata.name of type string"),
    ("a list for labels", "POST", MAPS, raw_map(meta='{"name":"bad","labels":[]}'), JSON,
     400, "BadRequest", "Go struct field ObjectMeta.metadata.labels of type map[string]string"),
    ("a number for an owner", "POST", MAPS, raw_map(meta='{"name":"bad","ownerReferences":[1]}'),
     JSON, 400, "BadRequest", "ObjectMeta.metadata.ownerReferences of type v1.OwnerReference"),
    ("a number for the kind", "POST", MAPS, '{"kind":7,"metadata":{"name":"bad"}}', JSON,
     400, "BadRequest", "json: cannot unmarshal number into Go struct field .kind of type string"),
    ("a list for the version", "POST", MAPS, '{"apiVersion":[],"metadata":{"name":"bad"}}', JSON,
     400, "BadRequest", "json: cannot unmarshal array into Go struct field .apiVersion"),
    ("another kind than the path's", "POST", MAPS, pod(), JSON,
     400, "BadRequest", 'Pod in version "v1" cannot be handled as a ConfigMap'),
    ("a list for a spec", "POST", PODS, {**pod(), "spec": []}, JSON,
     400, "BadRequest", "cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
    ("a map for containers", "POST", PODS, {**pod(), "spec": {"containers": {}}}, JSON,
     400, "BadRequest", "PodSpec.spec.containers of type []v1.Container"),
    ("text for a number, by schema", "POST", JOBS, job(minAvailable="x"), JSON,
     422, "Invalid", "spec.minAvailable in body must be of type integer"),

    ("an unknown field", "POST", MAPS + "?fieldValidation=Strict",
     config_map("bad", extra=1), JSON,
     400, "BadRequest", 'strict decoding error: unknown field "extra"'),
    ("an unknown field far inside", "POST", PODS + "?fieldValidation=Strict",
     pod(nonsense=1), JSON,
     400, "BadRequest", 'strict decoding error: unknown field "spec.containers[0].nonsense"'),
    ("a field twice", "POST", MAPS + "?fieldValidation=Strict",
     raw_map(meta='{"name":"bad","name":"worse"}'), JSON,
     400, "BadRequest", 'strict decoding error: duplicate field "metadata.name"'),
    ("a validation nobody knows", "POST", MAPS + "?fieldValidation=Sometimes",
     config_map("bad"), JSON, 422, "Invalid", 'fieldValidation: Unsupported value: "Sometimes"'),
    ("a dry run of some", "POST", MAPS + "?dryRun=Some", config_map("bad"), JSON,
     422, "Invalid", 'dryRun: Unsupported value: ["Some"]'),

    ("one byte more than the limit", "POST", MAPS, b"x" * (LIMIT + 1), JSON,
     413, "RequestEntityTooLarge", "limit is 3145728"),
    ("ten times the limit", "POST", MAPS, b"x" * (10 * LIMIT), JSON,
     413, "RequestEntityTooLarge", "limit is 3145728"),
    ("objects inside one another", "POST", MAPS, '{"a":' * 100000, JSON,
     400, "BadRequest", "nested too deeply"),
    ("lists inside one another", "POST", MAPS, raw_map("[" * 100000), JSON,
     400, "BadRequest", "nested too deeply"),
    ("YAML lists inside one another", "POST", MAPS, "[" * 5000, YAML,
     400, "BadRequest", "nested deeper than 100 levels"),
    ("a patch of objects inside one another", "PATCH", MAPS + "/kept", '{"a":' * 100000, MERGE,
     400, "BadRequest", "nested too deeply"),

    ("bytes that are not UTF-8", "POST", MAPS, raw_map('{"k":"?"}').encode().replace(b"?", b"\xff"),
     JSON, 400, "BadRequest", "want well-formed UTF-8, have byte 0xff"),
    ("half a surrogate pair", "POST", MAPS,
     raw_map('{"k":"?"}').encode().replace(b"?", b"\xed\xa0\x80"), JSON,
     400, "BadRequest", "want well-formed UTF-8, have byte 0xed"),
    ("a NUL in text", "POST", MAPS, raw_map('{"k":"?"}').encode().replace(b"?", b"\0"), JSON,
     400, "BadRequest", "have byte 0x00"),

    ("a slash in a name", "POST", MAPS, config_map("a/b"), JSON,
     422, "Invalid", '"a/b" is invalid: metadata.name: Invalid value: "a/b": ' + SUBDOMAIN),
    ("dots for a name", "POST", MAPS, config_map(".."), JSON,
     422, "Invalid", 'metadata.name: Invalid value: "..": ' + SUBDOMAIN),
    ("a name too long", "POST", MAPS, config_map("x" * 254), JSON,
     422, "Invalid", "must be no more than 253 bytes"),
    ("no name", "POST", MAPS, config_map(""), JSON,
     422, "Invalid", "metadata.name: Required value: name or generateName is required"),
    ("dots in the path", "GET", MAPS + "/..", None, JSON,
     400, "BadRequest", "invalid path segment '..'"),
    ("escaped dots in the path", "PUT", MAPS + "/%2e%2E", config_map(".."), JSON,
     400, "BadRequest", "invalid path segment '%2e%2E'"),
    ("an escaped way out", "GET", MAPS + "/%2e%2e%2fsecrets", None, JSON,
     400, "BadRequest", "invalid path segment '%2e%2e%2fsecrets'"),
    ("an escaped slash in the path", "GET", MAPS + "/a%2Fb", None, JSON,
     400, "BadRequest", "invalid path segment 'a%2Fb'"),
    ("dots for a namespace", "GET", "/api/v1/namespaces/%2e%2e/configmaps", None, JSON,
     400, "BadRequest", "invalid path segment '%2e%2e'"),
    ("an escaped NUL", "GET", MAPS + "/a%00b", None, JSON,
     400, "BadRequest", "invalid URL escape"),
    ("an escape that is none", "GET", MAPS + "/a%zz", None, JSON,
     400, "BadRequest", "invalid URL escape in 'a%zz'"),
    ("an escape cut short", "GET", MAPS + "/a%2", None, JSON,
     400, "BadRequest", "invalid URL escape in 'a%2'"),
    ("a path that is not UTF-8", "GET", MAPS + "/%ff%fe", None, JSON,
     404, "NotFound", 'configmaps "\ufffd\ufffd" not found'),
    ("empty parts of a path", "GET", "//api//v1", None, JSON,
     400, "BadRequest", "invalid path segment ''"),
    ("a path of five hundred parts", "GET", "/" + "a/" * 500, None, JSON,
     404, "NotFound", NOT_FOUND),
    ("a resource nobody knows", "GET", "/api/v1/nothing", None, JSON, 404, "NotFound", NOT_FOUND),
    ("a group nobody knows", "GET", "/apis/no.such/v1/things", None, JSON,
     404, "NotFound", NOT_FOUND),
    ("a method nobody knows", "BREW", MAPS, None, JSON, 405, "MethodNotAllowed",
     "does not allow this method"),
    ("creating by name", "POST", MAPS + "/bad", config_map("bad"), JSON,
     405, "MethodNotAllowed", "does not allow this method"),

    ("a label selector with three signs", "GET", MAPS + "?labelSelector=a%3D%3D%3Db", None, JSON,
     400, "BadRequest", "unable to parse requirement"),
    ("a label selector cut short", "GET", MAPS + "?labelSelector=a+in+(", None, JSON,
     400, "BadRequest", "unable to parse requirement"),
    ("a label key that is none", "GET", MAPS + "?labelSelector=-a", None, JSON,
     400, "BadRequest", "unable to parse requirement"),
    ("a field nobody can select by", "GET", MAPS + "?fieldSelector=spec.x%3Dy", None, JSON,
     400, "BadRequest", '"spec.x" is not a known field selector'),
    ("a field selector without a sign", "GET", MAPS + "?fieldSelector=garbage", None, JSON,
     400, "BadRequest", "unable to parse requirement"),
    ("a continue token that is none", "GET", MAPS + "?continue=%21%21", None, JSON,
     400, "BadRequest", "continue key is not valid"),
    ("three hundred query parameters", "GET", MAPS + "?" + "a=b&" * 300, None, JSON,
     400, "BadRequest", "query parameters"),

    ("a merge patch cut short", "PATCH", MAPS + "/kept", '{"data":', MERGE,
     400, "BadRequest", "error decoding patch: line 1, column 9"),
    ("a merge patch that is a list", "PATCH", MAPS + "/kept", "[]", MERGE,
     400, "BadRequest", "must be an object"),
    ("a merge patch to a wrong type", "PATCH", MAPS + "/kept", '{"data":7}', MERGE,
     422, "Invalid", "cannot unmarshal number into Go struct field ConfigMap.data"),
    ("a merge patch of the kind", "PATCH", MAPS + "/kept", '{"kind":7}', MERGE,
     422, "Invalid", "cannot unmarshal number into Go struct field .kind of type string"),
    ("a JSON patch of the version", "PATCH", MAPS + "/kept",
     '[{"op":"replace","path":"/apiVersion","value":[]}]', "application/json-patch+json",
     422, "Invalid", "cannot unmarshal array into Go struct field .apiVersion of type string"),
    ("a JSON patch of the metadata", "PATCH", MAPS + "/kept",
     '[{"op":"replace","path":"/metadata","value":"x"}]', "application/json-patch+json",
     422, "Invalid", "cannot unmarshal string into Go struct field ConfigMap.metadata"),
    ("a JSON patch of everything", "PATCH", MAPS + "/kept",
     '[{"op":"replace","path":"","value":7}]', "application/json-patch+json",
     422, "Invalid", "cannot unmarshal number into Go value"),
    ("a merge patch of the name", "PATCH", MAPS + "/kept", '{"metadata":{"name":"bad"}}', MERGE,
     400, "BadRequest", "does not match the name on the URL (kept)"),
    ("a JSON patch that is no list", "PATCH", MAPS + "/kept", "{}", STEPS,
     400, "BadRequest", "a JSON patch must be a list of operations"),
    ("an operation nobody knows", "PATCH", MAPS + "/kept", '[{"op":"fly","path":"/data"}]', STEPS,
     422, "Invalid", "unknown operation 'fly'"),
    ("a path that leads nowhere", "PATCH", MAPS + "/kept",
     '[{"op":"remove","path":"/data/none"}]', STEPS,
     422, "Invalid", "remove operation does not apply: doc is missing path: '/data/none'"),
    ("a test that fails", "PATCH", MAPS + "/kept",
     '[{"op":"test","path":"/data/k","value":"2"}]', STEPS,
     422, "Invalid", "testing value /data/k failed"),
    ("too many operations", "PATCH", MAPS + "/kept",
     "[" + ",".join(['{"op":"add","path":"/data/x","value":"y"}'] * 10001) + "]", STEPS,
     413, "RequestEntityTooLarge", "maximum operations in a JSON patch is 10000, got 10001"),
    ("copies that double", "PATCH", MAPS + "/kept",
     '[{"op":"add","path":"/data/a","value":{}}' +
     ',{"op":"copy","from":"/data","path":"/data/a"}' * 40 + "]", STEPS,
     422, "Invalid", ""),
    ("a directive nobody knows", "PATCH", MAPS + "/kept", '{"metadata":{"$patch":"dance"}}',
     STRATEGIC, 400, "BadRequest", "unknown patch type 'dance'"),
    ("a strategic patch to a wrong type", "PATCH", MAPS + "/kept",
     '{"metadata":{"finalizers":7}}', STRATEGIC,
     422, "Invalid", "ObjectMeta.metadata.finalizers of type []string"),
    ("a strategic patch of a custom resource", "PATCH", JOBS + "/kept", "{}", STRATEGIC,
     415, "UnsupportedMediaType", "application/merge-patch+json"),
    ("a patch of no type", "PATCH", MAPS + "/kept", '{"data":{"k":"v"}}', JSON,
     415, "UnsupportedMediaType", "application/json-patch+json"),
    ("an apply that is not YAML", "PATCH", MAPS + "/kept?fieldManager=m", "a: [", APPLY,
     400, "BadRequest", UNREADABLE + "line 2, column 1"),
    ("an apply by nobody", "PATCH", MAPS + "/kept", "{}", APPLY,
     422, "Invalid", "fieldManager: Required value: is required for apply patch"),

    ("less than nothing of it", "POST", PODS, pod(resources={"limits": {"cpu": "-1"}}), JSON,
     422, "Invalid", 'limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
    ("a quantity that is none", "POST", PODS, pod(resources={"limits": {"cpu": "1.2.3"}}), JSON,
     400, "BadRequest", "quantities must match the regular expression"),
    ("a port of eleven digits", "POST", PODS, number("99999999999"), JSON,
     400, "BadRequest", "cannot unmarshal number 99999999999 into Go struct field ContainerPort"),
    ("a port and a half", "POST", PODS, number("1.5"), JSON,
     400, "BadRequest", "cannot unmarshal number 1.5 into Go struct field ContainerPort"),
    ("an exponent of four hundred", "POST", PODS, number("1e400"), JSON,
     400, "BadRequest", "number too large"),
    ("a number of five thousand digits", "POST", PODS, number("9" * 5000), JSON,
     400, "BadRequest", "number too large"),
    ("a number larger than its schema's", "POST", JOBS, job(minAvailable=99999999999), JSON,
     422, "Invalid", "spec.minAvailable in body must be of type int32"),
    ("a limit of twenty digits", "GET", MAPS + "?limit=" + "9" * 20, None, JSON,
     400, "BadRequest", "invalid limit"),
    ("a limit that is a word", "GET", MAPS + "?limit=-one", None, JSON,
     400, "BadRequest", 'invalid limit "-one"'),
    ("a revision below nothing", "GET", MAPS + "?resourceVersion=-5", None, JSON,
     400, "BadRequest", 'invalid resource version "-5"'),
    ("a revision of thirty digits", "GET", MAPS + "?resourceVersion=" + "9" * 30, None, JSON,
     400, "BadRequest", "invalid resource version"),
    ("a watch from the far future", "GET", MAPS + "?watch=1&resourceVersion=9223372036854775807",
     None, JSON, 504, "Timeout", "Too large resource version: 9223372036854775807"),

    ("options of a deletion cut short", "DELETE", MAPS + "/kept", '{"gracePeriodSeconds":', JSON,
     400, "BadRequest", "(must be of type DeleteOptions)"),
    ("options of a deletion that are a list", "DELETE", MAPS + "/kept", "[]", JSON,
     400, "BadRequest", "(must be of type DeleteOptions): it is a JSON array"),
    ("text for a grace period", "DELETE", MAPS + "/kept", '{"gracePeriodSeconds":"x"}', JSON,
     400, "BadRequest", "Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
    ("a propagation nobody knows", "DELETE", MAPS + "/kept?propagationPolicy=Sideways", None, JSON,
     422, "Invalid", 'propagationPolicy: Unsupported value: "Sideways"'),
]


class Suite:
    def __init__(self):
        self.server = Server(scratch() / "data").start()
        self.client = self.server.client()
        answer = self.client.request("POST", MAPS, config_map("kept"))
        expect("the answer to a good request", answer.code, 201)
        self.stored = self.list_all()

    def list_all(self):
        """Name and revision of everything the rows could have touched."""
        with self.server.client() as client:
            return [(item["metadata"]["name"], item["metadata"]["resourceVersion"])
                    for path in (OURS, PODS, JOBS)
                    for item in client.request("GET", path).json()["items"]]

    def check_unharmed(self):
        expect("server alive", self.server.alive(), True)
        expect("what is stored", self.list_all(), self.stored)

    def check_status(self, answer, code, reason, message):
        expect(f"code of {answer}", answer.code, code)
        status = answer.json()
        for member, want in (("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure"),
                             ("reason", reason), ("code", code)):
            expect(f"{member} of {status}", status.get(member), want)
        expect_in("message", status["message"], message)

    def refused(self, method, path, body, media, code, reason, message):
        """All on one connection: a refusal leaves it usable."""
        try:
            answer = self.client.request(method, path, body, content_type=media)
        except OSError:
            self.client = self.server.client()
            raise
        self.check_status(answer, code, reason, message)
        self.check_unharmed()

    def refused_chunked(self, size):
        answer = self.client.request("POST", MAPS, b"x" * size, chunked=True)
        self.check_status(answer, 413, "RequestEntityTooLarge", "limit is 3145728")
        self.check_unharmed()

    def refused_before_it_comes(self):
        """Who asks first hears so without sending anything; so does who announces far too much."""
        for length, header in ((LIMIT + 1, ["Expect: 100-continue"]), (1 << 40, [])):
            with self.server.client() as client:
                client.send(client.head("POST", MAPS, [f"Content-Length: {length}", *header]))
                self.check_status(client.answer(), 413, "RequestEntityTooLarge",
                                  "limit is 3145728")
        self.check_unharmed()

    def refused_unknown(self):
        with self.server.client() as client:
            client.token = "guess"
            answer = client.request("POST", MAPS, b"x" * LIMIT)
            self.check_status(answer, 401, "Unauthorized", "Unauthorized")
        self.check_unharmed()

    def largest(self):
        body = json.dumps(config_map("large", ""))
        body = body.replace('"k": ""', '"k": "%s"' % ("x" * (900 * 1024)))
        answer = self.client.request("POST", MAPS, body + " " * (LIMIT - len(body)))
        expect("answer to a body of exactly the limit", answer.code, 201)
        expect("the deletion", self.client.request("DELETE", MAPS + "/large").code, 200)

    def not_http(self):
        """What is not even HTTP is answered or cut, and harms nobody else."""
        hasty = Server(scratch() / "data", "--header-timeout", "1").start()
        for bad in (b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551617\r\n\r\n",
                    b"POST " + MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
                    b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100000 + b"\r\n\r\n",
                    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"):
            with hasty.client() as client:
                try:
                    client.send(bad)
                    code, _ = client.answer_head()
                    if code < 400 or code > 599:
                        raise AssertionError(f"{bad[:60]!r}: expected 4xx or 5xx, got {code}")
                except OSError:
                    pass # cut
            expect("code of a good request", hasty.api("GET", MAPS).code, 200)
        with hasty.connect() as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                expect("answer to HTTP without TLS", b"HTTP" in plain.recv(1000), False)
            except OSError:
                pass # cut
        expect("exit status", hasty.stop(), 0)

    def memory(self):
        """All of it again, and again: nothing adds up."""
        before = self.server.rss_kib()
        for _ in range(5):
            for _, method, path, body, media, *_ in REQUESTS:
                self.client.request(method, path, body, content_type=media)
        grown = self.server.rss_kib() - before
        if grown > GROWTH_KIB:
            raise AssertionError(f"memory grew by {grown} KiB, want at most {GROWTH_KIB}")

    def wide_patches(self):
        """Squares would make it sixteen times, and hold up everybody for seconds."""
        few = cost_of_patches(self.server, PATCHED)
        many = cost_of_patches(self.server, 4 * PATCHED)
        if many > 9 * max(few, 4):
            raise AssertionError(f"expected about {4 * few} ticks for {4 * PATCHED} members, "
                                 f"{few} for {PATCHED}, actual: {many}")

    def ends_clean(self):
        expect("exit status", self.server.stop(), 0)
        expect("log", self.server.log, [])


PATCHED = 8000
PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json",
           "application/apply-patch+yaml")


def cpu_ticks(server):
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def cost_of_patches(server, members):
    """Processor time of creating, changing and emptying an object of that many members."""
    keys = [f"key-{i:06}" for i in range(members)]
    before = cpu_ticks(server)
    for n, kind in enumerate(PATCHES):
        name = f"wide-{members}-{n}"
        path = f"{MAPS}/{name}?fieldManager=wide"
        server.api("POST", MAPS, config_map(name))
        for value in ("a", "b", None):
            if value is None and "apply" in kind:
                data = {}
            else:
                data = {key: value for key in keys}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            answer = server.api("PATCH", path, body, content_type=kind)
            expect(f"answer to {kind} of {members} members", answer.code, 200)
        left = [key for key in answer.json().get("data", {}) if key in keys[:3]]
        expect(f"members left by {kind}", left, [])
    return cpu_ticks(server) - before


def main():
    tap = Tap()
    suite = Suite()
    for name, *row in REQUESTS:
        tap.step(f"refused: {name}", suite.refused, *row)
    tap.step("refused: more than the limit in chunks", suite.refused_chunked, LIMIT + 1)
    tap.step("refused: far more than the limit in chunks", suite.refused_chunked, 100 * LIMIT)
    tap.step("refused by its announced length: more than the limit", suite.refused_before_it_comes)
    tap.step("refused: a body without credentials", suite.refused_unknown)
    tap.step("bytes that are not HTTP do no harm", suite.not_http)
    tap.step("a body of exactly the limit is accepted", suite.largest)
    tap.step("four times the members cost a patch about four times as much", suite.wide_patches)
    tap.step("memory does not grow", suite.memory)
    tap.step("the server ends with an empty log", suite.ends_clean)
    tap.done()


if __name__ == "__main__":
    main()
