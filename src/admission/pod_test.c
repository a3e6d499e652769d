// SPDX-License-Identifier: Apache-2.0
// Admission of pods: the stored object, and the messages of refusals.
#include "admission/rig_test.h"

#define META "{name: p, namespace: ns}"
#define POD(spec) "{apiVersion: v1, kind: Pod, metadata: " META ", spec: " spec "}"
#define SUBDOMAIN_RULE                                                                             \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL_RULE                                                                                 \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

static const struct rig_case default_cases[] = {
    CASE("a bare pod", POD("{containers: [{name: c, image: busybox}]}"),
         "apiVersion: v1\n"
         "kind: Pod\n"
         "metadata: {name: p, namespace: ns}\n"
         "spec:\n"
         "  containers:\n"
         "  - image: busybox\n"
         "    imagePullPolicy: Always\n"
         "    name: c\n"
         "    resources: {}\n"
         "    terminationMessagePath: /dev/termination-log\n"
         "    terminationMessagePolicy: File\n"
         "  dnsPolicy: ClusterFirst\n"
         "  enableServiceLinks: true\n"
         "  preemptionPolicy: PreemptLowerPriority\n"
         "  priority: 0\n"
         "  restartPolicy: Always\n"
         "  schedulerName: default-scheduler\n"
         "  securityContext: {}\n"
         "  serviceAccount: default\n"
         "  serviceAccountName: default\n"
         "  terminationGracePeriodSeconds: 30\n"
         "  tolerations:\n"
         "  - {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, "
         "tolerationSeconds: 300}\n"
         "  - {effect: NoExecute, key: node.kubernetes.io/unreachable, operator: Exists, "
         "tolerationSeconds: 300}\n"
         "status: {phase: Pending, qosClass: BestEffort}\n"),
    CASE("everything that defaults inside containers and volumes",
         POD("{hostNetwork: true, terminationGracePeriodSeconds: -5, serviceAccount: x,"
             " schedulingGates: [{name: g}],"
             " tolerations: [{operator: Exists}],"
             " containers: [{name: c, image: 'r:5000/a:1.2', ports: [{containerPort: 80}],"
             "   resources: {limits: {cpu: 0.5, memory: 1Gi}},"
             "   livenessProbe: {httpGet: {port: 80}},"
             "   env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}],"
             " volumes: [{name: a}, {name: b, secret: {secretName: s}},"
             "   {name: h, hostPath: {path: /x}},"
             "   {name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}"),
         "apiVersion: v1\n"
         "kind: Pod\n"
         "metadata: {name: p, namespace: ns}\n"
         "spec:\n"
         "  containers:\n"
         "  - env: [{name: NAME, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "
         "metadata.name}}}]\n"
         "    image: r:5000/a:1.2\n"
         "    imagePullPolicy: IfNotPresent\n"
         "    livenessProbe: {failureThreshold: 3, httpGet: {path: /, port: 80, scheme: HTTP},\n"
         "      periodSeconds: 10, successThreshold: 1, timeoutSeconds: 1}\n"
         "    name: c\n"
         "    ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]\n"
         "    resources: {limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 500m, memory: 1Gi}}\n"
         "    terminationMessagePath: /dev/termination-log\n"
         "    terminationMessagePolicy: File\n"
         "  dnsPolicy: ClusterFirst\n"
         "  enableServiceLinks: true\n"
         "  hostNetwork: true\n"
         "  preemptionPolicy: PreemptLowerPriority\n"
         "  priority: 0\n"
         "  restartPolicy: Always\n"
         "  schedulerName: default-scheduler\n"
         "  schedulingGates: [{name: g}]\n"
         "  securityContext: {}\n"
         "  serviceAccount: x\n"
         "  serviceAccountName: x\n"
         "  terminationGracePeriodSeconds: 1\n"
         "  tolerations: [{operator: Exists}]\n"
         "  volumes:\n"
         "  - {emptyDir: {}, name: a}\n"
         "  - {name: b, secret: {defaultMode: 420, secretName: s}}\n"
         "  - {hostPath: {path: /x, type: ''}, name: h}\n"
         "  - {name: t, projected: {defaultMode: 420, sources: [{serviceAccountToken:\n"
         "      {expirationSeconds: 3600, path: t}}]}}\n"
         "status:\n"
         "  conditions: [{message: Scheduling is blocked due to non-empty scheduling gates,\n"
         "    reason: SchedulingGated, status: 'False', type: PodScheduled,\n"
         "    lastTransitionTime: '2026-01-02T03:04:05Z'}]\n"
         "  phase: Pending\n"
         "  qosClass: Guaranteed\n"),
};

static void test_stored_pod_shows_its_defaults(void **state)
{
    rig_check_objects(default_cases, HK_LEN(default_cases));
}

