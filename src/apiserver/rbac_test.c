// SPDX-License-Identifier: Apache-2.0
// RBAC as in Kubernetes: roles, bindings, and their limits.
#include "apiserver/rbac.h"

#include "store/rest_rig_test.h"

#define NS HK_STR("team")

struct fixture {
    struct rig rig;
    struct rbac *rbac;
};

static void make(struct rig *g, const char *kind, const char *ns, const char *body)
{
    const struct step s = {kind, .req = {.verb = PORT_CREATE, .ns = hk_str(ns)}, body, 201};

    rig_step(g, &s, kind, 0);
}

#define REF(kind, name)                                                                            \
    "'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'" kind "','name':'" name "'}"

static int begin(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    struct rig *g = &f->rig;

    rig_open(g, true);
    rig_settle(g);
    make(g, "Namespace", "", "{'metadata':{'name':'team'}}");
    make(g, "Role", "team",
         "{'metadata':{'name':'logs'},'rules':[{'verbs':['get'],'apiGroups':[''],'resources':"
         "['pods/log','*/scale']},{'verbs':['get','update'],'apiGroups':[''],'resources':"
         "['configmaps'],'resourceNames':['settings']}]}");
    make(g, "ClusterRole", "",
         "{'metadata':{'name':'all'},'rules':[{'verbs':['*'],'apiGroups':['*'],'resources':['*']},"
         "{'verbs':['*'],'nonResourceURLs':['*']}]}");
    make(g, "ClusterRole", "",
         "{'metadata':{'name':'reader'},'rules':[{'verbs':['get','list','watch'],'apiGroups':['',"
         "'apps'],'resources':['pods','deployments']},{'verbs':['get'],'nonResourceURLs':"
         "['/metrics','/logs/*']}]}");
    make(g, "RoleBinding", "team",
         "{'metadata':{'name':'a'},'subjects':[{'kind':'User','name':'ann'}]," REF("Role",
                                                                                   "logs") "}");
    make(g, "RoleBinding", "team",
         "{'metadata':{'name':'b'},'subjects':[{'kind':'ServiceAccount','name':'bot','namespace':"
         "'team'}]," REF("ClusterRole", "all") "}");
    make(g, "RoleBinding", "team",
         "{'metadata':{'name':'e'},'subjects':[{'kind':'ServiceAccount','name':'own'}]," REF(
             "Role", "logs") "}");
    make(g, "ClusterRoleBinding", "",
         "{'metadata':{'name':'c'},'subjects':[{'kind':'Group','name':'readers'}]," //
         REF("ClusterRole", "reader") "}");
    make(g, "RoleBinding", "team",
         "{'metadata':{'name':'d'},'subjects':[{'kind':'User','name':'dan'}]," //
         REF("Role", "no-such") "}");
    f->rbac = rbac_new(g->rest, g->store);
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    rbac_free(f->rbac);
    rig_close(&f->rig);
    hk_free(f);
    return 0;
}

#define BOT "system:serviceaccount:team:bot"

/* A request as "verb group/resource[/sub] namespace name", with "-" for an empty part. */
static bool may(struct fixture *f, const char *user, const char *group, const char *text)
{
    struct hk_str rest = hk_str(text), verb, where, ns, name;
    const char *const groups[] = {group};
    const struct auth_user u = {.name = user, .groups = groups, .ngroups = group ? 1 : 0};
    struct rbac_ask ask = {0};

    assert_true(hk_str_cut(&rest, ' ', &verb));
    assert_true(hk_str_cut(&rest, ' ', &where));
    ask.verb = verb;
    if (where.s[0] == '/' && !rest.s) {
        ask.path = where;
        return rbac_allows(f->rbac, &u, &ask);
    }
    assert_true(hk_str_cut(&rest, ' ', &ns));
    assert_true(hk_str_cut(&rest, ' ', &name));
    hk_str_cut(&where, ':', &ask.group);
    hk_str_cut(&where, '/', &ask.plural);
    ask.sub = where.s ? where : HK_STR("");
    ask.ns = hk_str_is(ns, "-") ? HK_STR("") : ns;
    ask.name = hk_str_is(name, "-") ? HK_STR("") : name;
    return rbac_allows(f->rbac, &u, &ask);
}

