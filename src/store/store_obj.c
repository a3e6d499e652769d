// SPDX-License-Identifier: Apache-2.0
// Objects as the whole store shares them: strings and numbers in one block, reference-counted.
#include "store/store_priv.h"

#include <stdatomic.h>

static struct hk_str copy_str(char **at, struct hk_str s)
{
    char *to = *at;

    if (s.n > 0) {
        memcpy(to, s.s, s.n);
    }
    to[s.n] = '\0';
    *at = to + s.n + 1;
    return (struct hk_str){to, s.n};
}

struct store_obj *store_obj_new(const struct store_obj *o)
{
    const size_t room = o->ns.n + o->name.n + o->uid.n + o->text.n + 4;
    struct store_obj *copy = hk_alloc(sizeof(*copy) + room);
    char *at = (char *)(copy + 1);

    atomic_init(&copy->refs, 1);
    copy->res = o->res;
    copy->rv = o->rv;
    copy->created_rv = o->created_rv;
    copy->ns = copy_str(&at, o->ns);
    copy->name = copy_str(&at, o->name);
    copy->uid = copy_str(&at, o->uid);
    copy->text = copy_str(&at, o->text);
    return copy;
}

struct store_obj *store_obj_ref(const struct store_obj *o)
{
    struct store_obj *mut = (struct store_obj *)o;

    atomic_fetch_add_explicit(&mut->refs, 1, memory_order_relaxed);
    return mut;
}

void store_obj_unref(const struct store_obj *o)
{
    struct store_obj *mut = (struct store_obj *)o;

    if (mut && atomic_fetch_sub_explicit(&mut->refs, 1, memory_order_acq_rel) == 1) {
        hk_free(mut);
    }
}
