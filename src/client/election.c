// SPDX-License-Identifier: Apache-2.0
// Leader election: one call at a time reads, creates or updates the lease. A leader renews with the
// revision it knows; only when that fails it reads first, as those who wait always do.
#include "client/election.h"

#include "base/log.h"
#include "codec/timefmt.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
/* client-go's: attempts of those who wait spread over so many times retry_ns. */
#define JITTER 1.2

static const struct hk_str none = {"", 0};

struct election {
    struct election_opts o;
    char *ns, *name, *identity;
    enum election_state state;
    struct api_object *seen; /* the lease as it was last seen or written; NULL: never */
    int64_t seen_ns;         /* when its content last changed, for us */
    int64_t until_ns;        /* LEADS: not beyond */
    int64_t next_ns;         /* the next attempt */
    uint64_t call;           /* 0: none */
    bool writing;            /* the call writes */
    bool has_read;           /* this attempt has read the lease already */
    bool releasing;          /* the call gives the lease back, or is to be followed by one */
    int64_t sent_ns, end_ns; /* of the call */
    char *complaint;         /* the failure that was told last */
    struct hk_arena mem;     /* one body */
};

static int64_t now_ns(const struct election *e)
{
    return e->o.clock->mono_ns(e->o.clock);
}

/* ---- the lease ---- */

static const struct json *spec_of(const struct election *e)
{
    return e->seen ? json_get(&e->seen->root, "spec") : NULL;
}

static struct hk_str holder_of(const struct election *e)
{
    return json_str(json_get(spec_of(e), "holderIdentity"), none);
}

static bool is_ours(const struct election *e)
{
    return hk_str_is(holder_of(e), e->identity);
}

/* Rounded up: who waits must not begin before we would have stopped. */
static int64_t lease_s(const struct election *e)
{
    return (e->o.lease_ns + SECOND_NS - 1) / SECOND_NS;
}

/* Nobody holds it, or whoever did has been silent for as long as he asked to be waited for. */
static bool is_free(const struct election *e)
{
    const struct json *member = json_get(spec_of(e), "leaseDurationSeconds");
    const int64_t asked_s = HK_MIN(HK_MAX(json_int(member, lease_s(e)), 0), INT32_MAX);

    return holder_of(e).n == 0 || now_ns(e) - e->seen_ns >= asked_s * SECOND_NS;
}

static void see(struct election *e, struct api_object *lease)
{
    HK_AUTO(hk_buf_fini) struct hk_buf before = {0};
    const bool first = !e->seen;

    hk_buf_addstr(&before, holder_of(e));
    if (first || !json_equal(spec_of(e), json_get(&lease->root, "spec"))) {
        e->seen_ns = now_ns(e);
    }
    api_object_ref(lease);
    api_object_unref(e->seen);
    e->seen = lease;
    if (first || !hk_str_eq(holder_of(e), hk_buf_str(&before))) {
        hk_log(HK_LOG_INFO, "lease", "lease=%s/%s holder=%.*s", e->ns, e->name,
               HK_FMT(holder_of(e)));
    }
}

static struct json time_json(struct election *e)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    time_write_micro(e->o.clock->wall_ns(e->o.clock), &text);
    return json_make_str(hk_arena_str(&e->mem, hk_buf_str(&text)));
}

static void put_spec(struct election *e, struct json *spec)
{
    const int64_t changes = json_int(json_get(spec, "leaseTransitions"), 0);
    const struct json now = time_json(e);

    if (e->releasing) {
        json_del(spec, "holderIdentity");
    } else {
        json_put(spec, &e->mem, HK_STR("holderIdentity"), json_make_str(hk_str(e->identity)));
    }
    json_put(spec, &e->mem, HK_STR("leaseDurationSeconds"),
             json_make_int(e->releasing ? 1 : lease_s(e)));
    if (!is_ours(e) || e->releasing) {
        json_put(spec, &e->mem, HK_STR("acquireTime"), now);
    }
    json_put(spec, &e->mem, HK_STR("renewTime"), now);
    json_put(spec, &e->mem, HK_STR("leaseTransitions"),
             json_make_int(changes + (e->seen && !is_ours(e))));
}

