// SPDX-License-Identifier: Apache-2.0
// The hekla program: finds the verb and lets it run. Under the name of vcctl or one of its short
// forms it is that program, and under the names of Volcano's servers the verb in their place.
#include "cmd/man.h"
#include "cmd/vcctl.h"
#include "cmd/verb.h"

/* ---- help and version ---- */

struct help_opts {
    const char *name, *dir; /* or NULL */
    bool man;
};

static const struct option_row help_options[] = {
    {0, "man", NULL, NULL,
     "Write the page for man(1), in roff. VERB may also be vcctl or one of its short forms, or a "
     "page by its full name (hekla-up)."},
    {0, "man-dir", "DIR", NULL,
     "Write all pages for man(1) into the directory: hekla.1, one hekla-VERB.1 for every verb, "
     "and those of vcctl and its short forms."},
};

static int take_help(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct help_opts *o = ctx;

    if (row && !row->arg) {
        o->man = true;
    } else if (row) {
        o->dir = value;
    } else if (o->name) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
    } else {
        o->name = value;
    }
    return 0;
}

static int unknown_verb(const char *name);

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

static int run_help(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct help_opts o = {0};
    const int rc = verb_parse(v, argc, argv, take_help, &o);

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
        verb_write_overview(&out);
        return verb_print(&out);
    }
    const struct verb *about = verb_find(o.name);
    if (!about) {
        return unknown_verb(o.name);
    }
    verb_write_help(about, &out);
    return verb_print(&out);
}

static int take_nothing(void *ctx, const struct option_row *row, const char *value,
                        struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
}

static int run_version(const struct verb *v, int argc, char **argv)
{
    const int rc = verb_parse(v, argc, argv, take_nothing, NULL);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    return verb_print_version();
}

const struct verb verb_help = {
    .name = "help",
    .args = "[VERB]",
    .about = "list the verbs, or tell about one of them",
    .options = help_options,
    .noption = HK_LEN(help_options),
    .text = "Without an argument, lists the verbs. With one, shows its manual page.",
    .rest = "EXAMPLES\n"
            "           hekla help up\n"
            "           hekla help --man up | man -l -\n",
    .run = run_help,
};

const struct verb verb_version = {
    .name = "version",
    .args = "",
    .about = "print the version",
    .text = "Prints the name and the version of the program.",
    .run = run_version,
};

/* ---- finding the verb ---- */

static int unknown_verb(const char *name)
{
    const char *best = NULL;
    size_t least = 3; /* further away is no typing mistake */

    if (name[0] == '-') {
        return verb_complain("unknown option '%s', want a verb first (see 'hekla help')", name);
    }
    for (uint32_t k = 0; k < verb_table_len; k++) {
        const size_t d = word_distance(name, verb_table[k]->name);
        if (d < least) {
            least = d;
            best = verb_table[k]->name;
        }
    }
    if (best) {
        return verb_complain("unknown verb '%s', did you mean '%s'?", name, best);
    }
    return verb_complain("unknown verb '%s' (see 'hekla help')", name);
}

/* The name without the directories in front of it. */
static struct hk_str base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return hk_str(slash ? slash + 1 : path);
}

/* The verb that takes the place of one of Volcano's servers; NULL when the name is none of them. */
static const struct verb *server_of(struct hk_str name)
{
    static const struct {
        const char *name;
        const struct verb *verb;
    } servers[] = {
        {"vc-scheduler", &verb_scheduler},
        {"vc-controller-manager", &verb_controller_manager},
        {"vc-webhook-manager", &verb_webhook_manager},
    };

    for (size_t i = 0; i < HK_LEN(servers); i++) {
        if (hk_str_is(name, servers[i].name)) {
            return servers[i].verb;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct hk_str self = base_name(argc > 0 ? argv[0] : "");
    const struct command *program = command_program(self);
    const struct verb *server = server_of(self);
    const char *name = argc > 1 ? argv[1] : "";

    if (program) {
        return vcctl_main(program, argc - 1, argv + 1);
    }
    if (server) {
        return server->run(server, argc - 1, argv + 1);
    }
    if (argc < 2) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        verb_write_overview(&out);
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
