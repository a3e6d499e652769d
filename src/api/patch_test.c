// SPDX-License-Identifier: Apache-2.0
// Patches: each case is a target, a patch and the result.
#include "api/patch.h"
#include "codec/json_text_test.h"

struct patch_case {
    const char *name, *target, *patch, *want; /* want NULL: refused */
};

static const struct patch_case merges[] = {
    {"members merge", "{'a':{'b':1},'c':2}", "{'a':{'d':3}}", "{'a':{'b':1,'d':3},'c':2}"},
    {"null removes", "{'a':1,'b':2}", "{'a':null,'x':null}", "{'b':2}"},
    {"lists are replaced", "{'a':[1,2]}", "{'a':[3]}", "{'a':[3]}"},
    {"nulls of a new object do not arrive", "{}", "{'a':{'b':null,'c':1}}", "{'a':{'c':1}}"},
    {"a patch that is no object replaces all", "{'a':1}", "[1]", "[1]"},
};

/* The examples of RFC 6902, appendix A, and additions of the servers. */
static const struct patch_case jsons[] = {
    {"a member is added", "{'foo':'bar'}", "[{'op':'add','path':'/baz','value':'qux'}]",
     "{'foo':'bar','baz':'qux'}"},
    {"an element is added", "{'foo':['bar','baz']}", "[{'op':'add','path':'/foo/1','value':'qux'}]",
     "{'foo':['bar','qux','baz']}"},
    {"a dash appends", "{'foo':['bar']}", "[{'op':'add','path':'/foo/-','value':['a','b']}]",
     "{'foo':['bar',['a','b']]}"},
    {"a member is removed", "{'baz':'qux','foo':'bar'}", "[{'op':'remove','path':'/baz'}]",
     "{'foo':'bar'}"},
    {"an element is removed", "{'foo':['bar','qux','baz']}", "[{'op':'remove','path':'/foo/1'}]",
     "{'foo':['bar','baz']}"},
    {"a value is replaced", "{'baz':'qux'}", "[{'op':'replace','path':'/baz','value':'boo'}]",
     "{'baz':'boo'}"},
    {"a value is moved", "{'foo':{'bar':'baz','w':'fred'},'qux':{'c':'g'}}",
     "[{'op':'move','from':'/foo/w','path':'/qux/t'}]",
     "{'foo':{'bar':'baz'},'qux':{'c':'g','t':'fred'}}"},
    {"an element is moved", "{'foo':['all','grass','cows','eat']}",
     "[{'op':'move','from':'/foo/1','path':'/foo/3'}]", "{'foo':['all','cows','eat','grass']}"},
    {"a copy is a value of its own", "{'a':{'b':1}}",
     "[{'op':'copy','from':'/a','path':'/c'},{'op':'add','path':'/c/d','value':2}]",
     "{'a':{'b':1},'c':{'b':1,'d':2}}"},
    {"a test that holds", "{'baz':'qux','foo':['a',2,'c']}",
     "[{'op':'test','path':'/baz','value':'qux'},{'op':'test','path':'/foo/1','value':2}]",
     "{'baz':'qux','foo':['a',2,'c']}"},
    {"nothing is null to a test", "{}", "[{'op':'test','path':'/x','value':null}]", "{}"},
    {"members beside the known ones are ignored", "{}",
     "[{'op':'add','path':'/a','value':1,'xyz':123}]", "{'a':1}"},
    {"slash and tilde in keys are escaped", "{'a/b':1,'m~n':2}",
     "[{'op':'replace','path':'/a~1b','value':3},{'op':'remove','path':'/m~0n'}]", "{'a/b':3}"},
    {"~01 is a tilde and a one", "{'~1':1}", "[{'op':'test','path':'/~01','value':1}]", "{'~1':1}"},
    {"the empty path is everything", "{'a':1}", "[{'op':'replace','path':'','value':{'b':2}}]",
     "{'b':2}"},
    {"an empty key is a key", "{'':1}", "[{'op':'replace','path':'/','value':2}]", "{'':2}"},
    {"a test that fails", "{'baz':'qux'}", "[{'op':'test','path':'/baz','value':'bar'}]", NULL},
    {"adding below nothing", "{'foo':'bar'}", "[{'op':'add','path':'/baz/bat','value':'q'}]", NULL},
    {"adding below a plain value", "{'a':1}", "[{'op':'add','path':'/a/b','value':1}]", NULL},
    {"adding past the end of a list", "{'a':[1]}", "[{'op':'add','path':'/a/2','value':1}]", NULL},
    {"an index with a zero in front", "{'a':[1,2]}", "[{'op':'remove','path':'/a/01'}]", NULL},
    {"removing what is not there", "{}", "[{'op':'remove','path':'/a'}]", NULL},
    {"removing everything", "{}", "[{'op':'remove','path':''}]", NULL},
    {"replacing a member that is not there adds it", "{}",
     "[{'op':'replace','path':'/a','value':1}]", "{'a':1}"},
    {"replacing in what is not there", "{}", "[{'op':'replace','path':'/a/b','value':1}]", NULL},
    {"replacing an element that is not there", "{'a':[1]}",
     "[{'op':'replace','path':'/a/1','value':1}]", NULL},
    {"moving into itself", "{'a':{}}", "[{'op':'move','from':'/a','path':'/a/b'}]", NULL},
};

