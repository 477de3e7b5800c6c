#include "lib/base/strmap.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* The slot that holds `key`, or the free one where it would go.  There is
 * always a free one: the table is at most half full. */
static struct strmap_slot *strmap_probe(const struct strmap *m, const char *key,
                                        uint64_t hash)
{
    size_t i = hash & (m->cap - 1);
    while (m->slots[i].key &&
           (m->slots[i].hash != hash || strcmp(m->slots[i].key, key) != 0))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static void strmap_grow(struct strmap *m)
{
    struct strmap old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->slots = xcalloc(m->cap, sizeof *m->slots);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].key)
            *strmap_probe(m, old.slots[i].key,
                          old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

void strmap_fini(struct strmap *m)
{
    free(m->slots);
    *m = (struct strmap){0};
}

void strmap_fini_with(struct strmap *m, void (*destroy)(void *value))
{
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key)
            destroy(m->slots[i].value);
    strmap_fini(m);
}

void *strmap_get(const struct strmap *m, const char *key)
{
    if (m->n == 0)
        return NULL;
    struct strmap_slot *s = strmap_probe(m, key, hash_bytes(key, strlen(key)));
    return s->key ? s->value : NULL;
}

void *strmap_put(struct strmap *m, const char *key, void *value)
{
    if (m->n * 2 >= m->cap)
        strmap_grow(m);
    uint64_t hash = hash_bytes(key, strlen(key));
    struct strmap_slot *s = strmap_probe(m, key, hash);
    void *old = s->key ? s->value : NULL;
    if (!s->key)
        m->n++;
    *s = (struct strmap_slot){hash, key, value};
    return old;
}

void *strmap_remove(struct strmap *m, const char *key)
{
    if (m->n == 0)
        return NULL;
    struct strmap_slot *s = strmap_probe(m, key, hash_bytes(key, strlen(key)));
    if (!s->key)
        return NULL;
    void *old = s->value;
    m->n--;

    /* linear probing: an entry that was displaced past the freed slot moves
     * back into it, so that a lookup still finds it */
    size_t gap = (size_t)(s - m->slots);
    size_t mask = m->cap - 1;
    m->slots[gap].key = NULL;
    for (size_t i = (gap + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - gap) & mask))
            continue;
        m->slots[gap] = m->slots[i];
        m->slots[i].key = NULL;
        gap = i;
    }
    return old;
}

void *strmap_next(const struct strmap *m, size_t *pos)
{
    while (*pos < m->cap) {
        const struct strmap_slot *s = &m->slots[(*pos)++];
        if (s->key)
            return s->value;
    }
    return NULL;
}
