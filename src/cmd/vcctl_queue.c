// SPDX-License-Identifier: Apache-2.0
// The commands for queues.
#include "cli/make.h"
#include "cli/show.h"
#include "cmd/vcctl.h"

/* Queues have no namespace; their Commands are in this one. */
#define COMMAND_NS "default"

static int vcctl_queue_want_name(const struct vcctl *v, struct hk_err *err)
{
    return vcctl_value(v, "name")[0] != '\0'
               ? 0
               : hk_fail(err, HK_EINVAL, "queue name must be specified");
}

int vcctl_queue_create(struct vcctl *v, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer made = {0};
    const struct json body = make_queue(vcctl_value(v, "name"), command_int(v->line, "weight"),
                                        vcctl_value(v, "state"), &v->mem);

    return vcctl_create(v, API_QUEUE, "", &body, &made, err);
}

int vcctl_queue_delete(struct vcctl *v, struct hk_err *err)
{
    const int rc = vcctl_queue_want_name(v, err);

    return rc < 0 ? rc : vcctl_delete(v, API_QUEUE, "", vcctl_value(v, "name"), err);
}

int vcctl_queue_get(struct vcctl *v, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer queue = {0}, groups = {0};
    const char *name = vcctl_value(v, "name");
    int rc;

    if (name[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "name is mandatory to get the particular queue details");
    }
    rc = vcctl_get(v, API_QUEUE, "", name, &queue, err);
    if (rc < 0) {
        return rc;
    }
    rc = vcctl_list(v, API_PODGROUP, "", &groups, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "failed to list podgroup for queue %s with err", name);
    }
    show_queues(queue.objects.at, 1, groups.objects.at, groups.objects.len, &v->out);
    return 0;
}

int vcctl_queue_list(struct vcctl *v, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer queues = {0}, groups = {0};
    int rc = vcctl_list(v, API_QUEUE, "", &queues, err);

    if (rc < 0) {
        return rc;
    }
    rc = vcctl_list(v, API_PODGROUP, "", &groups, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "failed to list podgroups with err");
    }
    show_queues(queues.objects.at, queues.objects.len, groups.objects.at, groups.objects.len,
                &v->out);
    return 0;
}

int vcctl_vqueues(struct vcctl *v, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer queues = {0};
    const char *name = vcctl_value(v, "name");
    const int rc = name[0] != '\0' ? vcctl_get(v, API_QUEUE, "", name, &queues, err)
                                   : vcctl_list(v, API_QUEUE, "", &queues, err);

    if (rc == 0) {
        show_queues_brief(queues.objects.at, queues.objects.len, &v->out);
    }
    return rc;
}

static int vcctl_queue_update(struct vcctl *v, const char *name, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer after = {0};
    const int64_t weight = command_int(v->line, "weight");

    if (weight == 0) {
        return hk_fail(err, HK_EINVAL,
                       "when update queue %s, weight must be specified, the value must be greater "
                       "than 0",
                       name);
    }
    const struct json patch = make_weight(weight, &v->mem);
    const struct port_request req = {.verb = PORT_PATCH,
                                     .kind = api_kind(API_QUEUE),
                                     .name = hk_str(name),
                                     .body = &patch,
                                     .patch = PORT_PATCH_MERGE};
    return ask(&v->ask, &req, &after, err);
}

int vcctl_queue_operate(struct vcctl *v, struct hk_err *err)
{
    const char *name = vcctl_value(v, "name"), *action = vcctl_value(v, "action");
    const int rc = vcctl_queue_want_name(v, err);

    if (rc < 0) {
        return rc;
    }
    if (strcmp(action, "open") == 0) {
        return vcctl_order(v, API_QUEUE, "", name, COMMAND_NS, "OpenQueue", err);
    }
    if (strcmp(action, "close") == 0) {
        return vcctl_order(v, API_QUEUE, "", name, COMMAND_NS, "CloseQueue", err);
    }
    if (strcmp(action, "update") == 0) {
        return vcctl_queue_update(v, name, err);
    }
    if (action[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "action can not be null");
    }
    return hk_fail(err, HK_EINVAL, "action %s invalid, valid actions are open, close and update",
                   action);
}
