/* image_shelf - the images of one remote, as they were seen over time: which of
 * them are used, and which are to go.  Pure.
 *
 * The rules are the kubelet's: what no container has, the least recently used
 * first; a use is seen, or not, when somebody looks.  What is pinned, the
 * helper's image and those of sandboxes (a name that ends in "pause") stay. */
#ifndef BIGA_ROUTER_IMAGE_IMAGE_SHELF_H
#define BIGA_ROUTER_IMAGE_IMAGE_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"

enum {
    IMAGE_SHELF_MAX = 1024, /* images of one remote; more are not looked at */
    IMAGE_ID_MAX = 128,
    IMAGE_NAME_MAX = 512,
};

struct image_rules {
    int64_t high, low;  /* per cent of its disk; 100: it is never too full */
    int64_t min_age_ms; /* one that was first seen later stays */
    int64_t max_age_ms; /* one that was not used for so long goes; 0: none */
};
struct image_disk {
    uint64_t size, available; /* bytes; 0, 0: not known */
};
struct image_goes {
    char id[IMAGE_ID_MAX + 1], name[IMAGE_NAME_MAX + 1];
    uint64_t size;
    const char *why; /* "age", "disk" */
};

struct image_shelf;
struct image_shelf *image_shelf_create(void);
void image_shelf_destroy(struct image_shelf *s); /* NULL allowed */
DEFINE_CLEANUP(image_shelf, struct image_shelf *, image_shelf_destroy)

/* Replies of ListImages and ListContainers, of all containers, the second asked
 * for after the first; `spared` is the helper's image.  -EPROTO: one is none,
 * and nothing is known anew. */
int image_shelf_see(struct image_shelf *s, const char *spared,
                    struct proto_bytes images, struct proto_bytes containers,
                    int64_t now_ms, struct error *err);
bool image_shelf_is_used(const struct image_shelf *s, const char *id);

/* Those that are to go, in order, at most `max`.  `full`: somebody found the
 * disk full, so that as many go as bring it to `low`, or all where that says
 * nothing. */
size_t image_shelf_plan(struct image_shelf *s, const struct image_rules *rules,
                        const struct image_disk *disk, bool full,
                        int64_t now_ms, struct image_goes *ret_list,
                        size_t max);

#endif
