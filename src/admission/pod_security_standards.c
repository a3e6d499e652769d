// SPDX-License-Identifier: Apache-2.0
// The Pod Security Standards, one function per control. Each examines the pod and all its
// containers, init and ephemeral ones included, and names the violators. Names, order and messages
// are those of Kubernetes' pod-security-admission, so that users find them in its documentation.
#include "admission/pod_security_standards.h"

#include "admission/admission_priv.h"

#define APPARMOR_PREFIX "container.apparmor.security.beta.kubernetes.io/"

static const char *const level_names[] = {
    [PSS_PRIVILEGED] = "privileged", [PSS_BASELINE] = "baseline", [PSS_RESTRICTED] = "restricted"};

const char *pss_level_name(enum pss_level level)
{
    return level_names[level];
}

bool pss_level_parse(struct hk_str text, enum pss_level *ret)
{
    for (size_t i = 0; i < HK_LEN(level_names); i++) {
        if (hk_str_is(text, level_names[i])) {
            *ret = (enum pss_level)i;
            return true;
        }
    }
    return false;
}

/* ---- lists of strings ---- */

struct words {
    struct hk_str *at;
    uint32_t len, cap;
};

static void words_fini(struct words *w)
{
    hk_vec_fini(w);
}

static void words_add(struct words *w, struct hk_str word)
{
    hk_vec_push(w, word);
}

/* Keeps the list sorted and free of duplicates. */
static void words_insert(struct words *w, struct hk_str word)
{
    uint32_t i = w->len;

    for (uint32_t k = 0; k < w->len; k++) {
        if (hk_str_eq(w->at[k], word)) {
            return;
        }
    }
    hk_vec_push(w, word);
    while (i > 0 && hk_str_cmp(w->at[i - 1], word) > 0) {
        w->at[i] = w->at[i - 1];
        i--;
    }
    w->at[i] = word;
}

static const char *plural(uint32_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

static void words_write(const struct words *w, bool quoted, struct hk_buf *out)
{
    for (uint32_t i = 0; i < w->len; i++) {
        hk_buf_adds(out, i > 0 ? ", " : "");
        if (quoted) {
            json_write_str(w->at[i], out);
        } else {
            hk_buf_addstr(out, w->at[i]);
        }
    }
}

/* Writes `container "c"` or `containers "a", "b"`. */
static void write_containers(const struct words *names, struct hk_buf *out)
{
    hk_buf_addf(out, "%s ", plural(names->len, "container", "containers"));
    words_write(names, true, out);
}

/* The same, after "pod" when the pod itself has the setting. */
static void write_setters(bool pod, const struct words *containers, struct hk_buf *out)
{
    hk_buf_adds(out, pod ? "pod" : "");
    hk_buf_adds(out, pod && containers->len > 0 ? " and " : "");
    if (containers->len > 0) {
        write_containers(containers, out);
    }
}

/* ---- the pod ---- */

struct pss_pod {
    const struct json *metadata, *spec;
};

struct cursor {
    const struct json *spec;
    uint32_t list, at;
};

/* NULL after the last. */
static const struct json *next_container(struct cursor *c)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

    for (; c->list < HK_LEN(lists); c->list++, c->at = 0) {
        const struct json *list = json_get(c->spec, lists[c->list]);
        if (c->at < edit_len(list)) {
            return json_item(list, c->at++);
        }
    }
    return NULL;
}

static struct hk_str pss_name_field(const struct json *named)
{
    return edit_str(named, "name");
}

static const struct json *context_of(const struct json *pod_or_container)
{
    return json_get(pod_or_container, "securityContext");
}

static bool is_windows(const struct pss_pod *p)
{
    return hk_str_is(edit_str(json_get(p->spec, "os"), "name"), "windows");
}

static bool is_one_of(struct hk_str word, const char *const *allowed)
{
    for (; *allowed; allowed++) {
        if (hk_str_is(word, *allowed)) {
            return true;
        }
    }
    return false;
}

/* Collects the names of the containers whose securityContext passes the test. */
static void find_containers(const struct pss_pod *p, bool (*test)(const struct json *context),
                            struct words *ret)
{
    struct cursor c = {.spec = p->spec};

    for (const struct json *k; (k = next_container(&c));) {
        if (test(context_of(k))) {
            words_add(ret, pss_name_field(k));
        }
    }
}

