// SPDX-License-Identifier: Apache-2.0
// Protobuf bodies: two that kubectl sent, and hand-made ones for each form of value.
#include "api/proto.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Bytes written as hex digits, 'text' and (...), which stands for its length, below 128, and its
 * content. Returns where it stopped: after the closing bracket or at the end. */
static const char *add_bytes(const char *p, struct hk_buf *out)
{
    while (*p && *p != ')') {
        HK_AUTO(hk_buf_fini) struct hk_buf inner = {0};
        unsigned byte;
        if (*p == ' ') {
            p++;
        } else if (*p == '\'') {
            const char *end = strchr(p + 1, '\'');
            hk_buf_add(out, p + 1, (size_t)(end - p - 1));
            p = end + 1;
        } else if (*p == '(') {
            p = add_bytes(p + 1, &inner);
            assert_true(inner.len < 128);
            hk_buf_addc(out, (char)inner.len);
            hk_buf_addstr(out, hk_buf_str(&inner));
        } else {
            assert_int_equal(sscanf(p, "%2x", &byte), 1);
            hk_buf_addc(out, (char)byte);
            p += 2;
        }
    }
    return *p ? p + 1 : p;
}

#define BODY(version, kind) "'k8s' 00 0a(0a('" version "') 12('" kind "')) "
#define HEAD(version, kind) "{\"apiVersion\":\"" version "\",\"kind\":\"" kind "\""
/* What is added to objects that lack it. */
#define META ",\"metadata\":{}"
#define REST META ",\"status\":{}"
#define WORK ",\"spec\":{\"containers\":null},\"status\":{}"
#define SECONDS "08e5bcdfca06" /* 2026-01-02T15:04:05Z */

