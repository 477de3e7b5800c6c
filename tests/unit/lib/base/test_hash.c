#include "lib/base/hash.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

Test(hash, depends_on_the_bytes_alone)
{
    char room[64];
    for (size_t size = 0; size <= 40; size++) {
        memset(room, 0, sizeof room);
        for (size_t i = 0; i < size; i++)
            room[i] = room[i + 1] = (char)(i * 7 + 1);
        uint64_t h = hash_bytes(room, size);
        memset(room + size, 0xee, sizeof room - size);
        cr_expect_eq(hash_bytes(room, size), h, "reads past %zu", size);
        char moved[64];
        memcpy(moved + 3, room, size);
        cr_expect_eq(hash_bytes(moved + 3, size), h, "alignment");
    }
}

Test(hash, every_byte_counts)
{
    char text[40];
    memset(text, 'a', sizeof text);
    for (size_t size = 1; size <= sizeof text; size++) {
        uint64_t h = hash_bytes(text, size);
        cr_expect_neq(h, hash_bytes(text, size - 1));
        for (size_t i = 0; i < size; i++) {
            text[i] ^= 1;
            cr_expect_neq(hash_bytes(text, size), h, "byte %zu of %zu", i,
                          size);
            text[i] ^= 1;
        }
    }
}

/* Names of nodes are much alike; neither all 64 bits nor the low ones that
 * choose a bucket may collide more than chance. */
Test(hash, names_of_nodes_spread)
{
    enum { N = 100000, BUCKETS = 1 << 17 };
    uint64_t *hashes = xcalloc(N, sizeof *hashes);
    uint8_t *used = xcalloc(BUCKETS, 1);
    size_t n_used = 0;
    for (int i = 0; i < N; i++) {
        char name[64];
        int len = snprintf(name, sizeof name, "node-%05d.cluster.example", i);
        hashes[i] = hash_bytes(name, (size_t)len);
        n_used += !used[hashes[i] & (BUCKETS - 1)];
        used[hashes[i] & (BUCKETS - 1)] = 1;
    }
    qsort(hashes, N, sizeof *hashes, compare);
    for (int i = 1; i < N; i++)
        cr_assert_neq(hashes[i], hashes[i - 1]);
    /* chance fills 1 - exp(-N / BUCKETS) = 53.4 % of the buckets */
    cr_expect_gt(n_used, BUCKETS / 100 * 52);
    free(hashes);
    free(used);
}
