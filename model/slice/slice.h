/* slice - a topology as resource.k8s.io/v1 ResourceSlices, and back.
 *
 * One pool per node, driver "xpu.biga.dev"; several slices when a node has
 * more devices than one may list.  Encoding and decoding are inverse:
 * a decoded topology has the same devices and the same relations.  Attribute
 * names are listed in schema/slice.md.  Pure. */
#ifndef BIGA_MODEL_SLICE_SLICE_H
#define BIGA_MODEL_SLICE_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/topo/topo.h"

#define SLICE_DRIVER "xpu.biga.dev"
#define SLICE_API_VERSION "resource.k8s.io/v1"
#define SLICE_ANNOTATION_BOOT_ID "biga.dev/boot-id"
#define SLICE_ANNOTATION_HASH "biga.dev/content-hash"
#define SLICE_ANNOTATION_RUNS "biga.dev/runs-pods"

/* Taints of devices, effect NoSchedule (schema/slice.md). */
#define SLICE_TAINT_ALLOCATED "biga.dev/allocated"
#define SLICE_TAINT_LOST "biga.dev/lost"
#define SLICE_TAINT_DRAINED "biga.dev/drained"
#define SLICE_TAINT_UNHEALTHY "biga.dev/unhealthy"
#define SLICE_TAINT_NOT_GIVEN "biga.dev/not-given"

enum {
    SLICE_DEVICES_MAX = 64,       /* of one that we write: DRA's limit where
                                   * devices have taints; and where */
    SLICE_DEVICES_READ_MAX = 128, /* none has any, as older ones of ours */
    SLICE_ATTRIBUTES_MAX = 32,    /* attributes + capacities of a device */
    SLICE_POOL_SLICES_MAX = 16,
    SLICE_BODY_MAX = 1 << 20, /* bytes of one slice's JSON */
    SLICE_BOOT_ID_MAX = 63,
    SLICE_NAME_MAX = 253,
    SLICE_NODE_TEXT_MAX = 64, /* bytes of an attribute */
};

/* Who publishes, and which version of it. */
struct slice_epoch {
    char boot_id[SLICE_BOOT_ID_MAX + 1];
    int64_t generation; /* 1… */
};

/* How many slices `topo` takes (at least 1: a node without a device is
 * published, and says so). */
size_t slice_count(const struct topo *topo);

/* The name of slice `index` of a node: "<node>-xpu.biga.dev-<index>",
 * shortened with a hash when over 253 characters. */
void slice_name(const char *node, size_t index,
                char ret_name[SLICE_NAME_MAX + 1]);

/* The node as attribute biga.dev/node of its cards says it, and as who asks
 * for a card of one node has to write it: its name, or when that is over 64
 * bytes its first 47, '-' and 16 hex digits of a hash of all of it. */
void slice_node_text(const char *node, char ret_text[SLICE_NODE_TEXT_MAX + 1]);

/* Append slice `index` as compact JSON.  Equal input gives equal bytes. */
void slice_encode(const struct topo *topo, const struct slice_epoch *epoch,
                  size_t index, struct str *out);

/* The same as an object in a cluster: owned by the Node with this uid (NULL:
 * by nobody), and written over this resourceVersion (NULL or "": over any, or
 * new). */
struct slice_meta {
    const char *owner_uid;
    const char *resource_version;
};
void slice_encode_object(const struct topo *topo,
                         const struct slice_epoch *epoch, size_t index,
                         const struct slice_meta *meta, struct str *out);

/* The hash of the content of all slices of `topo` without the epoch, and
 * without what follows from the rest: 16 hex digits.  It changes exactly when
 * the topology does. */
void slice_content_hash(const struct topo *topo, char ret_hash[17]);

/* One slice as read from JSON; devices are kept until the pool is whole. */
struct slice; /* ref-counted, immutable */
struct slice *slice_ref(struct slice *slice);
void slice_unref(struct slice *slice); /* NULL allowed */
DEFINE_CLEANUP(slice, struct slice *, slice_unref)

/* Read and validate one slice.  Strict about every field of ours (driver,
 * pool, nodeName, attribute types, the DRA limits), lenient about members
 * Kubernetes may add; kind and apiVersion may be absent, as in the items of a
 * list.  The error names the path of the wrong field, with its
 * value: `spec.devices[3].attributes["biga.dev/kind"].string: is "gpux",
 * must be card, gpu, nic or numa`. */
int slice_decode(const char *json, size_t size, struct slice **ret_slice,
                 struct error *err);

/* The same without devices: what it is, and of whom. */
struct slice *slice_brief(const struct slice *slice);

const char *slice_get_name(const struct slice *slice); /* metadata.name */
const char *slice_get_node(const struct slice *slice); /* spec.nodeName */
const char *slice_get_hash(const struct slice *slice); /* "" if absent */
/* A hash of how DRA may give the devices (taints but for their times,
 * allowMultipleAllocations, requestPolicy), which is not in the topology.  API
 * servers leave out of these what their feature gates switch off. */
uint64_t slice_get_given(const struct slice *slice);
/* The same of slice `index` of `topo`, when nothing is left out. */
uint64_t slice_given(const struct topo *topo, size_t index);
const struct slice_epoch *slice_get_epoch(const struct slice *slice);
size_t slice_get_pool_count(const struct slice *slice); /* of slices */

/* Join the slices of one complete pool (any order, same node, epoch and
 * count; n == resourceSliceCount) into a topology.  Fails when they do not
 * belong together or two devices share an id. */
int slice_join(struct slice *const *slices, size_t n, struct topo **ret_topo,
               struct error *err);

#endif
