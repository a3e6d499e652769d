// SPDX-License-Identifier: Apache-2.0
// The configuration file, read with the test's own tables: one plugin with an option of every type,
// and plugins without options under Volcano's names.

#include "scheduler/conf.c"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

struct probe {
    int64_t number;
    double factor;
    bool on;
    struct hk_str word;
    int64_t wait_ns;
    struct opt_pairs weights;
    uint32_t rest; /* not an option: must stay zero */
};

static const struct opt probe_opts[] = {
    OPT(OPT_INT, struct probe, number, "probe.number", "-3", "a number"),
    OPT(OPT_FLOAT, struct probe, factor, "probe.factor", "1.2", "a factor"),
    OPT(OPT_BOOL, struct probe, on, "probe.on", "true", "a switch"),
    OPT(OPT_STR, struct probe, word, "probe.weights", "cpu", "a word"),
    OPT(OPT_DURATION, struct probe, wait_ns, "probe.wait", "1m", "a time"),
    OPT(OPT_PAIRS, struct probe, weights, "probe.weights.", NULL, "weights by name"),
    {.key = "probe.old", .type = OPT_IGNORED},
};

static void enqueue_run(struct session *ssn, const void *args)
{
}

struct enqueue_args {
    int64_t domains;
    bool cache;
};

static const struct opt enqueue_opts[] = {
    OPT(OPT_INT, struct enqueue_args, domains, "maxDomains", "8", "domains"),
    OPT(OPT_BOOL, struct enqueue_args, cache, "cache", "true", "cache"),
};

static const struct plugin plugins[] = {
    {.name = "probe",
     .state_size = sizeof(struct probe),
     .opts = probe_opts,
     .nopt = HK_LEN(probe_opts)},
    {.name = "priority"},
    {.name = "gang"},
    {.name = "conformance"},
    {.name = "overcommit"},
    {.name = "drf"},
    {.name = "predicates"},
    {.name = "proportion"},
    {.name = "nodeorder"},
};

static const struct action actions[] = {
    {.name = "enqueue",
     .args_size = sizeof(struct enqueue_args),
     .opts = enqueue_opts,
     .nopt = HK_LEN(enqueue_opts),
     .run = enqueue_run},
    {.name = "allocate", .run = enqueue_run},
    {.name = "backfill", .run = enqueue_run},
};

const struct plugin *plugin_find(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(plugins); i++) {
        if (hk_str_is(name, plugins[i].name)) {
            return &plugins[i];
        }
    }
    return NULL;
}

const struct action *action_find(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(actions); i++) {
        if (hk_str_is(name, actions[i].name)) {
            return &actions[i];
        }
    }
    return NULL;
}

static struct conf *parse(const char *text)
{
    struct hk_err err = {0};
    struct conf *c = NULL;

    if (conf_parse(hk_str(text), &c, &err) < 0) {
        fail_msg("refused: %s\n%s", err.text, text);
    }
    return c;
}

static void the_default_has_three_actions_and_two_tiers(void **state)
{
    static const struct {
        const char *name;
        uint32_t tier;
    } want[] = {
        {"priority", 0}, {"gang", 0},       {"conformance", 0}, {"overcommit", 1},
        {"drf", 1},      {"predicates", 1}, {"proportion", 1},  {"nodeorder", 1},
    };
    HK_AUTO(conf_freep) struct conf *c = parse(conf_default_text);

    assert_int_equal(c->actions.len, 3);
    assert_string_equal(c->actions.at[0].a->name, "enqueue");
    assert_string_equal(c->actions.at[1].a->name, "allocate");
    assert_string_equal(c->actions.at[2].a->name, "backfill");
    assert_true(c->has_enqueue);
    assert_int_equal(c->ntier, 2);
    assert_int_equal(c->warnings.len, 0);
    assert_int_equal(c->plugins.len, HK_LEN(want));
    for (uint32_t i = 0; i < HK_LEN(want); i++) {
        assert_string_equal(c->plugins.at[i].p->name, want[i].name);
        assert_int_equal(c->plugins.at[i].tier, want[i].tier);
        assert_true(c->plugins.at[i].off == 0 && !c->plugins.at[i].hierarchy);
    }
}

