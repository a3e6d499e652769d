// SPDX-License-Identifier: Apache-2.0
// The kinds of things a scenario describes. Each is a table of fields: a key, what its value looks
// like and where it goes in the manifest.
#include "sim/scn_priv.h"

#include "api/names.h"
#include "codec/quantity.h"

static struct hk_arena *mem(struct scn_edit *e)
{
    return &e->r->mem;
}

static struct json str(struct hk_str s)
{
    return json_make_str(s);
}

/* ---- nodes ---- */

static int set_allocatable(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "an amount");
    }
    json_put(scn_need(e->doc, mem(e), "status.allocatable"), mem(e), scn_resource(e->rest),
             str(e->value));
    json_put(scn_need(e->doc, mem(e), "status.capacity"), mem(e), scn_resource(e->rest),
             str(e->value));
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
    json_put(&t, mem(e), HK_STR("key"), str(key));
    if (value.s) {
        json_put(&t, mem(e), HK_STR("value"), str(value));
    }
    json_put(&t, mem(e), HK_STR("effect"), str(effect));
    json_push(scn_need_list(e->doc, mem(e), "spec", "taints"), mem(e), t);
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
    json_push(&names, mem(e), str((struct hk_str){e->value.s, (size_t)(at - e->value.s)}));
    json_put(&image, mem(e), HK_STR("names"), names);
    json_put(&image, mem(e), HK_STR("sizeBytes"), json_make_int(quantity_value(size)));
    json_push(scn_need_list(e->doc, mem(e), "status", "images"), mem(e), image);
    return 0;
}

static void init_node(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    json_put(scn_need(doc, &r->mem, "metadata.labels"), &r->mem, HK_STR(API_LABEL_HOSTNAME),
             str(ref));
    scn_set_at(doc, &r->mem, "status.allocatable.pods", str(HK_STR("10")));
    scn_set_at(doc, &r->mem, "status.capacity.pods", str(HK_STR("10")));
}

/* ---- jobs ---- */

/* soft, hard, hard:2, hard:rack */
static int topology(struct scn_edit *e, struct hk_str text, struct json *ret)
{
    struct hk_str rest = text, mode;
    int64_t tier;

    *ret = json_make_object();
    hk_str_cut(&rest, ':', &mode);
    if (!text.s || !(hk_str_is(mode, "hard") || hk_str_is(mode, "soft"))) {
        return scn_bad_value(e, "soft, hard, hard:TIER or hard:TIERNAME");
    }
    json_put(ret, mem(e), HK_STR("mode"), str(mode));
    if (rest.s && hk_str_int(rest, &tier)) {
        json_put(ret, mem(e), HK_STR("highestTierAllowed"), json_make_int(tier));
    } else if (rest.s) {
        json_put(ret, mem(e), HK_STR("highestTierName"), str(rest));
    }
    return 0;
}

static int set_topology(struct scn_edit *e)
{
    struct json t;
    const int rc = topology(e, e->value, &t);

    if (rc == 0) {
        scn_set_at(e->doc, mem(e), "spec.networkTopology", t);
    }
    return rc;
}

static int subgroup_item(struct scn_edit *e, struct json *policy, struct hk_str key,
                         struct hk_str v)
{
    int64_t n = 0;
    struct json t;

