/* request - what a call of the kubelet is about: ids, the pod, the container,
 * the filter of a list.  Pure.
 *
 * First the key is read, which says whose it is; a request about something of
 * the home is looked at no further, and is relayed as it came. */
#ifndef BIGA_ROUTER_WIRE_REQUEST_H
#define BIGA_ROUTER_WIRE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/cri/cri_endpoint.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "router/wire/list_item.h"
#include "router/wire/method.h"
#include "router/wire/mount.h"

enum {
    REQUEST_SIZE_MAX = 16 << 20, /* bytes of a message */
    REQUEST_TEXT_MAX = 4096,     /* of one that is looked at */
    REQUEST_ALLOCATION_MAX = 16 << 10,
    REQUEST_LABELS_MAX = 64, /* of a filter */
};

/* Texts are never NULL; "" stands for absent. */
struct request_pod { /* PodSandboxConfig */
    bool present;
    const char *namespace, *name, *uid;
    uint32_t attempt;
    const char *hostname, *log_directory; /* of the home */
    const char *allocation;               /* annotation biga.dev/allocation */
    bool host_network;                    /* asked for by the pod */
};

struct request_container { /* ContainerConfig */
    bool present;
    const char *name;
    uint32_t attempt;
    const char *image, *user_image; /* the second as the pod has it */
    const char *log_path;           /* below the pod's log_directory */
    struct mount *mounts;           /* not judged yet */
    size_t n_mounts;
};

struct request_filter { /* of a list: all that is not "" or absent must hold */
    const char *id, *sandbox_id; /* or how it begins */
    bool has_state;
    uint32_t state;
    struct cri_pairs labels;
};

struct request {
    const char *id;         /* METHOD_BY_SANDBOX, _CONTAINER: of that; of
                             * CreateContainer the sandbox's */
    const char *handler;    /* METHOD_BY_HANDLER, _IMAGE */
    const char *image;      /* METHOD_BY_IMAGE */
    const char *allocation; /* METHOD_BY_IMAGE: annotation of the image */
    bool verbose;
    struct request_filter filter;
    /* of request_read_more() */
    struct request_pod pod;
    struct request_container container;
    struct arena arena; /* all texts */
};
/* Read the key.  -EPROTO: it is no such message; -EINVAL: a text that is
 * looked at is longer than the caps above, or no text; it is named. */
int request_read(const struct method *m, struct proto_bytes message,
                 struct request *ret_request, struct error *err);
/* Of one for a remote: check all of it, and read the pod and the container
 * that RunPodSandbox, CreateContainer and PullImage bring. */
int request_read_more(const struct method *m, struct proto_bytes message,
                      struct request *r, struct error *err);
void request_fini(struct request *r); /* of zeros: nothing */
#define cleanup_request __attribute__((__cleanup__(request_fini)))

/* Does an item of the list `m` pass?  What cannot be read does not. */
bool request_filter_passes(const struct request_filter *f,
                           const struct method *m,
                           const struct list_item *item);

#endif
