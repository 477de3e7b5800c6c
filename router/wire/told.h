/* told - what the router itself tells the kubelet: replies of its own, and
 * what it adds to the home's.  Pure.
 *
 * All append to `out`, a soft text with a cap. */
#ifndef BIGA_ROUTER_WIRE_TOLD_H
#define BIGA_ROUTER_WIRE_TOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"
#include "router/wire/method.h"
#include "router/wire/request.h"

enum { TOLD_MAX = 16 << 20 }; /* bytes that a kubelet takes in one message */

/* Status: the home's, with handlers "" and `handler`, each once.  Our handler
 * has no features (user namespaces, recursive read-only mounts), so that the
 * kubelet refuses pods that need them. */
int told_status(struct proto_bytes home, const char *handler, struct str *out,
                struct error *err);

/* RunPodSandbox, CreateContainer; Exec, Attach, PortForward. */
void told_id(struct str *out, const char *id);
void told_url(struct str *out, const char *url);

/* What a container's status, as it is told, says of its state and its times:
 * fields of a ContainerStatus, to be put behind another's id. */
int told_end(struct proto_bytes reply, struct str *out, struct error *err);

/* A list: the home's reply (empty for a further message of a Stream…), then
 * the items of each remote that pass the filter.  All together are at most
 * TOLD_MAX, and what is left out the kubelet takes for gone.  So when it is too
 * much, all remotes may have the same: one that tells a lot takes nothing from
 * others.
 *
 *     struct told_list l = {.method = m, .filter = f, .out = out};
 *     told_list_begin(&l, home, sizes, n, err);
 *     for each remote { told_list_remote(&l); for each item told_list_add(…); }
 */
struct told_list {
    const struct method *method;
    const struct request_filter *filter; /* NULL: all */
    struct str *out; /* when it overflows, it is none: memory lacked */
    size_t share;    /* bytes that each remote may have at most */
    size_t left;     /* of the present one */
    size_t n_left_out;
};
/* What an item takes there; of a remote all of them, filtered or not, are
 * added up. */
static inline size_t told_list_size(size_t message_size)
{
    return message_size + 6; /* a tag and a size */
}
/* -EMSGSIZE: the home's alone is too large; it is to be relayed as it is. */
int told_list_begin(struct told_list *l, struct proto_bytes home,
                    const size_t *sizes, size_t n_remotes, struct error *err);
void told_list_remote(struct told_list *l); /* the next remote's begin */
void told_list_add(struct told_list *l, const struct list_item *item);

#endif
