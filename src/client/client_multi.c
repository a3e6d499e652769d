// SPDX-License-Identifier: Apache-2.0
// The client's libcurl handles, which are reused, and the names and proxies of its server. Finished
// transfers go to their calls.
#include "client/client_priv.h"

enum {
    KEEP_IDLE_S = 60, /* below the idle timeouts of servers, which start at 90 s */
    PROBE_AFTER_S = 30,
    PROBE_EVERY_S = 15,
    READ_BYTES = 64 << 10,
};

static void client_multi_on_finished(void *ctx, CURL *easy, CURLcode rc)
{
    struct call *k = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &k);
    call_end(k, rc);
}

/* ---- handles ---- */

static bool is_loopback(const struct client *c)
{
    const char *host = strstr(c->config.server, "://") + 3;

    return hk_str_starts(hk_str(host), "localhost") || hk_str_starts(hk_str(host), "127.") ||
           hk_str_starts(hk_str(host), "[::1]");
}

/* Without a configured proxy, the proxy variables of the environment apply, but never for a server
 * on this machine. A SOCKS proxy resolves names, as with kubectl; libcurl calls that socks5h. */
static void set_proxy(const struct client *c, CURL *curl)
{
    if (c->config.proxy_url) {
        HK_AUTO(hk_buf_fini) struct hk_buf url = {0};
        const char *given = c->config.proxy_url;
        const bool socks = hk_str_starts(hk_str(given), "socks5://");
        hk_buf_addf(&url, "%s%s", socks ? "socks5h" : "", socks ? given + strlen("socks5") : given);
        curl_easy_setopt(curl, CURLOPT_PROXY, url.data);
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
    } else if (is_loopback(c)) {
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    }
}

static void set_up(struct client *c, struct easy *e)
{
    CURL *curl = e->curl;

    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, e->error);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, c->o.user_agent);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)c->o.connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, (long)KEEP_IDLE_S);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)PROBE_AFTER_S);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, (long)PROBE_EVERY_S);
    curl_loop_set_up(c->curl, curl);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
    if (c->connect_to_list) {
        curl_easy_setopt(curl, CURLOPT_CONNECT_TO, c->connect_to_list);
    }
    set_proxy(c, curl);
    auth_apply_tls(c, curl);
    e->generation = c->auth.generation;
}

struct easy *multi_take(struct client *c)
{
    struct easy *e;

    if (c->idle.len > 0) {
        e = hk_vec_pop(&c->idle);
    } else {
        e = hk_zalloc(sizeof(*e));
        e->curl = curl_easy_init();
        hk_assert(e->curl); /* fails only for lack of memory */
        e->generation = UINT64_MAX;
    }
    if (e->generation != c->auth.generation) {
        set_up(c, e);
    }
    e->error[0] = '\0';
    return e;
}

void multi_give(struct client *c, struct easy *e)
{
    if (e) {
        hk_vec_push(&c->idle, e);
    }
}

/* ---- the server's names ---- */

/* A separate name for TLS: libcurl takes it from the URL, so the URL contains it, while the
 * connection and the Host header use the real host. */
static void rename_host(struct client *c)
{
    const char *server = c->config.server;
    const char *host = strstr(server, "://") + 3;
    const size_t n = strcspn(host, "/");
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    const char *colon = memrchr(host, ':', n);
    const char *bracket = memrchr(host, ']', n);

    if (colon && bracket && colon < bracket) {
        colon = NULL; /* the colon is part of an IPv6 address */
    }
    const size_t name = colon ? (size_t)(colon - host) : n;
    const struct hk_str port = colon ? (struct hk_str){colon + 1, n - name - 1} : HK_STR("443");

    hk_buf_addf(&b, "%s:%.*s:%.*s:%.*s", c->config.tls_server_name, HK_FMT(port), (int)name, host,
                HK_FMT(port));
    c->connect_to_list = curl_slist_append(NULL, b.data);
    hk_buf_clear(&b);
    hk_buf_addf(&b, "Host: %.*s", (int)n, host);
    c->host_header = hk_strdup(b.data);
    hk_buf_clear(&b);
    hk_buf_addf(&b, "https://%s:%.*s%s", c->config.tls_server_name, HK_FMT(port), host + n);
    c->base_url = hk_strdup(b.data);
}

int multi_init(struct client *c, struct hk_err *err)
{
    const bool tls = hk_str_starts(hk_str(c->config.server), "https://");

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return hk_fail(err, HK_EIO, "cannot set up libcurl");
    }
    if (c->config.tls_server_name && tls) {
        rename_host(c);
    } else {
        c->base_url = hk_strdup(c->config.server);
    }
    /* More than the calls in flight, or connections would be closed and made all the time. */
    c->curl = curl_loop_new(c->o.loop, 2 * c->o.connections + 64, client_multi_on_finished, c);
    return 0;
}

void multi_fini(struct client *c)
{
    if (!c->curl) {
        return;
    }
    for (uint32_t i = 0; i < c->idle.len; i++) {
        curl_easy_cleanup(c->idle.at[i]->curl);
        hk_free(c->idle.at[i]);
    }
    curl_loop_free(hk_take(c->curl));
    hk_vec_fini(&c->idle);
    curl_slist_free_all(c->connect_to_list);
    hk_free(c->host_header);
    hk_free(c->base_url);
    curl_global_cleanup();
}
