/* pod_verbs - the commands of `biga` that are all about streams to and from
 * pods; cli/verbs.c has the table with their names. */
#ifndef BIGA_CLI_POD_POD_VERBS_H
#define BIGA_CLI_POD_POD_VERBS_H

#include "cli/base/cli.h"

verb_f verb_cp;           /* cp.c */
verb_f verb_port_forward; /* forward.c */
verb_f verb_rsh;          /* rsh.c */

#endif
