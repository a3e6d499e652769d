// SPDX-License-Identifier: Apache-2.0
// The last step of a start: finds the program and executes it, or reports why not. Runs below the
// shim (start.c), so without the heap. Messages address the author of the manifest. Exit
// codes follow shells and other runtimes: 127 not found, 126 found but not executable, 128 any
// earlier failure.

#include "agent/process/process_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

bool process_may_pass(int e)
{
    return e == EAGAIN || e == ENOMEM || e == EMFILE || e == ENFILE || e == ENOSPC || e == EDQUOT;
}

ON_BORROWED_STACK void process_give_up(int report, int code, const char *fmt, ...)
{
    char text[PROCESS_MESSAGE];
    va_list ap;

    text[0] = (char)code;
    va_start(ap, fmt);
    vsnprintf(text + 1, sizeof(text) - 1, fmt, ap);
    va_end(ap);
    /* The message counts, not the exit status. */
    _exit(write(report, text, strlen(text + 1) + 1) < 0);
}

static const char *process_command_path_variable(const char *const *env)
{
    for (; *env; env++) {
        if (strncmp(*env, "PATH=", 5) == 0) {
            return *env + 5;
        }
    }
    return "";
}

/* The interpreter in the #! line of a script; "": none. */
static void interpreter_of(const char *path, char ret[PATH_MAX])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, ret, PATH_MAX - 1);
    size_t from;

    if (fd >= 0) {
        close(fd);
    }
    ret[HK_MAX(n, 0)] = '\0';
    if (strncmp(ret, "#!", 2) != 0) {
        ret[0] = '\0';
        return;
    }
    from = 2 + strspn(ret + 2, " \t");
    memmove(ret, ret + from, strlen(ret + from) + 1);
    ret[strcspn(ret, " \t\r\n")] = '\0';
}

/* execve returned ENOENT although path exists: its interpreter is missing. */
ON_BORROWED_STACK __attribute__((noreturn)) static void lacks_interpreter(const char *path,
                                                                          int report)
{
    char name[PATH_MAX];

    interpreter_of(path, name);
    if (name[0]) {
        process_give_up(report, PROCESS_NOT_FOUND,
                        "exec: \"%.200s\": its interpreter \"%.200s\" does not exist", path, name);
    }
    process_give_up(report, PROCESS_NOT_FOUND,
                    "exec: \"%.400s\": the loader it was linked for does not exist", path);
}

ON_BORROWED_STACK __attribute__((noreturn)) static void explain(const char *path, int why,
                                                                int report)
{
    struct stat st;

    if (process_may_pass(why)) {
        process_give_up(report, PROCESS_AGAIN, "exec: \"%.400s\": " PROCESS_WHY, path,
                        PROCESS_WHY_OF(why));
    }
    if (why == ENOENT && stat(path, &st) == 0) {
        lacks_interpreter(path, report);
    }
    if (why == ENOENT) {
        process_give_up(report, PROCESS_NOT_FOUND, "exec: \"%.400s\": " PROCESS_WHY, path,
                        PROCESS_WHY_OF(why));
    }
    if (why == EACCES && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        why = EISDIR;
    }
    process_give_up(report, PROCESS_NOT_EXECUTABLE, "exec: \"%.400s\": " PROCESS_WHY "%s", path,
                    PROCESS_WHY_OF(why),
                    why == ENOEXEC ? " (a script has to begin with a line like #!/bin/sh)" : "");
}

/* Like execvp, but ignores empty parts of PATH, which would mean the working directory. */
ON_BORROWED_STACK __attribute__((noreturn)) static void exec_in_path(const struct process_launch *l,
                                                                     int report)
{
    char path[PATH_MAX], denied[PATH_MAX] = "";

    for (const char *dir = process_command_path_variable(l->env), *next; *l->argv[0] && *dir;
         dir = next) {
        const size_t n = strcspn(dir, ":");
        next = dir + n + (dir[n] == ':');
        if (n == 0 ||
            snprintf(path, sizeof(path), "%.*s/%s", (int)n, dir, l->argv[0]) >= PATH_MAX) {
            continue;
        }
        execve(path, (char *const *)l->argv, (char *const *)l->env);
        if (errno == EACCES) {
            memcpy(denied, path, strlen(path) + 1);
        } else if (errno != ENOTDIR && (errno != ENOENT || access(path, F_OK) == 0)) {
            explain(path, errno, report);
        }
    }
    if (denied[0]) {
        explain(denied, EACCES, report);
    }
    process_give_up(report, PROCESS_NOT_FOUND,
                    "exec: \"%.400s\": executable file not found in $PATH", l->argv[0]);
}

ON_BORROWED_STACK void process_exec(const struct process_launch *l, int report)
{
    if (!strchr(l->argv[0], '/')) {
        exec_in_path(l, report);
    }
    execve(l->argv[0], (char *const *)l->argv, (char *const *)l->env);
    explain(l->argv[0], errno, report);
}
