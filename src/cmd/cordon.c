// SPDX-License-Identifier: Apache-2.0
// hekla cordon, uncordon: close nodes to new pods, and open them again.
#include "user/drain.h"

static const struct option_row options[] = {
    ROW_INCLUDE(struct user_each_args, user, user_server_options),
    ROW_ARGUMENTS("NODE", struct user_each_args, names),
    ROW_END,
};

static int cordon_close(struct user *u, const char *node, struct hk_err *err)
{
    return drain_cordon(u, node, true, err);
}

static int cordon_open(struct user *u, const char *node, struct hk_err *err)
{
    return drain_cordon(u, node, false, err);
}

static int cordon_run(const struct verb *v, int argc, char **argv)
{
    return user_each(v, argc, argv, "the name of a node is missing (see 'hekla nodes')",
                     cordon_close);
}

static int uncordon_run(const struct verb *v, int argc, char **argv)
{
    return user_each(v, argc, argv, "the name of a node is missing (see 'hekla nodes')",
                     cordon_open);
}

const struct verb verb_cordon = {
    .name = "cordon",
    .args = "NODE...",
    .about = "stop placing pods on nodes",
    .options = options,
    .text = "Marks the nodes as unschedulable, as kubectl cordon does: their pods continue, new "
            "pods are placed elsewhere.",
    .rest = USER_EXIT_STATUS,
    .run = cordon_run,
};

const struct verb verb_uncordon = {
    .name = "uncordon",
    .args = "NODE...",
    .about = "allow pods on nodes again",
    .options = options,
    .text = "Reverts 'hekla cordon' and 'hekla drain': pods may be placed on the nodes again.",
    .rest = USER_EXIT_STATUS,
    .run = uncordon_run,
};