static struct json body_of(struct election *e)
{
    struct json body = e->seen ? json_clone(&e->seen->root, &e->mem) : json_make_object();
    const struct json *old = json_get(&body, "spec");
    struct json spec = json_is(old, JSON_OBJECT) ? *old : json_make_object();
    struct json meta = json_make_object();

    if (!e->seen) {
        json_put(&meta, &e->mem, HK_STR("name"), json_make_str(hk_str(e->name)));
        json_put(&meta, &e->mem, HK_STR("namespace"), json_make_str(hk_str(e->ns)));
        json_put(&body, &e->mem, HK_STR("apiVersion"),
                 json_make_str(HK_STR("coordination.k8s.io/v1")));
        json_put(&body, &e->mem, HK_STR("kind"), json_make_str(HK_STR("Lease")));
        json_put(&body, &e->mem, HK_STR("metadata"), meta);
    }
    put_spec(e, &spec);
    json_put(&body, &e->mem, HK_STR("spec"), spec);
    return body;
}

/* ---- calls ---- */

static void on_msg(void *ctx, const struct port_msg *m);

static void submit(struct election *e, enum port_verb verb, const struct json *body)
{
    const struct port_request req = {.verb = verb,
                                     .kind = api_kind(API_LEASE),
                                     .ns = hk_str(e->ns),
                                     .name = verb == PORT_CREATE ? none : hk_str(e->name),
                                     .body = body};

    e->writing = verb != PORT_GET;
    e->sent_ns = now_ns(e);
    e->end_ns = e->sent_ns + e->o.renew_ns / 2;
    e->call = port_submit(e->o.port, &req, (struct port_sink){on_msg, e});
}

static void read_lease(struct election *e)
{
    e->has_read = true;
    submit(e, PORT_GET, NULL);
}

static void write_lease(struct election *e)
{
    const struct json body = body_of(e);

    submit(e, e->seen ? PORT_UPDATE : PORT_CREATE, &body);
    hk_arena_clear(&e->mem);
}

/* ---- the office ---- */

static void put_off(struct election *e)
{
    const double spread = e->state == ELECTION_WAITS ? JITTER * hk_rand_unit(e->o.rand) : 0;

    e->next_ns = now_ns(e) + e->o.retry_ns + (int64_t)((double)e->o.retry_ns * spread);
}

static void complain(struct election *e, const char *text)
{
    if (!e->complaint || strcmp(e->complaint, text) != 0) {
        hk_free(e->complaint);
        e->complaint = hk_strdup(text);
        hk_log(HK_LOG_WARN, "cannot hold the lease", "lease=%s/%s err=\"%s\"", e->ns, e->name,
               text);
    }
}

static void lose(struct election *e, const char *why)
{
    complain(e, why);
    e->state = ELECTION_LOST;
    if (e->call) {
        port_cancel(e->o.port, e->call);
        e->call = 0;
    }
}

static void attempt_failed(struct election *e, int rc, const char *text)
{
    if (e->state == ELECTION_ENDS) {
        e->state = ELECTION_OVER;
        return;
    }
    if (rc != -HK_ECONFLICT && rc != -HK_EEXIST) { /* else somebody was quicker */
        complain(e, text);
    }
    put_off(e);
}

/* The answer to a write that took effect. */
static void wrote(struct election *e, struct api_object *lease)
{
    see(e, lease);
    hk_free(hk_take(e->complaint));
    if (e->state == ELECTION_ENDS) {
        if (is_ours(e)) {
            e->releasing = true;
            write_lease(e);
        } else {
            e->state = ELECTION_OVER;
        }
        return;
    }
    e->state = ELECTION_LEADS;
    e->until_ns = e->sent_ns + e->o.renew_ns;
    e->next_ns = e->sent_ns + e->o.retry_ns;
}

static void found(struct election *e, struct api_object *lease)
{
    see(e, lease);
    if (is_ours(e) || is_free(e)) {
        write_lease(e);
    } else if (e->state == ELECTION_LEADS) {
        lose(e, "somebody else holds it");
    } else {
        put_off(e);
    }
}

