#include "lib/http/http_curl.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "lib/base/mem.h"

enum {
    BASE_MAX = 2048,
    UNIX_PATH_SIZE = sizeof((struct sockaddr_un *)0)->sun_path,
};

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static CURLcode init_code;

static void init_curl(void)
{
    init_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

#define UNIX_SCHEME "unix:"

static bool is_unix(const char *base)
{
    return strncmp(base, UNIX_SCHEME "/", sizeof UNIX_SCHEME) == 0;
}

static int check_base(const char *base, struct error *err)
{
    size_t size = strlen(base);
    if (is_unix(base))
        return size - strlen(UNIX_SCHEME) < UNIX_PATH_SIZE
                   ? 0
                   : error_set(err, EINVAL,
                               "\"%.200s\": the path has %zu bytes, a unix "
                               "socket's at most %d",
                               base, size - strlen(UNIX_SCHEME),
                               UNIX_PATH_SIZE - 1);
    bool plain = strncasecmp(base, "http://", 7) == 0;
    bool secure = strncasecmp(base, "https://", 8) == 0;
    if (size < (secure ? 9u : 8u) || (!plain && !secure))
        return error_set(err, EINVAL,
                         "\"%.200s\" is no address of a server, which looks "
                         "like http://127.0.0.1:PORT",
                         base);
    if (size > BASE_MAX)
        return error_set(err, EINVAL, "address has %zu bytes, the limit is %d",
                         size, BASE_MAX);
    return 0;
}

struct curl_slist *http_curl_header(struct curl_slist *list, const char *line)
{
    struct curl_slist *more = curl_slist_append(list, line);
    if (!more)
        abort(); /* out of memory, as x*alloc does */
    return more;
}

/* --- the target ------------------------------------------------------------
 *
 * libcurl asks for (SNI) and expects the name that stands in the URL.  So the
 * name goes there, and CONNECT_TO says where the host really is. */

static void target_by_parts(struct http_target *t, CURLU *u, const char *name)
{
    char *host = NULL, *port = NULL, *full = NULL;
    (void)curl_url_get(u, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (host && port) {
        cleanup_free char *to = xasprintf("::%s:%s", host, port);
        t->host_header = xasprintf("Host: %s:%s", host, port);
        t->connect_to = http_curl_header(NULL, to);
        if (curl_url_set(u, CURLUPART_HOST, name, 0) == CURLUE_OK)
            (void)curl_url_get(u, CURLUPART_URL, &full, 0);
    }
    if (full)
        t->base = xstrdup(full);
    curl_free(host);
    curl_free(port);
    curl_free(full);
}

static void drop_slashes(char *text)
{
    for (size_t n = strlen(text); n > 0 && text[n - 1] == '/'; n--)
        text[n - 1] = '\0';
}

int http_target_init(struct http_target *t, const struct http_config *config,
                     struct error *err)
{
    int r = check_base(config->base, err);
    if (r < 0)
        return r;
    struct http_target made = {.shown = xstrdup(config->base)};
    drop_slashes(made.shown);
    if (is_unix(config->base)) {
        made.base = xstrdup("http://localhost");
        made.unix_path = xstrdup(made.shown + strlen(UNIX_SCHEME));
    } else if (config->server_name && *config->server_name) {
        CURLU *u = curl_url();
        if (u && curl_url_set(u, CURLUPART_URL, made.shown, 0) == CURLUE_OK)
            target_by_parts(&made, u, config->server_name);
        curl_url_cleanup(u);
    } else {
        made.base = xstrdup(made.shown);
    }
    if (!made.base) {
        r = error_set(err, EINVAL,
                      "\"%.200s\" with the server name \"%.200s\" makes no "
                      "address",
                      config->base, config->server_name);
        http_target_fini(&made);
        return r;
    }
    drop_slashes(made.base);
    *t = made;
    return 0;
}

void http_target_fini(struct http_target *t)
{
    free(t->shown);
    free(t->base);
    free(t->host_header);
    free(t->unix_path);
    curl_slist_free_all(t->connect_to);
    memset(t, 0, sizeof *t);
}

/* --- the handle --------------------------------------------------------- */

#define SET(option, value) HTTP_CURL_SET(code, curl, option, value)

/* The first failure is returned. */
static CURLcode set_options(CURL *curl, const struct http_target *target,
                            char *reason)
{
    CURLcode code = CURLE_OK;
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_MAXCONNECTS, 1L);
    SET(CURLOPT_USERAGENT, "biga/" BIGA_VERSION);
    SET(CURLOPT_ERRORBUFFER, reason);
    SET(CURLOPT_CONNECT_TO, target->connect_to);
    SET(CURLOPT_UNIX_SOCKET_PATH, target->unix_path);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    return code;
}

static CURLcode set_text(CURL *curl, CURLoption file_option,
                         CURLoption pem_option, const char *file,
                         const char *pem)
{
    struct curl_blob blob = {0};
    if (!pem)
        return file ? curl_easy_setopt(curl, file_option, file) : CURLE_OK;
    blob.data = (void *)(uintptr_t)pem; /* read only: NOCOPY */
    blob.len = strlen(pem);
    blob.flags = CURL_BLOB_NOCOPY;
    return curl_easy_setopt(curl, pem_option, &blob);
}

static CURLcode set_tls(CURL *curl, const struct http_config *c)
{
    CURLcode code = CURLE_OK;
    /* ours alone: not those of the system besides */
    if (c->ca_pem || c->ca_file)
        SET(CURLOPT_CAPATH, NULL);
    if (code == CURLE_OK)
        code = set_text(curl, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB, c->ca_file,
                        c->ca_pem);
    if (code == CURLE_OK)
        code = set_text(curl, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB,
                        c->cert_file, c->cert_pem);
    if (code == CURLE_OK)
        code = set_text(curl, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB, c->key_file,
                        c->key_pem);
    return code;
}

int http_curl_create(const struct http_config *config,
                     const struct http_target *target, char *reason,
                     CURL **ret_curl, struct error *err)
{
    (void)pthread_once(&init_once, init_curl);
    if (init_code != CURLE_OK)
        return error_set(err, EIO, "libcurl: %s",
                         curl_easy_strerror(init_code));
    CURL *curl = curl_easy_init();
    CURLcode code = curl ? set_options(curl, target, reason)
                         : CURLE_FAILED_INIT;
    if (code == CURLE_OK)
        code = set_tls(curl, config);
    if (code != CURLE_OK) {
        curl_easy_cleanup(curl); /* NULL allowed */
        return error_set(err, EIO, "libcurl: %s", curl_easy_strerror(code));
    }
    *ret_curl = curl;
    return 0;
}
