// SPDX-License-Identifier: Apache-2.0
// Arbitrary bodies as AdmissionReviews, to every rule: the answer is always a whole review, with
// the uid it was asked with and a message when it refuses.

#include "fuzz/fuzz.h"
#include "webhook/review.h"

/* What was sent stands for the whole cluster: every queue and namespace is the object under review,
 * its own parent and child. */
static const struct json *get(void *ctx, const struct api_kind *kind, struct hk_str ns,
                              struct hk_str name)
{
    const struct json *obj = json_at(ctx, "request.object");

    return json_is(obj, JSON_OBJECT) ? obj : NULL;
}

static void each(void *ctx, const struct api_kind *kind, struct hk_str ns,
                 bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    const struct json *obj = get(ctx, kind, ns, HK_STR(""));

    if (obj) {
        fn(arg, obj);
    }
}

static void each_child(void *ctx, struct hk_str parent,
                       bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    each(ctx, api_kind(API_QUEUE), HK_STR(""), fn, arg);
}

static void check_answer(const struct hk_buf *answer, const struct json *asked, bool allowed)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;

    hk_assert(json_parse(hk_buf_str(answer), JSON_DUP_REJECT, &mem, &doc, NULL) == 0);
    const struct json *response = json_get(&doc, "response");
    hk_assert(hk_str_eq(json_str(json_get(response, "uid"), HK_STR("?")),
                        json_str(json_at(asked, "request.uid"), HK_STR(""))));
    hk_assert(json_bool(json_get(response, "allowed"), !allowed) == allowed);
    hk_assert(allowed != (json_str(json_at(response, "status.message"), HK_STR("")).n > 0));
    hk_assert(!json_get(response, "patch") == !json_get(response, "patchType"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_str body = {(const char *)data, size};
    struct hk_arena mem = {0};
    struct json asked = {0};

    (void)!json_parse(body, 0, &mem, &asked, NULL);
    const struct admission_lookup lookup = {
        .ctx = &asked, .get = get, .each = each, .each_child = each_child};
    const struct volcano_options options = {
        .conf = volcano_check_conf(json_at(&asked, "request.object"), NULL) == 0
                    ? json_at(&asked, "request.object")
                    : NULL,
        .gate_queue_admission = true,
        .wait_for_queue_state = true,
    };
    for (const struct volcano_rule *rule = volcano_rules; rule->path; rule++) {
        const struct webhook_review r = {
            .rule = rule, .options = &options, .lookup = &lookup, .mem = &mem};
        HK_AUTO(hk_buf_fini) struct hk_buf answer = {0};
        const bool allowed = webhook_review(&r, body, &answer);
        check_answer(&answer, &asked, allowed);
    }
    hk_arena_fini(&mem);
    return 0;
}
