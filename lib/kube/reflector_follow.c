#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/kube/reflector_private.h"

enum {
    WATCH_MIN_S = 300,
    WATCH_MAX_S = 600,
    WRAP_MAX = 256,
    CONNECT_MS = 10000
};

static bool lists(const struct follow *f)
{
    return !f->version[0];
}

static void lock(struct follow *f)
{
    (void)pthread_mutex_lock(f->owner->lock);
}

static void unlock(struct follow *f)
{
    (void)pthread_mutex_unlock(f->owner->lock);
}

static unsigned vary(struct follow *f, unsigned min, unsigned max)
{
    f->random = f->random * UINT64_C(6364136223846793005) + 1;
    return min + (unsigned)((f->random >> 33) % (max - min + 1));
}

/* A watch works: failures are over, and a next list may be, too. */
static void succeed(struct follow *f)
{
    f->proven = true;
    backoff_succeed(&f->backoff);
}

/* --- what the handlers are told ------------------------------------------- */

/* All that was listed so far does not count. */
static void list_anew(struct follow *f)
{
    f->version[0] = f->listed[0] = '\0';
    str_reset(&f->next);
    f->told = false;
    f->n_listed = 0;
    f->refused = 0;
}

static void tell_list(struct follow *f)
{
    if (f->told)
        return;
    f->told = true;
    if (f->kind.handler.list)
        f->kind.handler.list(f->kind.ctx);
}

static void tell_put(struct follow *f, const char *json, size_t size)
{
    if (f->kind.handler.put)
        f->kind.handler.put(f->kind.ctx, json, size);
}

static int take_item(void *ctx, const char *json, size_t size)
{
    struct follow *f = ctx;
    if (atomic_load(&f->owner->stopping))
        return -ECANCELED;
    tell_list(f);
    tell_put(f, json, size);
    f->n_listed++;
    return 0;
}

/* An ERROR event: 410 is no failure of anybody. */
static int take_error(struct follow *f, const struct event *event)
{
    struct status status;
    status_read(event->object.data, event->object.size, &status);
    return error_set(&f->err, status.code == 410 ? ESTALE : EPROTO,
                     "%s (%" PRId64 ")", status.message, status.code);
}

static int take_event(void *ctx, const char *json, size_t size)
{
    struct follow *f = ctx;
    struct event event;
    if (atomic_load(&f->owner->stopping))
        return -ECANCELED;
    int r = event_read(json, size, &event, &f->err);
    if (r < 0)
        return r;
    if (event.type == EVENT_ERROR)
        return take_error(f, &event);
    if (event.type == EVENT_PUT)
        tell_put(f, event.object.data, event.object.size);
    else if (event.type == EVENT_GONE && f->kind.handler.gone)
        f->kind.handler.gone(f->kind.ctx, event.object.data, event.object.size);
    memcpy(f->version, event.version, sizeof f->version);
    f->progress = true;
    f->refused = 0;
    succeed(f);
    lock(f);
    f->state.events += event.type != EVENT_BOOKMARK;
    f->state.error[0] = '\0';
    unlock(f);
    return 0;
}

/* --- libcurl's callbacks ------------------------------------------------ */

static void heard(struct follow *f)
{
    f->heard_ms = clock_ms();
    lock(f);
    f->state.heard_ms = f->heard_ms;
    if (f->answered)
        f->state.watching = true;
    unlock(f);
}

static size_t take_header(char *data, size_t size, size_t n, void *ctx)
{
    struct follow *f = ctx;
    long status = 0;
    bool ended = size * n <= 2; /* the empty line */
    (void)data;
    (void)curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    if (ended && status == 200)
        f->answered = true;
    heard(f);
    return size * n;
}

