// SPDX-License-Identifier: Apache-2.0
// Where requests for the subresource proxy lead, and the words with which they are refused.
#include "apiserver/server_rig_test.h"

#define PODS "/api/v1/namespaces/default/pods"
#define SERVICES "/api/v1/namespaces/default/services"
#define ENDPOINTS "/api/v1/namespaces/default/endpoints"

static void make_pod(struct fixture *f, const char *name, const char *node, const char *status)
{
    char body[512], target[128];

    snprintf(
        body, sizeof(body),
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s\"containers\":[{\"name\":\"c\",\"image\":"
        "\"i\",\"ports\":[{\"containerPort\":1}]}]}}",
        name, node);
    expect(f, "POST", PODS, body, 201, name);
    snprintf(target, sizeof(target), PODS "/%s/status", name);
    snprintf(body, sizeof(body), "{\"status\":%s}", status);
    const int code =
        call(f, "PATCH", target, TOKEN "Content-Type: application/merge-patch+json\r\n", body);
    assert_int_equal(code, 200);
}

static void refuses(struct fixture *f, const char *target, int code, const char *message)
{
    char want[512];

    snprintf(want, sizeof(want), "\"message\":\"%s", message);
    expect(f, "GET", target, NULL, code, want);
}

static void names_are_read_as_kubernetes_reads_them(void **state)
{
    struct fixture *f = *state;

    refuses(f, PODS "/p/proxy/", 404, "pods \\\"p\\\" not found");
    refuses(f, PODS "/http:p:80/proxy/", 404, "pods \\\"p\\\" not found");
    refuses(f, PODS "/ftp:p:80/proxy/", 400, "invalid pod request \\\"ftp:p:80\\\"");
    refuses(f, PODS "/a:b:c:d/proxy/", 400, "invalid pod request \\\"a:b:c:d\\\"");
    refuses(f, PODS "/:80/proxy/", 400, "invalid pod request \\\":80\\\"");
    refuses(f, SERVICES "/x:s:1/proxy/", 400, "invalid service request \\\"x:s:1\\\"");
    refuses(f, "/api/v1/nodes/x:n:1/proxy/", 400, "invalid node request \\\"x:n:1\\\"");
    refuses(f, "/api/v1/nodes/n/proxy/", 404, "nodes \\\"n\\\" not found");
    expect(f, "GET", PODS "/p/proxy?a=b", NULL, 301, "Location: " PODS "/p/proxy/?a=b");
}

static void addresses_of_pods_are_checked(void **state)
{
    static const struct {
        const char *name, *node, *status;
        int code;
        const char *message;
    } cases[] = {
        {"none", "", "{}", 400, "address not allowed"},
        {"link", "", "{\"podIP\":\"169.254.169.254\"}", 400, "address not allowed"},
        {"many", "", "{\"podIP\":\"224.0.0.1\"}", 400, "address not allowed"},
        {"any", "", "{\"podIP\":\"0.0.0.0\"}", 400, "address not allowed"},
        {"mapped", "", "{\"podIP\":\"::ffff:169.254.169.254\"}", 400, "address not allowed"},
        {"text", "", "{\"podIP\":\"host\"}", 400, "address not allowed"},
        {"here", "", "{\"podIP\":\"127.66.6.6\"}", 503,
         "error trying to reach service: dial tcp 127.66.6.6:1: connect: connection refused"},
        {"there", "\"nodeName\":\"far\",", "{\"podIP\":\"127.66.6.6\"}", 503,
         "error trying to reach service: pod there has a loopback address of another machine"},
    };
    struct fixture *f = *state;
    char target[128];

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        make_pod(f, cases[k].name, cases[k].node, cases[k].status);
        snprintf(target, sizeof(target), PODS "/%s/proxy/", cases[k].name);
        refuses(f, target, cases[k].code, cases[k].message);
    }
}

static void services_lead_to_pods_only(void **state)
{
    struct fixture *f = *state;

    make_pod(f, "p", "", "{\"podIP\":\"127.66.6.6\"}");
    expect(f, "POST", SERVICES,
           "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"clusterIP\":\"None\",\"ports\":["
           "{\"name\":\"a\",\"port\":80},{\"name\":\"b\",\"port\":81}]}}",
           201, "\"s\"");
    refuses(f, SERVICES "/s:80/proxy/", 503, "no endpoints available for service \\\"s\\\"");
    refuses(f, SERVICES "/s:82/proxy/", 503, "no service port 82 found for service \\\"s\\\"");
    expect(
        f, "POST", ENDPOINTS,
        "{\"metadata\":{\"name\":\"s\"},\"subsets\":[{\"addresses\":[{\"ip\":\"127.66.6.6\","
        "\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"p\"}}],\"ports\":["
        "{\"name\":\"a\",\"port\":1}]},{\"addresses\":[{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\","
        "\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"p\"}}],\"ports\":["
        "{\"name\":\"b\",\"port\":2}]}]}",
        201, "\"s\"");
    refuses(f, SERVICES "/s:a/proxy/", 503,
            "error trying to reach service: dial tcp 127.66.6.6:1: connect: connection refused");
    refuses(f, SERVICES "/s:80/proxy/", 503, "error trying to reach service: dial tcp 127.66.6.6");
    refuses(f, SERVICES "/s:b/proxy/", 503, "no endpoints available for service \\\"s:b\\\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_are_read_as_kubernetes_reads_them),
        TEST(addresses_of_pods_are_checked),
        TEST(services_lead_to_pods_only),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("apiserver/subproxy", tests, NULL, NULL);
}
