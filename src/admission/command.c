// SPDX-License-Identifier: Apache-2.0
// Commands: a controller executes them with its own rights, so the user who writes a Command must
// have the right to do the same to its target. Every action changes the target, so the verb is
// update.
#include "admission/vc_priv.h"

/* The right that the Command requires; false when no controller acts on its target. */
static bool find_ask(const struct admission_request *q, struct rights_ask *ret)
{
    static const struct {
        const char *kind;
        enum api_kind_id target;
    } rows[] = {{"Queue", API_QUEUE}, {"Job", API_JOB}};
    const struct json *target = json_get(q->obj, "target");

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        const struct api_kind *k = api_kind(rows[i].target);
        if (hk_str_is(edit_str(target, "kind"), rows[i].kind)) {
            *ret = (struct rights_ask){.verb = HK_STR("update"),
                                       .group = hk_str(k->group),
                                       .resource = hk_str(k->plural),
                                       .ns = k->namespaced ? q->ns : HK_STR(""),
                                       .name = edit_str(target, "name")};
            return true;
        }
    }
    return false;
}

static bool is_same_command(const struct json *a, const struct json *b)
{
    const struct json *now = json_get(a, "target"), *old = json_get(b, "target");

    return hk_str_eq(edit_str(a, "action"), edit_str(b, "action")) && now && old &&
           json_equal(now, old);
}

/* True when the write is refused; why gets the message. */
static bool is_refused(const struct admission_request *q, struct hk_buf *why)
{
    struct rights_ask ask;

    if ((q->verb == ADMIT_UPDATE && is_same_command(q->obj, q->old)) || !find_ask(q, &ask) ||
        rights_allow(q->rights, &ask)) {
        return false;
    }
    hk_buf_addf(why, "%.*s of %.*s \"%.*s\" requires the right to update it: ",
                HK_FMT(edit_str(q->obj, "action")),
                HK_FMT(edit_str(json_get(q->obj, "target"), "kind")), HK_FMT(ask.name));
    rights_write_refusal(q->rights->user, &ask, why);
    return true;
}

int admit_command_enforce(struct admission_request *q, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};

    return is_refused(q, &why) ? hk_fail(err, HK_EDENIED, "%s", why.data) : 0;
}

void vc_command_validate(struct vc *v)
{
    (void)is_refused(v->q, &v->why);
}
