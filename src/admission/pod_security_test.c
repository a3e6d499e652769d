// SPDX-License-Identifier: Apache-2.0
// The Pod Security Standards, control by control, and the pods that a namespace's labels restrict.
#include "admission/pod_security_standards.h"

#include "admission/rig_test.h"

/* A restricted container and pod; each case adds one thing. */
#define DROP "capabilities: {drop: [ALL]}"
#define GOOD "allowPrivilegeEscalation: false, " DROP
#define GOOD_POD "runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}"
#define SPEC(pod_context, context, more_container, more)                                           \
    "spec: {securityContext: {" pod_context "}, containers: [{name: c, image: i, "                 \
    "securityContext: {" context "}" more_container "}]" more "}\n"
#define PLAIN(more) SPEC(GOOD_POD, GOOD, "", more)
#define IN_POD(context) SPEC(GOOD_POD ", " context, GOOD, "", "")
#define IN_CONTAINER(context) SPEC(GOOD_POD, GOOD ", " context, "", "")
#define BESIDE(more) SPEC(GOOD_POD, GOOD, more, "")

struct standard_case {
    const char *text;
    const char *baseline, *restricted; /* the message at that level, "" none */
};

#define BOTH(words) words, words

static const struct standard_case standard_cases[] = {
    {PLAIN(""), BOTH("")},

    /* hostNamespaces */
    {PLAIN(", hostNetwork: true"), BOTH("host namespaces (hostNetwork=true)")},
    {PLAIN(", hostPID: true, hostIPC: true"), BOTH("host namespaces (hostPID=true, hostIPC=true)")},
    {PLAIN(", hostPID: false"), BOTH("")},

    /* privileged */
    {IN_CONTAINER("privileged: true"),
     BOTH("privileged (container \"c\" must not set securityContext.privileged=true)")},
    {IN_CONTAINER("privileged: false"), BOTH("")},
    {PLAIN(", initContainers: [{name: a, securityContext: {privileged: true, " GOOD "}}], "
           "ephemeralContainers: [{name: e, securityContext: {privileged: true, " GOOD "}}]"),
     BOTH("privileged (containers \"a\", \"e\" must not set securityContext.privileged=true)")},

    /* capabilities */
    {SPEC(GOOD_POD, "allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [CHOWN]}",
          "", ""),
     "",
     "unrestricted capabilities (container \"c\" must not include \"CHOWN\" in "
     "securityContext.capabilities.add)"},
    {SPEC(GOOD_POD,
          "allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [SYS_ADMIN, "
          "NET_RAW, NET_BIND_SERVICE]}",
          "", ""),
     "non-default capabilities (container \"c\" must not include \"NET_RAW\", \"SYS_ADMIN\" in "
     "securityContext.capabilities.add)",
     "unrestricted capabilities (container \"c\" must not include \"NET_RAW\", \"SYS_ADMIN\" in "
     "securityContext.capabilities.add)"},
    {SPEC(GOOD_POD, "allowPrivilegeEscalation: false, capabilities: {drop: [KILL], add: [ALL]}", "",
          ""),
     "non-default capabilities (container \"c\" must not include \"ALL\" in "
     "securityContext.capabilities.add)",
     "unrestricted capabilities (container \"c\" must set "
     "securityContext.capabilities.drop=[\"ALL\"]; container \"c\" must not include \"ALL\" in "
     "securityContext.capabilities.add)"},
    {SPEC(GOOD_POD,
          "allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}",
          "", ""),
     BOTH("")},

    /* hostPath, and the other kinds of volumes */
    {PLAIN(", volumes: [{name: v, hostPath: {path: /}}, {name: w, hostPath: {path: /}}]"),
     "hostPath volumes (volumes \"v\", \"w\")",
     "restricted volume types (volumes \"v\", \"w\" use restricted volume type \"hostPath\")"},
    {PLAIN(", volumes: [{name: v, nfs: {server: s, path: /}}]"), "",
     "restricted volume types (volume \"v\" uses restricted volume type \"nfs\")"},
    {PLAIN(", volumes: [{name: v, iscsi: {}}, {name: w, hostPath: {path: /}}]"),
     "hostPath volumes (volume \"w\")",
     "restricted volume types (volumes \"v\", \"w\" use restricted volume types \"hostPath\", "
     "\"iscsi\")"},
    {PLAIN(", volumes: [{name: a, configMap: {}}, {name: b, csi: {}}, {name: c, downwardAPI: {}}, "
           "{name: d, emptyDir: {}}, {name: e, ephemeral: {}}, {name: f, persistentVolumeClaim: "
           "{}}, {name: g, projected: {}}, {name: h, secret: {}}]"),
     BOTH("")},

    /* hostPorts */
    {BESIDE(", ports: [{containerPort: 80, hostPort: 8080}]"),
     BOTH("hostPort (container \"c\" uses hostPort 8080)")},
    {BESIDE(", ports: [{hostPort: 9}, {hostPort: 8080}, {hostPort: 8080}]"),
     BOTH("hostPorts (container \"c\" uses hostPorts 8080, 9)")},
    {BESIDE(", ports: [{containerPort: 80, hostPort: 0}]"), BOTH("")},

    /* hosts of probes and hooks */
    {BESIDE(", livenessProbe: {httpGet: {host: 10.0.0.1}}, lifecycle: {preStop: {tcpSocket: "
            "{host: db}}}"),
     BOTH("probe or lifecycle host (container \"c\" uses probe or lifecycle hosts \"10.0.0.1\", "
          "\"db\")")},
    {BESIDE(", startupProbe: {httpGet: {port: 80}}"), BOTH("")},

    /* AppArmor */
    {IN_POD("appArmorProfile: {type: Unconfined}"),
     BOTH("forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")")},
    {IN_CONTAINER("appArmorProfile: {type: Unconfined}"),
     BOTH("forbidden AppArmor profile (container \"c\" must not set AppArmor profile type to "
          "\"Unconfined\")")},
    {IN_POD("appArmorProfile: {type: Localhost, localhostProfile: x}"), BOTH("")},
    {"metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined}}\n" //
     PLAIN(""),
     BOTH("forbidden AppArmor profile (annotation must not set AppArmor profile type to "
          "\"container.apparmor.security.beta.kubernetes.io/c=\\\"unconfined\\\"\")")},
    {"metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/c: "
     "runtime/default, container.apparmor.security.beta.kubernetes.io/d: localhost/x}}\n" //
     PLAIN(""),
     BOTH("")},

    /* SELinux */
    {IN_POD("seLinuxOptions: {type: spc_t}"),
     BOTH("seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\")")},
    {IN_CONTAINER("seLinuxOptions: {user: root, role: sysadm_r}"),
     BOTH("seLinuxOptions (container \"c\" set forbidden securityContext.seLinuxOptions: user may "
          "not be set; role may not be set)")},
    {IN_POD("seLinuxOptions: {type: container_engine_t, level: s0}"), BOTH("")},

    /* procMount */
    {IN_CONTAINER("procMount: Unmasked"),
     BOTH("procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")")},
    {IN_CONTAINER("procMount: Default"), BOTH("")},

    /* seccomp */
    {SPEC("runAsNonRoot: true, seccompProfile: {type: Unconfined}", GOOD, "", ""),
     BOTH("seccompProfile (pod must not set securityContext.seccompProfile.type to "
          "\"Unconfined\")")},
    {IN_CONTAINER("seccompProfile: {type: Unconfined}"),
     BOTH("seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to "
          "\"Unconfined\")")},
    {SPEC("runAsNonRoot: true", GOOD, "", ""), "",
     "seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to "
     "\"RuntimeDefault\" or \"Localhost\")"},
    {SPEC("runAsNonRoot: true", GOOD ", seccompProfile: {type: Localhost}", "", ""), BOTH("")},

    /* sysctls */
    {IN_POD("sysctls: [{name: kernel.msgmax}, {name: net.ipv4.tcp_wmem}, {name: a.b}]"),
     BOTH("forbidden sysctls (kernel.msgmax, a.b)")},
    {IN_POD("sysctls: [{name: net.ipv4.ip_unprivileged_port_start}]"), BOTH("")},

    /* Windows */
    {IN_POD("windowsOptions: {hostProcess: true}"),
     BOTH("hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)")},
    {SPEC("runAsNonRoot: true", "", "", ", os: {name: windows}"), BOTH("")},

    /* escalation */
    {SPEC(GOOD_POD, DROP, "", ""), "",
     "allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},
    {SPEC(GOOD_POD, "allowPrivilegeEscalation: true, " DROP, "", ""), "",
     "allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},

    /* not root */
    {SPEC("seccompProfile: {type: RuntimeDefault}", GOOD, "", ""), "",
     "runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)"},
    {SPEC("seccompProfile: {type: RuntimeDefault}", GOOD ", runAsNonRoot: true", "", ""), BOTH("")},
    {IN_CONTAINER("runAsNonRoot: false"), "",
     "runAsNonRoot != true (container \"c\" must not set securityContext.runAsNonRoot=false)"},
    {SPEC("runAsNonRoot: false, seccompProfile: {type: RuntimeDefault}", GOOD, "", ""), "",
     "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
    {IN_POD("runAsUser: 0"), "", "runAsUser=0 (pod must not set runAsUser=0)"},
    {IN_CONTAINER("runAsUser: 0"), "", "runAsUser=0 (container \"c\" must not set runAsUser=0)"},
    {IN_POD("runAsUser: 1000"), BOTH("")},

    /* several at once, in Kubernetes' order */
    {"spec: {hostPID: true, containers: [{name: c, image: i}]}\n", "host namespaces (hostPID=true)",
     "host namespaces (hostPID=true), allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" "
     "must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or "
     "container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "
     "container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
     "\"Localhost\")"},
    /* nothing at all */
    {"spec: {}\n", BOTH("")},
};

static void check_level(enum pss_level level, const char *text, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
    struct rig r = {0};
    const struct json *pod = rig_parse(&r, text, 0);
    const uint32_t n =
        pss_check(level, json_get(pod, "metadata"), json_get(pod, "spec"), &got, NULL);

    if (strcmp(hk_buf_str(&got).s, want) != 0 || (n == 0) != (want[0] == '\0')) {
        fail_msg("%s at %s:\nexpected: %s\n  actual: %s", text, pss_level_name(level), want,
                 hk_buf_str(&got).s);
    }
    rig_fini(&r);
}

static void each_control_names_the_violating_containers(void **state)
{
    for (size_t i = 0; i < HK_LEN(standard_cases); i++) {
        const struct standard_case *c = &standard_cases[i];
        check_level(PSS_PRIVILEGED, c->text, "");
        check_level(PSS_BASELINE, c->text, c->baseline);
        check_level(PSS_RESTRICTED, c->text, c->restricted);
    }
}

/* Values of the wrong type, which a typed server refuses, cause no failure here. */
static void odd_shapes_are_survived(void **state)
{
    static const char *const odd[] = {
        "{}",
        "spec: 7\n",
        "spec: {securityContext: [], containers: {a: b}, volumes: 3}\n",
        ("metadata: {annotations: []}\nspec: {containers: [7, null, {securityContext: x, ports: "
         "[1], lifecycle: [], livenessProbe: y}], volumes: [null, 4]}\n"),
        "spec: {securityContext: {sysctls: [1, {}], seLinuxOptions: 4, seccompProfile: z}}\n",
    };

    for (size_t i = 0; i < HK_LEN(odd); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf details = {0};
        struct rig r = {0};
        const struct json *pod = rig_parse(&r, odd[i], 0);
        (void)pss_check(PSS_RESTRICTED, json_get(pod, "metadata"), json_get(pod, "spec"), &details,
                        NULL);
        rig_fini(&r);
    }
}

/* ---- namespaces ---- */

#define NS(labels)                                                                                 \
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {" labels "}}\n---\n"         \
    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: team}\n"
#define ENFORCE(level) NS("pod-security.kubernetes.io/enforce: " level)
#define POD(spec) "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\n" spec
#define HOST_POD POD("spec: {hostPID: true, containers: [{name: c, image: i}]}\n")

static void labels_decide(void **state)
{
    static const struct rig_case cases[] = {
        CASE("no label", HOST_POD, "", .state = NS("")),
        CASE("privileged", HOST_POD, "", .state = ENFORCE("privileged")),
        CASE("baseline", HOST_POD,
             "Forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)",
             .state = ENFORCE("baseline")),
        CASE("a version is shown", HOST_POD,
             "Forbidden: violates PodSecurity \"baseline:v1.29\": host namespaces (hostPID=true)",
             .state = NS("pod-security.kubernetes.io/enforce: baseline, "
                         "pod-security.kubernetes.io/enforce-version: v1.29")),
        CASE("restricted, kept to", POD(PLAIN("")), "", .state = ENFORCE("restricted")),
        CASE("an unknown level that is stored is the strictest", POD(SPEC(GOOD_POD, DROP, "", "")),
             "Forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != "
             "false (container \"c\" must set securityContext.allowPrivilegeEscalation=false)",
             .state = ENFORCE("strict")),
        CASE("warn and audit refuse nothing", HOST_POD, "",
             .state = NS("pod-security.kubernetes.io/warn: baseline, "
                         "pod-security.kubernetes.io/audit: baseline")),
    };

    rig_check(cases, HK_LEN(cases));
}

#define NAMESPACE(labels)                                                                          \
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {" labels "}}\n"
#define LEVELS "must be one of privileged, baseline, restricted"

static void labels_that_mean_nothing_are_refused(void **state)
{
    static const struct rig_case cases[] = {
        CASE("all good",
             NAMESPACE("pod-security.kubernetes.io/enforce: restricted, "
                       "pod-security.kubernetes.io/enforce-version: latest, "
                       "pod-security.kubernetes.io/warn: baseline, "
                       "pod-security.kubernetes.io/warn-version: v1.30"),
             ""),
        CASE("a level", NAMESPACE("pod-security.kubernetes.io/enforce: strict"),
             "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "
             "\"strict\": " LEVELS),
        CASE("a level in capitals", NAMESPACE("pod-security.kubernetes.io/warn: Baseline"),
             "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "
             "\"Baseline\": " LEVELS),
        CASE("an empty level", NAMESPACE("pod-security.kubernetes.io/audit: \"\""),
             "metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: \"\": " LEVELS),
        CASE("a version", NAMESPACE("pod-security.kubernetes.io/audit-version: v2.0"),
             "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"v2.0\": "
             "must be \"latest\" or \"v1.x\""),
        CASE("a patch version", NAMESPACE("pod-security.kubernetes.io/enforce-version: v1.2.3"),
             "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "
             "\"v1.2.3\": must be \"latest\" or \"v1.x\""),
        CASE("one that was stored does not stop other changes",
             NAMESPACE("pod-security.kubernetes.io/enforce: strict, a: b"), "",
             .old = NAMESPACE("pod-security.kubernetes.io/enforce: strict")),
    };

    rig_check(cases, HK_LEN(cases));
}

/* Runs one write and compares the warnings, one per line, and the audit message. */
static void check_words(const char *state, const char *old, const char *text, const char *warned,
                        const char *audited)
{
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
    struct rig r = {0};

    rig_run(&r, state, old, text, NULL);
    assert_string_equal(rig_outcome(&r), "");
    for (uint32_t i = 0; i < r.q.warnings.len; i++) {
        hk_buf_addf(&got, "%s%s", i > 0 ? "\n" : "", r.q.warnings.at[i]);
    }
    assert_string_equal(hk_buf_str(&got).s, warned);
    assert_string_equal(r.q.audit ? r.q.audit : "", audited);
    rig_fini(&r);
}

#define TEMPLATE                                                                                   \
    "{metadata: {labels: {a: b}}, spec: {hostPID: true, containers: [{name: c, image: i}]}}"
#define DEPLOYMENT                                                                                 \
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: team}\n"                \
    "spec: {selector: {matchLabels: {a: b}}, template: " TEMPLATE "}\n"
#define VCJOB                                                                                      \
    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, namespace: team}\n"     \
    "spec: {minAvailable: 1, schedulerName: volcano, queue: default, tasks: [{name: a, replicas: " \
    "1, template: " TEMPLATE "}, {name: b, replicas: 1, template: " TEMPLATE "}]}\n"
#define OPEN_QUEUE                                                                                 \
    "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: default}\n"     \
    "status: {state: Open}\n"
#define FAULT "would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"

static void writers_of_workloads_get_warnings(void **state)
{
    check_words(ENFORCE("baseline"), NULL, DEPLOYMENT, FAULT, "");
    check_words(ENFORCE("baseline") OPEN_QUEUE, NULL, VCJOB, FAULT, "");
    check_words(NS("pod-security.kubernetes.io/enforce: baseline, "
                   "pod-security.kubernetes.io/warn: privileged"),
                NULL, DEPLOYMENT, "", "");
    check_words(NS("pod-security.kubernetes.io/warn: baseline"), NULL, HOST_POD, FAULT, "");
    check_words(NS("pod-security.kubernetes.io/audit: baseline"), NULL, HOST_POD, "", FAULT);
    check_words(NS(""), NULL, DEPLOYMENT, "", "");
}

#define PODS                                                                                       \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: z, namespace: team}\nspec: {hostPID: "            \
    "true}\n---\n"                                                                                 \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: team}\nspec: {hostPID: "            \
    "true}\n---\n"                                                                                 \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: m, namespace: team}\nspec: {hostIPC: true, "      \
    "volumes: [{name: v, hostPath: {path: /}}]}\n---\n"                                            \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: o, namespace: other}\nspec: {hostPID: true}\n"

static void a_stricter_namespace_warns_of_its_existing_pods(void **state)
{
    check_words(PODS, NAMESPACE(""), NAMESPACE("pod-security.kubernetes.io/enforce: baseline"),
                "existing pods in namespace \"team\" violate the new PodSecurity enforce level "
                "\"baseline:latest\"\n"
                "a (and 1 other pod): host namespaces\n"
                "m: host namespaces, hostPath volumes",
                "");
    check_words(PODS, NAMESPACE("pod-security.kubernetes.io/enforce: restricted"),
                NAMESPACE("pod-security.kubernetes.io/enforce: baseline"), "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_control_names_the_violating_containers),
        cmocka_unit_test(odd_shapes_are_survived),
        cmocka_unit_test(labels_decide),
        cmocka_unit_test(labels_that_mean_nothing_are_refused),
        cmocka_unit_test(writers_of_workloads_get_warnings),
        cmocka_unit_test(a_stricter_namespace_warns_of_its_existing_pods),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
