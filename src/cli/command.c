// SPDX-License-Identifier: Apache-2.0
// Parses words and flags by the tables of commands, like Go's pflag and cobra, and writes help from
// the same tables.
#include "cli/command.h"

#include "cli/option.h"

#include "codec/timefmt.h"

static const struct command_flag connection[] = {
    {'k', "kubeconfig", COMMAND_STRING, NULL, "(optional) absolute path to the kubeconfig file"},
    {'s', "master", COMMAND_STRING, NULL, "the address of apiserver"},
};
static const struct command_flag help_flag = {'h', "help", COMMAND_BOOL, NULL, "help for "};
static const struct command_flag shared[] = {
    {0, "log-flush-frequency", COMMAND_DURATION, "5s",
     "Maximum number of seconds between log flushes"},
    {'v', "v", COMMAND_LEVEL, NULL, "number for the log level verbosity"},
    {0, "vmodule", COMMAND_MODULES, NULL,
     "comma-separated list of pattern=N settings for file-filtered logging (only works for the "
     "default text log format)"},
};

/* ---- the flags of a command: its own, those of the connection, help, and global ones ---- */

static uint32_t count_local(const struct command *c)
{
    const bool connects = c->action > COMMAND_VERSION;

    return c->nflags + (connects ? (uint32_t)HK_LEN(connection) : 0) + 1;
}

static uint32_t count_flags(const struct command *c)
{
    return count_local(c) + (uint32_t)HK_LEN(shared);
}

static const struct command_flag *flag_at(const struct command *c, uint32_t i)
{
    const uint32_t nlocal = count_local(c);

    if (i < c->nflags) {
        return &c->flags[i];
    }
    if (i >= nlocal) {
        return &shared[i - nlocal];
    }
    return i == nlocal - 1 ? &help_flag : &connection[i - c->nflags];
}

/* Accepts underscores for hyphens. */
static bool command_flag_name_equal(struct hk_str typed, const char *name)
{
    bool same = typed.n == strlen(name);

    for (size_t i = 0; same && i < typed.n; i++) {
        same = typed.s[i] == name[i] || (typed.s[i] == '_' && name[i] == '-');
    }
    return same;
}

/* The index of the flag, or the number of flags if there is none. */
static uint32_t find_name(const struct command *c, struct hk_str name)
{
    uint32_t i = 0;

    while (i < count_flags(c) && !command_flag_name_equal(name, flag_at(c, i)->name)) {
        i++;
    }
    return i;
}

static uint32_t find_letter(const struct command *c, char letter)
{
    uint32_t i = 0;

    while (i < count_flags(c) && flag_at(c, i)->letter != letter) {
        i++;
    }
    return i;
}

const struct command *command_leaf(const struct command_line *l)
{
    return l->path[l->depth - 1];
}

const char *command_value(const struct command_line *l, const char *flag)
{
    const struct command *c = command_leaf(l);
    const uint32_t i = find_name(c, hk_str(flag));

    hk_assert(i < count_flags(c));
    const char *initial = flag_at(c, i)->initial;
    return l->values[i] ? l->values[i] : initial ? initial : "";
}

bool command_has(const struct command_line *l, const char *flag)
{
    const uint32_t i = find_name(command_leaf(l), hk_str(flag));

    return i < COMMAND_MAX_FLAGS && l->values[i];
}

bool command_bool(const struct command_line *l, const char *flag)
{
    bool on = false;

    return option_parse_bool(command_value(l, flag), &on) && on;
}

int64_t command_int(const struct command_line *l, const char *flag)
{
    int64_t n = 0;

    hk_str_int(hk_str(command_value(l, flag)), &n);
    return n;
}

/* ---- reading values ---- */

static int check_int(const char *value, int bits, struct hk_err *err)
{
    const int64_t max = bits == 32 ? INT32_MAX : INT64_MAX;
    const char *digits = value + (value[0] == '-' || value[0] == '+');
    const bool number = digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
    int64_t n;

    if (hk_str_int(hk_str(value), &n) && n <= max && n >= -max - 1) {
        return 0;
    }
    return hk_fail(err, HK_EINVAL, "strconv.ParseInt: parsing \"%s\": %s", value,
                   number ? "value out of range" : "invalid syntax");
}

