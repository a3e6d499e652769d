// SPDX-License-Identifier: Apache-2.0
// What containers see: variables, files and where they appear.
#include "agent/rig_test.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

static const char config[] = "apiVersion: v1\n"
                             "kind: ConfigMap\n"
                             "metadata: {namespace: d, name: m}\n"
                             "data: {K: v, other.txt: 'two words'}\n"
                             "binaryData: {bin: aGk=}\n";
static const char secret[] = "apiVersion: v1\n"
                             "kind: Secret\n"
                             "metadata: {namespace: d, name: s}\n"
                             "data: {key: c2VjcmV0, pub: cHVi}\n";

static unsigned mode_of(struct rig *r, const char *path)
{
    char full[256];
    struct stat st;

    snprintf(full, sizeof(full), "%s/%s", r->dir, path);
    assert_int_equal(stat(full, &st), 0);
    return st.st_mode & 07777;
}

static void assert_env(struct rig *r, const char *container, const char *line)
{
    const struct fake_container *c = rig_container(r, container);
    const char *text = hk_arena_printf(&r->text, "%s\n", line);

    if (!c || !strstr(c->env.data, text)) {
        fail_msg("want %s in %s", line, c ? c->env.data : "a container that was never started");
    }
}

static void test_variables_come_from_everywhere(void **state)
{
    static const char *const lines[] = {
        "GREETING=hello v",
        "FROM_MAP=v",
        "FROM_SECRET=secret",
        "P_K=v",
        "P_bin=hi",
        "NAME=a",
        "UID=u-a",
        "NODE=n1",
        "LABEL=blue",
        "HOST=127.0.0.1",
        "CPU=2",
        "MEM=64",
        "ALL=4",
        "LATER=$(NOT_YET)",
        "HOSTNAME=a",
    };
    struct rig r;

    rig_init(&r);
    rig_put(&r, config);
    rig_put(&r, secret);
    rig_put(&r,
            "apiVersion: v1\n"
            "kind: Pod\n"
            "metadata: {namespace: d, name: a, uid: u-a, labels: {color/of: blue}}\n"
            "spec:\n"
            "  nodeName: n1\n"
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [run, $(FROM_MAP), $$(X)]\n"
            "    args: [$(NONE)]\n"
            "    resources: {limits: {cpu: 1500m, memory: 64Mi}}\n"
            "    envFrom:\n"
            "    - {prefix: P_, configMapRef: {name: m}}\n"
            "    - {secretRef: {name: none, optional: true}}\n"
            "    env:\n"
            "    - {name: FROM_MAP, valueFrom: {configMapKeyRef: {name: m, key: K}}}\n"
            "    - {name: FROM_SECRET, valueFrom: {secretKeyRef: {name: s, key: key}}}\n"
            "    - {name: NO, valueFrom: {secretKeyRef: {name: s, key: x, optional: true}}}\n"
            "    - {name: GREETING, value: hello $(FROM_MAP)}\n"
            "    - {name: LATER, value: $(NOT_YET)}\n"
            "    - {name: NOT_YET, value: x}\n"
            "    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
            "    - {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}\n"
            "    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}\n"
            "    - {name: HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}\n"
            "    - name: LABEL\n"
            "      valueFrom: {fieldRef: {fieldPath: 'metadata.labels[''color/of'']'}}\n"
            "    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}\n"
            "    - name: MEM\n"
            "      valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}\n"
            "    - name: ALL\n"
            "      valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: other}}\n"
            "  - {name: other, image: i, command: [x]}\n");
    for (size_t i = 0; i < HK_LEN(lines); i++) {
        assert_env(&r, "c", lines[i]);
    }
    assert_null(strstr(rig_container(&r, "c")->env.data, "NO="));
    assert_string_equal(rig_container(&r, "c")->argv.data, "run v $(X) $(NONE)");
    rig_fini(&r);
}

static void test_home_is_that_of_the_user(void **state)
{
    static const struct {
        const char *pod, *container;
        uid_t uid; /* -1: whose home we do not know */
    } cases[] = {
        {"{runAsUser: 1}", "{}", 1},
        {"{runAsUser: 1}", "{runAsUser: 2}", 2},
        {"{runAsUser: 4000000000}", "{}", (uid_t)-1},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct passwd *user = getpwuid(cases[i].uid);
        struct rig r;

        rig_init(&r);
        rig_pod(&r, "a",
                hk_arena_printf(&r.text,
                                "  securityContext: %s\n"
                                "  containers: [{name: c, image: i, command: [x], "
                                "securityContext: %s}]\n",
                                cases[i].pod, cases[i].container));
        assert_env(&r, "c", hk_arena_printf(&r.text, "HOME=%s", user ? user->pw_dir : "/"));
        rig_fini(&r);
    }
}

