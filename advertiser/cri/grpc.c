#include "advertiser/cri/grpc.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/cri/grpc_frame.h"
#include "advertiser/cri/grpc_private.h"
#include "model/io/clock.h"
#include "model/io/http_curl.h"

enum {
    METHOD_MAX = 128,
    KEEP_MS = 200, /* at most between two questions to `keep` */
    /* libcurl 7.88 overlooks cleartext bytes that it has read already: a
     * poll finds none, so it must be short */
    PLAIN_POLL_MS = 2,
    TLS_POLL_MS = 200,
    /* A server that is gone without a word: how long a stream waits. */
    KEEPALIVE_S = 5,
    USER_TIMEOUT_MS = 15000,
    UPLOAD_BUFFER = 16 << 10, /* bytes; the least that libcurl takes */
    /* What comes besides messages: frames that carry little or nothing may
     * have this much, and this many times the messages. */
    IDLE_BYTES = 1 << 20,
    IDLE_TIMES = 8,
    N_FILES = 3,
    FDS_MAX = 4,     /* libcurl tries two at a time */
    LISTEN_MS = 300, /* for a refusal of our certificate */
};

struct grpc {
    struct grpc_config config;
    struct grpc_endpoint to;
    CURL *curl;
    CURLM *multi; /* has the connection; NULL: none is to be reused */
    struct stat files[N_FILES]; /* what that connection was made with */
    /* Of the connection, or of those that are tried for one; -1: none. */
    int fds[FDS_MAX];
    char own[GRPC_ADDRESS_MAX]; /* our address on the newest; "" none yet */
    char reason[CURL_ERROR_SIZE];
};

struct call {
    struct grpc *g;
    const char *method;
    unsigned char prefix[GRPC_PREFIX];
    const char *request;
    size_t request_size, sent; /* with the prefix */
    struct grpc_frames frames;
    struct grpc_head head;
    grpc_keep_f *keep;
    void *ctx;
    unsigned deadline_ms; /* 0: none */
    int64_t due_ms;       /* end of the deadline; INT64_MAX: never */
    int64_t asked_ms;     /* when `keep` was asked */
    bool connected;
    bool late;      /* we ended it, for its deadline */
    uint64_t taken; /* bytes of messages and prefixes */
    uint64_t had;   /* bytes that the connection had received before */
    int fault;      /* of ours: ends the transfer; 0: none */
    struct error err;
};

/* --- create --------------------------------------------------------------- */

/* A connection that is dead is noticed although nothing is sent. */
static int set_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    struct grpc *g = ctx;
    unsigned ms = USER_TIMEOUT_MS;
    for (size_t i = 0; i < FDS_MAX; i++)
        if (g->fds[i] < 0) {
            g->fds[i] = fd;
            break;
        }
    (void)purpose; /* the only one: a connection of ours */
    /* refused by unix sockets, which need none */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    return CURL_SOCKOPT_OK;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    struct grpc *g = ctx;
    for (size_t i = 0; i < FDS_MAX; i++)
        if (g->fds[i] == fd)
            g->fds[i] = -1;
    return close(fd);
}

void grpc_local_address(const struct grpc *g, char ret_text[GRPC_ADDRESS_MAX])
{
    memcpy(ret_text, g->own, sizeof g->own);
}

static int guard(CURL *curl, curl_infotype type, char *text, size_t size,
                 void *ctx);
static int rewind_request(void *ctx, curl_off_t offset, int origin);
static size_t take_head(char *data, size_t size, size_t n, void *ctx);
static size_t take_body(char *data, size_t size, size_t n, void *ctx);
static size_t give_request(char *out, size_t size, size_t n, void *ctx);
static int note_connected(void *ctx, char *to, char *from, int to_port,
                          int from_port);

#define SET(option, value)                                   \
    do {                                                     \
        if (code == CURLE_OK)                                \
            code = curl_easy_setopt(g->curl, option, value); \
    } while (0)

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

