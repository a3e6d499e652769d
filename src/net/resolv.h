// SPDX-License-Identifier: Apache-2.0
// The file resolv.conf, read as the kubelet reads it: "nameserver" adds a server, the last "search"
// counts, "options" adds options. All other lines are skipped.
#pragma once

#include "base/str.h"
#include "base/vec.h"

#define RESOLV_FILE "/etc/resolv.conf"

typedef HK_VEC(char *) resolv_words;

struct resolv {
    resolv_words servers, search, options;
};

/* A missing or unreadable file is an empty one. */
void resolv_read(const char *path, struct resolv *ret);
void resolv_parse(struct hk_str text, struct resolv *ret);
void resolv_fini(struct resolv *r);
/* Appends a copy unless the list has the word. */
void resolv_add(resolv_words *list, struct hk_str word);
/* Writes the file. */
void resolv_write(const struct resolv *r, struct hk_buf *out);
