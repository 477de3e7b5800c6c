/* device_set - sets of a card's own device nodes, by name: what the operator
 * calls them in the card file ("rdma"), what pods ask for, and what a slice
 * says that a card has.  Pure. */
#ifndef BIGA_MODEL_TOPO_DEVICE_SET_H
#define BIGA_MODEL_TOPO_DEVICE_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

enum {
    DEVICE_SETS_MAX = 8,       /* of one card, and that one pod asks for */
    DEVICE_SET_NAME_MAX = 31,  /* bytes */
    DEVICE_SETS_TEXT_MAX = 64, /* of all names, with a space between: what an
                                * attribute of a slice holds */
};

/* The annotation by which pods ask for them, with ',' between. */
#define DEVICE_SETS_KEY "biga.dev/devices"

/* Names in order, each once, with a space between; "" none. */
struct device_sets {
    char text[DEVICE_SETS_TEXT_MAX + 1];
};

/* A DNS label of at most DEVICE_SET_NAME_MAX bytes. */
bool device_set_valid(const char *name, size_t size);
/* False, and nothing is added, when it is no name or one too many; a name that
 * is there already is a success. */
bool device_sets_add(struct device_sets *sets, const char *name, size_t size);
/* Names with `separator` between, and spaces around them or none; "" is no
 * set.  -EINVAL says which name is wrong, or that they are too many. */
int device_sets_parse(const char *text, char separator,
                      struct device_sets *ret_sets, struct error *err);
/* The name that `text` begins with, which is not empty; where the next one
 * begins. */
const char *device_sets_next(const char *text,
                             char ret_name[DEVICE_SET_NAME_MAX + 1]);
/* Are all of `wanted` (as in struct device_sets) among `there`? */
bool device_sets_have(const char *there, const char *wanted);

#endif