/* See PLAIN_POLL_MS; it also fails when it reuses a cleartext connection. */
static CURLcode set_plain(struct grpc *g)
{
    CURLcode code = CURLE_OK;
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    if (g->to.socket)
        SET(CURLOPT_UNIX_SOCKET_PATH, g->to.socket);
    return code;
}

static CURLcode set_options(struct grpc *g)
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
    SET(CURLOPT_SOCKOPTFUNCTION, set_socket);
    SET(CURLOPT_SOCKOPTDATA, g);
    SET(CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    SET(CURLOPT_CLOSESOCKETDATA, g);
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
        code = g->to.tls ? set_tls(g) : set_plain(g);
    return code;
}

static pthread_once_t init_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* again by easy_init */
}

int grpc_create(const struct grpc_config *config, struct grpc **ret_grpc,
                struct error *err)
{
    cleanup_with(grpc) struct grpc *g = xcalloc(1, sizeof *g);
    (void)pthread_once(&init_once, init_curl);
    g->config = *config;
    for (size_t i = 0; i < FDS_MAX; i++)
        g->fds[i] = -1;
    int r = grpc_endpoint_read(config, &g->to, err);
    if (r < 0)
        return r;
    if (g->config.reply_max == 0 || g->config.reply_max > GRPC_REPLY_MAX)
        g->config.reply_max = GRPC_REPLY_MAX;
    g->curl = curl_easy_init();
    CURLcode code = g->curl ? set_options(g) : CURLE_FAILED_INIT;
    if (code != CURLE_OK)
        return error_set(err, EIO, "%s: libcurl: %s", config->endpoint,
                         curl_easy_strerror(code));
    *ret_grpc = steal(&g);
    return 0;
}

void grpc_reconnect(struct grpc *g)
{
    if (g->multi)
        (void)curl_multi_cleanup(g->multi); /* nothing is in it */
    g->multi = NULL;
}

void grpc_destroy(struct grpc *g)
{
    if (!g)
        return;
    grpc_reconnect(g);
    curl_easy_cleanup(g->curl); /* NULL allowed */
    free(g->to.base);
    free(g);
}

/* --- what libcurl calls --------------------------------------------------- */

static size_t take_head(char *data, size_t size, size_t n, void *ctx)
{
    struct call *call = ctx;
    if (!call->fault)
        call->fault = grpc_head_line(&call->head, data, size * n, &call->err);
    return call->fault ? 0 : size * n;
}

static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
    struct call *call = ctx;
    /* a page for people, or the like: its status says enough */
    if (call->head.status != 200 || !call->head.grpc)
        call->fault = grpc_head_end(&call->head, &call->err);
    if (!call->fault)
        call->fault = grpc_frames_feed(&call->frames, data, size * n,
                                       &call->err);
    call->taken += size * n;
    return call->fault ? 0 : size * n;
}

static size_t give_request(char *out, size_t size, size_t n, void *ctx)
{
    struct call *call = ctx;
    size_t room = size * n, given = 0;
    while (given < room && call->sent < call->request_size) {
        bool prefix = call->sent < GRPC_PREFIX;
        size_t end = prefix ? GRPC_PREFIX : call->request_size;
        size_t part = end - call->sent;
        part = part < room - given ? part : room - given;
        memcpy(out + given,
               prefix ? (const char *)call->prefix + call->sent
                      : call->request + (call->sent - GRPC_PREFIX),
               part);
        given += part;
        call->sent += part;
    }
    return given;
}

/* libcurl sends a request again on its own when a kept connection turns out
 * to be dead, and it may have been carried out: never again what was sent. */
static int rewind_request(void *ctx, curl_off_t offset, int origin)
{
    const struct call *call = ctx;
    return call->sent == 0 && offset == 0 && origin == SEEK_SET
               ? CURL_SEEKFUNC_OK
               : CURL_SEEKFUNC_FAIL;
}

