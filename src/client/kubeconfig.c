// SPDX-License-Identifier: Apache-2.0
// Reads kubeconfig files and merges them: of several entries with one name the first counts as a
// whole, and its file names are relative to its own file. Unused fields are ignored, as in kubectl;
// fields of the wrong type are errors.
#include "client/kubeconfig.h"

#include "base/file.h"
#include "base/vec.h"
#include "codec/yaml.h"
#include "net/cert.h"

#include <stdlib.h>
#include <unistd.h>

enum { MAX_FILE = 4 << 20 };

struct file {
    struct json doc;
    const char *dir;
};

struct loader {
    const struct kubeconfig_opts *o;
    struct kubeconfig *k;
    struct hk_arena *mem; /* of the configuration */
    HK_VEC(struct file) files;
    const char *exec_config; /* of the cluster, for the user's plugin */
    int rc;                  /* first failure of a field */
    struct hk_err *err;
};

void kubeconfig_env(struct kubeconfig_opts *o)
{
    o->env_paths = getenv("KUBECONFIG");
    o->home = getenv("HOME");
    o->service_host = getenv("KUBERNETES_SERVICE_HOST");
    o->service_port = getenv("KUBERNETES_SERVICE_PORT");
    o->account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
}

static bool kubeconfig_is_set(const char *s)
{
    return s && s[0] != '\0';
}

/* ---- fields ---- */

static const struct json *kubeconfig_typed_field(struct loader *l, const struct json *obj,
                                                 const char *key, enum json_type want)
{
    const struct json *v = json_get(obj, key);

    if (!v || v->type == JSON_NULL) {
        return NULL;
    }
    if (v->type != want) {
        if (l->rc == 0) {
            l->rc = hk_fail(l->err, HK_EINVAL, "line %u: %s: want %s, have %s", v->line, key,
                            json_type_name(want), json_type_name(v->type));
        }
        return NULL;
    }
    return v;
}

/* NULL if absent or empty. */
static const char *kubeconfig_text_field(struct loader *l, const struct json *obj, const char *key)
{
    const struct hk_str s = json_str(kubeconfig_typed_field(l, obj, key, JSON_STRING), HK_STR(""));

    if (s.n > 0 && memchr(s.s, '\0', s.n)) {
        if (l->rc == 0) {
            l->rc = hk_fail(l->err, HK_EINVAL, "%s: holds a NUL byte", key);
        }
        return NULL;
    }
    return s.n > 0 ? hk_arena_str(l->mem, s).s : NULL;
}

static bool flag(struct loader *l, const struct json *obj, const char *key)
{
    return json_bool(kubeconfig_typed_field(l, obj, key, JSON_BOOL), false);
}

/* A file name, relative to the file that contains it. */
static const char *path(struct loader *l, const struct json *obj, const char *key, const char *dir)
{
    const char *s = kubeconfig_text_field(l, obj, key);

    return !s || s[0] == '/' ? s : hk_arena_printf(l->mem, "%s/%s", dir, s);
}

/* key-data, decoded. */
static const char *data(struct loader *l, const struct json *obj, const char *key)
{
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0};
    const char *coded = kubeconfig_text_field(l, obj, key);

    if (!coded) {
        return NULL;
    }
    const int rc = cert_read_base64(hk_str(coded), &plain, l->err);
    if (rc < 0) {
        if (l->rc == 0) { /* the first failure is the answer */
            l->rc = hk_wrap(l->err, rc, "%s", key);
        }
        return NULL;
    }
    return hk_arena_str(l->mem, hk_buf_str(&plain)).s;
}

static const char *const *texts(struct loader *l, const struct json *obj, const char *key,
                                uint32_t *ret_n)
{
    const struct json *list = kubeconfig_typed_field(l, obj, key, JSON_ARRAY);
    const uint32_t n = list ? list->len : 0;
    const char **at = hk_arena_array(l->mem, n, sizeof(*at));

    for (uint32_t i = 0; i < n; i++) {
        const struct json *v = json_item(list, i);
        if (v->type != JSON_STRING && l->rc == 0) {
            l->rc = hk_fail(l->err, HK_EINVAL, "line %u: %s: want strings", v->line, key);
        }
        at[i] = hk_arena_str(l->mem, json_str(v, HK_STR(""))).s;
    }
    *ret_n = n;
    return at;
}

/* ---- entries ---- */

