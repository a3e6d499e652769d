// SPDX-License-Identifier: Apache-2.0
// Address of the API server and our credentials: from kubeconfig files, from the service account of
// a pod, or neither. Reads the configuration once; certificate and token files are only named,
// since they change while we run.
#pragma once

#include "codec/json.h"

/* The values of kubectl's options of the same names; unset members are NULL. */
struct kubeconfig_opts {
    const char *path;                     /* only this file; must exist */
    const char *context, *cluster, *user; /* override the files' choice */
    const char *server, *token, *ns;      /* override the chosen entries */

    /* The environment; kubeconfig_env fills it in. */
    const char *env_paths; /* KUBECONFIG: files separated by ':', the first wins */
    const char *home;      /* HOME: use .kube/config in it when env_paths is unset */
    const char *service_host, *service_port; /* KUBERNETES_SERVICE_HOST, _PORT */
    const char *account_dir;                 /* token, ca.crt and namespace of a pod */
};

/* From the process' environment. */
void kubeconfig_env(struct kubeconfig_opts *o);

struct kubeconfig_pair {
    const char *name, *value;
};

enum kubeconfig_interactive {
    KUBECONFIG_INTERACTIVE_NEVER,
    KUBECONFIG_INTERACTIVE_IF_AVAILABLE,
    KUBECONFIG_INTERACTIVE_ALWAYS,
};

/* A credential plugin. */
struct kubeconfig_exec {
    const char *api_version;
    const char *command, *install_hint; /* the hint may be NULL */
    const char *const *args;
    uint32_t nargs;
    const struct kubeconfig_pair *env;
    uint32_t nenv;
    bool cluster_info;  /* provideClusterInfo */
    const char *config; /* the cluster entry's exec extension as JSON, or NULL */
    enum kubeconfig_interactive interactive;
};

/* The chosen cluster and user. Unset members are NULL. */
struct kubeconfig {
    struct hk_arena mem;
    const char *context; /* name of the context, "" without */
    const char *server;  /* "https://host:6443/prefix", without slash at the end */
    const char *ns;      /* of the context, else "default" */
    bool in_cluster;
    bool is_guess; /* nothing names a server: this is the address that kubectl tries then */

    const char *ca_file, *ca_pem; /* at most one */
    bool insecure;
    const char *tls_server_name, *proxy_url;
    bool disable_compression;

    const char *cert_file, *cert_pem, *key_file, *key_pem;
    const char *token, *token_file; /* the file wins while it is readable */
    const char *username, *password;
    const char *as, *as_uid;
    const char *const *as_groups;
    uint32_t nas_groups;
    const struct kubeconfig_pair *as_extra; /* a name may repeat */
    uint32_t nas_extra;
    const struct kubeconfig_exec *exec;
};

/* Fails with a message that names the file, or the context, cluster or user that is wrong. */
int kubeconfig_load(const struct kubeconfig_opts *o, struct kubeconfig *ret,
                    struct hk_err *err) HK_CHECKED;
/* The same from one text; relative file names are relative to dir. */
int kubeconfig_parse(struct hk_str text, const char *dir, const struct kubeconfig_opts *o,
                     struct kubeconfig *ret, struct hk_err *err) HK_CHECKED;
void kubeconfig_fini(struct kubeconfig *k);
