// SPDX-License-Identifier: Apache-2.0
// What this process takes of the machine, as every Prometheus client library tells it.
#pragma once

#include "base/str.h"

/* process_*: CPU time, memory, descriptors, start. What the system does not tell is left out. */
void self_write_metrics(struct hk_buf *out);
