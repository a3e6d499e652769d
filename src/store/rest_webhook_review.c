// SPDX-License-Identifier: Apache-2.0
// AdmissionReviews: writes what a webhook is asked and reads what it answers. The form is that of
// admission.k8s.io/v1, which v1beta1 shares.
#include "codec/base64.h"
#include "store/rest_webhook_priv.h"

/* ---- the question ---- */

static void write_member(const char *key, struct hk_str value, struct hk_buf *out)
{
    hk_buf_addf(out, ",\"%s\":", key);
    json_write_str(value, out);
}

static void write_kind(const char *key, const struct api_kind *k, struct hk_buf *out)
{
    hk_buf_addf(out, ",\"%s\":{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"}", key, k->group,
                k->version, k->kind);
}

static void write_resource(const char *key, const struct api_kind *k, struct hk_buf *out)
{
    hk_buf_addf(out, ",\"%s\":{\"group\":\"%s\",\"version\":\"%s\",\"resource\":\"%s\"}", key,
                k->group, k->version, k->plural);
}

/* The object in the version of the row, without the name that the server has generated. */
static void write_object(const char *key, struct rest_call *c, const struct webhook_subject *s,
                         const struct rest_kind *row, const struct json *doc, struct hk_buf *out)
{
    hk_buf_addf(out, ",\"%s\":", key);
    if (!doc) {
        hk_buf_adds(out, "null");
        return;
    }
    struct json shown = *doc;
    if ((!s->kind && !row->storage) || s->unnamed) {
        shown = json_clone(doc, &c->mem);
    }
    if (s->unnamed) {
        json_del(rest_edit(&shown, &c->mem, "metadata"), "name");
    }
    if (!s->kind) {
        rest_view_show(row, &shown, &c->mem);
    }
    json_write(&shown, out);
}

void webhook_write_options(const struct webhook_subject *s, struct hk_buf *out)
{
    static const char *const kinds[] = {
        [ADMIT_CREATE] = "CreateOptions",
        [ADMIT_UPDATE] = "UpdateOptions",
        [ADMIT_DELETE] = "DeleteOptions",
    };

    if (s->verb == ADMIT_CONNECT) {
        hk_buf_adds(out, "null");
        return;
    }
    hk_buf_addf(out, "{\"kind\":\"%s\",\"apiVersion\":\"meta.k8s.io/v1\"", kinds[s->verb]);
    if (s->dry_run) {
        hk_buf_adds(out, ",\"dryRun\":[\"All\"]");
    }
    if (s->field_manager.n > 0 && s->verb != ADMIT_DELETE) {
        write_member("fieldManager", s->field_manager, out);
    }
    hk_buf_addc(out, '}');
}

void webhook_write_user(const struct port_user *u, struct hk_buf *out)
{
    hk_buf_adds(out, "{\"username\":");
    json_write_str(hk_str(u && u->name ? u->name : "system:apiserver"), out);
    if (u && u->uid) {
        write_member("uid", hk_str(u->uid), out);
    }
    hk_buf_adds(out, ",\"groups\":[");
    for (uint32_t i = 0; u && i < u->ngroups; i++) {
        hk_buf_adds(out, i > 0 ? "," : "");
        json_write_str(hk_str(u->groups[i]), out);
    }
    hk_buf_adds(out, u ? "]}" : "\"system:masters\",\"system:authenticated\"]}");
}

void webhook_write_review(struct rest_call *c, const struct webhook *h,
                          const struct webhook_subject *s, const struct rest_kind *row,
                          const char *uid, const char *user, struct hk_buf *out)
{
    hk_buf_addf(out,
                "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/%s\","
                "\"request\":{\"uid\":\"%s\"",
                h->version, uid);
    write_kind("kind", s->kind ? s->kind : row->kind, out);
    write_resource("resource", row->kind, out);
    if (s->sub) {
        write_member("subResource", hk_str(s->sub), out);
    }
    write_kind("requestKind", s->kind ? s->kind : s->row->kind, out);
    write_resource("requestResource", s->row->kind, out);
    if (s->sub) {
        write_member("requestSubResource", hk_str(s->sub), out);
    }
    if (!s->unnamed) {
        write_member("name", s->name, out);
    }
    if (s->ns.n > 0) {
        write_member("namespace", s->ns, out);
    }
    hk_buf_addf(out, ",\"operation\":\"%s\",\"userInfo\":%s", webhook_operation(s), user);
    write_object("object", c, s, row, s->obj, out);
    write_object("oldObject", c, s, row, s->old, out);
    hk_buf_addf(out, ",\"dryRun\":%s", s->dry_run ? "true" : "false");
    hk_buf_adds(out, ",\"options\":");
    webhook_write_options(s, out);
    hk_buf_adds(out, "}}\n");
}

