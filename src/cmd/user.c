// SPDX-License-Identifier: Apache-2.0
// Opening, asking and complaining, as the verbs of everyday do it.
#include "cmd/user.h"

#include "base/log.h"

#include <signal.h>

enum { NEAR = 3 }; /* letters; further away is no typing mistake */

/* ---- options ---- */

bool user_take(struct user_opts *o, const struct option_row *row, const char *value)
{
    const struct {
        const char *name, **at;
    } words[] = {{"kubeconfig", &o->kubeconfig}, {"server", &o->server}, {"namespace", &o->ns}};

    if (strcmp(row->name, "all-namespaces") == 0) {
        return o->all_namespaces = true;
    }
    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (strcmp(row->name, words[i].name) == 0) {
            *words[i].at = value;
            return true;
        }
    }
    return false;
}

int user_parsed(int rc)
{
    return rc < 0 ? USER_TROUBLE : USER_OK;
}

/* ---- opening ---- */

int user_open(struct user *u, const struct user_opts *o, struct hk_err *err)
{
    *u = (struct user){0};
    hk_log_set_level(HK_LOG_ERROR); /* what matters is told by the verbs themselves */
    const int rc =
        ask_open(&u->ask, o->kubeconfig ? o->kubeconfig : "", o->server ? o->server : "", err);

    if (rc == 0) {
        u->ns = o->all_namespaces ? "" : o->ns ? o->ns : client_config(u->ask.client)->ns;
    }
    return rc;
}

void user_close(struct user *u)
{
    ask_close(&u->ask);
    hk_arena_fini(&u->mem);
}

static void on_signal(void *ctx, int signo)
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

    return net_signals(u->ask.loop, signals, HK_LEN(signals), on_signal, u, err);
}

/* ---- complaining ---- */

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

/* ---- asking ---- */

const char *user_name(const char *typed)
{
    const char *slash = strrchr(typed, '/');

    return slash ? slash + 1 : typed;
}

int user_list(struct user *u, enum api_kind_id kind, const char *ns, const char *selector,
              struct answer *ret, struct hk_err *err)
{
    const struct api_kind *k = api_kind(kind);
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = k,
                                     .ns = hk_str(k->namespaced ? ns : ""),
                                     .label_selector = hk_str(selector)};

    return ask(&u->ask, &req, ret, err);
}

/* The nearest name of all, "" when none comes near. */
static const char *nearest(struct user *u, enum api_kind_id kind, const char *name)
{
    HK_AUTO(answer_fini) struct answer all = {0};
    struct hk_err err = {0};
    const char *best = "";
    size_t least = NEAR;

    if (user_list(u, kind, u->ns, NULL, &all, &err) < 0) {
        return best;
    }
    for (uint32_t i = 0; i < all.objects.len; i++) {
        const char *have = hk_arena_str(&u->mem, all.objects.at[i]->name).s;
        const bool begins = strlen(name) >= NEAR && hk_str_starts(hk_str(have), name);
        const size_t d = begins ? 0 : word_distance(name, have);
        if (d < least && strcmp(name, have) != 0) { /* else it was made meanwhile */
            least = d;
            best = have;
        }
    }
    return best;
}

int user_get(struct user *u, enum api_kind_id kind, const char *name, struct answer *ret,
             struct hk_err *err)
{
    const struct api_kind *k = api_kind(kind);
    const struct port_request req = {.verb = PORT_GET,
                                     .kind = k,
                                     .ns = hk_str(k->namespaced ? u->ns : ""),
                                     .name = hk_str(name)};
    int rc = ask(&u->ask, &req, ret, err);

    if (rc == 0 && ret->objects.len == 0) {
        return hk_fail(err, HK_EIO, "the server's answer holds no object");
    }
    if (rc != -HK_ENOTFOUND) {
        return rc;
    }
    const char *near = nearest(u, kind, name);
    if (near[0] != '\0') {
        return hk_fail(err, HK_ENOTFOUND, "no %s '%s' in namespace '%s', did you mean '%s'?",
                       k->singular, name, u->ns, near);
    }
    return hk_fail(err, HK_ENOTFOUND, "no %s '%s' in namespace '%s' (see 'hekla %s -A')",
                   k->singular, name, u->ns, k->plural);
}
