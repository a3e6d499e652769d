// SPDX-License-Identifier: Apache-2.0
// DNS messages (RFC 1035, 2782, 6891): queries are read from bytes, replies written to bytes. No I/O.
// Input may be hostile: every length is checked, compression pointers only lead backwards.
#pragma once

#include "base/str.h"

enum {
    DNS_HEADER_SIZE = 12,
    DNS_NAME_MAX = 255, /* the root's empty label included */
    DNS_LABEL_MAX = 63,
    DNS_LABELS_MAX = 127,
    DNS_UDP_LEAST = 512, /* every client reads so many bytes */
    DNS_UDP_MOST = 4096, /* what we send at most, however much a client offers to read */
    DNS_MESSAGE_MAX = 65535,
};

enum dns_type {
    DNS_TYPE_A = 1,
    DNS_TYPE_NS = 2,
    DNS_TYPE_CNAME = 5,
    DNS_TYPE_SOA = 6,
    DNS_TYPE_PTR = 12,
    DNS_TYPE_TXT = 16,
    DNS_TYPE_AAAA = 28,
    DNS_TYPE_SRV = 33,
    DNS_TYPE_OPT = 41,
    DNS_TYPE_ANY = 255,
};

enum { DNS_CLASS_IN = 1, DNS_CLASS_ANY = 255 };

enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16,
    DNS_NO_REPLY = 4096, /* no code of the protocol: the message must not be answered */
};

/* ---- names ---- */

/* Labels with their lengths in front, in lower case, the root's included. */
struct dns_name {
    uint8_t wire[DNS_NAME_MAX];
    uint8_t len; /* 0: not a name */
};

/* Reads "www.example.org", with or without a dot at the end. False: a label or all of it is too long or empty. */
bool dns_name_parse(struct hk_str text, struct dns_name *ret);
/* Puts one label in front; false: too long. */
bool dns_name_prepend(struct dns_name *name, struct hk_str label);
/* Reads the name at *at of the message and moves *at behind it. */
bool dns_name_read(struct hk_str message, size_t *at, struct dns_name *ret);
bool dns_name_equal(const struct dns_name *a, const struct dns_name *b);
/* The labels, which borrow from the name, the root's not included. */
uint32_t dns_name_labels(const struct dns_name *name, struct hk_str ret[DNS_LABELS_MAX]);

/* ---- queries ---- */

struct dns_query {
    uint16_t id;
    uint8_t opcode;
    bool recurse;  /* RD */
    bool no_check; /* CD */
    struct dns_name name;
    uint16_t type, class;
    struct hk_str question; /* as it was sent; borrowed from the message; "" when it has none */
    bool edns;
    uint16_t udp_size; /* what the client reads over UDP */
};

/* Reads a query. Except for DNS_NO_REPLY, *ret suffices for a reply with the returned code. */
enum dns_rcode dns_query_parse(struct hk_str message, struct dns_query *ret);
/* Appends a query for the name, without EDNS. */
void dns_query_write(uint16_t id, const struct dns_name *name, uint16_t type, struct hk_buf *out);

/* ---- replies ---- */

enum dns_section { DNS_ANSWER, DNS_AUTHORITY, DNS_ADDITIONAL, DNS_NSECTION };

struct dns_reply {
    const struct dns_query *query; /* borrowed */
    struct hk_buf *out;
    size_t max; /* bytes, without the OPT record */
    uint16_t count[DNS_NSECTION];
    enum dns_rcode code;
    bool authoritative;
    bool truncated; /* a record of the answer or authority did not fit */
};

/* Replies to the query with at most max bytes, in an empty buffer. Add answers before authorities,
 * authorities before additional records. */
void dns_reply_init(struct dns_reply *r, const struct dns_query *query, size_t max,
                    struct hk_buf *out);
/* How many bytes a reply over UDP may have. */
size_t dns_reply_udp_max(const struct dns_query *query);
/* Adds a record. False: it does not fit. */
bool dns_reply_add(struct dns_reply *r, enum dns_section section, const struct dns_name *owner,
                   uint16_t type, uint32_t ttl_s, struct hk_str data);
bool dns_reply_add_name(struct dns_reply *r, enum dns_section section, const struct dns_name *owner,
                        uint16_t type, uint32_t ttl_s, const struct dns_name *target);
bool dns_reply_add_service(struct dns_reply *r, const struct dns_name *owner, uint32_t ttl_s,
                           uint16_t weight, uint16_t port, const struct dns_name *target);
/* The record that makes a reply without answers cacheable (RFC 2308). */
void dns_reply_add_soa(struct dns_reply *r, enum dns_section section, const struct dns_name *zone,
                       uint32_t ttl_s);
/* Writes the header and the OPT record. */
void dns_reply_finish(struct dns_reply *r);

/* ---- answers of others ---- */

struct dns_record {
    struct dns_name owner;
    uint16_t type, class;
    uint32_t ttl_s;
    struct hk_str data;     /* borrowed from the message */
    struct dns_name target; /* of a CNAME */
};

/* The answer section of a message. Zero it but for the message. */
struct dns_walk {
    struct hk_str message;
    size_t at;
    uint32_t left;
};

/* Begins at the first answer; false: the message is no answer to a question of that name, type and
 * class, or is malformed. */
bool dns_walk_open(struct dns_walk *w, const struct dns_query *asked);
/* False: no further record, or a malformed one. */
bool dns_walk_next(struct dns_walk *w, struct dns_record *ret);

uint16_t dns_message_id(struct hk_str message);
void dns_message_set_id(char *message, uint16_t id);
bool dns_message_is_truncated(struct hk_str message);
enum dns_rcode dns_message_code(struct hk_str message);
