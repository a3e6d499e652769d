// SPDX-License-Identifier: Apache-2.0
// Kubernetes' format library: named formats of strings, and validate(), which returns the problems
// of a string, or none. The messages are those of apimachinery's validation.
#include "cel/cel_priv.h"
#include "codec/base64.h"

#include <ctype.h>

enum named_rule {
    NAMED_PATTERN,
    NAMED_QUALIFIED,
    NAMED_UUID,
    NAMED_URI,
    NAMED_BYTE,
    NAMED_DATE,
    NAMED_DATETIME,
};

#define LABEL "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define LABEL_WANT                                                                                 \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_WANT                                                                             \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL_1035_WANT                                                                            \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "   \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "           \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define VALUE_WANT                                                                                 \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "             \
    "'my_value',  or '12345', regex used for validation is "                                       \
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define NAME_WANT                                                                                  \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "  \
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static const struct named_format {
    const char *name;
    enum named_rule rule;
    size_t longest; /* 0: any length */
    bool prefix;    /* the name may go on: a dash at its end is fine */
    const char *pattern, *want;
} formats[] = {
    {"dns1123Label", NAMED_PATTERN, 63, false, "^" LABEL "$", LABEL_WANT},
    {"dns1123LabelPrefix", NAMED_PATTERN, 63, true, "^" LABEL "$", LABEL_WANT},
    {"dns1123Subdomain", NAMED_PATTERN, 253, false, "^" LABEL "(\\." LABEL ")*$", SUBDOMAIN_WANT},
    {"dns1123SubdomainPrefix", NAMED_PATTERN, 253, true, "^" LABEL "(\\." LABEL ")*$",
     SUBDOMAIN_WANT},
    {"dns1035Label", NAMED_PATTERN, 63, false, "^[a-z]([-a-z0-9]*[a-z0-9])?$", LABEL_1035_WANT},
    {"dns1035LabelPrefix", NAMED_PATTERN, 63, true, "^[a-z]([-a-z0-9]*[a-z0-9])?$",
     LABEL_1035_WANT},
    {"labelValue", NAMED_PATTERN, 63, false, "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
     VALUE_WANT},
    {"qualifiedName", NAMED_QUALIFIED, 0, false, "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
     NAME_WANT},
    {"uuid", NAMED_UUID, 0, false, NULL, "does not match the UUID format"},
    {"uri", NAMED_URI, 0, false, NULL, "invalid URI for request"},
    {"byte", NAMED_BYTE, 0, false, NULL, "invalid base64"},
    {"date", NAMED_DATE, 0, false, NULL, "invalid date"},
    {"datetime", NAMED_DATETIME, 0, false, NULL, "invalid datetime"},
};

static const struct named_format *named_find(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(formats); i++) {
        if (hk_str_is(name, formats[i].name)) {
            return &formats[i];
        }
    }
    return NULL;
}

/* ---- validation ---- */

struct named_issues {
    struct hk_arena *a;
    struct cel_value items[8];
    uint32_t len;
};

static void named_tell(struct named_issues *i, const char *text)
{
    if (i->len < HK_LEN(i->items)) {
        i->items[i->len++] = cel_of_str(hk_str(text));
    }
}

static bool named_matches(const char *pattern, struct hk_str s)
{
    HK_AUTO(re2_freep) struct re2 *re = NULL;

    return re2_compile(hk_str(pattern), &re, NULL) == 0 && re2_matches(re, s);
}

static void named_check_length(struct named_issues *i, size_t longest, struct hk_str s)
{
    if (longest > 0 && s.n > longest) {
        named_tell(i, hk_arena_printf(i->a, "must be no more than %zu characters", longest));
    }
}

static void named_check_pattern(struct named_issues *i, const struct named_format *f,
                                struct hk_str s)
{
    /* Upstream replaces a dash at the end of a prefix by a letter. */
    if (f->prefix && s.n > 1 && s.s[s.n - 1] == '-') {
        s.n--;
        while (s.n > 1 && s.s[s.n - 1] == '-') {
            s.n--;
        }
    }
    named_check_length(i, f->longest, s);
    if (!named_matches(f->pattern, s)) {
        named_tell(i, f->want);
    }
}

/* "example.com/name": the prefix is a subdomain. */
static void named_check_qualified(struct named_issues *i, const struct named_format *f,
                                  struct hk_str s)
{
    struct hk_str rest = s, prefix;

