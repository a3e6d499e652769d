// SPDX-License-Identifier: Apache-2.0
// Converts values shared by all kinds into the model's form: strings to ids, selectors to lists of
// ids, quantities to integers. Results live in ingest.mem unless the function's name says copy.
#include "scheduler/ingest_priv.h"

_Static_assert((int)OP_IN == API_OP_IN && (int)OP_NOT_IN == API_OP_NOT_IN &&
                   (int)OP_EXISTS == API_OP_EXISTS && (int)OP_NOT_EXISTS == API_OP_NOT_EXISTS &&
                   (int)OP_GT == API_OP_GT && (int)OP_LT == API_OP_LT,
               "operators are taken over by number");

void ingest_clear(struct ingest *in)
{
    while (in->held.len > 0) {
        hk_intern_drop(&in->m->str, hk_vec_pop(&in->held));
    }
    hk_arena_clear(&in->mem);
}

struct hk_str ingest_ns(struct hk_str ns)
{
    return ns.n > 0 ? ns : HK_STR("default");
}

struct hk_str ingest_uid(struct ingest *in, const struct api_meta *meta)
{
    if (meta->uid.n > 0) {
        return meta->uid;
    }
    return hk_str(
        hk_arena_printf(&in->mem, "%.*s/%.*s", HK_FMT(ingest_ns(meta->ns)), HK_FMT(meta->name)));
}

uint32_t ingest_str(struct ingest *in, struct hk_str s)
{
    const uint32_t id = hk_intern_hold(&in->m->str, s);

    if (id != 0) {
        hk_vec_push(&in->held, id);
    }
    return id;
}

