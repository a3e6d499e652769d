// SPDX-License-Identifier: Apache-2.0
// Timestamps and durations: what is read comes back through its own text; any eight bytes taken as
// nanoseconds can be written and read again.

#include "codec/timefmt.h"
#include "fuzz/fuzz.h"

#define SECOND 1000000000

static void check_time(int64_t ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int64_t clamped = HK_MAX(HK_MIN(ns, TIME_MAX_NS), TIME_MIN_NS);
    int64_t back;

    time_write_micro(ns, &text);
    hk_assert(time_parse(hk_buf_str(&text), &back, NULL) == 0);
    hk_assert(back == TIME_MIN_NS || (back <= clamped && clamped - back < 1000));

    hk_buf_clear(&text);
    time_write(ns, &text);
    hk_assert(time_parse(hk_buf_str(&text), &back, NULL) == 0);
    hk_assert(back == TIME_MIN_NS || (back <= clamped && clamped - back < SECOND));
}

static void check_duration(int64_t ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int64_t back;

    duration_write(ns, &text);
    hk_assert(duration_parse(hk_buf_str(&text), &back, NULL) == 0);
    hk_assert(back == HK_MAX(HK_MIN(ns, TIME_MAX_NS), TIME_MIN_NS));

    hk_buf_clear(&text);
    duration_write_human(ns, &text);
    hk_assert(text.len >= 2 && text.len <= 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_str text = {(const char *)data, size};
    struct hk_err err = {0};
    int64_t ns;

    if (time_parse(text, &ns, &err) == 0) {
        check_time(ns);
    }
    if (duration_parse(text, &ns, &err) == 0) {
        check_duration(ns);
    }
    if (size == sizeof(ns)) {
        memcpy(&ns, data, sizeof(ns));
        check_time(ns);
        check_duration(ns);
    }
    return 0;
}
