// SPDX-License-Identifier: Apache-2.0
// The environment and the command of a container: literal values, values from ConfigMaps, Secrets
// and the pod itself, and the expansion of $(NAME).
#include "agent/pod/env.h"

#include "agent/pod/hosts.h"
#include "codec/quantity.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

void env_fini(struct env *e)
{
    hk_vec_fini(&e->vars);
}

static const struct env_var *env_find_var(const struct env *e, struct hk_str name)
{
    for (uint32_t i = 0; i < e->vars.len; i++) {
        if (hk_str_eq(e->vars.at[i].name, name)) {
            return &e->vars.at[i];
        }
    }
    return NULL;
}

bool env_has(const struct env *e, struct hk_str name)
{
    return env_find_var(e, name) != NULL;
}

void env_set(struct env *e, struct hk_str name, struct hk_str value)
{
    struct env_var *v = (struct env_var *)env_find_var(e, name);

    if (v) {
        v->value = value;
    } else {
        hk_vec_push(&e->vars, (struct env_var){name, value});
    }
}

/* ---- expansion ---- */

/* Expands what follows the '$' at text.s[at]; returns the number of bytes used after the '$'. */
static size_t expand_one(const struct env *e, struct hk_str text, size_t at, struct hk_buf *out)
{
    const char *s = text.s + at + 1;
    const size_t n = text.n - at - 1;
    const char *close;

    if (s[0] == '$') {
        hk_buf_addc(out, '$');
        return 1;
    }
    if (s[0] != '(' || !(close = memchr(s, ')', n))) {
        hk_buf_addc(out, '$');
        hk_buf_addc(out, s[0]);
        return 1;
    }
    const struct hk_str name = {s + 1, (size_t)(close - s) - 1};
    const struct env_var *v = env_find_var(e, name);
    if (v) {
        hk_buf_addstr(out, v->value);
    } else {
        hk_buf_addf(out, "$(%.*s)", HK_FMT(name));
    }
    return (size_t)(close - s) + 1;
}

struct hk_str env_expand(const struct env *e, struct hk_str text, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    for (size_t i = 0; i < text.n; i++) {
        if (text.s[i] == '$' && i + 1 < text.n) {
            i += expand_one(e, text, i, &out);
        } else {
            hk_buf_addc(&out, text.s[i]);
        }
    }
    return hk_arena_str(a, hk_buf_str(&out));
}

/* ---- fields of the pod ---- */

/* "metadata.labels['a/b']": the key between the quotes. */
static bool subscript(struct hk_str path, const char *prefix, struct hk_str *key)
{
    const size_t n = strlen(prefix);

    if (!hk_str_starts(path, prefix) || path.n < n + 4 || path.s[n] != '[' ||
        path.s[path.n - 1] != ']') {
        return false;
    }
    *key = (struct hk_str){path.s + n + 2, path.n - n - 4};
    return true;
}

static int env_compare_members(const void *x, const void *y)
{
    return hk_str_cmp(((const struct json_member *)x)->key, ((const struct json_member *)y)->key);
}

/* Labels or annotations in the file format of the downward API: sorted lines key="value". */
static struct hk_str map_text(const struct json *map, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct json sorted;

    if (!json_is(map, JSON_OBJECT)) {
        return HK_STR("");
    }
    sorted = json_clone(map, a);
    qsort(sorted.members, sorted.len, sizeof(sorted.members[0]), env_compare_members);
    for (uint32_t i = 0; i < sorted.len; i++) {
        hk_buf_addf(&out, "%s%.*s=", i > 0 ? "\n" : "", HK_FMT(sorted.members[i].key));
        json_write_str(json_str(&sorted.members[i].value, HK_STR("")), &out);
    }
    return hk_arena_str(a, hk_buf_str(&out));
}

