/* How often per second this disk makes a small write durable: 4 KiB appended
 * and fdatasync()ed, by one thread, for about SECONDS.  The yardstick for
 * durable binds.
 *
 *   bench_fsync DIR [SECONDS]      prints the rate */
#include <fcntl.h>

#include "model/base/mem.h"
#include "model/io/clock.h"

int main(int argc, char **argv)
{
    static char page[4096];
    int64_t seconds = argc > 2 ? strtol(argv[2], NULL, 10) : 2, n = 0;
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
    (void)unlink(path);
    int64_t start = clock_ns(), now = start;
    while (now - start < seconds * 1000000000) {
        if (write(fd, page, sizeof page) != (ssize_t)sizeof page ||
            fdatasync(fd)) {
            perror(path);
            return 1;
        }
        n++;
        now = clock_ns();
    }
    printf("%.1f\n", (double)n * 1e9 / (double)(now - start));
    return 0;
}
