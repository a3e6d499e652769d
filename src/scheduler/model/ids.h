// SPDX-License-Identifier: Apache-2.0
// Row numbers of the model's tables, one type each: swapping a task for a node does not compile.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ID_NONE UINT32_MAX

#define ID_TYPE(name)                                                                              \
    typedef struct {                                                                               \
        uint32_t i;                                                                                \
    } name

ID_TYPE(node_id);
ID_TYPE(task_id);
ID_TYPE(job_id);
ID_TYPE(sub_id); /* sub-job */
ID_TYPE(queue_id);
ID_TYPE(shape_id); /* tasks with equal requests and constraints */
ID_TYPE(cons_id);  /* constraints of a shape: affinity, tolerations, ports, spread, claims */
ID_TYPE(ident_id); /* namespace and labels of a pod */
ID_TYPE(class_id); /* nodes with equal taints, cordon and selected-on labels */
ID_TYPE(hyper_id); /* hyperNode */

/* A row remembered across cycles. Its object may be deleted and the row reused meanwhile, so a
 * reference is not an id: model_task_of() and model_node_of() return the id, or NO_TASK and NO_NODE
 * when the object is gone. A zeroed reference names nothing. */
#define REF_TYPE(name)                                                                             \
    typedef struct {                                                                               \
        uint32_t row, gen;                                                                         \
    } name

REF_TYPE(task_ref);
REF_TYPE(node_ref);

#define NO_NODE ((node_id){ID_NONE})
#define NO_TASK ((task_id){ID_NONE})
#define NO_JOB ((job_id){ID_NONE})
#define NO_SUB ((sub_id){ID_NONE})
#define NO_QUEUE ((queue_id){ID_NONE})
#define NO_HYPER ((hyper_id){ID_NONE})
#define NO_CONS ((cons_id){ID_NONE})

#define id_none(id) ((id).i == ID_NONE)
#define id_eq(a, b) ((a).i == (b).i)
