// SPDX-License-Identifier: Apache-2.0
// Handler for fatal signals. Does only what is async-signal-safe: the modules and their addresses
// are recorded and the unwinder is loaded beforehand; the handler builds the line in a fixed buffer
// and uses write(2). A second fault in the handler ends the process with what was written so far.
#include "daemon/fatal.h"

#include "base/crumb.h"
#include "base/mem.h"

#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#define FATAL_HAS_FEATURE(x) __has_feature(x)
#else
#define FATAL_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    FATAL_HAS_FEATURE(address_sanitizer) || FATAL_HAS_FEATURE(thread_sanitizer)
#define FATAL_BY_SANITIZER 1
#include <sanitizer/common_interface_defs.h>
#else
#define FATAL_BY_SANITIZER 0
#endif

enum { FATAL_MODULES_MAX = 64, FATAL_FRAMES_MAX = 64, FATAL_NAME_MAX = 48, FATAL_STACK = 65536 };

static const struct {
    int number;
    const char *name;
} fatal_signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
    {SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"},
};

/* Handlers get no argument. Written once, before handlers are set. */
static struct fatal_module {
    uintptr_t base, end;
    char name[FATAL_NAME_MAX];
} fatal_modules[FATAL_MODULES_MAX];
static unsigned fatal_nmodules;
static char fatal_stack[FATAL_STACK];

/* ---- a line without the heap ---- */

struct fatal_line {
    char text[4096];
    size_t len;
};

static void fatal_add(struct fatal_line *l, const char *s)
{
    while (*s && l->len < sizeof(l->text) - 1) {
        l->text[l->len++] = *s++;
    }
}

static void fatal_add_number(struct fatal_line *l, uint64_t v, unsigned base, unsigned digits)
{
    static const char letters[] = "0123456789abcdef";
    char text[24];
    size_t at = sizeof(text) - 1;

    text[at] = '\0';
    do {
        text[--at] = letters[v % base];
        v /= base;
    } while (at > 0 && (v > 0 || sizeof(text) - 1 - at < digits));
    fatal_add(l, text + at);
}

/* The date of a number of days since 1970, in the proleptic Gregorian calendar. */
static void fatal_add_date(struct fatal_line *l, int64_t days)
{
    const int64_t z = days + 719468, era = z / 146097, doe = z - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    const int64_t month = mp < 10 ? mp + 3 : mp - 9;

    fatal_add_number(l, (uint64_t)(yoe + era * 400 + (month <= 2)), 10, 4);
    fatal_add(l, "-");
    fatal_add_number(l, (uint64_t)month, 10, 2);
    fatal_add(l, "-");
    fatal_add_number(l, (uint64_t)(doy - (153 * mp + 2) / 5 + 1), 10, 2);
}

static void fatal_add_time(struct fatal_line *l)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    fatal_add(l, "time=");
    fatal_add_date(l, now.tv_sec / 86400);
    fatal_add(l, "T");
    fatal_add_number(l, (uint64_t)(now.tv_sec / 3600 % 24), 10, 2);
    fatal_add(l, ":");
    fatal_add_number(l, (uint64_t)(now.tv_sec / 60 % 60), 10, 2);
    fatal_add(l, ":");
    fatal_add_number(l, (uint64_t)(now.tv_sec % 60), 10, 2);
    fatal_add(l, "Z ");
}

static void fatal_write(struct fatal_line *l)
{
    (void)!write(STDERR_FILENO, l->text, l->len);
    l->len = 0;
}

/* ---- frames ---- */

static void fatal_add_frame(struct fatal_line *l, uintptr_t address)
{
    for (unsigned i = 0; i < fatal_nmodules; i++) {
        const struct fatal_module *m = &fatal_modules[i];

        if (address >= m->base && address < m->end) {
            fatal_add(l, m->name);
            fatal_add(l, "+0x");
            fatal_add_number(l, address - m->base, 16, 1);
            return;
        }
    }
    fatal_add(l, "0x");
    fatal_add_number(l, address, 16, 1);
}

static void fatal_handle(int number, siginfo_t *info, void *context)
{
    void *frames[FATAL_FRAMES_MAX];
    struct fatal_line l = {.len = 0};
    int n;

    signal(number, SIG_DFL); /* a fault below, or the return from here, ends the process */
    hk_crumb_died();
    fatal_add_time(&l);
    fatal_add(&l, "level=error msg=\"fatal signal\" version=" HEKLA_VERSION " signal=");
    for (size_t i = 0; i < HK_LEN(fatal_signals); i++) {
        if (fatal_signals[i].number == number) {
            fatal_add(&l, fatal_signals[i].name);
        }
    }
    fatal_add(&l, " address=0x");
    fatal_add_number(&l, number == SIGABRT ? 0 : (uintptr_t)info->si_addr, 16, 1);
    fatal_add(&l, " pid=");
    fatal_add_number(&l, (uint64_t)getpid(), 10, 1);
    fatal_add(&l, " backtrace=");
    fatal_write(&l);
    n = backtrace(frames, HK_LEN(frames));
    for (int i = 0; i < n; i++) {
        fatal_add(&l, i > 0 ? "," : "");
        fatal_add_frame(&l, (uintptr_t)frames[i]);
    }
    fatal_add(&l, "\n");
    fatal_write(&l);
    raise(number); /* blocked until this handler returns */
}

#if FATAL_BY_SANITIZER
/* Sanitizers leave this signal alone by default, and hk_assert has already printed its message. */
static void fatal_note_abort(int number)
{
    signal(number, SIG_DFL);
    hk_crumb_died();
    raise(number);
}
#endif

/* ---- preparation ---- */

static const char *fatal_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int fatal_note_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct fatal_module *m = &fatal_modules[fatal_nmodules];
    /* The program itself comes first and has no name. */
    const char *name = fatal_nmodules == 0 ? "hekla" : fatal_base_name(info->dlpi_name);

    if (fatal_nmodules == FATAL_MODULES_MAX) {
        return 1;
    }
    m->base = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t end =
            info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            m->end = HK_MAX(m->end, end);
        }
    }
    snprintf(m->name, sizeof(m->name), "%s", name);
    fatal_nmodules++;
    return 0;
}

void fatal_install(void)
{
    const stack_t stack = {.ss_sp = fatal_stack, .ss_size = sizeof(fatal_stack)};
    struct sigaction act = {.sa_sigaction = fatal_handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frames[2];

#if FATAL_BY_SANITIZER
    __sanitizer_set_death_callback(hk_crumb_died);
    signal(SIGABRT, fatal_note_abort);
    return;
#endif
    if (fatal_nmodules > 0) {
        return;
    }
    (void)backtrace(frames, HK_LEN(frames)); /* loads the unwinder while that is safe */
    dl_iterate_phdr(fatal_note_module, NULL);
    sigaltstack(&stack, NULL); /* a handler cannot run on an exhausted stack */
    for (size_t i = 0; i < HK_LEN(fatal_signals); i++) {
        sigaction(fatal_signals[i].number, &act, NULL);
    }
}
