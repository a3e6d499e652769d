// SPDX-License-Identifier: Apache-2.0
// The crash record. Its page is a shared mapping of a file: stores to it survive a crash of the
// process without any system call. The page has a fixed size, and unexpected contents are replaced.
#include "base/crumb.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CRUMB_ROWS = 8, /* remembered objects; a new one replaces the one with the fewest crashes */
    CRUMB_WHAT_MAX = 600, /* a worker, a namespace and a name */
    CRUMB_DEATHS_MAX = 2, /* an object with this many crashes is skipped */
};

struct crumb_row {
    uint32_t deaths;
    uint32_t told; /* skipping was logged by this process */
    uint64_t rv;   /* version when first skipped; 0: not yet */
    char what[CRUMB_WHAT_MAX];
};

struct crumb_page {
    char magic[8];
    _Atomic uint32_t active; /* at contains the current object */
    _Atomic uint32_t died;   /* from a fatal signal */
    char at[CRUMB_WHAT_MAX];
    struct crumb_row rows[CRUMB_ROWS];
};

static const char crumb_magic[8] = "hkcrumb1";
static struct crumb_page *crumb_page;
static unsigned crumb_depth; /* of nested calls */
static struct {
    const char *worker;
    hk_crumb_ask *_Atomic fn; /* NULL: none */
    void *ctx;
} crumb_watched;

/* Builds with a sanitizer are for tests, which can make the process crash at a given object. */
#if HK_CRUMB_TESTS
#define CRUMB_CRASH_VARIABLE "HEKLA_CRASH_AT"
static const char *crumb_crash_at;
#endif

/* ---- rows ---- */

/* Appends as much as fits, with a NUL at the end. */
static size_t crumb_add(char *out, size_t at, struct hk_str s)
{
    const size_t n = HK_MIN(s.n, CRUMB_WHAT_MAX - 1 - at);

    if (n > 0) {
        memcpy(out + at, s.s, n);
    }
    out[at + n] = '\0';
    return at + n;
}

/* Safe in a signal handler. */
static void crumb_write(char *out, const char *worker, struct hk_str ns, struct hk_str name)
{
    size_t at = crumb_add(out, 0, hk_str(worker));

    at = crumb_add(out, at, HK_STR(" "));
    at = crumb_add(out, at, ns);
    at = crumb_add(out, at, ns.n > 0 ? HK_STR("/") : HK_STR(""));
    crumb_add(out, at, name);
}

static struct crumb_row *crumb_find(struct crumb_page *p, const char *what)
{
    for (unsigned i = 0; i < CRUMB_ROWS; i++) {
        if (p->rows[i].deaths > 0 && strncmp(p->rows[i].what, what, CRUMB_WHAT_MAX) == 0) {
            return &p->rows[i];
        }
    }
    return NULL;
}

static struct crumb_row *crumb_find_least(struct crumb_page *p)
{
    struct crumb_row *least = &p->rows[0];

    for (unsigned i = 1; i < CRUMB_ROWS; i++) {
        least = p->rows[i].deaths < least->deaths ? &p->rows[i] : least;
    }
    return least;
}

static void crumb_charge(struct crumb_page *p)
{
    struct crumb_row *row;

    p->at[CRUMB_WHAT_MAX - 1] = '\0';
    row = crumb_find(p, p->at);
    if (!row) {
        row = crumb_find_least(p);
        *row = (struct crumb_row){0};
        memcpy(row->what, p->at, CRUMB_WHAT_MAX);
    }
    row->deaths++;
}

/* ---- the file ---- */

static struct crumb_page *crumb_map(int fd)
{
    struct crumb_page *p;

