#include "extender/pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/strmap.h"
#include "model/base/hash.h"
#include "model/base/mem.h"
#include "model/base/str.h"

enum { NEVER_TOLD = -1 };

struct member {
    char uid[DEMAND_UID_MAX + 1];
    char *namespace, *name, *owner_uid, *buddy, *paired_uid, *node;
    enum pod_role role;
    enum pod_phase phase;
    bool deleting, ready;
    int xpu_ready; /* what the host pod says of it: 0, 1 or NEVER_TOLD */
    struct pair *pair;
    int64_t deleted_ms, marked_ms; /* when that was written; 0: never */
};

struct pair {
    char key[DEMAND_PAIR_KEY_MAX];
    struct member **members; /* in the order in which they were seen */
    size_t n, cap;
    bool had_host; /* a host pod of it was seen */
    bool lost;     /* an xPU pod was gone while the host pod ran */
    char lost_name[DEMAND_NAME_MAX + 1];
    int told; /* 0, 1, or NEVER_TOLD: of the host pod `told_uid` */
    char told_uid[DEMAND_UID_MAX + 1];
    const char *told_reason;           /* NULL: another leader told it */
    unsigned restarts;                 /* of the buddy of `made_for` */
    char made_for[DEMAND_UID_MAX + 1]; /* a host pod; "" none */
    int64_t made_ms;                   /* when one was made last */
    unsigned failures;                 /* in a row */
    int64_t due_ms; /* to be looked at; INT64_MAX: when it changes */
    size_t place;   /* in the heap, plus one; 0: not there */
};

struct pairs {
    struct strmap pods;  /* by uid */
    struct strmap pairs; /* by key */
    struct pair **heap;  /* by due time */
    size_t n_heap, heap_cap;
};

const char *pairs_kind_name(enum pairs_kind kind)
{
    static const char *const names[] = {"delete", "make", "mark", "tell"};
    return (unsigned)kind < ARRAY_LEN(names) ? names[kind] : "?";
}

/* --- the heap ----------------------------------------------------------------- */

static void heap_set(struct pairs *p, size_t at, struct pair *pair)
{
    p->heap[at] = pair;
    pair->place = at + 1;
}

static void heap_up(struct pairs *p, size_t at)
{
    struct pair *pair = p->heap[at];
    while (at > 0 && pair->due_ms < p->heap[(at - 1) / 2]->due_ms) {
        heap_set(p, at, p->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_set(p, at, pair);
}

static void heap_down(struct pairs *p, size_t at)
{
    struct pair *pair = p->heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < p->n_heap &&
            p->heap[child + 1]->due_ms < p->heap[child]->due_ms)
            child++;
        if (child >= p->n_heap || p->heap[child]->due_ms >= pair->due_ms)
            break;
        heap_set(p, at, p->heap[child]);
        at = child;
    }
    heap_set(p, at, pair);
}

/* Look at a pair at `due_ms`. */
static void set_due(struct pairs *p, struct pair *pair, int64_t due_ms)
{
    if (!pair->place) {
        p->heap = xgrow(p->heap, p->n_heap, &p->heap_cap, sizeof(*p->heap));
        heap_set(p, p->n_heap++, pair);
    }
    pair->due_ms = due_ms;
    heap_up(p, pair->place - 1);
    heap_down(p, pair->place - 1);
}

static void heap_remove(struct pairs *p, struct pair *pair)
{
    size_t at = pair->place;
    if (!at)
        return;
    pair->place = 0;
    struct pair *last = p->heap[--p->n_heap];
    if (last == pair)
        return;
    heap_set(p, at - 1, last);
    heap_up(p, last->place - 1);
    heap_down(p, last->place - 1);
}

/* --- the registry ---------------------------------------------------------------- */

struct pairs *pairs_create(void)
{
    return xcalloc(1, sizeof(struct pairs));
}

static void member_destroy(struct member *m)
{
    free(m->namespace);
    free(m->name);
    free(m->owner_uid);
    free(m->buddy);
    free(m->paired_uid);
    free(m->node);
    free(m);
}

static void pair_destroy(struct pair *pair)
{
    free(pair->members);
    free(pair);
}

void pairs_destroy(struct pairs *p)
{
    if (!p)
        return;
    size_t pos = 0;
    for (struct member *m; (m = strmap_next(&p->pods, &pos));)
        member_destroy(m);
    pos = 0;
    for (struct pair *pair; (pair = strmap_next(&p->pairs, &pos));)
        pair_destroy(pair);
    strmap_fini(&p->pods);
    strmap_fini(&p->pairs);
    free(p->heap);
    free(p);
}

