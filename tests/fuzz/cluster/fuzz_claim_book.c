/* Any lines as what an API server tells of claims, and as pods that ask: no
 * crash; a claim ends only if it was told of, and once all are gone nobody has
 * anything.  A line is a letter and JSON: A to E put, a to e take away an
 * object of that collection, p is a pod that asks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct snapshot *fleet;
static struct strmap uses; /* struct claim_use, by key */

static void on_used(void *ctx, struct claim_use *use, bool gone)
{
    struct claim_use *old = strmap_remove(&uses, use->key);
    (void)ctx;
    if (gone && !old)
        abort();
    claim_use_unref(old);
    if (!gone)
        (void)strmap_put(&uses, use->key, claim_use_ref(use));
}

static struct snapshot *make_fleet(void)
{
    cleanup_with(snapshot) struct snapshot *empty = snapshot_create_empty();
    cleanup_with(topo) struct topo *topo = simhost_topo("n0", 4);
    struct draft *d = draft_create(empty);
    simfleet_put(d, topo);
    return draft_commit(d);
}

/* Its first devices. */
static struct allocation *place(const struct demand *d, const struct node *n)
{
    struct allocation *a = allocation_create(d, n->name);
    size_t first;
    a->n_cards = d->cards < 4 ? d->cards : 4;
    a->n_gpus = d->gpus < 4 ? d->gpus : 4;
    a->cards = xcalloc(4, sizeof *a->cards);
    a->card_pci = xcalloc(4, sizeof *a->card_pci);
    a->gpus = xcalloc(4, sizeof *a->gpus);
    a->gpu_pci = xcalloc(4, sizeof *a->gpu_pci);
    for (size_t i = 0; i < 4; i++) {
        (void)topo_count(n->topo, DEVICE_CARD, &first);
        const struct device *card = topo_device(n->topo, first + i);
        (void)topo_count(n->topo, DEVICE_GPU, &first);
        const struct device *gpu = topo_device(n->topo, first + i);
        memcpy(a->cards[i], card->id, strlen(card->id));
        memcpy(a->gpus[i], gpu->id, strlen(gpu->id));
        pci_addr_format(&card->pci, a->card_pci[i]);
        pci_addr_format(&gpu->pci, a->gpu_pci[i]);
    }
    return a;
}

static void ask(struct claim_book *b, const char *json, size_t size)
{
    cleanup_claim_book_pins struct claim_book_pins pins = {0};
    cleanup_with(claim_needs) struct claim_needs *needs = NULL;
    const struct node *n = snapshot_node(fleet, 0);
    struct demand d = sim_pod("p", ROLE_HOST, "j", 0);
    struct error err = {0}, why = {0};
    struct claim_allowed allowed;
    if (claim_book_read(b, fleet, json, size, true, &d, &needs, &err) < 0) {
        if (!err.code || needs)
            abort();
        return;
    }
    if (!needs)
        return;
    cleanup_with(allocation) struct allocation *a = place(&d, n);
    (void)claim_book_allows(b, needs, n, &allowed, &why);
    (void)claim_book_pin(b, needs, n, a, &pins, &err);
}

static void tell(struct claim_book *b, const char *line, size_t size)
{
    unsigned put = (unsigned)(*line - 'A'), gone = (unsigned)(*line - 'a');
    if (put < CLAIM_BOOK_KINDS)
        claim_book_handler.put(claim_book_ctx(b, (enum claim_book_kind)put),
                               line + 1, size - 1);
    else if (gone < CLAIM_BOOK_KINDS)
        claim_book_handler.gone(claim_book_ctx(b, (enum claim_book_kind)gone),
                                line + 1, size - 1);
    else if (*line == 'p')
        ask(b, line + 1, size - 1);
}

static void end(struct claim_book *b)
{
    void *claims = claim_book_ctx(b, CLAIM_BOOK_CLAIMS);
    claim_book_handler.list(claims);
    claim_book_handler.listed(claims);
    claim_book_destroy(b);
    if (uses.n)
        abort();
    strmap_fini(&uses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *last = line + size;
    if (!fleet)
        fleet = make_fleet();
    struct claim_book *b =
        claim_book_create(&(struct claim_book_config){.used = on_used});
    while (line < last) {
        const char *eol = memchr(line, '\n', (size_t)(last - line));
        size_t n = (size_t)((eol ? eol : last) - line);
        if (n)
            tell(b, line, n);
        line += n + 1;
    }
    end(b);
    return 0;
}