/* The first entry of that name: its member `what`, and the directory of its file. */
static const struct json *kubeconfig_find_entry(struct loader *l, const char *list,
                                                const char *what, const char *name,
                                                const char **ret_dir)
{
    for (uint32_t f = 0; f < l->files.len; f++) {
        const struct json *entries =
            kubeconfig_typed_field(l, &l->files.at[f].doc, list, JSON_ARRAY);
        for (uint32_t i = 0; entries && i < entries->len; i++) {
            const struct json *entry = json_item(entries, i);
            if (hk_str_is(json_str_field(entry, "name"), name)) {
                static const struct json nothing = {.type = JSON_OBJECT};
                const struct json *v = kubeconfig_typed_field(l, entry, what, JSON_OBJECT);
                *ret_dir = l->files.at[f].dir;
                return v ? v : &nothing;
            }
        }
    }
    return NULL;
}

static int kubeconfig_fail_missing(struct loader *l, const char *what, const char *name)
{
    return hk_fail(l->err, HK_ENOTFOUND, "%s \"%s\" does not exist", what, name);
}

static const char *current_context(struct loader *l)
{
    if (l->o->context) {
        return l->o->context;
    }
    for (uint32_t f = 0; f < l->files.len; f++) {
        const char *name = kubeconfig_text_field(l, &l->files.at[f].doc, "current-context");
        if (name) {
            return name;
        }
    }
    return "";
}

/* The cluster's extension for plugins, as JSON. */
static const char *exec_config(struct loader *l, const struct json *cluster)
{
    const struct json *list = kubeconfig_typed_field(l, cluster, "extensions", JSON_ARRAY);

    for (uint32_t i = 0; list && i < list->len; i++) {
        const struct json *entry = json_item(list, i);
        const struct json *v = json_get(entry, "extension");
        const struct hk_str name = json_str_field(entry, "name");
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

        if (v && hk_str_is(name, "client.authentication.k8s.io/exec")) {
            json_write(v, &text);
            return hk_arena_str(l->mem, hk_buf_str(&text)).s;
        }
    }
    return NULL;
}

static int read_cluster(struct loader *l, const char *name)
{
    struct kubeconfig *k = l->k;
    const char *dir = NULL;
    const struct json *v = kubeconfig_is_set(name)
                               ? kubeconfig_find_entry(l, "clusters", "cluster", name, &dir)
                               : NULL;

    if (!v) {
        return kubeconfig_is_set(name) ? kubeconfig_fail_missing(l, "cluster", name) : 0;
    }
    k->server = kubeconfig_text_field(l, v, "server");
    k->ca_pem = data(l, v, "certificate-authority-data");
    k->ca_file = k->ca_pem ? NULL : path(l, v, "certificate-authority", dir);
    k->insecure = flag(l, v, "insecure-skip-tls-verify");
    k->tls_server_name = kubeconfig_text_field(l, v, "tls-server-name");
    k->proxy_url = kubeconfig_text_field(l, v, "proxy-url");
    k->disable_compression = flag(l, v, "disable-compression");
    l->exec_config = exec_config(l, v);
    if (k->insecure && (k->ca_pem || k->ca_file)) {
        return hk_fail(l->err, HK_EINVAL,
                       "cluster \"%s\": specifying a root certificates file with the insecure "
                       "flag is not allowed",
                       name);
    }
    return l->rc < 0 ? hk_wrap(l->err, l->rc, "cluster \"%s\"", name) : 0;
}

/* ---- users ---- */

static void read_exec_env(struct loader *l, const struct json *v, struct kubeconfig_exec *e)
{
    const struct json *env = kubeconfig_typed_field(l, v, "env", JSON_ARRAY);
    const uint32_t n = env ? env->len : 0;
    struct kubeconfig_pair *at = hk_arena_array(l->mem, n, sizeof(*at));

    for (uint32_t i = 0; i < n; i++) {
        const char *name = kubeconfig_text_field(l, json_item(env, i), "name");
        const char *value = kubeconfig_text_field(l, json_item(env, i), "value");
        at[i] = (struct kubeconfig_pair){name ? name : "", value ? value : ""};
    }
    e->env = at;
    e->nenv = n;
}

static int read_interactive(struct loader *l, const struct json *v, struct kubeconfig_exec *e)
{
    const char *mode = kubeconfig_text_field(l, v, "interactiveMode");

    if (!mode && strcmp(e->api_version, "client.authentication.k8s.io/v1") == 0) {
        return hk_fail(l->err, HK_EINVAL, "exec: interactiveMode must be specified");
    }
    if (!mode || strcmp(mode, "IfAvailable") == 0) {
        e->interactive = KUBECONFIG_INTERACTIVE_IF_AVAILABLE;
    } else if (strcmp(mode, "Always") == 0) {
        e->interactive = KUBECONFIG_INTERACTIVE_ALWAYS;
    } else if (strcmp(mode, "Never") != 0) {
        return hk_fail(l->err, HK_EINVAL,
                       "exec: interactiveMode '%s', want Never, IfAvailable or Always", mode);
    }
    return 0;
}

