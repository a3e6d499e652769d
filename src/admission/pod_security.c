// SPDX-License-Identifier: Apache-2.0
// The Pod Security Standard of a namespace, from its labels pod-security.kubernetes.io/enforce,
// warn and audit. A pod that violates the enforced level is refused, whoever creates it. A pod or
// pod template that violates the warned level gets a warning; a violation of the audited level goes
// to the audit log. Every version is treated as the latest.
#include "admission/admission_priv.h"
#include "admission/pod_security_standards.h"

#define PREFIX "pod-security.kubernetes.io/"

enum mode { MODE_ENFORCE, MODE_AUDIT, MODE_WARN, NMODES };

static const char *const level_keys[] = {
    [MODE_ENFORCE] = PREFIX "enforce", [MODE_AUDIT] = PREFIX "audit", [MODE_WARN] = PREFIX "warn"};
static const char *const version_keys[] = {[MODE_ENFORCE] = PREFIX "enforce-version",
                                           [MODE_AUDIT] = PREFIX "audit-version",
                                           [MODE_WARN] = PREFIX "warn-version"};

struct standard {
    enum pss_level level;
    struct hk_str version;
};

/* ---- labels ---- */

static bool is_version(struct hk_str text)
{
    if (hk_str_is(text, "latest")) {
        return true;
    }
    if (!hk_str_starts(text, "v1.") || text.n < 4 || (text.s[3] == '0' && text.n > 4)) {
        return false;
    }
    for (size_t i = 3; i < text.n; i++) {
        if (text.s[i] < '0' || text.s[i] > '9') {
            return false;
        }
    }
    return true;
}

/* An unknown level, stored before labels were validated, enforces the strictest level. */
static struct standard standard_of(const struct json *ns, enum mode mode)
{
    const struct json *labels = json_at(ns, "metadata.labels");
    const struct hk_str version = edit_str(labels, version_keys[mode]);
    struct standard s = {PSS_PRIVILEGED, HK_STR("latest")};

    if (edit_has(labels, level_keys[mode]) &&
        !pss_level_parse(edit_str(labels, level_keys[mode]), &s.level)) {
        s.level = mode == MODE_ENFORCE ? PSS_RESTRICTED : PSS_PRIVILEGED;
    }
    if (is_version(version)) {
        s.version = version;
    }
    return s;
}

/* Without a warn label, the enforced level also produces warnings. */
static struct standard warned_of(const struct json *ns)
{
    const bool own = edit_has(json_at(ns, "metadata.labels"), level_keys[MODE_WARN]);

    return standard_of(ns, own ? MODE_WARN : MODE_ENFORCE);
}

void admit_pod_security_labels(struct admission_request *q)
{
    const struct path metadata = path_field(NULL, "metadata");
    const struct path p = path_field(&metadata, "labels");
    const struct json *labels = json_at(q->obj, "metadata.labels");
    const struct json *old = json_at(q->old, "metadata.labels");

    for (size_t i = 0; i < NMODES; i++) {
        const struct path level_path = path_key(&p, hk_str(level_keys[i]));
        const struct path version_path = path_key(&p, hk_str(version_keys[i]));
        const struct hk_str level = edit_str(labels, level_keys[i]);
        const struct hk_str version = edit_str(labels, version_keys[i]);
        enum pss_level known;
        if (edit_has(labels, level_keys[i]) && !pss_level_parse(level, &known) &&
            !(edit_has(old, level_keys[i]) && hk_str_eq(level, edit_str(old, level_keys[i])))) {
            cause_invalid_str(q, &level_path, level,
                              "must be one of privileged, baseline, restricted");
        }
        if (edit_has(labels, version_keys[i]) && !is_version(version) &&
            !(edit_has(old, version_keys[i]) &&
              hk_str_eq(version, edit_str(old, version_keys[i])))) {
            cause_invalid_str(q, &version_path, version, "must be \"latest\" or \"v1.x\"");
        }
    }
}

/* ---- pods ---- */

/* `PodSecurity "restricted:latest": privileged (...)`, or NULL when the pod meets the standard. */
static const char *find_faults(const struct admission_request *q, const struct standard *s,
                               const struct json *metadata, const struct json *spec)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (pss_check(s->level, metadata, spec, &text, NULL) == 0) {
        return NULL;
    }
    return hk_arena_printf(q->mem, "PodSecurity \"%s:%.*s\": %s", pss_level_name(s->level),
                           HK_FMT(s->version), text.data);
}

static void add_warning(struct admission_request *q, const char *text)
{
    hk_vec_push(&q->warnings, hk_arena_strndup(q->mem, text, strlen(text)));
}

/* Records how a pod or template violates the audited and the warned level. */
static void warn_violations(struct admission_request *q, const struct json *ns,
                            const struct json *metadata, const struct json *spec, bool warn)
{
    const struct standard audit = standard_of(ns, MODE_AUDIT);
    const struct standard warned = warned_of(ns);
    const char *noted = find_faults(q, &audit, metadata, spec);
    const char *told = warn ? find_faults(q, &warned, metadata, spec) : NULL;

    if (noted) {
        q->audit = hk_arena_printf(q->mem, "would violate %s", noted);
    }
    if (told) {
        add_warning(q, hk_arena_printf(q->mem, "would violate %s", told));
    }
}

