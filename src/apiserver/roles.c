// SPDX-License-Identifier: Apache-2.0
// The default roles of every cluster, as tables: cluster-admin, admin, edit, view, and what every
// authenticated user may read. Volcano's kinds get the same rights as the batch kinds of
// Kubernetes.
#include "apiserver/roles.h"

#include <stddef.h>

#define READ "get list watch"
#define WRITE "create delete deletecollection patch update"

#define VIEWED_CORE                                                                                \
    "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "              \
    "replicationcontrollers replicationcontrollers/scale serviceaccounts services "                \
    "services/status bindings events limitranges namespaces namespaces/status pods/log "           \
    "pods/status replicationcontrollers/status resourcequotas resourcequotas/status"
#define VIEWED_APPS                                                                                \
    "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "              \
    "deployments/status replicasets replicasets/scale replicasets/status statefulsets "            \
    "statefulsets/scale statefulsets/status"
#define EDITED_CORE                                                                                \
    "pods pods/attach pods/exec pods/portforward pods/proxy configmaps events "                    \
    "persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "          \
    "serviceaccounts services services/proxy"
#define EDITED_APPS                                                                                \
    "daemonsets deployments deployments/rollback deployments/scale replicasets "                   \
    "replicasets/scale statefulsets statefulsets/scale"
#define VOLCANO                                                                                    \
    "batch.volcano.sh bus.volcano.sh flow.volcano.sh scheduling.volcano.sh training.volcano.sh"
#define VOLCANO_WORK "cronjobs jobs commands jobflows jobtemplates podgroups hyperjobs"
#define VOLCANO_STATES                                                                             \
    "cronjobs/status jobs/status jobflows/status jobtemplates/status podgroups/status "            \
    "hyperjobs/status"

#define CERTIFICATES "certificates.k8s.io"
#define ALL "admin edit view"
#define EDITORS "admin edit"

const char *const role_names[] = {
    "admin",
    "cluster-admin",
    "edit",
    "hekla:cluster-reader",
    "system:auth-delegator",
    "system:basic-user",
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    "system:certificates.k8s.io:kube-apiserver-client-approver",
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
    "system:certificates.k8s.io:kubelet-serving-approver",
    "system:certificates.k8s.io:legacy-unknown-approver",
    "system:discovery",
    "system:node-bootstrapper",
    "system:public-info-viewer",
    "view",
    NULL,
};

const struct role_rule role_rules[] = {
    {"cluster-admin", "*", "*", "*", NULL},
    {"cluster-admin", "*", NULL, NULL, "*"},

    {ALL, READ, "", VIEWED_CORE, NULL},
    {ALL, READ, "discovery.k8s.io", "endpointslices", NULL},
    {ALL, READ, "apps", VIEWED_APPS, NULL},
    {ALL, READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", NULL},
    {ALL, READ, "batch", "cronjobs cronjobs/status jobs jobs/status", NULL},
    {ALL, READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status", NULL},
    {ALL, READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies", NULL},
    {ALL, READ, VOLCANO, VOLCANO_WORK " " VOLCANO_STATES, NULL},

    {EDITORS, READ, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
     NULL},
    {EDITORS, "impersonate", "", "serviceaccounts", NULL},
    {EDITORS, WRITE, "", EDITED_CORE, NULL},
    {EDITORS, "create", "", "pods/eviction serviceaccounts/token", NULL},
    {EDITORS, WRITE, "apps", EDITED_APPS, NULL},
    {EDITORS, WRITE, "autoscaling", "horizontalpodautoscalers", NULL},
    {EDITORS, WRITE, "batch", "cronjobs jobs", NULL},
    {EDITORS, WRITE, "policy", "poddisruptionbudgets", NULL},
    {EDITORS, WRITE, "networking.k8s.io", "ingresses networkpolicies", NULL},
    {EDITORS, READ " " WRITE, "coordination.k8s.io", "leases", NULL},
    {EDITORS, WRITE, VOLCANO, VOLCANO_WORK, NULL},

    {"admin", "create", "authorization.k8s.io", "localsubjectaccessreviews", NULL},
    {"admin", READ " " WRITE, "rbac.authorization.k8s.io", "rolebindings roles", NULL},

    /* What a pod may ask for and which queues there are: nothing in it belongs to one user. */
    {"hekla:cluster-reader", READ, "", "nodes", NULL},
    {"hekla:cluster-reader", READ, "scheduling.k8s.io", "priorityclasses", NULL},
    {"hekla:cluster-reader", READ, "storage.k8s.io", "storageclasses", NULL},
    {"hekla:cluster-reader", READ, "scheduling.volcano.sh", "queues", NULL},
    {"hekla:cluster-reader", READ, "topology.volcano.sh", "hypernodes", NULL},

    /* For other API servers, which ask this one about their users. */
    {"system:auth-delegator", "create", "authentication.k8s.io", "tokenreviews", NULL},
    {"system:auth-delegator", "create", "authorization.k8s.io", "subjectaccessreviews", NULL},

    {"system:basic-user", "create", "authorization.k8s.io",
     "selfsubjectaccessreviews selfsubjectrulesreviews", NULL},
    {"system:basic-user", "create", "authentication.k8s.io", "selfsubjectreviews", NULL},

    {"system:discovery", "get", NULL, NULL,
     "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"},

    {"system:certificates.k8s.io:certificatesigningrequests:nodeclient", "create", CERTIFICATES,
     "certificatesigningrequests/nodeclient", NULL},
    {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "create", CERTIFICATES,
     "certificatesigningrequests/selfnodeclient", NULL},
    {"system:node-bootstrapper", "create get list watch", CERTIFICATES,
     "certificatesigningrequests", NULL},

    {"system:public-info-viewer", "get", NULL, NULL, "/healthz /livez /readyz /version /version/"},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct role_name_rule role_name_rules[] = {
    {"system:certificates.k8s.io:kube-apiserver-client-approver", "approve", CERTIFICATES,
     "signers", "kubernetes.io/kube-apiserver-client"},
    {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver", "approve", CERTIFICATES,
     "signers", "kubernetes.io/kube-apiserver-client-kubelet"},
    {"system:certificates.k8s.io:kubelet-serving-approver", "approve", CERTIFICATES, "signers",
     "kubernetes.io/kubelet-serving"},
    {"system:certificates.k8s.io:legacy-unknown-approver", "approve", CERTIFICATES, "signers",
     "kubernetes.io/legacy-unknown"},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct role_grant role_grants[] = {
    {"cluster-admin", "system:masters"},
    {"hekla:cluster-reader", "system:authenticated"},
    {"system:basic-user", "system:authenticated"},
    {"system:discovery", "system:authenticated"},
    {"system:public-info-viewer", "system:authenticated system:unauthenticated"},
    {NULL, NULL},
};
