// SPDX-License-Identifier: Apache-2.0
// Rules that depend on the rights of the requesting user: Commands, nodes of pods, roles and
// bindings. A user has the rights of a list; the program itself may do everything.
#include "admission/rig_test.h"

/* Rights as "verb group/resource[/sub] namespace name", "-" for none. */
struct person {
    const char *const *may; /* ends with NULL */
    const char *covered;    /* the role that the user has; NULL: none */
};

static bool person_allows(void *ctx, const struct rights_ask *ask)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct person *p = ctx;

    hk_buf_addf(&text, "%.*s %.*s/%.*s%s%.*s %.*s %.*s", HK_FMT(ask->verb), HK_FMT(ask->group),
                HK_FMT(ask->resource), ask->sub.n > 0 ? "/" : "", HK_FMT(ask->sub),
                HK_FMT(ask->ns.n > 0 ? ask->ns : HK_STR("-")),
                HK_FMT(ask->name.n > 0 ? ask->name : HK_STR("-")));
    for (const char *const *may = p->may; *may; may++) {
        if (hk_str_is(hk_buf_str(&text), *may)) {
            return true;
        }
    }
    return false;
}

/* A rule is identified by the one resource that it names. */
static bool person_covers(void *ctx, struct hk_str ns, const struct json *rules)
{
    const struct json *first = json_item(json_get(json_item(rules, 0), "resources"), 0);

    return hk_str_is(json_str(first, HK_STR("")), "pods");
}

static bool person_covers_role(void *ctx, struct hk_str ns, const struct json *role_ref)
{
    const struct person *p = ctx;

    return p->covered && hk_str_is(json_str(json_get(role_ref, "name"), HK_STR("")), p->covered);
}

struct rights_case {
    const char *name;
    const char *text, *old;
    const char *want;
    const char *may; /* one right; NULL: none */
};

static const char state_text[] =
    "{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n---\n"
    "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: team}}\n---\n"
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, status: "
    "{state: Open}}\n";

static const char *run_as(struct rig *r, const struct rights *rights, const struct rights_case *c)
{
    r->q.rights = rights;
    rig_run(r, state_text, c->old, c->text, NULL);
    return rig_outcome(r);
}

/* Runs each case without the right, with it, and as the program itself. */
static void check_rights(const struct rights_case *cases, size_t n)
{
    static const char *const groups[] = {"g"};

    for (size_t i = 0; i < n; i++) {
        const char *const none[] = {NULL}, *const one[] = {cases[i].may, NULL};
        const struct person poor = {.may = none}, rich = {.may = one, .covered = cases[i].may};
        const struct {
            const struct person *who;
            const char *want;
        } rows[] = {{&poor, cases[i].want}, {&rich, cases[i].may ? "" : cases[i].want}, {NULL, ""}};
        for (size_t k = 0; k < HK_LEN(rows); k++) {
            struct rig r = {0};
            const struct rights rights = {.ctx = (void *)rows[k].who,
                                          .user = "ann",
                                          .groups = groups,
                                          .ngroups = 1,
                                          .allows = person_allows,
                                          .covers = person_covers,
                                          .covers_role = person_covers_role};
            const char *got = run_as(&r, rows[k].who ? &rights : NULL, &cases[i]);
            if (strcmp(got, rows[k].want) != 0) {
                fail_msg("%s, %zu:\nexpected: %s\n  actual: %s", cases[i].name, k, rows[k].want,
                         got);
            }
            rig_fini(&r);
        }
    }
}

#define COMMAND(action, kind, target)                                                              \
    "{apiVersion: bus.volcano.sh/v1alpha1, kind: Command, metadata: {name: c, namespace: team}, "  \
    "action: " action ", target: {apiVersion: x, kind: " kind ", name: " target "}}"
#define CANNOT(verb, resource, group, where)                                                       \
    "User \"ann\" cannot " verb " resource \"" resource "\" in API group \"" group "\" " where
#define QUEUES CANNOT("update", "queues", "scheduling.volcano.sh", "at the cluster scope")
#define JOBS CANNOT("update", "jobs", "batch.volcano.sh", "in the namespace \"team\"")

