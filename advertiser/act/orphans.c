#include "advertiser/act/orphans.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

void orphans_fini(struct orphans *o)
{
    free(o->list);
    *o = (struct orphans){0};
}

static struct orphan *find(const struct orphans *o, const char *id)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->list[i].id, id) == 0)
            return &o->list[i];
    return NULL;
}

void orphans_begin(struct orphans *o)
{
    for (size_t i = 0; i < o->n; i++)
        o->list[i].marked = false;
}

void orphans_saw(struct orphans *o, const struct orphan *found, int64_t now_ms,
                 int64_t grace_ms)
{
    struct orphan *known = find(o, found->id);
    if (known) {
        known->marked = true;
        known->running = found->running;
        return;
    }
    if (o->n == ORPHANS_MAX)
        return;
    o->list = xgrow(o->list, o->n, &o->cap, sizeof *o->list);
    o->list[o->n] = *found;
    o->list[o->n].marked = true;
    o->list[o->n++].due_ms = now_ms + grace_ms;
}

void orphans_end(struct orphans *o)
{
    for (size_t i = o->n; i-- > 0;)
        if (!o->list[i].marked)
            o->list[i] = o->list[--o->n];
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
    struct orphan *gone = find(o, id);
    if (gone)
        *gone = o->list[--o->n];
}

int64_t orphans_due(const struct orphans *o)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].due_ms < due)
            due = o->list[i].due_ms;
    return due;
}
