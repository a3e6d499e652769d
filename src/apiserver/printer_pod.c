// SPDX-License-Identifier: Apache-2.0
// The cells of pods.
#include "api/pod_summary.h"
#include "apiserver/printer_priv.h"

void print_pod_ready(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(api_pod_summary_fini) struct api_pod_summary s = {0};

    api_pod_summarize(obj, &s);
    hk_buf_addf(out, "%u/%u", s.ready, s.total);
}

void print_pod_status(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(api_pod_summary_fini) struct api_pod_summary s = {0};

    api_pod_summarize(obj, &s);
    hk_buf_addstr(out, hk_buf_str(&s.status));
}

void print_pod_restarts(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(api_pod_summary_fini) struct api_pod_summary s = {0};

    api_pod_summarize(obj, &s);
    api_pod_write_restarts(&s, now_ns, out);
}

void print_pod_ip(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str listed =
        json_str_field(json_item(json_list_at(obj, "status.podIPs"), 0), "ip");
    const struct hk_str ip = listed.n > 0 ? listed : json_str_at(obj, "status.podIP");

    hk_buf_addstr(out, ip.n > 0 ? ip : HK_STR("<none>"));
}

void print_pod_gates(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *gates = json_list_at(obj, "spec.readinessGates");
    uint32_t passed = 0;

    if (gates->len == 0) {
        hk_buf_adds(out, "<none>");
        return;
    }
    for (uint32_t k = 0; k < gates->len; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf type = {0};
        hk_buf_addstr(&type, json_str_field(&gates->items[k], "conditionType"));
        passed += hk_str_is(print_condition(obj, hk_buf_str(&type).s), "True");
    }
    hk_buf_addf(out, "%u/%u", passed, gates->len);
}
