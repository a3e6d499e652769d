// SPDX-License-Identifier: Apache-2.0
// Rows of queues and nodes: their capacity and the requests against it. The API does not show
// actual usage; schedulers count requests.
#include "cli/list.h"

#include "api/names.h"
#include "api/pod_summary.h"
#include "base/vec.h"
#include "cli/show_priv.h"
#include "codec/quantity.h"

enum { MAX_DEPTH = 16 };

/* ---- amounts ---- */

int64_t list_milli(const struct json *resources, const char *name, int64_t fallback)
{
    const struct json *v = json_get(resources, name);
    struct quantity q;

    if (json_is(v, JSON_INT)) {
        return quantity_milli(quantity_of(v->i, QUANTITY_DECIMAL_SI));
    }
    if (!json_is(v, JSON_STRING) || quantity_parse(json_str(v, HK_STR("")), &q, NULL) < 0) {
        return fallback;
    }
    return quantity_milli(q);
}

/* One digit after the point, none if it is 0. */
static void write_scaled(int64_t tenths, const char *unit, struct hk_buf *out)
{
    hk_buf_addf(out, "%lld", (long long)(tenths / 10));
    if (tenths % 10 != 0) {
        hk_buf_addf(out, ".%lld", (long long)(tenths % 10));
    }
    hk_buf_adds(out, unit);
}

void list_write_amount(const char *resource, int64_t milli, struct hk_buf *out)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    size_t unit = 0;

    if (strcmp(resource, API_RES_MEMORY) != 0) {
        if (milli % 100 == 0) {
            write_scaled(milli / 100, "", out);
        } else {
            hk_buf_addf(out, "%lldm", (long long)milli);
        }
        return;
    }
    int64_t tenths = milli / 100;
    while (unit + 1 < HK_LEN(units) && tenths >= 10240) {
        tenths /= 1024;
        unit++;
    }
    write_scaled(tenths, units[unit], out);
}

static int64_t container_milli(const struct json *c, const char *resource)
{
    const int64_t limit = list_milli(json_at(c, "resources.limits"), resource, 0);

    return list_milli(json_at(c, "resources.requests"), resource, limit);
}

/* The sum of the containers, or the largest init container, as schedulers count. */
int64_t list_pod_milli(const struct json *pod, const char *resource)
{
    const struct json *main = json_list_at(pod, "spec.containers");
    const struct json *init = json_list_at(pod, "spec.initContainers");
    int64_t sum = 0, most = 0;

    for (uint32_t i = 0; i < main->len; i++) {
        sum += container_milli(&main->items[i], resource);
    }
    for (uint32_t i = 0; i < init->len; i++) {
        most = HK_MAX(most, container_milli(&init->items[i], resource));
    }
    return HK_MAX(sum, most) + list_milli(json_at(pod, "spec.overhead"), resource, 0);
}

/* ---- objects of the second kind ---- */

static uint64_t list_room_name_key(struct hk_str s)
{
    const uint64_t h = hk_hash(s.s, s.n, 0);

    return h == UINT64_MAX ? 0 : h;
}

static void add_group(struct list_more *m, uint32_t at)
{
    const struct json *owners = json_list_at(&m->set.at[at]->root, "metadata.ownerReferences");

    for (uint32_t k = 0; k < owners->len; k++) {
        hk_map_put(&m->map, list_room_name_key(json_str_field(&owners->items[k], "uid")), at);
    }
}

static void add_pod(struct list_more *m, const struct json *pod)
{
    const struct hk_str node = json_str_at(pod, "spec.nodeName");

    if (node.n == 0 || api_pod_finished(pod)) {
        return;
    }
    uint32_t at = hk_map_get(&m->map, list_room_name_key(node));
    if (at == HK_NONE) {
        if (m->nuses == m->cap) {
            m->uses = hk_vec_grow(m->uses, &m->cap, m->nuses + 1, sizeof(*m->uses));
        }
        at = m->nuses++;
        m->uses[at] = (struct list_use){.node = node};
        hk_map_put(&m->map, list_room_name_key(node), at);
    }
    struct list_use *u = &m->uses[at];
    u->cpu_milli += list_pod_milli(pod, API_RES_CPU);
    u->memory_milli += list_pod_milli(pod, API_RES_MEMORY);
    u->gpu_milli += list_pod_milli(pod, LIST_GPU);
    u->pods++;
}

