#include "router/volume/volume_listing.h"

#include <stdlib.h>
#include <string.h>

struct listing {
    const char *text;
    size_t size, at;
    struct error *err;
};

static int broken(const struct listing *l, const char *why)
{
    return error_set(l->err, EPROTO, "biga-card tree: at byte %zu: %s", l->at,
                     why);
}

/* The next text; NULL when it has no end. */
static const char *next(struct listing *l)
{
    const char *text = l->text + l->at;
    const char *end = memchr(text, '\0', l->size - l->at);
    if (!end)
        return NULL;
    l->at += (size_t)(end - text) + 1;
    return text;
}

/* A number and the blank after it. */
static bool number(const char **text, int base, uint64_t max,
                   uint64_t *ret_value)
{
    char *end;
    errno = 0;
    if (**text == '-' || **text == '+' || **text == ' ')
        return false;
    unsigned long long value = strtoull(*text, &end, base);
    if (errno || end == *text || *end != ' ' || value > max)
        return false;
    *text = end + 1;
    *ret_value = value;
    return true;
}

/* Behind "TYPE ". */
static bool item_read(const char *text, struct volume_item *item)
{
    uint64_t mode, uid, gid;
    if (!number(&text, 8, 07777, &mode) ||
        !number(&text, 10, UINT32_MAX, &uid) ||
        !number(&text, 10, UINT32_MAX, &gid) ||
        !number(&text, 10, UINT64_MAX, &item->size) ||
        !number(&text, 16, UINT64_MAX, &item->hash))
        return false;
    item->mode = (uint32_t)mode;
    item->uid = (uint32_t)uid;
    item->gid = (uint32_t)gid;
    item->name = text;
    return (strncmp(text, "disk/", 5) == 0 ||
            strncmp(text, "memory/", 7) == 0) &&
           volume_name_ok(text);
}

static int add(struct listing *l, const char *line, struct volume_tree *tree)
{
    struct volume_item item = {0};
    item.type = line[0] == 'd'   ? VOLUME_FOLDER
                : line[0] == 'f' ? VOLUME_FILE
                                 : VOLUME_LINK;
    if (!strchr("dfl", line[0]) || line[1] != ' ' ||
        !item_read(line + 2, &item))
        return broken(l, "is no line of a tree");
    item.target = item.type == VOLUME_LINK ? next(l) : NULL;
    if (item.type == VOLUME_LINK && !item.target)
        return broken(l, "a link's target is cut off");
    /* links of others are not ours, and go */
    if (item.target && !volume_name_ok(item.target))
        item.target = "?";
    struct error why;
    return volume_tree_add(tree, &item, &why) ? broken(l, why.text) : 0;
}

static int read_all(struct listing *l, struct volume_tree *tree)
{
    struct error why;
    for (const char *line; (line = next(l));) {
        if (strncmp(line, "end ", 4) == 0) {
            char n[32];
            (void)snprintf(n, sizeof n, "%zu", tree->n);
            if (strcmp(line + 4, n) != 0 || l->at != l->size)
                return broken(l, "is not the end");
            return volume_tree_sort(tree, &why) ? broken(l, why.text) : 0;
        }
        int rc = line[0] ? add(l, line, tree) : broken(l, "is an empty line");
        if (rc)
            return rc;
    }
    return broken(l, "is cut off");
}

int volume_listing_read(const char *text, size_t size,
                        struct volume_tree *ret_tree, struct error *err)
{
    struct volume_tree tree = {0};
    struct listing l = {.text = text, .size = size, .err = err};
    int rc = size > VOLUME_LISTING_MAX ? broken(&l, "is too long")
                                       : read_all(&l, &tree);
    if (rc) {
        volume_tree_fini(&tree);
        return rc;
    }
    *ret_tree = tree;
    return 0;
}
