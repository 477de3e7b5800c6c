/* What the files of log_copier share: log_copier.c has what others call,
 * log_copier_table.c containers and remotes, log_copier_round.c the threads
 * that call remotes, log_copier_apply.c what they do with what comes. */
#ifndef BIGA_ROUTER_LOG_LOG_COPIER_PRIVATE_H
#define BIGA_ROUTER_LOG_LOG_COPIER_PRIVATE_H

#include <pthread.h>

#include "lib/base/backoff.h"
#include "lib/base/strmap.h"
#include "router/log/log_copier.h"
#include "router/log/log_sink.h"

struct log_container {
    char *key, *remote_path, *path;
    struct log_remote *remote;
    uint32_t tag;          /* another one when what is under way is void */
    struct log_sink *sink; /* of who has made it busy, without the lock */
    bool busy;
    bool ends; /* somebody waits for its end */
    bool done; /* all is in */
    bool told; /* a fault was logged */
    uint64_t next;
    int64_t retry_ms; /* its file could not be written: not before */
    /* what is before may go on the remote; was sent with that round; is gone */
    uint64_t freed, freed_sent, freed_done, sent_seq;
};

struct log_remote {
    char name[LOG_REMOTE_NAME_MAX + 1];
    struct log_copier *copier;
    bool cut;
    /* rounds of one chain */
    uint64_t gen, seq, applied;
    unsigned n_flight; /* of this chain */
    bool chatty, full; /* the last one brought something; as much as it could */
    unsigned wait_ms;  /* of the next */
    bool applying;     /* what one has brought */
    /* of what is to be followed, and what the newest round knows */
    uint64_t version, launched;
    struct backoff backoff;
    int64_t retry_ms;
    uint32_t last_tag;
    struct log_container *list[LOG_CONTAINERS_MAX]; /* tags rise */
    size_t n;
    pthread_cond_t wake; /* of its threads: something here has changed */
    pthread_t threads[LOG_LANES];
    unsigned n_threads, n_begun; /* n_begun: that know their lane */
    bool calling[LOG_LANES];
};

struct log_copier {
    struct log_copier_config config;
    char *pod_logs, *remote_dir;
    int root, states;
    pthread_mutex_t lock; /* of all that follows, and of what is above */
    pthread_cond_t wake;  /* of all others: something has changed */
    bool stopped, ended;
    struct strmap containers;
    struct log_remote *remotes[LOG_REMOTES_MAX];
    size_t n_remotes;
    struct log_copier_counts counts;
};

/* --- with the lock held --------------------------------------------------- */

struct log_container *log_copier_find(struct log_copier *c, const char *key);
/* The container of that key with its file for the caller alone; waits for it.
 * NULL: there is none, or the copier has stopped. */
struct log_container *log_copier_take(struct log_copier *c, const char *key);
void log_copier_give(struct log_container *k);
/* Give it another tag: what comes for the old one is passed over. */
void log_container_renew(struct log_container *k);
/* Among those of its remote, with a tag. */
void log_container_list(struct log_container *k);
void log_container_unlist(struct log_container *k);
/* The one of that name, made where it is not there. -EINVAL, -ENOSPC. */
int log_remote_make(struct log_copier *c, const char *name,
                    struct log_remote **ret_remote, struct error *err);
/* Who waits for something here, in its threads or elsewhere, looks again. */
void log_remote_wake(struct log_remote *r);
/* Its threads, where they do not run. */
int log_remote_begin(struct log_remote *r, struct error *err);

/* --- threads -------------------------------------------------------------- */

void *log_round_thread(void *remote);
/* The bytes of a round, whose turn it is, with the lock held; released to
 * write.  -EPROTO. */
int log_apply(struct log_remote *r, const struct cri_exec *exec, uint64_t seq,
              struct error *err);

#endif
