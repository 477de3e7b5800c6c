#include "lib/io/footprint.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/mem.h"

enum { ARENAS_MAX = 2 };

void footprint_limit(void)
{
    (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
}

/* Program text is never written to, so that the file has the same bytes; all
 * else, as tables that the loader has filled in, stays. */
static void drop_text(const char *line)
{
    uintptr_t from, to;
    char perms[5], path[2];
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %1s", &from,
               &to, perms, path) == 4 &&
        strcmp(perms, "r-xp") == 0 && *path == '/')
        /* a mapping that is no such one any more is none of text */
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void footprint_trim(void)
{
    char line[512];
    cleanup_file FILE *f = fopen("/proc/self/maps", "re");
    (void)malloc_trim(0);
    while (f && fgets(line, sizeof line, f))
        drop_text(line);
}
