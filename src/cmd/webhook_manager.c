// SPDX-License-Identifier: Apache-2.0
// hekla webhook-manager: serves Volcano's admission rules to any API server, in place of
// vc-webhook-manager.
#include "daemon/daemon.h"
#include "daemon/gates.h"
#include "webhook/manager.h"

#define COMPONENT "vc-webhook-manager"
#define HEALTHZ_ADDRESS ":11251"
#define SERVICE "volcano-admission-service"
#define ENABLED                                                                                    \
    "/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,/queues/mutate,"    \
    "/queues/validate"

enum { MAX_DEPTH = 1000 };

struct wm_opts {
    struct daemon_opts daemon;
    struct gates gates;
    const char *listen, *conf, *ns, *service, *url, *enabled;
    const char *cert_file, *key_file, *ca_file;
    bool health, refuse_busy_queues, protect_root_queue;
    char health_host[64];
    uint16_t health_port;
    int64_t port, grace_ns, max_queue_depth, max_replicas;
    struct option_list scheduler_names; /* NULL-terminated after parsing */
};

/* ---- options ---- */

static int webhook_parse_port(void *at, const struct option_row *row, const char *value,
                              struct hk_err *err)
{
    int64_t port;

    if (!hk_str_int(hk_str(value), &port) || port < 0 || port > UINT16_MAX) {
        return hk_fail(err, HK_EINVAL,
                       "Configured port is invalid: the port should be in the range of 1 and "
                       "65535");
    }
    *(int64_t *)at = port;
    return 0;
}

static int webhook_parse_health(void *at, const struct option_row *row, const char *value,
                                struct hk_err *err)
{
    struct wm_opts *o = at;

    if (daemon_split_address(value, o->health_host, sizeof(o->health_host), &o->health_port) < 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want ADDR:PORT", row->name, value);
    }
    return 0;
}

static const struct option_row options[] = {
    DAEMON_OPTIONS_API(struct wm_opts, daemon, "50", "100"),
    ROW_TEXT(0, "enabled-admission", "LIST", struct wm_opts, enabled, ENABLED,
             "The reviews to answer, by path. Further ones are /podgroups/validate, "
             "/cronjobs/validate, /jobflows/validate, /hypernodes/validate and /commands/validate "
             "(only users who may update the target of a Command may create it)."),
    ROW_TEXT_OR(0, "listen-address", "ADDR", struct wm_opts, listen, "every address",
                "The address to serve on."),
    ROW_CALL(0, "port", "N", struct wm_opts, port, webhook_parse_port, "8443",
             "The port to serve on; 0 takes a free port."),
    ROW_TEXT_OR(0, "tls-cert-file", "FILE", struct wm_opts, cert_file,
                "certificates that the server makes itself",
                "The serving certificate and its chain, PEM. It is read again when it changes."),
    ROW_TEXT(0, "tls-private-key-file", "FILE", struct wm_opts, key_file, NULL,
             "The key of the serving certificate, PEM."),
    ROW_TEXT(0, "ca-cert-file", "FILE", struct wm_opts, ca_file, NULL,
             "The certificate authority to publish in the webhook configurations. With "
             "certificates from files and without this option, the configurations are not "
             "changed."),
    ROW_TEXT(0, "webhook-namespace", "NAMESPACE", struct wm_opts, ns, NULL,
             "The namespace of the service, and of the Secret with the certificates that the "
             "server makes itself."),
    ROW_TEXT_OR(0, "webhook-service-name", "NAME", struct wm_opts, service, SERVICE,
                "The service by which the API server reaches this program."),
    ROW_TEXT(0, "webhook-url", "URL", struct wm_opts, url, NULL,
             "The URL by which the API server reaches this program. Its host is added to the "
             "certificate."),
    ROW_TEXT(0, "admission-conf", "FILE", struct wm_opts, conf, NULL,
             "Resource groups: which namespaces or annotations place pods where. The file is read "
             "again when it changes; an invalid file changes nothing."),
    ROW_LIST(0, "scheduler-name", "NAME", struct wm_opts, scheduler_names, "volcano",
             "Review pods of this scheduler. Jobs that name no scheduler get the first one given. "
             "May be given more than once."),
    ROW_INT(0, "max-queue-depth", "N", struct wm_opts, max_queue_depth, 1, MAX_DEPTH, "5",
            "The most levels of queues below one another."),
    ROW_INT(0, "max-replicas", "N", struct wm_opts, max_replicas, 1, INT32_MAX, "100000",
            "The most replicas that one object may ask for, all its tasks together."),
    ROW_BOOL("enable-queue-allocated-pods-check", struct wm_opts, refuse_busy_queues, "false",
             "Refuse to delete queues with allocated pods."),
    ROW_BOOL("enable-root-queue-protection", struct wm_opts, protect_root_queue, "true",
             "Refuse to change the amounts of the root queue."),
    ROW_CALL_OR(0, "feature-gates", "LIST", struct wm_opts, gates, gates_parse,
                "SchedulingGatesQueueAdmission=false",
                "NAME=BOOL pairs. Only SchedulingGatesQueueAdmission has an effect here."),
    ROW_DURATION(0, "graceful-shutdown-time", struct wm_opts, grace_ns, 0, "30s",
                 "How long reviews in progress may take to end."),
    ROW_BOOL("enable-healthz", struct wm_opts, health, "false",
             "Serve /healthz, with the same certificate."),
    ROW_CALL_ALL(0, "healthz-address", "ADDR:PORT", webhook_parse_health, HEALTHZ_ADDRESS,
                 "Serve health on this address."),
    ROW_INCLUDE(struct wm_opts, daemon, daemon_log_options),
    ROW_ARGUMENTS_CALL("2>&1", daemon_accept_word),
    ROW_END,
};

