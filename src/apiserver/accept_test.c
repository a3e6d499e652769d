// SPDX-License-Identifier: Apache-2.0
// Accept headers of real clients, and the selected format.
#include "apiserver/accept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *describe(const struct accept *a)
{
    if (a->yaml) {
        return "yaml";
    }
    if (a->form == FORM_TABLE && strcmp(a->version, "v1beta1") == 0) {
        return "table v1beta1";
    }
    return a->form == FORM_TABLE    ? "table"
           : a->form == FORM_OBJECT ? "json"
           : a->list                ? "metas"
                                    : "meta";
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
        struct accept a = {0};
        const int rc = accept_parse(hk_str(cases[k].header), &a);
        const char *got = rc < 0 ? "406" : describe(&a);
        const char *want = cases[k].want ? cases[k].want : "406";
        if (strcmp(got, want) != 0) {
            fail_msg("'%s': expected %s, got %s", cases[k].header, want, got);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
