// SPDX-License-Identifier: Apache-2.0
// hekla jobs, pods, queues, nodes, flows: prints lists for people and scripts, once or live.
#include "api/names.h"
#include "cli/list.h"
#include "cmd/live.h"
#include "codec/yaml.h"

#include <unistd.h>

#define MS_NS ((int64_t)1000 * 1000)

enum {
    CALM_MS = 100,      /* shortest time between two tables */
    AGES_MS = 10 * 1000 /* longest, on a terminal: ages grow */
};

enum format { TABLE, WIDE, JSON, YAML, NAME }; /* in the order of the choices of --output */

/* The definition of a list. */
struct list_type {
    const struct verb *verb;
    enum api_kind_id kind, more; /* more: same as kind if there is no second one */
    list_heads *heads;
    list_row *row;
};

static const struct list_type types[] = {
    {&verb_jobs, API_JOB, API_PODGROUP, list_job_heads, list_job},
    {&verb_pods, API_POD, API_POD, list_pod_heads, list_pod},
    {&verb_queues, API_QUEUE, API_PODGROUP, list_queue_heads, list_queue},
    {&verb_nodes, API_NODE, API_POD, list_node_heads, list_node},
    {&verb_flows, API_JOBFLOW, API_JOBFLOW, list_flow_heads, list_flow},
};

struct list_args {
    struct user_opts user;
    const char *selector, *queue, *job;
    enum format format;
    bool watch;
    struct option_list names;
};

struct view {
    struct user *u;
    const struct list_args *a;
    const struct list_type *type;
    struct term term;
    struct grid grid;
    struct hk_map told; /* hash of what was last printed of an object */
    uint32_t shown;     /* lines on the terminal */
    bool begun;
};

static bool lists_has_more(const struct list_type *t)
{
    return t->more != t->kind;
}

/* ---- which objects ---- */

static bool lists_is_named(const struct list_args *a, const struct api_object *o)
{
    for (uint32_t i = 0; i < a->names.len; i++) {
        if (hk_str_is(o->name, a->names.at[i])) {
            return true;
        }
    }
    return a->names.len == 0;
}

static struct hk_str lists_queue_of(const struct api_object *o)
{
    if (o->kind->id == API_JOB) {
        return json_str(json_at(&o->root, "spec.queue"), HK_STR(""));
    }
    const struct json *labels = json_at(&o->root, "metadata.labels");
    return json_str(json_get(labels, API_KEY_QUEUE_NAME), HK_STR(""));
}

static bool lists_is_wanted(const struct list_args *a, const struct api_object *o)
{
    return lists_is_named(a, o) && (!a->queue || hk_str_is(lists_queue_of(o), a->queue));
}

/* The selected objects in order, in the user's memory. */
static struct list_set lists_choose(const struct view *v, struct api_object *const *at, uint32_t n,
                                    struct hk_arena *mem)
{
    struct api_object **chosen = hk_arena_array(mem, n + 1, sizeof(struct api_object *));
    uint32_t len = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (lists_is_wanted(v->a, at[i])) {
            chosen[len++] = at[i];
        }
    }
    list_sort(v->type->kind, chosen, len);
    return (struct list_set){chosen, len};
}

/* ---- printing ---- */

