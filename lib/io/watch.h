/* watch - a file that is read again whenever it has become another.
 *
 * Told by device, inode, size and time of change, looked at when asked: no
 * thread, no descriptor held.  A file that is replaced by rename (as a
 * ConfigMap's are) is noticed as well as one that is written in place. */
#ifndef BIGA_LIB_IO_WATCH_H
#define BIGA_LIB_IO_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

struct watched_file {
    char *path;
    size_t max; /* bytes that are read at most */
    bool looked;
    struct {
        int error; /* errno, 0: it was there */
        uint64_t device, inode;
        int64_t size, mtime_ns, ctime_ns;
    } last;
};

/* Copies `path`. */
void watch_init(struct watched_file *f, const char *path, size_t max);
void watch_fini(struct watched_file *f);

/* Look at the file.  1: it is another than at the last call, or this is the
 * first; its content stands in `ret_text`, which is emptied first and whose
 * cap must allow `max`.  0: it is as it was.  -errno: it cannot be read, or
 * is too long, which is told once for as long as it stays so (then 0). */
int watch_poll(struct watched_file *f, struct str *ret_text, struct error *err);

#endif
