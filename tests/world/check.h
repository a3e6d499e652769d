// SPDX-License-Identifier: Apache-2.0
// What the checks know of the published state. Shared by the check files only.
#pragma once

#include "base/map.h"
#include "world/world.h"

struct check_key {
    enum api_kind_id kind;
    bool present;
    bool unsure; /* a change was in progress when the process ended */
    uint64_t rv, hash;
};

struct check_pod {
    char uid[64], ns[32], name[64], node[32], group[64], fate[256];
    int64_t cpu_milli, mem_bytes;
    enum { CHECK_POD_PENDING, CHECK_POD_RUNNING, CHECK_POD_OVER } phase;
    char role[32];
    bool deleting, gone, forever, failed;
    int64_t gone_ns, deleting_ns; /* when it was published; 0: not yet */
    int64_t grace_s;
    bool forced; /* a client deleted it without waiting for its processes */
};

struct check_node {
    char name[32];
    int64_t cpu_milli, mem_bytes, pods;
    bool gone;
    int64_t gone_ns; /* when it was last deleted; 0: never */
    bool ready, doubted, out_of_service;
};

struct check_group {
    char ns[32], name[64], queue[32];
    int64_t min;
    struct {
        char role[32];
        int64_t min;
    } roles[4];
    bool gone, explained;
};

struct check_queue {
    char name[32];
    int64_t cpu_milli; /* -1: no limit */
    char state[16];
    bool gone;
};

struct check_job {
    char uid[64], ns[32], name[64], phase[16];
    int64_t retries, max_retry, version;
    bool huge, gone, deleting;
};

struct check {
    uint64_t rv; /* published */
    uint64_t writes;
    int64_t last_write_ns;
    uint64_t seen[API_NKINDS];
    struct hk_intern names; /* "kind ns/name" */
    HK_VEC(struct check_key) keys;
    HK_VEC(struct check_pod) pods;
    HK_VEC(struct check_node) nodes;
    HK_VEC(struct check_group) groups;
    HK_VEC(struct check_queue) queues;
    HK_VEC(struct check_job) jobs;
    uint32_t watches[WORLD_PARTS]; /* at the first rest */
    struct hk_arena mem;
    bool booted, dirty;
};

#define CHECK_PUT(field, str) snprintf((field), sizeof(field), "%.*s", HK_FMT(str))

struct hk_str check_str(const struct json *root, const char *path);
/* The amount in the list, none without one. */
int64_t check_amount(const struct json *list, const char *name, bool milli, int64_t none);
struct check_pod *check_pod_find(struct check *c, const char *uid);
/* A node as it was published. */
void check_node(struct world *w, const struct json *root, bool gone);
/* The machine of that name; NULL: none has an agent of its own. */
struct remote *check_remote(const struct world *w, const char *name);
uint32_t check_res(const struct world *w, enum api_kind_id kind);
struct check_node *check_node_named(struct check *c, const char *name);
struct check_group *check_group_find(struct check *c, const char *ns, const char *name);
