// SPDX-License-Identifier: Apache-2.0
// Writes that wait for admission webhooks. The loop never blocks: a write that must ask a webhook
// stops, and when the answer is there, it starts again from its request and the newest state.
// Answers are kept together with the object that was shown, so nobody is asked twice:
//
//   request -> ... mutate -> [ask, stop] ... answer -> request -> ... mutate: continue with the
//     object as it was, apply the patch, ask the next -> ... validate -> [ask all, stop] ...
//     answers -> request -> ... -> store
//
// If the stored object has changed meanwhile, the answers are about an object that will not be
// written: the write asks again from the first webhook, as kube-apiserver repeats an update.
#include "api/patch.h"
#include "base/log.h"
#include "store/rest_policy_priv.h"

enum { MAX_WARNING = 256 };

bool rest_webhook_waits(const struct rest_call *c)
{
    return c->asking && c->asking->waiting;
}

void rest_webhook_settled(struct rest_call *c)
{
    if (c->asking) {
        asking_forget(c->asking);
        c->asking->restarts = 0;
    }
}

void rest_webhook_finish(struct rest_call *c)
{
    struct rest_asking *k = c->asking;

    if (!k) {
        return;
    }
    for (uint32_t i = 0; i < k->warnings.len; i++) {
        hk_vec_push(&c->adm.warnings, k->warnings.at[i]);
    }
    hk_vec_clear(&k->warnings);
    asking_forget(k);
}

/* ---- the object between two turns ---- */

static void snapshot(struct hk_buf *to, const struct webhook_subject *s)
{
    hk_buf_clear(to);
    if (s->obj) {
        json_write(s->obj, to);
    }
}

static void restore(struct rest_call *c, const struct hk_buf *from, struct webhook_subject *s)
{
    struct json doc;

    if (from->len == 0 || !s->obj) {
        return;
    }
    hk_assert(json_parse(hk_arena_str(&c->mem, hk_buf_str(from)), 0, &c->mem, &doc, NULL) == 0);
    *s->obj = doc;
    if (s->verb == ADMIT_CREATE && !s->kind) {
        c->name = rest_meta_str(&doc, "name");
        s->name = c->name;
    }
}

/* ---- asking ---- */

void rest_webhook_wake(struct rest_call *c)
{
    hk_vec_push(&c->r->webhook_ready, c);
    rest_request_poll(c->r);
}

static void on_answered(struct webhook_ask *a)
{
    if (--a->c->asking->unanswered == 0) {
        rest_webhook_wake(a->c);
    }
}

int rest_webhook_wait(struct rest_call *c)
{
    c->asking->waiting = true;
    c->r->webhook_waiting++;
    c->rc = -HK_EBUSY; /* ends the present turn; nobody sees it */
    return c->rc;
}

/* Whether the webhook wants to be asked: *ret is the row of the version in which it is shown the
 * object, or NULL. Negative when its conditions cannot be evaluated: the call is refused. */
static int match_webhook(struct rest_call *c, const struct webhook *h,
                         const struct webhook_subject *s, const struct rest_kind **ret)
{
    struct policy_turn turn = {.c = c, .s = s, .left = ADMIT_CONDITIONS_BUDGET};
    const struct rest_kind *row = webhook_terms_match(c, &h->terms, s);
    const char *why;
    bool holds = true;

    *ret = NULL;
    if (row && h->conditions.len > 0) {
        struct admit_run *run = policy_turn_run(&turn, &h->exprs, row, NULL);
        if (policy_turn_match(&turn, run, &h->conditions, h->ignore, &holds, &why) < 0) {
            return rest_fail(c, 403, HK_EDENIED, "Forbidden", "%s \"%.*s\" is forbidden: %s",
                             rest_resource(c, s->row->kind), HK_FMT(s->name), why);
        }
    }
    *ret = holds ? row : NULL;
    return 0;
}

