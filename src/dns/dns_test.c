// SPDX-License-Identifier: Apache-2.0
// The server over loopback: the test is a client and the machine's resolver at once, with the
// server's loop between them.
#include "dns/dns_priv.h"

#include "api/port_mem.h"
#include "api/services.h"
#include "base/file.h"
#include "codec/yaml.h"
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS = 400, MAX_CONNECTIONS = 4 };
#define TRY_NS ((int64_t)30 * 1000 * 1000)

struct fixture {
    struct port_mem *mem;
    struct net_loop *loop;
    struct services *services;
    struct dns *dns;
    char conf[40]; /* a resolv.conf */
    int udp;       /* the client's socket */
    int resolver, resolver_tcp;
    uint16_t resolver_port;
};

static void pump(struct fixture *f)
{
    services_tick(f->services, net_loop_now_ns(f->loop));
    while (port_poll(port_mem_port(f->mem), 100) > 0) {
    }
    assert_int_equal(net_loop_turn(f->loop, 1, NULL), 0);
}

static void put(struct fixture *f, const char *yaml)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse(hk_str(yaml), 0, &a, &docs, NULL), 0);
    assert_int_equal(port_mem_put(f->mem, &docs.at[0], NULL), 0);
    pump(f);
}

static void write_conf(struct fixture *f, const char *text)
{
    assert_int_equal(hk_write_file(f->conf, hk_str(text), NULL), 0);
}

static void open_dns(struct fixture *f)
{
    const struct dns_opts o = {.loop = f->loop,
                               .zone = {.services = f->services, .domain = "cluster.local"},
                               .address = "127.0.0.1",
                               .resolv_conf = f->conf,
                               .try_ns = TRY_NS,
                               .resolver_port = f->resolver_port,
                               .max_connections = MAX_CONNECTIONS};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int rc = -1;

    /* The UDP port of the TCP port that it gets may be in use. */
    for (int i = 0; i < 20 && rc < 0; i++) {
        rc = dns_new(&o, &f->dns, NULL);
    }
    assert_int_equal(rc, 0);
    to.sin_port = htons(dns_port(f->dns));
    f->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(f->udp, (struct sockaddr *)&to, sizeof(to)), 0);
}

/* UDP and TCP on one port. */
static void open_resolver(struct fixture *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000002)}};

    do {
        if (f->resolver_tcp > 0) {
            close(f->resolver_tcp);
            close(f->resolver);
        }
        assert_int_equal(
            listen_on(HK_STR("127.0.0.2"), 0, &f->resolver_tcp, &f->resolver_port, NULL), 0);
        f->resolver = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        at.sin_port = htons(f->resolver_port);
    } while (bind(f->resolver, (struct sockaddr *)&at, sizeof(at)) < 0);
}

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    int fd;

    f->loop = net_loop_new(hk_clock_system());
    f->mem = port_mem_new(1767323045LL * 1000000000);
    f->services = services_new(port_mem_port(f->mem), hk_clock_system());
    snprintf(f->conf, sizeof(f->conf), "/tmp/hekla-dns-XXXXXX");
    fd = mkstemp(f->conf);
    assert_true(fd >= 0);
    close(fd);
    open_resolver(f);
    write_conf(f, "nameserver 127.0.0.2\n");
    open_dns(f);
    pump(f);
    put(f, "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default}, spec: "
           "{clusterIP: 127.128.0.5}}");
    put(f, "{apiVersion: v1, kind: Service, metadata: {name: ext, namespace: default}, spec: "
           "{type: ExternalName, externalName: a.example}}");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    dns_free(f->dns);
    services_free(f->services);
    port_free(port_mem_port(f->mem));
    net_loop_free(f->loop);
    unlink(f->conf);
    close(f->udp);
    close(f->resolver);
    close(f->resolver_tcp);
    hk_free(f);
    return 0;
}

/* ---- the client ---- */

static void make_query(uint16_t id, const char *name, uint16_t type, struct hk_buf *out)
{
    struct dns_name asked;

    assert_true(dns_name_parse(hk_str(name), &asked));
    dns_query_write(id, &asked, type, out);
}

