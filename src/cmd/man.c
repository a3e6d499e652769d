// SPDX-License-Identifier: Apache-2.0
// Roff of the man macros. Every text comes from the tables of verbs and commands; only the frame is
// written here.
#include "cmd/man.h"

#include "base/file.h"
#include "cli/command.h"
#include "cmd/ask.h"
#include "cmd/verb.h"
#include "cmd/where.h"

#include <errno.h>
#include <sys/stat.h>

enum { REST_INDENT = 7 };

/* ---- text ---- */

/* Nothing in it means anything to roff; hyphens stay what was typed. */
static void write_text(struct hk_str s, struct hk_buf *out)
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

static void write_line(struct hk_str s, struct hk_buf *out)
{
    write_text(s, out);
    hk_buf_addc(out, '\n');
}

static void write_bold(const char *s, struct hk_buf *out)
{
    hk_buf_adds(out, "\\fB");
    write_text(hk_str(s), out);
    hk_buf_adds(out, "\\fR");
}

static void write_slanted(const char *s, struct hk_buf *out)
{
    hk_buf_adds(out, "\\fI");
    write_text(hk_str(s), out);
    hk_buf_adds(out, "\\fR");
}

/* Paragraphs are separated by line ends. */
static void write_paragraphs(const char *text, struct hk_buf *out)
{
    struct hk_str rest = hk_str(text), part;

    for (bool first = true; hk_str_cut(&rest, '\n', &part); first = false) {
        hk_buf_adds(out, first ? "" : ".PP\n");
        write_line(part, out);
    }
}

static void write_title(const char *page, const char *about, struct hk_buf *out)
{
    hk_buf_adds(out, ".TH \"");
    for (const char *p = page; *p; p++) {
        hk_buf_addc(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
    }
    hk_buf_adds(out, "\" 1 \"\" \"hekla " HEKLA_VERSION "\" \"Hekla\"\n.SH NAME\n");
    write_text(hk_str(page), out);
    hk_buf_adds(out, " \\- ");
    write_line(hk_str(about), out);
}

/* "-d, --data-dir DIR" */
static void write_tag(char letter, const char *name, const char *arg, bool optional,
                      struct hk_buf *out)
{
    hk_buf_adds(out, ".TP\n");
    if (letter != 0) {
        hk_buf_addf(out, "\\fB\\-%c\\fR, ", letter);
    }
    hk_buf_adds(out, "\\fB\\-\\-");
    write_text(hk_str(name), out);
    hk_buf_adds(out, "\\fR");
    if (arg && arg[0] != '\0') {
        hk_buf_adds(out, optional ? "[=" : " ");
        write_slanted(arg + optional, out);
    }
    hk_buf_addc(out, '\n');
}

static void write_see(const char *page, bool last, struct hk_buf *out)
{
    hk_buf_adds(out, ".BR ");
    write_text(hk_str(page), out);
    hk_buf_adds(out, last ? " (1)\n" : " (1),\n");
}

/* ---- verbs ---- */

/* Headings stand at the margin, what belongs to them behind it; lines are kept as they are. */
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
            write_line((struct hk_str){line.s + skip, line.n - skip}, out);
        }
    }
    hk_buf_adds(out, open ? ".fi\n" : "");
}

static void write_option(const struct option_row *o, struct hk_buf *out)
{
    const bool optional = option_is_optional(o);

    write_tag(o->letter, o->name, o->arg, optional, out);
    write_line(hk_str(o->help), out);
}

static void write_verb(const struct verb *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf page = {0};

    hk_buf_addf(&page, "hekla-%s", v->name);
    write_title(page.data, v->about, out);
    hk_buf_adds(out, ".SH SYNOPSIS\n");
    write_bold("hekla", out);
    hk_buf_addc(out, ' ');
    write_bold(v->name, out);
    hk_buf_adds(out, v->noption > 0 ? " [\\fIOPTION\\fR...]" : "");
    hk_buf_adds(out, v->args[0] != '\0' ? " " : "");
    write_line(hk_str(v->args), out);
    hk_buf_adds(out, ".SH DESCRIPTION\n");
    write_paragraphs(v->text, out);
    hk_buf_adds(out, ".SH OPTIONS\n");
    for (uint32_t k = 0; k < v->noption; k++) {
        write_option(&v->options[k], out);
    }
    write_option(&verb_help_option, out);
    if (v->rest) {
        write_rest(v->rest, out);
    }
    hk_buf_adds(out, ".SH SEE ALSO\n");
    if (v == &verb_vcctl) {
        write_see("vcctl", false, out);
    }
    write_see("hekla", true, out);
}

