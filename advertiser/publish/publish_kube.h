/* publish_kube - the inside of the machine publish_kube (publish.h), for the
 * files it is made of and for tests.  publish_kube.c tells what it does.
 */
#ifndef BIGA_ADVERTISER_PUBLISH_PUBLISH_KUBE_H
#define BIGA_ADVERTISER_PUBLISH_PUBLISH_KUBE_H

#include "advertiser/publish/kube_objects.h"
#include "advertiser/publish/publish.h"
#include "advertiser/publish/retry.h"
#include "lib/kube/lease.h"

/* From here on a generation that we have not written ourselves is absurd: above
 * it there would soon be none left. */
#define KUBE_GENERATION_MAX (INT64_C(1) << 51)

enum {
    KUBE_MISSES = 3,         /* a Lease lasts for so many heartbeats */
    KUBE_PATIENCE = 4,       /* times its duration, then it is taken over */
    KUBE_TELL_MS = 500,      /* before the Node is annotated: the pods that this
                         * wakes are asked for at once, and whoever answers
                         * has to have seen what was written */
    KUBE_OFFER_MS = 3600000, /* what the API server has left out of what was
                              * written may be taken by now */
    KUBE_HEAL_MS = 100, /* from a notice to the check: what is deleted goes one
                         * by one */
};

enum kube_state {
    KUBE_NODE,
    KUBE_LEASE,
    KUBE_TAKE,
    KUBE_LIST,
    KUBE_CLAIM,
    KUBE_WRITE,
    KUBE_PRUNE,
    KUBE_TELL,
    KUBE_BEAT,
    KUBE_IDLE,
    KUBE_RELEASE,
    KUBE_WITHDRAW,
    KUBE_DONE,
    KUBE_STATES
};
const char *kube_state_name(enum kube_state state); /* "node" … */

/* Failures are counted apart where something else goes on meanwhile. */
enum kube_retry {
    RETRY_MAIN,
    RETRY_CHECK,
    RETRY_PRUNE,
    RETRY_TELL,
    RETRY_HEAL, /* its failures are checks that others made necessary */
    RETRIES
};

/* Slice `index` of ours. */
struct kube_slot {
    bool exists;
    bool known; /* as `version` it is what the topology and epoch say */
    bool write; /* it is to be written */
    int64_t generation;
    char version[KUBE_OBJECTS_TEXT_MAX + 1];
};

/* How DRA may give the devices of slice `index` (slice_get_given()). */
struct kube_given {
    uint64_t wanted;
    bool is_kept; /* the API server has answered our write: */
    uint64_t kept;
};

struct kube_surplus { /* a slice that is to be deleted */
    char name[SLICE_NAME_MAX + 1];
    char version[KUBE_OBJECTS_TEXT_MAX + 1];
};

struct kube_machine {
    struct publish_machine m;
    const struct publish_config *config;
    struct topo *topo;
    size_t n; /* slices that it takes */
    char hash[17];
    struct slice_epoch epoch;
    char holder[SLICE_BOOT_ID_MAX + PUBLISH_INSTANCE_MAX + 2];
    struct retry retries[RETRIES];

    enum kube_state state;
    bool sent;                             /* a request waits for its answer */
    int64_t begun_ms;                      /* when it was sent */
    int64_t beat_due, check_due, tell_due; /* in IDLE */

    char node_uid[KUBE_OBJECTS_TEXT_MAX + 1];
    struct kube_lease lease; /* as last read or written */
    bool held;               /* it has been ours, and is as far as we know */
    bool superseded;         /* it is somebody else's */
    bool was_another;        /* whom we took it from may still be writing */
    int64_t seen_ms;         /* superseded: when it was last seen to change */
    int64_t renewed_ms;      /* when the last renewal began */
    int64_t claimed;         /* generations up to this one are ours */
    int64_t used;            /* those up to this one have a content */
    int64_t highest;         /* of all slices there are */

    struct kube_slot slots[SLICE_POOL_SLICES_MAX];
    struct kube_given given[SLICE_POOL_SLICES_MAX];
    bool cut;           /* that some of it is left out was said */
    int64_t offered_ms; /* when one of our writes was last answered */
    struct kube_surplus *surplus;
    size_t n_surplus, surplus_cap;
    bool clear_first;   /* the surplus goes before anything is written */
    bool more;          /* there is more than was read */
    size_t index;       /* of the slice that WRITE or WITHDRAW is at */
    unsigned conflicts; /* since the last heartbeat */

    bool noticed;       /* others changed a slice while we were at it */
    bool contested;     /* that they do not stop was said */
    int64_t noticed_ms; /* when a notice last began a check; 0 never */
    int64_t calm_until; /* until then none does */
    int64_t healed_ms;  /* when a check last found something; 0 never */

    bool wrote;     /* a slice, since then */
    bool settled;   /* the slices are as they should be */
    bool must_tell; /* the Node is to be annotated */
};

/* --- what to do next: publish_kube.c ------------------------------------ */

void kube_move_to(struct kube_machine *k, enum kube_state state, int64_t due);
void kube_end(struct kube_machine *k);
void kube_go_idle(struct kube_machine *k);
/* The slices get a generation of their own; it is claimed first, unless one
 * is left over. */
void kube_begin_generation(struct kube_machine *k, int64_t due);
/* The Lease was renewed by the call that has just been answered. */
void kube_note_renewal(struct kube_machine *k, int64_t now_ms);
/* What is left to do after LIST, or after a part of it was done. */
void kube_proceed(struct kube_machine *k, int64_t now_ms);
void kube_settle(struct kube_machine *k, int64_t now_ms);

/* --- what the answers mean: publish_kube_answer.c ----------------------- */

void kube_answer(void *m, int64_t now_ms, const struct publish_answer *a);

/* --- the pool: publish_kube_pool.c -------------------------------------- */

/* What LIST brought: decides what is to be written and deleted, and whether
 * that needs another generation. */
enum kube_verdict { KUBE_KEEP, KUBE_RENEW, KUBE_CLEAR };
enum kube_verdict kube_judge(struct kube_machine *k,
                             const struct kube_objects_slices *there,
                             int64_t now_ms);
/* A slice was written, and this is the object as the API server has it. */
void kube_note_given(struct kube_machine *k, size_t index,
                     const struct publish_answer *a, int64_t now_ms);
/* Which of the pool's slices is called so; k->n: none. */
size_t kube_slot_of(const struct kube_machine *k, const char *name);
/* All slices are to be written, in a generation that nobody has used: what is
 * beyond them becomes surplus. */
void kube_rewrite(struct kube_machine *k);
void kube_surplus_add(struct kube_machine *k, const char *name,
                      const char *version);
void kube_surplus_clear(struct kube_machine *k);

/* --- what others do: publish_kube_heal.c -------------------------------- */

void kube_notice(void *m, const struct publish_notice *notice, int64_t now_ms);
/* Something was noticed: have a check at once, unless there were many. */
void kube_check_soon(struct kube_machine *k, int64_t now_ms);
/* A check has found that it is not as we left it, which was `before`. */
void kube_tell_change(struct kube_machine *k, const struct kube_slot *before,
                      const struct kube_objects_slices *there, int64_t now_ms);

/* --- what is sent: publish_kube_send.c ---------------------------------- */

/* The request of the machine's state. */
void kube_request(struct kube_machine *k, struct publish_request *ret_request);
/* What would help after this answer, as text for a person; NULL: nothing that
 * is known. */
const char *kube_hint(const struct kube_machine *k,
                      const struct publish_answer *answer, struct str *text);

#endif