/* Bytes that the connection has received, of TLS and all; 0: not known. */
static uint64_t received(const struct grpc *g)
{
    uint64_t sum = 0;
    for (size_t i = 0; !g->to.socket && i < FDS_MAX; i++) {
        struct tcp_info info = {0};
        socklen_t size = sizeof info;
        if (g->fds[i] >= 0 &&
            getsockopt(g->fds[i], IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
            sum += info.tcpi_bytes_received;
    }
    return sum;
}

static int note_connected(void *ctx, char *to, char *from, int to_port,
                          int from_port)
{
    struct call *call = ctx;
    (void)to;
    (void)snprintf(call->g->own, sizeof call->g->own, "%s",
                   from && !call->g->to.socket ? from : "");
    (void)to_port;
    (void)from_port;
    call->connected = true;
    call->had = received(call->g);
    return CURL_PREREQFUNC_OK;
}

/* --- one call ------------------------------------------------------------- */

/* Do frames keep coming that carry no message?  No deadline of a stream ends
 * that, and no cap sees it. */
static int check_idle_bytes(struct call *call)
{
    uint64_t now = call->connected ? received(call->g) : 0;
    if (now <= call->had ||
        now - call->had <= IDLE_BYTES + IDLE_TIMES * call->taken)
        return 0;
    return error_set(&call->err, EPROTO,
                     "it sends frames without end that carry nothing");
}

/* Must the call end, whatever comes?  False: yes. */
static bool may_go_on(struct call *call)
{
    int64_t now = clock_ms();
    if (call->fault || call->late)
        return false;
    call->late = now > call->due_ms;
    if (call->keep && now - call->asked_ms >= KEEP_MS) {
        call->asked_ms = now;
        if (!call->keep(call->ctx))
            call->fault = error_set(&call->err, ECANCELED,
                                    "the call was given up");
    }
    if (!call->fault)
        call->fault = check_idle_bytes(call);
    return !call->fault && !call->late;
}

/* End the connection under libcurl's hands.  After shutdown() a flood would
 * still be read; this resets it and drops what is there. */
static void cut(const struct grpc *g)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    for (size_t i = 0; !g->to.socket && i < FDS_MAX; i++)
        if (g->fds[i] >= 0)
            (void)connect(g->fds[i], &nowhere, sizeof nowhere);
}

/* While a server sends frames without data faster than libcurl 7.88 reads
 * them, libcurl goes on reading: no deadline ends that, and no function of
 * ours is called but this one, for each record of TLS. */
static int guard(CURL *curl, curl_infotype type, char *text, size_t size,
                 void *ctx)
{
    struct call *call = ctx; /* NULL: between calls */
    (void)curl;
    (void)text;
    (void)size;
    if (call && type == CURLINFO_SSL_DATA_IN && call->connected &&
        !may_go_on(call))
        cut(call->g);
    return 0;
}

static CURLcode code_of(CURLM *multi)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(multi, &left));)
        if (m->msg == CURLMSG_DONE)
            return m->data.result;
    return CURLE_RECV_ERROR; /* there is always one when none runs */
}

/* Until the transfer has ended, or must. */
static CURLcode run(struct call *call)
{
    CURLM *multi = call->g->multi;
    int running = 1;
    int poll_ms = call->g->to.tls ? TLS_POLL_MS : PLAIN_POLL_MS;
    for (;;) {
        CURLMcode code = curl_multi_perform(multi, &running);
        if (code != CURLM_OK)
            return CURLE_OUT_OF_MEMORY;
        if (running == 0)
            return code_of(multi);
        if (!may_go_on(call))
            return CURLE_ABORTED_BY_CALLBACK;
        /* a body that comes is read without a wait by the next perform */
        (void)curl_multi_poll(multi, NULL, 0, poll_ms, NULL);
    }
}

