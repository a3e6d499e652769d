// SPDX-License-Identifier: Apache-2.0
// The commands for flows and templates, which differ only in their names.
#include "cli/make.h"
#include "cli/show.h"
#include "cmd/vcctl.h"

struct flavour {
    enum api_kind_id kind;
    const char *noun;
};

static const struct flavour flow = {API_JOBFLOW, "jobflow"};
static const struct flavour template = {API_JOBTEMPLATE, "job template"};

/* ---- manifests ---- */

/* Creates or deletes one object of a manifest. */
typedef int object_fn(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
                      const struct json *body, struct hk_err *err);

static int create_one(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
                      const struct json *body, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer made = {0};

    return vcctl_create(v, kind, ns, body, &made, err);
}

static int delete_one(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
                      const struct json *body, struct hk_err *err)
{
    return vcctl_delete(v, kind, ns, name, err);
}

struct doing {
    object_fn *fn;
    const char *verb, *done;
};

static const struct doing creating = {create_one, "create", "Created"};
static const struct doing deleting = {delete_one, "delete", "Deleted"};

/* The failure of one object neither stops the others nor changes the exit status. */
static int do_piece(struct vcctl *v, const struct flavour *f, const struct doing *d,
                    struct hk_str text, struct hk_err *err)
{
    const char *kind = api_kind(f->kind)->kind;
    struct hk_err why = {0};
    struct json body;
    const int rc = make_from_text(f->kind, text, &v->mem, &body, err);

    if (rc < 0) {
        return rc;
    }
    const struct hk_str name = json_str(json_at(&body, "metadata.name"), HK_STR(""));
    const struct hk_str ns = json_str(json_at(&body, "metadata.namespace"), HK_STR(""));
    const char *name_text = hk_arena_str(&v->mem, name).s;
    const char *ns_text = ns.n > 0 ? hk_arena_str(&v->mem, ns).s : "default";
    if (d->fn(v, f->kind, ns_text, name_text, &body, &why) < 0) {
        hk_buf_addf(&v->out, "Failed to %s %s: %s\n", d->verb, kind, why.text);
    } else {
        hk_buf_addf(&v->out, "%s %s: %s/%s\n", d->done, kind, ns_text, name_text);
    }
    return 0;
}

/* Splits at every "---", wherever it is, as Volcano's command does. */
static bool next_piece(struct hk_str *rest, struct hk_str *piece)
{
    static const char mark[] = "---";

    if (rest->n == 0) {
        return false;
    }
    const char *at = memmem(rest->s, rest->n, mark, strlen(mark));
    const size_t n = at ? (size_t)(at - rest->s) : rest->n;
    const size_t skip = at ? n + strlen(mark) : n;
    *piece = (struct hk_str){rest->s, n};
    *rest = (struct hk_str){rest->s + skip, rest->n - skip};
    return true;
}

static int do_file(struct vcctl *v, const struct flavour *f, const struct doing *d,
                   struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int rc = vcctl_read(vcctl_value(v, "file"), &text, err);
    struct hk_str rest = hk_buf_str(&text), piece;

    while (rc == 0 && next_piece(&rest, &piece)) {
        if (hk_str_trim(piece).n > 0) {
            rc = do_piece(v, f, d, piece, err);
        }
    }
    return rc;
}

static int delete_named(struct vcctl *v, const struct flavour *f, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer found = {0};
    const char *ns = vcctl_value(v, "namespace"), *name = vcctl_value(v, "name");
    int rc;

    if (vcctl_value(v, "file")[0] != '\0') {
        return do_file(v, f, &deleting, err);
    }
    if (name[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "%s name must be specified", f->noun);
    }
    rc = vcctl_get(v, f->kind, ns, name, &found, err);
    if (rc == 0) {
        rc = vcctl_delete(v, f->kind, ns, name, err);
    }
    if (rc == 0) {
        hk_buf_addf(&v->out, "Deleted %s: %s/%s\n", api_kind(f->kind)->kind, ns, name);
    }
    return rc;
}

/* ---- showing ---- */

static void vcctl_flow_print(struct vcctl *v, const struct flavour *f,
                             const struct port_answer *found)
{
    if (f->kind == API_JOBFLOW) {
        show_flows(found->objects.at, found->objects.len, v->now_ns, &v->out);
    } else {
        show_templates(found->objects.at, found->objects.len, &v->out);
    }
}

static int vcctl_flow_fetch(struct vcctl *v, const struct flavour *f, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer found = {0};
    const char *name = vcctl_value(v, "name");

    if (name[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "name is mandatory to get the particular %s details",
                       f->noun);
    }
    const int rc = vcctl_get(v, f->kind, vcctl_value(v, "namespace"), name, &found, err);
    if (rc == 0) {
        vcctl_flow_print(v, f, &found);
    }
    return rc;
}

static int vcctl_flow_fetch_all(struct vcctl *v, const struct flavour *f, const char *ns,
                                struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer found = {0};
    const int rc = vcctl_list(v, f->kind, ns, &found, err);

    if (rc == 0) {
        vcctl_flow_print(v, f, &found);
    }
    return rc;
}

static int vcctl_flow_print_one(struct vcctl *v, const struct flavour *f, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer found = {0};
    const char *name = vcctl_value(v, "name"), *ns = vcctl_value(v, "namespace");
    const int rc = name[0] != '\0' ? vcctl_get(v, f->kind, ns, name, &found, err)
                                   : vcctl_list(v, f->kind, ns, &found, err);

    for (uint32_t i = 0; rc == 0 && i < found.objects.len; i++) {
        hk_buf_adds(&v->out, i > 0 ? "\n\n" : "");
        show_whole(found.objects.at[i], vcctl_value(v, "format"), &v->out);
    }
    return rc;
}

/* ---- the commands ---- */

int vcctl_flow_create(struct vcctl *v, struct hk_err *err)
{
    return do_file(v, &flow, &creating, err);
}

int vcctl_flow_delete(struct vcctl *v, struct hk_err *err)
{
    return delete_named(v, &flow, err);
}

int vcctl_flow_get(struct vcctl *v, struct hk_err *err)
{
    return vcctl_flow_fetch(v, &flow, err);
}

int vcctl_flow_list(struct vcctl *v, struct hk_err *err)
{
    return vcctl_flow_fetch_all(v, &flow, vcctl_list_ns(v), err);
}

int vcctl_flow_describe(struct vcctl *v, struct hk_err *err)
{
    return vcctl_flow_print_one(v, &flow, err);
}

int vcctl_template_create(struct vcctl *v, struct hk_err *err)
{
    return do_file(v, &template, &creating, err);
}

int vcctl_template_delete(struct vcctl *v, struct hk_err *err)
{
    return delete_named(v, &template, err);
}

int vcctl_template_get(struct vcctl *v, struct hk_err *err)
{
    return vcctl_flow_fetch(v, &template, err);
}

int vcctl_template_list(struct vcctl *v, struct hk_err *err)
{
    return vcctl_flow_fetch_all(v, &template, vcctl_value(v, "namespace"), err);
}

int vcctl_template_describe(struct vcctl *v, struct hk_err *err)
{
    return vcctl_flow_print_one(v, &template, err);
}
