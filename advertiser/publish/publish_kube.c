/* Publishing to a Kubernetes API server:
 *
 *     NODE      read the Node: its uid owns what we write
 *     LEASE     read the node's Lease, heartbeat and fence in one
 *     TAKE      write it: the newest start wins
 *     LIST      read the slices of this node; what is wrong with them?
 *     CLAIM     write a higher generation into the Lease, before any slice
 *     WRITE     create and update slices
 *     PRUNE     delete those that do not belong to the pool
 *     TELL      annotate the Node, which wakes the pods that were refused;
 *               a moment later, or the extender would refuse them again
 *     BEAT      renew the Lease
 *     IDLE      until the next TELL, BEAT, or check (NODE and LIST)
 *     RELEASE   renew the Lease once more: is it still ours?
 *     WITHDRAW  delete the slices, then the Lease
 *     DONE
 *
 * A generation is claimed in the Lease before it is written, and the Lease is
 * only ever written over the version that was read.  So no generation is
 * written by two advertisers, nor with two contents by one, and whoever takes
 * the slices of the highest generation, when there are as many as each of
 * them says, never joins what does not belong together: the first slice of a
 * new generation makes the pool incomplete (or, being the only one, whole),
 * the last one completes it, and what is left of older ones does not count.
 *
 * The Lease is renewed only while the slices are as they should be, as far as
 * we know: that is what a heartbeat says.  Who finds another holder in it
 * stops writing, and takes over when it has not been renewed for
 * KUBE_PATIENCE times its duration. */
#include "advertiser/publish/publish_kube.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"

const char *kube_state_name(enum kube_state state)
{
    static const char *const names[KUBE_STATES] = {
        "node", "lease", "take", "list",    "claim",    "write", "prune",
        "tell", "beat",  "idle", "release", "withdraw", "done"};
    return (unsigned)state < KUBE_STATES ? names[state] : "?";
}

void kube_move_to(struct kube_machine *k, enum kube_state state, int64_t due)
{
    k->state = state;
    k->m.due = due;
}

