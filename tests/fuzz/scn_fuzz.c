// SPDX-License-Identifier: Apache-2.0
// Scenarios from arbitrary bytes: parsed, run twice with the real scheduler, and answered in TAP.
// Beyond the parser this drives ingest and the engine with clusters nobody would think of.

#include "fuzz/fuzz.h"
#include "sim/scn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct scn_opts o = {.max_objects = 64, .max_cycles = 8};
    struct scn_tally tally = {0};

    scn_run("fuzz.scn", (struct hk_str){(const char *)data, size}, &o, &tally, &out);
    hk_assert(tally.run > 0 && tally.failed <= tally.run);
    hk_assert(out.len > 0);
    return 0;
}
