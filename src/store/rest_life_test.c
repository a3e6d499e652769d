// SPDX-License-Identifier: Apache-2.0
// Ends of objects: grace periods, finalizers, owners, namespaces, definitions, expiry.
#include "store/rest_story_test.h"

static struct answer ask(struct rig *g, const char *kind, struct port_request req, const char *body)
{
    req.kind = rig_kind(g, kind);
    req.body = body ? rig_json(g, body) : NULL;
    return rig_ask(g, &req);
}

/* ---- grace ---- */

static void test_a_bound_pod_is_deleted_with_its_grace_period(void **state)
{
    static const struct step steps[] = {
        {"Pod", CREATE, "{'metadata':{'name':'p'},'spec':{'nodeName':'n1'," BOX "}}", 201},
        {"Pod", STATUS(PORT_PATCH, "p"), "{'status':{'phase':'Running'}}", 200},
        {"Pod", DELETE("p", .if_uid = HK_STR("other")), NULL, 409, "Conflict"},
        {"Pod", DELETE("p"), NULL, 200, /* its own 30 seconds */
         .see = {"metadata.deletionTimestamp", "2026-01-02T03:04:35Z",
                 "metadata.deletionGracePeriodSeconds", "30", "metadata.generation", "2"}},
        {"Pod", DELETE("p", .has_grace = true, .grace_s = 60), NULL, 200, /* never longer */
         .see = {"metadata.deletionTimestamp", "2026-01-02T03:04:35Z",
                 "metadata.deletionGracePeriodSeconds", "30"}},
        {"Pod", DELETE("p", .has_grace = true, .grace_s = 10), NULL, 200,
         .see = {"metadata.deletionTimestamp", "2026-01-02T03:04:15Z",
                 "metadata.deletionGracePeriodSeconds", "10"}},
        {"Pod", DELETE("p"), NULL, 200, .see = {"metadata.deletionGracePeriodSeconds", "10"}},
        {"Pod", DELETE("p", .has_grace = true, .grace_s = 0), NULL, 200},
        {"Pod", GET("p"), NULL, 404},
    };

    rig_story(*state, steps);
}

/* The API does not limit grace periods; the deletion time must stay a valid timestamp. */
static void test_grace_without_bound(void **state)
{
    static const struct step steps[] = {
        {"Pod", CREATE,
         "{'metadata':{'name':'p'},'spec':{'nodeName':'n1','terminationGracePeriodSeconds':"
         "9223372036854775807," BOX "}}",
         201},
        {"Pod", DELETE("p"), NULL, 200,
         .see = {"metadata.deletionTimestamp", "2094-01-20T06:18:13Z",
                 "metadata.deletionGracePeriodSeconds", "9223372036854775807"}},
        {"Pod", DELETE("p", .has_grace = true, .grace_s = 10), NULL, 200,
         .see = {"metadata.deletionTimestamp", "2026-01-02T03:04:15Z",
                 "metadata.deletionGracePeriodSeconds", "10"}},
        {"Pod", CREATE, "{'metadata':{'name':'q'},'spec':{'nodeName':'n1'," BOX "}}", 201},
        {"Pod", DELETE("q", .has_grace = true, .grace_s = INT64_MAX), NULL, 200,
         .see = {"metadata.deletionTimestamp", "2094-01-20T06:18:13Z"}},
        {"Pod", CREATE, "{'metadata':{'name':'r'},'spec':{'nodeName':'n1'," BOX "}}", 201},
        {"Pod", DELETE("r", .has_grace = true, .grace_s = INT64_MIN), NULL, 200,
         .see = {"metadata.deletionGracePeriodSeconds", "1"}},
    };

    rig_story(*state, steps);
}

/* Objects that are being deleted, and wait for a finalizer, are not written again. */
static void test_a_collection_of_ending_objects(void **state)
{
    static const struct step before[] = {
        {"ConfigMap", CREATE, "{'metadata':{'name':'a','finalizers':['x.io/y']}}", 201},
        {"ConfigMap", CREATE, "{'metadata':{'name':'b','finalizers':['x.io/y']}}", 201},
    };
    struct rig *g = *state;
    const struct port_request all = {
        .verb = PORT_DELETE_COLLECTION, .kind = rig_kind(g, "ConfigMap"), .ns = NS};

    rig_story(g, before);
    for (int i = 0; i < 3; i++) {
        struct answer a = rig_ask(g, &all);

        assert_int_equal(a.code, 200);
        assert_string_equal(a.names, "a b");
        assert_null(a.obj);
        answer_fini(&a);
    }
}

