/* slice_private - what the encoder and the decoder of slices share: the
 * table of attributes (schema/slice.md explains each) and the object. */
#ifndef BIGA_MODEL_SLICE_SLICE_PRIVATE_H
#define BIGA_MODEL_SLICE_SLICE_PRIVATE_H

#include <stdatomic.h>

#include "lib/base/json.h"
#include "model/slice/slice.h"

#define SLICE_DOMAIN "biga.dev/"

enum {
    SLICE_TEXT_MAX = 64,       /* of a string value */
    SLICE_IDENTIFIER_MAX = 32, /* of a name, without its domain */
    SLICE_DOMAIN_MAX = 63,
    SLICE_PARTS_MAX = 13, /* attributes that one long list takes */
};

enum attribute_id {
    ATTRIBUTE_KIND,
    ATTRIBUTE_NUMA,
    ATTRIBUTE_PACKAGE,
    ATTRIBUTE_ROOT,
    ATTRIBUTE_BUS_ID,
    ATTRIBUTE_ADDRESS,
    ATTRIBUTE_PCI_ID,
    ATTRIBUTE_SWITCH,
    ATTRIBUTE_PATH,
    ATTRIBUTE_DEVICES,
    ATTRIBUTE_RIGHTS,
    ATTRIBUTE_VENDOR,
    ATTRIBUTE_MODEL,
    ATTRIBUTE_SERIAL,
    ATTRIBUTE_INTERFACE,
    ATTRIBUTE_RDMA,
    ATTRIBUTE_GUID,
    ATTRIBUTE_FUNCTIONS,
    ATTRIBUTE_ARCH,
    ATTRIBUTE_FABRIC_PORT,
    ATTRIBUTE_ENDPOINT,
    ATTRIBUTE_HEALTHY,
    ATTRIBUTE_CLAIMS,
    ATTRIBUTE_COMPUTE,
    ATTRIBUTE_NODE,
    ATTRIBUTE_HEALTH,
    ATTRIBUTE_LINK,
    ATTRIBUTE_LINK_SPEED,
    ATTRIBUTE_MODE,
    ATTRIBUTE_VFS,
    ATTRIBUTE_VFS_MAX,
    ATTRIBUTE_DISTANCES,
    ATTRIBUTE_CPU_LIST,
    ATTRIBUTE_COUNT
};

enum capacity_id {
    CAPACITY_CORES,
    CAPACITY_MEMORY,
    CAPACITY_CPUS,
    CAPACITY_COUNT
};

enum {
    ON_CARD = 1 << DEVICE_CARD,
    ON_NIC = 1 << DEVICE_NIC,
    ON_NUMA = 1 << DEVICE_NUMA,
    ON_PCI = 1 << DEVICE_CARD | 1 << DEVICE_GPU | 1 << DEVICE_NIC,
    ON_ALL = ON_PCI | ON_NUMA,
};

enum value_type { VALUE_TEXT, VALUE_INT, VALUE_BOOL };

struct attribute {
    const char *name;
    enum value_type type;
    unsigned kinds; /* ON_… */
    unsigned parts; /* a list may go on in NAME2 … NAME<parts> */
    size_t offset;  /* in struct slice_device, of a plain text; else 0 */
};
extern const struct attribute slice_attributes[ATTRIBUTE_COUNT];

struct capacity {
    const char *name;
    unsigned kinds;
};
extern const struct capacity slice_capacities[CAPACITY_COUNT];

/* A numa device's distances go to the numa devices of the whole pool in
 * order of their index, so they are kept as numbers until the join. */
struct slice_distances {
    const unsigned *list;
    size_t n;
};

struct slice_device {
    struct device d;
    struct identity own;
};

struct slice {
    atomic_uint refs;
    struct arena arena; /* holds everything below */
    const char *name, *node, *pool, *hash;
    const char *runs; /* which of its places run pods, "" untold */
    struct slice_epoch epoch;
    size_t pool_count;
    uint64_t given; /* slice_get_given() */
    size_t n_devices;
    struct slice_device *devices;
    struct slice_distances *distances; /* of each device */

    /* instead of devices, of one that was read by a pattern: the topology */
    struct hardware *hardware; /* or NULL */
    const char *own;           /* as topo_own_texts() */
    size_t own_size;
};

/* The text of SLICE_ANNOTATION_RUNS: SLICE_RUNS_NONE, or SLICE_RUNS_HOST and
 * the ids of cards, each behind a space. */
#define SLICE_RUNS_NONE "none"
#define SLICE_RUNS_HOST "host"
enum { SLICE_RUNS_MAX = 8 + TOPO_CARDS_MAX * (TOPO_ID_MAX + 1) };

/* The bridge whose equality makes two devices PIX: the topmost one that
 * has at most one more below it on the way to the device.  NULL without
 * bridges. */
const struct pci_addr *slice_switch(const struct device *device);

bool slice_is_label(const char *text, size_t size);     /* DNS, at most 63 */
bool slice_is_subdomain(const char *text, size_t size); /* DNS, any length */

/* NULL, or what is wrong with the value of an annotation. */
const char *slice_check_boot_id(const char *text);
const char *slice_check_hash(const char *text);

/* A Kubernetes quantity that is whole: digits and one suffix. */
bool slice_parse_quantity(const char *text, uint64_t *ret_value);

/* How DRA may give a device, which follows from the device (slice_given.c):
 * members of it, with a comma before each; and the policy of a capacity of a
 * shared card, the same. */
void slice_write_given(const struct device *device, struct str *out);
bool slice_is_shared(const struct device *device);
void slice_write_policy(const char *all, uint64_t n, const char *unit,
                        struct str *out);
/* Add what an element of spec.devices says of that to s->given.  -EINVAL with
 * the path of what is of the wrong type. */
int slice_read_given(const cJSON *json, struct slice *s, struct error *err);

/* Everything of ours that a device has, by name. */
struct slice_values {
    struct slice *slice;
    size_t index;
    enum device_kind kind;
    struct error *err;
    bool present[ATTRIBUTE_COUNT];
    int64_t number[ATTRIBUTE_COUNT]; /* of an int or a bool */
    const char *parts[ATTRIBUTE_COUNT][SLICE_PARTS_MAX]; /* of a text */
    const char *capacity[CAPACITY_COUNT];
};

/* -EINVAL with the path of an attribute or a capacity (`map` says which):
 * `spec.devices[3].attributes["biga.dev/kind"]`, then the text. */
int slice_fail(const struct slice_values *v, const char *map, const char *name,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Check both maps (capacity may be NULL) as DRA does, and keep what is ours,
 * checked for its type.  Texts are borrowed from the JSON. */
int slice_collect(struct slice_values *v, const cJSON *attributes,
                  const cJSON *capacity);

/* Read and check one element of spec.devices into the next free place,
 * s->devices[s->n_devices], without counting it. */
int slice_read_device(const cJSON *json, struct slice *s, struct error *err);

#endif
