/* pod_table - the table of pods. */
#ifndef BIGA_ADVERTISER_ACT_CORE_POD_TABLE_H
#define BIGA_ADVERTISER_ACT_CORE_POD_TABLE_H

#include "advertiser/act/core/state.h"

/* Takes the intent. */
struct pod_entry *pod_entry_add(struct actuator *a, struct intent *intent)
    REQUIRES(act_state);
void pod_entry_drop(struct actuator *a, struct pod_entry *e)
    REQUIRES(act_state);
void pod_entry_release(struct pod_entry *e)
    REQUIRES(act_state); /* ends `busy` */
struct pod_entry *pod_entry_by_uid(struct actuator *a, const char *uid)
    REQUIRES(act_state);
/* The one that is not gone, else any. */
struct pod_entry *pod_entry_by_name(struct actuator *a, const char *namespace,
                                    const char *name) REQUIRES(act_state);

bool pod_entry_is_helper(const struct pod_entry *e); /* a helper */
/* On a card its volumes are made by the helper. */
bool pod_entry_has_volumes(const struct pod_entry *e);
/* A host's pod that somebody else runs. */
bool pod_entry_is_virtual(struct actuator *a, const struct pod_entry *e)
    REQUIRES(act_state);
bool pod_entry_is_ready(struct actuator *a, const struct pod_entry *e)
    REQUIRES(act_state);
bool pod_entry_is_over(const struct pod_entry *e) REQUIRES(act_state);
enum machine_hold pod_entry_hold(struct actuator *a, const struct pod_entry *e)
    REQUIRES(act_state);
/* The host pod of its pair was up, and has ended. */
bool pod_entry_pair_is_over(struct actuator *a, const struct pod_entry *e)
    REQUIRES(act_state);

/* Others see the change; pods of its pair are looked at again. */
void pod_entry_publish(struct actuator *a, struct pod_entry *e)
    REQUIRES(act_state);
void pod_entry_stop(struct actuator *a, struct pod_entry *e, int64_t grace_s)
    REQUIRES(act_state);

/* Of one that is busy: durable when it returns 0.  One that was forgotten
 * meanwhile is not written again. */
int pod_entry_save(struct actuator *a, struct pod_entry *e, struct error *err)
    EXCLUDES(act_state);
/* Of whoever has that UID, if anybody.  When it fails, the next step of the pod
 * saves it. */
int pod_entry_save_uid(struct actuator *a, const char *uid, struct error *err)
    EXCLUDES(act_state);
/* A copy of an entry's intent (of all but what it points to); the caller has
 * locked `saving`. */
int pod_entry_write(struct actuator *a, const struct intent *copy,
                    struct error *err) EXCLUDES(act_state);
/* As actuator_forget(). */
int pod_entry_forget(struct actuator *a, const char *uid, struct error *err)
    EXCLUDES(act_state);

/* Pods that are to end on places that are not in this node any more are gone with
 * their place; pod_table_gone.c.  Releases the lock meanwhile; false when that
 * could not be written down: to be tried again. */
bool pod_table_end_gone(struct actuator *a) REQUIRES(act_state);

#endif