bool env_field(const struct pod *p, struct hk_str path, struct hk_arena *a, struct hk_str *ret)
{
    static const char *const plain[] = {"metadata.name", "metadata.namespace", "metadata.uid",
                                        "spec.nodeName", "spec.serviceAccountName"};
    const struct json *root = &p->now->root;
    const char *host = p->host->o.address;
    struct hk_str key;

    for (size_t i = 0; i < HK_LEN(plain); i++) {
        if (hk_str_is(path, plain[i])) {
            *ret = json_str(json_at(root, plain[i]), HK_STR(""));
            return true;
        }
    }
    if (hk_str_is(path, "status.podIP") || hk_str_is(path, "status.podIPs")) {
        *ret = hk_str(p->address[0] ? p->address : host);
    } else if (hk_str_is(path, "status.hostIP") || hk_str_is(path, "status.hostIPs")) {
        *ret = hk_str(host);
    } else if (hk_str_is(path, "metadata.labels") || hk_str_is(path, "metadata.annotations")) {
        *ret = map_text(
            json_at(root, path.s[9] == 'l' ? "metadata.labels" : "metadata.annotations"), a);
    } else if (subscript(path, "metadata.labels", &key)) {
        *ret = json_str(json_get_str(json_at(root, "metadata.labels"), key), HK_STR(""));
    } else if (subscript(path, "metadata.annotations", &key)) {
        *ret = json_str(json_get_str(json_at(root, "metadata.annotations"), key), HK_STR(""));
    } else {
        return false;
    }
    return true;
}

static const struct json *container_named(const struct pod *p, const struct json *ref,
                                          const struct json *fallback)
{
    const struct hk_str name = json_str(json_get(ref, "containerName"), HK_STR(""));

    for (uint32_t i = 0; name.n > 0 && i < pod_ncontainers(p); i++) {
        if (hk_str_eq(pod_container_at(p, i)->name, name)) {
            return pod_container_at(p, i)->spec;
        }
    }
    return name.n > 0 ? NULL : fallback;
}

static int quantity_at(const struct json *v, struct quantity *ret, struct hk_err *err)
{
    if (json_is(v, JSON_INT)) {
        *ret = quantity_of(v->i, QUANTITY_DECIMAL_SI);
        return 0;
    }
    return quantity_parse(json_str(v, HK_STR("0")), ret, err);
}

/* The quotient, rounded up. */
static int64_t divide(struct quantity q, struct quantity divisor)
{
    __extension__ typedef __int128 wide;
    const wide by = divisor.nano > 0 ? divisor.nano : (wide)1000000000;

    return (int64_t)((q.nano + by - 1) / by);
}

int env_resource(const struct pod *p, const struct json *container, const struct json *ref,
                 struct hk_arena *a, struct hk_str *ret, struct hk_err *err)
{
    const struct hk_str path = json_str(json_get(ref, "resource"), HK_STR(""));
    const struct json *c = container_named(p, ref, container), *v;
    struct hk_str rest = path, list;
    struct quantity q, divisor;
    int rc;

    if (!hk_str_cut(&rest, '.', &list) || rest.s == NULL ||
        (!hk_str_is(list, "limits") && !hk_str_is(list, "requests"))) {
        return hk_fail(err, HK_EINVAL, "resource '%.*s': want limits.NAME or requests.NAME",
                       HK_FMT(path));
    }
    v = json_get_str(json_get_str(json_get(c, "resources"), list), rest);
    if (!v && hk_str_is(list, "limits")) {
        v = json_get_str(&p->host->allocatable, rest); /* no limit: the node's allocatable */
    }
    rc = quantity_at(v, &q, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "resource '%.*s'", HK_FMT(path));
    }
    rc = quantity_at(json_get(ref, "divisor"), &divisor, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "resource '%.*s'", HK_FMT(path));
    }
    *ret = hk_str(hk_arena_printf(a, "%lld", (long long)divide(q, divisor)));
    return 0;
}

/* ---- the environment ---- */

/* C identifiers only. Kubernetes accepts more names and skips the others. */
static bool name_fits(struct hk_str name)
{
    return name.n > 0 && !memchr(name.s, '=', name.n) && !memchr(name.s, '\0', name.n);
}

