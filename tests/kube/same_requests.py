# SPDX-License-Identifier: Apache-2.0
"""The requests that same.py sends to both servers, in this order: later ones use what earlier ones made.

A row is METHOD(title, path, ...); titles are unique. ${NAME} in a path or body stands for a value that
an earlier answer of the same server had (`save`).
"""

import copy
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

User = namedtuple("User", "token name groups")
USERS = (User("token-of-the-administrator", "admin", "system:masters"),
         User("token-of-jane", "jane", "developers"))

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
TABLE_BETA = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGGREGATED_BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@dataclass
class Request:
    title: str
    method: str
    path: str
    body: Any = None
    type: Optional[str] = JSON
    accept: Optional[str] = None
    headers: dict = field(default_factory=dict)
    user: Optional[str] = "admin"  # name of a user, another token, or None
    events: int = 0  # a watch: compare this many events, then close
    save: dict = field(default_factory=dict)  # NAME: path in the body
    until: Optional[Callable] = None  # repeat until the body satisfies this
    pick: Optional[Callable] = None  # the part of the body that is compared
    managed: bool = False  # compare managedFields, too
    setup: bool = False  # only prepares; not compared


def get(title, path, **more):
    return Request(title, "GET", path, **more)


def head(title, path, **more):
    return Request(title, "HEAD", path, **more)


def post(title, path, body=None, **more):
    return Request(title, "POST", path, body, **more)


def put(title, path, body=None, **more):
    return Request(title, "PUT", path, body, **more)


def patch(title, path, body, type=MERGE, **more):
    return Request(title, "PATCH", path, body, type, **more)


def delete(title, path, body=None, **more):
    return Request(title, "DELETE", path, body, **more)


def watch(title, path, events, **more):
    return Request(title, "GET", path, events=events, **more)


def prepare(path, body):
    return Request(f"prepare {path} {body.get('metadata', {}).get('name')}", "POST", path, body,
                   setup=True)


def meta(name, **more):
    return {"name": name, **more}


def thing(version, kind, name, **more):
    """An object; metadata members other than the name are in `meta`."""
    return {"apiVersion": version, "kind": kind,
            "metadata": {"name": name, **more.pop("meta", {})}, **more}


def without(body, *path):
    """A copy without the member at path."""
    body = copy.deepcopy(body)
    inner = body
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]
    return body


# ---- objects ----

NS = "/api/v1/namespaces/same"
MAPS, PODS, SECRETS = f"{NS}/configmaps", f"{NS}/pods", f"{NS}/secrets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/same/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/same/leases"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/same.test/v1/namespaces/same/things"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MADE = "labelSelector=made-by%3Dsame"


def config_map(name, data=None, **more):
    return thing("v1", "ConfigMap", name, data=data or {"k": "v"},
                 meta={"labels": {"made-by": "same"}, **more})


def pod_spec(**more):
    return {"automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "busybox"}], **more}


def pod(name, **spec):
    return thing("v1", "Pod", name, meta={"labels": {"made-by": "same"}}, spec=pod_spec(**spec))


def template(**spec):
    return {"metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "busybox"}], **spec}}


def deployment(name, **spec):
    return thing("apps/v1", "Deployment", name,
                 spec={"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec})


# ---- parts of large answers ----

# What both servers serve; Hekla's own groups and kinds without use there are left out.
COMMON_GROUPS = ("apps", "autoscaling", "batch", "policy", "coordination.k8s.io",
                 "rbac.authorization.k8s.io", "apiextensions.k8s.io", "storage.k8s.io",
                 "networking.k8s.io", "scheduling.k8s.io", "node.k8s.io", "events.k8s.io",
                 "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io",
                 "admissionregistration.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io")


def by_name(*path, name="name", only=None):
    """Turns the list at path into a dictionary by the name of its members."""
    def pick(body):
        if not isinstance(body, dict):
            return body
        body = copy.deepcopy(body)
        holder = body
        for part in path[:-1]:
            holder = holder.get(part, {})
        rows = {}
        for row in holder.get(path[-1]) or []:
            key = row
            for part in name.split("."):
                key = key.get(part, {}) if isinstance(key, dict) else key
            key = key if isinstance(key, str) else ""
            if only is None or key in only:
                rows[key] = row
        holder[path[-1]] = rows
        return body
    return pick


def aggregated(body):
    """Groups of aggregated discovery by name, their versions and resources likewise."""
    body = by_name("items", name="metadata.name", only=(*COMMON_GROUPS, ""))(body)
    for group in (body.get("items", {}) if isinstance(body, dict) else {}).values():
        group["versions"] = {v["version"]: v for v in group["versions"]}
        for version in group["versions"].values():
            version["resources"] = {r["resource"]: r for r in version["resources"]}
            for resource in version["resources"].values():
                resource["subresources"] = {s["subresource"]: s
                                            for s in resource.get("subresources") or []}
    return body


def resources(body):
    """The resources of a group version, without the hash that only caches of the server use."""
    body = by_name("resources")(body)
    for resource in body.get("resources", {}).values():
        resource.pop("storageVersionHash", None)
        resource["verbs"] = sorted(resource["verbs"])
    return body


def openapi_index(body):
    return sorted(path for path in body.get("paths", {})
                  if path.split("/")[-1] in ("v1", "api", "apis", "version")
                  and (path.split("/")[1:2] or ["api"])[0] in (*COMMON_GROUPS, "api", "v1"))


def openapi_path(path, with_parameters=True):
    """Methods of one path of an OpenAPI document; in v2 most parameters are references."""
    def pick(body):
        item = body.get("paths", {}).get(path, {}) if isinstance(body, dict) else {}
        return {method: {"action": op.get("x-kubernetes-action"),
                         "kind": op.get("x-kubernetes-group-version-kind"),
                         "parameters": sorted(p.get("name", "") for p in op.get("parameters", [])
                                              if with_parameters)}
                for method, op in item.items() if isinstance(op, dict)}
    return pick


def openapi_schema(name):
    """Types and required members of one schema."""
    def pick(body):
        schema = body.get("components", body).get("schemas", body.get("definitions", {})).get(name, {})
        return {"required": sorted(schema.get("required", [])),
                "kinds": schema.get("x-kubernetes-group-version-kind"),
                "properties": sorted(schema.get("properties", {}))}
    return pick


def top_level(text):
    """The members of a YAML document."""
    return sorted({line.split(":")[0] for line in text.splitlines()
                   if not line.startswith((" ", "-"))}) if isinstance(text, str) else text


def common_paths(body):
    """Paths of groups that both serve; kube-apiserver also lists every check of its health."""
    first = ("", "v1", "v2", "v3", *COMMON_GROUPS)
    return [path for path in body["paths"]
            if path.count("/") < 4 and path[-1] != "/" and "openid" not in path
            and (path.split("/") + [""])[2] in first]


def members(*names):
    """Only these members, in place of texts that name the build."""
    return lambda body: {n: body.get(n) for n in names} if isinstance(body, dict) else body


# ---- the requests ----

PREPARE = [
    prepare("/api/v1/namespaces", thing("v1", "Namespace", "same")),
    prepare(f"{NS}/serviceaccounts", thing("v1", "ServiceAccount", "default")),
    prepare("/api/v1/namespaces/default/serviceaccounts", thing("v1", "ServiceAccount", "default")),
    prepare(f"{RBAC}/namespaces/same/roles",
            thing(f"{RBAC[6:]}", "Role", "reader",
                  rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}])),
    prepare(f"{RBAC}/namespaces/same/rolebindings",
            thing(f"{RBAC[6:]}", "RoleBinding", "reader",
                  roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                           "name": "reader"},
                  subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                             "name": "jane"}])),
]