static int label_cmp(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

struct labels ingest_labels(struct ingest *in, const struct api_map *map)
{
    struct label *at = hk_arena_array(&in->mem, map->len, sizeof(*at));

    for (uint32_t k = 0; k < map->len; k++) {
        at[k] = (struct label){ingest_str(in, map->at[k].key), ingest_str(in, map->at[k].value)};
    }
    qsort(at, map->len, sizeof(*at), label_cmp);
    return (struct labels){.at = at, .n = map->len};
}

static int id_cmp(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

const uint32_t *ingest_ids(struct ingest *in, const struct api_strs *s)
{
    uint32_t *at = hk_arena_array(&in->mem, s->len, sizeof(*at));

    for (uint32_t k = 0; k < s->len; k++) {
        at[k] = ingest_str(in, s->at[k]);
    }
    qsort(at, s->len, sizeof(*at), id_cmp);
    return at;
}

struct label_req ingest_req(struct ingest *in, const struct api_requirement *r)
{
    const bool compares = r->op == API_OP_GT || r->op == API_OP_LT;

    return (struct label_req){
        .key = ingest_str(in, r->key),
        .op = (uint8_t)r->op,
        .n = compares ? 0 : r->values.len,
        .vals = compares ? NULL : ingest_ids(in, &r->values),
        .num = compares ? r->operand : 0,
    };
}

static struct label_req *reqs(struct ingest *in, const struct api_requirement *at, uint32_t n)
{
    struct label_req *ret = hk_arena_array(&in->mem, n, sizeof(*ret));

    for (uint32_t k = 0; k < n; k++) {
        ret[k] = ingest_req(in, &at[k]);
    }
    return ret;
}

struct label_sel ingest_sel(struct ingest *in, const struct api_selector *s)
{
    return (struct label_sel){.nothing = !s->present, .n = s->len, .at = reqs(in, s->at, s->len)};
}

/* An unknown field is "" on every node, so the answer is known here. */
static bool blank_matches(const struct api_requirement *r)
{
    return (r->op == API_OP_IN) == (r->values.at[0].n == 0);
}

static void term_fields(struct ingest *in, const struct api_node_term *t, struct node_term *ret)
{
    struct label_req *field = hk_arena_array(&in->mem, t->fields.len, sizeof(*field));

    for (uint32_t k = 0; k < t->fields.len; k++) {
        const struct api_requirement *r = &t->fields.at[k];
        field[k] = ingest_req(in, r);
        if (!hk_str_is(r->key, "metadata.name")) {
            ret->never |= !blank_matches(r);
            /* Matches every node: no node's name is empty. */
            field[k] =
                (struct label_req){.key = ingest_str(in, HK_STR("metadata.name")), .op = OP_NOT_IN};
        }
    }
    ret->field = field;
    ret->nfield = t->fields.len;
}

struct node_term ingest_term(struct ingest *in, const struct api_node_term *t)
{
    struct node_term ret = {.weight = t->weight};

    if (t->erroneous || t->exprs.len + t->fields.len == 0) {
        ret.never = true;
        return ret;
    }
    ret.req = reqs(in, t->exprs.at, t->exprs.len);
    ret.nreq = t->exprs.len;
    term_fields(in, t, &ret);
    return ret;
}

uint8_t ingest_effect(enum api_taint_effect e)
{
    switch (e) {
    case API_EFFECT_NO_SCHEDULE:
        return EFFECT_NO_SCHEDULE;
    case API_EFFECT_PREFER_NO_SCHEDULE:
        return EFFECT_PREFER_NO_SCHEDULE;
    case API_EFFECT_NO_EXECUTE:
        return EFFECT_NO_EXECUTE;
    case API_EFFECT_ANY:
        break;
    }
    return EFFECT_OTHER;
}

struct label_sel ingest_sel_copy(const struct label_sel *s)
{
    size_t nval = 0;
    struct label_req *at;
    uint32_t *vals;

    for (uint32_t k = 0; k < s->n; k++) {
        nval += s->at[k].n;
    }
    at = hk_alloc(s->n * sizeof(*at) + nval * sizeof(*vals));
    vals = (uint32_t *)(at + s->n);
    for (uint32_t k = 0; k < s->n; k++) {
        at[k] = s->at[k];
        at[k].vals = vals;
        for (uint32_t i = 0; i < at[k].n; i++) {
            *vals++ = s->at[k].vals[i];
        }
    }
    return (struct label_sel){.nothing = s->nothing, .n = s->n, .at = at};
}

static bool req_same(const struct label_req *a, const struct label_req *b)
{
    if (a->key != b->key || a->op != b->op || a->n != b->n || a->num != b->num) {
        return false;
    }
    for (uint32_t k = 0; k < a->n; k++) {
        if (a->vals[k] != b->vals[k]) {
            return false;
        }
    }
    return true;
}

bool ingest_sel_same(const struct label_sel *a, const struct label_sel *b)
{
    if (a->nothing != b->nothing || a->n != b->n) {
        return false;
    }
    for (uint32_t k = 0; k < a->n; k++) {
        if (!req_same(&a->at[k], &b->at[k])) {
            return false;
        }
    }
    return true;
}

int ingest_amount(struct ingest *in, const struct api_resource *r, struct amount *ret,
                  struct hk_err *err)
{
    uint32_t dim;
    int64_t v;
    int rc = model_dim(in->m, r->name, &dim, err);

    if (rc < 0) {
        return rc;
    }
    if (dim == HK_NONE) {
        *ret = (struct amount){.dim = HK_NONE};
        return 0;
    }
    v = in->m->dims.unit[dim] == DIM_MILLI ? quantity_milli(r->q) : quantity_value(r->q);
    if (v < 0 || v > DIM_LIMIT) {
        HK_AUTO(hk_buf_fini) struct hk_buf seen = {0};
        quantity_write(r->q, &seen);
        return hk_fail(err, HK_EINVAL, "%.*s: quantity '%s', want 0 to %lld %s", HK_FMT(r->name),
                       seen.data, (long long)DIM_LIMIT,
                       in->m->dims.unit[dim] == DIM_MILLI ? "thousandths" : "units");
    }
    *ret = (struct amount){.dim = dim, .v = v};
    return 0;
}

int ingest_amounts(struct ingest *in, const struct api_resources *r, struct amount **ret,
                   uint32_t *ret_n, struct hk_err *err)
{
    struct amount *at = hk_arena_array(&in->mem, r->len, sizeof(*at));
    uint32_t n = 0;

    for (uint32_t k = 0; k < r->len; k++) {
        int rc = ingest_amount(in, &r->at[k], &at[n], err);
        if (rc < 0) {
            return rc;
        }
        n += at[n].dim != HK_NONE;
    }
    *ret = at;
    *ret_n = n;
    return 0;
}

bool ingest_parse_bool(struct hk_str s, bool *ret)
{
    static const char *const words[2][6] = {{"0", "f", "F", "false", "FALSE", "False"},
                                            {"1", "t", "T", "true", "TRUE", "True"}};

    for (uint32_t v = 0; v < 2; v++) {
        for (uint32_t k = 0; k < HK_LEN(words[v]); k++) {
            if (hk_str_is(s, words[v][k])) {
                *ret = v == 1;
                return true;
            }
        }
    }
    return false;
}

const struct hk_str *ingest_ann_or_label(const struct api_meta *meta, struct hk_str key)
{
    const struct hk_str *v = api_map_get(&meta->annotations, key);

    return v ? v : api_map_get(&meta->labels, key);
}
