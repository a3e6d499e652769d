// SPDX-License-Identifier: Apache-2.0
// Writes requests: the URLs of the Kubernetes API and the query parameters of each verb. Every
// write has a body, deletions too: libcurl repeats a request by itself if a reused connection turns
// out dead, unless part of a body that it cannot rewind was sent.
#include "client/target.h"

/* ---- paths ---- */

void target_escape(struct hk_str s, struct hk_buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            hk_buf_addc(out, (char)c);
        } else {
            hk_buf_addf(out, "%%%02X", c);
        }
    }
}

static void add_segment(struct hk_buf *out, struct hk_str s)
{
    hk_buf_addc(out, '/');
    target_escape(s, out);
}

/* The collection; of all namespaces if a list names none. */
static void add_collection(const struct port_request *req, struct hk_buf *out)
{
    const struct api_kind *k = req->kind;

    hk_buf_adds(out, k->group[0] != '\0' ? "/apis/" : "/api/");
    api_kind_write_version(k, out);
    if (k->namespaced && req->ns.n > 0) {
        hk_buf_adds(out, "/namespaces");
        add_segment(out, req->ns);
    }
    add_segment(out, hk_str(k->plural));
}

static bool is_item(const struct port_request *req)
{
    switch (req->verb) {
    case PORT_LIST:
    case PORT_WATCH:
    case PORT_DELETE_COLLECTION:
        return false;
    case PORT_CREATE:
        return req->subresource != NULL;
    default:
        return true;
    }
}

/* ---- queries ---- */

static void add_param(struct hk_buf *out, const char *key, struct hk_str value)
{
    hk_buf_addc(out, memchr(out->data, '?', out->len) ? '&' : '?');
    hk_buf_addf(out, "%s=", key);
    target_escape(value, out);
}

static void add_number(struct hk_buf *out, const char *key, uint64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    add_param(out, key, hk_str(text));
}

static void add_if(struct hk_buf *out, const char *key, struct hk_str value)
{
    if (value.n > 0) {
        add_param(out, key, value);
    }
}

static void add_selectors(const struct port_request *req, struct hk_buf *out)
{
    add_if(out, "labelSelector", req->label_selector);
    add_if(out, "fieldSelector", req->field_selector);
}

static void add_list_params(const struct port_request *req, struct hk_buf *out)
{
    add_selectors(req, out);
    if (req->limit > 0) {
        add_number(out, "limit", req->limit);
    }
    if (req->cont.n > 0) {
        add_param(out, "continue", req->cont); /* contains the revision */
    } else if (req->rv > 0) {
        add_number(out, "resourceVersion", req->rv);
        add_param(out, "resourceVersionMatch",
                  hk_str(req->match == PORT_MATCH_EXACT ? "Exact" : "NotOlderThan"));
    }
}

/* Always requests bookmarks: they distinguish a quiet stream from a dead one. */
static void add_watch_params(const struct port_request *req, uint32_t timeout_s, struct hk_buf *out)
{
    const bool send = req->initial == PORT_INITIAL_SEND;
    const bool skip = req->initial == PORT_INITIAL_SKIP && req->rv == 0;

    add_param(out, "watch", HK_STR("true"));
    add_param(out, "allowWatchBookmarks", HK_STR("true"));
    add_number(out, "timeoutSeconds", timeout_s);
    add_selectors(req, out);
    if (req->rv > 0) {
        add_number(out, "resourceVersion", req->rv);
    }
    if (send || skip) {
        add_param(out, "sendInitialEvents", send ? HK_STR("true") : HK_STR("false"));
        add_param(out, "resourceVersionMatch", HK_STR("NotOlderThan"));
    }
}

static void add_write_params(const struct port_request *req, struct hk_buf *out)
{
    static const char *const words[] = {
        [PORT_VALIDATE_IGNORE] = "Ignore",
        [PORT_VALIDATE_WARN] = "Warn",
        [PORT_VALIDATE_STRICT] = "Strict",
    };

    add_if(out, "fieldManager", req->field_manager);
    add_param(out, "fieldValidation", hk_str(words[req->validate]));
    if (req->dry_run) {
        add_param(out, "dryRun", HK_STR("All"));
    }
    if (req->verb == PORT_PATCH && req->patch == PORT_PATCH_APPLY && req->force) {
        add_param(out, "force", HK_STR("true"));
    }
}

/* ---- bodies ---- */

