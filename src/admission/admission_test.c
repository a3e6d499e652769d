// SPDX-License-Identifier: Apache-2.0
// Admission of every kind except pods: decoding, metadata, and the rules of each kind.
#include "admission/rig_test.h"

#define CM(meta, rest) "{apiVersion: v1, kind: ConfigMap, metadata: " meta rest "}"
#define SUBDOMAIN_RULE                                                                             \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define QUALIFIED_RULE                                                                             \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

/* ---- decoding ---- */

#define HANDLED "Invalid: Pod in version \"v1\" cannot be handled as a Pod: "
#define POD(rest) "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}" rest "}"

static const struct rig_case decode_cases[] = {
    CASE("a string for a number", POD(", spec: {priority: high}"),
         HANDLED "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type "
                 "int32"),
    CASE("a number too large", POD(", spec: {priority: 3000000000}"),
         HANDLED "json: cannot unmarshal number 3000000000 into Go struct field "
                 "PodSpec.spec.priority of type int32"),
    CASE("a number too large where a text may be",
         "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: ns}, spec: "
         "{updateStrategy: {rollingUpdate: {maxSurge: 9223372036854775807}}}}",
         "Invalid: DaemonSet in version \"v1\" cannot be handled as a DaemonSet: json: cannot "
         "unmarshal number 9223372036854775807 into Go value of type int32"),
    CASE("a fraction", POD(", spec: {activeDeadlineSeconds: 1.5}"),
         HANDLED "json: cannot unmarshal number 1.5 into Go struct field "
                 "PodSpec.spec.activeDeadlineSeconds of type int64"),
    CASE("an object for a list", POD(", spec: {containers: {}}"),
         HANDLED "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of "
                 "type []v1.Container"),
    CASE("a string for an object", POD(", spec: {containers: [x]}"),
         HANDLED "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of "
                 "type v1.Container"),
    CASE("a number in labels", "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: 1}}}",
         HANDLED "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of "
                 "type string"),
    CASE("a quantity that is none",
         POD(", spec: {containers: [{name: c, resources: {limits: {cpu: much}}}]}"),
         HANDLED "quantities must match the regular expression "
                 "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    CASE("base64 that is none",
         "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {k: 'a!b='}}",
         "Invalid: Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at "
         "input byte 1"),
    CASE("a number in the labels of a custom resource",
         "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q, labels: {a: "
         "1}}, spec: {weight: heavy}}",
         "Invalid: Queue in version \"v1beta1\" cannot be handled as a "
         "Queue: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of "
         "type string"),
};

static void test_wrong_types_are_refused_in_gos_words(void **state)
{
    rig_check(decode_cases, HK_LEN(decode_cases));
}

static void test_unknown_fields_fall_out_and_are_listed(void **state)
{
    struct rig r = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    rig_run(&r, NULL, NULL,
            "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns, bogus: 1, "
            "creationTimestamp: null}, more: 1, spec: {hostNetwork: false, containers: [{name: c, "
            "image: i, odd: 1, resources: {limits: {cpu: 1000m}}}]}}",
            NULL);
    for (uint32_t i = 0; i < r.q.unknown.len; i++) {
        hk_buf_addf(&got, "%s ", r.q.unknown.at[i]);
    }
    assert_string_equal(got.data, "metadata.bogus more spec.containers[0].odd ");
    assert_null(json_get(json_get(r.q.obj, "metadata"), "creationTimestamp"));
    assert_null(json_get(json_get(r.q.obj, "metadata"), "bogus"));
    assert_null(json_get(json_get(r.q.obj, "spec"), "hostNetwork"));
    const struct json *limits =
        json_at(json_item(json_at(r.q.obj, "spec.containers"), 0), "resources.limits");
    assert_string_equal(json_get(limits, "cpu")->s, "1");
    rig_fini(&r);
}

/* ---- metadata ---- */

