// SPDX-License-Identifier: Apache-2.0
// How a server is, on one page: the process, its nodes, the jobs and the queues.
#include "cli/show_priv.h"

#include "codec/quantity.h"
#include "codec/timefmt.h"

enum { MAX_NODES = 20 };

/* Bytes as people say them: "28.4 MiB". */
static void write_bytes(int64_t bytes, struct hk_buf *out)
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

static void write_row(const char *head, struct hk_str text, struct hk_buf *out)
{
    hk_buf_addf(out, "%-11s%.*s\n", head, HK_FMT(text));
}

static void write_process(const struct json *s, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf process = {0}, since = {0};

    hk_buf_addf(&process, "%lld", (long long)show_int(s, "pid"));
    if (json_get(s, "memoryBytes")) {
        hk_buf_adds(&process, ", ");
        write_bytes(show_int(s, "memoryBytes"), &process);
        hk_buf_addf(&process, " of memory, %.1f s of CPU", (double)show_int(s, "cpuMillis") / 1000);
    }
    hk_buf_addf(&since, "%.*s, ", HK_FMT(show_str(s, "since")));
    show_age(json_get(s, "since"), now_ns, &since);
    hk_buf_adds(&since, " ago");
    hk_buf_addf(out, "hekla %.*s %.*s is running\n", HK_FMT(show_str(s, "verb")),
                HK_FMT(show_str(s, "version")));
    write_row("Directory", show_str(s, "directory"), out);
    write_row("URL", show_str(s, "url"), out);
    write_row("Process", hk_buf_str(&process), out);
    write_row("Since", hk_buf_str(&since), out);
}

/* "2 Running, 1 Pending" */
static void write_counts(const char *head, const struct json *counts, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (uint32_t i = 0; json_is(counts, JSON_OBJECT) && i < counts->len; i++) {
        const struct json_member *m = &counts->members[i];
        hk_buf_addf(&text, "%s%lld %.*s", i > 0 ? ", " : "", (long long)json_int(&m->value, 0),
                    HK_FMT(m->key));
    }
    write_row(head, text.len > 0 ? hk_buf_str(&text) : HK_STR("none"), out);
}

static void write_amount(const struct json *list, const char *name, struct hk_buf *out)
{
    const struct hk_str text = json_str(json_get(list, name), HK_STR("0"));
    struct quantity q;

    if (strcmp(name, "memory") == 0 && quantity_parse(text, &q, NULL) == 0) {
        write_bytes(quantity_value(q), out);
    } else {
        hk_buf_addstr(out, text);
    }
}

/* "used/there" */
static void add_share(struct show_table *t, const struct json *used, const struct json *has,
                      const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf cell = {0};

    write_amount(used, name, &cell);
    hk_buf_addc(&cell, '/');
    write_amount(has, name, &cell);
    show_table_add(t, hk_buf_str(&cell));
}

static void add_node(struct show_table *t, const struct json *node)
{
    static const char *const columns[] = {"cpu", "memory", "pods"};

    show_table_add(t, show_str(node, "name"));
    show_table_add(t, show_str(node, "status"));
    for (size_t k = 0; k < HK_LEN(columns); k++) {
        add_share(t, json_get(node, "used"), json_get(node, "allocatable"), columns[k]);
    }
}

static void write_nodes(const struct json *s, struct hk_buf *out)
{
    struct show_table t = {.heads = {"Node", "Status", "CPU", "Memory", "Pods"},
                           .ncolumns = 5,
                           .head_room = 2,
                           .room = 2};
    const struct json *nodes = show_list(s, "nodes"), *total = json_get(s, "total");

    if (nodes->len == 0) {
        return;
    }
    for (uint32_t i = 0; i < nodes->len && i < MAX_NODES; i++) {
        add_node(&t, json_item(nodes, i));
    }
    if (nodes->len > 1) {
        add_node(&t, total);
    }
    hk_buf_addc(out, '\n');
    show_table_write(&t, out);
    show_table_fini(&t);
    if (nodes->len > MAX_NODES) {
        hk_buf_addf(out, "(the first %d of %u nodes)\n", MAX_NODES, nodes->len);
    }
}

static void write_queues(const struct json *s, struct hk_buf *out)
{
    struct show_table t = {
        .heads = {"Queue", "State", "Weight", "Jobs"}, .ncolumns = 4, .head_room = 2, .room = 2};
    const struct json *queues = show_list(s, "queues");

    for (uint32_t i = 0; i < queues->len; i++) {
        const struct json *q = json_item(queues, i);
        HK_AUTO(hk_buf_fini) struct hk_buf number = {0};

        show_table_add(&t, show_str(q, "name"));
        show_table_add(&t, show_str(q, "state"));
        hk_buf_addf(&number, "%lld", (long long)show_int(q, "weight"));
        show_table_add(&t, hk_buf_str(&number));
        hk_buf_clear(&number);
        hk_buf_addf(&number, "%lld", (long long)show_int(q, "jobs"));
        show_table_add(&t, hk_buf_str(&number));
    }
    if (t.len > 0) {
        hk_buf_addc(out, '\n');
        show_table_write(&t, out);
    }
    show_table_fini(&t);
}

void show_server(const struct json *status, int64_t now_ns, struct hk_buf *out)
{
    if (!json_bool(json_get(status, "running"), false)) {
        hk_buf_addf(out, "no server runs in '%.*s'\n", HK_FMT(show_str(status, "directory")));
        return;
    }
    if (show_str(status, "url").n == 0) {
        hk_buf_addf(out, "the server in '%.*s', process %lld, is starting\n",
                    HK_FMT(show_str(status, "directory")), (long long)show_int(status, "pid"));
        return;
    }
    write_process(status, now_ns, out);
    if (json_get(status, "error")) {
        write_row("Error", show_str(status, "error"), out);
        return;
    }
    write_counts("Jobs", json_get(status, "jobs"), out);
    write_counts("Pods", json_get(status, "pods"), out);
    write_nodes(status, out);
    write_queues(status, out);
}
