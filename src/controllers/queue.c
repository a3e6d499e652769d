// SPDX-License-Identifier: Apache-2.0
// The queue controller: the state of a Queue (Open, Closing, Closed), from Commands, from its
// parent queue and from its PodGroups.
//
//   Open, "" or Unknown  --close-->  Closing while there are PodGroups, else Closed
//   Closing              --the last PodGroup leaves-->  Closed
//   Closing or Closed    --open, unless the parent is closed-->  Open
//
// A closed queue closes its children, each in a pass of its own, level by level, whatever closed
// the parent. Such a child is first marked (closed-by-parent "true"), then closed. The mark
// distinguishes queues that open with their parent from queues that a user closed. It is set to
// "false" once the queue is open, or when a user closes it as well.
//
// Commands are executed oldest first; each is executed, then deleted. A Command names the wanted
// state, so executing it again changes nothing: after a crash before the deletion, the Command only
// has to be deleted, and no Command is lost. The next one waits until then.
#include "api/names.h"
#include "base/log.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

static const struct hk_str none = {"", 0};

struct queue_state {
    struct hk_map written; /* name (held) to the state change not reported yet */
};

/* One pass. */
struct queue_pass {
    struct pass *t;
    const struct json *root;
    struct hk_str uid;
    enum api_queue_state state;
    bool has_groups;
    struct hk_str parent; /* "" for root */
    bool parent_found;
    enum api_queue_state parent_state;
    struct hk_str mark; /* annotation closed-by-parent */
};

static bool is_closed(enum api_queue_state state)
{
    return state == API_QUEUE_CLOSED || state == API_QUEUE_CLOSING;
}

/* ---- which keys a change concerns ---- */

static void queue_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct queue_digest *old = ch->old, *now = ch->now;
    const struct hk_str name = mirror_name(ch->mirror, ch->row);

    ctl_add(c, none, name);
    if (!now || (old && old->state == now->state)) {
        return;
    }
    for (uint32_t r = mirror_first(ch->mirror, QUEUES_BY_PARENT, name); r != HK_NONE;
         r = mirror_next(ch->mirror, QUEUES_BY_PARENT, r)) {
        ctl_add(c, none, mirror_name(ch->mirror, r));
    }
}

/* A new PodGroup changes no queue's state; one that leaves may. */
static void ctl_queue_on_group_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct podgroup_digest *old = ch->old, *now = ch->now;

    if (old && (!now || strcmp(old->queue, now->queue) != 0)) {
        ctl_add(c, none, hk_str(old->queue));
    }
}

static bool is_for_queue(const struct json *command)
{
    const struct json *target = json_get(command, "target");

    return hk_str_is(json_str(json_get(target, "kind"), none), "Queue") &&
           hk_str_is(json_str(json_get(target, "apiVersion"), none),
                     "scheduling.volcano.sh/v1beta1");
}

static void command_changed(struct ctl *c, const struct mirror_change *ch)
{
    if (ch->now && is_for_queue(ch->root)) {
        ctl_add(c, none, json_str(json_at(ch->root, "target.name"), none));
    }
}

/* ---- state changes and their Events ---- */

static void remember_write(const struct queue_pass *p, enum api_queue_state to)
{
    struct queue_state *s = p->t->c->state;
    const uint32_t name = hk_intern_hold(ctl_strings(p->t->c), p->t->name);

    hk_map_put(&s->written, name, (uint32_t)p->state << 8 | to);
}

/* HK_NONE when no change was written. */
static uint32_t take_written(struct pass *t)
{
    struct queue_state *s = t->c->state;
    const uint32_t name = hk_intern_find(ctl_strings(t->c), t->name);
    const uint32_t change = hk_map_get(&s->written, name);

    if (change != HK_NONE) {
        hk_map_del(&s->written, name);
        hk_intern_drop(ctl_strings(t->c), name);
    }
    return change;
}

static const struct pass_error *ctl_queue_find_patch_error(const struct pass *t)
{
    for (uint32_t i = 0; i < t->nerror; i++) {
        if (t->errors[i].verb == PORT_PATCH) {
            return &t->errors[i];
        }
    }
    return NULL;
}

