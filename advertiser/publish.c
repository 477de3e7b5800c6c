#include "advertiser/publish.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/mem.h"
#include "model/io/log.h"

#define COLLECTION "/apis/resource.k8s.io/v1/resourceslices/"

struct publisher {
    const struct publish_config *config;
    struct topo *topo;
    char hash[17];
    struct slice_epoch epoch;
    uint64_t random;

    enum publish_state state;
    size_t index;   /* of the slice that PUT, PRUNE or WITHDRAW is at */
    size_t n_known; /* slices that the server may have of this node */
    int64_t due;
    unsigned failures;   /* in a row */
    uint64_t last_error; /* hash of the text last logged */
    bool sent;           /* a request waits for its answer */
    bool accepted;       /* a slice of ours may be on the server */
    bool published;      /* all slices were accepted at least once */
    bool contested;      /* a 409 at the start was gone above */
    bool superseded;
    bool recreated; /* this round, the server had lost a slice */
    bool left_slices;
};

const char *publish_state_name(enum publish_state state)
{
    static const char *const names[PUBLISH_STATES] = {
        "look", "put", "prune", "idle", "withdraw", "done"};
    return (unsigned)state < PUBLISH_STATES ? names[state] : "?";
}

/* The moves that exist: from (row) to (bit). */
static const unsigned moves[PUBLISH_STATES] = {
    [PUBLISH_LOOK] = 1u << PUBLISH_PUT | 1u << PUBLISH_WITHDRAW |
                     1u << PUBLISH_DONE,
    [PUBLISH_PUT] = 1u << PUBLISH_LOOK | 1u << PUBLISH_PUT |
                    1u << PUBLISH_PRUNE | 1u << PUBLISH_IDLE |
                    1u << PUBLISH_WITHDRAW | 1u << PUBLISH_DONE,
    [PUBLISH_PRUNE] = 1u << PUBLISH_PUT | 1u << PUBLISH_IDLE |
                      1u << PUBLISH_WITHDRAW | 1u << PUBLISH_DONE,
    [PUBLISH_IDLE] = 1u << PUBLISH_PUT | 1u << PUBLISH_WITHDRAW |
                     1u << PUBLISH_DONE,
    [PUBLISH_WITHDRAW] = 1u << PUBLISH_DONE,
    [PUBLISH_DONE] = 0,
};

static void move_to(struct publisher *p, enum publish_state state, int64_t due)
{
    assert(moves[p->state] & 1u << state);
    p->state = state;
    p->due = due;
}

static uint64_t random_next(struct publisher *p)
{
    p->random += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(p->random, UINT64_C(0xd6e8feb86659fd93));
}

/* Between half of `ms` and all of it, so that many advertisers that failed
 * together do not come back together. */
static int64_t jitter(struct publisher *p, int64_t ms)
{
    int64_t half = ms / 2;
    return ms - (int64_t)(random_next(p) % (uint64_t)(half + 1));
}

static void take_topo(struct publisher *p, struct topo *topo)
{
    topo_unref(p->topo);
    p->topo = topo_ref(topo);
    slice_content_hash(topo, p->hash);
}

struct publisher *publisher_create(const struct publish_config *config,
                                   struct topo *topo, uint64_t seed,
                                   int64_t now_ms)
{
    struct publisher *p = xcalloc(1, sizeof *p);
    p->config = config;
    p->random = seed;
    p->state = PUBLISH_LOOK;
    p->due = now_ms;
    p->epoch.generation = 1;
    (void)snprintf(p->epoch.boot_id, sizeof p->epoch.boot_id, "%s",
                   config->boot_id);
    take_topo(p, topo);
    return p;
}

void publisher_destroy(struct publisher *p)
{
    if (!p)
        return;
    topo_unref(p->topo);
    free(p);
}

/* Begin a round of PUTs. */
static void start_round(struct publisher *p, int64_t due)
{
    p->index = 0;
    p->recreated = false;
    move_to(p, PUBLISH_PUT, due);
}

