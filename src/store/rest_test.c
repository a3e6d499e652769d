// SPDX-License-Identifier: Apache-2.0
// Answers of the port over the store: writes, conflicts, lists and error messages.
#include "store/rest_story_test.h"

#include "admission/volcano.h"

static void test_an_object_is_created_changed_and_deleted(void **state)
{
    static const struct step steps[] = {
        {"ConfigMap", GET("a"), NULL, 404, "NotFound", "configmaps \"a\" not found"},
        {"ConfigMap", CREATE, "{'metadata':{'name':'a','uid':'x'},'data':{'k':'1'}}", 201,
         .see = {"metadata.namespace", "default", "metadata.creationTimestamp",
                 "2026-01-02T03:04:05Z", "kind", "ConfigMap"}},
        {"ConfigMap", CREATE, "{'metadata':{'name':'a'}}", 409, "AlreadyExists",
         "configmaps \"a\" already exists"},
        {"ConfigMap", GET("a"), NULL, 200, .see = {"data.k", "1", "apiVersion", "v1"}},
        {"ConfigMap", UPDATE("a"), "{'metadata':{'name':'a'},'data':{'k':'2'}}", 200,
         .see = {"data.k", "2", "metadata.creationTimestamp", "2026-01-02T03:04:05Z"}},
        {"ConfigMap", MERGE("a"), "{'data':{'k':null,'l':'3'}}", 200,
         .see = {"data", "{\"l\":\"3\"}"}},
        {"ConfigMap", DELETE("a"), NULL, 200},
        {"ConfigMap", DELETE("a"), NULL, 404, "NotFound", "configmaps \"a\" not found"},
    };

    rig_story(*state, steps);
}

static void test_bodies_must_fit_the_request(void **state)
{
    static const struct step steps[] = {
        {"Job", CREATE, "{'apiVersion':'batch/v1','metadata':{'name':'a'}}", 400, "BadRequest",
         "the API version in the data (batch/v1) does not match the expected API version "
         "(batch.volcano.sh/v1alpha1)"},
        {"ConfigMap", CREATE, "{'metadata':{'name':'a','namespace':'other'}}", 400, "BadRequest",
         "the namespace of the provided object does not match the namespace sent on the request"},
        {"ConfigMap", CREATE, "{'metadata':{'name':'a','resourceVersion':'5'}}", 400, "BadRequest",
         "resourceVersion should not be set on objects to be created"},
        {"ConfigMap", CREATE, "{'metadata':{}}", 422, "Invalid", NULL,
         "FieldValueRequired metadata.name; "},
        {"ConfigMap", CREATE, "{'metadata':{'name':'a'}}", 201},
        {"ConfigMap", UPDATE("a"), "{'metadata':{'name':'b'}}", 400, "BadRequest",
         "the name of the object (b) does not match the name on the URL (a)"},
        {"ConfigMap", UPDATE("a"), "{'metadata':{'name':'a','uid':'x'}}", 409, "Conflict"},
        {"ConfigMap", UPDATE("a"), "{'metadata':{'name':'a','resourceVersion':'1'}}", 409,
         "Conflict",
         "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please "
         "apply your changes to the latest version and try again"},
        {"ConfigMap", MERGE("a"), "{'metadata':{'resourceVersion':'1'}}", 409, "Conflict"},
        {"ConfigMap", UPDATE("zz"), "{'metadata':{'name':'zz'}}", 404, "NotFound"},
        {"ConfigMap", STATUS(PORT_UPDATE, "a"), "{'metadata':{'name':'a'}}", 404, "NotFound"},
        {"Namespace", .req = {.verb = PORT_DELETE_COLLECTION}, NULL, 405, "MethodNotAllowed",
         "the server does not allow this method on the requested resource"},
    };

    rig_story(*state, steps);
}

static void test_updates_need_a_revision_where_kinds_ask_for_it(void **state)
{
    static const struct step steps[] = {
        {"PodGroup", CREATE, "{'metadata':{'name':'g'},'spec':{'minMember':1}}", 201,
         .see = {"metadata.generation", "1"}},
        {"PodGroup", UPDATE("g"), "{'metadata':{'name':'g'},'spec':{'minMember':2}}", 422,
         "Invalid",
         "PodGroup.scheduling.volcano.sh \"g\" is invalid: metadata.resourceVersion: Invalid "
         "value: 0: must be specified for an update",
         "FieldValueInvalid metadata.resourceVersion; "},
        {"PodGroup", MERGE("g"), "{'spec':{'minMember':2}}", 200,
         .see = {"metadata.generation", "2"}},
        {"Lease", UPDATE("l"), "{'metadata':{'name':'l'},'spec':{}}", 201},
        {"Lease", UPDATE("l"), "{'metadata':{'name':'l'},'spec':{}}", 422},
        {"PodGroup",
         .req = {.verb = PORT_PATCH, .ns = NS, .name = HK_STR("g"), .patch = PORT_PATCH_STRATEGIC},
         "{'spec':{'minMember':3}}", 415, "UnsupportedMediaType",
         "the body of the request was in an unknown format - accepted media types include: "
         "application/json-patch+json, application/merge-patch+json, "
         "application/apply-patch+yaml"},
    };

    rig_story(*state, steps);
}