DISCOVERY = [
    get("the versions of the core group", "/api", pick=members("kind", "versions")),
    get("the groups", "/apis", pick=by_name("groups", only=COMMON_GROUPS)),
    *[get(f"the resources of {g}", f"/{'api' if g == 'v1' else 'apis'}/{g}", pick=resources)
      for g in ("v1", "apps/v1", "batch/v1", "autoscaling/v1", "autoscaling/v2", "policy/v1",
                "coordination.k8s.io/v1", "rbac.authorization.k8s.io/v1",
                "apiextensions.k8s.io/v1", "storage.k8s.io/v1", "networking.k8s.io/v1",
                "scheduling.k8s.io/v1", "node.k8s.io/v1", "events.k8s.io/v1",
                "authentication.k8s.io/v1", "authorization.k8s.io/v1", "certificates.k8s.io/v1",
                "admissionregistration.k8s.io/v1", "discovery.k8s.io/v1",
                "flowcontrol.apiserver.k8s.io/v1")],
    get("one group", "/apis/apps"),
    get("a group with a slash at the end", "/apis/apps/"),
    get("a group that does not exist", "/apis/nothing.test"),
    get("a version that does not exist", "/apis/apps/v7"),
    get("a resource that does not exist", "/api/v1/nothings"),
    get("a resource of a namespace that does not exist there", f"{NS}/nothings"),
    get("aggregated discovery of the core group", "/api", accept=AGGREGATED, pick=aggregated),
    get("aggregated discovery of the other groups", "/apis", accept=AGGREGATED, pick=aggregated),
    get("aggregated discovery of v2beta1", "/apis", accept=AGGREGATED_BETA, pick=aggregated),
    get("aggregated discovery as newer clients ask", "/api",
        accept=f"{AGGREGATED},{AGGREGATED_BETA},application/json", pick=members("kind")),
    get("groups in protobuf, or else in JSON", "/apis", accept=f"{PROTOBUF},application/json",
        pick=members("kind")),
    get("the index of OpenAPI v3", "/openapi/v3", pick=openapi_index),
    get("OpenAPI v3 of apps/v1: the path of a Deployment", "/openapi/v3/apis/apps/v1",
        pick=openapi_path("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")),
    get("OpenAPI v3 of apps/v1: the path of Deployments", "/openapi/v3/apis/apps/v1",
        pick=openapi_path("/apis/apps/v1/namespaces/{namespace}/deployments")),
    get("OpenAPI v3 of apps/v1: the schema of a Deployment", "/openapi/v3/apis/apps/v1",
        pick=openapi_schema("io.k8s.api.apps.v1.Deployment")),
    get("OpenAPI v3 of v1: the schema of a pod", "/openapi/v3/api/v1",
        pick=openapi_schema("io.k8s.api.core.v1.PodSpec")),
    get("OpenAPI v3 of a group that does not exist", "/openapi/v3/apis/nothing.test/v1"),
    get("OpenAPI v2: the path of a config map", "/openapi/v2",
        pick=openapi_path("/api/v1/namespaces/{namespace}/configmaps/{name}", False)),
    get("OpenAPI v2 in protobuf", "/openapi/v2",
        accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf", pick=lambda _: None),
    get("the version", "/version", pick=lambda body: sorted(body)),
    get("the version with a slash", "/version/", pick=lambda body: sorted(body)),
    get("the version without credentials", "/version", user=None, pick=lambda body: sorted(body)),
    get("healthz", "/healthz"),
    get("livez", "/livez"),
    get("readyz", "/readyz"),
    get("readyz without credentials", "/readyz", user=None),
    get("readyz, verbose", "/readyz?verbose", pick=lambda text: text.splitlines()[-1:]),
    get("livez, one check", "/livez/ping"),
    get("livez, a check that does not exist", "/livez/nothing"),
    get("readyz without one check", "/readyz?exclude=etcd"),
    head("the head of healthz", "/healthz"),
    post("healthz takes no POST", "/healthz"),
    get("the paths of the server", "/", pick=common_paths),
    get("a path of nothing", "/nothing"),
    post("discovery takes no POST", "/apis/apps/v1", {}),
]

WHO = [
    get("without credentials", MAPS, user=None),
    get("without credentials, a path of nothing", "/nothing", user=None),
    get("with a token of nobody", MAPS, user="nobody"),
    get("jane lists what she may", f"{MAPS}?{MADE}", user="jane"),
    get("jane reads what she may, and it does not exist", f"{MAPS}/missing", user="jane"),
    get("jane lists what she may not", SECRETS, user="jane"),
    get("jane reads what she may not", f"{SECRETS}/s", user="jane"),
    get("jane lists another namespace", "/api/v1/namespaces/default/configmaps", user="jane"),
    get("jane lists all namespaces", "/api/v1/configmaps", user="jane"),
    get("jane lists a kind of another group", DEPLOYMENTS, user="jane"),
    get("jane lists a kind of the cluster", "/api/v1/persistentvolumes", user="jane"),
    get("jane lists a kind that does not exist", f"{NS}/nothings", user="jane"),
    get("jane reads a subresource", f"{PODS}/p/log", user="jane"),
    get("jane reads a path of no kind", "/metrics", user="jane"),
    post("jane creates what she may only read", MAPS, config_map("janes"), user="jane"),
    put("jane replaces what she may only read", f"{MAPS}/janes", config_map("janes"), user="jane"),
    patch("jane patches what she may only read", f"{MAPS}/janes", {}, user="jane"),
    delete("jane deletes what she may only read", f"{MAPS}/janes", user="jane"),
    delete("jane deletes a collection she may only read", MAPS, user="jane"),
    watch("jane watches what she may not", f"{MAPS}?watch=1", 1, user="jane"),
    get("the administrator as jane", f"{MAPS}?{MADE}", headers={"Impersonate-User": "jane"}),
    get("the administrator as jane, who may not", SECRETS, headers={"Impersonate-User": "jane"}),
    get("the administrator as a group", SECRETS,
        headers={"Impersonate-User": "joe", "Impersonate-Group": "system:masters"}),
    get("a group without a user", SECRETS, headers={"Impersonate-Group": "system:masters"}),
    get("jane as the administrator", SECRETS, user="jane", headers={"Impersonate-User": "admin"}),
    get("as a service account", MAPS,
        headers={"Impersonate-User": "system:serviceaccount:same:default"}),
    post("who am I", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
         {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
    post("who is jane", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
         {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, user="jane"),
    post("who am I as somebody else", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
         {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
         headers={"Impersonate-User": "joe", "Impersonate-Group": "g", "Impersonate-Extra-color":
                  "red", "Impersonate-Uid": "u"}),
    post("a review of a token of nobody", "/apis/authentication.k8s.io/v1/tokenreviews",
         {"spec": {"token": "nobody"}}),
    post("a review of jane's token", "/apis/authentication.k8s.io/v1/tokenreviews",
         {"spec": {"token": "token-of-jane"}}),
    post("a review of no token", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}}),
    *[post(f"whether jane may {verb} {resource}", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
           {"spec": {"user": "jane", "resourceAttributes": {"namespace": "same", "verb": verb,
                                                            "resource": resource}}})
      for verb, resource in (("get", "configmaps"), ("get", "secrets"), ("*", "configmaps"))],
    post("whether the administrator may do anything", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
         {"spec": {"user": "joe", "groups": ["system:masters"],
                   "resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}}),
    post("whether jane may read a path", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
         {"spec": {"user": "jane", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}),
    post("a review of nobody's access", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
         {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    post("a review of no access", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
         {"spec": {"user": "jane"}}),
    post("a review of two accesses", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
         {"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"},
                   "nonResourceAttributes": {"path": "/", "verb": "get"}}}),
    post("jane asks what she may do", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
         {"spec": {"resourceAttributes": {"namespace": "same", "verb": "list",
                                          "resource": "configmaps"}}}, user="jane"),
    post("jane asks what she may not do", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
         {"spec": {"resourceAttributes": {"namespace": "same", "verb": "delete",
                                          "resource": "configmaps"}}}, user="jane"),
    post("a local review", "/apis/authorization.k8s.io/v1/namespaces/same/localsubjectaccessreviews",
         {"metadata": {"namespace": "same"},
          "spec": {"user": "jane", "resourceAttributes": {"namespace": "same", "verb": "get",
                                                          "resource": "configmaps"}}}),
    post("a local review of another namespace",
         "/apis/authorization.k8s.io/v1/namespaces/same/localsubjectaccessreviews",
         {"metadata": {"namespace": "same"},
          "spec": {"user": "jane", "resourceAttributes": {"namespace": "default", "verb": "get",
                                                          "resource": "configmaps"}}}),
    post("all rules of jane", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
         {"spec": {"namespace": "same"}}, user="jane",
         pick=lambda b: [r for r in b.get("status", {}).get("resourceRules", [])
                         if r.get("resources") == ["configmaps"]]),
    get("reviews cannot be listed", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
]

OBJECTS = [
    post("create", MAPS, config_map("a"), save={"rv": "metadata.resourceVersion",
                                                  "uid": "metadata.uid"}),
    post("create what exists", MAPS, config_map("a")),
    post("create without kind and version", MAPS, {"metadata": {"name": "bare"}, "data": {"a": "b"}}),
    post("create with a generated name", MAPS,
         {"metadata": {"generateName": "gen-", "labels": {"made-by": "x"}}}),
    post("create without a name", MAPS, {"data": {}}),
    post("create in YAML", MAPS, "metadata: {name: from-yaml}\ndata: {a: 'b'}\n", type=YAML),
    post("create without a Content-Type", MAPS, {"metadata": {"name": "untyped"}}, type=None),
    post("create with a Content-Type with parameters", MAPS, {"metadata": {"name": "charset"}},
         type="application/json; charset=utf-8"),
    post("create, answered in YAML", MAPS, {"metadata": {"name": "to-yaml"}},
         accept=YAML, pick=top_level),
    post("create with system metadata of the client", MAPS,
         thing("v1", "ConfigMap", "system", meta={
             "uid": "11111111-2222-3333-4444-555555555555", "generation": 7, "selfLink": "/x",
             "creationTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3,
             "deletionTimestamp": "2001-01-01T00:00:00Z"})),
    post("create with a resourceVersion", MAPS,
         thing("v1", "ConfigMap", "rv", meta={"resourceVersion": "5"})),
    post("create in a namespace that does not exist", "/api/v1/namespaces/none/configmaps",
         config_map("a")),
    post("create with another namespace", MAPS, config_map("other", namespace="default")),
    post("create with null members", MAPS,
         {"metadata": {"name": "nulls", "labels": None, "creationTimestamp": None}, "data": None}),
    post("create with empty members", MAPS,
         {"metadata": {"name": "empties", "labels": {}, "annotations": {}, "finalizers": []},
          "data": {}, "binaryData": {}}),
    post("create, dry run", f"{MAPS}?dryRun=All", config_map("dry")),
    get("a dry run stores nothing", f"{MAPS}/dry"),
    post("create, dry run of what exists", f"{MAPS}?dryRun=All", config_map("a")),
    post("create, an unknown dry run", f"{MAPS}?dryRun=Some", config_map("dry")),
    post("create, an empty dry run", f"{MAPS}?dryRun=", config_map("dry-empty")),
    post("an unknown field is a warning", MAPS, {**config_map("unknown"), "extra": 1}),
    post("an unknown field, ignored", f"{MAPS}?fieldValidation=Ignore",
         {**config_map("unknown-ignored"), "extra": 1}),
    post("an unknown field, strict", f"{MAPS}?fieldValidation=Strict",
         {**config_map("unknown-strict"), "extra": 1}),
    post("two unknown fields, strict", f"{PODS}?fieldValidation=Strict",
         thing("v1", "Pod", "unknown", spec={"containers": [{"name": "c", "image": "i", "xx": 1}],
                                             "yy": 2})),
    post("two unknown fields are two warnings", f"{PODS}?dryRun=All",
         thing("v1", "Pod", "unknown", spec={**pod_spec(), "yy": 2, "zz": 3})),
    post("a field of another case, strict", f"{PODS}?fieldValidation=Strict&dryRun=All",
         thing("v1", "Pod", "case", spec={**pod_spec(), "hostnetwork": True})),
    post("a duplicate field is a warning", f"{MAPS}?dryRun=All",
         '{"metadata":{"name":"twice"},"data":{"a":"1"},"data":{"a":"2"}}'),
    post("a duplicate field, strict", f"{MAPS}?fieldValidation=Strict",
         '{"metadata":{"name":"twice"},"data":{"a":"1"},"data":{"a":"2"}}'),
    post("an unknown fieldValidation", f"{MAPS}?fieldValidation=Some", config_map("x")),
    get("read", f"{MAPS}/a"),
    get("read, resourceVersion 0", f"{MAPS}/a?resourceVersion=0"),
    get("read, not older", f"{MAPS}/a?resourceVersion=${{rv}}"),
    get("read, a resourceVersion that is no number", f"{MAPS}/a?resourceVersion=x"),
    get("read what does not exist", f"{MAPS}/missing"),
    get("read in a namespace that does not exist", "/api/v1/namespaces/none/configmaps/a"),
    get("read a namespaced object without its namespace", "/api/v1/configmaps/a"),
    get("read a cluster object in a namespace", f"{NS}/nodes/n"),
    get("read an unknown subresource", f"{MAPS}/a/nothing"),
    get("read the status of a kind without one", f"{MAPS}/a/status"),
    head("the head of an object", f"{MAPS}/a"),
    head("the head of a missing object", f"{MAPS}/missing"),
    get("read, indented", f"{MAPS}/a?pretty=true"),
    get("read in YAML", f"{MAPS}/a", accept=YAML,
        pick=top_level),
    get("read in protobuf or JSON", f"{MAPS}/a", accept=f"{PROTOBUF},application/json",
        pick=lambda _: None),
    get("read with a wildcard", f"{MAPS}/a", accept="*/*"),
    get("read any application type", f"{MAPS}/a", accept="application/*"),
    get("read a type that is not served", f"{MAPS}/a", accept="text/html"),
    get("read with qualities", f"{MAPS}/a", accept="application/yaml;q=0.5, application/json;q=0.9"),
    get("read as a Table", f"{MAPS}/a", accept=TABLE),
    get("read as a Table of v1beta1", f"{MAPS}/a", accept=TABLE_BETA),
    get("read as a Table of v9", f"{MAPS}/a",
        accept="application/json;as=Table;v=v9;g=meta.k8s.io"),
    get("read as PartialObjectMetadata", f"{MAPS}/a", accept=METADATA),
    get("read as PartialObjectMetadataList", f"{MAPS}/a", accept=METADATA_LIST),
    get("read as something unknown", f"{MAPS}/a", accept="application/json;as=Foo;v=v1;g=meta.k8s.io"),
    put("replace", f"{MAPS}/a", config_map("a", {"k": "2"})),
    put("replace, nothing changes", f"{MAPS}/a", config_map("a", {"k": "2"})),
    put("replace with an old version", f"{MAPS}/a",
        config_map("a", {"k": "3"}, resourceVersion="${rv}")),
    put("replace with another uid", f"{MAPS}/a",
        config_map("a", {"k": "3"}, uid="11111111-2222-3333-4444-555555555555")),
    put("replace with a version of the future", f"{MAPS}/a",
        config_map("a", {"k": "3"}, resourceVersion="999999999")),
    put("replace with a version that is no number", f"{MAPS}/a",
        config_map("a", {"k": "3"}, resourceVersion="abc")),
    put("replace under another name", f"{MAPS}/a", config_map("b")),
    put("replace in another namespace", f"{MAPS}/a", config_map("a", namespace="default")),
    put("replace without a name", f"{MAPS}/a", {"data": {"k": "4"}}),
    put("replace what does not exist", f"{MAPS}/missing", config_map("missing")),
    put("replace what does not exist, of a kind that updates create", f"{NS}/endpoints/e",
        thing("v1", "Endpoints", "e")),
    put("replace, dry run", f"{MAPS}/a?dryRun=All", config_map("a", {"k": "dry"})),
    put("replace a collection", MAPS, config_map("a")),
    put("replace a Lease without its version", f"{LEASES}/missing",
        thing("coordination.k8s.io/v1", "Lease", "missing")),
    post("post to an object", f"{MAPS}/a", config_map("a")),
    post("post to all namespaces", "/api/v1/configmaps", config_map("a")),
    patch("patch a collection", MAPS, {}),
    Request("an unknown method", "FROB", f"{MAPS}/a"),
    Request("OPTIONS", "OPTIONS", f"{MAPS}/a"),
]

PATCHES = [
    patch("merge patch", f"{MAPS}/a", {"data": {"k": None, "new": "1"}}),
    patch("merge patch, nothing changes", f"{MAPS}/a", {"data": {"new": "1"}}),
    patch("merge patch of what does not exist", f"{MAPS}/missing", {"data": {}}),
    patch("merge patch with an old version", f"{MAPS}/a", {"metadata": {"resourceVersion": "${rv}"},
                                                              "data": {"x": "1"}}),
    patch("merge patch of the name", f"{MAPS}/a", {"metadata": {"name": "b"}}),
    patch("merge patch of the uid", f"{MAPS}/a",
          {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}}),
    patch("merge patch that is no object", f"{MAPS}/a", [1]),
    patch("merge patch that is not JSON", f"{MAPS}/a", "{"),
    patch("merge patch that breaks a rule", f"{MAPS}/a", {"metadata": {"labels": {"a": "-"}}}),
    patch("merge patch of a wrong type", f"{MAPS}/a", {"data": {"n": 1}}),
    patch("merge patch, an unknown field", f"{MAPS}/a", {"extra": 1}),
    patch("merge patch, an unknown field, strict", f"{MAPS}/a?fieldValidation=Strict", {"extra": 1}),
    patch("merge patch, dry run", f"{MAPS}/a?dryRun=All", {"data": {"dry": "1"}}),
    patch("merge patch with force", f"{MAPS}/a?force=true", {}),
    patch("merge patch that is empty", f"{MAPS}/a", {}),
    patch("JSON patch", f"{MAPS}/a", [{"op": "add", "path": "/data/j", "value": "1"},
                                      {"op": "test", "path": "/data/j", "value": "1"},
                                      {"op": "copy", "from": "/data/j", "path": "/data/j2"},
                                      {"op": "move", "from": "/data/j2", "path": "/data/j3"},
                                      {"op": "replace", "path": "/data/j3", "value": "3"}],
          JSON_PATCH),
    patch("JSON patch, a test that fails", f"{MAPS}/a",
          [{"op": "test", "path": "/data/j", "value": "2"}], JSON_PATCH),
    patch("JSON patch, removing nothing", f"{MAPS}/a", [{"op": "remove", "path": "/data/none"}],
          JSON_PATCH),
    patch("JSON patch, replacing nothing", f"{MAPS}/a",
          [{"op": "replace", "path": "/data/none", "value": "1"}], JSON_PATCH),
    patch("JSON patch, an unknown operation", f"{MAPS}/a", [{"op": "frob", "path": "/data"}],
          JSON_PATCH),
    patch("JSON patch, adding below nothing", f"{MAPS}/a",
          [{"op": "add", "path": "/binaryData/x/y", "value": "1"}], JSON_PATCH),
    patch("JSON patch, no list", f"{MAPS}/a", {"op": "add"}, JSON_PATCH),
    patch("JSON patch, empty", f"{MAPS}/a", [], JSON_PATCH),
    patch("JSON patch of a wrong type", f"{MAPS}/a",
          [{"op": "add", "path": "/data", "value": "text"}], JSON_PATCH),
    patch("JSON patch without a path", f"{MAPS}/a", [{"op": "add", "value": "1"}], JSON_PATCH),
    post("a Deployment to patch", DEPLOYMENTS, deployment("d", replicas=2)),
    patch("strategic merge patch of a list by its key", f"{DEPLOYMENTS}/d",
          {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [
              {"name": "A", "value": "1"}]}, {"name": "d", "image": "i"}]}}}}, STRATEGIC),
    patch("strategic merge patch that deletes an item", f"{DEPLOYMENTS}/d",
          {"spec": {"template": {"spec": {"containers": [{"name": "d", "$patch": "delete"}]}}}},
          STRATEGIC),
    patch("strategic merge patch without the key", f"{DEPLOYMENTS}/d",
          {"spec": {"template": {"spec": {"containers": [{"image": "i"}]}}}}, STRATEGIC),
    patch("strategic merge patch that adds a map", f"{DEPLOYMENTS}/d",
          {"metadata": {"labels": {"a": "b"}}}, STRATEGIC),
    patch("strategic merge patch that replaces a map", f"{DEPLOYMENTS}/d",
          {"metadata": {"labels": {"$patch": "replace", "x": "y"}}}, STRATEGIC),
    patch("strategic merge patch, an unknown directive", f"{DEPLOYMENTS}/d",
          {"spec": {"$patch": "frob"}}, STRATEGIC),
    patch("strategic merge patch that orders a list", f"{DEPLOYMENTS}/d",
          {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "e"},
                                                                           {"name": "c"}],
                                          "containers": [{"name": "e", "image": "i"}]}}}},
          STRATEGIC),
    patch("strategic merge patch that is no object", f"{DEPLOYMENTS}/d", [], STRATEGIC),
    patch("strategic merge patch of a wrong type", f"{DEPLOYMENTS}/d",
          {"spec": {"replicas": "three"}}, STRATEGIC),
    patch("a patch of type JSON", f"{MAPS}/a", {}, JSON),
    patch("a patch without a type", f"{MAPS}/a", {}, None),
    patch("apply creates", f"{MAPS}/applied?fieldManager=one",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"},
           "data": {"a": "1", "b": "1"}}, APPLY, managed=True),
    patch("apply again changes nothing", f"{MAPS}/applied?fieldManager=one",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"},
           "data": {"a": "1", "b": "1"}}, APPLY, managed=True),
    patch("apply by another manager", f"{MAPS}/applied?fieldManager=two",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"},
           "data": {"c": "1"}}, APPLY, managed=True),
    patch("apply with a conflict", f"{MAPS}/applied?fieldManager=two",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"},
           "data": {"a": "2", "b": "2"}}, APPLY),
    patch("apply with force", f"{MAPS}/applied?fieldManager=two&force=true",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"},
           "data": {"a": "2", "c": "1"}}, APPLY, managed=True),
    patch("apply without a field removes it", f"{MAPS}/applied?fieldManager=one",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"},
           "data": {}}, APPLY, managed=True),
    patch("a merge patch becomes a manager", f"{MAPS}/applied", {"data": {"d": "1"}}, managed=True),
    patch("apply without a manager", f"{MAPS}/applied",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}, APPLY),
    patch("apply without a kind", f"{MAPS}/applied?fieldManager=one",
          {"metadata": {"name": "applied"}}, APPLY),
    patch("apply of another kind", f"{MAPS}/applied?fieldManager=one",
          {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "applied"}}, APPLY),
    patch("apply under another name", f"{MAPS}/applied?fieldManager=one",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}, APPLY),
    patch("apply with managed fields", f"{MAPS}/applied?fieldManager=one",
          {"apiVersion": "v1", "kind": "ConfigMap",
           "metadata": {"name": "applied", "managedFields": [{"manager": "x"}]}}, APPLY),
    patch("apply with an unknown field", f"{MAPS}/applied?fieldManager=one",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "extra": 1},
          APPLY),
    patch("apply in YAML", f"{MAPS}/applied?fieldManager=one",
          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {y: '1'}\n", APPLY,
          managed=True),
    patch("apply, dry run", f"{MAPS}/applied-dry?fieldManager=one&dryRun=All",
          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied-dry"}}, APPLY),
    patch("apply of a Deployment", f"{DEPLOYMENTS}/applied?fieldManager=one",
          deployment("applied"), APPLY, managed=True),
    patch("apply of a Service with ports", f"{NS}/services/applied?fieldManager=one",
          thing("v1", "Service", "applied", spec={"clusterIP": "None", "ports": [
              {"port": 80, "protocol": "TCP"}, {"port": 81, "name": "b"}]}), APPLY),
]