static void a_command_requires_the_right_to_update_its_target(void **state)
{
    static const struct rights_case cases[] = {
        {"close a queue", COMMAND("CloseQueue", "Queue", "q"), NULL,
         "Forbidden: CloseQueue of Queue \"q\" requires the right to update it: " QUEUES,
         "update scheduling.volcano.sh/queues - q"},
        {"open a queue", COMMAND("OpenQueue", "Queue", "q"), NULL,
         "Forbidden: OpenQueue of Queue \"q\" requires the right to update it: " QUEUES,
         "update scheduling.volcano.sh/queues - q"},
        {"abort a job", COMMAND("AbortJob", "Job", "j"), NULL,
         "Forbidden: AbortJob of Job \"j\" requires the right to update it: " JOBS,
         "update batch.volcano.sh/jobs team j"},
        {"another target", COMMAND("CloseQueue", "Queue", "q"), COMMAND("CloseQueue", "Job", "q"),
         "Forbidden: CloseQueue of Queue \"q\" requires the right to update it: " QUEUES,
         "update scheduling.volcano.sh/queues - q"},
        {"another action", COMMAND("OpenQueue", "Queue", "q"), COMMAND("CloseQueue", "Queue", "q"),
         "Forbidden: OpenQueue of Queue \"q\" requires the right to update it: " QUEUES,
         "update scheduling.volcano.sh/queues - q"},
        {"the same again", COMMAND("OpenQueue", "Queue", "q"), COMMAND("OpenQueue", "Queue", "q"),
         "", NULL},
        {"something nobody acts on", COMMAND("CloseQueue", "Pod", "q"), NULL, "", NULL},
    };

    check_rights(cases, HK_LEN(cases));
}

#define SPEC(node) "{restartPolicy: Never, containers: [{name: c, image: i}]" node "}"
#define AT ", nodeName: n1"
#define TEMPLATE(node) "{metadata: {labels: {a: b}}, spec: " SPEC(node) "}"
#define ALWAYS(node)                                                                               \
    "{metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]" node "}}"
#define OBJECT(version, kind, spec)                                                                \
    "{apiVersion: " version ", kind: " kind ", metadata: {name: x, namespace: team}, spec: " spec  \
    "}"
#define DEPLOYMENT(node)                                                                           \
    OBJECT("apps/v1", "Deployment", "{selector: {matchLabels: {a: b}}, template: " ALWAYS(node) "}")
#define TASKS(node) "[{name: t, replicas: 1, template: " TEMPLATE(node) "}]"
#define BIND(field)                                                                                \
    "Forbidden: " field ": choosing the node of a pod requires the right to bind it: " CANNOT(     \
        "create", "pods/binding", "",                                                              \
        "in the namespace \"team\"") "; leave nodeName out and the "                               \
                                     "scheduler will choose, or use "                              \
                                     "nodeSelector or affinity"
#define MAY_BIND "create /pods/binding team -"

static void a_node_takes_the_right_to_bind(void **state)
{
    static const struct rights_case cases[] = {
        {"a pod", OBJECT("v1", "Pod", SPEC(AT)), NULL, BIND("spec.nodeName"), MAY_BIND},
        {"a deployment", DEPLOYMENT(AT), NULL, BIND("spec.template.spec.nodeName"), MAY_BIND},
        {"a deployment that changes", DEPLOYMENT(AT), DEPLOYMENT(""),
         BIND("spec.template.spec.nodeName"), MAY_BIND},
        {"a deployment that had it", DEPLOYMENT(AT), DEPLOYMENT(AT), "", NULL},
        {"a batch job", OBJECT("batch/v1", "Job", "{template: " TEMPLATE(AT) "}"), NULL,
         BIND("spec.template.spec.nodeName"), MAY_BIND},
        {"a batch cron job",
         OBJECT("batch/v1", "CronJob",
                "{schedule: '* * * * *', jobTemplate: {spec: {template: " TEMPLATE(AT) "}}}"),
         NULL, BIND("spec.jobTemplate.spec.template.spec.nodeName"), MAY_BIND},
        {"a job",
         OBJECT("batch.volcano.sh/v1alpha1", "Job",
                "{minAvailable: 1, queue: default, schedulerName: volcano, tasks: " TASKS(AT) "}"),
         NULL, BIND("spec.tasks[0].template.spec.nodeName"), MAY_BIND},
        {"a template of jobs",
         OBJECT("flow.volcano.sh/v1alpha1", "JobTemplate", "{tasks: " TASKS(AT) "}"), NULL,
         BIND("spec.tasks[0].template.spec.nodeName"), MAY_BIND},
        {"a flow that changes a job",
         OBJECT("flow.volcano.sh/v1alpha1", "JobFlow",
                "{flows: [{name: a}, {name: b, patch: {jobSpec: {tasks: " TASKS(AT) "}}}]}"),
         NULL, BIND("spec.flows[1].patch.jobSpec.tasks[0].template.spec.nodeName"), MAY_BIND},
        {"nobody's node", DEPLOYMENT(""), NULL, "", NULL},
    };

    check_rights(cases, HK_LEN(cases));
}

#define RBAC "apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: x, namespace: team}"
#define ROLE(resource)                                                                             \
    "{" RBAC ", kind: Role, rules: [{verbs: [get], apiGroups: [''], resources: [" resource "]}]}"
