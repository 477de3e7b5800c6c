/* machine - the real machines that tests look at. */
#ifndef BIGA_TESTS_MACHINE_H
#define BIGA_TESTS_MACHINE_H

#include "model/topo.h"

/* Where they are; skips the running test when they are not. */
const char *machine_dir(void);

/* The topology of "hosts/NAME.xml" below it; fails the running test when
 * there is none. */
struct topo *machine_probe(const char *name);

/* The relation of two devices by their ids. */
enum relation machine_relation(const struct topo *topo, const char *a,
                               const char *b);

#endif