static void test_a_config_map_that_comes_later_is_waited_for(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: K}}}]\n");
    assert_pod(&r, "a", "phase", "Pending");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.reason", "CreateContainerConfigError");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.message", "configmap \"m\" not found");
    rig_pass(&r, 100);
    assert_null(rig_container(&r, "c"));
    rig_put(&r, config);
    rig_pass(&r, 10);
    assert_pod(&r, "a", "phase", "Running");
    assert_env(&r, "c", "A=v");
    rig_fini(&r);
}

static void test_files_of_volumes_have_their_modes(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_put(&r, config);
    rig_put(&r, secret);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    volumeMounts:\n"
            "    - {name: empty, mountPath: /scratch, subPath: x/y}\n"
            "    - {name: map, mountPath: /etc/map, readOnly: true}\n"
            "    - {name: host, mountPath: /host}\n"
            "  volumes:\n"
            "  - {name: empty, emptyDir: {}}\n"
            "  - {name: map, configMap: {name: m}}\n"
            "  - name: key\n"
            "    secret:\n"
            "      secretName: s\n"
            "      defaultMode: 0400\n"
            "      items: [{key: key, path: dir/id}, {key: pub, path: id.pub, mode: 0444}]\n"
            "  - name: all\n"
            "    projected:\n"
            "      defaultMode: 0440\n"
            "      sources:\n"
            "      - configMap: {name: m, items: [{key: K, path: k}]}\n"
            "      - secret: {name: s, items: [{key: pub, path: pub}]}\n"
            "      - downwardAPI: {items: [{path: me, fieldRef: {fieldPath: metadata.name}}]}\n"
            "  - {name: host, hostPath: {path: /tmp, type: Directory}}\n");
    assert_pod(&r, "a", "phase", "Running");
    static const struct {
        const char *path, *text;
        unsigned mode;
    } files[] = {
        {"map/K", "v", 0644},        {"map/other.txt", "two words", 0644},
        {"map/bin", "hi", 0644},     {"key/dir/id", "secret", 0400},
        {"key/id.pub", "pub", 0444}, {"all/k", "v", 0440},
        {"all/pub", "pub", 0440},    {"all/me", "a", 0440},
    };
    for (size_t i = 0; i < HK_LEN(files); i++) {
        const char *path = hk_arena_printf(&r.text, "pods/u-a/.volumes/%s", files[i].path);

        assert_string_equal(rig_file(&r, path), files[i].text);
        assert_int_equal(mode_of(&r, path), files[i].mode);
    }
    assert_int_equal(mode_of(&r, "pods/u-a/.volumes/empty"), 0777);
    assert_string_equal(rig_container(&r, "c")->mounts.data,
                        hk_arena_printf(&r.text,
                                        "%s/pods/u-a/.volumes/empty/x/y -> /scratch\n"
                                        "%s/pods/u-a/.volumes/map -> /etc/map ro\n"
                                        "/tmp -> /host\n",
                                        r.dir, r.dir));
    rig_fini(&r);
}

#define TOKENS                                                                                     \
    "  serviceAccountName: bot\n"                                                                  \
    "  containers:\n"                                                                              \
    "  - name: c\n"                                                                                \
    "    image: i\n"                                                                               \
    "    command: [work]\n"                                                                        \
    "    volumeMounts: [{name: t, mountPath: /t}]\n"                                               \
    "  volumes:\n"                                                                                 \
    "  - name: t\n"                                                                                \
    "    projected:\n"                                                                             \
    "      sources:\n"                                                                             \
    "      - serviceAccountToken: {path: token, expirationSeconds: 1000, audience: vault}\n"

