// SPDX-License-Identifier: Apache-2.0
// What people do: submit, scale, suspend, delete, cordon, and more of it before the last thing is
// done. They remember what they were promised.
#include "world/world.h"

#include "api/names.h"

#include <stdio.h>

enum { CLIENT_NAMES = 8, CLIENT_QUEUES = 3 };

/* A job that was asked for. Its name is used again once it has been deleted. */
struct client_job {
    char ns[32], name[32], uid[64]; /* uid "": not acknowledged */
    bool deleted;                   /* or may delete itself */
};

struct clients {
    int64_t next_ns;
    uint32_t jobs_left, number;
    bool begun, over;
    bool closed; /* the queue that ends closed was told to */
    HK_VEC(struct client_job *) jobs;
};

static uint32_t client_res(struct world *w, enum api_kind_id kind)
{
    return store_res(w->store, hk_str(api_kind(kind)->group), hk_str(api_kind(kind)->plural));
}

/* An object of the store, copied. */
struct client_pick {
    uint32_t nth;
    bool found;
    char ns[64], name[64];
    struct json root;
    struct hk_arena *mem;
};

static bool client_on_object(void *ctx, const struct store_obj *o)
{
    struct client_pick *p = ctx;

    if (p->nth-- > 0) {
        return true;
    }
    p->found = true;
    snprintf(p->ns, sizeof(p->ns), "%.*s", HK_FMT(o->ns));
    snprintf(p->name, sizeof(p->name), "%.*s", HK_FMT(o->name));
    if (json_parse(hk_arena_str(p->mem, o->text), 0, p->mem, &p->root, NULL) < 0) {
        p->found = false;
    }
    return false;
}

/* Any object of the kind, by lot. */
static bool client_pick(struct world *w, enum api_kind_id kind, struct client_pick *ret)
{
    const struct api_kind *k = api_kind(kind);
    const uint32_t res = store_res(w->store, hk_str(k->group), hk_str(k->plural));
    const uint32_t n = store_count(w->store, res);

    *ret = (struct client_pick){.mem = &w->mem};
    if (n > 0) {
        ret->nth = hk_rand_below(&w->rand, n);
        store_scan(w->store, res, HK_STR(""), HK_STR(""), HK_STR(""), client_on_object, ret);
    }
    return ret->found;
}

/* ---- requests ---- */

static struct port *client_port(struct world *w)
{
    return &w->parts[PART_CLIENTS].link.port;
}

static void client_on_job(void *ctx, const struct port_msg *m)
{
    struct client_job *j = ctx;

    if (m->type == PORT_DONE && m->rc == 0 && m->obj) {
        snprintf(j->uid, sizeof(j->uid), "%.*s", HK_FMT(m->obj->uid));
    }
}

static void client_create(struct world *w, enum api_kind_id kind, const char *ns,
                          const struct json *body)
{
    port_create(client_port(w), api_kind(kind), hk_str(ns), body, (struct port_sink){0});
}

static void client_patch(struct world *w, enum api_kind_id kind, const char *ns, const char *name,
                         const struct json *body)
{
    port_submit(client_port(w),
                &(struct port_request){.verb = PORT_PATCH,
                                       .kind = api_kind(kind),
                                       .ns = hk_str(ns),
                                       .name = hk_str(name),
                                       .patch = PORT_PATCH_MERGE,
                                       .body = body},
                (struct port_sink){0});
}

static void client_delete(struct world *w, enum api_kind_id kind, const char *ns, const char *name,
                          enum port_propagation how)
{
    port_submit(client_port(w),
                &(struct port_request){.verb = PORT_DELETE,
                                       .kind = api_kind(kind),
                                       .ns = hk_str(ns),
                                       .name = hk_str(name),
                                       .propagation = how},
                (struct port_sink){0});
}

/* ---- jobs ---- */

/* Some outlast the time after which pods leave a node that is silent. */
static long long client_duration_s(struct world *w)
{
    return w->weather.remotes > 0 && world_chance(w, 300) ? world_between(w, 60, 200)
                                                          : world_between(w, 1, 60);
}

