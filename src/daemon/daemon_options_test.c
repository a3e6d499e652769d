// SPDX-License-Identifier: Apache-2.0
// Options that daemons share: addresses, limits and the lease, with Volcano's defaults.
#include "daemon/daemon.h"

#include "cli/capture_test.h"

struct opts {
    struct daemon_opts daemon;
};

static const struct option_row rows[] = {
    DAEMON_OPTIONS_API(struct opts, daemon, "50", "100"),
    DAEMON_OPTIONS_HTTP(struct opts, daemon, ":11251", ":8080"),
    DAEMON_OPTIONS_ELECTION(struct opts, daemon, "vc-test"),
    ROW_INCLUDE(struct opts, daemon, daemon_log_options),
    ROW_ARGUMENTS_CALL("", daemon_accept_word),
    ROW_END,
};

enum { WORDS_MAX = 8 };

static int parse(struct opts *o, const char *line, struct hk_err *err)
{
    static char text[256];
    char *argv[WORDS_MAX], *rest = text;
    int argc = 0;

    snprintf(text, sizeof(text), "%s", line);
    for (char *word; (word = strsep(&rest, " ")) && argc < WORDS_MAX;) {
        if (*word) {
            argv[argc++] = word;
        }
    }
    *o = (struct opts){0};
    return option_parse(rows, argc, argv, o, err);
}

static void the_defaults_are_volcanos(void **state)
{
    struct hk_err err = {0};
    struct opts o;

    assert_int_equal(parse(&o, "", &err), 0);
    assert_float_equal(o.daemon.qps, 50, 0);
    assert_int_equal(o.daemon.burst, 100);
    assert_true(o.daemon.elect);
    assert_string_equal(o.daemon.lease_ns, "volcano-system");
    assert_string_equal(o.daemon.lease_name, "vc-test");
    assert_int_equal(o.daemon.lease_duration_ns, 15 * (int64_t)1000000000);
    assert_int_equal(o.daemon.renew_deadline_ns, 10 * (int64_t)1000000000);
    assert_int_equal(o.daemon.retry_period_ns, 2 * (int64_t)1000000000);
    assert_false(o.daemon.healthz);
    assert_false(o.daemon.metrics);
}

static void the_lease_can_be_moved(void **state)
{
    struct hk_err err = {0};
    struct opts o;

    assert_int_equal(parse(&o,
                           "--leader-elect-resource-namespace=kube-system "
                           "--leader-elect-resource-name=x --leader-elect-lease-duration=30s",
                           &err),
                     0);
    assert_string_equal(o.daemon.lease_ns, "kube-system");
    assert_string_equal(o.daemon.lease_name, "x");
    assert_int_equal(o.daemon.lease_duration_ns, 30 * (int64_t)1000000000);
    assert_int_equal(parse(&o, "--lock-object-namespace=old", &err), 0); /* its former name */
    assert_string_equal(o.daemon.lease_ns, "old");
}

static const struct {
    const char *line, *error;
} refused[] = {
    {"--kube-api-qps=0", "option --kube-api-qps is '0', want a number greater than 0, or a "
                         "negative one for no limit"},
    {"--kube-api-qps=fast", "option --kube-api-qps is 'fast', want a number greater than 0, or a "
                            "negative one for no limit"},
    {"--kube-api-qps=1e9", "option --kube-api-qps is '1e9', want a number greater than 0, or a "
                           "negative one for no limit"},
    {"--kube-api-qps=nan", "option --kube-api-qps is 'nan', want a number greater than 0, or a "
                           "negative one for no limit"},
    {"--healthz-address=8080", "option --healthz-address is '8080', want ADDR:PORT"},
    {"extra", "unexpected 'extra'"},
};

static void mistakes_are_refused(void **state)
{
    for (size_t i = 0; i < HK_LEN(refused); i++) {
        struct hk_err err = {0};
        struct opts o;
        assert_int_equal(parse(&o, refused[i].line, &err), -HK_EINVAL);
        assert_string_equal(err.text, refused[i].error);
    }
}

static void what_volcanos_manifests_say_is_accepted(void **state)
{
    struct hk_err err = {0};
    struct opts o;

    assert_int_equal(parse(&o, "--logtostderr --kube-api-qps=-1 -v=3 2>&1", &err), 0);
    assert_float_equal(o.daemon.qps, -1, 0);
    assert_int_equal(o.daemon.verbosity, 3);
}

/* ---- addresses ---- */

static const struct {
    const char *text, *host;
    int port; /* negative: refused */
} addresses[] = {
    {"127.0.0.1:80", "127.0.0.1", 80},
    {":11251", "", 11251},
    {"[::1]:443", "::1", 443},
    {"[::]:0", "::", 0},
    {"::1:443", "::1", 443}, /* the last colon decides */
    {"host:65535", "host", 65535},
    {"host:65536", NULL, -1},
    {"host:-1", NULL, -1},
    {"host:", NULL, -1},
    {"host", NULL, -1},
    {"", NULL, -1},
    {"a-host-name-that-is-longer-than-the-caller-has-room-for:1", NULL, -1},
};

static void an_address_is_split_at_its_last_colon(void **state)
{
    for (size_t i = 0; i < HK_LEN(addresses); i++) {
        char host[32] = "";
        uint16_t port = 0;
        const int rc = daemon_split_address(addresses[i].text, host, sizeof(host), &port);
        if ((rc == 0) != (addresses[i].port >= 0) ||
            (rc == 0 && (strcmp(host, addresses[i].host) != 0 || port != addresses[i].port))) {
            fail_msg("'%s': expected '%s' port %d, was '%s' port %u, result %d", addresses[i].text,
                     addresses[i].host ? addresses[i].host : "refused", addresses[i].port, host,
                     port, rc);
        }
    }
}

/* ---- the verb ---- */

static int works, worked_rc;

static int work(void *ctx, struct hk_err *err)
{
    works++;
    return worked_rc < 0 ? hk_fail(err, -worked_rc, "cannot work") : 0;
}

static int run(struct capture *c, const char *word, int rc)
{
    static const struct verb verb = {
        .name = "test", .args = "", .about = "", .options = rows, .text = "A test."};
    char text[32], *argv[] = {text};
    struct opts o = {0};

    snprintf(text, sizeof(text), "%s", word);
    works = 0;
    worked_rc = rc;
    capture_begin(c);
    const int status = daemon_verb(&verb, 1, argv, &o, &o.daemon, work);
    capture_end(c);
    return status;
}

static void the_verb_works_or_says_why_not(void **state)
{
    struct capture c = {0};

    assert_int_equal(run(&c, "-v=0", 0), EXIT_OK);
    assert_int_equal(works, 1);
    assert_int_equal(run(&c, "-v=0", -HK_EIO), EXIT_BAD);
    assert_string_equal(c.complaints, "hekla: test: cannot work\n");
    assert_int_equal(run(&c, "--version", 0), EXIT_OK);
    assert_string_equal(c.out, "hekla " HEKLA_VERSION "\n");
    assert_int_equal(works, 0);
    assert_int_equal(run(&c, "--bad", 0), EXIT_BAD);
    assert_int_equal(works, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_volcanos),
        cmocka_unit_test(the_lease_can_be_moved),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(what_volcanos_manifests_say_is_accepted),
        cmocka_unit_test(an_address_is_split_at_its_last_colon),
        cmocka_unit_test(the_verb_works_or_says_why_not),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/daemon_options", tests, NULL, NULL);
}