static struct pair *pair_get(struct pairs *p, const struct demand *pod)
{
    char key[DEMAND_PAIR_KEY_MAX];
    demand_pair_key(pod, key);
    struct pair *pair = strmap_get(&p->pairs, key);
    if (pair)
        return pair;
    pair = xcalloc(1, sizeof *pair);
    memcpy(pair->key, key, strlen(key) + 1);
    pair->told = NEVER_TOLD;
    (void)strmap_put(&p->pairs, pair->key, pair);
    return pair;
}

static void pair_leave(struct pairs *p, struct member *m)
{
    struct pair *pair = m->pair;
    m->pair = NULL;
    for (size_t i = 0; i < pair->n; i++)
        if (pair->members[i] == m) {
            memmove(&pair->members[i], &pair->members[i + 1],
                    (pair->n - i - 1) * sizeof(struct member *));
            pair->n--;
            break;
        }
    if (pair->n)
        return;
    heap_remove(p, pair);
    (void)strmap_remove(&p->pairs, pair->key);
    pair_destroy(pair);
}

static bool is_finished(const struct member *m)
{
    return m->phase == POD_SUCCEEDED || m->phase == POD_FAILED;
}

static bool is_alive(const struct member *m)
{
    return !is_finished(m) && !m->deleting;
}

static void set_text(char **text, const char *value)
{
    if (*text && strcmp(*text, value) == 0)
        return;
    free(*text);
    *text = xstrdup(value);
}

void pairs_put(struct pairs *p, const struct podobj *pod, int64_t now_ms)
{
    const struct demand *d = &pod->demand;
    struct member *m = strmap_get(&p->pods, d->uid);
    bool ours = !pod->broken && (d->role == ROLE_HOST || d->role == ROLE_XPU);
    if (!ours) {
        pairs_gone(p, d->uid, now_ms);
        return;
    }
    struct pair *pair = pair_get(p, d);
    if (m && m->pair != pair) { /* it was labelled anew */
        pairs_gone(p, d->uid, now_ms);
        pair = pair_get(p, d);
        m = NULL;
    }
    if (!m) {
        if (pair->n >= PAIRS_MEMBERS_MAX)
            return;
        m = xcalloc(1, sizeof *m);
        memcpy(m->uid, d->uid, sizeof m->uid);
        m->pair = pair;
        pair->members = xgrow(pair->members, pair->n, &pair->cap,
                              sizeof(*pair->members));
        pair->members[pair->n++] = m;
        (void)strmap_put(&p->pods, m->uid, m);
    }
    set_text(&m->namespace, d->namespace);
    set_text(&m->name, d->name);
    set_text(&m->owner_uid, pod->owner_uid);
    set_text(&m->buddy, pod->buddy);
    set_text(&m->paired_uid, pod->paired_uid);
    set_text(&m->node, pod->node);
    m->role = d->role;
    m->phase = pod->phase;
    m->deleting = pod->deleting;
    m->ready = pod->ready;
    m->xpu_ready = pod->xpu_ready;
    if (m->role == ROLE_HOST)
        pair->had_host = true;
    set_due(p, pair, now_ms);
}

static const struct member *running_host(const struct pair *pair)
{
    for (size_t i = 0; i < pair->n; i++)
        if (pair->members[i]->role == ROLE_HOST && is_alive(pair->members[i]) &&
            pair->members[i]->node[0])
            return pair->members[i];
    return NULL;
}

void pairs_gone(struct pairs *p, const char *uid, int64_t now_ms)
{
    struct member *m = strmap_remove(&p->pods, uid);
    if (!m)
        return;
    struct pair *pair = m->pair;
    if (m->role == ROLE_XPU && m->node[0] && !is_finished(m) &&
        running_host(pair)) {
        pair->lost = true;
        memcpy(pair->lost_name, m->name, strlen(m->name) + 1);
    }
    bool last = pair->n == 1;
    pair_leave(p, m);
    member_destroy(m);
    if (!last)
        set_due(p, pair, now_ms);
}

void pairs_again(struct pairs *p, int64_t now_ms)
{
    size_t pos = 0;
    for (struct pair *pair; (pair = strmap_next(&p->pairs, &pos));) {
        pair->told = NEVER_TOLD;
        set_due(p, pair, now_ms);
    }
}

size_t pairs_n_pods(const struct pairs *p)
{
    return p->pods.n;
}

/* --- what to do about one pair -------------------------------------------------------- */

static void act_on(const struct pair *pair, const struct member *m,
                   enum pairs_kind kind, struct pairs_action *a)
{
    memset(a, 0, sizeof *a);
    a->kind = kind;
    memcpy(a->namespace, m->namespace, strlen(m->namespace) + 1);
    memcpy(a->name, m->name, strlen(m->name) + 1);
    memcpy(a->uid, m->uid, sizeof a->uid);
    memcpy(a->pair, pair->key, sizeof a->pair);
}

/* Has what was written then not been seen, although there was time? */
static bool is_to_write(int64_t written_ms, int64_t now_ms)
{
    return written_ms == 0 || now_ms - written_ms >= PAIRS_SHOWN_MS;
}

