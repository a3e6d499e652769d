// SPDX-License-Identifier: Apache-2.0
// Command lines: finding commands, parsing flags, error messages of Go's libraries, and help.

#include "cli/command.h"

#include "cli/words_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MAX_ARGS = 12 };

/* Parses words separated by blanks; line borrows from text. */
static int parse(const char *program, char *text, struct command_line *line, struct hk_err *err)
{
    char *argv[MAX_ARGS];
    const int argc = split_words(text, argv);

    return command_parse(command_program(hk_str(program)), argc, argv, line, err);
}

static void test_flags_are_read(void **state)
{
    static const struct {
        const char *program, *typed, *flag, *value;
        enum command_action action;
    } cases[] = {
        {"vcctl", "job list", "namespace", "default", COMMAND_JOB_LIST},
        {"vcctl", "job list --namespace a", "namespace", "a", COMMAND_JOB_LIST},
        {"vcctl", "job list --namespace=a", "namespace", "a", COMMAND_JOB_LIST},
        {"vcctl", "job list --namespace=", "namespace", "", COMMAND_JOB_LIST},
        {"vcctl", "job list -n a", "namespace", "a", COMMAND_JOB_LIST},
        {"vcctl", "job list -na", "namespace", "a", COMMAND_JOB_LIST},
        {"vcctl", "job list -n=a", "namespace", "a", COMMAND_JOB_LIST},
        {"vcctl", "job list -n a -n b", "namespace", "b", COMMAND_JOB_LIST},
        {"vcctl", "job list -hn a", "namespace", "a", COMMAND_JOB_LIST},
        {"vcctl", "job list --all-namespaces", "all-namespaces", "true", COMMAND_JOB_LIST},
        {"vcctl", "job list --all_namespaces", "all-namespaces", "true", COMMAND_JOB_LIST},
        {"vcctl", "job list --all-namespaces=false", "all-namespaces", "false", COMMAND_JOB_LIST},
        {"vcctl", "-v 3 job list x", "v", "3", COMMAND_JOB_LIST},
        {"vcctl", "job -h list", "help", "true", COMMAND_JOB_LIST},
        {"vcctl", "job list -- -n a", "namespace", "default", COMMAND_JOB_LIST},
        {"vcctl", "job run -N a", "image", "busybox", COMMAND_JOB_RUN},
        {"vcctl", "queue operate -n q -a close", "name", "q", COMMAND_QUEUE_OPERATE},
        {"vcctl", "job foo", "help", "", COMMAND_GROUP},
        {"vcctl", "", "help", "", COMMAND_GROUP},
        {"vjobs", "-n a -N b", "namespace", "b", COMMAND_VJOBS},
        {"vsub", "-n a x y", "name", "a", COMMAND_VSUB},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_freep) char *text = hk_strdup(cases[i].typed);
        struct command_line line;
        struct hk_err err = {0};
        if (parse(cases[i].program, text, &line, &err) < 0) {
            fail_msg("%s: %s", cases[i].typed, err.text);
        }
        assert_int_equal(command_leaf(&line)->action, cases[i].action);
        assert_string_equal(command_value(&line, cases[i].flag), cases[i].value);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *program, *typed, *text;
    } cases[] = {
        {"vcctl", "foo", "unknown command \"foo\" for \"vcctl\""},
        {"vcctl", "job list --bogus", "unknown flag: --bogus"},
        {"vcctl", "job --bogus", "unknown flag: --bogus"},
        {"vcctl", "job list --=x", "bad flag syntax: --=x"},
        {"vcctl", "job list -z", "unknown shorthand flag: 'z' in -z"},
        {"vcctl", "job list -hz", "unknown shorthand flag: 'z' in -z"},
        {"vcctl", "job view -N", "flag needs an argument: 'N' in -N"},
        {"vcctl", "job view --name", "flag needs an argument: --name"},
        {"vcctl", "job run -r x",
         "invalid argument \"x\" for \"-r, --replicas\" flag: strconv.ParseInt: parsing \"x\": "
         "invalid syntax"},
        {"vcctl", "queue create -w 2147483648",
         "invalid argument \"2147483648\" for \"-w, --weight\" flag: strconv.ParseInt: parsing "
         "\"2147483648\": value out of range"},
        {"vcctl", "job list --all-namespaces=maybe",
         "invalid argument \"maybe\" for \"--all-namespaces\" flag: strconv.ParseBool: parsing "
         "\"maybe\": invalid syntax"},
        {"vqueues", "-N a", "unknown shorthand flag: 'N' in -N"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_freep) char *text = hk_strdup(cases[i].typed);
        struct command_line line;
        struct hk_err err = {0};
        assert_true(parse(cases[i].program, text, &line, &err) < 0);
        assert_string_equal(err.text, cases[i].text);
    }
}

