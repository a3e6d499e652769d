// SPDX-License-Identifier: Apache-2.0
// The node's own object: made when it is missing, reported every five minutes and when something is
// running out, its lease renewed every ten seconds. It is watched: a node that was given up on
// while we were away, or that somebody deleted, says at once that it lives. One call about the node
// is under way at a time; after a failure it is made again, later each time.
//
//   CREATE --made, or there already (and READ)--> STATUS --> SPEC (when there is something to mend)
//   --> REST
//      ^--------- not found ------------'            '-- conflict --> STATUS       five minutes '
#include "agent/agent_priv.h"

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/quantity.h"
#include "codec/timefmt.h"

#include <stdio.h>
#include <sys/utsname.h>

#define LEASE_S 40
#define LEASE_NAMESPACE "kube-node-lease"
#define RETRY_FIRST_NS (SECOND_NS / 5)
#define RETRY_LAST_NS (30 * SECOND_NS)
#define MEND_NS SECOND_NS /* between two answers to what others did: they may answer, too */

/* Taints that say a node is not ready; ours says itself that it is. */
static const char *const taints_unready[] = {"node.kubernetes.io/not-ready",
                                             "node.kubernetes.io/unreachable"};

static struct hk_arena *mem(struct node *n)
{
    return &n->a->mem;
}

static void put_str(struct json *obj, struct hk_arena *a, const char *key, const char *value)
{
    agent_put_str(obj, a, key, hk_str(value));
}

/* ---- what the node is ---- */

/* Go's names of architectures, which images and selectors use. */
static const char *arch_of(const char *machine)
{
    static const struct {
        const char *machine, *arch;
    } known[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};

    for (size_t i = 0; i < HK_LEN(known); i++) {
        if (strcmp(machine, known[i].machine) == 0) {
            return known[i].arch;
        }
    }
    return machine;
}

/* PRETTY_NAME of os-release. */
static const char *os_image(struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_str rest, line;

    if (hk_read_file("/etc/os-release", 1 << 16, &text, NULL) < 0) {
        return "Linux";
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (hk_str_starts(line, "PRETTY_NAME=\"") && line.n > 14) {
            return hk_arena_strndup(a, line.s + 13, line.n - 14);
        }
    }
    return "Linux";
}

static void add_labels(struct node *n, struct json *labels)
{
    const struct json *given = &n->a->labels;
    struct hk_arena *a = mem(n);
    struct utsname u;

    uname(&u);
    put_str(labels, a, API_LABEL_HOSTNAME, n->name);
    put_str(labels, a, "kubernetes.io/os", "linux");
    put_str(labels, a, "kubernetes.io/arch", arch_of(u.machine));
    if (n->a->volumes_dir) {
        put_str(labels, a, API_LABEL_VOLUMES, "local");
    }
    if (n->zone > 0) {
        put_str(labels, a, API_LABEL_ZONE, hk_arena_printf(a, "zone-%u", n->zone));
    }
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->len; i++) {
        json_put(labels, a, given->members[i].key, given->members[i].value);
    }
}

static void add_annotations(struct node *n, struct json *annotations)
{
    if (n->a->volumes_dir) {
        put_str(annotations, mem(n), API_ANN_VOLUMES_DIR, n->a->volumes_dir);
    }
}

