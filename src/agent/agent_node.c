// SPDX-License-Identifier: Apache-2.0
// The Node object of the agent: created when it is missing, and reported every five minutes and
// when a resource runs low. The agent watches it, and reports soon when another client deletes the
// node or marks it unreachable. One call about the node is in flight at a time; a failed call is
// repeated with a growing delay. agent_lease.c renews the lease.
//
// A Ready node gets new pods. So after a start, a pause or a lost network, the node first lists its
// pods again and ends the processes of pods that are gone, because those may run elsewhere by now.
//
//   CREATE --made, or there already (and READ)--> STATUS --> SPEC (if labels or taints differ)
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

/* Poll interval while the node waits for processes to end; unmounts send no event. */
#define CHECK_AGAIN_NS (SECOND_NS / 50)
#define CHECK_LONG_NS (10 * SECOND_NS)
/* How long a node that was marked unreachable also waits for pods in their grace period. */
#define CHECK_DELETIONS_NS (POD_GRACE_S * SECOND_NS)
#define RETRY_FIRST_NS (SECOND_NS / 5)
#define RETRY_LAST_NS (30 * SECOND_NS)
/* Between two corrections of the object: another client may undo each of them. */
#define MEND_NS SECOND_NS

/* Taints of nodes that are not ready; the agent removes them. */
static const char *const taints_unready[] = {API_TAINT_NOT_READY, API_TAINT_UNREACHABLE};

static struct hk_arena *agent_node_arena(struct node *n)
{
    return &n->a->mem;
}

static void agent_node_set_str(struct json *obj, struct hk_arena *a, const char *key,
                               const char *value)
{
    agent_put_str(obj, a, key, hk_str(value));
}

/* ---- properties of the node ---- */

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
    struct hk_arena *a = agent_node_arena(n);
    struct utsname u;

    uname(&u);
    agent_node_set_str(labels, a, API_LABEL_HOSTNAME, n->name);
    agent_node_set_str(labels, a, "kubernetes.io/os", "linux");
    agent_node_set_str(labels, a, "kubernetes.io/arch", arch_of(u.machine));
    if (n->a->volumes_dir) {
        agent_node_set_str(labels, a, API_LABEL_VOLUMES, "local");
    }
    if (n->zone > 0) {
        agent_node_set_str(labels, a, API_LABEL_ZONE, hk_arena_printf(a, "zone-%u", n->zone));
    }
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->len; i++) {
        json_put(labels, a, given->members[i].key, given->members[i].value);
    }
}

static void add_annotations(struct node *n, struct json *annotations)
{
    if (n->a->volumes_dir) {
        agent_node_set_str(annotations, agent_node_arena(n), API_ANN_VOLUMES_DIR,
                           n->a->volumes_dir);
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
    struct hk_arena *a = agent_node_arena(n);
    struct json *list = json_put(status, a, HK_STR("conditions"), json_make_array());

    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        const bool is = n->conditions[i].is;
        struct json *c = json_push(list, a, json_make_object());

        agent_node_set_str(c, a, "type", conditions[i].type);
        agent_node_set_str(c, a, "status", is ? "True" : "False");
        agent_put_time(c, a, "lastHeartbeatTime", agent_wall(n->a));
        agent_put_time(c, a, "lastTransitionTime", n->conditions[i].since_ns);
        agent_node_set_str(c, a, "reason", is ? conditions[i].yes.reason : conditions[i].no.reason);
        agent_node_set_str(c, a, "message",
                           is ? conditions[i].yes.message : conditions[i].no.message);
    }
}

/* Returns true if the condition changed. */
static bool agent_node_set_condition(struct node *n, enum node_condition which, bool is)
{
    if (n->conditions[which].is == is) {
        return false;
    }
    n->conditions[which].is = is;
    n->conditions[which].since_ns = agent_wall(n->a);
    return true;
}

