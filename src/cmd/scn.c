// SPDX-License-Identifier: Apache-2.0
// hekla scn: runs scenario files and prints TAP.
#include "sim/scn.h"
#include "base/file.h"
#include "base/vec.h"
#include "cli/verb.h"

struct request {
    struct option_list files;
};

static const struct option_row options[] = {
    ROW_ARGUMENTS("FILE", struct request, files),
    ROW_END,
};

static void cmd_scn_run_file(const char *path, struct scn_tally *tally, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct scn_opts o = SCN_OPTS_DEFAULT;
    struct hk_err err = {0};

    if (hk_read_file(path, SCN_MAX_BYTES, &text, &err) < 0) {
        tally->run++;
        tally->failed++;
        hk_buf_addf(out, "not ok %u - %s: can be read\n# %s\n", tally->run, path, err.text);
        return;
    }
    scn_run(path, hk_buf_str(&text), &o, tally, out);
}

/* Prints the result of each file as soon as it is done. */
static int run_files(const struct request *q)
{
    struct scn_tally tally = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    int status = EXIT_OK;

    for (uint32_t k = 0; k < q->files.len && status == EXIT_OK; k++) {
        cmd_scn_run_file(q->files.at[k], &tally, &out);
        status = verb_print(&out);
        hk_buf_clear(&out);
    }
    hk_buf_addf(&out, "1..%u\n", tally.run);
    if (status == EXIT_OK) {
        status = verb_print(&out);
    }
    return tally.failed > 0 ? EXIT_BAD : status;
}

static int scn_run_verb(const struct verb *v, int argc, char **argv)
{
    struct request q = {0};
    const int rc = verb_parse(v, argc, argv, &q);
    int status = rc < 0 ? EXIT_BAD : EXIT_OK;

    if (rc == 0) {
        status = q.files.len > 0 ? run_files(&q)
                                 : verb_complain("scn: no FILE is given (see 'hekla help scn')");
    }
    hk_vec_fini(&q.files);
    return status;
}

const struct verb verb_scn = {
    .name = "scn",
    .args = "FILE...",
    .about = "run scheduling scenarios and print TAP",
    .options = options,
    .text = "A scenario describes a cluster, runs scheduling cycles over it and states what is "
            "expected of them, one readable line each. Lines become API objects and take the same "
            "way into the scheduler as those of a cluster. After every cycle the sums of the "
            "model are checked; every scenario also runs a second time without the scheduler's "
            "shortcuts and must decide the same. A failed expectation prints what was found, the "
            "state of the cluster and the decisions of the last cycle.\n"
            "The language is described in docs/scn.md. '-' reads standard input.",
    .rest = "EXIT STATUS\n"
            "       0  every scenario holds\n"
            "       1  one does not, or cannot be read\n"
            "\n"
            "EXAMPLES\n"
            "       A gang of three is held back while only two fit:\n"
            "           conf    actions=allocate plugins=priority,gang,predicates\n"
            "           queue   q1  weight=1\n"
            "           node    n1  cpu=2 mem=4Gi\n"
            "           job     j1  queue=q1 min=3\n"
            "           task    j1/[0-2]  cpu=1 mem=1Gi\n"
            "           cycle\n"
            "           expect  pending j1\n",
    .run = scn_run_verb,
};
