/* What hosts have left for pods. */
#include "model/plan/plan_private.h"

/* How often `each` is in `left`, at most `max`: divided only where that
 * matters. */
static uint32_t times(int64_t left, uint64_t each, uint32_t max)
{
    if (each == 0 || left == INT64_MAX)
        return max;
    if (left <= 0)
        return 0;
    /* each fits 32 bits, and max, too */
    return (uint64_t)left >= each * max ? max
                                        : (uint32_t)((uint64_t)left / each);
}

uint32_t host_room_holds(const struct host_room *room,
                         const struct demand *pair, uint32_t max)
{
    max = times(room->pods, 1, max);
    max = times(room->cpu_milli, pair->cpu_milli, max);
    return times(room->memory_mib, pair->memory_mib, max);
}

static void change(int64_t *left, int64_t by)
{
    if (*left != INT64_MAX)
        *left += by;
}

void host_room_take(struct host_room *room, const struct demand *pair)
{
    change(&room->cpu_milli, -(int64_t)pair->cpu_milli);
    change(&room->memory_mib, -(int64_t)pair->memory_mib);
    change(&room->pods, -1);
}

void host_room_give(struct host_room *room, const struct demand *pair)
{
    change(&room->cpu_milli, pair->cpu_milli);
    change(&room->memory_mib, pair->memory_mib);
    change(&room->pods, 1);
}
