// SPDX-License-Identifier: Apache-2.0
// For tests of the loop: a cluster in a few words, on a port in memory and a clock that the test
// moves. Objects are written as JSON with single quotes.
#pragma once

#include "api/port_mem.h"
#include "codec/json_text_test.h"
#include "scheduler/loop.h"

#include <stdio.h>
#include <unistd.h>

#define SEC ((int64_t)1000 * 1000 * 1000)
#define MSEC ((int64_t)1000 * 1000)
#define RIG_START ((int64_t)1704164645 * SEC)

struct rig {
    struct hk_clock_manual clock;
    struct port_mem *mem;
    struct port *port;
    struct loop *l;
    struct hk_arena a;
    struct hk_buf events;
    char path[64]; /* of the configuration, empty when none */
};

static inline void rig_put(struct rig *r, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    const struct json doc = json_of_text(text.data, &r->a);
    if (port_mem_put(r->mem, &doc, &err) < 0) {
        fail_msg("put: %s in %s", err.text, text.data);
    }
}

static inline void rig_queue(struct rig *r, const char *name, const char *spec)
{
    rig_put(r,
            "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'Queue','metadata':{'name':'%s',"
            "'uid':'q-%s'},'spec':{'weight':1%s},'status':{'state':'Open'}}",
            name, name, spec);
}

static inline void rig_node(struct rig *r, const char *name, const char *cpu, const char *mem)
{
    rig_put(r,
            "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','uid':'n-%s','labels':"
            "{'kubernetes.io/hostname':'%s'}},'status':{'allocatable':{'cpu':'%s','memory':'%s',"
            "'pods':'1000'}}}",
            name, name, name, cpu, mem);
}

/* more: further members of the spec, beginning with a comma. */
static inline void rig_group(struct rig *r, const char *name, int min, const char *more)
{
    rig_put(
        r,
        "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'PodGroup','metadata':{'name':'%s',"
        "'namespace':'d','uid':'g-%s','creationTimestamp':'2024-01-02T03:04:05Z'},"
        "'spec':{'minMember':%d,'queue':'q'%s}}",
        name, name, min, more);
}

static inline void rig_pod_of(struct rig *r, const char *name, const char *group, const char *cpu,
                              const char *more)
{
    rig_put(
        r,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'d','uid':'p-%s',"
        "'creationTimestamp':'2024-01-02T03:04:05Z',"
        "'annotations':{'scheduling.k8s.io/group-name':'%s'}},'spec':{'schedulerName':'volcano',"
        "'containers':[{'name':'c','resources':{'requests':{'cpu':'%s','memory':'1Gi'}}}]%s},"
        "'status':{'phase':'Pending'}}",
        name, name, group, cpu, more);
}

static inline void rig_pod(struct rig *r, const char *name, const char *group, const char *cpu)
{
    rig_pod_of(r, name, group, cpu, "");
}

static inline const struct api_object *rig_peek(struct rig *r, enum api_kind_id kind,
                                                const char *name)
{
    const struct api_kind *k = api_kind(kind);

    return port_mem_peek(r->mem, k, k->namespaced ? HK_STR("d") : HK_STR(""), hk_str(name));
}

/* The string at a dotted path; a number in a path is a list index. "-" when there is none. */
static inline const char *rig_field(struct rig *r, enum api_kind_id kind, const char *name,
                                    const char *path)
{
    const struct api_object *o = rig_peek(r, kind, name);
    const struct json *v = o ? &o->root : NULL;
    struct hk_str rest = hk_str(path), part;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int64_t i;

    while (v && hk_str_cut(&rest, '.', &part)) {
        v = hk_str_int(part, &i) ? json_item(v, (uint32_t)i) : json_get_str(v, part);
    }
    if (!v) {
        return "-";
    }
    if (v->type == JSON_STRING) {
        return hk_arena_strndup(&r->a, v->s, v->len);
    }
    json_write(v, &text);
    return hk_arena_strndup(&r->a, text.data, text.len);
}

