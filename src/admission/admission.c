// SPDX-License-Identifier: Apache-2.0
// The table of admission rules and the three passes over it: mutate, validate, enforce. A pass runs
// its rules in table order. Built-in plugins have Kubernetes' order: namespaces, limit ranges,
// accounts, taints, priorities, tolerations, storage classes, webhooks, and quota last.
#include "admission/admission_priv.h"

#define CORE ""
#define APPS "apps"
#define BATCH "batch"
#define STORAGE "storage.k8s.io"
#define NETWORKING "networking.k8s.io"
#define RBAC "rbac.authorization.k8s.io"
#define CERTIFICATES "certificates.k8s.io"

/* Kinds that have only defaults and field validation. */
#define KIND(in_group, its_kind, file)                                                             \
    {                                                                                              \
        .group = in_group, .kind = its_kind, .verbs = ON_WRITE, .mutate = admit_##file##_default,  \
        .validate = admit_##file##_validate                                                        \
    }

/* Kinds that have only defaults. */
#define DEFAULTS(in_group, its_kind, file)                                                         \
    {                                                                                              \
        .group = in_group, .kind = its_kind, .verbs = ON_WRITE, .mutate = admit_##file##_default   \
    }

/* Kinds with a field that never changes. */
#define FIXED(in_group, its_kind)                                                                  \
    {                                                                                              \
        .group = in_group, .kind = its_kind, .verbs = ON_UPDATE, .validate = admit_fixed_validate  \
    }

/* A status that counts pods. */
#define COUNTS(in_group, its_kind)                                                                 \
    {                                                                                              \
        .group = in_group, .kind = its_kind, .verbs = ON_UPDATE, .subresource = "status",          \
        .validate = admit_counts_validate                                                          \
    }

