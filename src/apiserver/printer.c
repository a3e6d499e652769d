// SPDX-License-Identifier: Apache-2.0
// Tables. The columns of a kind come from its definition, or else from the table of built-in kinds.
// All columns are sent, and the client hides the wide ones. Objects are parsed one at a time, and
// only here.
#include "apiserver/printer_priv.h"

#include "api/pod_summary.h"
#include "apiserver/jsonpath.h"
#include "codec/timefmt.h"

/* ---- reading objects ---- */

void print_age(const struct json *stamp, int64_t now_ns, struct hk_buf *out)
{
    int64_t ns;

    if (json_str(stamp, HK_STR("")).n == 0) {
        hk_buf_adds(out, "<unknown>");
    } else if (time_parse(json_str(stamp, HK_STR("")), &ns, NULL) < 0) {
        hk_buf_adds(out, "<invalid>");
    } else {
        duration_write_human(now_ns - ns, out);
    }
}

struct hk_str print_condition(const struct json *obj, const char *type)
{
    const struct json *list = json_list_at(obj, "status.conditions");

    for (uint32_t k = 0; k < list->len; k++) {
        if (hk_str_is(json_str_field(&list->items[k], "type"), type)) {
            return json_str_field(&list->items[k], "status");
        }
    }
    return HK_STR("");
}

void print_join(struct hk_str text, struct hk_buf *out)
{
    if (out->len > 0) {
        hk_buf_addc(out, ',');
    }
    hk_buf_addstr(out, text);
}

void print_none(struct hk_buf *out)
{
    if (out->len == 0) {
        hk_buf_adds(out, "<none>");
    }
}

static int by_key(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;

    return hk_str_cmp((*x)->key, (*y)->key);
}

uint32_t print_members(const struct json *map, struct hk_arena *a, const struct json_member ***ret)
{
    const uint32_t n = json_is(map, JSON_OBJECT) ? map->len : 0;

    *ret = hk_arena_array(a, n, sizeof(**ret));
    for (uint32_t k = 0; k < n; k++) {
        (*ret)[k] = &map->members[k];
    }
    qsort(*ret, n, sizeof(**ret), by_key);
    return n;
}

void print_map(const struct json *map, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    const struct json_member **at;
    const uint32_t n = print_members(map, &scratch, &at);

    for (uint32_t k = 0; k < n; k++) {
        print_join(at[k]->key, out);
        hk_buf_addc(out, '=');
        hk_buf_addstr(out, json_str(&at[k]->value, HK_STR("")));
    }
    print_none(out);
}

/* Strings without quotes, other values as JSON. */
static void write_plain(const struct json *v, struct hk_buf *out)
{
    if (json_is(v, JSON_STRING)) {
        hk_buf_addstr(out, json_str(v, HK_STR("")));
    } else {
        json_write(v, out);
    }
}

/* ---- columns of built-in kinds ---- */

static void write_header(struct hk_str name, struct hk_str type, struct hk_str format,
                         struct hk_str description, int64_t priority, struct hk_buf *out)
{
    hk_buf_adds(out, "{\"name\":");
    json_write_str(name, out);
    hk_buf_adds(out, ",\"type\":");
    json_write_str(type, out);
    hk_buf_adds(out, ",\"format\":");
    json_write_str(format, out);
    hk_buf_adds(out, ",\"description\":");
    json_write_str(description, out);
    hk_buf_addf(out, ",\"priority\":%lld}", (long long)priority);
}

static const char *printer_column_type(const struct print_column *c)
{
    switch (c->string ? PRINT_TEXT : c->boolean ? PRINT_BOOL : c->how) {
    case PRINT_INT:
    case PRINT_COUNT:
        return "integer";
    case PRINT_BOOL:
        return "boolean";
    case PRINT_DATE:
        return "date";
    case PRINT_TEXT:
    case PRINT_AGE:
    case PRINT_FN:
        break;
    }
    return "string";
}

