// SPDX-License-Identifier: Apache-2.0
// All controllers of a process, with one set of mirrors. The owner of the event loop calls
// manager_run when the port has messages or the returned time has come.
#include "controllers/ctl_priv.h"

#include "api/names.h"

#define POLL_MAX 4096u
#define PASSES_MAX 64u /* before other controllers run */
#define PASSES_NS ((int64_t)5 * 1000 * 1000)

static void ctl_manager_on_mirror_change(void *ctx, const struct mirror_change *ch)
{
    const struct hearer *h = ctx;

    h->changed(h->c, ch);
}

/* ---- functions for controllers ---- */

void ctl_add(struct ctl *c, struct hk_str ns, struct hk_str name)
{
    workq_add(&c->q, ns, name);
}

void ctl_add_at(struct ctl *c, struct hk_str ns, struct hk_str name, int64_t at_ns)
{
    struct hk_clock *clock = c->mgr->o.clock;
    const int64_t wait_ns = HK_MAX(at_ns - clock->wall_ns(clock), 0);

    workq_add_at(&c->q, ns, name, clock->mono_ns(clock) + wait_ns);
}

struct mirror *ctl_mirror(struct ctl *c, enum api_kind_id kind)
{
    hk_assert(c->mgr->mirrors[kind]);
    return c->mgr->mirrors[kind];
}

const struct ctl_conf *ctl_conf(const struct ctl *c)
{
    return &c->mgr->o.conf;
}

struct hk_rand *ctl_rand(struct ctl *c)
{
    return c->mgr->o.rand;
}

struct hk_intern *ctl_strings(struct ctl *c)
{
    return &c->mgr->str;
}

int64_t ctl_now(const struct ctl *c)
{
    return c->mgr->o.clock->wall_ns(c->mgr->o.clock);
}

int64_t ctl_mono(const struct ctl *c)
{
    return c->mgr->o.clock->mono_ns(c->mgr->o.clock);
}

struct hk_str ctl_config_ns(const struct ctl_conf *conf)
{
    return conf->config_ns.n > 0 ? conf->config_ns : HK_STR("volcano-system");
}

struct hk_str ctl_config_name(const struct ctl_conf *conf)
{
    return conf->config_name.n > 0 ? conf->config_name : HK_STR("volcano-controller-configmap");
}

bool ctl_is_own_scheduler(const struct ctl_conf *conf, struct hk_str name)
{
    for (uint32_t i = 0; i < conf->nscheduler_name; i++) {
        if (hk_str_eq(name, conf->scheduler_names[i])) {
            return true;
        }
    }
    return conf->nscheduler_name == 0 && hk_str_is(name, API_SCHEDULER_NAME);
}

/* ---- open and close ---- */

static const struct mirror_type *choose_mirror_type(const struct manager *m,
                                                    const struct mirror_type *type)
{
    return type->as_default_scheduler &&
                   ctl_is_own_scheduler(&m->o.conf, HK_STR(API_SCHEDULER_NAME_DEFAULT))
               ? type->as_default_scheduler
               : type;
}

static void ctl_manager_add_watch(struct manager *m, struct ctl *c, const struct ctl_watch *w)
{
    struct mirror **at = &m->mirrors[w->type->kind];
    struct hearer *h;

    if (!*at) {
        *at = mirror_new(&(struct mirror_opts){
            .port = m->o.port,
            .clock = m->o.clock,
            .str = &m->str,
            .type = choose_mirror_type(m, w->type),
            .ns = w->type->own_config ? ctl_config_ns(&m->o.conf) : HK_STR(""),
            .name = w->type->own_config ? ctl_config_name(&m->o.conf) : HK_STR("")});
    }
    if (w->changed) {
        h = hk_zalloc(sizeof(*h));
        *h = (struct hearer){c, w->changed};
        hk_vec_push(&m->hearers, h);
        mirror_listen(*at, ctl_manager_on_mirror_change, h);
    }
}

static void ctl_state_init(struct manager *m, struct ctl_state *s, const struct ctl_type *type)
{
    s->ctl = (struct ctl){.type = type, .mgr = m, .q.str = &m->str};
    s->ctl.state = hk_zalloc(HK_MAX(type->state_size, 1));
    for (const struct ctl_watch *w = type->watches; w->type; w++) {
        ctl_manager_add_watch(m, &s->ctl, w);
    }
    if (type->open) {
        type->open(&s->ctl);
    }
}

static void ctl_state_fini(struct ctl_state *s)
{
    if (s->ctl.type->close) {
        s->ctl.type->close(&s->ctl);
    }
    for (uint32_t i = 0; i < s->passes.len; i++) {
        struct key_pass *p = &s->passes.at[i];

        for (uint32_t k = 0; k < p->errors.len; k++) {
            pass_error_fini(&p->errors.at[k]);
        }
        hk_vec_fini(&p->errors);
    }
    hk_vec_fini(&s->passes);
    workq_fini(&s->ctl.q);
    hk_free(s->ctl.state);
}

