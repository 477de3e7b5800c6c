/* kubeobj - what publish_kube reads of the API server's objects: Nodes and
 * ResourceSlices.  Pure. */
#ifndef BIGA_ADVERTISER_PUBLISH_KUBEOBJ_H
#define BIGA_ADVERTISER_PUBLISH_KUBEOBJ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"

#define KUBEOBJ_TOPOLOGY "biga.dev/topology" /* annotations of the Node */
#define KUBEOBJ_PUBLISHED "biga.dev/published"
/* What the API server calls us: our User-Agent up to its slash. */
#define KUBEOBJ_MANAGER "biga"

enum {
    KUBEOBJ_TEXT_MAX = 63,    /* bytes of a uid or resourceVersion */
    KUBEOBJ_SLICES_MAX = 64,  /* read at a time, of one node */
    KUBEOBJ_EDITOR_MAX = 128, /* bytes of a field manager, as in the API */
};

/* Lenient about all that is not named here; texts are "" where absent. */
struct kubeobj {
    char name[SLICE_NAME_MAX + 1];
    char uid[KUBEOBJ_TEXT_MAX + 1];
    char version[KUBEOBJ_TEXT_MAX + 1];  /* resourceVersion */
    char topology[KUBEOBJ_TEXT_MAX + 1]; /* a Node's annotation */
    char owner[KUBEOBJ_TEXT_MAX + 1];    /* uid of the first owner that is a
                                           * Node */
    unsigned n_owners;
    int64_t generation; /* of a slice's pool; 0 absent */
    /* who changed it last, of managedFields and without us; "" nobody */
    char editor[KUBEOBJ_EDITOR_MAX + 1];
};
int kubeobj_read(const char *json, size_t size, struct kubeobj *ret_object,
                 struct error *err);

/* The slices of a ResourceSliceList. `slice` is NULL for one that
 * slice_decode() refuses. */
struct kubeobj_slices {
    size_t n;
    bool more; /* there were more than fit */
    struct kubeobj_slice {
        struct kubeobj object;
        struct slice *slice;
    } items[KUBEOBJ_SLICES_MAX];
};
int kubeobj_read_slices(const char *json, size_t size,
                        struct kubeobj_slices **ret_slices, struct error *err);
void kubeobj_slices_destroy(struct kubeobj_slices *s); /* NULL allowed */
DEFINE_CLEANUP(kubeobj_slices, struct kubeobj_slices *, kubeobj_slices_destroy)

#endif
