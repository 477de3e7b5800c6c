/* What is left where: pods that are to end, on places that have left this node,
 * and what is on the places of pods that nobody wrote down. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/core/act_private.h"
#include "advertiser/act/machine/machine_private.h"
#include "lib/base/mem.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

static bool has_left(struct actuator *a, const char *name)
{
    const struct place *p = place_find(a, name);
    return !p || !p->present;
}

static struct entry *pick(struct actuator *a)
{
    for (size_t i = 0; i < a->n_entries; i++) {
        struct entry *e = a->entries[i];
        if (e->intent->stop && !e->busy && e->intent->state != ACT_GONE &&
            has_left(a, e->intent->place))
            return e;
    }
    return NULL;
}

/* Of an intent, or a copy of it. */
static void say(const struct actuator *a, struct intent *i)
{
    (void)snprintf(i->reason, sizeof i->reason, "CardGone");
    (void)snprintf(i->message, sizeof i->message,
                   "%.100s is not in this node any more, so nothing was ended "
                   "there: what it left is removed if the card comes back, "
                   "but for %.200s/pods/%.63s",
                   i->place, a->card_dir, i->uid);
}

/* Lock held, released while it is written down. */
static int leave(struct actuator *a, struct entry *e, struct error *err)
{
    e->busy = true;
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_mutex_lock(&a->saving);
    (void)pthread_mutex_lock(&a->lock);
    struct intent copy = *e->intent; /* what it points to does not change */
    (void)pthread_mutex_unlock(&a->lock);
    copy.state = ACT_GONE;
    say(a, &copy);
    (void)failpoint("act-before-gone");
    int r = entry_write(a, &copy, err);
    (void)pthread_mutex_unlock(&a->saving);
    (void)pthread_mutex_lock(&a->lock);
    if (r == 0) {
        machine_move(&e->m, ACT_STOPPING);
        machine_move(&e->m, ACT_GONE);
        say(a, e->intent);
        entry_publish(a, e);
    }
    entry_release(e);
    return r;
}

bool leave_places(struct actuator *a)
{
    struct entry *e;
    struct error err = {0};
    /* before it is known which there are, none has left */
    while (a->placed && !a->stopping && (e = pick(a))) {
        if (leave(a, e, &err) < 0) {
            log_event(LOG_ERROR, "act-not-saved", "error", err.text, NULL);
            return false;
        }
    }
    return true;
}

/* --- what nobody wrote down ----------------------------------------------- */

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_spared(const struct actuator *a, const char *uid)
{
    return a->n_spared &&
           bsearch(&uid, a->spared, a->n_spared, sizeof *a->spared, text_order);
}

void leave_spare(struct actuator *a, const char *const *uids, size_t n)
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

bool leave_is_orphan(const struct place *p, const char *uid)
{
    const struct entry *e = entry_by_uid(p->a, uid);
    if (e && e->intent->state != ACT_GONE &&
        strcmp(e->intent->place, p->what.name) == 0)
        return false;
    return !is_spared(p->a, uid);
}

void actuator_told(struct actuator *a, const char *const *uids, size_t n)
{
    (void)pthread_mutex_lock(&a->lock);
    bool first = !a->fed, fewer = false;
    char **was = steal(&a->spared);
    size_t n_was = a->n_spared;
    a->fed = true;
    a->n_spared = 0;
    leave_spare(a, uids, n);
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
    (void)pthread_mutex_unlock(&a->lock);
}

static int left_on(const struct place *p, const char *uid, struct error *err)
{
    if (!p->present)
        return 0; /* nobody is there to ask */
    /* without an endpoint nobody is, either; what was there still is */
    if (p->what.endpoint[0] && !p->swept)
        return error_set(err, EBUSY,
                         "pod %s is not written down here, and %s has not "
                         "said yet what is on it: %s",
                         uid, p->what.name,
                         p->reason[0] ? p->reason : "it is being asked");
    if (orphans_have(&p->orphans, uid) ||
        (p->n_spared > 0 && is_spared(p->a, uid)))
        return error_set(err, EBUSY,
                         "pod %s is not written down here, and what may be of "
                         "it on %s is removed first",
                         uid, p->what.name);
    return 0;
}

int actuator_left(struct actuator *a, const char *place, const char *uid,
                  struct error *err)
{
    int e = 0;
    (void)pthread_mutex_lock(&a->lock);
    if (!a->placed)
        e = error_set(err, EBUSY, "pod %s: this node's cards are not known yet",
                      uid);
    for (size_t i = 0; i < a->n_places && e == 0; i++)
        if (!place || strcmp(a->places[i]->what.name, place) == 0)
            e = left_on(a->places[i], uid, err);
    (void)pthread_mutex_unlock(&a->lock);
    return e;
}
