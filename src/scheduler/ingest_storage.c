// SPDX-License-Identifier: Apache-2.0
// Claims, volumes, storage classes and the CSI kinds, in the form the volume filters use
// (docs/reference/plugins.md section 5).
#include "scheduler/ingest_priv.h"

#include "api/storage.h"
#include "scheduler/model/volumes.h"

/* The id of a claim or capacity: its "ns/name". */
static uint32_t path_id(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    return ingest_str(
        in, hk_str(hk_arena_printf(&in->mem, "%.*s/%.*s", HK_FMT(ingest_ns(ns)), HK_FMT(name))));
}

static unsigned access_bits(const struct api_strs *modes)
{
    static const char *const names[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                        "ReadWriteOncePod"};
    unsigned bits = 0;

    for (uint32_t k = 0; k < modes->len; k++) {
        unsigned bit = VOLUME_ACCESS_OTHER;
        for (uint32_t i = 0; i < HK_LEN(names); i++) {
            if (hk_str_is(modes->at[k], names[i])) {
                bit = 1u << i;
            }
        }
        bits |= bit;
    }
    return bits;
}

static int64_t storage_bytes(const struct api_resources *r)
{
    const struct quantity *q = api_resources_get(r, HK_STR(API_RES_STORAGE));

    return q ? quantity_value(*q) : 0;
}

static uint32_t annotation_id(struct ingest *in, const struct api_meta *meta, struct hk_str key)
{
    const struct hk_str *v = api_map_get(&meta->annotations, key);

    return v ? ingest_str(in, *v) : 0;
}

/* 0 when absent, as in a manifest. */
static uint64_t revision(const struct api_meta *meta)
{
    int64_t rv;

    return hk_str_int(meta->resource_version, &rv) && rv > 0 ? (uint64_t)rv : 0;
}

/* ---- claims ---- */

/* The annotation is older than the field and wins over it. */
static uint32_t claim_class(struct ingest *in, const struct api_pvc *pvc)
{
    const struct hk_str *old =
        api_map_get(&pvc->meta.annotations, HK_STR("volume.beta.kubernetes.io/storage-class"));

    return ingest_str(in, old ? *old : pvc->class_name);
}

int ingest_pvc_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_pvc pvc;
    const struct api_owner *owner;
    int rc = api_pvc_decode(doc, &in->mem, &pvc, err);

    if (rc < 0) {
        return rc;
    }
    owner = api_meta_controller(&pvc.meta);
    volumes_claim_put(
        in->m,
        &(struct claim_desc){
            .key = path_id(in, pvc.meta.ns, pvc.meta.name),
            .uid = ingest_str(in, pvc.meta.uid),
            .owner = owner && hk_str_is(owner->kind, "Pod") ? ingest_str(in, owner->uid) : 0,
            .volume = ingest_str(in, pvc.volume_name),
            .class_ = claim_class(in, &pvc),
            .attributes_class = ingest_str(in, pvc.attributes_class),
            .selected_node = annotation_id(in, &pvc.meta, HK_STR(API_ANN_SELECTED_NODE)),
            .bind_completed = api_map_get(&pvc.meta.annotations, HK_STR(API_ANN_BIND_COMPLETED)),
            .lost = pvc.phase == API_CLAIM_LOST,
            .deleting = pvc.meta.deletion_ns != 0,
            .block = pvc.mode == API_VOLUME_BLOCK,
            .access = access_bits(&pvc.access_modes),
            .request = storage_bytes(&pvc.requests),
            .has_sel = pvc.selector.present,
            .sel = ingest_sel(in, &pvc.selector),
            .rv = revision(&pvc.meta),
        });
    return 0;
}

void ingest_pvc_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    volumes_claim_del(in->m, path_id(in, ns, name));
}

/* ---- volumes ---- */

int ingest_pv_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_pv pv;
    struct node_term *term;
    int rc = api_pv_decode(doc, &in->mem, &pv, err);

    if (rc < 0) {
        return rc;
    }
    term = hk_arena_array(&in->mem, pv.node_affinity.len, sizeof(*term));
    for (uint32_t k = 0; k < pv.node_affinity.len; k++) {
        term[k] = ingest_term(in, &pv.node_affinity.at[k]);
    }
    volumes_pv_put(in->m, &(struct pv_desc){
                              .name = ingest_str(in, pv.meta.name),
                              .class_ = ingest_str(in, pv.class_name),
                              .attributes_class = ingest_str(in, pv.attributes_class),
                              .ref = pv.claim.present ? path_id(in, pv.claim.ns, pv.claim.name) : 0,
                              .ref_uid = ingest_str(in, pv.claim.uid),
                              .driver = ingest_str(in, pv.csi_driver),
                              .handle = ingest_str(in, pv.csi_handle),
                              .available = pv.phase == API_PV_AVAILABLE,
                              .deleting = pv.meta.deletion_ns != 0,
                              .block = pv.mode == API_VOLUME_BLOCK,
                              .access = access_bits(&pv.access_modes),
                              .capacity = storage_bytes(&pv.capacity),
                              .labels = ingest_labels(in, &pv.meta.labels),
                              .has_terms = pv.node_affinity.present,
                              .term = term,
                              .nterm = pv.node_affinity.len,
                              .rv = revision(&pv.meta),
                          });
    return 0;
}

