/* The program that Biga has on each card (biga-card): a pod like others, of
 * ours, made when a pod is first to run there, ended when none is left. */
#include "advertiser/act/core/helper_pod.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum {
    LONELY_MS = 600000,   /* without pods, then it ends */
    RENEW_MS = 30000,     /* after it has failed */
    AWAIT_MS = 60000,     /* for the end of a pod's files */
    LOOK_AGAIN_MS = 5000, /* of who waits for it */
};

static LOCKED struct pod_entry *helper_of(struct actuator *a, const char *place)
{
    for (size_t i = 0; i < a->n_entries; i++)
        if (pod_entry_is_helper(a->entries[i]) &&
            strcmp(a->entries[i]->intent->place, place) == 0)
            return a->entries[i];
    return NULL;
}

static char *helper_spec(const struct actuator *a, const char *name)
{
    struct str out = STR_INIT(8192);
    str_add(&out, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
                  "\"namespace\":\"biga-system\",\"name\":");
    str_add_json(&out, name);
    str_add(&out, ",\"uid\":");
    str_add_json(&out, name);
    str_add(&out, "},\"spec\":{\"restartPolicy\":\"Always\","
                  "\"terminationGracePeriodSeconds\":1,\"containers\":[{"
                  "\"name\":\"helper\",\"imagePullPolicy\":\"IfNotPresent\","
                  "\"command\":[\"/biga-card\",\"wait\"],\"image\":");
    str_add_json(&out, a->helper_image);
    str_add(&out, "}]}}");
    return str_steal(&out);
}

/* Releases the lock while it is written down. */
static LOCKED void helper_make(struct place *at)
{
    struct actuator *a = at->a;
    cleanup_free char *name = xasprintf(ACT_HELPER "%s", at->desc.name);
    cleanup_free char *spec = helper_spec(a, name);
    struct error err = {0};
    struct act_pod pod = {
        .owner = ACT_OWNER_SELF,
        .namespace = "biga-system",
        .name = name,
        .uid = name,
        .place = at->desc.name,
        .spec = spec,
        .spec_size = strlen(spec),
        .sriov_vfs = -1,
    };
    struct intent *i = intent_create(&pod);
    int e = 0;
    act_unlock(a);
    (void)pthread_mutex_lock(&a->saving);
    /* whoever adds or forgets one holds `saving`: its row is not written
     * again by two, nor deleted under an entry */
    act_lock(a);
    bool there = pod_entry_by_uid(a, name) != NULL;
    act_unlock(a);
    if (!there)
        e = intents_put(a->intents, i, &err);
    act_lock(a);
    if (!there && e == 0)
        (void)pod_entry_add(a, i);
    else
        intent_destroy(i);
    (void)pthread_mutex_unlock(&a->saving);
    if (e < 0)
        log_event(LOG_ERROR, "act-helper", "place", at->desc.name, "error",
                  err.text, NULL);
    place_wake(at);
}

/* Is it a pod whose files and logs the helper has to see to, now or at its
 * end? */
static LOCKED bool is_served(const struct place *at, const struct pod_entry *e)
{
    return at->a->helper_image && !card_is_host(&at->desc) &&
           !pod_entry_is_helper(e) && e->m.listed && !pod_entry_is_over(e) &&
           (e->m.hold == MACHINE_GO || e->intent->stop) &&
           (!e->intent->stop || e->intent->attempt > 0 ||
            pod_entry_has_volumes(e));
}

/* Its next step is a call of the helper.  Sandboxes and containers that have
 * ended may still be there, as when they cannot be removed: the next attempt
 * does not wait for them. */
static LOCKED bool needs_helper(const struct place *at,
                                const struct pod_entry *e)
{
    const struct machine *m = &e->m;
    if (e->intent->stop) /* its files are to go, and nothing else is left */
        return !m->cleaned && m->found.n_sandboxes == 0 &&
               m->found.n_containers == 0;
    /* what lives is adopted or removed before anything else */
    return !m->prepared &&
           (pod_entry_has_volumes(e) || place_seeks_devices(at, e)) &&
           !machine_found_lives(&m->found);
}

/* It runs, or it failed and will not run soon: no use to wait. */
static LOCKED bool is_settled(struct actuator *a,
                              const struct pod_entry *helper)
{
    return !helper->intent->stop && (pod_entry_is_ready(a, helper) ||
                                     helper->intent->state == ACT_FAILED);
}

