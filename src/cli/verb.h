// SPDX-License-Identifier: Apache-2.0
// A verb of the hekla program: a name, a table of options (cli/option.h) that defines parsing,
// --help, the manual page and shell completion, and the function that does the work. Also what all
// verbs print: errors, help and results.
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
/* The manual page of the verb. */
void verb_write_help(const struct verb *v, struct hk_buf *out);

/* One line on stderr: "hekla: ..."; returns EXIT_BAD. */
int verb_complain(const char *fmt, ...) HK_PRINTF(1, 2);
/* Writes everything to stdout; returns EXIT_BAD if that fails. */
int verb_print(const struct hk_buf *out);
/* Prints name and version of the program, like verb_print. */
int verb_print_version(void);
