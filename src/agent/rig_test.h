// SPDX-License-Identifier: Apache-2.0
// A node under test: an API in memory, a clock that moves when told, a directory of its own, and a
// runtime that runs nothing and does as the test says. Objects are written as YAML.
#pragma once

#include "agent/agent.h"
#include "agent/host/machine.h"
#include "api/port_mem.h"
#include "base/file.h"
#include "base/vec.h"
#include "codec/timefmt.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#define RIG_START_NS ((int64_t)1767348000 * 1000000000) /* 2026-01-02T10:00:00Z */
#define RIG_SECOND_NS ((int64_t)1000000000)

struct fake_container {
    char *name; /* of the container; "exec" of a command beside one */
    char *pod;
    uint32_t attempt;
    bool ended;
    bool told;
    int code;
    struct hk_buf argv, env, mounts; /* "a b", "A=1\n", "/from -> /at ro\n" */
    char *root;                      /* or NULL */
    int64_t uid, gid;
    struct runtime_rights rights;
    bool root_read_only;
};

struct fake {
    struct runtime runtime;
    struct rig *rig;
    HK_VEC(struct fake_container *) all; /* the id is the index + 1 */
    struct hk_buf log;                   /* "start c 0\n", "kill c 15\n", "stop POD\n" */
    bool stubborn;                       /* SIGTERM ends nothing */
    bool deaf;                           /* nor does SIGKILL, nor the end of the pod */
    const char *refuse;                  /* why nothing can be started, or NULL */
    enum hk_code refuse_code;            /* 0: HK_ENOTFOUND */
    bool lost;                           /* what was started never came to run */
    const char *caveats;
};

struct rig {
    struct port_mem *mem;
    struct hk_clock_manual clock;
    int64_t step_ns; /* somebody has set the wall clock by so much */
    struct hk_rand rand;
    struct fake fake;
    struct agent *agent;
    char dir[64];
    bool no_dir;            /* the next agent keeps no directory */
    bool end_unknown;       /* the next agent ends what the API has forgotten */
    struct machine machine; /* of the next agent; root NULL: none */
    char roots[80];         /* the file of images and their roots */
    const char *dns;        /* the DNS server that the next agent knows; NULL: none */
    struct hk_arena text;   /* of answers */
};

/* ---- the runtime ---- */

static inline struct rig *fake_rig(struct runtime *r)
{
    return ((struct fake *)r)->rig;
}

static inline struct fake_container *fake_add(struct rig *r, const char *pod, const char *name,
                                              uint32_t attempt, const char *const *argv)
{
    struct fake_container *c = hk_zalloc(sizeof(*c));

    c->name = hk_strdup(name);
    c->pod = hk_strdup(pod);
    c->attempt = attempt;
    for (; *argv; argv++) {
        hk_buf_addf(&c->argv, "%s%s", c->argv.len > 0 ? " " : "", *argv);
    }
    hk_vec_push(&r->fake.all, c);
    return c;
}

static inline int fake_pod_start(struct runtime *rt, const struct runtime_pod *pod,
                                 struct hk_err *err)
{
    return 0;
}

static inline void fake_tell(struct rig *r, uint64_t id, int code, int signo)
{
    struct fake_container *c = r->fake.all.at[id - 1];

    c->ended = true;
    c->code = code;
    if (r->agent && !c->told) {
        c->told = true;
        agent_on_end(r->agent, id,
                     &(struct runtime_end){
                         .code = code, .signo = signo, .message = "", .end_ns = r->clock.now_ns});
    }
}

static inline void fake_pod_stop(struct runtime *rt, const char *uid)
{
    struct rig *r = fake_rig(rt);

    hk_buf_addf(&r->fake.log, "stop %s\n", uid);
    for (uint32_t i = 0; i < r->fake.all.len; i++) {
        if (strcmp(r->fake.all.at[i]->pod, uid) == 0 && !r->fake.all.at[i]->ended &&
            !r->fake.deaf) {
            fake_tell(r, i + 1, 137, 9);
        }
    }
}

static inline int fake_start(struct runtime *rt, const struct runtime_container *rc, uint64_t *ret,
                             struct hk_err *err)
{
    struct rig *r = fake_rig(rt);
    struct fake_container *c;

