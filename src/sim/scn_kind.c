// SPDX-License-Identifier: Apache-2.0
// The kinds of objects in a scenario. Each is a table of fields: a key, the form of its value, and
// its place in the manifest.
#include "sim/scn_priv.h"

#include "api/names.h"
#include "codec/quantity.h"

static struct hk_arena *scn_kind_arena(struct scn_edit *e)
{
    return &e->r->mem;
}

/* ---- nodes ---- */

static int set_allocatable(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "an amount");
    }
    json_put(json_need_at(e->doc, scn_kind_arena(e), "status.allocatable", JSON_OBJECT),
             scn_kind_arena(e), scn_resource(e->rest), json_make_str(e->value));
    json_put(json_need_at(e->doc, scn_kind_arena(e), "status.capacity", JSON_OBJECT),
             scn_kind_arena(e), scn_resource(e->rest), json_make_str(e->value));
    return 0;
}

/* key=value:Effect, value may be missing. */
static int parse_taint(struct scn_edit *e, struct hk_str *key, struct hk_str *value,
                       struct hk_str *effect)
{
    struct hk_str rest = e->value;

    if (!rest.s) {
        return scn_bad_value(e, "key=value:Effect");
    }
    const char *colon = memrchr(rest.s, ':', rest.n);
    if (colon) {
        *effect = (struct hk_str){colon + 1, rest.n - (size_t)(colon + 1 - rest.s)};
        rest.n = (size_t)(colon - rest.s);
    }
    hk_str_cut(&rest, '=', key);
    *value = rest;
    return 0;
}

static int set_taint(struct scn_edit *e)
{
    struct hk_str key = {0}, value = {0}, effect = {0};
    struct json t = json_make_object();
    const int rc = parse_taint(e, &key, &value, &effect);

    if (rc < 0) {
        return rc;
    }
    if (effect.n == 0) {
        return scn_bad_value(e, "key=value:Effect");
    }
    json_set_str(&t, scn_kind_arena(e), "key", key);
    if (value.s) {
        json_set_str(&t, scn_kind_arena(e), "value", value);
    }
    json_set_str(&t, scn_kind_arena(e), "effect", effect);
    json_push(json_need_at(e->doc, scn_kind_arena(e), "spec.taints", JSON_ARRAY), scn_kind_arena(e),
              t);
    return 0;
}

/* name@500Mi */
static int set_image_held(struct scn_edit *e)
{
    struct json image = json_make_object(), names = json_make_array();
    const char *at = e->value.s ? memrchr(e->value.s, '@', e->value.n) : NULL;
    struct quantity size;

    if (!at || quantity_parse((struct hk_str){at + 1, e->value.n - (size_t)(at + 1 - e->value.s)},
                              &size, NULL) < 0) {
        return scn_bad_value(e, "name@size");
    }
    json_push(&names, scn_kind_arena(e),
              json_make_str((struct hk_str){e->value.s, (size_t)(at - e->value.s)}));
    json_set(&image, scn_kind_arena(e), "names", names);
    json_set_int(&image, scn_kind_arena(e), "sizeBytes", quantity_value(size));
    json_push(json_need_at(e->doc, scn_kind_arena(e), "status.images", JSON_ARRAY),
              scn_kind_arena(e), image);
    return 0;
}

static void init_node(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    json_set_str(json_need_at(doc, &r->mem, "metadata.labels", JSON_OBJECT), &r->mem,
                 API_LABEL_HOSTNAME, ref);
    json_set_at(doc, &r->mem, "status.allocatable.pods", json_make_str(HK_STR("10")));
    json_set_at(doc, &r->mem, "status.capacity.pods", json_make_str(HK_STR("10")));
}

/* ---- jobs ---- */

/* soft, hard, hard:2, hard:rack */
static int scn_kind_parse_topology(struct scn_edit *e, struct hk_str text, struct json *ret)
{
    struct hk_str rest = text, mode;
    int64_t tier;

    *ret = json_make_object();
    hk_str_cut(&rest, ':', &mode);
    if (!text.s || !(hk_str_is(mode, "hard") || hk_str_is(mode, "soft"))) {
        return scn_bad_value(e, "soft, hard, hard:TIER or hard:TIERNAME");
    }
    json_set_str(ret, scn_kind_arena(e), "mode", mode);
    if (rest.s && hk_str_int(rest, &tier)) {
        json_set_int(ret, scn_kind_arena(e), "highestTierAllowed", tier);
    } else if (rest.s) {
        json_set_str(ret, scn_kind_arena(e), "highestTierName", rest);
    }
    return 0;
}

