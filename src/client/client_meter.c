// SPDX-License-Identifier: Apache-2.0
// Metrics of the client: requests by method and code, retries, duration and waiting time of calls,
// and their sizes. Names, labels and buckets are those of Kubernetes, so that its dashboards work.
#include "client/client_priv.h"

static const char *const methods[METER_METHODS] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

static unsigned method_of(const struct call *k)
{
    unsigned i = 0;

    while (i + 1 < METER_METHODS && strcmp(methods[i], k->target.method) != 0) {
        i++;
    }
    return i;
}

/* ---- counting ---- */

void meter_init(struct client *c)
{
    static const double seconds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
    static const double bytes[] = {64,    256,    512,     1024,    4096,    16384,
                                   65536, 262144, 1048576, 4194304, 16777216};
    const char *host = strstr(c->config.server, "://") + 3;

    c->meter.host = hk_strndup(host, strcspn(host, "/"));
    for (unsigned i = 0; i < METER_METHODS; i++) {
        hk_hist_init_bounds(&c->meter.of[i].took_s, seconds, HK_LEN(seconds));
        hk_hist_init_bounds(&c->meter.of[i].waited_s, seconds, HK_LEN(seconds));
        hk_hist_init_bounds(&c->meter.of[i].sent_bytes, bytes, HK_LEN(bytes));
        hk_hist_init_bounds(&c->meter.of[i].got_bytes, bytes, HK_LEN(bytes));
    }
}

void meter_fini(struct client *c)
{
    hk_free(c->meter.host);
    hk_vec_fini(&c->meter.counts);
}

static double seconds_since(const struct client *c, int64_t from_ns)
{
    return (double)(net_loop_now_ns(c->o.loop) - from_ns) / 1e9;
}

void meter_turn(const struct call *k)
{
    hk_hist_add(&k->c->meter.of[method_of(k)].waited_s, seconds_since(k->c, k->queued_ns));
}

static struct meter_count *client_meter_find_count(const struct call *k)
{
    struct client_meter *x = &k->c->meter;
    const unsigned method = method_of(k);

    for (uint32_t i = 0; i < x->counts.len; i++) {
        if (x->counts.at[i].method == method && x->counts.at[i].http == k->http) {
            return &x->counts.at[i];
        }
    }
    hk_vec_push(&x->counts, (struct meter_count){.method = method, .http = k->http});
    return &x->counts.at[x->counts.len - 1];
}

void meter_answer(const struct call *k)
{
    client_meter_find_count(k)->answers++;
}

void meter_retry(const struct call *k)
{
    client_meter_find_count(k)->retries++;
}

void meter_end(const struct call *k)
{
    struct client_meter *x = &k->c->meter;
    const unsigned method = method_of(k);

    hk_hist_add(&x->of[method].took_s, seconds_since(k->c, k->asked_ns));
    hk_hist_add(&x->of[method].sent_bytes, (double)k->target.body.len);
    if (k->http != 0) {
        hk_hist_add(&x->of[method].got_bytes, (double)k->answer.len);
    }
}

/* ---- writing ---- */

static void client_meter_write_counts(const struct client_meter *x, const char *name,
                                      const char *label, bool retries, const char *help,
                                      struct hk_buf *out)
{
    hk_prom_head(out, name, "counter", help);
    for (uint32_t i = 0; i < x->counts.len; i++) {
        const struct meter_count *n = &x->counts.at[i];
        const uint64_t value = retries ? n->retries : n->answers;
        char code[16] = "<error>";

        if (value == 0) {
            continue;
        }
        if (n->http != 0) {
            snprintf(code, sizeof(code), "%d", n->http);
        }
        hk_buf_adds(out, name);
        hk_prom_label(out, "{", "code", hk_str(code));
        hk_prom_label(out, ",", "host", hk_str(x->host));
        hk_prom_label(out, ",", label, hk_str(methods[n->method]));
        hk_buf_addf(out, "} %llu\n", (unsigned long long)value);
    }
}

/* One histogram for each method in use; offset: of the histogram in client_meter.of. */
static void write_hists(const struct client_meter *x, const char *name, size_t offset,
                        const char *help, struct hk_buf *out)
{
    hk_prom_head(out, name, "histogram", help);
    for (unsigned i = 0; i < METER_METHODS; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf labels = {0};
        const struct hk_hist *h = (const void *)((const char *)&x->of[i] + offset);

        if (hk_hist_count(h) > 0) {
            hk_prom_label(&labels, "", "host", hk_str(x->host));
            hk_prom_label(&labels, ",", "verb", hk_str(methods[i]));
            hk_prom_hist(out, name, labels.data, h);
        }
    }
}

void client_write_metrics(const struct client *c, struct hk_buf *out)
{
    const struct client_meter *x = &c->meter;

#define AT(member) (offsetof(struct client_meter, of[0].member) - offsetof(struct client_meter, of))
    client_meter_write_counts(x, "rest_client_requests_total", "method", false,
                              "HTTP requests to the API server, by code, method and host.", out);
    client_meter_write_counts(x, "rest_client_request_retries_total", "verb", true,
                              "Requests that were sent again, by code, verb and host.", out);
    write_hists(x, "rest_client_request_duration_seconds", AT(took_s),
                "Seconds from a call to its result, by verb and host, without watches.", out);
    write_hists(x, "rest_client_rate_limiter_duration_seconds", AT(waited_s),
                "Seconds that requests waited for the client-side rate limit, by verb and host.",
                out);
    write_hists(x, "rest_client_request_size_bytes", AT(sent_bytes),
                "Bytes of request bodies, by verb and host.", out);
    write_hists(x, "rest_client_response_size_bytes", AT(got_bytes),
                "Bytes of answer bodies, by verb and host, without watches.", out);
#undef AT
}
