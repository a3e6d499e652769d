// SPDX-License-Identifier: Apache-2.0
// CertificateSigningRequests: their fields, and who may approve and sign them. The server reads the
// request itself for these rules (admission_lookup.read_request).
#include "admission/admission_priv.h"

#include "codec/base64.h"

#define LEGACY "kubernetes.io/legacy-unknown"
#define API_CLIENT "kubernetes.io/kube-apiserver-client"

enum { MIN_EXPIRATION_S = 600, MAX_DOMAIN = 253, MAX_SIGNER_PATH = 253 + 63 + 1 };

static const char *const all_usages[] = {
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
    NULL,
};

/* ---- the spec ---- */

/* Reads the request; *ret_orgs is NULL when nothing reads requests here. */
static int read_request(struct admission_request *q, const char *const **ret_orgs, uint32_t *ret_n,
                        struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf pem = {0};

    *ret_orgs = NULL;
    *ret_n = 0;
    if (!q->lookup || !q->lookup->read_request) {
        return 0;
    }
    if (!base64_read(edit_str(json_get(q->obj, "spec"), "request"), &pem)) {
        return hk_fail(err, HK_EINVAL, "PEM block type must be CERTIFICATE REQUEST");
    }
    return q->lookup->read_request(hk_buf_str(&pem), q->mem, ret_orgs, ret_n, err);
}

static void check_request(struct admission_request *q, const struct path *spec)
{
    const struct path p = path_field(spec, "request");
    const char *const *orgs;
    struct hk_err err = {0};
    uint32_t n;

    if (read_request(q, &orgs, &n, &err) < 0) {
        cause_invalid(q, &p, json_at(q->obj, "spec.request"), "%s", err.text);
    }
}

static void check_usages(struct admission_request *q, const struct path *spec)
{
    const struct path p = path_field(spec, "usages");
    const struct json *list = json_at(q->obj, "spec.usages");

    if (edit_len(list) == 0) {
        cause_required(q, &p, NULL);
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(&p, i);
        const struct hk_str usage = json_str(&list->items[i], HK_STR(""));
        bool known = false, twice = false;
        for (size_t k = 0; all_usages[k]; k++) {
            known = known || hk_str_is(usage, all_usages[k]);
        }
        if (!known) {
            cause_unsupported(q, &at, usage, all_usages);
            return; /* one is enough: a list may be long */
        }
        for (uint32_t k = 0; k < i && k < HK_LEN(all_usages); k++) {
            twice = twice || json_equal(&list->items[k], &list->items[i]);
        }
        if (twice) {
            cause_duplicate(q, &at, usage);
            return;
        }
    }
}

/* Each part between dots obeys the rule. */
static void check_labels(struct admission_request *q, const struct path *p, struct hk_str text,
                         enum name_rule rule)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    struct hk_str rest = text, label;

    while (hk_str_cut(&rest, '.', &label)) {
        if (!name_write_errors(label, rule, ", ", &why)) {
            cause_invalid_str(q, p, text, "validating label \"%.*s\": %s", HK_FMT(label), why.data);
            return;
        }
    }
}

static void check_signer(struct admission_request *q, const struct path *spec)
{
    const struct path p = path_field(spec, "signerName");
    const struct hk_str name = edit_str(json_get(q->obj, "spec"), "signerName");
    struct hk_str path = name, domain;

    if (name.n == 0) {
        cause_required(q, &p, NULL);
        return;
    }
    if (hk_str_is(name, LEGACY)) {
        cause_invalid_str(q, &p, name, "the legacy signerName is not allowed via this API version");
        return;
    }
    hk_str_cut(&path, '/', &domain);
    if (!path.s || memchr(path.s, '/', path.n)) {
        cause_invalid_str(q, &p, name,
                          "must be a fully qualified domain and path of the form "
                          "'example.com/signer-name'");
        return;
    }
    if (domain.n > MAX_DOMAIN) {
        cause_too_long(q, &p, MAX_DOMAIN);
    }
    check_labels(q, &p, domain, NAME_LABEL);
    if (!memchr(domain.s, '.', domain.n)) {
        cause_invalid_str(q, &p, domain,
                          "should be a domain with at least two segments separated by dots");
    }
    check_labels(q, &p, path, NAME_SUBDOMAIN);
    if (path.n > MAX_SIGNER_PATH) {
        cause_too_long(q, &p, MAX_SIGNER_PATH);
    }
}

static void check_expiration(struct admission_request *q, const struct path *spec)
{
    const struct path p = path_field(spec, "expirationSeconds");
    const struct json *v = json_at(q->obj, "spec.expirationSeconds");

    if (v && json_int(v, 0) < MIN_EXPIRATION_S) {
        cause_invalid(q, &p, v, "may not specify a duration less than 600 seconds (10 minutes)");
    }
}

/* ---- conditions ---- */

static uint32_t count_conditions(const struct json *obj, const char *type)
{
    const struct json *list = json_at(obj, "status.conditions");
    uint32_t n = 0;

    for (uint32_t i = 0; i < edit_len(list); i++) {
        n += hk_str_is(edit_str(&list->items[i], "type"), type);
    }
    return n;
}

static bool is_verdict(struct hk_str type)
{
    return hk_str_is(type, "Approved") || hk_str_is(type, "Denied") || hk_str_is(type, "Failed");
}

static void check_condition(struct admission_request *q, const struct path *at,
                            const struct json *condition)
{
    static const char *const only_true[] = {"True", NULL};
    static const char *const known[] = {"False", "True", "Unknown", NULL};
    const struct path type = path_field(at, "type"), status = path_field(at, "status");
    const struct hk_str is = edit_str(condition, "status");

    if (edit_str(condition, "type").n == 0) {
        cause_required(q, &type, NULL);
    }
    if (is.n == 0) {
        cause_required(q, &status, NULL);
    } else if (is_verdict(edit_str(condition, "type")) && !hk_str_is(is, "True")) {
        cause_unsupported(q, &status, is, only_true);
    } else if (!hk_str_is(is, "True") && !hk_str_is(is, "False") && !hk_str_is(is, "Unknown")) {
        cause_unsupported(q, &status, is, known);
    }
}

