/* volume_tree - a folder of a volume: its folders, files and links with their
 * contents, as it is on the home or as a remote says that it has it.
 *
 * The kubelet updates such a folder by a new folder with all files, to which
 * the link "..data" is turned (AtomicWriter): one read never has parts of two
 * updates. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_TREE_H
#define BIGA_ROUTER_VOLUME_VOLUME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    VOLUME_ITEMS_MAX = 16384,    /* of one tree */
    VOLUME_FILE_MAX = 1 << 20,   /* bytes of one file, as of a ConfigMap */
    VOLUME_BYTES_MAX = 16 << 20, /* of all files of a tree */
    VOLUME_DEPTH_MAX = 16,       /* of folders in folders */
    VOLUME_NAME_MAX = 1023,      /* bytes of a path in it, and of a link */
};
#define VOLUME_DATA "..data" /* the link that says which folder is meant */

enum volume_type { VOLUME_FOLDER, VOLUME_FILE, VOLUME_LINK };

struct volume_item {
    const char *name; /* relative: "..data", "a/b"; "" the folder itself */
    enum volume_type type;
    uint32_t mode;      /* of a file up to 0777, of a folder up to 03777 */
    uint32_t uid, gid;  /* of a link always 0, as is its mode */
    const char *target; /* of a link: relative, stays in its own folder */
    uint64_t size;      /* of a file */
    uint64_t hash;      /* of its contents (lib/base/hash.h); 0 not known */
    const char *data;   /* its contents; NULL when they are not here */
};

/* In the order of their names, by bytes; a folder before what is in it. */
struct volume_tree {
    struct volume_item *items;
    size_t n, cap;
    uint64_t size; /* bytes of all files */
    struct arena arena;
};
/* Contents are wiped: they may be secrets. */
void volume_tree_fini(struct volume_tree *t);

/* Read the folder `path` of the home.  It is opened without following a link,
 * and none in it is followed; links lead to names in their own folder, else it
 * is refused.  -ENOENT: it is not there.  -EAGAIN: it is changed quicker than
 * it can be read.  -EINVAL (a link that leads out, a device, a pipe) and
 * -EFBIG (more than the caps above) name the path.  Blocks on the disk. */
int volume_tree_read(const char *path, struct volume_tree *ret_tree,
                     struct error *err);
/* The file `path` alone, as an item whose name is ""; the same rules. */
int volume_tree_read_file(const char *path, struct volume_tree *ret_tree,
                          struct error *err);

/* Is it relative, without "." and "..", and not too long? */
bool volume_name_ok(const char *name);
/* Add an item; texts and contents are copied.  Pure.  -EINVAL, -EFBIG. */
int volume_tree_add(struct volume_tree *t, const struct volume_item *item,
                    struct error *err);
/* Put them in order.  -EINVAL names what is there twice. */
int volume_tree_sort(struct volume_tree *t, struct error *err);
/* NULL: not there. */
const struct volume_item *volume_tree_find(const struct volume_tree *t,
                                           const char *name);

#endif
