// SPDX-License-Identifier: Apache-2.0
// A scheduler's record on arbitrary bytes: it is refused with the line, or the engine lives through
// it; either way all memory is given back.

#include "base/log.h"
#include "fuzz/fuzz.h"
#include "scheduler/loop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_err err = {0};
    FILE *f;

    if (size == 0) {
        return 0; /* fmemopen wants some */
    }
    hk_log_set_level(HK_LOG_ERROR);
    f = fmemopen((void *)data, size, "r");
    hk_assert(f);
    const int rc = loop_replay_from(f, "fuzz", &out, &err);
    hk_assert(rc == 0 || err.text[0] != '\0');
    fclose(f);
    return 0;
}
