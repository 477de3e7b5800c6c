#include "bench/replay/engine.h"

#include <string.h>

#include "bench/replay/measure.h"
#include "extender/judge/schedule.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum {
    PROGRESS_EVERY = 64, /* events */
    CARD = 1000,         /* of `used`: a whole card */
};

/* A job that runs. */
struct running {
    int64_t end_us;
    uint32_t job;
};

struct sim {
    const struct replay_config *config;
    struct replay_result *r;
    struct chooser chooser;
    struct given given;
    struct measure measure;
    struct snapshot *now;
    struct running *heap; /* the earliest end on top */
    size_t n_running;
    uint32_t *queue; /* jobs that wait, in the order of arrival */
    size_t n_waiting, queue_at;
    int64_t *waits;
    size_t n_waits;
    struct spot *spots;
    size_t next;             /* job that arrives next */
    uint64_t used, n_events; /* thousandths of cards */
    int64_t now_us;
    int64_t last_us; /* up to which `used` was added up */
    double used_us;
};

static const struct replay_job *job_at(const struct sim *s, size_t i)
{
    return &s->config->trace->jobs[i];
}

/* What a job has of cards; of shared ones the part of the cores of the
 * largest, or nothing when it only asks for memory. */
static uint64_t cards_of(const struct sim *s, const struct replay_job *job)
{
    uint64_t cards = (uint64_t)job->pairs * job->cards;
    uint64_t part = (uint64_t)job->card_cores * CARD /
                    s->config->fleet->card_cores;
    bool shared = job->card_cores || job->card_memory_mib;
    return cards * (!shared ? CARD : part < CARD ? part : CARD);
}

/* --- the heap of running jobs ------------------------------------------- */

static bool ends_before(const struct running *a, const struct running *b)
{
    return a->end_us != b->end_us ? a->end_us < b->end_us : a->job < b->job;
}

