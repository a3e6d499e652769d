// SPDX-License-Identifier: Apache-2.0
// Kubernetes' URL library: absolute URLs and absolute paths, as Go's url.ParseRequestURI reads them.
#include "cel/cel_priv.h"

#include <ctype.h>

/* ---- reading ---- */

static bool url_scheme_char(unsigned char c, bool first)
{
    return c < 0x80 && (isalpha(c) || (!first && (isdigit(c) || c == '+' || c == '-' || c == '.')));
}

/* Moves past "scheme:"; false if a colon comes first. */
static bool url_cut_scheme(struct hk_str *rest, struct hk_arena *a, struct hk_str *ret)
{
    size_t n = 0;

    while (n < rest->n && url_scheme_char((unsigned char)rest->s[n], n == 0)) {
        n++;
    }
    *ret = HK_STR("");
    if (n == 0 || n == rest->n || rest->s[n] != ':') {
        return n > 0 || rest->n == 0 || rest->s[0] != ':';
    }
    char *scheme = hk_arena_strndup(a, rest->s, n);
    for (size_t i = 0; i < n; i++) {
        scheme[i] = (char)tolower((unsigned char)scheme[i]);
    }
    *ret = (struct hk_str){scheme, n};
    rest->s += n + 1;
    rest->n -= n + 1;
    return true;
}

static int url_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10 : -1;
}

/* Whether each "%" is followed by two digits and nothing is a control character. */
static bool url_is_clean(struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        if (c < 0x20 || c == 0x7F) {
            return false;
        }
        if (c == '%' && (i + 2 >= s.n || url_hex(s.s[i + 1]) < 0 || url_hex(s.s[i + 2]) < 0)) {
            return false;
        }
    }
    return true;
}

static bool url_port_is_valid(struct hk_str port)
{
    for (size_t i = 0; i < port.n; i++) {
        if (port.s[i] < '0' || port.s[i] > '9') {
            return false;
        }
    }
    return true;
}

/* Splits "host:port" or "[::1]:port"; false if it is malformed. */
static bool url_split_host(struct hk_str all, struct hk_str *name, struct hk_str *port)
{
    const char *bracket = all.n > 0 && all.s[0] == '[' ? memrchr(all.s, ']', all.n) : NULL;
    const size_t from = bracket ? (size_t)(bracket - all.s) + 1 : 0;
    const char *colon = memrchr(all.s + from, ':', all.n - from);
    const size_t end = colon ? (size_t)(colon - all.s) : all.n;

    if (all.n > 0 && all.s[0] == '[' && !bracket) {
        return false;
    }
    *name = bracket ? (struct hk_str){all.s + 1, from - 2} : (struct hk_str){all.s, end};
    *port = colon ? (struct hk_str){colon + 1, all.n - end - 1} : HK_STR("");
    return url_port_is_valid(*port) && (!bracket || end == from);
}

static bool url_host_is_valid(struct hk_str host)
{
    struct hk_str name, port;

    for (size_t i = 0; i < host.n; i++) {
        if (strchr(" \"<>\\^`{|}", host.s[i])) {
            return false;
        }
    }
    return url_split_host(host, &name, &port);
}

/* Behind "//": the host, without user and password. */
static bool url_cut_host(struct hk_str *rest, struct hk_str *ret)
{
    const char *slash = memchr(rest->s, '/', rest->n);
    const struct hk_str all = {rest->s, slash ? (size_t)(slash - rest->s) : rest->n};
    const char *at = memrchr(all.s, '@', all.n);

    *ret = at ? (struct hk_str){at + 1, all.n - (size_t)(at + 1 - all.s)} : all;
    rest->s += all.n;
    rest->n -= all.n;
    return url_host_is_valid(*ret);
}

static bool url_parse(struct hk_str s, struct hk_arena *a, struct cel_url *u)
{
    struct hk_str rest = s;

    if (s.n == 0 || !url_is_clean(s) || !url_cut_scheme(&rest, a, &u->scheme)) {
        return false;
    }
    const char *mark = memchr(rest.s, '?', rest.n);
    u->query = HK_STR("");
    if (mark) {
        u->query = (struct hk_str){mark + 1, rest.n - (size_t)(mark + 1 - rest.s)};
        rest.n = (size_t)(mark - rest.s);
    }
    u->host = HK_STR("");
    if (rest.n == 0 || rest.s[0] != '/') {
        u->path = HK_STR(""); /* "mailto:x": opaque, but absolute */
        return u->scheme.n > 0 && rest.n > 0;
    }
    if (rest.n >= 2 && rest.s[1] == '/' && (u->scheme.n > 0 || rest.n < 3 || rest.s[2] != '/')) {
        rest.s += 2;
        rest.n -= 2;
        if (!url_cut_host(&rest, &u->host)) {
            return false;
        }
    }
    u->path = rest;
    return true;
}

bool url_is_valid(struct hk_str s, struct hk_arena *a)
{
    struct cel_url u;

    return url_parse(s, a, &u);
}

/* ---- writing ---- */