static const char *client_template(struct world *w, int64_t cpu_milli)
{
    static const int codes[] = {0, 0, 0, 0, 1, 137};
    struct hk_arena *a = &w->mem;
    const int code = codes[hk_rand_below(&w->rand, HK_LEN(codes))];
    /* What fails for ever is restarted for ever, unless its pod may fail. */
    const bool restarts = world_chance(w, 300);
    const char *failures =
        restarts || world_chance(w, 500)
            ? hk_arena_printf(a, ", '" SIMULATE_ANN_FAILURES "': '%d'", (int)world_between(w, 1, 2))
            : "";

    return hk_arena_printf(
        a,
        "{'metadata': {'annotations': {'" SIMULATE_ANN_DURATION "': '%llds', '" SIMULATE_ANN_DELAY
        "': '%lldms', '" SIMULATE_ANN_EXIT_CODE "': '%d'%s%s}}, 'spec': {'restartPolicy': '%s', "
        "'terminationGracePeriodSeconds': %lld, 'containers': [{'name': 'c', 'image': 'i', "
        "'command': ['work'], 'resources': {'requests': {'cpu': '%lldm', 'memory': '64Mi'}}}]}}",
        client_duration_s(w), (long long)world_between(w, 0, 2000), code, failures,
        world_chance(w, 100) ? ", '" SIMULATE_ANN_IGNORE_TERM "': 'true'" : "",
        restarts ? "OnFailure" : "Never", (long long)world_between(w, 0, 30), (long long)cpu_milli);
}

static const char *client_policies(struct world *w)
{
    static const char *const all[] = {
        "",
        "'policies': [{'event': 'PodFailed', 'action': 'RestartJob'}],",
        "'policies': [{'event': 'PodEvicted', 'action': 'RestartJob'}],",
        "'policies': [{'event': 'PodFailed', 'action': 'AbortJob'}],",
        "'policies': [{'event': 'PodFailed', 'action': 'TerminateJob'}],",
        "'policies': [{'event': 'PodFailed', 'action': 'RestartTask'}],",
        "'policies': [{'event': 'TaskCompleted', 'action': 'CompleteJob'}],",
        "'policies': [{'event': 'PodFailed', 'action': 'RestartPod'}],",
    };

    return all[hk_rand_below(&w->rand, HK_LEN(all))];
}

/* The spec of a job whose minimum fits an empty cluster. */
static const char *client_job_spec(struct world *w)
{
    struct hk_arena *a = &w->mem;
    const int64_t cpus[] = {100, 500, 1000, 2000, 3000};
    int64_t cpu = cpus[hk_rand_below(&w->rand, HK_LEN(cpus))];
    const int64_t share = world_share_milli(w);
    const int64_t replicas = world_between(w, 1, 5), second = world_between(w, 0, 2);
    int64_t min = world_between(w, 1, replicas + second);
    const char *more = "";

    cpu = HK_MIN(cpu, share);
    min = HK_MIN(min, share / cpu);
    if (second > 0) {
        more = hk_arena_printf(a, ", {'name': 'b', 'replicas': %lld, 'template': %s}",
                               (long long)second, client_template(w, cpu));
    }
    return hk_arena_printf(
        a,
        "{'schedulerName': 'volcano', 'queue': 'q%lld', 'minAvailable': %lld, 'maxRetry': %lld, "
        "%s%s%s%s 'tasks': [{'name': 'a', 'replicas': %lld, 'template': %s}%s]}",
        (long long)world_between(w, 0, CLIENT_QUEUES - 1), (long long)min,
        (long long)world_between(w, 1, 3), client_policies(w),
        world_chance(w, 300) ? "'priorityClassName': 'high'," : "",
        world_chance(w, 300) ? "'plugins': {'svc': [], 'env': []}," : "",
        world_chance(w, 150) ? "'ttlSecondsAfterFinished': 20," : "", (long long)replicas,
        client_template(w, cpu), more);
}

static void client_submit(struct world *w)
{
    struct clients *c = w->clients;
    struct client_job *j = hk_zalloc(sizeof(*j));
    const bool team = world_chance(w, 150);
    const bool huge = world_chance(w, 60);
    const char *spec = client_job_spec(w);
    const struct json *body;

    snprintf(j->ns, sizeof(j->ns), "%s", team ? "team" : "default");
    snprintf(j->name, sizeof(j->name), "j%u", hk_rand_below(&w->rand, CLIENT_NAMES));
    /* What may vanish by itself, or with its namespace, was not promised to stay. */
    j->deleted = team || strstr(spec, "ttlSecondsAfterFinished");
    if (huge) {
        spec = hk_arena_printf(&w->mem,
                               "{'schedulerName': 'volcano', 'queue': 'q0', 'minAvailable': 1, "
                               "'tasks': [{'name': 'a', 'replicas': 1, 'template': %s}]}",
                               client_template(w, 64000));
    }
    body = world_json(w,
                      "{'apiVersion': 'batch.volcano.sh/v1alpha1', 'kind': 'Job', 'metadata': "
                      "{'name': '%s', 'namespace': '%s', 'annotations': {'world/huge': '%s'}}, "
                      "'spec': %s}",
                      j->name, j->ns, huge ? "true" : "false", spec);
    hk_vec_push(&c->jobs, j);
    port_create(client_port(w), api_kind(API_JOB), hk_str(j->ns), body,
                (struct port_sink){client_on_job, j});
}

