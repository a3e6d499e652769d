// SPDX-License-Identifier: Apache-2.0
// VolumeZone: a pod runs only in the zones and regions that the labels of its bound volumes name
// (docs/reference/plugins.md section 5.2).

#include "scheduler/model/volumes_priv.h"

#define ZONE_FAILED "plugin VolumeZone pre-predicates failed "

/* An unbound claim has no zone yet if it waits for its first consumer; otherwise it should already
 * be bound. */
static bool zone_of_unbound(struct model *m, const struct claim *c, struct reason *why)
{
    const struct sclass *s = find_class(m->volumes, c->d.class_);

    if (c->d.class_ == 0) {
        *why = volumes_reason(m, ZONE_FAILED
                              "PersistentVolumeClaim had no pv name and storageClass name");
    } else if (!s) {
        *why = volumes_reason(m, ZONE_FAILED "storageclass.storage.k8s.io \"%s\" not found",
                              model_str(m, c->d.class_).s);
    } else if (s->d.mode == BINDING_UNSET) {
        *why = volumes_reason(m, ZONE_FAILED "VolumeBindingMode not set for StorageClass \"%s\"",
                              model_str(m, c->d.class_).s);
    } else if (s->d.mode != BINDING_WAIT) {
        *why = volumes_reason(m, ZONE_FAILED "PersistentVolume had no name");
    } else {
        return true;
    }
    return false;
}

bool volumes_pre_zone(struct model *m, task_id t, struct reason *why)
{
    const struct volumes *v = m->volumes;
    const struct cons *k = task_cons(m, t);

    for (uint32_t i = 0; k && i < k->nclaim; i++) {
        const struct claim *c = find_claim(v, k->claim[i]);
        if (k->claim_ephemeral[i]) {
            continue;
        }
        if (!c) {
            *why = volumes_reason(m, ZONE_FAILED "persistentvolumeclaim \"%s\" not found",
                                  key_name(m, k->claim[i]));
            return false;
        }
        if (c->d.volume == 0) {
            if (!zone_of_unbound(m, c, why)) {
                return false;
            }
        } else if (!find_pv(v, c->d.volume)) {
            *why = volumes_reason(m, ZONE_FAILED "persistentvolume \"%s\" not found",
                                  model_str(m, c->d.volume).s);
            return false;
        }
    }
    return true;
}

/* Cuts the part before "__" off *rest and trims blanks. */
static bool zone_cut(struct hk_str *rest, struct hk_str *part)
{
    if (!rest->s) {
        return false;
    }
    const char *at = rest->n > 0 ? memmem(rest->s, rest->n, "__", 2) : NULL;
    *part = hk_str_trim((struct hk_str){rest->s, at ? (size_t)(at - rest->s) : rest->n});
    *rest = at ? (struct hk_str){at + 2, rest->n - (size_t)(at - rest->s) - 2} : (struct hk_str){0};
    return true;
}

/* Whether the value, one zone or several joined by "__", contains the node's zone. A value with an
 * empty zone matches every node. */
static bool zone_holds(struct hk_str value, struct hk_str zone)
{
    struct hk_str part;
    bool found = false;

    while (zone_cut(&value, &part)) {
        if (part.n == 0) {
            return true;
        }
        found |= hk_str_eq(part, zone);
    }
    return found;
}

static bool pv_in_zone(const struct model *m, const struct pv *p, struct labels node)
{
    const struct volumes *v = m->volumes;
    uint32_t want, have;

    for (uint32_t i = 0; i < NZONE; i++) {
        if (!labels_get(p->d.labels, v->zone_key[i], &want)) {
            continue;
        }
        bool known = labels_get(node, v->zone_key[i], &have);
        if (!known && i + 2 < NZONE) {
            known = labels_get(node, v->zone_key[i + 2], &have);
        }
        const struct hk_str zone = known ? model_str(m, have) : HK_STR("");
        if (!zone_holds(model_str(m, want), zone)) {
            return false;
        }
    }
    return true;
}

struct reason volumes_filter_zone(struct model *m, task_id t, node_id n)
{
    const struct volumes *v = m->volumes;
    const struct cons *k = task_cons(m, t);
    const struct labels labels = m->nodes.labels[n.i];

    if (!k || !has_zone_label(v, labels)) {
        return (struct reason){0};
    }
    for (uint32_t i = 0; i < k->nclaim; i++) {
        const struct claim *c = k->claim_ephemeral[i] ? NULL : find_claim(v, k->claim[i]);
        const struct pv *p = c ? find_pv(v, c->d.volume) : NULL;
        if (p && p->zoned && !pv_in_zone(m, p, labels)) {
            return (struct reason){.code = REASON_VOLUME_ZONE};
        }
    }
    return (struct reason){0};
}
