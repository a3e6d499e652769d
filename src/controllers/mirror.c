// SPDX-License-Identifier: Apache-2.0
// Rows of API objects, updated by list and watch and by the answers to this process's own writes.
// mirror.h explains the design; comments at each update give the rules that keep it correct.
#include "controllers/mirror.h"

#include "base/log.h"

struct row {
    uint32_t ns, name, uid; /* string ids, held; name 0: free row */
    uint64_t rv;
    char *text; /* or NULL */
    uint32_t text_len;
    bool ghost;     /* deleted, but the watch has not confirmed it */
    uint32_t round; /* feed.round when the feed last showed the object */
    uint32_t word[MIRROR_NINDEX], next[MIRROR_NINDEX], prev[MIRROR_NINDEX];
};

struct listener {
    mirror_listener *fn;
    void *ctx;
};

struct mirror {
    struct mirror_opts o;
    const struct api_kind *kind;
    struct feed feed;
    HK_VEC(struct row) rows;
    HK_VEC(uint32_t) vacant;
    size_t digest_size;
    char *digests; /* [ndigest][digest_size] */
    uint32_t ndigest;
    struct hk_map at;                   /* names to row */
    struct hk_map heads[MIRROR_NINDEX]; /* index word to its first row */
    HK_VEC(struct listener) listeners;
    uint32_t live;       /* rows without ghosts */
    char *ns, *selector; /* scope of the feed */
    void *fresh;         /* buffer for the next digest */
    struct hk_arena mem; /* holds root */
    struct json root;    /* tree of the last object that arrived as text */
};

static void *digest_at(const struct mirror *m, uint32_t row)
{
    return m->digests + (size_t)row * m->digest_size;
}

static void drop_digest(const struct mirror *m, void *digest)
{
    if (m->o.type->drop) {
        m->o.type->drop(digest);
    }
}

/* ---- index words ---- */

static void mirror_index_remove(struct mirror *m, uint32_t row, unsigned k)
{
    struct row *r = &m->rows.at[row];

    if (r->word[k] == 0) {
        return;
    }
    if (r->prev[k] != HK_NONE) {
        m->rows.at[r->prev[k]].next[k] = r->next[k];
    } else if (r->next[k] != HK_NONE) {
        hk_map_put(&m->heads[k], r->word[k], r->next[k]);
    } else {
        hk_map_del(&m->heads[k], r->word[k]);
    }
    if (r->next[k] != HK_NONE) {
        m->rows.at[r->next[k]].prev[k] = r->prev[k];
    }
    hk_intern_drop(m->o.str, r->word[k]);
    r->word[k] = 0;
}

static void file_under(struct mirror *m, uint32_t row, unsigned k, struct hk_str word)
{
    struct row *r = &m->rows.at[row];
    uint32_t head;

    if (hk_str_eq(hk_intern_str(m->o.str, r->word[k]), word)) {
        return;
    }
    mirror_index_remove(m, row, k);
    if (word.n == 0) {
        return;
    }
    r->word[k] = hk_intern_hold(m->o.str, word);
    head = hk_map_get(&m->heads[k], r->word[k]);
    r->prev[k] = HK_NONE;
    r->next[k] = head;
    if (head != HK_NONE) {
        m->rows.at[head].prev[k] = row;
    }
    hk_map_put(&m->heads[k], r->word[k], row);
}

static void file_all(struct mirror *m, uint32_t row, const struct json *root)
{
    for (unsigned k = 0; k < MIRROR_NINDEX && m->o.type->index[k]; k++) {
        file_under(m, row, k, root ? m->o.type->index[k](root) : HK_STR(""));
    }
}

/* ---- rows ---- */

static uint64_t mirror_intern_key(uint32_t ns, uint32_t name)
{
    return (uint64_t)ns << 32 | name;
}

static uint32_t find_any(const struct mirror *m, struct hk_str ns, struct hk_str name)
{
    const uint32_t a = hk_intern_find(m->o.str, ns), b = hk_intern_find(m->o.str, name);

    return a == HK_NONE || b == HK_NONE ? HK_NONE : hk_map_get(&m->at, mirror_intern_key(a, b));
}

