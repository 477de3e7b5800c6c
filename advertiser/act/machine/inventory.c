#include "advertiser/act/machine/inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"

void inventory_fini(struct inventory *l)
{
    cri_containers_fini(&l->containers);
    cri_sandboxes_fini(&l->sandboxes);
    free(l->seen);
    *l = (struct inventory){0};
}

static int order(const void *a, const void *b)
{
    return orphan_order(a, b);
}

/* "" when it is none that we could have given. */
static const char *uid_of(const struct cri_pair *list, size_t n)
{
    const char *uid = label_find(list, n, ACT_LABEL_UID);
    return strlen(uid) <= ORPHANS_UID_MAX ? uid : "";
}

void inventory_sort(struct inventory *l)
{
    free(l->seen);
    l->n = 0;
    l->seen = xcalloc(l->sandboxes.n + l->containers.n + 1, sizeof *l->seen);
    for (size_t i = 0; i < l->sandboxes.n; i++) {
        const struct cri_sandbox *s = &l->sandboxes.list[i];
        l->seen[l->n++] =
            (struct orphan_seen){.uid = uid_of(s->labels, s->n_labels),
                                 .id = s->id,
                                 .sandbox = true,
                                 .running = s->ready,
                                 .at = i};
    }
    for (size_t i = 0; i < l->containers.n; i++) {
        const struct cri_container *c = &l->containers.list[i];
        l->seen[l->n++] = (struct orphan_seen){
            .uid = uid_of(c->labels, c->n_labels),
            .id = c->id,
            .running = c->state == CRI_RUNNING || c->state == CRI_UNKNOWN,
            .at = i};
    }
    qsort(l->seen, l->n, sizeof *l->seen, order);
}

/* The first of a pod, or where it would be. */
static size_t first_of(const struct inventory *l, const char *uid)
{
    return lower_bound(l->n, i, strcmp(l->seen[i].uid, uid) < 0);
}

void inventory_spare(struct inventory *l, const char *uid, size_t *n,
                     size_t *n_running)
{
    for (size_t i = first_of(l, uid);
         i < l->n && strcmp(l->seen[i].uid, uid) == 0; i++) {
        struct orphan_seen *s = &l->seen[i];
        *n += !s->known;
        *n_running += !s->known && s->running;
        s->known = true;
    }
}

void inventory_end(struct inventory *l, const char *uid)
{
    for (size_t i = first_of(l, uid);
         i < l->n && strcmp(l->seen[i].uid, uid) == 0; i++)
        l->seen[i].over = true;
}

void inventory_know(struct inventory *l, const char *uid)
{
    size_t n = 0, n_running = 0;
    inventory_spare(l, uid, &n, &n_running);
}

static void add_sandbox(const struct cri_sandbox *s,
                        struct machine_found *found)
{
    struct machine_sandbox as = {.attempt = s->attempt, .ready = s->ready};
    memcpy(as.id, s->id, sizeof as.id);
    machine_found_sandbox(found, &as);
}

static void add_container(const struct cri_container *c,
                          struct machine_found *found)
{
    struct machine_container as = {.attempt = c->attempt, .state = c->state};
    memcpy(as.id, c->id, sizeof as.id);
    memcpy(as.sandbox_id, c->sandbox_id, sizeof as.sandbox_id);
    (void)snprintf(as.name, sizeof as.name, "%s",
                   label_find(c->labels, c->n_labels, ACT_LABEL_CONTAINER));
    machine_found_container(found, &as);
}

void inventory_take(const struct inventory *l, const char *uid,
                    struct machine_found *found)
{
    for (size_t i = first_of(l, uid);
         i < l->n && strcmp(l->seen[i].uid, uid) == 0; i++) {
        const struct orphan_seen *s = &l->seen[i];
        if (s->sandbox)
            add_sandbox(&l->sandboxes.list[s->at], found);
        else
            add_container(&l->containers.list[s->at], found);
    }
}
