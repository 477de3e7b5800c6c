/* The table of pods. */
#include "advertiser/act/core/pod_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/core/place.h"
#include "advertiser/act/core/threads.h"
#include "advertiser/act/pod/files.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

static struct podspec *read_spec(const struct actuator *a,
                                 const struct intent *i)
{
    cleanup_with(podspec) struct podspec *spec = NULL;
    struct error err = {0};
    struct files files = {0};
    struct podspec_source source = files_source(&files);
    int e = files_init(&files, i->files, i->files_size, &err);
    if (e == 0)
        e = podspec_parse(i->spec, i->spec_size, a->node, &source, &spec, &err);
    files_fini(&files);
    if (e < 0) {
        log_event(LOG_ERROR, "act-spec-refused", "uid", i->uid, "error",
                  err.text, NULL);
        return NULL;
    }
    for (size_t k = 0; k < i->n_env; k++)
        podspec_set_env(spec, i->env[k].key, i->env[k].value);
    return steal(&spec);
}

struct pod_entry *pod_entry_add(struct actuator *a, struct intent *intent)
{
    struct pod_entry *e = xcalloc(1, sizeof *e);
    e->intent = intent;
    e->spec = read_spec(a, intent);
    e->stop_saved = intent->stop;
    bool host = strcmp(intent->place, ACT_HOST) == 0;
    machine_init(&e->m, intent, e->spec, host && a->boot_id ? a->boot_id : "");
    e->version = ++a->version;
    a->entries = xgrow(a->entries, a->n_entries, &a->cap_entries,
                       sizeof *a->entries);
    a->entries[a->n_entries++] = e;
    return e;
}

static void entry_free(struct pod_entry *e)
{
    machine_fini(&e->m);
    podspec_destroy(e->spec);
    intent_destroy(e->intent);
    free(e);
}

void pod_entry_release(struct pod_entry *e)
{
    e->busy = false;
    if (e->dropped)
        entry_free(e);
}

void pod_entry_drop(struct actuator *a, struct pod_entry *e)
{
    for (size_t i = 0; i < a->n_entries; i++)
        if (a->entries[i] == e) {
            memmove(&a->entries[i], &a->entries[i + 1],
                    (a->n_entries - i - 1) * sizeof *a->entries);
            a->n_entries--;
            break;
        }
    a->version++;
    e->dropped = true;
    if (!e->busy)
        entry_free(e);
}

struct pod_entry *pod_entry_by_uid(struct actuator *a, const char *uid)
{
    for (size_t i = 0; i < a->n_entries; i++)
        if (strcmp(a->entries[i]->intent->uid, uid) == 0)
            return a->entries[i];
    return NULL;
}

struct pod_entry *pod_entry_by_name(struct actuator *a, const char *namespace,
                                    const char *name)
{
    struct pod_entry *found = NULL;
    for (size_t i = 0; i < a->n_entries; i++) {
        struct pod_entry *e = a->entries[i];
        if (strcmp(e->intent->name, name) == 0 &&
            strcmp(e->intent->namespace, namespace) == 0 &&
            (!found || found->intent->state == ACT_GONE))
            found = e;
    }
    return found;
}

bool pod_entry_has_volumes(const struct pod_entry *e)
{
    return e->spec && e->spec->n_volumes > 0;
}

bool pod_entry_is_helper(const struct pod_entry *e)
{
    return strcmp(e->intent->owner, ACT_OWNER_SELF) == 0;
}

bool pod_entry_is_virtual(struct actuator *a, const struct pod_entry *e)
{
    if (strcmp(e->intent->place, ACT_HOST) != 0)
        return false;
    const struct place *p = place_find(a, ACT_HOST);
    return p && p->present && !p->desc.endpoint[0];
}

bool pod_entry_is_over(const struct pod_entry *e)
{
    return machine_is_over(&e->m);
}

bool pod_entry_is_ready(struct actuator *a, const struct pod_entry *e)
{
    if (pod_entry_is_virtual(a, e))
        return e->intent->state == ACT_RUNNING;
    return e->spec && machine_is_ready(&e->m);
}

static bool is_pair(const struct pod_entry *e, const struct pod_entry *other)
{
    return e != other && e->intent->pair_key[0] &&
           strcmp(e->intent->pair_key, other->intent->pair_key) == 0;
}

/* The others of its pair that it has to wait for. */
enum machine_hold pod_entry_hold(struct actuator *a, const struct pod_entry *e)
{
    bool host = e->intent->is_host;
    size_t n = 0, n_ready = 0, n_live = 0;
    if (e->intent->held)
        return MACHINE_HOLD_BEGIN;
    if (!e->intent->pair_key[0])
        return MACHINE_GO;
    for (size_t i = 0; i < a->n_entries; i++) {
        struct pod_entry *other = a->entries[i];
        if (!is_pair(e, other) || other->intent->is_host == host)
            continue;
        const struct place *p = place_find(a, other->intent->place);
        bool answers = pod_entry_is_virtual(a, other) || (p && place_works(p));
        n++;
        n_ready += pod_entry_is_ready(a, other);
        n_live += !pod_entry_is_over(other) && answers;
    }
    if (host)
        return n > 0 && n_ready == n ? MACHINE_GO : MACHINE_HOLD_START;
    /* a host that does not answer cannot say that its pod has ended */
    return n_live > 0 && e->intent->stop ? MACHINE_HOLD_STOP : MACHINE_GO;
}

