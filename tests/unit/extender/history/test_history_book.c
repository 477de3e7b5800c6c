/* What the history answers is what a plain list of all that was told says. */
#include "extender/history/history_book.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history_db.h"
#include "extender/history/history_read.h"
#include "lib/base/mem.h"
#include "tests/lib/randnode.h"
#include "tests/lib/tmpdir.h"

enum {
    PODS = 60,
    NODES = 9,
    JOBS = 7,
    STEPS = 3000,
    QUESTIONS = 400,
    BEGIN_MS = 1000000,
};

/* What was told, as it was told. */
struct told_place {
    char pod[16], node[16], job[16], devices[32];
    int32_t pair;
    int64_t since, until; /* 0: open */
};
struct told_node {
    char node[16], cards[32];
    int status;
    int64_t since;
};
struct told_event {
    enum history_kind kind;
    enum history_reason reason;
    char object[32], node[16], job[16], message[32];
    int64_t at;
};
struct model {
    struct told_place places[STEPS];
    struct told_node nodes[STEPS];
    struct told_event events[STEPS];
    size_t n_places, n_nodes, n_events;
};

/* Names of no meaning, but of their kind's form. */
#define NAME(buffer, ...) (void)snprintf(buffer, sizeof(buffer), __VA_ARGS__)

static void must(int r, const struct error *err)
{
    cr_assert_eq(r, 0, "%s", err->text);
}

static void end_place(struct model *m, const char *pod, int64_t ms)
{
    for (size_t i = 0; i < m->n_places; i++)
        if (!m->places[i].until && strcmp(m->places[i].pod, pod) == 0)
            m->places[i].until = ms;
}

static bool has_place(const struct model *m, const char *pod)
{
    for (size_t i = 0; i < m->n_places; i++)
        if (!m->places[i].until && strcmp(m->places[i].pod, pod) == 0)
            return true;
    return false;
}

static void tell_place(struct history_book *b, struct model *m, int64_t ms)
{
    struct error err = {0};
    struct told_place *p = &m->places[m->n_places];
    NAME(p->pod, "ns/p%u", roll(PODS));
    NAME(p->node, "n%u", roll(NODES));
    NAME(p->devices, "\"cards\":[\"%u\"]", roll(4));
    p->job[0] = '\0';
    if (odds(70))
        NAME(p->job, "ns/j%u", roll(JOBS));
    p->pair = (int32_t)roll(8);
    p->since = ms;
    p->until = 0;
    end_place(m, p->pod, ms);
    m->n_places++;
    const struct history_place told = {.pod = p->pod,
                                       .job = p->job,
                                       .node = p->node,
                                       .pair = p->pair,
                                       .role = ROLE_HOST,
                                       .devices = p->devices,
                                       .since_ms = ms};
    must(history_book_placed(b, &told, &err), &err);
    cr_assert(history_book_has(b, &told));
}

static void tell_freed(struct history_book *b, struct model *m, int64_t ms)
{
    struct error err = {0};
    char pod[16];
    bool had;
    NAME(pod, "ns/p%u", roll(PODS));
    must(history_book_freed(b, pod, ms, &had, &err), &err);
    cr_assert_eq(had, has_place(m, pod));
    end_place(m, pod, ms);
}

static void tell_node(struct history_book *b, struct model *m, int64_t ms)
{
    struct error err = {0};
    struct told_node *n = &m->nodes[m->n_nodes++];
    NAME(n->node, "n%u", roll(NODES));
    NAME(n->cards, "cards-%u", roll(5));
    n->status = (int)roll(3);
    n->since = ms;
    const struct history_node told = {n->node, n->status, n->cards, ms};
    must(history_book_node(b, &told, &err), &err);
}

static void tell_event(struct history_book *b, struct model *m, int64_t ms)
{
    struct error err = {0};
    struct told_event *e = &m->events[m->n_events++];
    e->kind = roll(2) ? HISTORY_POD : HISTORY_NODE;
    do
        e->reason = (enum history_reason)roll(HISTORY_REASONS);
    while (e->reason == HISTORY_REFUSED); /* these are counted */
    NAME(e->node, "n%u", roll(NODES));
    e->job[0] = '\0';
    if (e->kind == HISTORY_NODE)
        memcpy(e->object, e->node, sizeof e->node);
    else
        NAME(e->object, "ns%u/p%u", roll(2), roll(PODS));
    if (e->kind == HISTORY_POD && odds(50))
        NAME(e->job, "ns/j%u", roll(JOBS));
    NAME(e->message, "message %u", roll(20));
    e->at = ms;
    const struct history_event told = {.time_ms = ms,
                                       .kind = e->kind,
                                       .reason = e->reason,
                                       .object = e->object,
                                       .node = e->node,
                                       .job = e->job,
                                       .pair = -1,
                                       .message = e->message};
    must(history_book_event(b, &told, &err), &err);
}

