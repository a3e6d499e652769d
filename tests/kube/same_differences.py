# SPDX-License-Identifier: Apache-2.0
"""The known differences between the answers of `hekla apiserver` and kube-apiserver 1.34, for same.py.

A row is the titles of requests and the paths in their answers, both as shell patterns. Each group has
its reason. Delete the row when the difference is gone: same.py reports it.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Difference:
    title: str
    path: str
    reason: str

    def title_fits(self, title):
        return fnmatchcase(title, self.title)

    def path_fits(self, path):
        return fnmatchcase(path, self.path)


# {reason: rows}. First what stays, then what another version of Kubernetes explains, then what is missing.
GROUPS = {
    # ---- chosen ----
    "the items of a list are sent as they are stored, with kind and apiVersion; clients take both": (
        ("*", "body.items"),
        ("*", "body.items.[0-9]*.kind"),
        ("*", "body.items.[0-9]*.apiVersion"),
    ),
    "columns have no description; kubectl does not show it": (
        ("*", "*columnDefinitions.[0-9]*.description"),
    ),
    "the columns are in each event of a watch, not only in the first; clients take both": (
        ("watch as a Table", "body.[1-9]*.object.columnDefinitions"),
    ),
    "a mistake in the request gets 400 or 422 and its reason, not 500": (
        ("create with a resourceVersion", "*"),
        ("*, a resourceVersion that is no number", "*"),
        ("watch from a version that is no number", "*"),
        ("replace with a version that is no number", "*"),
        ("strategic merge patch without the key", "*"),
        ("strategic merge patch, an unknown directive", "*"),
        ("delete with a body *", "*"),
        ("pod: bind to *", "*"),
        ("a group without a user", "*"),
    ),
    "a message about broken JSON, YAML or protobuf says at which line and column": (
        ("a body that is *", "body.message"),
        ("a body in protobuf that is none", "body.message"),
        ("two bodies", "body.message"),
        ("merge patch that is no*", "body.message"),
        ("JSON patch, no list", "body.message"),
        ("strategic merge patch that is no object", "body.message"),
        ("a time that is none", "body.message"),
        ("a body with a kind of a wrong type", "body.message"),
    ),
    "a message about a selector, a number or a token quotes it, and says where in it the mistake is": (
        ("list, label selector *", "body.message"),
        ("list, field selector nonsense", "body.message"),
        ("* with a bad selector", "body.message"),
        ("list, a continue that is nonsense", "body.message"),
        ("list, a limit that is no number", "body.message"),
        ("list at a version that is no number", "body.message"),
        ("delete, a grace period that is no number", "body.message"),
    ),
    "a message about a failed JSON patch says which operation failed": (
        ("JSON patch, *", "body.message"),
        ("JSON patch without a path", "body.message"),
    ),
    "a message names no types and files of Go": (
        ("a body of *", "body.message"),
        ("scale: another kind", "body.message"),
        ("replace with another uid", "body.message"),
        ("CRD: a rule that does not compile", "body.*message"),
        ("CRD: two storage versions", "body.*"),
        ("a budget with both numbers", "body.*message"),
        ("change: the source of a volume", "body.*message"),
        ("change: a claim's storage class", "body.*message"),
        ("change: the template of a Job", "body.*message"),
        ("change: the volume attacher", "body.*message"),
        ("change: the role of a binding", "body.*message"),
    ),
    "a patch whose result cannot be decoded is a 400 that names the field; kube-apiserver quotes the "
    "whole object": (
        ("* patch of a wrong type", "*"),
        ("change: the kind", "*"),
        ("change: the version", "*"),
        ("merge patch, an unknown field, strict", "body.*"),
    ),
    "a patch of the uid is a conflict": (
        ("merge patch of the uid", "*"),
    ),
    "a message about media types lists those that are accepted": (
        ("read as *", "body.message"),
        ("read as *", "body.details"),
        ("read a type that is not served", "body.message"),
        ("watch a type that is not served", "body.message"),
        ("list as PartialObjectMetadata", "body.*"),
        ("a patch of type JSON", "body.*"),
        ("a patch without a type", "body.*"),
    ),
    "a body that is null, or not UTF-8, is refused before it is decoded": (
        ("a body that is null", "*"),
        ("a body that is no UTF-8", "*"),
    ),
    "a path that does not exist is a Status in JSON, with every client's words for it": (
        ("a group that does not exist", "*"),
        ("a path of nothing", "*"),
        ("livez, a check that does not exist", "*"),
        ("OpenAPI v3 of a group that does not exist", "*"),
        ("custom: another version is not served", "*"),
    ),
    "a path or parameter that two programs may read differently is refused": (
        ("a path with *", "*"),
        ("a name with an escaped slash", "*"),
        ("a parameter that is broken", "*"),
    ),
    "requests without credentials are refused, except of health and version": (
        ("without credentials*", "*"),
    ),
    "HEAD works like GET": (
        ("the head of an object", "status"),
        ("the head of a missing object", "status"),
    ),
    "application/* is JSON": (
        ("read any application type", "*"),
    ),
    "a custom resource without kind and version gets those of the path, as all kinds do": (
        ("custom: create without a spec*", "*"),
    ),
    "kube-apiserver closes the connection": (
        ("custom: protobuf", "*"),
    ),
    "kube-apiserver prunes by a schema before it looks at the version": (
        ("custom: another version", "header.warning"),
    ),
    "a subresource that a kind lacks is not found, whatever the name": (
        ("custom: an unknown subresource", "body.*"),
    ),
    "kube-apiserver leaves out apiVersion in this document alone": (
        ("the resources of v1", "body.apiVersion"),
    ),
    "kube-apiserver compares the bytes of the data": (
        ("change: the number of a revision", "*"),
    ),
    "a deletion time in a patch is ignored; kube-apiserver refuses it": (
        ("change: the deletion time", "*"),
    ),
    "the generation of a priority class counts its changes": (
        ("change: a priority class's default", "body.metadata.generation"),
    ),
    "kube-apiserver keeps the generation of the client": (
        ("create with system metadata of the client", "body.metadata.generation"),
    ),
    "versions and kinds of other releases are served, too": (
        ("the paths of the server", "body"),
        ("the groups", "body.groups.*.versions"),
        ("aggregated discovery of the other groups", "body.items.*.versions.v1beta1"),
        ("*", "*.resources.mutatingadmissionpolicies"),
        ("*", "*.resources.mutatingadmissionpolicybindings"),
        ("aggregated discovery of v2beta1", "*"),
        ("OpenAPI v3 of v1: the schema of a pod", "body.properties"),
    ),
    "empty fields are left out; an empty list stays one": (
        ("custom: list", "body.metadata.continue"),
        ("custom: delete a collection", "body.metadata.continue"),
        ("*: create", "body.rules"),
        ("CSINode *", "body.spec.drivers"),
        ("token: create", "body.spec.boundObjectRef"),
        ("pod: *", "body.status.conditions.[0-9]*.lastProbeTime"),
    ),
    "fields that are always there are shown when they are empty": (
        ("custom: *its scale", "body.status.selector"),
        ("an event of the old kind by the new one", "body.reporting*"),
        ("CSINode *", "body.status"),
        ("watch with the initial events", "body.[0-9]*.object.metadata.creationTimestamp"),
    ),
    "a list of resourceVersion 0 with a limit has pages": (
        ("list at version 0 with a limit", "body.*"),
    ),
    "objects without effect are stored with a warning": (
        ("*: create", "header.warning"),
        ("change: a network policy", "header.warning"),
    ),
    "a Service gets its address from `hekla up`": (
        ("Service k of v1: *", "body.*"),
        ("change: the type of a Service", "body.spec.*"),
    ),
    "a claim or volume in use is deleted at once (docs/compatibility.md)": (
        ("PersistentVolume*", "body.*finalizers"),
        ("status: of a volume", "body.metadata.finalizers"),
        ("change: the size of a volume", "body.metadata.finalizers"),
        ("delete a claim", "body.metadata.*"),
    ),
    "the account default has no token in its pods (docs/compatibility.md)": (
        ("pod: create with a token", "body.spec.*"),
    ),
    "the answer to a deletion at once is the object as it was stored": (
        ("pod: delete at once", "body.metadata.deletionGracePeriodSeconds"),
        ("pod: delete one without a node", "body.metadata.*"),
        ("pod: delete with a negative grace period", "body.metadata.*"),
        ("the last finalizer goes", "body.metadata.resourceVersion"),
    ),
    "quotas are counted at once, not by a controller": (
        ("ResourceQuota *: its Table", "body.rows.*"),
        ("change: a quota", "body.*"),
    ),
    "a CustomResourceDefinition is established, and has its finalizer, when it is created": (
        ("CRD: create", "body.metadata.finalizers"),
        ("CRD: its Table", "body.rows.*"),
    ),
    "the words of kube-apiserver before 1.34 or after it": (
        ("the name '*", "body.*message"),
        ("labels *", "body.*message"),
        ("a name of a namespace with a dot", "body.*message"),
        ("a StatefulSet with a bad policy", "body.*"),
        ("custom: many mistakes", "body.*message"),
        ("custom: a field selector", "body.message"),
    ),
    "deprecations of 1.33, and what that release adds": (
        ("Endpoints *", "header.warning"),
        ("replace what does not exist, of a kind that updates create", "header.warning"),
        ("the version*", "body"),
        ("DaemonSet *: create", "body.metadata.annotations"),
        ("change: the template of a DaemonSet", "body.metadata.annotations"),
    ),
    "kube-apiserver repeats a fault, and so counts several": (
        ("merge patch that breaks a rule", "body.message"),
        ("no finalizer can be added now", "body.message"),
    ),
    # ---- headers ----
    "caches need not be told": (
        ("aggregated discovery *", "header.*"),
        ("a body that is too large", "header.cache-control"),
    ),
    "OpenAPI is sent as JSON, and never compressed": (
        ("the index of OpenAPI v3", "*"),
        ("CRD: its path in OpenAPI v3", "header.*"),
        ("OpenAPI v2*", "header.vary"),
    ),
    "texts are sent with nosniff": (
        ("livez, one check", "header.x-content-type-options"),
    ),
    # ---- missing ----
    "discovery and custom kinds are not sent in protobuf": (
        ("groups in protobuf, or else in JSON", "*"),
        ("custom: read in protobuf alone", "*"),
    ),
    "no componentstatuses": (
        ("*", "*.resources.componentstatuses"),
    ),
    "kinds of a newer Kubernetes": (
        ("aggregated discovery of the other groups", "body.items.scheduling.k8s.io.versions.v1alpha[12]"),
    ),
    "pods: the server leaves options, containers and addresses to the node, and answers itself when no "
    "node serves": (
        ("pod: the log *", "*"),
        ("pod: exec *", "*"),
        ("pod: attach *", "*"),
        ("pod: port-forward *", "*"),
    ),
    "OpenAPI describes fewer parameters of deletions, and says what is required": (
        ("OpenAPI v3 of apps/v1: *", "body.*"),
    ),
    "no review says by which rule, names audiences or repeats extra": (
        ("*", "body.status.reason"),
        ("a review of jane's token", "body.status.audiences"),
        ("who am I as somebody else", "body.status.userInfo.extra"),
    ),
    "one fault of an option is named, not two": (
        ("watch, initial events with an exact match", "body.*"),
    ),
    "the kind in a conflict is the resource, that of something invalid the kind": (
        ("custom: replace without a version", "body.*"),
        ("delete with another uid", "body.*"),
        ("delete with an old version", "body.*"),
    ),
    "an unknown field in an apply is a warning": (
        ("apply with an unknown field", "*"),
        ("apply in YAML", "body.metadata.managedFields*"),
        ("apply in YAML", "body.metadata.resourceVersion"),
    ),
    "a manager whose last field is shared is forgotten": (
        ("a merge patch becomes a manager", "body.metadata.managedFields"),
    ),
    "times and statuses of controllers that do not exist": (
        ("*", "body.status.lastPhaseTransitionTime"),
    ),
    "columns and defaults of flow control, which has no effect": (
        ("PriorityLevelConfiguration *", "body.*"),
    ),
    "cells of other types": (
        ("Event *: its Table", "body.rows.*"),
        ("VolumeAttachment *: its Table", "body.columnDefinitions.1.format"),
    ),
    "rules about objects that are not checked yet, or are checked one by one": (
        ("a bad generated name", "body.*"),
        ("a pod with *", "body.*"),
        ("a Deployment without a selector", "body.*"),
        ("a Service with bad ports", "body.*"),
        ("a quota with a bad resource", "body.*"),
        ("a limit range with contradictions", "body.*"),
        ("a node with a bad taint", "body.*"),
        ("a config map that is too large", "body.*"),
        ("status: a bad value", "body.*"),
        ("change: the selector of a Job", "body.*"),
        ("CRD: without a schema", "body.*"),
        ("CRD: a schema without types", "body.*"),
        ("custom: a number that is text", "body.*"),
        ("custom: a spec of a wrong type", "body.*"),
        ("custom: a bad status", "body.*"),
    ),
}

DIFFERENCES = [Difference(*row, reason) for reason, rows in GROUPS.items() for row in rows]