/* ---- baseline ---- */

static bool is_profile_allowed(struct hk_str type)
{
    static const char *const allowed[] = {"RuntimeDefault", "Localhost", NULL};

    return is_one_of(type, allowed);
}

/* True when the profile (appArmorProfile, seccompProfile) is set to a type that is not allowed. */
static bool is_bad_profile(const struct json *context, const char *key, struct words *values)
{
    const struct json *profile = json_get(context, key);
    const struct hk_str type = edit_str(profile, "type");

    if (!json_is(profile, JSON_OBJECT) || is_profile_allowed(type)) {
        return false;
    }
    words_insert(values, type);
    return true;
}

static bool is_annotation_allowed(struct hk_str value)
{
    return value.n == 0 || hk_str_is(value, "runtime/default") ||
           hk_str_starts(value, "localhost/");
}

static uint32_t add_apparmor_annotations(const struct pss_pod *p, struct hk_buf *text,
                                         struct words *values)
{
    const struct json *notes = json_get(p->metadata, "annotations");
    uint32_t n = 0;

    for (uint32_t i = 0; i < edit_size(notes); i++) {
        const struct hk_str value = json_str(&notes->members[i].value, HK_STR(""));
        if (!hk_str_starts(notes->members[i].key, APPARMOR_PREFIX) ||
            is_annotation_allowed(value)) {
            continue;
        }
        hk_buf_addf(text, "%s%.*s=\"%.*s\"", n++ > 0 ? "\n" : "", HK_FMT(notes->members[i].key),
                    HK_FMT(value));
    }
    struct hk_str rest = hk_buf_str(text), line;
    while (n > 0 && hk_str_cut(&rest, '\n', &line)) {
        words_insert(values, line);
    }
    return n;
}

static const char *pss_apparmor(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    HK_AUTO(words_fini) struct words values = {0};
    HK_AUTO(words_fini) struct words annotated = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const bool pod = is_bad_profile(context_of(p->spec), "appArmorProfile", &values);
    const uint32_t notes = add_apparmor_annotations(p, &text, &annotated);
    struct cursor c = {.spec = p->spec};

    for (const struct json *k; (k = next_container(&c));) {
        if (is_bad_profile(context_of(k), "appArmorProfile", &values)) {
            words_add(&names, pss_name_field(k));
        }
    }
    if (!pod && names.len == 0 && notes == 0) {
        return NULL;
    }
    write_setters(pod, &names, out);
    if (notes > 0) {
        hk_buf_addf(out, "%s%s", pod || names.len > 0 ? " and " : "",
                    plural(notes, "annotation", "annotations"));
    }
    for (uint32_t i = 0; i < annotated.len; i++) {
        words_add(&values, annotated.at[i]);
    }
    hk_buf_adds(out, " must not set AppArmor profile type to ");
    words_write(&values, true, out);
    return plural(values.len, "forbidden AppArmor profile", "forbidden AppArmor profiles");
}

/* Collects the names in capabilities.add that are not allowed; true when there are any. */
static bool find_added(const struct json *container, const char *const *allowed, struct words *ret)
{
    const struct json *add = json_at(context_of(container), "capabilities.add");
    bool found = false;

    for (uint32_t i = 0; i < edit_len(add); i++) {
        const struct hk_str name = json_str(json_item(add, i), HK_STR(""));
        if (!is_one_of(name, allowed)) {
            words_insert(ret, name);
            found = true;
        }
    }
    return found;
}

static bool write_added(const struct pss_pod *p, const char *const *allowed, const char *before,
                        struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    HK_AUTO(words_fini) struct words added = {0};
    struct cursor c = {.spec = p->spec};

    for (const struct json *k; (k = next_container(&c));) {
        if (find_added(k, allowed, &added)) {
            words_add(&names, pss_name_field(k));
        }
    }
    if (names.len == 0) {
        return false;
    }
    hk_buf_adds(out, before);
    write_containers(&names, out);
    hk_buf_adds(out, " must not include ");
    words_write(&added, true, out);
    hk_buf_adds(out, " in securityContext.capabilities.add");
    return true;
}

static const char *pss_capabilities_baseline(const struct pss_pod *p, struct hk_buf *out)
{
    static const char *const usual[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};

    return write_added(p, usual, "", out) ? "non-default capabilities" : NULL;
}

