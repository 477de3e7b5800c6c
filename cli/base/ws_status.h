/* ws_status - what a container runtime says at a command's end in
 * v4.channel.k8s.io. */
#ifndef BIGA_CLI_BASE_WS_STATUS_H
#define BIGA_CLI_BASE_WS_STATUS_H

#include <stddef.h>

#include "lib/base/error.h"

/* A command's exit status, 0 to 255, from the Status object of channel 3.
 * -EIO: the runtime could not run it, and the text says why; -EPROTO. */
int ws_status_read(const char *json, size_t size, int *ret_code,
                   struct error *err);

#endif