static const struct rig_case meta_cases[] = {
    CASE("no name", CM("{namespace: ns}", ""),
         "metadata.name: Required value: name or generateName is required"),
    CASE("a bad name", CM("{name: Bad_Name, namespace: ns}", ""),
         "metadata.name: Invalid value: \"Bad_Name\": " SUBDOMAIN_RULE),
    CASE("a prefix is enough", CM("{generateName: x-, namespace: ns}", ""), ""),
    CASE("a namespace is a label", "{apiVersion: v1, kind: Namespace, metadata: {name: a.b}}",
         "metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower "
         "case alphanumeric characters or '-', and must start and end with an alphanumeric "
         "character (e.g. 'my-name',  or '123-abc', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"),
    CASE("labels", CM("{name: c, namespace: ns, labels: {'-a': b, 'x/y/z': c, k: '-v'}}", ""),
         "metadata.labels: Invalid value: \"-a\": name part " QUALIFIED_RULE "\n"
         "metadata.labels: Invalid value: \"x/y/z\": a qualified name " QUALIFIED_RULE
         " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')\n"
         "metadata.labels: Invalid value: \"-v\": a valid label must be an empty string or consist "
         "of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
         "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
         "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
    CASE("owners",
         CM("{name: c, namespace: ns, ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: "
            "u, controller: true}, {apiVersion: v1, kind: Pod, name: b, controller: true}]}",
            ""),
         "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty\n"
         "metadata.ownerReferences: Invalid value: "
         "[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u\","
         "\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"b\","
         "\"controller\":true}]: Only one reference can have Controller set to true. Found "
         "\"true\" in references for Pod/a and Pod/b"),
    CASE("finalizers", CM("{name: c, namespace: ns, finalizers: [mine]}", ""),
         "metadata.finalizers[0]: Invalid value: \"mine\": name is neither a standard finalizer "
         "name "
         "nor is it fully qualified"),
    CASE("a finalizer added too late",
         CM("{name: c, namespace: ns, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [a/b, "
            "a/c]}",
            ""),
         "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
         "deleted, found new finalizers []string{\"a/c\"}",
         .old = CM("{name: c, namespace: ns, deletionTimestamp: '2026-01-01T00:00:00Z', "
                   "finalizers: [a/b]}",
                   "")),
};

static void test_metadata_is_checked_alike_for_all_kinds(void **state)
{
    rig_check(meta_cases, HK_LEN(meta_cases));
}

static void test_annotations_are_bounded_together(void **state)
{
    struct rig r = {0};
    const size_t big = 256 * 1024;
    char *value = hk_alloc(big + 1);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    memset(value, 'x', big);
    value[big] = '\0';
    hk_buf_addf(&text,
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, "
                "annotations: {key: %s}}}",
                value);
    rig_run(&r, NULL, NULL, text.data, NULL);
    assert_string_equal(rig_outcome(&r),
                        "metadata.annotations: Too long: may not be more than 262144 bytes");
    hk_free(value);
    rig_fini(&r);
}

/* ---- namespaces ---- */

#define LIVE_NS "{apiVersion: v1, kind: Namespace, metadata: {name: ns}}\n---\n"

static const struct rig_case namespace_cases[] = {
    CASE("one that is there", CM("{name: c, namespace: ns}", ""), "", .state = LIVE_NS),
    CASE("one that is not", CM("{name: c, namespace: other}", ""),
         "NotFound: namespaces \"other\" not found", .state = LIVE_NS),
    CASE("one that ends", CM("{name: c, namespace: ns}", ""),
         "Forbidden: unable to create new content in namespace ns because it is being terminated",
         .state = "{apiVersion: v1, kind: Namespace, metadata: {name: ns, deletionTimestamp: "
                  "'2026-01-01T00:00:00Z'}}"),
};

static void test_creations_need_a_living_namespace(void **state)
{
    rig_check(namespace_cases, HK_LEN(namespace_cases));
}

static void test_an_ending_namespace_is_named_as_the_cause(void **state)
{
    struct rig r = {0};

    rig_run(&r, namespace_cases[2].state, NULL, namespace_cases[2].text, NULL);
    assert_int_equal(r.q.errors.len, 1);
    assert_string_equal(r.q.errors.at[0].reason, "NamespaceTerminating");
    assert_string_equal(r.q.errors.at[0].field, "metadata.namespace");
    rig_fini(&r);
}

static void test_three_namespaces_cannot_be_deleted(void **state)
{
    static const struct {
        const char *name;
        int rc;
    } cases[] = {{"default", -HK_EDENIED}, {"kube-system", -HK_EDENIED}, {"mine", 0}};

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_arena mem = {0};
        struct hk_err err = {0};
        struct admission_request q = {
            .verb = ADMIT_DELETE,
            .kind = api_kind(API_NAMESPACE),
            .name = hk_str(cases[i].name),
            .mem = &mem,
        };
        assert_int_equal(admission_validate(&q, &err), cases[i].rc);
        assert_string_equal(err.text, cases[i].rc ? "this namespace may not be deleted" : "");
        hk_arena_fini(&mem);
    }
}

/* ---- priorities and accounts ---- */

#define CLASSES                                                                                    \
    LIVE_NS "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, "     \
            "value: 100, preemptionPolicy: Never}\n---\n"
#define SYSTEM_NS                                                                                  \
    "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}\n---\n"                      \
    "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: kube-system}}\n"
#define SPEC(rest) POD(", spec: {containers: [{name: c, image: 'i:1'}]" rest "}")
#define PC(name, rest)                                                                             \
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " name "}" rest "}"

