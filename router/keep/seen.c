#include "router/keep/seen.h"

#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/labels.h"

void seen_fini(struct seen *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->list[i].kept);
    free(s->list);
    *s = (struct seen){0};
}

bool seen_add(struct seen *s, const struct found *found, bool sandbox)
{
    const struct cri_pairs *labels = &found->labels;
    const char *uid = label_find(labels->list, labels->n, ACT_LABEL_UID);
    if (s->n == SEEN_MAX || !kept_id_valid(found->id)) {
        s->partly = true;
        return false;
    }
    s->list = xgrow(s->list, s->n, &s->cap, sizeof *s->list);
    struct seen_item *item = &s->list[s->n++];
    *item = (struct seen_item){.sandbox = sandbox, .state = found->state};
    (void)snprintf(item->id, sizeof item->id, "%s", found->id);
    (void)snprintf(item->sandbox_id, sizeof item->sandbox_id, "%s",
                   found->sandbox_id);
    if (strlen(found->name) <= KEPT_NAME_MAX)
        (void)snprintf(item->name, sizeof item->name, "%s", found->name);
    item->attempt = found->attempt;
    (void)snprintf(item->uid, sizeof item->uid, "%s", uid);
    item->kept = xstrdup(found->kept);
    return true;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct seen_item *)a)->id,
                  ((const struct seen_item *)b)->id);
}

void seen_sort(struct seen *s)
{
    size_t n = 0;
    if (s->n)
        qsort(s->list, s->n, sizeof *s->list, by_id);
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i + 1; end < s->n; end++)
            if (strcmp(s->list[i].id, s->list[end].id) != 0)
                break;
        if (end == i + 1)
            s->list[n++] = s->list[i];
        else
            for (size_t k = i; k < end; k++)
                free(s->list[k].kept);
    }
    s->n = n;
}

const struct seen_item *seen_find(const struct seen *s, const char *id)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(s->list[middle].id, id);
        if (order == 0)
            return &s->list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
