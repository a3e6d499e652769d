// SPDX-License-Identifier: Apache-2.0
// Leader election: one call at a time reads, creates or updates the lease. A leader renews with the
// revision it knows, and reads the lease only if that fails; candidates always read first.
#include "client/election.h"

#include "base/log.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
/* As in client-go: candidates spread their attempts over this many times retry_ns. */
#define JITTER 1.2

static const struct hk_str none = {"", 0};

struct election {
    struct election_opts o;
    char *ns, *name, *identity;
    enum election_state state;
    struct api_object *seen; /* the lease as last read or written; NULL: never */
    int64_t seen_ns;         /* when we last saw its content change */
    int64_t until_ns;        /* LEADS: end of the leadership without renewal */
    int64_t next_ns;         /* the next attempt */
    uint64_t call;           /* the call in flight, 0: none */
    bool writing;            /* the call writes */
    bool has_read;           /* this attempt has read the lease already */
    bool releasing;          /* the call releases the lease, or another call will */
    int64_t sent_ns, end_ns; /* of the call */
    char *complaint;         /* the failure that was last reported */
    struct hk_arena mem;     /* for one body */
};

static int64_t election_now_ns(const struct election *e)
{
    return e->o.clock->mono_ns(e->o.clock);
}

/* ---- the lease ---- */

static const struct json *election_lease_spec(const struct election *e)
{
    return e->seen ? json_get(&e->seen->root, "spec") : NULL;
}

static struct hk_str holder_of(const struct election *e)
{
    return json_str_field(election_lease_spec(e), "holderIdentity");
}

static bool election_is_held_by_us(const struct election *e)
{
    return hk_str_is(holder_of(e), e->identity);
}

/* Rounded up: a candidate must not start before we would have stopped. */
static int64_t lease_s(const struct election *e)
{
    return (e->o.lease_ns + SECOND_NS - 1) / SECOND_NS;
}

/* True if the lease has no holder, or its holder did not renew it for leaseDurationSeconds. */
static bool is_free(const struct election *e)
{
    const struct json *member = json_get(election_lease_spec(e), "leaseDurationSeconds");
    const int64_t asked_s = HK_MIN(HK_MAX(json_int(member, lease_s(e)), 0), INT32_MAX);

    return holder_of(e).n == 0 || election_now_ns(e) - e->seen_ns >= hk_seconds_ns(asked_s);
}

static void election_save_lease(struct election *e, struct api_object *lease)
{
    HK_AUTO(hk_buf_fini) struct hk_buf before = {0};
    const bool first = !e->seen;

    hk_buf_addstr(&before, holder_of(e));
    if (first || !json_equal(election_lease_spec(e), json_get(&lease->root, "spec"))) {
        e->seen_ns = election_now_ns(e);
    }
    api_object_ref(lease);
    api_object_unref(e->seen);
    e->seen = lease;
    if (first || !hk_str_eq(holder_of(e), hk_buf_str(&before))) {
        hk_log(HK_LOG_INFO, "lease", "lease=%s/%s holder=%.*s", e->ns, e->name,
               HK_FMT(holder_of(e)));
    }
}

static void put_spec(struct election *e, struct json *spec)
{
    const int64_t changes = json_int(json_get(spec, "leaseTransitions"), 0);
    const struct json now = json_make_micro_time(e->o.clock->wall_ns(e->o.clock), &e->mem);

    if (e->releasing) {
        json_del(spec, "holderIdentity");
    } else {
        json_set_cstr(spec, &e->mem, "holderIdentity", e->identity);
    }
    json_set_int(spec, &e->mem, "leaseDurationSeconds", e->releasing ? 1 : lease_s(e));
    if (!election_is_held_by_us(e) || e->releasing) {
        json_set(spec, &e->mem, "acquireTime", now);
    }
    json_set(spec, &e->mem, "renewTime", now);
    json_set_int(spec, &e->mem, "leaseTransitions",
                 changes + (e->seen && !election_is_held_by_us(e)));
}

