/* The shapes of a job's pairs: annotation biga.dev/shapes. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/pod/demand_private.h"
#include "model/pod/pod.h"

/* The entry that is being read. */
struct entry {
    unsigned number; /* 1… */
    struct pair_shape shape;
    uint32_t keys; /* bits of the keys that were given */
    struct error *err;
};

enum key {
    KEY_CARDS,
    KEY_GPUS,
    KEY_NICS,
    KEY_CORES,
    KEY_MEMORY,
    KEY_CPUS,
    KEY_HOST_MEMORY,
    KEY_ALIGN,
    KEY_COUNT
};

static const struct {
    const char *name;
    int64_t min, max; /* of the keys that are whole numbers */
} keys[KEY_COUNT] = {
    [KEY_CARDS] = {"cards", 1, TOPO_CARDS_MAX},
    [KEY_GPUS] = {"gpus", 0, TOPO_GPUS_MAX},
    [KEY_NICS] = {"nics", 0, TOPO_NICS_MAX},
    [KEY_CORES] = {"cores", 0, UINT32_MAX},
    [KEY_MEMORY] = {"memory-mib", 0, UINT32_MAX},
    [KEY_CPUS] = {"cpus", 0, 0},
    [KEY_HOST_MEMORY] = {"host-memory-mib", 0, UINT32_MAX},
    [KEY_ALIGN] = {"align", 0, 0},
};

const struct pair_shape *shapes_find(const struct demand *d, int32_t rank)
{
    for (unsigned i = 0; i < d->n_shapes; i++)
        if (rank >= d->shapes[i].first && rank <= d->shapes[i].last)
            return &d->shapes[i];
    return NULL;
}

static char *trim(char *text)
{
    text += strspn(text, " ");
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ')
        text[--n] = '\0';
    return text;
}

/* Digits without leading zeros; false when it is none. */
static bool parse_whole(const char *text, int64_t *ret_value)
{
    size_t n = strlen(text);
    if (n == 0 || n > 10 || strspn(text, "0123456789") != n ||
        (text[0] == '0' && n > 1))
        return false;
    *ret_value = strtoll(text, NULL, 10);
    return true;
}

static int fail_value(const struct entry *e, enum key key, const char *value,
                      const char *allowed)
{
    return error_set(e->err, EDOM, "entry %u: %s is \"%.32s\", must be %s",
                     e->number, keys[key].name, value, allowed);
}

static int take_value(struct entry *e, enum key key, const char *value)
{
    int64_t number = 0;
    char allowed[64];
    if (key == KEY_ALIGN) {
        enum relation align;
        if (relation_parse(value, &align, NULL) < 0)
            return fail_value(e, key, value,
                              "pix, pxb, phb, node, socket or sys");
        e->shape.align = (uint8_t)align;
        return 0;
    }
    if (key == KEY_CPUS) {
        if (!pod_parse_cpus(value, strlen(value), &number))
            return fail_value(e, key, value, "CPUs such as 2, 1.5 or 500m");
        e->shape.cpu_milli = (uint32_t)number;
        return 0;
    }
    if (!parse_whole(value, &number) || number < keys[key].min ||
        number > keys[key].max) {
        (void)snprintf(allowed, sizeof allowed,
                       "a whole number from %lld to %lld",
                       (long long)keys[key].min, (long long)keys[key].max);
        return fail_value(e, key, value, allowed);
    }
    if (key == KEY_CARDS)
        e->shape.cards = (uint8_t)number;
    else if (key == KEY_GPUS)
        e->shape.gpus = (uint8_t)number;
    else if (key == KEY_NICS)
        e->shape.nics = (uint8_t)number;
    else if (key == KEY_CORES)
        e->shape.card_cores = (uint32_t)number;
    else if (key == KEY_MEMORY)
        e->shape.card_memory_mib = (uint32_t)number;
    else
        e->shape.memory_mib = (uint32_t)number;
    return 0;
}

/* "cards=2" */
static int take_word(struct entry *e, char *word)
{
    char *value = strchr(word, '=');
    unsigned k = 0;
    if (value)
        *value++ = '\0';
    while (k < KEY_COUNT && strcmp(word, keys[k].name) != 0)
        k++;
    if (!value || k == KEY_COUNT)
        return error_set(e->err, EDOM,
                         "entry %u: \"%.32s%s\" must be KEY=VALUE, with KEY "
                         "cards, gpus, nics, cores, memory-mib, cpus, "
                         "host-memory-mib or align",
                         e->number, word, value ? "=…" : "");
    if (e->keys >> k & 1)
        return error_set(e->err, EDOM, "entry %u: %s is given twice", e->number,
                         word);
    e->keys |= UINT32_C(1) << k;
    return take_value(e, (enum key)k, value);
}

