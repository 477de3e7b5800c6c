/* How much room there is where images are kept. */
#include <sys/statvfs.h>
#include <unistd.h>

#include "card/card.h"

int card_disk(const char *path, int out, struct error *err)
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0)
        return error_errno(err, errno, "%s", path);
    return dprintf(out, "size=%llu\navailable=%llu\n",
                   (unsigned long long)fs.f_blocks * fs.f_frsize,
                   (unsigned long long)fs.f_bavail * fs.f_frsize) < 0
               ? error_errno(err, errno, "output")
               : 0;
}
