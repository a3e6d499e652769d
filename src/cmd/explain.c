// SPDX-License-Identifier: Apache-2.0
// hekla explain: shows why a job waits, and what would let it start. Reads the cluster through the
// port, loads it into the scheduler's engine, and queries that.
#include "explain/explain.h"
#include "base/file.h"
#include "cli/show_explain.h"
#include "cli/word.h"
#include "codec/yaml.h"
#include "daemon/conf_map.h"
#include "scheduler/ingest.h"
#include "user/user.h"

#include <time.h>
#include <unistd.h>

enum { MAX_CONF = 1 << 20, TRIES_MAX = 100000, BUDGET_S = 20, PAUSE_S = 2 };

struct request {
    const char *what;
    const char *conf; /* NULL: the cluster's */
    struct verb_output output;
    struct user_opts user;
    int64_t tries;
    bool watch;
};

static const struct option_row options[] = {
    ROW_INCLUDE(struct request, user, user_namespace_options),
    ROW_TEXT_OR(0, "conf", "FILE", struct request, conf,
                "the ConfigMap " CONF_MAP_NS "/" CONF_MAP_NAME
                ", which Volcano's installation uses and 'hekla up --conf' keeps, else the "
                "built-in configuration",
                "The configuration of the scheduler."),
    ROW_INT(0, "tries", "N", struct request, tries, 0, TRIES_MAX, "64",
            "Try at most N changes, for at most 20 seconds. 0 explains why the job waits and tries "
            "nothing."),
    ROW_FLAG('w', "watch", struct request, watch,
             "Repeat every two seconds until the job runs or has ended. A terminal shows the "
             "latest answer; elsewhere an answer is printed when it differs from the last."),
    ROW_INCLUDE(struct request, output, verb_output_options),
    ROW_INCLUDE(struct request, user, user_server_options),
    ROW_ARGUMENT("JOB", struct request, what),
    ROW_END,
};

/* ---- reading the cluster ---- */

struct work {
    const struct request *q;
    struct user user;
    struct port_answer objects;
    struct hk_arena mem;
    struct json notes;
    struct conf *conf;
};

static void cmd_explain_add_note(struct work *w, const char *fmt, ...) HK_PRINTF(2, 3);
static void cmd_explain_add_note(struct work *w, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    json_push(&w->notes, &w->mem, json_make_str(hk_arena_str(&w->mem, hk_buf_str(&b))));
}

static int cmd_explain_list(struct work *w, enum api_kind_id kind, const char *ns,
                            struct hk_err *err)
{
    const struct port_request req = {.verb = PORT_LIST, .kind = api_kind(kind), .ns = hk_str(ns)};

    return ask(&w->user.ask, &req, &w->objects, err);
}

/* If the list fails, adds a note and continues without the kind, which a cluster need not have. */
static void list_optional(struct work *w, enum api_kind_id kind, const char *ns)
{
    struct hk_err why = {0};
    const int rc = cmd_explain_list(w, kind, ns, &why);

    if (rc < 0 && rc != -HK_ENOTFOUND) {
        cmd_explain_add_note(w, "%s were left out: %s", api_kind(kind)->plural, why.text);
    }
}

/* Why steps of flows could not begin: only their events say so. */
static void list_flow_events(struct work *w)
{
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = api_kind(API_EVENT),
                                     .ns = hk_str(w->user.ns),
                                     .field_selector = HK_STR("reason=FailedStep")};
    const uint32_t n = w->objects.objects.len;

    if (n > 0 && w->objects.objects.at[n - 1]->kind->id == API_JOBFLOW) {
        (void)!ask(&w->user.ask, &req, &w->objects, NULL);
    }
}

static int cmd_explain_read_cluster(struct work *w, struct hk_err *err)
{
    int rc = cmd_explain_list(w, API_JOB, w->user.ns, err);

    if (rc < 0) {
        return rc;
    }
    for (uint32_t k = 0; k < INGEST_NKINDS; k++) {
        const struct ingest_kind *kind = &ingest_kinds[k];
        if (!kind->required) {
            list_optional(w, kind->id, "");
            continue;
        }
        rc = cmd_explain_list(w, kind->id, "", err);
        if (rc < 0) {
            return hk_wrap(err, rc, "cannot see what the scheduler sees");
        }
    }
    list_optional(w, API_JOBFLOW, w->user.ns);
    list_flow_events(w);
    return 0;
}

/* ---- the configuration ---- */

static int parse_conf(struct work *w, struct hk_str text, const char *from, struct hk_err *err)
{
    const int rc = conf_parse(text, &w->conf, err);

    return rc < 0 ? hk_wrap(err, rc, "%s", from) : 0;
}

