/* A card's log: a container writes what it likes.  Whatever it is, a line's
 * head lies inside of it, and the file read in small bites gives what it
 * gives in one. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/card.h"
#include "lib/base/mem.h"
#include "lib/io/log_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t take(const char *path, uint64_t at, size_t max, int out)
{
    struct error err;
    struct card_given given;
    int rc = card_log(path, at, max, out, &given, &err);
    assert(rc == 0);
    assert(given.next >= at && given.size <= max);
    return given.next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[] = "/tmp/biga-fuzz-log-XXXXXX";
    static int in = -1;
    struct log_line line = log_line_read((const char *)data, size);
    assert(line.head <= size);
    if (size > 4096)
        return 0;
    if (in < 0) {
        in = mkstemp(path);
        assert(in >= 0);
    }
    assert(ftruncate(in, 0) == 0);
    assert(pwrite(in, data, size, 0) == (ssize_t)size);
    cleanup_fd int whole = memfd_create("whole", 0);
    cleanup_fd int bites = memfd_create("bites", 0);
    uint64_t end = take(path, 0, CARD_LOG_MAX, whole), at = 0;
    size_t max = size ? data[0] % 32 + 1u : 1;
    for (uint64_t next; (next = take(path, at, max, bites)) > at;)
        at = next;
    assert(at == end);
    static char a[8192], b[8192];
    ssize_t n = pread(whole, a, sizeof a, 0);
    assert(n >= 0 && n == pread(bites, b, sizeof b, 0));
    assert(memcmp(a, b, (size_t)n) == 0);
    return 0;
}
