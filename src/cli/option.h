// SPDX-License-Identifier: Apache-2.0
// Options of a command line as typed rows. One row says how an option is written, which values it
// takes, where its value goes, what it is by default and what it does; the parser, --help, the
// manual page and completion all read that row, so they cannot disagree. A table ends with
// ROW_END. ROW_INCLUDE adds the rows of another table, for options that several verbs share.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

enum option_type {
    OPTION_END,
    OPTION_INCLUDE,
    OPTION_FLAG,      /* bool: --name, never with a value */
    OPTION_SET,       /* an enum: --name, never with a value; several rows may share the field */
    OPTION_BOOL,      /* bool, as in Go: --name or --name=BOOL */
    OPTION_INT,       /* an integer of 2, 4 or 8 bytes, from min to max */
    OPTION_DURATION,  /* int64_t nanoseconds, from min to max */
    OPTION_QUANTITY,  /* struct quantity; min is in thousandths */
    OPTION_TEXT,      /* const char *, borrowed from the arguments */
    OPTION_LIST,      /* struct option_list: each time the option is given adds a text */
    OPTION_CHOICE,    /* an enum: the position of the value among the choices */
    OPTION_CALL,      /* the row's function reads the value */
    OPTION_ARGUMENT,  /* const char *: an argument that belongs to no option */
    OPTION_ARGUMENTS, /* struct option_list: all further arguments */
};

struct option_list {
    const char **at;
    uint32_t len, cap;
};

struct option_row;
/* Reads a value into *at, the field of the row. Called with the default first. */
typedef int option_call(void *at, const struct option_row *row, const char *value,
                        struct hk_err *err);

struct option_row {
    enum option_type type;
    char letter;         /* 0: none */
    bool ignored;        /* accepted and checked, without effect */
    bool command;        /* of arguments: no options follow the first one */
    uint8_t size;        /* of the field, in bytes */
    const char *name;    /* without dashes; '_' may be typed for '-' */
    const char *arg;     /* the word for the value: "FILE" */
    const char *choices; /* "text json" */
    size_t offset;
    int64_t min, max; /* of FLAG and SET, min is the value to store */
    option_call *call;
    const struct option_row *include;
    const char *dflt;  /* as typed on a command line; NULL: leaves the field unchanged */
    const char *shown; /* what help shows as the default instead of dflt */
    const char *help;  /* sentences */
};

/* ---- rows: S is the struct of options, F its field ---- */

#define ROW_END                                                                                    \
    {                                                                                              \
        .type = OPTION_END                                                                         \
    }

/* The offset of a field, which must have the type. */
#define OPTION_FIELD(S, F, T)                                                                      \
    (offsetof(S, F) +                                                                              \
     0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((S *)0)->F), T) ? 1 : -1]))
#define OPTION_SIZE(S, F) ((uint8_t)sizeof(((S *)0)->F))

#define ROW_INCLUDE(S, F, table)                                                                   \
    {                                                                                              \
        .type = OPTION_INCLUDE, .offset = offsetof(S, F), .include = (table)                       \
    }
/* Of a table for the same struct. */
#define ROW_INCLUDE_SAME(table)                                                                    \
    {                                                                                              \
        .type = OPTION_INCLUDE, .include = (table)                                                 \
    }
#define ROW_FLAG(l, n, S, F, h)                                                                    \
    {                                                                                              \
        .type = OPTION_FLAG, .letter = (l), .name = (n), .offset = OPTION_FIELD(S, F, bool),       \
        .min = 1, .help = (h)                                                                      \
    }
/* The opposite of a flag of the same field. */
#define ROW_FLAG_OFF(l, n, S, F, h)                                                                \
    {                                                                                              \
        .type = OPTION_FLAG, .letter = (l), .name = (n), .offset = OPTION_FIELD(S, F, bool),       \
        .min = 0, .help = (h)                                                                      \
    }
#define ROW_SET(l, n, S, F, v, h)                                                                  \
    {                                                                                              \
        .type = OPTION_SET, .letter = (l), .name = (n), .offset = offsetof(S, F),                  \
        .size = OPTION_SIZE(S, F), .min = (v), .help = (h)                                         \
    }
