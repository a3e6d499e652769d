// SPDX-License-Identifier: Apache-2.0
// Accept headers of real clients, and the selected format.
#include "apiserver/accept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PROTO "application/vnd.kubernetes.protobuf"

static const char *describe(const struct accept *a)
{
    if (a->yaml) {
        return "yaml";
    }
    if (a->protobuf) {
        return a->form == FORM_OBJECT ? "proto" : a->list ? "proto metas" : "proto meta";
    }
    if (a->form == FORM_TABLE && strcmp(a->version, "v1beta1") == 0) {
        return "table v1beta1";
    }
    return a->form == FORM_TABLE    ? "table"
           : a->form == FORM_OBJECT ? "json"
           : a->list                ? "metas"
                                    : "meta";
}

static void expect_form(const char *header, enum accept_proto proto, const char *want)
{
    struct accept a = {0};
    const int rc = accept_parse(hk_str(header), proto, &a);
    const char *got = rc < 0 ? "406" : describe(&a);

    want = want ? want : "406";
    if (strcmp(got, want) != 0) {
        fail_msg("'%s': expected %s, got %s", header, want, got);
    }
}

static void test_forms(void **state)
{
    static const struct {
        const char *header, *want; /* NULL: 406 */
    } cases[] = {
        {"", "json"},
        {"*/*", "json"},
        {"application/json, */*", "json"},
        {"application/json;as=Table;v=v1;g=meta.k8s.io,"
         "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
         "table"},
        {"application/vnd.kubernetes.protobuf,application/json", "json"},
        {"application/vnd.kubernetes.protobuf", NULL},
        {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
         "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
         "meta"},
        {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "metas"},
        {"application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json", "table v1beta1"},
        {"application/json;as=Table;v=v2;g=meta.k8s.io", NULL},
        {"application/json;as=Table;v=v2;g=meta.k8s.io,application/json;q=0.5", "json"},
        {"application/json;as=Nothing;v=v1;g=meta.k8s.io", NULL},
        {"application/yaml", "yaml"},
        {"application/yaml;q=0.2, application/json;q=0.9", "json"},
        {"application/json;q=0.2, application/yaml", "yaml"},
        {"application/json;q=0", NULL},
        {"text/html", NULL},
        {"TEXT/html, APPLICATION/JSON", "json"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        expect_form(cases[k].header, ACCEPT_NO_PROTO, cases[k].want);
    }
}

static void test_protobuf_where_it_exists(void **state)
{
    static const struct {
        const char *header, *want; /* NULL: 406 */
        enum accept_proto proto;
    } cases[] = {
        {PROTO ",application/json", "proto", ACCEPT_PROTO},
        {PROTO ", */*", "proto", ACCEPT_PROTO},
        {PROTO ";stream=watch", "proto", ACCEPT_PROTO},
        {"application/json, " PROTO, "json", ACCEPT_PROTO},
        {"application/json;q=0.5, " PROTO ";q=0.9", "proto", ACCEPT_PROTO},
        {PROTO ";as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1", "table",
         ACCEPT_PROTO},
        {PROTO ";as=Table;g=meta.k8s.io;v=v1", NULL, ACCEPT_PROTO},
        {PROTO ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "proto meta", ACCEPT_PROTO_METADATA},
        {PROTO ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "proto metas", ACCEPT_PROTO},
        {PROTO, NULL, ACCEPT_PROTO_METADATA},
        {PROTO ", application/json", "json", ACCEPT_PROTO_METADATA},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        expect_form(cases[k].header, cases[k].proto, cases[k].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_protobuf_where_it_exists),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