static const char *pss_host_namespaces(const struct pss_pod *p, struct hk_buf *out)
{
    static const char *const keys[] = {"hostNetwork", "hostPID", "hostIPC"};
    uint32_t n = 0;

    for (size_t i = 0; i < HK_LEN(keys); i++) {
        if (json_bool(json_get(p->spec, keys[i]), false)) {
            hk_buf_addf(out, "%s%s=true", n++ > 0 ? ", " : "", keys[i]);
        }
    }
    return n > 0 ? "host namespaces" : NULL;
}

static const char *pss_host_path(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    const struct json *volumes = json_get(p->spec, "volumes");

    for (uint32_t i = 0; i < edit_len(volumes); i++) {
        if (edit_has(json_item(volumes, i), "hostPath")) {
            words_add(&names, pss_name_field(json_item(volumes, i)));
        }
    }
    if (names.len == 0) {
        return NULL;
    }
    hk_buf_addf(out, "%s ", plural(names.len, "volume", "volumes"));
    words_write(&names, true, out);
    return "hostPath volumes";
}

static void add_port(struct hk_buf *text, int64_t port)
{
    hk_buf_addf(text, "%s%lld", text->len > 0 ? " " : "", (long long)port);
}

static const char *pss_host_ports(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    HK_AUTO(words_fini) struct words ports = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct cursor c = {.spec = p->spec};
    struct hk_str rest, port;

    for (const struct json *k; (k = next_container(&c));) {
        const struct json *list = json_get(k, "ports");
        const size_t before = text.len;
        for (uint32_t i = 0; i < edit_len(list); i++) {
            const int64_t n = json_int(json_get(json_item(list, i), "hostPort"), 0);
            if (n != 0) {
                add_port(&text, n);
            }
        }
        if (text.len > before) {
            words_add(&names, pss_name_field(k));
        }
    }
    if (names.len == 0) {
        return NULL;
    }
    for (rest = hk_buf_str(&text); hk_str_cut(&rest, ' ', &port);) {
        words_insert(&ports, port);
    }
    write_containers(&names, out);
    hk_buf_addf(out, " %s %s ", plural(names.len, "uses", "use"),
                plural(ports.len, "hostPort", "hostPorts"));
    words_write(&ports, false, out);
    return plural(ports.len, "hostPort", "hostPorts");
}

/* Collects the hosts that a handler tells the kubelet to connect to. */
static void add_hosts(const struct json *handler, struct words *ret)
{
    static const char *const actions[] = {"httpGet", "tcpSocket"};

    for (size_t i = 0; i < HK_LEN(actions); i++) {
        const struct hk_str host = edit_str(json_get(handler, actions[i]), "host");
        if (host.n > 0) {
            words_insert(ret, host);
        }
    }
}

static void add_all_hosts(const struct json *container, struct words *ret)
{
    static const char *const handlers[] = {"livenessProbe", "readinessProbe", "startupProbe",
                                           "lifecycle.postStart", "lifecycle.preStop"};

    for (size_t i = 0; i < HK_LEN(handlers); i++) {
        add_hosts(json_at(container, handlers[i]), ret);
    }
}

static const char *pss_probe_hosts(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    HK_AUTO(words_fini) struct words hosts = {0};
    struct cursor c = {.spec = p->spec};

    for (const struct json *k; (k = next_container(&c));) {
        HK_AUTO(words_fini) struct words own = {0};
        add_all_hosts(k, &own);
        for (uint32_t i = 0; i < own.len; i++) {
            words_insert(&hosts, own.at[i]);
            words_insert(&names, pss_name_field(k));
        }
    }
    if (names.len == 0) {
        return NULL;
    }
    write_containers(&names, out);
    hk_buf_addf(out, " %s %s ", plural(names.len, "uses", "use"),
                plural(hosts.len, "probe or lifecycle host", "probe or lifecycle hosts"));
    words_write(&hosts, true, out);
    return "probe or lifecycle host";
}

static bool is_privileged(const struct json *context)
{
    return json_bool(json_get(context, "privileged"), false);
}

static const char *pss_privileged(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};

    find_containers(p, is_privileged, &names);
    if (names.len == 0) {
        return NULL;
    }
    write_containers(&names, out);
    hk_buf_adds(out, " must not set securityContext.privileged=true");
    return "privileged";
}

