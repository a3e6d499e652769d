// SPDX-License-Identifier: Apache-2.0
// The server of a directory: its options, its start, and that a second start finds everything
// again.
#include "host/host.h"

#include "base/file.h"
#include "base/log.h"
#include "cli/capture_test.h"

#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- options ---- */

struct opts {
    struct host_opts host;
};

static const struct option_row all_rows[] = {
    ROW_INCLUDE(struct opts, host, host_listen_options),
    ROW_INCLUDE(struct opts, host, host_toleration_options),
    ROW_INCLUDE(struct opts, host, host_store_options),
    ROW_INCLUDE(struct opts, host, host_limit_options),
    ROW_END,
};

static int parse(struct opts *o, const char *word, struct hk_err *err)
{
    char text[64], *argv[] = {text};

    snprintf(text, sizeof(text), "%s", word ? word : "");
    *o = (struct opts){0};
    return option_parse(all_rows, word ? 1 : 0, argv, o, err);
}

static void defaults_serve_this_machine_only(void **state)
{
    struct hk_err err = {0};
    struct opts o;

    assert_int_equal(parse(&o, NULL, &err), 0);
    assert_string_equal(o.host.addr, "127.0.0.1");
    assert_int_equal(o.host.port, 6443);
    assert_int_equal(o.host.memory_limit_bytes, 0);
    assert_int_equal(o.host.tolerations.not_ready_s, 300);
    assert_true(host_is_loopback(&o.host));
}

static const struct {
    const char *word;
    int64_t bytes;
} limits[] = {
    {"--memory-limit=auto", 0},
    {"--memory-limit=off", -1},
    {"--memory-limit=2Gi", (int64_t)2 << 30},
};

static void memory_limits_are_sizes_or_words(void **state)
{
    struct hk_err err = {0};
    struct opts o;

    for (size_t i = 0; i < HK_LEN(limits); i++) {
        assert_int_equal(parse(&o, limits[i].word, &err), 0);
        assert_int_equal(o.host.memory_limit_bytes, limits[i].bytes);
    }
    assert_int_equal(parse(&o, "--memory-limit=0", &err), -HK_EINVAL);
    assert_string_equal(err.text, "option --memory-limit is '0', want auto, off or a size such as "
                                  "2Gi");
    assert_int_equal(parse(&o, "--listen=:6443", &err), -HK_EINVAL);
    assert_string_equal(err.text, "option --listen is ':6443', want ADDR:PORT");
}

static const struct {
    const char *addr;
    bool loopback;
    const char *client; /* the address for clients here */
} addresses[] = {
    {"127.0.0.1", true, "127.0.0.1"},
    {"127.8.9.1", true, "127.8.9.1"},
    {"::1", true, "::1"},
    {"::ffff:127.0.0.1", true, "::ffff:127.0.0.1"},
    {"localhost", true, "localhost"},
    {"0.0.0.0", false, "127.0.0.1"},
    {"::", false, "127.0.0.1"},
    {"10.0.0.1", false, "10.0.0.1"},
    {"128.0.0.1", false, "128.0.0.1"},
    {"example.org", false, "example.org"},
};

static void loopback_is_known_in_all_its_forms(void **state)
{
    for (size_t i = 0; i < HK_LEN(addresses); i++) {
        struct host_opts o = {.port = 1};
        snprintf(o.addr, sizeof(o.addr), "%s", addresses[i].addr);
        if (host_is_loopback(&o) != addresses[i].loopback) {
            fail_msg("'%s': expected loopback %d", o.addr, addresses[i].loopback);
        }
        assert_string_equal(host_address(&o), addresses[i].client);
    }
}

/* ---- a start ---- */

struct fixture {
    char dir[32], file[64];
    struct opts o;
    struct host host;
    struct capture printed;
    struct hk_err err;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    hk_log_set_level(HK_LOG_ERROR);
    snprintf(f->dir, sizeof(f->dir), "/tmp/host-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(parse(&f->o, "--listen=127.0.0.1:0", &f->err), 0);
    f->o.host.dir = f->dir;
    f->o.host.ballast_mib = 0;
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    capture_end(&f->printed);
    nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    hk_free(f);
    return 0;
}

static void start(struct fixture *f)
{
    f->host = (struct host){0};
    if (host_open(&f->host, &f->o.host, &f->err) < 0) {
        fail_msg("%s", f->err.text);
    }
    capture_begin(&f->printed);
    const int rc = host_announce(&f->host, &f->o.host, "test", &f->err);
    capture_end(&f->printed);
    assert_int_equal(rc, 0);
}

static const char *content(struct fixture *f, const char *name)
{
    static char text[4096];
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};

    snprintf(f->file, sizeof(f->file), "%s/%s", f->dir, name);
    assert_int_equal(hk_read_file(f->file, sizeof(text) - 1, &all, &f->err), 0);
    snprintf(text, sizeof(text), "%s", all.data);
    return text;
}

static void a_start_says_where_it_serves(void **state)
{
    struct fixture *f = *state;
    char url[64], line[160];

    start(f);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", server_port(f->host.server));
    snprintf(line, sizeof(line), "hekla test ready at %s, kubeconfig %s/kubeconfig\n", url, f->dir);
    assert_string_equal(f->printed.out, line);
    assert_non_null(strstr(content(f, "kubeconfig"), url));
    assert_non_null(strstr(content(f, "server"), url));
    host_close(&f->host);
}

static void a_second_start_keeps_the_identity(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_freep) char *ca = NULL;

    start(f);
    ca = hk_strdup(f->host.setup.ca.cert_pem);
    host_close(&f->host);
    start(f);
    assert_string_equal(f->host.setup.ca.cert_pem, ca);
    host_close(&f->host);
}

static void a_lost_store_is_not_replaced_by_an_empty_one(void **state)
{
    static const char *const files[] = {"store.db", "store.db-wal"};
    struct fixture *f = *state;

    start(f);
    host_close(&f->host);
    for (size_t i = 0; i < HK_LEN(files); i++) {
        snprintf(f->file, sizeof(f->file), "%s/%s", f->dir, files[i]);
        unlink(f->file);
    }
    f->host = (struct host){0};
    assert_true(host_open(&f->host, &f->o.host, &f->err) < 0);
    assert_non_null(strstr(f->err.text, "store.db"));
    host_close(&f->host);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_serve_this_machine_only),
        cmocka_unit_test(memory_limits_are_sizes_or_words),
        cmocka_unit_test(loopback_is_known_in_all_its_forms),
        TEST(a_start_says_where_it_serves),
        TEST(a_second_start_keeps_the_identity),
        TEST(a_lost_store_is_not_replaced_by_an_empty_one),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("host/host", tests, NULL, NULL);
}
