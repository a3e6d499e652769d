// SPDX-License-Identifier: Apache-2.0
// Each request is considered by itself: the next step follows from the object alone, and its write
// comes back as an event.
//
//   pending -> Approved (by a user, or here for a node) -> status.certificate, or Failed
//   pending for 24 h, denied, failed or issued for 1 h, certificate expired -> deleted
#include "apiserver/signer.h"

#include "base/log.h"
#include "codec/base64.h"
#include "codec/timefmt.h"
#include "net/cert_request.h"

#define API_CLIENT "kubernetes.io/kube-apiserver-client"
#define KUBELET_CLIENT "kubernetes.io/kube-apiserver-client-kubelet"
#define KUBELET_SERVING "kubernetes.io/kubelet-serving"

#define SECOND_NS INT64_C(1000000000)

enum {
    SWEEP_S = 60,
    PAGE = 500,
    MAX_USAGES = 32,
    MAX_TTL_S = 365 * 24 * 3600, /* kube-controller-manager's --cluster-signing-duration */
    MIN_TTL_S = 600,
    SHORT_S = 8 * 3600, /* ends are not moved back for certificates this short */
    BACKDATE_S = 300,
    PENDING_S = 24 * 3600,
    DONE_S = 3600,
};

struct signer {
    struct signer_opts o;
    struct net_timer *timer;
    uint64_t watch, list; /* calls; 0: none */
    char *cont;           /* the next page of the list; NULL: none */
};

/* A request as it is considered. */
struct case_file {
    struct signer *s;
    const struct json *obj;
    struct hk_arena mem;
    struct hk_str signer_name;
    struct hk_buf pem;
    const char *usages[MAX_USAGES];
    uint32_t nusages;
};

/* ---- the object ---- */