static void url_write_path(struct hk_str path, struct hk_buf *out)
{
    static const char plain[] = "-_.~$&+,/:;=@!*'()%[]";

    for (size_t i = 0; i < path.n; i++) {
        const unsigned char c = (unsigned char)path.s[i];
        if (c < 0x80 && (isalnum(c) || strchr(plain, c))) {
            hk_buf_addc(out, (char)c);
        } else {
            hk_buf_addf(out, "%%%02X", c);
        }
    }
}

void url_write(const struct cel_url *u, struct hk_buf *out)
{
    if (u->scheme.n > 0) {
        hk_buf_addf(out, "%.*s:", HK_FMT(u->scheme));
    }
    if (u->host.n > 0) {
        hk_buf_addf(out, "//%.*s", HK_FMT(u->host));
    }
    url_write_path(u->path, out);
    if (u->query.n > 0) {
        hk_buf_addf(out, "?%.*s", HK_FMT(u->query));
    }
}

/* ---- functions ---- */

static int url_new(struct cel_run *r, const struct cel_value *v, uint32_t n, struct cel_value *ret)
{
    struct cel_url *u = hk_arena_zalloc(r->a, sizeof(*u));
    const struct hk_str head = hk_str_head(v[0].s, 100);

    *ret = (struct cel_value){.kind = CEL_URL, .url = u};
    return url_parse(v[0].s, r->a, u)
               ? 0
               : cel_error(r,
                           "URL parse error during conversion from string: parse \"%.*s\": "
                           "invalid URI for request",
                           HK_FMT(head));
}

static int url_is_url(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    *ret = cel_of_bool(url_is_valid(v[0].s, r->a));
    return 0;
}

static int url_get_scheme(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    *ret = cel_of_str(v[0].url->scheme);
    return 0;
}

static int url_get_host(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    *ret = cel_of_str(v[0].url->host);
    return 0;
}

static int url_get_hostname(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    struct hk_str name = HK_STR(""), port = HK_STR("");

    url_split_host(v[0].url->host, &name, &port);
    *ret = cel_of_str(name);
    return 0;
}

static int url_get_port(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    struct hk_str name = HK_STR(""), port = HK_STR("");

    url_split_host(v[0].url->host, &name, &port);
    *ret = cel_of_str(port);
    return 0;
}

static int url_get_escaped_path(struct cel_run *r, const struct cel_value *v, uint32_t n,
                                struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    url_write_path(v[0].url->path, &text);
    *ret = text_value(&text, r->a);
    return 0;
}

/* "a%20b+c" of a query: "a b c". */
static struct cel_value url_unescape(struct hk_str s, struct hk_arena *a)
{
    char *out = hk_arena_alloc(a, s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] == '%' && i + 2 < s.n && url_hex(s.s[i + 1]) >= 0 && url_hex(s.s[i + 2]) >= 0) {
            out[n++] = (char)(url_hex(s.s[i + 1]) * 16 + url_hex(s.s[i + 2]));
            i += 2;
        } else {
            out[n++] = s.s[i] == '+' ? ' ' : s.s[i];
        }
    }
    return cel_of_str((struct hk_str){out, n});
}

/* Adds a value to the list of its key. */
static int url_add_query(struct cel_run *r, struct cel_entry *entries, uint32_t *len,
                         struct cel_value key, struct cel_value value)
{
    uint32_t at = 0;
    int rc = cel_spend(r, 1 + *len / 8);

    while (at < *len && !hk_str_eq(entries[at].key.s, key.s)) {
        at++;
    }
    struct cel_value *one = hk_arena_alloc(r->a, sizeof(*one));
    *one = value;
    const struct cel_value list = cel_of_list(one, 1, r->a);
    if (at == *len) {
        entries[(*len)++] = (struct cel_entry){key, list};
    } else if (rc == 0) {
        rc = cel_operate(r, OP_ADD, entries[at].value, list, &entries[at].value);
    }
    return rc;
}

static int url_get_query(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    struct hk_str rest = v[0].url->query, part;
    uint32_t most = 1, len = 0;
    int rc = 0;

    for (size_t i = 0; i < rest.n; i++) {
        most += rest.s[i] == '&';
    }
    struct cel_entry *entries = hk_arena_array(r->a, most, sizeof(*entries));
    while (rc == 0 && hk_str_cut(&rest, '&', &part)) {
        struct hk_str key;
        if (part.n == 0) {
            continue;
        }
        hk_str_cut(&part, '=', &key);
        rc = url_add_query(r, entries, &len, url_unescape(key, r->a),
                           url_unescape(part.s ? part : HK_STR(""), r->a));
    }
    *ret = cel_of_map(entries, len, r->a);
    return rc;
}

static const struct cel_func url_funcs[] = {
    {"url", "s:U", url_new, COST_TEXT},
    {"isURL", "s:b", url_is_url, COST_TEXT},
    {"getScheme", "U.:s", url_get_scheme, COST_ONE},
    {"getHost", "U.:s", url_get_host, COST_ONE},
    {"getHostname", "U.:s", url_get_hostname, COST_ONE},
    {"getPort", "U.:s", url_get_port, COST_ONE},
    {"getEscapedPath", "U.:s", url_get_escaped_path, COST_TEXT},
    {"getQuery", "U.:M", url_get_query, COST_TEXT},
};

const struct cel_lib cel_lib_url = {url_funcs, HK_LEN(url_funcs)};
