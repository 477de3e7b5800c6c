/* Any tree of the kubelet over any of a remote: whoever carries out the plan
 * has the kubelet's, and after every step of it whoever reads by "..data" has
 * one whole update.
 *
 * The bytes are two lists of items, three bytes each: which name, which type
 * and contents; the first byte says how many there are in the first list. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "router/volume/volume_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define AT "memory/v"
static const char *const names[] = {
    "",  "..1", "..1/a", "..1/b", "..2",     "..2/a",  "..2/b", "..2/d",
    "a", "a-b", "a/x",   "b",     "..2/d/x", "..data", "c",     "..3"};
static const char *const targets[] = {"..1", "..2", "..data/a", "x"};
static const char *const texts[] = {"one", "two", "", "three"};

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Of the tree: what is not below a folder of it is left out. */
static void add(struct volume_tree *t, const char *top, const uint8_t *at)
{
    const char *name = names[at[0] % ARRAY_LEN(names)];
    struct volume_item item = {.type = at[1] % 3};
    struct error err;
    cleanup_free char *whole = *top && *name ? xasprintf("%s/%s", top, name)
                                             : xstrdup(*name ? name : top);
    cleanup_free char *above = xstrdup(whole);
    char *slash = strrchr(above, '/');
    item.name = whole;
    if (item.type == VOLUME_LINK)
        item.target = targets[at[2] % 4];
    if (item.type == VOLUME_FILE)
        item.data = texts[at[2] % 4];
    if (item.data)
        item.size = strlen(item.data);
    if (item.type == VOLUME_FOLDER)
        item.mode = at[2] & 1 ? 0755 : 0700;
    if (!*name)
        item.type = VOLUME_FOLDER, item.data = NULL, item.size = 0;
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, whole) == 0)
            return;
    bool has_folder = !slash || strcmp(whole, AT) == 0;
    for (size_t i = 0; i < t->n; i++)
        has_folder = has_folder || (strcmp(t->items[i].name, above) == 0 &&
                                    t->items[i].type == VOLUME_FOLDER);
    if (has_folder || strcmp(above, AT) == 0)
        must(volume_tree_add(t, &item, &err) == 0);
}

/* --- a remote ------------------------------------------------------------------ */

static struct volume_item *find(struct volume_tree *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0)
            return &t->items[i];
    return NULL;
}

static void drop(struct volume_tree *t, const char *name)
{
    size_t n = 0, len = strlen(name);
    for (size_t i = 0; i < t->n; i++) {
        const char *other = t->items[i].name;
        if (strncmp(other, name, len) == 0 &&
            (other[len] == '\0' || other[len] == '/'))
            continue;
        t->items[n++] = t->items[i];
    }
    t->n = n;
}

/* As biga-card does it, which refuses what is in the way. */
static void carry_out(struct volume_tree *there, const struct volume_step *s)
{
    struct error err;
    if (s->verb == VOLUME_DROP) {
        drop(there, s->name);
        return;
    }
    struct volume_item item = *s->item, *found = find(there, s->name);
    item.name = s->name;
    must(!found ||
         (found->type == VOLUME_FOLDER) == (item.type == VOLUME_FOLDER));
    cleanup_free char *above = xstrdup(s->name);
    *strrchr(above, '/') = '\0';
    const struct volume_item *folder = find(there, above);
    must(!folder || folder->type == VOLUME_FOLDER);
    if (found)
        *found = *s->item, found->name = s->name;
    else
        must(volume_tree_add(there, &item, &err) == 0);
}

static bool same(const struct volume_item *a, const struct volume_item *b)
{
    if (a->type != b->type || a->mode != b->mode)
        return false;
    return a->type == VOLUME_LINK   ? strcmp(a->target, b->target) == 0
           : a->type == VOLUME_FILE ? a->hash == b->hash
                                    : true;
}

/* Has the remote all of what `want` has? */
static bool has_all(struct volume_tree *there, const struct volume_tree *want,
                    const char *below)
{
    for (size_t i = 0; i < want->n; i++) {
        const char *name = want->items[i].name;
        cleanup_free char *whole = *name ? xasprintf(AT "/%s", name)
                                         : xstrdup(AT);
        if (strncmp(name, below, strlen(below)) != 0)
            continue;
        const struct volume_item *found = find(there, whole);
        if (!found || !same(found, &want->items[i]))
            return false;
    }
    return true;
}

static void check(struct volume_tree *want, struct volume_tree *have)
{
    struct volume_plan plan = {0};
    struct volume_tree there = {0};
    struct error err;
    for (size_t i = 0; i < have->n; i++)
        must(volume_tree_add(&there, &have->items[i], &err) == 0);
    const struct volume_item *data = volume_tree_find(want, VOLUME_DATA);
    /* a kubelet's leads to a folder */
    const struct volume_item *meant = data && data->type == VOLUME_LINK
                                          ? volume_tree_find(want, data->target)
                                          : NULL;
    volume_plan_tree(&plan, AT, want, have);
    for (size_t i = 0; i < plan.n; i++) {
        carry_out(&there, &plan.steps[i]);
        /* the link is turned when all of what it leads to is there */
        if (meant && meant->type == VOLUME_FOLDER &&
            strcmp(plan.steps[i].name, AT "/" VOLUME_DATA) == 0)
            must(has_all(&there, want, data->target));
    }
    must(has_all(&there, want, ""));
    for (size_t i = 0; i < there.n; i++) {
        const char *name = there.items[i].name + strlen(AT);
        must(volume_tree_find(want, *name ? name + 1 : "") || !*name);
    }
    volume_plan_fini(&plan);
    volume_tree_fini(&there);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct volume_tree want = {0}, have = {0};
    struct error err;
    size_t n = size > 0 ? data[0] : 0, at = 1;
    for (size_t i = 0; at + 3 <= size && i < 64; i++, at += 3)
        add(i < n ? &want : &have, i < n ? "" : AT, data + at);
    must(volume_tree_sort(&want, &err) == 0);
    must(volume_tree_sort(&have, &err) == 0);
    check(&want, &have);
    volume_tree_fini(&want);
    volume_tree_fini(&have);
    return 0;
}
