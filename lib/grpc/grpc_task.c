#include <string.h>

#include "lib/grpc/grpc_private.h"
#include "lib/grpc/grpc_pump.h"
#include "lib/http/http_curl.h"
#include "lib/io/clock.h"

enum {
    METHOD_MAX = 128,
    TLS_POLL_MS = 1000,       /* who ends a call wakes it */
    TLS_HEAD = 5,             /* bytes before each record */
    KEEPALIVE_S = 5,          /* of a stream: silence, then questions */
    UPLOAD_BUFFER = 16 << 10, /* bytes; the least that libcurl takes */
    /* What comes besides messages: frames that carry little or nothing may
     * have this much, and this many times the messages. */
    IDLE_BYTES = 1 << 20,
    IDLE_TIMES = 8,
    /* The same in a round, which waits meanwhile; libcurl reads ahead. */
    ROUND_IDLE_BYTES = 256 << 10,
    ROUND_IDLE_TIMES = 2,
    LISTEN_MS = 300, /* for a refusal of our certificate */
    SOCKET_CONNECT_MS = 300000,
};

/* --- what libcurl calls --------------------------------------------------- */

static size_t take_head(char *data, size_t size, size_t n, void *ctx)
{
    struct grpc_task *t = ctx;
    if (!t->fault)
        t->fault = grpc_head_line(&t->head, data, size * n, &t->err);
    return t->fault ? 0 : size * n;
}

static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
    struct grpc_task *t = ctx;
    /* a page for people, or the like: its status says enough */
    if (t->head.status != 200 || !t->head.grpc)
        t->fault = grpc_head_end(&t->head, &t->err);
    if (!t->fault)
        t->fault = grpc_frames_feed(&t->frames, data, size * n, &t->err);
    t->taken += size * n;
    return t->fault ? 0 : size * n;
}

static size_t give_request(char *out, size_t size, size_t n, void *ctx)
{
    struct grpc_task *t = ctx;
    size_t room = size * n, given = 0;
    while (given < room && t->sent < t->request_size) {
        bool prefix = t->sent < GRPC_PREFIX;
        size_t end = prefix ? GRPC_PREFIX : t->request_size;
        size_t part = end - t->sent;
        part = part < room - given ? part : room - given;
        memcpy(out + given,
               prefix ? (const char *)t->prefix + t->sent
                      : t->request + (t->sent - GRPC_PREFIX),
               part);
        given += part;
        t->sent += part;
    }
    return given;
}

/* libcurl sends a request again on its own when a kept connection turns out
 * to be dead, and it may have been carried out: never again what was sent. */
static int rewind_request(void *ctx, curl_off_t offset, int origin)
{
    const struct grpc_task *t = ctx;
    return t->sent == 0 && offset == 0 && origin == SEEK_SET
               ? CURL_SEEKFUNC_OK
               : CURL_SEEKFUNC_FAIL;
}

/* Bytes from the connection, but for those of before this call over TLS. */
static uint64_t received(const struct grpc_task *t)
{
    return t->g->pump ? grpc_pump_received(t->g->pump) : t->came;
}

static int note_connected(void *ctx, char *to, char *from, int to_port,
                          int from_port)
{
    struct grpc_task *t = ctx;
    (void)to;
    (void)snprintf(t->g->own, sizeof t->g->own, "%s",
                   from && !t->g->to.socket ? from : "");
    (void)to_port;
    (void)from_port;
    int e = grpc_socket_connected(t->g);
    if (e < 0) {
        t->fault = error_errno(&t->err, -e, "cannot read from the connection");
        return CURL_PREREQFUNC_ABORT;
    }
    t->connected = true;
    t->had = received(t);
    return CURL_PREREQFUNC_OK;
}

/* --- when it must end ---------------------------------------------------- */

static uint64_t idle_max(const struct grpc_task *t)
{
    return t->g->round ? ROUND_IDLE_BYTES + ROUND_IDLE_TIMES * t->taken
                       : IDLE_BYTES + IDLE_TIMES * t->taken;
}