static void lists_fill(struct view *v, const struct list_set *set, const struct list_more *more)
{
    struct hk_clock *clock = hk_clock_system();
    const struct list_how how = {.wide = v->a->format == WIDE,
                                 .namespaces = v->a->user.all_namespaces,
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
static struct json lists_write_plain(const struct api_object *o, struct hk_arena *mem)
{
    struct json copy = json_shallow(&o->root, mem);
    struct json meta = json_shallow(json_get(&o->root, "metadata"), mem);

    json_del(&meta, "managedFields");
    json_put(&copy, mem, HK_STR("metadata"), meta);
    return copy;
}

static void lists_write_one(const struct json *doc, enum format f, struct hk_buf *out)
{
    if (f == JSON) {
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

static void lists_write_objects(const struct view *v, const struct list_set *set,
                                struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json list = json_make_object(), items = json_make_array();

    if (v->a->names.len == 1 && set->n == 1) {
        const struct json one = lists_write_plain(set->at[0], &mem);
        lists_write_one(&one, v->a->format, out);
        return;
    }
    for (uint32_t i = 0; i < set->n; i++) {
        json_push(&items, &mem, lists_write_plain(set->at[i], &mem));
    }
    json_put(&list, &mem, HK_STR("apiVersion"), json_make_str(HK_STR("v1")));
    json_put(&list, &mem, HK_STR("items"), items);
    json_put(&list, &mem, HK_STR("kind"), json_make_str(HK_STR("List")));
    lists_write_one(&list, v->a->format, out);
}

static void lists_write_names(const struct list_set *set, struct hk_buf *out)
{
    for (uint32_t i = 0; i < set->n; i++) {
        write_name(set->at[i], out);
    }
}

static void tell_empty(const struct view *v)
{
    const char *plural = v->type->verb->name;

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

    switch (v->a->format) {
    case TABLE:
    case WIDE:
        if (set->n == 0) {
            tell_empty(v);
            break;
        }
        lists_fill(v, set, more);
        grid_write(&v->grid, &v->term, &out);
        break;
    case NAME:
        lists_write_names(set, &out);
        break;
    default:
        lists_write_objects(v, set, &out);
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
static bool lists_is_news(struct view *v, const struct api_object *o, uint64_t what)
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
        if (lists_is_news(v, set->at[i], grid_row_hash(&v->grid, i))) {
            grid_write_row(&v->grid, i, &v->term, out);
        }
    }
}

static void append_objects(struct view *v, const struct list_set *set, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};

    for (uint32_t i = 0; i < set->n; i++) {
        if (!lists_is_news(v, set->at[i], set->at[i]->rv)) {
            continue;
        }
        if (v->a->format == NAME) {
            write_name(set->at[i], out);
            continue;
        }
        const struct json one = lists_write_plain(set->at[i], &mem);
        hk_buf_adds(out, v->a->format == YAML ? "---\n" : "");
        lists_write_one(&one, v->a->format, out);
    }
}

static int print_changes(struct view *v, const struct list_set *set, const struct list_more *more)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const bool table = v->a->format == TABLE || v->a->format == WIDE;

    if (table) {
        lists_fill(v, set, more);
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

static int lists_show_live(struct view *v, const struct live *main, const struct live *more,
                           struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(list_more_fini) struct list_more m = {0};
    const struct list_set set = lists_choose(v, main->at.at, main->at.len, &mem);

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
            rc = lists_show_live(v, &lives[0], n > 1 ? &lives[1] : NULL, err);
            continue;
        }
        const int wait_ms = by_time ? (int)((due - now) / MS_NS + 1) : -1;
        rc = live_turn(v->u, all, n, wait_ms, err);
    }
    return rc;
}

/* Reports an unreachable or refusing server at once. */
static int lists_probe(struct view *v, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer first = {0};
    const struct api_kind *kind = api_kind(v->type->kind);
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = kind,
                                     .ns = hk_str(kind->namespaced ? v->u->ns : ""),
                                     .label_selector = hk_str(v->a->selector),
                                     .limit = 1};

    return ask(&v->u->ask, &req, &first, err);
}

static int lists_watch(struct view *v, struct hk_err *err)
{
    struct live lives[2] = {0};
    const uint32_t n = lists_has_more(v->type) ? 2 : 1;
    int rc = lists_probe(v, err);

    if (rc < 0) {
        return rc;
    }
    live_init(&lives[0], v->u,
              &(struct live_opts){.kind = v->type->kind, .ns = v->u->ns, .label = v->a->selector});
    if (n > 1) {
        const char *ns = v->type->kind == API_JOB ? v->u->ns : "";
        live_init(&lives[1], v->u, &(struct live_opts){.kind = v->type->more, .ns = ns});
    }
    rc = watch_lives(v, lives, n, err);
    live_fini(&lives[0]);
    live_fini(&lives[1]);
    return rc;
}

/* ---- once ---- */

static int lists_fetch(struct view *v, struct answer *ret, struct hk_err *err)
{
    int rc = 0;

    if (v->a->names.len == 0 || v->u->ns[0] == '\0') {
        return user_list(v->u, v->type->kind, v->u->ns, v->a->selector, ret, err);
    }
    for (uint32_t i = 0; rc == 0 && i < v->a->names.len; i++) {
        rc = user_get(v->u, v->type->kind, v->a->names.at[i], ret, err);
    }
    return rc;
}

static int lists_show(struct view *v, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer main = {0}, more = {0};
    HK_AUTO(list_more_fini) struct list_more m = {0};
    const bool table = v->a->format == TABLE || v->a->format == WIDE;
    int rc = lists_fetch(v, &main, err);

    if (rc == 0 && table && lists_has_more(v->type)) {
        const char *ns = v->type->kind == API_JOB ? v->u->ns : "";
        rc = user_list(v->u, v->type->more, ns, NULL, &more, err);
        list_more_init(&m, v->type->more, (struct list_set){more.objects.at, more.objects.len});
    }
    if (rc < 0) {
        return rc;
    }
    const struct list_set set = lists_choose(v, main.objects.at, main.objects.len, &v->u->mem);
    return print_once(v, &set, &m) == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "cannot write the output");
}

/* ---- the verbs ---- */