static int read_exec(struct loader *l, const struct json *v, const char *dir)
{
    struct kubeconfig_exec *e = hk_arena_zalloc(l->mem, sizeof(*e));
    const char *version = kubeconfig_text_field(l, v, "apiVersion");

    l->k->exec = e;
    e->api_version = version ? version : "";
    if (strcmp(e->api_version, "client.authentication.k8s.io/v1") != 0 &&
        strcmp(e->api_version, "client.authentication.k8s.io/v1beta1") != 0) {
        return hk_fail(l->err, HK_EINVAL,
                       "exec: apiVersion '%s', want client.authentication.k8s.io"
                       "/v1 or v1beta1",
                       e->api_version);
    }
    e->command = kubeconfig_text_field(l, v, "command");
    if (!e->command) {
        return l->rc < 0 ? l->rc : hk_fail(l->err, HK_EINVAL, "exec: command must be specified");
    }
    if (e->command[0] != '/' && strchr(e->command, '/')) {
        e->command = path(l, v, "command", dir); /* a name without a slash is searched in PATH */
    }
    e->args = texts(l, v, "args", &e->nargs);
    e->install_hint = kubeconfig_text_field(l, v, "installHint");
    e->cluster_info = flag(l, v, "provideClusterInfo");
    e->config = l->exec_config;
    read_exec_env(l, v, e);
    return read_interactive(l, v, e);
}

static void read_extra(struct loader *l, const struct json *v)
{
    const struct json *extra = kubeconfig_typed_field(l, v, "as-user-extra", JSON_OBJECT);
    HK_VEC(struct kubeconfig_pair) pairs = {0};

    for (uint32_t i = 0; extra && i < extra->len; i++) {
        const char *name = hk_arena_str(l->mem, extra->members[i].key).s;
        uint32_t n;
        const char *const *values = texts(l, extra, name, &n);
        for (uint32_t j = 0; j < n; j++) {
            hk_vec_push(&pairs, (struct kubeconfig_pair){name, values[j]});
        }
    }
    if (pairs.len > 0) {
        struct kubeconfig_pair *at = hk_arena_array(l->mem, pairs.len, sizeof(*at));
        memcpy(at, pairs.at, pairs.len * sizeof(*at));
        l->k->as_extra = at;
        l->k->nas_extra = pairs.len;
    }
    hk_vec_fini(&pairs);
}

/* A part of a header must not contain line ends. */
static bool fits_header(const char *s)
{
    for (; s && *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f) {
            return false;
        }
    }
    return true;
}

static int check_headers(struct loader *l)
{
    const struct kubeconfig *k = l->k;
    bool ok = fits_header(k->token) && fits_header(k->as) && fits_header(k->as_uid);

    for (uint32_t i = 0; ok && i < k->nas_groups; i++) {
        ok = fits_header(k->as_groups[i]);
    }
    for (uint32_t i = 0; ok && i < k->nas_extra; i++) {
        ok = fits_header(k->as_extra[i].value);
    }
    return ok ? 0
              : hk_fail(l->err, HK_EINVAL,
                        "control characters in the token or in a field of impersonation");
}

static int check_user(struct loader *l)
{
    const struct kubeconfig *k = l->k;

    if (l->rc < 0) {
        return l->rc;
    }
    if ((k->cert_pem || k->cert_file) != (k->key_pem || k->key_file)) {
        return hk_fail(l->err, HK_EINVAL,
                       "client-certificate and client-key must be specified together");
    }
    if (!k->as && (k->as_uid || k->nas_groups > 0 || k->nas_extra > 0)) {
        return hk_fail(l->err, HK_EINVAL,
                       "requesting uid, groups or user-extra without "
                       "impersonating a user");
    }
    return check_headers(l);
}

