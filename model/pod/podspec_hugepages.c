/* Huge pages: how many a container may use, and volumes of them. */
#include <inttypes.h>
#include <string.h>

#include "model/pod/podspec_private.h"

#define RESOURCE "hugepages-"
#define MEDIUM "HugePages"

static bool is_of_hugepages(const char *resource)
{
    return strncmp(resource, RESOURCE, strlen(RESOURCE)) == 0;
}

static void read_one(struct reader *r, const cJSON *limits,
                     const cJSON *requests, const char *name,
                     struct hugepages *h)
{
    uint64_t page;
    int64_t limit = podspec_amount_of(r, limits, "limits", name);
    int64_t request = podspec_amount_of(r, requests, "requests", name);
    if (!hugepages_page_parse(name + strlen(RESOURCE), &page))
        (void)reader_fail(
            r, "limits",
            "%.64s: must be " RESOURCE " and a size, such as 2Mi or 1Gi", name);
    else if (request && request != limit)
        (void)reader_fail(r, "requests", "%s: must be as its limit", name);
    else if (limit % 1000 != 0 || (uint64_t)limit / 1000 % page != 0)
        (void)reader_fail(r, "limits", "%s: must be whole pages", name);
    else if (!hugepages_add(h, page, (uint64_t)limit / 1000))
        (void)reader_fail(r, "limits", "%s: is of one size of pages too many",
                          name);
}

void podspec_read_hugepages(const struct reading *x, struct reader *r,
                            const cJSON *limits, const cJSON *requests,
                            struct podspec_container *c)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, requests)
    {
        if (!r->failed && is_of_hugepages(m->string) &&
            !cJSON_GetObjectItemCaseSensitive(limits, m->string))
            (void)reader_fail(r, "requests", "%.64s: must be as its limit",
                              m->string);
    }
    cJSON_ArrayForEach(m, limits)
    {
        if (r->failed || !is_of_hugepages(m->string))
            continue;
        if (x->is_host)
            (void)reader_fail(r, "limits",
                              "%.64s: is not given to pods of a host",
                              m->string);
        else
            read_one(r, limits, requests, m->string, &c->hugepages);
    }
}

bool podspec_hugepages_medium(const char *text, uint64_t *ret_page)
{
    size_t size = strlen(MEDIUM);
    *ret_page = 0;
    return strncmp(text, MEDIUM, size) == 0 &&
           (!text[size] || (text[size] == '-' &&
                            hugepages_page_parse(text + size + 1, ret_page)));
}

static void raise_all(struct hugepages *all, const struct hugepages *one)
{
    for (size_t i = 0; i < one->n; i++)
        (void)hugepages_raise(all, one->list[i].page, one->list[i].bytes);
}

void podspec_hugepages(const struct podspec *p, struct hugepages *ret_all)
{
    struct hugepages all = {.n = 0};
    for (size_t i = 0; i < p->n_containers; i++) {
        const struct hugepages *one = &p->containers[i].hugepages;
        for (size_t k = 0; k < one->n; k++)
            (void)hugepages_add(&all, one->list[k].page, one->list[k].bytes);
    }
    for (size_t i = 0; i < p->n_init; i++)
        raise_all(&all, &p->init[i].hugepages);
    *ret_all = all;
}

int podspec_settle_hugepages(struct reading *x)
{
    struct hugepages all;
    podspec_hugepages(x->pod, &all);
    for (size_t i = 0; i < x->pod->n_volumes; i++) {
        struct podspec_volume *v = &x->pod->volumes[i];
        if (v->medium != PODSPEC_HUGEPAGES)
            continue;
        if (!v->page && all.n == 1)
            v->page = all.list[0].page;
        if (!v->page || hugepages_of(&all, v->page) == 0)
            return error_set(
                x->err, EINVAL,
                "spec.volumes[%zu].emptyDir.medium: must be of the "
                "size of pages that a container has limits of, "
                "such as " MEDIUM "-2Mi beside " RESOURCE "2Mi",
                i);
    }
    return 0;
}
