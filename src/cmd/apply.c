// SPDX-License-Identifier: Apache-2.0
// hekla apply: creates or changes objects to match files.
#include "base/file.h"
#include "codec/yaml.h"
#include "user/user.h"

enum { MAX_FILE = 16 << 20 };

struct apply_args {
    struct user_opts user;
    struct option_list files;
    bool dry_run;
};

static const struct option_row options[] = {
    ROW_LIST('f', "filename", "FILE", struct apply_args, files, NULL,
             "A file of YAML or JSON documents, or - for standard input. May be given more than "
             "once."),
    ROW_FLAG(0, "dry-run", struct apply_args, dry_run,
             "Let the server check everything, and change nothing."),
    ROW_INCLUDE(struct apply_args, user, user_namespace_options),
    ROW_INCLUDE(struct apply_args, user, user_server_options),
    ROW_ARGUMENTS_CALL("FILE", verb_refuse_file),
    ROW_END,
};

static struct hk_str apply_word_at(const struct json *doc, const char *path)
{
    return json_str(json_at(doc, path), HK_STR(""));
}

static int send_one(struct user *u, const struct api_kind *kind, const struct json *doc,
                    bool dry_run, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer answer = {0};
    const struct hk_str ns = apply_word_at(doc, "metadata.namespace");
    const struct port_request req = {
        .verb = PORT_PATCH,
        .kind = kind,
        .ns = !kind->namespaced ? HK_STR("")
              : ns.n > 0        ? ns
                                : hk_str(u->ns),
        .name = apply_word_at(doc, "metadata.name"),
        .body = doc,
        .patch = PORT_PATCH_APPLY,
        .field_manager = HK_STR("hekla"),
        .validate = PORT_VALIDATE_STRICT,
        .force = true,
        .dry_run = dry_run,
    };

    return ask(&u->ask, &req, &answer, err);
}

static int apply_doc(struct user *u, const struct json *doc, bool dry_run, struct hk_buf *out,
                     struct hk_err *err)
{
    const struct hk_str version = apply_word_at(doc, "apiVersion"),
                        word = apply_word_at(doc, "kind");
    const struct hk_str name = apply_word_at(doc, "metadata.name");
    const struct api_kind *kind = api_kind_find(version, word);
    int rc;

    if (!kind) {
        return hk_fail(err, HK_EINVAL,
                       "kind '%.*s' of '%.*s' is not supported here, use kubectl apply",
                       HK_FMT(word), HK_FMT(version));
    }
    if (name.n == 0) {
        return hk_fail(err, HK_EINVAL, "a %.*s has no metadata.name", HK_FMT(word));
    }
    rc = send_one(u, kind, doc, dry_run, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "%.*s '%.*s'", HK_FMT(word), HK_FMT(name));
    }
    hk_buf_addf(out, "%s%s%s/%.*s %s\n", kind->plural, kind->group[0] ? "." : "", kind->group,
                HK_FMT(name), dry_run ? "is good" : "applied");
    return 0;
}

static int apply_file(struct user *u, const char *path, bool dry_run, struct hk_buf *out,
                      struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct yaml_docs docs = {0};
    int rc = hk_read_file(path, MAX_FILE, &text, err);

    if (rc < 0) {
        return rc;
    }
    rc = yaml_parse(hk_buf_str(&text), 0, &u->mem, &docs, err);
    for (uint32_t k = 0; rc == 0 && k < docs.len; k++) {
        rc = json_is(&docs.at[k], JSON_NULL) ? 0 : apply_doc(u, &docs.at[k], dry_run, out, err);
    }
    return rc < 0 ? hk_wrap(err, rc, "'%s'", path) : 0;
}

static int apply_objects(struct user *u, const struct apply_args *a, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    int rc = user_open(u, &a->user, err);

    for (uint32_t k = 0; rc == 0 && k < a->files.len; k++) {
        rc = apply_file(u, a->files.at[k], a->dry_run, &out, err);
    }
    verb_print(&out); /* also shows what was done before a failure */
    return rc;
}

static int apply_run(const struct verb *v, int argc, char **argv)
{
    struct apply_args a = {0};
    struct user u = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a), status;

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.files.len == 0) {
        verb_complain("apply: no input, give it with -f FILE (see 'hekla help apply')");
        status = USER_TROUBLE;
    } else {
        rc = apply_objects(&u, &a, &err);
        status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
    }
    user_close(&u);
    hk_vec_fini(&a.files);
    return status;
}

const struct verb verb_apply = {
    .name = "apply",
    .args = "-f FILE...",
    .about = "create the objects in files, or update them to match",
    .options = options,
    .text = "Sends every document to the server, one after the other: a missing object is "
            "created, an existing one is updated in the fields that the file has (server-side "
            "apply, as 'kubectl apply --server-side --force-conflicts'). Fields that the kind "
            "does not have are refused. The first refused document ends the command; documents "
            "before it stay applied.\n"
            "Volcano's kinds and the usual kinds of Kubernetes are supported; for other kinds use "
            "kubectl.",
    .rest = USER_EXIT_STATUS "\n"
                             "EXAMPLES\n"
                             "       hekla apply -f examples/queue.yaml -f examples/job.yaml\n"
                             "       hekla run --dry-run -- ./train.sh | hekla apply -f -\n",
    .run = apply_run,
};
