// SPDX-License-Identifier: Apache-2.0
// Reviews as text in and text out: each path with a request that it allows, refuses or changes,
// wrong operations and resources, and invalid reviews. For readability ' stands for "; answers omit
// their common head.
#include "webhook/review.h"

#include "api/patch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define REVIEW(request) "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview'," request "}"
#define REQUEST(group, version, plural, operation, rest)                                           \
    REVIEW("'request':{'uid':'7','resource':{'group':'" group "','version':'" version              \
           "','resource':'" plural "'},'operation':'" operation                                    \
           "','name':'n','namespace':'ns'" rest "}")

#define META "'metadata':{'name':'n','namespace':'ns'}"
#define BATCH "'apiVersion':'batch.volcano.sh/v1alpha1',"
#define SCHEDULING "'apiVersion':'scheduling.volcano.sh/v1beta1',"
#define OF_JOBS "batch.volcano.sh", "v1alpha1", "jobs"
#define OF_QUEUES "scheduling.volcano.sh", "v1beta1", "queues"
#define OF_PODGROUPS "scheduling.volcano.sh", "v1beta1", "podgroups"
#define CALL(macro, ...) macro(__VA_ARGS__)
#define ON(...) CALL(REQUEST, __VA_ARGS__)

#define TEMPLATE                                                                                   \
    "'template':{'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}"
#define JOB(spec) "{" BATCH "'kind':'Job'," META ",'spec':{" spec "}}"
#define GOOD_JOB                                                                                   \
    JOB("'minAvailable':1,'queue':'leaf','maxRetry':3,'schedulerName':'volcano',"                  \
        "'tasks':[{'name':'t','replicas':1,'minAvailable':1,'maxRetry':3," TEMPLATE "}]")
#define CRONJOB(spec) "{" BATCH "'kind':'CronJob'," META ",'spec':{" spec "}}"
#define QUEUE(spec) "{" SCHEDULING "'kind':'Queue','metadata':{'name':'n'},'spec':{" spec "}}"
#define PODGROUP(spec) "{" SCHEDULING "'kind':'PodGroup'," META ",'spec':{" spec "}}"
#define POD(meta, spec)                                                                            \
    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'n'" meta "},'spec':{" spec "}}"
#define FLOW(spec)                                                                                 \
    "{'apiVersion':'flow.volcano.sh/v1alpha1','kind':'JobFlow'," META ",'spec':{" spec "}}"
#define HYPERNODE(spec)                                                                            \
    "{'apiVersion':'topology.volcano.sh/v1alpha1','kind':'HyperNode','metadata':{'name':'n'}"      \
    ",'spec':{" spec "}}"

#define YES "{'uid':'7','allowed':true}"
#define NO(text)                                                                                   \
    "{'uid':'7','allowed':false,'status':{'metadata':{},'message':'" text "','code':400}}"
#define PATCHED(patch) "{'uid':'7','allowed':true,'patch':" patch ",'patchType':'JSONPatch'}"

/* ---- the cluster ---- */

static const char *const queues[] = {
    "{'metadata':{'name':'root'},'status':{'state':'Open'}}",
    "{'metadata':{'name':'default'},'spec':{'parent':'root'},'status':{'state':'Open'}}",
    "{'metadata':{'name':'inner'},'spec':{'parent':'root'},'status':{'state':'Open'}}",
    "{'metadata':{'name':'leaf'},'spec':{'parent':'inner'},'status':{'state':'Open'}}",
    "{'metadata':{'name':'shut'},'spec':{'parent':'root'},'status':{'state':'Closed'}}",
};

struct rig {
    struct hk_arena mem;
    struct json queues[HK_LEN(queues)], ns;
    struct admission_lookup lookup;
    struct hk_buf out;
};

/* Replaces ' by ". */
static struct hk_str quoted(struct rig *r, const char *text)
{
    char *copy = hk_arena_strndup(&r->mem, text, strlen(text));

    for (char *c = copy; *c; c++) {
        *c = (char)(*c == '\'' ? '"' : *c);
    }
    return hk_str(copy);
}

static struct json tree(struct rig *r, struct hk_str text)
{
    struct hk_err err = {0};
    struct json doc = {0};