/* Taking less than was given makes libcurl end the transfer. */
static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
    struct follow *f = ctx;
    struct error err = {0};
    heard(f);
    if (!f->answered) {
        str_add_n(&f->refusal, data, size * n);
        return f->refusal.overflow ? 0 : size * n;
    }
    if (jsplit_feed(&f->split, data, size * n, &err) < 0) {
        if (!f->err.code) /* else the receiver of the objects knows better */
            f->err = err;
        return 0;
    }
    return size * n;
}

/* --- calls -------------------------------------------------------------- */

static void add_escaped(struct follow *f, struct str *url, const char *text)
{
    char *escaped = curl_easy_escape(f->easy, text, 0);
    if (!escaped)
        abort();
    str_add(url, escaped);
    curl_free(escaped);
}

static void make_url(struct follow *f, struct str *url)
{
    str_addf(url, "%s%s?", f->owner->target.base, f->kind.path);
    if (f->kind.query && f->kind.query[0])
        str_addf(url, "%s&", f->kind.query);
    if (lists(f)) {
        str_addf(url, "limit=%u", f->whole ? 0 : f->owner->tuning.page);
        if (f->next.size) {
            str_add(url, "&continue=");
            add_escaped(f, url, str_text(&f->next));
        }
        return;
    }
    str_addf(url,
             "watch=1&allowWatchBookmarks=true&timeoutSeconds=%u"
             "&resourceVersion=",
             vary(f, WATCH_MIN_S, WATCH_MAX_S));
    add_escaped(f, url, f->version);
}

static void begin_split(struct follow *f)
{
    size_t max = f->owner->tuning.object_max;
    if (lists(f))
        jsplit_init(&f->split, JSPLIT_LIST, max, take_item, f);
    else
        jsplit_init(&f->split, JSPLIT_STREAM, max + WRAP_MAX, take_event, f);
    f->splitting = true;
}

static void set_headers(struct follow *f)
{
    const struct reflector *r = f->owner;
    const char *authorization = kube_access_authorization(r->access);
    f->headers = http_curl_header(NULL, "Accept: application/json");
    if (r->target.host_header)
        f->headers = http_curl_header(f->headers, r->target.host_header);
    if (authorization) {
        cleanup_free char *line = xasprintf("Authorization: %s", authorization);
        f->headers = http_curl_header(f->headers, line);
    }
}

/* A connection stays what its certificates were when it began. */
static void look_at_files(struct follow *f, int64_t now)
{
    struct reflector *r = f->owner;
    r->files += (kube_access_poll(r->access, now) & KUBE_ACCESS_FILES) != 0;
    f->fresh |= f->files != r->files;
    f->files = r->files;
}

static int begin(struct follow *f, int64_t now)
{
    cleanup_str struct str url = STR_INIT(65536);
    look_at_files(f, now);
    make_url(f, &url);
    set_headers(f);
    f->answered = f->progress = false;
    str_reset(&f->refusal);
    f->reason[0] = '\0';
    f->begun_ms = f->heard_ms = now;
    CURLcode code = curl_easy_setopt(f->easy, CURLOPT_URL, str_text(&url));
    if (code == CURLE_OK)
        code = curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, f->headers);
    if (code == CURLE_OK)
        code = curl_easy_setopt(f->easy, CURLOPT_FRESH_CONNECT,
                                f->fresh ? 1L : 0L);
    if (code != CURLE_OK)
        return error_set(&f->err, EIO, "libcurl: %s", curl_easy_strerror(code));
    CURLMcode multi = curl_multi_add_handle(f->owner->multi, f->easy);
    if (multi != CURLM_OK)
        return error_set(&f->err, EIO, "libcurl: %s",
                         curl_multi_strerror(multi));
    f->active = true;
    begin_split(f);
    lock(f);
    *(lists(f) ? &f->state.lists : &f->state.watches) += !f->next.size;
    unlock(f);
    return 0;
}

