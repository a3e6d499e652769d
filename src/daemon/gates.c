// SPDX-License-Identifier: Apache-2.0
// The table of feature gates. Messages are those of Kubernetes' featuregate package.
#include "daemon/gates.h"

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

/* AllAlpha sets the gates that were not named. */
static int gates_set_one(struct gates *g, struct hk_str name, bool on, struct hk_err *err)
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
    if (all || hk_str_is(name, "AllBeta")) { /* there are none */
        return 0;
    }
    return hk_fail(err, HK_EINVAL, "unrecognized feature gate: %.*s", HK_FMT(name));
}

static int parse_gate(struct gates *g, struct hk_str pair, struct hk_err *err)
{
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
    if (!option_parse_bool(word, &on)) {
        return hk_fail(err, HK_EINVAL,
                       "invalid value of %.*s=%s, err: strconv.ParseBool: parsing \"%s\": invalid "
                       "syntax",
                       HK_FMT(name), word, word);
    }
    return gates_set_one(g, name, on, err);
}

int gates_parse(void *at, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct hk_str rest = hk_str(value), pair;

    while (hk_str_cut(&rest, ',', &pair)) {
        pair = hk_str_trim(pair);
        const int rc = pair.n > 0 ? parse_gate(at, pair, err) : 0;
        if (rc < 0) {
            return hk_wrap(err, rc, "option --%s is '%s'", row->name, value);
        }
    }
    return 0;
}
