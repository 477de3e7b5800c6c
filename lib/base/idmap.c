#include "lib/base/idmap.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

enum { CAP_MIN = 64 };

static bool is_free(const struct idmap_slot *s)
{
    return !(s->id[0] | s->id[1]);
}

static bool parse_hex(char c, uint64_t *value)
{
    int digit = c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
    *value = *value << 4 | (unsigned)(digit & 15);
    return digit >= 0;
}

void idmap_id(const char *text, uint64_t ret_id[2])
{
    enum { UUID_SIZE = 36 };
    size_t size = strlen(text), digits = 0;
    uint64_t id[2] = {0, 0};
    bool is_uuid = size == UUID_SIZE;
    for (size_t i = 0; is_uuid && i < size; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            is_uuid = text[i] == '-';
        else
            is_uuid = parse_hex(text[i], &id[digits++ / 16]);
    }
    if (!is_uuid || !(id[0] | id[1])) {
        id[0] = hash_bytes(text, size);
        id[1] = hash_mix(id[0] ^ UINT64_C(0xd6e8feb86659fd93),
                         hash_bytes(text, size / 2) ^ size) |
                1;
    }
    ret_id[0] = id[0];
    ret_id[1] = id[1];
}

void idmap_fini(struct idmap *m)
{
    free(m->slots);
    *m = (struct idmap){0};
}

static size_t home_of(const struct idmap *m, const uint64_t id[2])
{
    return hash_mix(id[0] ^ UINT64_C(0x9e3779b97f4a7c15),
                    id[1] ^ UINT64_C(0xd6e8feb86659fd93)) &
           (m->cap - 1);
}

/* Its slot, or the free one where it would be. */
static struct idmap_slot *probe(const struct idmap *m, const uint64_t id[2])
{
    size_t at = home_of(m, id);
    while (!is_free(&m->slots[at]) &&
           (m->slots[at].id[0] != id[0] || m->slots[at].id[1] != id[1]))
        at = (at + 1) & (m->cap - 1);
    return &m->slots[at];
}

static void resize(struct idmap *m, size_t cap)
{
    struct idmap old = *m;
    m->slots = xcalloc(cap, sizeof *m->slots);
    m->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (!is_free(&old.slots[i]))
            *probe(m, old.slots[i].id) = old.slots[i];
    free(old.slots);
}

struct idmap_slot *idmap_get(const struct idmap *m, const uint64_t id[2])
{
    struct idmap_slot *s = m->n ? probe(m, id) : NULL;
    return s && !is_free(s) ? s : NULL;
}

struct idmap_slot *idmap_put(struct idmap *m, const uint64_t id[2])
{
    if ((m->n + 1) * 3 > m->cap * 2)
        resize(m, m->cap ? m->cap * 2 : CAP_MIN);
    struct idmap_slot *s = probe(m, id);
    if (is_free(s)) {
        *s = (struct idmap_slot){.id = {id[0], id[1]}};
        m->n++;
    }
    return s;
}

/* Those behind it that would not be found any more move up. */
void idmap_remove(struct idmap *m, struct idmap_slot *slot)
{
    size_t mask = m->cap - 1, gap = (size_t)(slot - m->slots);
    for (size_t at = (gap + 1) & mask; !is_free(&m->slots[at]);
         at = (at + 1) & mask) {
        size_t home = home_of(m, m->slots[at].id);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* it is found without the gap */
        m->slots[gap] = m->slots[at];
        gap = at;
    }
    m->slots[gap] = (struct idmap_slot){0};
    m->n--;
}

void idmap_shrink(struct idmap *m)
{
    while (m->cap > CAP_MIN && m->n < m->cap / 8)
        resize(m, m->cap / 2);
}
