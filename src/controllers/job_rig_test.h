// SPDX-License-Identifier: Apache-2.0
// Jobs for tests: pieces of YAML that make one, all called "j" in namespace "d", and functions for
// the steps in a job's life, which use one rig per test.
#pragma once

#include "controllers/rig_test.h"
#include "controllers/table.h"

#define QUEUE                                                                                      \
    "apiVersion: scheduling.volcano.sh/v1beta1\n"                                                  \
    "kind: Queue\n"                                                                                \
    "metadata: {name: q}\n"                                                                        \
    "---\n"

#define JOB_HEAD                                                                                   \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: Job\n"                                                                                  \
    "metadata: {name: j, namespace: d}\n"                                                          \
    "spec:\n"                                                                                      \
    "  queue: q\n"                                                                                 \
    "  schedulerName: volcano\n"

#define JOB(spec) JOB_HEAD "  maxRetry: 3\n" spec

#define TEMPLATE                                                                                   \
    "    template: {spec: {restartPolicy: Never, containers: [{name: main, image: i, resources: "  \
    "{requests: {cpu: 100m}}}]}}\n"

/* With a minimum of its own. */
#define TASK_MIN(name, replicas, min, more)                                                        \
    "  - name: " name "\n"                                                                         \
    "    replicas: " replicas "\n"                                                                 \
    "    minAvailable: " min "\n" TEMPLATE more

#define TASK(name, replicas, more) TASK_MIN(name, replicas, replicas, more)

#define COMMAND(action)                                                                            \
    "apiVersion: bus.volcano.sh/v1alpha1\n"                                                        \
    "kind: Command\n"                                                                              \
    "metadata: {name: c-" action ", namespace: d}\n"                                               \
    "action: " action "\n"                                                                         \
    "target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j}\n"

static const struct ctl_type *const job_rig_types[] = {&ctl_job};
static struct rig rig;

static inline int job_rig_setup(void **state)
{
    rig_init(&rig, job_rig_types, HK_LEN(job_rig_types));
    rig_put(&rig, QUEUE);
    rig_manager(&rig);
    return 0;
}

static inline int job_rig_teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

/* The job is let in, and its pods run. */
static inline void start(const char *job)
{
    rig_put(&rig, job);
    rig_enqueue(&rig);
    rig_run(&rig);
}

/* Nodes and scheduler do their part until nothing changes. */
static inline void live_on(void)
{
    for (int i = 0; i < 4; i++) {
        rig_reap(&rig);
        rig_enqueue(&rig);
        rig_run(&rig);
    }
}

#define expect(path, want) rig_expect(&rig, API_JOB, "j", path, want)
#define phases(want) rig_expect_phases(&rig, want)
#define pods(want) assert_string_equal(rig_names(&rig, API_POD), want)
