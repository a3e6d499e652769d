// SPDX-License-Identifier: Apache-2.0
// Starting, looking at and ending the servers under measurement.
#include "bench/server_proc.h"

#include "base/file.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_S = 120, STOP_S = 30, PAUSE_US = 2000 };

__attribute__((noreturn)) static void give_up(const char *what)
{
    fprintf(stderr, "hekla-bench-server: %s\n", what);
    _exit(1);
}

static double now(clockid_t clock)
{
    struct timespec t = {0};

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double server_wall(void)
{
    return now(CLOCK_MONOTONIC);
}

double server_self_cpu(void)
{
    return now(CLOCK_PROCESS_CPUTIME_ID);
}

double server_proc_cpu(const struct server_proc *p)
{
    clockid_t clock;

    return clock_getcpuclockid(p->pid, &clock) == 0 ? now(clock) : 0;
}

uint64_t server_proc_sleeps(const struct server_proc *p)
{
    char path[64], line[128];
    uint64_t sum = 0;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
    tasks = opendir(path);
    for (const struct dirent *e; tasks && (e = readdir(tasks));) {
        char status[sizeof(path) + 280];
        FILE *f;

        snprintf(status, sizeof(status), "%s/%s/status", path, e->d_name);
        f = e->d_name[0] == '.' ? NULL : fopen(status, "re");
        for (unsigned long n; f && fgets(line, sizeof(line), f);) {
            if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1) {
                sum += n;
            }
        }
        if (f) {
            fclose(f);
        }
    }
    if (tasks) {
        closedir(tasks);
    }
    return sum;
}

/* ---- starting ---- */

/* Its standard output, and its log in dir.log. */
static int spawn(struct server_proc *p, const char *const argv[])
{
    char log[sizeof(p->dir) + 8];
    int out[2];

    snprintf(log, sizeof(log), "%s.log", p->dir);
    hk_assert(pipe2(out, O_CLOEXEC) == 0);
    fflush(stdout);
    p->pid = fork();
    hk_assert(p->pid >= 0);
    if (p->pid == 0) {
        const int err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(out[1]);
    return out[0];
}

static void read_token(struct server_proc *p)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};
    char path[sizeof(p->dir) + 16];

    snprintf(path, sizeof(path), "%s/kubeconfig", p->dir);
    if (hk_read_file(path, 1 << 20, &text, &err) < 0) {
        give_up(err.text);
    }
    const char *at = strstr(text.data, "token: ");
    if (!at || sscanf(at, "token: %127s", p->token) != 1) {
        give_up("no token in the kubeconfig");
    }
}

/* The port of the line in which a program of ours says that it is ready. */
static uint16_t read_ready(int out)
{
    static const char words[] = " ready at https://127.0.0.1:";
    char text[1024] = "";
    const char *at;
    size_t n = 0;

    while (!(at = strstr(text, words)) || !strchr(at, '\n')) {
        const ssize_t got = read(out, text + n, sizeof(text) - 1 - n);
        if (got <= 0) {
            give_up("hekla did not start");
        }
        n += (size_t)got;
        text[n] = '\0';
    }
    close(out);
    return (uint16_t)strtoul(at + sizeof(words) - 1, NULL, 10);
}

void server_proc_hekla(struct server_proc *p, const char *program, const char *dir)
{
    const char *const argv[] = {program,    "apiserver",   "--data-dir", p->dir,
                                "--listen", "127.0.0.1:0", NULL};

    if (dir != p->dir) {
        snprintf(p->dir, sizeof(p->dir), "%s", dir);
    }
    p->port = read_ready(spawn(p, argv));
    read_token(p);
}