void publisher_update(struct publisher *p, struct topo *topo, int64_t now_ms)
{
    char hash[17];
    assert(!p->sent);
    slice_content_hash(topo, hash);
    if (strcmp(hash, p->hash) == 0 || p->state >= PUBLISH_WITHDRAW)
        return;
    size_t before = slice_count(p->topo);
    if (p->n_known < before && p->state != PUBLISH_LOOK)
        p->n_known = before;
    take_topo(p, topo);
    if (p->state == PUBLISH_LOOK)
        return;
    /* whoever took over decides the generation now */
    if (!p->superseded)
        p->epoch.generation++;
    int64_t due = p->superseded || p->failures > 0 ? p->due : now_ms;
    start_round(p, due);
    log_event(LOG_INFO, "topology-changed", "node", topo_node(topo), "content",
              p->hash, NULL);
}

void publisher_stop(struct publisher *p, bool withdraw, int64_t now_ms)
{
    assert(!p->sent);
    if (p->state >= PUBLISH_WITHDRAW)
        return;
    size_t n = slice_count(p->topo);
    if (!p->accepted || p->superseded || !withdraw) {
        move_to(p, PUBLISH_DONE, PUBLISH_NEVER);
        return;
    }
    /* the first slice goes last: while it is there the pool can be found */
    p->n_known = p->n_known > n ? p->n_known : n;
    p->index = p->n_known - 1;
    move_to(p, PUBLISH_WITHDRAW, now_ms);
}

int64_t publisher_due(const struct publisher *p)
{
    return p->due;
}

/* --- what to send ---------------------------------------------------------- */

bool publisher_next(struct publisher *p, int64_t now_ms,
                    struct publish_request *ret_request)
{
    assert(!p->sent);
    if (now_ms < p->due || p->state == PUBLISH_DONE)
        return false;
    if (p->state == PUBLISH_IDLE)
        start_round(p, p->due);

    static const char *const methods[PUBLISH_STATES] = {
        [PUBLISH_LOOK] = "GET",
        [PUBLISH_PUT] = "PUT",
        [PUBLISH_PRUNE] = "DELETE",
        [PUBLISH_WITHDRAW] = "DELETE",
    };
    size_t index = p->state == PUBLISH_LOOK ? 0 : p->index;
    char name[SLICE_NAME_MAX + 1];
    slice_name(topo_node(p->topo), index, name);
    ret_request->method = methods[p->state];
    (void)snprintf(ret_request->path, sizeof ret_request->path, "%s%s",
                   COLLECTION, name);
    str_reset(&ret_request->body);
    if (p->state == PUBLISH_PUT)
        slice_encode(p->topo, &p->epoch, index, &ret_request->body);
    p->sent = true;
    return true;
}

/* --- what the answer means --------------------------------------------------- */

static void retry(struct publisher *p, int64_t now_ms,
                  const struct publish_answer *a)
{
    int64_t ms = p->config->backoff_min_ms;
    for (unsigned i = 0; i < p->failures && ms < p->config->backoff_max_ms; i++)
        ms *= 2;
    if (ms > p->config->backoff_max_ms)
        ms = p->config->backoff_max_ms;
    ms = jitter(p, ms);
    p->failures++;
    p->due = now_ms + ms;

    /* an outage is one event, not one at each try */
    const char *text = a->error ? a->error : "";
    uint64_t error = hash_bytes(text, strlen(text)) ^ (uint64_t)a->status;
    if (p->failures > 1 && error == p->last_error)
        return;
    p->last_error = error;
    char status[24], wait[24];
    (void)snprintf(status, sizeof status, "%ld", a->status);
    (void)snprintf(wait, sizeof wait, "%" PRId64, ms);
    log_event(LOG_WARN, "publish-failed", "node", topo_node(p->topo), "state",
              publish_state_name(p->state), "status", status, "error", text,
              "retry_ms", wait, NULL);
}

static void note_success(struct publisher *p)
{
    if (p->failures > 0) {
        char n[24];
        (void)snprintf(n, sizeof n, "%u", p->failures);
        log_event(LOG_INFO, "publish-recovered", "node", topo_node(p->topo),
                  "failures", n, NULL);
    }
    p->failures = 0;
}

/* The generation that our content gets beside what the server has. */
static void adopt_epoch(struct publisher *p, const struct slice *there)
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

