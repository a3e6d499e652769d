// SPDX-License-Identifier: Apache-2.0
// The wire format. Offsets are checked in one place, dns_bytes(); everything else reads through it.
#include "dns/dns_message.h"

#include <arpa/inet.h>

enum {
    FLAG_RESPONSE = 0x8000,
    FLAG_AUTHORITATIVE = 0x0400,
    FLAG_TRUNCATED = 0x0200,
    FLAG_RECURSE = 0x0100,
    FLAG_RECURSION_AVAILABLE = 0x0080,
    FLAG_NO_CHECK = 0x0010,
    POINTER = 0xc0,
    TO_QUESTION = 0xc00c, /* a pointer to the name of the question */
    RECORD_HEAD = 10,     /* type, class, TTL and length */
    OPT_SIZE = 11,
    EXTRA_MAX = 16, /* records of a query that are searched for OPT */
};

/* n bytes at *at, moving it; NULL: the message ends before. */
static const uint8_t *dns_bytes(struct hk_str message, size_t *at, size_t n)
{
    const uint8_t *found = (const uint8_t *)message.s + *at;

    if (*at > message.n || message.n - *at < n) {
        return NULL;
    }
    *at += n;
    return found;
}

static uint16_t dns_load16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static void dns_store16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static void dns_store32(uint8_t *at, uint32_t v)
{
    dns_store16(at, (uint16_t)(v >> 16));
    dns_store16(at + 2, (uint16_t)v);
}

/* ---- names ---- */

static uint8_t dns_lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* Appends a label to a name that does not have its end yet. */
static bool dns_name_append(struct dns_name *name, const uint8_t *label, size_t n)
{
    if (n > DNS_LABEL_MAX || name->len + 1 + n > DNS_NAME_MAX - 1) {
        return false;
    }
    name->wire[name->len++] = (uint8_t)n;
    for (size_t i = 0; i < n; i++) {
        name->wire[name->len++] = dns_lower(label[i]);
    }
    return true;
}

bool dns_name_parse(struct hk_str text, struct dns_name *ret)
{
    struct dns_name name = {0};
    struct hk_str rest = text, label;

    if (hk_str_ends(rest, ".")) {
        rest.n--;
    }
    while (rest.n > 0 && hk_str_cut(&rest, '.', &label)) {
        if (label.n == 0 || !dns_name_append(&name, (const uint8_t *)label.s, label.n)) {
            return false;
        }
    }
    name.wire[name.len++] = 0;
    *ret = name;
    return true;
}

bool dns_name_prepend(struct dns_name *name, struct hk_str label)
{
    struct dns_name longer = {0};

    if (label.n == 0 || !dns_name_append(&longer, (const uint8_t *)label.s, label.n) ||
        longer.len + name->len > DNS_NAME_MAX) {
        return false;
    }
    memcpy(longer.wire + longer.len, name->wire, name->len);
    longer.len = (uint8_t)(longer.len + name->len);
    *name = longer;
    return true;
}

/* Every pointer leads to a place before the one where the last part began, so the loop ends. */
bool dns_name_read(struct hk_str message, size_t *at, struct dns_name *ret)
{
    struct dns_name name = {0};
    size_t begin = *at, here = *at;
    bool jumped = false;
    const uint8_t *head;

    while ((head = dns_bytes(message, &here, 1)) && *head != 0) {
        const uint8_t *label;

        if ((*head & POINTER) == POINTER) {
            const uint8_t *low = dns_bytes(message, &here, 1);
            const size_t to = low ? (size_t)(*head & ~POINTER) << 8 | *low : SIZE_MAX;

            if (to >= begin || to < DNS_HEADER_SIZE) {
                return false;
            }
            *at = jumped ? *at : here;
            jumped = true;
            begin = here = to;
            continue;
        }
        label = *head <= DNS_LABEL_MAX ? dns_bytes(message, &here, *head) : NULL;
        if (!label || !dns_name_append(&name, label, *head)) {
            return false;
        }
    }
    if (!head) {
        return false;
    }
    *at = jumped ? *at : here;
    name.wire[name.len++] = 0;
    *ret = name;
    return true;
}

