// SPDX-License-Identifier: Apache-2.0
// Jobs from command lines, and the parsing of option values.

#include "cli/make.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Compares the job as YAML, or the error. */
static void check(const struct make_run *r, const char *want)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_err err = {0};
    struct json job = {0};

    if (make_run(r, &mem, &job, &err) < 0) {
        hk_buf_adds(&out, err.text);
    } else {
        yaml_write(&job, &out);
    }
    assert_string_equal(out.data, want);
}

#define HEAD                                                                                       \
    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: j\n  namespace: ns\n"    \
    "spec:\n"

static void test_the_least(void **state)
{
    static const char *const argv[] = {"true"};
    const struct make_run r = {
        .name = "j", .ns = "ns", .image = "i", .count = 1, .min = 1, .argv = argv, .argc = 1};

    check(&r, HEAD "  minAvailable: 1\n"
                   "  minSuccess: 1\n"
                   "  plugins:\n"
                   "    env: []\n"
                   "  schedulerName: volcano\n"
                   "  tasks:\n"
                   "  - name: task\n"
                   "    replicas: 1\n"
                   "    template:\n"
                   "      spec:\n"
                   "        containers:\n"
                   "        - command:\n"
                   "          - \"true\"\n"
                   "          image: i\n"
                   "          name: main\n"
                   "        restartPolicy: Never\n");
}

static void test_everything(void **state)
{
    static const char *const argv[] = {"./t", "{index}"};
    static const char *const plugins[] = {"svc", "pytorch=--port=1", "pytorch=--master=task"};
    static const struct make_env env[] = {{"A", "b $(c) $d"}};
    const struct make_run r = {.name = "j",
                               .ns = "ns",
                               .image = "i",
                               .queue = "q",
                               .workdir = "/w",
                               .priority = "high",
                               .count = 4,
                               .min = 4,
                               .cpu = "500m",
                               .memory = "1024Mi",
                               .gpu = "1",
                               .env = env,
                               .nenv = 1,
                               .plugins = plugins,
                               .nplugin = 3,
                               .retries = 2,
                               .time_s = 90,
                               .argv = argv,
                               .argc = 2};

    check(&r, HEAD "  maxRetry: 3\n"
                   "  minAvailable: 4\n"
                   "  minSuccess: 4\n"
                   "  plugins:\n"
                   "    env: []\n"
                   "    pytorch:\n"
                   "    - --port=1\n"
                   "    - --master=task\n"
                   "    svc: []\n"
                   "  policies:\n"
                   "  - action: RestartJob\n"
                   "    event: PodFailed\n"
                   "  priorityClassName: high\n"
                   "  queue: q\n"
                   "  runningEstimate: 90s\n"
                   "  schedulerName: volcano\n"
                   "  tasks:\n"
                   "  - name: task\n"
                   "    replicas: 4\n"
                   "    template:\n"
                   "      spec:\n"
                   "        activeDeadlineSeconds: 90\n"
                   "        containers:\n"
                   "        - command:\n"
                   "          - ./t\n"
                   "          - $(VC_TASK_INDEX)\n"
                   "          env:\n"
                   "          - name: A\n"
                   "            value: b $$(c) $$d\n"
                   "          image: i\n"
                   "          name: main\n"
                   "          resources:\n"
                   "            limits:\n"
                   "              memory: 1Gi\n"
                   "              nvidia.com/gpu: \"1\"\n"
                   "            requests:\n"
                   "              cpu: 500m\n"
                   "              memory: 1Gi\n"
                   "              nvidia.com/gpu: \"1\"\n"
                   "          workingDir: /w\n"
                   "        restartPolicy: Never\n");
}

