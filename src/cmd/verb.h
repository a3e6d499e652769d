// SPDX-License-Identifier: Apache-2.0
// The verbs of the hekla program: one table row each, from which parsing, --help and shell
// completion are all made.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum {
    EXIT_OK = 0,
    EXIT_BAD = 1,         /* bad usage, unreadable input, failed tests */
    EXIT_PROBLEMS = 2,    /* part of the input could not be taken */
    EXIT_NOT_RUNNING = 3, /* there is no server, as systemctl has it */
};

struct option_row {
    char letter;         /* 0 when there is none */
    const char *name;    /* without dashes; '_' may be typed for '-' */
    const char *arg;     /* "FILE"; NULL for a flag; "[BOOL]": only behind '=', or left out */
    const char *choices; /* "text json", for completion and checking; NULL when free */
    const char *help;
};

struct verb {
    const char *name;
    const char *args;  /* behind the options: "FILE..." */
    const char *names; /* the list whose names they are, "jobs", for completion; NULL: files */
    const char *about;
    const struct option_row *options; /* --help is every verb's and not listed */
    uint32_t noption;
    const char *text; /* paragraphs of the description */
    const char *rest; /* further sections, headings included */
    bool command;     /* the first plain argument begins a command: what follows it is plain too */
    int (*run)(const struct verb *v, int argc, char **argv);
};

extern const struct verb verb_up, verb_down, verb_status, verb_apiserver, verb_scheduler,
    verb_controller_manager, verb_webhook_manager, verb_agent, verb_manifests, verb_schedule,
    verb_scn, verb_explain, verb_vcctl, verb_plugins, verb_help, verb_version, verb_completion;
extern const struct verb verb_run, verb_logs, verb_wait, verb_jobs, verb_pods, verb_queues,
    verb_nodes, verb_flows, verb_cancel, verb_suspend, verb_resume, verb_history, verb_top;
extern const struct verb verb_exec, verb_cp, verb_apply;
extern const struct verb *const verb_table[];
extern const uint32_t verb_table_len;
const struct verb *verb_find(const char *name);

/* How many letters have to change to make one word of the other; long words are far from
 * everything. */
size_t word_distance(const char *a, const char *b);

/* Walks the arguments behind the verb. take gets each option with its value (NULL for a flag, and
 * when it was left out) and each plain argument (row NULL); it returns 0, or negative to refuse
 * with err filled in. Returns 0 when the verb may run, 1 when --help was answered, negative after
 * telling what was wrong. */
typedef int verb_take(void *ctx, const struct option_row *row, const char *value,
                      struct hk_err *err);
int verb_parse(const struct verb *v, int argc, char **argv, verb_take *take, void *ctx);

/* The one option every verb has. */
extern const struct option_row verb_help_option;
/* The value may be left out. */
bool option_is_optional(const struct option_row *row);

/* The manual page of the verb, and the one of the program. */
void verb_write_help(const struct verb *v, struct hk_buf *out);
void verb_write_overview(struct hk_buf *out);

/* One line on stderr: "hekla: ..."; returns EXIT_BAD. */
int verb_complain(const char *fmt, ...) HK_PRINTF(1, 2);
/* Writes everything to stdout; EXIT_BAD when that fails. */
int verb_print(const struct hk_buf *out);
/* The name and the version of the program, as verb_print. */
int verb_print_version(void);
