// SPDX-License-Identifier: Apache-2.0
// Shared by the scenario files only: scn_parse.c splits lines, scn_object.c turns descriptions into
// API objects, scn_expect.c checks expectations, scn.c runs.
#pragma once

#include "sim/cluster.h"
#include "sim/scn.h"

/* ---- lines ---- */

/* "key=value" or a bare word, without quotes. */
struct scn_word {
    struct hk_str key;
    struct hk_str value; /* s is NULL without '=' */
};

struct scn_line {
    uint32_t line;
    uint32_t n;
    struct scn_word *words;
    struct hk_str body; /* the lines after this one, up to the mark of <<EOF; s NULL without */
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

/* Error messages start with "path:line: ". text must outlive the file. */
int scn_parse(struct scn_file *f, const char *path, struct hk_str text,
              struct hk_err *err) HK_CHECKED;
void scn_file_fini(struct scn_file *f);

/* ---- running ---- */

/* The latest state of an object in the scenario. */
struct scn_object {
    enum api_kind_id kind;
    struct hk_str ns, name; /* "ns", "j1-0" */
    struct json doc;
};

struct scn_run {
    const struct scn_file *file;
    const struct scn_opts *opts;
    const struct scn_line *line; /* current line */
    struct hk_arena mem;
    struct cluster c;
    struct conf *conf;
    struct hk_intern refs;                /* "task j1/0" -> row of objects */
    HK_VEC(struct scn_object) objects;    /* by id of refs */
    uint32_t made;                        /* objects so far: makes creation times differ */
    HK_VEC(struct hk_str) known_problems; /* problems that the scenario expects */
};

/* Fails with "path:line: ..." of the current line. */
int scn_fail(const struct scn_run *r, struct hk_err *err, const char *fmt, ...) HK_PRINTF(3, 4);

/* The line's body, preceded by empty lines so that line numbers in messages are right. */
struct hk_str scn_body(const struct scn_run *r, struct hk_buf *scratch);

/* The names that a word expands to: "j1/[0-2]" is three. In r->mem. */
struct scn_names {
    struct hk_str *at;
    uint32_t n;
};
int scn_expand(struct scn_run *r, struct hk_str word, struct scn_names *ret,
               struct hk_err *err) HK_CHECKED;

struct scn_kind;

/* ---- scn_object.c ---- */

/* Creates or changes the objects of a line. An object that ingest refuses becomes a problem, not an
 * error here. */
int scn_object_line(struct scn_run *r, const struct scn_kind *kind, struct hk_err *err) HK_CHECKED;
/* `object <<EOF`: unchanged manifests. */
int scn_raw_line(struct scn_run *r, struct hk_err *err) HK_CHECKED;
int scn_delete_line(struct scn_run *r, struct hk_err *err) HK_CHECKED;
/* `done` and `fail`: sets the pods' phase. */
int scn_finish_line(struct scn_run *r, const char *phase, struct hk_err *err) HK_CHECKED;
/* NULL when the scenario has no such task or pod. */
const struct scn_object *scn_task_find(const struct scn_run *r, struct hk_str ref);
const struct scn_object *scn_job_find(const struct scn_run *r, struct hk_str ref);

/* ---- scn_field.c ---- */

/* One word applied to one object. */
struct scn_edit {
    struct scn_run *r;
    struct json *doc;
    const struct scn_field *f;
    struct hk_str value; /* s NULL for a bare word */
    struct hk_str rest;  /* the part of the key after the prefix */
    struct hk_err *err;
};

typedef int scn_set_fn(struct scn_edit *e);

struct scn_field {
    const char *key; /* ends in ':' or '@' when it is a prefix; NULL: any resource name */
    scn_set_fn *set;
    const char *path; /* dotted, for the setters below; the annotation's name for set_annotation */
};

/* Text, whole number, boolean (bare is true), "a,b", KEY=VALUE after a prefix, an annotation (bare
 * is "true"), "cpu:4,mem:8Gi", a duration. */
scn_set_fn scn_set_str, scn_set_int, scn_set_bool, scn_set_list, scn_set_map, scn_set_annotation,
    scn_set_resources, scn_set_age;
int scn_bad_value(struct scn_edit *e, const char *want);

struct json scn_time(struct scn_run *r, int64_t ns);
/* Creation time of the current object. Later lines are at least a microsecond younger, so ties
 * break in the order of lines. */
int64_t scn_creation_ns(const struct scn_run *r);
/* "cpu" for cpu, "memory" for mem and memory, other names as they are. */
struct hk_str scn_resource(struct hk_str word);
bool scn_is_resource(struct hk_str word);

/* ---- scn_kind.c ---- */

/* A statement that creates objects of one kind. */
struct scn_kind {
    const char *word;
    enum api_kind_id id;
    const struct scn_field *fields;
    void (*init)(struct scn_run *r, struct json *doc, struct hk_str ref); /* NULL: nothing to add */
};

/* NULL when the word is no such statement. */
/* The i-th word of the language; NULL after the last. */
const struct scn_kind *scn_kind_at(size_t i);
const struct scn_kind *scn_kind_find(struct hk_str word);
/* Applies one word of a line to the manifest. */
int scn_kind_set(struct scn_run *r, const struct scn_kind *kind, struct json *doc,
                 const struct scn_word *w, struct hk_err *err) HK_CHECKED;

/* ---- scn_expect.c ---- */

/* Fails with a message of expected and actual values. */
int scn_expect_line(struct scn_run *r, struct hk_err *err) HK_CHECKED;
