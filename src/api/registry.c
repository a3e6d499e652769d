// SPDX-License-Identifier: Apache-2.0
// The table of kinds and its lookups. Linear search over forty rows: no hot path looks up names.
#include "api/registry.h"

#include <strings.h>

#define GV(group, version) group, version
#define KIND(id, gv, name, plural, singular, scope, status, ...)                                   \
    {                                                                                              \
        id, gv, name, plural, singular, scope, status,                                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#define CORE GV("", "v1")
#define APPS GV("apps", "v1")
#define STORAGE GV("storage.k8s.io", "v1")
#define RESOURCE GV("resource.k8s.io", "v1")
#define VC_BATCH GV("batch.volcano.sh", "v1alpha1")
#define VC_SCHEDULING GV("scheduling.volcano.sh", "v1beta1")
#define VC_FLOW GV("flow.volcano.sh", "v1alpha1")
#define VC_DATA GV("datadependency.volcano.sh", "v1alpha1")

enum { CLUSTER = false, NAMESPACED = true, STATUS = true, NO_STATUS = false };

/* The order matters only to api_kind_by_word: for a word without a group the earlier row wins.
 * Volcano's Job and CronJob come before those of Kubernetes; the others follow kubectl's preference
 * for core groups. */
static const struct api_kind kinds[] = {
    KIND(API_NODE, CORE, "Node", "nodes", "node", CLUSTER, STATUS, "no"),
    KIND(API_NAMESPACE, CORE, "Namespace", "namespaces", "namespace", CLUSTER, STATUS, "ns"),
    KIND(API_POD, CORE, "Pod", "pods", "pod", NAMESPACED, STATUS, "po"),
    KIND(API_SERVICE, CORE, "Service", "services", "service", NAMESPACED, STATUS, "svc"),
    KIND(API_ENDPOINTS, CORE, "Endpoints", "endpoints", "endpoints", NAMESPACED, NO_STATUS, "ep"),
    KIND(API_CONFIGMAP, CORE, "ConfigMap", "configmaps", "configmap", NAMESPACED, NO_STATUS, "cm"),
    KIND(API_SECRET, CORE, "Secret", "secrets", "secret", NAMESPACED, NO_STATUS, NULL),
    KIND(API_EVENT, CORE, "Event", "events", "event", NAMESPACED, NO_STATUS, "ev"),
    KIND(API_SERVICE_ACCOUNT, CORE, "ServiceAccount", "serviceaccounts", "serviceaccount",
         NAMESPACED, NO_STATUS, "sa"),
    KIND(API_RESOURCE_QUOTA, CORE, "ResourceQuota", "resourcequotas", "resourcequota", NAMESPACED,
         STATUS, "quota"),
    KIND(API_REPLICATION_CONTROLLER, CORE, "ReplicationController", "replicationcontrollers",
         "replicationcontroller", NAMESPACED, STATUS, "rc"),
    KIND(API_PVC, CORE, "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim",
         NAMESPACED, STATUS, "pvc"),
    KIND(API_PV, CORE, "PersistentVolume", "persistentvolumes", "persistentvolume", CLUSTER, STATUS,
         "pv"),
    KIND(API_REPLICA_SET, APPS, "ReplicaSet", "replicasets", "replicaset", NAMESPACED, STATUS,
         "rs"),
    KIND(API_STATEFUL_SET, APPS, "StatefulSet", "statefulsets", "statefulset", NAMESPACED, STATUS,
         "sts"),
    KIND(API_DEPLOYMENT, APPS, "Deployment", "deployments", "deployment", NAMESPACED, STATUS,
         "deploy"),
    KIND(API_DAEMON_SET, APPS, "DaemonSet", "daemonsets", "daemonset", NAMESPACED, STATUS, "ds"),
    KIND(API_CONTROLLER_REVISION, APPS, "ControllerRevision", "controllerrevisions",
         "controllerrevision", NAMESPACED, NO_STATUS, NULL),
    KIND(API_PRIORITY_CLASS, GV("scheduling.k8s.io", "v1"), "PriorityClass", "priorityclasses",
         "priorityclass", CLUSTER, NO_STATUS, "pc"),
    KIND(API_PDB, GV("policy", "v1"), "PodDisruptionBudget", "poddisruptionbudgets",
         "poddisruptionbudget", NAMESPACED, STATUS, "pdb"),
    KIND(API_LEASE, GV("coordination.k8s.io", "v1"), "Lease", "leases", "lease", NAMESPACED,
         NO_STATUS, NULL),
    KIND(API_NETWORK_POLICY, GV("networking.k8s.io", "v1"), "NetworkPolicy", "networkpolicies",
         "networkpolicy", NAMESPACED, NO_STATUS, "netpol"),
    KIND(API_ENDPOINT_SLICE, GV("discovery.k8s.io", "v1"), "EndpointSlice", "endpointslices",
         "endpointslice", NAMESPACED, NO_STATUS, NULL),
    KIND(API_STORAGE_CLASS, STORAGE, "StorageClass", "storageclasses", "storageclass", CLUSTER,
         NO_STATUS, "sc"),
    KIND(API_CSI_NODE, STORAGE, "CSINode", "csinodes", "csinode", CLUSTER, NO_STATUS, NULL),
    KIND(API_CSI_DRIVER, STORAGE, "CSIDriver", "csidrivers", "csidriver", CLUSTER, NO_STATUS, NULL),
    KIND(API_CSI_CAPACITY, STORAGE, "CSIStorageCapacity", "csistoragecapacities",
         "csistoragecapacity", NAMESPACED, NO_STATUS, NULL),
    KIND(API_VOLUME_ATTACHMENT, STORAGE, "VolumeAttachment", "volumeattachments",
         "volumeattachment", CLUSTER, STATUS, NULL),
    KIND(API_RESOURCE_CLAIM, RESOURCE, "ResourceClaim", "resourceclaims", "resourceclaim",
         NAMESPACED, STATUS, NULL),
    KIND(API_RESOURCE_CLAIM_TEMPLATE, RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates",
         "resourceclaimtemplate", NAMESPACED, NO_STATUS, NULL),
    KIND(API_RESOURCE_SLICE, RESOURCE, "ResourceSlice", "resourceslices", "resourceslice", CLUSTER,
         NO_STATUS, NULL),
    KIND(API_DEVICE_CLASS, RESOURCE, "DeviceClass", "deviceclasses", "deviceclass", CLUSTER,
         NO_STATUS, NULL),
    KIND(API_QUEUE, VC_SCHEDULING, "Queue", "queues", "queue", CLUSTER, STATUS, "q",
         "queue-v1beta1"),
    KIND(API_PODGROUP, VC_SCHEDULING, "PodGroup", "podgroups", "podgroup", NAMESPACED, NO_STATUS,
         "pg", "podgroup-v1beta1"),
    KIND(API_JOB, VC_BATCH, "Job", "jobs", "job", NAMESPACED, STATUS, "vcjob", "vj"),
    KIND(API_CRONJOB, VC_BATCH, "CronJob", "cronjobs", "cronjob", NAMESPACED, STATUS, "cronvcjob",
         "cronvj"),
    KIND(API_COMMAND, GV("bus.volcano.sh", "v1alpha1"), "Command", "commands", "command",
         NAMESPACED, NO_STATUS, NULL),
    KIND(API_JOBFLOW, VC_FLOW, "JobFlow", "jobflows", "jobflow", NAMESPACED, STATUS, "jf"),
    KIND(API_JOBTEMPLATE, VC_FLOW, "JobTemplate", "jobtemplates", "jobtemplate", NAMESPACED, STATUS,
         "jt"),
    KIND(API_HYPERNODE, GV("topology.volcano.sh", "v1alpha1"), "HyperNode", "hypernodes",
         "hypernode", CLUSTER, STATUS, "hn"),
    KIND(API_NUMATOPOLOGY, GV("nodeinfo.volcano.sh", "v1alpha1"), "Numatopology", "numatopologies",
         "numatopology", CLUSTER, NO_STATUS, "numatopo"),
    KIND(API_NODESHARD, GV("shard.volcano.sh", "v1alpha1"), "NodeShard", "nodeshards", "nodeshard",
         CLUSTER, STATUS, "nsh"),
    KIND(API_COLOCATION_CONFIGURATION, GV("config.volcano.sh", "v1alpha1"),
         "ColocationConfiguration", "colocationconfigurations", "colocationconfiguration",
         NAMESPACED, STATUS, NULL),
    KIND(API_HYPERJOB, GV("training.volcano.sh", "v1alpha1"), "HyperJob", "hyperjobs", "hyperjob",
         NAMESPACED, STATUS, "hj"),
    KIND(API_DATASOURCE, VC_DATA, "DataSource", "datasources", "datasource", CLUSTER, STATUS, NULL),
    KIND(API_DATASOURCE_CLAIM, VC_DATA, "DataSourceClaim", "datasourceclaims", "datasourceclaim",
         NAMESPACED, STATUS, NULL),
    KIND(API_BATCH_JOB, GV("batch", "v1"), "Job", "jobs", "job", NAMESPACED, STATUS, NULL),
    KIND(API_BATCH_CRONJOB, GV("batch", "v1"), "CronJob", "cronjobs", "cronjob", NAMESPACED, STATUS,
         "cj"),
};

_Static_assert(HK_LEN(kinds) == API_NKINDS, "one row per kind");

const struct api_kind *api_kind(enum api_kind_id id)
{
    return &kinds[id];
}

/* "v1" is core; otherwise "group/version". */
static void version_split(struct hk_str api_version, struct hk_str *group, struct hk_str *version)
{
    const char *slash = api_version.n > 0 ? memchr(api_version.s, '/', api_version.n) : NULL;
    const size_t n = slash ? (size_t)(slash - api_version.s) : 0;

    *group = (struct hk_str){api_version.s, n};
    *version = slash ? (struct hk_str){slash + 1, api_version.n - n - 1} : api_version;
}

static bool in_group(const struct api_kind *k, struct hk_str group, struct hk_str version)
{
    return hk_str_is(group, k->group) && hk_str_is(version, k->version);
}

const struct api_kind *api_kind_find(struct hk_str api_version, struct hk_str kind)
{
    struct hk_str group;
    struct hk_str version;

    version_split(api_version, &group, &version);
    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        if (hk_str_is(kind, kinds[i].kind) && in_group(&kinds[i], group, version)) {
            return &kinds[i];
        }
    }
    return NULL;
}