static void heap_push(struct sim *s, struct running x)
{
    size_t at = s->n_running++;
    for (; at > 0 && ends_before(&x, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = x;
}

static struct running heap_pop(struct sim *s)
{
    struct running top = s->heap[0], x = s->heap[--s->n_running];
    size_t at = 0;
    for (size_t c; (c = 2 * at + 1) < s->n_running; at = c) {
        if (c + 1 < s->n_running && ends_before(&s->heap[c + 1], &s->heap[c]))
            c++;
        if (!ends_before(&s->heap[c], &x))
            break;
        s->heap[at] = s->heap[c];
    }
    s->heap[at] = x;
    return top;
}

/* --- starting and ending ------------------------------------------------ */

/* What the extender would do with the choice: bind it. */
static void allocate(struct sim *s, size_t number, uint32_t rank,
                     struct draft *draft)
{
    struct demand pod;
    struct schedule schedule;
    struct choice choice;
    const struct spot *spot = &s->spots[rank];
    replay_demand(&s->chooser, job_at(s, number), number, rank, &pod);
    schedule_init(&schedule, s->now, &pod);
    kind_rate(fleet_kind(s->config->fleet, (size_t)spot->node), spot->cards,
              spot->gpus, &choice);
    draft_allocate(draft, schedule_allocation(&schedule, spot->node, &choice));
}

static void commit(struct sim *s, struct draft *draft)
{
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(s->now);
    s->now = next;
}

static void add_used(struct sim *s, int64_t now_us)
{
    const struct trace *t = s->config->trace;
    int64_t end = t->jobs[t->n - 1].arrival_us;
    int64_t to = now_us < end ? now_us : end;
    if (to > s->last_us) {
        s->used_us += (double)s->used * (double)(to - s->last_us);
        s->last_us = to;
    }
}

static bool try_start(struct sim *s, uint32_t number, int64_t now_us)
{
    const struct replay_job *job = job_at(s, number);
    uint64_t cards = cards_of(s, job);
    if (s->used + cards > s->config->fleet->n_cards * CARD)
        return false;
    int64_t begin = clock_ns();
    bool placed = chooser_place(&s->chooser, s->now, job, number, s->spots);
    measure_decision(&s->measure, clock_ns() - begin);
    if (!placed)
        return false;
    struct draft *draft = draft_create(s->now);
    for (uint32_t r = 0; r < job->pairs; r++)
        allocate(s, number, r, draft);
    commit(s, draft);
    add_used(s, now_us);
    s->used += cards;
    s->r->started++;
    s->r->by_cards[job->cards].started++;
    s->waits[s->n_waits++] = now_us - job->arrival_us;
    heap_push(s, (struct running){now_us + job->duration_us, number});
    measure_job(&s->measure, job, number, s->spots,
                given_take(&s->given, number, s->spots, job->pairs));
    return true;
}

static void end_job(struct sim *s, struct running *done)
{
    const struct replay_job *job = job_at(s, done->job);
    struct draft *draft = draft_create(s->now);
    add_used(s, done->end_us);
    for (uint32_t r = 0; r < job->pairs; r++) {
        struct demand pod;
        replay_demand(&s->chooser, job, done->job, r, &pod);
        (void)draft_release(draft, pod.namespace, pod.name);
    }
    commit(s, draft);
    measure_job_end(&s->measure, s->given.jobs[done->job], job->pairs);
    given_release(&s->given, done->job, job->pairs);
    s->used -= cards_of(s, job);
    s->r->makespan_us = done->end_us - s->config->trace->jobs[0].arrival_us;
}

/* --- the queue ---------------------------------------------------------- */

/* The few in front of it move up, not the many behind. */
static void drop_waiting(struct sim *s, size_t at)
{
    memmove(&s->queue[s->queue_at + 1], &s->queue[s->queue_at],
            (at - s->queue_at) * sizeof *s->queue);
    s->queue_at++;
    s->n_waiting--;
}

/* Start what can start, first come first served; with backfill also of the
 * jobs behind one that does not fit. */
static void try_queue(struct sim *s, int64_t now_us)
{
    while (s->n_waiting && try_start(s, s->queue[s->queue_at], now_us)) {
        s->queue_at++;
        s->n_waiting--;
    }
    if (!s->config->backfill)
        return;
    for (size_t i = 1; i < s->n_waiting && i <= BACKFILL_DEPTH;) {
        if (try_start(s, s->queue[s->queue_at + i], now_us))
            drop_waiting(s, s->queue_at + i);
        else
            i++;
    }
}

static void arrive(struct sim *s)
{
    uint32_t number = (uint32_t)s->next++;
    const struct replay_job *job = job_at(s, number);
    s->r->jobs++;
    s->r->by_cards[job->cards].asked++;
    if (s->config->loss) {
        if (!try_start(s, number, job->arrival_us))
            s->r->rejected++;
        return;
    }
    bool first = s->n_waiting == 0;
    s->queue[s->queue_at + s->n_waiting++] = number;
    if (first || s->config->backfill)
        try_queue(s, job->arrival_us);
}

/* Nothing runs and the first job does not start: it never will. */
static void give_up_first(struct sim *s)
{
    s->queue_at++;
    s->n_waiting--;
    s->r->impossible++;
}

/* --- time --------------------------------------------------------------- */

static void sample_until(struct sim *s, int64_t now_us)
{
    const struct trace *t = s->config->trace;
    int64_t begin = t->jobs[0].arrival_us;
    int64_t span = t->jobs[t->n - 1].arrival_us - begin;
    while (s->r->n_samples < REPLAY_SAMPLES) {
        int64_t at = begin +
                     (int64_t)((double)span * ((double)s->r->n_samples + 0.5) /
                               REPLAY_SAMPLES);
        if (at > now_us)
            return;
        struct replay_sample *sample = &s->r->samples[s->r->n_samples++];
        sample->at_us = at - begin;
        sample->used = (double)s->used / CARD /
                       (double)s->config->fleet->n_cards;
        measure_room(&s->measure, s->now, sample);
    }
}

static void step(struct sim *s)
{
    bool arrives = s->next < s->config->trace->n;
    int64_t arrival = arrives ? job_at(s, s->next)->arrival_us : INT64_MAX;
    if (s->n_running && s->heap[0].end_us <= arrival) {
        s->now_us = s->heap[0].end_us;
        sample_until(s, s->now_us);
        do {
            struct running done = heap_pop(s);
            end_job(s, &done);
        } while (s->n_running && s->heap[0].end_us == s->now_us);
        if (s->n_waiting)
            try_queue(s, s->now_us);
    } else if (arrives) {
        s->now_us = arrival;
        sample_until(s, arrival);
        arrive(s);
    }
    while (s->n_waiting && s->n_running == 0) {
        give_up_first(s);
        try_queue(s, s->now_us);
    }
}

static void sim_init(struct sim *s, const struct replay_config *config,
                     enum replay_policy policy, struct replay_result *r)
{
    size_t n = config->trace->n;
    uint32_t most = 1;
    *s = (struct sim){.config = config, .r = r};
    chooser_init(&s->chooser, policy, config->fleet, config->want_gpus,
                 config->seed);
    for (size_t i = 0; i < n; i++)
        if (config->trace->jobs[i].pairs > most)
            most = config->trace->jobs[i].pairs;
    r->policy = policy;
    r->comm_s = xcalloc(n, sizeof *r->comm_s);
    r->achieved_comm_s = xcalloc(n, sizeof *r->achieved_comm_s);
    s->now = snapshot_ref(config->fleet->idle);
    s->heap = xcalloc(n, sizeof *s->heap);
    s->queue = xcalloc(n, sizeof *s->queue);
    s->waits = xcalloc(n, sizeof *s->waits);
    s->spots = xcalloc(most, sizeof *s->spots);
    s->last_us = config->trace->jobs[0].arrival_us;
    given_init(&s->given, config->gpus_by, config->fleet, n);
    measure_init(&s->measure, config, r);
}

static void sim_fini(struct sim *s)
{
    measure_fini(&s->measure);
    given_fini(&s->given);
    chooser_fini(&s->chooser);
    snapshot_unref(s->now);
    free(s->heap);
    free(s->queue);
    free(s->waits);
    free(s->spots);
}

void replay_run(const struct replay_config *config, enum replay_policy policy,
                struct replay_result *ret_result)
{
    struct replay_result *r = ret_result;
    const struct trace *t = config->trace;
    struct sim s;
    int64_t begin = clock_ns();
    *r = (struct replay_result){0};
    sim_init(&s, config, policy, r);
    while (s.next < t->n || s.n_running || s.n_waiting) {
        step(&s);
        if (config->progress && s.n_events++ % PROGRESS_EVERY == 0)
            config->progress(config->ctx, (double)s.next / (double)t->n);
    }
    sample_until(&s, INT64_MAX);
    double span =
        (double)(t->jobs[t->n - 1].arrival_us - t->jobs[0].arrival_us);
    add_used(&s, INT64_MAX);
    r->utilisation =
        span > 0 ? s.used_us / span / CARD / (double)config->fleet->n_cards : 0;
    measure_waits(r, s.waits, s.n_waits);
    measure_decisions(&s.measure);
    sim_fini(&s);
    r->wall_s = (double)(clock_ns() - begin) / 1e9;
}

void replay_result_fini(struct replay_result *r)
{
    free(r->comm_s);
    free(r->achieved_comm_s);
    r->comm_s = r->achieved_comm_s = NULL;
}