static uint32_t new_row(struct mirror *m, const struct api_object *o)
{
    uint32_t row;

    if (m->vacant.len > 0) {
        row = hk_vec_pop(&m->vacant);
    } else {
        row = m->rows.len;
        hk_vec_push(&m->rows, (struct row){0});
        if (row >= m->ndigest) {
            m->digests = hk_vec_grow(m->digests, &m->ndigest, row + 1, m->digest_size);
        }
    }
    m->rows.at[row] = (struct row){.ns = hk_intern_hold(m->o.str, o->ns),
                                   .name = hk_intern_hold(m->o.str, o->name),
                                   .ghost = true};
    memset(digest_at(m, row), 0, m->digest_size);
    hk_map_put(&m->at, mirror_intern_key(m->rows.at[row].ns, m->rows.at[row].name), row);
    return row;
}

static void free_row(struct mirror *m, uint32_t row)
{
    struct row *r = &m->rows.at[row];

    file_all(m, row, NULL);
    hk_map_del(&m->at, mirror_intern_key(r->ns, r->name));
    hk_intern_drop(m->o.str, r->ns);
    hk_intern_drop(m->o.str, r->name);
    hk_intern_drop(m->o.str, r->uid);
    hk_free(r->text);
    *r = (struct row){0};
    hk_vec_push(&m->vacant, row);
}

static void keep_text(struct row *r, const struct api_object *o, bool keep)
{
    struct hk_buf text = {0};

    hk_free(r->text);
    r->text = NULL;
    r->text_len = 0;
    if (!keep) {
        return;
    }
    if (o->text.n > 0) {
        r->text = hk_strndup(o->text.s, o->text.n);
        r->text_len = (uint32_t)o->text.n;
    } else {
        json_write(&o->root, &text);
        r->text = text.data;
        r->text_len = (uint32_t)text.len;
    }
}

static void mirror_notify_listeners(const struct mirror *m, uint32_t row, const void *old,
                                    const void *now, const struct json *root)
{
    const struct mirror_change ch = {(struct mirror *)m, row, old, now, root, !m->feed.synced};

    for (uint32_t k = 0; k < m->listeners.len; k++) {
        m->listeners.at[k].fn(m->listeners.at[k].ctx, &ch);
    }
}

static void hide(struct mirror *m, uint32_t row)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct row *r = &m->rows.at[row];
    struct json root = {0};

    if (r->ghost) {
        return;
    }
    if (r->text && m->listeners.len > 0) {
        root = mirror_read(m, row, &a);
    }
    r->ghost = true;
    m->live--;
    mirror_notify_listeners(m, row, digest_at(m, row), NULL, r->text ? &root : NULL);
    file_all(m, row, NULL);
    drop_digest(m, digest_at(m, row));
    memset(digest_at(m, row), 0, m->digest_size);
    keep_text(r, NULL, false);
}

/* Objects arrive as text, because many are echoes of our own writes that need no tree. NULL when
 * the text is not valid. */
static const struct json *tree_of(struct mirror *m, const struct api_object *o)
{
    struct hk_err err = {0};

    if (o->root.type != JSON_NULL) {
        return &o->root;
    }
    hk_arena_clear(&m->mem);
    if (json_parse(o->text, 0, &m->mem, &m->root, &err) < 0) {
        hk_log(HK_LOG_WARN, "object skipped", "kind=%s name=%.*s/%.*s err=\"%s\"", m->kind->plural,
               HK_FMT(o->ns), HK_FMT(o->name), err.text);
        return NULL;
    }
    return &m->root;
}