static void test_words_of_the_command(void **state)
{
    static const struct {
        const char *typed;
        bool literal;
        const char *want;
    } cases[] = {
        {"part-{index}-of-{count}", false, "part-$(VC_TASK_INDEX)-of-8"},
        {"{name}/{job}", false, "j/j"},
        {"{index}", true, "{index}"},
        {"{}{other}{index", false, "{}{other}{index"},
        {"$HOME $(date) $$ 5$", false, "$$HOME $$(date) $$$$ 5$$"},
        {"", false, ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        const struct make_run r = {.name = "j",
                                   .ns = "ns",
                                   .image = "i",
                                   .count = 8,
                                   .min = 1,
                                   .literal = cases[i].literal,
                                   .argv = &cases[i].typed,
                                   .argc = 1};
        struct json job;

        assert_int_equal(make_run(&r, &mem, &job, NULL), 0);
        const struct json *task = json_item(json_at(&job, "spec.tasks"), 0);
        const struct json *c = json_item(json_at(task, "template.spec.containers"), 0);
        const struct hk_str word = json_str(json_item(json_get(c, "command"), 0), HK_STR("?"));
        if (!hk_str_is(word, cases[i].want)) {
            fail_msg("'%s' became '%.*s', want '%s'", cases[i].typed, HK_FMT(word), cases[i].want);
        }
    }
}

#define TASK(name, replicas) "  - name: " name "\n    replicas: " replicas "\n"
#define TEMPLATE(word)                                                                             \
    "    template:\n"                                                                              \
    "      spec:\n"                                                                                \
    "        containers:\n"                                                                        \
    "        - command:\n"                                                                         \
    "          - " word "\n"                                                                       \
    "          image: i\n"                                                                         \
    "          name: main\n"                                                                       \
    "        restartPolicy: Never\n"

static void test_ranks(void **state)
{
    static const char *const argv[] = {"{index}"}, *const plugins[] = {"pytorch"};
    struct make_run r = {.name = "j",
                         .ns = "ns",
                         .image = "i",
                         .count = 3,
                         .min = 3,
                         .plugins = plugins,
                         .nplugin = 1,
                         .argv = argv,
                         .argc = 1};

    check(&r, HEAD "  minAvailable: 3\n  minSuccess: 3\n  plugins:\n    env: []\n    pytorch: []\n"
                   "  schedulerName: volcano\n"
                   "  tasks:\n" TASK("master", "1") TEMPLATE("$(RANK)") TASK("worker", "2")
                       TEMPLATE("$(RANK)"));
    r.count = r.min = 1;
    check(&r, HEAD "  minAvailable: 1\n  minSuccess: 1\n  plugins:\n    env: []\n    pytorch: []\n"
                   "  schedulerName: volcano\n"
                   "  tasks:\n" TASK("master", "1") TEMPLATE("$(RANK)"));
}

static void test_plugins_find_the_task(void **state)
{
    static const char *const argv[] = {"x"}, *const plugins[] = {"tensorflow", "hcclrank"};
    const struct make_run r = {.name = "j",
                               .ns = "ns",
                               .image = "i",
                               .count = 2,
                               .min = 1,
                               .plugins = plugins,
                               .nplugin = 2,
                               .argv = argv,
                               .argc = 1};

    check(&r, HEAD "  minAvailable: 1\n  minSuccess: 2\n  plugins:\n    env: []\n"
                   "    hcclrank:\n    - --worker=task\n    tensorflow:\n    - --worker=task\n"
                   "  schedulerName: volcano\n"
                   "  tasks:\n"
                   "  - minAvailable: 1\n    name: task\n    replicas: 2\n" TEMPLATE("x"));
}

static void test_refusals(void **state)
{
    static const char *const argv[] = {"x"}, *const plugins[] = {"=a"}, *const mpi[] = {"mpi"};
    struct make_run r = {.name = "j", .ns = "ns", .count = 1, .min = 1, .argv = argv, .argc = 1};

    r.image = "i";
    r.cpu = "lots";
    check(&r, "--cpu is 'lots', want an amount such as 2, 500m or 4Gi");
    r.cpu = "-1";
    check(&r, "--cpu is '-1', want an amount such as 2, 500m or 4Gi");
    r.cpu = NULL;
    r.plugins = plugins;
    r.nplugin = 1;
    check(&r, "--plugin is '=a', want NAME or NAME=ARGUMENT");
    r.plugins = mpi;
    check(&r,
          "the plugin 'mpi' wants tasks with different commands: write a manifest and use 'hekla "
          "apply', or name the task with mpi=--master=task");
}

static void test_names(void **state)
{
    static const struct {
        const char *command, *stem;
    } cases[] = {
        {"./train.sh", "train-"},
        {"/usr/bin/python3", "python3-"},
        {"My_Script--v2.py", "my-script-v2-"},
        {"7zip", "run-"},
        {"...", "run-"},
        {"a-very-long-name-that-goes-on-and-on-for-ever-and-ever",
         "a-very-long-name-that-goes-on-and-on-for-"},
    };
    struct hk_rand rand;

    hk_rand_seed(&rand, 7);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
        make_run_name(cases[i].command, &rand, &name);
        if (!hk_str_starts(hk_buf_str(&name), cases[i].stem) ||
            name.len != strlen(cases[i].stem) + 5) {
            fail_msg("'%s' became '%s', want '%s' and five letters", cases[i].command, name.data,
                     cases[i].stem);
        }
    }
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t s; /* 0: refused */
    } cases[] = {
        {"90s", 90},   {"1h30m", 5400},    {"1500ms", 2},
        {"2:30", 150}, {"01:00:00", 3600}, {"1-12:00:00", 129600},
        {"0-0:5", 5},  {"5", 0},           {"", 0},
        {"-5s", 0},    {"1:2:3:4", 0},     {"1-", 0},
        {"a:b", 0},    {"0s", 0},          {"1-5", 0},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        int64_t s = -1;
        const int rc = make_run_time(cases[i].text, &s, &err);
        if ((rc < 0) != (cases[i].s == 0) || (rc == 0 && s != cases[i].s)) {
            fail_msg("'%s': %d, %lld, want %lld", cases[i].text, rc, (long long)s,
                     (long long)cases[i].s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_words_of_the_command),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_plugins_find_the_task),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_times),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