static const struct rig_case priority_cases[] = {
    CASE("a known class", SPEC(", priorityClassName: high"), "", .state = CLASSES),
    CASE("a system class", SPEC(", priorityClassName: system-node-critical, priority: 2000001000"),
         "Forbidden: pods with system-node-critical priorityClass is not permitted in ns "
         "namespace, only in kube-system and volcano-system",
         .state = CLASSES),
    CASE("a system class for the system",
         "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: kube-system}, spec: "
         "{priorityClassName: system-node-critical, containers: [{name: c, image: i}]}}",
         "", .state = SYSTEM_NS),
    CASE("a system class for a group",
         "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, "
         "namespace: ns}, spec: {priorityClassName: system-cluster-critical}}",
         "Forbidden: podgroups with system-cluster-critical priorityClass is not permitted in ns "
         "namespace, only in kube-system and volcano-system",
         .state = CLASSES),
    CASE("a system class for a group that is there",
         "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, "
         "namespace: ns}, spec: {priorityClassName: system-cluster-critical, minMember: 2}}",
         "", .state = CLASSES,
         .old = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, "
                "namespace: ns}, spec: {priorityClassName: system-cluster-critical}}"),
    CASE("an unknown class", SPEC(", priorityClassName: low"),
         "Forbidden: no PriorityClass with name low was found", .state = CLASSES),
    CASE("another number than the class has", SPEC(", priorityClassName: high, priority: 7"),
         "Forbidden: the integer value of priority (7) must not be provided in pod spec; priority "
         "admission controller computed 100 from the given PriorityClass name",
         .state = CLASSES),
    CASE("an account that is not there", SPEC(", serviceAccountName: bob"),
         "Forbidden: error looking up service account ns/bob: serviceaccount \"bob\" not found",
         .state = CLASSES),
    CASE("a class above what users may have", PC("big", ", value: 1000000001"),
         "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
    CASE("a system name", PC("system-mine", ", value: 1"),
         "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
         "system use only. error: system-mine is not a known system priority class"),
    CASE("a second default", PC("b", ", value: 1, globalDefault: true"),
         "Forbidden: PriorityClass a is already marked as default. Only one default can exist",
         .state = PC("a", ", value: 2, globalDefault: true")),
    CASE("a system class as the default",
         PC("system-cluster-critical", ", value: 2000000000, globalDefault: true"),
         "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
         "system use only. error: globalDefault of system-cluster-critical PriorityClass must be "
         "false"),
    CASE("a system class that becomes the default",
         PC("system-node-critical",
            ", value: 2000001000, globalDefault: true, preemptionPolicy: PreemptLowerPriority"),
         "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
         "system use only. error: globalDefault of system-node-critical PriorityClass must be "
         "false",
         .old = PC("system-node-critical",
                   ", value: 2000001000, preemptionPolicy: PreemptLowerPriority")),
    CASE("a system class with another value", PC("system-node-critical", ", value: 1"),
         "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
         "system use only. error: value of system-node-critical PriorityClass must be 2000001000"),
    CASE("a system class that was the default once is nobody's", SPEC(", priority: 0"), "",
         .state =
             LIVE_NS PC("system-cluster-critical", ", value: 2000000000, globalDefault: true")),
    CASE("a value that changes", PC("a", ", value: 3"),
         "value: Forbidden: may not be changed in an update.",
         .old = PC("a", ", value: 2, preemptionPolicy: PreemptLowerPriority")),
};

static void test_priorities_come_from_classes(void **state)
{
    rig_check(priority_cases, HK_LEN(priority_cases));
}

static void test_the_default_class_shows_in_the_pod(void **state)
{
    struct rig r = {0};
    const struct json *spec;

    rig_run(&r,
            LIVE_NS PC("a", ", value: 9, globalDefault: true") "\n---\n" PC(
                "b", ", value: 5, globalDefault: true, preemptionPolicy: Never"),
            NULL, SPEC(""), NULL);
    spec = json_get(r.q.obj, "spec");
    assert_string_equal(rig_outcome(&r), "");
    assert_int_equal(json_int(json_get(spec, "priority"), -1), 5);
    assert_string_equal(json_get(spec, "priorityClassName")->s, "b");
    assert_string_equal(json_get(spec, "preemptionPolicy")->s, "Never");
    rig_fini(&r);
}

#define ACCOUNT(name, rest)                                                                        \
    "{apiVersion: v1, kind: ServiceAccount, metadata: {name: " name ", namespace: ns}" rest        \
    "}\n---\n"
#define NO_MOUNT ", automountServiceAccountToken: false"
#define MOUNT ", automountServiceAccountToken: true"

static void test_accounts_with_a_name_of_their_own_bring_a_token(void **state)
{
    static const struct {
        const char *account, *pod;
        uint32_t volumes;
    } cases[] = {
        {ACCOUNT("default", ""), SPEC(""), 0},
        {ACCOUNT("default", ""), SPEC(MOUNT), 1},
        {ACCOUNT("default", MOUNT), SPEC(""), 1},
        {ACCOUNT("bot", ""), SPEC(", serviceAccountName: bot"), 1},
        {ACCOUNT("bot", NO_MOUNT), SPEC(", serviceAccountName: bot"), 0},
        {ACCOUNT("bot", NO_MOUNT), SPEC(", serviceAccountName: bot" MOUNT), 1},
        {ACCOUNT("bot", ""), SPEC(", serviceAccountName: bot" NO_MOUNT), 0},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf all = {0};
        struct rig r = {0};
        const struct json *spec, *mounts;

        hk_buf_addf(&all, "%s%s", LIVE_NS, cases[i].account);
        rig_run(&r, all.data, NULL, cases[i].pod, NULL);
        assert_string_equal(rig_outcome(&r), "");
        spec = json_get(r.q.obj, "spec");
        mounts = json_get(json_item(json_get(spec, "containers"), 0), "volumeMounts");
        assert_int_equal(json_item(json_get(spec, "volumes"), 0) != NULL, cases[i].volumes);
        assert_int_equal(json_item(mounts, 0) != NULL, cases[i].volumes);
        rig_fini(&r);
    }
}

/* ---- quota ---- */

#define QUOTA(name, spec)                                                                          \
    "{apiVersion: v1, kind: ResourceQuota, metadata: {name: " name ", namespace: ns}, spec: " spec \
    "}\n---\n"
#define USED(name, cpu, more)                                                                      \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: ns}, spec: {containers: "   \
    "[{name: c, resources: {requests: {cpu: " cpu "}}}]}" more "}\n---\n"
#define ASK(cpu)                                                                                   \
    POD(", spec: {containers: [{name: c, image: 'i:1', resources: {requests: {cpu: " cpu "}}}]}")

static const struct rig_case quota_cases[] = {
    CASE("room left", ASK("1"), "",
         .state = LIVE_NS QUOTA("q", "{hard: {cpu: 2}}") USED("a", "1", "")),
    CASE("no room left", ASK("2"),
         "Forbidden: exceeded quota: q, requested: cpu=2, used: cpu=1, limited: cpu=2",
         .state = LIVE_NS QUOTA("q", "{hard: {cpu: 2}}") USED("a", "1", "")),
    CASE("several resources at once", ASK("2"),
         "Forbidden: exceeded quota: q, requested: pods=1,requests.cpu=2, used: "
         "pods=1,requests.cpu=1, limited: pods=1,requests.cpu=2",
         .state = LIVE_NS QUOTA("q", "{hard: {requests.cpu: 2, pods: 1}}") USED("a", "1", "")),
    CASE("finished pods count for nothing", ASK("2"), "",
         .state =
             LIVE_NS QUOTA("q", "{hard: {cpu: 2}}") USED("a", "1", ", status: {phase: Succeeded}")),
    CASE("pods whose grace is over count for nothing", ASK("2"), "",
         .state =
             LIVE_NS QUOTA("q", "{hard: {cpu: 2}}") "{apiVersion: v1, kind: Pod, metadata: {name: "
                                                    "a, namespace: ns, deletionTimestamp: "
                                                    "'2020-01-01T00:00:00Z'}, spec: {containers: "
                                                    "[{name: c, resources: {requests: {cpu: "
                                                    "1}}}]}}"),
    CASE("a pod that does not say", POD(", spec: {containers: [{name: c, image: 'i:1'}]}"),
         "Forbidden: failed quota: q: must specify cpu for: c; memory for: c",
         .state = LIVE_NS QUOTA("q", "{hard: {cpu: 2, memory: 1Gi}}")),
    CASE("another scope", ASK("2"), "",
         .state = LIVE_NS QUOTA("q", "{hard: {pods: 0}, scopes: [BestEffort]}")),
    CASE("counted objects", CM("{name: c, namespace: ns}", ""),
         "Forbidden: exceeded quota: q, requested: configmaps=1,count/configmaps=1, used: "
         "configmaps=0,count/configmaps=0, limited: configmaps=0,count/configmaps=0",
         .state = LIVE_NS QUOTA("q", "{hard: {configmaps: 0, count/configmaps: 0}}")),
    CASE("counted objects of a group",
         "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, "
         "namespace: ns}}",
         "Forbidden: exceeded quota: q, requested: count/podgroups.scheduling.volcano.sh=1, used: "
         "count/podgroups.scheduling.volcano.sh=0, limited: "
         "count/podgroups.scheduling.volcano.sh=0",
         .state = LIVE_NS QUOTA("q", "{hard: {count/podgroups.scheduling.volcano.sh: 0}}")),
    CASE("a quota without limits", ASK("2"), "", .state = LIVE_NS QUOTA("q", "{}")),
    CASE("a quota without a spec", CM("{name: c, namespace: ns}", ""), "",
         .state = LIVE_NS
         "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: ns}}\n---\n"),
    CASE("a quota whose limits are null", CM("{name: c, namespace: ns}", ""), "",
         .state = LIVE_NS QUOTA("q", "{hard: null}")),
    CASE("a quota whose limits are a list", CM("{name: c, namespace: ns}", ""), "",
         .state = LIVE_NS QUOTA("q", "{hard: [pods]}")),
    CASE("a quota on nothing known", QUOTA("q", "{hard: {gold: 1}}"),
         "spec.hard[gold]: Invalid value: \"gold\": must be a standard resource for quota"),
};

static void test_quotas_are_kept(void **state)
{
    rig_check(quota_cases, HK_LEN(quota_cases));
}

static void test_usage_counts_the_objects_that_are_there(void **state)
{
    struct rig r = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    rig_run(&r,
            LIVE_NS USED("a", "1500m", "") USED("b", "1", ", status: {phase: Failed}")
                CM("{name: c, namespace: ns}", "") "\n---\n" CM("{name: c, namespace: far}", ""),
            NULL, CM("{name: d, namespace: ns}", ""), NULL);
    const struct json *hard =
        rig_parse(&r,
                  "{pods: 9, requests.cpu: 4, configmaps: 9, requests.memory: 1Gi, "
                  "count/pods: 9}",
                  0);
    const struct json used =
        admission_quota_usage(&r.lookup, HK_STR("ns"), hard, NULL, r.q.now_ns, &r.mem);
    json_write(&used, &got);
    assert_string_equal(got.data, "{\"pods\":\"1\",\"requests.cpu\":\"1500m\",\"configmaps\":\"1\","
                                  "\"requests.memory\":\"0\",\"count/pods\":\"2\"}");
    rig_fini(&r);
}

/* ---- limit ranges ---- */

#define RANGE(limits)                                                                              \
    LIVE_NS "{apiVersion: v1, kind: LimitRange, metadata: {name: r, namespace: ns}, spec: "        \
            "{limits: [" limits "]}}"

static const struct rig_case range_cases[] = {
    CASE("too much", ASK("2"), "Forbidden: maximum cpu usage per Container is 1, but limit is 2",
         .state = RANGE("{type: Container, max: {cpu: 1}, default: {cpu: 2}}")),
    CASE("too little", ASK("50m"),
         "Forbidden: minimum cpu usage per Container is 100m, but request is 50m",
         .state = RANGE("{type: Container, min: {cpu: 100m}}")),
    CASE("nothing said", ASK("1"),
         "Forbidden: [minimum memory usage per Pod is 1Gi.  No request is specified, maximum cpu "
         "usage per Pod is 2.  No limit is specified]",
         .state = RANGE("{type: Pod, min: {memory: 1Gi}, max: {cpu: 2}}")),
    CASE("too wide a range", ASK("1"),
         "Forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is "
         "4.000000",
         .state = RANGE("{type: Container, default: {cpu: 4}, maxLimitRequestRatio: {cpu: 2}}")),
    CASE("a range upside down",
         "{apiVersion: v1, kind: LimitRange, metadata: {name: r, namespace: ns}, spec: {limits: "
         "[{type: Pod, min: {cpu: 2}, max: {cpu: 1}}]}}",
         "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value "
         "1"),
};

static void test_limit_ranges_bound_pods(void **state)
{
    rig_check(range_cases, HK_LEN(range_cases));
}

static void test_limit_ranges_fill_what_pods_leave_open(void **state)
{
    struct rig r = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    rig_run(&r,
            RANGE("{type: Container, default: {cpu: '2', memory: 1Gi}, defaultRequest: {memory: "
                  "512Mi}}"),
            NULL, ASK("1"), NULL);
    assert_string_equal(rig_outcome(&r), "");
    json_write(json_get(json_item(json_at(r.q.obj, "spec.containers"), 0), "resources"), &got);
    assert_string_equal(got.data, "{\"requests\":{\"cpu\":\"1\",\"memory\":\"512Mi\"},"
                                  "\"limits\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}}");
    assert_string_equal(
        json_get(json_at(r.q.obj, "metadata.annotations"), "kubernetes.io/limit-ranger")->s,
        "LimitRanger plugin set: memory request for container c; cpu, memory limit for container "
        "c");
    rig_fini(&r);
}

/* ---- other kinds ---- */

static const struct rig_case config_cases[] = {
    CASE("a bad key", CM("{name: c, namespace: ns}", ", data: {'a b': x}"),
         "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric "
         "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used "
         "for validation is '[-._a-zA-Z0-9]+')"),
    CASE("a key in both", CM("{name: c, namespace: ns}", ", data: {a: x}, binaryData: {a: eA==}"),
         "data[a]: Invalid value: \"a\": duplicate of key present in binaryData"),
    CASE("an immutable one", CM("{name: c, namespace: ns}", ", data: {a: z}"),
         "immutable: Forbidden: field is immutable when `immutable` is set\n"
         "data: Forbidden: field is immutable when `immutable` is set",
         .old = CM("{name: c, namespace: ns}", ", data: {a: x}, immutable: true")),
    CASE("a secret without its keys",
         "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: "
         "kubernetes.io/tls, data: {tls.crt: eA==}}",
         "data[tls.key]: Required value"),
    CASE("a secret of another type",
         "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: b}",
         "type: Invalid value: \"b\": field is immutable",
         .old = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: a}"),
};

static void test_config_maps_and_secrets(void **state)
{
    rig_check(config_cases, HK_LEN(config_cases));
}

#define DEPLOY(spec)                                                                               \
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: " spec "}"
#define STATEFUL(spec)                                                                             \
    "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: ns}, spec: " spec "}"
