#include "lib/http/http.h"

#include <curl/curl.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/http/http_curl.h"
#include "lib/io/clock.h"

enum {
    ANSWER_MAX = 64 << 20, /* bytes of one answer's body */
    URL_MAX = 4096,
    SHOWN_MAX = 200,        /* bytes of a body that is no JSON */
    RETRY_MAX_MS = 3600000, /* a longer Retry-After is taken for this */
};

struct http_client {
    struct http_config config;
    struct http_target target;
    CURL *curl;
    char *authorization; /* the whole header; NULL: none */
    bool reconnect;      /* the next call makes a new connection */
    unsigned retry_ms;
    bool unsent;
    unsigned sends;                   /* of the last request */
    const struct http_follow *follow; /* of this one; NULL: none */
    int64_t heard_ms;                 /* when something of it came last */
    bool silent;                      /* nothing did for too long */
    char reason[CURL_ERROR_SIZE];
};

int http_client_open(const struct http_config *config,
                     struct http_client **ret_client, struct error *err)
{
    struct http_client *c = xcalloc(1, sizeof *c);
    c->config = *config;
    int r = http_target_init(&c->target, config, err);
    if (r == 0)
        r = http_curl_create(&c->config, &c->target, c->reason, &c->curl, err);
    if (r < 0) {
        http_client_destroy(c);
        return r;
    }
    c->config.base = c->target.shown;
    *ret_client = c;
    return 0;
}

int http_client_create(const char *base, unsigned timeout_ms,
                       struct http_client **ret_client, struct error *err)
{
    const struct http_config config = {.base = base, .timeout_ms = timeout_ms};
    return http_client_open(&config, ret_client, err);
}

void http_client_destroy(struct http_client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->curl); /* NULL allowed */
    http_target_fini(&c->target);
    free(c->authorization);
    free(c);
}

void http_client_set_authorization(struct http_client *c, const char *value)
{
    free(c->authorization);
    c->authorization = value ? xasprintf("Authorization: %s", value) : NULL;
}

void http_client_reconnect(struct http_client *c)
{
    c->reconnect = true;
}

struct taking {
    struct http_answer *answer;
    size_t max;
    bool overflow;
    struct http_client *client;
    bool ended; /* by whom it is given to */
};

static bool is_followed(const struct taking *t)
{
    long status = 0;
    if (t->client->follow)
        (void)curl_easy_getinfo(t->client->curl, CURLINFO_RESPONSE_CODE,
                                &status);
    return status == 200;
}

/* Returning less than was given makes libcurl end the transfer. */
static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
    struct taking *t = ctx;
    struct str *body = &t->answer->body;
    if (is_followed(t)) {
        const struct http_follow *f = t->client->follow;
        t->ended = !f->take(f->ctx, data, size * n);
        t->client->heard_ms = clock_ms();
        return t->ended ? 0 : size * n;
    }
    if (size * n > t->max - body->size || !str_reserve(body, size * n)) {
        t->overflow = true;
        return 0;
    }
    str_add_n(body, data, size * n);
    return size * n;
}

/* What a person can do about it. */
static const char *hint_of(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        return ": is the server running, and is this its address?";
    case CURLE_COULDNT_RESOLVE_HOST:
        return ": is the host name right?";
    case CURLE_OPERATION_TIMEDOUT:
        return ": is the server overloaded or stopped?";
    case CURLE_GOT_NOTHING:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return ": is this the right port, and http or https as it speaks?";
    case CURLE_SSL_CONNECT_ERROR:
        return ": does a server stand behind that address, and do both sides "
               "take the other's certificate?";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return ": check the certificates of both sides";
    default:
        return "";
    }
}

static int errno_of(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        return ECONNREFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return ETIMEDOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
        return EHOSTUNREACH;
    case CURLE_ABORTED_BY_CALLBACK:
        return ECANCELED;
    default:
        return EIO;
    }
}

