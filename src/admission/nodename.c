// SPDX-License-Identifier: Apache-2.0
// spec.nodeName: a pod that names its node bypasses scheduler, queues and capacity, as a binding
// does. So a pod with nodeName, and every pod template with it, requires the right to create
// pods/binding in the namespace. Controllers write without a user's rights and are not checked
// again.
#include "admission/admission_priv.h"

static bool admit_nodename_is_set(const struct json *spec)
{
    return edit_str(spec, "nodeName").n > 0;
}

static int check_choice(struct admission_request *q, const struct path *spec, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf where = {0};
    const struct path p = path_field(spec, "nodeName");
    const struct rights_ask ask = {.verb = HK_STR("create"),
                                   .resource = HK_STR("pods"),
                                   .sub = HK_STR("binding"),
                                   .ns = q->ns};

    if (rights_allow(q->rights, &ask)) {
        return 0;
    }
    path_write(&p, &where);
    rights_write_refusal(q->rights->user, &ask, &why);
    return hk_fail(
        err, HK_EDENIED,
        "%s: choosing the node of a pod requires the right to bind it: %s; leave nodeName "
        "out and the scheduler will choose, or use nodeSelector or affinity",
        where.data, why.data);
}

int admit_nodename_pod(struct admission_request *q, struct hk_err *err)
{
    const struct path spec = path_field(NULL, "spec");

    return q->rights && admit_nodename_is_set(json_get(q->obj, "spec"))
               ? check_choice(q, &spec, err)
               : 0;
}

/* Search through the templates of an object. */
struct nodename_search {
    struct admission_request *q;
    struct hk_err *err;
    struct json before; /* node names in the templates of the old object */
    int rc;
};

static bool nodename_note_old(void *arg, const struct path *path, const struct json *template)
{
    struct nodename_search *s = arg;
    const struct json *spec = json_get(template, "spec");

    if (admit_nodename_is_set(spec)) {
        json_push(&s->before, s->q->mem, *json_get(spec, "nodeName"));
    }
    return true;
}

static bool nodename_check_template(void *arg, const struct path *path, const struct json *template)
{
    struct nodename_search *s = arg;
    const struct path spec_path = path_field(path, "spec");
    const struct json *spec = json_get(template, "spec");

    if (admit_nodename_is_set(spec) && !edit_list_has(&s->before, edit_str(spec, "nodeName"))) {
        s->rc = check_choice(s->q, &spec_path, s->err);
    }
    return s->rc == 0;
}

int admit_nodename_template(struct admission_request *q, struct hk_err *err)
{
    struct nodename_search s = {.q = q, .err = err, .before = json_make_array()};

    if (!q->rights) {
        return 0;
    }
    if (q->old) {
        admit_each_template(q->kind, q->old, nodename_note_old, &s);
    }
    admit_each_template(q->kind, q->obj, nodename_check_template, &s);
    return s.rc;
}
