/* console_then - a page for which the history is asked: what is shown of it is
 * written on the history's thread, and the page goes out after that. */
#ifndef BIGA_EXTENDER_CONSOLE_CONSOLE_THEN_H
#define BIGA_EXTENDER_CONSOLE_CONSOLE_THEN_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/console/console_list.h"
#include "extender/console/console_reply.h"
#include "extender/history/history.h"
#include "extender/history/history_query.h"

/* Nodes whose names have `name` in them (NULL: all), of a status
 * (NODE_STATUSES: of any), on a leaf of now (NULL: on all). */
struct past_nodes {
    const char *name, *leaf;
    unsigned status;
};

struct console_then {
    struct history_question question; /* first */
    struct console_reply reply;       /* whose content goes on */
    /* On the history's thread; an error is shown. */
    int (*write)(struct console_then *t, struct history_reader *r,
                 struct error *err);
    int result;
    /* what it is about */
    enum history_kind kind; /* HISTORY_KINDS: of all */
    char *object;           /* "NS/NAME" …, or NULL */
    int64_t ms;             /* the moment that is shown */
    size_t limit;
    struct history_query query;
    struct console_list list;
    struct past_nodes wanted;
};

/* In place of console_end(): the reply is taken over, and what `t` asks is
 * written behind its content.  Takes `t` over, which is of xcalloc(). */
void console_then_end(struct console_then *t, struct console_reply *r);

/* The same of the moment that is asked for, when it is one. */
void console_then_past(struct console_then *t, struct console_reply *r);

/* The parameter "at", a moment of the past, is given. */
bool console_then_is_asked(const struct console_reply *r);
/* In place of console_end(), when it is: what the object was then. */
void console_then_show(struct console_reply *r, enum history_kind kind,
                       char *object);
/* The same of the whole fleet. */
void console_then_show_fleet(struct console_reply *r);

/* In place of console_end(): what happened to it stands at the end, newest
 * first, when a history is kept. */
void console_then_events(struct console_reply *r, enum history_kind kind,
                         char *object);

/* A table of events; `limit`: of those in a page of their list, 0: of few. */
void events_table_begin(struct str *out, size_t limit);
void events_table_row(struct str *out, const struct history_event *e);
void events_table_end(struct str *out);

#endif