static int read_user(struct loader *l, const char *name)
{
    struct kubeconfig *k = l->k;
    const char *dir = NULL;
    const struct json *v =
        kubeconfig_is_set(name) ? kubeconfig_find_entry(l, "users", "user", name, &dir) : NULL;
    int rc = 0;

    if (!v) {
        return kubeconfig_is_set(name) ? kubeconfig_fail_missing(l, "user", name) : 0;
    }
    k->cert_pem = data(l, v, "client-certificate-data");
    k->cert_file = k->cert_pem ? NULL : path(l, v, "client-certificate", dir);
    k->key_pem = data(l, v, "client-key-data");
    k->key_file = k->key_pem ? NULL : path(l, v, "client-key", dir);
    k->token = kubeconfig_text_field(l, v, "token");
    k->token_file = path(l, v, "tokenFile", dir);
    k->username = kubeconfig_text_field(l, v, "username");
    k->password = kubeconfig_text_field(l, v, "password");
    k->as = kubeconfig_text_field(l, v, "as");
    k->as_uid = kubeconfig_text_field(l, v, "as-uid");
    k->as_groups = texts(l, v, "as-groups", &k->nas_groups);
    read_extra(l, v);
    const struct json *exec = kubeconfig_typed_field(l, v, "exec", JSON_OBJECT);
    if (exec) {
        rc = read_exec(l, exec, dir);
    }
    if (k->token || k->token_file || k->username) {
        k->exec = NULL; /* other credentials take precedence over a plugin, as in client-go */
    }
    if (rc == 0) {
        rc = check_user(l);
    }
    return rc < 0 ? hk_wrap(l->err, rc, "user \"%s\"", name) : 0;
}

/* ---- the selected context ---- */

static int read_choice(struct loader *l)
{
    struct kubeconfig *k = l->k;
    const char *dir = NULL, *context = current_context(l);
    const struct json *v = kubeconfig_is_set(context)
                               ? kubeconfig_find_entry(l, "contexts", "context", context, &dir)
                               : NULL;

    if (kubeconfig_is_set(context) && !v && l->rc == 0) {
        return kubeconfig_fail_missing(l, "context", context);
    }
    k->context = hk_arena_str(l->mem, hk_str(context)).s;
    const char *cluster = l->o->cluster ? l->o->cluster : kubeconfig_text_field(l, v, "cluster");
    const char *user = l->o->user ? l->o->user : kubeconfig_text_field(l, v, "user");
    k->ns = kubeconfig_text_field(l, v, "namespace");
    if (l->rc < 0) {
        return l->rc;
    }
    const int rc = read_cluster(l, cluster);
    if (rc < 0) {
        return rc;
    }
    return read_user(l, user);
}

static const char *kubeconfig_copy_str(struct loader *l, const char *s)
{
    return hk_arena_str(l->mem, hk_str(s)).s;
}

/* Adds a missing scheme and removes trailing slashes. */
static const char *complete_server(struct loader *l, const char *server)
{
    const struct kubeconfig *k = l->k;
    struct hk_str s = hk_str(server);

    while (s.n > 0 && s.s[s.n - 1] == '/') {
        s.n--;
    }
    const bool tls = k->ca_pem || k->ca_file || k->cert_pem || k->cert_file || k->insecure;
    const char *scheme = strstr(server, "://") ? "" : tls ? "https://" : "http://";
    return hk_arena_printf(l->mem, "%s%.*s", scheme, HK_FMT(s));
}

static int check_server(struct loader *l)
{
    const char *s = l->k->server;
    const size_t scheme = hk_str_starts(hk_str(s), "https://")  ? 8
                          : hk_str_starts(hk_str(s), "http://") ? 7
                                                                : 0;

    if (scheme == 0 || s[scheme] == '\0' || s[scheme] == '/' || strpbrk(s, "?# \t\r\n")) {
        return hk_fail(l->err, HK_EINVAL, "server '%s': want http:// or https:// and a host", s);
    }
    return 0;
}

static int kubeconfig_apply_options(struct loader *l)
{
    const struct kubeconfig_opts *o = l->o;
    struct kubeconfig *k = l->k;

    if (o->token) {
        k->token = kubeconfig_copy_str(l, o->token);
        k->token_file = NULL;
        k->exec = NULL;
    }
    const char *server = o->server ? o->server : k->server;
    k->is_guess = !kubeconfig_is_set(server);
    k->server = complete_server(l, k->is_guess ? "http://localhost:8080" : server);
    const char *ns = o->ns ? o->ns : k->ns;
    k->ns = kubeconfig_copy_str(l, kubeconfig_is_set(ns) ? ns : "default");
    return check_server(l);
}

/* ---- in a pod ---- */

static bool in_cluster(const struct kubeconfig_opts *o)
{
    HK_AUTO(hk_buf_fini) struct hk_buf token = {0};

    if (o->server || !kubeconfig_is_set(o->service_host) || !kubeconfig_is_set(o->service_port) ||
        !kubeconfig_is_set(o->account_dir)) {
        return false;
    }
    hk_buf_addf(&token, "%s/token", o->account_dir);
    return access(token.data, R_OK) == 0;
}

