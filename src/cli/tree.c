// SPDX-License-Identifier: Apache-2.0
// The table of vcctl's commands. Names, flags and texts are those of Volcano.
#include "cli/command.h"

#define FLAGS(rows) .flags = (rows), .nflags = (uint32_t)HK_LEN(rows)
#define SUBS(rows) .subs = (rows), .nsubs = (uint32_t)HK_LEN(rows)

/* ---- job ---- */

#define RESOURCES "cpu=1000m,memory=100Mi"
#define JOB_NAMESPACE                                                                              \
    {                                                                                              \
        'n', "namespace", COMMAND_STRING, "default", "the namespace of job"                        \
    }

static const struct command_flag job_run[] = {
    {'f', "filename", COMMAND_STRING, NULL, "the yaml file of job"},
    {'i', "image", COMMAND_STRING, "busybox", "the container image of job"},
    {'L', "limits", COMMAND_STRING, RESOURCES, "the resource limit of the task"},
    {'m', "min", COMMAND_INT, "1", "the minimal available tasks of job"},
    {'N', "name", COMMAND_STRING, NULL, "the name of job"},
    JOB_NAMESPACE,
    {'r', "replicas", COMMAND_INT, "1", "the total tasks of job"},
    {'R', "requests", COMMAND_STRING, RESOURCES, "the resource request of the task"},
    {'S', "scheduler", COMMAND_STRING, "volcano", "the scheduler for this job"},
};
static const struct command_flag job_list[] = {
    {0, "all-namespaces", COMMAND_BOOL, NULL, "list jobs in all namespaces"},
    JOB_NAMESPACE,
    {'q', "queue", COMMAND_STRING, NULL, "list job with specified queue name"},
    {'S', "scheduler", COMMAND_STRING, NULL, "list job with specified scheduler name"},
    {0, "selector", COMMAND_STRING, NULL, "fuzzy matching jobName"},
};
static const struct command_flag job_one[] = {
    {'N', "name", COMMAND_STRING, NULL, "the name of job"},
    JOB_NAMESPACE,
};
static const struct command jobs[] = {
    {"delete", "delete a job", FLAGS(job_one), .action = COMMAND_JOB_DELETE},
    {"list", "list job information", FLAGS(job_list), .action = COMMAND_JOB_LIST},
    {"resume", "resume a job", FLAGS(job_one), .action = COMMAND_JOB_RESUME},
    {"run", "run job by parameters from the command line", FLAGS(job_run),
     .action = COMMAND_JOB_RUN},
    {"suspend", "abort a job", FLAGS(job_one), .action = COMMAND_JOB_SUSPEND},
    {"view", "show job information", FLAGS(job_one), .action = COMMAND_JOB_VIEW},
};

/* ---- queue ---- */

static const struct command_flag queue_create[] = {
    {'n', "name", COMMAND_STRING, "test", "the name of queue"},
    {'S', "state", COMMAND_STRING, "Open", "the state of queue"},
    {'w', "weight", COMMAND_INT32, "1", "the weight of the queue"},
};
static const struct command_flag queue_one[] = {
    {'n', "name", COMMAND_STRING, NULL, "the name of queue"},
};
static const struct command_flag queue_operate[] = {
    {'a', "action", COMMAND_STRING, NULL,
     "operate action to queue, valid actions are open, close, update"},
    {'n', "name", COMMAND_STRING, NULL, "the name of queue"},
    {'w', "weight", COMMAND_INT32, "0", "the weight of the queue"},
};
static const struct command queues[] = {
    {"create", "creates queue", FLAGS(queue_create), .action = COMMAND_QUEUE_CREATE},
    {"delete", "delete queue", FLAGS(queue_one), .action = COMMAND_QUEUE_DELETE},
    {"get", "get a queue", FLAGS(queue_one), .action = COMMAND_QUEUE_GET},
    {"list", "lists all the queue", .action = COMMAND_QUEUE_LIST},
    {"operate", "operate queue", FLAGS(queue_operate), .action = COMMAND_QUEUE_OPERATE},
};

