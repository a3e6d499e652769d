// SPDX-License-Identifier: Apache-2.0
// Builds the Node object from the machine and the options, and compares objects of the server with
// it. node.c decides when to write.
#include "agent/node/object.h"

#include "api/names.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/quantity.h"
#include "codec/timefmt.h"
#include "image/store.h"

#include <stdio.h>
#include <sys/utsname.h>

/* Taints of nodes that are not ready; the agent removes them. */
static const char *const taints_unready[] = {API_TAINT_NOT_READY, API_TAINT_UNREACHABLE};

/* ---- properties of the node ---- */

#define IMAGES_REPORTED 50

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

void node_object_add_labels(struct node *n, struct json *labels)
{
    const struct json *given = &n->host->labels;
    struct hk_arena *a = &n->host->mem;
    struct utsname u;

    uname(&u);
    json_set_cstr(labels, a, API_LABEL_HOSTNAME, n->name);
    json_set_cstr(labels, a, "kubernetes.io/os", "linux");
    json_set_str_copy(labels, a, "kubernetes.io/arch", hk_str(arch_of(u.machine)));
    if (n->host->volumes_dir) {
        json_set_cstr(labels, a, API_LABEL_VOLUMES, "local");
    }
    if (n->zone > 0) {
        json_set_cstr(labels, a, API_LABEL_ZONE, hk_arena_printf(a, "zone-%u", n->zone));
    }
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->len; i++) {
        json_put(labels, a, given->members[i].key, given->members[i].value);
    }
}

void node_object_add_annotations(struct node *n, struct json *annotations)
{
    if (n->host->volumes_dir) {
        json_set_cstr(annotations, &n->host->mem, API_ANN_VOLUMES_DIR, n->host->volumes_dir);
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
    struct hk_arena *a = &n->host->mem;
    struct json *list = json_set_array(status, a, "conditions");

    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        const bool is = n->conditions[i].is;
        struct json *c = json_push(list, a, json_make_object());

        json_set_cstr(c, a, "type", conditions[i].type);
        json_set_cstr(c, a, "status", is ? "True" : "False");
        json_set_time(c, a, "lastHeartbeatTime", host_wall_ns(n->host));
        json_set_time(c, a, "lastTransitionTime", n->conditions[i].since_ns);
        json_set_cstr(c, a, "reason", is ? conditions[i].yes.reason : conditions[i].no.reason);
        json_set_cstr(c, a, "message", is ? conditions[i].yes.message : conditions[i].no.message);
    }
}

/* Returns true if the condition changed. */
static bool node_object_set_condition(struct node *n, enum node_condition which, bool is)
{
    if (n->conditions[which].is == is) {
        return false;
    }
    n->conditions[which].is = is;
    n->conditions[which].since_ns = host_wall_ns(n->host);
    return true;
}

bool node_object_update_pressure(struct node *n)
{
    const struct machine *m = n->host->o.machine;
    const struct machine_pressure p = m ? machine_pressure(m) : (struct machine_pressure){0};
    bool changed = node_object_set_condition(n, NODE_MEMORY_PRESSURE, p.memory);

    changed = node_object_set_condition(n, NODE_DISK_PRESSURE, p.disk) || changed;
    return node_object_set_condition(n, NODE_PID_PRESSURE, p.pids) || changed;
}

/* Takes over the transition times that an earlier agent reported. */
void node_object_recall_conditions(struct node *n)
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
    struct hk_arena *a = &n->host->mem;
    struct json *list = json_set_array(status, a, "addresses"), *one;

    one = json_push(list, a, json_make_object());
    json_set_cstr(one, a, "type", "InternalIP");
    json_set_cstr(one, a, "address", n->host->o.address);
    one = json_push(list, a, json_make_object());
    json_set_cstr(one, a, "type", "Hostname");
    json_set_cstr(one, a, "address", n->name);
}

static void add_info(struct node *n, struct json *status)
{
    struct hk_arena *a = &n->host->mem;
    struct json *info = json_set_object(status, a, "nodeInfo");
    const struct machine *m = n->host->o.machine;
    struct utsname u;

    uname(&u);
    json_set_cstr(info, a, "machineID", m ? machine_line(m, "/etc/machine-id", a) : "");
    json_set_cstr(info, a, "systemUUID",
                  m ? machine_line(m, "/sys/class/dmi/id/product_uuid", a) : "");
    json_set_cstr(info, a, "bootID",
                  m ? machine_line(m, "/proc/sys/kernel/random/boot_id", a) : "");
    json_set_str_copy(info, a, "kernelVersion", hk_str(u.release));
    if (!n->host->os_image) {
        n->host->os_image = os_image(&n->host->own);
    }
    json_set_cstr(info, a, "osImage", n->host->os_image);
    json_set_cstr(info, a, "containerRuntimeVersion",
                  hk_arena_printf(a, "%s://%s", n->host->o.runtime->ops->name, HEKLA_VERSION));
    json_set_cstr(info, a, "kubeletVersion", "v" HEKLA_VERSION "-hekla");
    json_set_cstr(info, a, "kubeProxyVersion", "");
    json_set_cstr(info, a, "operatingSystem", "linux");
    json_set_str_copy(info, a, "architecture", hk_str(arch_of(u.machine)));
}

