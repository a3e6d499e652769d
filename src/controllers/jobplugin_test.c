// SPDX-License-Identifier: Apache-2.0
// Job plugins: the objects they create, what they add to pods (exactly as Volcano does), and valid
// and invalid arguments (docs/reference/controllers.md section 6).
#include "controllers/job_rig_test.h"
#include "controllers/jobplugin.h"

#include <gnutls/abstract.h>
#include <gnutls/x509.h>

/* ---- one plugin, one pod ---- */

struct bench {
    struct hk_arena a;
    struct api_job job;
    struct job_plugin_use use;
    struct hk_err warning;
};

/* A job of name "j" with these tasks, and the plugin with its arguments as a YAML list. */
static void bench_init(struct bench *b, const char *plugin, const char *args, const char *tasks)
{
    struct yaml_docs docs;
    const char *yaml;

    *b = (struct bench){0};
    yaml = hk_arena_printf(&b->a, JOB("  minAvailable: 1\n  plugins: {%s: %s}\n  tasks:\n%s"),
                           plugin, args, tasks);
    docs = rig_yaml(yaml, &b->a);
    assert_int_equal(api_job_decode(&docs.at[0], &b->a, &b->job, NULL), 0);
    job_plugin_use(&b->use, job_plugin_find(hk_str(plugin)), &b->job, &b->job.plugins.at[0], &b->a,
                   &b->warning);
}

static void bench_fini(struct bench *b)
{
    hk_arena_fini(&b->a);
}

/* A pod of the task after the hook ran. */
static int bench_pod(struct bench *b, const char *task, int32_t index, struct json *ret)
{
    const struct api_job_task *t = api_job_task_find(&b->job, hk_str(task));
    char *name = hk_arena_printf(&b->a, "j-%s-%d", task, (int)index);
    struct json meta = json_make_object();
    struct hk_err err = {0};

    *ret = json_clone(t->template, &b->a);
    json_set_cstr(&meta, &b->a, "name", name);
    json_set_object(&meta, &b->a, "annotations");
    json_set(ret, &b->a, "metadata", meta);
    return b->use.plugin->pod(&b->use, t, index, ret, &err);
}

static const char *text_of(struct bench *b, const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (v) {
        json_write(v, &text);
    }
    return text.len > 0 ? hk_arena_strndup(&b->a, text.data, text.len) : "";
}

#define BARE "    template: {spec: {containers: [{name: main}], initContainers: [{name: init}]}}\n"
#define BARE_TASK(name, replicas) "  - name: " name "\n    replicas: " replicas "\n" BARE
#define HOST_TASK(name, replicas)                                                                  \
    "  - name: " name "\n    replicas: " replicas "\n"                                             \
    "    template: {spec: {hostname: fixed, subdomain: sub, containers: [{name: main}]}}\n"