static const struct {
    const char *name, *patch;
} malformed[] = {
    {"no list", "{}"},
    {"no object", "[1]"},
    {"an unknown operation", "[{'op':'spam','path':'/a'}]"},
    {"no path", "[{'op':'remove'}]"},
    {"a path without a slash", "[{'op':'remove','path':'a'}]"},
    {"no value", "[{'op':'add','path':'/a'}]"},
    {"no source", "[{'op':'move','path':'/a'}]"},
};

/* Shells of a pod and a deployment around the part under test. */
#define META(x) "{'metadata':{" x "}}"
#define SPEC(x) "{'spec':{" x "}}"
#define STATUS(x) "{'status':{" x "}}"
#define POD1(x) SPEC("'containers':[{'name':'a'," x "}]")
#define TEMPLATE(x) SPEC("'template':{'spec':{" x "}}")

static const struct {
    const char *name, *target, *patch, *want;
    enum api_kind_id kind;
} strategics[] = {
    {"conditions merge by type; new ones come first",
     STATUS("'conditions':[{'type':'Ready','status':'True'},{'type':'PodScheduled'}]"),
     STATUS("'conditions':[{'type':'Ready','status':'False','reason':'Evict'},{'type':'New'}]"),
     STATUS("'conditions':[{'type':'Ready','status':'False','reason':'Evict'},{'type':'New'},"
            "{'type':'PodScheduled'}]"),
     API_POD},
    {"a list that only server-side apply merges is replaced",
     POD1("'resources':{'claims':[{'name':'x'},{'name':'y'}]}"),
     POD1("'resources':{'claims':[{'name':'y','request':'r'}]}"),
     POD1("'resources':{'claims':[{'name':'y','request':'r'}]}"), API_POD},
    {"a container is added in front", TEMPLATE("'containers':[{'name':'nginx','image':'n'}]"),
     TEMPLATE("'containers':[{'name':'redis','image':'r'}]"),
     TEMPLATE("'containers':[{'name':'redis','image':'r'},{'name':'nginx','image':'n'}]"),
     API_DEPLOYMENT},
    {"an image is set as kubectl does it",
     TEMPLATE("'containers':[{'name':'a','image':'a:1'},{'name':'b','image':'b:1'}]"),
     TEMPLATE("'$setElementOrder/containers':[{'name':'a'},{'name':'b'}],"
              "'containers':[{'image':'b:2','name':'b'}]"),
     TEMPLATE("'containers':[{'name':'a','image':'a:1'},{'name':'b','image':'b:2'}]"),
     API_DEPLOYMENT},
    {"tolerations are replaced", SPEC("'tolerations':[{'key':'a'}]"),
     SPEC("'tolerations':[{'key':'b'}]"), SPEC("'tolerations':[{'key':'b'}]"), API_POD},
    {"taints are replaced", SPEC("'taints':[{'key':'a','effect':'NoSchedule'}]"),
     SPEC("'taints':[{'key':'b','effect':'NoExecute'}]"),
     SPEC("'taints':[{'key':'b','effect':'NoExecute'}]"), API_NODE},
    {"arguments are replaced", POD1("'args':['a','b']"), POD1("'args':['c']"), POD1("'args':['c']"),
     API_POD},
    {"maps merge per key", SPEC("'nodeSelector':{'a':'1','b':'2'}"),
     SPEC("'nodeSelector':{'a':null,'c':'3','d':null}"), SPEC("'nodeSelector':{'b':'2','c':'3'}"),
     API_POD},
    {"an element is deleted by its key", SPEC("'schedulingGates':[{'name':'a'},{'name':'b'}]"),
     SPEC("'schedulingGates':[{'$patch':'delete','name':'a'}]"),
     SPEC("'schedulingGates':[{'name':'b'}]"), API_POD},
    {"deleting an element that is not there changes nothing", POD1("'env':[{'name':'a'}]"),
     POD1("'env':[{'$patch':'delete','name':'x'}]"), POD1("'env':[{'name':'a'}]"), API_POD},
    {"a list is replaced on request", POD1("'env':[{'name':'a','value':'1'}]"),
     POD1("'env':[{'$patch':'replace'},{'name':'b'}]"), POD1("'env':[{'name':'b'}]"), API_POD},
    {"a map is replaced on request", META("'labels':{'a':'1'}"),
     META("'labels':{'$patch':'replace','b':'2'}"), META("'labels':{'b':'2'}"), API_POD},
    {"a map is deleted", META("'labels':{'a':'1'},'name':'x'"),
     META("'labels':{'$patch':'delete'}"), META("'name':'x'"), API_POD},
    {"an explicit merge is the default", META("'labels':{'a':'1'}"),
     META("'labels':{'$patch':'merge','b':'2'}"), META("'labels':{'a':'1','b':'2'}"), API_POD},
    {"finalizers unite", META("'finalizers':['a']"), META("'finalizers':['a','b']"),
     META("'finalizers':['a','b']"), API_POD},
    {"finalizers are deleted", META("'finalizers':['a','b']"),
     META("'$deleteFromPrimitiveList/finalizers':['a']"), META("'finalizers':['b']"), API_POD},
    {"finalizers of custom resources unite as well", META("'finalizers':['a']"),
     META("'finalizers':['b']"), META("'finalizers':['b','a']"), API_QUEUE},
    {"finalizers of a namespace's spec are replaced", SPEC("'finalizers':['a']"),
     SPEC("'finalizers':['b']"), SPEC("'finalizers':['b']"), API_NAMESPACE},
    {"owners merge by uid", META("'ownerReferences':[{'uid':'1','name':'x'}]"),
     META("'ownerReferences':[{'uid':'1','controller':true}]"),
     META("'ownerReferences':[{'uid':'1','name':'x','controller':true}]"), API_POD},
    {"service ports go by port", SPEC("'ports':[{'port':80,'name':'x'}]"),
     SPEC("'ports':[{'port':80,'name':'y'}]"), SPEC("'ports':[{'port':80,'name':'y'}]"),
     API_SERVICE},
    {"container ports go by containerPort", POD1("'ports':[{'containerPort':80}]"),
     POD1("'ports':[{'containerPort':80,'name':'h'}]"),
     POD1("'ports':[{'containerPort':80,'name':'h'}]"), API_POD},
    {"a new list is taken as it stands, equal keys included", POD1("'image':'i'"),
     POD1("'ports':[{'containerPort':53,'protocol':'TCP'},{'containerPort':53,'protocol':'UDP'}]"),
     POD1("'image':'i','ports':[{'containerPort':53,'protocol':'TCP'},"
          "{'containerPort':53,'protocol':'UDP'}]"),
     API_POD},
    {"elements only the server knows keep their place",
     POD1("'env':[{'name':'a'},{'name':'s'},{'name':'b'}]"),
     POD1("'$setElementOrder/env':[{'name':'b'},{'name':'a'}],'env':[{'name':'b','value':'1'}]"),
     POD1("'env':[{'name':'s'},{'name':'b','value':'1'},{'name':'a'}]"), API_POD},
    {"an order alone moves elements", POD1("'env':[{'name':'a'},{'name':'b'}]"),
     POD1("'$setElementOrder/env':[{'name':'b'},{'name':'a'}]"),
     POD1("'env':[{'name':'b'},{'name':'a'}]"), API_POD},
    {"keys not retained go", SPEC("'strategy':{'type':'RollingUpdate','rollingUpdate':{'x':1}}"),
     SPEC("'strategy':{'$retainKeys':['type'],'type':'Recreate'}"),
     SPEC("'strategy':{'type':'Recreate'}"), API_DEPLOYMENT},
    {"a volume changes its source", SPEC("'volumes':[{'name':'v','emptyDir':{}}]"),
     SPEC("'volumes':[{'$retainKeys':['name','hostPath'],'name':'v','hostPath':{'path':'/'}}]"),
     SPEC("'volumes':[{'name':'v','hostPath':{'path':'/'}}]"), API_POD},
    {"a budget's selector is replaced", SPEC("'selector':{'matchLabels':{'a':'1'}}"),
     SPEC("'selector':{'matchLabels':{'b':'2'}}"), SPEC("'selector':{'matchLabels':{'b':'2'}}"),
     API_PDB},
    {"a deployment's selector merges", SPEC("'selector':{'matchLabels':{'a':'1'}}"),
     SPEC("'selector':{'matchLabels':{'b':'2'}}"),
     SPEC("'selector':{'matchLabels':{'a':'1','b':'2'}}"), API_DEPLOYMENT},
    {"drivers merge by name", SPEC("'drivers':[{'name':'a','nodeID':'1'}]"),
     SPEC("'drivers':[{'name':'a','topologyKeys':['z']}]"),
     SPEC("'drivers':[{'name':'a','nodeID':'1','topologyKeys':['z']}]"), API_CSI_NODE},
    {"another type replaces", SPEC("'volumes':{'a':1}"), SPEC("'volumes':[{'name':'v'}]"),
     SPEC("'volumes':[{'name':'v'}]"), API_POD},
    {"an element without its key is refused", POD1("'env':[{'name':'a'}]"),
     POD1("'env':[{'value':'1'}]"), NULL, API_POD},
    {"an order that forgets an element of the patch is refused",
     POD1("'env':[{'name':'a'},{'name':'b'}]"),
     POD1("'$setElementOrder/env':[{'name':'a'}],'env':[{'name':'b'}]"), NULL, API_POD},
    {"a key of the patch that is not retained is refused", SPEC("'strategy':{}"),
     SPEC("'strategy':{'$retainKeys':[],'type':'Recreate'}"), NULL, API_DEPLOYMENT},
    {"an explicit merge of an element is refused", POD1("'env':[{'name':'a'}]"),
     POD1("'env':[{'$patch':'merge','name':'a'}]"), NULL, API_POD},
    {"an unknown directive is refused", "{}", "{'$patch':'append'}", NULL, API_POD},
    {"a directive of the wrong type is refused", "{}", "{'$retainKeys':1}", NULL, API_POD},
    {"a patch that is no object is refused", "{}", "[]", NULL, API_POD},
};