static void test_other_pods_are_deleted_at_once(void **state)
{
    static const struct step steps[] = {
        {"Pod", CREATE, "{'metadata':{'name':'unbound'},'spec':{" BOX "}}", 201},
        {"Pod", DELETE("unbound"), NULL, 200, .see = {"metadata.name", "unbound"}},
        {"Pod", GET("unbound"), NULL, 404},
        {"Pod", CREATE, "{'metadata':{'name':'done'},'spec':{'nodeName':'n1'," BOX "}}", 201},
        {"Pod", STATUS(PORT_PATCH, "done"), "{'status':{'phase':'Succeeded'}}", 200},
        {"Pod", DELETE("done"), NULL, 200},
        {"Pod", GET("done"), NULL, 404},
        {"Pod", CREATE, "{'metadata':{'name':'forced'},'spec':{'nodeName':'n1'," BOX "}}", 201},
        {"Pod", DELETE("forced", .has_grace = true), NULL, 200},
        {"Pod", GET("forced"), NULL, 404},
    };

    rig_story(*state, steps);
}

/* ---- finalizers ---- */

static void test_finalizers_hold_an_object(void **state)
{
    static const struct step steps[] = {
        {"ConfigMap", CREATE, "{'metadata':{'name':'a','finalizers':['x.io/a','x.io/b']}}", 201},
        {"ConfigMap", DELETE("a"), NULL, 200,
         .see = {"metadata.deletionTimestamp", "2026-01-02T03:04:05Z",
                 "metadata.deletionGracePeriodSeconds", "0"}},
        {"ConfigMap", MERGE("a"), "{'metadata':{'deletionTimestamp':null,'finalizers':['x.io/b']}}",
         200, .see = {"metadata.deletionTimestamp", "2026-01-02T03:04:05Z"}},
        {"ConfigMap", MERGE("a"), "{'metadata':{'finalizers':['x.io/b','x.io/c']}}", 422, "Invalid",
         "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be "
         "added if the object is being deleted, found new finalizers []string{\"x.io/c\"}"},
        {"ConfigMap", DELETE("a"), NULL, 200, .see = {"metadata.finalizers", "[\"x.io/b\"]"}},
        {"ConfigMap", MERGE("a"), "{'metadata':{'finalizers':null}}", 200},
        {"ConfigMap", GET("a"), NULL, 404},
    };

    rig_story(*state, steps);
}

/* ---- owners ---- */

/* Creates an object of the kind; owners: names of Secrets, '*' before a name blocks. */
static void make(struct rig *g, const char *kind, const char *name, const char *owners)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    struct hk_str rest = hk_str(owners);
    struct hk_str word;

    hk_buf_addf(&body, "{'metadata':{'name':'%s','ownerReferences':[", name);
    for (int n = 0; owners[0] != '\0' && hk_str_cut(&rest, ' ', &word); n++) {
        const bool block = word.s[0] == '*';
        word = (struct hk_str){word.s + block, word.n - block};
        struct answer a =
            ask(g, "Secret", (struct port_request){.verb = PORT_GET, .ns = NS, .name = word}, NULL);
        hk_buf_addf(&body,
                    "%s{'apiVersion':'v1','kind':'Secret','name':'%.*s',"
                    "'uid':'%s','blockOwnerDeletion':%s}",
                    n > 0 ? "," : "", HK_FMT(word),
                    a.obj ? rig_look(g, a.obj, "metadata.uid") : "no-such-uid",
                    block ? "true" : "false");
        answer_fini(&a);
    }
    hk_buf_adds(&body, "]}}");
    struct answer a = ask(g, kind, (struct port_request){.verb = PORT_CREATE, .ns = NS}, body.data);
    if (a.code != 201) {
        print_error("%s\n", a.message);
    }
    assert_int_equal(a.code, 201);
    answer_fini(&a);
}

