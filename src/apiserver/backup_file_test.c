// SPDX-License-Identifier: Apache-2.0
// Backup files: what was written is read again, a changed or cut file is refused, and credentials
// that exist are kept.
#include "apiserver/backup_file.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char dir[32], file[64];
    struct hk_buf text; /* of a whole backup */
    struct hk_err err;
};

static const char *path_of(const struct fixture *f, const char *name)
{
    static char path[64];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    return path;
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
    assert_int_equal(hk_write_file(path_of(f, name), hk_str(text), NULL), 0);
}

static const char *content(const struct fixture *f, const char *name)
{
    static char text[128];
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};

    assert_int_equal(hk_read_file(path_of(f, name), sizeof(text) - 1, &all, NULL), 0);
    snprintf(text, sizeof(text), "%s", all.data);
    return text;
}

/* A backup of two credentials and an empty store. */
static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    struct store_copy copy = {.identity = 7, .rev = 42};
    struct store_backup store = {.copy = &copy};

    snprintf(f->dir, sizeof(f->dir), "/tmp/backup-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->file, sizeof(f->file), "%s/backup", f->dir);
    write_file(f, "ca.crt", "CERT \"quoted\"\n");
    write_file(f, "tokens.csv", "secret,admin\n");
    assert_int_equal(backup_file_begin(f->dir, &f->text, NULL), 0);
    while (store_backup_write(&store, &f->text, 1 << 20)) {
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"backup", "ca.crt", "tokens.csv"};
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(names); i++) {
        unlink(path_of(f, names[i]));
    }
    rmdir(f->dir);
    hk_buf_fini(&f->text);
    hk_free(f);
    return 0;
}

static int read_text(struct fixture *f, const char *text, struct backup_file *ret)
{
    write_file(f, "backup", text);
    return backup_file_read(f->file, ret, &f->err);
}

static void a_backup_is_read_as_it_was_written(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(backup_file_fini) struct backup_file b = {0};

    assert_int_equal(read_text(f, f->text.data, &b), 0);
    assert_string_equal(b.version, HEKLA_VERSION);
    assert_int_equal(b.parts.len, 2);
    assert_string_equal(b.parts.at[0].name, "ca.crt");
    assert_string_equal(b.parts.at[0].text, "CERT \"quoted\"\n");
    assert_string_equal(b.parts.at[1].name, "tokens.csv");
    assert_int_equal(b.copy.identity, 7);
    assert_int_equal(b.copy.rev, 42);
}

static void missing_credentials_are_unpacked_and_others_kept(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(backup_file_fini) struct backup_file b = {0};

    assert_int_equal(read_text(f, f->text.data, &b), 0);
    unlink(path_of(f, "ca.crt"));
    write_file(f, "tokens.csv", "newer\n");
    assert_int_equal(backup_file_unpack(&b, f->dir, &f->err), 0);
    assert_string_equal(content(f, "ca.crt"), "CERT \"quoted\"\n");
    assert_string_equal(content(f, "tokens.csv"), "newer\n");
}

/* ---- damage ---- */

static void expect_refused(struct fixture *f, const char *text, const char *why)
{
    HK_AUTO(backup_file_fini) struct backup_file b = {0};

    if (read_text(f, text, &b) == 0) {
        fail_msg("expected '%s', was accepted:\n%s", why, text);
    }
    if (!strstr(f->err.text, why)) {
        fail_msg("expected '%s', was '%s'", why, f->err.text);
    }
}

static void each_changed_letter_is_noticed(void **state)
{
    struct fixture *f = *state;
    char *at = strstr(f->text.data, "secret");

    *at = 'S';
    expect_refused(f, f->text.data, "line 3: its checksum differs");
}

static void every_cut_is_noticed(void **state)
{
    struct fixture *f = *state;

    for (size_t n = f->text.len - 2; n > 0; n -= HK_MIN(n, 7)) {
        HK_AUTO(backup_file_fini) struct backup_file b = {0};
        HK_AUTO(hk_freep) char *part = hk_strndup(f->text.data, n);
        if (read_text(f, part, &b) == 0) {
            fail_msg("the first %zu bytes of %zu were accepted", n, f->text.len);
        }
    }
}

static void other_files_are_no_backups(void **state)
{
    struct fixture *f = *state;

    expect_refused(f, "", "its end is missing");
    expect_refused(f, "hello\n", "line 1: not a backup");
    expect_refused(f, "hekla-backup 2 9.9 2026-01-01T00:00:00Z\n", "a backup of format 2, want 1");
    HK_AUTO(backup_file_fini) struct backup_file b = {0};
    assert_int_equal(backup_file_read("/no/such/file", &b, &f->err), -HK_EIO);
}

/* A backup from elsewhere must not write other files, whatever its checksums say. */
static void only_credentials_are_files_of_a_backup(void **state)
{
    static const char line[] = "../x \"text\"";
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "hekla-backup 1 0 2026-01-01T00:00:00Z\nfile %016llx %s\n",
                (unsigned long long)hk_hash(line, strlen(line), 1), line);
    expect_refused(f, text.data, "line 2: not a file of a backup");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_backup_is_read_as_it_was_written),
        TEST(missing_credentials_are_unpacked_and_others_kept),
        TEST(each_changed_letter_is_noticed),
        TEST(every_cut_is_noticed),
        TEST(other_files_are_no_backups),
        TEST(only_credentials_are_files_of_a_backup),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("apiserver/backup_file", tests, NULL, NULL);
}
