/* walker - what a topology should say, found by another way: on hwloc's own
 * tree of objects, with parents and common ancestors, without sets of CPUs or
 * NUMA nodes and without any code of the programs. */
#ifndef BIGA_TESTS_WALKER_H
#define BIGA_TESTS_WALKER_H

#include <stddef.h>

struct walker;

/* One of `xml` and `fsroot` is set.  NULL when hwloc refuses it. */
struct walker *walker_create(const char *xml, const char *fsroot);
void walker_destroy(struct walker *w);

/* A thing is a PCI address ("0000:17:00.0", or "0000:17:00.0/15b3:a2dc": an
 * edited file has two functions of one address) or a NUMA node ("numa-3").
 * The os index of its NUMA node, -1 unknown, -2 no such thing. */
int walker_numa(const struct walker *w, const char *thing);
int walker_package(const struct walker *w, const char *thing);
/* "PIX" …, or NULL when there is no such thing. */
const char *walker_relation(const struct walker *w, const char *a,
                            const char *b);

/* How many PCI functions there are of class `class_id` & `mask`, and NUMA
 * nodes with CPUs. */
size_t walker_count_class(const struct walker *w, unsigned class_id,
                          unsigned mask);
size_t walker_count_numas(const struct walker *w);

#endif
