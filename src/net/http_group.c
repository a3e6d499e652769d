// SPDX-License-Identifier: Apache-2.0
// Groups connections by peer. A connection counts for its address until a user authenticates, and
// then for that user. At the limit, each new connection replaces an idle one: first of
// unauthenticated peers, and of the group that has most. So no peer can lock others out by opening
// connections, from one address or from the same machine, and active connections stay.
#include "net/http_priv.h"

#include <sys/socket.h>

static struct http_group **http_group_list_head(struct http_groups *all, const struct http_group *g)
{
    return g->user ? &all->users : &all->addresses;
}

static void group_free(struct http_groups *all, struct http_group *g)
{
    if (g->prev) {
        g->prev->next = g->next;
    } else {
        *http_group_list_head(all, g) = g->next;
    }
    if (g->next) {
        g->next->prev = g->prev;
    }
    all->by_key.at[g->key] = NULL;
    hk_intern_drop(&all->keys, g->key);
    hk_free(g);
}

static struct http_group *group_new(struct http_groups *all, bool user, uint32_t key)
{
    struct http_group *g = hk_zalloc(sizeof(*g));
    struct http_group **list;

    g->key = key;
    g->user = user;
    list = http_group_list_head(all, g);
    g->next = *list;
    if (g->next) {
        g->next->prev = g;
    }
    *list = g;
    return g;
}

static void http_group_write_key(bool user, struct hk_str name, struct hk_buf *out)
{
    hk_buf_addc(out, user ? 'u' : 'a');
    hk_buf_addstr(out, name);
}

struct http_group *http_group_find(const struct http_server *s, bool user, struct hk_str name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    http_group_write_key(user, name, &text);
    const uint32_t key = hk_intern_find(&s->groups.keys, hk_buf_str(&text));
    return key == HK_NONE ? NULL : s->groups.by_key.at[key];
}

struct http_group *http_group_get(struct http_server *s, bool user, struct hk_str name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct http_groups *all = &s->groups;

    http_group_write_key(user, name, &text);
    const uint32_t key = hk_intern_hold(&all->keys, hk_buf_str(&text));
    while (all->by_key.len <= key) {
        hk_vec_push(&all->by_key, NULL);
    }
    if (all->by_key.at[key]) {
        hk_intern_drop(&all->keys, key); /* the group holds its own reference */
    } else {
        all->by_key.at[key] = group_new(all, user, key);
    }
    return all->by_key.at[key];
}

void http_group_list(struct connection *c)
{
    struct http_group *g = c->group;

    if (c->listed || c->closing || !g) {
        return;
    }
    c->listed = true;
    c->older = g->newest;
    c->newer = NULL;
    if (g->newest) {
        g->newest->newer = c;
    } else {
        g->oldest = c;
    }
    g->newest = c;
}

void http_group_unlist(struct connection *c)
{
    struct http_group *g = c->group;

    if (!c->listed) {
        return;
    }
    c->listed = false;
    *(c->older ? &c->older->newer : &g->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &g->newest) = c->older;
}

void http_group_join(struct connection *c, struct http_group *g)
{
    struct http_group *const old = c->group;
    const size_t bytes = c->request ? c->request->counted : 0;
    const bool listed = c->listed;

    if (g == old) {
        return;
    }
    http_group_unlist(c);
    c->group = g;
    if (g) {
        g->n++;
        g->body_bytes += bytes;
    }
    if (old) {
        old->n--;
        old->body_bytes -= bytes;
        if (old->n == 0) {
            group_free(&c->server->groups, old);
        }
    }
    if (listed) {
        http_group_list(c);
    }
}

bool http_group_make_room(struct http_group *g)
{
    struct connection *c = g->oldest;

    if (!c) {
        return false;
    }
    http_group_unlist(c);
    c->closing = true;
    c->server->nshut++;
    shutdown(c->fd, SHUT_RDWR); /* makes the library's epoll set ready */
    return true;
}

static struct http_group *largest(struct http_group *list)
{
    struct http_group *most = NULL;

    for (struct http_group *g = list; g; g = g->next) {
        if (g->oldest && (!most || g->n > most->n)) {
            most = g;
        }
    }
    return most;
}

bool http_make_room(struct http_server *s)
{
    struct http_group *g = largest(s->groups.addresses);

    g = g ? g : largest(s->groups.users);
    return g && http_group_make_room(g);
}

bool http_request_claim(const struct http_request *pub, struct hk_str user)
{
    struct connection *c = ((const struct request *)pub)->conn;
    const uint32_t max = c->server->opts.max_per_user;
    struct http_group *g = c->group;

    if (g->user) {
        const struct hk_str key = hk_intern_str(&c->server->groups.keys, g->key);
        if (hk_str_eq((struct hk_str){key.s + 1, key.n - 1}, user)) {
            return true;
        }
    }
    g = http_group_find(c->server, true, user);
    if (max > 0 && g && g->n >= max && !http_group_make_room(g)) {
        return false;
    }
    http_group_join(c, http_group_get(c->server, true, user));
    return true;
}

void http_groups_fini(struct http_groups *all)
{
    while (all->users) {
        group_free(all, all->users);
    }
    while (all->addresses) {
        group_free(all, all->addresses);
    }
    hk_vec_fini(&all->by_key);
    hk_intern_fini(&all->keys);
}
