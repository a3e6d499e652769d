// SPDX-License-Identifier: Apache-2.0
// Shared by the user verbs: finding the server and namespace, finding jobs by what users type, and
// error messages with advice.
#pragma once

#include "cli/verb.h"
#include "user/ask.h"

/* Exit statuses of these verbs, for scripts. */
enum {
    USER_OK = 0,
    USER_FAILED = 1,   /* the object in question did not succeed */
    USER_TROUBLE = 2,  /* bad usage, no server, no such job */
    USER_TIMEOUT = 124 /* like timeout(1) */
};

#define USER_EXIT_STATUS                                                                           \
    "EXIT STATUS\n"                                                                                \
    "       0 on success, 2 for bad usage, no server, or no object of that name.\n"

struct user_opts {
    const char *kubeconfig, *server, *ns;
    bool all_namespaces;
};

/* The options, for the table of a verb. */
extern const struct option_row user_namespace_options[], user_all_options[], user_server_options[];

/* The exit status after verb_parse returned rc, which is not 0. */
int user_parsed(int rc);

/* The options of a verb that acts on each named object. */
struct user_each_args {
    struct user_opts user;
    struct option_list names;
};

struct user {
    struct ask ask;
    const char *ns; /* valid as long as the client */
    struct hk_arena mem;
    bool interrupted; /* Ctrl-C, after user_catch */
};

/* Like ask_open(), and fails when nothing names a server. option: the one of the caller that does. */
int user_connect(struct ask *a, const char *kubeconfig, const char *server, const char *option,
                 struct hk_err *err) HK_CHECKED;
/* Does not connect. On failure, call user_close() anyway. */
int user_open(struct user *u, const struct user_opts *o, struct hk_err *err) HK_CHECKED;
void user_close(struct user *u);
/* From now on a first Ctrl-C sets interrupted; a second one ends the process. */
int user_catch(struct user *u, struct hk_err *err) HK_CHECKED;
/* Prints the error and advice on one line of stderr; returns USER_TROUBLE. */
int user_fail(const struct verb *v, int rc, const struct hk_err *err);

/* Runs such a verb: parses its options (struct user_each_args) and calls act for each name, for the
 * others also after a failure. missing: the complaint without a name. Returns the exit status. */
int user_each(const struct verb *v, int argc, char **argv, const char *missing,
              int (*act)(struct user *u, const char *name, struct hk_err *err));

/* "job.batch.volcano.sh/train" and "train" both mean train. */
const char *user_name(const char *typed);
/* Applies user_name to every typed name. */
void user_names(struct option_list *typed);
/* Adds the objects to ret. ns "": all namespaces; selector may be NULL. */
int user_list(struct user *u, enum api_kind_id kind, const char *ns, const char *selector,
              struct port_answer *ret, struct hk_err *err) HK_CHECKED;
/* Gets the object with that name. */
int user_find(struct user *u, enum api_kind_id kind, const char *name, struct port_answer *ret,
              struct hk_err *err) HK_CHECKED;
/* The same; if there is none, the error suggests a similar name. */
int user_get(struct user *u, enum api_kind_id kind, const char *name, struct port_answer *ret,
             struct hk_err *err) HK_CHECKED;