static void expect(const char *name, const char *wanted, int rc, const struct json *got,
                   struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};

    if (!wanted) {
        if (rc != -HK_EINVAL) {
            fail_msg("%s: expected a refusal, got %d", name, rc);
        }
        return;
    }
    const struct json tree = json_of_text(wanted, a);
    json_write(got, &text);
    json_write(&tree, &want);
    if (rc != 0 || strcmp(text.data, want.data) != 0) {
        fail_msg("%s: expected %s, got %d %s", name, want.data, rc, text.data);
    }
}

static void merge_patches(void **state)
{
    for (size_t i = 0; i < HK_LEN(merges); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct json target = json_of_text(merges[i].target, &a);
        const struct json patch = json_of_text(merges[i].patch, &a);

        api_patch_merge(&target, &patch, &a);
        expect(merges[i].name, merges[i].want, 0, &target, &a);
    }
}

static void json_patches(void **state)
{
    for (size_t i = 0; i < HK_LEN(jsons); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct json target = json_of_text(jsons[i].target, &a);
        const struct json patch = json_of_text(jsons[i].patch, &a);

        assert_int_equal(api_patch_json_check(&patch, NULL), 0);
        expect(jsons[i].name, jsons[i].want, api_patch_json(&target, &patch, &a, NULL), &target,
               &a);
    }
}

