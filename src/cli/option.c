// SPDX-License-Identifier: Apache-2.0
// The parser of option tables: finds the row of what was typed, checks the value by the row's type
// and bounds, and stores it.
#include "cli/option.h"

#include "base/vec.h"
#include "codec/quantity.h"
#include "codec/timefmt.h"

/* ---- reading a table ---- */

/* Counts *i down over the rows; included tables count in their place. */
static bool option_walk(const struct option_row *table, size_t base, uint32_t *i,
                        struct option_row *ret)
{
    for (; table->type != OPTION_END; table++) {
        if (table->type == OPTION_INCLUDE) {
            if (option_walk(table->include, base + table->offset, i, ret)) {
                return true;
            }
        } else if ((*i)-- == 0) {
            *ret = *table;
            ret->offset += base;
            return true;
        }
    }
    return false;
}

bool option_at(const struct option_row *table, uint32_t i, struct option_row *ret)
{
    return option_walk(table, 0, &i, ret);
}

bool option_is_argument(const struct option_row *row)
{
    return row->type == OPTION_ARGUMENT || row->type == OPTION_ARGUMENTS;
}

bool option_wants_value(const struct option_row *row)
{
    return row->type != OPTION_FLAG && row->type != OPTION_SET && row->type != OPTION_BOOL;
}

static bool is_name(struct hk_str typed, const char *name)
{
    bool same = typed.n == strlen(name);

    for (size_t i = 0; same && i < typed.n; i++) {
        same = typed.s[i] == name[i] || (typed.s[i] == '_' && name[i] == '-');
    }
    return same;
}

bool option_find(const struct option_row *table, struct hk_str name, struct option_row *ret)
{
    for (uint32_t i = 0; option_at(table, i, ret); i++) {
        if (ret->name && is_name(name, ret->name)) {
            return true;
        }
    }
    return false;
}

bool option_find_letter(const struct option_row *table, char letter, struct option_row *ret)
{
    for (uint32_t i = 0; option_at(table, i, ret); i++) {
        if (ret->letter != 0 && ret->letter == letter) {
            return true;
        }
    }
    return false;
}

/* The row of the n-th argument: the last row, if it accepts several, gets all the rest. */
static bool argument_row(const struct option_row *table, uint32_t n, struct option_row *ret)
{
    for (uint32_t i = 0; option_at(table, i, ret); i++) {
        if (option_is_argument(ret) && (n-- == 0 || ret->type == OPTION_ARGUMENTS)) {
            return true;
        }
    }
    return false;
}

/* ---- values ---- */

bool option_parse_bool(const char *value, bool *ret)
{
    static const char *const words[] = {"1", "t", "T", "TRUE",  "true",  "True",
                                        "0", "f", "F", "FALSE", "false", "False"};

    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            *ret = i < HK_LEN(words) / 2;
            return true;
        }
    }
    return false;
}

static int store_bool(const struct option_row *row, const char *value, bool *at, struct hk_err *err)
{
    if (!value) {
        *at = true;
        return 0;
    }
    if (!option_parse_bool(value, at)) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want true or false", row->name, value);
    }
    return 0;
}

static void put_int(const struct option_row *row, int64_t n, void *at)
{
    const uint16_t n16 = (uint16_t)n;
    const uint32_t n32 = (uint32_t)n;

    hk_assert(row->size == sizeof(n16) || row->size == sizeof(n32) || row->size == sizeof(n));
    memcpy(at,
           row->size == sizeof(n)     ? (const void *)&n
           : row->size == sizeof(n32) ? (const void *)&n32
                                      : (const void *)&n16,
           row->size);
}

static int store_int(const struct option_row *row, const char *value, void *at, struct hk_err *err)
{
    int64_t n;

    if (!hk_str_int(hk_str(value), &n) || n < row->min || n > row->max) {
        return row->max == INT64_MAX
                   ? hk_fail(err, HK_EINVAL, "option --%s is '%s', want a number of %lld or more",
                             row->name, value, (long long)row->min)
                   : hk_fail(err, HK_EINVAL, "option --%s is '%s', want a number from %lld to %lld",
                             row->name, value, (long long)row->min, (long long)row->max);
    }
    put_int(row, n, at);
    return 0;
}