static void test_a_token_is_renewed_before_it_grows_old(void **state)
{
    static const char path[] = "pods/u-a/.volumes/t/token";
    const struct api_object *bot;
    const char *first;
    struct rig r;

    rig_init(&r);
    rig_put(&r, "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: d, name: bot}}");
    rig_pod(&r, "a", TOKENS);
    assert_pod(&r, "a", "phase", "Running");
    first = rig_file(&r, path);
    assert_true(hk_str_starts(hk_str(first), "token-"));
    bot = port_mem_peek(r.mem, api_kind(API_SERVICE_ACCOUNT), HK_STR("d"), HK_STR("bot"));
    assert_true(
        hk_str_is(json_str(json_at(&bot->root, "spec.boundObjectRef.uid"), HK_STR("")), "u-a"));
    assert_int_equal(json_int(json_at(&bot->root, "spec.expirationSeconds"), 0), 1000);
    assert_true(hk_str_is(json_str(json_item(json_at(&bot->root, "spec.audiences"), 0), HK_STR("")),
                                   "vault"));
    rig_pass(&r, 790);
    assert_string_equal(rig_file(&r, path), first);
    rig_pass(&r, 20);
    assert_string_not_equal(rig_file(&r, path), first);
    assert_pod(&r, "a", "phase", "Running");
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "0");
    rig_fini(&r);
}

static void test_a_token_that_cannot_be_had_keeps_the_pod_waiting(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", TOKENS);
    assert_pod(&r, "a", "phase", "Pending");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.message",
               "volume \"t\": no token for serviceaccount \"bot\"");
    rig_put(&r, "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: d, name: bot}}");
    rig_pass(&r, 100);
    assert_pod(&r, "a", "phase", "Running");
    rig_fini(&r);
}

static void test_volumes_that_cannot_be_made_say_why(void **state)
{
    static const struct {
        const char *volume, *why;
    } cases[] = {
        {"secret: {secretName: none}", "volume \"v\": secret \"none\" not found"},
        {"hostPath: {path: /tmp, type: File}",
         "volume \"v\": hostPath type check failed: /tmp is not a File"},
        {"hostPath: {path: /nowhere/at/all, type: Directory}",
         "volume \"v\": cannot find '/nowhere/at/all': No such file or directory"},
        {"nfs: {server: x, path: /}",
         "volume \"v\": this kind of volume is not offered by this node"},
        {"configMap: {name: m, items: [{key: K, path: ../out}]}",
         "volume \"v\": path '../out' leaves the volume"},
        {"configMap: {name: m, items: [{key: none, path: x}]}",
         "volume \"v\": references non-existent config key: none"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r;

        rig_init(&r);
        rig_put(&r, config);
        rig_pod(&r, "a",
                hk_arena_printf(&r.text,
                                "  containers: [{name: c, image: i, command: [work]}]\n"
                                "  volumes: [{name: v, %s}]\n",
                                cases[i].volume));
        assert_pod(&r, "a", "phase", "Pending");
        assert_pod(&r, "a", "containerStatuses.0.state.waiting.message", cases[i].why);
        rig_fini(&r);
    }
}

static void test_sub_paths_stay_in_their_volume(void **state)
{
    static const struct {
        const char *sub, *why;
    } cases[] = {
        {"out", "subPath 'out' leaves the volume"},
        {"../x", "subPath '../x' leaves the volume"},
        {"/etc", "subPath '/etc' leaves the volume"},
        {"in", ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r;

        rig_init(&r);
        assert_int_equal(mkdir(hk_arena_printf(&r.text, "%s/h", r.dir), 0755), 0);
        assert_int_equal(symlink("/etc", hk_arena_printf(&r.text, "%s/h/out", r.dir)), 0);
        assert_int_equal(symlink(".", hk_arena_printf(&r.text, "%s/h/in", r.dir)), 0);
        rig_pod(&r, "a",
                hk_arena_printf(&r.text,
                                "  containers:\n"
                                "  - name: c\n"
                                "    image: i\n"
                                "    command: [work]\n"
                                "    volumeMounts: [{name: v, mountPath: /v, subPath: %s}]\n"
                                "  volumes: [{name: v, hostPath: {path: %s/h}}]\n",
                                cases[i].sub, r.dir));
        assert_pod(&r, "a", "containerStatuses.0.state.waiting.message", cases[i].why);
        rig_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_come_from_everywhere),
        cmocka_unit_test(test_home_is_that_of_the_user),
        cmocka_unit_test(test_a_config_map_that_comes_later_is_waited_for),
        cmocka_unit_test(test_files_of_volumes_have_their_modes),
        cmocka_unit_test(test_a_token_is_renewed_before_it_grows_old),
        cmocka_unit_test(test_a_token_that_cannot_be_had_keeps_the_pod_waiting),
        cmocka_unit_test(test_volumes_that_cannot_be_made_say_why),
        cmocka_unit_test(test_sub_paths_stay_in_their_volume),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