/* Only the end of a pod is limited; a pod that is to begin waits for as long
 * as it takes. */
static LOCKED bool has_waited(const struct pod_entry *e)
{
    return e->await_ms != 0 && clock_ms() - e->await_ms >= AWAIT_MS;
}

bool helper_is_given_up(struct actuator *a, const struct pod_entry *e)
{
    const struct pod_entry *helper = helper_of(a, e->intent->place);
    return has_waited(e) || (helper && helper->intent->state == ACT_FAILED);
}

bool helper_awaited(struct place *at, struct pod_entry *e)
{
    struct actuator *a = at->a;
    char why[ACT_MESSAGE_MAX] = "";
    if (!is_served(at, e))
        return false;
    if (!helper_of(a, at->desc.name))
        helper_make(at);
    struct pod_entry *helper = helper_of(a, at->desc.name);
    if (!needs_helper(at, e) || (helper && is_settled(a, helper))) {
        e->await_ms = 0;
        return false;
    }
    if (e->intent->stop && e->await_ms == 0)
        e->await_ms = clock_ms();
    if (has_waited(e))
        return false;
    if (helper && helper->intent->reason[0])
        (void)snprintf(why, sizeof why, "; it says %.60s: %.300s",
                       helper->intent->reason, helper->intent->message);
    machine_say(&e->m, "WaitsForHelper",
                "Biga's helper (%.100s) is begun on %.60s first%.250s",
                a->helper_image, at->desc.name, why);
    e->due_ms = clock_ms() + LOOK_AGAIN_MS;
    return true;
}

void helper_id(struct actuator *a, const char *place,
               char ret_id[CRI_ID_MAX + 1])
{
    const struct pod_entry *helper = helper_of(a, place);
    ret_id[0] = '\0';
    for (size_t i = 0; helper && i < helper->m.found.n_containers; i++) {
        const struct machine_container *c = &helper->m.found.containers[i];
        if (c->state == CRI_RUNNING &&
            strcmp(c->sandbox_id, helper->intent->sandbox) == 0)
            memcpy(ret_id, c->id, sizeof c->id);
    }
}

static LOCKED size_t n_others(const struct place *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->a->n_entries; i++) {
        const struct pod_entry *e = p->a->entries[i];
        n += !pod_entry_is_helper(e) && e->intent->state != ACT_GONE &&
             pod_entry_is_on(e, p);
    }
    return n;
}

/* The helper's image is another than the configured one: its biga-card may
 * lack commands that we call. */
static bool is_outdated(const struct actuator *a,
                        const struct pod_entry *helper)
{
    const struct podspec *spec = helper->spec;
    return a->helper_image && spec && spec->n_containers > 0 &&
           strcmp(spec->containers[0].image, a->helper_image) != 0;
}

/* Running pods have no next step, but need a helper for their logs: let each
 * have a turn, which makes one. */
static LOCKED void look_again(struct place *p)
{
    for (size_t i = 0; i < p->a->n_entries; i++) {
        struct pod_entry *e = p->a->entries[i];
        if (!pod_entry_is_helper(e) && pod_entry_is_on(e, p))
            e->due_ms = 0;
    }
    place_wake(p);
}

void helper_tend(struct place *p)
{
    struct actuator *a = p->a;
    struct pod_entry *e = helper_of(a, p->desc.name);
    int64_t now = clock_ms();
    if (!e)
        return;
    bool lonely = n_others(p) == 0;
    bool failed = e->intent->state == ACT_FAILED;
    if (!lonely && !failed)
        p->lonely_ms = now;
    if (p->lonely_ms == 0)
        p->lonely_ms = now;
    int64_t end = p->lonely_ms + (failed       ? RENEW_MS
                                  : p->drained ? 0
                                               : LONELY_MS);
    if (e->intent->state == ACT_GONE && !e->busy) {
        char uid[ACT_NAME_MAX + 32];
        struct error err = {0};
        (void)snprintf(uid, sizeof uid, "%s", e->intent->uid);
        act_unlock(a);
        int r = pod_entry_forget(a, uid, &err);
        act_lock(a);
        if (r < 0 && r != -ENOENT)
            log_event(LOG_ERROR, "act-helper", "place", p->desc.name, "error",
                      err.text, NULL);
        look_again(p);
    } else if (!e->intent->stop &&
               (((lonely || failed) && now >= end) || is_outdated(a, e))) {
        pod_entry_stop(a, e, 1); /* who needs it makes the next one */
    }
}
