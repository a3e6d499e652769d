// SPDX-License-Identifier: Apache-2.0
// Posts to admission webhooks through libcurl. A handle per post; connections are kept for the next
// ones.
#include "client/poster.h"

#include "base/vec.h"
#include "client/curl_loop.h"
#include "client/pem_file.h"

enum {
    CONNECT_TIMEOUT_MS = 30000,
    KEEP_IDLE_S = 60,
    MAX_IDLE = 64, /* connections */
    MAX_TRUSTS = 64,
};

/* Certificates that posts have named. libcurl reuses a connection if the file name is the same: a
 * file stays as long as the poster, so no other certificates ever get its name. */
struct trust {
    char *pem;
    struct pem_file file;
};

struct post {
    struct poster *p;
    uint64_t id;
    CURL *curl;
    struct curl_slist *headers, *connect_to;
    char *body;
    struct pem_file own_trust; /* when the poster's table of certificates is full */
    struct hk_buf reply;
    size_t max_reply;
    bool too_long;
    webhook_done_fn *done;
    void *arg;
    char error[CURL_ERROR_SIZE];
};

struct poster {
    struct webhook_caller caller;
    struct curl_loop *curl;
    size_t max_reply;
    uint64_t last_id;
    HK_VEC(struct post *) posts;
    HK_VEC(struct trust) trusts;
};

static void post_free(struct post *t)
{
    struct poster *p = t->p;

    for (uint32_t i = 0; i < p->posts.len; i++) {
        if (p->posts.at[i] == t) {
            hk_vec_swap_remove(&p->posts, i);
            break;
        }
    }
    curl_multi_remove_handle(curl_loop_multi(p->curl), t->curl);
    curl_easy_cleanup(t->curl);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect_to);
    pem_file_fini(&t->own_trust);
    hk_buf_fini(&t->reply);
    hk_free(t->body);
    hk_free(t);
}

static size_t post_on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    struct post *t = ctx;

    if (t->reply.len + n > t->max_reply) {
        t->too_long = true;
        return 0; /* ends the transfer */
    }
    hk_buf_add(&t->reply, bytes, n);
    return n;
}

static void poster_on_finished(void *ctx, CURL *easy, CURLcode rc)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    struct webhook_reply reply = {0};
    struct post *t = NULL;
    long http = 0;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &http);
    if (t->too_long) {
        hk_buf_addf(&why, "the answer is longer than %zu bytes", t->max_reply);
    } else if (rc != CURLE_OK) {
        hk_buf_adds(&why, t->error[0] != '\0' ? t->error : curl_easy_strerror(rc));
    } else {
        reply.http = (int)http;
        reply.body = hk_buf_str(&t->reply);
    }
    reply.why = why.data;
    t->done(t->arg, &reply);
    post_free(t);
}

/* The file of the certificates; NULL: the table is full. */
static const char *trust_path(struct poster *p, const char *pem, struct hk_err *err)
{
    for (uint32_t i = 0; i < p->trusts.len; i++) {
        if (strcmp(p->trusts.at[i].pem, pem) == 0) {
            return p->trusts.at[i].file.path;
        }
    }
    struct trust t = {.file = {.fd = -1}};
    if (p->trusts.len == MAX_TRUSTS || pem_file_set(&t.file, pem, err) < 0) {
        return NULL;
    }
    t.pem = hk_strdup(pem);
    hk_vec_push(&p->trusts, t);
    return p->trusts.at[p->trusts.len - 1].file.path;
}

static void set_trust(struct post *t, const char *pem)
{
    struct hk_err err = {0};
    const char *path = pem ? trust_path(t->p, pem, &err) : NULL;

    if (!pem) {
        return; /* the system's */
    }
    if (!path) {
        path = pem_file_set(&t->own_trust, pem, &err) == 0 ? t->own_trust.path : "/dev/null";
        curl_easy_setopt(t->curl, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(t->curl, CURLOPT_FORBID_REUSE, 1L);
    }
    curl_easy_setopt(t->curl, CURLOPT_CAINFO, path);
    curl_easy_setopt(t->curl, CURLOPT_CAPATH, NULL);
}

static void set_address(struct post *t, const char *address)
{
    HK_AUTO(hk_buf_fini) struct hk_buf rule = {0};

    if (address) {
        hk_buf_addf(&rule, "::%s", address); /* every host and port of the URL */
        t->connect_to = curl_slist_append(NULL, rule.data);
        curl_easy_setopt(t->curl, CURLOPT_CONNECT_TO, t->connect_to);
        curl_easy_setopt(t->curl, CURLOPT_PROXY, "");
    }
}

static void post_set_up(struct post *t, const struct webhook_post *req)
{
    CURL *curl = t->curl;

    t->headers = curl_slist_append(NULL, "Content-Type: application/json");
    t->headers = curl_slist_append(t->headers, "Accept: application/json");
    t->headers = curl_slist_append(t->headers, "Expect:");
    curl_easy_setopt(curl, CURLOPT_URL, req->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->error);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, t);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "hekla/" HEKLA_VERSION " admission");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, (long)KEEP_IDLE_S);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.n);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, t->body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, post_on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    set_trust(t, req->ca_pem);
    set_address(t, req->address);
    curl_loop_set_up(t->p->curl, curl);
}

static uint64_t poster_post(void *ctx, const struct webhook_post *req, webhook_done_fn *done,
                            void *arg)
{
    struct poster *p = ctx;
    struct post *t = hk_zalloc(sizeof(*t));

    *t = (struct post){
        .p = p, .id = ++p->last_id, .done = done, .arg = arg, .own_trust = {.fd = -1}};
    t->curl = curl_easy_init();
    hk_assert(t->curl); /* fails only for lack of memory */
    t->max_reply = req->max_reply > 0 ? req->max_reply : p->max_reply;
    t->body = hk_strndup(req->body.s, req->body.n);
    post_set_up(t, req);
    hk_vec_push(&p->posts, t);
    curl_multi_add_handle(curl_loop_multi(p->curl), t->curl);
    return t->id;
}

static void poster_cancel(void *ctx, uint64_t id)
{
    struct poster *p = ctx;

    for (uint32_t i = 0; i < p->posts.len; i++) {
        if (p->posts.at[i]->id == id) {
            post_free(p->posts.at[i]);
            return;
        }
    }
}

struct poster *poster_new(struct net_loop *loop, size_t max_reply)
{
    struct poster *p = hk_zalloc(sizeof(*p));

    hk_assert(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    p->caller = (struct webhook_caller){.ctx = p, .post = poster_post, .cancel = poster_cancel};
    p->max_reply = max_reply;
    p->curl = curl_loop_new(loop, MAX_IDLE, poster_on_finished, p);
    return p;
}

const struct webhook_caller *poster_caller(const struct poster *p)
{
    return &p->caller;
}

void poster_free(struct poster *p)
{
    if (!p) {
        return;
    }
    while (p->posts.len > 0) {
        post_free(p->posts.at[0]);
    }
    curl_loop_free(p->curl);
    for (uint32_t i = 0; i < p->trusts.len; i++) {
        pem_file_fini(&p->trusts.at[i].file);
        hk_free(p->trusts.at[i].pem);
    }
    hk_vec_fini(&p->trusts);
    hk_vec_fini(&p->posts);
    hk_free(p);
    curl_global_cleanup();
}
