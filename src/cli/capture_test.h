// SPDX-License-Identifier: Apache-2.0
// What code under test prints. Stdout belongs to the results of the test itself.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Ready when zeroed. */
struct capture {
    bool on;
    int saved[2], files[2]; /* of stdout and stderr, while it is on */
    char out[8192], complaints[8192];
};

static inline void capture_begin(struct capture *c)
{
    fflush(stdout);
    fflush(stderr);
    c->on = true;
    for (int i = 0; i < 2; i++) {
        c->saved[i] = dup(STDOUT_FILENO + i);
        c->files[i] = memfd_create("output", MFD_CLOEXEC);
        assert_true(c->files[i] >= 0);
        dup2(c->files[i], STDOUT_FILENO + i);
    }
}

/* From here on, out and complaints hold what went to stdout and stderr since capture_begin. Call it
 * in a teardown, too: a failed assertion leaves the capture on. */
static inline void capture_end(struct capture *c)
{
    char *const texts[] = {c->out, c->complaints};

    if (!c->on) {
        return;
    }
    c->on = false;
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        const ssize_t n = pread(c->files[i], texts[i], sizeof(c->out) - 1, 0);
        texts[i][n > 0 ? n : 0] = '\0';
        dup2(c->saved[i], STDOUT_FILENO + i);
        close(c->saved[i]);
        close(c->files[i]);
    }
}
