// SPDX-License-Identifier: Apache-2.0
// NodeVolumeLimits: how many volumes of a CSI driver a node can attach. Counted on demand, from the
// pods on the node and its VolumeAttachments (docs/reference/plugins.md section 5.1).

#include "scheduler/model/volumes_priv.h"

/* Nothing to check in advance: all failures depend on the node. */
bool volumes_pre_limits(struct model *m, task_id t, struct reason *why)
{
    return true;
}

/* A volume as one number: driver and handle, or driver and claim while there is no volume yet. 0
 * when no limit counts it. */
static uint64_t volume_number(const struct volumes *v, const struct claim *c)
{
    const struct pv *p = find_pv(v, c->d.volume);

    if (p) {
        return p->d.driver == 0 ? 0 : (uint64_t)p->d.driver << 33 | p->d.handle;
    }
    const struct sclass *s = find_class(v, c->d.class_);
    return s && s->d.provisioner != 0 ? (uint64_t)s->d.provisioner << 33 | 1ULL << 32 | c->d.key
                                      : 0;
}

static uint32_t number_driver(uint64_t number)
{
    return (uint32_t)(number >> 33);
}

static int cmp_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint32_t numbers_unique(uint64_t *at, uint32_t n)
{
    uint32_t kept = 0;

    if (n > 1) {
        qsort(at, n, sizeof(*at), cmp_number);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || at[kept - 1] != at[i]) {
            at[kept++] = at[i];
        }
    }
    return kept;
}

/* Puts the task's volumes into v->fresh; returns a reason when a claim is not usable. */
static struct reason fresh_volumes(struct model *m, task_id t)
{
    struct volumes *v = m->volumes;
    const struct cons *k = task_cons(m, t);

    hk_vec_clear(&v->fresh);
    for (uint32_t i = 0; i < k->nclaim; i++) {
        const struct claim *c = find_claim(v, k->claim[i]);
        if (!c) {
            return volumes_reason(m, "looking up PVC %s: persistentvolumeclaim \"%s\" not found",
                                  model_str(m, k->claim[i]).s, key_name(m, k->claim[i]));
        }
        if (k->claim_ephemeral[i] && !owns(m, t, c)) {
            return volumes_not_owner(m, t, k->claim[i], "");
        }
        const uint64_t number = volume_number(v, c);
        if (number != 0) {
            hk_vec_push(&v->fresh, number);
        }
    }
    v->fresh.len = numbers_unique(v->fresh.at, v->fresh.len);
    return (struct reason){0};
}

/* Puts the volumes of the node's other pods into v->attached. */
static void pod_volumes(struct model *m, task_id but, node_id n)
{
    struct volumes *v = m->volumes;

    hk_vec_clear(&v->attached);
    for (task_id t = m->nodes.first[n.i]; !id_none(t); t = model_task(m, t)->node_next) {
        const struct cons *k = task_cons(m, t);
        if (!k || !(model_task(m, t)->flags & TASK_IN_VIEW) || id_eq(t, but)) {
            continue;
        }
        for (uint32_t i = 0; i < k->nclaim; i++) {
            const struct claim *c = find_claim(v, k->claim[i]);
            const uint64_t number =
                c && (!k->claim_ephemeral[i] || owns(m, t, c)) ? volume_number(v, c) : 0;
            if (number != 0) {
                hk_vec_push(&v->attached, number);
            }
        }
    }
    v->attached.len = numbers_unique(v->attached.at, v->attached.len);
}

static bool number_in(const uint64_t *at, uint32_t n, uint64_t number)
{
    return n > 0 && bsearch(&number, at, n, sizeof(*at), cmp_number) != NULL;
}

/* Removes volumes that a pod of the node already uses from v->fresh. A volume known only through an
 * attachment stays, as upstream. */
static void fresh_minus_attached(struct volumes *v)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < v->fresh.len; i++) {
        if (!number_in(v->attached.at, v->attached.len, v->fresh.at[i])) {
            v->fresh.at[kept++] = v->fresh.at[i];
        }
    }
    v->fresh.len = kept;
}

static void add_attachments(struct model *m, node_id n)
{
    struct volumes *v = m->volumes;

    for (uint32_t a = hk_map_get(&v->attachments_by_node, m->nodes.name[n.i]); a != HK_NONE;
         a = v->attachments.at[a].next) {
        const struct attachment_desc *d = &v->attachments.at[a].d;
        const struct pv *p = find_pv(v, d->pv);
        if (d->attacher != 0 && p && p->d.driver != 0) {
            hk_vec_push(&v->attached, (uint64_t)d->attacher << 33 | p->d.handle);
        }
    }
    v->attached.len = numbers_unique(v->attached.at, v->attached.len);
}

static uint32_t count_driver(const uint64_t *at, uint32_t n, uint32_t driver)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        count += number_driver(at[i]) == driver;
    }
    return count;
}

struct reason volumes_filter_limits(struct model *m, task_id t, node_id n)
{
    struct volumes *v = m->volumes;
    const uint32_t row = hk_map_get(&v->csi_node_by_name, m->nodes.name[n.i]);
    const struct reason why = fresh_volumes(m, t);

    if (why.code != REASON_NONE || v->fresh.len == 0 || row == HK_NONE ||
        v->csi_nodes.at[row].limits.len == 0) {
        return why;
    }
    pod_volumes(m, t, n);
    fresh_minus_attached(v);
    add_attachments(m, n);
    const struct csi_node *c = &v->csi_nodes.at[row];
    for (uint32_t i = 0; i < c->limits.len; i++) {
        const uint32_t driver = c->limits.at[i].driver;
        const uint32_t fresh = count_driver(v->fresh.at, v->fresh.len, driver);
        const uint32_t attached = count_driver(v->attached.at, v->attached.len, driver);
        if (fresh > 0 && (int64_t)attached + fresh > c->limits.at[i].count) {
            return (struct reason){.code = REASON_VOLUME_COUNT};
        }
    }
    return why;
}
