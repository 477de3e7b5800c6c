/* Carries out one decided bind through the binder, or gives its allocation
 * back. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/alignment.h"
#include "extender/leader/binder.h"
#include "extender/leader/binds_private.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

/* One bind under way: lives until its outcome is known, which may be after its
 * request was answered. */
struct posted {
    struct binding binding;
    struct binds *binds;
    struct pod_bind *request; /* NULL: it was answered */
    struct demand demand;
    char *allocation;
    char *patch; /* NULL: none */
    uint64_t number;
    bool created;
};

static void copy(char *dst, size_t cap, const char *text)
{
    size_t size = strnlen(text, cap - 1);
    memcpy(dst, text, size);
    dst[size] = '\0';
}

/* --- Events --------------------------------------------------------------- */

/* A pod has been placed, and how well. */
static void tell_placed(const struct posted *p)
{
    static const enum events_reason reasons[] = {
        [ALIGNMENT_GOOD] = EVENTS_ALIGNED,
        [ALIGNMENT_DEGRADED] = EVENTS_ALIGNMENT_DEGRADED,
        [ALIGNMENT_NONE] = EVENTS_UNALIGNED};
    const struct binds_config *config = &p->binds->config;
    cleanup_str struct str text = STR_INIT(EVENTS_TEXT_MAX);
    if (config->bound)
        config->bound(config->ctx, &p->demand);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(config->writer);
    const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                      p->binding.uid);
    if (!a || (a->demand.role != ROLE_HOST && a->demand.role != ROLE_XPU))
        return;
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    const struct node *node = index == NODE_NONE
                                  ? NULL
                                  : snapshot_node(s, (size_t)index);
    alignment_tell(a, &text);
    config->tell(config->ctx, &p->demand, reasons[alignment_judge(node, a)],
                 str_text(&text));
}

static void tell_refused(const struct binds *x, const struct demand *pod,
                         const char *reason)
{
    if (pod->role != ROLE_NONE)
        x->config.tell(x->config.ctx, pod, EVENTS_REFUSED, reason);
}

/* --- giving back ---------------------------------------------------------- */

/* WRITER_FREE with the texts it points to. */
struct release {
    struct writer_op op;
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1];
    char uid[DEMAND_UID_MAX + 1];
    struct binds_place place;
};

static void release_done(struct writer_op *op)
{
    free(op->ctx);
}

/* The pod whose place is given back. */
struct owner {
    struct writer *writer;
    const char *namespace, *name, *uid;
};

static void give_back(void *ctx, const struct binds_place *place)
{
    const struct owner *owner = ctx;
    struct release *r = xcalloc(1, sizeof *r);
    copy(r->namespace, sizeof r->namespace, owner->namespace);
    copy(r->name, sizeof r->name, owner->name);
    copy(r->uid, sizeof r->uid, owner->uid);
    r->place = *place;
    r->op = (struct writer_op){.kind = WRITER_FREE,
                               .namespace = r->namespace,
                               .pod = r->name,
                               .uid = r->uid,
                               .node = r->place.node,
                               .number = r->place.number,
                               .done = release_done,
                               .ctx = r};
    writer_post(owner->writer, &r->op);
}

static void posted_end(struct posted *p, enum binds_end end)
{
    struct owner owner = {p->binds->config.writer, p->binding.namespace,
                          p->binding.name, p->binding.uid};
    struct binds_result r = {.end = end, .place.number = p->number};
    memcpy(r.place.node, p->binding.node, sizeof r.place.node);
    if (end == BINDS_REFUSED && p->number == 0) /* a pod without a role has
                                                 * no allocation */
        r.end = BINDS_NOTHING;
    binds_finish(p->binds, p->binding.uid, &r, give_back, &owner);
}

static void posted_free(struct posted *p)
{
    free(p->allocation);
    free(p->patch);
    free(p);
}

/* --- answering ------------------------------------------------------------ */

static void answer(struct posted *p, const char *result, const char *error)
{
    struct pod_bind *request = steal(&p->request);
    request->done(request, result, error);
}