/* "3", "1-4": pairs of the job, behind those of the entry before. */
static int take_range(struct entry *e, char *text, const struct demand *d)
{
    int64_t first, last;
    char whole[32];
    (void)snprintf(whole, sizeof whole, "%s", text);
    char *dash = strchr(text, '-');
    if (dash)
        *dash++ = '\0';
    if (!parse_whole(text, &first) || !parse_whole(dash ? dash : text, &last) ||
        first > last)
        return error_set(e->err, EDOM,
                         "entry %u: \"%s\" must be the index of a pair, or "
                         "the first and the last of several, \"1-4\"",
                         e->number, whole);
    if (last >= d->size)
        return error_set(e->err, EDOM,
                         "entry %u: \"%s\" is beyond the last pair: "
                         "metadata.annotations[\"biga.dev/size\"] is %d",
                         e->number, whole, (int)d->size);
    if (d->n_shapes && first <= d->shapes[d->n_shapes - 1].last)
        return error_set(e->err, EDOM,
                         "entry %u: \"%s\" must come after %d, the last pair "
                         "of the entry before",
                         e->number, whole,
                         (int)d->shapes[d->n_shapes - 1].last);
    e->shape.first = (int32_t)first;
    e->shape.last = (int32_t)last;
    return 0;
}

/* "1-4: cards=2 gpus=2" */
static int take_entry(struct entry *e, char *text, const struct demand *d)
{
    char *rest = strchr(text, ':');
    if (!rest)
        return error_set(e->err, EDOM,
                         "entry %u: \"%.32s\" must be FIRST[-LAST]: KEY=VALUE "
                         "…",
                         e->number, trim(text));
    *rest++ = '\0';
    int rc = take_range(e, trim(text), d);
    while (rc == 0 && rest) {
        char *word = strsep(&rest, " ");
        if (*word)
            rc = take_word(e, word);
    }
    e->shape.has_card_need = e->shape.card_cores || e->shape.card_memory_mib;
    return rc;
}

int shapes_parse(char *text, struct demand *d, struct error *err)
{
    for (unsigned n = 1; text; n++) {
        struct entry e;
        memset(&e, 0, sizeof e); /* demands compare as bytes */
        e.number = n;
        e.err = err;
        e.shape.cards = 1;
        e.shape.align = RELATION_SYS;
        if (n > DEMAND_SHAPES_MAX)
            return error_set(err, EDOM, "more than %d entries",
                             DEMAND_SHAPES_MAX);
        int rc = take_entry(&e, strsep(&text, ";"), d);
        if (rc < 0)
            return rc;
        memcpy(&d->shapes[d->n_shapes++], &e.shape, sizeof e.shape);
    }
    return 0;
}

/* --- pairs of a job ------------------------------------------------------- */

/* `shape`: of the rank, or NULL. */
static void join_pair(struct demand *pair, int32_t rank,
                      const struct pair_shape *shape)
{
    pair->role = ROLE_HOST;
    pair->pair = rank;
    pair->cards = pair->pair_cards;
    pair->gpus = pair->pair_gpus;
    pair->nics = pair->pair_nics;
    if (!shape)
        return;
    pair->cards = pair->pair_cards = shape->cards;
    pair->gpus = pair->pair_gpus = shape->gpus;
    pair->nics = pair->pair_nics = shape->nics;
    pair->align = shape->align;
    pair->has_card_need = shape->has_card_need;
    pair->card_cores = shape->card_cores;
    pair->card_memory_mib = shape->card_memory_mib;
    pair->cpu_milli = shape->cpu_milli;
    pair->memory_mib = shape->memory_mib;
}

void demand_pair(const struct demand *pod, int32_t rank,
                 struct demand *ret_pair)
{
    const struct pair_shape *shape = shapes_find(pod, rank);
    if (ret_pair != pod)
        *ret_pair = *pod;
    join_pair(ret_pair, rank, shape);
}

void demand_pair_nameless(const struct demand *pod, int32_t rank,
                          struct demand *ret_pair)
{
    enum {
        FROM = offsetof(struct demand, pair),
        END = offsetof(struct demand, n_shapes),
    };
    struct demand *pair = ret_pair;
    pair->name[0] = pair->namespace[0] = pair->uid[0] = pair->job[0] = '\0';
    memcpy((char *)pair + FROM, (const char *)pod + FROM, END - FROM);
    pair->n_shapes = 0;
    join_pair(pair, rank, shapes_find(pod, rank));
}

bool demand_is_planned(const struct demand *pod)
{
    if (pod->role != ROLE_HOST && pod->role != ROLE_XPU)
        return false;
    if ((pod->job[0] && pod->size > 1) || pod->cards != pod->pair_cards)
        return true;
    return pod->role == ROLE_XPU && (pod->pair_gpus || pod->pair_nics ||
                                     pod->cpu_milli || pod->memory_mib);
}
