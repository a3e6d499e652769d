// SPDX-License-Identifier: Apache-2.0
// Parses models of container behavior and draws outcomes from them. Each draw has its own
// generator, seeded by the container's identity, so outcomes do not depend on the order of events.
#include "agent/simulate/model.h"

#include "api/names.h"
#include "codec/json.h"
#include "codec/timefmt.h"

#include <math.h>
#include <stdlib.h>

#define SECOND_NS 1e9
#define SPAN_MAX_NS ((int64_t)1 << 60) /* 36 years: long enough for any simulation */
#define CODE_OOM 137

/* ---- reading ---- */

static int simulate_model_parse_number(struct hk_str text, double min, double max, double *ret,
                                       struct hk_err *err)
{
    char copy[32], *end;
    double v;

    snprintf(copy, sizeof(copy), "%.*s", HK_FMT(text));
    v = strtod(copy, &end);
    if (end == copy || *end != '\0' || text.n >= sizeof(copy) || !(v >= min && v <= max)) {
        return hk_fail(err, HK_EINVAL, "'%.*s' is no number from %g to %g", HK_FMT(text), min, max);
    }
    *ret = v;
    return 0;
}

static int simulate_model_parse_time(struct hk_str text, double *ret, struct hk_err *err)
{
    int64_t ns;
    const int rc = duration_parse(text, &ns, err);

    if (rc < 0) {
        return rc;
    }
    if (ns < 0 || ns > SPAN_MAX_NS) {
        return hk_fail(err, HK_EINVAL, "'%.*s' is no time from 0s on", HK_FMT(text));
    }
    *ret = (double)ns;
    return 0;
}

static int read_uniform(struct hk_str text, struct simulate_span *ret, struct hk_err *err)
{
    struct hk_str low;
    int rc;

    if (!hk_str_cut(&text, '-', &low) || !text.s) {
        return hk_fail(err, HK_EINVAL, "want uniform:MIN-MAX");
    }
    rc = simulate_model_parse_time(low, &ret->a, err);
    if (rc < 0) {
        return rc;
    }
    rc = simulate_model_parse_time(text, &ret->b, err);
    if (rc < 0) {
        return rc;
    }
    if (ret->a > ret->b) {
        return hk_fail(err, HK_EINVAL, "want uniform:MIN-MAX, MIN not above MAX");
    }
    return 0;
}

static int read_lognormal(struct hk_str text, struct simulate_span *ret, struct hk_err *err)
{
    struct hk_str median;
    int rc;

    if (!hk_str_cut(&text, ':', &median) || !text.s) {
        return hk_fail(err, HK_EINVAL, "want lognormal:MEDIAN:SIGMA");
    }
    rc = simulate_model_parse_time(median, &ret->a, err);
    if (rc < 0) {
        return rc;
    }
    return simulate_model_parse_number(text, 0, 10, &ret->b, err);
}

static bool cut_word(struct hk_str *text, const char *word)
{
    const size_t n = strlen(word);

    if (!hk_str_starts(*text, word)) {
        return false;
    }
    *text = (struct hk_str){text->s + n, text->n - n};
    return true;
}

int simulate_span_read(struct hk_str text, struct simulate_span *ret, struct hk_err *err)
{
    struct simulate_span s = {0};
    int rc = 0;

    if (hk_str_is(text, "forever")) {
        s.shape = SIMULATE_FOREVER;
    } else if (cut_word(&text, "uniform:")) {
        s.shape = SIMULATE_UNIFORM;
        rc = read_uniform(text, &s, err);
    } else if (cut_word(&text, "exp:")) {
        s.shape = SIMULATE_EXP;
        rc = simulate_model_parse_time(text, &s.a, err);
    } else if (cut_word(&text, "lognormal:")) {
        s.shape = SIMULATE_LOGNORMAL;
        rc = read_lognormal(text, &s, err);
    } else {
        s.shape = SIMULATE_CONSTANT;
        rc = simulate_model_parse_time(text, &s.a, err);
    }
    if (rc == 0) {
        *ret = s;
    }
    return rc;
}

struct simulate_model simulate_model_default(void)
{
    return (struct simulate_model){.duration = {.shape = SIMULATE_CONSTANT, .a = 10 * SECOND_NS},
                                   .delay = {.shape = SIMULATE_CONSTANT},
                                   .exit_code = 1};
}

static int simulate_model_parse_pair(struct hk_str key, struct hk_str value,
                                     struct simulate_model *m, struct hk_err *err)
{
    double code = 0;
    int rc;

    if (hk_str_is(key, "duration")) {
        return simulate_span_read(value, &m->duration, err);
    }
    if (hk_str_is(key, "delay")) {
        rc = simulate_span_read(value, &m->delay, err);
        if (rc < 0) {
            return rc;
        }
        if (m->delay.shape == SIMULATE_FOREVER) {
            return hk_fail(err, HK_EINVAL, "nothing would ever start");
        }
        return 0;
    }
    if (hk_str_is(key, "fail")) {
        return simulate_model_parse_number(value, 0, 1, &m->fail, err);
    }
    if (hk_str_is(key, "oom")) {
        return simulate_model_parse_number(value, 0, 1, &m->oom, err);
    }
    if (hk_str_is(key, "exit-code")) {
        rc = simulate_model_parse_number(value, 1, 255, &code, err);
        m->exit_code = rc < 0 ? m->exit_code : (int)code;
        return rc;
    }
    return hk_fail(err, HK_EINVAL, "not known; want duration, delay, fail, oom or exit-code");
}

