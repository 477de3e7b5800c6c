/* What a peer of deploy/examples/allreduce sends: a frame that is read obeys
 * its caps and is written as it came, and hosts are at most so many. */
#include <assert.h>
#include <string.h>

#include "deploy/examples/allreduce/arhosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_head(const uint8_t *data)
{
    unsigned char again[AR_HEAD];
    struct ar_frame f, same;
    struct error err = {0};
    int r = arframe_read(data, &f, &err);
    assert(r == 0 || (r == -EPROTO && err.text[0]));
    if (r < 0)
        return;
    assert(f.size >= 1 && f.size <= AR_RANKS_MAX && f.rank < f.size);
    assert(f.bytes <= AR_DATA_MAX);
    arframe_write(&f, again);
    assert(arframe_read(again, &same, &err) == 0);
    assert(arframe_expect(&same, &f, &err) == 0);
}

static void try_hosts(const uint8_t *data, size_t size)
{
    static struct ar_hosts hosts;
    struct error err = {0};
    int r = arhosts_read((const char *)data, size, &hosts, &err);
    assert(r == 0 || (r == -EINVAL && err.text[0]));
    assert(r < 0 || (hosts.n >= 1 && hosts.n <= AR_RANKS_MAX));
    for (size_t i = 0; r == 0 && i < hosts.n; i++)
        assert(hosts.of[i][0] && strlen(hosts.of[i]) <= AR_HOST_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= AR_HEAD)
        try_head(data);
    try_hosts(data, size);
    return 0;
}
