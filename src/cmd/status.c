// SPDX-License-Identifier: Apache-2.0
// hekla status: shows whether a server is running in a directory, and its health. Collects one
// document; cli/show_server.c prints it as a page.
#include "admission/amount.h"
#include "agent/agent.h"
#include "api/pod_summary.h"
#include "base/crumb.h"
#include "base/file.h"
#include "base/map.h"
#include "cli/show.h"
#include "cli/verb.h"
#include "codec/yaml.h"
#include "daemon/where.h"
#include "host/host.h"
#include "user/ask.h"

#include <unistd.h>

#define METRICS_MAX ((size_t)16 << 20)
#define FAILURE "hekla_store_failure_info{reason=\""
#define FAILURE_END "\"} 1"

enum { EXIT_REFUSES = 4 };

struct status_opts {
    struct where_opts where;
    struct verb_output output;
};

static const struct option_row options[] = {
    ROW_INCLUDE(struct status_opts, where, where_options),
    ROW_INCLUDE(struct status_opts, output, verb_output_options),
    ROW_END,
};

struct status {
    struct hk_arena mem;
    struct json doc;
    struct ask ask;
    bool refuses; /* the server accepts no writes */
};

static struct hk_str status_text_at(const struct json *obj, const char *path)
{
    return json_str(json_at(obj, path), HK_STR(""));
}

/* ---- the process ---- */

/* The number after "NAME:" in /proc/PID/status, in KiB. */
static int64_t status_kib(struct hk_str text, const char *name)
{
    struct hk_str line, word;
    int64_t n;

    while (hk_str_cut(&text, '\n', &line)) {
        if (!hk_str_cut(&line, ':', &word) || !hk_str_is(word, name)) {
            continue;
        }
        line = hk_str_trim(line);
        hk_str_cut(&line, ' ', &word);
        return hk_str_int(word, &n) ? n : -1;
    }
    return -1;
}

/* From /proc/PID/stat: utime and stime are words 12 and 13 after the name. */
static int64_t cpu_millis(struct hk_str text)
{
    const char *end = memrchr(text.s, ')', text.n);
    struct hk_str rest = {end, end ? text.n - (size_t)(end - text.s) : 0}, word;
    int64_t ticks = 0, n;

    for (int k = 0; hk_str_cut(&rest, ' ', &word) && k <= 13; k++) {
        ticks += k >= 12 && hk_str_int(word, &n) ? n : 0;
    }
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

static void add_usage(struct status *s, pid_t pid)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, stat = {0};

    if (hk_read_file(hk_arena_printf(&s->mem, "/proc/%d/status", (int)pid), 1 << 16, &text, NULL) <
            0 ||
        hk_read_file(hk_arena_printf(&s->mem, "/proc/%d/stat", (int)pid), 1 << 16, &stat, NULL) <
            0) {
        return;
    }
    json_set_int(&s->doc, &s->mem, "memoryBytes", status_kib(hk_buf_str(&text), "VmRSS") * 1024);
    json_set_int(&s->doc, &s->mem, "cpuMillis", cpu_millis(hk_buf_str(&stat)));
}

static void add_server(struct status *s, const char *dir, const struct where_server *server)
{
    json_set_bool(&s->doc, &s->mem, "running", server->pid > 0);
    json_set_str_copy(&s->doc, &s->mem, "directory", hk_str(dir));
    if (server->pid == 0) {
        return;
    }
    json_set_int(&s->doc, &s->mem, "pid", server->pid);
    if (server->url[0] != '\0') {
        json_set_str_copy(&s->doc, &s->mem, "verb", hk_str(server->verb));
        json_set_str_copy(&s->doc, &s->mem, "version", hk_str(server->version));
        json_set_str_copy(&s->doc, &s->mem, "url", hk_str(server->url));
        json_set_str_copy(&s->doc, &s->mem, "since", hk_str(server->since));
    }
    add_usage(s, server->pid);
}

static void add_skipped_object(void *ctx, const char *what)
{
    struct status *s = ctx;
    struct json *list = json_need(&s->doc, &s->mem, "skipped", JSON_ARRAY);

    json_push(list, &s->mem, json_make_str(hk_arena_str(&s->mem, hk_str(what))));
}

/* Objects that are skipped because the server crashed on them twice. */
static void add_skipped(struct status *s, const char *dir)
{
    hk_crumb_each(hk_arena_printf(&s->mem, "%s/" HOST_CRUMBS, dir), add_skipped_object, s);
}