/* What the hook changes in a pod: main container, init container, or annotation. */
static const struct pod_case {
    const char *what, *plugin, *args, *tasks, *task;
    int32_t index;
    const char *path; /* of the pod; "main.x" and "init.x" for members of containers */
    const char *want;
} pod_cases[] = {
    {"env", "env", "[]", BARE_TASK("w", "2"), "w", 1, "main.env",
     "[{\"name\":\"VK_TASK_INDEX\",\"value\":\"1\"},{\"name\":\"VC_TASK_INDEX\",\"value\":\"1\"}]"},
    {"env in init containers", "env", "[]", BARE_TASK("w", "2"), "w", 0, "init.env",
     "[{\"name\":\"VK_TASK_INDEX\",\"value\":\"0\"},{\"name\":\"VC_TASK_INDEX\",\"value\":\"0\"}]"},

    {"svc: variables", "svc", "[]", BARE_TASK("a-b", "2"), "a-b", 0, "main.env",
     "[{\"name\":\"VC_A_B_HOSTS\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"j-svc\",\"key\":"
     "\"VC_A_B_HOSTS\"}}},{\"name\":\"VC_A_B_NUM\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":"
     "\"j-svc\",\"key\":\"VC_A_B_NUM\"}}}]"},
    {"svc: no variables", "svc", "[--inject-hosts-env=false]", BARE_TASK("w", "2"), "w", 0,
     "main.env", ""},
    {"svc: mount without variables", "svc", "[--inject-hosts-env=false]", BARE_TASK("w", "2"), "w",
     0, "main.volumeMounts", "[{\"mountPath\":\"/etc/volcano\",\"name\":\"j-svc\"}]"},
    {"svc: mount in init containers", "svc", "[]", BARE_TASK("w", "2"), "w", 0, "init.volumeMounts",
     "[{\"mountPath\":\"/etc/volcano\",\"name\":\"j-svc\"}]"},
    {"svc: volume", "svc", "[]", BARE_TASK("w", "2"), "w", 0, "spec.volumes",
     "[{\"name\":\"j-svc\",\"configMap\":{\"name\":\"j-svc\"}}]"},
    {"svc: host name", "svc", "[]", BARE_TASK("w", "2"), "w", 1, "spec.hostname", "\"j-w-1\""},
    {"svc: domain", "svc", "[]", BARE_TASK("w", "2"), "w", 1, "spec.subdomain", "\"j\""},
    {"svc: host name of the template", "svc", "[]", HOST_TASK("w", "2"), "w", 1, "spec.hostname",
     "\"fixed\""},

    {"ssh: mount", "ssh", "[]", BARE_TASK("w", "2"), "w", 0, "main.volumeMounts",
     "[{\"mountPath\":\"/root/.ssh\",\"name\":\"j-ssh\",\"subPath\":\".ssh\"}]"},
    {"ssh: mode", "ssh", "[]", BARE_TASK("w", "2"), "w", 0, "spec.volumes",
     "[{\"name\":\"j-ssh\",\"secret\":{\"secretName\":\"j-ssh\",\"items\":["
     "{\"key\":\"id_rsa\",\"path\":\".ssh/id_rsa\"},"
     "{\"key\":\"id_rsa.pub\",\"path\":\".ssh/id_rsa.pub\"},"
     "{\"key\":\"authorized_keys\",\"path\":\".ssh/authorized_keys\"},"
     "{\"key\":\"config\",\"path\":\".ssh/config\"}],\"defaultMode\":384}}]"},
    {"ssh: another place", "ssh", "[--ssh-key-file-path=/home/u/.ssh]", BARE_TASK("w", "2"), "w", 0,
     "init.volumeMounts",
     "[{\"mountPath\":\"/home/u/.ssh\",\"name\":\"j-ssh\",\"subPath\":\".ssh\"}]"},
    {"ssh: an old flag is tolerated", "ssh", "[--no-root]", BARE_TASK("w", "2"), "w", 0,
     "main.volumeMounts",
     "[{\"mountPath\":\"/root/.ssh\",\"name\":\"j-ssh\",\"subPath\":\".ssh\"}]"},

    {"tensorflow", "tensorflow", "[]",
     BARE_TASK("ps", "1") BARE_TASK("worker", "2") BARE_TASK("other", "1"), "worker", 1, "main.env",
     "[{\"name\":\"TF_CONFIG\",\"value\":\"{\\\"cluster\\\":{\\\"ps\\\":[\\\"j-ps-0.j:2222\\\"],"
     "\\\"worker\\\":[\\\"j-worker-0.j:2222\\\",\\\"j-worker-1.j:2222\\\"]},"
     "\\\"task\\\":{\\\"type\\\":\\\"worker\\\",\\\"index\\\":1}}\"}]"},
    {"tensorflow: other names", "tensorflow", "[--ps=server, --port, '3333']",
     BARE_TASK("server", "1") BARE_TASK("x", "1"), "server", 0, "main.env",
     "[{\"name\":\"TF_CONFIG\",\"value\":\"{\\\"cluster\\\":{\\\"ps\\\":[\\\"j-server-0.j:3333\\\"]"
     "},\\\"task\\\":{\\\"type\\\":\\\"ps\\\",\\\"index\\\":0}}\"}]"},
    {"tensorflow: a task of no role", "tensorflow", "[]", BARE_TASK("ps", "1") BARE_TASK("x", "1"),
     "x", 0, "main.env",
     "[{\"name\":\"TF_CONFIG\",\"value\":\"{\\\"cluster\\\":{\\\"ps\\\":[\\\"j-ps-0.j:2222\\\"]},"
     "\\\"task\\\":{\\\"type\\\":\\\"x\\\",\\\"index\\\":0}}\"}]"},
    {"tensorflow: no replicas, no role", "tensorflow", "[]",
     BARE_TASK("ps", "0") BARE_TASK("worker", "2"), "worker", 0, "main.env",
     "[{\"name\":\"TF_CONFIG\",\"value\":\"{\\\"cluster\\\":{\\\"worker\\\":[\\\"j-worker-0.j:2222"
     "\\\",\\\"j-worker-1.j:2222\\\"]},\\\"task\\\":{\\\"type\\\":\\\"worker\\\",\\\"index\\\":0}}"
     "\"}]"},
    {"tensorflow: alone", "tensorflow", "[]", BARE_TASK("worker", "1"), "worker", 0, "main.env",
     ""},
    {"tensorflow: a fixed host is repeated", "tensorflow", "[]", HOST_TASK("worker", "2"), "worker",
     0, "main.env",
     "[{\"name\":\"TF_CONFIG\",\"value\":\"{\\\"cluster\\\":{\\\"worker\\\":[\\\"fixed.sub:2222\\\""
     ",\\\"fixed.sub:2222\\\"]},\\\"task\\\":{\\\"type\\\":\\\"worker\\\",\\\"index\\\":0}}\"}]"},
    {"tensorflow: not in init containers", "tensorflow", "[]", BARE_TASK("worker", "2"), "worker",
     0, "init.env", ""},

    {"pytorch: worker", "pytorch", "[]", BARE_TASK("master", "1") BARE_TASK("worker", "2"),
     "worker", 1, "main.env",
     "[{\"name\":\"MASTER_ADDR\",\"value\":\"j-master-0.j\"},"
     "{\"name\":\"MASTER_PORT\",\"value\":\"23456\"},{\"name\":\"WORLD_SIZE\",\"value\":\"3\"},"
     "{\"name\":\"RANK\",\"value\":\"2\"}]"},
    {"pytorch: every master is first", "pytorch", "[]",
     BARE_TASK("master", "2") BARE_TASK("worker", "2"), "master", 1, "main.env",
     "[{\"name\":\"MASTER_ADDR\",\"value\":\"j-master-0.j\"},"
     "{\"name\":\"MASTER_PORT\",\"value\":\"23456\"},{\"name\":\"WORLD_SIZE\",\"value\":\"4\"},"
     "{\"name\":\"RANK\",\"value\":\"0\"}]"},
    {"pytorch: a task of no role", "pytorch", "[]", BARE_TASK("master", "1") BARE_TASK("x", "1"),
     "x", 0, "main.env",
     "[{\"name\":\"MASTER_ADDR\",\"value\":\"j-master-0.j\"},"
     "{\"name\":\"MASTER_PORT\",\"value\":\"23456\"},{\"name\":\"WORLD_SIZE\",\"value\":\"1\"}]"},
    {"pytorch: port", "pytorch", "[--port=99]", BARE_TASK("master", "1"), "master", 0, "main.ports",
     "[{\"name\":\"pytorchjob-port\",\"containerPort\":99}]"},
    {"pytorch: no master", "pytorch", "[]", BARE_TASK("worker", "1"), "worker", 0, "main.env", ""},
    {"pytorch: init containers are left alone", "pytorch", "[]", BARE_TASK("master", "1"), "master",
     0, "init.env", ""},

    {"mpi: master", "mpi", "[]", BARE_TASK("master", "1") BARE_TASK("worker", "2"), "master", 0,
     "main.env", "[{\"name\":\"MPI_HOST\",\"value\":\"j-worker-0.j,j-worker-1.j\"}]"},
    {"mpi: master's init container", "mpi", "[]", BARE_TASK("master", "1") BARE_TASK("worker", "2"),
     "master", 0, "init.env", "[{\"name\":\"MPI_HOST\",\"value\":\"j-worker-0.j,j-worker-1.j\"}]"},
    {"mpi: worker", "mpi", "[--port=2022]", BARE_TASK("master", "1") BARE_TASK("worker", "2"),
     "worker", 0, "main.ports", "[{\"name\":\"mpijob-port\",\"containerPort\":2022}]"},
    {"mpi: worker has no hosts", "mpi", "[]", BARE_TASK("master", "1") BARE_TASK("worker", "2"),
     "worker", 0, "main.env", ""},
    {"mpi: a master alone", "mpi", "[]", BARE_TASK("master", "1"), "master", 0, "main.ports", ""},
    {"mpi: one entry for a fixed host", "mpi", "[]",
     BARE_TASK("master", "1") HOST_TASK("worker", "3"), "master", 0, "main.env",
     "[{\"name\":\"MPI_HOST\",\"value\":\"fixed.sub\"}]"},

    {"hcclrank: master", "hcclrank", "[]", BARE_TASK("master", "2") BARE_TASK("worker", "2"),
     "master", 1, "metadata.annotations", "{\"hccl/rankIndex\":\"1\"}"},
    {"hcclrank: worker", "hcclrank", "[]", BARE_TASK("master", "2") BARE_TASK("worker", "2"),
     "worker", 1, "metadata.annotations", "{\"hccl/rankIndex\":\"3\"}"},
    {"hcclrank: no master", "hcclrank", "[]", BARE_TASK("worker", "2"), "worker", 1,
     "metadata.annotations", "{\"hccl/rankIndex\":\"1\"}"},
    {"hcclrank: a task of no role", "hcclrank", "[]", BARE_TASK("x", "2"), "x", 1,
     "metadata.annotations", "{}"},
    {"hcclrank: by variable", "hcclrank", "[]",
     "  - name: x\n    replicas: 1\n    template: {spec: {containers: [{name: a, env: [{name: "
     "RANK, valueFrom: {}}]}, {name: b, env: [{name: RANK, value: '9'}]}]}}\n",
     "x", 0, "metadata.annotations", "{\"hccl/rankIndex\":\"9\"}"},

    {"ray: head", "ray", "[--headContainer=main]", BARE_TASK("head", "1") BARE_TASK("worker", "2"),
     "head", 0, "main.command",
     "[\"sh\",\"-c\",\"ray start --head --block --dashboard-host=0.0.0.0 --port=6379 "
     "--dashboard-port=8265 --ray-client-server-port=10001\"]"},
    {"ray: ports of the head", "ray", "[--headContainer=main, --port=1]",
     BARE_TASK("head", "1") BARE_TASK("worker", "2"), "head", 0, "main.ports",
     "[{\"name\":\"gcs\",\"containerPort\":1},{\"name\":\"dashboard\",\"containerPort\":8265},"
     "{\"name\":\"client-server\",\"containerPort\":10001}]"},
    {"ray: worker", "ray", "[--workerContainer=main]",
     BARE_TASK("head", "1") BARE_TASK("worker", "2"), "worker", 1, "main.command",
     "[\"sh\",\"-c\",\"ray start --block --address=j-head-0.j:6379\"]"},
    {"ray: another container", "ray", "[]", BARE_TASK("head", "1") BARE_TASK("worker", "2"),
     "worker", 1, "main.command", ""},
};

