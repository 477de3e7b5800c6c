/* advice_private - what the parts of advice share. */
#ifndef BIGA_EXTENDER_JUDGE_ADVICE_PRIVATE_H
#define BIGA_EXTENDER_JUDGE_ADVICE_PRIVATE_H

#include "extender/judge/advice.h"

/* Decisions that the search for one kind of change makes at most. */
enum { ADVICE_TRIES = 4096 };

/* A ready node that could be changed; nodes with equal states are one. */
struct spot {
    int32_t node;
    enum reason reason;             /* why not as it is */
    const struct node_state *state; /* as the pod sees it */
    uint16_t must, within;
};

/* Cores and memory to free, as one number that grows with the number of
 * cards, then of cores, then of MiB. */
#define FREE_NEVER UINT64_MAX

/* A lower bound of advice_free(), by the cards' numbers alone. */
uint64_t advice_free_bound(const struct spot *spot, const struct demand *d);
/* The least to free on the spot's cards so that `d` fits, and on which of
 * them; FREE_NEVER when that does not help or is not less than `below`.
 * `*tries` is counted down and ends the search at 0. */
uint64_t advice_free(const struct spot *spot, const struct demand *d,
                     uint64_t below, unsigned *tries, uint16_t *ret_cards);
/* Fill in node, cards and amounts for the cards that advice_free() found. */
void advice_free_change(const struct spot *spot, const struct demand *d,
                        uint16_t cards, struct change *ret_change);
/* The least CPUs to free on one NUMA node so that `d` fits: milli CPUs and
 * the os index; 0 when that does not help. */
uint32_t advice_free_cpus(const struct spot *spot, const struct demand *d,
                          int16_t *ret_numa);
/* The state once a change of FREE or FREE_CPUS was made. */
struct node_state advice_freed(const struct node_state *state,
                               const struct change *change);

/* Pods of the node that could be deleted: nobody's service, not of the pair
 * itself (by its key) or of the job (NULL: none), no place that is only held.
 * At most ADVICE_GONE_MAX. */
size_t advice_deletable(const struct node *node, const char *pair_key,
                        const char *job, const struct allocation **ret);
/* The key of the job that an allocation is of, see job_key(). */
bool advice_is_of_job(const struct allocation *a, const char *job);

/* --- jobs --------------------------------------------------------------- */

/* A job that has no plan, and what it is tried with.  A plan costs about as
 * many steps as there are different states, nodes and pairs; the sum over all
 * trials is bounded. */
struct job_search {
    const struct snapshot *snapshot;
    const struct demand *pod;
    struct job_input in;
    struct plan_refusal refusal;
    struct advice *advice;
    char job[JOB_KEY_MAX];
    uint64_t steps, steps_per_plan;
};
/* Is there a plan, with `in` as it is now?  `_changed`: also the states of its
 * nodes, or which of them there are. */
bool job_search_fits(struct job_search *j);
bool job_search_fits_changed(struct job_search *j);
/* What others hold or have: LEASE, FREE, FREE_CPUS; RELEASE, JOB_END. */
void job_search_take_little(struct job_search *j);
void job_search_take_more(struct job_search *j);

/* How much more quota `d` (of a planned pod: its whole job) needs in `policy`,
 * whose quota of the namespace is raised on the way; false when no quota
 * helps. */
bool advice_raise_quota(const struct snapshot *s, const struct demand *d,
                        const struct allocation *former, struct policy *policy,
                        struct namespace_use *ret_more);

/* Add a change to the end. */
void advice_add(struct advice *advice, const struct change *change);

/* --- asking for less: CHANGE_ALIGN … CHANGE_CARDS ----------------------- */

/* What is asked now; for EXCLUSIVE 1 or 0. */
uint64_t demand_amount(const struct demand *d, enum change_kind kind);
void demand_set_amount(struct demand *d, enum change_kind kind, uint64_t value);

/* Does it fit when `value` is asked for? */
typedef bool fits_f(void *ctx, enum change_kind kind, uint64_t value);
/* The value nearest to what `d` asks with which it fits; false when none
 * does. */
bool advice_lessen(const struct demand *d, enum change_kind kind, fits_f *fits,
                   void *ctx, uint64_t *ret_value);
#endif
