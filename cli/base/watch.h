/* watch - what a command shows is shown again whenever something has changed,
 * as the server's /v1/changes says, until SIGINT or SIGTERM.  A connection that
 * was lost is made again. */
#ifndef BIGA_CLI_BASE_WATCH_H
#define BIGA_CLI_BASE_WATCH_H

#include "cli/base/cli.h"

/* Append to c->out what is to be seen now, once more.  An exit code, after
 * saying on stderr what is wrong. */
typedef int watch_f(struct cli *c, void *ctx);

/* Called once, then after each change; what it appends is printed at once.
 * `untold`: also when the server says in silence that it is there, every 15 s,
 * for what no change tells of.  0 after a signal; else the exit code of what
 * cannot be helped by trying again. */
int watch_run(struct cli *c, watch_f *again, void *ctx, bool untold);
/* End it as a signal does; also in a handler of one. */
void watch_stop(void);

/* The same of what nothing tells the changes of: looked at every 2 s, until
 * that fails. */
int watch_again(struct cli *c, watch_f *again, void *ctx);

/* The same of what another stream of events says, each once. */
struct watch_stream {
    /* Append where it is, now that so much has come.  Of each connection. */
    void (*path)(void *ctx, struct str *path);
    /* Append to c->out what is to be seen of an event's data.  An exit code. */
    int (*take)(struct cli *c, void *ctx, const char *data);
    void *ctx;
};
int watch_stream(struct cli *c, const struct watch_stream *stream);

#endif
