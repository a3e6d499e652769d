// SPDX-License-Identifier: Apache-2.0
// hekla image: brings images to this machine's node, lists and removes them. Works on the data
// directory of the server, which need not run.
#include "base/clock.h"
#include "cli/grid.h"
#include "cli/verb.h"
#include "codec/quantity.h"
#include "daemon/where.h"
#include "image/pull.h"

#include <time.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define ID_SHOWN 12
#define COMMANDS "import list remove prune pull"

struct image_args {
    struct where_opts where;
    struct verb_output output;
    const char *command;
    struct option_list rest;
    const char *name, *creds, *authfile;
    struct quantity max_size;
    bool all, insecure;
};

static const struct option_row options[] = {
    ROW_TEXT('n', "name", "IMAGE", struct image_args, name, NULL,
             "For import: the name of the only image of the archive, in place of the one in it."),
    ROW_QUANTITY("max-size", struct image_args, max_size, 1000, "64Gi",
                 "For import and pull: the most bytes that an image may have when it is unpacked."),
    ROW_TEXT(0, "creds", "USER:PASSWORD", struct image_args, creds, NULL,
             "For pull: the credentials for the registry."),
    ROW_TEXT_OR(0, "authfile", "FILE", struct image_args, authfile,
                "as skopeo and 'podman login' use it",
                "For pull: a file with credentials, such as ~/.docker/config.json."),
    ROW_FLAG(0, "insecure", struct image_args, insecure,
             "For pull: permit HTTP, and certificates that cannot be verified."),
    ROW_FLAG('a', "all", struct image_args, all,
             "For prune: also remove images that no container uses."),
    ROW_INCLUDE(struct image_args, where, where_options),
    ROW_INCLUDE(struct image_args, output, verb_output_json_options),
    {.type = OPTION_ARGUMENT,
     .arg = "COMMAND",
     .choices = COMMANDS,
     .offset = OPTION_FIELD(struct image_args, command, const char *)},
    ROW_ARGUMENTS("FILE", struct image_args, rest),
    ROW_END,
};

/* One command of the verb. */
struct image_command {
    const char *name;
    bool some, none; /* it needs arguments, or takes none */
    int (*run)(const struct image_args *o, struct hk_arena *a, struct hk_buf *out,
               struct hk_err *err);
};

static int64_t image_now_s(void)
{
    struct hk_clock *clock = hk_clock_system();

    return clock->wall_ns(clock) / SECOND_NS;
}

/* ---- import and pull ---- */

static void tell_imported(const struct image_imported *done, struct hk_buf *out)
{
    for (uint32_t i = 0; i < done->images.len; i++) {
        const struct image_record *r = &done->images.at[i];

        hk_buf_addf(out, "%.*s sha256:%s\n", HK_FMT(r->name), r->id.hex);
    }
    if (done->nskipped > 0) {
        hk_buf_addf(out, "%u device%s and socket%s left out\n", done->nskipped,
                    done->nskipped == 1 ? "" : "s", done->nskipped == 1 ? "" : "s");
    }
}

static int image_run_import(const struct image_args *o, struct hk_arena *a, struct hk_buf *out,
                            struct hk_err *err)
{
    int rc = 0;

    if (o->name && o->rest.len > 1) {
        return hk_fail(err, HK_EINVAL, "option --name is for a single FILE");
    }
    for (uint32_t i = 0; rc == 0 && i < o->rest.len; i++) {
        struct image_imported done = {0};

        rc = image_import(&(struct image_import){.data_dir = o->where.dir,
                                                 .from = o->rest.at[i],
                                                 .name = o->name,
                                                 .max_bytes = quantity_value(o->max_size),
                                                 .now_s = image_now_s()},
                          a, &done, err);
        tell_imported(&done, out);
        image_imported_fini(&done);
    }
    return rc;
}

