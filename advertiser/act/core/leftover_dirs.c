/* Folders of pods that are gone, which could not be removed: what was in the
 * way may be gone, too, some time. */
#include "advertiser/act/core/leftover_dirs.h"

#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/pod_files.h"
#include "advertiser/act/core/helper_pod.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum { HELPER_MS = 30000 }; /* until it is looked for biga-card again */

/* --- which there are ------------------------------------------------------- */

static LOCKED struct leftover_dir *find(struct actuator *a, const char *place,
                                        const char *uid)
{
    for (size_t i = 0; i < a->n_leftovers; i++)
        if (strcmp(a->leftovers[i].uid, uid) == 0 &&
            strcmp(a->leftovers[i].place, place) == 0)
            return &a->leftovers[i];
    return NULL;
}

static LOCKED void take(void *ctx, const char *place, const char *uid)
{
    struct actuator *a = ctx;
    if (find(a, place, uid) || a->n_leftovers >= INTENT_LEFTOVER_DIRS_MAX)
        return; /* the others are tried at the next start */
    a->leftovers = xgrow(a->leftovers, a->n_leftovers, &a->cap_leftovers,
                         sizeof *a->leftovers);
    struct leftover_dir *l = &a->leftovers[a->n_leftovers++];
    (void)snprintf(l->place, sizeof l->place, "%s", place);
    (void)snprintf(l->uid, sizeof l->uid, "%s", uid);
}

int leftover_dirs_load(struct actuator *a, struct error *err)
{
    return intents_each_leftover_dir(a->intents, take, a, err);
}

void leftover_dirs_add(struct place *p, const char *uid)
{
    struct actuator *a = p->a;
    struct error err = {0};
    if (place_leftover_dirs_due(p) ==
        INT64_MAX) { /* the first; it was just tried */
        p->sweep_ms = clock_ms() + a->sweep_ms;
        p->sweep_uid[0] = '\0';
    }
    take(a, p->desc.name, uid);
    act_unlock(a);
    if (intents_put_leftover_dir(a->intents, p->desc.name, uid, &err) < 0)
        log_event(LOG_ERROR, "act-not-saved", "uid", uid, "error", err.text,
                  NULL);
    act_lock(a);
}

bool leftover_dirs_busy(const struct actuator *a, const char *uid)
{
    for (size_t i = 0; i < a->n_places; i++)
        if (strcmp(a->places[i]->removing, uid) == 0)
            return true;
    return false;
}

/* --- trying again ----------------------------------------------------------- */

/* The one after the last that was tried, in order of UIDs. */
static LOCKED bool next_uid(struct place *p, char ret_uid[ACT_UID_MAX + 1])
{
    const struct actuator *a = p->a;
    const char *best = NULL;
    for (size_t i = 0; i < a->n_leftovers; i++) {
        const struct leftover_dir *l = &a->leftovers[i];
        if (strcmp(l->place, p->desc.name) == 0 &&
            strcmp(l->uid, p->sweep_uid) > 0 &&
            (!best || strcmp(l->uid, best) < 0))
            best = l->uid;
    }
    if (best)
        (void)snprintf(ret_uid, ACT_UID_MAX + 1, "%s", best);
    return best;
}

/* Who adds a pod holds `saving` from looking whether its UID is free until it
 * is there: so none is added under one that is taken here. */
static LOCKED bool begin(struct place *p, char ret_id[CRI_ID_MAX + 1])
{
    struct actuator *a = p->a;
    char uid[ACT_UID_MAX + 1];
    int64_t now = clock_ms();
    act_unlock(a);
    (void)pthread_mutex_lock(&a->saving);
    act_lock(a);
    helper_id(a, p->desc.name, ret_id);
    bool any = next_uid(p, uid);
    if (!any) { /* all were tried */
        p->sweep_uid[0] = '\0';
        p->sweep_ms = now + a->sweep_ms;
    } else if (!card_is_host(&p->desc) && !ret_id[0]) {
        p->sweep_ms = now + HELPER_MS;
        any = false;
    } else {
        const struct pod_entry *e = pod_entry_by_uid(a, uid);
        memcpy(p->sweep_uid, uid, sizeof uid);
        any = !e || e->intent->state == ACT_GONE; /* else its end does it */
        if (any)
            memcpy(p->removing, uid, sizeof uid);
    }
    (void)pthread_mutex_unlock(&a->saving);
    return any;
}

static LOCKED void is_removed(struct place *p, const char *uid)
{
    struct actuator *a = p->a;
    struct leftover_dir *l = find(a, p->desc.name, uid);
    struct error err = {0};
    if (l)
        *l = a->leftovers[--a->n_leftovers];
    act_unlock(a);
    log_event(LOG_INFO, "act-files-removed", "place", p->desc.name, "uid", uid,
              NULL);
    if (intents_delete_leftover_dir(a->intents, p->desc.name, uid, &err) < 0)
        log_event(LOG_ERROR, "act-not-saved", "uid", uid, "error", err.text,
                  NULL); /* it is tried once more at the next start */
    act_lock(a);
}

void leftover_dirs_sweep(struct place *p, const struct connection *c)
{
    struct actuator *a = p->a;
    char id[CRI_ID_MAX + 1];
    struct error err = {0};
    p->sweeping = true;
    if (begin(p, id)) {
        const struct pod_access pod = {.place = &c->place,
                                       .dirs = &a->dirs,
                                       .uid = p->removing,
                                       .cri = c->cri,
                                       .helper = id};
        bool refused;
        act_unlock(a);
        int e = pod_files_remove(&pod, NULL, &refused, &err);
        if (e < 0 && !refused)
            cri_reconnect(c->cri);
        act_lock(a);
        if (e == 0)
            is_removed(p, p->removing);
        p->removing[0] = '\0';
    }
    p->sweeping = false;
}