#define ROW_BOOL(n, S, F, d, h)                                                                    \
    {                                                                                              \
        .type = OPTION_BOOL, .name = (n), .arg = "BOOL", .offset = OPTION_FIELD(S, F, bool),       \
        .dflt = (d), .help = (h)                                                                   \
    }
#define ROW_INT(l, n, a, S, F, lo, hi, d, h)                                                       \
    {                                                                                              \
        .type = OPTION_INT, .letter = (l), .name = (n), .arg = (a), .offset = offsetof(S, F),      \
        .size = OPTION_SIZE(S, F), .min = (lo), .max = (hi), .dflt = (d), .help = (h)              \
    }
/* A number whose default is determined elsewhere; s describes it for help. */
#define ROW_INT_OR(l, n, a, S, F, lo, hi, s, h)                                                    \
    {                                                                                              \
        .type = OPTION_INT, .letter = (l), .name = (n), .arg = (a), .offset = offsetof(S, F),      \
        .size = OPTION_SIZE(S, F), .min = (lo), .max = (hi), .shown = (s), .help = (h)             \
    }
#define ROW_DURATION(l, n, S, F, lo, d, h)                                                         \
    {                                                                                              \
        .type = OPTION_DURATION, .letter = (l), .name = (n), .arg = "DURATION",                    \
        .offset = OPTION_FIELD(S, F, int64_t), .min = (lo), .max = INT64_MAX, .dflt = (d),         \
        .help = (h)                                                                                \
    }
#define ROW_QUANTITY(n, S, F, lo, d, h)                                                            \
    {                                                                                              \
        .type = OPTION_QUANTITY, .name = (n), .arg = "QUANTITY",                                   \
        .offset = OPTION_FIELD(S, F, struct quantity), .min = (lo), .dflt = (d), .help = (h)       \
    }
#define ROW_TEXT(l, n, a, S, F, d, h)                                                              \
    {                                                                                              \
        .type = OPTION_TEXT, .letter = (l), .name = (n), .arg = (a),                               \
        .offset = OPTION_FIELD(S, F, const char *), .dflt = (d), .help = (h)                       \
    }
/* A text whose default is determined elsewhere; s describes it for help. */
#define ROW_TEXT_OR(l, n, a, S, F, s, h)                                                           \
    {                                                                                              \
        .type = OPTION_TEXT, .letter = (l), .name = (n), .arg = (a),                               \
        .offset = OPTION_FIELD(S, F, const char *), .shown = (s), .help = (h)                      \
    }
#define ROW_LIST(l, n, a, S, F, s, h)                                                              \
    {                                                                                              \
        .type = OPTION_LIST, .letter = (l), .name = (n), .arg = (a),                               \
        .offset = OPTION_FIELD(S, F, struct option_list), .shown = (s), .help = (h)                \
    }
#define ROW_CHOICE(l, n, a, S, F, c, d, h)                                                         \
    {                                                                                              \
        .type = OPTION_CHOICE, .letter = (l), .name = (n), .arg = (a), .choices = (c),             \
        .offset = offsetof(S, F), .size = OPTION_SIZE(S, F), .dflt = (d), .help = (h)              \
    }
#define ROW_CALL(l, n, a, S, F, fn, d, h)                                                          \
    {                                                                                              \
        .type = OPTION_CALL, .letter = (l), .name = (n), .arg = (a), .offset = offsetof(S, F),     \
        .call = (fn), .dflt = (d), .help = (h)                                                     \
    }
/* As ROW_CALL, but the function is not called for the default; s describes it for help. */
#define ROW_CALL_OR(l, n, a, S, F, fn, s, h)                                                       \
    {                                                                                              \
        .type = OPTION_CALL, .letter = (l), .name = (n), .arg = (a), .offset = offsetof(S, F),     \
        .call = (fn), .shown = (s), .help = (h)                                                    \
    }