static struct curl_slist *make_headers(const struct call *call)
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
    if (call->deadline_ms) {
        char line[48]; /* up to eight digits are allowed */
        (void)snprintf(line, sizeof line, "grpc-timeout: %um",
                       call->deadline_ms < 99999999 ? call->deadline_ms
                                                    : 99999999);
        list = http_curl_header(list, line);
    }
    return list;
}

static CURLcode set_call(struct call *call, const char *url,
                         struct curl_slist *headers)
{
    struct grpc *g = call->g;
    CURLcode code = CURLE_OK;
    long connect_ms = GRPC_CONNECT_MS;
    if (call->deadline_ms && call->deadline_ms < GRPC_CONNECT_MS)
        connect_ms = call->deadline_ms;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->request_size);
    SET(CURLOPT_TIMEOUT_MS, (long)call->deadline_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    SET(CURLOPT_READDATA, call);
    SET(CURLOPT_SEEKDATA, call);
    SET(CURLOPT_HEADERDATA, call);
    SET(CURLOPT_WRITEDATA, call);
    SET(CURLOPT_PREREQDATA, call);
    SET(CURLOPT_DEBUGDATA, call);
    return code;
}
#undef SET

static CURLcode transfer(struct call *call)
{
    struct grpc *g = call->g;
    cleanup_free char *url = xasprintf("%s%s", g->to.base, call->method);
    struct curl_slist *headers = make_headers(call);
    CURLcode code = set_call(call, url, headers);
    if (!g->multi)
        g->multi = curl_multi_init();
    if (!g->multi)
        abort(); /* out of memory, as x*alloc does */
    g->reason[0] = '\0';
    if (code == CURLE_OK) {
        (void)curl_multi_setopt(g->multi, CURLMOPT_MAXCONNECTS, 1L);
        code = curl_multi_add_handle(g->multi, g->curl) == CURLM_OK
                   ? run(call)
                   : CURLE_FAILED_INIT;
        (void)curl_multi_remove_handle(g->multi, g->curl);
    }
    (void)curl_easy_setopt(g->curl, CURLOPT_HTTPHEADER, NULL);
    (void)curl_easy_setopt(g->curl, CURLOPT_DEBUGDATA, NULL);
    curl_slist_free_all(headers);
    return code;
}