static bool agent_node_update_pressure(struct node *n)
{
    const struct machine *m = n->a->o.machine;
    const struct machine_pressure p = m ? machine_pressure(m) : (struct machine_pressure){0};
    bool changed = agent_node_set_condition(n, NODE_MEMORY_PRESSURE, p.memory);

    changed = agent_node_set_condition(n, NODE_DISK_PRESSURE, p.disk) || changed;
    return agent_node_set_condition(n, NODE_PID_PRESSURE, p.pids) || changed;
}

/* Takes over the transition times that an earlier agent reported. */
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
    struct hk_arena *a = agent_node_arena(n);
    struct json *list = json_put(status, a, HK_STR("addresses"), json_make_array()), *one;

    one = json_push(list, a, json_make_object());
    agent_node_set_str(one, a, "type", "InternalIP");
    agent_node_set_str(one, a, "address", n->a->o.address);
    one = json_push(list, a, json_make_object());
    agent_node_set_str(one, a, "type", "Hostname");
    agent_node_set_str(one, a, "address", n->name);
}

static void add_info(struct node *n, struct json *status)
{
    struct hk_arena *a = agent_node_arena(n);
    struct json *info = agent_put_object(status, a, "nodeInfo");
    const struct machine *m = n->a->o.machine;
    struct utsname u;

    uname(&u);
    agent_node_set_str(info, a, "machineID", m ? machine_line(m, "/etc/machine-id", a) : "");
    agent_node_set_str(info, a, "systemUUID",
                       m ? machine_line(m, "/sys/class/dmi/id/product_uuid", a) : "");
    agent_node_set_str(info, a, "bootID",
                       m ? machine_line(m, "/proc/sys/kernel/random/boot_id", a) : "");
    agent_node_set_str(info, a, "kernelVersion", u.release);
    if (!n->a->os_image) {
        n->a->os_image = os_image(&n->a->own);
    }
    agent_node_set_str(info, a, "osImage", n->a->os_image);
    agent_node_set_str(info, a, "containerRuntimeVersion",
                       hk_arena_printf(a, "%s://%s", n->a->o.runtime->ops->name, HEKLA_VERSION));
    agent_node_set_str(info, a, "kubeletVersion", "v" HEKLA_VERSION "-hekla");
    agent_node_set_str(info, a, "kubeProxyVersion", "");
    agent_node_set_str(info, a, "operatingSystem", "linux");
    agent_node_set_str(info, a, "architecture", arch_of(u.machine));
}

/* The address and port where the API server reads logs. */
static void add_endpoints(struct node *n, struct json *status)
{
    struct hk_arena *a = agent_node_arena(n);
    struct json *ends = agent_put_object(status, a, "daemonEndpoints");

    json_put(agent_put_object(ends, a, "kubeletEndpoint"), a, HK_STR("Port"),
             json_make_int(n->a->o.serve_port));
}

static void add_status(struct node *n, struct json *body)
{
    struct hk_arena *a = agent_node_arena(n);
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

static bool agent_node_has_all_members(const struct json *has, const struct json *want)
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
    return !agent_node_has_all_members(json_at(root, "metadata.labels"), &labels) ||
           !agent_node_has_all_members(json_at(root, "metadata.annotations"), &annotations);
}

/* Compares values, not text: servers rewrite quantities. Other clients may add resources. */
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

static bool agent_node_owns_condition(struct hk_str type)
{
    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        if (hk_str_is(type, conditions[i].type)) {
            return true;
        }
    }
    return false;
}

/* The node lifecycle controller sets conditions to Unknown after missed heartbeats. */
static bool is_doubted(const struct json *root)
{
    const struct json *list = json_at(root, "status.conditions"), *c;

    for (uint32_t i = 0; (c = json_item(list, i)); i++) {
        if (agent_node_owns_condition(json_str(json_get(c, "type"), HK_STR(""))) &&
            hk_str_is(json_str(json_get(c, "status"), HK_STR("")), "Unknown")) {
            return true;
        }
    }
    return false;
}

