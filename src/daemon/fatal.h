// SPDX-License-Identifier: Apache-2.0
// The report of a process that dies of a bug.
#pragma once

/* From now on a fatal signal (SEGV, BUS, ILL, FPE, ABRT; also a failed hk_assert) writes one line
 * to standard error before the process ends by that signal, with its core dump: the version, the
 * signal, the address, and a backtrace of MODULE+OFFSET words for addr2line -e MODULE OFFSET.
 * Builds with sanitizers keep the sanitizers' handlers. */
void fatal_install(void);
