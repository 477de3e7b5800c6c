#include "extender/history/history_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/io/rfc3339.h"

int history_query_time(const char *parameter, const char *text,
                       int64_t otherwise_ms, int64_t *ret_ms, struct error *err)
{
    *ret_ms = otherwise_ms;
    if (!text || rfc3339_parse(text, ret_ms))
        return 0;
    return error_set(err, EINVAL,
                     "%s: is \"%.40s\", must be a time such as "
                     "2026-11-01T14:05:07Z",
                     parameter, text);
}

static int parse_after(const char *text, uint64_t *ret_seq, struct error *err)
{
    char *end = NULL;
    *ret_seq = 0;
    if (!text)
        return 0;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n > INT64_MAX / 2)
        return error_set(err, EINVAL,
                         "continue: is \"%.40s\", must be that of an answer",
                         text);
    *ret_seq = n;
    return 0;
}

typedef const char *word_f(unsigned index);

static const char *kind_word(unsigned i)
{
    return history_kind_name((enum history_kind)i);
}

static const char *reason_word(unsigned i)
{
    return history_reason_name((enum history_reason)i);
}

static int parse_word(const char *parameter, const char *text, word_f *word,
                      unsigned n, unsigned *ret_index, struct error *err)
{
    char words[512] = "";
    size_t size = 0;
    unsigned i = 0;
    while (text && i < n && strcmp(word(i), text) != 0)
        i++;
    *ret_index = text ? i : n;
    if (!text || i < n)
        return 0;
    for (i = 0; i < n && size < sizeof words; i++)
        size += (size_t)snprintf(words + size, sizeof words - size, "%s%s",
                                 i == 0      ? ""
                                 : i < n - 1 ? ", "
                                             : " or ",
                                 word(i));
    return error_set(err, EINVAL, "%s: is \"%.40s\", must be %s", parameter,
                     text, words);
}

static int parse_words(const struct history_query_texts *t,
                       struct history_filter *f, struct error *err)
{
    unsigned kind, reason;
    int r = parse_word("kind", t->kind, kind_word, HISTORY_KINDS, &kind, err);
    if (r == 0)
        r = parse_word("reason", t->reason, reason_word, HISTORY_REASONS,
                       &reason, err);
    if (r < 0)
        return r;
    f->kind = (enum history_kind)kind;
    f->reason = (enum history_reason)reason;
    f->newest_first = t->order && strcmp(t->order, "desc") == 0;
    if (t->order && !f->newest_first && strcmp(t->order, "asc") != 0)
        return error_set(err, EINVAL,
                         "order: is \"%.40s\", must be asc or desc", t->order);
    return 0;
}

/* "NAME" within what it is in, or as it is when it names that itself. */
static int join(const char *parameter, const char *within, const char *name,
                char ret[HISTORY_OBJECT_MAX + 1], struct error *err)
{
    int size = strchr(name, '/')
                   ? snprintf(ret, HISTORY_OBJECT_MAX + 1, "%s", name)
                   : snprintf(ret, HISTORY_OBJECT_MAX + 1, "%s/%s", within,
                              name);
    return size <= HISTORY_OBJECT_MAX &&
                   history_object_is_valid(HISTORY_POD, ret)
               ? 0
               : error_set(err, EINVAL, "%s: \"%.80s\" is not a name",
                           parameter, name);
}

static int take(const char *parameter, const char *text, char *ret, size_t size,
                struct error *err)
{
    if (!text)
        return 0;
    if (!*text || strlen(text) >= size || strchr(text, '/'))
        return error_set(err, EINVAL,
                         "%s: \"%.80s\" is not a name of 1 to %zu characters",
                         parameter, text, size - 1);
    (void)snprintf(ret, size, "%s", text);
    return 0;
}

static int parse_name(const struct history_query_texts *t,
                      struct history_query *q, const char *namespace,
                      struct error *err)
{
    if (q->filter.kind == HISTORY_KINDS)
        return error_set(err, EINVAL, "name: needs a kind beside it");
    if (q->filter.kind == HISTORY_NODE)
        return take("name", t->name, q->object, sizeof q->object, err);
    if (q->filter.kind == HISTORY_CARD && !t->node && !strchr(t->name, '/'))
        return error_set(err, EINVAL, "name: of a card needs a node beside it");
    return join("name", q->filter.kind == HISTORY_CARD ? t->node : namespace,
                t->name, q->object, err);
}

static int parse_names(const struct history_query_texts *t,
                       struct history_query *q, struct error *err)
{
    const char *namespace = t->namespace ? t->namespace : "default";
    int r = take("namespace", t->namespace, q->namespace, sizeof q->namespace,
                 err);
    if (r == 0)
        r = take("node", t->node, q->node, sizeof q->node, err);
    if (r == 0 && t->job)
        r = join("job", namespace, t->job, q->job, err);
    return r == 0 && t->name ? parse_name(t, q, namespace, err) : r;
}

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

struct history_filter history_query_filter(const struct history_query *q)
{
    struct history_filter f = q->filter;
    f.object = given(q->object);
    f.job = given(q->job);
    f.namespace = given(q->namespace);
    f.node = given(q->node);
    return f;
}

int history_query_parse(const struct history_query_texts *t,
                        struct history_query *ret_query, struct error *err)
{
    struct history_filter *f = &ret_query->filter;
    *ret_query = (struct history_query){.filter = {.limit = HISTORY_PAGE_MAX}};
    int r = parse_words(t, f, err);
    if (r == 0)
        r = parse_names(t, ret_query, err);
    if (r == 0)
        r = history_query_time("since", t->since, 0, &f->since_ms, err);
    if (r == 0)
        r = history_query_time("until", t->until, 0, &f->until_ms, err);
    return r == 0 ? parse_after(t->after, &f->after, err) : r;
}

int history_query_object(const char *kind, const char *name,
                         enum history_kind *ret_kind, struct error *err)
{
    unsigned index;
    struct error why;
    if (parse_word("kind", kind, kind_word, HISTORY_KINDS, &index, &why) < 0)
        return error_set(err, ENOENT, "%s", why.text);
    *ret_kind = (enum history_kind)index;
    if (history_object_is_valid(*ret_kind, name))
        return 0;
    return error_set(err, EINVAL, "%s: is \"%.80s\", must be %s", kind, name,
                     *ret_kind == HISTORY_NODE   ? "the name of a node"
                     : *ret_kind == HISTORY_CARD ? "NODE/CARD"
                                                 : "NAMESPACE/NAME");
}
