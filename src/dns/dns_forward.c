// SPDX-License-Identifier: Apache-2.0
// One socket per try: its port is random, and the kernel drops what comes from other addresses.
#include "dns/dns_forward.h"

#include "net/resolv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define TRY_NS (2 * SECOND_NS)
#define OLD_NS (5 * SECOND_NS) /* age after which resolv.conf is read again */

enum {
    PORT = 53,
    ASKS_MAX = 1024,
    SERVERS_MAX = 3, /* as in glibc: further ones are not asked */
    ROUNDS = 2,
    WRONG_MAX = 64, /* wrong answers to one try, after which it counts as failed */
    LENGTH_SIZE = 2,
};

struct dns_ask {
    struct dns_forward *f;
    struct hk_buf message; /* behind its length, as TCP sends it */
    struct dns_query query;
    uint16_t id; /* of the client */
    bool whole;
    void (*fn)(void *ctx, struct hk_str answer);
    void *ctx;
    struct sockaddr_storage servers[SERVERS_MAX];
    uint32_t nserver, ntry; /* tries so far */
    bool exhausted;         /* no try is left: the timer ends the question */
    bool tcp;
    int fd; /* -1: between tries */
    uint32_t nwrong;
    struct net_watch *watch;
    struct net_timer *timer; /* of the try */
    size_t sent;             /* over TCP */
    struct hk_buf in;        /* over TCP */
};

struct dns_forward {
    struct dns_forward_opts o;
    HK_VEC(struct dns_ask *) asks;
    struct sockaddr_storage servers[SERVERS_MAX];
    uint32_t nserver;
    int64_t read_ns; /* when resolv.conf was read; 0: never */
};

static void ask_try(struct dns_ask *a);

/* ---- resolvers ---- */

static bool forward_parse_server(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

    *ret = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return true;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return inet_pton(AF_INET6, text, &v6->sin6_addr) == 1;
}

static void forward_read_servers(struct dns_forward *f)
{
    const int64_t now_ns = net_loop_now_ns(f->o.loop);
    HK_AUTO(resolv_fini) struct resolv conf = {0};

    if (f->read_ns > 0 && now_ns - f->read_ns < OLD_NS) {
        return;
    }
    f->read_ns = now_ns;
    f->nserver = 0;
    resolv_read(f->o.resolv_conf, &conf);
    for (uint32_t i = 0; i < conf.servers.len && f->nserver < SERVERS_MAX; i++) {
        if (strcmp(conf.servers.at[i], f->o.own) != 0) {
            f->nserver +=
                forward_parse_server(conf.servers.at[i], f->o.port, &f->servers[f->nserver]);
        }
    }
}

/* ---- one question ---- */

static struct hk_str ask_message(const struct dns_ask *a)
{
    return (struct hk_str){a->message.data + LENGTH_SIZE, a->message.len - LENGTH_SIZE};
}

static void ask_close(struct dns_ask *a)
{
    net_watch_del(a->watch);
    a->watch = NULL;
    if (a->fd >= 0) {
        close(a->fd);
    }
    a->fd = -1;
}

static void ask_free(struct dns_ask *a)
{
    ask_close(a);
    net_timer_free(a->timer);
    hk_buf_fini(&a->message);
    hk_buf_fini(&a->in);
    hk_free(a);
}

void dns_ask_cancel(struct dns_ask *a)
{
    struct dns_forward *f = a->f;

    for (uint32_t i = 0; i < f->asks.len; i++) {
        if (f->asks.at[i] == a) {
            hk_vec_swap_remove(&f->asks, i);
            break;
        }
    }
    ask_free(a);
}

/* Ends the question. The answer may lie in a->in. */
static void ask_finish(struct dns_ask *a, struct hk_str answer)
{
    HK_AUTO(hk_buf_fini) struct hk_buf copy = {0};
    void (*fn)(void *ctx, struct hk_str answer) = a->fn;
    void *ctx = a->ctx;

    hk_buf_addstr(&copy, answer);
    if (copy.len > 0) {
        dns_message_set_id(copy.data, a->id);
    }
    dns_ask_cancel(a);
    fn(ctx, hk_buf_str(&copy));
}

