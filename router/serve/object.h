/* object - a sandbox or a container on a remote, as it was asked for by the
 * kubelet: what its statuses are told with, and what is to be done besides.
 * Does not change once others can see it; ref-counted. */
#ifndef BIGA_ROUTER_SERVE_OBJECT_H
#define BIGA_ROUTER_SERVE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "router/wire/from_remote.h"
#include "router/wire/mount.h"

enum { OBJECT_SIZE_MAX = 2 << 20 }; /* bytes of one as JSON */

struct object {
    atomic_uint refs;
    char id[FROM_REMOTE_ID_SIZE + 1];
    char remote[ACT_NAME_MAX + 1];
    uint64_t hash; /* of the request that made it */
    /* Of a sandbox; its texts are in the arena, as all are. */
    struct known_sandbox pod;
    const char *log_directory;  /* of the home */
    uint32_t cores, memory_mib; /* what it was given of the remote; 0: all */
    /* Of a container, which holds its sandbox; NULL: this is one. */
    struct object *sandbox;
    struct known_container container;
    const char *log_key;  /* as log_copier.h has it; "": it has no log */
    struct mount *mounts; /* of the home, judged */
    size_t n_mounts;
    struct arena arena;
};

/* Zeroed, with one reference; `sandbox` NULL, or of a container: a reference
 * is taken.  The caller fills it in, with texts that object_keep() copies, and
 * calls object_bind() last. */
struct object *object_create(struct object *sandbox);
const char *object_keep(struct object *o, const char *text); /* NULL: "" */
/* It has an id now: what points to its own members does so. */
void object_bind(struct object *o, const char *id);
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL allowed */
DEFINE_CLEANUP(object, struct object *, object_unref)

/* The sandbox that it is, or is in. */
struct object *object_pod(struct object *o);

/* To be kept on disk, as JSON; of a container without its sandbox, whose id it
 * has. */
void object_encode(const struct object *o, struct str *out);
/* `find` gives the sandbox of that id, borrowed, or NULL.  -EINVAL: it is none
 * of ours; -ENOENT: there is no such sandbox. */
typedef struct object *object_find_f(void *ctx, const char *id);
int object_decode(const char *json, size_t size, object_find_f *find, void *ctx,
                  struct object **ret_object, struct error *err);

#endif
