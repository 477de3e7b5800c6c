/* change_command - what makes a pod that waits fit, as a command to copy.
 * Pure. */
#ifndef BIGA_EXTENDER_CONSOLE_CHANGE_COMMAND_H
#define BIGA_EXTENDER_CONSOLE_CHANGE_COMMAND_H

#include <stdbool.h>

#include "extender/judge/advice.h"
#include "lib/base/str.h"

/* `cluster`: pods are the API server's, and kubectl is what changes them; else
 * they were applied with `biga apply`. */
void change_command(const struct schedule *s, const struct change *change,
                    bool cluster, struct str *out);

#endif