static const struct {
    const char *name, *body, *want; /* want NULL: refused */
} cases[] = {
    {"delete options as kubectl sends them",
     "6b387300 0a13 0a027631 120d44656c6574654f7074696f6e73 1200 1a00 2200",
     HEAD("v1", "DeleteOptions") "}"},
    {"a config map as kubectl sends it",
     "6b387300 0a0f 0a027631 1209436f6e6669674d6170 121b 0a11 0a0178 1200 1a00 2200 2a00 3200 3800 "
     "4200 1206 0a0161 120162 1a00 2200",
     HEAD("v1", "ConfigMap") ",\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"b\"}}"},
    {"pointers to zero", BODY("batch/v1", "DeleteOptions") "12(0800 1800 22('Orphan'))",
     HEAD("batch/v1", "DeleteOptions") ",\"gracePeriodSeconds\":0,\"orphanDependents\":false,"
                                       "\"propagationPolicy\":\"Orphan\"}"},
    {"lists, quantities, and numbers that JSON always shows",
     BODY("v1", "Pod") "12(12(12(0a('c') 32(1850) 42(0a(0a('cpu') 12(0a('1500m')))))))",
     HEAD("v1", "Pod") ",\"spec\":{\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":"
                       "80}],\"resources\":{\"limits\":{\"cpu\":\"1500m\"}}}]}" REST "}"},
    {"inlined types", BODY("v1", "Pod") "12(12(0a(0a('v') 12(9a01(0a(0a('cfg')) 18a403)))))",
     HEAD("v1", "Pod") ",\"spec\":{\"volumes\":[{\"name\":\"v\",\"configMap\":{\"name\":\"cfg\","
                       "\"defaultMode\":420}}],\"containers\":null}" REST "}"},
    {"empty but present", BODY("v1", "Pod") "12(12(0a(0a('v') 12(12())) 12()))",
     HEAD("v1", "Pod") ",\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}],\"containers\":"
                       "[{\"name\":\"\",\"resources\":{}}]}" REST "}"},
    {"numbers below zero, packed or not",
     BODY("v1", "Pod") "12(12(72(2001 22(0203) 28ffffffffffffffffff01) 12(0a('c'))))",
     HEAD("v1", "Pod") ",\"spec\":{\"securityContext\":{\"supplementalGroups\":[1,2,3],"
                       "\"fsGroup\":-1},\"containers\":[{\"name\":\"c\",\"resources\":{}}]}" REST
                       "}"},
    {"times", BODY("v1", "Namespace") "12(0a(42(" SECONDS " 1005) 4a()))",
     HEAD("v1", "Namespace") ",\"metadata\":{\"creationTimestamp\":\"2026-01-02T15:04:05Z\"},"
                             "\"spec\":{},\"status\":{}}"},
    {"structs that Go always writes", BODY("v1", "Node") "12()",
     HEAD("v1", "Node") META ",\"spec\":{},\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":"
                             "{\"Port\":0}},\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\","
                             "\"bootID\":\"\",\"kernelVersion\":\"\",\"osImage\":\"\","
                             "\"containerRuntimeVersion\":\"\",\"kubeletVersion\":\"\","
                             "\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\","
                             "\"architecture\":\"\"}}}"},
    {"times that Go writes as null",
     BODY("v1", "Pod") "12(1a(12(0a('Ready') 1a() 22(" SECONDS "))))",
     HEAD("v1", "Pod") ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"lastProbeTime\":null,"
                       "\"lastTransitionTime\":\"2026-01-02T15:04:05Z\",\"status\":\"\"}]}" META
                       ",\"spec\":{\"containers\":null}}"},
    {"micro times", BODY("coordination.k8s.io/v1", "Lease") "12(12(100f 22(" SECONDS " 10c09a0c)))",
     HEAD("coordination.k8s.io/v1", "Lease") ",\"spec\":{\"leaseDurationSeconds\":15,"
                                             "\"renewTime\":\"2026-01-02T15:04:05.000200Z\"}" META
                                             "}"},
    {"bytes in base64",
     BODY("v1", "Secret") "12(12(0a('a') 12('hi')) 12(0a('b') 12('hey')) 12(0a('c')))",
     HEAD("v1", "Secret") ",\"data\":{\"a\":\"aGk=\",\"b\":\"aGV5\",\"c\":\"\"}" META "}"},
    {"integers or strings",
     BODY("policy/v1", "PodDisruptionBudget") "12(12(0a(0801 1a('50%')) 1a(1002)))",
     HEAD("policy/v1",
          "PodDisruptionBudget") ",\"spec\":{\"minAvailable\":\"50%\",\"maxUnavailable\":2}" META
                                 ",\"status\":{\"disruptionsAllowed\":0,\"currentHealthy\":0,"
                                 "\"desiredHealthy\":0,\"expectedPods\":0}}"},
    {"raw JSON", BODY("v1", "Pod") "12(0a(8a01(0a('m') 3a(0a('{\"f:a\":{}}')))))",
     HEAD("v1", "Pod") ",\"metadata\":{\"managedFields\":[{\"manager\":\"m\",\"fieldsV1\":"
                       "{\"f:a\":{}}}]}" WORK "}"},
    {"lists of strings in a message",
     BODY("authentication.k8s.io/v1", "SelfSubjectReview") "12(12(0a(22(0a('k') 12(0a('v'))))))",
     HEAD("authentication.k8s.io/v1",
          "SelfSubjectReview") ",\"status\":{\"userInfo\":{\"extra\":{\"k\":[\"v\"]}}}" META "}"},
    {"the last value wins", BODY("v1", "Pod") "12(0a(0a('a') 0a('b') 1a('x') 1a()))",
     HEAD("v1", "Pod") ",\"metadata\":{\"name\":\"b\"}" WORK "}"},
    {"numbers from the future are skipped",
     BODY("v1", "Binding") "12(12(1a('n1') f83f07 fa3f('xyz')) f93f0102030405060708)",
     HEAD("v1", "Binding") ",\"target\":{\"name\":\"n1\"}" META "}"},
    {"no magic", "0a(0a('v1') 12('Pod'))", NULL},
    {"an unknown kind", BODY("v2", "Pod"), NULL},
    {"a string with a NUL", BODY("v1", "Pod") "12(0a(0a(00)))", NULL},
    {"a string that is not UTF-8", BODY("v1", "Pod") "12(0a(0a(ff)))", NULL},
    {"a message cut short", BODY("v1", "Pod") "12(0a(0a02'x'))", NULL},
    {"a string where a number should be", BODY("v1", "Pod") "12(0a(3a('x')))", NULL},
    {"a number where a string should be", BODY("v1", "Pod") "12(0a(0801))", NULL},
    {"a time past all years", BODY("v1", "Pod") "12(0a(42(08ffffffffffffffff7f)))", NULL},
    {"raw bytes that are no JSON", BODY("v1", "Pod") "12(0a(8a01(3a(0a('{')))))", NULL},
    {"a volume of a single vendor", BODY("v1", "Pod") "12(12(0a(12(1a()))))",
     HEAD("v1", "Pod") ",\"spec\":{\"volumes\":[{\"gcePersistentDisk\":{\"pdName\":\"\"},"
                       "\"name\":\"\"}],\"containers\":null}" REST "}"},
    {"an encoding", BODY("v1", "Pod") "1200 1a('gzip')", NULL},
};

static void bodies_are_read(void **state)
{
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct hk_err err = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
        struct json v;

        add_bytes(cases[i].body, &body);
        const int rc = api_proto_decode(hk_buf_str(&body), &a, &v, &err);

        if (rc == 0) {
            json_write(&v, &text);
        }
        if ((rc == 0) != (cases[i].want != NULL) ||
            (cases[i].want && !hk_str_is(hk_buf_str(&text), cases[i].want))) {
            fail_msg("%s:\nexpected %s\ngot      %s %s", cases[i].name,
                     cases[i].want ? cases[i].want : "a refusal", hk_buf_str(&text).s, err.text);
        }
    }
}

static void bodies_are_known_by_their_first_bytes(void **state)
{
    assert_true(api_proto_is((struct hk_str){"k8s\0", 4}));
    assert_false(api_proto_is(HK_STR("k8s")));
    assert_false(api_proto_is(HK_STR("{\"kind\":1}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_read),
        cmocka_unit_test(bodies_are_known_by_their_first_bytes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
