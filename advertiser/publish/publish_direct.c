/* Publishing to the extender's own listener:
 *
 *     LOOK      what does the server have of this node?  That decides the
 *               generation
 *     PUT       all slices, one by one
 *     PRUNE     delete slices that the pool no longer has
 *     IDLE      until the heartbeat, which is PUT again, byte for byte: so
 *               it also restores what the server has lost
 *     WITHDRAW  delete all slices
 *     DONE
 *
 * A failure is tried again after a back-off that doubles, with jitter.  A 409
 * means that somebody else publishes this node: at the start it is gone above
 * once, later it is left to win, and tried again slowly. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/publish/publish.h"
#include "advertiser/publish/retry.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

enum state { LOOK, PUT, PRUNE, IDLE, WITHDRAW, DONE, STATES };

struct direct_machine {
    struct publish_machine m;
    const struct publish_config *config;
    struct topo *topo;
    char hash[17];
    struct slice_epoch epoch;
    struct retry retry;

    enum state state;
    size_t index;   /* of the slice that PUT, PRUNE or WITHDRAW is at */
    size_t n_known; /* slices that the server may have of this node */
    bool sent;      /* a request waits for its answer */
    bool accepted;  /* a slice of ours may be on the server */
    bool contested; /* a 409 at the start was gone above */
    bool superseded;
    bool recreated; /* this round, the server had lost a slice */
};

static const char *const state_names[STATES] = {"look", "put",      "prune",
                                                "idle", "withdraw", "done"};

/* The moves that exist: from (row) to (bit). */
static const unsigned moves[STATES] = {
    [LOOK] = 1u << PUT | 1u << WITHDRAW | 1u << DONE,
    [PUT] = 1u << LOOK | 1u << PUT | 1u << PRUNE | 1u << IDLE | 1u << WITHDRAW |
            1u << DONE,
    [PRUNE] = 1u << PUT | 1u << IDLE | 1u << WITHDRAW | 1u << DONE,
    [IDLE] = 1u << PUT | 1u << WITHDRAW | 1u << DONE,
    [WITHDRAW] = 1u << DONE,
    [DONE] = 0,
};

static void move_to(struct direct_machine *p, enum state state, int64_t due)
{
    assert(moves[p->state] & 1u << state);
    p->state = state;
    p->m.due = due;
    p->m.stopping = state >= WITHDRAW;
}

static void take_topo(struct direct_machine *p, struct topo *topo)
{
    topo_unref(p->topo);
    p->topo = topo_ref(topo);
    slice_content_hash(topo, p->hash);
}

static void *create(const struct publish_config *config, struct topo *topo,
                    uint64_t seed, int64_t now_ms)
{
    struct direct_machine *p = xcalloc(1, sizeof *p);
    p->config = config;
    retry_init(&p->retry, config->backoff_min_ms, config->backoff_max_ms, seed);
    p->state = LOOK;
    p->m.due = now_ms;
    p->epoch.generation = 1;
    (void)snprintf(p->epoch.boot_id, sizeof p->epoch.boot_id, "%s",
                   config->boot_id);
    take_topo(p, topo);
    return p;
}

static void destroy(void *m)
{
    struct direct_machine *p = m;
    if (!p)
        return;
    topo_unref(p->topo);
    free(p);
}

/* Begin a round of PUTs. */
static void start_round(struct direct_machine *p, int64_t due)
{
    p->index = 0;
    p->recreated = false;
    move_to(p, PUT, due);
}

static void update(void *m, struct topo *topo, int64_t now_ms)
{
    struct direct_machine *p = m;
    char hash[17];
    assert(!p->sent);
    slice_content_hash(topo, hash);
    if (strcmp(hash, p->hash) == 0 || p->m.stopping)
        return;
    size_t before = slice_count(p->topo);
    if (p->n_known < before && p->state != LOOK)
        p->n_known = before;
    take_topo(p, topo);
    if (p->state == LOOK)
        return;
    /* whoever took over decides the generation now */
    if (!p->superseded)
        p->epoch.generation++;
    int64_t due = p->superseded || p->retry.backoff.failures > 0 ? p->m.due
                                                                 : now_ms;
    start_round(p, due);
    log_event(LOG_INFO, "topology-changed", "node", topo_node(topo), "content",
              p->hash, NULL);
}

