// SPDX-License-Identifier: Apache-2.0
// hekla cp: copies files and directories to and from pods.
#include "user/copy.h"

static const struct option_row options[] = {
    ROW_INCLUDE(struct copy_opts, remote, remote_options),
    ROW_ARGUMENT("SRC", struct copy_opts, from),
    ROW_ARGUMENT("DST", struct copy_opts, to),
    ROW_END,
};

static int cp_run(const struct verb *v, int argc, char **argv)
{
    struct copy_opts o = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return user_parsed(rc);
    }
    if (!o.to) {
        verb_complain("cp: SRC and DST are required (see 'hekla help cp')");
        return USER_TROUBLE;
    }
    rc = copy_files(&o, &err);
    return rc < 0 ? user_fail(v, rc, &err) : USER_OK;
}

const struct verb verb_cp = {
    .name = "cp",
    .args = "SRC DST",
    .about = "copy files and directories to and from pods",
    .options = options,
    .text = "Copies a file, or a directory with everything in it. One of SRC and DST is POD:PATH, "
            "where POD may be JOB[/TASK[/INDEX]] as in 'hekla exec'; the other is a path of this "
            "machine. Write a path with a colon in its name as ./like:this.\n"
            "When DST is an existing directory, the copy goes into it under its own name. A file "
            "keeps its mode when it is copied to a pod, and its execute permission when it is "
            "copied from one; the owner is the user who writes.\n"
            "The pod needs test, cat and sh for files, and tar and mkdir for directories. Links "
            "in a directory of a pod that lead out of it are not copied, and are reported.",
    .rest = "EXAMPLES\n"
            "       hekla cp train/worker/0:/results .\n"
            "       hekla cp model.bin train:/tmp/model.bin\n"
            "\n"
            "EXIT STATUS\n"
            "       0 when everything was copied, else 2.\n",
    .run = cp_run,
};
