// SPDX-License-Identifier: Apache-2.0
// Assigns the node's GPUs to containers. A container gets the requested number of free GPUs at its
// first start and keeps them until its pod has ended; a file in the pod's directory records them
// for the next agent. Other GPUs are hidden: their device files are covered, and the environment
// variables of CUDA do not name them.
#include "agent/pod/gpu.h"

#include "agent/pod/pods.h"
#include "api/names.h"
#include "base/file.h"
#include "codec/quantity.h"

#define FILE_MAX 4096

static const char *pod_gpu_file_path(const struct container *c, struct hk_arena *a)
{
    return hk_arena_printf(a, "%s/.gpus.%.*s", c->pod->dir, HK_FMT(c->name));
}

static int64_t pod_gpu_request_count(const struct container *c)
{
    const struct json *v = json_get(json_at(c->spec, "resources.limits"), API_RES_NVIDIA_GPU);
    struct quantity q;

    if (json_is(v, JSON_INT)) {
        return v->i;
    }
    return json_is(v, JSON_STRING) && quantity_parse(json_str(v, HK_STR("")), &q, NULL) == 0
               ? quantity_value(q)
               : 0;
}

/* The GPUs of an ended init container are free for the other containers of its pod. */
static bool pod_gpu_is_held(const struct container *c, const struct pod *asking)
{
    return c->pod != asking || !c->init || c->sidecar || c->state != CONTAINER_ENDED;
}

static uint64_t pod_gpu_devices_in_use(const struct pod *asking)
{
    const struct pods *ps = asking->set;
    uint64_t set = 0;

    for (uint32_t i = 0; i < ps->slots.len; i++) {
        const struct pod *p = ps->slots.at[i];

        for (uint32_t k = 0; p && p->stage != POD_ENDED && k < p->ncontainer; k++) {
            set |= pod_gpu_is_held(&p->containers[k], asking) ? p->containers[k].gpus : 0;
        }
    }
    return set;
}

/* The device numbers in the set, as text. */
static const char *pod_gpu_numbers(const struct host *h, uint64_t set, struct hk_arena *mem)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    for (uint32_t i = 0; i < h->ngpu; i++) {
        if (set & (uint64_t)1 << i) {
            hk_buf_addf(&out, "%s%u", out.len > 0 ? "," : "", h->gpus[i].minor);
        }
    }
    return hk_arena_str(mem, hk_buf_str(&out)).s;
}

int pod_gpu_assign(struct container *c, struct hk_err *err)
{
    const struct host *h = c->pod->host;
    struct hk_arena *mem = &c->pod->host->mem;
    const int64_t want = c->gpus || h->ngpu == 0 ? 0 : pod_gpu_request_count(c);
    const uint64_t others = want > 0 ? pod_gpu_devices_in_use(c->pod) : 0;
    uint64_t set = 0;
    int64_t got = 0;

    for (uint32_t i = 0; i < h->ngpu && got < want; i++) {
        if (!(others & (uint64_t)1 << i)) {
            set |= (uint64_t)1 << i;
            got++;
        }
    }
    if (got < want) {
        return hk_fail(err, HK_EBUSY, "%lld of " API_RES_NVIDIA_GPU " wanted, %lld free",
                       (long long)want, (long long)got);
    }
    if (got == 0) {
        return 0;
    }
    c->gpus = set;
    return c->pod->dir
               ? hk_write_file(pod_gpu_file_path(c, mem), hk_str(pod_gpu_numbers(h, set, mem)), err)
               : 0;
}

void pod_gpu_recall(struct container *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct host *h = c->pod->host;
    struct hk_str rest, word;
    int64_t minor;

    if (h->ngpu == 0 || !c->pod->dir ||
        hk_read_file(pod_gpu_file_path(c, &c->pod->host->mem), FILE_MAX, &text, NULL) < 0) {
        return;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, ',', &word)) {
        for (uint32_t i = 0; hk_str_int(word, &minor) && i < h->ngpu; i++) {
            c->gpus |= h->gpus[i].minor == minor ? (uint64_t)1 << i : 0;
        }
    }
}

/* Uses UUIDs if all are known: CUDA may number devices differently. */
static const char *pod_gpu_visible_devices(const struct container *c, struct hk_arena *mem)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct host *h = c->pod->host;

    for (uint32_t i = 0; i < h->ngpu; i++) {
        if (!(c->gpus & (uint64_t)1 << i)) {
            continue;
        }
        if (!h->gpus[i].uuid[0]) {
            return pod_gpu_numbers(h, c->gpus, mem);
        }
        hk_buf_addf(&out, "%s%s", out.len > 0 ? "," : "", h->gpus[i].uuid);
    }
    return hk_arena_str(mem, hk_buf_str(&out)).s;
}

void pod_gpu_env(const struct container *c, struct env *e, struct hk_arena *mem)
{
    static const struct hk_str cuda = {"CUDA_VISIBLE_DEVICES", 20};
    static const struct hk_str nvidia = {"NVIDIA_VISIBLE_DEVICES", 22};

    const struct hk_str have = hk_str(pod_gpu_visible_devices(c, mem));

    if (c->pod->host->ngpu > 0 && (c->gpus || !env_has(e, cuda))) {
        env_set(e, cuda, have);
    }
    if (c->pod->host->ngpu > 0 && (c->gpus || !env_has(e, nvidia))) {
        env_set(e, nvidia, c->gpus ? have : HK_STR("void"));
    }
}

void pod_gpu_hide(const struct container *c, struct runtime_container *rc)
{
    const struct host *h = c->pod->host;
    struct hk_arena *mem = &c->pod->host->mem;

    for (uint32_t i = 0; i < h->ngpu; i++) {
        if (!(c->gpus & (uint64_t)1 << i)) {
            runtime_add_mount(rc,
                              (struct runtime_mount){
                                  .from = "/dev/null",
                                  .at = hk_arena_printf(mem, "/dev/nvidia%u", h->gpus[i].minor),
                                  .optional = true},
                              mem);
        }
    }
}
