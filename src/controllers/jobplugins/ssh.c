// SPDX-License-Identifier: Apache-2.0
// ssh: the pods of a job can log in to one another without a password. A Secret holds one key pair
// for all pods and a client configuration with their names. The pair is created once and kept until
// the job is at rest; a restart keeps it, because some pods may survive.
#include "controllers/jobplugin.h"

#include "codec/base64.h"

#include <gnutls/abstract.h>
#include <gnutls/x509.h>

#define HOME_PATH "/root/.ssh"
#define KEY_BITS 2048

struct ssh_opts {
    struct hk_str path, private_key, public_key;
    int64_t port;
};

static const struct job_opt opts[] = {
    {"ssh-key-file-path", JOB_OPT_STRING, offsetof(struct ssh_opts, path), HOME_PATH,
     "where the keys are mounted"},
    {"ssh-private-key", JOB_OPT_STRING, offsetof(struct ssh_opts, private_key), NULL,
     "a private key to use instead of a new one"},
    {"ssh-public-key", JOB_OPT_STRING, offsetof(struct ssh_opts, public_key), NULL,
     "its public key"},
    {"ssh-port", JOB_OPT_INT, offsetof(struct ssh_opts, port), "22", "port of sshd"},
    {0},
};

static struct hk_str secret_name(const struct job_plugin_use *use)
{
    return hk_str(hk_arena_printf(use->a, "%.*s-ssh", HK_FMT(use->job->meta.name)));
}

static int64_t port_of(const struct ssh_opts *o)
{
    return o->port >= 1 && o->port <= 65535 ? o->port : 22;
}

/* ---- the client configuration ---- */

static void write_config(const struct job_plugin_use *use, struct hk_buf *out)
{
    hk_buf_adds(out, "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n");
    for (uint32_t i = 0; i < use->job->tasks.len; i++) {
        const struct api_job_task *task = &use->job->tasks.at[i];

        for (int32_t k = 0; k < job_hosts(task); k++) {
            const struct hk_str host = job_host(use, task, k), at = job_address(use, task, k);

            /* Both names: MPI_HOST and the files of svc use the long one, and without a match ssh
             * would use the default port. */
            hk_buf_addf(out, "Host %.*s %.*s\n  HostName %.*s\n  Port %lld\n", HK_FMT(host),
                        HK_FMT(at), HK_FMT(at), (long long)port_of(use->opts));
        }
    }
}

/* ---- keys ---- */

/* A field of an SSH key: length and bytes. */
static void add_field(struct hk_buf *out, const void *p, size_t n)
{
    const unsigned char len[4] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                  (unsigned char)(n >> 8), (unsigned char)n};

    hk_buf_add(out, len, sizeof(len));
    hk_buf_add(out, p, n);
}

/* Writes an authorized_keys line. GnuTLS returns numbers with the leading zero that SSH needs. */
static void write_public(const gnutls_datum_t *modulus, const gnutls_datum_t *exponent,
                         struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf blob = {0};

    add_field(&blob, "ssh-rsa", strlen("ssh-rsa"));
    add_field(&blob, exponent->data, exponent->size);
    add_field(&blob, modulus->data, modulus->size);
    hk_buf_adds(out, "ssh-rsa ");
    base64_write(hk_buf_str(&blob), out);
    hk_buf_addc(out, '\n');
}

/* Writes private key (PKCS#1 in PEM) and public line. Fails only without memory or entropy. */
static void make_keys(struct hk_buf *private, struct hk_buf *public)
{
    gnutls_datum_t pem = {0}, m = {0}, e = {0};
    gnutls_x509_privkey_t key;
    int rc = gnutls_x509_privkey_init(&key);

    hk_assert(rc == 0);
    rc = gnutls_x509_privkey_generate(key, GNUTLS_PK_RSA, KEY_BITS, 0);
    hk_assert(rc == 0);
    rc = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem);
    hk_assert(rc == 0);
    rc = gnutls_x509_privkey_export_rsa_raw(key, &m, &e, NULL, NULL, NULL, NULL);
    hk_assert(rc == 0);
    hk_buf_add(private, pem.data, pem.size);
    write_public(&m, &e, public);
    gnutls_free(pem.data);
    gnutls_free(m.data);
    gnutls_free(e.data);
    gnutls_x509_privkey_deinit(key);
}

/* ---- the Secret ---- */

