#include "advertiser/act/core/allowance.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "advertiser/act/core/config.h"
#include "advertiser/act/core/place.h"
#include "lib/base/mem.h"

/* What the sets that it asks for give together. */
static LOCKED void add_sets(const struct place *at, const struct podspec *spec,
                            struct rights *rights, struct hugepages *pages)
{
    const char *text = spec->devices.text;
    while (*text) {
        char name[DEVICE_SET_NAME_MAX + 1];
        text = device_sets_next(text, name);
        const struct act_device_set *set = card_set(&at->desc, name);
        for (size_t i = 0; set && i < set->hugepages.n; i++)
            (void)hugepages_add(pages, set->hugepages.list[i].page,
                                set->hugepages.list[i].bytes);
        if (set && set->ipc_lock)
            rights_add(rights, "IPC_LOCK");
    }
}

static int check_hugepages(const struct podspec *spec, const char *place,
                           const struct hugepages *given, struct error *err)
{
    struct hugepages asked;
    podspec_hugepages(spec, &asked);
    for (size_t i = 0; i < asked.n; i++) {
        uint64_t page = asked.list[i].page, bytes = asked.list[i].bytes;
        uint64_t most = hugepages_of(given, page);
        char size[HUGEPAGES_TEXT_SIZE];
        if (bytes <= most)
            continue;
        hugepages_page_text(page, size);
        return error_set(err, EPERM,
                         "spec: its containers have limits of %" PRIu64
                         " KiB of hugepages-%s, and may have %" PRIu64
                         " KiB by the devices \"%s\" of %s: its operator would "
                         "have to give more under \"hugepages\" of one of them "
                         "in the card file",
                         bytes >> 10, size, most >> 10, spec->devices.text,
                         place);
    }
    return 0;
}

int allowance_check(struct actuator *a, const char *place,
                    const struct podspec *spec, struct error *err)
{
    struct hugepages pages = {.n = 0};
    act_lock(a);
    struct rights rights = a->rights;
    const struct place *at = place_find(a, place);
    if (at)
        add_sets(at, spec, &rights, &pages);
    act_unlock(a);
    int e = rights_check(&rights, spec, err);
    return e < 0 ? e : check_hugepages(spec, place, &pages, err);
}

/* "2MB", as container runtimes call what Kubernetes calls 2Mi. */
static const char *page_name(uint64_t page, struct arena *arena)
{
    char text[HUGEPAGES_TEXT_SIZE];
    hugepages_page_text(page, text);
    char *end = strchr(text, 'i');
    if (end)
        *end = 'B';
    return arena_strndup(arena, text, strlen(text));
}

void allowance_limit(struct place *at, const struct podspec *spec, size_t unit,
                     struct arena *arena, struct cri_container_config *config)
{
    const struct hugepages *own = &config_unit(spec, unit)->hugepages;
    struct hugepages all;
    act_lock(at->a);
    card_sets_hugepages(&at->desc, &all);
    act_unlock(at->a);
    for (size_t i = 0; i < own->n; i++)
        (void)hugepages_add(&all, own->list[i].page, 0);
    struct cri_hugepages *list = arena_alloc(arena, all.n * sizeof *list + 1);
    for (size_t i = 0; i < all.n; i++)
        list[i] = (struct cri_hugepages){
            .page_size = page_name(all.list[i].page, arena),
            .limit = hugepages_of(own, all.list[i].page),
        };
    config->hugepages = list;
    config->n_hugepages = all.n;
}
