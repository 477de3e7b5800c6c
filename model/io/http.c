#include "model/io/http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "model/base/json.h"
#include "model/base/mem.h"

enum {
    ANSWER_MAX = 64 << 20, /* bytes of one answer's body */
    URL_MAX = 4096,
    SHOWN_MAX = 200, /* bytes of a body that is no JSON */
};

struct http_client {
    CURL *curl;
    char *base; /* without a trailing slash */
    char reason[CURL_ERROR_SIZE];
};

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static CURLcode init_code;

static void init_curl(void)
{
    init_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int check_base(const char *base, struct error *err)
{
    size_t size = strlen(base);
    bool plain = strncasecmp(base, "http://", 7) == 0;
    bool secure = strncasecmp(base, "https://", 8) == 0;
    if (size < (secure ? 9u : 8u) || (!plain && !secure))
        return error_set(err, EINVAL,
                         "\"%.200s\" is no address of a server, which looks "
                         "like http://127.0.0.1:PORT",
                         base);
    if (size > URL_MAX / 2)
        return error_set(err, EINVAL, "address has %zu bytes, the limit is %d",
                         size, URL_MAX / 2);
    return 0;
}

/* What holds for every call.  The first failure is returned. */
static CURLcode set_options(CURL *curl, unsigned timeout_ms, char *reason)
{
    CURLcode code = CURLE_OK;
#define SET(option, value)                                \
    do {                                                  \
        if (code == CURLE_OK)                             \
            code = curl_easy_setopt(curl, option, value); \
    } while (0)
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
    SET(CURLOPT_MAXCONNECTS, 1L);
    SET(CURLOPT_USERAGENT, "biga/" BIGA_VERSION);
    SET(CURLOPT_ERRORBUFFER, reason);
#undef SET
    return code;
}

int http_client_create(const char *base, unsigned timeout_ms,
                       struct http_client **ret_client, struct error *err)
{
    int r = check_base(base, err);
    if (r < 0)
        return r;
    (void)pthread_once(&init_once, init_curl);
    if (init_code != CURLE_OK)
        return error_set(err, EIO, "libcurl: %s",
                         curl_easy_strerror(init_code));
    struct http_client *c = xcalloc(1, sizeof *c);
    c->curl = curl_easy_init();
    CURLcode code = c->curl ? set_options(c->curl, timeout_ms, c->reason)
                            : CURLE_FAILED_INIT;
    if (code != CURLE_OK) {
        http_client_destroy(c);
        return error_set(err, EIO, "libcurl: %s", curl_easy_strerror(code));
    }
    c->base = xstrdup(base);
    for (size_t n = strlen(base); n > 0 && c->base[n - 1] == '/'; n--)
        c->base[n - 1] = '\0';
    *ret_client = c;
    return 0;
}

void http_client_destroy(struct http_client *c)
{
    if (!c)
        return;
    if (c->curl)
        curl_easy_cleanup(c->curl);
    free(c->base);
    free(c);
}

/* Returning less than was given makes libcurl end the transfer. */
static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
    struct http_answer *answer = ctx;
    str_add_n(&answer->body, data, size * n);
    return answer->body.overflow ? 0 : size * n;
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
        return ": is this the port of a Biga server?";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
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
    default:
        return EIO;
    }
}

static struct curl_slist *make_headers(const char *accept, bool has_body)
{
    cleanup_free char *line = xasprintf("Accept: %s",
                                        accept ? accept : "application/json");
    struct curl_slist *list = curl_slist_append(NULL, line), *more;
    /* no round trip for "100 Continue" before the body */
    const char *const others[] = {"Expect:", "Content-Type: application/json"};
    for (size_t i = 0; i < (has_body ? 2u : 1u); i++) {
        more = list ? curl_slist_append(list, others[i]) : NULL;
        if (!more)
            abort(); /* out of memory, as x*alloc does */
        list = more;
    }
    return list;
}

static CURLcode perform(struct http_client *c, const char *method,
                        const char *url, struct curl_slist *headers,
                        struct http_answer *answer)
{
    CURLcode code = CURLE_OK;
    c->reason[0] = '\0';
#define SET(option, value)                                   \
    do {                                                     \
        if (code == CURLE_OK)                                \
            code = curl_easy_setopt(c->curl, option, value); \
    } while (0)
    SET(CURLOPT_URL, url);
    SET(CURLOPT_CUSTOMREQUEST, strcmp(method, "HEAD") == 0 ? NULL : method);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, answer);
#undef SET
    if (code == CURLE_OK)
        code = curl_easy_perform(c->curl);
    (void)curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
    return code;
}

/* What is sent besides the head: HTTPGET turns both others off again. */
static void set_body(CURL *curl, const char *method, const char *body,
                     size_t body_size)
{
    (void)curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    if (strcmp(method, "HEAD") == 0)
        (void)curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if (!body)
        return;
    (void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)body_size);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
}

int http_call(struct http_client *c, const char *method, const char *path,
              const char *body, size_t body_size, const char *accept,
              struct http_answer *ret_answer, struct error *err)
{
    cleanup_str struct str url = STR_INIT(URL_MAX);
    str_add(&url, c->base);
    str_add(&url, path);
    if (url.overflow)
        return error_set(err, EINVAL, "%s: URL over %d bytes", c->base,
                         URL_MAX);
    str_reset(&ret_answer->body);
    ret_answer->body.overflow = false;
    if (ret_answer->body.max == 0)
        ret_answer->body.max = ANSWER_MAX;
    ret_answer->status = 0;

    set_body(c->curl, method, body, body_size);
    struct curl_slist *headers = make_headers(accept, body != NULL);
    CURLcode code = perform(c, method, url.data, headers, ret_answer);
    curl_slist_free_all(headers);
    (void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE,
                            &ret_answer->status);
    if (ret_answer->body.overflow)
        return error_set(err, EMSGSIZE, "%s %s: the answer is over %zu bytes",
                         method, url.data, ret_answer->body.max);
    if (code != CURLE_OK)
        return error_set(err, errno_of(code), "%s %s: %s%s", method, url.data,
                         c->reason[0] ? c->reason : curl_easy_strerror(code),
                         hint_of(code));
    return 0;
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
