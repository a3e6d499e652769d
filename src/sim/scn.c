// SPDX-License-Identifier: Apache-2.0
// Runs scenarios line by line, each scenario twice, and writes the results as TAP.
#include "sim/scn_priv.h"

#include "sim/report.h"

#include "codec/timefmt.h"

/* Start time of every scenario: 2026-01-01T00:00:00Z. */
#define SCN_START_NS (1767225600LL * 1000000000LL)

enum { SCN_MAX_RANGE = 100000 };

int scn_fail(const struct scn_run *r, struct hk_err *err, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    return hk_fail(err, HK_EINVAL, "%s:%u: %s", r->file->path, r->line->line, b.data);
}

struct hk_str scn_body(const struct scn_run *r, struct hk_buf *scratch)
{
    for (uint32_t k = 0; k < r->line->line; k++) {
        hk_buf_addc(scratch, '\n');
    }
    hk_buf_addstr(scratch, r->line->body);
    return hk_buf_str(scratch);
}

/* ---- ranges ---- */

/* Expands "[a-b]", which may occur once, anywhere in the word. */
int scn_expand(struct scn_run *r, struct hk_str word, struct scn_names *ret, struct hk_err *err)
{
    const char *open = word.n > 0 ? memchr(word.s, '[', word.n) : NULL;
    const char *close = open ? memchr(open, ']', word.n - (size_t)(open - word.s)) : NULL;
    struct hk_str to, from;
    int64_t a, b;

    if (word.n == 0 || word.n > 200) {
        return scn_fail(r, err, "want a name of 1 to 200 letters");
    }
    if (!open) {
        ret->at = hk_arena_array(&r->mem, 1, sizeof(*ret->at));
        ret->at[0] = word;
        ret->n = 1;
        return 0;
    }
    if (!close) {
        return scn_fail(r, err, "'%.*s' has no ]", HK_FMT(word));
    }
    to = (struct hk_str){open + 1, (size_t)(close - open) - 1};
    hk_str_cut(&to, '-', &from);
    if (!to.s || !hk_str_int(from, &a) || !hk_str_int(to, &b) || a < 0 || b < a ||
        b - a >= SCN_MAX_RANGE) {
        return scn_fail(r, err, "'%.*s' is no range such as [0-2]", HK_FMT(word));
    }
    ret->n = (uint32_t)(b - a + 1);
    ret->at = hk_arena_array(&r->mem, ret->n, sizeof(*ret->at));
    for (int64_t k = a; k <= b; k++) {
        ret->at[k - a] =
            hk_str(hk_arena_printf(&r->mem, "%.*s%lld%.*s", (int)(open - word.s), word.s,
                                   (long long)k, (int)(word.s + word.n - close) - 1, close + 1));
    }
    return 0;
}

/* ---- configuration ---- */

/* One plugin of the short form: name, or name(enableX=false,argument=value). */
static int conf_plugin_yaml(struct scn_run *r, struct hk_str text, struct hk_buf *out,
                            struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf arguments = {0};
    struct hk_str rest = text, name, part, key;

    hk_str_cut(&rest, '(', &name);
    if (rest.s && (rest.n == 0 || rest.s[rest.n - 1] != ')')) {
        return scn_fail(r, err, "'%.*s' has no )", HK_FMT(text));
    }
    rest.n -= rest.s != NULL;
    hk_buf_addf(out, "  - name: %.*s\n", HK_FMT(name));
    while (hk_str_cut(&rest, ',', &part)) {
        hk_str_cut(&part, '=', &key);
        if (!part.s) {
            return scn_fail(r, err, "'%.*s' of plugin '%.*s', want key=value", HK_FMT(key),
                            HK_FMT(name));
        }
        if (hk_str_starts(key, "enable")) {
            hk_buf_addf(out, "    %.*s: %.*s\n", HK_FMT(key), HK_FMT(part));
        } else {
            hk_buf_addf(&arguments, "      %.*s: %.*s\n", HK_FMT(key), HK_FMT(part));
        }
    }
    if (arguments.len > 0) {
        hk_buf_addf(out, "    arguments:\n%s", arguments.data);
    }
    return 0;
}