static int set_topology(struct scn_edit *e)
{
    struct json t;
    const int rc = scn_kind_parse_topology(e, e->value, &t);

    if (rc == 0) {
        json_set_at(e->doc, scn_kind_arena(e), "spec.networkTopology", t);
    }
    return rc;
}

static int subgroup_item(struct scn_edit *e, struct json *policy, struct hk_str key,
                         struct hk_str v)
{
    int64_t n = 0;
    struct json t;

    if (hk_str_is(key, "size") && hk_str_int(v, &n)) {
        json_set_int(policy, scn_kind_arena(e), "subGroupSize", n);
    } else if (hk_str_is(key, "min") && hk_str_int(v, &n)) {
        json_set_int(policy, scn_kind_arena(e), "minSubGroups", n);
    } else if (hk_str_is(key, "key")) {
        json_push(json_need(policy, scn_kind_arena(e), "matchLabelKeys", JSON_ARRAY),
                  scn_kind_arena(e), json_make_str(v));
    } else if (hk_str_is(key, "topology")) {
        const int rc = scn_kind_parse_topology(e, v, &t);
        if (rc < 0) {
            return rc;
        }
        json_set(policy, scn_kind_arena(e), "networkTopology", t);
    } else if (hk_str_starts(key, "select/")) {
        json_put(json_need_at(policy, scn_kind_arena(e), "labelSelector.matchLabels", JSON_OBJECT),
                 scn_kind_arena(e), (struct hk_str){key.s + 7, key.n - 7}, json_make_str(v));
    } else {
        return scn_bad_value(e, "size:N,min:N,key:LABEL,select/LABEL:VALUE,topology:MODE");
    }
    return 0;
}

/* subgroup:NAME=size:2,min:1,key:LABEL,topology:hard:1 */
static int set_subgroup(struct scn_edit *e)
{
    struct json policy = json_make_object();
    struct hk_str rest = e->value, part, key;
    int rc = 0;

    json_set_str(&policy, scn_kind_arena(e), "name", e->rest);
    while (rc == 0 && hk_str_cut(&rest, ',', &part)) {
        hk_str_cut(&part, ':', &key);
        rc = part.s ? subgroup_item(e, &policy, key, part) : scn_bad_value(e, "key:value pairs");
    }
    if (rc == 0) {
        json_push(json_need_at(e->doc, scn_kind_arena(e), "spec.subGroupPolicy", JSON_ARRAY),
                  scn_kind_arena(e), policy);
    }
    return rc;
}

/* role:NAME=MIN */
static int set_role_min(struct scn_edit *e)
{
    int64_t v;

    if (!e->value.s || !hk_str_int(e->value, &v)) {
        return scn_bad_value(e, "a whole number");
    }
    json_put(json_need_at(e->doc, scn_kind_arena(e), "spec.minTaskMember", JSON_OBJECT),
             scn_kind_arena(e), e->rest, json_make_int(v));
    return 0;
}

/* prio=N: a PriorityClass of that value, created at first use. */
static int set_job_priority(struct scn_edit *e)
{
    struct json pc = json_make_object();
    int64_t v;

    if (!e->value.s || !hk_str_int(e->value, &v)) {
        return scn_bad_value(e, "a whole number");
    }
    const struct hk_str name =
        hk_str(hk_arena_printf(scn_kind_arena(e), "prio%.*s", HK_FMT(e->value)));
    json_set_at(&pc, scn_kind_arena(e), "metadata.name", json_make_str(name));
    json_set_at(&pc, scn_kind_arena(e), "value", json_make_int(v));
    json_set_at(e->doc, scn_kind_arena(e), "spec.priorityClassName", json_make_str(name));
    ingest_put(e->r->c.in, api_kind(API_PRIORITY_CLASS), &pc, NULL, NULL);
    return 0;
}

static void init_job(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    const struct hk_str phase = r->c.conf->has_enqueue ? HK_STR("Pending") : HK_STR("Inqueue");

    json_set_at(doc, &r->mem, "status.phase", json_make_str(phase));
}

/* ---- tasks ---- */

static struct json *container(struct json *doc, struct hk_arena *a)
{
    struct json *list = json_need_at(doc, a, "spec.containers", JSON_ARRAY);

