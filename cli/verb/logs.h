/* logs - what pods on this host and its cards write, and commands in them. */
#ifndef BIGA_CLI_VERB_LOGS_H
#define BIGA_CLI_VERB_LOGS_H

#include "cli/base/cli.h"

/* Print what a container of the pod wrote, and with --follow what it writes.
 * `card` is where it must be; NULL: anywhere.  An exit code. */
int show_logs(struct cli *c, const char *pod, const char *card);
/* Run a command in it; the exit code is the command's. */
int run_command(struct cli *c, const char *pod, const char *card, int argc,
                char **argv);

#endif
