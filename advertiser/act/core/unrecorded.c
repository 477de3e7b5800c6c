/* What is on the places of pods that are not recorded. */
#include "advertiser/act/core/unrecorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "lib/base/mem.h"

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static LOCKED bool is_spared(const struct actuator *a, const char *uid)
{
    return a->n_spared &&
           bsearch(&uid, a->spared, a->n_spared, sizeof *a->spared, text_order);
}

void unrecorded_set(struct actuator *a, const char *const *uids, size_t n)
{
    for (size_t i = 0; i < a->n_spared; i++)
        free(a->spared[i]);
    free(a->spared);
    a->spared = n ? xcalloc(n, sizeof *a->spared) : NULL;
    a->n_spared = n;
    for (size_t i = 0; i < n; i++)
        a->spared[i] = xstrdup(uids[i]);
    if (n)
        qsort(a->spared, n, sizeof *a->spared, text_order);
}

bool unrecorded_is_orphan(const struct place *p, const char *uid)
{
    const struct pod_entry *e = pod_entry_by_uid(p->a, uid);
    if (e && e->intent->state != ACT_GONE && pod_entry_is_on(e, p))
        return false;
    return !is_spared(p->a, uid);
}

void unrecorded_told(struct actuator *a, const char *const *uids, size_t n)
{
    act_lock(a);
    bool first = !a->fed, fewer = false;
    char **was = steal(&a->spared);
    size_t n_was = a->n_spared;
    a->fed = true;
    a->n_spared = 0;
    unrecorded_set(a, uids, n);
    for (size_t i = 0; i < n_was; i++) {
        fewer |= !is_spared(a, was[i]);
        free(was[i]);
    }
    free(was);
    for (size_t i = 0; i < a->n_places; i++) {
        struct place *p = a->places[i];
        bool look = fewer && p->n_spared > 0;
        if (look) { /* what of them is there is to be listed as nobody's */
            p->swept = false;
            p->list_ms = 0;
        }
        if (first || look)
            place_wake(p);
    }
    act_unlock(a);
}

static LOCKED int left_on(const struct place *p, const char *uid,
                          struct error *err)
{
    if (!p->present)
        return 0; /* nobody is there to ask */
    /* without an endpoint nobody is, either; what was there still is */
    if (p->desc.endpoint[0] && !p->swept)
        return error_set(err, EBUSY,
                         "pod %s is not written down here, and %s has not "
                         "said yet what is on it: %s",
                         uid, p->desc.name,
                         p->reason[0] ? p->reason : "it is being asked");
    if (orphans_have(&p->orphans, uid) ||
        (p->n_spared > 0 && is_spared(p->a, uid)))
        return error_set(err, EBUSY,
                         "pod %s is not written down here, and what may be of "
                         "it on %s is removed first",
                         uid, p->desc.name);
    return 0;
}

int unrecorded_check_gone(struct actuator *a, const char *place,
                          const char *uid, struct error *err)
{
    int e = 0;
    act_lock(a);
    if (!a->placed)
        e = error_set(err, EBUSY, "pod %s: this node's cards are not known yet",
                      uid);
    for (size_t i = 0; i < a->n_places && e == 0; i++)
        if (!place || strcmp(a->places[i]->desc.name, place) == 0)
            e = left_on(a->places[i], uid, err);
    act_unlock(a);
    return e;
}