static void ask(struct fixture *f, uint16_t id, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf query = {0};

    make_query(id, name, DNS_TYPE_A, &query);
    assert_int_equal(send(f->udp, query.data, query.len, 0), query.len);
}

/* The next reply, or, after the turns, none: false. */
static bool receive(struct fixture *f, int turns, struct hk_buf *out)
{
    char bytes[DNS_MESSAGE_MAX];

    for (int i = 0; i < turns; i++) {
        const ssize_t n = recv(f->udp, bytes, sizeof(bytes), 0);

        if (n >= 0) {
            hk_buf_clear(out);
            hk_buf_add(out, bytes, (size_t)n);
            return true;
        }
        pump(f);
    }
    return false;
}

static uint32_t count_answers(const struct hk_buf *reply)
{
    return (uint8_t)reply->data[6] << 8 | (uint8_t)reply->data[7];
}

static void expect_code(struct fixture *f, uint16_t id, enum dns_rcode code)
{
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};

    assert_true(receive(f, TURNS, &reply));
    assert_int_equal(dns_message_id(hk_buf_str(&reply)), id);
    assert_int_equal(dns_message_code(hk_buf_str(&reply)), code);
}

/* ---- the resolver ---- */

struct asked {
    struct sockaddr_in from;
    struct hk_buf query;
};

static void asked_fini(struct asked *a)
{
    hk_buf_fini(&a->query);
}

static void resolver_receive(struct fixture *f, struct asked *ret)
{
    for (int i = 0; i < TURNS; i++) {
        char bytes[4096];
        socklen_t n = sizeof(ret->from);
        const ssize_t got =
            recvfrom(f->resolver, bytes, sizeof(bytes), 0, (struct sockaddr *)&ret->from, &n);

        if (got >= 0) {
            hk_buf_clear(&ret->query);
            hk_buf_add(&ret->query, bytes, (size_t)got);
            return;
        }
        pump(f);
    }
    fail_msg("%s", "the resolver was not asked");
}

/* An answer with so many addresses. */
static void make_answer(const struct hk_buf *query, uint32_t n, bool truncated, struct hk_buf *out)
{
    struct dns_query q;
    struct dns_reply r;

    assert_int_equal(dns_query_parse(hk_buf_str(query), &q), DNS_NOERROR);
    dns_reply_init(&r, &q, DNS_MESSAGE_MAX, out);
    for (uint32_t i = 0; i < n; i++) {
        dns_reply_add(&r, DNS_ANSWER, &q.name, DNS_TYPE_A, 60, (struct hk_str){"\300\0\2\1", 4});
    }
    r.truncated = truncated;
    dns_reply_finish(&r);
}

static void resolver_send(struct fixture *f, const struct asked *to, const struct hk_buf *answer)
{
    assert_int_equal(sendto(f->resolver, answer->data, answer->len, 0,
                            (const struct sockaddr *)&to->from, sizeof(to->from)),
                     answer->len);
}

static void resolver_answer(struct fixture *f, const struct asked *to, uint32_t n, bool truncated)
{
    HK_AUTO(hk_buf_fini) struct hk_buf answer = {0};

    make_answer(&to->query, n, truncated, &answer);
    resolver_send(f, to, &answer);
}

/* ---- tests ---- */

static void test_own_names_are_answered_at_once(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};
    struct fixture *f = *state;

    ask(f, 4711, "web.default.svc.cluster.local");
    assert_true(receive(f, TURNS, &reply));
    assert_int_equal(dns_message_id(hk_buf_str(&reply)), 4711);
    assert_int_equal(count_answers(&reply), 1);
}

static void test_other_names_are_passed_on(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};
    struct fixture *f = *state;

    ask(f, 17, "a.example");
    resolver_receive(f, &asked);
    resolver_answer(f, &asked, 2, false);
    assert_true(receive(f, TURNS, &reply));
    assert_int_equal(dns_message_id(hk_buf_str(&reply)), 17);
    assert_int_equal(count_answers(&reply), 2);
}

