// SPDX-License-Identifier: Apache-2.0
// Reads the scheduler configuration: YAML in, actions and plugins with their options out. What
// Volcano refuses is an error here, with its line; what Volcano silently tolerates is a warning,
// with its line. Options are parsed by the tables of plugins and actions, so no other file reads
// configuration text.

#include "scheduler/conf.h"

#include "base/file.h"
#include "codec/timefmt.h"
#include "codec/yaml.h"

enum {
    CONF_MAX_BYTES = 1 << 20,
    CONF_MAX_ENTRIES = 256, /* actions, plugins */
};

const char conf_default_text[] = "actions: \"enqueue, allocate, backfill\"\n"
                                 "tiers:\n"
                                 "- plugins:\n"
                                 "  - name: priority\n"
                                 "  - name: gang\n"
                                 "  - name: conformance\n"
                                 "- plugins:\n"
                                 "  - name: overcommit\n"
                                 "  - name: drf\n"
                                 "  - name: predicates\n"
                                 "  - name: proportion\n"
                                 "  - name: nodeorder\n";

/* Plugins that a Volcano configuration may name; some are not implemented here. */
static const char *const upstream_plugins[] = {
    "binpack",     "capacity",      "cdp",
    "conformance", "deviceshare",   "drf",
    "extender",    "gang",          "network-topology-aware",
    "nodegroup",   "nodeorder",     "numa-aware",
    "overcommit",  "pdb",           "predicates",
    "priority",    "proportion",    "rescheduling",
    "sla",         "resourcequota", "resource-strategy-fit",
    "tdm",         "task-topology", "usage",
};

/* Switches of extension points that nothing calls, neither upstream nor here. */
static const char *const idle_switches[] = {
    "enabledClusterOrder",
    "enableTargetJob",
    "enableReservedNodes",
};

static bool scheduler_conf_list_has_name(struct hk_str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (hk_str_is(name, list[i])) {
            return true;
        }
    }
    return false;
}

static void warn(struct conf *c, uint32_t line, const char *fmt, ...) HK_PRINTF(3, 4);

static void warn(struct conf *c, uint32_t line, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    hk_vec_push(&c->warnings,
                (struct conf_warning){line, hk_arena_strndup(&c->mem, text.data, text.len)});
}

/* Gets a member, which must be absent, null (both return NULL) or of the type. */
static int scheduler_conf_typed_member(const struct json *obj, const char *key, enum json_type type,
                                       const struct json **ret, struct hk_err *err)
{
    const struct json *v = json_get(obj, key);

    *ret = NULL;
    if (!v || v->type == JSON_NULL) {
        return 0;
    }
    if (v->type != type) {
        return hk_fail(err, HK_EINVAL, "line %u: '%s' is of type %s, want %s", v->line, key,
                       json_type_name(v->type), json_type_name(type));
    }
    *ret = v;
    return 0;
}

/* Reads what plugin and action entries have in common; *ret_args may become NULL. */
static int name_and_arguments(const struct json *entry, struct hk_str *ret_name,
                              const struct json **ret_args, struct hk_err *err)
{
    const struct json *name;
    const int rc = scheduler_conf_typed_member(entry, "name", JSON_STRING, &name, err);

    if (rc < 0) {
        return rc;
    }
    *ret_name = json_str(name, HK_STR(""));
    return scheduler_conf_typed_member(entry, "arguments", JSON_OBJECT, ret_args, err);
}

/* Gets element i of a list of objects; *ret is NULL when the element is empty. */
static int object_item(const struct json *list, uint32_t i, const char *what,
                       const struct json **ret, struct hk_err *err)
{
    const struct json *v = json_item(list, i);

    *ret = v->type == JSON_NULL ? NULL : v;
    if (*ret && v->type != JSON_OBJECT) {
        return hk_fail(err, HK_EINVAL, "line %u: %s is of type %s, want object", v->line, what,
                       json_type_name(v->type));
    }
    return 0;
}