#define TEMPLATE                                                                                   \
    "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: 'i:1'}]}}"
#define JOB(spec)                                                                                  \
    "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns, uid: u-1}, spec: " spec  \
    "}"
#define CRD(name, spec)                                                                            \
    "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " name \
    "}, spec: " spec "}"
#define NODE(spec) "{apiVersion: v1, kind: Node, metadata: {name: node-1}, spec: " spec "}"
#define PDB(spec)                                                                                  \
    "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns}, "      \
    "spec: " spec "}"
#define LEASE(spec)                                                                                \
    "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: ns}, "       \
    "spec: " spec "}"
#define SERVICE(spec)                                                                              \
    "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: " spec "}"

#define CRON(schedule, rest)                                                                       \
    "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c, namespace: ns}, spec: "             \
    "{schedule: " schedule rest                                                                    \
    ", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: "                  \
    "[{name: c, image: i}]}}}}}}"

static const struct rig_case kind_cases[] = {
    CASE("a schedule", CRON("'*/15 0-6,22 ? JAN-mar mon'", ""), ""),
    CASE("a schedule in a word", CRON("'@hourly'", ""), ""),
    CASE("a schedule of four fields", CRON("'* * * *'", ""),
         "spec.schedule: Invalid value: \"* * * *\": expected exactly 5 fields, found 4: [* * * "
         "*]"),
    CASE("a minute too many", CRON("'60 * * * *'", ""),
         "spec.schedule: Invalid value: \"60 * * * *\": minute '60', want 0 to 59"),
    CASE("a word that cron does not know", CRON("'@sometimes'", ""),
         "spec.schedule: Invalid value: \"@sometimes\": '@sometimes' is not a word that schedules "
         "may use"),
    CASE("a zone in the schedule", CRON("'CRON_TZ=UTC 0 * * * *'", ""),
         "spec.schedule: Invalid value: \"CRON_TZ=UTC 0 * * * *\": cannot use TZ or CRON_TZ in "
         "schedule, use timeZone field instead"),
    CASE("a zone", CRON("'0 * * * *'", ", timeZone: Europe/Paris"), ""),
    CASE("a zone nobody lives in", CRON("'0 * * * *'", ", timeZone: Mars/Base"),
         "spec.timeZone: Invalid value: \"Mars/Base\": unknown time zone Mars/Base"),
    CASE("the zone of the machine", CRON("'0 * * * *'", ", timeZone: Local"),
         "spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone as "
         "defined "
         "in https://www.iana.org/time-zones"),
    CASE("a deployment without selector", DEPLOY("{" TEMPLATE "}"),
         "spec.selector: Required value"),
    CASE("a selector that finds nothing", DEPLOY("{selector: {matchLabels: {a: c}}, " TEMPLATE "}"),
         "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match "
         "template `labels`"),
    CASE("a deployment that runs once",
         DEPLOY("{replicas: -1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: "
                "b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}"),
         "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
         "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: "
         "\"Always\""),
    CASE("a selector that changes", DEPLOY("{selector: {matchLabels: {a: b}}, " TEMPLATE "}"),
         "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: field is immutable",
         .old = DEPLOY("{selector: {matchLabels: {a: x}}, " TEMPLATE "}")),
    CASE("a job that restarts always", JOB("{" TEMPLATE "}"),
         "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", "
         "\"Never\""),
    CASE("a definition under a wrong name",
         CRD("xs.b.io",
             "{group: a.io, scope: Wide, names: {plural: xs, kind: X}, versions: [{name: v1, "
             "served: true, storage: false}]}"),
         "metadata.name: Invalid value: \"xs.b.io\": must be spec.names.plural+\".\"+spec.group\n"
         "spec.scope: Unsupported value: \"Wide\": supported values: \"Cluster\", \"Namespaced\"\n"
         "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required\n"
         "spec.versions: Invalid value: [{\"name\":\"v1\",\"served\":true,\"storage\":false}]: "
         "must have exactly one version marked as storage version"),
    CASE("a schema with a hole",
         CRD("xs.a.io",
             "{group: a.io, scope: Cluster, names: {plural: xs, kind: X}, versions: [{name: v1, "
             "served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: "
             "{spec: {description: d}}}}}]}"),
         "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not "
         "be empty for specified object fields"),
    CASE("taints",
         NODE("{taints: [{key: a, effect: Go}, {key: b, effect: NoExecute}, {key: b, effect: "
              "NoExecute}]}"),
         "spec.taints[0].effect: Unsupported value: \"Go\": supported values: \"NoSchedule\", "
         "\"PreferNoSchedule\", \"NoExecute\"\n"
         "spec.taints[2].effect: Duplicate value: \"b:NoExecute\""),
    CASE("a budget with both bounds", PDB("{minAvailable: 1, maxUnavailable: 150%}"),
         "spec: Invalid value: {\"minAvailable\":1,\"maxUnavailable\":\"150%\"}: minAvailable and "
         "maxUnavailable cannot be both set\n"
         "spec.maxUnavailable: Invalid value: \"150%\": must not be greater than 100%"),
    CASE("a StatefulSet that counts from below zero",
         STATEFUL("{selector: {matchLabels: {a: b}}, ordinals: {start: -1}, updateStrategy: "
                  "{rollingUpdate: {partition: -1}}, " TEMPLATE "}"),
         "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or "
         "equal to 0\n"
         "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"),
    CASE("a lease of no time", LEASE("{leaseDurationSeconds: 0, leaseTransitions: -1}"),
         "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0\n"
         "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"),
    CASE("a service without ports", SERVICE("{type: ClusterIP}"), "spec.ports: Required value"),
    CASE("a headless one", SERVICE("{clusterIP: None}"), ""),
    CASE("ports without names", SERVICE("{ports: [{port: 1}, {port: 70000, name: x}]}"),
         "spec.ports[0].name: Required value\n"
         "spec.ports[1].port: Invalid value: 70000: must be between 1 and 65535, inclusive"),
    CASE("an event about elsewhere",
         "{apiVersion: v1, kind: Event, metadata: {name: e, namespace: ns}, involvedObject: "
         "{namespace: far}}",
         "involvedObject.namespace: Invalid value: \"far\": does not match event.namespace"),
    CASE("a new-style event that says little",
         "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e, namespace: ns}, "
         "regarding: {namespace: ns}, type: Odd, eventTime: '2026-01-01T00:00:00Z', action: a, "
         "reason: r, reportingController: c}",
         "reportingInstance: Required value\n"
         "type: Unsupported value: \"Odd\": supported values: \"Normal\", \"Warning\""),
    CASE("a claim for nothing",
         "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: ns}, spec: "
         "{}}",
         "spec.accessModes: Required value: at least 1 access mode is required\n"
         "spec.resources[storage]: Required value"),
};