    if (list->len > 0) {
        return &list->items[0];
    }
    struct json *c = json_push(list, a, json_make_object());
    json_set_cstr(c, a, "name", "main");
    return c;
}

static int set_request(struct scn_edit *e)
{
    struct json *requests = json_need_at(container(e->doc, scn_kind_arena(e)), scn_kind_arena(e),
                                         "resources.requests", JSON_OBJECT);

    if (!e->value.s) {
        return scn_bad_value(e, "an amount");
    }
    json_put(requests, scn_kind_arena(e), scn_resource(e->rest), json_make_str(e->value));
    return 0;
}

static int scn_kind_set_node(struct scn_edit *e, const char *phase)
{
    if (e->rest.n == 0 || e->value.s) {
        return scn_bad_value(e, "the name of a node");
    }
    json_set_at(e->doc, scn_kind_arena(e), "spec.nodeName", json_make_str(e->rest));
    json_set_at(e->doc, scn_kind_arena(e), "status.phase", json_make_str(hk_str(phase)));
    return 0;
}

static int set_run(struct scn_edit *e)
{
    json_set_at(e->doc, scn_kind_arena(e), "status.startTime",
                scn_time(e->r, scn_creation_ns(e->r)));
    return scn_kind_set_node(e, "Running");
}

static int set_bound(struct scn_edit *e)
{
    return scn_kind_set_node(e, "Pending");
}

static int set_releasing(struct scn_edit *e)
{
    json_set_at(e->doc, scn_kind_arena(e), "metadata.deletionTimestamp",
                scn_time(e->r, e->r->c.now_ns));
    return scn_kind_set_node(e, "Running");
}

/* key=value:Effect, key:Effect for any value, * for everything */
static int set_toleration(struct scn_edit *e)
{
    struct hk_str key = {0}, value = {0}, effect = {0};
    struct json t = json_make_object();
    const int rc = parse_taint(e, &key, &value, &effect);

    if (rc < 0) {
        return rc;
    }
    json_set_cstr(&t, scn_kind_arena(e), "operator", value.s ? "Equal" : "Exists");
    if (!hk_str_is(key, "*")) {
        json_set_str(&t, scn_kind_arena(e), "key", key);
    }
    if (value.s) {
        json_set_str(&t, scn_kind_arena(e), "value", value);
    }
    if (effect.n > 0) {
        json_set_str(&t, scn_kind_arena(e), "effect", effect);
    }
    json_push(json_need_at(e->doc, scn_kind_arena(e), "spec.tolerations", JSON_ARRAY),
              scn_kind_arena(e), t);
    return 0;
}

static int set_ports(struct scn_edit *e)
{
    struct json list = json_make_array();
    struct hk_str rest = e->value, part;
    int64_t port;

    while (hk_str_cut(&rest, ',', &part)) {
        struct json p = json_make_object();
        if (!hk_str_int(part, &port)) {
            return scn_bad_value(e, "host ports with commas between");
        }
        json_set_int(&p, scn_kind_arena(e), "hostPort", port);
        json_set_int(&p, scn_kind_arena(e), "containerPort", port);
        json_push(&list, scn_kind_arena(e), p);
    }
    json_set(container(e->doc, scn_kind_arena(e)), scn_kind_arena(e), "ports", list);
    return 0;
}

static int set_gates(struct scn_edit *e)
{
    struct json list = json_make_array();
    struct hk_str rest = e->value, part;

    while (hk_str_cut(&rest, ',', &part)) {
        struct json gate = json_make_object();
        if (part.n > 0) {
            json_set_str(&gate, scn_kind_arena(e), "name", part);
            json_push(&list, scn_kind_arena(e), gate);
        }
    }
    json_set_at(e->doc, scn_kind_arena(e), "spec.schedulingGates", list);
    return 0;
}

static int set_image(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "the name of an image");
    }
    json_set_str(container(e->doc, scn_kind_arena(e)), scn_kind_arena(e), "image", e->value);
    return 0;
}

static int set_claim(struct scn_edit *e)
{
    struct json v = json_make_object();

    if (!e->value.s) {
        return scn_bad_value(e, "the name of a claim");
    }
    json_set_str(&v, scn_kind_arena(e), "name", e->value);
    json_set_at(&v, scn_kind_arena(e), "persistentVolumeClaim.claimName", json_make_str(e->value));
    json_push(json_need_at(e->doc, scn_kind_arena(e), "spec.volumes", JSON_ARRAY),
              scn_kind_arena(e), v);
    return 0;
}

