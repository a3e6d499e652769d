// SPDX-License-Identifier: Apache-2.0
// Parses the options of verbs and writes their manual pages, from their tables.
#include "cli/verb.h"

int verb_complain(const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    fprintf(stderr, "hekla: %s\n", b.data);
    return EXIT_BAD;
}

int verb_print(const struct hk_buf *out)
{
    if (fwrite(hk_buf_str(out).s, 1, out->len, stdout) != out->len || fflush(stdout) != 0) {
        return verb_complain("cannot write to standard output: %m");
    }
    return EXIT_OK;
}

int verb_print_version(void)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    hk_buf_adds(&out, "hekla " HEKLA_VERSION "\n");
    return verb_print(&out);
}

/* ---- options ---- */

const struct option_row verb_output_options[] = {
    ROW_CHOICE('o', "output", "FORMAT", struct verb_output, as, "text json yaml", "text",
               "Print text for people, or JSON or YAML for programs."),
    ROW_END,
};

const struct option_row verb_output_json_options[] = {
    ROW_CHOICE('o', "output", "FORMAT", struct verb_output, as, "text json", "text",
               "Print text for people, or JSON for programs."),
    ROW_END,
};

const struct option_row *verb_options(const struct verb *v)
{
    static const struct option_row none[] = {ROW_END};

    return v->options ? v->options : none;
}

int verb_refuse_file(void *at, const struct option_row *row, const char *value, struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "unexpected '%s', files are given with -f", value);
}

int verb_parse(const struct verb *v, int argc, char **argv, void *opts)
{
    HK_AUTO(hk_buf_fini) struct hk_buf help = {0};
    struct hk_err err = {0};
    const int rc = option_parse(verb_options(v), argc, argv, opts, &err);

    if (rc < 0) {
        verb_complain("%s: %s (see 'hekla help %s')", v->name, err.text, v->name);
    } else if (rc > 0) {
        verb_write_help(v, &help);
        return verb_print(&help) == EXIT_OK ? 1 : -HK_EIO;
    }
    return rc;
}

/* ---- manual pages ---- */

enum { HELP_WIDTH = 80 };

/* Wraps the words of one paragraph with an indent; column: current column of the first line. */
static void wrap(struct hk_str text, unsigned indent, unsigned column, struct hk_buf *out)
{
    struct hk_str word;

    while (hk_str_cut(&text, ' ', &word)) {
        if (column > indent && column + 1 + word.n > HELP_WIDTH) {
            hk_buf_addc(out, '\n');
            column = 0;
        }
        if (column < indent) {
            hk_buf_addf(out, "%*s", (int)(indent - column), "");
            column = indent;
        } else if (column > indent) {
            hk_buf_addc(out, ' ');
            column++;
        }
        hk_buf_addstr(out, word);
        column += (unsigned)word.n;
    }
    hk_buf_addc(out, '\n');
}

static void verb_write_option(const struct option_row *row, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf help = {0};

    hk_buf_adds(out, "       ");
    option_write_usage(row, out);
    hk_buf_addc(out, '\n');
    option_write_help(row, &help);
    wrap(hk_buf_str(&help), 11, 0, out);
}

/* True if the verb has an option other than --help. */
static bool has_options(const struct verb *v)
{
    struct option_row row;

    for (uint32_t i = 0; option_at(verb_options(v), i, &row); i++) {
        if (!option_is_argument(&row)) {
            return true;
        }
    }
    return false;
}

void verb_write_synopsis(const struct verb *v, struct hk_buf *out)
{
    hk_buf_addf(out, "%s%s%s", has_options(v) ? " [OPTION...]" : "", v->args[0] != '\0' ? " " : "",
                v->args);
}

static void verb_write_options(const struct verb *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ignored = {0};
    struct option_row row;

    hk_buf_adds(out, "\nOPTIONS\n");
    for (uint32_t i = 0; option_at(verb_options(v), i, &row); i++) {
        if (!option_is_argument(&row) && !row.ignored) {
            verb_write_option(&row, out);
        }
    }
    verb_write_option(&option_help, out);
    option_write_ignored(verb_options(v), &ignored);
    if (ignored.len > 0) {
        hk_buf_adds(out, "\n       " VERB_IGNORED_TEXT "\n");
        wrap(hk_buf_str(&ignored), 11, 0, out);
    }
}

/* Newlines separate paragraphs. */
static void verb_write_paragraphs(const char *text, struct hk_buf *out)
{
    struct hk_str rest = hk_str(text), part;
    bool first = true;

    while (hk_str_cut(&rest, '\n', &part)) {
        hk_buf_adds(out, first ? "" : "\n");
        wrap(part, 7, 0, out);
        first = false;
    }
}

void verb_write_help(const struct verb *v, struct hk_buf *out)
{
    hk_buf_addf(out, "NAME\n       hekla %s - %s\n\nSYNOPSIS\n       hekla %s", v->name, v->about,
                v->name);
    verb_write_synopsis(v, out);
    hk_buf_adds(out, "\n\nDESCRIPTION\n");
    verb_write_paragraphs(v->text, out);
    verb_write_options(v, out);
    if (v->rest) {
        hk_buf_addf(out, "\n%s", v->rest);
    }
}
