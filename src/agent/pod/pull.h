// SPDX-License-Identifier: Apache-2.0
// Pulls of images for containers, each by a process "hekla image pull" of its own: an image may
// take minutes.
#pragma once

#include "agent/pod/pods.h"
#include "image/name.h"

enum pull_state { PULL_RUNS, PULL_DONE, PULL_FAILED };

/* Pulls the image, or reports how the pull of this container stands. While it runs, c->due_ns is
 * out of reach, and the pod is touched at the end. After a failure the container waits, with its
 * reason, until c->due_ns; the next call then pulls again. */
enum pull_state pod_pull(struct container *c, const struct image_name *name);
/* Ends a pull that runs. */
void pod_pull_end(struct container *c);
