#include "extender/state/quota.h"

#include <inttypes.h>
#include <string.h>

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
                         const struct namespace_use *before,
                         const struct namespace_use *after,
                         struct quota_verdict *ret_verdict)
{
    const struct policy_quota *quota = policy_find_quota(s->policy, namespace);
    struct quota_verdict v = {.kind = QUOTA_OK};
    struct namespace_use use;
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

static bool are_allowed(const struct snapshot *s, const struct demand *pod,
                        struct quota_verdict *verdict)
{
    if (!pod->devices.text[0])
        return true;
    const char *may = policy_find_devices(s->policy, pod->namespace);
    if (device_sets_have(may, pod->devices.text))
        return true;
    verdict->kind = QUOTA_DEVICES;
    verdict->devices = pod->devices;
    memcpy(verdict->allowed.text, may, strlen(may));
    return false;
}

static void add_demand(struct namespace_use *to, const struct demand *pod)
{
    struct namespace_use use = {
        .cards = pod->cards,
        .cores = (uint64_t)pod->cards * pod->card_cores,
        .memory_mib = (uint64_t)pod->cards * pod->card_memory_mib,
    };
    namespace_use_add(to, &use);
}

/* All pairs of the job of which nobody has a place. */
static void add_job(const struct snapshot *s, const struct demand *pod,
                    struct namespace_use *to)
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
                         struct namespace_use *ret_before,
                         struct namespace_use *ret_after)
{
    *ret_before = *ret_after = (struct namespace_use){0};
    if (!former)
        return;
    namespace_use_count(s->allocations, former->pair_key, NULL, NULL,
                        ret_before);
    namespace_use_count(s->allocations, former->pair_key, former, NULL,
                        ret_after);
}

void quota_judge(const struct snapshot *s, const struct demand *pod,
                 const struct allocation *former,
                 struct quota_verdict *ret_verdict)
{
    const struct policy_quota *quota = policy_find_quota(s->policy,
                                                         pod->namespace);
    struct namespace_use before, after;
    *ret_verdict = (struct quota_verdict){.kind = QUOTA_OK};
    if (pod->role == ROLE_NONE || !are_allowed(s, pod, ret_verdict) || !quota)
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
    struct namespace_use before, after, more;
    *ret_verdict = (struct quota_verdict){.kind = QUOTA_OK};
    if (!are_allowed(s, pod, ret_verdict) || !quota)
        return;
    ret_verdict->kind = judge_unstated(s, quota, pod);
    if (ret_verdict->kind != QUOTA_OK)
        return;
    bool joined = former && strcmp(former->pair_key, fresh->pair_key) == 0;
    count_former(s, joined ? NULL : former, &before, &after);
    namespace_use_count(s->allocations, fresh->pair_key, NULL, NULL, &more);
    namespace_use_add(&before, &more);
    namespace_use_count(s->allocations, fresh->pair_key, joined ? former : NULL,
                        fresh, &more);
    namespace_use_add(&after, &more);
    judge_change(s, pod->namespace, &before, &after, ret_verdict);
}

static void explain_devices(const char *namespace,
                            const struct quota_verdict *v, struct str *out)
{
    str_addf(out, "namespace %s may have ", namespace);
    if (v->allowed.text[0])
        str_addf(out, "the devices \"%s\"", v->allowed.text);
    else
        str_add(out, "no devices");
    str_addf(out,
             " of cards, and \"%s\" is asked for: its operator would have to "
             "name them under \"devices\" in the policy file",
             v->devices.text);
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
    if (v->kind == QUOTA_DEVICES) {
        explain_devices(namespace, v, out);
        return;
    }
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
    case QUOTA_DEVICES:
    case QUOTA_OK:
        str_add(out, " allows it");
        break;
    }
}
