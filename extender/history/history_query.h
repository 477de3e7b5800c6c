/* history_query - what is asked of the history, as texts of a URL. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_QUERY_H
#define BIGA_EXTENDER_HISTORY_HISTORY_QUERY_H

#include "extender/history/history_read.h"
#include "lib/base/error.h"

/* NULL: not given. */
struct history_query_texts {
    const char *kind, *namespace, *name, *node, *job, *reason, *since, *until,
        *after, *order;
};

/* Owns its texts; "": not given. */
struct history_query {
    struct history_filter filter; /* but for its texts */
    char object[HISTORY_OBJECT_MAX + 1], job[HISTORY_OBJECT_MAX + 1];
    char namespace[DEMAND_NAMESPACE_MAX + 1], node[DEMAND_NAME_MAX + 1];
};
/* With its texts, which are the query's. */
struct history_filter history_query_filter(const struct history_query *q);

/* -EINVAL, with the parameter, its value and what is allowed.  Whatever lives
 * in a namespace is in "default" unless one is given. */
int history_query_parse(const struct history_query_texts *t,
                        struct history_query *ret_query, struct error *err);

/* A moment; NULL is `otherwise_ms`. */
int history_query_time(const char *parameter, const char *text,
                       int64_t otherwise_ms, int64_t *ret_ms,
                       struct error *err);

/* The kind and the object of a path "KIND/…", as "pod" and "NS/NAME". -ENOENT:
 * there is no such kind; -EINVAL: no such thing has that name. */
int history_query_object(const char *kind, const char *name,
                         enum history_kind *ret_kind, struct error *err);

#endif
