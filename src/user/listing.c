// SPDX-License-Identifier: Apache-2.0
// Prints lists of objects for people and scripts, once or as they change.
#include "user/listing.h"

#include "api/names.h"
#include "cli/list.h"
#include "codec/yaml.h"
#include "user/live.h"

#include <unistd.h>

#define MS_NS ((int64_t)1000 * 1000)

enum {
    CALM_MS = 100,      /* shortest time between two tables */
    AGES_MS = 10 * 1000 /* longest, on a terminal: ages grow */
};

/* The definition of a list; plural is also the name of its verb. */
struct list_type {
    const char *plural;
    enum api_kind_id kind, more; /* more: same as kind if there is no second one */
    list_heads *heads;
    list_row *row;
};

static const struct list_type types[] = {
    {"jobs", API_JOB, API_PODGROUP, list_job_heads, list_job},
    {"pods", API_POD, API_POD, list_pod_heads, list_pod},
    {"queues", API_QUEUE, API_PODGROUP, list_queue_heads, list_queue},
    {"nodes", API_NODE, API_POD, list_node_heads, list_node},
    {"flows", API_JOBFLOW, API_JOBFLOW, list_flow_heads, list_flow},
};

struct view {
    struct user *u;
    const struct listing_opts *o;
    const struct list_type *type;
    struct term term;
    struct grid grid;
    struct hk_map told; /* hash of what was last printed of an object */
    uint32_t shown;     /* lines on the terminal */
    bool begun;
};

static bool listing_has_more(const struct list_type *t)
{
    return t->more != t->kind;
}

/* ---- which objects ---- */

/* Pods are also named by their job. */
static struct hk_str listing_job_of(const struct api_object *o)
{
    return o->kind->id == API_POD
               ? json_str_field(json_at(&o->root, "metadata.labels"), API_KEY_JOB_NAME)
               : (struct hk_str){0};
}

static bool listing_is_named(const struct listing_opts *q, const struct api_object *o)
{
    const struct hk_str job = listing_job_of(o);

    for (uint32_t i = 0; i < q->names.len; i++) {
        if (hk_str_is(o->name, q->names.at[i]) || hk_str_is(job, q->names.at[i])) {
            return true;
        }
    }
    return q->names.len == 0;
}

static struct hk_str listing_queue_of(const struct api_object *o)
{
    if (o->kind->id == API_JOB) {
        return json_str(json_at(&o->root, "spec.queue"), HK_STR(""));
    }
    const struct json *labels = json_at(&o->root, "metadata.labels");
    return json_str(json_get(labels, API_KEY_QUEUE_NAME), HK_STR(""));
}

static bool listing_is_wanted(const struct listing_opts *q, const struct api_object *o)
{
    return listing_is_named(q, o) && (!q->queue || hk_str_is(listing_queue_of(o), q->queue));
}

/* The selected objects in order, in the user's memory. */
static struct list_set listing_choose(const struct view *v, struct api_object *const *at,
                                      uint32_t n, struct hk_arena *mem)
{
    struct api_object **chosen = hk_arena_array(mem, n + 1, sizeof(struct api_object *));
    uint32_t len = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (listing_is_wanted(v->o, at[i])) {
            chosen[len++] = at[i];
        }
    }
    list_sort(v->type->kind, chosen, len);
    return (struct list_set){chosen, len};
}

/* Whether the server lets the user list the kind. */
static int listing_probe(struct view *v, enum api_kind_id id, const char *ns, const char *selector,
                         struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer first = {0};
    const struct api_kind *kind = api_kind(id);
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = kind,
                                     .ns = hk_str(kind->namespaced ? ns : ""),
                                     .label_selector = hk_str(selector),
                                     .limit = 1};

    return ask(&v->u->ask, &req, &first, err);
}

/* Nodes count the pods of all namespaces, and queues their PodGroups. A user who may not see those
 * gets the list with the counts of one namespace, and is told. */