static void what_volcano_refuses_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "line 1: no 'actions', want names such as \"enqueue, allocate, backfill\""},
        {"tiers: []\n", "line 1: no 'actions', want names such as \"enqueue, allocate, backfill\""},
        {"actions:\n", "line 1: no 'actions', want names such as \"enqueue, allocate, backfill\""},
        {"actions: ''\n", "line 1: 'actions' is empty"},
        {"\nactions: allocate, alocate\n", "line 2: unknown action 'alocate'"},
        {"actions: 'allocate,'\n", "line 1: unknown action ''"},
        {"actions: [allocate]\n", "line 1: 'actions' is of type array, want string"},
        {"- allocate\n", "line 1: the configuration is of type array, want object"},
        {"actions: allocate\ntiers: 3\n", "line 2: 'tiers' is of type integer, want array"},
        {"actions: allocate\ntiers:\n- gang\n", "line 3: tier is of type string, want object"},
        {"actions: allocate\ntiers:\n- plugins:\n  - gang\n",
         "line 4: plugin is of type string, want object"},
        {"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrder: \"true\"\n",
         "line 5: 'enableJobOrder' is of type string, want boolean"},
        {"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enabledClusterOrder: 1\n",
         "line 5: 'enabledClusterOrder' is of type integer, want boolean"},
        {"actions: allocate\ntiers:\n- plugins:\n  - name: drf\n    enableHierarchy: \"true\"\n",
         "line 5: 'enableHierarchy' is of type string, want boolean"},
        {"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments: [1]\n",
         "line 5: 'arguments' is of type array, want object"},
        {"actions: allocate\ntiers:\n- plugins:\n  - name: proportion\n  - name: drf\n"
         "    enableHierarchy: true\n",
         "line 5: proportion and drf with hierarchy enabled conflicts"},
        {"actions: allocate\nconfigurations:\n- name: [x]\n",
         "line 3: 'name' is of type array, want string"},
        {"actions: allocate\nmetrics:\n  type: prometheus\n  address: [x]\n",
         "line 4: metrics: 'address' is of type array, want string"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct hk_err err = {0};
        struct conf *c = NULL;
        assert_int_equal(conf_parse(hk_str(cases[k].text), &c, &err), -HK_EINVAL);
        assert_string_equal(err.text, cases[k].want);
        assert_null(c);
    }
}

static void broken_yaml_is_refused_with_its_line(void **state)
{
    struct hk_err err = {0};
    struct conf *c = NULL;

    assert_true(conf_parse(HK_STR("actions: allocate\ntiers: [\n"), &c, &err) < 0);
    assert_true(strncmp(err.text, "line ", 5) == 0);
}