static int store_duration(const struct option_row *row, const char *value, int64_t *at,
                          struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf least = {0};
    int64_t ns;

    if (duration_parse(hk_str(value), &ns, NULL) < 0 || ns < 0 || (ns == 0 && row->min == 1)) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want a duration such as 90s or 1h30m",
                       row->name, value);
    }
    if (ns < row->min) {
        duration_write(row->min, &least);
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want %s or more", row->name, value,
                       least.data);
    }
    *at = ns;
    return 0;
}

static int store_quantity(const struct option_row *row, const char *value, struct quantity *at,
                          struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf least = {0};
    struct quantity q;

    if (quantity_parse(hk_str(value), &q, NULL) < 0 || quantity_milli(q) < row->min) {
        quantity_write(quantity_of_milli(row->min, QUANTITY_BINARY_SI), &least);
        return hk_fail(err, HK_EINVAL,
                       "option --%s is '%s', want an amount of %s or more, such as 32 or 128Gi",
                       row->name, value, least.data);
    }
    *at = q;
    return 0;
}

/* The choices with a separator: "text, json". */
static void write_choices(const struct option_row *row, const char *between, struct hk_buf *out)
{
    struct hk_str rest = hk_str(row->choices), word;

    for (bool first = true; hk_str_cut(&rest, ' ', &word); first = false) {
        hk_buf_adds(out, first ? "" : between);
        hk_buf_addstr(out, word);
    }
}

static int store_choice(const struct option_row *row, const char *value, void *at,
                        struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};
    struct hk_str rest = hk_str(row->choices), word;

    for (int64_t n = 0; hk_str_cut(&rest, ' ', &word); n++) {
        if (hk_str_is(word, value)) {
            put_int(row, n, at);
            return 0;
        }
    }
    write_choices(row, ", ", &all);
    return hk_fail(err, HK_EINVAL, "option --%s is '%s', want one of: %s", row->name, value,
                   all.data);
}

static int store_at(const struct option_row *row, const char *value, void *at, struct hk_err *err)
{
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)at = row->min != 0;
        return 0;
    case OPTION_SET:
        put_int(row, row->min, at);
        return 0;
    case OPTION_BOOL:
        return store_bool(row, value, at, err);
    case OPTION_INT:
        return store_int(row, value, at, err);
    case OPTION_DURATION:
        return store_duration(row, value, at, err);
    case OPTION_QUANTITY:
        return store_quantity(row, value, at, err);
    case OPTION_CHOICE:
        return store_choice(row, value, at, err);
    case OPTION_TEXT:
    case OPTION_ARGUMENT:
        *(const char **)at = value;
        return 0;
    case OPTION_LIST:
    case OPTION_ARGUMENTS:
        if (!row->call) {
            hk_vec_push((struct option_list *)at, value);
            return 0;
        }
        return row->call(at, row, value, err);
    case OPTION_CALL:
        return row->call(at, row, value, err);
    default:
        break;
    }
    hk_assert(!"a row that holds no value");
    return 0;
}

int option_store(const struct option_row *row, const char *value, void *into, struct hk_err *err)
{
    union {
        struct quantity q;
        int64_t n;
        const char *text;
        bool on;
    } scratch = {0};

    hk_assert(!row->ignored || row->type != OPTION_LIST);
    return store_at(row, value, row->ignored ? (void *)&scratch : (char *)into + row->offset, err);
}

static void store_defaults(const struct option_row *table, void *into)
{
    struct option_row row;

    for (uint32_t i = 0; option_at(table, i, &row); i++) {
        struct hk_err err = {0};
        const int rc = row.dflt ? option_store(&row, row.dflt, into, &err) : 0;

        hk_assert(rc == 0);
    }
}

/* ---- arguments ---- */

struct option_arguments {
    const struct option_row *table;
    int argc, at;
    char *const *argv;
    uint32_t narguments; /* arguments that belong to no option */
    void *into;
    struct hk_err *err;
};