/* Do frames keep coming that carry no message?  No deadline of a stream ends
 * that, and no cap sees it. */
static int check_idle_bytes(struct grpc_task *t)
{
    uint64_t now = t->connected ? received(t) : 0;
    if (now <= t->had || now - t->had <= idle_max(t))
        return 0;
    return error_set(&t->err, EPROTO,
                     "it sends frames without end that carry nothing");
}

/* Has another thread ended it? */
static int check_cancelled(struct grpc_task *t)
{
    struct grpc *g = t->g;
    if (!atomic_load(&g->cancelled) && !atomic_exchange(&g->interrupted, false))
        return 0;
    return error_set(&t->err, ECANCELED, "the call was cancelled here");
}

bool grpc_task_may_go_on(struct grpc_task *t)
{
    int64_t now = clock_ms();
    if (t->fault || t->late)
        return false;
    t->fault = check_cancelled(t);
    if (t->fault)
        return false;
    t->late = now > t->due_ms;
    t->fault = check_idle_bytes(t);
    return !t->fault && !t->late;
}

int grpc_task_poll_ms(const struct grpc_task *t)
{
    int64_t left = t->due_ms - clock_ms() + 1; /* late, not just due */
    int max = t->g->to.tls ? TLS_POLL_MS : GRPC_PLAIN_MS;
    return left < max ? (int)(left > 0 ? left : 0) : max;
}

/* Of what OpenSSL tells of a record, its first bytes have the size of the
 * others; who takes something else for them counts a little too much. */
static size_t record_size(const char *text, size_t size)
{
    const unsigned char *head = (const unsigned char *)text;
    return size == TLS_HEAD ? size + (size_t)(head[3] << 8 | head[4]) : 0;
}

/* With TLS: while a server sends frames without data faster than libcurl 7.88
 * reads them, libcurl goes on reading: no deadline ends that, and no function
 * of ours is called but this one, for each record of TLS. */
static int guard(CURL *curl, curl_infotype type, char *text, size_t size,
                 void *ctx)
{
    struct grpc_task *t = ctx; /* NULL: between calls */
    (void)curl;
    if (!t || type != CURLINFO_SSL_DATA_IN || !t->connected)
        return 0;
    t->came += record_size(text, size);
    if (!grpc_task_may_go_on(t))
        grpc_socket_cut(t->g);
    return 0;
}

/* --- the handle ---------------------------------------------------------- */

#define SET(option, value) HTTP_CURL_SET(code, g->curl, option, value)

static CURLcode set_tls(struct grpc *g)
{
    CURLcode code = CURLE_OK;
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    SET(CURLOPT_CAPATH, NULL); /* ours alone */
    SET(CURLOPT_CAINFO, g->config.ca);
    SET(CURLOPT_SSLCERT, g->config.cert);
    SET(CURLOPT_SSLKEY, g->config.key);
    return code;
}

/* See GRPC_PLAIN_MS; it also fails when it reuses a cleartext connection,
 * so the caller keeps none. */
static CURLcode set_plain(struct grpc *g)
{
    CURLcode code = CURLE_OK;
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    if (g->to.socket)
        SET(CURLOPT_UNIX_SOCKET_PATH, g->to.socket);
    return code;
}

CURLcode grpc_task_set_handle(struct grpc *g)
{
    CURLcode code = CURLE_OK;
    SET(CURLOPT_PROTOCOLS_STR, g->to.tls ? "https" : "http");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* of a resolver that hangs */
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    SET(CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    SET(CURLOPT_VERBOSE, 1L); /* only to have guard() called */
    SET(CURLOPT_DEBUGFUNCTION, guard);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
    SET(CURLOPT_USERAGENT, "biga/" BIGA_VERSION);
    SET(CURLOPT_ERRORBUFFER, g->reason);
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_READFUNCTION, give_request);
    SET(CURLOPT_SEEKFUNCTION, rewind_request);
    SET(CURLOPT_HEADERFUNCTION, take_head);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_PREREQFUNCTION, note_connected);
    if (code == CURLE_OK)
        code = grpc_socket_set_handle(g);
    if (code == CURLE_OK)
        code = g->to.tls ? set_tls(g) : set_plain(g);
    return code;
}

