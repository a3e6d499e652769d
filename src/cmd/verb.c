// SPDX-License-Identifier: Apache-2.0
// Options and manual pages of verbs, from their tables.
#include "cmd/verb.h"

const struct verb *const verb_table[] = {
    &verb_up,
    &verb_down,
    &verb_status,
    &verb_run,
    &verb_apply,
    &verb_logs,
    &verb_wait,
    &verb_explain,
    &verb_exec,
    &verb_cp,
    &verb_jobs,
    &verb_pods,
    &verb_queues,
    &verb_nodes,
    &verb_flows,
    &verb_cancel,
    &verb_suspend,
    &verb_resume,
    &verb_history,
    &verb_top,
    &verb_vcctl,
    &verb_apiserver,
    &verb_scheduler,
    &verb_controller_manager,
    &verb_webhook_manager,
    &verb_agent,
    &verb_manifests,
    &verb_schedule,
    &verb_scn,
    &verb_plugins,
    &verb_help,
    &verb_version,
    &verb_completion,
};
const uint32_t verb_table_len = HK_LEN(verb_table);

const struct verb *verb_find(const char *name)
{
    for (uint32_t k = 0; k < verb_table_len; k++) {
        if (strcmp(verb_table[k]->name, name) == 0) {
            return verb_table[k];
        }
    }
    return NULL;
}

enum { MAX_WORD = 32 };

/* Levenshtein's. */
size_t word_distance(const char *a, const char *b)
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

bool option_is_optional(const struct option_row *row)
{
    return row->arg && row->arg[0] == '[';
}

static bool is_name(struct hk_str typed, const char *name)
{
    bool same = typed.n == strlen(name);

    for (size_t i = 0; same && i < typed.n; i++) {
        same = typed.s[i] == name[i] || (typed.s[i] == '_' && name[i] == '-');
    }
    return same;
}

static const struct option_row *by_name(const struct verb *v, struct hk_str name)
{
    for (uint32_t k = 0; k < v->noption; k++) {
        if (is_name(name, v->options[k].name)) {
            return &v->options[k];
        }
    }
    return NULL;
}

static const struct option_row *by_letter(const struct verb *v, char letter)
{
    for (uint32_t k = 0; k < v->noption; k++) {
        if (v->options[k].letter != 0 && v->options[k].letter == letter) {
            return &v->options[k];
        }
    }
    return NULL;
}

static bool is_choice(const struct option_row *row, const char *value)
{
    struct hk_str rest = hk_str(row->choices), part;

    while (hk_str_cut(&rest, ' ', &part)) {
        if (hk_str_is(part, value)) {
            return true;
        }
    }
    return !row->choices;
}

struct arguments {
    const struct verb *v;
    int argc, at;
    char **argv;
    verb_take *take;
    void *ctx;
    struct hk_err *err;
};

/* Hands over one option; inline_value is what stands behind '=' or the letter, NULL when nothing.
 */
static int give(struct arguments *a, const struct option_row *row, const char *inline_value)
{
    const char *value = inline_value;

    if (!row->arg && inline_value) {
        return hk_fail(a->err, HK_EINVAL, "option --%s takes no value", row->name);
    }
    if (row->arg && !value && !option_is_optional(row)) {
        if (a->at >= a->argc) {
            return hk_fail(a->err, HK_EINVAL, "option --%s wants %s", row->name, row->arg);
        }
        value = a->argv[a->at++];
    }
    if (value && !is_choice(row, value)) {
        return hk_fail(a->err, HK_EINVAL, "option --%s is '%s', want one of: %s", row->name, value,
                       row->choices);
    }
    return a->take(a->ctx, row, value, a->err);
}

static int give_long(struct arguments *a, const char *arg)
{
    struct hk_str rest = hk_str(arg + 2), name;

    hk_str_cut(&rest, '=', &name);
    const struct option_row *row = by_name(a->v, name);
    if (!row) {
        return hk_fail(a->err, HK_EINVAL, "unknown option '--%.*s'", HK_FMT(name));
    }
    return give(a, row, rest.s);
}

