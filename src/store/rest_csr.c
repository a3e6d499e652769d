// SPDX-License-Identifier: Apache-2.0
// CertificateSigningRequests: the server writes down who asks, the spec never changes, and an
// approval changes only conditions. apiserver/signer.c approves and signs them.
#include "store/rest_priv.h"

void rest_read_requests(struct rest *r, rest_read_request_fn *read)
{
    r->lookup.read_request = read;
}

static bool is_csr(const struct rest_call *c)
{
    return c->k == c->r->signing_requests;
}

static void put_groups(struct rest_call *c, struct json *spec, const struct port_user *u)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; i < u->ngroups; i++) {
        json_push(&list, &c->mem, json_make_str(hk_arena_str(&c->mem, hk_str(u->groups[i]))));
    }
    if (u->ngroups > 0) {
        json_set(spec, &c->mem, "groups", list);
    }
}

void rest_csr_create(struct rest_call *c, struct json *doc)
{
    static const char *const groups[] = {"system:masters"};
    static const struct port_user self = {
        .name = "system:apiserver", .groups = groups, .ngroups = HK_LEN(groups)};
    const struct port_user *u = c->req->user && c->req->user->name ? c->req->user : &self;

    if (!is_csr(c)) {
        return;
    }
    struct json *spec = rest_edit(doc, &c->mem, "spec");
    json_del(spec, "username");
    json_del(spec, "uid");
    json_del(spec, "groups");
    json_del(spec, "extra");
    json_set_str(spec, &c->mem, "username", hk_arena_str(&c->mem, hk_str(u->name)));
    if (u->uid && u->uid[0]) {
        json_set_str(spec, &c->mem, "uid", hk_arena_str(&c->mem, hk_str(u->uid)));
    }
    put_groups(c, spec, u);
}

/* Conditions without times were set now. */
static void stamp_conditions(struct rest_call *c, struct json *doc)
{
    const struct json *had = json_at(doc, "status.conditions");

    if (!json_is(had, JSON_ARRAY) || had->len == 0) {
        return;
    }
    struct json list = json_clone(had, &c->mem);
    for (uint32_t i = 0; i < list.len; i++) {
        static const char *const times[] = {"lastUpdateTime", "lastTransitionTime"};
        for (size_t k = 0; json_is(&list.items[i], JSON_OBJECT) && k < HK_LEN(times); k++) {
            if (!json_is(json_get(&list.items[i], times[k]), JSON_STRING)) {
                json_set_time(&list.items[i], &c->mem, times[k], rest_now(c->r));
            }
        }
    }
    json_set(rest_edit(doc, &c->mem, "status"), &c->mem, "conditions", list);
}

void rest_csr_isolate(struct rest_call *c, const char *sub, struct json *doc,
                      const struct json *old)
{
    const struct json *spec = json_get(old, "spec");

    if (!is_csr(c)) {
        return;
    }
    if (spec) {
        json_set(doc, &c->mem, "spec", json_clone(spec, &c->mem));
    }
    if (sub && !strcmp(sub, "approval")) {
        const struct json *cert = json_at(old, "status.certificate");
        struct json *status = rest_edit(doc, &c->mem, "status");
        json_del(status, "certificate");
        if (cert) {
            json_set(status, &c->mem, "certificate", json_clone(cert, &c->mem));
        }
    }
    if (sub) {
        stamp_conditions(c, doc);
    }
}