static void what_volcano_tolerates_gives_a_warning_with_its_line(void **state)
{
#define HEAD "actions: allocate, enqueue\n"
#define TIER HEAD "tiers:\n- plugins:\n"
#define PROBE TIER "  - name: probe\n    arguments:\n"
    static const struct {
        const char *text;
        uint32_t line;
        const char *want;
    } cases[] = {
        {TIER "  - name: tdm\n", 4, "plugin 'tdm' is not available in this build"},
        {TIER "  - name: gang\n  - name: ganng\n", 5, "unknown plugin 'ganng'"},
        {TIER "  - enableJobOrder: true\n", 4, "unknown plugin ''"},
        {TIER "  - name: gang\n    overcommit-factor: 1\n", 5,
         "plugin 'gang' has no setting 'overcommit-factor'; its options belong under 'arguments'"},
        {PROBE "      probe.nmber: 1\n", 6, "plugin 'probe' has no argument 'probe.nmber'"},
        {PROBE "      probe.number: \"1\"\n", 6,
         "argument 'probe.number' of plugin 'probe' is of type string, want integer: ignored"},
        {PROBE "      probe.number: 1.5\n", 6,
         "argument 'probe.number' of plugin 'probe' is of type number, want integer: ignored"},
        {PROBE "      probe.number: 2147483648\n", 6,
         "argument 'probe.number' of plugin 'probe' is 2147483648, want an integer from "
         "-2147483648 to 2147483647: ignored"},
        {PROBE "      probe.weights.gpu: -9223372036854775808\n", 6,
         "argument 'probe.weights.gpu' of plugin 'probe' is -9223372036854775808, want an integer "
         "from -2147483648 to 2147483647: ignored"},
        {PROBE "      probe.factor: many\n", 6,
         "argument 'probe.factor' of plugin 'probe' is of type string, want number: ignored"},
        {PROBE "      probe.on: 'no'\n", 6,
         "argument 'probe.on' of plugin 'probe' is of type string, want boolean: ignored"},
        {PROBE "      probe.on: 1\n", 6,
         "argument 'probe.on' of plugin 'probe' is of type integer, want boolean: ignored"},
        {PROBE "      probe.weights: 7\n", 6,
         "argument 'probe.weights' of plugin 'probe' is of type integer, want string: ignored"},
        {PROBE "      probe.wait: 5\n", 6,
         "argument 'probe.wait' of plugin 'probe' is of type integer, want duration such as 1h30m: "
         "ignored"},
        {PROBE "      probe.wait: soon\n", 6,
         "argument 'probe.wait' of plugin 'probe' is of type string, want duration such as 1h30m: "
         "ignored"},
        {PROBE "      probe.weights.gpu: 'x'\n", 6,
         "argument 'probe.weights.gpu' of plugin 'probe' is of type string, want integer: ignored"},
        {HEAD "configurations:\n- name: alocate\n", 3, "configuration of unknown action 'alocate'"},
        {HEAD "configurations:\n- name: enqueue\n  arguments:\n    maxDomains: x\n", 5,
         "argument 'maxDomains' of action 'enqueue' is of type string, want integer: ignored"},
        {HEAD "---\nactions: backfill\n", 3, "only the first document is read"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(conf_freep) struct conf *c = parse(cases[k].text);
        if (c->warnings.len != 1) {
            fail_msg("%u warnings, want 1\n%s", c->warnings.len, cases[k].text);
        }
        assert_string_equal(c->warnings.at[0].text, cases[k].want);
        assert_int_equal(c->warnings.at[0].line, cases[k].line);
    }
}

static void an_unknown_plugin_keeps_its_place_without_a_body(void **state)
{
    HK_AUTO(conf_freep) struct conf *c = parse(TIER "  - name: tdm\n  - name: gang\n");

    assert_int_equal(c->plugins.len, 2);
    assert_null(c->plugins.at[0].p);
    assert_non_null(c->plugins.at[1].p);
}

static void options_not_given_keep_their_defaults(void **state)
{
    HK_AUTO(conf_freep) struct conf *c = parse(TIER "  - name: probe\n");
    const struct probe *p = c->plugins.at[0].options;

    assert_int_equal(p->number, -3);
    assert_true(p->factor == 1.2);
    assert_true(p->on);
    assert_true(hk_str_is(p->word, "cpu"));
    assert_int_equal(p->wait_ns, 60000000000);
    assert_int_equal(p->weights.n, 0);
    assert_int_equal(p->rest, 0);
}

static void options_of_every_type_are_read(void **state)
{
    HK_AUTO(conf_freep)
    struct conf *c = parse(PROBE "      probe.number: 12\n"
                                 "      probe.factor: 2\n"
                                 "      probe.on: \"f\"\n"
                                 "      probe.weights: nvidia.com/gpu\n"
                                 "      probe.weights.nvidia.com/gpu: 5\n"
                                 "      probe.weights.cpu: -1\n"
                                 "      probe.wait: 1h30m\n"
                                 "      probe.old: [anything]\n");
    const struct probe *p = c->plugins.at[0].options;

    assert_int_equal(c->warnings.len, 0);
    assert_int_equal(p->number, 12);
    assert_true(p->factor == 2);
    assert_false(p->on);
    assert_true(hk_str_is(p->word, "nvidia.com/gpu"));
    assert_int_equal(p->wait_ns, 5400000000000);
    assert_int_equal(p->weights.n, 2);
    assert_true(hk_str_is(p->weights.at[0].name, "nvidia.com/gpu"));
    assert_int_equal(p->weights.at[0].v, 5);
    assert_true(hk_str_is(p->weights.at[1].name, "cpu"));
    assert_int_equal(p->weights.at[1].v, -1);
}

static void a_wrong_type_leaves_the_default(void **state)
{
    HK_AUTO(conf_freep)
    struct conf *c = parse(PROBE "      probe.number: '12'\n"
                                 "      probe.factor: [2]\n"
                                 "      probe.on: maybe\n"
                                 "      probe.weights: 1\n"
                                 "      probe.wait: long\n");
    const struct probe *p = c->plugins.at[0].options;

    assert_int_equal(c->warnings.len, 5);
    assert_int_equal(p->number, -3);
    assert_true(p->factor == 1.2);
    assert_true(p->on);
    assert_true(hk_str_is(p->word, "cpu"));
    assert_int_equal(p->wait_ns, 60000000000);
}

static void a_switch_turns_off_all_hooks_it_names(void **state)
{
    HK_AUTO(conf_freep)
    struct conf *c = parse(TIER "  - name: gang\n"
                                "    enablePredicate: false\n"
                                "    enableJobEnqueued: no\n"
                                "    enableJobOrder: true\n"
                                "    enableTaskOrder:\n"
                                "    enableTargetJob: false\n"
                                "  - name: drf\n"
                                "    enableHierarchy: true\n");

    assert_int_equal(c->plugins.at[0].off, 1ULL << HOOK_PRE_PREDICATE | 1ULL << HOOK_FILTER |
                                               1ULL << HOOK_JOB_ENQUEUEABLE |
                                               1ULL << HOOK_JOB_ENQUEUED);
    assert_false(c->plugins.at[0].hierarchy);
    assert_int_equal(c->plugins.at[1].off, 0);
    assert_true(c->plugins.at[1].hierarchy);
    assert_int_equal(c->warnings.len, 0);
}

static void drf_and_proportion_may_stand_in_different_tiers(void **state)
{
    HK_AUTO(conf_freep)
    struct conf *c = parse(TIER "  - name: drf\n"
                                "    enableHierarchy: true\n"
                                "- plugins:\n"
                                "  - name: proportion\n");

    assert_int_equal(c->ntier, 2);
}

static void a_plugin_listed_twice_has_its_later_arguments_and_its_first_hierarchy(void **state)
{
    HK_AUTO(conf_freep)
    struct conf *c = parse(TIER "  - name: probe\n"
                                "    enableHierarchy: true\n"
                                "    arguments: {probe.number: 1}\n"
                                "- plugins:\n"
                                "  - name: probe\n"
                                "    enableJobOrder: false\n"
                                "    arguments: {probe.number: 2}\n");

    for (uint32_t i = 0; i < 2; i++) {
        const struct probe *p = c->plugins.at[i].options;
        assert_int_equal(p->number, 2);
        assert_true(c->plugins.at[i].hierarchy);
    }
    assert_int_equal(c->plugins.at[0].off, 0);
    assert_int_equal(c->plugins.at[1].off, 1ULL << HOOK_JOB_ORDER);
}

static void the_first_section_of_an_action_gives_its_arguments(void **state)
{
    HK_AUTO(conf_freep)
    struct conf *c = parse("actions: ' allocate ,enqueue, enqueue'\n"
                           "configurations:\n"
                           "- name: enqueue\n"
                           "  arguments:\n"
                           "    maxDomains: 2\n"
                           "- name: enqueue\n"
                           "  arguments:\n"
                           "    maxDomains: 3\n"
                           "    cache: false\n");
    const struct enqueue_args *args = c->actions.at[1].args;

    assert_int_equal(c->actions.len, 3);
    assert_int_equal(args->domains, 2);
    assert_true(args->cache);
    assert_ptr_equal(c->actions.at[2].args, args);
    assert_int_equal(c->warnings.len, 0);
}

static void enqueue_is_noticed_when_missing(void **state)
{
    HK_AUTO(conf_freep) struct conf *c = parse("actions: allocate\n");

    assert_false(c->has_enqueue);
    assert_int_equal(c->ntier, 0);
}

static void metrics_and_unknown_top_level_keys_are_accepted(void **state)
{
    HK_AUTO(conf_freep)
    struct conf *c = parse("actions: allocate\n"
                           "nonsense: 3\n"
                           "metrics:\n"
                           "  type: prometheus\n"
                           "  interval: 30s\n"
                           "  tls.insecureSkipVerify: \"true\"\n");

    assert_int_equal(c->warnings.len, 1);
    assert_int_equal(c->warnings.at[0].line, 2);
    assert_string_equal(c->warnings.at[0].text, "unknown key 'nonsense' is ignored");
}

static void the_number_of_entries_is_bounded(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};
    struct conf *c = NULL;

    hk_buf_adds(&text, "actions: allocate");
    for (int i = 0; i < CONF_MAX_ENTRIES; i++) {
        hk_buf_adds(&text, ",allocate");
    }
    assert_int_equal(conf_parse(hk_buf_str(&text), &c, &err), -HK_ELIMIT);
    assert_string_equal(err.text, "line 1: more than 256 actions");
    hk_buf_clear(&text);
    hk_buf_adds(&text, TIER);
    for (int i = 0; i <= CONF_MAX_ENTRIES; i++) {
        hk_buf_adds(&text, "  - name: gang\n");
    }
    assert_int_equal(conf_parse(hk_buf_str(&text), &c, &err), -HK_ELIMIT);
    assert_string_equal(err.text, "line 260: more than 256 plugins");
}

