// SPDX-License-Identifier: Apache-2.0
// Credentials of requests: a fixed token, a token file that is replaced now and then, or a plugin;
// user and password; certificates and keys from files (libcurl opens them for each connection, so
// rotation works) or from text, which goes into memory files because libcurl with GnuTLS accepts
// only file names.
#include "client/client_priv.h"

#include "base/file.h"
#include "base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_EVERY_NS ((int64_t)1000000000)
/* A plugin's credentials are renewed shortly before they expire. */
#define EXPIRY_MARGIN_NS ((int64_t)10 * 1000000000)

enum { MAX_TOKEN = 1 << 20, PLUGIN_TIMEOUT_MS = 60000 };

static int pem_set_if(struct pem_file *p, const char *text, struct hk_err *err)
{
    return text ? pem_file_set(p, text, err) : 0;
}

void auth_init(struct client *c)
{
    c->auth.ca.fd = c->auth.cert.fd = c->auth.key.fd = -1;
}

int auth_load(struct client *c, struct hk_err *err)
{
    const struct kubeconfig *k = &c->config;
    struct client_auth *a = &c->auth;
    int rc = pem_set_if(&a->ca, k->ca_pem, err);

    if (rc < 0) {
        return rc;
    }
    rc = pem_set_if(&a->cert, k->cert_pem, err);
    if (rc < 0) {
        return rc;
    }
    rc = pem_set_if(&a->key, k->key_pem, err);
    if (rc < 0) {
        return rc;
    }
    a->token = k->token ? hk_strdup(k->token) : NULL;
    a->looked_ns = INT64_MIN;
    return 0;
}

void auth_fini(struct client *c)
{
    struct client_auth *a = &c->auth;

    exec_plugin_free(a->plugin);
    pem_file_fini(&a->ca);
    pem_file_fini(&a->cert);
    pem_file_fini(&a->key);
    hk_free(a->token);
}

/* ---- a token in a file ---- */

static void set_token(struct client_auth *a, struct hk_str token)
{
    hk_free(a->token);
    a->token = token.n > 0 ? hk_strndup(token.s, token.n) : NULL;
    a->epoch++;
}

static bool has_blanks(struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.s[i] <= ' ' || s.s[i] == 0x7f) {
            return true;
        }
    }
    return false;
}

/* If the file cannot be read, the last token stays in use. True if the token changed. */
static bool read_token(struct client *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct client_auth *a = &c->auth;
    struct hk_err err = {0};

    if (hk_read_file(c->config.token_file, MAX_TOKEN, &text, &err) < 0) {
        hk_log(HK_LOG_WARN, "cannot read the token", "err=\"%s\"", err.text);
        return false;
    }
    const struct hk_str token = hk_str_trim(hk_buf_str(&text));
    if (token.n == 0 || has_blanks(token)) {
        hk_log(HK_LOG_WARN, "no token in the file", "path=%s", c->config.token_file);
        return false;
    }
    if (hk_str_eq(token, hk_str(a->token))) {
        return false;
    }
    set_token(a, token);
    return true;
}

/* Kubernetes replaces such files by renaming, so a changed file has another inode. */
static void look_at_token(struct client *c)
{
    struct client_auth *a = &c->auth;
    const int64_t now = net_loop_now_ns(c->o.loop);
    struct stat st;

    if (!c->config.token_file ||
        (a->looked_ns != INT64_MIN && now - a->looked_ns < LOOK_EVERY_NS)) {
        return;
    }
    a->looked_ns = now;
    if (stat(c->config.token_file, &st) < 0) {
        return;
    }
    const int64_t mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (mtime != a->file_mtime_ns || st.st_ino != a->file_ino) {
        a->file_mtime_ns = mtime;
        a->file_ino = st.st_ino;
        read_token(c);
    }
}

/* ---- a plugin ---- */