static struct json body_of(struct election *e)
{
    struct json body = e->seen ? json_clone(&e->seen->root, &e->mem) : json_make_object();
    const struct json *old = json_get(&body, "spec");
    struct json spec = json_is(old, JSON_OBJECT) ? *old : json_make_object();
    struct json meta = json_make_object();

    if (!e->seen) {
        json_set_cstr(&meta, &e->mem, "name", e->name);
        json_set_cstr(&meta, &e->mem, "namespace", e->ns);
        json_set_cstr(&body, &e->mem, "apiVersion", "coordination.k8s.io/v1");
        json_set_cstr(&body, &e->mem, "kind", "Lease");
        json_set(&body, &e->mem, "metadata", meta);
    }
    put_spec(e, &spec);
    json_set(&body, &e->mem, "spec", spec);
    return body;
}

/* ---- calls ---- */

static void election_on_answer(void *ctx, const struct port_msg *m);

static void election_submit(struct election *e, enum port_verb verb, const struct json *body)
{
    const struct port_request req = {.verb = verb,
                                     .kind = api_kind(API_LEASE),
                                     .ns = hk_str(e->ns),
                                     .name = verb == PORT_CREATE ? none : hk_str(e->name),
                                     .body = body};

    e->writing = verb != PORT_GET;
    e->sent_ns = election_now_ns(e);
    e->end_ns = e->sent_ns + e->o.renew_ns / 2;
    e->call = port_submit(e->o.port, &req, (struct port_sink){election_on_answer, e});
}

static void read_lease(struct election *e)
{
    e->has_read = true;
    election_submit(e, PORT_GET, NULL);
}

static void write_lease(struct election *e)
{
    const struct json body = body_of(e);

    election_submit(e, e->seen ? PORT_UPDATE : PORT_CREATE, &body);
    hk_arena_clear(&e->mem);
}

/* ---- leadership ---- */

static void put_off(struct election *e)
{
    const double spread = e->state == ELECTION_WAITS ? JITTER * hk_rand_unit(e->o.rand) : 0;

    e->next_ns = election_now_ns(e) + e->o.retry_ns + (int64_t)((double)e->o.retry_ns * spread);
}

static void election_log_warning(struct election *e, const char *text)
{
    if (!e->complaint || strcmp(e->complaint, text) != 0) {
        hk_free(e->complaint);
        e->complaint = hk_strdup(text);
        hk_log(HK_LOG_WARN, "cannot hold the lease", "lease=%s/%s err=\"%s\"", e->ns, e->name,
               text);
    }
}

static void election_lose_lease(struct election *e, const char *why)
{
    election_log_warning(e, why);
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
    if (rc != -HK_ECONFLICT && rc != -HK_EEXIST) { /* else another candidate was faster */
        election_log_warning(e, text);
    }
    put_off(e);
}

/* Handles the answer to a successful write. */
static void wrote(struct election *e, struct api_object *lease)
{
    election_save_lease(e, lease);
    hk_free(hk_take(e->complaint));
    if (e->state == ELECTION_ENDS) {
        if (election_is_held_by_us(e)) {
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
    election_save_lease(e, lease);
    if (election_is_held_by_us(e) || is_free(e)) {
        write_lease(e);
    } else if (e->state == ELECTION_LEADS) {
        election_lose_lease(e, "somebody else holds it");
    } else {
        put_off(e);
    }
}

static void election_on_answer(void *ctx, const struct port_msg *m)
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
    const int64_t now = election_now_ns(e);

    if (e->state == ELECTION_LEADS && now >= e->until_ns) {
        election_lose_lease(e, "not renewed in time");
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
    return e->state == ELECTION_LEADS && election_now_ns(e) < e->until_ns;
}

/* Waits for a write in flight: its answer contains the revision that the next write needs. */
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

/* ---- creation and freeing ---- */

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
    e->next_ns = election_now_ns(e);
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