static const struct admit_row rows[] = {
    /* every kind */
    {.verbs = ON_WRITE, .validate = admit_meta_validate},
    {.verbs = ON_WRITE, .subresource = "status", .validate = admit_meta_validate},
    {.verbs = ON_WRITE, .validate = admit_bounds_validate},
    {.verbs = ON_WRITE, .validate = admit_unused_warn},

    /* defaults and field validation per kind */
    {CORE, "Pod", ON_WRITE, .mutate = admit_pod_default},
    {CORE, "Pod", ON_CREATE, .validate = admit_pod_validate},
    {CORE, "Pod", ON_UPDATE, .validate = admit_pod_validate_update},
    {CORE, "Pod", ON_UPDATE, "status", .validate = admit_pod_validate_status},
    {CORE, "Pod", ON_UPDATE, "ephemeralcontainers", .mutate = admit_pod_default,
     .validate = admit_pod_validate_ephemeral},
    {CORE, "Pod", ON_UPDATE, "resize", .mutate = admit_pod_default},
    KIND(CORE, "Node", node),
    {CORE, "Node", ON_UPDATE, "status", .mutate = admit_node_default,
     .validate = admit_node_validate},
    {CORE, "Namespace", ON_WRITE, .mutate = admit_namespace_default,
     .validate = admit_pod_security_labels},
    {CORE, "Namespace", ON_UPDATE, .enforce = admit_pod_security_namespace},
    KIND(CORE, "Service", service),
    {CORE, "ConfigMap", ON_WRITE, .validate = admit_configmap_validate},
    KIND(CORE, "Secret", secret),
    {CORE, "Event", ON_CREATE, .validate = admit_event_validate},
    {"events.k8s.io", "Event", ON_CREATE, .validate = admit_event_validate_new},
    KIND(CORE, "LimitRange", limitrange),
    {CORE, "ResourceQuota", ON_WRITE, .validate = admit_quota_validate},
    KIND(CORE, "PersistentVolumeClaim", pvc),
    KIND(CORE, "PersistentVolume", pv),
    KIND(CORE, "ReplicationController", rc),
    KIND(APPS, "Deployment", deployment),
    KIND(APPS, "ReplicaSet", replicaset),
    KIND(APPS, "StatefulSet", statefulset),
    KIND(APPS, "DaemonSet", daemonset),
    KIND(BATCH, "Job", job),
    {BATCH, "Job", ON_CREATE, .mutate = admit_job_prepare},
    KIND(BATCH, "CronJob", cronjob),
    COUNTS(CORE, "ReplicationController"),
    COUNTS(APPS, "Deployment"),
    COUNTS(APPS, "ReplicaSet"),
    COUNTS(APPS, "StatefulSet"),
    COUNTS(APPS, "DaemonSet"),
    COUNTS(BATCH, "Job"),
    DEFAULTS(CORE, "PodTemplate", podtemplate),
    DEFAULTS(CORE, "Endpoints", endpoints),
    DEFAULTS("discovery.k8s.io", "EndpointSlice", endpointslice),
    KIND("autoscaling", "HorizontalPodAutoscaler", autoscaler),
    DEFAULTS(NETWORKING, "NetworkPolicy", networkpolicy),
    DEFAULTS(STORAGE, "CSIDriver", csidriver),
    FIXED(APPS, "ControllerRevision"),
    FIXED("discovery.k8s.io", "EndpointSlice"),
    FIXED(NETWORKING, "IngressClass"),
    FIXED("node.k8s.io", "RuntimeClass"),
    FIXED(STORAGE, "VolumeAttachment"),
    {"coordination.k8s.io", "Lease", ON_WRITE, .validate = admit_lease_validate},
    {"policy", "PodDisruptionBudget", ON_WRITE, .validate = admit_pdb_validate},
    {"scheduling.k8s.io", "PriorityClass", ON_WRITE, NULL, admit_priority_default,
     admit_priority_validate, admit_priority_enforce},
    KIND(STORAGE, "StorageClass", storageclass),
    KIND("apiextensions.k8s.io", "CustomResourceDefinition", crd),
    KIND("apiregistration.k8s.io", "APIService", apiservice),
    {"apiextensions.k8s.io", "CustomResourceDefinition", ON_UPDATE, "status",
     .validate = admit_crd_validate_status},
    KIND("admissionregistration.k8s.io", "MutatingWebhookConfiguration", webhooks),
    KIND("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", webhooks),
    {CERTIFICATES, "CertificateSigningRequest", ON_CREATE, NULL, NULL, admit_certificate_validate,
     admit_certificate_subject},
    {CERTIFICATES, "CertificateSigningRequest", ON_UPDATE, .validate = admit_certificate_validate},
    {CERTIFICATES, "CertificateSigningRequest", ON_UPDATE, "status", NULL,
     admit_certificate_validate, admit_certificate_signing},
    {CERTIFICATES, "CertificateSigningRequest", ON_UPDATE, "approval",
     .validate = admit_meta_validate},
    {CERTIFICATES, "CertificateSigningRequest", ON_UPDATE, "approval", NULL,
     admit_certificate_validate, admit_certificate_approval},
    KIND("admissionregistration.k8s.io", "MutatingAdmissionPolicy", policy),
    KIND("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", policybinding),
    KIND("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", policy),
    KIND("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", policybinding),
    {RBAC, "Role", ON_WRITE, .validate = admit_role_validate, .enforce = admit_role_enforce},
    {RBAC, "ClusterRole", ON_WRITE, .validate = admit_role_validate, .enforce = admit_role_enforce},
    {RBAC, "RoleBinding", ON_WRITE, NULL, admit_binding_default, admit_binding_validate,
     admit_binding_enforce},
    {RBAC, "ClusterRoleBinding", ON_WRITE, NULL, admit_binding_default, admit_binding_validate,
     admit_binding_enforce},

    /* rights of the requesting user */
    {"bus.volcano.sh", "Command", ON_WRITE, .enforce = admit_command_enforce},
    {CORE, "Pod", ON_CREATE, .enforce = admit_nodename_pod},
    {.verbs = ON_WRITE, .enforce = admit_nodename_template},

    /* Pod Security Standards, and system priority classes */
    {CORE, "Pod", ON_WRITE, .enforce = admit_pod_security_pod},
    {CORE, "Pod", ON_UPDATE, "ephemeralcontainers", .enforce = admit_pod_security_pod},
    {CORE, "Pod", ON_UPDATE, "resize", .enforce = admit_pod_security_pod},
    {.verbs = ON_WRITE, .enforce = admit_pod_security_template},
    {"scheduling.volcano.sh", "PodGroup", ON_WRITE, .enforce = admit_priority_group},
    {"batch.volcano.sh", "Job", ON_WRITE, .enforce = admit_priority_group},

    /* plugins */
    {.verbs = ON_CREATE | AS_PLUGIN, .mutate = admit_namespace_lifecycle},
    {CORE, "Namespace", ON_DELETE, .enforce = admit_namespace_keep},
    {CORE, "Pod", ON_CREATE | AS_PLUGIN, .mutate = admit_limitrange_pod,
     .enforce = admit_limitrange_enforce},
    {CORE, "Pod", ON_UPDATE, "resize", .enforce = admit_limitrange_enforce},
    {CORE, "PersistentVolumeClaim", ON_WRITE, .enforce = admit_limitrange_enforce},
    {CORE, "Pod", ON_CREATE | AS_PLUGIN, .mutate = admit_serviceaccount_pod},
    {CORE, "Node", ON_CREATE | AS_PLUGIN, .mutate = admit_node_taint},
    {CORE, "Pod", ON_WRITE | AS_PLUGIN, .mutate = admit_priority_pod},
    {CORE, "Pod", ON_WRITE | AS_PLUGIN, .mutate = admit_pod_tolerations},
    {CORE, "PersistentVolumeClaim", ON_CREATE | AS_PLUGIN, .mutate = admit_pvc_class},
    /* Volcano's webhooks run after the plugins that change objects and before the quotas. The
     * initial pod status follows, because it shows the gates that they set. */
    {.verbs = ON_WRITE | ON_DELETE | AS_PLUGIN,
     .mutate = admit_volcano_mutate,
     .enforce = admit_volcano_enforce},
    {CORE, "Pod", ON_CREATE | AS_PLUGIN, .mutate = admit_pod_prepare},
    {.verbs = ON_WRITE, .enforce = admit_quota_enforce},
    {CORE, "Pod", ON_UPDATE, "resize", .enforce = admit_quota_enforce},
};

