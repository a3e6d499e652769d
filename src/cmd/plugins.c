// SPDX-License-Identifier: Apache-2.0
// hekla plugins: lists what this build offers, from the tables that also parse the configuration.
#include "cli/verb.h"
#include "codec/json.h"
#include "scheduler/hooks.h"

#include <unistd.h>

static const char *const type_names[] = {
    [OPT_INT] = "integer",       [OPT_FLOAT] = "number",  [OPT_BOOL] = "boolean",
    [OPT_STR] = "string",        [OPT_PAIRS] = "integer", [OPT_IGNORED] = "ignored",
    [OPT_DURATION] = "duration",
};

/* ---- text ---- */

static void write_opts(const struct opt *opts, uint32_t n, struct hk_buf *out)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct opt *o = &opts[k];
        hk_buf_addf(out, "      %s%s (%s", o->key, o->type == OPT_PAIRS ? "*" : "",
                    type_names[o->type]);
        if (o->dflt) {
            hk_buf_addf(out, ", default %s", o->dflt);
        }
        hk_buf_addf(out, ")\n        %s\n", o->help);
    }
}

static void write_plugin(const struct plugin *p, struct hk_buf *out)
{
    const char *sep = "      hooks: ";

    hk_buf_addf(out, "  %s\n      %s\n", p->name, p->about);
    for (int k = 0; k < HOOK_N; k++) {
        if (plugin_has_hook(p, (enum hook_kind)k)) {
            hk_buf_addf(out, "%s%s", sep, hook_name((enum hook_kind)k));
            sep = ", ";
        }
    }
    hk_buf_adds(out, sep[0] == ',' ? "\n" : "");
    write_opts(p->opts, p->nopt, out);
}

static void plugins_write_text(struct hk_buf *out)
{
    hk_buf_adds(out, "Actions\n");
    for (uint32_t k = 0; k < action_table_len; k++) {
        hk_buf_addf(out, "  %s\n      %s\n", action_table[k]->name, action_table[k]->about);
        write_opts(action_table[k]->opts, action_table[k]->nopt, out);
    }
    hk_buf_adds(out, "\nPlugins\n");
    for (uint32_t k = 0; k < plugin_table_len; k++) {
        write_plugin(plugin_table[k], out);
    }
}

/* ---- JSON ---- */

static struct json opts_json(const struct opt *opts, uint32_t n, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < n; k++) {
        struct json o = json_make_object();
        json_set_cstr(&o, a, "key", opts[k].key);
        json_set_cstr(&o, a, "type", type_names[opts[k].type]);
        json_set_bool(&o, a, "prefix", opts[k].type == OPT_PAIRS);
        if (opts[k].dflt) {
            json_set_cstr(&o, a, "default", opts[k].dflt);
        }
        json_set_cstr(&o, a, "help", opts[k].help);
        json_push(&list, a, o);
    }
    return list;
}

static struct json plugin_json(const struct plugin *p, struct hk_arena *a)
{
    struct json o = json_make_object(), hooks = json_make_array();

    for (int k = 0; k < HOOK_N; k++) {
        if (plugin_has_hook(p, (enum hook_kind)k)) {
            json_push(&hooks, a, json_make_str(hk_str(hook_name((enum hook_kind)k))));
        }
    }
    json_set_cstr(&o, a, "name", p->name);
    json_set_cstr(&o, a, "about", p->about);
    json_set(&o, a, "hooks", hooks);
    json_set(&o, a, "arguments", opts_json(p->opts, p->nopt, a));
    return o;
}

static void plugins_write_json(struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json root = json_make_object(), actions = json_make_array(), plugins = json_make_array();

    for (uint32_t k = 0; k < action_table_len; k++) {
        struct json o = json_make_object();
        json_set_cstr(&o, &mem, "name", action_table[k]->name);
        json_set_cstr(&o, &mem, "about", action_table[k]->about);
        json_set(&o, &mem, "arguments",
                 opts_json(action_table[k]->opts, action_table[k]->nopt, &mem));
        json_push(&actions, &mem, o);
    }
    for (uint32_t k = 0; k < plugin_table_len; k++) {
        json_push(&plugins, &mem, plugin_json(plugin_table[k], &mem));
    }
    json_set(&root, &mem, "actions", actions);
    json_set(&root, &mem, "plugins", plugins);
    json_write_pretty(&root, 2, out);
}

static const struct option_row options[] = {
    ROW_INCLUDE_SAME(verb_output_json_options),
    ROW_END,
};

static int plugins_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct verb_output o = {0};
    const int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (o.as == OUTPUT_JSON) {
        plugins_write_json(&out);
    } else {
        plugins_write_text(&out);
    }
    return verb_print(&out);
}

const struct verb verb_plugins = {
    .name = "plugins",
    .args = "",
    .about = "list the scheduler's actions and plugins with their arguments",
    .options = options,
    .text = "Lists every action and plugin of this build: what it does, the extension points of a "
            "plugin, and the arguments for its section of the scheduler configuration. An "
            "argument whose name ends in * is a prefix; 'ignored' ones are accepted so that "
            "existing configurations load.",
    .run = plugins_run,
};
