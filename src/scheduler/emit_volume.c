// SPDX-License-Identifier: Apache-2.0
// Binds that need volumes first (docs/reference/scheduler.md section 6.2). Every reserved claim is
// written to the API: as claimRef of its volume, or as the node for which to provision a volume.
// The volume controller and the provisioner then bind claim and volume, and watch events report
// their progress; nothing is polled. The bind is sent once all claims are bound.
//
//   TO_WRITE --sent--> WRITING --accepted--> WRITTEN --claim bound--> (ready)
//       ^--- conflict ----' '---refused---.     '--undone, or timeout--> (failed)
//                                         '----------------------------> (failed)
//
// When a bind is given up, its writes stay: the next attempt uses them.
#include "base/log.h"
#include "scheduler/emit_priv.h"
#include "scheduler/model/volumes.h"

static struct volume_bind *list_binds(struct emit *e, task_id t, uint32_t *ret_n)
{
    const uint32_t n = volumes_reserved(e->o.m, t, e->binds.at, e->binds.cap);

    if (n > e->binds.cap) {
        hk_vec_reserve(&e->binds, n);
        return list_binds(e, t, ret_n);
    }
    *ret_n = n;
    return e->binds.at;
}

/* ---- one claim ---- */

static bool emit_volume_fail(struct hk_buf *why, const char *fmt, ...) HK_PRINTF(2, 3);
static bool emit_volume_fail(struct hk_buf *why, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(why, fmt, ap);
    va_end(ap);
    return false;
}

static const char *emit_volume_claim_name(const struct emit *e, uint32_t claim)
{
    const char *key = emit_str(e, claim).s, *slash = strchr(key, '/');

    return slash ? slash + 1 : key;
}

/* False, with the message, when the claim can no longer get its volume. */
static bool is_possible(const struct emit *e, const struct prebind *p, const struct volume_bind *b,
                        struct hk_buf *why)
{
    if (b->claim_gone) {
        return emit_volume_fail(
            why, "failed to check %s: could not find v1.PersistentVolumeClaim \"%s\"",
            b->pv ? "binding" : "provisioning pvc", emit_str(e, b->claim).s);
    }
    if (b->unreachable) {
        return emit_volume_fail(why,
                                "pv \"%s\" node affinity doesn't match node \"%s\": no matching "
                                "NodeSelectorTerms",
                                emit_str(e, b->volume).s, emit_str(e, p->bind.node).s);
    }
    if (b->pv_gone && !b->bound) {
        return emit_volume_fail(
            why, "failed to check binding: could not find v1.PersistentVolume \"%s\"",
            emit_str(e, b->pv).s);
    }
    return true;
}

static bool undone(const struct emit *e, const struct volume_bind *b, struct hk_buf *why)
{
    if (!b->pv) {
        return emit_volume_fail(why, "provisioning failed for PVC \"%s\"",
                                emit_volume_claim_name(e, b->claim));
    }
    if (b->taken) {
        return emit_volume_fail(why, "pv \"%s\" belongs to another claim", emit_str(e, b->pv).s);
    }
    return emit_volume_fail(why, "ClaimRef got reset for pv \"%s\"", emit_str(e, b->pv).s);
}

static void push_write(struct emit *e, const struct prebind *p, uint32_t k,
                       const struct volume_bind *b)
{
    emit_push(e, LANE_PODS,
              (struct write){.kind = WRITE_VOLUME,
                             .about = b->pv ? API_PV : API_PVC,
                             .task = p->bind.task,
                             .uid = p->bind.uid,
                             .name = b->pv ? b->pv : b->claim,
                             .node = p->bind.node,
                             .slot = k,
                             .said = b->rv});
}

/* Sends the next write for the claim; false when the claim cannot succeed. */
static bool advance_part(struct emit *e, struct prebind *p, uint32_t k, const struct volume_bind *b,
                         struct hk_buf *why)
{
    struct volume_part *part = &p->parts[k];

