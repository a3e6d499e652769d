// SPDX-License-Identifier: Apache-2.0
// Whether another API server is there: its Service must lead somewhere, and it must answer for its
// group version. The answer is also what discovery shows of it. A server that fails is asked again
// after a growing while. Upstream: kube-aggregator's remote_available_controller.go.
#include "apiserver/aggregate_priv.h"

#include "base/log.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)

enum {
    RECHECK_S = 30,
    TIMEOUT_MS = 5000,
    MAX_BYTES = 1 << 20,
    MAX_FAILURES = 5, /* the delay doubles so often: 1 s to 30 s */
};

/* ---- the condition ---- */

static const struct json *find_condition(const struct json *object)
{
    const struct json *list = json_list_at(object, "status.conditions"), *one;

    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        if (hk_str_is(json_str_field(one, "type"), "Available")) {
            return one;
        }
    }
    return NULL;
}

/* The conditions of the object, with ours in place of the old one. */
static struct json make_conditions(const struct json *object, struct json ours,
                                   struct hk_arena *mem)
{
    const struct json *list = json_list_at(object, "status.conditions"), *one;
    struct json all = json_make_array();

    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        if (!hk_str_is(json_str_field(one, "type"), "Available")) {
            json_push(&all, mem, *one);
        }
    }
    json_push(&all, mem, ours);
    return all;
}

void aggregate_set_condition(const struct aggregate *a, const struct json *object, bool available,
                             const char *reason, const char *message)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const char *status = available ? "True" : "False";
    const struct json *old = find_condition(object);
    const bool turned = !hk_str_is(json_str_field(old, "status"), status);
    struct json c = json_make_object(), body = json_make_object();

    if (!turned && hk_str_is(json_str_field(old, "reason"), reason) &&
        hk_str_is(json_str_field(old, "message"), message)) {
        return;
    }
    json_set_cstr(&c, &mem, "type", "Available");
    json_set_cstr(&c, &mem, "status", status);
    if (turned) {
        json_set_time(&c, &mem, "lastTransitionTime", a->o.clock->wall_ns(a->o.clock));
    } else {
        json_set_if(&c, &mem, "lastTransitionTime", json_get(old, "lastTransitionTime"));
    }
    json_set_cstr(&c, &mem, "reason", reason);
    json_set_cstr(&c, &mem, "message", message);
    json_set(json_set_object(&body, &mem, "status"), &mem, "conditions",
             make_conditions(object, c, &mem));
    port_submit(
        rest_port(a->o.rest),
        &(struct port_request){.verb = PORT_PATCH,
                               .patch = PORT_PATCH_MERGE,
                               .kind = rest_kind_find(a->o.rest, HK_STR("apiregistration.k8s.io"),
                                                      HK_STR("v1"), HK_STR("apiservices"))
                                           ->kind,
                               .name = json_str_at(object, "metadata.name"),
                               .subresource = "status",
                               .body = &body},
        (struct port_sink){0});
}

/* ---- verdicts ---- */

static void log_verdict(const struct aggregate_service *s, bool available, const char *reason,
                        const char *message)
{
    if (available) {
        hk_log(HK_LOG_INFO, "another API server answers", "apiservice=%s", s->name);
    } else if (s->available || s->failures == 0) {
        hk_log(HK_LOG_WARN, "another API server is not available",
               "apiservice=%s reason=%s message=\"%s\"", s->name, reason, message);
    }
}

static void aggregate_conclude(struct aggregate_service *s, bool available, const char *reason,
                               const char *message)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct aggregate *a = s->a;
    const struct json *object = aggregate_read(a, a->res, HK_STR(""), hk_str(s->name), &mem);
    int64_t delay_s = RECHECK_S;

    if (available != s->available || !available) {
        log_verdict(s, available, reason, message);
    }
    s->available = available;
    s->trusting = false;
    if (available) {
        s->failures = 0;
    } else {
        delay_s = HK_MIN((int64_t)1 << s->failures, (int64_t)RECHECK_S);
        s->failures = HK_MIN(s->failures + 1, (uint32_t)MAX_FAILURES);
    }
    s->due_ns = net_loop_now_ns(a->o.loop) + delay_s * SECOND_NS;
    if (object) {
        aggregate_set_condition(a, object, available, reason, message);
    }
}