/* Whatever job of that name there is may be gone from now on. */
static void client_forget(struct world *w, const char *ns, const char *name)
{
    for (uint32_t i = 0; i < w->clients->jobs.len; i++) {
        struct client_job *j = w->clients->jobs.at[i];
        if (strcmp(j->ns, ns) == 0 && (!name || strcmp(j->name, name) == 0)) {
            j->deleted = true;
        }
    }
}

static void client_delete_job(struct world *w)
{
    static const enum port_propagation how[] = {PORT_PROPAGATE_DEFAULT, PORT_PROPAGATE_BACKGROUND,
                                                PORT_PROPAGATE_FOREGROUND};
    struct client_pick p;

    if (client_pick(w, API_JOB, &p)) {
        client_forget(w, p.ns, p.name);
        client_delete(w, API_JOB, p.ns, p.name, how[hk_rand_below(&w->rand, HK_LEN(how))]);
    }
}

static void client_scale_job(struct world *w)
{
    struct client_pick p;
    const struct json *task;

    if (!client_pick(w, API_JOB, &p) || !(task = json_item(json_at(&p.root, "spec.tasks"), 0))) {
        return;
    }
    struct json tasks = json_clone(json_at(&p.root, "spec.tasks"), &w->mem);
    const int64_t min = json_int(json_at(&p.root, "spec.minAvailable"), 1);

    json_put(&tasks.items[0], &w->mem, HK_STR("replicas"),
             json_make_int(HK_MAX(min, world_between(w, 1, 6))));
    struct json spec = json_make_object(), body = json_make_object();
    json_put(&spec, &w->mem, HK_STR("tasks"), tasks);
    json_put(&body, &w->mem, HK_STR("spec"), spec);
    client_patch(w, API_JOB, p.ns, p.name, &body);
}

static void client_command(struct world *w)
{
    static const char *const actions[] = {"AbortJob",   "ResumeJob",    "ResumeJob",
                                          "RestartJob", "TerminateJob", "CompleteJob"};
    struct client_pick p;

    if (!client_pick(w, API_JOB, &p)) {
        return;
    }
    const struct hk_str uid = json_str(json_at(&p.root, "metadata.uid"), HK_STR(""));
    client_create(
        w, API_COMMAND, p.ns,
        world_json(w,
                   "{'apiVersion': 'bus.volcano.sh/v1alpha1', 'kind': 'Command', 'metadata': "
                   "{'name': 'c%u', 'namespace': '%s'}, 'action': '%s', 'target': {'apiVersion': "
                   "'batch.volcano.sh/v1alpha1', 'kind': 'Job', 'name': '%s', 'uid': '%.*s', "
                   "'controller': true}}",
                   w->clients->number++, p.ns, actions[hk_rand_below(&w->rand, HK_LEN(actions))],
                   p.name, HK_FMT(uid)));
}

/* ---- pods and nodes ---- */

static void client_delete_pod(struct world *w)
{
    struct client_pick p;

    if (client_pick(w, API_POD, &p)) {
        client_delete(w, API_POD, p.ns, p.name, PORT_PROPAGATE_DEFAULT);
    }
}

/* As `kubectl delete --force` does: without waiting for the node. */
static void client_force_pod(struct world *w)
{
    struct client_pick p;

    if (client_pick(w, API_POD, &p)) {
        check_force(w, p.ns, p.name);
        port_submit(client_port(w),
                    &(struct port_request){.verb = PORT_DELETE,
                                           .kind = api_kind(API_POD),
                                           .ns = hk_str(p.ns),
                                           .name = hk_str(p.name),
                                           .has_grace = true},
                    (struct port_sink){0});
    }
}

