// SPDX-License-Identifier: Apache-2.0
// Credential plugins: a program of the user's kubeconfig that prints an ExecCredential. It runs
// beside the loop, which never waits for it.
#pragma once

#include "client/kubeconfig.h"
#include "net/loop.h"

/* What a plugin gave us; unset members are NULL. */
struct exec_credential {
    char *token, *cert_pem, *key_pem;
    int64_t expires_ns; /* wall; INT64_MAX: it does not say */
};
void exec_credential_fini(struct exec_credential *c);
/* Reads the plugin's output, which must be of that apiVersion. */
int exec_credential_parse(struct hk_str text, const char *api_version, struct exec_credential *ret,
                          struct hk_err *err) HK_CHECKED;

/* What KUBERNETES_EXEC_INFO tells the plugin. */
void exec_plugin_info(const struct kubeconfig *k, bool interactive, struct hk_buf *out);

struct exec_plugin;

/* Called once, from the loop; cred (NULL on failure) may be taken over by copying and zeroing it.
 * The plugin may be freed from here. */
typedef void exec_plugin_fn(void *ctx, int rc, struct exec_credential *cred,
                            const struct hk_err *err);

struct exec_plugin_opts {
    struct net_loop *loop;
    const struct kubeconfig *config; /* outlives the run */
    bool terminal;                   /* the user can be asked on standard input */
    int64_t timeout_ms;
    exec_plugin_fn *done;
    void *ctx;
};
int exec_plugin_start(const struct exec_plugin_opts *o, struct exec_plugin **ret,
                      struct hk_err *err) HK_CHECKED;
/* Kills the program when it still runs; done is not called any more. Takes NULL. */
void exec_plugin_free(struct exec_plugin *p);