    if (r->fake.refuse) {
        return hk_fail(err, r->fake.refuse_code ? r->fake.refuse_code : HK_ENOTFOUND, "%s",
                       r->fake.refuse);
    }
    c = fake_add(r, rc->pod_uid, rc->name, rc->attempt, rc->argv);
    c->root = rc->root ? hk_strdup(rc->root) : NULL;
    c->uid = rc->uid;
    c->gid = rc->gid;
    c->rights = rc->rights;
    c->root_read_only = rc->root_read_only;
    for (uint32_t i = 0; rc->env[i]; i++) {
        hk_buf_addf(&c->env, "%s\n", rc->env[i]);
    }
    for (uint32_t i = 0; i < rc->nmount; i++) {
        const char *sub = rc->mounts[i].sub;
        hk_buf_addf(&c->mounts, "%s%s%s -> %s%s\n", rc->mounts[i].from, sub ? "/" : "",
                    sub ? sub : "", rc->mounts[i].at, rc->mounts[i].read_only ? " ro" : "");
    }
    hk_buf_addf(&r->fake.log, "start %s %u\n", rc->name, rc->attempt);
    *ret = r->fake.all.len;
    return 0;
}

static inline void fake_kill(struct runtime *rt, uint64_t id, int signo)
{
    struct rig *r = fake_rig(rt);
    struct fake_container *c = r->fake.all.at[id - 1];

    hk_buf_addf(&r->fake.log, "kill %s %d\n", c->name, signo);
    if (!c->ended && !r->fake.deaf && (signo == SIGKILL || !r->fake.stubborn)) {
        fake_tell(r, id, 128 + signo, signo);
    }
}

static inline int fake_exec(struct runtime *rt, uint64_t container, const char *const *argv, int in,
                            int out, int err_out, uint64_t *ret, struct hk_err *err)
{
    struct rig *r = fake_rig(rt);
    struct fake_container *c = fake_add(r, r->fake.all.at[container - 1]->pod, "exec", 0, argv);

    hk_buf_addf(&r->fake.log, "exec %s\n", c->argv.data);
    *ret = r->fake.all.len;
    return 0;
}

static inline int fake_adopt(struct runtime *rt, const char *uid, const char *name,
                             uint32_t attempt, uint64_t *ret, struct hk_err *err)
{
    struct rig *r = fake_rig(rt);

    if (r->fake.lost) {
        return hk_fail(err, HK_EBUSY, "never came to run");
    }
    for (uint32_t i = 0; i < r->fake.all.len; i++) {
        struct fake_container *c = r->fake.all.at[i];

        if (strcmp(c->pod, uid) == 0 && strcmp(c->name, name) == 0 && c->attempt == attempt) {
            hk_buf_addf(&r->fake.log, "adopt %s %u\n", name, attempt);
            *ret = i + 1;
            return 0;
        }
    }
    return hk_fail(err, HK_ENOTFOUND, "gone");
}

static inline void fake_each_pod(struct runtime *rt, void (*fn)(void *ctx, const char *uid),
                                 void *ctx)
{
    struct rig *r = fake_rig(rt);

    for (uint32_t i = 0; i < r->fake.all.len; i++) {
        if (!r->fake.all.at[i]->ended) {
            fn(ctx, r->fake.all.at[i]->pod);
        }
    }
}

static inline const char *fake_caveats(struct runtime *rt)
{
    return fake_rig(rt)->fake.caveats;
}

static const struct runtime_ops fake_ops = {
    .name = "fake",
    .pod_start = fake_pod_start,
    .pod_stop = fake_pod_stop,
    .start = fake_start,
    .kill = fake_kill,
    .exec = fake_exec,
    .adopt = fake_adopt,
    .each_pod = fake_each_pod,
    .caveats = fake_caveats,
};

/* The newest container of that name; NULL none. */
static inline struct fake_container *rig_container(struct rig *r, const char *name)
{
    for (uint32_t i = r->fake.all.len; i > 0; i--) {
        if (strcmp(r->fake.all.at[i - 1]->name, name) == 0) {
            return r->fake.all.at[i - 1];
        }
    }
    return NULL;
}

/* ---- time ---- */

static inline int64_t rig_wall(struct hk_clock *c)
{
    const struct rig *r = (const struct rig *)((const char *)c - offsetof(struct rig, clock));

    return r->clock.now_ns + r->step_ns;
}

static inline void rig_set_now(struct rig *r, int64_t now_ns)
{
    r->clock.now_ns = now_ns;
    port_mem_set_now(r->mem, now_ns);
}

