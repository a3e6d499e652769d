// SPDX-License-Identifier: Apache-2.0
// Kubernetes' IP and CIDR libraries. Addresses are strict: no zones, no leading zeros, and no IPv4
// address in the form of an IPv6 one.
#include "cel/cel_priv.h"

#include <arpa/inet.h>

/* ---- reading and writing ---- */

static bool net_is_mapped(const uint8_t *addr)
{
    static const uint8_t prefix[12] = {[10] = 0xFF, [11] = 0xFF};

    return memcmp(addr, prefix, sizeof(prefix)) == 0;
}

static bool net_parse_ip(struct hk_str s, struct cel_net *ret)
{
    char text[64];

    if (s.n == 0 || s.n >= sizeof(text) || memchr(s.s, '\0', s.n)) {
        return false;
    }
    memcpy(text, s.s, s.n);
    text[s.n] = '\0';
    *ret = (struct cel_net){0};
    ret->size = memchr(text, ':', s.n) ? 16 : 4;
    ret->bits = ret->size * 8;
    return inet_pton(ret->size == 4 ? AF_INET : AF_INET6, text, ret->addr) == 1 &&
           !(ret->size == 16 && net_is_mapped(ret->addr));
}

static bool net_parse_bits(struct hk_str s, uint8_t most, uint8_t *ret)
{
    int64_t bits;

    if (s.n == 0 || s.n > 3 || (s.n > 1 && s.s[0] == '0') || s.s[0] == '+' || s.s[0] == '-' ||
        !hk_str_int(s, &bits) || bits > most) {
        return false;
    }
    *ret = (uint8_t)bits;
    return true;
}

static bool net_parse_cidr(struct hk_str s, struct cel_net *ret)
{
    struct hk_str addr;

    return hk_str_cut(&s, '/', &addr) && s.s && net_parse_ip(addr, ret) &&
           net_parse_bits(s, ret->bits, &ret->bits);
}

static void net_write_addr(const struct cel_net *n, struct hk_buf *out)
{
    char text[INET6_ADDRSTRLEN];

    if (inet_ntop(n->size == 4 ? AF_INET : AF_INET6, n->addr, text, sizeof(text))) {
        hk_buf_adds(out, text);
    }
}

void cel_net_write(const struct cel_net *n, struct hk_buf *out)
{
    net_write_addr(n, out);
    if (n->cidr) {
        hk_buf_addf(out, "/%u", n->bits);
    }
}

static struct cel_value net_value(enum cel_kind kind, const struct cel_net *n, struct hk_arena *a)
{
    struct cel_net *copy = hk_arena_alloc(a, sizeof(*copy));

    *copy = *n;
    copy->cidr = kind == CEL_CIDR;
    return (struct cel_value){.kind = kind, .net = copy};
}

static int net_bad(struct cel_run *r, const char *what, struct hk_str s)
{
    const struct hk_str head = hk_str_head(s, 80);

    return cel_error(r, "%s parse error during conversion from string: '%.*s'", what, HK_FMT(head));
}

/* ---- addresses ---- */

static int net_ip(struct cel_run *r, const struct cel_value *v, uint32_t n, struct cel_value *ret)
{
    struct cel_net net;

    if (!net_parse_ip(v[0].s, &net)) {
        return net_bad(r, "IP Address", v[0].s);
    }
    *ret = net_value(CEL_IP, &net, r->a);
    return 0;
}

static int net_is_ip(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    struct cel_net net;

    *ret = cel_of_bool(net_parse_ip(v[0].s, &net));
    return 0;
}

static int net_is_canonical(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct cel_net net;

    if (!net_parse_ip(v[0].s, &net)) {
        return net_bad(r, "IP Address", v[0].s);
    }
    net_write_addr(&net, &text);
    *ret = cel_of_bool(hk_str_eq(hk_buf_str(&text), v[0].s));
    return 0;
}

static int net_family(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    *ret = cel_of_int(v[0].net->size == 4 ? 4 : 6);
    return 0;
}