static const struct json *look(const struct json *pod, const char *path)
{
    const struct json *spec = json_get(pod, "spec");

    if (strncmp(path, "main.", 5) == 0) {
        return json_get(json_item(json_get(spec, "containers"), 0), path + 5);
    }
    if (strncmp(path, "init.", 5) == 0) {
        return json_get(json_item(json_get(spec, "initContainers"), 0), path + 5);
    }
    return json_at(pod, path);
}

static void pods_get_what_the_reference_says(void **state)
{
    for (unsigned i = 0; i < HK_LEN(pod_cases); i++) {
        const struct pod_case *c = &pod_cases[i];
        struct bench b;
        struct json pod;
        const char *have, *want;

        bench_init(&b, c->plugin, c->args, c->tasks);
        assert_int_equal(bench_pod(&b, c->task, c->index, &pod), 0);
        have = hk_arena_printf(&b.a, "%s: %s", c->what, text_of(&b, look(&pod, c->path)));
        want = hk_arena_printf(&b.a, "%s: %s", c->what, c->want);
        assert_string_equal(have, want);
        bench_fini(&b);
    }
}

static void pytorch_workers_wait_for_the_master(void **state)
{
    struct bench b;
    struct json pod;
    const struct json *wait;

    bench_init(&b, "pytorch", "[--wait-master-enabled, --wait-master-timeout=7]",
               BARE_TASK("master", "1") BARE_TASK("worker", "1"));
    assert_int_equal(bench_pod(&b, "worker", 0, &pod), 0);
    wait = json_item(json_at(&pod, "spec.initContainers"), 1);
    assert_string_equal(text_of(&b, json_get(wait, "name")), "\"wait-for-master\"");
    assert_string_equal(text_of(&b, json_get(wait, "image")), "\"busybox:1.36.1\"");
    assert_true(hk_str_contains(json_str(json_item(json_get(wait, "command"), 2), HK_STR("")),
                                "nc -z j-master-0.j 23456"));
    assert_true(
        hk_str_contains(json_str(json_item(json_get(wait, "command"), 2), HK_STR("")), "+ 7 "));
    assert_int_equal(bench_pod(&b, "master", 0, &pod), 0);
    assert_int_equal(json_at(&pod, "spec.initContainers")->len, 1);
    bench_fini(&b);
}

