// SPDX-License-Identifier: Apache-2.0
// The hekla program: finds the verb and runs it. Under the name vcctl, one of its short forms, or a
// Volcano server, it behaves as that program.
#include "cli/word.h"
#include "cmd/complete.h"
#include "cmd/man.h"
#include "cmd/vcctl.h"
#include "cmd/verbs.h"
#include "daemon/fatal.h"

/* ---- help and version ---- */

struct help_opts {
    const char *name, *dir; /* or NULL */
    bool man;
};

static const struct option_row help_options[] = {
    ROW_FLAG(
        0, "man", struct help_opts, man,
        "Write the page for man(1), in roff. VERB may also be vcctl or one of its short forms, "
        "or a page by its full name (hekla-up)."),
    ROW_TEXT(0, "man-dir", "DIR", struct help_opts, dir, NULL,
             "Write all pages for man(1) into the directory: hekla.1, one hekla-VERB.1 for every "
             "verb, and those of vcctl and its short forms."),
    ROW_ARGUMENT("VERB", struct help_opts, name),
    ROW_END,
};

static int unknown_verb(const char *name);

static void hekla_write_overview(struct hk_buf *out)
{
    hk_buf_adds(out, "hekla - a Volcano-compatible batch system\n\n"
                     "Usage: hekla VERB [OPTION...] [ARGUMENT...]\n\nVerbs:\n");
    for (uint32_t k = 0; k < verb_table_len; k++) {
        if (!verb_table[k]->hidden) {
            hk_buf_addf(out, "  %-18s %s\n", verb_table[k]->name, verb_table[k]->about);
        }
    }
    hk_buf_adds(out, "\n'hekla help VERB' shows the page of one verb.\n");
}

static int help_man(const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, page = {0};

    hk_buf_addf(&page, "hekla%s%s", name ? "-" : "", name ? name : "");
    if ((name && man_write(hk_str(name), &out)) || man_write(hk_buf_str(&page), &out)) {
        return verb_print(&out);
    }
    return unknown_verb(name);
}

static int help_man_dir(const char *dir)
{
    struct hk_err err = {0};

    return man_write_all(dir, &err) < 0 ? verb_complain("help: %s", err.text) : EXIT_OK;
}

static int help_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct help_opts o = {0};
    const int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (o.dir) {
        return help_man_dir(o.dir);
    }
    if (o.man) {
        return help_man(o.name);
    }
    if (!o.name) {
        hekla_write_overview(&out);
        return verb_print(&out);
    }
    const struct verb *about = verb_find(o.name);
    if (!about) {
        return unknown_verb(o.name);
    }
    verb_write_help(about, &out);
    return verb_print(&out);
}

static int version_run(const struct verb *v, int argc, char **argv)
{
    const int rc = verb_parse(v, argc, argv, NULL);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    return verb_print_version();
}

const struct verb verb_help = {
    .name = "help",
    .args = "[VERB]",
    .about = "list the verbs, or show the page of one",
    .options = help_options,
    .text = "Without an argument, lists the verbs. With one, shows its manual page.",
    .rest = "EXAMPLES\n"
            "           hekla help up\n"
            "           hekla help --man up | man -l -\n",
    .run = help_run,
};

const struct verb verb_version = {
    .name = "version",
    .args = "",
    .about = "print the version",
    .text = "Prints the name and the version of the program.",
    .run = version_run,
};

/* ---- finding the verb ---- */

static int unknown_verb(const char *name)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;

    if (name[0] == '-') {
        return verb_complain("unknown option '%s', a verb comes first (see 'hekla help')", name);
    }
    for (uint32_t k = 0; k < verb_table_len; k++) {
        const size_t d = word_distance(name, verb_table[k]->name);
        if (d < least && word_is_near(name, verb_table[k]->name) && !verb_table[k]->hidden) {
            least = d;
            best = verb_table[k]->name;
        }
    }
    if (best) {
        return verb_complain("unknown verb '%s', did you mean '%s'?", name, best);
    }
    return verb_complain("unknown verb '%s' (see 'hekla help')", name);
}

struct hk_str verb_program_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return hk_str(slash ? slash + 1 : path);
}

const struct verb *verb_of_server(struct hk_str program)
{
    static const struct {
        const char *name, *verb;
    } servers[] = {
        {"vc-scheduler", "scheduler"},
        {"vc-controller-manager", "controller-manager"},
        {"vc-webhook-manager", "webhook-manager"},
    };

    for (size_t i = 0; i < HK_LEN(servers); i++) {
        if (hk_str_is(program, servers[i].name)) {
            return verb_find(servers[i].verb);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct hk_str self = verb_program_name(argc > 0 ? argv[0] : "");
    const struct command *program = command_program(self);
    const struct verb *server = verb_of_server(self);
    const char *name = argc > 1 ? argv[1] : "";

    fatal_install();
    if (strcmp(name, COMPLETE_VERB) == 0) { /* whatever the program is called */
        const struct verb *complete = verb_find(name);
        return complete->run(complete, argc - 2, argv + 2);
    }
    if (program) {
        return vcctl_main(program, argc - 1, argv + 1);
    }
    if (server) {
        return server->run(server, argc - 1, argv + 1);
    }
    if (argc < 2) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        hekla_write_overview(&out);
        fputs(out.data, stderr);
        return EXIT_BAD;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        name = "version";
    }
    const struct verb *v = verb_find(name);
    return v ? v->run(v, argc - 2, argv + 2) : unknown_verb(name);
}
