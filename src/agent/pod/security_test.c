// SPDX-License-Identifier: Apache-2.0
// How a securityContext and a dnsConfig reach the runtime.
#include "agent/rig_test.h"

#include <linux/capability.h>
#include <unistd.h>

#define CONTEXT(pod, own)                                                                          \
    "  securityContext: {" pod "}\n"                                                               \
    "  containers: [{name: c, image: i, command: [work], securityContext: {" own "}}]\n"

static uint64_t bit(unsigned cap)
{
    return (uint64_t)1 << cap;
}

/* The capabilities that unprivileged containers do not have. */
static uint64_t way_out_bits(void)
{
    return bit(CAP_BPF) | bit(CAP_CHECKPOINT_RESTORE) | bit(CAP_DAC_READ_SEARCH) | bit(CAP_MKNOD) |
           bit(CAP_PERFMON) | bit(CAP_SYS_ADMIN) | bit(CAP_SYS_BOOT) | bit(CAP_SYS_MODULE) |
           bit(CAP_SYS_PTRACE) | bit(CAP_SYS_RAWIO);
}

static void test_the_containers_word_counts_before_the_pods(void **state)
{
    struct rig r;
    const struct fake_container *c;

    rig_init(&r);
    rig_pod(&r, "a",
            CONTEXT("runAsUser: 1, runAsGroup: 2, runAsNonRoot: true",
                    "runAsUser: 3, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false"));
    c = rig_container(&r, "c");
    assert_int_equal(c->uid, 3);
    assert_int_equal(c->gid, 2);
    assert_true(c->root_read_only);
    assert_true(c->rights.no_new);
    assert_int_equal(c->rights.dropped, way_out_bits());
    rig_pod(&r, "b", "  containers: [{name: plain, image: i, command: [work]}]\n");
    c = rig_container(&r, "plain");
    assert_int_equal(c->uid, -1);
    assert_false(c->root_read_only || c->rights.no_new);
    rig_fini(&r);
}

static void test_capabilities_are_dropped_and_added_back(void **state)
{
    struct rig r;
    uint64_t dropped;

    rig_init(&r);
    rig_pod(&r, "a", CONTEXT("", "capabilities: {drop: [NET_RAW, CAP_SYS_ADMIN]}"));
    assert_int_equal(rig_container(&r, "c")->rights.dropped, bit(CAP_NET_RAW) | way_out_bits());
    rig_pod(&r, "p", CONTEXT("", "privileged: true, capabilities: {drop: [NET_RAW]}"));
    assert_int_equal(rig_container(&r, "c")->rights.dropped, bit(CAP_NET_RAW));
    rig_pod(&r, "q", CONTEXT("", "capabilities: {add: [SYS_PTRACE]}"));
    assert_int_equal(rig_container(&r, "c")->rights.dropped, way_out_bits() & ~bit(CAP_SYS_PTRACE));
    rig_pod(&r, "b", CONTEXT("", "capabilities: {drop: [ALL], add: [CHOWN, CHECKPOINT_RESTORE]}"));
    dropped = rig_container(&r, "c")->rights.dropped;
    assert_false(dropped & (bit(CAP_CHOWN) | bit(CAP_CHECKPOINT_RESTORE)));
    assert_true(dropped & bit(CAP_BPF));
    assert_int_equal(__builtin_popcountll(dropped), CAP_LAST_CAP + 1 - 2);
    rig_fini(&r);
}

static void test_what_contradicts_itself_is_not_run(void **state)
{
    struct rig r;
    const bool is_root = geteuid() == 0;

    rig_init(&r);
    rig_pod(&r, "a", CONTEXT("runAsNonRoot: true", "runAsUser: 0"));
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.reason", "CreateContainerConfigError");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.message",
               "container's runAsUser breaks non-root policy (pod: \"a_d(u-a)\", container: c)");
    rig_pod(&r, "b", CONTEXT("", "runAsNonRoot: true"));
    assert_pod(&r, "b", "phase", is_root ? "Pending" : "Running");
    rig_pod(&r, "e", CONTEXT("", "capabilities: {drop: [FLY]}"));
    assert_pod(&r, "e", "containerStatuses.0.state.waiting.message", "unknown capability \"FLY\"");
    rig_fini(&r);
}