/* Changed files are for a new connection. */
static int look_at_files(struct grpc *g, struct error *err)
{
    const char *const paths[N_FILES] = {g->config.ca, g->config.cert,
                                        g->config.key};
    bool changed = false;
    for (size_t i = 0; g->to.tls && i < N_FILES; i++) {
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

static int tell_fault(struct call *call, CURLcode code)
{
    struct grpc *g = call->g;
    char heard[CURL_ERROR_SIZE];
    struct grpc_fault fault = {
        .code = code,
        .reason = g->reason[0] ? g->reason : curl_easy_strerror(code),
        .connected = call->connected,
        .deadline_ms = call->deadline_ms,
    };
    (void)curl_easy_getinfo(g->curl, CURLINFO_SSL_VERIFYRESULT, &fault.verify);
    (void)curl_easy_getinfo(g->curl, CURLINFO_OS_ERRNO, &fault.os_errno);
    if (g->to.tls && call->head.status == 0 && grpc_fault_lost(&fault)) {
        grpc_fault_listen(g->curl, LISTEN_MS, heard);
        fault.reason = heard[0] ? heard : fault.reason;
    }
    int r = grpc_fault_tell(&g->config, &fault, &call->err);
    if (r == -EKEYREJECTED)
        call->connected = false; /* nobody there has read the call */
    return r;
}

/* A server may reset the stream once it has said all there is to say, and a
 * status that came is a status. */
static int outcome(struct call *call, CURLcode code)
{
    if (call->fault)
        return call->fault;
    if (call->late && call->head.code < 0)
        code = CURLE_OPERATION_TIMEDOUT;
    if (code != CURLE_OK && call->head.code < 0)
        return tell_fault(call, code);
    int r = grpc_head_end(&call->head, &call->err);
    if (r == 0)
        r = grpc_frames_end(&call->frames, &call->err);
    return r;
}

static int finish(struct call *call, CURLcode code, struct grpc_end *ret_end,
                  struct error *err)
{
    int r = outcome(call, code);
    ret_end->code = call->head.code;
    (void)snprintf(ret_end->message, sizeof ret_end->message, "%s",
                   call->head.message);
    ret_end->unsent = r != 0 && !call->connected;
    if (code != CURLE_OK || (r < 0 && r != -EREMOTEIO))
        grpc_reconnect(call->g);
    if (r < 0 && call->err.code == -r) {
        const char *name = strrchr(call->method, '/');
        (void)error_set(err, -r, "%s: %s: %s", call->g->config.endpoint,
                        name ? name + 1 : call->method, call->err.text);
    }
    return r;
}

/* Was a kept connection no good any more, and nothing of the request sent? */
static bool stale(const struct call *call, CURLcode code)
{
    long made = 0; /* new connections */
    if (code == CURLE_OK || code == CURLE_OPERATION_TIMEDOUT || call->fault ||
        call->late || call->sent > 0 || call->head.status != 0)
        return false;
    return curl_easy_getinfo(call->g->curl, CURLINFO_NUM_CONNECTS, &made) ==
               CURLE_OK &&
           made == 0 && call->connected;
}

static int perform(struct call *call, struct grpc_end *ret_end,
                   struct error *err)
{
    struct grpc *g = call->g;
    memset(ret_end, 0, sizeof *ret_end);
    ret_end->code = -1;
    ret_end->unsent = true;
    if (call->method[0] != '/' || strlen(call->method) > METHOD_MAX)
        return error_set(err, EINVAL, "%s: \"%.100s\" is no method",
                         g->config.endpoint, call->method);
    if (call->request_size > UINT32_MAX)
        return error_set(err, EMSGSIZE, "%s: %s: a request of %zu bytes",
                         g->config.endpoint, call->method, call->request_size);
    grpc_prefix(call->request_size, call->prefix);
    call->request_size += GRPC_PREFIX;
    call->frames.message_max = g->config.reply_max;
    grpc_head_init(&call->head);
    call->asked_ms = clock_ms();
    call->due_ms = call->deadline_ms ? call->asked_ms + call->deadline_ms
                                     : INT64_MAX;
    call->fault = look_at_files(g, &call->err);
    CURLcode code = call->fault ? CURLE_ABORTED_BY_CALLBACK : transfer(call);
    if (stale(call, code)) {
        grpc_reconnect(g);
        call->connected = false;
        code = transfer(call);
    }
    return finish(call, code, ret_end, err);
}

int grpc_call(struct grpc *g, const char *method, const void *request,
              size_t size, unsigned deadline_ms, struct str *ret_reply,
              struct grpc_end *ret_end, struct error *err)
{
    struct call call = {
        .g = g,
        .method = method,
        .request = request,
        .request_size = size,
        .frames.message = ret_reply,
        .deadline_ms = deadline_ms ? deadline_ms : 1, /* 0 would be none */
    };
    str_reset(ret_reply);
    if (ret_reply->max == 0)
        ret_reply->max = g->config.reply_max;
    return perform(&call, ret_end, err);
}

int grpc_stream(struct grpc *g, const char *method, const void *request,
                size_t size, grpc_message_f *visit, grpc_keep_f *keep,
                void *ctx, struct grpc_end *ret_end, struct error *err)
{
    cleanup_str struct str message = STR_INIT(g->config.reply_max);
    struct call call = {
        .g = g,
        .method = method,
        .request = request,
        .request_size = size,
        .frames = {.message = &message, .visit = visit, .ctx = ctx},
        .keep = keep,
        .ctx = ctx,
    };
    return perform(&call, ret_end, err);
}