static void check_conditions(struct admission_request *q)
{
    const struct path status = path_field(NULL, "status");
    const struct path p = path_field(&status, "conditions");
    const struct json *list = json_at(q->obj, "status.conditions");
    const uint32_t before = q->errors.len;

    for (uint32_t i = 0; i < edit_len(list) && q->errors.len == before; i++) {
        const struct path at = path_index(&p, i);
        const struct hk_str type = edit_str(&list->items[i], "type");
        check_condition(q, &at, &list->items[i]);
        for (uint32_t k = 0; is_verdict(type) && k < i; k++) {
            if (hk_str_eq(type, edit_str(&list->items[k], "type"))) {
                cause_duplicate(q, &at, type);
                break;
            }
        }
    }
    if (count_conditions(q->obj, "Approved") > 0 && count_conditions(q->obj, "Denied") > 0) {
        cause_invalid_str(q, &p, HK_STR("Denied"),
                          "Approved and Denied conditions are mutually exclusive");
    }
}

/* Verdicts stay, and only an approval adds one. */
static void check_verdicts(struct admission_request *q, bool approval)
{
    static const char *const types[] = {"Approved", "Denied", "Failed"};
    const struct path status = path_field(NULL, "status");
    const struct path p = path_field(&status, "conditions");

    for (size_t i = 0; i < HK_LEN(types); i++) {
        const uint32_t before = count_conditions(q->old, types[i]);
        const uint32_t now = count_conditions(q->obj, types[i]);
        if (now < before) {
            cause_forbidden(q, &p, "updates may not remove a condition of type \"%s\"", types[i]);
        } else if (now > before && !approval && strcmp(types[i], "Failed") != 0) {
            cause_forbidden(q, &p, "updates may not add a condition of type \"%s\"", types[i]);
        }
    }
}

static bool certificate_changes(const struct admission_request *q)
{
    return !hk_str_eq(edit_str(json_get(q->obj, "status"), "certificate"),
                      edit_str(json_get(q->old, "status"), "certificate"));
}

static void check_certificate(struct admission_request *q)
{
    const struct path status = path_field(NULL, "status");
    const struct path p = path_field(&status, "certificate");
    HK_AUTO(hk_buf_fini) struct hk_buf pem = {0};

    if (!certificate_changes(q)) {
        return;
    }
    if (edit_str(json_get(q->old, "status"), "certificate").n > 0) {
        cause_forbidden(q, &p, "updates may not modify existing certificate content");
        return;
    }
    if (!base64_read(edit_str(json_get(q->obj, "status"), "certificate"), &pem) ||
        !hk_str_contains(hk_buf_str(&pem), "-----BEGIN CERTIFICATE-----")) {
        cause_invalid_str(q, &p, HK_STR("<certificate data>"),
                          "must contain at least one CERTIFICATE PEM block");
    }
}

void admit_certificate_validate(struct admission_request *q)
{
    const struct path spec = path_field(NULL, "spec");

    if (!q->old) {
        check_request(q, &spec);
        check_usages(q, &spec);
        check_signer(q, &spec);
        check_expiration(q, &spec);
    }
    check_conditions(q);
    if (q->old) {
        check_verdicts(q, q->subresource && strcmp(q->subresource, "approval") == 0);
        check_certificate(q);
    }
}

/* ---- rights ---- */

/* Whether the user has the verb on the signer, or on all signers of its domain. */
static bool may_use_signer(const struct admission_request *q, const char *verb, struct hk_str name)
{
    struct hk_str rest = name, domain;
    struct rights_ask ask = {.verb = hk_str(verb),
                             .group = HK_STR("certificates.k8s.io"),
                             .resource = HK_STR("signers"),
                             .name = name};

    if (rights_allow(q->rights, &ask)) {
        return true;
    }
    hk_str_cut(&rest, '/', &domain);
    ask.name = hk_str(hk_arena_printf(q->mem, "%.*s/*", HK_FMT(domain)));
    return rights_allow(q->rights, &ask);
}

static int check_signer_right(const struct admission_request *q, const char *verb,
                              struct hk_err *err)
{
    const struct hk_str name = edit_str(json_get(q->old, "spec"), "signerName");

    if (may_use_signer(q, verb, name)) {
        return 0;
    }
    return hk_fail(err, HK_EDENIED, "user not permitted to %s requests with signerName \"%.*s\"",
                   verb, HK_FMT(name));
}

int admit_certificate_approval(struct admission_request *q, struct hk_err *err)
{
    return check_signer_right(q, "approve", err);
}

int admit_certificate_signing(struct admission_request *q, struct hk_err *err)
{
    const bool fails = count_conditions(q->obj, "Failed") != count_conditions(q->old, "Failed");

    return certificate_changes(q) || fails ? check_signer_right(q, "sign", err) : 0;
}

/* Nobody becomes an administrator by a certificate. */
int admit_certificate_subject(struct admission_request *q, struct hk_err *err)
{
    const char *const *orgs;
    uint32_t n;

    if (!hk_str_is(edit_str(json_get(q->obj, "spec"), "signerName"), API_CLIENT) ||
        read_request(q, &orgs, &n, NULL) < 0) {
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(orgs[i], "system:masters") == 0) {
            return hk_fail(err, HK_EDENIED,
                           "use of " API_CLIENT " signer with system:masters group is not allowed");
        }
    }
    return 0;
}
