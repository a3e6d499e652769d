// SPDX-License-Identifier: Apache-2.0
// A command line in one string, for the tests of what is typed.
#pragma once

/* Cuts the text at blanks; argv points into it. Returns how many words there are. */
static inline int split_words(char *text, char **argv)
{
    int argc = 0;

    for (char *p = text; *p != '\0';) {
        argv[argc++] = p;
        p += strcspn(p, " ");
        if (*p == ' ') {
            *p++ = '\0';
        }
    }
    return argc;
}
