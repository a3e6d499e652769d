// SPDX-License-Identifier: Apache-2.0
// Closes a node to new pods and evicts those it has. Finished pods stay: there is nothing to move,
// and eviction would delete their logs.
#include "user/drain.h"

#include "api/pod_summary.h"
#include "cli/term.h"
#include "user/live.h"

#include <unistd.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)
#define RETRY_FIRST_NS S_NS
#define RETRY_LAST_NS (8 * S_NS)

enum { INTERRUPTED = 130, CALLS_MAX = 32, NAMES_SHOWN = 5 };

/* ---- the node ---- */

static int drain_set_closed(struct user *u, const char *node, bool closed, bool *ret_changed,
                            struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer old = {0}, made = {0};
    struct json body = json_make_object(), spec = json_make_object();
    int rc = user_get(u, API_NODE, node, &old, err);

    if (rc < 0) {
        return rc;
    }
    *ret_changed =
        json_bool(json_at(&old.objects.at[0]->root, "spec.unschedulable"), false) != closed;
    if (!*ret_changed) {
        return 0;
    }
    /* As in kubectl: removes the field instead of setting false. */
    json_set(&spec, &u->mem, "unschedulable", closed ? json_make_bool(true) : (struct json){0});
    json_set(&body, &u->mem, "spec", spec);
    return ask(&u->ask,
               &(struct port_request){.verb = PORT_PATCH,
                                      .patch = PORT_PATCH_MERGE,
                                      .kind = api_kind(API_NODE),
                                      .name = hk_str(node),
                                      .body = &body},
               &made, err);
}

int drain_cordon(struct user *u, const char *node, bool closed, struct hk_err *err)
{
    bool changed;
    const int rc = drain_set_closed(u, node, closed, &changed, err);

    if (rc == 0) {
        printf("%s %s%s\n", node, changed ? "" : "already ", closed ? "cordoned" : "uncordoned");
        fflush(stdout);
    }
    return rc;
}

/* ---- pods on the node ---- */

enum target_state { TARGET_WAITS, TARGET_ASKED, TARGET_LEAVES, TARGET_GONE };

/* A pod to evict. */
struct target {
    struct drain *d;
    struct api_object *pod;
    enum target_state state;
    uint64_t call;  /* the eviction in flight; 0: none */
    int64_t due_ns; /* earliest time of the next attempt */
    int64_t wait_ns;
    bool held; /* a disruption budget forbids it for now */
};

struct drain {
    struct user *u;
    const struct drain_opts *o;
    struct live pods;
    HK_VEC(struct target *) targets;
    uint32_t finished, daemons; /* pods that stay */
    uint32_t calls;
    struct term term;
    uint32_t shown;
    int rc;
    struct hk_err err; /* of a refused eviction */
};

/* The controller that owns the pod, or NULL. */
static const struct json *controller_of(const struct api_object *pod)
{
    const struct json *owners = json_at(&pod->root, "metadata.ownerReferences");

    for (uint32_t i = 0; json_item(owners, i); i++) {
        if (json_bool(json_get(json_item(owners, i), "controller"), false)) {
            return json_item(owners, i);
        }
    }
    return NULL;
}

static bool is_daemon(const struct api_object *pod)
{
    const struct json *owner = controller_of(pod);
    const bool mirror = json_get(json_at(&pod->root, "metadata.annotations"),
                                 "kubernetes.io/config.mirror") != NULL;

    return mirror ||
           (owner && hk_str_is(json_str(json_get(owner, "kind"), HK_STR("")), "DaemonSet"));
}

static void add_target(struct drain *d, struct api_object *pod)
{
    struct target *t = hk_zalloc(sizeof(*t));

    t->d = d;
    t->pod = api_object_ref(pod);
    t->state = json_at(&pod->root, "metadata.deletionTimestamp") ? TARGET_LEAVES : TARGET_WAITS;
    hk_vec_push(&d->targets, t);
}

static void sort_pods(struct drain *d)
{
    for (uint32_t i = 0; i < d->pods.at.len; i++) {
        struct api_object *pod = d->pods.at.at[i];

        if (api_pod_finished(&pod->root)) {
            d->finished++;
        } else if (is_daemon(pod)) {
            d->daemons++;
        } else {
            add_target(d, pod);
        }
    }
}

/* Refuses pods without a controller: eviction would lose them. */
static int check_unmanaged(struct drain *d, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; !d->o->force && i < d->targets.len; i++) {
        const struct api_object *pod = d->targets.at[i]->pod;

        if (d->targets.at[i]->state != TARGET_WAITS || controller_of(pod)) {
            continue;
        }
        if (n++ < NAMES_SHOWN) {
            hk_buf_addf(&names, "%s%.*s/%.*s", names.len > 0 ? ", " : "", HK_FMT(pod->ns),
                        HK_FMT(pod->name));
        }
    }
    if (n == 0) {
        return 0;
    }
    if (n > NAMES_SHOWN) {
        hk_buf_addf(&names, " and %u more", n - NAMES_SHOWN);
    }
    return hk_fail(err, HK_EINVAL,
                   "no pod was evicted: %u %s no controller that would create %s again (%s); "
                   "--force deletes %s",
                   n, n == 1 ? "pod has" : "pods have", n == 1 ? "it" : "them", names.data,
                   n == 1 ? "it" : "them");
}