static int image_run_pull(const struct image_args *o, struct hk_arena *a, struct hk_buf *out,
                          struct hk_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < o->rest.len; i++) {
        struct image_imported done = {0};

        rc = image_pull(&(struct image_pull){.data_dir = o->where.dir,
                                             .name = o->rest.at[i],
                                             .creds = o->creds,
                                             .authfile = o->authfile,
                                             .insecure = o->insecure,
                                             .max_bytes = quantity_value(o->max_size),
                                             .now_s = image_now_s()},
                        a, &done, err);
        tell_imported(&done, out);
        image_imported_fini(&done);
    }
    return rc;
}

/* ---- list ---- */

static void write_list_json(const struct image_records *all, struct hk_arena *a, struct hk_buf *out)
{
    struct json doc = json_make_object(), *items = json_set_array(&doc, a, "items");

    for (uint32_t i = 0; i < all->len; i++) {
        const struct image_record *r = &all->at[i];
        struct json *one = json_push(items, a, json_make_object());

        json_set_str(one, a, "name", r->name);
        json_set_cstr(one, a, "id", hk_arena_printf(a, "sha256:%s", r->id.hex));
        if (r->manifest.hex[0]) {
            json_set_cstr(one, a, "digest", hk_arena_printf(a, "sha256:%s", r->manifest.hex));
        }
        json_set_int(one, a, "sizeBytes", r->size);
        json_set_int(one, a, "layers", r->nlayer);
        json_set_time(one, a, "importedAt", r->imported_s * SECOND_NS);
    }
    json_write_pretty(&doc, 4, out);
}

static void add_size(struct grid *g, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    size_t unit = 0;

    for (; n >= 1024 && unit + 1 < HK_LEN(units); unit++) {
        n /= 1024;
    }
    grid_addf(g, unit == 0 ? "%.0f %s" : "%.1f %s", n, units[unit]);
}

static void write_list_table(const struct image_records *all, struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    const struct term t = term_of(STDOUT_FILENO);

    grid_head(&g, "NAME", false);
    grid_head(&g, "ID", false);
    grid_head(&g, "LAYERS", true);
    grid_head(&g, "SIZE", true);
    for (uint32_t i = 0; i < all->len; i++) {
        const struct image_record *r = &all->at[i];

        grid_add(&g, r->name);
        grid_addf(&g, "%.*s", ID_SHOWN, r->id.hex);
        grid_addf(&g, "%u", r->nlayer);
        add_size(&g, r->size);
    }
    grid_write(&g, &t, out);
}

static int image_run_list(const struct image_args *o, struct hk_arena *a, struct hk_buf *out,
                          struct hk_err *err)
{
    struct image_records all = {0};
    int rc = image_store_list(o->where.dir, a, &all, err);

    if (rc < 0) {
        return rc;
    }
    if (o->output.as == OUTPUT_JSON) {
        write_list_json(&all, a, out);
    } else {
        write_list_table(&all, out);
    }
    return 0;
}

/* ---- remove and prune ---- */

static int remove_image(const struct image_args *o, const struct image_store *s, const char *text,
                        struct hk_arena *a, struct hk_buf *out, struct hk_err *err)
{
    struct image_name name;
    struct image_record r;
    int rc = image_name_parse(hk_str(text), &name, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_store_find(o->where.dir, &name, a, &r, err);
    if (rc < 0) {
        return rc;
    }
    rc = image_store_remove(s, &r, err);
    if (rc == 0) {
        hk_buf_addf(out, "%.*s removed\n", HK_FMT(r.name));
    }
    return rc;
}

static int image_run_remove(const struct image_args *o, struct hk_arena *a, struct hk_buf *out,
                            struct hk_err *err)
{
    HK_AUTO(image_store_close) struct image_store s;
    struct image_pruned pruned = {0};
    int rc = image_store_open(&s, o->where.dir, IMAGE_EXCLUSIVE, err);

