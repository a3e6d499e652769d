// SPDX-License-Identifier: Apache-2.0
// The scheduler configuration file: actions, tiers of plugins with switches and arguments,
// per-action arguments. docs/scheduling.md#the-configuration-file describes it. Immutable once
// read; a session borrows one.
#pragma once

#include "base/arena.h"
#include "scheduler/hooks.h"

struct conf_plugin {
    const struct plugin *p; /* NULL: unknown plugin, reported and skipped */
    struct hk_str name;
    uint32_t tier;
    uint64_t off;   /* bit per hook_kind switched off */
    bool hierarchy; /* enableHierarchy */
    void *options;  /* state_size bytes: options filled in, the rest zero */
    uint32_t line;
};

struct conf_action {
    const struct action *a;
    void *args; /* args_size bytes */
};

struct conf_warning {
    uint32_t line;
    char *text;
};

struct conf {
    struct hk_arena mem;
    struct hk_str text; /* copy of the source; option strings point into it or into mem */
    HK_VEC(struct conf_action) actions;
    HK_VEC(struct conf_plugin) plugins; /* in tier order */
    uint32_t ntier;
    HK_VEC(struct conf_warning) warnings; /* tolerated problems: unknown plugins, bad types */
    bool has_enqueue;                     /* the enqueue action is configured */
};

/* On failure the message names the line: "line N: ...". conf_default_text is in force without a
 * file. */
int conf_parse(struct hk_str text, struct conf **ret, struct hk_err *err) HK_CHECKED;
extern const char conf_default_text[];
void conf_free(struct conf *c);

/* enableHierarchy from the first entry of the plugin. */
static inline bool conf_hierarchy(const struct conf *c, const struct plugin *p)
{
    for (uint32_t k = 0; k < c->plugins.len; k++) {
        if (c->plugins.at[k].p == p) {
            return c->plugins.at[k].hierarchy;
        }
    }
    return false;
}

/* The file behind a running scheduler: keeps the last good configuration. */
struct conf_file {
    char *path; /* NULL: built-in default only */
    struct conf *now;
    uint64_t stamp; /* of the text last read */
};
/* Loads the default, then the file. An invalid file keeps the default and sets err. */
int conf_file_open(struct conf_file *f, const char *path, struct hk_err *err);
/* Reads the file again; 1 when the configuration changed, 0 when not, negative (and the old one
 * kept) when the file is invalid or unreadable. */
int conf_file_reload(struct conf_file *f, struct hk_err *err);
void conf_file_fini(struct conf_file *f);