/* True if the object shows the agent's port, or the agent serves none. */
static bool tells_endpoint(const struct node *n, const struct json *root)
{
    const struct json *port = json_at(root, "status.daemonEndpoints.kubeletEndpoint.Port");

    return n->a->o.serve_port == 0 || json_int(port, 0) == n->a->o.serve_port;
}

/* Whether the status fields that only the agent sets are right. Reports compare labels, too. */
static bool is_as_said(struct node *n, const struct json *root)
{
    return has_amounts(json_at(root, "status.capacity"), &n->a->capacity) &&
           has_amounts(json_at(root, "status.allocatable"), &n->a->allocatable) &&
           tells_endpoint(n, root) && !is_doubted(root) && !has_unready_taint(root);
}

bool node_is_told(struct node *n, const struct json *root)
{
    const bool told = is_as_said(n, root) && !lacks_words(n, root);

    hk_arena_clear(agent_node_arena(n));
    return told;
}

/* ---- checks before the node reports ready ---- */

/* Others may consider the node lost: list the pods again before the next report. */
static void node_suspect(struct node *n)
{
    if (!n->unchecked) {
        n->unchecked = true;
        n->check_told = false;
        n->check_ns = agent_mono(n->a);
        agent_relist(n->a);
    }
}

static void node_know(struct node *n, struct api_object *o)
{
    if (n->fleet || (n->known && hk_str_eq(n->known->uid, o->uid) && o->rv < n->known->rv)) {
        return;
    }
    api_object_unref(n->known);
    n->known = api_object_ref(o);
    if (is_doubted(&o->root)) {
        n->doubted = true;
    }
}

/* Conditions that were Unknown get new transition times. */
static void node_checked(struct node *n)
{
    n->unchecked = false;
    if (n->doubted) {
        for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
            n->conditions[i].since_ns = agent_wall(n->a);
        }
    }
    n->doubted = false;
}

static bool node_may_report(struct node *n, int64_t now_ns)
{
    const bool deletions = n->doubted && now_ns - n->check_ns < CHECK_DELETIONS_NS;

    if (n->fleet || n->step == NODE_READ || n->step == NODE_SPEC) {
        return true;
    }
    if (n->contact_ns > 0 && now_ns - n->contact_ns > n->a->o.lease_ns) {
        n->contact_ns = now_ns; /* once per silence */
        node_suspect(n);
    }
    if (n->doubted) {
        node_suspect(n);
    }
    if (!n->unchecked) {
        return true;
    }
    if (agent_is_settled(n->a, deletions)) {
        node_checked(n);
        return true;
    }
    if (!n->check_told && now_ns - n->check_ns > CHECK_LONG_NS) {
        n->check_told = true;
        hk_log(HK_LOG_WARN,
               "the node is not ready until processes of pods that are gone have ended", "node=%s",
               n->name);
    }
    return false;
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

    /* A conflict is normal: others write to the node, too. */
    if (n->failures++ == 0 && m->rc != -HK_ECONFLICT) {
        hk_log(HK_LOG_WARN, "cannot report the node", "node=%s err=\"%s\"", n->name, m->err->text);
    }
    rest(n, m->rc == -HK_ECONFLICT ? NODE_STATUS : n->step, HK_MIN(wait_ns, RETRY_LAST_NS));
}

static void agent_node_save_uid(struct node *n, const struct api_object *o)
{
    if (!n->uid || !hk_str_is(o->uid, n->uid)) {
        hk_free(n->uid);
        n->uid = hk_strndup(o->uid.s, o->uid.n);
    }
}

static void agent_node_save_object(struct node *n, struct api_object *o)
{
    if (!o) {
        return;
    }
    api_object_unref(n->seen);
    n->seen = api_object_ref(o);
    agent_node_save_uid(n, o);
    node_know(n, o);
}

/* Waits for the next report, unless a newer version of the object arrived during the call. */
static void agent_node_rest_until_report(struct node *n)
{
    const bool missed = n->seen && n->heard_rv > n->seen->rv;

    n->registered = true;
    n->heard_rv = 0;
    rest(n, missed ? NODE_STATUS : NODE_REST, missed ? 0 : NODE_REPORT_NS);
}