static void test_rules_reach_what_they_name(void **state)
{
    static const struct {
        const char *user, *group, *text;
        bool allowed;
    } cases[] = {
        {"eve", "system:masters", "delete :nodes - n1", true},
        {"eve", NULL, "get :pods team p", false},
        /* a role applies only in its namespace, and only to its rules */
        {"ann", NULL, "get :pods/log team p", true},
        {"ann", NULL, "get :pods/log other p", false},
        {"ann", NULL, "get :pods/log - p", false},
        {"ann", NULL, "get :pods team p", false},
        {"ann", NULL, "get :pods/exec team p", false},
        {"ann", NULL, "create :pods/log team p", false},
        {"ann", NULL, "get apps:pods/log team p", false},
        {"ann", NULL, "get :replicationcontrollers/scale team r", true},
        {"ann", NULL, "get :configmaps team settings", true},
        {"ann", NULL, "get :configmaps team other", false},
        {"ann", NULL, "list :configmaps team -", false},
        {"ann", NULL, "update :configmaps team -", false},
        /* a cluster role bound in a namespace applies only there */
        {BOT, NULL, "create batch:jobs team -", true},
        {BOT, NULL, "create batch:jobs other -", false},
        {BOT, NULL, "get :nodes - n", false},
        {BOT, NULL, "get /metrics", false},
        {"system:serviceaccount:other:bot", NULL, "create batch:jobs team -", false},
        /* an account without a namespace is in that of the binding */
        {"system:serviceaccount:team:own", NULL, "get :pods/log team p", true},
        {"system:serviceaccount:other:own", NULL, "get :pods/log team p", false},
        /* a cluster role bound cluster-wide applies everywhere */
        {"rob", "readers", "list :pods - -", true},
        {"rob", "readers", "watch apps:deployments other d", true},
        {"rob", "readers", "list :secrets team -", false},
        {"rob", "readers", "get :pods/log team p", false},
        {"rob", "readers", "get /metrics", true},
        {"rob", "readers", "get /logs/a", true},
        {"rob", "readers", "get /log", false},
        {"rob", "readers", "post /metrics", false},
        {"readers", NULL, "list :pods - -", false},
        /* a binding to a missing role grants nothing */
        {"dan", NULL, "get :pods team p", false},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const bool allowed = may(f, cases[i].user, cases[i].group, cases[i].text);
        if (allowed != cases[i].allowed) {
            print_error("%s of %s: '%s'\n", cases[i].user, cases[i].group ? cases[i].group : "-",
                        cases[i].text);
        }
        assert_int_equal(allowed, cases[i].allowed);
    }
}

static void test_changes_hold_at_once(void **state)
{
    struct fixture *f = *state;
    static const struct step drop = {
        "RoleBinding", .req = {.verb = PORT_DELETE, .ns = {"team", 4}, .name = {"a", 1}}, NULL,
        200};

    assert_true(may(f, "ann", NULL, "get :pods/log team p"));
    rig_step(&f->rig, &drop, __func__, 0);
    assert_false(may(f, "ann", NULL, "get :pods/log team p"));
    assert_false(may(f, "dan", NULL, "delete :pods team p"));
    make(&f->rig, "Role", "team",
         "{'metadata':{'name':'no-such'},'rules':[{'verbs':['delete'],'apiGroups':[''],"
         "'resources':['pods']}]}");
    assert_true(may(f, "dan", NULL, "delete :pods team p"));
}

static void count_rule(void *ctx, const struct json *rule)
{
    ++*(int *)ctx;
}

static void test_all_rules_of_a_user_are_shown(void **state)
{
    struct fixture *f = *state;
    const char *const groups[] = {"readers"};
    const struct auth_user u = {.name = "ann", .groups = groups, .ngroups = 1};
    int here = 0, elsewhere = 0;

    rbac_rules(f->rbac, &u, NS, count_rule, &here);
    rbac_rules(f->rbac, &u, HK_STR("other"), count_rule, &elsewhere);
    assert_int_equal(here, 4);
    assert_int_equal(elsewhere, 2);
}

static void test_a_user_cannot_grant_rights_the_user_does_not_have(void **state)
{
    static const struct {
        const char *user, *rules;
        bool covered;
    } cases[] = {
        {BOT, "[{'verbs':['*'],'apiGroups':['*'],'resources':['*']}]", true},
        {BOT, "[{'verbs':['get'],'nonResourceURLs':['/metrics']}]", false},
        {"ann", "[{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']}]", true},
        {"ann", "[{'verbs':['get','list'],'apiGroups':[''],'resources':['pods/log']}]", false},
        {"ann", "[{'verbs':['get'],'apiGroups':[''],'resources':['*']}]", false},
        {"ann", "[{'verbs':['*'],'apiGroups':[''],'resources':['pods/log']}]", false},
        {"ann", "[{'verbs':['get'],'apiGroups':[''],'resources':['configmaps']}]", false},
        {"ann",
         "[{'verbs':['get'],'apiGroups':[''],'resources':['configmaps'],'resourceNames':"
         "['settings']}]",
         true},
        {"ann", "[]", true},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct auth_user u = {.name = cases[i].user};
        const bool covered = rbac_covers(f->rbac, &u, NS, rig_json(&f->rig, cases[i].rules));
        if (covered != cases[i].covered) {
            print_error("%s: %s\n", cases[i].user, cases[i].rules);
        }
        assert_int_equal(covered, cases[i].covered);
    }
}

static void test_refusals_say_what_was_asked(void **state)
{
    static const struct {
        struct rbac_ask ask;
        const char *want;
    } cases[] = {
        {{.verb = {"create", 6}, .plural = {"pods", 4}, .ns = {"team", 4}},
         "User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"team\""},
        {{.verb = {"get", 3}, .plural = {"pods", 4}, .sub = {"log", 3}, .ns = {"t", 1}},
         "User \"u\" cannot get resource \"pods/log\" in API group \"\" in the namespace \"t\""},
        {{.verb = {"list", 4}, .group = {"apps", 4}, .plural = {"deployments", 11}},
         "User \"u\" cannot list resource \"deployments\" in API group \"apps\" at the cluster "
         "scope"},
        {{.verb = {"get", 3}, .path = {"/x", 2}}, "User \"u\" cannot get path \"/x\""},
    };
    const struct auth_user u = {.name = "u"};

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        rbac_write_refusal(&u, &cases[i].ask, &text);
        assert_string_equal(text.data, cases[i].want);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rules_reach_what_they_name),
        TEST(changes_hold_at_once),
        TEST(all_rules_of_a_user_are_shown),
        TEST(a_user_cannot_grant_rights_the_user_does_not_have),
        cmocka_unit_test(test_refusals_say_what_was_asked),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
