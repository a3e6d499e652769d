// SPDX-License-Identifier: Apache-2.0
// Resource usage of this process, with the standard metrics of Prometheus client libraries.
#pragma once

#include "base/str.h"

/* process_*: CPU time, memory, descriptors, start time. Skips what the system does not provide. */
void self_write_metrics(struct hk_buf *out);
