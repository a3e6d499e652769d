// SPDX-License-Identifier: Apache-2.0
// The page of `hekla status`: the process, its nodes, jobs and queues.
#include "cli/show_priv.h"

#include "codec/quantity.h"
#include "codec/timefmt.h"

enum { MAX_NODES = 20, MAX_LOST = 5 };

/* Human-readable bytes: "28.4 MiB". */
static void show_server_write_bytes(int64_t bytes, struct hk_buf *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    size_t k = 0;

    while (n >= 1024 && k + 1 < HK_LEN(units)) {
        n /= 1024;
        k++;
    }
    hk_buf_addf(out, k == 0 ? "%.0f %s" : "%.1f %s", n, units[k]);
}

static void show_server_write_row(const char *head, struct hk_str text, struct hk_buf *out)
{
    hk_buf_addf(out, "%-11s%.*s\n", head, HK_FMT(text));
}

static void write_process(const struct json *s, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf process = {0}, since = {0};

    hk_buf_addf(&process, "%lld", (long long)json_int_at(s, "pid"));
    if (json_get(s, "memoryBytes")) {
        hk_buf_adds(&process, ", ");
        show_server_write_bytes(json_int_at(s, "memoryBytes"), &process);
        hk_buf_addf(&process, " of memory, %.1f s of CPU",
                    (double)json_int_at(s, "cpuMillis") / 1000);
    }
    hk_buf_addf(&since, "%.*s, ", HK_FMT(json_str_field(s, "since")));
    show_age(json_get(s, "since"), now_ns, &since);
    hk_buf_adds(&since, " ago");
    hk_buf_addf(out, "hekla %.*s %.*s is running\n", HK_FMT(json_str_field(s, "verb")),
                HK_FMT(json_str_field(s, "version")));
    show_server_write_row("Directory", json_str_field(s, "directory"), out);
    show_server_write_row("URL", json_str_field(s, "url"), out);
    show_server_write_row("Process", hk_buf_str(&process), out);
    show_server_write_row("Since", hk_buf_str(&since), out);
}

/* Pods that the store has lost: the user has to decide about them. */
static void write_unknown(const struct json *uids, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (!json_is(uids, JSON_ARRAY) || uids->len == 0) {
        return;
    }
    hk_buf_addf(&text,
                "%u pod%s here that the API does not know since it has gone back in time "
                "('hekla up --end-unknown-pods' ends %s)",
                uids->len, uids->len == 1 ? " runs" : "s run", uids->len == 1 ? "it" : "them");
    show_server_write_row("Unknown", hk_buf_str(&text), out);
}

/* "2 Running, 1 Pending" */
static void show_server_write_counts(const char *head, const struct json *counts,
                                     struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (uint32_t i = 0; json_is(counts, JSON_OBJECT) && i < counts->len; i++) {
        const struct json_member *m = &counts->members[i];
        hk_buf_addf(&text, "%s%lld %.*s", i > 0 ? ", " : "", (long long)json_int(&m->value, 0),
                    HK_FMT(m->key));
    }
    show_server_write_row(head, text.len > 0 ? hk_buf_str(&text) : HK_STR("none"), out);
}

static void show_server_write_amount(const struct json *list, const char *name, struct hk_buf *out)
{
    const struct hk_str text = json_str(json_get(list, name), HK_STR("0"));
    struct quantity q;

    if (strcmp(name, "memory") == 0 && quantity_parse(text, &q, NULL) == 0) {
        show_server_write_bytes(quantity_value(q), out);
    } else {
        hk_buf_addstr(out, text);
    }
}

/* "used/capacity" */
static void show_server_add_share_cell(struct show_table *t, const struct json *used,
                                       const struct json *has, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf cell = {0};

    show_server_write_amount(used, name, &cell);
    hk_buf_addc(&cell, '/');
    show_server_write_amount(has, name, &cell);
    show_table_add(t, hk_buf_str(&cell));
}

static void show_server_add_node_row(struct show_table *t, const struct json *node)
{
    static const char *const columns[] = {"cpu", "memory", "pods"};

    show_table_add(t, json_str_field(node, "name"));
    show_table_add(t, json_str_field(node, "status"));
    for (size_t k = 0; k < HK_LEN(columns); k++) {
        show_server_add_share_cell(t, json_get(node, "used"), json_get(node, "allocatable"),
                                   columns[k]);
    }
}