static int listing_choose_more_ns(struct view *v, const char **ret, struct hk_err *err)
{
    const bool everywhere = v->type->kind != API_JOB;
    int rc;

    *ret = everywhere ? "" : v->u->ns;
    if (!everywhere) {
        return 0;
    }
    rc = listing_probe(v, v->type->more, "", NULL, err);
    if (rc != -HK_EDENIED || v->u->ns[0] == '\0') {
        return rc;
    }
    fprintf(stderr,
            "hekla: only the %s of namespace '%s' are counted: you may not list those of "
            "others\n",
            api_kind(v->type->more)->plural, v->u->ns);
    *ret = v->u->ns;
    return 0;
}

/* ---- printing ---- */

static void listing_fill(struct view *v, const struct list_set *set, const struct list_more *more)
{
    struct hk_clock *clock = hk_clock_system();
    const struct list_how how = {.wide = v->o->format == LISTING_WIDE,
                                 .namespaces = v->o->user.all_namespaces,
                                 .now_ns = clock->wall_ns(clock)};

    if (v->grid.ncolumns == 0) {
        v->type->heads(&how, &v->grid);
    }
    grid_clear(&v->grid);
    for (uint32_t i = 0; i < set->n; i++) {
        v->type->row(set->at[i], set, more, &how, &v->grid);
    }
    grid_measure(&v->grid);
}

/* Without managedFields, as in kubectl. */
static struct json listing_write_plain(const struct api_object *o, struct hk_arena *mem)
{
    struct json copy = json_shallow(&o->root, mem);
    struct json meta = json_shallow(json_get(&o->root, "metadata"), mem);

    json_del(&meta, "managedFields");
    json_set(&copy, mem, "metadata", meta);
    return copy;
}

static void listing_write_one(const struct json *doc, enum listing_format f, struct hk_buf *out)
{
    if (f == LISTING_JSON) {
        json_write_pretty(doc, 4, out);
    } else {
        yaml_write(doc, out);
    }
}

static void write_name(const struct api_object *o, struct hk_buf *out)
{
    hk_buf_addf(out, "%s%s%s/%.*s\n", o->kind->singular, o->kind->group[0] != '\0' ? "." : "",
                o->kind->group, HK_FMT(o->name));
}

static void listing_write_objects(const struct view *v, const struct list_set *set,
                                  struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json list = json_make_object(), items = json_make_array();

    if (v->o->names.len == 1 && set->n == 1) {
        const struct json one = listing_write_plain(set->at[0], &mem);
        listing_write_one(&one, v->o->format, out);
        return;
    }
    for (uint32_t i = 0; i < set->n; i++) {
        json_push(&items, &mem, listing_write_plain(set->at[i], &mem));
    }
    json_set_cstr(&list, &mem, "apiVersion", "v1");
    json_set(&list, &mem, "items", items);
    json_set_cstr(&list, &mem, "kind", "List");
    listing_write_one(&list, v->o->format, out);
}

static void listing_write_names(const struct list_set *set, struct hk_buf *out)
{
    for (uint32_t i = 0; i < set->n; i++) {
        write_name(set->at[i], out);
    }
}

static void tell_empty(const struct view *v)
{
    const char *plural = v->type->plural;

    if (!api_kind(v->type->kind)->namespaced) {
        fprintf(stderr, "hekla: no %s\n", plural);
    } else if (v->u->ns[0] == '\0') {
        fprintf(stderr, "hekla: no %s in any namespace\n", plural);
    } else {
        fprintf(stderr, "hekla: no %s in namespace '%s'\n", plural, v->u->ns);
    }
}

static int print_once(struct view *v, const struct list_set *set, const struct list_more *more)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    switch (v->o->format) {
    case LISTING_TABLE:
    case LISTING_WIDE:
        if (set->n == 0) {
            tell_empty(v);
            break;
        }
        listing_fill(v, set, more);
        grid_write(&v->grid, &v->term, &out);
        break;
    case LISTING_NAME:
        listing_write_names(set, &out);
        break;
    default:
        listing_write_objects(v, set, &out);
    }
    return verb_print(&out);
}

/* ---- watching ---- */

/* Overwrites the last table on a terminal, cut to its height. Lists sorted by age keep the newest
 * rows. */
