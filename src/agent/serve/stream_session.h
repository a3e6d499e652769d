// SPDX-License-Identifier: Apache-2.0
// One client whose terminal is connected to a container: the connection with its channels, and the
// pipe that standard input goes to. exec.c and attach.c embed it as their first member.
//
//     accepted --101--> opened --peer listens--> begun --stream_session_end--> closing
//        '-----------------'-----------------------'--- client leaves ------------'---> gone
#pragma once

#include "agent/serve/channels.h"
#include "agent/serve/serve.h"
#include "agent/serve/stdin_pipe.h"

struct stream_session_ops {
    /* The client listens: the streams may flow. */
    void (*begun)(struct stream_session *s);
    /* There is room to send. */
    void (*room)(struct stream_session *s);
    /* The client has ended standard input. Ends the pipe, too. */
    void (*input_end)(struct stream_session *s);
    /* The size of the client's terminal. */
    void (*size)(struct stream_session *s, uint16_t columns, uint16_t rows);
    /* The client has left. The session may be freed. */
    void (*gone)(struct stream_session *s);
    /* Ends the session at once. */
    void (*free)(struct stream_session *s);
};

struct stream_session {
    const struct stream_session_ops *ops;
    struct serve *serve;
    struct http_request *http; /* valid until opened; then the channels own it */
    bool opened;
    bool tty;
    unsigned wants; /* bit set of channels */
    struct channels channels;
    struct stdin_pipe in;
};

/* Adds the session to those of the node. */
void stream_session_init(struct stream_session *s, const struct stream_session_ops *ops,
                         struct serve *serve, struct http_request *http);
/* Closes connection and pipe, and removes the session. */
void stream_session_fini(struct stream_session *s);
bool stream_session_wants(const struct stream_session *s, enum channel channel);
/* Accepts the connection; set wants and tty before. On failure the caller must answer the
 * request. */
int stream_session_accept(struct stream_session *s, struct hk_err *err) HK_CHECKED;
/* Copies standard input to fd from now on; takes fd, -1 discards the input. */
void stream_session_open_input(struct stream_session *s, int fd);
/* Sends the final status. A slow client may take any time to read it. */
void stream_session_end(struct stream_session *s, struct hk_str status);
/* Ends all sessions of the node. */
void stream_session_end_all(struct serve *serve);