bool pod_entry_pair_is_over(struct actuator *a, const struct pod_entry *e)
{
    if (e->intent->is_host)
        return false;
    for (size_t i = 0; i < a->n_entries; i++) {
        const struct intent *host = a->entries[i]->intent;
        if (is_pair(e, a->entries[i]) && host->is_host &&
            (host->state == ACT_GONE ||
             (host->state == ACT_FAILED && host->ran)))
            return true;
    }
    return false;
}

/* A helper, and who may wait for it. */
static bool serves(const struct pod_entry *e, const struct pod_entry *other)
{
    return e != other && pod_entry_is_helper(e) &&
           strcmp(e->intent->place, other->intent->place) == 0;
}

void pod_entry_publish(struct actuator *a, struct pod_entry *e)
{
    struct place *here = place_find(a, e->intent->place);
    e->m.changed = false;
    e->version = ++a->version;
    if (here) /* it lists more often while a pod comes or goes */
        clock_wake_one(&here->wake);
    for (size_t i = 0; i < a->n_entries; i++) {
        struct pod_entry *other = a->entries[i];
        struct place *p = place_find(a, other->intent->place);
        if (!is_pair(e, other) && !serves(e, other))
            continue;
        other->due_ms = 0;
        if (p)
            place_wake(p);
    }
    act_notify(a);
}

void pod_entry_stop(struct actuator *a, struct pod_entry *e, int64_t grace_s)
{
    struct place *p = place_find(a, e->intent->place);
    e->intent->stop = true;
    e->stop_saved = false;
    if (grace_s >= 0)
        e->intent->grace_s = grace_s;
    e->due_ms = 0;
    pod_entry_publish(a, e);
    if (p)
        place_wake(p);
}

int pod_entry_write(struct actuator *a, const struct intent *copy,
                    struct error *err)
{
    int r = intents_save(a->intents, copy, err);
    /* lost, not deleted by us: the caller holds `saving`, as who forgets a pod
     * does, and knows that it is in the table */
    return r == -ENOENT ? intents_put(a->intents, copy, err) : r;
}

/* Releases the lock while it is written; the caller has locked `saving` as
 * well, so that the entry stays in the table. */
static LOCKED int save_held(struct actuator *a, struct pod_entry *e,
                            struct error *err)
{
    struct intent copy = *e->intent; /* what it points to does not change */
    act_unlock(a);
    int r = pod_entry_write(a, &copy, err);
    act_lock(a);
    if (r == 0 && copy.stop && copy.keep == e->intent->keep &&
        copy.grace_s == e->intent->grace_s)
        e->stop_saved = true;
    return r;
}

static LOCKED void before_save(struct actuator *a, const struct pod_entry *e)
{
    enum act_state state = e->intent->state;
    act_unlock(a);
    (void)failpoint("act-before-save");
    if (state == ACT_RUNNING)
        (void)failpoint("act-before-running");
    if (state == ACT_GONE)
        (void)failpoint("act-before-gone");
    act_lock(a);
}

int pod_entry_save(struct actuator *a, struct pod_entry *e, struct error *err)
{
    int r = 0;
    (void)pthread_mutex_lock(&a->saving);
    act_lock(a);
    before_save(a, e);
    if (!e->dropped) /* else its row was deleted, and stays so */
        r = save_held(a, e, err);
    act_unlock(a);
    (void)failpoint("act-after-save");
    (void)pthread_mutex_unlock(&a->saving);
    return r;
}

int pod_entry_save_uid(struct actuator *a, const char *uid, struct error *err)
{
    (void)pthread_mutex_lock(&a->saving);
    act_lock(a);
    struct pod_entry *e = pod_entry_by_uid(a, uid);
    int r = e ? save_held(a, e, err) : 0;
    if (r < 0)
        e->m.unsaved = true;
    act_unlock(a);
    (void)pthread_mutex_unlock(&a->saving);
    return r;
}

int pod_entry_forget(struct actuator *a, const char *uid, struct error *err)
{
    (void)failpoint("act-before-forget");
    (void)pthread_mutex_lock(&a->saving);
    act_lock(a);
    struct pod_entry *e = pod_entry_by_uid(a, uid);
    bool gone = e && e->intent->state == ACT_GONE;
    act_unlock(a);
    int r = !e     ? error_set(err, ENOENT, "pod %s: there is none here", uid)
            : gone ? intents_delete(a->intents, uid, err)
                   : error_set(err, EBUSY, "pod %s: it is not gone yet", uid);
    act_lock(a);
    e = pod_entry_by_uid(a, uid);
    if (r == 0 && e) {
        pod_entry_drop(a, e);
        act_notify(a);
    }
    act_unlock(a);
    (void)pthread_mutex_unlock(&a->saving);
    return r;
}