/* Reports the result of the state change of the last pass. */
static void report_outcome(const struct queue_pass *p)
{
    const uint32_t change = take_written(p->t);
    const enum api_queue_state from = (change >> 8) & 0xff, to = change & 0xff;
    const struct pass_error *e = ctl_queue_find_patch_error(p->t);
    const char *action = "SyncQueue";

    if (change == HK_NONE) {
        return;
    }
    if (is_closed(to) && !is_closed(from)) {
        action = "CloseQueue";
        if (e) {
            pass_event(p->t, p->root, true, action, "Close queue failed for %s", e->text);
        } else {
            pass_event(p->t, p->root, false, action, "Close queue succeed");
        }
    } else if (to == API_QUEUE_OPEN && from != API_QUEUE_NO_STATE) {
        action = "OpenQueue";
        if (e) {
            pass_event(p->t, p->root, true, action,
                       "Update queue status from %s to %s failed for %s",
                       api_queue_state_name(from), api_queue_state_name(to), e->text);
        }
    }
    if (e && p->t->failures >= pass_patience(p->t)) {
        pass_event(p->t, p->root, true, action, "%s queue failed for %s", action, e->text);
    }
}

/* An apply or merge patch of the queue; the uid protects a newer queue of the same name. */
static struct json patch_of(const struct queue_pass *p)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object(), meta = json_make_object();

    json_set_str(&meta, a, "name", p->t->name);
    json_set_str(&meta, a, "uid", p->uid);
    json_set_cstr(&body, a, "apiVersion", "scheduling.volcano.sh/v1beta1");
    json_set_cstr(&body, a, "kind", "Queue");
    json_set(&body, a, "metadata", meta);
    return body;
}

/* True when a write is needed. Forced: this controller owns the state, whoever set it last. */
static bool set_state(const struct queue_pass *p, enum api_queue_state to)
{
    struct hk_arena *a = p->t->mem;
    struct json body = patch_of(p), status = json_make_object();

    if (p->state == to) {
        return false;
    }
    json_set_cstr(&status, a, "state", api_queue_state_name(to));
    json_set(&body, a, "status", status);
    remember_write(p, to);
    pass_patch(p->t, &(struct pass_patch){.kind = api_kind(API_QUEUE),
                                          .name = p->t->name,
                                          .subresource = "status",
                                          .type = PORT_PATCH_APPLY,
                                          .body = &body,
                                          .field_manager = HK_STR("queue-controller"),
                                          .force = true});
    return true;
}

static bool set_closed(const struct queue_pass *p)
{
    if (p->state == API_QUEUE_CLOSED) {
        return false;
    }
    return set_state(p, p->has_groups ? API_QUEUE_CLOSING : API_QUEUE_CLOSED);
}

static void ctl_queue_patch_merge(const struct queue_pass *p, const struct json *body)
{
    pass_patch(p->t, &(struct pass_patch){.kind = api_kind(API_QUEUE),
                                          .name = p->t->name,
                                          .type = PORT_PATCH_MERGE,
                                          .body = body});
}

static void set_mark(const struct queue_pass *p, const char *value)
{
    struct hk_arena *a = p->t->mem;
    struct json body = patch_of(p), notes = json_make_object();

    json_set_cstr(&notes, a, API_ANN_CLOSED_BY_PARENT, value);
    json_set((struct json *)json_get(&body, "metadata"), a, "annotations", notes);
    ctl_queue_patch_merge(p, &body);
}

static void set_parent(const struct queue_pass *p)
{
    struct hk_arena *a = p->t->mem;
    struct json body = patch_of(p), spec = json_make_object();

    json_set_str(&spec, a, "parent", p->parent);
    json_set(&body, a, "spec", spec);
    ctl_queue_patch_merge(p, &body);
}

static bool is_marked(const struct queue_pass *p)
{
    return hk_str_is(p->mark, "true");
}

/* ---- commands ---- */

enum command_result { COMMAND_BUSY, COMMAND_DONE, COMMAND_REFUSED };

