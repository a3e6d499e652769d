// SPDX-License-Identifier: Apache-2.0
// Shared by the scenario files only: scn_parse.c makes lines, scn_object.c turns those that
// describe things into API objects, scn_expect.c judges, scn.c runs.
#pragma once

#include "sim/cluster.h"
#include "sim/scn.h"

/* ---- lines ---- */

/* "key=value" or a bare word; quotes are gone. */
struct scn_word {
    struct hk_str key;
    struct hk_str value; /* s is NULL without '=' */
};

struct scn_line {
    uint32_t line;
    uint32_t n;
    struct scn_word *words;
    struct hk_str body; /* the lines behind this one, up to the mark of <<EOF; s NULL without */
};

struct scn_case {
    struct hk_str name;
    uint32_t line;
    uint32_t first, n; /* lines */
};

struct scn_file {
    const char *path;
    struct hk_arena mem; /* owns everything below */
    HK_VEC(struct scn_line) lines;
    HK_VEC(struct scn_case) cases;
    uint32_t preamble; /* lines before the first `scenario`, part of every case */
};

/* Messages begin with "path:line: ". text must outlive the file. */
int scn_parse(struct scn_file *f, const char *path, struct hk_str text,
              struct hk_err *err) HK_CHECKED;
void scn_file_fini(struct scn_file *f);

/* ---- running ---- */

/* An object as the scenario last described it. */
struct scn_object {
    enum api_kind_id kind;
    struct hk_str ns, name; /* "ns", "j1-0" */
    struct json doc;
};

struct scn_run {
    const struct scn_file *file;
    const struct scn_opts *opts;
    const struct scn_line *line; /* being run */
    struct hk_arena mem;
    struct cluster c;
    struct conf *conf;
    struct hk_intern refs;                /* "task j1/0" -> row of objects */
    HK_VEC(struct scn_object) objects;    /* by id of refs */
    uint32_t made;                        /* objects so far: creation times differ by it */
    HK_VEC(struct hk_str) known_problems; /* the scenario expects these */
};

/* Fails with "path:line: ..." of the current line. */
int scn_fail(const struct scn_run *r, struct hk_err *err, const char *fmt, ...) HK_PRINTF(3, 4);

/* The line's body behind as many line ends as lines precede it: numbers in messages stay true. */
struct hk_str scn_body(const struct scn_run *r, struct hk_buf *scratch);

/* Names a word stands for: "j1/[0-2]" is three. In r->mem. */
struct scn_names {
    struct hk_str *at;
    uint32_t n;
};
int scn_expand(struct scn_run *r, struct hk_str word, struct scn_names *ret,
               struct hk_err *err) HK_CHECKED;

struct scn_kind;

/* ---- scn_object.c ---- */

/* Creates or changes the objects of a line. What ingest refuses is its problem, not an error here.
 */
int scn_object_line(struct scn_run *r, const struct scn_kind *kind, struct hk_err *err) HK_CHECKED;
/* `object <<EOF`: manifests as they are. */
int scn_raw_line(struct scn_run *r, struct hk_err *err) HK_CHECKED;
int scn_delete_line(struct scn_run *r, struct hk_err *err) HK_CHECKED;
/* `done` and `fail`: pods end in the phase. */
int scn_finish_line(struct scn_run *r, const char *phase, struct hk_err *err) HK_CHECKED;
/* NULL when the scenario has no such task or pod. */
const struct scn_object *scn_task_find(const struct scn_run *r, struct hk_str ref);
const struct scn_object *scn_job_find(const struct scn_run *r, struct hk_str ref);

/* ---- scn_field.c ---- */

/* One word at work on one object. */
struct scn_edit {
    struct scn_run *r;
    struct json *doc;
    const struct scn_field *f;
    struct hk_str value; /* s NULL for a bare word */
    struct hk_str rest;  /* what follows the prefix in the key */
    struct hk_err *err;
};

typedef int scn_set_fn(struct scn_edit *e);

struct scn_field {
    const char *key; /* ends in ':' or '@' when it is a prefix; NULL: any resource name */
    scn_set_fn *set;
    const char *path; /* dotted, for the setters below; the annotation's name for set_annotation */
};

/* Text, whole number, boolean (bare is true), "a,b", KEY=VALUE behind a prefix, an annotation (bare
 * is "true"), "cpu:4,mem:8Gi", a duration. */
scn_set_fn scn_set_str, scn_set_int, scn_set_bool, scn_set_list, scn_set_map, scn_set_annotation,
    scn_set_resources, scn_set_age;
int scn_bad_value(struct scn_edit *e, const char *want);

/* The object at a dotted path, made on the way; "" is doc itself. */
struct json *scn_need(struct json *doc, struct hk_arena *a, const char *path);
struct json *scn_need_list(struct json *doc, struct hk_arena *a, const char *path, const char *key);
void scn_set_at(struct json *doc, struct hk_arena *a, const char *path, struct json v);
struct json scn_time(struct scn_run *r, int64_t ns);
/* Of the object being made. Later lines are younger, if only by a microsecond: ties fall as they
 * are written. */
int64_t scn_creation_ns(const struct scn_run *r);
/* "cpu" for cpu, "memory" for mem and memory, other names as they are. */
struct hk_str scn_resource(struct hk_str word);
bool scn_is_resource(struct hk_str word);

/* ---- scn_kind.c ---- */

/* A statement that makes objects of one kind. */
struct scn_kind {
    const char *word;
    enum api_kind_id id;
    const struct scn_field *fields;
    void (*init)(struct scn_run *r, struct json *doc, struct hk_str ref); /* NULL: nothing to add */
};

/* NULL when the word makes no object. */
const struct scn_kind *scn_kind_find(struct hk_str word);
/* Puts one word of a line into the manifest. */
int scn_kind_set(struct scn_run *r, const struct scn_kind *kind, struct json *doc,
                 const struct scn_word *w, struct hk_err *err) HK_CHECKED;

/* ---- scn_expect.c ---- */

/* Fails with expected beside actual. */
int scn_expect_line(struct scn_run *r, struct hk_err *err) HK_CHECKED;
