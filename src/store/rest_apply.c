// SPDX-License-Identifier: Apache-2.0
// Server-side apply: a manager sends the fields it wants, and the server records which manager set
// which field. A field that another manager owns with a different value is a conflict, unless the
// apply is forced. A field that the manager no longer sends is removed when no other manager owns
// it.
//
// Objects that were never applied have no managedFields: recording every writer of every object
// would double their size without a use.
#include "store/rest_priv.h"

/* One entry of managedFields while it is processed. */
struct manager {
    struct hk_str name, operation, version, sub, time;
    struct json fields;
    struct json dispute; /* fields that the apply wants to change */
};

struct managers {
    struct rest_call *c;
    HK_VEC(struct manager) at;
};

static struct hk_str entry_str(const struct json *entry, const char *key)
{
    return json_str(json_get(entry, key), HK_STR(""));
}

static void managers_read(struct managers *all, const struct json *doc)
{
    const struct json *list = json_at(doc, "metadata.managedFields");

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *e = &list->items[i];
        const struct json *fields = json_get(e, "fieldsV1");
        const struct manager m = {
            .name = entry_str(e, "manager"),
            .operation = entry_str(e, "operation"),
            .version = entry_str(e, "apiVersion"),
            .sub = entry_str(e, "subresource"),
            .time = entry_str(e, "time"),
            .fields = json_is(fields, JSON_OBJECT) ? *fields : json_make_object(),
            .dispute = json_make_object(),
        };
        hk_vec_push(&all->at, m);
    }
}

/* The caller's own entry. Creates a missing one. */
static struct manager *managers_own(struct managers *all, const char *operation, const char *sub)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
    struct rest_call *c = all->c;
    const struct hk_str name =
        c->req && c->req->field_manager.n > 0 ? c->req->field_manager : HK_STR("unknown");

    api_kind_write_version(rest_kind_by_res(c->r, c->k->res)->kind, &version);
    for (uint32_t i = 0; i < all->at.len; i++) {
        struct manager *m = &all->at.at[i];
        if (hk_str_eq(m->name, name) && hk_str_is(m->operation, operation) &&
            hk_str_is(m->sub, sub ? sub : "") && hk_str_eq(m->version, hk_buf_str(&version))) {
            return m;
        }
    }
    const struct manager own = {
        .name = hk_arena_str(&c->mem, name),
        .operation = hk_str(operation),
        .version = hk_arena_str(&c->mem, hk_buf_str(&version)),
        .sub = hk_str(sub ? sub : ""),
        .fields = json_make_object(),
        .dispute = json_make_object(),
    };
    hk_vec_push(&all->at, own);
    return &all->at.at[all->at.len - 1];
}

/* The time of an entry changes only when its fields do. */
static void manager_set(struct rest_call *c, struct manager *m, struct json fields)
{
    struct json now = json_make_object();

    if (m->time.n == 0 || !json_equal(&m->fields, &fields)) {
        json_set_time(&now, &c->mem, "time", rest_now(c->r));
        m->time = json_str(json_get(&now, "time"), HK_STR(""));
    }
    m->fields = fields;
}

static struct json managers_write(struct managers *all)
{
    struct hk_arena *a = &all->c->mem;
    struct json list = json_make_array();

    for (uint32_t i = 0; i < all->at.len; i++) {
        const struct manager *m = &all->at.at[i];
        struct json e = json_make_object();
        if (m->fields.len == 0) {
            continue;
        }
        json_set_str(&e, a, "manager", m->name);
        json_set_str(&e, a, "operation", m->operation);
        json_set_str(&e, a, "apiVersion", m->version);
        json_set_str(&e, a, "time", m->time);
        json_set_cstr(&e, a, "fieldsType", "FieldsV1");
        json_set(&e, a, "fieldsV1", m->fields);
        if (m->sub.n > 0) {
            json_set_str(&e, a, "subresource", m->sub);
        }
        json_push(&list, a, e);
    }
    return list;
}