static enum command_result queue_command_close(const struct queue_pass *p)
{
    if (p->parent.n == 0) {
        hk_log(HK_LOG_WARN, "the root queue cannot be closed", "queue=%.*s", HK_FMT(p->t->name));
        return COMMAND_DONE;
    }
    if (is_marked(p)) {
        set_mark(p, "false"); /* from now on closed by a user */
        return COMMAND_BUSY;
    }
    return set_closed(p) ? COMMAND_BUSY : COMMAND_DONE;
}

static bool may_open(const struct queue_pass *p)
{
    return p->parent.n == 0 || hk_str_is(p->parent, API_QUEUE_NAME_ROOT) ||
           (p->parent_found && !is_closed(p->parent_state));
}

/* follow_parent removes the mark once the queue is open. */
static enum command_result queue_command_open(const struct queue_pass *p)
{
    if (p->state == API_QUEUE_OPEN) {
        return COMMAND_DONE;
    }
    if (p->state != API_QUEUE_NO_STATE && !may_open(p)) {
        return COMMAND_REFUSED;
    }
    if (p->state != API_QUEUE_NO_STATE && !is_marked(p) && !hk_str_is(p->mark, "false")) {
        set_mark(p, "false");
        return COMMAND_BUSY;
    }
    set_state(p, API_QUEUE_OPEN);
    return COMMAND_BUSY;
}

/* The oldest Command for the queue or HK_NONE, and their number. A Command being deleted was
 * executed. */
static uint32_t find_command(const struct pass *t, uint32_t *ret_n)
{
    struct mirror *commands = ctl_mirror(t->c, API_COMMAND);
    uint32_t oldest = HK_NONE;

    *ret_n = 0;
    if (ctl_conf(t->c)->no_queue_command_sync) {
        return HK_NONE;
    }
    for (uint32_t r = mirror_first(commands, COMMANDS_BY_TARGET, t->name); r != HK_NONE;
         r = mirror_next(commands, COMMANDS_BY_TARGET, r)) {
        const struct json command = mirror_read(commands, r, t->mem);

        if (!is_for_queue(&command) || json_at(&command, "metadata.deletionTimestamp")) {
            continue;
        }
        *ret_n += 1;
        if (oldest == HK_NONE || mirror_rv(commands, r) < mirror_rv(commands, oldest)) {
            oldest = r;
        }
    }
    return oldest;
}

static void delete_command(struct pass *t, uint32_t row)
{
    struct mirror *commands = ctl_mirror(t->c, API_COMMAND);

    pass_delete(t, api_kind(API_COMMAND), mirror_ns(commands, row), mirror_name(commands, row),
                mirror_uid(commands, row), PORT_PROPAGATE_DEFAULT);
}

/* The parent may open soon, so the Command waits for a while, unless other Commands wait. True when
 * it is given up. */
static bool give_up_open(const struct queue_pass *p, uint32_t row, uint32_t ncommand)
{
    char *why =
        hk_arena_printf(p->t->mem,
                        "queue %.*s cannot be opened while its parent %.*s is %s, open the "
                        "parent first",
                        HK_FMT(p->t->name), HK_FMT(p->parent),
                        p->parent_found ? api_queue_state_name(p->parent_state) : "missing");

    if (ncommand == 1 && p->t->failures < pass_patience(p->t)) {
        pass_fail(p->t, HK_ECONFLICT, "%s", why);
        return false;
    }
    pass_event(p->t, p->root, true, "OpenQueue", "OpenQueue queue failed for %s", why);
    delete_command(p->t, row);
    return true;
}

/* True when a Command takes up this pass. */
static bool ctl_queue_execute_command(const struct queue_pass *p)
{
    uint32_t n;
    const uint32_t row = find_command(p->t, &n);
    enum command_result done = COMMAND_DONE;
    struct json command;
    struct hk_str action;

    if (row == HK_NONE) {
        return false;
    }
    command = mirror_read(ctl_mirror(p->t->c, API_COMMAND), row, p->t->mem);
    action = json_str(json_get(&command, "action"), none);
    if (hk_str_is(action, "CloseQueue")) {
        done = queue_command_close(p);
    } else if (hk_str_is(action, "OpenQueue")) {
        done = queue_command_open(p);
    }
    if (done == COMMAND_REFUSED) {
        return give_up_open(p, row, n);
    }
    if (done == COMMAND_DONE) {
        delete_command(p->t, row);
    }
    return true;
}