/* ---- options ---- */

/* Accepts what Go's strconv.ParseBool accepts. */
static bool parse_bool(struct hk_str s, bool *ret)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};

    if (scheduler_conf_list_has_name(s, yes, HK_LEN(yes))) {
        *ret = true;
    } else if (scheduler_conf_list_has_name(s, no, HK_LEN(no))) {
        *ret = false;
    } else {
        return false;
    }
    return true;
}

static bool read_float(const struct json *v, double *ret)
{
    if (v->type == JSON_INT) {
        *ret = (double)v->i;
    } else if (v->type == JSON_DOUBLE) {
        *ret = v->d;
    } else {
        return false;
    }
    return true;
}

static bool scheduler_conf_read_bool(const struct json *v, bool *ret)
{
    if (v->type == JSON_BOOL) {
        *ret = v->b;
        return true;
    }
    return v->type == JSON_STRING && parse_bool(json_str(v, HK_STR("")), ret);
}

/* Accepts the types that Volcano accepts. False: wrong type, the field keeps its value. */
static bool option_read(const struct opt *o, const struct json *v, void *state)
{
    void *field = (char *)state + o->offset;

    switch (o->type) {
    case OPT_INT:
        if (v->type == JSON_INT) {
            *(int64_t *)field = v->i;
        }
        return v->type == JSON_INT;
    case OPT_FLOAT:
        return read_float(v, field);
    case OPT_BOOL:
        return scheduler_conf_read_bool(v, field);
    case OPT_STR:
        if (v->type == JSON_STRING) {
            *(struct hk_str *)field = json_str(v, HK_STR(""));
        }
        return v->type == JSON_STRING;
    case OPT_DURATION:
        return v->type == JSON_STRING && duration_parse(json_str(v, HK_STR("")), field, NULL) == 0;
    case OPT_PAIRS:
    case OPT_IGNORED:
        break;
    }
    return true;
}

/* Sets the default from the table, which is YAML text. A default that does not parse is a bug. */
static void option_default(const struct opt *o, void *state)
{
    struct json v = json_make_str(hk_str(o->dflt));
    char *end = NULL;

    if (!o->dflt) {
        return;
    }
    if (o->type == OPT_INT) {
        v.type = JSON_INT;
        hk_assert(hk_str_int(hk_str(o->dflt), &v.i));
    } else if (o->type == OPT_FLOAT) {
        v = json_make_double(strtod(o->dflt, &end));
        hk_assert(end && *end == '\0');
    }
    hk_assert(option_read(o, &v, state));
}

static const char *option_want(enum opt_type type)
{
    static const char *const names[] = {
        [OPT_INT] = "integer",
        [OPT_FLOAT] = "number",
        [OPT_BOOL] = "boolean",
        [OPT_STR] = "string",
        [OPT_PAIRS] = "integer",
        [OPT_IGNORED] = "anything",
        [OPT_DURATION] = "duration such as 1h30m",
    };

    return names[type];
}

/* Finds the option of a key. A full name wins over a prefix. */
static const struct opt *option_find(const struct opt *opts, uint32_t n, struct hk_str key)
{
    const struct opt *prefix = NULL;

    for (uint32_t i = 0; i < n; i++) {
        if (hk_str_is(key, opts[i].key)) {
            return &opts[i];
        }
        if (opts[i].type == OPT_PAIRS && hk_str_starts(key, opts[i].key)) {
            prefix = &opts[i];
        }
    }
    return prefix;
}

/* Adds one pair. The first call for an option allocates room for all arguments. */
static void pairs_add(struct conf *c, const struct opt *o, const struct json *args,
                      const struct json_member *arg, void *state)
{
    struct opt_pairs *pairs = (struct opt_pairs *)((char *)state + o->offset);
    struct opt_pair *at = (struct opt_pair *)pairs->at;

    if (!at) {
        at = hk_arena_array(&c->mem, args->len, sizeof(*at));
        pairs->at = at;
    }
    const size_t skip = strlen(o->key);
    at[pairs->n++] = (struct opt_pair){{arg->key.s + skip, arg->key.n - skip}, arg->value.i};
}

