/* To the extender:        PUT, and again
 * To the API server:      NODE    whose the ConfigMap is
 *                         PATCH   it is there, mostly
 *                         CREATE  it is not
 *                         what changes is patched, and now and then all is
 *                         done again from NODE, which may be another by then */
#include "advertiser/achieved/carrier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/publish/kube_objects.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

enum state { PUT, NODE, PATCH, CREATE, WITHDRAW, DONE, STATES };

struct carrier {
    struct carrier_config config;
    struct retry retry;
    enum state state;
    int64_t due;
    struct str report, sent; /* as it is, and as the request has it */
    bool arrived;            /* `sent` is there */
    bool asked;              /* a request waits for its answer */
    bool maybe_there;        /* something of ours may be there */
    char node_uid[KUBE_OBJECTS_TEXT_MAX + 1];
};

static enum state first_state(const struct carrier *c)
{
    return c->config.namespace ? NODE : PUT;
}

struct carrier *carrier_create(const struct carrier_config *config,
                               uint64_t seed)
{
    struct carrier *c = xcalloc(1, sizeof *c);
    c->config = *config;
    retry_init(&c->retry, config->backoff_min_ms, config->backoff_max_ms, seed);
    c->state = first_state(c);
    c->due = PUBLISH_NEVER;
    str_init(&c->report, CARRIER_BODY_MAX);
    str_init(&c->sent, CARRIER_BODY_MAX);
    return c;
}

void carrier_destroy(struct carrier *c)
{
    if (!c)
        return;
    str_fini(&c->report);
    str_fini(&c->sent);
    free(c);
}

static bool is_sent(const struct carrier *c)
{
    return c->report.size == c->sent.size &&
           (c->sent.size == 0 ||
            memcmp(c->report.data, c->sent.data, c->sent.size) == 0);
}

/* While tries fail the next is due when it is.  Else the Node is, as it was not
 * long ago. */
static void hurry(struct carrier *c, int64_t now_ms)
{
    if (c->retry.backoff.failures > 0 && c->due != PUBLISH_NEVER)
        return;
    c->due = now_ms;
    if (c->state == NODE && *c->node_uid)
        c->state = PATCH;
}

void carrier_tell(struct carrier *c, const char *report, size_t size,
                  int64_t now_ms)
{
    assert(!c->asked);
    if (c->state >= WITHDRAW)
        return;
    str_reset(&c->report);
    str_add_n(&c->report, report, size);
    if (!c->arrived || !is_sent(c))
        hurry(c, now_ms);
}

void carrier_withdraw(struct carrier *c, int64_t now_ms)
{
    assert(!c->asked);
    c->state = c->maybe_there ? WITHDRAW : DONE;
    c->due = c->maybe_there ? now_ms : PUBLISH_NEVER;
}

int64_t carrier_due(const struct carrier *c)
{
    return c->due;
}

/* --- what to send --------------------------------------------------------- */

/* Node names and namespaces are DNS names: nothing in them needs escaping. */
static void set_path(const struct carrier *c, struct publish_request *rq)
{
    const char *node = c->config.node, *namespace = c->config.namespace;
    if (!namespace)
        (void)snprintf(rq->path, sizeof rq->path, "/v1/nodes/%s/achieved",
                       node);
    else if (c->state == NODE)
        (void)snprintf(rq->path, sizeof rq->path, "/api/v1/nodes/%s", node);
    else
        (void)snprintf(rq->path, sizeof rq->path,
                       "/api/v1/namespaces/%s/configmaps%s%s", namespace,
                       c->state == CREATE ? "" : "/",
                       c->state == CREATE ? "" : node);
}

static void write_object(const struct carrier *c, struct str *out)
{
    jwrite_object(out, NULL);
    if (c->state == CREATE) {
        jwrite_text(out, "apiVersion", "v1");
        jwrite_text(out, "kind", "ConfigMap");
    }
    jwrite_object(out, "metadata");
    if (c->state == CREATE) {
        jwrite_text(out, "name", c->config.node);
        jwrite_text(out, "namespace", c->config.namespace);
    }
    jwrite_object(out, "labels");
    jwrite_text(out, CARRIER_LABEL, CARRIER_LABEL_VALUE);
    jwrite_end_object(out);
    jwrite_array(out, "ownerReferences");
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "v1");
    jwrite_text(out, "kind", "Node");
    jwrite_text(out, "name", c->config.node);
    jwrite_text(out, "uid", c->node_uid);
    jwrite_end_object(out);
    jwrite_end_array(out);
    jwrite_end_object(out);
    jwrite_object(out, "data");
    jwrite_text(out, CARRIER_KEY, str_text(&c->sent));
    jwrite_end_object(out);
    jwrite_end_object(out);
}

