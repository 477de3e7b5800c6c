/* The rules for one pair. */
#include <stdio.h>
#include <string.h>

#include "extender/leader/pair_rules_private.h"
#include "lib/base/backoff.h"
#include "lib/base/hash.h"

#define XPU_POD_FAILED "XpuPodFailed"

static void act_on(const struct pair *pair, const struct member *m,
                   enum pair_rules_kind kind, struct pair_rules_action *a)
{
    memset(a, 0, sizeof *a);
    a->kind = kind;
    memcpy(a->namespace, m->namespace, strlen(m->namespace) + 1);
    memcpy(a->name, m->name, strlen(m->name) + 1);
    memcpy(a->uid, m->uid, sizeof a->uid);
    memcpy(a->pair, pair->key, sizeof a->pair);
}

/* Was it never written, or not seen in the watch within PAIR_RULES_SHOWN_MS? */
static bool is_to_write(int64_t written_ms, int64_t now_ms)
{
    return written_ms == 0 || now_ms - written_ms >= PAIR_RULES_SHOWN_MS;
}

static const struct member *unended_host(const struct pair *pair)
{
    for (size_t i = 0; i < pair->n; i++)
        if (pair->members[i]->role == ROLE_HOST &&
            !member_is_finished(pair->members[i]))
            return pair->members[i];
    return NULL;
}

/* Kubernetes' garbage collector deletes an xPU pod when its owner is gone.  It
 * does not when the owner is a host pod that has ended but still exists. */
static bool is_left_to_owner(const struct pair *pair, const struct member *m)
{
    if (!m->owner_uid[0])
        return false;
    const struct member *owner = pair_find(pair, m->owner_uid);
    return !owner || owner->role != ROLE_HOST || !member_is_finished(owner);
}

/* Delete the xPU pods when the host pod has ended and there is no new one. */
static bool next_orphan(struct pair *pair, int64_t now_ms,
                        struct pair_rules_action *a)
{
    if (unended_host(pair))
        return false;
    for (size_t i = 0; i < pair->n; i++) {
        struct member *m = pair->members[i];
        bool paired = pair->had_host || m->paired_uid[0];
        if (m->role != ROLE_XPU || !member_is_alive(m) ||
            is_left_to_owner(pair, m) || !paired ||
            !is_to_write(m->deleted_ms, now_ms))
            continue;
        act_on(pair, m, PAIR_RULES_DELETE, a);
        (void)snprintf(a->text, sizeof a->text,
                       "the host pod of its pair has ended");
        return true;
    }
    return false;
}

static bool next_mark(struct pair *pair, int64_t now_ms,
                      struct pair_rules_action *a)
{
    const struct member *host = pair_running_host(pair);
    if (!host)
        return false;
    for (size_t i = 0; i < pair->n; i++) {
        struct member *m = pair->members[i];
        if (m->role != ROLE_XPU || !member_is_alive(m) || m->owner_uid[0] ||
            !m->node[0] || strcmp(m->paired_uid, host->uid) == 0 ||
            !is_to_write(m->marked_ms, now_ms))
            continue;
        act_on(pair, m, PAIR_RULES_MARK, a);
        memcpy(a->host_uid, host->uid, sizeof a->host_uid);
        return true;
    }
    return false;
}

/* --- buddies --- */

/* "HOST-xpu", "HOST-xpu-2" …; of a HOST that is too long a part and its
 * hash. */
static void buddy_name(const char *host, unsigned number,
                       char ret_name[DEMAND_NAME_MAX + 1])
{
    char tail[40];
    size_t room;
    (void)snprintf(tail, sizeof tail, number > 1 ? "-xpu-%u" : "-xpu", number);
    room = DEMAND_NAME_MAX - strlen(tail);
    if (strlen(host) > room) {
        (void)snprintf(tail, sizeof tail, "-%016llx-xpu-%u",
                       (unsigned long long)hash_bytes(host, strlen(host)),
                       number);
        room = DEMAND_NAME_MAX - strlen(tail);
    }
    (void)snprintf(ret_name, DEMAND_NAME_MAX + 1, "%.*s%s", (int)room, host,
                   tail);
}

/* The number in the name of a buddy's xPU pod: 1 … */
static unsigned buddy_number(const char *name)
{
    const char *at = strrchr(name, '-');
    unsigned long n = at ? strtoul(at + 1, NULL, 10) : 0;
    return n > 1 && n < UINT32_MAX ? (unsigned)n : 1;
}

struct buddies {
    bool alive, succeeded;
    unsigned number;             /* the highest that exists; 0: none */
    struct member *newest_ended; /* of those that have ended, the one with
                                  * the highest number */
};

