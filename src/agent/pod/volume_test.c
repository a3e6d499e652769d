// SPDX-License-Identifier: Apache-2.0
// Tests of variables, files and mounts in containers.
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
        uid_t uid; /* -1: a user without a known home */
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

static void test_a_container_that_starts_again_has_the_variables_of_now(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_put(&r, config);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: K}}}]\n");
    assert_env(&r, "c", "A=v");
    rig_put(&r, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: d, name: m}\n"
                "data: {K: w}\n");
    assert_env(&r, "c", "A=v");
    rig_end(&r, "c", 1);
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "1");
    assert_env(&r, "c", "A=w");
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
                                        "/tmp -> /host\n"
                                        "%s/pods/u-a/.c.0.message -> /dev/termination-log\n",
                                        r.dir, r.dir, r.dir));
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

#define SHOWS_ALL                                                                                  \
    "  containers: [{name: c, image: i, command: [work]}]\n"                                       \
    "  volumes:\n"                                                                                 \
    "  - {name: map, configMap: {name: m}}\n"                                                      \
    "  - {name: some, secret: {secretName: s, optional: true}}\n"                                  \
    "  - name: me\n"                                                                               \
    "    downwardAPI: {items: [{path: of/labels, fieldRef: {fieldPath: metadata.labels}}]}\n"

#define FILE_OF(name) "pods/u-a/.volumes/" name

static char *link_of(struct rig *r, const char *path)
{
    char target[64];
    const ssize_t n = readlink(hk_arena_printf(&r->text, "%s/%s", r->dir, path), target, 64);

    return n < 0 ? NULL : hk_arena_strndup(&r->text, target, (size_t)n);
}

static void test_changes_reach_pods_that_run(void **state)
{
    struct rig r;
    const char *before;

    rig_init(&r);
    rig_put(&r, config);
    rig_pod(&r, "a", SHOWS_ALL);
    rig_pod(&r, "b", SHOWS_ALL);
    assert_string_equal(rig_file(&r, FILE_OF("map/K")), "v");
    assert_string_equal(link_of(&r, FILE_OF("map/K")), "..data/K");
    before = link_of(&r, FILE_OF("map/..data"));

    rig_put(&r, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: d, name: m}\n"
                "data: {K: w, fresh: x}\n");
    assert_string_equal(rig_file(&r, FILE_OF("map/K")), "w");
    assert_string_equal(rig_file(&r, FILE_OF("map/fresh")), "x");
    assert_null(rig_file(&r, FILE_OF("map/other.txt")));
    assert_string_equal(rig_file(&r, "pods/u-b/.volumes/map/K"), "w");
    assert_null(link_of(&r, hk_arena_printf(&r.text, FILE_OF("map/%s"), before)));
    assert_int_not_equal(
        access(hk_arena_printf(&r.text, "%s/" FILE_OF("map/%s"), r.dir, before), F_OK), 0);

    rig_put(&r, secret); /* optional: it was missing until now */
    assert_string_equal(rig_file(&r, FILE_OF("some/pub")), "pub");
    rig_fini(&r);
}

static void test_files_stay_when_there_is_nothing_to_show(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_put(&r, config);
    rig_pod(&r, "a",
            "  containers: [{name: c, image: i, command: [work]}]\n"
            "  volumes: [{name: map, configMap: {name: m, items: [{key: K, path: k}]}}]\n");
    rig_put(&r, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: d, name: m}\n"
                "data: {other: w}\n");
    assert_string_equal(rig_file(&r, FILE_OF("map/k")), "v");
    assert_pod(&r, "a", "phase", "Running");
    assert_true(port_mem_remove(r.mem, api_kind(API_CONFIGMAP), HK_STR("d"), HK_STR("m")));
    rig_settle(&r);
    assert_string_equal(rig_file(&r, FILE_OF("map/k")), "v");
    rig_fini(&r);
}

static void test_labels_in_files_follow_the_pod(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_put(&r, config);
    rig_pod(&r, "a", SHOWS_ALL);
    assert_string_equal(rig_file(&r, FILE_OF("me/of/labels")), "");
    rig_put(&r, "apiVersion: v1\nkind: Pod\n"
                "metadata: {namespace: d, name: a, uid: u-a, labels: {x: why}}\n"
                "spec:\n  nodeName: n1\n" SHOWS_ALL);
    assert_string_equal(rig_file(&r, FILE_OF("me/of/labels")), "x=\"why\"");
    rig_fini(&r);
}

static void test_what_is_shown_is_watched_while_somebody_looks(void **state)
{
    static const char watch[] = "watch configmaps d/";
    struct rig r;

    rig_init(&r);
    rig_put(&r, config);
    rig_pod(&r, "a", "  restartPolicy: Never\n" SHOWS_ALL);
    rig_pod(&r, "b", "  restartPolicy: Never\n" SHOWS_ALL);
    assert_int_equal(rig_calls(&r, watch), 1);
    rig_end(&r, "c", 0); /* the one of pod b */
    rig_put(&r, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: d, name: m}\n"
                "data: {K: w}\nimmutable: true\n");
    assert_string_equal(rig_file(&r, FILE_OF("map/K")), "w");
    assert_string_equal(rig_file(&r, "pods/u-b/.volumes/map/K"), "v");
    rig_pod(&r, "e", "  restartPolicy: Never\n" SHOWS_ALL);
    assert_string_equal(rig_file(&r, "pods/u-e/.volumes/map/K"), "w");
    assert_int_equal(rig_calls(&r, watch), 1); /* immutable: no watch */
    rig_fini(&r);
}

/* ---- claims ---- */