static void test_questions_have_ids_and_ports_of_their_own(void **state)
{
    HK_AUTO(asked_fini) struct asked one = {0}, two = {0};
    struct fixture *f = *state;
    uint32_t same = 0;

    for (int i = 0; i < 4; i++) {
        ask(f, 17, "a.example");
        resolver_receive(f, &one);
        ask(f, 17, "a.example");
        resolver_receive(f, &two);
        assert_int_not_equal(one.from.sin_port, two.from.sin_port);
        same += dns_message_id(hk_buf_str(&one.query)) == dns_message_id(hk_buf_str(&two.query));
    }
    assert_true(same < 4);
}

static void test_wrong_answers_are_not_believed(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf answer = {0}, other = {0}, none = {0};
    struct fixture *f = *state;

    ask(f, 17, "a.example");
    resolver_receive(f, &asked);
    make_answer(&asked.query, 1, false, &answer);
    dns_message_set_id(answer.data, dns_message_id(hk_buf_str(&answer)) ^ 1); /* another id */
    resolver_send(f, &asked, &answer);
    make_query(dns_message_id(hk_buf_str(&asked.query)), "b.example", DNS_TYPE_A, &other);
    hk_buf_clear(&answer);
    make_answer(&other, 1, false, &answer); /* another name */
    resolver_send(f, &asked, &answer);
    resolver_send(f, &asked, &asked.query); /* no answer */
    answer.len = 5;
    resolver_send(f, &asked, &answer); /* half a header */
    assert_false(receive(f, 8, &none));
    resolver_answer(f, &asked, 1, false);
    expect_code(f, 17, DNS_NOERROR);
}

static void test_a_silent_resolver_is_asked_twice(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    struct fixture *f = *state;

    ask(f, 17, "a.example");
    resolver_receive(f, &asked);
    resolver_receive(f, &asked);
    expect_code(f, 17, DNS_SERVFAIL);
    assert_int_equal(f->dns->pending.len, 0);
}

static void test_the_next_resolver_helps(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    struct fixture *f = *state;

    write_conf(f, "nameserver 127.0.0.3\nnameserver 127.0.0.2\n"); /* nobody listens at .3 */
    ask(f, 17, "a.example");
    resolver_receive(f, &asked);
    resolver_answer(f, &asked, 1, false);
    expect_code(f, 17, DNS_NOERROR);
}

static void test_without_a_resolver_questions_are_refused(void **state)
{
    struct fixture *f = *state;

    write_conf(f, "nameserver 127.0.0.1\n"); /* ourselves */
    ask(f, 17, "a.example");
    expect_code(f, 17, DNS_REFUSED);
}

static void test_a_long_answer_is_cut_off_for_udp(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};
    struct fixture *f = *state;

    ask(f, 17, "a.example");
    resolver_receive(f, &asked);
    resolver_answer(f, &asked, 60, false);
    assert_true(receive(f, TURNS, &reply));
    assert_true(dns_message_is_truncated(hk_buf_str(&reply)));
    assert_true(reply.len <= 512);
}

static void test_an_external_name_is_followed(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};
    struct fixture *f = *state;
    struct dns_query q;
    struct dns_name want;

    ask(f, 17, "ext.default.svc.cluster.local");
    resolver_receive(f, &asked);
    assert_int_equal(dns_query_parse(hk_buf_str(&asked.query), &q), DNS_NOERROR);
    assert_true(dns_name_parse(HK_STR("a.example"), &want));
    assert_true(dns_name_equal(&q.name, &want));
    resolver_answer(f, &asked, 2, false);
    assert_true(receive(f, TURNS, &reply));
    assert_int_equal(count_answers(&reply), 3); /* the CNAME and both addresses */
    ask(f, 18, "ext.default.svc.cluster.local");
    expect_code(f, 18, DNS_SERVFAIL);
}