#define GLOBALS                                                                                    \
    "      --log-flush-frequency duration   Maximum number of seconds between log flushes "        \
    "(default 5s)\n"                                                                               \
    "  -v, --v Level                        number for the log level verbosity\n"                  \
    "      --vmodule moduleSpec             comma-separated list of pattern=N settings for "       \
    "file-filtered logging (only works for the default text log format)\n"

static void test_help(void **state)
{
    static const struct {
        const char *program, *typed, *text;
    } cases[] = {
        {"vcctl", "",
         "Usage:\n  vcctl [command]\n\nAvailable Commands:\n"
         "  help        Help about any command\n"
         "  job         vcctl command line operation job\n"
         "  jobflow     vcctl command line operation jobflow\n"
         "  jobtemplate vcctl command line operation jobtemplate\n"
         "  pod         vcctl command line operation pod\n"
         "  queue       Queue Operations\n"
         "  version     Print the version information\n\nFlags:\n"
         "  -h, --help                           help for vcctl\n" GLOBALS
         "\nUse \"vcctl [command] --help\" for more information about a command.\n"},
        {"vcctl", "job list",
         "list job information\n\nUsage:\n  vcctl job list [flags]\n\nFlags:\n"
         "      --all-namespaces      list jobs in all namespaces\n"
         "  -h, --help                help for list\n"
         "  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file\n"
         "  -s, --master string       the address of apiserver\n"
         "  -n, --namespace string    the namespace of job (default \"default\")\n"
         "  -q, --queue string        list job with specified queue name\n"
         "  -S, --scheduler string    list job with specified scheduler name\n"
         "      --selector string     fuzzy matching jobName\n\nGlobal Flags:\n" GLOBALS},
        {"vcctl", "pod",
         "vcctl command line operation pod\n\nUsage:\n  vcctl pod [command]\n\n"
         "Available Commands:\n  list        list pod information created by vcjob\n\n"
         "Flags:\n  -h, --help   help for pod\n\nGlobal Flags:\n" GLOBALS
         "\nUse \"vcctl pod [command] --help\" for more information about a command.\n"},
        {"vqueues", "",
         "view information of a queue with specified name or queues from the same namespace\n\n"
         "Usage:\n  vqueues [flags]\n\nFlags:\n"
         "  -h, --help                           help for vqueues\n"
         "  -k, --kubeconfig string              (optional) absolute path to the kubeconfig file\n"
         "      --log-flush-frequency duration   Maximum number of seconds between log flushes "
         "(default 5s)\n"
         "  -s, --master string                  the address of apiserver\n"
         "  -n, --name string                    the name of queue\n"
         "  -v, --v Level                        number for the log level verbosity\n"
         "      --vmodule moduleSpec             comma-separated list of pattern=N settings for "
         "file-filtered logging (only works for the default text log format)\n"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_freep) char *text = hk_strdup(cases[i].typed);
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        struct command_line line;
        struct hk_err err = {0};
        if (parse(cases[i].program, text, &line, &err) < 0) {
            fail_msg("%s: %s", cases[i].typed, err.text);
        }
        command_write_help(&line, &out);
        assert_string_equal(out.data, cases[i].text);
    }
}

static void test_every_command_fits_the_tables(void **state)
{
    static const char *const programs[] = {"vcctl",   "vsub",     "vjobs",  "vqueues",
                                           "vcancel", "vsuspend", "vresume"};

    for (size_t i = 0; i < HK_LEN(programs); i++) {
        const struct command *p = command_program(hk_str(programs[i]));
        assert_non_null(p);
        for (uint32_t k = 0; k < p->nsubs; k++) {
            const struct command *group = &p->subs[k];
            assert_true(k == 0 || strcmp(p->subs[k - 1].name, group->name) < 0);
            for (uint32_t s = 0; s < group->nsubs; s++) {
                assert_true(group->subs[s].nflags + 6 <= COMMAND_MAX_FLAGS);
                assert_true(s == 0 || strcmp(group->subs[s - 1].name, group->subs[s].name) < 0);
            }
        }
    }
    assert_null(command_program(HK_STR("hekla")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_are_read),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_every_command_fits_the_tables),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
