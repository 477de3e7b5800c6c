#include "extender/admit/access.h"

#include <gnutls/crypto.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "extender/admit/cookie.h"
#include "extender/admit/listener.h"
#include "extender/admit/reach.h"
#include "extender/admit/review.h"
#include "extender/admit/sight.h"
#include "extender/admit/tokens.h"
#include "extender/app/app_metrics.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/watch.h"

enum { NAMES_MAX = 16 };

struct access {
    char *names[NAMES_MAX]; /* of schedulers */
    size_t n_names;
    bool asks_token;
    struct review *review;    /* NULL: the API server is not asked */
    struct metrics *metrics;  /* or NULL */
    pthread_mutex_t polling;  /* guards the file */
    struct watched_file file; /* path NULL: none */

    pthread_mutex_t lock; /* guards what follows */
    struct tokens *tokens;
};

/* --- starting ----------------------------------------------------------- */

static int read_names(struct access *a, const char *text, struct error *err)
{
    for (const char *p = text; *p;) {
        size_t size = strcspn(p, ",");
        if (size == 0 || size > TLS_NAME_MAX)
            return error_set(err, EINVAL,
                             "scheduler-names: \"%.*s\": a name has 1 to %d "
                             "characters",
                             (int)size, p, TLS_NAME_MAX);
        if (a->n_names == NAMES_MAX)
            return error_set(err, EINVAL, "scheduler-names: more than %d names",
                             NAMES_MAX);
        a->names[a->n_names++] = xstrndup(p, size);
        p += size;
        p += *p == ',';
    }
    return 0;
}

/* 1 and the tokens, when the file is another one; 0 when it is not. */
static int read_tokens(struct access *a, struct tokens **ret_tokens,
                       struct error *err)
{
    cleanup_str struct str text = STR_INIT(TOKENS_TEXT_MAX + 1);
    int r = watch_poll(&a->file, &text, err);
    if (r > 0) {
        int bad = tokens_parse(str_text(&text), text.size, ret_tokens, err);
        if (bad < 0)
            r = error_wrap(err, "%s", a->file.path);
    }
    if (text.data)
        explicit_bzero(text.data, text.cap);
    return r;
}

static void log_tokens(const struct access *a, const struct tokens *tokens)
{
    char n[24];
    (void)snprintf(n, sizeof n, "%zu", tokens_count(tokens));
    log_event(LOG_INFO, "tokens", "file", a->file.path, "tokens", n, NULL);
}

/* What was read comes into force, or the reason why not into the log. */
static void take_tokens(struct access *a, struct tokens **tokens,
                        const struct error *refusal)
{
    metrics_count(a->metrics, APP_TOKEN_READS,
                  refusal ? "refused" : "accepted");
    if (refusal) {
        log_event(LOG_ERROR, "tokens-refused", "error", refusal->text,
                  "in-force", "the tokens before", NULL);
        return;
    }
    log_tokens(a, *tokens);
    hold_lock(&a->lock);
    struct tokens *before = a->tokens;
    a->tokens = *tokens;
    *tokens = before;
}

void access_poll(void *ctx)
{
    struct access *a = ctx;
    cleanup_with(tokens) struct tokens *tokens = NULL;
    struct error err = {0};
    if (!a->file.path)
        return;
    hold_lock(&a->polling);
    int r = read_tokens(a, &tokens, &err);
    if (r != 0)
        take_tokens(a, &tokens, r < 0 ? &err : NULL);
}

int access_create(const struct access_config *config,
                  struct access **ret_access, struct error *err)
{
    cleanup_with(access) struct access *a = xcalloc(1, sizeof *a);
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_mutex_init(&a->polling, NULL);
    a->metrics = config->metrics;
    a->asks_token = config->token_file || config->kube;
    int r = read_names(
        a, config->scheduler_names ? config->scheduler_names : ACCESS_SCHEDULER,
        err);
    if (r == 0 && config->token_file) {
        watch_init(&a->file, config->token_file, TOKENS_TEXT_MAX);
        r = read_tokens(a, &a->tokens, err);
        if (r > 0) {
            log_tokens(a, a->tokens);
            metrics_count(a->metrics, APP_TOKEN_READS, "accepted");
        }
    }
    if (r >= 0 && config->kube)
        r = review_start(config->kube, &a->review, err);
    if (r < 0)
        return r;
    *ret_access = steal(&a);
    return 0;
}

