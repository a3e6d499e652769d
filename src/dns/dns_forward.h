// SPDX-License-Identifier: Apache-2.0
// Asks the resolvers of the machine, those in its resolv.conf, about names of others. Every question
// gets a random id and a port of its own; an answer must come from the resolver that was asked and
// repeat the question. A resolver that stays silent or fails is followed by the next one; an answer
// that was cut off is asked for again over TCP, if the caller wants all of it.
#pragma once

#include "dns/dns_message.h"
#include "net/loop.h"

struct dns_forward;
struct dns_ask;

struct dns_forward_opts {
    struct net_loop *loop;
    const char *resolv_conf; /* path; read again when questions come and it is old */
    const char *own;         /* the address of this server, which is never asked */
    uint32_t max;            /* questions at a time; 0: 1024, or an eighth of the descriptors */
    int64_t try_ns;          /* how long to wait for one resolver; 0: 2 s */
    uint16_t port;           /* of the resolvers; 0: 53 */
};

struct dns_forward *dns_forward_new(const struct dns_forward_opts *o);
/* Drops all questions without a word. Takes NULL. */
void dns_forward_free(struct dns_forward *f);

/* Asks; the message is one that dns_query_parse accepted, and copied. fn is called once, later, with
 * the answer under the id of the message, valid during the call; "": no resolver answered. Returns
 * NULL and sets *ret_code to REFUSED when there is no resolver, to SERVFAIL when too many questions
 * are open. */
struct dns_ask *dns_forward_ask(struct dns_forward *f, struct hk_str message, bool whole,
                                void (*fn)(void *ctx, struct hk_str answer), void *ctx,
                                enum dns_rcode *ret_code);
/* fn is not called any more. */
void dns_ask_cancel(struct dns_ask *a);
