#include "advertiser/act/core/card_setup.h"

#include <errno.h>
#include <string.h>

#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/prep/prep.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "model/pod/prepare.h"

enum { SF_NAMES_MAX = PREPARE_SFS_MAX * 256 };

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
    const struct place *at = ctx;
    struct actuator *a = at->a;
    act_lock(a);
    bool goes_on = !a->stopping;
    act_unlock(a);
    return goes_on;
}

/* prep.h's knows(): a pod that is not recorded may still run, or be wanted,
 * until all is known. */
static bool knows(void *ctx, const char *uid)
{
    struct place *at = ctx;
    act_lock(at->a);
    bool sure = at->a->fed && at->swept && at->n_spared_running == 0 &&
                !orphans_run(&at->orphans);
    bool known = !sure || pod_entry_by_uid(at->a, uid) != NULL;
    act_unlock(at->a);
    return known;
}

static struct prep_config config_of(const struct actuator *a)
{
    return (struct prep_config){.sysfs = a->sysfs,
                                .hooks_dir = a->hooks_dir,
                                .dir = a->dir,
                                .devlink = a->devlink};
}

static void run_prep(struct place *at, const struct prep_request *request,
                     struct machine_result *r, struct error *err)
{
    const struct prep_config config = config_of(at->a);
    struct prep_outcome outcome = {0};
    r->e = keeps(at) ? prep_run(&config, request, &outcome, err)
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
    request.sfs = 0;
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

/* Of a pod as it was recorded; its number of virtual functions and its hook
 * have members of their own there. */
static void fill_request(struct place *at, const struct act_place *what,
                         const struct pod_entry *e,
                         struct prep_request *ret_request)
{
    const struct intent *i = e->intent;
    struct prepare asks = {.sfs = 0};
    /* what is wrong with it was told when it was wanted */
    (void)prepare_read(i->spec, i->spec_size, &asks, NULL);
    *ret_request = (struct prep_request){
        .card = what->name,
        .pci = what->pci,
        .namespace = i->namespace,
        .pod = i->name,
        .uid = i->uid,
        .sfs = i->is_host ? 0 : asks.sfs,
        .sriov_vfs = i->sriov_vfs,
        .hook = i->hook,
        .keep = keeps,
        .knows = knows,
        .ctx = at,
    };
}

/* A pod that was left there comes after that: its hook would wait for the one
 * that flashes, and end it when it has had as long as any. */
static bool is_flashed(struct place *at, const struct act_place *what,
                       struct machine_result *r, struct error *err)
{
    struct flasher_view v;
    if (card_is_host(what) || !at->a->flasher)
        return false;
    flasher_look(at->a->flasher, what->name, &v);
    if (v.state != FLASHER_RUNNING)
        return false;
    r->e = error_set(err, EBUSY, "%s is being flashed: see biga card show %s",
                     what->name, what->name);
    r->reason = "WaitsForCard";
    r->waits = true;
    return true;
}

void card_setup_run(struct place *at, const struct act_place *what,
                    struct pod_entry *e, struct machine_result *r,
                    struct error *err)
{
    struct prep_request request;
    fill_request(at, what, e, &request);
    bool asks = request.sriov_vfs >= 0 || request.sfs > 0 || request.hook[0];
    if (is_flashed(at, what, r, err))
        return;
    if (card_is_host(what) || (asks && !begin_turn(at, r, err)))
        return;
    configure_vfs(at, &request, e, r, err);
    request.sriov_vfs = -1; /* it has them */
    if (r->e == 0 && (request.sfs > 0 || request.hook[0]))
        run_prep(at, &request, r, err);
    if (asks)
        end_turn(at);
}

void card_setup_end(struct place *at, const struct act_place *what,
                    const struct pod_entry *e)
{
    const struct prep_config config = config_of(at->a);
    struct prep_request request;
    struct error err;
    fill_request(at, what, e, &request);
    if (!card_is_host(what) && request.sfs > 0 &&
        prep_sfs_end(&config, &request, &err) < 0)
        log_event(LOG_WARN, "act-functions-left", "place", what->name, "pod",
                  request.pod, "error", err.text, NULL);
}

int card_setup_env(struct place *at, const struct act_place *what,
                   const struct pod_entry *e, struct arena *arena,
                   struct cri_container_config *container, struct error *err)
{
    const struct prep_config config = config_of(at->a);
    struct prep_request request;
    cleanup_str struct str names = STR_INIT(SF_NAMES_MAX);
    fill_request(at, what, e, &request);
    if (card_is_host(what) || request.sfs == 0)
        return 0;
    int r = prep_sfs_names(&config, &request, &names, err);
    if (r < 0)
        return r;
    struct cri_pairs *env = &container->env;
    struct cri_pair *list = arena_alloc(arena, (env->n + 1) * sizeof *list);
    if (env->n > 0)
        memcpy(list, env->list, env->n * sizeof *list);
    list[env->n] =
        (struct cri_pair){"BIGA_SCALABLE_FUNCTIONS",
                          arena_strndup(arena, str_text(&names), names.size)};
    *env = (struct cri_pairs){list, env->n + 1};
    return 0;
}
