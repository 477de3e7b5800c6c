#include "model/fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/refs.h"
#include "model/fabric/fabric_private.h"

DEFINE_REF(fabric_ref, struct fabric)

void fabric_unref(struct fabric *f)
{
    if (!f || !refs_drop(&f->refs))
        return;
    free(f->domains);
    free(f->hosts);
    free(f->guids);
    arena_fini(&f->arena);
    free(f);
}

unsigned fabric_n_tiers(const struct fabric *f)
{
    return f ? f->n_tiers : 0;
}

size_t fabric_n_domains(const struct fabric *f)
{
    return f ? f->n_domains : 0;
}

const struct fabric_domain *fabric_domain(const struct fabric *f, int32_t i)
{
    if (!f || i < 0 || (size_t)i >= f->n_domains)
        return NULL;
    return &f->domains[i];
}

size_t fabric_n_hosts(const struct fabric *f)
{
    return f ? f->n_hosts : 0;
}

const struct fabric_host *fabric_host(const struct fabric *f, size_t i)
{
    return f && i < f->n_hosts ? &f->hosts[i] : NULL;
}

uint64_t fabric_hash(const struct fabric *f)
{
    return f ? f->hash : 0;
}

/* --- looking up -------------------------------------------------------- */

static int name_compare(const char *a, size_t size, const char *b)
{
    size_t b_size = strlen(b);
    int order = memcmp(a, b, size < b_size ? size : b_size);
    if (order || size == b_size)
        return order;
    return size < b_size ? -1 : 1;
}

const struct fabric_host *fabric_find(const struct fabric *f, const char *name,
                                      size_t size)
{
    size_t low = 0, high = fabric_n_hosts(f);
    while (low < high) {
        size_t at = low + (high - low) / 2;
        int order = name_compare(name, size, f->hosts[at].name);
        if (order == 0)
            return &f->hosts[at];
        if (order < 0)
            high = at;
        else
            low = at + 1;
    }
    return NULL;
}

bool fabric_guid_parse(const char *text, uint64_t *ret_guid)
{
    uint64_t guid = 0;
    int digits = 0;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    for (const char *p = text; *p; p++) {
        if (*p == ':' && p > text && p[-1] != ':' && p[1])
            continue;
        int value = hex_digit(*p);
        if (value < 0 || ++digits > 16)
            return false;
        guid = guid << 4 | (uint64_t)value;
    }
    if (guid == 0)
        return false;
    *ret_guid = guid;
    return true;
}

const struct fabric_host *fabric_find_guid(const struct fabric *f,
                                           const char *guid)
{
    uint64_t wanted;
    if (!f || !fabric_guid_parse(guid, &wanted))
        return NULL;
    size_t low = 0, high = f->n_guids;
    while (low < high) {
        size_t at = low + (high - low) / 2;
        if (f->guids[at].guid == wanted)
            return &f->hosts[f->guids[at].host];
        if (wanted < f->guids[at].guid)
            high = at;
        else
            low = at + 1;
    }
    return NULL;
}

int32_t fabric_up(const struct fabric *f, int32_t i, unsigned tier)
{
    const struct fabric_domain *d = fabric_domain(f, i);
    while (d && d->tier < tier) {
        i = d->parent;
        d = fabric_domain(f, i);
    }
    return d && d->tier == tier ? i : FABRIC_NONE;
}

unsigned fabric_common_tier(const struct fabric *f, int32_t a, int32_t b)
{
    const struct fabric_domain *da = fabric_domain(f, a);
    const struct fabric_domain *db = fabric_domain(f, b);
    while (da && db && a != b) {
        a = da->parent;
        b = db->parent;
        da = fabric_domain(f, a);
        db = fabric_domain(f, b);
    }
    return da && db ? da->tier : FABRIC_APART;
}