static void init_pod(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    container(doc, &r->mem);
    json_set_at(doc, &r->mem, "spec.schedulerName", json_make_str(HK_STR(API_SCHEDULER_NAME)));
    json_set_at(doc, &r->mem, "status.phase", json_make_str(HK_STR("Pending")));
}

/* "j1/0" belongs to the PodGroup j1, in that group's namespace. */
static void init_task(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    struct hk_str rest = ref, job;

    init_pod(r, doc, ref);
    hk_str_cut(&rest, '/', &job);
    const struct scn_object *group = scn_job_find(r, job);
    json_set_str(json_need_at(doc, &r->mem, "metadata.annotations", JSON_OBJECT), &r->mem,
                 API_ANN_GROUP_NAME, job);
    if (group) {
        json_set_at(doc, &r->mem, "metadata.namespace", json_make_str(group->ns));
    }
}

/* ---- hyperNodes, storage ---- */

static int add_members(struct scn_edit *e, const char *type)
{
    struct hk_str rest = e->value, part;

    while (hk_str_cut(&rest, ',', &part)) {
        struct scn_names names;
        const int rc = scn_expand(e->r, part, &names, e->err);
        if (rc < 0) {
            return rc;
        }
        for (uint32_t k = 0; k < names.n; k++) {
            struct json m = json_make_object();
            json_set_cstr(&m, scn_kind_arena(e), "type", type);
            json_set_at(&m, scn_kind_arena(e), "selector.exactMatch.name",
                        json_make_str(names.at[k]));
            json_push(json_need_at(e->doc, scn_kind_arena(e), "spec.members", JSON_ARRAY),
                      scn_kind_arena(e), m);
        }
    }
    return 0;
}

static int set_member_nodes(struct scn_edit *e)
{
    return add_members(e, "Node");
}

static int set_member_hypers(struct scn_edit *e)
{
    return add_members(e, "HyperNode");
}

static int set_member_match(struct scn_edit *e)
{
    struct json m = json_make_object();

    if (!e->value.s) {
        return scn_bad_value(e, "a pattern");
    }
    json_set_cstr(&m, scn_kind_arena(e), "type", "Node");
    json_set_at(&m, scn_kind_arena(e), "selector.regexMatch.pattern", json_make_str(e->value));
    json_push(json_need_at(e->doc, scn_kind_arena(e), "spec.members", JSON_ARRAY),
              scn_kind_arena(e), m);
    return 0;
}

static void init_pvc(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    json_push(json_need_at(doc, &r->mem, "spec.accessModes", JSON_ARRAY), &r->mem,
              json_make_str(HK_STR("ReadWriteOnce")));
    json_set_at(doc, &r->mem, "status.phase", json_make_str(HK_STR("Pending")));
}

static void init_pv(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    json_push(json_need_at(doc, &r->mem, "spec.accessModes", JSON_ARRAY), &r->mem,
              json_make_str(HK_STR("ReadWriteOnce")));
    json_set_at(doc, &r->mem, "status.phase", json_make_str(HK_STR("Available")));
}

/* volume=PV: the claim is bound to it. */
static int set_pvc_volume(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "the name of a volume");
    }
    json_set_at(e->doc, scn_kind_arena(e), "spec.volumeName", json_make_str(e->value));
    json_set_at(e->doc, scn_kind_arena(e), "status.phase", json_make_str(HK_STR("Bound")));
    json_set_cstr(json_need_at(e->doc, scn_kind_arena(e), "metadata.annotations", JSON_OBJECT),
                  scn_kind_arena(e), API_ANN_BIND_COMPLETED, "yes");
    return 0;
}

/* claim=PVC, in the scenario's own namespace */
static int set_pv_claim(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "the name of a claim");
    }
    json_set_at(e->doc, scn_kind_arena(e), "spec.claimRef.namespace", json_make_str(HK_STR("ns")));
    json_set_at(e->doc, scn_kind_arena(e), "spec.claimRef.name", json_make_str(e->value));
    json_set_at(e->doc, scn_kind_arena(e), "status.phase", json_make_str(HK_STR("Bound")));
    return 0;
}

