// SPDX-License-Identifier: Apache-2.0
// Validation of names, with Kubernetes' messages. A name can break several rules at once (too long
// and malformed); each gets a message.
#include "admission/admission_priv.h"

#define LABEL_FMT "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define QUALIFIED_FMT "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

static const char subdomain_text[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '" LABEL_FMT "(\\." LABEL_FMT ")*')";
static const char label_text[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '" LABEL_FMT "')";
static const char label_1035_text[] =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
static const char qualified_text[] =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '" QUALIFIED_FMT "')";
static const char value_text[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(" QUALIFIED_FMT ")?')";
static const char config_key_text[] =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
static const char env_text[] =
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='";

/* ---- character classes ---- */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool name_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_lower(c) || name_is_digit(c) || (c >= 'A' && c <= 'Z');
}

/* True when s begins and ends with an `edge` character and contains only those and `extra`. */
static bool framed(struct hk_str s, bool (*edge)(char), const char *extra)
{
    if (s.n == 0 || !edge(s.s[0]) || !edge(s.s[s.n - 1])) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (!edge(s.s[i]) && (s.s[i] == '\0' || !strchr(extra, s.s[i]))) {
            return false;
        }
    }
    return true;
}

static bool lower_alnum(char c)
{
    return is_lower(c) || name_is_digit(c);
}

static bool is_subdomain(struct hk_str s)
{
    struct hk_str part;

    if (s.n == 0) {
        return false;
    }
    for (struct hk_str rest = s; hk_str_cut(&rest, '.', &part);) {
        if (!framed(part, lower_alnum, "-")) {
            return false;
        }
    }
    return true;
}

/* ---- rules ---- */

/* Collects the errors about one text: as field errors of q, or as messages in out. prefix is put
 * before each. */
struct complaint {
    struct admission_request *q;
    const struct path *path;
    struct hk_str text;
    struct hk_buf *out;
    const char *sep;
    const char *prefix;
    bool any;
};

HK_PRINTF(2, 3) static void complain(struct complaint *c, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&words, fmt, ap);
    va_end(ap);
    if (c->out) {
        hk_buf_addf(c->out, "%s%s%s", c->any ? c->sep : "", c->prefix, words.data);
    } else {
        cause_invalid_str(c->q, c->path, c->text, "%s%s", c->prefix, words.data);
    }
    c->any = true;
}

static void name_check_length(struct complaint *c, struct hk_str s, unsigned max)
{
    if (s.n > max) {
        complain(c, "must be no more than %u bytes", max);
    }
}

static void check_subdomain(struct complaint *c, struct hk_str s)
{
    name_check_length(c, s, 253);
    if (!is_subdomain(s)) {
        complain(c, "%s", subdomain_text);
    }
}

static void check_label(struct complaint *c, struct hk_str s)
{
    name_check_length(c, s, 63);
    if (!framed(s, lower_alnum, "-")) {
        complain(c, "%s", label_text);
    }
}

static void check_label_1035(struct complaint *c, struct hk_str s)
{
    name_check_length(c, s, 63);
    if (!framed(s, lower_alnum, "-") || !is_lower(s.s[0])) {
        complain(c, "%s", label_1035_text);
    }
}

static void check_segment(struct complaint *c, struct hk_str s)
{
    if (hk_str_is(s, ".") || hk_str_is(s, "..")) {
        complain(c, "may not be '%.*s'", HK_FMT(s));
    }
    if (s.n > 0 && memchr(s.s, '/', s.n)) {
        complain(c, "may not contain '/'");
    }
    if (s.n > 0 && memchr(s.s, '%', s.n)) {
        complain(c, "may not contain '%%'");
    }
}

static void check_qualified(struct complaint *c, struct hk_str s)
{
    struct hk_str rest = s;
    struct hk_str prefix = {0};
    struct hk_str name = {0};
    const bool split = s.n > 0 && memchr(s.s, '/', s.n);

    if (split) {
        hk_str_cut(&rest, '/', &prefix);
        if (memchr(rest.s, '/', rest.n)) {
            complain(c,
                     "a qualified name %s with an optional DNS subdomain prefix and '/' (e.g. "
                     "'example.com/MyName')",
                     qualified_text);
            return;
        }
        c->prefix = "prefix part ";
        if (prefix.n == 0) {
            complain(c, "must be non-empty");
        } else {
            check_subdomain(c, prefix);
        }
    }
    name = rest;
    c->prefix = "name part ";
    if (name.n == 0) {
        complain(c, "must be non-empty");
    }
    name_check_length(c, name, 63);
    if (!framed(name, is_alnum, "-_.")) {
        complain(c, "%s", qualified_text);
    }
}

static void name_check_label_value(struct complaint *c, struct hk_str s)
{
    name_check_length(c, s, 63);
    if (s.n > 0 && !framed(s, is_alnum, "-_.")) {
        complain(c, "%s", value_text);
    }
}