LISTS = [
    *[prepare(SECRETS, thing("v1", "Secret", f"s{k}",
                             meta={"labels": {"n": str(k), "odd": "yes" if k % 2 else "no"}},
                             type="Opaque" if k < 4 else "example.test/x"))
      for k in range(6)],
    get("list", SECRETS, save={"list_rv": "metadata.resourceVersion"}),
    get("list of nothing", f"{NS}/podtemplates"),
    get("list in a namespace that does not exist", "/api/v1/namespaces/none/secrets"),
    get("list, two at a time", f"{SECRETS}?limit=2", save={"more": "metadata.continue"}),
    get("list, the next two", f"{SECRETS}?limit=2&continue=${{more}}",
        save={"more": "metadata.continue"}),
    get("list, the last two", f"{SECRETS}?limit=2&continue=${{more}}"),
    get("list, the first with a selector", f"{SECRETS}?limit=2&labelSelector=odd%3Dyes"),
    get("list, a continue that is nonsense", f"{SECRETS}?continue=nonsense"),
    get("list, a negative limit", f"{SECRETS}?limit=-1"),
    get("list, a limit that is no number", f"{SECRETS}?limit=x"),
    get("list, continue with a resourceVersion",
        f"{SECRETS}?limit=2&continue=${{more}}&resourceVersion=${{list_rv}}"),
    *[get(f"list, label selector {selector}", f"{SECRETS}?labelSelector={escaped}",
          pick=lambda b: [i["metadata"]["name"] for i in b.get("items", [])] if "items" in b else b)
      for selector, escaped in (
          ("n=1", "n%3D1"), ("n==1", "n%3D%3D1"), ("n!=1", "n!%3D1"), ("n in (1,2)", "n%20in%20(1,2)"),
          ("n notin (1,2)", "n%20notin%20(1,2)"), ("n", "n"), ("!n", "!n"), ("n>3", "n%3E3"),
          ("n<2", "n%3C2"), ("odd=yes,n!=1", "odd%3Dyes,n!%3D1"), ("n=", "n%3D"), ("in ()", "n%20in%20()"),
          ("n>x", "n%3Ex"), ("n in 1", "n%20in%201"), ("=1", "%3D1"), ("n=-", "n%3D-"), ("n,", "n,"),
          ("-n=1", "-n%3D1"))],
    *[get(f"list, field selector {selector}", f"{SECRETS}?fieldSelector={escaped}",
          pick=lambda b: [i["metadata"]["name"] for i in b.get("items", [])] if "items" in b else b)
      for selector, escaped in (
          ("metadata.name=s1", "metadata.name%3Ds1"), ("metadata.name!=s1", "metadata.name!%3Ds1"),
          ("metadata.namespace=same", "metadata.namespace%3Dsame"), ("type=Opaque", "type%3DOpaque"),
          ("type!=Opaque,metadata.name=s4", "type!%3DOpaque,metadata.name%3Ds4"),
          ("metadata.uid=x", "metadata.uid%3Dx"), ("nonsense", "nonsense"), ("data=x", "data%3Dx"))],
    get("list, a field that a custom resource could have", f"{MAPS}?fieldSelector=data.x%3D1"),
    get("list at version 0", f"{SECRETS}?resourceVersion=0"),
    get("list at version 0 with a limit", f"{SECRETS}?resourceVersion=0&limit=2"),
    get("list not older than", f"{SECRETS}?resourceVersion=${{list_rv}}&resourceVersionMatch=NotOlderThan"),
    get("list exactly at", f"{SECRETS}?resourceVersion=${{list_rv}}&resourceVersionMatch=Exact"),
    get("list exactly at 0", f"{SECRETS}?resourceVersion=0&resourceVersionMatch=Exact"),
    get("list, a match without a version", f"{SECRETS}?resourceVersionMatch=Exact"),
    get("list, an unknown match", f"{SECRETS}?resourceVersion=${{list_rv}}&resourceVersionMatch=Some"),
    get("list at a version that is no number", f"{SECRETS}?resourceVersion=x"),
    get("list with sendInitialEvents", f"{SECRETS}?sendInitialEvents=true"),
    get("list as a Table", f"{SECRETS}?limit=2", accept=TABLE),
    get("list as a Table of v1beta1", f"{SECRETS}?limit=1", accept=TABLE_BETA),
    get("list as a Table with objects", f"{SECRETS}?limit=1&includeObject=Object", accept=TABLE),
    get("list as a Table without objects", f"{SECRETS}?limit=1&includeObject=None", accept=TABLE),
    get("list as a Table with an unknown includeObject", f"{SECRETS}?includeObject=Some", accept=TABLE),
    get("list of nothing as a Table", f"{NS}/podtemplates", accept=TABLE),
    get("list as PartialObjectMetadataList", f"{SECRETS}?limit=2", accept=METADATA_LIST),
    get("list as PartialObjectMetadata", SECRETS, accept=METADATA),
    get("list in YAML", f"{SECRETS}?limit=1", accept=YAML,
        pick=top_level),
    get("list in all namespaces", f"/api/v1/secrets?fieldSelector=metadata.namespace%3Dsame&limit=1"),
    get("the old path of a list", "/api/v1/watch/namespaces/same/secrets?timeoutSeconds=1",
        pick=lambda text: len(str(text).splitlines()) if isinstance(text, str) else text),
]

