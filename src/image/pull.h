// SPDX-License-Identifier: Apache-2.0
// Brings images from registries, with the program skopeo, which knows their protocols and
// credentials.
#pragma once

#include "image/import.h"

struct image_pull {
    const char *data_dir;
    const char *name;
    const char *creds;    /* "USER:PASSWORD"; NULL: none */
    const char *authfile; /* as "docker login" and "podman login" write it; NULL: skopeo's own */
    bool insecure;        /* permits HTTP, and certificates that cannot be verified */
    int64_t max_bytes, now_s;
};

/* -HK_EUNSUP if skopeo is not installed, -HK_EIO if the registry has no such image or refuses it.
 * Waits for child processes; changes the working directory during the call. */
int image_pull(const struct image_pull *o, struct hk_arena *a, struct image_imported *ret,
               struct hk_err *err) HK_CHECKED;
