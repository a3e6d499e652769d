// SPDX-License-Identifier: Apache-2.0
// hekla vcctl, also under the names of Volcano's own programs: finds the command, connects, runs it
// and reports the result. Messages, their streams and exit statuses are those of Volcano.
#include "cmd/vcctl.h"

#include "base/file.h"
#include "cli/make.h"
#include "cli/verb.h"
#include "cli/word.h"
#include "user/user.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <unistd.h>

enum {
    EXIT_FAILED = 255, /* the command failed */
    MAX_MANIFEST = 16 << 20,
};

/* ---- helpers for commands ---- */

const char *vcctl_value(const struct vcctl *v, const char *flag)
{
    return command_value(v->line, flag);
}

const char *vcctl_list_ns(const struct vcctl *v)
{
    return command_bool(v->line, "all-namespaces") ? "" : vcctl_value(v, "namespace");
}

int vcctl_get(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
              struct port_answer *ret, struct hk_err *err)
{
    const struct port_request req = {
        .verb = PORT_GET, .kind = api_kind(kind), .ns = hk_str(ns), .name = hk_str(name)};
    const int rc = ask(&v->ask, &req, ret, err);

    if (rc == 0 && ret->objects.len == 0) {
        return hk_fail(err, HK_EIO, "the server's answer holds no object");
    }
    return rc;
}

int vcctl_list(struct vcctl *v, enum api_kind_id kind, const char *ns, struct port_answer *ret,
               struct hk_err *err)
{
    const struct port_request req = {.verb = PORT_LIST, .kind = api_kind(kind), .ns = hk_str(ns)};

    return ask(&v->ask, &req, ret, err);
}

int vcctl_create(struct vcctl *v, enum api_kind_id kind, const char *ns, const struct json *body,
                 struct port_answer *ret, struct hk_err *err)
{
    const struct port_request req = {
        .verb = PORT_CREATE, .kind = api_kind(kind), .ns = hk_str(ns), .body = body};

    return ask(&v->ask, &req, ret, err);
}

int vcctl_delete(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
                 struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer last = {0};
    const struct port_request req = {
        .verb = PORT_DELETE, .kind = api_kind(kind), .ns = hk_str(ns), .name = hk_str(name)};

    return ask(&v->ask, &req, &last, err);
}

int vcctl_order(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
                const char *command_ns, const char *action, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer target = {0}, made = {0};
    const int rc = vcctl_get(v, kind, ns, name, &target, err);

    if (rc < 0) {
        return rc;
    }
    const struct json body = make_command(target.objects.at[0], command_ns, action, &v->mem);
    return vcctl_create(v, API_COMMAND, command_ns, &body, &made, err);
}

int vcctl_read(const char *path, struct hk_buf *ret, struct hk_err *err)
{
    if (access(path, R_OK) < 0) {
        const char *why = strerror(errno);
        return hk_fail(err, HK_ENOTFOUND, "open %s: %c%s", path, tolower((unsigned char)why[0]),
                       why + 1);
    }
    return hk_read_file(path, MAX_MANIFEST, ret, err);
}

/* ---- running ---- */

static vcctl_fn *const actions[COMMAND_NACTIONS] = {
    [COMMAND_JOB_RUN] = vcctl_job_run,
    [COMMAND_JOB_LIST] = vcctl_job_list,
    [COMMAND_JOB_VIEW] = vcctl_job_view,
    [COMMAND_JOB_SUSPEND] = vcctl_job_suspend,
    [COMMAND_JOB_RESUME] = vcctl_job_resume,
    [COMMAND_JOB_DELETE] = vcctl_job_delete,
    [COMMAND_QUEUE_CREATE] = vcctl_queue_create,
    [COMMAND_QUEUE_DELETE] = vcctl_queue_delete,
    [COMMAND_QUEUE_GET] = vcctl_queue_get,
    [COMMAND_QUEUE_LIST] = vcctl_queue_list,
    [COMMAND_QUEUE_OPERATE] = vcctl_queue_operate,
    [COMMAND_FLOW_CREATE] = vcctl_flow_create,
    [COMMAND_FLOW_DELETE] = vcctl_flow_delete,
    [COMMAND_FLOW_GET] = vcctl_flow_get,
    [COMMAND_FLOW_LIST] = vcctl_flow_list,
    [COMMAND_FLOW_DESCRIBE] = vcctl_flow_describe,
    [COMMAND_TEMPLATE_CREATE] = vcctl_template_create,
    [COMMAND_TEMPLATE_DELETE] = vcctl_template_delete,
    [COMMAND_TEMPLATE_GET] = vcctl_template_get,
    [COMMAND_TEMPLATE_LIST] = vcctl_template_list,
    [COMMAND_TEMPLATE_DESCRIBE] = vcctl_template_describe,
    [COMMAND_POD_LIST] = vcctl_pod_list,
    [COMMAND_VSUB] = vcctl_vsub,
    [COMMAND_VJOBS] = vcctl_vjobs,
    [COMMAND_VQUEUES] = vcctl_vqueues,
    [COMMAND_VCANCEL] = vcctl_vcancel,
    [COMMAND_VSUSPEND] = vcctl_job_suspend,
    [COMMAND_VRESUME] = vcctl_job_resume,
};

