/* The thread that answers, on a connection of its own. */
#include <errno.h>

#include "extender/history/history_private.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

int history_ask(struct history *h, struct history_question *q)
{
    hold_lock(&h->lock);
    if (h->stopping || (!q->apart && h->n_questions >= HISTORY_QUESTIONS_MAX))
        return -EAGAIN;
    q->error = (struct error){0};
    q->next = NULL;
    *h->last_question = q;
    h->last_question = &q->next;
    h->n_questions += !q->apart;
    clock_wake_one(&h->asked);
    return 0;
}

/* The next one; NULL: it is to end, and none waits. */
static struct history_question *take(struct history *h, bool *ret_stopping)
{
    hold_lock(&h->lock);
    while (!h->questions && !h->stopping)
        (void)clock_wait(&h->asked, &h->lock, INT64_MAX);
    struct history_question *q = h->questions;
    *ret_stopping = h->stopping;
    if (!q)
        return NULL;
    h->questions = q->next;
    if (!h->questions)
        h->last_question = &h->questions;
    h->n_questions -= !q->apart;
    return q;
}

/* The file, as it is now; NULL: q->error says why not. */
static struct history_reader *open_now(struct history *h,
                                       struct history_reader **reader,
                                       unsigned *generation,
                                       struct history_question *q)
{
    unsigned now = atomic_load(&h->generation);
    if (*reader && *generation != now) {
        history_reader_close(*reader);
        *reader = NULL;
    }
    *generation = now;
    if (!*reader && history_reader_open(h->dir, reader, &q->error) < 0)
        return NULL;
    return history_read_begin(*reader, &q->error) < 0 ? NULL : *reader;
}

static void note_damage(struct history *h)
{
    atomic_store(&h->suspect, true);
    hold_lock(&h->lock);
    h->hurry = true;
    clock_wake_one(&h->wake);
}

void *history_read_thread(void *ctx)
{
    struct history *h = ctx;
    struct history_reader *reader = NULL;
    struct history_question *q;
    unsigned generation = 0;
    bool stopping;
    thread_name("history-asked", NULL);
    while ((q = take(h, &stopping))) {
        struct history_reader *r = NULL;
        if (stopping)
            (void)error_set(&q->error, ECANCELED, "the extender stops");
        else
            r = open_now(h, &reader, &generation, q);
        bool damaged = !r && q->error.code == EBADMSG;
        if (r)
            history_reader_see(r, q->scope);
        q->answer(q, r); /* which may free it */
        if (r)
            history_reader_see(r, NULL);
        if (r)
            damaged = history_read_was_damaged(r);
        if (r)
            history_read_end(r);
        if (damaged && generation == atomic_load(&h->generation))
            note_damage(h);
    }
    history_reader_close(reader);
    return NULL;
}
