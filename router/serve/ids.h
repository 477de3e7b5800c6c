/* ids - which sandboxes and containers are on remotes: known at once, and
 * durable, a file for each, before the kubelet hears of it.
 *
 * Any thread.  Looking up never waits for the disk. */
#ifndef BIGA_ROUTER_SERVE_IDS_H
#define BIGA_ROUTER_SERVE_IDS_H

#include <stddef.h>

#include "lib/base/error.h"
#include "router/serve/object.h"

enum { IDS_MAX = 8192 }; /* objects of all remotes: more is -ENOSPC */

struct ids;
/* The folder is made when it is missing; NULL: in memory alone (tests).  What
 * in it cannot be read is logged, and moved aside as FILE.bad. */
int ids_open(const char *dir, struct ids **ret_ids, struct error *err);
void ids_close(struct ids *s); /* NULL allowed */
DEFINE_CLEANUP(ids, struct ids *, ids_close)

/* Durable when it returns 0; a reference is taken.  One of that id is
 * replaced.  -EEXIST: it is on another remote. */
int ids_add(struct ids *s, struct object *o, struct error *err);
/* With a sandbox go its containers. */
void ids_remove(struct ids *s, const char *id);

/* A reference for the caller; NULL: it is not there. */
struct object *ids_find(struct ids *s, const char *id);
/* The same by what names it for the kubelet: the sandbox of a pod's attempt,
 * and with a name that container of the sandbox `id`. */
struct object *ids_find_pod(struct ids *s, const char *uid, uint32_t attempt);
struct object *ids_find_container(struct ids *s, const char *id,
                                  const char *name, uint32_t attempt);

/* References to all of a remote, sandboxes first; NULL: of all remotes.  The
 * caller gives the list to ids_list_free(). */
size_t ids_list(struct ids *s, const char *remote, struct object ***ret_list);
void ids_list_free(struct object **list, size_t n);

#endif
