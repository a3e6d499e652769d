// SPDX-License-Identifier: Apache-2.0
// The table of kinds: names, scope, place in the API. Code that treats all kinds alike iterates
// over the rows.
#pragma once

#include "codec/json.h"

enum api_kind_id {
    API_NODE,
    API_NAMESPACE,
    API_POD,
    API_SERVICE,
    API_ENDPOINTS,
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
    API_ENDPOINT_SLICE,
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
    bool status;                /* has the status subresource: plain updates keep .status */
    const char *short_names[3]; /* unused ones NULL */
};

const struct api_kind *api_kind(enum api_kind_id id);
/* By apiVersion and kind of a manifest; NULL when unknown. */
const struct api_kind *api_kind_find(struct hk_str api_version, struct hk_str kind);
/* By group, version and plural as in a request path; NULL when unknown. */
const struct api_kind *api_kind_by_plural(struct hk_str group, struct hk_str version,
                                          struct hk_str plural);
/* By a user's word: plural, singular, short name or kind in any case, or with a group,
 * "jobs.batch.volcano.sh". Without a group the first matching row wins. NULL when unknown. */
const struct api_kind *api_kind_by_word(struct hk_str word);
/* "v1" or "group/version", appended. */
void api_kind_write_version(const struct api_kind *k, struct hk_buf *out);

/* kind is NULL for an unknown kind. A non-zero result ends the iteration. */
typedef int api_each_fn(void *ctx, const struct api_kind *kind, const struct json *obj,
                        struct hk_err *err);

/* Calls fn for the object, or for each item of a List or typed list ("PodList"), including nested
 * lists. Items of a typed list may lack apiVersion and kind. Fails on a document that is not an
 * object or lacks apiVersion or kind; else returns fn's last result. */
int api_list_each(const struct json *doc, api_each_fn *fn, void *ctx, struct hk_err *err);
