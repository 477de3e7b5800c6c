/* helper - calls of biga-card, the program that Biga has on each card: a command
 * in the container of that name. */
#ifndef BIGA_ADVERTISER_ACT_CARD_HELPER_H
#define BIGA_ADVERTISER_ACT_CARD_HELPER_H

#include "advertiser/act/card/helper_args.h"
#include "advertiser/cri/cri.h"
#include "lib/base/error.h"

enum { HELPER_CALL_MS = 20000 }; /* the deadline of a call */

/* As cri_exec_sync(), in the container `id`. */
int helper_exec(struct cri *cri, const char *id, const char *const *argv,
                size_t n_argv, struct cri_exec *ret_exec, struct error *err);
/* The same; -EIO with biga-card's own words, and ret_exec->exit_code, when it
 * ends with an error. */
int helper_run(struct cri *cri, const char *id, const struct helper_args *args,
               struct cri_exec *ret_exec, struct error *err);
/* As cri_exec_fini(), and what was written is not left in memory. */
void helper_exec_wipe(struct cri_exec *exec);

/* The last lines of what biga-card says about a log: "bytes=SIZE", which must
 * be what came (an older one does not say it), and "next=OFFSET". */
int helper_next(const struct cri_exec *exec, uint64_t *ret_next,
                struct error *err);

#endif