void rest_apply_note(struct rest_call *c, const char *sub, struct json *doc, const struct json *old)
{
    struct managers all = {.c = c};
    struct json changed;
    struct json gone;

    managers_read(&all, old);
    if (all.at.len > 0) {
        fields_diff(fields_root(rest_kind_by_res(c->r, c->k->res)), old, doc, &changed, &gone,
                    &c->mem);
    }
    if (all.at.len > 0 && (changed.len > 0 || gone.len > 0)) {
        const struct json touched = fields_union(&changed, &gone, &c->mem);
        for (uint32_t i = 0; i < all.at.len; i++) {
            struct manager *m = &all.at.at[i];
            manager_set(c, m, fields_minus(&m->fields, &touched, &c->mem));
        }
        struct manager *own = managers_own(&all, "Update", sub);
        manager_set(c, own, fields_union(&own->fields, &changed, &c->mem));
        json_set(rest_edit(doc, &c->mem, "metadata"), &c->mem, "managedFields",
                 managers_write(&all));
    }
    hk_vec_fini(&all.at);
}

/* ---- conflicts ---- */

struct report {
    struct rest_call *c;
    const char *who;
    struct hk_buf paths;
    uint32_t n;
};

static void on_path(void *ctx, const char *path)
{
    struct report *p = ctx;
    char *field = hk_arena_strndup(&p->c->mem, path, strlen(path));

    rest_cause(p->c, "FieldManagerConflict", field,
               hk_arena_printf(&p->c->mem, "conflict with %s", p->who));
    hk_buf_addf(&p->paths, "\n- %s", path);
    p->n++;
}

static const char *manager_words(struct rest_call *c, const struct manager *m)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "\"%.*s\"", HK_FMT(m->name));
    if (m->sub.n > 0) {
        hk_buf_addf(&text, " with subresource \"%.*s\"", HK_FMT(m->sub));
    }
    if (hk_str_is(m->operation, "Update")) {
        hk_buf_addf(&text, " using %.*s", HK_FMT(m->version));
    }
    return hk_arena_str(&c->mem, hk_buf_str(&text)).s;
}

static int fail_disputed(struct managers *all)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct rest_call *c = all->c;
    uint32_t total = 0;

    for (uint32_t i = 0; i < all->at.len; i++) {
        struct report p = {.c = c, .who = manager_words(c, &all->at.at[i])};
        fields_each(&all->at.at[i].dispute, &c->mem, on_path, &p);
        if (p.n == 1) {
            hk_buf_addf(&text, "%sconflict with %s: %s", text.len > 0 ? "\n" : "", p.who,
                        p.paths.data + 3);
        } else if (p.n > 1) {
            hk_buf_addf(&text, "%sconflicts with %s:%s", text.len > 0 ? "\n" : "", p.who,
                        p.paths.data);
        }
        total += p.n;
        hk_buf_fini(&p.paths);
    }
    rest_fail(c, 409, HK_ECONFLICT, "Conflict", "Apply failed with %u conflict%s: %s", total,
              total == 1 ? "" : "s", text.data);
    c->status.name = c->status.group = c->status.kind = NULL; /* the details are only causes */
    return c->rc;
}

/* ---- apply ---- */

static int fail_manager(struct rest_call *c, const char *reason, const char *message)
{
    return rest_fail_invalid_body(c, &(struct rest_body_fault){.group = "meta.k8s.io",
                                                               .kind = "PatchOptions",
                                                               .reason = reason,
                                                               .field = "fieldManager",
                                                               .message = message});
}

/* An apply names the kind and version of the path. */
static int check_applied_kind(struct rest_call *c, const struct json *body)
{
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
    const struct hk_str kind = json_str(json_get(body, "kind"), HK_STR(""));
    const struct hk_str version = json_str(json_get(body, "apiVersion"), HK_STR(""));
    const bool grouped = version.n > 0 && memchr(version.s, '/', version.n);

    api_kind_write_version(c->k->kind, &want);
    if (hk_str_is(kind, c->k->kind->kind) && hk_str_eq(version, hk_buf_str(&want))) {
        return 0;
    }
    return rest_fail_bad(c, "invalid object type: %s%.*s, Kind=%.*s", grouped ? "" : "/",
                         HK_FMT(version), HK_FMT(kind));
}