static void ray_without_head_is_an_error(void **state)
{
    struct bench b;
    struct json pod;

    bench_init(&b, "ray", "[]", BARE_TASK("worker", "1"));
    assert_int_equal(bench_pod(&b, "worker", 0, &pod), -HK_EINVAL);
    bench_fini(&b);
}

/* hcclrank finds the RANK of pytorch, because the plugins run in that order. */
static void hcclrank_comes_after_pytorch(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 3\n  plugins: {hcclrank: [], pytorch: []}\n"
                      "  tasks:\n" TASK("master", "1", "") TASK("worker", "2", "")));
    rig_enqueue(&rig);
    assert_true(hk_str_is(
        json_str(json_get(json_at(rig_get(&rig, API_POD, "j-worker-1"), "metadata.annotations"),
                          "hccl/rankIndex"),
                 HK_STR("")),
        "2"));
    rig_expect(&rig, API_JOB, "j", "status.controlledResources",
               "{\"plugin-pytorch\":\"pytorch\"}");
}

/* ---- arguments ---- */

static const struct {
    const char *args, *master, *warning;
    int64_t port;
} arg_cases[] = {
    {"[]", "master", "", 22},
    {"[-port, '1']", "master", "", 1},
    {"[--port=2]", "master", "", 2},
    {"[--port, '3', --master=m]", "m", "", 3},
    {"[--port=x, --master=m]", "master", "invalid value 'x' for flag -port", 22},
    {"[--master=m, --unknown, --port=4]", "m", "flag provided but not defined: -unknown", 22},
    {"[--port=5, word, --master=m]", "master", "argument 'word' is not a flag", 5},
    {"[--port=6, --, --master=m]", "master", "argument '--' is not a flag", 6},
    {"[--port]", "master", "flag needs an argument: -port", 22},
    {"[--master=]", "", "", 22},
};

