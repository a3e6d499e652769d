// SPDX-License-Identifier: Apache-2.0
// Builds the bodies of API requests.
#include "cli/make_priv.h"

#include "codec/quantity.h"
#include "codec/yaml.h"

#include <ctype.h>

#define QUANTITY_WANTED                                                                            \
    "quantities must match the regular expression "                                                \
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

struct json make_one(struct hk_arena *a, struct json item)
{
    struct json list = json_make_array();

    json_push(&list, a, item);
    return list;
}

static const char *version_of(const struct api_kind *kind, struct hk_arena *a)
{
    return hk_arena_printf(a, "%s/%s", kind->group, kind->version);
}

struct json make_object(enum api_kind_id id, struct json meta, struct hk_arena *a)
{
    const struct api_kind *kind = api_kind(id);
    struct json obj = json_make_object();

    json_set_cstr(&obj, a, "apiVersion", version_of(kind, a));
    json_set_cstr(&obj, a, "kind", kind->kind);
    json_set(&obj, a, "metadata", meta);
    return obj;
}

/* ---- resources ---- */

static int put_resource(struct json *list, struct hk_str pair, struct hk_arena *a,
                        struct hk_err *err)
{
    struct hk_str value = pair, name;
    struct quantity q;

    hk_str_cut(&value, '=', &name);
    if (!value.s || memchr(value.s, '=', value.n)) {
        return hk_fail(err, HK_EINVAL, "invalid argument syntax %.*s, expected <resource>=<value>",
                       HK_FMT(pair));
    }
    if (quantity_parse(value, &q, NULL) < 0) {
        return hk_fail(err, HK_EINVAL, QUANTITY_WANTED);
    }
    json_put(list, a, name, json_make_quantity(q, a));
    return 0;
}

int make_resources(const char *text, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    struct json list = json_make_object();
    struct hk_str rest = hk_str(text), pair;

    while (text[0] != '\0' && hk_str_cut(&rest, ',', &pair)) {
        const int rc = put_resource(&list, pair, a, err);
        if (rc < 0) {
            return rc;
        }
    }
    *ret = list;
    return 0;
}

/* ---- words ---- */

static bool make_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Reads from after a quote to after the closing one. Single quotes keep backslashes. */
static const char *read_quoted(const char *p, struct hk_buf *word)
{
    const char quote = *p++;

    while (*p != '\0' && *p != quote) {
        if (*p == '\\' && quote == '"' && p[1] != '\0') {
            p++;
        }
        hk_buf_addc(word, *p++);
    }
    return *p == quote ? p + 1 : NULL;
}

static int make_read_shell_word(const char **at, struct hk_buf *word, struct hk_err *err)
{
    const char *p = *at;

    while (*p != '\0' && !make_is_blank(*p)) {
        if (*p == '"' || *p == '\'') {
            p = read_quoted(p, word);
            if (!p) {
                return hk_fail(err, HK_EINVAL, "EOF found when expecting closing quote");
            }
        } else if (*p == '\\' && p[1] == '\0') {
            return hk_fail(err, HK_EINVAL, "EOF found after escape character");
        } else {
            p += *p == '\\';
            hk_buf_addc(word, *p++);
        }
    }
    *at = p;
    return 0;
}

int make_words(const char *text, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf word = {0};
    struct json list = json_make_array();
    const char *p = text;

    while (*p != '\0') {
        if (make_is_blank(*p)) {
            p++;
            continue;
        }
        if (*p == '#') {
            p += strcspn(p, "\n");
            continue;
        }
        hk_buf_clear(&word);
        const int rc = make_read_shell_word(&p, &word, err);
        if (rc < 0) {
            return rc;
        }
        json_push(&list, a, json_make_str_copy(hk_buf_str(&word), a));
    }
    *ret = list;
    return 0;
}

/* ---- jobs ---- */

static struct json make_template(const struct make_job *j, struct json container,
                                 struct hk_arena *a)
{
    struct json labels = json_make_object(), meta = json_make_object();
    struct json spec = json_make_object(), template = json_make_object();

    json_set_cstr(&labels, a, "job.volcano.sh", j->name);
    json_set_cstr(&meta, a, "name", j->name);
    json_set(&meta, a, "labels", labels);
    json_set_cstr(&spec, a, "restartPolicy", "Never");
    json_set(&spec, a, "containers", make_one(a, container));
    json_set(&template, a, "metadata", meta);
    json_set(&template, a, "spec", spec);
    return template;
}

