/* remote_private - what the files of remote share: remote.c begins and ends it
 * and has what others read, remote_thread.c asks it again and again,
 * remote_beat.c asks all of them, remote_due.c says when, remote_list.c reads
 * what it says, remote_call.c carries calls, remote_make.c those that make
 * something, remote_sweep.c removes what is of nobody, remote_events.c hears of
 * changes; remote_view.c and remote_saved.c have views.
 *
 * One lock, never held over a call; a view is changed by nobody. */
#ifndef BIGA_ROUTER_REMOTE_REMOTE_PRIVATE_H
#define BIGA_ROUTER_REMOTE_REMOTE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "advertiser/act/card/labels.h"
#include "lib/base/strmap.h"
#include "router/keep/sweep.h"
#include "router/remote/remote.h"
#include "router/remote/remote_beat.h"

enum {
    REMOTE_GAP_MS = 10, /* between the beginnings of two lists */
    REMOTE_STACK = 256 << 10,
    REMOTE_THREADS = 3,
    REMOTE_TOUCHED_MAX = 256, /* more: all statuses are asked for anew */
    REMOTE_ASKED_MS = 60000,  /* who asked for stats so long ago wants none */
    REMOTE_SAVE_MS = 1000,    /* between two times that a view is saved */
    REMOTE_LATE_MS = 4000,    /* then the thread does what the beat has not */
};

/* A status as it came, shared by views. */
struct remote_blob {
    atomic_uint refs;
    size_t size;
    char data[];
};
struct remote_blob *remote_blob(struct proto_bytes bytes);
struct remote_blob *remote_blob_ref(struct remote_blob *b);
void remote_blob_unref(struct remote_blob *b); /* NULL allowed */

/* What one was when it was listed last. */
struct remote_item {
    char id[KEPT_ID_MAX + 1], sandbox_id[KEPT_ID_MAX + 1];
    bool sandbox, slow; /* its status had no answer in time */
    uint32_t state;
    struct remote_blob *status; /* NULL: none, or there was no room for it */
};
struct remote_view {
    atomic_uint refs;
    int64_t time_ms, wall_ns;
    struct remote_blob *lists[2]; /* sandboxes, containers; NULL none yet */
    uint64_t sum; /* of the items of the second, in whatever order */
    size_t n;
    struct remote_item *items; /* by id */
};
struct remote_view *remote_view_create(void);
const struct remote_item *remote_view_item(const struct remote_view *v,
                                           const char *id);
struct remote_stats {
    atomic_uint refs;
    int64_t time_ms;
    struct remote_blob *containers;
};

/* A call that is under way, in remote_call(). */
struct remote_calling {
    struct remote_calling *next;
    const struct remote_ask *ask;
    struct grpc *grpc;
    bool cut; /* the remote was lost, or the router stops */
};

enum remote_verb { REMOTE_PROBE, REMOTE_LIST, REMOTE_PEEK, REMOTE_STATS };

/* A call about its health, and what came of it. */
struct remote_asked {
    enum remote_verb verb;
    unsigned ms; /* its deadline */
    int64_t sent_ms;
    int e;
    struct error err;
    uint64_t sum; /* of PEEK */
};

struct remote {
    struct remote_config config;
    char cluster[CRI_TEXT_MAX], node[CRI_TEXT_MAX], spared[CRI_TEXT_MAX];
    struct cri_pair labels[2];
    char *saved; /* the file; NULL: none */

    pthread_mutex_t lock;
    pthread_cond_t wake;  /* the thread */
    pthread_cond_t news;  /* who waits for it, or for his turn */
    pthread_cond_t sweep; /* that thread */
    bool stopping;
    pthread_t threads[REMOTE_THREADS];
    size_t n_threads;

    struct health health;
    bool judged; /* it has answered, or not, once */
    char reason[ACT_MESSAGE_MAX];
    int64_t since_ms; /* it is not ready */

    struct remote_view *view;
    uint64_t n_begun, n_done;   /* lists; of the newest that is in the view */
    uint64_t n_wanted;          /* one of that number is to be begun at once */
    int64_t list_ms;            /* the next is due; the last one began */
    int64_t begun_ms, whole_ms; /* … of any kind; of all */
    bool lacking;               /* some statuses are not known */
    bool events;                /* it tells them: lists are rare */
    bool deaf;                  /* not all of them */
    bool stirred; /* an event, or a call of ours, since the last list began */
    char touched[REMOTE_TOUCHED_MAX][KEPT_ID_MAX + 1];
    size_t n_touched;

