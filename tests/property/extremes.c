// SPDX-License-Identifier: Apache-2.0
// Extreme numbers: a manifest of a small cluster names every number, quantity, duration and time
// that the scheduler reads. Each of them in turn, then all of one object, then all of the same name,
// then every one of the cluster, takes each of the values at the ends of the ranges of integers,
// quantities, durations and times; the same is done with the options of plugins and actions. The
// objects go through the real ingest, cycles with every plugin and action run on them, and then they
// are deleted one by one. The API refuses some of these values, and a server older or newer
// than ours may not: none may end the scheduler, overflow (sanitizers tell) or unbalance its books.
//
//   hekla-property-extremes FILE [N]    a TAP point per object, and for options; of all trials every
//                                       Nth, 1 when not given
//   hekla-property-extremes FILE N -v   each trial as a comment, before it is made
#include "base/file.h"
#include "codec/timefmt.h"
#include "codec/yaml.h"
#include "sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>

enum { MANIFEST_MAX = 1 << 20, CYCLES = 2 };

#define EXTREMES_NOW "2026-01-02T18:00:00Z"

static const char *const numbers[] = {
    "-9223372036854775808", "-2147483648",          "-1",         "0",
    "2147483647",           "2147483648",           "4294967295", "9223372036854775806",
    "9223372036854775807",  "18446744073709551615", "1e300",      "0.5",
};

/* In the place of texts, beside the numbers above. */
static const char *const texts[] = {
    "99999999999999999999",
    "1n",
    "8Ei",
    "-8Ei",
    "1e400",
    "2562047h47m16.854775807s",
    "-2562047h47m16.854775808s",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9223372036854775807%",
    "1/9223372036854775807",
    "1/1e308",
    "",
};

enum { NUMBERS = HK_LEN(numbers), TEXTS = HK_LEN(texts) };

#define EXTREMES_PLUGINS                                                                           \
    "- plugins:\n  - name: priority\n  - name: gang\n  - name: conformance\n  - name: sla\n"       \
    "  - name: pdb\n- plugins:\n  - name: overcommit\n  - name: resourcequota\n"                   \
    "  - name: predicates\n  - name: nodeorder\n  - name: binpack\n"                               \
    "  - name: network-topology-aware\n"

static const char *const confs[] = {
    "actions: \"enqueue, allocate, preempt, reclaim, backfill\"\ntiers:\n" EXTREMES_PLUGINS
    "  - name: drf\n  - name: proportion\n",
    "actions: \"enqueue, allocate, gangpreempt, gangreclaim, backfill\"\ntiers:\n" EXTREMES_PLUGINS
    "  - name: capacity\n    enableHierarchy: true\n",
    "actions: \"enqueue, allocate, preempt, reclaim, shuffle\"\ntiers:\n" EXTREMES_PLUGINS
    "  - name: drf\n    enableHierarchy: true\n",
};

struct place {
    struct json *at, was;
    struct hk_str key; /* the name of the field, of the nearest object */
    uint32_t doc;
    char *path; /* "Queue q1: spec.weight" */
};

struct extremes {
    struct hk_arena mem;
    struct yaml_docs docs;
    HK_VEC(struct place) places;
    struct hk_buf original; /* the text of the documents as they were */
    int64_t now_ns;
    bool verbose;
    int64_t share; /* one trial of so many is made */
    int64_t trials;
    uint32_t points, failed, tried;
};

/* ---- places ---- */

/* Quantities, durations, times and shares in the manifest begin with a digit, names do not. */
static bool is_numeric(const struct json *v)
{
    const struct hk_str s = json_str(v, HK_STR(""));

    return v->type == JSON_INT || v->type == JSON_DOUBLE ||
           (s.n > 0 && s.s[0] >= '0' && s.s[0] <= '9');
}

