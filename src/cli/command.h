// SPDX-License-Identifier: Apache-2.0
// The commands of vcctl and of its short forms as tables: which words lead to them, which flags
// they take, and what their help says. Words and flags are read as the Go libraries of the
// programs they stand for do it, and refused in the same words, since scripts depend on both.
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
    char letter; /* 0 when there is none */
    const char *name;
    enum command_type type;
    const char *initial; /* what it is when not given: "" or NULL for the zero of its type */
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
    const char *about; /* in the list of its group */
    const char *text;  /* at the top of its help; NULL: what it is about */
    const struct command_flag *flags;
    uint32_t nflags;
    const struct command *subs; /* sorted by name */
    uint32_t nsubs;
    enum command_action action;
};

/* By the name of the program: "vcctl", "vsub", ...; NULL when it is none of them. */
const struct command *command_program(struct hk_str name);
/* All of them, one by one; NULL behind the last. */
const struct command *command_program_at(uint32_t i);

/* All flags of a command, those every command has included; NULL behind the last. */
const struct command_flag *command_flag_at(const struct command *c, uint32_t i);
/* The word for its value in help, "" for a switch. */
const char *command_flag_word(const struct command_flag *f);
/* What it does; of the command's own help flag the text goes on with the command's name. */
void command_flag_write_help(const struct command *c, const struct command_flag *f,
                             struct hk_buf *out);
/* "yaml json": the values there are; NULL when any may be given. */
const char *command_flag_choices(const struct command_flag *f);

enum { COMMAND_DEPTH = 3, COMMAND_MAX_FLAGS = 24 };

/* What was typed. Values are borrowed from the arguments. */
struct command_line {
    const struct command *path[COMMAND_DEPTH]; /* from the program to the command */
    uint32_t depth;
    const char *values[COMMAND_MAX_FLAGS]; /* NULL where a flag was not given */
    const char *words[COMMAND_DEPTH];      /* the first plain arguments */
    uint32_t nwords;
};

/* Finds the command the words lead to and reads its flags. Of what fails, the path is filled in as
 * far as it was found; an unknown first word is -HK_ENOTFOUND, and words[0]. */
int command_parse(const struct command *program, int argc, char *const *argv,
                  struct command_line *ret, struct hk_err *err) HK_CHECKED;
/* Follows words without reading flags; false when one of them leads nowhere. */
bool command_follow(const struct command *program, uint32_t nwords, const char *const *words,
                    struct command_line *ret);
const struct command *command_leaf(const struct command_line *l);
/* The flag's value or what it is when not given. The command has the flag. */
const char *command_value(const struct command_line *l, const char *flag);
/* Whether it was given at all. */
bool command_has(const struct command_line *l, const char *flag);
bool command_bool(const struct command_line *l, const char *flag);
int64_t command_int(const struct command_line *l, const char *flag);

/* Usage and flags; help has what the command is about above them. */
void command_write_usage(const struct command_line *l, struct hk_buf *out);
void command_write_help(const struct command_line *l, struct hk_buf *out);