static void malformed_json_patches(void **state)
{
    for (size_t i = 0; i < HK_LEN(malformed); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        const struct json patch = json_of_text(malformed[i].patch, &a);

        expect(malformed[i].name, NULL, api_patch_json_check(&patch, NULL), NULL, &a);
    }
}

/* A patch that repeats one operation. */
static struct json repeat(const char *op, uint32_t times, struct hk_arena *a)
{
    const struct json one = json_of_text(op, a);
    struct json patch = json_make_array();

    for (uint32_t i = 0; i < times; i++) {
        json_push(&patch, a, one);
    }
    return patch;
}

static void json_patches_are_bounded(void **state)
{
    static const struct {
        const char *op;
        uint32_t times;
        int rc;
    } bounds[] = {
        {"{'op':'test','path':'','value':{'a':{'b':1}}}", API_PATCH_MAX_OPS, 0},
        {"{'op':'test','path':'','value':{'a':{'b':1}}}", API_PATCH_MAX_OPS + 1, -HK_ELIMIT},
        {"{'op':'copy','from':'','path':'/a/b'}", 100, -HK_ELIMIT},
    };

    for (size_t i = 0; i < HK_LEN(bounds); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct json target = json_of_text("{'a':{'b':1}}", &a);
        const struct json patch = repeat(bounds[i].op, bounds[i].times, &a);

        assert_int_equal(api_patch_json(&target, &patch, &a, NULL), bounds[i].rc);
    }
}

static void strategic_patches(void **state)
{
    for (size_t i = 0; i < HK_LEN(strategics); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct json target = json_of_text(strategics[i].target, &a);
        const struct json patch = json_of_text(strategics[i].patch, &a);

        expect(strategics[i].name, strategics[i].want,
               api_patch_strategic(&target, &patch, api_kind(strategics[i].kind), &a, NULL),
               &target, &a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_patches),          cmocka_unit_test(json_patches),
        cmocka_unit_test(malformed_json_patches), cmocka_unit_test(json_patches_are_bounded),
        cmocka_unit_test(strategic_patches),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