/* Ignores a configuration that the scheduler would refuse: it does not run with it. */
static int conf_of_cluster(struct work *w, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer map = {0};
    const struct port_request req = {.verb = PORT_GET,
                                     .kind = api_kind(API_CONFIGMAP),
                                     .ns = HK_STR(CONF_MAP_NS),
                                     .name = HK_STR(CONF_MAP_NAME)};
    struct hk_err why = {0};
    const int rc = ask(&w->user.ask, &req, &map, &why);

    if (rc == 0 && map.objects.len > 0) {
        const struct json *text =
            json_get(json_get(&map.objects.at[0]->root, "data"), CONF_MAP_KEY);
        if (json_is(text, JSON_STRING) &&
            parse_conf(w, json_str(text, HK_STR("")), CONF_MAP_NAME, &why) == 0) {
            return 0;
        }
        cmd_explain_add_note(w, "the built-in configuration was used: %s",
                             why.text[0] ? why.text : CONF_MAP_NAME " has no " CONF_MAP_KEY);
    } else if (rc < 0 && rc != -HK_ENOTFOUND) {
        cmd_explain_add_note(w, "the built-in configuration was used: %s", why.text);
    }
    return parse_conf(w, hk_str(conf_default_text), "built in", err);
}

static int cmd_explain_read_conf(struct work *w, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (!w->q->conf) {
        return conf_of_cluster(w, err);
    }
    const int rc = hk_read_file(w->q->conf, MAX_CONF, &text, err);
    return rc < 0 ? rc : parse_conf(w, hk_buf_str(&text), w->q->conf, err);
}

/* ---- the subject ---- */

static const struct {
    const char *word;
    enum api_kind_id kind;
} words[] = {
    {"job", API_JOB},
    {"jobs", API_JOB},
    {"vcjob", API_JOB},
    {"podgroup", API_PODGROUP},
    {"pg", API_PODGROUP},
    {"pod", API_POD},
    {"pods", API_POD},
    {"queue", API_QUEUE},
    {"queues", API_QUEUE},
    {"q", API_QUEUE},
    {"po", API_POD},
    {"vj", API_JOB},
    {"podgroups", API_PODGROUP},
    {"jobflow", API_JOBFLOW},
    {"jobflows", API_JOBFLOW},
    {"jf", API_JOBFLOW},
};

static bool exists(const struct work *w, enum api_kind_id kind, struct hk_str ns,
                   struct hk_str name)
{
    for (uint32_t k = 0; k < w->objects.objects.len; k++) {
        const struct api_object *o = w->objects.objects.at[k];
        if (o->kind->id == kind && hk_str_eq(o->name, name) && hk_str_eq(o->ns, ns)) {
            return true;
        }
    }
    return false;
}

/* "KIND/NAME", or a name: of a job, else of any other object. */
static int find_subject(const struct work *w, struct explain_subject *ret, struct hk_err *err)
{
    static const enum api_kind_id order[] = {API_JOB, API_JOBFLOW, API_PODGROUP, API_POD};
    struct hk_str name = hk_str(w->q->what), word;

    *ret = (struct explain_subject){.kind = API_JOB, .ns = hk_str(w->user.ns), .name = name};
    if (!strchr(w->q->what, '/')) {
        for (size_t k = 0; k < HK_LEN(order); k++) {
            if (exists(w, order[k], ret->ns, name)) {
                ret->kind = order[k];
                break;
            }
        }
        return 0;
    }
    hk_str_cut(&name, '/', &word);
    for (size_t k = 0; k < HK_LEN(words); k++) {
        if (hk_str_is(word, words[k].word)) {
            ret->kind = words[k].kind;
            ret->name = name;
            ret->ns = words[k].kind == API_QUEUE ? HK_STR("") : ret->ns;
            return 0;
        }
    }
    return hk_fail(err, HK_EINVAL, "'%s': want job, podgroup, pod, queue or jobflow before the /",
                   w->q->what);
}

/* An object of the kind with a similar name. */
static const struct api_object *cmd_explain_nearest(const struct work *w,
                                                    const struct explain_subject *s)
{
    const struct api_object *best = NULL;
    size_t least = SIZE_MAX;

    for (uint32_t k = 0; k < w->objects.objects.len; k++) {
        const struct api_object *o = w->objects.objects.at[k];
        if (o->kind->id == s->kind && hk_str_eq(o->ns, s->ns)) {
            HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
            hk_buf_addstr(&name, o->name);
            const size_t d = word_distance(w->q->what, name.data);
            if (d < least && word_is_near(w->q->what, name.data)) {
                least = d;
                best = o;
            }
        }
    }
    return best;
}