static int add_all(struct env *e, const struct pod *p, const struct json *from, const char *field,
                   enum api_kind_id kind, struct hk_arena *a, struct hk_err *err)
{
    static const char *const parts[] = {"data", "binaryData"};
    const struct json *source = json_get(from, field);
    const struct hk_str prefix = json_str(json_get(from, "prefix"), HK_STR(""));
    const struct hk_str name = json_str(json_get(source, "name"), HK_STR(""));
    const struct ref *r = ref_find(p, kind, name);

    if (!source) {
        return 0;
    }
    if (!r || !r->obj) {
        return json_bool(json_get(source, "optional"), false)
                   ? 0
                   : hk_fail(err, HK_ENOTFOUND, "%s \"%.*s\" not found", api_kind(kind)->singular,
                             HK_FMT(name));
    }
    for (size_t part = 0; part < HK_LEN(parts); part++) {
        const struct json *data = json_get(&r->obj->root, parts[part]);

        for (uint32_t i = 0; json_is(data, JSON_OBJECT) && i < data->len; i++) {
            const struct hk_str key = data->members[i].key;
            struct hk_str value;

            if (name_fits(key) && ref_data(r, key, a, &value)) {
                env_set(e, hk_str(hk_arena_printf(a, "%.*s%.*s", HK_FMT(prefix), HK_FMT(key))),
                        value);
            }
        }
    }
    return 0;
}

/* Returns 1 if an optional reference has no value. */
static int from_key(const struct pod *p, const struct json *ref, enum api_kind_id kind,
                    struct hk_arena *a, struct hk_str *ret, struct hk_err *err)
{
    const struct hk_str name = json_str(json_get(ref, "name"), HK_STR(""));
    const struct hk_str key = json_str(json_get(ref, "key"), HK_STR(""));
    const struct ref *r = ref_find(p, kind, name);

    if (r && ref_data(r, key, a, ret)) {
        return 0;
    }
    if (json_bool(json_get(ref, "optional"), false)) {
        return 1;
    }
    if (!r || !r->obj) {
        return hk_fail(err, HK_ENOTFOUND, "%s \"%.*s\" not found", api_kind(kind)->singular,
                       HK_FMT(name));
    }
    return hk_fail(err, HK_ENOTFOUND, "couldn't find key %.*s in %s %.*s/%.*s", HK_FMT(key),
                   api_kind(kind)->kind, HK_FMT(p->ns), HK_FMT(name));
}

static int value_from(const struct pod *p, const struct json *container, const struct json *from,
                      struct hk_arena *a, struct hk_str *ret, struct hk_err *err)
{
    const struct json *ref;

    if ((ref = json_get(from, "configMapKeyRef"))) {
        return from_key(p, ref, API_CONFIGMAP, a, ret, err);
    }
    if ((ref = json_get(from, "secretKeyRef"))) {
        return from_key(p, ref, API_SECRET, a, ret, err);
    }
    if ((ref = json_get(from, "resourceFieldRef"))) {
        return env_resource(p, container, ref, a, ret, err);
    }
    const struct hk_str path = json_str(json_at(from, "fieldRef.fieldPath"), HK_STR(""));
    if (!env_field(p, path, a, ret)) {
        return hk_fail(err, HK_EINVAL, "unsupported fieldPath: %.*s", HK_FMT(path));
    }
    return 0;
}

static int add_var(struct env *e, const struct pod *p, const struct json *container,
                   const struct json *var, struct hk_arena *a, struct hk_err *err)
{
    const struct json *from = json_get(var, "valueFrom");
    struct hk_str value;
    int rc = 0;

    if (json_is(from, JSON_OBJECT)) {
        rc = value_from(p, container, from, a, &value, err);
    } else {
        value = env_expand(e, json_str(json_get(var, "value"), HK_STR("")), a);
    }
    if (rc == 0) {
        env_set(e, json_str(json_get(var, "name"), HK_STR("")), value);
    }
    return HK_MIN(rc, 0);
}

