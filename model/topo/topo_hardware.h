/* topo_hardware - what the nodes of one model share: all that a topology has
 * but the node's name and the identities of its devices (topo.h).  Immutable
 * and ref-counted; of many nodes that are equal one is kept.  Pure. */
#ifndef BIGA_MODEL_TOPO_TOPO_HARDWARE_H
#define BIGA_MODEL_TOPO_TOPO_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/mem.h"
#include "model/topo/topo.h"

struct hardware;
struct hardware *hardware_ref(struct hardware *hardware);
void hardware_unref(struct hardware *hardware); /* NULL allowed */
DEFINE_CLEANUP(hardware, struct hardware *, hardware_unref)

struct hardware *topo_hardware(const struct topo *topo); /* borrowed */
/* What a node has beside that, as one text: its name, then of each device in
 * order serial, GUID, fabric port and endpoint, each with a NUL behind. */
const char *topo_own_texts(const struct topo *topo, size_t *ret_size);
/* The node of this hardware that topo_own_texts() was taken of, once more;
 * NULL when they are not as many texts as the hardware has devices for.  Texts
 * are not checked: they have been. */
struct topo *topo_of_hardware(struct hardware *hardware, const char *texts,
                              size_t size);

/* Every hardware that is in use, once.  One thread's.  What nobody uses any
 * more goes when the table would grow by it. */
struct hardware_table;
struct hardware_table *hardware_table_create(void);
void hardware_table_destroy(struct hardware_table *t); /* NULL allowed */
DEFINE_CLEANUP(hardware_table, struct hardware_table *, hardware_table_destroy)
/* Let `topo`, which nobody else has yet, use the table's hardware that equals
 * its own, or add its own. */
void hardware_table_share(struct hardware_table *t, struct topo *topo);
size_t hardware_table_count(const struct hardware_table *t);

#endif
