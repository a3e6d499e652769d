// SPDX-License-Identifier: Apache-2.0
// The commands of vcctl and its short forms as tables: their words, flags and help. Words and flags
// are parsed as by the Go libraries of the original programs, with the same error messages, since
// scripts depend on both.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum command_type {
    COMMAND_BOOL,
    COMMAND_STRING,
    COMMAND_INT,
    COMMAND_INT32,
    COMMAND_DURATION,
    COMMAND_LEVEL,
    COMMAND_MODULES,
};

struct command_flag {
    char letter; /* 0: none */
    const char *name;
    enum command_type type;
    const char *initial; /* default; "" or NULL: zero value of its type */
    const char *help;
};

/* What a command does; a group shows its help. */
enum command_action {
    COMMAND_GROUP,
    COMMAND_HELP,
    COMMAND_VERSION,
    COMMAND_JOB_RUN,
    COMMAND_JOB_LIST,
    COMMAND_JOB_VIEW,
    COMMAND_JOB_SUSPEND,
    COMMAND_JOB_RESUME,
    COMMAND_JOB_DELETE,
    COMMAND_QUEUE_CREATE,
    COMMAND_QUEUE_DELETE,
    COMMAND_QUEUE_GET,
    COMMAND_QUEUE_LIST,
    COMMAND_QUEUE_OPERATE,
    COMMAND_FLOW_CREATE,
    COMMAND_FLOW_DELETE,
    COMMAND_FLOW_GET,
    COMMAND_FLOW_LIST,
    COMMAND_FLOW_DESCRIBE,
    COMMAND_TEMPLATE_CREATE,
    COMMAND_TEMPLATE_DELETE,
    COMMAND_TEMPLATE_GET,
    COMMAND_TEMPLATE_LIST,
    COMMAND_TEMPLATE_DESCRIBE,
    COMMAND_POD_LIST,
    COMMAND_VSUB,
    COMMAND_VJOBS,
    COMMAND_VQUEUES,
    COMMAND_VCANCEL,
    COMMAND_VSUSPEND,
    COMMAND_VRESUME,
    COMMAND_NACTIONS,
};

struct command {
    const char *name;
    const char *about; /* shown in the list of its group */
    const char *text;  /* at the top of its help; NULL: use about */
    const struct command_flag *flags;
    uint32_t nflags;
    const struct command *subs; /* sorted by name */
    uint32_t nsubs;
    enum command_action action;
};

/* By the name of the program: "vcctl", "vsub", ...; NULL when unknown. */
const struct command *command_program(struct hk_str name);
/* All programs by index; NULL after the last. */
const struct command *command_program_at(uint32_t i);

/* All flags of a command by index, including the common ones; NULL after the last. */
const struct command_flag *command_flag_at(const struct command *c, uint32_t i);
/* The name of its value in help, "" for a boolean. */
const char *command_flag_word(const struct command_flag *f);
/* Writes the flag's help; for the help flag it includes the command's name. */
void command_flag_write_help(const struct command *c, const struct command_flag *f,
                             struct hk_buf *out);
/* The allowed values, "yaml json"; NULL when any is allowed. */
const char *command_flag_choices(const struct command_flag *f);

enum { COMMAND_DEPTH = 3, COMMAND_MAX_FLAGS = 24 };

/* A parsed command line. Values are borrowed from the arguments. */
struct command_line {
    const struct command *path[COMMAND_DEPTH]; /* from the program to the command */
    uint32_t depth;
    const char *values[COMMAND_MAX_FLAGS]; /* NULL when not given */
    const char *words[COMMAND_DEPTH];      /* the first plain arguments */
    uint32_t nwords;
};

/* Finds the command and parses its flags. On failure path holds the part that was found; an unknown
 * first word is -HK_ENOTFOUND, and in words[0]. */
int command_parse(const struct command *program, int argc, char *const *argv,
                  struct command_line *ret, struct hk_err *err) HK_CHECKED;
/* Finds a command by words without flags; false when a word is unknown. */
bool command_follow(const struct command *program, uint32_t nwords, const char *const *words,
                    struct command_line *ret);
const struct command *command_leaf(const struct command_line *l);
/* The flag's value or default. The command must have the flag. */
const char *command_value(const struct command_line *l, const char *flag);
/* Whether the flag was given. */
bool command_has(const struct command_line *l, const char *flag);
bool command_bool(const struct command_line *l, const char *flag);
int64_t command_int(const struct command_line *l, const char *flag);

/* Write usage and flags; help starts with the command's description. */
void command_write_usage(const struct command_line *l, struct hk_buf *out);
void command_write_help(const struct command_line *l, struct hk_buf *out);
