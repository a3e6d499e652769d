// SPDX-License-Identifier: Apache-2.0
// vcctl output for jobs: the table of many, the page of one, and its events.
#include "cli/show_priv.h"
#include "codec/quantity.h"

#include <stdlib.h>

/* ---- the table ---- */

struct column {
    const char *head;
    size_t width;
    const char *count; /* path of the number; NULL: not a number */
};

static const struct column columns[] = {
    {"Creation", 15, NULL},
    {"Phase", 12, NULL},
    {"JobType", 12, NULL},
    {"Replicas", 12, NULL},
    {"Min", 6, "status.minAvailable"},
    {"Pending", 10, "status.pending"},
    {"Running", 10, "status.running"},
    {"Succeeded", 12, "status.succeeded"},
    {"Failed", 10, "status.failed"},
    {"Unknown", 12, "status.unknown"},
    {"RetryCount", 10, "status.retryCount"},
};

static bool is_or_any(struct hk_str value, const char *wanted)
{
    return wanted[0] == '\0' || hk_str_is(value, wanted);
}

static bool show_job_matches_filter(const struct api_object *job, const struct show_filter *f)
{
    return is_or_any(json_str_at(&job->root, "spec.queue"), f->queue) &&
           is_or_any(json_str_at(&job->root, "spec.schedulerName"), f->scheduler) &&
           (f->part[0] == '\0' || hk_str_contains(job->name, f->part));
}

static int64_t count_replicas(const struct json *job)
{
    const struct json *tasks = json_list_at(job, "spec.tasks");
    int64_t n = 0;

    for (uint32_t k = 0; k < tasks->len; k++) {
        n += json_int_at(&tasks->items[k], "replicas");
    }
    return n;
}

static void show_job_write_row(const struct json *job, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf date = {0};
    const struct hk_str type = show_label(job, "labels", "volcano.sh/job-type");

    show_date(json_at(job, "metadata.creationTimestamp"), &date);
    show_cell(hk_buf_str(&date), columns[0].width, out);
    show_cell(json_str_at(job, "status.state.phase"), columns[1].width, out);
    show_cell(type.n > 0 ? type : HK_STR("Batch"), columns[2].width, out);
    show_number(count_replicas(job), columns[3].width, out);
    for (size_t k = 4; k < HK_LEN(columns); k++) {
        show_number(json_int_at(job, columns[k].count), columns[k].width, out);
    }
    hk_buf_addc(out, '\n');
}

struct widths {
    size_t name, ns;
};

static void show_job_write_head(const struct widths *w, bool namespaces, struct hk_buf *out)
{
    if (namespaces) {
        show_cell(HK_STR("Namespace"), w->ns, out);
    }
    show_cell(HK_STR("Name"), w->name, out);
    for (size_t k = 0; k < HK_LEN(columns); k++) {
        show_cell(hk_str(columns[k].head), columns[k].width, out);
    }
    hk_buf_addc(out, '\n');
}

void show_jobs(struct api_object *const *jobs, uint32_t n, const struct show_jobs *how,
               struct hk_buf *out)
{
    struct widths w = {strlen("Name"), strlen("Namespace")};
    uint32_t shown = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (how->loose || show_job_matches_filter(jobs[i], &how->filter)) {
            w.name = HK_MAX(w.name, jobs[i]->name.n);
            w.ns = HK_MAX(w.ns, jobs[i]->ns.n);
            shown++;
        }
    }
    if (shown == 0) {
        hk_buf_adds(out, SHOW_NOTHING);
        return;
    }
    w.name += 3;
    w.ns += 3;
    show_job_write_head(&w, how->namespaces, out);
    for (uint32_t i = 0; i < n; i++) {
        if (show_job_matches_filter(jobs[i], &how->filter)) {
            if (how->namespaces) {
                show_cell(jobs[i]->ns, w.ns, out);
            }
            show_cell(jobs[i]->name, w.name, out);
            show_job_write_row(&jobs[i]->root, out);
        }
    }
}

/* ---- the page ---- */

