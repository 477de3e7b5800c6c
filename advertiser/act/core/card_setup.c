#include "advertiser/act/core/card_setup.h"

#include <errno.h>
#include <string.h>

#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/prep/prep.h"

/* It runs there, may run there, or is about to, on the card as it is now. */
static LOCKED bool uses_card(const struct pod_entry *e)
{
    const struct machine *m = &e->m;
    bool used = !pod_entry_is_over(e) && (e->configured || m->prepared);
    used |= machine_found_lives(&m->found);
    /* before the first list it is not known what an earlier run of this program
     * started; the number of that attempt may have been lost as well */
    used |= !m->listed && (e->intent->attempt > 0 || !e->met);
    return used && e->intent->state != ACT_GONE;
}

/* Other pods may use it, also such as are not recorded (yet): they may be
 * wanted any time, and orphans run until they are removed. */
static bool in_use(struct place *at, const struct pod_entry *e)
{
    act_lock(at->a);
    bool used = !at->swept || at->n_spared_running > 0 ||
                orphans_run(&at->orphans);
    for (size_t i = 0; i < at->a->n_entries; i++) {
        const struct pod_entry *other = at->a->entries[i];
        used |= other != e && !pod_entry_is_helper(other) && uses_card(other) &&
                pod_entry_is_on(other, at);
    }
    act_unlock(at->a);
    return used;
}

/* While it is set, the card's configuration is not changed for other pods. */
static void set_configured(struct actuator *a, struct pod_entry *e,
                           bool configured)
{
    act_lock(a);
    e->configured = configured;
    act_unlock(a);
}

/* prep.h's keep(): false once the program is to end. */
static bool keeps(void *ctx)
{
    struct actuator *a = ctx;
    act_lock(a);
    bool goes_on = !a->stopping;
    act_unlock(a);
    return goes_on;
}

static void run_prep(struct place *at, const struct prep_request *request,
                     struct machine_result *r, struct error *err)
{
    const struct actuator *a = at->a;
    const struct prep_config config = {
        .sysfs = a->sysfs, .hooks_dir = a->hooks_dir, .dir = a->dir};
    struct prep_outcome outcome = {0};
    r->e = keeps(at->a) ? prep_run(&config, request, &outcome, err)
                        : error_set(err, ECANCELED, "the advertiser ends");
    if (r->e < 0) {
        r->reason = "PrepareFailed";
    } else if (outcome.reason[0]) {
        r->e = error_set(err, EIO, "%s", outcome.message);
        r->reason = outcome.reason;
        r->permanent = !outcome.again;
        r->waits = outcome.waits;
    }
}

/* A pod that asks for no number takes the card with the number that it has, and
 * from then on that number does not change either. */
static void configure_vfs(struct place *at, const struct prep_request *given,
                          struct pod_entry *e, struct machine_result *r,
                          struct error *err)
{
    struct prep_request request = *given;
    request.hook = NULL;
    hold_lock(&at->vfs);
    set_configured(at->a, e, false);
    request.in_use = in_use(at, e);
    if (request.sriov_vfs >= 0)
        run_prep(at, &request, r, err);
    if (r->e == 0)
        set_configured(at->a, e, true);
}

void card_setup_wake(struct place *at, const char *reason)
{
    for (size_t i = 0; i < at->a->n_entries; i++) {
        struct pod_entry *e = at->a->entries[i];
        if (!pod_entry_is_on(e, at) || strcmp(e->intent->reason, reason) != 0)
            continue;
        e->m.retry_ms = 0;
        e->due_ms = 0;
    }
    place_wake(at);
}

static void end_turn(struct place *at)
{
    (void)pthread_mutex_unlock(&at->prep);
    act_lock(at->a);
    at->n_turns++;
    card_setup_wake(at, "WaitsForCard");
    act_unlock(at->a);
}

void card_setup_freed(struct place *at)
{
    at->n_freed++;
    card_setup_wake(at, "VfsInUse");
    card_setup_wake(at, "DevicesInUse");
}

void card_setup_note_use(struct place *at, struct pod_entry *e)
{
    bool uses = !pod_entry_is_helper(e) && uses_card(e);
    /* a pod that waits itself does not count as having used the card: each of
     * its tries would wake another that waits, whose try would wake it again */
    if (e->uses_card && !uses && strcmp(e->intent->reason, "VfsInUse") != 0)
        card_setup_freed(at);
    e->uses_card = uses;
}

/* Does not block: a hook may take ten minutes, and a place has few threads.  A
 * pod that comes meanwhile is woken by end_turn(). */
static bool begin_turn(struct place *at, struct machine_result *r,
                       struct error *err)
{
    if (pthread_mutex_trylock(&at->prep) == 0)
        return true;
    r->e = error_set(err, EBUSY,
                     "%s is being prepared for another pod: see biga ps",
                     at->desc.name);
    r->reason = "WaitsForCard";
    r->waits = true;
    return false;
}

void card_setup_run(struct place *at, const struct act_place *what,
                    struct pod_entry *e, struct machine_result *r,
                    struct error *err)
{
    struct prep_request request = {
        .card = what->name,
        .pci = what->pci,
        .namespace = e->intent->namespace,
        .pod = e->intent->name,
        .sriov_vfs = e->intent->sriov_vfs,
        .hook = e->intent->hook,
        .keep = keeps,
        .ctx = at->a,
    };
    bool asks = request.sriov_vfs >= 0 || request.hook[0];
    if (card_is_host(what) || (asks && !begin_turn(at, r, err)))
        return;
    configure_vfs(at, &request, e, r, err);
    request.sriov_vfs = -1; /* it has them */
    if (r->e == 0 && request.hook[0])
        run_prep(at, &request, r, err);
    if (asks)
        end_turn(at);
}