/* Whatever the call was, it is no more. */
static void end_call(struct follow *f)
{
    if (f->active)
        (void)curl_multi_remove_handle(f->owner->multi, f->easy);
    f->active = false;
    if (f->splitting)
        jsplit_fini(&f->split);
    f->splitting = false;
    curl_slist_free_all(f->headers);
    f->headers = NULL;
}

static int64_t retry_after_ms(struct follow *f)
{
    curl_off_t s = 0;
    if (curl_easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &s) != CURLE_OK)
        return 0;
    return s > RETRY_MAX_MS / 1000 ? RETRY_MAX_MS : s * 1000;
}

/* What is forbidden stays so until somebody changes a role: who can do
 * without it does not ask all the time. */
static const char *meanwhile(const struct follow *f)
{
    return f->err.code == EACCES ? f->kind.without : NULL;
}

static void log_failure(const struct follow *f, bool known, int64_t wait)
{
    char ms[24];
    if (atomic_load(&f->owner->stopping))
        return;
    (void)snprintf(ms, sizeof ms, "%" PRId64, wait);
    log_event(known && f->backoff.failures > 1 ? LOG_DEBUG : LOG_WARN,
              "reflector-failed", "kind", f->kind.name, "error", f->err.text,
              "again-in-ms", ms, meanwhile(f) ? "meanwhile" : NULL,
              meanwhile(f), NULL);
}

/* The API server has no such resource, which one can do without: as an empty
 * list, and no failure. */
static void find_absent(struct follow *f, int64_t now)
{
    static const char text[] = "the cluster has no such resource";
    bool known = strcmp(f->state.error, text) == 0;
    list_anew(f);
    f->whole = f->away = false;
    f->fresh = true; /* whoever answers may be another that has it */
    f->due_ms = now + f->owner->tuning.absent_ms;
    f->err.code = 0;
    backoff_succeed(&f->backoff);
    if (known)
        return;
    tell_list(f);
    f->told = false;
    if (f->kind.handler.listed)
        f->kind.handler.listed(f->kind.ctx);
    lock(f);
    f->state.synced = true;
    f->state.watching = false;
    (void)snprintf(f->state.error, sizeof f->state.error, "%s", text);
    unlock(f);
    log_event(LOG_INFO, "reflector-absent", "kind", f->kind.name, "text", text,
              "meanwhile", f->kind.without, NULL);
}

/* Why the call failed is in f->err. */
static void fail(struct follow *f, int64_t now, int64_t retry_ms)
{
    bool known = strncmp(f->state.error, f->err.text,
                         sizeof f->state.error - 1) == 0;
    if (!lists(f) && now - f->begun_ms >= f->owner->tuning.good_ms &&
        f->answered)
        succeed(f);
    /* it answers again: what failed before, as in a restart, is over */
    if (f->err.code == ESTALE && f->proven && !lists(f))
        succeed(f);
    /* one that has just come back may not know yet what we may */
    if (f->err.code == EACCES && f->away)
        backoff_succeed(&f->backoff);
    f->away = f->err.code == EIO;
    /* its pages took longer than etcd keeps a version, and would again */
    f->whole = f->err.code == ESTALE && f->next.size > 0;
    /* a first page that is asked for again is of another version */
    if (f->err.code == ESTALE || f->refused >= REFUSED_MAX ||
        (lists(f) && !f->next.size))
        list_anew(f);
    f->backoff.max_ms = meanwhile(f) ? f->owner->tuning.forbidden_max_ms
                                     : f->owner->tuning.wait_max_ms;
    int64_t wait = backoff_fail(&f->backoff);
    if (wait < retry_ms)
        wait = retry_ms;
    f->due_ms = now + wait;
    f->fresh = true;
    lock(f);
    f->state.failures++;
    f->state.watching = false;
    f->state.synced |= meanwhile(f) != NULL;
    (void)snprintf(f->state.error, sizeof f->state.error, "%s", f->err.text);
    unlock(f);
    log_failure(f, known, wait);
    f->err.code = 0;
}

