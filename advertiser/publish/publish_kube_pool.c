#include <stdlib.h>
#include <string.h>

#include "advertiser/publish/publish_kube.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

void kube_surplus_add(struct kube_machine *k, const char *name,
                      const char *version)
{
    k->surplus = xgrow(k->surplus, k->n_surplus, &k->surplus_cap,
                       sizeof *k->surplus);
    struct kube_surplus *s = &k->surplus[k->n_surplus++];
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    (void)snprintf(s->version, sizeof s->version, "%s", version);
}

void kube_surplus_clear(struct kube_machine *k)
{
    free(k->surplus);
    k->surplus = NULL;
    k->n_surplus = k->surplus_cap = 0;
}

size_t kube_slot_of(const struct kube_machine *k, const char *name)
{
    char own[SLICE_NAME_MAX + 1];
    size_t i = 0;
    for (; i < k->n; i++) {
        slice_name(topo_node(k->topo), i, own);
        if (strcmp(own, name) == 0)
            break;
    }
    return i;
}

/* A whole pool is what it should be when what it joins to is: the slices are
 * ordered as ours. */
static bool joins_to_ours(const struct kube_machine *k,
                          struct slice *const *slices)
{
    cleanup_with(topo) struct topo *topo = NULL;
    char hash[17];
    for (size_t i = 0; i < k->n; i++)
        if (!slices[i] ||
            strcmp(slice_get_epoch(slices[i])->boot_id, k->epoch.boot_id) != 0)
            return false;
    if (slice_join(slices, k->n, &topo, NULL) < 0)
        return false;
    slice_content_hash(topo, hash);
    return strcmp(hash, k->hash) == 0;
}

/* --- how DRA may give the devices ----------------------------------------- */

/* As it should be, or as much of that as the API server kept of our own. */
static bool is_given(const struct kube_given *g, const struct slice *slice)
{
    return slice_get_given(slice) == g->wanted ||
           (g->is_kept && slice_get_given(slice) == g->kept);
}

void kube_note_given(struct kube_machine *k, size_t index,
                     const struct publish_answer *a, int64_t now_ms)
{
    cleanup_with(slice) struct slice *slice = NULL;
    struct kube_given *g = &k->given[index];
    k->offered_ms = now_ms;
    g->is_kept = slice_decode(a->body, a->body_size, &slice, NULL) == 0;
    g->kept = g->is_kept ? slice_get_given(slice) : 0;
    if (!g->is_kept || g->kept == g->wanted || k->cut)
        return;
    k->cut = true;
    log_event(LOG_INFO, "slices-cut", "node", topo_node(k->topo), "text",
              "the API server leaves out who may claim our devices (taints, "
              "shares): it takes that with the feature gates DRADeviceTaints "
              "and DRAConsumableCapacity, which are on from 1.36 on",
              NULL);
}

/* What was left out is written once more: the API server may be another. */
static void offer_given(struct kube_machine *k, int64_t now_ms)
{
    if (now_ms - k->offered_ms < KUBE_OFFER_MS)
        return;
    for (size_t i = 0; i < k->n; i++)
        k->slots[i].write |= k->given[i].is_kept &&
                             k->given[i].kept != k->given[i].wanted;
}

/* --- what is there -------------------------------------------------------- */

/* Whether the slice is as this advertiser wrote it. */
static bool is_as_written(const struct kube_slot *before, const char *version)
{
    return before->known && strcmp(before->version, version) == 0;
}

