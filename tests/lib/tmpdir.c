#include "tests/lib/tmpdir.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/mem.h"

char *tmpdir_create(void)
{
    const char *base = getenv("TMPDIR");
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    char *dir = xasprintf("%s/biga-test-XXXXXX", base ? base : memory);
    if (!mkdtemp(dir)) {
        perror(dir);
        abort();
    }
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void tmpdir_remove(char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
}
