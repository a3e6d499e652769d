// SPDX-License-Identifier: Apache-2.0
// The resolv.conf of pods with their own DNS settings: the machine's file plus the pod's dnsConfig;
// with dnsPolicy None, only the dnsConfig. Other pods see the machine's file; in an image, a copy.
#include "agent/pod/dns.h"

#include "base/file.h"

#include <errno.h>
#include <sys/stat.h>

#define MACHINES_OWN "/etc/resolv.conf"
#define FILE_MAX ((size_t)1 << 16)

struct resolver {
    struct hk_buf servers; /* lines */
    struct hk_buf search;  /* words, each after a space */
    struct hk_buf options;
};

static void resolver_fini(struct resolver *r)
{
    hk_buf_fini(&r->servers);
    hk_buf_fini(&r->search);
    hk_buf_fini(&r->options);
}

static void add_words(struct hk_buf *to, struct hk_str words)
{
    struct hk_str word;

    while (hk_str_cut(&words, ' ', &word)) {
        if (word.n > 0) {
            hk_buf_addf(to, " %.*s", HK_FMT(word));
        }
    }
}

static void read_machines(struct resolver *r)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_str rest, line, key;

    if (hk_read_file(MACHINES_OWN, FILE_MAX, &text, NULL) < 0) {
        return;
    }
    for (char *c = text.data; c && *c; c++) {
        *c = *c == '\t' ? ' ' : *c;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (!hk_str_cut(&line, ' ', &key)) {
            continue;
        }
        if (hk_str_is(key, "nameserver")) {
            hk_buf_addf(&r->servers, "nameserver %.*s\n", HK_FMT(hk_str_trim(line)));
        } else if (hk_str_is(key, "search")) {
            hk_buf_clear(&r->search); /* the last "search" line counts */
            add_words(&r->search, line);
        } else if (hk_str_is(key, "options")) {
            add_words(&r->options, line);
        }
    }
}

static void read_config(const struct json *config, struct resolver *r)
{
    const struct json *list = json_get(config, "nameservers");

    for (uint32_t i = 0; json_item(list, i); i++) {
        hk_buf_addf(&r->servers, "nameserver %.*s\n",
                    HK_FMT(json_str(json_item(list, i), HK_STR(""))));
    }
    list = json_get(config, "searches");
    for (uint32_t i = 0; json_item(list, i); i++) {
        add_words(&r->search, json_str(json_item(list, i), HK_STR("")));
    }
    list = json_get(config, "options");
    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct hk_str value = json_str(json_get(json_item(list, i), "value"), HK_STR(""));

        hk_buf_addf(&r->options, " %.*s",
                    HK_FMT(json_str(json_get(json_item(list, i), "name"), HK_STR(""))));
        hk_buf_addf(&r->options, value.n > 0 ? ":%.*s" : "%.*s", HK_FMT(value));
    }
}

int pod_dns_mount(const struct pod *p, struct runtime_container *rc, struct hk_err *err)
{
    HK_AUTO(resolver_fini) struct resolver r = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *config = pod_spec(p, "dnsConfig");
    const bool alone = hk_str_is(json_str(pod_spec(p, "dnsPolicy"), HK_STR("")), "None");
    const char *path = hk_arena_printf(&p->host->mem, "%s/.resolv.conf", p->dir);
    int ret;

    if (!config && !alone && !rc->root) {
        return 0;
    }
    if (!alone) {
        read_machines(&r);
    }
    read_config(config, &r);
    if (r.search.len > 0) {
        hk_buf_addf(&text, "search%s\n", r.search.data);
    }
    hk_buf_addstr(&text, hk_buf_str(&r.servers));
    if (r.options.len > 0) {
        hk_buf_addf(&text, "options%s\n", r.options.data);
    }
    ret = hk_write_file(path, hk_buf_str(&text), err);
    if (ret == 0 && chmod(path, 0644) < 0) {
        return hk_fail(err, HK_EIO, "cannot set the mode of '%s': %s", path, strerror(errno));
    }
    if (ret == 0) {
        runtime_add_mount(rc, (struct runtime_mount){.from = path, .at = MACHINES_OWN, .own = true},
                          &p->host->mem);
    }
    return ret;
}