static void test_status_and_spec_are_apart(void **state)
{
    static const struct step steps[] = {
        {"HyperJob", CREATE,
         "{'metadata':{'name':'j'},'spec':{'minAvailable':1},'status':{'running':9}}", 201,
         .see = {"status", "-", "metadata.generation", "1"}},
        {"HyperJob", STATUS(PORT_PATCH, "j"),
         "{'metadata':{'labels':{'a':'b'}},'spec':{'minAvailable':5},'status':{'running':1}}", 200,
         .see = {"status.running", "1", "spec.minAvailable", "1", "metadata.labels", "-"}},
        {"HyperJob", GET("j"), NULL, 200, .see = {"metadata.generation", "1"}},
        {"HyperJob", MERGE("j"), "{'spec':{'minAvailable':2},'status':{'running':7}}", 200,
         .see = {"status.running", "1", "metadata.generation", "2"}},
        /* no status subresource: a normal field that increments the generation */
        {"PodGroup", CREATE, "{'metadata':{'name':'g'},'status':{'phase':'Pending'}}", 201,
         .see = {"status.phase", "Pending"}},
        {"PodGroup", STATUS(PORT_PATCH, "g"), "{'status':{'phase':'Inqueue'}}", 404},
        {"PodGroup", MERGE("g"), "{'status':{'phase':'Inqueue'}}", 200,
         .see = {"status.phase", "Inqueue", "metadata.generation", "2"}},
        /* for old kinds a status write also changes labels and annotations */
        {"Node", .req = {.verb = PORT_CREATE},
         "{'metadata':{'name':'n'},'status':{'phase':'Pending'}}", 201,
         .see = {"status.phase", "Pending"}},
        {"Node",
         .req = {.verb = PORT_PATCH,
                 .name = HK_STR("n"),
                 .subresource = "status",
                 .patch = PORT_PATCH_MERGE},
         "{'metadata':{'labels':{'a':'b'}},'status':{'phase':'Running'}}", 200,
         .see = {"status.phase", "Running", "metadata.labels.a", "b"}},
    };

    rig_story(*state, steps);
}

static struct answer ask(struct rig *g, const char *kind, struct port_request req, const char *body)
{
    req.kind = rig_kind(g, kind);
    req.body = body ? rig_json(g, body) : NULL;
    return rig_ask(g, &req);
}

static void test_a_write_without_change_writes_nothing(void **state)
{
    struct rig *g = *state;
    const struct port_request create = {.verb = PORT_CREATE, .ns = NS};
    const struct port_request merge = {
        .verb = PORT_PATCH, .ns = NS, .name = HK_STR("a"), .patch = PORT_PATCH_MERGE};
    struct answer first = ask(g, "ConfigMap", create, "{'metadata':{'name':'a'},'data':{'k':'1'}}");
    const uint64_t before = store_rv(g->store);
    struct answer again = ask(g, "ConfigMap", merge, "{'data':{'k':'1'}}");

    assert_int_equal(again.rv, first.rv);
    assert_int_equal(store_rv(g->store), before);
    answer_fini(&first);
    answer_fini(&again);
}

static void test_a_dry_run_leaves_no_trace(void **state)
{
    static const struct step steps[] = {
        {"ConfigMap", .req = {.verb = PORT_CREATE, .ns = NS, .dry_run = true},
         "{'metadata':{'generateName':'a-'}}", 201,
         .see = {"metadata.resourceVersion", "-", "metadata.namespace", "default"}},
        {"ConfigMap", CREATE, "{'metadata':{'name':'b'},'data':{'k':'1'}}", 201},
        {"ConfigMap",
         .req = {.verb = PORT_PATCH,
                 .ns = NS,
                 .name = HK_STR("b"),
                 .patch = PORT_PATCH_MERGE,
                 .dry_run = true},
         "{'data':{'k':'2'}}", 200, .see = {"data.k", "2"}},
        {"ConfigMap", .req = {.verb = PORT_DELETE, .ns = NS, .name = HK_STR("b"), .dry_run = true},
         NULL, 200},
        {"ConfigMap", GET("b"), NULL, 200, .see = {"data.k", "1"}},
    };
    const struct port_request list = {.verb = PORT_LIST, .ns = NS};

    rig_story(*state, steps);
    struct answer a = ask(*state, "ConfigMap", list, NULL);
    assert_string_equal(a.names, "b");
}