    if (hk_str_is(key, "size") && hk_str_int(v, &n)) {
        json_put(policy, mem(e), HK_STR("subGroupSize"), json_make_int(n));
    } else if (hk_str_is(key, "min") && hk_str_int(v, &n)) {
        json_put(policy, mem(e), HK_STR("minSubGroups"), json_make_int(n));
    } else if (hk_str_is(key, "key")) {
        json_push(scn_need_list(policy, mem(e), "", "matchLabelKeys"), mem(e), str(v));
    } else if (hk_str_is(key, "topology")) {
        const int rc = topology(e, v, &t);
        if (rc < 0) {
            return rc;
        }
        json_put(policy, mem(e), HK_STR("networkTopology"), t);
    } else if (hk_str_starts(key, "select/")) {
        json_put(scn_need(policy, mem(e), "labelSelector.matchLabels"), mem(e),
                 (struct hk_str){key.s + 7, key.n - 7}, str(v));
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

    json_put(&policy, mem(e), HK_STR("name"), str(e->rest));
    while (rc == 0 && hk_str_cut(&rest, ',', &part)) {
        hk_str_cut(&part, ':', &key);
        rc = part.s ? subgroup_item(e, &policy, key, part) : scn_bad_value(e, "key:value pairs");
    }
    if (rc == 0) {
        json_push(scn_need_list(e->doc, mem(e), "spec", "subGroupPolicy"), mem(e), policy);
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
    json_put(scn_need(e->doc, mem(e), "spec.minTaskMember"), mem(e), e->rest, json_make_int(v));
    return 0;
}

/* prio=N: a class of that value, made when first asked for. */
static int set_job_priority(struct scn_edit *e)
{
    struct json pc = json_make_object();
    int64_t v;

    if (!e->value.s || !hk_str_int(e->value, &v)) {
        return scn_bad_value(e, "a whole number");
    }
    const struct hk_str name = hk_str(hk_arena_printf(mem(e), "prio%.*s", HK_FMT(e->value)));
    scn_set_at(&pc, mem(e), "metadata.name", str(name));
    scn_set_at(&pc, mem(e), "value", json_make_int(v));
    scn_set_at(e->doc, mem(e), "spec.priorityClassName", str(name));
    ingest_put(e->r->c.in, api_kind(API_PRIORITY_CLASS), &pc, NULL, NULL);
    return 0;
}

static void init_job(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    const struct hk_str phase = r->c.conf->has_enqueue ? HK_STR("Pending") : HK_STR("Inqueue");

    scn_set_at(doc, &r->mem, "status.phase", str(phase));
}

/* ---- tasks ---- */

static struct json *container(struct json *doc, struct hk_arena *a)
{
    struct json *list = scn_need_list(doc, a, "spec", "containers");

    if (list->len > 0) {
        return &list->items[0];
    }
    struct json *c = json_push(list, a, json_make_object());
    json_put(c, a, HK_STR("name"), str(HK_STR("main")));
    return c;
}

static int set_request(struct scn_edit *e)
{
    struct json *requests = scn_need(container(e->doc, mem(e)), mem(e), "resources.requests");

    if (!e->value.s) {
        return scn_bad_value(e, "an amount");
    }
    json_put(requests, mem(e), scn_resource(e->rest), str(e->value));
    return 0;
}

static int place(struct scn_edit *e, const char *phase)
{
    if (e->rest.n == 0 || e->value.s) {
        return scn_bad_value(e, "the name of a node");
    }
    scn_set_at(e->doc, mem(e), "spec.nodeName", str(e->rest));
    scn_set_at(e->doc, mem(e), "status.phase", str(hk_str(phase)));
    return 0;
}

static int set_run(struct scn_edit *e)
{
    scn_set_at(e->doc, mem(e), "status.startTime", scn_time(e->r, scn_creation_ns(e->r)));
    return place(e, "Running");
}

static int set_bound(struct scn_edit *e)
{
    return place(e, "Pending");
}

static int set_releasing(struct scn_edit *e)
{
    scn_set_at(e->doc, mem(e), "metadata.deletionTimestamp", scn_time(e->r, e->r->c.now_ns));
    return place(e, "Running");
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
    json_put(&t, mem(e), HK_STR("operator"), str(value.s ? HK_STR("Equal") : HK_STR("Exists")));
    if (!hk_str_is(key, "*")) {
        json_put(&t, mem(e), HK_STR("key"), str(key));
    }
    if (value.s) {
        json_put(&t, mem(e), HK_STR("value"), str(value));
    }
    if (effect.n > 0) {
        json_put(&t, mem(e), HK_STR("effect"), str(effect));
    }
    json_push(scn_need_list(e->doc, mem(e), "spec", "tolerations"), mem(e), t);
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
        json_put(&p, mem(e), HK_STR("hostPort"), json_make_int(port));
        json_put(&p, mem(e), HK_STR("containerPort"), json_make_int(port));
        json_push(&list, mem(e), p);
    }
    json_put(container(e->doc, mem(e)), mem(e), HK_STR("ports"), list);
    return 0;
}

static int set_gates(struct scn_edit *e)
{
    struct json list = json_make_array();
    struct hk_str rest = e->value, part;

    while (hk_str_cut(&rest, ',', &part)) {
        struct json gate = json_make_object();
        if (part.n > 0) {
            json_put(&gate, mem(e), HK_STR("name"), str(part));
            json_push(&list, mem(e), gate);
        }
    }
    scn_set_at(e->doc, mem(e), "spec.schedulingGates", list);
    return 0;
}

static int set_image(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "the name of an image");
    }
    json_put(container(e->doc, mem(e)), mem(e), HK_STR("image"), str(e->value));
    return 0;
}

static int set_claim(struct scn_edit *e)
{
    struct json v = json_make_object();

    if (!e->value.s) {
        return scn_bad_value(e, "the name of a claim");
    }
    json_put(&v, mem(e), HK_STR("name"), str(e->value));
    scn_set_at(&v, mem(e), "persistentVolumeClaim.claimName", str(e->value));
    json_push(scn_need_list(e->doc, mem(e), "spec", "volumes"), mem(e), v);
    return 0;
}

static void init_pod(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    container(doc, &r->mem);
    scn_set_at(doc, &r->mem, "spec.schedulerName", str(HK_STR(API_SCHEDULER_NAME)));
    scn_set_at(doc, &r->mem, "status.phase", str(HK_STR("Pending")));
}