/* nodes=a,b: the volume is reachable only from these */
static int set_pv_nodes(struct scn_edit *e)
{
    struct json req = json_make_object(), values = json_make_array(), term = json_make_object();
    struct hk_str rest = e->value, part;

    while (hk_str_cut(&rest, ',', &part)) {
        json_push(&values, scn_kind_arena(e), json_make_str(part));
    }
    json_set_cstr(&req, scn_kind_arena(e), "key", API_LABEL_HOSTNAME);
    json_set_cstr(&req, scn_kind_arena(e), "operator", "In");
    json_set(&req, scn_kind_arena(e), "values", values);
    json_push(json_need(&term, scn_kind_arena(e), "matchExpressions", JSON_ARRAY),
              scn_kind_arena(e), req);
    json_push(json_need_at(e->doc, scn_kind_arena(e),
                           "spec.nodeAffinity.required.nodeSelectorTerms", JSON_ARRAY),
              scn_kind_arena(e), term);
    return 0;
}

/* ---- the tables ---- */

static const struct scn_field common_fields[] = {
    {"label:", scn_set_map, "metadata.labels"},
    {"annotation:", scn_set_map, "metadata.annotations"},
    {"uid", scn_set_str, "metadata.uid"},
    {"age", scn_set_age, NULL},
    {0},
};

static const struct scn_field namespaced_fields[] = {
    {"ns", scn_set_str, "metadata.namespace"},
    {0},
};

static const struct scn_field queue_fields[] = {
    {"weight", scn_set_int, "spec.weight"},
    {"capability", scn_set_resources, "spec.capability"},
    {"deserved", scn_set_resources, "spec.deserved"},
    {"guarantee", scn_set_resources, "spec.guarantee.resource"},
    {"parent", scn_set_str, "spec.parent"},
    {"priority", scn_set_int, "spec.priority"},
    {"reclaimable", scn_set_bool, "spec.reclaimable"},
    {"state", scn_set_str, "status.state"},
    {0},
};

static const struct scn_field node_fields[] = {
    {"taint", set_taint, NULL},
    {"unschedulable", scn_set_bool, "spec.unschedulable"},
    {"image", set_image_held, NULL},
    {NULL, set_allocatable, NULL},
    {0},
};

static const struct scn_field job_fields[] = {
    {"queue", scn_set_str, "spec.queue"},
    {"min", scn_set_int, "spec.minMember"},
    {"minres", scn_set_resources, "spec.minResources"},
    {"phase", scn_set_str, "status.phase"},
    {"class", scn_set_str, "spec.priorityClassName"},
    {"prio", set_job_priority, NULL},
    {"role:", set_role_min, NULL},
    {"preemptable", scn_set_annotation, API_ANN_PREEMPTABLE},
    {"topology", set_topology, NULL},
    {"subgroup:", set_subgroup, NULL},
    {"sla", scn_set_annotation, API_ANN_SLA_WAITING_TIME},
    {0},
};

static const struct scn_field task_fields[] = {
    {"role", scn_set_annotation, API_ANN_TASK_SPEC},
    {"prio", scn_set_int, "spec.priority"},
    {"class", scn_set_str, "spec.priorityClassName"},
    {"run@", set_run, NULL},
    {"bound@", set_bound, NULL},
    {"releasing@", set_releasing, NULL},
    {"phase", scn_set_str, "status.phase"},
    {"nominated", scn_set_str, "status.nominatedNodeName"},
    {"selector:", scn_set_map, "spec.nodeSelector"},
    {"toleration", set_toleration, NULL},
    {"ports", set_ports, NULL},
    {"preemptable", scn_set_annotation, API_ANN_PREEMPTABLE},
    {"policy", scn_set_str, "spec.preemptionPolicy"},
    {"gates", set_gates, NULL},
    {"image", set_image, NULL},
    {"claim", set_claim, NULL},
    {"scheduler", scn_set_str, "spec.schedulerName"},
    {NULL, set_request, NULL},
    {0},
};

static const struct scn_field class_fields[] = {
    {"value", scn_set_int, "value"},
    {"default", scn_set_bool, "globalDefault"},
    {"policy", scn_set_str, "preemptionPolicy"},
    {0},
};

static const struct scn_field quota_fields[] = {
    {"hard", scn_set_resources, "status.hard"},
    {"used", scn_set_resources, "status.used"},
    {0},
};

static const struct scn_field pdb_fields[] = {
    {"select:", scn_set_map, "spec.selector.matchLabels"},
    {"allowed", scn_set_int, "status.disruptionsAllowed"},
    {0},
};

static const struct scn_field namespace_fields[] = {{0}};