static void client_evict_pod(struct world *w)
{
    struct client_pick p;

    if (client_pick(w, API_POD, &p)) {
        port_submit(client_port(w),
                    &(struct port_request){
                        .verb = PORT_CREATE,
                        .kind = api_kind(API_POD),
                        .ns = hk_str(p.ns),
                        .name = hk_str(p.name),
                        .subresource = "eviction",
                        .body = world_json(w,
                                           "{'apiVersion': 'policy/v1', 'kind': 'Eviction', "
                                           "'metadata': {'name': '%s', 'namespace': '%s'}}",
                                           p.name, p.ns)},
                    (struct port_sink){0});
    }
}

static void client_create_pod(struct world *w)
{
    const char *name = hk_arena_printf(&w->mem, "p%u", hk_rand_below(&w->rand, CLIENT_NAMES));

    client_create(
        w, API_POD, "default",
        world_json(w,
                   "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s', 'namespace': "
                   "'default', 'annotations': {'" SIMULATE_ANN_DURATION "': '%llds'}}, 'spec': "
                   "{'schedulerName': 'volcano', 'restartPolicy': 'Never', 'containers': [{'name': "
                   "'c', 'image': 'i', 'command': ['work'], 'resources': {'requests': {'cpu': "
                   "'%lldm'}}}]}}",
                   name, (long long)world_between(w, 1, 30),
                   (long long)world_between(w, 0, 15) * 100));
}

static void client_cordon(struct world *w)
{
    struct client_pick p;

    if (client_pick(w, API_NODE, &p)) {
        client_patch(w, API_NODE, "", p.name,
                     world_json(w, "{'spec': {'unschedulable': %s}}",
                                world_chance(w, 400) ? "true" : "null"));
    }
}

static void client_delete_node(struct world *w)
{
    struct client_pick p;

    if (client_pick(w, API_NODE, &p)) {
        client_delete(w, API_NODE, "", p.name, PORT_PROPAGATE_DEFAULT);
    }
}

/* ---- queues, flows, workloads, namespaces ---- */

static void client_command_queue(struct world *w, const char *queue, const char *action)
{
    const struct store_obj *o =
        store_get(w->store, client_res(w, API_QUEUE), HK_STR(""), hk_str(queue));

    if (o) {
        client_create(w, API_COMMAND, "default",
                      world_json(w,
                                 "{'apiVersion': 'bus.volcano.sh/v1alpha1', 'kind': 'Command', "
                                 "'metadata': {'name': 'c%u', 'namespace': 'default'}, 'action': "
                                 "'%s', 'target': {'apiVersion': 'scheduling.volcano.sh/v1beta1', "
                                 "'kind': 'Queue', 'name': '%s', 'uid': '%.*s', 'controller': "
                                 "true}}",
                                 w->clients->number++, action, queue, HK_FMT(o->uid)));
    }
}

static void client_close_or_open(struct world *w)
{
    client_command_queue(w, hk_arena_printf(&w->mem, "q%u", hk_rand_below(&w->rand, CLIENT_QUEUES)),
                         world_chance(w, 500) ? "CloseQueue" : "OpenQueue");
}

static void client_create_queue(struct world *w, uint32_t i)
{
    client_create(w, API_QUEUE, "",
                  world_json(w,
                             "{'apiVersion': 'scheduling.volcano.sh/v1beta1', 'kind': 'Queue', "
                             "'metadata': {'name': 'q%u'}, 'spec': {'weight': %lld%s}}",
                             i, w->weather.weights ? (long long)world_between(w, 1, 4) : 1LL,
                             i > 0 && world_chance(w, 500)
                                 ? ", 'capability': {'cpu': '4', 'memory': '16Gi'}"
                                 : ""));
}

static void client_begin(struct world *w)
{
    for (uint32_t i = 0; i < CLIENT_QUEUES; i++) {
        client_create_queue(w, i);
    }
    client_create(w, API_PRIORITY_CLASS, "",
                  world_json(w, "{'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', "
                                "'metadata': {'name': 'high'}, 'value': 1000}"));
    client_create(w, API_NAMESPACE, "",
                  world_json(w, "{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': "
                                "{'name': 'team'}}"));
}

static void client_weigh_queue(struct world *w)
{
    if (!w->weather.weights) {
        return;
    }
    client_patch(w, API_QUEUE, "",
                 hk_arena_printf(&w->mem, "q%u", hk_rand_below(&w->rand, CLIENT_QUEUES)),
                 world_json(w, "{'spec': {'weight': %lld}}", (long long)world_between(w, 1, 6)));
}