const struct api_kind *api_kind_by_plural(struct hk_str group, struct hk_str version,
                                          struct hk_str plural)
{
    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        if (hk_str_is(plural, kinds[i].plural) && in_group(&kinds[i], group, version)) {
            return &kinds[i];
        }
    }
    return NULL;
}

static bool same_word(struct hk_str a, const char *b)
{
    return b && strlen(b) == a.n && strncasecmp(a.s, b, a.n) == 0;
}

static bool answers_to(const struct api_kind *k, struct hk_str word)
{
    if (same_word(word, k->plural) || same_word(word, k->singular)) {
        return true;
    }
    for (size_t i = 0; i < HK_LEN(k->short_names); i++) {
        if (same_word(word, k->short_names[i])) {
            return true;
        }
    }
    return false;
}

const struct api_kind *api_kind_by_word(struct hk_str word)
{
    struct hk_str group = word;
    struct hk_str name;

    if (word.n == 0) {
        return NULL;
    }
    hk_str_cut(&group, '.', &name);
    const bool any_group = name.n == word.n;
    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        if (answers_to(&kinds[i], name) && (any_group || hk_str_is(group, kinds[i].group))) {
            return &kinds[i];
        }
    }
    return NULL;
}

void api_kind_write_version(const struct api_kind *k, struct hk_buf *out)
{
    if (k->group[0] != '\0') {
        hk_buf_addstr(out, hk_str(k->group));
        hk_buf_addc(out, '/');
    }
    hk_buf_addstr(out, hk_str(k->version));
}

