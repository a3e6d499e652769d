// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the printer only.
//
//   printer.c         the Table around the cells; columns of definitions
//   printer_columns.c  columns of each built-in kind
//   printer_cells.c   computed cells: cluster and network
//   printer_work.c    computed cells: workloads, storage and claims
//   printer_pod.c     computed cells: pods
#pragma once

#include "apiserver/printer.h"

/* Appends the text of a cell. */
typedef void print_cell_fn(const struct json *obj, int64_t now_ns, struct hk_buf *out);

enum print_how {
    PRINT_TEXT,  /* the string, number or boolean at the path, else `none` */
    PRINT_INT,   /* the number at the path, else 0 */
    PRINT_BOOL,  /* the boolean at the path, else false */
    PRINT_COUNT, /* number of elements or members at the path, plus those at the path `none` */
    PRINT_AGE,   /* time since the stamp at the path, else "<unknown>" */
    PRINT_DATE,  /* the stamp itself */
    PRINT_FN,
};

struct print_column {
    const char *name;
    enum print_how how;
    const char *path; /* dotted */
    const char *none;
    print_cell_fn *fn;
    bool wide;   /* shown with -o wide only */
    bool string; /* the column is of strings, or of booleans, whatever the cells are */
    bool boolean;
};

/* The default columns of a kind, ended by one without a name; they apply to the stored version. */
const struct print_column *print_columns(const struct rest_kind *k);

/* Time since the stamp; "<unknown>" when it is none. */
void print_age(const struct json *stamp, int64_t now_ns, struct hk_buf *out);
/* Appends text behind a comma, unless it is the first. */
void print_join(struct hk_str text, struct hk_buf *out);
/* Writes "<none>" when the cell is still empty. */
void print_none(struct hk_buf *out);
/* The members sorted by key, in a; returns how many. */
uint32_t print_members(const struct json *map, struct hk_arena *a, const struct json_member ***ret);
/* "a=b,c=d" sorted by key, "<none>" when empty. */
void print_map(const struct json *map, struct hk_buf *out);
/* The condition's status, "" when absent. */
struct hk_str print_condition(const struct json *obj, const char *type);

print_cell_fn print_pod_ready, print_pod_status, print_pod_restarts, print_pod_ip, print_pod_gates;

print_cell_fn print_node_status, print_node_roles, print_node_internal_ip, print_node_external_ip,
    print_node_kernel;
print_cell_fn print_service_ip, print_service_external, print_service_ports, print_endpoints;
print_cell_fn print_event_seen, print_event_first, print_event_object, print_event_source,
    print_event_count;
print_cell_fn print_pv_modes, print_pv_status, print_pv_claim, print_pvc_status, print_pvc_capacity,
    print_pvc_modes;
print_cell_fn print_quota_request, print_quota_limit;
print_cell_fn print_cidrs, print_address_parent;
print_cell_fn print_policy_kind, print_policy_params;
print_cell_fn print_api_service, print_api_available;
print_cell_fn print_containers, print_images, print_selector, print_selector_map,
    print_pod_selector;
print_cell_fn print_ready_of_desired, print_node_selector, print_owner;
print_cell_fn print_job_status, print_job_completions, print_job_duration;
print_cell_fn print_cron_last, print_cron_suspend, print_cron_containers, print_cron_images;
print_cell_fn print_cron_selector, print_template_containers, print_template_images;
print_cell_fn print_template_labels;
print_cell_fn print_hpa_reference, print_hpa_targets;
print_cell_fn print_class_name, print_driver_tokens, print_driver_modes, print_claim_state;
print_cell_fn print_request_duration, print_request_condition;
print_cell_fn print_ingress_hosts, print_ingress_address, print_ingress_ports;
print_cell_fn print_ingress_parameters;
print_cell_fn print_slice_ports, print_slice_endpoints;
print_cell_fn print_role, print_users, print_groups, print_service_accounts;