static struct member *find_uid(const struct pair *pair, const char *uid)
{
    for (size_t i = 0; i < pair->n; i++)
        if (strcmp(pair->members[i]->uid, uid) == 0)
            return pair->members[i];
    return NULL;
}

static const struct member *unended_host(const struct pair *pair)
{
    for (size_t i = 0; i < pair->n; i++)
        if (pair->members[i]->role == ROLE_HOST &&
            !is_finished(pair->members[i]))
            return pair->members[i];
    return NULL;
}

/* Kubernetes deletes what an owner leaves behind when the owner is gone; a
 * host pod that has ended is still there. */
static bool is_left_to_owner(const struct pair *pair, const struct member *m)
{
    if (!m->owner_uid[0])
        return false;
    const struct member *owner = find_uid(pair, m->owner_uid);
    return !owner || owner->role != ROLE_HOST || !is_finished(owner);
}

/* The host pod has ended, and no other has taken its place. */
static bool next_orphan(struct pair *pair, int64_t now_ms,
                        struct pairs_action *a)
{
    if (unended_host(pair))
        return false;
    for (size_t i = 0; i < pair->n; i++) {
        struct member *m = pair->members[i];
        bool paired = pair->had_host || m->paired_uid[0];
        if (m->role != ROLE_XPU || !is_alive(m) || is_left_to_owner(pair, m) ||
            !paired || !is_to_write(m->deleted_ms, now_ms))
            continue;
        act_on(pair, m, PAIRS_DELETE, a);
        (void)snprintf(a->text, sizeof a->text,
                       "the host pod of its pair has ended");
        return true;
    }
    return false;
}

static bool next_mark(struct pair *pair, int64_t now_ms, struct pairs_action *a)
{
    const struct member *host = running_host(pair);
    if (!host)
        return false;
    for (size_t i = 0; i < pair->n; i++) {
        struct member *m = pair->members[i];
        if (m->role != ROLE_XPU || !is_alive(m) || m->owner_uid[0] ||
            !m->node[0] || strcmp(m->paired_uid, host->uid) == 0 ||
            !is_to_write(m->marked_ms, now_ms))
            continue;
        act_on(pair, m, PAIRS_MARK, a);
        memcpy(a->host_uid, host->uid, sizeof a->host_uid);
        return true;
    }
    return false;
}

/* --- buddies --- */

/* "HOST-xpu", "HOST-xpu-2" …; a name that would be too long ends in its
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
    unsigned number;             /* the highest of those there are; 0 */
    struct member *newest_ended; /* with that number, or the highest */
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
        b->alive |= is_alive(m);
        b->succeeded |= m->phase == POD_SUCCEEDED;
        if (is_finished(m) && number > ended) {
            ended = number;
            b->newest_ended = m;
        }
    }
}

static int64_t restart_ms(unsigned restarts)
{
    int64_t ms = PAIRS_RESTART_MS;
    while (restarts-- > 1 && ms < PAIRS_RESTART_MAX_MS)
        ms *= 2;
    return ms < PAIRS_RESTART_MAX_MS ? ms : PAIRS_RESTART_MAX_MS;
}

/* When the next one may be made: at once, or after a while when one was. */
static int64_t make_at(const struct pair *pair, const struct member *host)
{
    if (strcmp(pair->made_for, host->uid) != 0)
        return 0;
    return pair->made_ms + restart_ms(pair->restarts);
}

static bool next_make(struct pair *pair, int64_t now_ms, struct pairs_action *a)
{
    const struct member *host = NULL;
    struct buddies b;
    for (size_t i = 0; i < pair->n && !host; i++)
        if (pair->members[i]->role == ROLE_HOST && pair->members[i]->buddy[0] &&
            is_alive(pair->members[i]))
            host = pair->members[i];
    if (!host)
        return false;
    look_at_buddies(pair, host, &b);
    for (size_t i = 0; i < pair->n; i++) {
        struct member *m = pair->members[i];
        if (m->role != ROLE_XPU || strcmp(m->owner_uid, host->uid) != 0 ||
            !is_finished(m) || m == b.newest_ended || m->deleting ||
            !is_to_write(m->deleted_ms, now_ms))
            continue;
        act_on(pair, m, PAIRS_DELETE, a);
        (void)snprintf(a->text, sizeof a->text, "a newer one has ended, too");
        return true;
    }
    if (b.alive || b.succeeded || make_at(pair, host) > now_ms)
        return false;
    act_on(pair, host, PAIRS_MAKE, a);
    buddy_name(host->name, b.number + 1, a->made);
    memcpy(a->buddy, host->buddy, strlen(host->buddy) + 1);
    return true;
}

/* --- the condition on the host pod --- */

