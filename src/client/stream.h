// SPDX-License-Identifier: Apache-2.0
// A stream to the API server: Kubernetes' remote command protocol (v5.channel.k8s.io or v4) over a
// WebSocket, with a client's credentials. For programs with a terminal, which wait in poll(2)
// between calls. Buffers are bounded: data is passed on as it arrives, and a sender asks for room
// first.
#pragma once

#include "client/client.h"

struct stream;

struct stream_opts {
    const char *path; /* "/api/v1/namespaces/ns/pods/p/exec?command=ls" */
    /* Data of a channel: 1 stdout, 2 stderr, 3 the final Status. */
    void (*data)(void *ctx, uint8_t channel, struct hk_str bytes);
    void *ctx;
};

/* Connects and upgrades; blocks until that is done. A refusal sets the server's message and the
 * matching code. */
int stream_open(struct client *c, const struct stream_opts *o, struct stream **ret,
                struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void stream_free(struct stream *s);

/* Descriptor and events for poll(2). */
int stream_fd(const struct stream *s);
short stream_events(const struct stream *s);
/* Reads and writes without blocking. 1: the server has closed the stream cleanly. */
int stream_turn(struct stream *s, struct hk_err *err) HK_CHECKED;
/* Reads nothing more until released; then call stream_turn, also without an event. */
void stream_hold(struct stream *s, bool held);
/* Whether stdin may be sent. */
bool stream_room(const struct stream *s);
void stream_send(struct stream *s, uint8_t channel, struct hk_str bytes);
/* Ends stdin. False when the protocol cannot express that. */
bool stream_end_input(struct stream *s);
/* Sends a ping, so that proxies do not close an idle connection. */
void stream_ping(struct stream *s);

/* Parses the Status of channel 3: returns the command's exit code, or a negative code with the
 * message. */
int stream_outcome(struct hk_str status, struct hk_err *err);
