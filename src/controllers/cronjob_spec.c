// SPDX-License-Identifier: Apache-2.0
// Members of a CronJob's spec and status that Volcano's kind and that of Kubernetes have in common.
#include "controllers/cronjob_priv.h"

#define MINUTE_NS (60 * INT64_C(1000000000))

enum { SUCCESSFUL_LIMIT = 3, FAILED_LIMIT = 1 };

struct hk_str cronjob_zone_name(const struct json *spec, const char *local_zone)
{
    return json_str(json_get(spec, "timeZone"), hk_str(local_zone ? local_zone : ""));
}

struct hk_str cronjob_job_name(struct hk_arena *a, struct hk_str cronjob, int64_t slot_ns)
{
    return hk_str(
        hk_arena_printf(a, "%.*s-%lld", HK_FMT(cronjob), (long long)(slot_ns / MINUTE_NS)));
}

int64_t cronjob_history_limit(const struct json *spec, bool successful)
{
    return successful ? json_int(json_get(spec, "successfulJobsHistoryLimit"), SUCCESSFUL_LIMIT)
                      : json_int(json_get(spec, "failedJobsHistoryLimit"), FAILED_LIMIT);
}

struct json cronjob_ref(struct hk_arena *a, const char *api_version, struct hk_str ns,
                        struct hk_str name, struct hk_str uid)
{
    struct json ref = json_make_object();

    json_set_cstr(&ref, a, "apiVersion", api_version);
    json_set_cstr(&ref, a, "kind", "Job");
    json_set_str(&ref, a, "namespace", ns);
    json_set_str(&ref, a, "name", name);
    json_set_str(&ref, a, "uid", uid);
    return ref;
}

bool cronjob_lists(const struct json *active, struct hk_str uid)
{
    for (uint32_t i = 0; i < json_len(active); i++) {
        if (hk_str_eq(json_str_field(&active->items[i], "uid"), uid)) {
            return true;
        }
    }
    return false;
}

void cronjob_set_time_if_known(struct json *status, struct hk_arena *a, const char *key, int64_t ns)
{
    if (ns > 0) {
        json_set_time(status, a, key, ns);
    }
}
