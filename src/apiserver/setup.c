// SPDX-License-Identifier: Apache-2.0
// Credentials in a data directory. Files are written completely or not at all, key before
// certificate, so a second start can recover from a crash between two of them.
#include "apiserver/setup.h"

#include "apiserver/aggregate.h"

#include "base/file.h"
#include "base/vec.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_FILE_BYTES = 1 << 20,
    CA_DAYS = 3650,
    SERVING_DAYS = 1826,
    RENEW_S = 60 * 86400, /* a serving certificate with less time left is renewed */
    TOKEN_BYTES = 32,
};

typedef HK_VEC(const char *) name_list;

static void setup_write_path(struct hk_buf *out, const char *dir, const char *name)
{
    hk_buf_clear(out);
    hk_buf_addf(out, "%s/%s", dir, name);
}

static bool setup_file_exists(const char *dir, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    setup_write_path(&path, dir, name);
    return access(path.data, F_OK) == 0;
}

static int setup_read_file(const char *dir, const char *name, char **ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0};

    setup_write_path(&path, dir, name);
    const int rc = hk_read_file(path.data, MAX_FILE_BYTES, &text, err);
    if (rc == 0) {
        *ret = hk_strndup(hk_buf_str(&text).s, text.len);
    }
    return rc;
}

static int setup_write_file(const char *dir, const char *name, const char *text, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    setup_write_path(&path, dir, name);
    return hk_write_file(path.data, hk_str(text), err);
}

static int setup_read_cert_pair(const char *dir, const char *cert, const char *key,
                                struct cert_pair *ret, struct hk_err *err)
{
    const int rc = setup_read_file(dir, cert, &ret->cert_pem, err);

    if (rc < 0) {
        return rc;
    }
    return setup_read_file(dir, key, &ret->key_pem, err);
}

static int write_pair(const char *dir, const char *cert, const char *key, const struct cert_pair *p,
                      struct hk_err *err)
{
    const int rc = setup_write_file(dir, key, p->key_pem, err);

    if (rc < 0) {
        return rc;
    }
    return setup_write_file(dir, cert, p->cert_pem, err);
}

/* ---- certificates ---- */

static int load_ca(const char *dir, int64_t now_s, struct setup *s, struct hk_err *err)
{
    const struct cert_opts o = {.cn = "hekla-ca", .now_s = now_s, .days = CA_DAYS};

    if (setup_file_exists(dir, "ca.crt")) {
        return setup_read_cert_pair(dir, "ca.crt", "ca.key", &s->ca, err);
    }
    const int rc = cert_make_ca(&o, &s->ca, err);
    if (rc < 0) {
        return rc;
    }
    return write_pair(dir, "ca.crt", "ca.key", &s->ca, err);
}

static bool serving_fits(const struct setup *s, const name_list *names, int64_t now_s)
{
    int64_t ends_s;

    if (cert_expiry(s->serving.cert_pem, &ends_s, NULL) < 0 || ends_s - now_s < RENEW_S) {
        return false;
    }
    for (uint32_t k = 0; k < names->len; k++) {
        if (!cert_serves(s->serving.cert_pem, s->ca.cert_pem, names->at[k])) {
            return false;
        }
    }
    return true;
}

static bool is_wildcard(const char *addr)
{
    return strcmp(addr, "0.0.0.0") == 0 || strcmp(addr, "::") == 0;
}

static int load_serving(const char *dir, const name_list *names, int64_t now_s, struct setup *s,
                        struct hk_err *err)
{
    const struct cert_opts o = {
        .cn = "hekla-apiserver",
        .names = names->at,
        .nnames = names->len,
        .server = true,
        .now_s = now_s,
        .days = SERVING_DAYS,
    };

    if (setup_file_exists(dir, "server.crt")) {
        const int rc = setup_read_cert_pair(dir, "server.crt", "server.key", &s->serving, err);
        if (rc < 0 || serving_fits(s, names, now_s)) {
            return rc;
        }
        cert_pair_fini(&s->serving);
    }
    const int rc = cert_make(&o, &s->ca, &s->serving, err);
    return rc < 0 ? hk_wrap(err, rc, "%s/ca.crt", dir)
                  : write_pair(dir, "server.crt", "server.key", &s->serving, err);
}

static int load_certs(const char *dir, const char *addr, const struct setup_service *service,
                      int64_t now_s, struct setup *s, struct hk_err *err)
{
    /* The names of the Service default/kubernetes. */
    static const char *const service_names[] = {"kubernetes", "kubernetes.default",
                                                "kubernetes.default.svc"};
    HK_AUTO(hk_buf_fini) struct hk_buf full = {0};
    char host[256] = "";
    name_list names = {0};
    int rc = load_ca(dir, now_s, s, err);

    hk_vec_push(&names, "localhost");
    hk_vec_push(&names, "127.0.0.1");
    hk_vec_push(&names, "::1");
    for (size_t i = 0; i < HK_LEN(service_names); i++) {
        hk_vec_push(&names, service_names[i]);
    }
    hk_buf_addf(&full, "kubernetes.default.svc.%s",
                service && service->domain ? service->domain : "cluster.local");
    hk_vec_push(&names, full.data);
    if (service && service->addr) {
        hk_vec_push(&names, service->addr);
    }
    if (gethostname(host, sizeof(host) - 1) == 0 && host[0] != '\0') {
        hk_vec_push(&names, host);
    }
    if (!is_wildcard(addr)) {
        hk_vec_push(&names, addr);
    }
    if (rc == 0) {
        rc = load_serving(dir, &names, now_s, s, err);
    }
    hk_vec_fini(&names);
    return rc;
}

/* The authority of the certificate that identifies this server to other API servers: those trust
 * what its owner says about users, so it is not the one that signs users' certificates. */
