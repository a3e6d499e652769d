// SPDX-License-Identifier: Apache-2.0
// Tables: the cells of each kind of object. Objects are written with single quotes.
#include "apiserver/printer.h"

#include "codec/timefmt.h"
#include "store/rest_rig_test.h"

#define NOW "2026-01-02T03:04:05Z"
#define META "'metadata':{'name':'x','creationTimestamp':'2026-01-02T03:03:05Z'}"

static int begin(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));

    *state = g;
    rig_open(g, false);
    return 0;
}

static int end(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

static struct hk_str unquote(struct rig *g, const char *text)
{
    char *copy = hk_arena_strndup(&g->mem, text, strlen(text));

    for (char *p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    return hk_str(copy);
}

static const struct json *print(struct rig *g, const struct rest_kind *k, const char *object,
                                const char *include)
{
    const struct store_obj row = {.text = unquote(g, object)};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct json *v = hk_arena_zalloc(&g->mem, sizeof(*v));
    struct hk_err err = {0};
    int64_t now_ns = 0;

    assert_int_equal(time_parse(HK_STR(NOW), &now_ns, NULL), 0);
    const struct printer_style style = {.version = "v1", .include = include, .now_ns = now_ns};
    const struct printer_page page = {
        .version = "v1", .rv = 7, .cont = HK_STR("more"), .remaining = 2};
    printer_write_head(k, &page, &out);
    printer_write_row(k, &row, &style, &out);
    hk_buf_adds(&out, "]}");
    if (json_parse(hk_arena_str(&g->mem, hk_buf_str(&out)), 0, &g->mem, v, &err) < 0) {
        fail_msg("%s in %s", err.text, out.data);
    }
    return v;
}

static const char *cells(struct rig *g, const struct json *table)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *row = json_item(json_get(table, "rows"), 0);

    assert_int_equal(json_get(row, "cells")->len, json_get(table, "columnDefinitions")->len);
    json_write(json_get(row, "cells"), &text);
    for (size_t k = 0; k < text.len; k++) {
        text.data[k] = text.data[k] == '"' ? '\'' : text.data[k];
    }
    return hk_arena_str(&g->mem, hk_buf_str(&text)).s;
}

struct print_case {
    const char *group, *version, *plural;
    const char *object, *want;
};

static void check(struct rig *g, const struct print_case *c)
{
    const struct rest_kind *k =
        rest_kind_find(g->rest, hk_str(c->group), hk_str(c->version), hk_str(c->plural));

    if (!k) {
        fail_msg("no %s in %s/%s", c->plural, c->group, c->version);
    }
    const char *have = cells(g, print(g, k, c->object, "None"));
    if (strcmp(have, c->want) != 0) {
        fail_msg("%s: want %s\nhave %s", c->object, c->want, have);
    }
}

static void built_in_kinds(void **state)
{
    static const struct print_case cases[] = {
        {"", "v1", "configmaps", "{" META ",'data':{'a':'','b':''},'binaryData':{'c':''}}",
         "['x',3,'60s']"},
        {"", "v1", "secrets", "{" META ",'type':'Opaque','data':{'a':''}}",
         "['x','Opaque',1,'60s']"},
        {"", "v1", "configmaps", "{'metadata':{'name':'x'}}", "['x',0,'<unknown>']"},
        {"", "v1", "namespaces", "{" META ",'status':{'phase':'Active'}}", "['x','Active','60s']"},
        {"", "v1", "nodes",
         "{'metadata':{'name':'n','creationTimestamp':'2026-01-02T03:03:05Z','labels':"
         "{'node-role.kubernetes.io/worker':'','node-role.kubernetes.io/control-plane':''}},"
         "'spec':{'unschedulable':true},'status':{'conditions':[{'type':'Ready','status':'True'}],"
         "'addresses':[{'type':'InternalIP','address':'10.0.0.1'}],'nodeInfo':"
         "{'kubeletVersion':'v1.32.3','osImage':'Linux','kernelVersion':'6.1',"
         "'architecture':'amd64'}}}",
         "['n','Ready,SchedulingDisabled','control-plane,worker','60s','v1.32.3','10.0.0.1',"
         "'<none>','Linux','6.1 (amd64)','<unknown>']"},
        {"", "v1", "services",
         "{" META ",'spec':{'type':'NodePort','clusterIP':'10.0.0.1','selector':{'b':'2','a':'1'},"
         "'ports':[{'port':80,'nodePort':30080,'protocol':'TCP'},{'port':53,'protocol':'UDP'}]}}",
         "['x','NodePort','10.0.0.1','<none>','80:30080/TCP,53/UDP','60s','a=1,b=2']"},
        {"", "v1", "services", "{" META ",'spec':{'type':'LoadBalancer','clusterIP':'10.0.0.1'}}",
         "['x','LoadBalancer','10.0.0.1','<pending>','<none>','60s','<none>']"},
        {"", "v1", "endpoints",
         "{" META ",'subsets':[{'addresses':[{'ip':'1.1.1.1'},{'ip':'1.1.1.2'}],"
         "'ports':[{'port':80},{'port':81}]}]}",
         "['x','1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 1 more...','60s']"},
        {"", "v1", "events",
         "{" META ",'type':'Normal','reason':'Started','message':'m','lastTimestamp':"
         "'2026-01-02T03:04:00Z','firstTimestamp':null,'eventTime':null,'source':"
         "{'component':'kubelet','host':'n1'},'involvedObject':{'kind':'Pod','name':'p'}}",
         "['5s','Normal','Started','pod/p','','kubelet, n1','m','5s','1','x']"},
        {"", "v1", "persistentvolumeclaims",
         "{" META ",'spec':{'volumeName':'pv','storageClassName':'fast'},'status':{'phase':'Bound',"
         "'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteMany','ReadWriteOnce']}}",
         "['x','Bound','pv','1Gi','RWO,RWX','fast','<unset>','60s','<unset>']"},
        {"apiregistration.k8s.io", "v1", "apiservices", "{" META ",'spec':{'group':'g'}}",
         "['x','Local','Unknown','60s']"},
        {"apiregistration.k8s.io", "v1", "apiservices",
         "{" META ",'spec':{'service':{'namespace':'n','name':'s'}},'status':{'conditions':[{"
         "'type':'Available','status':'False','reason':'MissingEndpoints'}]}}",
         "['x','n/s','False (MissingEndpoints)','60s']"},
        {"", "v1", "resourcequotas",
         "{" META ",'status':{'hard':{'pods':'4','cpu':'2','limits.cpu':'3'},'used':{'pods':'1'}}}",
         "['x','cpu: 0/2, pods: 1/4','limits.cpu: 0/3','60s']"},
        {"", "v1", "limitranges", "{" META "}", "['x','2026-01-02T03:03:05Z']"},
        {"apps", "v1", "deployments",
         "{" META ",'spec':{'replicas':3,'selector':{'matchLabels':{'a':'b'}},'template':{'spec':"
         "{'containers':[{'name':'c','image':'i'},{'name':'d','image':'j'}]}}},"
         "'status':{'readyReplicas':1,'updatedReplicas':2,'availableReplicas':1}}",
         "['x','1/3',2,1,'60s','c,d','i,j','a=b']"},
        {"apps", "v1", "controllerrevisions",
         "{'metadata':{'name':'x','creationTimestamp':'2026-01-02T03:03:05Z','ownerReferences':"
         "[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','controller':true}]},"
         "'revision':2}",
         "['x','daemonset.apps/d',2,'60s']"},
        {"batch", "v1", "jobs",
         "{" META ",'spec':{'completions':2},'status':{'succeeded':1,"
         "'startTime':'2026-01-02T03:03:10Z'}}",
         "['x','Running','1/2','55s','60s','','','<none>']"},
        {"batch", "v1", "jobs",
         "{" META ",'spec':{'parallelism':3},'status':{'succeeded':1,"
         "'startTime':'2026-01-02T03:03:10Z','completionTime':'2026-01-02T03:03:20Z',"
         "'conditions':[{'type':'Complete','status':'True'}]}}",
         "['x','Complete','1/1 of 3','10s','60s','','','<none>']"},
        {"storage.k8s.io", "v1", "storageclasses",
         "{'metadata':{'name':'x','annotations':"
         "{'storageclass.kubernetes.io/is-default-class':'true'}},'provisioner':'p'}",
         "['x (default)','p','Delete','Immediate',false,'<unknown>']"},
        {"policy", "v1", "poddisruptionbudgets", "{" META ",'spec':{'minAvailable':2}}",
         "['x','2','N/A',0,'60s']"},
        {"networking.k8s.io", "v1", "servicecidrs",
         "{" META ",'spec':{'cidrs':['10.0.0.0/24','fd00::/112']}}",
         "['x','10.0.0.0/24,fd00::/112','60s']"},
        {"networking.k8s.io", "v1", "ipaddresses",
         "{" META ",'spec':{'parentRef':{'resource':'services','namespace':'ns','name':'s'}}}",
         "['x','services/ns/s','60s']"},
        {"networking.k8s.io", "v1", "ipaddresses",
         "{" META ",'spec':{'parentRef':{'group':'g.io','resource':'things','name':'s'}}}",
         "['x','things.g.io/s','60s']"},
        {"networking.k8s.io", "v1", "ipaddresses", "{" META "}", "['x','<none>','60s']"},
        {"storage.k8s.io", "v1", "volumeattributesclasses", "{" META ",'driverName':'d.io'}",
         "['x','d.io','60s']"},
        {"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies",
         "{" META ",'spec':{'mutations':[{},{}]}}", "['x',2,'<unset>','60s']"},
        {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
         "{" META ",'spec':{'paramKind':{'apiVersion':'v1','kind':'ConfigMap'}}}",
         "['x',0,'v1/ConfigMap','60s']"},
        {"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings",
         "{" META ",'spec':{'policyName':'p','paramRef':{'namespace':'ns','name':'c'}}}",
         "['x','p','ns/c','60s']"},
        {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
         "{" META ",'spec':{'policyName':'p','paramRef':{'selector':{'matchLabels':{'a':'b'}}}}}",
         "['x','p','a=b','60s']"},
        {"resource.k8s.io", "v1", "resourceclaims",
         "{" META ",'status':{'allocation':{},'reservedFor':[{}]}}",
         "['x','allocated,reserved','60s']"},
        {"scheduling.volcano.sh", "v1beta1", "queues", "{" META "}", "['x','60s']"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        check(*state, &cases[k]);
    }
}

#define POD(spec, status) "{'metadata':{'name':'p'},'spec':{" spec "},'status':{" status "}}"
#define ONE "'containers':[{'name':'c'}]"
#define TWO "'containers':[{'name':'c'},{'name':'d'}]"

static void pod_states(void **state)
{
    static const struct {
        const char *object, *ready, *status, *restarts;
    } cases[] = {
        {POD(ONE, "'phase':'Pending'"), "0/1", "Pending", "0"},
        {POD(ONE, "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
                  "'reason':'SchedulingGated'}]"),
         "0/1", "SchedulingGated", "0"},
        {POD(ONE, "'phase':'Running','containerStatuses':[{'name':'c','ready':true,"
                  "'restartCount':0,'state':{'running':{}}}]"),
         "1/1", "Running", "0"},
        {POD(ONE, "'phase':'Running','containerStatuses':[{'name':'c','restartCount':3,'state':"
                  "{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':"
                  "{'finishedAt':'2026-01-02T03:03:05Z'}}}]"),
         "0/1", "CrashLoopBackOff", "3 (60s ago)"},
        {POD(ONE, "'phase':'Failed','containerStatuses':[{'name':'c','state':{'terminated':"
                  "{'exitCode':3}}}]"),
         "0/1", "ExitCode:3", "0"},
        {POD(ONE, "'phase':'Failed','containerStatuses':[{'name':'c','state':{'terminated':"
                  "{'exitCode':137,'signal':9}}}]"),
         "0/1", "Signal:9", "0"},
        {POD(ONE, "'phase':'Failed','reason':'Evicted'"), "0/1", "Evicted", "0"},
        {POD(TWO, "'phase':'Running','conditions':[{'type':'Ready','status':'False'}],"
                  "'containerStatuses':[{'name':'c','state':{'terminated':{'exitCode':0,"
                  "'reason':'Completed'}}},{'name':'d','ready':true,'state':{'running':{}}}]"),
         "1/2", "NotReady", "0"},
        {POD(ONE ",'initContainers':[{'name':'a'},{'name':'b'}]",
             "'phase':'Pending','initContainerStatuses':[{'name':'a','restartCount':0,'state':"
             "{'terminated':{'exitCode':0}}},{'name':'b','state':{'running':{}}}]"),
         "0/1", "Init:1/2", "0"},
        {POD(ONE ",'initContainers':[{'name':'a'}]",
             "'phase':'Pending','initContainerStatuses':[{'name':'a','restartCount':2,'state':"
             "{'waiting':{'reason':'ImagePullBackOff'}}}]"),
         "0/1", "Init:ImagePullBackOff", "2"},
        {POD(ONE ",'initContainers':[{'name':'s','restartPolicy':'Always'}]",
             "'phase':'Running','initContainerStatuses':[{'name':'s','started':true,'ready':true,"
             "'restartCount':1,'state':{'running':{}}}],'containerStatuses':[{'name':'c',"
             "'ready':true,'restartCount':1,'state':{'running':{}}}]"),
         "2/2", "Running", "2"},
        {"{'metadata':{'name':'p','deletionTimestamp':'2026-01-02T03:04:05Z'},'spec':{" ONE "},"
         "'status':{'phase':'Running'}}",
         "0/1", "Terminating", "0"},
    };
    struct rig *g = *state;
    const struct rest_kind *pods =
        rest_kind_find(g->rest, HK_STR(""), HK_STR("v1"), HK_STR("pods"));

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
        const char *have = cells(g, print(g, pods, cases[k].object, "None"));
        hk_buf_addf(&want, "['p','%s','%s','%s','<unknown>','<none>','<none>','<none>','<none>']",
                    cases[k].ready, cases[k].status, cases[k].restarts);
        if (strcmp(have, want.data) != 0) {
            fail_msg("%s: want %s\nhave %s", cases[k].object, want.data, have);
        }
    }
}

static void finished_pods_carry_a_condition(void **state)
{
    struct rig *g = *state;
    const struct rest_kind *pods =
        rest_kind_find(g->rest, HK_STR(""), HK_STR("v1"), HK_STR("pods"));
    const struct json *table = print(g, pods, POD(ONE, "'phase':'Succeeded'"), "None");
    const struct json *row = json_item(json_get(table, "rows"), 0);
    const struct json *condition = json_item(json_get(row, "conditions"), 0);

    assert_true(hk_str_is(json_str(json_get(condition, "reason"), HK_STR("")), "Succeeded"));
}

static void objects_as_asked_for(void **state)
{
    static const struct {
        const char *include, *want;
    } cases[] = {
        {"Metadata", "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                     "\"metadata\":{\"name\":\"x\"}}"},
        {"Object", "{\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"b\"}}"},
        {"None", "null"},
    };
    struct rig *g = *state;
    const struct rest_kind *maps =
        rest_kind_find(g->rest, HK_STR(""), HK_STR("v1"), HK_STR("configmaps"));

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        const struct json *table =
            print(g, maps, "{'metadata':{'name':'x'},'data':{'a':'b'}}", cases[k].include);
        json_write(json_get(json_item(json_get(table, "rows"), 0), "object"), &have);
        assert_string_equal(have.data, cases[k].want);
        assert_true(
            hk_str_is(json_str(json_at(table, "metadata.resourceVersion"), HK_STR("")), "7"));
        assert_true(hk_str_is(json_str(json_at(table, "metadata.continue"), HK_STR("")), "more"));
        assert_int_equal(json_int(json_at(table, "metadata.remainingItemCount"), 0), 2);
    }
}