static struct curl_slist *make_headers(const struct grpc_task *t)
{
    static const char *const always[] = {
        "content-type: application/grpc",
        "te: trailers",
        "Expect:", /* no round trip for "100 Continue" */
        "Accept:",
    };
    struct curl_slist *list = NULL;
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        list = http_curl_header(list, always[i]);
    if (t->deadline_ms) {
        char line[48]; /* up to eight digits are allowed */
        (void)snprintf(line, sizeof line, "grpc-timeout: %um",
                       t->deadline_ms < 99999999 ? t->deadline_ms : 99999999);
        list = http_curl_header(list, line);
    }
    return list;
}

CURLcode grpc_task_set(struct grpc_task *t)
{
    struct grpc *g = t->g;
    CURLcode code = CURLE_OK;
    cleanup_free char *url = xasprintf("%s%s", g->to.base, t->method);
    /* libcurl would end a call before it reads what came in time; and its time
     * is real */
    long ms = g->round || clock_is_fake() ? 0 : (long)t->deadline_ms;
    /* a socket of this machine is connected at once, or not at all: who is late
     * there was not running */
    long connect_ms = clock_is_fake() || g->to.socket ? SOCKET_CONNECT_MS
                                                      : GRPC_CONNECT_MS;
    t->headers = make_headers(t);
    g->reason[0] = '\0';
    SET(CURLOPT_URL, url);
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request_size);
    SET(CURLOPT_TIMEOUT_MS, ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, ms && ms < connect_ms ? ms : connect_ms);
    SET(CURLOPT_READDATA, t);
    SET(CURLOPT_SEEKDATA, t);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_PREREQDATA, t);
    SET(CURLOPT_DEBUGDATA, t);
    return code;
}
#undef SET

