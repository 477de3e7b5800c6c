/* What is remembered of units that wait, and what people are told of them. */
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_controller_private.h"
#include "lib/io/clock.h"

static void note_free(void *note)
{
    struct gate_note *n = note;
    strmap_fini_with(&n->avoid, free);
    strmap_fini_with(&n->evicted, free);
    free(n->evict_text);
    free(n->text);
    free(n);
}

static void told_free(void *told)
{
    struct gate_told *t = told;
    free(t->text);
    free(t);
}

struct gate_told *gate_told_of(struct gate_controller *g, const char *key)
{
    struct gate_told *t = strmap_get(&g->told, key);
    if (!t) {
        t = xcalloc(1, sizeof *t);
        (void)snprintf(t->key, sizeof t->key, "%s", key);
        (void)strmap_put(&g->told, t->key, t);
    }
    return t;
}

struct gate_note *gate_note_of(struct gate_controller *g, const char *key)
{
    struct gate_note *n = strmap_get(&g->notes, key);
    if (!n) {
        n = xcalloc(1, sizeof *n);
        (void)snprintf(n->key, sizeof n->key, "%s", key);
        (void)strmap_put(&g->notes, n->key, n);
    }
    n->round = g->round;
    return n;
}

/* Forgets those that are over, too. */
/* Of pods that are alone a controller makes another one under another name: it
 * avoids what the one before has. */
struct gate_note *gate_avoiding_of(struct gate_controller *g,
                                   const struct gate_unit *unit,
                                   struct gate_note *note)
{
    char key[JOB_LEASE_KEY_MAX];
    const struct gate_pod *first = unit->pods[0];
    if (first->demand.job[0] || !first->owner[0])
        return note;
    (void)snprintf(key, sizeof key, "controller %s", first->owner);
    return gate_note_of(g, key);
}

void gate_note_trim(struct gate_note *n, int64_t now_ms)
{
    size_t pos = 0;
    for (struct gate_avoided *a; (a = strmap_next(&n->avoid, &pos));) {
        if (a->until_ms > now_ms)
            continue;
        free(strmap_remove(&n->avoid, a->node));
        pos = 0; /* others have moved */
    }
}

void gate_tell_quietly(struct gate_controller *g, const char *key,
                       const char *text, bool judged)
{
    hold_lock(&g->lock);
    struct gate_told *t = gate_told_of(g, key);
    t->judged = judged;
    free(t->text);
    t->text = xstrdup(text);
}

/* With the lock: what was told of a unit after that was forgotten, as when a
 * call ends later than its pod. */
static void forget_told(struct gate_controller *g)
{
    size_t pos = 0;
    for (struct gate_told *t; (t = strmap_next(&g->told, &pos));) {
        if (strmap_get(&g->notes, t->key))
            continue;
        (void)strmap_remove(&g->told, t->key);
        told_free(t);
        pos = 0; /* others have moved */
    }
}

/* Of units that have nothing to wait for any more: what comes under that name
 * later is another, but for the nodes that it avoids. */
void gate_notes_forget(struct gate_controller *g)
{
    size_t n = 0, pos = 0;
    int64_t now_ms = clock_ms();
    cleanup_free struct gate_note **over = xcalloc(g->notes.n + 1,
                                                   sizeof *over);
    for (struct gate_note *note; (note = strmap_next(&g->notes, &pos));) {
        gate_note_trim(note, now_ms);
        if (note->round != g->round && note->avoid.n == 0 &&
            note->anew_ms <= now_ms)
            over[n++] = note;
    }
    hold_lock(&g->lock);
    for (size_t i = 0; i < n; i++) {
        (void)strmap_remove(&g->notes, over[i]->key);
        note_free(over[i]);
    }
    forget_told(g);
}

/* What the unit waits for: its closed pods are told once. */
void gate_tell(struct gate_controller *g, const struct gate_unit *unit,
               struct gate_note *note, const char *text, bool judged)
{
    gate_tell_quietly(g, unit->key, text, judged);
    if (note->text && strcmp(note->text, text) == 0)
        return;
    free(note->text);
    note->text = xstrdup(text);
    for (size_t i = 0; i < unit->n; i++)
        if (unit->pods[i]->state == GATE_CLOSED)
            g->config.tell(g->config.ctx, &unit->pods[i]->demand,
                           EVENTS_REFUSED, text);
}

void gate_notes_fini(struct gate_controller *g)
{
    strmap_fini_with(&g->notes, note_free);
    strmap_fini_with(&g->told, told_free);
}
