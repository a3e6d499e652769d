// SPDX-License-Identifier: Apache-2.0
// TokenRequests, with a signer that records what it signs.
#include "store/rest_story_test.h"

#define TOKEN(n) .req = {.verb = PORT_CREATE, .ns = NS, .name = HK_STR(n), .subresource = "token"}
#define ASK(spec) "{'spec':{" spec "}}"
#define OF_POD "'boundObjectRef':{'kind':'Pod','name':'p'}"

static void sign(void *ctx, const struct rest_token *t, struct hk_buf *out)
{
    hk_buf_addf(out, "%.*s/%.*s %.*s/%.*s %lld", HK_FMT(t->ns), HK_FMT(t->account),
                HK_FMT(t->bound_kind), HK_FMT(t->bound_name),
                (long long)(t->expires_s - t->issued_s));
}

static void test_a_token_has_the_requested_claims(void **state)
{
    static const struct step steps[] = {
        {"ServiceAccount", CREATE, "{'metadata':{'name':'bot'}}", 201},
        {"Pod", CREATE,
         "{'metadata':{'name':'p'},'spec':{'serviceAccountName':'bot','containers':[{'name':'c',"
         "'image':'i'}]}}",
         201},
        {"ServiceAccount", TOKEN("bot"), ASK(""), 200,
         .see = {"kind", "TokenRequest", "status.token", "default/bot / 3600",
                 "status.expirationTimestamp", "2026-01-02T04:04:05Z"}},
        {"ServiceAccount", TOKEN("bot"), ASK("'expirationSeconds':700," OF_POD), 200,
         .see = {"status.token", "default/bot pod/p 700"}},
        /* tokens that kubelets request by default live as long as their pod */
        {"ServiceAccount", TOKEN("bot"), ASK("'expirationSeconds':3607," OF_POD), 200,
         .see = {"status.token", "default/bot pod/p 31536000", "status.expirationTimestamp",
                 "2026-01-02T04:04:12Z"}},
        {"ServiceAccount", TOKEN("bot"),
         ASK("'expirationSeconds':3607,'audiences':['vault']," OF_POD), 200,
         .see = {"status.token", "default/bot pod/p 3607"}},
        {"ServiceAccount", TOKEN("bot"), ASK("'expirationSeconds':3607"), 200,
         .see = {"status.token", "default/bot / 3607"}},
    };

    rest_sign_tokens(((struct rig *)*state)->rest, sign, NULL);
    rig_story(*state, steps);
}

static void test_bad_requests_are_refused(void **state)
{
    static const struct step steps[] = {
        {"ServiceAccount", CREATE, "{'metadata':{'name':'bot'}}", 201},
        {"Pod", CREATE,
         "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'i'}]}}", 201},
        {"ServiceAccount", TOKEN("none"), ASK(""), 404, "NotFound",
         "serviceaccounts \"none\" not found"},
        {"ServiceAccount", TOKEN("bot"), ASK("'expirationSeconds':60"), 422, "Invalid",
         "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid "
         "value: 60: may not specify a duration less than 10 minutes"},
        {"ServiceAccount", TOKEN("bot"), ASK("'expirationSeconds':4294967297"), 422, "Invalid"},
        {"ServiceAccount", TOKEN("bot"), ASK(OF_POD), 400, "BadRequest",
         "cannot bind token for serviceaccount \"bot\" to pod running with different "
         "serviceaccount name."},
        {"ServiceAccount", TOKEN("bot"), ASK("'boundObjectRef':{'kind':'Pod','name':'q'}"), 404,
         "NotFound", "pods \"q\" not found"},
        {"ServiceAccount", TOKEN("bot"), ASK("'boundObjectRef':{'kind':'Node','name':'q'}"), 400,
         "BadRequest", "cannot bind token to object of type Node"},
        {"ServiceAccount", TOKEN("default"),
         ASK("'boundObjectRef':{'kind':'Pod','name':'p','uid':'other'}"), 409, "Conflict"},
        {"Pod", TOKEN("p"), ASK(""), 404},
    };

    rest_sign_tokens(((struct rig *)*state)->rest, sign, NULL);
    rig_story(*state, steps);
}

static void test_without_a_signer_there_are_no_tokens(void **state)
{
    static const struct step steps[] = {
        {"ServiceAccount", CREATE, "{'metadata':{'name':'bot'}}", 201},
        {"ServiceAccount", TOKEN("bot"), ASK(""), 404, "NotFound"},
    };

    rig_story(*state, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_has_the_requested_claims),
        TEST(bad_requests_are_refused),
        TEST(without_a_signer_there_are_no_tokens),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