static int command_check_value(const struct command_flag *f, const char *value, struct hk_err *err)
{
    int64_t ns;
    bool on;

    switch (f->type) {
    case COMMAND_STRING:
    case COMMAND_MODULES:
        return 0;
    case COMMAND_BOOL:
        return option_parse_bool(value, &on)
                   ? 0
                   : hk_fail(err, HK_EINVAL, "strconv.ParseBool: parsing \"%s\": invalid syntax",
                             value);
    case COMMAND_DURATION:
        return duration_parse(hk_str(value), &ns, err);
    case COMMAND_INT:
        return check_int(value, 64, err);
    case COMMAND_INT32:
    case COMMAND_LEVEL:
        return check_int(value, 32, err);
    }
    return 0;
}

static int set_value(struct command_line *l, uint32_t i, const char *value, struct hk_err *err)
{
    const struct command_flag *f = flag_at(command_leaf(l), i);
    struct hk_err why = {0};

    if (command_check_value(f, value, &why) == 0) {
        l->values[i] = value;
        return 0;
    }
    if (f->letter != 0) {
        return hk_fail(err, HK_EINVAL, "invalid argument \"%s\" for \"-%c, --%s\" flag: %s", value,
                       f->letter, f->name, why.text);
    }
    return hk_fail(err, HK_EINVAL, "invalid argument \"%s\" for \"--%s\" flag: %s", value, f->name,
                   why.text);
}

/* ---- reading arguments ---- */

struct reader {
    struct command_line *line;
    char *const *argv;
    int argc, at; /* at: the next argument */
    struct hk_err *err;
};

static int read_long(struct reader *r, const char *arg)
{
    const struct command *c = command_leaf(r->line);
    struct hk_str rest = hk_str(arg + 2), name;

    hk_str_cut(&rest, '=', &name);
    if (name.n == 0 || name.s[0] == '-') {
        return hk_fail(r->err, HK_EINVAL, "bad flag syntax: %s", arg);
    }
    const uint32_t i = find_name(c, name);
    if (i == count_flags(c)) {
        return hk_fail(r->err, HK_EINVAL, "unknown flag: --%.*s", HK_FMT(name));
    }
    if (rest.s) {
        return set_value(r->line, i, rest.s, r->err);
    }
    if (flag_at(c, i)->type == COMMAND_BOOL) {
        return set_value(r->line, i, "true", r->err);
    }
    if (r->at == r->argc) {
        return hk_fail(r->err, HK_EINVAL, "flag needs an argument: --%.*s", HK_FMT(name));
    }
    return set_value(r->line, i, r->argv[r->at++], r->err);
}

/* One letter of "-abc"; *p moves past what it used. */
static int read_letter(struct reader *r, const char **p)
{
    const struct command *c = command_leaf(r->line);
    const char *from = *p, letter = **p;
    const uint32_t i = find_letter(c, letter);

    if (i == count_flags(c)) {
        return hk_fail(r->err, HK_EINVAL, "unknown shorthand flag: '%c' in -%s", letter, from);
    }
    *p += 1;
    const bool inlined = from[1] == '=' && from[2] != '\0';
    if (!inlined && flag_at(c, i)->type == COMMAND_BOOL) {
        return set_value(r->line, i, "true", r->err);
    }
    *p = from + strlen(from);
    if (from[1] != '\0') {
        return set_value(r->line, i, from + (inlined ? 2 : 1), r->err);
    }
    if (r->at == r->argc) {
        return hk_fail(r->err, HK_EINVAL, "flag needs an argument: '%c' in -%s", letter, from);
    }
    return set_value(r->line, i, r->argv[r->at++], r->err);
}

static int read_letters(struct reader *r, const char *arg)
{
    const char *p = arg + 1;
    int rc = 0;

    while (rc == 0 && *p != '\0') {
        rc = read_letter(r, &p);
    }
    return rc;
}