static void test_generated_names_are_short_and_stay(void **state)
{
    struct rig *g = *state;
    const struct port_request create = {.verb = PORT_CREATE, .ns = NS};
    struct answer a = ask(g, "ConfigMap", create, "{'metadata':{'generateName':'job-'}}");

    assert_int_equal(a.code, 201);
    assert_int_equal(a.obj->name.n, 9);
    assert_true(hk_str_starts(a.obj->name, "job-"));
    assert_string_equal(rig_look(g, a.obj, "metadata.generateName"), "job-");
    answer_fini(&a);
}

static void test_a_pod_is_bound_once(void **state)
{
#define BIND(n) .req = {.verb = PORT_CREATE, .ns = NS, .name = HK_STR(n), .subresource = "binding" }
    static const struct step steps[] = {
        {"Pod", CREATE, "{'metadata':{'name':'p'},'spec':{" BOX "}}", 201},
        {"Pod", BIND("p"), "{'metadata':{'name':'p'},'target':{'kind':'Shelf','name':'n1'}}", 422},
        {"Pod", BIND("p"), "{'metadata':{'name':'p','uid':'other'},'target':{'name':'n1'}}", 409},
        {"Pod", BIND("p"),
         "{'metadata':{'name':'p','annotations':{'a':'b'}},'target':{'kind':'Node','name':'n1'}}",
         201},
        {"Pod", GET("p"), NULL, 200,
         .see = {"spec.nodeName", "n1", "metadata.annotations.a", "b", "status.conditions",
                 "[{\"type\":\"PodScheduled\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\","
                 "\"status\":\"True\"}]"}},
        {"Pod", BIND("p"), "{'metadata':{'name':'p'},'target':{'name':'n2'}}", 409, "Conflict",
         "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node "
         "\"n1\""},
        {"Pod", BIND("q"), "{'metadata':{'name':'q'},'target':{'name':'n2'}}", 404},
        {"Pod", CREATE,
         "{'metadata':{'name':'g'},'spec':{'schedulingGates':[{'name':'x'}]," BOX "}}", 201},
        {"Pod", BIND("g"), "{'metadata':{'name':'g'},'target':{'name':'n2'}}", 409, "Conflict",
         "Operation cannot be fulfilled on pods/binding \"g\": pod g has non-empty "
         ".spec.schedulingGates"},
    };

    rig_story(*state, steps);
}

static void test_scale_is_a_view_of_replicas(void **state)
{
#define SCALE(v)                                                                                   \
    .req = {                                                                                       \
        .verb = (v),                                                                               \
        .ns = NS,                                                                                  \
        .name = HK_STR("d"),                                                                       \
        .subresource = "scale",                                                                    \
        .patch = PORT_PATCH_MERGE                                                                  \
    }
    static const struct step steps[] = {
        {"Deployment", CREATE,
         "{'metadata':{'name':'d'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':'x'}},"
         "'template':{'metadata':{'labels':{'app':'x'}},'spec':{" BOX "}}}}",
         201},
        {"Deployment", SCALE(PORT_GET), NULL, 200,
         .see = {"kind", "Scale", "spec.replicas", "2", "status.selector", "app=x"}},
        {"Deployment", SCALE(PORT_PATCH), "{'spec':{'replicas':5}}", 200,
         .see = {"kind", "Scale", "spec.replicas", "5"}},
        {"Deployment", GET("d"), NULL, 200,
         .see = {"spec.replicas", "5", "metadata.generation", "2"}},
        {"Deployment", SCALE(PORT_UPDATE),
         "{'metadata':{'name':'d','resourceVersion':'1'},'spec':{'replicas':1}}", 409},
        {"Deployment", SCALE(PORT_UPDATE), "{'metadata':{'name':'d'},'spec':{'replicas':-1}}", 422},
        {"ConfigMap", SCALE(PORT_GET), NULL, 404},
    };

    rig_story(*state, steps);
}