static void client_create_flow(struct world *w)
{
    for (uint32_t i = 0; i < 2; i++) {
        client_create(w, API_JOBTEMPLATE, "default",
                      world_json(w,
                                 "{'apiVersion': 'flow.volcano.sh/v1alpha1', 'kind': "
                                 "'JobTemplate', 'metadata': {'name': 't%u', 'namespace': "
                                 "'default'}, 'spec': %s}",
                                 i, client_job_spec(w)));
    }
    client_create(w, API_JOBFLOW, "default",
                  world_json(w,
                             "{'apiVersion': 'flow.volcano.sh/v1alpha1', 'kind': 'JobFlow', "
                             "'metadata': {'name': 'f%u', 'namespace': 'default'}, 'spec': "
                             "{'jobRetainPolicy': '%s', 'flows': [{'name': 't0'}, {'name': 't1', "
                             "'dependsOn': {'targets': ['t0']}}]}}",
                             hk_rand_below(&w->rand, 2),
                             world_chance(w, 500) ? "retain" : "delete"));
}

static void client_create_cron(struct world *w)
{
    client_create(w, API_CRONJOB, "default",
                  world_json(w,
                             "{'apiVersion': 'batch.volcano.sh/v1alpha1', 'kind': 'CronJob', "
                             "'metadata': {'name': 'cron', 'namespace': 'default'}, 'spec': "
                             "{'schedule': '* * * * *', 'concurrencyPolicy': '%s', "
                             "'successfulJobsHistoryLimit': 1, 'failedJobsHistoryLimit': 1, "
                             "'jobTemplate': {'spec': %s}}}",
                             world_chance(w, 500) ? "Forbid" : "Replace", client_job_spec(w)));
}

static void client_deploy(struct world *w)
{
    client_create(
        w, API_DEPLOYMENT, "default",
        world_json(w,
                   "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': 'web', "
                   "'namespace': 'default'}, 'spec': {'replicas': %lld, 'selector': "
                   "{'matchLabels': {'a': 'web'}}, 'template': {'metadata': {'labels': {'a': "
                   "'web'}, 'annotations': {'" SIMULATE_ANN_DURATION "': 'forever'}}, 'spec': "
                   "{'schedulerName': 'volcano', 'containers': [{'name': 'c', 'image': 'i', "
                   "'command': ['work'], 'resources': {'requests': {'cpu': '200m'}}}]}}}}",
                   (long long)world_between(w, 1, 3)));
}

static void client_change_deployment(struct world *w)
{
    client_patch(w, API_DEPLOYMENT, "default", "web",
                 world_json(w,
                            "{'spec': {'replicas': %lld, 'template': {'metadata': {'annotations': "
                            "{'v': '%lld'}}}}}",
                            (long long)world_between(w, 0, 3), (long long)world_between(w, 0, 2)));
}

static void client_create_batch_job(struct world *w)
{
    client_create(
        w, API_BATCH_JOB, "default",
        world_json(w,
                   "{'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'b%u', "
                   "'namespace': 'default'}, 'spec': {'completions': %lld, 'parallelism': 2, "
                   "'backoffLimit': 2, 'template': {'metadata': {'annotations': "
                   "{'" SIMULATE_ANN_DURATION "': '%llds', '" SIMULATE_ANN_EXIT_CODE
                   "': '%d'}}, 'spec': {'schedulerName': 'volcano', 'restartPolicy': 'Never', "
                   "'containers': [{'name': 'c', 'image': 'i', 'command': ['work'], 'resources': "
                   "{'requests': {'cpu': '300m'}}}]}}}}",
                   hk_rand_below(&w->rand, 2), (long long)world_between(w, 1, 3),
                   (long long)world_between(w, 1, 20), world_chance(w, 300) ? 1 : 0));
}

static void client_namespace(struct world *w)
{
    if (world_chance(w, 500)) {
        client_forget(w, "team", NULL);
        client_delete(w, API_NAMESPACE, "", "team", PORT_PROPAGATE_DEFAULT);
        return;
    }
    client_create(w, API_NAMESPACE, "",
                  world_json(w, "{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': "
                                "{'name': 'team'}}"));
}

/* ---- acting ---- */

