#include "lib/io/mem_trim.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/mem.h"

/* Code alone: it is never written to, so nothing is lost; what is only
 * readable may have been relocated. */
static size_t trim_line(const char *line)
{
    unsigned long long from, to;
    char mode[8], path[2] = "";
    if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %1s", &from, &to, mode, path) !=
            4 ||
        strcmp(mode, "r-xp") != 0 || path[0] != '/' || to <= from)
        return 0;
    size_t size = (size_t)(to - from);
    void *at = (void *)(size_t)from;
    return madvise(at, size, MADV_DONTNEED) == 0 ? size : 0;
}

size_t mem_trim_memory(void)
{
    char line[4096];
    size_t n = 0;
    cleanup_file FILE *f = fopen("/proc/self/maps", "re");
    (void)malloc_trim(0); /* nothing to give is fine */
    while (f && fgets(line, sizeof line, f))
        n += trim_line(line);
    return n;
}