/* Runs until nothing is left to do now; the time when there is more. */
static inline int64_t rig_settle(struct rig *r)
{
    for (int i = 0; i < 10000; i++) {
        const int64_t next_ns = agent_run(r->agent);

        if (next_ns > r->clock.now_ns && port_poll(port_mem_port(r->mem), 100) == 0) {
            return next_ns;
        }
    }
    fail_msg("the agent never comes to rest");
    return 0;
}

static inline void rig_pass(struct rig *r, int64_t s)
{
    const int64_t end_ns = r->clock.now_ns + s * RIG_SECOND_NS;

    for (int64_t next_ns; (next_ns = rig_settle(r)) <= end_ns;) {
        rig_set_now(r, next_ns);
    }
    rig_set_now(r, end_ns);
    rig_settle(r);
}

/* Ends the newest container of that name. */
static inline void rig_end(struct rig *r, const char *name, int code)
{
    for (uint32_t i = r->fake.all.len; i > 0; i--) {
        if (strcmp(r->fake.all.at[i - 1]->name, name) == 0) {
            fake_tell(r, i, code, 0);
            break;
        }
    }
    rig_settle(r);
}

/* ---- objects ---- */

static inline void rig_put(struct rig *r, const char *yaml)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(hk_str(yaml), 0, &a, &docs, &err) < 0) {
        fail_msg("%s", err.text);
    }
    for (uint32_t i = 0; i < docs.len; i++) {
        if (port_mem_put(r->mem, &docs.at[i], &err) < 0) {
            fail_msg("%s", err.text);
        }
    }
    rig_settle(r);
}

/* A pod of namespace d on node n1 with uid u-NAME; more is YAML below "spec:". */
static inline void rig_pod(struct rig *r, const char *name, const char *more)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text,
                "apiVersion: v1\nkind: Pod\nmetadata: {namespace: d, name: %s, uid: u-%s}\n"
                "spec:\n  nodeName: n1\n%s",
                name, name, more);
    rig_put(r, text.data);
}

/* The same while nobody runs, with the time it was made. */
static inline void rig_put_idle(struct rig *r, const char *name, const char *created,
                                const char *more)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct yaml_docs docs = {0};

    hk_buf_addf(&text,
                "apiVersion: v1\nkind: Pod\nmetadata: {namespace: d, name: %s, uid: u-%s, "
                "creationTimestamp: '%s'}\nspec:\n  nodeName: n1\n%s",
                name, name, created, more);
    assert_int_equal(yaml_parse(hk_buf_str(&text), 0, &a, &docs, NULL), 0);
    assert_int_equal(port_mem_put(r->mem, &docs.at[0], NULL), 0);
}

static inline const struct json *rig_peek(struct rig *r, enum api_kind_id kind, const char *name)
{
    const char *ns = !api_kind(kind)->namespaced ? "" : kind == API_LEASE ? "kube-node-lease" : "d";
    const struct api_object *o = port_mem_peek(r->mem, api_kind(kind), hk_str(ns), hk_str(name));

    return o ? &o->root : NULL;
}

/* The JSON at the path of the object, as text; "" nothing. Numbers in the path are indices. */
static inline const char *rig_at(struct rig *r, enum api_kind_id kind, const char *name,
                                 const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct json *v = rig_peek(r, kind, name);
    struct hk_str rest = hk_str(path), part;
    int64_t n;

    while (v && hk_str_cut(&rest, '.', &part)) {
        v = hk_str_int(part, &n) ? json_item(v, (uint32_t)n) : json_get_str(v, part);
    }
    if (json_is(v, JSON_STRING)) {
        hk_buf_addstr(&out, json_str(v, HK_STR("")));
    } else if (v) {
        json_write(v, &out);
    }
    return hk_arena_str(&r->text, hk_buf_str(&out)).s;
}

#define assert_pod(r, name, path, want)                                                            \
    assert_string_equal(rig_at(r, API_POD, name, "status." path), want)

static inline const char *rig_condition(struct rig *r, const char *pod, const char *type)
{
    const struct json *list = json_at(rig_peek(r, API_POD, pod), "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(json_str(json_get(json_item(list, i), "type"), HK_STR("")), type)) {
            return hk_arena_str(&r->text,
                                json_str(json_get(json_item(list, i), "status"), HK_STR("")))
                .s;
        }
    }
    return "";
}

/* How often a line is in the log of calls. */
static inline uint32_t rig_calls(struct rig *r, const char *line)
{
    struct hk_str rest = port_mem_log(r->mem), one;
    uint32_t n = 0;

    while (hk_str_cut(&rest, '\n', &one)) {
        n += hk_str_is(one, line);
    }
    return n;
}