/* An answer that is not 200. */
static int refuse(struct follow *f, long http)
{
    struct status status;
    int code = EPROTO;
    const char *hint = http == 401 ? ": our credentials are not accepted"
                       : http == 403
                           ? ": deploy/kustomize/base has the rights we need"
                           : "";
    status_read(str_text(&f->refusal), f->refusal.size, &status);
    if (http == 410)
        code = ESTALE;
    else if (http == 401 || http == 403)
        code = EACCES;
    else if (http == 404 && f->kind.without)
        code = ENOENT;
    else if (http == 429 || http == 500 || http == 502 || http == 503)
        code = EAGAIN;
    else
        f->refused++;
    return error_set(&f->err, code, "%s: %ld %s%s", lists(f) ? "list" : "watch",
                     http, status.message, hint);
}

/* 0 when the call brought what it should. */
static int result(struct follow *f, CURLcode code)
{
    long http = 0;
    const char *what = lists(f) ? "list" : "watch";
    (void)curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &http);
    if (f->err.code) { /* a fault in what came */
        f->refused += f->err.code != ECANCELED;
        return error_wrap(&f->err, "%s", what);
    }
    if (http != 0 && http != 200)
        return refuse(f, http);
    if (code != CURLE_OK)
        return error_set(&f->err, EIO, "%s: %s", what,
                         f->reason[0] ? f->reason : curl_easy_strerror(code));
    if (jsplit_end(&f->split, &f->err) < 0)
        return error_wrap(&f->err, "%s", what);
    return 0;
}

static void list_complete(struct follow *f)
{
    memcpy(f->version, f->listed, sizeof f->version);
    if (f->kind.handler.listed)
        f->kind.handler.listed(f->kind.ctx);
    lock(f);
    f->state.synced = true;
    f->state.error[0] = '\0';
    unlock(f);
    char n[24], failures[24];
    (void)snprintf(n, sizeof n, "%zu", f->n_listed);
    (void)snprintf(failures, sizeof failures, "%u", f->backoff.failures);
    log_event(LOG_INFO, "reflector-listed", "kind", f->kind.name, "objects", n,
              "failures", failures, NULL);
    f->listed[0] = '\0';
    f->whole = f->told = false;
    f->n_listed = 0;
    /* lists that lead to no watch must become rarer */
    if (f->proven)
        backoff_succeed(&f->backoff);
    f->proven = false;
}

static int page_complete(struct follow *f)
{
    char version[KUBE_VERSION_MAX + 1];
    int r = kube_list_read(str_text(&f->split.rest), f->split.rest.size,
                           version, &f->next, &f->err);
    if (r < 0) {
        f->refused++;
        return error_wrap(&f->err, "list");
    }
    tell_list(f);
    /* all pages are of one version; if not, the first is on the safe side */
    if (!f->listed[0])
        memcpy(f->listed, version, sizeof version);
    f->refused = 0;
    if (!f->next.size)
        list_complete(f);
    return 0;
}

/* The server ends each watch after a while. */
static int watch_complete(struct follow *f, int64_t now)
{
    int64_t lasted = now - f->begun_ms;
    if (!f->progress && lasted < f->owner->tuning.short_ms)
        return error_set(&f->err, EIO,
                         "watch: ended after %" PRId64 " ms without an event",
                         lasted);
    succeed(f);
    lock(f);
    f->state.error[0] = '\0';
    unlock(f);
    return 0;
}

void follow_done(struct follow *f, CURLcode code, int64_t now)
{
    int r = result(f, code);
    int64_t retry_ms = r == -EAGAIN ? retry_after_ms(f) : 0;
    if (r == 0)
        r = lists(f) ? page_complete(f) : watch_complete(f, now);
    end_call(f);
    if (r == -ENOENT) {
        find_absent(f, now);
        return;
    }
    if (r < 0) {
        fail(f, now, retry_ms);
        return;
    }
    f->due_ms = now;
    f->fresh = false;
}

