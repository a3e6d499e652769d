// SPDX-License-Identifier: Apache-2.0
// The columns of each built-in kind, as tables.
#include "apiserver/printer_priv.h"

#define TEXT(name_, path_)                                                                         \
    {                                                                                              \
        .name = (name_), .how = PRINT_TEXT, .path = (path_)                                        \
    }
#define TEXT_OR(name_, path_, none_)                                                               \
    {                                                                                              \
        .name = (name_), .how = PRINT_TEXT, .path = (path_), .none = (none_)                       \
    }
#define INT(name_, path_)                                                                          \
    {                                                                                              \
        .name = (name_), .how = PRINT_INT, .path = (path_)                                         \
    }
/* Numbers in a column of strings, as some of Kubernetes' columns are declared. */
#define INT_AS_STRING(name_, path_)                                                                \
    {                                                                                              \
        .name = (name_), .how = PRINT_INT, .path = (path_), .string = true                         \
    }
#define COUNT_AS_STRING(name_, path_, more_)                                                       \
    {                                                                                              \
        .name = (name_), .how = PRINT_COUNT, .path = (path_), .none = (more_), .string = true      \
    }
#define BOOL_AS_STRING(name_, path_)                                                               \
    {                                                                                              \
        .name = (name_), .how = PRINT_BOOL, .path = (path_), .string = true                        \
    }
#define BOOL(name_, path_)                                                                         \
    {                                                                                              \
        .name = (name_), .how = PRINT_BOOL, .path = (path_)                                        \
    }
#define COUNT(name_, path_, more_)                                                                 \
    {                                                                                              \
        .name = (name_), .how = PRINT_COUNT, .path = (path_), .none = (more_)                      \
    }
#define FN(name_, fn_)                                                                             \
    {                                                                                              \
        .name = (name_), .how = PRINT_FN, .fn = (fn_)                                              \
    }
/* A column of booleans whose cells are "True" and "False". */
#define BOOL_FN(name_, fn_)                                                                        \
    {                                                                                              \
        .name = (name_), .how = PRINT_FN, .fn = (fn_), .boolean = true                             \
    }
#define WIDE_FN(name_, fn_)                                                                        \
    {                                                                                              \
        .name = (name_), .how = PRINT_FN, .fn = (fn_), .wide = true                                \
    }
#define WIDE_OR(name_, path_, none_)                                                               \
    {                                                                                              \
        .name = (name_), .how = PRINT_TEXT, .path = (path_), .none = (none_), .wide = true         \
    }
#define NAME TEXT("Name", "metadata.name")
#define AGE                                                                                        \
    {                                                                                              \
        .name = "Age", .how = PRINT_AGE, .path = "metadata.creationTimestamp"                      \
    }
#define CREATED                                                                                    \
    {                                                                                              \
        .name = "Created At", .how = PRINT_DATE, .path = "metadata.creationTimestamp"              \
    }
#define WORKLOAD                                                                                   \
    WIDE_FN("Containers", print_containers), WIDE_FN("Images", print_images),                      \
        WIDE_FN("Selector", print_selector)

enum { MAX_COLUMNS = 12 };

static const struct print_column plain_columns[] = {NAME, CREATED, {0}};
static const struct print_column custom_columns[] = {NAME, AGE, {0}};