    hk_str_cut(&rest, '/', &prefix);
    if (rest.s) {
        const struct named_format *subdomain = named_find(HK_STR("dns1123Subdomain"));
        if (prefix.n == 0) {
            named_tell(i, "prefix part must be non-empty");
        } else if (!named_matches(subdomain->pattern, prefix)) {
            named_tell(i, hk_arena_printf(i->a, "prefix part %s", subdomain->want));
        }
    }
    const struct hk_str name = rest.s ? rest : s;
    if (name.n == 0) {
        named_tell(i, "name part must be non-empty");
    } else if (name.n > 63) {
        named_tell(i, "name part must be no more than 63 characters");
    }
    if (!named_matches(f->pattern, name)) {
        named_tell(i, f->want);
    }
}

/* 32 digits, with or without each of the usual dashes. */
static bool named_is_uuid(struct hk_str s)
{
    size_t digits = 0;

    for (size_t i = 0; i < s.n; i++) {
        const bool place = digits == 8 || digits == 12 || digits == 16 || digits == 20;
        if (s.s[i] == '-' && place && s.s[i - 1] != '-') {
            continue;
        }
        if (!isxdigit((unsigned char)s.s[i])) {
            return false;
        }
        digits++;
    }
    return digits == 32;
}

static bool named_is_valid(enum named_rule rule, struct hk_str s, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};
    struct cel_time t;

    switch (rule) {
    case NAMED_UUID:
        return named_is_uuid(s);
    case NAMED_URI:
        return url_is_valid(s, a);
    case NAMED_BYTE:
        return base64_read(s, &bytes);
    case NAMED_DATE:
        return cel_date_parse(s, &t);
    default:
        return cel_time_parse(s, &t) == 0;
    }
}

static int named_validate(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    const struct named_format *f = named_find(v[0].s);
    struct named_issues issues = {.a = r->a};

    hk_assert(f);
    if (f->rule == NAMED_PATTERN) {
        named_check_pattern(&issues, f, v[1].s);
    } else if (f->rule == NAMED_QUALIFIED) {
        named_check_qualified(&issues, f, v[1].s);
    } else if (!named_is_valid(f->rule, v[1].s, r->a)) {
        named_tell(&issues, f->want);
    }
    if (issues.len == 0) {
        *ret = cel_none();
        return 0;
    }
    struct cel_value *items = hk_arena_array(r->a, issues.len, sizeof(*items));
    memcpy(items, issues.items, issues.len * sizeof(*items));
    *ret = cel_some(cel_of_list(items, issues.len, r->a), r->a);
    return 0;
}

/* ---- formats as values ---- */

static struct cel_value named_value(const struct named_format *f)
{
    return (struct cel_value){.kind = CEL_FORMAT, .s = hk_str(f->name)};
}

/* format.dns1123Label(): the name of the call names the format. */
static int named_constant(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    static const size_t front = sizeof("format.") - 1;
    const struct named_format *f =
        named_find((struct hk_str){r->name.s + front, r->name.n - front});

    hk_assert(f);
    *ret = named_value(f);
    return 0;
}

static int named_lookup(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    const struct named_format *f = named_find(v[0].s);

    *ret = f ? cel_some(named_value(f), r->a) : cel_none();
    return 0;
}

static const struct cel_func named_funcs[] = {
    {"format.named", "s:o", named_lookup, COST_ONE},
    {"validate", "F.s:P", named_validate, COST_NAMED},
    {"format.dns1123Label", ":F", named_constant, COST_ONE},
    {"format.dns1123LabelPrefix", ":F", named_constant, COST_ONE},
    {"format.dns1123Subdomain", ":F", named_constant, COST_ONE},
    {"format.dns1123SubdomainPrefix", ":F", named_constant, COST_ONE},
    {"format.dns1035Label", ":F", named_constant, COST_ONE},
    {"format.dns1035LabelPrefix", ":F", named_constant, COST_ONE},
    {"format.labelValue", ":F", named_constant, COST_ONE},
    {"format.qualifiedName", ":F", named_constant, COST_ONE},
    {"format.uuid", ":F", named_constant, COST_ONE},
    {"format.uri", ":F", named_constant, COST_ONE},
    {"format.byte", ":F", named_constant, COST_ONE},
    {"format.date", ":F", named_constant, COST_ONE},
    {"format.datetime", ":F", named_constant, COST_ONE},
};

const struct cel_lib cel_lib_named = {named_funcs, HK_LEN(named_funcs)};
