// SPDX-License-Identifier: Apache-2.0
// Rows with wrong checksums, found while a store is read. If a later row replaced such a row, only
// history is lost. If it is the last state of an object, that state is lost, and the store is
// refused.
#include "base/log.h"
#include "store/store_priv.h"

#include <inttypes.h>

void store_damaged_fini(struct store_damaged *d)
{
    for (uint32_t i = 0; i < d->rows.len; i++) {
        store_obj_unref(d->rows.at[i].by_columns);
        store_obj_unref(d->rows.at[i].by_text);
    }
    hk_vec_fini(&d->rows);
}

/* The same object with the names in its text, if readable. */
static struct store_obj *named_by_text(const struct store_obj *row)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct store_obj o = *row;
    struct json root;

    o.text = HK_STR("");
    if (json_parse(row->text, 0, &mem, &root, NULL) == 0 &&
        json_str(json_at(&root, "metadata.name"), HK_STR("")).n > 0) {
        o.ns = json_str(json_at(&root, "metadata.namespace"), HK_STR(""));
        o.name = json_str(json_at(&root, "metadata.name"), HK_STR(""));
    }
    return store_obj_new(&o);
}

void store_damaged_add(struct store_damaged *d, const struct store_obj *row)
{
    struct store_obj o = *row;

    o.text = HK_STR("");
    hk_vec_push(&d->rows, (struct store_damaged_row){.rv = row->rv,
                                                     .by_columns = store_obj_new(&o),
                                                     .by_text = named_by_text(row)});
}

static bool same_object(const struct store_obj *a, const struct store_obj *b)
{
    return a->res == b->res && hk_str_eq(a->ns, b->ns) && hk_str_eq(a->name, b->name);
}

void store_damaged_pass(struct store_damaged *d, const struct store_obj *row)
{
    for (uint32_t i = 0; i < d->rows.len; i++) {
        struct store_damaged_row *at = &d->rows.at[i];

        if (at->rv < row->rv) {
            at->superseded |= (same_object(at->by_columns, row) ? 1u : 0) |
                              (same_object(at->by_text, row) ? 2u : 0);
        }
    }
}

bool store_damaged_is_old(const struct store_damaged_row *row)
{
    return row->superseded == 3;
}

/* Text of a damaged row may be arbitrary; true if it can be a name. */
static bool write_doubtful(struct hk_str text, struct hk_buf *out)
{
    bool good = true;

    for (size_t i = 0; i < text.n; i++) {
        const bool prints = text.s[i] > ' ' && text.s[i] < 0x7f;

        hk_buf_addc(out, prints ? text.s[i] : '?');
        good &= prints;
    }
    return good;
}

void store_damaged_name(const struct store_damaged_row *row, const char *resource,
                        struct hk_buf *out)
{
    const struct store_obj *o = row->by_columns;

    bool good = o->name.n > 0 && same_object(o, row->by_text);

    hk_buf_addf(out, "%s ", resource);
    good &= write_doubtful(o->ns, out);
    hk_buf_adds(out, o->ns.n > 0 ? "/" : "");
    good &= write_doubtful(o->name, out);
    if (!good) {
        hk_buf_adds(out, " (the name may be damaged as well)");
    }
}

int store_damaged_check(const struct store_damaged *d, const char *(*res_name)(void *, uint32_t),
                        void *ctx, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};

    for (uint32_t i = 0; i < d->rows.len; i++) {
        const struct store_damaged_row *row = &d->rows.at[i];

        hk_buf_clear(&name);
        store_damaged_name(row, res_name(ctx, row->by_columns->res), &name);
        if (!store_damaged_is_old(row)) {
            return hk_fail(err, HK_EIO,
                           "revision %" PRIu64 " of %s is damaged: its checksum differs; 'hekla "
                           "check' lists the damage, 'hekla check --salvage' copies the intact "
                           "rest, 'hekla restore FILE' reads a backup",
                           row->rv, name.data);
        }
        hk_log(HK_LOG_WARN, "removing a damaged revision that a later one has replaced",
               "revision=%" PRIu64 " object=\"%s\"", row->rv, name.data);
    }
    return 0;
}