static void redraw(struct view *v, struct hk_buf *out)
{
    const uint32_t rows = grid_rows(&v->grid), room = v->term.rows > 3 ? v->term.rows - 3 : 1;
    const uint32_t drawn = HK_MIN(rows, room);
    const bool by_age = v->type->kind == API_JOB || v->type->kind == API_JOBFLOW;
    const uint32_t first = by_age ? rows - drawn : 0;

    term_rewind(&v->term, v->shown, out);
    grid_write_head(&v->grid, &v->term, out);
    for (uint32_t i = first; i < first + drawn; i++) {
        grid_write_row(&v->grid, i, &v->term, out);
    }
    v->shown = drawn + 1;
    if (drawn < rows) {
        hk_buf_addf(out, "... and %u more\n", rows - drawn);
        v->shown++;
    }
}

/* Returns whether the object differs from what was last printed, and marks it as printed. */
static bool listing_is_news(struct view *v, const struct api_object *o, uint64_t what)
{
    const uint64_t ns = hk_hash(o->ns.s, o->ns.n, 0);
    const uint64_t key = hk_hash(o->name.s, o->name.n, ns) & (UINT64_MAX >> 1);
    const uint32_t now = (uint32_t)(hk_mix(what) >> 33); /* never HK_NONE */

    if (hk_map_get(&v->told, key) == now) {
        return false;
    }
    hk_map_put(&v->told, key, now);
    return true;
}

static void append_rows(struct view *v, const struct list_set *set, struct hk_buf *out)
{
    if (!v->begun) {
        grid_write_head(&v->grid, &v->term, out);
    }
    for (uint32_t i = 0; i < set->n; i++) {
        if (listing_is_news(v, set->at[i], grid_row_hash(&v->grid, i))) {
            grid_write_row(&v->grid, i, &v->term, out);
        }
    }
}

static void append_objects(struct view *v, const struct list_set *set, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};

    for (uint32_t i = 0; i < set->n; i++) {
        if (!listing_is_news(v, set->at[i], set->at[i]->rv)) {
            continue;
        }
        if (v->o->format == LISTING_NAME) {
            write_name(set->at[i], out);
            continue;
        }
        const struct json one = listing_write_plain(set->at[i], &mem);
        hk_buf_adds(out, v->o->format == LISTING_YAML ? "---\n" : "");
        listing_write_one(&one, v->o->format, out);
    }
}

static int print_changes(struct view *v, const struct list_set *set, const struct list_more *more)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const bool table = v->o->format == LISTING_TABLE || v->o->format == LISTING_WIDE;

    if (table) {
        listing_fill(v, set, more);
    }
    if (table && v->term.is) {
        v->term = term_of(STDOUT_FILENO); /* the size may have changed */
        redraw(v, &out);
    } else if (table) {
        append_rows(v, set, &out);
    } else {
        append_objects(v, set, &out);
    }
    v->begun = true;
    return verb_print(&out);
}

static int listing_show_live(struct view *v, const struct live *main, const struct live *more,
                             struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(list_more_fini) struct list_more m = {0};
    const struct list_set set = listing_choose(v, main->at.at, main->at.len, &mem);

    if (more) {
        list_more_init(&m, v->type->more, (struct list_set){more->at.at, more->at.len});
    }
    return print_changes(v, &set, &m) == EXIT_OK ? 0
                                                 : hk_fail(err, HK_EIO, "cannot write the output");
}

static int watch_lives(struct view *v, struct live *lives, uint32_t n, struct hk_err *err)
{
    struct live *const all[] = {&lives[0], &lives[1]};
    int64_t drawn_ns = 0;
    int rc = live_sync(v->u, all, n, err);

    while (rc == 0) {
        const int64_t now = net_loop_now_ns(v->u->ask.loop);
        const bool dirty = lives[0].dirty || (n > 1 && lives[1].dirty);
        const int64_t due = drawn_ns + (dirty ? CALM_MS : AGES_MS) * MS_NS;
        const bool by_time = dirty || v->term.is;

        if (by_time && (drawn_ns == 0 || now >= due)) {
            lives[0].dirty = lives[1].dirty = false;
            drawn_ns = now;
            rc = listing_show_live(v, &lives[0], n > 1 ? &lives[1] : NULL, err);
            continue;
        }
        const int wait_ms = by_time ? (int)((due - now) / MS_NS + 1) : -1;
        rc = live_turn(v->u, all, n, wait_ms, err);
    }
    return rc;
}

