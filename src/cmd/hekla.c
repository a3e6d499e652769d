// SPDX-License-Identifier: Apache-2.0
// The hekla program: finds the verb and lets it run. Under the name of vcctl or one of its short
// forms it is that program.
#include "cmd/vcctl.h"
#include "cmd/verb.h"

/* ---- help and version ---- */

static int take_name(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    const char **name = ctx;

    if (*name) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
    }
    *name = value;
    return 0;
}

static int unknown_verb(const char *name);

static int run_help(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const char *name = NULL;
    const int rc = verb_parse(v, argc, argv, take_name, &name);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!name) {
        verb_write_overview(&out);
        return verb_print(&out);
    }
    const struct verb *about = verb_find(name);
    if (!about) {
        return unknown_verb(name);
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
    .text = "Without an argument, lists the verbs. With one, shows its manual page.",
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

int main(int argc, char **argv)
{
    const struct command *program = argc > 0 ? command_program(base_name(argv[0])) : NULL;
    const char *name = argc > 1 ? argv[1] : "";

    if (program) {
        return vcctl_main(program, argc - 1, argv + 1);
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
