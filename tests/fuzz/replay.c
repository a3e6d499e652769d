// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer in ordinary builds: feeds a fuzz target every file it is given, and every
// file of every directory, in name order. A target reports by crashing, so a line is printed only
// after its input has survived.

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

#define INPUT_MAX (16u << 20)

typedef HK_VEC(char *) paths_vec;

static int add_dir(const char *dir, paths_vec *paths)
{
    struct dirent **entries = NULL;
    const int n = scandir(dir, &entries, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            struct hk_buf path = {0};
            hk_buf_addf(&path, "%s/%s", dir, entries[i]->d_name);
            hk_vec_push(paths, path.data);
        }
        free(entries[i]);
    }
    free(entries);
    return n;
}

static bool add_path(const char *path, paths_vec *paths)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return add_dir(path, paths) >= 0;
    }
    hk_vec_push(paths, hk_strdup(path));
    return true;
}

/* The last two parts name a seed well enough: target/file. */
static const char *short_name(const char *path)
{
    int slashes = 0;

    for (const char *p = path + strlen(path); p > path; p--) {
        if (p[-1] == '/' && ++slashes == 2) {
            return p;
        }
    }
    return path;
}

static bool replay(uint32_t number, const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf input = {0};
    struct hk_err err = {0};

    if (hk_read_file(path, INPUT_MAX, &input, &err) < 0) {
        printf("not ok %u - %s\n# %s\n", number, short_name(path), err.text);
        return false;
    }
    /* An exact copy: the sanitizer sees a read one byte past the input. */
    HK_AUTO(hk_freep) uint8_t *data = hk_alloc(input.len);
    if (input.len > 0) {
        memcpy(data, input.data, input.len);
    }
    LLVMFuzzerTestOneInput(data, input.len);
    printf("ok %u - %s\n", number, short_name(path));
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    paths_vec paths = {0};
    bool good = true;

    for (int i = 1; i < argc; i++) {
        if (!add_path(argv[i], &paths)) {
            fprintf(stderr, "replay: cannot list '%s'\n", argv[i]);
            good = false;
        }
    }
    printf("1..%u\n", paths.len);
    for (uint32_t i = 0; i < paths.len; i++) {
        good &= replay(i + 1, paths.at[i]);
        hk_free(paths.at[i]);
    }
    hk_vec_fini(&paths);
    return good ? 0 : 1;
}
