// SPDX-License-Identifier: Apache-2.0
// base64url(header) "." base64url(claims) "." base64url(MAC of the text before)
#include "apiserver/token.h"

#include "codec/base64.h"
#include "net/mac.h"

#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

enum { MAX_TOKEN_BYTES = 8192 };

static struct json named(struct hk_arena *a, struct hk_str name, struct hk_str uid)
{
    struct json obj = json_make_object();

    json_set_str(&obj, a, "name", name);
    json_set_str(&obj, a, "uid", uid);
    return obj;
}

static struct json claims_of(const struct rest_token *t, struct hk_arena *a)
{
    struct json claims = json_make_object();
    struct json audiences = json_make_array();
    struct json ours = json_make_object();

    json_push(&audiences, a, json_make_str(HK_STR(TOKEN_AUDIENCE)));
    json_set(&claims, a, "aud", t->audiences ? *t->audiences : audiences);
    json_set_int(&claims, a, "exp", t->expires_s);
    json_set_int(&claims, a, "iat", t->issued_s);
    json_set_int(&claims, a, "nbf", t->issued_s);
    json_set_cstr(&claims, a, "iss", TOKEN_AUDIENCE);
    json_set_str(&claims, a, "jti", t->id);
    json_set_str(&ours, a, "namespace", t->ns);
    json_set(&ours, a, "serviceaccount", named(a, t->account, t->account_uid));
    if (t->bound_kind.n > 0) {
        json_put(&ours, a, t->bound_kind, named(a, t->bound_name, t->bound_uid));
    }
    json_set(&claims, a, "kubernetes.io", ours);
    json_set_cstr(
        &claims, a, "sub",
        hk_arena_printf(a, "system:serviceaccount:%.*s:%.*s", HK_FMT(t->ns), HK_FMT(t->account)));
    return claims;
}

void token_sign(struct hk_str key, const struct rest_token *t, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    unsigned char mac[MAC_BYTES];
    const size_t from = out->len;
    const struct json claims = claims_of(t, &mem);

    json_write(&claims, &text);
    base64url_write(HK_STR(HEADER), out);
    hk_buf_addc(out, '.');
    base64url_write(hk_buf_str(&text), out);
    mac_sha256(key, (struct hk_str){out->data + from, out->len - from}, mac);
    hk_buf_addc(out, '.');
    base64url_write((struct hk_str){(const char *)mac, sizeof(mac)}, out);
}

/* ---- reading ---- */

/* Returns the claims of a token with a valid signature. */
static bool take_claims(struct hk_str key, struct hk_str text, struct hk_str *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf given = {0};
    unsigned char mac[MAC_BYTES];
    struct hk_str rest = text, header;

    if (text.n > MAX_TOKEN_BYTES || !hk_str_cut(&rest, '.', &header) ||
        !hk_str_cut(&rest, '.', ret) || !rest.s || !base64url_read(rest, &given) ||
        given.len != sizeof(mac)) {
        return false;
    }
    mac_sha256(key, (struct hk_str){text.s, header.n + 1 + ret->n}, mac);
    return mac_equal(mac, (const unsigned char *)given.data);
}

static void read_claims(const struct json *claims, struct rest_token *ret)
{
    static const char *const kinds[] = {"pod", "secret"};
    const struct json *ours = json_get(claims, "kubernetes.io");

    *ret = (struct rest_token){
        .ns = json_str_field(ours, "namespace"),
        .account = json_str_at(ours, "serviceaccount.name"),
        .account_uid = json_str_at(ours, "serviceaccount.uid"),
        .issued_s = json_int(json_get(claims, "iat"), 0),
        .expires_s = json_int(json_get(claims, "exp"), 0),
        .audiences = json_get(claims, "aud"),
        .id = json_str_field(claims, "jti"),
    };
    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        const struct json *bound = json_get(ours, kinds[i]);
        if (bound) {
            ret->bound_kind = hk_str(kinds[i]);
            ret->bound_name = json_str_field(bound, "name");
            ret->bound_uid = json_str_field(bound, "uid");
        }
    }
}

static bool is_for_us(const struct rest_token *t)
{
    for (uint32_t i = 0; i < json_len(t->audiences); i++) {
        if (hk_str_is(json_str(&t->audiences->items[i], HK_STR("")), TOKEN_AUDIENCE)) {
            return true;
        }
    }
    return false;
}

bool token_verify(struct hk_str key, struct hk_str text, int64_t now_s, struct hk_arena *mem,
                  struct rest_token *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0};
    struct hk_str coded;
    struct json *claims = hk_arena_alloc(mem, sizeof(*claims));

    if (!take_claims(key, text, &coded) || !base64url_read(coded, &plain) ||
        json_parse(hk_arena_str(mem, hk_buf_str(&plain)), 0, mem, claims, NULL) < 0) {
        return false;
    }
    read_claims(claims, ret);
    return ret->account.n > 0 && now_s < ret->expires_s && is_for_us(ret);
}
