#include "extender/state/card_bars.h"

#include <assert.h>
#include <string.h>

#include "lib/base/refs.h"
#include "model/topo/topo_builder.h"

struct card_bars *card_bars_create(size_t n)
{
    struct card_bars *b = xcalloc(1, sizeof *b + n * sizeof b->items[0]);
    assert(n <= CARD_BARS_MAX);
    atomic_init(&b->refs, 1);
    b->n = n;
    return b;
}

DEFINE_REF(card_bars_ref, struct card_bars)

void card_bars_unref(struct card_bars *b)
{
    if (b && refs_drop(&b->refs))
        free(b);
}

static bool same_slot(const struct pci_addr *a, const struct pci_addr *b)
{
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

bool card_bar_is_same(const struct card_bar *a, const struct card_bar *b)
{
    return a->has_pci == b->has_pci &&
           (!a->has_pci || same_slot(&a->pci, &b->pci)) &&
           strcmp(a->serial, b->serial) == 0 && strcmp(a->why, b->why) == 0;
}

bool card_bars_are_same(const struct card_bars *a, const struct card_bars *b)
{
    size_t n = a ? a->n : 0;
    bool same = n == (b ? b->n : 0);
    for (size_t i = 0; same && i < n; i++)
        same = card_bar_is_same(&a->items[i], &b->items[i]);
    return same;
}

/* --- which card ----------------------------------------------------------- */

static bool is_at(const struct device *card, const struct pci_addr *slot)
{
    bool found = card->has_pci && same_slot(&card->pci, slot);
    for (size_t i = 0; i < card->n_functions && !found; i++)
        found = same_slot(&card->functions[i], slot);
    return found;
}

/* Both know it, and it differs. */
static bool contradicts(const struct card_bar *bar, const struct device *card)
{
    return (bar->has_pci && card->has_pci) || (bar->serial[0] && *card->serial);
}

enum card_bar_match card_bar_find(const struct card_bar *bar,
                                  const struct topo *topo, size_t *ret_card)
{
    size_t first = 0, n = topo_count(topo, DEVICE_CARD, &first);
    size_t at = 0, serial = 0, n_at = 0, n_serial = 0;
    for (size_t i = first; i < first + n; i++) {
        const struct device *card = topo_device(topo, i);
        if (bar->has_pci && is_at(card, &bar->pci)) {
            at = i;
            n_at++;
        }
        if (bar->serial[0] && strcmp(bar->serial, card->serial) == 0) {
            serial = i;
            n_serial++;
        }
    }
    if (n_at == 1 && n_serial == 1 && at != serial)
        return CARD_BAR_DIVIDED;
    if (n_at == 1 || n_serial == 1) {
        *ret_card = n_at == 1 ? at : serial;
        return CARD_BAR_FOUND;
    }
    if (n == 0 || (n == 1 && contradicts(bar, topo_device(topo, first))))
        return CARD_BAR_NONE;
    if (n == 1) {
        *ret_card = first;
        return CARD_BAR_FOUND;
    }
    return bar->has_pci || bar->serial[0] ? CARD_BAR_NONE : CARD_BAR_UNCLEAR;
}

const char *card_bar_match_text(enum card_bar_match match)
{
    static const char *const texts[] = {
        [CARD_BAR_FOUND] = "found",
        [CARD_BAR_NONE] = "the node has no card of that PCI address or serial "
                          "number",
        [CARD_BAR_UNCLEAR] = "the node has several cards, and neither a PCI "
                             "address nor a serial number tells which",
        [CARD_BAR_DIVIDED] = "its PCI address is of one card of the node, its "
                             "serial number of another",
    };
    return texts[match];
}

/* --- what comes of it ----------------------------------------------------- */

struct barring {
    const char *why[TOPO_CARDS_MAX]; /* NULL: not barred */
    size_t next;                     /* cards come first, in their order */
};

static void bar_card(void *ctx, struct device *d)
{
    struct barring *b = ctx;
    const char *why = b->next < TOPO_CARDS_MAX ? b->why[b->next] : NULL;
    b->next++;
    if (!why)
        return;
    d->unhealthy = true;
    d->barred = why;
}

struct topo *card_bars_apply(const struct card_bars *b, struct topo *topo)
{
    struct barring barring = {.next = 0};
    struct topo *barred = NULL;
    struct error err;
    size_t first, card, n = 0;
    (void)topo_count(topo, DEVICE_CARD, &first);
    assert(first == 0); /* topo.h: cards come first */
    for (size_t i = 0; b && i < b->n; i++) {
        if (card_bar_find(&b->items[i], topo, &card) != CARD_BAR_FOUND ||
            barring.why[card])
            continue;
        barring.why[card] = b->items[i].why;
        n++;
    }
    if (n == 0)
        return topo_ref(topo);
    int r = topo_change(topo, bar_card, &barring, topo_runs(topo), &barred,
                        &err);
    assert(r == 0); /* it was one, and texts are within their limit */
    (void)r;
    return barred;
}