bool dns_name_equal(const struct dns_name *a, const struct dns_name *b)
{
    return a->len == b->len && memcmp(a->wire, b->wire, a->len) == 0;
}

uint32_t dns_name_labels(const struct dns_name *name, struct hk_str ret[DNS_LABELS_MAX])
{
    uint32_t n = 0;

    for (size_t at = 0; at < name->len && name->wire[at] > 0; at += 1u + name->wire[at]) {
        ret[n++] = (struct hk_str){(const char *)name->wire + at + 1, name->wire[at]};
    }
    return n;
}

/* ---- queries ---- */

struct dns_head {
    uint16_t id, flags, nquestion, nanswer, nauthority, nadditional;
};

static bool dns_head_read(struct hk_str message, struct dns_head *ret)
{
    size_t at = 0;
    const uint8_t *b = dns_bytes(message, &at, DNS_HEADER_SIZE);

    if (!b) {
        return false;
    }
    *ret = (struct dns_head){dns_load16(b),     dns_load16(b + 2), dns_load16(b + 4),
                             dns_load16(b + 6), dns_load16(b + 8), dns_load16(b + 10)};
    return true;
}

static bool dns_question_read(struct hk_str message, size_t *at, struct dns_query *ret)
{
    const size_t begin = *at;
    const uint8_t *rest;

    if (!dns_name_read(message, at, &ret->name)) {
        return false;
    }
    rest = dns_bytes(message, at, 4);
    if (!rest) {
        return false;
    }
    ret->type = dns_load16(rest);
    ret->class = dns_load16(rest + 2);
    ret->question = (struct hk_str){message.s + begin, *at - begin};
    return true;
}

static bool dns_record_read(struct hk_str message, size_t *at, struct dns_record *ret)
{
    const uint8_t *head, *data;
    uint16_t n;

    if (!dns_name_read(message, at, &ret->owner)) {
        return false;
    }
    head = dns_bytes(message, at, RECORD_HEAD);
    if (!head) {
        return false;
    }
    n = dns_load16(head + 8);
    data = dns_bytes(message, at, n);
    if (!data) {
        return false;
    }
    ret->type = dns_load16(head);
    ret->class = dns_load16(head + 2);
    ret->ttl_s = (uint32_t)dns_load16(head + 4) << 16 | dns_load16(head + 6);
    ret->data = (struct hk_str){(const char *)data, n};
    return true;
}

/* The class of OPT is the size of messages, the second byte of its TTL the version. */
static enum dns_rcode dns_query_read_opt(struct hk_str message, size_t at, uint32_t n,
                                         struct dns_query *ret)
{
    struct dns_record record;

    for (uint32_t i = 0; i < n; i++) {
        if (i >= EXTRA_MAX || !dns_record_read(message, &at, &record)) {
            return DNS_FORMERR;
        }
        if (record.type != DNS_TYPE_OPT) {
            continue;
        }
        if (ret->edns || record.owner.len != 1) {
            return DNS_FORMERR;
        }
        ret->edns = true;
        ret->udp_size = HK_MAX(record.class, (uint16_t)DNS_UDP_LEAST);
        if ((record.ttl_s >> 16 & 255) != 0) {
            return DNS_BADVERS;
        }
    }
    return DNS_NOERROR;
}

enum dns_rcode dns_query_parse(struct hk_str message, struct dns_query *ret)
{
    struct dns_head head;
    size_t at = DNS_HEADER_SIZE;

