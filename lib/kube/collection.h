/* collection - what is kept of the objects of a collection that the reflector
 * lists and watches: after a gap, whoever is not in the new list is forgotten
 * when that list is whole. */
#ifndef BIGA_LIB_KUBE_COLLECTION_H
#define BIGA_LIB_KUBE_COLLECTION_H

#include <stdbool.h>

#include "lib/base/strmap.h"

/* The first member of what is kept of one object. */
struct collected {
    bool listed; /* it was in the present list */
};

/* In these the values of `objects` begin with a struct collected. */

/* A list begins. */
void collection_list(struct strmap *objects);
/* It is whole: `forget`, which removes it, is called of each that was not
 * listed.  All at once: after a long gap they may be very many. */
typedef void collection_forget_f(void *ctx, void *object);
void collection_listed(struct strmap *objects, collection_forget_f *forget,
                       void *ctx);

#endif