/* "status reason message" of a condition. */
static inline const char *rig_condition(struct rig *r, enum api_kind_id kind, const char *name,
                                        const char *type)
{
    const struct api_object *o = rig_peek(r, kind, name);
    const struct json *list = o ? json_at(&o->root, "status.conditions") : NULL;
    const struct hk_str none = HK_STR("");

    for (uint32_t i = 0; list && i < list->len; i++) {
        const struct json *c = &list->items[i];
        if (hk_str_is(json_str(json_get(c, "type"), none), type)) {
            return hk_arena_printf(&r->a, "%.*s %.*s %.*s",
                                   HK_FMT(json_str(json_get(c, "status"), none)),
                                   HK_FMT(json_str(json_get(c, "reason"), none)),
                                   HK_FMT(json_str(json_get(c, "message"), none)));
        }
    }
    return "-";
}

/* The kubelet's part: a bound pod runs. */
static inline void rig_start(struct rig *r, const char *pod)
{
    const struct api_object *o = rig_peek(r, API_POD, pod);
    struct json doc = json_clone(&o->root, &r->a);
    struct json status = json_clone(json_get(&doc, "status"), &r->a);
    struct hk_err err = {0};

    json_put(&status, &r->a, HK_STR("phase"), json_make_str(HK_STR("Running")));
    json_put(&doc, &r->a, HK_STR("status"), status);
    assert_int_equal(port_mem_put(r->mem, &doc, &err), 0);
}

static inline void rig_remove(struct rig *r, enum api_kind_id kind, const char *name)
{
    const struct api_kind *k = api_kind(kind);

    assert_true(port_mem_remove(r->mem, k, k->namespaced ? HK_STR("d") : HK_STR(""), hk_str(name)));
}

/* ---- running ---- */

static inline void rig_check(struct rig *r)
{
    struct hk_err err = {0};

    if (model_check(loop_model(r->l), &err) < 0) {
        fail_msg("model: %s", err.text);
    }
}

static inline void rig_move_clock(struct rig *r, int64_t ns)
{
    r->clock.now_ns += ns;
    port_mem_set_now(r->mem, r->clock.now_ns);
}

/* Steps, and lets time pass as the loop asks for it, until nothing is to be done for so long. */
static inline void rig_run_for(struct rig *r, int64_t ns)
{
    const int64_t until = r->clock.now_ns + ns;
    uint32_t backlog = 0;
    unsigned quiet = 0;

    for (unsigned n = 0; quiet < 3; n++) {
        int64_t wait;
        loop_step(r->l, &wait);
        quiet = backlog == loop_stats(r->l).backlog ? quiet : 0;
        backlog = loop_stats(r->l).backlog;
        rig_check(r);
        if (n > 200000) {
            fail_msg("the loop does not come to rest");
        }
        if (wait == INT64_MAX || r->clock.now_ns + wait > until) {
            quiet++;
        } else if (wait > 0) {
            rig_move_clock(r, wait);
            quiet = 0;
        }
    }
    rig_move_clock(r, until - r->clock.now_ns);
}

static inline void rig_run(struct rig *r)
{
    rig_run_for(r, 100 * MSEC);
}

static inline uint64_t rig_sessions(struct rig *r)
{
    return loop_stats(r->l).sessions;
}

/* Calls made since the last look that begin with the given words. */
static inline uint32_t rig_calls(struct rig *r, const char *prefix)
{
    struct hk_str rest = port_mem_log(r->mem), line;
    uint32_t n = 0;

    while (hk_str_cut(&rest, '\n', &line)) {
        n += line.n > 0 && hk_str_starts(line, prefix);
    }
    return n;
}

static inline uint32_t rig_writes(struct rig *r)
{
    return rig_calls(r, "create ") + rig_calls(r, "update ") + rig_calls(r, "patch ") +
           rig_calls(r, "delete ");
}

