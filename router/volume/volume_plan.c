#include "router/volume/volume_plan.h"

#include <string.h>

void volume_plan_fini(struct volume_plan *p)
{
    free(p->steps);
    arena_fini(&p->arena);
    *p = (struct volume_plan){0};
}

/* "at/name" */
static const char *full(struct volume_plan *p, const char *at, const char *name)
{
    cleanup_free char *text = *name ? xasprintf("%s/%s", at, name)
                                    : xstrdup(at);
    return arena_strndup(&p->arena, text, strlen(text));
}

static void add(struct volume_plan *p, enum volume_verb verb, const char *name,
                const struct volume_item *item)
{
    p->steps = xgrow(p->steps, p->n, &p->cap, sizeof *p->steps);
    p->steps[p->n++] =
        (struct volume_step){.verb = verb, .name = name, .item = item};
}

static const struct volume_item *find(const struct volume_tree *have,
                                      const char *name)
{
    return have ? volume_tree_find(have, name) : NULL;
}

static bool equal(const struct volume_item *want,
                  const struct volume_item *have)
{
    if (have->type != want->type)
        return false;
    if (want->type == VOLUME_LINK)
        return strcmp(have->target, want->target) == 0;
    if (have->mode != want->mode || have->uid != want->uid ||
        have->gid != want->gid)
        return false;
    return want->type == VOLUME_FOLDER ||
           (have->size == want->size && have->hash == want->hash &&
            have->hash != 0);
}

/* What `want` needs to be there as `at`; `verb` for a file. */
static void make(struct volume_plan *p, const char *at,
                 const struct volume_item *want, enum volume_verb verb,
                 const struct volume_tree *have)
{
    const char *name = full(p, at, want->name);
    const struct volume_item *found = find(have, name);
    if (found && equal(want, found))
        return;
    /* a folder is in the way of all else, and all else in a folder's */
    if (found && found->type != want->type &&
        (found->type == VOLUME_FOLDER || want->type == VOLUME_FOLDER ||
         verb == VOLUME_INPLACE))
        add(p, VOLUME_DROP, name, NULL);
    add(p,
        want->type == VOLUME_FOLDER ? VOLUME_MAKE
        : want->type == VOLUME_LINK ? VOLUME_LEAD
                                    : verb,
        name, want);
}

/* --- what is of no use any more -------------------------------------------- */

/* What of the name is below `at`; NULL when it is not. */
static const char *below(const char *at, const char *name)
{
    size_t len = strlen(at);
    return strncmp(name, at, len) == 0 && name[len] == '/' ? name + len + 1
                                                           : NULL;
}

/* Does it go, or has it gone, with a folder that it is in? */
static bool goes_along(const char *at, const char *name,
                       const struct volume_tree *want,
                       const struct volume_tree *have)
{
    cleanup_free char *path = xstrdup(name);
    for (char *slash; (slash = strrchr(path, '/'));) {
        *slash = '\0';
        cleanup_free char *whole = xasprintf("%s/%s", at, path);
        const struct volume_item *meant = volume_tree_find(want, path);
        if (meant ? meant->type != VOLUME_FOLDER
                  : volume_tree_find(have, whole) != NULL)
            return true;
    }
    return false;
}

/* `hidden`: names that begin with "..", which are folders of data. */
static void drop(struct volume_plan *p, const char *at, bool hidden,
                 const struct volume_tree *want, const struct volume_tree *have)
{
    for (size_t i = 0; i < have->n; i++) {
        const char *name = below(at, have->items[i].name);
        if (!name || (strncmp(name, "..", 2) == 0) != hidden ||
            volume_tree_find(want, name) || goes_along(at, name, want, have))
            continue;
        add(p, VOLUME_DROP, full(p, at, name), NULL);
    }
}

/* --- trees ------------------------------------------------------------------ */

static bool is_name(const struct volume_item *item)
{
    return item->type == VOLUME_LINK && !strchr(item->name, '/');
}

static bool is_data(const struct volume_item *item)
{
    return is_name(item) && strcmp(item->name, VOLUME_DATA) == 0;
}

void volume_plan_tree(struct volume_plan *p, const char *at,
                      const struct volume_tree *want,
                      const struct volume_tree *have)
{
    for (size_t i = 0; i < want->n; i++)
        if (!is_name(&want->items[i]))
            make(p, at, &want->items[i], VOLUME_WRITE, have);
    for (size_t i = 0; i < want->n; i++)
        if (is_data(&want->items[i]))
            make(p, at, &want->items[i], VOLUME_WRITE, have);
    for (size_t i = 0; i < want->n; i++)
        if (is_name(&want->items[i]) && !is_data(&want->items[i]))
            make(p, at, &want->items[i], VOLUME_WRITE, have);
    if (have) {
        drop(p, at, false, want, have);
        drop(p, at, true, want, have);
    }
}

void volume_plan_file(struct volume_plan *p, const char *at,
                      const struct volume_item *want,
                      const struct volume_tree *have)
{
    make(p, at, want, VOLUME_INPLACE, have);
}

void volume_plan_own(struct volume_plan *p, const char *at,
                     const struct volume_item *want, uint64_t limit,
                     const struct volume_tree *have)
{
    if (find(have, at))
        return;
    add(p,
        want->type != VOLUME_FOLDER ? VOLUME_WRITE
        : limit > 0                 ? VOLUME_TMPFS
                                    : VOLUME_MAKE,
        full(p, at, ""), want);
    p->steps[p->n - 1].limit = limit;
}

void volume_plan_part(struct volume_plan *p, const char *at,
                      const struct volume_item *want, const char *of)
{
    add(p, VOLUME_PART, full(p, at, ""), want);
    p->steps[p->n - 1].of = of;
}

void volume_plan_output(struct volume_plan *p, const char *at,
                        const struct volume_item *want,
                        const struct volume_tree *have)
{
    cleanup_free char *folder = xstrdup(at);
    char *slash = strrchr(folder, '/');
    if (find(have, at))
        return;
    if (slash)
        *slash = '\0';
    size_t n = 0;
    for (size_t i = 0; have && i < have->n; i++)
        n += below(folder, have->items[i].name) != NULL;
    for (size_t i = 0; n >= VOLUME_OUTPUTS_MAX && i < have->n; i++)
        if (below(folder, have->items[i].name))
            add(p, VOLUME_DROP, full(p, have->items[i].name, ""), NULL);
    volume_plan_own(p, at, want, 0, have);
}
