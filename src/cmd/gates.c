// SPDX-License-Identifier: Apache-2.0
// The table of gates. Messages are those of Kubernetes' featuregate package.
#include "cmd/gates.h"

#include "cmd/daemon.h"

static const struct {
    const char *name;
    bool on;
} rows[NGATES] = {
    [GATE_CRON_VOLCANO_JOB_SUPPORT] = {"CronVolcanoJobSupport", true},
    [GATE_CSI_STORAGE] = {"CSIStorage", false},
    [GATE_POD_DISRUPTION_BUDGETS_SUPPORT] = {"PodDisruptionBudgetsSupport", true},
    [GATE_PRIORITY_CLASS] = {"PriorityClass", true},
    [GATE_QUEUE_COMMAND_SYNC] = {"QueueCommandSync", true},
    [GATE_RESOURCE_TOPOLOGY] = {"ResourceTopology", true},
    [GATE_SCHEDULING_GATES_QUEUE_ADMISSION] = {"SchedulingGatesQueueAdmission", false},
    [GATE_VOLCANO_JOB_SUPPORT] = {"VolcanoJobSupport", true},
    [GATE_WORKLOAD_SUPPORT] = {"WorkLoadSupport", true},
};

struct gates gates_default(void)
{
    struct gates g = {0};

    for (unsigned k = 0; k < NGATES; k++) {
        g.on[k] = rows[k].on;
    }
    return g;
}

/* AllAlpha changes what nobody has named. */
static int set(struct gates *g, struct hk_str name, bool on, struct hk_err *err)
{
    const bool all = hk_str_is(name, "AllAlpha");

    for (unsigned k = 0; k < NGATES; k++) {
        if (hk_str_is(name, rows[k].name)) {
            g->on[k] = on;
            g->told[k] = true;
            return 0;
        }
        if (all && !g->told[k]) {
            g->on[k] = on;
        }
    }
    if (all || hk_str_is(name, "AllBeta")) { /* of which there are none */
        return 0;
    }
    return hk_fail(err, HK_EINVAL, "unrecognized feature gate: %.*s", HK_FMT(name));
}

static int take_pair(struct gates *g, struct hk_str pair, struct hk_err *err)
{
    static const struct option_row row = {.name = "feature-gates"};
    struct hk_str value = pair, name;
    HK_AUTO(hk_freep) char *word = NULL;
    bool on;

    hk_str_cut(&value, '=', &name);
    name = hk_str_trim(name);
    if (!value.s) {
        return hk_fail(err, HK_EINVAL, "missing bool value for %.*s", HK_FMT(name));
    }
    value = hk_str_trim(value);
    word = hk_strndup(value.s, value.n);
    if (daemon_take_bool(&row, word, &on, NULL) < 0) {
        return hk_fail(err, HK_EINVAL,
                       "invalid value of %.*s=%s, err: strconv.ParseBool: parsing \"%s\": invalid "
                       "syntax",
                       HK_FMT(name), word, word);
    }
    return set(g, name, on, err);
}

int gates_take(struct gates *g, const char *value, struct hk_err *err)
{
    struct hk_str rest = hk_str(value), pair;
    int rc = 0;

    while (rc == 0 && hk_str_cut(&rest, ',', &pair)) {
        pair = hk_str_trim(pair);
        rc = pair.n > 0 ? take_pair(g, pair, err) : 0;
    }
    return rc < 0 ? hk_wrap(err, rc, "option --feature-gates is '%s'", value) : 0;
}
