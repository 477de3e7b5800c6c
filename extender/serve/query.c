#include "extender/serve/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "extender/admit/sight.h"
#include "extender/app/scoped.h"
#include "extender/serve/app.h"
#include "lib/base/mem.h"

struct snapshot *visible_snapshot(const struct app *app,
                                  const struct httpd_request *rq)
{
    return scoped_get(app->scoped, writer_snapshot(app->writer),
                      sight_scope(rq));
}

struct alloc_order *visible_order(const struct app *app,
                                  const struct snapshot *s)
{
    return scoped_order(app->scoped, s);
}

bool query_limit(struct httpd_request *rq, size_t max, size_t *ret_limit)
{
    const char *text = httpd_query(rq, "limit");
    char *end = NULL;
    if (!text)
        return true;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > max) {
        httpd_fail(rq, 400,
                   "limit: is \"%.32s\", must be a number from 1 to "
                   "%zu",
                   text, max);
        return false;
    }
    *ret_limit = (size_t)n;
    return true;
}

bool query_number(struct httpd_request *rq, const char *name, uint64_t max,
                  uint64_t *ret_number)
{
    const char *text = httpd_query(rq, name);
    char *end = NULL;
    errno = 0;
    unsigned long long n = text ? strtoull(text, &end, 10) : 0;
    if (text && (*text < '0' || *text > '9' || *end || errno || n > max)) {
        httpd_fail(rq, 400,
                   "%s: is \"%.32s\", must be a whole number of at most "
                   "%" PRIu64,
                   name, text, max);
        return false;
    }
    *ret_number = n;
    return true;
}

bool query_choice(struct httpd_request *rq, const char *name,
                  query_word_f *word, unsigned n, unsigned *ret_index)
{
    const char *text = httpd_query(rq, name);
    cleanup_str struct str words = STR_INIT(1024);
    unsigned i = 0;
    while (text && i < n && strcmp(word(i), text) != 0)
        i++;
    *ret_index = text ? i : n;
    if (!text || i < n)
        return true;
    for (i = 0; i < n; i++)
        str_addf(&words, "%s%s",
                 i == 0      ? ""
                 : i < n - 1 ? ", "
                             : " or ",
                 word(i));
    httpd_fail(rq, 400, "%s: is \"%.32s\", must be %s", name, text,
               str_text(&words));
    return false;
}

bool query_has_version(struct httpd_request *rq, const struct app *app,
                       uint64_t snapshot, uint64_t version)
{
    char etag[96];
    const char *have = httpd_header(rq, "If-None-Match");
    /* what others may see is something else */
    uint64_t instance = app->instance ^ scope_hash(sight_scope(rq));
    (void)snprintf(etag, sizeof etag,
                   "W/\"%" PRIx64 ".%" PRIu64 ".%" PRIu64 "%s\"", instance,
                   snapshot, version, httpd_wants_text(rq) ? "t" : "");
    httpd_set_header(rq, "ETag", etag);
    httpd_set_header(rq, "Vary", "Accept");
    if (!have || !strstr(have, etag))
        return false;
    httpd_status(rq, 304);
    return true;
}

bool query_is_current(struct httpd_request *rq, const struct app *app,
                      const struct snapshot *snapshot)
{
    return query_has_version(rq, app, snapshot->number,
                             pod_source_ask(&app->source, version) +
                                 achieved_book_version(app->achieved));
}

uint64_t query_version(const struct app *app)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    return s->number + pod_source_ask(&app->source, version) +
           pod_source_ask(&app->source, pods_version) +
           achieved_book_version(app->achieved);
}

bool query_is_after(const char *namespace, const char *name, const char *token)
{
    const char *slash = strchr(token, '/');
    size_t size = slash ? (size_t)(slash - token) : strlen(token);
    int order = strncmp(namespace, token, size);
    if (order == 0)
        order = namespace[size] != '\0';
    if (order == 0)
        order = strcmp(name, slash ? slash + 1 : "");
    return order > 0;
}

char *query_key(const char *token, const char **ret_name)
{
    size_t size = strcspn(token, "/");
    char *key = xstrdup(token);
    *ret_name = key + size + (key[size] == '/');
    key[size] = '\0';
    return key;
}

bool query_is_json(struct httpd_request *rq)
{
    const char *type = httpd_header(rq, "Content-Type");
    static const char json[] = "application/json";
    size_t size = sizeof json - 1;
    if (type && strncasecmp(type, json, size) == 0 &&
        (type[size] == '\0' || type[size] == ';' || type[size] == ' '))
        return true;
    httpd_fail(rq, 415, "Content-Type: is \"%.64s\", must be %s",
               type ? type : "", json);
    return false;
}