void list_more_init(struct list_more *m, enum api_kind_id kind, struct list_set set)
{
    *m = (struct list_more){.set = set};
    for (uint32_t i = 0; i < set.n; i++) {
        if (kind == API_PODGROUP) {
            add_group(m, i);
        } else {
            add_pod(m, &set.at[i]->root);
        }
    }
}

void list_more_fini(struct list_more *m)
{
    hk_map_fini(&m->map);
    hk_free(m->uses);
    *m = (struct list_more){0};
}

const struct api_object *list_group_of(const struct api_object *job, const struct list_more *groups)
{
    const uint32_t at = hk_map_get(&groups->map, list_room_name_key(job->uid));

    return at == HK_NONE ? NULL : groups->set.at[at];
}

struct list_use list_use_of(struct hk_str node, const struct list_more *pods)
{
    const uint32_t at = hk_map_get(&pods->map, list_room_name_key(node));

    return at == HK_NONE ? (struct list_use){.node = node} : pods->uses[at];
}

/* ---- cells ---- */

static void list_room_add_amount_cell(const char *resource, int64_t milli, const char *none,
                                      struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (milli < 0) {
        hk_buf_adds(&text, none);
    } else {
        list_write_amount(resource, milli, &text);
    }
    grid_add(g, hk_buf_str(&text));
}

/* "used/of"; only "used" if of is unknown. */
static void list_room_add_share_cell(const char *resource, int64_t used, int64_t of, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    list_write_amount(resource, used, &text);
    if (of >= 0) {
        hk_buf_addc(&text, '/');
        list_write_amount(resource, of, &text);
    }
    grid_add(g, hk_buf_str(&text));
    if (of > 0 && used >= of) {
        grid_hue(g, TERM_WAIT);
    }
}

/* ---- queues ---- */

static const char *const counted[] = {"Pending", "Inqueue", "Running", "Unknown", "Completed"};

void list_queue_heads(const struct list_how *how, struct grid *g)
{
    grid_head(g, "NAME", false);
    grid_head(g, "STATE", false);
    grid_head(g, "WEIGHT", true);
    grid_head(g, "CPU", true);
    grid_head(g, "MEMORY", true);
    if (how->wide) {
        grid_head(g, "GPU", true);
        grid_head(g, "DESERVED-CPU", true);
        grid_head(g, "GUARANTEE-CPU", true);
        grid_head(g, "RECLAIMABLE", false);
    }
    grid_head(g, "PENDING", true);
    grid_head(g, "INQUEUE", true);
    grid_head(g, "RUNNING", true);
    grid_head(g, "UNKNOWN", true);
    grid_head(g, "COMPLETED", true);
}

static const struct api_object *find_queue(const struct list_set *all, struct hk_str name)
{
    for (uint32_t i = 0; i < all->n; i++) {
        if (hk_str_eq(all->at[i]->name, name)) {
            return all->at[i];
        }
    }
    return NULL;
}

static int depth_of(const struct api_object *queue, const struct list_set *all)
{
    int depth = 0;

    while (queue && depth < MAX_DEPTH && !hk_str_is(queue->name, API_QUEUE_NAME_ROOT)) {
        const struct hk_str parent = json_str_at(&queue->root, "spec.parent");
        queue = find_queue(all, parent.n > 0 ? parent : HK_STR(API_QUEUE_NAME_ROOT));
        depth += queue != NULL;
    }
    return depth;
}

static int64_t list_room_count_groups(struct hk_str queue, const char *phase,
                                      const struct list_set *groups)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < groups->n; i++) {
        const struct json *group = &groups->at[i]->root;
        n += hk_str_eq(json_str_at(group, "spec.queue"), queue) &&
             hk_str_is(json_str_at(group, "status.phase"), phase);
    }
    return n;
}

static void add_queue_share(const struct json *queue, const char *resource, struct grid *g)
{
    const int64_t of = list_milli(json_at(queue, "spec.capability"), resource, -1);

    list_room_add_share_cell(resource, list_milli(json_at(queue, "status.allocated"), resource, 0),
                             of, g);
}