/* As ROW_CALL; the function gets the struct of the table instead of one of its fields. */
#define ROW_CALL_ALL(l, n, a, fn, d, h)                                                            \
    {                                                                                              \
        .type = OPTION_CALL, .letter = (l), .name = (n), .arg = (a), .call = (fn), .dflt = (d),    \
        .help = (h)                                                                                \
    }
/* Options of upstream's programs, accepted without effect. The value must be one that upstream
 * accepts. */
#define ROW_IGNORED(t, n, a)                                                                       \
    {                                                                                              \
        .type = (t), .ignored = true, .name = (n), .arg = (a), .max = INT64_MAX                    \
    }
#define ROW_IGNORED_INT(n, lo, hi)                                                                 \
    {                                                                                              \
        .type = OPTION_INT, .ignored = true, .name = (n), .arg = "N", .size = 8, .min = (lo),      \
        .max = (hi)                                                                                \
    }
#define ROW_IGNORED_CHOICE(n, a, c)                                                                \
    {                                                                                              \
        .type = OPTION_CHOICE, .ignored = true, .name = (n), .arg = (a), .choices = (c), .size = 8 \
    }
/* Arguments that belong to no option, in the order of their rows. */
#define ROW_ARGUMENT(a, S, F)                                                                      \
    {                                                                                              \
        .type = OPTION_ARGUMENT, .arg = (a), .offset = OPTION_FIELD(S, F, const char *)            \
    }
#define ROW_ARGUMENTS(a, S, F)                                                                     \
    {                                                                                              \
        .type = OPTION_ARGUMENTS, .arg = (a), .offset = OPTION_FIELD(S, F, struct option_list)     \
    }
/* A command with its own arguments: everything after its first word belongs to it. */
#define ROW_COMMAND(a, S, F)                                                                       \
    {                                                                                              \
        .type = OPTION_ARGUMENTS, .arg = (a), .command = true,                                     \
        .offset = OPTION_FIELD(S, F, struct option_list)                                           \
    }
/* Arguments that a function accepts or refuses, one by one. */
#define ROW_ARGUMENTS_CALL(a, fn)                                                                  \
    {                                                                                              \
        .type = OPTION_ARGUMENTS, .arg = (a), .call = (fn)                                         \
    }

/* ---- reading a table ---- */

/* The i-th row of the table, counting rows of arguments and of included tables, with its offset in
 * the outermost struct; false past the last. */
bool option_at(const struct option_row *table, uint32_t i, struct option_row *ret);
bool option_is_argument(const struct option_row *row);
/* Finds an option as typed: "data-dir" or "data_dir". */
bool option_find(const struct option_row *table, struct hk_str name, struct option_row *ret);
bool option_find_letter(const struct option_row *table, char letter, struct option_row *ret);
/* Whether the next argument is the option's value if no '=' follows the name. */
bool option_wants_value(const struct option_row *row);

/* ---- parsing ---- */

/* Stores the defaults, then the arguments. Returns 1 when --help or -h is among them: the struct is
 * not complete then. The caller frees lists, after a failure too. */
int option_parse(const struct option_row *table, int argc, char *const *argv, void *into,
                 struct hk_err *err) HK_CHECKED;
/* One value; NULL only for a BOOL without one. */
int option_store(const struct option_row *row, const char *value, void *into,
                 struct hk_err *err) HK_CHECKED;
/* Go's strconv.ParseBool. */
bool option_parse_bool(const char *value, bool *ret);

/* ---- help ---- */

/* "--help", which every table has without listing it. */
extern const struct option_row option_help;
/* The word for the value, or the choices: "text|json|yaml"; nothing for a flag. */
void option_write_value(const struct option_row *row, struct hk_buf *out);
/* "-o, --output text|json|yaml" */
void option_write_usage(const struct option_row *row, struct hk_buf *out);
/* What it does, and its default. */
void option_write_help(const struct option_row *row, struct hk_buf *out);
/* "--a, --b": the rows without effect; nothing when there are none. */
void option_write_ignored(const struct option_row *table, struct hk_buf *out);