static void test_an_eviction_asks_the_budget(void **state)
{
#define EVICT(n)                                                                                   \
    .req = {.verb = PORT_CREATE, .ns = NS, .name = HK_STR(n), .subresource = "eviction" }
    static const struct step steps[] = {
        {"Node", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'n1'}}", 201},
        {"PodDisruptionBudget", CREATE,
         "{'metadata':{'name':'b'},'spec':{'selector':{'matchLabels':{'app':'x'}}}}", 201},
        {"Pod", CREATE, "{'metadata':{'name':'p','labels':{'app':'x'}},'spec':{" BOX "}}", 201},
        {"Pod", CREATE, "{'metadata':{'name':'q','labels':{'app':'x'}},'spec':{" BOX "}}", 201},
        {"Pod", STATUS(PORT_PATCH, "p"), "{'status':{'phase':'Running'}}", 200},
        {"Pod", EVICT("p"), "{'metadata':{'name':'q'}}", 400, "BadRequest",
         "name in URL does not match name in Eviction object"},
        {"Pod", EVICT("p"), "{'kind':'Scale','metadata':{'name':'p'}}", 400, "BadRequest",
         "Scale in version \"\" cannot be handled as a Eviction: the kind in the data does not "
         "match the path"},
        {"Pod", EVICT("p"), "{'metadata':{'name':'p'}}", 429, "TooManyRequests",
         "Cannot evict pod as it would violate the pod's disruption budget.",
         "DisruptionBudget -; "},
        {"PodDisruptionBudget", STATUS(PORT_PATCH, "b"),
         "{'status':{'observedGeneration':1,'disruptionsAllowed':0}}", 200},
        {"Pod", EVICT("p"), "{'metadata':{'name':'p'}}", 429},
        {"PodDisruptionBudget", STATUS(PORT_PATCH, "b"), "{'status':{'disruptionsAllowed':1}}",
         200},
        {"Pod", EVICT("p"), "{'metadata':{'name':'p'}}", 201, ""},
        {"Pod", GET("p"), NULL, 404},
        {"PodDisruptionBudget", GET("b"), NULL, 200,
         .see = {"status.disruptionsAllowed", "0", "status.disruptedPods.p",
                 "2026-01-02T03:04:05Z"}},
        {"Pod", EVICT("q"), "{'metadata':{'name':'q'}}", 201}, /* pending pods need no budget */
        {"Pod", EVICT("q"), "{'metadata':{'name':'q'}}", 404},
    };

    rig_story(*state, steps);
}

#define APPLY_MAP(by, ...)                                                                         \
    .req = {.verb = PORT_PATCH,                                                                    \
            .ns = NS,                                                                              \
            .name = HK_STR("m"),                                                                   \
            .patch = PORT_PATCH_APPLY,                                                             \
            .field_manager = HK_STR(by),                                                           \
            __VA_ARGS__}
#define MAP_WITH(data)                                                                             \
    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'m'},'data':" data "}"

/* To apply an empty map is to own none of its members: nobody else's are in conflict with it. */
static void test_an_empty_map_is_applied_without_conflict(void **state)
{
    static const struct step steps[] = {
        {"ConfigMap", APPLY_MAP("ann"), MAP_WITH("{'a':'1','b':'1'}"), 201},
        {"ConfigMap", APPLY_MAP("bob", .force = true), MAP_WITH("{'a':'2','c':'2'}"), 200},
        {"ConfigMap", APPLY_MAP("ann"), MAP_WITH("{}"), 200,
         .see = {"data", "{\"a\":\"2\",\"c\":\"2\"}"}},
        {"ConfigMap", APPLY_MAP("ann"), MAP_WITH("{'a':'3'}"), 409, "Conflict",
         "Apply failed with 1 conflict: conflict with \"bob\": .data.a"},
        {"ConfigMap", APPLY_MAP("ann"), "{'metadata':{'name':'m'}}", 400, "BadRequest",
         "invalid object type: /, Kind="},
    };

    rig_story(*state, steps);
}

#define NEW_WIDE .req = {.verb = PORT_CREATE}
#define MERGE_WIDE(n) .req = {.verb = PORT_PATCH, .name = HK_STR(n), .patch = PORT_PATCH_MERGE}
static void test_some_fields_never_change(void **state)
{
    static const struct step steps[] = {
        {"StorageClass", NEW_WIDE, "{'metadata':{'name':'s'},'provisioner':'x.test/p'}", 201},
        {"StorageClass", MERGE_WIDE("s"), "{'provisioner':'other'}", 422, "Invalid",
         "StorageClass.storage.k8s.io \"s\" is invalid: provisioner: Forbidden: updates to "
         "provisioner are forbidden."},
        {"StorageClass", MERGE_WIDE("s"), "{'allowVolumeExpansion':true}", 200},
        {"PersistentVolume", NEW_WIDE,
         "{'metadata':{'name':'v'},'spec':{'capacity':{'storage':'1Gi'},'accessModes':"
         "['ReadWriteOnce'],'hostPath':{'path':'/x'}}}",
         201},
        {"PersistentVolume", MERGE_WIDE("v"), "{'spec':{'hostPath':{'path':'/y'}}}", 422, "Invalid",
         "PersistentVolume \"v\" is invalid: spec.persistentvolumesource: Forbidden: "
         "spec.persistentvolumesource is immutable after creation"},
        {"PersistentVolume", MERGE_WIDE("v"), "{'spec':{'capacity':{'storage':'2Gi'}}}", 200},
        {"RuntimeClass", NEW_WIDE, "{'metadata':{'name':'r'},'handler':'h'}", 201},
        {"RuntimeClass", MERGE_WIDE("r"), "{'handler':'i'}", 422, "Invalid",
         "RuntimeClass.node.k8s.io \"r\" is invalid: handler: Invalid value: \"i\": field is "
         "immutable"},
    };

    rig_story(*state, steps);
}