static void test_background_takes_the_dependents_along(void **state)
{
    struct rig *g = *state;
    static const struct step end[] = {{"Secret", DELETE("j"), NULL, 200}};

    make(g, "Secret", "j", "");
    make(g, "Secret", "other", "");
    make(g, "ConfigMap", "mine", "j");
    make(g, "ConfigMap", "shared", "j other");
    make(g, "ConfigMap", "free", "");
    rig_story(g, end);
    assert_false(rig_has(g, "ConfigMap", "default", "mine"));
    assert_true(rig_has(g, "ConfigMap", "default", "free"));
    struct answer a =
        ask(g, "ConfigMap",
            (struct port_request){.verb = PORT_GET, .ns = NS, .name = HK_STR("shared")}, NULL);
    const struct json *left = json_at(&a.obj->root, "metadata.ownerReferences");
    assert_int_equal(left->len, 1);
    assert_true(hk_str_is(json_str(json_get(&left->items[0], "name"), HK_STR("")), "other"));
    answer_fini(&a);
}

static void test_a_chain_of_owners_is_deleted_link_by_link(void **state)
{
    struct rig *g = *state;
    static const struct step end[] = {{"Secret", DELETE("a"), NULL, 200}};

    make(g, "Secret", "a", "");
    make(g, "Secret", "b", "a");
    make(g, "Secret", "c", "b");
    make(g, "ConfigMap", "leaf", "c");
    rig_story(g, end);
    assert_false(rig_has(g, "Secret", "default", "c"));
    assert_false(rig_has(g, "ConfigMap", "default", "leaf"));
}

static void test_foreground_deletion_waits_for_blocking_dependents(void **state)
{
    struct rig *g = *state;
    static const struct step end[] = {
        {"ConfigMap", MERGE("held"), "{'metadata':{'finalizers':['x.io/hold']}}", 200},
        {"Secret", DELETE("j", .propagation = PORT_PROPAGATE_FOREGROUND), NULL, 200,
         .see = {"metadata.finalizers", "[\"foregroundDeletion\"]",
                 "metadata.deletionGracePeriodSeconds", "0"}},
        {"Secret", GET("j"), NULL, 200},
        {"ConfigMap", GET("plain"), NULL, 404},
        {"ConfigMap", GET("held"), NULL, 200},
        {"ConfigMap", MERGE("held"), "{'metadata':{'finalizers':null}}", 200},
        {"ConfigMap", GET("held"), NULL, 404},
        {"Secret", GET("j"), NULL, 404},
    };

    make(g, "Secret", "j", "");
    make(g, "ConfigMap", "held", "*j");
    make(g, "ConfigMap", "plain", "j");
    rig_story(g, end);
}

static void test_orphans_lose_the_name_of_their_owner(void **state)
{
    struct rig *g = *state;
    static const struct step end[] = {
        {"Secret", DELETE("j", .propagation = PORT_PROPAGATE_ORPHAN), NULL, 200,
         .see = {"metadata.finalizers", "[\"orphan\"]"}},
        {"Secret", GET("j"), NULL, 404},
        {"ConfigMap", GET("a"), NULL, 200, .see = {"metadata.ownerReferences", "-"}},
        {"ConfigMap", GET("b"), NULL, 200, .see = {"metadata.ownerReferences", "-"}},
    };

    make(g, "Secret", "j", "");
    make(g, "ConfigMap", "a", "j");
    make(g, "ConfigMap", "b", "*j");
    rig_story(g, end);
}

static void test_owners_that_never_were_take_the_object_along(void **state)
{
    struct rig *g = *state;
    static const struct step steps[] = {
        {"ConfigMap", CREATE,
         "{'metadata':{'name':'odd','ownerReferences':[{'apiVersion':'x.io/v1','kind':'Odd',"
         "'name':'o','uid':'u'}]}}",
         201},
        {"ConfigMap", GET("odd"), NULL, 200}, /* an owner of unknown kind may exist */
    };

    make(g, "ConfigMap", "lost", "nobody");
    assert_false(rig_has(g, "ConfigMap", "default", "lost"));
    rig_story(g, steps);
}

/* ---- namespaces ---- */