/* The address and port where the API server reads logs. */
static void add_endpoints(struct node *n, struct json *status)
{
    struct hk_arena *a = &n->host->mem;
    struct json *ends = json_set_object(status, a, "daemonEndpoints");

    json_set_int(json_set_object(ends, a, "kubeletEndpoint"), a, "Port", n->host->o.serve_port);
}

/* The largest ones, as many as kubelet reports. */
static void add_images(struct node *n, struct json *status)
{
    struct hk_arena *a = &n->host->mem;
    struct json *list = json_set_array(status, a, "images");
    struct image_records all = {0};
    const char *data_dir = n->in_fleet ? NULL : n->host->o.images;

    if (!data_dir || image_store_list(data_dir, a, &all, NULL) < 0) {
        return;
    }
    for (uint32_t i = 0; i < all.len && i < IMAGES_REPORTED; i++) {
        const struct image_record *r = &all.at[i];
        struct json *one = json_push(list, a, json_make_object());
        struct json *names = json_set_array(one, a, "names");

        if (r->manifest.hex[0]) {
            json_push(names, a, json_make_str(hk_str(image_record_id(r, a))));
        }
        json_push(names, a, json_make_str(r->name));
        json_set_int(one, a, "sizeBytes", r->size);
    }
}

bool node_object_update_images(struct node *n)
{
    const int64_t stamp = n->host->o.images ? image_store_stamp(n->host->o.images) : 0;
    const bool changed = stamp != n->images_stamp;

    n->images_stamp = stamp;
    return changed;
}

void node_object_add_status(struct node *n, struct json *body)
{
    struct hk_arena *a = &n->host->mem;
    struct json *status = json_set_object(body, a, "status");

    json_set(status, a, "capacity", n->host->capacity);
    json_set(status, a, "allocatable", n->host->allocatable);
    add_conditions(n, status);
    add_addresses(n, status);
    add_info(n, status);
    add_images(n, status);
    if (n->host->o.serve_port > 0) {
        add_endpoints(n, status);
    }
}

/* ---- labels and taints ---- */

bool node_object_is_unready_taint(const struct json *taint)
{
    const struct hk_str key = json_str(json_get(taint, "key"), HK_STR(""));

    for (size_t i = 0; i < HK_LEN(taints_unready); i++) {
        if (hk_str_is(key, taints_unready[i])) {
            return true;
        }
    }
    return false;
}

bool node_object_has_unready_taint(const struct json *root)
{
    const struct json *taints = json_at(root, "spec.taints");

    for (uint32_t i = 0; json_item(taints, i); i++) {
        if (node_object_is_unready_taint(json_item(taints, i))) {
            return true;
        }
    }
    return false;
}

static bool node_object_has_all_members(const struct json *has, const struct json *want)
{
    for (uint32_t i = 0; i < want->len; i++) {
        if (!json_equal(json_get_str(has, want->members[i].key), &want->members[i].value)) {
            return false;
        }
    }
    return true;
}

bool node_object_lacks_words(struct node *n, const struct json *root)
{
    struct json labels = json_make_object(), annotations = json_make_object();

    node_object_add_labels(n, &labels);
    node_object_add_annotations(n, &annotations);
    return !node_object_has_all_members(json_at(root, "metadata.labels"), &labels) ||
           !node_object_has_all_members(json_at(root, "metadata.annotations"), &annotations);
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

static bool node_object_owns_condition(struct hk_str type)
{
    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        if (hk_str_is(type, conditions[i].type)) {
            return true;
        }
    }
    return false;
}

/* The node lifecycle controller sets conditions to Unknown after missed heartbeats. */
bool node_object_is_doubted(const struct json *root)
{
    const struct json *list = json_at(root, "status.conditions"), *c;

    for (uint32_t i = 0; (c = json_item(list, i)); i++) {
        if (node_object_owns_condition(json_str(json_get(c, "type"), HK_STR(""))) &&
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

    return n->host->o.serve_port == 0 || json_int(port, 0) == n->host->o.serve_port;
}

/* Whether the status fields that only the agent sets are right. Reports compare labels, too. */
bool node_object_is_as_said(struct node *n, const struct json *root)
{
    return has_amounts(json_at(root, "status.capacity"), &n->host->capacity) &&
           has_amounts(json_at(root, "status.allocatable"), &n->host->allocatable) &&
           tells_endpoint(n, root) && !node_object_is_doubted(root) &&
           !node_object_has_unready_taint(root);
}

bool node_object_is_told(struct node *n, const struct json *root)
{
    const bool told = node_object_is_as_said(n, root) && !node_object_lacks_words(n, root);

    hk_arena_clear(&n->host->mem);
    return told;
}

void node_object_own(const struct node *n, struct json *meta)
{
    struct hk_arena *a = &n->host->mem;
    struct json *owner =
        json_push(json_set_array(meta, a, "ownerReferences"), a, json_make_object());

    json_set_cstr(owner, a, "apiVersion", "v1");
    json_set_cstr(owner, a, "kind", "Node");
    json_set_cstr(owner, a, "name", n->name);
    json_set_cstr(owner, a, "uid", n->uid);
}
