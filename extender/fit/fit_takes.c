#include "extender/fit/fit_takes.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

void fit_takes_fini(struct fit_takes *t)
{
    for (uint32_t i = 0; i < t->n_resources; i++)
        free(t->names[i]);
    strmap_fini(&t->resources);
    strmap_fini(&t->all);
}

uint32_t fit_takes_find(const struct fit_takes *t, const char *name)
{
    uintptr_t number = (uintptr_t)strmap_get(&t->resources, name);
    return number ? (uint32_t)(number - 1) : FIT_RESOURCE_NONE;
}

uint32_t fit_takes_resource(struct fit_takes *t, const char *name)
{
    uint32_t known = fit_takes_find(t, name);
    if (known != FIT_RESOURCE_NONE)
        return known;
    if (t->n_resources == FIT_RESOURCES_MAX)
        return FIT_RESOURCE_NONE;
    char *kept = t->names[t->n_resources] = xstrdup(name);
    t->n_resources++;
    (void)strmap_put(&t->resources, kept, (void *)(uintptr_t)t->n_resources);
    return t->n_resources - 1;
}

static char *text_of(const struct pod_takes *takes)
{
    struct str text = STR_INIT(STR_MAX_DEFAULT);
    for (size_t i = 0; i < takes->n_amounts; i++) {
        str_add_json(&text, takes->amounts[i].resource);
        str_add_i64(&text, takes->amounts[i].amount);
    }
    for (size_t i = 0; i < takes->n_ports; i++) {
        const struct take_port *p = &takes->ports[i];
        str_addf(&text, "\n%c%u", p->protocol, p->port);
        str_add_json(&text, p->ip);
    }
    return str_steal(&text);
}

static struct fit_take *create(struct fit_takes *t,
                               const struct pod_takes *takes, char *text)
{
    struct arena memory = {0};
    struct fit_take *take = xcalloc(1, sizeof *take);
    struct take_amount *amounts =
        arena_alloc(&memory, (takes->n_amounts + 1) * sizeof *amounts);
    struct take_port *ports = arena_alloc(&memory,
                                          (takes->n_ports + 1) * sizeof *ports);
    for (size_t i = 0; i < takes->n_amounts; i++) {
        const char *name = takes->amounts[i].resource;
        take->resources[i] = fit_takes_resource(t, name);
        amounts[i] = takes->amounts[i];
        amounts[i].resource = arena_strndup(&memory, name, strlen(name));
    }
    for (size_t i = 0; i < takes->n_ports; i++) {
        const char *ip = takes->ports[i].ip;
        ports[i] = takes->ports[i];
        ports[i].ip = arena_strndup(&memory, ip, strlen(ip));
    }
    take->takes = (struct pod_takes){
        amounts, takes->n_amounts, ports, takes->n_ports, NULL, memory};
    take->text = text;
    return take;
}

struct fit_take *fit_takes_take(struct fit_takes *t,
                                const struct pod_takes *takes)
{
    cleanup_free char *text = text_of(takes);
    struct fit_take *take = strmap_get(&t->all, text);
    if (!take) {
        take = create(t, takes, steal(&text));
        (void)strmap_put(&t->all, take->text, take);
    }
    take->refs++;
    return take;
}

void fit_takes_drop(struct fit_takes *t, struct fit_take *take)
{
    if (--take->refs > 0)
        return;
    (void)strmap_remove(&t->all, take->text);
    pod_takes_fini(&take->takes);
    free(take->text);
    free(take);
}
