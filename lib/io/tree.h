/* tree - a folder goes with all that is in it, of any depth: what is too deep
 * is moved to the folder's top first, so that nobody can make a tree that
 * costs a descriptor (and stack) for each of any number of folders.  No
 * symbolic link is followed, and no mount entered.  Stands on lib/base/error
 * alone: biga-card has it too. */
#ifndef BIGA_LIB_IO_TREE_H
#define BIGA_LIB_IO_TREE_H

#include "lib/base/error.h"

enum { TREE_DEPTH_MAX = 128 }; /* of folders that are gone into */

/* The folder `name` of the folder `above`.  One that is not there is a
 * success.  `path` is for the error, which also says what in it stays. */
int tree_remove(int above, const char *name, const char *path,
                struct error *err);

#endif