/* One line: two blanks per level, the label, a tab and the text. */
static void line(unsigned level, const char *label, struct hk_str text, struct hk_buf *out)
{
    hk_buf_addf(out, "%*s%s\t", (int)level * 2, "", label);
    hk_buf_addstr(out, text);
    hk_buf_addc(out, '\n');
}

static void head(unsigned level, const char *label, struct hk_buf *out)
{
    hk_buf_addf(out, "%*s%s\n", (int)level * 2, "", label);
}

static void show_job_write_number(unsigned level, const char *label, int64_t n, struct hk_buf *out)
{
    hk_buf_addf(out, "%*s%s\t%lld\n", (int)level * 2, "", label, (long long)n);
}

static void time_line(unsigned level, const char *label, const struct json *stamp,
                      struct hk_buf *out)
{
    hk_buf_addf(out, "%*s%s\t", (int)level * 2, "", label);
    show_time(stamp, out);
    hk_buf_addc(out, '\n');
}

static int compare_members(const void *a, const void *b)
{
    const struct json_member *x = a, *y = b;

    return hk_str_cmp(x->key, y->key);
}

/* The members sorted by key, allocated in a. */
static struct json show_job_sort_members(const struct json *map, struct hk_arena *a)
{
    struct json copy = json_is(map, JSON_OBJECT) ? json_shallow(map, a) : json_make_object();

    if (copy.len > 1) {
        qsort(copy.members, copy.len, sizeof(*copy.members), compare_members);
    }
    return copy;
}

static void map_line(const char *label, const struct json *map, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct json copy = show_job_sort_members(map, &mem);

    hk_buf_addf(out, "%s\t", label);
    if (copy.len > 0) {
        json_write(&copy, out);
    } else {
        hk_buf_adds(out, "<none>");
    }
    hk_buf_addc(out, '\n');
}

/* Prints a list like Go: "[a b]". */
static void list_line(unsigned level, const char *label, const struct json *list,
                      struct hk_buf *out)
{
    hk_buf_addf(out, "%*s%s\t[", (int)level * 2, "", label);
    for (uint32_t k = 0; k < json_len(list); k++) {
        hk_buf_adds(out, k > 0 ? " " : "");
        hk_buf_addstr(out, json_str(&list->items[k], HK_STR("")));
    }
    hk_buf_adds(out, "]\n");
}

static void show_meta(const struct json *job, struct hk_buf *out)
{
    line(0, "Name:       ", json_str_at(job, "metadata.name"), out);
    line(0, "Namespace:  ", json_str_at(job, "metadata.namespace"), out);
    map_line("Labels:     ", json_at(job, "metadata.labels"), out);
    map_line("Annotations:", json_at(job, "metadata.annotations"), out);
    /* Typed clients drop both on reading, so upstream prints them empty. */
    line(0, "API Version:", HK_STR(""), out);
    line(0, "Kind:       ", HK_STR(""), out);
    head(0, "Metadata:", out);
    time_line(1, "Creation Timestamp:", json_at(job, "metadata.creationTimestamp"), out);
    line(1, "Generate Name:     ", json_str_at(job, "metadata.generateName"), out);
    show_job_write_number(1, "Generation:        ", json_int_at(job, "metadata.generation"), out);
    line(1, "Resource Version:  ", json_str_at(job, "metadata.resourceVersion"), out);
    line(1, "UID:               ", json_str_at(job, "metadata.uid"), out);
}

/* The canonical form of a quantity, 0 if there is none. */
static void amount_line(const char *label, const struct json *amount, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct quantity q = quantity_of(json_int(amount, 0), QUANTITY_DECIMAL_SI);

    if (json_is(amount, JSON_STRING) &&
        quantity_parse(json_str(amount, HK_STR("")), &q, NULL) < 0) {
        q = quantity_of(0, QUANTITY_DECIMAL_SI);
    }
    quantity_write(q, &text);
    line(7, label, hk_buf_str(&text), out);
}

static void show_amounts(const char *label, const struct json *list, struct hk_buf *out)
{
    head(6, label, out);
    amount_line("Cpu:   ", json_get(list, "cpu"), out);
    amount_line("Memory:", json_get(list, "memory"), out);
}

