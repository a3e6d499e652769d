// SPDX-License-Identifier: Apache-2.0
// A runtime of processes with a directory, a loop and a spawner, and one pod in it: what the tests
// of real processes share.
#pragma once

#include "agent/process/process.h"
#include "base/file.h"
#include "base/vec.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_NS 30000000000
#define FILE_MAX ((size_t)64 << 20)

struct ended {
    uint64_t id;
    struct runtime_end end;
    char message[512];
};

struct rig {
    char dir[64], state[80], log[80], uid[32];
    bool plain;
    int64_t log_max_bytes;
    struct net_loop *loop;
    struct spawner *spawner;
    struct runtime *r;
    HK_VEC(struct ended) ends;
};

/* ---- the rig ---- */

static inline void on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct rig *rig = ctx;
    struct ended e = {.id = container, .end = *end};

    snprintf(e.message, sizeof(e.message), "%s", end->message);
    hk_vec_push(&rig->ends, e);
}

static inline void rig_open(struct rig *rig)
{
    const struct process_opts o = {
        .loop = rig->loop,
        .spawner = rig->spawner,
        .clock = hk_clock_system(),
        .dir = rig->state,
        .sink = {.on_end = on_end, .ctx = rig},
        .log_max_bytes = rig->log_max_bytes,
        .plain = rig->plain,
    };

    rig->r = process_runtime_new(&o);
}

static inline void pod_start(struct rig *rig, struct runtime_pod pod)
{
    struct hk_err err = {0};

    pod.uid = rig->uid;
    pod.dir = rig->dir;
    if (rig->r->ops->pod_start(rig->r, &pod, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static inline int rig_setup(void **state)
{
    struct rig *rig = hk_zalloc(sizeof(*rig));

    snprintf(rig->dir, sizeof(rig->dir), "/tmp/hekla-process-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    assert_int_equal(chmod(rig->dir, 0755), 0);
    snprintf(rig->state, sizeof(rig->state), "%s/state", rig->dir);
    snprintf(rig->log, sizeof(rig->log), "%s/0.log", rig->dir);
    snprintf(rig->uid, sizeof(rig->uid), "test-%d", (int)getpid());
    rig->loop = net_loop_new(hk_clock_system());
    assert_int_equal(spawner_new(&rig->spawner, NULL), 0);
    rig_open(rig);
    *state = rig;
    return 0;
}

static inline int plain_setup(void **state)
{
    struct rig *rig;

    rig_setup(state);
    rig = *state;
    rig->r->ops->free(rig->r);
    rig->plain = true;
    rig_open(rig);
    return 0;
}

static inline void turn(struct rig *rig)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(rig->loop, 100, &err), 0);
}

static inline int64_t deadline(void)
{
    return hk_clock_system()->mono_ns(hk_clock_system()) + DEADLINE_NS;
}

static inline void check_deadline(int64_t at, const char *what)
{
    if (hk_clock_system()->mono_ns(hk_clock_system()) > at) {
        fail_msg("waited too long for %s", what);
    }
}

static inline void count_pod(void *ctx, const char *uid)
{
    ++*(int *)ctx;
}

static inline int pods(struct rig *rig)
{
    int n = 0;

    rig->r->ops->each_pod(rig->r, count_pod, &n);
    return n;
}

static inline void pod_stop(struct rig *rig)
{
    const int64_t until = deadline();

    rig->r->ops->pod_stop(rig->r, rig->uid);
    while (pods(rig) > 0) {
        turn(rig);
        check_deadline(until, "the pod to be gone");
    }
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static inline int rig_teardown(void **state)
{
    struct rig *rig = *state;

    pod_stop(rig);
    rig->r->ops->free(rig->r);
    net_loop_free(rig->loop);
    spawner_free(rig->spawner);
    nftw(rig->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    hk_vec_fini(&rig->ends);
    hk_free(rig);
    return 0;
}

static inline bool isolated(const struct rig *rig)
{
    return !strstr(rig->r->ops->caveats(rig->r), "no namespaces");
}

/* ---- containers ---- */

static const char *const some_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "GREETING=hello world",
                                       NULL};

static inline struct runtime_container container(const struct rig *rig, const char *const *argv)
{
    return (struct runtime_container){
        .pod_uid = rig->uid,
        .name = "main",
        .argv = argv,
        .env = some_env,
        .uid = -1,
        .gid = -1,
        .log = rig->log,
    };
}

static inline uint64_t start(struct rig *rig, const struct runtime_container *c)
{
    struct hk_err err = {0};
    uint64_t id = 0;

    if (rig->r->ops->start(rig->r, c, &id, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return id;
}

static inline uint64_t start_sh(struct rig *rig, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct runtime_container c = container(rig, argv);

    return start(rig, &c);
}

static inline const struct ended *find_end(const struct rig *rig, uint64_t id)
{
    for (uint32_t k = 0; k < rig->ends.len; k++) {
        if (rig->ends.at[k].id == id) {
            return &rig->ends.at[k];
        }
    }
    return NULL;
}

static inline const struct ended *await_end(struct rig *rig, uint64_t id)
{
    const int64_t until = deadline();
    const struct ended *e;

    while (!(e = find_end(rig, id))) {
        turn(rig);
        check_deadline(until, "the end of a container");
    }
    return e;
}

/* The log's texts without their heads. Freed by the caller. */
static inline char *log_text(const struct rig *rig)
{
    HK_AUTO(hk_buf_fini) struct hk_buf raw = {0};
    struct hk_buf text = {0};
    struct hk_err err = {0};
    struct hk_str rest, line, word;

    if (hk_read_file(rig->log, FILE_MAX, &raw, &err) < 0) {
        fail_msg("%s", err.text);
    }
    hk_buf_adds(&text, "");
    rest = hk_buf_str(&raw);
    while (hk_str_cut(&rest, '\n', &line)) {
        for (int k = 0; k < 3; k++) {
            hk_str_cut(&line, ' ', &word);
        }
        if (line.s) {
            hk_buf_addstr(&text, line);
            hk_buf_addc(&text, '\n');
        }
    }
    return text.data ? text.data : hk_strdup("");
}

static inline void assert_log(const struct rig *rig, const char *expected)
{
    HK_AUTO(hk_freep) char *text = log_text(rig);

    assert_string_equal(text, expected);
}

static inline void await_file(struct rig *rig, const char *path)
{
    const int64_t until = deadline();

    while (access(path, F_OK) < 0) {
        turn(rig);
        check_deadline(until, path);
    }
}

static inline void await_size(struct rig *rig, const char *path, int64_t size)
{
    const int64_t until = deadline();
    struct stat st;

    while (stat(path, &st) < 0 || st.st_size < size) {
        turn(rig);
        check_deadline(until, path);
    }
}

static inline void write_file(const char *path, const char *text)
{
    struct hk_err err = {0};

    if (hk_write_file(path, hk_str(text), &err) < 0) {
        fail_msg("%s", err.text);
    }
}

#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
#define PLAIN(f) cmocka_unit_test_setup_teardown(f, plain_setup, rig_teardown)
