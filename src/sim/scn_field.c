// SPDX-License-Identifier: Apache-2.0
// Field setters that several kinds share: plain values, lists, maps, amounts and ages from words of
// a scenario line into a manifest.
#include "sim/scn_priv.h"

#include "api/names.h"
#include "codec/timefmt.h"

static struct hk_arena *scn_field_arena(struct scn_edit *e)
{
    return &e->r->mem;
}

/* ---- plain values ---- */

int scn_bad_value(struct scn_edit *e, const char *want)
{
    return scn_fail(e->r, e->err, "'%s%.*s' is '%.*s', want %s", e->f->key ? e->f->key : "",
                    HK_FMT(e->rest), HK_FMT(e->value.s ? e->value : HK_STR("")), want);
}

int scn_set_str(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "a value");
    }
    json_set_at(e->doc, scn_field_arena(e), e->f->path, json_make_str(e->value));
    return 0;
}

int scn_set_int(struct scn_edit *e)
{
    int64_t v;

    if (!e->value.s || !hk_str_int(e->value, &v)) {
        return scn_bad_value(e, "a whole number");
    }
    json_set_at(e->doc, scn_field_arena(e), e->f->path, json_make_int(v));
    return 0;
}

static int scn_field_read_bool(struct scn_edit *e, bool *ret)
{
    *ret = !e->value.s || hk_str_is(e->value, "true");
    return *ret || hk_str_is(e->value, "false") ? 0 : scn_bad_value(e, "true or false");
}

int scn_set_bool(struct scn_edit *e)
{
    bool v;
    const int rc = scn_field_read_bool(e, &v);

    if (rc == 0) {
        json_set_at(e->doc, scn_field_arena(e), e->f->path, json_make_bool(v));
    }
    return rc;
}

/* "a,b" as a list of strings. */
int scn_set_list(struct scn_edit *e)
{
    struct json list = json_make_array();
    struct hk_str rest = e->value, part;

    if (!e->value.s) {
        return scn_bad_value(e, "names with commas between");
    }
    while (hk_str_cut(&rest, ',', &part)) {
        json_push(&list, scn_field_arena(e), json_make_str(part));
    }
    json_set_at(e->doc, scn_field_arena(e), e->f->path, list);
    return 0;
}

/* label:KEY=VALUE and similar. */
int scn_set_map(struct scn_edit *e)
{
    if (!e->value.s || e->rest.n == 0) {
        return scn_bad_value(e, "key=value");
    }
    json_put(json_need_at(e->doc, scn_field_arena(e), e->f->path, JSON_OBJECT), scn_field_arena(e),
             e->rest, json_make_str(e->value));
    return 0;
}

/* Sets the annotation named by the path; its value is always a string. */
int scn_set_annotation(struct scn_edit *e)
{
    const struct hk_str value = e->value.s ? e->value : HK_STR("true");

    json_set_str(json_need_at(e->doc, scn_field_arena(e), "metadata.annotations", JSON_OBJECT),
                 scn_field_arena(e), e->f->path, value);
    return 0;
}

/* ---- resources ---- */

struct hk_str scn_resource(struct hk_str word)
{
    return hk_str_is(word, "mem") ? HK_STR(API_RES_MEMORY) : word;
}

bool scn_is_resource(struct hk_str word)
{
    static const char *const names[] = {"cpu",  "mem",     "memory",
                                        "pods", "storage", "ephemeral-storage"};

    for (size_t k = 0; k < HK_LEN(names); k++) {
        if (hk_str_is(word, names[k])) {
            return true;
        }
    }
    return hk_str_starts(word, "hugepages-") || memchr(word.s, '/', word.n) != NULL;
}

/* "cpu:4,mem:8Gi". The decoders check the amounts. */
int scn_set_resources(struct scn_edit *e)
{
    struct json list = json_make_object();
    struct hk_str rest = e->value, part, name;

    while (hk_str_cut(&rest, ',', &part)) {
        hk_str_cut(&part, ':', &name);
        if (!part.s || !scn_is_resource(name)) {
            return scn_bad_value(e, "amounts such as cpu:4,mem:8Gi");
        }
        json_put(&list, scn_field_arena(e), scn_resource(name), json_make_str(part));
    }
    json_set_at(e->doc, scn_field_arena(e), e->f->path, list);
    return 0;
}

/* ---- times ---- */

struct json scn_time(struct scn_run *r, int64_t ns)
{
    return json_make_micro_time(ns, &r->mem);
}

int64_t scn_creation_ns(const struct scn_run *r)
{
    return r->c.now_ns + (int64_t)r->made * 1000;
}

int scn_set_age(struct scn_edit *e)
{
    int64_t age;

    if (!e->value.s || duration_parse(e->value, &age, NULL) < 0 || age < 0 ||
        age > scn_creation_ns(e->r)) {
        return scn_bad_value(e, "a duration such as 5m");
    }
    json_set_at(e->doc, scn_field_arena(e), "metadata.creationTimestamp",
                scn_time(e->r, scn_creation_ns(e->r) - age));
    return 0;
}
