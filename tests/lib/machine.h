/* machine - the real machines that tests look at. */
#ifndef BIGA_TESTS_MACHINE_H
#define BIGA_TESTS_MACHINE_H

#include "model/topo/topo.h"

/* Where they are; skips the running test when they are not. */
const char *machine_dir(void);

/* The topology of "hosts/NAME.xml" below it; fails the running test when
 * there is none. */
struct topo *machine_probe(const char *name);

/* Run a program and wait; 0 when it succeeds. */
int machine_run(const char *const argv[]);

/* Unpack "sysfs/NAME" (a .tar.bz2 of a /sys tree) below `root`; the caller
 * frees its path. */
char *machine_unpack(const char *name, const char *root);

/* Unpack all of them into a directory that goes away afterwards, at least
 * seven, and visit each. Returns how many there are. */
typedef void machine_tree_f(const char *name, const char *tree, void *ctx);
int machine_each_tree(machine_tree_f *visit, void *ctx);

/* The relation of two devices by their ids. */
enum relation machine_relation(const struct topo *topo, const char *a,
                               const char *b);

#endif
