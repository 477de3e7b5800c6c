/* past - lists of the past, and what they share with all pages of the past:
 * what the history says in JSON. */
#ifndef BIGA_EXTENDER_CONSOLE_PAST_H
#define BIGA_EXTENDER_CONSOLE_PAST_H

#include "extender/console/console_then.h"
#include "lib/base/json.h"

/* "" when there is none. */
const char *past_text(const cJSON *object, const char *key);
const cJSON *past_list(const cJSON *object, const char *key);

/* When it was, and the way back to now. */
void past_write_banner(struct console_then *t);
/* All nodes that there were, by name. */
typedef void past_node_f(void *ctx, const cJSON *node);
int past_each_node(struct history_reader *r, int64_t ms, past_node_f *visit,
                   void *ctx, struct error *err);

/* In place of console_end(), the list being taken over: the nodes then. */
void past_show_nodes(struct console_reply *r, struct console_list *list,
                     const struct past_nodes *wanted);
/* Jobs that had places, and pods that were refused one. */
void past_show_jobs(struct console_reply *r, struct console_list *list);
void past_show_pending(struct console_reply *r, struct console_list *list);

#endif