static void test_lists_select_and_page(void **state)
{
    struct rig *g = *state;
    static const struct step steps[] = {
        {"Pod", CREATE,
         "{'metadata':{'name':'a','labels':{'app':'x'}},'spec':{'nodeName':'n1'," BOX "}}", 201},
        {"Pod", CREATE,
         "{'metadata':{'name':'b','labels':{'app':'y'}},'spec':{'nodeName':'n2'," BOX "}}", 201},
        {"Pod", CREATE, "{'metadata':{'name':'c','labels':{'app':'x'}},'spec':{" BOX "}}", 201},
        {"Pod", .req = {.verb = PORT_CREATE, .ns = HK_STR("kube-system")},
         "{'metadata':{'name':'d'},'spec':{" BOX "}}", 201},
    };
    static const struct {
        const char *ns, *labels, *fields, *names;
    } cases[] = {
        {"", "", "", "a b c d"},
        {"default", "", "", "a b c"},
        {"default", "app=x", "", "a c"},
        {"", "app!=x", "", "b d"},
        {"", "app in (x,y)", "spec.nodeName=n1", "a"},
        {"", "", "spec.host=n2", "b"},
        {"", "", "spec.nodeName!=n1", "b c d"},
        {"", "", "metadata.name=c", "c"},
        {"default", "", "metadata.name=c", "c"},
        {"default", "", "metadata.name=d", ""},
        {"", "", "metadata.namespace=kube-system", "d"},
        {"", "", "spec.hostNetwork=false", "a b c d"},
    };

    rig_story(g, steps);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct port_request req = {
            .verb = PORT_LIST,
            .ns = hk_str(cases[i].ns),
            .label_selector = hk_str(cases[i].labels),
            .field_selector = hk_str(cases[i].fields),
        };
        struct answer a = ask(g, "Pod", req, NULL);
        assert_string_equal(a.names, cases[i].names);
    }
    static const struct step bad[] = {
        {"Pod", .req = {.verb = PORT_LIST, .field_selector = HK_STR("spec.bogus=1")}, NULL, 400,
         "BadRequest", "field label not supported: spec.bogus"},
        {"ConfigMap", .req = {.verb = PORT_LIST, .field_selector = HK_STR("data.x=1")}, NULL, 400,
         "BadRequest",
         "\"data.x\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {"Pod", .req = {.verb = PORT_LIST, .label_selector = HK_STR("a in (")}, NULL, 400},
        {"Pod", .req = {.verb = PORT_LIST, .cont = HK_STR("!!")}, NULL, 400, "BadRequest",
         "continue key is not valid: !!"},
        {"Pod", .req = {.verb = PORT_LIST, .rv = 999999}, NULL, 504, "Timeout"},
    };
    rig_story(g, bad);
}

static struct answer page(struct rig *g, const char *cont)
{
    const struct port_request req = {.verb = PORT_LIST, .ns = NS, .limit = 2, .cont = hk_str(cont)};

    return ask(g, "ConfigMap", req, NULL);
}

/* Changes between two pages are not visible. */
static void test_pages_show_one_revision(void **state)
{
    struct rig *g = *state;
    static const struct step before[] = {
        {"ConfigMap", CREATE, "{'metadata':{'name':'a'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'c'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'e'},'data':{'k':'old'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'g'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'i'}}", 201},
    };
    static const struct step between[] = {
        {"ConfigMap", DELETE("a"), NULL, 200},
        {"ConfigMap", DELETE("g"), NULL, 200},
        {"ConfigMap", CREATE, "{'metadata':{'name':'f'}}", 201},
        {"ConfigMap", MERGE("e"), "{'data':{'k':'new'}}", 200},
        {"ConfigMap", CREATE, "{'metadata':{'name':'z'}}", 201},
    };

    rig_story(g, before);
    struct answer one = page(g, "");
    assert_string_equal(one.names, "a c");
    assert_int_equal(one.remaining, 3);
    rig_story(g, between);
    struct answer two = page(g, one.cont);
    assert_string_equal(two.names, "e g");
    assert_int_equal(two.rv, one.rv);
    struct answer three = page(g, two.cont);
    assert_string_equal(three.names, "i");
    assert_string_equal(three.cont, "");
    const struct port_request exact = {
        .verb = PORT_LIST, .ns = NS, .rv = one.rv, .match = PORT_MATCH_EXACT};
    struct answer all = ask(g, "ConfigMap", exact, NULL);
    assert_string_equal(all.names, "a c e g i");
}

static void test_an_old_page_expires_with_a_way_on(void **state)
{
    struct rig *g = *state;
    static const struct step before[] = {
        {"ConfigMap", CREATE, "{'metadata':{'name':'a'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'b'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'c'},'data':{'n':'0'}}", 201},
    };

    rig_story(g, before);
    struct answer one = page(g, "");
    for (int i = 1; i < 1200; i++) {
        const struct port_request merge = {
            .verb = PORT_PATCH, .ns = NS, .name = HK_STR("c"), .patch = PORT_PATCH_MERGE};
        struct answer a =
            ask(g, "ConfigMap", merge, hk_arena_printf(&g->mem, "{'data':{'n':'%d'}}", i));
        answer_fini(&a);
    }
    struct answer old = page(g, one.cont);
    assert_int_equal(old.code, 410);
    assert_string_equal(old.reason, "Expired");
    struct answer on = page(g, old.cont);
    assert_int_equal(on.code, 200);
    assert_string_equal(on.names, "c");
}

static void test_collections_are_deleted_by_selection(void **state)
{
    struct rig *g = *state;
    static const struct step steps[] = {
        {"ConfigMap", CREATE, "{'metadata':{'name':'a','labels':{'x':'1'}}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'b'}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'c','labels':{'x':'1'}}}", 201},
    };
    const struct port_request wipe = {
        .verb = PORT_DELETE_COLLECTION, .ns = NS, .label_selector = HK_STR("x=1")};
    const struct port_request list = {.verb = PORT_LIST, .ns = NS};

    rig_story(g, steps);
    struct answer a = ask(g, "ConfigMap", wipe, NULL);
    assert_int_equal(a.code, 200);
    assert_string_equal(a.names, "a c");
    a = ask(g, "ConfigMap", list, NULL);
    assert_string_equal(a.names, "b");
}

#define APPLY(by, ...)                                                                             \
    .req = {.verb = PORT_PATCH,                                                                    \
            .ns = NS,                                                                              \
            .name = HK_STR("d"),                                                                   \
            .patch = PORT_PATCH_APPLY,                                                             \
            .field_manager = HK_STR(by),                                                           \
            __VA_ARGS__}
#define DEPLOY(spec)                                                                               \
    "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d'},'spec':{" spec            \
    "'selector':{'matchLabels':{'app':'x'}},'template':{'metadata':{'labels':{'app':'x'}},"        \
    "'spec':{" BOX "}}}}"

static void test_appliers_hold_what_they_set(void **state)
{
    static const struct step steps[] = {
        {"Deployment", APPLY(""), DEPLOY(""), 422, "Invalid",
         "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for "
         "apply patch"},
        {"Deployment", APPLY("ann"), DEPLOY("'replicas':2,'minReadySeconds':5,"), 201,
         .see = {"spec.replicas", "2", "metadata.generation", "1"}},
        {"Deployment", APPLY("ann"), DEPLOY("'replicas':2,'minReadySeconds':5,"), 200,
         .see = {"metadata.generation", "1"}},
        {"Deployment", APPLY("bob"), DEPLOY("'replicas':3,"), 409, "Conflict",
         "Apply failed with 1 conflict: conflict with \"ann\": .spec.replicas",
         "FieldManagerConflict .spec.replicas; "},
        {"Deployment", APPLY("bob", .force = true), DEPLOY("'replicas':3,"), 200,
         .see = {"spec.replicas", "3"}},
        /* now owned by bob: ann may drop it, and fields without another owner */
        {"Deployment", APPLY("ann"), DEPLOY(""), 200,
         .see = {"spec.replicas", "3", "spec.minReadySeconds", "-"}},
        {"Deployment",
         .req = {.verb = PORT_PATCH,
                 .ns = NS,
                 .name = HK_STR("d"),
                 .patch = PORT_PATCH_MERGE,
                 .field_manager = HK_STR("kubectl")},
         "{'spec':{'replicas':4}}", 200},
        {"Deployment", APPLY("bob"), DEPLOY("'replicas':3,"), 409, "Conflict",
         "Apply failed with 1 conflict: conflict with \"kubectl\" using apps/v1: .spec.replicas"},
        {"Deployment", APPLY("bob"), DEPLOY("'replicas':4,"), 200, .see = {"spec.replicas", "4"}},
        {"Deployment", MERGE("d"), "{'force':1}", 200},
        {"Deployment",
         .req = {.verb = PORT_PATCH,
                 .ns = NS,
                 .name = HK_STR("d"),
                 .patch = PORT_PATCH_MERGE,
                 .force = true},
         "{}", 422},
    };

    rig_story(*state, steps);
}

static void test_applied_lists_merge_by_their_keys(void **state)
{
    struct rig *g = *state;
    static const struct step steps[] = {
        {"Pod",
         .req = {.verb = PORT_PATCH,
                 .ns = NS,
                 .name = HK_STR("p"),
                 .patch = PORT_PATCH_APPLY,
                 .field_manager = HK_STR("ann")},
         "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','labels':{'a':'1','b':'1'}},'spec'"
         ":{" BOX "}}",
         201},
        {"Pod",
         .req = {.verb = PORT_PATCH,
                 .ns = NS,
                 .name = HK_STR("p"),
                 .patch = PORT_PATCH_APPLY,
                 .field_manager = HK_STR("bob")},
         "{'apiVersion':'v1','kind':'Pod','metadata':{'labels':{'c':'1'}},'spec':{'containers':[{'"
         "name':'c','image':'i'}]}}",
         200, .see = {"metadata.labels", "{\"a\":\"1\",\"b\":\"1\",\"c\":\"1\"}"}},
        {"Pod",
         .req = {.verb = PORT_PATCH,
                 .ns = NS,
                 .name = HK_STR("p"),
                 .patch = PORT_PATCH_APPLY,
                 .field_manager = HK_STR("ann")},
         "{'apiVersion':'v1','kind':'Pod','metadata':{'labels':{'a':'1'}},'spec':{'containers':[{'"
         "name':'c','image':'j'}"
         "]}}",
         409, "Conflict",
         "Apply failed with 1 conflict: conflict with \"bob\": "
         ".spec.containers[name=\"c\"].image"},
        {"Pod",
         .req = {.verb = PORT_PATCH,
                 .ns = NS,
                 .name = HK_STR("p"),
                 .patch = PORT_PATCH_APPLY,
                 .field_manager = HK_STR("ann")},
         "{'apiVersion':'v1','kind':'Pod','metadata':{'labels':{'a':'1'}},'spec':{'containers':[{'"
         "name':'c','image':'i'"
         "}]}}",
         200, .see = {"metadata.labels", "{\"a\":\"1\",\"c\":\"1\"}"}},
    };

    rig_story(g, steps);
}

static void test_patches_of_every_kind(void **state)
{
#define PATCH(type) .req = {.verb = PORT_PATCH, .ns = NS, .name = HK_STR("p"), .patch = (type) }
    static const struct step steps[] = {
        {"Pod", CREATE, "{'metadata':{'name':'p'},'spec':{" BOX "}}", 201},
        {"Pod", PATCH(PORT_PATCH_STRATEGIC), "{'spec':{'containers':[{'name':'c','image':'j'}]}}",
         200, .see = {"spec.restartPolicy", "Always"}},
        {"Pod", PATCH(PORT_PATCH_JSON),
         "[{'op':'test','path':'/spec/containers/0/image','value':'j'},"
         "{'op':'add','path':'/metadata/labels','value':{'a':'b'}}]",
         200, .see = {"metadata.labels.a", "b"}},
        {"Pod", PATCH(PORT_PATCH_JSON), "[{'op':'test','path':'/metadata/name','value':'q'}]", 422,
         "Invalid"},
        {"Pod", PATCH(PORT_PATCH_JSON), "{'op':'add'}", 400, "BadRequest"},
        {"Pod", PATCH(PORT_PATCH_MERGE), "[]", 400, "BadRequest"},
        {"Pod", PATCH(PORT_PATCH_MERGE), "{'metadata':{'name':'q'}}", 400, "BadRequest"},
    };

    rig_story(*state, steps);
}

static void test_unknown_fields_are_reported_or_refused(void **state)
{
    struct rig *g = *state;
    const struct port_request strict = {
        .verb = PORT_CREATE, .ns = NS, .validate = PORT_VALIDATE_STRICT};
    const struct port_request warn = {
        .verb = PORT_CREATE, .ns = NS, .validate = PORT_VALIDATE_WARN};
    struct answer a = ask(g, "Pod", strict, "{'metadata':{'name':'p'},'spec':{'bogus':1," BOX "}}");

    assert_int_equal(a.code, 400);
    assert_string_equal(a.message,
                        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: "
                        "unknown field \"spec.bogus\"");
    a = ask(g, "Pod", warn, "{'metadata':{'name':'p'},'spec':{'bogus':1," BOX "}}");
    assert_int_equal(a.code, 201);
    assert_string_equal(a.warnings, "unknown field \"spec.bogus\"; ");
    assert_string_equal(rig_look(g, a.obj, "spec.bogus"), "-");
    answer_fini(&a);
}

/* As Go writes them: clients read status.succeeded or spec.taints without asking whether the struct
 * around it exists. */
static void test_empty_structs_are_always_there(void **state)
{
    static const struct step steps[] = {
        {"Deployment", CREATE,
         "{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},'template':"
         "{'metadata':{'labels':{'a':'b'}},'spec':{" BOX "}}}}",
         201, .see = {"status", "{}", "metadata.generation", "1"}},
        {"ResourceQuota", CREATE, "{'metadata':{'name':'q'}}", 201,
         .see = {"spec", "{}", "status", "{}"}},
        {"PodDisruptionBudget", CREATE, "{'metadata':{'name':'b'},'spec':{'minAvailable':1}}", 201,
         .see = {"status.disruptionsAllowed", "0", "status.expectedPods", "0"}},
        {"Node", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'n'}}", 201,
         .see = {"status.daemonEndpoints", "{\"kubeletEndpoint\":{\"Port\":0}}"}},
        {"Node", .req = {.verb = PORT_PATCH, .name = HK_STR("n"), .patch = PORT_PATCH_MERGE},
         "{'spec':{'taints':null}}", 200, .see = {"spec", "{}"}},
        {"StatefulSet", CREATE,
         "{'metadata':{'name':'s'},'spec':{'selector':{'matchLabels':{'a':'b'}},'serviceName':'x',"
         "'template':{'metadata':{'labels':{'a':'b'}},'spec':{" BOX "}}}}",
         201,
         .see = {"status", "{\"replicas\":0,\"availableReplicas\":0}", "metadata.generation", "1"}},
        {"ClusterRole", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'r'}}", 201,
         .see = {"rules", "null"}},
        {"ConfigMap", CREATE, "{'metadata':{'name':'c'}}", 201,
         .see = {"spec", "-", "status", "-", "data", "-"}},
    };

    rig_story(*state, steps);
}

