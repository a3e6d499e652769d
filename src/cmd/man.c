// SPDX-License-Identifier: Apache-2.0
// Writes manual pages in roff with the man macros. All text comes from the tables of verbs and
// commands; only the frame is here.
#include "cmd/man.h"

#include "base/file.h"
#include "cli/command.h"
#include "cmd/verbs.h"
#include "daemon/where.h"
#include "user/ask.h"

#include <errno.h>
#include <sys/stat.h>

enum { REST_INDENT = 7 };

/* ---- text ---- */

/* Escapes everything special to roff; hyphens stay as typed. */
static void man_write_text(struct hk_str s, struct hk_buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        if (i == 0 && (s.s[i] == '.' || s.s[i] == '\'')) {
            hk_buf_adds(out, "\\&");
        }
        if (s.s[i] == '\\') {
            hk_buf_adds(out, "\\e");
        } else if (s.s[i] == '-') {
            hk_buf_adds(out, "\\-");
        } else {
            hk_buf_addc(out, s.s[i]);
        }
    }
}

static void man_write_line(struct hk_str s, struct hk_buf *out)
{
    man_write_text(s, out);
    hk_buf_addc(out, '\n');
}

static void write_bold(const char *s, struct hk_buf *out)
{
    hk_buf_adds(out, "\\fB");
    man_write_text(hk_str(s), out);
    hk_buf_adds(out, "\\fR");
}

static void write_slanted(const char *s, struct hk_buf *out)
{
    hk_buf_adds(out, "\\fI");
    man_write_text(hk_str(s), out);
    hk_buf_adds(out, "\\fR");
}

/* Newlines separate paragraphs. */
static void man_write_paragraphs(const char *text, struct hk_buf *out)
{
    struct hk_str rest = hk_str(text), part;

    for (bool first = true; hk_str_cut(&rest, '\n', &part); first = false) {
        hk_buf_adds(out, first ? "" : ".PP\n");
        man_write_line(part, out);
    }
}

