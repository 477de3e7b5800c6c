/* history_read - the side of the history that is asked.  One thread, beside the
 * one that writes; between history_read_begin() and _end() all is of one
 * moment of writing.  Texts that it gives live as long. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_READ_H
#define BIGA_EXTENDER_HISTORY_HISTORY_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/history/history_book.h"
#include "extender/history/history_event.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

struct history_reader;
int history_reader_open(const char *dir, struct history_reader **ret_reader,
                        struct error *err);
void history_reader_close(struct history_reader *r); /* NULL allowed */
DEFINE_CLEANUP(history_reader, struct history_reader *, history_reader_close)

int history_read_begin(struct history_reader *r, struct error *err);
void history_read_end(struct history_reader *r);
/* From here on others' pods and jobs than those of the scope have no names, and
 * their events are passed over.  NULL: all are seen.  Borrowed. */
struct scope;
void history_reader_see(struct history_reader *r, const struct scope *scope);
/* Has anything since history_read_begin() found damage (-EBADMSG)? */
bool history_read_was_damaged(const struct history_reader *r);

/* --- events --------------------------------------------------------------- */

enum {
    HISTORY_SCAN_MAX = 20000, /* events that one question looks at */
    HISTORY_PAGE_MAX = 1000,  /* that it gives */
};

/* Which events; NULL is any.  What an index finds is looked at only. */
struct history_filter {
    enum history_kind kind;     /* HISTORY_KINDS: any */
    enum history_reason reason; /* HISTORY_REASONS: any */
    const char *object;         /* with `kind` */
    const char *namespace;      /* of pods and jobs */
    const char *node;
    const char *job;            /* "NS/NAME": it and its pods */
    int64_t since_ms, until_ms; /* both included; 0: no end */
    uint64_t after; /* go on behind the event of this number; 0: begin */
    bool newest_first;
    size_t limit;
};
bool history_filter_passes(const struct history_filter *f,
                           const struct history_event *e);

typedef void history_event_f(void *ctx, const struct history_event *e);
/* `*ret_next`: what `after` is to be to go on; 0: that is all.  Fewer than
 * `limit` may be given before the end. */
int history_read_events(struct history_reader *r,
                        const struct history_filter *f, history_event_f *visit,
                        void *ctx, uint64_t *ret_next, struct error *err);

/* --- what was ------------------------------------------------------------- */

/* At `ms`.  The latest that was known of a node; false: nothing was. */
int history_read_node(struct history_reader *r, const char *node, int64_t ms,
                      struct history_node *ret_node, bool *ret_found,
                      struct error *err);
typedef void history_place_f(void *ctx, const struct history_place *p);
int history_read_places_of_node(struct history_reader *r, const char *node,
                                int64_t ms, history_place_f *visit, void *ctx,
                                struct error *err);
/* Newest first; of at most HISTORY_SCAN_MAX pods. */
int history_read_places_of_job(struct history_reader *r, const char *job,
                               int64_t ms, history_place_f *visit, void *ctx,
                               struct error *err);
/* None is visited when it had none. */
int history_read_place_of_pod(struct history_reader *r, const char *pod,
                              int64_t ms, history_place_f *visit, void *ctx,
                              struct error *err);

/* All nodes that are remembered, in the order of their bytes; the caller frees
 * the array, not the names. */
int history_read_nodes(struct history_reader *r, const char ***ret_names,
                       size_t *ret_n, struct error *err);
/* Is anything of it remembered? */
int history_read_knows(struct history_reader *r, enum history_kind kind,
                       const char *object, bool *ret_known, struct error *err);
/* Of the newest pods, or jobs, that are remembered the one whose name is
 * nearest; NULL: none is near. */
int history_read_guess(struct history_reader *r, enum history_kind kind,
                       const char *object, const char **ret_guess,
                       struct error *err);
/* When the oldest event was, whoever sees it; 0: there is none. */
int history_read_oldest(struct history_reader *r, int64_t *ret_ms,
                        struct error *err);

#endif
