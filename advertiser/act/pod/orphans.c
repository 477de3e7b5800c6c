#include "advertiser/act/pod/orphans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void orphans_fini(struct orphans *o)
{
    free(o->list);
    *o = (struct orphans){0};
}

int orphan_order(const struct orphan_seen *a, const struct orphan_seen *b)
{
    int order = strcmp(a->uid, b->uid);
    if (order == 0)
        order = (int)b->sandbox - (int)a->sandbox;
    return order ? order : strcmp(a->id, b->id);
}

static int order_to(const struct orphan *o, const struct orphan_seen *seen)
{
    const struct orphan_seen as = {
        .uid = o->uid, .id = o->id, .sandbox = o->sandbox};
    return orphan_order(&as, seen);
}

/* The one that is kept already, from `*at` on; NULL when it is new. */
static const struct orphan *kept(const struct orphans *o, size_t *at,
                                 const struct orphan_seen *seen)
{
    int order = -1;
    while (*at < o->n && (order = order_to(&o->list[*at], seen)) < 0)
        ++*at;
    return *at < o->n && order == 0 ? &o->list[*at] : NULL;
}

/* Known, or there twice. */
static bool is_none(const struct orphan_seen *seen, size_t i)
{
    return seen[i].known ||
           (i > 0 && orphan_order(&seen[i - 1], &seen[i]) == 0);
}

static size_t count_kept(const struct orphans *o,
                         const struct orphan_seen *seen, size_t n)
{
    size_t at = 0, n_kept = 0;
    for (size_t i = 0; i < n; i++)
        n_kept += !is_none(seen, i) && kept(o, &at, &seen[i]) != NULL;
    return n_kept;
}

void orphans_update(struct orphans *o, const struct orphan_seen *seen, size_t n,
                    int64_t now_ms, int64_t grace_ms)
{
    size_t at = 0, cap = n < ORPHANS_MAX ? n : ORPHANS_MAX;
    size_t room = ORPHANS_MAX - count_kept(o, seen, n);
    struct orphans fresh = {.list = cap ? xcalloc(cap, sizeof *o->list) : NULL};
    for (size_t i = 0; i < n; i++) {
        const struct orphan_seen *s = &seen[i];
        if (is_none(seen, i))
            continue;
        const struct orphan *old = kept(o, &at, s);
        if (!old && room == 0) {
            fresh.n_more++;
            continue;
        }
        room -= !old;
        struct orphan *to = &fresh.list[fresh.n++];
        to->sandbox = s->sandbox;
        to->running = s->running;
        to->over = s->over;
        to->due_ms = s->over && !(old && old->over) ? now_ms
                     : old                          ? old->due_ms
                                                    : now_ms + grace_ms;
        (void)snprintf(to->id, sizeof to->id, "%s", s->id);
        (void)snprintf(to->uid, sizeof to->uid, "%s", s->uid);
    }
    free(o->list);
    *o = fresh;
}

bool orphans_take(struct orphans *o, int64_t now_ms, struct orphan *ret_orphan)
{
    struct orphan *best = NULL;
    for (size_t i = 0; i < o->n; i++) {
        struct orphan *at = &o->list[i];
        if (at->due_ms <= now_ms && (!best || (at->sandbox && !best->sandbox)))
            best = at;
    }
    if (!best)
        return false;
    best->due_ms = now_ms + ORPHANS_RETRY_MS;
    *ret_orphan = *best;
    return true;
}

void orphans_removed(struct orphans *o, const char *id)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->list[i].id, id) == 0) {
            memmove(&o->list[i], &o->list[i + 1],
                    (--o->n - i) * sizeof *o->list);
            return;
        }
}

int64_t orphans_due(const struct orphans *o)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].due_ms < due)
            due = o->list[i].due_ms;
    return due;
}

bool orphans_have(const struct orphans *o, const char *uid)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->list[i].uid, uid) == 0)
            return true;
    return o->n_more > 0;
}

bool orphans_run(const struct orphans *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].running)
            return true;
    return o->n_more > 0;
}
