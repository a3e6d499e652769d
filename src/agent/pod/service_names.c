// SPDX-License-Identifier: Apache-2.0
// Hosts files are read at every look-up, so the number of lines is bounded; a comment in the file
// says how many are left out. The lines are the same for all pods of a namespace and kept until a
// Service changes.
#include "agent/pod/service_names.h"

#include "api/services.h"

enum {
    OWN_LINES_MAX = 1000,  /* of Services of the pod's namespace */
    OTHER_LINES_MAX = 500, /* of those of other namespaces */
    HOSTNAMES_MAX = 1000,
};

struct service_names_text {
    char *ns;
    struct hk_buf text;
};

struct service_names {
    struct services *s;
    const char *domain;
    void (*changed)(void *ctx);
    void *ctx;
    HK_VEC(struct service_names_text) texts;
};

/* Lines that are still allowed, and those that did not fit. */
struct service_names_room {
    uint32_t left, omitted;
};

static void service_names_forget(struct service_names *n)
{
    while (n->texts.len > 0) {
        struct service_names_text t = hk_vec_pop(&n->texts);

        hk_free(t.ns);
        hk_buf_fini(&t.text);
    }
}

static void service_names_on_service(void *ctx, const struct service *svc)
{
    struct service_names *n = ctx;

    service_names_forget(n);
    n->changed(n->ctx);
}

/* ---- lines ---- */

static bool service_names_fits(struct service_names_room *room)
{
    if (room->left == 0) {
        room->omitted++;
        return false;
    }
    room->left--;
    return true;
}

/* host NULL: the Service itself. */
static void service_names_line(const struct service_names *n, const struct service *svc,
                               const char *address, const char *host, bool own, struct hk_buf *out)
{
    static const char *const ends[] = {"", ".svc", ".svc."};
    const char *head = host ? host : "", *dot = host ? "." : "";

    hk_buf_adds(out, address);
    if (own) {
        hk_buf_addf(out, " %s%s%s", head, dot, svc->name);
    }
    for (size_t i = 0; i < HK_LEN(ends); i++) {
        hk_buf_addf(out, " %s%s%s.%s%s%s", head, dot, svc->name, svc->ns, ends[i],
                    i == HK_LEN(ends) - 1 ? n->domain : "");
    }
    hk_buf_addc(out, '\n');
}

static void service_names_write_headless(const struct service_names *n, const struct service *svc,
                                         bool own, struct service_names_room *room,
                                         struct hk_buf *out)
{
    for (uint32_t i = 0; i < svc->slices.len; i++) {
        const struct service_slice *slice = &svc->slices.at[i];

        for (uint32_t k = 0; k < slice->endpoints.len; k++) {
            if (slice->endpoints.at[k].ready && service_names_fits(room)) {
                service_names_line(n, svc, slice->endpoints.at[k].address, NULL, own, out);
            }
        }
    }
}

static void service_names_write_service(const struct service_names *n, const struct service *svc,
                                        bool own, struct service_names_room *room,
                                        struct hk_buf *out)
{
    if (svc->headless) {
        service_names_write_headless(n, svc, own, room, out);
    } else if (svc->address[0] != '\0' && service_names_fits(room)) {
        service_names_line(n, svc, svc->address, NULL, own, out);
    }
}

static bool service_names_is_api(const struct service *svc)
{
    return strcmp(svc->ns, "default") == 0 && strcmp(svc->name, "kubernetes") == 0;
}

/* The Services of the namespace, or those of all others. */
static void service_names_write_all(const struct service_names *n, struct hk_str ns, bool own,
                                    bool api, struct hk_buf *out)
{
    struct service_names_room room = {own ? OWN_LINES_MAX : OTHER_LINES_MAX, 0};

    for (uint32_t i = 0; i < services_rows(n->s); i++) {
        const struct service *svc = services_at(n->s, i);

        if (svc && svc->exists && hk_str_is(ns, svc->ns) == own &&
            service_names_is_api(svc) == api) {
            service_names_write_service(n, svc, own, &room, out);
        }
    }
    if (room.omitted > 0) {
        hk_buf_addf(out, "# %u more addresses of Services %s are left out\n", room.omitted,
                    own ? "of this namespace" : "of other namespaces");
    }
}

/* The lines but for hostnames. The API comes first: no limit cuts it off. */
static struct hk_str service_names_text(struct service_names *n, struct hk_str ns)
{
    struct service_names_text *t;

    for (uint32_t i = 0; i < n->texts.len; i++) {
        if (hk_str_is(ns, n->texts.at[i].ns)) {
            return hk_buf_str(&n->texts.at[i].text);
        }
    }
    hk_vec_push(&n->texts, (struct service_names_text){.ns = hk_strndup(ns.s, ns.n)});
    t = &n->texts.at[n->texts.len - 1];
    service_names_write_all(n, ns, true, true, &t->text);
    service_names_write_all(n, ns, false, true, &t->text);
    service_names_write_all(n, ns, true, false, &t->text);
    service_names_write_all(n, ns, false, false, &t->text);
    return hk_buf_str(&t->text);
}

/* Pods with a hostname, below the headless Services of the namespace. */
static void service_names_write_hosts(const struct service_names *n, const struct service *svc,
                                      struct service_names_room *room, struct hk_buf *out)
{
    for (uint32_t i = 0; i < svc->slices.len; i++) {
        const struct service_slice *slice = &svc->slices.at[i];

        for (uint32_t k = 0; k < slice->endpoints.len; k++) {
            const struct service_endpoint *e = &slice->endpoints.at[k];

            if (e->ready && e->hostname && service_names_fits(room)) {
                service_names_line(n, svc, e->address, e->hostname, true, out);
            }
        }
    }
}

void service_names_write(struct service_names *n, struct hk_str ns, struct hk_str listed,
                         struct hk_buf *out)
{
    struct service_names_room room = {HOSTNAMES_MAX, 0};

    if (!n) {
        return;
    }
    hk_buf_addstr(out, service_names_text(n, ns));
    for (uint32_t i = 0; i < services_rows(n->s); i++) {
        const struct service *svc = services_at(n->s, i);

        if (svc && svc->exists && svc->headless && hk_str_is(ns, svc->ns) &&
            !hk_str_is(listed, svc->name)) {
            service_names_write_hosts(n, svc, &room, out);
        }
    }
    if (room.omitted > 0) {
        hk_buf_addf(out, "# %u more hosts of headless Services are left out\n", room.omitted);
    }
}

/* ---- the whole ---- */

struct service_names *service_names_new(struct services *s, const char *domain,
                                        void (*changed)(void *ctx), void *ctx)
{
    struct service_names *n = hk_zalloc(sizeof(*n));

    n->s = s;
    n->domain = domain;
    n->changed = changed;
    n->ctx = ctx;
    services_listen(s, service_names_on_service, n);
    return n;
}

void service_names_free(struct service_names *n)
{
    if (n) {
        service_names_forget(n);
        hk_vec_fini(&n->texts);
        hk_free(n);
    }
}
