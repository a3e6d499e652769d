// SPDX-License-Identifier: Apache-2.0
// Shared by the meter files only.
#pragma once

#include "base/prom.h"
#include "scheduler/meter.h"
#include "scheduler/session.h"

#define MS(ns) ((double)(ns) / 1e6)

/* Volcano counts the transactions of these; shuffle, the last, has none. */
enum { METER_NEVICTING = 4 };
extern const char *const meter_evicting[QUEUE_NEVICTING];

struct meter {
    struct hk_clock *clock;
    struct hk_hist session, open, job;
    struct hk_hist points[METER_NPOINTS], stages[METER_NSTAGES];
    struct meter_plugin {
        const struct plugin *p;
        struct hk_hist open, close;
    } * plugins;
    struct meter_action {
        const struct action *a;
        struct hk_hist run;
    } * actions;
    uint32_t nplugin, naction;
    uint64_t attempts[METER_NRESULTS];
    uint64_t preempted, evicted[METER_NEVICTING];
    uint32_t victims;
};