static void ask_try_next(struct dns_ask *a)
{
    ask_close(a);
    a->tcp = false;
    ask_try(a);
}

static bool ask_is_answer(const struct dns_ask *a, struct hk_str answer)
{
    struct dns_walk w = {.message = answer};

    return answer.n >= DNS_HEADER_SIZE &&
           dns_message_id(answer) == dns_message_id(ask_message(a)) && dns_walk_open(&w, &a->query);
}

/* Another resolver may know better, as in glibc. */
static bool ask_is_failure(const struct dns_ask *a, struct hk_str answer)
{
    const enum dns_rcode code = dns_message_code(answer);

    return (code == DNS_SERVFAIL || code == DNS_REFUSED || code == DNS_NOTIMP) &&
           a->ntry < a->nserver;
}

static void ask_on_answer(struct dns_ask *a, struct hk_str answer)
{
    if (ask_is_failure(a, answer)) {
        ask_try_next(a);
    } else if (!a->tcp && a->whole && dns_message_is_truncated(answer)) {
        ask_close(a);
        a->tcp = true;
        a->ntry--; /* the same resolver */
        ask_try(a);
    } else {
        ask_finish(a, answer);
    }
}

static void ask_on_timer(void *ctx)
{
    struct dns_ask *a = ctx;

    if (a->exhausted) {
        ask_finish(a, HK_STR(""));
    } else {
        ask_try_next(a);
    }
}

/* ---- UDP ---- */

static void ask_on_datagram(struct dns_ask *a)
{
    char bytes[DNS_MESSAGE_MAX];

    while (a->nwrong < WRONG_MAX) {
        const ssize_t n = recv(a->fd, bytes, sizeof(bytes), 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n < 0) {
            break; /* nobody listens there */
        }
        if (ask_is_answer(a, (struct hk_str){bytes, (size_t)n})) {
            ask_on_answer(a, (struct hk_str){bytes, (size_t)n});
            return;
        }
        a->nwrong++;
    }
    ask_try_next(a);
}

/* ---- TCP ---- */

static bool ask_send(struct dns_ask *a)
{
    const ssize_t n =
        send(a->fd, a->message.data + a->sent, a->message.len - a->sent, MSG_NOSIGNAL);

    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    a->sent += (size_t)n;
    if (a->sent == a->message.len) {
        net_watch_change(a->watch, EPOLLIN);
    }
    return true;
}

/* The message, without its length; "": not all of it has arrived. */
static struct hk_str ask_received(const struct dns_ask *a)
{
    const struct hk_str in = hk_buf_str(&a->in);

    if (in.n < LENGTH_SIZE || in.n - LENGTH_SIZE < dns_message_id(in)) {
        return HK_STR("");
    }
    return (struct hk_str){in.s + LENGTH_SIZE, dns_message_id(in)};
}

static bool ask_receive(struct dns_ask *a)
{
    char bytes[4096];
    const ssize_t n = recv(a->fd, bytes, sizeof(bytes), 0);
    struct hk_str answer;

    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    hk_buf_add(&a->in, bytes, (size_t)n);
    answer = ask_received(a);
    if (answer.n == 0) {
        return a->in.len <= DNS_MESSAGE_MAX + LENGTH_SIZE;
    }
    if (!ask_is_answer(a, answer)) {
        return false;
    }
    ask_on_answer(a, answer);
    return true;
}

static void ask_on_event(void *ctx, uint32_t events)
{
    struct dns_ask *a = ctx;

    if (!a->tcp) {
        ask_on_datagram(a);
    } else if (a->sent < a->message.len ? !ask_send(a) : !ask_receive(a)) {
        ask_try_next(a);
    }
}

/* ---- tries ---- */

