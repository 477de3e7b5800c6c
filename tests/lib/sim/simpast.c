#include "tests/lib/sim/simpast.h"

#include <semaphore.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

static void init(sem_t *sem)
{
    if (sem_init(sem, 0, 0) != 0)
        abort();
}

/* --- asking --------------------------------------------------------------- */

struct asked {
    struct history_question question; /* first */
    const char *object;
    struct str *out;
    sem_t done;
};

static void add_line(void *ctx, const struct history_event *e)
{
    bool of_job = e->kind == HISTORY_POD && e->job[0];
    str_addf(ctx, "%s %s%s%s %s: %s\n", history_kind_name(e->kind), e->object,
             of_job ? " of " : "", of_job ? e->job : "",
             history_reason_name(e->reason), e->message);
}

static void answer(struct history_question *q, struct history_reader *r)
{
    struct asked *a = (struct asked *)q;
    const struct history_filter f = {.kind = HISTORY_KINDS,
                                     .reason = HISTORY_REASONS,
                                     .object = a->object,
                                     .limit = HISTORY_PAGE_MAX};
    uint64_t next;
    if (!r ||
        history_read_events(r, &f, add_line, a->out, &next, &q->error) < 0)
        abort();
    (void)sem_post(&a->done);
}

void sim_past(struct history *h, const char *object, struct str *out)
{
    struct asked a = {
        .question = {.answer = answer}, .object = object, .out = out};
    history_settle(h);
    str_reset(out);
    init(&a.done);
    if (history_ask(h, &a.question) < 0)
        abort();
    wait_for(&a.done);
    (void)sem_destroy(&a.done);
}

/* --- holding -------------------------------------------------------------- */

struct sim_past_hold {
    struct history_follower follower; /* first */
    struct history *history;
    sem_t entered, leave;
    bool let; /* of the history's thread: it is not held any more */
};

static void hold(struct history_follower *f)
{
    struct sim_past_hold *h = (struct sim_past_hold *)f;
    if (h->let)
        return;
    (void)sem_post(&h->entered);
    wait_for(&h->leave);
    h->let = true;
}

struct sim_past_hold *sim_past_hold(struct history *history)
{
    struct sim_past_hold *h = xcalloc(1, sizeof *h);
    h->follower.news = hold;
    h->history = history;
    init(&h->entered);
    init(&h->leave);
    history_follow(history, &h->follower);
    history_post(history, &(struct history_event){.kind = HISTORY_NODE,
                                                  .reason = HISTORY_DEGRADED,
                                                  .object = "held",
                                                  .pair = -1});
    wait_for(&h->entered);
    return h;
}

void sim_past_go_on(struct sim_past_hold *h)
{
    (void)sem_post(&h->leave);
    history_unfollow(h->history, &h->follower); /* waits for it to leave */
    (void)sem_destroy(&h->entered);
    (void)sem_destroy(&h->leave);
    free(h);
}
