#include <assert.h>
#include <string.h>

#include "advertiser/publish/publish_kube.h"
#include "lib/io/log.h"

enum { CONFLICTS_MAX = 3 }; /* in a row, before there is a pause */

static enum kube_retry retry_of(const struct kube_machine *k)
{
    switch (k->state) {
    case KUBE_NODE:
    case KUBE_LIST:
        return k->settled ? RETRY_CHECK : RETRY_MAIN;
    case KUBE_PRUNE:
        return k->clear_first ? RETRY_MAIN : RETRY_PRUNE;
    case KUBE_TELL:
        return RETRY_TELL;
    default:
        return RETRY_MAIN;
    }
}

static int64_t note_failure(struct kube_machine *k,
                            const struct publish_answer *a)
{
    cleanup_str struct str text = STR_INIT(ERROR_TEXT_MAX);
    const struct retry_event event = {
        .node = topo_node(k->topo),
        .state = kube_state_name(k->state),
        .hint = kube_hint(k, a, &text),
        .status = a->status,
        .error = a->error,
    };
    return retry_fail(&k->retries[retry_of(k)], &event);
}

/* Where something else goes on meanwhile, it does. */
static void fail(struct kube_machine *k, int64_t now_ms,
                 const struct publish_answer *a)
{
    enum kube_retry which = retry_of(k);
    int64_t again = now_ms + note_failure(k, a);
    if (k->m.stopping) {
        k->m.left_slices = true;
        kube_end(k);
        return;
    }
    if (which == RETRY_PRUNE)
        kube_settle(k, now_ms);
    switch (which) {
    case RETRY_CHECK:
    case RETRY_PRUNE:
        k->check_due = again;
        kube_go_idle(k);
        return;
    case RETRY_TELL:
        k->tell_due = again;
        kube_go_idle(k);
        return;
    case RETRY_MAIN:
    case RETRY_HEAL:
    case RETRIES:
        break;
    }
    if (k->state == KUBE_BEAT) {
        k->beat_due = again;
        kube_go_idle(k);
    } else {
        k->m.due = again;
    }
}

/* An answer that should be an object and cannot be read. */
static void fail_unreadable(struct kube_machine *k, int64_t now_ms,
                            const struct publish_answer *a,
                            const struct error *err)
{
    struct publish_answer bad = *a;
    bad.error = err->text;
    fail(k, now_ms, &bad);
}

static void note_success(struct kube_machine *k)
{
    if (retry_of(k) != RETRY_CHECK) /* it ends with kube_settle() */
        retry_succeed(&k->retries[retry_of(k)], topo_node(k->topo));
}

/* Something was written by somebody else, or by a call of ours whose answer
 * was lost: look again. */
static void look_again(struct kube_machine *k, enum kube_state state,
                       int64_t now_ms)
{
    int64_t wait = 0;
    if (++k->conflicts > CONFLICTS_MAX)
        wait = retry_jitter(&k->retries[RETRY_MAIN], k->config->backoff_max_ms);
    if (k->conflicts == CONFLICTS_MAX + 1)
        log_event(LOG_WARN, "conflicts", "node", topo_node(k->topo), "state",
                  kube_state_name(k->state), NULL);
    k->settled = false;
    kube_move_to(k, state, now_ms + wait);
}

static void lose_lease(struct kube_machine *k, int64_t now_ms)
{
    k->held = false;
    k->must_tell = true;
    look_again(k, KUBE_NODE, now_ms);
}

static bool is_ok(const struct publish_answer *a)
{
    return a->status >= 200 && a->status < 300;
}

/* Did the call fail?  Then what comes next is decided. */
static bool failed(struct kube_machine *k, int64_t now_ms,
                   const struct publish_answer *a)
{
    if (is_ok(a))
        return false;
    fail(k, now_ms, a);
    return true;
}

static void answer_node(struct kube_machine *k, int64_t now_ms,
                        const struct publish_answer *a)
{
    struct kube_objects node;
    struct error err;
    if (a->status == 404)
        k->settled = k->held = false; /* the slices go with the Node */
    if (failed(k, now_ms, a))
        return;
    if (kube_objects_read(a->body, a->body_size, &node, &err) < 0) {
        fail_unreadable(k, now_ms, a, &err);
        return;
    }
    note_success(k);
    bool replaced = *k->node_uid && strcmp(k->node_uid, node.uid) != 0;
    memcpy(k->node_uid, node.uid, sizeof k->node_uid);
    if (strcmp(node.topology, k->hash) != 0)
        k->must_tell = true;
    if (replaced) {
        log_event(LOG_INFO, "node-replaced", "node", topo_node(k->topo), "uid",
                  k->node_uid, NULL);
        k->settled = false;
    }
    kube_move_to(k,
                 !k->held   ? KUBE_LEASE
                 : replaced ? KUBE_TAKE
                            : KUBE_LIST,
                 now_ms);
}