    if (json_parse(text, 0, &r->mem, &doc, &err) < 0) {
        fail_msg("%s in: %.*s", err.text, HK_FMT(text));
    }
    return doc;
}

static const struct json *get(void *ctx, const struct api_kind *kind, struct hk_str ns,
                              struct hk_str name)
{
    struct rig *r = ctx;

    for (size_t i = 0; kind->id == API_QUEUE && i < HK_LEN(queues); i++) {
        if (hk_str_eq(json_str(json_at(&r->queues[i], "metadata.name"), HK_STR("")), name)) {
            return &r->queues[i];
        }
    }
    return kind->id == API_NAMESPACE ? &r->ns : NULL;
}

static void each(void *ctx, const struct api_kind *kind, struct hk_str ns,
                 bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    struct rig *r = ctx;

    for (size_t i = 0; kind->id == API_QUEUE && i < HK_LEN(queues); i++) {
        if (!fn(arg, &r->queues[i])) {
            return;
        }
    }
}

static void rig_init(struct rig *r)
{
    *r = (struct rig){.lookup = {.ctx = r, .get = get, .each = each}};
    for (size_t i = 0; i < HK_LEN(queues); i++) {
        r->queues[i] = tree(r, quoted(r, queues[i]));
    }
    r->ns = tree(r, quoted(r, "{'metadata':{'name':'ns','annotations':"
                              "{'scheduling.volcano.sh/queue-name':'leaf'}}}"));
}

static void rig_fini(struct rig *r)
{
    hk_buf_fini(&r->out);
    hk_arena_fini(&r->mem);
}

/* Only the response, with its patch as JSON instead of base64. */
static struct hk_str ask(struct rig *r, const char *path, struct hk_str body)
{
    static const char head[] =
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":";
    static const struct volcano_options options = {.wait_for_queue_state = true};
    const struct webhook_review review = {.rule = volcano_rule_find(hk_str(path)),
                                          .options = &options,
                                          .lookup = &r->lookup,
                                          .mem = &r->mem};

    hk_buf_clear(&r->out);
    assert_non_null(review.rule);
    webhook_review(&review, body, &r->out);
    assert_true(hk_str_starts(hk_buf_str(&r->out), head));
    tree(r, hk_buf_str(&r->out));
    return (struct hk_str){r->out.data + sizeof(head) - 1, r->out.len - sizeof(head)};
}

/* Base64, for the expected patches. */
static int letter(char c)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(all, c);

    assert_non_null(at);
    return (int)(at - all);
}

static struct hk_str unpacked(struct rig *r, struct hk_str coded)
{
    char *out = hk_arena_alloc(&r->mem, coded.n + 1);
    size_t n = 0;
    uint32_t bits = 0;

    assert_int_equal(coded.n % 4, 0);
    for (size_t i = 0; i < coded.n && coded.s[i] != '='; i++) {
        bits = bits << 6 | (uint32_t)letter(coded.s[i]);
        if (i % 4 != 0) {
            out[n++] = (char)(bits >> (6 - 2 * (i % 4)));
        }
    }
    return (struct hk_str){out, n};
}

static const char *shown(struct rig *r, struct hk_str response)
{
    struct json doc = tree(r, response);
    const struct json *patch = json_get(&doc, "patch");
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (patch) {
        *(struct json *)patch = tree(r, unpacked(r, json_str(patch, HK_STR(""))));
    }
    json_write(&doc, &text);
    return hk_arena_strndup(&r->mem, text.data, text.len);
}

struct row {
    const char *name, *path, *body, *want;
};

static void check(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rig r;

        rig_init(&r);
        const char *got = shown(&r, ask(&r, rows[i].path, quoted(&r, rows[i].body)));
        const char *want = quoted(&r, rows[i].want).s;
        if (strcmp(got, want) != 0) {
            fail_msg("%s:\nexpected: %s\n  actual: %s", rows[i].name, want, got);
        }
        rig_fini(&r);
    }
}

/* ---- tests ---- */

