// SPDX-License-Identifier: Apache-2.0
// hekla manifests: what a cluster has to hold so that the programs can work in it, for kubectl.
#include "cmd/verb.h"

#include "admission/volcano.h"
#include "base/file.h"
#include "codec/yaml.h"
#include "install/install.h"

#define NAMESPACE "volcano-system"
#define IMAGE "hekla:" HEKLA_VERSION
#define PARTS                                                                                      \
    "namespace, crds, accounts, rbac, agent, config, services, budgets, deployments, webhooks, "   \
    "queues"

enum { MAX_REPLICAS = 100, MAX_CONF_BYTES = 512 << 10, MAX_LABEL = 63 };

/* What runs in the cluster; with --webhook-url the programs run beside it. */
static const uint32_t inside = 1U << INSTALL_SERVICES | 1U << INSTALL_BUDGETS |
                               1U << INSTALL_DEPLOYMENTS | 1U << INSTALL_CONFIG;

struct manifests_opts {
    struct install_opts install;
    uint32_t only, with, without; /* parts; only 0: not said */
    struct hk_buf scheduler_conf, admission_conf;
    bool json;
};

static const struct option_row options[] = {
    {'n', "namespace", "NAMESPACE", NULL,
     "Where the programs are installed (default " NAMESPACE ")."},
    {0, "image", "REF", NULL, "The image they are started from (default " IMAGE ")."},
    {0, "replicas", "N", NULL,
     "Pods of each program (default 1). Of schedulers and controllers one works and the others "
     "wait; with more than one, disruption budgets keep all but one of them alive."},
    {0, "enabled-admission", "LIST", NULL,
     "Which reviews the API server asks for, by path as in hekla webhook-manager (default all of "
     "them, which are more than that program answers by default)."},
    {0, "webhook-url", "URL", NULL,
     "The API server reaches the admission server at this address, https://HOST:PORT, instead of "
     "by way of a service: for programs that run beside the cluster and not in it. Deployments, "
     "services, budgets and configuration are left out, unless --with or --only names them. The "
     "admission server has to be started with the same --enabled-admission."},
    {0, "scheduler-conf", "FILE", NULL, "The scheduler's configuration, instead of the usual one."},
    {0, "admission-conf", "FILE", NULL, "Resource groups of the admission server (default none)."},
    {0, "only", "LIST", NULL, "Print these parts alone."},
    {0, "with", "LIST", NULL, "Print these parts too."},
    {0, "without", "LIST", NULL, "Leave these parts out."},
    {'o', "output", "FORMAT", "yaml json",
     "yaml: one document for each object (default); json: one List."},
};

/* ---- options ---- */

static int take_parts(const struct option_row *row, const char *value, uint32_t *ret,
                      struct hk_err *err)
{
    struct hk_str rest = hk_str(value), word;

    while (hk_str_cut(&rest, ',', &word)) {
        unsigned part = 0;
        word = hk_str_trim(word);
        while (part < INSTALL_NPARTS && !hk_str_is(word, install_part_name(part))) {
            part++;
        }
        if (part == INSTALL_NPARTS) {
            return hk_fail(err, HK_EINVAL, "option --%s has '%.*s', want " PARTS, row->name,
                           HK_FMT(word));
        }
        *ret |= 1U << part;
    }
    return 0;
}

static bool is_label_char(char c, bool inner)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (inner && c == '-');
}

static int take_namespace(struct manifests_opts *o, const char *value, struct hk_err *err)
{
    const size_t n = strlen(value);
    bool good = n > 0 && n <= MAX_LABEL;

    for (size_t i = 0; i < n; i++) {
        good &= is_label_char(value[i], i > 0 && i + 1 < n);
    }
    if (!good) {
        return hk_fail(err, HK_EINVAL,
                       "option --namespace is '%s', want lower case letters, digits and '-'",
                       value);
    }
    o->install.ns = value;
    return 0;
}

static int take_image(struct manifests_opts *o, const char *value, struct hk_err *err)
{
    bool good = value[0] != '\0';

    for (const char *c = value; *c; c++) {
        good &= *c > ' ' && *c < 0x7f;
    }
    if (!good) {
        return hk_fail(err, HK_EINVAL, "option --image is '%s', want NAME:TAG", value);
    }
    o->install.image = value;
    return 0;
}

static int take_url(struct manifests_opts *o, const char *value, struct hk_err *err)
{
    const struct hk_str url = hk_str(value);

    if (!hk_str_starts(url, "https://") || url.n == strlen("https://") ||
        strpbrk(value, "?#@ ") != NULL) {
        return hk_fail(err, HK_EINVAL, "option --webhook-url is '%s', want https://HOST:PORT",
                       value);
    }
    o->install.webhook_url = value;
    return 0;
}

static int take_replicas(struct manifests_opts *o, const char *value, struct hk_err *err)
{
    int64_t n;

    if (!hk_str_int(hk_str(value), &n) || n < 1 || n > MAX_REPLICAS) {
        return hk_fail(err, HK_EINVAL, "option --replicas is '%s', want 1 to %d", value,
                       MAX_REPLICAS);
    }
    o->install.replicas = (uint32_t)n;
    return 0;
}