static void on_msg(void *ctx, const struct port_msg *m)
{
    struct election *e = ctx;

    if (m->call != e->call || m->type != PORT_DONE) {
        return;
    }
    e->call = 0;
    if (m->rc == 0 && e->writing) {
        wrote(e, m->obj);
    } else if (m->rc == 0) {
        found(e, m->obj);
    } else if (!e->writing && m->rc == -HK_ENOTFOUND && e->state != ELECTION_ENDS) {
        api_object_unref(hk_take(e->seen));
        write_lease(e);
    } else if (e->state == ELECTION_LEADS && !e->has_read) {
        read_lease(e);
    } else {
        attempt_failed(e, m->rc, m->err ? m->err->text : "");
    }
}

static void attempt(struct election *e)
{
    e->has_read = false;
    if (e->state == ELECTION_LEADS) {
        write_lease(e);
    } else {
        read_lease(e);
    }
}

int64_t election_tick(struct election *e)
{
    const int64_t now = now_ns(e);

    if (e->state == ELECTION_LEADS && now >= e->until_ns) {
        lose(e, "not renewed in time");
    }
    if (e->call && now >= e->end_ns) {
        port_cancel(e->o.port, e->call);
        e->call = 0;
        attempt_failed(e, -HK_ETIMEOUT, "no answer from the API server");
    }
    if (e->state != ELECTION_WAITS && e->state != ELECTION_LEADS) {
        return e->call ? e->end_ns : INT64_MAX;
    }
    if (!e->call && now >= e->next_ns) {
        attempt(e);
    }
    return HK_MIN(e->call ? e->end_ns : e->next_ns,
                  e->state == ELECTION_LEADS ? e->until_ns : INT64_MAX);
}

enum election_state election_state(const struct election *e)
{
    return e->state;
}

struct hk_str election_uid(const struct election *e)
{
    return e->seen ? e->seen->uid : none;
}

bool election_leads(const struct election *e)
{
    return e->state == ELECTION_LEADS && now_ns(e) < e->until_ns;
}

/* A write under way is waited for: with its answer comes the revision the next one needs. */
void election_release(struct election *e)
{
    const bool leads = e->state == ELECTION_LEADS;

    if (e->state != ELECTION_WAITS && !leads) {
        return;
    }
    e->state = ELECTION_ENDS;
    if (e->call && e->writing) {
        return;
    }
    if (e->call) {
        port_cancel(e->o.port, e->call);
        e->call = 0;
    }
    if (!leads) {
        e->state = ELECTION_OVER;
        return;
    }
    e->releasing = true;
    write_lease(e);
}

/* ---- life ---- */

static int check_times(const struct election_opts *o, struct hk_err *err)
{
    if (o->retry_ns <= 0) {
        return hk_fail(err, HK_EINVAL, "retryPeriod must be greater than zero");
    }
    if (o->lease_ns < SECOND_NS) {
        return hk_fail(err, HK_EINVAL, "leaseDuration must be at least one second");
    }
    if (o->lease_ns <= o->renew_ns) {
        return hk_fail(err, HK_EINVAL, "leaseDuration must be greater than renewDeadline");
    }
    if ((double)o->renew_ns <= JITTER * (double)o->retry_ns) {
        return hk_fail(err, HK_EINVAL,
                       "renewDeadline must be greater than retryPeriod*JitterFactor");
    }
    return 0;
}

int election_new(const struct election_opts *o, struct election **ret, struct hk_err *err)
{
    struct election *e;
    const int rc = check_times(o, err);

    if (rc < 0) {
        return rc;
    }
    e = hk_zalloc(sizeof(*e));
    e->o = *o;
    e->ns = hk_strdup(o->ns);
    e->name = hk_strdup(o->name);
    e->identity = hk_strdup(o->identity);
    e->next_ns = now_ns(e);
    *ret = e;
    return 0;
}

void election_free(struct election *e)
{
    if (!e) {
        return;
    }
    if (e->call) {
        port_cancel(e->o.port, e->call);
    }
    api_object_unref(e->seen);
    hk_arena_fini(&e->mem);
    hk_free(e->complaint);
    hk_free(e->ns);
    hk_free(e->name);
    hk_free(e->identity);
    hk_free(e);
}