/* The object's row; HK_NONE for an invalid object without a row. */
static uint32_t mirror_accept_object(struct mirror *m, const struct api_object *o)
{
    const struct json *root = tree_of(m, o);
    const size_t size = m->digest_size;
    uint32_t row = find_any(m, o->ns, o->name);
    bool keep = true, is_new;
    struct row *r;

    if (!root) {
        return row;
    }
    if (row != HK_NONE && !hk_str_eq(mirror_uid(m, row), o->uid)) {
        hide(m, row); /* another object of the same name */
    }
    if (row == HK_NONE) {
        row = new_row(m, o);
    }
    r = &m->rows.at[row];
    if (r->uid == 0 || !hk_str_eq(mirror_uid(m, row), o->uid)) {
        hk_intern_drop(m->o.str, r->uid);
        r->uid = hk_intern_hold(m->o.str, o->uid);
    }
    is_new = r->ghost;
    r->ghost = false;
    m->live += is_new;
    r->rv = o->rv;
    if (m->o.type->digest) {
        memset(m->fresh, 0, size);
        keep = m->o.type->digest(root, m->fresh);
    }
    keep_text(r, o, keep);
    file_all(m, row, root);

    /* Swap the digests: listeners see the new one in the row, and fresh holds the old one. */
    for (size_t i = 0; i < size; i++) {
        char *a = (char *)m->fresh + i, *b = (char *)digest_at(m, row) + i, c = *a;

        *a = *b;
        *b = c;
    }
    mirror_notify_listeners(m, row, is_new ? NULL : m->fresh, digest_at(m, row), root);
    if (!is_new) {
        drop_digest(m, m->fresh);
    }
    return row;
}

/* ---- from the API ---- */

static void mirror_on_put(void *ctx, struct api_object *o)
{
    struct mirror *m = ctx;
    uint32_t row = find_any(m, o->ns, o->name);

    /* Ignore echoes of our own writes, and objects already known to be deleted. */
    if (row == HK_NONE || !hk_str_eq(mirror_uid(m, row), o->uid) ||
        (!m->rows.at[row].ghost && o->rv > m->rows.at[row].rv)) {
        row = mirror_accept_object(m, o);
    }
    if (row != HK_NONE) {
        m->rows.at[row].round = m->feed.round;
    }
}

static void mirror_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                          const struct api_object *last)
{
    struct mirror *m = ctx;
    const uint32_t row = find_any(m, ns, name);

    /* The answer to a create can arrive before the watch reports the end of an older object of that
     * name. Objects missing from a list are left to mirror_on_listed. */
    if (row == HK_NONE || !last || !hk_str_eq(mirror_uid(m, row), last->uid)) {
        return;
    }
    hide(m, row);
    free_row(m, row);
}

/* An object older than the list and not on it is gone, even if no watch ever showed it. */
static void mirror_on_listed(void *ctx)
{
    struct mirror *m = ctx;

    for (uint32_t row = 0; row < m->rows.len; row++) {
        const struct row *r = &m->rows.at[row];

        if (r->name != 0 && r->round != m->feed.round && r->rv <= m->feed.rv) {
            hide(m, row);
            free_row(m, row);
        }
    }
}

static const struct feed_ops fed = {mirror_on_put, mirror_on_del, mirror_on_listed};

/* Whether the watch has already passed the revision of the answer. */
static bool is_old_news(const struct mirror *m, const struct api_object *o)
{
    return o->rv <= m->feed.rv;
}

void mirror_wrote(struct mirror *m, struct api_object *o)
{
    const uint32_t row = find_any(m, o->ns, o->name);

    if (is_old_news(m, o) || (row != HK_NONE && o->rv <= m->rows.at[row].rv)) {
        return;
    }
    (void)mirror_accept_object(m, o);
}

void mirror_gone(struct mirror *m, struct hk_str ns, struct hk_str name, struct hk_str uid)
{
    const uint32_t row = find_any(m, ns, name);

    if (row != HK_NONE && (uid.n == 0 || hk_str_eq(mirror_uid(m, row), uid))) {
        hide(m, row);
    }
}

/* ---- reading ---- */

static uint32_t visible(const struct mirror *m, uint32_t row)
{
    return row == HK_NONE || m->rows.at[row].ghost ? HK_NONE : row;
}

uint32_t mirror_find(const struct mirror *m, struct hk_str ns, struct hk_str name)
{
    return visible(m, find_any(m, ns, name));
}

uint32_t mirror_first(const struct mirror *m, unsigned index, struct hk_str word)
{
    const uint32_t id = hk_intern_find(m->o.str, word);

    return id == HK_NONE || id == 0 ? HK_NONE : hk_map_get(&m->heads[index], id);
}

uint32_t mirror_next(const struct mirror *m, unsigned index, uint32_t row)
{
    return m->rows.at[row].next[index];
}

