// SPDX-License-Identifier: Apache-2.0
// The verbs of the hekla program: one row each, with one table of options (cli/option.h) that
// defines parsing, --help, the manual page and shell completion.
#pragma once

#include "cli/option.h"

enum {
    EXIT_OK = 0,
    EXIT_BAD = 1,         /* bad usage, unreadable input, failed tests */
    EXIT_PROBLEMS = 2,    /* part of the input was rejected */
    EXIT_NOT_RUNNING = 3, /* there is no server, as in systemctl */
};

struct verb {
    const char *name;
    const char *args; /* after the options: "FILE..." */
    const char *about;
    const struct option_row *options; /* NULL: only --help, which every verb has */
    const char *text;                 /* paragraphs of the description */
    const char *rest;                 /* further sections with their headings */
    bool hidden;                      /* not in lists of verbs */
    int (*run)(const struct verb *v, int argc, char **argv);
};

extern const struct verb verb_up, verb_down, verb_status, verb_apiserver, verb_scheduler,
    verb_controller_manager, verb_webhook_manager, verb_agent, verb_manifests, verb_schedule,
    verb_scn, verb_explain, verb_vcctl, verb_plugins, verb_help, verb_version, verb_completion,
    verb_complete;
extern const struct verb verb_run, verb_logs, verb_wait, verb_jobs, verb_pods, verb_queues,
    verb_nodes, verb_flows, verb_cancel, verb_suspend, verb_resume, verb_history, verb_top,
    verb_cordon, verb_uncordon, verb_drain;
extern const struct verb verb_exec, verb_cp, verb_apply;
extern const struct verb verb_backup, verb_restore, verb_check;
extern const struct verb *const verb_table[];
extern const uint32_t verb_table_len;
const struct verb *verb_find(const char *name);

/* The number of letters to change, add or remove to turn one word into the other; a word of more
 * than 32 letters is far from every other. */
size_t word_distance(const char *a, const char *b);
/* Whether a typing mistake explains the difference: one letter, or two in words of four or more. */
bool word_is_near(const char *typed, const char *word);

/* The options of the verb; empty if it has none. */
const struct option_row *verb_options(const struct verb *v);
/* Parses the arguments after the verb into its struct of options. Returns 0 if the verb should run,
 * 1 if it printed --help, negative after an error message on stderr. */
int verb_parse(const struct verb *v, int argc, char **argv, void *opts);

/* Output formats; options of the verbs that print results. */
enum output { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_YAML };
struct verb_output {
    enum output as;
};
extern const struct option_row verb_output_options[];      /* text, json or yaml */
extern const struct option_row verb_output_json_options[]; /* text or json */
/* For ROW_ARGUMENTS_CALL of verbs that get their files with -f: refuses arguments. */
option_call verb_refuse_file;

/* Heading of the list of options without effect. */
#define VERB_IGNORED_TEXT "Accepted for compatibility, no effect:"

/* The words after the verb: " [OPTION...] FILE". */
void verb_write_synopsis(const struct verb *v, struct hk_buf *out);
/* The manual page of the verb, and that of the program. */
void verb_write_help(const struct verb *v, struct hk_buf *out);
void verb_write_overview(struct hk_buf *out);

/* One line on stderr: "hekla: ..."; returns EXIT_BAD. */
int verb_complain(const char *fmt, ...) HK_PRINTF(1, 2);
/* Writes everything to stdout; returns EXIT_BAD if that fails. */
int verb_print(const struct hk_buf *out);
/* Prints name and version of the program, like verb_print. */
int verb_print_version(void);