/* The client that reads an object and writes it back leaves the empty structs out, or sends null for
 * what is null. Neither is a change. */
static void test_empty_structs_are_no_change(void **state)
{
    static const struct step steps[] = {
        {"Deployment", CREATE,
         "{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},'template':"
         "{'metadata':{'labels':{'a':'b'}},'spec':{" BOX "}}}}",
         201, .see = {"metadata.generation", "1"}},
        {"Deployment", MERGE("d"), "{'status':null}", 200,
         .see = {"metadata.generation", "1", "status", "{}"}},
        {"Deployment", STATUS(PORT_PATCH, "d"), "{'status':{'replicas':0}}", 200,
         .see = {"metadata.generation", "1", "status", "{}"}},
        {"Deployment", .req = {.verb = PORT_UPDATE, .ns = NS, .name = HK_STR("d")},
         "{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},'template':"
         "{'metadata':{'labels':{'a':'b'}},'spec':{" BOX "}}}}",
         200, .see = {"metadata.generation", "1"}},
        {"ClusterRole", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'r'}}", 201},
        {"ClusterRole", .req = {.verb = PORT_UPDATE, .name = HK_STR("r")},
         "{'metadata':{'name':'r'},'rules':null}", 200, .see = {"rules", "null"}},
    };

    rig_story(*state, steps);
}