/* ---- eviction ---- */

static struct json eviction_of(const struct drain *d, const struct target *t)
{
    struct hk_arena *a = &d->u->mem;
    struct json body = json_make_object(), meta = json_make_object();
    struct json options = json_make_object(), only = json_make_object();

    json_set_str(&meta, a, "name", t->pod->name);
    json_set_str(&meta, a, "namespace", t->pod->ns);
    json_set_str(&only, a, "uid", t->pod->uid);
    json_set(&options, a, "preconditions", only);
    if (d->o->grace_s >= 0) {
        json_set_int(&options, a, "gracePeriodSeconds", d->o->grace_s);
    }
    json_set_cstr(&body, a, "apiVersion", "policy/v1");
    json_set_cstr(&body, a, "kind", "Eviction");
    json_set(&body, a, "metadata", meta);
    json_set(&body, a, "deleteOptions", options);
    return body;
}

static int64_t drain_now_ns(void)
{
    struct hk_clock *clock = hk_clock_system();

    return clock->mono_ns(clock);
}

static void drain_erase(struct drain *d)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    term_rewind(&d->term, d->shown, &out);
    d->shown = 0;
    fwrite(hk_buf_str(&out).s, 1, out.len, stderr);
    fflush(stderr);
}

static void print_target(struct drain *d, const struct target *t, const char *what)
{
    drain_erase(d);
    printf("%.*s/%.*s %s\n", HK_FMT(t->pod->ns), HK_FMT(t->pod->name), what);
    fflush(stdout);
}

static void on_evicted(void *ctx, const struct port_msg *m)
{
    struct target *t = ctx;
    struct drain *d = t->d;

    t->call = 0;
    d->calls--;
    d->pods.dirty = true;
    if (m->rc == 0 || m->rc == -HK_ENOTFOUND || m->rc == -HK_ECONFLICT) {
        t->held = false;
        t->state = m->rc == 0 ? TARGET_LEAVES : TARGET_GONE; /* gone, or its name was reused */
        print_target(d, t, m->rc == 0 ? "evicted" : "gone");
        return;
    }
    t->state = TARGET_WAITS;
    if (m->rc != -HK_EBUSY) {
        d->rc = d->rc < 0 ? d->rc : m->rc;
        d->err = *m->err;
        return;
    }
    if (!t->held) {
        print_target(d, t, "waits for its disruption budget");
    }
    t->held = true;
    t->wait_ns = t->wait_ns == 0 ? RETRY_FIRST_NS : HK_MIN(t->wait_ns * 2, RETRY_LAST_NS);
    t->due_ns = drain_now_ns() + t->wait_ns;
}

/* Submits the evictions that are due; returns when the next one is due. */
static int64_t evict_due(struct drain *d, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (uint32_t i = 0; i < d->targets.len; i++) {
        struct target *t = d->targets.at[i];

        if (t->state != TARGET_WAITS || t->call) {
            continue;
        }
        if (t->due_ns > now_ns || d->calls >= CALLS_MAX) {
            next_ns = HK_MIN(next_ns, HK_MAX(t->due_ns, now_ns + 1)); /* an answer comes first */
            continue;
        }
        const struct json body = eviction_of(d, t);
        t->state = TARGET_ASKED;
        d->calls++;
        t->call = port_submit(d->u->ask.port,
                              &(struct port_request){.verb = PORT_CREATE,
                                                     .kind = api_kind(API_POD),
                                                     .ns = t->pod->ns,
                                                     .name = t->pod->name,
                                                     .subresource = "eviction",
                                                     .body = &body},
                              (struct port_sink){on_evicted, t});
    }
    return d->calls >= CALLS_MAX ? INT64_MAX : next_ns;
}

/* Marks the targets that have ended or are deleted; returns their number. */
static uint32_t count_gone(struct drain *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->targets.len; i++) {
        struct target *t = d->targets.at[i];
        const struct api_object *now = live_find(&d->pods, t->pod->ns, t->pod->name);

        if (!t->call &&
            (!now || !hk_str_eq(now->uid, t->pod->uid) || api_pod_finished(&now->root))) {
            t->state = TARGET_GONE;
        }
        n += t->state == TARGET_GONE;
    }
    return n;
}

static void drain_draw(struct drain *d, uint32_t gone)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    uint32_t held = 0;

    if (!d->term.is) {
        return;
    }
    for (uint32_t i = 0; i < d->targets.len; i++) {
        held += d->targets.at[i]->held;
    }
    term_rewind(&d->term, d->shown, &out);
    term_bar(&d->term, gone, d->targets.len, HK_MIN(d->term.columns, 40), &out);
    if (held > 0) {
        hk_buf_addf(&out, " %u wait for a disruption budget", held);
    }
    hk_buf_addc(&out, '\n');
    d->shown = 1;
    fwrite(hk_buf_str(&out).s, 1, out.len, stderr);
    fflush(stderr);
}

