// SPDX-License-Identifier: Apache-2.0
// Reads the built-in manifests part by part, fills in the options, and removes rights that the
// enabled webhooks do not need.
#include "install/install.h"

#include "admission/volcano.h"
#include "apiserver/crds.h"
#include "codec/yaml.h"
#include "install/hooks.h"
#include "install/texts.h"
#include "webhook/publish.h"

static const char *const part_names[] = {
    [INSTALL_NAMESPACE] = "namespace",
    [INSTALL_CRDS] = "crds",
    [INSTALL_ACCOUNTS] = "accounts",
    [INSTALL_RBAC] = "rbac",
    [INSTALL_AGENT] = "agent",
    [INSTALL_CONFIG] = "config",
    [INSTALL_SERVICES] = "services",
    [INSTALL_BUDGETS] = "budgets",
    [INSTALL_DEPLOYMENTS] = "deployments",
    [INSTALL_WEBHOOKS] = "webhooks",
    [INSTALL_QUEUES] = "queues",
};

/* Queues cannot be applied together with their CRD, and the scheduler creates them. Only clusters
 * with hekla nodes need the agent part. */
const uint32_t install_extra_parts = 1U << INSTALL_QUEUES | 1U << INSTALL_AGENT;

const char *install_part_name(enum install_part part)
{
    return part_names[part];
}

/* ---- placeholders ---- */

struct filling {
    const struct install_opts *o;
    struct hk_arena *a;
    const char *admissions; /* comma-separated paths */
};

static const char *write_admissions(const struct install_opts *o, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf list = {0};

    for (uint32_t i = 0; volcano_rules[i].path; i++) {
        if (!(o->disabled & 1U << i)) {
            hk_buf_addf(&list, "%s%s", list.len > 0 ? "," : "", volcano_rules[i].path);
        }
    }
    return hk_arena_strndup(a, hk_buf_str(&list).s, list.len);
}

static struct hk_str word_of(const struct filling *f, struct hk_str name)
{
    const struct {
        const char *name, *value;
    } words[] = {
        {"NAMESPACE", f->o->ns},
        {"IMAGE", f->o->image},
        {"ADMISSIONS", f->admissions},
    };

    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (hk_str_is(name, words[i].name)) {
            return hk_str(words[i].value);
        }
    }
    hk_assert(!"a word that nobody knows"); /* only built-in manifests come here */
    return name;
}

/* Replaces the placeholder in "--x=$NAME"; at most one per string. */
static struct json fill_str(const struct filling *f, const struct json *v)
{
    const struct hk_str text = {v->s, v->len};
    const char *at = memchr(text.s, '$', text.n);

    if (!at) {
        return *v;
    }
    const size_t head = (size_t)(at - text.s);
    const struct hk_str name = {at + 1, text.n - head - 1};
    if (hk_str_is(name, "REPLICAS")) {
        return json_make_int(f->o->replicas);
    }
    return json_make_str(
        hk_str(hk_arena_printf(f->a, "%.*s%.*s", (int)head, text.s, HK_FMT(word_of(f, name)))));
}

/* Appends the names of the enabled configurations. */
static void push_names(const struct filling *f, bool mutating, struct json *ret)
{
    for (uint32_t i = 0; volcano_rules[i].path; i++) {
        char name[WEBHOOK_PUBLISH_NAME];
        if (volcano_rules[i].mutates == mutating && !(f->o->disabled & 1U << i)) {
            webhook_publish_name(volcano_rules[i].path, name, sizeof(name));
            json_push(ret, f->a, json_make_str(hk_str(hk_arena_strndup(f->a, name, strlen(name)))));
        }
    }
}

static struct json install_fill_placeholders(const struct filling *f, const struct json *v)
{
    struct json out;

    switch (v->type) {
    case JSON_STRING:
        return fill_str(f, v);
    case JSON_ARRAY:
        out = json_make_array();
        for (uint32_t i = 0; i < v->len; i++) {
            const struct hk_str word = json_str(&v->items[i], HK_STR(""));
            if (hk_str_is(word, "$MUTATING") || hk_str_is(word, "$VALIDATING")) {
                push_names(f, word.s[1] == 'M', &out);
            } else {
                json_push(&out, f->a, install_fill_placeholders(f, &v->items[i]));
            }
        }
        return out;
    case JSON_OBJECT:
        out = json_make_object();
        for (uint32_t i = 0; i < v->len; i++) {
            json_put(&out, f->a, v->members[i].key,
                     install_fill_placeholders(f, &v->members[i].value));
        }
        return out;
    default:
        return *v;
    }
}