static void stop(void *m, bool withdraw, int64_t now_ms)
{
    struct direct_machine *p = m;
    assert(!p->sent);
    if (p->m.stopping)
        return;
    size_t n = slice_count(p->topo);
    if (!p->accepted || p->superseded || !withdraw) {
        move_to(p, DONE, PUBLISH_NEVER);
        return;
    }
    /* the first slice goes last: while it is there the pool can be found */
    p->n_known = p->n_known > n ? p->n_known : n;
    p->index = p->n_known - 1;
    move_to(p, WITHDRAW, now_ms);
}

/* --- what to send ------------------------------------------------------- */

static bool next(void *m, int64_t now_ms, struct publish_request *ret_request)
{
    struct direct_machine *p = m;
    assert(!p->sent);
    if (now_ms < p->m.due || p->state == DONE)
        return false;
    if (p->state == IDLE)
        start_round(p, p->m.due);

    static const char *const methods[STATES] = {
        [LOOK] = "GET",
        [PUT] = "PUT",
        [PRUNE] = "DELETE",
        [WITHDRAW] = "DELETE",
    };
    size_t index = p->state == LOOK ? 0 : p->index;
    char name[SLICE_NAME_MAX + 1];
    slice_name(topo_node(p->topo), index, name);
    ret_request->method = methods[p->state];
    (void)snprintf(ret_request->path, sizeof ret_request->path,
                   PUBLISH_COLLECTION "/%s", name);
    str_reset(&ret_request->body);
    if (p->state == PUT)
        slice_encode(p->topo, &p->epoch, index, &ret_request->body);
    p->sent = true;
    return true;
}

/* --- what the answer means ---------------------------------------------- */

static void retry(struct direct_machine *p, int64_t now_ms,
                  const struct publish_answer *a)
{
    const struct retry_event event = {.node = topo_node(p->topo),
                                      .state = state_names[p->state],
                                      .status = a->status,
                                      .error = a->error};
    p->m.due = now_ms + retry_fail(&p->retry, &event);
}

static void note_success(struct direct_machine *p)
{
    retry_succeed(&p->retry, topo_node(p->topo));
}

/* The generation that our content gets beside what the server has. */
static void adopt_epoch(struct direct_machine *p, const struct slice *there)
{
    const struct slice_epoch *epoch = slice_get_epoch(there);
    p->n_known = slice_get_pool_count(there);
    if (strcmp(epoch->boot_id, p->epoch.boot_id) != 0) {
        p->epoch.generation = 1;
        return;
    }
    bool same = strcmp(slice_get_hash(there), p->hash) == 0;
    p->epoch.generation = epoch->generation + (same ? 0 : 1);
}

static void answer_look(struct direct_machine *p, int64_t now_ms,
                        const struct publish_answer *a)
{
    cleanup_with(slice) struct slice *there = NULL;
    struct error err;
    if (a->status != 200 && a->status != 404) {
        retry(p, now_ms, a);
        return;
    }
    note_success(p);
    if (a->status == 200) {
        /* what cannot be read is replaced */
        if (slice_decode(a->body, a->body_size, &there, &err) == 0)
            adopt_epoch(p, there);
        else
            log_event(LOG_WARN, "published-unreadable", "node",
                      topo_node(p->topo), "error", err.text, NULL);
    }
    start_round(p, now_ms);
}