#define CLAIMS                                                                                     \
    "  restartPolicy: Never\n"                                                                     \
    "  containers:\n"                                                                              \
    "  - name: c\n"                                                                                \
    "    image: i\n"                                                                               \
    "    command: [work]\n"                                                                        \
    "    volumeMounts: [{name: v, mountPath: /v}]\n"                                               \
    "  volumes: [{name: v, persistentVolumeClaim: {claimName: q, readOnly: true}}]\n"

static const char claim[] = "apiVersion: v1\n"
                            "kind: PersistentVolumeClaim\n"
                            "metadata: {namespace: d, name: q}\n"
                            "spec: {volumeName: pv}\n";

static void put_volume(struct rig *r, const char *meta, const char *spec)
{
    rig_put(r, hk_arena_printf(&r->text,
                               "apiVersion: v1\n"
                               "kind: PersistentVolume\n"
                               "metadata:\n"
                               "  name: pv\n"
                               "  annotations: {pv.kubernetes.io/provisioned-by: hekla.io/local, "
                               "hekla.io/node: n1}\n"
                               "  %s\n"
                               "spec: {%s}\n",
                               meta, spec));
}

static void test_claims_show_the_volume_they_are_bound_to(void **state)
{
    static const struct {
        const char *spec, *why, *mount;
    } cases[] = {
        {"hostPath: {path: /tmp}", "", "/tmp -> /v ro\n"},
        {"local: {path: /usr}", "", "/usr -> /v ro\n"},
        {"local: {path: /no/such}", "volume \"v\": path \"/no/such\" does not exist", NULL},
        {"csi: {driver: x}",
         "volume \"v\": persistentvolume \"pv\" is of a kind that is not offered by this node",
         NULL},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r;

        rig_init(&r);
        rig_put(&r, claim);
        put_volume(&r, "", cases[i].spec);
        rig_pod(&r, "a", CLAIMS);
        assert_pod(&r, "a", "containerStatuses.0.state.waiting.message", cases[i].why);
        if (cases[i].mount) {
            assert_true(hk_str_starts(hk_buf_str(&rig_container(&r, "c")->mounts), cases[i].mount));
        }
        rig_fini(&r);
    }
}

static void test_a_claim_is_waited_for(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", CLAIMS);
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.message",
               "volume \"v\": persistentvolumeclaim \"q\" not found");
    rig_put(&r, "apiVersion: v1\nkind: PersistentVolumeClaim\n"
                "metadata: {namespace: d, name: q}\nspec: {}\n");
    rig_pass(&r, 10);
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.message",
               "volume \"v\": persistentvolumeclaim \"q\" is not bound");
    put_volume(&r, "", "hostPath: {path: /tmp}");
    rig_put(&r, claim);
    rig_pass(&r, 10);
    assert_pod(&r, "a", "phase", "Running");
    rig_fini(&r);
}

static void test_a_volume_of_ours_is_a_directory_while_somebody_needs_it(void **state)
{
    struct rig r;
    const char *spec, *file;

    rig_init(&r);
    assert_string_equal(
        rig_at(&r, API_NODE, "n1", "metadata.annotations"),
        hk_arena_printf(&r.text, "{\"hekla.io/volumes-dir\":\"%s/volumes\"}", r.dir));
    spec = hk_arena_printf(&r.text, "local: {path: %s/volumes/pv}", r.dir);
    rig_put(&r, claim);
    put_volume(&r, "finalizers: [hekla.io/volume-directory]", spec);
    rig_pod(&r, "a", CLAIMS);
    assert_pod(&r, "a", "phase", "Running");
    assert_int_equal(mode_of(&r, "volumes/pv"), 0777);
    file = hk_arena_printf(&r.text, "%s/volumes/pv/f", r.dir);
    assert_int_equal(hk_write_file(file, HK_STR("data"), NULL), 0);

    put_volume(&r,
               "deletionTimestamp: '2026-01-02T10:00:00Z'\n"
               "  finalizers: [hekla.io/volume-directory, other]",
               spec);
    assert_true(port_mem_remove(r.mem, api_kind(API_PVC), HK_STR("d"), HK_STR("q")));
    rig_down(&r);
    rig_up(&r);
    assert_string_equal(rig_file(&r, "volumes/pv/f"), "data"); /* the pod still uses it */
    rig_end(&r, "c", 0);
    assert_null(rig_file(&r, "volumes/pv/f"));
    assert_int_not_equal(access(hk_arena_printf(&r.text, "%s/volumes/pv", r.dir), F_OK), 0);
    assert_string_equal(rig_at(&r, API_PV, "pv", "metadata.finalizers"), "[\"other\"]");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_come_from_everywhere),
        cmocka_unit_test(test_home_is_that_of_the_user),
        cmocka_unit_test(test_a_config_map_that_comes_later_is_waited_for),
        cmocka_unit_test(test_a_container_that_starts_again_has_the_variables_of_now),
        cmocka_unit_test(test_files_of_volumes_have_their_modes),
        cmocka_unit_test(test_a_token_is_renewed_before_it_grows_old),
        cmocka_unit_test(test_a_token_that_cannot_be_had_keeps_the_pod_waiting),
        cmocka_unit_test(test_volumes_that_cannot_be_made_say_why),
        cmocka_unit_test(test_sub_paths_stay_in_their_volume),
        cmocka_unit_test(test_changes_reach_pods_that_run),
        cmocka_unit_test(test_files_stay_when_there_is_nothing_to_show),
        cmocka_unit_test(test_labels_in_files_follow_the_pod),
        cmocka_unit_test(test_what_is_shown_is_watched_while_somebody_looks),
        cmocka_unit_test(test_claims_show_the_volume_they_are_bound_to),
        cmocka_unit_test(test_a_claim_is_waited_for),
        cmocka_unit_test(test_a_volume_of_ours_is_a_directory_while_somebody_needs_it),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
