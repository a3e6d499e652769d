// SPDX-License-Identifier: Apache-2.0
// The proxy over loopback: the test is client and endpoint at once, with the proxy's loop between
// them. The cluster IP depends on the process, so that tests may run side by side.
#include "proxy/proxy_priv.h"

#include "api/port_mem.h"
#include "base/log.h"
#include "codec/yaml.h"
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PORT = 8080, NODE_PORT = 30080, TURNS = 200, BIG = 4 << 20 };

struct fixture {
    struct port_mem *mem;
    struct net_loop *loop;
    struct services *services;
    struct proxy *proxy;
    char ip[20]; /* the cluster IP */
    struct backend {
        int fd;
        uint16_t port;
    } at[2]; /* endpoints */
};

static void pump(struct fixture *f)
{
    for (int i = 0; i < 3; i++) {
        services_tick(f->services, net_loop_now_ns(f->loop));
        while (port_poll(port_mem_port(f->mem), 100) > 0) {
        }
        assert_int_equal(net_loop_turn(f->loop, 1, NULL), 0);
    }
}

static void open_proxy(struct fixture *f, uint32_t max_connections)
{
    f->services = services_new(port_mem_port(f->mem), hk_clock_system());
    f->proxy = proxy_new(&(struct proxy_opts){
        .loop = f->loop, .services = f->services, .max_connections = max_connections});
}

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    f->loop = net_loop_new(hk_clock_system());
    f->mem = port_mem_new(1767323045LL * 1000000000);
    snprintf(f->ip, sizeof(f->ip), "127.129.%d.%d", getpid() >> 7 & 127, 1 + (getpid() & 127));
    for (size_t i = 0; i < HK_LEN(f->at); i++) {
        assert_int_equal(listen_on(HK_STR("127.0.0.1"), 0, &f->at[i].fd, &f->at[i].port, NULL), 0);
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    proxy_free(f->proxy);
    services_free(f->services);
    port_free(port_mem_port(f->mem));
    net_loop_free(f->loop);
    for (size_t i = 0; i < HK_LEN(f->at); i++) {
        close(f->at[i].fd);
    }
    hk_free(f);
    return 0;
}

/* ---- the API ---- */

static void put(struct fixture *f, const char *yaml)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse(hk_str(yaml), 0, &a, &docs, NULL), 0);
    assert_int_equal(port_mem_put(f->mem, &docs.at[0], NULL), 0);
    pump(f);
}

static void put_service(struct fixture *f, const char *more)
{
    char yaml[400];

    snprintf(yaml, sizeof(yaml),
             "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: d}, spec: {clusterIP: "
             "%s, %s ports: [{port: %d, nodePort: %d}]}}",
             f->ip, more, PORT, NODE_PORT);
    put(f, yaml);
}

/* A slice with the endpoint on that port; 0: without endpoints. */
static void put_slice(struct fixture *f, const char *name, uint16_t port)
{
    char yaml[400];

    snprintf(yaml, sizeof(yaml),
             "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %s, "
             "namespace: d, labels: {kubernetes.io/service-name: s}}, addressType: IPv4, ports: "
             "[{name: '', port: %u, protocol: TCP}], endpoints: [%s]}",
             name, port, port ? "{addresses: [127.0.0.1], conditions: {ready: true}}" : "");
    put(f, yaml);
}

/* ---- sockets ---- */

