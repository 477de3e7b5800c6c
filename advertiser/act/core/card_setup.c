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
    for (size_t i = 0; i < m->found.n_sandboxes; i++)
        used |= m->found.sandboxes[i].ready;
    for (size_t i = 0; i < m->found.n_containers; i++)
        used |= m->found.containers[i].state == CRI_RUNNING ||
                m->found.containers[i].state == CRI_UNKNOWN;
    /* what an earlier life of ours made is not known before the first list;
     * its number may be lost as well */
    used |= !m->listed && (e->intent->attempt > 0 || !e->met);
    return used && e->intent->state != ACT_GONE;
}

/* Also by what is not written down (yet): who asked for it may say so any
 * time, and what is nobody's runs until it is removed. */
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

/* From now on the card is to stay as it is for this pod, or not any more. */
static void set_configured(struct actuator *a, struct pod_entry *e,
                           bool configured)
{
    act_lock(a);
    e->configured = configured;
    act_unlock(a);
}

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

/* Who asks for no number takes the card with what it has; that stays so from
 * then on, too. */
static void deliver_vfs(struct place *at, const struct prep_request *given,
                        struct pod_entry *e, struct machine_result *r,
                        struct error *err)
{
    struct prep_request request = *given;
    request.hook = NULL;
    (void)pthread_mutex_lock(&at->vfs);
    set_configured(at->a, e, false);
    request.in_use = in_use(at, e);
    if (request.sriov_vfs >= 0)
        run_prep(at, &request, r, err);
    if (r->e == 0)
        set_configured(at->a, e, true);
    (void)pthread_mutex_unlock(&at->vfs);
}

/* The pods that wait there for that reason try again now. */
static LOCKED void wake_waiting(struct place *at, const char *reason)
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
    wake_waiting(at, "WaitsForCard");
    act_unlock(at->a);
}

void card_setup_freed(struct place *at)
{
    at->n_freed++;
    wake_waiting(at, "VfsInUse");
}

void card_setup_note_use(struct place *at, struct pod_entry *e)
{
    bool uses = !pod_entry_is_helper(e) && uses_card(e);
    /* two that wait must not wake one another: each try of one that ran before
     * looks like an end, as it is not listed meanwhile */
    if (e->uses_card && !uses && strcmp(e->intent->reason, "VfsInUse") != 0)
        card_setup_freed(at);
    e->uses_card = uses;
}

/* A hook may take its time, and there are few threads: nobody waits here. */
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
    deliver_vfs(at, &request, e, r, err);
    request.sriov_vfs = -1; /* it has them */
    if (r->e == 0 && request.hook[0])
        run_prep(at, &request, r, err);
    if (asks)
        end_turn(at);
}