static const char *pss_proc_mount(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    HK_AUTO(words_fini) struct words types = {0};
    struct cursor c = {.spec = p->spec};

    for (const struct json *k; (k = next_container(&c));) {
        const struct hk_str type = edit_str(context_of(k), "procMount");
        if (type.n > 0 && !hk_str_is(type, "Default")) {
            words_add(&names, pss_name_field(k));
            words_insert(&types, type);
        }
    }
    if (names.len == 0) {
        return NULL;
    }
    write_containers(&names, out);
    hk_buf_adds(out, " must not set securityContext.procMount to ");
    words_write(&types, true, out);
    return "procMount";
}

struct selinux_faults {
    struct words types;
    bool user, role;
};

static bool note_selinux(const struct json *context, struct selinux_faults *f)
{
    static const char *const allowed[] = {
        "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", NULL};
    const struct json *o = json_get(context, "seLinuxOptions");
    const struct hk_str type = edit_str(o, "type");
    const bool user = edit_str(o, "user").n > 0, role = edit_str(o, "role").n > 0;

    if (!is_one_of(type, allowed)) {
        words_insert(&f->types, type);
    }
    f->user |= user;
    f->role |= role;
    return user || role || !is_one_of(type, allowed);
}

static void write_selinux(const struct selinux_faults *f, struct hk_buf *out)
{
    const char *sep = "";

    if (f->types.len > 0) {
        hk_buf_addf(out, "%s ", plural(f->types.len, "type", "types"));
        words_write(&f->types, true, out);
        sep = "; ";
    }
    if (f->user) {
        hk_buf_addf(out, "%suser may not be set", sep);
        sep = "; ";
    }
    if (f->role) {
        hk_buf_addf(out, "%srole may not be set", sep);
    }
}

static const char *pss_selinux(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    struct selinux_faults f = {0};
    const bool pod = note_selinux(context_of(p->spec), &f);
    struct cursor c = {.spec = p->spec};

    for (const struct json *k; (k = next_container(&c));) {
        if (note_selinux(context_of(k), &f)) {
            words_add(&names, pss_name_field(k));
        }
    }
    const bool broken = pod || names.len > 0;
    if (broken) {
        write_setters(pod, &names, out);
        hk_buf_adds(out, " set forbidden securityContext.seLinuxOptions: ");
        write_selinux(&f, out);
    }
    words_fini(&f.types);
    return broken ? "seLinuxOptions" : NULL;
}

static const char *pss_seccomp_baseline(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    HK_AUTO(words_fini) struct words values = {0};
    const bool pod = is_bad_profile(context_of(p->spec), "seccompProfile", &values);
    struct cursor c = {.spec = p->spec};

    for (const struct json *k; (k = next_container(&c));) {
        if (is_bad_profile(context_of(k), "seccompProfile", &values)) {
            words_add(&names, pss_name_field(k));
        }
    }
    if (!pod && names.len == 0) {
        return NULL;
    }
    write_setters(pod, &names, out);
    hk_buf_adds(out, " must not set securityContext.seccompProfile.type to ");
    words_write(&values, true, out);
    return "seccompProfile";
}

static const char *pss_sysctls(const struct pss_pod *p, struct hk_buf *out)
{
    static const char *const allowed[] = {"kernel.shm_rmid_forced",
                                          "net.ipv4.ip_local_port_range",
                                          "net.ipv4.tcp_syncookies",
                                          "net.ipv4.ping_group_range",
                                          "net.ipv4.ip_unprivileged_port_start",
                                          "net.ipv4.ip_local_reserved_ports",
                                          "net.ipv4.tcp_keepalive_time",
                                          "net.ipv4.tcp_fin_timeout",
                                          "net.ipv4.tcp_keepalive_intvl",
                                          "net.ipv4.tcp_keepalive_probes",
                                          "net.ipv4.tcp_rmem",
                                          "net.ipv4.tcp_wmem",
                                          NULL};
    HK_AUTO(words_fini) struct words names = {0};
    const struct json *list = json_get(context_of(p->spec), "sysctls");

    for (uint32_t i = 0; i < edit_len(list); i++) {
        if (!is_one_of(pss_name_field(json_item(list, i)), allowed)) {
            words_add(&names, pss_name_field(json_item(list, i)));
        }
    }
    words_write(&names, false, out);
    return names.len > 0 ? "forbidden sysctls" : NULL;
}