static void answer_refusal(struct posted *p, const char *result,
                           const char *reason)
{
    struct error err = {0};
    (void)error_set(&err, EBUSY, "pod %s/%s: %s", p->binding.namespace,
                    p->binding.name, reason);
    answer(p, result, err.text);
}

static void post_done(struct binding *binding, enum binder_outcome outcome,
                      const char *reason)
{
    struct posted *p = binding->ctx;
    switch (outcome) {
    case BINDER_BOUND:
        posted_end(p, BINDS_BOUND);
        if (p->created)
            tell_placed(p);
        answer(p,
               p->demand.role == ROLE_NONE ? "foreign"
               : p->created                ? "bound"
                                           : "repeated",
               "");
        break;
    case BINDER_REFUSED:
        posted_end(p, BINDS_REFUSED);
        tell_refused(p->binds, &p->demand, reason);
        answer_refusal(p, "refused", reason);
        break;
    case BINDER_UNKNOWN:
        answer_refusal(p, "unknown", reason);
        return; /* kept until post_settled() */
    }
    posted_free(p);
}

static void post_settled(struct binding *binding, enum binder_outcome outcome)
{
    struct posted *p = binding->ctx;
    static const char *const words[] = {[BINDER_BOUND] = "bound",
                                        [BINDER_REFUSED] = "refused",
                                        [BINDER_UNKNOWN] = "unknown"};
    static const enum binds_end ends[] = {[BINDER_BOUND] = BINDS_BOUND,
                                          [BINDER_REFUSED] = BINDS_REFUSED,
                                          [BINDER_UNKNOWN] = BINDS_NOTHING};
    log_event(LOG_INFO, "bind-settled", "namespace", binding->namespace, "pod",
              binding->name, "node", binding->node, "result", words[outcome],
              NULL);
    if (outcome == BINDER_UNKNOWN) /* the Lease must not be given back early */
        p->binds->config.unsure(p->binds->config.ctx);
    posted_end(p, ends[outcome]);
    if (outcome == BINDER_BOUND && p->created)
        tell_placed(p);
    posted_free(p);
}

/* --- asked ---------------------------------------------------------------- */

void binds_post(struct binds *x, struct pod_bind *b)
{
    struct posted *p = xcalloc(1, sizeof *p);
    struct binding *to = &p->binding;
    p->binds = x;
    p->request = b;
    p->demand = *b->demand;
    p->allocation = xmemdup(b->allocation, b->allocation_size);
    p->number = b->number;
    p->created = b->created;
    copy(to->namespace, sizeof to->namespace, b->namespace);
    copy(to->name, sizeof to->name, b->name);
    copy(to->uid, sizeof to->uid, b->uid);
    copy(to->node, sizeof to->node, b->node);
    to->allocation = p->allocation;
    to->allocation_size = b->allocation_size;
    if (b->patch)
        to->patch = p->patch = xmemdup(b->patch, b->patch_size);
    to->patch_size = b->patch_size;
    to->repeated = b->demand->role != ROLE_NONE && !b->created;
    to->done = post_done;
    to->settled = post_settled;
    to->ctx = p;
    if (binder_post(x->config.binder, to) == 0)
        return;
    posted_end(p, BINDS_REFUSED);
    answer_refusal(p, "error",
                   "too many binds wait for the API server: try again");
    posted_free(p);
}

void binds_end(struct binds *x, const char *uid)
{
    const struct binds_result bound = {.end = BINDS_BOUND};
    binds_finish(x, uid, &bound, give_back, NULL);
}

void binds_refuse(struct binds *x, const struct pod_bind *b, const char *reason)
{
    struct owner owner = {x->config.writer, b->namespace, b->name, b->uid};
    const struct binds_result nothing = {.end = BINDS_NOTHING};
    binds_finish(x, b->uid, &nothing, give_back, &owner);
    if (reason)
        tell_refused(x, b->demand, reason);
}