static int load_front(const char *dir, int64_t now_s, struct setup *s, struct hk_err *err)
{
    const struct cert_opts ca = {.cn = "front-proxy-ca", .now_s = now_s, .days = CA_DAYS};
    const struct cert_opts client = {
        .cn = AGGREGATE_FRONT_CN, .client = true, .now_s = now_s, .days = CA_DAYS};
    int rc;

    if (setup_file_exists(dir, "front-proxy-ca.crt")) {
        rc = setup_read_cert_pair(dir, "front-proxy-ca.crt", "front-proxy-ca.key", &s->front_ca,
                                  err);
    } else {
        rc = cert_make_ca(&ca, &s->front_ca, err);
        if (rc == 0) {
            rc = write_pair(dir, "front-proxy-ca.crt", "front-proxy-ca.key", &s->front_ca, err);
        }
    }
    if (rc < 0) {
        return rc;
    }
    rc = cert_make(&client, &s->front_ca, &s->front_client, err);
    return rc < 0 ? hk_wrap(err, rc, "%s/front-proxy-ca.crt", dir) : 0;
}

/* ---- tokens ---- */

/* Appends random bytes in hexadecimal. */
static int write_secret(struct hk_buf *out, struct hk_err *err)
{
    unsigned char secret[TOKEN_BYTES];

    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret)) {
        return hk_fail(err, HK_EIO, "cannot get random bytes: %m");
    }
    for (size_t k = 0; k < sizeof(secret); k++) {
        hk_buf_addf(out, "%02x", secret[k]);
    }
    return 0;
}

static int make_tokens(const char *dir, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int rc = write_secret(&text, err);

    if (rc < 0) {
        return rc;
    }
    hk_buf_adds(&text, ",admin,admin,\"system:masters\"\n");
    return setup_write_file(dir, "tokens.csv", text.data, err);
}

/* The first administrator's token goes into the kubeconfig. */
static int find_admin(struct setup *s, const char *text, struct hk_err *err)
{
    struct hk_str rest = hk_str(text), line, token;

    while (hk_str_cut(&rest, '\n', &line)) {
        hk_str_cut(&line, ',', &token);
        const struct auth_user u = auth_by_token(s->auth, hk_str_trim(token));
        if (u.name && auth_is_admin(&u)) {
            token = hk_str_trim(token);
            s->admin_token = hk_strndup(token.s, token.n);
            return 0;
        }
    }
    return hk_fail(err, HK_EINVAL, "no user of the group system:masters");
}

static int load_tokens(const char *dir, struct setup *s, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *text = NULL;
    int rc = setup_file_exists(dir, "tokens.csv") ? 0 : make_tokens(dir, err);

    if (rc < 0) {
        return rc;
    }
    rc = setup_read_file(dir, "tokens.csv", &text, err);
    if (rc < 0) {
        return rc;
    }
    rc = auth_parse(hk_str(text), &s->auth, err);
    if (rc == 0) {
        rc = find_admin(s, text, err);
    }
    return rc < 0 ? hk_wrap(err, rc, "%s/tokens.csv", dir) : 0;
}

static int load_account_key(const char *dir, struct setup *s, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int rc;

    if (!setup_file_exists(dir, "sa.key")) {
        rc = write_secret(&text, err);
        if (rc < 0) {
            return rc;
        }
        rc = setup_write_file(dir, "sa.key", text.data, err);
        if (rc < 0) {
            return rc;
        }
    }
    rc = setup_read_file(dir, "sa.key", &s->account_key, err);
    if (rc < 0) {
        return rc;
    }
    if (s->account_key[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "%s/sa.key is empty", dir);
    }
    return 0;
}

/* ---- the whole setup ---- */

bool setup_exists(const char *dir)
{
    return setup_file_exists(dir, "sa.key");
}

int setup_load(const char *dir, const char *addr, const struct setup_service *service,
               struct hk_clock *clock, struct setup *ret, struct hk_err *err)
{
    struct setup s = {0};
    int rc = load_certs(dir, addr, service, clock->wall_ns(clock) / 1000000000, &s, err);

    if (rc == 0) {
        rc = load_front(dir, clock->wall_ns(clock) / 1000000000, &s, err);
    }
    if (rc == 0) {
        rc = load_tokens(dir, &s, err);
    }
    if (rc == 0) {
        rc = load_account_key(dir, &s, err);
    }
    if (rc < 0) {
        setup_fini(&s);
        return rc;
    }
    *ret = s;
    return 0;
}

void setup_fini(struct setup *s)
{
    cert_pair_fini(&s->ca);
    cert_pair_fini(&s->serving);
    cert_pair_fini(&s->front_ca);
    cert_pair_fini(&s->front_client);
    auth_free(s->auth);
    hk_free(s->admin_token);
    hk_free(s->account_key);
    *s = (struct setup){0};
}

int setup_write_kubeconfig(const struct setup *s, const char *dir, const char *url,
                           struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text,
                "apiVersion: v1\n"
                "kind: Config\n"
                "current-context: hekla\n"
                "clusters:\n"
                "- name: hekla\n"
                "  cluster:\n"
                "    server: %s\n"
                "    certificate-authority-data: ",
                url);
    cert_write_base64(s->ca.cert_pem, &text);
    hk_buf_addf(&text,
                "\n"
                "contexts:\n"
                "- name: hekla\n"
                "  context:\n"
                "    cluster: hekla\n"
                "    user: admin\n"
                "    namespace: default\n"
                "users:\n"
                "- name: admin\n"
                "  user:\n"
                "    token: %s\n",
                s->admin_token);
    return setup_write_file(dir, "kubeconfig", text.data, err);
}