    if (!is_possible(e, p, b, why)) {
        return false;
    }
    if (b->bound || b->written || part->state == PART_WRITING) {
        return true;
    }
    if (b->rv < part->rv || (part->state == PART_TO_WRITE && part->rv > 0 && b->rv == part->rv)) {
        return true; /* the event of the latest version is not here yet */
    }
    if (part->state == PART_WRITTEN || b->taken) {
        return undone(e, b, why);
    }
    part->state = PART_WRITING;
    push_write(e, p, k, b);
    return true;
}

/* ---- requests ---- */

/* Writes of others since the version in the model cause a conflict. */
static void put_revision(struct emit *e, struct json *meta, uint64_t rv)
{
    if (rv > 0) {
        json_set_cstr(meta, &e->mem, "resourceVersion",
                      hk_arena_printf(&e->mem, "%llu", (unsigned long long)rv));
    }
}

static void put_claim_ref(struct emit *e, const struct volume_bind *b, struct json *meta,
                          struct json *body)
{
    struct json *ref = json_set_object(json_set_object(body, &e->mem, "spec"), &e->mem, "claimRef");
    struct hk_str name = emit_str(e, b->claim), ns;

    hk_str_cut(&name, '/', &ns);
    if (!b->prebound) { /* lets the volume controller undo it */
        json_set_cstr(json_set_object(meta, &e->mem, "annotations"), &e->mem,
                      API_ANN_BOUND_BY_CONTROLLER, "yes");
    }
    json_set_cstr(ref, &e->mem, "apiVersion", "v1");
    json_set_cstr(ref, &e->mem, "kind", "PersistentVolumeClaim");
    json_set_str(ref, &e->mem, "namespace", ns);
    json_set_str(ref, &e->mem, "name", name);
    json_set_str(ref, &e->mem, "uid", emit_str(e, b->claim_uid));
}

static struct prebind *emit_volume_find_prebind(const struct emit *e, const struct write *w)
{
    const struct known *known = e->known;
    const struct pod_known *k = w->task.row < known->pods.len ? &known->pods.at[w->task.row] : NULL;

    return k && k->uid == w->uid ? k->prebind : NULL;
}

bool emit_volume_request(struct emit *e, struct write *w, struct port_request *req,
                         struct json *body)
{
    const task_id t = emit_task(e, w);
    struct json *meta;
    uint32_t n;

    if (!emit_volume_find_prebind(e, w) || id_none(t)) {
        return false;
    }
    const struct volume_bind *binds = list_binds(e, t, &n);
    if (w->slot >= n) {
        return false;
    }
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_MERGE;
    meta = json_set_object(body, &e->mem, "metadata");
    put_revision(e, meta, w->said);
    if (w->about == API_PV) {
        put_claim_ref(e, &binds[w->slot], meta, body);
        return true;
    }
    hk_str_cut(&req->name, '/', &req->ns);
    if (binds[w->slot].claim_uid) {
        json_set_str(meta, &e->mem, "uid", emit_str(e, binds[w->slot].claim_uid));
    }
    json_set_str(json_set_object(meta, &e->mem, "annotations"), &e->mem, API_ANN_SELECTED_NODE,
                 emit_str(e, w->node));
    return true;
}

void emit_volume_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct prebind *p = emit_volume_find_prebind(e, w);

    if (!p) {
        return;
    }
    struct volume_part *part = &p->parts[w->slot];
    e->volumes_changed = true;
    if (m->rc == 0) {
        *part = (struct volume_part){.state = PART_WRITTEN, .rv = m->rv};
    } else if (m->rc == -HK_ECONFLICT && w->said > 0) {
        *part = (struct volume_part){.state = PART_TO_WRITE, .rv = w->said};
    } else if (!p->error) {
        p->error = hk_strdup(m->err->text);
    }
}

/* ---- one bind ---- */

static void emit_volume_fail_bind(struct emit *e, struct prebind *p, task_id t, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_log(HK_LOG_WARN, "volumes not bound", "pod=%s err=\"%s\"", emit_about(e, &p->bind), why);
    hk_buf_addf(&text, "execute preBind for pod %s failed: binding volumes: %s, resync the task",
                emit_about(e, &p->bind), why);
    emit_pod_condition(e, t, "SchedulerError", text.data, NO_NODE);
    emit_tell(e, &p->bind, EMIT_BIND_FAILED);
}