static void test_a_namespace_ends_with_its_content(void **state)
{
    struct rig *g = *state;
#define IN_NS(v) .req = {.verb = (v), .ns = HK_STR("work") }
#define OF_NS(v, ...) .req = {.verb = (v), .name = HK_STR("work"), __VA_ARGS__}
    static const struct step steps[] = {
        {"ConfigMap", IN_NS(PORT_CREATE), "{'metadata':{'name':'a'}}", 404, "NotFound",
         "namespaces \"work\" not found"},
        {"Namespace", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'work'}}", 201,
         .see = {"status.phase", "Active", "spec.finalizers", "[\"kubernetes\"]"}},
        {"ConfigMap", IN_NS(PORT_CREATE), "{'metadata':{'name':'a'}}", 201},
        {"Pod", IN_NS(PORT_CREATE), "{'metadata':{'name':'p'},'spec':{'nodeName':'n1'," BOX "}}",
         201},
        {"Namespace", OF_NS(PORT_DELETE, .propagation = PORT_PROPAGATE_FOREGROUND), NULL, 200,
         .see = {"status.phase", "Terminating", "metadata.deletionTimestamp",
                 "2026-01-02T03:04:05Z"}},
        {"ConfigMap", IN_NS(PORT_CREATE), "{'metadata':{'name':'b'}}", 403, "Forbidden",
         "configmaps \"b\" is forbidden: unable to create new content in namespace work because it "
         "is being terminated",
         "NamespaceTerminating metadata.namespace; "},
        {"ConfigMap", .req = {.verb = PORT_GET, .ns = HK_STR("work"), .name = HK_STR("a")}, NULL,
         404},
        {"Namespace", OF_NS(PORT_GET), NULL, 200}, /* the pod still has its grace period */
        {"Pod",
         .req = {.verb = PORT_DELETE, .ns = HK_STR("work"), .name = HK_STR("p"), .has_grace = true},
         NULL, 200},
        {"Namespace", OF_NS(PORT_GET), NULL, 404},
        {"Namespace", .req = {.verb = PORT_DELETE, .name = HK_STR("default")}, NULL, 403,
         "Forbidden", "namespaces \"default\" is forbidden: this namespace may not be deleted"},
    };

    rig_story(g, steps);
}

static void test_every_namespace_has_an_account(void **state)
{
    assert_true(rig_has(*state, "ServiceAccount", "default", "default"));
    assert_true(rig_has(*state, "ServiceAccount", "kube-system", "default"));
}

/* ---- definitions ---- */

static const char *const shelf_crd =
    "{'metadata':{'name':'shelves.x.io'},'spec':{'group':'x.io','scope':'Namespaced',"
    "'names':{'plural':'shelves','kind':'Shelf'},'versions':["
    "{'name':'v1','served':true,'storage':true,'subresources':{'status':{}},"
    "'schema':{'openAPIV3Schema':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}},"
    "{'name':'v1alpha1','served':true,'storage':false,"
    "'schema':{'openAPIV3Schema':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}}"
    "]}}";

static void test_a_definition_serves_its_kind_until_it_is_deleted(void **state)
{
    struct rig *g = *state;
    const struct port_request create = {.verb = PORT_CREATE};
    const uint64_t before = rest_kinds_generation(g->rest);

    assert_null(rest_kind_find(g->rest, HK_STR("x.io"), HK_STR("v1"), HK_STR("shelves")));
    struct answer a = ask(g, "CustomResourceDefinition", create, shelf_crd);
    assert_int_equal(a.code, 201);
    assert_string_equal(rig_look(g, a.obj, "status.storedVersions"), "[\"v1\"]");
    assert_string_equal(rig_look(g, a.obj, "spec.names.singular"), "shelf");
    answer_fini(&a);
    assert_true(rest_kinds_generation(g->rest) > before);
    const struct rest_kind *k =
        rest_kind_find(g->rest, HK_STR("x.io"), HK_STR("v1"), HK_STR("shelves"));
    assert_non_null(k);
    assert_true(rest_kind_has(k, "status"));

    static const struct step steps[] = {
        {"Shelf", CREATE, "{'metadata':{'name':'s'},'spec':{'a':1},'status':{'b':1}}", 201,
         .see = {"apiVersion", "x.io/v1", "metadata.generation", "1", "status", "-"}},
        {"CustomResourceDefinition", .req = {.verb = PORT_DELETE, .name = HK_STR("shelves.x.io")},
         NULL, 200},
        {"CustomResourceDefinition", .req = {.verb = PORT_GET, .name = HK_STR("shelves.x.io")},
         NULL, 404},
    };
    rig_step(g, &steps[0], __func__, 0);
    const struct rest_kind *old =
        rest_kind_find(g->rest, HK_STR("x.io"), HK_STR("v1alpha1"), HK_STR("shelves"));
    const struct port_request get = {
        .verb = PORT_GET, .kind = old->kind, .ns = NS, .name = HK_STR("s")};
    a = rig_ask(g, &get);
    assert_string_equal(rig_look(g, a.obj, "apiVersion"), "x.io/v1alpha1");
    answer_fini(&a);
    rig_step(g, &steps[1], __func__, 1);
    rig_step(g, &steps[2], __func__, 2);
    assert_null(rest_kind_find(g->rest, HK_STR("x.io"), HK_STR("v1"), HK_STR("shelves")));
    assert_int_equal(store_count(g->store, k->res), 0);
}

