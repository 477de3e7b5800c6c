/* prep - configures a card before a pod uses it: the number of its virtual
 * functions (SR-IOV, through sysfs), the pod's scalable functions (by devlink),
 * then the operator's hook.
 *
 * Blocks until it is done; one call per card at a time, calls for different
 * cards may run beside each other.  Nothing is done twice that is right
 * already, but a hook: it runs each time, so it must be idempotent.
 *
 * A hook is never cut off but by its deadline.  When this process ends, in
 * whatever way, it goes on by itself.  The next call for the card waits for
 * its end (the file DIR/hook-CARD is locked by whoever runs for the card, and
 * says what was begun), tells that its end is not known, and runs its own. */
#ifndef BIGA_ADVERTISER_ACT_PREP_PREP_H
#define BIGA_ADVERTISER_ACT_PREP_PREP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/pod/prepare.h"

enum {
    PREP_HOOK_MS = 600000,  /* a hook that runs longer is killed */
    PREP_KEEP_MS = 50,      /* keep() is asked about that often */
    PREP_LOG_MAX = 1 << 20, /* bytes of hook-CARD.log; then it begins anew */
    PREP_OUTPUT_MAX = 4096, /* bytes at its end that the message is of */
    PREP_MESSAGE_MAX = 512, /* for a person */
    PREP_ENV_MAX = 8,
    PREP_SF_MS = 10000, /* one command, and until a device is there */
};

struct prep_config {
    const char *sysfs;     /* NULL: "/sys" */
    const char *dev;       /* NULL: "/dev" */
    const char *hooks_dir; /* the operator's executables; NULL: none */
    const char *dir;       /* where hook-CARD and hook-CARD.log (what it wrote)
                            * lie, mode 0700; NULL: nothing is kept (tests) */
    int64_t hook_ms;       /* 0: PREP_HOOK_MS */
    const char *devlink;   /* the command; NULL: "devlink", as the shell finds
                            * it */
    int64_t sf_ms;         /* 0: PREP_SF_MS */
};

struct prep_request {
    const char *card;            /* its id, "card-0000-17-00" */
    const char *pci;             /* its lowest function, "0000:17:00.0" */
    const char *namespace, *pod; /* whom it is for */
    int sriov_vfs;               /* 0 … PREPARE_VFS_MAX; < 0: as it is */
    int sfs;                     /* 0 … PREPARE_SFS_MAX; of the pod: */
    const char *uid;             /* of it; with sfs */
    const char *hook;            /* PREPARE_HOOK; "" or NULL: none */
    const char *const *env;      /* "NAME=VALUE", what else the hook is told;
                                  * NULL-terminated, at most PREP_ENV_MAX;
                                  * NULL: nothing */
    bool in_use;                 /* another pod of ours uses the card */
    /* Asked while a hook runs or is waited for; false: wait no longer, this
     * process is to end.  The hook is left to itself then.  The caller may do
     * other short work there.  NULL: waits for its end. */
    bool (*keep)(void *ctx);
    /* Are scalable functions of that pod to stay?  NULL: all. */
    bool (*knows)(void *ctx, const char *uid);
    void *ctx;
};

struct prep_outcome {
    const char *reason; /* a constant: "" when the card is prepared, else a
                         * word of schema/pod.md */
    char message[PREP_MESSAGE_MAX]; /* what was done; what to do next */
    bool again;       /* may be otherwise later, without anybody's doing */
    bool waits;       /* again, and others are in the way: nothing failed */
    bool vfs_changed; /* the card was given another number of them */
    bool hook_ran;
    bool hook_unknown; /* an earlier hook of this card was begun, and how it
                        * ended is not known */
    int exit_status;   /* of the hook, -1 when a signal ended it */
    int signal;        /* that ended it, else 0 */
    int64_t hook_ms;   /* how long it ran */
};

/* The scalable functions of a pod go; one that has none is a success.  What
 * cannot be removed (-errno) stays written down, and is removed with the next
 * request for the card whose knows() does not know the pod. */
int prep_sfs_end(const struct prep_config *config,
                 const struct prep_request *request, struct error *err);
/* Their devices, as in /sys/bus/auxiliary/devices, with ',' between. */
int prep_sfs_names(const struct prep_config *config,
                   const struct prep_request *request, struct str *ret_names,
                   struct error *err);

/* Whether the hook may run at all; *ret_outcome has the reason when not. */
void prep_hook_check(const struct prep_config *config,
                     const struct prep_request *request,
                     struct prep_outcome *ret_outcome);

/* 0 when it was carried out or refused, as `*ret_outcome` says; -ECANCELED
 * when keep() said so (the hook may run on then, and counts as begun); -errno
 * when what was begun could not be written down (nothing was run then). */
int prep_run(const struct prep_config *config,
             const struct prep_request *request,
             struct prep_outcome *ret_outcome, struct error *err);

#endif