static bool ask_connect(struct dns_ask *a, const struct sockaddr_storage *to)
{
    const socklen_t n =
        to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    const int type = a->tcp ? SOCK_STREAM : SOCK_DGRAM;

    a->fd = socket(to->ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return a->fd >= 0 && (connect(a->fd, (const struct sockaddr *)to, n) == 0 ||
                          (a->tcp && errno == EINPROGRESS));
}

static bool ask_begin(struct dns_ask *a, const struct sockaddr_storage *to)
{
    const struct hk_str message = ask_message(a);
    uint16_t id;

    if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id) || !ask_connect(a, to)) {
        return false;
    }
    dns_message_set_id(a->message.data + LENGTH_SIZE, id);
    a->nwrong = 0;
    a->sent = 0;
    hk_buf_clear(&a->in);
    if (!a->tcp && send(a->fd, message.s, message.n, MSG_NOSIGNAL) < 0) {
        return false;
    }
    a->watch =
        net_watch_add(a->f->o.loop, a->fd, a->tcp ? EPOLLIN | EPOLLOUT : EPOLLIN, ask_on_event, a);
    return true;
}

/* Never calls fn itself: dns_forward_ask may not have returned yet. */
static void ask_try(struct dns_ask *a)
{
    const int64_t now_ns = net_loop_now_ns(a->f->o.loop);

    while (a->ntry < a->nserver * ROUNDS) {
        if (ask_begin(a, &a->servers[a->ntry++ % a->nserver])) {
            net_timer_at(a->timer, now_ns + a->f->o.try_ns);
            return;
        }
        ask_close(a);
        a->tcp = false;
    }
    a->exhausted = true;
    net_timer_at(a->timer, now_ns);
}

struct dns_ask *dns_forward_ask(struct dns_forward *f, struct hk_str message, bool whole,
                                void (*fn)(void *ctx, struct hk_str answer), void *ctx,
                                enum dns_rcode *ret_code)
{
    const char length[LENGTH_SIZE] = {(char)(message.n >> 8), (char)message.n};
    struct dns_ask *a;

    forward_read_servers(f);
    if (f->nserver == 0 || f->asks.len >= f->o.max) {
        *ret_code = f->nserver == 0 ? DNS_REFUSED : DNS_SERVFAIL;
        return NULL;
    }
    a = hk_zalloc(sizeof(*a));
    a->f = f;
    a->id = dns_message_id(message);
    a->whole = whole;
    a->fn = fn;
    a->ctx = ctx;
    a->fd = -1;
    a->timer = net_timer_new(f->o.loop, ask_on_timer, a);
    memcpy(a->servers, f->servers, sizeof(a->servers));
    a->nserver = f->nserver;
    hk_buf_add(&a->message, length, sizeof(length));
    hk_buf_addstr(&a->message, message);
    hk_assert(dns_query_parse(ask_message(a), &a->query) == DNS_NOERROR);
    hk_vec_push(&f->asks, a);
    ask_try(a);
    return a;
}

/* ---- the whole ---- */

static uint32_t forward_usual_max(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0) {
        return ASKS_MAX;
    }
    return (uint32_t)HK_MAX(HK_MIN(files.rlim_cur / 8, (rlim_t)ASKS_MAX), (rlim_t)1);
}

struct dns_forward *dns_forward_new(const struct dns_forward_opts *o)
{
    struct dns_forward *f = hk_zalloc(sizeof(*f));

    f->o = *o;
    f->o.max = o->max > 0 ? o->max : forward_usual_max();
    f->o.try_ns = o->try_ns > 0 ? o->try_ns : TRY_NS;
    f->o.port = o->port > 0 ? o->port : PORT;
    return f;
}

void dns_forward_free(struct dns_forward *f)
{
    if (!f) {
        return;
    }
    while (f->asks.len > 0) {
        ask_free(hk_vec_pop(&f->asks));
    }
    hk_vec_fini(&f->asks);
    hk_free(f);
}
