/* remote_saved - the last view of a remote in a file, for a router that starts
 * while the remote is away: without it the kubelet would take all that is there
 * for gone.
 *
 * It is not synced, and may be some seconds old or not there; it is never
 * believed of what is there now. */
#ifndef BIGA_ROUTER_REMOTE_REMOTE_SAVED_H
#define BIGA_ROUTER_REMOTE_REMOTE_SAVED_H

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "router/remote/remote_view.h"

enum { REMOTE_SAVED_MAX = 80 << 20 }; /* bytes */

/* The same as bytes; what is read is NULL when these are not as written. */
void remote_saved_write(const struct remote_view *v, struct str *out);
struct remote_view *remote_saved_read(const char *data, size_t size);

/* In place of the file; -errno names it.  Both block for the disk. */
int remote_saved_store(const struct remote_view *v, const char *path,
                       struct error *err);
/* NULL: there is none, or it is damaged. */
struct remote_view *remote_saved_load(const char *path);

#endif
