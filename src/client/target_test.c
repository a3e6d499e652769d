// SPDX-License-Identifier: Apache-2.0
// Requests as they go over the wire: paths, parameters and bodies of every verb.
#include "client/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NS HK_STR("default")
#define NAME HK_STR("x")

static void test_targets(void **state)
{
    static const struct json body = {.type = JSON_OBJECT};
    static const struct {
        enum api_kind_id kind;
        struct port_request req;
        const char *want; /* method, path, body */
    } cases[] = {
        {API_POD,
         {.verb = PORT_GET, .ns = NS, .name = NAME},
         "GET /api/v1/namespaces/default/pods/x "},
        {API_NODE, {.verb = PORT_GET, .name = NAME}, "GET /api/v1/nodes/x "},
        {API_NAMESPACE, {.verb = PORT_GET, .name = NAME}, "GET /api/v1/namespaces/x "},
        {API_PODGROUP,
         {.verb = PORT_GET, .ns = NS, .name = NAME},
         "GET /apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/x "},
        {API_POD,
         {.verb = PORT_GET, .ns = NS, .name = HK_STR("a/b?c"), .subresource = "status"},
         "GET /api/v1/namespaces/default/pods/a%2Fb%3Fc/status "},
        {API_POD, {.verb = PORT_LIST}, "GET /api/v1/pods "},
        {API_POD,
         {.verb = PORT_LIST,
          .ns = NS,
          .label_selector = HK_STR("a in (b,c)"),
          .field_selector = HK_STR("spec.nodeName=n"),
          .limit = 5,
          .rv = 7},
         "GET /api/v1/namespaces/default/pods?labelSelector=a%20in%20%28b%2Cc%29&"
         "fieldSelector=spec.nodeName%3Dn&limit=5&resourceVersion=7&"
         "resourceVersionMatch=NotOlderThan "},
        {API_POD,
         {.verb = PORT_LIST, .rv = 7, .match = PORT_MATCH_EXACT},
         "GET /api/v1/pods?resourceVersion=7&resourceVersionMatch=Exact "},
        {API_POD,
         {.verb = PORT_LIST, .limit = 5, .rv = 7, .cont = HK_STR("t=")},
         "GET /api/v1/pods?limit=5&continue=t%3D "},
        {API_POD,
         {.verb = PORT_WATCH, .rv = 7},
         "GET "
         "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=9&resourceVersion=7 "},
        {API_POD,
         {.verb = PORT_WATCH, .initial = PORT_INITIAL_SEND},
         "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=9&"
         "sendInitialEvents=true&resourceVersionMatch=NotOlderThan "},
        {API_POD,
         {.verb = PORT_WATCH, .initial = PORT_INITIAL_SKIP},
         "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=9&"
         "sendInitialEvents=false&resourceVersionMatch=NotOlderThan "},
        {API_POD,
         {.verb = PORT_WATCH, .rv = 7, .initial = PORT_INITIAL_SKIP},
         "GET "
         "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=9&resourceVersion=7 "},
        {API_POD,
         {.verb = PORT_CREATE, .ns = NS, .body = &body, .dry_run = true},
         "POST /api/v1/namespaces/default/pods?fieldValidation=Ignore&dryRun=All {}"},
        {API_POD,
         {.verb = PORT_CREATE, .ns = NS, .name = NAME, .subresource = "binding", .body = &body},
         "POST /api/v1/namespaces/default/pods/x/binding?fieldValidation=Ignore {}"},
        {API_POD,
         {.verb = PORT_UPDATE,
          .ns = NS,
          .name = NAME,
          .subresource = "status",
          .body = &body,
          .validate = PORT_VALIDATE_STRICT},
         "PUT /api/v1/namespaces/default/pods/x/status?fieldValidation=Strict {}"},
        {API_POD,
         {.verb = PORT_PATCH,
          .ns = NS,
          .name = NAME,
          .body = &body,
          .patch = PORT_PATCH_APPLY,
          .force = true,
          .field_manager = HK_STR("me")},
         "PATCH /api/v1/namespaces/default/pods/x?fieldManager=me&fieldValidation=Ignore&"
         "force=true {}"},
        {API_POD,
         {.verb = PORT_DELETE, .ns = NS, .name = NAME},
         "DELETE /api/v1/namespaces/default/pods/x "
         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}"},
        {API_POD,
         {.verb = PORT_DELETE,
          .ns = NS,
          .name = NAME,
          .if_uid = HK_STR("u"),
          .if_rv = 3,
          .propagation = PORT_PROPAGATE_FOREGROUND,
          .has_grace = true,
          .dry_run = true},
         "DELETE /api/v1/namespaces/default/pods/x {\"kind\":\"DeleteOptions\",\"apiVersion\":"
         "\"v1\",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"3\"},"
         "\"propagationPolicy\":\"Foreground\",\"gracePeriodSeconds\":0,\"dryRun\":[\"All\"]"
         "}"},
        {API_POD,
         {.verb = PORT_DELETE_COLLECTION, .ns = NS, .label_selector = HK_STR("a")},
         "DELETE /api/v1/namespaces/default/pods?labelSelector=a "
         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}"},
        {API_POD, {.verb = PORT_GET, .ns = NS}, "get of pods without a name"},
        {API_POD, {.verb = PORT_GET, .name = NAME}, "pods: namespace ''"},
        {API_NODE, {.verb = PORT_GET, .ns = NS, .name = NAME}, "nodes: namespace 'default'"},
        {API_POD, {.verb = PORT_CREATE, .ns = NS}, "create of pods without a body"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        HK_AUTO(target_fini) struct target t = {0};
        struct port_request req = cases[i].req;
        struct hk_err err = {0};
        req.kind = api_kind(cases[i].kind);
        if (target_make(&req, 9, &t, &err) < 0) {
            hk_buf_adds(&have, err.text);
        } else {
            hk_buf_addf(&have, "%s %s %s", t.method, t.path.data, hk_buf_str(&t.body).s);
            assert_int_equal(t.media != NULL, t.body.len > 0);
        }
        assert_string_equal(have.data, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