static void show_container(const struct json *c, struct hk_buf *out)
{
    const struct json *words = json_list_at(c, "command"), *ports = json_list_at(c, "ports");

    head(5, "Command:", out);
    for (uint32_t k = 0; k < words->len; k++) {
        hk_buf_addf(out, "%*s%.*s\n", 12, "", HK_FMT(json_str(&words->items[k], HK_STR(""))));
    }
    line(5, "Image:", json_str_field(c, "image"), out);
    line(5, "Name: ", json_str_field(c, "name"), out);
    head(5, "Ports:", out);
    for (uint32_t k = 0; k < ports->len; k++) {
        show_job_write_number(6, "Container Port:", json_int_at(&ports->items[k], "containerPort"),
                              out);
        line(6, "Name:          ", json_str_field(&ports->items[k], "name"), out);
    }
    head(5, "Resources:", out);
    show_amounts("Limits:", json_at(c, "resources.limits"), out);
    show_amounts("Requests:", json_at(c, "resources.requests"), out);
    line(6, "Working Dir:", json_str_field(c, "workingDir"), out);
}

static void show_annotations(const struct json *template, struct hk_buf *out)
{
    static const struct {
        const char *label, *key;
    } known[] = {
        {"Cri . Cci . Io / Container - Type:          ", "cri.cci.io/container-type"},
        {"Kubernetes . Io / Availablezone:            ", "kubernetes.io/availablezone"},
        {"Network . Alpha . Kubernetes . Io / Network:", "network.alpha.kubernetes.io/network"},
    };

    head(4, "Annotations:", out);
    for (size_t k = 0; k < HK_LEN(known); k++) {
        line(5, known[k].label, show_label(template, "annotations", known[k].key), out);
    }
}

static void show_task(const struct json *task, struct hk_buf *out)
{
    const struct json *template = json_get(task, "template");
    const struct json *containers = json_list_at(template, "spec.containers");
    const struct json *secrets = json_list_at(template, "spec.imagePullSecrets");

    line(2, "Name:", json_str_field(task, "name"), out);
    show_job_write_number(2, "Replicas:", json_int_at(task, "replicas"), out);
    head(2, "Template:", out);
    head(3, "Metadata:", out);
    show_annotations(template, out);
    time_line(4, "Creation Timestamp:", json_at(template, "metadata.creationTimestamp"), out);
    head(3, "Spec:", out);
    head(4, "Containers:", out);
    for (uint32_t k = 0; k < containers->len; k++) {
        show_container(&containers->items[k], out);
    }
    head(4, "Image Pull Secrets:", out);
    for (uint32_t k = 0; k < secrets->len; k++) {
        line(5, "Name:     ", json_str_field(&secrets->items[k], "name"), out);
    }
    line(4, "Restart Policy:   ", json_str_at(template, "spec.restartPolicy"), out);
}

static void show_spec(const struct json *job, struct hk_buf *out)
{
    const struct json *tasks = json_list_at(job, "spec.tasks");

    head(0, "Spec:", out);
    show_job_write_number(1, "Min Available:     ", json_int_at(job, "spec.minAvailable"), out);
    head(1, "Plugins:", out);
    list_line(2, "Env:", json_at(job, "spec.plugins.env"), out);
    list_line(2, "Ssh:", json_at(job, "spec.plugins.ssh"), out);
    line(1, "Scheduler Name:    ", json_str_at(job, "spec.schedulerName"), out);
    head(1, "Tasks:", out);
    for (uint32_t k = 0; k < tasks->len; k++) {
        show_task(&tasks->items[k], out);
    }
}

static void show_controlled(const struct json *map, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct json copy = show_job_sort_members(map, &mem);

    if (copy.len > 0) {
        head(1, "Controlled Resources:", out);
    }
    for (uint32_t k = 0; k < copy.len; k++) {
        const struct json_member *m = &copy.members[k];
        hk_buf_addf(out, "    %.*s: \t%.*s\n", HK_FMT(m->key),
                    HK_FMT(json_str(&m->value, HK_STR(""))));
    }
}

