// SPDX-License-Identifier: Apache-2.0
// Kubernetes' Pod Security Standards, latest version: what pods of the levels baseline and
// restricted must not set, and what restricted pods must set. Pure functions over a pod's metadata
// and spec; pod_security.c decides which level applies.
#pragma once

#include "codec/json.h"

enum pss_level { PSS_PRIVILEGED, PSS_BASELINE, PSS_RESTRICTED };

const char *pss_level_name(enum pss_level level);
/* False when the text is not a level. */
bool pss_level_parse(struct hk_str text, enum pss_level *ret);

/* The number of controls of the level that the pod violates. Appends them in Kubernetes' wording:
 * to details `privileged (container "c" must not set securityContext.privileged=true), ...`, and to
 * reasons `privileged, ...`; either may be NULL. */
uint32_t pss_check(enum pss_level level, const struct json *metadata, const struct json *spec,
                   struct hk_buf *details, struct hk_buf *reasons);