static void look_at_buddies(const struct pair *pair, const struct member *host,
                            struct buddies *b)
{
    unsigned ended = 0;
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < pair->n; i++) {
        struct member *m = pair->members[i];
        if (m->role != ROLE_XPU || strcmp(m->owner_uid, host->uid) != 0)
            continue;
        unsigned number = buddy_number(m->name);
        if (number > b->number)
            b->number = number;
        /* one that is being deleted may still run, on a card that is lost */
        b->alive |= !member_is_finished(m);
        b->succeeded |= m->phase == POD_SUCCEEDED;
        if (member_is_finished(m) && number > ended) {
            ended = number;
            b->newest_ended = m;
        }
    }
}

/* Has the last try to make this host pod's buddy failed? */
static bool has_failed(const struct pair *pair, const struct member *host)
{
    return strcmp(pair->unmade_for, host->uid) == 0;
}

/* Is that to be told?  It still asks for a buddy, and the failure lasts. */
static bool is_unmade(const struct pair *pair, const struct member *host)
{
    return host->buddy[0] && pair->unmade && has_failed(pair, host);
}

/* It asks for no buddy any more, but its condition still says that one
 * lacks. */
static bool is_unwanted(const struct member *host)
{
    return !host->buddy[0] && host->no_buddy;
}

/* When to make the next one: now, or after a back-off if one was made or
 * failed. */
static int64_t make_at(const struct pair *pair, const struct member *host)
{
    if (has_failed(pair, host))
        return pair->unmade_due_ms;
    if (strcmp(pair->made_for, host->uid) != 0)
        return 0;
    return pair->made_ms + backoff_grown(PAIR_RULES_RESTART_MS,
                                         PAIR_RULES_RESTART_MAX_MS,
                                         pair->restarts);
}

/* The host pod that asks for a buddy; NULL: none. */
static const struct member *buddy_host(const struct pair *pair)
{
    for (size_t i = 0; i < pair->n; i++)
        if (pair->members[i]->role == ROLE_HOST && pair->members[i]->buddy[0] &&
            member_is_alive(pair->members[i]))
            return pair->members[i];
    return NULL;
}

static bool next_make(struct pair *pair, int64_t now_ms,
                      struct pair_rules_action *a)
{
    const struct member *host = buddy_host(pair);
    struct buddies b;
    if (!host)
        return false;
    look_at_buddies(pair, host, &b);
    for (size_t i = 0; i < pair->n; i++) {
        struct member *m = pair->members[i];
        if (m->role != ROLE_XPU || strcmp(m->owner_uid, host->uid) != 0 ||
            !member_is_finished(m) || m == b.newest_ended || m->deleting ||
            !is_to_write(m->deleted_ms, now_ms))
            continue;
        act_on(pair, m, PAIR_RULES_DELETE, a);
        (void)snprintf(a->text, sizeof a->text, "a newer one has ended, too");
        return true;
    }
    if (b.alive || b.succeeded || make_at(pair, host) > now_ms)
        return false;
    act_on(pair, host, PAIR_RULES_MAKE, a);
    buddy_name(host->name, b.number + 1, a->made);
    memcpy(a->buddy, host->buddy, strlen(host->buddy) + 1);
    return true;
}

/* --- the condition on the host pod --- */

/* 1: all are ready; 0: one has failed or is gone; NEVER_TOLD: not ready yet. */
static int xpu_state(const struct pair *pair, const struct member *host,
                     struct pair_rules_action *a)
{
    const struct member *failed = NULL;
    struct buddies b;
    size_t n = 0, n_ready = 0;
    look_at_buddies(pair, host, &b);
    if (is_unmade(pair, host) && !b.alive && !b.succeeded) {
        a->reason = KUBE_POD_NO_BUDDY;
        (void)snprintf(a->text, sizeof a->text, "%s", pair->unmade);
        return 0;
    }
    for (size_t i = 0; i < pair->n; i++) {
        const struct member *m = pair->members[i];
        if (m->role != ROLE_XPU)
            continue;
        if (m->phase == POD_FAILED && !(b.alive && m->owner_uid[0]))
            failed = m;
        if (m->phase == POD_FAILED)
            continue;
        n++;
        n_ready += m->phase == POD_SUCCEEDED ||
                   (m->phase == POD_RUNNING && m->ready && !m->deleting);
    }
    if (failed) {
        a->reason = XPU_POD_FAILED;
        (void)snprintf(a->text, sizeof a->text, "xPU pod %s has failed",
                       failed->name);
        return 0;
    }
    if (n > 0 && n_ready == n) {
        a->reason = "XpuPodsReady";
        (void)snprintf(a->text, sizeof a->text, "%zu of %zu xPU pods are ready",
                       n_ready, n);
        return 1;
    }
    if (pair->lost) {
        a->reason = "XpuPodGone";
        (void)snprintf(a->text, sizeof a->text, "xPU pod %s is gone",
                       pair->lost_name);
        return 0;
    }
    bool was_unmade = pair->told_reason &&
                      strcmp(pair->told_reason, KUBE_POD_NO_BUDDY) == 0;
    if ((pair->told != 1 && !was_unmade) || (n == 0 && !is_unwanted(host)))
        return NEVER_TOLD;
    a->reason = "XpuPodNotReady";
    (void)snprintf(a->text, sizeof a->text, "%zu of %zu xPU pods are ready",
                   n_ready, n);
    return 0;
}