    if (!dns_head_read(message, &head) || (head.flags & FLAG_RESPONSE)) {
        return DNS_NO_REPLY;
    }
    *ret = (struct dns_query){
        .id = head.id,
        .opcode = head.flags >> 11 & 15,
        .recurse = head.flags & FLAG_RECURSE,
        .no_check = head.flags & FLAG_NO_CHECK,
        .question = HK_STR(""),
        .udp_size = DNS_UDP_LEAST,
    };
    if (ret->opcode != 0) {
        return DNS_NOTIMP;
    }
    if (head.nquestion != 1 || head.nanswer > 0 || head.nauthority > 0 ||
        !dns_question_read(message, &at, ret)) {
        return DNS_FORMERR;
    }
    return dns_query_read_opt(message, at, head.nadditional, ret);
}

void dns_query_write(uint16_t id, const struct dns_name *name, uint16_t type, struct hk_buf *out)
{
    uint8_t head[DNS_HEADER_SIZE] = {0}, tail[4];

    dns_store16(head, id);
    dns_store16(head + 2, FLAG_RECURSE);
    dns_store16(head + 4, 1);
    dns_store16(tail, type);
    dns_store16(tail + 2, DNS_CLASS_IN);
    hk_buf_add(out, head, sizeof(head));
    hk_buf_add(out, name->wire, name->len);
    hk_buf_add(out, tail, sizeof(tail));
}

/* ---- replies ---- */

void dns_reply_init(struct dns_reply *r, const struct dns_query *query, size_t max,
                    struct hk_buf *out)
{
    const uint8_t head[DNS_HEADER_SIZE] = {0};

    *r = (struct dns_reply){.query = query, .out = out, .max = max - (query->edns ? OPT_SIZE : 0)};
    hk_buf_add(out, head, sizeof(head));
    hk_buf_addstr(out, query->question);
}

size_t dns_reply_udp_max(const struct dns_query *query)
{
    return HK_MIN(query->udp_size, (uint16_t)DNS_UDP_MOST);
}

bool dns_reply_add(struct dns_reply *r, enum dns_section section, const struct dns_name *owner,
                   uint16_t type, uint32_t ttl_s, struct hk_str data)
{
    const bool same = dns_name_equal(owner, &r->query->name);
    uint8_t pointer[2], head[RECORD_HEAD];

    if (r->truncated) {
        return false;
    }
    if (r->out->len + (same ? sizeof(pointer) : owner->len) + sizeof(head) + data.n > r->max ||
        r->count[section] == UINT16_MAX) {
        r->truncated = section != DNS_ADDITIONAL;
        return false;
    }
    dns_store16(pointer, TO_QUESTION);
    dns_store16(head, type);
    dns_store16(head + 2, DNS_CLASS_IN);
    dns_store32(head + 4, ttl_s);
    dns_store16(head + 8, (uint16_t)data.n);
    hk_buf_add(r->out, same ? pointer : owner->wire, same ? sizeof(pointer) : owner->len);
    hk_buf_add(r->out, head, sizeof(head));
    hk_buf_addstr(r->out, data);
    r->count[section]++;
    return true;
}

bool dns_reply_add_name(struct dns_reply *r, enum dns_section section, const struct dns_name *owner,
                        uint16_t type, uint32_t ttl_s, const struct dns_name *target)
{
    return dns_reply_add(r, section, owner, type, ttl_s,
                         (struct hk_str){(const char *)target->wire, target->len});
}

bool dns_reply_add_service(struct dns_reply *r, const struct dns_name *owner, uint32_t ttl_s,
                           uint16_t weight, uint16_t port, const struct dns_name *target)
{
    uint8_t data[6 + DNS_NAME_MAX];

    dns_store16(data, 0); /* priority */
    dns_store16(data + 2, weight);
    dns_store16(data + 4, port);
    memcpy(data + 6, target->wire, target->len);
    return dns_reply_add(r, DNS_ANSWER, owner, DNS_TYPE_SRV, ttl_s,
                         (struct hk_str){(const char *)data, 6u + target->len});
}

