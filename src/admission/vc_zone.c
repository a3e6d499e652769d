// SPDX-License-Identifier: Apache-2.0
// The names of time zones. A table of our own keeps admission free of the file system, and its
// answers the same on every machine.
#include "admission/vc_priv.h"

static const char *const zones[] = {
#define ZONE(name) name,
#include "admission/vc_zones.def"
#undef ZONE
};

bool vc_zone_known(struct hk_str name)
{
    size_t lo = 0;
    size_t hi = HK_LEN(zones);

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = hk_str_cmp(name, hk_str(zones[mid]));
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return false;
}
