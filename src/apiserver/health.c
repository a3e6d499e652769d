// SPDX-License-Identifier: Apache-2.0
// Endpoints for monitoring: version, liveness, readiness, metrics.
#include "apiserver/server_priv.h"

#include "base/prom.h"

/* The Kubernetes release whose behaviour the server implements. */
#define KUBE_MAJOR "1"
#define KUBE_MINOR "32"

static void answer_version(struct exchange *x)
{
    struct hk_buf body = {0};

    hk_buf_adds(&body, "{\"major\":\"" KUBE_MAJOR "\",\"minor\":\"" KUBE_MINOR
                       "\",\"gitVersion\":\"v" KUBE_MAJOR "." KUBE_MINOR ".0+hekla." HEKLA_VERSION
                       "\",\"gitCommit\":\"\",\"gitTreeState\":"
                       "\"clean\",\"buildDate\":\"1970-01-01T00:00:00Z\",\"goVersion\":\"none\","
                       "\"compiler\":\"c17\",\"platform\":\"linux/amd64\"}");
    answer_json(x, 200, &body);
}

/* ---- checks ---- */

static bool check_ping(const struct server *s)
{
    return true;
}

static bool check_shutdown(const struct server *s)
{
    return !s->stopping;
}

/* Reads work without the disk, but clients with a choice should use another server. */
static bool check_store(const struct server *s)
{
    return !store_failure(s->opts.store);
}

static const struct {
    const char *name;
    bool (*ok)(const struct server *s);
    bool only_ready; /* a server that shuts down is alive, but not ready */
} checks[] = {
    {"ping", check_ping, false},
    {"shutdown", check_shutdown, true},
    {"store", check_store, true},
};

static bool excluded(const struct exchange *x, const char *name)
{
    for (uint32_t k = 0; k < x->query.len; k++) {
        if (hk_str_is(x->query.at[k].key, "exclude") && hk_str_is(x->query.at[k].value, name)) {
            return true;
        }
    }
    return false;
}

/* Runs all checks or the named one; false if no check has that name. */
static bool answer_checks(struct exchange *x, struct hk_str probe, struct hk_str only)
{
    const bool ready = hk_str_is(probe, "readyz");
    struct hk_buf report = {0};
    bool ok = true, found = false;

    for (uint32_t k = 0; k < HK_LEN(checks); k++) {
        if ((checks[k].only_ready && !ready) || (only.n > 0 && !hk_str_is(only, checks[k].name))) {
            continue;
        }
        found = true;
        const bool good = excluded(x, checks[k].name) || checks[k].ok(x->server);
        hk_buf_addf(&report, good ? "[+]%s ok\n" : "[-]%s failed\n", checks[k].name);
        ok &= good;
    }
    if (!found) {
        return false;
    }
    if (ok && !query_has(&x->query, "verbose")) {
        hk_buf_clear(&report);
        hk_buf_adds(&report, "ok");
    } else {
        hk_buf_addf(&report, "%.*s check %s\n", HK_FMT(probe), ok ? "passed" : "failed");
    }
    answer_text(x, ok ? 200 : 500, "text/plain; charset=utf-8", &report);
    return true;
}

bool health_answer(struct exchange *x)
{
    struct hk_str rest = x->route.path, probe;

    if (hk_str_is(x->route.path, "/version")) {
        answer_version(x);
        return true;
    }
    hk_str_cut(&rest, '/', &probe);
    hk_str_cut(&rest, '/', &probe);
    if (hk_str_is(probe, "healthz") || hk_str_is(probe, "livez") || hk_str_is(probe, "readyz")) {
        return answer_checks(x, probe, rest.s ? rest : HK_STR(""));
    }
    return false;
}

/* ---- metrics ---- */

/* The reason why writes are refused; nothing while all are accepted. */
static void health_write_failure_metric(const struct hk_err *why, struct hk_buf *out)
{
    if (why) {
        hk_prom_head(out, "hekla_store_failure_info", "gauge",
                     "The reason why writes are refused.");
        hk_buf_adds(out, "hekla_store_failure_info");
        hk_prom_label(out, "{", "reason", hk_str(why->text));
        hk_buf_adds(out, "} 1\n");
    }
}

static void write_requests(const struct counters *c, struct hk_buf *out)
{
    hk_buf_adds(out,
                "# HELP hekla_apiserver_requests_total Requests answered, by class of status.\n"
                "# TYPE hekla_apiserver_requests_total counter\n");
    for (uint32_t k = 2; k < HK_LEN(c->requests); k++) {
        hk_buf_addf(out, "hekla_apiserver_requests_total{code=\"%uxx\"} %llu\n", k,
                    (unsigned long long)c->requests[k]);
    }
}

