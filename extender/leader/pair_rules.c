#include "extender/leader/pair_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/leader/pair_rules_private.h"
#include "lib/base/backoff.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/kube/client.h"

struct pair_rules {
    struct strmap pods;  /* by uid */
    struct strmap pairs; /* by key */
    struct pair **heap;  /* by due time */
    size_t n_heap, heap_cap;
};

const char *pair_rules_kind_name(enum pair_rules_kind kind)
{
    static const char *const names[] = {"delete", "make", "mark", "tell"};
    return (unsigned)kind < ARRAY_LEN(names) ? names[kind] : "?";
}

/* --- the heap ----------------------------------------------------------- */

static void heap_set(struct pair_rules *p, size_t at, struct pair *pair)
{
    p->heap[at] = pair;
    pair->place = at + 1;
}

static void heap_up(struct pair_rules *p, size_t at)
{
    struct pair *pair = p->heap[at];
    while (at > 0 && pair->due_ms < p->heap[(at - 1) / 2]->due_ms) {
        heap_set(p, at, p->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_set(p, at, pair);
}

static void heap_down(struct pair_rules *p, size_t at)
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
static void set_due(struct pair_rules *p, struct pair *pair, int64_t due_ms)
{
    if (!pair->place) {
        p->heap = xgrow(p->heap, p->n_heap, &p->heap_cap, sizeof(*p->heap));
        heap_set(p, p->n_heap++, pair);
    }
    pair->due_ms = due_ms;
    heap_up(p, pair->place - 1);
    heap_down(p, pair->place - 1);
}

static void heap_remove(struct pair_rules *p, struct pair *pair)
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

/* --- the registry ------------------------------------------------------- */

struct pair_rules *pair_rules_create(void)
{
    return xcalloc(1, sizeof(struct pair_rules));
}

static void member_destroy(void *member)
{
    struct member *m = member;
    free(m->namespace);
    free(m->name);
    free(m->owner_uid);
    free(m->buddy);
    free(m->paired_uid);
    free(m->node);
    free(m);
}

static void pair_destroy(void *object)
{
    struct pair *pair = object;
    free(pair->unmade);
    free(pair->members);
    free(pair);
}

void pair_rules_destroy(struct pair_rules *p)
{
    if (!p)
        return;
    strmap_fini_with(&p->pods, member_destroy);
    strmap_fini_with(&p->pairs, pair_destroy);
    free(p->heap);
    free(p);
}

static struct pair *pair_get(struct pair_rules *p, const struct demand *pod)
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

static void pair_leave(struct pair_rules *p, struct member *m)
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

static void set_text(char **text, const char *value)
{
    if (*text && strcmp(*text, value) == 0)
        return;
    free(*text);
    *text = xstrdup(value);
}

void pair_rules_put(struct pair_rules *p, const struct kube_pod *pod,
                    int64_t now_ms)
{
    const struct demand *d = &pod->demand;
    struct member *m = strmap_get(&p->pods, d->uid);
    bool ours = !pod->broken && (d->role == ROLE_HOST || d->role == ROLE_XPU);
    if (!ours) {
        pair_rules_gone(p, d->uid, now_ms);
        return;
    }
    struct pair *pair = pair_get(p, d);
    if (m && m->pair != pair) { /* its labels have changed */
        pair_rules_gone(p, d->uid, now_ms);
        pair = pair_get(p, d);
        m = NULL;
    }
    if (!m) {
        if (pair->n >= PAIR_RULES_MEMBERS_MAX)
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
    m->no_buddy = pod->no_buddy;
    if (m->role == ROLE_HOST)
        pair->had_host = true;
    set_due(p, pair, now_ms);
}

void pair_rules_gone(struct pair_rules *p, const char *uid, int64_t now_ms)
{
    struct member *m = strmap_remove(&p->pods, uid);
    if (!m)
        return;
    struct pair *pair = m->pair;
    if (m->role == ROLE_XPU && m->node[0] && !member_is_finished(m) &&
        pair_running_host(pair)) {
        pair->lost = true;
        memcpy(pair->lost_name, m->name, strlen(m->name) + 1);
    }
    bool last = pair->n == 1;
    pair_leave(p, m);
    member_destroy(m);
    if (!last)
        set_due(p, pair, now_ms);
}

void pair_rules_again(struct pair_rules *p, int64_t now_ms)
{
    size_t pos = 0;
    for (struct pair *pair; (pair = strmap_next(&p->pairs, &pos));) {
        pair->told = NEVER_TOLD;
        set_due(p, pair, now_ms);
    }
}

size_t pair_rules_n_pods(const struct pair_rules *p)
{
    return p->pods.n;
}

/* --- one after the other ------------------------------------------------ */

bool pair_rules_next(struct pair_rules *p, int64_t now_ms,
                     struct pair_rules_action *ret_action)
{
    while (p->n_heap && p->heap[0]->due_ms <= now_ms) {
        struct pair *pair = p->heap[0];
        if (pair_next(pair, now_ms, ret_action))
            return true;
        int64_t due = pair_wait(pair, now_ms);
        if (due == INT64_MAX)
            heap_remove(p, pair);
        else
            set_due(p, pair, due);
    }
    return false;
}

/* Tell of the failure at once, or, if it is one that passes, after
 * PAIR_RULES_TRIES of them in a row.  The next try is made after a back-off. */
static void note_unmade(struct pair *pair, const struct pair_rules_action *a,
                        bool passes, int64_t now_ms)
{
    if (strcmp(pair->unmade_for, a->uid) != 0) {
        memcpy(pair->unmade_for, a->uid, sizeof pair->unmade_for);
        free(steal(&pair->unmade));
        pair->n_unmade = pair->n_passing = 0;
    }
    pair->n_passing = passes ? pair->n_passing + 1 : 0;
    if (!passes || pair->n_passing >= PAIR_RULES_TRIES)
        set_text(&pair->unmade, a->text);
    pair->n_unmade++;
    pair->unmade_due_ms = now_ms + backoff_grown(PAIR_RULES_BACKOFF_MIN_MS,
                                                 PAIR_RULES_BACKOFF_MAX_MS,
                                                 pair->n_unmade);
}

static void note_made(struct pair *pair, const struct pair_rules_action *a,
                      int64_t now_ms)
{
    free(steal(&pair->unmade));
    pair->unmade_for[0] = '\0';
    pair->n_unmade = pair->n_passing = 0;
    if (strcmp(pair->made_for, a->uid) != 0) {
        memcpy(pair->made_for, a->uid, sizeof pair->made_for);
        pair->restarts = 0;
    }
    pair->restarts++;
    pair->made_ms = now_ms;
}

void pair_rules_report(struct pair_rules *p, const struct pair_rules_action *a,
                       int result, int64_t now_ms)
{
    struct pair *pair = strmap_get(&p->pairs, a->pair);
    if (!pair)
        return;
    struct member *m = pair_find(pair, a->uid);
    bool gone = result == -ENOENT && a->kind != PAIR_RULES_MAKE;
    bool unmade = result < 0 && a->kind == PAIR_RULES_MAKE &&
                  result != -ECANCELED;
    if (result < 0 && !gone && !unmade) {
        pair->failures++;
        set_due(p, pair,
                now_ms + backoff_grown(PAIR_RULES_BACKOFF_MIN_MS,
                                       PAIR_RULES_BACKOFF_MAX_MS,
                                       pair->failures));
        return;
    }
    pair->failures = 0;
    if (unmade)
        note_unmade(pair, a, kube_error_passes(result), now_ms);
    else if (a->kind == PAIR_RULES_MAKE)
        note_made(pair, a, now_ms);
    else if (a->kind == PAIR_RULES_TELL) {
        pair->told = a->ready;
        pair->told_reason = a->reason;
        pair->told_text = pair_rules_text_hash(a);
    } else if (m && a->kind == PAIR_RULES_DELETE)
        m->deleted_ms = now_ms;
    else if (m)
        m->marked_ms = now_ms;
    set_due(p, pair, now_ms);
}

int64_t pair_rules_due(const struct pair_rules *p)
{
    return p->n_heap ? p->heap[0]->due_ms : INT64_MAX;
}