static struct curl_slist *make_headers(const struct http_client *c,
                                       const struct http_request *rq)
{
    const char *accept = rq->accept ? rq->accept : "application/json";
    const char *type = rq->content_type ? rq->content_type : "application/json";
    cleanup_free char *accepts = xasprintf("Accept: %s", accept);
    cleanup_free char *is = xasprintf("Content-Type: %s", type);
    struct curl_slist *list = http_curl_header(NULL, accepts);
    /* no round trip for "100 Continue" before the body */
    list = http_curl_header(list, "Expect:");
    if (rq->body)
        list = http_curl_header(list, is);
    if (c->target.host_header)
        list = http_curl_header(list, c->target.host_header);
    if (c->authorization)
        list = http_curl_header(list, c->authorization);
    return list;
}

/* What is sent besides the head: HTTPGET turns both others off again. */
static void set_body(CURL *curl, const struct http_request *rq)
{
    (void)curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    if (strcmp(rq->method, "HEAD") == 0)
        (void)curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if (!rq->body)
        return;
    (void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)rq->body_size);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, rq->body);
}

/* libcurl asks about once a second, also while nothing comes.  (What it has for
 * slow transfers takes a few bytes a minute for none.) */
static int is_over(void *ctx, curl_off_t total, curl_off_t now,
                   curl_off_t up_total, curl_off_t up_now)
{
    struct http_client *c = ctx;
    (void)total;
    (void)now;
    (void)up_total;
    (void)up_now;
    c->silent = c->follow && c->follow->silent_ms &&
                clock_ms() - c->heard_ms > c->follow->silent_ms;
    return c->silent || (c->config.stop && atomic_load(c->config.stop));
}

/* libcurl sends a request again, by itself, when a connection that was kept ends
 * without a byte of an answer. */
static int count_send(void *ctx, char *own, char *peer, int own_port,
                      int peer_port)
{
    (void)own;
    (void)peer;
    (void)own_port;
    (void)peer_port;
    ((struct http_client *)ctx)->sends++;
    return CURL_PREREQFUNC_OK;
}

static CURLcode perform(struct http_client *c, const struct http_request *rq,
                        const char *url, struct taking *taking)
{
    const char *method = rq->method;
    CURL *curl = c->curl;
    unsigned timeout_ms = rq->timeout_ms ? rq->timeout_ms
                                         : c->config.timeout_ms;
    CURLcode code = CURLE_OK;
    struct curl_slist *headers = make_headers(c, rq);
    set_body(curl, rq);
    c->reason[0] = '\0';
    c->sends = 0;
    c->follow = rq->follow;
    c->heard_ms = clock_ms();
    c->silent = false;
#define SET(option, value) HTTP_CURL_SET(code, curl, option, value)
    SET(CURLOPT_URL, url);
    SET(CURLOPT_CUSTOMREQUEST, strcmp(method, "HEAD") == 0 ? NULL : method);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_TIMEOUT_MS, rq->follow ? 0L : (long)timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
    SET(CURLOPT_TCP_KEEPALIVE, rq->follow ? 1L : 0L); /* it may be silent */
    SET(CURLOPT_FRESH_CONNECT, c->reconnect ? 1L : 0L);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, taking);
    SET(CURLOPT_PREREQFUNCTION, count_send);
    SET(CURLOPT_PREREQDATA, c);
    SET(CURLOPT_NOPROGRESS, c->config.stop || rq->follow ? 0L : 1L);
    SET(CURLOPT_XFERINFOFUNCTION, is_over);
    SET(CURLOPT_XFERINFODATA, c);
#undef SET
    if (code == CURLE_OK)
        code = curl_easy_perform(curl);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return code;
}

