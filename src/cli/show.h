// SPDX-License-Identifier: Apache-2.0
// Output of commands about objects: tables and pages, identical to Volcano's programs, including
// trailing blanks, an overlong heading and a misspelt one, since scripts count columns. Dates and
// times are in the process's time zone.
#pragma once

#include "api/object.h"

/* Which jobs to list; "" accepts all. */
struct show_filter {
    const char *queue, *scheduler;
    const char *part; /* of the name */
};

struct show_jobs {
    struct show_filter filter;
    bool namespaces; /* show a namespace column */
    bool loose;      /* vjobs: filtered rows count for widths, an empty result prints a table */
};
void show_jobs(struct api_object *const *jobs, uint32_t n, const struct show_jobs *how,
               struct hk_buf *out);
/* show_job writes one job; show_events its events, selected from those of the namespace. */
void show_job(const struct json *job, bool conditions, struct hk_buf *out);
void show_events(struct hk_str job, struct api_object *const *events, uint32_t n, int64_t now_ns,
                 struct hk_buf *out);

/* Counts are taken from the groups. */
void show_queues(struct api_object *const *queues, uint32_t n, struct api_object *const *groups,
                 uint32_t ngroups, struct hk_buf *out);
/* The same without parents, and with counts from the queues' status. */
void show_queues_brief(struct api_object *const *queues, uint32_t n, struct hk_buf *out);

void show_flows(struct api_object *const *flows, uint32_t n, int64_t now_ns, struct hk_buf *out);
void show_templates(struct api_object *const *templates, uint32_t n, struct hk_buf *out);
/* format is "yaml" or "json"; for any other writes an error. */
void show_whole(const struct api_object *obj, const char *format, struct hk_buf *out);

/* Sorted by namespace and name. */
void show_pods(struct api_object *const *pods, uint32_t n, bool namespaces, int64_t now_ns,
               struct hk_buf *out);

/* The state of a server, from the document that `hekla status -o json` prints. */
void show_server(const struct json *status, int64_t now_ns, struct hk_buf *out);

/* "2026-08-20 12:00:00 +0200 CEST" of an API timestamp; year 1 when there is none. */
void show_time(const struct json *stamp, struct hk_buf *out);
/* Time since the timestamp, "<unknown>" when there is none. */
void show_age(const struct json *stamp, int64_t now_ns, struct hk_buf *out);
