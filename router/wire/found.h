/* found - the sandboxes and containers of ours that a remote's lists have, to
 * know again what is there.  Nothing of it is believed yet.  Pure. */
#ifndef BIGA_ROUTER_WIRE_FOUND_H
#define BIGA_ROUTER_WIRE_FOUND_H

#include <stdint.h>

#include "advertiser/cri/cri_endpoint.h"
#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "router/wire/from_remote.h"
#include "router/wire/method.h"

enum {
    FOUND_KEPT_MAX = 64 << 10,
    FOUND_LABELS_MAX = 256, /* more of one item are left out */
};

struct found {
    char id[FROM_REMOTE_ID_SIZE + 1];
    char sandbox_id[FROM_REMOTE_ID_SIZE + 1]; /* of a container, else "" */
    const char *name;                         /* of its metadata */
    uint32_t attempt;                         /* of its metadata */
    uint32_t state;     /* enum cri_container_state; of a sandbox 0: ready */
    int64_t created_ns; /* by the remote's clock */
    struct cri_pairs labels;
    const char *kept; /* annotation biga.dev/kept; "" none, or longer */
};
typedef void found_f(void *ctx, const struct found *found);
/* Call `visit` for each item of a reply of ListPodSandbox or ListContainers
 * that has all of `labels`.  What it gets is borrowed for the call; texts are
 * UTF-8.  An item that is wrong is left out and told in `err`: then 1.  -EPROTO
 * when the reply is none, or lists more than FROM_REMOTE_ITEMS_MAX. */
int found_read(const struct method *m, struct proto_bytes reply,
               struct cri_pairs labels, found_f *visit, void *ctx,
               struct error *err);

#endif
