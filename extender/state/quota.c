#include "extender/state/quota.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* --- counting pairs ----------------------------------------------------- */

/* One card of one member. */
struct piece {
    const char *node, *card;
    const struct demand *demand;
};

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    return order ? order : strcmp(x->card, y->card);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What the members on one card have of it. */
static void count_card(const struct piece *pieces, size_t n,
                       struct quota_use *use)
{
    struct quota_use host = {0}, xpus = {0};
    for (size_t i = 0; i < n; i++) {
        const struct demand *d = pieces[i].demand;
        if (d->role == ROLE_HOST) {
            host.cores = larger(host.cores, d->card_cores);
            host.memory_mib = larger(host.memory_mib, d->card_memory_mib);
        } else {
            xpus.cores += d->card_cores;
            xpus.memory_mib += d->card_memory_mib;
        }
    }
    use->cards++;
    use->cores += larger(host.cores, xpus.cores);
    use->memory_mib += larger(host.memory_mib, xpus.memory_mib);
}

void quota_count_pair(const struct allocation *const *members, size_t n,
                      struct quota_use *ret_use)
{
    struct quota_use use = {0};
    size_t n_pieces = 0;
    for (size_t i = 0; i < n; i++)
        n_pieces += members[i]->n_cards;
    cleanup_free struct piece *pieces = xcalloc(n_pieces + 1, sizeof *pieces);
    n_pieces = 0;
    for (size_t i = 0; i < n; i++)
        for (unsigned c = 0; c < members[i]->n_cards; c++)
            pieces[n_pieces++] = (struct piece){
                members[i]->node, members[i]->cards[c], &members[i]->demand};
    qsort(pieces, n_pieces, sizeof *pieces, compare_pieces);
    for (size_t i = 0, end; i < n_pieces; i = end) {
        end = i + 1;
        while (end < n_pieces && compare_pieces(&pieces[i], &pieces[end]) == 0)
            end++;
        count_card(&pieces[i], end - i, &use);
    }
    *ret_use = use;
}

/* The members of a pair but `without` (or NULL), and `with` (or NULL). */
static void count_members(const struct alloc_index *x, const char *pair_key,
                          const struct allocation *without,
                          const struct allocation *with,
                          struct quota_use *ret_use)
{
    size_t n = alloc_index_find_pair(x, pair_key, NULL, 0), kept = 0;
    cleanup_free const struct allocation **list = xcalloc(n + 1, sizeof *list);
    (void)alloc_index_find_pair(x, pair_key, list, n);
    for (size_t i = 0; i < n; i++)
        if (list[i] != without)
            list[kept++] = list[i];
    if (with)
        list[kept++] = with;
    quota_count_pair(list, kept, ret_use);
}

static void use_add(struct quota_use *to, const struct quota_use *use)
{
    to->cards += use->cards;
    to->cores += use->cores;
    to->memory_mib += use->memory_mib;
}

static void use_take(struct quota_use *from, const struct quota_use *use)
{
    from->cards -= use->cards;
    from->cores -= use->cores;
    from->memory_mib -= use->memory_mib;
}

/* --- the sums ----------------------------------------------------------- */

/* Namespaces by hash in a fixed number of short lists, each shared between
 * versions until it changes. */
enum { LISTS = 256 };

struct sum {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    struct quota_use use;
};

struct sum_list {
    atomic_uint refs;
    size_t n;
    struct sum sums[];
};

struct quota_sums {
    atomic_uint refs;
    struct sum_list *lists[LISTS]; /* NULL: empty */
};

static struct sum_list *list_create(size_t n)
{
    struct sum_list *list = xcalloc(1, sizeof *list + n * sizeof list->sums[0]);
    atomic_init(&list->refs, 1);
    list->n = n;
    return list;
}

static void list_unref(struct sum_list *list)
{
    if (list &&
        atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) == 1)
        free(list);
}

struct quota_sums *quota_sums_create(void)
{
    struct quota_sums *q = xcalloc(1, sizeof *q);
    atomic_init(&q->refs, 1);
    return q;
}

struct quota_sums *quota_sums_ref(struct quota_sums *q)
{
    atomic_fetch_add_explicit(&q->refs, 1, memory_order_relaxed);
    return q;
}

