// SPDX-License-Identifier: Apache-2.0
// What a write that asks webhooks or runs policies keeps between its turns: a copy of the request,
// the warnings for the answer, and everything learned about the object.
#include "store/rest_policy_priv.h"

enum { MAX_POLICY_WARNING = 1024, MAX_WARNINGS = 64 };

void asking_clear_asks(struct rest_asking *k)
{
    for (uint32_t i = 0; i < k->asks.len; i++) {
        webhook_ask_free(k->asks.at[i]);
    }
    hk_vec_clear(&k->asks);
    k->unanswered = 0;
}

void asking_forget(struct rest_asking *k)
{
    asking_clear_asks(k);
    webhook_table_unref(hk_take(k->table));
    hk_free(hk_take(k->marks));
    policy_table_unref(hk_take(k->policies));
    hk_free(hk_take(k->policy_marks));
    hk_buf_fini(&k->policy_output);
    k->policy_output = (struct hk_buf){0};
    k->policies_ran = false;
    hk_buf_fini(&k->mutated);
    hk_buf_fini(&k->shown);
    k->mutated = k->shown = (struct hk_buf){0};
    k->validating = k->second_round = k->changed = false;
    k->at = 0;
}

void rest_webhook_free(struct rest_call *c)
{
    struct rest_asking *k = hk_take(c->asking);

    if (!k) {
        return;
    }
    c->r->webhook_waiting -= k->waiting;
    for (uint32_t i = 0; i < c->r->webhook_ready.len; i++) {
        if (c->r->webhook_ready.at[i] == c) {
            hk_vec_swap_remove(&c->r->webhook_ready, i);
            break;
        }
    }
    asking_forget(k);
    hk_vec_fini(&k->asks);
    hk_vec_fini(&k->warnings);
    hk_arena_fini(&k->mem);
    hk_free(k);
}

static void copy_duplicates(struct rest_asking *k, const struct port_request *req)
{
    const char **copy = hk_arena_array(&k->mem, req->nduplicates, sizeof(*copy));

    for (uint32_t i = 0; i < req->nduplicates; i++) {
        copy[i] = hk_arena_strndup(&k->mem, req->duplicates[i], strlen(req->duplicates[i]));
    }
    k->req.duplicates = copy;
}

static void copy_user(struct rest_asking *k, const struct port_request *req)
{
    struct hk_arena *a = &k->mem;

    if (!req->user) {
        return;
    }
    const struct port_user *u = req->user;
    const char **groups = hk_arena_array(a, u->ngroups, sizeof(*groups));
    for (uint32_t i = 0; i < u->ngroups; i++) {
        groups[i] = hk_arena_strndup(a, u->groups[i], strlen(u->groups[i]));
    }
    k->person = (struct port_user){
        .name = u->name ? hk_arena_strndup(a, u->name, strlen(u->name)) : NULL,
        .uid = u->uid ? hk_arena_strndup(a, u->uid, strlen(u->uid)) : NULL,
        .groups = groups,
        .ngroups = u->ngroups,
    };
    k->req.user = &k->person;
}

/* The request outlives port_submit. Its rights do so by themselves. */
static void copy_request(struct rest_asking *k, const struct port_request *req)
{
    struct hk_arena *a = &k->mem;

    k->req = *req;
    k->req.ns = hk_arena_str(a, req->ns);
    k->req.name = hk_arena_str(a, req->name);
    k->req.field_manager = hk_arena_str(a, req->field_manager);
    k->req.if_uid = hk_arena_str(a, req->if_uid);
    k->req.label_selector = k->req.field_selector = k->req.cont = HK_STR("");
    copy_user(k, req);
    if (req->subresource) {
        k->req.subresource = hk_arena_strndup(a, req->subresource, strlen(req->subresource));
    }
    if (req->body) {
        struct json *body = hk_arena_alloc(a, sizeof(*body));
        *body = json_clone(req->body, a);
        k->req.body = body;
    }
    copy_duplicates(k, req);
}

void rest_webhook_prepare(struct rest_call *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf user = {0};

    if (c->asking || !c->req) {
        return;
    }
    c->asking = hk_zalloc(sizeof(*c->asking));
    copy_request(c->asking, c->req);
    c->asking->req.kind = c->k->kind;
    webhook_write_user(c->req->user, &user);
    c->asking->user = hk_arena_str(&c->asking->mem, hk_buf_str(&user)).s;
}

const struct port_request *rest_webhook_request(const struct rest_call *c)
{
    return &c->asking->req;
}

/* ---- warnings ---- */

static bool warned(const struct rest_asking *k, const char *text)
{
    for (uint32_t i = 0; i < k->warnings.len; i++) {
        if (strcmp(k->warnings.at[i], text) == 0) {
            return true;
        }
    }
    return false;
}

void asking_keep_warning(struct rest_asking *k, struct hk_str given)
{
    char *text = hk_arena_strndup(&k->mem, given.s, given.n);

    for (char *p = text; *p; p++) {
        *p = (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p;
    }
    if (given.n > 0 && k->warnings.len < MAX_WARNINGS && !warned(k, text)) {
        hk_vec_push(&k->warnings, text);
    }
}

void rest_webhook_warn(struct rest_call *c, const char *text)
{
    rest_webhook_prepare(c);
    if (c->asking) {
        asking_keep_warning(c->asking, hk_str_head(hk_str(text), MAX_POLICY_WARNING));
    }
}
