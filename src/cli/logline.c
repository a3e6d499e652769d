// SPDX-License-Identifier: Apache-2.0
// Parses the lines of container logs and formats them for output.
#include "cli/logline.h"

#include "codec/timefmt.h"

void logline_parse(struct hk_str line, int64_t before_ns, struct logline *ret)
{
    struct hk_str rest = line, stamp;

    *ret = (struct logline){before_ns, HK_STR(""), line};
    if (hk_str_cut(&rest, ' ', &stamp) && time_parse(stamp, &ret->ns, NULL) == 0) {
        ret->stamp = stamp;
        ret->text = rest.s ? rest : HK_STR("");
    }
}

void logline_write(const struct logline *l, struct hk_str prefix, uint32_t rank,
                   const struct logline_how *how, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf head = {0};

    if (how->prefix) {
        hk_buf_addf(&head, "[%.*s]", HK_FMT(prefix));
        term_paint_rank(&how->term, rank, hk_buf_str(&head), out);
        hk_buf_addc(out, ' ');
    }
    if (how->stamps && l->stamp.n > 0) {
        term_paint(&how->term, TERM_DIM, l->stamp, out);
        hk_buf_addc(out, ' ');
    }
    hk_buf_addstr(out, l->text);
    hk_buf_addc(out, '\n');
}

struct hk_str logline_prefix(struct hk_str job, struct hk_str pod)
{
    const bool of_job =
        job.n > 0 && pod.n > job.n + 1 && memcmp(pod.s, job.s, job.n) == 0 && pod.s[job.n] == '-';

    return of_job ? (struct hk_str){pod.s + job.n + 1, pod.n - job.n - 1} : pod;
}
