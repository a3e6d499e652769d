// SPDX-License-Identifier: Apache-2.0
// A stream to the API server: Kubernetes' remote command protocol (v5.channel.k8s.io or v4) over a
// WebSocket, with the credentials of a client. For programs that wait in poll(2) between calls, as
// those with a terminal do. Nothing is kept without bound: data is handed over as it comes, and who
// sends asks for room first.
#pragma once

#include "client/client.h"

struct stream;

struct stream_opts {
    const char *path; /* "/api/v1/namespaces/ns/pods/p/exec?command=ls" */
    /* What has come on a channel: 1 stdout, 2 stderr, 3 the Status that ends it. */
    void (*data)(void *ctx, uint8_t channel, struct hk_str bytes);
    void *ctx;
};

/* Connects and upgrades; returns when that is done. Refusals are told in the server's words, with
 * the code that belongs to them. */
int stream_open(struct client *c, const struct stream_opts *o, struct stream **ret,
                struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void stream_free(struct stream *s);

/* What to poll for. */
int stream_fd(const struct stream *s);
short stream_events(const struct stream *s);
/* Reads and writes what can be. 1: the server has closed the stream in good form. */
int stream_turn(struct stream *s, struct hk_err *err) HK_CHECKED;
/* Whether stdin may be sent. */
bool stream_room(const struct stream *s);
void stream_send(struct stream *s, uint8_t channel, struct hk_str bytes);
/* No more will come on stdin. False: this server cannot be told. */
bool stream_end_input(struct stream *s);
/* Asks for a sign of life: so that nobody between us thinks that the connection is dead. */
void stream_ping(struct stream *s);

/* The outcome in a Status of channel 3: the exit code of the command, or negative with the words.
 */
int stream_outcome(struct hk_str status, struct hk_err *err);
