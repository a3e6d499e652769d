// SPDX-License-Identifier: Apache-2.0
// Credential plugins: a program named in the kubeconfig that prints an ExecCredential. It runs in
// parallel to the loop, which never waits for it.
#pragma once

#include "client/kubeconfig.h"
#include "net/loop.h"

/* A plugin's result; unset members are NULL. */
struct exec_credential {
    char *token, *cert_pem, *key_pem;
    int64_t expires_ns; /* wall; INT64_MAX: not given */
};
void exec_credential_fini(struct exec_credential *c);
/* Parses the plugin's output, which must have that apiVersion. */
int exec_credential_parse(struct hk_str text, const char *api_version, struct exec_credential *ret,
                          struct hk_err *err) HK_CHECKED;

/* The value of KUBERNETES_EXEC_INFO. */
void exec_plugin_info(const struct kubeconfig *k, bool interactive, struct hk_buf *out);

struct exec_plugin;

/* Called once, from the loop; to take over cred (NULL on failure), copy and zero it. May free the
 * plugin. */
typedef void exec_plugin_fn(void *ctx, int rc, struct exec_credential *cred,
                            const struct hk_err *err);

struct exec_plugin_opts {
    struct net_loop *loop;
    const struct kubeconfig *config; /* outlives the run */
    bool terminal;                   /* the plugin may ask the user on standard input */
    int64_t timeout_ms;
    exec_plugin_fn *done;
    void *ctx;
};
int exec_plugin_start(const struct exec_plugin_opts *o, struct exec_plugin **ret,
                      struct hk_err *err) HK_CHECKED;
/* Kills the program when it still runs; done is not called any more. Takes NULL. */
void exec_plugin_free(struct exec_plugin *p);
