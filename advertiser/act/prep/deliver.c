/* What a pod needs on its card before its sandbox: the card's configuration,
 * directories and files; and their end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/pod_files.h"
#include "advertiser/act/core/act_private.h"
#include "advertiser/act/prep/prep.h"
#include "lib/base/mem.h"

/* --- the card ----------------------------------------------------------- */

/* It runs there, may run there, or is about to, on the card as it is now. */
static bool uses_card(const struct entry *e)
{
    const struct machine *m = &e->m;
    bool used = !entry_is_over(e) && (e->configured || m->prepared);
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
static bool in_use(struct place *at, const struct entry *e)
{
    (void)pthread_mutex_lock(&at->a->lock);
    bool used = !at->swept || at->n_spared_running > 0 ||
                orphans_run(&at->orphans);
    for (size_t i = 0; i < at->a->n_entries; i++) {
        const struct entry *other = at->a->entries[i];
        used |= other != e && !entry_is_ours(other) && uses_card(other) &&
                strcmp(other->intent->place, at->what.name) == 0;
    }
    (void)pthread_mutex_unlock(&at->a->lock);
    return used;
}

/* From now on the card is to stay as it is for this pod, or not any more. */
static void set_configured(struct actuator *a, struct entry *e, bool configured)
{
    (void)pthread_mutex_lock(&a->lock);
    e->configured = configured;
    (void)pthread_mutex_unlock(&a->lock);
}

static bool keeps(void *ctx)
{
    struct actuator *a = ctx;
    (void)pthread_mutex_lock(&a->lock);
    bool goes_on = !a->stopping;
    (void)pthread_mutex_unlock(&a->lock);
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
                        struct entry *e, struct machine_result *r,
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

/* Lock held: who waits there for that reason tries again now. */
static void wake_waiting(struct place *at, const char *reason)
{
    for (size_t i = 0; i < at->a->n_entries; i++) {
        struct entry *e = at->a->entries[i];
        if (strcmp(e->intent->place, at->what.name) != 0 ||
            strcmp(e->intent->reason, reason) != 0)
            continue;
        e->m.retry_ms = 0;
        e->due_ms = 0;
    }
    place_wake(at);
}

static void end_turn(struct place *at)
{
    (void)pthread_mutex_unlock(&at->prep);
    (void)pthread_mutex_lock(&at->a->lock);
    at->n_turns++;
    wake_waiting(at, "WaitsForCard");
    (void)pthread_mutex_unlock(&at->a->lock);
}

void deliver_freed(struct place *at)
{
    at->n_freed++;
    wake_waiting(at, "VfsInUse");
}

void deliver_look(struct place *at, struct entry *e)
{
    bool uses = !entry_is_ours(e) && uses_card(e);
    /* two that wait must not wake one another: each try of one that ran before
     * looks like an end, as it is not listed meanwhile */
    if (e->uses && !uses && strcmp(e->intent->reason, "VfsInUse") != 0)
        deliver_freed(at);
    e->uses = uses;
}

/* A hook may take its time, and there are few threads: nobody waits here. */
static bool begin_turn(struct place *at, struct machine_result *r,
                       struct error *err)
{
    if (pthread_mutex_trylock(&at->prep) == 0)
        return true;
    r->e = error_set(err, EBUSY,
                     "%s is being prepared for another pod: see biga ps",
                     at->what.name);
    r->reason = "WaitsForCard";
    r->waits = true;
    return false;
}

void deliver_card(struct place *at, const struct act_place *what,
                  struct entry *e, struct machine_result *r, struct error *err)
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

/* --- files by the helper ------------------------------------------------ */

bool deliver_needed(const struct entry *e)
{
    return e->spec && e->spec->n_volumes > 0;
}

/* One that is on its way, as after a reboot of the card, is waited for. */
static void not_delivered(struct actuator *a, const struct entry *e,
                          struct machine_result *r, struct error *err)
{
    (void)pthread_mutex_lock(&a->lock);
    r->permanent = !a->helper_image || helper_is_given_up(a, e);
    (void)pthread_mutex_unlock(&a->lock);
    r->waits = !r->permanent;
    r->reason = r->waits ? "WaitsForHelper" : "HelperMissing";
    if (r->waits) {
        r->e = error_set(err, ENOENT,
                         "Biga's helper (%s) does not run on %s yet",
                         a->helper_image, e->intent->place);
        return;
    }
    r->e = a->helper_image
               ? error_set(err, ENOENT,
                           "its volumes cannot be made on %s, where Biga's "
                           "helper (image %s) does not run: import the image "
                           "there, delete the pod and apply it again",
                           e->intent->place, a->helper_image)
               : error_set(err, ENOENT,
                           "its volumes cannot be made on %s: give the "
                           "advertiser the image of Biga's helper",
                           e->intent->place);
}

/* Lock not held; `id` has to live as long as what is returned. */
static struct pod_access access_of(struct actuator *a,
                                   const struct connection *c,
                                   const struct entry *e,
                                   char id[CRI_ID_MAX + 1])
{
    id[0] = '\0';
    if (!card_is_host(&c->place)) {
        (void)pthread_mutex_lock(&a->lock);
        helper_id(a, c->place.name, id);
        (void)pthread_mutex_unlock(&a->lock);
    }
    return (struct pod_access){.place = &c->place,
                               .dirs = &a->dirs,
                               .uid = e->intent->uid,
                               .cri = c->cri,
                               .helper = id};
}

void deliver_files(struct place *at, const struct connection *c,
                   struct entry *e, struct machine_result *r, struct error *err)
{
    char id[CRI_ID_MAX + 1];
    const struct pod_access pod = access_of(at->a, c, e, id);
    bool host = card_is_host(&c->place);
    if (!host && deliver_needed(e) && !id[0]) {
        not_delivered(at->a, e, r, err);
        return;
    }
    r->e = pod_files_make(&pod, e->spec, err);
    if (r->e < 0)
        r->reason = "FilesFailed";
}

/* --- their end ---------------------------------------------------------- */

static void remove_files(const struct pod_access *pod, struct machine_result *r,
                         struct error *err)
{
    bool refused;
    r->e = pod_files_remove(pod, &refused, err);
    if (r->e < 0 && refused)
        r->reason = "FilesLeft";
}

void deliver_end(struct place *at, const struct connection *c, struct entry *e,
                 struct machine_result *r, struct error *err)
{
    struct actuator *a = at->a;
    char id[CRI_ID_MAX + 1];
    bool host = card_is_host(&c->place);
    if (!host &&
        (!a->helper_image || (e->intent->attempt == 0 && !deliver_needed(e))))
        return; /* nothing was begun, or nobody could write anything */
    const struct pod_access pod = access_of(a, c, e, id);
    if (host || id[0]) {
        remove_files(&pod, r, err);
        return;
    }
    (void)pthread_mutex_lock(&a->lock);
    bool given_up = helper_is_given_up(a, e);
    bool begun = e->intent->attempt > 0 || e->m.prepared;
    (void)pthread_mutex_unlock(&a->lock);
    if (!begun) /* it waited for the helper in vain */
        return;
    cleanup_free char *dir = config_pod_dir(a, e);
    r->e = error_set(err, ENOENT,
                     "%s cannot be removed, as Biga's helper (image %s) does "
                     "not run there",
                     dir, a->helper_image);
    r->reason = "FilesLeft";
    r->permanent = given_up;
}