static bool has_same_images(const struct json *now, const struct json *old, const char *list)
{
    const struct json *a = json_get(now, list), *b = json_get(old, list);

    if (edit_len(a) != edit_len(b)) {
        return false;
    }
    for (uint32_t i = 0; i < edit_len(a); i++) {
        if (!hk_str_eq(edit_str(json_item(a, i), "image"), edit_str(json_item(b, i), "image"))) {
            return false;
        }
    }
    return true;
}

/* An update of a running pod can change images and add ephemeral containers. Other updates leave
 * the pod as admitted and need no check. */
static bool is_checked(const struct admission_request *q)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

    for (size_t i = 0; q->verb == ADMIT_UPDATE && i < HK_LEN(lists); i++) {
        if (!has_same_images(json_get(q->obj, "spec"), json_get(q->old, "spec"), lists[i])) {
            return true;
        }
    }
    return q->verb != ADMIT_UPDATE;
}

int admit_pod_security_pod(struct admission_request *q, struct hk_err *err)
{
    const struct json *ns = admit_get(q, api_kind(API_NAMESPACE), HK_STR(""), q->ns);
    const struct json *metadata = json_get(q->obj, "metadata");
    const struct json *spec = json_get(q->obj, "spec");
    const struct standard enforced = standard_of(ns, MODE_ENFORCE);
    const char *faults;

    if (!ns || !is_checked(q)) {
        return 0;
    }
    faults = find_faults(q, &enforced, metadata, spec);
    warn_violations(q, ns, metadata, spec, !faults);
    if (!faults) {
        return 0;
    }
    q->refusal = hk_arena_printf(q->mem, "violates %s", faults);
    return hk_fail(err, HK_EDENIED, "%s", q->refusal);
}

/* ---- templates ---- */

/* Templates that violate the same rules produce one warning. */
static bool pod_security_warn_template(void *arg, const struct path *path,
                                       const struct json *template)
{
    struct admission_request *q = arg;
    const struct json *ns = admit_get(q, api_kind(API_NAMESPACE), HK_STR(""), q->ns);
    const uint32_t before = q->warnings.len;

    warn_violations(q, ns, json_get(template, "metadata"), json_get(template, "spec"), true);
    if (before > 0 && q->warnings.len > before &&
        strcmp(q->warnings.at[before - 1], q->warnings.at[before]) == 0) {
        q->warnings.len = before;
    }
    return true;
}

/* Templates produce only warnings; the pods are checked when they are created. */
int admit_pod_security_template(struct admission_request *q, struct hk_err *err)
{
    admit_each_template(q->kind, q->obj, pod_security_warn_template, q);
    return 0;
}

/* ---- namespaces ---- */

enum { KINDS_OF_FAULTS = 16 }; /* at most this many groups */

/* Existing pods that violate the namespace's new level, grouped by the rules they violate. */
struct census {
    struct admission_request *q;
    enum pss_level level;
    uint32_t n;
    struct {
        const char *reasons, *first;
        uint32_t pods;
    } at[KINDS_OF_FAULTS];
};

static bool census_add(void *arg, const struct json *pod)
{
    HK_AUTO(hk_buf_fini) struct hk_buf reasons = {0};
    struct census *c = arg;
    const char *name = hk_arena_str(c->q->mem, edit_str(json_get(pod, "metadata"), "name")).s;
    uint32_t i = 0;

    if (pss_check(c->level, json_get(pod, "metadata"), json_get(pod, "spec"), NULL, &reasons) ==
        0) {
        return true;
    }
    while (i < c->n && strcmp(c->at[i].reasons, reasons.data) != 0) {
        i++;
    }
    if (i == KINDS_OF_FAULTS) {
        return true;
    }
    if (i == c->n) {
        c->n++;
        c->at[i].reasons = hk_arena_str(c->q->mem, hk_buf_str(&reasons)).s;
        c->at[i].first = name;
    }
    c->at[i].first = strcmp(name, c->at[i].first) < 0 ? name : c->at[i].first;
    c->at[i].pods++;
    return true;
}

static void warn_existing_pods(struct admission_request *q, const struct census *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t others = c->at[i].pods - 1;
        const char *more = others > 0 ? hk_arena_printf(q->mem, " (and %u other pod%s)", others,
                                                        others > 1 ? "s" : "")
                                      : "";
        add_warning(q, hk_arena_printf(q->mem, "%s%s: %s", c->at[i].first, more, c->at[i].reasons));
    }
}

int admit_pod_security_namespace(struct admission_request *q, struct hk_err *err)
{
    const struct standard now = standard_of(q->obj, MODE_ENFORCE);
    const struct standard old = standard_of(q->old, MODE_ENFORCE);
    struct census c = {.q = q, .level = now.level};

    if (now.level <= old.level) {
        return 0;
    }
    admit_each(q, api_kind(API_POD), q->name, census_add, &c);
    if (c.n > 0) {
        add_warning(q, hk_arena_printf(q->mem,
                                       "existing pods in namespace \"%.*s\" violate the new "
                                       "PodSecurity enforce level \"%s:%.*s\"",
                                       HK_FMT(q->name), pss_level_name(now.level),
                                       HK_FMT(now.version)));
        warn_existing_pods(q, &c);
    }
    return 0;
}