/* Installers write --webhook-url= for an unset value. */
static void drop_empty_texts(struct wm_opts *o)
{
    const char **const texts[] = {&o->listen, &o->conf,      &o->ns,       &o->service,
                                  &o->url,    &o->cert_file, &o->key_file, &o->ca_file};

    for (size_t i = 0; i < HK_LEN(texts); i++) {
        *texts[i] = *texts[i] && **texts[i] ? *texts[i] : NULL;
    }
}

static int webhook_manager_check(const struct wm_opts *o, struct hk_err *err)
{
    if (!o->url && !o->ns && !o->service) {
        return hk_fail(err, HK_EINVAL,
                       "failed to start webhooks as both 'url' and 'namespace/name' of webhook "
                       "are empty: --webhook-url, or --webhook-namespace and "
                       "--webhook-service-name are required");
    }
    if (!o->cert_file != !o->key_file) {
        return hk_fail(err, HK_EINVAL,
                       "--tls-cert-file and --tls-private-key-file must be given together");
    }
    if (!o->cert_file && o->ca_file) {
        return hk_fail(err, HK_EINVAL, "--ca-cert-file needs --tls-cert-file");
    }
    if (!o->cert_file && !o->ns) {
        return hk_fail(err, HK_EINVAL,
                       "--webhook-namespace, for the Secret with certificates, or "
                       "--tls-cert-file is required");
    }
    return 0;
}

/* ---- working ---- */

struct wm {
    const struct wm_opts *o;
    struct daemon daemon;
    struct webhook_manager *manager;
    struct hk_err failure; /* why it does not serve; code 0: no failure */
};

/* The host of "https://host:port/path", or NULL. */
static char *host_of(const char *url)
{
    const char *at = url ? strstr(url, "://") : NULL;

    if (!at) {
        return NULL;
    }
    at += 3;
    if (at[0] == '[') {
        return hk_strndup(at + 1, strcspn(at + 1, "]"));
    }
    const size_t n = strcspn(at, ":/");
    return n > 0 ? hk_strndup(at, n) : NULL;
}

static void webhook_manager_on_ready(void *ctx, uint16_t port, uint16_t health_port)
{
    const struct wm *w = ctx;
    const char *addr = w->o->listen ? w->o->listen : "127.0.0.1";
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    hk_buf_addf(&line,
                strchr(addr, ':') ? "hekla webhook-manager ready at https://[%s]:%u"
                                  : "hekla webhook-manager ready at https://%s:%u",
                addr, port);
    if (health_port > 0) {
        hk_buf_addf(&line, ", health on port %u", health_port);
    }
    hk_buf_addc(&line, '\n');
    (void)verb_print(&line);
}

static void on_failed(void *ctx, const struct hk_err *err)
{
    struct wm *w = ctx;

    w->failure = *err;
    net_loop_stop(w->daemon.loop);
}

static void webhook_manager_work_start(void *ctx)
{
}

static int64_t webhook_manager_work_run(void *ctx)
{
    const struct wm *w = ctx;

    return webhook_manager_run(w->manager);
}

/* Reviews finish after the loop has ended: see webhook_manager. */
static bool webhook_manager_work_drain(void *ctx)
{
    return true;
}

static void webhook_manager_work_end(void *ctx)
{
}

static void webhook_manager_work_metrics(void *ctx, struct hk_buf *out)
{
}

static int open_manager(struct wm *w, const char *host, uint32_t disabled, struct hk_err *err)
{
    const struct wm_opts *o = w->o;
    const struct webhook_manager_opts manager = {
        .loop = w->daemon.loop,
        .clock = w->daemon.clock,
        .port = w->daemon.port,
        .addr = hk_str(o->listen ? o->listen : ""),
        .tcp_port = (uint16_t)o->port,
        .health = o->health,
        .health_addr = hk_str(o->health_host),
        .health_port = o->health_port,
        .cert_file = o->cert_file,
        .key_file = o->key_file,
        .ca_file = o->ca_file,
        .ns = o->ns,
        .service = o->service ? o->service : SERVICE,
        .host = host,
        .conf_file = o->conf,
        .options = {.scheduler_names = o->scheduler_names.at,
                    .gate_queue_admission = o->gates.on[GATE_SCHEDULING_GATES_QUEUE_ADMISSION],
                    .refuse_busy_queues = o->refuse_busy_queues,
                    .change_root_queue = !o->protect_root_queue,
                    .wait_for_queue_state = true,
                    .max_queue_depth = (uint32_t)o->max_queue_depth,
                    .max_replicas = o->max_replicas,
                    .disabled = disabled},
        .ready = webhook_manager_on_ready,
        .failed = on_failed,
        .ctx = w,
    };

    return webhook_manager_new(&manager, &w->manager, err);
}

