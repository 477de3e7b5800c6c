#include <string.h>

#include "lib/grpc/grpc_private.h"
#include "lib/grpc/grpc_pump.h"
#include "lib/http/http_curl.h"
#include "lib/io/clock.h"

enum {
    FLOW_BUFFER = 4 << 10, /* bytes of a message that libcurl gives at once */
    /* Cleartext: as long after the last bytes libcurl may have some that it
     * has read and not given, and is asked again and again. */
    PLAIN_MS = 50,
};

struct grpc_flow {
    struct grpc_hub *h;
    struct grpc_flow *next;
    struct grpc *g;
    struct grpc_task task;
    struct str message;
    struct grpc_flow_config what;
};

struct grpc_hub {
    CURLM *multi;
    struct grpc_flow *flows;
    size_t n_flows;
    bool news;        /* a stream has ended */
    int64_t plain_ms; /* when bytes last came on any of them */
};

struct grpc_hub *grpc_hub_create(void)
{
    struct grpc_hub *h = xcalloc(1, sizeof *h);
    grpc_init();
    h->multi = curl_multi_init();
    if (!h->multi)
        abort(); /* out of memory, as x*alloc does */
    return h;
}

void grpc_hub_destroy(struct grpc_hub *h)
{
    if (!h)
        return;
    while (h->flows)
        grpc_hub_close(h, h->flows);
    (void)curl_multi_cleanup(h->multi);
    free(h);
}

/* --- one stream ----------------------------------------------------------- */

static void flow_free(struct grpc_flow *f)
{
    grpc_destroy(f->g);
    str_fini(&f->message);
    free(f);
}

/* Out of the hub; its connection is closed. */
static void take_out(struct grpc_hub *h, struct grpc_flow *f)
{
    struct grpc_flow **at = &h->flows;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    h->n_flows--;
    (void)curl_multi_remove_handle(h->multi, f->g->curl);
    grpc_task_unset(&f->task);
}

void grpc_hub_close(struct grpc_hub *h, struct grpc_flow *flow)
{
    take_out(h, flow);
    flow_free(flow);
}

static void end(struct grpc_hub *h, struct grpc_flow *f, CURLcode code)
{
    struct grpc_end how;
    struct error err = {0};
    take_out(h, f);
    int r = grpc_task_end(&f->task, code, &how, &err);
    h->news = true;
    f->what.ended(f->what.ctx, r, &how, &err);
    flow_free(f);
}

static CURLcode set_flow(struct grpc_flow *f)
{
    CURL *curl = f->g->curl;
    CURLcode code = grpc_task_set(&f->task);
    HTTP_CURL_SET(code, curl, CURLOPT_PRIVATE, f);
    HTTP_CURL_SET(code, curl, CURLOPT_BUFFERSIZE, (long)FLOW_BUFFER);
    HTTP_CURL_SET(code, curl, CURLOPT_FRESH_CONNECT, 1L);
    HTTP_CURL_SET(code, curl, CURLOPT_FORBID_REUSE, 1L);
    return code;
}

static struct grpc_flow *flow_new(struct grpc_hub *h, struct grpc *g,
                                  const struct grpc_flow_config *what)
{
    struct grpc_flow *f = xcalloc(1, sizeof *f);
    f->h = h;
    f->g = g;
    f->what = *what;
    f->message = STR_INIT(g->config.reply_max);
    f->task.g = g;
    f->task.method = what->method;
    f->task.request = what->request;
    f->task.request_size = what->size;
    f->task.frames.message = &f->message;
    f->task.frames.visit = what->visit;
    f->task.frames.ctx = what->ctx;
    f->task.brief = true;
    return f;
}

int grpc_hub_open(struct grpc_hub *h, const struct grpc_config *config,
                  const struct grpc_flow_config *what,
                  struct grpc_flow **ret_flow, struct error *err)
{
    struct grpc *g = NULL;
    if (h->n_flows == GRPC_HUB_MAX)
        return error_set(err, ENOSPC, "%s: there are %d streams already",
                         config->endpoint, GRPC_HUB_MAX);
    int r = grpc_create(config, &g, err);
    if (r < 0)
        return r;
    struct grpc_flow *f = flow_new(h, g, what);
    grpc_task_init(&f->task);
    CURLcode code = f->task.fault ? CURLE_ABORTED_BY_CALLBACK : set_flow(f);
    if (code == CURLE_OK &&
        curl_multi_add_handle(h->multi, g->curl) != CURLM_OK)
        code = CURLE_FAILED_INIT;
    if (code != CURLE_OK) {
        struct grpc_end ignored;
        r = grpc_task_end(&f->task, code, &ignored, err);
        grpc_task_unset(&f->task);
        flow_free(f);
        return r;
    }
    f->next = h->flows;
    h->flows = f;
    h->n_flows++;
    *ret_flow = f;
    return 0;
}

bool grpc_flow_stands(const struct grpc_flow *flow)
{
    return flow->task.connected && flow->task.sent >= flow->task.request_size;
}

/* --- all of them ---------------------------------------------------------- */

static void take_ended(struct grpc_hub *h)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
        char *f = NULL;
        CURLcode code = m->data.result;
        if (m->msg == CURLMSG_DONE &&
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &f) ==
                CURLE_OK &&
            f)
            end(h, (struct grpc_flow *)(void *)f, code);
    }
}

static void perform(struct grpc_hub *h)
{
    int running;
    for (struct grpc_flow *f = h->flows; f; f = f->next)
        if (f->g->pump)
            grpc_pump_turn(f->g->pump);
    CURLMcode code = curl_multi_perform(h->multi, &running);
    if (code == CURLM_OUT_OF_MEMORY)
        abort(); /* as x*alloc does */
    take_ended(h);
    for (struct grpc_flow *f = h->flows, *next; f; f = next) {
        next = f->next;
        if (!grpc_task_may_go_on(&f->task))
            end(h, f, CURLE_ABORTED_BY_CALLBACK);
    }
}

/* For sockets that libcurl does not know. */
static unsigned fill_pumps(const struct grpc_hub *h,
                           struct curl_waitfd *ret_fds)
{
    unsigned n = 0;
    for (const struct grpc_flow *f = h->flows; f; f = f->next)
        if (f->g->pump) {
            grpc_pump_poll(f->g->pump, ret_fds + n);
            n += GRPC_PUMP_FDS;
        }
    return n;
}

static bool has_plain(const struct grpc_hub *h)
{
    for (const struct grpc_flow *f = h->flows; f; f = f->next)
        if (!f->g->to.tls)
            return true;
    return false;
}

void grpc_hub_turn(struct grpc_hub *h, unsigned ms)
{
    struct curl_waitfd fds[GRPC_HUB_MAX * GRPC_PUMP_FDS];
    int n_ready = 0;
    h->news = false;
    perform(h);
    if (h->news)
        return;
    bool plain = has_plain(h);
    int wait = ms < INT_MAX ? (int)ms : INT_MAX;
    if (plain && clock_ms() - h->plain_ms < PLAIN_MS && wait > GRPC_PLAIN_MS)
        wait = GRPC_PLAIN_MS;
    unsigned n = fill_pumps(h, fds);
    (void)curl_multi_poll(h->multi, fds, n, wait, &n_ready);
    if (n_ready > 0 && plain)
        h->plain_ms = clock_ms();
    perform(h);
}

void grpc_hub_wake(struct grpc_hub *h)
{
    (void)curl_multi_wakeup(h->multi);
}