/* ---- the answer ---- */

static void write_answer(const struct work *w, const struct json *answer, struct hk_buf *out)
{
    const struct term t = term_of(STDOUT_FILENO);

    if (w->q->output.as == OUTPUT_JSON) {
        json_write_pretty(answer, 2, out);
    } else if (w->q->output.as == OUTPUT_YAML) {
        yaml_write(answer, out);
    } else {
        show_explain(answer, &t, out);
    }
}

static int explain_it(struct work *w, struct json *ret, struct hk_err *err)
{
    const struct explain_opts o = {
        .objects = w->objects.objects.at,
        .n = w->objects.objects.len,
        .conf = w->conf,
        .now_ns = hk_clock_system()->wall_ns(hk_clock_system()),
        .tries = (uint32_t)w->q->tries,
        .budget_ns = BUDGET_S * 1000000000LL,
        .clock = hk_clock_system(),
    };
    struct explain_subject s;
    int rc = find_subject(w, &s, err);

    if (rc == 0) {
        rc = explain(&o, &s, &w->mem, ret, err);
    }
    if (rc == -HK_ENOTFOUND) {
        const struct api_object *near = cmd_explain_nearest(w, &s);
        return near ? hk_fail(err, HK_ENOTFOUND, "%s; did you mean '%.*s'?",
                              hk_arena_strndup(&w->mem, err->text, strlen(err->text)),
                              HK_FMT(near->name))
                    : rc;
    }
    if (rc == 0) {
        json_set(ret, &w->mem, "notes", w->notes);
    }
    return rc;
}

static int cmd_explain_ask(struct work *w, struct json *ret, struct hk_err *err)
{
    int rc;

    w->notes = json_make_array();
    rc = cmd_explain_read_conf(w, err);
    if (rc < 0) {
        return rc;
    }
    rc = cmd_explain_read_cluster(w, err);
    return rc < 0 ? rc : explain_it(w, ret, err);
}

static void cmd_explain_forget(struct work *w)
{
    port_answer_fini(&w->objects);
    w->objects = (struct port_answer){0};
    conf_free(w->conf);
    w->conf = NULL;
    hk_arena_clear(&w->mem);
}

/* ---- watching ---- */

/* Whether the state is final: ended, or running as wanted. */
static bool is_settled(const struct json *answer)
{
    static const char *const waiting[] = {"waiting", "starting", "blocked", "suspended", "ending"};
    const struct hk_str state = json_str(json_get(answer, "state"), HK_STR(""));

    for (size_t k = 0; k < HK_LEN(waiting); k++) {
        if (hk_str_is(state, waiting[k])) {
            return false;
        }
    }
    return true;
}

/* A hash of the answer without the durations, to detect changes. */
static uint64_t cmd_explain_hash_of(const struct json *answer, struct hk_arena *a)
{
    struct json copy = json_shallow(answer, a);

    json_del(&copy, "waitedSeconds");
    json_del(&copy, "ranSeconds");
    return json_hash(&copy);
}

/* The screen rows of the text: long lines wrap, escape sequences take no space. */
static uint32_t rows_of(const struct hk_buf *text, uint32_t columns)
{
    uint32_t rows = 0, column = 0;
    bool escape = false;

    for (size_t k = 0; k < text->len; k++) {
        const char c = text->data[k];
        if (c == '\n') {
            rows += 1 + (column > 0 ? (column - 1) / columns : 0);
            column = 0;
        } else if (escape || c == '\033') {
            escape = c != 'm';
        } else {
            column += ((unsigned char)c & 0xc0) != 0x80;
        }
    }
    return rows;
}

/* Prints the answer: over the last one on a terminal, otherwise only if it changed. */
static int cmd_explain_print(struct work *w, const struct json *answer, struct hk_buf *last,
                             uint64_t *said)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct term t = term_of(STDOUT_FILENO);
    const uint64_t hash = cmd_explain_hash_of(answer, &w->mem);

    if (!t.is && hash == *said) {
        return 0;
    }
    *said = hash;
    term_rewind(&t, rows_of(last, t.columns), &out);
    hk_buf_clear(last);
    write_answer(w, answer, last);
    hk_buf_addstr(&out, hk_buf_str(last));
    return verb_print(&out) == EXIT_OK ? 0 : -HK_EIO;
}