static const struct option_row list_options[] = {
    ROW_CHOICE('o', "output", "FORMAT", struct list_args, format, "table wide json yaml name",
               "table",
               "Print a table, a table with more columns, the objects themselves, or their names."),
    ROW_FLAG('w', "watch", struct list_args, watch,
             "Follow changes: a terminal shows the table as it changes, a pipe gets each changed "
             "row."),
    ROW_TEXT('l', "selector", "SELECTOR", struct list_args, selector, NULL,
             "Only objects with these labels, such as app=train."),
    ROW_INCLUDE(struct list_args, user, user_server_options),
    ROW_END,
};

static const struct option_row job_options[] = {
    ROW_TEXT('q', "queue", "QUEUE", struct list_args, queue, NULL, "Only the jobs of this queue."),
    ROW_INCLUDE(struct list_args, user, user_namespace_options),
    ROW_INCLUDE(struct list_args, user, user_all_options),
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("JOB", struct list_args, names),
    ROW_END,
};
static const struct option_row pod_options[] = {
    ROW_TEXT('j', "job", "JOB", struct list_args, job, NULL, "Only the pods of this job."),
    ROW_TEXT('q', "queue", "QUEUE", struct list_args, queue, NULL,
             "Only the pods of the jobs of this queue."),
    ROW_INCLUDE(struct list_args, user, user_namespace_options),
    ROW_INCLUDE(struct list_args, user, user_all_options),
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("POD", struct list_args, names),
    ROW_END,
};
static const struct option_row flow_options[] = {
    ROW_INCLUDE(struct list_args, user, user_namespace_options),
    ROW_INCLUDE(struct list_args, user, user_all_options),
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("FLOW", struct list_args, names),
    ROW_END,
};
static const struct option_row queue_options[] = {
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("QUEUE", struct list_args, names),
    ROW_END,
};
static const struct option_row node_options[] = {
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("NODE", struct list_args, names),
    ROW_END,
};

static const struct list_type *lists_type_of(const struct verb *v)
{
    size_t i = 0;

    while (types[i].verb != v) {
        i++;
    }
    return &types[i];
}

static int lists_print(const struct verb *v, struct list_args *a, struct hk_err *err)
{
    struct user u = {0};
    struct view view = {.u = &u, .a = a, .type = lists_type_of(v), .term = term_of(STDOUT_FILENO)};
    int rc = user_open(&u, &a->user, err);

    if (a->job) {
        a->selector =
            hk_arena_printf(&u.mem, "%s%s" API_KEY_JOB_NAME "=%s", a->selector ? a->selector : "",
                            a->selector ? "," : "", user_name(a->job));
    }
    if (rc == 0) {
        rc = a->watch ? lists_watch(&view, err) : lists_show(&view, err);
    }
    grid_fini(&view.grid);
    hk_map_fini(&view.told);
    user_close(&u);
    return rc;
}

static int lists_run(const struct verb *v, int argc, char **argv)
{
    struct list_args a = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a), status;

    if (rc != 0) {
        status = user_parsed(rc);
    } else {
        user_names(&a.names);
        rc = lists_print(v, &a, &err);
        status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
    }
    hk_vec_fini(&a.names);
    return status;
}

const struct verb verb_jobs = {
    .name = "jobs",
    .args = "[NAME...]",
    .about = "list jobs: phase, tasks, and why they wait",
    .options = job_options,
    .text = "Lists the jobs, the newest last: how many of their tasks run (RUN), have succeeded "
            "(DONE) and failed (FAIL), of how many (ALL), and in short why a job waits or has "
            "failed.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_pods = {
    .name = "pods",
    .args = "[NAME...]",
    .about = "list pods by job, task and index",
    .options = pod_options,
    .text = "Lists the pods with the job they belong to, their state, the exit code of those that "
            "have ended, and the node they are on.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_queues = {
    .name = "queues",
    .args = "[NAME...]",
    .about = "list queues: limits, usage, and their jobs by state",
    .options = queue_options,
    .text = "Lists the queues below their parents. CPU and MEMORY show what the jobs of a queue "
            "hold and, behind the slash, the limit where there is one. Jobs are counted by the "
            "state of their PodGroups.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_nodes = {
    .name = "nodes",
    .args = "[NAME...]",
    .about = "list nodes: what pods request, and what there is",
    .options = node_options,
    .text = "Lists the nodes with what the pods on them request and, behind the slash, what the "
            "node has. Actual usage is not shown: this API does not provide it.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_flows = {
    .name = "flows",
    .args = "[NAME...]",
    .about = "list job flows",
    .options = flow_options,
    .text = "Lists the job flows, the newest last, with how many of their jobs run (RUN), are "
            "done (DONE) or have failed (FAIL), of how many (ALL).",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};
