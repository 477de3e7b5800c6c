/* Any bytes as an object of a DPU operator: no crash; a refusal says why; what
 * is read keeps to its caps, and bars no card that it should not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/cluster/dpu_object.h"
#include "model/topo/topo_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

/* A host of `n` cards at 0000:03:00.0, 0000:04:00.0 …, the first of which has a
 * serial number. */
static struct topo *make_host(unsigned n)
{
    struct topo *topo = NULL;
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("host0");
    for (unsigned i = 0; i < n; i++) {
        char id[TOPO_ID_MAX + 1];
        struct device d = {.kind = DEVICE_CARD,
                           .id = id,
                           .has_pci = true,
                           .pci = {.bus = (uint8_t)(3 + i)}};
        const struct identity own = {.serial = i ? NULL : "MT1"};
        device_id_format(DEVICE_CARD, &d.pci, id);
        topo_builder_add(b, &d, &own);
    }
    require(topo_build(b, &topo, NULL) == 0);
    return topo;
}

static void check_bars(const struct card_bar *bar, unsigned n)
{
    size_t card = 99, n_barred = 0;
    cleanup_with(topo) struct topo *host = make_host(n);
    cleanup_with(card_bars) struct card_bars *bars = card_bars_create(1);
    enum card_bar_match match = card_bar_find(bar, host, &card);
    bars->items[0] = *bar;
    cleanup_with(topo) struct topo *barred = card_bars_apply(bars, host);
    require(topo_n_devices(barred) == n);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(barred, i);
        require(d->unhealthy == (*d->barred != '\0'));
        require(!d->unhealthy || (match == CARD_BAR_FOUND && i == card &&
                                  strcmp(d->barred, bar->why) == 0));
        n_barred += d->unhealthy;
    }
    require(n_barred == (match == CARD_BAR_FOUND));
}

static void check(enum dpu_kind kind, const char *json, size_t size)
{
    struct dpu_object dpu = {0};
    struct error err = {0};
    int r = dpu_object_read(kind, json, size, &dpu, &err);
    if (r < 0) {
        require(r == -EINVAL && err.text[0]);
        require(!dpu.node[0] && !dpu.bar.why[0]);
        return;
    }
    require(dpu.name[0]);
    require(kind == DPU_OF_OPENSHIFT || dpu.node[0]);
    require(dpu.ready == !dpu.bar.why[0]);
    require(strnlen(dpu.bar.why, sizeof dpu.bar.why) < sizeof dpu.bar.why);
    for (unsigned n = 0; n < 3 && !dpu.ready; n++)
        check_bars(&dpu.bar, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = 0; kind < DPU_KINDS; kind++)
        check((enum dpu_kind)kind, (const char *)data, size);
    return 0;
}
