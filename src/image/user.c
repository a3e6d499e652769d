// SPDX-License-Identifier: Apache-2.0
// Reads etc/passwd and etc/group of a root file system, inside of it.
#include "image/user.h"

#include "image/tree.h"

#include <fcntl.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1 << 20)
#define FIELDS 7

/* A file that is missing, unreadable or too large counts as empty. */
static struct hk_str read_users(const char *root, const char *path, struct hk_arena *a)
{
    HK_AUTO(image_close) int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    HK_AUTO(image_close) int fd = dir < 0 ? -1 : image_tree_open_file(dir, path);
    char *text = hk_arena_alloc(a, FILE_MAX + 1);
    size_t n = 0;

    for (ssize_t got = 1; fd >= 0 && got > 0 && n <= FILE_MAX; n += (size_t)HK_MAX(got, 0)) {
        got = read(fd, text + n, FILE_MAX + 1 - n);
    }
    return (struct hk_str){text, n > FILE_MAX ? 0 : n};
}

static uint32_t split_fields(struct hk_str line, struct hk_str ret[FIELDS])
{
    uint32_t n = 0;

    while (n < FIELDS && hk_str_cut(&line, ':', &ret[n])) {
        n++;
    }
    return n;
}

static bool parse_id(struct hk_str text, int64_t *ret)
{
    return hk_str_int(text, ret) && *ret >= 0 && *ret <= INT32_MAX;
}

/* Finds the user by name or number. */
static bool find_user(struct hk_str users, struct hk_str name, int64_t uid, struct hk_arena *a,
                      struct image_user *ret)
{
    struct hk_str line, f[FIELDS];
    int64_t id, gid;

    while (hk_str_cut(&users, '\n', &line)) {
        if (split_fields(line, f) < 6 || !parse_id(f[2], &id) || !parse_id(f[3], &gid)) {
            continue;
        }
        if (uid >= 0 ? id == uid : hk_str_eq(f[0], name)) {
            ret->uid = id;
            ret->gid = gid;
            ret->home = f[5].n > 0 ? hk_arena_str(a, f[5]).s : NULL;
            return true;
        }
    }
    return false;
}

static bool find_group(struct hk_str groups, struct hk_str name, int64_t *ret)
{
    struct hk_str line, f[FIELDS];

    while (hk_str_cut(&groups, '\n', &line)) {
        if (split_fields(line, f) >= 3 && hk_str_eq(f[0], name) && parse_id(f[2], ret)) {
            return true;
        }
    }
    return false;
}

static bool has_member(struct hk_str members, struct hk_str user)
{
    struct hk_str one;

    while (hk_str_cut(&members, ',', &one)) {
        if (hk_str_eq(one, user)) {
            return true;
        }
    }
    return false;
}

static void find_memberships(struct hk_str groups, struct hk_str user, struct image_user *ret)
{
    struct hk_str line, f[FIELDS];
    int64_t gid;

    while (hk_str_cut(&groups, '\n', &line) && ret->ngroup < IMAGE_GROUPS_MAX) {
        if (split_fields(line, f) >= 4 && parse_id(f[2], &gid) && has_member(f[3], user)) {
            ret->groups[ret->ngroup++] = gid;
        }
    }
}

bool image_user_is_number(struct hk_str text)
{
    struct hk_str user = HK_STR("");
    int64_t uid;

    hk_str_cut(&text, ':', &user);
    return user.n == 0 || parse_id(user, &uid);
}

int image_user_find(const char *root, struct hk_str text, struct hk_arena *a,
                    struct image_user *ret, struct hk_err *err)
{
    const struct hk_str users = read_users(root, "etc/passwd", a);
    const struct hk_str groups = read_users(root, "etc/group", a);
    struct hk_str rest = text, user = HK_STR(""), group = HK_STR("");
    struct image_user u = {.uid = -1};
    int64_t gid;

    if (hk_str_cut(&rest, ':', &user)) {
        (void)hk_str_cut(&rest, ':', &group);
    }
    user = user.n > 0 ? user : HK_STR("0");
    if (!parse_id(user, &u.uid)) {
        u.uid = -1;
    }
    if (!find_user(users, user, u.uid, a, &u) && u.uid < 0) {
        return hk_fail(err, HK_ENOTFOUND,
                       "unable to find user %.*s: no matching entries in passwd "
                       "file of the image",
                       HK_FMT(hk_str_head(user, 100)));
    }
    if (group.n > 0 && !parse_id(group, &gid) && !find_group(groups, group, &gid)) {
        return hk_fail(err, HK_ENOTFOUND,
                       "unable to find group %.*s: no matching entries in group "
                       "file of the image",
                       HK_FMT(hk_str_head(group, 100)));
    }
    if (group.n > 0) {
        u.gid = gid;
    } else {
        find_memberships(groups, user, &u);
    }
    *ret = u;
    return 0;
}