/* With rest_opts: deleting a queue with pods is refused only if requested. */
static void test_rules_of_volcano_take_options(void **state)
{
    static const struct volcano_options strict = {.refuse_busy_queues = true};
    static const struct {
        const struct volcano_options *options;
        int code;
    } rows[] = {{NULL, 200}, {&strict, 400}};

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        const struct step steps[] = {
            {"Queue", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'q'}}", 201},
            {"Queue",
             .req = {.verb = PORT_PATCH,
                     .name = HK_STR("q"),
                     .subresource = "status",
                     .patch = PORT_PATCH_MERGE},
             "{'status':{'allocated':{'pods':'1'}}}", 200},
            {"Queue", .req = {.verb = PORT_DELETE, .name = HK_STR("q")}, NULL, rows[i].code},
        };
        struct rig g = {.volcano = rows[i].options};
        rig_open(&g, true);
        rig_story(&g, steps);
        rig_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_object_is_created_changed_and_deleted),
        TEST(bodies_must_fit_the_request),
        TEST(updates_need_a_revision_where_kinds_ask_for_it),
        TEST(status_and_spec_are_apart),
        TEST(a_write_without_change_writes_nothing),
        TEST(a_dry_run_leaves_no_trace),
        TEST(generated_names_are_short_and_stay),
        TEST(a_pod_is_bound_once),
        TEST(scale_is_a_view_of_replicas),
        TEST(an_eviction_asks_the_budget),
        TEST(an_empty_map_is_applied_without_conflict),
        TEST(some_fields_never_change),
        TEST(lists_select_and_page),
        TEST(pages_show_one_revision),
        TEST(an_old_page_expires_with_a_way_on),
        TEST(collections_are_deleted_by_selection),
        TEST(appliers_hold_what_they_set),
        TEST(applied_lists_merge_by_their_keys),
        TEST(patches_of_every_kind),
        TEST(unknown_fields_are_reported_or_refused),
        TEST(empty_structs_are_always_there),
        TEST(empty_structs_are_no_change),
        cmocka_unit_test(test_rules_of_volcano_take_options),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
