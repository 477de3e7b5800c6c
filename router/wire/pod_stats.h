/* pod_stats - what pods of a remote use, made of what their containers use: a
 * runtime itself says it of none when one has no control group of a kubelet,
 * and on a remote none has.  Pure. */
#ifndef BIGA_ROUTER_WIRE_POD_STATS_H
#define BIGA_ROUTER_WIRE_POD_STATS_H

#include "router/wire/from_remote.h"

/* `containers` is a remote's reply of ListContainerStats.  Appends one of
 * ListPodSandboxStats as that remote would say it, for from_remote_list():
 * containers that are wrong or not known are left out.  `only`: the stats of
 * that sandbox, also without containers, for from_remote_stats(); NULL: of all
 * that have some. */
int pod_stats_write(struct proto_bytes containers, const struct known *known,
                    const char *only, struct str *out, struct error *err);

#endif
