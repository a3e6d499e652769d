// SPDX-License-Identifier: Apache-2.0
// Job plugins, as named in spec.plugins of a Job. A plugin is one file and one const struct: the
// arguments it takes, the objects it keeps beside the job, and its additions to each pod. It has no
// I/O and no state: the job controller creates, updates and removes the objects.
#pragma once

#include "api/registry.h"
#include "api/vcjob.h"
#include "base/clock.h"

enum job_opt_type { JOB_OPT_STRING, JOB_OPT_INT, JOB_OPT_BOOL };

/* An argument "--name value"; its default is text, parsed like the user's. */
struct job_opt {
    const char *name; /* NULL ends the list */
    enum job_opt_type type;
    size_t off;      /* of a struct hk_str, int64_t or bool in the plugin's options */
    const char *def; /* NULL: "", 0, false */
    const char *help;
};

struct job_plugin;

/* The argument of every hook. */
struct job_plugin_use {
    const struct job_plugin *plugin;
    const struct api_job *job;
    const void *opts; /* parsed from the arguments */
    struct hk_arena *a;
};

/* An object that must exist while the job has pods to run. */
struct job_object {
    enum api_kind_id kind;
    struct hk_str name; /* in the job's namespace */
    uint64_t want;      /* a hash of all inputs of make and correct, never 0 */
    /* Fills in all but apiVersion, kind, metadata.name, .namespace and .ownerReferences. */
    void (*make)(const struct job_plugin_use *use, struct json *body);
    /* Corrects an existing one; false when nothing differs. NULL: accept any. */
    bool (*correct)(const struct job_plugin_use *use, struct json *obj);
};

enum { JOB_OBJECTS_MAX = 3 };

struct job_plugin {
    const char *name, *about;
    const struct job_opt *opts; /* NULL: none */
    size_t opts_size;
    /* Writes up to JOB_OBJECTS_MAX objects, returns how many. NULL: none. */
    uint32_t (*objects)(const struct job_plugin_use *use, struct job_object *ret);
    /* Changes a pod before its creation. A failure stops the sync of the job. NULL: nothing. */
    int (*pod)(const struct job_plugin_use *use, const struct api_job_task *task, int32_t index,
               struct json *pod, struct hk_err *err);
    bool unlisted; /* not listed in controlledResources */
};

/* In the order in which hooks run: pytorch before hcclrank. */
const struct job_plugin *const *job_plugins(uint32_t *ret_n);
/* NULL when unknown. */
const struct job_plugin *job_plugin_find(struct hk_str name);
/* Parses the arguments as Go's flag package does: "-x v", "--x v", "-x=v", booleans alone or with
 * "=". Parsing stops at the first mistake: earlier arguments count, and warning (if not NULL)
 * describes the mistake. The options live in use->a. */
void job_plugin_use(struct job_plugin_use *use, const struct job_plugin *plugin,
                    const struct api_job *job, const struct api_job_plugin *asked,
                    struct hk_arena *a, struct hk_err *warning);

/* ---- shared by plugins ---- */

/* Host names: the template's hostname or "<job>-<task>-<i>"; the address adds "." and the
 * template's subdomain or the job's name. */
struct hk_str job_host(const struct job_plugin_use *use, const struct api_job_task *task,
                       int32_t index);
struct hk_str job_address(const struct job_plugin_use *use, const struct api_job_task *task,
                          int32_t index);
struct hk_str job_subdomain(const struct job_plugin_use *use, const struct api_job_task *task);
/* How many entries the task has in lists of hosts: replicas, or 1 when the template fixes the
 * hostname. */
int32_t job_hosts(const struct api_job_task *task);

/* Calls fn for each container of the pod, init containers included when asked for. */
void job_each_container(struct json *pod, bool init, void (*fn)(void *ctx, struct json *container),
                        void *ctx);
/* Append to lists of a container or pod; create missing lists. */
void job_add_env(struct json *container, struct hk_arena *a, const char *name, struct hk_str value);
/* Does nothing when the container already exposes that number. */
void job_add_port(struct json *container, struct hk_arena *a, const char *name, int64_t port);
bool job_has_port(const struct json *container, int64_t port);
