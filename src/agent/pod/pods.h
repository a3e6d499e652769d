// SPDX-License-Identifier: Apache-2.0
// The pods of an agent: which there are, how to find one, and which need a step.
#pragma once

#include "agent/pod/pod.h"
#include "base/heap.h"
#include "base/map.h"

struct nodes;
struct service_names;

/* A time for the step of a pod. Checked when due: the pod may be gone, or due later. */
struct pods_alarm {
    int64_t at_ns;
    uint32_t slot;
};

/* A resource of the node and the amount for pods: milli-units of cpu, else units. */
struct pods_room {
    struct hk_str resource;
    int64_t room;
};

/* Amounts that pods book; see fit.h. */
struct pods_books {
    HK_VEC(struct pods_room) rows;
    uint32_t nwaiting; /* pods that wait for others to end */
    bool open;         /* judge new pods as they arrive */
};

struct pods {
    struct host *host;
    struct nodes *nodes;         /* where they run */
    HK_VEC(struct pod *) active; /* without resting ones */
    HK_VEC(struct pod *) slots;  /* all pods, NULL: free */
    HK_VEC(uint32_t) vacant;     /* free slots */
    /* Slots by hashes of uid, and of namespace and name. */
    struct hk_map by_uid, by_name;
    struct hk_map by_container; /* slots by the runtime's id of container or command */
    struct hk_map by_address;   /* slots by number of the address */
    HK_VEC(uint32_t) touched;   /* slots of pods that need a step */
    HK_VEC(struct pods_alarm) alarms;
    HK_VEC(uint32_t) vacant_alarms;
    struct hk_heap alarm_queue;          /* rows of alarms, earliest first */
    struct service_names *service_names; /* NULL: pods get no names of Services */
    int64_t hosts_due_ns;                /* write no hosts files before */
    HK_VEC(struct source *) sources;
    struct pods_books books;
};

void pods_init(struct pods *ps, struct host *h, struct nodes *nodes);
/* The pods are freed already. */
void pods_fini(struct pods *ps);
/* NULL when there is none; the newest of several. */
struct pod *pods_find(const struct pods *ps, struct hk_str uid);
struct pod *pods_find_named(const struct pods *ps, struct hk_str ns, struct hk_str name);
/* The pod that runs this container or command; NULL: none. */
struct pod *pods_find_owner(const struct pods *ps, uint64_t container);
/* Forgets the owner of a container that has ended. */
void pods_disown(struct pods *ps, uint64_t container);

/* Adds a new pod to its set and queues it. */
void pods_add(struct pod *p);
/* Takes the pod out of the active ones. */
void pods_deactivate(struct pod *p);
/* Removes an inactive pod from the set. */
void pods_remove(struct pod *p);
/* Wakes the pod when it is due. */
void pods_set_alarm(struct pod *p);
/* Touches the pods that are due; returns when the next one is due. */
int64_t pods_run_alarms(struct pods *ps, int64_t now_ns);

/* Queues the pod for a step in the next run. */
void pod_touch(struct pod *p);
/* Routes the end of that container or command to the pod. */
void pod_claim(struct pod *p, uint64_t container);
