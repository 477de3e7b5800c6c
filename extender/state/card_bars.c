#include "extender/state/card_bars.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
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
           strcmp(a->serial, b->serial) == 0 && strcmp(a->why, b->why) == 0 &&
           a->drains == b->drains && a->evict == b->evict &&
           strcmp(a->card, b->card) == 0;
}

bool card_bars_are_same(const struct card_bars *a, const struct card_bars *b)
{
    size_t n = a ? a->n : 0;
    bool same = n == (b ? b->n : 0);
    for (size_t i = 0; same && i < n; i++)
        same = card_bar_is_same(&a->items[i], &b->items[i]);
    return same;
}

static bool is_of_all(const struct card_bar *bar)
{
    return bar->drains && !bar->card[0];
}

/* --- drains ---------------------------------------------------------------- */

void card_drain_explain(struct card_bar *bar)
{
    (void)snprintf(bar->why, sizeof bar->why, "%sdrained%s%s since %s: %s",
                   bar->card[0] ? "" : "its node is ", bar->by[0] ? " by " : "",
                   bar->by, bar->since, bar->reason);
}

int card_drain_check(const char *reason, const char *by, struct error *err)
{
    size_t size = strlen(reason);
    if (size == 0 || size > CARD_DRAIN_REASON_MAX)
        return error_set(err, EINVAL,
                         "reason: has %zu bytes, must have 1 to %d", size,
                         CARD_DRAIN_REASON_MAX);
    if (strlen(by) > CARD_DRAIN_BY_MAX)
        return error_set(err, EINVAL, "by: has more than %d bytes",
                         CARD_DRAIN_BY_MAX);
    return 0;
}

const struct card_bar *card_bars_drain(const struct card_bars *b,
                                       const char *card)
{
    const struct card_bar *all = NULL;
    for (size_t i = 0; b && i < b->n; i++) {
        if (b->items[i].drains && strcmp(b->items[i].card, card) == 0)
            return &b->items[i];
        if (is_of_all(&b->items[i]))
            all = &b->items[i];
    }
    return all;
}

const struct card_bar *card_bars_eviction(const struct card_bars *b,
                                          const char *card)
{
    const struct card_bar *own = card_bars_drain(b, card);
    const struct card_bar *all = card_bars_drain(b, "");
    if (own && own->evict)
        return own;
    return all && all->evict ? all : NULL;
}

/* A list of as many as are taken, up to CARD_BARS_MAX. */
struct taking {
    struct card_bar list[CARD_BARS_MAX];
    size_t n;
};

static void take(struct taking *t, const struct card_bar *bar)
{
    if (t->n < CARD_BARS_MAX)
        t->list[t->n++] = *bar;
}

static struct card_bars *taken(struct taking *t)
{
    struct card_bars *b = t->n ? card_bars_create(t->n) : NULL;
    if (b)
        memcpy(b->items, t->list, t->n * sizeof t->list[0]);
    free(t);
    return b;
}

int card_bars_edit(const struct card_bars *b, const struct card_bar *drain,
                   bool gone, struct card_bars **ret_bars)
{
    struct taking *t = xcalloc(1, sizeof *t);
    bool known = false;
    if (!gone)
        take(t, drain);
    for (size_t i = 0; b && i < b->n; i++) {
        bool same = b->items[i].drains &&
                    strcmp(b->items[i].card, drain->card) == 0;
        known |= same;
        if (!same)
            take(t, &b->items[i]);
    }
    if (gone && !known) {
        free(t);
        return -ENOENT;
    }
    *ret_bars = taken(t);
    return 0;
}

struct card_bars *card_bars_join(const struct card_bars *drains,
                                 const struct card_bars *others)
{
    struct taking *t = xcalloc(1, sizeof *t);
    for (size_t i = 0; drains && i < drains->n; i++)
        if (drains->items[i].drains)
            take(t, &drains->items[i]);
    for (size_t i = 0; others && i < others->n; i++)
        if (!others->items[i].drains)
            take(t, &others->items[i]);
    return taken(t);
}

struct card_bars *card_bars_drains(const struct card_bars *b)
{
    return card_bars_join(b, NULL);
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
static bool contradicts(const struct card_bar *bar, const struct topo *topo,
                        const struct device *card)
{
    return (bar->has_pci && card->has_pci) ||
           (bar->serial[0] && *topo_identity(topo, card).serial);
}

/* One card; a drain of all of them is of none alone. */
static enum card_bar_match find_drained(const struct card_bar *bar,
                                        const struct topo *topo,
                                        size_t *ret_card)
{
    size_t first = 0, n = topo_count(topo, DEVICE_CARD, &first);
    for (size_t i = first; i < first + n; i++) {
        if (strcmp(topo_device(topo, i)->id, bar->card) != 0)
            continue;
        *ret_card = i;
        return CARD_BAR_FOUND;
    }
    return CARD_BAR_NONE;
}

enum card_bar_match card_bar_find(const struct card_bar *bar,
                                  const struct topo *topo, size_t *ret_card)
{
    size_t first = 0, n = topo_count(topo, DEVICE_CARD, &first);
    size_t at = 0, serial = 0, n_at = 0, n_serial = 0;
    if (bar->drains)
        return find_drained(bar, topo, ret_card);
    for (size_t i = first; i < first + n; i++) {
        const struct device *card = topo_device(topo, i);
        if (bar->has_pci && is_at(card, &bar->pci)) {
            at = i;
            n_at++;
        }
        if (bar->serial[0] &&
            strcmp(bar->serial, topo_identity(topo, card).serial) == 0) {
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
    if (n == 0 || (n == 1 && contradicts(bar, topo, topo_device(topo, first))))
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

static void bar_card(void *ctx, struct device *d, struct identity *own)
{
    (void)own;
    struct barring *b = ctx;
    const char *why = b->next < TOPO_CARDS_MAX ? b->why[b->next] : NULL;
    b->next++;
    if (!why)
        return;
    d->unhealthy = true;
    d->barred = why;
}

/* The first that says so counts. */
static size_t bar_one(struct barring *b, const struct card_bar *bar,
                      size_t card)
{
    if (card >= TOPO_CARDS_MAX || b->why[card])
        return 0;
    b->why[card] = bar->why;
    return 1;
}

static size_t bar_all(struct barring *b, const struct card_bar *bar,
                      const struct topo *topo)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first), barred = 0;
    for (size_t i = 0; i < n; i++)
        barred += bar_one(b, bar, i);
    return barred;
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
        if (is_of_all(&b->items[i]))
            n += bar_all(&barring, &b->items[i], topo);
        else if (card_bar_find(&b->items[i], topo, &card) == CARD_BAR_FOUND)
            n += bar_one(&barring, &b->items[i], card);
    }
    if (n == 0)
        return topo_ref(topo);
    int r = topo_change(topo, bar_card, &barring, topo_runs(topo), &barred,
                        &err);
    assert(r == 0); /* it was one, and texts are within their limit */
    (void)r;
    return barred;
}