static void add_places(struct extremes *x, struct json *v, uint32_t doc, const char *path,
                       struct hk_str key)
{
    if (v->type == JSON_OBJECT) {
        for (uint32_t k = 0; k < v->len; k++) {
            const struct hk_str name = v->members[k].key;
            add_places(x, &v->members[k].value, doc,
                       hk_arena_printf(&x->mem, "%s.%.*s", path, HK_FMT(name)), name);
        }
    } else if (v->type == JSON_ARRAY) {
        for (uint32_t k = 0; k < v->len; k++) {
            add_places(x, &v->items[k], doc, hk_arena_printf(&x->mem, "%s[%u]", path, k), key);
        }
    } else if (is_numeric(v)) {
        hk_vec_push(&x->places, ((struct place){v, *v, key, doc, (char *)path}));
    }
}

static void add_docs(struct extremes *x)
{
    for (uint32_t k = 0; k < x->docs.len; k++) {
        struct json *doc = &x->docs.at[k];
        const struct hk_str kind = json_str(json_get(doc, "kind"), HK_STR("?"));
        const struct hk_str name = json_str(json_at(doc, "metadata.name"), HK_STR("?"));
        add_places(x, doc, k, hk_arena_printf(&x->mem, "%.*s %.*s: ", HK_FMT(kind), HK_FMT(name)),
                   kind);
    }
}

/* Text i, or number i in one of the two shapes that a quantity has. */
static struct json extreme_value(struct extremes *x, uint32_t i, bool text)
{
    struct json v = {0};

    if (i >= NUMBERS) {
        return json_make_str(hk_str(texts[i - NUMBERS]));
    }
    if (text || json_parse(hk_str(numbers[i]), 0, &x->mem, &v, NULL) < 0) {
        return json_make_str(hk_str(numbers[i]));
    }
    return v;
}

static void place_set(struct extremes *x, struct place *p, uint32_t i)
{
    *p->at = extreme_value(x, i, p->was.type == JSON_STRING);
}

/* ---- one cluster ---- */

static void write_docs(const struct extremes *x, struct hk_buf *out)
{
    for (uint32_t k = 0; k < x->docs.len; k++) {
        json_write(&x->docs.at[k], out);
        hk_buf_adds(out, "\n---\n");
    }
}

static void delete_docs(const struct extremes *x, struct cluster *c)
{
    for (uint32_t k = 0; k < x->docs.len; k++) {
        const struct json *doc = &x->docs.at[k];
        const struct api_kind *kind =
            api_kind_find(json_str(json_get(doc, "apiVersion"), HK_STR("")),
                          json_str(json_get(doc, "kind"), HK_STR("")));
        ingest_del(c->in, kind, json_str(json_at(doc, "metadata.namespace"), HK_STR("default")),
                   json_str(json_at(doc, "metadata.name"), HK_STR("")));
    }
}

static int run_cycles(const struct extremes *x, struct cluster *c, struct hk_str text,
                      struct hk_err *err)
{
    int rc = cluster_load(c, text, "extremes", err);

    for (uint32_t k = 0; k < CYCLES && rc == 0; k++) {
        rc = cluster_cycle(c, err);
    }
    if (rc == 0) {
        delete_docs(x, c);
        rc = cluster_cycle(c, err);
    }
    return rc;
}

static int run_cluster(struct extremes *x, const char *conf_text, struct hk_str text,
                       struct hk_err *err)
{
    const struct cluster_opts o = {.now_ns = x->now_ns,
                                   .step_ns = 1000000000,
                                   .seed = 1,
                                   .shard_mode = SHARD_SOFT,
                                   .shard_name = HK_STR("mine")};
    struct conf *conf = NULL;
    struct cluster c;
    int rc = conf_parse(hk_str(conf_text), &conf, err);

    x->tried++;
    if (rc < 0) {
        return rc;
    }
    cluster_init(&c, conf, &o);
    rc = run_cycles(x, &c, text, err);
    cluster_fini(&c);
    conf_free(conf);
    return rc;
}

/* Whether it is the turn of the next trial. */
static bool extremes_turn(struct extremes *x)
{
    return x->trials++ % x->share == 0;
}