void grpc_task_unset(struct grpc_task *t)
{
    (void)curl_easy_setopt(t->g->curl, CURLOPT_HTTPHEADER, NULL);
    (void)curl_easy_setopt(t->g->curl, CURLOPT_DEBUGDATA, NULL);
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

/* --- beginning and end ---------------------------------------------------- */

/* Changed files are for a new connection. */
static int look_at_files(struct grpc *g, struct error *err)
{
    const char *const paths[GRPC_N_FILES] = {g->config.ca, g->config.cert,
                                             g->config.key};
    bool changed = false;
    for (size_t i = 0; g->to.tls && i < GRPC_N_FILES; i++) {
        struct stat now, *then = &g->files[i];
        if (stat(paths[i], &now) < 0)
            return error_set(err, EKEYREJECTED, "%s cannot be read: %s",
                             paths[i], strerror(errno));
        changed |= now.st_ino != then->st_ino || now.st_dev != then->st_dev ||
                   now.st_size != then->st_size ||
                   now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
                   now.st_mtim.tv_nsec != then->st_mtim.tv_nsec;
        *then = now;
    }
    if (changed)
        grpc_reconnect(g);
    return 0;
}

static int judge(struct grpc_task *t)
{
    if (t->method[0] != '/' || strlen(t->method) > METHOD_MAX)
        return error_set(&t->err, EINVAL, "\"%.100s\" is no method", t->method);
    if (t->request_size > UINT32_MAX)
        return error_set(&t->err, EMSGSIZE, "a request of %zu bytes",
                         t->request_size);
    int r = check_cancelled(t);
    if (r < 0)
        return r;
    return t->g->round ? 0 : look_at_files(t->g, &t->err);
}

void grpc_task_reply(struct grpc_task *t, struct str *reply)
{
    str_reset(reply);
    if (reply->max == 0)
        reply->max = t->g->config.reply_max;
    t->frames.message = reply;
}

void grpc_task_init(struct grpc_task *t)
{
    t->fault = judge(t);
    grpc_prefix(t->request_size, t->prefix);
    t->request_size += GRPC_PREFIX;
    t->frames.message_max = t->g->config.reply_max;
    grpc_head_init(&t->head);
    t->due_ms = t->deadline_ms ? clock_ms() + t->deadline_ms : INT64_MAX;
}

static int tell_fault(struct grpc_task *t, CURLcode code)
{
    struct grpc *g = t->g;
    char heard[CURL_ERROR_SIZE];
    struct grpc_fault fault = {
        .code = code,
        .reason = g->reason[0] ? g->reason : curl_easy_strerror(code),
        .connected = t->connected,
        .deadline_ms = t->deadline_ms,
    };
    (void)curl_easy_getinfo(g->curl, CURLINFO_SSL_VERIFYRESULT, &fault.verify);
    (void)curl_easy_getinfo(g->curl, CURLINFO_OS_ERRNO, &fault.os_errno);
    if (g->to.tls && !t->brief && t->head.status == 0 &&
        grpc_fault_lost(&fault)) {
        unsigned ms = g->config.listen_ms;
        grpc_fault_listen(g->curl, ms ? ms : LISTEN_MS, heard);
        fault.reason = heard[0] ? heard : fault.reason;
    }
    int r = grpc_fault_tell(&g->config, &fault, &t->err);
    if (r == -EKEYREJECTED)
        t->connected = false; /* nobody there has read the call */
    return r;
}

/* libcurl 7.88 forgets trailers that GOAWAY is read together with: the call
 * has ended well for it, and it closes the connection, which it keeps after
 * any other call that did.  The one message of a unary call is only sent with
 * status OK, so where it is whole, the answer is. */
static bool lost_trailers(const struct grpc_task *t, CURLcode code)
{
    struct error ignored;
    return code == CURLE_OK && !t->frames.visit && t->head.status == 200 &&
           t->head.grpc && t->head.code < 0 && !grpc_socket_is_open(t->g) &&
           grpc_frames_end(&t->frames, &ignored) == 0;
}

/* A server may reset the stream once it has said all there is to say, and a
 * status that came is a status. */
static int outcome(struct grpc_task *t, CURLcode code)
{
    if (t->fault)
        return t->fault;
    if (t->late && t->head.code < 0)
        code = CURLE_OPERATION_TIMEDOUT;
    if (code != CURLE_OK && t->head.code < 0)
        return tell_fault(t, code);
    if (lost_trailers(t, code))
        t->head.code = GRPC_OK;
    int r = grpc_head_end(&t->head, &t->err);
    if (r == 0)
        r = grpc_frames_end(&t->frames, &t->err);
    return r;
}

int grpc_task_end(struct grpc_task *t, CURLcode code, struct grpc_end *ret_end,
                  struct error *err)
{
    int r = outcome(t, code);
    struct grpc_counts *counts = t->g->config.counts;
    if (counts)
        atomic_fetch_add(&counts->ended[grpc_outcome_of(r)], 1);
    ret_end->code = t->head.code;
    (void)snprintf(ret_end->message, sizeof ret_end->message, "%s",
                   t->head.message);
    ret_end->unsent = r != 0 && !t->connected;
    if (r < 0 && t->err.code == -r) {
        const char *name = strrchr(t->method, '/');
        (void)error_set(err, -r, "%s: %s: %s", t->g->config.endpoint,
                        name ? name + 1 : t->method, t->err.text);
    }
    return r;
}

/* Was a kept connection no good any more, and nothing of the request sent? */
bool grpc_task_stale(const struct grpc_task *t, CURLcode code)
{
    long made = 0; /* new connections */
    if (code == CURLE_OK || code == CURLE_OPERATION_TIMEDOUT || t->fault ||
        t->late || t->sent > 0 || t->head.status != 0)
        return false;
    return curl_easy_getinfo(t->g->curl, CURLINFO_NUM_CONNECTS, &made) ==
               CURLE_OK &&
           made == 0 && t->connected;
}