/* ---- jobflow and jobtemplate ---- */

#define FLOW_FILE(noun)                                                                            \
    {                                                                                              \
        'f', "file", COMMAND_STRING, NULL, "the path to the YAML file containing the " noun        \
    }
#define FLOW_ONE(noun)                                                                             \
    {'N', "name", COMMAND_STRING, NULL, "the name of " noun},                                      \
    {                                                                                              \
        'n', "namespace", COMMAND_STRING, "default", "the namespace of " noun                      \
    }
#define FLOW_FORMAT                                                                                \
    {                                                                                              \
        'o', "format", COMMAND_STRING, "yaml", "the format of output"                              \
    }

static const struct command_flag flow_create[] = {FLOW_FILE("jobflow")};
static const struct command_flag flow_delete[] = {FLOW_FILE("jobflow"), FLOW_ONE("jobflow")};
static const struct command_flag flow_get[] = {FLOW_ONE("jobflow")};
static const struct command_flag flow_list[] = {
    {0, "all-namespaces", COMMAND_BOOL, NULL, "list jobflows in all namespaces"},
    {'n', "namespace", COMMAND_STRING, "default", "the namespace of jobflow"},
};
static const struct command_flag flow_describe[] = {FLOW_FORMAT, FLOW_ONE("jobflow")};
static const struct command flows[] = {
    {"create", "create a jobflow", FLAGS(flow_create), .action = COMMAND_FLOW_CREATE},
    {"delete", "delete a jobflow", FLAGS(flow_delete), .action = COMMAND_FLOW_DELETE},
    {"describe", "describe a jobflow", FLAGS(flow_describe), .action = COMMAND_FLOW_DESCRIBE},
    {"get", "get a jobflow", FLAGS(flow_get), .action = COMMAND_FLOW_GET},
    {"list", "list jobflows", FLAGS(flow_list), .action = COMMAND_FLOW_LIST},
};

static const struct command_flag template_create[] = {FLOW_FILE("job template")};
static const struct command_flag template_delete[] = {FLOW_FILE("job template"),
                                                      FLOW_ONE("job template")};
static const struct command_flag template_get[] = {FLOW_ONE("job template")};
static const struct command_flag template_list[] = {
    {'n', "namespace", COMMAND_STRING, "default", "the namespace of job template"},
};
static const struct command_flag template_describe[] = {FLOW_FORMAT, FLOW_ONE("job template")};
static const struct command templates[] = {
    {"create", "create a jobtemplate", FLAGS(template_create), .action = COMMAND_TEMPLATE_CREATE},
    {"delete", "delete a jobtemplate", FLAGS(template_delete), .action = COMMAND_TEMPLATE_DELETE},
    {"describe", "describe a jobtemplate", FLAGS(template_describe),
     .action = COMMAND_TEMPLATE_DESCRIBE},
    {"get", "get a jobtemplate", FLAGS(template_get), .action = COMMAND_TEMPLATE_GET},
    {"list", "list jobtemplates", FLAGS(template_list), .action = COMMAND_TEMPLATE_LIST},
};

/* ---- pod ---- */

static const struct command_flag pod_list[] = {
    {0, "all-namespaces", COMMAND_BOOL, NULL, "list pods in all namespaces"},
    {'j', "job", COMMAND_STRING, NULL, "list pod with specified job name"},
    {'n', "namespace", COMMAND_STRING, "default", "the namespace of pod"},
    {'q', "queue", COMMAND_STRING, NULL, "list pod with specified queue name"},
};
static const struct command pods[] = {
    {"list", "list pod information created by vcjob", FLAGS(pod_list), .action = COMMAND_POD_LIST},
};

/* ---- the short forms, which swap the letters of name and namespace ---- */