/* With one configuration after the other, since each cluster takes a while. */
static bool run_value(struct extremes *x, const char *what, const char *value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const size_t which = x->tried % HK_LEN(confs);
    struct hk_err err = {0};

    if (x->verbose) {
        printf("# %s = %s, configuration %zu\n", what, value, which);
        fflush(stdout);
    }
    write_docs(x, &text);
    if (run_cluster(x, confs[which], hk_buf_str(&text), &err) < 0) {
        printf("# %s = %s, configuration %zu: %s\n", what, value, which, err.text);
        return false;
    }
    return true;
}

/* ---- which places at a time ---- */

typedef bool place_is(const struct place *p, const struct place *like);

static bool place_is_same(const struct place *p, const struct place *like)
{
    return p == like;
}

static bool place_is_of_doc(const struct place *p, const struct place *like)
{
    return p->doc == like->doc;
}

static bool place_is_named(const struct place *p, const struct place *like)
{
    return hk_str_eq(p->key, like->key);
}

static bool place_is_any(const struct place *p, const struct place *like)
{
    return true;
}

/* Every place that is like the given one takes each value. */
static bool try_values(struct extremes *x, place_is *is, const struct place *like, const char *what)
{
    bool ok = true;

    for (uint32_t i = 0; i < NUMBERS + TEXTS; i++) {
        bool any = false;
        for (uint32_t k = 0; k < x->places.len; k++) {
            struct place *p = &x->places.at[k];
            if (is(p, like) && (i < NUMBERS || p->was.type == JSON_STRING)) {
                place_set(x, p, i);
                any = true;
            }
        }
        if (any && extremes_turn(x)) {
            ok &= run_value(x, what, i < NUMBERS ? numbers[i] : texts[i - NUMBERS]);
        }
        for (uint32_t k = 0; k < x->places.len; k++) {
            *x->places.at[k].at = x->places.at[k].was;
        }
    }
    return ok;
}

static void point(struct extremes *x, bool ok, const char *what)
{
    printf("%sok %u - %s\n", ok ? "" : "not ", ++x->points, what);
    fflush(stdout);
    x->failed += !ok;
}

static void try_objects(struct extremes *x)
{
    for (uint32_t k = 0; k < x->places.len;) {
        const struct place *first = &x->places.at[k];
        const int title = (int)strcspn(first->path, ":");
        bool ok = true;
        for (; k < x->places.len && x->places.at[k].doc == first->doc; k++) {
            ok &= try_values(x, place_is_same, &x->places.at[k], x->places.at[k].path);
        }
        ok &= try_values(x, place_is_of_doc, first, first->path);
        point(
            x, ok,
            hk_arena_printf(&x->mem, "%.*s: its numbers, one by one and all", title, first->path));
    }
}

/* Whether an earlier place has the name. */
static bool is_named_before(const struct extremes *x, uint32_t at)
{
    for (uint32_t k = 0; k < at; k++) {
        if (place_is_named(&x->places.at[k], &x->places.at[at])) {
            return true;
        }
    }
    return false;
}

static void try_names(struct extremes *x)
{
    bool ok = true;

    for (uint32_t k = 0; k < x->places.len; k++) {
        const struct place *p = &x->places.at[k];
        if (!is_named_before(x, k)) {
            ok &= try_values(x, place_is_named, p,
                             hk_arena_printf(&x->mem, "every %.*s", HK_FMT(p->key)));
        }
    }
    point(x, ok, "all numbers of the same name");
    point(x, try_values(x, place_is_any, NULL, "everything"), "all numbers of the cluster");
}

/* ---- options ---- */

/* The configuration with one option of a plugin or action. False: it does not have that one. */
static bool write_conf(struct hk_buf *out, const char *conf, const char *owner, bool action,
                       const char *key, const char *value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
    const char *at;

    hk_buf_addf(&name, action ? "%s" : "- name: %s\n", owner);
    at = strstr(conf, name.data);
    if (!at) {
        return false;
    }
    if (action) {
        hk_buf_addf(out, "%sconfigurations:\n- name: %s\n  arguments: {\"%s\": %s}\n", conf, owner,
                    key, value);
        return true;
    }
    hk_buf_addf(out, "%.*s%s    arguments: {\"%s\": %s}\n%s", (int)(at - conf), conf, name.data,
                key, value, at + name.len);
    return true;
}

