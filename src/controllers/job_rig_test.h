// SPDX-License-Identifier: Apache-2.0
// Jobs for tests: pieces of YAML that make one, all called "j" in namespace "d".
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