static void answer_look(struct publisher *p, int64_t now_ms,
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

static void answer_conflict(struct publisher *p, int64_t now_ms,
                            const struct publish_answer *a)
{
    note_success(p);
    if (!p->published && !p->contested) {
        p->contested = true;
        move_to(p, PUBLISH_LOOK, now_ms);
        return;
    }
    if (!p->superseded)
        log_event(LOG_ERROR, "superseded", "node", topo_node(p->topo),
                  "boot_id", p->epoch.boot_id, "error",
                  a->error ? a->error : "", NULL);
    p->superseded = true;
    start_round(p, now_ms + jitter(p, p->config->backoff_max_ms));
}

static void finish_round(struct publisher *p, int64_t now_ms)
{
    const char *event = p->superseded   ? "reinstated"
                        : !p->published ? "published"
                        : p->recreated  ? "reasserted"
                                        : NULL;
    char generation[24], devices[24];
    (void)snprintf(generation, sizeof generation, "%" PRId64,
                   p->epoch.generation);
    (void)snprintf(devices, sizeof devices, "%zu", topo_n_devices(p->topo));
    log_event(event ? LOG_INFO : LOG_DEBUG, event ? event : "heartbeat", "node",
              topo_node(p->topo), "generation", generation, "content", p->hash,
              "devices", devices, NULL);
    p->published = true;
    p->superseded = false;
    p->n_known = slice_count(p->topo);
    move_to(p, PUBLISH_IDLE, now_ms + p->config->heartbeat_ms);
}

static void answer_put(struct publisher *p, int64_t now_ms,
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
    p->due = now_ms;
    if (++p->index < slice_count(p->topo))
        return;
    if (p->index < p->n_known)
        move_to(p, PUBLISH_PRUNE, now_ms);
    else
        finish_round(p, now_ms);
}

static bool is_gone(long status)
{
    return (status >= 200 && status < 300) || status == 404;
}

static void answer_prune(struct publisher *p, int64_t now_ms,
                         const struct publish_answer *a)
{
    if (!is_gone(a->status)) {
        retry(p, now_ms, a);
        return;
    }
    note_success(p);
    p->due = now_ms;
    if (++p->index >= p->n_known)
        finish_round(p, now_ms);
}

/* Each slice is tried once: whoever stops us does not wait, and what is left
 * expires. */
static void answer_withdraw(struct publisher *p, int64_t now_ms,
                            const struct publish_answer *a)
{
    bool gone = is_gone(a->status);
    if (!gone && !p->left_slices)
        log_event(LOG_WARN, "withdraw-failed", "node", topo_node(p->topo),
                  "error", a->error ? a->error : "", NULL);
    p->left_slices |= !gone;
    if (a->status != 0 && p->index > 0) {
        p->index--;
        p->due = now_ms;
        return;
    }
    if (!p->left_slices)
        log_event(LOG_INFO, "withdrawn", "node", topo_node(p->topo), NULL);
    move_to(p, PUBLISH_DONE, PUBLISH_NEVER);
}

void publisher_answer(struct publisher *p, int64_t now_ms,
                      const struct publish_answer *answer)
{
    assert(p->sent);
    p->sent = false;
    switch (p->state) {
    case PUBLISH_LOOK:
        answer_look(p, now_ms, answer);
        return;
    case PUBLISH_PUT:
        answer_put(p, now_ms, answer);
        return;
    case PUBLISH_PRUNE:
        answer_prune(p, now_ms, answer);
        return;
    case PUBLISH_WITHDRAW:
        answer_withdraw(p, now_ms, answer);
        return;
    case PUBLISH_IDLE:
    case PUBLISH_DONE:
    case PUBLISH_STATES:
        break; /* nothing is sent in these */
    }
}

/* --- what others may know ------------------------------------------------------ */

enum publish_state publisher_state(const struct publisher *p)
{
    return p->state;
}

const struct slice_epoch *publisher_epoch(const struct publisher *p)
{
    return &p->epoch;
}

const char *publisher_node(const struct publisher *p)
{
    return topo_node(p->topo);
}

bool publisher_is_published(const struct publisher *p)
{
    return p->published;
}

bool publisher_is_superseded(const struct publisher *p)
{
    return p->superseded;
}

bool publisher_left_slices(const struct publisher *p)
{
    return p->left_slices;
}