static int use_credential(struct client *c, const struct exec_credential *cred, struct hk_err *err)
{
    struct client_auth *a = &c->auth;
    int rc = 0;

    if (cred->cert_pem) {
        rc = pem_file_set(&a->cert, cred->cert_pem, err);
        if (rc == 0) {
            rc = pem_file_set(&a->key, cred->key_pem, err);
        }
        a->generation++;
    }
    set_token(a, hk_str(cred->token));
    a->expires_ns = cred->expires_ns;
    a->have = rc == 0;
    return rc;
}

static void on_plugin_done(void *ctx, int rc, struct exec_credential *cred,
                           const struct hk_err *err)
{
    struct client *c = ctx;
    struct hk_err why = *err;

    exec_plugin_free(hk_take(c->auth.plugin));
    if (rc == 0) {
        rc = use_credential(c, cred, &why);
    }
    if (rc < 0) {
        client_fail_line(c, &why);
    }
    client_pump_soon(c);
}

static bool is_fresh(const struct client *c)
{
    const int64_t ends = c->auth.expires_ns;

    return c->auth.have &&
           (ends == INT64_MAX || c->o.clock->wall_ns(c->o.clock) < ends - EXPIRY_MARGIN_NS);
}

enum auth_ready auth_ready(struct client *c, struct hk_err *err)
{
    const struct exec_plugin_opts o = {
        .loop = c->o.loop,
        .config = &c->config,
        .terminal = c->o.terminal,
        .timeout_ms = PLUGIN_TIMEOUT_MS,
        .done = on_plugin_done,
        .ctx = c,
    };

    look_at_token(c);
    if (!c->config.exec || is_fresh(c)) {
        return AUTH_READY;
    }
    if (c->auth.plugin) {
        return AUTH_PENDING;
    }
    return exec_plugin_start(&o, &c->auth.plugin, err) < 0 ? AUTH_FAILED : AUTH_PENDING;
}

bool auth_renew(struct client *c, uint64_t epoch)
{
    if (epoch != c->auth.epoch) {
        return true; /* the 401 of another call has renewed them */
    }
    if (c->config.exec) {
        c->auth.have = false;
        return true;
    }
    return c->config.token_file && read_token(c);
}

/* ---- requests ---- */

static const char *pem_name(const struct pem_file *p, const char *file)
{
    return p->fd >= 0 ? p->path : file;
}

void auth_apply_tls(const struct client *c, CURL *curl)
{
    const struct kubeconfig *k = &c->config;
    const char *ca = pem_name(&c->auth.ca, k->ca_file);
    const char *cert = pem_name(&c->auth.cert, k->cert_file);
    const char *key = pem_name(&c->auth.key, k->key_file);

    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, k->insecure ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, k->insecure ? 0L : 2L);
    if (ca) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    if (cert) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, cert);
        curl_easy_setopt(curl, CURLOPT_SSLKEY, key);
    }
    if (k->username && !c->auth.token) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(curl, CURLOPT_USERNAME, k->username);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, k->password ? k->password : "");
    }
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    hk_buf_addf(&line, "%s: %s", name, value);
    return curl_slist_append(list, line.data);
}

struct curl_slist *auth_add_headers(const struct client *c, struct curl_slist *list)
{
    const struct kubeconfig *k = &c->config;

    if (c->auth.token) {
        HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
        hk_buf_addf(&line, "Authorization: Bearer %s", c->auth.token);
        list = curl_slist_append(list, line.data);
    }
    if (!k->as) {
        return list;
    }
    list = add_header(list, "Impersonate-User", k->as);
    if (k->as_uid) {
        list = add_header(list, "Impersonate-Uid", k->as_uid);
    }
    for (uint32_t i = 0; i < k->nas_groups; i++) {
        list = add_header(list, "Impersonate-Group", k->as_groups[i]);
    }
    for (uint32_t i = 0; i < k->nas_extra; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
        hk_buf_adds(&name, "Impersonate-Extra-");
        target_escape(hk_str(k->as_extra[i].name), &name);
        list = add_header(list, name.data, k->as_extra[i].value);
    }
    return list;
}