static void ssh_set_base64(const struct job_plugin_use *use, struct json *data, const char *key,
                           struct hk_str bytes)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    base64_write(bytes, &text);
    json_set_str_copy(data, use->a, key, hk_buf_str(&text));
}

static void make_secret(const struct job_plugin_use *use, struct json *body)
{
    const struct ssh_opts *o = use->opts;
    HK_AUTO(hk_buf_fini) struct hk_buf config = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf private = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf public = {0};
    struct json *data;

    if (o->private_key.n > 0) {
        hk_buf_addstr(&private, o->private_key);
        hk_buf_addstr(&public, o->public_key);
    } else {
        make_keys(&private, &public);
    }
    write_config(use, &config);
    json_set_cstr(body, use->a, "type", "Opaque");
    data = json_set_object(body, use->a, "data");
    ssh_set_base64(use, data, "id_rsa", hk_buf_str(&private));
    ssh_set_base64(use, data, "id_rsa.pub", hk_buf_str(&public));
    ssh_set_base64(use, data, "authorized_keys", hk_buf_str(&public));
    ssh_set_base64(use, data, "config", hk_buf_str(&config));
}

static bool correct_secret(const struct job_plugin_use *use, struct json *obj)
{
    HK_AUTO(hk_buf_fini) struct hk_buf config = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json *data = (struct json *)json_get(obj, "data");

    write_config(use, &config);
    base64_write(hk_buf_str(&config), &text);
    if (hk_str_eq(json_str(json_get(data, "config"), HK_STR("")), hk_buf_str(&text))) {
        return false;
    }
    if (!json_is(data, JSON_OBJECT)) {
        make_secret(use, obj);
    } else {
        ssh_set_base64(use, data, "config", hk_buf_str(&config));
    }
    return true;
}

static uint32_t ssh_objects(const struct job_plugin_use *use, struct job_object *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf config = {0};

    write_config(use, &config);
    ret[0] =
        (struct job_object){API_SECRET, secret_name(use), hk_hash(config.data, config.len, 1) | 1,
                            make_secret, correct_secret};
    return 1;
}

/* ---- pods ---- */

static void ssh_add_to_container(void *ctx, struct json *container)
{
    const struct job_plugin_use *use = ctx;
    const struct ssh_opts *o = use->opts;
    struct json mount = json_make_object();

    json_set_str(&mount, use->a, "mountPath", o->path);
    json_set_str(&mount, use->a, "name", secret_name(use));
    json_set_cstr(&mount, use->a, "subPath", ".ssh");
    json_push(json_need(container, use->a, "volumeMounts", JSON_ARRAY), use->a, mount);
}

static struct json key_items(const struct job_plugin_use *use)
{
    static const char *const keys[] = {"id_rsa", "id_rsa.pub", "authorized_keys", "config"};
    struct json list = json_make_array();

    for (unsigned i = 0; i < HK_LEN(keys); i++) {
        struct json item = json_make_object();

        json_set_cstr(&item, use->a, "key", keys[i]);
        json_set_cstr(&item, use->a, "path", hk_arena_printf(use->a, ".ssh/%s", keys[i]));
        json_push(&list, use->a, item);
    }
    return list;
}

static int ssh_pod(const struct job_plugin_use *use, const struct api_job_task *task, int32_t index,
                   struct json *pod, struct hk_err *err)
{
    const struct ssh_opts *o = use->opts;
    struct json *spec = (struct json *)json_get(pod, "spec");
    struct json volume = json_make_object(), source = json_make_object();

    json_set_str(&source, use->a, "secretName", secret_name(use));
    json_set(&source, use->a, "items", key_items(use));
    json_set_int(&source, use->a, "defaultMode", hk_str_is(o->path, HOME_PATH) ? 0600 : 0644);
    json_set_str(&volume, use->a, "name", secret_name(use));
    json_set(&volume, use->a, "secret", source);
    json_push(json_need(spec, use->a, "volumes", JSON_ARRAY), use->a, volume);
    job_each_container(pod, true, ssh_add_to_container, (void *)use);
    return 0;
}

const struct job_plugin job_plugin_ssh = {
    .name = "ssh",
    .about = "lets pods log in to one another with a key of the job's own",
    .opts = opts,
    .opts_size = sizeof(struct ssh_opts),
    .objects = ssh_objects,
    .pod = ssh_pod,
};
