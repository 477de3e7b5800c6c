/* What the files of the actuator's functions share: actuator.c has what is
 * wanted and known, actuator_places.c places, actuator_calls.c what is called on
 * the caller's thread, actuator_logs.c logs. */
#ifndef BIGA_ADVERTISER_ACT_CORE_ACTUATOR_PRIVATE_H
#define BIGA_ADVERTISER_ACT_CORE_ACTUATOR_PRIVATE_H

#include "advertiser/act/card/connection.h"
#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/state.h"

/* The container that a call on the caller's thread is for. */
struct call_target {
    struct connection c;
    char id[CRI_ID_MAX + 1]; /* of the container; "" it does not run */
    char sandbox[CRI_ID_MAX + 1];
    char helper[CRI_ID_MAX + 1];
    char uid[64], container[INTENT_NAME_MAX + 1];
    uint32_t attempt; /* of the container */
    bool exited;      /* it has: its runtime may still write its last lines */
    bool ended;       /* nothing of it is left there, or soon */
    bool answers;
    char why[ACT_MESSAGE_MAX]; /* it does not */
};

/* `container` "": the pod's first.  -EHOSTUNREACH when its place does not
 * answer; what is known is filled in then, too. */
int call_find(struct actuator *a, const char *namespace, const char *name,
              const char *container, struct call_target *ret_target,
              struct error *err) EXCLUDES(act_state);
/* The same; -ENOENT, too, when the container does not run. */
int call_find_running(struct actuator *a, const char *namespace,
                      const char *name, const char *container,
                      struct call_target *ret_target, struct error *err)
    EXCLUDES(act_state);
/* It is not the pod of that uid (NULL: any) which was meant, but its namesake. */
bool call_is_other(const struct call_target *t, const char *uid);
#define CALL_OTHER "pod %s/%s: that of uid %s is not here any more"

/* The place `name`, which need not be there, is drained; in memory only. */
void actuator_take_drained(void *ctx, const char *name) REQUIRES(act_state);

/* Which cards are out of service since they were to be flashed. */
int actuator_load_flashes(struct actuator *a, struct error *err)
    EXCLUDES(act_state);

#endif
