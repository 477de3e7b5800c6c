/* One binding: which call to make next, and what its answer means.  A call
 * whose answer is lost may have bound the pod, or may still bind it.  Up to
 * `unsure_until_ms`, when it no longer can, a pod that is found unbound proves
 * nothing. */
#include <string.h>

#include "extender/leader/binder_private.h"
#include "extender/state/allocation.h"
#include "lib/base/jrow.h"
#include "lib/base/jwrite.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"

enum { REASON_MAX = 400 };

/* --- what the API server has -------------------------------------------- */

/* Borrowed from the answer. */
struct pod_seen {
    struct jtext uid, deleted, node, allocation;
    bool gated;
};

#define TEXT(key, how, field) JROW(key, how, jrow_text, struct pod_seen, field)
static const struct jrow annotation_rows[] = {
    TEXT("biga.dev/allocation", JROW_STRICT, allocation),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    TEXT("uid", JROW_STRICT, uid),
    TEXT("deletionTimestamp", JROW_NULLABLE, deleted),
    JROW_OBJECT("annotations", JROW_NULLABLE, annotation_rows),
    JROW_END,
};
static void see_gate(struct jscan *s, void *to)
{
    ((struct pod_seen *)to)->gated = true;
    (void)jscan_skip(s); /* a fault sticks */
}

static const struct jrow spec_rows[] = {
    TEXT("nodeName", JROW_STRICT, node),
    JROW_EACH("schedulingGates", JROW_NULLABLE, see_gate),
    JROW_END,
};
static const struct jrow pod_rows[] = {
    JROW_OBJECT("metadata", JROW_STRICT, metadata_rows),
    JROW_OBJECT("spec", JROW_STRICT, spec_rows),
    JROW_END,
};

static bool scan_pod(const struct str *json, struct pod_seen *ret_pod)
{
    struct jscan s;
    memset(ret_pod, 0, sizeof *ret_pod);
    jscan_init_kube(&s, json->data, json->size);
    return jrow_read(&s, JROW_STRICT, pod_rows, ret_pod) && jscan_end(&s) &&
           ret_pod->uid.size > 0;
}

static bool is_text(const struct jtext *t, const char *data, size_t size)
{
    cleanup_free char *text = xmalloc(t->size + 1);
    return jtext_decode(t, text) == size && memcmp(text, data, size) == 0;
}

/* --- outcomes ----------------------------------------------------------- */

static struct binding_outcome again(int64_t ms)
{
    return (struct binding_outcome){.next = BINDING_AGAIN, .ms = ms};
}

static struct binding_outcome bound(void)
{
    return (struct binding_outcome){.next = BINDING_BOUND};
}

static struct binding_outcome ends(struct binder_thread *t,
                                   enum binding_next next, const char *reason)
{
    (void)snprintf(t->reason, sizeof t->reason, "%s", reason);
    return (struct binding_outcome){.next = next, .reason = t->reason};
}

static struct binding_outcome refuse(struct binder_thread *t,
                                     const char *reason)
{
    return ends(t, BINDING_REFUSED, reason);
}

static bool is_unsure(const struct binding *b)
{
    return b->unsure_until_ms > 0;
}

/* The time for an answer is over. */
static struct binding_outcome expire(struct binder_thread *t,
                                     const struct binding *b)
{
    char reason[REASON_MAX];
    bool unknown = is_unsure(b) || b->looks;
    (void)snprintf(reason, sizeof reason, "%s%s%s",
                   unknown ? "nobody has said in time whether it is bound: "
                             "try again"
                           : "the API server did not take it in time",
                   b->why[0] ? "; the last call failed: " : "", b->why);
    return ends(t, unknown ? BINDING_UNKNOWN : BINDING_REFUSED, reason);
}

/* The binder ends. */
static struct binding_outcome give_up(struct binder_thread *t,
                                      const struct binding *b)
{
    if (!b->told && !is_unsure(b) && !b->looks)
        return refuse(t, "this replica is ending");
    return ends(t, BINDING_ABANDONED, "this replica is ending: try again");
}

/* --- calls -------------------------------------------------------------- */

static unsigned call_ms(const struct binder_thread *t, const struct binding *b)
{
    int64_t left = b->deadline_ms - clock_ms();
    int64_t most = t->binder->config.call_ms;
    if (b->told || left > most)
        return (unsigned)most;
    return left > 1 ? (unsigned)left : 1;
}