static bool is_host_process(const struct json *context)
{
    return json_bool(json_at(context, "windowsOptions.hostProcess"), false);
}

static const char *pss_host_process(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    const bool pod = is_host_process(context_of(p->spec));

    find_containers(p, is_host_process, &names);
    if (!pod && names.len == 0) {
        return NULL;
    }
    write_setters(pod, &names, out);
    hk_buf_adds(out, " must not set securityContext.windowsOptions.hostProcess=true");
    return "hostProcess";
}

/* ---- restricted ---- */

static bool may_escalate(const struct json *context)
{
    return json_bool(json_get(context, "allowPrivilegeEscalation"), true);
}

static const char *pss_escalation(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};

    if (is_windows(p)) {
        return NULL;
    }
    find_containers(p, may_escalate, &names);
    if (names.len == 0) {
        return NULL;
    }
    write_containers(&names, out);
    hk_buf_adds(out, " must set securityContext.allowPrivilegeEscalation=false");
    return "allowPrivilegeEscalation != false";
}

static bool keeps_some(const struct json *context)
{
    return !edit_list_has(json_at(context, "capabilities.drop"), HK_STR("ALL"));
}

static const char *pss_capabilities_restricted(const struct pss_pod *p, struct hk_buf *out)
{
    static const char *const allowed[] = {"NET_BIND_SERVICE", NULL};
    HK_AUTO(words_fini) struct words names = {0};
    bool added;

    if (is_windows(p)) {
        return NULL;
    }
    find_containers(p, keeps_some, &names);
    if (names.len > 0) {
        write_containers(&names, out);
        hk_buf_adds(out, " must set securityContext.capabilities.drop=[\"ALL\"]");
    }
    added = write_added(p, allowed, names.len > 0 ? "; " : "", out);
    return names.len > 0 || added ? "unrestricted capabilities" : NULL;
}

/* The field name of the volume's source; "" when it is allowed. */
static struct hk_str restricted_source(const struct json *volume)
{
    static const char *const allowed[] = {"configMap", "csi",       "downwardAPI",
                                          "emptyDir",  "ephemeral", "persistentVolumeClaim",
                                          "projected", "secret",    NULL};
    struct hk_str other = HK_STR("unknown");

    for (uint32_t i = 0; i < edit_size(volume); i++) {
        const struct hk_str key = volume->members[i].key;
        if (is_one_of(key, allowed)) {
            return HK_STR("");
        }
        if (!hk_str_is(key, "name")) {
            other = key;
        }
    }
    return other;
}

static const char *pss_volumes(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    HK_AUTO(words_fini) struct words sources = {0};
    const struct json *volumes = json_get(p->spec, "volumes");

    for (uint32_t i = 0; i < edit_len(volumes); i++) {
        const struct hk_str source = restricted_source(json_item(volumes, i));
        if (source.n > 0) {
            words_add(&names, pss_name_field(json_item(volumes, i)));
            words_insert(&sources, source);
        }
    }
    if (names.len == 0) {
        return NULL;
    }
    hk_buf_addf(out, "%s ", plural(names.len, "volume", "volumes"));
    words_write(&names, true, out);
    hk_buf_addf(out, " %s %s ", plural(names.len, "uses", "use"),
                plural(sources.len, "restricted volume type", "restricted volume types"));
    words_write(&sources, true, out);
    return "restricted volume types";
}

static bool says_root(const struct json *context)
{
    return !json_bool(json_get(context, "runAsNonRoot"), true);
}

static bool says_nothing_of_root(const struct json *context)
{
    return !edit_has(context, "runAsNonRoot");
}

static const char *pss_non_root(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words bad = {0};
    HK_AUTO(words_fini) struct words silent = {0};
    const bool pod_bad = says_root(context_of(p->spec));
    const bool pod_good = json_bool(json_get(context_of(p->spec), "runAsNonRoot"), false);

    find_containers(p, says_root, &bad);
    find_containers(p, says_nothing_of_root, &silent);
    if (pod_bad || bad.len > 0) {
        write_setters(pod_bad, &bad, out);
        hk_buf_adds(out, " must not set securityContext.runAsNonRoot=false");
        return "runAsNonRoot != true";
    }
    if (pod_good || silent.len == 0) {
        return NULL;
    }
    hk_buf_adds(out, "pod or ");
    write_containers(&silent, out);
    hk_buf_adds(out, " must set securityContext.runAsNonRoot=true");
    return "runAsNonRoot != true";
}

