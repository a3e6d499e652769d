// SPDX-License-Identifier: Apache-2.0
// Patches: each case is a target, a patch and what becomes of it.
#include "api/patch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct patch_case {
    const char *name, *target, *patch, *want; /* want NULL: refused */
};

static const struct patch_case merges[] = {
    {"members merge", "{'a':{'b':1},'c':2}", "{'a':{'d':3}}", "{'a':{'b':1,'d':3},'c':2}"},
    {"null removes", "{'a':1,'b':2}", "{'a':null,'x':null}", "{'b':2}"},
    {"lists are replaced", "{'a':[1,2]}", "{'a':[3]}", "{'a':[3]}"},
};

static const struct patch_case strategics[] = {
    {"conditions merge by type",
     "{'conditions':[{'type':'Ready','status':'True'},{'type':'PodScheduled','status':'True'}]}",
     "{'conditions':[{'type':'Ready','status':'False','reason':'Evict'},{'type':'New'}]}",
     "{'conditions':[{'type':'Ready','status':'False','reason':'Evict'},"
     "{'type':'PodScheduled','status':'True'},{'type':'New'}]}"},
    {"other lists are replaced", "{'args':['a','b']}", "{'args':['c']}", "{'args':['c']}"},
    {"an element is deleted by its key", "{'schedulingGates':[{'name':'a'},{'name':'b'}]}",
     "{'schedulingGates':[{'$patch':'delete','name':'a'}]}", "{'schedulingGates':[{'name':'b'}]}"},
    {"deleting an element that is not there changes nothing", "{'env':[{'name':'a'}]}",
     "{'env':[{'$patch':'delete','name':'x'}]}", "{'env':[{'name':'a'}]}"},
    {"a list is replaced on request", "{'env':[{'name':'a','value':'1'}]}",
     "{'env':[{'$patch':'replace'},{'name':'b'}]}", "{'env':[{'name':'b'}]}"},
    {"a map is replaced on request", "{'m':{'a':1}}", "{'m':{'$patch':'replace','b':2}}",
     "{'m':{'b':2}}"},
    {"a map is deleted", "{'m':{'a':1},'n':1}", "{'m':{'$patch':'delete'}}", "{'n':1}"},
    {"plain values unite", "{'finalizers':['a']}", "{'finalizers':['a','b']}",
     "{'finalizers':['a','b']}"},
    {"plain values are deleted", "{'finalizers':['a','b']}",
     "{'$deleteFromPrimitiveList/finalizers':['a']}", "{'finalizers':['b']}"},
    {"service ports go by port", "{'ports':[{'port':80,'name':'x'}]}",
     "{'ports':[{'port':80,'name':'y'}]}", "{'ports':[{'port':80,'name':'y'}]}"},
    {"container ports go by containerPort", "{'ports':[{'containerPort':80}]}",
     "{'ports':[{'containerPort':81}]}", "{'ports':[{'containerPort':80},{'containerPort':81}]}"},
    {"the order of listed elements is set", "{'env':[{'name':'a'},{'name':'s'},{'name':'b'}]}",
     "{'$setElementOrder/env':[{'name':'b'},{'name':'a'}],'env':[{'name':'b','value':'1'}]}",
     "{'env':[{'name':'b','value':'1'},{'name':'s'},{'name':'a'}]}"},
    {"keys not retained go", "{'strategy':{'type':'R','rollingUpdate':{'x':1}}}",
     "{'strategy':{'$retainKeys':['type'],'type':'Recreate'}}", "{'strategy':{'type':'Recreate'}}"},
    {"an element without its key is refused", "{'env':[{'name':'a'}]}", "{'env':[{'value':'1'}]}",
     NULL},
    {"an unknown directive is refused", "{}", "{'$patch':'append'}", NULL},
    {"a directive of the wrong type is refused", "{}", "{'$retainKeys':1}", NULL},
};

static struct json parse(const char *text, struct hk_arena *a)
{
    char *s = hk_arena_strndup(a, text, strlen(text));
    struct hk_err err = {0};
    struct json v;

    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(hk_str(s), 0, a, &v, &err) < 0) {
        fail_msg("test JSON: %s", err.text);
    }
    return v;
}

static void expect(const struct patch_case *c, int rc, const struct json *got, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};

    if (!c->want) {
        if (rc != -HK_EINVAL) {
            fail_msg("%s: expected a refusal, got %d", c->name, rc);
        }
        return;
    }
    const struct json wanted = parse(c->want, a);
    json_write(got, &text);
    json_write(&wanted, &want);
    if (rc != 0 || strcmp(text.data, want.data) != 0) {
        fail_msg("%s: expected %s, got %d %s", c->name, want.data, rc, text.data);
    }
}

static void merge_patches(void **state)
{
    for (size_t i = 0; i < HK_LEN(merges); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct json target = parse(merges[i].target, &a);
        const struct json patch = parse(merges[i].patch, &a);

        api_patch_merge(&target, &patch, &a);
        expect(&merges[i], 0, &target, &a);
    }
}

static void strategic_patches(void **state)
{
    for (size_t i = 0; i < HK_LEN(strategics); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct json target = parse(strategics[i].target, &a);
        const struct json patch = parse(strategics[i].patch, &a);

        expect(&strategics[i], api_patch_strategic(&target, &patch, &a, NULL), &target, &a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_patches),
        cmocka_unit_test(strategic_patches),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
