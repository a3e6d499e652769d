// SPDX-License-Identifier: Apache-2.0
// Replays a record: each line is one input of the engine, or a session and its decisions.
#include "base/log.h"
#include "scheduler/loop_priv.h"

#include <errno.h>

#define SCHEDULERS_MAX 64

struct replay {
    struct engine g;
    bool open; /* the head of the record has been read */
    struct hk_arena mem;
    struct hk_str line;
    struct json v; /* the line as a tree, in mem */
    struct hk_buf *out;
};

static const struct api_kind *loop_replay_find_kind(const struct replay *r, const char *verb)
{
    const struct hk_str plural = json_str_field(&r->v, verb);
    const struct hk_str group = json_str_field(&r->v, "group");

    for (unsigned i = 0; i < API_NKINDS; i++) {
        const struct api_kind *k = api_kind(i);
        if (hk_str_is(plural, k->plural) && hk_str_is(group, k->group)) {
            return k;
        }
    }
    return NULL;
}

static int do_head(struct replay *r, struct hk_err *err)
{
    const struct json *names = json_get(&r->v, "schedulers");
    const int64_t shard_mode = json_int(json_get(&r->v, "shard_mode"), SHARD_NONE);
    struct hk_str at[SCHEDULERS_MAX];
    struct engine_opts o = {.scheduler_names = at,
                            .default_queue = json_str_field(&r->v, "default_queue"),
                            .shard_name = json_str_field(&r->v, "shard")};

    if (r->open || json_int(json_get(&r->v, "hekla"), 0) != 1) {
        return hk_fail(err, HK_EINVAL, "not the head of a record of version 1");
    }
    if (shard_mode < SHARD_NONE || shard_mode > SHARD_SOFT) {
        return hk_fail(err, HK_EINVAL, "shard_mode %lld, want 0 to 2", (long long)shard_mode);
    }
    o.session = SESSION_OPTS_DEFAULT;
    o.session.seed = (uint64_t)json_int(json_get(&r->v, "seed"), 1);
    o.session.min_feasible = (uint32_t)json_int(json_get(&r->v, "min_feasible"), 0);
    o.session.min_percentage = (uint32_t)json_int(json_get(&r->v, "min_percentage"), 0);
    o.session.percentage = (uint32_t)json_int(json_get(&r->v, "percentage"), 0);
    o.session.shard_mode = (enum shard_mode)shard_mode;
    o.session.open_gates = json_bool(json_get(&r->v, "open_gates"), false);
    for (uint32_t k = 0; k < json_len(names) && k < SCHEDULERS_MAX; k++) {
        at[o.nscheduler_name++] = json_str(&names->items[k], HK_STR(""));
    }
    engine_init(&r->g, &o);
    r->open = true;
    return 0;
}

static int do_conf(struct replay *r, struct hk_err *err)
{
    struct conf *c = NULL;
    const int rc = conf_parse(json_str_field(&r->v, "conf"), &c, err);

    if (rc < 0) {
        return rc;
    }
    conf_free(r->g.conf.now);
    r->g.conf.now = c;
    return 0;
}

static int do_put(struct replay *r, struct hk_err *err)
{
    const struct api_kind *kind = loop_replay_find_kind(r, "put");
    const struct json *obj = json_get(&r->v, "obj");

    if (!kind || !json_is(obj, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "put without a known kind and an object");
    }
    engine_put(&r->g, kind, obj);
    return 0;
}

static int do_del(struct replay *r, struct hk_err *err)
{
    const struct api_kind *kind = loop_replay_find_kind(r, "del");

    if (!kind) {
        return hk_fail(err, HK_EINVAL, "del without a known kind");
    }
    engine_del(&r->g, kind, json_str_field(&r->v, "ns"), json_str_field(&r->v, "name"));
    return 0;
}

static int find_task(struct replay *r, const char *verb, task_id *ret, struct hk_err *err)
{
    *ret = model_task_find(&r->g.m, json_str_field(&r->v, verb), json_str_field(&r->v, "name"));
    return id_none(*ret) ? hk_fail(err, HK_EINVAL, "%s of an unknown pod", verb) : 0;
}