/* Splits at commas outside of parentheses. */
static bool cut_plugin(struct hk_str *rest, struct hk_str *part)
{
    uint32_t depth = 0;

    if (!rest->s) {
        return false;
    }
    for (size_t k = 0; k < rest->n; k++) {
        depth += rest->s[k] == '(';
        depth -= rest->s[k] == ')' && depth > 0;
        if (rest->s[k] == ',' && depth == 0) {
            *part = (struct hk_str){rest->s, k};
            *rest = (struct hk_str){rest->s + k + 1, rest->n - k - 1};
            return true;
        }
    }
    *part = *rest;
    *rest = (struct hk_str){0};
    return true;
}

/* conf actions=allocate,backfill plugins=gang,priority;drf,proportion(enableOverused=false) */
static int conf_short(struct scn_run *r, struct hk_buf *out, struct hk_err *err)
{
    struct hk_str actions = {0}, plugins = {0}, tier, part;
    int rc = 0;

    for (uint32_t k = 1; k < r->line->n; k++) {
        const struct scn_word *w = &r->line->words[k];
        if (w->value.s && hk_str_is(w->key, "actions")) {
            actions = w->value;
        } else if (w->value.s && hk_str_is(w->key, "plugins")) {
            plugins = w->value;
        } else {
            return scn_fail(r, err, "conf has no '%.*s'", HK_FMT(w->key));
        }
    }
    if (!actions.s) {
        return scn_fail(r, err, "want conf actions=... plugins=..., or conf <<EOF");
    }
    hk_buf_addf(out, "actions: \"%.*s\"\ntiers:\n", HK_FMT(actions));
    while (rc == 0 && hk_str_cut(&plugins, ';', &tier)) {
        hk_buf_adds(out, "- plugins:\n");
        while (rc == 0 && tier.n > 0 && cut_plugin(&tier, &part)) {
            rc = conf_plugin_yaml(r, hk_str_trim(part), out, err);
        }
    }
    return rc;
}

static int set_conf(struct scn_run *r, struct hk_str text, struct hk_err *err)
{
    struct hk_err why = {0};
    struct conf *conf = NULL;

    if (conf_parse(text, &conf, &why) < 0) {
        return scn_fail(r, err, "%s", why.text);
    }
    for (uint32_t k = 0; k < conf->warnings.len; k++) {
        const struct cluster_problem p = {
            .object = hk_str("configuration"),
            .file = hk_str(r->file->path),
            .text = hk_arena_str(&r->c.kept, hk_str(conf->warnings.at[k].text)),
            .line = r->line->line,
        };
        hk_vec_push(&r->c.problems, p);
    }
    conf_free(r->conf);
    r->conf = conf;
    r->c.conf = conf;
    return 0;
}

static int conf_line(struct scn_run *r, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int rc;

    if (r->line->body.s && r->line->n == 1) {
        return set_conf(r, scn_body(r, &text), err);
    }
    rc = conf_short(r, &text, err);
    if (rc < 0) {
        return rc;
    }
    return set_conf(r, hk_buf_str(&text), err);
}

/* ---- time and external changes ---- */

static int cycle_line(struct scn_run *r, struct hk_err *err)
{
    int64_t n = 1;

    if (r->line->n > 2 || (r->line->n == 2 && !hk_str_int(r->line->words[1].key, &n)) || n < 1) {
        return scn_fail(r, err, "want cycle, or cycle N");
    }
    for (int64_t k = 0; k < n; k++) {
        struct hk_err why = {0};
        if (r->c.cycles >= r->opts->max_cycles) {
            return scn_fail(r, err, "more than %u cycles", r->opts->max_cycles);
        }
        if (cluster_cycle(&r->c, &why) < 0) {
            return scn_fail(r, err, "%s", why.text);
        }
    }
    return 0;
}

static int advance_line(struct scn_run *r, struct hk_err *err)
{
    int64_t ns;

    if (r->line->n != 2 || duration_parse(r->line->words[1].key, &ns, NULL) < 0 || ns < 0 ||
        ns > INT64_MAX - r->c.now_ns) {
        return scn_fail(r, err, "want advance and a duration such as 5m");
    }
    r->c.now_ns += ns;
    return 0;
}

static int world_line(struct scn_run *r, struct hk_err *err)
{
    const struct hk_str word = r->line->n == 2 ? r->line->words[1].key : HK_STR("");

    if (!hk_str_is(word, "on") && !hk_str_is(word, "off")) {
        return scn_fail(r, err, "want world on, or world off");
    }
    r->c.opts.hold = hk_str_is(word, "off");
    return 0;
}

