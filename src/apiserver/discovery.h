// SPDX-License-Identifier: Apache-2.0
// Discovery: the groups, versions and resources, with their verbs and names. Writes the documents
// per group and the aggregated form from the rows of kinds.
#pragma once

#include "store/rest.h"

/* Resources that are never stored, by index; NULL past the last. */
const struct api_kind *discovery_transient(size_t i);

/* A group version that another API server answers for. */
struct discovery_foreign {
    const char *group, *version;
    const struct json *resources; /* of its APIResourceList; NULL: unknown */
    bool stale;                   /* the server does not answer now */
};
struct discovery_input {
    const struct rest *rest;
    const struct discovery_foreign *foreign; /* these hide group versions of rest */
    uint32_t nforeign;
};

/* Answers /api, /apis and paths below them down to a group's version; false for other paths and
 * unknown groups, and for group versions of others. Sets *type only when it is not plain JSON. */
bool discovery_answer(const struct discovery_input *in, struct hk_str path, struct hk_str accept,
                      struct hk_buf *body, const char **type);