static void test_a_schema_prunes_fills_in_and_checks(void **state)
{
    struct rig *g = *state;
    const struct port_request create = {.verb = PORT_CREATE};
    struct answer a =
        ask(g, "CustomResourceDefinition", create,
            "{'metadata':{'name':'boxes.x.io'},'spec':{'group':'x.io','scope':'Namespaced',"
            "'names':{'plural':'boxes','kind':'Box'},'versions':[{'name':'v1','served':true,"
            "'storage':true,'schema':{'openAPIV3Schema':{'type':'object','properties':{'spec':"
            "{'type':'object','properties':{'size':{'type':'integer','minimum':1},"
            "'colour':{'type':'string','default':'red'}}}}}}}]}}");
    static const struct step steps[] = {
        {"Box", CREATE, "{'metadata':{'name':'b'},'spec':{'size':2,'odd':1}}", 201,
         .see = {"spec", "{\"size\":2,\"colour\":\"red\"}"}},
        {"Box", CREATE, "{'metadata':{'name':'c'},'spec':{'size':0}}", 422, "Invalid",
         "Box.x.io \"c\" is invalid: spec.size: Invalid value: 0: spec.size in body should be "
         "greater than or equal to 1"},
        {"Box", .req = {.verb = PORT_CREATE, .ns = NS, .validate = PORT_VALIDATE_STRICT},
         "{'metadata':{'name':'d'},'spec':{'odd':1}}", 400},
        {"Box", MERGE("b"), "{'spec':{'size':-1}}", 422},
    };

    assert_int_equal(a.code, 201);
    answer_fini(&a);
    rig_story(g, steps);
}

/* ---- waiting and refusals ---- */

static void test_an_ending_namespace_says_what_it_waits_for(void **state)
{
    static const struct step steps[] = {
        {"Namespace", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'old'}}", 201},
        {"ConfigMap", .req = {.verb = PORT_CREATE, .ns = HK_STR("old")},
         "{'metadata':{'name':'a','finalizers':['x.io/a']}}", 201},
        {"ConfigMap", .req = {.verb = PORT_CREATE, .ns = HK_STR("old")},
         "{'metadata':{'name':'b','finalizers':['x.io/a','x.io/b']}}", 201},
        {"Namespace", .req = {.verb = PORT_DELETE, .name = HK_STR("old")}, NULL, 200},
    };
    static const char *const want[] = {
        "NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered: All resources successfully "
        "discovered",
        "NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions: All legacy kube "
        "types successfully parsed",
        "NamespaceDeletionContentFailure=False ContentDeleted: All content successfully deleted, "
        "may be waiting on finalization",
        "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: "
        "configmaps. has 2 resource instances",
        "NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace has "
        "finalizers remaining: x.io/a in 2 resource instances, x.io/b in 1 resource instances",
    };
    struct rig *g = *state;

    rig_story(g, steps);
    const struct port_request get = {.verb = PORT_GET, .name = HK_STR("old")};
    struct answer a = ask(g, "Namespace", get, NULL);
    const struct json *all = json_at(&a.obj->root, "status.conditions");
    assert_int_equal(all->len, HK_LEN(want));
    for (uint32_t i = 0; i < all->len; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        const struct json *v = &all->items[i];
        hk_buf_addf(&have, "%.*s=%.*s %.*s: %.*s",
                    HK_FMT(json_str(json_get(v, "type"), HK_STR(""))),
                    HK_FMT(json_str(json_get(v, "status"), HK_STR(""))),
                    HK_FMT(json_str(json_get(v, "reason"), HK_STR(""))),
                    HK_FMT(json_str(json_get(v, "message"), HK_STR(""))));
        assert_string_equal(have.data, want[i]);
    }
    answer_fini(&a);
}

