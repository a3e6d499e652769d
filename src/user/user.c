// SPDX-License-Identifier: Apache-2.0
// Opens the connection, sends requests and prints errors for the user verbs.
#include "user/user.h"

#include "base/log.h"
#include "cli/word.h"

#include <signal.h>

/* ---- options ---- */

const struct option_row user_namespace_options[] = {
    ROW_TEXT_OR('n', "namespace", "NAMESPACE", struct user_opts, ns,
                "the one of the kubeconfig's context", "The namespace."),
    ROW_END,
};

const struct option_row user_all_options[] = {
    ROW_FLAG('A', "all-namespaces", struct user_opts, all_namespaces,
             "All namespaces, with a column for them."),
    ROW_END,
};

const struct option_row user_server_options[] = {
    ROW_TEXT_OR(0, "kubeconfig", "FILE", struct user_opts, kubeconfig,
                "$KUBECONFIG, else a server of 'hekla up' in its default directory, else "
                "~/.kube/config",
                "The file with the address of the server and your credentials."),
    ROW_TEXT(0, "server", "URL", struct user_opts, server, NULL,
             "The address of the server. It replaces the address in the kubeconfig."),
    ROW_END,
};

int user_parsed(int rc)
{
    return rc < 0 ? USER_TROUBLE : USER_OK;
}

/* ---- opening ---- */

int user_connect(struct ask *a, const char *kubeconfig, const char *server, const char *option,
                 struct hk_err *err)
{
    const int rc = ask_open(a, kubeconfig, server, err);

    if (rc < 0 || !client_config(a->client)->is_guess) {
        return rc;
    }
    ask_close(a);
    return hk_fail(err, HK_ENOTFOUND,
                   "no server: 'hekla up' does not run in its default directory, and neither "
                   "%s, --kubeconfig, $KUBECONFIG nor ~/.kube/config names one ('hekla up "
                   "--detach' starts a server)",
                   option);
}

int user_open(struct user *u, const struct user_opts *o, struct hk_err *err)
{
    *u = (struct user){0};
    hk_log_set_level(HK_LOG_ERROR); /* the verbs print what matters themselves */
    const int rc = user_connect(&u->ask, o->kubeconfig ? o->kubeconfig : "",
                                o->server ? o->server : "", "--server", err);

    if (rc < 0) {
        return rc;
    }
    u->ns = o->all_namespaces ? "" : o->ns ? o->ns : client_config(u->ask.client)->ns;
    return 0;
}

void user_close(struct user *u)
{
    ask_close(&u->ask);
    hk_arena_fini(&u->mem);
}

static void user_on_signal(void *ctx, int signo)
{
    struct user *u = ctx;

    if (u->interrupted) {
        sigset_t all;
        sigfillset(&all);
        signal(signo, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        raise(signo);
    }
    u->interrupted = true;
}

int user_catch(struct user *u, struct hk_err *err)
{
    static const int signals[] = {SIGINT};

    return net_signals(u->ask.loop, signals, HK_LEN(signals), user_on_signal, u, err);
}

/* ---- errors ---- */

static bool is_unreachable(const struct hk_err *err)
{
    static const char *const words[] = {"connect to", "Connection refused", "resolve host",
                                        "Could not resolve"};

    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (strstr(err->text, words[i])) {
            return true;
        }
    }
    return false;
}

int user_fail(const struct verb *v, int rc, const struct hk_err *err)
{
    const char *hint = "";

    if ((rc == -HK_EIO || rc == -HK_EBUSY || rc == -HK_ETIMEOUT) && is_unreachable(err)) {
        hint = " (see 'hekla status'; 'hekla up --detach' starts a server)";
    }
    verb_complain("%s: %s%s", v->name, err->text, hint);
    return USER_TROUBLE;
}

/* ---- requests ---- */

const char *user_name(const char *typed)
{
    const char *slash = strrchr(typed, '/');

    return slash ? slash + 1 : typed;
}

void user_names(struct option_list *typed)
{
    for (uint32_t i = 0; i < typed->len; i++) {
        typed->at[i] = user_name(typed->at[i]);
    }
}

