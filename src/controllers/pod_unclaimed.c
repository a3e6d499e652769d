// SPDX-License-Identifier: Apache-2.0
// Tells about pods that no scheduler takes. A pod names its scheduler; if none of that name runs, the
// pod stays Pending without a word. This controller records one Event per pod that names a scheduler
// other than this server's and has no node ten seconds after it was first seen. Another scheduler
// may run beside this server, so the pod itself is left alone.
//
// Embedded mode only. The key is the pod's.
#include "api/names.h"
#include "controllers/keymem.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

#define PATIENCE_NS ((int64_t)10 * 1000 * 1000 * 1000)

struct unclaimed_pod {
    char *scheduler;
};

static void unclaimed_drop(void *block)
{
    hk_free(((struct unclaimed_pod *)block)->scheduler);
}

static bool unclaimed_waits(const struct pod_digest *d)
{
    return d && !d->node[0] && !d->terminating && !pod_has_ended(d);
}

static void unclaimed_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row),
                        name = mirror_name(ch->mirror, ch->row);
    const struct hk_str scheduler =
        json_str(json_at(ch->root, "spec.schedulerName"), HK_STR(API_SCHEDULER_NAME_DEFAULT));

    if (!unclaimed_waits(ch->now)) {
        keymem_forget(c->state, ns, name);
    } else if (!ch->old && !ctl_is_own_scheduler(ctl_conf(c), scheduler)) {
        struct unclaimed_pod *p = keymem_get(c->state, ns, name);

        hk_free(p->scheduler);
        p->scheduler = hk_strndup(scheduler.s, scheduler.n);
        ctl_add_at(c, ns, name, ctl_now(c) + PATIENCE_NS);
    }
}

static void unclaimed_write_own(const struct ctl_conf *conf, struct hk_buf *out)
{
    for (uint32_t i = 0; i < conf->nscheduler_name; i++) {
        hk_buf_addf(out, "%s'%.*s'", i == 0 ? "" : ", ", HK_FMT(conf->scheduler_names[i]));
    }
    if (conf->nscheduler_name == 0) {
        hk_buf_adds(out, "'" API_SCHEDULER_NAME "'");
    }
}

/* What an Event needs to know of its pod. */
static struct json unclaimed_reference(const struct mirror *pods, uint32_t row, struct hk_arena *a)
{
    struct json ret = json_make_object();
    struct json *meta;

    json_set_str(&ret, a, "apiVersion", HK_STR("v1"));
    json_set_str(&ret, a, "kind", HK_STR("Pod"));
    meta = json_set_object(&ret, a, "metadata");
    json_set_str(meta, a, "namespace", mirror_ns(pods, row));
    json_set_str(meta, a, "name", mirror_name(pods, row));
    json_set_str(meta, a, "uid", mirror_uid(pods, row));
    return ret;
}

static void unclaimed_reconcile(struct ctl *c, struct pass *t)
{
    const struct mirror *pods = ctl_mirror(c, API_POD);
    const uint32_t row = mirror_find(pods, t->ns, t->name);
    const struct unclaimed_pod *p = keymem_find(c->state, t->ns, t->name);
    HK_AUTO(hk_buf_fini) struct hk_buf own = {0};

    if (!p || row == HK_NONE || !unclaimed_waits(mirror_digest(pods, row))) {
        return;
    }
    const struct json pod = unclaimed_reference(pods, row, t->mem);
    unclaimed_write_own(ctl_conf(c), &own);
    pass_event(t, &pod, true, "FailedScheduling",
               "no scheduler has taken this pod: it names the scheduler '%s', and the one of this "
               "server takes pods of %s (hekla up --scheduler-name)",
               p->scheduler, own.data);
    keymem_forget(c->state, t->ns, t->name);
}

static void unclaimed_open(struct ctl *c)
{
    keymem_init(c->state, c, sizeof(struct unclaimed_pod), unclaimed_drop);
}

static void unclaimed_close(struct ctl *c)
{
    keymem_fini(c->state);
}

static const struct ctl_watch watches[] = {{&mirror_pods, unclaimed_pod_changed}, {0}};

const struct ctl_type ctl_pod_unclaimed = {
    .name = "unclaimed-pod-controller",
    .about = "tells about pods that name a scheduler which does not run here",
    .watches = watches,
    .state_size = sizeof(struct keymem),
    .open = unclaimed_open,
    .close = unclaimed_close,
    .reconcile = unclaimed_reconcile,
};
