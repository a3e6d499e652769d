// SPDX-License-Identifier: Apache-2.0
// Which words are close enough to suggest one for the other.
#include "cli/word.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *a, *b;
    size_t distance;
} distances[] = {
    {"", "", 0},
    {"train", "train", 0},
    {"train", "trains", 1}, /* added */
    {"train", "rain", 1},   /* removed */
    {"train", "brain", 1},  /* changed */
    {"train", "trian", 2},  /* two letters in the wrong order */
    {"kitten", "sitting", 3},
    {"", "abc", 3},
    {"0123456789012345678901234567890123", "0", 32}, /* too long to compare */
};

static void distance_counts_single_letters(void **state)
{
    for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
        const char *a = distances[i].a, *b = distances[i].b;
        if (word_distance(a, b) != distances[i].distance ||
            word_distance(b, a) != distances[i].distance) {
            fail_msg("'%s' and '%s': expected %zu, was %zu and %zu", a, b, distances[i].distance,
                     word_distance(a, b), word_distance(b, a));
        }
    }
}

static void short_words_allow_one_mistake_others_two(void **state)
{
    assert_true(word_is_near("up", "cp"));
    assert_false(word_is_near("abc", "xyc"));
    assert_true(word_is_near("trian", "train"));
    assert_false(word_is_near("trial", "brains"));
    assert_true(word_is_near("stat", "status"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_counts_single_letters),
        cmocka_unit_test(short_words_allow_one_mistake_others_two),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("cli/word", tests, NULL, NULL);
}