/* Sort what is there into slots and surplus; `ret_slices` by slot. */
static void sort_out(struct kube_machine *k, const struct kube_slot *before,
                     const struct kube_objects_slices *there,
                     const struct kube_objects_slice **ret_items)
{
    k->highest = 0;
    k->more = there->more;
    k->clear_first = false;
    kube_surplus_clear(k);
    memset(k->slots, 0, sizeof k->slots);
    for (size_t i = 0; i < there->n; i++) {
        const struct kube_objects *o = &there->items[i].object;
        size_t at = kube_slot_of(k, o->name);
        bool absurd = o->generation >= KUBE_GENERATION_MAX &&
                      !(at < k->n && is_as_written(&before[at], o->version));
        k->clear_first |= absurd;
        if (at == k->n || absurd)
            kube_surplus_add(k, o->name, o->version);
        if (!absurd && o->generation > k->highest)
            k->highest = o->generation;
        if (at == k->n || absurd)
            continue;
        struct kube_slot *slot = &k->slots[at];
        slot->exists = true;
        slot->generation = o->generation;
        memcpy(slot->version, o->version, sizeof slot->version);
        ret_items[at] = &there->items[i];
    }
}

/* Its metadata, when the content is known to be right. */
static bool is_labelled(const struct kube_machine *k,
                        const struct kube_objects_slice *item)
{
    return item->slice && item->object.n_owners == 1 &&
           strcmp(item->object.owner, k->node_uid) == 0 &&
           strcmp(slice_get_hash(item->slice), k->hash) == 0 &&
           strcmp(slice_get_epoch(item->slice)->boot_id, k->epoch.boot_id) == 0;
}

static enum kube_verdict judge(struct kube_machine *k,
                               const struct kube_slot *before,
                               const struct kube_objects_slices *there)
{
    const struct kube_objects_slice *items[SLICE_POOL_SLICES_MAX] = {0};
    struct slice *slices[SLICE_POOL_SLICES_MAX] = {0};
    sort_out(k, before, there, items);
    if (k->clear_first)
        return KUBE_CLEAR;

    for (size_t i = 0; i < k->n; i++)
        slices[i] = items[i] ? items[i]->slice : NULL;
    bool joined = joins_to_ours(k, slices);
    size_t n_kept = 0;
    for (size_t i = 0; i < k->n; i++) {
        struct kube_slot *slot = &k->slots[i];
        if (!slot->exists || slot->generation != k->highest)
            continue;
        slot->known = (joined && is_given(&k->given[i], slices[i])) ||
                      is_as_written(&before[i], slot->version);
        if (!slot->known)
            return KUBE_RENEW;
        n_kept++;
    }
    if (n_kept == 0)
        return KUBE_RENEW;
    k->epoch.generation = k->highest;
    if (k->used < k->highest)
        k->used = k->highest;
    for (size_t i = 0; i < k->n; i++)
        k->slots[i].write = !k->slots[i].known || !is_labelled(k, items[i]);
    return KUBE_KEEP;
}

/* Is anything to be written or deleted? */
static bool has_work(const struct kube_machine *k)
{
    bool work = k->n_surplus > 0;
    for (size_t i = 0; i < k->n; i++)
        work |= k->slots[i].write;
    return work;
}

enum kube_verdict kube_judge(struct kube_machine *k,
                             const struct kube_objects_slices *there,
                             int64_t now_ms)
{
    struct kube_slot before[SLICE_POOL_SLICES_MAX];
    memcpy(before, k->slots, sizeof before);
    enum kube_verdict verdict = judge(k, before, there);
    if (k->settled && (verdict != KUBE_KEEP || has_work(k)))
        kube_tell_change(k, before, there, now_ms);
    if (verdict == KUBE_KEEP)
        offer_given(k, now_ms);
    return verdict;
}

void kube_rewrite(struct kube_machine *k)
{
    char name[SLICE_NAME_MAX + 1];
    for (size_t i = 0; i < SLICE_POOL_SLICES_MAX; i++) {
        struct kube_slot *slot = &k->slots[i];
        slot->known = false;
        slot->write = i < k->n;
        if (i < k->n || !slot->exists)
            continue;
        slice_name(topo_node(k->topo), i, name);
        kube_surplus_add(k, name, slot->version);
        slot->exists = false;
    }
}
