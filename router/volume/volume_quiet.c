#include "router/volume/volume_quiet.h"

#include <stdlib.h>

#include "lib/base/mem.h"

void volume_quiet_fini(struct volume_quiet *q)
{
    free(q->list);
    *q = (struct volume_quiet){0};
}

void volume_quiet_note(struct volume_quiet *q, uint64_t id, int64_t now_ms)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->list[i].id == id) {
            q->list[i].last_ms = now_ms;
            return;
        }
    q->list = xgrow(q->list, q->n, &q->cap, sizeof *q->list);
    q->list[q->n++] =
        (struct volume_change){.id = id, .first_ms = now_ms, .last_ms = now_ms};
}

void volume_quiet_drop(struct volume_quiet *q, uint64_t id)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->list[i].id == id) {
            q->list[i] = q->list[--q->n];
            return;
        }
}

static int64_t due_of(const struct volume_change *c)
{
    int64_t quiet = c->last_ms + VOLUME_QUIET_MS;
    int64_t late = c->first_ms + VOLUME_LATE_MS;
    return quiet < late ? quiet : late;
}

int64_t volume_quiet_due(const struct volume_quiet *q)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < q->n; i++)
        if (due_of(&q->list[i]) < due)
            due = due_of(&q->list[i]);
    return due;
}

size_t volume_quiet_take(struct volume_quiet *q, int64_t now_ms,
                         uint64_t *ret_ids, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < q->n && n < max;) {
        if (due_of(&q->list[i]) > now_ms) {
            i++;
            continue;
        }
        ret_ids[n++] = q->list[i].id;
        q->list[i] = q->list[--q->n];
    }
    return n;
}
