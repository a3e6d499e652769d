// SPDX-License-Identifier: Apache-2.0
// A rig whose port has faults (fault_port_test.h), and controllers on it, which may end and be
// started again. A story runs once without faults, and then again for every call the controllers
// make and every way in which that call can go wrong; it must end the same each time.
#pragma once

#include "controllers/fault_port_test.h"
#include "controllers/rig_test.h"

struct fault_rig {
    struct rig *rig;
    struct fault_port port;
    bool (*others)(void *ctx); /* users and nodes act; returns whether they did; may be NULL */
    void *ctx;
};

/* The rig is f->rig, and is filled in here; rig_manager on it comes next. */
static inline void fault_rig_open(struct fault_rig *f, const struct ctl_type *const *types,
                                  uint32_t ntype, enum fault fault, uint32_t at)
{
    rig_init(f->rig, types, ntype);
    fault_port_init(&f->port, port_mem_port(f->rig->mem), fault, at);
    f->rig->port = &f->port.port;
}

/* The controllers end before the port does. */
static inline void fault_rig_close(struct fault_rig *f)
{
    manager_free(f->rig->m);
    f->rig->m = NULL;
    port_free(&f->port.port);
    rig_fini(f->rig);
}

struct fault_story {
    struct rig *rig; /* what rig_init is to fill in */
    const struct ctl_type *const *types;
    uint32_t ntype;
    void (*play)(struct fault_rig *f);
    void (*describe)(struct hk_buf *out); /* how it ended */
};

/* Whether anything happened without time passing. */
static inline bool fault_rig_step(struct fault_rig *f, int64_t *ret_next_ns)
{
    struct rig *r = f->rig;

    *ret_next_ns = manager_run(r->m);
    if (f->port.dead) {
        manager_free(r->m);
        fault_port_restart_caller(&f->port);
        rig_manager(r);
        return true;
    }
    return *ret_next_ns <= r->clock.now_ns || port_poll(r->port, 1) > 0 ||
           (f->others && f->others(f->ctx)) || fault_port_release(&f->port);
}

/* Lets time pass: long enough for a call without an answer to time out and to be repeated. Starts
 * the controllers again if they have ended. */
static inline void fault_rig_pass(struct fault_rig *f)
{
    const int64_t end_ns = f->rig->clock.now_ns + (int64_t)100 * 1000000000;

    for (int i = 0; i < 100000; i++) {
        int64_t next_ns;

        if (fault_rig_step(f, &next_ns)) {
            continue;
        }
        if (next_ns > end_ns) {
            rig_set_now(f->rig, end_ns);
            return;
        }
        rig_set_now(f->rig, next_ns);
    }
    fail_msg("the controllers never come to rest");
}

/* How many calls there were. */
static inline uint32_t fault_rig_play(const struct fault_story *s, enum fault fault, uint32_t at,
                                      struct hk_buf *out, struct hk_buf *struck)
{
    struct fault_rig f = {.rig = s->rig};
    uint32_t n;

    fault_rig_open(&f, s->types, s->ntype, fault, at);
    rig_manager(f.rig);
    s->play(&f);
    s->describe(out);
    hk_buf_addstr(struck, hk_buf_str(&f.port.log));
    n = f.port.ncall;
    fault_rig_close(&f);
    return n;
}

static inline uint32_t fault_rig_compare(const struct fault_story *s, enum fault fault, uint32_t at,
                                         const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf struck = {0};

    (void)fault_rig_play(s, fault, at, &have, &struck);
    if (hk_str_is(hk_buf_str(&have), want)) {
        return 0;
    }
    print_message("# call %u (%s) %s\n#   expected %s\n#   actual   %s\n", at,
                  struck.data ? struck.data : "", fault_names[fault], want, have.data);
    return 1;
}

static inline void fault_rig_run_all_faults(const struct fault_story *s, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf peace = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf struck = {0};
    const uint32_t n = fault_rig_play(s, FAULT_NONE, 0, &peace, &struck);
    uint32_t bad = 0;

    assert_string_equal(peace.data, want);
    for (uint32_t at = 1; at <= n; at++) {
        for (enum fault fault = FAULT_NONE + 1; fault < FAULT_NKINDS; fault++) {
            bad += fault_rig_compare(s, fault, at, want);
        }
    }
    assert_int_equal(bad, 0);
}
