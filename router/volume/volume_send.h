/* volume_send - the steps of a plan, and what else is to be done with a pod's
 * files on a remote, as calls of biga-card there (card/card.h).
 *
 * Every process of a remote may read the arguments of others: contents are
 * hidden by as many random bytes, as advertiser/act/card has it.  All functions
 * block for calls, each for HELPER_CALL_MS (helper.h) at most. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_SEND_H
#define BIGA_ROUTER_VOLUME_VOLUME_SEND_H

#include <stddef.h>

#include "advertiser/cri/cri_container.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "router/volume/volume_plan.h"

/* Run a command in the helper's container on that remote, as cri_exec_sync():
 * blocks up to `ms`.  Calls of one lane of a remote never meet, so that each
 * may have its own connection.  -EAGAIN: there is no helper (yet). */
typedef int volume_exec_f(void *ctx, const char *remote, unsigned lane,
                          const char *const *argv, size_t n_argv, unsigned ms,
                          struct cri_exec *ret_exec, struct error *err);

/* A pod's folders on its remote; borrowed. */
struct volume_place {
    volume_exec_f *exec;
    void *ctx;
    const char *remote;
    unsigned lane;
    const char *disk, *memory; /* as the helper sees them: ".../pods/UID" */
};

/* What is there.  A pod of which nothing is there has an empty tree. */
int volume_send_look(const struct volume_place *place,
                     struct volume_tree *ret_tree, struct error *err);
/* Do all steps, in their order, in as few calls as arguments allow.  After an
 * error some of them are done.  -EIO has biga-card's own words. */
int volume_send_plan(const struct volume_place *place,
                     const struct volume_plan *plan, struct error *err);
/* Add the last `max` bytes of a file to `ret_text`; -ENOENT: it is not there. */
int volume_send_last(const struct volume_place *place, const char *name,
                     size_t max, struct str *ret_text, struct error *err);
/* All of the pod goes, what is in memory first. */
int volume_send_remove(const struct volume_place *place, struct error *err);
/* Add the names of all pods' folders, those of `disk` and `memory`, which are
 * the folders above them here; each ended by '\0', some are told twice. */
int volume_send_pods(const struct volume_place *place, struct str *ret_names,
                     struct error *err);

#endif
