// SPDX-License-Identifier: Apache-2.0
// Reads what a container wrote: records of its log, the end of its log, and the end of any file.
#include "agent/pod/output.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define END_BYTES 2048 /* of the text */
#define END_LINES 80
#define END_READ (16 << 10) /* of the file */
#define CHUNK (32u << 10)

bool output_parse(struct hk_str line, struct output_record *ret)
{
    struct hk_str stream, tag;

    if (!hk_str_cut(&line, ' ', &ret->time) || !hk_str_cut(&line, ' ', &stream) ||
        !hk_str_cut(&line, ' ', &tag) || tag.n == 0) {
        return false;
    }
    ret->text = line.s ? line : HK_STR("");
    ret->partial = tag.s[0] == 'P';
    ret->is_err = hk_str_is(stream, "stderr");
    return true;
}

static void output_seek_end(int fd, size_t max)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && st.st_size > (off_t)max) {
        lseek(fd, st.st_size - (off_t)max, SEEK_SET);
    }
}

void output_last_bytes(const char *path, size_t max, struct hk_buf *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n;
    size_t from = 0;

    if (fd < 0) {
        return;
    }
    output_seek_end(fd, max);
    hk_buf_reserve(out, max + 1);
    n = read(fd, out->data, max);
    close(fd);
    while (n > 0 && from < (size_t)n && ((unsigned char)out->data[from] & 0xc0) == 0x80) {
        from++; /* rest of a UTF-8 sequence */
    }
    out->len = n > 0 ? (size_t)n - from : 0;
    memmove(out->data, out->data + from, out->len);
    out->data[out->len] = '\0';
}

/* Limits the text in bytes and lines; whole lines if possible. */
static struct hk_str last_lines(struct hk_str text)
{
    size_t from = text.n > END_BYTES ? text.n - END_BYTES : 0;
    int lines = 0;

    for (size_t i = text.n; i > from + 1; i--) {
        if (text.s[i - 2] == '\n' && ++lines == END_LINES) {
            from = i - 1;
        }
    }
    return (struct hk_str){text.s + from, text.n - from};
}

static void output_read_all(int fd, struct hk_buf *out)
{
    char chunk[CHUNK];

    for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;) {
        hk_buf_addstr(out, (struct hk_str){chunk, (size_t)n});
    }
}

void output_log_end(const char *path, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf raw = {0}, text = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct hk_str rest;
    const char *end;

    if (fd < 0) {
        return;
    }
    output_seek_end(fd, END_READ);
    output_read_all(fd, &raw);
    close(fd);
    rest = hk_buf_str(&raw);
    while (rest.n > 0 && (end = memchr(rest.s, '\n', rest.n))) {
        const struct hk_str line = {rest.s, (size_t)(end - rest.s)};
        struct output_record r;

        if (output_parse(line, &r)) {
            hk_buf_addstr(&text, r.text);
            hk_buf_adds(&text, r.partial ? "" : "\n");
        }
        rest.s += line.n + 1;
        rest.n -= line.n + 1;
    }
    hk_buf_addstr(out, last_lines(hk_buf_str(&text)));
}