/* The queue may not be in the mirror yet. */
static void queue_command_without_queue(struct pass *t)
{
    uint32_t n;
    const uint32_t row = find_command(t, &n);

    if (row == HK_NONE) {
        return;
    }
    if (t->failures >= pass_patience(t)) {
        delete_command(t, row);
    } else {
        pass_fail(t, HK_ENOTFOUND, "queue '%.*s' of a command not found", HK_FMT(t->name));
    }
}

/* ---- other state changes ---- */

/* Follows the state of the parent; true when that takes up this pass. */
static bool follow_parent(const struct queue_pass *p)
{
    if (is_closed(p->parent_state)) {
        if (is_closed(p->state)) {
            return false;
        }
        if (!is_marked(p)) {
            set_mark(p, "true");
            return true;
        }
        return set_closed(p);
    }
    if (p->parent_state != API_QUEUE_OPEN || !is_marked(p)) {
        return false;
    }
    if (is_closed(p->state)) {
        return set_state(p, API_QUEUE_OPEN);
    }
    if (p->state == API_QUEUE_OPEN) {
        set_mark(p, "false");
    }
    return false;
}

static void sync_state(const struct queue_pass *p)
{
    if (p->state == API_QUEUE_NO_STATE) {
        set_state(p, API_QUEUE_OPEN);
    } else if (p->state == API_QUEUE_CLOSING) {
        set_closed(p);
    }
}

static void find_parent(struct queue_pass *p)
{
    struct mirror *queues = ctl_mirror(p->t->c, API_QUEUE);
    uint32_t row;

    if (hk_str_is(p->t->name, API_QUEUE_NAME_ROOT)) {
        return;
    }
    p->parent = json_str(json_at(p->root, "spec.parent"), none);
    if (p->parent.n == 0) {
        p->parent = HK_STR(API_QUEUE_NAME_ROOT);
        set_parent(p);
    }
    row = mirror_find(queues, none, p->parent);
    if (row != HK_NONE && !hk_str_eq(p->parent, p->t->name)) {
        p->parent_found = true;
        p->parent_state = ((const struct queue_digest *)mirror_digest(queues, row))->state;
    }
}

static void queue_reconcile(struct ctl *c, struct pass *t)
{
    struct mirror *queues = ctl_mirror(c, API_QUEUE), *groups = ctl_mirror(c, API_PODGROUP);
    const uint32_t row = mirror_find(queues, none, t->name);
    struct queue_pass p = {.t = t, .mark = none, .parent = none};
    struct json root;

    if (row == HK_NONE) {
        (void)take_written(t);
        queue_command_without_queue(t);
        return;
    }
    root = mirror_read(queues, row, t->mem);
    p.root = &root;
    p.uid = mirror_uid(queues, row);
    p.state = ((const struct queue_digest *)mirror_digest(queues, row))->state;
    p.has_groups = mirror_first(groups, PODGROUPS_BY_QUEUE, t->name) != HK_NONE;
    p.mark = json_str(kinds_annotation(&root, API_ANN_CLOSED_BY_PARENT), none);
    report_outcome(&p);
    find_parent(&p);
    if (!ctl_queue_execute_command(&p) && !follow_parent(&p)) {
        sync_state(&p);
    }
}

static void queue_close(struct ctl *c)
{
    struct queue_state *s = c->state;

    hk_map_fini(&s->written);
}

static const struct ctl_watch watches[] = {
    {&mirror_queues, queue_changed},
    {&mirror_podgroups, ctl_queue_on_group_change},
    {&mirror_commands, command_changed},
    {0},
};

const struct ctl_type ctl_queue = {
    .name = "queue-controller",
    .about = "opens and closes Queues, with those below them",
    .watches = watches,
    .state_size = sizeof(struct queue_state),
    .reconcile = queue_reconcile,
    .close = queue_close,
};