static void name_check_port_name(struct complaint *c, struct hk_str s)
{
    bool letter = false;
    bool valid = true;
    bool doubled = false;

    for (size_t i = 0; i < s.n; i++) {
        letter |= is_lower(s.s[i]);
        valid &= lower_alnum(s.s[i]) || s.s[i] == '-';
        doubled |= i > 0 && s.s[i] == '-' && s.s[i - 1] == '-';
    }
    if (s.n > 15) {
        complain(c, "must be no more than 15 characters");
    }
    if (!valid) {
        complain(c, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if (!letter) {
        complain(c, "must contain at least one letter (a-z)");
    }
    if (doubled) {
        complain(c, "must not contain consecutive hyphens");
    }
    if (s.n > 0 && (s.s[0] == '-' || s.s[s.n - 1] == '-')) {
        complain(c, "must not begin or end with a hyphen");
    }
}

static void check_config_key(struct complaint *c, struct hk_str s)
{
    bool valid = s.n > 0;

    for (size_t i = 0; i < s.n; i++) {
        valid &= is_alnum(s.s[i]) || s.s[i] == '-' || s.s[i] == '_' || s.s[i] == '.';
    }
    name_check_length(c, s, 253);
    if (!valid) {
        complain(c, "%s", config_key_text);
    }
    if (hk_str_is(s, ".")) {
        complain(c, "must not be '.'");
    } else if (hk_str_is(s, "..")) {
        complain(c, "must not be '..'");
    } else if (hk_str_starts(s, "..")) {
        complain(c, "must not start with '..'");
    }
}

static void check_env(struct complaint *c, struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] < ' ' || s.s[i] > '~' || s.s[i] == '=') {
            complain(c, "%s", env_text);
            return;
        }
    }
}

static void (*const rules[])(struct complaint *c, struct hk_str s) = {
    [NAME_SUBDOMAIN] = check_subdomain,
    [NAME_LABEL] = check_label,
    [NAME_LABEL_1035] = check_label_1035,
    [NAME_SEGMENT] = check_segment,
    [NAME_QUALIFIED] = check_qualified,
    [NAME_VALUE] = name_check_label_value,
    [NAME_PORT] = name_check_port_name,
    [NAME_CONFIG_KEY] = check_config_key,
    [NAME_ENV] = check_env,
};

bool name_check(struct admission_request *q, const struct path *p, struct hk_str text,
                enum name_rule rule)
{
    struct complaint c = {.q = q, .path = p, .text = text, .prefix = ""};

    rules[rule](&c, text);
    return !c.any;
}

bool name_write_errors(struct hk_str text, enum name_rule rule, const char *sep, struct hk_buf *out)
{
    struct complaint c = {.text = text, .out = out, .sep = sep, .prefix = ""};

    rules[rule](&c, text);
    return !c.any;
}

void name_check_labels(struct admission_request *q, const struct path *p, const struct json *labels)
{
    if (!json_is(labels, JSON_OBJECT)) {
        return;
    }
    for (uint32_t i = 0; i < labels->len; i++) {
        name_check(q, p, labels->members[i].key, NAME_QUALIFIED);
        name_check(q, p, json_str(&labels->members[i].value, HK_STR("")), NAME_VALUE);
    }
}

static void check_requirement(struct admission_request *q, const struct path *p,
                              const struct json *expr)
{
    const struct hk_str op = edit_str(expr, "operator");
    const uint32_t nvalues = edit_len(json_get(expr, "values"));
    const struct path values = path_field(p, "values");
    const struct path operator= path_field(p, "operator");
    const struct path key = path_field(p, "key");

    if (hk_str_is(op, "In") || hk_str_is(op, "NotIn")) {
        if (nvalues == 0) {
            cause_required(q, &values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
    } else if (hk_str_is(op, "Exists") || hk_str_is(op, "DoesNotExist")) {
        if (nvalues > 0) {
            cause_forbidden(q, &values,
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
    } else {
        cause_invalid_str(q, &operator, op, "not a valid selector operator");
    }
    name_check(q, &key, edit_str(expr, "key"), NAME_QUALIFIED);
    for (uint32_t i = 0; i < nvalues; i++) {
        const struct path value = path_index(&values, i);
        name_check(q, &value, json_str(json_item(json_get(expr, "values"), i), HK_STR("")),
                   NAME_VALUE);
    }
}

void name_check_selector(struct admission_request *q, const struct path *p,
                         const struct json *selector)
{
    const struct json *exprs = json_get(selector, "matchExpressions");
    const struct path labels = path_field(p, "matchLabels");
    const struct path list = path_field(p, "matchExpressions");

    name_check_labels(q, &labels, json_get(selector, "matchLabels"));
    for (uint32_t i = 0; i < edit_len(exprs); i++) {
        const struct path at = path_index(&list, i);
        check_requirement(q, &at, json_item(exprs, i));
    }
}
