// SPDX-License-Identifier: Apache-2.0
// The file format of backups: writes the part before the store, and reads whole backups.
#include "apiserver/backup_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "codec/json.h"
#include "codec/timefmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FIRST_WORD "hekla-backup"

enum { FORMAT = 1, MAX_FILE_BYTES = 1 << 20 };

/* The server's identity for clients, and the key that signs tokens. Other files are recreated. */
static const char *const credentials[] = {
    "ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "tokens.csv"};

void backup_file_fini(struct backup_file *b)
{
    for (uint32_t i = 0; i < b->parts.len; i++) {
        hk_free(b->parts.at[i].name);
        hk_free(b->parts.at[i].text);
    }
    hk_vec_fini(&b->parts);
    hk_free(b->version);
    hk_free(b->time);
    store_copy_fini(&b->copy);
}

void backup_file_stamp(struct hk_buf *out)
{
    const time_t now = time(NULL);
    char text[32];
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
    hk_buf_adds(out, text);
}

/* ---- writing ---- */

static int write_part(const char *dir, const char *name, struct hk_buf *out, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0}, rest = {0};
    int rc;

    hk_buf_addf(&path, "%s/%s", dir, name);
    if (access(path.data, F_OK) < 0) {
        return 0;
    }
    rc = hk_read_file(path.data, MAX_FILE_BYTES, &text, err);
    if (rc < 0) {
        return rc;
    }
    hk_buf_addf(&rest, "%s ", name);
    const struct json string = json_make_str(hk_buf_str(&text));
    json_write(&string, &rest);
    hk_buf_addf(out, "file %016" PRIx64 " %s\n", hk_hash(rest.data, rest.len, FORMAT), rest.data);
    return 0;
}

int backup_file_begin(const char *dir, struct hk_buf *out, struct hk_err *err)
{
    struct hk_clock *clock = hk_clock_system();
    int rc = 0;

    hk_buf_addf(out, FIRST_WORD " %d " HEKLA_VERSION " ", FORMAT);
    time_write(clock->wall_ns(clock), out);
    hk_buf_addc(out, '\n');
    for (size_t i = 0; rc == 0 && i < HK_LEN(credentials); i++) {
        rc = write_part(dir, credentials[i], out, err);
    }
    return rc;
}

/* ---- reading ---- */

static int read_first(struct backup_file *b, struct hk_str line, struct hk_err *err)
{
    struct hk_str word, format, version;

    if (!hk_str_cut(&line, ' ', &word) || !hk_str_is(word, FIRST_WORD) ||
        !hk_str_cut(&line, ' ', &format) || !hk_str_cut(&line, ' ', &version) || !line.s) {
        return hk_fail(err, HK_EINVAL, "not a backup");
    }
    if (!hk_str_is(format, "1")) {
        return hk_fail(err, HK_EUNSUP, "a backup of format %.*s, want %d", HK_FMT(format), FORMAT);
    }
    b->version = hk_strndup(version.s, version.n);
    b->time = hk_strndup(line.s, line.n);
    return 0;
}

static bool is_credential(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(credentials); i++) {
        if (hk_str_is(name, credentials[i])) {
            return true;
        }
    }
    return false;
}

static int backup_file_read_part(struct backup_file *b, struct hk_str line, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct hk_str word, sum, name;
    struct json text;
    char want[20];

    hk_str_cut(&line, ' ', &word);
    hk_str_cut(&line, ' ', &sum);
    if (!line.s) {
        return hk_fail(err, HK_EINVAL, "not a line of a backup");
    }
    snprintf(want, sizeof(want), "%016" PRIx64, hk_hash(line.s, line.n, FORMAT));
    if (!hk_str_is(sum, want)) {
        return hk_fail(err, HK_EINVAL, "its checksum differs");
    }
    hk_str_cut(&line, ' ', &name);
    if (!is_credential(name) || !line.s || json_parse(line, 0, &mem, &text, err) < 0 ||
        !json_is(&text, JSON_STRING)) {
        return hk_fail(err, HK_EINVAL, "not a file of a backup");
    }
    hk_vec_push(&b->parts,
                (struct backup_part){hk_strndup(name.s, name.n), hk_strndup(text.s, text.len)});
    return 0;
}

static int read_lines(struct backup_file *b, FILE *f, struct hk_err *err)
{
    struct store_backup_reader reader = {.copy = &b->copy};
    char *at = NULL;
    size_t room = 0, number = 0;
    ssize_t n;
    int rc = 0;

    while (rc == 0 && (n = getline(&at, &room, f)) > 0) {
        const struct hk_str line = {at, (size_t)n - (at[n - 1] == '\n')};

        number++;
        rc = number == 1                    ? read_first(b, line, err)
             : hk_str_starts(line, "file ") ? backup_file_read_part(b, line, err)
                                            : store_backup_read(&reader, line, err);
    }
    free(at);
    if (rc < 0) {
        return hk_wrap(err, rc, "line %zu", number);
    }
    return reader.ended ? 0 : hk_fail(err, HK_EINVAL, "its end is missing");
}

int backup_file_read(const char *path, struct backup_file *ret, struct hk_err *err)
{
    FILE *f = fopen(path, "re");
    int rc;

    if (!f) {
        return hk_fail(err, HK_EIO, "cannot read '%s': %m", path);
    }
    rc = read_lines(ret, f, err);
    fclose(f);
    return rc < 0 ? hk_wrap(err, rc, "backup '%s'", path) : 0;
}

int backup_file_unpack(const struct backup_file *b, const char *dir, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < b->parts.len; i++) {
        hk_buf_clear(&path);
        hk_buf_addf(&path, "%s/%s", dir, b->parts.at[i].name);
        if (access(path.data, F_OK) < 0) {
            rc = hk_write_file(path.data, hk_str(b->parts.at[i].text), err);
        }
    }
    return rc;
}