void list_queue(const struct api_object *queue, const struct list_set *all,
                const struct list_more *more, const struct list_how *how, struct grid *g)
{
    const struct json *root = &queue->root;
    const struct hk_str state = json_str_at(root, "status.state");

    grid_addf(g, "%*s%.*s", 2 * depth_of(queue, all), "", HK_FMT(queue->name));
    grid_add(g, state);
    grid_hue(g, term_phase_hue(state));
    grid_addf(g, "%lld", (long long)json_int_at(root, "spec.weight"));
    add_queue_share(root, API_RES_CPU, g);
    add_queue_share(root, API_RES_MEMORY, g);
    if (how->wide) {
        add_queue_share(root, LIST_GPU, g);
        list_room_add_amount_cell(
            API_RES_CPU, list_milli(json_at(root, "spec.deserved"), API_RES_CPU, -1), "", g);
        list_room_add_amount_cell(
            API_RES_CPU, list_milli(json_at(root, "spec.guarantee.resource"), API_RES_CPU, -1), "",
            g);
        grid_add(g,
                 json_bool(json_at(root, "spec.reclaimable"), true) ? HK_STR("yes") : HK_STR("no"));
    }
    for (size_t k = 0; k < HK_LEN(counted); k++) {
        grid_addf(g, "%lld",
                  (long long)list_room_count_groups(queue->name, counted[k], &more->set));
    }
}

/* ---- nodes ---- */

void list_node_heads(const struct list_how *how, struct grid *g)
{
    grid_head(g, "NAME", false);
    grid_head(g, "STATUS", false);
    grid_head(g, "CPU", true);
    grid_head(g, "MEMORY", true);
    grid_head(g, "GPU", true);
    grid_head(g, "PODS", true);
    if (how->wide) {
        grid_head(g, "TAINTS", true);
        grid_head(g, "VERSION", false);
        grid_head(g, "OS", false);
    }
    grid_head(g, "AGE", false);
}

struct hk_str list_node_state(const struct json *node)
{
    const struct json *list = json_list_at(node, "status.conditions");

    for (uint32_t i = 0; i < list->len; i++) {
        if (hk_str_is(json_str_field(&list->items[i], "type"), "Ready")) {
            const struct hk_str status = json_str_field(&list->items[i], "status");
            return hk_str_is(status, "True")      ? HK_STR("Ready")
                   : hk_str_is(status, "Unknown") ? HK_STR("NotReady,unreachable")
                                                  : HK_STR("NotReady");
        }
    }
    return HK_STR("Unknown");
}

static void add_node_share(const struct json *node, const char *resource, int64_t used,
                           struct grid *g)
{
    const int64_t of = list_milli(json_at(node, "status.allocatable"), resource, -1);

    if (of < 0) {
        grid_add(g, HK_STR(""));
    } else {
        list_room_add_share_cell(resource, used, of, g);
    }
}

void list_node(const struct api_object *node, const struct list_set *all,
               const struct list_more *more, const struct list_how *how, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf age = {0};
    const struct json *root = &node->root;
    const struct hk_str state = list_node_state(root);
    const struct list_use use = list_use_of(node->name, more);

    grid_add(g, node->name);
    grid_addf(g, "%.*s%s", HK_FMT(state),
              json_bool(json_at(root, "spec.unschedulable"), false) ? ",closed" : "");
    grid_hue(g, term_phase_hue(state));
    add_node_share(root, API_RES_CPU, use.cpu_milli, g);
    add_node_share(root, API_RES_MEMORY, use.memory_milli, g);
    add_node_share(root, LIST_GPU, use.gpu_milli, g);
    add_node_share(root, API_RES_PODS, (int64_t)use.pods * 1000, g);
    if (how->wide) {
        grid_addf(g, "%u", json_list_at(root, "spec.taints")->len);
        grid_add(g, json_str_at(root, "status.nodeInfo.kubeletVersion"));
        grid_add(g, json_str_at(root, "status.nodeInfo.osImage"));
    }
    show_age(json_at(root, "metadata.creationTimestamp"), how->now_ns, &age);
    grid_add(g, hk_buf_str(&age));
    grid_passing(g);
}