/* Steps of very different lengths, so that intervals are of all levels. */
static int64_t later(int64_t ms)
{
    return ms + (int64_t)(1 + roll(1000)) * (odds(5)    ? 40000
                                             : odds(30) ? 900
                                                        : 1);
}

static int64_t tell_all(const char *dir, struct model *m)
{
    struct error err = {0};
    struct history_book *b = NULL;
    int64_t ms = BEGIN_MS;
    must(history_book_open(dir, &b, &err), &err);
    for (unsigned i = 0; i < STEPS; i++) {
        if (i % 16 == 0)
            must(history_book_begin(b, ms, &err), &err);
        ms = later(ms);
        uint32_t what = roll(10);
        if (what < 4)
            tell_place(b, m, ms);
        else if (what < 6)
            tell_freed(b, m, ms);
        else if (what < 7)
            tell_node(b, m, ms);
        else
            tell_event(b, m, ms);
        if (i % 16 != 15 && i != STEPS - 1)
            continue;
        must(history_book_commit(b, &err), &err);
        if (odds(10)) { /* what goes on is read again */
            history_book_close(b);
            must(history_book_open(dir, &b, &err), &err);
        }
    }
    must(history_book_check(b, &err), &err);
    history_book_close(b);
    return ms;
}

/* --- questions ------------------------------------------------------------ */

/* Places as lines, to be put in order. */
struct lines {
    char text[PODS * 8][96];
    size_t n;
};

static void add_line(struct lines *l, const char *pod, const char *node,
                     const char *devices, int64_t since)
{
    cr_assert_lt(l->n, ARRAY_LEN(l->text));
    (void)snprintf(l->text[l->n++], sizeof l->text[0], "%s %s %s %lld", pod,
                   node, devices, (long long)since);
}