static void agent_node_next_step(struct node *n)
{
    n->failures = 0;
    switch (n->step) {
    case NODE_READ:
        recall_conditions(n);
        /* fall through */
    case NODE_CREATE:
        /* In a fleet, the create already wrote the status, if the server kept it. */
        if (!n->fleet || !n->seen || !node_is_told(n, &n->seen->root)) {
            rest(n, NODE_STATUS, 0);
            break;
        }
        agent_node_rest_until_report(n);
        break;
    case NODE_STATUS:
        if (n->seen && (has_unready_taint(&n->seen->root) || lacks_words(n, &n->seen->root))) {
            rest(n, NODE_SPEC, 0);
            break;
        }
        /* fall through */
    default:
        agent_node_rest_until_report(n);
        break;
    }
}

static void agent_node_on_answer(void *ctx, const struct port_msg *m)
{
    struct node *n = ctx;

    n->call = 0;
    if (m->rc == 0) {
        n->contact_ns = agent_mono(n->a);
        agent_node_save_object(n, m->obj);
        agent_node_next_step(n);
    } else if (m->rc == -HK_EEXIST) {
        rest(n, NODE_READ, 0);
    } else if (m->rc == -HK_ENOTFOUND && n->step != NODE_CREATE) {
        rest(n, NODE_CREATE, 0);
    } else {
        back_off(n, m);
    }
    hk_arena_clear(agent_node_arena(n));
    if (n->fleet) {
        fleet_answered(n);
    }
}

static void agent_node_submit(struct node *n, struct port_request *q)
{
    q->kind = api_kind(API_NODE);
    n->call = port_submit(n->a->o.port, q, (struct port_sink){agent_node_on_answer, n});
}

static void agent_node_submit_create(struct node *n)
{
    struct hk_arena *a = agent_node_arena(n);
    struct json body = json_make_object(), *meta;

    agent_node_set_str(&body, a, "apiVersion", "v1");
    agent_node_set_str(&body, a, "kind", "Node");
    meta = agent_put_object(&body, a, "metadata");
    agent_node_set_str(meta, a, "name", n->name);
    add_labels(n, agent_put_object(meta, a, "labels"));
    add_annotations(n, agent_put_object(meta, a, "annotations"));
    add_status(n, &body);
    agent_node_submit(n, &(struct port_request){.verb = PORT_CREATE, .body = &body});
}

static void agent_node_submit_get(struct node *n)
{
    agent_node_submit(n, &(struct port_request){.verb = PORT_GET, .name = hk_str(n->name)});
}

static void agent_node_submit_status(struct node *n)
{
    struct json body = json_make_object();

    add_status(n, &body);
    agent_node_submit(n, &(struct port_request){.verb = PORT_PATCH,
                                                .patch = PORT_PATCH_STRATEGIC,
                                                .name = hk_str(n->name),
                                                .subresource = "status",
                                                .body = &body});
}

static void mend_spec(struct node *n)
{
    struct hk_arena *a = agent_node_arena(n);
    const struct json *taints = json_at(&n->seen->root, "spec.taints");
    struct json body = json_make_object(), *meta = agent_put_object(&body, a, "metadata"), *left;

    /* Taints are replaced as a whole list: require the version that was read. */
    json_put(meta, a, HK_STR("resourceVersion"),
             json_shallow(json_at(&n->seen->root, "metadata.resourceVersion"), a));
    add_labels(n, agent_put_object(meta, a, "labels"));
    add_annotations(n, agent_put_object(meta, a, "annotations"));
    left = json_put(agent_put_object(&body, a, "spec"), a, HK_STR("taints"), json_make_array());
    for (uint32_t i = 0; json_item(taints, i); i++) {
        if (!is_unready_taint(json_item(taints, i))) {
            json_push(left, a, *json_item(taints, i));
        }
    }
    agent_node_submit(n, &(struct port_request){.verb = PORT_PATCH,
                                                .patch = PORT_PATCH_MERGE,
                                                .name = hk_str(n->name),
                                                .body = &body});
}

