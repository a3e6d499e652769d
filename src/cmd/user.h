// SPDX-License-Identifier: Apache-2.0
// What the verbs of everyday share: where the server is, which namespace is meant, jobs found by
// what people type, and one line on what to do when something is not as it should be.
#pragma once

#include "cmd/ask.h"
#include "cmd/verb.h"

/* Exit statuses of these verbs, for scripts. */
enum {
    USER_OK = 0,
    USER_FAILED = 1,   /* what was asked about ended otherwise */
    USER_TROUBLE = 2,  /* bad usage, no server, no such job */
    USER_TIMEOUT = 124 /* as timeout(1) has it */
};

#define USER_EXIT_STATUS                                                                           \
    "EXIT STATUS\n"                                                                                \
    "       0 when it was done, 2 for bad usage, no server, or nothing of that name.\n"

struct user_opts {
    const char *kubeconfig, *server, *ns;
    bool all_namespaces;
};

#define USER_OPTION_NAMESPACE                                                                      \
    {                                                                                              \
        'n', "namespace", "NAMESPACE", NULL,                                                       \
            "The namespace (default: that of the kubeconfig's context)."                           \
    }
#define USER_OPTION_ALL                                                                            \
    {                                                                                              \
        'A', "all-namespaces", NULL, NULL, "All namespaces, with a column for them."               \
    }
#define USER_OPTIONS_SERVER                                                                        \
    {0, "kubeconfig", "FILE", NULL,                                                                \
     "Where the server is and who you are there (default: $KUBECONFIG, else a server of "          \
     "'hekla up' in its usual place, else ~/.kube/config)."},                                      \
    {                                                                                              \
        0, "server", "URL", NULL, "The server, instead of the kubeconfig's."                       \
    }

/* True when the row is one of the options above. */
bool user_take(struct user_opts *o, const struct option_row *row, const char *value);

/* The exit status after verb_parse has answered rc, which is not 0. */
int user_parsed(int rc);

struct user {
    struct ask ask;
    const char *ns; /* lives as long as the client */
    struct hk_arena mem;
    bool interrupted; /* Ctrl-C, after user_catch */
};

/* Does not connect. What there is after a failure is user_close's. */
int user_open(struct user *u, const struct user_opts *o, struct hk_err *err) HK_CHECKED;
void user_close(struct user *u);
/* Ctrl-C sets interrupted from here on instead of ending the process; the next one ends it. */
int user_catch(struct user *u, struct hk_err *err) HK_CHECKED;
/* One line on stderr, with what helps; returns USER_TROUBLE. */
int user_fail(const struct verb *v, int rc, const struct hk_err *err);

/* "job.batch.volcano.sh/train" and "train" both mean train. */
const char *user_name(const char *typed);
/* Objects are added to ret. "" is all namespaces; selector may be NULL. */
int user_list(struct user *u, enum api_kind_id kind, const char *ns, const char *selector,
              struct answer *ret, struct hk_err *err) HK_CHECKED;
/* The object of that name; one that is not there is told with the names that come near it. */
int user_get(struct user *u, enum api_kind_id kind, const char *name, struct answer *ret,
             struct hk_err *err) HK_CHECKED;
