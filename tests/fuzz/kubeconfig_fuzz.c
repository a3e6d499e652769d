// SPDX-License-Identifier: Apache-2.0
// Kubeconfig files and the output of credential plugins from arbitrary bytes: what is accepted
// holds what a client builds on.

#include "client/exec_plugin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(struct hk_str text)
{
    const struct kubeconfig_opts none = {0};
    struct kubeconfig k = {0};
    struct hk_err err = {0};

    if (kubeconfig_parse(text, "/dir", &none, &k, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    hk_assert(strncmp(k.server, "http", 4) == 0 && strstr(k.server, "://"));
    hk_assert(k.ns[0] != '\0');
    hk_assert(!(k.insecure && (k.ca_pem || k.ca_file)));
    hk_assert(!(k.ca_pem && k.ca_file));
    hk_assert((k.cert_pem || k.cert_file) == (k.key_pem || k.key_file));
    if (k.exec) {
        HK_AUTO(hk_buf_fini) struct hk_buf info = {0};
        hk_assert(k.exec->command[0] != '\0');
        exec_plugin_info(&k, false, &info);
    }
    kubeconfig_fini(&k);
}

static void check_credential(struct hk_str text)
{
    struct exec_credential c = {0};
    struct hk_err err = {0};

    if (exec_credential_parse(text, "client.authentication.k8s.io/v1", &c, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    hk_assert(c.token || (c.cert_pem && c.key_pem));
    hk_assert(!c.token || !strpbrk(c.token, " \r\n"));
    exec_credential_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_str text = {(const char *)data, size};

    check_config(text);
    check_credential(text);
    return 0;
}