#define SHORT_NAMESPACE                                                                            \
    {                                                                                              \
        'N', "namespace", COMMAND_STRING, "default", "the namespace of job"                        \
    }
#define SHORT_NAME                                                                                 \
    {                                                                                              \
        'n', "name", COMMAND_STRING, NULL, "the name of job"                                       \
    }

static const struct command_flag vsub[] = {
    {'c', "command", COMMAND_STRING, NULL, "the command of job"},
    {'i', "image", COMMAND_STRING, NULL,
     "the container image of job, overwrite the value of 'VOLCANO_DEFAULT_IMAGE' (default "
     "\"busybox\")"},
    {'L', "limits", COMMAND_STRING, RESOURCES, "the resource limit of the task"},
    {'m', "min", COMMAND_INT, "1", "the minimal available tasks of job"},
    SHORT_NAME,
    {'N', "namespace", COMMAND_STRING, NULL,
     "the namespace of job, overwrite the value of 'VOLCANO_DEFAULT_JOB_NAMESPACE' (default "
     "\"default\")"},
    {'r', "replicas", COMMAND_INT, "1", "the total tasks of job"},
    {'R', "requests", COMMAND_STRING, RESOURCES, "the resource request of the task"},
    {'S', "scheduler", COMMAND_STRING, NULL,
     "the scheduler for this job, overwrite the value of 'VOLCANO_SCHEDULER_NAME' (default "
     "\"volcano\")"},
};
static const struct command_flag vjobs[] = {
    {0, "all-namespaces", COMMAND_BOOL, NULL, "list jobs in all namespaces"},
    SHORT_NAME,
    SHORT_NAMESPACE,
    {'S', "scheduler", COMMAND_STRING, NULL, "list job with specified scheduler name"},
    {0, "selector", COMMAND_STRING, NULL, "fuzzy matching jobName"},
};
static const struct command_flag short_one[] = {SHORT_NAME, SHORT_NAMESPACE};

/* ---- the programs ---- */

static const struct command groups[] = {
    {"help", "Help about any command", .action = COMMAND_HELP},
    {"job", "vcctl command line operation job", SUBS(jobs)},
    {"jobflow", "vcctl command line operation jobflow", SUBS(flows)},
    {"jobtemplate", "vcctl command line operation jobtemplate", SUBS(templates)},
    {"pod", "vcctl command line operation pod", SUBS(pods)},
    {"queue", "Queue Operations", SUBS(queues)},
    {"version", "Print the version information", .action = COMMAND_VERSION},
};

static const struct command programs[] = {
    {"vcctl", "", SUBS(groups)},
    {"vsub", "submit a job",
     "submit a job with specified name and arguments. yaml/json file is not accepted, you may "
     "refer to kubectl.",
     FLAGS(vsub), .action = COMMAND_VSUB},
    {"vjobs", "view job information",
     "view information of a job with specified name or jobs from the same namespace", FLAGS(vjobs),
     .action = COMMAND_VJOBS},
    {"vqueues", "view queue information",
     "view information of a queue with specified name or queues from the same namespace",
     FLAGS(queue_one), .action = COMMAND_VQUEUES},
    {"vcancel", "cancel a job",
     "cancel a running, pending, or aborted job with specified name in default or specified "
     "namespace",
     FLAGS(short_one), .action = COMMAND_VCANCEL},
    {"vsuspend", "suspend a job",
     "suspend a running or pending job with specified name in default or specified namespace",
     FLAGS(short_one), .action = COMMAND_VSUSPEND},
    {"vresume", "resume a job",
     "resume an aborted job with specified name in default or specified namespace",
     FLAGS(short_one), .action = COMMAND_VRESUME},
};

const struct command *command_program(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(programs); i++) {
        if (hk_str_is(name, programs[i].name)) {
            return &programs[i];
        }
    }
    return NULL;
}

const struct command *command_program_at(uint32_t i)
{
    return i < HK_LEN(programs) ? &programs[i] : NULL;
}
