// SPDX-License-Identifier: Apache-2.0
// Connects the parts and keeps their order: the server switches to a new certificate only after its
// CA is published, and starts only after the first list of the cluster's objects.
#include "webhook/manager.h"

#include "base/log.h"
#include "webhook/certs.h"
#include "webhook/conf.h"
#include "webhook/publish.h"
#include "webhook/server.h"
#include "webhook/state.h"

struct webhook_manager {
    struct webhook_manager_opts o;
    struct webhook_state *state;
    struct webhook_certs *certs;
    struct webhook_publish *publish;
    struct webhook_conf *conf;
    struct webhook_server *server; /* NULL: not ready */
    bool change_due;               /* the server does not use the newest certificate yet */
    bool over;                     /* failed and reported */
};

static bool wants(const struct webhook_manager_opts *o, const char *path)
{
    const struct volcano_rule *rule = volcano_rule_find(hk_str(path));

    return !(o->options.disabled & 1U << (rule - volcano_rules));
}

/* ---- serving ---- */

static void begin_serving(struct webhook_manager *m)
{
    const struct cert_pair *pair = &webhook_certs_now(m->certs)->pair;
    const struct webhook_server_opts o = {.loop = m->o.loop,
                                          .clock = m->o.clock,
                                          .addr = m->o.addr,
                                          .port = m->o.tcp_port,
                                          .health = m->o.health,
                                          .health_addr = m->o.health_addr,
                                          .health_port = m->o.health_port,
                                          .cert_pem = pair->cert_pem,
                                          .key_pem = pair->key_pem,
                                          .options = &m->o.options,
                                          .lookup = webhook_state_lookup(m->state),
                                          .api = m->o.port};
    struct hk_err err = {0};

    if (webhook_server_new(&o, &m->server, &err) < 0) {
        m->over = true;
        m->o.failed(m->o.ctx, &err);
        return;
    }
    m->o.ready(m->o.ctx, webhook_server_port(m->server), webhook_server_health_port(m->server));
}

static void change_certificate(struct webhook_manager *m)
{
    const struct cert_pair *pair = &webhook_certs_now(m->certs)->pair;
    struct hk_err err = {0};

    m->change_due = false;
    if (webhook_server_become(m->server, pair->cert_pem, pair->key_pem, &err) < 0) {
        hk_log(HK_LOG_ERROR, "certificate not changed", "err=\"%s\"", err.text);
    } else {
        hk_log(HK_LOG_INFO, "serving with a new certificate", NULL);
    }
}

/* Certificates from files are used at once: whoever writes the files knows when the API server
 * trusts them. Our own certificates are used once their CA is published. */
static void webhook_manager_advance(struct webhook_manager *m)
{
    if (!m->server && !m->over && webhook_certs_now(m->certs)->pair.cert_pem &&
        webhook_state_synced(m->state)) {
        m->change_due = false;
        begin_serving(m);
    }
    if (m->server && m->change_due && (m->o.cert_file || webhook_publish_settled(m->publish))) {
        change_certificate(m);
    }
}

static void on_settled(void *ctx)
{
    struct webhook_manager *m = ctx;

    if (m->certs) {
        webhook_manager_advance(m);
    }
}

static void on_certs(void *ctx)
{
    struct webhook_manager *m = ctx;

    m->change_due = true;
    webhook_publish_set(m->publish, webhook_certs_now(m->certs)->ca_pem, m->o.cert_file != NULL);
    webhook_manager_advance(m);
}

int64_t webhook_manager_run(struct webhook_manager *m)
{
    const int64_t now_ns = m->o.clock->mono_ns(m->o.clock);
    const int64_t state = webhook_state_tick(m->state, now_ns);
    const int64_t publish = webhook_publish_tick(m->publish, now_ns);

    webhook_manager_advance(m);
    return HK_MIN(state, publish);
}

/* ---- open and close ---- */

static int webhook_manager_open_certs_conf(struct webhook_manager *m, struct hk_err *err)
{
    const struct webhook_certs_opts certs = {.loop = m->o.loop,
                                             .clock = m->o.clock,
                                             .cert_file = m->o.cert_file,
                                             .key_file = m->o.key_file,
                                             .ca_file = m->o.ca_file,
                                             .port = m->o.port,
                                             .ns = m->o.ns,
                                             .service = m->o.service,
                                             .host = m->o.host,
                                             .changed = on_certs,
                                             .ctx = m};
    int rc = webhook_certs_new(&certs, &m->certs, err);

    if (rc == 0 && m->o.conf_file) {
        rc = webhook_conf_new(m->o.loop, m->o.conf_file, &m->o.options, &m->conf, err);
    }
    if (rc == 0) {
        webhook_publish_set(m->publish, webhook_certs_now(m->certs)->ca_pem,
                            m->o.cert_file != NULL);
    }
    return rc;
}

int webhook_manager_new(const struct webhook_manager_opts *o, struct webhook_manager **ret,
                        struct hk_err *err)
{
    struct webhook_manager *m = hk_zalloc(sizeof(*m));
    int rc;

    m->o = *o;
    m->state = webhook_state_new(&(struct webhook_state_opts){
        .port = o->port,
        .clock = o->clock,
        .queues = wants(o, "/jobs/validate") || wants(o, "/queues/validate") ||
                  wants(o, "/podgroups/validate"),
        .namespaces = wants(o, "/podgroups/mutate")});
    m->publish = webhook_publish_new(&(struct webhook_publish_opts){.port = o->port,
                                                                    .clock = o->clock,
                                                                    .disabled = o->options.disabled,
                                                                    .settled = on_settled,
                                                                    .ctx = m});
    rc = webhook_manager_open_certs_conf(m, err);
    if (rc < 0) {
        webhook_manager_free(m);
        return rc;
    }
    *ret = m;
    return 0;
}

void webhook_manager_stop(struct webhook_manager *m, int64_t grace_ms)
{
    if (m->server) {
        webhook_server_stop(m->server, grace_ms);
    }
}

void webhook_manager_free(struct webhook_manager *m)
{
    if (!m) {
        return;
    }
    webhook_server_free(m->server);
    webhook_conf_free(m->conf);
    webhook_publish_free(m->publish);
    webhook_certs_free(m->certs);
    webhook_state_free(m->state);
    hk_free(m);
}
