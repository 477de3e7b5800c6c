/* Graphs of switches and hosts, as the readers find them. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "model/fabric/fabric_private.h"

static void names_fini(struct fabric_names *names)
{
    free(names->texts);
    free(names->slots);
}

void fabric_graph_fini(struct fabric_graph *g)
{
    names_fini(&g->switch_keys);
    names_fini(&g->hosts);
    free(g->switches);
    free(g->links);
    free(g->plugs);
    arena_fini(&g->arena);
    memset(g, 0, sizeof *g);
}

/* --- names ------------------------------------------------------------- */

/* The slot of a text, or the empty one where it would be. */
static size_t names_slot(const struct fabric_names *names, const char *text,
                         size_t size)
{
    size_t mask = names->n_slots - 1;
    size_t at = (size_t)hash_bytes(text, size) & mask;
    for (;; at = (at + 1) & mask) {
        uint32_t number = names->slots[at];
        if (number == 0)
            return at;
        const char *other = names->texts[number - 1];
        if (strlen(other) == size && memcmp(other, text, size) == 0)
            return at;
    }
}

static void names_widen(struct fabric_names *names)
{
    free(names->slots);
    names->n_slots = names->n_slots ? names->n_slots * 2 : 64;
    names->slots = xcalloc(names->n_slots, sizeof *names->slots);
    for (size_t i = 0; i < names->n; i++) {
        const char *text = names->texts[i];
        names->slots[names_slot(names, text, strlen(text))] = (uint32_t)i + 1;
    }
}

static int32_t names_find(const struct fabric_names *names, const char *text,
                          size_t size)
{
    if (names->n == 0)
        return -1;
    return (int32_t)names->slots[names_slot(names, text, size)] - 1;
}

/* A text that is not there yet; it is kept, not copied. */
static uint32_t names_add(struct fabric_names *names, const char *text)
{
    if (2 * (names->n + 1) > names->n_slots)
        names_widen(names);
    names->texts = xgrow(names->texts, names->n, &names->cap,
                         sizeof *names->texts);
    names->texts[names->n] = text;
    names->slots[names_slot(names, text, strlen(text))] = (uint32_t)names->n +
                                                          1;
    return (uint32_t)names->n++;
}

/* --- switches and hosts ------------------------------------------------ */

static int size_check(const char *what, const char *name, size_t size,
                      struct error *err)
{
    if (size > 0 && size <= FABRIC_NAME_MAX)
        return 0;
    return error_set(err, EINVAL,
                     "%s \"%.*s\": has %zu bytes, must have 1 to %d", what,
                     size > 64 ? 64 : (int)size, name, size, FABRIC_NAME_MAX);
}

int32_t fabric_graph_find(const struct fabric_graph *g, const char *key,
                          size_t size)
{
    return names_find(&g->switch_keys, key, size);
}

int fabric_graph_switch(struct fabric_graph *g, const char *key, size_t size,
                        const char *name, struct error *err)
{
    int32_t number = names_find(&g->switch_keys, key, size);
    if (number >= 0)
        return number;
    /* a key may be a path of names */
    if (size == 0 || size > (FABRIC_NAME_MAX + 1) * FABRIC_TIERS_MAX || !name)
        if (size_check("switch", key, size, err) < 0)
            return -EINVAL;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)key[i] < ' ' || key[i] == 0x7f)
            return error_set(err, EINVAL,
                             "switch: its name has the control character "
                             "0x%02x",
                             (unsigned char)key[i]);
    if (g->switch_keys.n == FABRIC_DOMAINS_MAX)
        return error_set(err, EINVAL, "more than %d switches",
                         FABRIC_DOMAINS_MAX);
    const char *copy = arena_strndup(&g->arena, key, size);
    g->switches = xgrow(g->switches, g->switch_keys.n, &g->switches_cap,
                        sizeof *g->switches);
    g->switches[g->switch_keys.n] = (struct fabric_switch){
        .key = copy,
        .name = name ? arena_strndup(&g->arena, name, strlen(name)) : copy,
        .level = FABRIC_LEVEL_NONE,
    };
    return (int)names_add(&g->switch_keys, copy);
}

int fabric_graph_host(struct fabric_graph *g, const char *name, size_t size,
                      struct error *err)
{
    char folded[FABRIC_NAME_MAX + 1];
    if (size_check("host", name, size, err) < 0)
        return -EINVAL;
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        bool proper = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.' || c == '_';
        if (!proper)
            return error_set(err, EINVAL,
                             "host \"%.*s\": must have letters, digits, '-', "
                             "'.' and '_' only",
                             size > 64 ? 64 : (int)size, name);
        folded[i] = c;
    }
    folded[size] = '\0';
    int32_t number = names_find(&g->hosts, folded, size);
    if (number >= 0)
        return number;
    if (g->hosts.n == FABRIC_HOSTS_MAX)
        return error_set(err, EINVAL, "more than %d hosts", FABRIC_HOSTS_MAX);
    return (int)names_add(&g->hosts, arena_strndup(&g->arena, folded, size));
}

int fabric_graph_link(struct fabric_graph *g, uint32_t a, uint32_t b,
                      struct error *err)
{
    if (a == b)
        return 0;
    if (g->n_links == FABRIC_LINKS_MAX)
        return error_set(err, EINVAL, "more than %d links", FABRIC_LINKS_MAX);
    g->links = xgrow(g->links, g->n_links, &g->links_cap, sizeof *g->links);
    g->links[g->n_links++] = (struct fabric_link){a, b};
    return 0;
}

int fabric_graph_plug(struct fabric_graph *g, const struct fabric_plug *plug,
                      struct error *err)
{
    if (g->n_plugs == FABRIC_PLUGS_MAX)
        return error_set(err, EINVAL, "more than %d ports of hosts",
                         FABRIC_PLUGS_MAX);
    g->plugs = xgrow(g->plugs, g->n_plugs, &g->plugs_cap, sizeof *g->plugs);
    struct fabric_plug *p = &g->plugs[g->n_plugs++];
    *p = *plug;
    p->device = plug->device && *plug->device
                    ? arena_strndup(&g->arena, plug->device,
                                    strlen(plug->device))
                    : "";
    return 0;
}
