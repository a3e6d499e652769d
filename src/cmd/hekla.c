// SPDX-License-Identifier: Apache-2.0
// The hekla program: finds the verb and lets it run.
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

enum { MAX_WORD = 32 };

/* Levenshtein distance; long words are far from everything. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MAX_WORD + 1];
    const size_t na = strlen(a), nb = strlen(b);

    if (na > MAX_WORD || nb > MAX_WORD) {
        return MAX_WORD;
    }
    for (size_t k = 0; k <= nb; k++) {
        row[k] = k;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= nb; k++) {
            const size_t swap = corner + (a[i - 1] != b[k - 1]);
            corner = row[k];
            row[k] = HK_MIN(HK_MIN(row[k], row[k - 1]) + 1, swap);
        }
    }
    return row[nb];
}

static int unknown_verb(const char *name)
{
    const char *best = NULL;
    size_t least = 3; /* further away is no typing mistake */

    for (uint32_t k = 0; k < verb_table_len; k++) {
        const size_t d = distance(name, verb_table[k]->name);
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

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

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
