// SPDX-License-Identifier: Apache-2.0
// Finds control groups from /proc/self/mountinfo and /proc/self/cgroup.
#include "base/cgroup.h"

#include "base/file.h"

#define PROC_MAX ((size_t)16 << 20)

bool hk_cgroup_lists(struct hk_str list, struct hk_str word)
{
    struct hk_str rest = hk_str_trim(list), part;

    while (hk_str_cut(&rest, ',', &part)) {
        if (hk_str_eq(part, word)) {
            return true;
        }
    }
    return false;
}

static bool share_word(struct hk_str a, struct hk_str b)
{
    struct hk_str part;

    while (hk_str_cut(&a, ',', &part)) {
        if (part.n > 0 && hk_cgroup_lists(b, part)) {
            return true;
        }
    }
    return false;
}

/* The path of our group in the hierarchy with those mount options, from lines
 * "ID:CONTROLLERS:PATH". Version 2 has ID 0. */
static struct hk_str own_path(struct hk_str lines, bool v2, struct hk_str options)
{
    struct hk_str line, id, list;

    while (hk_str_cut(&lines, '\n', &line)) {
        if (!hk_str_cut(&line, ':', &id) || !hk_str_cut(&line, ':', &list)) {
            continue;
        }
        if (v2 ? hk_str_is(id, "0") : share_word(list, options)) {
            return line;
        }
    }
    return (struct hk_str){0};
}

/* The mount shows the hierarchy below `top`; our own path starts at its root. */
static void add_below(struct hk_str top, struct hk_str own, struct hk_buf *path)
{
    if (top.n > 1 && own.n >= top.n && memcmp(own.s, top.s, top.n) == 0) {
        own = (struct hk_str){own.s + top.n, own.n - top.n};
    }
    if (own.n > 1) {
        hk_buf_addstr(path, own);
    }
}

/* One line of mountinfo: ID PARENT DEV ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS */
static bool parse_mount(struct hk_str line, struct hk_str *ret_top, struct hk_str *ret_point,
                        struct hk_cgroup *ret)
{
    struct hk_str field[6], part, type;

    for (size_t k = 0; k < HK_LEN(field); k++) {
        if (!hk_str_cut(&line, ' ', &field[k])) {
            return false;
        }
    }
    while (hk_str_cut(&line, ' ', &part) && !hk_str_is(part, "-")) {
    }
    if (!hk_str_cut(&line, ' ', &type) || !hk_str_cut(&line, ' ', &part)) {
        return false;
    }
    *ret_top = field[3];
    *ret_point = field[4];
    *ret = (struct hk_cgroup){.v2 = hk_str_is(type, "cgroup2"), .options = line};
    return ret->v2 || hk_str_is(type, "cgroup");
}

static bool read_proc(const char *root, const char *name, struct hk_buf *text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    hk_buf_addf(&path, "%s/proc/self/%s", root, name);
    return hk_read_file(path.data, PROC_MAX, text, NULL) == 0;
}

void hk_cgroup_each(const char *root, void (*fn)(void *ctx, const struct hk_cgroup *g), void *ctx)
{
    HK_AUTO(hk_buf_fini) struct hk_buf mounts = {0}, groups = {0};
    struct hk_str rest, line, top, point;
    struct hk_cgroup g;

    if (!read_proc(root, "mountinfo", &mounts) || !read_proc(root, "cgroup", &groups)) {
        return;
    }
    rest = hk_buf_str(&mounts);
    while (hk_str_cut(&rest, '\n', &line)) {
        HK_AUTO(hk_buf_fini) struct hk_buf mount = {0}, own = {0};
        if (!parse_mount(line, &top, &point, &g)) {
            continue;
        }
        const struct hk_str path = own_path(hk_buf_str(&groups), g.v2, g.options);
        if (!path.s) {
            continue;
        }
        hk_buf_addf(&mount, "%s%.*s", root, HK_FMT(point));
        hk_buf_addstr(&own, hk_buf_str(&mount));
        add_below(top, path, &own);
        g.mount = mount.data;
        g.own = own.data;
        fn(ctx, &g);
    }
}