static int sharding_line(struct scn_run *r, struct hk_err *err)
{
    static const char *const modes[] = {
        [SHARD_NONE] = "none", [SHARD_HARD] = "hard", [SHARD_SOFT] = "soft"};
    const struct hk_str mode = r->line->n == 3 ? r->line->words[1].key : HK_STR("");

    for (size_t k = 0; k < HK_LEN(modes); k++) {
        if (hk_str_is(mode, modes[k])) {
            r->c.opts.shard_mode = (enum shard_mode)k;
            ingest_own_shard(r->c.in, r->line->words[2].key);
            return 0;
        }
    }
    return scn_fail(r, err, "want sharding, then none, hard or soft, and the name of a shard");
}

static int settle_line(struct scn_run *r, struct hk_err *err)
{
    cluster_settle(&r->c);
    return 0;
}

static int done_line(struct scn_run *r, struct hk_err *err)
{
    return scn_finish_line(r, "Succeeded", err);
}

static int fail_line(struct scn_run *r, struct hk_err *err)
{
    return scn_finish_line(r, "Failed", err);
}

static const struct {
    const char *word;
    int (*run)(struct scn_run *r, struct hk_err *err);
} statements[] = {
    {"conf", conf_line},         {"cycle", cycle_line},       {"advance", advance_line},
    {"world", world_line},       {"settle", settle_line},     {"done", done_line},
    {"fail", fail_line},         {"delete", scn_delete_line}, {"object", scn_raw_line},
    {"expect", scn_expect_line}, {"sharding", sharding_line},
};

static int run_line(struct scn_run *r, const struct scn_line *line, struct hk_err *err)
{
    const struct hk_str word = line->words[0].key;

    r->line = line;
    if (line->words[0].value.s) {
        return scn_fail(r, err, "a line cannot begin with '%.*s='", HK_FMT(word));
    }
    for (size_t k = 0; k < HK_LEN(statements); k++) {
        if (hk_str_is(word, statements[k].word)) {
            return statements[k].run(r, err);
        }
    }
    const struct scn_kind *kind = scn_kind_find(word);
    return kind ? scn_object_line(r, kind, err)
                : scn_fail(r, err, "unknown statement '%.*s'", HK_FMT(word));
}

/* ---- a scenario ---- */

static void run_init(struct scn_run *r, const struct scn_file *f, const struct scn_opts *o,
                     bool plain)
{
    const struct cluster_opts c = {
        .now_ns = SCN_START_NS, .step_ns = 1000000000, .seed = 1, .plain = plain};

    *r = (struct scn_run){.file = f, .opts = o};
    hk_assert(conf_parse(hk_str(conf_default_text), &r->conf, NULL) == 0);
    cluster_init(&r->c, r->conf, &c);
}

static void run_fini(struct scn_run *r)
{
    cluster_fini(&r->c);
    conf_free(r->conf);
    hk_vec_fini(&r->objects);
    hk_vec_fini(&r->known_problems);
    hk_intern_fini(&r->refs);
    hk_arena_fini(&r->mem);
}

static bool is_known(const struct scn_run *r, struct hk_str text)
{
    for (uint32_t k = 0; k < r->known_problems.len; k++) {
        if (hk_str_contains(text, r->known_problems.at[k].s)) {
            return true;
        }
    }
    return false;
}

/* Fails on refused objects that the scenario does not expect. */
static int check_problems(const struct scn_run *r, struct hk_err *err)
{
    uint32_t n;
    const struct ingest_problem *p = ingest_problems(r->c.in, &n);

    for (uint32_t k = 0; k < n; k++) {
        if (!is_known(r, hk_str(p[k].text))) {
            return hk_fail(err, HK_EINVAL, "%s: %s %s was refused: %s", r->file->path,
                           api_kind(p[k].kind)->kind, p[k].object, p[k].text);
        }
    }
    for (uint32_t k = 0; k < r->c.problems.len; k++) {
        if (!is_known(r, r->c.problems.at[k].text)) {
            return hk_fail(err, HK_EINVAL, "%s:%u: %.*s", r->file->path, r->c.problems.at[k].line,
                           HK_FMT(r->c.problems.at[k].text));
        }
    }
    return 0;
}

static int run_lines(struct scn_run *r, uint32_t first, uint32_t n, struct hk_err *err)
{
    int rc = 0;

    for (uint32_t k = 0; k < n && rc == 0; k++) {
        rc = run_line(r, &r->file->lines.at[first + k], err);
    }
    return rc;
}