/* Pods of this machine that keep running although the API does not know them. */
static void add_kept(struct status *s, const char *dir)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json uids = json_make_array();
    struct hk_str rest, line;

    if (hk_read_file(hk_arena_printf(&s->mem, "%s/node/run/" AGENT_KEPT_FILE, dir), 1 << 20, &text,
                     NULL) < 0) {
        return;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (line.n > 0) {
            json_push(&uids, &s->mem, json_make_str(hk_arena_str(&s->mem, line)));
        }
    }
    json_set(&s->doc, &s->mem, "unknownPods", uids);
}

/* ---- contents of the API ---- */

static int status_list(struct status *s, enum api_kind_id kind, struct port_answer *ret,
                       struct hk_err *err)
{
    return ask(&s->ask, &(struct port_request){.verb = PORT_LIST, .kind = api_kind(kind)}, ret,
               err);
}

/* Increments the counter with that key. */
static void status_count(struct status *s, struct json *counts, struct hk_str word)
{
    const int64_t n = json_int(json_get_str(counts, word), 0);

    json_put(counts, &s->mem, hk_arena_str(&s->mem, word), json_make_int(n + 1));
}

static const char *const resources[] = {"cpu", "memory"};

/* The requests of pods on a node, and its capacity. */
struct share {
    struct quantity used[HK_LEN(resources)], has[HK_LEN(resources)];
    int64_t pods, room;
};

static void status_add_share(struct share *sum, const struct share *part)
{
    for (size_t k = 0; k < HK_LEN(resources); k++) {
        sum->used[k] = quantity_add(sum->used[k], part->used[k]);
        sum->has[k] = quantity_add(sum->has[k], part->has[k]);
    }
    sum->pods += part->pods;
    sum->room += part->room;
}

static struct share share_of_node(const struct json *node)
{
    const struct json *has = json_at(node, "status.allocatable");
    struct share share = {0};
    struct quantity pods = {0};

    for (size_t k = 0; k < HK_LEN(resources); k++) {
        amount_get(has, hk_str(resources[k]), &share.has[k]);
    }
    share.room = amount_get(has, HK_STR("pods"), &pods) ? quantity_value(pods) : 0;
    return share;
}

static struct share share_of_pod(const struct json *pod)
{
    struct share share = {.pods = 1};

    for (size_t k = 0; k < HK_LEN(resources); k++) {
        amount_of_pod(json_get(pod, "spec"), "requests", hk_str(resources[k]), &share.used[k]);
    }
    return share;
}

static struct json share_json(struct status *s, const struct quantity *amounts, int64_t pods)
{
    struct json list = json_make_object();

    for (size_t k = 0; k < HK_LEN(resources); k++) {
        amount_put(&list, &s->mem, hk_str(resources[k]), amounts[k]);
    }
    amount_put(&list, &s->mem, HK_STR("pods"), quantity_of(pods, QUANTITY_DECIMAL_SI));
    return list;
}

/* Since when a node is not ready, and the known reason. */
static void add_fault(struct status *s, struct json *row, const struct json *node)
{
    const struct json *conditions = json_at(node, "status.conditions");

    for (uint32_t i = 0; json_item(conditions, i); i++) {
        const struct json *c = json_item(conditions, i);

        if (hk_str_is(status_text_at(c, "type"), "Ready") &&
            !hk_str_is(status_text_at(c, "status"), "True")) {
            json_set_str_copy(row, &s->mem, "since", status_text_at(c, "lastTransitionTime"));
            json_set_str_copy(row, &s->mem, "message", status_text_at(c, "message"));
        }
    }
}

static struct json node_json(struct status *s, struct hk_str name, const char *status,
                             const struct share *share)
{
    struct json node = json_make_object();

    json_set_str_copy(&node, &s->mem, "name", name);
    json_set_str_copy(&node, &s->mem, "status", hk_str(status));
    json_set(&node, &s->mem, "allocatable", share_json(s, share->has, share->room));
    json_set(&node, &s->mem, "used", share_json(s, share->used, share->pods));
    return node;
}