int user_list(struct user *u, enum api_kind_id kind, const char *ns, const char *selector,
              struct port_answer *ret, struct hk_err *err)
{
    const struct api_kind *k = api_kind(kind);
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = k,
                                     .ns = hk_str(k->namespaced ? ns : ""),
                                     .label_selector = hk_str(selector)};

    return ask(&u->ask, &req, ret, err);
}

/* The existing name closest to the typed one; "": none is close. */
static const char *user_nearest(struct user *u, enum api_kind_id kind, const char *name)
{
    HK_AUTO(port_answer_fini) struct port_answer all = {0};
    struct hk_err err = {0};
    const char *best = "";
    size_t least = SIZE_MAX;

    if (user_list(u, kind, u->ns, NULL, &all, &err) < 0) {
        return best;
    }
    for (uint32_t i = 0; i < all.objects.len; i++) {
        const char *have = hk_arena_str(&u->mem, all.objects.at[i]->name).s;
        const size_t d = word_distance(name, have);
        if (d > 0 && d < least && word_is_near(name, have)) { /* 0: created since then */
            least = d;
            best = have;
        }
    }
    return best;
}

int user_find(struct user *u, enum api_kind_id kind, const char *name, struct port_answer *ret,
              struct hk_err *err)
{
    const struct api_kind *k = api_kind(kind);
    const struct port_request req = {.verb = PORT_GET,
                                     .kind = k,
                                     .ns = hk_str(k->namespaced ? u->ns : ""),
                                     .name = hk_str(name)};
    const int rc = ask(&u->ask, &req, ret, err);

    if (rc == 0 && ret->objects.len == 0) {
        return hk_fail(err, HK_EIO, "the server's answer holds no object");
    }
    if (rc != -HK_ENOTFOUND) {
        return rc;
    }
    return k->namespaced ? hk_fail(err, HK_ENOTFOUND,
                                   "no %s '%s' in namespace '%s' (see 'hekla "
                                   "%s -A')",
                                   k->singular, name, u->ns, k->plural)
                         : hk_fail(err, HK_ENOTFOUND, "no %s '%s' (see 'hekla %s')", k->singular,
                                   name, k->plural);
}

int user_get(struct user *u, enum api_kind_id kind, const char *name, struct port_answer *ret,
             struct hk_err *err)
{
    const struct api_kind *k = api_kind(kind);
    const int rc = user_find(u, kind, name, ret, err);
    const char *near = rc == -HK_ENOTFOUND ? user_nearest(u, kind, name) : "";

    if (near[0] == '\0') {
        return rc;
    }
    return k->namespaced
               ? hk_fail(err, HK_ENOTFOUND, "no %s '%s' in namespace '%s', did you mean '%s'?",
                         k->singular, name, u->ns, near)
               : hk_fail(err, HK_ENOTFOUND, "no %s '%s', did you mean '%s'?", k->singular, name,
                         near);
}

/* ---- verbs for several objects ---- */

static int user_act(const struct verb *v, struct user_each_args *a,
                    int (*act)(struct user *u, const char *name, struct hk_err *err))
{
    HK_AUTO(user_close) struct user u = {0};
    struct hk_err err = {0};
    int status = USER_OK;
    int rc = user_open(&u, &a->user, &err);

    if (rc < 0) {
        return user_fail(v, rc, &err);
    }
    for (uint32_t i = 0; i < a->names.len; i++) {
        rc = act(&u, a->names.at[i], &err);
        if (rc < 0) {
            status = user_fail(v, rc, &err);
        }
    }
    return status;
}

int user_each(const struct verb *v, int argc, char **argv, const char *missing,
              int (*act)(struct user *u, const char *name, struct hk_err *err))
{
    struct user_each_args a = {0};
    const int rc = verb_parse(v, argc, argv, &a);
    int status = USER_TROUBLE;

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.names.len == 0) {
        verb_complain("%s: %s", v->name, missing);
    } else {
        user_names(&a.names);
        status = user_act(v, &a, act);
    }
    hk_vec_fini(&a.names);
    return status;
}
