#include "extender/admit/reach.h"

#include <string.h>

#include "lib/base/mem.h"

static const struct {
    const char *route;
    unsigned methods;
    enum reach reach;
} lines[] = {
    {"/", HTTPD_GET, REACH_SEEN},
    {"/healthz", HTTPD_GET, REACH_SEEN},
    {"/metrics", HTTPD_GET, REACH_NONE},
    {"/openapi.yaml", HTTPD_GET, REACH_SEEN},
    {"/readyz", HTTPD_GET, REACH_SEEN},
    {"/ui/cards/:/:", HTTPD_GET, REACH_SEEN},
    {"/ui/console.css", HTTPD_GET, REACH_SEEN},
    {"/ui/console.js", HTTPD_GET, REACH_SEEN},
    {"/ui/events", HTTPD_GET, REACH_SEEN},
    {"/ui/icon.svg", HTTPD_GET, REACH_SEEN},
    {"/ui/jobs", HTTPD_GET, REACH_SEEN},
    {"/ui/jobs/:/:", HTTPD_GET, REACH_PATH},
    {"/ui/leaves/:", HTTPD_GET, REACH_SEEN},
    {"/ui/login", HTTPD_GET | HTTPD_POST, REACH_SEEN},
    {"/ui/logout", HTTPD_POST, REACH_SEEN},
    {"/ui/nodes", HTTPD_GET, REACH_SEEN},
    {"/ui/nodes/:", HTTPD_GET, REACH_SEEN},
    {"/ui/pending", HTTPD_GET, REACH_SEEN},
    {"/ui/pods/:/:", HTTPD_GET, REACH_PATH},
    {"/ui/replay", HTTPD_GET, REACH_SEEN},
    {"/ui/replay.js", HTTPD_GET, REACH_SEEN},
    {"/ui/search", HTTPD_GET, REACH_SEEN},
    {"/v1/allocations", HTTPD_GET, REACH_SEEN},
    {"/v1/allocations/:/:", HTTPD_GET | HTTPD_DELETE, REACH_PATH},
    {"/v1/cards", HTTPD_GET, REACH_SEEN},
    {"/v1/cards/:/:", HTTPD_GET, REACH_SEEN},
    {"/v1/cards/:/:/drain", HTTPD_POST | HTTPD_DELETE, REACH_NONE},
    {"/v1/changes", HTTPD_GET, REACH_SEEN},
    {"/v1/cluster", HTTPD_GET, REACH_NONE},
    {"/v1/configmaps/:/:", HTTPD_GET | HTTPD_DELETE, REACH_PATH},
    {"/v1/configs", HTTPD_GET, REACH_SEEN},
    {"/v1/doubt", HTTPD_DELETE, REACH_NONE},
    {"/v1/doubt/:", HTTPD_DELETE, REACH_NONE},
    {"/v1/events", HTTPD_GET, REACH_SEEN},
    {"/v1/fabric", HTTPD_GET, REACH_SEEN},
    {"/v1/history/:/:", HTTPD_GET, REACH_HISTORY},
    {"/v1/history/:/:/:", HTTPD_GET, REACH_HISTORY},
    {"/v1/jobs", HTTPD_GET, REACH_SEEN},
    {"/v1/jobs/:/:", HTTPD_GET | HTTPD_DELETE, REACH_PATH},
    {"/v1/jobs/:/:/allocations", HTTPD_DELETE, REACH_PATH},
    {"/v1/jobs/:/:/drawing", HTTPD_GET, REACH_PATH},
    {"/v1/jobs/:/:/maps", HTTPD_GET, REACH_PATH},
    {"/v1/nodes", HTTPD_GET, REACH_SEEN},
    {"/v1/nodes/:", HTTPD_GET, REACH_SEEN},
    {"/v1/nodes/:/drain", HTTPD_POST | HTTPD_DELETE, REACH_NONE},
    {"/v1/nodes/:/drawing", HTTPD_GET, REACH_SEEN},
    {"/v1/pending", HTTPD_GET, REACH_SEEN},
    {"/v1/pods", HTTPD_GET | HTTPD_POST, REACH_SEEN},
    {"/v1/pods/:/:", HTTPD_GET | HTTPD_DELETE, REACH_PATH},
    {"/v1/pods/:/:/attach", HTTPD_GET, REACH_PATH},
    {"/v1/pods/:/:/exec", HTTPD_GET, REACH_PATH},
    {"/v1/pods/:/:/log", HTTPD_GET, REACH_PATH},
    {"/v1/pods/:/:/portforward", HTTPD_GET, REACH_PATH},
    {"/v1/policy", HTTPD_GET, REACH_SEEN},
    {"/v1/secrets/:/:", HTTPD_GET | HTTPD_DELETE, REACH_PATH},
    {"/v1/simulate", HTTPD_POST, REACH_NONE},
    {"/v1/topology", HTTPD_GET, REACH_SEEN},
    {"/v1/usage", HTTPD_GET, REACH_SEEN},
    {"/v1/why", HTTPD_GET, REACH_ASKED},
};

enum reach reach_of(enum httpd_method method, const char *route)
{
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (lines[i].methods & method && strcmp(lines[i].route, route) == 0)
            return lines[i].reach;
    return REACH_UNKNOWN;
}

/* Of "NAME" the namespace is "default". */
static bool sees_asked(const struct scope *scope, const char *object)
{
    return !object || (strchr(object, '/') ? scope_sees_object(scope, object)
                                           : scope_sees(scope, "default"));
}

/* "NAMESPACE/NAME" may come as one segment, with %2F. */
static bool sees_history(const struct scope *scope,
                         const struct httpd_request *rq)
{
    const char *kind = httpd_arg(rq, 0);
    bool of_pods = strcmp(kind, "node") != 0 && strcmp(kind, "card") != 0;
    return !of_pods || scope_sees_object(scope, httpd_arg(rq, 1));
}

static bool sees(const struct scope *scope, const struct httpd_request *rq)
{
    const char *namespace = httpd_query(rq, "namespace");
    switch (reach_of(httpd_method(rq), httpd_route_path(rq))) {
    case REACH_SEEN:
        return !namespace || scope_sees(scope, namespace);
    case REACH_PATH:
        return scope_sees(scope, httpd_arg(rq, 0));
    case REACH_HISTORY:
        return sees_history(scope, rq);
    case REACH_ASKED:
        return sees_asked(scope, httpd_query(rq, "pod")) &&
               sees_asked(scope, httpd_query(rq, "job"));
    case REACH_NONE:
    case REACH_UNKNOWN:
        break;
    }
    return false;
}

char *reach_refusal(const struct httpd_request *rq, const struct scope *scope)
{
    cleanup_str struct str names = STR_INIT(65536);
    if (!scope || sees(scope, rq))
        return NULL;
    scope_write(scope, &names);
    return xasprintf("this token is of namespace %.200s alone: its line in the "
                     "file of --read-tokens would need \",view:*\", or the "
                     "namespace",
                     str_text(&names));
}