static const struct {
    uint32_t weight;
    void (*act)(struct world *w);
} client_acts[] = {
    {12, client_submit},          {5, client_delete_job},
    {4, client_delete_pod},       {2, client_evict_pod},
    {4, client_scale_job},        {6, client_command},
    {4, client_create_pod},       {4, client_cordon},
    {1, client_delete_node},      {2, client_weigh_queue},
    {2, client_create_flow},      {1, client_create_cron},
    {2, client_deploy},           {2, client_change_deployment},
    {2, client_create_batch_job}, {2, client_namespace},
    {1, client_force_pod},        {3, client_close_or_open},
};

static void client_act_by_lot(struct world *w)
{
    uint32_t total = 0, lot;

    for (size_t i = 0; i < HK_LEN(client_acts); i++) {
        total += client_acts[i].weight;
    }
    lot = hk_rand_below(&w->rand, total);
    for (size_t i = 0; i < HK_LEN(client_acts); i++) {
        if (lot < client_acts[i].weight) {
            client_acts[i].act(w);
            return;
        }
        lot -= client_acts[i].weight;
    }
}

void clients_act(struct world *w)
{
    struct clients *c = w->clients;

    if (!c->begun) {
        c->begun = true;
        client_begin(w);
    } else if (c->jobs_left > 0 && world_chance(w, 400)) {
        c->jobs_left--;
        client_submit(w);
    } else {
        client_act_by_lot(w);
    }
    c->next_ns = world_now(w) + (world_chance(w, 500) ? world_between(w, 0, 500) * WORLD_MS
                                                      : world_between(w, 1, 30) * WORLD_SECOND);
}

int64_t clients_next_ns(const struct clients *c)
{
    return c->over ? INT64_MAX : c->next_ns;
}

void clients_race(struct world *w, const struct port_request *req)
{
    const struct hk_str name =
        req->name.n > 0 ? req->name : json_str(json_at(req->body, "metadata.name"), HK_STR(""));
    const struct hk_str ns =
        req->ns.n > 0 ? req->ns : json_str(json_at(req->body, "metadata.namespace"), HK_STR(""));

    port_submit(rest_port(w->rest),
                &(struct port_request){
                    .verb = PORT_PATCH,
                    .kind = req->kind,
                    .ns = ns,
                    .name = name,
                    .patch = PORT_PATCH_MERGE,
                    .body = world_json(w, "{'metadata': {'annotations': {'world/raced': '%u'}}}",
                                       w->clients->number++)},
                (struct port_sink){0});
}

struct client_mend {
    struct world *w;
    uint32_t n;
};

static bool client_is_given_up(const struct world *w, struct hk_str node)
{
    for (uint32_t i = 0; i < w->weather.remotes; i++) {
        if (remote_is_given_up(w->remotes[i]) && hk_str_is(node, remote_name(w->remotes[i]))) {
            return true;
        }
    }
    return false;
}

/* An administrator knows that the machine will not come back, and says so. */
static void client_give_up(struct client_mend *mend, const struct store_obj *o)
{
    struct world *w = mend->w;
    const char *name = hk_arena_str(&w->mem, o->name).s;

    if (hk_hash(o->uid.s, o->uid.n, 0) % 2 == 0) {
        mend->n++;
        client_delete(w, API_NODE, "", name, PORT_PROPAGATE_DEFAULT);
    } else if (!hk_str_contains(o->text, API_TAINT_OUT_OF_SERVICE)) {
        mend->n++;
        client_patch(w, API_NODE, "", name,
                     world_json(w, "{'spec': {'taints': [{'key': '" API_TAINT_OUT_OF_SERVICE
                                   "', 'effect': 'NoExecute'}]}}"));
    }
}

static bool client_mend_node(void *ctx, const struct store_obj *o)
{
    struct client_mend *mend = ctx;

    if (client_is_given_up(mend->w, o->name)) {
        client_give_up(mend, o);
        return true;
    }
    if (hk_str_contains(o->text, API_TAINT_OUT_OF_SERVICE)) {
        mend->n++;
        client_patch(mend->w, API_NODE, "", hk_arena_str(&mend->w->mem, o->name).s,
                     world_json(mend->w, "{'spec': {'taints': null}}"));
    }
    if (hk_str_contains(o->text, "\"unschedulable\":true")) {
        mend->n++;
        client_patch(mend->w, API_NODE, "", hk_arena_str(&mend->w->mem, o->name).s,
                     world_json(mend->w, "{'spec': {'unschedulable': null}}"));
    }
    return true;
}

