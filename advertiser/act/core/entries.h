/* entries - the table of pods. */
#ifndef BIGA_ADVERTISER_ACT_CORE_ENTRIES_H
#define BIGA_ADVERTISER_ACT_CORE_ENTRIES_H

#include "advertiser/act/core/state.h"

/* Takes the intent. */
struct entry *entry_add(struct actuator *a, struct intent *intent)
    REQUIRES(act_state);
void entry_drop(struct actuator *a, struct entry *e) REQUIRES(act_state);
void entry_release(struct entry *e) REQUIRES(act_state); /* ends `busy` */
struct entry *entry_by_uid(struct actuator *a, const char *uid)
    REQUIRES(act_state);
/* The one that is not gone, else any. */
struct entry *entry_by_name(struct actuator *a, const char *namespace,
                            const char *name) REQUIRES(act_state);

bool entry_is_ours(const struct entry *e); /* a helper */
/* On a card its volumes are made by the helper. */
bool entry_has_volumes(const struct entry *e);
/* A host's pod that somebody else runs. */
bool entry_is_virtual(struct actuator *a, const struct entry *e)
    REQUIRES(act_state);
bool entry_is_ready(struct actuator *a, const struct entry *e)
    REQUIRES(act_state);
bool entry_is_over(const struct entry *e) REQUIRES(act_state);
enum machine_hold entry_hold(struct actuator *a, const struct entry *e)
    REQUIRES(act_state);
/* The host pod of its pair was up, and has ended. */
bool entry_pair_is_over(struct actuator *a, const struct entry *e)
    REQUIRES(act_state);

/* Others see the change; pods of its pair are looked at again. */
void entry_publish(struct actuator *a, struct entry *e) REQUIRES(act_state);
void entry_stop(struct actuator *a, struct entry *e, int64_t grace_s)
    REQUIRES(act_state);

/* Of one that is busy: durable when it returns 0.  One that was forgotten
 * meanwhile is not written again. */
int entry_save(struct actuator *a, struct entry *e, struct error *err)
    EXCLUDES(act_state);
/* Of whoever has that UID, if anybody.  When it fails, the next step of the pod
 * saves it. */
int entry_save_uid(struct actuator *a, const char *uid, struct error *err)
    EXCLUDES(act_state);
/* A copy of an entry's intent (of all but what it points to); the caller has
 * locked `saving`. */
int entry_write(struct actuator *a, const struct intent *copy,
                struct error *err) EXCLUDES(act_state);
/* As actuator_forget(). */
int entry_forget(struct actuator *a, const char *uid, struct error *err)
    EXCLUDES(act_state);

#endif
