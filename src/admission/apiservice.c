// SPDX-License-Identifier: Apache-2.0
// APIServices: the port of their Service, and what they may say. Upstream: ValidateAPIService in
// kube-aggregator.
#include "admission/admission_priv.h"

#include "codec/base64.h"

enum { HTTPS_PORT = 443, GROUP_PRIORITY_MAX = 20000, VERSION_PRIORITY_MAX = 1000 };

int admit_apiservice_default(struct admission_request *q, struct hk_err *err)
{
    struct json *service = edit_at(q->obj, "spec.service");

    if (json_is(service, JSON_OBJECT)) {
        edit_default_int(service, q->mem, "port", HTTPS_PORT);
    }
    return 0;
}

static void check_full_name(struct admission_request *q, const struct json *spec)
{
    const struct path meta = {.key = HK_STR("metadata"), .form = PATH_FIELD};
    const struct path p = path_field(&meta, "name");
    const struct hk_str name = json_str_at(q->obj, "metadata.name");
    const char *want = hk_arena_printf(q->mem, "%.*s.%.*s", HK_FMT(json_str_field(spec, "version")),
                                       HK_FMT(json_str_field(spec, "group")));

    if (!hk_str_is(name, want)) {
        cause_invalid_str(q, &p, name, "must be `spec.version+\".\"+spec.group`: \"%s\"", want);
    }
}

static void check_group_version(struct admission_request *q, const struct path *up,
                                const struct json *spec)
{
    const struct path group = path_field(up, "group"), version = path_field(up, "version");
    const struct hk_str g = json_str_field(spec, "group"), v = json_str_field(spec, "version");

    if (g.n > 0) {
        name_check(q, &group, g, NAME_SUBDOMAIN);
    } else if (!hk_str_is(v, "v1")) {
        cause_required(q, &group, "only v1 may have an empty group and it better be legacy kube");
    }
    name_check(q, &version, v, NAME_LABEL_1035);
}

static void check_priority(struct admission_request *q, const struct path *up,
                           const struct json *spec, const char *key, int64_t max)
{
    const struct path p = path_field(up, key);
    const struct json zero = json_make_int(0), *given = json_get(spec, key);
    const int64_t n = json_int(given, 0);

    if (n <= 0 || n > max) {
        cause_invalid(q, &p, given ? given : &zero, "must be positive and less than %lld",
                      (long long)max);
    }
}

static void check_local(struct admission_request *q, const struct path *up, const struct json *spec,
                        bool insecure)
{
    const struct path bundle = path_field(up, "caBundle");
    const struct path skip = path_field(up, "insecureSkipTLSVerify");

    if (json_str_field(spec, "caBundle").n > 0) {
        cause_invalid_str(q, &bundle, HK_STR("..."), "local APIServices may not have a caBundle");
    }
    if (insecure) {
        cause_invalid(q, &skip, json_get(spec, "insecureSkipTLSVerify"),
                      "local APIServices may not have insecureSkipTLSVerify");
    }
}

static void check_remote(struct admission_request *q, const struct path *up,
                         const struct json *spec, bool insecure)
{
    const struct path at = path_field(up, "service"), port = path_field(&at, "port");
    const struct path skip = path_field(up, "insecureSkipTLSVerify");
    const struct path bundle = path_field(up, "caBundle");
    const struct json *service = json_get(spec, "service");
    const int64_t n = json_int(json_get(service, "port"), HTTPS_PORT);
    const struct hk_str pem = json_str_field(spec, "caBundle");
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    cause_check_present(q, &at, service, "namespace");
    cause_check_present(q, &at, service, "name");
    if (n < 1 || n > UINT16_MAX) {
        cause_invalid(q, &port, json_get(service, "port"),
                      "port is not valid: must be between 1 and 65535, inclusive");
    }
    if (insecure && pem.n > 0) {
        cause_invalid(q, &skip, json_get(spec, "insecureSkipTLSVerify"),
                      "may not be true if caBundle is present");
    } else if (pem.n > 0 && (!base64_read(pem, &text) ||
                             !hk_str_contains(hk_buf_str(&text), "-----BEGIN CERTIFICATE-----"))) {
        cause_invalid_str(q, &bundle, HK_STR("..."), "unable to load root certificates");
    }
}

void admit_apiservice_validate(struct admission_request *q)
{
    const struct path spec_path = {.key = HK_STR("spec"), .form = PATH_FIELD};
    const struct json *spec = json_get(q->obj, "spec");
    const struct json *skip = json_get(spec, "insecureSkipTLSVerify");
    const bool insecure = json_is(skip, JSON_BOOL) && skip->b;

    check_full_name(q, spec);
    check_group_version(q, &spec_path, spec);
    check_priority(q, &spec_path, spec, "groupPriorityMinimum", GROUP_PRIORITY_MAX);
    check_priority(q, &spec_path, spec, "versionPriority", VERSION_PRIORITY_MAX);
    if (json_is(json_get(spec, "service"), JSON_OBJECT)) {
        check_remote(q, &spec_path, spec, insecure);
    } else {
        check_local(q, &spec_path, spec, insecure);
    }
}
