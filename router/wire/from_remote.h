/* from_remote - replies of a remote's runtime as the kubelet is to have them.
 * Pure.
 *
 * A remote is hostile: what it says of a pod's identity, labels, annotations,
 * paths and network is not believed but replaced by what the caller knows,
 * because the kubelet acts on it: it reads the files that log_path and mounts
 * name, and takes hooks from annotations.  Every known field is checked to be
 * of its type and to be UTF-8, because one that is not would make the kubelet
 * refuse all of a list.  Fields that are newer than Biga are copied as they
 * are; in lists and stats, of these only numbers, for the same reason.
 *
 * All append to `out`, a soft text with a cap; 0, -EPROTO that names what is
 * wrong, -EMSGSIZE (the cap), or -ENOMEM. */
#ifndef BIGA_ROUTER_WIRE_FROM_REMOTE_H
#define BIGA_ROUTER_WIRE_FROM_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/cri/cri_endpoint.h"
#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"
#include "router/wire/list_item.h"
#include "router/wire/method.h"

enum {
    FROM_REMOTE_ID_SIZE = 64, /* containerd's and CRI-O's: 64 of [0-9a-f] */
    FROM_REMOTE_ITEM_MAX = 512 << 10, /* bytes of one item of a list */
    FROM_REMOTE_ITEMS_MAX = CRI_OBJECTS_MAX,
    FROM_REMOTE_STATUS_MAX = 4 << 20,
    FROM_REMOTE_TEXT_MAX = 4096,   /* of one that is no label */
    FROM_REMOTE_REASON_MAX = 4096, /* reasons and messages are cut there */
    FROM_REMOTE_URL_MAX = 2048,
};
bool from_remote_id_valid(struct proto_bytes id);

/* What is known here.  Texts are borrowed, "" or NULL stands for none. */
struct known_sandbox {
    const char *id;
    const char *namespace, *name, *uid;
    uint32_t attempt;
    const char *handler; /* as the kubelet called it */
    bool host_network;   /* as it asked for */
    const char *address; /* the pod's; "": what the remote says, if that is an
                          * IP address */
    /* What from_remote_made() took from the kubelet's request; empty: that is
     * lost, and the remote's labels and annotations are taken but for those
     * that say whose it is. */
    struct proto_bytes made;
    /* When it was made, by our clock; 0: by the remote's, which need not know
     * the time.  The kubelet takes the newest for the one that counts. */
    int64_t created_ns;
};
struct known_container {
    const struct known_sandbox *sandbox;
    const char *id, *name;
    uint32_t attempt;
    const char *user_image; /* as the pod has it */
    const char *log_path;   /* here, absolute */
    struct proto_bytes made;
    /* As of a sandbox; what happened since is told as long after that as the
     * remote says, and not later than `now_ns`. */
    int64_t created_ns, now_ns;
};
/* To be kept with a sandbox or container: labels, annotations and mounts of
 * the kubelet's RunPodSandbox or CreateContainer, in a form of our own. */
int from_remote_made(const struct method *m, struct proto_bytes request,
                     struct str *out, struct error *err);
/* Call `visit` for each mount in it, a message Mount. */
void from_remote_made_mounts(struct proto_bytes made,
                             void (*visit)(void *ctx, struct proto_bytes mount),
                             void *ctx);

/* NULL: there is none of that id on this remote; it is left out.  What they
 * return has to last until the function that they were given to returns. */
struct known {
    const struct known_sandbox *(*sandbox)(void *ctx, const char *id);
    const struct known_container *(*container)(void *ctx, const char *id);
    void *ctx;
};

/* PodSandboxStatus and ContainerStatus.  One about another id than asked for
 * is -EPROTO. `known` is for containers in a sandbox's status; NULL: none.
 * Its time is left out, by which a kubelet would order what it knows. */
int from_remote_sandbox_status(struct proto_bytes reply,
                               const struct known_sandbox *s,
                               const struct known *known, struct str *out,
                               struct error *err);
int from_remote_container_status(struct proto_bytes reply,
                                 const struct known_container *c,
                                 struct str *out, struct error *err);

/* One item of a list, as it is told (told.h); borrowed for the call. */
typedef void from_remote_item_f(void *ctx, const struct list_item *item);
/* A reply of `m`, one of METHOD_MERGE, of either form (List…, Stream…).  An
 * item that is wrong, or of which two have the same id, is left out, counted,
 * and the first of them told in `err`: then 1. */
int from_remote_list(const struct method *m, struct proto_bytes reply,
                     const struct known *known, from_remote_item_f *visit,
                     void *ctx, struct error *err);

/* ContainerStats, PodSandboxStats. */
int from_remote_stats(const struct method *m, struct proto_bytes reply,
                      const struct known *known, struct str *out,
                      struct error *err);

/* ImageStatus, PullImage, ExecSync and those that say nothing: checked, and
 * else as they came. */
int from_remote_checked(const struct method *m, struct proto_bytes reply,
                        struct str *out, struct error *err);

/* RunPodSandbox, CreateContainer. */
int from_remote_id(struct proto_bytes reply,
                   char ret_id[FROM_REMOTE_ID_SIZE + 1], struct error *err);
/* Exec, Attach, PortForward: printable ASCII. */
int from_remote_url(struct proto_bytes reply,
                    char ret_url[FROM_REMOTE_URL_MAX + 1], struct error *err);

#endif