static const char *node_status(const struct json *node)
{
    const struct json *conditions = json_at(node, "status.conditions");
    const bool closed = json_bool(json_at(node, "spec.unschedulable"), false);

    for (uint32_t i = 0; json_item(conditions, i); i++) {
        const struct json *c = json_item(conditions, i);
        if (hk_str_is(status_text_at(c, "type"), "Ready") &&
            hk_str_is(status_text_at(c, "status"), "True")) {
            return closed ? "Ready,SchedulingDisabled" : "Ready";
        }
    }
    return closed ? "NotReady,SchedulingDisabled" : "NotReady";
}

static uint64_t status_key_of(struct hk_str name)
{
    return hk_hash(name.s, name.n, 1) >> 1; /* the map reserves the largest key */
}

static void status_count_pods(struct status *s, const struct port_answer *pods,
                              const struct port_answer *nodes, struct share *shares)
{
    struct json phases = json_make_object();
    struct hk_map rows = {0};

    for (uint32_t i = 0; i < nodes->objects.len; i++) {
        hk_map_put(&rows, status_key_of(nodes->objects.at[i]->name), i);
    }
    for (uint32_t i = 0; i < pods->objects.len; i++) {
        const struct json *pod = &pods->objects.at[i]->root;
        const uint32_t row = hk_map_get(&rows, status_key_of(status_text_at(pod, "spec.nodeName")));

        status_count(s, &phases, status_text_at(pod, "status.phase"));
        if (row != HK_NONE && !api_pod_finished(pod)) {
            const struct share share = share_of_pod(pod);
            status_add_share(&shares[row], &share);
        }
    }
    hk_map_fini(&rows);
    json_set(&s->doc, &s->mem, "pods", phases);
}

static int add_nodes(struct status *s, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer nodes = {0}, pods = {0};
    HK_AUTO(hk_freep) struct share *shares = NULL;
    struct json rows = json_make_array();
    struct share total = {0};
    int rc = status_list(s, API_NODE, &nodes, err);

    if (rc < 0) {
        return rc;
    }
    rc = status_list(s, API_POD, &pods, err);
    if (rc < 0) {
        return rc;
    }
    shares = hk_zalloc((nodes.objects.len + 1) * sizeof(*shares));
    for (uint32_t i = 0; i < nodes.objects.len; i++) {
        shares[i] = share_of_node(&nodes.objects.at[i]->root);
    }
    status_count_pods(s, &pods, &nodes, shares);
    for (uint32_t i = 0; i < nodes.objects.len; i++) {
        const struct api_object *node = nodes.objects.at[i];
        struct json row = node_json(s, node->name, node_status(&node->root), &shares[i]);

        add_fault(s, &row, &node->root);
        json_push(&rows, &s->mem, row);
        status_add_share(&total, &shares[i]);
    }
    json_set(&s->doc, &s->mem, "nodes", rows);
    json_set(&s->doc, &s->mem, "total", node_json(s, HK_STR("total"), "", &total));
    return 0;
}

static int add_jobs(struct status *s, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer jobs = {0}, queues = {0};
    struct json phases = json_make_object(), by_queue = json_make_object();
    struct json rows = json_make_array();
    int rc = status_list(s, API_JOB, &jobs, err);

    if (rc == 0) {
        rc = status_list(s, API_QUEUE, &queues, err);
    }
    for (uint32_t i = 0; i < jobs.objects.len; i++) {
        const struct json *job = &jobs.objects.at[i]->root;
        const struct hk_str phase = status_text_at(job, "status.state.phase");
        status_count(s, &phases, phase.n > 0 ? phase : HK_STR("Pending"));
        status_count(s, &by_queue, status_text_at(job, "spec.queue"));
    }
    for (uint32_t i = 0; i < queues.objects.len; i++) {
        const struct api_object *queue = queues.objects.at[i];
        struct json row = json_make_object();

        json_set_str_copy(&row, &s->mem, "name", queue->name);
        json_set_str_copy(&row, &s->mem, "state", status_text_at(&queue->root, "status.state"));
        json_set_int(&row, &s->mem, "weight", json_int(json_at(&queue->root, "spec.weight"), 1));
        json_set_int(&row, &s->mem, "jobs", json_int(json_get_str(&by_queue, queue->name), 0));
        json_push(&rows, &s->mem, row);
    }
    json_set(&s->doc, &s->mem, "jobs", phases);
    json_set(&s->doc, &s->mem, "queues", rows);
    return rc;
}

