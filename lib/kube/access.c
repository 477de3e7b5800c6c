#include "lib/kube/access.h"

#include <stdlib.h>
#include <string.h>

#include "lib/io/log.h"
#include "lib/io/watch.h"

enum { FILE_MAX = 1 << 20, TOKEN_MAX = 65536, POLL_MS = 1000, N_FILES = 4 };

struct kube_access {
    struct watched_file files[N_FILES];
    unsigned n_files;
    struct watched_file *token_file; /* one of them, or NULL */
    char *authorization;
    int64_t polled_ms;
};

/* A token is one word of printable ASCII: anything else would break the
 * header it is sent in. */
static int set_token(struct kube_access *a, const char *where,
                     const char *token, struct error *err)
{
    size_t begin = strspn(token, " \t\r\n");
    size_t size = strcspn(token + begin, " \t\r\n");
    const char *word = token + begin;
    if (word[size + strspn(word + size, " \t\r\n")] != '\0')
        return error_set(err, EINVAL, "%s: a token has no spaces", where);
    if (size == 0 || size > TOKEN_MAX)
        return error_set(err, EINVAL, "%s: has %zu bytes, a token has 1 to %d",
                         where, size, TOKEN_MAX);
    for (size_t i = 0; i < size; i++)
        if (word[i] <= ' ' || word[i] == 0x7f || (word[i] & 0x80))
            return error_set(err, EINVAL,
                             "%s: byte %zu is no printable ASCII character",
                             where, begin + i);
    free(a->authorization);
    a->authorization = xasprintf("Bearer %.*s", (int)size, word);
    return 0;
}

static int poll_file(struct kube_access *a, struct watched_file *f,
                     struct error *err)
{
    cleanup_str struct str text = STR_INIT(FILE_MAX);
    int r = watch_poll(f, &text, err);
    if (r == 1 && f == a->token_file) {
        int bad = strlen(str_text(&text)) != text.size
                      ? error_set(err, EINVAL, "%s: has a NUL byte", f->path)
                      : set_token(a, f->path, str_text(&text), err);
        r = bad < 0 ? bad : 1;
    }
    if (text.data) /* a key or a token */
        explicit_bzero(text.data, text.cap);
    return r;
}

static int add_file(struct kube_access *a, const char *path,
                    const char *instead, struct error *err)
{
    if (!path || instead)
        return 0;
    struct watched_file *f = &a->files[a->n_files++];
    watch_init(f, path, FILE_MAX);
    int r = poll_file(a, f, err);
    return r < 0 ? r : 0;
}

static int add_token(struct kube_access *a, const struct kube_config *c,
                     struct error *err)
{
    if (!c->token_file)
        return c->token ? set_token(a, "token", c->token, err) : 0;
    a->token_file = &a->files[a->n_files];
    int r = add_file(a, c->token_file, NULL, err);
    /* as kubectl does: the text stands in until the file can be read */
    if (r < 0 && c->token)
        r = set_token(a, "token", c->token, err);
    return r;
}

int kube_access_create(const struct kube_config *config,
                       struct kube_access **ret_access, struct error *err)
{
    cleanup_with(kube_access) struct kube_access *a = xcalloc(1, sizeof *a);
    int r = add_file(a, config->ca_file, config->ca_pem, err);
    if (r == 0)
        r = add_file(a, config->cert_file, config->cert_pem, err);
    if (r == 0)
        r = add_file(a, config->key_file, config->key_pem, err);
    if (r == 0)
        r = add_token(a, config, err);
    if (r == 0)
        *ret_access = steal(&a);
    return r;
}

void kube_access_destroy(struct kube_access *a)
{
    if (!a)
        return;
    for (unsigned i = 0; i < a->n_files; i++)
        watch_fini(&a->files[i]);
    if (a->authorization)
        explicit_bzero(a->authorization, strlen(a->authorization));
    free(a->authorization);
    free(a);
}

unsigned kube_access_poll(struct kube_access *a, int64_t now_ms)
{
    unsigned news = 0;
    if (a->n_files == 0 || now_ms < a->polled_ms + POLL_MS)
        return 0;
    a->polled_ms = now_ms;
    for (unsigned i = 0; i < a->n_files; i++) {
        struct watched_file *f = &a->files[i];
        struct error err;
        int r = poll_file(a, f, &err);
        if (r < 0) /* once for as long as it stays so */
            log_event(LOG_WARN, "credentials-kept", "error", err.text, NULL);
        if (r == 1)
            news |= f == a->token_file ? KUBE_ACCESS_TOKEN : KUBE_ACCESS_FILES;
    }
    return news;
}

const char *kube_access_authorization(const struct kube_access *a)
{
    return a->authorization;
}

void kube_access_http(const struct kube_config *config, unsigned timeout_ms,
                      size_t answer_max, struct http_config *ret_http)
{
    *ret_http = (struct http_config){
        .base = config->server,
        .timeout_ms = timeout_ms,
        .ca_file = config->ca_file,
        .ca_pem = config->ca_pem,
        .cert_file = config->cert_file,
        .cert_pem = config->cert_pem,
        .key_file = config->key_file,
        .key_pem = config->key_pem,
        .server_name = config->server_name,
        .answer_max = answer_max,
    };
}