/* Values that an item inherits from the typed list around it. */
struct list_scope {
    struct hk_str api_version, kind;
};

static int fail_at(const struct json *doc, struct hk_err *err, const char *what)
{
    if (doc->line > 0) {
        return hk_fail(err, HK_EINVAL, "line %u: %s", doc->line, what);
    }
    return hk_fail(err, HK_EINVAL, "%s", what);
}

static int registry_visit_objects(const struct json *doc, struct list_scope outer, api_each_fn *fn,
                                  void *ctx, struct hk_err *err)
{
    int rc = 0;

    if (!json_is(doc, JSON_OBJECT)) {
        return fail_at(doc, err, "want an API object");
    }
    const struct hk_str version = json_str(json_get(doc, "apiVersion"), outer.api_version);
    const struct hk_str kind = json_str(json_get(doc, "kind"), outer.kind);
    if (version.n == 0 || kind.n == 0) {
        return fail_at(doc, err,
                       version.n == 0 ? "object has no apiVersion" : "object has no kind");
    }
    const struct json *items = json_get(doc, "items");
    if (!hk_str_ends(kind, "List") || !(json_is(items, JSON_ARRAY) || json_is(items, JSON_NULL))) {
        return fn(ctx, api_kind_find(version, kind), doc, err);
    }
    /* A plain List has nothing for its items to inherit. */
    const struct list_scope inner = {version, {kind.s, kind.n - 4}};
    for (uint32_t i = 0; items->type == JSON_ARRAY && i < items->len && rc == 0; i++) {
        rc = registry_visit_objects(
            &items->items[i], inner.kind.n > 0 ? inner : (struct list_scope){0}, fn, ctx, err);
    }
    return rc;
}

int api_list_each(const struct json *doc, api_each_fn *fn, void *ctx, struct hk_err *err)
{
    return registry_visit_objects(doc, (struct list_scope){0}, fn, ctx, err);
}
