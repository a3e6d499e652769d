// SPDX-License-Identifier: Apache-2.0
// Records what a process is working on in a page of a file that outlives it, so that the next
// process knows what the last one died of. An object is poisonous once processes have died twice by
// a fatal signal while working on it: its worker then skips it and serves the rest. SIGKILL, a
// power cut and an orderly end do not count.
//
// There is one page per process, like the log: a signal handler has no arguments.
#pragma once

#include "base/err.h"
#include "base/str.h"

#if defined(__has_feature)
#define HK_CRUMB_HAS_FEATURE(x) __has_feature(x)
#else
#define HK_CRUMB_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HK_CRUMB_HAS_FEATURE(address_sanitizer)
#define HK_CRUMB_TESTS 1
#else
#define HK_CRUMB_TESTS 0
#endif

/* Maps the file, made when there is none, and charges the death of the last process, if it died by
 * a fatal signal, to what it was working on then. Until this is called nothing is recorded. */
int hk_crumb_open(const char *path, struct hk_err *err) HK_CHECKED;
void hk_crumb_close(void);

/* A worker begins and ends work on an object; costs a few stores. Of nested work the outermost
 * counts: skipping that object skips the others, too. */
void hk_crumb_enter(const char *worker, struct hk_str ns, struct hk_str name);
void hk_crumb_leave(void);

/* For work that changes objects too often for enter and leave: until fn is set to NULL, a process
 * that dies outside of them calls fn to learn the object (false: none). fn runs in a signal
 * handler: it may only read. */
typedef bool hk_crumb_ask(void *ctx, struct hk_str *ret_ns, struct hk_str *ret_name);
void hk_crumb_watch(const char *worker, hk_crumb_ask *fn, void *ctx);
/* Call it where such work moves on to another object. It does nothing, except that a test can make
 * the process die there. */
#if HK_CRUMB_TESTS
void hk_crumb_moved(void);
#else
static inline void hk_crumb_moved(void)
{
}
#endif

/* Records that the process dies of a bug; for the handler of fatal signals. */
void hk_crumb_died(void);

/* Whether any object is skipped; a quick check before hk_crumb_skips. */
bool hk_crumb_any(void);
/* Whether the worker must skip the object. rv is the object's current version: if it has changed
 * since the first skip, the object gets another try. *ret_news is set the first time in this
 * process. */
bool hk_crumb_skips(const char *worker, struct hk_str ns, struct hk_str name, uint64_t rv,
                    bool *ret_news);

/* Calls fn for each skipped object in the file: "WORKER NAMESPACE/NAME". */
void hk_crumb_each(const char *path, void (*fn)(void *ctx, const char *what), void *ctx);
