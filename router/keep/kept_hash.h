/* kept_hash - are two requests the same call, made again?  Pure.
 *
 * The kubelet writes maps in any order, and the path of a termination log has a
 * new random name in each call; the rest is the same when it repeats one. */
#ifndef BIGA_ROUTER_KEEP_KEPT_HASH_H
#define BIGA_ROUTER_KEEP_KEPT_HASH_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "router/wire/method.h"

/* Of the kubelet's RunPodSandbox or CreateContainer, as it came.  -EPROTO. */
int kept_hash(const struct method *m, struct proto_bytes request,
              uint64_t *ret_hash, struct error *err);

#endif
