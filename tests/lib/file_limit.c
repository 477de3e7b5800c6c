#include "tests/lib/file_limit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/base/mem.h"

static void limit_to(rlim_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
        limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
        if (setrlimit(RLIMIT_FSIZE, &limit) == 0)
            return;
    }
    perror("file_limit");
    abort();
}

void file_limit_set(const char *dir)
{
    struct stat st;
    cleanup_free char *log = xasprintf("%s/biga.db-wal", dir);
    (void)signal(SIGXFSZ, SIG_IGN); /* cannot fail */
    if (stat(log, &st) < 0) {
        perror(log);
        abort();
    }
    limit_to((rlim_t)st.st_size);
}

void file_limit_lift(void)
{
    limit_to(RLIM_INFINITY);
}