    /* Not ftruncate: if the disk has no space for a hole, the first store would raise SIGBUS. */
    errno = posix_fallocate(fd, 0, sizeof(*p));
    if (errno != 0) {
        return NULL;
    }
    p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

int hk_crumb_open(const char *path, struct hk_err *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct crumb_page *p = fd >= 0 ? crumb_map(fd) : NULL;

    if (fd >= 0) {
        close(fd);
    }
    if (!p) {
        return hk_fail(err, HK_EIO, "cannot map '%s': %m", path);
    }
    if (memcmp(p->magic, crumb_magic, sizeof(crumb_magic)) != 0) {
        memset((void *)p, 0, sizeof(*p));
        memcpy(p->magic, crumb_magic, sizeof(crumb_magic));
    }
    if (p->active && p->died) {
        crumb_charge(p);
    }
    p->active = p->died = 0;
    for (unsigned i = 0; i < CRUMB_ROWS; i++) {
        p->rows[i].told = 0;
        p->rows[i].what[CRUMB_WHAT_MAX - 1] = '\0';
    }
    crumb_page = p;
    crumb_depth = 0;
#ifdef CRUMB_CRASH_VARIABLE
    crumb_crash_at = getenv(CRUMB_CRASH_VARIABLE);
#endif
    return 0;
}

void hk_crumb_close(void)
{
    if (crumb_page) {
        munmap(crumb_page, sizeof(*crumb_page));
        crumb_page = NULL;
    }
}

/* ---- current work ---- */

void hk_crumb_enter(const char *worker, struct hk_str ns, struct hk_str name)
{
    if (!crumb_page || crumb_depth++ > 0) {
        return;
    }
    crumb_write(crumb_page->at, worker, ns, name);
    atomic_store_explicit(&crumb_page->active, 1, memory_order_release);
#ifdef CRUMB_CRASH_VARIABLE
    if (crumb_crash_at && strcmp(crumb_crash_at, crumb_page->at) == 0) {
        abort();
    }
#endif
}

void hk_crumb_leave(void)
{
    if (crumb_page && crumb_depth > 0 && --crumb_depth == 0) {
        atomic_store_explicit(&crumb_page->active, 0, memory_order_release);
    }
}

void hk_crumb_watch(const char *worker, hk_crumb_ask *fn, void *ctx)
{
    crumb_watched.fn = NULL; /* a signal handler must not see a mix of old and new */
    crumb_watched.worker = worker;
    crumb_watched.ctx = ctx;
    crumb_watched.fn = fn;
}

/* Writes the current object of the watched worker; false if there is none. */
static bool crumb_ask_watched(char *out)
{
    hk_crumb_ask *fn = crumb_watched.fn;
    struct hk_str ns, name;

    if (!fn || !fn(crumb_watched.ctx, &ns, &name)) {
        return false;
    }
    crumb_write(out, crumb_watched.worker, ns, name);
    return true;
}

void hk_crumb_died(void)
{
    if (!crumb_page) {
        return;
    }
    crumb_page->died = 1;
    if (!crumb_page->active && crumb_ask_watched(crumb_page->at)) {
        crumb_page->active = 1;
    }
}

#ifdef CRUMB_CRASH_VARIABLE
/* A leading word distinguishes these from objects that were entered. */
void hk_crumb_moved(void)
{
    static const char word[] = "moved ";
    char what[CRUMB_WHAT_MAX];

    if (crumb_page && crumb_crash_at && strncmp(crumb_crash_at, word, strlen(word)) == 0 &&
        crumb_ask_watched(what) && strcmp(crumb_crash_at + strlen(word), what) == 0) {
        abort();
    }
}
#endif

bool hk_crumb_any(void)
{
    for (unsigned i = 0; crumb_page && i < CRUMB_ROWS; i++) {
        if (crumb_page->rows[i].deaths >= CRUMB_DEATHS_MAX) {
            return true;
        }
    }
    return false;
}

bool hk_crumb_skips(const char *worker, struct hk_str ns, struct hk_str name, uint64_t rv,
                    bool *ret_news)
{
    struct crumb_row *row = NULL;
    char what[CRUMB_WHAT_MAX];

    *ret_news = false;
    if (hk_crumb_any()) {
        crumb_write(what, worker, ns, name);
        row = crumb_find(crumb_page, what);
    }
    if (!row || row->deaths < CRUMB_DEATHS_MAX) {
        return false;
    }
    if (row->rv != 0 && row->rv != rv) {
        *row = (struct crumb_row){0};
        return false;
    }
    row->rv = rv;
    *ret_news = !row->told;
    row->told = 1;
    return true;
}

void hk_crumb_each(const char *path, void (*fn)(void *ctx, const char *what), void *ctx)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct crumb_page *p = hk_zalloc(sizeof(*p));

    if (fd >= 0 && read(fd, (void *)p, sizeof(*p)) == (ssize_t)sizeof(*p) &&
        memcmp(p->magic, crumb_magic, sizeof(crumb_magic)) == 0) {
        for (unsigned i = 0; i < CRUMB_ROWS; i++) {
            p->rows[i].what[CRUMB_WHAT_MAX - 1] = '\0';
            if (p->rows[i].deaths >= CRUMB_DEATHS_MAX) {
                fn(ctx, p->rows[i].what);
            }
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    hk_free(p);
}