static void columns_of_definitions(void **state)
{
    struct rig *g = *state;
    struct rest_kind k =
        *rest_kind_find(g->rest, HK_STR("batch.volcano.sh"), HK_STR("v1alpha1"), HK_STR("jobs"));

    k.columns = rig_json(g, "[{'name':'STATUS','type':'string','jsonPath':'.status.state.phase'},"
                            "{'name':'Min','type':'integer','jsonPath':'.status.min'},"
                            "{'name':'Gone','type':'string','jsonPath':'.status.gone'},"
                            "{'name':'Text','type':'string','jsonPath':'.status.min'},"
                            "{'name':'Odd','type':'integer','jsonPath':'.status.state.phase'},"
                            "{'name':'Nodes','type':'string','jsonPath':'.status.nodes[*]'},"
                            "{'name':'On','type':'boolean','jsonPath':'.status.on'},"
                            "{'name':'Age','type':'date','jsonPath':'.metadata.creationTimestamp'},"
                            "{'name':'Bad','type':'date','jsonPath':'.status.state.phase'},"
                            "{'name':'QUEUE','type':'string','priority':1,"
                            "'jsonPath':'.spec.queue'}]");
    const struct json *table =
        print(g, &k,
              "{" META ",'spec':{'queue':'q'},'status':{'state':{'phase':'Running'},"
              "'min':2,'nodes':['a','b'],'on':true}}",
              "None");
    assert_string_equal(cells(g, table),
                        "['x','Running',2,null,'2',null,'a b',true,'60s','<invalid>','q']");
    const struct json *last = json_item(json_get(table, "columnDefinitions"), 10);
    assert_int_equal(json_int(json_get(last, "priority"), 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(built_in_kinds, begin, end),
        cmocka_unit_test_setup_teardown(pod_states, begin, end),
        cmocka_unit_test_setup_teardown(finished_pods_carry_a_condition, begin, end),
        cmocka_unit_test_setup_teardown(objects_as_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(columns_of_definitions, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