static int cmd_explain_answer(struct work *w, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf last = {0};
    const struct timespec pause = {.tv_sec = PAUSE_S};
    struct json answer;
    uint64_t said = 0;
    int rc = user_open(&w->user, &w->q->user, err);
    bool more = rc == 0;

    while (more) {
        rc = cmd_explain_ask(w, &answer, err);
        if (rc == 0) {
            rc = cmd_explain_print(w, &answer, &last, &said);
        }
        more = rc == 0 && w->q->watch && !is_settled(&answer);
        cmd_explain_forget(w);
        if (more) {
            nanosleep(&pause, NULL);
        }
    }
    return rc;
}

static int cmd_explain_main(const struct verb *v, int argc, char **argv)
{
    struct request q = {0};
    struct work w = {.q = &q};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &q);

    if (rc != 0) {
        return user_parsed(rc);
    }
    if (!q.what) {
        verb_complain("explain: the name of a job is missing (see 'hekla help explain')");
        return USER_TROUBLE;
    }
    rc = cmd_explain_answer(&w, &err);
    user_close(&w.user);
    hk_arena_fini(&w.mem);
    return rc < 0 ? user_fail(v, rc, &err) : USER_OK;
}

const struct verb verb_explain = {
    .name = "explain",
    .args = "JOB",
    .about = "explain why a job waits, and what would let it start",
    .options = options,
    .text = "Reads the cluster, loads it into the scheduling engine, and asks that: what is "
            "missing in numbers, for each node and for the queue; which jobs are ahead, and why. "
            "Then single changes are tried, each in a copy of the cluster with nothing else "
            "changed: a job ends, fewer members start together, a smaller request, a constraint "
            "dropped, a taint tolerated, a higher priority, a larger queue, one more node. "
            "Changes with which the engine places the job are listed, with the pods it would "
            "evict and the jobs that would have to wait.\n"
            "JOB is the name of a Volcano Job; podgroup/NAME, pod/NAME, queue/NAME and "
            "jobflow/NAME work too. The command needs permission to list what the scheduler "
            "reads, and writes nothing. It also works with Volcano's scheduler, as far as the two "
            "decide alike.\n"
            "The answer is about this moment: what happens at the same time is not foreseen. Pods "
            "that the controller of a job has not created yet are assumed, from the templates of "
            "the job.",
    .rest =
        "OUTPUT\n"
        "       With -o json (or yaml) one object; keys may be added, none will go:\n"
        "\n"
        "       kind, namespace, name   what was asked about\n"
        "       state      waiting, starting, running, suspended, blocked, ending, ended;\n"
        "                  of a pod also foreign; of a queue open or closed\n"
        "       summary    that in words\n"
        "       since      when it began; waitedSeconds, ranSeconds, tookSeconds\n"
        "       gang       minimum, pods, ready, waiting, bestEffort, pipelined (placed where "
        "pods\n"
        "                  are ending), and fit: how many found a place before the attempt\n"
        "                  was given up\n"
        "       wants      amounts of the pods still needed to start\n"
        "       admitted   whether its PodGroup is past enqueue; refusal says why not, or\n"
        "                  which limit of the queue is in the way\n"
        "       limits     of the queue or cluster that leave too little: limit (capability,\n"
        "                  deserved, cluster), resource, wants, holds, promised, most\n"
        "       queue      name, state, weight, jobs, waiting, allocated, inqueue,\n"
        "                  capability, deserved, guarantee, share\n"
        "       reasons    per task: task, example, pods, asks, fit, nodes, and refusals, each\n"
        "                  with nodes, code, text, and where a resource is short resource,\n"
        "                  wants, mostFree, mostFreeOn\n"
        "       ahead      inQueue, inCluster, and the first jobs with name, podGroup, queue,\n"
        "                  why, holds, waitsFor\n"
        "       steps      of a flow: step, and job and phase, or waitsFor with step, phase and\n"
        "                  probes\n"
        "       problem    of a flow: why a step could not begin\n"
        "       blockedTasks  tasks without pods: task, dependsOn\n"
        "       lostPods      pods on nodes that are not ready: pod, node, fault, since, ending\n"
        "       advice        what to do about them\n"
        "       changes    change, text, its particulars, evicts (pods), delays (jobs)\n"
        "       tried      how many changes were tried; cut: there are more\n"
        "       phase, reason, message, retries, failure   of a job that ended\n"
        "       notes      what could not be read\n"
        "\n"
        "EXIT STATUS\n"
        "       0 when there is an answer, else 2; one line on standard error says why.\n"
        "\n"
        "EXAMPLES\n"
        "           hekla explain train\n"
        "           hekla explain -n research -o json train | jq -r '.changes[].text'\n"
        "           hekla explain queue/research\n",
    .run = cmd_explain_main,
};