struct manager *manager_new(const struct manager_opts *o)
{
    struct manager *m = hk_zalloc(sizeof(*m));

    m->o = *o;
    m->deadline_ns = INT64_MAX;
    m->recorder = recorder_new(o->port, o->clock,
                               o->component.n > 0 ? o->component : HK_STR("vc-controller-manager"));
    m->nctls = o->ntype;
    m->ctls = hk_zalloc_array(HK_MAX(o->ntype, 1), sizeof(*m->ctls));
    for (uint32_t i = 0; i < o->ntype; i++) {
        ctl_state_init(m, &m->ctls[i], o->types[i]);
    }
    return m;
}

void manager_free(struct manager *m)
{
    if (!m) {
        return;
    }
    for (uint32_t i = 0; i < m->calls.len; i++) {
        struct call *call = &m->calls.at[i];

        if (call->id) {
            port_cancel(m->o.port, call->id);
            hk_free(call->ns);
            hk_free(call->name);
            hk_free(call->uid);
        }
    }
    for (unsigned k = 0; k < API_NKINDS; k++) {
        mirror_free(m->mirrors[k]);
    }
    for (uint32_t i = 0; i < m->nctls; i++) {
        ctl_state_fini(&m->ctls[i]);
    }
    for (uint32_t i = 0; i < m->hearers.len; i++) {
        hk_free(m->hearers.at[i]);
    }
    recorder_free(m->recorder);
    hk_vec_fini(&m->ending);
    hk_vec_fini(&m->hearers);
    hk_vec_fini(&m->calls);
    hk_vec_fini(&m->vacant);
    hk_map_fini(&m->call_at);
    hk_arena_fini(&m->mem);
    hk_intern_fini(&m->str);
    hk_free(m->ctls);
    hk_free(m);
}

/* ---- running ---- */

void manager_drain(struct manager *m)
{
    m->draining = true;
}

bool manager_drained(const struct manager *m)
{
    return m->call_at.len == 0 && recorder_len(m->recorder) == 0;
}

struct mirror *manager_mirror(const struct manager *m, enum api_kind_id kind)
{
    return m->mirrors[kind];
}

bool manager_synced(const struct manager *m)
{
    for (unsigned k = 0; k < API_NKINDS; k++) {
        if (m->mirrors[k] && !mirror_synced(m->mirrors[k])) {
            return false;
        }
    }
    return true;
}

static int64_t mirrors_tick(struct manager *m, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (unsigned k = 0; k < API_NKINDS; k++) {
        if (m->mirrors[k]) {
            const int64_t mirror_ns = mirror_tick(m->mirrors[k], now_ns);

            next_ns = HK_MIN(next_ns, mirror_ns);
        }
    }
    return next_ns;
}

/* Runs a few passes of one controller, until PASSES_NS are over. Returns when to run it again. */
static int64_t ctl_state_run(struct manager *m, struct ctl_state *s, int64_t now_ns)
{
    struct workq *q = &s->ctl.q;
    int64_t next_ns;

    if (m->draining) {
        return INT64_MAX;
    }
    (void)workq_tick(q, now_ns);
    for (unsigned n = 0; n < PASSES_MAX; n++) {
        const uint32_t key = workq_pop(q);

        if (key == HK_NONE) {
            break;
        }
        pass_run(m, s, key);
        if (m->o.clock->mono_ns(m->o.clock) - now_ns > PASSES_NS) {
            break;
        }
    }
    next_ns = workq_tick(q, now_ns);
    return q->head < q->ready.len ? 0 : next_ns;
}

int64_t manager_run(struct manager *m)
{
    const int64_t now_ns = m->o.clock->mono_ns(m->o.clock);
    int64_t next_ns = INT64_MAX, mirrors_ns;

    if (!m->o.shared_port && port_poll(m->o.port, POLL_MAX) == POLL_MAX) {
        next_ns = 0;
    }
    mirrors_ns = mirrors_tick(m, now_ns);
    next_ns = HK_MIN(next_ns, mirrors_ns);
    pass_expire(m, now_ns);
    for (uint32_t i = 0; manager_synced(m) && i < m->nctls; i++) {
        const int64_t due_ns = ctl_state_run(m, &m->ctls[i], now_ns);

        next_ns = HK_MIN(next_ns, due_ns);
    }
    return HK_MIN(next_ns, m->deadline_ns); /* includes the calls just made */
}

bool manager_idle(const struct manager *m)
{
    if (!manager_synced(m) || m->call_at.len > 0 || recorder_len(m->recorder) > 0) {
        return false;
    }
    for (uint32_t i = 0; i < m->nctls; i++) {
        const struct workq *q = &m->ctls[i].ctl.q;

        if (q->head < q->ready.len) {
            return false;
        }
    }
    return true;
}

bool manager_rests(const struct manager *m)
{
    for (uint32_t i = 0; i < m->nctls; i++) {
        if (m->ctls[i].ctl.q.nresting > 0) {
            return true;
        }
    }
    return false;
}

const struct ctl_metrics *manager_metrics(const struct manager *m)
{
    return &m->metrics;
}