static const struct {
    const char *group, *plural;
    struct print_column columns[MAX_COLUMNS]; /* the last one has no name */
} kind_columns[] = {
    {"",
     "pods",
     {NAME, FN("Ready", print_pod_ready), FN("Status", print_pod_status),
      FN("Restarts", print_pod_restarts), AGE, WIDE_FN("IP", print_pod_ip),
      WIDE_OR("Node", "spec.nodeName", "<none>"),
      WIDE_OR("Nominated Node", "status.nominatedNodeName", "<none>"),
      WIDE_FN("Readiness Gates", print_pod_gates)}},
    {"",
     "nodes",
     {NAME, FN("Status", print_node_status), FN("Roles", print_node_roles), AGE,
      TEXT("Version", "status.nodeInfo.kubeletVersion"),
      WIDE_FN("Internal-IP", print_node_internal_ip),
      WIDE_FN("External-IP", print_node_external_ip),
      WIDE_OR("OS-Image", "status.nodeInfo.osImage", "<unknown>"),
      WIDE_FN("Kernel-Version", print_node_kernel),
      WIDE_OR("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>")}},
    {"", "namespaces", {NAME, TEXT("Status", "status.phase"), AGE}},
    {"",
     "services",
     {NAME, TEXT("Type", "spec.type"), FN("Cluster-IP", print_service_ip),
      FN("External-IP", print_service_external), FN("Port(s)", print_service_ports), AGE,
      WIDE_FN("Selector", print_selector_map)}},
    {"", "endpoints", {NAME, FN("Endpoints", print_endpoints), AGE}},
    {"", "configmaps", {NAME, COUNT_AS_STRING("Data", "data", "binaryData"), AGE}},
    {"", "secrets", {NAME, TEXT("Type", "type"), COUNT_AS_STRING("Data", "data", NULL), AGE}},
    {"",
     "events",
     {FN("Last Seen", print_event_seen), TEXT("Type", "type"), TEXT("Reason", "reason"),
      FN("Object", print_event_object), WIDE_OR("Subobject", "involvedObject.fieldPath", ""),
      WIDE_FN("Source", print_event_source), TEXT("Message", "message"),
      WIDE_FN("First Seen", print_event_first), WIDE_FN("Count", print_event_count),
      WIDE_OR("Name", "metadata.name", "")}},
    {"", "serviceaccounts", {NAME, COUNT_AS_STRING("Secrets", "secrets", NULL), AGE}},
    {"",
     "podtemplates",
     {NAME, FN("Containers", print_template_containers), FN("Images", print_template_images),
      FN("Pod Labels", print_template_labels)}},
    {"",
     "persistentvolumes",
     {NAME, TEXT("Capacity", "spec.capacity.storage"), FN("Access Modes", print_pv_modes),
      TEXT("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"), FN("Status", print_pv_status),
      FN("Claim", print_pv_claim), TEXT("StorageClass", "spec.storageClassName"),
      TEXT_OR("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
      TEXT("Reason", "status.reason"), AGE, WIDE_OR("VolumeMode", "spec.volumeMode", "<unset>")}},
    {"",
     "persistentvolumeclaims",
     {NAME, FN("Status", print_pvc_status), TEXT("Volume", "spec.volumeName"),
      FN("Capacity", print_pvc_capacity), FN("Access Modes", print_pvc_modes),
      TEXT("StorageClass", "spec.storageClassName"),
      TEXT_OR("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"), AGE,
      WIDE_OR("VolumeMode", "spec.volumeMode", "<unset>")}},
    {"",
     "resourcequotas",
     {NAME, FN("Request", print_quota_request), FN("Limit", print_quota_limit), AGE}},
    {"",
     "replicationcontrollers",
     {NAME, INT("Desired", "spec.replicas"), INT("Current", "status.replicas"),
      INT("Ready", "status.readyReplicas"), AGE, WIDE_FN("Containers", print_containers),
      WIDE_FN("Images", print_images), WIDE_FN("Selector", print_selector_map)}},
    {"apps",
     "controllerrevisions",
     {NAME, FN("Controller", print_owner), INT_AS_STRING("Revision", "revision"), AGE}},
    {"apps",
     "replicasets",
     {NAME, INT("Desired", "spec.replicas"), INT("Current", "status.replicas"),
      INT("Ready", "status.readyReplicas"), AGE, WORKLOAD}},
    {"apps",
     "deployments",
     {NAME, FN("Ready", print_ready_of_desired),
      INT_AS_STRING("Up-to-date", "status.updatedReplicas"),
      INT_AS_STRING("Available", "status.availableReplicas"), AGE, WORKLOAD}},
    {"apps",
     "daemonsets",
     {NAME, INT("Desired", "status.desiredNumberScheduled"),
      INT("Current", "status.currentNumberScheduled"), INT("Ready", "status.numberReady"),
      INT("Up-to-date", "status.updatedNumberScheduled"),
      INT("Available", "status.numberAvailable"), FN("Node Selector", print_node_selector), AGE,
      WORKLOAD}},
    {"apps",
     "statefulsets",
     {NAME, FN("Ready", print_ready_of_desired), AGE, WIDE_FN("Containers", print_containers),
      WIDE_FN("Images", print_images)}},
    {"batch",
     "jobs",
     {NAME, FN("Status", print_job_status), FN("Completions", print_job_completions),
      FN("Duration", print_job_duration), AGE, WORKLOAD}},
    {"batch",
     "cronjobs",
     {NAME, TEXT("Schedule", "spec.schedule"), TEXT_OR("Timezone", "spec.timeZone", "<none>"),
      BOOL_FN("Suspend", print_cron_suspend), COUNT("Active", "status.active", NULL),
      FN("Last Schedule", print_cron_last), AGE, WIDE_FN("Containers", print_cron_containers),
      WIDE_FN("Images", print_cron_images), WIDE_FN("Selector", print_cron_selector)}},
    {"autoscaling",
     "horizontalpodautoscalers",
     {NAME, FN("Reference", print_hpa_reference), FN("Targets", print_hpa_targets),
      TEXT_OR("MinPods", "spec.minReplicas", "<unset>"),
      INT_AS_STRING("MaxPods", "spec.maxReplicas"),
      INT_AS_STRING("Replicas", "status.currentReplicas"), AGE}},
    {"coordination.k8s.io", "leases", {NAME, TEXT("Holder", "spec.holderIdentity"), AGE}},
    {"scheduling.k8s.io",
     "priorityclasses",
     {NAME, INT("Value", "value"), BOOL("Global-Default", "globalDefault"), AGE,
      TEXT("PreemptionPolicy", "preemptionPolicy")}},
    {"storage.k8s.io",
     "storageclasses",
     {FN("Name", print_class_name), TEXT("Provisioner", "provisioner"),
      TEXT_OR("ReclaimPolicy", "reclaimPolicy", "Delete"),
      TEXT_OR("VolumeBindingMode", "volumeBindingMode", "Immediate"),
      BOOL_AS_STRING("AllowVolumeExpansion", "allowVolumeExpansion"), AGE}},
    {"storage.k8s.io",
     "csidrivers",
     {NAME, BOOL("AttachRequired", "spec.attachRequired"),
      BOOL("PodInfoOnMount", "spec.podInfoOnMount"),
      BOOL("StorageCapacity", "spec.storageCapacity"), FN("TokenRequests", print_driver_tokens),
      BOOL("RequiresRepublish", "spec.requiresRepublish"), FN("Modes", print_driver_modes), AGE}},
    {"storage.k8s.io",
     "csistoragecapacities",
     {NAME, TEXT("StorageClassName", "storageClassName"),
      TEXT_OR("Capacity", "capacity", "<unset>")}},
    {"storage.k8s.io",
     "volumeattachments",
     {NAME, TEXT("Attacher", "spec.attacher"), TEXT("PV", "spec.source.persistentVolumeName"),
      TEXT("Node", "spec.nodeName"), BOOL("Attached", "status.attached"), AGE}},
    {"storage.k8s.io", "csinodes", {NAME, COUNT("Drivers", "spec.drivers", NULL), AGE}},
    {"policy",
     "poddisruptionbudgets",
     {NAME, TEXT_OR("Min Available", "spec.minAvailable", "N/A"),
      TEXT_OR("Max Unavailable", "spec.maxUnavailable", "N/A"),
      INT("Allowed Disruptions", "status.disruptionsAllowed"), AGE}},
    {"networking.k8s.io",
     "ingressclasses",
     {NAME, TEXT("Controller", "spec.controller"), FN("Parameters", print_ingress_parameters),
      AGE}},
    {"networking.k8s.io", "networkpolicies", {NAME, FN("Pod-Selector", print_pod_selector), AGE}},
    {"networking.k8s.io",
     "ingresses",
     {NAME, TEXT_OR("Class", "spec.ingressClassName", "<none>"), FN("Hosts", print_ingress_hosts),
      FN("Address", print_ingress_address), FN("Ports", print_ingress_ports), AGE}},
    {"discovery.k8s.io",
     "endpointslices",
     {NAME, TEXT("AddressType", "addressType"), FN("Ports", print_slice_ports),
      FN("Endpoints", print_slice_endpoints), AGE}},
    {"networking.k8s.io", "servicecidrs", {NAME, FN("CIDRs", print_cidrs), AGE}},
    {"networking.k8s.io", "ipaddresses", {NAME, FN("ParentRef", print_address_parent), AGE}},
    {"storage.k8s.io", "volumeattributesclasses", {NAME, TEXT("DriverName", "driverName"), AGE}},
    {"rbac.authorization.k8s.io",
     "rolebindings",
     {NAME, FN("Role", print_role), AGE, WIDE_FN("Users", print_users),
      WIDE_FN("Groups", print_groups), WIDE_FN("ServiceAccounts", print_service_accounts)}},
    {"rbac.authorization.k8s.io",
     "clusterrolebindings",
     {NAME, FN("Role", print_role), AGE, WIDE_FN("Users", print_users),
      WIDE_FN("Groups", print_groups), WIDE_FN("ServiceAccounts", print_service_accounts)}},
    {"admissionregistration.k8s.io",
     "mutatingwebhookconfigurations",
     {NAME, COUNT("Webhooks", "webhooks", NULL), AGE}},
    {"admissionregistration.k8s.io",
     "validatingwebhookconfigurations",
     {NAME, COUNT("Webhooks", "webhooks", NULL), AGE}},
    {"admissionregistration.k8s.io",
     "validatingadmissionpolicies",
     {NAME, COUNT("Validations", "spec.validations", NULL), FN("ParamKind", print_policy_kind),
      AGE}},
    {"admissionregistration.k8s.io",
     "validatingadmissionpolicybindings",
     {NAME, TEXT("PolicyName", "spec.policyName"), FN("ParamRef", print_policy_params), AGE}},
    {"admissionregistration.k8s.io",
     "mutatingadmissionpolicies",
     {NAME, COUNT("Mutations", "spec.mutations", NULL), FN("ParamKind", print_policy_kind), AGE}},
    {"admissionregistration.k8s.io",
     "mutatingadmissionpolicybindings",
     {NAME, TEXT("PolicyName", "spec.policyName"), FN("ParamRef", print_policy_params), AGE}},
    {"apiregistration.k8s.io",
     "apiservices",
     {NAME, FN("Service", print_api_service), FN("Available", print_api_available), AGE}},
    {"resource.k8s.io", "resourceclaims", {NAME, FN("State", print_claim_state), AGE}},
    {"resource.k8s.io", "resourceclaimtemplates", {NAME, AGE}},
    {"resource.k8s.io", "deviceclasses", {NAME, AGE}},
    {"resource.k8s.io",
     "resourceslices",
     {NAME, TEXT("Node", "spec.nodeName"), TEXT("Driver", "spec.driver"),
      TEXT("Pool", "spec.pool.name"), AGE}},
    {"certificates.k8s.io",
     "certificatesigningrequests",
     {NAME, AGE, TEXT_OR("SignerName", "spec.signerName", "<none>"),
      TEXT("Requestor", "spec.username"), FN("RequestedDuration", print_request_duration),
      FN("Condition", print_request_condition)}},
    {"node.k8s.io", "runtimeclasses", {NAME, TEXT("Handler", "handler"), AGE}},
};

const struct print_column *print_columns(const struct rest_kind *k)
{
    k = k->kept ? k->kept : k;
    for (uint32_t i = 0; i < HK_LEN(kind_columns); i++) {
        if (strcmp(kind_columns[i].plural, k->kind->plural) == 0 &&
            strcmp(kind_columns[i].group, k->kind->group) == 0) {
            return kind_columns[i].columns;
        }
    }
    return k->flags & REST_CUSTOM ? custom_columns : plain_columns;
}