/* ---- adjustments ---- */

static bool is_registered(const struct install_opts *o, const char *path)
{
    const struct volcano_rule *r = volcano_rule_find(hk_str(path));

    return !(o->disabled & 1U << (r - volcano_rules));
}

/* Drops a rule with an empty resourceNames, which would allow all names, and a rule for namespaces,
 * which only /podgroups/mutate needs. */
static bool is_needed(const struct install_opts *o, const struct json *rule)
{
    const struct json *names = json_get(rule, "resourceNames");
    const struct json *first = json_item(json_get(rule, "resources"), 0);

    if (names && names->len == 0) {
        return false;
    }
    return !hk_str_is(json_str(first, HK_STR("")), "namespaces") ||
           is_registered(o, "/podgroups/mutate");
}

static void drop_unused_rights(const struct filling *f, struct json *role)
{
    const struct json *rules = json_get(role, "rules");
    struct json kept = json_make_array();

    for (uint32_t i = 0; i < rules->len; i++) {
        if (is_needed(f->o, &rules->items[i])) {
            json_push(&kept, f->a, rules->items[i]);
        }
    }
    json_set(role, f->a, "rules", kept);
}

static void install_set_data_if_given(const struct filling *f, struct json *map, const char *key,
                                      const char *text)
{
    struct json data = json_make_object();

    if (text) {
        json_set_cstr(&data, f->a, key, text);
        json_set(map, f->a, "data", data);
    }
}

static void install_adjust_object(const struct filling *f, struct json *doc)
{
    const struct hk_str kind = json_str_field(doc, "kind");
    const struct hk_str name = json_str_at(doc, "metadata.name");

    if (hk_str_is(kind, "ClusterRole") && hk_str_is(name, "volcano-admission")) {
        drop_unused_rights(f, doc);
    } else if (hk_str_is(name, "volcano-scheduler-configmap")) {
        install_set_data_if_given(f, doc, "volcano-scheduler.conf", f->o->scheduler_conf);
    } else if (hk_str_is(name, "volcano-admission-configmap")) {
        install_set_data_if_given(f, doc, "volcano-admission.conf", f->o->admission_conf);
    }
}

/* ---- parts ---- */

static struct yaml_docs install_parse_yaml(const char *text, size_t len, struct hk_arena *a)
{
    struct yaml_docs docs = {0};
    const int rc = yaml_parse((struct hk_str){text, len}, 0, a, &docs, NULL);

    hk_assert(rc == 0); /* built-in manifests are valid */
    return docs;
}

static void add_crds(struct hk_arena *a, struct json *ret)
{
    for (const struct crd_file *c = crd_files; c->name; c++) {
        json_push(ret, a, install_parse_yaml(c->text, c->len, a).at[0]);
    }
}

static void add_text(const struct filling *f, const char *name, struct json *ret)
{
    const struct install_text *t = install_texts;

    while (strcmp(t->name, name) != 0) {
        t++;
    }
    const struct yaml_docs docs = install_parse_yaml(t->text, t->len, f->a);
    for (uint32_t i = 0; i < docs.len; i++) {
        struct json *doc = json_push(ret, f->a, install_fill_placeholders(f, &docs.at[i]));
        install_adjust_object(f, doc);
    }
}

void install_objects(const struct install_opts *o, struct hk_arena *a, struct json *ret)
{
    const struct filling f = {.o = o, .a = a, .admissions = write_admissions(o, a)};

    for (unsigned part = 0; part < INSTALL_NPARTS; part++) {
        if (!(o->parts & 1U << part)) {
            continue;
        }
        if (part == INSTALL_CRDS) {
            add_crds(a, ret);
        } else if (part == INSTALL_WEBHOOKS) {
            install_hooks(o, a, ret);
        } else {
            add_text(&f, part_names[part], ret);
        }
    }
}