#define BINDING(kind, name, subject)                                                               \
    "{" RBAC ", kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " kind     \
    ", name: " name                                                                                \
    "}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: " subject "}]}"
#define GRANT                                                                                      \
    "Forbidden: user \"ann\" (groups=[\"g\"]) is attempting to grant RBAC permissions not "        \
    "currently held"

static void users_cannot_grant_rights_they_do_not_have(void **state)
{
    static const struct rights_case cases[] = {
        {"rules that are held", ROLE("pods"), NULL, "", NULL},
        {"rules that are not", ROLE("nodes"), NULL, GRANT,
         "escalate rbac.authorization.k8s.io/roles team x"},
        {"rules that grow", ROLE("nodes"), ROLE("pods"), GRANT,
         "escalate rbac.authorization.k8s.io/roles team x"},
        {"nothing changes", ROLE("nodes"), ROLE("nodes"), "", NULL},
        {"a binding", BINDING("Role", "r", "eve"), NULL, GRANT,
         "bind rbac.authorization.k8s.io/roles team r"},
        {"a binding to a role of the cluster", BINDING("ClusterRole", "r", "eve"), NULL, GRANT,
         "bind rbac.authorization.k8s.io/clusterroles team r"},
        {"another subject", BINDING("Role", "r", "eve"), BINDING("Role", "r", "bob"), GRANT,
         "bind rbac.authorization.k8s.io/roles team r"},
        {"the same binding", BINDING("Role", "r", "eve"), BINDING("Role", "r", "eve"), "", NULL},
    };

    check_rights(cases, HK_LEN(cases));
}

#define KEPT                                                                                       \
    "roleRef: Invalid value: {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\","       \
    "\"name\":\"s\"}: cannot change roleRef"
#define CLUSTER_BINDING(kind, subjects)                                                            \
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}, "   \
    "roleRef: {kind: " kind ", name: r}, subjects: " subjects "}"

static void roles_and_bindings_make_sense(void **state)
{
    static const struct rig_case cases[] = {
        CASE("another role", BINDING("Role", "s", "eve"), KEPT, .state = state_text,
             .old = BINDING("Role", "r", "eve")),
        CASE("another kind of role", BINDING("Role", "s", "eve"), KEPT, .state = state_text,
             .old = BINDING("ClusterRole", "s", "eve")),
        CASE("a role that was stored without its group", BINDING("Role", "s", "eve"), "",
             .state = state_text,
             .old = "{" RBAC ", kind: RoleBinding, roleRef: {kind: Role, name: s}}"),
        CASE("no role", "{" RBAC ", kind: RoleBinding}",
             "roleRef.apiGroup: Unsupported value: \"\": supported values: "
             "\"rbac.authorization.k8s.io\"\n"
             "roleRef.kind: Unsupported value: \"\": supported values: \"Role\", \"ClusterRole\"\n"
             "roleRef.name: Required value",
             .state = state_text),
        CASE("a kind in small letters", BINDING("clusterrole", "r", "eve"),
             "roleRef.kind: Unsupported value: \"clusterrole\": supported values: \"Role\", "
             "\"ClusterRole\"",
             .state = state_text),
        CASE("a role for the whole cluster", CLUSTER_BINDING("Role", "[]"),
             "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""),
        CASE("an account of no namespace",
             CLUSTER_BINDING("ClusterRole", "[{kind: ServiceAccount, name: a}]"),
             "subjects[0].namespace: Required value"),
        CASE("a subject of no kind", CLUSTER_BINDING("ClusterRole", "[{kind: Robot, name: a}]"),
             "subjects[0].kind: Unsupported value: \"Robot\": supported values: "
             "\"ServiceAccount\", \"User\", \"Group\""),
        CASE("a rule for nothing", "{" RBAC ", kind: Role, rules: [{}]}",
             "rules[0].verbs: Required value: verbs must contain at least one value\n"
             "rules[0].apiGroups: Required value: resource rules must supply at least one api "
             "group\n"
             "rules[0].resources: Required value: resource rules must supply at least one resource",
             .state = state_text),
        CASE("a path in a namespace",
             "{" RBAC ", kind: Role, rules: [{verbs: [get], nonResourceURLs: [/x]}]}",
             "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to "
             "non-resource URLs",
             .state = state_text),
    };

    rig_check(cases, HK_LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_requires_the_right_to_update_its_target),
        cmocka_unit_test(a_node_takes_the_right_to_bind),
        cmocka_unit_test(users_cannot_grant_rights_they_do_not_have),
        cmocka_unit_test(roles_and_bindings_make_sense),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
