// SPDX-License-Identifier: Apache-2.0
// A query is answered at once, or kept until the machine's resolvers have answered.
#include "dns/dns_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    ROUNDS = 64, /* datagrams before others get their turn */
    ALIAS_ANSWERS_MAX = 256,
    CONNECTIONS_MAX = 256,
};

struct dns_pending {
    struct dns *d;
    struct dns_client client;
    struct hk_buf message; /* the client's */
    bool alias;            /* asked about the target of a CNAME */
    struct dns_name target;
    uint32_t turn;
    struct dns_ask *ask;
};

/* ---- replies ---- */

static void dns_send(struct dns *d, const struct dns_client *client, struct hk_str reply, bool now)
{
    if (client->conn) {
        dns_conn_reply(client->conn, reply, now);
        return;
    }
    (void)!sendto(d->udp, reply.s, reply.n, MSG_NOSIGNAL, (const struct sockaddr *)&client->from,
                  client->nfrom);
}

static size_t dns_reply_max(const struct dns_client *client, const struct dns_query *q)
{
    return client->conn ? DNS_MESSAGE_MAX : dns_reply_udp_max(q);
}

static void dns_send_code(struct dns *d, const struct dns_client *client, const struct dns_query *q,
                          enum dns_rcode code, bool truncated, bool now)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct dns_reply r;

    dns_reply_init(&r, q, dns_reply_max(client, q), &out);
    r.code = code;
    r.truncated = truncated;
    dns_reply_finish(&r);
    dns_send(d, client, hk_buf_str(&out), now);
}

/* ---- questions that others answer ---- */

static void dns_pending_remove(struct dns_pending *p)
{
    struct dns *d = p->d;

    for (uint32_t i = 0; i < d->pending.len; i++) {
        if (d->pending.at[i] == p) {
            hk_vec_swap_remove(&d->pending, i);
            break;
        }
    }
}

static void dns_pending_free(struct dns_pending *p)
{
    hk_buf_fini(&p->message);
    hk_free(p);
}

void dns_drop_pending(struct dns *d, const struct dns_conn *conn)
{
    for (uint32_t i = d->pending.len; i-- > 0;) {
        if (d->pending.at[i]->client.conn == conn) {
            dns_ask_cancel(d->pending.at[i]->ask);
            dns_pending_free(d->pending.at[i]);
            hk_vec_swap_remove(&d->pending, i);
        }
    }
}

/* Adds what the resolver says about the target of the CNAME. */
static void dns_add_found(struct dns_reply *r, const struct dns_pending *p, struct hk_str answer)
{
    const struct dns_query asked = {
        .name = p->target, .type = r->query->type, .class = DNS_CLASS_IN};
    struct dns_walk w = {.message = answer};
    struct dns_record record;

    r->code = dns_message_code(answer);
    if (!dns_walk_open(&w, &asked)) {
        r->code = DNS_SERVFAIL;
        return;
    }
    for (uint32_t n = 0; n < ALIAS_ANSWERS_MAX && dns_walk_next(&w, &record); n++) {
        if (record.class != DNS_CLASS_IN) {
            continue;
        }
        if (record.type == DNS_TYPE_CNAME) {
            dns_reply_add_name(r, DNS_ANSWER, &record.owner, record.type, record.ttl_s,
                               &record.target);
        } else if (record.type == DNS_TYPE_A || record.type == DNS_TYPE_AAAA) {
            dns_reply_add(r, DNS_ANSWER, &record.owner, record.type, record.ttl_s, record.data);
        }
    }
}

/* The Service may have changed while the resolver was asked: then its CNAME leads elsewhere, and the
 * client asks again. */
static void dns_send_alias(const struct dns_pending *p, const struct dns_query *q,
                           struct hk_str answer)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct dns_name alias = {0};
    struct dns_reply r;

    dns_reply_init(&r, q, dns_reply_max(&p->client, q), &out);
    if (dns_zone_answer(p->d->zone, &r, p->turn, &alias) == DNS_ZONE_ALIAS && answer.n > 0 &&
        dns_name_equal(&alias, &p->target)) {
        dns_add_found(&r, p, answer);
    } else {
        r.code = DNS_SERVFAIL;
    }
    dns_reply_finish(&r);
    dns_send(p->d, &p->client, hk_buf_str(&out), false);
}

static void dns_on_answer(void *ctx, struct hk_str answer)
{
    struct dns_pending *p = ctx;
    struct dns_query q;

    dns_pending_remove(p); /* the reply may end the connection, which drops what it waits for */
    hk_assert(dns_query_parse(hk_buf_str(&p->message), &q) == DNS_NOERROR);
    if (p->alias) {
        dns_send_alias(p, &q, answer);
    } else if (answer.n == 0) {
        dns_send_code(p->d, &p->client, &q, DNS_SERVFAIL, false, false);
    } else if (answer.n > dns_reply_max(&p->client, &q)) {
        dns_send_code(p->d, &p->client, &q, dns_message_code(answer), true, false);
    } else {
        dns_send(p->d, &p->client, answer, false);
    }
    dns_pending_free(p);
}