uint64_t pair_rules_text_hash(const struct pair_rules_action *a)
{
    return hash_bytes(a->text, strlen(a->text));
}

/* A condition is new when its reason changes; of NO_BUDDY also when its text
 * does, as the cause may be another one. */
static bool is_told(const struct pair *pair,
                    const struct pair_rules_action *tell, int state)
{
    if (state != pair->told)
        return false;
    if (strcmp(tell->reason, KUBE_POD_NO_BUDDY) == 0)
        return pair->told_text == pair_rules_text_hash(tell);
    return !pair->told_reason || strcmp(pair->told_reason, tell->reason) == 0;
}

/* A host pod that is not bound and has to be told about its buddy; NULL:
 * none. */
static const struct member *waiting_host(const struct pair *pair)
{
    for (size_t i = 0; i < pair->n; i++) {
        const struct member *m = pair->members[i];
        if (m->role == ROLE_HOST && member_is_alive(m) && !m->node[0] &&
            (is_unmade(pair, m) || is_unwanted(m)))
            return m;
    }
    return NULL;
}

static bool next_tell(struct pair *pair, struct pair_rules_action *a)
{
    const struct member *host = pair_running_host(pair);
    struct pair_rules_action tell = {0};
    if (!host) /* also one that waits for a node */
        host = waiting_host(pair);
    if (!host)
        return false;
    if (strcmp(pair->told_uid, host->uid) != 0) {
        memcpy(pair->told_uid, host->uid, sizeof pair->told_uid);
        pair->told = NEVER_TOLD;
    }
    if (pair->told == NEVER_TOLD) {
        pair->told = host->xpu_ready;
        pair->told_reason = host->no_buddy ? KUBE_POD_NO_BUDDY : NULL;
        pair->told_text = host->no_buddy;
    }
    int state = xpu_state(pair, host, &tell);
    if (state == 1)
        pair->lost = false;
    if (state == NEVER_TOLD || is_told(pair, &tell, state))
        return false;
    act_on(pair, host, PAIR_RULES_TELL, a);
    a->ready = state == 1;
    a->reason = tell.reason;
    memcpy(a->text, tell.text, sizeof a->text);
    return true;
}

/* That an xPU pod has failed is told before the next one is made: once that is
 * there, nothing would be wrong any more.  But what cannot be told keeps no
 * buddy away. */
static bool next_failure(struct pair *pair, struct pair_rules_action *a)
{
    return pair->failures == 0 && next_tell(pair, a) &&
           strcmp(a->reason, XPU_POD_FAILED) == 0;
}

/* --- what others ask ---------------------------------------------------- */

const struct member *pair_running_host(const struct pair *pair)
{
    for (size_t i = 0; i < pair->n; i++)
        if (pair->members[i]->role == ROLE_HOST &&
            member_is_alive(pair->members[i]) && pair->members[i]->node[0])
            return pair->members[i];
    return NULL;
}

struct member *pair_find(const struct pair *pair, const char *uid)
{
    for (size_t i = 0; i < pair->n; i++)
        if (strcmp(pair->members[i]->uid, uid) == 0)
            return pair->members[i];
    return NULL;
}

bool pair_next(struct pair *pair, int64_t now_ms,
               struct pair_rules_action *ret_action)
{
    return next_orphan(pair, now_ms, ret_action) ||
           next_failure(pair, ret_action) ||
           next_make(pair, now_ms, ret_action) ||
           next_mark(pair, now_ms, ret_action) || next_tell(pair, ret_action);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t pair_wait(const struct pair *pair, int64_t now_ms)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < pair->n; i++) {
        const struct member *m = pair->members[i];
        int64_t at = m->role == ROLE_HOST && m->buddy[0] && member_is_alive(m)
                         ? make_at(pair, m)
                         : 0;
        if (at > now_ms)
            due = least(due, at);
        if (m->deleted_ms && member_is_alive(m))
            due = least(due, m->deleted_ms + PAIR_RULES_SHOWN_MS);
        if (m->marked_ms && !m->paired_uid[0])
            due = least(due, m->marked_ms + PAIR_RULES_SHOWN_MS);
    }
    return due > now_ms ? due : now_ms + PAIR_RULES_SHOWN_MS;
}