static bool client_open_queue(void *ctx, const struct store_obj *o)
{
    struct client_mend *mend = ctx;

    if (hk_str_contains(o->text, "\"state\":\"Clos")) {
        mend->n++;
        client_command_queue(mend->w, hk_arena_str(&mend->w->mem, o->name).s, "OpenQueue");
    }
    return true;
}

/* A command that is still to be carried out may close a queue once more. */
static bool client_await_command(void *ctx, const struct store_obj *o)
{
    struct client_mend *mend = ctx;

    mend->n++;
    return true;
}

bool clients_calm(struct world *w)
{
    struct client_mend mend = {.w = w};

    w->clients->over = true;
    if (!store_get(w->store, client_res(w, API_QUEUE), HK_STR(""), HK_STR(CLIENT_CLOSED_QUEUE))) {
        mend.n++;
        client_begin(w); /* the disk would not take them */
    }
    store_scan(w->store, client_res(w, API_NODE), HK_STR(""), HK_STR(""), HK_STR(""),
               client_mend_node, &mend);
    store_scan(w->store, client_res(w, API_QUEUE), HK_STR(""), HK_STR(""), HK_STR(""),
               client_open_queue, &mend);
    store_scan(w->store, client_res(w, API_COMMAND), HK_STR(""), HK_STR(""), HK_STR(""),
               client_await_command, &mend);
    if (store_get(w->store, client_res(w, API_CRONJOB), HK_STR("default"), HK_STR("cron"))) {
        mend.n++;
        client_delete(w, API_CRONJOB, "default", "cron", PORT_PROPAGATE_BACKGROUND);
    }
    return mend.n > 0;
}

struct client_sweep {
    struct world *w;
    enum api_kind_id kind;
    uint32_t n;
};

static bool client_sweep_object(void *ctx, const struct store_obj *o)
{
    struct client_sweep *s = ctx;

    client_forget(s->w, hk_arena_str(&s->w->mem, o->ns).s, NULL);
    client_delete(s->w, s->kind, hk_arena_str(&s->w->mem, o->ns).s,
                  hk_arena_str(&s->w->mem, o->name).s, PORT_PROPAGATE_BACKGROUND);
    s->n++;
    return true;
}

/* What people made goes; what that was the owner of has to follow. */
bool clients_delete_all(struct world *w)
{
    static const enum api_kind_id kinds[] = {API_JOBFLOW,    API_JOBTEMPLATE, API_CRONJOB, API_JOB,
                                             API_DEPLOYMENT, API_BATCH_JOB,   API_COMMAND};
    struct client_sweep s = {.w = w};

    if (!w->clients->closed) {
        w->clients->closed = true;
        client_command_queue(w, CLIENT_CLOSED_QUEUE, "CloseQueue");
        s.n++;
    }
    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        s.kind = kinds[i];
        store_scan(w->store, client_res(w, kinds[i]), HK_STR(""), HK_STR(""), HK_STR(""),
                   client_sweep_object, &s);
    }
    for (uint32_t i = 0; i < CLIENT_NAMES; i++) {
        const char *name = hk_arena_printf(&w->mem, "p%u", i);

        if (store_get(w->store, client_res(w, API_POD), HK_STR("default"), hk_str(name))) {
            client_delete(w, API_POD, "default", name, PORT_PROPAGATE_BACKGROUND);
            s.n++;
        }
    }
    return s.n > 0;
}

void clients_each_job(struct world *w,
                      void (*fn)(void *ctx, const char *ns, const char *name, const char *uid),
                      void *ctx)
{
    for (uint32_t i = 0; i < w->clients->jobs.len; i++) {
        const struct client_job *j = w->clients->jobs.at[i];
        if (j->uid[0] != '\0' && !j->deleted) {
            fn(ctx, j->ns, j->name, j->uid);
        }
    }
}

struct clients *clients_new(struct world *w)
{
    struct clients *c = hk_zalloc(sizeof(*c));

    c->jobs_left = w->weather.jobs;
    c->next_ns = world_now(w) + WORLD_SECOND;
    return c;
}

void clients_free(struct clients *c)
{
    for (uint32_t i = 0; i < c->jobs.len; i++) {
        hk_free(c->jobs.at[i]);
    }
    hk_vec_fini(&c->jobs);
    hk_free(c);
}
