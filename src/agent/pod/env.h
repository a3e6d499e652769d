// SPDX-License-Identifier: Apache-2.0
// The environment and the command of a container.
#pragma once

#include "agent/pod/pod.h"

struct env_var {
    struct hk_str name, value;
};

struct env {
    HK_VEC(struct env_var) vars;
};

void env_fini(struct env *e);
/* Adds or replaces the variable; name and value are borrowed. */
void env_set(struct env *e, struct hk_str name, struct hk_str value);
bool env_has(const struct env *e, struct hk_str name);
/* Replaces $(NAME) by the value of the variable; $$(NAME) and unknown names stay. */
struct hk_str env_expand(const struct env *e, struct hk_str text, struct hk_arena *a);
/* The complete environment of a container; ret may have that of its image. -HK_ENOTFOUND: a ConfigMap, Secret or key does not
 * exist. */
int env_make(const struct pod *p, const struct json *container, struct hk_arena *a, struct env *ret,
             struct hk_err *err) HK_CHECKED;
/* In the form that execve needs. */
const char *const *env_block(const struct env *e, struct hk_arena *a);
/* command and args, expanded; NULL when there is no command. */
const char *const *env_argv(const struct env *e, const struct json *container, struct hk_arena *a);
/* The value of a fieldRef; false when the pod has no such field. */
bool env_field(const struct pod *p, struct hk_str path, struct hk_arena *a, struct hk_str *ret);
/* The value of a resourceFieldRef of this container; ref may name another one. */
int env_resource(const struct pod *p, const struct json *container, const struct json *ref,
                 struct hk_arena *a, struct hk_str *ret, struct hk_err *err) HK_CHECKED;