static bool may_bind(struct binder_thread *t, unsigned ms)
{
    const struct binder_config *config = &t->binder->config;
    return !config->may_bind || config->may_bind(config->ctx, (int64_t)ms);
}

static void write_path(struct binder_thread *t, const struct binding *b,
                       const char *tail)
{
    str_reset(&t->path);
    kube_path_object(&t->path, "/api/v1", b->namespace, "pods", b->name);
    str_add(&t->path, tail);
}

static void write_body(struct str *out, const struct binding *b)
{
    str_reset(out);
    str_add(out, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\","
                 "\"metadata\":{");
    jwrite_text(out, "name", b->name);
    jwrite_text(out, "namespace", b->namespace);
    jwrite_text(out, "uid", b->uid);
    if (b->allocation_size) {
        str_add(out, ",\"annotations\":{\"biga.dev/allocation\":");
        str_add_json_n(out, b->allocation, b->allocation_size);
        str_add_c(out, '}');
    }
    str_add(out, "},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\","
                 "\"name\":");
    str_add_json(out, b->node);
    str_add(out, "}}");
}

/* After a call that failed. */
static struct binding_outcome
again_later(struct binder_thread *t, struct binding *b, const struct error *err)
{
    (void)snprintf(b->why, sizeof b->why, "%s", err->text);
    int64_t asked_ms = kube_client_retry_ms(t->client);
    int64_t ms = backoff_fail(&b->backoff);
    return again(asked_ms > ms ? asked_ms : ms);
}

/* Is it certain that the API server has not bound the pod and will not? */
static bool is_definite(int result, long status)
{
    return result == -EACCES || result == -EINVAL || result == -ESTALE ||
           result == -ECONNREFUSED || (result == -EAGAIN && status == 429);
}

static struct binding_outcome look_up_next(struct binding *b)
{
    b->looks = true;
    return again(0);
}

/* What a failed call means. */
static struct binding_outcome post_failed(struct binder_thread *t,
                                          struct binding *b, int result,
                                          const struct error *err)
{
    bool definite = is_definite(result, t->answer.status) &&
                    !kube_client_resent(t->client);
    if (result == -ENOENT)
        return refuse(t, err->text);
    if (result == -EBUSY || result == -EEXIST) /* it is bound: look where */
        return look_up_next(b);
    if (!definite) {
        b->unsure_until_ms = clock_ms() + t->binder->config.call_ms;
        b->seen_unbound = false;
    }
    if (result == -EAGAIN || result == -ECONNREFUSED)
        return again_later(t, b, err); /* a second POST is harmless */
    return is_unsure(b) ? look_up_next(b) : refuse(t, err->text);
}

/* Its lease might end before the call does: soon it is renewed, or another
 * leads. */
static struct binding_outcome await_lease(struct binder_thread *t,
                                          struct binding *b)
{
    if (!may_bind(t, 1))
        return refuse(t, "not the leader any more: try again");
    (void)snprintf(b->why, sizeof b->why, "the leader's lease was not renewed");
    return again(backoff_fail(&b->backoff));
}

/* The call that makes it true. */
static struct kube_request write_request(struct binder_thread *t,
                                         const struct binding *b)
{
    write_path(t, b, b->patch ? "" : "/binding");
    if (b->patch)
        return (struct kube_request){.method = "PATCH",
                                     .path = str_text(&t->path),
                                     .type = KUBE_MERGE_PATCH,
                                     .body = b->patch,
                                     .body_size = b->patch_size};
    write_body(&t->body, b);
    return (struct kube_request){.method = "POST",
                                 .path = str_text(&t->path),
                                 .type = KUBE_JSON,
                                 .body = str_text(&t->body),
                                 .body_size = t->body.size};
}

static struct binding_outcome post(struct binder_thread *t, struct binding *b)
{
    struct error err = {0};
    unsigned ms = call_ms(t, b);
    if (!may_bind(t, ms))
        return is_unsure(b) ? look_up_next(b) : await_lease(t, b);
    struct kube_request request = write_request(t, b);
    request.timeout_ms = ms;
    b->attempts++;
    (void)failpoint("post-before-call");
    int result = kube_call(t->client, &request, &t->answer, &err);
    (void)failpoint("post-after-call");
    return result == 0 ? bound() : post_failed(t, b, result, &err);
}

