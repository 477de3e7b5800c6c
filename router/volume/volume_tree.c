#include "router/volume/volume_tree.h"

#include <string.h>

#include "lib/base/hash.h"

void volume_tree_fini(struct volume_tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].data)
            explicit_bzero((char *)(uintptr_t)t->items[i].data,
                           t->items[i].size);
    free(t->items);
    arena_fini(&t->arena);
    *t = (struct volume_tree){0};
}

bool volume_name_ok(const char *name)
{
    for (const char *part = name;; part++) {
        size_t len = strcspn(part, "/");
        if (len == 0 || len > 255 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += len;
        if (!*part)
            return part - name <= VOLUME_NAME_MAX;
    }
}

static int check(const struct volume_tree *t, const struct volume_item *item,
                 struct error *err)
{
    if (item->name[0] && !volume_name_ok(item->name))
        return error_set(err, EINVAL, "\"%.80s\": is no name below a folder",
                         item->name);
    if (item->type == VOLUME_LINK && !volume_name_ok(item->target))
        return error_set(err, EINVAL,
                         "%.200s: leads to \"%.80s\", which is not below the "
                         "link's own folder",
                         item->name, item->target);
    if (t->n == VOLUME_ITEMS_MAX)
        return error_set(err, EFBIG, "%.200s: more than %d files and folders",
                         item->name, VOLUME_ITEMS_MAX);
    if (item->data && item->size > VOLUME_BYTES_MAX - t->size)
        return error_set(err, EFBIG, "%.200s: more than %d bytes with it",
                         item->name, VOLUME_BYTES_MAX);
    return 0;
}

int volume_tree_add(struct volume_tree *t, const struct volume_item *item,
                    struct error *err)
{
    int rc = check(t, item, err);
    if (rc)
        return rc;
    struct volume_item copy = *item;
    copy.name = arena_strndup(&t->arena, item->name, strlen(item->name));
    if (item->type == VOLUME_LINK)
        copy.target = arena_strndup(&t->arena, item->target,
                                    strlen(item->target));
    if (item->data) {
        copy.data = arena_strndup(&t->arena, item->data, item->size);
        copy.hash = hash_bytes(item->data, item->size);
        t->size += item->size;
    }
    t->items = xgrow(t->items, t->n, &t->cap, sizeof *t->items);
    t->items[t->n++] = copy;
    return 0;
}

static int order(const void *a, const void *b)
{
    return strcmp(((const struct volume_item *)a)->name,
                  ((const struct volume_item *)b)->name);
}

int volume_tree_sort(struct volume_tree *t, struct error *err)
{
    if (t->n > 0)
        qsort(t->items, t->n, sizeof *t->items, order);
    for (size_t i = 1; i < t->n; i++)
        if (order(&t->items[i - 1], &t->items[i]) == 0)
            return error_set(err, EINVAL, "%.200s: is there twice",
                             t->items[i].name);
    return 0;
}

const struct volume_item *volume_tree_find(const struct volume_tree *t,
                                           const char *name)
{
    const struct volume_item key = {.name = name};
    return t->n > 0 ? bsearch(&key, t->items, t->n, sizeof *t->items, order)
                    : NULL;
}