static void every_path_judges(void **state)
{
    static const struct row rows[] = {
        {"a good job", "/jobs/validate", ON(OF_JOBS, "CREATE", ",'object':" GOOD_JOB), YES},
        {"a job without tasks", "/jobs/validate", ON(OF_JOBS, "CREATE", ",'object':" JOB("")),
         NO("No task specified in job spec")},
        {"a job for a queue with children", "/jobs/validate",
         ON(OF_JOBS, "CREATE",
            ",'object':" JOB("'minAvailable':1,'queue':'inner','tasks':[{'name':'t','replicas':1,"
                             "'minAvailable':1," TEMPLATE "}]")),
         NO("can only submit job to leaf queue, queue `inner` has 1 child queues;")},
        {"a job as it was", "/jobs/validate",
         ON(OF_JOBS, "UPDATE", ",'object':" GOOD_JOB ",'oldObject':" GOOD_JOB), YES},
        {"a job that has everything", "/jobs/mutate",
         ON(OF_JOBS, "CREATE",
            ",'object':" JOB("'queue':'q','minAvailable':1,'maxRetry':3,'schedulerName':'v',"
                             "'tasks':[{'name':'t','replicas':1,'minAvailable':1,'maxRetry':3}]")),
         YES},
        {"a job without a queue", "/jobs/mutate",
         ON(OF_JOBS, "CREATE",
            ",'object':" JOB("'minAvailable':1,'maxRetry':3,'schedulerName':'v',"
                             "'tasks':[{'name':'t','replicas':1,'minAvailable':1,'maxRetry':3}]")),
         PATCHED("[{'op':'add','path':'/spec/queue','value':'default'}]")},
        {"a good cron job", "/cronjobs/validate",
         ON("batch.volcano.sh", "v1alpha1", "cronjobs", "CREATE",
            ",'object':" CRONJOB("'schedule':'* * * * *'")),
         YES},
        {"a cron job without a schedule", "/cronjobs/validate",
         ON("batch.volcano.sh", "v1alpha1", "cronjobs", "CREATE", ",'object':" CRONJOB("")),
         NO("schedule is required, but got empty")},
        {"a queue in need of defaults", "/queues/mutate",
         ON(OF_QUEUES, "CREATE", ",'object':" QUEUE("'weight':2")),
         PATCHED("[{'op':'add','path':'/spec/reclaimable','value':true}]")},
        {"a complete queue", "/queues/mutate",
         ON(OF_QUEUES, "CREATE", ",'object':" QUEUE("'weight':2,'reclaimable':true")), YES},
        {"a good queue", "/queues/validate",
         ON(OF_QUEUES, "CREATE", ",'object':" QUEUE("'weight':1")), YES},
        {"a queue that is its own parent", "/queues/validate",
         ON(OF_QUEUES, "CREATE", ",'object':" QUEUE("'parent':'n'")),
         NO("queue n cannot use itself as parent")},
        {"the end of a queue nobody has", "/queues/validate", ON(OF_QUEUES, "DELETE", ""),
         NO("queue.scheduling.volcano.sh \\'n\\' not found")},
        {"the end of a parent", "/queues/validate",
         REVIEW("'request':{'uid':'7','operation':'DELETE','name':'inner','object':null,"
                "'resource':{'group':'scheduling.volcano.sh','version':'v1beta1','resource':"
                "'queues'}}"),
         NO("queue inner can not be deleted because it has 1 child queues: leaf")},
        {"a group whose namespace has a queue", "/podgroups/mutate",
         ON(OF_PODGROUPS, "CREATE", ",'object':" PODGROUP("'queue':'default'")),
         PATCHED("[{'op':'add','path':'/spec/queue','value':'leaf'}]")},
        {"a group with a queue", "/podgroups/mutate",
         ON(OF_PODGROUPS, "CREATE", ",'object':" PODGROUP("'queue':'leaf'")), YES},
        {"a good group", "/podgroups/validate",
         ON(OF_PODGROUPS, "CREATE", ",'object':" PODGROUP("'queue':'leaf'")), YES},
        {"a group for a closed queue", "/podgroups/validate",
         ON(OF_PODGROUPS, "CREATE", ",'object':" PODGROUP("'queue':'shut'")),
         NO("can only submit PodGroup to queue with state `Open`, queue `shut` status is "
            "`Closed`.")},
        {"a pod without a configuration", "/pods/mutate",
         ON("", "v1", "pods", "CREATE", ",'object':" POD("", "'containers':[]")), YES},
        {"a pod", "/pods/validate",
         ON("", "v1", "pods", "CREATE", ",'object':" POD("", "'schedulerName':'volcano'")), YES},
        {"a pod with half a pod to spare", "/pods/validate",
         ON("", "v1", "pods", "CREATE",
            ",'object':" POD(",'annotations':{'volcano.sh/jdb-min-available':'0'}",
                             "'schedulerName':'volcano'")),
         NO("invalid value <\\'0\\'> for volcano.sh/jdb-min-available, it must be a positive "
            "integer")},
        {"a flow", "/jobflows/validate",
         ON("flow.volcano.sh", "v1alpha1", "jobflows", "CREATE",
            ",'object':" FLOW("'flows':[{'name':'a'}]")),
         YES},
        {"a flow after itself", "/jobflows/validate",
         ON("flow.volcano.sh", "v1alpha1", "jobflows", "UPDATE",
            ",'oldObject':" FLOW("") ",'object':" FLOW(
                "'flows':[{'name':'a','dependsOn':{'targets':['a']}}]")),
         NO("jobflow Flow is not DAG")},
        {"a hyper node", "/hypernodes/validate",
         ON("topology.volcano.sh", "v1alpha1", "hypernodes", "CREATE",
            ",'object':" HYPERNODE("'members':[{'type':'Node','selector':{'exactMatch':{'name':"
                                   "'n1'}}}]")),
         YES},
        {"a hyper node of nothing", "/hypernodes/validate",
         ON("topology.volcano.sh", "v1alpha1", "hypernodes", "CREATE", ",'object':" HYPERNODE("")),
         NO("[].spec.members: Invalid value: null: member must have at least one member")},
    };

    check(rows, HK_LEN(rows));
}

