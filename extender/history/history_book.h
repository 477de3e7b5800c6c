/* history_book - the side of the history that writes: events, who had which
 * place from when to when, and what nodes and their cards were.
 *
 * It knows what goes on, and so what is news of what it is told.  One thread;
 * whatever fails, the book is to be closed and opened again. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_BOOK_H
#define BIGA_EXTENDER_HISTORY_HISTORY_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/history/history_event.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

struct history_book;
/* In the directory, which is locked by the caller.  A file that is damaged, or
 * is none of ours, is set aside with a log event "history-damaged". */
int history_book_open(const char *dir, struct history_book **ret_book,
                      struct error *err);
/* It was found to be damaged: set it aside and begin a new one.  Nobody has it
 * open for writing. */
int history_book_renew(const char *dir, const struct error *why,
                       struct error *err);
/* What was not committed is lost. NULL allowed. */
void history_book_close(struct history_book *b);
DEFINE_CLEANUP(history_book, struct history_book *, history_book_close)
/* Read all of it; -EBADMSG: it is damaged. */
int history_book_check(struct history_book *b, struct error *err);

/* All that is told from here on is durable with the commit.  `now_ms` is the
 * wall clock. */
int history_book_begin(struct history_book *b, int64_t now_ms,
                       struct error *err);
int history_book_commit(struct history_book *b, struct error *err);
/* Nothing more is told: how often pods were refused, which commits write now
 * and then alone, is written. */
int history_book_finish(struct history_book *b, int64_t now_ms,
                        struct error *err);
/* The number of the newest event that was told. */
uint64_t history_book_newest(const struct history_book *b);
/* Give no number again that an earlier file gave. */
void history_book_go_on(struct history_book *b, uint64_t newest);

/* Refusals of one pod that differ in numbers alone are one, which is counted
 * up; so is one within HISTORY_REFUSALS_MS of another. */
enum { HISTORY_REFUSALS_MS = 1000 };
int history_book_event(struct history_book *b, const struct history_event *e,
                       struct error *err);

/* What happened to an object last, of the reasons of a mask (1 << reason);
 * HISTORY_REASONS: nothing is remembered. */
int history_book_last(struct history_book *b, enum history_kind kind,
                      const char *object, uint32_t reasons,
                      enum history_reason *ret_reason, struct error *err);

/* Visit the jobs of which was told last that places are held for them, as far
 * as the newest HISTORY_HELD_SCAN events say. */
enum { HISTORY_HELD_SCAN = 20000 };
int history_book_each_held(struct history_book *b,
                           void (*visit)(void *ctx, const char *job), void *ctx,
                           struct error *err);

/* A pod has a place from now on.  Texts are borrowed; `devices` are members of
 * a JSON object.  One that it had ends. */
struct history_place {
    const char *pod, *job, *node; /* as in an event; job "": none */
    int32_t pair;
    uint8_t role; /* enum pod_role */
    const char *devices;
    int64_t since_ms, until_ms; /* until 0: it has it */
};
int history_book_placed(struct history_book *b, const struct history_place *p,
                        struct error *err);
/* It has none; false: it had none. */
int history_book_freed(struct history_book *b, const char *pod, int64_t ms,
                       bool *ret_had, struct error *err);
/* Does it have exactly this? */
bool history_book_has(const struct history_book *b,
                      const struct history_place *p);

/* The node where it has a place; "": it has none. */
const char *history_book_where(const struct history_book *b, const char *pod);

/* What a node is from now on, when that is news.  `cards` is a JSON array. */
struct history_node {
    const char *node;
    int status; /* enum node_status, or HISTORY_NODE_GONE_STATUS */
    const char *cards;
    int64_t since_ms;
};
int history_book_node(struct history_book *b, const struct history_node *n,
                      struct error *err);
/* What it was told last; NULL: nothing.  Borrowed until it is told more. */
const struct history_node *history_book_node_now(const struct history_book *b,
                                                 const char *node);

/* Visit what goes on, without devices; nothing may be told meanwhile. */
void history_book_each_place(const struct history_book *b,
                             void (*visit)(void *ctx,
                                           const struct history_place *p),
                             void *ctx);
void history_book_each_node(const struct history_book *b,
                            void (*visit)(void *ctx,
                                          const struct history_node *n),
                            void *ctx);

/* Outside of a transaction: drop what ended before `before_ms`, which is not
 * after now, a part of it; `*ret_more`: there is more. */
int history_book_drop(struct history_book *b, int64_t now_ms, int64_t before_ms,
                      bool *ret_more, struct error *err);
/* The bytes that are in use; and the moment before which a sixteenth of all
 * events is. */
int history_book_size(struct history_book *b, int64_t *ret_bytes,
                      struct error *err);
int history_book_sixteenth(struct history_book *b, int64_t *ret_ms,
                           struct error *err);
/* When the oldest event was; 0: there is none. */
int history_book_oldest(struct history_book *b, int64_t *ret_ms,
                        struct error *err);

#endif
