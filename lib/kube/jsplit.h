/* jsplit - cuts a stream of JSON into its objects, as bytes arrive.
 *
 * Two streams are known: a Kubernetes list, `{"kind":…,"metadata":{…},
 * "items":[{…},{…}]}`, of which each element of the top-level `items` is
 * handed over by itself; and a watch, one object after another with white
 * space between.  Only one object is ever held, so a list of 20,000 pods costs
 * as much memory as its largest pod.
 *
 * It finds where objects end and no more: what is handed over must still be
 * checked by jscan or json_parse.  Pure; fed any bytes it ends with an error,
 * never with more than `object_max` held. */
#ifndef BIGA_LIB_KUBE_JSPLIT_H
#define BIGA_LIB_KUBE_JSPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum jsplit_kind { JSPLIT_LIST, JSPLIT_STREAM };

/* One object; borrowed for the call, not NUL-terminated.  Nonzero ends the
 * split with that value (a -errno). */
typedef int jsplit_f(void *ctx, const char *json, size_t size);

struct jsplit {
    enum jsplit_kind kind;
    size_t object_max; /* bytes of one object */
    jsplit_f *visit;
    void *ctx;
    struct str object; /* the one that is arriving */
    struct str rest;   /* JSPLIT_LIST: the list without its items, for its
                        * metadata: at most JSPLIT_REST_MAX bytes */
    unsigned state, depth;
    uint64_t in_object; /* bit d: the container at depth d is an object */
    bool in_string, escaped, had_items;
    size_t key_at;      /* in rest: where the list's current key begins */
    struct error fault; /* code 0, or what it ended with */
    uint64_t n_objects, n_bytes; /* handed over; taken in */
};
enum { JSPLIT_REST_MAX = 65536, JSPLIT_DEPTH_MAX = 63 };

void jsplit_init(struct jsplit *s, enum jsplit_kind kind, size_t object_max,
                 jsplit_f *visit, void *ctx);
void jsplit_fini(struct jsplit *s);
/* More bytes: 0, or -EINVAL (no JSON of this form), -E2BIG (an object or the
 * rest is too large), or what visit returned.  The first error sticks.  How
 * the bytes are cut into calls changes nothing.  A list whose `items` is null
 * is an empty one. */
int jsplit_feed(struct jsplit *s, const char *data, size_t size,
                struct error *err);
/* The stream has ended: -EINVAL when in the middle of something.  Of a list,
 * `rest` is then `{"kind":…,"metadata":{…},"items":[]}`. */
int jsplit_end(struct jsplit *s, struct error *err);

#endif
