// SPDX-License-Identifier: Apache-2.0
// Words: interned messages of reasons, which nearly every session repeats. A word that no session
// has used for one whole session is released.
#include "scheduler/model/model.h"

uint32_t model_word(struct model *m, struct hk_str s)
{
    const uint32_t id = hk_intern_hold(&m->str, s);

    if (hk_map_get(&m->word_age, id) == HK_NONE) {
        hk_vec_push(&m->words, id);
    } else {
        hk_intern_drop(&m->str, id); /* held already */
    }
    hk_map_put(&m->word_age, id, 0);
    return id;
}

void model_words_age(struct model *m)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < m->words.len; k++) {
        const uint32_t id = m->words.at[k], age = hk_map_get(&m->word_age, id);
        if (age == 0) {
            hk_map_put(&m->word_age, id, 1);
            m->words.at[n++] = id;
        } else {
            hk_map_del(&m->word_age, id);
            hk_intern_drop(&m->str, id);
        }
    }
    m->words.len = n;
}
