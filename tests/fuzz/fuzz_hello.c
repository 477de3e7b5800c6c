/* The first bytes of a connection: however they come, in one piece or bit by
 * bit, what is made of them is the same, and a decision is never taken back. */
#include <assert.h>
#include <stdint.h>

#include "lib/http/httpd_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t need = 0, n = 0;
    enum hello all = hello_read(data, size, &need);
    if (all == HELLO_MORE)
        assert(need > size && need <= HELLO_MAX);
    /* as the server does: as many as it is told to wait for */
    for (;;) {
        enum hello part = hello_read(data, n, &need);
        if (part != HELLO_MORE) {
            assert(part == all);
            return 0;
        }
        assert(need > n && need <= HELLO_MAX);
        if (need > size)
            break;
        n = need;
    }
    if (size > 0 && data[0] == 22)
        for (n = 0; n < size && n < 64; n++)
            assert(hello_read(data, n, &need) == HELLO_MORE ||
                   hello_read(data, n, &need) == all);
    return 0;
}