static void arguments_are_read_up_to_the_first_mistake(void **state)
{
    for (unsigned i = 0; i < HK_LEN(arg_cases); i++) {
        struct bench b;
        struct json pod;
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf want = {0};

        bench_init(&b, "mpi", arg_cases[i].args, BARE_TASK("w", "1"));
        assert_int_equal(bench_pod(&b, "w", 0, &pod), 0);
        hk_buf_addf(&have, "%s: %s %s", arg_cases[i].args, text_of(&b, look(&pod, "main.ports")),
                    b.warning.text);
        hk_buf_addf(&want, "%s: [{\"name\":\"mpijob-port\",\"containerPort\":%lld}] %s",
                    arg_cases[i].args, (long long)arg_cases[i].port, arg_cases[i].warning);
        assert_string_equal(have.data, want.data);
        assert_true(hk_str_is(*(const struct hk_str *)b.use.opts, arg_cases[i].master));
        bench_fini(&b);
    }
}

/* ---- objects ---- */

#define expect_object(kind, name, path, want) rig_expect(&rig, kind, name, path, want)

static void svc_objects(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n  plugins: {svc: []}\n"
                      "  tasks:\n" TASK("ps", "1", "") TASK("gpu-worker", "2", "")
                          TASK("none", "0", "")));
    rig_settle(&rig);
    expect_object(API_CONFIGMAP, "j-svc", "data",
                  "{\"ps.host\":\"j-ps-0.j\",\"VC_PS_HOSTS\":\"j-ps-0.j\",\"VC_PS_NUM\":\"1\","
                  "\"gpu_worker.host\":\"j-gpu-worker-0.j\\nj-gpu-worker-1.j\","
                  "\"VC_GPU_WORKER_HOSTS\":\"j-gpu-worker-0.j,j-gpu-worker-1.j\","
                  "\"VC_GPU_WORKER_NUM\":\"2\",\"none.host\":\"\",\"VC_NONE_HOSTS\":\"\","
                  "\"VC_NONE_NUM\":\"0\"}");
    expect_object(API_SERVICE, "j", "spec",
                  "{\"clusterIP\":\"None\",\"selector\":{\"volcano.sh/job-name\":\"j\","
                  "\"volcano.sh/job-namespace\":\"d\"},\"publishNotReadyAddresses\":false}");
    expect_object(API_NETWORK_POLICY, "j", "spec",
                  "{\"podSelector\":{\"matchLabels\":{\"volcano.sh/job-name\":\"j\","
                  "\"volcano.sh/job-namespace\":\"d\"}},\"ingress\":[{\"from\":[{\"podSelector\":"
                  "{\"matchLabels\":{\"volcano.sh/job-name\":\"j\",\"volcano.sh/job-namespace\":"
                  "\"d\"}}}]}],\"policyTypes\":[\"Ingress\"]}");
    expect_object(API_CONFIGMAP, "j-svc", "metadata.ownerReferences",
                  "[{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"name\":\"j\","
                  "\"uid\":\"u-j\",\"controller\":true,\"blockOwnerDeletion\":true}]");
}

