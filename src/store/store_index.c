// SPDX-License-Identifier: Apache-2.0
// The objects of one resource in the order of (namespace, name): a B-tree whose keys are the
// objects themselves. Changes descend the tree once, splitting full nodes and filling thin ones on
// the way, so they never go back up.
#include "store/store_priv.h"

enum {
    MIN_KIDS = 16, /* for inner nodes other than the root */
    MIN_KEYS = MIN_KIDS - 1,
    MAX_KEYS = 2 * MIN_KIDS - 1, /* a leaf is 256 bytes */
};

struct index_node {
    uint16_t len; /* number of keys */
    bool leaf;
    const struct store_obj *keys[MAX_KEYS];
    struct index_node *kids[]; /* len + 1; a leaf has no space for them */
};

static struct index_node *node_new(bool leaf)
{
    struct index_node *x =
        hk_alloc(sizeof(*x) + (leaf ? 0 : (MAX_KEYS + 1) * sizeof(struct index_node *)));

    x->len = 0;
    x->leaf = leaf;
    return x;
}

static void node_free(struct index_node *x, store_index_end_fn *end)
{
    for (uint32_t i = 0; i < x->len; i++) {
        end(x->keys[i]);
    }
    for (uint32_t i = 0; !x->leaf && i <= x->len; i++) {
        node_free(x->kids[i], end);
    }
    hk_free(x);
}

static int store_index_compare_key(struct store_key a, const struct store_obj *b)
{
    const int d = hk_str_cmp(a.ns, b->ns);

    return d != 0 ? d : hk_str_cmp(a.name, b->name);
}

static struct store_key store_index_object_key(const struct store_obj *o)
{
    return (struct store_key){o->ns, o->name};
}

