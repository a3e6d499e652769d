// SPDX-License-Identifier: Apache-2.0
// Identities: valid pairs, and texts that are not valid.
#include "net/cert.h"
#include "net/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct cert_pair ca, pair;

static int begin(void **state)
{
    static const char *const names[] = {"localhost"};
    const struct cert_opts authority = {.cn = "ca", .now_s = 1800000000, .days = 1};
    const struct cert_opts serving = {.cn = "server",
                                      .names = names,
                                      .nnames = 1,
                                      .server = true,
                                      .now_s = 1800000000,
                                      .days = 1};

    assert_int_equal(cert_make_ca(&authority, &ca, NULL), 0);
    assert_int_equal(cert_make(&serving, &ca, &pair, NULL), 0);
    return 0;
}

static int end(void **state)
{
    cert_pair_fini(&ca);
    cert_pair_fini(&pair);
    return 0;
}

static void a_key_of_another_certificate_is_refused(void **state)
{
    const struct {
        const char *name, *cert, *key, *want; /* start of the error message; NULL: none */
    } rows[] = {
        {"a pair", pair.cert_pem, pair.key_pem, NULL},
        {"the key of another", pair.cert_pem, ca.key_pem,
         "the key does not belong to the certificate"},
        {"no certificate", "", pair.key_pem, "cannot read the certificate: "},
        {"a key for a certificate", pair.key_pem, pair.key_pem, "cannot read the certificate: "},
        {"no key", pair.cert_pem, "", "cannot read the key: "},
        {"a certificate for a key", pair.cert_pem, pair.cert_pem, "cannot read the key: "},
    };

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        struct identity *id = NULL;
        struct hk_err err = {0};
        const int rc = identity_new(rows[i].cert, rows[i].key, &id, &err);

        identity_unref(id);
        if (rows[i].want ? rc != -HK_EINVAL || strncmp(err.text, rows[i].want, strlen(rows[i].want))
                         : rc != 0) {
            fail_msg("%s: expected '%s', actual '%s'", rows[i].name,
                     rows[i].want ? rows[i].want : "", err.text);
        }
    }
}

static void a_chain_is_shown_whole(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct identity *id = NULL;
    gnutls_pcert_st *chain;
    gnutls_privkey_t key;
    unsigned n = 0;

    hk_buf_addf(&text, "%s%s", pair.cert_pem, ca.cert_pem);
    assert_int_equal(identity_new(text.data, pair.key_pem, &id, NULL), 0);
    identity_show(id, &chain, &n, &key);
    assert_int_equal(n, 2);
    identity_unref(identity_ref(id)); /* still valid */
    identity_show(id, &chain, &n, &key);
    assert_non_null(key);
    identity_unref(id);
    identity_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_of_another_certificate_is_refused),
        cmocka_unit_test(a_chain_is_shown_whole),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, begin, end);
}