/* Opens everything and runs until the end; the caller closes. */
static int webhook_manager_open_and_run(struct wm *w, const struct daemon_work *about,
                                        struct hk_err *err)
{
    HK_AUTO(hk_freep) char *host = host_of(w->o->url);
    uint32_t disabled = 0;
    int rc = volcano_parse_enabled(hk_str(w->o->enabled), &disabled, err);

    if (rc < 0) {
        return rc;
    }
    rc = daemon_open(&w->daemon, &w->o->daemon, about, err);
    if (rc < 0) {
        return rc;
    }
    rc = open_manager(w, host, disabled, err);
    if (rc < 0) {
        return rc;
    }
    rc = daemon_run(&w->daemon, err);
    if (rc < 0) {
        return rc;
    }
    if (w->failure.code != 0) {
        *err = w->failure;
        return -w->failure.code;
    }
    webhook_manager_stop(w->manager, w->o->grace_ns / 1000000);
    return 0;
}

static int webhook_manager_serve(struct wm *w, const struct daemon_work *about, struct hk_err *err)
{
    const int rc = webhook_manager_open_and_run(w, about, err);

    webhook_manager_free(w->manager);
    if (w->daemon.loop) {
        daemon_close(&w->daemon);
    }
    return rc;
}

static int webhook_manager(void *ctx, struct hk_err *err)
{
    struct wm_opts *o = ctx;
    struct wm w = {.o = o};
    const struct daemon_work about = {.start = webhook_manager_work_start,
                                      .run = webhook_manager_work_run,
                                      .drain = webhook_manager_work_drain,
                                      .end = webhook_manager_work_end,
                                      .write_metrics = webhook_manager_work_metrics,
                                      .ctx = &w};

    drop_empty_texts(o);
    hk_vec_push(&o->scheduler_names, NULL);
    const int rc = webhook_manager_check(o, err);
    return rc < 0 ? rc : webhook_manager_serve(&w, &about, err);
}

static int webhook_manager_run_verb(const struct verb *v, int argc, char **argv)
{
    struct wm_opts o = {.daemon = {.name = v->name, .component = COMPONENT},
                        .gates = gates_default()};
    const int status = daemon_verb(v, argc, argv, &o, &o.daemon, webhook_manager);

    hk_vec_fini(&o.scheduler_names);
    return status;
}

const struct verb verb_webhook_manager = {
    .name = "webhook-manager",
    .args = "",
    .about = "run the admission rules, in place of vc-webhook-manager",
    .options = options,
    .text = "Answers AdmissionReviews of admission.k8s.io/v1 over TLS, in place of "
            "vc-webhook-manager: it sets defaults of jobs and queues, and refuses invalid objects "
            "with the field that is wrong. hekla apiserver does not need it; the same rules are "
            "built in. Options are those of vc-webhook-manager. A boolean option is true when it "
            "is given alone; its value can only follow '='.\n"
            "Certificates come from files, which are read again when they change: new connections "
            "get the new certificate, existing connections continue. Without files the server "
            "makes an authority and a certificate for the service, stores them in the Secret "
            "volcano-admission-secret of the namespace for all replicas, and renews them two "
            "months before they expire.\n"
            "The authority is published in the webhook configurations named "
            "volcano-admission-service-jobs-mutate and so on, one for each path, when they are "
            "created and whenever they change.\n"
            "The server starts to serve when it has a certificate and has read the queues of the "
            "cluster, and then prints one line with its address. SIGTERM and SIGINT wait for "
            "reviews in progress; a second signal ends the program at once.",
    .rest =
        "RIGHTS\n"
        "       get, list and watch on queues (scheduling.volcano.sh), and on namespaces with\n"
        "       /podgroups/mutate; list, watch and update on mutatingwebhookconfigurations and\n"
        "       validatingwebhookconfigurations (admissionregistration.k8s.io); without files,\n"
        "       get, create and update on secrets in the namespace.\n"
        "\n"
        "EXIT STATUS\n"
        "       0  ended by a signal\n"
        "       1  could not start, or got a second signal; one line on standard error says\n"
        "          why\n"
        "\n"
        "EXAMPLES\n"
        "       With certificates of its own:\n"
        "           hekla webhook-manager --kubeconfig FILE --webhook-namespace volcano-system "
        "\\\n"
        "               --webhook-service-name volcano-admission-service\n"
        "\n"
        "       With files, all reviews and resource groups:\n"
        "           hekla webhook-manager --kubeconfig FILE --webhook-namespace volcano-system "
        "\\\n"
        "               --tls-cert-file tls.crt --tls-private-key-file tls.key \\\n"
        "               --ca-cert-file ca.crt --admission-conf volcano-admission.conf \\\n"
        "               --enabled-admission=/jobs/mutate,/jobs/validate,/pods/mutate\n",
    .run = webhook_manager_run_verb,
};