static int check_body(struct rest_call *c)
{
    const struct json *body = c->req->body;

    if (!json_is(body, JSON_OBJECT)) {
        return rest_fail_bad(c, "error decoding YAML: want an object");
    }
    if (json_at(body, "metadata.managedFields")) {
        return rest_fail_bad(c, "metadata.managedFields must be nil");
    }
    if (c->req->field_manager.n == 0) {
        return fail_manager(c, "FieldValueRequired", "Required value: is required for apply patch");
    }
    if (c->req->field_manager.n > PORT_FIELD_MANAGER_MAX) {
        return fail_manager(c, "FieldValueTooLong",
                            hk_arena_printf(&c->mem, "Too long: may not be more than %d bytes",
                                            PORT_FIELD_MANAGER_MAX));
    }
    if (check_applied_kind(c, body) < 0) {
        return c->rc;
    }
    return rest_check_identity(c, body);
}

static int apply_new(struct managers *all, struct json *body, struct json applied)
{
    struct rest_call *c = all->c;

    manager_set(c, managers_own(all, "Apply", NULL), applied);
    const struct json list = managers_write(all);
    json_set_str(rest_edit(body, &c->mem, "metadata"), &c->mem, "name", c->name);
    c->managed = &list;
    const int rc = rest_create_doc(c, body);
    c->managed = NULL;
    return rc;
}

/* Finds the managers whose fields the apply wants to change. Returns their number. */
static uint32_t find_disputes(struct managers *all, const struct manager *own,
                              const struct json *applied, const struct json *old,
                              const struct json *body)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < all->at.len; i++) {
        struct manager *m = &all->at.at[i];
        if (m != own) {
            m->dispute = fields_dispute(applied, &m->fields, old, body, &all->c->mem);
            n += m->dispute.len > 0;
        }
    }
    return n;
}

/* Fields that the manager applied before, does not send now, and no other manager owns. */
static struct json dropped(struct managers *all, const struct manager *own,
                           const struct json *applied)
{
    struct hk_arena *a = &all->c->mem;
    struct json left = fields_minus(&own->fields, applied, a);

    for (uint32_t i = 0; i < all->at.len; i++) {
        if (&all->at.at[i] != own) {
            left = fields_minus(&left, &all->at.at[i].fields, a);
        }
    }
    return left;
}

static int apply_over(struct managers *all, const struct json *body, struct json applied,
                      const struct store_obj *head, const struct json *old, bool staged)
{
    struct rest_call *c = all->c;
    struct json doc = json_clone(old, &c->mem);

    managers_read(all, old);
    struct manager *own = managers_own(all, "Apply", c->req->subresource);
    if (find_disputes(all, own, &applied, old, body) > 0 && !c->req->force) {
        return fail_disputed(all);
    }
    const struct json gone = dropped(all, own, &applied);
    fields_merge(fields_root(c->k), &doc, body, &c->mem);
    fields_remove(&doc, &gone, &c->mem);
    for (uint32_t i = 0; i < all->at.len; i++) {
        struct manager *m = &all->at.at[i];
        manager_set(c, m, m == own ? applied : fields_minus(&m->fields, &m->dispute, &c->mem));
    }
    const struct json list = managers_write(all);
    c->managed = &list;
    const int rc = rest_update_doc(c, c->req->subresource, &doc, head, old, staged);
    c->managed = NULL;
    return rc;
}

static int rest_apply_apply_body(struct rest_call *c, struct json *body)
{
    struct managers all = {.c = c};
    struct json old;
    bool staged;
    const struct store_obj *head = rest_head(c, c->k, c->ns, c->name, &old, &staged);
    const struct json applied = fields_of(fields_root(c->k), body, &c->mem);

    if (!head && c->req->subresource) {
        return rest_fail_missing(c, c->k, c->name);
    }
    const int rc =
        head ? apply_over(&all, body, applied, head, &old, staged) : apply_new(&all, body, applied);
    hk_vec_fini(&all.at);
    return rc;
}

/* Field sets use the storage version. An apply in another version is converted first, and only its
 * answer is converted back. */
int rest_apply(struct rest_call *c)
{
    const struct rest_kind *asked = c->k;

    if (check_body(c) < 0) {
        return c->rc;
    }
    struct json body = json_clone(c->req->body, &c->mem);
    if (!asked->storage && !asked->conversion) {
        rest_view_take(asked, &body, &c->mem);
        rest_set_kind(c, &body);
        c->k = rest_kind_by_res(c->r, asked->res);
    }
    const int rc = rest_apply_apply_body(c, &body);
    if (c->obj && !asked->storage && !asked->conversion) { /* nothing was written */
        c->obj = rest_object_show(asked, c->obj);
    }
    c->k = asked;
    return rc;
}
