#include "tests/lib/tmpdir.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include "model/base/mem.h"

char *tmpdir_create(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = xasprintf("%s/biga-test-XXXXXX", base ? base : "/tmp");
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

void tmpdir_remove(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