/* Asks the machine's resolvers: the client's question, or one about the alias. */
static void dns_pass_on(struct dns *d, struct hk_str message, const struct dns_query *q,
                        const struct dns_client *client, const struct dns_name *alias,
                        uint32_t turn)
{
    HK_AUTO(hk_buf_fini) struct hk_buf asked = {0};
    struct dns_pending *p = hk_zalloc(sizeof(*p));
    enum dns_rcode code;

    *p = (struct dns_pending){.d = d, .client = *client, .alias = alias != NULL, .turn = turn};
    hk_buf_addstr(&p->message, message);
    if (alias) {
        p->target = *alias;
        dns_query_write(q->id, alias, q->type, &asked);
    } else {
        hk_buf_addstr(&asked, message);
    }
    p->ask = dns_forward_ask(d->forward, hk_buf_str(&asked), alias || client->conn, dns_on_answer,
                             p, &code);
    if (!p->ask) {
        dns_pending_free(p);
        dns_send_code(d, client, q, code, false, true);
        return;
    }
    hk_vec_push(&d->pending, p);
}

/* ---- queries ---- */

bool dns_handle(struct dns *d, struct hk_str message, const struct dns_client *client)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct dns_name alias;
    struct dns_query q;
    struct dns_reply r;
    const enum dns_rcode code = dns_query_parse(message, &q);
    const uint32_t turn = d->turn++;

    if (code == DNS_NO_REPLY) {
        return false;
    }
    if (code != DNS_NOERROR) {
        dns_send_code(d, client, &q, code, false, true);
        return true;
    }
    dns_reply_init(&r, &q, dns_reply_max(client, &q), &out);
    switch (dns_zone_answer(d->zone, &r, turn, &alias)) {
    case DNS_ZONE_ANSWERED:
        r.truncated = r.truncated && !client->conn; /* over TCP there is no more to have */
        dns_reply_finish(&r);
        dns_send(d, client, hk_buf_str(&out), true);
        break;
    case DNS_ZONE_ELSEWHERE:
        dns_pass_on(d, message, &q, client, NULL, turn);
        break;
    case DNS_ZONE_ALIAS:
        dns_pass_on(d, message, &q, client, &alias, turn);
        break;
    }
    return true;
}

static void dns_on_datagram(void *ctx, uint32_t events)
{
    struct dns *d = ctx;
    char bytes[DNS_MESSAGE_MAX];

    for (int i = 0; i < ROUNDS; i++) {
        struct dns_client client = {.nfrom = sizeof(client.from)};
        const ssize_t n = recvfrom(d->udp, bytes, sizeof(bytes), 0, (struct sockaddr *)&client.from,
                                   &client.nfrom);

        if (n < 0) {
            return;
        }
        dns_handle(d, (struct hk_str){bytes, (size_t)n}, &client);
    }
}

/* ---- the whole ---- */

/* The port that TCP got: with port 0 another program may have the same one of UDP. */
static int dns_udp_open(struct dns *d, struct hk_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(d->port)};

    if (inet_pton(AF_INET, d->o.address, &at.sin_addr) != 1) {
        return hk_fail(err, HK_EINVAL, "cannot listen on '%s': want an IPv4 address", d->o.address);
    }
    d->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->udp < 0 || bind(d->udp, (struct sockaddr *)&at, sizeof(at)) < 0) {
        return hk_fail(err, HK_EIO, "cannot listen on %s UDP port %u: %s", d->o.address, d->port,
                       strerror(errno));
    }
    d->udp_watch = net_watch_add(d->o.loop, d->udp, EPOLLIN, dns_on_datagram, d);
    return 0;
}

static int dns_open(struct dns *d, struct hk_err *err)
{
    struct in_addr at;
    int rc;

    if (inet_pton(AF_INET, d->o.address, &at) != 1 || ntohl(at.s_addr) >> 24 != IN_LOOPBACKNET) {
        return hk_fail(err, HK_EINVAL, "'%s' is not a loopback address of IPv4", d->o.address);
    }
    d->o.zone.address = ntohl(at.s_addr);
    d->zone = dns_zone_new(&d->o.zone, err);
    if (!d->zone) {
        return -HK_EINVAL;
    }
    d->forward = dns_forward_new(&(struct dns_forward_opts){.loop = d->o.loop,
                                                            .resolv_conf = d->o.resolv_conf,
                                                            .own = d->o.address,
                                                            .try_ns = d->o.try_ns,
                                                            .port = d->o.resolver_port});
    rc = dns_tcp_open(d, err);
    return rc < 0 ? rc : dns_udp_open(d, err);
}

int dns_new(const struct dns_opts *o, struct dns **ret, struct hk_err *err)
{
    struct dns *d = hk_zalloc(sizeof(*d));
    int rc;

    d->o = *o;
    snprintf(d->address, sizeof(d->address), "%s", o->address);
    d->o.address = d->address;
    d->o.max_connections = o->max_connections > 0 ? o->max_connections : CONNECTIONS_MAX;
    d->udp = d->tcp = -1;
    rc = dns_open(d, err);
    if (rc < 0) {
        dns_free(d);
        return rc;
    }
    *ret = d;
    return 0;
}

void dns_free(struct dns *d)
{
    if (!d) {
        return;
    }
    dns_tcp_close(d);
    net_watch_del(d->udp_watch);
    if (d->udp >= 0) {
        close(d->udp);
    }
    while (d->pending.len > 0) {
        dns_pending_free(hk_vec_pop(&d->pending));
    }
    dns_forward_free(d->forward);
    dns_zone_free(d->zone);
    hk_vec_fini(&d->pending);
    hk_vec_fini(&d->conns);
    hk_free(d);
}

uint16_t dns_port(const struct dns *d)
{
    return d->port;
}

const char *dns_address(const struct dns *d)
{
    return d->address;
}
