/* ws_client - what a client of a WebSocket draws by lot: its key, and the mask
 * of each frame. */
#ifndef BIGA_CLI_BASE_WS_CLIENT_H
#define BIGA_CLI_BASE_WS_CLIENT_H

#include <stddef.h>

#include "lib/base/str.h"
#include "lib/stream/ws_frame.h"

/* Append the value of a Sec-WebSocket-Key. */
void ws_client_add_key(struct str *out);
/* Append a frame as ws_frame_write() does, with a mask of its own. */
void ws_client_add_frame(enum ws_kind kind, const char *data, size_t size,
                         struct str *out);

#endif
