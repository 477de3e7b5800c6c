/* volume - the words of biga-card for the volumes of a pod that a kubelet on
 * another machine keeps.  A pod has two folders, DISK and MEMORY, both made as
 * `files` makes its own, the latter in memory (tmpfs); names in them are
 * "disk/…" and "memory/…".
 *
 *   biga-card volume DISK MEMORY PAD STEP…
 *       Do the steps in their order; all are looked at before.  What has a mode
 *       belongs to UID:GID.  PIECEs as of `files`, hidden by the pad of MEMORY
 *       whose ID is PAD, "-" none.
 *         folder NAME MODE UID:GID             made, or changed to be so
 *         file NAME MODE UID:GID N PIECE…      takes the place of what is there
 *         inplace NAME MODE UID:GID N PIECE…   in the inode that is there
 *         link NAME TARGET                     takes the place of a link or file;
 *                                              TARGET is below where NAME is
 *         drop NAME                            with all that is in it
 *         tmpfs NAME MODE UID:GID SIZE         a folder of MEMORY, limited to
 *                                              SIZE bytes
 *         part NAME MODE UID:GID FOLDER        a mount of that folder, in MEMORY
 *       Where this container may not mount, or its mounts reach no other, a
 *       tmpfs is a folder without a limit, and "unlimited=NAME" is on stderr; a
 *       part is refused.  Its FOLDER, "disk/…" or "memory/…", is made where it
 *       is missing, with what is missing above it.  Pods write there: no link on
 *       the way is followed, and they cannot lead the mount elsewhere.
 *
 *   biga-card tree DISK MEMORY
 *       What is there, on stdout, each ended by a NUL byte:
 *         TYPE MODE UID GID SIZE HASH NAME     TYPE d, f or l; MODE octal, HASH
 *                                              hexadecimal (lib/base/hash.h) of
 *                                              a file up to 1 MiB, else 0
 *         TARGET                               after each l
 *         end N                                the last: how many they were
 *       What pods fill themselves (kubernetes.io~empty-dir) is not looked into.
 *
 *   biga-card last PATH MAX
 *       The last MAX bytes (1 to 1048576) of a file on stdout, and "bytes=SIZE"
 *       and "next=0" on stderr; exit status 3 when there is none.
 *
 *   biga-card pods DIR…
 *       The names of the folders in each DIR, each ended by a NUL byte, and
 *       "end N" as of `tree`.  What is not there has none.
 *
 *   biga-card forget MEMORY DISK
 *       As `rm` of both, after what is mounted below them was unmounted. */
#ifndef BIGA_CARD_VOLUME_H
#define BIGA_CARD_VOLUME_H

#include "card/card.h"

enum {
    CARD_TREE_MAX = 16384, /* entries, of a tree or of `pods` */
    CARD_TREE_DEPTH = 24,
};

/* A pod's two folders, open. */
struct card_tops {
    int disk, memory;
};
int card_tops_open(const char *disk, const char *memory,
                   struct card_tops *ret_tops, struct error *err);
void card_tops_close(struct card_tops *tops);
/* Open the folder that the name's last part is in, with `make` made when it is
 * missing; `*ret_top` is the pod's folder, borrowed, `*ret_leaf` that part. */
int card_tops_find(const struct card_tops *tops, const char *name, bool make,
                   int *ret_top, const char **ret_leaf, struct error *err);

/* A folder in memory of its own; 1: it is a plain one. */
int card_tmpfs(int dir, const char *leaf, uint64_t size, struct error *err);
/* The folder that is open as `folder` is there, too; 1: nobody else sees it. */
int card_bind(int dir, const char *leaf, int folder, struct error *err);
/* Unmount all that is mounted below an absolute path. */
int card_unmount(const char *path, struct error *err);

/* argv: what follows the word. */
int card_volume(int argc, const char *const *argv, struct error *err);
int card_tree(const char *disk, const char *memory, int out, struct error *err);
int card_last(const char *path, size_t max, int out, size_t *ret_size,
              struct error *err);
int card_pods(int argc, const char *const *argv, int out, struct error *err);

#endif