/* Whether a weight is too large: weights are multiplied with scores and summed in 64 bits. */
static bool is_beyond_range(const struct opt *o, const struct json *v)
{
    return (o->type == OPT_INT || o->type == OPT_PAIRS) && v->type == JSON_INT &&
           (v->i < INT32_MIN || v->i > INT32_MAX);
}

/* Fills the options from args, which may be NULL; kind and name are for the warnings. */
static void options_read(struct conf *c, const struct opt *opts, uint32_t nopt,
                         const struct json *args, void *state, const char *kind, const char *name)
{
    for (uint32_t i = 0; i < nopt; i++) {
        option_default(&opts[i], state);
    }
    for (uint32_t i = 0; args && i < args->len; i++) {
        const struct json_member *arg = &args->members[i];
        const struct opt *o = option_find(opts, nopt, arg->key);
        if (!o) {
            warn(c, arg->value.line, "%s '%s' has no argument '%.*s'", kind, name,
                 HK_FMT(arg->key));
        } else if (is_beyond_range(o, &arg->value)) {
            warn(c, arg->value.line,
                 "argument '%.*s' of %s '%s' is %lld, want an integer from %d to %d: ignored",
                 HK_FMT(arg->key), kind, name, (long long)arg->value.i, INT32_MIN, INT32_MAX);
        } else if (o->type == OPT_PAIRS && arg->value.type == JSON_INT) {
            pairs_add(c, o, args, arg, state);
        } else if (o->type == OPT_PAIRS || !option_read(o, &arg->value, state)) {
            warn(c, arg->value.line, "argument '%.*s' of %s '%s' is of type %s, want %s: ignored",
                 HK_FMT(arg->key), kind, name, json_type_name(arg->value.type),
                 option_want(o->type));
        }
    }
}

/* ---- plugins ---- */

/* False when the key is not a switch. */
static bool switch_bits(struct hk_str key, uint64_t *ret)
{
    *ret = 0;
    for (int k = 0; k < HOOK_N; k++) {
        const char *sw = hook_switch((enum hook_kind)k);
        if (sw && hk_str_is(key, sw)) {
            *ret |= 1ULL << k;
        }
    }
    return *ret != 0 || scheduler_conf_list_has_name(key, idle_switches, HK_LEN(idle_switches));
}

static int plugin_switch(struct conf *c, struct conf_plugin *p, const struct json_member *m,
                         struct hk_err *err)
{
    const bool hierarchy = hk_str_is(m->key, "enableHierarchy");
    uint64_t bits;

    if (!switch_bits(m->key, &bits) && !hierarchy) {
        warn(c, m->value.line,
             "plugin '%.*s' has no setting '%.*s'; its options belong under "
             "'arguments'",
             HK_FMT(p->name), HK_FMT(m->key));
        return 0;
    }
    if (m->value.type == JSON_NULL) {
        return 0;
    }
    if (m->value.type != JSON_BOOL) {
        return hk_fail(err, HK_EINVAL, "line %u: '%.*s' is of type %s, want boolean", m->value.line,
                       HK_FMT(m->key), json_type_name(m->value.type));
    }
    if (hierarchy) {
        p->hierarchy = m->value.b;
    } else if (!m->value.b) {
        p->off |= bits;
    }
    return 0;
}

