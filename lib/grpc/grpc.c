#include "lib/grpc/grpc.h"

#include "lib/grpc/grpc_private.h"
#include "lib/grpc/grpc_pump.h"
#include "lib/grpc/grpc_round.h"

static pthread_once_t init_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* again by easy_init */
}

void grpc_init(void)
{
    (void)pthread_once(&init_once, init_curl);
}

int grpc_create(const struct grpc_config *config, struct grpc **ret_grpc,
                struct error *err)
{
    cleanup_with(grpc) struct grpc *g = xcalloc(1, sizeof *g);
    grpc_init();
    g->config = *config;
    (void)pthread_mutex_init(&g->lock, NULL);
    for (size_t i = 0; i < GRPC_FDS_MAX; i++)
        g->fds[i] = -1;
    int r = grpc_endpoint_read(config, &g->to, err);
    if (r < 0)
        return r;
    if (g->config.reply_max == 0 || g->config.reply_max > GRPC_REPLY_MAX)
        g->config.reply_max = GRPC_REPLY_MAX;
    g->curl = curl_easy_init();
    CURLcode code = g->curl ? grpc_task_set_handle(g) : CURLE_FAILED_INIT;
    if (code != CURLE_OK)
        return error_set(err, EIO, "%s: libcurl: %s", config->endpoint,
                         curl_easy_strerror(code));
    *ret_grpc = steal(&g);
    return 0;
}

void grpc_reconnect(struct grpc *g)
{
    pthread_mutex_lock(&g->lock);
    CURLM *multi = steal(&g->multi);
    pthread_mutex_unlock(&g->lock);
    if (multi)
        (void)curl_multi_cleanup(multi); /* nothing is in it */
}

static void wake(struct grpc *g)
{
    hold_lock(&g->lock);
    if (g->round)
        grpc_round_wake(g->round);
    else if (g->multi)
        (void)curl_multi_wakeup(g->multi);
}

void grpc_cancel(struct grpc *g)
{
    atomic_store(&g->cancelled, true);
    wake(g);
}

void grpc_interrupt(struct grpc *g)
{
    atomic_store(&g->interrupted, true);
    wake(g);
}

void grpc_resume(struct grpc *g)
{
    atomic_store(&g->interrupted, false);
}

void grpc_destroy(struct grpc *g)
{
    if (!g)
        return;
    grpc_reconnect(g);
    curl_easy_cleanup(g->curl); /* NULL allowed */
    free(g->to.base);
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
}

/* --- a call --------------------------------------------------------------- */

static CURLcode code_of(CURLM *multi)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(multi, &left));)
        if (m->msg == CURLMSG_DONE)
            return m->data.result;
    return CURLE_RECV_ERROR; /* there is always one when none runs */
}

static void make_multi(struct grpc *g)
{
    hold_lock(&g->lock);
    if (g->multi)
        return;
    g->multi = curl_multi_init();
    if (!g->multi)
        abort(); /* out of memory, as x*alloc does */
    (void)curl_multi_setopt(g->multi, CURLMOPT_MAXCONNECTS, 1L);
}

CURLcode grpc_transfer_begin(struct grpc_task *t)
{
    struct grpc *g = t->g;
    CURLcode code = grpc_task_set(t);
    make_multi(g);
    if (code != CURLE_OK)
        return code;
    return curl_multi_add_handle(g->multi, g->curl) == CURLM_OK
               ? CURLE_OK
               : CURLE_FAILED_INIT;
}

bool grpc_transfer_go_on(struct grpc_task *t, CURLcode *ret_code)
{
    CURLM *multi = t->g->multi;
    int running = 1;
    CURLMcode code = curl_multi_perform(multi, &running);
    bool going = code == CURLM_OK && running > 0;
    if (going && grpc_task_may_go_on(t))
        return true;
    *ret_code = going              ? CURLE_ABORTED_BY_CALLBACK
                : code == CURLM_OK ? code_of(multi)
                                   : CURLE_OUT_OF_MEMORY;
    return false;
}

void grpc_transfer_end(struct grpc_task *t)
{
    /* of one that was not added, too */
    (void)curl_multi_remove_handle(t->g->multi, t->g->curl);
    grpc_task_unset(t);
}

int grpc_transfer_judge(struct grpc_task *t, CURLcode code,
                        struct grpc_end *ret_end, struct error *err)
{
    int r = grpc_task_end(t, code, ret_end, err);
    if (code != CURLE_OK || !t->g->to.tls || (r < 0 && r != -EREMOTEIO))
        grpc_reconnect(t->g);
    return r;
}

static void wait_for(const struct grpc_task *t)
{
    struct grpc *g = t->g;
    struct curl_waitfd fds[GRPC_PUMP_FDS];
    if (g->pump)
        grpc_pump_poll(g->pump, fds);
    /* a body that comes is read without a wait by the next perform */
    (void)curl_multi_poll(g->multi, fds, g->pump ? GRPC_PUMP_FDS : 0,
                          grpc_task_poll_ms(t), NULL);
}

/* Until the transfer has ended, or must. */
static CURLcode run(struct grpc_task *t)
{
    struct grpc *g = t->g;
    CURLcode code;
    for (;;) {
        if (g->pump)
            grpc_pump_turn(g->pump);
        if (!grpc_transfer_go_on(t, &code))
            return code;
        wait_for(t);
    }
}

static CURLcode transfer(struct grpc_task *t)
{
    CURLcode code = grpc_transfer_begin(t);
    if (code == CURLE_OK)
        code = run(t);
    grpc_transfer_end(t);
    return code;
}

static int perform(struct grpc_task *t, struct grpc_end *ret_end,
                   struct error *err)
{
    grpc_task_init(t);
    CURLcode code = t->fault ? CURLE_ABORTED_BY_CALLBACK : transfer(t);
    if (grpc_task_stale(t, code)) {
        grpc_reconnect(t->g);
        t->connected = false;
        code = transfer(t);
    }
    return grpc_transfer_judge(t, code, ret_end, err);
}

int grpc_call(struct grpc *g, const char *method, const void *request,
              size_t size, unsigned deadline_ms, struct str *ret_reply,
              struct grpc_end *ret_end, struct error *err)
{
    struct grpc_task t = {
        .g = g,
        .method = method,
        .request = request,
        .request_size = size,
        .deadline_ms = deadline_ms ? deadline_ms : 1, /* 0 would be none */
    };
    grpc_task_reply(&t, ret_reply);
    return perform(&t, ret_end, err);
}