static void test_faults_of_the_other_kinds(void **state)
{
    rig_check(kind_cases, HK_LEN(kind_cases));
}

#define TEMPLATE_SHOWN(policy)                                                                     \
    "spec: {containers: [{name: c, image: 'i:1', imagePullPolicy: IfNotPresent, resources: {}, "   \
    "terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}], dnsPolicy: "  \
    "ClusterFirst, restartPolicy: " policy ", schedulerName: default-scheduler, "                  \
    "securityContext: {}, terminationGracePeriodSeconds: 30}"

static const struct rig_case shown_cases[] = {
    CASE("a namespace", "{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
         "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: "
         "{kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}, status: {phase: "
         "Active}}"),
    CASE("a deployment", DEPLOY("{selector: {matchLabels: {a: b}}, " TEMPLATE "}"),
         DEPLOY("{replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: "
                "{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}, "
                "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: "
                "b}}, " TEMPLATE_SHOWN("Always") "}}")),
    CASE("a job",
         JOB("{template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'i:1'}]}}}"),
         "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns, uid: u-1, labels: "
         "{batch.kubernetes.io/controller-uid: u-1, controller-uid: u-1, "
         "batch.kubernetes.io/job-name: j, job-name: j}}, spec: {parallelism: 1, completions: 1, "
         "backoffLimit: 6, completionMode: "
         "NonIndexed, suspend: false, manualSelector: false, podReplacementPolicy: "
         "TerminatingOrFailed, selector: {matchLabels: {batch.kubernetes.io/controller-uid: u-1}}, "
         "template: {metadata: {labels: "
         "{batch.kubernetes.io/controller-uid: u-1, controller-uid: u-1, "
         "batch.kubernetes.io/job-name: j, job-name: j}}, " TEMPLATE_SHOWN("Never") "}}}"),
    CASE("a network policy",
         "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: p, namespace: "
         "ns}, spec: {podSelector: {}, egress: [{ports: [{port: 80}]}]}}",
         "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: p, namespace: "
         "ns}, spec: {podSelector: {}, egress: [{ports: [{port: 80, protocol: TCP}]}], "
         "policyTypes: [Ingress, Egress]}}"),
    CASE("a slice of endpoints",
         "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e, namespace: "
         "ns}, addressType: IPv4, endpoints: [{addresses: [10.1.1.1]}], ports: [{port: 80}]}",
         "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e, namespace: "
         "ns}, addressType: IPv4, endpoints: [{addresses: [10.1.1.1]}], ports: [{port: 80, name: "
         "'', protocol: TCP}]}"),
    CASE("a secret",
         "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {a: eA==}, "
         "stringData: {b: hello, c: ''}}",
         "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: Opaque, data: "
         "{a: eA==, b: aGVsbG8=, c: ''}}"),
    CASE("a service", SERVICE("{ports: [{port: 80}]}"),
         "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: {type: "
         "ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ipFamilies: [IPv4], "
         "ipFamilyPolicy: SingleStack, ports: [{port: 80, protocol: TCP, targetPort: 80}]}, "
         "status: {loadBalancer: {}}}"),
    CASE("a node",
         "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {capacity: {cpu: 4}}}",
         "{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {taints: [{key: "
         "node.kubernetes.io/not-ready, effect: NoSchedule}]}, status: {capacity: {cpu: '4'}, "
         "allocatable: {cpu: '4'}}}"),
    CASE("a node that is ready",
         "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {conditions: [{type: Ready, "
         "status: 'True'}]}}",
         "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {conditions: [{type: Ready, "
         "status: 'True'}]}}"),
    CASE("a lease with a time in another zone", LEASE("{renewTime: '2026-01-02T05:04:05.5+02:00'}"),
         LEASE("{renewTime: '2026-01-02T03:04:05.500000Z'}")),
    CASE("a definition",
         CRD("xs.a.io", "{group: a.io, scope: Cluster, names: {plural: xs, kind: BigX}, versions: "
                        "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: "
                        "object}}}]}"),
         CRD("xs.a.io", "{group: a.io, scope: Cluster, conversion: {strategy: None}, names: "
                        "{plural: xs, kind: BigX, singular: bigx, listKind: BigXList}, versions: "
                        "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: "
                        "object}}}]}")),
};