WATCHES = [
    watch("watch from nothing", f"{SECRETS}?watch=1", 6,
          pick=lambda e: sorted((x["type"], x["object"]["metadata"]["name"], x["object"]["kind"])
                                for x in e)),
    watch("watch from version 0 with a selector", f"{SECRETS}?watch=true&resourceVersion=0"
          "&labelSelector=n%3D1", 1),
    patch("a change to watch", f"{SECRETS}/s1", {"metadata": {"labels": {"n": "11"}}}),
    delete("a deletion to watch", f"{SECRETS}/s5"),
    watch("watch from a version", f"{SECRETS}?watch=1&resourceVersion=${{list_rv}}", 2),
    watch("watch from a version, what leaves a selection",
          f"{SECRETS}?watch=1&resourceVersion=${{list_rv}}&labelSelector=n%3D1", 1),
    watch("watch from a version, what enters a selection",
          f"{SECRETS}?watch=1&resourceVersion=${{list_rv}}&labelSelector=n%3D11", 1),
    watch("watch one name", f"{SECRETS}?watch=1&resourceVersion=${{list_rv}}"
          "&fieldSelector=metadata.name%3Ds5", 1),
    watch("watch as a Table", f"{SECRETS}?watch=1&resourceVersion=${{list_rv}}", 2, accept=TABLE),
    watch("watch as PartialObjectMetadata", f"{SECRETS}?watch=1&resourceVersion=${{list_rv}}", 2,
          accept=METADATA),
    watch("watch with the initial events",
          f"{SECRETS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
          "&allowWatchBookmarks=true&labelSelector=n%3D2", 2),
    watch("watch without the initial events",
          f"{SECRETS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
          "&resourceVersion=${list_rv}", 2),
    get("watch, initial events without a match", f"{SECRETS}?watch=1&sendInitialEvents=true"),
    get("watch, initial events with an exact match",
        f"{SECRETS}?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1"),
    get("watch, a match without initial events",
        f"{SECRETS}?watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1"),
    get("watch from a version that is no number", f"{SECRETS}?watch=1&resourceVersion=x"),
    get("watch with a bad selector", f"{SECRETS}?watch=1&labelSelector=a%20in"),
    get("watch that ends", f"{SECRETS}?watch=1&timeoutSeconds=1&resourceVersion=${{list_rv}}"
        "&labelSelector=nothing"),
    get("watch a type that is not served", f"{SECRETS}?watch=1", accept="text/html"),
    get("watch a kind that does not exist", f"{NS}/nothings?watch=1"),
    watch("watch an object by its path", f"{SECRETS}/s2?watch=1", 1,
          pick=lambda e: e if isinstance(e, dict) and e.get("kind") != "Secret" else None),
    get("watch over a WebSocket", f"{SECRETS}?watch=1", headers={
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Origin": "https://localhost",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}),
]

DELETIONS = [
    delete("delete", f"{MAPS}/bare"),
    delete("delete what does not exist", f"{MAPS}/bare"),
    delete("delete, dry run", f"{MAPS}/a?dryRun=All"),
    delete("delete, dry run in the body", f"{MAPS}/a", {"dryRun": ["All"]}),
    delete("delete, an unknown dry run in the body", f"{MAPS}/a", {"dryRun": ["Some"]}),
    delete("delete with another uid", f"{MAPS}/a", {"preconditions": {
        "uid": "11111111-2222-3333-4444-555555555555"}}),
    delete("delete with an old version", f"{MAPS}/a", {"preconditions": {"resourceVersion": "${rv}"}}),
    delete("delete with its uid", f"{MAPS}/nulls",
           {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}),
    delete("delete, an unknown policy", f"{MAPS}/a?propagationPolicy=Some"),
    delete("delete, policy and orphans", f"{MAPS}/a",
           {"propagationPolicy": "Orphan", "orphanDependents": True}),
    delete("delete with a body that is no JSON", f"{MAPS}/a", "{"),
    delete("delete with a body of a wrong type", f"{MAPS}/a", {"gracePeriodSeconds": "x"}),
    delete("delete with a body of another kind", f"{MAPS}/a",
           {"apiVersion": "v1", "kind": "ConfigMap"}),
    delete("delete, a grace period that is no number", f"{MAPS}/a?gracePeriodSeconds=x"),
    post("create with a finalizer", MAPS, config_map("final", finalizers=["same.test/f"])),
    post("create with a bad finalizer", MAPS, config_map("bad-final", finalizers=["nothing"])),
    delete("delete waits for the finalizer", f"{MAPS}/final"),
    delete("delete again", f"{MAPS}/final"),
    patch("no finalizer can be added now", f"{MAPS}/final",
          {"metadata": {"finalizers": ["same.test/f", "same.test/g"]}}),
    patch("deletion times cannot be removed", f"{MAPS}/final",
          {"metadata": {"deletionTimestamp": None}}),
    patch("the last finalizer goes", f"{MAPS}/final", {"metadata": {"finalizers": None}}),
    get("and so does the object", f"{MAPS}/final"),
    delete("delete in the foreground", f"{MAPS}/empties?propagationPolicy=Foreground"),
    delete("delete and orphan", f"{MAPS}/charset?propagationPolicy=Orphan"),
    delete("delete a collection, dry run", f"{SECRETS}?dryRun=All&labelSelector=odd%3Dno"),
    delete("delete a collection by labels", f"{SECRETS}?labelSelector=odd%3Dno"),
    delete("delete a collection by fields", f"{SECRETS}?fieldSelector=metadata.name%3Ds3"),
    delete("delete a collection of nothing", f"{SECRETS}?labelSelector=odd%3Dmaybe"),
    delete("delete a collection with a bad selector", f"{SECRETS}?labelSelector=a%20in"),
    delete("delete a collection of namespaces", "/api/v1/namespaces"),
    delete("a namespace that may not go", "/api/v1/namespaces/default"),
    post("a namespace", "/api/v1/namespaces", thing("v1", "Namespace", "brief")),
    put("finalize what is not to be deleted", "/api/v1/namespaces/brief/finalize",
        thing("v1", "Namespace", "brief", spec={"finalizers": ["kubernetes"]})),
    delete("delete a namespace that does not exist", "/api/v1/namespaces/none"),
]


def kinds(*rows):
    """Creates the least object of each kind, for what defaults and strategies make of it, and reads
    it as a Table."""
    requests = []
    for path, body in rows:
        name = f"{body['kind']} {body['metadata']['name']} of {body['apiVersion']}"
        requests += [post(f"{name}: create", path, body),
                     get(f"{name}: its Table", f"{path}/{body['metadata']['name']}", accept=TABLE)]
    return requests


APPS, BATCH = "/apis/apps/v1/namespaces/same", "/apis/batch/v1/namespaces/same"
SELECTED = {"selector": {"matchLabels": {"app": "x"}}, "template": template()}
WEBHOOK = {"name": "a.same.test", "clientConfig": {"url": "https://127.0.0.1:1/x"},
           "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"}

KINDS = kinds(
    (f"{NS}/secrets", thing("v1", "Secret", "k", stringData={"a": "b"})),
    (f"{NS}/services", thing("v1", "Service", "headless",
                             spec={"clusterIP": "None", "selector": {"a": "b"}})),
    (f"{NS}/services", thing("v1", "Service", "k", spec={"ports": [{"port": 80}]})),
    (f"{NS}/services", thing("v1", "Service", "external",
                             spec={"type": "ExternalName", "externalName": "example.test"})),
    (f"{NS}/serviceaccounts", thing("v1", "ServiceAccount", "k")),
    (f"{NS}/endpoints", thing("v1", "Endpoints", "k", subsets=[
        {"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}])),
    (f"{NS}/persistentvolumeclaims", thing("v1", "PersistentVolumeClaim", "k", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none"})),
    ("/api/v1/persistentvolumes", thing("v1", "PersistentVolume", "same", spec={
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/x"}})),
    (f"{NS}/replicationcontrollers", thing("v1", "ReplicationController", "k",
                                           spec={"selector": {"app": "x"}, "template": template()})),
    (f"{NS}/podtemplates", thing("v1", "PodTemplate", "k", template=template())),
    (f"{NS}/limitranges", thing("v1", "LimitRange", "k", spec={"limits": [
        {"type": "PersistentVolumeClaim", "max": {"storage": "9Gi"}}]})),
    (f"{NS}/resourcequotas", thing("v1", "ResourceQuota", "k",
                                   spec={"hard": {"count/roles.rbac.authorization.k8s.io": "9"}})),
    (f"{NS}/events", thing("v1", "Event", "k", involvedObject={
        "kind": "Pod", "namespace": "same", "name": "p"}, reason="R", message="m", type="Normal")),
    ("/api/v1/nodes", thing("v1", "Node", "same-node", status={"capacity": {"cpu": "4"}})),
    ("/api/v1/namespaces", thing("v1", "Namespace", "same-other")),
    (f"{APPS}/deployments", thing("apps/v1", "Deployment", "k", spec=SELECTED)),
    (f"{APPS}/replicasets", thing("apps/v1", "ReplicaSet", "k", spec=SELECTED)),
    (f"{APPS}/statefulsets", thing("apps/v1", "StatefulSet", "k",
                                   spec={**SELECTED, "serviceName": "headless"})),
    (f"{APPS}/daemonsets", thing("apps/v1", "DaemonSet", "k", spec=SELECTED)),
    (f"{APPS}/controllerrevisions", thing("apps/v1", "ControllerRevision", "k", revision=1,
                                          data={"a": 1})),
    (f"{BATCH}/jobs", thing("batch/v1", "Job", "k", spec={
        "template": {"spec": template(restartPolicy="Never")["spec"]}})),
    (f"{BATCH}/cronjobs", thing("batch/v1", "CronJob", "k", spec={
        "schedule": "@daily", "jobTemplate": {"spec": {"template": template(
            restartPolicy="Never")}}})),
    ("/apis/autoscaling/v2/namespaces/same/horizontalpodautoscalers",
     thing("autoscaling/v2", "HorizontalPodAutoscaler", "k", spec={
         "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "k"},
         "maxReplicas": 3})),
    ("/apis/policy/v1/namespaces/same/poddisruptionbudgets",
     thing("policy/v1", "PodDisruptionBudget", "k",
           spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}})),
    (LEASES, thing("coordination.k8s.io/v1", "Lease", "k", spec={"holderIdentity": "x"})),
    (f"{RBAC}/namespaces/same/roles", thing("rbac.authorization.k8s.io/v1", "Role", "k", rules=[])),
    (f"{RBAC}/clusterroles", thing("rbac.authorization.k8s.io/v1", "ClusterRole", "same", rules=[
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])),
    (f"{RBAC}/clusterrolebindings", thing("rbac.authorization.k8s.io/v1", "ClusterRoleBinding",
                                          "same", roleRef={
        "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "same"},
        subjects=[{"kind": "ServiceAccount", "name": "x", "namespace": "same"}])),
    ("/apis/scheduling.k8s.io/v1/priorityclasses",
     thing("scheduling.k8s.io/v1", "PriorityClass", "same", value=5)),
    ("/apis/storage.k8s.io/v1/storageclasses",
     thing("storage.k8s.io/v1", "StorageClass", "same", provisioner="same.test/p")),
    ("/apis/storage.k8s.io/v1/csidrivers", thing("storage.k8s.io/v1", "CSIDriver", "same.test",
                                                 spec={})),
    ("/apis/storage.k8s.io/v1/csinodes", thing("storage.k8s.io/v1", "CSINode", "same",
                                               spec={"drivers": []})),
    ("/apis/storage.k8s.io/v1/volumeattachments",
     thing("storage.k8s.io/v1", "VolumeAttachment", "same", spec={
         "attacher": "same.test", "nodeName": "n", "source": {"persistentVolumeName": "same"}})),
    ("/apis/networking.k8s.io/v1/namespaces/same/ingresses",
     thing("networking.k8s.io/v1", "Ingress", "k", spec={"defaultBackend": {
         "service": {"name": "k", "port": {"number": 80}}}})),
    ("/apis/networking.k8s.io/v1/ingressclasses",
     thing("networking.k8s.io/v1", "IngressClass", "same", spec={"controller": "same.test/c"})),
    ("/apis/networking.k8s.io/v1/namespaces/same/networkpolicies",
     thing("networking.k8s.io/v1", "NetworkPolicy", "k", spec={"podSelector": {}})),
    ("/apis/node.k8s.io/v1/runtimeclasses",
     thing("node.k8s.io/v1", "RuntimeClass", "same", handler="h")),
    ("/apis/discovery.k8s.io/v1/namespaces/same/endpointslices",
     thing("discovery.k8s.io/v1", "EndpointSlice", "k", addressType="IPv4",
           endpoints=[{"addresses": ["10.1.1.1"]}], ports=[{"port": 80}])),
    ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
     thing("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "same",
           webhooks=[WEBHOOK])),
    ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
     thing("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "same",
           webhooks=[WEBHOOK])),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
     thing("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "same", spec={
         "type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}})),
    ("/apis/events.k8s.io/v1/namespaces/same/events",
     thing("events.k8s.io/v1", "Event", "new", regarding={
         "kind": "Pod", "namespace": "same", "name": "p"}, reason="R", note="m", type="Normal",
         action="A", reportingController="same.test/c", reportingInstance="i",
         eventTime="2026-01-02T03:04:05.000000Z")),
) + [
    get("an event of the old kind by the new one", "/apis/events.k8s.io/v1/namespaces/same/events/k"),
    get("an event of the new kind by the old one", f"{NS}/events/new"),
    get("an autoscaler of v2 as v1",
        "/apis/autoscaling/v1/namespaces/same/horizontalpodautoscalers/k"),
    delete("delete a Service", f"{NS}/services/external"),
    delete("delete a service account", f"{NS}/serviceaccounts/k"),
    delete("delete a Deployment", f"{APPS}/deployments/k"),
    delete("delete a Job, by default", f"{BATCH}/jobs/k"),
    delete("delete a claim", f"{NS}/persistentvolumeclaims/k"),
    delete("delete a Lease", f"{LEASES}/k"),
    delete("delete a storage class", "/apis/storage.k8s.io/v1/storageclasses/same"),
    delete("delete a cluster role", f"{RBAC}/clusterroles/same"),
]

FIXED = [
    prepare(f"{BATCH}/jobs", thing("batch/v1", "Job", "fixed", spec={
        "template": {"spec": template(restartPolicy="Never")["spec"]}})),
    prepare("/apis/storage.k8s.io/v1/storageclasses",
            thing("storage.k8s.io/v1", "StorageClass", "fixed", provisioner="same.test/p")),
    prepare(f"{NS}/persistentvolumeclaims", thing("v1", "PersistentVolumeClaim", "fixed", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none"})),
    prepare(LEASES, thing("coordination.k8s.io/v1", "Lease", "fixed", spec={"holderIdentity": "x"})),
]

POD_LIFE = [
    post("pod: create", PODS, pod("p")),
    post("pod: create with requests and probes", PODS, pod("full", restartPolicy="OnFailure", containers=[
        {"name": "c", "image": "busybox:1.2", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
         "ports": [{"containerPort": 80}], "env": [{"name": "N", "valueFrom": {
             "fieldRef": {"fieldPath": "metadata.name"}}}],
         "livenessProbe": {"httpGet": {"port": 80}},
         "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        volumes=[{"name": "v", "emptyDir": {}}], tolerations=[{"operator": "Exists"}])),
    post("pod: create with a token", PODS, thing("v1", "Pod", "token", spec={
        "containers": [{"name": "c", "image": "i"}]})),
    post("pod: of an account that does not exist", PODS, pod("noone", serviceAccountName="nobody")),
    post("pod: of a priority class that does not exist", PODS, pod("prio", priorityClassName="none")),
    post("pod: of a priority class", PODS, pod("prio", priorityClassName="same")),
    get("pod: its Table", f"{PODS}/p", accept=TABLE),
    get("pod: its status", f"{PODS}/p/status"),
    get("pod: list by phase", f"{PODS}?fieldSelector=status.phase%3DPending&limit=1"),
    get("pod: list by node", f"{PODS}?fieldSelector=spec.nodeName%3Dsame-node"),
    patch("pod: a patch of its status", f"{PODS}/p/status",
          {"status": {"message": "m", "conditions": [{"type": "X", "status": "True"}]}}, STRATEGIC),
    patch("pod: a patch of its status leaves the spec", f"{PODS}/p/status",
          {"spec": {"nodeName": "x"}, "status": {"reason": "r"}}),
    patch("pod: a patch leaves the status", f"{PODS}/p",
          {"metadata": {"labels": {"l": "1"}}, "status": {"message": "other"}}),
    patch("pod: a spec cannot change", f"{PODS}/p", {"spec": {"hostname": "h"}},
          pick=lambda b: {**b, "message": b.get("message", "")[:150],
                          "details": {**b.get("details", {}), "causes": [
                              {**c, "message": c.get("message", "")[:80]}
                              for c in b.get("details", {}).get("causes", [])]}}),
    patch("pod: an image can change", f"{PODS}/p",
          {"spec": {"containers": [{"name": "c", "image": "other"}]}}, STRATEGIC),
    patch("pod: ephemeral containers", f"{PODS}/p/ephemeralcontainers",
          {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, STRATEGIC),
    post("pod: bind", f"{PODS}/p/binding", thing("v1", "Binding", "p",
                                                 target={"kind": "Node", "name": "same-node"})),
    get("pod: bound", f"{PODS}/p"),
    post("pod: bind again", f"{PODS}/p/binding", thing("v1", "Binding", "p",
                                                       target={"kind": "Node", "name": "other"})),
    post("pod: bind what does not exist", f"{PODS}/none/binding", thing(
        "v1", "Binding", "none", target={"kind": "Node", "name": "same-node"})),
    post("pod: bind to nothing", f"{PODS}/full/binding", thing("v1", "Binding", "full", target={})),
    post("pod: bind to something else", f"{PODS}/full/binding",
         thing("v1", "Binding", "full", target={"kind": "Table", "name": "x"})),
    get("pod: a binding cannot be read", f"{PODS}/p/binding"),
    get("pod: the log of a missing pod", f"{PODS}/none/log"),
    get("pod: the log of a pod without a node", f"{PODS}/full/log"),
    get("pod: the log of a container that does not exist", f"{PODS}/p/log?container=x"),
    get("pod: the log with bad options", f"{PODS}/p/log?tailLines=-1"),
    get("pod: exec of a missing pod", f"{PODS}/none/exec?command=x"),
    get("pod: exec without a node", f"{PODS}/full/exec?command=x&stdout=1"),
    post("pod: exec without a command", f"{PODS}/p/exec"),
    post("pod: exec of a container that does not exist", f"{PODS}/p/exec?command=x&container=x&stdout=1"),
    get("pod: attach of a missing pod", f"{PODS}/none/attach"),
    get("pod: port-forward of a missing pod", f"{PODS}/none/portforward"),
    get("pod: proxy of a missing pod", f"{PODS}/none/proxy/"),
    post("pod: evict what does not exist", f"{PODS}/none/eviction", thing("policy/v1", "Eviction", "none")),
    post("pod: evict, another name", f"{PODS}/full/eviction", thing("policy/v1", "Eviction", "p")),
    post("pod: evict, dry run", f"{PODS}/full/eviction?dryRun=All", thing("policy/v1", "Eviction", "full")),
    post("pod: evict", f"{PODS}/full/eviction", thing("policy/v1", "Eviction", "full")),
    get("pod: evicted", f"{PODS}/full"),
    delete("pod: delete a bound one", f"{PODS}/p"),
    get("pod: deleting", f"{PODS}/p", accept=TABLE),
    post("pod: bind one that is deleted", f"{PODS}/p/binding", thing(
        "v1", "Binding", "p", target={"kind": "Node", "name": "same-node"})),
    delete("pod: delete again, sooner", f"{PODS}/p?gracePeriodSeconds=1"),
    delete("pod: delete at once", f"{PODS}/p?gracePeriodSeconds=0"),
    delete("pod: delete one without a node", f"{PODS}/prio"),
    post("pod: with a scheduling gate", PODS, pod("gated", schedulingGates=[{"name": "a.test/g"}])),
    post("pod: bind one with a gate", f"{PODS}/gated/binding", thing(
        "v1", "Binding", "gated", target={"kind": "Node", "name": "same-node"})),
    delete("pod: delete with a negative grace period", f"{PODS}/gated?gracePeriodSeconds=-5"),
]

SUBRESOURCES = [
    get("scale: read", f"{DEPLOYMENTS}/d/scale"),
    patch("scale: merge patch", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}}),
    put("scale: replace", f"{DEPLOYMENTS}/d/scale", thing("autoscaling/v1", "Scale", "d",
                                                          spec={"replicas": 6}, meta={"namespace": "same"})),
    put("scale: a negative number", f"{DEPLOYMENTS}/d/scale",
        thing("autoscaling/v1", "Scale", "d", spec={"replicas": -1}, meta={"namespace": "same"})),
    put("scale: another kind", f"{DEPLOYMENTS}/d/scale", deployment("d")),
    put("scale: an old version", f"{DEPLOYMENTS}/d/scale",
        thing("autoscaling/v1", "Scale", "d", spec={"replicas": 1},
              meta={"namespace": "same", "resourceVersion": "1"})),
    get("scale: of what does not exist", f"{DEPLOYMENTS}/none/scale"),
    get("scale: of a kind without one", f"{MAPS}/a/scale"),
    post("scale: takes no POST", f"{DEPLOYMENTS}/d/scale", {}),
    get("scale: of a ReplicaSet", f"{APPS}/replicasets/k/scale"),
    get("scale: of a StatefulSet", f"{APPS}/statefulsets/k/scale"),
    get("scale: of a ReplicationController", f"{NS}/replicationcontrollers/k/scale"),
    put("status: replace", f"{DEPLOYMENTS}/d/status",
        deployment("d", replicas=99) | {"status": {"replicas": 3, "readyReplicas": 2}}),
    put("status: nothing changes", f"{DEPLOYMENTS}/d/status",
        deployment("d", replicas=99) | {"status": {"replicas": 3, "readyReplicas": 2}}),
    put("status: a bad value", f"{DEPLOYMENTS}/d/status",
        deployment("d") | {"status": {"replicas": 3, "readyReplicas": -3, "unavailableReplicas": -1}}),
    get("status: of what does not exist", f"{DEPLOYMENTS}/none/status"),
    delete("status: cannot be deleted", f"{DEPLOYMENTS}/d/status"),
    put("status: of a node", "/api/v1/nodes/same-node/status",
        thing("v1", "Node", "same-node", status={"capacity": {"cpu": "8"}})),
    patch("status: of a namespace", f"{NS}/status", {"status": {"conditions": []}}),
    patch("status: of a volume", "/api/v1/persistentvolumes/same/status",
          {"status": {"phase": "Released"}}),
    post("token: create", f"{NS}/serviceaccounts/default/token",
         {"spec": {"audiences": ["a"], "expirationSeconds": 3600}}),
    post("token: for too short a time", f"{NS}/serviceaccounts/default/token",
         {"spec": {"expirationSeconds": 10}}),
    post("token: of an account that does not exist", f"{NS}/serviceaccounts/none/token", {"spec": {}}),
    post("token: for a pod that does not exist", f"{NS}/serviceaccounts/default/token",
         {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}}),
    get("token: cannot be read", f"{NS}/serviceaccounts/default/token"),
    put("approval: of what does not exist",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/none/approval",
        thing("certificates.k8s.io/v1", "CertificateSigningRequest", "none", spec={
            "request": "eA==", "signerName": "same.test/s", "usages": ["client auth"]})),
    patch("an object of a kind without status", f"{MAPS}/a/status", {}),
    delete("delete a subresource", f"{PODS}/token/binding"),
]

def change(title, path, body, **more):
    return patch(f"change: {title}", path, body, **more)


CHANGES = [
    change("the cluster IP of a Service", f"{NS}/services/headless", {"spec": {"clusterIP": "10.0.0.9"}}),
    change("the type of a Service", f"{NS}/services/k", {"spec": {"ports": [{"port": 81}]}}),
    change("the size of a volume", "/api/v1/persistentvolumes/same",
           {"spec": {"capacity": {"storage": "2Gi"}}}),
    change("the source of a volume", "/api/v1/persistentvolumes/same",
           {"spec": {"hostPath": {"path": "/y"}}}),
    change("the template of a Job", f"{BATCH}/jobs/fixed",
           {"spec": {"template": {"spec": {"hostNetwork": True}}}}),
    change("the parallelism of a Job", f"{BATCH}/jobs/fixed", {"spec": {"parallelism": 3}}),
    change("the completions of a Job", f"{BATCH}/jobs/fixed", {"spec": {"completions": 3}}),
    change("the selector of a Job", f"{BATCH}/jobs/fixed",
           {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
    change("the service name of a StatefulSet", f"{APPS}/statefulsets/k",
           {"spec": {"serviceName": "other"}}),
    change("the replicas of a StatefulSet", f"{APPS}/statefulsets/k", {"spec": {"replicas": 4}}),
    change("the selector of a ReplicaSet", f"{APPS}/replicasets/k",
           {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    change("the selector of a DaemonSet", f"{APPS}/daemonsets/k",
           {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    change("the template of a DaemonSet", f"{APPS}/daemonsets/k",
           {"spec": {"template": {"spec": {"hostNetwork": True}}}}),
    change("a field of a Deployment that does not exist", f"{DEPLOYMENTS}/d", {"spec": {"nothing": 1}}),
    change("the replicas of a Deployment to null", f"{DEPLOYMENTS}/d", {"spec": {"replicas": None}}),
    change("the labels of a Deployment alone", f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"n": "1"}}}),
    change("the pause of a Deployment", f"{DEPLOYMENTS}/d", {"spec": {"paused": True}}),
    change("the role of a binding", f"{RBAC}/namespaces/same/rolebindings/reader",
           {"roleRef": {"name": "k"}}),
    change("the provisioner of a storage class", "/apis/storage.k8s.io/v1/storageclasses/fixed",
           {"provisioner": "other"}),
    change("the parameters of a storage class", "/apis/storage.k8s.io/v1/storageclasses/fixed",
           {"parameters": {"a": "b"}}),
    change("a claim's storage class", f"{NS}/persistentvolumeclaims/fixed",
           {"spec": {"storageClassName": "other"}}),
    change("the taints of a node", "/api/v1/nodes/same-node",
           {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True}}),
    change("the pod CIDR of a node", "/api/v1/nodes/same-node", {"spec": {"podCIDR": "10.9.0.0/24"}}),
    change("the address type of a slice",
           "/apis/discovery.k8s.io/v1/namespaces/same/endpointslices/k", {"addressType": "IPv6"}),
    change("the handler of a runtime class", "/apis/node.k8s.io/v1/runtimeclasses/same",
           {"handler": "other"}),
    change("the controller of an ingress class", "/apis/networking.k8s.io/v1/ingressclasses/same",
           {"spec": {"controller": "same.test/other"}}),
    change("the selector of a budget", "/apis/policy/v1/namespaces/same/poddisruptionbudgets/k",
           {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    change("the data of a revision", f"{APPS}/controllerrevisions/k", {"data": {"a": 2}}),
    change("the number of a revision", f"{APPS}/controllerrevisions/k", {"revision": 2}),
    change("the volume attacher", "/apis/storage.k8s.io/v1/volumeattachments/same",
           {"spec": {"attacher": "other.test"}}),
    change("the creation time", f"{MAPS}/a", {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}),
    change("the generation", f"{DEPLOYMENTS}/d", {"metadata": {"generation": 99}}),
    change("the deletion time", f"{MAPS}/a", {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}),
    change("the namespace", f"{MAPS}/a", {"metadata": {"namespace": "default"}}),
    change("the kind", f"{MAPS}/a", {"kind": "Secret"}),
    change("the version", f"{MAPS}/a", {"apiVersion": "v2"}),
    change("the owners", f"{MAPS}/a", {"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}),
    change("the finalizers of a namespace", NS, {"spec": {"finalizers": []}}),
    change("the labels of a namespace", NS, {"metadata": {"labels": {
        "kubernetes.io/metadata.name": "other", "a": "b"}}}),
    change("a data key to null", f"{SECRETS}/k", {"data": {"a": None}}),
    change("data by stringData", f"{SECRETS}/k", {"stringData": {"z": "1"}}),
    change("an event", f"{NS}/events/k", {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z"}),
    change("a Lease", f"{LEASES}/fixed", {"spec": {"holderIdentity": "y",
                                                   "renewTime": "2026-01-02T03:04:05.000000Z"}}),
    change("a priority class's default", "/apis/scheduling.k8s.io/v1/priorityclasses/same",
           {"globalDefault": False, "description": "d"}),
    change("a network policy", "/apis/networking.k8s.io/v1/namespaces/same/networkpolicies/k",
           {"spec": {"egress": [{}]}}),
    change("a webhook configuration",
           "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/same",
           {"webhooks": [{**WEBHOOK, "timeoutSeconds": 90}]}),
    change("the schedule of a CronJob", f"{BATCH}/cronjobs/k", {"spec": {"schedule": "bad"}}),
    change("a quota", f"{NS}/resourcequotas/k", {"spec": {"hard": {"pods": "5"}}}),
]

LIMITS = [
    prepare("/api/v1/namespaces", thing("v1", "Namespace", "narrow")),
    prepare("/api/v1/namespaces/narrow/serviceaccounts", thing("v1", "ServiceAccount", "default")),
    post("limits: a range", "/api/v1/namespaces/narrow/limitranges", thing("v1", "LimitRange", "l", spec={
        "limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]})),
    post("limits: a pod gets the default", "/api/v1/namespaces/narrow/pods", pod("filled")),
    post("limits: a pod beyond the most", "/api/v1/namespaces/narrow/pods", pod("beyond", containers=[
        {"name": "c", "image": "i", "resources": {"limits": {"cpu": "3"}}}])),
    post("limits: a pod of a class that is for the system", "/api/v1/namespaces/narrow/pods",
         pod("x", priority=7)),
    patch("limits: a pod cannot grow", "/api/v1/namespaces/narrow/pods/filled",
          {"spec": {"containers": [{"name": "d", "image": "i"}]}}, STRATEGIC,
          pick=lambda b: {k: b.get(k) for k in ("code", "reason")}),
    patch("limits: tolerations can be added", "/api/v1/namespaces/narrow/pods/filled",
          [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}], JSON_PATCH),
    patch("limits: a deadline can be set", "/api/v1/namespaces/narrow/pods/filled",
          {"spec": {"activeDeadlineSeconds": 9}}),
    delete("limits: delete the namespace", "/api/v1/namespaces/narrow", pick=members("kind")),
]

ERRORS = [
    post("a body that is no JSON", MAPS, "{"),
    post("a body that is text", MAPS, "hello"),
    post("a body that is empty", MAPS, ""),
    post("a body that is a list", MAPS, "[]"),
    post("a body that is null", MAPS, "null"),
    post("two bodies", MAPS, '{"metadata":{"name":"one"}}{"metadata":{"name":"two"}}'),
    post("a body that is no UTF-8", MAPS, b'{"metadata":{"name":"\xff\xfe"}}'),
    post("a body in an unknown type", MAPS, "x", type="text/plain"),
    post("a body in protobuf that is none", MAPS, b"nothing", type=PROTOBUF),
    post("a body with metadata of a wrong type", MAPS, {"metadata": []}),
    post("a body with a name of a wrong type", MAPS, {"metadata": {"name": 1}}),
    post("a body with labels of a wrong type", MAPS, {"metadata": {"name": "x", "labels": {"a": 1}}}),
    post("a body with data of a wrong type", MAPS, {"metadata": {"name": "x"}, "data": {"a": 1}}),
    post("a body with a kind of a wrong type", MAPS, {"kind": 1}),
    post("a body with a number of a wrong type", DEPLOYMENTS, deployment("x", replicas="3")),
    post("a body with a number that is too large", DEPLOYMENTS, deployment("x", replicas=2**40)),
    post("a body with a broken number", DEPLOYMENTS, deployment("x", replicas=1.5)),
    post("a body of another kind", MAPS, thing("v1", "Secret", "x")),
    post("a body of another version", MAPS, thing("v2", "ConfigMap", "x")),
    post("a body of another group", MAPS, thing("apps/v1", "ConfigMap", "x")),
    post("a body of an unknown kind", MAPS, thing("v1", "Nothing", "x")),
    post("a body that is too large", MAPS, config_map("large", {"k": "x" * (4 << 20)})),
    post("a config map that is too large", MAPS, config_map("large", {"k": "x" * (2 << 20)})),
    post("a quantity that is none", PODS, pod("x", containers=[
        {"name": "c", "image": "i", "resources": {"limits": {"cpu": "much"}}}])),
    post("a time that is none", LEASES, thing("coordination.k8s.io/v1", "Lease", "x",
                                               spec={"renewTime": "now"})),
    *[post(f"the name {name!r}", MAPS, thing("v1", "ConfigMap", name))
      for name in ("Upper", "under_score", "-", "a..b", "x" * 254, "a/b", "a%b")],
    post("a name of a namespace with a dot", "/api/v1/namespaces", thing("v1", "Namespace", "a.b")),
    post("a name of a Service that begins with a digit", f"{NS}/services",
         thing("v1", "Service", "1a", spec={"ports": [{"port": 80}]})),
    post("a name of a role with a slash", f"{RBAC}/clusterroles",
         thing("rbac.authorization.k8s.io/v1", "ClusterRole", "a/b")),
    *[post(f"labels {labels}", MAPS, thing("v1", "ConfigMap", "x", meta={"labels": labels}))
      for labels in ({"a b": "c"}, {"a": "b c"}, {"/a": "b"}, {"a/": "b"}, {"A.b/c": "d"},
                     {"a": "x" * 64}, {"": "x"})],
    post("annotations with a bad key", MAPS, thing("v1", "ConfigMap", "x",
                                                   meta={"annotations": {"a b": "c"}})),
    post("annotations that are too large", MAPS, thing("v1", "ConfigMap", "x", meta={
        "annotations": {"a": "x" * (300 << 10)}})),
    post("owners without a uid", MAPS, thing("v1", "ConfigMap", "x", meta={"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p"}]})),
    post("two controllers", MAPS, thing("v1", "ConfigMap", "x", meta={"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True}
        for n in ("a", "b")]})),
    post("a bad generated name", MAPS, {"metadata": {"generateName": "Bad_"}}),
    post("data with a bad key", MAPS, config_map("x", {"a b": "c"})),
    post("data and binary data with one key", MAPS, {**config_map("x", {"k": "v"}),
                                                     "binaryData": {"k": "dg=="}}),
    post("binary data that is none", MAPS, {**config_map("x"), "binaryData": {"b": "%%"}}),
    post("a pod without containers", PODS, thing("v1", "Pod", "x", spec={"containers": []})),
    post("a pod without a spec", PODS, thing("v1", "Pod", "x")),
    post("a pod with many mistakes", PODS, thing("v1", "Pod", "x", spec={
        "restartPolicy": "Sometimes", "dnsPolicy": "None", "hostname": "A_b",
        "containers": [{"name": "A", "image": ""}, {"name": "c", "image": "i", "ports": [
            {"containerPort": 0}, {"containerPort": 80, "protocol": "X"}]},
            {"name": "c", "image": "i", "imagePullPolicy": "Maybe"}],
        "volumes": [{"name": "v"}, {"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]})),
    post("a pod with mounts of nothing", PODS, pod("x", containers=[
        {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": ""}]}])),
    post("a pod with requests beyond its limits", PODS, pod("x", containers=[
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2", "a": "1", "x.test/g": "1"},
                                                  "limits": {"cpu": "1"}}}])),
    post("a pod with bad probes", PODS, pod("x", containers=[
        {"name": "c", "image": "i", "livenessProbe": {"periodSeconds": -1},
         "readinessProbe": {"exec": {}, "tcpSocket": {"port": 0}}}])),
    post("a pod with bad tolerations and affinity", PODS, pod(
        "x", tolerations=[{"key": "a", "operator": "Some"}, {"effect": "X", "operator": "Exists"}],
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}}},
        topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"}])),
    post("a pod with a negative deadline", PODS, pod("x", activeDeadlineSeconds=0,
                                                     terminationGracePeriodSeconds=-1)),
    post("a Deployment without a selector", DEPLOYMENTS, without(deployment("x"), "spec", "selector")),
    post("a Deployment whose selector fits nothing", DEPLOYMENTS,
         deployment("x", selector={"matchLabels": {"app": "y"}})),
    post("a Deployment with a bad strategy", DEPLOYMENTS, deployment("x", replicas=-1, strategy={
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}})),
    post("a Deployment with a restart policy", DEPLOYMENTS,
         deployment("x", template=template(restartPolicy="Never"))),
    patch("a selector cannot change", f"{DEPLOYMENTS}/d",
          {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    post("a Job without a restart policy", f"{BATCH}/jobs",
         thing("batch/v1", "Job", "x", spec={"template": template()})),
    post("a Job with bad numbers", f"{BATCH}/jobs", thing("batch/v1", "Job", "x", spec={
        "parallelism": -1, "completions": -1, "backoffLimit": -1, "activeDeadlineSeconds": -1,
        "template": template(restartPolicy="Never")})),
    post("a CronJob with a bad schedule", f"{BATCH}/cronjobs", thing("batch/v1", "CronJob", "x", spec={
        "schedule": "often", "concurrencyPolicy": "Some", "timeZone": "Nowhere/None",
        "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}}})),
    post("a StatefulSet with a bad policy", f"{APPS}/statefulsets", thing(
        "apps/v1", "StatefulSet", "x", spec={**SELECTED, "podManagementPolicy": "Some"})),
    post("a Service without ports", f"{NS}/services", thing("v1", "Service", "x", spec={})),
    post("a Service with bad ports", f"{NS}/services", thing("v1", "Service", "x", spec={
        "type": "Some", "ports": [{"port": 0}, {"port": 80, "name": "a"}, {"port": 80, "name": "a"}]})),
    post("a Secret of a type without its data", SECRETS,
         thing("v1", "Secret", "x", type="kubernetes.io/tls")),
    post("an immutable Secret", SECRETS, thing("v1", "Secret", "fixed", immutable=True)),
    patch("an immutable Secret cannot change", f"{SECRETS}/fixed", {"data": {"a": "Yg=="}}),
    patch("the type of a Secret cannot change", f"{SECRETS}/s1", {"type": "other"}),
    post("a role binding to nothing", f"{RBAC}/namespaces/same/rolebindings",
         thing("rbac.authorization.k8s.io/v1", "RoleBinding", "x",
               roleRef={"apiGroup": "x", "kind": "Y", "name": ""}, subjects=[{"kind": "User"}])),
    post("a role without verbs", f"{RBAC}/namespaces/same/roles",
         thing("rbac.authorization.k8s.io/v1", "Role", "x", rules=[{"resources": ["pods"]}])),
    post("a priority class that is too high", "/apis/scheduling.k8s.io/v1/priorityclasses",
         thing("scheduling.k8s.io/v1", "PriorityClass", "x", value=2000000000)),
    patch("the value of a priority class cannot change",
          "/apis/scheduling.k8s.io/v1/priorityclasses/same", {"value": 6}),
    post("a budget with both numbers", "/apis/policy/v1/namespaces/same/poddisruptionbudgets",
         thing("policy/v1", "PodDisruptionBudget", "x",
               spec={"minAvailable": 1, "maxUnavailable": "150%"})),
    post("a quota with a bad resource", f"{NS}/resourcequotas",
         thing("v1", "ResourceQuota", "x", spec={"hard": {"nothing": "1", "pods": "-1"}})),
    post("a limit range with contradictions", f"{NS}/limitranges", thing(
        "v1", "LimitRange", "x", spec={"limits": [{"type": "Container", "min": {"cpu": "2"},
                                                   "max": {"cpu": "1"}}]})),
    post("a claim without a mode", f"{NS}/persistentvolumeclaims",
         thing("v1", "PersistentVolumeClaim", "x", spec={})),
    post("a node with a bad taint", "/api/v1/nodes",
         thing("v1", "Node", "x", spec={"taints": [{"key": "a", "effect": "Some"}]})),
    post("a Lease with bad numbers", LEASES, thing("coordination.k8s.io/v1", "Lease", "x", spec={
        "leaseDurationSeconds": 0, "leaseTransitions": -1})),
    post("a webhook without what it needs",
         "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
         thing("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "x",
               webhooks=[{"name": "a", "clientConfig": {}}])),
    post("a storage class without a provisioner", "/apis/storage.k8s.io/v1/storageclasses",
         thing("storage.k8s.io/v1", "StorageClass", "x")),
    post("an autoscaler without a target", "/apis/autoscaling/v2/namespaces/same/horizontalpodautoscalers",
         thing("autoscaling/v2", "HorizontalPodAutoscaler", "x", spec={"maxReplicas": 0})),
    get("a path with a doubled slash", "/api/v1//namespaces"),
    get("a path with dots", "/api/v1/../v1/namespaces/same"),
    get("a name with an escaped slash", f"{MAPS}/a%2Fb"),
    get("a parameter that is broken", f"{MAPS}/a?pretty=%zz"),
]


def crd(name, schema, versions=None, scope="Namespaced", **version):
    plural, group = name.split(".", 1)
    kind = plural[:-1].capitalize()
    return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, spec={
        "group": group, "scope": scope, "names": {"plural": plural, "kind": kind,
                                                  "singular": plural[:-1], "listKind": f"{kind}List",
                                                  "shortNames": ["th"], "categories": ["all"]},
        "versions": versions or [{"name": "v1", "served": True, "storage": True,
                                  "schema": {"openAPIV3Schema": schema}, **version}]})


SCHEMA = {"type": "object", "properties": {
    "spec": {"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "list": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "fixed": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "fixed cannot change"}]},
        "low": {"type": "integer"}, "high": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
             "message": "low must not exceed high"}]},
    "status": {"type": "object", "properties": {"replicas": {"type": "integer"},
                                                "text": {"type": "string"}}}}}
COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
           {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
           {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


def is_established(body):
    return any(c["type"] == "Established" and c["status"] == "True"
               for c in body.get("status", {}).get("conditions") or [])


def is_in_index(body):
    return "apis/same.test/v1" in body.get("paths", {})


def made(named, **spec):
    return thing("same.test/v1", "Thing", named, spec=spec)


CUSTOM = [
    post("CRD: create", CRDS, crd("things.same.test", SCHEMA, additionalPrinterColumns=COLUMNS,
                                  subresources={"status": {}, "scale": {
                                      "specReplicasPath": ".spec.size",
                                      "statusReplicasPath": ".status.replicas"}}),
         pick=lambda b: {k: v for k, v in b.items() if k != "status"}),
    get("CRD: becomes established", f"{CRDS}/things.same.test", until=is_established,
        pick=lambda _: None),
    get("CRD: its conditions", f"{CRDS}/things.same.test",
        pick=lambda b: sorted((c["type"], c["status"], c.get("reason"), c.get("message"))
                              for c in b.get("status", {}).get("conditions", []))),
    get("CRD: its accepted names", f"{CRDS}/things.same.test",
        pick=lambda b: b.get("status", {}).get("acceptedNames")),
    get("CRD: its Table", f"{CRDS}/things.same.test", accept=TABLE),
    get("CRD: its group", "/apis/same.test", until=lambda b: "versions" in b),
    get("CRD: its resources", "/apis/same.test/v1", pick=resources,
        until=lambda b: len(b.get("resources", [])) == 3),
    get("CRD: its path in OpenAPI v3", "/openapi/v3", until=is_in_index, pick=is_in_index),
    post("CRD: create what exists", CRDS, crd("things.same.test", SCHEMA)),
    post("CRD: without a schema", CRDS, crd("bads.same.test", None, versions=[
        {"name": "v1", "served": True, "storage": True}])),
    post("CRD: a schema without types", CRDS, crd("bads.same.test", {"properties": {"a": {}}})),
    post("CRD: two storage versions", CRDS, crd("bads.same.test", None, versions=[
        {"name": n, "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        for n in ("v1", "v2")])),
    post("CRD: a name that does not fit", CRDS,
         {**crd("bads.same.test", {"type": "object"}), "metadata": {"name": "wrong.same.test"}}),
    post("CRD: a rule that does not compile", CRDS, crd("bads.same.test", {
        "type": "object", "x-kubernetes-validations": [{"rule": "self.none == 1"}]})),
    post("CRD: a default that does not fit", CRDS, crd("bads.same.test", {
        "type": "object", "properties": {"a": {"type": "integer", "default": "x"}}})),
    post("CRD: a bad scope", CRDS, crd("bads.same.test", {"type": "object"}, scope="Some")),
    post("custom: create", THINGS, made("t", size=2)),
    post("custom: create with defaults", THINGS, made("defaults")),
    post("custom: create without a spec, kind and version", THINGS, {"metadata": {"name": "bare"}}),
    post("custom: create without a spec", THINGS, {
        "apiVersion": "same.test/v1", "kind": "Thing", "metadata": {"name": "bare"}}),
    post("custom: unknown fields fall out, with a warning", THINGS,
         made("pruned", extra=1, free={"kept": 1})),
    post("custom: unknown fields, strict", f"{THINGS}?fieldValidation=Strict",
         made("strict", extra=1, free={"kept": 1})),
    post("custom: many mistakes", THINGS, made("bad", size=10, mode="wild", name="UPPER",
                                              list=["a", "b", "c"], set=["a", "a"], map={"a": "b"},
                                              port=[])),
    post("custom: a number that is text", THINGS, made("bad", size="2")),
    post("custom: a spec of a wrong type", THINGS, {**made("bad"), "spec": []}),
    post("custom: a rule that fails", THINGS, made("bad", low=2, high=1)),
    post("custom: a status is dropped", THINGS, {**made("status"), "status": {"replicas": 2}}),
    post("custom: a bad name", THINGS, made("Bad")),
    post("custom: protobuf", THINGS, b"k8s\0", type=PROTOBUF),
    post("custom: another version", THINGS, {**made("v2"), "apiVersion": "same.test/v2"}),
    get("custom: another version is not served", "/apis/same.test/v2/namespaces/same/things"),
    get("custom: read", f"{THINGS}/t", save={"thing_rv": "metadata.resourceVersion"}),
    get("custom: read as a Table", f"{THINGS}/t", accept=TABLE),
    get("custom: list as a Table", THINGS, accept=TABLE),
    get("custom: list", f"{THINGS}?fieldSelector=metadata.name%3Dt"),
    get("custom: read in protobuf alone", f"{THINGS}/t", accept=PROTOBUF),
    get("custom: a field selector", f"{THINGS}?fieldSelector=spec.size%3D2"),
    put("custom: replace without a version", f"{THINGS}/t", made("t", size=3)),
    put("custom: replace", f"{THINGS}/t", {**made("t", size=3, fixed="a"), "metadata": {
        "name": "t", "resourceVersion": "${thing_rv}"}}),
    patch("custom: merge patch", f"{THINGS}/t", {"spec": {"size": 4}}),
    patch("custom: merge patch, nothing changes", f"{THINGS}/t", {"spec": {"size": 4}}),
    patch("custom: a transition rule", f"{THINGS}/t", {"spec": {"fixed": "b"}}),
    patch("custom: JSON patch", f"{THINGS}/t", [{"op": "add", "path": "/spec/low", "value": 1}],
          JSON_PATCH),
    patch("custom: strategic merge patch", f"{THINGS}/t", {}, STRATEGIC),
    patch("custom: apply", f"{THINGS}/applied?fieldManager=one", made("applied", size=5), APPLY,
          managed=True),
    patch("custom: apply with a conflict", f"{THINGS}/applied?fieldManager=two",
          made("applied", size=6), APPLY),
    patch("custom: its status", f"{THINGS}/t/status", {"spec": {"size": 9}, "status": {
        "replicas": 1, "text": "x", "other": 1}}),
    patch("custom: a bad status", f"{THINGS}/t/status", {"status": {"replicas": "x"}}),
    get("custom: its scale", f"{THINGS}/t/scale"),
    patch("custom: a change of its scale", f"{THINGS}/t/scale", {"spec": {"replicas": 7}}),
    patch("custom: a scale against the schema", f"{THINGS}/t/scale", {"spec": {"replicas": 70}}),
    get("custom: an unknown subresource", f"{THINGS}/t/nothing"),
    watch("custom: watch", f"{THINGS}?watch=1&resourceVersion=${{thing_rv}}"
          "&fieldSelector=metadata.name%3Dt", 3),
    delete("custom: delete", f"{THINGS}/t"),
    delete("custom: delete a collection", f"{THINGS}?fieldSelector=metadata.name%3Dpruned"),
    delete("custom: delete what does not exist", f"{THINGS}/t"),
    patch("CRD: its scope cannot change", f"{CRDS}/things.same.test", {"spec": {"scope": "Cluster"}}),
]

REQUESTS = [*PREPARE, *DISCOVERY, *WHO, *OBJECTS, *PATCHES, *LISTS, *WATCHES, *DELETIONS, *KINDS,
            *FIXED, *POD_LIFE, *SUBRESOURCES, *CHANGES, *LIMITS, *ERRORS, *CUSTOM]
