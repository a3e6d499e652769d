// SPDX-License-Identifier: Apache-2.0
// For tests only: compares our reader with jansson's on the same text. json_oracle_excused lists
// intended differences; any other difference is a bug in one of the two.
#pragma once

/* Both libraries define these names; rename jansson's. */
#define JSON_NULL JANSSON_NULL
#define JSON_STRING JANSSON_STRING
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_OBJECT JANSSON_OBJECT
#define json_equal jansson_equal
#include <jansson.h>
#undef JSON_NULL
#undef JSON_STRING
#undef JSON_ARRAY
#undef JSON_OBJECT
#undef json_equal

#include "codec/json.h"

static bool json_oracle_same(const struct json *v, json_t *j);

static inline bool json_oracle_same_array(const struct json *v, json_t *j)
{
    if (v->len != json_array_size(j)) {
        return false;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        if (!json_oracle_same(&v->items[i], json_array_get(j, i))) {
            return false;
        }
    }
    return true;
}

static inline bool json_oracle_same_object(const struct json *v, json_t *j)
{
    if (v->len != json_object_size(j)) {
        return false;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        const struct hk_str key = v->members[i].key;
        json_t *other = json_object_getn(j, key.s, key.n);
        if (other == NULL || !json_oracle_same(&v->members[i].value, other)) {
            return false;
        }
    }
    return true;
}

static bool json_oracle_same(const struct json *v, json_t *j)
{
    switch (j->type) {
    case JANSSON_NULL:
        return v->type == JSON_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return v->type == JSON_BOOL && v->b == (j->type == JSON_TRUE);
    case JSON_INTEGER:
        return v->type == JSON_INT && v->i == json_integer_value(j);
    case JSON_REAL:
        return v->type == JSON_DOUBLE && v->d == json_real_value(j);
    case JANSSON_STRING:
        return v->type == JSON_STRING && v->len == json_string_length(j) &&
               memcmp(v->s, json_string_value(j), v->len) == 0;
    case JANSSON_ARRAY:
        return v->type == JSON_ARRAY && json_oracle_same_array(v, j);
    case JANSSON_OBJECT:
        return v->type == JSON_OBJECT && json_oracle_same_object(v, j);
    }
    return false;
}

/* An intended difference: one accepts what the other refuses. */
static inline bool json_oracle_excused(struct hk_str text, int rc, const json_error_t *error)
{
    if (rc == -HK_ELIMIT) {
        return true; /* our depth limit is JSON_MAX_DEPTH, jansson's 2048 */
    }
    if (rc == 0 && strstr(error->text, "too big") != NULL &&
        strstr(error->text, "integer") != NULL) {
        return true; /* beyond int64 we use uint64 and double */
    }
    /* After a lone number jansson treats a NUL as the end of the text. */
    return memchr(text.s, '\0', text.n) != NULL;
}

/* True when both agree on the text, in acceptance and value, or may differ. Otherwise prints the
 * difference to stderr. */
static inline bool json_oracle_agrees(struct hk_str text)
{
    struct hk_arena arena = {0};
    struct hk_err err = {0};
    struct json v = {0};
    json_error_t error = {0};
    bool agree;

    const int rc = json_parse(text, 0, &arena, &v, &err);
    json_t *j = json_loadb(text.s, text.n, JSON_DECODE_ANY, &error);
    if ((rc == 0) != (j != NULL)) {
        agree = json_oracle_excused(text, rc, &error);
    } else {
        agree = j == NULL || json_oracle_same(&v, j);
    }
    if (!agree) {
        fprintf(stderr, "# ours: %d %s\n# jansson: %s\n# text: %.*s\n", rc, err.text,
                j ? "accepts" : error.text, HK_FMT(text));
    }
    json_decref(j);
    hk_arena_fini(&arena);
    return agree;
}