/* The first position whose key is not before the given one. */
static uint32_t node_find(const struct index_node *x, struct store_key key, bool *ret_equal)
{
    uint32_t lo = 0, hi = x->len;

    *ret_equal = false;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        const int d = store_index_compare_key(key, x->keys[mid]);
        if (d == 0) {
            *ret_equal = true;
            return mid;
        }
        if (d < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}

static void keys_move(struct index_node *x, uint32_t to, uint32_t from, uint32_t n)
{
    memmove(&x->keys[to], &x->keys[from], n * sizeof(x->keys[0]));
}

static void kids_move(struct index_node *x, uint32_t to, uint32_t from, uint32_t n)
{
    if (!x->leaf) {
        memmove(&x->kids[to], &x->kids[from], n * sizeof(x->kids[0]));
    }
}

/* ---- growing ---- */

/* Splits the full child i; its middle key moves up. x is not full. */
static void split_kid(struct index_node *x, uint32_t i)
{
    struct index_node *left = x->kids[i];
    struct index_node *right = node_new(left->leaf);

    right->len = MIN_KEYS;
    memcpy(right->keys, &left->keys[MIN_KIDS], MIN_KEYS * sizeof(right->keys[0]));
    if (!left->leaf) {
        memcpy(right->kids, &left->kids[MIN_KIDS], MIN_KIDS * sizeof(right->kids[0]));
    }
    left->len = MIN_KEYS;

    keys_move(x, i + 1, i, x->len - i);
    kids_move(x, i + 2, i + 1, x->len - i);
    x->keys[i] = left->keys[MIN_KEYS];
    x->kids[i + 1] = right;
    x->len++;
}

const struct store_obj *store_index_put(struct store_index *ix, const struct store_obj *o)
{
    struct index_node *x = ix->root;

    if (!x) {
        x = ix->root = node_new(true);
    } else if (x->len == MAX_KEYS) {
        ix->root = node_new(false);
        ix->root->kids[0] = x;
        split_kid(ix->root, 0);
        x = ix->root;
    }
    for (;;) {
        bool equal;
        const uint32_t i = node_find(x, store_index_object_key(o), &equal);
        if (equal) {
            const struct store_obj *old = x->keys[i];
            x->keys[i] = o;
            return old;
        }
        if (x->leaf) {
            keys_move(x, i + 1, i, x->len - i);
            x->keys[i] = o;
            x->len++;
            ix->len++;
            return NULL;
        }
        if (x->kids[i]->len == MAX_KEYS) {
            split_kid(x, i); /* then search again: the new key may be equal to key or before it */
        } else {
            x = x->kids[i];
        }
    }
}

/* ---- shrinking ---- */

static void borrow_left(struct index_node *x, uint32_t i)
{
    struct index_node *from = x->kids[i - 1], *to = x->kids[i];

    keys_move(to, 1, 0, to->len);
    kids_move(to, 1, 0, to->len + 1);
    to->keys[0] = x->keys[i - 1];
    if (!to->leaf) {
        to->kids[0] = from->kids[from->len];
    }
    to->len++;
    x->keys[i - 1] = from->keys[--from->len];
}

static void borrow_right(struct index_node *x, uint32_t i)
{
    struct index_node *from = x->kids[i + 1], *to = x->kids[i];

    to->keys[to->len++] = x->keys[i];
    if (!to->leaf) {
        to->kids[to->len] = from->kids[0];
    }
    x->keys[i] = from->keys[0];
    from->len--;
    keys_move(from, 0, 1, from->len);
    kids_move(from, 0, 1, from->len + 1);
}

/* Merges key i and child i + 1 into child i; both children are thin. */
static void merge_kids(struct index_node *x, uint32_t i)
{
    struct index_node *left = x->kids[i], *right = x->kids[i + 1];

    left->keys[left->len] = x->keys[i];
    memcpy(&left->keys[left->len + 1], right->keys, right->len * sizeof(right->keys[0]));
    if (!left->leaf) {
        memcpy(&left->kids[left->len + 1], right->kids, (right->len + 1u) * sizeof(right->kids[0]));
    }
    left->len += right->len + 1;
    hk_free(right);

    x->len--;
    keys_move(x, i, i + 1, x->len - i);
    kids_move(x, i + 1, i + 2, x->len - i);
}

/* Returns the node to continue with for child i; it has a spare key. */
static struct index_node *fill_kid(struct index_node *x, uint32_t i)
{
    if (x->kids[i]->len > MIN_KEYS) {
        return x->kids[i];
    }
    if (i > 0 && x->kids[i - 1]->len > MIN_KEYS) {
        borrow_left(x, i);
        return x->kids[i];
    }
    if (i < x->len && x->kids[i + 1]->len > MIN_KEYS) {
        borrow_right(x, i);
        return x->kids[i];
    }
    if (i == x->len) {
        i--;
    }
    merge_kids(x, i);
    return x->kids[i];
}

static const struct store_obj *take_last(struct index_node *x)
{
    while (!x->leaf) {
        x = fill_kid(x, x->len);
    }
    return x->keys[--x->len];
}

static const struct store_obj *take_first(struct index_node *x)
{
    const struct store_obj *o;

    while (!x->leaf) {
        x = fill_kid(x, 0);
    }
    o = x->keys[0];
    x->len--;
    keys_move(x, 0, 1, x->len);
    return o;
}

/* x is the root or has a spare key. */
static const struct store_obj *node_del(struct index_node *x, struct store_key key)
{
    for (;;) {
        bool equal;
        const uint32_t i = node_find(x, key, &equal);
        const struct store_obj *found = equal ? x->keys[i] : NULL;
        if (x->leaf) {
            if (found) {
                x->len--;
                keys_move(x, i, i + 1, x->len - i);
            }
            return found;
        }
        if (!found) {
            x = fill_kid(x, i);
        } else if (x->kids[i]->len > MIN_KEYS) {
            x->keys[i] = take_last(x->kids[i]);
            return found;
        } else if (x->kids[i + 1]->len > MIN_KEYS) {
            x->keys[i] = take_first(x->kids[i + 1]);
            return found;
        } else {
            merge_kids(x, i);
            x = x->kids[i];
        }
    }
}

const struct store_obj *store_index_del(struct store_index *ix, struct store_key key)
{
    struct index_node *root = ix->root;
    const struct store_obj *found;

    if (!root) {
        return NULL;
    }
    found = node_del(root, key);
    if (root->len == 0) {
        ix->root = root->leaf ? NULL : root->kids[0];
        hk_free(root);
    }
    ix->len -= found != NULL;
    return found;
}

/* ---- lookups ---- */

const struct store_obj *store_index_get(const struct store_index *ix, struct store_key key)
{
    const struct index_node *x = ix->root;

    while (x) {
        bool equal;
        const uint32_t i = node_find(x, key, &equal);
        if (equal) {
            return x->keys[i];
        }
        x = x->leaf ? NULL : x->kids[i];
    }
    return NULL;
}

static bool node_scan(const struct index_node *x, const struct store_key *after, store_scan_fn *fn,
                      void *ctx)
{
    uint32_t i = 0;

    if (after) {
        bool equal;
        i = node_find(x, *after, &equal);
        i += equal;
    }
    for (;; i++) {
        if (!x->leaf && !node_scan(x->kids[i], after, fn, ctx)) {
            return false;
        }
        if (i == x->len) {
            return true;
        }
        if (!fn(ctx, x->keys[i])) {
            return false;
        }
        after = NULL;
    }
}

void store_index_scan(const struct store_index *ix, struct store_key after, store_scan_fn *fn,
                      void *ctx)
{
    if (ix->root) {
        node_scan(ix->root, &after, fn, ctx);
    }
}

void store_index_fini(struct store_index *ix, store_index_end_fn *end)
{
    if (ix->root) {
        node_free(ix->root, end);
    }
    *ix = (struct store_index){0};
}