static void man_write_title(const char *page, const char *about, struct hk_buf *out)
{
    hk_buf_adds(out, ".TH \"");
    for (const char *p = page; *p; p++) {
        hk_buf_addc(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
    }
    hk_buf_adds(out, "\" 1 \"\" \"hekla " HEKLA_VERSION "\" \"Hekla\"\n.SH NAME\n");
    man_write_text(hk_str(page), out);
    hk_buf_adds(out, " \\- ");
    man_write_line(hk_str(about), out);
}

/* "-d, --data-dir DIR" */
static void man_write_tag(char letter, const char *name, const char *arg, bool optional,
                          struct hk_buf *out)
{
    hk_buf_adds(out, ".TP\n");
    if (letter != 0) {
        hk_buf_addf(out, "\\fB\\-%c\\fR, ", letter);
    }
    hk_buf_adds(out, "\\fB\\-\\-");
    man_write_text(hk_str(name), out);
    hk_buf_adds(out, "\\fR");
    if (arg && arg[0] != '\0') {
        hk_buf_adds(out, optional ? "[=" : " ");
        write_slanted(arg, out);
    }
    hk_buf_addc(out, '\n');
}

static void write_see(const char *page, bool last, struct hk_buf *out)
{
    hk_buf_adds(out, ".BR ");
    man_write_text(hk_str(page), out);
    hk_buf_adds(out, last ? " (1)\n" : " (1),\n");
}

/* ---- verbs ---- */

/* Headings start at the margin, their text is indented; lines are kept as they are. */
static void write_rest(const char *text, struct hk_buf *out)
{
    struct hk_str rest = hk_str(text), line;
    bool open = false;

    while (hk_str_cut(&rest, '\n', &line)) {
        if (line.n == 0) {
            hk_buf_adds(out, rest.n > 0 && rest.s[0] == ' ' ? ".sp\n" : "");
        } else if (line.s[0] != ' ') {
            hk_buf_adds(out, open ? ".fi\n" : "");
            hk_buf_addf(out, ".SH %.*s\n.nf\n", HK_FMT(line));
            open = true;
        } else {
            const size_t skip = HK_MIN(line.n, (size_t)REST_INDENT);
            man_write_line((struct hk_str){line.s + skip, line.n - skip}, out);
        }
    }
    hk_buf_adds(out, open ? ".fi\n" : "");
}

static void man_write_option(const struct option_row *row, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf value = {0}, help = {0};

    option_write_value(row, &value);
    if (row->type == OPTION_BOOL) {
        hk_buf_addc(&value, ']');
    }
    man_write_tag(row->letter, row->name, value.data, row->type == OPTION_BOOL, out);
    option_write_help(row, &help);
    man_write_line(hk_buf_str(&help), out);
}

static void man_write_options(const struct verb *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ignored = {0};
    struct option_row row;

    hk_buf_adds(out, ".SH OPTIONS\n");
    for (uint32_t i = 0; option_at(verb_options(v), i, &row); i++) {
        if (!option_is_argument(&row) && !row.ignored) {
            man_write_option(&row, out);
        }
    }
    man_write_option(&option_help, out);
    option_write_ignored(verb_options(v), &ignored);
    if (ignored.len > 0) {
        hk_buf_adds(out, ".PP\n");
        man_write_line(HK_STR(VERB_IGNORED_TEXT), out);
        man_write_line(hk_buf_str(&ignored), out);
    }
}

static void write_verb(const struct verb *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf page = {0}, synopsis = {0};

    hk_buf_addf(&page, "hekla-%s", v->name);
    man_write_title(page.data, v->about, out);
    hk_buf_adds(out, ".SH SYNOPSIS\n");
    write_bold("hekla", out);
    hk_buf_addc(out, ' ');
    write_bold(v->name, out);
    verb_write_synopsis(v, &synopsis);
    man_write_line(hk_buf_str(&synopsis), out);
    hk_buf_adds(out, ".SH DESCRIPTION\n");
    man_write_paragraphs(v->text, out);
    man_write_options(v, out);
    if (v->rest) {
        write_rest(v->rest, out);
    }
    hk_buf_adds(out, ".SH SEE ALSO\n");
    if (strcmp(v->name, "vcctl") == 0) {
        write_see("vcctl", false, out);
    }
    write_see("hekla", true, out);
}

static void write_overview(struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf page = {0};

    man_write_title("hekla", "a Volcano-compatible batch system", out);
    hk_buf_adds(out, ".SH SYNOPSIS\n\\fBhekla\\fR \\fIVERB\\fR [\\fIOPTION\\fR...] "
                     "[\\fIARGUMENT\\fR...]\n.SH VERBS\n");
    for (uint32_t k = 0; k < verb_table_len && !verb_table[k]->hidden; k++) {
        hk_buf_adds(out, ".TP\n");
        write_bold(verb_table[k]->name, out);
        hk_buf_addc(out, '\n');
        man_write_line(hk_str(verb_table[k]->about), out);
    }
    hk_buf_adds(out, ".PP\nEvery verb has a page of its own, \\fBhekla\\-\\fIVERB\\fR(1), which "
                     "\\fBhekla help\\fR \\fIVERB\\fR shows as well.\n"
                     ".SH ENVIRONMENT\n.TP\n\\fBKUBECONFIG\\fR\n"
                     "The kubeconfig files that tell commands where the API server is.\n"
                     ".TP\n\\fBXDG_STATE_HOME\\fR, \\fBHOME\\fR\n");
    man_write_line(
        HK_STR("The data directory of a server without --data-dir: " WHERE_DEFAULT_TEXT "."), out);
    hk_buf_adds(out, ".TP\n\\fBNO_COLOR\\fR\nNo colours on terminals.\n.SH SEE ALSO\n");
    for (uint32_t k = 0; k < verb_table_len && !verb_table[k]->hidden; k++) {
        hk_buf_clear(&page);
        hk_buf_addf(&page, "hekla-%s", verb_table[k]->name);
        write_see(page.data, strcmp(verb_table[k]->name, "completion") == 0, out);
    }
}

/* ---- Volcano's programs ---- */

/* The flags from first up to end; named: the command that the help flag names. */
static void man_write_flags(const struct command *c, uint32_t first, uint32_t end,
                            const struct command *named, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf help = {0};

    for (uint32_t i = first; i < end && command_flag_at(c, i); i++) {
        const struct command_flag *f = command_flag_at(c, i);
        hk_buf_clear(&help);
        command_flag_write_help(named, f, &help);
        man_write_tag(f->letter, f->name, command_flag_word(f), false, out);
        man_write_line(hk_buf_str(&help), out);
    }
}

/* The commands below a program; path: the words typed before them. */
static void write_commands(const struct command *c, const char *path, struct hk_buf *out)
{
    for (uint32_t i = 0; i < c->nsubs; i++) {
        const struct command *sub = &c->subs[i];
        HK_AUTO(hk_buf_fini) struct hk_buf below = {0};

        hk_buf_addf(&below, "%s %s", path, sub->name);
        if (sub->nsubs > 0) {
            write_commands(sub, below.data, out);
            continue;
        }
        hk_buf_adds(out, ".SS \"");
        man_write_text(hk_buf_str(&below), out);
        hk_buf_adds(out, "\"\n");
        man_write_line(hk_str(sub->about), out);
        man_write_flags(sub, 0, sub->nflags, sub, out);
    }
}

/* Any command that connects: after their own flags, all have the same ones. */
static const struct command *first_leaf(const struct command *c)
{
    const struct command *found = c->action > COMMAND_VERSION ? c : NULL;

    for (uint32_t i = 0; !found && i < c->nsubs; i++) {
        found = first_leaf(&c->subs[i]);
    }
    return found;
}

static void write_program(const struct command *c, struct hk_buf *out)
{
    const struct verb *vcctl = verb_find("vcctl");
    const bool group = c->nsubs > 0;
    const char *text = c->text && c->text[0] != '\0' ? c->text : vcctl->text;

    man_write_title(c->name, c->about[0] != '\0' ? c->about : vcctl->about, out);
    hk_buf_adds(out, ".SH SYNOPSIS\n");
    write_bold(c->name, out);
    hk_buf_adds(out, group ? " \\fICOMMAND\\fR [\\fIFLAG\\fR...]\n" : " [\\fIFLAG\\fR...]\n");
    hk_buf_adds(out, ".SH DESCRIPTION\n");
    man_write_paragraphs(text, out);
    if (group) {
        hk_buf_adds(out, ".SH COMMANDS\n");
        write_commands(c, c->name, out);
        hk_buf_adds(out, ".SH OPTIONS\nEvery command takes these as well.\n");
        man_write_flags(first_leaf(c), first_leaf(c)->nflags, UINT32_MAX, c, out);
    } else {
        hk_buf_adds(out, ".PP\n");
        man_write_line(HK_STR(ASK_WHERE_TEXT), out);
        hk_buf_adds(out, ".SH OPTIONS\n");
        man_write_flags(c, 0, UINT32_MAX, c, out);
    }
    write_rest(vcctl->rest, out);
    hk_buf_adds(out, ".SH SEE ALSO\n");
    for (uint32_t i = 0; command_program_at(i); i++) {
        const struct command *other = command_program_at(i);
        if (other != c) {
            write_see(other->name, false, out);
        }
    }
    write_see("hekla", true, out);
}

/* ---- pages ---- */

bool man_write(struct hk_str page, struct hk_buf *out)
{
    const struct command *program = command_program(page);
    const struct hk_str prefix = HK_STR("hekla-");

    if (hk_str_is(page, "hekla")) {
        write_overview(out);
        return true;
    }
    if (program) {
        write_program(program, out);
        return true;
    }
    if (page.n <= prefix.n || memcmp(page.s, prefix.s, prefix.n) != 0) {
        return false;
    }
    for (uint32_t k = 0; k < verb_table_len; k++) {
        if (!verb_table[k]->hidden &&
            hk_str_is((struct hk_str){page.s + prefix.n, page.n - prefix.n}, verb_table[k]->name)) {
            write_verb(verb_table[k], out);
            return true;
        }
    }
    return false;
}

static int write_page(const char *dir, struct hk_str page, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0};

    hk_buf_addf(&path, "%s/%.*s.1", dir, HK_FMT(page));
    hk_assert(man_write(page, &text));
    return hk_write_file(path.data, hk_buf_str(&text), err);
}

int man_write_all(const char *dir, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf page = {0};
    int rc = 0;

    if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot create the directory '%s': %m", dir);
    }
    rc = write_page(dir, HK_STR("hekla"), err);

    for (uint32_t k = 0; rc == 0 && k < verb_table_len && !verb_table[k]->hidden; k++) {
        hk_buf_clear(&page);
        hk_buf_addf(&page, "hekla-%s", verb_table[k]->name);
        rc = write_page(dir, hk_buf_str(&page), err);
    }
    for (uint32_t i = 0; rc == 0 && command_program_at(i); i++) {
        rc = write_page(dir, hk_str(command_program_at(i)->name), err);
    }
    return rc;
}