/* A GET begun at `begun_ms` found the pod unbound.  A server that was stopped
 * may have our POST still unread and carry it out beside the first GET that it
 * answers, so one such answer proves nothing yet. */
static struct binding_outcome seen_unbound(struct binder_thread *t,
                                           struct binding *b, int64_t begun_ms)
{
    if (is_unsure(b) && !b->seen_unbound) {
        int64_t until_ms = clock_ms() + t->binder->config.call_ms;
        if (b->unsure_until_ms < until_ms)
            b->unsure_until_ms = until_ms;
        b->seen_unbound = true;
    }
    bool settled = begun_ms >= b->unsure_until_ms;
    if (!b->told && clock_ms() < b->deadline_ms && may_bind(t, call_ms(t, b))) {
        b->looks = false;
        return again(backoff_fail(&b->backoff));
    }
    return settled ? refuse(t, "it was not bound in time: try again")
                   : again(b->unsure_until_ms - clock_ms());
}

/* Encode the allocation of this text anew, as this release writes it; false
 * when it is none. */
static bool put_allocation(const char *data, size_t size, struct str *out)
{
    cleanup_with(allocation) struct allocation *a = NULL;
    struct error ignored;
    if (allocation_decode(data, size, &a, &ignored) < 0)
        return false;
    allocation_encode(a, out);
    return true;
}

/* Does the pod's annotation have our allocation?  Another release may have
 * encoded it in another way. */
static bool is_ours(const struct binding *b, const struct pod_seen *pod)
{
    cleanup_str struct str x = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str y = STR_INIT(STR_MAX_DEFAULT);
    if (b->allocation_size == 0 ||
        is_text(&pod->allocation, b->allocation, b->allocation_size))
        return true;
    cleanup_free char *text = xmalloc(pod->allocation.size + 1);
    size_t size = jtext_decode(&pod->allocation, text);
    return put_allocation(text, size, &x) &&
           put_allocation(b->allocation, b->allocation_size, &y) &&
           x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
}

static struct binding_outcome seen_bound(struct binder_thread *t,
                                         struct binding *b,
                                         const struct pod_seen *pod)
{
    char reason[REASON_MAX];
    bool here = is_text(&pod->node, b->node, strlen(b->node));
    if (here && is_ours(b, pod))
        return bound();
    if (here)
        (void)snprintf(reason, sizeof reason,
                       "somebody else has bound it to node %s", b->node);
    else
        (void)snprintf(reason, sizeof reason,
                       "it is bound to node %.*s already", (int)pod->node.size,
                       pod->node.data);
    return refuse(t, reason);
}

static struct binding_outcome seen(struct binder_thread *t, struct binding *b,
                                   int64_t begun_ms)
{
    static const struct error unread = {.text = "the pod could not be read"};
    struct pod_seen pod;
    if (!scan_pod(&t->answer.body, &pod))
        return again_later(t, b, &unread);
    if (!is_text(&pod.uid, b->uid, strlen(b->uid)))
        return refuse(t, "there is another pod of that name now");
    if (pod.node.size)
        return seen_bound(t, b, &pod);
    if (b->patch && !pod.gated && pod.allocation.data && is_ours(b, &pod))
        return bound();
    if (b->patch && !pod.gated)
        return refuse(t, "somebody else has opened its gate");
    if (pod.deleted.size)
        return refuse(t, "it is being deleted");
    return seen_unbound(t, b, begun_ms);
}

static struct binding_outcome look_up(struct binder_thread *t,
                                      struct binding *b)
{
    struct error err = {0};
    write_path(t, b, "");
    struct kube_request request = {.method = "GET",
                                   .path = str_text(&t->path),
                                   .timeout_ms = call_ms(t, b)};
    int64_t begun_ms = clock_ms();
    (void)failpoint("post-before-look");
    int result = kube_call(t->client, &request, &t->answer, &err);
    if (result == 0)
        return seen(t, b, begun_ms);
    if (result == -ENOENT)
        return refuse(t, "there is no such pod any more");
    return again_later(t, b, &err);
}

struct binding_outcome binding_step(struct binder_thread *t, struct binding *b)
{
    if (t->binder->stopping)
        return give_up(t, b);
    if (!b->told && clock_ms() >= b->deadline_ms)
        return expire(t, b);
    return b->looks ? look_up(t, b) : post(t, b);
}
