#include "advertiser/act/core/place.h"

#include <stdlib.h>
#include <string.h>

#include "advertiser/act/core/threads.h"
#include "lib/io/clock.h"

void place_publish(struct place *p)
{
    p->a->version++;
    for (size_t i = 0; i < p->a->n_entries; i++)
        if (pod_entry_is_on(p->a->entries[i], p))
            p->a->entries[i]->version = p->a->version;
    act_notify(p->a);
}

struct place *place_find(struct actuator *a, const char *name)
{
    for (size_t i = 0; i < a->n_places; i++)
        if (strcmp(a->places[i]->desc.name, name) == 0)
            return a->places[i];
    return NULL;
}

bool place_works(const struct place *p)
{
    return p->present && p->desc.endpoint[0] && p->health.now == ACT_READY &&
           !p->a->stopping;
}

enum act_health place_health(const struct place *p)
{
    if (!p->present)
        return ACT_LOST;
    if (!p->desc.endpoint[0] && !card_is_host(&p->desc))
        return ACT_LOST;
    if (!p->desc.endpoint[0]) /* nobody to ask */
        return p->drained ? ACT_DRAINED : ACT_READY;
    return health_shown(&p->health, p->drained);
}

bool place_seeks_devices(const struct place *p, const struct pod_entry *e)
{
    bool seeks = false;
    for (size_t i = 0; e->spec && i < p->desc.n_sets; i++) {
        const struct act_device_set *set = &p->desc.sets[i];
        if (!device_sets_have(e->spec->devices.text, set->name))
            continue;
        for (size_t j = 0; j < set->n_globs; j++)
            seeks |= strpbrk(set->globs[j], ACT_GLOB_CHARS) != NULL;
    }
    return seeks;
}

void place_free(struct place *p)
{
    orphans_fini(&p->orphans);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_mutex_destroy(&p->prep);
    (void)pthread_mutex_destroy(&p->vfs);
    free(p);
}

int64_t place_leftover_dirs_due(const struct place *p)
{
    const struct actuator *a = p->a;
    for (size_t i = 0; p->swept && !p->sweeping && i < a->n_leftovers; i++)
        if (strcmp(a->leftovers[i].place, p->desc.name) == 0)
            return p->sweep_ms;
    return INT64_MAX;
}

int64_t place_due(struct place *p)
{
    struct actuator *a = p->a;
    bool idle = card_is_host(&p->desc) && p->present && !p->desc.endpoint[0];
    int64_t due = INT64_MAX;
    if (!idle && !place_works(p))
        return due;
    for (size_t i = 0; i < a->n_entries; i++) {
        const struct pod_entry *e = a->entries[i];
        if (pod_entry_is_on(e, p) && !e->busy && e->due_ms < due)
            due = e->due_ms;
    }
    int64_t orphan = a->fed ? orphans_due(&p->orphans) : INT64_MAX;
    int64_t left = idle ? INT64_MAX : place_leftover_dirs_due(p);
    due = orphan < due ? orphan : due;
    return left < due ? left : due;
}

void place_wake(struct place *p)
{
    struct actuator *a = p->a;
    clock_wake_one(&p->wake);
    if (!place_works(p) || place_due(p) > clock_ms())
        return;
    if (p->n_idle > 0)
        clock_wake_one(&p->work);
    else if (p->n_workers < PLACE_WORKERS && act_thread(a, a->worker, p))
        p->n_workers++;
}