static void test_defaults_of_the_other_kinds(void **state)
{
    rig_check_objects(shown_cases, HK_LEN(shown_cases));
}

static void test_the_answer_lists_all_faults(void **state)
{
    struct rig r = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    rig_run(&r, NULL, NULL, LEASE("{leaseDurationSeconds: 0, leaseTransitions: -1}"), NULL);
    admission_write_invalid(&r.q, &got);
    assert_string_equal(got.data,
                        "Lease.coordination.k8s.io \"l\" is invalid: [spec.leaseDurationSeconds: "
                        "Invalid value: 0: must be greater than 0, spec.leaseTransitions: Invalid "
                        "value: -1: must be greater than or equal to 0]");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_types_are_refused_in_gos_words),
        cmocka_unit_test(test_unknown_fields_fall_out_and_are_listed),
        cmocka_unit_test(test_metadata_is_checked_alike_for_all_kinds),
        cmocka_unit_test(test_annotations_are_bounded_together),
        cmocka_unit_test(test_creations_need_a_living_namespace),
        cmocka_unit_test(test_an_ending_namespace_is_named_as_the_cause),
        cmocka_unit_test(test_three_namespaces_cannot_be_deleted),
        cmocka_unit_test(test_priorities_come_from_classes),
        cmocka_unit_test(test_accounts_with_a_name_of_their_own_bring_a_token),
        cmocka_unit_test(test_the_default_class_shows_in_the_pod),
        cmocka_unit_test(test_quotas_are_kept),
        cmocka_unit_test(test_usage_counts_the_objects_that_are_there),
        cmocka_unit_test(test_limit_ranges_bound_pods),
        cmocka_unit_test(test_limit_ranges_fill_what_pods_leave_open),
        cmocka_unit_test(test_config_maps_and_secrets),
        cmocka_unit_test(test_faults_of_the_other_kinds),
        cmocka_unit_test(test_defaults_of_the_other_kinds),
        cmocka_unit_test(test_the_answer_lists_all_faults),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
