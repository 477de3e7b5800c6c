/* helper - the pod of biga-card on a remote, which writes files and reads logs
 * there: found again, or made, when somebody needs it.
 *
 * It is nobody's pod: its labels are those of all that is ours, its uid is
 * "biga-helper-REMOTE", and the kubelet is not told of it.
 *
 * Any thread; only helper_ready() blocks, for calls of the remote: one thread
 * makes it, others wait for that one. */
#ifndef BIGA_ROUTER_SERVE_HELPER_H
#define BIGA_ROUTER_SERVE_HELPER_H

#include <stdbool.h>

#include "advertiser/cri/cri.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

#define HELPER_UID "biga-helper-" /* and the remote's name */

enum {
    HELPER_LIST_MS = 5000,
    HELPER_MAKE_MS = 60000,
    HELPER_PULL_MS = 300000,
};

/* Copied. */
struct helper_config {
    const char *image;    /* with /biga-card in it */
    const char *card_dir; /* there: files and logs of pods are below it */
    const char *cluster, *node;
    const char *remote;
};

struct helper;
struct helper *helper_create(const struct helper_config *config);
/* The pod stays. NULL allowed. */
void helper_destroy(struct helper *h);
DEFINE_CLEANUP(helper, struct helper *, helper_destroy)

/* The id of its container, which runs; `cri` is the caller's own connection.
 * -ENOENT: its image is not there and cannot be pulled; others as calls of
 * cri.h say them. */
int helper_ready(struct helper *h, struct cri *cri, char ret_id[CRI_ID_MAX + 1],
                 struct error *err);
/* The same as last known, without a call; false: it is not known to run. */
bool helper_known(struct helper *h, char ret_id[CRI_ID_MAX + 1]);
/* A call of that container has failed because it is not there or does not run:
 * the next helper_ready() looks again. */
void helper_lost(struct helper *h, const char *id);

#endif