/* A configuration may be refused, and then nothing runs. */
static bool run_option(struct extremes *x, const char *conf, const char *what, const char *value)
{
    struct hk_err err = {0};

    if (x->verbose) {
        printf("# %s = %s\n", what, value);
        fflush(stdout);
    }
    if (run_cluster(x, conf, hk_buf_str(&x->original), &err) < 0 && err.code != HK_EINVAL) {
        printf("# %s = %s: %s\n", what, value, err.text);
        return false;
    }
    return true;
}

static bool try_option(struct extremes *x, const char *owner, bool action, const struct opt *o)
{
    const char *key =
        o->type == OPT_PAIRS ? hk_arena_printf(&x->mem, "%snvidia.com/gpu", o->key) : o->key;
    bool ok = true;

    for (uint32_t i = 0; i < NUMBERS + TEXTS; i++) {
        const char *value =
            i < NUMBERS ? numbers[i] : hk_arena_printf(&x->mem, "\"%s\"", texts[i - NUMBERS]);
        for (size_t k = 0; k < HK_LEN(confs); k++) {
            HK_AUTO(hk_buf_fini) struct hk_buf conf = {0};
            if (write_conf(&conf, confs[k], owner, action, key, value) && extremes_turn(x)) {
                ok &=
                    run_option(x, conf.data, hk_arena_printf(&x->mem, "%s %s", owner, key), value);
            }
        }
    }
    return ok;
}

static bool try_options_of(struct extremes *x, const char *owner, bool action,
                           const struct opt *opts, uint32_t n)
{
    bool ok = true;

    for (uint32_t k = 0; k < n; k++) {
        if (opts[k].type == OPT_INT || opts[k].type == OPT_FLOAT || opts[k].type == OPT_DURATION ||
            opts[k].type == OPT_PAIRS) {
            ok &= try_option(x, owner, action, &opts[k]);
        }
    }
    return ok;
}

static void try_options(struct extremes *x)
{
    bool ok = true;

    for (uint32_t k = 0; k < plugin_table_len; k++) {
        const struct plugin *p = plugin_table[k];
        ok &= try_options_of(x, p->name, false, p->opts, p->nopt);
    }
    for (uint32_t k = 0; k < action_table_len; k++) {
        const struct action *a = action_table[k];
        ok &= try_options_of(x, a->name, true, a->opts, a->nopt);
    }
    point(x, ok, "options of plugins and actions");
}

/* ---- the whole ---- */

static int extremes_load(struct extremes *x, const char *path, struct hk_buf *text,
                         struct hk_err *err)
{
    int rc = hk_read_file(path, MANIFEST_MAX, text, err);

    if (rc == 0) {
        rc = yaml_parse(hk_buf_str(text), 0, &x->mem, &x->docs, err);
    }
    if (rc == 0) {
        rc = time_parse(HK_STR(EXTREMES_NOW), &x->now_ns, err);
    }
    if (rc == 0) {
        add_docs(x);
        write_docs(x, &x->original);
    }
    return rc;
}

int main(int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct extremes x = {.share = 1, .verbose = argc == 4 && strcmp(argv[3], "-v") == 0};
    struct hk_err err = {0};

    if (argc < 2 || argc > 4 || (argc == 4 && !x.verbose) ||
        (argc > 2 && (!hk_str_int(hk_str(argv[2]), &x.share) || x.share < 1))) {
        fprintf(stderr, "usage: hekla-property-extremes FILE [N [-v]]\n");
        return 2;
    }
    if (extremes_load(&x, argv[1], &text, &err) < 0) {
        fprintf(stderr, "hekla-property-extremes: %s\n", err.text);
        return 2;
    }
    try_objects(&x);
    try_names(&x);
    try_options(&x);
    printf("# %u numbers, %u clusters\n1..%u\n", x.places.len, x.tried, x.points);
    hk_vec_fini(&x.places);
    hk_buf_fini(&x.original);
    hk_arena_fini(&x.mem);
    return x.failed > 0;
}