static void vcctl_write_failure(const struct command_line *l, const struct hk_err *err,
                                struct hk_buf *out)
{
    if (l->depth == COMMAND_DEPTH) {
        hk_buf_addf(out, "Failed to %s %s: %s\n", l->path[2]->name, l->path[1]->name, err->text);
    } else {
        hk_buf_addf(out, "Failed to: %s\n", err->text);
    }
}

static int run_action(const struct command_line *l)
{
    struct vcctl v = {.line = l, .now_ns = hk_clock_system()->wall_ns(hk_clock_system())};
    struct hk_err err = {0};
    int rc = user_connect(&v.ask, command_value(l, "kubeconfig"), command_value(l, "master"),
                          "--master", &err);

    if (rc == 0) {
        rc = actions[command_leaf(l)->action](&v, &err);
    }
    if (rc < 0) {
        vcctl_write_failure(l, &err, &v.out);
    }
    const int printed = verb_print(&v.out);
    ask_close(&v.ask);
    hk_arena_fini(&v.mem);
    hk_buf_fini(&v.out);
    return rc < 0 ? EXIT_FAILED : printed;
}

static int print_help(const struct command_line *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    command_write_help(l, &out);
    return verb_print(&out);
}

/* Prints the help of the named command. */
static int run_help(const struct command_line *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct command_line about;

    if (command_follow(l->path[0], l->nwords, l->words, &about)) {
        return print_help(&about);
    }
    hk_buf_addf(&out, "Unknown help topic [`%s`]\n", l->words[0]);
    const struct command_line program = {.path = {l->path[0]}, .depth = 1};
    command_write_usage(&program, &out);
    fputs(out.data, stderr);
    return EXIT_OK;
}

static int run_version(void)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const char *unset = "Not provided.";
#if defined(__x86_64__)
    const char *arch = "amd64";
#elif defined(__aarch64__)
    const char *arch = "arm64";
#else
    const char *arch = unset;
#endif

    hk_buf_addf(&out,
                "API Version: v1alpha1\nVersion: v" HEKLA_VERSION "\nGit SHA: %s\nBuilt At: %s\n"
                "Go Version: %s\nGo OS/Arch: linux/%s\n",
                unset, unset, unset, arch);
    return verb_print(&out);
}

static void write_suggestions(const struct command *program, const char *word, struct hk_buf *out)
{
    bool any = false;

    for (uint32_t i = 0; i < program->nsubs; i++) {
        const char *name = program->subs[i].name;
        if (word_distance(word, name) <= 2 || strncasecmp(name, word, strlen(word)) == 0) {
            hk_buf_adds(out, any ? "" : "\nDid you mean this?\n");
            hk_buf_addf(out, "\t%s\n", name);
            any = true;
        }
    }
    hk_buf_adds(out, any ? "\n" : "");
}

/* Reports invalid arguments. */
static int vcctl_reject(const struct command_line *l, int rc, const struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (l->path[0]->nsubs == 0) {
        command_write_usage(l, &out);
        hk_buf_addc(&out, '\n');
    }
    hk_buf_addf(&out, "Error: %s\n", err->text);
    if (rc == -HK_ENOTFOUND) {
        write_suggestions(l->path[0], l->words[0], &out);
    }
    fputs(out.data, stderr);
    return EXIT_BAD;
}

int vcctl_main(const struct command *program, int argc, char **argv)
{
    struct command_line l;
    struct hk_err err = {0};
    const int rc = command_parse(program, argc, argv, &l, &err);

    if (rc < 0) {
        return vcctl_reject(&l, rc, &err);
    }
    if (command_bool(&l, "help")) {
        return print_help(&l);
    }
    switch (command_leaf(&l)->action) {
    case COMMAND_GROUP:
        return print_help(&l);
    case COMMAND_HELP:
        return run_help(&l);
    case COMMAND_VERSION:
        return run_version();
    default:
        return run_action(&l);
    }
}

/* ---- the verb ---- */

static int vcctl_run(const struct verb *v, int argc, char **argv)
{
    return vcctl_main(command_program(HK_STR("vcctl")), argc, argv);
}

const struct verb verb_vcctl = {
    .name = "vcctl",
    .args = "COMMAND [FLAG...]",
    .about = "run, list and control jobs and queues, as Volcano's vcctl",
    .text =
        "Volcano's command line: jobs, queues, flows, templates and pods of any cluster. 'hekla "
        "vcctl help' lists its commands, and every one of them has --help.\n" ASK_WHERE_TEXT "\n"
        "Under the names vcctl, vsub, vjobs, vqueues, vcancel, vsuspend and vresume this program "
        "behaves as the program of that name.",
    .rest = "EXIT STATUS\n"
            "       0 on success, 1 for unknown flags and commands, 255 when the command failed;\n"
            "       the failure is printed on standard output, as by Volcano's vcctl.\n",
    .run = vcctl_run,
};