/* A node of which nothing is known. */
static void write_nothing(const struct carrier *c, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "node", c->config.node);
    jwrite_array(out, "pods");
    jwrite_end_array(out);
    jwrite_end_object(out);
}

static void take_report(struct carrier *c)
{
    str_reset(&c->sent);
    str_add_n(&c->sent, str_text(&c->report), c->report.size);
    c->arrived = false;
}

bool carrier_next(struct carrier *c, int64_t now_ms,
                  struct publish_request *ret_request)
{
    static const char *const methods[STATES] = {
        [PUT] = "PUT",     [NODE] = "GET",        [PATCH] = "PATCH",
        [CREATE] = "POST", [WITHDRAW] = "DELETE",
    };
    struct publish_request *rq = ret_request;
    assert(!c->asked);
    if (now_ms < c->due)
        return false;
    bool nothing = c->state == WITHDRAW && !c->config.namespace;
    rq->method = nothing ? "PUT" : methods[c->state];
    rq->merge_patch = c->state == PATCH;
    set_path(c, rq);
    str_reset(&rq->body);
    if (c->state == PUT || c->state == PATCH || c->state == CREATE)
        take_report(c);
    if (c->state == PUT)
        str_add_n(&rq->body, str_text(&c->sent), c->sent.size);
    else if (c->state == PATCH || c->state == CREATE)
        write_object(c, &rq->body);
    else if (nothing)
        write_nothing(c, &rq->body);
    c->asked = true;
    return true;
}

/* --- what the answer means ------------------------------------------------ */

static const char *hint_of(const struct carrier *c, long status)
{
    if (status == 404 && c->state == PUT)
        return "the extender is older than this advertiser: bring it to the "
               "same version";
    if (status == 404 && c->state == NODE)
        return "no such Node: create it, or name this host's with --node";
    if (status == 404 && c->state == CREATE)
        return "create the namespace of the heartbeats, as deploy/ does";
    if (status == 403 && c->config.namespace)
        return "allow us to get nodes, and to create, patch and delete "
               "configmaps in the namespace of the heartbeats, as the role "
               "biga-advertiser-heartbeats of deploy/ does";
    return NULL;
}

static void fail(struct carrier *c, int64_t now_ms,
                 const struct publish_answer *a)
{
    const struct retry_event event = {.node = c->config.node,
                                      .state = CARRIER_LABEL_VALUE,
                                      .hint = hint_of(c, a->status),
                                      .status = a->status,
                                      .error = a->error};
    c->due = now_ms + retry_fail(&c->retry, &event);
    c->state = first_state(c);
}

static void go_on(struct carrier *c, enum state state, int64_t now_ms)
{
    c->state = state;
    c->due = now_ms;
}

static void answer_node(struct carrier *c, int64_t now_ms,
                        const struct publish_answer *a)
{
    struct kube_objects node;
    struct error err = {0};
    if (a->status == 200 &&
        kube_objects_read(a->body, a->body_size, &node, &err) == 0) {
        memcpy(c->node_uid, node.uid, sizeof c->node_uid);
        go_on(c, PATCH, now_ms);
        return;
    }
    struct publish_answer bad = *a;
    if (a->status == 200)
        bad.error = err.text;
    fail(c, now_ms, &bad);
}

void carrier_answer(struct carrier *c, int64_t now_ms,
                    const struct publish_answer *a)
{
    bool good = a->status >= 200 && a->status < 300;
    assert(c->asked);
    c->asked = false;
    c->maybe_there |= c->state != NODE && (good || a->status == 0);
    if (c->state == WITHDRAW) {
        if (!good && a->status != 404)
            log_event(LOG_WARN, "withdraw-failed", "node", c->config.node,
                      "state", CARRIER_LABEL_VALUE, "error",
                      a->error ? a->error : "", NULL);
        go_on(c, DONE, PUBLISH_NEVER);
    } else if (c->state == NODE) {
        answer_node(c, now_ms, a);
    } else if (c->state == PATCH && a->status == 404) {
        go_on(c, CREATE, now_ms);
    } else if (c->state == CREATE && a->status == 409) {
        go_on(c, PATCH, now_ms); /* somebody was faster */
    } else if (!good) {
        fail(c, now_ms, a);
    } else {
        retry_succeed(&c->retry, c->config.node);
        c->arrived = true;
        go_on(c, first_state(c), now_ms + c->config.again_ms);
    }
}
