/* What the files of the book share. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_BOOK_PRIVATE_H
#define BIGA_EXTENDER_HISTORY_HISTORY_BOOK_PRIVATE_H

#include "extender/history/history_book.h"
#include "extender/history/history_db.h"
#include "extender/history/history_names.h"
#include "lib/base/strmap.h"

/* A place that somebody has; numbers are those of texts. */
struct open_place {
    char *pod, *job, *node_name; /* the key, "" none, and where */
    uint64_t devices_hash;
    int64_t id, pod_id, job_id, node_id, devices_id, since_ms;
    int32_t pair;
    uint8_t role;
};

struct open_node {
    struct history_node told; /* its texts are the entry's own */
    char *node, *cards;
    int64_t node_id, cards_id;
};

/* An event, as its row has it. */
struct event_row {
    int64_t seq, at, kind, reason, object, node, job, pair, message, count,
        last;
};

/* The last refusal of a pod. */
struct refusal {
    char *pod;
    uint64_t likeness; /* of what it says, but for numbers */
    struct event_row row;
    bool counted; /* up, which is not written yet */
};

struct history_book {
    struct history_db db;
    struct history_names *names;
    int64_t newest_event, newest_place, newest_node;
    int64_t now_ms, day;
    int64_t dropped_hour; /* what nodes and texts were dropped before */
    bool begun;
    struct strmap places;   /* struct open_place by pod */
    struct strmap nodes;    /* struct open_node by name */
    struct strmap refusals; /* struct refusal by pod */
    int64_t flush_ms;       /* when refusals are to be written again */
};

/* The number of a text, which is used now. */
static inline int book_name(struct history_book *b, const char *text,
                            int64_t *ret_id, struct error *err)
{
    return history_names_put(b->names, text ? text : "", b->day, ret_id, err);
}

/* --- history_book_load.c: what goes on --- */
int book_load(struct history_book *b, struct error *err);
void book_forget(struct history_book *b);
/* Nodes that had gone before are not in the file any more, either. */
void book_forget_gone(struct history_book *b, int64_t before_ms);
void open_place_free(void *place); /* struct open_place */
/* Takes over the texts; in place of what was known of the node. */
void open_node_put(struct history_book *b, const struct open_node *n);

/* --- history_book_events.c --- */
/* Write how often pods were refused, as far as it is not written yet. */
int book_flush_refusals(struct history_book *b, struct error *err);
/* Nothing more is to be counted with what the pod was refused for. */
void book_forget_refusal(struct history_book *b, const char *pod);
void book_forget_refusals(struct history_book *b);

#endif
