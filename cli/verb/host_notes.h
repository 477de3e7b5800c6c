/* host_notes - who has which device of a host, as the texts behind them in its
 * tree (host_tree()).  Pure. */
#ifndef BIGA_CLI_VERB_HOST_NOTES_H
#define BIGA_CLI_VERB_HOST_NOTES_H

#include "cli/verb/host.h"

struct host_notes {
    const struct host *host;
    char **texts; /* one per device, or NULL */
};

/* `allocations`: of any hosts, as the server lists them.  `job`: "NS/NAME" that
 * is known from around them, and left out; NULL: none is.
 * host_notes_fini() releases. */
void host_notes_init(struct host_notes *n, const struct host *host,
                     const cJSON *allocations, const char *job);
void host_notes_fini(struct host_notes *n);
#define cleanup_host_notes __attribute__((__cleanup__(host_notes_fini)))

#endif
