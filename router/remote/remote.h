/* remote - the runtime of one remote, as it is known here: whether it answers,
 * what it has, and calls to it.
 *
 * Its thread keeps its lists, statuses and stats, lets keep agree with what is
 * listed, and sweeps; while it is ready the beat (remote_beat.h) probes it.
 * Who reads gets what is known at once, also while the remote is frozen or
 * away; only what says so waits for the remote, and then for its deadline at
 * most.  Any thread may call anything. */
#ifndef BIGA_ROUTER_REMOTE_REMOTE_H
#define BIGA_ROUTER_REMOTE_REMOTE_H

#include "advertiser/act/card/card.h"
#include "advertiser/act/card/health.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "router/keep/keep.h"
#include "router/remote/remote_call.h"
#include "router/remote/remote_view.h"

struct remote;
struct remote_beat;

enum {
    REMOTE_LIST_MS = 1000,   /* between lists while it has pods; of containers
                              * alone, when nothing else has happened */
    REMOTE_WHOLE_MS = 10000, /* then of all */
    REMOTE_SWEEP_MS = 10000, /* while it has none, or tells events */
    REMOTE_STATS_MS = 10000, /* between stats, while somebody asks for them */
    REMOTE_ANSWER_MS = 5000, /* of the lists that a making call looks at */
};

struct remote_change {
    enum cri_event_kind kind; /* of a sandbox CREATED … DELETED likewise */
    bool sandbox;
    char id[KEPT_ID_MAX + 1], sandbox_id[KEPT_ID_MAX + 1];
};

struct remote_config {
    struct act_place place;     /* copied */
    const char *cluster, *node; /* our labels; copied */
    const char *spared; /* how uids of pods begin that are nobody's business
                         * here (the helper's); copied */
    struct keep *keep;  /* outlives it */
    const char *state;  /* a folder that is there, for what it had last; copied;
                         * NULL: a router that starts while it is away knows
                         * nothing of it */
    struct remote_beat *beat;  /* outlives it; NULL: its thread asks alone */
    int64_t probe_ms, lost_ms; /* as health_init() */
    /* Has the home a sandbox or container of that id?  1, 0, or -errno: nobody
     * knows.  May block, for a while; NULL: it has none.  A remote that could
     * take such an id would be called in its place. */
    int (*home_has)(void *ctx, const char *id, struct error *err);
    /* On its thread, with no lock held, after the view has it; the kubelet is
     * to be told by GetContainerEvents.  Must not block; NULL: nobody. */
    void (*changed)(void *ctx, struct remote *r, const struct remote_change *c);
    /* It became ready, suspect or lost.  The same rules. */
    void (*health)(void *ctx, struct remote *r, enum act_health health);
    void *ctx;
};

/* Blocks for no answer.  -EINVAL: the place cannot be called; -EAGAIN: there is
 * no thread to be had. */
int remote_start(const struct remote_config *config, struct remote **ret_remote,
                 struct error *err);
/* Calls that are under way are cut off, later ones are -ECANCELED, and nobody
 * is told anything when it returns.  NULL allowed; remote_destroy() follows. */
void remote_stop(struct remote *r);
/* Nobody uses it any more. */
void remote_destroy(struct remote *r);
DEFINE_CLEANUP(remote, struct remote *, remote_destroy)

const char *remote_name(const struct remote *r);
const struct act_place *remote_place(const struct remote *r);
/* `ret_reason` (may be NULL): why it is not ready, "" when it is. */
enum act_health remote_health(struct remote *r,
                              char ret_reason[ACT_MESSAGE_MAX]);

/* What is known of it; never NULL.  Before the first listing it is what the
 * router of before knew, or empty, and remote_view_time() is 0. */
struct remote_view *remote_view(struct remote *r);
/* Its last stats; the first asks begin to have them fetched.  As above. */
struct remote_stats *remote_stats(struct remote *r);

/* So far. */
struct remote_counts {
    uint64_t n_adopted, n_rebuilt, n_gone; /* keep.h */
    uint64_t n_orphans;                    /* removed: they were nobody's */
};
void remote_count(struct remote *r, struct remote_counts *ret_counts);

/* Something was changed there: look soon.  remote_fresh() waits for a listing,
 * with its statuses, that was begun after the call, until clock_ms() is
 * `due_ms`: -ETIMEDOUT; at once -EHOSTDOWN when it is not ready. */
void remote_touch(struct remote *r, const char *id);
int remote_fresh(struct remote *r, int64_t due_ms, struct error *err);

#endif
