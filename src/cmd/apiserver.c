// SPDX-License-Identifier: Apache-2.0
// hekla apiserver: the store and the Kubernetes API over it, in one process.
#include "host/host.h"

struct apiserver_opts {
    struct host_opts host;
};

static const struct option_row options[] = {
    HOST_OPTION_DATA_DIR(struct apiserver_opts, host, NULL),
    ROW_INCLUDE(struct apiserver_opts, host, host_listen_options),
    ROW_INCLUDE(struct apiserver_opts, host, host_toleration_options),
    ROW_INCLUDE(struct apiserver_opts, host, host_store_options),
    ROW_INCLUDE(struct apiserver_opts, host, host_limit_options),
    ROW_END,
};

static int apiserver_serve(struct host *h, const struct host_opts *o, struct hk_err *err)
{
    int rc = host_open(h, o, err);

    if (rc < 0) {
        return rc;
    }
    rc = host_announce(h, o, "apiserver", err);
    if (rc < 0) {
        return rc;
    }
    return net_loop_run(h->loop, err);
}

static int apiserver(const struct host_opts *o)
{
    struct host h = {0};
    struct hk_err err = {0};
    const int rc = apiserver_serve(&h, o, &err);

    host_close(&h);
    return rc < 0 ? verb_complain("apiserver: %s", err.text) : EXIT_OK;
}

static int apiserver_run(const struct verb *v, int argc, char **argv)
{
    struct apiserver_opts o = {0};
    const int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!o.host.dir) {
        return verb_complain("apiserver: --data-dir DIR is required (see 'hekla help apiserver')");
    }
    return apiserver(&o.host);
}

const struct verb verb_apiserver = {
    .name = "apiserver",
    .args = "--data-dir DIR",
    .about = "serve the Kubernetes API from a directory on this machine",
    .options = options,
    .text = "A Kubernetes API server without the cluster. It stores objects of the built-in "
            "kinds, of Volcano's kinds and of any CustomResourceDefinition in a durable database, "
            "and serves them to kubectl, client-go and every other client of the API. A write "
            "that was answered survives a crash of the program and of the machine.\n"
            "The first start creates an authority, a serving certificate for localhost, "
            "127.0.0.1, the host name and the listen address, and a token for the user admin. "
            "When the server is ready it prints one line with its address and the kubeconfig to "
            "use. Later starts keep the credentials; the kubeconfig always names the current "
            "address.\n"
            "The API is served over TLS only. Requests need a bearer token from DIR/tokens.csv, "
            "or a client certificate signed by DIR/ca.crt, or a token of a service account "
            "(kubectl create token). Members of the group system:masters may do everything, "
            "others what Roles, ClusterRoles and their bindings allow; the usual roles "
            "(cluster-admin, admin, edit, view) exist from the start. /version, /healthz, /livez "
            "and /readyz need no credentials; /metrics is in the format of Prometheus.\n"
            "While the disk is full or fails, writes are answered with an error and /readyz "
            "reports that the server is not ready; reads continue. Writes work again as soon as "
            "the disk does.\n"
            "SIGTERM and SIGINT end the server: watches are closed, requests in progress are "
            "answered, and everything is on disk when the program exits. SIGHUP does nothing: the "
            "log goes to standard error.",
    .rest = "FILES\n"
            "       DIR/store.db               the objects and their history\n"
            "       DIR/kubeconfig             for kubectl; holds the administrator's token\n"
            "       DIR/tokens.csv             token,user,uid,\"group,group\" one per line, read "
            "at start\n"
            "       DIR/ca.crt, DIR/ca.key     the authority\n"
            "       DIR/front-proxy-ca.crt, DIR/front-proxy-ca.key\n"
            "                                  the authority of the certificate that other API "
            "servers see\n"
            "       DIR/sa.key                 signs the tokens of service accounts\n"
            "       DIR/server.crt, server.key the serving certificate; renewed before it expires\n"
            "\n"
            "EXIT STATUS\n"
            "       0  ended by a signal\n"
            "       1  could not start or continue; one line on standard error says why\n"
            "\n"
            "EXAMPLES\n"
            "       An API server for a test, on a free port:\n"
            "           hekla apiserver --data-dir /tmp/api --listen 127.0.0.1:0\n"
            "\n"
            "       Use it:\n"
            "           export KUBECONFIG=/tmp/api/kubeconfig\n"
            "           kubectl create configmap greeting --from-literal=word=hello\n"
            "           kubectl get configmaps\n"
            "\n"
            "       The same with curl:\n"
            "           token=$(cut -d, -f1 /tmp/api/tokens.csv)\n"
            "           curl --cacert /tmp/api/ca.crt -H \"Authorization: Bearer $token\" \\\n"
            "               https://127.0.0.1:6443/api/v1/namespaces\n",
    .run = apiserver_run,
};
