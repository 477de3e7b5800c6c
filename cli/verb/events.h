/* events - what the verbs that look back have in common. */
#ifndef BIGA_CLI_VERB_EVENTS_H
#define BIGA_CLI_VERB_EVENTS_H

#include "cli/base/cli.h"

/* What KIND/NAME names: "node/N", "card/N/ADDRESS", "pod/[NS/]P", "job/[NS/]J";
 * the namespace is that of --namespace, else "default". */
struct history_name {
    const char *kind; /* "node" … */
    char *object;     /* "N", "N/ADDRESS", "NS/P" */
};
/* CLI_USAGE, after saying so on stderr, when it is none; `ret->object` is the
 * caller's. */
int history_name_parse(struct cli *c, const char *text,
                       struct history_name *ret);
/* Append the parameters of /v1/events for what has to do with it: of a node
 * also its cards and pods, of a job its pods. */
void history_name_add_query(struct str *path, const struct history_name *n);

#endif