static bool applies(const struct admit_row *row, const struct admission_request *q)
{
    if (!(row->verbs & 1U << q->verb)) {
        return false;
    }
    if (row->subresource ? !q->subresource || strcmp(row->subresource, q->subresource) != 0
                         : q->subresource != NULL) {
        return false;
    }
    return !row->kind ||
           (strcmp(row->kind, q->kind->kind) == 0 && strcmp(row->group, q->kind->group) == 0);
}

static int admission_change(struct admission_request *q, bool plugins, struct hk_err *err)
{
    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (rows[i].mutate && (plugins || !(rows[i].verbs & AS_PLUGIN)) && applies(&rows[i], q)) {
            const int rc = rows[i].mutate(q, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

int admission_default(struct admission_request *q, struct hk_err *err)
{
    return admission_change(q, false, err);
}

int admission_mutate(struct admission_request *q, struct hk_err *err)
{
    return admission_change(q, true, err);
}

int admission_validate(struct admission_request *q, struct hk_err *err)
{
    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (rows[i].validate && applies(&rows[i], q)) {
            rows[i].validate(q);
        }
    }
    for (size_t i = 0; i < HK_LEN(rows) && q->errors.len == 0; i++) {
        if (rows[i].enforce && applies(&rows[i], q)) {
            const int rc = rows[i].enforce(q, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}
