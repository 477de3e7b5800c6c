#include "lib/h2/grpc_prefix.h"

void grpc_prefix(size_t size, unsigned char ret_prefix[GRPC_PREFIX])
{
    ret_prefix[0] = 0;
    for (int i = 1; i < GRPC_PREFIX; i++)
        ret_prefix[i] = (unsigned char)(size >> 8 * (GRPC_PREFIX - 1 - i));
}

int grpc_prefix_read(const unsigned char prefix[GRPC_PREFIX], size_t max,
                     size_t *ret_size, struct error *err)
{
    size_t size = 0;
    for (int i = 1; i < GRPC_PREFIX; i++)
        size = size << 8 | prefix[i];
    if (prefix[0] == 1)
        return error_set(err, ENOTSUP,
                         "the message is compressed, which was not asked for");
    if (prefix[0] != 0)
        return error_set(err, EPROTO,
                         "a message begins with the flags %#x, only 0 is "
                         "known",
                         prefix[0]);
    if (size > max)
        return error_set(err, EMSGSIZE,
                         "a message of %zu bytes is announced, the limit is "
                         "%zu",
                         size, max);
    *ret_size = size;
    return 0;
}