    struct remote_stats *stats;
    int64_t stats_asked_ms, stats_ms; /* the last time; the next is due */

    struct sweep sweeping;
    struct remote_counts counts;

    struct grpc *grpc;            /* of the thread */
    bool asking;                  /* that is in use, also by the beat */
    bool own;                     /* the beat could not ask: the thread does */
    struct remote_member *member; /* of the beat; NULL: of none */
    int64_t sleeps_ms; /* the thread, until then; INT64_MIN: it does not */
    struct grpc_hub *hub;
    struct remote_calling *calls;
    size_t n_calls;
    struct grpc *idle[REMOTE_IDLE_MAX];
    size_t n_idle, n_spare; /* how many of them nobody needed */
};

struct cri_pairs remote_labels(const struct remote *r);

/* 0: the id may be this remote's; -EEXIST: it is the home's; others: nobody
 * knows.  Blocks. */
int remote_judge_id(struct remote *r, const char *id, struct error *err);

/* --- remote_list.c: blocks, on the thread ------------------------------------ */

/* What one listing brought; all of it is the caller's. */
struct remote_listed {
    struct seen seen; /* sorted */
    struct remote_view *view;
    uint64_t mark; /* of keep, before it was begun */
};
void remote_listed_fini(struct remote_listed *l);
/* `old` is the view of before, `touched` ids whose status is to be asked for
 * whatever it was; NULL: all. */
struct remote_touched {
    char (*ids)[KEPT_ID_MAX + 1];
    size_t n;
};
int remote_list(struct remote *r, const struct remote_view *old,
                const struct remote_touched *touched, unsigned ms,
                struct remote_listed *ret_listed, struct error *err);
/* Just the sum of its containers. */
int remote_peek(struct remote *r, unsigned ms, uint64_t *ret_sum,
                struct error *err);
void remote_peek_request(const struct remote *r, struct str *out);
uint64_t remote_peek_sum(const struct str *reply);
int remote_list_stats(struct remote *r, unsigned ms,
                      struct remote_stats **ret_stats, struct error *err);
/* Both lists of that pod, asked for at once by remote_call(). */
int remote_look(struct remote *r, const char *uid, unsigned ms,
                struct seen *ret_seen, struct error *err);
/* The same for one item, and no answer; one that is not there is a success. */
int remote_call_id(struct remote *r, enum method_id method, const char *id,
                   unsigned ms, struct error *err);

/* --- remote_due.c: with the lock --------------------------------------------- */

/* When to list again after a list that began then: all remotes at one time, so
 * that the processor wakes up once for all. */
int64_t remote_next_beat(int64_t begun_ms);
/* When the thread has to do something next, and what it is then: all that the
 * beat does not do, or has not done. */
int64_t remote_own_due(const struct remote *r, int64_t now,
                       enum remote_verb *ret_verb);
/* When the beat is to ask, and what; INT64_MAX: it is the thread's, or under
 * way. */
int64_t remote_beat_due(const struct remote *r, int64_t now,
                        enum remote_verb *ret_verb);
/* The thread wakes now, or if it would sleep longer than it may. */
void remote_rouse(struct remote *r, bool now);
void remote_begin(struct remote *r, struct remote_asked *ret_asked,
                  enum remote_verb verb, int64_t now);
/* Of all that says whether it is there. */
void remote_judge(struct remote *r, const struct remote_asked *a, int64_t now);
/* Of Version; whatever it answers, it is there: 0, or -errno. */
struct proto_bytes remote_probe_request(void);
int remote_probe_judge(int e, const struct grpc_end *end);

/* --- remote_beat.c ------------------------------------------------------------ */

void remote_beat_join(struct remote_beat *b, struct remote *r);
/* Waits for the call that is under way.  It may have joined none. */
void remote_beat_leave(struct remote *r);
/* Without the lock: it is to be asked then. */
void remote_beat_expect(struct remote_member *m, int64_t due_ms);

/* --- threads ------------------------------------------------------------------ */

void *remote_thread(void *remote);
void *remote_sweep_thread(void *remote);
void *remote_events_thread(void *remote);
/* With the lock: calls that are under way end; look soon what is there. */
void remote_cut_calls(struct remote *r);
void remote_want_list(struct remote *r);

#endif
