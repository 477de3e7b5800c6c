/* rsh - a command in a host pod, as rsh and ssh run one on a host: its input,
 * output and exit status are ours, and so are signals. */
#ifndef BIGA_CLI_POD_RSH_H
#define BIGA_CLI_POD_RSH_H

#include <stdbool.h>

#include "cli/base/cli.h"

/* --- where: rsh.c -------------------------------------------------------- */

/* The host pod of a job that is meant by `host`: that of this name, else the
 * one of the lowest rank on the node of this name.  `job` is the server's
 * answer to /v1/jobs/NAMESPACE/NAME. */
struct rsh_pod {
    const char *name, *node; /* of the answer */
    int rank, n_others; /* of the job on that node, when a node was named */
};
/* False when there is none; `known` is appended the nodes that there are. */
bool rsh_find_pod(const cJSON *job, const char *host, struct rsh_pod *ret_pod,
                  struct str *known);

/* --- the stream: rsh_stream.c -------------------------------------------- */

struct rsh_stream {
    const char *url; /* where the runtime streams it, on loopback */
    bool input;      /* our standard input is for it, as rsh_input_pack() */
    void (*signalled)(void *ctx, int signal, long pid); /* pid: of the command,
                                                         * as it says first */
    void *ctx;
};
/* Until the command ends: 0 and its exit status; or -errno. */
int rsh_stream_run(const struct rsh_stream *s, int *ret_code,
                   struct error *err);

/* Signals that are passed on are from now on seen by rsh_stream_run() alone. */
void rsh_signals_hold(void);

/* Is it http://127.0.0.1:PORT/… or http://[::1]:PORT/…?  0, or -EINVAL. */
struct rsh_url {
    bool v6;
    uint16_t port;
    const char *path; /* in the URL */
};
int rsh_url_read(const char *url, struct rsh_url *ret_url, struct error *err);

#endif