static int give_short(struct arguments *a, const char *arg)
{
    for (const char *p = arg + 1; *p != '\0'; p++) {
        const struct option_row *row = by_letter(a->v, *p);
        if (!row) {
            return hk_fail(a->err, HK_EINVAL, "unknown option '-%c'", *p);
        }
        if (row->arg) {
            const char *value = p[1] == '=' ? p + 2 : p + 1;
            return give(a, row, p[1] != '\0' ? value : NULL);
        }
        const int rc = give(a, row, NULL);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int walk(struct arguments *a)
{
    bool plain = false;
    int rc = 0;

    while (rc == 0 && a->at < a->argc) {
        const char *arg = a->argv[a->at++];
        if (plain || arg[0] != '-' || arg[1] == '\0') {
            rc = a->take(a->ctx, NULL, arg, a->err);
            plain = plain || a->v->command;
        } else if (strcmp(arg, "--") == 0) {
            plain = true;
        } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            return 1;
        } else {
            rc = arg[1] == '-' ? give_long(a, arg) : give_short(a, arg);
        }
    }
    return rc;
}

int verb_parse(const struct verb *v, int argc, char **argv, verb_take *take, void *ctx)
{
    HK_AUTO(hk_buf_fini) struct hk_buf help = {0};
    struct hk_err err = {0};
    struct arguments a = {v, argc, 0, argv, take, ctx, &err};
    const int rc = walk(&a);

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

/* Words of one paragraph, wrapped behind an indent; column is where the first line stands. */
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

static void write_option(const struct option_row *o, struct hk_buf *out)
{
    hk_buf_adds(out, "       ");
    if (o->letter != 0) {
        hk_buf_addf(out, "-%c, ", o->letter);
    }
    if (option_is_optional(o)) {
        hk_buf_addf(out, "--%s[=%s\n", o->name, o->arg + 1);
    } else {
        hk_buf_addf(out, "--%s%s%s\n", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    }
    wrap(hk_str(o->help), 11, 0, out);
}

static void write_synopsis(const struct verb *v, struct hk_buf *out)
{
    hk_buf_addf(out, "\nSYNOPSIS\n       hekla %s%s%s%s\n", v->name,
                v->noption > 0 ? " [OPTION...]" : "", v->args[0] != '\0' ? " " : "", v->args);
}

/* Paragraphs are separated by line ends. */
static void write_paragraphs(const char *text, struct hk_buf *out)
{
    struct hk_str rest = hk_str(text), part;
    bool first = true;

    while (hk_str_cut(&rest, '\n', &part)) {
        hk_buf_adds(out, first ? "" : "\n");
        wrap(part, 7, 0, out);
        first = false;
    }
}

const struct option_row verb_help_option = {'h', "help", NULL, NULL, "Show this page."};

void verb_write_help(const struct verb *v, struct hk_buf *out)
{
    hk_buf_addf(out, "NAME\n       hekla %s - %s\n", v->name, v->about);
    write_synopsis(v, out);
    hk_buf_adds(out, "\nDESCRIPTION\n");
    write_paragraphs(v->text, out);
    hk_buf_adds(out, "\nOPTIONS\n");
    for (uint32_t k = 0; k < v->noption; k++) {
        write_option(&v->options[k], out);
    }
    write_option(&verb_help_option, out);
    if (v->rest) {
        hk_buf_addf(out, "\n%s", v->rest);
    }
}

void verb_write_overview(struct hk_buf *out)
{
    hk_buf_adds(out, "hekla - a Volcano-compatible batch system\n\n"
                     "Usage: hekla VERB [OPTION...] [ARGUMENT...]\n\nVerbs:\n");
    for (uint32_t k = 0; k < verb_table_len; k++) {
        hk_buf_addf(out, "  %-18s %s\n", verb_table[k]->name, verb_table[k]->about);
    }
    hk_buf_adds(out, "\n'hekla help VERB' tells more about one of them.\n");
}
