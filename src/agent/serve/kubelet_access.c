// SPDX-License-Identifier: Apache-2.0
// Authentication and authorization of kubelet API callers, with up to two calls each: TokenReview,
// then SubjectAccessReview. A small table caches verdicts by credential and verb, and drops the
// oldest.
//
//   certificate -------------------.
//   token --TokenReview--> user --SubjectAccessReview--> 200 or 403
//     '--> 401
#include "agent/serve/kubelet_access.h"

#include "base/log.h"
#include "base/vec.h"
#include "codec/json.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define GOOD_NS (60 * SECOND_NS)
#define BAD_NS (10 * SECOND_NS)
#define GROUP_EVERYBODY "system:authenticated"

enum { MAX_VERDICTS = 256 };

static const struct api_kind token_review = {.id = API_NKINDS,
                                             .group = "authentication.k8s.io",
                                             .version = "v1",
                                             .kind = "TokenReview",
                                             .plural = "tokenreviews",
                                             .singular = "tokenreview"};
static const struct api_kind access_review = {.id = API_NKINDS,
                                              .group = "authorization.k8s.io",
                                              .version = "v1",
                                              .kind = "SubjectAccessReview",
                                              .plural = "subjectaccessreviews",
                                              .singular = "subjectaccessreview"};

struct verdict {
    char *key;
    int status;
    int64_t until_ns;
};

struct question {
    struct kubelet_access *a;
    char *key;
    const char *verb; /* literal */
    uint64_t call;
    void (*done)(void *ctx, int status, const char *why);
    void *ctx;
};

struct kubelet_access {
    struct kubelet_access_opts o;
    char *node;
    HK_VEC(struct question *) open;
    HK_VEC(struct verdict) verdicts; /* oldest first */
};

/* ---- verdicts ---- */

static void kubelet_access_remove_verdict(struct kubelet_access *a, uint32_t i)
{
    hk_free(a->verdicts.at[i].key);
    memmove(a->verdicts.at + i, a->verdicts.at + i + 1,
            (a->verdicts.len - i - 1) * sizeof(*a->verdicts.at));
    a->verdicts.len--;
}

/* 0: not cached, or expired. */
static int recall(struct kubelet_access *a, const char *key)
{
    const int64_t now_ns = a->o.clock->mono_ns(a->o.clock);

    for (uint32_t i = 0; i < a->verdicts.len; i++) {
        if (strcmp(a->verdicts.at[i].key, key) == 0) {
            if (a->verdicts.at[i].until_ns > now_ns) {
                return a->verdicts.at[i].status;
            }
            kubelet_access_remove_verdict(a, i);
            return 0;
        }
    }
    return 0;
}

static void remember(struct kubelet_access *a, const char *key, int status)
{
    const int64_t life_ns = status == 200 ? GOOD_NS : BAD_NS;

    if (recall(a, key) != 0) {
        return; /* two checks of the same key ran at once */
    }
    if (a->verdicts.len == MAX_VERDICTS) {
        kubelet_access_remove_verdict(a, 0);
    }
    hk_vec_push(&a->verdicts,
                ((struct verdict){.key = hk_strdup(key),
                                  .status = status,
                                  .until_ns = a->o.clock->mono_ns(a->o.clock) + life_ns}));
}

/* ---- checks ---- */

static void question_free(struct question *q)
{
    hk_free(q->key);
    hk_free(q);
}

static const char *kubelet_access_status_message(int status)
{
    return status == 401 ? "Unauthorized" : status == 403 ? "Forbidden" : "";
}

static void kubelet_access_finish_question(struct question *q, int status, const char *why)
{
    struct kubelet_access *a = q->a;

    for (uint32_t i = 0; i < a->open.len; i++) {
        if (a->open.at[i] == q) {
            hk_vec_swap_remove(&a->open, i);
            break;
        }
    }
    q->done(q->ctx, status, why);
    question_free(q);
}

static void kubelet_access_finish_and_cache(struct question *q, int status)
{
    remember(q->a, q->key, status);
    kubelet_access_finish_question(q, status, kubelet_access_status_message(status));
}

/* The API server gave no verdict: refuse the request and cache nothing. */
static void kubelet_access_fail_review(struct question *q, const struct port_msg *m)
{
    hk_log(HK_LOG_WARN, "cannot find out who may ask", "err=\"%s\"", m->err->text);
    kubelet_access_finish_question(
        q, 500, "the API server could not be asked who you are and what you may do");
}

static void kubelet_access_submit_review(struct question *q, const struct api_kind *kind,
                                         struct json *spec, struct hk_arena *mem,
                                         void (*on_msg)(void *, const struct port_msg *))
{
    struct json body = json_make_object();
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};

    api_kind_write_version(kind, &version);
    json_set_str(&body, mem, "apiVersion", hk_buf_str(&version));
    json_set_cstr(&body, mem, "kind", kind->kind);
    json_set(&body, mem, "spec", *spec);
    q->call = port_submit(q->a->o.port,
                          &(struct port_request){.verb = PORT_CREATE, .kind = kind, .body = &body},
                          (struct port_sink){on_msg, q});
}

/* ---- authorization ---- */

