#include "extender/wire/scratch.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/mem.h"

enum { SCRATCH_TEXT_MAX = 64 << 10, SCRATCH_REFUSAL_MAX = 1024 };

struct scratch_pool {
    pthread_mutex_t lock;
    struct scratch *idle;
};

struct scratch_pool *scratch_pool_create(void)
{
    struct scratch_pool *p = xcalloc(1, sizeof *p);
    (void)pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void scratch_destroy(struct scratch *s)
{
    wire_args_fini(&s->args);
    wire_preemption_fini(&s->preemption);
    free(s->best);
    free(s->costs);
    free(s->scores);
    str_fini(&s->text);
    str_fini(&s->own);
    str_fini(&s->refusal);
    free(s);
}

void scratch_pool_destroy(struct scratch_pool *p)
{
    if (!p)
        return;
    while (p->idle) {
        struct scratch *next = p->idle->next;
        scratch_destroy(p->idle);
        p->idle = next;
    }
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

struct scratch *scratch_take(struct scratch_pool *p)
{
    (void)pthread_mutex_lock(&p->lock);
    struct scratch *s = p->idle;
    if (s)
        p->idle = s->next;
    (void)pthread_mutex_unlock(&p->lock);
    if (!s) {
        s = xcalloc(1, sizeof *s);
        str_init(&s->text, SCRATCH_TEXT_MAX);
        str_init(&s->own, SCRATCH_TEXT_MAX);
        str_init(&s->refusal, SCRATCH_REFUSAL_MAX);
    }
    str_reset(&s->text);
    str_reset(&s->refusal);
    return s;
}

void scratch_give(struct scratch_pool *p, struct scratch *s)
{
    hold_lock(&p->lock);
    s->next = p->idle;
    p->idle = s;
}

void scratch_fit(struct scratch *s, size_t n)
{
    if (n <= s->cap)
        return;
    size_t cap = s->cap ? s->cap : 1024;
    while (cap < n)
        cap *= 2;
    s->best = xrealloc(s->best, cap, sizeof *s->best);
    s->costs = xrealloc(s->costs, cap, sizeof *s->costs);
    s->scores = xrealloc(s->scores, cap, sizeof *s->scores);
    s->cap = cap;
}
