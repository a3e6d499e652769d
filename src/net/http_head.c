// SPDX-License-Identifier: Apache-2.0
// Parses the head of an HTTP/1 answer: its end, its status, one header.
#include "net/http_head.h"

size_t http_head_end(struct hk_str text)
{
    const char *end = text.n > 0 ? memmem(text.s, text.n, "\r\n\r\n", 4) : NULL;

    return end ? (size_t)(end - text.s) + 4 : 0;
}

int http_head_status(struct hk_str head)
{
    struct hk_str part;
    int64_t status;

    if (!hk_str_starts(head, "HTTP/1.") || !hk_str_cut(&head, ' ', &part) ||
        !hk_str_cut(&head, ' ', &part) || !hk_str_int(part, &status) || status < 100 ||
        status > 999) {
        return 0;
    }
    return (int)status;
}

struct hk_str http_head_get(struct hk_str head, const char *name)
{
    struct hk_str line, key;

    while (hk_str_cut(&head, '\n', &line)) {
        if (hk_str_cut(&line, ':', &key) && key.n == strlen(name) &&
            strncasecmp(key.s, name, key.n) == 0 && line.s) {
            return hk_str_trim(line);
        }
    }
    return HK_STR("");
}
