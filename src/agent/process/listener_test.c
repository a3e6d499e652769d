// SPDX-License-Identifier: Apache-2.0
// Which socket belongs to a family of processes: the test itself is the shim, a child of it the
// program, and a process outside the family has sockets, too.
#include "agent/process/listener.c"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#define POD "127.77.66.5"

static int listen_at(const char *address, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t n = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    inet_pton(AF_INET, address, &at.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&at, n) < 0 || listen(fd, 4) < 0) {
        close(fd);
        return -1;
    }
    getsockname(fd, (struct sockaddr *)&at, &n);
    *port = ntohs(at.sin_port);
    return fd;
}

/* A child that holds the listener; the caller's copy is closed. Returns its pidfd. */
static int child_with(int fd)
{
    const pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    close(fd);
    return pidfd_open(pid, 0);
}

static void end_child(int pidfd)
{
    pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    waitid(P_PIDFD, (id_t)pidfd, &(siginfo_t){0}, WEXITED);
    close(pidfd);
}

static const char *found(int shim, uint16_t port, struct runtime_listener *at)
{
    return process_listener_find(&shim, 1, POD, port, at, NULL) == 0 ? at->address : "none";
}

static void test_addresses_of_a_program_are_found(void **state)
{
    static const struct {
        const char *listens, *want;
    } cases[] = {{POD, POD}, {"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", POD}};

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct runtime_listener at = {0};
        uint16_t port = 0;
        const int child = child_with(listen_at(cases[k].listens, &port));

        assert_string_equal(found(child, port, &at), cases[k].want);
        assert_true(at.inode > 0);
        assert_string_equal(found(child, port, &at), cases[k].want); /* known already */
        end_child(child);
        assert_string_equal(found(child, port, &at), "none");
        assert_int_equal(at.inode, 0);
    }
}

static void test_descendants_of_a_shim_belong_to_the_pod(void **state)
{
    struct runtime_listener at = {0};
    uint16_t port = 0;
    const int child = child_with(listen_at("127.0.0.1", &port));
    const int self = pidfd_open(getpid(), 0);

    assert_string_equal(found(self, port, &at), "127.0.0.1");
    end_child(child);
    close(self);
}

static void test_sockets_of_other_processes_do_not_count(void **state)
{
    struct runtime_listener at = {0};
    uint16_t port = 0;
    const int ours = listen_at("127.0.0.1", &port);
    const int other = child_with(dup(ours));

    close(ours); /* only the other child has it now */
    const int child = child_with(-1);
    assert_string_equal(found(child, port, &at), "none");
    assert_string_equal(found(other, port, &at), "127.0.0.1");
    end_child(child);
    end_child(other);
}

static void test_the_pods_own_address_comes_first(void **state)
{
    struct runtime_listener at = {0};
    uint16_t port = 0;
    const int first = listen_at("127.0.0.1", &port);
    const int second = listen_at(POD, &port);
    const int self = pidfd_open(getpid(), 0);

    assert_true(second >= 0);
    assert_string_equal(found(self, port, &at), POD);
    close(first);
    close(second);
    close(self);
}

static void test_lines_of_the_kernel_are_read(void **state)
{
    static const struct {
        const char *line, *want; /* "": not a listener of the port; NULL: the end */
    } cases[] = {
        {"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid", ""},
        {"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 77 1 x",
         "127.0.0.1"},
        {"   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 77 1 x",
         POD},
        {"   0: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 77 1 x",
         ""},
        {"   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A "
         "00000000:00000000 00:00000000 00000000 0 0 77 1 x",
         "::1"},
        {"   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A "
         "00000000:00000000 00:00000000 00000000 0 0 77 1 x",
         POD},
        {"   0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A "
         "00000000:00000000 00:00000000 00000000 0 0 77 1 x",
         "127.0.0.1"},
        {"   0: 01007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 77 1 x",
         ""},
        {"   2: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000  0  0 78 1 x",
         NULL},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct listeners l = {.address = POD, .port = 8080};

        assert_int_equal(listener_read_line(&l, hk_str(cases[k].line)), cases[k].want != NULL);
        assert_string_equal(l.all.len > 0 ? l.all.at[0].at.address : "",
                            cases[k].want ? cases[k].want : "");
        hk_vec_fini(&l.all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_of_a_program_are_found),
        cmocka_unit_test(test_descendants_of_a_shim_belong_to_the_pod),
        cmocka_unit_test(test_sockets_of_other_processes_do_not_count),
        cmocka_unit_test(test_the_pods_own_address_comes_first),
        cmocka_unit_test(test_lines_of_the_kernel_are_read),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