static void test_a_resolver_of_its_own_is_a_file_of_the_pod(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  dnsPolicy: None\n"
            "  dnsConfig:\n"
            "    nameservers: [192.0.2.1, 192.0.2.2]\n"
            "    searches: [a.example]\n"
            "    options: [{name: ndots, value: '2'}, {name: rotate}]\n"
            "  containers: [{name: c, image: i, command: [work]}]\n");
    assert_string_equal(rig_file(&r, "pods/u-a/.resolv.conf"), "search a.example\n"
                                                               "nameserver 192.0.2.1\n"
                                                               "nameserver 192.0.2.2\n"
                                                               "options ndots:2 rotate\n");
    assert_non_null(
        strstr(rig_container(&r, "c")->mounts.data,
               hk_arena_printf(&r.text, "%s/pods/u-a/.resolv.conf -> /etc/resolv.conf\n", r.dir)));
    rig_pod(&r, "b",
            "  dnsPolicy: ClusterFirst\n"
            "  containers: [{name: plain, image: i, command: [work]}]\n");
    assert_null(rig_file(&r, "pods/u-b/.resolv.conf"));
    rig_fini(&r);
}

/* The machine's own search domains, if it has any, come behind those of the cluster. */
static void test_the_clusters_server_comes_first(void **state)
{
    struct rig r;
    const char *file;

    rig_init(&r);
    agent_free(r.agent);
    r.dns = "127.128.0.10";
    rig_agent(&r);
    rig_settle(&r);
    rig_pod(&r, "a",
            "  dnsConfig: {nameservers: [192.0.2.1, 127.128.0.10], options: [{name: ndots, value: "
            "'2'}, {name: rotate}]}\n"
            "  containers: [{name: a, image: i, command: [work]}]\n");
    file = rig_file(&r, "pods/u-a/.resolv.conf");
    assert_true(
        hk_str_starts(hk_str(file), "search d.svc.example.test svc.example.test example.test"));
    assert_non_null(strstr(file, "\nnameserver 127.128.0.10\nnameserver 192.0.2.1\n"
                                 "options ndots:2 rotate\n"));
    rig_pod(&r, "b",
            "  hostNetwork: true\n"
            "  dnsPolicy: ClusterFirst\n"
            "  containers: [{name: b, image: i, command: [work]}]\n");
    assert_null(rig_file(&r, "pods/u-b/.resolv.conf"));
    rig_pod(&r, "c",
            "  hostNetwork: true\n"
            "  dnsPolicy: ClusterFirstWithHostNet\n"
            "  containers: [{name: c, image: i, command: [work]}]\n");
    assert_non_null(strstr(rig_file(&r, "pods/u-c/.resolv.conf"),
                           "nameserver 127.128.0.10\noptions ndots:5\n"));
    rig_fini(&r);
}

static void test_a_whole_name_must_fit(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  hostname: a-name-of-more-than-forty-three-characters-is-too-long\n"
            "  subdomain: s\n"
            "  setHostnameAsFQDN: true\n"
            "  containers: [{name: a, image: i, command: [work]}]\n");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.reason", "CreateContainerConfigError");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_containers_word_counts_before_the_pods),
        cmocka_unit_test(test_capabilities_are_dropped_and_added_back),
        cmocka_unit_test(test_what_contradicts_itself_is_not_run),
        cmocka_unit_test(test_a_resolver_of_its_own_is_a_file_of_the_pod),
        cmocka_unit_test(test_the_clusters_server_comes_first),
        cmocka_unit_test(test_a_whole_name_must_fit),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