static void wrong_operations_and_resources_are_refused(void **state)
{
    static const struct row rows[] = {
        {"jobs are not deleted here", "/jobs/validate", ON(OF_JOBS, "DELETE", ""),
         NO("expect operation to be 'CREATE' or 'UPDATE'")},
        {"nor connected to", "/jobs/mutate", ON(OF_JOBS, "CONNECT", ""),
         NO("expect operation to be 'CREATE' ")},
        {"groups change freely", "/podgroups/validate",
         ON(OF_PODGROUPS, "UPDATE", ",'object':" PODGROUP("")), NO("unsupported operation UPDATE")},
        {"queues end elsewhere", "/queues/mutate", ON(OF_QUEUES, "DELETE", ""),
         NO("invalid operation `DELETE`, expect operation to be `CREATE`")},
        {"no operation", "/pods/validate", ON("", "v1", "pods", "", ""),
         NO("expect operation to be 'CREATE'")},
        {"hyper nodes go unseen", "/hypernodes/validate",
         ON("topology.volcano.sh", "v1alpha1", "hypernodes", "DELETE", ""), YES},
        {"another resource", "/jobs/validate", ON(OF_QUEUES, "CREATE", ",'object':" GOOD_JOB),
         NO("expect resource to be batch.volcano.sh/v1alpha1, Resource=jobs")},
        {"another version", "/pods/validate", ON("", "v2", "pods", "CREATE", ""),
         NO("expect resource to be /v1, Resource=pods")},
        {"no resource", "/queues/validate",
         REVIEW("'request':{'uid':'7','operation':'CREATE','object':" QUEUE("") "}"),
         NO("expect resource to be scheduling.volcano.sh/v1beta1, Resource=queues")},
    };

    /* Messages contain real ' characters, so compare them unquoted. */
    for (size_t i = 0; i < HK_LEN(rows); i++) {
        struct rig r;
        rig_init(&r);
        const struct json got = tree(&r, ask(&r, rows[i].path, quoted(&r, rows[i].body)));
        const char *words = strstr(rows[i].want, "'message':'");
        const struct hk_str said = json_str(json_at(&got, "status.message"), HK_STR(""));
        assert_int_equal(json_bool(json_get(&got, "allowed"), false), !words);
        if (words) {
            const char *want = words + strlen("'message':'");
            const size_t n = (size_t)(strstr(want, "','code'") - want);
            if (!hk_str_eq(said, (struct hk_str){want, n})) {
                fail_msg("%s:\nexpected: %.*s\n  actual: %.*s", rows[i].name, (int)n, want,
                         HK_FMT(said));
            }
        }
        rig_fini(&r);
    }
}