static inline void rig_on_events(void *ctx, const struct port_msg *m)
{
    struct rig *r = ctx;
    const struct hk_str none = HK_STR("");

    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct json *v = &m->items[i]->root;
        hk_buf_addf(&r->events, "%.*s %.*s %.*s: %.*s x%lld\n",
                    HK_FMT(json_str(json_get(v, "type"), none)),
                    HK_FMT(json_str(json_at(v, "involvedObject.name"), none)),
                    HK_FMT(json_str(json_get(v, "reason"), none)),
                    HK_FMT(json_str(json_get(v, "message"), none)),
                    (long long)json_int(json_get(v, "count"), 0));
    }
}

/* "Type object Reason: message xCount" per event so far. */
static inline const char *rig_events(struct rig *r)
{
    hk_buf_clear(&r->events);
    port_list(r->port, api_kind(API_EVENT), HK_STR(""), (struct port_sink){rig_on_events, r});
    while (port_poll(r->port, 100) > 0) {
    }
    return r->events.data ? r->events.data : "";
}

#define rig_expect_event(r, text)                                                                  \
    do {                                                                                           \
        if (!strstr(rig_events(r), text "\n")) {                                                   \
            fail_msg("expected event '%s' among\n%s", text, (r)->events.data);                     \
        }                                                                                          \
    } while (0)

/* ---- birth and death ---- */

static inline void rig_write_conf(struct rig *r, const char *text)
{
    FILE *f = fopen(r->path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline struct rig *rig_new_with(const char *conf, struct loop_opts o)
{
    struct rig *r = hk_zalloc(sizeof(*r));
    struct hk_err err = {0};

    hk_clock_manual_init(&r->clock, RIG_START);
    r->mem = port_mem_new(RIG_START);
    r->port = port_mem_port(r->mem);
    if (conf) {
        memcpy(r->path, "/tmp/hekla-conf-XXXXXX", sizeof("/tmp/hekla-conf-XXXXXX"));
        close(mkstemp(r->path));
        rig_write_conf(r, conf);
        o.conf_path = r->path;
    }
    o.port = r->port;
    o.clock = o.clock ? o.clock : &r->clock.clock;
    o.session.min_feasible = 100;
    o.session.min_percentage = 5;
    if (loop_new(&o, &r->l, &err) < 0) {
        fail_msg("loop: %s", err.text);
    }
    return r;
}

static inline struct rig *rig_new(const char *conf)
{
    return rig_new_with(conf, (struct loop_opts){0});
}

static inline void rig_free(struct rig *r)
{
    loop_free(r->l);
    port_free(r->port);
    if (r->path[0]) {
        unlink(r->path);
    }
    hk_arena_fini(&r->a);
    hk_buf_fini(&r->events);
    hk_free(r);
}

/* Without limits of queues, so that nodes are what jobs run out of. */
#define RIG_PLUGINS                                                                                \
    "tiers:\n"                                                                                     \
    "- plugins:\n"                                                                                 \
    "  - name: priority\n"                                                                         \
    "  - name: gang\n"                                                                             \
    "    enablePreemptable: false\n"                                                               \
    "  - name: conformance\n"                                                                      \
    "- plugins:\n"                                                                                 \
    "  - name: predicates\n"                                                                       \
    "  - name: nodeorder\n"
#define RIG_PLAIN "actions: \"enqueue, allocate, backfill\"\n" RIG_PLUGINS
#define RIG_PREEMPTING "actions: \"enqueue, allocate, preempt\"\n" RIG_PLUGINS

/* root, q and a node of four cores. */
static inline void rig_small_cluster(struct rig *r)
{
    rig_queue(r, "root", "");
    rig_queue(r, "default", "");
    rig_queue(r, "q", "");
    rig_node(r, "n1", "4", "16Gi");
}
