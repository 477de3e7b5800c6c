/* Reading slices by a pattern. */
#include <stdlib.h>
#include <string.h>

#include "model/slice/slice_pattern_private.h"
#include "model/slice/slice_private.h"
#include "model/topo/topo_hardware.h"

struct text {
    const char *data;
    size_t size;
};

/* Is all the same but for the holes?  Their texts stay where they are. */
static bool compare(const struct slice_pattern *p, const struct text *whole,
                    struct text *texts)
{
    const char *at = whole->data, *end = at + whole->size;
    struct text node_text = {0};
    size_t from = 0;
    for (size_t i = 0; i < p->n_holes; i++) {
        const struct hole *h = &p->holes[i];
        size_t same = h->at - from;
        if ((size_t)(end - at) < same || memcmp(at, p->json + from, same) != 0)
            return false;
        at += same;
        size_t left = (size_t)(end - at);
        struct text t = {at, h->slot == SLOT_GENERATION
                                 ? slice_digits_size(at, left)
                                 : slice_plain_size(at, left)};
        if (h->slot == SLOT_NODE_TEXT && node_text.data &&
            (t.size != node_text.size ||
             memcmp(t.data, node_text.data, t.size) != 0))
            return false;
        if (h->slot == SLOT_NODE_TEXT)
            node_text = t;
        texts[h->slot] = t;
        at += t.size;
        from = h->at + h->size;
    }
    return (size_t)(end - at) == p->size - from &&
           memcmp(at, p->json + from, p->size - from) == 0;
}

static bool is_subdomain(const struct text *t)
{
    return t->size <= SLICE_NAME_MAX && slice_is_subdomain(t->data, t->size);
}

static bool same_text(const struct text *a, const struct text *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* As slice_decode.c, slice_device.c and topo_check_device() do. */
static bool check(const struct slice_pattern *p, const struct text *texts)
{
    const struct text *generation = &texts[SLOT_GENERATION];
    if (!is_subdomain(&texts[SLOT_NAME]) || !is_subdomain(&texts[SLOT_NODE]) ||
        !same_text(&texts[SLOT_POOL], &texts[SLOT_NODE]) ||
        texts[SLOT_BOOT_ID].size > SLICE_BOOT_ID_MAX || generation->size == 0 ||
        generation->size > SLICE_GENERATION_DIGITS ||
        generation->data[0] == '0')
        return false;
    for (size_t i = SLOT_OWN; i < p->n_slots; i++)
        if (texts[i].size > SLICE_TEXT_MAX)
            return false;
    return true;
}

static char *put_text(char *to, const struct text *t)
{
    if (t->size)
        memcpy(to, t->data, t->size);
    to[t->size] = '\0';
    return to + t->size + 1;
}

/* As slice_brief() makes one, and its topology. */
static struct slice *make(const struct slice_pattern *p,
                          const struct text *texts)
{
    size_t size = texts[SLOT_NAME].size + texts[SLOT_HASH].size + 2;
    size_t own = texts[SLOT_NODE].size + 1;
    for (size_t i = SLOT_OWN; i < p->n_slots; i++)
        own += texts[i].size + 1;
    struct slice *s = xcalloc(1, sizeof *s + size + own);
    char *name = (char *)(s + 1), *hash = put_text(name, &texts[SLOT_NAME]);
    char *node = put_text(hash, &texts[SLOT_HASH]);
    char *at = put_text(node, &texts[SLOT_NODE]);
    for (size_t i = SLOT_OWN; i < p->n_slots; i++)
        at = put_text(at, &texts[i]);
    atomic_init(&s->refs, 1);
    s->name = name;
    s->hash = hash;
    s->node = s->pool = node;
    s->runs = "";
    (void)put_text(s->epoch.boot_id, &texts[SLOT_BOOT_ID]);
    for (size_t i = 0; i < texts[SLOT_GENERATION].size; i++)
        s->epoch.generation = s->epoch.generation * 10 +
                              texts[SLOT_GENERATION].data[i] - '0';
    s->pool_count = 1;
    s->given = p->given;
    s->hardware = hardware_ref(p->hardware);
    s->own = node;
    s->own_size = own;
    return s;
}

/* The rest of the checks, which take whole texts. */
static bool check_made(const struct slice *s, const struct text *texts)
{
    const struct text *node_text = &texts[SLOT_NODE_TEXT];
    char want[SLICE_NODE_TEXT_MAX + 1];
    slice_node_text(s->node, want);
    return !slice_check_boot_id(s->epoch.boot_id) &&
           (!texts[SLOT_HASH].data || !slice_check_hash(s->hash)) &&
           (!node_text->data ||
            same_text(node_text, &(struct text){want, strlen(want)}));
}

struct slice *slice_pattern_read(const struct slice_pattern *p,
                                 const char *json, size_t size)
{
    const struct text whole = {json, size};
    if (size > SLICE_BODY_MAX)
        return NULL;
    cleanup_free struct text *texts = xcalloc(p->n_slots, sizeof *texts);
    if (!compare(p, &whole, texts) || !check(p, texts))
        return NULL;
    cleanup_with(slice) struct slice *s = make(p, texts);
    return check_made(s, texts) ? steal(&s) : NULL;
}