#define PARSE "couldn't get version/kind; json parse error: "

static void a_body_that_is_not_a_review_is_refused(void **state)
{
    static const struct {
        const char *name, *body, *uid, *want; /* prefix of the message */
    } rows[] = {
        {"nothing", "", "", PARSE},
        {"no JSON", "apiVersion: v1", "", PARSE},
        {"half of one", "{'apiVersion':", "", PARSE},
        {"a list", "[]", "", PARSE "array, want object"},
        {"null", "null", "", PARSE "null, want object"},
        {"no words", "{}", "", "no kind \"\" is registered for version \"\", want "},
        {"an old review",
         "{'apiVersion':'admission.k8s.io/v1beta1','kind':'AdmissionReview','request':{'uid':'7'}}",
         "7", "no kind \"AdmissionReview\" is registered for version \"admission.k8s.io/v1beta1\""},
        {"another kind", "{'apiVersion':'admission.k8s.io/v1','kind':'Pod'}", "",
         "no kind \"Pod\" is registered for version \"admission.k8s.io/v1\""},
        {"no request", REVIEW("'response':{}"), "", "request: missing, want object"},
        {"a null request", REVIEW("'request':null"), "", "request: missing, want object"},
        {"a request in words", REVIEW("'request':'please'"), "", "request: string, want object"},
        {"a uid that is none", REVIEW("'request':{'uid':7}"), "", "expect resource to be "},
        {"no object", ON(OF_JOBS, "CREATE", ""), "7", "request.object: missing, want object"},
        {"a null object", ON(OF_JOBS, "CREATE", ",'object':null"), "7",
         "request.object: missing, want object"},
        {"an object in words", ON(OF_JOBS, "CREATE", ",'object':'job'"), "7",
         "request.object: string, want object"},
        {"an update of nothing", ON(OF_JOBS, "UPDATE", ",'object':" GOOD_JOB), "7",
         "request.oldObject: missing, want object"},
        {"another kind of object", ON(OF_JOBS, "CREATE", ",'object':" QUEUE("")), "7",
         "request.object: Queue of scheduling.volcano.sh/v1beta1, want Job of "
         "batch.volcano.sh/v1alpha1"},
        {"an object without a kind", ON(OF_JOBS, "CREATE", ",'object':{}"), "7",
         "request.object:  of , want Job of batch.volcano.sh/v1alpha1"},
    };

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        struct rig r;
        rig_init(&r);
        const struct json got = tree(&r, ask(&r, "/jobs/validate", quoted(&r, rows[i].body)));
        const struct hk_str said = json_str(json_at(&got, "status.message"), HK_STR(""));
        if (!hk_str_starts(said, rows[i].want)) {
            fail_msg("%s:\nexpected: %s...\n  actual: %.*s", rows[i].name, rows[i].want,
                     HK_FMT(said));
        }
        assert_false(json_bool(json_get(&got, "allowed"), true));
        assert_int_equal(json_int(json_at(&got, "status.code"), 0), 400);
        if (!hk_str_is(json_str(json_get(&got, "uid"), HK_STR("?")), rows[i].uid)) {
            fail_msg("%s: uid: expected '%s'", rows[i].name, rows[i].uid);
        }
        rig_fini(&r);
    }
}

static void built_in_objects_are_read_as_typed_ones(void **state)
{
    static const struct row rows[] = {
        {"a wrong type", "/pods/validate",
         ON("", "v1", "pods", "CREATE", ",'object':" POD("", "'containers':'none'")),
         NO("Pod in version \\'v1\\' cannot be handled as a Pod: json: cannot unmarshal string "
            "into Go struct field PodSpec.spec.containers of type []v1.Container")},
    };

    check(rows, HK_LEN(rows));
}

