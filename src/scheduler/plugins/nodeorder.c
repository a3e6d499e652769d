// SPDX-License-Identifier: Apache-2.0
// nodeorder: the weighted sum of the score plugins of Kubernetes (docs/reference/plugins.md section
// 6). The resource scores are in resources.c, those that count pods in interpod.c and spread.c.
// This file has the others and decides which of them matter for a task.
#include "scheduler/plugins/interpod.h"
#include "scheduler/plugins/resources.h"
#include "scheduler/plugins/spread.h"
#include "scheduler/session.h"

struct nodeorder {
    int64_t least, most, balanced, node_affinity, pod_affinity, taints, spread, images;
    uint32_t gpu; /* dimension of nvidia.com/gpu, HK_NONE when unused */
};

static const struct opt options[] = {
    OPT(OPT_INT, struct nodeorder, least, "leastrequested.weight", "1",
        "prefer nodes with much cpu and memory free"),
    OPT(OPT_INT, struct nodeorder, most, "mostrequested.weight", "0",
        "prefer nodes with little cpu and memory free"),
    OPT(OPT_INT, struct nodeorder, balanced, "balancedresource.weight", "1",
        "prefer nodes where cpu, memory and GPUs fill up evenly"),
    OPT(OPT_INT, struct nodeorder, node_affinity, "nodeaffinity.weight", "2",
        "preferred node affinity"),
    OPT(OPT_INT, struct nodeorder, pod_affinity, "podaffinity.weight", "2",
        "preferred affinity and anti-affinity between pods"),
    OPT(OPT_INT, struct nodeorder, taints, "tainttoleration.weight", "3",
        "avoid PreferNoSchedule taints"),
    OPT(OPT_INT, struct nodeorder, spread, "podtopologyspread.weight", "2",
        "topology spread constraints that say ScheduleAnyway"),
    OPT(OPT_INT, struct nodeorder, images, "imagelocality.weight", "1",
        "prefer nodes that have the images already"),
};

static void nodeorder_open(struct session *ssn, void *self)
{
    struct nodeorder *o = self;

    o->gpu = dims_find(&ssn->m->dims, HK_STR("nvidia.com/gpu"));
}

/* Percentage, rounded down. */
static int64_t percent(int64_t part, int64_t whole)
{
    return 100 * part / whole;
}

typedef int64_t raw_fn(const struct model *m, const struct cons *c, node_id n);

/* Score proportional to the raw value: 100 for the highest among the nodes; if turned, 100 for a
 * raw value of zero. */
static void relative_score(const struct model *m, const struct cons *c, const node_id *nodes,
                           uint32_t n, raw_fn *raw_of, bool turned, int64_t weight,
                           struct hk_arena *mem, double *score)
{
    const struct hk_arena_mark mark = hk_arena_mark(mem);
    int64_t *raw = hk_arena_alloc(mem, n * sizeof(*raw));
    int64_t max = 0;

