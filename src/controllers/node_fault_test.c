// SPDX-License-Identifier: Apache-2.0
// The loss of a node with faults: a story runs once without faults, then again for every call of
// the controllers and every way in which that call can fail. The final nodes and pods must be the
// same.
#include "base/log.h"
#include "controllers/fault_rig_test.h"
#include "controllers/node_rig_test.h"

static const struct ctl_type *const types[] = {&ctl_node_lifecycle, &ctl_node_eviction,
                                               &ctl_node_podgc};

/* n2 stays alive: this process runs it. */
static bool is_n2(void *ctx, struct hk_str name)
{
    return hk_str_is(name, "n2");
}

static void begin(struct fault_rig *f)
{
    manager_free(f->rig->m);
    f->rig->conf.is_own_node = is_n2;
    node_rig_node(f->rig, "n1");
    node_rig_node(f->rig, "n2");
    node_rig_pod(f->rig, "a", "n1", NODE_RIG_TOLERATES("20"));
    node_rig_pod(f->rig, "b", "n2", NODE_RIG_TOLERATES("20"));
    rig_manager(f->rig);
    fault_rig_pass(f);
    fault_rig_pass(f); /* a hundred seconds each */
}

static void play_comes_back(struct fault_rig *f)
{
    begin(f);
    node_rig_condition(f->rig, "n1", "Ready", "True");
    rig_remove(f->rig, API_POD, "a"); /* the node confirms the end */
    for (int i = 0; i < 100; i++) {
        int64_t next_ns;

        node_rig_renew(f->rig, "n1");
        while (fault_rig_step(f, &next_ns)) {
        }
        rig_set_now(f->rig, f->rig->clock.now_ns + 1000000000);
    }
}

static void play_is_deleted(struct fault_rig *f)
{
    begin(f);
    rig_remove(f->rig, API_NODE, "n1");
    fault_rig_pass(f);
    fault_rig_pass(f);
}

static void play_is_off(struct fault_rig *f)
{
    begin(f);
    rig_patch(f->rig, API_NODE, "n1",
              "spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}");
    fault_rig_pass(f);
    fault_rig_pass(f);
}

static void describe(struct hk_buf *out)
{
    static const char *const pods[] = {"a", "b"}, *const nodes[] = {"n1", "n2"};

    for (size_t i = 0; i < HK_LEN(nodes); i++) {
        const struct json *node = rig_get(&rig, API_NODE, nodes[i]);
        const struct json *ready = node_rig_find(node, "Ready");

        hk_buf_addf(out, "%s %.*s [", nodes[i],
                    HK_FMT(json_str(json_get(ready, "status"), HK_STR("gone"))));
        if (node) {
            HK_AUTO(hk_buf_fini) struct hk_buf taints = {0};

            node_rig_taints(&rig, nodes[i], &taints);
            hk_buf_adds(out, taints.data ? taints.data : "");
        }
        hk_buf_adds(out, "] ");
    }
    for (size_t i = 0; i < HK_LEN(pods); i++) {
        const struct json *pod = rig_get(&rig, API_POD, pods[i]);

        hk_buf_addf(out, "%s %s ", pods[i],
                    !pod                                     ? "gone"
                    : node_rig_is_terminating(&rig, pods[i]) ? "terminating"
                                                             : "there");
    }
}

static void stories(void **state)
{
    static const struct {
        const char *name, *want;
        void (*play)(struct fault_rig *f);
    } all[] = {
        {"dies",
         "n1 Unknown [unreachable:NoSchedule unreachable:NoExecute] n2 True [] a terminating b "
         "there ",
         begin},
        {"comes back", "n1 True [] n2 True [] a gone b there ", play_comes_back},
        {"is deleted", "n1 gone [] n2 True [] a gone b there ", play_is_deleted},
        {"is off",
         "n1 Unknown [out-of-service:NoExecute unreachable:NoSchedule unreachable:NoExecute] n2 "
         "True [] a gone b there ",
         play_is_off},
    };

    for (size_t i = 0; i < HK_LEN(all); i++) {
        const struct fault_story s = {.rig = &rig,
                                      .types = types,
                                      .ntype = HK_LEN(types),
                                      .play = all[i].play,
                                      .describe = describe};

        print_message("# %s\n", all[i].name);
        fault_rig_run_all_faults(&s, all[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stories)};

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/node_fault", tests, NULL, NULL);
}