/* True while the bind still waits. */
static bool emit_volume_advance_prebind(struct emit *e, struct prebind *p, int64_t now_ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    const struct model *m = e->o.m;
    const task_id t = emit_task(e, &p->bind);
    bool possible = true, ready = true;
    uint32_t n;

    if (id_none(t) || model_task(m, t)->status != TASK_BINDING) {
        return false; /* the pod is deleted or terminating */
    }
    const struct volume_bind *b = list_binds(e, t, &n);
    if (n != p->npart) {
        possible = emit_volume_fail(&why, "its volumes are no longer reserved for it");
    } else if (p->error) {
        possible = emit_volume_fail(&why, "%s", p->error);
    } else if (!(m->nodes.flags[model_task(m, t)->node.i] & NODE_KNOWN)) {
        possible = emit_volume_fail(&why, "node \"%s\" not found", emit_str(e, p->bind.node).s);
    }
    for (uint32_t k = 0; k < n && possible; k++) {
        possible = advance_part(e, p, k, &b[k], &why);
        ready = ready && b[k].bound;
    }
    if (possible && !ready && now_ns >= p->due_ns) {
        possible = emit_volume_fail(&why, "context deadline exceeded");
    }
    if (!possible) {
        emit_volume_fail_bind(e, p, t, why.data);
    } else if (ready) {
        meter_stage(e->o.meter, METER_PREBIND, p->since_ns);
        emit_push(e, LANE_PODS, p->bind);
    }
    return possible && !ready;
}

static void prebind_free(struct emit *e, struct prebind *p)
{
    struct pod_known *k = &e->known->pods.at[p->bind.task.row];

    if (k->prebind == p) {
        k->prebind = NULL;
    }
    emit_write_fini(e, &p->bind);
    hk_free(p->error);
    hk_free(p);
}

bool emit_prebind(struct emit *e, const struct write *bind, int64_t wait_ns)
{
    const task_id t = emit_task(e, bind);
    const uint32_t n = volumes_reserved(e->o.m, t, NULL, 0);
    struct prebind *p;

    if (n == 0) {
        return false;
    }
    p = hk_zalloc(sizeof(*p) + n * sizeof(p->parts[0]));
    p->bind = *bind;
    p->since_ns = meter_start(e->o.meter);
    p->due_ns = e->o.clock->mono_ns(e->o.clock) + wait_ns;
    p->npart = n;
    emit_write_keep(e, &p->bind);
    known_pod(e->known, t)->prebind = p;
    hk_vec_push(&e->prebinds, p);
    e->volumes_changed = true;
    return true;
}

int64_t emit_volume_tick(struct emit *e)
{
    const int64_t now_ns = e->o.clock->mono_ns(e->o.clock);
    uint32_t n = 0;

    if (!e->volumes_changed && e->volume_events == e->known->volume_events &&
        now_ns < e->prebind_due_ns) {
        return e->prebind_due_ns;
    }
    e->volumes_changed = false;
    e->volume_events = e->known->volume_events;
    e->prebind_due_ns = INT64_MAX;
    for (uint32_t k = 0; k < e->prebinds.len; k++) {
        struct prebind *p = e->prebinds.at[k];
        if (emit_volume_advance_prebind(e, p, now_ns)) {
            e->prebind_due_ns = HK_MIN(e->prebind_due_ns, p->due_ns);
            e->prebinds.at[n++] = p;
        } else {
            prebind_free(e, p);
        }
    }
    e->prebinds.len = n;
    return e->prebind_due_ns;
}

void emit_volume_fini(struct emit *e)
{
    for (uint32_t k = 0; k < e->prebinds.len; k++) {
        prebind_free(e, e->prebinds.at[k]);
    }
    hk_vec_fini(&e->prebinds);
    hk_vec_fini(&e->binds);
}
