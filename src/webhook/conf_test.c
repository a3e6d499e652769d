// SPDX-License-Identifier: Apache-2.0
// The resource-group file on disk: read, replaced, made invalid, deleted and restored.
#include "webhook/conf.h"

#include "base/file.h"
#include "webhook/rig_test.h"

#define GROUPS(name) "resourceGroups:\n- resourceGroup: " name "\n  schedulerName: x\n"

struct rig {
    struct net_loop *loop;
    char dir[64], path[80];
    struct volcano_options options;
    struct webhook_conf *conf;
};

static int begin(void **state)
{
    struct rig *r = hk_zalloc(sizeof(*r));

    r->loop = net_loop_new(hk_clock_system());
    snprintf(r->dir, sizeof(r->dir), "/tmp/hekla-conf.XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->path, sizeof(r->path), "%s/groups", r->dir);
    *state = r;
    return 0;
}

static int end(void **state)
{
    struct rig *r = *state;

    webhook_conf_free(r->conf);
    net_loop_free(r->loop);
    unlink(r->path);
    rmdir(r->dir);
    hk_free(r);
    return 0;
}

static void load(struct rig *r)
{
    struct hk_err err = {0};

    if (webhook_conf_new(r->loop, r->path, &r->options, &r->conf, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void save(struct rig *r, const char *text)
{
    assert_int_equal(hk_write_file(r->path, hk_str(text), NULL), 0);
}

static struct hk_str group(const struct rig *r)
{
    const struct json *groups = json_get(r->options.conf, "resourceGroups");

    return json_str(json_get(json_item(groups, 0), "resourceGroup"), HK_STR(""));
}

static void becomes(struct rig *r, const char *want)
{
    for (int turns = 0; !hk_str_is(group(r), want); turns++) {
        if (turns > RIG_TURNS) {
            fail_msg("expected '%s', actual '%.*s'", want, HK_FMT(group(r)));
        }
        rig_turn(r->loop);
    }
}

static void a_file_that_changes_is_read_again(void **state)
{
    struct rig *r = *state;

    save(r, GROUPS("first"));
    load(r);
    assert_true(hk_str_is(group(r), "first"));
    save(r, GROUPS("second"));
    becomes(r, "second");
}

static void a_restless_directory_hides_nothing(void **state)
{
    struct rig *r = *state;
    char other[96];

    snprintf(other, sizeof(other), "%s/other", r->dir);
    save(r, GROUPS("first"));
    load(r);
    save(r, GROUPS("second"));
    for (int turns = 0; !hk_str_is(group(r), "second"); turns++) {
        assert_true(turns < RIG_TURNS);
        assert_int_equal(hk_write_file(other, HK_STR("x"), NULL), 0);
        rig_turn(r->loop);
    }
    unlink(other);
}

/* An invalid file has no effect; the next valid change does. */
static void a_bad_file_changes_nothing(void **state)
{
    static const char *const bad[] = {"", "a: [", "[]", "resourceGroups: {}", "a: 1\n---\nb: 2\n"};
    struct rig *r = *state;

    save(r, GROUPS("first"));
    load(r);
    for (size_t i = 0; i < HK_LEN(bad); i++) {
        save(r, bad[i]);
        for (int turns = 0; turns < 200; turns++) {
            rig_turn(r->loop);
            assert_true(hk_str_is(group(r), "first"));
        }
    }
    assert_int_equal(unlink(r->path), 0);
    save(r, GROUPS("back"));
    becomes(r, "back");
}

static void a_file_of_comments_is_a_configuration_without_groups(void **state)
{
    static const char *const bare[] = {"#resourceGroups:\n#- resourceGroup: a\n", "---\n", "{}\n"};
    struct rig *r = *state;

    save(r, bare[0]);
    load(r);
    assert_non_null(r->options.conf);
    assert_null(json_get(r->options.conf, "resourceGroups"));
    for (size_t i = 1; i < HK_LEN(bare); i++) {
        save(r, GROUPS("some"));
        becomes(r, "some");
        save(r, bare[i]);
        becomes(r, "");
        assert_non_null(r->options.conf);
    }
}

static void a_missing_file_may_come_later(void **state)
{
    struct rig *r = *state;

    load(r);
    assert_null(r->options.conf);
    save(r, GROUPS("late"));
    becomes(r, "late");
}

static void a_missing_directory_is_reported(void **state)
{
    struct rig *r = *state;
    struct hk_err err = {0};

    assert_int_equal(webhook_conf_new(r->loop, "/nowhere/at/all", &r->options, &r->conf, &err),
                     -HK_EIO);
    assert_non_null(strstr(err.text, "'/nowhere/at'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_that_changes_is_read_again, begin, end),
        cmocka_unit_test_setup_teardown(a_restless_directory_hides_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_bad_file_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_file_of_comments_is_a_configuration_without_groups, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_missing_file_may_come_later, begin, end),
        cmocka_unit_test_setup_teardown(a_missing_directory_is_reported, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
