// SPDX-License-Identifier: Apache-2.0
// Compares a store with its witness, and describes in one line what is missing.
#include "store/store_priv.h"

#include <inttypes.h>

static int check_missing(const struct store_evidence *e, struct hk_err *err)
{
    if (e->told.found == STORE_TOLD) {
        return hk_fail(err, HK_EIO,
                       "the file is missing or empty, but revision %" PRIu64 " was acknowledged",
                       e->told.rev);
    }
    if (e->told.found == STORE_TOLD_DAMAGED || e->must_exist) {
        return hk_fail(err, HK_EIO,
                       "the file is missing or empty, but the directory has been used: its %s "
                       "there",
                       e->must_exist ? "credentials are" : "witness is");
    }
    return 0;
}

static int check_witness(const struct store_evidence *e, struct hk_err *err)
{
    if (e->told.found == STORE_TOLD) {
        return e->told.identity == e->identity
                   ? 0
                   : hk_fail(
                         err, HK_EIO,
                         "the file does not match its witness: it was copied here from elsewhere");
    }
    if (e->identity == 0) {
        return 0; /* written by a version without witnesses */
    }
    return hk_fail(err, HK_EIO, "its witness is %s: cannot tell whether the file is the newest",
                   e->told.found == STORE_TOLD_DAMAGED ? "damaged" : "missing");
}

/* If the WAL ends early, names that as the reason. */
static void write_wal(const struct store_wal *w, char *ret, size_t size)
{
    if (w->good < w->len && w->cut) {
        snprintf(ret, size, " (its WAL is damaged at frame %" PRIu32 " of %" PRIu32 ")",
                 w->good + 1, w->len);
    }
}

static int check_end(const struct store_evidence *e, struct hk_err *err)
{
    char wal[96] = "";

    write_wal(&e->wal, wal, sizeof(wal));
    if (e->told.found == STORE_TOLD && e->rev < e->told.rev) {
        return hk_fail(err, HK_EIO,
                       "%" PRIu64 " revision%s missing: it ends at %" PRIu64 ", but %" PRIu64
                       " was acknowledged%s",
                       e->told.rev - e->rev, e->told.rev - e->rev == 1 ? " is" : "s are", e->rev,
                       e->told.rev, wal);
    }
    if (e->wal.cut) {
        return hk_fail(err, HK_EIO, "revisions after %" PRIu64 " are missing%s", e->rev, wal);
    }
    return 0;
}

static int check_rows(const struct store_evidence *e, struct hk_err *err)
{
    const uint64_t want = e->told.ninserted - e->nremoved;

    if (!e->read || e->told.found != STORE_TOLD) {
        return 0;
    }
    if (e->npresent != want) {
        return hk_fail(err, HK_EIO,
                       "%" PRIu64 " of its %" PRIu64 " rows cannot be found: the file is damaged",
                       want - e->npresent, want);
    }
    if (e->ndamaged == 0 && (e->told.inserted ^ e->removed) != e->present) {
        return hk_fail(err, HK_EIO, "its rows are not those that were written");
    }
    return 0;
}

int store_evidence_check(const struct store_evidence *e, struct hk_err *err)
{
    int rc;

    if (!e->exists) {
        return check_missing(e, err);
    }
    rc = check_witness(e, err);
    if (rc < 0) {
        return rc;
    }
    rc = check_end(e, err);
    if (rc < 0) {
        return rc;
    }
    return check_rows(e, err);
}

void store_evidence_count(struct store_evidence *e, const struct store_obj *o, uint64_t sum,
                          bool damaged)
{
    if (o->rv <= e->told.rev) {
        e->npresent++;
        e->present ^= damaged ? 0 : sum;
        e->ndamaged += damaged;
    }
}