/* The words that name the command are not its arguments. */
static void command_add_word(struct reader *r, uint32_t *skip, const char *word)
{
    if (*skip > 0) {
        *skip -= 1;
    } else if (r->line->nwords < COMMAND_DEPTH) {
        r->line->words[r->line->nwords++] = word;
    }
}

static int read_arguments(struct reader *r)
{
    uint32_t skip = r->line->depth - 1;
    bool plain = false;
    int rc = 0;

    while (rc == 0 && r->at < r->argc) {
        const char *arg = r->argv[r->at++];
        if (plain || arg[0] != '-' || arg[1] == '\0') {
            command_add_word(r, &skip, arg);
        } else if (strcmp(arg, "--") == 0) {
            plain = true;
        } else {
            rc = arg[1] == '-' ? read_long(r, arg) : read_letters(r, arg);
        }
    }
    return rc;
}

/* ---- finding the command ---- */

static const struct command *find_sub(const struct command *c, const char *word)
{
    for (uint32_t i = 0; i < c->nsubs; i++) {
        if (strcmp(c->subs[i].name, word) == 0) {
            return &c->subs[i];
        }
    }
    return NULL;
}

/* Whether arg is a flag whose value is the next argument. */
static bool wants_next(const struct command *c, const char *arg)
{
    const bool is_long = arg[1] == '-';
    const uint32_t i = is_long ? find_name(c, hk_str(arg + 2)) : find_letter(c, arg[1]);
    const bool truth = i < count_flags(c) && flag_at(c, i)->type == COMMAND_BOOL;

    return !truth && (is_long ? !strchr(arg, '=') : arg[2] == '\0');
}

/* Descends as far as the words name commands. */
static void find_command(int argc, char *const *argv, struct command_line *ret)
{
    for (int i = 0; i < argc && ret->depth < COMMAND_DEPTH; i++) {
        const struct command *c = command_leaf(ret);
        if (strcmp(argv[i], "--") == 0) {
            return;
        }
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            i += wants_next(c, argv[i]);
            continue;
        }
        const struct command *sub = find_sub(c, argv[i]);
        if (!sub) {
            return;
        }
        ret->path[ret->depth++] = sub;
    }
}

int command_parse(const struct command *program, int argc, char *const *argv,
                  struct command_line *ret, struct hk_err *err)
{
    struct reader r = {ret, argv, argc, 0, err};

    *ret = (struct command_line){.path = {program}, .depth = 1};
    find_command(argc, argv, ret);
    const int rc = read_arguments(&r);
    if (rc == 0 && ret->depth == 1 && program->nsubs > 0 && ret->nwords > 0) {
        return hk_fail(err, HK_ENOTFOUND, "unknown command \"%s\" for \"%s\"", ret->words[0],
                       program->name);
    }
    return rc;
}

bool command_follow(const struct command *program, uint32_t nwords, const char *const *words,
                    struct command_line *ret)
{
    *ret = (struct command_line){.path = {program}, .depth = 1};
    for (uint32_t i = 0; i < nwords; i++) {
        const struct command *sub = find_sub(command_leaf(ret), words[i]);
        if (!sub || ret->depth == COMMAND_DEPTH) {
            return false;
        }
        ret->path[ret->depth++] = sub;
    }
    return true;
}

/* ---- help ---- */

static const char *type_word(enum command_type type)
{
    static const char *const words[] = {
        [COMMAND_BOOL] = "",
        [COMMAND_STRING] = " string",
        [COMMAND_INT] = " int",
        [COMMAND_INT32] = " int32",
        [COMMAND_LEVEL] = " Level",
        [COMMAND_DURATION] = " duration",
        [COMMAND_MODULES] = " moduleSpec",
    };

    return words[type];
}

const char *command_flag_word(const struct command_flag *f)
{
    const char *word = type_word(f->type);

    return word + (word[0] == ' ');
}

const struct command_flag *command_flag_at(const struct command *c, uint32_t i)
{
    return i < count_flags(c) ? flag_at(c, i) : NULL;
}