static void show_conditions(const struct json *list, struct hk_buf *out)
{
    if (list->len > 0) {
        head(1, "Conditions:", out);
        head(2, "Status\tTransitionTime", out);
    }
    for (uint32_t k = 0; k < list->len; k++) {
        hk_buf_addf(out, "    %.*s \t", HK_FMT(json_str_field(&list->items[k], "status")));
        show_time(json_get(&list->items[k], "lastTransitionTime"), out);
        hk_buf_adds(out, " \n");
    }
}

static void show_status(const struct json *job, bool conditions, struct hk_buf *out)
{
    static const struct {
        const char *label, *path;
    } counts[] = {
        {"Succeeded:    ", "status.succeeded"},   {"Pending:      ", "status.pending"},
        {"Running:      ", "status.running"},     {"Failed:       ", "status.failed"},
        {"Terminating:  ", "status.terminating"}, {"Unknown:      ", "status.unknown"},
        {"RetryCount:   ", "status.retryCount"},  {"Min Available:", "status.minAvailable"},
        {"Version:      ", "status.version"},
    };

    head(0, "Status:", out);
    for (size_t k = 0; k < HK_LEN(counts); k++) {
        const int64_t n = json_int_at(job, counts[k].path);
        if (n > 0) {
            show_job_write_number(1, counts[k].label, n, out);
        }
    }
    head(1, "State:", out);
    line(2, "Phase:", json_str_at(job, "status.state.phase"), out);
    show_controlled(json_at(job, "status.controlledResources"), out);
    if (conditions) {
        show_conditions(json_list_at(job, "status.conditions"), out);
    }
}

void show_job(const struct json *job, bool conditions, struct hk_buf *out)
{
    show_meta(job, out);
    show_spec(job, out);
    show_status(job, conditions, out);
}

/* ---- events ---- */

static bool is_about(const struct api_object *event, struct hk_str job)
{
    return event->name.n > job.n && event->name.s[job.n] == '.' &&
           memcmp(event->name.s, job.s, job.n) == 0;
}

static void event_row(struct hk_str type, struct hk_str reason, struct hk_str age,
                      struct hk_str source, struct hk_str message, struct hk_buf *out)
{
    show_cell(type, 15, out);
    hk_buf_addc(out, '\t');
    show_cell(reason, 40, out);
    hk_buf_addc(out, '\t');
    show_cell(age, 30, out);
    hk_buf_addc(out, '\t');
    show_cell(source, 40, out);
    hk_buf_addc(out, '\t');
    hk_buf_addstr(out, message);
    hk_buf_addc(out, '\n');
}

static void event_head(struct hk_buf *out)
{
    const struct hk_str dashes = HK_STR("-------");

    hk_buf_adds(out, "Events:\n");
    event_row(HK_STR("Type"), HK_STR("Reason"), HK_STR("Age"), HK_STR("Form"), HK_STR("Message"),
              out);
    event_row(dashes, dashes, dashes, dashes, dashes, out);
}

static void show_event(const struct json *e, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf age = {0}, source = {0};
    const struct hk_str host = json_str_at(e, "source.host");
    const int64_t count = json_int_at(e, "count");

    if (count > 1) {
        show_age(json_get(e, "lastTimestamp"), now_ns, &age);
        hk_buf_addf(&age, " (x%lld over ", (long long)count);
    }
    show_age(json_get(e, "firstTimestamp"), now_ns, &age);
    hk_buf_adds(&age, count > 1 ? ")" : "");
    hk_buf_addstr(&source, json_str_at(e, "source.component"));
    if (host.n > 0) {
        hk_buf_addf(&source, ", %.*s", HK_FMT(host));
    }
    event_row(json_str_field(e, "type"), json_str_field(e, "reason"), hk_buf_str(&age),
              hk_buf_str(&source), hk_str_trim(json_str_field(e, "message")), out);
}

void show_events(struct hk_str job, struct api_object *const *events, uint32_t n, int64_t now_ns,
                 struct hk_buf *out)
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        if (!is_about(events[i], job)) {
            continue;
        }
        if (!any) {
            event_head(out);
        }
        any = true;
        show_event(&events[i]->root, now_ns, out);
    }
    if (!any) {
        hk_buf_adds(out, "Events: \t<none>\n");
    }
}
