// SPDX-License-Identifier: Apache-2.0
// Reads the limits of a pod and its containers in the units of the runtime.
#include "agent/pod/limits.h"

#include "api/names.h"
#include "codec/quantity.h"

bool pod_amount(const struct json *limits, const char *name, struct quantity *ret)
{
    const struct json *v = json_get(limits, name);

    if (json_is(v, JSON_INT)) {
        *ret = quantity_of(v->i, QUANTITY_DECIMAL_SI);
        return true;
    }
    return json_is(v, JSON_STRING) && quantity_parse(json_str(v, HK_STR("")), ret, NULL) == 0;
}

static struct runtime_limits limits_of(const struct json *limits)
{
    struct runtime_limits ret = {0};
    struct quantity q;

    if (pod_amount(limits, API_RES_CPU, &q)) {
        ret.cpu_milli = quantity_milli(q);
    }
    if (pod_amount(limits, API_RES_MEMORY, &q)) {
        ret.mem_bytes = quantity_value(q);
    }
    return ret;
}

struct runtime_limits pod_limits_of_container(const struct container *c)
{
    return limits_of(json_at(c->spec, "resources.limits"));
}

struct runtime_limits pod_limits(const struct pod *p)
{
    const struct runtime_limits own = limits_of(pod_spec(p, "resources.limits"));
    struct runtime_limits sum = {0};
    bool cpu = true, mem = true;

    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        const struct runtime_limits l = pod_limits_of_container(&p->containers[i]);

        cpu = cpu && l.cpu_milli > 0;
        mem = mem && l.mem_bytes > 0;
        sum.cpu_milli += l.cpu_milli;
        sum.mem_bytes += l.mem_bytes;
    }
    return (struct runtime_limits){
        .cpu_milli = own.cpu_milli > 0 || !cpu ? own.cpu_milli : sum.cpu_milli,
        .mem_bytes = own.mem_bytes > 0 || !mem ? own.mem_bytes : sum.mem_bytes,
    };
}

int64_t pod_limits_memory(const struct pod *p)
{
    const int64_t bytes = pod_limits(p).mem_bytes;

    return bytes > 0 ? bytes : INT64_MAX;
}