static void the_result_of_a_mutation_is_valid(void **state)
{
    struct rig r;
    struct json patch;
    struct hk_err err = {0};

    rig_init(&r);
    struct json job = tree(&r, quoted(&r, JOB("'tasks':[{'replicas':2," TEMPLATE "}]")));
    const struct json first =
        tree(&r, ask(&r, "/jobs/mutate",
                     quoted(&r, ON(OF_JOBS, "CREATE",
                                   ",'object':" JOB("'tasks':[{'replicas':2," TEMPLATE "}]")))));
    patch = tree(&r, unpacked(&r, json_str(json_get(&first, "patch"), HK_STR(""))));
    assert_int_equal(api_patch_json(&job, &patch, &r.mem, &err), 0);
    assert_int_equal(json_int(json_at(&job, "spec.minAvailable"), 0), 2);

    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, again = {0};
    json_write(&job, &text);
    hk_buf_adds(&again, quoted(&r, "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview',"
                                   "'request':{'uid':'7','operation':'CREATE','namespace':'ns',"
                                   "'resource':{'group':'batch.volcano.sh','version':'v1alpha1',"
                                   "'resource':'jobs'},'object':")
                            .s);
    hk_buf_addf(&again, "%s}}", text.data);
    assert_string_equal(shown(&r, ask(&r, "/jobs/validate", hk_buf_str(&again))),
                        quoted(&r, YES).s);
    rig_fini(&r);
}

#define OF_COMMANDS "bus.volcano.sh", "v1alpha1", "commands"
#define COMMAND(kind)                                                                              \
    "{'apiVersion':'bus.volcano.sh/v1alpha1','kind':'Command'," META                               \
    ",'action':'CloseQueue','target':{'kind':'" kind "','name':'q'}}"
#define BY_ANN ",'userInfo':{'username':'ann','groups':['g'],'extra':{'k':['v']}}"

/* Whether the answer depends on rights; both answers, and the request to the API server. */
static void rights_are_asked_for(void **state)
{
    static const struct {
        const char *body, *asked, *allowed, *denied;
    } rows[] = {
        {ON(OF_COMMANDS, "CREATE", BY_ANN ",'object':" COMMAND("Queue")),
         "{'apiVersion':'authorization.k8s.io/v1','kind':'SubjectAccessReview','spec':{'user':"
         "'ann','groups':['g'],'extra':{'k':['v']},'resourceAttributes':{'verb':'update','group':"
         "'scheduling.volcano.sh','resource':'queues','name':'q'}}}",
         "'allowed':true}", "'allowed':false"},
        {ON(OF_COMMANDS, "CREATE", BY_ANN ",'object':" COMMAND("Job")),
         "{'apiVersion':'authorization.k8s.io/v1','kind':'SubjectAccessReview','spec':{'user':"
         "'ann','groups':['g'],'extra':{'k':['v']},'resourceAttributes':{'verb':'update','group':"
         "'batch.volcano.sh','resource':'jobs','namespace':'ns','name':'q'}}}",
         "'allowed':true}", "'allowed':false"},
        {ON(OF_COMMANDS, "CREATE", BY_ANN ",'object':" COMMAND("Pod")), NULL, "'allowed':true}",
         NULL},
        {ON(OF_COMMANDS, "UPDATE",
            BY_ANN ",'oldObject':" COMMAND("Queue") ",'object':" COMMAND("Queue")),
         NULL, "'allowed':true}", NULL},
        {ON(OF_COMMANDS, "CREATE", BY_ANN), NULL, "'allowed':false", NULL},
    };

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, asked = {0};
        struct webhook_question q = {0};
        struct rig r;

        rig_init(&r);
        const struct webhook_review review = {.rule =
                                                  volcano_rule_find(HK_STR("/commands/validate")),
                                              .lookup = &r.lookup,
                                              .mem = &r.mem};
        const bool asks = webhook_review_asks(&review, quoted(&r, rows[i].body), &out, &q);
        assert_int_equal(asks, rows[i].asked != NULL);
        assert_non_null(strstr(asks ? q.allowed.data : out.data, quoted(&r, rows[i].allowed).s));
        if (asks) {
            json_write(&q.access_review, &asked);
            assert_string_equal(asked.data, quoted(&r, rows[i].asked).s);
            assert_non_null(strstr(q.denied.data, quoted(&r, rows[i].denied).s));
        }
        webhook_question_fini(&q);
        rig_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights_are_asked_for),
        cmocka_unit_test(every_path_judges),
        cmocka_unit_test(wrong_operations_and_resources_are_refused),
        cmocka_unit_test(a_body_that_is_not_a_review_is_refused),
        cmocka_unit_test(built_in_objects_are_read_as_typed_ones),
        cmocka_unit_test(the_result_of_a_mutation_is_valid),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