static int make_container(const struct make_job *j, struct hk_arena *a, struct json *ret,
                          struct hk_err *err)
{
    struct json c = json_make_object(), resources = json_make_object(), list, words;
    int rc = make_resources(j->requests, a, &list, err);

    if (rc < 0) {
        return rc;
    }
    json_set(&resources, a, "requests", list);
    rc = make_resources(j->limits, a, &list, err);
    if (rc < 0) {
        return rc;
    }
    json_set(&resources, a, "limits", list);
    rc = make_words(j->command, a, &words, err);
    if (rc < 0) {
        return rc;
    }
    json_set_cstr(&c, a, "name", j->name);
    json_set_cstr(&c, a, "image", j->image);
    json_set_cstr(&c, a, "imagePullPolicy", "IfNotPresent");
    json_set(&c, a, "resources", resources);
    if (words.len > 0) {
        json_set(&c, a, "command", words);
    }
    *ret = c;
    return 0;
}

int make_job(const struct make_job *j, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    struct json meta = json_make_object(), task = json_make_object(), spec = json_make_object();
    struct json container;
    const int rc = make_container(j, a, &container, err);

    if (rc < 0) {
        return rc;
    }
    json_set_cstr(&meta, a, "name", j->name);
    json_set_cstr(&meta, a, "namespace", j->ns);
    json_set_int(&task, a, "replicas", j->replicas);
    json_set(&task, a, "template", make_template(j, container, a));
    json_set_int(&spec, a, "minAvailable", j->min);
    json_set_cstr(&spec, a, "schedulerName", j->scheduler);
    json_set(&spec, a, "tasks", make_one(a, task));
    *ret = make_object(API_JOB, meta, a);
    json_set(ret, a, "spec", spec);
    return 0;
}

int make_from_text(enum api_kind_id id, struct hk_str text, struct hk_arena *a, struct json *ret,
                   struct hk_err *err)
{
    const struct api_kind *kind = api_kind(id);
    struct yaml_docs docs = {0};
    const int rc = yaml_parse(text, 0, a, &docs, err);

    if (rc < 0) {
        return rc;
    }
    if (docs.len == 0 || docs.at[0].type != JSON_OBJECT) {
        return hk_fail(err, HK_EINVAL, "want a %s, have %s", kind->kind,
                       docs.len == 0 ? "nothing" : json_type_name(docs.at[0].type));
    }
    *ret = docs.at[0];
    json_set_cstr(ret, a, "apiVersion", version_of(kind, a));
    json_set_cstr(ret, a, "kind", kind->kind);
    return 0;
}

/* ---- queues and commands ---- */

struct json make_queue(const char *name, int64_t weight, const char *state, struct hk_arena *a)
{
    struct json meta = json_make_object(), spec = json_make_object(), status = json_make_object();

    json_set_cstr(&meta, a, "name", name);
    json_set_int(&spec, a, "weight", weight);
    json_set_cstr(&status, a, "state", state);
    struct json obj = make_object(API_QUEUE, meta, a);
    json_set(&obj, a, "spec", spec);
    json_set(&obj, a, "status", status);
    return obj;
}

struct json make_weight(int64_t weight, struct hk_arena *a)
{
    struct json spec = json_make_object(), patch = json_make_object();

    json_set_int(&spec, a, "weight", weight);
    json_set(&patch, a, "spec", spec);
    return patch;
}

static struct json make_reference(const struct api_object *to, struct hk_arena *a)
{
    struct json r = json_make_object();

    json_set_cstr(&r, a, "apiVersion", version_of(to->kind, a));
    json_set_cstr(&r, a, "kind", to->kind->kind);
    json_set_str(&r, a, "name", to->name);
    json_set_str(&r, a, "uid", to->uid);
    json_set_bool(&r, a, "controller", true);
    json_set_bool(&r, a, "blockOwnerDeletion", true);
    return r;
}

struct json make_command(const struct api_object *target, const char *ns, const char *action,
                         struct hk_arena *a)
{
    char *prefix = hk_arena_printf(a, "%.*s-%s-", HK_FMT(target->name), action);
    const struct json reference = make_reference(target, a);
    struct json meta = json_make_object();

    for (char *p = prefix + target->name.n; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
    }
    json_set_cstr(&meta, a, "generateName", prefix);
    json_set_cstr(&meta, a, "namespace", ns);
    json_set(&meta, a, "ownerReferences", make_one(a, reference));
    struct json obj = make_object(API_COMMAND, meta, a);
    json_set_cstr(&obj, a, "action", action);
    json_set(&obj, a, "target", reference);
    return obj;
}
