// SPDX-License-Identifier: Apache-2.0
// Events about rows of the model. The recorder writes, counts and drops them.
#include "scheduler/emit_priv.h"

void emit_event(struct emit *e, struct event_about about, bool warning, const char *reason,
                const char *message)
{
    const struct recorder_about o = {.kind = api_kind(about.kind),
                                     .ns = emit_str(e, about.ns),
                                     .name = emit_str(e, about.name),
                                     .uid = emit_uid(e, about.uid)};

    recorder_note(e->recorder, &o, warning, reason, hk_str(message));
}

void emit_event_pod(struct emit *e, task_id t, bool warning, const char *reason,
                    const char *message)
{
    const struct task *task = model_task(e->o.m, t);

    emit_event(e, (struct event_about){API_POD, task->ns, task->name, task->uid}, warning, reason,
               message);
}

void emit_event_group(struct emit *e, job_id j, bool warning, const char *reason,
                      const char *message)
{
    const struct job *job = model_job(e->o.m, j);

    emit_event(e, (struct event_about){API_PODGROUP, job->ns, job->name, job->uid}, warning, reason,
               message);
}
