// SPDX-License-Identifier: Apache-2.0
// JobTemplates: lists in each status the jobs created from it. jobflow.c creates these jobs.
#include "api/names.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

static const struct hk_str none = {"", 0};

static void template_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
}

/* The label is "<namespace>.<name>". Names may contain dots, namespaces cannot. */
static void jobtemplate_on_job_change(struct ctl *c, const struct mirror_change *ch)
{
    struct hk_str name = json_str(kinds_label(ch->root, API_KEY_CREATED_BY_TEMPLATE), none);
    struct hk_str ns;

    if (hk_str_cut(&name, '.', &ns) && name.s && name.n > 0) {
        ctl_add(c, ns, name);
    }
}

static int jobtemplate_compare_names(const void *a, const void *b)
{
    return hk_str_cmp(json_str(a, none), json_str(b, none));
}

static struct json job_names(struct ctl *c, struct pass *t)
{
    const struct mirror *jobs = ctl_mirror(c, API_JOB);
    const struct hk_str word =
        hk_str(hk_arena_printf(t->mem, "%.*s.%.*s", HK_FMT(t->ns), HK_FMT(t->name)));
    struct json names = json_make_array();

    for (uint32_t r = mirror_first(jobs, JOBS_BY_TEMPLATE, word); r != HK_NONE;
         r = mirror_next(jobs, JOBS_BY_TEMPLATE, r)) {
        json_push(&names, t->mem, json_make_str(mirror_name(jobs, r)));
    }
    if (names.len > 1) {
        qsort(names.items, names.len, sizeof(names.items[0]), jobtemplate_compare_names);
    }
    return names;
}

static void jobtemplate_report_failure(struct pass *t, const struct json *root)
{
    if (t->nerror > 0 && t->failures == pass_patience(t)) {
        pass_event(t, root, true, "", " JobTemplate failed for %s", t->errors[0].text);
    }
}

static void template_reconcile(struct ctl *c, struct pass *t)
{
    const struct mirror *templates = ctl_mirror(c, API_JOBTEMPLATE);
    const uint32_t row = mirror_find(templates, t->ns, t->name);
    const struct json *old;
    struct json root;
    struct json names;
    struct json status = json_make_object();

    if (row == HK_NONE) {
        return;
    }
    root = mirror_read(templates, row, t->mem);
    jobtemplate_report_failure(t, &root);
    names = job_names(c, t);
    old = json_at(&root, "status.jobDependsOnList");
    if (old ? json_equal(old, &names) : names.len == 0) {
        return;
    }
    if (names.len > 0) {
        json_set(&status, t->mem, "jobDependsOnList", names);
    }
    json_set(&root, t->mem, "status", status);
    pass_update_status(t, api_kind(API_JOBTEMPLATE), &root);
}

static const struct ctl_watch watches[] = {
    {&mirror_jobtemplates, template_changed},
    {&mirror_jobs, jobtemplate_on_job_change},
    {0},
};

const struct ctl_type ctl_jobtemplate = {
    .name = "jobtemplate-controller",
    .about = "tells on each JobTemplate which jobs were made from it",
    .watches = watches,
    .reconcile = template_reconcile,
};
