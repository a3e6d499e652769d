// SPDX-License-Identifier: Apache-2.0
// Parses the fields of a cron schedule into bit sets. cron_next.c computes the next run.
//
// Written here, because schedules must mean what they mean to robfig/cron, which Kubernetes and
// Volcano use: "?", "@every", "TZ=", its rule for days and its messages. C libraries follow Vixie's
// cron or Quartz, with other rules.
#include "codec/cron.h"

#include "codec/timefmt.h"

enum { FIELDS = 5, SECOND_NS = 1000000000 };

struct bounds {
    const char *what;
    unsigned min, max;
    const char *const *names; /* names of the values from min on */
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

static const struct bounds fields[FIELDS] = {
    {"minute", 0, 59, NULL},
    {"hour", 0, 23, NULL},
    {"day of month", 1, 31, NULL},
    {"month", 1, 12, month_names},
    {"day of week", 0, 6, weekday_names},
};

static const struct {
    const char *word, *fields;
} words[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

static bool is_any(struct hk_str s)
{
    return hk_str_is(s, "*") || hk_str_is(s, "?");
}

static int cron_parse_number(struct hk_str s, const struct bounds *b, bool named, unsigned *ret,
                             struct hk_err *err)
{
    int64_t n;

    for (unsigned i = 0; named && b->names && b->names[i]; i++) {
        if (s.n == strlen(b->names[i]) && strncasecmp(s.s, b->names[i], s.n) == 0) {
            *ret = b->min + i;
            return 0;
        }
    }
    if (!hk_str_int(s, &n) || n < 0 || n > UINT32_MAX) {
        return hk_fail(err, HK_EINVAL, "%s '%.*s', want a number", b->what, HK_FMT(s));
    }
    *ret = (unsigned)n;
    return 0;
}

/* "a", "a-b" or "*"; *ret_single: it was a single number. */
static int read_range(struct hk_str s, const struct bounds *b, unsigned *lo, unsigned *hi,
                      bool *ret_single, struct hk_err *err)
{
    struct hk_str rest = s;
    struct hk_str first;
    int rc;

    hk_str_cut(&rest, '-', &first);
    *ret_single = rest.s == NULL;
    if (is_any(first)) {
        *lo = b->min;
        *hi = b->max;
        return 0;
    }
    rc = cron_parse_number(first, b, true, lo, err);
    *hi = *lo;
    if (rc == 0 && !*ret_single) {
        rc = cron_parse_number(rest, b, true, hi, err);
    }
    return rc;
}

/* One range with its step. "*" sets *any, "*" with a step does not. */
static int cron_parse_part(struct hk_str s, const struct bounds *b, uint64_t *bits, bool *any,
                           struct hk_err *err)
{
    struct hk_str step_text = s;
    struct hk_str range;
    unsigned lo = 0;
    unsigned hi = 0;
    unsigned step = 1;
    bool single;
    int rc;

    hk_str_cut(&step_text, '/', &range);
    rc = read_range(range, b, &lo, &hi, &single, err);
    if (rc == 0 && step_text.s) {
        rc = cron_parse_number(step_text, b, false, &step, err);
        hi = single ? b->max : hi; /* "5/10" means from 5 on */
    }
    if (rc < 0) {
        return rc;
    }
    if (lo < b->min || hi > b->max || lo > hi || step == 0) {
        return hk_fail(err, HK_EINVAL, "%s '%.*s', want %u to %u", b->what, HK_FMT(s), b->min,
                       b->max);
    }
    *any = *any || (step == 1 && (range.s[0] == '*' || range.s[0] == '?'));
    for (unsigned i = lo; i <= hi; i += HK_MIN(step, b->max + 1)) {
        *bits |= 1ULL << i;
    }
    return 0;
}

static int cron_parse_field(struct hk_str s, const struct bounds *b, uint64_t *ret, bool *ret_any,
                            struct hk_err *err)
{
    struct hk_str part;
    uint64_t bits = 0;
    bool any = false;
    int rc = 0;

    for (struct hk_str rest = s; rc == 0 && hk_str_cut(&rest, ',', &part);) {
        if (part.n > 0) {
            rc = cron_parse_part(part, b, &bits, &any, err);
        }
    }
    *ret = bits;
    *ret_any = any;
    return rc;
}

/* Cuts off the next word. */
static bool next_word(struct hk_str *rest, struct hk_str *ret)
{
    size_t n = 0;

    *rest = hk_str_trim(*rest);
    while (n < rest->n && !strchr(" \t\r\n\v\f", rest->s[n])) {
        n++;
    }
    *ret = (struct hk_str){rest->s, n};
    *rest = (struct hk_str){rest->s + n, rest->n - n};
    return n > 0;
}

static int parse_fields(struct hk_str text, struct cron *ret, struct hk_err *err)
{
    uint64_t bits[FIELDS];
    bool any[FIELDS];
    struct hk_str word[FIELDS];
    struct hk_str rest = text;
    struct hk_str more;
    uint32_t n = 0;

    while (next_word(&rest, &more)) {
        if (n < FIELDS) {
            word[n] = more;
        }
        n++;
    }
    if (n != FIELDS) {
        return hk_fail(err, HK_EINVAL, "%u fields in '%.*s', want %d", n, HK_FMT(text), FIELDS);
    }
    for (uint32_t i = 0; i < FIELDS; i++) {
        const int rc = cron_parse_field(word[i], &fields[i], &bits[i], &any[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    *ret = (struct cron){
        .minutes = bits[0],
        .hours = bits[1],
        .days = bits[2],
        .months = bits[3],
        .weekdays = bits[4],
        .any_day = any[2],
        .any_weekday = any[4],
    };
    return 0;
}

static int parse_every(struct hk_str text, struct cron *ret, struct hk_err *err)
{
    int64_t ns;
    const int rc = duration_parse(text, &ns, err);

    if (rc == 0) {
        *ret = (struct cron){.every_ns = ns < SECOND_NS ? SECOND_NS : ns - ns % SECOND_NS};
    }
    return rc;
}

int cron_parse(struct hk_str text, struct cron *ret, struct hk_err *err)
{
    if (text.n == 0 || text.s[0] != '@') {
        return parse_fields(text, ret, err);
    }
    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (hk_str_is(text, words[i].word)) {
            return parse_fields(hk_str(words[i].fields), ret, err);
        }
    }
    if (hk_str_starts(text, "@every ")) {
        return parse_every((struct hk_str){text.s + 7, text.n - 7}, ret, err);
    }
    return hk_fail(err, HK_EINVAL, "'%.*s' is not a word that schedules may use", HK_FMT(text));
}
