/* What nodes are told, how they come for a stream, and the time-outs. */
#include <errno.h>

#include "extender/relay/relay_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    NODES_MAX = 200000,   /* as many as may ask for their pods */
    ANSWER_MAX = 1 << 20, /* bytes after which the rest is told with the next */
};

struct relay_node *relay_node_find_locked(struct relay *r, const char *name)
{
    return strmap_get(&r->nodes, name);
}

/* NULL when there are too many. */
static struct relay_node *node_open_locked(struct relay *r, const char *name)
{
    struct relay_node *node = relay_node_find_locked(r, name);
    if (node || r->nodes.n >= NODES_MAX)
        return node;
    node = xcalloc(1, sizeof *node);
    node->name = xstrdup(name);
    (void)strmap_put(&r->nodes, node->name, node);
    return node;
}

void relay_node_tell_locked(struct relay_node *node)
{
    struct httpd_request *rq = steal(&node->rq);
    if (rq)
        httpd_resume(rq);
}

/* --- what a node is told ------------------------------------------------------ */

static bool is_news(const struct relay_stream *s, const char *node)
{
    return s->state == RELAY_WANTED && !s->told && strcmp(s->node, node) == 0;
}

static void feed_reply(struct httpd_request *rq, void *relay)
{
    struct relay *r = relay;
    const char *name = httpd_arg(rq, 0);
    struct str *out = httpd_reply(rq);
    bool first = true;
    str_add(out, "{\"streams\":[");
    hold_lock(&r->lock);
    struct relay_node *node = relay_node_find_locked(r, name);
    if (node && !node->gone)
        node->asked_ms = clock_ms();
    for (struct relay_stream *s = r->first; s && out->size < ANSWER_MAX;
         s = s->next) {
        if (!is_news(s, name))
            continue;
        s->told = true;
        str_addf(out, first ? "" : ",\n");
        str_add_n(out, s->told_text.data, s->told_text.size);
        first = false;
    }
    str_add(out, "]}\n");
}

/* Of a question that another one has come after: what it was told could be lost
 * with its connection. */
static void feed_nothing(struct httpd_request *rq, void *relay)
{
    (void)relay;
    str_add(httpd_reply(rq), "{\"streams\":[]}\n");
}

void relay_feed(struct relay *r, struct httpd_request *rq, int64_t wait_ms)
{
    const char *name = httpd_arg(rq, 0);
    bool waits = wait_ms > 0;
    pthread_mutex_lock(&r->lock);
    struct relay_node *node = node_open_locked(r, name);
    for (const struct relay_stream *s = r->first; s && waits; s = s->next)
        waits = !is_news(s, name);
    if (node) {
        node->asked_ms = clock_ms();
        node->gone = false;
    }
    if (node && node->rq) {
        httpd_then(node->rq, feed_nothing, r);
        relay_node_tell_locked(node);
    }
    waits = waits && node && !r->quiet;
    if (waits) {
        node->rq = rq;
        node->due_ms = clock_ms() + wait_ms;
        httpd_then(rq, feed_reply, r);
        httpd_suspend(rq);
        relay_due_locked(r, node->due_ms);
    }
    pthread_mutex_unlock(&r->lock);
    if (!waits)
        feed_reply(rq, r);
}

/* --- a node comes for a stream -------------------------------------------------- */

static struct relay_stream *find_locked(struct relay *r, const char *node,
                                        const char *id)
{
    for (struct relay_stream *s = r->first; s; s = s->next)
        if (strcmp(s->id, id) == 0 && strcmp(s->node, node) == 0)
            return s;
    return NULL;
}

/* The stream, which is the node's from then on; NULL, and answered, when it is
 * not to be had. */
static struct relay_stream *take(struct relay *r, struct httpd_request *rq)
{
    const char *node = httpd_arg(rq, 0), *id = httpd_arg(rq, 1);
    hold_lock(&r->lock);
    struct relay_stream *s = find_locked(r, node, id);
    if (s && s->state == RELAY_WANTED) {
        s->state = RELAY_TAKEN;
        s->told = s->carried = true;
        return s;
    }
    if (s)
        httpd_fail(rq, 409, "stream \"%.64s\" was taken already, or is over",
                   id);
    else
        httpd_fail(rq, 404,
                   "no stream \"%.64s\" waits for node %.253s: its client has "
                   "gone, or it took longer than %d s",
                   id, node, RELAY_COME_MS / 1000);
    return NULL;
}

void relay_take(struct relay *r, struct httpd_request *rq)
{
    if (!httpd_upgrade_asked(rq, "biga-stream"))
        return;
    struct relay_stream *s = take(r, rq);
    if (!s)
        return;
    s->node_side = httpd_upgrade(rq, "biga-stream");
    hold_lock(&r->lock);
    if (s->node_side) {
        relay_news_locked(s);
        return;
    }
    s->carried = false;
    relay_answer_locked(s, 503, "full",
                        "there are too many streams of nodes already");
}

/* --- time-outs ---------------------------------------------------------------- */

void relay_due_locked(struct relay *r, int64_t due_ms)
{
    if (due_ms >= r->timer_due_ms)
        return;
    r->timer_due_ms = due_ms;
    clock_wake_one(&r->timing);
}

static void serve_wanted_locked(struct relay *r, int64_t now_ms,
                                int64_t *ret_due_ms)
{
    for (struct relay_stream *s = r->first; s; s = s->next) {
        if (s->state != RELAY_WANTED)
            continue;
        if (s->due_ms <= now_ms)
            relay_answer_locked(
                s, 504, "late", "node %s %s within %d s", s->node,
                s->told ? "was told, and did not come" : "did not ask",
                RELAY_COME_MS / 1000);
        else if (s->due_ms < *ret_due_ms)
            *ret_due_ms = s->due_ms;
    }
}

static void serve_nodes_locked(struct relay *r, int64_t now_ms,
                               int64_t *ret_due_ms)
{
    size_t pos = 0;
    for (struct relay_node *n; (n = strmap_next(&r->nodes, &pos));) {
        if (!n->rq)
            continue;
        if (n->due_ms <= now_ms)
            relay_node_tell_locked(n);
        else if (n->due_ms < *ret_due_ms)
            *ret_due_ms = n->due_ms;
    }
}

void *relay_timer_run(void *relay)
{
    struct relay *r = relay;
    thread_name("stream times", NULL);
    hold_lock(&r->lock);
    while (!r->stopping) {
        int64_t now_ms = clock_ms(), due_ms = INT64_MAX;
        serve_wanted_locked(r, now_ms, &due_ms);
        serve_nodes_locked(r, now_ms, &due_ms);
        if (r->carrier_due_ms <= now_ms) {
            r->carrier_due_ms = INT64_MAX;
            relay_wake(r);
        } else if (r->carrier_due_ms < due_ms) {
            due_ms = r->carrier_due_ms;
        }
        r->timer_due_ms = due_ms;
        (void)clock_wait(&r->timing, &r->lock, due_ms);
    }
    return NULL;
}