static void write_overview(struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf page = {0};

    write_title("hekla", "a Volcano-compatible batch system", out);
    hk_buf_adds(out, ".SH SYNOPSIS\n\\fBhekla\\fR \\fIVERB\\fR [\\fIOPTION\\fR...] "
                     "[\\fIARGUMENT\\fR...]\n.SH VERBS\n");
    for (uint32_t k = 0; k < verb_table_len; k++) {
        hk_buf_adds(out, ".TP\n");
        write_bold(verb_table[k]->name, out);
        hk_buf_addc(out, '\n');
        write_line(hk_str(verb_table[k]->about), out);
    }
    hk_buf_adds(out, ".PP\nEvery verb has a page of its own, \\fBhekla\\-\\fIVERB\\fR(1), which "
                     "\\fBhekla help\\fR \\fIVERB\\fR shows as well.\n"
                     ".SH ENVIRONMENT\n.TP\n\\fBKUBECONFIG\\fR\n"
                     "The kubeconfig files that tell commands where the API server is.\n"
                     ".TP\n\\fBXDG_STATE_HOME\\fR, \\fBHOME\\fR\n");
    write_line(HK_STR("Where the directory of a server is that nobody names. " WHERE_DEFAULT_TEXT),
               out);
    hk_buf_adds(out, ".TP\n\\fBNO_COLOR\\fR\nNo colours on terminals.\n.SH SEE ALSO\n");
    for (uint32_t k = 0; k < verb_table_len; k++) {
        hk_buf_clear(&page);
        hk_buf_addf(&page, "hekla-%s", verb_table[k]->name);
        write_see(page.data, k + 1 == verb_table_len, out);
    }
}

/* ---- Volcano's programs ---- */

/* The flags from the first up to the end; named is whose help the help flag is for. */
static void write_flags(const struct command *c, uint32_t first, uint32_t end,
                        const struct command *named, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf help = {0};

    for (uint32_t i = first; i < end && command_flag_at(c, i); i++) {
        const struct command_flag *f = command_flag_at(c, i);
        hk_buf_clear(&help);
        command_flag_write_help(named, f, &help);
        write_tag(f->letter, f->name, command_flag_word(f), false, out);
        write_line(hk_buf_str(&help), out);
    }
}

/* Commands below a program; path is what is typed before them. */
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
        write_text(hk_buf_str(&below), out);
        hk_buf_adds(out, "\"\n");
        write_line(hk_str(sub->about), out);
        write_flags(sub, 0, sub->nflags, sub, out);
    }
}

/* Any command that connects: behind their own, all have the same flags. */
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
    const bool group = c->nsubs > 0;
    const char *text = c->text && c->text[0] != '\0' ? c->text : verb_vcctl.text;

    write_title(c->name, c->about[0] != '\0' ? c->about : verb_vcctl.about, out);
    hk_buf_adds(out, ".SH SYNOPSIS\n");
    write_bold(c->name, out);
    hk_buf_adds(out, group ? " \\fICOMMAND\\fR [\\fIFLAG\\fR...]\n" : " [\\fIFLAG\\fR...]\n");
    hk_buf_adds(out, ".SH DESCRIPTION\n");
    write_paragraphs(text, out);
    if (group) {
        hk_buf_adds(out, ".SH COMMANDS\n");
        write_commands(c, c->name, out);
        hk_buf_adds(out, ".SH OPTIONS\nEvery command takes these as well.\n");
        write_flags(first_leaf(c), first_leaf(c)->nflags, UINT32_MAX, c, out);
    } else {
        hk_buf_adds(out, ".PP\n");
        write_line(HK_STR(ASK_WHERE_TEXT), out);
        hk_buf_adds(out, ".SH OPTIONS\n");
        write_flags(c, 0, UINT32_MAX, c, out);
    }
    write_rest(verb_vcctl.rest, out);
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
        if (hk_str_is((struct hk_str){page.s + prefix.n, page.n - prefix.n}, verb_table[k]->name)) {
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
        return hk_fail(err, HK_EIO, "cannot make the directory '%s': %m", dir);
    }
    rc = write_page(dir, HK_STR("hekla"), err);

    for (uint32_t k = 0; rc == 0 && k < verb_table_len; k++) {
        hk_buf_clear(&page);
        hk_buf_addf(&page, "hekla-%s", verb_table[k]->name);
        rc = write_page(dir, hk_buf_str(&page), err);
    }
    for (uint32_t i = 0; rc == 0 && command_program_at(i); i++) {
        rc = write_page(dir, hk_str(command_program_at(i)->name), err);
    }
    return rc;
}
