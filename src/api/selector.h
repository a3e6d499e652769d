// SPDX-License-Identifier: Apache-2.0
// Label selectors (JSON and kubectl -l text), node selectors and field selectors.
#pragma once

#include "api/meta.h"

enum api_op {
    API_OP_IN,
    API_OP_NOT_IN,
    API_OP_EXISTS,
    API_OP_NOT_EXISTS,
    API_OP_GT, /* label value and operand both base-10 int64, else no match */
    API_OP_LT,
};

struct api_requirement {
    struct hk_str key;
    enum api_op op;
    struct api_strs values; /* sorted */
    int64_t operand;        /* of GT and LT */
};

/* All requirements must match. Zeroed means "no selector" and matches nothing; present with no
 * requirement matches everything. */
struct api_selector {
    struct api_requirement *at;
    uint32_t len;
    bool present;
};

/* Decodes a metav1.LabelSelector; NULL or null gives an absent selector. */
int api_selector_decode(const struct json *v, struct hk_arena *a, struct api_selector *ret,
                        struct hk_err *err) HK_CHECKED;
/* Reads "a=b,c!=d,e in (x,y),f notin (z),!g,h,i>3" as kubectl -l does; blank text matches
 * everything. The strings borrow from text. */
int api_selector_parse(struct hk_str text, struct hk_arena *a, struct api_selector *ret,
                       struct hk_err *err) HK_CHECKED;
/* Writes the text form for api_selector_parse; an absent selector writes nothing. */
void api_selector_write(const struct api_selector *s, struct hk_buf *out);
/* value is the label's value, NULL when there is no such label. */
bool api_requirement_holds(const struct api_requirement *r, const struct hk_str *value);
bool api_requirement_match(const struct api_requirement *r, const struct api_map *labels);
bool api_selector_match(const struct api_selector *s, const struct api_map *labels);

/* Syntax of a label key ("prefix.example/name") and of a label value. */
bool api_label_key_valid(struct hk_str key);
bool api_label_value_valid(struct hk_str value);

/* One node selector term: all expressions on labels and all on fields must hold. A term that has
 * neither, or is erroneous (bad key, wrong number of values, a non-integer operand, a field
 * requirement other than In/NotIn with one value), matches no node. */
struct api_node_term {
    API_LIST(struct api_requirement) exprs;
    API_LIST(struct api_requirement) fields;
    int32_t weight; /* of a preference; 0 in required terms */
    bool erroneous;
};

/* Any term must match. Absent means unrestricted; present without terms matches no node. */
struct api_node_selector {
    struct api_node_term *at;
    uint32_t len;
    bool present;
};

bool api_node_term_match(const struct api_node_term *t, const struct api_map *labels,
                         struct hk_str node_name);
bool api_node_selector_match(const struct api_node_selector *s, const struct api_map *labels,
                             struct hk_str node_name);

struct api_field_requirement {
    const char *path; /* dotted, "status.phase" */
    struct hk_str value;
    bool negate;
};

struct api_field_selector {
    struct api_field_requirement *at;
    uint32_t len;
};

/* Reads "metadata.name=x,status.phase!=Running"; a backslash protects ',', '=' and itself. */
int api_field_selector_parse(struct hk_str text, struct hk_arena *a, struct api_field_selector *ret,
                             struct hk_err *err) HK_CHECKED;
/* Compares with the text of the scalar at each path; an absent field counts as "". */
bool api_field_selector_match(const struct api_field_selector *s, const struct json *doc);
