#include <string.h>

#include "model/io/log.h"
#include "model/kube/reflector_private.h"

enum { TOKEN_MAX = 65536, CONNECT_MS = 10000 };

DEFINE_CLEANUP(curlu, CURLU *, curl_url_cleanup)

static void cleanup_part_p(char **part)
{
    curl_free(*part);
}
#define cleanup_part __attribute__((__cleanup__(cleanup_part_p)))

/* The server's URL in its parts; without a user, a query or a fragment. */
static int split_server(const char *server, CURLU **ret_url, struct error *err)
{
    cleanup_with(curlu) CURLU *url = curl_url();
    cleanup_part char *user = NULL, *query = NULL, *scheme = NULL;
    CURLUcode code = curl_url_set(url, CURLUPART_URL, server, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    if (code != CURLUE_OK)
        return error_set(err, EINVAL,
                         "server \"%.200s\": %s; it looks like "
                         "https://127.0.0.1:6443",
                         server, curl_url_strerror(code));
    if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
        return error_set(err, EINVAL,
                         "server \"%.200s\": only https and http are spoken",
                         server);
    if (curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK ||
        curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK)
        return error_set(err, EINVAL,
                         "server: has a user or a query; only scheme, host, "
                         "port and path are allowed");
    *ret_url = steal(&url);
    return 0;
}

/* With a server name of its own the URL is made of that, and the connection
 * is led to where the server is. */
static int set_server(struct caller *c, const char *server, struct error *err)
{
    cleanup_with(curlu) CURLU *url = NULL;
    cleanup_part char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    int r = split_server(server, &url, err);
    if (r < 0)
        return r;
    if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) !=
            CURLUE_OK ||
        curl_url_get(url, CURLUPART_PATH, &path, 0) != CURLUE_OK)
        return error_set(err, EINVAL, "server \"%.200s\": has no host", server);
    const char *name = c->config->server_name;
    if (name && strcmp(name, host) != 0) {
        cleanup_free char *to = xasprintf("%s:%s:%s:%s", name, port, host,
                                          port);
        c->connect_to = curl_slist_append(NULL, to);
        if (!c->connect_to)
            abort();
    }
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] == '/')
        size--;
    c->base = xasprintf("%s://%s:%s%.*s", scheme, name ? name : host, port,
                        (int)size, path);
    return 0;
}

/* What a header can hold: a token is visible ASCII without spaces. */
static int set_token(struct caller *c, const char *data, size_t size,
                     const char *from, struct error *err)
{
    static const char space[] = " \t\r\n";
    while (size > 0 && data[size - 1] && strchr(space, data[size - 1]))
        size--;
    while (size > 0 && data[0] && strchr(space, data[0]))
        data++, size--;
    if (size == 0)
        return error_set(err, EINVAL, "%s: is empty", from);
    for (size_t i = 0; i < size; i++)
        if (data[i] <= ' ' || data[i] > '~')
            return error_set(err, EINVAL,
                             "%s: byte %zu is no visible ASCII character, "
                             "which a token is made of",
                             from, i);
    str_reset(&c->token);
    str_add_n(&c->token, data, size);
    return 0;
}

int caller_init(struct caller *c, const struct kube_config *config,
                struct error *err)
{
    memset(c, 0, sizeof *c);
    c->config = config;
    str_init(&c->token, TOKEN_MAX);
    if (!config->server)
        return error_set(err, EINVAL, "server: is missing");
    int r = set_server(c, config->server, err);
    if (r < 0)
        return r;
    if (config->token_file)
        watch_init(&c->token_file, config->token_file, TOKEN_MAX);
    else if (config->token && config->token[0])
        r = set_token(c, config->token, strlen(config->token), "token", err);
    return r;
}

void caller_fini(struct caller *c)
{
    watch_fini(&c->token_file);
    str_fini(&c->token);
    curl_slist_free_all(c->connect_to);
    free(c->base);
}

int caller_refresh(struct caller *c, struct error *err)
{
    cleanup_str struct str text = STR_INIT(TOKEN_MAX);
    struct error why = {0};
    if (!c->token_file.path)
        return 0;
    int r = watch_poll(&c->token_file, &text, &why);
    if (r > 0)
        r = set_token(c, str_text(&text), text.size, c->token_file.path, &why);
    if (r < 0 && c->token.size)
        log_event(LOG_WARN, "token-kept", "error", why.text, NULL);
    if (c->token.size)
        return 0;
    if (r == 0) /* told once by watch_poll */
        return error_set(err, EACCES, "%s: has no token", c->token_file.path);
    return error_set(err, why.code, "%s", why.text);
}

struct curl_slist *caller_headers(const struct caller *c)
{
    struct curl_slist *list = curl_slist_append(NULL,
                                                "Accept: application/json");
    if (list && c->token.size) {
        cleanup_free char *text = xasprintf("Authorization: Bearer %s",
                                            str_text(&c->token));
        struct curl_slist *longer = curl_slist_append(list, text);
        if (!longer)
            abort();
        list = longer;
    }
    if (!list)
        abort();
    return list;
}

/* `text` is copied by libcurl, which reads a file for each connection. */
static CURLcode set_pem(CURL *easy, CURLoption blob, CURLoption file,
                        const char *text, const char *path)
{
    if (text) {
        struct curl_blob b = {.data = (void *)(uintptr_t)text,
                              .len = strlen(text),
                              .flags = CURL_BLOB_COPY};
        return curl_easy_setopt(easy, blob, &b);
    }
    return path ? curl_easy_setopt(easy, file, path) : CURLE_OK;
}

#define SET(option, value)                                \
    do {                                                  \
        if (code == CURLE_OK)                             \
            code = curl_easy_setopt(easy, option, value); \
    } while (0)

/* What files say must count at the next connection: nothing of TLS is kept
 * from one to another. */
static CURLcode set_tls(CURL *easy, const struct kube_config *k)
{
    CURLcode code = set_pem(easy, CURLOPT_CAINFO_BLOB, CURLOPT_CAINFO,
                            k->ca_pem, k->ca_file);
    if (code == CURLE_OK)
        code = set_pem(easy, CURLOPT_SSLCERT_BLOB, CURLOPT_SSLCERT, k->cert_pem,
                       k->cert_file);
    if (code == CURLE_OK)
        code = set_pem(easy, CURLOPT_SSLKEY_BLOB, CURLOPT_SSLKEY, k->key_pem,
                       k->key_file);
    if (k->ca_pem || k->ca_file)
        SET(CURLOPT_CAPATH, NULL);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    return code;
}

int caller_setup(const struct caller *c, CURL *easy, struct error *err)
{
    CURLcode code = set_tls(easy, c->config);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* a slow name server delays no end */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 30L);
    SET(CURLOPT_TCP_KEEPINTVL, 10L);
    SET(CURLOPT_BUFFERSIZE, 65536L);
    SET(CURLOPT_USERAGENT, "biga/" BIGA_VERSION);
    if (c->connect_to)
        SET(CURLOPT_CONNECT_TO, c->connect_to);
    if (code != CURLE_OK)
        return error_set(err, EIO, "libcurl: %s", curl_easy_strerror(code));
    return 0;
}
