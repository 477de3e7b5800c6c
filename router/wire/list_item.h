/* list_item - one sandbox, container or their stats in a list, and how the
 * lists of CRI are made.  Pure. */
#ifndef BIGA_ROUTER_WIRE_LIST_ITEM_H
#define BIGA_ROUTER_WIRE_LIST_ITEM_H

#include <stdint.h>

#include "lib/base/proto.h"
#include "router/wire/fields.h"
#include "router/wire/method.h"

/* As the kubelet is told it: the message without the tag of the list. */
struct list_item {
    const char *id;         /* the sandbox's or container's */
    const char *sandbox_id; /* the same of a sandbox */
    struct proto_bytes message;
};

enum { LIST_ITEMS = 1 }; /* the field of all replies that has the items */

/* Numbers of fields; 0: there is none. */
struct list_form {
    enum fields_message item, filter, attributes;
    uint32_t item_attributes; /* id and labels are in there; 0: beside it */
    uint32_t item_state, item_labels;
    uint32_t filter_state, filter_sandbox, filter_labels;
};
/* Of List… and Stream… alike; NULL of other methods. */
const struct list_form *list_form_get(const struct method *m);

#endif