static int do_unbind(struct replay *r, struct hk_err *err)
{
    task_id t;
    const int rc = find_task(r, "unbind", &t, err);

    if (rc < 0) {
        return rc;
    }
    if (model_task(&r->g.m, t)->status != TASK_BINDING) {
        return hk_fail(err, HK_EINVAL, "unbind of a pod that is not being bound");
    }
    engine_unbind(&r->g, t);
    return 0;
}

static int do_hold(struct replay *r, struct hk_err *err)
{
    task_id t;
    const int rc = find_task(r, "hold", &t, err);

    if (rc < 0) {
        return rc;
    }
    engine_hold(&r->g, t, true);
    return 0;
}

static int do_free(struct replay *r, struct hk_err *err)
{
    task_id t;
    const int rc = find_task(r, "free", &t, err);

    if (rc < 0) {
        return rc;
    }
    engine_hold(&r->g, t, false);
    return 0;
}

static int do_stay(struct replay *r, struct hk_err *err)
{
    task_id t;
    const int rc = find_task(r, "stay", &t, err);

    if (rc < 0) {
        return rc;
    }
    engine_stay(&r->g, t);
    return 0;
}

static int do_settle(struct replay *r, struct hk_err *err)
{
    engine_settle(&r->g);
    return 0;
}

static int do_cycle(struct replay *r, struct hk_err *err)
{
    engine_cycle(&r->g, json_int(json_get(&r->v, "now"), 0),
                 json_bool(json_get(&r->v, "all"), false),
                 (uint64_t)json_int(json_get(&r->v, "stop"), 0));
    hk_buf_addstr(r->out, hk_buf_str(&r->g.line));
    if (!hk_str_eq(hk_str_trim(hk_buf_str(&r->g.line)), hk_str_trim(r->line))) {
        return hk_fail(err, HK_ECONFLICT, "decisions differ: %.*s", HK_FMT(hk_buf_str(&r->g.line)));
    }
    return 0;
}

static const struct {
    const char *key;
    int (*run)(struct replay *r, struct hk_err *err);
} verbs[] = {
    {"conf", do_conf},     {"put", do_put},       {"del", do_del},
    {"unbind", do_unbind}, {"hold", do_hold},     {"free", do_free},
    {"stay", do_stay},     {"settle", do_settle}, {"cycle", do_cycle},
};

static int do_line(struct replay *r, struct hk_err *err)
{
    const int rc = json_parse(r->line, 0, &r->mem, &r->v, err);

    if (rc < 0) {
        return rc;
    }
    if (!r->open) {
        return do_head(r, err);
    }
    for (size_t k = 0; k < HK_LEN(verbs); k++) {
        if (json_get(&r->v, verbs[k].key)) {
            return verbs[k].run(r, err);
        }
    }
    return hk_fail(err, HK_EINVAL, "no input that is known");
}

int loop_replay_from(FILE *f, const char *name, struct hk_buf *out, struct hk_err *err)
{
    struct replay r = {.out = out};
    unsigned long number = 0;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;

    while (rc == 0 && (n = getline(&line, &cap, f)) >= 0) {
        number++;
        r.line = (struct hk_str){line, (size_t)n};
        rc = do_line(&r, err);
        hk_arena_clear(&r.mem);
    }
    if (rc < 0) {
        hk_wrap(err, rc, "%s: line %lu", name, number);
    } else if (ferror(f) || !r.open) {
        rc = hk_fail(err, HK_EIO, "%s: %s", name, r.open ? "cannot be read" : "is empty");
    }
    free(line); /* allocated by getline */
    if (r.open) {
        engine_fini(&r.g);
    }
    hk_arena_fini(&r.mem);
    return rc;
}

int loop_replay(const char *path, struct hk_buf *out, struct hk_err *err)
{
    FILE *f = fopen(path, "re");
    int rc;

    if (!f) {
        return hk_fail(err, HK_EIO, "%s: %s", path, strerror(errno));
    }
    rc = loop_replay_from(f, path, out, err);
    fclose(f);
    return rc;
}