void dns_reply_add_soa(struct dns_reply *r, enum dns_section section, const struct dns_name *zone,
                       uint32_t ttl_s)
{
    struct dns_name server = *zone, mailbox = *zone;
    uint8_t numbers[20];
    HK_AUTO(hk_buf_fini) struct hk_buf data = {0};

    if (!dns_name_prepend(&server, HK_STR("dns")) || !dns_name_prepend(&server, HK_STR("ns")) ||
        !dns_name_prepend(&mailbox, HK_STR("hostmaster"))) {
        return; /* the zone's name leaves no room: without the record a reply is not cached */
    }
    dns_store32(numbers, 1); /* serial: there is no transfer of the zone */
    dns_store32(numbers + 4, 7200);
    dns_store32(numbers + 8, 1800);
    dns_store32(numbers + 12, 86400);
    dns_store32(numbers + 16, ttl_s);
    hk_buf_add(&data, server.wire, server.len);
    hk_buf_add(&data, mailbox.wire, mailbox.len);
    hk_buf_add(&data, numbers, sizeof(numbers));
    dns_reply_add(r, section, zone, DNS_TYPE_SOA, ttl_s, hk_buf_str(&data));
}

static void dns_reply_add_opt(struct dns_reply *r)
{
    uint8_t opt[OPT_SIZE] = {0};

    dns_store16(opt + 1, DNS_TYPE_OPT);
    dns_store16(opt + 3, DNS_UDP_MOST);
    opt[5] = (uint8_t)(r->code >> 4);
    hk_buf_add(r->out, opt, sizeof(opt));
    r->count[DNS_ADDITIONAL]++;
}

void dns_reply_finish(struct dns_reply *r)
{
    const struct dns_query *q = r->query;
    uint8_t *head = (uint8_t *)r->out->data;
    uint16_t flags = FLAG_RESPONSE | FLAG_RECURSION_AVAILABLE;

    if (q->edns) {
        dns_reply_add_opt(r);
        head = (uint8_t *)r->out->data;
    }
    flags |= (uint16_t)(q->opcode << 11 | (r->code & 15));
    flags |= r->authoritative ? FLAG_AUTHORITATIVE : 0;
    flags |= r->truncated ? FLAG_TRUNCATED : 0;
    flags |= q->recurse ? FLAG_RECURSE : 0;
    flags |= q->no_check ? FLAG_NO_CHECK : 0;
    dns_store16(head, q->id);
    dns_store16(head + 2, flags);
    dns_store16(head + 4, q->question.n > 0);
    for (int i = 0; i < DNS_NSECTION; i++) {
        dns_store16(head + 6 + 2 * i, r->count[i]);
    }
}

/* ---- answers of others ---- */

bool dns_walk_open(struct dns_walk *w, const struct dns_query *asked)
{
    struct dns_query echoed;
    struct dns_head head;

    if (!dns_head_read(w->message, &head) || !(head.flags & FLAG_RESPONSE) ||
        (head.flags >> 11 & 15) != 0 || head.nquestion != 1) {
        return false;
    }
    w->at = DNS_HEADER_SIZE;
    w->left = head.nanswer;
    return dns_question_read(w->message, &w->at, &echoed) &&
           dns_name_equal(&echoed.name, &asked->name) && echoed.type == asked->type &&
           echoed.class == asked->class;
}

bool dns_walk_next(struct dns_walk *w, struct dns_record *ret)
{
    size_t at;

    if (w->left == 0 || !dns_record_read(w->message, &w->at, ret)) {
        return false;
    }
    w->left--;
    if (ret->type != DNS_TYPE_CNAME) {
        return true;
    }
    at = (size_t)(ret->data.s - w->message.s);
    return dns_name_read(w->message, &at, &ret->target) && at == w->at;
}

uint16_t dns_message_id(struct hk_str message)
{
    return dns_load16((const uint8_t *)message.s);
}

void dns_message_set_id(char *message, uint16_t id)
{
    dns_store16((uint8_t *)message, id);
}

bool dns_message_is_truncated(struct hk_str message)
{
    return dns_load16((const uint8_t *)message.s + 2) & FLAG_TRUNCATED;
}

enum dns_rcode dns_message_code(struct hk_str message)
{
    return dns_load16((const uint8_t *)message.s + 2) & 15;
}