static void add_preconditions(const struct port_request *req, struct hk_buf *out)
{
    if (req->if_uid.n == 0 && req->if_rv == 0) {
        return;
    }
    hk_buf_adds(out, ",\"preconditions\":{");
    if (req->if_uid.n > 0) {
        hk_buf_adds(out, "\"uid\":");
        json_write_str(req->if_uid, out);
    }
    if (req->if_rv > 0) {
        hk_buf_addf(out, "%s\"resourceVersion\":\"%llu\"", req->if_uid.n > 0 ? "," : "",
                    (unsigned long long)req->if_rv);
    }
    hk_buf_addc(out, '}');
}

static void add_delete_options(const struct port_request *req, struct hk_buf *out)
{
    static const char *const policies[] = {
        [PORT_PROPAGATE_BACKGROUND] = "Background",
        [PORT_PROPAGATE_FOREGROUND] = "Foreground",
        [PORT_PROPAGATE_ORPHAN] = "Orphan",
    };

    hk_buf_adds(out, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"");
    add_preconditions(req, out);
    if (req->propagation != PORT_PROPAGATE_DEFAULT) {
        hk_buf_addf(out, ",\"propagationPolicy\":\"%s\"", policies[req->propagation]);
    }
    if (req->has_grace) {
        hk_buf_addf(out, ",\"gracePeriodSeconds\":%lld", (long long)req->grace_s);
    }
    if (req->dry_run) {
        hk_buf_adds(out, ",\"dryRun\":[\"All\"]");
    }
    hk_buf_addc(out, '}');
}

/* ---- requests ---- */

static int target_check_request(const struct port_request *req, struct hk_err *err)
{
    const bool body =
        req->verb == PORT_CREATE || req->verb == PORT_UPDATE || req->verb == PORT_PATCH;
    const bool one = is_item(req) || req->verb == PORT_CREATE;

    if (body && !req->body) {
        return hk_fail(err, HK_EINVAL, "%s of %s without a body", port_verb_name(req->verb),
                       req->kind->plural);
    }
    if (is_item(req) && req->name.n == 0) {
        return hk_fail(err, HK_EINVAL, "%s of %s without a name", port_verb_name(req->verb),
                       req->kind->plural);
    }
    if (one && req->kind->namespaced != (req->ns.n > 0)) {
        return hk_fail(err, HK_EINVAL, "%s: namespace '%.*s'", req->kind->plural, HK_FMT(req->ns));
    }
    return 0;
}

static void write_body(const struct port_request *req, struct target *t)
{
    t->media = "application/json";
    if (req->verb == PORT_DELETE || req->verb == PORT_DELETE_COLLECTION) {
        add_delete_options(req, &t->body);
        return;
    }
    if (req->verb == PORT_PATCH) {
        t->media = port_patch_media(req->patch);
    }
    json_write(req->body, &t->body);
}

int target_make(const struct port_request *req, uint32_t timeout_s, struct target *ret,
                struct hk_err *err)
{
    static const char *const methods[] = {
        [PORT_GET] = "GET",       [PORT_LIST] = "GET",
        [PORT_WATCH] = "GET",     [PORT_CREATE] = "POST",
        [PORT_UPDATE] = "PUT",    [PORT_PATCH] = "PATCH",
        [PORT_DELETE] = "DELETE", [PORT_DELETE_COLLECTION] = "DELETE",
    };
    const int rc = target_check_request(req, err);

    if (rc < 0) {
        return rc;
    }
    *ret = (struct target){.method = methods[req->verb]};
    add_collection(req, &ret->path);
    if (is_item(req)) {
        add_segment(&ret->path, req->name);
        if (req->subresource) {
            add_segment(&ret->path, hk_str(req->subresource));
        }
    }
    switch (req->verb) {
    case PORT_GET:
        return 0;
    case PORT_LIST:
        add_list_params(req, &ret->path);
        return 0;
    case PORT_WATCH:
        add_watch_params(req, timeout_s, &ret->path);
        return 0;
    case PORT_DELETE:
        break;
    case PORT_DELETE_COLLECTION:
        add_selectors(req, &ret->path);
        break;
    default:
        add_write_params(req, &ret->path);
        break;
    }
    write_body(req, ret);
    return 0;
}

void target_fini(struct target *t)
{
    hk_buf_fini(&t->path);
    hk_buf_fini(&t->body);
}
