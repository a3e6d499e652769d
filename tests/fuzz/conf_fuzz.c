// SPDX-License-Identifier: Apache-2.0
// The scheduler configuration on arbitrary bytes: refused with a line, or read into something a
// session can rely on.

#include "fuzz/fuzz.h"
#include "scheduler/conf.h"

static void check(const struct conf *c)
{
    hk_assert(c->actions.len > 0);
    for (uint32_t i = 0; i < c->actions.len; i++) {
        hk_assert(c->actions.at[i].a != NULL);
        hk_assert(c->actions.at[i].args != NULL);
    }
    for (uint32_t i = 0; i < c->plugins.len; i++) {
        const struct conf_plugin *p = &c->plugins.at[i];
        hk_assert(p->tier < c->ntier);
        hk_assert(i == 0 || p[-1].tier <= p->tier);
        hk_assert(!p->p == !p->options);
        hk_assert(p->off >> HOOK_N == 0);
    }
    for (uint32_t i = 0; i < c->warnings.len; i++) {
        hk_assert(c->warnings.at[i].text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_err err = {0};
    struct conf *c = NULL;

    if (conf_parse((struct hk_str){(const char *)data, size}, &c, &err) < 0) {
        hk_assert(c == NULL);
        hk_assert(strncmp(err.text, "line ", 5) == 0);
        return 0;
    }
    check(c);
    conf_free(c);
    return 0;
}