void kube_end(struct kube_machine *k)
{
    kube_move_to(k, KUBE_DONE, PUBLISH_NEVER);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* While the Lease cannot be renewed nothing else is tried. */
static bool is_failing(const struct kube_machine *k)
{
    return k->retries[RETRY_MAIN].backoff.failures > 0;
}

/* --- its life ----------------------------------------------------------- */

static void take_topo(struct kube_machine *k, struct topo *topo)
{
    topo_unref(k->topo);
    k->topo = topo_ref(topo);
    k->n = slice_count(topo);
    slice_content_hash(topo, k->hash);
    for (size_t i = 0; i < SLICE_POOL_SLICES_MAX; i++)
        k->slots[i].known = false;
    for (size_t i = 0; i < k->n; i++)
        k->given[i] = (struct kube_given){.wanted = slice_given(topo, i)};
}

/* A card that has no room to say that it is lost is tainted all the same. */
static bool is_published(const struct kube_machine *k, const struct topo *topo)
{
    char hash[17];
    slice_content_hash(topo, hash);
    if (strcmp(hash, k->hash) != 0)
        return false;
    for (size_t i = 0; i < k->n; i++)
        if (slice_given(topo, i) != k->given[i].wanted)
            return false;
    return true;
}

static void *create(const struct publish_config *config, struct topo *topo,
                    uint64_t seed, int64_t now_ms)
{
    struct kube_machine *k = xcalloc(1, sizeof *k);
    k->config = config;
    for (unsigned i = 0; i < RETRIES; i++)
        retry_init(&k->retries[i], config->backoff_min_ms,
                   config->backoff_max_ms, seed + i);
    k->epoch.generation = 1;
    (void)snprintf(k->epoch.boot_id, sizeof k->epoch.boot_id, "%s",
                   config->boot_id);
    (void)snprintf(k->holder, sizeof k->holder, "%s/%s", config->boot_id,
                   config->instance);
    take_topo(k, topo);
    k->must_tell = true;
    k->beat_due = k->check_due = k->tell_due = PUBLISH_NEVER;
    kube_move_to(k, KUBE_NODE, now_ms);
    return k;
}

static void destroy(void *m)
{
    struct kube_machine *k = m;
    if (!k)
        return;
    topo_unref(k->topo);
    kube_surplus_clear(k);
    free(k);
}

/* The slices, as they have to be from now on, get a generation of their own;
 * it is claimed first, unless one is left over. */
void kube_begin_generation(struct kube_machine *k, int64_t due)
{
    k->settled = false;
    k->must_tell = true;
    if (k->claimed <= k->highest || k->claimed <= k->used) {
        kube_move_to(k, KUBE_CLAIM, due);
        return;
    }
    k->epoch.generation = k->used = k->claimed;
    kube_rewrite(k);
    k->index = 0;
    kube_move_to(k, KUBE_WRITE, due);
}

static void update(void *m, struct topo *topo, int64_t now_ms)
{
    struct kube_machine *k = m;
    assert(!k->sent);
    if (k->m.stopping || is_published(k, topo))
        return;
    take_topo(k, topo);
    log_event(LOG_INFO, "topology-changed", "node", topo_node(k->topo),
              "content", k->hash, NULL);
    if (!k->settled && k->state <= KUBE_LIST)
        return; /* LIST will find what has to be written */
    kube_begin_generation(k, is_failing(k) ? k->m.due : now_ms);
}

static void stop(void *m, bool withdraw, int64_t now_ms)
{
    struct kube_machine *k = m;
    assert(!k->sent);
    if (k->m.stopping)
        return;
    k->m.stopping = true;
    if (withdraw && k->held)
        kube_move_to(k, KUBE_RELEASE, now_ms);
    else
        kube_end(k);
}

/* --- what to do next ---------------------------------------------------- */

void kube_go_idle(struct kube_machine *k)
{
    int64_t at = k->beat_due;
    if (!is_failing(k))
        at = least(at, least(k->check_due, k->tell_due));
    kube_move_to(k, KUBE_IDLE, at);
}

/* The Lease was renewed by the call that has just been answered. */
void kube_note_renewal(struct kube_machine *k, int64_t now_ms)
{
    int64_t beat = k->config->heartbeat_ms;
    if (k->m.published && k->renewed_ms &&
        k->begun_ms - k->renewed_ms > beat + beat / 2) {
        /* the node may have been given up meanwhile, and pods refused */
        log_event(LOG_INFO, "heartbeat-resumed", "node", topo_node(k->topo),
                  NULL);
        k->must_tell = true;
        if (k->settled)
            k->tell_due = now_ms + KUBE_TELL_MS;
    }
    k->renewed_ms = k->begun_ms;
    /* many that begin or come back together are spread evenly; then each
     * keeps its pace */
    if (k->beat_due == PUBLISH_NEVER || k->beat_due + beat <= now_ms)
        k->beat_due = k->begun_ms +
                      retry_random(&k->retries[RETRY_MAIN], beat) + 1;
    else if (k->beat_due <= now_ms)
        k->beat_due += beat;
}

void kube_settle(struct kube_machine *k, int64_t now_ms)
{
    bool wrote = k->wrote;
    if (k->wrote || !k->m.published) {
        char generation[24], devices[24];
        (void)snprintf(generation, sizeof generation, "%" PRId64,
                       k->epoch.generation);
        (void)snprintf(devices, sizeof devices, "%zu", topo_n_devices(k->topo));
        log_event(LOG_INFO, "published", "node", topo_node(k->topo),
                  "generation", generation, "content", k->hash, "devices",
                  devices, NULL);
    }
    k->settled = k->m.published = true;
    k->wrote = false;
    retry_succeed(&k->retries[RETRY_CHECK], topo_node(k->topo));
    k->check_due = now_ms + retry_jitter(&k->retries[RETRY_CHECK],
                                         k->was_another
                                             ? k->config->heartbeat_ms
                                             : k->config->check_ms);
    k->was_another = false;
    if (k->noticed)
        kube_check_soon(k, now_ms);
    k->noticed = false;
    if (k->must_tell && (wrote || k->tell_due == PUBLISH_NEVER))
        k->tell_due = now_ms + KUBE_TELL_MS;
    kube_go_idle(k);
}

/* What is left to do after LIST, or after a part of it was done. */
void kube_proceed(struct kube_machine *k, int64_t now_ms)
{
    for (size_t i = 0; i < k->n && !k->clear_first; i++) {
        if (!k->slots[i].write)
            continue;
        k->settled = false;
        k->must_tell = true;
        k->index = i;
        kube_move_to(k, KUBE_WRITE, now_ms);
        return;
    }
    if (k->n_surplus > 0) {
        kube_move_to(k, KUBE_PRUNE, now_ms);
    } else if (k->clear_first || k->more) {
        k->clear_first = k->more = false;
        kube_move_to(k, KUBE_LIST, now_ms);
    } else {
        kube_settle(k, now_ms);
    }
}

/* Of what is due, the wake-up first. */
static enum kube_state choose(const struct kube_machine *k, int64_t now_ms)
{
    if (k->tell_due <= now_ms && !is_failing(k))
        return KUBE_TELL;
    return k->beat_due <= now_ms ? KUBE_BEAT : KUBE_NODE;
}

static bool next(void *m, int64_t now_ms, struct publish_request *ret_request)
{
    struct kube_machine *k = m;
    assert(!k->sent);
    if (k->state == KUBE_DONE || now_ms < k->m.due)
        return false;
    if (k->state == KUBE_IDLE)
        kube_move_to(k, choose(k, now_ms), now_ms);
    k->sent = true;
    k->begun_ms = now_ms;
    kube_request(k, ret_request);
    return true;
}

const struct publish_kind publish_kube = {
    .create = create,
    .destroy = destroy,
    .update = update,
    .notice = kube_notice,
    .stop = stop,
    .next = next,
    .answer = kube_answer,
};
