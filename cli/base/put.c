#include "cli/base/put.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int put_all(int fd, const char *data, size_t size, const char *what,
            struct error *err)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EAGAIN) { /* what we share with others */
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            (void)poll(&p, 1, -1); /* write() says it again */
        } else if (n < 0 && errno != EINTR) {
            return error_errno(err, errno, "%s", what);
        } else if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return 0;
}
