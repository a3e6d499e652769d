// SPDX-License-Identifier: Apache-2.0
// Maps tokens and client certificates to users.
#include "apiserver/auth.h"

#include "base/arena.h"
#include "base/vec.h"

#include <strings.h>

struct row {
    struct hk_str token;
    struct auth_user user;
};

struct auth {
    struct hk_arena mem;
    HK_VEC(struct row) rows;
};

/* Cuts one field off the line; quoted fields may contain commas. */
static bool cut_field(struct hk_str *line, struct hk_str *ret)
{
    if (line->s && line->n > 0 && line->s[0] == '"') {
        const char *end = memchr(line->s + 1, '"', line->n - 1);
        if (!end) {
            return false;
        }
        *ret = (struct hk_str){line->s + 1, (size_t)(end - line->s - 1)};
        line->n -= (size_t)(end + 1 - line->s);
        line->s = end + 1;
        if (line->n == 0) {
            line->s = NULL;
            return true;
        }
        struct hk_str nothing;
        return hk_str_cut(line, ',', &nothing) && nothing.n == 0;
    }
    if (!hk_str_cut(line, ',', ret)) {
        return false;
    }
    *ret = hk_str_trim(*ret);
    return true;
}

static void add_groups(struct auth *a, struct hk_str list, struct auth_user *u)
{
    const char **groups = hk_arena_array(&a->mem, list.n + 1, sizeof(*groups));
    struct hk_str part;

    while (hk_str_cut(&list, ',', &part)) {
        part = hk_str_trim(part);
        if (part.n > 0) {
            groups[u->ngroups++] = hk_arena_strndup(&a->mem, part.s, part.n);
        }
    }
    u->groups = groups;
}

static int auth_parse_line(struct auth *a, struct hk_str line, struct hk_err *err)
{
    struct hk_str token, name, uid, groups = HK_STR("");
    struct row row = {0};

    if (!cut_field(&line, &token) || !cut_field(&line, &name) || !cut_field(&line, &uid) ||
        token.n == 0 || name.n == 0) {
        return hk_fail(err, HK_EINVAL, "want token,user,uid and optionally \"group,group\"");
    }
    if (line.s && !cut_field(&line, &groups)) {
        return hk_fail(err, HK_EINVAL, "the groups have no closing quote");
    }
    row.token = hk_arena_str(&a->mem, token);
    row.user.name = hk_arena_strndup(&a->mem, name.s, name.n);
    row.user.uid = hk_arena_strndup(&a->mem, uid.s, uid.n);
    add_groups(a, groups, &row.user);
    hk_vec_push(&a->rows, row);
    return 0;
}

int auth_parse(struct hk_str text, struct auth **ret, struct hk_err *err)
{
    struct auth *a = hk_zalloc(sizeof(*a));
    struct hk_str line;

    for (uint32_t number = 1; hk_str_cut(&text, '\n', &line); number++) {
        line = hk_str_trim(line);
        if (line.n == 0 || line.s[0] == '#') {
            continue;
        }
        const int rc = auth_parse_line(a, line, err);
        if (rc < 0) {
            auth_free(a);
            return hk_wrap(err, rc, "line %u", number);
        }
    }
    *ret = a;
    return 0;
}

void auth_free(struct auth *a)
{
    if (a) {
        hk_vec_fini(&a->rows);
        hk_arena_fini(&a->mem);
        hk_free(a);
    }
}

/* Compares in constant time: the duration does not show how much of a guess was right. */
static bool same_secret(struct hk_str a, struct hk_str b)
{
    unsigned char diff = a.n != b.n;

    for (size_t k = 0; k < a.n; k++) {
        diff |= (unsigned char)(a.s[k] ^ (b.n > 0 ? b.s[k % b.n] : 1));
    }
    return diff == 0;
}

struct auth_user auth_by_token(const struct auth *a, struct hk_str token)
{
    struct auth_user found = {0};

    for (uint32_t k = 0; k < a->rows.len; k++) {
        if (same_secret(a->rows.at[k].token, token)) {
            found = a->rows.at[k].user;
        }
    }
    return found;
}

static bool starts_nocase(struct hk_str s, const char *prefix)
{
    const size_t n = strlen(prefix);

    return s.n >= n && strncasecmp(s.s, prefix, n) == 0;
}

bool auth_bearer(const struct http_request *q, struct hk_str *ret_token)
{
    const struct hk_str header = http_request_header(q, "Authorization");
    const size_t n = strlen("Bearer ");

    if (!starts_nocase(header, "Bearer ")) {
        return false;
    }
    *ret_token = hk_str_trim((struct hk_str){header.s + n, header.n - n});
    return true;
}

bool auth_by_certificate(const struct http_request *q, struct auth_user *ret)
{
    if (http_request_header(q, "Authorization").n > 0 || !q->client_cert_cn) {
        return false;
    }
    *ret = (struct auth_user){
        .name = q->client_cert_cn,
        .groups = q->client_cert_orgs,
        .ngroups = q->nclient_cert_orgs,
    };
    return true;
}

bool auth_is_admin(const struct auth_user *u)
{
    for (uint32_t k = 0; k < u->ngroups; k++) {
        if (strcmp(u->groups[k], "system:masters") == 0) {
            return true;
        }
    }
    return false;
}
