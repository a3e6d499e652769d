// SPDX-License-Identifier: Apache-2.0
// Copies the options of an agent and looks up what the machine has.
#include "agent/host/host.h"

#define ADDRESS_DEFAULT "127.0.0.1"
#define DOMAIN_DEFAULT "cluster.local"
#define LEASE_DEFAULT_NS (40 * SECOND_NS)

int64_t host_mono_ns(const struct host *h)
{
    return h->o.clock->mono_ns(h->o.clock);
}

int64_t host_wall_ns(const struct host *h)
{
    return h->o.clock->wall_ns(h->o.clock);
}

static const char *host_copy_str(struct host *h, const char *s)
{
    return s ? hk_arena_str(&h->own, hk_str(s)).s : NULL;
}

static const char *const *host_copy_list(struct host *h, const char *const *list)
{
    uint32_t n = 0;
    const char **copy;

    while (list && list[n]) {
        n++;
    }
    copy = hk_arena_array(&h->own, n + 1, sizeof(*copy));
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = host_copy_str(h, list[i]);
    }
    copy[n] = NULL;
    return copy;
}

static struct json host_copy_object(struct host *h, const struct json *v)
{
    return json_clone_as(v, JSON_OBJECT, &h->own);
}

static void host_copy_strings(struct host *h, const struct agent_opts *o)
{
    h->o.api_host = host_copy_str(h, o->api_host);
    h->o.api_port = host_copy_str(h, o->api_port);
    h->o.dir = host_copy_str(h, o->dir);
    h->o.memory_dir = host_copy_str(h, o->memory_dir);
    h->o.node = host_copy_str(h, o->node);
    h->o.address = host_copy_str(h, o->address ? o->address : ADDRESS_DEFAULT);
    h->o.dns = host_copy_str(h, o->dns);
    h->o.domain = host_copy_str(h, o->domain ? o->domain : DOMAIN_DEFAULT);
    h->o.image_roots = host_copy_str(h, o->image_roots);
    h->o.images = host_copy_str(h, o->images);
    h->o.covered = host_copy_list(h, o->covered);
    h->o.record_dir = host_copy_str(h, o->record_dir);
}

static void host_copy_machine(struct host *h, const struct machine *m)
{
    h->machine = (struct machine){.root = host_copy_str(h, m->root),
                                  .dir = host_copy_str(h, m->dir),
                                  .synthetic = host_copy_str(h, m->synthetic)};
    h->o.machine = &h->machine;
    h->ngpu = machine_gpus(&h->machine, h->gpus);
}

void host_init(struct host *h, const struct agent_opts *o)
{
    *h = (struct host){.o = *o};
    host_copy_strings(h, o);
    if (o->machine) {
        host_copy_machine(h, o->machine);
    }
    h->capacity = host_copy_object(h, o->capacity);
    h->allocatable = host_copy_object(h, o->allocatable ? o->allocatable : o->capacity);
    h->labels = host_copy_object(h, o->labels);
    h->o.lease_ns = o->lease_ns > 0 ? o->lease_ns : LEASE_DEFAULT_NS;
    h->volumes_dir = o->dir ? hk_arena_printf(&h->own, "%s/volumes", h->o.dir) : NULL;
    h->recorder = recorder_new(o->port, o->clock, HK_STR("hekla-agent"));
}

void host_fini(struct host *h)
{
    recorder_free(h->recorder);
    hk_intern_fini(&h->str);
    hk_arena_fini(&h->mem);
    hk_arena_fini(&h->own);
}