static void write_column_headers(const struct print_column *c, struct hk_buf *out)
{
    for (uint32_t k = 0; c[k].name; k++) {
        const bool name = strcmp(c[k].name, "Name") == 0;
        hk_buf_adds(out, k > 0 ? "," : "");
        write_header(hk_str(c[k].name), hk_str(printer_column_type(&c[k])),
                     name ? HK_STR("name") : HK_STR(""), HK_STR(""), c[k].wide, out);
    }
}

static uint32_t printer_count_items(const struct json *v)
{
    return v && (v->type == JSON_OBJECT || v->type == JSON_ARRAY) ? v->len : 0;
}

static void write_column_cell(const struct print_column *c, const struct json *obj, int64_t now_ns,
                              struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *v = c->path ? json_at(obj, c->path) : NULL;

    switch (c->how) {
    case PRINT_INT:
        hk_buf_addf(out, "%lld", (long long)json_int(v, 0));
        return;
    case PRINT_BOOL:
        hk_buf_adds(out, json_bool(v, false) ? "true" : "false");
        return;
    case PRINT_COUNT:
        hk_buf_addf(out, "%u",
                    printer_count_items(v) +
                        (c->none ? printer_count_items(json_at(obj, c->none)) : 0));
        return;
    case PRINT_FN:
        c->fn(obj, now_ns, &text);
        break;
    case PRINT_AGE:
        print_age(v, now_ns, &text);
        break;
    case PRINT_TEXT:
    case PRINT_DATE:
        if (v && v->type != JSON_NULL) {
            write_plain(v, &text);
        }
        if (text.len == 0 && c->none) {
            hk_buf_adds(&text, c->none);
        }
        break;
    }
    json_write_str(hk_buf_str(&text), out);
}

static void write_column_cells(const struct print_column *c, const struct json *obj, int64_t now_ns,
                               struct hk_buf *out)
{
    for (uint32_t k = 0; c[k].name; k++) {
        hk_buf_adds(out, k > 0 ? "," : "");
        write_column_cell(&c[k], obj, now_ns, out);
    }
}

/* ---- columns of definitions ---- */

static void write_defined_headers(const struct json *columns, struct hk_buf *out)
{
    write_header(HK_STR("Name"), HK_STR("string"), HK_STR("name"), HK_STR(""), 0, out);
    for (uint32_t k = 0; k < columns->len; k++) {
        const struct json *c = &columns->items[k];
        hk_buf_addc(out, ',');
        write_header(json_str_field(c, "name"), json_str_field(c, "type"),
                     json_str_field(c, "format"), json_str_field(c, "description"),
                     json_int_at(c, "priority"), out);
    }
}

struct found {
    const struct json *first;
    struct hk_buf text; /* all values, separated by blanks */
};

static void on_found(void *ctx, const struct json *v)
{
    struct found *f = ctx;

    if (v->type == JSON_NULL) {
        return;
    }
    if (f->first) {
        hk_buf_addc(&f->text, ' ');
    }
    f->first = f->first ? f->first : v;
    write_plain(v, &f->text);
}

/* False if the value does not have the column's type. */
static bool write_number(const struct json *v, bool whole, struct hk_buf *out)
{
    const bool fits = v->type == JSON_INT || v->type == JSON_UINT || v->type == JSON_DOUBLE;

    if (fits && whole && v->type == JSON_DOUBLE && v->d > -9e15 && v->d < 9e15) {
        hk_buf_addf(out, "%lld", (long long)v->d);
    } else if (fits) {
        json_write(v, out);
    }
    return fits;
}

static bool write_typed(struct hk_str type, const struct found *f, int64_t now_ns,
                        struct hk_buf *out)
{
    if (!f->first) {
        return false;
    }
    if (hk_str_is(type, "integer") || hk_str_is(type, "number")) {
        return write_number(f->first, hk_str_is(type, "integer"), out);
    }
    if (hk_str_is(type, "boolean")) {
        if (f->first->type == JSON_BOOL) {
            json_write(f->first, out);
        }
        return f->first->type == JSON_BOOL;
    }
    if (hk_str_is(type, "date")) {
        HK_AUTO(hk_buf_fini) struct hk_buf age = {0};
        if (f->first->type == JSON_STRING) {
            print_age(f->first, now_ns, &age);
            json_write_str(hk_buf_str(&age), out);
        }
        return f->first->type == JSON_STRING;
    }
    json_write_str(hk_buf_str(&f->text), out);
    return true;
}

