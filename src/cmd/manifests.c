// SPDX-License-Identifier: Apache-2.0
// hekla manifests: prints the objects that a cluster needs for the programs, for kubectl.
#include "admission/volcano.h"
#include "base/file.h"
#include "cli/verb.h"
#include "codec/yaml.h"
#include "install/install.h"

#define PARTS                                                                                      \
    "namespace, crds, accounts, rbac, agent, config, services, budgets, deployments, webhooks, "   \
    "queues"

enum { MAX_REPLICAS = 100, MAX_CONF_BYTES = 512 << 10, MAX_LABEL = 63 };

/* Parts that run in the cluster; with --webhook-url the programs run outside it. */
static const uint32_t inside = 1U << INSTALL_SERVICES | 1U << INSTALL_BUDGETS |
                               1U << INSTALL_DEPLOYMENTS | 1U << INSTALL_CONFIG;

/* A file whose text becomes part of the manifests. */
struct manifests_file {
    struct hk_buf text;
    const char *given; /* the text; NULL: none */
};

struct manifests_opts {
    struct install_opts install;
    uint32_t only, with, without; /* parts; only 0: not given */
    struct manifests_file scheduler_conf, admission_conf;
    enum { MANIFESTS_YAML, MANIFESTS_JSON } output;
};

/* ---- options ---- */

static int manifests_parse_parts(void *at, const struct option_row *row, const char *value,
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
            return hk_fail(err, HK_EINVAL, "option --%s has '%.*s', want some of: " PARTS,
                           row->name, HK_FMT(word));
        }
        *(uint32_t *)at |= 1U << part;
    }
    return 0;
}

static bool is_label_char(char c, bool inner)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (inner && c == '-');
}

static int manifests_parse_namespace(void *at, const struct option_row *row, const char *value,
                                     struct hk_err *err)
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
    *(const char **)at = value;
    return 0;
}

static int manifests_parse_image(void *at, const struct option_row *row, const char *value,
                                 struct hk_err *err)
{
    bool good = value[0] != '\0';

    for (const char *c = value; *c; c++) {
        good &= *c > ' ' && *c < 0x7f;
    }
    if (!good) {
        return hk_fail(err, HK_EINVAL, "option --image is '%s', want NAME:TAG", value);
    }
    *(const char **)at = value;
    return 0;
}

static int manifests_parse_url(void *at, const struct option_row *row, const char *value,
                               struct hk_err *err)
{
    const struct hk_str url = hk_str(value);

    if (!hk_str_starts(url, "https://") || url.n == strlen("https://") ||
        strpbrk(value, "?#@ ") != NULL) {
        return hk_fail(err, HK_EINVAL, "option --webhook-url is '%s', want https://HOST:PORT",
                       value);
    }
    *(const char **)at = value;
    return 0;
}

static int manifests_read_file(void *at, const struct option_row *row, const char *path,
                               struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct manifests_file *f = at;
    struct yaml_docs docs;
    int rc;

    hk_buf_clear(&f->text);
    rc = hk_read_file(path, MAX_CONF_BYTES, &f->text, err);
    if (rc < 0) {
        return rc;
    }
    rc = yaml_parse(hk_buf_str(&f->text), 0, &a, &docs, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "%s", path);
    }
    f->given = hk_buf_str(&f->text).s;
    return 0;
}

static int manifests_parse_enabled(void *at, const struct option_row *row, const char *value,
                                   struct hk_err *err)
{
    return volcano_parse_enabled(hk_str(value), at, err);
}

