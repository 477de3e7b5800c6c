/* What the files of pair_rules share: a pair as the watch has shown it, and the
 * next thing to do about it. */
#ifndef BIGA_EXTENDER_LEADER_PAIR_RULES_PRIVATE_H
#define BIGA_EXTENDER_LEADER_PAIR_RULES_PRIVATE_H

#include "extender/leader/pair_rules.h"

enum { NEVER_TOLD = -1 };

struct member {
    char uid[DEMAND_UID_MAX + 1];
    char *namespace, *name, *owner_uid, *buddy, *paired_uid, *node;
    enum pod_role role;
    enum pod_phase phase;
    bool deleting, ready;
    int xpu_ready;     /* the host pod's condition: 0, 1 or NEVER_TOLD */
    uint64_t no_buddy; /* as in kube_pod */
    struct pair *pair;
    int64_t deleted_ms, marked_ms; /* when that was written; 0: never */
};

struct pair {
    char key[DEMAND_PAIR_KEY_MAX];
    struct member **members; /* in the order in which they were seen */
    size_t n, cap;
    bool had_host; /* a host pod of it was seen */
    bool lost;     /* an xPU pod was gone while the host pod ran */
    char lost_name[DEMAND_NAME_MAX + 1];
    int told; /* the condition last written to `told_uid`: 0, 1 or NEVER_TOLD */
    char told_uid[DEMAND_UID_MAX + 1];
    const char *told_reason;           /* NULL: another leader wrote it */
    uint64_t told_text;                /* hash of its text */
    unsigned restarts;                 /* of the buddy of `made_for` */
    char made_for[DEMAND_UID_MAX + 1]; /* a host pod; "" none */
    int64_t made_ms;                   /* when the last one was made */
    /* the host pod whose buddy could not be made; "": none */
    char unmade_for[DEMAND_UID_MAX + 1];
    char *unmade;          /* why, for people; NULL: it may pass */
    unsigned n_unmade;     /* times in a row */
    unsigned n_passing;    /* the last ones, by errors that pass */
    int64_t unmade_due_ms; /* not to be tried before */
    unsigned failures;     /* in a row */
    int64_t due_ms;        /* to be looked at; INT64_MAX: when it changes */
    size_t place;          /* in the heap, plus one; 0: not there */
};

static inline bool member_is_finished(const struct member *m)
{
    return m->phase == POD_SUCCEEDED || m->phase == POD_FAILED;
}

static inline bool member_is_alive(const struct member *m)
{
    return !member_is_finished(m) && !m->deleting;
}

/* NULL: there is none. */
const struct member *pair_running_host(const struct pair *pair);
struct member *pair_find(const struct pair *pair, const char *uid);

/* What is to be done now, if anything. */
bool pair_next(struct pair *pair, int64_t now_ms,
               struct pair_rules_action *ret_action);
/* Tells a text that has changed from one that has not. */
uint64_t pair_rules_text_hash(const struct pair_rules_action *a);
/* When pair_next() will have something if nothing changes; INT64_MAX: never. */
int64_t pair_wait(const struct pair *pair, int64_t now_ms);

#endif
