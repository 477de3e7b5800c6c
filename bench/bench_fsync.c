/* How often per second this disk makes a small write durable, by one thread:
 * 4 KiB written and fdatasync()ed, for about SECONDS each, appended to a file
 * (its size changes, too) and written over what is there (as a write-ahead
 * log that was reset is).  The yardsticks for durable binds.
 *
 *   bench_fsync DIR [SECONDS]      prints both rates */
#include <fcntl.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { OVERWRITE_PAGES = 1024 };

static void write_page(int fd, off_t at)
{
    static char page[4096];
    if (pwrite(fd, page, sizeof page, at) != (ssize_t)sizeof page ||
        fdatasync(fd)) {
        perror("bench_fsync");
        exit(1);
    }
}

/* `pages` is how many are written before the first comes again; 0: never. */
static double rate(int fd, int64_t seconds, off_t pages)
{
    off_t n = 0;
    int64_t start = clock_ns(), now = start;
    while (now - start < seconds * 1000000000) {
        write_page(fd, (pages ? n % pages : n) * 4096);
        n++;
        now = clock_ns();
    }
    return (double)n * 1e9 / (double)(now - start);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 2 ? strtol(argv[2], NULL, 10) : 2;
    if (argc < 2) {
        fputs("usage: bench_fsync DIR [SECONDS]\n", stderr);
        return 2;
    }
    cleanup_free char *path = xasprintf("%s/fsync-XXXXXX", argv[1]);
    cleanup_fd int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    double append = rate(fd, seconds, 0);
    double overwrite = rate(fd, seconds, OVERWRITE_PAGES);
    /* only now: the kernel syncs a file without a name more slowly */
    (void)unlink(path);
    printf("%.1f\t%.1f\n", append, overwrite);
    return 0;
}
