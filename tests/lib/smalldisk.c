#include "tests/lib/smalldisk.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

bool smalldisk_mount(const char *where)
{
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", where, "tmpfs", 0, "size=1m,mode=0700") == 0;
}

void smalldisk_umount(const char *where)
{
    (void)umount(where); /* it goes with the process at the latest */
}

void smalldisk_fill(const char *path)
{
    static const char block[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    cr_assert_geq(fd, 0);
    while (write(fd, block, sizeof block) > 0)
        ;
    (void)close(fd);
}
