/* A map of ids against a plain array. */
#include "lib/base/idmap.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

enum { IDS = 3000, STEPS = 100000 };

static void id_of(unsigned i, uint64_t id[2])
{
    char text[40];
    if (i % 7 == 0)
        (void)snprintf(text, sizeof text, "thing-%u", i);
    else
        (void)snprintf(text, sizeof text, "%08x-89ab-4cde-8f01-%012x",
                       i * 2654435761u, i);
    idmap_id(text, id);
}

Test(idmap, ids_are_those_of_their_texts)
{
    uint64_t id[2], other[2];
    idmap_id("00112233-4455-6677-8899-aabbccddeeff", id);
    cr_expect_eq(id[0], UINT64_C(0x0011223344556677));
    cr_expect_eq(id[1], UINT64_C(0x8899aabbccddeeff));
    static const char *const others[] = {"00112233-4455-6677-8899-AABBCCDDEEFF",
                                         "00112233-4455-6677-8899-aabbccddeef",
                                         "00112233-4455-6677-8899-aabbccddeefg",
                                         "0011223344556677-8899-aabb-ccddeeff0",
                                         "00000000-0000-0000-0000-000000000000",
                                         ""};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        idmap_id(others[i], other);
        cr_expect(other[0] | other[1], "%s", others[i]);
        cr_expect(other[0] != id[0] || other[1] != id[1], "%s", others[i]);
    }
}

static void compare(const struct idmap *m, const uint64_t *has)
{
    size_t n = 0;
    for (unsigned i = 0; i < IDS; i++) {
        uint64_t id[2];
        id_of(i, id);
        const struct idmap_slot *s = idmap_get(m, id);
        cr_assert_eq(s ? s->data[0] : 0, has[i], "%u", i);
        n += has[i] != 0;
    }
    cr_assert_eq(m->n, n);
}

Test(idmap, holds_what_was_put)
{
    static uint64_t has[IDS];
    struct idmap m = {0};
    uint64_t random = 1, id[2];
    for (unsigned step = 1; step <= STEPS; step++) {
        random = hash_mix(random ^ step, UINT64_C(0xd6e8feb86659fd93));
        unsigned i = (unsigned)(random >> 8) % IDS;
        /* it grows, and shrinks again */
        bool puts = random % 10 < (step / 20000 % 2 ? 2u : 7u);
        id_of(i, id);
        struct idmap_slot *s = idmap_get(&m, id);
        if (puts)
            idmap_put(&m, id)->data[0] = has[i] = step;
        else if (s) {
            idmap_remove(&m, s);
            has[i] = 0;
        }
        if (random % 100 == 0)
            idmap_shrink(&m);
        if (step % 5000 == 0)
            compare(&m, has);
    }
    for (size_t i = 0; i < m.cap;)
        if (m.slots[i].id[0] | m.slots[i].id[1])
            idmap_remove(&m, &m.slots[i]);
        else
            i++;
    memset(has, 0, sizeof has);
    compare(&m, has);
    idmap_shrink(&m);
    cr_expect_leq(m.cap, 64);
    idmap_fini(&m);
}
