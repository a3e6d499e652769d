// SPDX-License-Identifier: Apache-2.0
// Any bytes as a time zone: what is accepted must answer for any time, and civil time must lead
// back to near where it came from. A schedule by its clocks must come round later than now, or
// never.
#include "codec/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NS ((int64_t)1000000000)

enum { HALF_S = 100 * 3600 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t times_s[] = {-5000000000, -1, 0, 951782400, 1767348000, 4102444800};
    HK_AUTO(tzfile_freep) struct tzfile *zone = NULL;
    struct cron cron;

    hk_assert(cron_parse(HK_STR("30 2 1-20 * 1"), &cron, NULL) == 0);
    if (tzfile_parse((struct hk_str){(const char *)data, size}, &zone, NULL) < 0) {
        return 0;
    }
    for (size_t i = 0; i < HK_LEN(times_s); i++) {
        const struct tz_civil civil = tzfile_civil(zone, times_s[i]);
        const int64_t back_s = tzfile_instant(zone, &civil);
        int64_t next_ns;

        hk_assert(back_s > times_s[i] - HALF_S && back_s < times_s[i] + HALF_S);
        if (cron_next(&cron, zone, times_s[i] * NS, &next_ns)) {
            hk_assert(next_ns > times_s[i] * NS);
        }
    }
    return 0;
}
