/* drain_entry - one drain as the API server keeps it: an entry of ConfigMap
 * biga-drains, with the key "NODE_CARD" (of a whole node "NODE": no name of a
 * node has a '_') and {"reason","since","by","evict"} as text.  Pure. */
#ifndef BIGA_EXTENDER_LEADER_DRAIN_ENTRY_H
#define BIGA_EXTENDER_LEADER_DRAIN_ENTRY_H

#include <stddef.h>

#include "extender/state/card_bars.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"

#define DRAIN_CONFIGMAP "biga-drains"

enum {
    DRAIN_KEY_MAX = 253, /* Kubernetes' limit */
    DRAIN_TEXT_MAX = 16384,
};

/* -EINVAL when the names are too long for a key. */
int drain_entry_key(const char *node, const char *card,
                    char ret_key[DRAIN_KEY_MAX + 1], struct error *err);
void drain_entry_write(const struct card_bar *drain, struct str *out);

/* The merge patch of the ConfigMap that writes it. */
int drain_entry_patch(const char *node, const struct card_bar *drain,
                      struct str *out, struct error *err);
/* The JSON patch that removes it, which fails when it is not there. */
int drain_entry_remove(const char *node, const struct card_bar *drain,
                       struct str *out, struct error *err);

/* Of which node and card; -EINVAL when it is no such key. */
int drain_entry_read_key(const char *key, char ret_node[DEMAND_NAME_MAX + 1],
                         char ret_card[TOPO_ID_MAX + 1], struct error *err);
/* All but the card, which is set already.  -EINVAL says what is wrong. */
int drain_entry_read(const char *json, size_t size, struct card_bar *drain,
                     struct error *err);

#endif
