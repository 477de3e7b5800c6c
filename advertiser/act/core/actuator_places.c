/* Places: which there are, which are drained, and which are flashed. */
#include <errno.h>
#include <string.h>

#include "advertiser/act/core/actuator_private.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/place_threads.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/status_private.h"
#include "advertiser/act/core/threads.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

/* --- which there are ------------------------------------------------------- */

static LOCKED bool drain_has(const struct actuator *a, const char *name)
{
    for (size_t i = 0; i < a->n_drained; i++)
        if (strcmp(a->drained[i], name) == 0)
            return true;
    return false;
}

static LOCKED void drain_set(struct actuator *a, const char *name, bool drained)
{
    if (drained && !drain_has(a, name)) {
        a->drained = xrealloc(a->drained, a->n_drained + 1, sizeof *a->drained);
        a->drained[a->n_drained++] = xstrdup(name);
    }
    for (size_t i = a->n_drained; !drained && i-- > 0;)
        if (strcmp(a->drained[i], name) == 0) {
            free(a->drained[i]);
            a->drained[i] = a->drained[--a->n_drained];
        }
}

void actuator_take_drained(void *ctx, const char *name)
{
    drain_set(ctx, name, true);
}

static bool is_among(const struct act_place *places, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(places[i].name, name) == 0)
            return true;
    return false;
}

int actuator_set_places(struct actuator *a, const struct act_place *places,
                        size_t n, struct error *err)
{
    int e = 0;
    if (n > ACT_PLACES_MAX)
        return error_set(err, E2BIG, "%zu places, the limit is %d", n,
                         ACT_PLACES_MAX);
    act_lock(a);
    for (size_t i = 0; i < a->n_places; i++)
        if (!is_among(places, n, a->places[i]->desc.name))
            prober_remove_place(a->places[i]);
    for (size_t i = 0; i < n && e == 0; i++) {
        struct place *p = prober_set_place(a, &places[i]);
        if (p)
            p->drained = drain_has(a, places[i].name);
        else
            e = error_set(err, E2BIG, "%s: more than %d places since the start",
                          places[i].name, PLACES_KEPT);
    }
    a->placed = true;
    a->version++;
    act_notify(a);
    /* what cannot be is logged, and tried again there */
    (void)pod_table_end_gone(a);
    act_unlock(a);
    return e;
}

size_t actuator_places(struct actuator *a,
                       struct act_place_status ret_places[ACT_PLACES_MAX])
{
    size_t n = 0;
    act_lock(a);
    for (size_t i = 0; i < a->n_places && n < ACT_PLACES_MAX; i++)
        if (a->places[i]->present) {
            struct act_place_status *v = &ret_places[n];
            status_fill_place(a->places[i], v);
            n += v->endpoint[0] || v->drained || v->n_pods > 0 ||
                 strcmp(v->name, ACT_HOST) == 0;
        }
    act_unlock(a);
    return n;
}

int actuator_find_place(struct actuator *a, const char *name,
                        struct act_place_status *ret_place)
{
    int r = -ENOENT;
    act_lock(a);
    for (size_t i = 0; i < a->n_places && r < 0; i++) {
        struct place *p = a->places[i];
        if (!p->present || (strcmp(p->desc.name, name) != 0 &&
                            !(*name && strcmp(p->desc.pci, name) == 0)))
            continue;
        status_fill_place(p, ret_place);
        r = 0;
    }
    act_unlock(a);
    return r;
}

/* With `saving` locked, of a place that is known. */
static int drain_write(struct actuator *a, const char *place, bool drained,
                       struct error *err)
{
    int e = intents_drain(a->intents, place, drained, err);
    if (e < 0)
        return e;
    act_lock(a);
    struct place *p = place_find(a, place);
    drain_set(a, place, drained);
    if (p && p->drained != drained)
        p->health.since_ms = clock_ms();
    if (p)
        p->drained = drained;
    a->version++;
    act_notify(a);
    act_unlock(a);
    return 0;
}

int actuator_drain(struct actuator *a, const char *place, bool drained,
                   struct error *err)
{
    act_lock(a);
    bool known = place_find(a, place) != NULL || drain_has(a, place);
    act_unlock(a);
    if (!known)
        return error_set(err, ENOENT, "%s: there is no such place", place);
    hold_lock(&a->saving);
    int e = drained || !a->flasher ? 0 : flasher_clear(a->flasher, place, err);
    if (e == 0)
        e = drain_write(a, place, drained, err);
    if (e == 0 && drained && a->flasher)
        flasher_drained(a->flasher, place);
    return e;
}

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

/* --- beginning to flash ----------------------------------------------------- */

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
    flasher_each_out(a->flasher, actuator_take_drained, a);
    act_unlock(a);
    return 0;
}