static const struct {
    const char *type;
    struct {
        const char *reason, *message;
    } no, yes;
} conditions[] = {
    [NODE_MEMORY_PRESSURE] = {"MemoryPressure",
                              {"KubeletHasSufficientMemory",
                               "kubelet has sufficient memory available"},
                              {"KubeletHasInsufficientMemory",
                               "kubelet has insufficient memory available"}},
    [NODE_DISK_PRESSURE] = {"DiskPressure",
                            {"KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
                            {"KubeletHasDiskPressure", "kubelet has disk pressure"}},
    [NODE_PID_PRESSURE] = {"PIDPressure",
                           {"KubeletHasSufficientPID", "kubelet has sufficient PID available"},
                           {"KubeletHasInsufficientPID", "kubelet has insufficient PID available"}},
    [NODE_READY] = {"Ready",
                    {"KubeletNotReady", ""},
                    {"KubeletReady", "kubelet is posting ready status"}},
};

static void add_conditions(struct node *n, struct json *status)
{
    struct hk_arena *a = mem(n);
    struct json *list = json_put(status, a, HK_STR("conditions"), json_make_array());

    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        const bool is = n->conditions[i].is;
        struct json *c = json_push(list, a, json_make_object());

        put_str(c, a, "type", conditions[i].type);
        put_str(c, a, "status", is ? "True" : "False");
        agent_put_time(c, a, "lastHeartbeatTime", agent_wall(n->a));
        agent_put_time(c, a, "lastTransitionTime", n->conditions[i].since_ns);
        put_str(c, a, "reason", is ? conditions[i].yes.reason : conditions[i].no.reason);
        put_str(c, a, "message", is ? conditions[i].yes.message : conditions[i].no.message);
    }
}

/* True when something has changed. */
static bool set_condition(struct node *n, enum node_condition which, bool is)
{
    if (n->conditions[which].is == is) {
        return false;
    }
    n->conditions[which].is = is;
    n->conditions[which].since_ns = agent_wall(n->a);
    return true;
}

static bool measure(struct node *n)
{
    const struct machine *m = n->a->o.machine;
    const struct machine_pressure p = m ? machine_pressure(m) : (struct machine_pressure){0};
    bool changed = set_condition(n, NODE_MEMORY_PRESSURE, p.memory);

    changed = set_condition(n, NODE_DISK_PRESSURE, p.disk) || changed;
    return set_condition(n, NODE_PID_PRESSURE, p.pids) || changed;
}

/* Since when things are as they are, if an earlier agent said so. */
static void recall_conditions(struct node *n)
{
    const struct json *list = json_at(&n->seen->root, "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct json *c = json_item(list, i);
        const bool is = hk_str_is(json_str(json_get(c, "status"), HK_STR("")), "True");
        int64_t ns;

        for (size_t k = 0; k < NODE_NCONDITIONS; k++) {
            if (hk_str_is(json_str(json_get(c, "type"), HK_STR("")), conditions[k].type) &&
                n->conditions[k].is == is &&
                time_parse(json_str(json_get(c, "lastTransitionTime"), HK_STR("")), &ns, NULL) ==
                    0) {
                n->conditions[k].since_ns = ns;
            }
        }
    }
}

static void add_addresses(struct node *n, struct json *status)
{
    struct hk_arena *a = mem(n);
    struct json *list = json_put(status, a, HK_STR("addresses"), json_make_array()), *one;

    one = json_push(list, a, json_make_object());
    put_str(one, a, "type", "InternalIP");
    put_str(one, a, "address", n->a->o.address);
    one = json_push(list, a, json_make_object());
    put_str(one, a, "type", "Hostname");
    put_str(one, a, "address", n->name);
}

static void add_info(struct node *n, struct json *status)
{
    struct hk_arena *a = mem(n);
    struct json *info = agent_put_object(status, a, "nodeInfo");
    const struct machine *m = n->a->o.machine;
    struct utsname u;

    uname(&u);
    put_str(info, a, "machineID", m ? machine_line(m, "/etc/machine-id", a) : "");
    put_str(info, a, "systemUUID", m ? machine_line(m, "/sys/class/dmi/id/product_uuid", a) : "");
    put_str(info, a, "bootID", m ? machine_line(m, "/proc/sys/kernel/random/boot_id", a) : "");
    put_str(info, a, "kernelVersion", u.release);
    if (!n->a->os_image) {
        n->a->os_image = os_image(&n->a->own);
    }
    put_str(info, a, "osImage", n->a->os_image);
    put_str(info, a, "containerRuntimeVersion",
            hk_arena_printf(a, "%s://%s", n->a->o.runtime->ops->name, HEKLA_VERSION));
    put_str(info, a, "kubeletVersion", "v" HEKLA_VERSION "-hekla");
    put_str(info, a, "kubeProxyVersion", "");
    put_str(info, a, "operatingSystem", "linux");
    put_str(info, a, "architecture", arch_of(u.machine));
}