/* Connects; -1: refused. */
static int dial(const char *ip, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, ip, &to.sin_addr), 1);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) { /* loopback: at once */
        assert_int_equal(errno, ECONNREFUSED);
        close(fd);
        return -1;
    }
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* The connection that arrives at one of the endpoints. */
static int accept_at(struct fixture *f, uint32_t *ret_which)
{
    for (int i = 0; i < TURNS; i++) {
        pump(f);
        for (uint32_t k = 0; k < HK_LEN(f->at); k++) {
            const int fd = accept4(f->at[k].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

            if (fd >= 0) {
                *ret_which = k;
                return fd;
            }
        }
    }
    fail_msg("no connection arrived at an endpoint");
    return -1;
}

/* Reads until there are n bytes, or the end; returns how many. */
static size_t read_all(struct fixture *f, int fd, char *out, size_t n, bool *ret_end)
{
    size_t have = 0;

    *ret_end = false;
    for (int i = 0; i < TURNS && have < n && !*ret_end; i++) {
        const ssize_t got = recv(fd, out + have, n - have, 0);

        *ret_end = got == 0;
        have += got > 0 ? (size_t)got : 0;
        if (got < 0) {
            pump(f);
        }
    }
    return have;
}

static void expect(struct fixture *f, int fd, const char *text)
{
    char have[100] = "";
    bool end;

    read_all(f, fd, have, strlen(text), &end);
    assert_string_equal(have, text);
}

static void expect_end(struct fixture *f, int fd)
{
    char none[1];
    bool end;

    assert_int_equal(read_all(f, fd, none, sizeof(none), &end), 0);
    assert_true(end);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* ---- stories ---- */

static void a_connection_reaches_the_pod_and_back(void **state)
{
    struct fixture *f = *state;
    uint32_t which;
    int client, pod;

    open_proxy(f, 0);
    put_service(f, "");
    put_slice(f, "s-1", f->at[0].port);
    client = dial(f->ip, PORT);
    assert_true(client >= 0);
    pod = accept_at(f, &which);
    say(client, "question");
    expect(f, pod, "question");
    /* The client has said everything, and still gets the answer. */
    shutdown(client, SHUT_WR);
    expect_end(f, pod);
    say(pod, "answer");
    expect(f, client, "answer");
    assert_int_equal(proxy_connections(f->proxy), 1);
    close(pod);
    expect_end(f, client);
    pump(f);
    assert_int_equal(proxy_connections(f->proxy), 0);
    close(client);
}

static void a_node_port_leads_there_too(void **state)
{
    struct fixture *f = *state;
    uint32_t which;
    int client;

    open_proxy(f, 0);
    put_service(f, "");
    put_slice(f, "s-1", f->at[0].port);
    client = dial("127.0.0.1", NODE_PORT);
    assert_true(client >= 0);
    close(accept_at(f, &which));
    close(client);
}

static void without_endpoints_connections_are_refused(void **state)
{
    struct fixture *f = *state;
    uint32_t which;
    int client;

    open_proxy(f, 0);
    put_service(f, "");
    assert_int_equal(dial(f->ip, PORT), -1);
    put_slice(f, "s-1", f->at[0].port);
    client = dial(f->ip, PORT);
    assert_true(client >= 0);
    close(accept_at(f, &which));
    close(client);
    put_slice(f, "s-1", 0);
    assert_int_equal(dial(f->ip, PORT), -1);
}

static uint32_t visit(struct fixture *f)
{
    const int client = dial(f->ip, PORT);
    uint32_t which;

    assert_true(client >= 0);
    close(accept_at(f, &which));
    close(client);
    return which;
}

static void endpoints_take_turns(void **state)
{
    struct fixture *f = *state;
    uint32_t visits[2] = {0};

    open_proxy(f, 0);
    put_service(f, "");
    put_slice(f, "s-1", f->at[0].port);
    put_slice(f, "s-2", f->at[1].port);
    for (int i = 0; i < 6; i++) {
        visits[visit(f)]++;
    }
    assert_int_equal(visits[0], 3);
    assert_int_equal(visits[1], 3);
}

static void a_client_may_stay_with_its_endpoint(void **state)
{
    struct fixture *f = *state;
    uint32_t first;

    open_proxy(f, 0);
    put_service(f, "sessionAffinity: ClientIP,");
    put_slice(f, "s-1", f->at[0].port);
    put_slice(f, "s-2", f->at[1].port);
    first = visit(f);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(visit(f), first);
    }
    put_slice(f, first == 0 ? "s-1" : "s-2", 0); /* until that one is gone */
    assert_int_equal(visit(f), 1 - first);
}

static void an_endpoint_that_refuses_is_passed_over(void **state)
{
    struct fixture *f = *state;

    open_proxy(f, 0);
    put_service(f, "");
    put_slice(f, "s-1", 1); /* nobody listens there */
    put_slice(f, "s-2", f->at[1].port);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(visit(f), 1);
    }
}

static void the_client_sees_when_no_endpoint_answers(void **state)
{
    struct fixture *f = *state;
    char none[1];
    int client;
    ssize_t n = -1;

    open_proxy(f, 0);
    put_service(f, "");
    put_slice(f, "s-1", 1);
    client = dial(f->ip, PORT);
    for (int i = 0; i < TURNS && n < 0; i++) {
        pump(f);
        n = recv(client, none, sizeof(none), 0);
        if (n < 0 && errno != EAGAIN) {
            break;
        }
    }
    assert_int_equal(n, -1);
    assert_int_equal(errno, ECONNRESET);
    close(client);
}