static void on_place(void *ctx, const struct history_place *p)
{
    add_line(ctx, p->pod, p->node, p->devices, p->since_ms);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void expect_same(struct lines *got, struct lines *want, const char *what,
                        int64_t ms)
{
    qsort(got->text, got->n, sizeof got->text[0], compare_lines);
    qsort(want->text, want->n, sizeof want->text[0], compare_lines);
    cr_assert_eq(got->n, want->n, "%s at %lld: %zu places, not %zu", what,
                 (long long)ms, got->n, want->n);
    for (size_t i = 0; i < got->n; i++)
        cr_assert_str_eq(got->text[i], want->text[i]);
}

enum by { BY_NODE, BY_JOB, BY_POD };

static void ask_places(struct history_reader *r, const struct model *m,
                       enum by by, int64_t ms)
{
    static struct lines got, want;
    struct error err = {0};
    char key[16];
    got.n = want.n = 0;
    if (by == BY_NODE) {
        NAME(key, "n%u", roll(NODES));
        must(history_read_places_of_node(r, key, ms, on_place, &got, &err),
             &err);
    } else if (by == BY_JOB) {
        NAME(key, "ns/j%u", roll(JOBS));
        must(history_read_places_of_job(r, key, ms, on_place, &got, &err),
             &err);
    } else {
        NAME(key, "ns/p%u", roll(PODS));
        must(history_read_place_of_pod(r, key, ms, on_place, &got, &err), &err);
    }
    for (size_t i = 0; i < m->n_places; i++) {
        const struct told_place *p = &m->places[i];
        const char *own = by == BY_NODE  ? p->node
                          : by == BY_JOB ? p->job
                                         : p->pod;
        if (strcmp(own, key) == 0 && p->since <= ms &&
            (!p->until || p->until > ms))
            add_line(&want, p->pod, p->node, p->devices, p->since);
    }
    expect_same(&got, &want, key, ms);
}

static void ask_node(struct history_reader *r, const struct model *m,
                     int64_t ms)
{
    struct error err = {0};
    char name[16];
    const struct told_node *want = NULL;
    struct history_node got;
    bool found;
    NAME(name, "n%u", roll(NODES));
    must(history_read_node(r, name, ms, &got, &found, &err), &err);
    for (size_t i = 0; i < m->n_nodes; i++)
        if (strcmp(m->nodes[i].node, name) == 0 && m->nodes[i].since <= ms)
            want = &m->nodes[i];
    cr_assert_eq(found, want != NULL);
    if (!want)
        return;
    cr_assert_eq(got.status, want->status);
    cr_assert_str_eq(got.cards, want->cards);
}

/* --- events --------------------------------------------------------------- */

struct pages {
    const struct model *model;
    const struct history_filter *filter;
    size_t at; /* of the model's events, what comes next */
    size_t n;
};

static bool model_passes(const struct pages *p, size_t i)
{
    const struct told_event *t = &p->model->events[i];
    const struct history_event e = {.time_ms = t->at,
                                    .kind = t->kind,
                                    .reason = t->reason,
                                    .object = t->object,
                                    .node = t->node,
                                    .job = t->job};
    return history_filter_passes(p->filter, &e);
}

/* The model's next one; its end when there is none. */
static void skip(struct pages *p)
{
    while (p->at < p->model->n_events && !model_passes(p, p->at))
        p->at += p->filter->newest_first ? (size_t)-1 : 1;
}

static void on_event(void *ctx, const struct history_event *e)
{
    struct pages *p = ctx;
    skip(p);
    cr_assert_lt(p->at, p->model->n_events, "one event too many");
    const struct told_event *t = &p->model->events[p->at];
    cr_assert_str_eq(e->object, t->object);
    cr_assert_str_eq(e->message, t->message);
    cr_assert_str_eq(e->node, t->node);
    cr_assert_str_eq(e->job, t->job);
    cr_assert_eq(e->time_ms, t->at);
    cr_assert_eq(e->reason, t->reason);
    p->at += p->filter->newest_first ? (size_t)-1 : 1;
    p->n++;
}

static void ask_events(struct history_reader *r, const struct model *m,
                       int64_t end_ms)
{
    struct error err = {0};
    char object[16], node[16], job[16];
    struct history_filter f = {.kind = HISTORY_KINDS,
                               .reason = HISTORY_REASONS,
                               .newest_first = odds(50),
                               .limit = 1 + roll(50)};
    NAME(object, "ns1/p%u", roll(PODS));
    NAME(node, "n%u", roll(NODES));
    NAME(job, "ns/j%u", roll(JOBS));
    f.kind = odds(30) ? HISTORY_POD : HISTORY_KINDS;
    f.reason = odds(30) ? (enum history_reason)roll(HISTORY_REASONS)
                        : HISTORY_REASONS;
    f.object = odds(20) ? object : NULL;
    f.node = odds(30) ? node : NULL;
    f.job = odds(20) ? job : NULL;
    f.namespace = odds(20) ? "ns1" : NULL;
    f.since_ms = odds(30) ? roll((uint32_t)(end_ms / 1000)) * INT64_C(1000) : 0;
    f.until_ms = odds(30) ? roll((uint32_t)(end_ms / 1000)) * INT64_C(1000) : 0;
    struct pages p = {.model = m, .filter = &f};
    p.at = f.newest_first ? m->n_events - 1 : 0;
    do
        must(history_read_events(r, &f, on_event, &p, &f.after, &err), &err);
    while (f.after);
    skip(&p);
    cr_assert_geq(p.at, m->n_events, "events are missing");
}

Test(history_book, answers_as_a_list_of_all_that_was_told)
{
    static struct model m;
    uint64_t seed = chance_init();
    char *dir = tmpdir_create();
    struct history_reader *r = NULL;
    struct error err = {0};
    int64_t end_ms = tell_all(dir, &m);
    must(history_reader_open(dir, &r, &err), &err);
    must(history_read_begin(r, &err), &err);
    for (unsigned i = 0; i < QUESTIONS; i++) {
        int64_t ms = BEGIN_MS - 1000 +
                     (int64_t)roll((uint32_t)(end_ms - BEGIN_MS + 2000));
        if (odds(20)) /* just when something was told */
            ms = m.places[roll((uint32_t)m.n_places)].since;
        ask_places(r, &m, BY_NODE, ms);
        ask_places(r, &m, BY_JOB, ms);
        ask_places(r, &m, BY_POD, ms);
        ask_node(r, &m, ms);
        ask_events(r, &m, end_ms);
    }
    history_read_end(r);
    history_reader_close(r);
    tmpdir_remove(dir);
    cr_log_info("seed %llu", (unsigned long long)seed);
}
