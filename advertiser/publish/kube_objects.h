/* kube_objects - what publish_kube reads of the API server's objects: Nodes and
 * ResourceSlices.  Pure. */
#ifndef BIGA_ADVERTISER_PUBLISH_KUBE_OBJECTS_H
#define BIGA_ADVERTISER_PUBLISH_KUBE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"

#define KUBE_OBJECTS_TOPOLOGY "biga.dev/topology" /* annotations of the Node */
#define KUBE_OBJECTS_PUBLISHED "biga.dev/published"
/* What the API server calls us: our User-Agent up to its slash. */
#define KUBE_OBJECTS_MANAGER "biga"

enum {
    KUBE_OBJECTS_TEXT_MAX = 63,    /* bytes of a uid or resourceVersion */
    KUBE_OBJECTS_SLICES_MAX = 64,  /* read at a time, of one node */
    KUBE_OBJECTS_EDITOR_MAX = 128, /* bytes of a field manager, as in the API */
};

/* Lenient about all that is not named here; texts are "" where absent. */
struct kube_objects {
    char name[SLICE_NAME_MAX + 1];
    char uid[KUBE_OBJECTS_TEXT_MAX + 1];
    char version[KUBE_OBJECTS_TEXT_MAX + 1];  /* resourceVersion */
    char topology[KUBE_OBJECTS_TEXT_MAX + 1]; /* a Node's annotation */
    char owner[KUBE_OBJECTS_TEXT_MAX + 1]; /* uid of the first owner that is a
                                           * Node */
    unsigned n_owners;
    int64_t generation; /* of a slice's pool; 0 absent */
    /* who changed it last, of managedFields and without us; "" nobody */
    char editor[KUBE_OBJECTS_EDITOR_MAX + 1];
};
int kube_objects_read(const char *json, size_t size,
                      struct kube_objects *ret_object, struct error *err);

/* The slices of a ResourceSliceList. `slice` is NULL for one that
 * slice_decode() refuses. */
struct kube_objects_slices {
    size_t n;
    bool more; /* there were more than fit */
    struct kube_objects_slice {
        struct kube_objects object;
        struct slice *slice;
    } items[KUBE_OBJECTS_SLICES_MAX];
};
int kube_objects_read_slices(const char *json, size_t size,
                             struct kube_objects_slices **ret_slices,
                             struct error *err);
void kube_objects_slices_destroy(
    struct kube_objects_slices *s); /* NULL allowed */
DEFINE_CLEANUP(kube_objects_slices, struct kube_objects_slices *,
               kube_objects_slices_destroy)

#endif