static void test_a_refused_deletion_is_tried_less_and_less_often(void **state)
{
    /* This namespace cannot be deleted, whatever its owner. */
    static const struct step steps[] = {
        {"Namespace",
         .req = {.verb = PORT_PATCH, .name = HK_STR("kube-public"), .patch = PORT_PATCH_MERGE},
         "{'metadata':{'ownerReferences':[{'apiVersion':'v1','kind':'Node','name':'n','uid'"
         ":'u'}]}}",
         200},
    };
    static const int64_t seconds[] = {1, 2, 4, 8, 16};
    struct rig *g = *state;

    rig_story(g, steps);
    for (size_t i = 0; i < HK_LEN(seconds); i++) {
        assert_int_equal((rest_next_ns(g->rest) - g->clock.now_ns) / 1000000000, seconds[i]);
        rig_sleep(g, seconds[i]);
    }
    assert_true(rig_has(g, "Namespace", "", "kube-public"));
}

static void test_every_namespace_has_the_authority(void **state)
{
    static const struct step steps[] = {
        {"ConfigMap", GET("kube-root-ca.crt"), NULL, 200, .see = {"data", "{\"ca.crt\":\"PEM\"}"}},
        {"ConfigMap", MERGE("kube-root-ca.crt"), "{'data':{'ca.crt':'forged'}}", 200},
        {"ConfigMap", GET("kube-root-ca.crt"), NULL, 200, .see = {"data", "{\"ca.crt\":\"PEM\"}"}},
        {"ConfigMap", DELETE("kube-root-ca.crt"), NULL, 200},
        {"ConfigMap", GET("kube-root-ca.crt"), NULL, 200},
        {"ServiceAccount", DELETE("default"), NULL, 200},
        {"ServiceAccount", GET("default"), NULL, 200},
        {"Namespace", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'new'}}", 201},
        {"ConfigMap",
         .req = {.verb = PORT_GET, .ns = HK_STR("new"), .name = HK_STR("kube-root-ca.crt")}, NULL,
         200},
        /* and it does not stop the namespace from being deleted */
        {"Namespace", .req = {.verb = PORT_DELETE, .name = HK_STR("new")}, NULL, 200},
        {"Namespace", .req = {.verb = PORT_GET, .name = HK_STR("new")}, NULL, 404},
    };
    struct rig *g = *state;

    rest_publish_ca(g->rest, "PEM");
    rig_settle(g);
    rig_story(g, steps);
}

/* ---- expiry ---- */

static void test_events_last_an_hour(void **state)
{
    struct rig *g = *state;
    static const struct step steps[] = {
        {"Event", CREATE,
         "{'metadata':{'name':'old'},'involvedObject':{'kind':'Pod','namespace':'default',"
         "'name':'p'},'type':'Normal'}",
         201},
        {"Event", CREATE,
         "{'metadata':{'name':'seen'},'involvedObject':{'kind':'Pod','namespace':'default',"
         "'name':'p'},'type':'Normal'}",
         201},
    };
    static const struct step again[] = {{"Event", MERGE("seen"), "{'count':2}", 200}};

    rig_story(g, steps);
    rig_sleep(g, 1800);
    rig_story(g, again);
    rig_sleep(g, 1801);
    assert_false(rig_has(g, "Event", "default", "old"));
    assert_true(rig_has(g, "Event", "default", "seen"));
    rig_sleep(g, 1800);
    assert_false(rig_has(g, "Event", "default", "seen"));
}

/* A restart does not give events another hour. */
static void test_events_age_while_no_server_runs(void **state)
{
    struct rig *g = *state;
    static const struct step steps[] = {
        {"Event", CREATE,
         "{'metadata':{'name':'old'},'involvedObject':{'kind':'Pod','namespace':'default',"
         "'name':'p'},'type':'Normal'}",
         201},
    };
    const struct rest_opts ro = {.store = g->store, .clock = &g->clock.clock, .rand = &g->rand};

    rig_story(g, steps);
    rest_free(g->rest);
    g->clock.now_ns += 3000LL * 1000000000;
    g->rest = rest_new(&ro);
    g->port = rest_port(g->rest);
    rig_sleep(g, 599);
    assert_true(rig_has(g, "Event", "default", "old"));
    rig_sleep(g, 2);
    assert_false(rig_has(g, "Event", "default", "old"));
}