static void test_nonsense_gets_an_error_or_nothing(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf query = {0}, reply = {0};
    struct fixture *f = *state;

    assert_int_equal(send(f->udp, "x", 1, 0), 1);
    assert_int_equal(send(f->udp, "", 0, 0), 0);
    make_query(17, "web.default.svc.cluster.local", DNS_TYPE_A, &query);
    query.data[2] |= (char)0x80; /* a reply */
    assert_int_equal(send(f->udp, query.data, query.len, 0), query.len);
    query.data[2] = 0;
    query.data[5] = 9; /* nine questions */
    assert_int_equal(send(f->udp, query.data, query.len, 0), query.len);
    expect_code(f, 17, DNS_FORMERR);
    assert_false(receive(f, 4, &reply));
}

/* ---- TCP ---- */

static int dial(struct fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons(dns_port(f->dns))};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void add_framed(struct hk_buf *to, const struct hk_buf *message)
{
    hk_buf_addc(to, (char)(message->len >> 8));
    hk_buf_addc(to, (char)message->len);
    hk_buf_addstr(to, hk_buf_str(message));
}

static void ask_tcp(int fd, uint16_t id, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf query = {0}, framed = {0};

    make_query(id, name, DNS_TYPE_A, &query);
    add_framed(&framed, &query);
    assert_int_equal(send(fd, framed.data, framed.len, MSG_NOSIGNAL), framed.len);
}

/* Reads n bytes; false: the connection ended before. */
static bool read_exactly(struct fixture *f, int fd, size_t n, struct hk_buf *out)
{
    for (int i = 0; i < TURNS && n > 0; i++) {
        char bytes[4096];
        const ssize_t got = recv(fd, bytes, HK_MIN(n, sizeof(bytes)), 0);

        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            return false;
        }
        if (got > 0) {
            hk_buf_add(out, bytes, (size_t)got);
            n -= (size_t)got;
            continue;
        }
        pump(f);
    }
    assert_int_equal(n, 0);
    return true;
}

static bool receive_tcp(struct fixture *f, int fd, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf length = {0};

    hk_buf_clear(out);
    return read_exactly(f, fd, 2, &length) &&
           read_exactly(f, fd, dns_message_id(hk_buf_str(&length)), out);
}

static void test_queries_of_a_connection_are_answered_in_turn(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};
    struct fixture *f = *state;
    const int fd = dial(f);

    ask_tcp(fd, 1, "web.default.svc.cluster.local");
    ask_tcp(fd, 2, "a.example");
    ask_tcp(fd, 3, "web.default.svc.cluster.local");
    assert_true(receive_tcp(f, fd, &reply));
    assert_int_equal(dns_message_id(hk_buf_str(&reply)), 1);
    resolver_receive(f, &asked);
    resolver_answer(f, &asked, 1, false);
    assert_true(receive_tcp(f, fd, &reply));
    assert_int_equal(dns_message_id(hk_buf_str(&reply)), 2);
    assert_true(receive_tcp(f, fd, &reply));
    assert_int_equal(dns_message_id(hk_buf_str(&reply)), 3);
    close(fd);
}

