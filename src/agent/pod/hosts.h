// SPDX-License-Identifier: Apache-2.0
// Names and addresses of pods.
#pragma once

#include "agent/pod/pods.h"

/* Gives the pod the address stored in its directory, or one unused on this node. */
int pod_hosts_address(struct pod *p, struct hk_err *err) HK_CHECKED;
void pod_hosts_release(struct pod *p);
/* Removes the address and hosts files of a pod that no longer runs. */
void pod_hosts_remove(const struct pod *p);
/* Path of a file of the pod that need not survive a reboot. */
const char *pod_hosts_file(const struct pod *p, const char *what, struct hk_arena *a);
const char *pod_hosts_path(const struct pod *p, struct hk_arena *a);
/* The name of the kernel for its containers: the hostname, or with setHostnameAsFQDN and a subdomain
 * the fully qualified one, which fails when it is longer than 64 characters. */
int pod_hosts_own_name(const struct pod *p, struct hk_arena *a, const char **ret,
                       struct hk_err *err) HK_CHECKED;
/* The namespace of the running pod with that IPv4 address, in the byte order of the host; {0}: none. */
struct hk_str pod_hosts_namespace(const struct pods *ps, uint32_t address);
/* The pod was added or removed: marks the hosts files of its group as outdated. */
void pod_hosts_changed(struct pod *p);
/* Writes only this pod's hosts file. */
void pod_hosts_write_own(struct pod *p);
/* Services have changed: marks the hosts files of all pods of the set as outdated. */
void pod_hosts_services_changed(void *pods);
/* Writes outdated hosts files; returns when to do so again, INT64_MAX: none is left. */
int64_t pod_hosts_tick(struct pods *ps, int64_t now_ns);