static void svc_flags(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n"
                      "  plugins: {svc: [--publish-not-ready-addresses, "
                      "--disable-network-policy=true]}\n"
                      "  tasks:\n" TASK("w", "1", "")));
    rig_settle(&rig);
    expect_object(API_SERVICE, "j", "spec.publishNotReadyAddresses", "true");
    assert_int_equal(rig_count(&rig, API_NETWORK_POLICY), 0);
}

static void ray_service(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n  plugins: {ray: []}\n  tasks:\n" TASK("head", "1", "")));
    rig_settle(&rig);
    expect_object(API_SERVICE, "j-head-svc", "spec",
                  "{\"type\":\"ClusterIP\",\"selector\":{\"volcano.sh/job-name\":\"j\","
                  "\"volcano.sh/job-namespace\":\"d\",\"volcano.sh/task-spec\":\"head\"},"
                  "\"ports\":[{\"name\":\"gcs\",\"port\":6379,\"protocol\":\"TCP\",\"targetPort\":"
                  "\"gcs\"},{\"name\":\"dashboard\",\"port\":8265,\"protocol\":\"TCP\","
                  "\"targetPort\":\"dashboard\"},{\"name\":\"client-server\",\"port\":10001,"
                  "\"protocol\":\"TCP\",\"targetPort\":\"client-server\"}]}");
}

/* ---- ssh ---- */

static void read_base64(struct hk_str text, struct hk_buf *out)
{
    const gnutls_datum_t in = {(unsigned char *)text.s, (unsigned)text.n};
    gnutls_datum_t bytes = {0};

    assert_int_equal(gnutls_base64_decode2(&in, &bytes), 0);
    hk_buf_add(out, bytes.data, bytes.size);
    gnutls_free(bytes.data);
}

/* A value of the Secret, decoded. */
static const char *secret(const char *key)
{
    static struct hk_buf text;
    const struct json *data = json_at(rig_get(&rig, API_SECRET, "j-ssh"), "data");

    hk_buf_clear(&text);
    read_base64(json_str(json_get(data, key), HK_STR("")), &text);
    return text.data ? text.data : "";
}

#define SSH_JOB(args, replicas)                                                                    \
    JOB("  minAvailable: 1\n  policies: [{event: PodFailed, action: RestartJob}]\n"                \
        "  plugins: {ssh: " args "}\n  tasks:\n" TASK("w", replicas, ""))

