// SPDX-License-Identifier: Apache-2.0
// Requests of a story (struct step) in short, for objects in the namespace "default", and the
// fixture of such tests: a port with admission over an empty store.
#pragma once

#include "store/rest_rig_test.h"

#define NS HK_STR("default")
#define GET(n) .req = {.verb = PORT_GET, .ns = NS, .name = HK_STR(n)}
#define CREATE .req = {.verb = PORT_CREATE, .ns = NS}
#define UPDATE(n) .req = {.verb = PORT_UPDATE, .ns = NS, .name = HK_STR(n)}
#define MERGE(n) .req = {.verb = PORT_PATCH, .ns = NS, .name = HK_STR(n), .patch = PORT_PATCH_MERGE}
#define DELETE(n, ...) .req = {.verb = PORT_DELETE, .ns = NS, .name = HK_STR(n), __VA_ARGS__}
/* An update or a merge patch of the status. */
#define STATUS(v, n)                                                                               \
    .req = {.verb = (v),                                                                           \
            .ns = NS,                                                                              \
            .name = HK_STR(n),                                                                     \
            .subresource = "status",                                                               \
            .patch = PORT_PATCH_MERGE}
#define BOX "'containers':[{'name':'c','image':'i'}]" /* every pod needs one */

static inline int story_setup(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));

    rig_open(g, true);
    rig_settle(g);
    *state = g;
    return 0;
}

static inline int story_teardown(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

/* The test function test_NAME, with the fixture. */
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, story_setup, story_teardown)