/* ---- changes of the wall clock ---- */

enum { CLOCK_STEP_S = 7200 };

static int64_t clock_set_back(struct hk_clock *c)
{
    return c->mono_ns(c) - CLOCK_STEP_S * 1000000000LL;
}

static int64_t clock_set_ahead(struct hk_clock *c)
{
    return c->mono_ns(c) + CLOCK_STEP_S * 1000000000LL;
}

static void test_a_clock_that_is_set_back_delays_no_try(void **state)
{
    static const struct step steps[] = {
        {"Namespace",
         .req = {.verb = PORT_PATCH, .name = HK_STR("kube-public"), .patch = PORT_PATCH_MERGE},
         "{'metadata':{'ownerReferences':[{'apiVersion':'v1','kind':'Node','name':'n','uid'"
         ":'u'}]}}",
         200},
    };
    struct rig *g = *state;

    rig_story(g, steps);
    g->clock.clock.wall_ns = clock_set_back;
    rig_sleep(g, 1);
    assert_int_equal((rest_next_ns(g->rest) - g->clock.now_ns) / 1000000000, 2);
}

static void test_a_namespace_ends_when_the_clock_is_set_back(void **state)
{
    static const struct step steps[] = {
        {"Namespace", .req = {.verb = PORT_CREATE}, "{'metadata':{'name':'old'}}", 201},
        {"ConfigMap", .req = {.verb = PORT_CREATE, .ns = HK_STR("old")},
         "{'metadata':{'name':'held','finalizers':['x.io/a']}}", 201},
        {"Namespace", .req = {.verb = PORT_DELETE, .name = HK_STR("old")}, NULL, 200},
    };
    struct rig *g = *state;
    int64_t next_ns;

    rig_story(g, steps);
    next_ns = rest_next_ns(g->rest) - g->clock.now_ns;
    g->clock.clock.wall_ns = clock_set_back;
    rig_sleep(g, next_ns / 1000000000 + 1);
    /* One attempt was made, and the next one is not later. */
    assert_in_range(rest_next_ns(g->rest) - g->clock.now_ns, 1, next_ns);
}

static void test_events_last_an_hour_whatever_the_clock_says(void **state)
{
    static const struct step steps[] = {
        {"Event", CREATE,
         "{'metadata':{'name':'old'},'involvedObject':{'kind':'Pod','namespace':'default',"
         "'name':'p'},'type':'Normal'}",
         201},
    };
    struct rig *g = *state;

    rig_story(g, steps);
    g->clock.clock.wall_ns = clock_set_ahead;
    rig_sleep(g, 3599);
    assert_true(rig_has(g, "Event", "default", "old"));
    g->clock.clock.wall_ns = clock_set_back;
    rig_sleep(g, 2);
    assert_false(rig_has(g, "Event", "default", "old"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_bound_pod_is_deleted_with_its_grace_period),
        TEST(grace_without_bound),
        TEST(a_collection_of_ending_objects),
        TEST(other_pods_are_deleted_at_once),
        TEST(finalizers_hold_an_object),
        TEST(background_takes_the_dependents_along),
        TEST(a_chain_of_owners_is_deleted_link_by_link),
        TEST(foreground_deletion_waits_for_blocking_dependents),
        TEST(orphans_lose_the_name_of_their_owner),
        TEST(owners_that_never_were_take_the_object_along),
        TEST(a_namespace_ends_with_its_content),
        TEST(every_namespace_has_an_account),
        TEST(a_definition_serves_its_kind_until_it_is_deleted),
        TEST(a_schema_prunes_fills_in_and_checks),
        TEST(an_ending_namespace_says_what_it_waits_for),
        TEST(a_refused_deletion_is_tried_less_and_less_often),
        TEST(every_namespace_has_the_authority),
        TEST(events_last_an_hour),
        TEST(events_age_while_no_server_runs),
        TEST(a_clock_that_is_set_back_delays_no_try),
        TEST(a_namespace_ends_when_the_clock_is_set_back),
        TEST(events_last_an_hour_whatever_the_clock_says),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