static void plugin_resolve(struct conf *c, struct conf_plugin *p, const struct json *args)
{
    p->p = plugin_find(p->name);
    if (p->p) {
        p->options = hk_arena_zalloc(&c->mem, p->p->state_size);
        options_read(c, p->p->opts, p->p->nopt, args, p->options, "plugin", p->p->name);
    } else if (scheduler_conf_list_has_name(p->name, upstream_plugins, HK_LEN(upstream_plugins))) {
        warn(c, p->line, "plugin '%.*s' is not available in this build", HK_FMT(p->name));
    } else {
        warn(c, p->line, "unknown plugin '%.*s'", HK_FMT(p->name));
    }
}

static int read_plugin(struct conf *c, const struct json *entry, struct conf_plugin *p,
                       struct hk_err *err)
{
    const struct json *args;
    int rc;

    rc = name_and_arguments(entry, &p->name, &args, err);
    if (rc < 0) {
        return rc;
    }
    p->line = entry->line;
    for (uint32_t i = 0; i < entry->len; i++) {
        const struct json_member *m = &entry->members[i];
        if (hk_str_is(m->key, "name") || hk_str_is(m->key, "arguments")) {
            continue;
        }
        rc = plugin_switch(c, p, m, err);
        if (rc < 0) {
            return rc;
        }
    }
    plugin_resolve(c, p, args);
    return 0;
}

/* Volcano checks each tier separately: drf and proportion may be in different tiers. */
static int check_conflict(const struct conf *c, uint32_t first, struct hk_err *err)
{
    const struct conf_plugin *drf = NULL, *proportion = NULL;

    for (uint32_t i = first; i < c->plugins.len; i++) {
        const struct conf_plugin *p = &c->plugins.at[i];
        if (hk_str_is(p->name, "drf") && p->hierarchy) {
            drf = p;
        } else if (hk_str_is(p->name, "proportion")) {
            proportion = p;
        }
    }
    if (drf && proportion) {
        return hk_fail(err, HK_EINVAL,
                       "line %u: proportion and drf with hierarchy enabled conflicts", drf->line);
    }
    return 0;
}

static int read_tier(struct conf *c, const struct json *tier, struct hk_err *err)
{
    const uint32_t first = c->plugins.len;
    const struct json *list, *entry;
    int rc;

    rc = scheduler_conf_typed_member(tier, "plugins", JSON_ARRAY, &list, err);
    if (rc < 0) {
        return rc;
    }
    for (uint32_t i = 0; list && i < list->len; i++) {
        struct conf_plugin p = {.tier = c->ntier};
        rc = object_item(list, i, "plugin", &entry, err);
        if (rc == 0 && entry) {
            rc = read_plugin(c, entry, &p, err);
        }
        if (rc < 0) {
            return rc;
        }
        if (entry) {
            hk_vec_push(&c->plugins, p);
        }
        if (c->plugins.len > CONF_MAX_ENTRIES) {
            return hk_fail(err, HK_ELIMIT, "line %u: more than %d plugins", p.line,
                           CONF_MAX_ENTRIES);
        }
    }
    c->ntier++;
    return check_conflict(c, first, err);
}

/* Volcano keeps functions by plugin name: if a plugin is listed twice, the later arguments apply to
 * both entries, but enableHierarchy comes from the first. */
static void join_twins(struct conf *c)
{
    for (uint32_t i = 0; i < c->plugins.len; i++) {
        for (uint32_t k = i + 1; k < c->plugins.len; k++) {
            struct conf_plugin *a = &c->plugins.at[i], *b = &c->plugins.at[k];
            if (a->p && a->p == b->p) {
                a->options = b->options;
                b->hierarchy = a->hierarchy;
            }
        }
    }
}

static int read_tiers(struct conf *c, const struct json *root, struct hk_err *err)
{
    const struct json *list, *tier;
    int rc;

    rc = scheduler_conf_typed_member(root, "tiers", JSON_ARRAY, &list, err);
    if (rc < 0) {
        return rc;
    }
    for (uint32_t i = 0; list && i < list->len; i++) {
        rc = object_item(list, i, "tier", &tier, err);
        if (rc < 0) {
            return rc;
        }
        rc = read_tier(c, tier, err);
        if (rc < 0) {
            return rc;
        }
    }
    join_twins(c);
    return 0;
}