void access_quiesce(struct access *a)
{
    if (a && a->review)
        review_quiesce(a->review);
}

void access_destroy(struct access *a)
{
    if (!a)
        return;
    review_stop(a->review);
    for (size_t i = 0; i < a->n_names; i++)
        free(a->names[i]);
    tokens_destroy(a->tokens);
    watch_fini(&a->file);
    (void)pthread_mutex_destroy(&a->polling);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

/* --- by certificate ----------------------------------------------------- */

static bool is_scheduler(const struct access *a, const struct tls_peer *peer)
{
    for (size_t i = 0; i < a->n_names; i++) {
        if (strcmp(a->names[i], peer->common_name) == 0)
            return true;
        for (unsigned k = 0; k < peer->n_dns; k++)
            if (strcmp(a->names[i], peer->dns[k]) == 0)
                return true;
    }
    return false;
}

/* httpd has seen to it that with TLS there is a peer: without one there is no
 * TLS, and then whoever reaches the listener is believed. */
enum httpd_admission access_scheduler(struct httpd_request *rq, void *ctx)
{
    const struct listener *listener = ctx;
    const struct tls_peer *peer = httpd_peer(rq);
    if (!listener->access || !peer || is_scheduler(listener->access, peer))
        return HTTPD_ADMIT;
    httpd_refusal(rq, "name");
    httpd_fail(rq, 403,
               "the client's certificate is of \"%s\", which is no name of a "
               "scheduler (--scheduler-names)",
               peer->common_name);
    return HTTPD_REFUSE;
}

bool access_node(const struct httpd_request *rq,
                 char ret_node[TLS_NAME_MAX + 1])
{
    const struct tls_peer *peer = httpd_peer(rq);
    return peer && tls_peer_node(peer, ret_node);
}

enum httpd_admission access_publish(struct httpd_request *rq, void *ctx)
{
    const struct listener *listener = ctx;
    const struct tls_peer *peer = httpd_peer(rq);
    char node[TLS_NAME_MAX + 1];
    if (!listener->access || !peer || httpd_method(rq) == HTTPD_GET ||
        tls_peer_node(peer, node))
        return HTTPD_ADMIT;
    httpd_refusal(rq, "node");
    httpd_fail(rq, 403,
               "the client's certificate is of \"%s\", which is no node: its "
               "common name must be system:node:NAME, or it must have one DNS "
               "name",
               peer->common_name);
    return HTTPD_REFUSE;
}

/* --- by token ----------------------------------------------------------- */

/* A request that waits for the API server. */
struct pending {
    struct review_call call;
    const struct listener *listener;
    char *token, *path; /* that the call is about */
    bool of_events;     /* what its page has beside it */
    struct httpd_request *rq;
};

static bool is_open(const char *path)
{
    static const char *const open[] = {
        "/healthz",      "/readyz",         "/openapi.yaml",
        "/ui/login",     "/ui/console.css", "/ui/console.js",
        "/ui/replay.js", "/ui/icon.svg",    "/ui/logout"};
    for (size_t i = 0; i < ARRAY_LEN(open); i++)
        if (strcmp(open[i], path) == 0)
            return true;
    return false;
}

/* Is it what a browser shows? */
static bool is_page(const char *path)
{
    return strcmp(path, "/") == 0 || strncmp(path, "/ui/", 4) == 0;
}

/* The token of "Authorization: Bearer TOKEN"; NULL: there is none. */
static const char *bearer(const struct httpd_request *rq)
{
    const char *value = httpd_header(rq, "Authorization");
    if (!value || strncasecmp(value, "Bearer ", 7) != 0)
        return NULL;
    value += 7;
    value += strspn(value, " ");
    size_t size = strlen(value);
    return size > 0 && size <= REVIEW_TOKEN_MAX ? value : NULL;
}

static const char *verb_of(enum httpd_method method)
{
    switch (method) {
    case HTTPD_PUT:
        return "put";
    case HTTPD_POST:
        return "post";
    case HTTPD_DELETE:
        return "delete";
    case HTTPD_PATCH:
        return "patch";
    case HTTPD_GET:
        break;
    }
    return "get";
}

/* A browser gets a page that asks for a token, and nothing else. */
static enum httpd_admission refuse(const struct listener *listener,
                                   struct httpd_request *rq, unsigned status,
                                   const char *word, const char *text)
{
    httpd_refusal(rq, word);
    httpd_fail(rq, status, "%s", text);
    if (status == 401)
        httpd_set_header(rq, "WWW-Authenticate", "Bearer");
    if (listener->show_login && is_page(httpd_path(rq)))
        listener->show_login(rq, strcmp(word, "token-missing") ? text : NULL);
    return HTTPD_REFUSE;
}

static enum httpd_admission answer(const struct listener *listener,
                                   struct httpd_request *rq,
                                   const struct review_call *call)
{
    cleanup_free char *text = NULL;
    switch (call->verdict) {
    case REVIEW_ADMITTED:
        httpd_set_user(rq, call->user);
        return HTTPD_ADMIT;
    case REVIEW_FORBIDDEN:
        text = call->resource
                   ? xasprintf("the token's user may not %s %s in namespace "
                               "\"%s\"",
                               call->verb, call->resource, call->namespace)
                   : xasprintf("the token's user may not %s %s", call->verb,
                               call->path);
        return refuse(listener, rq, 403, "forbidden", text);
    case REVIEW_UNKNOWN:
        return refuse(listener, rq, 401, "token",
                      "the API server knows nobody with this token");
    case REVIEW_FAILED:
    case REVIEW_UNDECIDED:
    case REVIEW_VERDICTS:
        break;
    }
    text = xasprintf("the token could not be reviewed: %s", call->error.text);
    return refuse(listener, rq, 503, "review", text);
}

static void pending_free(struct pending *p)
{
    explicit_bzero(p->token, strlen(p->token));
    free(p->token);
    free(p->path);
    free(p);
}

/* A page of one thing has what happened to it, which is of /v1/events; of the
 * past it is judged as that. */
static bool has_events(const struct httpd_request *rq)
{
    static const char *const pages[] = {
        "/ui/nodes/:", "/ui/cards/:/:", "/ui/jobs/:/:", "/ui/pods/:/:"};
    const char *at = httpd_query(rq, "at");
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (strcmp(pages[i], httpd_route_path(rq)) == 0)
            return !at || !*at;
    return false;
}

static enum httpd_admission review_events(const struct listener *listener,
                                          struct httpd_request *rq,
                                          const char *token);

/* What is said of the path, or of the events beside it: without them the page
 * is shown all the same. */
static enum httpd_admission decided(const struct listener *listener,
                                    struct httpd_request *rq,
                                    const struct review_call *call,
                                    bool of_events)
{
    if (of_events) {
        if (call->verdict != REVIEW_ADMITTED)
            sight_hide_events(rq);
        return HTTPD_ADMIT;
    }
    enum httpd_admission verdict = answer(listener, rq, call);
    return verdict == HTTPD_ADMIT && has_events(rq)
               ? review_events(listener, rq, call->token)
               : verdict;
}

/* On the listener's thread again. */
static void reviewed(struct httpd_request *rq, void *arg)
{
    struct pending *p = arg;
    metrics_count(p->listener->access->metrics, APP_REVIEWS,
                  review_verdict_name(p->call.verdict));
    bool admitted = decided(p->listener, rq, &p->call, p->of_events) ==
                    HTTPD_ADMIT;
    pending_free(p);
    if (admitted)
        httpd_admit(rq);
}

/* The same, when the client has gone meanwhile. */
static void review_lost(void *arg)
{
    pending_free(arg);
}

/* On the reviewer's thread. */
static void review_done(struct review_call *call)
{
    struct pending *p = call->ctx;
    httpd_resume(p->rq);
}

/* A stream of a pod, which needs a right of its own. */
struct stream_right {
    const char *route;
    const char *word;            /* of a file of tokens */
    const char *verb, *resource; /* of Kubernetes */
};

/* NULL: the request is for something else. */
static const struct stream_right *
stream_right_of(const struct httpd_request *rq)
{
    static const struct stream_right rights[] = {
        {"pod-log", "log", "get", "pods/log"},
        {"pod-exec", "exec", "create", "pods/exec"},
        {"pod-attach", "attach", "create", "pods/attach"},
        {"pod-portforward", "portforward", "create", "pods/portforward"},
    };
    const char *name = httpd_route_name(rq);
    for (size_t i = 0; i < ARRAY_LEN(rights); i++)
        if (strcmp(rights[i].route, name) == 0)
            return &rights[i];
    return NULL;
}

/* The path that is judged: a page is of what it shows, which may be how a thing
 * was. */
static char *judged_path(const struct httpd_request *rq)
{
    static const struct {
        const char *page, *past;
    } things[] = {{"/ui/nodes/", "/v1/history/node/"},
                  {"/ui/cards/", "/v1/history/card/"},
                  {"/ui/jobs/", "/v1/history/job/"},
                  {"/ui/pods/", "/v1/history/pod/"}};
    const char *path = httpd_path(rq), *at = httpd_query(rq, "at");
    const char *page = httpd_route_path(rq); /* a path may have escapes */
    bool past = is_page(page) && at && *at;
    for (size_t i = 0; past && i < ARRAY_LEN(things); i++) {
        size_t size = strlen(things[i].page);
        if (strncmp(page, things[i].page, size) != 0)
            continue;
        const char *name = strchr(strchr(path + 1, '/') + 1, '/') + 1;
        return xasprintf("%s%s", things[i].past, name);
    }
    if (past &&
        (strcmp(page, "/ui/pending") == 0 || strcmp(page, "/ui/events") == 0))
        return xstrdup("/v1/events");
    if (past)
        return xstrdup("/v1/topology");
    return strncmp(path, "/ui/", 4) == 0 ? xasprintf("/v1/%s", path + 4)
                                         : xstrdup(path);
}

/* Decided at once, or later by the reviewer's thread. */
static enum httpd_admission review_call(const struct listener *listener,
                                        struct httpd_request *rq,
                                        struct review_call *call,
                                        bool of_events)
{
    struct access *a = listener->access;
    call->verdict = review_look(a->review, call, clock_ms());
    if (call->verdict != REVIEW_UNDECIDED)
        return decided(listener, rq, call, of_events);
    if (!review_reserve(a->review)) {
        (void)error_set(&call->error, EAGAIN, "too many requests wait for it");
        return decided(listener, rq, call, of_events);
    }
    struct pending *p = xcalloc(1, sizeof *p);
    p->token = xstrdup(call->token);
    p->path = xstrdup(call->path);
    p->of_events = of_events;
    p->call = *call;
    p->call.token = p->token;
    p->call.path = p->path;
    p->call.done = review_done;
    p->call.ctx = p;
    p->listener = listener;
    p->rq = rq;
    httpd_then(rq, reviewed, p);
    httpd_or_else(rq, review_lost);
    httpd_suspend(rq);
    review_post(a->review, &p->call);
    return HTTPD_LATER;
}

static enum httpd_admission review_events(const struct listener *listener,
                                          struct httpd_request *rq,
                                          const char *token)
{
    struct review_call call = {
        .token = token, .verb = "get", .path = "/v1/events"};
    return review_call(listener, rq, &call, true);
}

static enum httpd_admission review(const struct listener *listener,
                                   struct httpd_request *rq, const char *token)
{
    cleanup_free char *path = judged_path(rq);
    struct review_call call = {
        .token = token, .verb = verb_of(httpd_method(rq)), .path = path};
    const struct stream_right *right = stream_right_of(rq);
    if (right) {
        call.verb = right->verb;
        call.resource = right->resource;
        call.namespace = httpd_arg(rq, 0);
        call.name = httpd_arg(rq, 1);
    }
    return review_call(listener, rq, &call, false);
}

static bool is_listed(struct access *a, const char *token,
                      struct httpd_request *rq)
{
    hold_lock(&a->lock);
    const char *user = a->tokens ? tokens_user(a->tokens, token) : NULL;
    struct scope *scope = user ? tokens_scope(a->tokens, token) : NULL;
    if (user)
        httpd_set_user(rq, user);
    if (scope)
        sight_set_scope(rq, scope);
    return user;
}

static bool is_allowed(struct access *a, const char *token,
                       const struct stream_right *right, const char *namespace)
{
    hold_lock(&a->lock);
    return a->tokens && tokens_may(a->tokens, token, right->word, namespace);
}

/* Of a token that is in the file. */
static enum httpd_admission admit_listed(const struct listener *listener,
                                         struct httpd_request *rq,
                                         const char *token)
{
    const struct stream_right *right = stream_right_of(rq);
    const char *namespace = httpd_arg(rq, 0);
    if (right && !is_allowed(listener->access, token, right, namespace)) {
        httpd_refusal(rq, "forbidden");
        httpd_fail(rq, 403,
                   "this token has no right to %s in namespace \"%.63s\": its "
                   "line in the file of --read-tokens would need \",%s:%.63s\"",
                   right->word, namespace, right->word, namespace);
        return HTTPD_REFUSE;
    }
    cleanup_free char *text = reach_refusal(rq, sight_scope(rq));
    return text ? refuse(listener, rq, 403, "forbidden", text) : HTTPD_ADMIT;
}

uint64_t access_client(const struct httpd_request *rq, bool secure)
{
    cleanup_str struct str cookie = STR_INIT(COOKIE_TOKEN_MAX + 1);
    const char *token = bearer(rq);
    uint64_t digest[32 / sizeof(uint64_t)] = {0};
    if (!token && cookie_token(rq, secure, &cookie))
        token = str_text(&cookie);
    if (token &&
        gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), digest) < 0)
        abort(); /* it is always there */
    bool some = token != NULL;
    if (cookie.data)
        explicit_bzero(cookie.data, cookie.cap);
    return some ? digest[0] | 1 : 0;
}