/* Where the API server asks for logs. */
static void add_endpoints(struct node *n, struct json *status)
{
    struct hk_arena *a = mem(n);
    struct json *ends = agent_put_object(status, a, "daemonEndpoints");

    json_put(agent_put_object(ends, a, "kubeletEndpoint"), a, HK_STR("Port"),
             json_make_int(n->a->o.serve_port));
}

static void add_status(struct node *n, struct json *body)
{
    struct hk_arena *a = mem(n);
    struct json *status = agent_put_object(body, a, "status");

    json_put(status, a, HK_STR("capacity"), n->a->capacity);
    json_put(status, a, HK_STR("allocatable"), n->a->allocatable);
    add_conditions(n, status);
    add_addresses(n, status);
    add_info(n, status);
    json_put(status, a, HK_STR("images"), json_make_array());
    if (n->a->o.serve_port > 0) {
        add_endpoints(n, status);
    }
}

/* ---- labels and taints ---- */

static bool is_unready_taint(const struct json *taint)
{
    const struct hk_str key = json_str(json_get(taint, "key"), HK_STR(""));

    for (size_t i = 0; i < HK_LEN(taints_unready); i++) {
        if (hk_str_is(key, taints_unready[i])) {
            return true;
        }
    }
    return false;
}

static bool has_unready_taint(const struct json *root)
{
    const struct json *taints = json_at(root, "spec.taints");

    for (uint32_t i = 0; json_item(taints, i); i++) {
        if (is_unready_taint(json_item(taints, i))) {
            return true;
        }
    }
    return false;
}

static bool holds(const struct json *has, const struct json *want)
{
    for (uint32_t i = 0; i < want->len; i++) {
        if (!json_equal(json_get_str(has, want->members[i].key), &want->members[i].value)) {
            return false;
        }
    }
    return true;
}

static bool lacks_words(struct node *n, const struct json *root)
{
    struct json labels = json_make_object(), annotations = json_make_object();

    add_labels(n, &labels);
    add_annotations(n, &annotations);
    return !holds(json_at(root, "metadata.labels"), &labels) ||
           !holds(json_at(root, "metadata.annotations"), &annotations);
}