static const struct rig_case fault_cases[] = {
    CASE("no containers", POD("{restartPolicy: Never}"), "spec.containers: Required value"),
    CASE("empty names and images", POD("{containers: [{}]}"),
         "spec.containers[0].name: Required value\nspec.containers[0].image: Required value"),
    CASE("a name that is no label", POD("{containers: [{name: A_b, image: i}]}"),
         "spec.containers[0].name: Invalid value: \"A_b\": " LABEL_RULE),
    CASE("names used twice",
         POD("{containers: [{name: a, image: i}, {name: a, image: i}],"
             " initContainers: [{name: a, image: i}]}"),
         "spec.containers[1].name: Duplicate value: \"a\"\n"
         "spec.initContainers[0].name: Duplicate value: \"a\""),
    CASE("a resolver of its own that is none",
         POD("{dnsPolicy: None, containers: [{name: a, image: i}]}"),
         "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
    CASE(
        "no server in it",
        POD("{dnsPolicy: None, dnsConfig: {searches: [a]}, containers: [{name: a, image: i}]}"),
        "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when "
        "`dnsPolicy` is None"),
    CASE("servers, domains and options that are none",
         POD("{dnsConfig: {nameservers: [one, 192.0.2.1, '::1'], searches: [., _a.b., 'x y'], "
             "options: [{value: v}]}, containers: [{name: a, image: i}]}"),
         "spec.dnsConfig.nameservers[0]: Invalid value: \"one\": must be a valid IP address, (e.g. "
         "10.9.8.7 or 2001:db8::ffff)\n"
         "spec.dnsConfig.searches[2]: Invalid value: \"x y\": " SUBDOMAIN_RULE "\n"
         "spec.dnsConfig.options[0]: Required value: must not be empty"),
    CASE("too many servers",
         POD("{dnsConfig: {nameservers: ['::1', '::2', '::3', '::4']}, containers: [{name: a, "
             "image: i}]}"),
         "spec.dnsConfig.nameservers: Invalid value: [\"::1\",\"::2\",\"::3\",\"::4\"]: must not "
         "have "
         "more than 3 nameservers"),
    CASE("an unknown restart policy",
         POD("{restartPolicy: Sometimes, containers: [{name: a, image: i}]}"),
         "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
         "\"OnFailure\", \"Never\""),
    CASE("ports",
         POD("{containers: [{name: a, image: i, ports: [{containerPort: 70000},"
             " {containerPort: 1, hostPort: 8, protocol: X}]},"
             " {name: b, image: i, ports: [{containerPort: 1, hostPort: 8, protocol: X}]}]}"),
         "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and "
         "65535, inclusive\n"
         "spec.containers[0].ports[1].protocol: Unsupported value: \"X\": supported values: "
         "\"SCTP\", "
         "\"TCP\", \"UDP\"\n"
         "spec.containers[1].ports[0].protocol: Unsupported value: \"X\": supported values: "
         "\"SCTP\", "
         "\"TCP\", \"UDP\"\n"
         "spec.containers[1].ports[0].hostPort: Duplicate value: \"X//8\""),
    CASE("a host port that differs under hostNetwork",
         POD("{hostNetwork: true, containers: [{name: a, image: i, ports: [{containerPort: 80, "
             "hostPort: 81}]}]}"),
         "spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when "
         "`hostNetwork` is true"),
    CASE("a request above its limit",
         POD("{containers: [{name: a, image: i, resources: {requests: {cpu: 2}, limits: {cpu: "
             "1}}}]}"),
         "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal "
         "to "
         "cpu limit of 1"),
    CASE("extended resources",
         POD("{containers: [{name: a, image: i, resources: {requests: {a.com/g: 1, b.com/g: 1}, "
             "limits: {a.com/g: 2, c.com/g: 500m}}}]}"),
         "spec.containers[0].resources.limits[c.com/g]: Invalid value: \"500m\": must be an "
         "integer\n"
         "spec.containers[0].resources.requests[c.com/g]: Invalid value: \"500m\": must be an "
         "integer\n"
         "spec.containers[0].resources.requests: Invalid value: \"1\": must be equal to a.com/g "
         "limit "
         "of 2\n"
         "spec.containers[0].resources.limits: Required value: Limit must be set for non "
         "overcommitable resources"),
    CASE("a resource nobody knows",
         POD("{containers: [{name: a, image: i, resources: {limits: {gpu: 1}}}]}"),
         "spec.containers[0].resources.limits[gpu]: Invalid value: \"gpu\": must be a standard "
         "resource for containers\n"
         "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard "
         "resource for containers"),
    CASE("huge pages alone",
         POD("{containers: [{name: a, image: i, resources: {limits: {hugepages-2Mi: 2Mi}}}]}"),
         "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"),
    CASE("volumes and mounts",
         POD("{volumes: [{name: v, emptyDir: {}}, {name: v, secret: {}}],"
             " containers: [{name: a, image: i, volumeMounts: [{name: w, mountPath: /w},"
             " {name: v}]}]}"),
         "spec.volumes[1].secret.secretName: Required value\n"
         "spec.volumes[1].name: Duplicate value: \"v\"\n"
         "spec.containers[0].volumeMounts[0].name: Not found: \"w\"\n"
         "spec.containers[0].volumeMounts[1].mountPath: Required value"),
    CASE(
        "environment",
        POD("{containers: [{name: a, image: i, env: [{name: 'a=b'}, {value: x},"
            " {name: c, value: d, valueFrom: {fieldRef: {fieldPath: x}}}]}]}"),
        "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name "
        "must consist only of printable ASCII characters other than '='\n"
        "spec.containers[0].env[1].name: Required value\n"
        "spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not be specified when "
        "`value` "
        "is not empty"),
    CASE("users and groups that cannot be",
         POD("{securityContext: {fsGroup: 2147483648, supplementalGroups: [0, -1]},"
             " containers: [{name: c, image: i, securityContext: {runAsUser: -5}}]}"),
         "spec.containers[0].securityContext.runAsUser: Invalid value: -5: must be between 0 and "
         "2147483647, inclusive\n"
         "spec.securityContext.fsGroup: Invalid value: 2147483648: must be between 0 and "
         "2147483647, inclusive\n"
         "spec.securityContext.supplementalGroups[1]: Invalid value: -1: must be between 0 and "
         "2147483647, inclusive"),
    CASE("a deadline of nothing",
         POD("{activeDeadlineSeconds: 0, containers: [{name: a, image: i}]}"),
         "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
         "inclusive"),
    CASE("gates and a node",
         POD("{nodeName: node-1, schedulingGates: [{name: a}, {name: a}], containers: [{name: a, "
             "image: "
             "i}]}"),
         "spec.schedulingGates[1]: Duplicate value: \"a\"\n"
         "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"),
    CASE("ephemeral containers from the start",
         POD("{containers: [{name: a, image: i}], ephemeralContainers: [{name: e, image: i}]}"),
         "spec.ephemeralContainers: Forbidden: cannot be set on create"),
    CASE("tolerations",
         POD("{containers: [{name: a, image: i}], tolerations: [{key: k, operator: Exists, value: "
             "v, "
             "effect: NoExecute}, {operator: Equal, effect: NoExecute}, {key: k, operator: Like, "
             "effect: NoExecute}, {key: k, effect: NoSchedule, tolerationSeconds: 3}]}"),
         "spec.tolerations[0].operator: Invalid value: "
         "{\"key\":\"k\",\"operator\":\"Exists\",\"value\":\"v\",\"effect\":\"NoExecute\"}: value "
         "must "
         "be empty when `operator` is 'Exists'\n"
         "spec.tolerations[1].operator: Invalid value: \"Equal\": operator must be Exists when "
         "`key` "
         "is empty, which means \"match all values and all keys\"\n"
         "spec.tolerations[2].operator: Unsupported value: \"Like\": supported values: \"Equal\", "
         "\"Exists\"\n"
         "spec.tolerations[3].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' "
         "when "
         "`tolerationSeconds` is set"),
    CASE("affinity",
         POD("{containers: [{name: a, image: i}], affinity: {nodeAffinity: "
             "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []},"
             " preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: "
             "{matchExpressions: [{key: a, operator: Gt}]}}]}, podAffinity: "
             "{requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}}"),
         "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
         "nodeSelectorTerms: Required value: must have at least one node selector term\n"
         "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
         "Invalid value: 0: must be in the range 1-100\n"
         "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference."
         "matchExpressions[0].values: Required value: must be specified single value when "
         "`operator` "
         "is 'Lt' or 'Gt'\n"
         "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
         "Required value: can not be empty"),
    CASE("spreading",
         POD("{containers: [{name: a, image: i}], topologySpreadConstraints: [{maxSkew: 0, "
             "topologyKey: zone, whenUnsatisfiable: Maybe}]}"),
         "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero\n"
         "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Maybe\": "
         "supported "
         "values: \"DoNotSchedule\", \"ScheduleAnyway\""),
    CASE("a probe without handler",
         POD("{containers: [{name: a, image: i, livenessProbe: {successThreshold: 2}}]}"),
         "spec.containers[0].livenessProbe: Required value: must specify a handler type\n"
         "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"),
};

static void test_faults_are_reported_by_field(void **state)
{
    rig_check(fault_cases, HK_LEN(fault_cases));
}

#define BASE                                                                                       \
    "restartPolicy: Always, dnsPolicy: ClusterFirst, schedulerName: default-scheduler, "           \
    "terminationGracePeriodSeconds: 30, securityContext: {}, enableServiceLinks: true, "           \
    "priority: 0, preemptionPolicy: PreemptLowerPriority"
#define TOLERATIONS                                                                                \
    "tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, "      \
    "tolerationSeconds: 300}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: "    \
    "NoExecute, tolerationSeconds: 300}]"
#define CONTAINER(image)                                                                           \
    "containers: [{name: a, image: '" image "', imagePullPolicy: IfNotPresent, "                   \
    "terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: "    \
    "{}}]"
#define OLD POD("{" BASE ", " TOLERATIONS ", " CONTAINER("i:1") "}")
#define CHANGE_RULE                                                                                \
    "pod updates may not change fields other than "                                                \
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"      \
    "`spec.tolerations` (only additions to existing tolerations),"                                 \
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "          \
    "negative)"

static const struct rig_case update_cases[] = {
    CASE("nothing", OLD, "", .old = OLD),
    CASE("an image", POD("{" BASE ", " TOLERATIONS ", " CONTAINER("i:2") "}"), "", .old = OLD),
    CASE("a first deadline",
         POD("{activeDeadlineSeconds: 9, " BASE ", " TOLERATIONS ", " CONTAINER("i:1") "}"), "",
         .old = OLD),
    CASE("priority left out by an old client",
         POD("{restartPolicy: Always, " TOLERATIONS ", " CONTAINER("i:1") "}"), "", .old = OLD),
    CASE("a node name", POD("{nodeName: node-1, " BASE ", " TOLERATIONS ", " CONTAINER("i:1") "}"),
         "spec: Forbidden: " CHANGE_RULE, .old = OLD),
    CASE("one container more",
         POD("{" BASE ", " TOLERATIONS
             ", containers: [{name: a, image: 'i:1'}, {name: b, image: i}]}"),
         "spec.containers: Forbidden: pod updates may not add or remove containers", .old = OLD),
    CASE("a toleration lost",
         POD("{" BASE ", tolerations: [{operator: Exists}], " CONTAINER("i:1") "}"),
         "spec.tolerations: Forbidden: existing toleration can not be modified except its "
         "tolerationSeconds",
         .old = OLD),
    CASE("a gate added",
         POD("{schedulingGates: [{name: g}], " BASE ", " TOLERATIONS ", " CONTAINER("i:1") "}"),
         "spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate "
         "'g'",
         .old = OLD),
    CASE("a gate removed", OLD, "",
         .old = POD("{schedulingGates: [{name: g}], " BASE ", " TOLERATIONS
                    ", " CONTAINER("i:1") "}")),
    CASE("a pickier gated pod",
         POD("{nodeSelector: {a: b}, schedulingGates: [{name: g}], " BASE ", " TOLERATIONS
             ", " CONTAINER("i:1") "}"),
         "",
         .old = POD("{schedulingGates: [{name: g}], " BASE ", " TOLERATIONS
                    ", " CONTAINER("i:1") "}")),
};

static void test_few_fields_of_a_pod_may_change(void **state)
{
    rig_check(update_cases, HK_LEN(update_cases));
}

#define STATUS(policy, status)                                                                     \
    "{apiVersion: v1, kind: Pod, metadata: " META ", spec: {restartPolicy: " policy                \
    "}, status: " status "}"

static const struct rig_case status_cases[] = {
    CASE("back from the dead",
         STATUS("Never", "{containerStatuses: [{name: a, state: {running: {}}}]}"),
         "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated "
         "state",
         .old = STATUS("Never",
                       "{containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}]}"),
         .subresource = "status"),
    CASE("a failure that may restart",
         STATUS("OnFailure", "{containerStatuses: [{name: a, state: {running: {}}}]}"), "",
         .old = STATUS("OnFailure",
                       "{containerStatuses: [{name: a, state: {terminated: {exitCode: 1}}}]}"),
         .subresource = "status"),
    CASE("an address that is none", STATUS("Never", "{podIPs: [{ip: nowhere}]}"),
         "status.podIPs[0]: Invalid value: \"nowhere\": must be a valid IP address, (e.g. 10.9.8.7 "
         "or "
         "2001:db8::ffff)",
         .old = STATUS("Never", "{phase: Pending}"), .subresource = "status"),
    CASE("another quality of service", STATUS("Never", "{qosClass: Guaranteed}"),
         "status.qosClass: Invalid value: \"Guaranteed\": field is immutable",
         .old = STATUS("Never", "{qosClass: BestEffort}"), .subresource = "status"),
};

static void test_status_changes_within_reason(void **state)
{
    rig_check(status_cases, HK_LEN(status_cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_pod_shows_its_defaults),
        cmocka_unit_test(test_faults_are_reported_by_field),
        cmocka_unit_test(test_few_fields_of_a_pod_may_change),
        cmocka_unit_test(test_status_changes_within_reason),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
