/* What the files of volume_sync share.  One lock guards all of it; it is not
 * held over calls of remotes, nor while volumes are read. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_SYNC_PRIVATE_H
#define BIGA_ROUTER_VOLUME_VOLUME_SYNC_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/backoff.h"
#include "router/volume/volume_home.h"
#include "router/volume/volume_sync.h"
#include "router/volume/volume_watch.h"

/* Something that containers of a pod mount. */
struct sync_unit {
    struct volume_home home;
    char *at;       /* "memory/…", as in plans */
    uint64_t watch; /* 0: it never changes */
    bool dirty;     /* to be looked at, and delivered when it has changed */
    bool asked;     /* somebody waits for it */
    bool failed;    /* that was logged */
};

struct sync_pod {
    char *uid;
    struct sync_unit *
        *units; /* one stays where it is as long as the pod does */
    size_t n_units, cap;
    bool busy;          /* somebody delivers or removes */
    unsigned n_waiting; /* for that to end */
    bool forgotten;     /* all of it is to go */
    bool gone;          /* it has: whoever waits last frees it */
    bool failed;        /* to remove it, which was logged */
    int64_t due_ms;     /* what failed is tried again then */
    struct backoff backoff;
};

struct sync_remote {
    struct volume_sync *sync;
    char *name;
    pthread_t thread;
    pthread_cond_t wake; /* of the thread, and of who waits for it */
    unsigned lanes;      /* a bit for each that is taken */
    struct sync_pod **pods;
    size_t n_pods, cap;
    char **kept; /* of a sweep that is to be done; NULL: none */
    size_t n_kept;
    bool sweeping, ending;
    int64_t sweep_ms; /* when it is tried */
};

struct volume_sync {
    struct volume_sync_config config; /* its texts are ours */
    pthread_mutex_t lock;
    struct sync_remote *remotes[VOLUME_REMOTES_MAX];
    size_t n_remotes;
    struct volume_watch *watch;
    pthread_t watcher;
    bool ending;
    struct volume_sync_counts counts;
};

/* --- volume_sync_pod.c: with the lock ---------------------------------------- */

struct sync_pod *sync_pod_find(const struct sync_remote *r, const char *uid);
/* NULL: there are too many. */
struct sync_pod *sync_pod_get(struct sync_remote *r, const char *uid);
/* Wait until nobody else does anything with it, and be the one who does; false:
 * it is gone, or the end has come. */
bool sync_pod_take(struct sync_remote *r, struct sync_pod *pod);
void sync_pod_give(struct sync_remote *r, struct sync_pod *pod);
/* It goes from the table; it is freed as soon as nobody waits for it. */
void sync_pod_drop(struct sync_remote *r, struct sync_pod *pod);
void sync_pod_destroy(struct sync_pod *pod);
/* The unit of that name, taken over; watched from now on, and dirty.  `ours`:
 * the pod was taken; else a unit that is there stays as it is. */
void sync_pod_add(struct volume_sync *s, struct sync_pod *pod,
                  struct volume_home *home, bool ours);
/* It is of no use any more, and was not watched. */
void sync_pod_remove(struct sync_pod *pod, struct sync_unit *unit);

unsigned sync_lane_take(struct sync_remote *r);
void sync_lane_give(struct sync_remote *r, unsigned lane);

/* --- volume_sync_deliver.c: without the lock, by whoever took the pod -------- */

/* A pod's folders there, as the helper sees them. */
struct sync_place {
    struct volume_place place;
    char *disk, *memory;
};
void sync_place_init(struct sync_remote *r, const char *uid, unsigned lane,
                     struct sync_place *ret_place);
void sync_place_fini(struct sync_place *p);

/* Deliver the units that are dirty; those that cannot be read are logged, and
 * the others are delivered all the same.  The error is that of the remote, else
 * of a unit that somebody asked for; -EAGAIN: to be tried again. */
int sync_deliver(struct sync_remote *r, struct sync_pod *pod,
                 struct error *err);

/* --- volume_sync_thread.c ----------------------------------------------------- */

/* The remote's thread, and the watcher of all. */
void *sync_remote_run(void *arg);
void *sync_watcher_run(void *arg);

#endif
