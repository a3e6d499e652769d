// SPDX-License-Identifier: Apache-2.0
// Keeps at most two generations: the current configuration, and the one being read.
#include "webhook/conf.h"

#include "base/file.h"
#include "base/log.h"
#include "codec/yaml.h"
#include "net/files.h"

enum { MAX_CONF_BYTES = 1 << 20 };

struct generation {
    struct hk_buf text; /* the tree points into it */
    struct hk_arena mem;
    struct json tree;
};

struct webhook_conf {
    const char *path;
    struct volcano_options *options;
    struct generation now;
    struct net_files *files;
};

static void generation_fini(struct generation *g)
{
    hk_buf_fini(&g->text);
    hk_arena_fini(&g->mem);
}

static int understand(struct generation *g, struct hk_err *err)
{
    struct yaml_docs docs = {0};
    int rc = yaml_parse(hk_buf_str(&g->text), 0, &g->mem, &docs, err);

    if (rc < 0) {
        return rc;
    }
    if (docs.len > 1) {
        return hk_fail(err, HK_EINVAL, "%u documents, want 1", docs.len);
    }
    if (hk_str_trim(hk_buf_str(&g->text)).n == 0) { /* perhaps being written */
        return hk_fail(err, HK_EINVAL, "the file is empty, want a document or a comment");
    }
    /* Volcano's chart ships a file with only comments: a configuration without resource groups. */
    g->tree = docs.len == 0 || docs.at[0].type == JSON_NULL ? json_make_object() : docs.at[0];
    return volcano_check_conf(&g->tree, err);
}

static void webhook_conf_load(void *ctx)
{
    struct webhook_conf *c = ctx;
    HK_AUTO(generation_fini) struct generation next = {0};
    struct hk_err err = {0};
    int rc = hk_read_file(c->path, MAX_CONF_BYTES, &next.text, &err);

    if (rc == 0 && c->options->conf &&
        hk_str_eq(hk_buf_str(&next.text), hk_buf_str(&c->now.text))) {
        return;
    }
    if (rc == 0) {
        rc = understand(&next, &err);
    }
    if (rc < 0) {
        hk_log(HK_LOG_ERROR, "cannot use the admission configuration", "path=%s err=\"%s\"",
               c->path, err.text);
        return;
    }
    const struct generation old = c->now;
    c->now = next;
    next = old;
    c->options->conf = &c->now.tree;
    hk_log(HK_LOG_INFO, "admission configuration loaded", "path=%s", c->path);
}

int webhook_conf_new(struct net_loop *loop, const char *path, struct volcano_options *options,
                     struct webhook_conf **ret, struct hk_err *err)
{
    struct webhook_conf *c = hk_zalloc(sizeof(*c));
    int rc;

    c->path = path;
    c->options = options;
    rc = net_files_new(
        &(struct net_files_opts){
            .loop = loop, .paths = &c->path, .npaths = 1, .changed = webhook_conf_load, .ctx = c},
        &c->files, err);
    if (rc < 0) {
        hk_free(c);
        return rc;
    }
    webhook_conf_load(c);
    *ret = c;
    return 0;
}

void webhook_conf_free(struct webhook_conf *c)
{
    if (!c) {
        return;
    }
    net_files_free(c->files);
    c->options->conf = NULL;
    generation_fini(&c->now);
    hk_free(c);
}