/* "j1/0" belongs to the PodGroup j1, wherever that lives. */
static void init_task(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    struct hk_str rest = ref, job;

    init_pod(r, doc, ref);
    hk_str_cut(&rest, '/', &job);
    const struct scn_object *group = scn_job_find(r, job);
    json_put(scn_need(doc, &r->mem, "metadata.annotations"), &r->mem, HK_STR(API_ANN_GROUP_NAME),
             str(job));
    if (group) {
        scn_set_at(doc, &r->mem, "metadata.namespace", str(group->ns));
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
            json_put(&m, mem(e), HK_STR("type"), str(hk_str(type)));
            scn_set_at(&m, mem(e), "selector.exactMatch.name", str(names.at[k]));
            json_push(scn_need_list(e->doc, mem(e), "spec", "members"), mem(e), m);
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
    json_put(&m, mem(e), HK_STR("type"), str(HK_STR("Node")));
    scn_set_at(&m, mem(e), "selector.regexMatch.pattern", str(e->value));
    json_push(scn_need_list(e->doc, mem(e), "spec", "members"), mem(e), m);
    return 0;
}

static void init_pvc(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    json_push(scn_need_list(doc, &r->mem, "spec", "accessModes"), &r->mem,
              str(HK_STR("ReadWriteOnce")));
    scn_set_at(doc, &r->mem, "status.phase", str(HK_STR("Pending")));
}

static void init_pv(struct scn_run *r, struct json *doc, struct hk_str ref)
{
    json_push(scn_need_list(doc, &r->mem, "spec", "accessModes"), &r->mem,
              str(HK_STR("ReadWriteOnce")));
    scn_set_at(doc, &r->mem, "status.phase", str(HK_STR("Available")));
}

/* volume=PV: the claim has it for good. */
static int set_pvc_volume(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "the name of a volume");
    }
    scn_set_at(e->doc, mem(e), "spec.volumeName", str(e->value));
    scn_set_at(e->doc, mem(e), "status.phase", str(HK_STR("Bound")));
    json_put(scn_need(e->doc, mem(e), "metadata.annotations"), mem(e),
             HK_STR(API_ANN_BIND_COMPLETED), str(HK_STR("yes")));
    return 0;
}

/* claim=PVC, in the scenario's own namespace */
static int set_pv_claim(struct scn_edit *e)
{
    if (!e->value.s) {
        return scn_bad_value(e, "the name of a claim");
    }
    scn_set_at(e->doc, mem(e), "spec.claimRef.namespace", str(HK_STR("ns")));
    scn_set_at(e->doc, mem(e), "spec.claimRef.name", str(e->value));
    scn_set_at(e->doc, mem(e), "status.phase", str(HK_STR("Bound")));
    return 0;
}

/* nodes=a,b: reachable from these only */
static int set_pv_nodes(struct scn_edit *e)
{
    struct json req = json_make_object(), values = json_make_array(), term = json_make_object();
    struct hk_str rest = e->value, part;

    while (hk_str_cut(&rest, ',', &part)) {
        json_push(&values, mem(e), str(part));
    }
    json_put(&req, mem(e), HK_STR("key"), str(HK_STR(API_LABEL_HOSTNAME)));
    json_put(&req, mem(e), HK_STR("operator"), str(HK_STR("In")));
    json_put(&req, mem(e), HK_STR("values"), values);
    json_push(scn_need_list(&term, mem(e), "", "matchExpressions"), mem(e), req);
    json_push(scn_need_list(e->doc, mem(e), "spec.nodeAffinity.required", "nodeSelectorTerms"),
              mem(e), term);
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

static bool matches(const struct scn_field *f, struct hk_str key, struct hk_str *rest)
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

static const struct scn_field *find(const struct scn_field *fields, struct hk_str key,
                                    struct hk_str *rest)
{
    for (const struct scn_field *f = fields; f->set; f++) {
        if (matches(f, key, rest)) {
            return f;
        }
    }
    return NULL;
}

int scn_kind_set(struct scn_run *r, const struct scn_kind *kind, struct json *doc,
                 const struct scn_word *w, struct hk_err *err)
{
    struct scn_edit e = {.r = r, .doc = doc, .value = w->value, .err = err};

    e.f = find(common_fields, w->key, &e.rest);
    if (!e.f && api_kind(kind->id)->namespaced) {
        e.f = find(namespaced_fields, w->key, &e.rest);
    }
    if (!e.f) {
        e.f = find(kind->fields, w->key, &e.rest);
    }
    if (!e.f) {
        return scn_fail(r, err, "%s has no '%.*s'", kind->word, HK_FMT(w->key));
    }
    return e.f->set(&e);
}