/* Keeps what the server says about its resources; false: that is no list of them. */
static bool keep_resources(struct aggregate_service *s, struct hk_str body)
{
    struct hk_arena mem = {0};
    struct json doc;

    if (json_parse(hk_arena_str(&mem, body), 0, &mem, &doc, NULL) < 0 ||
        !json_is(json_get(&doc, "resources"), JSON_ARRAY)) {
        hk_arena_fini(&mem);
        return false;
    }
    hk_arena_fini(&s->mem);
    s->mem = mem;
    s->resources = *json_get(&doc, "resources");
    s->has_resources = true;
    return true;
}

/* ---- asking ---- */

/* As upstream, a server with a wrong certificate counts as available; its requests then fail with
 * the reason. */
static void on_fetched(void *ctx, int status, struct hk_str body, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct aggregate_service *s = ctx;
    const bool fine = status >= 200 && status <= 299;

    s->fetch_over = true;
    if (fine) {
        s->stale = s->trusting || !keep_resources(s, body);
        aggregate_conclude(s, true, "Passed", "all checks passed");
        return;
    }
    if (status == 0 && !s->trusting && !s->insecure && hk_str_starts(hk_str(why), "tls: ")) {
        s->trusting = true;
        s->due_ns = 0;
        aggregate_wake(s->a);
        return;
    }
    s->stale = true;
    hk_buf_addf(&text,
                "failing or missing response from https://%s:%lld/apis/%s/%s: ", s->server_name,
                (long long)s->port, s->group, s->version);
    if (why) {
        hk_buf_addf(&text, "Get \"https://%s:%lld/apis/%s/%s\": %s", s->server_name,
                    (long long)s->port, s->group, s->version, why);
    } else {
        hk_buf_addf(&text, "bad status from https://%s:%lld/apis/%s/%s: %d", s->server_name,
                    (long long)s->port, s->group, s->version, status);
    }
    aggregate_conclude(s, false, "FailedDiscoveryCheck", text.data);
}

static void aggregate_fetch(struct aggregate_service *s, const struct aggregate_target *to,
                            struct hk_arena *mem)
{
    static const struct http_header who[] = {
        {HK_STR("X-Remote-User"), HK_STR("system:kube-aggregator")},
        {HK_STR("X-Remote-Group"), HK_STR("system:masters")}};
    const struct cert_pair *client = s->a->o.client;

    s->fetch_over = false;
    s->fetch = fetch_new(
        s->a->o.loop,
        &(struct fetch_opts){.host = to->host,
                             .port = to->port,
                             .cert_pem = client->cert_pem,
                             .key_pem = client->key_pem,
                             .server_name = s->server_name,
                             .ca_pem = s->ca_pem,
                             .insecure = s->insecure || s->trusting,
                             .path = hk_arena_printf(mem, "/apis/%s/%s", s->group, s->version),
                             .headers = who,
                             .nheaders = HK_LEN(who),
                             .max_bytes = MAX_BYTES,
                             .timeout_ms = TIMEOUT_MS,
                             .done = on_fetched,
                             .ctx = s});
}

int64_t aggregate_check(struct aggregate_service *s)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct aggregate_target to;

    if (s->fetch && !s->fetch_over) {
        return INT64_MAX;
    }
    fetch_free(s->fetch);
    s->fetch = NULL;
    if (net_loop_now_ns(s->a->o.loop) < s->due_ns) {
        return s->due_ns;
    }
    s->due_ns = INT64_MAX;
    aggregate_find_target(s, &mem, &to);
    s->lack = to.reason;
    if (to.reason) {
        s->stale = true;
        aggregate_conclude(s, false, to.reason, to.message);
        return s->due_ns;
    }
    aggregate_fetch(s, &to, &mem);
    return INT64_MAX;
}

void aggregate_recheck(struct aggregate_service *s)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct aggregate_target to;

    aggregate_find_target(s, &mem, &to);
    if (strcmp(s->lack ? s->lack : "", to.reason ? to.reason : "") != 0) {
        s->due_ns = 0;
    }
}