/* inline_value: the text after '=' or the letter; NULL: none. */
static int accept_option(struct option_arguments *a, const struct option_row *row,
                         const char *inline_value)
{
    const char *value = inline_value;

    if (value && (row->type == OPTION_FLAG || row->type == OPTION_SET)) {
        return hk_fail(a->err, HK_EINVAL, "option --%s takes no value", row->name);
    }
    if (!value && option_wants_value(row)) {
        if (a->at >= a->argc) {
            return hk_fail(a->err, HK_EINVAL, "option --%s wants %s", row->name, row->arg);
        }
        value = a->argv[a->at++];
    }
    return option_store(row, value, a->into, a->err);
}

static int accept_long(struct option_arguments *a, const char *arg)
{
    struct hk_str rest = hk_str(arg + 2), name;
    struct option_row row;

    hk_str_cut(&rest, '=', &name);
    if (!option_find(a->table, name, &row)) {
        return hk_fail(a->err, HK_EINVAL, "unknown option '--%.*s'", HK_FMT(name));
    }
    return accept_option(a, &row, rest.s);
}

/* Letters may be combined: "-it". The first that needs a value gets the rest. */
static int accept_letters(struct option_arguments *a, const char *arg)
{
    for (const char *p = arg + 1; *p != '\0'; p++) {
        struct option_row row;

        if (!option_find_letter(a->table, *p, &row)) {
            return hk_fail(a->err, HK_EINVAL, "unknown option '-%c'", *p);
        }
        if (option_wants_value(&row)) {
            const char *value = p[1] == '=' ? p + 2 : p + 1;
            return accept_option(a, &row, p[1] != '\0' ? value : NULL);
        }
        const int rc = accept_option(a, &row, NULL);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int accept_argument(struct option_arguments *a, const char *arg, bool *ret_plain)
{
    struct option_row row;

    if (!argument_row(a->table, a->narguments, &row)) {
        return hk_fail(a->err, HK_EINVAL, "unexpected '%s'", arg);
    }
    a->narguments++;
    *ret_plain = *ret_plain || row.command;
    return option_store(&row, arg, a->into, a->err);
}

int option_parse(const struct option_row *table, int argc, char *const *argv, void *into,
                 struct hk_err *err)
{
    struct option_arguments a = {table, argc, 0, argv, 0, into, err};
    bool plain = false;
    int rc = 0;

    store_defaults(table, into);
    while (rc == 0 && a.at < argc) {
        const char *arg = argv[a.at++];
        if (plain || arg[0] != '-' || arg[1] == '\0') {
            rc = accept_argument(&a, arg, &plain);
        } else if (strcmp(arg, "--") == 0) {
            plain = true;
        } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            return 1;
        } else {
            rc = arg[1] == '-' ? accept_long(&a, arg) : accept_letters(&a, arg);
        }
    }
    return rc;
}

/* ---- help ---- */

const struct option_row option_help = {
    .type = OPTION_FLAG, .letter = 'h', .name = "help", .help = "Show this page."};

void option_write_value(const struct option_row *row, struct hk_buf *out)
{
    if (row->choices) {
        write_choices(row, "|", out);
    } else if (row->arg) {
        hk_buf_adds(out, row->arg);
    }
}

void option_write_usage(const struct option_row *row, struct hk_buf *out)
{
    if (row->letter != 0) {
        hk_buf_addf(out, "-%c, ", row->letter);
    }
    hk_buf_addf(out, "--%s", row->name);
    if (row->type == OPTION_BOOL) {
        hk_buf_adds(out, "[=");
        option_write_value(row, out);
        hk_buf_addc(out, ']');
    } else if (option_wants_value(row)) {
        hk_buf_addc(out, ' ');
        option_write_value(row, out);
    }
}

void option_write_help(const struct option_row *row, struct hk_buf *out)
{
    const char *dflt = row->shown ? row->shown : row->dflt;

    hk_buf_adds(out, row->help);
    if (dflt) {
        hk_buf_addf(out, " Default: %s.", dflt);
    }
}

void option_write_ignored(const struct option_row *table, struct hk_buf *out)
{
    struct option_row row;
    bool first = true;

    for (uint32_t i = 0; option_at(table, i, &row); i++) {
        if (row.ignored) {
            hk_buf_addf(out, "%s--%s", first ? "" : ", ", row.name);
            first = false;
        }
    }
}