static void begin_withdrawal(struct kube_machine *k, int64_t now_ms)
{
    k->index = k->n;
    for (size_t i = k->n; i < SLICE_POOL_SLICES_MAX; i++)
        if (k->slots[i].exists)
            k->index = i + 1;
    kube_move_to(k, KUBE_WITHDRAW, now_ms);
}

/* Somebody else holds the Lease: is it free again? */
static void wait_for_lease(struct kube_machine *k, bool changed, int64_t now_ms)
{
    if (!k->superseded)
        log_event(LOG_ERROR, "superseded", "node", topo_node(k->topo),
                  "boot_id", k->epoch.boot_id, "holder", k->lease.holder, NULL);
    if (!k->superseded || changed)
        k->seen_ms = now_ms;
    k->superseded = true;
    k->held = k->settled = false;
    int64_t duration = (int64_t)k->lease.duration_s * 1000;
    if (duration < k->config->heartbeat_ms)
        duration = k->config->heartbeat_ms;
    k->was_another = true;
    int64_t free_at = k->seen_ms + KUBE_PATIENCE * duration;
    if (!*k->lease.holder || now_ms >= free_at)
        kube_move_to(k, KUBE_TAKE, now_ms);
    else /* by way of the Node, which may be another one by then */
        kube_move_to(k, KUBE_NODE,
                     free_at < now_ms + duration ? free_at : now_ms + duration);
}

static void note_held(struct kube_machine *k)
{
    if (k->superseded)
        log_event(LOG_INFO, "reinstated", "node", topo_node(k->topo), NULL);
    k->held = true;
    k->superseded = false;
}

static void answer_lease(struct kube_machine *k, int64_t now_ms,
                         const struct publish_answer *a)
{
    struct kube_lease there = {0};
    struct error err;
    if (a->status != 404) {
        if (failed(k, now_ms, a))
            return;
        if (kube_lease_read(a->body, a->body_size, &there, &err) < 0) {
            fail_unreadable(k, now_ms, a, &err);
            return;
        }
    }
    note_success(k);
    bool changed = strcmp(there.resource_version, k->lease.resource_version) !=
                   0;
    bool ours = strcmp(there.holder, k->holder) == 0;
    k->lease = there;
    if (there.generation > k->claimed && there.generation < KUBE_GENERATION_MAX)
        k->claimed = there.generation;
    if (k->m.stopping) {
        if (ours)
            begin_withdrawal(k, now_ms);
        else
            kube_end(k);
    } else if (ours) {
        note_held(k);
        /* Whose answer to TAKE was lost has not renewed it yet. */
        if (k->beat_due == PUBLISH_NEVER)
            k->beat_due = now_ms;
        kube_move_to(k, KUBE_LIST, now_ms);
    } else if (a->status == 404 && k->held) {
        lose_lease(k, now_ms); /* the Node may be gone, too, or another */
    } else if (a->status == 404 || (!k->held && !k->superseded)) {
        /* the newest start wins */
        k->was_another = *there.holder != '\0';
        kube_move_to(k, KUBE_TAKE, now_ms);
    } else {
        wait_for_lease(k, changed, now_ms);
    }
}

/* The Lease was written: only its version and uid are news. */
static bool take_written(struct kube_machine *k, int64_t now_ms,
                         const struct publish_answer *a)
{
    struct kube_objects object;
    struct error err;
    if (kube_objects_read(a->body, a->body_size, &object, &err) < 0) {
        look_again(k, KUBE_LEASE, now_ms);
        return false;
    }
    (void)snprintf(k->lease.resource_version, sizeof k->lease.resource_version,
                   "%s", object.version);
    /* an update of a Lease that is gone would make it, but for its uid */
    (void)snprintf(k->lease.uid, sizeof k->lease.uid, "%s", object.uid);
    note_success(k);
    return true;
}

static void answer_take(struct kube_machine *k, int64_t now_ms,
                        const struct publish_answer *a)
{
    bool fresh = !*k->lease.resource_version;
    if (a->status == 409 || (a->status == 404 && !fresh)) {
        look_again(k, KUBE_LEASE, now_ms);
        return;
    }
    if (failed(k, now_ms, a))
        return;
    k->claimed = k->lease.generation;
    note_held(k);
    if (!take_written(k, now_ms, a))
        return;
    kube_note_renewal(k, now_ms);
    kube_move_to(k, KUBE_LIST, now_ms);
}

static void answer_list(struct kube_machine *k, int64_t now_ms,
                        const struct publish_answer *a)
{
    cleanup_with(kube_objects_slices) struct kube_objects_slices *there = NULL;
    struct error err;
    if (failed(k, now_ms, a))
        return;
    if (kube_objects_read_slices(a->body, a->body_size, &there, &err) < 0) {
        fail_unreadable(k, now_ms, a, &err);
        return;
    }
    note_success(k);
    if (kube_judge(k, there, now_ms) == KUBE_RENEW)
        kube_begin_generation(k, now_ms);
    else
        kube_proceed(k, now_ms);
}