/* ---- actions ---- */

/* Checks a section and warns if nothing reads it. */
static int check_section(struct conf *c, const struct json *section, struct hk_err *err)
{
    const struct json *args;
    struct hk_str name;
    const int rc = name_and_arguments(section, &name, &args, err);

    if (rc == 0 && !action_find(name)) {
        warn(c, section->line, "configuration of unknown action '%.*s'", HK_FMT(name));
    }
    return rc;
}

static int check_sections(struct conf *c, const struct json *list, struct hk_err *err)
{
    const struct json *section;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && list && i < list->len; i++) {
        rc = object_item(list, i, "configuration", &section, err);
        if (rc == 0 && section) {
            rc = check_section(c, section, err);
        }
    }
    return rc;
}

/* The arguments of the first section with that name, or NULL. */
static const struct json *section_args(const struct json *list, const char *action)
{
    for (uint32_t i = 0; list && i < list->len; i++) {
        const struct json *entry = json_item(list, i);
        if (hk_str_is(json_str(json_get(entry, "name"), HK_STR("")), action)) {
            const struct json *args = json_get(entry, "arguments");
            return json_is(args, JSON_OBJECT) ? args : NULL;
        }
    }
    return NULL;
}

static void add_action(struct conf *c, const struct action *a, const struct json *sections)
{
    void *args = NULL;

    for (uint32_t i = 0; i < c->actions.len && !args; i++) {
        args = c->actions.at[i].a == a ? c->actions.at[i].args : NULL;
    }
    if (!args) {
        args = hk_arena_zalloc(&c->mem, a->args_size);
        options_read(c, a->opts, a->nopt, section_args(sections, a->name), args, "action", a->name);
    }
    hk_vec_push(&c->actions, (struct conf_action){a, args});
    c->has_enqueue |= strcmp(a->name, "enqueue") == 0;
}

static int read_actions(struct conf *c, const struct json *root, struct hk_err *err)
{
    const struct json *names, *sections;
    struct hk_str rest, part;
    int rc;

    rc = scheduler_conf_typed_member(root, "actions", JSON_STRING, &names, err);
    if (rc < 0) {
        return rc;
    }
    if (!names) {
        return hk_fail(err, HK_EINVAL,
                       "line %u: no 'actions', want names such as "
                       "\"enqueue, allocate, backfill\"",
                       HK_MAX(root->line, 1));
    }
    rc = scheduler_conf_typed_member(root, "configurations", JSON_ARRAY, &sections, err);
    if (rc == 0) {
        rc = check_sections(c, sections, err);
    }
    if (rc < 0) {
        return rc;
    }
    rest = json_str(names, HK_STR(""));
    if (rest.n == 0) {
        return hk_fail(err, HK_EINVAL, "line %u: 'actions' is empty", names->line);
    }
    while (hk_str_cut(&rest, ',', &part)) {
        part = hk_str_trim(part);
        const struct action *a = action_find(part);
        if (!a) {
            return hk_fail(err, HK_EINVAL, "line %u: unknown action '%.*s'", names->line,
                           HK_FMT(part));
        }
        if (c->actions.len == CONF_MAX_ENTRIES) {
            return hk_fail(err, HK_ELIMIT, "line %u: more than %d actions", names->line,
                           CONF_MAX_ENTRIES);
        }
        add_action(c, a, sections);
    }
    return 0;
}

/* Checks the metrics section, which is unused here: it must be a map of strings. */
static int check_metrics(const struct json *root, struct hk_err *err)
{
    const struct json *metrics;
    const int rc = scheduler_conf_typed_member(root, "metrics", JSON_OBJECT, &metrics, err);

    for (uint32_t i = 0; rc == 0 && metrics && i < metrics->len; i++) {
        const struct json *v = &metrics->members[i].value;
        if (v->type == JSON_ARRAY || v->type == JSON_OBJECT) {
            return hk_fail(err, HK_EINVAL, "line %u: metrics: '%.*s' is of type %s, want string",
                           v->line, HK_FMT(metrics->members[i].key), json_type_name(v->type));
        }
    }
    return rc;
}