/* What the transfer says about itself. */
static void note_transfer(struct http_client *c, CURLcode code,
                          struct http_answer *answer)
{
    curl_off_t retry_s = 0;
    long sent = 0; /* bytes, of all tries */
    (void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &answer->status);
    (void)curl_easy_getinfo(c->curl, CURLINFO_RETRY_AFTER, &retry_s);
    (void)curl_easy_getinfo(c->curl, CURLINFO_REQUEST_SIZE, &sent);
    if (retry_s > RETRY_MAX_MS / 1000)
        retry_s = RETRY_MAX_MS / 1000;
    c->retry_ms = retry_s > 0 ? (unsigned)retry_s * 1000 : 0;
    c->unsent = code != CURLE_OK && sent == 0;
    if (code == CURLE_OK) /* else the old connection may still be kept */
        c->reconnect = false;
}

int http_send(struct http_client *c, const struct http_request *rq,
              struct http_answer *ret_answer, struct error *err)
{
    cleanup_str struct str url = STR_INIT(URL_MAX);
    str_add(&url, c->target.base);
    str_add(&url, rq->path);
    str_reset(&ret_answer->body);
    ret_answer->status = 0;
    c->retry_ms = 0;
    c->unsent = true;
    if (url.overflow)
        return error_set(err, EINVAL, "%s: URL over %d bytes", c->target.shown,
                         URL_MAX);
    size_t max = c->config.answer_max ? c->config.answer_max : ANSWER_MAX;
    if (ret_answer->body.max == 0)
        ret_answer->body.max = max;
    if (max > ret_answer->body.max)
        max = ret_answer->body.max;
    struct taking taking = {.answer = ret_answer, .max = max, .client = c};
    CURLcode code = perform(c, rq, url.data, &taking);
    note_transfer(c, code, ret_answer);
    if (taking.overflow)
        return error_set(err, EMSGSIZE, "%s %s%s: the answer is over %zu bytes",
                         rq->method, c->target.shown, rq->path, max);
    if (c->silent)
        return error_set(err, ETIMEDOUT, "%s %s%s: nothing came for %u ms",
                         rq->method, c->target.shown, rq->path,
                         rq->follow->silent_ms);
    if (code != CURLE_OK && !taking.ended)
        return error_set(err, errno_of(code), "%s %s%s: %s%s", rq->method,
                         c->target.shown, rq->path,
                         c->reason[0] ? c->reason : curl_easy_strerror(code),
                         hint_of(code));
    return 0;
}

int http_call(struct http_client *c, const char *method, const char *path,
              const char *body, size_t body_size, const char *accept,
              struct http_answer *ret_answer, struct error *err)
{
    const struct http_request request = {
        .method = method,
        .path = path,
        .accept = accept,
        .body = body,
        .body_size = body_size,
    };
    return http_send(c, &request, ret_answer, err);
}

const char *http_client_header(const struct http_client *c, const char *name)
{
    struct curl_header *header;
    return curl_easy_header(c->curl, name, 0, CURLH_HEADER, -1, &header) ==
                   CURLHE_OK
               ? header->value
               : NULL;
}

unsigned http_client_retry_ms(const struct http_client *c)
{
    return c->retry_ms;
}

bool http_client_unsent(const struct http_client *c)
{
    return c->unsent;
}

bool http_client_resent(const struct http_client *c)
{
    return c->sends > 1;
}

void http_answer_error(const struct http_answer *a, struct str *out)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error ignored; /* no JSON: then the body is the text */
    const char *text = NULL;
    if (a->body.size > 0 &&
        json_parse(a->body.data, a->body.size, &json, &ignored) == 0) {
        text = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(json, "error"));
        if (!text)
            text = cJSON_GetStringValue(
                cJSON_GetObjectItemCaseSensitive(json, "message"));
    }
    if (text && *text) {
        str_add(out, text);
        return;
    }
    size_t size = a->body.size < SHOWN_MAX ? a->body.size : SHOWN_MAX;
    while (size > 0 &&
           (a->body.data[size - 1] == '\n' || a->body.data[size - 1] == '\r'))
        size--;
    if (size > 0)
        str_add_n(out, a->body.data, size);
    else
        str_addf(out, "status %ld", a->status);
}
