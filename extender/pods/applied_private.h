/* What the files of pods share. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_PRIVATE_H
#define BIGA_EXTENDER_PODS_APPLIED_PRIVATE_H

#include <pthread.h>

#include "extender/pods/applied.h"

struct applied {
    struct demand_config demand;
    pthread_mutex_t lock;
    struct pod_set *set;
    struct {
        void (*changed)(void *ctx);
        void *ctx;
    } watchers[APPLIED_WATCHERS_MAX];
    size_t n_watchers;
    void (*gone)(void *ctx, const struct applied_pod *p); /* or NULL */
    void *gone_ctx;
};

/* With the lock held: the set, with nobody else looking at it, under its next
 * version. */
struct pod_set *applied_writable(struct applied *p);
void applied_tell(const struct applied *p);

/* A copy with a reference, to be changed before anybody else has it. */
struct applied_pod *applied_pod_copy(const struct applied_pod *p);
/* Are they the same but for what we gave them? */
bool applied_pod_same(const struct applied_pod *a, const struct applied_pod *b);

/* Add or replace by name (a reference is taken), remove (when it is there). */
void pod_set_put(struct pod_set *s, struct applied_pod *p);
void pod_set_remove(struct pod_set *s, const char *namespace, const char *name);
void pod_set_put_config(struct pod_set *s, struct applied_config *c);
void pod_set_remove_config(struct pod_set *s, bool secret,
                           const char *namespace, const char *name);

#endif