void node_own(const struct node *n, struct json *meta)
{
    struct hk_arena *a = &n->a->mem;
    struct json *owner = json_push(json_put(meta, a, HK_STR("ownerReferences"), json_make_array()),
                                   a, json_make_object());

    agent_node_set_str(owner, a, "apiVersion", "v1");
    agent_node_set_str(owner, a, "kind", "Node");
    agent_node_set_str(owner, a, "name", n->name);
    agent_node_set_str(owner, a, "uid", n->uid);
}

/* ---- watch events of the node ---- */

bool node_hear(struct node *n, struct api_object *o)
{
    node_know(n, o);
    if (n->step != NODE_REST || n->call) {
        n->heard_rv = o->rv;
        return true;
    }
    agent_node_save_uid(n, o);
    return n->registered ? is_as_said(n, &o->root) : node_is_told(n, &o->root);
}

int64_t node_mend_ns(struct node *n)
{
    const int64_t at_ns = HK_MAX(agent_mono(n->a), n->mend_ns);

    n->mend_ns = at_ns + MEND_NS;
    return at_ns;
}

static void agent_node_on_put(void *ctx, struct api_object *o)
{
    struct node *n = ctx;

    if (!node_hear(n, o)) {
        rest(n, NODE_STATUS, 0);
        n->due_ns = node_mend_ns(n);
    }
}

static void agent_node_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                              const struct api_object *last)
{
    struct node *n = ctx;

    if (n->step == NODE_REST && !n->call) {
        rest(n, NODE_CREATE, 0);
    }
}

static const struct feed_ops feed_ops = {.put = agent_node_on_put, .del = agent_node_on_del};

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

/* ---- setup, teardown and steps ---- */

void node_init(struct node *n, struct agent *a, const char *name)
{
    const int64_t now_ns = agent_mono(a);

    *n = (struct node){
        .a = a, .name = name, .step = NODE_CREATE, .due_ns = now_ns, .lease_due_ns = now_ns};
    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        n->conditions[i].since_ns = agent_wall(a);
    }
    n->conditions[NODE_READY].is = true;
    n->unchecked = true;
    n->check_ns = now_ns;
    agent_node_update_pressure(n);
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
    api_object_unref(n->known);
    hk_free(n->used);
    hk_free(n->uid);
}

static void agent_node_submit_step(struct node *n)
{
    switch (n->step) {
    case NODE_CREATE:
        agent_node_submit_create(n);
        break;
    case NODE_READ:
        agent_node_submit_get(n);
        break;
    case NODE_SPEC:
        mend_spec(n);
        break;
    default:
        n->step = NODE_STATUS;
        agent_node_submit_status(n);
        break;
    }
    hk_arena_clear(agent_node_arena(n));
}

int64_t node_tick(struct node *n, int64_t now_ns)
{
    int64_t next_ns, due_ns = n->due_ns;

    if (!n->call && n->due_ns <= now_ns) {
        if (node_may_report(n, now_ns)) {
            agent_node_submit_step(n);
            due_ns = n->due_ns;
        } else {
            /* The arrival of a list wakes the agent anyway. */
            due_ns = now_ns + (n->a->listed ? CHECK_AGAIN_NS : CHECK_LONG_NS);
        }
    }
    if (n->fleet) {
        return n->call ? INT64_MAX : n->due_ns;
    }
    if (n->registered && !n->lease && n->lease_due_ns <= now_ns) {
        node_beat(n);
        if (agent_node_update_pressure(n) && n->step == NODE_REST) {
            rest(n, NODE_STATUS, 0);
        }
    }
    next_ns = feed_tick(&n->a->own_feed, now_ns);
    next_ns = HK_MIN(next_ns, n->call ? INT64_MAX : due_ns);
    return HK_MIN(next_ns, n->lease || !n->registered ? INT64_MAX : n->lease_due_ns);
}
