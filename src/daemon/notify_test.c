// SPDX-License-Identifier: Apache-2.0
// The service manager gets each state as one datagram, on a socket in a file or an abstract one.
#include "daemon/notify.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static int listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(at.sun_path, name, strlen(name));
    if (name[0] == '@') {
        at.sun_path[0] = '\0';
    }
    assert_int_equal(bind(fd, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    return fd;
}

static void expect_states(int fd)
{
    char text[64];

    notify("READY=1");
    notify("STOPPING=1");
    assert_int_equal(recv(fd, text, sizeof(text), 0), 7);
    assert_memory_equal(text, "READY=1", 7);
    assert_int_equal(recv(fd, text, sizeof(text), 0), 10);
    assert_memory_equal(text, "STOPPING=1", 10);
    assert_int_equal(recv(fd, text, sizeof(text), 0), -1);
}

static void a_socket_in_a_file_gets_each_state(void **state)
{
    char dir[] = "/tmp/notify-XXXXXX", path[64];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/socket", dir);
    setenv("NOTIFY_SOCKET", path, 1);
    const int fd = listen_at(path);
    expect_states(fd);
    close(fd);
    unlink(path);
    rmdir(dir);
}

static void so_does_an_abstract_one(void **state)
{
    char name[64];

    snprintf(name, sizeof(name), "@hekla-notify-test-%d", (int)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    const int fd = listen_at(name);
    expect_states(fd);
    close(fd);
}

static void without_a_service_manager_nothing_happens(void **state)
{
    static const char *const names[] = {NULL, "", "/", "relative", "/no/such/socket"};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        if (names[i]) {
            setenv("NOTIFY_SOCKET", names[i], 1);
        } else {
            unsetenv("NOTIFY_SOCKET");
        }
        notify("READY=1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_in_a_file_gets_each_state),
        cmocka_unit_test(so_does_an_abstract_one),
        cmocka_unit_test(without_a_service_manager_nothing_happens),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/notify", tests, NULL, NULL);
}