void ingest_pv_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    volumes_pv_del(in->m, ingest_str(in, name));
}

/* ---- classes ---- */

static const enum binding_mode modes[] = {
    [API_BINDING_UNSET] = BINDING_UNSET,
    [API_BINDING_IMMEDIATE] = BINDING_IMMEDIATE,
    [API_BINDING_WAIT_FOR_FIRST_CONSUMER] = BINDING_WAIT,
};

/* A topology selector without requirements allows no node. */
static struct node_term topology_term(struct ingest *in, const struct api_selector *s)
{
    const struct label_sel sel = ingest_sel(in, s);

    return (struct node_term){.never = sel.nothing, .nreq = sel.n, .req = sel.at};
}

int ingest_storage_class_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_storage_class sc;
    struct node_term *term;
    int rc = api_storage_class_decode(doc, &in->mem, &sc, err);

    if (rc < 0) {
        return rc;
    }
    term = hk_arena_array(&in->mem, sc.topologies.len, sizeof(*term));
    for (uint32_t k = 0; k < sc.topologies.len; k++) {
        term[k] = topology_term(in, &sc.topologies.at[k]);
    }
    volumes_class_put(in->m,
                      &(struct storage_class_desc){.name = ingest_str(in, sc.meta.name),
                                                   .provisioner = ingest_str(in, sc.provisioner),
                                                   .mode = modes[sc.mode],
                                                   .topology = term,
                                                   .ntopology = sc.topologies.len});
    return 0;
}

void ingest_storage_class_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    volumes_class_del(in->m, ingest_str(in, name));
}

/* ---- CSI ---- */

int ingest_csi_node_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_csi_node node;
    struct csi_limit *at;
    uint32_t n = 0;
    int rc = api_csi_node_decode(doc, &in->mem, &node, err);

    if (rc < 0) {
        return rc;
    }
    at = hk_arena_array(&in->mem, node.drivers.len, sizeof(*at));
    for (uint32_t k = 0; k < node.drivers.len; k++) {
        const struct api_csi_node_driver *d = &node.drivers.at[k];
        if (d->has_count) {
            at[n++] = (struct csi_limit){.driver = ingest_str(in, d->name), .count = d->count};
        }
    }
    volumes_csi_node_put(in->m, ingest_str(in, node.meta.name), at, n);
    return 0;
}

void ingest_csi_node_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    volumes_csi_node_del(in->m, ingest_str(in, name));
}

int ingest_csi_driver_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_csi_driver d;
    int rc = api_csi_driver_decode(doc, &in->mem, &d, err);

    if (rc < 0) {
        return rc;
    }
    volumes_csi_driver_put(in->m, ingest_str(in, d.meta.name), d.storage_capacity);
    return 0;
}

void ingest_csi_driver_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    volumes_csi_driver_del(in->m, ingest_str(in, name));
}

static int64_t capacity_limit(const struct api_csi_capacity *c)
{
    if (c->has_max_size) {
        return quantity_value(c->max_size);
    }
    return c->has_capacity ? quantity_value(c->capacity) : -1;
}

int ingest_csi_capacity_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_csi_capacity c;
    int rc = api_csi_capacity_decode(doc, &in->mem, &c, err);

    if (rc < 0) {
        return rc;
    }
    volumes_csi_capacity_put(
        in->m, &(struct csi_capacity_desc){.key = path_id(in, c.meta.ns, c.meta.name),
                                           .class_ = ingest_str(in, c.class_name),
                                           .topology = ingest_sel(in, &c.node_topology),
                                           .limit = capacity_limit(&c)});
    return 0;
}

void ingest_csi_capacity_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    volumes_csi_capacity_del(in->m, path_id(in, ns, name));
}

int ingest_attachment_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_volume_attachment a;
    int rc = api_volume_attachment_decode(doc, &in->mem, &a, err);

    if (rc < 0) {
        return rc;
    }
    volumes_attachment_put(in->m, &(struct attachment_desc){.name = ingest_str(in, a.meta.name),
                                                            .attacher = ingest_str(in, a.attacher),
                                                            .node = ingest_str(in, a.node_name),
                                                            .pv = ingest_str(in, a.pv_name)});
    return 0;
}

void ingest_attachment_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    volumes_attachment_del(in->m, ingest_str(in, name));
}
