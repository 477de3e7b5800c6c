#include <errno.h>
#include <string.h>

#include "advertiser/act/core/actuator_private.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/status_private.h"
#include "advertiser/act/core/threads.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

/* --- on the thread of a card that is flashed ------------------------------ */

static void on_changed(void *ctx, const char *card)
{
    struct actuator *a = ctx;
    (void)card;
    act_lock(a);
    a->version++;
    act_notify(a);
    act_unlock(a);
}

static void on_ended(void *ctx, const char *card, bool serves)
{
    struct actuator *a = ctx;
    struct error err;
    if (!serves)
        return;
    hold_lock(&a->saving);
    if (!flasher_is_drained(a->flasher, card) &&
        drain_write(a, card, false, &err) < 0)
        log_event(LOG_WARN, "card-not-undrained", "card", card, "error",
                  err.text, NULL);
}

/* --- beginning ------------------------------------------------------------ */

/* "tcp://192.168.100.2:7443": what is between; of version 6, without the
 * brackets, which ssh does not take. */
static void address_of(const struct act_place *desc, char *ret, size_t size)
{
    const char *from = strncmp(desc->endpoint, "tcp://", 6) == 0
                           ? desc->endpoint + 6
                           : "";
    const char *colon = strrchr(from, ':');
    int len = (int)(colon ? colon - from : 0);
    bool brackets = len > 1 && from[0] == '[' && from[len - 1] == ']';
    (void)snprintf(ret, size, "%.*s", brackets ? len - 2 : len,
                   from + brackets);
}

static LOCKED int check(struct actuator *a, const char *name, bool force,
                        struct act_place *ret_desc, bool *ret_drained,
                        struct error *err)
{
    struct place *p = place_find(a, name);
    struct act_place_status v;
    if (!p || !p->present)
        return error_set(err, ENOENT, "%s: there is no such place", name);
    if (card_is_host(&p->desc))
        return error_set(err, EINVAL, "%s: is no card", name);
    status_fill_place(p, &v);
    if (v.n_pods > 0 && !force)
        return error_set(err, EBUSY,
                         "%s: %u pods run there, or may: drain it (biga card "
                         "drain %s) and wait for their end (biga card ps %s), "
                         "or end them with it (--force)",
                         name, v.n_pods, name, name);
    *ret_desc = p->desc;
    *ret_drained = p->drained;
    return 0;
}

int actuator_flash(struct actuator *a, const char *place,
                   const struct act_flash *flash, struct error *err)
{
    cleanup_free struct act_place *desc = xcalloc(1, sizeof *desc);
    char address[sizeof desc->endpoint];
    bool drained = false;
    if (!a->flasher)
        return error_set(err, EINVAL, "%s: there is no folder for its state",
                         place);
    hold_lock(&a->saving); /* nobody wants a pod there meanwhile */
    act_lock(a);
    int e = check(a, place, flash->force, desc, &drained, err);
    act_unlock(a);
    if (e < 0)
        return e;
    address_of(desc, address, sizeof address);
    const struct flash_ask ask = {
        .card = desc->name,
        .pci = desc->pci,
        .address = address,
        .bfb = flash->bfb,
        .sha256 = flash->sha256,
        .version = flash->version,
        .timeout_ms = flash->timeout_ms,
        .drained = drained,
    };
    e = flash_ask_check(&ask, err);
    if (e == 0)
        e = drain_write(a, place, true, err);
    if (e < 0)
        return e;
    e = flasher_begin(a->flasher, &ask, err);
    if (e < 0 && !drained)
        (void)drain_write(a, place, false, NULL); /* it is drained, then */
    if (e == 0)
        log_event(LOG_INFO, "card-flash-begun", "card", place, "bfb",
                  flash->bfb, NULL);
    return e;
}

int actuator_hardware(struct actuator *a, const char *place,
                      struct hardware *ret_hardware, struct error *err)
{
    const struct prep_config config = {
        .sysfs = a->sysfs, .dev = a->dev, .devlink = a->devlink};
    char pci[PCI_ADDR_TEXT_MAX] = "";
    act_lock(a);
    const struct place *p = place_find(a, place);
    if (p && p->present)
        memcpy(pci, p->desc.pci, sizeof pci);
    act_unlock(a);
    if (!p)
        return error_set(err, ENOENT, "%s: there is no such place", place);
    if (!pci[0])
        return error_set(err, EINVAL, "%s: is no card", place);
    hardware_look(&config, pci, ret_hardware);
    return 0;
}

/* --- from start to end ---------------------------------------------------- */

static LOCKED void take_out(void *ctx, const char *card)
{
    drain_set(ctx, card, true);
}

int actuator_load_flashes(struct actuator *a, struct error *err)
{
    const struct flasher_config config = {
        .dir = a->dir,
        .hooks_dir = a->hooks_dir,
        .changed = on_changed,
        .ended = on_ended,
        .ctx = a,
    };
    if (!a->dir)
        return 0;
    int e = flasher_create(&config, &a->flasher, err);
    if (e < 0)
        return e;
    act_lock(a);
    flasher_each_out(a->flasher, take_out, a);
    act_unlock(a);
    return 0;
}