static void write_defined_cells(const struct json *columns, const struct json *obj, int64_t now_ns,
                                struct hk_buf *out)
{
    json_write_str(json_str_at(obj, "metadata.name"), out);
    for (uint32_t k = 0; k < columns->len; k++) {
        const struct json *c = &columns->items[k];
        struct found f = {0};
        hk_buf_addc(out, ',');
        jsonpath_each(obj, json_str_field(c, "jsonPath"), on_found, &f);
        if (!write_typed(json_str_field(c, "type"), &f, now_ns, out)) {
            hk_buf_adds(out, "null");
        }
        hk_buf_fini(&f.text);
    }
}

/* ---- the table ---- */

static void write_object(const struct store_obj *o, const struct json *tree,
                         const struct printer_style *style, struct hk_buf *out)
{
    const struct json *meta = json_get(tree, "metadata");

    hk_buf_adds(out, ",\"object\":");
    if (strcmp(style->include, "None") == 0) {
        hk_buf_adds(out, "null");
    } else if (strcmp(style->include, "Object") == 0) {
        hk_buf_addstr(out, o->text);
    } else {
        hk_buf_addf(out,
                    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\","
                    "\"metadata\":",
                    style->version);
        if (meta) {
            json_write(meta, out);
        } else {
            hk_buf_adds(out, "{}");
        }
        hk_buf_addc(out, '}');
    }
}

/* Marks finished pods, for clients that hide them. */
static void write_conditions(const struct rest_kind *k, const struct json *tree, struct hk_buf *out)
{
    const char *reason = k->kind->id == API_POD ? api_pod_finished(tree) : NULL;

    if (reason) {
        hk_buf_addf(out,
                    ",\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\","
                    "\"reason\":\"%s\",\"message\":\"%s\"}]",
                    reason,
                    strcmp(reason, "Failed") == 0 ? "The pod failed."
                                                  : "The pod has completed successfully.");
    }
}

static bool is_defined(const struct rest_kind *k)
{
    return json_is(k->columns, JSON_ARRAY) && k->columns->len > 0;
}

static void printer_write_object_row(const struct rest_kind *k, const struct store_obj *o,
                                     const struct printer_style *style, struct hk_arena *scratch,
                                     struct hk_buf *out)
{
    struct json tree;

    if (json_parse(o->text, 0, scratch, &tree, NULL) < 0) {
        tree = json_make_object(); /* cannot happen: stored text is valid JSON */
    }
    hk_buf_adds(out, "{\"cells\":[");
    if (is_defined(k)) {
        write_defined_cells(k->columns, &tree, style->now_ns, out);
    } else {
        struct json kept = k->view ? json_clone(&tree, scratch) : tree;
        rest_view_take(k, &kept, scratch);
        write_column_cells(print_columns(k), &kept, style->now_ns, out);
    }
    hk_buf_addc(out, ']');
    write_conditions(k, &tree, out);
    write_object(o, &tree, style, out);
    hk_buf_addc(out, '}');
}

void printer_write_head(const struct rest_kind *k, const struct printer_page *page,
                        struct hk_buf *out)
{
    hk_buf_addf(out,
                "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\","
                "\"metadata\":{\"resourceVersion\":\"%llu\"",
                page->version, (unsigned long long)page->rv);
    if (page->cont.n > 0) {
        hk_buf_adds(out, ",\"continue\":");
        json_write_str(page->cont, out);
        if (page->remaining > 0) {
            hk_buf_addf(out, ",\"remainingItemCount\":%lld", (long long)page->remaining);
        }
    }
    hk_buf_adds(out, "},\"columnDefinitions\":[");
    if (is_defined(k)) {
        write_defined_headers(k->columns, out);
    } else {
        write_column_headers(print_columns(k), out);
    }
    hk_buf_adds(out, "],\"rows\":[");
}

void printer_write_row(const struct rest_kind *k, const struct store_obj *obj,
                       const struct printer_style *style, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};

    printer_write_object_row(k, obj, style, &scratch, out);
}