static inline const char *rig_file(struct rig *r, const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char full[256];

    snprintf(full, sizeof(full), "%s/%s", r->dir, path);
    if (hk_read_file(full, 1 << 20, &text, NULL) < 0) {
        return NULL;
    }
    return hk_arena_str(&r->text, hk_buf_str(&text)).s;
}

/* Asks as a user does, with the pod's grace period. */
static inline void rig_delete(struct rig *r, const char *name, int64_t grace_s)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf at = {0};
    struct json doc = json_clone(rig_peek(r, API_POD, name), &a);
    struct json *meta = (struct json *)json_get(&doc, "metadata");
    struct hk_err err = {0};

    time_write(r->clock.now_ns + r->step_ns + grace_s * RIG_SECOND_NS, &at);
    json_put(meta, &a, HK_STR("deletionTimestamp"), json_make_str(hk_buf_str(&at)));
    json_put(meta, &a, HK_STR("deletionGracePeriodSeconds"), json_make_int(grace_s));
    assert_int_equal(port_mem_put(r->mem, &doc, &err), 0);
    rig_settle(r);
}

/* ---- beginning and end ---- */

static inline void rig_agent(struct rig *r)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json capacity;

    assert_int_equal(json_parse(HK_STR("{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"}"), 0,
                                &a, &capacity, NULL),
                     0);
    r->agent = agent_new(&(struct agent_opts){.port = port_mem_port(r->mem),
                                              .clock = &r->clock.clock,
                                              .rand = &r->rand,
                                              .runtime = &r->fake.runtime,
                                              .dir = r->no_dir ? NULL : r->dir,
                                              .record_dir = r->no_dir ? NULL : r->dir,
                                              .end_unknown = r->end_unknown,
                                              .node = "n1",
                                              .image_roots = r->roots,
                                              .dns = r->dns,
                                              .domain = r->dns ? "example.test" : NULL,
                                              .machine = r->machine.root ? &r->machine : NULL,
                                              .capacity = &capacity});
}

static inline void rig_init(struct rig *r)
{
    *r = (struct rig){.fake = {.runtime = {&fake_ops}, .caveats = ""}};
    r->fake.rig = r;
    hk_clock_manual_init(&r->clock, RIG_START_NS);
    r->clock.clock.wall_ns = rig_wall;
    hk_rand_seed(&r->rand, 7);
    r->mem = port_mem_new(RIG_START_NS);
    snprintf(r->dir, sizeof(r->dir), "/tmp/hekla-agent-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->roots, sizeof(r->roots), "%s/roots", r->dir);
    rig_agent(r);
    rig_settle(r);
}

static inline void rig_fini(struct rig *r)
{
    char command[128];

    agent_free(r->agent);
    port_free(port_mem_port(r->mem));
    for (uint32_t i = 0; i < r->fake.all.len; i++) {
        struct fake_container *c = r->fake.all.at[i];

        hk_free(c->name);
        hk_free(c->pod);
        hk_free(c->root);
        hk_buf_fini(&c->argv);
        hk_buf_fini(&c->env);
        hk_buf_fini(&c->mounts);
        hk_free(c);
    }
    hk_vec_fini(&r->fake.all);
    hk_buf_fini(&r->fake.log);
    hk_arena_fini(&r->text);
    snprintf(command, sizeof(command), "rm -rf '%s'", r->dir);
    assert_int_equal(system(command), 0);
}

/* A file of the machine that the next agent is to find itself on. */
static inline void rig_machine_file(struct rig *r, const char *path, const char *text)
{
    char full[256];

    snprintf(full, sizeof(full), "%s/machine", r->dir);
    r->machine.root = hk_arena_str(&r->text, hk_str(full)).s;
    snprintf(full, sizeof(full), "%s%s", r->machine.root, path);
    for (char *slash = full + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    assert_int_equal(hk_write_file(full, hk_str(text), NULL), 0);
}

/* Another process takes over; what ends meanwhile is told when it is adopted. */
static inline void rig_down(struct rig *r)
{
    agent_free(r->agent);
    r->agent = NULL;
}

static inline void rig_up(struct rig *r)
{
    rig_agent(r);
    rig_settle(r);
    for (uint32_t i = 0; i < r->fake.all.len; i++) {
        if (r->fake.all.at[i]->ended && !r->fake.all.at[i]->told) {
            fake_tell(r, i + 1, r->fake.all.at[i]->code, 0);
        }
    }
    rig_settle(r);
}