static int take_file(const char *path, struct hk_buf *text, const char **ret, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs;
    int rc;

    hk_buf_clear(text);
    rc = hk_read_file(path, MAX_CONF_BYTES, text, err);
    if (rc < 0) {
        return rc;
    }
    rc = yaml_parse(hk_buf_str(text), 0, &a, &docs, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "%s", path);
    }
    *ret = hk_buf_str(text).s;
    return 0;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct manifests_opts *o = ctx;
    const char *name = row ? row->name : "";
    const struct {
        const char *name;
        uint32_t *parts;
    } lists[] = {{"only", &o->only}, {"with", &o->with}, {"without", &o->without}};
    const struct {
        const char *name;
        int (*take)(struct manifests_opts *o, const char *value, struct hk_err *err);
    } words[] = {{"namespace", take_namespace},
                 {"image", take_image},
                 {"webhook-url", take_url},
                 {"replicas", take_replicas}};

    if (!row) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
    }
    for (size_t i = 0; i < HK_LEN(lists); i++) {
        if (strcmp(name, lists[i].name) == 0) {
            return take_parts(row, value, lists[i].parts, err);
        }
    }
    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (strcmp(name, words[i].name) == 0) {
            return words[i].take(o, value, err);
        }
    }
    if (strcmp(name, "enabled-admission") == 0) {
        return volcano_parse_enabled(hk_str(value), &o->install.disabled, err);
    }
    if (strcmp(name, "scheduler-conf") == 0) {
        return take_file(value, &o->scheduler_conf, &o->install.scheduler_conf, err);
    }
    if (strcmp(name, "admission-conf") == 0) {
        return take_file(value, &o->admission_conf, &o->install.admission_conf, err);
    }
    o->json = strcmp(value, "json") == 0;
    return 0;
}

/* ---- printing ---- */

static uint32_t choose_parts(const struct manifests_opts *o)
{
    uint32_t parts = ((1U << INSTALL_NPARTS) - 1) & ~install_extra_parts;

    if (o->install.webhook_url) {
        parts &= ~inside;
    }
    if (o->install.replicas < 2) {
        parts &= ~(1U << INSTALL_BUDGETS);
    }
    return ((o->only ? o->only : parts) | o->with) & ~o->without;
}

static void write_yaml(const struct json *objects, struct hk_buf *out)
{
    for (uint32_t i = 0; i < objects->len; i++) {
        hk_buf_adds(out, i > 0 ? "---\n" : "");
        yaml_write(&objects->items[i], out);
    }
}

static void write_json(struct json *objects, struct hk_arena *a, struct hk_buf *out)
{
    struct json list = json_make_object();

    json_put(&list, a, HK_STR("apiVersion"), json_make_str(HK_STR("v1")));
    json_put(&list, a, HK_STR("kind"), json_make_str(HK_STR("List")));
    json_put(&list, a, HK_STR("items"), *objects);
    json_write_pretty(&list, 2, out);
}

static int print(struct manifests_opts *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct json objects = json_make_array();

    o->install.parts = choose_parts(o);
    install_objects(&o->install, &a, &objects);
    if (o->json) {
        write_json(&objects, &a, &out);
    } else {
        write_yaml(&objects, &out);
    }
    return verb_print(&out);
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct manifests_opts o = {.install = {.ns = NAMESPACE, .image = IMAGE, .replicas = 1}};
    const int rc = verb_parse(v, argc, argv, take, &o);
    const int status = rc == 0 ? print(&o) : rc < 0 ? EXIT_BAD : EXIT_OK;

    hk_buf_fini(&o.scheduler_conf);
    hk_buf_fini(&o.admission_conf);
    return status;
}

const struct verb verb_manifests = {
    .name = "manifests",
    .args = "",
    .about = "print what has to be installed in a cluster",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "Prints the objects with which Hekla takes Volcano's place in a Kubernetes cluster, in an "
        "order that kubectl apply takes in one go. Names are those of Volcano's own installer, so "
        "what it has installed is replaced, and jobs, queues and PodGroups stay as they are; "
        "docs/migration.md tells how. Applying them again changes nothing.\n"
        "Each program has a service account with the rights it uses and no others. The webhooks "
        "for jobs, queues and the other kinds of Volcano refuse when the admission server does not "
        "answer; those for pods let pass, and are asked only about pods of the scheduler volcano "
        "or with a resource group, and never about those of kube-system or of the programs.\n"
        "The admission server makes its own certificates and enters them into the webhook "
        "configurations; the scheduler makes the queues root and default.",
    .rest =
        "PARTS\n"
        "       namespace    the namespace\n"
        "       crds         the kinds of Volcano\n"
        "       accounts     a service account for each program\n"
        "       rbac         what they may do\n"
        "       agent        account and rights for nodes run by hekla agent; only when asked for\n"
        "       config       configuration of the scheduler and of the admission server\n"
        "       services     admission, metrics of the scheduler and of the controllers\n"
        "       budgets      disruption budgets, with more than one replica\n"
        "       deployments  the programs\n"
        "       webhooks     what the API server asks the admission server\n"
        "       queues       root and default, for clusters whose scheduler does not make them;\n"
        "                    only when asked for, since kubectl can apply them only once the "
        "kinds\n"
        "                    are there\n"
        "\n"
        "EXIT STATUS\n"
        "       0  printed\n"
        "       1  bad usage\n"
        "\n"
        "EXAMPLES\n"
        "       Install, two of each:\n"
        "           hekla manifests --image registry.example/hekla:1 --replicas 2 | \\\n"
        "               kubectl apply --server-side -f -\n"
        "\n"
        "       Programs that run beside the cluster, on a host it can reach:\n"
        "           hekla manifests --webhook-url https://10.0.0.5:8443 | kubectl apply -f -\n"
        "\n"
        "       Only the kinds:\n"
        "           hekla manifests --only crds | kubectl apply --server-side -f -\n",
    .run = run,
};