static const struct scn_field hyper_fields[] = {
    {"tier", scn_set_int, "spec.tier"}, {"tiername", scn_set_str, "spec.tierName"},
    {"nodes", set_member_nodes, NULL},  {"hypernodes", set_member_hypers, NULL},
    {"match", set_member_match, NULL},  {0},
};

static const struct scn_field pvc_fields[] = {
    {"class", scn_set_str, "spec.storageClassName"},
    {"size", scn_set_str, "spec.resources.requests.storage"},
    {"modes", scn_set_list, "spec.accessModes"},
    {"volume", set_pvc_volume, NULL},
    {0},
};

static const struct scn_field pv_fields[] = {
    {"class", scn_set_str, "spec.storageClassName"},
    {"size", scn_set_str, "spec.capacity.storage"},
    {"modes", scn_set_list, "spec.accessModes"},
    {"claim", set_pv_claim, NULL},
    {"nodes", set_pv_nodes, NULL},
    {0},
};

static const struct scn_field sc_fields[] = {
    {"provisioner", scn_set_str, "provisioner"},
    {"mode", scn_set_str, "volumeBindingMode"},
    {0},
};

static const struct scn_field service_fields[] = {
    {"select:", scn_set_map, "spec.selector"},
    {0},
};

static const struct scn_field shard_fields[] = {
    {"nodes", scn_set_list, "spec.nodesDesired"},
    {"inuse", scn_set_list, "status.nodesInUse"},
    {0},
};

static const struct scn_kind kinds[] = {
    {"queue", API_QUEUE, queue_fields, NULL},
    {"node", API_NODE, node_fields, init_node},
    {"job", API_PODGROUP, job_fields, init_job},
    {"task", API_POD, task_fields, init_task},
    {"pod", API_POD, task_fields, init_pod},
    {"priorityclass", API_PRIORITY_CLASS, class_fields, NULL},
    {"quota", API_RESOURCE_QUOTA, quota_fields, NULL},
    {"pdb", API_PDB, pdb_fields, NULL},
    {"namespace", API_NAMESPACE, namespace_fields, NULL},
    {"hypernode", API_HYPERNODE, hyper_fields, NULL},
    {"pvc", API_PVC, pvc_fields, init_pvc},
    {"pv", API_PV, pv_fields, init_pv},
    {"sc", API_STORAGE_CLASS, sc_fields, NULL},
    {"service", API_SERVICE, service_fields, NULL},
    {"shard", API_NODESHARD, shard_fields, NULL},
};

const struct scn_kind *scn_kind_at(size_t i)
{
    return i < HK_LEN(kinds) ? &kinds[i] : NULL;
}

const struct scn_kind *scn_kind_find(struct hk_str word)
{
    for (size_t k = 0; k < HK_LEN(kinds); k++) {
        if (hk_str_is(word, kinds[k].word)) {
            return &kinds[k];
        }
    }
    return NULL;
}

/* ---- finding the field ---- */

static bool scn_kind_field_matches(const struct scn_field *f, struct hk_str key,
                                   struct hk_str *rest)
{
    *rest = key;
    if (!f->key) {
        return scn_is_resource(key);
    }
    const size_t n = strlen(f->key);
    if (f->key[n - 1] != ':' && f->key[n - 1] != '@') {
        *rest = HK_STR("");
        return hk_str_is(key, f->key);
    }
    if (!hk_str_starts(key, f->key)) {
        return false;
    }
    *rest = (struct hk_str){key.s + n, key.n - n};
    return true;
}

static const struct scn_field *scn_kind_find_field(const struct scn_field *fields,
                                                   struct hk_str key, struct hk_str *rest)
{
    for (const struct scn_field *f = fields; f->set; f++) {
        if (scn_kind_field_matches(f, key, rest)) {
            return f;
        }
    }
    return NULL;
}

int scn_kind_set(struct scn_run *r, const struct scn_kind *kind, struct json *doc,
                 const struct scn_word *w, struct hk_err *err)
{
    struct scn_edit e = {.r = r, .doc = doc, .value = w->value, .err = err};

    e.f = scn_kind_find_field(common_fields, w->key, &e.rest);
    if (!e.f && api_kind(kind->id)->namespaced) {
        e.f = scn_kind_find_field(namespaced_fields, w->key, &e.rest);
    }
    if (!e.f) {
        e.f = scn_kind_find_field(kind->fields, w->key, &e.rest);
    }
    if (!e.f) {
        return scn_fail(r, err, "%s has no '%.*s'", kind->word, HK_FMT(w->key));
    }
    return e.f->set(&e);
}
