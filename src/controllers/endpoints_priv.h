// SPDX-License-Identifier: Apache-2.0
// Shared by the controller of endpoints only: the endpoints of one Service, as a pass computes them.
#pragma once

#include "controllers/ctl.h"
#include "controllers/pass.h"

struct endpoint {
    struct json facts; /* of the pod, see endpoint_pods.c */
    struct hk_str address;
    uint32_t group; /* in endpoints_view.groups */
    bool ready, serving, terminating;
};

/* Endpoints that listen on the same ports. */
struct endpoint_group {
    struct json ports; /* array of {name, port, protocol} */
};

/* One Service and all of its endpoints; everything in the memory of the pass. */
struct endpoints_view {
    struct pass *t;
    const struct json *service;
    struct hk_str name;
    bool headless;
    bool publish; /* publishNotReadyAddresses */
    HK_VEC(struct endpoint) at;
    HK_VEC(struct endpoint_group) groups;
};

/* The labels of the Service, and the one that marks those of headless Services. */
struct json endpoints_make_labels(const struct endpoints_view *v);
/* The hostname under which the Service names the endpoint; "" none. */
struct hk_str endpoints_hostname(const struct endpoints_view *v, const struct endpoint *e);

/* ---- endpoints_slice.c ---- */

/* Requests the writes that make the EndpointSlices fit. */
void endpoints_write_slices(struct ctl *c, const struct endpoints_view *v);
/* Removes those of the Service that this controller made. */
void endpoints_remove_slices(struct ctl *c, struct pass *t);