/* Servers write amounts in their own way, and others may add some. */
static bool has_amounts(const struct json *has, const struct json *want)
{
    for (uint32_t i = 0; i < want->len; i++) {
        const struct json *v = json_get_str(has, want->members[i].key);
        struct quantity a, b;

        if (quantity_parse(json_str(v, HK_STR("")), &a, NULL) < 0 ||
            quantity_parse(json_str(&want->members[i].value, HK_STR("")), &b, NULL) < 0 ||
            quantity_cmp(a, b) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_ours(struct hk_str type)
{
    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        if (hk_str_is(type, conditions[i].type)) {
            return true;
        }
    }
    return false;
}

/* Somebody who did not hear from us says that he does not know. */
static bool is_doubted(const struct json *root)
{
    const struct json *list = json_at(root, "status.conditions"), *c;

    for (uint32_t i = 0; (c = json_item(list, i)); i++) {
        if (is_ours(json_str(json_get(c, "type"), HK_STR(""))) &&
            hk_str_is(json_str(json_get(c, "status"), HK_STR("")), "Unknown")) {
            return true;
        }
    }
    return false;
}

/* Told by those who know nothing of it: none. */
static bool tells_endpoint(const struct node *n, const struct json *root)
{
    const struct json *port = json_at(root, "status.daemonEndpoints.kubeletEndpoint.Port");

    return n->a->o.serve_port == 0 || json_int(port, 0) == n->a->o.serve_port;
}

/* What nobody else may change for long. Labels are looked at when the node is reported. */
static bool is_as_said(struct node *n, const struct json *root)
{
    return has_amounts(json_at(root, "status.capacity"), &n->a->capacity) &&
           has_amounts(json_at(root, "status.allocatable"), &n->a->allocatable) &&
           tells_endpoint(n, root) && !is_doubted(root) && !has_unready_taint(root);
}

bool node_is_told(struct node *n, const struct json *root)
{
    const bool told = is_as_said(n, root) && !lacks_words(n, root);

    hk_arena_clear(mem(n));
    return told;
}

/* ---- calls ---- */

static void rest(struct node *n, enum node_step step, int64_t wait_ns)
{
    n->step = step;
    n->due_ns = agent_mono(n->a) + wait_ns;
}

static void back_off(struct node *n, const struct port_msg *m)
{
    const int64_t wait_ns = RETRY_FIRST_NS << HK_MIN(n->failures, 8);

    /* Others write to it too. */
    if (n->failures++ == 0 && m->rc != -HK_ECONFLICT) {
        hk_log(HK_LOG_WARN, "cannot report the node", "node=%s err=\"%s\"", n->name, m->err->text);
    }
    rest(n, m->rc == -HK_ECONFLICT ? NODE_STATUS : n->step, HK_MIN(wait_ns, RETRY_LAST_NS));
}

static void learn(struct node *n, const struct api_object *o)
{
    if (!n->uid || !hk_str_is(o->uid, n->uid)) {
        hk_free(n->uid);
        n->uid = hk_strndup(o->uid.s, o->uid.n);
    }
}

static void see(struct node *n, struct api_object *o)
{
    if (!o) {
        return;
    }
    api_object_unref(n->seen);
    n->seen = api_object_ref(o);
    learn(n, o);
}

/* Nothing to say until the next report, unless something happened behind our last word. */
static void settle(struct node *n)
{
    const bool missed = n->seen && n->heard_rv > n->seen->rv;

    n->registered = true;
    n->heard_rv = 0;
    rest(n, missed ? NODE_STATUS : NODE_REST, missed ? 0 : NODE_REPORT_NS);
}

static void advance(struct node *n)
{
    n->failures = 0;
    switch (n->step) {
    case NODE_READ:
        recall_conditions(n);
        /* fall through */
    case NODE_CREATE:
        /* In a fleet who makes the object has said everything, if the server took the status. */
        if (!n->fleet || !n->seen || !node_is_told(n, &n->seen->root)) {
            rest(n, NODE_STATUS, 0);
            break;
        }
        settle(n);
        break;
    case NODE_STATUS:
        if (n->seen && (has_unready_taint(&n->seen->root) || lacks_words(n, &n->seen->root))) {
            rest(n, NODE_SPEC, 0);
            break;
        }
        /* fall through */
    default:
        settle(n);
        break;
    }
}

static void on_node(void *ctx, const struct port_msg *m)
{
    struct node *n = ctx;

    n->call = 0;
    if (m->rc == 0) {
        see(n, m->obj);
        advance(n);
    } else if (m->rc == -HK_EEXIST) {
        rest(n, NODE_READ, 0);
    } else if (m->rc == -HK_ENOTFOUND && n->step != NODE_CREATE) {
        rest(n, NODE_CREATE, 0);
    } else {
        back_off(n, m);
    }
    hk_arena_clear(mem(n));
    if (n->fleet) {
        fleet_answered(n);
    }
}

static void submit(struct node *n, struct port_request *q)
{
    q->kind = api_kind(API_NODE);
    n->call = port_submit(n->a->o.port, q, (struct port_sink){on_node, n});
}

static void create(struct node *n)
{
    struct hk_arena *a = mem(n);
    struct json body = json_make_object(), *meta;

    put_str(&body, a, "apiVersion", "v1");
    put_str(&body, a, "kind", "Node");
    meta = agent_put_object(&body, a, "metadata");
    put_str(meta, a, "name", n->name);
    add_labels(n, agent_put_object(meta, a, "labels"));
    add_annotations(n, agent_put_object(meta, a, "annotations"));
    add_status(n, &body);
    submit(n, &(struct port_request){.verb = PORT_CREATE, .body = &body});
}

static void look(struct node *n)
{
    submit(n, &(struct port_request){.verb = PORT_GET, .name = hk_str(n->name)});
}

static void report(struct node *n)
{
    struct json body = json_make_object();

    add_status(n, &body);
    submit(n, &(struct port_request){.verb = PORT_PATCH,
                                     .patch = PORT_PATCH_STRATEGIC,
                                     .name = hk_str(n->name),
                                     .subresource = "status",
                                     .body = &body});
}

static void mend_spec(struct node *n)
{
    struct hk_arena *a = mem(n);
    const struct json *taints = json_at(&n->seen->root, "spec.taints");
    struct json body = json_make_object(), *meta = agent_put_object(&body, a, "metadata"), *left;

    /* Taints are replaced as a list: only if nobody else changed them meanwhile. */
    json_put(meta, a, HK_STR("resourceVersion"),
             *json_at(&n->seen->root, "metadata.resourceVersion"));
    add_labels(n, agent_put_object(meta, a, "labels"));
    add_annotations(n, agent_put_object(meta, a, "annotations"));
    left = json_put(agent_put_object(&body, a, "spec"), a, HK_STR("taints"), json_make_array());
    for (uint32_t i = 0; json_item(taints, i); i++) {
        if (!is_unready_taint(json_item(taints, i))) {
            json_push(left, a, *json_item(taints, i));
        }
    }
    submit(n, &(struct port_request){.verb = PORT_PATCH,
                                     .patch = PORT_PATCH_MERGE,
                                     .name = hk_str(n->name),
                                     .body = &body});
}

void node_own(const struct node *n, struct json *meta)
{
    struct hk_arena *a = &n->a->mem;
    struct json *owner = json_push(json_put(meta, a, HK_STR("ownerReferences"), json_make_array()),
                                   a, json_make_object());

    put_str(owner, a, "apiVersion", "v1");
    put_str(owner, a, "kind", "Node");
    put_str(owner, a, "name", n->name);
    put_str(owner, a, "uid", n->uid);
}

/* ---- the lease ---- */

static void renew(struct node *n);

static void on_lease(void *ctx, const struct port_msg *m)
{
    struct node *n = ctx;
    const bool missing = m->rc == -HK_ENOTFOUND && !n->lease_missing;

    n->lease = 0;
    if (m->rc < 0 && !missing) {
        hk_log(HK_LOG_DEBUG, "cannot renew the lease", "node=%s err=\"%s\"", n->name, m->err->text);
    }
    n->lease_missing = missing;
    n->lease_due_ns = agent_mono(n->a) + NODE_LEASE_NS;
    if (missing) {
        renew(n);
    }
}

static void renew(struct node *n)
{
    HK_AUTO(hk_buf_fini) struct hk_buf now = {0};
    struct hk_arena *a = mem(n);
    struct json body = json_make_object(), *meta, *spec;

    put_str(&body, a, "apiVersion", "coordination.k8s.io/v1");
    put_str(&body, a, "kind", "Lease");
    meta = agent_put_object(&body, a, "metadata");
    put_str(meta, a, "name", n->name);
    put_str(meta, a, "namespace", LEASE_NAMESPACE);
    if (n->uid) {
        node_own(n, meta);
    }
    spec = agent_put_object(&body, a, "spec");
    put_str(spec, a, "holderIdentity", n->name);
    json_put(spec, a, HK_STR("leaseDurationSeconds"), json_make_int(LEASE_S));
    time_write_micro(agent_wall(n->a), &now);
    put_str(spec, a, "renewTime", now.data);
    n->lease =
        port_submit(n->a->o.port,
                    &(struct port_request){.verb = n->lease_missing ? PORT_CREATE : PORT_PATCH,
                                           .patch = PORT_PATCH_MERGE,
                                           .kind = api_kind(API_LEASE),
                                           .ns = HK_STR(LEASE_NAMESPACE),
                                           .name = hk_str(n->name),
                                           .body = &body},
                    (struct port_sink){on_lease, n});
    hk_arena_clear(a);
}

/* ---- what others make of it ---- */

bool node_hear(struct node *n, const struct api_object *o)
{
    if (n->step != NODE_REST || n->call) {
        n->heard_rv = o->rv;
        return true;
    }
    learn(n, o);
    return n->registered ? is_as_said(n, &o->root) : node_is_told(n, &o->root);
}

int64_t node_mend_ns(struct node *n)
{
    const int64_t at_ns = HK_MAX(agent_mono(n->a), n->mend_ns);

    n->mend_ns = at_ns + MEND_NS;
    return at_ns;
}

static void on_put(void *ctx, struct api_object *o)
{
    struct node *n = ctx;

    if (!node_hear(n, o)) {
        rest(n, NODE_STATUS, 0);
        n->due_ns = node_mend_ns(n);
    }
}

static void on_del(void *ctx, struct hk_str ns, struct hk_str name, const struct api_object *last)
{
    struct node *n = ctx;

    if (n->step == NODE_REST && !n->call) {
        rest(n, NODE_CREATE, 0);
    }
}

static const struct feed_ops feed_ops = {.put = on_put, .del = on_del};

void node_watch(struct node *n)
{
    struct agent *a = n->a;

    feed_init(&a->own_feed,
              &(struct feed_opts){
                  .port = a->o.port,
                  .clock = a->o.clock,
                  .str = &a->str,
                  .kind = api_kind(API_NODE),
                  .required = true,
                  .field_selector = hk_str(hk_arena_printf(&a->own, "metadata.name=%s", n->name)),
                  .ops = &feed_ops,
                  .ctx = n,
              });
}

/* ---- all of it ---- */

void node_init(struct node *n, struct agent *a, const char *name)
{
    const int64_t now_ns = agent_mono(a);

    *n = (struct node){
        .a = a, .name = name, .step = NODE_CREATE, .due_ns = now_ns, .lease_due_ns = now_ns};
    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        n->conditions[i].since_ns = agent_wall(a);
    }
    n->conditions[NODE_READY].is = true;
    measure(n);
}

void node_fini(struct node *n)
{
    if (n->call) {
        port_cancel(n->a->o.port, n->call);
    }
    if (n->lease) {
        port_cancel(n->a->o.port, n->lease);
    }
    api_object_unref(n->seen);
    hk_free(n->uid);
}

static void act(struct node *n)
{
    switch (n->step) {
    case NODE_CREATE:
        create(n);
        break;
    case NODE_READ:
        look(n);
        break;
    case NODE_SPEC:
        mend_spec(n);
        break;
    default:
        n->step = NODE_STATUS;
        report(n);
        break;
    }
    hk_arena_clear(mem(n));
}

void node_beat(struct node *n)
{
    if (n->registered && !n->lease) {
        renew(n);
    }
}

int64_t node_tick(struct node *n, int64_t now_ns)
{
    int64_t next_ns;

    if (!n->call && n->due_ns <= now_ns) {
        act(n);
    }
    if (n->fleet) {
        return n->call ? INT64_MAX : n->due_ns;
    }
    if (n->registered && !n->lease && n->lease_due_ns <= now_ns) {
        renew(n);
        if (measure(n) && n->step == NODE_REST) {
            rest(n, NODE_STATUS, 0);
        }
    }
    next_ns = feed_tick(&n->a->own_feed, now_ns);
    next_ns = HK_MIN(next_ns, n->call ? INT64_MAX : n->due_ns);
    return HK_MIN(next_ns, n->lease || !n->registered ? INT64_MAX : n->lease_due_ns);
}