uint64_t access_follower(const struct httpd_request *rq,
                         const struct listener *listener)
{
    bool asks = listener->access && listener->access->asks_token;
    uint64_t client = asks ? access_client(rq, listener->secure) : 0;
    return client ? client : httpd_address(rq);
}

static enum httpd_admission judge_token(const struct listener *listener,
                                        struct httpd_request *rq,
                                        const char *token)
{
    if (is_listed(listener->access, token, rq))
        return admit_listed(listener, rq, token);
    if (!listener->access->review)
        return refuse(listener, rq, 401, "token", "this token is nobody's");
    return review(listener, rq, token);
}

static enum httpd_admission judge_cookie(const struct listener *listener,
                                         struct httpd_request *rq)
{
    cleanup_str struct str token = STR_INIT(COOKIE_TOKEN_MAX + 1);
    enum httpd_admission verdict;
    const char *fault = cookie_fault(rq, stream_right_of(rq));
    if (!cookie_token(rq, listener->secure, &token))
        verdict = refuse(listener, rq, 401, "token-missing",
                         "a token is needed here: Authorization: Bearer "
                         "TOKEN");
    else if (fault)
        verdict = refuse(listener, rq, 403, "cookie", fault);
    else
        verdict = judge_token(listener, rq, str_text(&token));
    if (token.data)
        explicit_bzero(token.data, token.cap);
    return verdict;
}

enum httpd_admission access_read(struct httpd_request *rq, void *ctx)
{
    const struct listener *listener = ctx;
    struct access *a = listener->access;
    if (!a || !a->asks_token || is_open(httpd_path(rq)))
        return HTTPD_ADMIT;
    const char *token = bearer(rq);
    return token ? judge_token(listener, rq, token)
                 : judge_cookie(listener, rq);
}