static void ssh_keys_are_a_pair(void **state)
{
    gnutls_datum_t pem, m = {0}, e = {0};
    gnutls_x509_privkey_t key;
    HK_AUTO(hk_buf_fini) struct hk_buf blob = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf private = {0};
    const struct json *data;
    struct hk_str line;
    const unsigned char *at;

    rig_put(&rig, SSH_JOB("[]", "2"));
    rig_settle(&rig);
    data = json_at(rig_get(&rig, API_SECRET, "j-ssh"), "data");
    hk_buf_adds(&private, secret("id_rsa"));
    assert_true(hk_str_starts(hk_buf_str(&private), "-----BEGIN RSA PRIVATE KEY-----\n"));
    pem = (gnutls_datum_t){(unsigned char *)private.data, (unsigned)private.len};
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_import(key, &pem, GNUTLS_X509_FMT_PEM), 0);
    assert_int_equal(gnutls_x509_privkey_verify_params(key), 0);
    assert_int_equal(gnutls_x509_privkey_export_rsa_raw(key, &m, &e, NULL, NULL, NULL, NULL), 0);

    line = hk_str(secret("id_rsa.pub"));
    assert_true(hk_str_starts(line, "ssh-rsa ") && hk_str_ends(line, "\n"));
    read_base64((struct hk_str){line.s + 8, line.n - 9}, &blob);
    assert_int_equal(blob.len, 4 + 7 + 4 + e.size + 4 + m.size);
    at = (const unsigned char *)blob.data;
    assert_memory_equal(at, "\0\0\0\7ssh-rsa", 11);
    assert_memory_equal(at + 15, e.data, e.size);
    assert_memory_equal(at + 19 + e.size, m.data, m.size);
    assert_int_equal(m.size, 2048 / 8 + 1);
    gnutls_free(m.data);
    gnutls_free(e.data);
    gnutls_x509_privkey_deinit(key);

    expect_object(API_SECRET, "j-ssh", "type", "\"Opaque\"");
    assert_true(json_equal(json_get(data, "authorized_keys"), json_get(data, "id_rsa.pub")));
    assert_string_equal(secret("config"), "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
                                          "Host j-w-0 j-w-0.j\n  HostName j-w-0.j\n  Port 22\n"
                                          "Host j-w-1 j-w-1.j\n  HostName j-w-1.j\n  Port 22\n");
}

static void ssh_takes_keys_of_the_user(void **state)
{
    rig_put(&rig, SSH_JOB("[--ssh-private-key=pri, --ssh-public-key=pub, --ssh-port=70000]", "1"));
    rig_settle(&rig);
    assert_string_equal(secret("id_rsa"), "pri");
    assert_string_equal(secret("id_rsa.pub"), "pub");
    assert_string_equal(secret("authorized_keys"), "pub");
    assert_true(hk_str_ends(hk_str(secret("config")), "  Port 22\n"));
}

static void ssh_keys_survive_a_restart_and_names_follow_scaling(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf before = {0};

    rig_put(&rig, SSH_JOB("[]", "1"));
    rig_enqueue(&rig);
    rig_run(&rig);
    hk_buf_adds(&before, secret("id_rsa"));
    rig_end(&rig, "j-w-0", 1);
    for (int i = 0; i < 3; i++) {
        rig_reap(&rig);
        rig_enqueue(&rig);
        rig_run(&rig);
    }
    rig_expect(&rig, API_JOB, "j", "status.retryCount", "1");
    assert_string_equal(secret("id_rsa"), before.data);
    rig_patch(&rig, API_JOB, "j", "spec:\n  tasks:\n" TASK("w", "2", ""));
    rig_settle(&rig);
    assert_string_equal(secret("id_rsa"), before.data);
    assert_true(hk_str_ends(hk_str(secret("config")),
                            "Host j-w-1 j-w-1.j\n  HostName j-w-1.j\n  Port 22\n"));
}

/* ---- a whole job with several plugins ---- */

#define TRAIN                                                                                      \
    "apiVersion: scheduling.volcano.sh/v1beta1\n"                                                  \
    "kind: Queue\n"                                                                                \
    "metadata: {name: q1}\n"                                                                       \
    "---\n"                                                                                        \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: Job\n"                                                                                  \
    "metadata: {name: train, namespace: d, uid: U, creationTimestamp: '2026-01-02T10:00:00Z'}\n"   \
    "spec:\n"                                                                                      \
    "  queue: q1\n"                                                                                \
    "  schedulerName: volcano\n"                                                                   \
    "  minAvailable: 3\n"                                                                          \
    "  plugins: {env: [], svc: [], ssh: [--ssh-private-key=k]}\n"                                  \
    "  tasks:\n" TASK("ps", "1", "") TASK("gpu-worker", "2", "")

#define KEY_REF(name)                                                                              \
    "{\"name\":\"" name "\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"train-svc\",\"key\":"   \
    "\"" name "\"}}}"

static void expect_json(const struct json *have, const char *want)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json doc;

    assert_int_equal(json_parse(hk_str(want), 0, &a, &doc, NULL), 0);
    if (!json_equal(have, &doc)) {
        json_write(have, &text);
        assert_string_equal(text.data, want);
    }
}