/* Puts the question together. A webhook that cannot be reached at all has answered at once. */
static int ask(struct rest_call *c, struct webhook_table *t, struct webhook *h,
               const struct webhook_subject *s, const struct rest_kind *row)
{
    struct hk_err err = {0};

    if (c->r->webhook_waiting >= WEBHOOK_MAX_WAITING || c->r->webhook_bytes >= WEBHOOK_MAX_BYTES) {
        c->status.retry_after_s = 1;
        return rest_fail(c, 429, HK_EBUSY, "TooManyRequests",
                         "too many writes wait for admission webhooks, please try again later");
    }
    rest_webhook_prepare(c);
    struct rest_asking *k = c->asking;
    if (!k->table) {
        k->table = webhook_table_ref(t);
        k->rv = s->rv;
        k->marks = hk_zalloc_array(t->at.len, sizeof(*k->marks));
    }
    struct webhook_ask *a = hk_zalloc(sizeof(*a));
    *a = (struct webhook_ask){.r = c->r, .c = c, .hook = h, .row = row, .answered = on_answered};
    hk_vec_push(&k->asks, a);
    snprintf(a->uid, sizeof(a->uid), "%s", rest_new_uid(c));
    if (webhook_target(c->r, h, &a->mem, &a->target, &err) < 0) {
        a->state = WEBHOOK_ANSWERED;
        hk_buf_adds(&a->why, err.text);
        return 0;
    }
    webhook_write_review(c, h, s, row, a->uid, k->user, &a->review);
    k->unanswered++;
    webhook_post_queue(a);
    return 0;
}

/* ---- answers ---- */

static int fail_internal(struct rest_call *c, const char *why)
{
    rest_cause(c, NULL, NULL, why);
    return rest_fail(c, 500, HK_EIO, "InternalError", "Internal error occurred: %s", why);
}

static void keep_warnings(struct rest_asking *k, const struct json *list)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        asking_keep_warning(k, hk_str_head(json_str(&list->items[i], HK_STR("")), MAX_WARNING));
    }
}

static int refuse(struct rest_call *c, const struct webhook *h, const struct webhook_verdict *v)
{
    const char *why = v->message ? v->message : v->reason;

    return rest_fail_webhook(
        c, v->code, v->reason,
        hk_arena_printf(&c->mem, "admission webhook \"%s\" denied the request%s%s", h->name,
                        why ? ": " : " without explanation", why ? why : ""));
}

/* Reads one answer. *ret_heard is false when the webhook failed and its policy is to ignore that. */
static int hear(struct rest_call *c, const struct webhook_ask *a, struct webhook_verdict *ret,
                bool *ret_heard)
{
    const struct webhook *h = a->hook;
    const char *why = a->why.len > 0 ? a->why.data : NULL;
    struct hk_err err = {0};

    *ret_heard = false;
    if (!why && webhook_read_review(h, a->uid, hk_buf_str(&a->body), &c->mem, ret, &err) < 0) {
        why = err.text;
    }
    if (why && h->ignore) {
        hk_log(HK_LOG_WARN, "an admission webhook failed and is ignored", "webhook=%s why=\"%s\"",
               h->name, why);
        return 0;
    }
    if (why) {
        return fail_internal(
            c, hk_arena_printf(&c->mem, "failed calling webhook \"%s\": %s", h->name, why));
    }
    keep_warnings(c->asking, ret->warnings);
    *ret_heard = true;
    return ret->allowed ? 0 : refuse(c, h, ret);
}

/* ---- patches ---- */

static int apply(struct rest_call *c, const struct rest_kind *row, struct hk_str text,
                 const struct webhook_subject *s, struct json *doc, struct hk_err *err)
{
    struct json patch;
    int rc = json_parse(text, 0, &c->mem, &patch, err);

    if (s->unnamed) {
        json_del(rest_edit(doc, &c->mem, "metadata"), "name");
    }
    if (!s->kind) {
        rest_view_show(row, doc, &c->mem);
    }
    if (rc == 0) {
        rc = api_patch_json_check(&patch, err);
    }
    if (rc == 0) {
        rc = api_patch_json(doc, &patch, &c->mem, err);
    }
    if (rc == 0 && !json_is(doc, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "the patch leaves no object");
    }
    if (rc == 0 && !s->kind) {
        rest_view_take(row, doc, &c->mem);
        rest_set_kind(c, doc);
    }
    return rc;
}

/* Changes the object as the webhook wants. */
static int change(struct rest_call *c, struct webhook_subject *s, const struct webhook_ask *a,
                  struct hk_str patch, bool *ret_changed)
{
    struct hk_err err = {0};

    if (!s->obj) {
        return fail_internal(c, hk_arena_printf(&c->mem,
                                                "admission webhook \"%s\" attempted to modify the "
                                                "object, which is not supported for this operation",
                                                a->hook->name));
    }
    const struct json before = *s->obj;
    struct json doc = json_clone(s->obj, &c->mem);
    if (apply(c, a->row, patch, s, &doc, &err) < 0) {
        return fail_internal(c, hk_arena_printf(&c->mem, "%s", err.text));
    }
    *s->obj = doc;
    if (s->settle && s->settle(c, s, &before) < 0) {
        return c->rc;
    }
    *ret_changed = !json_equal(s->obj, &before);
    return 0;
}