static const struct option_row options[] = {
    ROW_CALL('n', "namespace", "NAMESPACE", struct manifests_opts, install.ns,
             manifests_parse_namespace, "volcano-system",
             "The namespace to install the programs in."),
    ROW_CALL(0, "image", "REF", struct manifests_opts, install.image, manifests_parse_image,
             "hekla:" HEKLA_VERSION, "The image of the programs."),
    ROW_INT(0, "replicas", "N", struct manifests_opts, install.replicas, 1, MAX_REPLICAS, "1",
            "The pods of each program. Of schedulers and controllers one works and the others "
            "wait; with more than one, disruption budgets keep all but one of them running."),
    ROW_CALL_OR(0, "enabled-admission", "LIST", struct manifests_opts, install.disabled,
                manifests_parse_enabled,
                "all, which are more than hekla webhook-manager answers "
                "by default",
                "The reviews that the API server asks for, by path as in hekla webhook-manager."),
    ROW_CALL(0, "webhook-url", "URL", struct manifests_opts, install.webhook_url,
             manifests_parse_url, NULL,
             "The API server reaches the admission server at this address, https://HOST:PORT, and "
             "not through a service: for programs that run beside the cluster. Deployments, "
             "services, budgets and configuration are left out, unless --with or --only names "
             "them. Start the admission server with the same --enabled-admission."),
    ROW_CALL_OR(0, "scheduler-conf", "FILE", struct manifests_opts, scheduler_conf,
                manifests_read_file, "the configuration of Volcano's installer",
                "The configuration of the scheduler."),
    ROW_CALL(0, "admission-conf", "FILE", struct manifests_opts, admission_conf,
             manifests_read_file, NULL, "The resource groups of the admission server."),
    ROW_CALL(0, "only", "LIST", struct manifests_opts, only, manifests_parse_parts, NULL,
             "Print only these parts. See PARTS."),
    ROW_CALL(0, "with", "LIST", struct manifests_opts, with, manifests_parse_parts, NULL,
             "Print these parts too."),
    ROW_CALL(0, "without", "LIST", struct manifests_opts, without, manifests_parse_parts, NULL,
             "Leave these parts out."),
    ROW_CHOICE('o', "output", "FORMAT", struct manifests_opts, output, "yaml json", "yaml",
               "Print one YAML document for each object, or one JSON List."),
    ROW_END,
};

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

static void manifests_write_json(struct json *objects, struct hk_arena *a, struct hk_buf *out)
{
    struct json list = json_make_object();

    json_set_cstr(&list, a, "apiVersion", "v1");
    json_set_cstr(&list, a, "kind", "List");
    json_set(&list, a, "items", *objects);
    json_write_pretty(&list, 2, out);
}

static int print(struct manifests_opts *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct json objects = json_make_array();

    o->install.scheduler_conf = o->scheduler_conf.given;
    o->install.admission_conf = o->admission_conf.given;
    o->install.parts = choose_parts(o);
    install_objects(&o->install, &a, &objects);
    if (o->output == MANIFESTS_JSON) {
        manifests_write_json(&objects, &a, &out);
    } else {
        write_yaml(&objects, &out);
    }
    return verb_print(&out);
}

static int manifests_run(const struct verb *v, int argc, char **argv)
{
    struct manifests_opts o = {0};
    const int rc = verb_parse(v, argc, argv, &o);
    const int status = rc == 0 ? print(&o) : rc < 0 ? EXIT_BAD : EXIT_OK;

    hk_buf_fini(&o.scheduler_conf.text);
    hk_buf_fini(&o.admission_conf.text);
    return status;
}

const struct verb verb_manifests = {
    .name = "manifests",
    .args = "",
    .about = "print the objects that a cluster needs, for kubectl apply",
    .options = options,
    .text = "Prints the objects with which Hekla replaces Volcano in a Kubernetes cluster, in an "
            "order that one kubectl apply accepts. Names are those of Volcano's own installer, so "
            "its installation is replaced, and jobs, queues and PodGroups stay as they are; "
            "docs/migration.md describes how. Applying them again changes nothing.\n"
            "Each program has a service account with the rights it uses and no others. The "
            "webhooks for jobs, queues and the other kinds of Volcano refuse requests when the "
            "admission server does not answer; those for pods allow them, and are called only for "
            "pods of the scheduler volcano or with a resource group, and never for those of "
            "kube-system or of the programs.\n"
            "The admission server makes its own certificates and adds them to the webhook "
            "configurations; the scheduler creates the queues root and default.",
    .rest =
        "PARTS\n"
        "       namespace    the namespace\n"
        "       crds         the kinds of Volcano\n"
        "       accounts     a service account for each program\n"
        "       rbac         what they may do\n"
        "       agent        account and rights for nodes run by hekla agent; only on request\n"
        "       config       the configuration of the scheduler and of the admission server\n"
        "       services     admission, metrics of the scheduler and of the controllers\n"
        "       budgets      disruption budgets, with more than one replica\n"
        "       deployments  the programs\n"
        "       webhooks     what the API server asks the admission server\n"
        "       queues       root and default, for clusters whose scheduler does not make them;\n"
        "                    only on request: kubectl can apply them only when the kinds\n"
        "                    exist\n"
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
    .run = manifests_run,
};