const char *command_flag_choices(const struct command_flag *f)
{
    static const struct {
        const char *flag, *choices;
    } rows[] = {{"format", "yaml json"}, {"action", "open close update"}, {"state", "Open Closed"}};

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (strcmp(f->name, rows[i].flag) == 0) {
            return rows[i].choices;
        }
    }
    return NULL;
}

static size_t flag_width(const struct command_flag *f)
{
    return strlen("  -x, --") + strlen(f->name) + strlen(type_word(f->type));
}

void command_flag_write_help(const struct command *c, const struct command_flag *f,
                             struct hk_buf *out)
{
    hk_buf_addf(out, "%s%s", f->help, f == &help_flag ? c->name : "");
    if (f->initial && f->initial[0] != '\0' && strcmp(f->initial, "0") != 0) {
        hk_buf_addf(out, f->type == COMMAND_STRING ? " (default \"%s\")" : " (default %s)",
                    f->initial);
    }
}

static void write_flag(const struct command *c, const struct command_flag *f, size_t width,
                       struct hk_buf *out)
{
    if (f->letter != 0) {
        hk_buf_addf(out, "  -%c, --%s%s", f->letter, f->name, type_word(f->type));
    } else {
        hk_buf_addf(out, "      --%s%s", f->name, type_word(f->type));
    }
    hk_buf_addf(out, "%*s", (int)(width - flag_width(f) + 3), "");
    command_flag_write_help(c, f, out);
    hk_buf_addc(out, '\n');
}

/* The flags from first up to end, by name. */
static void write_flags(const struct command *c, uint32_t first, uint32_t end, struct hk_buf *out)
{
    const struct command_flag *sorted[COMMAND_MAX_FLAGS];
    uint32_t n = 0;
    size_t width = 0;

    for (uint32_t i = first; i < end; i++) {
        const struct command_flag *f = flag_at(c, i);
        uint32_t k = n++;
        for (; k > 0 && strcmp(sorted[k - 1]->name, f->name) > 0; k--) {
            sorted[k] = sorted[k - 1];
        }
        sorted[k] = f;
        width = HK_MAX(width, flag_width(f));
    }
    for (uint32_t i = 0; i < n; i++) {
        write_flag(c, sorted[i], width, out);
    }
}

static void command_write_path(const struct command_line *l, struct hk_buf *out)
{
    for (uint32_t i = 0; i < l->depth; i++) {
        hk_buf_addf(out, "%s%s", i > 0 ? " " : "", l->path[i]->name);
    }
}

static void write_subs(const struct command *c, struct hk_buf *out)
{
    if (c->nsubs == 0) {
        return;
    }
    hk_buf_adds(out, "\nAvailable Commands:\n");
    for (uint32_t i = 0; i < c->nsubs; i++) {
        hk_buf_addf(out, "  %-11s %s\n", c->subs[i].name, c->subs[i].about);
    }
}

void command_write_usage(const struct command_line *l, struct hk_buf *out)
{
    const struct command *c = command_leaf(l);

    hk_buf_adds(out, "Usage:\n  ");
    command_write_path(l, out);
    hk_buf_adds(out, c->nsubs > 0 ? " [command]\n" : " [flags]\n");
    write_subs(c, out);
    hk_buf_adds(out, "\nFlags:\n");
    write_flags(c, 0, l->depth > 1 ? count_local(c) : count_flags(c), out);
    if (l->depth > 1) {
        hk_buf_adds(out, "\nGlobal Flags:\n");
        write_flags(c, count_local(c), count_flags(c), out);
    }
    if (c->nsubs > 0) {
        hk_buf_adds(out, "\nUse \"");
        command_write_path(l, out);
        hk_buf_adds(out, " [command] --help\" for more information about a command.\n");
    }
}

void command_write_help(const struct command_line *l, struct hk_buf *out)
{
    const struct command *c = command_leaf(l);
    const char *text = c->text ? c->text : c->about;

    if (text[0] != '\0') {
        hk_buf_addf(out, "%s\n\n", text);
    }
    command_write_usage(l, out);
}