static void objects_of_a_job_as_in_the_example(void **state)
{
    const struct json *pod, *main, *group;

    rig_put(&rig, TRAIN);
    rig_enqueue(&rig);
    pod = rig_get(&rig, API_POD, "train-gpu-worker-1");
    expect_json(json_at(pod, "metadata.labels"),
                "{\"volcano.sh/job-name\":\"train\",\"volcano.sh/job-namespace\":\"d\","
                "\"volcano.sh/task-spec\":\"gpu-worker\",\"volcano.sh/task-index\":\"1\","
                "\"volcano.sh/queue-name\":\"q1\"}");
    expect_json(json_at(pod, "metadata.annotations"),
                "{\"scheduling.k8s.io/group-name\":\"train-U\",\"volcano.sh/job-name\":\"train\","
                "\"volcano.sh/task-spec\":\"gpu-worker\",\"volcano.sh/task-index\":\"1\","
                "\"volcano.sh/queue-name\":\"q1\",\"volcano.sh/job-version\":\"0\","
                "\"volcano.sh/job-retry-count\":\"0\","
                "\"volcano.sh/template-uid\":\"train-gpu-worker\"}");
    expect_json(json_at(pod, "metadata.ownerReferences"),
                "[{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\","
                "\"name\":\"train\",\"uid\":\"U\",\"controller\":true,"
                "\"blockOwnerDeletion\":true}]");
    expect_json(json_at(pod, "spec.hostname"), "\"train-gpu-worker-1\"");
    expect_json(json_at(pod, "spec.subdomain"), "\"train\"");
    expect_json(json_at(pod, "spec.schedulerName"), "\"volcano\"");
    main = json_item(json_at(pod, "spec.containers"), 0);
    expect_json(json_get(main, "env"),
                "[{\"name\":\"VK_TASK_INDEX\",\"value\":\"1\"},"
                "{\"name\":\"VC_TASK_INDEX\",\"value\":\"1\"}," KEY_REF("VC_PS_HOSTS") "," KEY_REF(
                    "VC_PS_NUM") "," KEY_REF("VC_GPU_WORKER_HOSTS") "," KEY_REF("VC_GPU_WORKER_"
                                                                                "NUM") "]");
    expect_json(json_get(main, "volumeMounts"),
                "[{\"name\":\"train-svc\",\"mountPath\":\"/etc/volcano\"},"
                "{\"name\":\"train-ssh\",\"mountPath\":\"/root/.ssh\",\"subPath\":\".ssh\"}]");
    group = rig_get(&rig, API_PODGROUP, "train-U");
    expect_json(json_at(group, "spec.minMember"), "3");
    expect_json(json_at(group, "spec.minTaskMember"), "{\"ps\":1,\"gpu-worker\":2}");
    expect_json(json_at(group, "spec.queue"), "\"q1\"");
    rig_run(&rig);
    rig_expect(&rig, API_JOB, "train", "status.state.phase", "\"Running\"");
    rig_expect(&rig, API_JOB, "train", "status.running", "3");
    rig_expect(&rig, API_JOB, "train", "status.pending", "");
    rig_expect(&rig, API_JOB, "train", "status.version", "");
    expect_json(json_at(rig_get(&rig, API_JOB, "train"), "status.taskStatusCount"),
                "{\"ps\":{\"phase\":{\"Running\":1}},\"gpu-worker\":{\"phase\":{\"Running\":2}}}");
    expect_json(json_at(rig_get(&rig, API_JOB, "train"), "status.controlledResources"),
                "{\"plugin-env\":\"env\",\"plugin-svc\":\"svc\",\"plugin-ssh\":\"ssh\"}");
    assert_int_equal(json_at(rig_get(&rig, API_JOB, "train"), "status.conditions")->len, 2);
}

#define test(name) cmocka_unit_test_setup_teardown(name, job_rig_setup, job_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(pods_get_what_the_reference_says),
        test(pytorch_workers_wait_for_the_master),
        test(ray_without_head_is_an_error),
        test(hcclrank_comes_after_pytorch),
        test(arguments_are_read_up_to_the_first_mistake),
        test(svc_objects),
        test(svc_flags),
        test(ray_service),
        test(ssh_keys_are_a_pair),
        test(ssh_takes_keys_of_the_user),
        test(ssh_keys_survive_a_restart_and_names_follow_scaling),
        test(objects_of_a_job_as_in_the_example),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/jobplugin", tests, NULL, NULL);
}
