/* serve_far_list - what a list of the kubelet's has of one remote: its items,
 * as they are told.  Immutable and shared; it is kept, and made anew only when
 * the remote, or what is written down of it, has changed.  Any thread. */
#ifndef BIGA_ROUTER_SERVE_SERVE_FAR_LIST_H
#define BIGA_ROUTER_SERVE_SERVE_FAR_LIST_H

#include <stddef.h>

#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "router/wire/list_item.h"

struct far;
struct far_list;
/* ListPodSandbox, ListContainers and their Stream… alike. */
struct far_list *far_list(struct far *far, const struct method *m);
/* Lists of stats: `containers` is the remote's reply of ListContainerStats. */
struct far_list *far_list_stats(struct far *far, const struct method *m,
                                struct proto_bytes containers);
void far_list_unref(struct far_list *l); /* NULL allowed */
DEFINE_CLEANUP(far_list, struct far_list *, far_list_unref)
/* Its items, borrowed; and what all of them take in a reply. */
const struct list_item *far_list_items(const struct far_list *l, size_t *ret_n);
size_t far_list_size(const struct far_list *l);

#endif
