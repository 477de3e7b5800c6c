/* smalldisk - a disk of 1 MiB, and what fills it. */
#ifndef BIGA_TESTS_SMALLDISK_H
#define BIGA_TESTS_SMALLDISK_H

#include <stdbool.h>

/* Over the directory `where`, seen by this process alone; false when we may
 * not. */
bool smalldisk_mount(const char *where);
void smalldisk_umount(const char *where);
/* Take all the room there is with the file `path`; remove it to give it back. */
void smalldisk_fill(const char *path);

#endif
