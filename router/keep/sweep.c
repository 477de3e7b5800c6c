#include "router/keep/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void sweep_fini(struct sweep *s)
{
    orphans_fini(&s->orphans);
}

static int in_order(const void *a, const void *b)
{
    return orphan_order(a, b);
}

void sweep_update(struct sweep *s, const struct seen *seen, const char *spared,
                  int64_t now_ms)
{
    cleanup_free struct orphan_seen *list = xcalloc(seen->n + 1, sizeof *list);
    size_t n = 0, size = spared ? strlen(spared) : 0;
    for (size_t i = 0; i < seen->n; i++) {
        const struct seen_item *item = &seen->list[i];
        if (!item->stray || (size && strncmp(item->uid, spared, size) == 0))
            continue;
        list[n++] = (struct orphan_seen){
            .uid = item->uid,
            .id = item->id,
            .sandbox = item->sandbox,
            .running = item->state == (item->sandbox ? 0 : CRI_RUNNING),
        };
    }
    if (n)
        qsort(list, n, sizeof *list, in_order);
    orphans_update(&s->orphans, list, n, now_ms, SWEEP_GRACE_MS);
}

bool sweep_take(struct sweep *s, int64_t now_ms, struct orphan *ret_orphan)
{
    if (now_ms < s->next_ms || !orphans_take(&s->orphans, now_ms, ret_orphan))
        return false;
    s->next_ms = now_ms + SWEEP_PACE_MS;
    return true;
}

void sweep_removed(struct sweep *s, const char *id)
{
    orphans_removed(&s->orphans, id);
}

int64_t sweep_due(const struct sweep *s)
{
    int64_t due = orphans_due(&s->orphans);
    return due < s->next_ms ? s->next_ms : due;
}
