// SPDX-License-Identifier: Apache-2.0
// Accept headers: tries the clauses by descending quality; the first supported one wins.
#include "apiserver/accept.h"

#include <strings.h>

enum { MAX_CLAUSES = 16 };

struct clause {
    struct hk_str type, as, group, version;
    int quality; /* thousandths */
};

/* Converts "0.85" to 850; invalid text is 0. */
static int quality(struct hk_str s)
{
    int value = 0, unit = 1000;

    for (size_t k = 0; k < s.n && k < 5; k++) {
        if (s.s[k] == '.') {
            continue;
        }
        if (s.s[k] < '0' || s.s[k] > '9') {
            return 0;
        }
        value += (s.s[k] - '0') * unit;
        unit /= 10;
    }
    return HK_MIN(value, 1000);
}

static struct clause read_clause(struct hk_str text)
{
    struct clause c = {.quality = 1000};
    struct hk_str part;

    hk_str_cut(&text, ';', &part);
    c.type = hk_str_trim(part);
    while (hk_str_cut(&text, ';', &part)) {
        struct hk_str key, value;
        hk_str_cut(&part, '=', &key);
        key = hk_str_trim(key);
        value = part.s ? hk_str_trim(part) : HK_STR("");
        if (hk_str_is(key, "q")) {
            c.quality = quality(value);
        } else if (hk_str_is(key, "as")) {
            c.as = value;
        } else if (hk_str_is(key, "g")) {
            c.group = value;
        } else if (hk_str_is(key, "v")) {
            c.version = value;
        }
    }
    return c;
}

static bool accept_is_type(const struct clause *c, const char *type)
{
    return c->type.n == strlen(type) && strncasecmp(c->type.s, type, c->type.n) == 0;
}

static bool take_form(const struct clause *c, struct accept *ret)
{
    if (c->as.n == 0) {
        ret->form = FORM_OBJECT;
        return true;
    }
    ret->version = hk_str_is(c->version, "v1")        ? "v1"
                   : hk_str_is(c->version, "v1beta1") ? "v1beta1"
                                                      : NULL;
    if (!hk_str_is(c->group, "meta.k8s.io") || !ret->version) {
        return false;
    }
    ret->list = hk_str_is(c->as, "PartialObjectMetadataList");
    ret->form = hk_str_is(c->as, "Table") ? FORM_TABLE : FORM_METADATA;
    return ret->form == FORM_TABLE || ret->list || hk_str_is(c->as, "PartialObjectMetadata");
}

/* Whether the form exists in protobuf. */
static bool proto_exists(enum form form, enum accept_proto proto)
{
    return form == FORM_METADATA ? proto != ACCEPT_NO_PROTO
                                 : form == FORM_OBJECT && proto == ACCEPT_PROTO;
}

static bool take_clause(const struct clause *c, enum accept_proto proto, struct accept *ret)
{
    const bool json = accept_is_type(c, "application/json") || accept_is_type(c, "*/*") ||
                      accept_is_type(c, "application/*");

    ret->yaml = accept_is_type(c, "application/yaml");
    ret->protobuf = accept_is_type(c, "application/vnd.kubernetes.protobuf");
    return c->quality > 0 && (json || ret->yaml || ret->protobuf) && take_form(c, ret) &&
           (!ret->protobuf || proto_exists(ret->form, proto));
}

int accept_parse(struct hk_str header, enum accept_proto proto, struct accept *ret)
{
    struct clause clauses[MAX_CLAUSES];
    struct hk_str part;
    uint32_t n = 0;

    header = hk_str_trim(header);
    if (header.n == 0) {
        return 0;
    }
    while (n < MAX_CLAUSES && hk_str_cut(&header, ',', &part)) {
        const struct clause c = read_clause(part);
        uint32_t at = n++;
        for (; at > 0 && clauses[at - 1].quality < c.quality; at--) {
            clauses[at] = clauses[at - 1];
        }
        clauses[at] = c;
    }
    for (uint32_t k = 0; k < n; k++) {
        struct accept a = *ret;
        if (take_clause(&clauses[k], proto, &a)) {
            *ret = a;
            return 0;
        }
    }
    return -HK_EINVAL;
}
