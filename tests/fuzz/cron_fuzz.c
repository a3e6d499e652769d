// SPDX-License-Identifier: Apache-2.0
// Any text as a schedule: what is accepted comes round later than now, on a full second, or never.
#include "codec/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NS ((int64_t)1000000000)
#define NOW_NS (1767348000 * NS + 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cron cron;
    int64_t next_ns;

    if (cron_parse((struct hk_str){(const char *)data, size}, &cron, NULL) == 0 &&
        cron_next(&cron, NULL, NOW_NS, &next_ns)) {
        hk_assert(next_ns > NOW_NS && next_ns % NS == 0);
    }
    return 0;
}