/* CLAIM and BEAT. */
static void answer_renewal(struct kube_machine *k, int64_t now_ms,
                           const struct publish_answer *a)
{
    if (a->status == 404) {
        lose_lease(k, now_ms); /* gone, with the Node or without */
        return;
    }
    if (a->status == 409) {
        look_again(k, KUBE_LEASE, now_ms);
        return;
    }
    if (failed(k, now_ms, a))
        return;
    k->claimed = k->lease.generation;
    if (!take_written(k, now_ms, a))
        return;
    kube_note_renewal(k, now_ms);
    if (k->state == KUBE_CLAIM) {
        kube_begin_generation(k, now_ms);
        return;
    }
    k->conflicts = 0;
    kube_go_idle(k);
}

static void answer_write(struct kube_machine *k, int64_t now_ms,
                         const struct publish_answer *a)
{
    struct kube_slot *slot = &k->slots[k->index];
    struct kube_objects object;
    struct error err;
    if (a->status == 409 || (a->status == 404 && slot->exists)) {
        if (k->conflicts >= CONFLICTS_MAX)
            (void)note_failure(k, a);
        look_again(k, KUBE_LIST, now_ms);
        return;
    }
    if (failed(k, now_ms, a))
        return;
    if (kube_objects_read(a->body, a->body_size, &object, &err) < 0) {
        look_again(k, KUBE_LIST, now_ms);
        return;
    }
    note_success(k);
    kube_note_given(k, k->index, a, now_ms);
    k->wrote = slot->exists = slot->known = true;
    slot->write = false;
    slot->generation = k->epoch.generation;
    memcpy(slot->version, object.version, sizeof slot->version);
    if (k->highest < slot->generation)
        k->highest = slot->generation;
    kube_proceed(k, now_ms);
}

static bool is_gone(const struct publish_answer *a)
{
    return is_ok(a) || a->status == 404;
}

static void answer_prune(struct kube_machine *k, int64_t now_ms,
                         const struct publish_answer *a)
{
    if (a->status == 409) {
        look_again(k, KUBE_LIST, now_ms);
        return;
    }
    if (!is_gone(a)) {
        fail(k, now_ms, a);
        return;
    }
    note_success(k);
    k->n_surplus--;
    kube_proceed(k, now_ms);
}

static void answer_tell(struct kube_machine *k, int64_t now_ms,
                        const struct publish_answer *a)
{
    if (a->status == 404 || a->status == 409) { /* another Node, or none */
        k->tell_due = now_ms + note_failure(k, a);
        look_again(k, KUBE_NODE, now_ms);
        return;
    }
    if (failed(k, now_ms, a))
        return;
    note_success(k);
    k->must_tell = false;
    k->tell_due = PUBLISH_NEVER;
    kube_go_idle(k);
}

static void answer_release(struct kube_machine *k, int64_t now_ms,
                           const struct publish_answer *a)
{
    if (a->status == 409) {
        kube_move_to(k, KUBE_LEASE, now_ms);
    } else if (!is_gone(a)) {
        fail(k, now_ms, a);
    } else {
        /* without a version it is deleted as it is */
        struct kube_objects object = {0};
        (void)kube_objects_read(a->body, a->body_size, &object, NULL);
        (void)snprintf(k->lease.resource_version,
                       sizeof k->lease.resource_version, "%s", object.version);
        begin_withdrawal(k, now_ms);
    }
}

/* Each object is tried once: whoever stops us does not wait, and what is left
 * goes with the Node. */
static void answer_withdraw(struct kube_machine *k, int64_t now_ms,
                            const struct publish_answer *a)
{
    if (!is_gone(a) && !k->m.left_slices)
        log_event(LOG_WARN, "withdraw-failed", "node", topo_node(k->topo),
                  "error", a->error ? a->error : "", NULL);
    k->m.left_slices |= !is_gone(a);
    if (a->status == 0 || (k->n_surplus == 0 && k->index == 0)) {
        if (!k->m.left_slices)
            log_event(LOG_INFO, "withdrawn", "node", topo_node(k->topo), NULL);
        kube_end(k);
        return;
    }
    if (k->n_surplus > 0)
        k->n_surplus--;
    else
        k->index--;
    k->m.due = now_ms;
}

void kube_answer(void *m, int64_t now_ms, const struct publish_answer *a)
{
    static void (*const by_state[KUBE_STATES])(
        struct kube_machine *, int64_t, const struct publish_answer *) = {
        [KUBE_NODE] = answer_node,         [KUBE_LEASE] = answer_lease,
        [KUBE_TAKE] = answer_take,         [KUBE_LIST] = answer_list,
        [KUBE_CLAIM] = answer_renewal,     [KUBE_WRITE] = answer_write,
        [KUBE_PRUNE] = answer_prune,       [KUBE_TELL] = answer_tell,
        [KUBE_BEAT] = answer_renewal,      [KUBE_RELEASE] = answer_release,
        [KUBE_WITHDRAW] = answer_withdraw,
    };
    struct kube_machine *k = m;
    assert(k->sent);
    k->sent = false;
    by_state[k->state](k, now_ms, a);
}
