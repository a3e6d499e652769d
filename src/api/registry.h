// SPDX-License-Identifier: Apache-2.0
// The table of kinds: names, scope, where they live in the API. One row per kind; code that treats
// kinds alike walks rows instead of naming them.
#pragma once

#include "codec/json.h"

enum api_kind_id {
    API_NODE,
    API_NAMESPACE,
    API_POD,
    API_SERVICE,
    API_CONFIGMAP,
    API_SECRET,
    API_EVENT,
    API_SERVICE_ACCOUNT,
    API_RESOURCE_QUOTA,
    API_REPLICATION_CONTROLLER,
    API_PVC,
    API_PV,
    API_REPLICA_SET,
    API_STATEFUL_SET,
    API_DEPLOYMENT,
    API_DAEMON_SET,
    API_CONTROLLER_REVISION,
    API_PRIORITY_CLASS,
    API_PDB,
    API_LEASE,
    API_NETWORK_POLICY,
    API_STORAGE_CLASS,
    API_CSI_NODE,
    API_CSI_DRIVER,
    API_CSI_CAPACITY,
    API_VOLUME_ATTACHMENT,
    API_RESOURCE_CLAIM,
    API_RESOURCE_CLAIM_TEMPLATE,
    API_RESOURCE_SLICE,
    API_DEVICE_CLASS,
    API_QUEUE,
    API_PODGROUP,
    API_JOB,
    API_CRONJOB,
    API_COMMAND,
    API_JOBFLOW,
    API_JOBTEMPLATE,
    API_HYPERNODE,
    API_NUMATOPOLOGY,
    API_NODESHARD,
    API_COLOCATION_CONFIGURATION,
    API_HYPERJOB,
    API_DATASOURCE,
    API_DATASOURCE_CLAIM,
    API_BATCH_JOB,
    API_BATCH_CRONJOB,
    API_NKINDS,
};

struct api_kind {
    enum api_kind_id id;
    const char *group, *version; /* group "" is core */
    const char *kind;            /* "Pod"; its list is "PodList" */
    const char *plural, *singular;
    bool namespaced;
    bool status; /* has the status subresource: plain updates leave the status alone */
    const char *short_names[3]; /* unused ones NULL */
};

const struct api_kind *api_kind(enum api_kind_id id);
/* By the two fields of a manifest; NULL when unknown. */
const struct api_kind *api_kind_find(struct hk_str api_version, struct hk_str kind);
/* By group, version and plural as in a request path; NULL when unknown. */
const struct api_kind *api_kind_by_plural(struct hk_str group, struct hk_str version,
                                          struct hk_str plural);
/* By what people type: plural, singular, short name or kind in any case, "jobs.batch.volcano.sh"
 * with the group behind a dot. Without a group the first row of the table that answers wins. NULL
 * when unknown. */
const struct api_kind *api_kind_by_word(struct hk_str word);
/* "v1" or "group/version", appended. */
void api_kind_write_version(const struct api_kind *k, struct hk_buf *out);

/* kind is NULL when the registry does not know the object's. Returning non-zero ends the walk. */
typedef int api_each_fn(void *ctx, const struct api_kind *kind, const struct json *obj,
                        struct hk_err *err);

/* Calls fn for the object, or for each item when doc is a List or a typed list ("PodList"), lists
 * inside lists included. Items of a typed list may lack apiVersion and kind. Fails on a document
 * that is no object, or lacks apiVersion or kind; else returns fn's last answer. */
int api_list_each(const struct json *doc, api_each_fn *fn, void *ctx, struct hk_err *err);