static void read_pod(struct loader *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ns = {0};
    const struct kubeconfig_opts *o = l->o;
    struct kubeconfig *k = l->k;
    const bool six = strchr(o->service_host, ':') != NULL;

    k->in_cluster = true;
    k->context = "";
    k->server = hk_arena_printf(l->mem, "https://%s%s%s:%s", six ? "[" : "", o->service_host,
                                six ? "]" : "", o->service_port);
    k->token_file = hk_arena_printf(l->mem, "%s/token", o->account_dir);
    k->ca_file = hk_arena_printf(l->mem, "%s/ca.crt", o->account_dir);
    if (hk_read_file(hk_arena_printf(l->mem, "%s/namespace", o->account_dir), 256, &ns, NULL) ==
        0) {
        const struct hk_str name = hk_str_trim(hk_buf_str(&ns));
        k->ns = name.n > 0 ? hk_arena_str(l->mem, name).s : NULL;
    }
}

/* ---- files ---- */

static int add_text(struct loader *l, struct hk_str bytes, const char *dir)
{
    struct yaml_docs docs;
    const int rc = yaml_parse(hk_arena_str(l->mem, bytes), 0, l->mem, &docs, l->err);

    if (rc < 0) {
        return rc;
    }
    if (docs.len == 0 || docs.at[0].type == JSON_NULL) {
        return 0;
    }
    if (docs.at[0].type != JSON_OBJECT) {
        return hk_fail(l->err, HK_EINVAL, "want a configuration, have %s",
                       json_type_name(docs.at[0].type));
    }
    hk_vec_push(&l->files, (struct file){docs.at[0], kubeconfig_copy_str(l, dir)});
    return 0;
}

static int add_file(struct loader *l, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};
    const char *slash = strrchr(name, '/');
    const char *dir = slash ? hk_arena_strndup(l->mem, name, (size_t)(slash - name)) : ".";
    int rc = hk_read_file(name, MAX_FILE, &bytes, l->err);

    if (rc < 0) {
        return rc; /* the message names the path */
    }
    rc = add_text(l, hk_buf_str(&bytes), slash == name ? "/" : dir);
    return rc < 0 ? hk_wrap(l->err, rc, "%s", name) : 0;
}

static int add_if_there(struct loader *l, const char *name)
{
    return kubeconfig_is_set(name) && access(name, F_OK) == 0 ? add_file(l, name) : 0;
}

static int add_files(struct loader *l)
{
    const struct kubeconfig_opts *o = l->o;
    struct hk_str rest = hk_str(o->env_paths), part;
    int rc = 0;

    if (o->path) {
        return add_file(l, o->path);
    }
    if (!kubeconfig_is_set(o->env_paths)) {
        return kubeconfig_is_set(o->home)
                   ? add_if_there(l, hk_arena_printf(l->mem, "%s/.kube/config", o->home))
                   : 0;
    }
    while (rc == 0 && hk_str_cut(&rest, ':', &part)) {
        rc = add_if_there(l, hk_arena_str(l->mem, part).s);
    }
    return rc;
}

/* Takes the loader's files. */
static int kubeconfig_resolve(struct loader *l, int rc, struct kubeconfig *ret)
{
    if (rc == 0 && l->files.len == 0 && in_cluster(l->o)) {
        read_pod(l);
    } else if (rc == 0) {
        rc = read_choice(l);
    }
    if (rc == 0) {
        rc = kubeconfig_apply_options(l);
    }
    hk_vec_fini(&l->files);
    if (rc < 0) {
        kubeconfig_fini(l->k);
        return rc;
    }
    *ret = *l->k;
    return 0;
}

int kubeconfig_load(const struct kubeconfig_opts *o, struct kubeconfig *ret, struct hk_err *err)
{
    struct kubeconfig k = {0};
    struct loader l = {.o = o, .k = &k, .mem = &k.mem, .err = err};

    return kubeconfig_resolve(&l, add_files(&l), ret);
}

int kubeconfig_parse(struct hk_str bytes, const char *dir, const struct kubeconfig_opts *o,
                     struct kubeconfig *ret, struct hk_err *err)
{
    struct kubeconfig k = {0};
    struct loader l = {.o = o, .k = &k, .mem = &k.mem, .err = err};

    return kubeconfig_resolve(&l, add_text(&l, bytes, dir), ret);
}

void kubeconfig_fini(struct kubeconfig *k)
{
    hk_arena_fini(&k->mem);
    *k = (struct kubeconfig){0};
}