    for (uint32_t i = 0; rc == 0 && i < o->rest.len; i++) {
        rc = remove_image(o, &s, o->rest.at[i], a, out, err);
    }
    return rc < 0 ? rc : image_store_prune(&s, o->where.dir, false, &pruned, err);
}

static int image_run_prune(const struct image_args *o, struct hk_arena *a, struct hk_buf *out,
                           struct hk_err *err)
{
    HK_AUTO(image_store_close) struct image_store s;
    struct image_pruned n = {0};
    int rc = image_store_open(&s, o->where.dir, IMAGE_EXCLUSIVE, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_store_prune(&s, o->where.dir, o->all, &n, err);
    hk_buf_addf(out, "%u image%s, %u layer%s and %u other part%s removed\n", n.nimage,
                n.nimage == 1 ? "" : "s", n.nlayer, n.nlayer == 1 ? "" : "s", n.nother,
                n.nother == 1 ? "" : "s");
    return rc;
}

/* ---- the verb ---- */

static const struct image_command commands[] = {
    {"import", true, false, image_run_import}, {"list", false, true, image_run_list},
    {"remove", true, false, image_run_remove}, {"prune", false, true, image_run_prune},
    {"pull", true, false, image_run_pull},
};

static const struct image_command *image_find_command(const char *name)
{
    for (size_t i = 0; i < HK_LEN(commands); i++) {
        if (name && strcmp(name, commands[i].name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int image_run_command(const struct image_command *c, struct image_args *o)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0}, out = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct hk_err err = {0};
    int rc = where_settle(&o->where.dir, &dir, &err);

    if (rc == 0 && c->run != image_run_list) {
        rc = where_make(o->where.dir, &err);
    }
    if (rc == 0) {
        rc = c->run(o, &a, &out, &err);
    }
    const int printed = verb_print(&out);
    return rc < 0 ? verb_complain("image %s: %s", c->name, err.text) : printed;
}

static int image_run(const struct verb *v, int argc, char **argv)
{
    struct image_args o = {0};
    const struct image_command *c;
    int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        hk_vec_fini(&o.rest);
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    c = image_find_command(o.command);
    if (!c) {
        rc = verb_complain("image: COMMAND is one of import, list, remove, prune and pull "
                           "(see 'hekla help image')");
    } else if (c->some && o.rest.len == 0) {
        rc = verb_complain("image %s: %s is missing (see 'hekla help image')", c->name,
                           c->run == image_run_import ? "the FILE or directory"
                                                      : "the name of an IMAGE");
    } else if (c->none && o.rest.len > 0) {
        rc = verb_complain("image %s: takes no argument, and '%s' is one", c->name, o.rest.at[0]);
    } else {
        rc = image_run_command(c, &o);
    }
    hk_vec_fini(&o.rest);
    return rc;
}

const struct verb verb_image = {
    .name = "image",
    .args = "COMMAND [FILE|IMAGE...]",
    .about = "import, pull, list and remove the images of this machine",
    .options = options,
    .text = "Keeps images in the data directory of 'hekla up' or 'hekla agent', for the pods of "
            "this machine. A container whose image is here runs in it, with its entrypoint, "
            "environment, user and working directory. The server need not run.\n"
            "import reads archives of 'docker save', 'podman save' and 'skopeo copy', OCI archives "
            "and OCI directories; '-' is standard input. All digests are checked, and of an image "
            "for several platforms the one for this machine is taken.\n"
            "pull gets images from a registry, with the program skopeo, which has to be "
            "installed. IMAGE may end with @sha256:DIGEST.\n"
            "list shows the images. remove removes names, and the files that no other image "
            "needs; an image that a container uses stays. prune removes what crashed imports "
            "left behind.",
    .rest = "EXIT STATUS\n"
            "       0  done\n"
            "       1  failed; one line on standard error says why\n"
            "\n"
            "EXAMPLES\n"
            "           docker save app:1.0 | hekla image import -\n"
            "           hekla image import --name app:1.0 app-oci.tar\n"
            "           hekla image pull debian:bookworm-slim\n"
            "           hekla image list\n"
            "           hekla image prune --all\n",
    .run = image_run,
};
