// SPDX-License-Identifier: Apache-2.0
// hekla webhook-manager: Volcano's admission rules for any API server, in the place of
// vc-webhook-manager.
#include "cmd/daemon.h"
#include "cmd/gates.h"

#include "webhook/manager.h"

#define COMPONENT "vc-webhook-manager"
#define HEALTHZ_ADDRESS ":11251"
#define SERVICE "volcano-admission-service"
#define ENABLED                                                                                    \
    "/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,/queues/mutate,"    \
    "/queues/validate"

#define DEFAULT_GRACE_NS ((int64_t)30 * 1000 * 1000 * 1000)

enum { DEFAULT_PORT = 8443, MAX_DEPTH = 1000 };

struct wm_opts {
    struct daemon_opts daemon;
    struct gates gates;
    const char *listen, *conf, *ns, *service, *url, *enabled;
    const char *cert_file, *key_file, *ca_file;
    bool health, refuse_busy_queues, protect_root_queue;
    char health_host[64];
    uint16_t health_port;
    int64_t port, grace_ns, max_queue_depth;
    HK_VEC(const char *) scheduler_names; /* ends with NULL once it is whole */
};

static const struct option_row options[] = {
    DAEMON_OPTIONS_API("50", "100"),
    {0, "enabled-admission", "LIST", NULL,
     "Which reviews are answered, by path (default " ENABLED "). Further ones are "
     "/podgroups/validate, /cronjobs/validate, /jobflows/validate and /hypernodes/validate."},
    {0, "listen-address", "ADDR", NULL, "Where to serve (default on every address)."},
    {0, "port", "N", NULL, "The port to serve on (default 8443); 0 takes a free one."},
    {0, "tls-cert-file", "FILE", NULL,
     "The serving certificate, PEM, further ones of its chain behind it. Read again when it "
     "changes. Without it the server makes certificates of its own."},
    {0, "tls-private-key-file", "FILE", NULL, "Its key."},
    {0, "ca-cert-file", "FILE", NULL,
     "The authority to publish in the webhook configurations. Without it, and with certificates "
     "from files, they are left as they are."},
    {0, "webhook-namespace", "NAMESPACE", NULL,
     "Where the service is, and the Secret with certificates of the server's own."},
    {0, "webhook-service-name", "NAME", NULL,
     "What the API server calls us by (default " SERVICE ")."},
    {0, "webhook-url", "URL", NULL, "The same as an address; one more name to certify."},
    {0, "admission-conf", "FILE", NULL,
     "Resource groups: where pods of which namespaces or annotations are placed. Read again when "
     "it changes; a file that is wrong changes nothing."},
    {0, "scheduler-name", "NAME", NULL,
     "Pods of this scheduler are looked at, and jobs that name none get the first (default "
     "volcano). May be given more than once."},
    {0, "max-queue-depth", "N", NULL, "How deep queues may stand below one another (default 5)."},
    {0, "enable-queue-allocated-pods-check", "[BOOL]", NULL,
     "Refuse to delete queues with allocated pods (default false)."},
    {0, "enable-root-queue-protection", "[BOOL]", NULL,
     "Refuse to change the amounts of the root queue (default true)."},
    {0, "feature-gates", "LIST", NULL,
     "NAME=BOOL pairs: SchedulingGatesQueueAdmission matters here, and is off unless said "
     "otherwise."},
    {0, "graceful-shutdown-time", "DURATION", NULL,
     "How long reviews under way may take to end (default 30s)."},
    {0, "enable-healthz", "[BOOL]", NULL, "Serve /healthz, with the same certificate."},
    {0, "healthz-address", "ADDR:PORT", NULL, "Where to serve it (default " HEALTHZ_ADDRESS ")."},
    DAEMON_OPTIONS_LOG,
};

/* ---- options ---- */

static int take_port(struct wm_opts *o, const char *value, struct hk_err *err)
{
    if (!hk_str_int(hk_str(value), &o->port) || o->port < 0 || o->port > UINT16_MAX) {
        return hk_fail(err, HK_EINVAL,
                       "Configured port is invalid: the port should be in the range of 1 and "
                       "65535");
    }
    return 0;
}

