// SPDX-License-Identifier: Apache-2.0
// base64url(header) "." base64url(claims) "." base64url(mac of what is before)
#include "apiserver/token.h"

#include "codec/base64.h"
#include "net/mac.h"

#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

enum { MAX_TOKEN_BYTES = 8192 };

static void put_str(struct json *obj, struct hk_arena *a, const char *key, struct hk_str value)
{
    json_put(obj, a, hk_str(key), json_make_str(value));
}

static struct json named(struct hk_arena *a, struct hk_str name, struct hk_str uid)
{
    struct json obj = json_make_object();

    put_str(&obj, a, "name", name);
    put_str(&obj, a, "uid", uid);
    return obj;
}

static struct json claims_of(const struct rest_token *t, struct hk_arena *a)
{
    struct json claims = json_make_object();
    struct json audiences = json_make_array();
    struct json ours = json_make_object();

    json_push(&audiences, a, json_make_str(HK_STR(TOKEN_AUDIENCE)));
    json_put(&claims, a, HK_STR("aud"), t->audiences ? *t->audiences : audiences);
    json_put(&claims, a, HK_STR("exp"), json_make_int(t->expires_s));
    json_put(&claims, a, HK_STR("iat"), json_make_int(t->issued_s));
    json_put(&claims, a, HK_STR("nbf"), json_make_int(t->issued_s));
    put_str(&claims, a, "iss", HK_STR(TOKEN_AUDIENCE));
    put_str(&claims, a, "jti", t->id);
    put_str(&ours, a, "namespace", t->ns);
    json_put(&ours, a, HK_STR("serviceaccount"), named(a, t->account, t->account_uid));
    if (t->bound_kind.n > 0) {
        json_put(&ours, a, t->bound_kind, named(a, t->bound_name, t->bound_uid));
    }
    json_put(&claims, a, HK_STR("kubernetes.io"), ours);
    put_str(&claims, a, "sub",
            hk_str(hk_arena_printf(a, "system:serviceaccount:%.*s:%.*s", HK_FMT(t->ns),
                                   HK_FMT(t->account))));
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

/* Cuts the claims out of a token whose signature holds. */
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

static struct hk_str text_at(const struct json *v, const char *key, const char *member)
{
    return json_str(json_get(json_get(v, key), member), HK_STR(""));
}

static void read_claims(const struct json *claims, struct rest_token *ret)
{
    static const char *const kinds[] = {"pod", "secret"};
    const struct json *ours = json_get(claims, "kubernetes.io");

    *ret = (struct rest_token){
        .ns = json_str(json_get(ours, "namespace"), HK_STR("")),
        .account = text_at(ours, "serviceaccount", "name"),
        .account_uid = text_at(ours, "serviceaccount", "uid"),
        .issued_s = json_int(json_get(claims, "iat"), 0),
        .expires_s = json_int(json_get(claims, "exp"), 0),
        .audiences = json_get(claims, "aud"),
        .id = json_str(json_get(claims, "jti"), HK_STR("")),
    };
    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        if (json_get(ours, kinds[i])) {
            ret->bound_kind = hk_str(kinds[i]);
            ret->bound_name = text_at(ours, kinds[i], "name");
            ret->bound_uid = text_at(ours, kinds[i], "uid");
        }
    }
}

static bool is_for_us(const struct rest_token *t)
{
    for (uint32_t i = 0; json_is(t->audiences, JSON_ARRAY) && i < t->audiences->len; i++) {
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