/* ---- the answer ---- */

/* The text of a member, NULL when absent or empty. */
static const char *review_text(const struct json *obj, const char *key, struct hk_arena *mem)
{
    const struct hk_str v = json_str_field(obj, key);

    return v.n > 0 ? hk_arena_strndup(mem, v.s, v.n) : NULL;
}

static int check_envelope(const struct webhook *h, const char *uid, const struct json *doc,
                          struct hk_err *err)
{
    const struct hk_str version = json_str_field(doc, "apiVersion");
    const struct hk_str kind = json_str_field(doc, "kind");
    const struct hk_str have = json_str(json_at(doc, "response.uid"), HK_STR(""));
    char want[64];

    snprintf(want, sizeof(want), "admission.k8s.io/%s", h->version);
    if (!hk_str_is(version, want) || !hk_str_is(kind, "AdmissionReview")) {
        return hk_fail(err, HK_EINVAL,
                       "expected webhook response of %s, Kind=AdmissionReview, got %.*s, Kind=%.*s",
                       want, HK_FMT(hk_str_head(version, 64)), HK_FMT(hk_str_head(kind, 64)));
    }
    if (!json_is(json_get(doc, "response"), JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "webhook response was absent");
    }
    if (strcmp(h->version, "v1") == 0 && !hk_str_is(have, uid)) {
        return hk_fail(err, HK_EINVAL, "expected response.uid=\"%s\", got \"%.*s\"", uid,
                       HK_FMT(hk_str_head(have, 64)));
    }
    return 0;
}

static int read_patch(const struct webhook *h, const struct json *response, struct hk_arena *mem,
                      struct hk_str *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct hk_str coded = json_str_field(response, "patch");
    const struct hk_str type = json_str_field(response, "patchType");
    const bool typed = json_get(response, "patchType") || strcmp(h->version, "v1") != 0;

    *ret = HK_STR("");
    if (!h->mutating) {
        return coded.n == 0
                   ? 0
                   : hk_fail(err, HK_EINVAL, "validating webhook may not return response.patch");
    }
    if (coded.n == 0 && type.n == 0) {
        return 0;
    }
    if (!typed || coded.n == 0) {
        return hk_fail(err, HK_EINVAL, "webhook returned response.%s but not response.%s",
                       typed ? "patchType" : "patch", typed ? "patch" : "patchType");
    }
    if (type.n > 0 && !hk_str_is(type, "JSONPatch")) {
        return hk_fail(err, HK_EINVAL, "webhook returned invalid response.patchType of \"%.*s\"",
                       HK_FMT(hk_str_head(type, 64)));
    }
    if (!base64_read(coded, &text)) {
        return hk_fail(err, HK_EINVAL, "response.patch is not base64");
    }
    *ret = hk_arena_str(mem, hk_buf_str(&text));
    return 0;
}

int webhook_read_review(const struct webhook *h, const char *uid, struct hk_str body,
                        struct hk_arena *mem, struct webhook_verdict *ret, struct hk_err *err)
{
    struct json doc;
    int rc = json_parse(hk_arena_str(mem, body), 0, mem, &doc, err);

    if (rc == 0) {
        rc = check_envelope(h, uid, &doc, err);
    }
    const struct json *response = rc == 0 ? json_get(&doc, "response") : NULL;
    if (rc == 0) {
        rc = read_patch(h, response, mem, &ret->patch, err);
    }
    if (rc < 0) {
        return hk_wrap(err, rc, "received invalid webhook response");
    }
    const struct json *status = json_get(response, "status");
    const int64_t code = json_int(json_get(status, "code"), 0);
    ret->allowed = json_bool(json_get(response, "allowed"), false);
    ret->code = code < 400 || code > 599 ? 400 : (int)code;
    ret->reason = review_text(status, "reason", mem);
    ret->message = review_text(status, "message", mem);
    ret->warnings = json_get(response, "warnings");
    return 0;
}