static int listing_watch(struct view *v, struct hk_err *err)
{
    struct live lives[2] = {0};
    const uint32_t n = listing_has_more(v->type) ? 2 : 1;
    const char *more_ns = "";
    /* Reports an unreachable or refusing server at once. */
    int rc = listing_probe(v, v->type->kind, v->u->ns, v->o->selector, err);

    if (rc == 0 && n > 1) {
        rc = listing_choose_more_ns(v, &more_ns, err);
    }
    if (rc < 0) {
        return rc;
    }
    live_init(&lives[0], v->u,
              &(struct live_opts){.kind = v->type->kind, .ns = v->u->ns, .label = v->o->selector});
    if (n > 1) {
        live_init(&lives[1], v->u, &(struct live_opts){.kind = v->type->more, .ns = more_ns});
    }
    rc = watch_lives(v, lives, n, err);
    live_fini(&lives[0]);
    live_fini(&lives[1]);
    return rc;
}

/* ---- once ---- */

/* One object, or the pods of the job of that name. */
static int listing_fetch_named(struct view *v, const char *name, struct port_answer *ret,
                               struct hk_err *err)
{
    const int rc = user_get(v->u, v->type->kind, name, ret, err);
    const uint32_t n = ret->objects.len;
    struct hk_err none = {0};

    if (rc == -HK_ENOTFOUND && v->type->kind == API_POD &&
        user_list(v->u, API_POD, v->u->ns,
                  hk_arena_printf(&v->u->mem, API_KEY_JOB_NAME "=%s", name), ret, &none) == 0 &&
        ret->objects.len > n) {
        return 0;
    }
    return rc;
}

static int listing_fetch(struct view *v, struct port_answer *ret, struct hk_err *err)
{
    int rc = 0;

    if (v->o->names.len == 0 || v->u->ns[0] == '\0') {
        return user_list(v->u, v->type->kind, v->u->ns, v->o->selector, ret, err);
    }
    for (uint32_t i = 0; rc == 0 && i < v->o->names.len; i++) {
        rc = listing_fetch_named(v, v->o->names.at[i], ret, err);
    }
    return rc;
}

static int listing_show(struct view *v, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer main = {0}, more = {0};
    HK_AUTO(list_more_fini) struct list_more m = {0};
    const bool table = v->o->format == LISTING_TABLE || v->o->format == LISTING_WIDE;
    int rc = listing_fetch(v, &main, err);

    if (rc == 0 && table && listing_has_more(v->type)) {
        const char *more_ns;

        rc = listing_choose_more_ns(v, &more_ns, err);
        if (rc == 0) {
            rc = user_list(v->u, v->type->more, more_ns, NULL, &more, err);
        }
        list_more_init(&m, v->type->more, (struct list_set){more.objects.at, more.objects.len});
    }
    if (rc < 0) {
        return rc;
    }
    const struct list_set set = listing_choose(v, main.objects.at, main.objects.len, &v->u->mem);
    return print_once(v, &set, &m) == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "cannot write the output");
}

/* ---- both ---- */

static const struct list_type *listing_type_of(const char *plural)
{
    size_t i = 0;

    while (strcmp(types[i].plural, plural) != 0) {
        i++;
        hk_assert(i < HK_LEN(types));
    }
    return &types[i];
}

int listing_print(struct user *u, const char *plural, const struct listing_opts *o,
                  struct hk_err *err)
{
    struct view v = {
        .u = u, .o = o, .type = listing_type_of(plural), .term = term_of(STDOUT_FILENO)};
    const int rc = o->watch ? listing_watch(&v, err) : listing_show(&v, err);

    grid_fini(&v.grid);
    hk_map_fini(&v.told);
    return rc;
}