uint32_t mirror_scan(const struct mirror *m, uint32_t row)
{
    for (row = row == HK_NONE ? 0 : row + 1; row < m->rows.len; row++) {
        if (m->rows.at[row].name != 0 && !m->rows.at[row].ghost) {
            return row;
        }
    }
    return HK_NONE;
}

struct hk_str mirror_ns(const struct mirror *m, uint32_t row)
{
    return hk_intern_str(m->o.str, m->rows.at[row].ns);
}

struct hk_str mirror_name(const struct mirror *m, uint32_t row)
{
    return hk_intern_str(m->o.str, m->rows.at[row].name);
}

struct hk_str mirror_uid(const struct mirror *m, uint32_t row)
{
    return hk_intern_str(m->o.str, m->rows.at[row].uid);
}

struct hk_str mirror_word(const struct mirror *m, unsigned index, uint32_t row)
{
    return hk_intern_str(m->o.str, m->rows.at[row].word[index]);
}

uint64_t mirror_rv(const struct mirror *m, uint32_t row)
{
    return m->rows.at[row].rv;
}

const void *mirror_digest(const struct mirror *m, uint32_t row)
{
    return digest_at(m, row);
}

struct json mirror_read(const struct mirror *m, uint32_t row, struct hk_arena *a)
{
    const struct row *r = &m->rows.at[row];
    struct json root;
    int rc;

    hk_assert(r->text);
    rc = json_parse((struct hk_str){r->text, r->text_len}, 0, a, &root, NULL);
    hk_assert(rc == 0); /* it was parsed before */
    return root;
}

bool mirror_has_text(const struct mirror *m, uint32_t row)
{
    return m->rows.at[row].text != NULL;
}

uint32_t mirror_len(const struct mirror *m)
{
    return m->live;
}

const struct api_kind *mirror_kind(const struct mirror *m)
{
    return m->kind;
}

/* ---- open and close ---- */

/* Field selector for the server; "" selects every object. */
static char *selector_of(struct hk_str name)
{
    struct hk_buf text = {0};

    if (name.n > 0) {
        hk_buf_addf(&text, "metadata.name=%.*s", HK_FMT(name));
    }
    return text.data ? text.data : hk_strndup("", 0);
}

struct mirror *mirror_new(const struct mirror_opts *o)
{
    struct mirror *m = hk_zalloc(sizeof(*m));

    m->o = *o;
    m->kind = api_kind(o->type->kind);
    m->digest_size = HK_MAX(o->type->digest_size, 1);
    m->fresh = hk_zalloc(m->digest_size);
    m->ns = hk_strndup(o->ns.s, o->ns.n);
    m->selector = selector_of(o->name);
    feed_init(&m->feed, &(struct feed_opts){.port = o->port,
                                            .clock = o->clock,
                                            .str = o->str,
                                            .kind = m->kind,
                                            .required = o->type->required,
                                            .text_only = true,
                                            .ns = hk_str(m->ns),
                                            .field_selector = hk_str(m->selector),
                                            .ops = &fed,
                                            .ctx = m});
    return m;
}

void mirror_listen(struct mirror *m, mirror_listener *fn, void *ctx)
{
    hk_vec_push(&m->listeners, (struct listener){fn, ctx});
}

int64_t mirror_tick(struct mirror *m, int64_t now_ns)
{
    return feed_tick(&m->feed, now_ns);
}

bool mirror_synced(const struct mirror *m)
{
    return m->feed.synced;
}

void mirror_free(struct mirror *m)
{
    if (!m) {
        return;
    }
    m->listeners.len = 0;
    feed_fini(&m->feed);
    for (uint32_t row = 0; row < m->rows.len; row++) {
        if (m->rows.at[row].name != 0) {
            hide(m, row);
            free_row(m, row);
        }
    }
    for (unsigned k = 0; k < MIRROR_NINDEX; k++) {
        hk_map_fini(&m->heads[k]);
    }
    hk_map_fini(&m->at);
    hk_vec_fini(&m->rows);
    hk_vec_fini(&m->vacant);
    hk_vec_fini(&m->listeners);
    hk_free(m->digests);
    hk_free(m->fresh);
    hk_free(m->ns);
    hk_free(m->selector);
    hk_arena_fini(&m->mem);
    hk_free(m);
}
