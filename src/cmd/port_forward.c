// SPDX-License-Identifier: Apache-2.0
// hekla port-forward: makes ports of a pod reachable on this machine.
#include "user/ports.h"

static const struct option_row options[] = {
    ROW_INCLUDE(struct ports_opts, remote.user, user_namespace_options),
    ROW_INCLUDE(struct ports_opts, remote.user, user_server_options),
    ROW_ARGUMENT("POD|JOB", struct ports_opts, target),
    ROW_ARGUMENTS("PORT", struct ports_opts, wanted),
    ROW_END,
};

static int port_forward_run(const struct verb *v, int argc, char **argv)
{
    struct ports_opts o = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        hk_vec_fini(&o.wanted);
        return user_parsed(rc);
    }
    if (o.wanted.len == 0) {
        verb_complain("port-forward: %s missing (see 'hekla help port-forward')",
                      o.target ? "a port is" : "a pod or job and a port are");
        return USER_TROUBLE;
    }
    rc = ports_forward(&o, &err);
    hk_vec_fini(&o.wanted);
    return rc < 0 ? user_fail(v, rc, &err) : USER_OK;
}

const struct verb verb_port_forward = {
    .name = "port-forward",
    .args = "POD|JOB[/TASK[/INDEX]] [LOCAL:]PORT...",
    .about = "make ports of a pod reachable on this machine",
    .options = options,
    .text =
        "Listens on 127.0.0.1 and passes each connection on to a port of the pod, until Ctrl-C or "
        "until the pod has ended. LOCAL is the port of this machine; without it the same number "
        "is used, and with ':PORT' any free one, which is printed.\n"
        "A connection reaches what a program of the pod listens on, at the address of the pod or "
        "on loopback. The name of a job stands for one of its pods, as in 'hekla exec'.",
    .rest = "EXAMPLES\n"
            "       hekla port-forward train 6006\n"
            "       hekla port-forward train/ps/0 8080:80 :22\n"
            "\n" USER_EXIT_STATUS,
    .run = port_forward_run,
};