static void test_a_cut_off_answer_is_asked_for_over_tcp(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf query = {0}, answer = {0}, framed = {0}, reply = {0};
    struct fixture *f = *state;
    const int fd = dial(f);
    int peer = -1;

    ask_tcp(fd, 9, "a.example");
    resolver_receive(f, &asked);
    resolver_answer(f, &asked, 1, true);
    for (int i = 0; i < TURNS && peer < 0; i++) {
        pump(f);
        peer = accept4(f->resolver_tcp, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    assert_true(peer >= 0);
    assert_true(receive_tcp(f, peer, &query));
    make_answer(&query, 100, false, &answer);
    add_framed(&framed, &answer);
    assert_int_equal(send(peer, framed.data, framed.len, 0), framed.len);
    assert_true(receive_tcp(f, fd, &reply));
    assert_int_equal(dns_message_id(hk_buf_str(&reply)), 9);
    assert_int_equal(count_answers(&reply), 100);
    close(peer);
    close(fd);
}

static void test_a_connection_that_talks_nonsense_ends(void **state)
{
    static const struct hk_str cases[] = {
        {"\0\0", 2},                             /* an empty message */
        {"\377\377", 2},                         /* a message that is too long */
        {"\0\14\0\1\200\0\0\0\0\0\0\0\0\0", 14}, /* a reply */
    };
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const int fd = dial(f);

        assert_int_equal(send(fd, cases[i].s, cases[i].n, MSG_NOSIGNAL), cases[i].n);
        assert_false(receive_tcp(f, fd, &reply));
        close(fd);
    }
    assert_int_equal(f->dns->conns.len, 0);
}

static void test_a_client_that_leaves_is_forgotten(void **state)
{
    HK_AUTO(asked_fini) struct asked asked = {0};
    struct fixture *f = *state;
    const int fd = dial(f);
    const struct linger at_once = {1, 0};

    ask_tcp(fd, 9, "a.example");
    resolver_receive(f, &asked);
    assert_int_equal(f->dns->pending.len, 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
    for (int i = 0; i < TURNS && f->dns->conns.len > 0; i++) {
        pump(f);
    }
    assert_int_equal(f->dns->pending.len, 0);
    resolver_answer(f, &asked, 1, false); /* too late */
    pump(f);
}

static void test_the_oldest_connection_makes_room(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf reply = {0};
    struct fixture *f = *state;
    int fds[MAX_CONNECTIONS + 1];

    for (size_t i = 0; i < HK_LEN(fds); i++) {
        fds[i] = dial(f);
        pump(f);
    }
    for (int i = 0; i < 4; i++) {
        pump(f);
    }
    assert_int_equal(f->dns->conns.len, MAX_CONNECTIONS);
    assert_false(receive_tcp(f, fds[0], &reply));
    ask_tcp(fds[MAX_CONNECTIONS], 5, "web.default.svc.cluster.local");
    assert_true(receive_tcp(f, fds[MAX_CONNECTIONS], &reply));
    for (size_t i = 0; i < HK_LEN(fds); i++) {
        close(fds[i]);
    }
}

static void test_only_loopback_addresses_are_served(void **state)
{
    struct fixture *f = *state;
    struct hk_err err = {0};
    struct dns *dns = NULL;
    struct dns_opts o = f->dns->o;

    o.address = "0.0.0.0";
    assert_int_equal(dns_new(&o, &dns, &err), -HK_EINVAL);
    assert_string_equal(err.text, "'0.0.0.0' is not a loopback address of IPv4");
    o.address = "127.0.0.1";
    o.port = dns_port(f->dns);
    assert_int_equal(dns_new(&o, &dns, &err), -HK_EIO); /* in use */
    put(f, "{apiVersion: v1, kind: Service, metadata: {name: later, namespace: default}}");
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_own_names_are_answered_at_once),
        WITH_FIXTURE(test_other_names_are_passed_on),
        WITH_FIXTURE(test_questions_have_ids_and_ports_of_their_own),
        WITH_FIXTURE(test_wrong_answers_are_not_believed),
        WITH_FIXTURE(test_a_silent_resolver_is_asked_twice),
        WITH_FIXTURE(test_the_next_resolver_helps),
        WITH_FIXTURE(test_without_a_resolver_questions_are_refused),
        WITH_FIXTURE(test_a_long_answer_is_cut_off_for_udp),
        WITH_FIXTURE(test_an_external_name_is_followed),
        WITH_FIXTURE(test_nonsense_gets_an_error_or_nothing),
        WITH_FIXTURE(test_queries_of_a_connection_are_answered_in_turn),
        WITH_FIXTURE(test_a_cut_off_answer_is_asked_for_over_tcp),
        WITH_FIXTURE(test_a_connection_that_talks_nonsense_ends),
        WITH_FIXTURE(test_a_client_that_leaves_is_forgotten),
        WITH_FIXTURE(test_the_oldest_connection_makes_room),
        WITH_FIXTURE(test_only_loopback_addresses_are_served),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