static int take_health(struct wm_opts *o, const char *value, struct hk_err *err)
{
    if (daemon_split_address(value, o->health_host, sizeof(o->health_host), &o->health_port) < 0) {
        return hk_fail(err, HK_EINVAL, "option --healthz-address is '%s', want ADDR:PORT", value);
    }
    return 0;
}

static bool take_plain(struct wm_opts *o, const struct option_row *row, const char *value, int *ret,
                       struct hk_err *err)
{
    const struct {
        const char *name;
        const char **text;
        bool *flag;
    } rows[] = {
        {"enabled-admission", .text = &o->enabled},
        {"listen-address", .text = &o->listen},
        {"tls-cert-file", .text = &o->cert_file},
        {"tls-private-key-file", .text = &o->key_file},
        {"ca-cert-file", .text = &o->ca_file},
        {"webhook-namespace", .text = &o->ns},
        {"webhook-service-name", .text = &o->service},
        {"webhook-url", .text = &o->url},
        {"admission-conf", .text = &o->conf},
        {"enable-healthz", .flag = &o->health},
        {"enable-queue-allocated-pods-check", .flag = &o->refuse_busy_queues},
        {"enable-root-queue-protection", .flag = &o->protect_root_queue},
    };

    *ret = 0;
    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (strcmp(row->name, rows[i].name) != 0) {
            continue;
        }
        if (rows[i].flag) {
            *ret = daemon_take_bool(row, value, rows[i].flag, err);
        } else {
            *rows[i].text = value[0] != '\0' || rows[i].text == &o->enabled ? value : NULL;
        }
        return true;
    }
    return false;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct wm_opts *o = ctx;
    int rc;

    if (!row) {
        return daemon_take_word(value, err);
    }
    if (take_plain(o, row, value, &rc, err)) {
        return rc;
    }
    if (strcmp(row->name, "port") == 0) {
        return take_port(o, value, err);
    }
    if (strcmp(row->name, "healthz-address") == 0) {
        return take_health(o, value, err);
    }
    if (strcmp(row->name, "graceful-shutdown-time") == 0) {
        return daemon_take_duration(row, value, &o->grace_ns, err);
    }
    if (strcmp(row->name, "max-queue-depth") == 0) {
        return daemon_take_int(row, value, 1, MAX_DEPTH, &o->max_queue_depth, err);
    }
    if (strcmp(row->name, "feature-gates") == 0) {
        return gates_take(&o->gates, value, err);
    }
    if (strcmp(row->name, "scheduler-name") == 0) {
        hk_vec_push(&o->scheduler_names, value);
        return 0;
    }
    const bool known = daemon_take(&o->daemon, row, value, &rc, err);
    hk_assert(known);
    return rc;
}

static int check(const struct wm_opts *o, struct hk_err *err)
{
    if (!o->url && !o->ns && !o->service) {
        return hk_fail(err, HK_EINVAL,
                       "failed to start webhooks as both 'url' and 'namespace/name' of webhook "
                       "are empty: want --webhook-url, or --webhook-namespace and "
                       "--webhook-service-name");
    }
    if (!o->cert_file != !o->key_file) {
        return hk_fail(err, HK_EINVAL,
                       "want both --tls-cert-file and --tls-private-key-file, or none");
    }
    if (!o->cert_file && o->ca_file) {
        return hk_fail(err, HK_EINVAL, "--ca-cert-file without --tls-cert-file");
    }
    if (!o->cert_file && !o->ns) {
        return hk_fail(err, HK_EINVAL,
                       "want --webhook-namespace, for the Secret with certificates, or "
                       "--tls-cert-file");
    }
    return 0;
}

/* ---- working ---- */

struct wm {
    const struct wm_opts *o;
    struct daemon daemon;
    struct webhook_manager *manager;
    struct hk_err failure; /* why it does not serve; code 0: nothing is wrong */
};

/* "https://host:port/path": the host, or NULL. */
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

static void on_ready(void *ctx, uint16_t port, uint16_t health_port)
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