/* $HOME if the container runs as the agent's user, else the home in /etc/passwd; NULL: not known.
 * Other user databases may block the loop. */
static const char *home_of(const struct pod *p, const struct json *container, struct hk_arena *a)
{
    const struct json *user = json_at(container, "securityContext.runAsUser");
    const int64_t uid =
        json_int(user ? user : pod_spec(p, "securityContext.runAsUser"), (int64_t)geteuid());
    const char *home = uid == (int64_t)geteuid() ? getenv("HOME") : NULL;
    FILE *users = home ? NULL : fopen("/etc/passwd", "re");

    for (const struct passwd *u; users && !home && (u = fgetpwent(users));) {
        home = u->pw_uid == uid ? hk_arena_str(a, hk_str(u->pw_dir)).s : NULL;
    }
    if (users) {
        fclose(users);
    }
    return home;
}

int env_make(const struct pod *p, const struct json *container, struct hk_arena *a, struct env *ret,
             struct hk_err *err)
{
    const struct json *from = json_get(container, "envFrom"), *env = json_get(container, "env");
    const char *home = env_has(ret, HK_STR("HOME")) ? NULL : home_of(p, container, a), *hostname;
    int rc = pod_hosts_own_name(p, a, &hostname, err);

    if (rc < 0) {
        return rc;
    }
    if (!env_has(ret, HK_STR("PATH"))) {
        env_set(ret, HK_STR("PATH"), HK_STR(PATH_DEFAULT));
    }
    env_set(ret, HK_STR("HOSTNAME"), hk_str(hostname));
    if (!env_has(ret, HK_STR("HOME"))) {
        env_set(ret, HK_STR("HOME"), hk_str(home ? home : "/"));
    }
    if (p->host->o.api_host) {
        env_set(ret, HK_STR("KUBERNETES_SERVICE_HOST"), hk_str(p->host->o.api_host));
        env_set(ret, HK_STR("KUBERNETES_SERVICE_PORT"), hk_str(p->host->o.api_port));
        env_set(ret, HK_STR("KUBERNETES_SERVICE_PORT_HTTPS"), hk_str(p->host->o.api_port));
    }
    for (uint32_t i = 0; json_item(from, i); i++) {
        const struct json *f = json_item(from, i);

        rc = add_all(ret, p, f, "configMapRef", API_CONFIGMAP, a, err);
        if (rc < 0) {
            return rc;
        }
        rc = add_all(ret, p, f, "secretRef", API_SECRET, a, err);
        if (rc < 0) {
            return rc;
        }
    }
    for (uint32_t i = 0; json_item(env, i); i++) {
        rc = add_var(ret, p, container, json_item(env, i), a, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

const char *const *env_block(const struct env *e, struct hk_arena *a)
{
    const char **block = hk_arena_array(a, e->vars.len + 1, sizeof(*block));

    for (uint32_t i = 0; i < e->vars.len; i++) {
        const struct env_var *v = &e->vars.at[i];

        block[i] = hk_arena_printf(a, "%.*s=%.*s", HK_FMT(v->name), HK_FMT(v->value));
    }
    block[e->vars.len] = NULL;
    return block;
}

const char *const *env_argv(const struct env *e, const struct json *container, struct hk_arena *a)
{
    static const char *const fields[] = {"command", "args"};
    const char **argv;
    uint32_t n = 0, all = 0;

    if (!json_item(json_get(container, "command"), 0)) {
        return NULL;
    }
    for (size_t f = 0; f < HK_LEN(fields); f++) {
        const struct json *list = json_get(container, fields[f]);

        all += json_is(list, JSON_ARRAY) ? list->len : 0;
    }
    argv = hk_arena_array(a, all + 1, sizeof(*argv));
    for (size_t f = 0; f < HK_LEN(fields); f++) {
        const struct json *list = json_get(container, fields[f]);

        for (uint32_t i = 0; json_item(list, i); i++) {
            argv[n++] = env_expand(e, json_str(json_item(list, i), HK_STR("")), a).s;
        }
    }
    argv[n] = NULL;
    return argv;
}