static const struct json *signer_condition(const struct json *obj, const char *type)
{
    const struct json *list = json_at(obj, "status.conditions");

    for (uint32_t i = 0; i < json_len(list); i++) {
        if (hk_str_is(json_str_field(&list->items[i], "type"), type)) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* Whether the time is longer ago than that; an unreadable one is not. */
static bool is_older(const struct signer *s, struct hk_str time, int64_t seconds)
{
    int64_t ns;

    return time_parse(time, &ns, NULL) == 0 &&
           s->o.clock->wall_ns(s->o.clock) - ns > seconds * SECOND_NS;
}

static bool condition_is_older(const struct signer *s, const struct json *obj, const char *type)
{
    const struct json *c = signer_condition(obj, type);

    return c && is_older(s, json_str_field(c, "lastUpdateTime"), DONE_S);
}

static bool has_expired(const struct signer *s, struct hk_str certificate)
{
    HK_AUTO(hk_buf_fini) struct hk_buf pem = {0};
    int64_t end_s;

    return base64_read(certificate, &pem) && pem.len > 0 &&
           cert_expiry(pem.data, &end_s, NULL) == 0 &&
           end_s < s->o.clock->wall_ns(s->o.clock) / SECOND_NS;
}

/* Whether nobody needs the request any more: the rules of Kubernetes' cleaner. */
static bool is_stale(const struct signer *s, const struct json *obj)
{
    const struct hk_str certificate = json_str_at(obj, "status.certificate");

    if (json_len(json_at(obj, "status.conditions")) == 0 &&
        is_older(s, json_str_at(obj, "metadata.creationTimestamp"), PENDING_S)) {
        return true;
    }
    if (condition_is_older(s, obj, "Denied") || condition_is_older(s, obj, "Failed")) {
        return true;
    }
    return certificate.n > 0 &&
           (condition_is_older(s, obj, "Approved") || has_expired(s, certificate));
}

/* ---- writes ---- */

static void submit_update(struct case_file *f, const char *sub, const struct json *doc)
{
    const struct port_request q = {.verb = PORT_UPDATE,
                                   .kind = f->s->o.kind,
                                   .name = json_str_at(f->obj, "metadata.name"),
                                   .subresource = sub,
                                   .body = doc};

    port_submit(f->s->o.port, &q, (struct port_sink){0}); /* a failed one is tried again later */
}

static void submit_delete(struct signer *s, const struct json *obj)
{
    const struct port_request q = {.verb = PORT_DELETE,
                                   .kind = s->o.kind,
                                   .name = json_str_at(obj, "metadata.name"),
                                   .if_uid = json_str_at(obj, "metadata.uid")};

    port_submit(s->o.port, &q, (struct port_sink){0});
}

static void write_condition(struct case_file *f, const char *sub, const char *type,
                            const char *reason, const char *message)
{
    struct hk_arena *a = &f->mem;
    struct json doc = json_clone(f->obj, a), condition = json_make_object();
    struct json list = json_clone_as(json_at(&doc, "status.conditions"), JSON_ARRAY, a);
    struct json status = json_clone_as(json_get(&doc, "status"), JSON_OBJECT, a);

    json_set_cstr(&condition, a, "type", type);
    json_set_cstr(&condition, a, "status", "True");
    json_set_cstr(&condition, a, "reason", reason);
    json_set_cstr(&condition, a, "message", message);
    json_push(&list, a, condition);
    json_set(&status, a, "conditions", list);
    json_set(&doc, a, "status", status);
    submit_update(f, sub, &doc);
}

static void write_certificate(struct case_file *f, const char *pem)
{
    HK_AUTO(hk_buf_fini) struct hk_buf coded = {0};
    struct hk_arena *a = &f->mem;
    struct json doc = json_clone(f->obj, a);
    struct json status = json_clone_as(json_get(&doc, "status"), JSON_OBJECT, a);

    base64_write(hk_str(pem), &coded);
    json_set_str(&status, a, "certificate", hk_arena_str(a, hk_buf_str(&coded)));
    json_set(&doc, a, "status", status);
    submit_update(f, "status", &doc);
}

/* ---- which requests a signer signs ---- */

static bool has_usage(const struct case_file *f, const char *usage)
{
    for (uint32_t i = 0; i < f->nusages; i++) {
        if (strcmp(f->usages[i], usage) == 0) {
            return true;
        }
    }
    return false;
}

/* Digital signature and that one; key encipherment, which RSA keys need, may be there too. */
static bool has_exactly(const struct case_file *f, const char *auth)
{
    return has_usage(f, "digital signature") && has_usage(f, auth) &&
           f->nusages == 2U + has_usage(f, "key encipherment");
}

/* NULL, or why the request is not one of a kubelet's server. */
static const char *check_serving(const struct case_file *f, const struct cert_request *q)
{
    if (q->norgs != 1 || strcmp(q->orgs[0], "system:nodes") != 0) {
        return "subject organization is not system:nodes";
    }
    if (q->ndns == 0 && q->nips == 0) {
        return "DNS or IP subjectAltName is required";
    }
    if (q->nemails > 0) {
        return "Email subjectAltNames are not allowed";
    }
    if (q->nuris > 0) {
        return "URI subjectAltNames are not allowed";
    }
    if (!has_exactly(f, "server auth")) {
        return "usages did not match [digital signature key encipherment server auth]";
    }
    return hk_str_starts(hk_str(q->cn), "system:node:")
               ? NULL
               : "subject common name does not begin with system:node:";
}

/* The same for the client of a kubelet. */
static const char *check_kubelet(const struct case_file *f, const struct cert_request *q)
{
    if (q->norgs != 1 || strcmp(q->orgs[0], "system:nodes") != 0) {
        return "subject organization is not system:nodes";
    }
    if (q->ndns > 0) {
        return "DNS subjectAltNames are not allowed";
    }
    if (q->nemails > 0) {
        return "Email subjectAltNames are not allowed";
    }
    if (q->nips > 0) {
        return "IP subjectAltNames are not allowed";
    }
    if (q->nuris > 0) {
        return "URI subjectAltNames are not allowed";
    }
    if (!hk_str_starts(hk_str(q->cn), "system:node:")) {
        return "subject common name does not begin with system:node:";
    }
    return has_exactly(f, "client auth")
               ? NULL
               : "usages did not match [client auth digital signature key encipherment]";
}

static const char *check_client(struct case_file *f, const struct cert_request *q)
{
    for (uint32_t i = 0; i < f->nusages; i++) {
        const char *u = f->usages[i];
        if (strcmp(u, "digital signature") != 0 && strcmp(u, "key encipherment") != 0 &&
            strcmp(u, "client auth") != 0) {
            return hk_arena_printf(&f->mem, "invalid usage for client certificate: %s", u);
        }
    }
    return has_usage(f, "client auth") ? NULL
                                       : "missing required usage for client certificate: client "
                                         "auth";
}

/* ---- approving ---- */

static struct auth_user requester(struct case_file *f)
{
    const struct json *spec = json_get(f->obj, "spec");
    const struct json *list = json_get(spec, "groups");
    const char **groups = hk_arena_array(&f->mem, json_len(list), sizeof(*groups));
    const struct hk_str name = json_str_field(spec, "username");

    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct hk_str group = json_str(&list->items[i], HK_STR(""));
        groups[i] = hk_arena_strndup(&f->mem, group.s, group.n);
    }
    return (struct auth_user){.name = hk_arena_strndup(&f->mem, name.s, name.n),
                              .groups = groups,
                              .ngroups = json_len(list)};
}

static bool may_have(struct case_file *f, const char *sub)
{
    const struct auth_user u = requester(f);
    const struct rbac_ask ask = {.verb = HK_STR("create"),
                                 .group = HK_STR("certificates.k8s.io"),
                                 .plural = HK_STR("certificatesigningrequests"),
                                 .sub = hk_str(sub)};

    return f->s->o.allows(f->s->o.ctx, &u, &ask);
}

/* Approves the request of a kubelet whose user has the right to it. */
static void consider_approval(struct case_file *f, const struct cert_request *q)
{
    if (!hk_str_is(f->signer_name, KUBELET_CLIENT) || check_kubelet(f, q)) {
        return;
    }
    if (hk_str_is(json_str_at(f->obj, "spec.username"), q->cn) && may_have(f, "selfnodeclient")) {
        write_condition(f, "approval", "Approved", "AutoApproved",
                        "Auto approving self kubelet client certificate after "
                        "SubjectAccessReview.");
    } else if (may_have(f, "nodeclient")) {
        write_condition(f, "approval", "Approved", "AutoApproved",
                        "Auto approving kubelet client certificate after SubjectAccessReview.");
    }
}

/* ---- signing ---- */

/* How long the certificate is valid: as asked, within limits. */
static int64_t lifetime_s(const struct json *obj)
{
    const int64_t wish_s = json_int(json_at(obj, "spec.expirationSeconds"), MAX_TTL_S);

    return wish_s > MAX_TTL_S ? MAX_TTL_S : HK_MAX(wish_s, (int64_t)MIN_TTL_S);
}

static void signer_sign(struct case_file *f)
{
    HK_AUTO(hk_freep) char *pem = NULL;
    const int64_t now_s = f->s->o.clock->wall_ns(f->s->o.clock) / SECOND_NS;
    const int64_t ttl_s = lifetime_s(f->obj);
    const struct cert_sign_opts o = {
        .usages = f->usages,
        .nusages = f->nusages,
        .from_s = now_s - BACKDATE_S,
        .until_s = now_s + ttl_s - (ttl_s > SHORT_S ? BACKDATE_S : 0),
    };
    struct hk_err err = {0};

    if (cert_request_sign(hk_buf_str(&f->pem), f->s->o.ca, &o, &pem, &err) < 0) {
        hk_log(HK_LOG_WARN, "cannot sign a CertificateSigningRequest", "name=%.*s err=\"%s\"",
               HK_FMT(json_str_at(f->obj, "metadata.name")), err.text);
        return;
    }
    write_certificate(f, pem);
}

static void consider_signing(struct case_file *f, const struct cert_request *q)
{
    const char *why;

    if (hk_str_is(f->signer_name, API_CLIENT)) {
        why = check_client(f, q);
    } else if (hk_str_is(f->signer_name, KUBELET_CLIENT)) {
        why = check_kubelet(f, q);
    } else if (hk_str_is(f->signer_name, KUBELET_SERVING)) {
        why = check_serving(f, q);
    } else {
        return; /* somebody else's */
    }
    if (why) {
        write_condition(f, "status", "Failed", "SignerValidationFailure", why);
    } else {
        signer_sign(f);
    }
}

/* ---- one request ---- */

static void read_usages(struct case_file *f)
{
    const struct json *list = json_at(f->obj, "spec.usages");

    for (uint32_t i = 0; i < json_len(list) && f->nusages < MAX_USAGES; i++) {
        const struct hk_str usage = json_str(&list->items[i], HK_STR(""));
        f->usages[f->nusages++] = hk_arena_strndup(&f->mem, usage.s, usage.n);
    }
}

static void consider_open(struct case_file *f)
{
    const bool approved = signer_condition(f->obj, "Approved") != NULL;
    struct cert_request q;

    if (!base64_read(json_str_at(f->obj, "spec.request"), &f->pem) ||
        cert_request_read(hk_buf_str(&f->pem), &f->mem, &q, NULL) < 0) {
        return; /* refused since it was created */
    }
    read_usages(f);
    f->signer_name = json_str_at(f->obj, "spec.signerName");
    if (approved) {
        consider_signing(f, &q);
    } else {
        consider_approval(f, &q);
    }
}

static void signer_consider(struct signer *s, const struct json *obj)
{
    struct case_file f = {.s = s, .obj = obj};

    if (is_stale(s, obj)) {
        submit_delete(s, obj);
        return;
    }
    if (json_str_at(obj, "status.certificate").n == 0 && !signer_condition(obj, "Denied") &&
        !signer_condition(obj, "Failed")) {
        consider_open(&f);
    }
    hk_buf_fini(&f.pem);
    hk_arena_fini(&f.mem);
}

/* ---- watch and list ---- */

static void signer_on_event(void *ctx, const struct port_msg *m)
{
    struct signer *s = ctx;

    if (m->type == PORT_DONE) {
        s->watch = 0; /* the timer starts another one */
    } else if (m->type == PORT_ADDED || m->type == PORT_MODIFIED) {
        signer_consider(s, &m->obj->root);
    }
}

static void signer_open_watch(struct signer *s)
{
    const struct port_request q = {
        .verb = PORT_WATCH, .kind = s->o.kind, .initial = PORT_INITIAL_SEND};

    s->watch = port_submit(s->o.port, &q, (struct port_sink){signer_on_event, s});
}

static void signer_on_list(void *ctx, const struct port_msg *m);

static void list_page(struct signer *s)
{
    const struct port_request q = {.verb = PORT_LIST,
                                   .kind = s->o.kind,
                                   .limit = PAGE,
                                   .cont = hk_str(s->cont ? s->cont : "")};

    s->list = port_submit(s->o.port, &q, (struct port_sink){signer_on_list, s});
}

static void signer_on_list(void *ctx, const struct port_msg *m)
{
    struct signer *s = ctx;

    s->list = 0;
    hk_free(hk_take(s->cont));
    if (m->rc < 0) {
        return; /* the timer lists again */
    }
    for (uint32_t i = 0; i < m->nitems; i++) {
        signer_consider(s, &m->items[i]->root);
    }
    if (m->cont.n > 0) {
        s->cont = hk_strndup(m->cont.s, m->cont.n);
        list_page(s);
    }
}

static void signer_on_timer(void *ctx)
{
    struct signer *s = ctx;

    if (!s->watch) {
        signer_open_watch(s);
    } else if (!s->list) {
        list_page(s);
    }
    net_timer_at(s->timer, net_loop_now_ns(s->o.loop) + SWEEP_S * SECOND_NS);
}

struct signer *signer_new(const struct signer_opts *o)
{
    struct signer *s = hk_zalloc(sizeof(*s));

    s->o = *o;
    s->timer = net_timer_new(o->loop, signer_on_timer, s);
    signer_on_timer(s);
    return s;
}

void signer_free(struct signer *s)
{
    if (!s) {
        return;
    }
    if (s->watch) {
        port_cancel(s->o.port, s->watch);
    }
    if (s->list) {
        port_cancel(s->o.port, s->list);
    }
    net_timer_free(s->timer);
    hk_free(s->cont);
    hk_free(s);
}