static void work_start(void *ctx)
{
}

static int64_t work_run(void *ctx)
{
    const struct wm *w = ctx;

    return webhook_manager_run(w->manager);
}

/* Reviews end after the loop has: see webhook_manager. */
static bool work_drain(void *ctx)
{
    return true;
}

static void work_end(void *ctx)
{
}

static void work_metrics(void *ctx, struct hk_buf *out)
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
                    .disabled = disabled},
        .ready = on_ready,
        .failed = on_failed,
        .ctx = w,
    };

    return webhook_manager_new(&manager, &w->manager, err);
}

static int work(struct wm *w, const struct daemon_work *about, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *host = host_of(w->o->url);
    uint32_t disabled = 0;
    int rc = volcano_parse_enabled(hk_str(w->o->enabled), &disabled, err);

    rc = rc < 0 ? rc : daemon_open(&w->daemon, &w->o->daemon, about, err);
    rc = rc < 0 ? rc : open_manager(w, host, disabled, err);
    rc = rc < 0 ? rc : daemon_run(&w->daemon, err);
    if (rc == 0 && w->failure.code != 0) {
        *err = w->failure;
        rc = -w->failure.code;
    }
    if (rc == 0) {
        webhook_manager_stop(w->manager, w->o->grace_ns / 1000000);
    }
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
    const struct daemon_work about = {.start = work_start,
                                      .run = work_run,
                                      .drain = work_drain,
                                      .end = work_end,
                                      .write_metrics = work_metrics,
                                      .ctx = &w};
    const int rc = check(o, err);

    hk_vec_push(&o->scheduler_names, NULL);
    return rc < 0 ? rc : work(&w, &about, err);
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct wm_opts o = {.daemon = daemon_opts_default(v->name, COMPONENT),
                        .gates = gates_default(),
                        .enabled = ENABLED,
                        .port = DEFAULT_PORT,
                        .grace_ns = DEFAULT_GRACE_NS,
                        .protect_root_queue = true};
    const int rc = take_health(&o, HEALTHZ_ADDRESS, NULL);

    hk_assert(rc == 0);
    o.daemon.elect = false;
    const int status = daemon_verb(v, argc, argv, take, webhook_manager, &o, &o.daemon);
    hk_vec_fini(&o.scheduler_names);
    return status;
}

const struct verb verb_webhook_manager = {
    .name = "webhook-manager",
    .args = "",
    .about = "judge and complete Volcano's objects for an API server",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "Answers AdmissionReviews of admission.k8s.io/v1 over TLS, in the place of "
        "vc-webhook-manager: defaults for jobs and queues, and refusals that say which field is "
        "wrong. hekla apiserver needs no such help, it has the same rules inside. Options are "
        "Volcano's; a boolean option is on when it stands alone, and its value may only follow "
        "behind '='.\n"
        "Certificates come from files, which are read again whenever they change: new connections "
        "see the new one, connections there are go on. Without files the server makes an authority "
        "and a certificate for the service, keeps them in the Secret volcano-admission-secret of "
        "the namespace, where every replica finds them, and makes new ones two months before they "
        "end.\n"
        "The authority is published in the webhook configurations called "
        "volcano-admission-service-jobs-mutate and so on, one for each path, as soon as they "
        "exist, and again when somebody takes it away.\n"
        "The server begins to serve when it has a certificate and has seen the queues of the "
        "cluster, and then prints one line with its address. SIGTERM and SIGINT let the reviews "
        "under way end; the second one ends the program at once.",
    .rest =
        "RIGHTS\n"
        "       get, list and watch on queues (scheduling.volcano.sh), and on namespaces with\n"
        "       /podgroups/mutate; list, watch and update on mutatingwebhookconfigurations and\n"
        "       validatingwebhookconfigurations (admissionregistration.k8s.io); without files,\n"
        "       get, create and update on secrets in the namespace.\n"
        "\n"
        "EXIT STATUS\n"
        "       0  ended by a signal\n"
        "       1  could not start, or was told to end twice; one line on standard error says\n"
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
    .run = run,
};
