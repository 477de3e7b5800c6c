/* Saves what it can of a damaged database: allocations, applied objects
 * and drains, which exist nowhere else.  Slices are not saved: advertisers publish them
 * again. */
#include <stdio.h>

#include "extender/keep/store_private.h"
#include "lib/base/mem.h"
#include "lib/db/dbsalvage.h"
#include "lib/io/log.h"

enum { COUNT_MAX = 32 };

/* A text column; the caller frees. */
static char *take_text(const struct dbpages_row *row, size_t i)
{
    return xstrndup(row->values[i].data, row->values[i].size);
}

static int save_allocation(struct store *s, const struct dbpages_row *row,
                           struct error *err)
{
    cleanup_with(allocation) struct allocation *a = NULL;
    const struct dbpages_value *json = &row->values[2];
    if (allocation_decode(json->data, json->size, &a, NULL) < 0)
        return 0;
    store_raise_version(s, a->number);
    return store_put_allocation(s, a, err);
}

static int save_pod(struct store *s, const struct dbpages_row *row,
                    struct error *err)
{
    const struct dbpages_value *v = row->values;
    cleanup_free char *namespace = take_text(row, 0);
    cleanup_free char *name = take_text(row, 1);
    cleanup_free char *uid = take_text(row, 2);
    cleanup_free char *reason = take_text(row, 7);
    cleanup_free char *message = take_text(row, 8);
    cleanup_free char *json = take_text(row, 9);
    cleanup_free char *next = take_text(row, 10);
    const struct store_pod pod = {
        .namespace = namespace,
        .name = name,
        .uid = uid,
        .number = (uint64_t)v[3].number,
        .deleting = v[4].number != 0,
        .grace_s = (uint32_t)v[5].number,
        .ended = (uint32_t)v[6].number,
        .reason = reason,
        .message = message,
        .json = json,
        .size = v[9].size,
        .next = next,
    };
    store_raise_version(s, pod.number);
    return store_put_pod(s, &pod, err);
}

static int save_config(struct store *s, const struct dbpages_row *row,
                       struct error *err)
{
    cleanup_free char *namespace = take_text(row, 1);
    cleanup_free char *name = take_text(row, 2);
    cleanup_free char *json = take_text(row, 3);
    const struct store_config config = {
        .secret = row->values[0].number != 0,
        .namespace = namespace,
        .name = name,
        .json = json,
        .size = row->values[3].size,
    };
    return store_put_config(s, &config, err);
}

static int save_drain(struct store *s, const struct dbpages_row *row,
                      struct error *err)
{
    struct card_bar drain = {.drains = true,
                             .evict = row->values[2].number != 0};
    const struct {
        char *to;
        size_t cap;
    } texts[] = {{NULL, 0},
                 {drain.card, sizeof drain.card},
                 {NULL, 0},
                 {drain.since, sizeof drain.since},
                 {drain.by, sizeof drain.by},
                 {drain.reason, sizeof drain.reason}};
    cleanup_free char *node = take_text(row, 0);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_free char *text = texts[i].to ? take_text(row, i) : NULL;
        if (text)
            (void)snprintf(texts[i].to, texts[i].cap, "%s", text);
    }
    return store_put_drain(s, node, &drain, err);
}

/* Only the row "version"; which nodes are silent shows soon enough. */
static int save_meta(struct store *s, const struct dbpages_row *row,
                     struct error *err)
{
    cleanup_free char *key = take_text(row, 0);
    (void)err;
    if (strcmp(key, "version") == 0)
        store_raise_version(s, (uint64_t)row->values[1].number);
    return 0;
}

/* A table is recognized by the types of its columns, which no other table
 * has. */
static const struct salvage {
    const char *columns;
    int (*save)(struct store *s, const struct dbpages_row *row,
                struct error *err);
} salvages[] = {
    {"ttti", save_allocation}, {"tttiiiitttti", save_pod},
    {"ittti", save_config},    {"ttittti", save_drain},
    {"tii", save_meta},
};

struct saving {
    struct store *s;
    struct error *err;
};

static int save_row(void *ctx, const struct dbpages_row *row)
{
    struct saving *x = ctx;
    for (size_t i = 0; i < ARRAY_LEN(salvages); i++)
        if (dbsalvage_is(row, salvages[i].columns))
            return salvages[i].save(x->s, row, x->err);
    return 0;
}

/* --- counting what is there then ------------------------------------------ */

static int count_allocation(void *ctx, struct allocation *a)
{
    (void)a;
    ++*(unsigned *)ctx;
    return 0;
}

static int count_pod(void *ctx, const struct store_pod *pod)
{
    (void)pod;
    ++*(unsigned *)ctx;
    return 0;
}

static int count_config(void *ctx, const struct store_config *config)
{
    (void)config;
    ++*(unsigned *)ctx;
    return 0;
}

static int log_saved(struct store *s, const struct dbpages_found *found,
                     struct error *err)
{
    char texts[5][COUNT_MAX];
    unsigned n[3] = {0};
    int e = store_each_allocation(s, count_allocation, &n[0], err);
    if (e == 0)
        e = store_each_pod(s, count_pod, &n[1], err);
    if (e == 0)
        e = store_each_config(s, count_config, &n[2], err);
    for (size_t i = 0; i < ARRAY_LEN(n); i++)
        (void)snprintf(texts[i], COUNT_MAX, "%u", n[i]);
    (void)snprintf(texts[3], COUNT_MAX, "%llu",
                   (unsigned long long)found->frames);
    (void)snprintf(texts[4], COUNT_MAX, "%llu",
                   (unsigned long long)found->broken);
    if (e == 0)
        log_event(LOG_WARN, "store-salvaged", "allocations", texts[0], "pods",
                  texts[1], "configs", texts[2], "log-frames", texts[3],
                  "broken", texts[4], NULL);
    return e;
}

int store_salvage(struct store *s, const char *dir, const char *name,
                  uint64_t version, struct error *err)
{
    struct dbpages_found found;
    struct saving saving = {s, err};
    int e = store_begin(s, err);
    if (e == 0)
        e = dbsalvage_each(dir, name, save_row, &saving, &found);
    store_raise_version(s, version);
    if (e == 0)
        e = store_begin_doubt(s, err);
    if (e == 0)
        e = store_commit(s, err);
    return e == 0 ? log_saved(s, &found, err) : e;
}
