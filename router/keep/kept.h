/* kept - one sandbox or container of a remote, as it is written down here: what
 * it is to the kubelet, and where it is.  Pure.
 *
 * Its key, UID/ATTEMPT or UID/NAME/ATTEMPT, is what a runtime reserves: of two
 * with one key only one can be there. */
#ifndef BIGA_ROUTER_KEEP_KEPT_H
#define BIGA_ROUTER_KEEP_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"

enum {
    KEPT_ID_MAX = 64,
    KEPT_NAME_MAX = 253,         /* names, the handler */
    KEPT_PATH_MAX = 4095,        /* log_directory, log_path, image */
    KEPT_ALLOCATION_MAX = 16384, /* bytes of the annotation */
    KEPT_MOUNTS_MAX = 256 << 10, /* bytes */
    KEPT_ENDED_MAX = 32 << 10,   /* bytes */
    KEPT_KEY_SIZE = 2 * KEPT_NAME_MAX + 16,
};

enum kept_kind { KEPT_SANDBOX, KEPT_CONTAINER };
enum kept_state {
    KEPT_ANNOUNCED, /* it may be there; nobody knows its id */
    KEPT_MADE,      /* under its id */
};

/* Texts are never NULL in one of kept_copy(); "" stands for none. */
struct kept {
    enum kept_kind kind;
    enum kept_state state;
    char id[KEPT_ID_MAX + 1];           /* "" while it is announced */
    const char *remote;                 /* its name */
    const char *namespace, *name, *uid; /* of the pod */
    uint32_t attempt;                   /* of what it is: sandbox, container */
    uint64_t hash;                      /* of the request (kept_hash.h) */
    int64_t made_s;                     /* wall time of the announcement */
    /* of a sandbox alone: */
    const char *handler;       /* as the kubelet called it */
    const char *log_directory; /* of the home */
    const char *allocation;    /* annotation biga.dev/allocation */
    bool host_network;         /* as the pod asked for */
    /* of a container alone: */
    char sandbox_id[KEPT_ID_MAX + 1];
    const char *container;     /* its name */
    const char *image;         /* as the pod has it */
    const char *log_path;      /* of the home, absolute */
    struct proto_bytes mounts; /* of from_remote_mounts() */
    struct proto_bytes ended;  /* of told_end(), as the kubelet was told; empty:
                                * it was not told so */

    atomic_uint refs; /* from here on of kept_copy() */
    struct arena arena;
};

/* A copy that is shared from then on, and not changed. */
struct kept *kept_copy(const struct kept *from);
struct kept *kept_ref(struct kept *k);
void kept_unref(struct kept *k); /* NULL allowed */
DEFINE_CLEANUP(kept, struct kept *, kept_unref)
/* The same made under that id, or announced: "". */
struct kept *kept_with_id(const struct kept *from, const char *id);
/* The same, which has ended so. */
struct kept *kept_with_end(const struct kept *from, struct proto_bytes ended);

void kept_key(const struct kept *k, char ret_key[KEPT_KEY_SIZE]);
/* -EINVAL names the member that is missing, too long or not what it must be:
 * an id, a Kubernetes name, an absolute path without "..". */
int kept_check(const struct kept *k, struct error *err);
/* Is it [0-9a-f]{1,KEPT_ID_MAX}? */
bool kept_id_valid(const char *id);

#endif
