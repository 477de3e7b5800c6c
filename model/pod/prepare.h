/* prepare - how a pod wants its card configured before it is used: the
 * annotations PREPARE_VFS, PREPARE_SFS and PREPARE_HOOK (schema/pod.md),
 * read from the Pod's JSON.  Pure. */
#ifndef BIGA_MODEL_POD_PREPARE_H
#define BIGA_MODEL_POD_PREPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

#define PREPARE_VFS "biga.dev/sriov-vfs"
#define PREPARE_SFS "biga.dev/scalable-functions"
#define PREPARE_HOOK "biga.dev/prepare"

enum {
    PREPARE_VFS_MAX = 4096,
    PREPARE_SFS_MAX = 64,
    PREPARE_HOOK_MAX = 63, /* bytes of a hook's name */
};

struct prepare {
    int sriov_vfs;                   /* -1: as the card has them */
    int sfs;                         /* scalable functions of its own */
    char hook[PREPARE_HOOK_MAX + 1]; /* "" none */
};

/* Whether `name` is 1 to PREPARE_HOOK_MAX of a to z, 0 to 9 and '-': a file's
 * name, never a path. */
bool prepare_hook_ok(const char *name);

/* Read what the pod says; without annotations nothing is asked.  0, -EDOM
 * when a value is wrong (the error has the path, the value, and what is
 * allowed), -EINVAL when it is no JSON object or a member has the wrong
 * type. */
int prepare_read(const char *json, size_t size, struct prepare *ret_prepare,
                 struct error *err);

#endif