/* The server's metrics show whether it accepts writes, and why not. */
static int add_writes(struct status *s, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_str rest, line, reason = HK_STR("the server does not say why");
    bool writable = true;
    const int rc = ask_text(&s->ask, "/metrics", METRICS_MAX, &text, err);

    if (rc < 0) {
        return rc;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (hk_str_is(line, "hekla_store_writable 0")) {
            writable = false;
        } else if (hk_str_starts(line, FAILURE) && hk_str_ends(line, FAILURE_END)) {
            reason = (struct hk_str){line.s + strlen(FAILURE),
                                     line.n - strlen(FAILURE) - strlen(FAILURE_END)};
        }
    }
    json_set_bool(&s->doc, &s->mem, "writable", writable);
    if (!writable) {
        json_set_str_copy(&s->doc, &s->mem, "writesRefused", reason);
    }
    s->refuses = !writable;
    return 0;
}

static int add_answers(struct status *s, const char *config, struct hk_err *err)
{
    int rc = ask_open(&s->ask, config, "", err);

    if (rc < 0) {
        return rc;
    }
    rc = add_writes(s, err);
    if (rc < 0) {
        return rc;
    }
    rc = add_nodes(s, err);
    if (rc < 0) {
        return rc;
    }
    return add_jobs(s, err);
}

/* The process exists; if it does not answer, the error goes into the document. */
static int add_served(struct status *s, const char *dir)
{
    const char *config = hk_arena_printf(&s->mem, "%s/kubeconfig", dir);
    struct hk_err err = {0};
    const int rc = add_answers(s, config, &err);

    ask_close(&s->ask);
    if (rc < 0) {
        json_set_str_copy(&s->doc, &s->mem, "error", hk_str(err.text));
    }
    return rc;
}

/* ---- the verb ---- */

static int status_print(const struct status *s, enum output as)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_clock *clock = hk_clock_system();

    if (as == OUTPUT_JSON) {
        json_write_pretty(&s->doc, 4, &out);
    } else if (as == OUTPUT_YAML) {
        yaml_write(&s->doc, &out);
    } else {
        show_server(&s->doc, clock->wall_ns(clock), &out);
    }
    return verb_print(&out);
}

static int status(const struct status_opts *o)
{
    struct status s = {.doc = json_make_object()};
    struct where_server server = {.pidfd = -1};
    struct hk_err err = {0};
    int rc = where_find(o->where.dir, &server, &err), code = EXIT_OK;

    if (rc < 0 && rc != -HK_ENOTFOUND) {
        return verb_complain("status: %s", err.text);
    }
    add_server(&s, o->where.dir, &server);
    add_skipped(&s, o->where.dir);
    add_kept(&s, o->where.dir);
    if (server.pid == 0) {
        code = EXIT_NOT_RUNNING;
    } else if (strcmp(server.verb, "agent") != 0 && server.url[0] != '\0' &&
               add_served(&s, o->where.dir) < 0) { /* an agent serves no API */
        code = EXIT_BAD;
    }
    if (code == EXIT_OK && s.refuses) {
        code = EXIT_REFUSES;
    }
    if (status_print(&s, o->output.as) != EXIT_OK) {
        code = EXIT_BAD;
    }
    where_server_fini(&server);
    hk_arena_fini(&s.mem);
    return code;
}

static int status_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0};
    struct status_opts o = {0};
    struct hk_err err = {0};
    const int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (where_settle(&o.where.dir, &dir, &err) < 0) {
        return verb_complain("status: %s", err.text);
    }
    return status(&o);
}

const struct verb verb_status = {
    .name = "status",
    .args = "",
    .about = "show whether a server is running, and its health",
    .options = options,
    .text = "Finds the 'hekla up' or 'hekla apiserver' that uses the directory and shows its "
            "process, the memory and CPU time it has used, its address and version; then, asked "
            "through the API, jobs and pods by phase, nodes with what pods request and what they "
            "have, and the queues. It shows why a server refuses writes, which nodes are not "
            "Ready, and how many pods run here that the API no longer knows.\n"
            "Only the owner of the directory can ask.",
    .rest = "EXIT STATUS\n"
            "       0  it is running\n"
            "       1  it is running but does not answer, or bad usage\n"
            "       3  no server runs in the directory\n"
            "       4  it is running and refuses writes, because the disk is full or fails, or "
            "because\n"
            "          memory is short\n"
            "\n"
            "EXAMPLES\n"
            "           hekla status\n"
            "           hekla status -o json | jq .jobs\n",
    .run = status_run,
};