static void write_nodes(const struct json *s, struct hk_buf *out)
{
    struct show_table t = {.heads = {"Node", "Status", "CPU", "Memory", "Pods"},
                           .ncolumns = 5,
                           .head_room = 2,
                           .room = 2};
    const struct json *nodes = json_list_at(s, "nodes"), *total = json_get(s, "total");

    if (nodes->len == 0) {
        return;
    }
    for (uint32_t i = 0; i < nodes->len && i < MAX_NODES; i++) {
        show_server_add_node_row(&t, json_item(nodes, i));
    }
    if (nodes->len > 1) {
        show_server_add_node_row(&t, total);
    }
    hk_buf_addc(out, '\n');
    show_table_write(&t, out);
    show_table_fini(&t);
    if (nodes->len > MAX_NODES) {
        hk_buf_addf(out, "(the first %d of %u nodes)\n", MAX_NODES, nodes->len);
    }
}

/* Names the nodes that are not ready: the state of their pods may be outdated. */
static void write_lost(const struct json *s, struct hk_buf *out)
{
    const struct json *nodes = json_list_at(s, "nodes");
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < nodes->len; i++) {
        const struct json *node = json_item(nodes, i);
        const struct hk_str since = json_str_field(node, "since");

        if (!hk_str_starts(json_str_field(node, "status"), "NotReady") || n++ >= MAX_LOST) {
            continue;
        }
        hk_buf_addf(&names, "%s%.*s", names.len > 0 ? ", " : "",
                    HK_FMT(json_str_field(node, "name")));
        if (since.n > 0) {
            hk_buf_addf(&names, " since %.*s", HK_FMT(since));
        }
    }
    if (n > 0) {
        hk_buf_addf(out, "\n%u node%s not ready: %s%s\n", n, n == 1 ? " is" : "s are", names.data,
                    n > MAX_LOST ? ", ..." : "");
    }
}

static void show_server_write_queues(const struct json *s, struct hk_buf *out)
{
    struct show_table t = {
        .heads = {"Queue", "State", "Weight", "Jobs"}, .ncolumns = 4, .head_room = 2, .room = 2};
    const struct json *queues = json_list_at(s, "queues");

    for (uint32_t i = 0; i < queues->len; i++) {
        const struct json *q = json_item(queues, i);
        HK_AUTO(hk_buf_fini) struct hk_buf number = {0};

        show_table_add(&t, json_str_field(q, "name"));
        show_table_add(&t, json_str_field(q, "state"));
        hk_buf_addf(&number, "%lld", (long long)json_int_at(q, "weight"));
        show_table_add(&t, hk_buf_str(&number));
        hk_buf_clear(&number);
        hk_buf_addf(&number, "%lld", (long long)json_int_at(q, "jobs"));
        show_table_add(&t, hk_buf_str(&number));
    }
    if (t.len > 0) {
        hk_buf_addc(out, '\n');
        show_table_write(&t, out);
    }
    show_table_fini(&t);
}

static void write_skipped(const struct json *status, struct hk_buf *out)
{
    const struct json *list = json_get(status, "skipped");

    for (uint32_t i = 0; json_item(list, i); i++) {
        show_server_write_row("Skipped", json_str(json_item(list, i), HK_STR("")), out);
    }
}

/* Why the server accepts no writes. */
static void write_refusal(struct hk_str why, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (why.n > 0) {
        hk_buf_addf(&text, "refused: %.*s", HK_FMT(why));
        show_server_write_row("Writes", hk_buf_str(&text), out);
    }
}

void show_server(const struct json *status, int64_t now_ns, struct hk_buf *out)
{
    if (!json_bool(json_get(status, "running"), false)) {
        hk_buf_addf(out, "no server runs in '%.*s'\n", HK_FMT(json_str_field(status, "directory")));
        return;
    }
    if (json_str_field(status, "url").n == 0) {
        hk_buf_addf(out, "the server in '%.*s', process %lld, is starting\n",
                    HK_FMT(json_str_field(status, "directory")),
                    (long long)json_int_at(status, "pid"));
        return;
    }
    write_process(status, now_ns, out);
    write_skipped(status, out);
    write_unknown(json_get(status, "unknownPods"), out);
    if (json_get(status, "error")) {
        show_server_write_row("Error", json_str_field(status, "error"), out);
        return;
    }
    write_refusal(json_str_field(status, "writesRefused"), out);
    show_server_write_counts("Jobs", json_get(status, "jobs"), out);
    show_server_write_counts("Pods", json_get(status, "pods"), out);
    write_nodes(status, out);
    write_lost(status, out);
    show_server_write_queues(status, out);
}
