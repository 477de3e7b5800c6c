/* What others see. */
#include "advertiser/act/core/status_private.h"

#include <stdio.h>
#include <string.h>

#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/status.h"
#include "lib/io/clock.h"
#include "model/pod/rights.h"

static void put(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text);
}

static void fill_container(const struct pod_entry *e,
                           const struct machine_unit *u,
                           struct act_container_status *v)
{
    const struct machine_container *c = NULL;
    for (size_t i = 0; i < e->m.found.n_containers; i++) {
        const struct machine_container *at = &e->m.found.containers[i];
        if (strcmp(at->name, u->name) == 0 &&
            strcmp(at->sandbox_id, e->intent->sandbox) == 0 &&
            (!c || at->attempt > c->attempt))
            c = at;
    }
    put(v->name, sizeof v->name, u->name);
    v->state = c ? c->state : u->noted->exited ? CRI_EXITED : CRI_CREATED;
    v->restarts = u->noted->restarts;
    if (u->noted->exited && v->state != CRI_RUNNING) {
        v->exit_code = u->noted->exit_code;
        put(v->reason, sizeof v->reason, u->noted->reason);
    }
}

static LOCKED void fill_stale(const struct pod_entry *e, const struct place *p,
                              struct act_pod_status *v)
{
    v->ready = false;
    v->stale = true;
    put(v->reason, sizeof v->reason, "CardLost");
    if (p && place_health(p) != ACT_LOST)
        (void)snprintf(v->message, sizeof v->message,
                       "%s answers again: what runs there is looked at",
                       p->desc.name);
    else if (p)
        (void)snprintf(v->message, sizeof v->message,
                       "%s does not answer (%s): what runs there is taken "
                       "over when it is back; see its containerd, or drain it "
                       "with biga card drain %s",
                       p->desc.name, p->reason, p->desc.name);
    else
        (void)snprintf(v->message, sizeof v->message,
                       "%s is not in this node any more: put it back, or "
                       "delete the pod",
                       e->intent->place);
}

void status_fill_pod(struct actuator *a, const struct pod_entry *e,
                     struct act_pod_status *v)
{
    const struct intent *i = e->intent;
    const struct place *p = place_find(a, i->place);
    *v = (struct act_pod_status){
        .state = i->state,
        .held = i->held,
        .stopping = i->stop,
        .ready = pod_entry_is_ready(a, e),
        .ran = i->ran,
        .attempt = i->attempt,
        .version = e->version,
    };
    put(v->namespace, sizeof v->namespace, i->namespace);
    put(v->name, sizeof v->name, i->name);
    put(v->uid, sizeof v->uid, i->uid);
    put(v->place, sizeof v->place, i->place);
    put(v->pair_key, sizeof v->pair_key, i->pair_key);
    put(v->owner, sizeof v->owner, i->owner);
    put(v->reason, sizeof v->reason, i->reason);
    put(v->message, sizeof v->message, i->message);
    if (p) {
        char host[ACT_NAME_MAX + 1];
        card_host(&p->desc, host);
        put(v->address, sizeof v->address, host);
    }
    for (size_t k = 0; k < e->m.n_units; k++)
        if (!e->m.units[k].init && v->n_containers < ACT_CONTAINERS_MAX)
            fill_container(e, &e->m.units[k],
                           &v->containers[v->n_containers++]);
    if (!pod_entry_is_over(e) && !pod_entry_is_virtual(a, e) &&
        (!p || !p->present || p->unread || place_health(p) == ACT_LOST))
        fill_stale(e, p && p->present ? p : NULL, v);
}

/* Nobody has ever asked it, and nothing of ours is there: of what the operator
 * has said of it nothing is hidden by that. */
static LOCKED bool is_drained_unasked(const struct place *p, uint32_t n_pods)
{
    return p->drained && p->present && !p->desc.endpoint[0] && n_pods == 0;
}

/* What pods may have there by --allow, and which sets give more. */
static LOCKED void fill_rights(const struct place *p,
                               struct act_place_status *v)
{
    uint64_t bits = rights_bits(&p->a->rights);
    const char *text = v->devices.text;
    for (unsigned n = 0; *text; n++) {
        char name[DEVICE_SET_NAME_MAX + 1];
        text = device_sets_next(text, name);
        const struct act_device_set *set = card_set(&p->desc, name);
        bits |= set && set->ipc_lock ? CARD_RIGHTS_SET_LOCKS(n) : 0;
    }
    card_rights_text(bits, v->rights);
}

/* Since it was to be flashed it is out of service, whatever else it is. */
static LOCKED void fill_flash(const struct place *p, struct act_place_status *v)
{
    const struct flasher_view *flash = &v->flash;
    flasher_look(p->a->flasher, p->desc.name, &v->flash);
    if (flash->state == FLASHER_RUNNING)
        (void)snprintf(v->reason, sizeof v->reason,
                       "it is being flashed: %s, %d %%", flash->phase,
                       flash->percent);
    else if (flash->state == FLASHER_FAILED)
        (void)snprintf(v->reason, sizeof v->reason, "%s: %.440s", flash->reason,
                       flash->message);
}

void status_fill_place(struct place *p, struct act_place_status *v)
{
    *v = (struct act_place_status){
        .health = place_health(p),
        .drained = p->drained,
        .since_ms = clock_ms() - p->health.since_ms,
    };
    put(v->name, sizeof v->name, p->desc.name);
    put(v->pci, sizeof v->pci, p->desc.pci);
    put(v->endpoint, sizeof v->endpoint, p->desc.endpoint);
    put(v->runtime, sizeof v->runtime, p->runtime);
    put(v->model, sizeof v->model, p->desc.model);
    put(v->serial, sizeof v->serial, p->desc.serial);
    for (size_t i = 0; i < p->desc.n_sets; i++) /* they fit: the card file */
        (void)device_sets_add(&v->devices, p->desc.sets[i].name,
                              strlen(p->desc.sets[i].name));
    fill_rights(p, v);
    for (size_t i = 0; i < p->a->n_entries; i++) {
        const struct pod_entry *e = p->a->entries[i];
        v->n_pods += pod_entry_is_on(e, p) && !pod_entry_is_helper(e) &&
                     e->intent->state != ACT_GONE;
    }
    bool unasked = is_drained_unasked(p, v->n_pods);
    if (unasked)
        v->health = ACT_DRAINED;
    if (v->health != ACT_READY && !unasked)
        put(v->reason, sizeof v->reason, p->reason);
    if (v->health == ACT_DRAINED && !v->reason[0])
        put(v->reason, sizeof v->reason, "drained by the operator");
    if (p->a->flasher)
        fill_flash(p, v);
}