void quota_sums_unref(struct quota_sums *q)
{
    if (!q || atomic_fetch_sub_explicit(&q->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < LISTS; i++)
        list_unref(q->lists[i]);
    free(q);
}

static size_t list_of(const char *namespace)
{
    return hash_bytes(namespace, strlen(namespace)) % LISTS;
}

static const struct sum *sum_find(const struct sum_list *list,
                                  const char *namespace)
{
    for (size_t i = 0; list && i < list->n; i++)
        if (strcmp(list->sums[i].namespace, namespace) == 0)
            return &list->sums[i];
    return NULL;
}

void quota_sums_get(const struct quota_sums *q, const char *namespace,
                    struct quota_use *ret_use)
{
    const struct sum *sum = sum_find(q->lists[list_of(namespace)], namespace);
    *ret_use = sum ? sum->use : (struct quota_use){0};
}

/* The list with another sum of the namespace; one of nothing is left out. */
static struct sum_list *list_with(const struct sum_list *old,
                                  const char *namespace,
                                  const struct quota_use *use)
{
    size_t n = 0;
    struct sum_list *list = list_create((old ? old->n : 0) + 1);
    for (size_t i = 0; old && i < old->n; i++)
        if (strcmp(old->sums[i].namespace, namespace) != 0)
            list->sums[n++] = old->sums[i];
    if (use->cards) {
        struct sum *sum = &list->sums[n++];
        memcpy(sum->namespace, namespace, strlen(namespace) + 1);
        sum->use = *use;
    }
    list->n = n;
    return list;
}

static void sums_own(struct quota_sums **sums)
{
    struct quota_sums *old = *sums;
    if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return;
    struct quota_sums *own = quota_sums_create();
    for (size_t i = 0; i < LISTS; i++) {
        own->lists[i] = old->lists[i];
        if (own->lists[i])
            atomic_fetch_add_explicit(&own->lists[i]->refs, 1,
                                      memory_order_relaxed);
    }
    quota_sums_unref(old);
    *sums = own;
}

void quota_sums_follow(struct quota_sums **sums,
                       const struct alloc_index *before,
                       const struct alloc_index *after,
                       const struct allocation *changed)
{
    const char *namespace = changed->demand.namespace;
    struct quota_use use, less, more;
    count_members(before, changed->pair_key, NULL, NULL, &less);
    count_members(after, changed->pair_key, NULL, NULL, &more);
    if (memcmp(&less, &more, sizeof less) == 0)
        return;
    sums_own(sums);
    quota_sums_get(*sums, namespace, &use);
    use_add(&use, &more);
    use_take(&use, &less);
    struct sum_list **list = &(*sums)->lists[list_of(namespace)];
    struct sum_list *old = *list;
    *list = list_with(old, namespace, &use);
    list_unref(old);
}

/* --- may it have more? -------------------------------------------------- */

/* Only what grows can be too much: a namespace that is above a quota which
 * was lowered keeps what it has. */
static bool is_over(uint64_t used, uint64_t before, uint64_t after,
                    uint64_t limit, struct quota_verdict *verdict)
{
    if (after <= before || limit == POLICY_UNLIMITED)
        return false;
    uint64_t more = after - before;
    verdict->used = used;
    verdict->limit = limit;
    verdict->asked = more;
    return more > limit || used > limit - more;
}

/* The namespace has `before` and is to have `after` in its place. */
static void judge_change(const struct snapshot *s, const char *namespace,
                         const struct quota_use *before,
                         const struct quota_use *after,
                         struct quota_verdict *ret_verdict)
{
    const struct policy_quota *quota = policy_find_quota(s->policy, namespace);
    struct quota_verdict v = {QUOTA_OK, 0, 0, 0};
    struct quota_use use;
    snapshot_quota_use(s, namespace, &use);
    if (is_over(use.cards, before->cards, after->cards, quota->cards, &v))
        v.kind = QUOTA_CARDS;
    else if (is_over(use.cores, before->cores, after->cores, quota->cores, &v))
        v.kind = QUOTA_CORES;
    else if (is_over(use.memory_mib, before->memory_mib, after->memory_mib,
                     quota->memory_mib, &v))
        v.kind = QUOTA_MEMORY;
    *ret_verdict = v;
}

/* Whoever does not say what he takes could take all of a card and be counted
 * with nothing.  A host pod may: what counts is what its xPU pods state. */
static enum quota_kind judge_unstated(const struct snapshot *s,
                                      const struct policy_quota *quota,
                                      const struct demand *pod)
{
    if (pod->role == ROLE_HOST || pod->has_card_need ||
        policy_has_share(s->policy, pod))
        return QUOTA_OK;
    if (quota->cores != POLICY_UNLIMITED)
        return QUOTA_UNSTATED_CORES;
    return quota->memory_mib != POLICY_UNLIMITED ? QUOTA_UNSTATED_MEMORY
                                                 : QUOTA_OK;
}

static void add_demand(struct quota_use *to, const struct demand *pod)
{
    struct quota_use use = {
        .cards = pod->cards,
        .cores = (uint64_t)pod->cards * pod->card_cores,
        .memory_mib = (uint64_t)pod->cards * pod->card_memory_mib,
    };
    use_add(to, &use);
}

/* All pairs of the job of which nobody has a place. */
static void add_job(const struct snapshot *s, const struct demand *pod,
                    struct quota_use *to)
{
    char key[DEMAND_PAIR_KEY_MAX];
    struct demand pair;
    if (!pod->job[0] || pod->size <= 1) {
        demand_pair(pod, pod->pair, &pair);
        add_demand(to, &pair);
        return;
    }
    for (int32_t rank = 0; rank < pod->size; rank++) {
        demand_pair(pod, rank, &pair);
        demand_pair_key(&pair, key);
        if (alloc_index_find_pair(s->allocations, key, NULL, 0) == 0)
            add_demand(to, &pair);
    }
}

/* What ends with `former` (NULL: nothing). */
static void count_former(const struct snapshot *s,
                         const struct allocation *former,
                         struct quota_use *ret_before,
                         struct quota_use *ret_after)
{
    *ret_before = *ret_after = (struct quota_use){0};
    if (!former)
        return;
    count_members(s->allocations, former->pair_key, NULL, NULL, ret_before);
    count_members(s->allocations, former->pair_key, former, NULL, ret_after);
}

void quota_judge(const struct snapshot *s, const struct demand *pod,
                 const struct allocation *former,
                 struct quota_verdict *ret_verdict)
{
    const struct policy_quota *quota = policy_find_quota(s->policy,
                                                         pod->namespace);
    struct quota_use before, after;
    *ret_verdict = (struct quota_verdict){QUOTA_OK, 0, 0, 0};
    if (!quota || pod->role == ROLE_NONE)
        return;
    ret_verdict->kind = judge_unstated(s, quota, pod);
    if (ret_verdict->kind != QUOTA_OK)
        return;
    count_former(s, former, &before, &after);
    if (demand_is_planned(pod))
        add_job(s, pod, &after);
    else
        add_demand(&after, pod);
    judge_change(s, pod->namespace, &before, &after, ret_verdict);
}

void quota_judge_allocation(const struct snapshot *s,
                            const struct allocation *fresh,
                            const struct allocation *former,
                            struct quota_verdict *ret_verdict)
{
    const struct demand *pod = &fresh->demand;
    const struct policy_quota *quota = policy_find_quota(s->policy,
                                                         pod->namespace);
    struct quota_use before, after, more;
    *ret_verdict = (struct quota_verdict){QUOTA_OK, 0, 0, 0};
    if (!quota)
        return;
    ret_verdict->kind = judge_unstated(s, quota, pod);
    if (ret_verdict->kind != QUOTA_OK)
        return;
    bool joined = former && strcmp(former->pair_key, fresh->pair_key) == 0;
    count_former(s, joined ? NULL : former, &before, &after);
    count_members(s->allocations, fresh->pair_key, NULL, NULL, &more);
    use_add(&before, &more);
    count_members(s->allocations, fresh->pair_key, joined ? former : NULL,
                  fresh, &more);
    use_add(&after, &more);
    judge_change(s, pod->namespace, &before, &after, ret_verdict);
}

void quota_explain(const char *namespace, const struct quota_verdict *v,
                   struct str *out)
{
    static const char *const what[] = {
        [QUOTA_CARDS] = "cards",
        [QUOTA_CORES] = "card cores",
        [QUOTA_MEMORY] = "MiB of card memory",
        [QUOTA_UNSTATED_CORES] = "cores",
        [QUOTA_UNSTATED_MEMORY] = "memory",
    };
    str_addf(out, "quota of namespace %s", namespace);
    switch (v->kind) {
    case QUOTA_CARDS:
    case QUOTA_CORES:
    case QUOTA_MEMORY:
        str_addf(out,
                 ": %" PRIu64 " of %" PRIu64 " %s used, %" PRIu64 " more asked",
                 v->used, v->limit, what[v->kind], v->asked);
        break;
    case QUOTA_UNSTATED_CORES:
    case QUOTA_UNSTATED_MEMORY:
        str_addf(out,
                 " limits the %s of cards: the pod has to request "
                 "biga.dev/card-%s",
                 what[v->kind],
                 v->kind == QUOTA_UNSTATED_CORES ? "cores" : "memory-mib");
        break;
    case QUOTA_OK:
        str_add(out, " allows it");
        break;
    }
}