static int read_line(struct hk_str line, struct simulate_model *m, struct hk_err *err)
{
    struct hk_str part, key;

    while (hk_str_cut(&line, ',', &part)) {
        int rc;

        part = hk_str_trim(part);
        if (part.n == 0) {
            continue;
        }
        if (!hk_str_cut(&part, '=', &key) || !part.s) {
            return hk_fail(err, HK_EINVAL, "'%.*s' is not KEY=VALUE", HK_FMT(key));
        }
        rc = simulate_model_parse_pair(hk_str_trim(key), hk_str_trim(part), m, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "%.*s", HK_FMT(hk_str_trim(key)));
        }
    }
    return 0;
}

int simulate_model_read(struct hk_str text, struct simulate_model *m, struct hk_err *err)
{
    struct simulate_model with = *m;
    struct hk_str line, said;

    while (hk_str_cut(&text, '\n', &line)) {
        int rc = 0;

        if (hk_str_cut(&line, '#', &said)) {
            rc = read_line(said, &with, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    *m = with;
    return 0;
}

/* ---- drawing ---- */

/* A draw from the standard normal distribution (Box and Muller). */
static double draw_normal(struct hk_rand *r)
{
    const double u = 1 - hk_rand_unit(r), v = hk_rand_unit(r);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Nanoseconds; -1: forever. */
static int64_t simulate_model_sample_span(const struct simulate_span *s, struct hk_rand *r)
{
    double ns = s->a;

    switch (s->shape) {
    case SIMULATE_FOREVER:
        return -1;
    case SIMULATE_CONSTANT:
        break;
    case SIMULATE_UNIFORM:
        ns = s->a + (s->b - s->a) * hk_rand_unit(r);
        break;
    case SIMULATE_EXP:
        ns = -s->a * log(1 - hk_rand_unit(r));
        break;
    case SIMULATE_LOGNORMAL:
        ns = s->a * exp(s->b * draw_normal(r));
        break;
    }
    return (int64_t)HK_MIN(ns, (double)SPAN_MAX_NS);
}

static struct hk_str simulate_model_annotation(const struct runtime_container *c, const char *key)
{
    return json_str(json_get(c->annotations, key), HK_STR(""));
}

static bool note_true(const struct runtime_container *c, const char *key)
{
    return hk_str_is(simulate_model_annotation(c, key), "true");
}

static int64_t note_int(const struct runtime_container *c, const char *key, int64_t otherwise)
{
    int64_t n;

    return hk_str_int(simulate_model_annotation(c, key), &n) ? n : otherwise;
}

/* Restarts of the container plus retries of the job that created the pod. */
static int64_t tries_before(const struct runtime_container *c)
{
    return (int64_t)c->attempt + note_int(c, API_ANN_JOB_RETRY_COUNT, 0);
}

static void simulate_model_seed_rand(struct hk_rand *r, const struct simulate_model *m,
                                     const struct runtime_pod *pod,
                                     const struct runtime_container *c)
{
    uint64_t h = m->seed;

    h = hk_hash(pod->ns, strlen(pod->ns), h);
    h = hk_hash(pod->name, strlen(pod->name), h);
    h = hk_hash(c->name, strlen(c->name), h);
    hk_rand_seed(r, h + (uint64_t)tries_before(c));
}

static void fail_by_chance(const struct simulate_model *m, struct hk_rand *r,
                           struct simulate_fate *ret)
{
    const bool fails = hk_rand_unit(r) < m->fail, oom = hk_rand_unit(r) < m->oom;
    const double part = hk_rand_unit(r);

    if (!fails) {
        return;
    }
    ret->oom = oom;
    ret->code = oom ? CODE_OOM : m->exit_code;
    ret->duration_ns = ret->duration_ns < 0 ? 0 : (int64_t)((double)ret->duration_ns * part);
}

static void fail_as_told(const struct runtime_container *c, struct simulate_fate *ret)
{
    const int64_t code = note_int(c, SIMULATE_ANN_EXIT_CODE, -1);
    const bool over = tries_before(c) >= note_int(c, SIMULATE_ANN_FAILURES, INT64_MAX);
    const struct hk_str why = simulate_model_annotation(c, SIMULATE_ANN_ERROR);

    if (code >= 0 && code <= 255) {
        ret->code = over ? 0 : (int)code;
        ret->oom = false;
    }
    if (note_true(c, SIMULATE_ANN_OOM)) {
        ret->code = over ? 0 : CODE_OOM;
        ret->oom = !over;
    }
    if (why.n > 0 && !over) {
        ret->never_ran = why.s;
    }
    ret->ignores_term = note_true(c, SIMULATE_ANN_IGNORE_TERM);
}

void simulate_model_fate(void *model, struct hk_rand *rand, const struct runtime_pod *pod,
                         const struct runtime_container *c, struct simulate_fate *ret)
{
    const struct simulate_model *m = model;
    struct simulate_span duration = m->duration, delay = m->delay;
    struct hk_rand own;

    simulate_model_seed_rand(&own, m, pod, c);
    if (simulate_span_read(simulate_model_annotation(c, SIMULATE_ANN_DELAY), &delay, NULL) < 0 ||
        delay.shape == SIMULATE_FOREVER) {
        delay = m->delay;
    }
    ret->delay_ns = simulate_model_sample_span(&delay, &own);
    ret->duration_ns = simulate_model_sample_span(&duration, &own);
    fail_by_chance(m, &own, ret);
    if (simulate_span_read(simulate_model_annotation(c, SIMULATE_ANN_DURATION), &duration, NULL) ==
        0) {
        ret->duration_ns = simulate_model_sample_span(&duration, &own);
    }
    fail_as_told(c, ret);
}
