/* far - pods wherever they are, by way of the extender: their logs, commands in
 * them, their ports, files from and to them. */
#ifndef BIGA_CLI_POD_FAR_H
#define BIGA_CLI_POD_FAR_H

#include <stdbool.h>

#include "cli/base/cli.h"
#include "cli/base/pod_stream.h"

/* Is this host's advertiser to be asked (--socket, or its socket is there and
 * no server was named), and not the extender? */
bool far_is_here(const struct cli *c);

/* "/v1/pods/NS/NAME/verb"; options follow with '?'. */
void far_path(const char *pod, const char *verb, struct str *path);
/* The same with the container; options follow with '&'. */
void far_container_path(const struct cli *c, const char *pod, const char *verb,
                        struct str *path);

/* --- commands: far_exec.c ------------------------------------------------- */

/* Where a command's input comes from and its output goes; of a terminal -1. */
struct far_command {
    const char *const *argv; /* NULL-terminated; NULL: attach */
    bool input;              /* `in` is for it */
    bool tty;                /* our terminal, as it is */
    int in, out;             /* file descriptors */
};
/* Until it ends: its exit status, or an exit code after saying on stderr what
 * is wrong. */
int far_command_run(struct cli *c, const char *pod,
                    const struct far_command *command);

/* --- logs: far_logs.c ------------------------------------------------------ */

/* Of a pod, of all of a job ("job/NAME"), or (pod NULL) those that --selector
 * means.  An exit code. */
int far_logs(struct cli *c, const char *pod);

#endif