/* ---- reloading the file ---- */

static void write_file(const char *path, const char *text)
{
    struct hk_err err = {0};

    if (hk_write_file(path, hk_str(text), &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void a_good_file_replaces_the_configuration_and_a_bad_one_does_not(void **state)
{
    char dir[] = "/tmp/conf_test.XXXXXX";
    struct conf_file f;
    struct hk_err err = {0};
    char path[64], want[128];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/conf", dir);
    write_file(path, "actions: allocate\n");
    assert_int_equal(conf_file_open(&f, path, &err), 0);
    assert_int_equal(f.now->actions.len, 1);
    assert_int_equal(conf_file_reload(&f, &err), 0);

    write_file(path, "actions: allocate, backfill\n");
    assert_int_equal(conf_file_reload(&f, &err), 1);
    assert_int_equal(f.now->actions.len, 2);

    write_file(path, "actions: dig\n");
    assert_int_equal(conf_file_reload(&f, &err), -HK_EINVAL);
    snprintf(want, sizeof(want), "scheduler configuration '%s': line 1: unknown action 'dig'",
             path);
    assert_string_equal(err.text, want);
    assert_int_equal(f.now->actions.len, 2);
    assert_int_equal(conf_file_reload(&f, &err), 0); /* reported only once */

    write_file(path, "actions: enqueue\n");
    assert_int_equal(conf_file_reload(&f, &err), 1);
    assert_int_equal(unlink(path), 0);
    assert_true(conf_file_reload(&f, &err) < 0);
    assert_true(f.now->has_enqueue);
    conf_file_fini(&f);
    rmdir(dir);
}

static void a_missing_or_bad_file_leaves_the_default_in_force(void **state)
{
    struct conf_file f;
    struct hk_err err = {0};

    assert_true(conf_file_open(&f, "/nonexistent/conf", &err) < 0);
    assert_non_null(strstr(err.text, "/nonexistent/conf"));
    assert_int_equal(f.now->actions.len, 3);
    conf_file_fini(&f);
}

static void without_a_path_the_default_holds(void **state)
{
    struct conf_file f;

    assert_int_equal(conf_file_open(&f, NULL, NULL), 0);
    assert_int_equal(f.now->actions.len, 3);
    assert_int_equal(conf_file_reload(&f, NULL), 0);
    conf_file_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_has_three_actions_and_two_tiers),
        cmocka_unit_test(what_volcano_refuses_is_refused_with_its_line),
        cmocka_unit_test(broken_yaml_is_refused_with_its_line),
        cmocka_unit_test(what_volcano_tolerates_gives_a_warning_with_its_line),
        cmocka_unit_test(an_unknown_plugin_keeps_its_place_without_a_body),
        cmocka_unit_test(options_not_given_keep_their_defaults),
        cmocka_unit_test(options_of_every_type_are_read),
        cmocka_unit_test(a_wrong_type_leaves_the_default),
        cmocka_unit_test(a_switch_turns_off_all_hooks_it_names),
        cmocka_unit_test(drf_and_proportion_may_stand_in_different_tiers),
        cmocka_unit_test(a_plugin_listed_twice_has_its_later_arguments_and_its_first_hierarchy),
        cmocka_unit_test(the_first_section_of_an_action_gives_its_arguments),
        cmocka_unit_test(enqueue_is_noticed_when_missing),
        cmocka_unit_test(metrics_and_unknown_top_level_keys_are_accepted),
        cmocka_unit_test(the_number_of_entries_is_bounded),
        cmocka_unit_test(a_good_file_replaces_the_configuration_and_a_bad_one_does_not),
        cmocka_unit_test(a_missing_or_bad_file_leaves_the_default_in_force),
        cmocka_unit_test(without_a_path_the_default_holds),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