/* ---- the file ---- */

static void warn_unknown(struct conf *c, const struct json *root)
{
    static const char *const known[] = {"actions", "tiers", "configurations", "metrics"};

    for (uint32_t i = 0; i < root->len; i++) {
        bool ok = false;
        for (uint32_t k = 0; k < HK_LEN(known); k++) {
            ok |= hk_str_is(root->members[i].key, known[k]);
        }
        if (!ok) {
            warn(c, root->members[i].value.line, "unknown key '%.*s' is ignored",
                 HK_FMT(root->members[i].key));
        }
    }
}

static int conf_read(struct conf *c, struct hk_err *err)
{
    static const struct json nothing = {.type = JSON_OBJECT};
    struct yaml_docs docs = {0};
    const struct json *root;
    int rc;

    rc = yaml_parse(c->text, 0, &c->mem, &docs, err);
    if (rc < 0) {
        return rc;
    }
    root = docs.len > 0 ? &docs.at[0] : &nothing;
    if (docs.len > 1) {
        warn(c, docs.at[1].line, "only the first document is read");
    }
    if (root->type != JSON_OBJECT) {
        return hk_fail(err, HK_EINVAL, "line %u: the configuration is of type %s, want object",
                       root->line, json_type_name(root->type));
    }
    warn_unknown(c, root);
    rc = read_actions(c, root, err);
    if (rc == 0) {
        rc = read_tiers(c, root, err);
    }
    return rc == 0 ? check_metrics(root, err) : rc;
}

static void conf_freep(struct conf **c)
{
    conf_free(*c);
}

int conf_parse(struct hk_str text, struct conf **ret, struct hk_err *err)
{
    HK_AUTO(conf_freep) struct conf *c = hk_zalloc(sizeof(*c));
    int rc;

    c->text = hk_arena_str(&c->mem, text);
    rc = conf_read(c, err);
    if (rc < 0) {
        return rc;
    }
    *ret = hk_take(c);
    return 0;
}

void conf_free(struct conf *c)
{
    if (!c) {
        return;
    }
    hk_vec_fini(&c->actions);
    hk_vec_fini(&c->plugins);
    hk_vec_fini(&c->warnings);
    hk_arena_fini(&c->mem);
    hk_free(c);
}

int conf_file_reload(struct conf_file *f, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct conf *fresh = NULL;
    uint64_t stamp;
    int rc;

    if (!f->path) {
        return 0;
    }
    rc = hk_read_file(f->path, CONF_MAX_BYTES, &text, err);
    if (rc < 0) {
        return rc;
    }
    stamp = hk_hash(hk_buf_str(&text).s, text.len, 0);
    if (stamp == f->stamp) {
        return 0;
    }
    f->stamp = stamp; /* also if invalid: report it only once */
    rc = conf_parse(hk_buf_str(&text), &fresh, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "scheduler configuration '%s'", f->path);
    }
    conf_free(f->now);
    f->now = fresh;
    return 1;
}

int conf_file_open(struct conf_file *f, const char *path, struct hk_err *err)
{
    struct hk_err why = {0};
    int rc;

    *f = (struct conf_file){.path = path ? hk_strdup(path) : NULL};
    rc = conf_parse(hk_str(conf_default_text), &f->now, &why);
    hk_assert(rc == 0);
    rc = conf_file_reload(f, err);
    return HK_MIN(rc, 0); /* 1 means that the file was read */
}

void conf_file_fini(struct conf_file *f)
{
    conf_free(f->now);
    hk_free(f->path);
    *f = (struct conf_file){0};
}