static void on_access(void *ctx, const struct port_msg *m)
{
    struct question *q = ctx;

    if (m->rc < 0 || !m->obj) {
        kubelet_access_fail_review(q, m);
        return;
    }
    kubelet_access_finish_and_cache(
        q, json_bool(json_at(&m->obj->root, "status.allowed"), false) ? 200 : 403);
}

/* user: as in the status of a TokenReview. */
static void ask_access(struct question *q, const struct json *user, struct hk_arena *mem)
{
    static const char *const same[] = {"uid", "groups", "extra"};
    struct json spec = json_make_object(), deed = json_make_object();

    json_set_str(&spec, mem, "user", json_str(json_get(user, "username"), HK_STR("")));
    for (size_t i = 0; i < HK_LEN(same); i++) {
        const struct json *v = json_get(user, same[i]);

        if (v && v->type != JSON_NULL) {
            json_set(&spec, mem, same[i], *v);
        }
    }
    json_set_cstr(&deed, mem, "verb", q->verb);
    json_set_cstr(&deed, mem, "version", "v1");
    json_set_cstr(&deed, mem, "resource", "nodes");
    json_set_cstr(&deed, mem, "subresource", "proxy");
    json_set_cstr(&deed, mem, "name", q->a->node);
    json_set(&spec, mem, "resourceAttributes", deed);
    kubelet_access_submit_review(q, &access_review, &spec, mem, on_access);
}

/* ---- authentication ---- */

static void on_token(void *ctx, const struct port_msg *m)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct question *q = ctx;
    const struct json *status;

    if (m->rc < 0 || !m->obj) {
        kubelet_access_fail_review(q, m);
        return;
    }
    status = json_get(&m->obj->root, "status");
    if (!json_bool(json_get(status, "authenticated"), false)) {
        kubelet_access_finish_and_cache(q, 401);
        return;
    }
    ask_access(q, json_get(status, "user"), &mem);
}

static void ask_token(struct question *q, struct hk_str token)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json spec = json_make_object();

    json_set_str(&spec, &mem, "token", token);
    kubelet_access_submit_review(q, &token_review, &spec, &mem, on_token);
}

static void ask_certificate(struct question *q, const struct kubelet_caller *who)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json user = json_make_object(), groups = json_make_array();

    for (uint32_t i = 0; i < who->norgs; i++) {
        json_push(&groups, &mem, json_make_str(hk_str(who->orgs[i])));
    }
    json_push(&groups, &mem, json_make_str(HK_STR(GROUP_EVERYBODY)));
    json_set_cstr(&user, &mem, "username", who->cn);
    json_set(&user, &mem, "groups", groups);
    ask_access(q, &user, &mem);
}

/* ---- requests ---- */

/* The verbs that kubelets use for access to nodes. */
static const char *verb_of(struct hk_str method)
{
    return hk_str_is(method, "POST")     ? "create"
           : hk_str_is(method, "PUT")    ? "update"
           : hk_str_is(method, "PATCH")  ? "patch"
           : hk_str_is(method, "DELETE") ? "delete"
                                         : "get";
}

/* Separates the parts by a byte that is valid in no name and no token. */
static void kubelet_access_write_cache_key(const struct kubelet_caller *who, const char *verb,
                                           struct hk_buf *out)
{
    hk_buf_addf(out, "%s\n", verb);
    if (who->token.n > 0) {
        hk_buf_addf(out, "token\n%.*s", HK_FMT(who->token));
        return;
    }
    hk_buf_addf(out, "user\n%s", who->cn);
    for (uint32_t i = 0; i < who->norgs; i++) {
        hk_buf_addf(out, "\n%s", who->orgs[i]);
    }
}

void kubelet_access_ask(struct kubelet_access *a, const struct kubelet_caller *who,
                        void (*done)(void *ctx, int status, const char *why), void *ctx)
{
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};
    const char *verb = verb_of(who->method);
    struct question *q;
    int known;

    if (who->token.n == 0 && !who->cn) {
        done(ctx, 401, kubelet_access_status_message(401));
        return;
    }
    kubelet_access_write_cache_key(who, verb, &key);
    known = recall(a, key.data);
    if (known != 0) {
        done(ctx, known, kubelet_access_status_message(known));
        return;
    }
    q = hk_zalloc(sizeof(*q));
    *q = (struct question){
        .a = a, .key = hk_strdup(key.data), .verb = verb, .done = done, .ctx = ctx};
    hk_vec_push(&a->open, q);
    if (who->token.n > 0) {
        ask_token(q, who->token);
    } else {
        ask_certificate(q, who);
    }
}

/* ---- setup and teardown ---- */

struct kubelet_access *kubelet_access_new(const struct kubelet_access_opts *o)
{
    struct kubelet_access *a = hk_zalloc(sizeof(*a));

    a->o = *o;
    a->node = hk_strdup(o->node);
    return a;
}

void kubelet_access_free(struct kubelet_access *a)
{
    if (!a) {
        return;
    }
    for (uint32_t i = 0; i < a->open.len; i++) {
        port_cancel(a->o.port, a->open.at[i]->call);
        question_free(a->open.at[i]);
    }
    while (a->verdicts.len > 0) {
        kubelet_access_remove_verdict(a, a->verdicts.len - 1);
    }
    hk_vec_fini(&a->open);
    hk_vec_fini(&a->verdicts);
    hk_free(a->node);
    hk_free(a);
}