static int run_case(struct scn_run *r, const struct scn_case *c, struct hk_err *err)
{
    int rc = 0;

    if (c->first > 0) {
        rc = run_lines(r, 0, r->file->preamble, err);
        if (rc < 0) {
            return rc;
        }
    }
    rc = run_lines(r, c->first, c->n, err);
    if (rc < 0) {
        return rc;
    }
    return check_problems(r, err);
}

/* ---- reports ---- */

/* Writes every line after "# ". */
static void diagnose(struct hk_str text, struct hk_buf *out)
{
    struct hk_str rest = hk_str_trim(text), part;

    while (hk_str_cut(&rest, '\n', &part)) {
        hk_buf_addf(out, "# %.*s\n", HK_FMT(part));
    }
}

static void tell_state(const struct scn_run *r, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    report_queues(&r->c, false, &b);
    report_nodes(&r->c, NULL, false, &b);
    report_jobs(&r->c, false, &b);
    report_tasks(&r->c, false, &b);
    report_problems(&r->c, false, &b);
    if (r->c.cycles > 0) {
        hk_buf_adds(&b, "\nJournal of the last cycle\n");
        hk_buf_addstr(&b, (struct hk_str){r->c.trace.data + r->c.last_trace,
                                          r->c.trace.len - r->c.last_trace});
    }
    diagnose(hk_buf_str(&b), out);
}

/* Writes the first lines that differ, and their cycle. */
static void tell_difference(struct hk_str fast, struct hk_str plain, struct hk_buf *out)
{
    struct hk_str a, b, cycle = HK_STR("cycle 0");
    bool more_a, more_b;

    do {
        a = b = HK_STR("(nothing)");
        more_a = hk_str_cut(&fast, '\n', &a);
        more_b = hk_str_cut(&plain, '\n', &b);
        cycle = hk_str_starts(a, "cycle ") ? a : cycle;
    } while (more_a && more_b && hk_str_eq(a, b));
    hk_buf_addf(out,
                "# a plain search decides otherwise in %.*s\n#   fast:  %.*s\n#   plain: %.*s\n",
                HK_FMT(cycle), HK_FMT(a), HK_FMT(b));
}

/* True when the scenario passes; otherwise out explains why not. */
static bool scn_check_case(const struct scn_file *f, const struct scn_case *c,
                           const struct scn_opts *o, struct hk_buf *out)
{
    HK_AUTO(run_fini) struct scn_run fast, plain;
    struct hk_err err = {0}, unheard = {0};

    run_init(&fast, f, o, false);
    run_init(&plain, f, o, true);
    const int rc = run_case(&fast, c, &err);
    if (rc < 0) {
        diagnose(hk_str(err.text), out);
        tell_state(&fast, out);
    }
    const int plain_rc = run_case(&plain, c, &unheard);
    const struct hk_str a = hk_buf_str(&fast.c.trace), b = hk_buf_str(&plain.c.trace);
    if (!hk_str_eq(a, b)) {
        tell_difference(a, b, out);
        return false;
    }
    if (rc == 0 && plain_rc < 0) {
        hk_buf_adds(out, "# only without shortcuts:\n");
        diagnose(hk_str(unheard.text), out);
    }
    return rc == 0 && plain_rc == 0;
}

static void scn_write_tap_point(struct scn_tally *tally, bool ok, const char *path,
                                struct hk_str name, struct hk_buf *out)
{
    tally->run++;
    tally->failed += !ok;
    hk_buf_addf(out, "%sok %u - %s: ", ok ? "" : "not ", tally->run, path);
    /* TAP takes a '#' as the start of a directive. */
    for (size_t k = 0; k < name.n; k++) {
        hk_buf_addc(out, name.s[k] == '#' ? ' ' : name.s[k]);
    }
    hk_buf_addc(out, '\n');
}

void scn_run(const char *path, struct hk_str text, const struct scn_opts *o,
             struct scn_tally *tally, struct hk_buf *out)
{
    HK_AUTO(scn_file_fini) struct scn_file f = {0};
    struct hk_err err = {0};

    if (scn_parse(&f, path, text, &err) < 0) {
        scn_write_tap_point(tally, false, path, HK_STR("can be read"), out);
        diagnose(hk_str(err.text), out);
        return;
    }
    for (uint32_t k = 0; k < f.cases.len; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
        const bool ok = scn_check_case(&f, &f.cases.at[k], o, &why);
        scn_write_tap_point(tally, ok, path, f.cases.at[k].name, out);
        hk_buf_addstr(out, hk_buf_str(&why));
    }
}
