/* What is left where: pods that are to end, on places that have left this node,
 * and what is on the places of pods that nobody wrote down. */
#include "advertiser/act/core/pod_table.h"

#include <stdio.h>

#include "advertiser/act/core/place.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

static LOCKED bool has_left(struct actuator *a, const char *name)
{
    const struct place *p = place_find(a, name);
    return !p || !p->present;
}

static LOCKED struct pod_entry *pick(struct actuator *a)
{
    for (size_t i = 0; i < a->n_entries; i++) {
        struct pod_entry *e = a->entries[i];
        if (e->intent->stop && !e->busy && e->intent->state != ACT_GONE &&
            has_left(a, e->intent->place))
            return e;
    }
    return NULL;
}

/* `i` is the intent of an entry, or the copy that is written down. */
static void say(const struct actuator *a, struct intent *i)
{
    (void)snprintf(i->reason, sizeof i->reason, "CardGone");
    (void)snprintf(i->message, sizeof i->message,
                   "%.100s is not in this node any more, so nothing was ended "
                   "there: what it left is removed if the card comes back, "
                   "but for %.200s/pods/%.63s",
                   i->place, a->card_dir, i->uid);
}

/* Releases the lock while it is written down. */
static LOCKED int leave(struct actuator *a, struct pod_entry *e,
                        struct error *err)
{
    e->busy = true;
    act_unlock(a);
    (void)pthread_mutex_lock(&a->saving);
    act_lock(a);
    struct intent copy = *e->intent; /* what it points to does not change */
    act_unlock(a);
    copy.state = ACT_GONE;
    say(a, &copy);
    (void)failpoint("act-before-gone");
    int r = pod_entry_write(a, &copy, err);
    (void)pthread_mutex_unlock(&a->saving);
    act_lock(a);
    if (r == 0) {
        machine_move(&e->m, ACT_STOPPING);
        machine_move(&e->m, ACT_GONE);
        say(a, e->intent);
        pod_entry_publish(a, e);
    }
    pod_entry_release(e);
    return r;
}

bool pod_table_end_gone(struct actuator *a)
{
    struct pod_entry *e;
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
