// SPDX-License-Identifier: Apache-2.0
// hekla drain: takes a node out of service.
#include "user/drain.h"

enum { MAX_GRACE_S = 1000000 };

struct drain_args {
    struct user_opts user;
    struct drain_opts drain;
};

static const struct option_row options[] = {
    ROW_INT_OR(0, "grace-period", "SECONDS", struct drain_args, drain.grace_s, 0, MAX_GRACE_S,
               "what each pod says", "How long pods have to end after they are told to."),
    ROW_DURATION(0, "timeout", struct drain_args, drain.timeout_ns, 1, NULL,
                 "Give up after this time, such as 90s or 1h30m. The node stays cordoned. Without "
                 "this option the command never gives up."),
    ROW_FLAG('f', "force", struct drain_args, drain.force,
             "Also delete pods that no controller would create again."),
    ROW_FLAG(0, "dry-run", struct drain_args, drain.dry_run,
             "Name the pods that would be evicted, and change nothing."),
    ROW_INCLUDE(struct drain_args, user, user_server_options),
    ROW_ARGUMENT("NODE", struct drain_args, drain.node),
    ROW_END,
};

static int drain_run(const struct verb *v, int argc, char **argv)
{
    struct drain_args a = {.drain.grace_s = -1};
    HK_AUTO(user_close) struct user u = {0};
    struct hk_err err = {0};
    int status = USER_OK;
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        return user_parsed(rc);
    }
    if (!a.drain.node) {
        verb_complain("drain: the name of a node is missing (see 'hekla nodes')");
        return USER_TROUBLE;
    }
    a.drain.node = user_name(a.drain.node);
    rc = user_open(&u, &a.user, &err);
    if (rc < 0) {
        return user_fail(v, rc, &err);
    }
    rc = drain_node(&u, &a.drain, &status, &err);
    return rc < 0 ? user_fail(v, rc, &err) : status;
}

const struct verb verb_drain = {
    .name = "drain",
    .args = "NODE",
    .about = "evict the pods of a node, to take it out of service",
    .options = options,
    .text = "Cordons the node and evicts its pods: their controllers create them again, and the "
            "scheduler places them elsewhere. Returns when all of them have ended.\n"
            "Finished pods stay, with their logs, and so do pods of DaemonSets. When no "
            "controller would create a pod again, nothing is evicted, unless --force is given. An "
            "eviction that a disruption budget forbids is tried again, later each time, until the "
            "budget permits it or the time is up.",
    .rest =
        "EXIT STATUS\n"
        "       0 when the node is empty, 2 for bad usage, no server, no such node or pods that\n"
        "       may not be evicted, 124 when the time was up, 130 when interrupted.\n\n"
        "EXAMPLES\n"
        "           hekla drain n1 --timeout 10m && ssh n1 reboot\n"
        "           hekla uncordon n1\n",
    .run = drain_run,
};