/* More than all buffers between the two hold: the sender waits for the reader. */
static void a_slow_reader_gets_everything(void **state)
{
    static char block[64 << 10];
    struct fixture *f = *state;
    size_t sent = 0, have = 0;
    uint32_t which;
    int client, pod;

    open_proxy(f, 0);
    put_service(f, "");
    put_slice(f, "s-1", f->at[0].port);
    client = dial(f->ip, PORT);
    pod = accept_at(f, &which);
    for (int idle = 0; idle < 50 && sent < BIG; idle++) {
        const ssize_t n = send(client, block, HK_MIN(sizeof(block), BIG - sent), MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle;
        pump(f);
    }
    shutdown(client, SHUT_WR);
    for (int i = 0; i < 10000 && have < sent; i++) {
        const ssize_t n = recv(pod, block, sizeof(block), 0);

        have += n > 0 ? (size_t)n : 0;
        if (n < 0) {
            pump(f);
        }
    }
    assert_int_equal(have, sent);
    expect_end(f, pod);
    close(pod);
    close(client);
}

static void no_more_than_so_many_at_a_time(void **state)
{
    struct fixture *f = *state;
    uint32_t which;
    int one, two, pod;

    open_proxy(f, 1);
    put_service(f, "");
    put_slice(f, "s-1", f->at[0].port);
    one = dial(f->ip, PORT);
    pod = accept_at(f, &which);
    two = dial(f->ip, PORT); /* waits in the backlog */
    pump(f);
    assert_int_equal(proxy_connections(f->proxy), 1);
    close(one);
    close(pod);
    close(accept_at(f, &which));
    close(two);
}

/* The most descriptors that are in use now. */
static rlim_t descriptors_in_use(void)
{
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(next >= 0);
    close(next);
    return (rlim_t)next;
}

static void without_descriptors_clients_wait(void **state)
{
    struct fixture *f = *state;
    struct rlimit files, none;
    uint32_t which;
    int client;

    open_proxy(f, 0);
    put_service(f, "");
    put_slice(f, "s-1", f->at[0].port);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    client = dial(f->ip, PORT); /* waits in the backlog */
    none = (struct rlimit){.rlim_cur = descriptors_in_use(), .rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 10; i++) {
        pump(f);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(proxy_connections(f->proxy), 0);
    assert_in_range(f->proxy->nfailed, 1, 5); /* the loop did not turn in circles */
    close(accept_at(f, &which));
    close(client);
}

static int udp_socket(const char *ip, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof(at);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, ip, &at.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* The datagram that arrives, and where it came from. */
static void expect_datagram(struct fixture *f, int fd, const char *text, struct sockaddr_in *from)
{
    char have[100] = "";
    ssize_t n = -1;

    for (int i = 0; i < TURNS && n < 0; i++) {
        socklen_t nfrom = sizeof(*from);

        pump(f);
        n = recvfrom(fd, have, sizeof(have) - 1, 0, (struct sockaddr *)from, &nfrom);
    }
    assert_string_equal(have, text);
}

static void datagrams_find_their_way_back(void **state)
{
    struct fixture *f = *state;
    uint16_t pod_port, port;
    const int pod = udp_socket("127.0.0.1", &pod_port);
    const int clients[] = {udp_socket("127.0.0.1", &port), udp_socket("127.0.0.1", &port)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)}, from = {0};
    char yaml[800];

    open_proxy(f, 0);
    snprintf(yaml, sizeof(yaml),
             "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: d}, spec: {clusterIP: "
             "%s, ports: [{port: %d, protocol: UDP}]}}",
             f->ip, PORT);
    put(f, yaml);
    snprintf(yaml, sizeof(yaml),
             "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s-1, "
             "namespace: d, labels: {kubernetes.io/service-name: s}}, addressType: IPv4, ports: "
             "[{name: '', port: %u, protocol: UDP}], endpoints: [{addresses: [127.0.0.1]}]}",
             pod_port);
    put(f, yaml);
    assert_int_equal(inet_pton(AF_INET, f->ip, &to.sin_addr), 1);
    for (size_t i = 0; i < HK_LEN(clients); i++) {
        char text[20];

        snprintf(text, sizeof(text), "question %zu", i);
        assert_int_equal(
            sendto(clients[i], text, strlen(text), 0, (struct sockaddr *)&to, sizeof(to)),
            strlen(text));
        expect_datagram(f, pod, text, &from);
        snprintf(text, sizeof(text), "answer %zu", i);
        assert_int_equal(sendto(pod, text, strlen(text), 0, (struct sockaddr *)&from, sizeof(from)),
                         strlen(text));
        expect_datagram(f, clients[i], text, &from);
        /* The client sees the Service's address, not the pod's. */
        assert_int_equal(from.sin_addr.s_addr, to.sin_addr.s_addr);
        close(clients[i]);
    }
    close(pod);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_connection_reaches_the_pod_and_back),
        TEST(a_node_port_leads_there_too),
        TEST(without_endpoints_connections_are_refused),
        TEST(endpoints_take_turns),
        TEST(a_client_may_stay_with_its_endpoint),
        TEST(an_endpoint_that_refuses_is_passed_over),
        TEST(the_client_sees_when_no_endpoint_answers),
        TEST(a_slow_reader_gets_everything),
        TEST(no_more_than_so_many_at_a_time),
        TEST(without_descriptors_clients_wait),
        TEST(datagrams_find_their_way_back),
    };

    hk_log_set_level(HK_LOG_ERROR); /* the node port may belong to another test */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
