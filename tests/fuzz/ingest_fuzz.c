// SPDX-License-Identifier: Apache-2.0
// The engine's door on arbitrary manifests: whatever comes in, the books balance, also after the
// same objects came twice and half of them left again.

#include "codec/yaml.h"
#include "fuzz/fuzz.h"
#include "scheduler/ingest.h"

struct visit {
    struct ingest *in;
    uint32_t n;
    bool del_odd;
};

static int visit_one(void *ctx, const struct api_kind *kind, const struct json *obj,
                     struct hk_err *err)
{
    struct visit *v = ctx;

    if (!kind) {
        return 0;
    }
    if (v->del_odd && v->n++ % 2) {
        ingest_del(v->in, kind, json_str(json_at(obj, "metadata.namespace"), HK_STR("")),
                   json_str(json_at(obj, "metadata.name"), HK_STR("")));
    } else {
        (void)ingest_put(v->in, kind, obj, "fuzz", err);
    }
    return 0;
}

static void visit_all(const struct yaml_docs *docs, struct visit *v, struct model *m)
{
    struct hk_err err = {0};

    for (uint32_t i = 0; i < docs->len; i++) {
        (void)api_list_each(&docs->at[i], visit_one, v, &err);
    }
    ingest_settle(v->in);
    model_settle(m);
    const int rc = model_check(m, &err);
    hk_assert(rc == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs = {0};
    struct model m;
    struct visit v = {0};

    if (yaml_parse((struct hk_str){(const char *)data, size}, 0, &a, &docs, NULL) < 0) {
        return 0;
    }
    model_init(&m);
    v.in = ingest_new(&m, &(struct ingest_opts){.make_queues = true});
    visit_all(&docs, &v, &m);
    v.del_odd = true;
    visit_all(&docs, &v, &m);
    ingest_free(v.in);
    model_fini(&m);
    return 0;
}