void server_proc_up(struct server_proc *p, const char *program, const char *dir,
                    const char *const *options)
{
    enum { FIXED = 6, MORE_MAX = 24 };
    const char *argv[FIXED + MORE_MAX + 1] = {program, "up",       "--data-dir",
                                              p->dir,  "--listen", "127.0.0.1:0"};
    uint32_t n = FIXED;

    for (; *options; options++) {
        hk_assert(n < FIXED + MORE_MAX);
        argv[n++] = *options;
    }
    if (dir != p->dir) {
        snprintf(p->dir, sizeof(p->dir), "%s", dir);
    }
    p->port = read_ready(spawn(p, argv));
    read_token(p);
}

void server_proc_webhooks(struct server_proc *p, const char *program, const struct server_proc *api)
{
    char config[sizeof(api->dir) + 16];
    const char *const argv[] = {program,
                                "webhook-manager",
                                "--kubeconfig",
                                config,
                                "--webhook-namespace",
                                "volcano-system",
                                "--listen-address",
                                "127.0.0.1",
                                "--port",
                                "0",
                                NULL};

    snprintf(config, sizeof(config), "%s/kubeconfig", api->dir);
    snprintf(p->dir, sizeof(p->dir), "%.240s.webhooks", api->dir);
    p->port = read_ready(spawn(p, argv));
}

/* etcd cannot pick one itself. */
static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    hk_assert(fd >= 0 && bind(fd, (void *)&at, n) == 0 && getsockname(fd, (void *)&at, &n) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

static bool listens(uint16_t port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool ok = connect(fd, (const void *)&at, sizeof(at)) == 0;

    close(fd);
    return ok;
}

/* etcd serves clients only once it has elected itself. */
static void await_etcd(struct server_proc *p)
{
    const double end = server_wall() + START_S;

    while (!listens(p->port)) {
        if (server_wall() > end || waitpid(p->pid, NULL, WNOHANG) != 0) {
            give_up("etcd did not start");
        }
        usleep(PAUSE_US);
    }
}

static bool is_installed(const char *program)
{
    char path[64];

    snprintf(path, sizeof(path), "/usr/bin/%s", program);
    return access(path, X_OK) == 0;
}

bool server_proc_etcd(struct server_proc *p, const char *dir, const struct server_proc *certs)
{
    char client[64], peer[64], cluster[80], cert[300], key[300];
    const char *const argv[] = {"/usr/bin/etcd",
                                "--data-dir",
                                p->dir,
                                "--listen-client-urls",
                                client,
                                "--advertise-client-urls",
                                client,
                                "--listen-peer-urls",
                                peer,
                                "--initial-advertise-peer-urls",
                                peer,
                                "--initial-cluster",
                                cluster,
                                "--cert-file",
                                cert,
                                "--key-file",
                                key,
                                "--quota-backend-bytes",
                                "8589934592",
                                "--logger",
                                "zap",
                                "--log-level",
                                "error",
                                NULL};

    if (!is_installed("etcd")) {
        return false;
    }
    snprintf(p->dir, sizeof(p->dir), "%s", dir);
    p->port = free_port();
    snprintf(client, sizeof(client), "https://127.0.0.1:%u", p->port);
    snprintf(peer, sizeof(peer), "http://127.0.0.1:%u", free_port());
    snprintf(cluster, sizeof(cluster), "default=%s", peer);
    snprintf(cert, sizeof(cert), "%s/server.crt", certs->dir);
    snprintf(key, sizeof(key), "%s/server.key", certs->dir);
    close(spawn(p, argv));
    await_etcd(p);
    return true;
}

/* ---- ending ---- */

void server_proc_kill(struct server_proc *p)
{
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
        p->pid = 0;
    }
}

void server_proc_stop(struct server_proc *p)
{
    const double end = server_wall() + STOP_S;

    if (p->pid == 0) {
        return;
    }
    kill(p->pid, SIGTERM);
    while (waitpid(p->pid, NULL, WNOHANG) == 0) {
        if (server_wall() > end) {
            give_up("the server did not end");
        }
        usleep(PAUSE_US);
    }
    p->pid = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

void server_remove_tree(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