/* 1: all there; 0: one has failed or is gone; NEVER_TOLD: on the way. */
static int xpu_state(const struct pair *pair, const struct member *host,
                     struct pairs_action *a)
{
    const struct member *failed = NULL;
    struct buddies b;
    size_t n = 0, n_ready = 0;
    look_at_buddies(pair, host, &b);
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
        a->reason = "XpuPodFailed";
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
    if (pair->told != 1 || n == 0)
        return NEVER_TOLD;
    a->reason = "XpuPodNotReady";
    (void)snprintf(a->text, sizeof a->text, "%zu of %zu xPU pods are ready",
                   n_ready, n);
    return 0;
}

static bool next_tell(struct pair *pair, struct pairs_action *a)
{
    const struct member *host = running_host(pair);
    struct pairs_action tell = {0};
    if (!host)
        return false;
    if (strcmp(pair->told_uid, host->uid) != 0) {
        memcpy(pair->told_uid, host->uid, sizeof pair->told_uid);
        pair->told = NEVER_TOLD;
    }
    if (pair->told == NEVER_TOLD) {
        pair->told = host->xpu_ready;
        pair->told_reason = NULL;
    }
    int state = xpu_state(pair, host, &tell);
    if (state == 1)
        pair->lost = false;
    if (state == NEVER_TOLD ||
        (state == pair->told &&
         (!pair->told_reason || pair->told_reason == tell.reason)))
        return false;
    act_on(pair, host, PAIRS_TELL, a);
    a->ready = state == 1;
    a->reason = tell.reason;
    memcpy(a->text, tell.text, sizeof a->text);
    return true;
}

/* --- one after the other ----------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Nothing is to be done now: when will there be, if nothing changes? */
static int64_t pair_wait(const struct pair *pair, int64_t now_ms)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < pair->n; i++) {
        const struct member *m = pair->members[i];
        int64_t at = m->role == ROLE_HOST && m->buddy[0] && is_alive(m)
                         ? make_at(pair, m)
                         : 0;
        if (at > now_ms)
            due = least(due, at);
        if (m->deleted_ms && is_alive(m))
            due = least(due, m->deleted_ms + PAIRS_SHOWN_MS);
        if (m->marked_ms && !m->paired_uid[0])
            due = least(due, m->marked_ms + PAIRS_SHOWN_MS);
    }
    return due > now_ms ? due : now_ms + PAIRS_SHOWN_MS;
}

bool pairs_next(struct pairs *p, int64_t now_ms,
                struct pairs_action *ret_action)
{
    while (p->n_heap && p->heap[0]->due_ms <= now_ms) {
        struct pair *pair = p->heap[0];
        if (next_orphan(pair, now_ms, ret_action) ||
            next_make(pair, now_ms, ret_action) ||
            next_mark(pair, now_ms, ret_action) || next_tell(pair, ret_action))
            return true;
        int64_t due = pair_wait(pair, now_ms);
        if (due == INT64_MAX)
            heap_remove(p, pair);
        else
            set_due(p, pair, due);
    }
    return false;
}

static void note_made(struct pair *pair, const struct pairs_action *a,
                      int64_t now_ms)
{
    if (strcmp(pair->made_for, a->uid) != 0) {
        memcpy(pair->made_for, a->uid, sizeof pair->made_for);
        pair->restarts = 0;
    }
    pair->restarts++;
    pair->made_ms = now_ms;
}

static int64_t backoff_ms(unsigned failures)
{
    int64_t ms = PAIRS_BACKOFF_MIN_MS;
    while (failures-- > 1 && ms < PAIRS_BACKOFF_MAX_MS)
        ms *= 2;
    return ms < PAIRS_BACKOFF_MAX_MS ? ms : PAIRS_BACKOFF_MAX_MS;
}

void pairs_report(struct pairs *p, const struct pairs_action *a, int result,
                  int64_t now_ms)
{
    struct pair *pair = strmap_get(&p->pairs, a->pair);
    if (!pair)
        return;
    struct member *m = find_uid(pair, a->uid);
    bool gone = result == -ENOENT && a->kind != PAIRS_MAKE;
    if (result < 0 && !gone) {
        pair->failures++;
        set_due(p, pair, now_ms + backoff_ms(pair->failures));
        return;
    }
    pair->failures = 0;
    if (a->kind == PAIRS_MAKE)
        note_made(pair, a, now_ms);
    else if (a->kind == PAIRS_TELL) {
        pair->told = a->ready;
        pair->told_reason = a->reason;
    } else if (m && a->kind == PAIRS_DELETE)
        m->deleted_ms = now_ms;
    else if (m)
        m->marked_ms = now_ms;
    set_due(p, pair, now_ms);
}

int64_t pairs_due(const struct pairs *p)
{
    return p->n_heap ? p->heap[0]->due_ms : INT64_MAX;
}
