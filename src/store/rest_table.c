// SPDX-License-Identifier: Apache-2.0
// Tables about built-in kinds: kinds that are only stored, deviations from the common behaviour,
// and the fields that select objects of each kind.
#include "store/rest_priv.h"

#define GV(group_, version_) .group = (group_), .version = (version_)
#define EXTRA(gv, kind_, plural_, singular_, scope, status_, ...)                                  \
    {                                                                                              \
        .id = API_NKINDS, gv, .kind = (kind_), .plural = (plural_), .singular = (singular_),       \
        .namespaced = (scope), .status = (status_), .short_names = {                               \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#define RBAC GV("rbac.authorization.k8s.io", "v1")
#define ADMISSION GV("admissionregistration.k8s.io", "v1")
#define FLOW GV("flowcontrol.apiserver.k8s.io", "v1")

enum { CLUSTER = false, NAMESPACED = true, STATUS = true, NO_STATUS = false };

/* Kinds outside the registry. */
static const struct api_kind extra[] = {
    EXTRA(GV("", "v1"), "LimitRange", "limitranges", "limitrange", NAMESPACED, NO_STATUS, "limits"),
    EXTRA(GV("", "v1"), "PodTemplate", "podtemplates", "podtemplate", NAMESPACED, NO_STATUS, NULL),
    EXTRA(GV("autoscaling", "v2"), "HorizontalPodAutoscaler", "horizontalpodautoscalers",
          "horizontalpodautoscaler", NAMESPACED, STATUS, "hpa"),
    EXTRA(GV("networking.k8s.io", "v1"), "Ingress", "ingresses", "ingress", NAMESPACED, STATUS,
          "ing"),
    EXTRA(GV("networking.k8s.io", "v1"), "IngressClass", "ingressclasses", "ingressclass", CLUSTER,
          NO_STATUS, NULL),
    EXTRA(GV("networking.k8s.io", "v1"), "ServiceCIDR", "servicecidrs", "servicecidr", CLUSTER,
          STATUS, NULL),
    EXTRA(GV("networking.k8s.io", "v1"), "IPAddress", "ipaddresses", "ipaddress", CLUSTER,
          NO_STATUS, "ip"),
    EXTRA(GV("storage.k8s.io", "v1"), "VolumeAttributesClass", "volumeattributesclasses",
          "volumeattributesclass", CLUSTER, NO_STATUS, "vac"),
    EXTRA(GV("scheduling.k8s.io", "v1alpha2"), "Workload", "workloads", "workload", NAMESPACED,
          NO_STATUS, NULL),
    EXTRA(GV("scheduling.k8s.io", "v1alpha2"), "PodGroup", "podgroups", "podgroup", NAMESPACED,
          STATUS, NULL),
    EXTRA(GV("node.k8s.io", "v1"), "RuntimeClass", "runtimeclasses", "runtimeclass", CLUSTER,
          NO_STATUS, NULL),
    EXTRA(RBAC, "Role", "roles", "role", NAMESPACED, NO_STATUS, NULL),
    EXTRA(RBAC, "RoleBinding", "rolebindings", "rolebinding", NAMESPACED, NO_STATUS, NULL),
    EXTRA(RBAC, "ClusterRole", "clusterroles", "clusterrole", CLUSTER, NO_STATUS, NULL),
    EXTRA(RBAC, "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", CLUSTER,
          NO_STATUS, NULL),
    EXTRA(GV("apiextensions.k8s.io", "v1"), "CustomResourceDefinition", "customresourcedefinitions",
          "customresourcedefinition", CLUSTER, STATUS, "crd", "crds"),
    EXTRA(GV("apiregistration.k8s.io", "v1"), "APIService", "apiservices", "apiservice", CLUSTER,
          STATUS, NULL),
    EXTRA(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
          "mutatingwebhookconfiguration", CLUSTER, NO_STATUS, NULL),
    EXTRA(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
          "validatingwebhookconfiguration", CLUSTER, NO_STATUS, NULL),
    EXTRA(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies",
          "validatingadmissionpolicy", CLUSTER, STATUS, NULL),
    EXTRA(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings",
          "validatingadmissionpolicybinding", CLUSTER, NO_STATUS, NULL),
    EXTRA(ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies",
          "mutatingadmissionpolicy", CLUSTER, NO_STATUS, NULL),
    EXTRA(ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings",
          "mutatingadmissionpolicybinding", CLUSTER, NO_STATUS, NULL),
    EXTRA(GV("certificates.k8s.io", "v1"), "CertificateSigningRequest",
          "certificatesigningrequests", "certificatesigningrequest", CLUSTER, STATUS, "csr"),
    EXTRA(FLOW, "FlowSchema", "flowschemas", "flowschema", CLUSTER, STATUS, NULL),
    EXTRA(FLOW, "PriorityLevelConfiguration", "prioritylevelconfigurations",
          "prioritylevelconfiguration", CLUSTER, STATUS, NULL),
};

/* Deviations from the default, which is: no generation, updates without resourceVersion overwrite,
 * a deletion answers with a Status. */
static const struct {
    const char *group, *plural;
    uint32_t set, clear;
} habits[] = {
    {"", "namespaces", REST_NO_COLLECTION, REST_DELETE_STATUS},
    {"", "nodes", REST_KEEP_STATUS, 0},
    {"", "pods", REST_GENERATION, REST_DELETE_STATUS},
    {"", "services", REST_CREATE_ON_UPDATE, REST_DELETE_STATUS},
    {"", "persistentvolumes", 0, REST_DELETE_STATUS},
    {"", "persistentvolumeclaims", 0, REST_DELETE_STATUS},
    {"", "serviceaccounts", 0, REST_DELETE_STATUS},
    {"", "resourcequotas", 0, REST_DELETE_STATUS},
    {"", "podtemplates", REST_GENERATION, REST_DELETE_STATUS},
    {"", "events", REST_CREATE_ON_UPDATE | REST_NO_GC, 0},
    {"", "endpoints", REST_CREATE_ON_UPDATE, 0},
    {"", "limitranges", REST_CREATE_ON_UPDATE, 0},
    {"", "replicationcontrollers", REST_GENERATION | REST_SCALE | REST_ORPHAN, 0},
    {"apps", "deployments", REST_GENERATION | REST_SCALE, 0},
    {"apps", "replicasets", REST_GENERATION | REST_SCALE, 0},
    {"apps", "statefulsets", REST_GENERATION | REST_SCALE, 0},
    {"apps", "daemonsets", REST_GENERATION, 0},
    {"batch", "jobs", REST_GENERATION | REST_ORPHAN, 0},
    {"batch", "cronjobs", REST_GENERATION, 0},
    {"policy", "poddisruptionbudgets", REST_GENERATION | REST_NEED_RV, 0},
    {"coordination.k8s.io", "leases", REST_NEED_RV | REST_CREATE_ON_UPDATE, 0},
    {"scheduling.k8s.io", "priorityclasses", REST_GENERATION, 0},
    {"scheduling.k8s.io", "workloads", REST_GENERATION, 0},
    {"scheduling.k8s.io", "podgroups", REST_GENERATION, 0},
    {"networking.k8s.io", "networkpolicies", REST_GENERATION, 0},
    {"networking.k8s.io", "ingresses", REST_GENERATION, 0},
    {"networking.k8s.io", "ingressclasses", REST_GENERATION, 0},
    {"discovery.k8s.io", "endpointslices", REST_GENERATION, 0},
    {"storage.k8s.io", "storageclasses", 0, REST_DELETE_STATUS},
    {"storage.k8s.io", "csinodes", REST_NEED_RV, REST_DELETE_STATUS},
    {"storage.k8s.io", "csidrivers", REST_NEED_RV, REST_DELETE_STATUS},
    {"storage.k8s.io", "csistoragecapacities", 0, REST_DELETE_STATUS},
    {"storage.k8s.io", "volumeattributesclasses", 0, REST_DELETE_STATUS},
    {"storage.k8s.io", "volumeattachments", REST_NEED_RV | REST_STATUS_ONLY, REST_DELETE_STATUS},
    {"node.k8s.io", "runtimeclasses", REST_NEED_RV | REST_CREATE_ON_UPDATE, 0},
    {"resource.k8s.io", "resourceclaims", REST_STATUS_ONLY, REST_DELETE_STATUS},
    {"resource.k8s.io", "resourceclaimtemplates", 0, REST_DELETE_STATUS},
    {"resource.k8s.io", "resourceslices", REST_GENERATION, REST_DELETE_STATUS},
    {"resource.k8s.io", "deviceclasses", REST_GENERATION, REST_DELETE_STATUS},
    {"rbac.authorization.k8s.io", "", REST_CREATE_ON_UPDATE, 0},
    {"admissionregistration.k8s.io", "", REST_GENERATION | REST_NEED_RV, 0},
    {"flowcontrol.apiserver.k8s.io", "", REST_GENERATION, 0},
    {"apiextensions.k8s.io", "customresourcedefinitions", REST_GENERATION, 0},
};

static const struct {
    const char *group, *plural;
    const char *paths[12];
} fields[] = {
    {"",
     "pods",
     {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
      "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
      "status.nominatedNodeName"}},
    {"", "nodes", {"spec.unschedulable"}},
    {"",
     "events",
     {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
      "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
      "involvedObject.fieldPath", "reason", "reportingComponent", "source.component", "type"}},
    {"events.k8s.io",
     "events",
     {"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
      "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason",
      "reportingController", "type"}},
    {"", "namespaces", {"status.phase"}},
    {"", "secrets", {"type"}},
    {"", "services", {"spec.clusterIP", "spec.type"}},
    {"", "replicationcontrollers", {"status.replicas"}},
    {"batch", "jobs", {"status.succeeded"}},
    {"resource.k8s.io", "resourceslices", {"spec.nodeName", "spec.driver"}},
    {"certificates.k8s.io", "certificatesigningrequests", {"spec.signerName"}},
};

const struct api_kind *rest_table_kind(size_t i)
{
    return i < HK_LEN(extra) ? &extra[i] : NULL;
}

static bool is_custom_group(const char *group)
{
    return hk_str_ends(hk_str(group), ".volcano.sh");
}

uint32_t rest_table_flags(const struct api_kind *k)
{
    uint32_t flags = REST_DELETE_STATUS;

    if (is_custom_group(k->group)) {
        return flags | REST_CUSTOM | REST_GENERATION | REST_NEED_RV;
    }
    for (size_t i = 0; i < HK_LEN(habits); i++) {
        if (!strcmp(habits[i].group, k->group) &&
            (habits[i].plural[0] == '\0' || !strcmp(habits[i].plural, k->plural))) {
            flags = (flags | habits[i].set) & ~habits[i].clear;
        }
    }
    return flags;
}

const char *const *rest_kind_fields(const struct rest_kind *k)
{
    static const char *const none[] = {NULL};

    for (size_t i = 0; i < HK_LEN(fields); i++) {
        if (!strcmp(fields[i].group, k->kind->group) &&
            !strcmp(fields[i].plural, k->kind->plural)) {
            return fields[i].paths;
        }
    }
    return none;
}
