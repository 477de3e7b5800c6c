/* What others do to the slices: noticed by a watch, put right at once by way
 * of a check, and ever less often when somebody does it again and again. */
#include <assert.h>
#include <string.h>

#include "advertiser/publish/publish_kube.h"
#include "lib/io/log.h"

enum {
    QUIET_CHECKS = 5,  /* times check_ms without a change: the next is new */
    CONTESTED_MIN = 4, /* checks since then: somebody fights with us */
};

static bool is_quiet(const struct kube_machine *k, int64_t since,
                     int64_t now_ms)
{
    return since == 0 || now_ms - since > QUIET_CHECKS * k->config->check_ms;
}

/* --- what is noticed ---------------------------------------------------- */

static bool is_surplus(const struct kube_machine *k,
                       const struct publish_notice *notice)
{
    for (size_t i = 0; i < k->n_surplus; i++)
        if (strcmp(k->surplus[i].name, notice->name) == 0 &&
            strcmp(k->surplus[i].version, notice->version) == 0)
            return true;
    return false;
}

/* Is it as we know it, from our own hand or from the last LIST?  A version
 * that we have written over since then is news, but only costs a check. */
static bool is_known(const struct kube_machine *k,
                     const struct publish_notice *notice)
{
    if (!*notice->name)
        return false;
    size_t at = kube_slot_of(k, notice->name);
    if (at == k->n)
        return notice->gone || is_surplus(k, notice);
    const struct kube_slot *slot = &k->slots[at];
    return notice->gone
               ? !slot->exists
               : slot->exists && strcmp(slot->version, notice->version) == 0;
}

/* One check for all that is noticed until then. */
void kube_check_soon(struct kube_machine *k, int64_t now_ms)
{
    struct backoff *b = &k->retries[RETRY_HEAL].backoff;
    int64_t at = now_ms + KUBE_HEAL_MS;
    if (at < k->calm_until)
        at = k->calm_until;
    if (at >= k->check_due)
        return;
    k->check_due = at;
    if (is_quiet(k, k->noticed_ms, now_ms))
        backoff_succeed(b);
    k->noticed_ms = now_ms;
    k->calm_until = at + backoff_fail(b);
}

void kube_notice(void *m, const struct publish_notice *notice, int64_t now_ms)
{
    struct kube_machine *k = m;
    assert(!k->sent);
    if (k->m.stopping || k->state <= KUBE_LIST || is_known(k, notice))
        return; /* or a LIST that is still to be sent will show it */
    if (k->state != KUBE_IDLE) {
        k->noticed = true;
        return;
    }
    kube_check_soon(k, now_ms);
    kube_go_idle(k);
}

/* --- what is said of it ------------------------------------------------- */

struct change {
    unsigned deleted, edited, added;
    const char *by; /* of one that was edited or added */
};

static void find_change(const struct kube_machine *k,
                        const struct kube_slot *before,
                        const struct kube_objects_slices *there,
                        struct change *ret_change)
{
    struct change c = {.by = ""};
    unsigned n_before = 0, n_ours = 0;
    for (size_t i = 0; i < there->n; i++) {
        const struct kube_objects *o = &there->items[i].object;
        size_t at = kube_slot_of(k, o->name);
        bool ours = at < k->n && before[at].exists;
        n_ours += ours;
        if (ours && strcmp(before[at].version, o->version) == 0)
            continue;
        c.edited += ours;
        c.added += !ours;
        if (*o->editor)
            c.by = o->editor;
    }
    for (size_t i = 0; i < k->n; i++)
        n_before += before[i].exists;
    c.deleted = n_before - n_ours;
    *ret_change = c;
}

static void log_change(const struct kube_machine *k, const struct change *c)
{
    char deleted[16], edited[16], added[16];
    bool by_hand = c->edited || c->added;
    (void)snprintf(deleted, sizeof deleted, "%u", c->deleted);
    (void)snprintf(edited, sizeof edited, "%u", c->edited);
    (void)snprintf(added, sizeof added, "%u", c->added);
    log_event(by_hand ? LOG_WARN : LOG_INFO, "slices-changed", "node",
              topo_node(k->topo), "deleted", deleted, "edited", edited, "added",
              added, by_hand ? "by" : "hint",
              by_hand ? c->by : "a kubelet deletes them when it starts", NULL);
}

void kube_tell_change(struct kube_machine *k, const struct kube_slot *before,
                      const struct kube_objects_slices *there, int64_t now_ms)
{
    struct change c;
    find_change(k, before, there, &c);
    if (is_quiet(k, k->healed_ms, now_ms)) {
        k->contested = false;
        log_change(k, &c);
    }
    k->healed_ms = now_ms;
    if (k->contested || k->retries[RETRY_HEAL].backoff.failures < CONTESTED_MIN)
        return;
    k->contested = true;
    log_event(LOG_WARN, "slices-contested", "node", topo_node(k->topo), "by",
              c.by, "text",
              "somebody changes our slices again and again; they are put "
              "right as often as the heartbeat",
              NULL);
}