static bool net_all_zero(const struct cel_net *n, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (n->addr[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool net_unspecified(const struct cel_net *n)
{
    return net_all_zero(n, n->size);
}

static bool net_loopback(const struct cel_net *n)
{
    return n->size == 4 ? n->addr[0] == 127 : net_all_zero(n, 15) && n->addr[15] == 1;
}

static bool net_local_multicast(const struct cel_net *n)
{
    return n->size == 4 ? n->addr[0] == 224 && n->addr[1] == 0 && n->addr[2] == 0
                        : n->addr[0] == 0xFF && (n->addr[1] & 0x0F) == 2;
}

static bool net_local_unicast(const struct cel_net *n)
{
    return n->size == 4 ? n->addr[0] == 169 && n->addr[1] == 254
                        : n->addr[0] == 0xFE && (n->addr[1] & 0xC0) == 0x80;
}

static bool net_multicast(const struct cel_net *n)
{
    return n->size == 4 ? (n->addr[0] & 0xF0) == 0xE0 : n->addr[0] == 0xFF;
}

static bool net_global_unicast(const struct cel_net *n)
{
    static const uint8_t broadcast[4] = {255, 255, 255, 255};

    return !net_unspecified(n) && !net_loopback(n) && !net_multicast(n) && !net_local_unicast(n) &&
           !(n->size == 4 && memcmp(n->addr, broadcast, 4) == 0);
}

#define NET_TEST(name, test)                                                                       \
    static int name(struct cel_run *r, const struct cel_value *v, uint32_t n,                      \
                    struct cel_value *ret)                                                         \
    {                                                                                              \
        *ret = cel_of_bool(test(v[0].net));                                                        \
        return 0;                                                                                  \
    }

NET_TEST(net_is_unspecified, net_unspecified)
NET_TEST(net_is_loopback, net_loopback)
NET_TEST(net_is_local_multicast, net_local_multicast)
NET_TEST(net_is_local_unicast, net_local_unicast)
NET_TEST(net_is_global_unicast, net_global_unicast)

/* ---- networks ---- */

static int net_cidr(struct cel_run *r, const struct cel_value *v, uint32_t n, struct cel_value *ret)
{
    struct cel_net net;

    if (!net_parse_cidr(v[0].s, &net)) {
        return net_bad(r, "network address", v[0].s);
    }
    *ret = net_value(CEL_CIDR, &net, r->a);
    return 0;
}

static int net_is_cidr(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    struct cel_net net;

    *ret = cel_of_bool(net_parse_cidr(v[0].s, &net));
    return 0;
}

/* Whether the first `bits` of both addresses are the same. */
static bool net_prefix_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    const uint8_t mask = (uint8_t)(0xFF00U >> bits % 8);

    return memcmp(a, b, bits / 8) == 0 &&
           (bits % 8 == 0 || (a[bits / 8] & mask) == (b[bits / 8] & mask));
}

static bool net_covers(const struct cel_net *net, const struct cel_net *part)
{
    return net->size == part->size && net->bits <= part->bits &&
           net_prefix_equal(net->addr, part->addr, net->bits);
}

static int net_contains_ip(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    struct cel_net ip;

    if (v[1].kind == CEL_IP) {
        ip = *v[1].net;
    } else if (!net_parse_ip(v[1].s, &ip)) {
        return net_bad(r, "IP Address", v[1].s);
    }
    *ret = cel_of_bool(net_covers(v[0].net, &ip));
    return 0;
}

static int net_contains_cidr(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    struct cel_net part;

    if (v[1].kind == CEL_CIDR) {
        part = *v[1].net;
    } else if (!net_parse_cidr(v[1].s, &part)) {
        return net_bad(r, "network address", v[1].s);
    }
    *ret = cel_of_bool(net_covers(v[0].net, &part));
    return 0;
}

static int net_prefix_length(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    *ret = cel_of_int(v[0].net->bits);
    return 0;
}

static int net_addr_of_cidr(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    struct cel_net ip = *v[0].net;

    ip.bits = ip.size * 8;
    *ret = net_value(CEL_IP, &ip, r->a);
    return 0;
}

static int net_masked(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    struct cel_net net = *v[0].net;

    for (unsigned i = net.bits; i < net.size * 8U; i++) {
        net.addr[i / 8] &= (uint8_t) ~(0x80U >> i % 8);
    }
    *ret = net_value(CEL_CIDR, &net, r->a);
    return 0;
}

static const struct cel_func net_funcs[] = {
    {"ip", "s:I", net_ip, COST_TEXT},
    {"isIP", "s:b", net_is_ip, COST_TEXT},
    {"ip.isCanonical", "s:b", net_is_canonical, COST_TEXT},
    {"family", "I.:i", net_family, COST_ONE},
    {"isUnspecified", "I.:b", net_is_unspecified, COST_ONE},
    {"isLoopback", "I.:b", net_is_loopback, COST_ONE},
    {"isLinkLocalMulticast", "I.:b", net_is_local_multicast, COST_ONE},
    {"isLinkLocalUnicast", "I.:b", net_is_local_unicast, COST_ONE},
    {"isGlobalUnicast", "I.:b", net_is_global_unicast, COST_ONE},
    {"cidr", "s:C", net_cidr, COST_TEXT},
    {"isCIDR", "s:b", net_is_cidr, COST_TEXT},
    {"containsIP", "C.I:b", net_contains_ip, COST_ONE},
    {"containsIP", "C.s:b", net_contains_ip, COST_SECOND},
    {"containsCIDR", "C.C:b", net_contains_cidr, COST_ONE},
    {"containsCIDR", "C.s:b", net_contains_cidr, COST_SECOND},
    {"prefixLength", "C.:i", net_prefix_length, COST_ONE},
    {"ip", "C.:I", net_addr_of_cidr, COST_ONE},
    {"masked", "C.:C", net_masked, COST_ONE},
};

const struct cel_lib cel_lib_net = {net_funcs, HK_LEN(net_funcs)};
