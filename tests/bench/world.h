// SPDX-License-Identifier: Apache-2.0
// Clusters made straight in the model, without API objects: what the benchmark's and the property
// test's generators share. A wish is a pod's constraints as plain numbers, so that its bytes are
// the key equal constraints are found by.
#pragma once

#include "scheduler/model/model.h"

#define GI ((int64_t)1 << 30)
#define MI ((int64_t)1 << 20)
#define SECOND ((int64_t)1000000000)

struct world {
    struct model m;
    uint32_t gpu;     /* dimension of nvidia.com/gpu */
    ident_id plain;   /* pods of namespace "default" without labels */
    int64_t clock_ns; /* creation time of the next object: they come one second apart */
};

void world_init(struct world *w);
void world_fini(struct world *w);
int64_t world_tick(struct world *w);
uint32_t world_str(struct world *w, const char *fmt, ...) HK_PRINTF(2, 3);

/* A name in the caller's storage, for descriptions that borrow it. */
struct name {
    char text[48];
};
struct hk_str name_fmt(struct name *n, const char *fmt, ...) HK_PRINTF(2, 3);

struct size {
    int64_t cpu, mem, gpu; /* milli-cores, bytes, milli-devices */
};

struct world_node {
    struct hk_str name;
    struct size size;
    int64_t pods;
    const struct label *labels; /* any order */
    uint32_t nlabel;
    const struct taint *taints;
    uint32_t ntaint;
    unsigned flags;
};
node_id world_node(struct world *w, const struct world_node *d);

/* Every field is a 32-bit number: no padding, so equal wishes have equal bytes. */
enum { WISH_EACH = 2 };
struct wish_term {
    uint32_t topo_key, key, val; /* pods labelled key=val, counted by the topology key */
    int32_t weight;
};
struct wish_spread {
    uint32_t topo_key, key, val;
    int32_t max_skew, min_domains;
    uint32_t hard, honor_affinity, honor_taints;
};
struct wish_req {
    uint32_t key, op, val; /* enum label_op; val 0 for the operators without one */
    int32_t weight;
};
struct wish_tol {
    uint32_t key, val, exists, any_effect, effect;
};
struct wish {
    uint32_t ns; /* the owner's, for terms about other pods */
    uint32_t nsel, nterm, npref, ntol, nport, naff, nanti, npref_aff, npref_anti, nspread;
    struct label sel[WISH_EACH];
    struct wish_req term[WISH_EACH], pref[WISH_EACH];
    struct wish_tol tol[WISH_EACH];
    uint32_t port[WISH_EACH];
    struct wish_term aff[WISH_EACH], anti[WISH_EACH], pref_aff[WISH_EACH], pref_anti[WISH_EACH];
    struct wish_spread spread[WISH_EACH];
};
/* Lives as long as a shape made with it does. */
cons_id world_cons(struct world *w, const struct wish *wish);
shape_id world_shape(struct world *w, struct size size, cons_id cons);

void world_queue(struct world *w, struct hk_str name, int32_t weight);
/* Milli-cores and bytes as a queue's limit. */
struct rvec world_rvec(double cpu, double mem);
