// SPDX-License-Identifier: Apache-2.0
// Where the API server is and who we are there: from kubeconfig files, from the service account of
// a pod, or from neither. Reads the configuration once; files of certificates and tokens are named,
// not read, since they change while we run.
#pragma once

#include "codec/json.h"

/* What kubectl's options of the same names say; unset members are NULL. */
struct kubeconfig_opts {
    const char *path;                     /* this file alone, and it must exist */
    const char *context, *cluster, *user; /* instead of what the files choose */
    const char *server, *token, *ns;      /* instead of what the choice holds */

    /* The environment; kubeconfig_env fills it in. */
    const char *env_paths; /* KUBECONFIG: files separated by ':', the first wins */
    const char *home;      /* HOME: .kube/config in it, without env_paths */
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

/* A program that makes credentials. */
struct kubeconfig_exec {
    const char *api_version;
    const char *command, *install_hint; /* the hint may be NULL */
    const char *const *args;
    uint32_t nargs;
    const struct kubeconfig_pair *env;
    uint32_t nenv;
    bool cluster_info;  /* wants to hear of the cluster */
    const char *config; /* and what the cluster's entry holds for it, as JSON; NULL: nothing */
    enum kubeconfig_interactive interactive;
};

/* One cluster as one user. Unset members are NULL. */
struct kubeconfig {
    struct hk_arena mem;
    const char *context; /* its name, "" without */
    const char *server;  /* "https://host:6443/prefix", without slash at the end */
    const char *ns;      /* of the context, else "default" */
    bool in_cluster;

    const char *ca_file, *ca_pem; /* at most one */
    bool insecure;
    const char *tls_server_name, *proxy_url;
    bool disable_compression;

    const char *cert_file, *cert_pem, *key_file, *key_pem;
    const char *token, *token_file; /* the file wins while it can be read */
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
/* The same from one text, whose relative file names belong to dir. */
int kubeconfig_parse(struct hk_str text, const char *dir, const struct kubeconfig_opts *o,
                     struct kubeconfig *ret, struct hk_err *err) HK_CHECKED;
void kubeconfig_fini(struct kubeconfig *k);
