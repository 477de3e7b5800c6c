/* What the files of the history's threads share. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_PRIVATE_H
#define BIGA_EXTENDER_HISTORY_HISTORY_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "extender/history/history.h"

/* Something that is to be written: one of the three. */
struct history_item {
    struct history_item *next;
    int64_t ms; /* when it came */
    struct snapshot *snapshot;
    struct pod_set *pods;
    struct history_event event; /* its texts stand behind the item */
};

struct history {
    struct history_config config;
    char *dir;
    int lock_fd;
    pthread_t writer, reader;
    bool writes, reads; /* the threads were started */

    /* the writing thread's alone */
    struct history_book *book; /* NULL: it failed, or was not opened yet */
    struct snapshot *base;     /* what was recorded last; NULL: nothing yet */
    struct pod_set *base_pods; /* the same */
    bool checked;              /* the file was read once, whole */
    bool known;                /* config.is_ready has said yes */
    int64_t again_ms;          /* not before: after a failure */
    int64_t look_ms;           /* when its age and size are looked at next */
    int64_t tell_ms;           /* when followers are told in any case */
    int64_t drop_ms;           /* what is older goes, bit by bit; 0: nothing */
    int64_t aside_bytes;       /* of damaged files, which count, too */

    atomic_uint generation; /* of the file: the reader opens it again */
    atomic_bool suspect;    /* the reader has found damage */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* for the writing thread */
    pthread_cond_t asked; /* for the reading thread */
    pthread_cond_t idle;  /* all was written */
    struct history_item *first, **last;
    struct history_item *newest;            /* snapshot that waits */
    struct history_item *newest_pods;       /* the same */
    uint64_t snapshot_number, pods_version; /* of the last that came */
    size_t n_snapshots, n_sets, n_events;
    bool stopping, busy, hurry;
    bool waiting; /* the thread is to be woken for an item */
    struct history_state state;
    struct history_question *questions, **last_question;
    size_t n_questions; /* those that are not apart */

    pthread_mutex_t follow_lock; /* held while followers are told */
    struct history_follower *followers;
};

/* The wall clock. */
int64_t history_now_ms(void);
void history_items_free(struct history_item *items);

/* --- history_write.c: the thread that writes --- */
/* Lock the directory and open the file. */
int history_open(struct history *h, struct error *err);
/* It cannot be written now: say so, and try again later.  Returns 0. */
int history_give_up(struct history *h, const struct error *why);
void *history_write_thread(void *ctx);
/* --- history_ask.c: the thread that answers --- */
void *history_read_thread(void *ctx);

#endif
