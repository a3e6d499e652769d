// SPDX-License-Identifier: Apache-2.0
// What words of scenario lines do to a manifest, as far as kinds share it: plain values, lists,
// maps, amounts and ages.
#include "sim/scn_priv.h"

#include "api/names.h"
#include "codec/timefmt.h"

static struct hk_arena *mem(struct scn_edit *e)
{
    return &e->r->mem;
}

static struct json str(struct hk_str s)
{
    return json_make_str(s);
}

/* ---- trees ---- */

struct json *scn_need(struct json *doc, struct hk_arena *a, const char *path)
{
    struct hk_str rest = hk_str(path), part;

    while (hk_str_cut(&rest, '.', &part)) {
        struct json *v = (struct json *)json_get_str(doc, part);
        if (part.n == 0) {
            continue;
        }
        doc = json_is(v, JSON_OBJECT) ? v : json_put(doc, a, part, json_make_object());
    }
    return doc;
}

void scn_set_at(struct json *doc, struct hk_arena *a, const char *path, struct json v)
{
    const char *dot = strrchr(path, '.');

    if (dot) {
        doc = scn_need(doc, a, hk_arena_strndup(a, path, (size_t)(dot - path)));
        path = dot + 1;
    }
    json_put(doc, a, hk_str(path), v);
}

struct json *scn_need_list(struct json *doc, struct hk_arena *a, const char *path, const char *key)
{
    struct json *parent = scn_need(doc, a, path);
    struct json *v = (struct json *)json_get(parent, key);

    return json_is(v, JSON_ARRAY) ? v : json_put(parent, a, hk_str(key), json_make_array());
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
    scn_set_at(e->doc, mem(e), e->f->path, str(e->value));
    return 0;
}

int scn_set_int(struct scn_edit *e)
{
    int64_t v;

    if (!e->value.s || !hk_str_int(e->value, &v)) {
        return scn_bad_value(e, "a whole number");
    }
    scn_set_at(e->doc, mem(e), e->f->path, json_make_int(v));
    return 0;
}

static int read_bool(struct scn_edit *e, bool *ret)
{
    *ret = !e->value.s || hk_str_is(e->value, "true");
    return *ret || hk_str_is(e->value, "false") ? 0 : scn_bad_value(e, "true or false");
}

int scn_set_bool(struct scn_edit *e)
{
    bool v;
    const int rc = read_bool(e, &v);

    if (rc == 0) {
        scn_set_at(e->doc, mem(e), e->f->path, json_make_bool(v));
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
        json_push(&list, mem(e), str(part));
    }
    scn_set_at(e->doc, mem(e), e->f->path, list);
    return 0;
}

/* label:KEY=VALUE and its like. */
int scn_set_map(struct scn_edit *e)
{
    if (!e->value.s || e->rest.n == 0) {
        return scn_bad_value(e, "key=value");
    }
    json_put(scn_need(e->doc, mem(e), e->f->path), mem(e), e->rest, str(e->value));
    return 0;
}

/* An annotation named by the path; its value is text whatever it looks like. */
int scn_set_annotation(struct scn_edit *e)
{
    const struct hk_str value = e->value.s ? e->value : HK_STR("true");

    json_put(scn_need(e->doc, mem(e), "metadata.annotations"), mem(e), hk_str(e->f->path),
             str(value));
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

/* "cpu:4,mem:8Gi". Amounts are checked by those who read the object. */
int scn_set_resources(struct scn_edit *e)
{
    struct json list = json_make_object();
    struct hk_str rest = e->value, part, name;

    while (hk_str_cut(&rest, ',', &part)) {
        hk_str_cut(&part, ':', &name);
        if (!part.s || !scn_is_resource(name)) {
            return scn_bad_value(e, "amounts such as cpu:4,mem:8Gi");
        }
        json_put(&list, mem(e), scn_resource(name), str(part));
    }
    scn_set_at(e->doc, mem(e), e->f->path, list);
    return 0;
}

/* ---- times ---- */

struct json scn_time(struct scn_run *r, int64_t ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    time_write_micro(ns, &b);
    return str(hk_arena_str(&r->mem, hk_buf_str(&b)));
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
    scn_set_at(e->doc, mem(e), "metadata.creationTimestamp",
               scn_time(e->r, scn_creation_ns(e->r) - age));
    return 0;
}