static void write_objects(const struct server *s, struct hk_buf *out)
{
    hk_buf_adds(out, "# HELP hekla_store_objects Objects stored, by resource.\n"
                     "# TYPE hekla_store_objects gauge\n");
    for (uint32_t k = 0; k < rest_kinds(s->opts.rest); k++) {
        const struct rest_kind *row = rest_kind_at(s->opts.rest, k);
        if (row->storage && row->served) {
            hk_buf_addf(out, "hekla_store_objects{resource=\"%s%s%s\"} %u\n", row->kind->plural,
                        row->kind->group[0] != '\0' ? "." : "", row->kind->group,
                        store_count(s->opts.store, row->res));
        }
    }
}

static void write_memory(const struct hk_budget *b, struct hk_buf *out)
{
    hk_prom_single(out, "hekla_memory_limit_bytes", "gauge",
                   "The limit of memory that will be reached first.", (double)hk_budget_limit(b));
    hk_prom_single(out, "hekla_memory_used_bytes", "gauge",
                   "Memory used, counted against hekla_memory_limit_bytes.",
                   (double)hk_budget_used(b));
    hk_prom_single(out, "hekla_memory_short", "gauge",
                   "1 if memory is short: objects can be neither created nor enlarged.",
                   hk_budget_room(b) != HK_ROOM_ENOUGH);
}

static bool health_store_is_full(const struct server *s)
{
    const struct hk_err *why = store_disk_failure(s->opts.store);

    return why && why->code == HK_EFULL;
}

void health_metrics(struct exchange *x)
{
    const struct server *s = x->server;
    const struct counters *c = &s->counters;
    struct hk_clock *clock = s->opts.clock;
    struct hk_buf out = {0};

    write_requests(c, &out);
    hk_prom_single(&out, "hekla_apiserver_requests_in_flight", "gauge",
                   "Requests not yet answered.", (double)c->in_flight);
    hk_prom_single(&out, "hekla_apiserver_watches", "gauge", "Open watch streams.",
                   (double)c->watches);
    hk_prom_single(&out, "hekla_apiserver_watches_total", "counter",
                   "Watch streams opened since the start.", (double)c->requests[0]);
    hk_prom_single(&out, "hekla_apiserver_watch_events_total", "counter",
                   "Events written to watch streams.", (double)c->events_sent);
    hk_prom_single(&out, "hekla_apiserver_list_slices_total", "counter",
                   "Parts in which long lists were written.", (double)c->list_slices);
    hk_prom_single(&out, "hekla_apiserver_list_slice_bytes_max", "gauge",
                   "Largest number of bytes processed in one part of a long list.",
                   (double)c->list_slice_bytes_max);
    hk_prom_single(&out, "hekla_apiserver_connections", "gauge", "Open connections.",
                   (double)http_server_connections(s->http));
    hk_prom_single(&out, "hekla_apiserver_body_bytes", "gauge",
                   "Bytes of request bodies that are not complete yet.",
                   (double)http_server_bodies(s->http));
    hk_prom_single(&out, "hekla_apiserver_unread_bytes", "gauge",
                   "Bytes of answers that clients have not read yet.",
                   (double)http_server_unread(s->http));
    hk_prom_single(&out, "hekla_apiserver_uptime_seconds", "gauge",
                   "Seconds since the server started.",
                   (double)(clock->mono_ns(clock) - s->started_ns) / 1e9);
    hk_prom_single(&out, "hekla_store_writable", "gauge", "1 if writes are accepted.",
                   store_failure(s->opts.store) ? 0 : 1);
    health_write_failure_metric(store_failure(s->opts.store), &out);
    hk_prom_single(&out, "hekla_store_full", "gauge",
                   "1 if the disk is full: only deletions are accepted.",
                   health_store_is_full(s) ? 1 : 0);
    write_memory(s->opts.budget, &out);
    hk_prom_single(&out, "hekla_store_revision", "counter",
                   "Revision of the newest published write.", (double)store_rv(s->opts.store));
    hk_prom_single(&out, "hekla_store_commits_total", "counter",
                   "Commits to the disk; one commit can contain many writes.",
                   (double)store_commits(s->opts.store));
    hk_prom_single(&out, "hekla_store_oldest_revision", "counter",
                   "Oldest revision from which a watch can start.",
                   (double)store_oldest_rv(s->opts.store));
    write_objects(s, &out);
    if (s->opts.metrics) {
        s->opts.metrics->write(s->opts.metrics->ctx, &out);
    }
    answer_text(x, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}