/* ---- mutating webhooks, one after another ---- */

static int check_dry_run(struct rest_call *c, const struct webhook *h,
                         const struct webhook_subject *s)
{
    if (!s->dry_run || h->dry_runs) {
        return 0;
    }
    return rest_fail_bad(c, "admission webhook \"%s\" does not support dry run", h->name);
}

static void mark_again(struct rest_asking *k)
{
    for (uint32_t i = 0; k->table && i < k->table->nmutating; i++) {
        k->marks[i] |= k->marks[i] & WEBHOOK_INVOKED ? WEBHOOK_AGAIN : 0;
    }
}

static int hear_mutating(struct rest_call *c, struct webhook_subject *s, uint32_t at)
{
    struct rest_asking *k = c->asking;
    const struct webhook_ask *a = k->asks.at[0];
    struct webhook_verdict v = {0};
    bool heard, changed = false;

    if (hear(c, a, &v, &heard) < 0 ||
        (heard && v.patch.n > 0 && change(c, s, a, v.patch, &changed) < 0)) {
        return c->rc;
    }
    if (changed && !k->second_round) {
        k->changed = true;
        mark_again(k);
    }
    if (heard && a->hook->if_needed) {
        k->marks[at] |= WEBHOOK_INVOKED;
    }
    asking_clear_asks(k);
    return 0;
}

static int mutate_by(struct rest_call *c, struct webhook_subject *s, struct webhook_table *t,
                     uint32_t at)
{
    struct webhook *h = &t->at.at[at];
    struct rest_asking *k = c->asking;

    if (!k || k->asks.len == 0) {
        if (k && k->second_round && !(k->marks[at] & WEBHOOK_AGAIN)) {
            return 0;
        }
        const struct rest_kind *row;
        if (match_webhook(c, h, s, &row) < 0 || !row) {
            return c->rc;
        }
        if (check_dry_run(c, h, s) < 0 || ask(c, t, h, s, row) < 0) {
            return c->rc;
        }
        k = c->asking;
        k->at = at;
        if (k->unanswered > 0) {
            snapshot(&k->mutated, s);
            return rest_webhook_wait(c);
        }
    }
    return hear_mutating(c, s, at);
}

/* Runs the mutating policies of the round; the webhooks follow. */
static int mutate_by_policies(struct rest_call *c, struct webhook_subject *s)
{
    struct policy_table *t =
        c->asking && c->asking->policies ? c->asking->policies : policy_table(c->r);
    bool changed = false;

    if (!t || t->nmutating == 0 || !s->obj) {
        return 0;
    }
    rest_webhook_prepare(c);
    struct rest_asking *k = c->asking;
    if (k->policies_ran) {
        return 0;
    }
    k->policies_ran = true;
    if (!k->policies) {
        k->policies = policy_table_ref(t);
        k->policy_marks = hk_zalloc_array(t->nmutating, sizeof(*k->policy_marks));
    }
    if (policy_mutate(c, s, t, k->policy_marks, k->second_round, &changed) < 0) {
        return c->rc;
    }
    k->changed = k->changed || changed;
    snapshot(&k->policy_output, s);
    return 0;
}

/* The object has changed since the policies saw it: those that want to see changes run again. */
static void mark_policies_again(struct rest_call *c, const struct webhook_subject *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf now = {0};
    struct rest_asking *k = c->asking;

    snapshot(&now, s);
    if (hk_str_eq(hk_buf_str(&now), hk_buf_str(&k->policy_output))) {
        return;
    }
    for (uint32_t i = 0; k->policies && i < k->policies->nmutating; i++) {
        k->policy_marks[i] |= k->policy_marks[i] & WEBHOOK_INVOKED ? WEBHOOK_AGAIN : 0;
    }
}

static int mutate_round(struct rest_call *c, struct webhook_subject *s, struct webhook_table *t)
{
    for (uint32_t at = c->asking ? c->asking->at : 0; t && at < t->nmutating; at++) {
        if (mutate_by(c, s, t, at) < 0) {
            return c->rc;
        }
    }
    return 0;
}

/* After a change: the built-in plugins once more, then the policies and webhooks that want to see
 * changes. */
static int begin_second_round(struct rest_call *c, struct webhook_subject *s)
{
    struct rest_asking *k = c->asking;

    k->second_round = true;
    k->at = 0;
    const struct json before = json_clone(s->obj, &c->mem);
    if (s->again && s->again(c, s) < 0) {
        return c->rc;
    }
    mark_policies_again(c, s);
    k->policies_ran = false;
    if (mutate_by_policies(c, s) < 0) {
        return c->rc;
    }
    if (!json_equal(s->obj, &before)) {
        mark_again(k);
    }
    return 0;
}