    for (uint32_t i = 0; i < n; i++) {
        raw[i] = raw_of(m, c, nodes[i]);
        max = HK_MAX(max, raw[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const int64_t points = max > 0 ? percent(raw[i], max) : 0;
        score[i] += (double)(weight * (turned ? 100 - points : points));
    }
    hk_arena_rewind(mem, mark);
}

/* ---- preferred node affinity ---- */

static int64_t preference(const struct model *m, const struct cons *c, node_id n)
{
    int64_t sum = 0;

    for (uint32_t k = 0; k < c->npref; k++) {
        if (c->pref[k].weight != 0 &&
            node_term_match(&c->pref[k], m->nodes.labels[n.i], m->nodes.name[n.i], &m->str)) {
            sum += c->pref[k].weight;
        }
    }
    return sum;
}

/* ---- PreferNoSchedule taints ---- */

static int64_t untolerated(const struct model *m, const struct cons *c, node_id n)
{
    int64_t count = 0;

    for (uint32_t k = 0; k < m->nodes.ntaint[n.i]; k++) {
        count += !cons_tolerates(c, &m->nodes.taints[n.i][k], 1, 1u << EFFECT_PREFER_NO_SCHEDULE);
    }
    return count;
}

/* Without any such taint every node gets the full score. */
static void add_to_all(int64_t v, uint32_t n, double *score)
{
    for (uint32_t i = 0; i < n; i++) {
        score[i] += (double)v;
    }
}

/* ---- images ---- */

#define IMAGE_MIN ((int64_t)23 << 20)
#define IMAGE_MAX ((int64_t)1000 << 20) /* per container */

static bool images_known(const struct model *m, const struct cons *c)
{
    for (uint32_t k = 0; m->nimages > 0 && c && k < c->nimage; k++) {
        if (c->image[k] < m->image_nodes.len && m->image_nodes.at[c->image[k]] > 0) {
            return true;
        }
    }
    return false;
}

/* An image counts more the more nodes have it: a rare one would attract every pod to one node. */
static int64_t image_size(const struct model *m, node_id n, uint32_t image)
{
    const struct image_vec *have = &m->nodes.images[n.i];

    for (uint32_t k = 0; k < have->len; k++) {
        if (have->at[k].image == image) {
            const double part = (double)m->image_nodes.at[image] / (double)m->nodes.live;
            return (int64_t)((double)have->at[k].size * part);
        }
    }
    return 0;
}

static void image_score(const struct model *m, const struct cons *c, const node_id *nodes,
                        uint32_t n, int64_t weight, double *score)
{
    const int64_t max = IMAGE_MAX * HK_MAX(c->nimage_containers, 1u);

    for (uint32_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (uint32_t k = 0; k < c->nimage; k++) {
            sum += image_size(m, nodes[i], c->image[k]);
        }
        sum = HK_MIN(HK_MAX(sum, IMAGE_MIN), max);
        score[i] += (double)(weight * percent(sum - IMAGE_MIN, max - IMAGE_MIN));
    }
}

/* ---- all together ---- */

static int nodeorder_score(struct session *ssn, void *self, task_id t, const node_id *nodes,
                           uint32_t n, double *score)
{
    const struct nodeorder *o = self;
    struct model *m = ssn->m;
    const struct cons *c = task_cons(m, t);

    if (c && c->pref_error && o->node_affinity != 0) {
        return -HK_EINVAL;
    }
    const struct resource_weights w = {o->least, o->most, o->balanced, o->gpu};
    resources_score(m, task_shape(m, t), &w, nodes, n, score);
    if (c && c->npref > 0 && o->node_affinity != 0) {
        relative_score(m, c, nodes, n, preference, false, o->node_affinity, ssn->mem, score);
    }
    if (o->pod_affinity != 0 && interpod_scores(m, t)) {
        interpod_score(m, t, nodes, n, o->pod_affinity, ssn->mem, score);
    }
    if (m->prefer_taints == 0) {
        add_to_all(100 * o->taints, n, score);
    } else if (o->taints != 0) {
        relative_score(m, c, nodes, n, untolerated, true, o->taints, ssn->mem, score);
    }
    if (o->spread != 0 && spread_asked(m, t, false)) {
        spread_score(m, t, nodes, n, o->spread, ssn->mem, score);
    }
    if (o->images != 0 && images_known(m, c)) {
        image_score(m, c, nodes, n, o->images, score);
    }
    return 0;
}

static bool nodeorder_score_local(struct session *ssn, void *self, task_id t)
{
    const struct nodeorder *o = self;
    const struct cons *c = task_cons(ssn->m, t);

    return !(o->node_affinity != 0 && c && c->npref > 0) &&
           !(o->taints != 0 && ssn->m->prefer_taints > 0) &&
           !(o->pod_affinity != 0 && interpod_scores(ssn->m, t)) &&
           !(o->spread != 0 && spread_asked(ssn->m, t, false));
}

const struct plugin plugin_nodeorder = {
    .name = "nodeorder",
    .about = "score nodes by the rules of Kubernetes",
    .state_size = sizeof(struct nodeorder),
    .opts = options,
    .nopt = HK_LEN(options),
    .open = nodeorder_open,
    .score = nodeorder_score,
    .score_local = nodeorder_score_local,
};