/* Nothing was heard for too long.  Of a watch that was answered this may be
 * quiet alone, as bookmarks are not promised: it is resumed at once on a new
 * connection, and when its server is gone that fails. */
static void end_silence(struct follow *f, int64_t now, int64_t limit)
{
    bool quiet = !lists(f) && f->answered;
    (void)error_set(&f->err, ETIMEDOUT,
                    "%s: nothing was heard for %" PRId64 " ms",
                    lists(f) ? "list" : "watch", limit);
    end_call(f);
    if (!quiet) {
        fail(f, now, 0);
        return;
    }
    log_event(LOG_DEBUG, "reflector-resumes", "kind", f->kind.name, "why",
              f->err.text, NULL);
    f->err.code = 0;
    f->due_ms = now;
    f->fresh = true;
}

/* A list that is under way is of an earlier moment: it counts as one more. */
static void relist(struct follow *f, int64_t now)
{
    if (!atomic_exchange(&f->relist, false))
        return;
    if (f->active) {
        end_call(f);
        f->due_ms = now;
    }
    list_anew(f);
}

static void begin_due(struct follow *f, int64_t now)
{
    if (f->active || f->due_ms > now || begin(f, now) == 0)
        return;
    end_call(f);
    fail(f, now, 0);
}

int64_t follow_step(struct follow *f, int64_t now)
{
    const struct reflector_tuning *t = &f->owner->tuning;
    int64_t limit = lists(f) ? t->list_silence_ms : t->watch_silence_ms;
    if (f->active && now - f->heard_ms >= limit)
        end_silence(f, now, limit);
    relist(f, now);
    begin_due(f, now);
    if (!f->active)
        return f->due_ms;
    limit = lists(f) ? t->list_silence_ms : t->watch_silence_ms;
    return f->heard_ms + limit;
}

/* A server that is gone without a word is noticed within 40 s. */
static int set_keepalive(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const int count = 4;
    (void)ctx, (void)purpose;
    /* without it, it is noticed later */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    return CURL_SOCKOPT_OK;
}

int follow_init(struct follow *f, struct reflector *owner,
                const struct reflector_kind *kind, struct error *err)
{
    const struct reflector_tuning *t = &owner->tuning;
    f->kind = *kind;
    f->owner = owner;
    f->state.name = kind->name;
    f->proven = true;
    str_init(&f->next, KUBE_CONTINUE_MAX);
    str_init(&f->refusal, REFUSAL_MAX);
    /* only so that not all come at once */
    f->random = (uint64_t)clock_ns() ^ (uint64_t)(uintptr_t)f;
    f->backoff = (struct backoff){.min_ms = t->wait_min_ms,
                                  .max_ms = t->wait_max_ms,
                                  .random = f->random};
    int r = http_curl_create(&owner->http, &owner->target, f->reason, &f->easy,
                             err);
    if (r < 0)
        return r;
    CURLcode code = curl_easy_setopt(f->easy, CURLOPT_PRIVATE, f);
    CURL *easy = f->easy;
#define SET(option, value)                                \
    do {                                                  \
        if (code == CURLE_OK)                             \
            code = curl_easy_setopt(easy, option, value); \
    } while (0)
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_QUICK_EXIT, 1L); /* a slow name server delays no end */
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 20L);
    SET(CURLOPT_TCP_KEEPINTVL, 5L);
    SET(CURLOPT_SOCKOPTFUNCTION, set_keepalive);
    SET(CURLOPT_BUFFERSIZE, 65536L);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, f);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, f);
#undef SET
    return code == CURLE_OK
               ? 0
               : error_set(err, EIO, "libcurl: %s", curl_easy_strerror(code));
}

void follow_fini(struct follow *f)
{
    end_call(f);
    if (f->easy)
        curl_easy_cleanup(f->easy);
    str_fini(&f->next);
    str_fini(&f->refusal);
}
