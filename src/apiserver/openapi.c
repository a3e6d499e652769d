// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents. Version 3 lists every group version; a document names its kinds, says that a
// patch takes fieldValidation (which makes kubectl leave validation to the server) and shows the
// schemas of definitions. Merge keys are not published: kubectl has its own. Version 2 is empty in
// the binary form, which old clients read as "no schema, do not check".
#include "apiserver/openapi.h"

#define TYPE_V2 "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

/* ---- pieces ---- */

static bool same_version(const struct rest_kind *a, const struct rest_kind *b)
{
    return strcmp(a->kind->group, b->kind->group) == 0 &&
           strcmp(a->kind->version, b->kind->version) == 0;
}

/* Whether no row before it is of the same group and version. */
static bool first_of_version(const struct rest *r, uint32_t at)
{
    for (uint32_t k = 0; k < at; k++) {
        if (rest_kind_at(r, k)->served && same_version(rest_kind_at(r, k), rest_kind_at(r, at))) {
            return false;
        }
    }
    return true;
}

/* "api/v1" or "apis/group/version". */
static void write_root(const struct api_kind *k, struct hk_buf *out)
{
    hk_buf_adds(out, k->group[0] == '\0' ? "api/" : "apis/");
    api_kind_write_version(k, out);
}

static void write_gvk(const struct api_kind *k, struct hk_buf *out)
{
    hk_buf_addf(out, "{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"}", k->group, k->version,
                k->kind);
}

static void write_operation(const struct api_kind *k, const char *method, const char *params,
                            struct hk_buf *out)
{
    hk_buf_addf(out, "\"%s\":{%s\"x-kubernetes-group-version-kind\":", method, params);
    write_gvk(k, out);
    hk_buf_addc(out, '}');
}

/* ---- version 3 ---- */

static void write_path(const struct api_kind *k, struct hk_buf *out)
{
    hk_buf_adds(out, "\"/");
    write_root(k, out);
    hk_buf_addf(out, "%s/%s/{name}\":{", k->namespaced ? "/namespaces/{namespace}" : "", k->plural);
    write_operation(k, "get", "", out);
    hk_buf_addc(out, ',');
    write_operation(k, "patch",
                    "\"parameters\":["
                    "{\"name\":\"dryRun\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}},"
                    "{\"name\":\"fieldValidation\",\"in\":\"query\","
                    "\"schema\":{\"type\":\"string\"}}],",
                    out);
    hk_buf_addc(out, '}');
}

static void write_schema(const struct rest_kind *row, struct hk_buf *out)
{
    const struct api_kind *k = row->kind;

    hk_buf_addf(out, "\"%s%s%s.%s\":{\"x-kubernetes-group-version-kind\":[", k->group,
                k->group[0] != '\0' ? "." : "", k->version, k->kind);
    write_gvk(k, out);
    hk_buf_addc(out, ']');
    if (!json_is(row->schema, JSON_OBJECT)) {
        hk_buf_adds(out, ",\"type\":\"object\"");
    }
    for (uint32_t m = 0; json_is(row->schema, JSON_OBJECT) && m < row->schema->len; m++) {
        hk_buf_addc(out, ',');
        json_write_str(row->schema->members[m].key, out);
        hk_buf_addc(out, ':');
        json_write(&row->schema->members[m].value, out);
    }
    hk_buf_addc(out, '}');
}

/* Both parts of a document are one walk over the kinds of its version. */
static void write_each(const struct rest *r, const struct rest_kind *like, bool paths,
                       struct hk_buf *out)
{
    const char *sep = "";

    for (uint32_t k = 0; k < rest_kinds(r); k++) {
        const struct rest_kind *row = rest_kind_at(r, k);
        if (!row->served || !same_version(row, like)) {
            continue;
        }
        hk_buf_adds(out, sep);
        sep = ",";
        if (paths) {
            write_path(row->kind, out);
        } else {
            write_schema(row, out);
        }
    }
}

static void write_document(const struct rest *r, const struct rest_kind *like, struct hk_buf *out)
{
    hk_buf_adds(out,
                "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Kubernetes\",\"version\":\"v1\"},"
                "\"paths\":{");
    write_each(r, like, true, out);
    hk_buf_adds(out, "},\"components\":{\"schemas\":{");
    write_each(r, like, false, out);
    hk_buf_adds(out, "}}}");
}

static void write_index(const struct rest *r, struct hk_buf *out)
{
    const char *sep = "\"";

    hk_buf_adds(out, "{\"paths\":{");
    for (uint32_t k = 0; k < rest_kinds(r); k++) {
        const struct rest_kind *row = rest_kind_at(r, k);
        if (!row->served || !first_of_version(r, k)) {
            continue;
        }
        hk_buf_adds(out, sep);
        sep = ",\"";
        write_root(row->kind, out);
        hk_buf_adds(out, "\":{\"serverRelativeURL\":\"/openapi/v3/");
        write_root(row->kind, out);
        hk_buf_adds(out, "\"}");
    }
    hk_buf_adds(out, "}}");
}

static bool answer_document(const struct rest *r, struct hk_str root, struct hk_buf *body)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};

    for (uint32_t k = 0; k < rest_kinds(r); k++) {
        const struct rest_kind *row = rest_kind_at(r, k);
        hk_buf_clear(&have);
        write_root(row->kind, &have);
        if (row->served && hk_str_eq(root, hk_buf_str(&have))) {
            write_document(r, row, body);
            return true;
        }
    }
    return false;
}

/* ---- version 2 ---- */

static void answer_v2(struct hk_str accept, struct hk_buf *body, const char **type)
{
    if (hk_str_contains(accept, "protobuf")) {
        *type = TYPE_V2;
        return;
    }
    hk_buf_adds(body, "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Kubernetes\",\"version\":\"v1\"},"
                      "\"paths\":{},\"definitions\":{}}");
}

bool openapi_answer(struct rest *r, struct hk_str path, struct hk_str accept, struct hk_buf *body,
                    const char **type)
{
    static const char prefix[] = "/openapi/v3/";

    if (hk_str_is(path, "/openapi/v2")) {
        answer_v2(accept, body, type);
        return true;
    }
    if (hk_str_is(path, "/openapi/v3")) {
        write_index(r, body);
        return true;
    }
    if (!hk_str_starts(path, prefix)) {
        return false;
    }
    const size_t n = sizeof(prefix) - 1;
    return answer_document(r, (struct hk_str){path.s + n, path.n - n}, body);
}
