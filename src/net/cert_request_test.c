// SPDX-License-Identifier: Apache-2.0
// Certificate requests: what is read of them, and that a certificate has their subject, names and
// key, and nothing else that they ask for.
#include "net/cert_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <gnutls/x509.h>

#define NOW INT64_C(1800000000)

/* A request of CN jane in the groups a and b, for one DNS name and one address; PEM. */
static void make_request(char *ret, size_t n)
{
    gnutls_x509_crq_t crq;
    gnutls_x509_privkey_t key;

    assert_int_equal(gnutls_x509_crq_init(&crq), 0);
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(
                         key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
                     0);
    assert_int_equal(gnutls_x509_crq_set_version(crq, 1), 0);
    assert_int_equal(gnutls_x509_crq_set_dn(crq, "CN=jane,O=a,O=b", NULL), 0);
    assert_int_equal(gnutls_x509_crq_set_key(crq, key), 0);
    assert_int_equal(gnutls_x509_crq_set_subject_alt_name(crq, GNUTLS_SAN_DNSNAME, "j.example", 9,
                                                          GNUTLS_FSAN_SET),
                     0);
    assert_int_equal(gnutls_x509_crq_set_subject_alt_name(crq, GNUTLS_SAN_IPADDRESS, "\x7f\0\0\x01",
                                                          4, GNUTLS_FSAN_APPEND),
                     0);
    assert_int_equal(gnutls_x509_crq_set_basic_constraints(crq, 1, 0), 0);
    assert_int_equal(gnutls_x509_crq_sign2(crq, key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crq_export(crq, GNUTLS_X509_FMT_PEM, ret, &n), 0);
    gnutls_x509_crq_deinit(crq);
    gnutls_x509_privkey_deinit(key);
    for (char *at; (at = strstr(ret, "NEW "));) { /* the older name of the block */
        memmove(at, at + 4, strlen(at + 4) + 1);
    }
}

static void test_a_request_is_read(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct cert_request q;
    struct hk_err err = {0};
    char pem[4096];

    make_request(pem, sizeof(pem));
    assert_int_equal(cert_request_read(hk_str(pem), &mem, &q, &err), 0);
    assert_string_equal(q.cn, "jane");
    assert_int_equal(q.norgs, 2);
    const bool in_order = strcmp(q.orgs[0], "a") == 0;
    assert_string_equal(q.orgs[in_order ? 0 : 1], "a");
    assert_string_equal(q.orgs[in_order ? 1 : 0], "b");
    assert_int_equal(q.ndns, 1);
    assert_int_equal(q.nips, 1);
    assert_int_equal(q.nemails + q.nuris, 0);
}

static void test_what_is_no_request_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "hello",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n",
        "-----BEGIN CERTIFICATE REQUEST-----\n",
    };
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct cert_request q;
    char pem[4096];

    for (size_t i = 0; i < HK_LEN(texts); i++) {
        struct hk_err err = {0};
        assert_int_equal(cert_request_read(hk_str(texts[i]), &mem, &q, &err), -HK_EINVAL);
        assert_true(err.text[0] != '\0');
    }
    make_request(pem, sizeof(pem));
    char *middle = strchr(pem, '\n') + 100; /* inside the subject or the key */
    *middle = *middle == 'A' ? 'B' : 'A';
    assert_true(cert_request_read(hk_str(pem), &mem, &q, NULL) < 0);
}

static void assert_certificate(const char *pem)
{
    const gnutls_datum_t text = {(unsigned char *)pem, (unsigned)strlen(pem)};
    gnutls_x509_crt_t crt;
    char dn[256], oid[64];
    size_t n = sizeof(dn);
    unsigned ca = 1, usage = 0;

    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_PEM), 0);
    assert_int_equal(gnutls_x509_crt_get_dn(crt, dn, &n), 0);
    assert_non_null(strstr(dn, "CN=jane"));
    assert_int_not_equal(gnutls_x509_crt_check_hostname(crt, "j.example"), 0);
    assert_int_equal(gnutls_x509_crt_get_basic_constraints(crt, NULL, &ca, NULL), 0);
    assert_int_equal(ca, 0);
    assert_int_equal(gnutls_x509_crt_get_key_usage(crt, &usage, NULL), 0);
    assert_int_equal(usage, GNUTLS_KEY_DIGITAL_SIGNATURE);
    n = sizeof(oid);
    assert_int_equal(gnutls_x509_crt_get_key_purpose_oid(crt, 0, oid, &n, NULL), 0);
    assert_string_equal(oid, GNUTLS_KP_TLS_WWW_CLIENT);
    assert_int_equal(gnutls_x509_crt_get_activation_time(crt), NOW);
    gnutls_x509_crt_deinit(crt);
}

static void test_a_certificate_has_what_was_asked_for_and_no_more(void **state)
{
    static const char *const usages[] = {"digital signature", "client auth"};
    HK_AUTO(cert_pair_fini) struct cert_pair ca = {0};
    HK_AUTO(hk_freep) char *pem = NULL;
    struct hk_err err = {0};
    char request[4096];
    int64_t end_s;

    assert_int_equal(
        cert_make_ca(&(struct cert_opts){.cn = "ca", .now_s = NOW, .days = 10}, &ca, &err), 0);
    make_request(request, sizeof(request));
    const struct cert_sign_opts o = {
        .usages = usages, .nusages = 2, .from_s = NOW, .until_s = NOW + 3600};
    assert_int_equal(cert_request_sign(hk_str(request), &ca, &o, &pem, &err), 0);
    assert_certificate(pem);
    assert_true(cert_serves(pem, ca.cert_pem, "j.example"));
    assert_int_equal(cert_expiry(pem, &end_s, &err), 0);
    assert_int_equal(end_s, NOW + 3600);
}

static void test_no_certificate_outlives_its_authority(void **state)
{
    HK_AUTO(cert_pair_fini) struct cert_pair ca = {0};
    HK_AUTO(hk_freep) char *pem = NULL;
    struct hk_err err = {0};
    char request[4096];
    int64_t end_s;

    assert_int_equal(
        cert_make_ca(&(struct cert_opts){.cn = "ca", .now_s = NOW, .days = 10}, &ca, &err), 0);
    make_request(request, sizeof(request));
    const struct cert_sign_opts o = {.from_s = NOW, .until_s = NOW + 100 * 86400};
    assert_int_equal(cert_request_sign(hk_str(request), &ca, &o, &pem, &err), 0);
    assert_int_equal(cert_expiry(pem, &end_s, &err), 0);
    assert_int_equal(end_s, NOW + 10 * 86400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_is_read),
        cmocka_unit_test(test_what_is_no_request_is_refused),
        cmocka_unit_test(test_a_certificate_has_what_was_asked_for_and_no_more),
        cmocka_unit_test(test_no_certificate_outlives_its_authority),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("net/cert_request", tests, NULL, NULL);
}