static void answer_conflict(struct direct_machine *p, int64_t now_ms,
                            const struct publish_answer *a)
{
    note_success(p);
    if (!p->m.published && !p->contested) {
        p->contested = true;
        move_to(p, LOOK, now_ms);
        return;
    }
    if (!p->superseded)
        log_event(LOG_ERROR, "superseded", "node", topo_node(p->topo),
                  "boot_id", p->epoch.boot_id, "error",
                  a->error ? a->error : "", NULL);
    p->superseded = true;
    start_round(p, now_ms + retry_jitter(&p->retry, p->config->backoff_max_ms));
}

static void finish_round(struct direct_machine *p, int64_t now_ms)
{
    const char *event = p->superseded     ? "reinstated"
                        : !p->m.published ? "published"
                        : p->recreated    ? "reasserted"
                                          : NULL;
    char generation[24], devices[24];
    (void)snprintf(generation, sizeof generation, "%" PRId64,
                   p->epoch.generation);
    (void)snprintf(devices, sizeof devices, "%zu", topo_n_devices(p->topo));
    log_event(event ? LOG_INFO : LOG_DEBUG, event ? event : "heartbeat", "node",
              topo_node(p->topo), "generation", generation, "content", p->hash,
              "devices", devices, NULL);
    p->m.published = true;
    p->superseded = false;
    p->n_known = slice_count(p->topo);
    move_to(p, IDLE, now_ms + p->config->heartbeat_ms);
}

static void answer_put(struct direct_machine *p, int64_t now_ms,
                       const struct publish_answer *a)
{
    if (a->status == 409) {
        answer_conflict(p, now_ms, a);
        return;
    }
    if (a->status != 200 && a->status != 201) {
        p->accepted |= a->status == 0; /* it may have arrived all the same */
        retry(p, now_ms, a);
        return;
    }
    note_success(p);
    p->accepted = true;
    p->recreated |= a->status == 201;
    p->m.due = now_ms;
    if (++p->index < slice_count(p->topo))
        return;
    if (p->index < p->n_known)
        move_to(p, PRUNE, now_ms);
    else
        finish_round(p, now_ms);
}

static bool is_gone(long status)
{
    return (status >= 200 && status < 300) || status == 404;
}

static void answer_prune(struct direct_machine *p, int64_t now_ms,
                         const struct publish_answer *a)
{
    if (!is_gone(a->status)) {
        retry(p, now_ms, a);
        return;
    }
    note_success(p);
    p->m.due = now_ms;
    if (++p->index >= p->n_known)
        finish_round(p, now_ms);
}

/* Each slice is tried once: whoever stops us does not wait, and what is left
 * expires. */
static void answer_withdraw(struct direct_machine *p, int64_t now_ms,
                            const struct publish_answer *a)
{
    bool gone = is_gone(a->status);
    if (!gone && !p->m.left_slices)
        log_event(LOG_WARN, "withdraw-failed", "node", topo_node(p->topo),
                  "error", a->error ? a->error : "", NULL);
    p->m.left_slices |= !gone;
    if (a->status != 0 && p->index > 0) {
        p->index--;
        p->m.due = now_ms;
        return;
    }
    if (!p->m.left_slices)
        log_event(LOG_INFO, "withdrawn", "node", topo_node(p->topo), NULL);
    move_to(p, DONE, PUBLISH_NEVER);
}

static void answer(void *m, int64_t now_ms, const struct publish_answer *a)
{
    static void (*const by_state[STATES])(struct direct_machine *, int64_t,
                                          const struct publish_answer *) = {
        [LOOK] = answer_look,
        [PUT] = answer_put,
        [PRUNE] = answer_prune,
        [WITHDRAW] = answer_withdraw,
    };
    struct direct_machine *p = m;
    assert(p->sent);
    p->sent = false;
    by_state[p->state](p, now_ms, a);
}

const struct publish_kind publish_direct = {
    .create = create,
    .destroy = destroy,
    .update = update,
    .stop = stop,
    .next = next,
    .answer = answer,
};