static int ms_until(int64_t at_ns, int64_t now_ns)
{
    return at_ns == INT64_MAX
               ? -1
               : (int)HK_MIN(HK_MAX((at_ns - now_ns + 999999) / 1000000, 0), 3600000);
}

static int drain_fail(struct drain *d, uint32_t gone, bool interrupted, int *ret)
{
    drain_erase(d);
    verb_complain("drain: %s, %u of %u pod%s of node '%s' remain%s; the node stays cordoned",
                  interrupted ? "interrupted" : "time is up", d->targets.len - gone, d->targets.len,
                  d->targets.len == 1 ? "" : "s", d->o->node,
                  d->targets.len - gone == 1 ? "s" : "");
    *ret = interrupted ? INTERRUPTED : USER_TIMEOUT;
    return 0;
}

static int turn_until_empty(struct drain *d, int *ret, struct hk_err *err)
{
    struct live *const all[] = {&d->pods};
    const int64_t end_ns = d->o->timeout_ns > 0 ? drain_now_ns() + d->o->timeout_ns : INT64_MAX;
    int rc = 0;

    while (rc == 0) {
        const int64_t now_ns = drain_now_ns();
        const int64_t next_ns = HK_MIN(evict_due(d, now_ns), end_ns);
        const uint32_t gone = count_gone(d);

        drain_draw(d, gone);
        if (gone == d->targets.len) {
            drain_erase(d);
            *ret = USER_OK;
            return 0;
        }
        if (d->rc < 0) {
            drain_erase(d);
            *err = d->err;
            return d->rc;
        }
        if (d->u->interrupted || now_ns >= end_ns) {
            return drain_fail(d, gone, d->u->interrupted, ret);
        }
        rc = live_turn(d->u, all, 1, ms_until(next_ns, now_ns), err);
    }
    drain_erase(d);
    return rc;
}

/* ---- draining ---- */

static void print_stays(const struct drain *d)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (d->finished > 0) {
        hk_buf_addf(&out, "%u finished", d->finished);
    }
    if (d->daemons > 0) {
        hk_buf_addf(&out, "%s%u of DaemonSets", out.len > 0 ? " and " : "", d->daemons);
    }
    if (out.len > 0) {
        printf("%s: leaving %s %s\n", d->o->node, out.data,
               d->finished + d->daemons == 1 ? "pod" : "pods");
    }
}

static void print_plan(const struct drain *d)
{
    for (uint32_t i = 0; i < d->targets.len; i++) {
        const struct target *t = d->targets.at[i];

        printf("%.*s/%.*s %s (dry run)\n", HK_FMT(t->pod->ns), HK_FMT(t->pod->name),
               t->state == TARGET_LEAVES ? "is being deleted" : "would be evicted");
    }
    printf("%s would be drained (dry run)\n", d->o->node);
}

static int empty_node(struct drain *d, int *ret, struct hk_err *err)
{
    int rc;

    sort_pods(d);
    print_stays(d);
    rc = check_unmanaged(d, err);
    if (rc < 0) {
        return rc;
    }
    if (d->o->dry_run) {
        print_plan(d);
        *ret = USER_OK;
        return 0;
    }
    rc = turn_until_empty(d, ret, err);
    if (rc == 0 && *ret == USER_OK) {
        printf("%s drained: %u %s left it\n", d->o->node, d->targets.len,
               d->targets.len == 1 ? "pod has" : "pods have");
    }
    return rc;
}

static void drain_fini(struct drain *d)
{
    for (uint32_t i = 0; i < d->targets.len; i++) {
        if (d->targets.at[i]->call) {
            port_cancel(d->u->ask.port, d->targets.at[i]->call);
        }
        api_object_unref(d->targets.at[i]->pod);
        hk_free(d->targets.at[i]);
    }
    hk_vec_fini(&d->targets);
    live_fini(&d->pods);
}

int drain_node(struct user *u, const struct drain_opts *o, int *ret, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer node = {0};
    struct drain d = {.u = u, .o = o, .term = term_of(STDERR_FILENO)};
    struct live *const all[] = {&d.pods};
    int rc = o->dry_run ? user_get(u, API_NODE, o->node, &node, err)
                        : drain_cordon(u, o->node, true, err);

    if (rc < 0) {
        return rc;
    }
    rc = user_catch(u, err);
    if (rc < 0) {
        return rc;
    }
    live_init(&d.pods, u,
              &(struct live_opts){.kind = API_POD,
                                  .ns = "",
                                  .field = hk_arena_printf(&u->mem, "spec.nodeName=%s", o->node)});
    rc = live_sync(u, all, 1, err);
    if (rc == 0) {
        rc = empty_node(&d, ret, err);
    }
    drain_fini(&d);
    return rc;
}