static bool is_user_root(const struct json *context)
{
    return json_int(json_get(context, "runAsUser"), 1) == 0;
}

static const char *pss_user(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words names = {0};
    const bool pod = is_user_root(context_of(p->spec));

    find_containers(p, is_user_root, &names);
    if (!pod && names.len == 0) {
        return NULL;
    }
    write_setters(pod, &names, out);
    hk_buf_adds(out, " must not set runAsUser=0");
    return "runAsUser=0";
}

static bool lacks_seccomp(const struct json *context)
{
    return !edit_has(context, "seccompProfile");
}

static const char *pss_seccomp_restricted(const struct pss_pod *p, struct hk_buf *out)
{
    HK_AUTO(words_fini) struct words silent = {0};
    const char *bad = is_windows(p) ? NULL : pss_seccomp_baseline(p, out);

    if (bad || is_windows(p)) {
        return bad;
    }
    find_containers(p, lacks_seccomp, &silent);
    if (!lacks_seccomp(context_of(p->spec)) || silent.len == 0) {
        return NULL;
    }
    hk_buf_adds(out, "pod or ");
    write_containers(&silent, out);
    hk_buf_adds(out, " must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
                     "\"Localhost\"");
    return "seccompProfile";
}

/* ---- all controls ---- */

/* In Kubernetes' order: baseline by name, then restricted. Some restricted controls replace a
 * weaker one. */
static const struct {
    enum pss_level from, to;
    /* Returns the reason when the pod violates the control and appends details; else NULL. */
    const char *(*check)(const struct pss_pod *p, struct hk_buf *out);
} controls[] = {
    {PSS_BASELINE, PSS_RESTRICTED, pss_apparmor},
    {PSS_BASELINE, PSS_BASELINE, pss_capabilities_baseline},
    {PSS_BASELINE, PSS_RESTRICTED, pss_host_namespaces},
    {PSS_BASELINE, PSS_BASELINE, pss_host_path},
    {PSS_BASELINE, PSS_RESTRICTED, pss_host_ports},
    {PSS_BASELINE, PSS_RESTRICTED, pss_probe_hosts},
    {PSS_BASELINE, PSS_RESTRICTED, pss_privileged},
    {PSS_BASELINE, PSS_RESTRICTED, pss_proc_mount},
    {PSS_BASELINE, PSS_RESTRICTED, pss_selinux},
    {PSS_BASELINE, PSS_BASELINE, pss_seccomp_baseline},
    {PSS_BASELINE, PSS_RESTRICTED, pss_sysctls},
    {PSS_BASELINE, PSS_RESTRICTED, pss_host_process},
    {PSS_RESTRICTED, PSS_RESTRICTED, pss_escalation},
    {PSS_RESTRICTED, PSS_RESTRICTED, pss_capabilities_restricted},
    {PSS_RESTRICTED, PSS_RESTRICTED, pss_volumes},
    {PSS_RESTRICTED, PSS_RESTRICTED, pss_non_root},
    {PSS_RESTRICTED, PSS_RESTRICTED, pss_user},
    {PSS_RESTRICTED, PSS_RESTRICTED, pss_seccomp_restricted},
};

uint32_t pss_check(enum pss_level level, const struct json *metadata, const struct json *spec,
                   struct hk_buf *details, struct hk_buf *reasons)
{
    const struct pss_pod p = {metadata, spec};
    uint32_t n = 0;

    for (size_t i = 0; i < HK_LEN(controls); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf detail = {0};
        const char *reason = level < controls[i].from || level > controls[i].to
                                 ? NULL
                                 : controls[i].check(&p, &detail);
        if (!reason) {
            continue;
        }
        if (details) {
            hk_buf_addf(details, "%s%s (%s)", n > 0 ? ", " : "", reason, hk_buf_str(&detail).s);
        }
        if (reasons) {
            hk_buf_addf(reasons, "%s%s", n > 0 ? ", " : "", reason);
        }
        n++;
    }
    return n;
}