/* The table to use: that of the answers so far, if they are about the present state. */
static int begin(struct rest_call *c, const struct webhook_subject *s, struct webhook_table **ret)
{
    struct rest_asking *k = c->asking;

    if (k && k->table && k->rv != s->rv) {
        asking_forget(k);
        if (++k->restarts > WEBHOOK_MAX_RESTARTS) {
            return rest_fail_modified(c);
        }
    }
    *ret = k && k->table ? k->table : webhook_table(c->r);
    return 0;
}

int rest_webhook_mutate(struct rest_call *c, struct webhook_subject *s)
{
    struct webhook_table *t = NULL;

    if (webhook_exempt(s) || begin(c, s, &t) < 0) {
        return c->rc;
    }
    if (c->asking) {
        restore(c, &c->asking->mutated, s);
    }
    if (c->asking && c->asking->validating) {
        return 0;
    }
    if (mutate_by_policies(c, s) < 0 || mutate_round(c, s, t) < 0) {
        return c->rc;
    }
    struct rest_asking *k = c->asking;
    if (k && k->changed && !k->second_round &&
        (begin_second_round(c, s) < 0 || mutate_round(c, s, t) < 0)) {
        return c->rc;
    }
    if (k && (k->table || k->policies)) {
        snapshot(&k->mutated, s);
    }
    return 0;
}

/* ---- validating webhooks, all at once ---- */

static int ask_validating(struct rest_call *c, const struct webhook_subject *s,
                          struct webhook_table *t)
{
    for (uint32_t i = t->nmutating; i < t->at.len; i++) {
        struct webhook *h = &t->at.at[i];
        const struct rest_kind *row;
        if (match_webhook(c, h, s, &row) < 0 ||
            (row && (check_dry_run(c, h, s) < 0 || ask(c, t, h, s, row) < 0))) {
            return c->rc;
        }
    }
    return 0;
}

int rest_webhook_validate(struct rest_call *c, struct webhook_subject *s)
{
    struct webhook_table *t = NULL;

    if (webhook_exempt(s) || begin(c, s, &t) < 0) {
        return c->rc;
    }
    if (c->asking && c->asking->validating) {
        restore(c, &c->asking->shown, s);
    } else {
        struct policy_table *policies = policy_table(c->r);
        if ((policies && policy_validate(c, s, policies) < 0) || !t) {
            return c->rc;
        }
        if (ask_validating(c, s, t) < 0) {
            return c->rc;
        }
        if (!c->asking || c->asking->asks.len == 0) {
            return 0;
        }
        c->asking->validating = true;
        if (c->asking->unanswered > 0) {
            snapshot(&c->asking->shown, s);
            return rest_webhook_wait(c);
        }
    }
    for (uint32_t i = 0; i < c->asking->asks.len; i++) {
        struct webhook_verdict v = {0};
        bool heard;
        if (hear(c, c->asking->asks.at[i], &v, &heard) < 0) {
            return c->rc;
        }
    }
    return 0;
}

/* ---- the port's side ---- */

void rest_call_webhooks(struct rest *r, const struct webhook_caller *caller)
{
    r->webhook_caller = caller;
    r->webhooks_changed = true;
}

void rest_webhook_feed(struct rest *r, const struct store_event *ev)
{
    r->webhooks_changed = r->webhooks_changed || ev->obj->res == r->webhooks_mutating->res ||
                          ev->obj->res == r->webhooks_validating->res;
}

struct rest_call *rest_webhook_next(struct rest *r)
{
    if (r->webhook_ready.len == 0) {
        return NULL;
    }
    struct rest_call *c = r->webhook_ready.at[0];
    r->webhook_ready.len--;
    memmove(r->webhook_ready.at, r->webhook_ready.at + 1,
            r->webhook_ready.len * sizeof(struct rest_call *));
    c->asking->waiting = false;
    r->webhook_waiting--;
    return c;
}

void rest_webhook_send(struct rest *r)
{
    webhook_post_send(r);
}

void rest_webhook_tick(struct rest *r)
{
    webhook_post_tick(r);
}

int64_t rest_webhook_next_ns(const struct rest *r)
{
    return webhook_post_next_ns(r);
}

void rest_webhook_fini(struct rest *r)
{
    webhook_table_unref(hk_take(r->webhooks));
    hk_vec_fini(&r->webhook_asks);
    hk_vec_fini(&r->webhook_ready);
}
